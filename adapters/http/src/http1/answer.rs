//! Writes answers: a head, then one body, or an event stream that stays open.

use mcp_sansio::json::write::digits;
use mcp_sansio::memory::Store;
use mcp_sansio::sink::{FullError, Sink, copy};

use super::head::HeadFacts;
use super::status::Status;

/// Headers to write: names and values. Characters that would end a header are left out.
pub type HeaderFields<'f> = &'f [(&'f str, &'f str)];

/// Gives headers to a function: names and values.
type GiveFields<'f> = &'f dyn Fn(&mut dyn FnMut(&str, &str));

/// Writes the answers of a connection, one after the other, into lent storage.
///
/// An answer is a whole one ([`full`](ResponseBuffer::full)), or an event stream: [`stream`](ResponseBuffer::stream), then its
/// bytes through [`Sink`], then [`end_stream`](ResponseBuffer::end_stream).
///
/// A function that returns [`FullError`] has written nothing. See [`Connection`](super::Connection) for an example.
#[derive(Debug)]
pub struct ResponseBuffer<'m> {
    store: Store<'m>,
    /// First byte that was not sent.
    start: usize,
    end: usize,
    facts: HeadFacts,
    pub(super) phase: Phase,
    framing: Delimited,
    /// Start of the chunk that still grows.
    chunk: Option<usize>,
    /// The request was not read to its end, so no other answer can follow.
    pub(super) unread: bool,
    /// Number of bytes sent since the last call of `take_moved`.
    moved: usize,
}

/// The progress of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No request, or the whole answer is written.
    Done,
    /// The head comes next.
    Owed,
    /// The head of an event stream comes with its first byte. Until then a whole answer may come.
    Deferred,
    /// An event stream is open.
    Stream,
}

/// The framing of the body, for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delimited {
    /// The answer has no body.
    NoBody,
    ByLength,
    ByChunks,
    ByClose,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Lines of a head, with the end of the line before them.
const NO_LINES: &[u8] = b"\r\n";
const JSON: &[u8] = b"\r\nContent-Type: application/json\r\n";
const EVENTS: &[u8] = b"\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
/// More bytes than the head of an event stream without further headers has.
const EVENTS_HEAD: usize = 256;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Bytes reserved for the end of a chunk and for the last chunk.
const TAIL: usize = 2 + LAST_CHUNK.len();

impl<'m> ResponseBuffer<'m> {
    pub(super) fn new(store: Store<'m>) -> Self {
        ResponseBuffer {
            store,
            start: 0,
            end: 0,
            facts: HeadFacts::LAST,
            phase: Phase::Done,
            framing: Delimited::NoBody,
            chunk: None,
            unread: false,
            moved: 0,
        }
    }

