//! A connection of a server: one request and its answer at a time.

use mcp_sansio::FullError;
use mcp_sansio::machine;
use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;

use super::answer::ResponseBuffer;
use super::head::{HeadFacts, HttpHead};
use super::input::Input;
use super::limits::ConnectionLimits;
use super::status::Status;

/// The next step of a [`Connection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum ConnectionStep {
    /// Read more bytes. There may be bytes to send too.
    Read,
    /// The head of a request is whole, and the client waits for 100 (Continue) before it sends the body. Returned
    /// once. To refuse, write an answer now; otherwise the next step sends 100.
    Expect,
    /// A request is whole. It stays the same until it is consumed or answered.
    Request,
    /// The answer is being written. Read only to notice that the client closes.
    Answering,
    /// There is no room: send the pending bytes.
    Write,
    /// The last answer is written, but the client may still be sending. Send the pending bytes, shut down the
    /// sending side, then read until [`ConnectionStep::Close`]. Otherwise the client may not receive the answer.
    Shut,
    /// Send the pending bytes, then close.
    Close,
}

/// The result of [`Connection::expire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum ExpireStatus {
    /// No deadline has passed.
    Nothing,
    /// The request took too long. The last answer is 408: take the next [`step`](Connection::step).
    Refused,
    /// The connection is over: close it, even with pending bytes.
    Close,
}

/// The answer to a message whose headers have control characters. The endpoint does not see such a head.
const CONTROL_CHARACTERS: &[u8] =
    br#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"A header has control characters"}}"#;
const _: () = assert!(mcp_sansio::protocol::code::HEADER_MISMATCH == -32020);

/// A request whose head is whole.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HttpRequest<'r> {
    /// Method, path and headers.
    pub head: HttpHead<'r>,
    /// The body, as soon as it is whole; empty if the request has none.
    pub body: Option<&'r [u8]>,
}

/// The server's side of one HTTP/1.1 connection, without I/O, for requests of at most `H` headers.
///
/// 1. Read into [`space`](Connection::space), then call [`filled`](Connection::filled).
/// 2. Do the work that [`step`](Connection::step) returns.
/// 3. Write [`pending`](Connection::pending), then call [`sent`](Connection::sent).
///
/// It handles one request at a time; further requests wait. It answers invalid requests itself and then ends the
/// connection.
///
/// ```
/// use mcp_sansio_http::endpoint::RequestHeaders;
/// use mcp_sansio_http::http1::{Connection, ConnectionLimits, Status, ConnectionStep};
///
/// let (mut input, mut output) = ([0; 512], [0; 512]);
/// let mut connection = Connection::<16>::new(&mut input, &mut output, ConnectionLimits::default());
/// // 1. Read as much as there is, in pieces of any size.
/// let received = b"POST /mcp?x=1 HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 2\r\n\r\n{}";
/// connection.space()[..received.len()].copy_from_slice(received);
/// connection.filled(received.len());
/// // 2. See what it is.
/// let now = 0;
/// assert_eq!(connection.step(now), ConnectionStep::Request);
/// if let Some((request, answer)) = connection.exchange() {
///     assert_eq!((request.head.method(), request.head.path(), request.body), ("POST", "/mcp", Some(&b"{}"[..])));
///     assert_eq!(request.head.host(), Some("localhost:80"));
///     assert_eq!(request.head.get("content-length"), Some(&b"2"[..]));
///     answer.full(Status::ACCEPTED, &[], b"")?;
/// }
/// // 3. Write what is pending, as much as the other end takes.
/// assert_eq!(connection.pending(), b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
/// let taken = connection.pending().len();
/// connection.sent(taken);
/// // The connection is kept for the next request.
/// assert_eq!(connection.step(now), ConnectionStep::Read);
/// assert_eq!(connection.next_deadline(), Some(60_000));
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
#[derive(Debug)]
pub struct Connection<'m, const H: usize = 32> {
    input: Input<'m, H>,
    /// The answer, for writing later.
    pub answer: ResponseBuffer<'m>,
    /// The limits.
    pub limits: ConnectionLimits,
    stage: Stage,
    /// The bytes of a body that the caller knows to be there.
    #[cfg(feature = "alloc")]
    waiting: usize,
    /// The peer sends no more bytes. Received requests are still answered. The driver sets it, and decides whether an open stream
    /// continues.
    pub ended: bool,
    /// No further request is accepted.
    closing: bool,
    /// The status with which the connection itself refused a request.
    pub refused: Option<Status>,
    /// Number of bytes dropped since the last answer.
    drained: usize,
    waits: Waits,
    since: Millis,
    /// The time since which the peer took no pending byte.
    unsent: Option<Millis>,
    /// Number of pending bytes at that time.
    left: usize,
    /// The time by which the peer must have taken all pending bytes, if there is a rate.
    due: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    /// The client waits for 100 (Continue).
    Expect,
    Body,
    /// A whole request waits.
    Request,
    /// The request was consumed; its answer is being written.
    Answering,
    Refusing(Status),
    Lingering,
    Closed,
}

