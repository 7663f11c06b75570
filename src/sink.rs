//! Sinks: the places that take the bytes of messages, one whole message at a time.
//!
//! [`Sink`] takes bytes. [`Out`] adds framing: a transport decides whether a message becomes a line, a
//! server-sent event or a body. [`LineSink`] is the framing of stdio and serial lines over any [`Storage`].
//! [`whole`] writes one message with a [`Writer`].

use core::fmt;

/// A message did not fit. Nothing of it was written and nothing else has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "waiting helps or it does not")]
pub enum FullError {
    /// There is no room now: send the pending bytes, then call again.
    Now,
    /// The message is larger than the whole sink: waiting does not help.
    Never,
}

impl fmt::Display for FullError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FullError::Now => "the sink is full for now",
            FullError::Never => "the message is larger than the sink",
        })
    }
}

impl core::error::Error for FullError {}

/// Takes bytes. The JSON writer needs only this half of [`Out`].
pub trait Sink {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// [`FullError`] if they do not fit; the sink then appends nothing.
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError>;

    /// Returns how many more bytes [`put`](Sink::put) takes; `usize::MAX` if the sink is never full.
    fn room(&self) -> usize;
}

/// The head of a message: its kind, and what a transport may have to say of it outside of the message. [`Out::begin`] gets it
/// before the first byte, so that a transport can choose its framing without reading the message.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum MessageHead<'h> {
    /// A result.
    Result,
    /// The result of a tool with `isError`.
    ToolError,
    /// A result that goes out in windows: it is larger than the sink, or its length is unknown.
    Streamed,
    /// An error response with its JSON-RPC code.
    Error(i32),
    /// An error response that refuses the message itself: it is not JSON, not a request, or names no revision
    /// that is served.
    Refusal(i32),
    /// A request to the peer.
    Request(&'h RequestInfo<'h>),
    /// A notification to the peer.
    Notification,
    /// `notifications/initialized` of a client. Some servers refuse requests that overtake it.
    Initialized,
    /// An array of responses (JSON-RPC batch).
    Batch,
}

impl MessageHead<'_> {
    /// Returns `true` for a request or a notification: no message of the peer asked for it.
    #[must_use]
    pub const fn is_unasked(self) -> bool {
        matches!(self, MessageHead::Request(_) | MessageHead::Notification | MessageHead::Initialized)
    }
}

/// The head of a request.
#[derive(Clone, Copy)]
pub struct RequestInfo<'h> {
    /// The `id`.
    pub id: u64,
    /// The `method`.
    pub method: &'h str,
    /// The `io.modelcontextprotocol/protocolVersion` in `_meta` (from 2026-07-28 on); else empty.
    pub version: &'h str,
    /// Writes the member of `params` with that name as JSON. Returns `false` if it is no text.
    pub text: &'h dyn Fn(&str, &mut Writer<'_>) -> bool,
}

impl<'h> RequestInfo<'h> {
    /// Makes the head of a request without a version in `_meta` and without texts in `params`.
    #[must_use]
    pub const fn new(id: u64, method: &'h str) -> Self {
        RequestInfo { id, method, version: "", text: &|_, _| false }
    }

    /// Returns `true` if `params` have a text with that name.
    #[must_use]
    pub fn has_text(&self, member: &str) -> bool {
        let mut nothing = LineSink::new(SliceStorage::new(&mut []));
        (self.text)(member, &mut Writer::new(&mut nothing))
    }
}

crate::debug_fields!(impl for RequestInfo<'_> { id, method });

#[cfg(feature = "defmt")]
impl defmt::Format for RequestInfo<'_> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", self.method);
    }
}

/// A position in a sink, for [`Out::roll_back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Mark(usize);

impl Mark {
    /// Makes a mark of a position. Only the sink that made the mark understands it.
    #[must_use]
    pub const fn new(at: usize) -> Self {
        Mark(at)
    }

    /// Returns the position given to [`Mark::new`].
    #[must_use]
    pub const fn at(self) -> usize {
        self.0
    }
}

