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

/// A client that goes away while it waits leaves its name there.
#[test]
fn a_journal_cuts_names_off() {
    let journal = Journal::new(Vec::new());
    let layers: [&dyn Layer<State>; 1] = [&journal];
    let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
    let mut talk = Conversation::new(&service, None);
    talk.open(Revision::LATEST);
    talk.call(&"é".repeat(2_000), &());
    assert_eq!(lines(&journal).pop().unwrap()["name"].as_str().unwrap().chars().count(), 1_024);
}

#[test]
fn a_journal_has_what_the_server_answers_and_sends() {
    let journal = Journal::new(Vec::new());
    let layers: [&dyn Layer<State>; 1] = [&journal];
    let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
    let service = service.feature(mcp_sansio::protocol::ServerCapability::ToolsChanged);
    let mut talk = Conversation::new(&service, None);
    talk.open(Revision::V2025_11_25);
    talk.publish(mcp_sansio::server::ServerChange::Tools);
    talk.request("ping", &serde_json::json!({}));
    let told: Vec<_> =
        lines(&journal).iter().map(|line| format!("{} {}", line["method"], line["outcome"]).replace('"', "")).collect();
    for line in [
        "initialize result",
        "notifications/initialized notified",
        "ping result",
        "notifications/tools/list_changed sent",
    ] {
        assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
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
        talk.wait(1_000);
        // `Conversation::call` would list the tools too.
        let call = serde_json::json!({"name": "show", "arguments": {}});
        for round in 0..2 {
            assert_eq!(talk.request("tools/call", &call).text(), "it", "{round}");
            assert_eq!(talk.request("tools/call", &call).text(), "it");
            assert_eq!(talk.request("tools/call", &call).error().map(|error| error.code), Some(-32603));
            assert!(
                talk.request("ping", &serde_json::json!({})).error().is_none(),
                "a ping passes, and does not count"
            );
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

#[test]
fn a_journal_of_a_client_has_the_requests_of_the_server() {
    use mcp_sansio::client::result::ClientResult;
    use mcp_sansio::client::{Client, ClientEvent, ClientInfo, Layer, Request};
    use mcp_sansio::protocol::ClientCapability;
    use mcp_sansio::sink::LineSink;

    let journal = Journal::new(Vec::new());
    let layers: [&dyn Layer; 1] = [&journal];
    let info = ClientInfo::new("test", "1").feature(ClientCapability::Roots).layers(&layers);
    let (mut client, mut out) = (Client::growing(&info), LineSink::new(Vec::new()));
    client.connect_as(Revision::V2026_07_28);
    let token = client.send(&Request::call("x"), &mut out).unwrap();
    let result = r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, client.wire_id(token).unwrap());
    let event = client.receive(answer.as_bytes(), &mut out).unwrap();
    let Some(ClientEvent::Asked(asked)) = event else { panic!("{event:?}") };
    let question = asked.questions().next().unwrap().id;
    client.reply(question, &ClientResult::roots(&[]), &mut out).unwrap();
    let told = lines(&journal).pop().unwrap();
    assert_eq!((told["method"].as_str(), told["outcome"].as_str()), (Some("roots/list"), Some("result")));
}

#[cfg(feature = "tracing")]
mod spans {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// The fields of all spans, and the ends of spans.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Visit for Kept {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.lock().unwrap().push(format!("{field}={value:?}"));
        }
    }

    impl Subscriber for Kept {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            span.record(&mut self.clone());
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, values: &Record<'_>) {
            values.record(&mut self.clone());
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}

        fn try_close(&self, _: Id) -> bool {
            self.0.lock().unwrap().push("closed".into());
            true
        }
    }

    #[test]
    fn a_span_has_the_names_of_the_conventions() {
        let kept = Kept::default();
        let seen = Arc::clone(&kept.0);
        tracing::subscriber::with_default(kept, || {
            let spans = mcp_sansio_host::layers::Spans::new();
            let layers: [&dyn Layer<State>; 1] = [&spans];
            let service = Service::new("test", "1").tools(&TOOLS).layers(&layers);
            let mut talk = Conversation::new(&service, None);
            talk.open(Revision::LATEST);
            let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let call = serde_json::json!({"name": "never", "_meta": {"traceparent": parent}});
            talk.request("tools/call", &call);
        });
        let seen = seen.lock().unwrap().join("\n");
        for field in [
            "otel.name=\"tools/call never\"",
            "mcp.method.name=\"tools/call\"",
            "mcp.protocol.version=\"2026-07-28\"",
            "gen_ai.operation.name=\"execute_tool\"",
            "gen_ai.tool.name=\"never\"",
            "error.type=\"-32602\"",
            "rpc.response.status_code=\"-32602\"",
            "closed",
        ] {
            assert!(seen.contains(field), "{field}: {seen}");
        }
    }

    #[test]
    fn a_span_of_a_client() {
        use mcp_sansio::client::{Client, ClientInfo, Layer, Request};
        use mcp_sansio::sink::LineSink;

        let kept = Kept::default();
        let seen = Arc::clone(&kept.0);
        tracing::subscriber::with_default(kept, || {
            let spans = mcp_sansio_host::layers::Spans::new();
            let layers: [&dyn Layer; 1] = [&spans];
            let info = ClientInfo::new("test", "1").layers(&layers);
            let (mut client, mut out) = (Client::growing(&info), LineSink::new(Vec::new()));
            client.connect_as(Revision::V2026_07_28);
            let token = client.send(&Request::read("x://it"), &mut out).unwrap();
            let answer = format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32602,"message":"no"}}}}"#,
                client.wire_id(token).unwrap()
            );
            client.receive(answer.as_bytes(), &mut out).unwrap();
            let token = client.send(&Request::call("x"), &mut out).unwrap();
            client.cancel(token, None, &mut out).unwrap();
        });
        let seen = seen.lock().unwrap();
        for field in [
            "otel.name=\"resources/read\"",
            "otel.kind=\"client\"",
            "mcp.resource.uri=\"x://it\"",
            "mcp.protocol.version=\"2026-07-28\"",
            "error.type=\"-32602\"",
            "otel.name=\"tools/call x\"",
        ] {
            assert!(seen.iter().any(|line| line == field), "{field}: {seen:?}");
        }
        assert_eq!(seen.iter().filter(|line| *line == "closed").count(), 2);
    }
}
