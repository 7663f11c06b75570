//! The tools. The first one succeeds without arguments: a scenario calls it that way.

use mcp_sansio::protocol::{ClientFeature, Level};
use mcp_sansio::server::Change;
use mcp_sansio::service::{Call, Content, Contents, Outcome, Tool};

use crate::resources::RED_PIXEL;
use crate::{Fixture, jobs, questions};

static SILENCE: &[u8] = include_bytes!("assets/silence.wav");

pub(crate) static TOOLS: [Tool<Fixture>; 28] = [
    Tool::new("test_simple_text", "Answers with text", |_, call| {
        call.text("This is a simple text response for testing.")
    }),
    Tool::new("test_image_content", "Answers with an image", |_, call| {
        call.content(&[Content::image(RED_PIXEL, "image/png")])
    }),
    Tool::new("test_audio_content", "Answers with a sound", |_, call| {
        call.content(&[Content::audio(SILENCE, "audio/wav")])
    }),
    Tool::new("test_embedded_resource", "Answers with a resource", embedded_resource),
    Tool::new("test_multiple_content_types", "Answers with text, an image and a resource", several),
    Tool::new("test_error_handling", "Fails", |_, call| {
        call.error("This tool intentionally returns an error for testing")
    }),
    Tool::new("test_tool_with_logging", "Logs while it works", jobs::log),
    Tool::new("test_tool_with_progress", "Tells how far it is", jobs::progress),
    Tool::new("test_reconnection", "Takes so long that its client may hang up", jobs::reconnect),
    Tool::new("test_sampling", "Asks the client's model", questions::sampling).input(
        r#"{"type":"object","properties":{"prompt":{"type":"string","description":"What to ask"}},"required":["prompt"]}"#,
    ),
    Tool::new("test_elicitation", "Asks the user", questions::elicitation).input(
        r#"{"type":"object","properties":{"message":{"type":"string","description":"What to ask"}},"required":["message"]}"#,
    ),
    Tool::new("test_elicitation_sep1034_defaults", "Asks the user, with defaults", questions::defaults),
    Tool::new("test_elicitation_sep1330_enums", "Lets the user choose", questions::enums),
    Tool::new("json_schema_2020_12_tool", "Has a schema with everything", |_, call| {
        call.text("Called with arguments that the schema may or may not allow")
    })
    .input(SCHEMA_2020_12),
    Tool::new("test_custom_header", "Has an argument that is repeated in a header", |_, call| call.text("Received"))
        .input(
            r#"{"type":"object","properties":{"value":{"type":"string","x-mcp-header":"Value"}},"required":["value"]}"#,
        ),
    Tool::new("test_missing_capability", "Needs a client that samples", |_, call| {
        call.need(ClientFeature::Sampling)?;
        call.text("This client samples")
    }),
    Tool::new("test_streaming_elicitation", "Asks the user for a name", questions::user_name),
    Tool::new("test_logging_tool", "Logs, if its client wants that", |_, call| {
        call.log(Level::Info, "A message for those who want it");
        call.text("Logged, if that was wanted")
    }),
    Tool::new("test_trigger_tool_change", "Says that the tools have changed", |fixture, call| {
        fixture.changes.push(Change::Tools);
        call.text("The tools have changed")
    }),
    Tool::new("test_trigger_prompt_change", "Says that the prompts have changed", |fixture, call| {
        fixture.changes.push(Change::Prompts);
        call.text("The prompts have changed")
    }),
    Tool::new("test_input_required_result_elicitation", "Asks the user for a name", questions::user_name),
    Tool::new("test_input_required_result_sampling", "Asks the client's model", questions::capital),
    Tool::new("test_input_required_result_list_roots", "Asks for the client's roots", questions::roots),
    Tool::new("test_input_required_result_request_state", "Asks, and keeps state", questions::state),
    Tool::new("test_input_required_result_multiple_inputs", "Asks three things at once", questions::several),
    Tool::new("test_input_required_result_multi_round", "Asks twice", questions::rounds),
    Tool::new("test_input_required_result_tampered_state", "Asks, and keeps state", questions::state),
    Tool::new("test_input_required_result_capabilities", "Asks what can be asked", questions::possible),
];

fn embedded_resource(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    let contents = Contents::text("test://embedded-resource", "This is an embedded resource content.");
    call.content(&[Content::resource(contents.mime("text/plain"))])
}

fn several(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    let contents = Contents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    call.content(&[
        Content::text("Multiple content types test:"),
        Content::image(RED_PIXEL, "image/png"),
        Content::resource(contents.mime("application/json")),
    ])
}

const SCHEMA_2020_12: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false
}"##;
