//! One connection and the exchange on it: its states and their transitions.

use crate::sse::{SseDecoder, SseItem};
use mcp_sansio::machine;
use mcp_sansio::memory::Store;
use mcp_sansio::rpc::Envelope;
use mcp_sansio::sink::{FullError, MessageHead, Sink, copy};
use mcp_sansio::time::{Millis, jittered};

use super::config::TransportKind;
use super::event::{FailureReason, HttpClientEvent, SocketAction};
use super::input::Input;
use super::origin::{OriginState, Sse};
use super::outgoing::{Outgoing, Repeated};
use super::reply::{Content, Framing, Reply, values};
use super::task::{Class, Purpose, Task, Topic, is_modern_error};
use super::{ListenState, head};

/// Causes of transitions.
const MOVED: &str = "redirected, or the kept connection was gone";
const END_OF_BODY: &str = "the body has come to its end";

/// The longest time before a stream is resumed that a server may ask for: an hour.
const RETRY_MOST: Millis = 3_600_000;
/// The least one: a tenth of a second.
const RETRY_LEAST: Millis = 100;

/// The state of an exchange. Only this file changes it.
// With a tag of its own: each turn looks at all slots, and a tag within a field takes ten times as long to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum ExchangeState {
    /// No exchange. A connection may be kept for the next one.
    Free,
    /// The caller is writing a message.
    Writing,
    /// The message is written and waits for another exchange.
    Held { until: Hold },
    /// Waits for the driver to connect. If `dialing` is not set, the driver has no order to connect yet.
    Connecting { dialing: bool },
    /// The connection could not be opened.
    Refused,
    /// The request goes out; the head of the response is awaited.
    Head,
    /// The body of the response is being read.
    Body { part: Part },
    /// An event of a stream waits for the caller. Then the stream continues, unless `lost` is a reason to fail.
    Item { found: StreamItem, lost: Option<FailureReason> },
    /// The request is answered. The rest of the body is read, so that the connection can be used again.
    Drain,
    /// The message is posted (HTTP with SSE). The response comes on the stream.
    Elsewhere,
    /// The stream broke. It is resumed at the deadline.
    Backoff,
    /// A challenge waits for the caller, who then decides, unless `lost` is a reason to fail.
    Challenge { status: u16, lost: Option<FailureReason> },
    /// The caller has the challenge and decides.
    Challenged,
    /// The last event waits for the caller.
    Over { end: End },
}

/// The event that a written message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The `endpoint` event, which carries the URL to post to (HTTP with SSE).
    Endpoint,
    /// The `endpoint` event, for an `initialize` that was refused. If no such event comes, the refusal is the
    /// answer.
    Fallback,
    /// The answer to `notifications/initialized`: a server may refuse requests that arrive before it.
    Initialized,
}

/// The connection of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Open,
    /// The server closed it in order. The bytes received before are still read.
    Closed,
    /// It broke, or was never open. The bytes received before are still read.
    Cut,
}

/// The use of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The body is the response.
    Json,
    /// The body is a stream of events.
    Stream,
    /// The body describes an HTTP status that means an error.
    Error,
    Skip,
}

/// The kind of an event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamItem {
    Message,
    /// The response to the request of this exchange.
    Response,
    /// The response to another request.
    ResponseTo(u64),
    /// An event that is dropped.
    Skipped(FailureReason),
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The response arrived and is kept.
    Response,
    Failed(FailureReason),
    /// The legacy session ended.
    SessionEnded,
}

/// All transitions of an [`ExchangeState`]: from, to, cause. The diagram in `docs/internals/state-machines.md` shows the same.
pub(crate) const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Free", "Writing", "the caller begins a message, or a stream is wanted"),
    ("Free", "Over", "failed"),
    ("Free", "Free", "abandoned"),
    ("Writing", "Held", "something must happen first"),
    ("Writing", "Free", "the message is rolled back"),
    ("Writing", "Connecting", "there is no connection"),
    ("Writing", "Head", "a kept connection is used"),
    ("Held", "Connecting", "there is no connection"),
    ("Held", "Head", "a kept connection is used"),
    ("Writing", "Over", "failed"),
    ("Writing", "Over", "the session is ended"),
    ("Writing", "Free", "the stream is given up"),
    ("Writing", "Free", "abandoned"),
    ("Held", "Over", "answered"),
    ("Held", "Over", "failed"),
    ("Held", "Free", "abandoned"),
    ("Connecting", "Connecting", "the driver connects"),
    ("Connecting", "Head", "connected"),
    ("Connecting", "Refused", "no connection could be made"),
    ("Connecting", "Backoff", "a stream is tried again later"),
    ("Connecting", "Over", "failed"),
    ("Connecting", "Over", "the session is ended"),
    ("Connecting", "Free", "the stream is given up"),
    ("Connecting", "Free", "abandoned"),
    ("Refused", "Backoff", "a stream is tried again later"),
    ("Refused", "Over", "failed"),
    ("Refused", "Over", "the session is ended"),
    ("Refused", "Free", "the stream is given up"),
    ("Refused", "Free", "abandoned"),
    ("Head", "Body", "the head has come"),
    ("Head", "Connecting", "redirected, or the kept connection was gone"),
    ("Head", "Challenge", "401 or 403"),
    ("Head", "Backoff", "a stream is tried again later"),
    ("Head", "Over", "failed"),
    ("Head", "Over", "the session is ended"),
    ("Head", "Free", "the stream is given up"),
    ("Head", "Free", "abandoned"),
    ("Body", "Item", "an event has come"),
    ("Body", "Held", "initialize was refused: HTTP with SSE is tried"),
    ("Body", "Elsewhere", "a request was accepted (HTTP with SSE)"),
    ("Body", "Over", "answered"),
    ("Body", "Free", "the body has come to its end"),
    ("Body", "Backoff", "a stream is tried again later"),
    ("Body", "Over", "failed"),
    ("Body", "Over", "the session is ended"),
    ("Body", "Free", "the stream is given up"),
    ("Body", "Free", "abandoned"),
    ("Item", "Item", "the session is lost"),
    ("Item", "Body", "told, and the stream goes on"),
    ("Item", "Drain", "told, and it was the response"),
    ("Item", "Over", "failed"),
    ("Item", "Free", "abandoned"),
    ("Drain", "Free", "the body has come to its end"),
    ("Drain", "Free", "abandoned"),
    ("Elsewhere", "Over", "failed"),
    ("Elsewhere", "Free", "abandoned"),
    ("Backoff", "Connecting", "the deadline has passed"),
    ("Backoff", "Over", "failed"),
    ("Backoff", "Free", "the stream is given up"),
    ("Backoff", "Free", "abandoned"),
    ("Challenge", "Challenge", "the session is lost"),
    ("Challenge", "Challenged", "told"),
    ("Challenge", "Over", "failed"),
    ("Challenge", "Free", "abandoned"),
    ("Challenged", "Connecting", "sent again with other headers"),
    ("Challenged", "Over", "failed"),
    ("Challenged", "Free", "the stream is given up"),
    ("Challenged", "Free", "abandoned"),
    ("Over", "Free", "told"),
    ("Over", "Free", "abandoned"),
];