/// The transitions of a connection: from, to, cause. `docs/internals/state-machines.md` shows them.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Head", "Expect", "the head has come, and the client waits for leave"),
    ("Head", "Body", "the head has come"),
    ("Head", "Refusing", "bad or too large"),
    ("Head", "Refusing", "refused by the caller, or too slow"),
    ("Head", "Closed", "no more input"),
    ("Head", "Closed", "idle for too long"),
    ("Head", "Closed", "the peer takes nothing"),
    ("Expect", "Body", "leave was given, or there is an answer"),
    ("Expect", "Refusing", "refused by the caller, or too slow"),
    ("Expect", "Closed", "the peer takes nothing"),
    ("Body", "Request", "the body has come"),
    ("Body", "Refusing", "bad or too large"),
    ("Body", "Refusing", "refused by the caller, or too slow"),
    ("Body", "Lingering", "answered by the head alone"),
    ("Body", "Closed", "no more input"),
    ("Body", "Closed", "the peer takes nothing"),
    ("Request", "Answering", "consumed"),
    ("Request", "Closed", "the peer takes nothing"),
    ("Answering", "Head", "answered"),
    ("Answering", "Lingering", "answered for the last time, and more may come"),
    ("Answering", "Closed", "answered for the last time"),
    ("Answering", "Closed", "the peer takes nothing"),
    ("Refusing", "Lingering", "the refusal is written"),
    ("Refusing", "Closed", "the peer takes nothing"),
    ("Lingering", "Closed", "no more input, or too much"),
    ("Lingering", "Closed", "the peer sends for too long"),
    ("Lingering", "Closed", "the peer takes nothing"),
    ("Closed", "Closed", "the peer takes nothing"),
];

machine!(Stage, TRANSITIONS: Head Expect Body Request Answering Refusing Lingering Closed);

/// The event for which the connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Idle,
    Head,
    Body,
    Linger,
}

impl<'m, const H: usize> Connection<'m, H> {
    /// Makes a connection with a store for a request (head and body together) and one for answers.
    #[must_use]
    pub fn new(input: impl Into<Store<'m>>, output: impl Into<Store<'m>>, limits: ConnectionLimits) -> Self {
        Connection {
            input: Input::new(input.into()),
            answer: ResponseBuffer::new(output.into()),
            limits,
            stage: Stage::Head,
            #[cfg(feature = "alloc")]
            waiting: 0,
            ended: false,
            closing: false,
            refused: None,
            drained: 0,
            waits: Waits::Nothing,
            since: 0,
            unsent: None,
            left: 0,
            due: 0,
        }
    }

    /// Forgets everything. The next connection uses the same storage and limits.
    pub fn reset(&mut self) {
        let (input, output) = (self.input.take_store(), self.answer.take_store());
        *self = Connection::new(input, output, self.limits);
    }

    /// Returns the place to read into. It is empty only while a request waits to be consumed.
    pub fn space(&mut self) -> &mut [u8] {
        self.space_within(usize::MAX)
    }

