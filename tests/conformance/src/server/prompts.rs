//! Prompts.

use mcp_sansio::server::Failure;
use mcp_sansio::service::{Argument, Complete, Content, Contents, Get, Message, Outcome, Prompt};

use crate::Fixture;
use crate::questions;
use crate::resources::RED_PIXEL;

pub(crate) static PROMPTS: [Prompt<Fixture>; 5] = [
    Prompt::new("test_simple_prompt", "A prompt without arguments", |_, get| {
        get.user("This is a simple prompt for testing.")
    }),
    Prompt::new("test_prompt_with_arguments", "A prompt with two arguments", with_arguments)
        .arguments(&[
            Argument::required("arg1").description("The first argument"),
            Argument::required("arg2").description("The second argument"),
        ])
        .complete(complete),
    Prompt::new("test_prompt_with_embedded_resource", "A prompt with a resource in it", with_resource)
        .arguments(&[Argument::required("resourceUri").description("The URI of the resource")]),
    Prompt::new("test_prompt_with_image", "A prompt with an image in it", with_image),
    Prompt::new("test_input_required_result_prompt", "A prompt that asks the user first", questions::prompt),
];

const MISSING: Failure<'static> = Failure::invalid_params("Invalid params: an argument is not a string");

fn with_arguments(_: &mut Fixture, get: &mut Get<'_>) -> Outcome {
    let first = get.arg("arg1").ok_or(MISSING)?;
    let second = get.arg("arg2").ok_or(MISSING)?;
    get.user(format_args!("Prompt with arguments: arg1='{first}', arg2='{second}'"))
}

fn complete(_: &mut Fixture, complete: &mut Complete<'_>) -> Outcome {
    complete.matching(["testing", "tested", "paris", "party"])
}

fn with_resource(_: &mut Fixture, get: &mut Get<'_>) -> Outcome {
    let uri = get.arg("resourceUri").ok_or(MISSING)?;
    let contents = Contents::text(uri, "Embedded resource content for testing.").mime("text/plain");
    get.messages(&[
        Message::user(Content::resource(contents)),
        Message::user(Content::text("Please process the embedded resource above.")),
    ])
}

fn with_image(_: &mut Fixture, get: &mut Get<'_>) -> Outcome {
    get.messages(&[
        Message::user(Content::image(RED_PIXEL, "image/png")),
        Message::user(Content::text("Please analyze the image above.")),
    ])
}
