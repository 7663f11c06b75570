//! [Layers](Layer) for servers on hosts: a journal, a switch that allows only what reads, limits of calls and of time. The journal and the
//! spans are layers of clients too, see [`ClientInfo::layers`](client::ClientInfo::layers).
//!
//! ```
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool, ToolAnnotations};
//! use mcp_sansio_host::layers::{Journal, RateLimit, ReadOnly};
//! use mcp_sansio_host::testing::Conversation;
//!
//! fn level(tank: &mut u32, call: &mut Call<'_>) -> HandlerResult {
//!     call.text(*tank)
//! }
//! static TOOLS: [Tool<u32>; 2] = [
//!     Tool::new("level", "Says the level", level).hints(ToolAnnotations::new().read_only(true)),
//!     Tool::new("drain", "Empties the tank", |tank, call| {
//!         *tank = 0;
//!         call.text("empty")
//!     }),
//! ];
//! let (journal, reads) = (Journal::new(Vec::new()), ReadOnly::new());
//! let limit = RateLimit::new(60, 1_000, 60_000);
//! let service = Service::new("plant", "1.0").tools(&TOOLS);
//! let layers: [&dyn mcp_sansio::service::Layer<u32>; 3] = [&journal, &limit, &reads];
//! let service = service.layers(&layers);
//! let mut talk = Conversation::new(&service, 7);
//! talk.open(mcp_sansio::revision::Revision::LATEST);
//! assert_eq!(talk.call("level", &()).text(), "7");
//! assert!(talk.call("drain", &()).is_error());
//! reads.set(false);
//! assert_eq!(talk.call("drain", &()).text(), "empty");
//! let lines = String::from_utf8(journal.with(|lines| lines.clone())).unwrap();
//! assert!(lines.contains(r#""method":"tools/call","name":"drain","outcome":"toolError""#), "{lines}");
//! ```

use std::collections::HashMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{self, PendingId, RequestError, ServerRequest, ServerRequestId, TransportError};
use mcp_sansio::json::{Object, Raw, Text};
use mcp_sansio::server::{Millis, RequestToken, RpcError};
use mcp_sansio::service::{HandlerError, Layer, LayerRequest, NotificationContext, Outcome, Receipt, SentMessage};
use mcp_sansio::sink::{Sink, to_vec};
use mcp_sansio::trace_context::TraceContext;

use crate::{LateSender, lock};

#[cfg(feature = "tracing")]
mod spans;

#[cfg(feature = "tracing")]
pub use spans::Spans;

type Passes = Result<Option<Receipt>, HandlerError>;

/// The most requests that a layer remembers at once. Beyond it the oldest is forgotten: its client has gone without a word.
const REMEMBERED: usize = 4_096;

/// The most characters of a method or a name in a journal.
const LONGEST: usize = 1_024;

/// A request to a server or of a client, or one of the server to a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Server(RequestToken),
    Client(PendingId),
    Question(ServerRequestId),
}

/// Requests that are not answered yet, each with the time when it came.
struct Open<T>(Mutex<HashMap<Key, (Millis, T)>>);

impl<T> Open<T> {
    fn new() -> Self {
        Open(Mutex::new(HashMap::new()))
    }

    fn add(&self, key: Key, now: Millis, entry: T) {
        let mut open = lock(&self.0);
        let oldest = || open.iter().min_by_key(|(_, (came, _))| *came).map(|(key, _)| *key);
        if let Some(oldest) = if open.len() >= REMEMBERED { oldest() } else { None } {
            open.remove(&oldest);
        }
        open.insert(key, (now, entry));
    }

    fn remove(&self, key: Key) -> Option<(Millis, T)> {
        lock(&self.0).remove(&key)
    }
}

/// A journal: a line of JSON for each request, when it is answered, and for each notification in both directions.
///
/// ```text
/// {"time":12,"who":"ann","method":"tools/call","name":"drain","outcome":"result","millis":3,"trace":"00-4bf9…-01"}
/// ```
///
/// `time` is that of the outcome on the server's clock, in milliseconds; `millis` the time since the request came. `who` is the
/// principal, `name` the tool, prompt or URI, cut off after 1,024 characters, `trace` the `traceparent`; one that is absent is left out. `outcome` is `result`,
/// `toolError` (a result with `isError`), `error` (with `code`), `cancelled`, `notified` (a notification of the client) or `sent` (one of
/// the server). Arguments and results are not in it. A line
/// that cannot be written is lost.
///
/// Of a client, the lines are the same, also for the requests of the server: `sent` are its own notifications, `notified` those of the
/// server, and an answer that did not come is `lost`, with the reason as `error`. Each client has a journal of its own: two clients have equal tokens.
pub struct Journal<W> {
    out: Mutex<W>,
    open: Open<Entry>,
}