    /// Returns the place to read into, so that at most `most` bytes are held: those of the current request and
    /// the bytes after it. It is empty if `most` bytes are held.
    pub(crate) fn space_within(&mut self, most: usize) -> &mut [u8] {
        #[cfg(feature = "alloc")]
        let waiting = core::mem::take(&mut self.waiting);
        #[cfg(not(feature = "alloc"))]
        let waiting = 0;
        self.input.space(most, waiting)
    }

    /// While a body of known length is read: asks how many bytes more the peer has sent, as the system says, so that in a store that
    /// grows the next [`space`](Connection::space) has room for them. What a head only promises takes no memory.
    #[cfg(feature = "alloc")]
    pub(crate) fn expect(&mut self, sent: impl FnOnce() -> usize) {
        let missing = self.input.missing().filter(|_| self.stage == Stage::Body);
        self.waiting = missing.map_or(0, |missing| missing.min(sent()));
    }

    /// Returns the bytes of memory that the input has now. They are fewer than its limit only in a store that
    /// grows.
    #[must_use]
    pub fn input_size(&self) -> usize {
        self.input.size()
    }

    /// Returns the bytes of memory that answers have now. They are fewer than the limit only in a store that
    /// grows.
    #[must_use]
    pub(crate) fn output_size(&self) -> usize {
        self.answer.size()
    }

    /// Reports that `n` bytes were read into [`space`](Connection::space).
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Returns the bytes to send.
    pub fn pending(&mut self) -> &[u8] {
        self.answer.pending()
    }

