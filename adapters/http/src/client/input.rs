//! What comes in on a connection: heads, then bodies without what is around them.

use core::ops::Range;

use mcp_sansio::store::Store;

use super::event::Why;
use super::reply::{Framing, Reply};
use crate::wire::chunked::{Bounds, Chunked};

/// Bytes of a connection. A head stays until its body is read; the bytes of a body are taken as they come.
#[derive(Debug)]
pub(crate) struct Input<'m> {
    store: Store<'m>,
    /// Decoded bytes of a body that have not been taken.
    ready: Range<usize>,
    /// What has not been looked at begins here.
    from: usize,
    end: usize,
    framing: Framing,
    chunked: Chunked,
    /// How much of a head has been searched for its end.
    searched: usize,
}

/// How much is read at once where the store grows.
const LEAST: usize = 4096;
const MOST: usize = 64 * 1024;

impl<'m> Input<'m> {
    pub(crate) const fn new(store: Store<'m>) -> Self {
        Input { store, ready: 0..0, from: 0, end: 0, framing: Framing::None, chunked: Chunked::new(0), searched: 0 }
    }

    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.from > 0 && self.ready.is_empty() {
            let (from, end) = (self.from, self.end);
            let bytes = self.store.bytes_mut();
            if from <= end && end <= bytes.len() {
                bytes.copy_within(from..end, 0);
                (self.ready, self.from, self.end) = (0..0, 0, end - from);
            }
        }
        if self.end == self.store.bytes().len() {
            let wanted = self.end.saturating_add(self.end.clamp(LEAST, MOST)).min(self.store.limit());
            self.store.reach(wanted);
        }
        self.store.bytes_mut().get_mut(self.end..).unwrap_or(&mut [])
    }

    pub(crate) fn filled(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.store.bytes().len());
    }

    /// Nothing is left of what came.
    pub(crate) const fn is_empty(&self) -> bool {
        self.from == self.end && self.ready.start >= self.ready.end
    }

    pub(crate) fn clear(&mut self) {
        (self.ready, self.from, self.end, self.searched) = (0..0, 0, 0, 0);
        self.framing = Framing::None;
    }

    /// The next head, if it is whole. It is looked at with [`bytes`](Input::bytes).
    pub(crate) fn head(&mut self, most: usize) -> Result<Option<Reply>, Why> {
        let bytes = self.store.bytes().get(self.from..self.end).unwrap_or(&[]);
        let unseen = bytes.get(self.searched..).unwrap_or(&[]);
        let has_line = memchr::memchr(b'\n', unseen).is_some();
        self.searched = bytes.len();
        let whole = bytes.len() >= most.min(self.store.limit());
        if !has_line && !whole {
            return if could_be_http(bytes) { Ok(None) } else { Err(Why::NotHttp) };
        }
        match Reply::parse(bytes)? {
            None if whole => Err(Why::TooLarge),
            None => Ok(None),
            Some(reply) => {
                let at = self.from;
                self.from += reply.len;
                self.searched = 0;
                self.framing = reply.framing;
                self.ready = self.from..self.from;
                self.chunked = Chunked::new(self.from);
                Ok(Some(reply.moved(at)))
            }
        }
    }

    /// A part of what was found in the last head.
    pub(crate) fn text(&self, range: Range<usize>) -> &str {
        let bytes = self.store.bytes().get(range).unwrap_or(&[]);
        core::str::from_utf8(bytes).unwrap_or("")
    }

    /// The next bytes of the body; none if more must come first, or at the end.
    pub(crate) fn body(&mut self, extra: usize) -> Result<&[u8], Why> {
        if self.ready.is_empty() {
            self.decode(extra)?;
        }
        Ok(self.store.bytes().get(self.ready.clone()).unwrap_or(&[]))
    }

    /// Takes `n` bytes of the body.
    pub(crate) fn take(&mut self, n: usize) {
        self.ready.start = self.ready.start.saturating_add(n).min(self.ready.end);
        if self.is_empty() {
            (self.ready, self.from, self.end) = (0..0, 0, 0);
        }
    }

    fn decode(&mut self, extra: usize) -> Result<(), Why> {
        let come = self.end - self.from;
        let whole = |n: usize| self.from..self.from + n;
        match &mut self.framing {
            Framing::None => {}
            Framing::Close => (self.ready, self.from) = (whole(come), self.end),
            Framing::Length(left) => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(come);
                *left -= n as u64;
                (self.ready, self.from) = (whole(n), self.from + n);
            }
            Framing::Chunked => {
                self.chunked.resume(self.from);
                let bytes = self.store.bytes_mut().get_mut(..self.end).unwrap_or(&mut []);
                let bounds = Bounds { at: self.from, body: usize::MAX, extra };
                let done = self.chunked.run(bytes, bounds).map_err(|_| Why::NotHttp)?;
                (self.ready, self.from) = (self.from..self.chunked.body, self.chunked.read);
                if done {
                    self.framing = Framing::None;
                }
            }
        }
        if self.is_empty() {
            (self.ready, self.from, self.end) = (0..0, 0, 0);
        }
        Ok(())
    }

    /// The body was taken to its end.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.framing, Framing::None | Framing::Length(0)) && self.ready.is_empty()
    }

    /// The body ends where the connection does.
    pub(crate) const fn ends_with_connection(&self) -> bool {
        matches!(self.framing, Framing::Close)
    }
}

/// Whether bytes without a whole line can become a head.
fn could_be_http(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    start.iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}
