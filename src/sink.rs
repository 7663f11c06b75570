//! Where bytes go: the caller's storage, one whole message at a time.
//!
//! [`Sink`] takes bytes. [`Out`] adds framing, so that the engine never knows whether a message becomes a
//! line, a server-sent event or a body. [`Lines`] is the framing of stdio and serial lines over any storage.
//! [`whole`] writes one message, with a [`Writer`].

use core::fmt;

/// A message did not fit. Nothing of it was written and nothing else has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "waiting helps or it does not")]
pub enum Full {
    /// Send what is pending, then call again.
    Now,
    /// Larger than the sink will ever take: waiting cannot help.
    Never,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Full::Now => "the sink is full for now",
            Full::Never => "the message is larger than the sink",
        })
    }
}

impl core::error::Error for Full {}

/// Takes bytes. The narrow half of [`Out`]: all that the JSON writer needs.
pub trait Sink {
    /// Appends all of `bytes` or, on [`Full`], nothing.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full>;

    /// How many bytes [`put`](Sink::put) will take from here on; `usize::MAX` for a sink that is never full.
    fn room(&self) -> usize;
}

/// What a message is, told to [`Out::begin`] before its first byte, so that a transport can choose its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Kind {
    /// A result.
    Result,
    /// A result that goes out in windows: larger than the sink, or of unknown length.
    Streamed,
    /// An error response with its JSON-RPC code.
    Error(i32),
    /// An error response that refuses the message itself: not JSON, not a request, without a version that is served.
    Refusal(i32),
    /// A request to the peer.
    Request,
    /// A notification to the peer.
    Notification,
    /// An array of responses (JSON-RPC batch).
    Batch,
}

/// A position in a sink, for [`Out::roll_back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Mark(usize);

impl Mark {
    /// A mark at a position that only its sink understands.
    #[must_use]
    pub const fn new(at: usize) -> Self {
        Mark(at)
    }

    /// The position given to [`Mark::new`].
    #[must_use]
    pub const fn at(self) -> usize {
        self.0
    }
}

/// A sink with framing: whole messages, one after the other.
///
/// The engine calls `begin`, any number of `put`, then `end`. It takes bytes back (`roll_back`) only because of
/// [`Full`], and only back to a mark of the current message; so a sink that never says `Full` is never asked to.
///
/// A reply larger than the sink is sent through it in windows. Meanwhile the sink is *held*: `begin` answers
/// [`Full::Now`], so that whoever else wants to write waits in the ordinary way.
pub trait Out: Sink {
    /// Starts a message. [`Full::Now`] while the sink is held or too full to frame one more message.
    fn begin(&mut self, kind: Kind) -> Result<(), Full>;

    /// Ends the message. The room this needs was kept back by `begin`.
    fn end(&mut self);

    /// Where the sink stands.
    fn mark(&self) -> Mark;

    /// Takes back everything since `mark`; at the mark taken before `begin`, the message never was.
    fn roll_back(&mut self, mark: Mark);

    /// Holds the sink for a message in windows, or releases it.
    fn hold(&mut self, on: bool);

    /// Whether a message in windows is under way.
    fn held(&self) -> bool;

    /// The largest message this sink takes when it is empty; `usize::MAX` if there is no limit.
    fn capacity(&self) -> usize;
}

/// Byte storage that [`Lines`] can be built on: a slice, a `Vec`, `heapless::Vec`, `bytes::BytesMut`.
pub trait Storage {
    /// The bytes held.
    fn bytes(&self) -> &[u8];
    /// Appends all of `bytes`; `false`, and nothing done, if they do not fit.
    #[must_use]
    fn append(&mut self, bytes: &[u8]) -> bool;
    /// Drops the bytes behind the first `len`.
    fn truncate(&mut self, len: usize);
    /// Drops the first `n` bytes.
    fn drop_front(&mut self, n: usize);
    /// The most bytes it can hold, `usize::MAX` if it grows.
    fn limit(&self) -> usize;
}

/// Storage over lent bytes.
#[derive(Debug)]
pub struct Slice<'b> {
    bytes: &'b mut [u8],
    len: usize,
}

impl<'b> Slice<'b> {
    /// Empty storage over `bytes`.
    #[must_use]
    pub const fn new(bytes: &'b mut [u8]) -> Self {
        Slice { bytes, len: 0 }
    }
}

impl Storage for Slice<'_> {
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

/// Newline framing over some storage: the sink of stdio and of serial lines.
///
/// ```
/// use mcp_sansio::sink::{Kind, Lines, Out, Sink, Slice};
/// let mut bytes = [0; 64];
/// let mut out = Lines::new(Slice::new(&mut bytes));
/// out.begin(Kind::Result)?;
/// out.put(b"{}")?;
/// out.end();
/// assert_eq!(out.pending(), b"{}\n");
/// out.sent(1); // the socket took one byte
/// assert_eq!(out.pending(), b"}\n");
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
#[derive(Debug, Default)]
pub struct Lines<S> {
    storage: S,
    held: bool,
}

/// Bytes that `begin` keeps back for the newline.
const NEWLINE: usize = 1;

impl<S: Storage> Lines<S> {
    /// A sink over `storage`, which should be empty.
    pub const fn new(storage: S) -> Self {
        Lines { storage, held: false }
    }