/// A sink with framing: whole messages, one after the other.
///
/// The engine calls `begin`, any number of `put`, then `end`. It calls `roll_back` only after [`FullError`], or where a
/// [layer](crate::service::Layer) refuses a message, and only with a mark of the current message. A sink that never returns
/// `FullError`, of a service without layers, never gets that call.
///
/// A reply larger than the sink goes through it in windows. During that time the sink is *held*: `begin`
/// returns [`FullError::Now`], and other writers wait as they do for a full sink.
pub trait Out: Sink {
    /// Starts a message and keeps back the room that [`end`](Out::end) needs.
    ///
    /// # Errors
    /// [`FullError::Now`] if the sink is held, or if there is no room to frame one more message.
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError>;

    /// Ends the message. It cannot fail: `begin` kept back the room.
    fn end(&mut self);

    /// Returns the current position.
    fn mark(&self) -> Mark;

    /// Removes everything since `mark`. A mark from before `begin` removes the whole message.
    fn roll_back(&mut self, mark: Mark);

    /// Holds the sink for a message in windows (`true`), or releases it (`false`).
    fn hold(&mut self, on: bool);

    /// Returns whether a message in windows is under way.
    fn held(&self) -> bool;

    /// Returns the size of the largest message that the empty sink takes, in bytes; `usize::MAX` if there is no
    /// limit.
    fn capacity(&self) -> usize;
}

/// Byte storage for [`LineSink`]: a slice, [`GrowingStorage`], `heapless::Vec`; without a limit a `Vec` or `bytes::BytesMut`.
pub trait Storage {
    /// Returns the bytes in the storage.
    fn bytes(&self) -> &[u8];
    /// Appends all of `bytes`. If they do not fit, appends nothing and returns `false`.
    #[must_use]
    fn append(&mut self, bytes: &[u8]) -> bool;
    /// Drops all bytes after the first `len`.
    fn truncate(&mut self, len: usize);
    /// Drops the first `n` bytes.
    fn drop_front(&mut self, n: usize);
    /// Returns the most bytes that it can hold; `usize::MAX` if it grows.
    fn limit(&self) -> usize;
}

/// Storage over lent bytes.
#[derive(Debug)]
pub struct SliceStorage<'b> {
    bytes: &'b mut [u8],
    len: usize,
}

impl<'b> SliceStorage<'b> {
    /// Makes empty storage over `bytes`.
    #[must_use]
    pub const fn new(bytes: &'b mut [u8]) -> Self {
        SliceStorage { bytes, len: 0 }
    }
}

impl Storage for SliceStorage<'_> {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        let Some(place) = self.bytes.get_mut(self.len..).and_then(|free| free.get_mut(..bytes.len())) else {
            return false;
        };
        copy(place, bytes);
        self.len += bytes.len();
        true
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn drop_front(&mut self, n: usize) {
        let n = n.min(self.len);
        move_down(self.bytes, n, 0..self.len);
        self.len -= n;
    }

    fn limit(&self) -> usize {
        self.bytes.len()
    }
}

/// Storage that takes memory from the allocator when it is needed, up to a limit, and gives it back when all of it was sent.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct GrowingStorage {
    bytes: alloc::vec::Vec<u8>,
    limit: usize,
}

/// Bytes that an empty [`GrowingStorage`] keeps.
#[cfg(feature = "alloc")]
const KEPT: usize = 16 << 10;

#[cfg(feature = "alloc")]
impl GrowingStorage {
    /// Makes empty storage for at most `limit` bytes that wait to be sent.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        GrowingStorage { bytes: alloc::vec::Vec::new(), limit }
    }
}

