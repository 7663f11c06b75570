//! An outgoing message and its head.

use mcp_sansio::FullError;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::memory::Store;
use mcp_sansio::sink::{LineSink, MessageHead, RequestInfo, Sink, SliceStorage, whole};

/// A message, and its head before it as soon as the message is sent. The store has the method and the name of a request first,
/// as they were before they became part of the message, then room for the head, then the message.
pub(crate) struct Outgoing<'m> {
    store: Store<'m>,
    /// The ends of the method and of the name, which is a JSON string.
    method: usize,
    name: usize,
    /// The start of the head, and of the message right behind it.
    head: usize,
    message: usize,
    /// The end of the message, and of what is sent: the head alone, if the request does not post.
    end: usize,
    last: usize,
    /// Number of bytes already sent.
    sent: usize,
}

/// Number of bytes reserved before the message.
const HEAD: usize = 1024;

/// The parts of a message that its head repeats.
#[derive(Clone, Copy)]
pub(crate) struct Repeated<'a> {
    /// The method of a request; else empty.
    pub(crate) method: &'a str,
    /// The name or URI of what the request uses.
    pub(crate) name: Option<Text<'a>>,
    /// The whole message.
    pub(crate) message: &'a [u8],
}

impl<'a> Repeated<'a> {
    /// Takes the method, which ends at `method`, and the name apart.
    fn new(texts: &'a [u8], method: usize, message: &'a [u8]) -> Self {
        let (method, name) = texts.split_at_checked(method).unwrap_or_default();
        Repeated {
            method: core::str::from_utf8(method).unwrap_or(""),
            name: Raw::parse(name).ok().and_then(|name| name.text()),
            message,
        }
    }
}

impl<'m> Outgoing<'m> {
    pub(crate) const fn new(store: Store<'m>) -> Self {
        Outgoing { store, method: 0, name: 0, head: 0, message: 0, end: 0, last: 0, sent: 0 }
    }

    pub(crate) fn clear(&mut self) {
        let start = HEAD.min(self.store.limit());
        (self.method, self.name, self.sent) = (0, 0, 0);
        (self.head, self.message, self.end, self.last) = (start, start, start, start);
    }

    /// Keeps the method of a request, and the text `member` of its params.
    pub(crate) fn keep(&mut self, request: &RequestInfo<'_>, member: Option<&str>) -> Result<(), FullError> {
        self.name = self.write(|_, out| out.put(request.method.as_bytes()))?;
        self.method = self.name;
        let Some(member) = member else { return Ok(()) };
        let len = self.write(|_, out| {
            whole(out, MessageHead::Result, |out| {
                (request.text)(member, out);
            })
        })?;
        // Without the newline of the sink.
        self.name += len.saturating_sub(1);
        Ok(())
    }