    /// The bytes to send.
    pub fn pending(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// Drops the first `n` pending bytes: they were sent.
    pub fn sent(&mut self, n: usize) {
        self.storage.drop_front(n);
    }

    /// Drops everything that is pending, also what there is of a message in windows, and releases the sink.
    pub fn clear(&mut self) {
        self.storage.truncate(0);
        self.held = false;
    }

    /// The storage, with what is pending in it.
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

impl<S: Storage> Sink for Lines<S> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let fits = self.room() >= bytes.len();
        if fits && self.storage.append(bytes) { Ok(()) } else { Err(Full::Now) }
    }

    fn room(&self) -> usize {
        match self.free() {
            usize::MAX => usize::MAX,
            free => free.saturating_sub(NEWLINE),
        }
    }
}

impl<S: Storage> Out for Lines<S> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        if self.held || self.free() <= NEWLINE { Err(Full::Now) } else { Ok(()) }
    }

    fn end(&mut self) {
        // `put` kept this byte back.
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

/// Runs `write` as one whole message: all of it or nothing.
///
/// On a sink that has nothing else pending, too large for now means too large for ever: [`Full::Never`].
pub fn whole(
    out: &mut dyn Out,
    kind: Kind,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<(), Full> {
    let mut writer = Writer::new(out);
    writer.begin(kind)?;
    let written = write(&mut writer);
    writer.end(written)
}

/// Runs `write` as part of a message; whether it all fitted.
pub(crate) fn part(out: &mut dyn Out, write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Result<(), Full> {
    let mut writer = Writer::new(out);
    let written = write(&mut writer);
    writer.written.and(written)
}

/// Writes one message: what [`whole`] lends.
///
/// ```
/// use mcp_sansio::sink::{Kind, Lines, Slice, whole};
/// let mut bytes = [0; 16];
/// let mut out = Lines::new(Slice::new(&mut bytes));
/// whole(&mut out, Kind::Notification, |out| out.put(b"{}"))?;
/// let long = whole(&mut out, Kind::Notification, |out| {
///     out.put(b"[0,1,2,3,")?;
///     out.put(b"4,5,6,7]") // does not fit
/// });
/// assert!(long.is_err());
/// assert_eq!(out.pending(), b"{}\n");
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
///
/// A piece that does not fit is left out; [`whole`] then takes the message back and says so. So those who write need not
/// look after each piece.
pub struct Writer<'o> {
    out: &'o mut dyn Out,
    /// Whether everything fitted so far.
    written: Result<(), Full>,
    /// Where the message began.
    mark: Mark,
}

impl<'o> Writer<'o> {
    #[inline(always)]
    fn new(out: &'o mut dyn Out) -> Self {
        Writer { out, written: Ok(()), mark: Mark(0) }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        self.mark = self.out.mark();
        self.out.begin(kind)
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn end(&mut self, written: Result<(), Full>) -> Result<(), Full> {
        match self.written.and(written) {
            Ok(()) => {
                self.out.end();
                Ok(())
            }
            Err(full) => {
                self.out.roll_back(self.mark);
                Err(if self.mark.at() == 0 { Full::Never } else { full })
            }
        }
    }

    /// Whether everything fitted so far.
    pub(crate) fn written(&self) -> Result<(), Full> {
        self.written
    }

    /// Appends a piece. Always `Ok`: that it did not fit is said by [`whole`].
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.add(bytes);
        Ok(())
    }

    // On a small machine a piece is a call and nothing else: there are hundreds of them.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let put = self.out.put(bytes);
        if put.is_err() {
            self.written = put;
        }
    }
}

impl Sink for Writer<'_> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        Writer::put(self, bytes)
    }

    fn room(&self) -> usize {
        self.out.room()
    }
}

/// Copies without a length check that could panic: `zip` stops at the shorter one.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Moves the bytes between `from` and the end of `place` to the beginning of `place`.
pub(crate) fn move_down(bytes: &mut [u8], from: usize, place: core::ops::Range<usize>) {
    let distance = from.saturating_sub(place.start);
    if let Some(place) = bytes.get_mut(place) {
        // Always so; said for the compiler, which then leaves out the panics of the copy.
        if distance <= place.len() {
            place.copy_within(distance.., 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands behind a piece that did not fit may fit itself: nothing of the message stays all the same.
    #[test]
    fn a_message_is_whole_or_not_there() {
        let mut bytes = [0; 16];
        let mut out = Lines::new(Slice::new(&mut bytes));
        let write = |out: &mut Writer<'_>| {
            out.put(b"[")?;
            out.put(b"more than there is room for")?;
            out.put(b"]")
        };
        // An empty sink will never take it.
        assert_eq!(whole(&mut out, Kind::Result, write), Err(Full::Never));
        assert_eq!(out.pending(), b"");
        whole(&mut out, Kind::Result, |out| out.put(b"{}")).unwrap();
        assert_eq!(whole(&mut out, Kind::Result, write), Err(Full::Now));
        assert_eq!(out.pending(), b"{}\n");
        assert_eq!(part(&mut out, write), Err(Full::Now));
    }

    /// A writer may give up for a reason of its own, such as a `Display` that fails.
    #[test]
    fn what_fails_by_itself_is_taken_back_too() {
        let mut bytes = [0; 16];
        let mut out = Lines::new(Slice::new(&mut bytes));
        whole(&mut out, Kind::Result, |out| out.put(b"{}")).unwrap();
        let failed = whole(&mut out, Kind::Result, |out| out.put(b"[").and(Err(Full::Never)));
        assert_eq!((failed, out.pending()), (Err(Full::Never), &b"{}\n"[..]));
    }
}
