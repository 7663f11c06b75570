//! Tests of services in memory: without a process and without a clock, with the input cut at any byte.
//!
//! - [`Conversation`]: a service, and the test as its client; [`Reply`]: what a request has brought.
//! - [`ClientServerPair`]: a service and a client.
//!
//! ```
//! use mcp_sansio::revision::Revision;
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio_host::testing::{Conversation, Delivery};
//!
//! fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
//!     call.text("hello")
//! }
//! static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
//!
//! let service = Service::new("greeter", "1.0").tools(&TOOLS);
//! for revision in Revision::ALL {
//!     let mut conversation = Conversation::new(&service, ()).cut(Delivery::Random(7));
//!     conversation.open(revision);
//!     assert_eq!(conversation.call("hello", &()).text(), "hello");
//!     assert!(conversation.finish().is_empty());
//! }
//! ```
//!
//! Some things are checked in every test: structured content against the output schema of its tool, and that a change
//! which is published was declared. [`Conversation::snapshot`] has all that clients see of a service, for
//! [`assert_snapshot`].

mod reply;
mod requests;
mod snapshot;

use std::time::Duration;

use mcp_sansio::client::{Arguments, ClientHandler, ClientInfo, LineClient, TransportError};
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{MessageLimits, Millis, RequestToken, RespondError, ServerChange};
use mcp_sansio::service::{HandlerResult, LateRequest, Service};
use mcp_sansio::sink::LineSink;

use crate::LateReceiver;
use crate::schema::{SchemaLimits, check};
pub use reply::Reply;
use requests::CAPABILITIES;
pub use snapshot::assert_snapshot;

/// The sizes of the pieces in which the input comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// Whole lines.
    Whole,
    /// Byte by byte.
    Bytes,
    /// In pieces of this many bytes.
    Pieces(usize),
    /// In pieces of 1 to 64 bytes; the same seed gives the same sizes.
    Random(u64),
}

/// A connection to a service: the test sends a line, and gets the lines that come back.
#[derive(Debug)]
#[non_exhaustive]
pub struct Conversation<'s, S: 'static> {
    /// The server's side of the connection.
    pub server: LineServer<'static, LineSink<Vec<u8>>>,
    service: &'s Service<'s, S>,
    state: S,
    rhythm: Rhythm,
    now: Millis,
    /// The revision of requests that are made here.
    revision: Option<Revision>,
    requests: u32,
    capabilities: String,
}

/// The most turns of a loop. More of them mean that it never comes to rest.
const TURNS: usize = 100_000;

type Session = LineServer<'static, LineSink<Vec<u8>>>;

/// Makes the server's side of a connection.
fn session() -> Session {
    LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()))
}

