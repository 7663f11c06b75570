//! Several servers in one program: each knows its own tokens, and refuses those of the others.
use crate::common;

use common::*;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{
    IncomingRequest, MessageLimits, NotifyStatus, Progress, RequestSlot, RequestToken, RespondError, RpcError, Server,
    ServerEvent, ServerId, ServerInfo, ServerOptions,
};
use mcp_sansio::service::{
    Call, Complete, CustomRequest, GetPrompt, HandlerResult, Prompt, PromptArgument, ReadResource, Resource, Service,
    Tool,
};
use mcp_sansio::sink::{LineSink, SliceStorage};

/// What the handlers have seen: of which connection, and the tokens of requests that wait.
#[derive(Default)]
struct Seen {
    tokens: Vec<RequestToken>,
    servers: Vec<ServerId>,
    notified: Vec<ServerId>,
    cancelled: Vec<RequestToken>,
}

fn keep(seen: &mut Seen, (token, outcome): (RequestToken, HandlerResult)) -> HandlerResult {
    seen.tokens.push(token);
    outcome
}

fn later(seen: &mut Seen, call: &mut Call<'_>) -> HandlerResult {
    seen.servers.push(call.server());
    keep(seen, call.later())
}

fn again(seen: &mut Seen, call: &mut Call<'_>) -> HandlerResult {
    if call.is_resumed() {
        return call.text("resumed");
    }
    let (token, done) = call.suspend(b"")?;
    keep(seen, (token, Ok(done)))
}

