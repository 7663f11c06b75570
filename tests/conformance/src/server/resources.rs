//! Resources and families of resources.

use mcp_sansio::service::{Outcome, Read, Resource, Template};
use serde::Serialize;

use crate::Fixture;

/// An image of one red pixel.
pub(crate) static RED_PIXEL: &[u8] = include_bytes!("assets/red.png");

pub(crate) static RESOURCES: [Resource<Fixture>; 3] = [
    Resource::new("test://static-text", "Static text", |_, read| {
        read.text("This is the content of the static text resource.")
    })
    .description("A text that never changes")
    .mime("text/plain"),
    Resource::new("test://static-binary", "Static binary", |_, read| read.blob(RED_PIXEL))
        .description("An image of one pixel")
        .mime("image/png"),
    Resource::new("test://watched-resource", "Watched resource", |_, read| read.text("Watched resource content"))
        .description("A resource to subscribe to")
        .mime("text/plain"),
];

pub(crate) static TEMPLATES: [Template<Fixture>; 1] = [Template::new("test://template/{id}/data", "Data by id", data)
    .description("Data for any id")
    .mime("application/json")];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    id: &'a str,
    template_test: bool,
    data: String,
}

fn data(_: &mut Fixture, read: &mut Read<'_>) -> Outcome {
    match read.var("id") {
        Some(id) => read.json(&Data { id, template_test: true, data: format!("Data for ID: {id}") }),
        None => read.not_found(),
    }
}
