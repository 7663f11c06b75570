//! The layers of a client.

use std::sync::Mutex;

use crate::desk::{Desk, FULL, LEGACY, OFFERS, PLAIN, everywhere};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{
    ClientInfo, Layer, LayerRequest, PendingId, Request, RequestError, SendError, ServerRequest, ServerRequestId,
    SubscriptionFilter, TransportError,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{FullError, Sink};

/// A layer with a name, which notes what it gets, and does to a tool what its name says.
struct Noting(&'static str, Mutex<Vec<String>>);

impl Noting {
    fn leaked(name: &'static str) -> &'static Noting {
        Box::leak(Box::new(Noting(name, Mutex::default())))
    }

    fn note(&self, text: String) {
        self.1.lock().unwrap().push(format!("{} {text}", self.0));
    }

    /// Returns whether it replaces the params of a notification.
    fn is_silent(&self, method: &str) -> bool {
        self.0 == "silent" && method != "notifications/cancelled"
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.1.lock().unwrap())
    }
}

impl Layer for Noting {
    fn request(&self, request: &mut LayerRequest<'_>) -> bool {
        let named = |name: &str| {
            let mut out = mcp_sansio::sink::LineSink::new(Vec::new());
            mcp_sansio::sink::whole(&mut out, mcp_sansio::sink::MessageHead::Notification, |out| {
                request.text("name", out);
            })
            .unwrap();
            out.pending() == format!("\"{name}\"\n").as_bytes()
        };
        let (replaces, ends) = (named("replace"), named("refuse") || named("answer"));
        self.note(format!("{} by the application {}", request.method, request.request().is_some()));
        if let Some(old) = request.request().copied().filter(|_| replaces) {
            request.replace(old.meta(Raw::constant(r#"{"test/layer":1}"#)));
        }
        !(ends || self.0 == "closed" && request.method != "tools/call")
    }

    fn answer(&self, token: PendingId) -> Result<Raw<'static>, RpcError<'static>> {
        self.note("answers".into());
        match token.to_bits() % 2 {
            0 => Ok(Raw::constant(r#"{"content":[]}"#)),
            _ => Err(RpcError::new(-31000, "Not now")),
        }
    }

    fn outcome<'a>(&self, _: PendingId, outcome: &mut Result<Raw<'a>, RequestError<'a>>, now: Millis) {
        self.note(match outcome {
            Ok(_) => format!("result at {now}"),
            Err(error) => format!("failed at {now}: {error}"),
        });
        if let Ok(result) = outcome
            && let Some(inner) = result.get("replaced")
        {
            *outcome = Ok(inner);
        }
    }

    fn dropped(&self, _: PendingId, cancelled: bool, _: Millis) {
        self.note(format!("dropped {cancelled}"));
    }

    fn notification(&self, method: Text<'_>, params: Option<Raw<'_>>, _: Millis) -> bool {
        self.note(format!("notification {method} {}", params.is_some()));
        !method.eq_str("notifications/drop")
    }

    fn writes(&self, method: &str, piece: &[u8], out: &mut dyn Sink) -> Result<(), FullError> {
        if self.is_silent(method) { Ok(()) } else { out.put(piece) }
    }

    fn sends(&self, method: &str, _: Millis, out: &mut dyn Sink) -> bool {
        self.note(format!("sends {method}"));
        if method == "notifications/drop" {
            return false;
        }
        !self.is_silent(method) || out.put(br#"{"_meta":{"own/own":1}}"#).is_ok()
    }
}

fn layered(layers: [&'static Noting; 2]) -> &'static ClientInfo<'static> {
    let layers: &'static [&'static dyn Layer; 2] = Box::leak(Box::new(layers.map(|layer| layer as &dyn Layer)));
    Box::leak(Box::new(PLAIN.layers(layers)))
}

fn pair() -> (&'static ClientInfo<'static>, &'static Noting, &'static Noting) {
    let (first, second) = (Noting::leaked("first"), Noting::leaked("second"));
    (layered([first, second]), first, second)
}

fn only(seen: Vec<String>) -> Vec<String> {
    seen.into_iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn the_way_out_and_back_in_every_revision() {
    for revision in Revision::ALL {
        let (info, first, second) = pair();
        let mut desk = match revision.is_modern() {
            true => Desk::modern(info),
            false => Desk::legacy(info, revision),
        };
        let method = if revision.is_modern() { "server/discover" } else { "initialize" };
        let seen = only(first.take());
        assert_eq!(seen[..2], [format!("{method} by the application false"), "result at 0".into()], "{revision}");
        assert_eq!(
            seen[2..].first().map(String::as_str),
            (!revision.is_modern()).then_some("sends notifications/initialized")
        );
        second.take();
        desk.set_clock(5);
        desk.send(&Request::call("x"));
        desk.result(r#"{"content":[],"resultType":"complete"}"#);
        assert_eq!(only(first.take()), ["tools/call by the application true", "result at 5"]);
        assert_eq!(only(second.take()).len(), 2);
        desk.send(&Request::call("x"));
        desk.error(-32602, "");
        assert_eq!(only(first.take())[1], "failed at 5: no (-32602)");
        desk.send(&Request::call("x").timeout(10));
        desk.wait(20);
        let over = ["sends notifications/cancelled", "failed at 25: the request took too long"];
        assert_eq!(only(first.take())[1..], over);
        desk.forget();
        let token = desk.send(&Request::call("x"));
        desk.cancel(token).unwrap();
        assert_eq!(only(first.take())[1..], ["sends notifications/cancelled", "dropped true"]);
        let token = desk.with(|client, _| client.listen(&SubscriptionFilter::new().tools())).unwrap();
        desk.cancel(token).unwrap();
        let seen = only(first.take());
        assert_eq!(
            (&*seen[0], seen.last().unwrap().as_str()),
            ("subscriptions/listen by the application false", "dropped true")
        );
    }
}

#[test]
fn a_layer_ends_the_way_of_a_request() {
    for revision in Revision::ALL {
        let (info, first, second) = pair();
        let mut desk = match revision.is_modern() {
            true => Desk::modern(info),
            false => Desk::legacy(info, revision),
        };
        first.take();
        second.take();
        for _ in 0..2 {
            let token = desk.send(&Request::call("answer"));
            assert!(desk.client().is_open(token));
            desk.pump();
            let expected = match token.to_bits() % 2 {
                0 => r#"tools/call ok {"content":[]}"#,
                _ => "tools/call failed: Not now (-31000)",
            };
            assert_eq!((desk.event(), desk.said()), (expected.to_owned(), vec![]));
            assert!(!desk.client().is_open(token));
            assert_eq!(only(first.take())[..2], ["tools/call by the application true", "answers"]);
            assert_eq!(second.take().len(), 1, "it gets the outcome alone");
        }
        // One that is cancelled or lost before it was reported.
        let token = desk.send(&Request::call("refuse"));
        desk.cancel(token).unwrap();
        desk.quiet();
        desk.send(&Request::call("refuse"));
        desk.client().end_of_input();
        desk.pump();
        assert!(desk.events().contains(&format!("tools/call failed: {}", TransportError::Closed)));
    }
}

#[test]
fn an_opening_and_a_listen_can_be_refused() {
    let closed = Noting::leaked("closed");
    let mut desk = Desk::new(layered([Noting::leaked("first"), closed]));
    desk.client().connect();
    desk.pump();
    assert_eq!(desk.event(), format!("unconnected: {}", TransportError::Refused));
    assert_eq!(desk.said(), Vec::<serde_json::Value>::new());
    desk.client().connect_as(Revision::V2026_07_28);
    let token = desk.with(|client, _| client.listen(&SubscriptionFilter::new().tools())).unwrap();
    assert!(!desk.client().is_open(token));
    assert!(desk.event().starts_with("subscriptions/listen "));
}

#[test]
fn requests_and_results_are_replaced_and_notifications_dropped() {
    everywhere(|| {
        let (info, first, _) = pair();
        let mut desk = Desk::modern(info);
        desk.send(&Request::call("replace").meta(Raw::constant(r#"{"own":1}"#)));
        let said = desk.one();
        assert_eq!(
            (&said["params"]["_meta"]["test/layer"], &said["params"]["_meta"]["own"]),
            (&1.into(), &serde_json::Value::Null)
        );
        desk.result(r#"{"replaced":{"content":[]},"resultType":"complete"}"#);
        assert_eq!(desk.event(), r#"tools/call ok {"content":[]}"#);
        first.take();
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/drop"}"#);
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/pass","params":{}}"#);
        assert_eq!(desk.event(), "notification notifications/pass");
        assert_eq!(
            only(first.take()),
            ["notification notifications/drop false", "notification notifications/pass true"]
        );
        desk
    });
}

/// What is sent again is one request for the layers, and a probe without an answer is another than `initialize`.
#[test]
fn retries_and_fallbacks() {
    let (info, first, _) = pair();
    let mut desk = Desk::new(info);
    desk.client().connect();
    desk.pump();
    desk.wait(5_000);
    let silence = format!("failed at 5000: {}", TransportError::TimedOut);
    let opening = ["server/discover by the application false", &silence, "initialize by the application false"];
    assert_eq!(only(first.take()), opening);
    desk.initialized(LEGACY[3].date(), OFFERS);
    assert_eq!(only(first.take()), ["result at 5000", "sends notifications/initialized"]);
    let mut desk = Desk::modern(info);
    first.take();
    desk.send(&Request::call("x"));
    desk.result(r#"{"resultType":"input_required","requestState":"s"}"#);
    desk.result(r#"{"content":[],"resultType":"complete"}"#);
    assert_eq!(only(first.take()), ["tools/call by the application true", "result at 0"]);
}

#[test]
fn notifications_of_the_client_are_replaced_and_dropped() {
    for revision in Revision::ALL {
        let silent = Noting::leaked("silent");
        let info = layered([Noting::leaked("first"), silent]);
        let mut desk = if revision.is_modern() { Desk::modern(info) } else { Desk::legacy(info, revision) };
        let own = serde_json::json!({"_meta": {"own/own": 1}});
        assert!(desk.said().iter().all(|line| line["method"] != "notifications/initialized" || line["params"] == own));
        for method in ["notifications/drop", "notifications/other"] {
            desk.with(|client, out| client.notify(method, Some(Raw::constant(r#"{"a":{"b":2}}"#)), out)).unwrap();
        }
        desk.with(|client, out| client.notify("notifications/none", None, out)).unwrap();
        let said: Vec<_> = desk.said().iter().map(|line| format!("{} {}", line["method"], line["params"])).collect();
        assert_eq!(said, [format!(r#""notifications/other" {own}"#), format!(r#""notifications/none" {own}"#)]);
        let token = desk.send(&Request::call("x"));
        desk.said();
        desk.cancel(token).unwrap();
        assert!(desk.one()["params"]["requestId"].is_u64());
    }
}

/// Refuses, answers or passes the requests of the server, as its name says.
struct Asking(&'static str, Mutex<Vec<String>>);

impl Layer for Asking {
    fn question(&self, question: &ServerRequest<'_>, _: Millis) -> Result<(), RpcError<'static>> {
        self.1.lock().unwrap().push(format!("{:?}", question.kind));
        if self.0 == "passes" { Ok(()) } else { Err(RpcError::new(-31000, "Not here")) }
    }

    fn answered<'a>(&self, _: ServerRequestId, answer: &mut Result<ClientResult<'a>, RpcError<'a>>, _: Millis) {
        self.1.lock().unwrap().push(match answer {
            Ok(_) => "answered".into(),
            Err(error) => error.code.to_string(),
        });
        match self.0 {
            "answers" => *answer = Ok(ClientResult::decline()),
            "passes" if answer.is_ok() => *answer = Ok(ClientResult::cancel()),
            _ => {}
        }
    }
}

fn asking(name: &'static str) -> (&'static ClientInfo<'static>, &'static Asking) {
    let layer: &'static Asking = Box::leak(Box::new(Asking(name, Mutex::default())));
    let layers: &'static [&'static dyn Layer; 1] = Box::leak(Box::new([layer as &dyn Layer]));
    (Box::leak(Box::new(FULL.layers(layers))), layer)
}

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

#[test]
fn requests_of_the_server_pass_the_layers() {
    for (name, answer) in [
        ("refuses", r#"{"code":-31000,"message":"Not here"}"#),
        ("answers", r#"{"action":"decline"}"#),
        ("passes", r#"{"action":"cancel"}"#),
    ] {
        let (info, layer) = asking(name);
        let mut desk = Desk::legacy(info, Revision::V2025_11_25);
        desk.said();
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{FORM}}}"#));
        if name == "passes" {
            assert_eq!(desk.event(), "asked [Form]");
            let question = desk.asked[0].0;
            desk.reply(question, &ClientResult::decline()).unwrap();
            assert_eq!(desk.reply(question, &ClientResult::decline()), Err(SendError::Stale));
        }
        let said = desk.one();
        let told = if name == "refuses" { &said["error"] } else { &said["result"] };
        assert_eq!(told, &serde_json::from_str::<serde_json::Value>(answer).unwrap(), "{said}");
        let code = if name == "passes" { "answered" } else { "-31000" };
        assert_eq!(*layer.1.lock().unwrap(), ["Form", code]);
        desk.quiet();
    }
}

#[test]
fn input_requests_pass_the_layers() {
    for (name, action) in [("refuses", "decline"), ("answers", "decline"), ("passes", "cancel")] {
        let (info, layer) = asking(name);
        let mut desk = Desk::modern(info);
        desk.send(&Request::call("x"));
        desk.said();
        let form = format!(r#"{{"method":"elicitation/create","params":{FORM}}}"#);
        desk.result(&format!(r#"{{"resultType":"input_required","inputRequests":{{"a":{form},"b":{form}}}}}"#));
        if name == "passes" {
            assert_eq!(desk.event(), "asked [Form, Form]");
            for (question, _) in desk.asked.clone() {
                desk.reply(question, &ClientResult::decline()).unwrap();
            }
        }
        let said = desk.one();
        for key in ["a", "b"] {
            assert_eq!(said["params"]["inputResponses"][key]["action"], action, "{name}: {said}");
        }
        let code = if name == "passes" { "answered" } else { "-31000" };
        let seen = layer.1.lock().unwrap();
        assert_eq!((&seen[0], seen.iter().filter(|seen| *seen == code).count()), (&"Form".to_owned(), 2), "{seen:?}");
    }
    // What cannot be declined ends the request.
    let (info, _) = asking("refuses");
    let mut desk = Desk::modern(info);
    desk.send(&Request::call("x"));
    desk.said();
    desk.result(r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#);
    desk.pump();
    assert_eq!(desk.event(), format!("tools/call failed: {}", TransportError::Refused));
}