machine!(ExchangeState, TRANSITIONS:
    Free Writing Held Connecting Refused Head Body Item Drain Elsewhere Backoff Challenge Challenged Over);

/// Storage for one connection and its exchange.
pub struct ExchangeSlot<'m> {
    /// The number of this slot.
    pub(crate) at: usize,
    state: ExchangeState,
    wire: Wire,
    /// The driver must close a connection before it opens the next one.
    close: bool,
    pub(crate) deadline: Option<Millis>,
    /// The deadline was set since the driver last gave the time.
    fresh: bool,
    pub(crate) task: Task,
    pub(crate) outgoing: Outgoing<'m>,
    input: Input<'m>,
    /// Keeps events, a body, or a text of the head.
    decoder: SseDecoder<'m>,
    /// Number of bytes of a body or text in the store of `decoder`.
    kept: usize,
    /// Facts of the response's head that are needed later.
    status: u16,
    retry_after: Option<u32>,
    keep_alive: bool,
    /// The connection has carried an exchange before this one.
    reused: bool,
    /// The server answered in this exchange.
    heard: bool,
    /// The head waits for the caller's headers ([`sign`](ExchangeSlot::sign)).
    unsigned: bool,
    /// The number of the credentials in the head, with which the message went out last.
    pub(crate) credentials: u32,
    /// The caller decided about the challenge. The exchange continues when the driver gives the time, since the
    /// decision may have taken long.
    pub(crate) resumed: bool,
}

/// The default limit of messages in bytes.
#[cfg(feature = "alloc")]
pub(crate) const MOST: usize = 16 << 20;

