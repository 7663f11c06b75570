//! Layers: what stands around the handlers of a service.
mod common;

use std::sync::Mutex;

use common::{MODERN, REVISIONS, Value, call, initialize, is_modern, json, notify, parse, request};
use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Millis, RequestToken, RpcError, Server};
use mcp_sansio::service::{
    Call, Dispatched, HandlerError, HandlerResult, Layer, LayerRequest, MessageSource, NotificationContext, Outcome,
    Receipt, Resource, Service, Tool, ToolAnnotations, Visibility,
};
use mcp_sansio::sink::{LineSink, SliceStorage};

/// What the layers and the handlers have seen, and the token of the call of `later`.
#[derive(Default)]
struct Seen {
    told: Vec<String>,
    waiting: Option<RequestToken>,
}

impl Seen {
    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

/// A layer with a name, which refuses, answers and replaces what it is told.
struct Named(&'static str);

impl Layer<Seen> for Named {
    fn request(&self, seen: &mut Seen, request: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
        let name = request.name().map(|name| name.to_string()).unwrap_or_default();
        let reads = request.tool_hints().and_then(|hints| hints.read_only);
        seen.told.push(format!("{} {} {name} {reads:?}", self.0, request.method()));
        let own = |name: &str| request.arguments().get("do").and_then(|it| it.text()).is_some_and(|it| it.eq_str(name));
        let (refuses, answers, replaces) = (own("refuse"), own("answer"), own("replace"));
        match self.0 {
            "first" if refuses => Err(RpcError::new(-31000, "Not now").into()),
            "first" if answers => request.result(Raw::constant(r#"{"content":[],"isError":false}"#)),
            "first" if replaces => {
                request.replace_params(Raw::constant(r#"{"name":"echo","arguments":{"do":"replaced"}}"#));
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn outcome(&self, seen: &mut Seen, _: RequestToken, outcome: Outcome, now: Millis) {
        seen.told.push(format!("{} {outcome:?} at {now}", self.0));
    }

    fn notification(
        &self,
        seen: &mut Seen,
        notification: &NotificationContext<'_>,
        cancels: Option<RequestToken>,
        _: Millis,
    ) -> bool {
        let reason = notification.params.and_then(|params| params.get("reason")?.text()).map(|text| text.to_string());
        seen.told.push(format!("{} {} {reason:?} {}", self.0, notification.method, cancels.is_some()));
        !notification.method.eq_str("notifications/drop")
    }
}

fn echo(seen: &mut Seen, call: &mut Call<'_>) -> HandlerResult {
    seen.told.push("echo".into());
    let what = call.arguments().get("do").map(|what| what.to_string()).unwrap_or_default();
    call.text(what.as_str())
}

static TOOLS: [Tool<Seen>; 4] = [
    Tool::new("echo", "Echoes", echo).hints(ToolAnnotations::new().read_only(true)),
    Tool::new("fail", "Fails", |_, call| call.error("it failed")),
    Tool::new("later", "Answers later", |seen, call| {
        let (token, done) = call.later();
        seen.waiting = Some(token);
        done
    }),
    Tool::new("hidden", "Hidden", echo).visible(&Visibility::when(|_, _| false)),
];
static RESOURCES: [Resource<Seen>; 1] = [Resource::new("x://it", "it", |_, read| read.text("x"))];
const SERVICE: Service<'static, Seen> = Service::new("site", "1")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .on_notification(|seen, notification| seen.told.push(format!("handled {}", notification.method)))
    .layers(&[&Named("first"), &Named("second")]);

/// A connection of the revision; it says a line and returns the answer.
struct Line(Server<'static>, LineSink<Vec<u8>>, Seen, Dispatched);

impl Line {
    fn new(revision: &str) -> Line {
        let mut line = Line(
            Server::growing(MessageLimits::default()),
            LineSink::new(Vec::new()),
            Seen::default(),
            Dispatched::Handled,
        );
        if !is_modern(revision) {
            line.say(&initialize(revision, json!({})));
        }
        line
    }

    fn say(&mut self, message: &str) -> Value {
        let Line(server, out, seen, step) = self;
        *step = SERVICE.dispatch(seen, message.as_bytes(), server, out).unwrap();
        let answer = core::str::from_utf8(out.pending()).unwrap().lines().next().map_or(Value::Null, parse);
        out.sent(out.pending().len());
        answer
    }
}

#[test]
fn the_order_of_the_way_in_and_out() {
    for revision in REVISIONS {
        let mut line = Line::new(revision);
        assert_eq!(line.2.take(), [""; 0], "the server answers initialize itself");
        line.0.set_now(7);
        let answer = line.say(&call(revision, 1, "echo", json!({"do": "it"})));
        assert_eq!(answer["result"]["content"][0]["text"], "\"it\"", "{answer}");
        let seen = line.2.take();
        assert_eq!(seen[..2], ["first tools/call echo Some(true)", "second tools/call echo Some(true)"]);
        assert_eq!(seen[2..], ["echo", "second Result at 7", "first Result at 7"]);
        line.say(&request(revision, 2, "tools/list", json!({})));
        assert_eq!(line.2.take()[2..], ["second Result at 7", "first Result at 7"]);
        line.say(&request(revision, 3, "resources/read", json!({"uri": "x://it"})));
        assert_eq!(line.2.take()[0], "first resources/read x://it None");
    }
}

#[test]
fn outcomes() {
    let mut line = Line::new(MODERN);
    for (tool, outcome, reads) in
        [("fail", "ToolError", "None"), ("never", "Error(-32602)", "None"), ("hidden", "Error(-32602)", "None")]
    {
        line.say(&call(MODERN, 1, tool, json!({})));
        let seen = line.2.take();
        assert_eq!(seen[0], format!("first tools/call {tool} {reads}"));
        assert_eq!(seen.last().unwrap(), &format!("first {outcome} at 0"));
    }
    line.say(&call(MODERN, 2, "later", json!({})));
    assert!(matches!(line.3, Dispatched::Later(_)));
    assert_eq!(line.2.take()[2..], ["second Later at 0", "first Later at 0"]);
    line.0.set_now(9);
    let token = line.2.waiting.take().unwrap();
    let Line(server, out, seen, _) = &mut line;
    let _ = SERVICE.answer(seen, token, server, out, |_, call| call.error(format_args!("{}", "late"))).unwrap();
    assert_eq!(seen.take(), ["second ToolError at 9", "first ToolError at 9"]);
}

#[test]
fn a_layer_refuses_answers_and_replaces() {
    for revision in REVISIONS {
        let mut line = Line::new(revision);
        let refused = line.say(&call(revision, 1, "echo", json!({"do": "refuse"})));
        assert_eq!(refused["error"]["code"], -31000, "{refused}");
        assert_eq!(line.2.take()[1..], ["second Error(-31000) at 0", "first Error(-31000) at 0"]);
        let answered = line.say(&call(revision, 2, "echo", json!({"do": "answer"})));
        assert_eq!(answered["result"]["content"], json!([]), "{answered}");
        assert_eq!(line.2.take()[1..], ["second Result at 0", "first Result at 0"]);
        let replaced = line.say(&call(revision, 3, "fail", json!({"do": "replace"})));
        assert_eq!(replaced["result"]["content"][0]["text"], "\"replaced\"", "{replaced}");
        assert_eq!(line.0.in_flight(), 0);
    }
}

/// A layer gets the reason of a cancellation before the cancellation itself, and each notification before anything else.
// spec: B132
#[test]
fn notifications_pass_or_are_dropped() {
    for revision in REVISIONS {
        let mut line = Line::new(revision);
        line.say(&notify("notifications/pass", json!({})));
        line.say(&notify("notifications/drop", json!({})));
        let seen = line.2.take();
        assert_eq!(seen[..2], ["first notifications/pass None false", "second notifications/pass None false"]);
        assert_eq!(seen[2..], ["handled notifications/pass", "first notifications/drop None false"]);
        line.say(&call(revision, 1, "later", json!({})));
        line.2.take();
        line.say(&notify("notifications/cancelled", json!({"requestId": 1, "reason": "the \"user\" left"})));
        assert_eq!(line.2.take()[0], "first notifications/cancelled Some(\"the \\\"user\\\" left\") true");
        assert_eq!(line.0.in_flight(), 0);
        // A request that is not in flight.
        line.say(&notify("notifications/cancelled", json!({"requestId": 1, "reason": 5})));
        assert_eq!(line.2.take()[0], "first notifications/cancelled None false");
    }
}

/// A layer counts a request once, however often its message comes again.
#[test]
fn a_full_sink_repeats_no_layer() {
    struct Shared(Mutex<(usize, usize)>);
    impl Layer<Seen> for Shared {
        fn request(&self, _: &mut Seen, _: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
            self.0.lock().unwrap().0 += 1;
            Ok(None)
        }

        fn outcome(&self, _: &mut Seen, _: RequestToken, outcome: Outcome, _: Millis) {
            self.0.lock().unwrap().1 += usize::from(outcome != Outcome::Again);
        }
    }
    let shared = Shared(Mutex::default());
    let layers: [&dyn Layer<Seen>; 1] = [&shared];
    let service = Service::new("site", "1").tools(&TOOLS).layers(&layers);
    let (mut server, mut seen) = (Server::growing(MessageLimits::default()), Seen::default());
    let mut bytes = [0; 1500];
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    for id in 0..20 {
        for message in
            [call(MODERN, id, "echo", json!({"do": "it"})), request(MODERN, 100 + id, "tools/list", json!({}))]
        {
            while service
                .dispatch_from(&MessageSource::LINE, &mut seen, message.as_bytes(), &mut server, &mut out)
                .is_err()
            {
                let pending = out.pending().len();
                out.sent(pending);
            }
        }
    }
    assert_eq!(*shared.0.lock().unwrap(), (40, 40));
}