#[cfg(feature = "alloc")]
impl Storage for GrowingStorage {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn append(&mut self, bytes: &[u8]) -> bool {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        let Some(needed) = len.checked_add(bytes.len()).filter(|needed| *needed <= self.limit) else { return false };
        if needed > capacity {
            // Twice as many, as a vector does, but not beyond the limit.
            self.bytes.reserve_exact(capacity.saturating_mul(2).clamp(needed, self.limit) - len);
        }
        self.bytes.extend_from_slice(bytes);
        true
    }
    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
    fn drop_front(&mut self, n: usize) {
        Storage::drop_front(&mut self.bytes, n);
        if self.bytes.is_empty() {
            self.bytes.shrink_to(KEPT);
        }
    }
    fn limit(&self) -> usize {
        self.limit
    }
}

/// Without a limit: for one who sends all pending bytes before more is read. Else a peer that does not read, or a handler that
/// sends much, fills the memory: use [`GrowingStorage`].
#[cfg(feature = "alloc")]
impl Storage for alloc::vec::Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn append(&mut self, bytes: &[u8]) -> bool {
        self.extend_from_slice(bytes);
        true
    }
    fn truncate(&mut self, len: usize) {
        alloc::vec::Vec::truncate(self, len);
    }
    fn drop_front(&mut self, n: usize) {
        if n >= self.len() {
            self.clear();
        } else {
            self.drain(..n);
        }
    }
    fn limit(&self) -> usize {
        usize::MAX
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> Storage for heapless::Vec<u8, N> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn append(&mut self, bytes: &[u8]) -> bool {
        self.extend_from_slice(bytes).is_ok()
    }
    fn truncate(&mut self, len: usize) {
        heapless::Vec::truncate(self, len);
    }
    fn drop_front(&mut self, n: usize) {
        let n = n.min(self.len());
        let rest = self.len() - n;
        self.copy_within(n.., 0);
        heapless::Vec::truncate(self, rest);
    }
    fn limit(&self) -> usize {
        N
    }
}

/// Without a limit, as a `Vec`.
#[cfg(feature = "bytes")]
impl Storage for bytes::BytesMut {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn append(&mut self, bytes: &[u8]) -> bool {
        self.extend_from_slice(bytes);
        true
    }
    fn truncate(&mut self, len: usize) {
        bytes::BytesMut::truncate(self, len);
    }
    fn drop_front(&mut self, n: usize) {
        bytes::Buf::advance(self, n.min(self.len()));
    }
    fn limit(&self) -> usize {
        usize::MAX
    }
}

/// Newline framing over a [`Storage`]: the sink of stdio and of serial lines.
///
/// ```
/// use mcp_sansio::sink::{MessageHead, LineSink, Out, Sink, SliceStorage};
/// let mut bytes = [0; 64];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes));
/// out.begin(MessageHead::Result)?;
/// out.put(b"{}")?;
/// out.end();
/// assert_eq!(out.pending(), b"{}\n");
/// out.sent(1); // the socket took one byte
/// assert_eq!(out.pending(), b"}\n");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
#[derive(Debug, Default)]
pub struct LineSink<S> {
    storage: S,
    held: bool,
}

/// Bytes that `begin` keeps back for the newline.
const NEWLINE: usize = 1;

impl<S: Storage> LineSink<S> {
    /// Makes a sink over `storage`, which should be empty.
    pub const fn new(storage: S) -> Self {
        LineSink { storage, held: false }
    }

    /// Returns the bytes to send.
    pub fn pending(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// Drops the first `n` pending bytes, because they were sent.
    pub fn sent(&mut self, n: usize) {
        self.storage.drop_front(n);
    }

    /// Drops all pending bytes, also those of a message in windows, and releases the sink.
    pub fn clear(&mut self) {
        self.storage.truncate(0);
        self.held = false;
    }

    /// Returns the storage with the pending bytes.
    pub fn into_inner(self) -> S {
        self.storage
    }

    fn free(&self) -> usize {
        match self.storage.limit() {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(self.storage.bytes().len()),
        }
    }
}

impl<S: Storage> Sink for LineSink<S> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let fits = self.room() >= bytes.len();
        if fits && self.storage.append(bytes) { Ok(()) } else { Err(FullError::Now) }
    }

    fn room(&self) -> usize {
        match self.free() {
            usize::MAX => usize::MAX,
            free => free.saturating_sub(NEWLINE),
        }
    }
}

