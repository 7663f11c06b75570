//! Writes answers: a head, then one body, or an event stream that stays open.

use mcp_sansio::memory::Store;
use mcp_sansio::sink::{FullError, Mark, Sink};

use super::head::HeadFacts;
use super::status::Status;

/// Headers to write: names and values. Characters that would end a header are left out.
pub type HeaderFields<'f> = &'f [(&'f str, &'f str)];

/// Gives headers to a function: names and values.
type GiveFields<'f> = &'f dyn Fn(&mut dyn FnMut(&str, &str));

/// Writes the answers of a connection, one after the other, into lent storage.
///
/// An answer is one of three:
///
/// - a whole one: [`full`](ResponseBuffer::full);
/// - one JSON message, through [`BodyOut`](super::BodyOut) or [`DraftOut`](super::DraftOut);
/// - an event stream: [`stream`](ResponseBuffer::stream), then messages through [`EventOut`](super::EventOut) and other
///   bytes through [`Sink`], then [`end_stream`](ResponseBuffer::end_stream).
///
/// A function that returns [`FullError`] has written nothing. See [`Connection`](super::Connection) for an example.
#[derive(Debug)]
pub struct ResponseBuffer<'m> {
    store: Store<'m>,
    grows: bool,
    /// First byte that was not sent.
    start: usize,
    end: usize,
    facts: HeadFacts,
    pub(super) phase: Phase,
    framing: Delimited,
    /// The start of the answer, while no byte of it was sent: it can still be taken back.
    began: Option<usize>,
    /// The place of the ten digits for the length of the body.
    length_at: usize,
    body_at: usize,
    /// Start of the chunk that still grows.
    chunk: Option<usize>,
    pub(super) held: bool,
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
    /// One message is being written as a body.
    Body,
    /// An event stream is open.
    Stream,
    /// A body is written or being written; its head comes later.
    Draft,
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

/// The kind of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// A body of this length.
    Known(usize),
    /// A body that is whole before it is sent.
    Message,
    /// A body that is sent while it is written.
    Flow,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Lines of a head, with the end of the line before them.
const NO_LINES: &[u8] = b"\r\n";
const JSON: &[u8] = b"\r\nContent-Type: application/json\r\n";
const EVENTS: &[u8] = b"\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Bytes reserved for the end of a chunk and for the last chunk.
const TAIL: usize = 2 + LAST_CHUNK.len();
/// Bytes left for a head that comes after its body. A longer head moves the body.
const GAP: usize = 192;
/// Digits of a length that is not known yet.
const PLACES: usize = 10;