    /// Returns `true` if there are bytes to send.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.answer.has_pending()
    }

    /// Reports that the first `n` pending bytes were sent, and drops them.
    pub fn sent(&mut self, n: usize) {
        self.answer.sent(n);
    }

    /// Works as far as it can. Call it after bytes were received, sent or written.
    pub fn step(&mut self, now: Millis) -> ConnectionStep {
        let step = self.advance();
        self.note_time(now);
        step
    }

    /// Returns the current request and its answer, from [`ConnectionStep::Expect`] or [`ConnectionStep::Request`] until the request is
    /// consumed. An answer that is written before the body is here is the last one of the connection.
    pub fn exchange(&mut self) -> Option<(HttpRequest<'_>, &mut ResponseBuffer<'m>)> {
        let body = (self.stage == Stage::Request).then(|| self.input.body());
        matches!(self.stage, Stage::Expect | Stage::Body | Stage::Request)
            .then_some((HttpRequest { head: self.input.head(), body }, &mut self.answer))
    }

    /// Refuses the request that is being read: the last answer is `status` without a body. Does nothing if the
    /// request is whole or refused. Take the next [`step`](Connection::step).
    pub fn refuse(&mut self, status: Status) {
        if matches!(self.stage, Stage::Head | Stage::Expect | Stage::Body) {
            self.stage.enter("refused by the caller, or too slow", Stage::Refusing(status));
            self.waits = Waits::Nothing;
        }
    }

    /// Drops the current request, whose answer comes later or is a stream. Without this call, it is dropped when
    /// answered.
    pub fn consume(&mut self) {
        if self.stage == Stage::Request {
            self.input.consume();
            self.stage.enter("consumed", Stage::Answering);
        }
    }

    /// Accepts no further request: the connection closes after the current answer, or at once if it is idle.
    pub fn close(&mut self) {
        self.closing = true;
        self.answer.close();
    }

    /// Gives unused memory back. Call it for connections that are idle for long, or carry an event stream.
    pub fn release(&mut self) {
        self.input.release();
        self.answer.release();
    }

    /// Returns the time, in milliseconds, by which to call [`expire`](Connection::expire). It follows the last
    /// [`step`](Connection::step) and the bytes [`sent`](Connection::sent) since then.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let waiting = self.patience().map(|millis| self.since.wrapping_add(millis));
        let writing = self.blocked_since().map(|since| {
            let stuck = since.wrapping_add(self.limits.write_time);
            if self.limits.write_rate > 0 && (self.due.wrapping_sub(stuck) as i64) < 0 { self.due } else { stuck }
        });
        match (waiting, writing) {
            (Some(waiting), Some(writing)) => Some(waiting.min(writing)),
            (one, other) => one.or(other),
        }
    }

    /// Sets the time and checks the deadlines.
    pub fn expire(&mut self, now: Millis) -> ExpireStatus {
        let slow = self.limits.write_rate > 0 && now.wrapping_sub(self.due) as i64 >= 0;
        if self.blocked_since().is_some_and(|since| slow || now.wrapping_sub(since) >= self.limits.write_time) {
            return self.abort("the peer takes nothing");
        }
        if self.patience().is_none_or(|millis| now.wrapping_sub(self.since) < millis) {
            return ExpireStatus::Nothing;
        }
        match self.waits {
            Waits::Head | Waits::Body => {
                self.refuse(Status::REQUEST_TIMEOUT);
                ExpireStatus::Refused
            }
            Waits::Linger => self.abort("the peer sends for too long"),
            Waits::Idle | Waits::Nothing => self.abort("idle for too long"),
        }
    }

    /// Returns the time since which the peer took no pending byte. Drivers need no other step when all bytes were
    /// sent.
    fn blocked_since(&self) -> Option<Millis> {
        self.unsent.filter(|_| self.answer.has_pending())
    }

    fn abort(&mut self, cause: &str) -> ExpireStatus {
        self.stage.enter(cause, Stage::Closed);
        self.answer.abandon();
        (self.waits, self.unsent) = (Waits::Nothing, None);
        ExpireStatus::Close
    }

    fn advance(&mut self) -> ConnectionStep {
        loop {
            match self.stage {
                Stage::Head => match self.read_head() {
                    Some(step) => return step,
                    None => continue,
                },
                Stage::Expect => {
                    if !self.give_leave() {
                        return ConnectionStep::Write;
                    }
                }
                Stage::Body => match self.read_body() {
                    Some(step) => return step,
                    None => continue,
                },
                Stage::Request if self.answer.is_owed() => return ConnectionStep::Request,
                Stage::Request => self.consume(),
                Stage::Answering if self.answer.is_done() => self.end_answer(),
                Stage::Answering => return ConnectionStep::Answering,
                Stage::Refusing(status) => {
                    if let Some(step) = self.write_refusal(status) {
                        return step;
                    }
                }
                Stage::Lingering => {
                    self.drained = self.drained.saturating_add(self.input.clear());
                    if !self.ended && self.drained <= self.limits.drain {
                        return ConnectionStep::Shut;
                    }
                    self.stage.enter("no more input, or too much", Stage::Closed);
                }
                Stage::Closed => return ConnectionStep::Close,
            }
        }
    }

    fn read_head(&mut self) -> Option<ConnectionStep> {
        match self.input.find_head(&self.limits) {
            Ok(Some(facts)) => self.begin(facts),
            Ok(None) if self.ended || (self.closing && self.input.is_empty()) => {
                self.stage.enter("no more input", Stage::Closed);
                None
            }
            Ok(None) => Some(ConnectionStep::Read),
            Err(status) => {
                self.stage.enter("bad or too large", Stage::Refusing(status));
                None
            }
        }
    }

    fn begin(&mut self, facts: HeadFacts) -> Option<ConnectionStep> {
        self.waits = Waits::Nothing;
        self.answer.owe(facts);
        self.answer.unread = true;
        if self.closing {
            self.answer.close();
        }
        if !facts.expects {
            self.stage.enter("the head has come", Stage::Body);
            return None;
        }
        self.stage.enter("the head has come, and the client waits for leave", Stage::Expect);
        Some(ConnectionStep::Expect)
    }

    /// Writes 100 (Continue), unless the request was answered. Returns `false` if there is no room yet.
    fn give_leave(&mut self) -> bool {
        let is_full = self.answer.is_owed() && self.answer.proceed() == Err(FullError::Now);
        if !is_full {
            self.stage.enter("leave was given, or there is an answer", Stage::Body);
        }
        !is_full
    }

    fn read_body(&mut self) -> Option<ConnectionStep> {
        if !self.answer.is_owed() {
            // The head alone was answered. The rest of the body can't be distinguished from another request.
            if !self.answer.is_done() {
                return Some(ConnectionStep::Answering);
            }
            self.linger("answered by the head alone");
            return None;
        }
        match self.input.find_body(&self.limits) {
            Ok(true) => {
                self.answer.unread = false;
                self.stage.enter("the body has come", Stage::Request);
                None
            }
            Ok(false) if self.ended => {
                self.stage.enter("no more input", Stage::Closed);
                None
            }
            Ok(false) => Some(ConnectionStep::Read),
            Err(status) => {
                self.stage.enter("bad or too large", Stage::Refusing(status));
                None
            }
        }
    }

    fn end_answer(&mut self) {
        self.waits = Waits::Nothing;
        match self.answer.closes() {
            // The client sends no more bytes, so a close cannot lose the answer.
            true if self.ended || self.input.is_empty() => {
                self.stage.enter("answered for the last time", Stage::Closed);
            }
            true => self.linger("answered for the last time, and more may come"),
            false => self.stage.enter("answered", Stage::Head),
        }
    }

    /// Drops all received bytes: no request is wanted any more.
    fn linger(&mut self, cause: &str) {
        self.input.clear();
        self.stage.enter(cause, Stage::Lingering);
    }

    /// Answers an invalid request; the last answer of the connection.
    fn write_refusal(&mut self, status: Status) -> Option<ConnectionStep> {
        self.refused = Some(status);
        self.answer.owe(HeadFacts::LAST);
        let mut written = Err(FullError::Never);
        if status == Status::BAD_REQUEST && self.input.is_post_with_control_characters() {
            written = self.answer.json(status, &|_| {}, CONTROL_CHARACTERS);
        }
        if written == Err(FullError::Never) {
            written = self.answer.full(status, &[], b"");
        }
        match written {
            Err(FullError::Now) => return Some(ConnectionStep::Write),
            // The store is too small for any answer: close without one.
            Ok(()) | Err(FullError::Never) => self.linger("the refusal is written"),
        }
        None
    }

    /// Notes the event for which the connection waits, and since which time.
    fn note_time(&mut self, now: Millis) {
        let pending = self.answer.has_pending();
        let waits = match self.stage {
            Stage::Head if !self.input.is_empty() => Waits::Head,
            Stage::Head => Waits::Idle,
            Stage::Body if self.answer.is_owed() => Waits::Body,
            Stage::Lingering => Waits::Linger,
            _ => Waits::Nothing,
        };
        // The rest of an answer has its own time. The connection is idle, or closes, after it.
        let is_after = matches!(waits, Waits::Idle | Waits::Linger);
        if waits != self.waits || (is_after && (pending || self.unsent.is_some())) {
            (self.waits, self.since) = (waits, now);
        }
        let moved = self.answer.take_moved();
        self.note_rate(moved, now);
        self.unsent = match self.unsent {
            _ if !pending => None,
            Some(since) if moved == 0 => Some(since),
            _ => Some(now),
        };
    }

    /// Sets the deadline of the pending bytes. New bytes extend it, but never beyond the time that all of them
    /// need from now on.
    fn note_rate(&mut self, moved: usize, now: Millis) {
        let left = self.answer.pending_len();
        let before = core::mem::replace(&mut self.left, left);
        let added = left.saturating_add(moved).saturating_sub(before);
        let Some(rate) = core::num::NonZero::new(Millis::from(self.limits.write_rate)) else { return };
        let time = |bytes: usize| (bytes as Millis).saturating_mul(1000) / rate;
        let most = i64::try_from(self.limits.write_time.saturating_add(time(left))).unwrap_or(i64::MAX);
        let rest = match self.unsent {
            Some(_) if moved < before => {
                (self.due.wrapping_sub(now) as i64).saturating_add_unsigned(time(added)).min(most)
            }
            _ => most,
        };
        self.due = now.wrapping_add(rest as Millis);
    }

    /// Returns the milliseconds to wait for the current event.
    fn patience(&self) -> Option<Millis> {
        match self.waits {
            Waits::Nothing => None,
            Waits::Idle | Waits::Linger if self.answer.has_pending() => None,
            Waits::Idle => Some(self.limits.idle_time),
            Waits::Head => Some(self.limits.head_time),
            Waits::Body => Some(self.limits.body_time),
            Waits::Linger => Some(self.limits.linger_time),
        }
    }
}