impl<S: Storage> Out for LineSink<S> {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        if self.held || self.free() <= NEWLINE { Err(FullError::Now) } else { Ok(()) }
    }

    fn end(&mut self) {
        // `room` leaves this byte free.
        let _ = self.storage.append(b"\n");
    }

    fn mark(&self) -> Mark {
        Mark(self.storage.bytes().len())
    }

    fn roll_back(&mut self, mark: Mark) {
        self.storage.truncate(mark.0);
    }

    fn hold(&mut self, on: bool) {
        self.held = on;
    }

    fn held(&self) -> bool {
        self.held
    }

    fn capacity(&self) -> usize {
        match self.storage.limit() {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(NEWLINE),
        }
    }
}

/// No framing, over a [`Storage`]: the bodies of HTTP, and JSON that is a part of something else.
///
/// An HTTP endpoint needs one for all its connections: each body is copied into its answer at once.
#[derive(Debug)]
pub struct BodyBuffer<S> {
    /// The storage, with the written bytes.
    pub storage: S,
}

impl<S: Storage> BodyBuffer<S> {
    /// Makes a buffer in `storage`, whose size is the limit of a message.
    pub const fn new(storage: S) -> Self {
        BodyBuffer { storage }
    }
}

impl<S: Storage> Sink for BodyBuffer<S> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if self.storage.append(bytes) { Ok(()) } else { Err(FullError::Now) }
    }

    fn room(&self) -> usize {
        match self.storage.limit() {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(self.storage.bytes().len()),
        }
    }
}

impl<S: Storage> Out for BodyBuffer<S> {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        Ok(())
    }
    fn end(&mut self) {}
    fn mark(&self) -> Mark {
        Mark::new(self.storage.bytes().len())
    }
    fn roll_back(&mut self, mark: Mark) {
        self.storage.truncate(mark.at());
    }
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        self.storage.limit()
    }
}

/// Runs `write` as one whole message: the sink takes all of it, or nothing.
///
/// # Errors
/// [`FullError::Now`] if a piece did not fit, or the error of [`Writer::fail`]. If nothing else is pending in the sink, every
/// error becomes [`FullError::Never`]: an empty sink cannot get more room.
pub fn whole(out: &mut dyn Out, head: MessageHead<'_>, write: impl FnOnce(&mut Writer<'_>)) -> Result<(), FullError> {
    let mut writer = Writer::new(out);
    writer.begin(head)?;
    write(&mut writer);
    writer.end()
}