    pub(super) const fn take_store(&mut self) -> Store<'m> {
        core::mem::replace(&mut self.store, Store::none())
    }

    /// Notes a request that wants an answer.
    pub(super) const fn owe(&mut self, facts: HeadFacts) {
        self.facts = facts;
        self.phase = Phase::Owed;
        self.unread = false;
    }

    /// Returns `true` if no byte of the answer was written.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.phase == Phase::Owed
    }

    /// Returns `true` if an event stream is open.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.phase == Phase::Stream
    }

    /// Returns `true` if the answer is written to its end. There may still be bytes to send.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Makes this the last answer of its connection.
    pub const fn close(&mut self) {
        self.facts.close = true;
    }

    pub(super) const fn closes(&self) -> bool {
        self.facts.close || self.unread
    }

    /// Writes a whole answer.
    ///
    /// # Errors
    /// [`FullError::Now`] if there is no room until pending bytes are sent; [`FullError::Never`] if the store is too small
    /// or no request waits for an answer.
    pub fn full(&mut self, status: Status, fields: HeaderFields<'_>, body: &[u8]) -> Result<(), FullError> {
        self.full_with(status, &|give| give_all(fields, give), body)
    }

    /// Writes a whole answer with the headers that `fields` gives.
    pub(crate) fn full_with(&mut self, status: Status, fields: GiveFields<'_>, body: &[u8]) -> Result<(), FullError> {
        self.whole(status, NO_LINES, fields, body)
    }

    /// Writes a whole answer with a body of JSON, and the headers that `fields` gives.
    pub(crate) fn json(&mut self, status: Status, fields: GiveFields<'_>, body: &[u8]) -> Result<(), FullError> {
        self.whole(status, JSON, fields, body)
    }

    fn whole(&mut self, status: Status, lines: &[u8], fields: GiveFields<'_>, body: &[u8]) -> Result<(), FullError> {
        let before = self.pending_len();
        self.head(status, lines, fields, Some(body.len()))?;
        if self.framing == Delimited::ByLength && !self.append(body) {
            return Err(self.take_back(before));
        }
        self.phase = Phase::Done;
        Ok(())
    }

    /// Begins an event stream with status 200, and with headers that keep proxies from buffering or caching it.
    ///
    /// # Errors
    /// [`FullError::Now`] if there is no room until pending bytes are sent; [`FullError::Never`] if the store is too small
    /// for the head or no request waits for an answer.
    pub fn stream(&mut self, fields: HeaderFields<'_>) -> Result<(), FullError> {
        self.stream_of(&|give| give_all(fields, give))
    }

    /// Does the same as [`stream`](ResponseBuffer::stream), with the headers that `fields` gives.
    pub(crate) fn stream_of(&mut self, fields: GiveFields<'_>) -> Result<(), FullError> {
        self.head(Status::OK, EVENTS, fields, None)?;
        self.phase = if self.framing == Delimited::NoBody { Phase::Done } else { Phase::Stream };
        Ok(())
    }

    /// Does the same as [`stream`](ResponseBuffer::stream) without headers, as soon as the stream has a byte. Until then
    /// [`refuse_deferred`](ResponseBuffer::refuse_deferred) may answer.
    pub(crate) fn defer_stream(&mut self) -> Result<(), FullError> {
        if self.free() < 2 * EVENTS_HEAD {
            return self.stream(&[]);
        }
        self.phase = Phase::Deferred;
        Ok(())
    }

    /// Writes a whole answer with a body of JSON in place of a deferred stream.
    pub(crate) fn refuse_deferred(&mut self, status: Status, body: &[u8]) -> Result<(), FullError> {
        self.phase = Phase::Owed;
        self.json(status, &|_| {}, body)
    }

    /// Returns `true` if no byte of a deferred stream was written.
    pub(crate) fn is_deferred(&self) -> bool {
        cfg!(feature = "alloc") && self.phase == Phase::Deferred
    }

    fn begin_deferred(&mut self) -> Result<(), FullError> {
        if !self.is_deferred() {
            return Err(FullError::Never);
        }
        self.phase = Phase::Owed;
        self.stream(&[]).inspect_err(|_| self.phase = Phase::Deferred)
    }

    /// Ends an event stream, in room reserved for the end. Without a stream it does nothing.
    pub fn end_stream(&mut self) {
        if self.phase != Phase::Stream && self.begin_deferred().is_err() {
            return;
        }
        self.end_chunk();
        if self.framing == Delimited::ByChunks {
            // The room for this was reserved.
            let _ = self.append(LAST_CHUNK);
        }
        self.phase = Phase::Done;
    }

    /// Returns the bytes to send.
    pub fn pending(&mut self) -> &[u8] {
        self.end_chunk();
        self.store.bytes().get(self.start..self.end).unwrap_or(&[])
    }

    /// Returns `true` if there are bytes to send.
    #[must_use]
    pub const fn has_pending(&self) -> bool {
        self.end > self.start
    }

    /// Reports that the first `n` pending bytes were sent, and drops them.
    pub fn sent(&mut self, n: usize) {
        let n = n.min(self.pending_len());
        self.moved = self.moved.saturating_add(n);
        self.start += n;
        if self.start == self.end {
            (self.start, self.end, self.chunk) = (0, 0, None);
        }
    }

    /// Returns the number of bytes sent since the last call.
    pub(super) const fn take_moved(&mut self) -> usize {
        core::mem::replace(&mut self.moved, 0)
    }

    /// Returns the number of bytes to send.
    pub(super) const fn pending_len(&self) -> usize {
        self.end - self.start
    }

    /// Returns the current size of the store in bytes.
    pub(super) fn size(&self) -> usize {
        self.store.bytes().len()
    }

    /// Forgets the pending bytes.
    pub(super) const fn abandon(&mut self) {
        (self.start, self.end, self.chunk) = (0, 0, None);
        self.phase = Phase::Done;
    }

    /// Writes 100 (Continue).
    pub(super) fn proceed(&mut self) -> Result<(), FullError> {
        let before = self.pending_len();
        if self.free() < CONTINUE.len() + TAIL || !self.append(CONTINUE) { Err(self.take_back(before)) } else { Ok(()) }
    }

    /// Gives memory back to the allocator, if the store is empty.
    pub(super) fn release(&mut self) {
        if self.start == self.end {
            self.store.shrink(0);
            (self.start, self.end, self.chunk) = (0, 0, None);
        }
    }

    /// Takes back all but the first `pending` bytes. Returns [`FullError::Never`] if no byte is pending: to wait cannot help
    /// then.
    const fn take_back(&mut self, pending: usize) -> FullError {
        self.end = self.start + pending;
        if pending == 0 { FullError::Never } else { FullError::Now }
    }

    fn free(&self) -> usize {
        self.store.limit().saturating_sub(self.pending_len())
    }

    /// Writes a head, whole or not at all: `length` is that of a whole body.
    fn head(
        &mut self,
        status: Status,
        lines: &[u8],
        fields: GiveFields<'_>,
        length: Option<usize>,
    ) -> Result<(), FullError> {
        if self.phase != Phase::Owed {
            return Err(FullError::Never);
        }
        let before = self.pending_len();
        let framing = match length {
            _ if self.facts.head || status.is_bodiless() => Delimited::NoBody,
            None if self.facts.http10 => Delimited::ByClose,
            None => Delimited::ByChunks,
            Some(_) => Delimited::ByLength,
        };
        let close = self.closes() || framing == Delimited::ByClose;
        let plan = Plan { status, lines, fields, length, framing, close, http10: self.facts.http10 };
        if !lay_head(&plan, &mut |parts| self.append_all(parts)) || self.free() < TAIL {
            return Err(self.take_back(before));
        }
        (self.framing, self.facts.close) = (framing, close);
        Ok(())
    }

    /// Returns the digits of a chunk's size. Four are enough for a store of 64 KiB.
    fn chunk_digits(&self) -> usize {
        if self.store.limit() <= 0xffff { 4 } else { 8 }
    }

    /// Leaves room for the size of a chunk.
    fn begin_chunk(&mut self) {
        let head = b"00000000\r\n";
        let head = head.get(8 - self.chunk_digits()..).unwrap_or(head);
        if self.append(head) {
            self.chunk = Some(self.end - head.len());
        }
    }

    /// Writes the size of the current chunk.
    fn end_chunk(&mut self) {
        let Some(at) = self.chunk.take() else { return };
        let digits = self.chunk_digits();
        let size = self.end.saturating_sub(at + digits + 2);
        if size == 0 {
            self.end = at;
            return;
        }
        if let Some(places) = self.store.bytes_mut().get_mut(at..).and_then(|from| from.get_mut(..digits)) {
            let mut rest = size;
            for place in places.iter_mut().rev() {
                *place = char::from_digit((rest & 15) as u32, 16).map_or(b'0', |digit| digit as u8);
                rest >>= 4;
            }
        }
        // The room for this was reserved.
        let _ = self.append(b"\r\n");
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        if !self.make_room(bytes.len()) {
            return false;
        }
        let place = self.store.bytes_mut().get_mut(self.end..).unwrap_or(&mut []);
        copy(place, bytes);
        self.end += bytes.len();
        true
    }

    /// Appends all parts or none.
    fn append_all(&mut self, parts: &[&[u8]]) -> bool {
        let len = parts.iter().map(|part| part.len()).sum();
        if !self.make_room(len) {
            return false;
        }
        let mut place = self.store.bytes_mut().get_mut(self.end..).unwrap_or(&mut []);
        for part in parts {
            copy(place, part);
            place = place.get_mut(part.len()..).unwrap_or(&mut []);
        }
        self.end += len;
        true
    }

    fn make_room(&mut self, len: usize) -> bool {
        self.store.bytes().len().saturating_sub(self.end) >= len || self.make_more_room(len)
    }

    #[cold]
    fn make_more_room(&mut self, len: usize) -> bool {
        if self.free() < len {
            return false;
        }
        self.compact();
        self.store.reach(self.end + len)
    }

    /// Moves the pending bytes to the front.
    fn compact(&mut self) {
        let (start, end) = (self.start, self.end);
        let bytes = self.store.bytes_mut();
        if start == 0 || start > end || end > bytes.len() {
            return;
        }
        bytes.copy_within(start..end, 0);
        (self.start, self.end) = (0, end - start);
        self.chunk = self.chunk.map(|at| at.saturating_sub(start));
    }
}

