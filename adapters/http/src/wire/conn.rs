//! A connection: requests in, answers out, one at a time, and what becomes of it.

use mcp_sansio::Full;
use mcp_sansio::server::Millis;
use mcp_sansio::store::Store;

use super::answer::Answer;
use super::head::{Asked, Head};
use super::input::Input;
use super::limits::Limits;
use super::status::Status;

/// What a [`Connection`] is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum Step {
    /// More bytes are needed: read. There may be something to send, too.
    Read,
    /// The head of a request is here, and the client waits for leave to send its body. Said once. Refuse by writing
    /// an answer now, otherwise the next step gives the leave.
    Expect,
    /// A whole request is here, the same one until it is consumed or answered.
    Request,
    /// The answer is under way. Reading goes on only to notice that the client has gone.
    Answering,
    /// Room is needed: send what is pending.
    Write,
    /// The last answer is written although the client may still be sending. Send what is pending, shut down the
    /// sending side, then read on until [`Step::Close`]: otherwise the client may never see the answer.
    Shut,
    /// Send what is pending, then close.
    Close,
}

/// What time has made of a connection, see [`Connection::expire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum Expired {
    /// No deadline has passed.
    Nothing,
    /// The request took too long: 408 is the answer, and the last one. Take the next [`step`](Connection::step).
    Refused,
    /// The connection is over: close it, whatever is pending.
    Close,
}

/// A whole request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'r> {
    /// Method, path and headers.
    pub head: Head<'r>,
    /// The body, empty if there is none.
    pub body: &'r [u8],
}

/// One HTTP/1.1 connection, the server's side, without any I/O: requests of at most `H` headers in, answers out.
///
/// Read into [`space`](Connection::space), say with [`filled`](Connection::filled) how much came, do what
/// [`step`](Connection::step) says, write what is [`pending`](Connection::pending). Requests are taken one at a time;
/// what a client sends ahead waits. Everything that is no proper request is answered here, and ends the connection.
///
/// ```
/// use mcp_sansio_http::wire::{Connection, Limits, Status, Step};
///
/// let (mut input, mut output) = ([0; 512], [0; 512]);
/// let mut connection = Connection::<16>::new(&mut input, &mut output, Limits::default());
/// // 1. Read as much as there is, in pieces of any size.
/// let received = b"POST /mcp?x=1 HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 2\r\n\r\n{}";
/// connection.space()[..received.len()].copy_from_slice(received);
/// connection.filled(received.len());
/// // 2. See what it is.
/// let now = 0;
/// assert_eq!(connection.step(now), Step::Request);
/// if let Some((request, answer)) = connection.exchange() {
///     assert_eq!((request.head.method(), request.head.path(), request.body), ("POST", "/mcp", &b"{}"[..]));
///     assert_eq!(request.head.host(), Some("localhost:80"));
///     assert_eq!(request.head.get("content-length"), Some(&b"2"[..]));
///     answer.full(Status::ACCEPTED, &[], b"")?;
/// }
/// // 3. Write what is pending, as much as the other end takes.
/// assert_eq!(connection.pending(), b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
/// let taken = connection.pending().len();
/// connection.sent(taken);
/// // The connection is kept for the next request.
/// assert_eq!(connection.step(now), Step::Read);
/// assert_eq!(connection.next_deadline(), Some(60_000));
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
#[derive(Debug)]
pub struct Connection<'m, const H: usize = 32> {
    input: Input<'m, H>,
    answer: Answer<'m>,
    limits: Limits,
    stage: Stage,
    /// No more input comes.
    ended: bool,
    /// No other request is wanted.
    closing: bool,
    refused: Option<Status>,
    /// Bytes dropped since the last answer.
    drained: usize,
    waits: Waits,
    since: Millis,
    /// Since when nothing of what is pending was taken.
    unsent: Option<Millis>,
    /// Bytes that were pending when the time was noted last.
    left: usize,
    /// When all of what is pending must have been taken, if there is a rate for that.
    due: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    /// The client was promised an answer to its `Expect`.
    Expect,
    Body,
    /// A whole request waits.
    Request,
    /// The request was consumed, its answer is under way.
    Answering,
    Refusing(Status),
    Lingering,
    Closed,
}

/// What the peer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Idle,
    Head,
    Body,
    Linger,
}