struct Entry {
    who: Option<String>,
    method: String,
    name: Option<String>,
    trace: Option<String>,
}

impl Entry {
    fn new(who: Option<&str>, method: &str, name: Option<String>, trace: TraceContext<'_>) -> Self {
        let trace = trace.traceparent().map(|parent| parent.to_string());
        // What a client sends may be as long as a message, and stays if its client is gone without a word.
        let cut = |text: &str| text.chars().take(LONGEST).collect();
        Entry { who: who.map(str::to_owned), method: cut(method), name: name.as_deref().map(cut), trace }
    }
}

impl<W: Write + Send> Journal<W> {
    /// Makes a journal that writes to `out`. It is flushed after each line.
    pub fn new(out: W) -> Self {
        Journal { out: Mutex::new(out), open: Open::new() }
    }

    /// Calls a function with the output.
    pub fn with<T>(&self, act: impl FnOnce(&mut W) -> T) -> T {
        act(&mut lock(&self.out))
    }

    /// Writes the line of a notification.
    fn note(&self, who: Option<&str>, method: &str, words: &str, now: Millis) {
        let entry = Entry { who: who.map(str::to_owned), method: method.to_owned(), name: None, trace: None };
        self.write(&entry, words, Why::None, (now, now));
    }

    /// Writes the line of a request that has ended.
    fn end(&self, key: Key, words: &str, why: Why, now: Millis) {
        if let Some((came, entry)) = self.open.remove(key) {
            self.write(&entry, words, why, (came, now));
        }
    }