/// Appends bytes to an open event stream.
impl Sink for ResponseBuffer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.phase != Phase::Stream {
            self.begin_deferred()?;
        }
        if self.room() < bytes.len() {
            return Err(FullError::Now);
        }
        if self.framing == Delimited::ByChunks && self.chunk.is_none() {
            self.begin_chunk();
        }
        if self.append(bytes) { Ok(()) } else { Err(FullError::Now) }
    }

    fn room(&self) -> usize {
        let head = match self.phase {
            Phase::Stream => 0,
            Phase::Deferred => EVENTS_HEAD,
            Phase::Done | Phase::Owed => return 0,
        };
        let chunk = if self.chunk.is_some() { 0 } else { self.chunk_digits() + 2 };
        self.free().saturating_sub(head + chunk + TAIL)
    }
}

/// The parts of a head.
struct Plan<'p> {
    status: Status,
    /// The end of the line before, and headers that are already lines.
    lines: &'p [u8],
    fields: GiveFields<'p>,
    /// The length of the body, if it is whole.
    length: Option<usize>,
    framing: Delimited,
    close: bool,
    http10: bool,
}

/// Gives a head to `put`, in pieces.
fn lay_head(plan: &Plan<'_>, put: &mut dyn FnMut(&[&[u8]]) -> bool) -> bool {
    let (status, mut places, mut line) = (plan.status, [0; 20], Status::UNNAMED);
    let start = status.start().map_or_else(|| status.unnamed_start(&mut line), str::as_bytes);
    let (end, value): (&[u8], &[u8]) = match (plan.framing, plan.length) {
        (_, Some(length)) if !status.is_bodiless() => (Status::LENGTH, digits(length as u64, &mut places)),
        (Delimited::ByChunks, _) => (b"", b"\r\nTransfer-Encoding: chunked"),
        _ => (b"", b""),
    };
    // Most answers have a length, so it is a part of the start.
    let start = if end.is_empty() { start.strip_suffix(Status::LENGTH).unwrap_or(start) } else { start };
    let mut fits = put(&[start, value, plan.lines]);
    (plan.fields)(&mut |name, value| fits = fits && lay_field(name, value, put));
    fits && put(&[match (plan.close, plan.http10) {
        (true, _) => b"Connection: close\r\n\r\n",
        (false, true) => b"Connection: keep-alive\r\n\r\n",
        (false, false) => b"\r\n",
    }])
}