fn lines(received: &[u8]) -> Vec<String> {
    let lines = received.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

impl<'s, S> Conversation<'s, S> {
    /// Opens a connection to a service, with the state of its handlers.
    #[must_use]
    pub fn new(service: &'s Service<'s, S>, state: S) -> Self {
        Conversation {
            server: session(),
            service,
            state,
            rhythm: Rhythm::new(Delivery::Whole),
            now: 0,
            revision: None,
            requests: 0,
            capabilities: CAPABILITIES.into(),
        }
    }

    mcp_sansio::setters! {
        /// Sets how the input is cut. Default: whole lines.
        #[must_use]
        cut(cut: Delivery) => rhythm = Rhythm::new(cut);
        /// Sets the capabilities that [`open`](Self::open) declares, a JSON object. Default: sampling, elicitation in both modes, and
        /// roots.
        #[must_use]
        capabilities(capabilities: Raw<'_>) => capabilities = capabilities.as_str().into();
    }

    /// Opens the connection in a revision: `initialize` and `notifications/initialized` up to 2025-11-25; from 2026-07-28 on
    /// `server/discover`, and each later request says the revision in `_meta`. Returns the reply.
    ///
    /// # Panics
    /// If the service does not have the revision.
    pub fn open(&mut self, revision: Revision) -> Reply {
        let hello = self.hello(revision);
        if !revision.is_modern() {
            let chosen = hello.result().get("protocolVersion").and_then(|date| date.text());
            assert!(
                chosen.is_some_and(|chosen| chosen.eq_str(revision.date())),
                "the service does not have {}: {hello}",
                revision.date()
            );
        }
        hello
    }

    /// Opens the connection, if the service has the revision.
    fn hello(&mut self, revision: Revision) -> Reply {
        let id = self.next_id();
        let hello = Reply::of(self.say(&requests::hello(revision, &id, &self.capabilities)));
        if !revision.is_modern() {
            self.say(requests::INITIALIZED);
        }
        self.revision = Some(revision);
        hello
    }

    /// Sends a request with these params, a JSON object, and returns what comes back. It asks for progress, and from 2026-07-28
    /// on for log messages of all levels.
    ///
    /// # Panics
    /// If the conversation is not [open](Self::open), or the params are not a JSON object.
    pub fn request(&mut self, method: &str, params: &dyn Arguments) -> Reply {
        let Some(revision) = self.revision else {
            panic!("open the conversation first: conversation.open(Revision::V2026_07_28)");
        };
        let params = requests::json(params);
        let object = Raw::parse(params.as_bytes()).ok().filter(|raw| raw.kind() == JsonKind::Object);
        let Some(members) = object.and_then(|raw| raw.as_str().strip_prefix('{')?.strip_suffix('}')) else {
            panic!("the params of {method} are not a JSON object: {params}");
        };
        let id = self.next_id();
        Reply::of(self.say(&requests::request(revision, &id, method, members.trim(), &self.capabilities)))
    }

    /// Calls a tool, `tools/call`, with arguments that are written as a JSON object, and checks the structured content of its
    /// result against its output schema, as far as [`check`] looks. `&()` means no arguments.
    ///
    /// # Panics
    /// If the result does not fit the schema, or has no structured content though the tool has an output schema and has
    /// not failed; and as [`request`](Self::request).
    pub fn call(&mut self, name: &str, arguments: &dyn Arguments) -> Reply {
        let reply = self.request_with("tools/call", "name", name, arguments);
        let is_result = !reply.is_pending() && reply.error().is_none() && reply.result().get("content").is_some();
        // A result that is not the tool's own, like a question or a task, has no `content`.
        if is_result && !reply.is_error() {
            self.check_output(name, reply.result());
        }
        reply
    }

    /// Reads a resource, `resources/read`.
    ///
    /// # Panics
    /// As [`request`](Self::request).
    pub fn read(&mut self, uri: &str) -> Reply {
        self.request_with("resources/read", "uri", uri, &())
    }

    /// Fills in a prompt, `prompts/get`. `&()` means no arguments.
    ///
    /// # Panics
    /// As [`request`](Self::request).
    pub fn prompt(&mut self, name: &str, arguments: &dyn Arguments) -> Reply {
        self.request_with("prompts/get", "name", name, arguments)
    }

    fn request_with(&mut self, method: &str, key: &str, value: &str, arguments: &dyn Arguments) -> Reply {
        let arguments = match requests::json(arguments).as_str() {
            "null" => String::new(),
            json => format!(r#","arguments":{json}"#),
        };
        let params = format!(r#"{{"{key}":{}{arguments}}}"#, requests::json_string(value));
        match Raw::parse(params.as_bytes()) {
            Ok(params) => self.request(method, &params),
            Err(error) => panic!("the params of {method} are not JSON: {error}: {params}"),
        }
    }

    fn check_output(&mut self, name: &str, result: Raw<'_>) {
        let tools = self.aside(|aside, _| aside.list("tools/list", "tools"));
        let is_called =
            |tool: &Raw<'_>| tool.get("name").and_then(|own| own.text()).is_some_and(|own| own.eq_str(name));
        let mut tools = tools.iter().filter_map(|tool| Raw::parse(tool.as_bytes()).ok());
        let Some(schema) = tools.find(is_called).and_then(|tool| tool.get("outputSchema")) else { return };
        let Some(content) = result.get("structuredContent") else {
            panic!("the tool {name:?} has an output schema, and answers without structuredContent: {result}");
        };
        if let Some(mismatch) = check(schema, content, &SchemaLimits::DEFAULT).mismatches.first() {
            panic!("the answer of {name:?} does not fit its output schema: {mismatch}\n{content}\nschema: {schema}");
        }
    }

    /// Returns all that clients see of the service, in the revision of the conversation or the newest: its name (without the
    /// version, which changes with each release), capabilities and instructions, and the entries of its lists with each member on a line of its own, like
    /// `tools/add/inputSchema/properties/a/type: "integer"`. Keep it in a file, with [`assert_snapshot`]: a diff of that
    /// file shows what a client will notice.
    pub fn snapshot(&mut self) -> String {
        const LISTS: [(&str, &str, &str); 4] = [
            ("tools/list", "tools", "name"),
            ("resources/list", "resources", "uri"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate"),
            ("prompts/list", "prompts", "name"),
        ];
        self.aside(|aside, hello| {
            let mut text = String::new();
            for (name, value) in hello.result().members() {
                // These belong to the library, or to the one message.
                if !["protocolVersion", "supportedVersions", "resultType", "ttlMs", "cacheScope"]
                    .iter()
                    .any(|own| name.eq_str(own))
                {
                    snapshot::flatten(&name.to_string(), value, &mut text);
                }
            }
            let mut text: String =
                text.split_inclusive('\n').filter(|line| !line.contains("serverInfo/version: ")).collect();
            for (method, list, key) in LISTS {
                for entry in aside.list(method, list) {
                    let Ok(entry) = Raw::parse(entry.as_bytes()) else { continue };
                    let name = entry.get(key).and_then(|name| name.text()).map(|name| name.to_string());
                    snapshot::flatten(&format!("{list}/{}", name.unwrap_or_default()), entry, &mut text);
                }
            }
            text
        })
    }

    /// Asks the service on another connection, which this one does not notice: for the questions of the test itself. It is open in the
    /// revision of this one, or in the newest that the service has; `ask` gets the reply too.
    fn aside<R>(&mut self, ask: impl FnOnce(&mut Self, &Reply) -> R) -> R {
        let newest = Revision::ALL.into_iter().max_by_key(|revision| revision.date()).unwrap_or(Revision::V2025_11_25);
        let whole = Rhythm::new(Delivery::Whole);
        let line = (std::mem::replace(&mut self.server, session()), std::mem::replace(&mut self.rhythm, whole));
        let own = (self.revision, self.requests, std::mem::replace(&mut self.capabilities, CAPABILITIES.into()));
        let mut hello = self.hello(own.0.unwrap_or(newest));
        if own.0.is_none() && hello.error().is_some() {
            hello = self.hello(Revision::V2025_11_25);
        }
        let answer = ask(self, &hello);
        (self.server, self.rhythm) = line;
        (self.revision, self.requests, self.capabilities) = own;
        answer
    }

    /// Returns all entries of a list. Empty if the service does not have it.
    fn list(&mut self, method: &str, key: &str) -> Vec<String> {
        let (mut all, mut params) = (Vec::new(), "{}".to_owned());
        for _ in 0..TURNS {
            let Ok(own) = Raw::parse(params.as_bytes()) else { break };
            let reply = self.request(method, &own);
            if reply.error().is_some() {
                break;
            }
            let result = reply.result();
            all.extend(result.get(key).into_iter().flat_map(|list| list.items()).map(|item| item.as_str().to_owned()));
            match result.get("nextCursor") {
                Some(next) => params = format!(r#"{{"cursor":{next}}}"#),
                None => break,
            }
        }
        all
    }

    fn next_id(&mut self) -> String {
        self.requests += 1;
        format!("test-{}", self.requests)
    }

    /// Sends one line, given without its newline. Returns the lines that come back.
    pub fn say(&mut self, line: &str) -> Vec<String> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let (mut rest, mut received) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let wanted = self.rhythm.piece(rest.len());
            let space = self.server.space();
            let n = space.len().min(wanted).min(rest.len());
            let (now, later) = rest.split_at(n);
            space[..n].copy_from_slice(now);
            self.server.filled(n);
            rest = later;
            self.run(&mut received);
        }
        lines(&received)
    }

    /// Runs until the server needs input. What it sends is added to `received`.
    ///
    /// # Panics
    /// If the server does not come to rest.
    fn run(&mut self, received: &mut Vec<u8>) {
        for _ in 0..TURNS {
            let next = self.server.run(self.service, &mut self.state);
            received.extend_from_slice(self.server.out.pending());
            let sent = self.server.out.pending().len();
            self.server.out.sent(sent);
            if next == NextStep::Read {
                return;
            }
        }
        panic!("the server does not come to rest");
    }

    /// Lets time pass. Returns the lines that the server sends.
    pub fn wait(&mut self, millis: Millis) -> Vec<String> {
        self.now += millis;
        self.server.server.expire(self.now);
        self.heard()
    }

    /// Publishes a change. Returns the lines that the server sends.
    ///
    /// # Panics
    /// If the service does not declare it: no client would hear of the change. The message has the line to add.
    pub fn publish(&mut self, change: ServerChange<'_>) -> Vec<String> {
        assert_declared(self.service, change);
        self.server.server.publish(change);
        self.heard()
    }

    /// Takes what threads and tasks have sent to the server with a [`LateSender`](crate::LateSender); waits for it, at most so
    /// long. Returns the lines that the server sends: none if nothing has come.
    pub fn hear(&mut self, late: &mut LateReceiver<S>, at_most: Duration) -> Vec<String>
    where
        S: 'static,
    {
        if !late.wait(at_most) {
            return Vec::new();
        }
        while late.give(&mut self.server, self.service, &mut self.state) {}
        self.heard()
    }

    /// Answers a request that was put off. Returns the lines that the server sends.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer<R: LateRequest>(
        &mut self,
        request: R,
        answer: impl FnOnce(&mut S, &mut R::Context<'_>) -> HandlerResult,
    ) -> Result<Vec<String>, RespondError> {
        self.server.answer(self.service, &mut self.state, request, answer)?;
        Ok(self.heard())
    }

    /// Resumes a request that its handler has suspended. Returns the lines that the server sends.
    ///
    /// # Errors
    /// As [`Server::wake`](mcp_sansio::server::Server::wake).
    pub fn resume(&mut self, token: RequestToken) -> Result<Vec<String>, RespondError> {
        self.server.server.wake(token)?;
        Ok(self.heard())
    }

    /// Ends the input. Requests that are still put off get an error. Returns the last lines.
    pub fn finish(&mut self) -> Vec<String> {
        self.server.end_of_input();
        let mut last = self.heard();
        let _ = self.server.abandon();
        last.extend(self.heard());
        last
    }

    /// Returns the state of the handlers.
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// Runs until the server needs input. Returns the lines that it sends.
    fn heard(&mut self) -> Vec<String> {
        let mut received = Vec::new();
        self.run(&mut received);
        lines(&received)
    }
}

/// Fails the test if the service does not declare the capability of a change: no client would hear of it.
///
/// # Panics
/// As said.
fn assert_declared<S>(service: &Service<'_, S>, change: ServerChange<'_>) {
    let Some(capability) = change.capability() else { return };
    assert!(
        service.about().has(capability),
        "{change:?} is published, but not declared: no client is told of it. Add `.feature(ServerCapability::{capability:?})` to the service"
    );
}

/// Gives the sizes of pieces, one after the other.
#[derive(Debug)]
struct Rhythm {
    cut: Delivery,
    seed: u64,
}

impl Rhythm {
    const fn new(cut: Delivery) -> Self {
        let seed = if let Delivery::Random(seed) = cut { seed | 1 } else { 1 };
        Rhythm { cut, seed }
    }

    /// Returns the size of the next piece of `left` bytes.
    fn piece(&mut self, left: usize) -> usize {
        match self.cut {
            Delivery::Whole => left,
            Delivery::Bytes => 1,
            Delivery::Pieces(size) => size.max(1),
            Delivery::Random(_) => 1 + (self.random() % 64) as usize,
        }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }
}

/// A client and a service on one connection in memory. Bytes move in pieces, and time passes on demand.
///
/// ```
/// use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request};
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// use mcp_sansio_host::testing::{Delivery, ClientServerPair};
///
/// fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     call.text("hello")
/// }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
///
/// let service = Service::new("greeter", "1.0").tools(&TOOLS);
/// let info = ClientInfo::new("editor", "1.0");
/// let mut pair = ClientServerPair::new(&info, &service, ()).cut(Delivery::Random(7));
/// let mut heard = Vec::new();
/// pair.client.client.connect();
/// pair.run(&mut |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
///     ClientEvent::Connected(_) => drop(handle.send(&Request::call("hello"))),
///     ClientEvent::Done { outcome: Ok(result), .. } => heard.push(result.to_string()),
///     other => panic!("{other:?}"),
/// });
/// assert!(heard[0].contains(r#""text":"hello""#));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientServerPair<'p, S: 'static> {
    /// The service.
    pub service: &'p Service<'p, S>,
    /// The state of the handlers.
    pub state: S,
    /// The side of the server.
    pub server: LineServer<'static, LineSink<Vec<u8>>>,
    /// The side of the client.
    pub client: LineClient<'p, LineSink<Vec<u8>>>,
    /// The number of bytes that have moved.
    pub moved: usize,
    /// The connection is broken.
    pub is_broken: bool,
    rhythm: Rhythm,
    now: Millis,
    /// The connection breaks when this many bytes have moved.
    breaks_at: usize,
}

/// The longest message that the client of a [`ClientServerPair`] takes, in bytes.
const MESSAGE: usize = 16 << 20;

impl<'p, S> ClientServerPair<'p, S> {
    /// Makes both ends of a connection. Open it by `pair.client.client.connect()`.
    #[must_use]
    pub fn new(info: &'p ClientInfo<'p>, service: &'p Service<'p, S>, state: S) -> Self {
        ClientServerPair {
            service,
            state,
            server: session(),
            client: LineClient::growing(info, MESSAGE, LineSink::new(Vec::new())),
            rhythm: Rhythm::new(Delivery::Whole),
            now: 0,
            moved: 0,
            breaks_at: usize::MAX,
            is_broken: false,
        }
    }

    /// Sets how the bytes of both directions are cut. Default: whole. With [`Delivery::Random`] the direction of each piece
    /// is random too.
    #[must_use]
    pub fn cut(mut self, cut: Delivery) -> Self {
        self.rhythm = Rhythm::new(cut);
        self
    }

    /// Breaks the connection when this many bytes have moved, in both directions together.
    #[must_use]
    pub const fn breaks_at(mut self, bytes: usize) -> Self {
        self.breaks_at = bytes;
        self
    }

    /// Moves one piece. Returns `false` if both ends are at rest.
    pub fn step(&mut self, handler: &mut dyn ClientHandler) -> bool {
        self.work(handler);
        let (up, down) = (!self.client.out.pending().is_empty(), !self.server.out.pending().is_empty());
        let random = matches!(self.rhythm.cut, Delivery::Random(_)) && self.rhythm.random() & 64 != 0;
        let moved = if up && !(down && random) { self.upwards() } else { self.downwards() };
        self.moved += moved;
        if self.moved >= self.breaks_at && !self.is_broken {
            self.break_off();
        }
        self.work(handler);
        moved > 0
    }

    /// Moves pieces until both ends are at rest.
    ///
    /// # Panics
    /// If they do not come to rest.
    pub fn run(&mut self, handler: &mut dyn ClientHandler) {
        for _ in 0..TURNS {
            if !self.step(handler) {
                return;
            }
        }
        panic!("client and server do not come to rest");
    }

    /// Lets time pass, and runs both ends.
    pub fn wait(&mut self, millis: Millis, handler: &mut dyn ClientHandler) {
        self.now += millis;
        self.run(handler);
    }

    /// Publishes a change on the side of the server.
    ///
    /// # Panics
    /// As [`Conversation::publish`].
    pub fn publish(&mut self, change: ServerChange<'_>) {
        assert_declared(self.service, change);
        self.server.server.publish(change);
    }

    /// Breaks the connection. Bytes on the way are lost, and both ends see the end of their input.
    pub fn break_off(&mut self) {
        self.is_broken = true;
        self.drop_pending();
        self.client.end_of_input();
        self.server.end_of_input();
    }

    /// Breaks the connection and opens another one, to a server that has just started. Subscriptions go on.
    pub fn reconnect(&mut self) {
        self.drop_pending();
        (self.is_broken, self.breaks_at) = (false, usize::MAX);
        self.server = session();
        self.client.reconnect(TransportError::Closed);
    }

    fn drop_pending(&mut self) {
        let (up, down) = (self.client.out.pending().len(), self.server.out.pending().len());
        self.client.out.sent(up);
        self.server.out.sent(down);
    }

    fn work(&mut self, handler: &mut dyn ClientHandler) {
        // Their sinks are never full: both run until they need input.
        let _ = self.client.run(self.now, handler);
        self.server.server.expire(self.now);
        let _ = self.server.run(self.service, &mut self.state);
        if self.is_broken {
            self.drop_pending();
        }
    }

    /// Moves a piece from the client to the server.
    fn upwards(&mut self) -> usize {
        let (pending, space) = (self.client.out.pending(), self.server.space());
        let most = pending.len().min(space.len()).min(self.breaks_at - self.moved);
        let n = self.rhythm.piece(most).min(most);
        space[..n].copy_from_slice(&pending[..n]);
        self.server.filled(n);
        self.client.out.sent(n);
        n
    }

    /// Moves a piece from the server to the client.
    fn downwards(&mut self) -> usize {
        let (pending, space) = (self.server.out.pending(), self.client.space());
        let most = pending.len().min(space.len()).min(self.breaks_at - self.moved);
        let n = self.rhythm.piece(most).min(most);
        space[..n].copy_from_slice(&pending[..n]);
        self.client.filled(n);
        self.server.out.sent(n);
        n
    }
}

#[cfg(test)]
mod tests {
    use mcp_sansio::client::{ClientEvent, ClientHandle, Request};
    use mcp_sansio::service::Tool;

    use super::*;
    use crate::Ignore;

    static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", |_, call| call.text("hello"))];
    const SERVICE: Service<'static, ()> = Service::new("greeter", "1.0").tools(&TOOLS);
    static PROFILE: ClientInfo<'static> = ClientInfo::new("editor", "1.0");

    fn connected(cut: Delivery) -> ClientServerPair<'static, ()> {
        let mut pair = ClientServerPair::new(&PROFILE, const { &SERVICE }, ()).cut(cut);
        pair.client.client.connect();
        pair.run(&mut Ignore);
        pair
    }

    #[test]
    fn pieces_have_their_sizes() {
        for (cut, size) in
            [(Delivery::Whole, 100), (Delivery::Bytes, 1), (Delivery::Pieces(7), 7), (Delivery::Pieces(0), 1)]
        {
            assert_eq!(Rhythm::new(cut).piece(100), size, "{cut:?}");
        }
        let sizes = |seed| {
            let mut rhythm = Rhythm::new(Delivery::Random(seed));
            (0..5_000).map(|_| rhythm.piece(100)).collect::<Vec<_>>()
        };
        assert_eq!((sizes(3).iter().min(), sizes(3).iter().max()), (Some(&1), Some(&64)));
        assert!(sizes(3) == sizes(3) && sizes(3) != sizes(5));
    }

    /// The client goes first, unless the direction is random.
    #[test]
    fn random_pieces_go_in_both_directions_in_turn() {
        for (cut, is_random) in [(Delivery::Bytes, false), (Delivery::Pieces(9), false), (Delivery::Random(5), true)] {
            let mut pair = connected(cut);
            for _ in 0..20 {
                pair.client.handle().send(&Request::call("hello")).unwrap();
            }
            let (mut ups, mut downs) = (0, 0);
            loop {
                let (up, down) = (pair.client.out.pending().len(), pair.server.out.pending().len());
                if !pair.step(&mut Ignore) {
                    break;
                }
                if up > 0 && down > 0 {
                    let went_up = pair.client.out.pending().len() < up;
                    (ups, downs) = (ups + u32::from(went_up), downs + u32::from(!went_up));
                }
            }
            assert!(ups > 10 && (downs > 10) == is_random && (downs == 0) != is_random, "{cut:?}: {ups} {downs}");
        }
    }

    #[test]
    fn a_connection_breaks_at_its_byte_and_opens_again() {
        let whole = connected(Delivery::Whole).moved;
        for at in [1, whole - 1, whole, whole + 1] {
            let mut pair = ClientServerPair::new(&PROFILE, const { &SERVICE }, ()).cut(Delivery::Bytes).breaks_at(at);
            pair.client.client.connect();
            pair.run(&mut Ignore);
            assert_eq!((pair.is_broken, pair.moved), (at <= whole, at.min(whole)), "{at} of {whole}");
            pair.break_off();
            assert!(pair.is_broken && !pair.step(&mut Ignore));
            pair.reconnect();
            let mut has_come = false;
            pair.run(&mut |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
                has_come |= matches!(event, ClientEvent::Connected(_));
            });
            assert!(has_come && !pair.is_broken && pair.moved > at.min(whole));
        }
    }
}