impl<'m> ResponseBuffer<'m> {
    pub(super) fn new(store: Store<'m>) -> Self {
        ResponseBuffer {
            grows: store.bytes().len() < store.limit(),
            store,
            start: 0,
            end: 0,
            facts: HeadFacts::LAST,
            phase: Phase::Done,
            framing: Delimited::NoBody,
            began: None,
            length_at: 0,
            body_at: 0,
            chunk: None,
            held: false,
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
        self.held = false;
        self.began = None;
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
        let mark = self.mark();
        self.head(status, lines, fields, Content::Known(body.len()))?;
        if self.framing == Delimited::ByLength && !self.append(body) {
            self.roll_back(mark);
            return Err(self.full_at(mark));
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
        self.begin_stream(Status::OK, EVENTS, fields)
    }

    /// Begins an event stream with only these headers and those of framing and connection.
    ///
    /// # Errors
    /// As for [`stream`](ResponseBuffer::stream).
    pub fn stream_with(&mut self, status: Status, fields: HeaderFields<'_>) -> Result<(), FullError> {
        self.begin_stream(status, NO_LINES, &|give| give_all(fields, give))
    }

    fn begin_stream(&mut self, status: Status, lines: &[u8], fields: GiveFields<'_>) -> Result<(), FullError> {
        self.head(status, lines, fields, Content::Flow)?;
        self.phase = if self.framing == Delimited::NoBody { Phase::Done } else { Phase::Stream };
        Ok(())
    }

    /// Ends an event stream, in room reserved for the end. Without a stream it does nothing.
    pub fn end_stream(&mut self) {
        if self.phase == Phase::Stream {
            self.end_flow();
        }
    }

    /// Begins a body of JSON.
    pub(super) fn begin_body(
        &mut self,
        status: Status,
        fields: HeaderFields<'_>,
        flows: bool,
    ) -> Result<(), FullError> {
        let content = if flows { Content::Flow } else { Content::Message };
        self.head(status, JSON, &|give| give_all(fields, give), content)?;
        self.phase = Phase::Body;
        Ok(())
    }

    /// Ends a body of JSON.
    pub(super) fn end_body(&mut self) {
        match self.framing {
            Delimited::ByLength => self.write_length(),
            _ => self.end_flow(),
        }
        self.phase = Phase::Done;
    }

    /// Returns the bytes to send, without a body whose length is not known yet.
    pub fn pending(&mut self) -> &[u8] {
        if self.is_flowing() {
            self.end_chunk();
        }
        self.store.bytes().get(self.start..self.shown()).unwrap_or(&[])
    }

    /// Returns `true` if there are bytes to send.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.shown() > self.start
    }

    /// Reports that the first `n` pending bytes were sent, and drops them.
    pub fn sent(&mut self, n: usize) {
        let start = self.start.saturating_add(n).min(self.shown());
        self.moved = self.moved.saturating_add(start.saturating_sub(self.start));
        self.start = start;
        self.began = self.began.filter(|began| *began >= self.start && !self.is_done());
        if self.start == self.end {
            (self.start, self.end, self.chunk, self.began) = (0, 0, None, None);
        }
    }

    /// Returns the number of bytes sent since the last call.
    pub(super) const fn take_moved(&mut self) -> usize {
        core::mem::replace(&mut self.moved, 0)
    }

    /// Returns the number of bytes to send.
    pub(super) fn pending_len(&self) -> usize {
        self.shown().saturating_sub(self.start)
    }

    /// Returns the current size of the store in bytes.
    pub(super) fn size(&self) -> usize {
        self.store.bytes().len()
    }

    /// Forgets the pending bytes.
    pub(super) const fn abandon(&mut self) {
        (self.start, self.end, self.chunk, self.began) = (0, 0, None, None);
        self.phase = Phase::Done;
    }

    /// Writes 100 (Continue).
    pub(super) fn proceed(&mut self) -> Result<(), FullError> {
        if self.free() < CONTINUE.len() + TAIL || !self.append(CONTINUE) {
            return Err(self.full_at(self.mark()));
        }
        Ok(())
    }

    /// Gives memory back to the allocator, if the store is empty.
    #[cfg(feature = "alloc")]
    pub(super) fn release(&mut self) {
        if self.grows && self.start == self.end {
            self.store = Store::growing(self.store.limit());
            (self.start, self.end, self.chunk, self.began) = (0, 0, None, None);
        }
    }

    #[cfg(not(feature = "alloc"))]
    pub(super) const fn release(&mut self) {
        let _ = self.grows;
    }

    /// Returns the room for the data of a message whose head takes `head` bytes, without framing.
    pub(super) fn room_after(&self, head: usize) -> usize {
        let chunk = if self.chunk.is_some() { 0 } else { self.chunk_head() };
        self.free().saturating_sub(head.saturating_add(chunk + TAIL))
    }

    /// Returns the same with an empty store.
    pub(super) fn capacity_after(&self, head: usize) -> usize {
        self.store.limit().saturating_sub(head.saturating_add(self.chunk_head() + TAIL))
    }

    /// Returns the most bytes that the head of a body takes.
    pub(super) fn body_head(fields: HeaderFields<'_>) -> usize {
        let fields = fields.iter().map(|(name, value)| name.len() + value.len() + 4);
        let line = "HTTP/1.1 200 \r\n".len() + Status::LONGEST;
        let length = "Content-Length: ".len() + PLACES;
        fields.fold(line + length + JSON.len() + "Connection: keep-alive\r\n\r\n".len(), usize::saturating_add)
    }

    /// Returns the current place, counted from the first byte that was not sent.
    pub(super) const fn mark(&self) -> Mark {
        Mark::new(self.end - self.start)
    }

    /// Takes back all bytes since `mark`.
    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.end = self.end.min(self.start + mark.at());
        self.chunk = self.chunk.filter(|chunk| *chunk < self.end);
        if self.began.is_some_and(|began| self.end <= began) {
            self.phase = Phase::Owed;
            self.began = None;
        }
    }

    /// Returns [`FullError::Never`] if no byte is pending: to wait cannot help then.
    pub(super) const fn full_at(&self, mark: Mark) -> FullError {
        if mark.at() == 0 { FullError::Never } else { FullError::Now }
    }

    fn free(&self) -> usize {
        self.store.limit().saturating_sub(self.end - self.start)
    }

    /// Returns `true` while a body waits for its end.
    fn is_hidden(&self) -> bool {
        self.phase == Phase::Draft || (self.phase == Phase::Body && !(self.held && self.framing != Delimited::ByLength))
    }