// Leaves the bytes out: headers may be secret.
mcp_sansio::debug_fields!(impl for ExchangeSlot<'_> { state });

impl<'m> ExchangeSlot<'m> {
    /// Makes a slot over lent storage: `input` takes at least a response's head, `message` the largest message
    /// received, and `output` the largest message sent with its head (1 KiB, more if long headers are set).
    pub fn new(input: impl Into<Store<'m>>, message: impl Into<Store<'m>>, output: impl Into<Store<'m>>) -> Self {
        ExchangeSlot {
            at: 0,
            state: ExchangeState::Free,
            wire: Wire::Cut,
            close: false,
            deadline: None,
            fresh: false,
            task: Task::NONE,
            outgoing: Outgoing::new(output.into()),
            input: Input::new(input.into()),
            decoder: SseDecoder::new(message),
            kept: 0,
            status: 0,
            retry_after: None,
            keep_alive: false,
            reused: false,
            heard: false,
            unsigned: false,
            credentials: 0,
            resumed: false,
        }
    }

    /// Makes a slot with memory from the allocator, for messages of at most `limit` bytes.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn growing(limit: usize) -> Self {
        let room = limit.saturating_add(1 << 16);
        Self::new(Store::growing(1 << 16), Store::growing(limit), Store::growing(room))
    }

    /// Enters another state.
    fn enter(&mut self, cause: &'static str, next: ExchangeState) {
        #[cfg(all(test, feature = "alloc"))]
        super::tests::states::enter((self.state.name(), next.name(), cause));
        self.state.enter(cause, next);
    }

    // Writing a message.

    /// Begins a message. Fails if there is no room for what is kept of its head.
    pub(crate) fn begin(&mut self, head: MessageHead<'_>, origin: &OriginState<'_>) -> Result<(), FullError> {
        self.begin_task(Task::of(head));
        let MessageHead::Request(request) = head else { return Ok(()) };
        let kept = self.outgoing.keep(request, head::name_member(request.method, origin.config.names));
        kept.inspect_err(|_| self.roll_back(origin))
    }

    fn begin_task(&mut self, task: Task) {
        self.enter("the caller begins a message, or a stream is wanted", ExchangeState::Writing);
        self.outgoing.clear();
        (self.task, self.deadline) = (task, None);
    }

    /// Takes the message back.
    pub(crate) fn roll_back(&mut self, origin: &OriginState<'_>) {
        self.outgoing.clear();
        self.rest("the message is rolled back", origin);
    }

    /// Returns `true` if the written message fails at once: the tool must not be called.
    pub(crate) fn is_excluded(&mut self, origin: &OriginState<'_>) -> bool {
        let message = self.outgoing.repeated();
        let tool = message.name.filter(|_| self.task.is_modern() && message.method == head::CALL);
        let why = tool.and_then(|tool| origin.tools.excludes(tool));
        if let Some(why) = why {
            self.over(End::Failed(FailureReason::Excluded(why)));
        }
        why.is_some()
    }

    /// Sends the message, at once or after the event `hold`.
    pub(crate) fn submit(&mut self, hold: Option<Hold>, origin: &mut OriginState<'_>) {
        self.task.sse |= hold == Some(Hold::Endpoint) || origin.sse == Sse::Known;
        match hold {
            Some(until) => self.enter("something must happen first", ExchangeState::Held { until }),
            None => self.launch("there is no connection", origin),
        }
    }

    /// Begins an exchange that has no message.
    pub(crate) fn open(&mut self, purpose: Purpose, origin: &mut OriginState<'_>) {
        self.begin_task(Task { purpose, ..Task::NONE });
        self.launch("there is no connection", origin);
    }

    /// Sends the request over the kept connection, or for that `cause` over a new one. Fails if its head does not fit.
    fn launch(&mut self, cause: &'static str, origin: &mut OriginState<'_>) {
        if !self.write_head(b"", origin) {
            return self.give_way(FailureReason::NoRoom, origin);
        }
        (self.unsigned, self.credentials) = (origin.signs, 0);
        self.reused = self.is_connected();
        (self.kept, self.heard, self.fresh) = (0, false, true);
        if self.reused {
            self.enter("a kept connection is used", ExchangeState::Head);
            self.deadline = Some(origin.now.saturating_add(origin.config.write_time));
        } else {
            self.input.clear();
            self.enter(cause, ExchangeState::Connecting { dialing: false });
            self.deadline = Some(origin.now.saturating_add(origin.config.connect_time));
        }
    }

    /// Writes the head, with further `lines` in it. Returns `false` if it does not fit.
    fn write_head(&mut self, lines: &[u8], origin: &OriginState<'_>) -> bool {
        let (task, last_id, at) = (&self.task, self.decoder.last_id(), self.at);
        let write =
            |message: Repeated<'_>, out: &mut dyn Sink| head::write(task, message, last_id, lines, (origin, at), out);
        self.outgoing.write_head(task.posts(), write).is_ok()
    }

    /// Returns the method of the request, if its head waits for the caller's headers.
    pub(crate) fn unsigned(&self) -> Option<&'static str> {
        let waits = self.unsigned && matches!(self.state, ExchangeState::Connecting { .. } | ExchangeState::Head);
        waits.then(|| head::verb(&self.task))
    }

    /// Adds `lines` to the head that waits for them: whole headers, each with its line break.
    pub(crate) fn sign(&mut self, lines: &[u8], credentials: u32, origin: &mut OriginState<'_>) {
        (self.unsigned, self.credentials) = (false, credentials);
        if !lines.is_empty() && !self.write_head(lines, origin) {
            self.give_way(FailureReason::NoRoom, origin);
        }
    }

    /// Returns the method of the message, and the name of its tool or prompt.
    pub(crate) fn operation(&self) -> [&str; 2] {
        let Repeated { method, name, .. } = self.outgoing.repeated();
        [method, name.and_then(|name| name.plain()).unwrap_or_default()]
    }

    // Calls of the driver.

    pub(crate) fn action(&mut self) -> Option<SocketAction> {
        if core::mem::take(&mut self.close) {
            return Some(SocketAction::Close(self.at));
        }
        if self.state != (ExchangeState::Connecting { dialing: false }) {
            return None;
        }
        self.enter("the driver connects", ExchangeState::Connecting { dialing: true });
        Some(SocketAction::Connect(self.at))
    }

    /// Notes that the connection is open.
    pub(crate) fn connected(&mut self, origin: &OriginState<'_>) {
        if self.state == (ExchangeState::Connecting { dialing: true }) {
            self.wire = Wire::Open;
            self.enter("connected", ExchangeState::Head);
            self.deadline = Some(origin.now.saturating_add(origin.config.write_time));
        }
    }

    /// Notes that the connection is gone: the server closed it in order (`clean`), or it broke or could not be
    /// opened.
    pub(crate) fn gone(&mut self, clean: bool) {
        if self.state == (ExchangeState::Connecting { dialing: true }) {
            self.enter("no connection could be made", ExchangeState::Refused);
        } else if self.is_connected() {
            self.wire = if clean { Wire::Closed } else { Wire::Cut };
            if !self.is_under_way() {
                self.input.clear();
                self.deadline = None;
            }
        }
    }

    /// Returns `true` while a request or a response is on the wire.
    const fn is_under_way(&self) -> bool {
        matches!(
            self.state,
            ExchangeState::Head | ExchangeState::Body { .. } | ExchangeState::Item { .. } | ExchangeState::Drain
        )
    }

    pub(crate) fn pending(&self) -> &[u8] {
        let goes = self.is_under_way() && self.is_connected() && !self.unsigned;
        if goes { self.outgoing.pending() } else { &[] }
    }

    pub(crate) fn sent(&mut self, n: usize, origin: &OriginState<'_>) {
        let left = self.pending().len();
        let n = n.min(left);
        self.outgoing.advance(n);
        if n > 0 && matches!(self.state, ExchangeState::Head) {
            let (config, is_for_changes) = (&origin.config, self.task.is_for_changes());
            let wait = match n < left {
                true => config.write_time,
                false if is_for_changes => config.reply_time.min(config.silence),
                false => config.reply_time,
            };
            // The engine keeps the deadlines of requests.
            let ends = n < left || self.task.purpose != Purpose::Request || self.task.resume || is_for_changes;
            self.deadline = ends.then(|| origin.now.saturating_add(wait));
        }
    }

    pub(crate) fn space(&mut self) -> &mut [u8] {
        let waits = match self.state {
            ExchangeState::Item { .. } | ExchangeState::Over { .. } => true,
            ExchangeState::Body { .. } => !self.input.is_empty(),
            _ => false,
        };
        if waits || !self.is_connected() { &mut [] } else { self.input.space() }
    }

    pub(crate) fn filled(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        self.input.filled(n);
        let unasked = self.reused && self.outgoing.is_unsent() && matches!(self.state, ExchangeState::Head);
        if unasked || !self.is_under_way() {
            // Bytes without a request are no answer.
            self.hang_up();
        }
    }

    /// Makes the driver close the connection.
    pub(crate) fn hang_up(&mut self) {
        self.close |= self.is_connected() || self.state == ExchangeState::Connecting { dialing: true };
        self.wire = Wire::Cut;
        self.input.clear();
    }

    // Reading.

    /// Reads the received bytes up to the next event.
    pub(crate) fn step(&mut self, origin: &mut OriginState<'_>) -> bool {
        let works = matches!(
            self.state,
            ExchangeState::Refused | ExchangeState::Head | ExchangeState::Body { .. } | ExchangeState::Drain
        );
        while works && self.step_once(origin) {}
        works
    }

    fn step_once(&mut self, origin: &mut OriginState<'_>) -> bool {
        match self.state {
            ExchangeState::Refused => {
                self.lose(FailureReason::Refused, origin);
                false
            }
            ExchangeState::Head => self.read_head(origin),
            ExchangeState::Body { .. } | ExchangeState::Drain => self.read_body(origin),
            _ => false,
        }
    }

    /// Reads the head of a response. Returns `true` if that changed anything.
    fn read_head(&mut self, origin: &mut OriginState<'_>) -> bool {
        match self.input.head(origin.config.head) {
            Ok(Some(reply)) => self.on_head(&reply, origin),
            Ok(None) if self.is_connected() => return false,
            Ok(None) if self.heard || !self.input.is_empty() => self.lose(FailureReason::Broken, origin),
            Ok(None) => self.lose(FailureReason::Reset, origin),
            Err(why) => self.lose(why, origin),
        }
        true
    }

    fn on_head(&mut self, reply: &Reply, origin: &mut OriginState<'_>) {
        self.heard = true;
        (self.status, self.retry_after, self.keep_alive) = (reply.status, reply.retry_after, reply.keep);
        let (status, ends) = (reply.status, self.task.purpose == Purpose::EndSession);
        if status < 200 && status != 101 {
            return; // the final answer follows, within the same deadline
        }
        self.deadline = None;
        origin.note_nonce(self.input.text(reply.dpop_nonce.clone()));
        if !matches!(status, 401 | 403) {
            origin.accepted = origin.accepted.max(self.credentials);
        }
        match status {
            101 => self.give_way(FailureReason::NotHttp, origin),
            401 | 403 if !ends && (status == 401 || reply.challenged) => {
                self.keep_challenges(reply);
                self.hang_up();
                self.task.challenges = self.task.challenges.saturating_add(1);
                self.enter("401 or 403", ExchangeState::Challenge { status, lost: None });
            }
            300..=399 => {
                self.keep_text(reply.location.clone());
                let follows = matches!(status, 307 | 308) && self.task.redirects < origin.config.redirects;
                let location = self.input.text(reply.location.clone());
                if follows && origin.redirect(self.at, location, self.task.posts() || ends) {
                    self.task.redirects += 1;
                    self.hang_up();
                    return self.launch(MOVED, origin);
                }
                self.give_way(FailureReason::Redirect(status), origin);
            }
            404 if self.loses_session(origin) => {
                origin.signals.session_lost = true;
                self.fail(FailureReason::SessionLost);
            }
            _ => self.on_answer(reply, origin),
        }
    }

    /// Returns `true` if a 404 means that the session is lost. Some servers answer 404 to any GET, so at the
    /// first GET it means that there is no stream; if the session is lost as well, the next POST gets 404 too.
    /// After a stream was open, 404 means the session.
    fn loses_session(&self, origin: &OriginState<'_>) -> bool {
        let asks = matches!(self.task.purpose, Purpose::Request | Purpose::OneWay);
        let listens = self.task.purpose == Purpose::Listen && self.task.was_open;
        (asks || listens) && self.task.in_session() && origin.session().is_some()
    }

    /// Decides the use of the body.
    fn on_answer(&mut self, reply: &Reply, origin: &mut OriginState<'_>) {
        let good = (200..300).contains(&reply.status);
        let is_busy = reply.status >= 500 || reply.status == 429;
        let streams = good && reply.content == Content::Stream && reply.status != 204;
        let empty = reply.framing == Framing::None || matches!(reply.status, 202 | 204 | 205);
        (self.kept, self.task.challenges) = (0, 0);
        let part = match self.task.purpose {
            Purpose::Request if self.task.resume && !streams => {
                return if is_busy {
                    self.resume_later(FailureReason::Broken, origin)
                } else {
                    self.fail(FailureReason::Broken)
                };
            }
            Purpose::Request if good => {
                if self.task.topic == Topic::Initialize && !self.task.sse && !self.task.resume {
                    origin.set_session(self.input.text(reply.session.clone()));
                }
                match reply.content {
                    _ if self.task.sse => Part::Skip,
                    _ if streams => Part::Stream,
                    _ if empty => return self.fail(FailureReason::Unanswered),
                    Content::Json | Content::Unknown => Part::Json,
                    _ if !reply.coding.is_empty() => {
                        self.keep_text(reply.coding.clone());
                        return self.fail(FailureReason::ContentEncoding);
                    }
                    Content::Stream | Content::Other => return self.fail(FailureReason::ContentType),
                }
            }
            Purpose::OneWay if good => Part::Skip,
            Purpose::EndSession => Part::Skip,
            Purpose::Request | Purpose::OneWay => Part::Error,
            Purpose::Listen | Purpose::SseStream if streams => Part::Stream,
            Purpose::Listen if is_busy => return self.resume_later(FailureReason::Broken, origin),
            Purpose::Listen | Purpose::SseStream => {
                let why = match good {
                    true if !reply.coding.is_empty() => FailureReason::ContentEncoding,
                    true => FailureReason::ContentType,
                    false => FailureReason::Status { code: reply.status, retry_after: reply.retry_after },
                };
                return self.give_way(why, origin);
            }
        };
        if self.task.purpose == Purpose::Listen {
            origin.listening = ListenState::Open;
        }
        // The engine keeps the deadlines of requests, and a stream stays open. The `endpoint` event must come
        // soon.
        let endless = part != Part::Error && matches!(self.task.purpose, Purpose::Request | Purpose::Listen);
        self.deadline = (!endless).then(|| origin.now.saturating_add(origin.config.reply_time));
        self.watch(origin);
        if streams {
            (self.task.was_open, self.task.opened) = (true, Some(origin.now));
            if self.task.resume { self.decoder.restart() } else { self.decoder.reset() }
        }
        self.enter("the head has come", ExchangeState::Body { part });
    }

    /// Sets the time by which a stream for changes must say something.
    fn watch(&mut self, origin: &OriginState<'_>) {
        if origin.config.silence < Millis::MAX && self.task.is_for_changes() {
            self.deadline = Some(origin.now.saturating_add(origin.config.silence));
        }
    }

    /// Reads a part of the body. Returns `true` if that changed anything.
    fn read_body(&mut self, origin: &mut OriginState<'_>) -> bool {
        let bytes = match self.input.body(origin.config.head) {
            Ok(bytes) => bytes,
            Err(why) => {
                self.cut(why, origin);
                return true;
            }
        };
        let len = bytes.len();
        match self.state {
            _ if len == 0 => {
                if self.input.is_over() || (self.wire == Wire::Closed && self.input.ends_with_connection()) {
                    self.end_body(origin);
                } else if self.is_connected() {
                    return false;
                } else {
                    self.cut(FailureReason::Broken, origin);
                }
            }
            ExchangeState::Body { part: Part::Stream, .. } => {
                let n = self.decoder.read(bytes);
                self.input.take(n);
                self.watch(origin);
                self.on_item(origin);
            }
            ExchangeState::Body { part: part @ (Part::Json | Part::Error), .. } => {
                let n = append(&mut self.decoder.store, &mut self.kept, bytes);
                // The part of an error's body that does not fit is not needed.
                self.input.take(len);
                if part == Part::Json && n < len {
                    self.fail(FailureReason::TooLarge);
                }
            }
            _ => self.input.take(len),
        }
        true
    }

    /// Handles the event that was found in a stream, if there is one.
    fn on_item(&mut self, origin: &mut OriginState<'_>) {
        let task = self.task;
        let requests = task.purpose == Purpose::Request;
        let event = match self.decoder.item() {
            None => return,
            Some(SseItem::Event(event)) => event,
            Some(_) if requests => return self.fail(FailureReason::TooLarge),
            Some(_) => {
                let found = StreamItem::Skipped(FailureReason::TooLarge);
                return self.enter("an event has come", ExchangeState::Item { found, lost: None });
            }
        };
        self.task.tries = 0;
        if task.purpose == Purpose::SseStream && event.name == "endpoint" {
            let endpoint = core::str::from_utf8(event.data).map_err(|_| FailureReason::Endpoint);
            let known = endpoint.and_then(|endpoint| origin.set_endpoint(endpoint));
            self.decoder.consume();
            self.deadline = None;
            return known.unwrap_or_else(|why| self.give_way(why, origin));
        }
        if !matches!(event.name, "" | "message") || event.data.is_empty() {
            return self.decoder.consume();
        }
        let class = Class::of(event.data, task.request, origin.takes_batches(task.is_modern()));
        if class != Class::NotJson {
            self.task.pauses = 0;
        }
        let found = match class {
            Class::NotJson => StreamItem::Skipped(FailureReason::Garbage),
            Class::Response(id, error) if requests && (id == task.request || (id.is_none() && error)) => {
                if id.is_some() {
                    learn(&task, event.data, origin);
                }
                StreamItem::Response
            }
            Class::Response(Some(id), _) => StreamItem::ResponseTo(id),
            Class::Response(None, _) | Class::Other => StreamItem::Message,
        };
        self.enter("an event has come", ExchangeState::Item { found, lost: None });
    }

    /// Handles the end of the body.
    fn end_body(&mut self, origin: &mut OriginState<'_>) {
        if !(self.keep_alive && self.outgoing.is_sent() && self.input.is_empty()) {
            self.hang_up();
        }
        match (self.state, self.task.purpose) {
            (ExchangeState::Body { part: Part::Json, .. }, _) => self.on_json(origin),
            (ExchangeState::Body { part: Part::Error, .. }, _) => self.on_error(origin),
            (ExchangeState::Body { part: Part::Stream, .. }, _) => self.resume_later(FailureReason::Unanswered, origin),
            (ExchangeState::Body { .. }, Purpose::EndSession) => {
                origin.end_session();
                self.over(End::SessionEnded);
            }
            // The stream that should bring the answer is gone.
            (ExchangeState::Body { .. }, Purpose::Request) if origin.sse != Sse::Known => {
                self.over(End::Failed(FailureReason::SessionLost));
            }
            (ExchangeState::Body { .. }, Purpose::Request) => {
                self.enter("a request was accepted (HTTP with SSE)", ExchangeState::Elsewhere);
                self.deadline = Some(origin.now.saturating_add(origin.config.idle_time));
            }
            _ => {
                origin.signals.initialized |= self.task.topic == Topic::Initialized;
                self.release(END_OF_BODY, origin);
            }
        }
    }

    /// Handles a body that was cut off.
    fn cut(&mut self, why: FailureReason, origin: &mut OriginState<'_>) {
        self.hang_up();
        match self.state {
            ExchangeState::Body { part: Part::Stream, .. } => self.resume_later(why, origin),
            ExchangeState::Body { part: Part::Json, .. } => self.fail(why),
            // The head is enough: the rest of the body carries nothing that is needed.
            ExchangeState::Body { .. } => self.end_body(origin),
            _ => self.release(END_OF_BODY, origin),
        }
    }

    /// Handles a response that is JSON.
    fn on_json(&mut self, origin: &mut OriginState<'_>) {
        let task = self.task;
        let body = self.kept();
        match Class::of(body, task.request, origin.takes_batches(task.is_modern())) {
            Class::Response(Some(id), _) if Some(id) == task.request => {
                learn(&task, body, origin);
                self.over(End::Response);
            }
            Class::Response(None, true) => self.over(End::Response),
            _ => self.over(End::Failed(FailureReason::Garbage)),
        }
    }

    /// Handles the whole body of an error status.
    fn on_error(&mut self, origin: &mut OriginState<'_>) {
        let task = self.task;
        let may_be_sse = task.topic == Topic::Initialize
            && !task.sse
            && origin.config.transport == TransportKind::Detect
            && matches!(self.status, 400 | 404 | 405);
        if may_be_sse && !(self.is_rpc_error() && is_modern_error(self.kept())) {
            let held = ExchangeState::Held { until: Hold::Fallback };
            self.enter("initialize was refused: HTTP with SSE is tried", held);
            self.deadline = None;
            if origin.sse == Sse::Unused {
                origin.sse = Sse::Wanted;
            }
        } else {
            self.end_with_error();
        }
    }

    /// Ends the exchange with the body of an error status.
    pub(crate) fn end_with_error(&mut self) {
        let answers = self.task.purpose == Purpose::Request && self.is_rpc_error();
        let why = FailureReason::Status { code: self.status, retry_after: self.retry_after };
        self.over(if answers { End::Response } else { End::Failed(why) });
    }

    /// Returns `true` if the body is a JSON-RPC error that may be the answer.
    fn is_rpc_error(&mut self) -> bool {
        let request = self.task.request;
        match Class::of(self.kept(), request, false) {
            Class::Response(id, true) => id.is_none() || id == request,
            _ => false,
        }
    }

    /// Handles a connection that broke, or is useless, before the answer.
    fn lose(&mut self, why: FailureReason, origin: &mut OriginState<'_>) {
        self.hang_up();
        let harmless = !self.outgoing.is_sent() || self.task.idempotent || !self.task.posts();
        if why == FailureReason::Reset && self.reused && !self.task.retried && harmless {
            self.task.retried = true;
            self.launch(MOVED, origin);
        } else if self.task.purpose == Purpose::Listen || (self.task.resume && why.is_of_network()) {
            self.resume_later(why, origin);
        } else {
            self.give_way(why, origin);
        }
    }

    /// Waits, then resumes the stream. Gives up if it cannot be resumed.
    fn resume_later(&mut self, why: FailureReason, origin: &mut OriginState<'_>) {
        self.hang_up();
        // A stream that was open for `retry_most` counts as resumed, even if no event came.
        if self.task.opened.take().is_some_and(|at| origin.now.saturating_sub(at) >= origin.config.retry_most) {
            (self.task.tries, self.task.pauses) = (0, 0);
        }
        let can = match self.task.purpose {
            Purpose::Listen => true,
            Purpose::Request => !self.task.is_modern() && !self.decoder.last_id().is_empty(),
            _ => false,
        };
        if !can || self.task.tries >= origin.config.tries {
            return self.give_way(why, origin);
        }
        let wait = self.pause(origin);
        self.task.tries = self.task.tries.saturating_add(1);
        self.task.pauses = self.task.pauses.saturating_add(1);
        (self.task.resume, self.task.retried) = (true, false);
        if self.task.purpose == Purpose::Listen {
            origin.listening = ListenState::Opening;
        }
        self.enter("a stream is tried again later", ExchangeState::Backoff);
        self.deadline = Some(origin.now.saturating_add(wait));
    }

    /// Returns the time until the stream is opened again. A server may ask for any time, also for none, and close each stream at
    /// once: the first time is as it asks, since it may want to be polled; each one after a stream without a message is longer.
    fn pause(&mut self, origin: &OriginState<'_>) -> Millis {
        // `Retry-After`, of a server that has no stream now.
        let after = Millis::from(self.retry_after.take().unwrap_or(0)).saturating_mul(1_000).min(RETRY_MOST);
        let asked = self.decoder.retry.map(Millis::from);
        if let Some(asked) = asked.filter(|_| self.task.pauses == 0) {
            return asked.clamp(RETRY_LEAST, RETRY_MOST).max(after);
        }
        let (least, most) = (origin.config.retry_time, origin.config.retry_most);
        let first = asked.unwrap_or(least).clamp(least, RETRY_MOST.max(least));
        let factor = 1u64.checked_shl(u32::from(self.task.pauses)).unwrap_or(u64::MAX);
        jittered(first.saturating_mul(factor).min(most.max(first)).max(after), origin.seed, origin.now)
    }

    /// Ends without an answer, as the purpose requires, and closes the connection.
    pub(crate) fn give_way(&mut self, why: FailureReason, origin: &mut OriginState<'_>) {
        self.hang_up();
        match self.task.purpose {
            Purpose::Request | Purpose::OneWay => self.over(End::Failed(why)),
            Purpose::Listen => {
                origin.listening = ListenState::No;
                self.release("the stream is given up", origin);
            }
            Purpose::SseStream => {
                origin.signals.sse_failed = Some(why);
                self.release("the stream is given up", origin);
            }
            Purpose::EndSession => {
                origin.end_session();
                self.over(End::SessionEnded);
            }
        }
    }

    /// Ends with a failure and closes the connection.
    pub(crate) fn fail(&mut self, why: FailureReason) {
        self.hang_up();
        self.over(End::Failed(why));
    }

    /// Ends the exchange; the connection stays.
    fn over(&mut self, end: End) {
        let cause = match end {
            End::Response => "answered",
            End::Failed(_) => "failed",
            End::SessionEnded => "the session is ended",
        };
        self.enter(cause, ExchangeState::Over { end });
        self.deadline = None;
    }

    /// Forgets the exchange; the connection stays, if it can be used again.
    fn release(&mut self, cause: &'static str, origin: &mut OriginState<'_>) {
        origin.forget_redirect(self.at);
        (self.task, self.kept) = (Task::NONE, 0);
        self.outgoing.clear();
        self.decoder.reset();
        self.rest(cause, origin);
    }

    /// Keeps the connection for a while without an exchange.
    fn rest(&mut self, cause: &'static str, origin: &OriginState<'_>) {
        self.enter(cause, ExchangeState::Free);
        self.deadline = self.is_connected().then(|| origin.now.saturating_add(origin.config.idle_time));
    }

    // Decisions of the caller and of other exchanges.

    /// Ends the exchange in any state.
    pub(crate) fn abandon(&mut self, origin: &mut OriginState<'_>) {
        if !matches!(self.state, ExchangeState::Free | ExchangeState::Held { .. } | ExchangeState::Elsewhere) {
            self.hang_up();
        }
        self.release("abandoned", origin);
    }

    /// Fails after the event that the caller reads now, unless that is the last one.
    pub(crate) fn fail_next(&mut self, why: FailureReason) {
        let next = match self.state {
            ExchangeState::Item { found: StreamItem::Response, .. } | ExchangeState::Over { .. } => return,
            ExchangeState::Item { found, lost } => ExchangeState::Item { found, lost: lost.or(Some(why)) },
            ExchangeState::Challenge { status, lost } => ExchangeState::Challenge { status, lost: lost.or(Some(why)) },
            _ => return self.fail(why),
        };
        self.enter("the session is lost", next);
    }

    /// Sends the message of a challenged exchange again, or gives it up, even if the caller has asked for no event since.
    pub(crate) fn decide(&mut self, retries: bool, origin: &mut OriginState<'_>) {
        if matches!(self.state, ExchangeState::Challenge { .. }) {
            self.told(origin);
        }
        match self.state {
            ExchangeState::Challenged if retries => self.launch("sent again with other headers", origin),
            ExchangeState::Challenged => self.give_way(FailureReason::GivenUp, origin),
            _ => {}
        }
    }

    /// Continues after the event that waited for the caller.
    pub(crate) fn told(&mut self, origin: &mut OriginState<'_>) {
        match self.state {
            ExchangeState::Item { found, lost } => {
                self.decoder.consume();
                match lost {
                    _ if found == StreamItem::Response => {
                        self.enter("told, and it was the response", ExchangeState::Drain);
                        self.deadline = Some(origin.now.saturating_add(origin.config.drain_time));
                    }
                    Some(why) => self.fail(why),
                    None => self.enter("told, and the stream goes on", ExchangeState::Body { part: Part::Stream }),
                }
            }
            ExchangeState::Challenge { lost: Some(why), .. } => self.fail(why),
            ExchangeState::Challenge { lost: None, .. } => self.enter("told", ExchangeState::Challenged),
            ExchangeState::Over { .. } => self.release("told", origin),
            _ => {}
        }
    }

    /// Does the work that is due.
    pub(crate) fn expire(&mut self, origin: &mut OriginState<'_>) {
        if self.deadline.is_none_or(|deadline| deadline > origin.now) {
            return;
        }
        self.deadline = None;
        // Bytes received before the deadline count.
        self.step(origin);
        if self.deadline.is_some() {
            return;
        }
        match self.state {
            ExchangeState::Free | ExchangeState::Elsewhere => self.hang_up(),
            ExchangeState::Backoff => self.launch("the deadline has passed", origin),
            ExchangeState::Drain => self.abandon(origin),
            ExchangeState::Connecting { .. } | ExchangeState::Head => self.lose(FailureReason::TimedOut, origin),
            ExchangeState::Body { part: Part::Skip | Part::Error, .. } => self.cut(FailureReason::TimedOut, origin),
            ExchangeState::Body { part: Part::Stream, .. } if self.task.is_for_changes() => {
                self.cut(FailureReason::Broken, origin);
            }
            ExchangeState::Body { .. } if self.is(Purpose::SseStream) && origin.sse == Sse::Opening => {
                self.give_way(FailureReason::TimedOut, origin);
            }
            _ => {}
        }
    }

    /// Moves a deadline that was set since the driver last gave the time by `passed`.
    pub(crate) fn rebase(&mut self, passed: Millis) {
        if core::mem::take(&mut self.fresh) {
            self.deadline = self.deadline.map(|deadline| deadline.saturating_add(passed));
        }
    }

    // State for other parts.

    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, ExchangeState::Free)
    }

    /// Returns `true` while only the rest of a body is awaited.
    pub(crate) const fn is_draining(&self) -> bool {
        matches!(self.state, ExchangeState::Drain)
    }

    pub(crate) const fn is_connected(&self) -> bool {
        matches!(self.wire, Wire::Open)
    }

    /// Returns `true` if its message waits for another exchange.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.state, ExchangeState::Held { .. })
    }

    pub(crate) fn is_held(&self, until: &[Hold]) -> bool {
        matches!(self.state, ExchangeState::Held { until: hold, .. } if until.contains(&hold))
    }

    /// Returns `true` if an event waits for the caller.
    pub(crate) const fn has_event(&self) -> bool {
        matches!(self.state, ExchangeState::Item { .. } | ExchangeState::Challenge { .. } | ExchangeState::Over { .. })
    }

    /// Returns `true` if only its end or a challenge waits for the caller.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, ExchangeState::Challenge { .. } | ExchangeState::Over { .. })
    }

    /// Returns `true` if it has an exchange without an answer yet.
    const fn is_open(&self) -> bool {
        !matches!(self.state, ExchangeState::Free | ExchangeState::Writing | ExchangeState::Drain)
    }

    pub(crate) fn is(&self, purpose: Purpose) -> bool {
        self.is_open() && self.task.purpose == purpose
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.is(Purpose::Listen) || self.is(Purpose::SseStream)
    }

    /// Returns `true` if it posts a message: a request, a notification or a response.
    pub(crate) fn is_post(&self) -> bool {
        self.is(Purpose::Request) || self.is(Purpose::OneWay)
    }

    /// Returns `true` if it carries `notifications/initialized`; with `unanswered`, only until the server has
    /// answered it.
    pub(crate) fn greets(&self, unanswered: bool) -> bool {
        let answered = matches!(
            self.state,
            ExchangeState::Body { .. }
                | ExchangeState::Item { .. }
                | ExchangeState::Over { .. }
                | ExchangeState::Challenge { lost: Some(_), .. }
        );
        self.task.topic == Topic::Initialized && self.is_open() && !(unanswered && answered)
    }

    /// Returns the request that has no end yet.
    pub(crate) fn request(&self) -> Option<u64> {
        self.task.request.filter(|_| self.is_open())
    }

    /// Returns the request of another exchange that the event answers.
    pub(crate) const fn answers_another(&self) -> Option<u64> {
        match self.state {
            ExchangeState::Item { found: StreamItem::ResponseTo(id), .. } => Some(id),
            _ => None,
        }
    }

    /// Returns the event that waits. `answered` is the request of another exchange that it ended.
    pub(crate) fn event(&mut self, answered: Option<u64>) -> Option<HttpClientEvent<'_>> {
        let (slot, request) = (self.at, self.task.request);
        Some(match self.state {
            ExchangeState::Item { found: StreamItem::Skipped(why), .. } => {
                let start: &[u8] = match self.decoder.item()? {
                    SseItem::Event(event) => event.data,
                    SseItem::TooLarge { start } => start,
                };
                HttpClientEvent::Skipped { request, why, start }
            }
            ExchangeState::Item { found, .. } => {
                let request = if matches!(found, StreamItem::ResponseTo(_)) { answered } else { request };
                let SseItem::Event(event) = self.decoder.item()? else { return None };
                HttpClientEvent::Message { request, bytes: event.data }
            }
            ExchangeState::Challenge { status, .. } => {
                HttpClientEvent::Challenge { slot, request, status, www_authenticate: text(self.kept()) }
            }
            ExchangeState::Over { end: End::Response, .. } => HttpClientEvent::Message { request, bytes: self.kept() },
            ExchangeState::Over { end: End::Failed(why), .. } => {
                let tells = matches!(
                    why,
                    FailureReason::Status { .. }
                        | FailureReason::Redirect(_)
                        | FailureReason::Garbage
                        | FailureReason::ContentEncoding
                );
                HttpClientEvent::Failed { request, why, detail: if tells { text(self.kept()) } else { "" } }
            }
            ExchangeState::Over { end: End::SessionEnded, .. } => HttpClientEvent::Ended,
            _ => return None,
        })
    }

    /// Returns the kept body or text.
    fn kept(&mut self) -> &mut [u8] {
        self.decoder.store.bytes_mut().get_mut(..self.kept).unwrap_or(&mut [])
    }

    /// Keeps all challenges of a head as one list. Keeps none if they do not fit.
    fn keep_challenges(&mut self, reply: &Reply) {
        self.kept = 0;
        for value in values(self.input.bytes(reply.head.clone()), "www-authenticate") {
            let comma: &[u8] = if self.kept == 0 { b"" } else { b", " };
            let store = &mut self.decoder.store;
            let whole = append(store, &mut self.kept, comma) == comma.len();
            if !whole || append(store, &mut self.kept, value) < value.len() {
                self.kept = 0;
                return;
            }
        }
    }

    /// Keeps a part of the head for an event.
    fn keep_text(&mut self, range: core::ops::Range<usize>) {
        self.kept = 0;
        append(&mut self.decoder.store, &mut self.kept, self.input.text(range).as_bytes());
    }
}

/// Appends as much as fits, and returns the number of bytes.
fn append(store: &mut Store<'_>, used: &mut usize, bytes: &[u8]) -> usize {
    let wanted = used.saturating_add(bytes.len());
    if !store.reach(wanted) {
        store.reach(store.limit());
    }
    let place = store.bytes_mut().get_mut(*used..).unwrap_or(&mut []);
    let n = place.len().min(bytes.len());
    copy(place, bytes);
    *used += n;
    n
}

/// Returns the longest start of `bytes` that is UTF-8.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Keeps the facts of a response that later requests need.
fn learn(task: &Task, bytes: &[u8], origin: &mut OriginState<'_>) {
    if !matches!(task.topic, Topic::Initialize | Topic::Tools(_)) {
        return;
    }
    let Some(result) = Envelope::parse(bytes).ok().and_then(|envelope| envelope.result) else { return };
    match task.topic {
        Topic::Initialize => origin.learn_version(result),
        Topic::Tools(fresh) if task.is_modern() => origin.tools.learn(result, fresh),
        _ => {}
    }
}