impl<'m, const H: usize> Connection<'m, H> {
    /// A connection that nothing has come over yet, with a store for a request, head and body together, and one for
    /// answers.
    #[must_use]
    pub fn new(input: impl Into<Store<'m>>, output: impl Into<Store<'m>>, limits: Limits) -> Self {
        Connection {
            input: Input::new(input.into()),
            answer: Answer::new(output.into()),
            limits,
            stage: Stage::Head,
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

    /// Forgets everything: the next connection uses the same storage and has the same limits.
    pub fn reset(&mut self) {
        let (input, output) = (self.input.take_store(), self.answer.take_store());
        *self = Connection::new(input, output, self.limits);
    }

    /// Where to read to. Empty only while a request waits to be consumed.
    pub fn space(&mut self) -> &mut [u8] {
        self.space_within(usize::MAX)
    }

    /// The same for at most `most` bytes that are held together: those of the request at hand and what came behind it.
    /// Empty if so many are held already.
    pub fn space_within(&mut self, most: usize) -> &mut [u8] {
        self.input.space(most)
    }

    /// Its limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of memory that the input has now. Only a store that grows ever has fewer than its limit.
    #[must_use]
    pub fn input_size(&self) -> usize {
        self.input.size()
    }

    /// Says that `n` bytes were read into [`space`](Connection::space).
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Says that no more input comes. What was asked is still answered; whether an open stream is worth going on with
    /// is the caller's to know.
    pub const fn end_of_input(&mut self) {
        self.ended = true;
    }

    /// Whether the input has ended.
    #[must_use]
    pub const fn input_ended(&self) -> bool {
        self.ended
    }

    /// The bytes to send.
    pub fn pending(&mut self) -> &[u8] {
        self.answer.pending()
    }

    /// Whether there is anything to send.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.answer.has_pending()
    }

    /// Drops the first `n` pending bytes: they were sent.
    pub fn sent(&mut self, n: usize) {
        self.answer.sent(n);
    }

    /// Goes as far as it can. Call it after every change: bytes that came, that were sent, that were written.
    pub fn step(&mut self, now: Millis) -> Step {
        let step = self.advance(now);
        self.note_time(now);
        step
    }

    /// The head of the request at hand: as soon as [`Step::Expect`] or [`Step::Request`] said that it is here, and
    /// until the request is consumed.
    #[must_use]
    pub fn head(&self) -> Option<Head<'_>> {
        matches!(self.stage, Stage::Expect | Stage::Body | Stage::Request).then(|| self.input.head())
    }

    /// The request at hand and where its answer goes to.
    pub fn exchange(&mut self) -> Option<(Request<'_>, &mut Answer<'m>)> {
        if self.stage != Stage::Request {
            return None;
        }
        Some((Request { head: self.input.head(), body: self.input.body() }, &mut self.answer))
    }

    /// The head of the request at hand, whose body need not have come, and where its answer goes to. An answer that is
    /// written before the body has come is the last one of the connection.
    pub fn head_exchange(&mut self) -> Option<(Head<'_>, &mut Answer<'m>)> {
        matches!(self.stage, Stage::Expect | Stage::Body | Stage::Request)
            .then_some((self.input.head(), &mut self.answer))
    }

    /// Refuses the request that is still being read: `status` without a body is the answer, and the last one. Does
    /// nothing once the request is whole or refused. Take the next [`step`](Connection::step).
    pub const fn refuse(&mut self, status: Status) {
        if matches!(self.stage, Stage::Head | Stage::Expect | Stage::Body) {
            self.stage = Stage::Refusing(status);
            self.waits = Waits::Nothing;
        }
    }