fn give_all(fields: HeaderFields<'_>, give: &mut dyn FnMut(&str, &str)) {
    fields.iter().for_each(|(name, value)| give(name, value));
}

fn lay_field(name: &str, value: &str, put: &mut dyn FnMut(&[&[u8]]) -> bool) -> bool {
    if name.is_empty() || !name.bytes().all(crate::names::is_token) {
        return true;
    }
    if !value.bytes().any(is_control) {
        return put(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    put(&[name.as_bytes(), b": "])
        && value.as_bytes().split(|&byte| is_control(byte)).all(|part| put(&[part]))
        && put(&[b"\r\n"])
}

/// Returns `true` for a byte that must not be in the value of a header.
const fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn released_memory_is_given_back() {
        let mut answer = ResponseBuffer::new(Store::growing(100_000));
        answer.owe(HeadFacts::LAST);
        answer.full(Status::OK, &[], &[b'x'; 50_000]).unwrap();
        let len = answer.pending().len();
        answer.sent(len - 1);
        answer.release();
        assert!(answer.store.bytes().len() >= len, "what is pending stays");
        assert_eq!(answer.pending(), b"x");
        answer.sent(1);
        answer.release();
        assert_eq!((answer.store.bytes().len(), answer.store.limit()), (0, 100_000));
        // Lent memory stays.
        let mut lent = [0; 64];
        let mut answer = ResponseBuffer::new(Store::from(&mut lent[..]));
        answer.release();
        assert_eq!(answer.store.bytes().len(), 64);
    }
}
