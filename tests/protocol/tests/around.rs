//! Layers: what stands around the handlers of a service.
use crate::common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{MODERN, REVISIONS, Value, call, initialize, is_modern, json, notify, parse, request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{
    MessageLimits, Millis, NotifyStatus, Progress, RequestSlot, RequestToken, RpcError, Scope, Server, ServerChange,
    ServerInfo,
};
use mcp_sansio::service::{
    Call, Dispatched, HandlerError, HandlerResult, Layer, LayerRequest, MessageSource, NotificationContext, Outcome,
    Receipt, Resource, ResultMeta, SentMessage, Service, Tool, ToolAnnotations, Visibility,
};
use mcp_sansio::sink::{FullError, LineSink, MessageHead, Sink, SliceStorage};

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
        let name = request.name.map(|name| name.to_string()).unwrap_or_default();
        let reads = request.tool_hints.and_then(|hints| hints.read_only);
        seen.told.push(format!("{} {} {name} {reads:?}", self.0, request.method));
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

    fn response(&self, seen: &mut Seen, id: u64, response: Result<Raw<'_>, Raw<'_>>, scope: Scope) {
        let response = response.map_or_else(|error| format!("error {error}"), |result| format!("result {result}"));
        seen.told.push(format!("{} {id} {response} {}", self.0, scope.0));
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
            line.2.take();
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
        line.0.now = 7;
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
    line.0.now = 9;
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

/// A program that asks by itself gets the answers, and clients of a service without tables may subscribe to any URI.
#[test]
fn a_layer_gets_responses() {
    let mut line = Line::new("2025-11-25");
    line.0.send_request("roots/list", None, &mut line.1).unwrap();
    let sent = line.1.pending().len();
    line.1.sent(sent);
    line.say(r#"{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}"#);
    assert_eq!(line.2.take()[0], r#"first 5 result {"roots":[]} 0"#);
    line.say(r#"{"jsonrpc":"2.0","id":6,"error":{"code":1,"message":"no"}}"#);
    assert_eq!(line.2.take()[1], r#"second 6 error {"code":1,"message":"no"} 0"#);

    let about = ServerInfo::new("behind", "2").feature(ServerCapability::Subscribe);
    let service = Service::described(about).layers(&[&Named("only")]);
    let message = request("2025-11-25", 1, "resources/subscribe", json!({"uri": "any:thing"}));
    let Line(server, out, seen, _) = &mut line;
    assert_eq!(service.dispatch(seen, message.as_bytes(), server, out), Ok(Dispatched::Handled));
    assert!(out.pending().ends_with(b"\"result\":{}}\n"), "{:?}", core::str::from_utf8(out.pending()));
    assert_eq!(server.subscribed_uris().collect::<Vec<_>>(), ["any:thing"]);
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

/// A layer that notes all that it gets, refuses the method `0`, marks results and drops log messages.
#[derive(Default)]
struct Guard {
    refuses: Mutex<&'static str>,
    seen: Mutex<Vec<String>>,
    marked: AtomicU64,
}

impl Guard {
    fn note(&self, text: String) {
        self.seen.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Layer<Seen> for Guard {
    fn request(&self, _: &mut Seen, request: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
        self.note(request.method.to_string());
        let refused = *self.refuses.lock().unwrap();
        match () {
            () if request.method.eq_str(refused) => Err(RpcError::new(-31000, "Not now").into()),
            () if refused == "later" => request.later().1.map(Some),
            () => Ok(None),
        }
    }

    fn outcome(&self, _: &mut Seen, _: RequestToken, outcome: Outcome, _: Millis) {
        self.note(format!("{outcome:?}"));
    }

    fn result_meta(&self, _: RequestToken, meta: &mut ResultMeta<'_, '_, '_>) {
        let number = self.marked.fetch_add(1, Ordering::Relaxed);
        if let Some(object) = meta.object().filter(|_| number != 3) {
            object.number("test/number", number);
        }
    }

    fn sends(&self, message: &SentMessage<'_>, _: &mut dyn Sink) -> bool {
        if message.token.is_none() {
            self.note(format!("sends {} at {}", message.method, message.now));
        }
        message.method != "notifications/message"
    }
}

static SPEAKERS: [Tool<Seen>; 4] = [
    Tool::new("speak", "Speaks", |_, call| {
        call.progress(Progress::new(1));
        assert_ne!(call.log(LoggingLevel::Error, "hello"), NotifyStatus::NoRoom);
        call.set_meta(Raw::constant(r#"{"own":1}"#));
        call.text("spoken")
    }),
    Tool::new("refuse", "Refuses", |_, _| Err("refused".into())),
    Tool::new("raw", "Passes an error on", |_, call| {
        call.result(Raw::constant(r#"{"content":[],"isError":true,"_meta":{"own":2}}"#))
    }),
    Tool::new("later", "Answers later", |seen, call| {
        let (token, done) = call.later();
        seen.waiting = Some(token);
        done
    }),
];

/// Runs a test with a service that the guard stands around; a function of it says a message and returns the lines of the answer.
fn guarded(test: &mut dyn FnMut(&Guard, &Service<'_, Seen>, &mut Server<'static>)) {
    let guard = Guard::default();
    let layers: [&dyn Layer<Seen>; 1] = [&guard];
    let service = Service::new("site", "1").tools(&SPEAKERS).resources(&RESOURCES).layers(&layers);
    let service = service.feature(ServerCapability::Subscribe).feature(ServerCapability::ToolsChanged);
    let service = service.feature(ServerCapability::Logging);
    test(&guard, &service, &mut Server::growing(MessageLimits::default()));
}

fn said(service: &Service<'_, Seen>, server: &mut Server<'_>, seen: &mut Seen, message: &str) -> Vec<Value> {
    let mut out = LineSink::new(Vec::new());
    let _ = service.dispatch(seen, message.as_bytes(), server, &mut out).unwrap();
    core::str::from_utf8(out.pending()).unwrap().lines().map(parse).collect()
}

#[test]
fn requests_that_the_server_answers_itself() {
    for revision in REVISIONS {
        guarded(&mut |guard, service, server| {
            let mut seen = Seen::default();
            let mut say = |message: &str| said(service, server, &mut seen, message);
            if is_modern(revision) {
                say(&request(revision, 1, "server/discover", json!({})));
                let filter = json!({"notifications": {"toolsListChanged": true}});
                say(&request(revision, 2, "subscriptions/listen", filter));
                let acknowledged = "sends notifications/subscriptions/acknowledged at 0";
                assert_eq!(guard.take(), ["server/discover", "Result", "subscriptions/listen", acknowledged, "Result"]);
                // Refused for its revision: no layer gets it.
                say(
                    r#"{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
                );
                assert_eq!(guard.take(), [""; 0]);
                return;
            }
            *guard.refuses.lock().unwrap() = "initialize";
            let refused = say(&initialize(revision, json!({})));
            assert_eq!(
                (&refused[0]["error"]["code"], guard.take()),
                (&json!(-31000), vec!["initialize".into(), "Error(-31000)".into()])
            );
            // It is not open.
            assert_eq!(say(&request(revision, 1, "tools/list", json!({})))[0]["error"]["code"], -32602);
            *guard.refuses.lock().unwrap() = "";
            assert!(say(&initialize(revision, json!({})))[0]["result"]["serverInfo"].is_object());
            assert_eq!(guard.take(), ["initialize", "Result"]);
            say(&request(revision, 2, "ping", json!({})));
            say(&request(revision, 3, "resources/subscribe", json!({"uri": "x://it"})));
            say(&request(revision, 4, "resources/subscribe", json!({"uri": "x://none"})));
            say(&request(revision, 5, "logging/setLevel", json!({"level": "error"})));
            let unknown = if revision < "2026" { "Error(-32002)" } else { "Error(-32602)" };
            let subscribed = ["resources/subscribe", "Result", "resources/subscribe", unknown];
            assert_eq!(guard.take(), [&["ping", "Result"], &subscribed[..], &["logging/setLevel", "Result"]].concat());
            *guard.refuses.lock().unwrap() = "later";
            assert_eq!(say(&request(revision, 6, "ping", json!({})))[0]["error"]["code"], -32603);
            guard.take();
            assert!(say(&request(revision, 7, "logging/setLevel", json!({"level": "debug"}))).is_empty());
            assert_eq!(guard.take(), ["logging/setLevel", "Later"]);
            assert_eq!((server.in_flight(), server.peer.log_level), (1, LoggingLevel::Error));
        });
    }
}

#[test]
fn notifications_of_the_server_are_seen_and_dropped() {
    for revision in REVISIONS {
        guarded(&mut |guard, service, server| {
            let mut seen = Seen::default();
            if !is_modern(revision) {
                said(service, server, &mut seen, &initialize(revision, json!({})));
                said(service, server, &mut seen, &notify("notifications/initialized", json!({})));
            }
            guard.take();
            server.now = 5;
            let meta = json!({"progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"});
            let call = |name: &str| request(revision, 1, "tools/call", json!({"name": name, "_meta": meta}));
            let answer = said(service, server, &mut seen, &call("speak"));
            let methods: Vec<_> = answer.iter().map(|line| line["method"].as_str()).collect();
            assert_eq!(methods, [Some("notifications/progress"), None], "the log message is dropped: {answer:?}");
            let sent = ["sends notifications/progress at 5", "sends notifications/message at 5"];
            assert_eq!(guard.take()[1..3], sent);
            said(service, server, &mut seen, &call("later"));
            let (token, mut out) = (seen.waiting.unwrap(), LineSink::new(Vec::new()));
            service.progress(token, Progress::new(1), server, &mut out);
            server.log(service.about(), Some(token), LoggingLevel::Error, None, format_args!("late"), &mut out);
            assert_eq!((guard.take()[2..].to_vec(), out.pending().len() > 30), (sent.map(String::from).to_vec(), true));
            let before = out.pending().len();
            if !is_modern(revision) {
                server.publish(ServerChange::Tools);
                let _ = service.pull(&seen, server, &mut out);
                assert_eq!(guard.take(), ["sends notifications/tools/list_changed at 5"]);
                assert!(out.pending().len() > before);
            }
        });
    }
}

#[test]
fn layers_add_to_the_meta_of_a_result() {
    for revision in REVISIONS {
        guarded(&mut |_, service, server| {
            let mut seen = Seen::default();
            if !is_modern(revision) {
                said(service, server, &mut seen, &initialize(revision, json!({})));
            }
            let mut meta = |id: i32, name: &str| {
                let answer = said(service, server, &mut seen, &call(revision, id, name, json!({})));
                let mut meta = answer.last().map_or(Value::Null, |line| line["result"]["_meta"].clone());
                if let (true, Some(meta)) = (is_modern(revision), meta.as_object_mut()) {
                    assert!(meta.remove("io.modelcontextprotocol/serverInfo").is_some());
                }
                meta
            };
            assert_eq!(meta(1, "speak"), json!({"own": 1, "test/number": 0}));
            assert_eq!(meta(2, "refuse"), json!({"test/number": 1}));
            assert_eq!(meta(3, "raw"), json!({"own": 2, "test/number": 2}));
            meta(4, "later");
            let mut out = LineSink::new(Vec::new());
            let _ = service
                .answer(&mut Seen::default(), seen.waiting.unwrap(), server, &mut out, |_, call| call.text("x"))
                .unwrap();
            assert!(!core::str::from_utf8(out.pending()).unwrap().contains("test/number"), "the fourth has none");
            let list = said(service, server, &mut seen, &request(revision, 5, "tools/list", json!({})));
            assert_eq!(list[0]["result"]["_meta"]["test/number"], 4);
            said(service, server, &mut seen, &call(revision, 6, "later", json!({})));
            let token = seen.waiting.unwrap();
            let failed = service.answer(&mut seen, token, server, &mut out, |_, _| Err("failed late".into()));
            let _ = failed.unwrap();
            let last = core::str::from_utf8(out.pending()).unwrap().lines().last().unwrap();
            assert!(last.contains("failed late") && last.contains(r#""test/number":5"#), "{last}");
        });
    }
}

#[test]
fn without_a_slot_what_the_server_answers_itself_is_refused() {
    guarded(&mut |guard, service, _| {
        let (mut slots, mut seen) = ([RequestSlot::FREE; 1], Seen::default());
        let mut server = Server::new(&mut slots);
        let mut say = |message: &str| said(service, &mut server, &mut seen, message);
        say(&call(MODERN, 1, "later", json!({})));
        guard.take();
        let refused = say(&request(MODERN, 2, "server/discover", json!({})));
        assert_eq!((&refused[0]["error"]["code"], guard.take()), (&json!(-32603), vec![]));
        say(&notify("notifications/cancelled", json!({"requestId": 1})));
        assert!(say(&request(MODERN, 3, "server/discover", json!({})))[0]["result"].is_object());
    });
}

/// A layer that keeps each message, and lets a function replace its value, or refuse it.
struct Rewrite(Mutex<Vec<u8>>, fn(&SentMessage<'_>, Value) -> Option<Value>);

impl Rewrite {
    const fn new(change: fn(&SentMessage<'_>, Value) -> Option<Value>) -> Self {
        Rewrite(Mutex::new(Vec::new()), change)
    }
}

impl Layer<Seen> for Rewrite {
    fn writes(&self, _: &SentMessage<'_>, piece: &[u8], _: &mut dyn Sink) -> Result<(), FullError> {
        let mut kept = self.0.lock().unwrap();
        if piece.is_empty() {
            kept.clear();
        }
        kept.extend_from_slice(piece);
        Ok(())
    }

    fn sends(&self, message: &SentMessage<'_>, out: &mut dyn Sink) -> bool {
        let kept = std::mem::take(&mut *self.0.lock().unwrap());
        let value = if kept.is_empty() { Value::Null } else { serde_json::from_slice(&kept).unwrap() };
        (self.1)(message, value).is_some_and(|value| out.put(value.to_string().as_bytes()).is_ok())
    }
}

/// Opens a connection behind layers, says messages of all kinds, publishes a change, and returns all lines.
fn lines_of(layers: Option<[&dyn Layer<Seen>; 2]>, revision: &str) -> Vec<Value> {
    let service = Service::new("site", "1").tools(&SPEAKERS).resources(&RESOURCES);
    let service = service.feature(ServerCapability::Logging).feature(ServerCapability::ToolsChanged);
    let service = match &layers {
        Some(layers) => service.layers(layers),
        None => service,
    };
    let (mut server, mut seen) = (Server::growing(MessageLimits::default()), Seen::default());
    let mut lines = Vec::new();
    let meta = json!({"progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"});
    let call = |id: u32, name: &str| request(revision, id, "tools/call", json!({"name": name, "_meta": meta}));
    let opening = if is_modern(revision) {
        vec![request(revision, 1, "server/discover", json!({}))]
    } else {
        vec![
            initialize(revision, json!({})),
            notify("notifications/initialized", json!({})),
            request(revision, 1, "ping", json!({})),
        ]
    };
    let rest = [
        call(2, "speak"),
        call(3, "refuse"),
        call(4, "none"),
        call(5, "raw"),
        call(6, "later"),
        request(revision, 7, "tools/list", json!({})),
        request(revision, 8, "resources/read", json!({"uri": "x://it"})),
        request(revision, 9, "no/such", json!({})),
        "[broken".into(),
    ];
    for message in opening.iter().chain(&rest) {
        lines.extend(said(&service, &mut server, &mut seen, message));
    }
    let mut out = LineSink::new(Vec::new());
    let token = seen.waiting.unwrap();
    let _ = service.answer(&mut seen, token, &mut server, &mut out, |_, call| call.text("late")).unwrap();
    server.publish(ServerChange::Tools);
    let _ = service.pull(&seen, &mut server, &mut out);
    lines.extend(core::str::from_utf8(out.pending()).unwrap().lines().map(parse));
    lines
}

#[test]
fn layers_that_do_nothing_change_nothing() {
    struct Nothing;
    impl Layer<Seen> for Nothing {}
    let keeps = Rewrite::new(|_, value| Some(value).filter(|value| !value.is_null()).or(Some(Value::Null)));
    for revision in REVISIONS {
        let plain = lines_of(None, revision);
        assert!(plain.len() > 11, "{plain:?}");
        assert_eq!(lines_of(Some([&Nothing, &Nothing]), revision), plain);
        let kept = lines_of(Some([&keeps, &Nothing]), revision);
        // A notification without `params` has got some.
        let changed = |line: &Value| line["method"] == "notifications/tools/list_changed";
        assert!(kept.iter().zip(&plain).all(|(kept, plain)| kept == plain || changed(plain)), "{kept:?}");
    }
}

#[test]
fn layers_replace_what_goes_out() {
    // The inner one counts members, the outer one marks them.
    let inner = Rewrite::new(|message, mut value| {
        assert_eq!(message.token.is_some(), !matches!(message.head, MessageHead::Notification));
        if value.is_null() {
            value = json!({});
        }
        value["_meta"]["test/inner"] = json!(message.method);
        Some(value)
    });
    let outer = Rewrite::new(|_, mut value| {
        assert!(value["_meta"]["test/inner"].is_string(), "{value}");
        value["test/outer"] = json!(true);
        Some(value)
    });
    for revision in REVISIONS {
        let (plain, replaced) = (lines_of(None, revision), lines_of(Some([&outer, &inner]), revision));
        assert_eq!(plain.len(), replaced.len());
        for (mut plain, replaced) in plain.into_iter().zip(replaced) {
            let key = ["params", "result", "error"].into_iter().find(|key| !replaced[key].is_null()).unwrap();
            // What no layer got: it is no message, or has no method that is known.
            if plain["error"]["code"] != -32700 {
                plain[key]["_meta"]["test/inner"] = json!(plain["method"].as_str().unwrap_or_default());
                plain[key]["test/outer"] = json!(true);
            }
            assert_eq!(replaced, plain);
        }
    }
}

#[test]
fn layers_refuse_what_goes_out() {
    let refuses = Rewrite::new(|message, value| Some(value).filter(|_| message.token.is_none()));
    let guard = Guard::default();
    for revision in REVISIONS {
        let lines = lines_of(Some([&guard, &refuses]), revision);
        for line in lines.iter().filter(|line| line["method"].is_null() && !line["id"].is_null()) {
            assert_eq!(line["error"]["code"], -32603, "{line}");
            assert!(line["result"].is_null());
        }
        let seen = guard.take();
        assert!(!seen.iter().any(|seen| seen.contains("Result") || seen.contains("ToolError")), "{seen:?}");
        assert!(seen.contains(&"Error(-32603)".into()), "the outcome is that of the refusal: {seen:?}");
    }
}

/// An answer that does not fit any more is an error, and a notification is left out.
#[test]
fn what_a_layer_makes_too_large_does_not_go_out() {
    let grows = Rewrite::new(|_, mut value| {
        value["long"] = json!("x".repeat(2000));
        Some(value)
    });
    let layers: [&dyn Layer<Seen>; 1] = [&grows];
    let service = Service::new("site", "1").tools(&SPEAKERS).feature(ServerCapability::Logging).layers(&layers);
    for revision in REVISIONS {
        let (mut server, mut seen) = (Server::growing(MessageLimits::default()), Seen::default());
        let mut bytes = [0; 1500];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let mut say = |message: &str| {
            let _ = service.dispatch(&mut seen, message.as_bytes(), &mut server, &mut out);
            let lines: Vec<_> = core::str::from_utf8(out.pending()).unwrap().lines().map(parse).collect();
            out.sent(out.pending().len());
            lines
        };
        if !is_modern(revision) {
            assert_eq!(say(&initialize(revision, json!({})))[0]["error"]["code"], -32603);
        }
        let meta = json!({"progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"});
        let lines = say(&request(revision, 2, "tools/call", json!({"name": "speak", "_meta": meta})));
        assert_eq!((lines.len(), &lines[0]["error"]["code"]), (1, &json!(-32603)), "{lines:?}");
    }
}