    /// Where the answer goes to, for later.
    pub const fn answer(&mut self) -> &mut Answer<'m> {
        &mut self.answer
    }

    /// Drops the request at hand: its answer comes later or is a stream. Without this it is dropped when it was answered.
    pub fn consume(&mut self) {
        if self.stage == Stage::Request {
            self.input.consume();
            self.stage = Stage::Answering;
        }
    }

    /// Lets no other request follow: after the answer that is under way the connection closes, an idle one at once.
    pub fn close(&mut self) {
        self.closing = true;
        self.answer.close();
    }

    /// With what status the connection itself refused what came, if it did.
    #[must_use]
    pub const fn refused(&self) -> Option<Status> {
        self.refused
    }

    /// Gives back memory that grew, as far as it is not in use: for connections that are idle for long, and for those
    /// that carry an event stream.
    pub fn release(&mut self) {
        self.input.release();
        self.answer.release();
    }

    /// When [`expire`](Connection::expire) is to be called, at the latest, as of the last [`step`](Connection::step) and
    /// what was [`sent`](Connection::sent) since.
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

    /// Tells the time, for the deadlines that may have passed.
    pub fn expire(&mut self, now: Millis) -> Expired {
        let slow = self.limits.write_rate > 0 && now.wrapping_sub(self.due) as i64 >= 0;
        if self.blocked_since().is_some_and(|since| slow || now.wrapping_sub(since) >= self.limits.write_time) {
            return self.abort();
        }
        if self.patience().is_none_or(|millis| now.wrapping_sub(self.since) < millis) {
            return Expired::Nothing;
        }
        match self.waits {
            Waits::Head | Waits::Body => {
                self.refuse(Status::REQUEST_TIMEOUT);
                Expired::Refused
            }
            _ => self.abort(),
        }
    }

    /// Since when the peer takes nothing of what is pending. Drivers need not take another step when all was sent.
    fn blocked_since(&self) -> Option<Millis> {
        self.unsent.filter(|_| self.answer.has_pending())
    }

    fn abort(&mut self) -> Expired {
        self.stage = Stage::Closed;
        self.answer.abandon();
        (self.waits, self.unsent) = (Waits::Nothing, None);
        Expired::Close
    }

    fn advance(&mut self, now: Millis) -> Step {
        loop {
            match self.stage {
                Stage::Head => match self.read_head(now) {
                    Some(step) => return step,
                    None => continue,
                },
                Stage::Expect => self.give_leave(),
                Stage::Body => match self.read_body() {
                    Some(step) => return step,
                    None => continue,
                },
                Stage::Request if self.answer.is_owed() => return Step::Request,
                Stage::Request => self.consume(),
                Stage::Answering if self.answer.is_done() => self.end_answer(),
                Stage::Answering => return Step::Answering,
                Stage::Refusing(status) => {
                    if let Some(step) = self.write_refusal(status) {
                        return step;
                    }
                }
                Stage::Lingering => {
                    self.drained = self.drained.saturating_add(self.input.clear());
                    if !self.ended && self.drained <= self.limits.drain {
                        return Step::Shut;
                    }
                    self.stage = Stage::Closed;
                }
                Stage::Closed => return Step::Close,
            }
        }
    }

    fn read_head(&mut self, now: Millis) -> Option<Step> {
        // A request that follows at once has its own time.
        if self.waits != Waits::Idle && self.waits != Waits::Head {
            (self.waits, self.since) = (Waits::Idle, now);
        }
        match self.input.find_head(&self.limits) {
            Ok(Some(asked)) => self.begin(asked),
            Ok(None) if self.ended || (self.closing && self.input.is_empty()) => {
                self.stage = Stage::Closed;
                None
            }
            Ok(None) => Some(Step::Read),
            Err(status) => {
                self.stage = Stage::Refusing(status);
                None
            }
        }
    }

    fn begin(&mut self, asked: Asked) -> Option<Step> {
        self.waits = Waits::Nothing;
        self.answer.owe(asked);
        self.answer.unread = true;
        if self.closing {
            self.answer.close();
        }
        self.stage = if asked.expects { Stage::Expect } else { Stage::Body };
        asked.expects.then_some(Step::Expect)
    }

    /// The client may send its body, unless it was answered already.
    fn give_leave(&mut self) {
        self.stage = Stage::Body;
        if self.answer.is_owed() && self.answer.proceed() == Err(Full::Now) {
            self.stage = Stage::Expect;
        }
    }

    fn read_body(&mut self) -> Option<Step> {
        if !self.answer.is_owed() {
            // Answered by its head alone. What is still to come can't be told from another request.
            if !self.answer.is_done() {
                return Some(Step::Answering);
            }
            self.linger();
            return None;
        }
        match self.input.find_body(&self.limits) {
            Ok(true) => {
                self.answer.unread = false;
                self.stage = Stage::Request;
                None
            }
            Ok(false) if self.ended => {
                self.stage = Stage::Closed;
                None
            }
            Ok(false) => Some(Step::Read),
            Err(status) => {
                self.stage = Stage::Refusing(status);
                None
            }
        }
    }

    fn end_answer(&mut self) {
        self.waits = Waits::Nothing;
        match self.answer.closes() {
            // Nothing that the client was still sending can drown the answer.
            true if self.ended || self.input.is_empty() => self.stage = Stage::Closed,
            true => self.linger(),
            false => self.stage = Stage::Head,
        }
    }

    /// Nothing is wanted any more. What has come already does not count.
    fn linger(&mut self) {
        self.input.clear();
        self.stage = Stage::Lingering;
    }

    /// Answers what is no proper request; the last answer of the connection.
    fn write_refusal(&mut self, status: Status) -> Option<Step> {
        self.refused = Some(status);
        self.answer.owe(Asked::LAST);
        match self.answer.full(status, &[], b"") {
            Err(Full::Now) => {
                self.answer.owe(Asked::LAST);
                return Some(Step::Write);
            }
            // Too small for any answer, it closes without one.
            Ok(()) | Err(Full::Never) => self.linger(),
        }
        None
    }

    /// Keeps track of what is waited for, and since when.
    fn note_time(&mut self, now: Millis) {
        let pending = self.answer.has_pending();
        let waits = match self.stage {
            Stage::Head if !self.input.is_empty() => Waits::Head,
            Stage::Head => Waits::Idle,
            Stage::Body if self.answer.is_owed() => Waits::Body,
            Stage::Lingering => Waits::Linger,
            _ => Waits::Nothing,
        };
        // What was still being sent has its own time; it is idle from then on.
        if waits != self.waits || (waits == Waits::Idle && (pending || self.unsent.is_some())) {
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

    /// Gives what is pending its time: what was added prolongs it, but never beyond what all of it takes from now on.
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

    /// How long to wait for what is waited for.
    fn patience(&self) -> Option<Millis> {
        match self.waits {
            Waits::Nothing => None,
            Waits::Idle if self.answer.has_pending() => None,
            Waits::Idle => Some(self.limits.idle_time),
            Waits::Head => Some(self.limits.head_time),
            Waits::Body => Some(self.limits.body_time),
            Waits::Linger => Some(self.limits.linger_time),
        }
    }
}
