//! An outgoing message and its head.

use mcp_sansio::FullError;
use mcp_sansio::memory::Store;
use mcp_sansio::sink::{Sink, SliceStorage, Storage};

/// A message, and its head before it as soon as the message is sent.
pub(crate) struct Outgoing<'m> {
    store: Store<'m>,
    /// Number of bytes of the message and of the head.
    body: usize,
    head: usize,
    /// Number of bytes of both to send, and of those already sent.
    total: usize,
    sent: usize,
}

/// Number of bytes reserved for the head.
const HEAD: usize = 1024;

impl<'m> Outgoing<'m> {
    pub(crate) const fn new(store: Store<'m>) -> Self {
        Outgoing { store, body: 0, head: 0, total: 0, sent: 0 }
    }

    pub(crate) const fn clear(&mut self) {
        (self.body, self.head, self.total, self.sent) = (0, 0, 0, 0);
    }

    /// Appends to the message.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if self.room() < bytes.len() || !self.store.reach(self.body.saturating_add(bytes.len())) {
            return Err(FullError::Now);
        }
        let place = self.store.bytes_mut().get_mut(self.body..).unwrap_or(&mut []);
        for (to, from) in place.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.body += bytes.len();
        Ok(())
    }

    pub(crate) fn room(&self) -> usize {
        self.capacity().saturating_sub(self.body)
    }

    /// Returns the length of the largest message that fits.
    pub(crate) fn capacity(&self) -> usize {
        self.store.limit().saturating_sub(HEAD)
    }

    /// Returns the length of the message so far.
    pub(crate) const fn len(&self) -> usize {
        self.body
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.body = self.body.min(len);
    }

    /// Returns the message, while it has no head.
    pub(crate) fn message(&self) -> &[u8] {
        self.store.bytes().get(..self.body).unwrap_or(&[])
    }

    /// Returns the message that is sent, behind its head.
    pub(crate) fn body(&self) -> &[u8] {
        self.store.bytes().get(self.head..self.head.saturating_add(self.body)).unwrap_or(&[])
    }

    /// Writes the head, in place of an earlier one. `write` gets the message. The message is sent after the head
    /// only if `posts` is set.
    pub(crate) fn write_head(
        &mut self,
        posts: bool,
        write: impl Fn(&[u8], &mut dyn Sink) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        // The message moves to the front, the head is written after it, then both change places.
        let (head, body) = (core::mem::take(&mut self.head), self.body);
        if head > 0 && head + body <= self.store.bytes().len() {
            self.store.bytes_mut().copy_within(head..head + body, 0);
        }
        let mut room = HEAD / 2;
        loop {
            let last = !self.store.reach(body.saturating_add(room));
            if last {
                self.store.reach(self.store.limit());
            }
            let (message, free) = self.store.bytes_mut().split_at_mut_checked(body).ok_or(FullError::Never)?;
            let mut out = Bare(SliceStorage::new(free));
            match write(message, &mut out) {
                Ok(()) => {
                    self.head = out.0.bytes().len();
                    break;
                }
                Err(full) if last => return Err(full),
                Err(_) => room = room.saturating_mul(2),
            }
        }
        let end = body + self.head;
        if let Some(all) = self.store.bytes_mut().get_mut(..end)
            && body <= all.len()
        {
            all.rotate_left(body);
        }
        (self.total, self.sent) = (if posts { end } else { self.head }, 0);
        Ok(())
    }

    pub(crate) fn pending(&self) -> &[u8] {
        self.store.bytes().get(self.sent..self.total).unwrap_or(&[])
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.sent = self.sent.saturating_add(n).min(self.total);
    }

    /// Returns `true` if no byte was sent.
    pub(crate) const fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// Returns `true` if all bytes were sent. Before that, the server cannot have handled the message.
    pub(crate) const fn is_sent(&self) -> bool {
        self.sent >= self.total
    }
}

/// A [`Sink`] that adds no bytes of its own.
struct Bare<'b>(SliceStorage<'b>);

impl Sink for Bare<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if self.0.append(bytes) { Ok(()) } else { Err(FullError::Now) }
    }

    fn room(&self) -> usize {
        self.0.limit().saturating_sub(self.0.bytes().len())
    }
}
