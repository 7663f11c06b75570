//! A resource template, and completion of its variable.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-templates> and
//! <https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion>.
//! Try it: `cargo run --example inspect -- read city://oslo -- cargo run --quiet --example template`.
use mcp_sansio::service::{Complete, HandlerResult, ReadResource, ResourceTemplate, Service};
use mcp_sansio_blocking::serve_stdio;

const CITIES: [(&str, &str); 3] = [("lima", "Peru"), ("lisbon", "Portugal"), ("oslo", "Norway")];

/// Answers `resources/read` for each URI that matches `city://{name}`. The value of `name` comes from the client: it is looked up, never
/// used as a path.
fn read_city(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
    let name = read.var("name").unwrap_or_default();
    match CITIES.iter().find(|city| city.0 == name) {
        Some((_, country)) => read.text(format_args!("{name} is in {country}")),
        None => read.not_found(),
    }
}

/// Answers `completion/complete` with the names that begin with the `value` typed so far. 100 at most are sent.
fn complete_name(_: &mut (), complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(CITIES.iter().map(|city| city.0))
}

static TEMPLATES: [ResourceTemplate<()>; 1] = [ResourceTemplate::new("city://{name}", "city", read_city)
    .description("In which country a city is")
    .complete(complete_name)];

fn main() -> std::io::Result<()> {
    serve_stdio(&Service::new("template", "1.0").templates(&TEMPLATES), &mut ())
}
