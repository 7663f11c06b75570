//! Late answers over HTTP: the channel and an endpoint without sockets.
#![cfg(feature = "http")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use mcp_sansio::FullError;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{
    MessageLimits, NotifyStatus, Progress, RequestToken, RespondError, RpcError, Server, ServerChange,
};
use mcp_sansio::service::{Call, CustomRequest, HandlerResult, Service, Tool};
use mcp_sansio::sink::{LineSink, Sink};
use mcp_sansio_host::{LateReceiver, LateSender, LateTarget, channel};
use mcp_sansio_http::endpoint::{
    App, Endpoint, EndpointConfig, EndpointLimits, Fleet, RequestHead, ResponseBody, StreamId, StreamStatus,
};
use serde_json::{Value, json};

type Tokens = Vec<RequestToken>;

fn later(tokens: &mut Tokens, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    tokens.push(token);
    outcome
}

fn suspend(tokens: &mut Tokens, call: &mut Call<'_>) -> HandlerResult {
    if call.is_resumed() {
        return call.text(format_args!("resumed with {}", tokens.len()));
    }
    let (token, outcome) = call.suspend(b"")?;
    tokens.push(token);
    Ok(outcome)
}

fn other(tokens: &mut Tokens, other: &mut CustomRequest<'_>) -> HandlerResult {
    let (token, outcome) = other.later();
    tokens.push(token);
    outcome
}

static TOOLS: [Tool<Tokens>; 2] = [Tool::new("later", "Later", later), Tool::new("suspend", "Runs again", suspend)];

/// The output of a stream.
struct Taken(Vec<u8>);

impl Sink for Taken {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        1 << 20
    }
}

/// An endpoint, and the channel to it.
struct Web {
    endpoint: Endpoint<'static>,
    service: Service<'static, Tokens>,
    tokens: Tokens,
    late: LateSender<Tokens>,
    receiver: LateReceiver<Tokens>,
}

impl Web {
    fn new(limits: EndpointLimits) -> Self {
        let service = Service::new("late", "1").tools(&TOOLS).other(other).feature(ServerCapability::Logging);
        let (late, receiver) = channel();
        Web {
            endpoint: Endpoint::growing(EndpointConfig::DEFAULT, Server::growing(MessageLimits::default()), limits),
            service: service.contain_panics(|run| catch_unwind(AssertUnwindSafe(run)).is_ok()),
            tokens: Tokens::new(),
            late,
            receiver,
        }
    }

    /// Sends a request that is put off. Returns its token and its stream.
    fn request(&mut self, method: &str, tool: &str) -> (RequestToken, StreamId) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "debug", "progressToken": 7,
        });
        let params = if tool.is_empty() { json!({"_meta": meta}) } else { json!({"name": tool, "_meta": meta}) };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut headers: Vec<(&str, &[u8])> = vec![
            ("host", b"localhost"),
            ("content-type", b"application/json"),
            ("accept", b"application/json, text/event-stream"),
            ("mcp-protocol-version", b"2026-07-28"),
            ("mcp-method", method.as_bytes()),
        ];
        if !tool.is_empty() {
            headers.push(("mcp-name", tool.as_bytes()));
        }
        let headers = &headers[..];
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let mut out = LineSink::new(Vec::new());
        let mut app = App::new(&self.service, &mut self.tokens);
        let response = self.endpoint.request(&mut app, &head, body.as_bytes(), 0, &mut |bytes| bytes.fill(7), &mut out);
        let ResponseBody::Stream(stream) = response.content else {
            panic!("{}: {}", response.status, String::from_utf8_lossy(out.pending()));
        };
        (*self.tokens.last().unwrap(), stream)
    }

    /// Gives what was sent to the endpoint. Returns whether all has gone.
    fn give(&mut self) -> bool {
        assert!(!self.receiver.give(&mut self.endpoint, &self.service, &mut self.tokens));
        self.receiver.is_empty()
    }

    /// Returns the messages of a stream, and whether that was its end.
    fn messages(&mut self, stream: StreamId) -> (Vec<Value>, bool) {
        let mut taken = Taken(Vec::new());
        let status = self.endpoint.pull(stream, &mut App::new(&self.service, &mut self.tokens), 0, &mut taken);
        let text = String::from_utf8(taken.0).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let messages = data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap());
        (messages.collect(), status == StreamStatus::End)
    }

    /// Returns the only message of a stream, which ends with it.
    fn answer(&mut self, stream: StreamId) -> Value {
        assert!(self.give());
        let (mut messages, ends) = self.messages(stream);
        assert!(ends && messages.len() == 1, "{messages:?}");
        messages.remove(0)
    }
}

