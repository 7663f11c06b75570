//! The official schemas, present and missing.

mod common;
use common::*;
use mcp_sansio_test_support::{Oracle, Revision, spec_dir, spec_examples};
use std::path::Path;

#[test]
fn without_schemas_the_skips_are_counted() {
    let oracle = Oracle::with_schemas_in(Path::new("/nowhere"));
    assert!(!oracle.schemas_present());
    // The types accept it; only the schema knows that this is no URI.
    let list = br#"{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"no uri","name":"x"}]}}"#;
    good(oracle.server_sends(C, Some("resources/list"), list));
    assert_eq!(oracle.skipped(), 1);
    bad(oracle.server_sends(C, Some("tools/call"), list), "rust-mcp-schema");
    assert_eq!(oracle.skipped(), 2);
}

/// Without the specification beside the clone this is skipped, unless `MCP_SPEC_REQUIRED` is 1.
#[test]
fn with_schemas_nothing_is_skipped() {
    let oracle = Oracle::new();
    if !spec_dir().is_dir() {
        return;
    }
    assert!(oracle.schemas_present());
    good(oracle.client_sends(C, None, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
    assert_eq!(oracle.skipped(), 0);
    // The types accept it; only the schema knows that this is no URI.
    let list = br#"{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"no uri","name":"x"}]}}"#;
    bad(oracle.server_sends(C, Some("resources/list"), list), "schema");
}

/// Where the specification is required and missing, the tests that need it fail: those that judge messages, and those
/// that read its examples.
#[test]
fn what_is_required_is_not_skipped() {
    if std::env::var_os("MCP_SPEC_REQUIRED_TEST").is_some() {
        assert!(std::panic::catch_unwind(Oracle::new).is_err());
        assert!(std::panic::catch_unwind(|| spec_examples(E)).is_err());
        // A directory that a test names itself may be missing.
        assert!(!Oracle::with_schemas_in(Path::new("/nowhere")).schemas_present());
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "what_is_required_is_not_skipped"]);
    again.env("MCP_SPEC_REQUIRED_TEST", "1").env("MCP_SPEC_REQUIRED", "1").env("MCP_SPEC_DIR", "/nowhere/at/all");
    let done = again.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn revisions_have_names() {
    let names: Vec<_> = Revision::ALL.iter().map(|r| r.name()).collect();
    assert_eq!(names, ALL);
    assert_eq!(Revision::parse(C), Ok(Revision::C));
}

#[test]
fn official_examples_fit_their_definitions() {
    let oracle = Oracle::new();
    let examples = spec_examples(E);
    assert_eq!(examples.is_empty(), !oracle.schemas_present());
    for (definition, path, value) in &examples {
        if let Err(wrong) = oracle.definition(E, definition, value) {
            panic!("{}: {wrong}", path.display());
        }
    }
    assert!(spec_examples(A).is_empty());
}

/// The examples that are whole messages of a client pass the whole oracle.
#[test]
fn official_requests_pass() {
    let oracle = Oracle::new();
    let requests =
        spec_examples(E).into_iter().filter(|(_, _, value)| value["jsonrpc"] == "2.0" && value["method"].is_string());
    for (definition, path, value) in requests {
        let line = value.to_string();
        let judge = if is_of_server(&definition) { Oracle::server_sends } else { Oracle::client_sends };
        if let Err(wrong) = judge(&oracle, E, None, line.as_bytes()) {
            panic!("{}: {wrong}", path.display());
        }
    }
}

fn is_of_server(definition: &str) -> bool {
    definition.ends_with("Notification") && definition != "CancelledNotification"
}

/// An official example that its own schema refuses: complete, but without the members for caching.
const UNCACHED: &str = "ReadResourceResultResponse/read-resource-result-response.json";

/// The examples that are whole answers of a server pass the whole oracle, except two things that the pages only
/// recommend (SHOULD) and the project always does: server info and `isError`.
#[test]
fn official_answers_pass() {
    let oracle = Oracle::new().without_server_info().without_is_error();
    for (definition, path, value) in spec_examples(E) {
        if path.ends_with(UNCACHED) {
            continue;
        }
        let method = match definition.as_str() {
            "CallToolResultResponse" => "tools/call",
            "CompleteResultResponse" => "completion/complete",
            "DiscoverResultResponse" => "server/discover",
            "GetPromptResultResponse" => "prompts/get",
            "ListPromptsResultResponse" => "prompts/list",
            "ListResourceTemplatesResultResponse" => "resources/templates/list",
            "ListResourcesResultResponse" => "resources/list",
            "ListToolsResultResponse" => "tools/list",
            "ReadResourceResultResponse" => "resources/read",
            "SubscriptionsListenResultResponse" => "subscriptions/listen",
            _ => continue,
        };
        if let Err(wrong) = oracle.server_sends(E, Some(method), value.to_string().as_bytes()) {
            panic!("{}: {wrong}", path.display());
        }
    }
}