    /// Appends to the message.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let end = self.end.saturating_add(bytes.len());
        if !self.store.reach(end) {
            return Err(FullError::Now);
        }
        let place = self.store.bytes_mut().get_mut(self.end..end).unwrap_or(&mut []);
        mcp_sansio::sink::copy(place, bytes);
        self.end = end;
        Ok(())
    }

    pub(crate) fn room(&self) -> usize {
        self.store.limit().saturating_sub(self.end)
    }

    /// Returns the length of the largest message that fits.
    pub(crate) fn capacity(&self) -> usize {
        self.store.limit().saturating_sub(HEAD)
    }

    /// Returns the length of the message so far.
    pub(crate) const fn len(&self) -> usize {
        self.end - self.message
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.end = self.end.min(self.message.saturating_add(len));
    }

    /// Returns the parts that the head repeats.
    pub(crate) fn repeated(&self) -> Repeated<'_> {
        let part = |from: usize, to: usize| self.store.bytes().get(from..to).unwrap_or(&[]);
        Repeated::new(part(0, self.name), self.method, part(self.message, self.end))
    }

    /// Writes the head, in place of an earlier one. The message is sent after the head only if `posts` is set.
    pub(crate) fn write_head(
        &mut self,
        posts: bool,
        write: impl Fn(Repeated<'_>, &mut dyn Sink) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        let len = self.write(|repeated, out| write(repeated, out))?;
        self.head = self.message.saturating_sub(len);
        if let Some(place) = self.store.bytes_mut().get_mut(self.name..self.message) {
            move_to_end(place, len);
        }
        (self.last, self.sent) = (if posts { self.end } else { self.message }, 0);
        Ok(())
    }

    /// Writes behind the name, and returns the number of bytes.
    fn write(
        &mut self,
        mut write: impl FnMut(Repeated<'_>, &mut LineSink<SliceStorage<'_>>) -> Result<(), FullError>,
    ) -> Result<usize, FullError> {
        self.store.reach(self.end);
        loop {
            let (before, message) =
                self.store.bytes_mut().split_at_mut_checked(self.message).ok_or(FullError::Never)?;
            let (texts, free) = before.split_at_mut_checked(self.name).ok_or(FullError::Never)?;
            let message = message.get(..self.end - self.message).unwrap_or(&[]);
            let mut out = LineSink::new(SliceStorage::new(free));
            match write(Repeated::new(texts, self.method, message), &mut out) {
                Ok(()) => return Ok(out.pending().len()),
                Err(full) if !self.make_room() => return Err(full),
                Err(_) => {}
            }
        }
    }

    /// Moves the message up, for more room before it. Returns `false` if the store is full.
    fn make_room(&mut self) -> bool {
        let len = self.len();
        let start = self.message.saturating_mul(2).min(self.store.limit().saturating_sub(len));
        if start <= self.message || !self.store.reach(start + len) {
            return false;
        }
        self.store.bytes_mut().copy_within(self.message..self.end, start);
        (self.message, self.end) = (start, start + len);
        true
    }

    pub(crate) fn pending(&self) -> &[u8] {
        self.store.bytes().get(self.head + self.sent..self.last).unwrap_or(&[])
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.sent = self.sent.saturating_add(n).min(self.last - self.head);
    }

    /// Returns `true` if no byte was sent.
    pub(crate) const fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// Returns `true` if all bytes were sent. Before that, the server cannot have handled the message.
    pub(crate) const fn is_sent(&self) -> bool {
        self.sent >= self.last - self.head
    }
}

/// Copies whole texts into a store from `at` on and returns the end, or `None` if they do not fit.
pub(crate) fn keep_all<T: AsRef<[u8]>>(store: &mut Store<'_>, mut at: usize, parts: &[T]) -> Option<usize> {
    let parts = parts.iter().map(AsRef::as_ref);
    for part in parts {
        let end = at.checked_add(part.len()).filter(|end| store.reach(*end))?;
        mcp_sansio::sink::copy(store.bytes_mut().get_mut(at..end)?, part);
        at = end;
    }
    Some(at)
}

/// Moves the first `len` bytes to the end, in pieces that do not overlap: `copy_within` would link a panic.
fn move_to_end(place: &mut [u8], len: usize) {
    let gap = place.len().saturating_sub(len);
    let mut left = len.min(place.len());
    while left > 0 && gap > 0 {
        let n = left.min(gap);
        let Some((before, behind)) = place.split_at_mut_checked(left) else { return };
        let (Some(from), Some(to)) = (before.get(left - n..), behind.get_mut(gap - n..gap)) else { return };
        mcp_sansio::sink::copy(to, from);
        left -= n;
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::move_to_end;

    #[test]
    fn bytes_move_to_the_end() {
        for size in 0..9_u8 {
            for len in 0..=usize::from(size) + 1 {
                let mut place: Vec<u8> = (0..size).collect();
                move_to_end(&mut place, len);
                let moved = len.min(usize::from(size));
                let expected: Vec<u8> = (0..moved as u8).collect();
                assert_eq!(place[place.len() - moved..], expected, "{size} {len}");
            }
        }
    }
}
