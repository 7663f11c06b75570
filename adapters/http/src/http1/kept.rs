//! The head of an earlier request of a connection. Clients send the same head with each message, but for its
//! `Content-Length`; one that is equal is not parsed again: 6,820 instructions for a `tools/call` in place of 8,771
//! (`calc/http-echo32` in benches/counts.txt).

use super::head::{Framing, HeadFacts, Repeatable, number};

/// Remembers the last parsed head. A copy of its bytes is at the front of the store, before the current request.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The length of the copy; 0 without one.
    len: u16,
    head: Option<Repeatable>,
}

impl Kept {
    pub(crate) const NONE: Kept = Kept { len: 0, head: None };

    /// Returns the number of bytes at the front of the store that are not of the current request.
    pub(crate) const fn front(&self) -> usize {
        self.len as usize
    }

    /// Forgets the copy: its place is needed, or what was parsed of it will be overwritten.
    pub(crate) const fn forget(&mut self) {
        self.len = 0;
    }

    /// Notes the head that was just parsed.
    pub(crate) const fn note(&mut self, head: Option<Repeatable>) {
        self.head = head;
    }

    /// Returns length and facts of the head at the start of `bytes`, if it is the head that was parsed last: each byte is
    /// equal, but for the digits of `Content-Length`, as many as before. A length that is no number, or more than `body`
    /// bytes, is left to the parser.
    pub(crate) fn find(&self, store: &[u8], bytes: &[u8], body: usize) -> Option<(usize, HeadFacts)> {
        let Repeatable { digits, head, http10 } = self.head.filter(|_| self.len > 0)?;
        let len = self.front();
        let (kept, bytes) = (store.get(..len)?, bytes.get(..len)?);
        let (digits, behind) = digits.range();
        if kept.get(..digits)? != bytes.get(..digits)? || kept.get(behind..)? != bytes.get(behind..)? {
            return None;
        }
        let length = number(bytes.get(digits..behind)?)?.try_into().ok().filter(|length| *length <= body)?;
        let facts = HeadFacts { head, http10, close: false, expects: false, body: Framing::Length(length) };
        Some((len, facts))
    }

    /// Copies the head at `start`, which is consumed now, to the front of the store. At least half of the store is left for
    /// the next request.
    pub(crate) fn keep(&mut self, store: &mut [u8], start: usize, len: usize) {
        if self.len > 0 || self.head.is_none() || len > store.len() / 2 || start + len > store.len() {
            return;
        }
        store.copy_within(start..start + len, 0);
        // A head is at most `LONGEST` bytes long.
        self.len = len as u16;
    }
}
