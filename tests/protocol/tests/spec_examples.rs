//! The examples of the specification of 2026-07-28: messages to a server are fed to the engine, messages of a server
//! pass through it. Skipped, with a line on stderr, where the specification is not there.
use crate::common;

use common::*;
use mcp_sansio_test_support::{Example, Oracle, spec_examples};

/// Requests of a client, and the methods of their params where these stand alone.
const RECEIVED: [(&str, &str); 15] = [
    ("CallToolRequest", ""),
    ("CompleteRequest", ""),
    ("DiscoverRequest", ""),
    ("GetPromptRequest", ""),
    ("ListPromptsRequest", ""),
    ("ListResourceTemplatesRequest", ""),
    ("ListResourcesRequest", ""),
    ("ListToolsRequest", ""),
    ("ReadResourceRequest", ""),
    ("SubscriptionsListenRequest", ""),
    ("CallToolRequestParams", "tools/call"),
    ("CompleteRequestParams", "completion/complete"),
    ("GetPromptRequestParams", "prompts/get"),
    ("PaginatedRequestParams", "tools/list"),
    ("ReadResourceRequestParams", "resources/read"),
];

/// Results of a server, by themselves and in their envelopes.
const SENT: [&str; 19] = [
    "CallToolResult",
    "CallToolResultResponse",
    "CompleteResult",
    "CompleteResultResponse",
    "DiscoverResult",
    "DiscoverResultResponse",
    "GetPromptResult",
    "GetPromptResultResponse",
    "InputRequiredResult",
    "ListPromptsResult",
    "ListPromptsResultResponse",
    "ListResourceTemplatesResult",
    "ListResourceTemplatesResultResponse",
    "ListResourcesResult",
    "ListResourcesResultResponse",
    "ListToolsResult",
    "ListToolsResultResponse",
    "ReadResourceResult",
    "ReadResourceResultResponse",
];

/// Answers to questions: a tool that asks the question, and its key.
const ANSWERS: [(&str, &str, &str); 3] = [
    ("CreateMessageResult", "sample", "model"),
    ("ElicitResult", "confirm", "confirm"),
    ("ListRootsResult", "roots", "roots"),
];

/// Parts and messages whose form other tests compare with the schema.
const PARTS: &str = "AudioContent BlobResourceContents BooleanSchema ClientCapabilities EmbeddedResource ImageContent \
    InputRequests InputResponses ModelPreferences NumberSchema Resource ResourceLink Root SamplingMessage \
    ServerCapabilities StringSchema TextContent TextResourceContents TitledMultiSelectEnumSchema \
    TitledSingleSelectEnumSchema Tool ToolResultContent ToolUseContent UntitledMultiSelectEnumSchema \
    UntitledSingleSelectEnumSchema CreateMessageRequest CreateMessageRequestParams ElicitRequest \
    ElicitRequestFormParams ElicitRequestURLParams ListRootsRequest LoggingMessageNotification \
    LoggingMessageNotificationParams ProgressNotification ProgressNotificationParams PromptListChangedNotification \
    ResourceListChangedNotification ResourceUpdatedNotification ResourceUpdatedNotificationParams \
    SubscriptionsAcknowledgedNotification SubscriptionsListenResult SubscriptionsListenResultResponse \
    ToolListChangedNotification InternalError InvalidParamsError MethodNotFoundError ParseError \
    MissingRequiredClientCapabilityError UnsupportedProtocolVersionError CancelledNotificationParams";

/// Examples that only occur over HTTP.
const HTTP: &str = "HeaderMismatchError";

fn examples() -> Vec<Example> {
    let examples = spec_examples(MODERN);
    if examples.is_empty() {
        eprintln!("skipped: the examples of the specification are not at hand");
    }
    examples
}

#[test]
fn every_kind_of_example_is_accounted_for() {
    for (definition, path, _) in examples() {
        let name = definition.as_str();
        let known = RECEIVED.iter().any(|row| row.0 == name)
            || SENT.contains(&name)
            || ANSWERS.iter().any(|row| row.0 == name)
            || name == "CancelledNotification"
            || PARTS.split_whitespace().chain([HTTP]).any(|part| part == name);
        assert!(known, "{} is new", path.display());
    }
}

#[test]
fn what_a_server_receives() {
    for (definition, path, example) in examples() {
        let mut rig = Rig::new();
        if definition == "CancelledNotification" {
            assert!(rig.say(&example.to_string()).is_empty());
        }
        let Some((_, method)) = RECEIVED.iter().find(|row| row.0 == definition) else { continue };
        let line = if method.is_empty() { example.to_string() } else { request(MODERN, 1, method, example) };
        let reply = parse(&rig.one(&line));
        // Our service does not have the examples' tools, prompts and resources; everything else must be served.
        let served = reply.get("result").is_some() || reply["method"] == "notifications/subscriptions/acknowledged";
        let cursor = line.contains("\"cursor\"");
        let named = ["Unknown tool", "Unknown prompt", "Resource not found", "needs a known ref"];
        let words = reply["error"]["message"].as_str().unwrap_or("");
        let unknown = reply["error"]["code"] == -32602 && (named.iter().any(|name| words.contains(name)) || cursor);
        assert!(served || unknown, "{}: {reply}", path.display());
    }
}

#[test]
fn what_a_server_sends() {
    for (definition, path, example) in examples() {
        if !SENT.contains(&definition.as_str()) {
            continue;
        }
        let expected = example.get("result").filter(|_| definition.ends_with("Response")).unwrap_or(&example).clone();
        let oracle = Oracle::new().without_is_error().with_unknown_members();
        let mut rig = Rig::new().judged_by(oracle).unjudged();
        rig.world.example = serde_json::to_string_pretty(&expected).unwrap();
        let reply = parse(&rig.one(&request(MODERN, 1, "demo/example", json!({}))));
        assert_eq!(unsigned(reply["result"].clone()), unsigned(expected), "{}", path.display());
    }
}

fn unsigned(mut result: Value) -> Value {
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("io.modelcontextprotocol/serverInfo");
        if meta.is_empty() {
            result.as_object_mut().unwrap().remove("_meta");
        }
    }
    result
}

#[test]
fn what_a_client_answers() {
    for (definition, path, example) in examples() {
        let Some((_, tool, key)) = ANSWERS.iter().find(|row| row.0 == definition) else { continue };
        let params = json!({"name": tool, "inputResponses": {*key: example}});
        let reply = Rig::new().one(&request(MODERN, 1, "tools/call", params));
        assert!(!text(&reply).is_empty(), "{}", path.display());
        assert_eq!(parse(&reply)["result"]["isError"], false);
        // The same answer to the request that older revisions send.
        let mut rig = Rig::new().opened("2025-11-25");
        let question = parse(&rig.one(&call("2025-11-25", 1, tool, json!({}))));
        let legacy = rig.one(&answer(&question["id"], example));
        assert_eq!(text(&legacy), text(&reply), "{}", path.display());
    }
}