    /// Returns the end of the bytes that may be sent.
    fn shown(&self) -> usize {
        if self.is_hidden() { self.began.or(self.chunk).unwrap_or(self.end) } else { self.end }
    }

    /// Returns `true` if written bytes go out at once.
    fn is_flowing(&self) -> bool {
        self.phase == Phase::Stream || (self.phase == Phase::Body && self.held)
    }

    /// Writes a head, whole or not at all.
    fn head(
        &mut self,
        status: Status,
        lines: &[u8],
        fields: GiveFields<'_>,
        content: Content,
    ) -> Result<(), FullError> {
        if self.phase != Phase::Owed {
            return Err(FullError::Never);
        }
        let mark = self.mark();
        let plan = self.plan(status, lines, fields, content);
        if !self.write_head(&plan) || self.free() < TAIL {
            self.end = self.start + mark.at();
            return Err(self.full_at(mark));
        }
        (self.framing, self.facts.close) = (plan.framing, plan.close);
        self.body_at = self.end;
        self.began = Some(self.start + mark.at());
        Ok(())
    }

    fn plan<'p>(&self, status: Status, lines: &'p [u8], fields: GiveFields<'p>, content: Content) -> Plan<'p> {
        let framing = self.delimit(status, content);
        let close = self.closes() || framing == Delimited::ByClose;
        Plan { status, lines, fields, content, framing, close, http10: self.facts.http10 }
    }

    /// Begins a body whose head comes later.
    pub(super) fn begin_draft(&mut self) -> Result<(), FullError> {
        if self.phase != Phase::Owed {
            return Err(FullError::Never);
        }
        let mark = self.mark();
        if self.free() < GAP + TAIL || !self.append(&[b' '; GAP]) {
            return Err(self.full_at(mark));
        }
        self.phase = Phase::Draft;
        self.framing = Delimited::ByLength;
        self.body_at = self.end;
        self.began = Some(self.start + mark.at());
        Ok(())
    }

    /// Writes the head before the body from [`DraftOut`](super::DraftOut), or answers without a body if there is
    /// none.
    ///
    /// # Errors
    /// [`FullError`] if there is no room for a head that is larger than expected; the body stays. [`FullError::Never`] if
    /// no request waits for an answer.
    pub fn finish(&mut self, status: Status, fields: HeaderFields<'_>) -> Result<(), FullError> {
        let (Phase::Draft, Some(began)) = (self.phase, self.began) else { return self.full(status, fields, b"") };
        let length = self.end.saturating_sub(self.body_at);
        let fields: GiveFields<'_> = &|give| give_all(fields, give);
        let plan = self.plan(status, NO_LINES, fields, Content::Known(length));
        let mut head = 0;
        lay_head(&plan, &mut |parts| {
            head += parts.iter().map(|part| part.len()).sum::<usize>();
            true
        });
        let gap = self.body_at - began;
        if head > gap && !self.widen(head - gap) {
            return Err(FullError::Now);
        }
        // Compacting may have moved the answer.
        let began = self.began.unwrap_or(began);
        let end = core::mem::replace(&mut self.end, self.body_at.saturating_sub(head));
        let head_at = self.end;
        lay_head(&plan, &mut |parts| self.append_all(parts));
        self.end = if plan.framing == Delimited::NoBody { self.body_at } else { end };
        if began == self.start {
            (self.start, self.began) = (head_at, Some(head_at));
        } else if head_at > began && self.end <= self.store.bytes().len() {
            self.store.bytes_mut().copy_within(head_at..self.end, began);
            self.end -= head_at - began;
        }
        self.facts.close = plan.close;
        self.phase = Phase::Done;
        Ok(())
    }

    /// Moves a drafted body to the right.
    fn widen(&mut self, by: usize) -> bool {
        if !self.make_room(by) {
            return false;
        }
        let (body, end) = (self.body_at, self.end);
        if body > end || end + by > self.store.bytes().len() {
            return false;
        }
        self.store.bytes_mut().copy_within(body..end, body + by);
        (self.body_at, self.end) = (body + by, end + by);
        true
    }

    /// Returns the room for a body whose head comes later.
    pub(super) fn room_for_draft(&self) -> usize {
        let used = if self.phase == Phase::Draft { 0 } else { GAP };
        self.free().saturating_sub(used + TAIL)
    }

    /// Returns the same with an empty store.
    pub(super) fn capacity_for_draft(&self) -> usize {
        self.store.limit().saturating_sub(GAP + TAIL)
    }