    fn write(&self, entry: &Entry, outcome: &str, why: Why, (came, now): (Millis, Millis)) {
        let line = to_vec(|out| {
            let mut object = Object::open(out);
            object.number("time", now);
            let mut text = |key, text: Option<&str>| {
                if let Some(text) = text {
                    object.text(key, text);
                }
            };
            text("who", entry.who.as_deref());
            text("method", Some(&entry.method));
            text("name", entry.name.as_deref());
            text("outcome", Some(outcome));
            if let Why::Lost(why) = why {
                object.shown("error", &why);
            }
            if let Why::Code(code) = why {
                let digits = code.to_string();
                object.raw("code", Raw::parse(digits.as_bytes()).unwrap_or(Raw::constant("0")));
            }
            object.number("millis", now.saturating_sub(came));
            if let Some(trace) = &entry.trace {
                object.text("trace", trace);
            }
            object.close();
        });
        let mut out = lock(&self.out);
        let line = [&*line.unwrap_or_default(), b"\n"].concat();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// The reason of an outcome.
#[derive(Clone, Copy)]
enum Why {
    None,
    Code(i32),
    Lost(TransportError),
}

mcp_sansio::debug_fields!(impl<W> for Journal<W> {});

impl<S, W: Write + Send> Layer<S> for Journal<W> {
    fn request(&self, _: &mut S, request: &mut LayerRequest<'_, '_>) -> Passes {
        let (method, name) = (request.method.to_string(), request.name.map(|name| name.to_string()));
        let entry = Entry::new(request.principal(), &method, name, request.trace_context());
        self.open.add(Key::Server(request.token()), request.now(), entry);
        Ok(None)
    }

    fn outcome(&self, _: &mut S, token: RequestToken, outcome: Outcome, now: Millis) {
        let (words, why) = match outcome {
            Outcome::Later => return,
            Outcome::Result => ("result", Why::None),
            Outcome::ToolError => ("toolError", Why::None),
            Outcome::Error(code) => ("error", Why::Code(code)),
            _ => return drop(self.open.remove(Key::Server(token))),
        };
        self.end(Key::Server(token), words, why, now);
    }

    fn notification(
        &self,
        _: &mut S,
        heard: &NotificationContext<'_>,
        cancels: Option<RequestToken>,
        now: Millis,
    ) -> bool {
        if let Some(token) = cancels {
            self.end(Key::Server(token), "cancelled", Why::None, now);
        }
        self.note(heard.principal, &heard.method.to_string(), "notified", now);
        true
    }

    fn sends(&self, sent: &SentMessage<'_>, _: &mut dyn Sink) -> bool {
        // Answers have an outcome.
        if sent.token.is_none() {
            self.note(None, sent.method, "sent", sent.now);
        }
        true
    }
}

impl<W: Write + Send> client::Layer for Journal<W> {
    fn request(&self, request: &mut client::LayerRequest<'_>) -> bool {
        let name = name_of(request);
        let entry = Entry::new(None, request.method, name, request.trace_context());
        self.open.add(Key::Client(request.token), request.now, entry);
        true
    }

    fn outcome<'a>(&self, token: PendingId, outcome: &mut Result<Raw<'a>, RequestError<'a>>, now: Millis) {
        let (words, why) = match outcome {
            Ok(result) if is_tool_error(*result) => ("toolError", Why::None),
            Ok(_) => ("result", Why::None),
            Err(RequestError::Error(error)) => ("error", Why::Code(error.code)),
            Err(RequestError::Lost(why)) => ("lost", Why::Lost(*why)),
        };
        self.end(Key::Client(token), words, why, now);
    }

    fn dropped(&self, token: PendingId, cancelled: bool, now: Millis) {
        match cancelled {
            true => self.end(Key::Client(token), "cancelled", Why::None, now),
            false => drop(self.open.remove(Key::Client(token))),
        }
    }

    fn notification(&self, method: Text<'_>, _: Option<Raw<'_>>, now: Millis) -> bool {
        self.note(None, &method.to_string(), "notified", now);
        true
    }

    fn question(&self, question: &ServerRequest<'_>, now: Millis) -> Result<(), RpcError<'static>> {
        self.open.add(
            Key::Question(question.id),
            now,
            Entry::new(None, question.kind.method(), None, question.trace_context()),
        );
        Ok(())
    }

    fn answered<'a>(
        &self,
        question: ServerRequestId,
        answer: &mut Result<ClientResult<'a>, RpcError<'a>>,
        now: Millis,
    ) {
        match answer {
            Ok(_) => self.end(Key::Question(question), "result", Why::None, now),
            Err(error) => self.end(Key::Question(question), "error", Why::Code(error.code), now),
        }
    }

    fn sends(&self, method: &str, now: Millis, _: &mut dyn Sink) -> bool {
        self.note(None, method, "sent", now);
        true
    }
}

/// Returns the tool or prompt that a request names, or the URI of the resource.
fn name_of(request: &client::LayerRequest<'_>) -> Option<String> {
    let mut is_text = false;
    let json = to_vec(|out| is_text = ["name", "uri"].iter().any(|member| request.text(member, out)));
    Raw::parse(&json.ok()?).ok().filter(|_| is_text)?.text().map(|text| text.to_string())
}

fn is_tool_error(result: Raw<'_>) -> bool {
    result.get("isError").and_then(|is| is.bool()) == Some(true)
}

/// A switch that allows only tools with `readOnlyHint`. Calls of other tools get a result with `isError`. It is on at the start.
///
/// The hint is the word of the tool's author: it is no protection from a tool that is wrong about itself. Resources, prompts and
/// subscriptions only read; methods of extensions pass.
#[derive(Debug)]
pub struct ReadOnly(AtomicBool);

impl ReadOnly {
    /// Makes a switch that is on.
    #[must_use]
    pub const fn new() -> Self {
        ReadOnly(AtomicBool::new(true))
    }

    /// Turns it on or off, from any thread. It counts for the next request.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }
}

impl Default for ReadOnly {
    fn default() -> Self {
        ReadOnly::new()
    }
}

impl<S> Layer<S> for ReadOnly {
    fn request(&self, _: &mut S, request: &mut LayerRequest<'_, '_>) -> Passes {
        // A tool that the caller does not have is answered as unknown.
        let writes = request.tool_hints.is_some_and(|hints| hints.read_only != Some(true));
        match writes && self.0.load(Ordering::Acquire) {
            true => Err("Only tools that change nothing are allowed now".into()),
            false => Ok(None),
        }
    }
}

/// A limit of requests in a time: a share for each principal, and a total. Callers without a principal have one share together.
/// Beyond it a request is refused with error -32603, before its handler runs. Each counts, but `ping`: a refused one looks like a
/// dead server.
///
/// The time begins with the first request, and anew with the first one after its end.
#[derive(Debug)]
pub struct RateLimit {
    share: u32,
    total: u32,
    per: Millis,
    spent: Mutex<Spent>,
}

#[derive(Debug)]
struct Spent {
    since: Millis,
    total: u32,
    by: HashMap<Option<String>, u32>,
}

impl RateLimit {
    /// Allows `share` requests of one principal and `total` of all, in each `per` milliseconds. It keeps the names of the
    /// principals that have asked in this time: at most `total`.
    #[must_use]
    pub fn new(share: u32, total: u32, per: Millis) -> Self {
        RateLimit { share, total, per, spent: Mutex::new(Spent { since: 0, total: 0, by: HashMap::new() }) }
    }