/// Runs `write` as a part of a message. Returns an error if a piece did not fit.
pub(crate) fn part(out: &mut dyn Out, write: impl FnOnce(&mut Writer<'_>)) -> Result<(), FullError> {
    let mut writer = Writer::new(out);
    write(&mut writer);
    writer.written
}

/// Writes JSON into memory of the allocator, as much as it takes.
///
/// ```
/// use mcp_sansio::json::Object;
/// use mcp_sansio::sink::to_vec;
/// let json = to_vec(|out| {
///     let mut object = Object::open(out);
///     object.number("answer", 42_u64);
///     object.close();
/// })?;
/// assert_eq!(json, br#"{"answer":42}"#);
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
///
/// # Errors
/// The error of [`Writer::fail`].
#[cfg(feature = "alloc")]
pub fn to_vec(write: impl FnOnce(&mut Writer<'_>)) -> Result<alloc::vec::Vec<u8>, FullError> {
    let mut out = LineSink::new(alloc::vec::Vec::new());
    part(&mut out, write)?;
    Ok(out.into_inner())
}

/// Writes one message; [`whole`] lends it to its closure.
///
/// ```
/// use mcp_sansio::sink::{MessageHead, LineSink, SliceStorage, whole};
/// let mut bytes = [0; 16];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes));
/// whole(&mut out, MessageHead::Notification, |out| out.put(b"{}"))?;
/// let long = whole(&mut out, MessageHead::Notification, |out| {
///     out.put(b"[0,1,2,3,");
///     out.put(b"4,5,6,7]"); // does not fit
/// });
/// assert!(long.is_err());
/// assert_eq!(out.pending(), b"{}\n");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
///
/// The writer leaves out a piece that does not fit, and [`whole`] then takes the message back and returns the
/// error, so `write` does not check each piece.
pub struct Writer<'o> {
    out: &'o mut dyn Out,
    /// An error as soon as a piece did not fit.
    written: Result<(), FullError>,
    /// The mark from before the message.
    mark: Mark,
}

impl<'o> Writer<'o> {
    #[inline(always)]
    fn new(out: &'o mut dyn Out) -> Self {
        Writer { out, written: Ok(()), mark: Mark(0) }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        self.mark = self.out.mark();
        self.out.begin(head)
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn end(&mut self) -> Result<(), FullError> {
        match self.written {
            Ok(()) => {
                self.out.end();
                Ok(())
            }
            Err(full) => {
                self.out.roll_back(self.mark);
                Err(if self.mark.at() == 0 { FullError::Never } else { full })
            }
        }
    }

    /// Returns an error if a piece did not fit.
    pub(crate) fn written(&self) -> Result<(), FullError> {
        self.written
    }

    /// Appends a piece. [`whole`] reports one that did not fit.
    // On a small machine this is not inlined: the program has hundreds of calls.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub fn put(&mut self, bytes: &[u8]) {
        if let Err(error) = self.out.put(bytes) {
            self.fail(error);
        }
    }

    /// Appends what a function writes into a [`Sink`], such as those of [`json::write`](crate::json::write).
    pub fn write(&mut self, write: impl FnOnce(&mut Self) -> Result<(), FullError>) {
        if let Err(error) = write(self) {
            self.fail(error);
        }
    }

    /// Gives the message up. [`whole`] takes it back and returns the error. What never fits stays so.
    pub fn fail(&mut self, error: FullError) {
        if self.written != Err(FullError::Never) {
            self.written = Err(error);
        }
    }
}

impl Sink for Writer<'_> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        Writer::put(self, bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        self.out.room()
    }
}