#[test]
fn an_endpoint_takes_each_message() {
    let mut web = Web::new(EndpointLimits::default());
    let late = web.late.clone();
    let (token, stream) = web.request("tools/call", "later");
    late.progress(token, Progress::new(1).of(2)).unwrap();
    late.log(token, LoggingLevel::Error, "of a request").unwrap();
    assert!(web.give());
    let (messages, ends) = web.messages(stream);
    assert_eq!((messages[0]["params"]["total"].as_u64(), messages.len(), ends), (Some(2), 2, false));
    assert_eq!(messages[1]["params"]["data"], "of a request");
    late.answer(token, |_, call| call.text("at last")).unwrap();
    assert_eq!(web.answer(stream)["result"]["content"][0]["text"], "at last");
    let (token, stream) = web.request("demo/other", "");
    late.answer(token.as_custom(), |_, other| other.result(Raw::constant(r#"{"a":1}"#))).unwrap();
    assert_eq!(web.answer(stream)["result"]["a"], 1);
    let (token, stream) = web.request("tools/call", "later");
    late.fail(token, &RpcError::new(-31000, "no")).unwrap();
    let error = &web.answer(stream)["error"];
    assert_eq!((error["code"].as_i64(), error["message"].as_str()), (Some(-31000), Some("no")));
    // They are over: nothing is sent for them.
    late.fail(token, &RpcError::new(-31000, "no")).unwrap();
    late.answer(token, |_, _| panic!("it must not run")).unwrap();
    assert!(web.give() && web.messages(stream).0.is_empty());
}

#[test]
fn an_endpoint_resumes_what_was_suspended() {
    let mut web = Web::new(EndpointLimits::default());
    let late = web.late.clone();
    let (token, stream) = web.request("tools/call", "suspend");
    late.resume(token, |tokens| tokens.clear()).unwrap();
    assert_eq!(web.answer(stream)["result"]["content"][0]["text"], "resumed with 0");
    // It is put off, not suspended.
    let (token, stream) = web.request("tools/call", "later");
    late.resume(token, |_| panic!("it must not run")).unwrap();
    let error = &web.answer(stream)["error"];
    assert!(error["message"].as_str().unwrap().contains("of another kind"), "{error}");
    let (token, stream) = web.request("tools/call", "suspend");
    late.resume(token, |_| panic!("as it should")).unwrap();
    let error = &web.answer(stream)["error"];
    assert!(error["message"].as_str().unwrap().contains("panicked"), "{error}");
}

/// The other processes: they keep each change that is published.
#[derive(Debug)]
struct Others(mpsc::Sender<String>);

impl Fleet for Others {
    fn publish(&mut self, to: Option<&str>, change: ServerChange<'_>) {
        let to = to.map_or_else(String::new, |principal| format!("{principal} "));
        self.0.send(format!("{to}{change:?}")).unwrap();
    }

    fn end_session(&mut self, _: &[u8; 16], _: u64) {}
}

/// A change of another process is not published again.
#[test]
fn changes_of_other_processes_stay_here() {
    let mut web = Web::new(EndpointLimits::default());
    let (sender, told) = mpsc::channel();
    web.endpoint = web.endpoint.fleet(Box::leak(Box::new(Others(sender))));
    web.late.publish_here(None, ServerChange::Prompts).unwrap();
    web.late.publish_here(Some("ann"), ServerChange::Prompts).unwrap();
    web.late.end_session_here(b"0123456789abcdef", u64::MAX).unwrap();
    web.late.publish(ServerChange::Tools).unwrap();
    assert!(web.give());
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["Tools"]);
}

/// Half of a stream is kept for notifications, so an answer waits while its client has more than that to read.
#[test]
fn an_answer_waits_while_less_than_half_of_its_stream_is_free() {
    let mut web = Web::new(EndpointLimits::default().stream(8 << 10));
    let (token, stream) = web.request("tools/call", "later");
    let sizes = |web: &mut Web| web.endpoint.with_stream_of(token, |_, out| (out.room(), out.capacity())).unwrap();
    let is_crowded = |web: &mut Web| LateTarget::<Tokens>::is_crowded(&mut web.endpoint, token);
    let say = |web: &mut Web, done: u32, size: usize| {
        web.late.progress(token, Progress::new(done).message(&"x".repeat(size))).unwrap();
        assert!(web.give());
    };
    let (before, capacity) = sizes(&mut web);
    say(&mut web, 1, 1);
    let head = before - sizes(&mut web).0 - 1;
    let left = sizes(&mut web).0 - capacity / 2;
    say(&mut web, 2, left - head);
    assert_eq!(sizes(&mut web).0, capacity / 2);
    assert!(!is_crowded(&mut web));
    say(&mut web, 3, 1);
    assert!(is_crowded(&mut web));
    web.late.answer(token, |_, call| call.text("at last")).unwrap();
    assert!(!web.give(), "it waits");
    let (messages, ends) = web.messages(stream);
    assert!(messages.len() == 3 && !ends, "{messages:?}");
    assert_eq!(web.answer(stream)["result"]["content"][0]["text"], "at last");
    // A stream that is gone is no reason to wait.
    assert!(!is_crowded(&mut web));
}

/// Two endpoints with the same requests: answers with a token of the other endpoint are dropped.
#[test]
fn an_endpoint_refuses_the_tokens_of_another_one() {
    let [mut web, mut other] = [(); 2].map(|()| Web::new(EndpointLimits::default()));
    let ours =
        [web.request("tools/call", "later"), web.request("demo/other", ""), web.request("tools/call", "suspend")];
    let theirs = [("tools/call", "later"), ("demo/other", ""), ("tools/call", "suspend")]
        .map(|(method, tool)| other.request(method, tool).0);
    for ((token, _), other) in ours.iter().zip(theirs) {
        assert_ne!(*token, other);
        // Through the endpoint.
        let app = &mut App::new(&web.service, &mut web.tokens);
        let endpoint = &mut web.endpoint;
        let never = |_: &mut Tokens, _: &mut Call<'_>| panic!("it must not run");
        assert_eq!(endpoint.answer(app, other, never), Err(RespondError::Stale));
        assert_eq!(endpoint.answer(app, other.as_read("a://b"), |_, _| panic!("no")), Err(RespondError::Stale));
        assert_eq!(endpoint.answer(app, other.as_prompt(), |_, _| panic!("no")), Err(RespondError::Stale));
        assert_eq!(endpoint.answer(app, other.as_completion(""), |_, _| panic!("no")), Err(RespondError::Stale));
        assert_eq!(endpoint.answer(app, other.as_custom(), |_, _| panic!("no")), Err(RespondError::Stale));
        assert_eq!(endpoint.resume(app, other), Err(RespondError::Stale));
        assert_eq!(endpoint.progress(other, Progress::new(1)), NotifyStatus::Stale);
        assert_eq!(endpoint.log(app, Some(other), LoggingLevel::Error, None, "no"), NotifyStatus::Stale);
        assert!(!endpoint.is_suspended(other) && endpoint.stream_of(other).is_none());
        assert!(endpoint.with_stream_of(other, |_, _| ()).is_none());
        // Through the channel.
        let late = web.late.clone();
        late.progress(other, Progress::new(1)).unwrap();
        late.log(other, LoggingLevel::Error, "no").unwrap();
        late.answer(other, never).unwrap();
        late.answer(other.as_read("a://b"), |_, _| panic!("no")).unwrap();
        late.answer(other.as_prompt(), |_, _| panic!("no")).unwrap();
        late.answer(other.as_completion(""), |_, _| panic!("no")).unwrap();
        late.answer(other.as_custom(), |_, _| panic!("no")).unwrap();
        late.resume(other, |_| panic!("no")).unwrap();
        late.fail(other, &RpcError::internal("no")).unwrap();
        assert!(web.give());
    }
    for (_, stream) in ours {
        assert_eq!(web.messages(stream), (vec![], false));
    }
    web.late.answer(ours[0].0, |_, call| call.text("ours")).unwrap();
    assert_eq!(web.answer(ours[0].1)["result"]["content"][0]["text"], "ours");
}