    fn takes(&self, who: Option<&str>, now: Millis) -> bool {
        let mut spent = lock(&self.spent);
        if spent.total == 0 || now.saturating_sub(spent.since) >= self.per {
            *spent = Spent { since: now, total: 0, by: HashMap::new() };
        }
        let who = who.map(str::to_owned);
        if spent.total >= self.total || spent.by.get(&who).is_some_and(|own| *own >= self.share) || self.share == 0 {
            return false;
        }
        spent.total += 1;
        *spent.by.entry(who).or_default() += 1;
        true
    }
}

impl<S> Layer<S> for RateLimit {
    fn request(&self, _: &mut S, request: &mut LayerRequest<'_, '_>) -> Passes {
        match request.method.eq_str("ping") || self.takes(request.principal(), request.now()) {
            true => Ok(None),
            false => Err(RpcError::internal("Too many requests: try again later").into()),
        }
    }

    fn outcome(&self, _: &mut S, _: RequestToken, outcome: Outcome, _: Millis) {
        if outcome == Outcome::Again {
            // It comes again, and was counted. Whose it was does not matter for the total; a share errs on the strict side.
            let mut spent = lock(&self.spent);
            spent.total = spent.total.saturating_sub(1);
        }
    }
}

/// A limit of the time that an answer may take: requests that were put off are failed with error -32603. A handler that runs
/// cannot be stopped.
#[derive(Debug)]
pub struct Timeout<S: 'static> {
    late: LateSender<S>,
    after: Millis,
    open: Open<()>,
}

impl<S: 'static> Timeout<S> {
    /// Fails requests through `late` that are not answered after this time.
    pub fn new(late: LateSender<S>, after: Millis) -> Self {
        Timeout { late, after, open: Open::new() }
    }

    /// Returns when to call [`expire`](Timeout::expire), on the server's clock; `None` while nothing waits.
    pub fn next_deadline(&self) -> Option<Millis> {
        lock(&self.open.0).values().map(|(came, ())| came.saturating_add(self.after)).min()
    }

    /// Fails the requests whose time is over. Call it from the loop, or from a thread of its own.
    pub fn expire(&self, now: Millis) {
        let mut open = lock(&self.open.0);
        let over: Vec<_> = open.extract_if(|_, (came, ())| now.saturating_sub(*came) >= self.after).collect();
        drop(open);
        for (key, _) in over {
            let Key::Server(token) = key else { continue };
            // It may be answered by now; then there is nothing to fail.
            let _ = self.late.fail(token, &RpcError::internal("It took too long"));
        }
    }
}

impl<T> std::fmt::Debug for Open<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Open").field(&lock(&self.0).len()).finish()
    }
}

impl<S: 'static> Layer<S> for Timeout<S> {
    fn request(&self, _: &mut S, request: &mut LayerRequest<'_, '_>) -> Passes {
        self.open.add(Key::Server(request.token()), request.now(), ());
        Ok(None)
    }

    fn outcome(&self, _: &mut S, token: RequestToken, outcome: Outcome, _: Millis) {
        if outcome != Outcome::Later {
            self.open.remove(Key::Server(token));
        }
    }

    fn notification(&self, _: &mut S, _: &NotificationContext<'_>, cancels: Option<RequestToken>, _: Millis) -> bool {
        cancels.map(|token| self.open.remove(Key::Server(token)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_request_is_forgotten() {
        let open = Open::new();
        let key = |number: usize| Key::Server(RequestToken::from_bits(number as u64 + 1));
        for number in 0..REMEMBERED + 2 {
            open.add(key(number), number as Millis, ());
        }
        let there = [0, 1, 2, REMEMBERED + 1].map(|number| open.remove(key(number)).is_some());
        assert_eq!((there, lock(&open.0).len()), ([false, false, true, true], REMEMBERED - 2));
    }
}