/// Copies the bytes of `from` to the front of `to`, up to the shorter length. It cannot panic.
pub fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Moves the bytes from `from` to the end of `place` down to the start of `place`.
pub(crate) fn move_down(bytes: &mut [u8], from: usize, place: core::ops::Range<usize>) {
    let distance = from.saturating_sub(place.start);
    if let Some(place) = bytes.get_mut(place) {
        // This is always true; the check lets the compiler leave out the panics of the copy.
        if distance <= place.len() {
            place.copy_within(distance.., 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A later piece may fit where an earlier one did not. Nothing of the message may stay.
    #[test]
    fn a_message_is_whole_or_not_there() {
        let mut bytes = [0; 16];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let write = |out: &mut Writer<'_>| {
            out.put(b"[");
            out.put(b"more than there is room for");
            out.put(b"]")
        };
        // An empty sink will never take it.
        assert_eq!(whole(&mut out, MessageHead::Result, write), Err(FullError::Never));
        assert_eq!(out.pending(), b"");
        whole(&mut out, MessageHead::Result, |out| out.put(b"{}")).unwrap();
        assert_eq!(whole(&mut out, MessageHead::Result, write), Err(FullError::Now));
        assert_eq!(out.pending(), b"{}\n");
        assert_eq!(part(&mut out, write), Err(FullError::Now));
    }

    #[test]
    fn a_body_is_rolled_back() {
        let mut bytes = [0; 8];
        let mut body = BodyBuffer::new(SliceStorage::new(&mut bytes));
        body.begin(MessageHead::Result).unwrap();
        body.put(b"abc").unwrap();
        let mark = body.mark();
        body.put(b"defgh").unwrap();
        assert_eq!((body.put(b"i"), body.room(), body.capacity()), (Err(FullError::Now), 0, 8));
        body.roll_back(mark);
        assert_eq!((body.storage.bytes(), body.room()), (&b"abc"[..], 5));
    }

    #[test]
    fn no_message_begins_while_it_is_held_or_full() {
        let mut bytes = [0; 3];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        out.hold(true);
        assert_eq!(out.begin(MessageHead::Result), Err(FullError::Now));
        out.hold(false);
        assert_eq!(out.begin(MessageHead::Result), Ok(()));
        out.put(b"{}").unwrap();
        out.end();
        assert_eq!(out.begin(MessageHead::Result), Err(FullError::Now));
        // The room of a newline is too small for a message.
        out.sent(1);
        assert_eq!(out.begin(MessageHead::Result), Err(FullError::Now));
        out.sent(1);
        assert_eq!((out.begin(MessageHead::Result), out.pending()), (Ok(()), &b"\n"[..]));
    }

    /// A vector with a fixed capacity, and one that grows: the same for both.
    #[cfg(all(feature = "heapless", feature = "alloc"))]
    #[test]
    fn vectors_give_back_what_did_not_fit_and_what_was_sent() {
        fn run(mut out: LineSink<impl Storage>) {
            whole(&mut out, MessageHead::Result, |out| out.put(b"{\"a\":1}")).unwrap();
            let mark = out.mark();
            out.begin(MessageHead::Result).unwrap();
            out.put(b"gone").unwrap();
            out.roll_back(mark);
            assert_eq!(out.pending(), b"{\"a\":1}\n");
            out.sent(3);
            assert_eq!(out.pending(), b"\":1}\n");
            out.sent(100);
            assert!(out.pending().is_empty());
        }
        run(LineSink::new(heapless::Vec::<u8, 32>::new()));
        run(LineSink::new(alloc::vec::Vec::new()));
        #[cfg(feature = "bytes")]
        run(LineSink::new(bytes::BytesMut::new()));
        let mut small = LineSink::new(heapless::Vec::<u8, 8>::new());
        let long = whole(&mut small, MessageHead::Result, |out| out.put(b"12345678"));
        assert_eq!((long, small.pending()), (Err(FullError::Never), &b""[..]));
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn what_grows_has_a_limit_and_gives_memory_back() {
        const LIMIT: usize = 4 * KEPT;
        let mut out = LineSink::new(GrowingStorage::new(LIMIT));
        assert_eq!((out.room(), out.capacity(), out.storage.bytes.capacity()), (LIMIT - 1, LIMIT - 1, 0));
        let text = [b'x'; 1000];
        let mut messages = 0;
        while whole(&mut out, MessageHead::Result, |out| out.put(&text)).is_ok() {
            messages += 1;
        }
        assert_eq!((messages, out.pending().len()), (LIMIT / 1001, LIMIT / 1001 * 1001));
        assert_eq!(out.storage.bytes.capacity(), LIMIT);
        assert_eq!(whole(&mut out, MessageHead::Result, |out| out.put(&text)), Err(FullError::Now));
        out.sent(1001);
        whole(&mut out, MessageHead::Result, |out| out.put(&text)).unwrap();
        out.sent(LIMIT);
        assert!(out.pending().is_empty() && out.storage.bytes.capacity() <= KEPT);
        let long = whole(&mut out, MessageHead::Result, |out| out.put(&[b'x'; LIMIT]));
        assert_eq!((long, out.pending()), (Err(FullError::Never), &b""[..]));
    }

    /// A writer may fail for its own reason, such as a `Display` that fails.
    #[test]
    fn what_fails_by_itself_is_taken_back_too() {
        let mut bytes = [0; 16];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        whole(&mut out, MessageHead::Result, |out| out.put(b"{}")).unwrap();
        let failed = whole(&mut out, MessageHead::Result, |out| {
            out.put(b"[");
            out.fail(FullError::Never);
            out.put(b"]");
        });
        assert_eq!((failed, out.pending()), (Err(FullError::Never), &b"{}\n"[..]));
    }
}