static TOOLS: [Tool<Seen>; 2] = [Tool::new("later", "Answers later", later), Tool::new("again", "Runs again", again)];
static RESOURCES: [Resource<Seen>; 1] =
    [Resource::new("test://later", "later", |seen, read: &mut ReadResource<'_>| keep(seen, read.later()))];
static ARGUMENTS: [PromptArgument<'_>; 1] = [PromptArgument::optional("a")];
static PROMPTS: [Prompt<Seen>; 1] =
    [Prompt::new("later", "Later", |seen, get: &mut GetPrompt<'_>| keep(seen, get.later()))
        .arguments(&ARGUMENTS)
        .complete(|seen, complete: &mut Complete<'_>| keep(seen, complete.later()))];
const SERVICE: Service<'static, Seen> = Service::new("test", "1.0")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .prompts(&PROMPTS)
    .other(|seen, other: &mut CustomRequest<'_>| keep(seen, other.later()))
    .feature(ServerCapability::Logging)
    .on_notification(|seen, notification| seen.notified.push(notification.server))
    .on_cancel(|seen, token| seen.cancelled.push(token));

type Lines<'m> = LineServer<'m, LineSink<SliceStorage<'m>>>;

fn feed<O: mcp_sansio::sink::Out>(lines: &mut LineServer<'_, O>, seen: &mut Seen, line: &str) {
    let _ = lines.run(&SERVICE, seen);
    let line = format!("{line}\n");
    lines.space()[..line.len()].copy_from_slice(line.as_bytes());
    lines.filled(line.len());
    let _ = lines.run(&SERVICE, seen);
}

/// The first requests of a client: one that waits, of each kind.
fn openings() -> Vec<String> {
    let completion = json!({"ref": {"type": "ref/prompt", "name": "later"}, "argument": {"name": "a", "value": "x"}});
    vec![
        initialize("2025-11-25", json!({})),
        notify("notifications/initialized", json!({})),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "later", "_meta": {"progressToken": 1}}}).to_string(),
        request("2025-11-25", 2, "resources/read", json!({"uri": "test://later"})),
        request("2025-11-25", 3, "prompts/get", json!({"name": "later"})),
        request("2025-11-25", 4, "completion/complete", completion),
        request("2025-11-25", 5, "demo/other", json!({})),
        request("2025-11-25", 6, "tools/call", json!({"name": "again"})),
    ]
}

/// Each use of a token on two connections with the same requests: the one that it is not of refuses it and writes nothing.
fn each_refuses_the_other(sessions: &mut [impl Session; 2]) {
    let mut seen = [Seen::default(), Seen::default()];
    for line in openings() {
        for (session, seen) in sessions.iter_mut().zip(&mut seen) {
            session.feed(seen, &line);
        }
    }
    let ids = [sessions[0].id(), sessions[1].id()];
    assert_ne!(ids[0], ids[1]);
    for (seen, id) in seen.iter().zip(ids) {
        assert_eq!((&seen.servers, &seen.notified), (&vec![id], &vec![id]));
        assert_eq!(seen.tokens.len(), 6);
    }
    let tokens = [seen[0].tokens.clone(), seen[1].tokens.clone()];
    for session in &mut *sessions {
        session.clear();
    }
    for here in [0, 1] {
        let (session, seen) = (&mut sessions[here], &mut seen[here]);
        for token in &tokens[1 - here] {
            session.refuses(seen, *token);
        }
        assert_eq!(session.pending(), "");
    }
    // They are all still open, and each is answered where it belongs.
    for here in [0, 1] {
        sessions[here].answers(&mut seen[here], &tokens[here]);
        let said = sessions[here].pending();
        let ids: Vec<_> = said.lines().map(|line| parse(line)["id"].clone()).filter(|id| !id.is_null()).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6].map(Value::from), "{said}");
    }
    // A cancellation names the request of its own connection.
    for here in [0, 1] {
        sessions[here].feed(&mut seen[here], &call("2025-11-25", 9, "later", json!({})));
        sessions[here].feed(&mut seen[here], &cancel(9));
        let token = *seen[here].tokens.last().unwrap();
        assert_eq!(seen[here].cancelled, [token]);
    }
}

/// A connection, in memory that is lent or that grows.
trait Session {
    fn id(&self) -> ServerId;
    fn feed(&mut self, seen: &mut Seen, line: &str);
    fn pending(&self) -> String;
    fn clear(&mut self);
    fn refuses(&mut self, seen: &mut Seen, token: RequestToken);
    fn answers(&mut self, seen: &mut Seen, tokens: &[RequestToken]);
}

impl<S: mcp_sansio::sink::Storage> Session for LineServer<'_, LineSink<S>> {
    fn id(&self) -> ServerId {
        self.server.id()
    }

    fn feed(&mut self, seen: &mut Seen, line: &str) {
        feed(self, seen, line);
    }

    fn pending(&self) -> String {
        String::from_utf8(self.out.pending().to_vec()).unwrap()
    }

    fn clear(&mut self) {
        let n = self.out.pending().len();
        self.out.sent(n);
    }

    fn refuses(&mut self, seen: &mut Seen, token: RequestToken) {
        const STALE: Result<(), RespondError> = Err(RespondError::Stale);
        assert_eq!(self.answer(&SERVICE, seen, token, |_, _| panic!("it must not run")), STALE);
        assert_eq!(self.answer(&SERVICE, seen, token.as_read("test://later"), |_, _| panic!("it must not run")), STALE);
        assert_eq!(self.answer(&SERVICE, seen, token.as_prompt(), |_, _| panic!("it must not run")), STALE);
        assert_eq!(self.answer(&SERVICE, seen, token.as_completion(""), |_, _| panic!("it must not run")), STALE);
        assert_eq!(self.answer(&SERVICE, seen, token.as_custom(), |_, _| panic!("it must not run")), STALE);
        assert_eq!(self.server.wake(token), STALE);
        assert_eq!(self.progress(token, Progress::new(1)), NotifyStatus::Stale);
        let before = self.server.in_flight();
        let (server, out) = (&mut self.server, &mut self.out);
        assert_eq!(server.respond(token, Raw::constant("{}"), out), STALE);
        assert_eq!(server.fail(token, &RpcError::internal("no"), out), STALE);
        let words = format_args!("no");
        let logged = server.log(SERVICE.about(), Some(token), LoggingLevel::Emergency, None, words, out);
        assert_eq!(logged, NotifyStatus::Stale);
        // Those that return no such error do nothing.
        assert_eq!(SERVICE.resume(seen, token, server, out), Ok(mcp_sansio::service::Dispatched::Handled));
        SERVICE.abandon_request(seen, token, "no", server, out).unwrap();
        server.abandon_request(token, "no", out).unwrap();
        SERVICE.forget(seen, token, server);
        server.forget(token);
        server.set_transport_data(token, 7);
        assert!(!server.is_open(token) && !server.is_suspended(token));
        assert_eq!((server.transport_id(token), server.transport_data(token)), (None, None));
        assert_eq!((server.in_flight(), seen.cancelled.len()), (before, 0));
    }

    fn answers(&mut self, seen: &mut Seen, tokens: &[RequestToken]) {
        assert!(tokens.iter().all(|token| self.server.is_open(*token)));
        assert_eq!(self.progress(tokens[0], Progress::new(1)), NotifyStatus::Sent);
        self.answer(&SERVICE, seen, tokens[0], |_, call| call.text("it")).unwrap();
        self.answer(&SERVICE, seen, tokens[1].as_read("test://later"), |_, read| read.text("it")).unwrap();
        self.answer(&SERVICE, seen, tokens[2].as_prompt(), |_, get| get.user("it")).unwrap();
        self.answer(&SERVICE, seen, tokens[3].as_completion("x"), |_, complete| complete.offer(["it"])).unwrap();
        self.answer(&SERVICE, seen, tokens[4].as_custom(), |_, other| other.result(Raw::constant("{}"))).unwrap();
        self.server.wake(tokens[5]).unwrap();
        let _ = self.run(&SERVICE, seen);
    }
}

#[test]
fn lines_in_lent_memory() {
    let mut memory = [(); 2].map(|()| ([0; 640], [0; 4096], [0; 1024], [RequestSlot::FREE; 6]));
    let [a, b] = &mut memory;
    let sessions = [a, b].map(|(input, output, asks, slots)| -> Lines<'_> {
        let server = Server::new(slots).asks(asks);
        LineServer::new(LineBuffer::new(input), server, LineSink::new(SliceStorage::new(output)))
    });
    each_refuses_the_other(&mut { sessions });
}