    fn delimit(&self, status: Status, content: Content) -> Delimited {
        match content {
            _ if self.facts.head || status.is_bodiless() => Delimited::NoBody,
            Content::Flow if self.facts.http10 => Delimited::ByClose,
            Content::Flow => Delimited::ByChunks,
            Content::Known(_) | Content::Message => Delimited::ByLength,
        }
    }

    fn write_head(&mut self, plan: &Plan<'_>) -> bool {
        let mut begun = false;
        lay_head(plan, &mut |parts| {
            let put = self.append_all(parts);
            if !begun {
                self.length_at = self.end.saturating_sub(plan.lines.len() + PLACES);
                begun = true;
            }
            put
        })
    }

    /// Writes the length into its place and closes the gap. If all bytes before it are of this answer and none
    /// was sent, they move right, else the bytes after it move left.
    fn write_length(&mut self) {
        let mut places = [b' '; PLACES];
        let length_at = self.length_at;
        let digits = decimal(self.end.saturating_sub(self.body_at), &mut places);
        let spare = PLACES - digits.len();
        let (start, end, began) = (self.start, self.end, self.began);
        let bytes = self.store.bytes_mut();
        let after = length_at + PLACES;
        if after > end || end > bytes.len() || start > length_at {
            return;
        }
        if began == Some(start) {
            bytes.copy_within(start..length_at, start + spare);
            copy(bytes.get_mut(length_at + spare..).unwrap_or(&mut []), digits);
            self.start += spare;
            self.began = Some(self.start);
        } else {
            copy(bytes.get_mut(length_at..).unwrap_or(&mut []), digits);
            bytes.copy_within(after..end, length_at + digits.len());
            self.end -= spare;
        }
    }

    /// Ends a body that was sent while it was written.
    fn end_flow(&mut self) {
        self.end_chunk();
        if self.framing == Delimited::ByChunks {
            // The room for this was reserved.
            let _ = self.append(LAST_CHUNK);
        }
        self.phase = Phase::Done;
    }

    /// Returns the digits of a chunk's size. Four are enough for a store of 64 KiB.
    fn chunk_digits(&self) -> usize {
        if self.store.limit() <= 0xffff { 4 } else { 8 }
    }

    fn chunk_head(&self) -> usize {
        self.chunk_digits() + 2
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
        self.length_at = self.length_at.saturating_sub(start);
        self.body_at = self.body_at.saturating_sub(start);
        self.began = self.began.map(|at| at.saturating_sub(start));
        self.chunk = self.chunk.map(|at| at.saturating_sub(start));
    }
}

/// Appends bytes to an open event stream, or to a body.
impl Sink for ResponseBuffer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        match self.phase {
            Phase::Done | Phase::Owed => return Err(FullError::Never),
            Phase::Body | Phase::Stream | Phase::Draft => {}
        }
        if bytes.is_empty() || self.framing == Delimited::NoBody {
            return Ok(());
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
        match self.phase {
            Phase::Done | Phase::Owed => 0,
            Phase::Body | Phase::Stream => self.room_after(0),
            Phase::Draft => self.room_for_draft(),
        }
    }
}

/// The parts of a head.
struct Plan<'p> {
    status: Status,
    /// The end of the line before, and headers that are already lines.
    lines: &'p [u8],
    fields: GiveFields<'p>,
    content: Content,
    framing: Delimited,
    close: bool,
    http10: bool,
}

/// Gives a head to `put`, in pieces. The first piece ends with the line of the length and the `lines`.
fn lay_head(plan: &Plan<'_>, put: &mut dyn FnMut(&[&[u8]]) -> bool) -> bool {
    let (status, mut places, mut line) = (plan.status, [b' '; PLACES], Status::UNNAMED);
    let start = status.start().map_or_else(|| status.unnamed_start(&mut line), str::as_bytes);
    let (end, value): (&[u8], &[u8]) = match (plan.framing, plan.content) {
        (_, Content::Known(length)) if !status.is_bodiless() => (Status::LENGTH, decimal(length, &mut places)),
        (Delimited::ByLength, _) => (Status::LENGTH, &places),
        (Delimited::ByChunks, _) => (b"", b"\r\nTransfer-Encoding: chunked"),
        (Delimited::ByClose | Delimited::NoBody, _) => (b"", b""),
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
    if name.is_empty() || !name.bytes().all(crate::token::is_token) {
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

fn decimal(mut value: usize, digits: &mut [u8; PLACES]) -> &[u8] {
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    digits.get(PLACES - used..).unwrap_or(&[])
}

/// Copies without a length check that could panic.
fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
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
