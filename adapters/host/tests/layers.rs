//! The layers of hosts: a journal, a switch, limits.

use std::collections::BTreeMap;

use mcp_sansio::revision::Revision;
use mcp_sansio::server::RequestToken;
use mcp_sansio::service::{Layer, Service, Tool, ToolAnnotations};
use mcp_sansio_host::layers::{Journal, RateLimit, ReadOnly, Timeout};
use mcp_sansio_host::testing::Conversation;

type State = Option<RequestToken>;

static TOOLS: [Tool<State>; 3] = [
    Tool::new("show", "Shows it", |_, call| call.text("it")).hints(ToolAnnotations::new().read_only(true)),
    Tool::new("change", "Changes it", |_, call| call.text("changed")),
    Tool::new("later", "Answers later", |token, call| {
        let (own, done) = call.later();
        *token = Some(own);
        done
    })
    .hints(ToolAnnotations::new().read_only(true)),
];

/// Returns the lines of a journal without their braces, each as its members.
fn lines(journal: &Journal<Vec<u8>>) -> Vec<BTreeMap<String, serde_json::Value>> {
    let text = journal.with(|lines| String::from_utf8(lines.clone()).unwrap());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_journal_has_a_line_for_each_outcome() {
    for revision in Revision::ALL {
        let journal = Journal::new(Vec::new());
        let layers: [&dyn Layer<State>; 1] = [&journal];
        let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
        let mut talk = Conversation::new(&service, None);
        talk.open(revision);
        let before = lines(&journal).len();
        talk.call("show", &());
        assert!(talk.call("never", &()).error().is_some());
        assert!(talk.call("later", &()).is_pending());
        talk.wait(20);
        let token = talk.state().take().unwrap();
        let _ = talk.answer(token, |_, call| call.error("no \"luck\""));
        let mut seen = lines(&journal).split_off(before);
        seen.retain(|line| line["method"] == "tools/call");
        let told: Vec<_> = seen.iter().map(|line| (line["name"].as_str(), line["outcome"].as_str())).collect();
        let expected = [("show", "result"), ("never", "error"), ("later", "toolError")];
        assert_eq!(told, expected.map(|(name, outcome)| (Some(name), Some(outcome))), "{revision:?}");
        assert_eq!((&seen[1]["code"], &seen[2]["millis"]), (&serde_json::json!(-32602), &serde_json::json!(20)));
        assert!(seen.iter().all(|line| !line.contains_key("who")));
    }
}

#[test]
fn a_switch_lets_only_pass_what_reads() {
    let reads = ReadOnly::new();
    let layers: [&dyn Layer<State>; 1] = [&reads];
    let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
    let mut talk = Conversation::new(&service, None);
    talk.open(Revision::LATEST);
    assert_eq!(talk.call("show", &()).text(), "it");
    assert!(talk.call("change", &()).is_error());
    assert!(talk.call("never", &()).error().is_some(), "unknown, as without it");
    reads.set(false);
    assert_eq!(talk.call("change", &()).text(), "changed");
}

#[test]
fn a_limit_of_requests_has_an_end() {
    for (share, total) in [(2, 9), (9, 2)] {
        let limit = RateLimit::new(share, total, 1_000);
        let layers: [&dyn Layer<State>; 1] = [&limit];
        let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
        let mut talk = Conversation::new(&service, None);
        talk.open(Revision::V2025_11_25);
        // `Conversation::call` would list the tools too.
        let call = serde_json::json!({"name": "show", "arguments": {}});
        for round in 0..2 {
            assert_eq!(talk.request("tools/call", &call).text(), "it", "{round}");
            assert_eq!(talk.request("tools/call", &call).text(), "it");
            assert_eq!(talk.request("tools/call", &call).error().map(|error| error.code), Some(-32603));
            talk.wait(1_000);
        }
    }
}

#[test]
fn an_answer_that_takes_too_long_is_an_error() {
    let (late, mut receiver) = mcp_sansio_host::channel();
    let timeout = Timeout::new(late, 100);
    let layers: [&dyn Layer<State>; 1] = [&timeout];
    let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
    let mut talk = Conversation::new(&service, None);
    talk.open(Revision::LATEST);
    talk.call("show", &());
    assert_eq!(timeout.next_deadline(), None);
    let pending = talk.call("later", &());
    assert!(pending.is_pending());
    assert_eq!(timeout.next_deadline(), Some(100));
    timeout.expire(99);
    assert_eq!(timeout.next_deadline(), Some(100));
    timeout.expire(100);
    assert_eq!(timeout.next_deadline(), None);
    let failed = talk.hear(&mut receiver, std::time::Duration::from_secs(5));
    assert!(failed.iter().any(|line| line.contains("-32603") && line.contains("too long")), "{failed:?}");
}