#[test]
fn lines_in_growing_memory() {
    let mut sessions = [(); 2].map(|()| LineServer::growing(MessageLimits::default(), LineSink::new(Vec::<u8>::new())));
    each_refuses_the_other(&mut sessions);
}

/// Admits a request to a server that has no service.
fn admit(server: &mut Server<'_>) -> Option<RequestToken> {
    let about = ServerInfo::new("test", "1.0");
    let line = request(MODERN, 1, "tools/call", json!({"name": "t"}));
    let (mut request, mut out) = (IncomingRequest::empty(), LineSink::new(Vec::new()));
    let about = about.feature(ServerCapability::Tools);
    match server.handle(&ServerOptions::new(&about), line.as_bytes(), &mut request, &mut out) {
        Ok(Some(ServerEvent::Request { token })) => Some(token),
        _ => None,
    }
}

/// Servers that follow each other in one place, as those of the connections of a loop do.
#[test]
fn servers_one_after_another() {
    let mut old = Vec::new();
    for _ in 0..8 {
        let mut slots = [RequestSlot::FREE; 1];
        let mut server = Server::new(&mut slots);
        let token = admit(&mut server).unwrap();
        assert!(server.is_open(token) && !old.iter().any(|old| server.is_open(*old)));
        old.push(token);
        let mut server = Server::growing(MessageLimits::default());
        let token = admit(&mut server).unwrap();
        assert!(server.is_open(token) && !old.iter().any(|old| server.is_open(*old)));
        old.push(token);
    }
}

/// A server that is dropped leaves its requests in the slots; the next one has all of them free.
#[test]
fn slots_that_were_lent_before() {
    let mut slots = [RequestSlot::FREE; 1];
    let old = admit(&mut Server::new(&mut slots)).unwrap();
    let mut server = Server::new(&mut slots);
    let mut out = LineSink::new(Vec::new());
    assert_eq!((server.in_flight(), server.is_open(old)), (0, false));
    let token = admit(&mut server).expect("a free slot");
    assert_eq!(server.respond(old, Raw::constant("{}"), &mut out), Err(RespondError::Stale));
    assert_eq!((server.in_flight(), out.pending()), (1, &b""[..]));
    server.respond(token, Raw::constant("{}"), &mut out).unwrap();
}
