//! The received bytes of requests, in order.

use mcp_sansio::memory::Store;

use super::chunked::{Bounds, Chunked};
use super::head::{self, Field, Framing, HeadFacts, HttpHead, KnownFields, Line, Parsed};
use super::kept::Kept;
use super::limits::ConnectionLimits;
use super::status::Status;
use crate::names::is_token;

/// Collects bytes until a head and then its body are whole. Both stay in place until the request is dropped.
/// Later bytes belong to the next request.
#[derive(Debug)]
pub(crate) struct Input<'m, const H: usize> {
    store: Store<'m>,
    /// First byte of the current request. All other places count from here.
    start: usize,
    end: usize,
    /// The bytes before this place were searched for the ends of lines.
    searched: usize,
    /// Start of the current line.
    line_at: usize,
    /// The request line is whole.
    has_line: bool,
    /// Length of the head, once it is whole.
    head: usize,
    line: Line,
    fields: [Field; H],
    known: KnownFields,
    kept: Kept,
    body: Body,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Length(usize),
    Chunked(Chunked),
}

/// Number of bytes read at once where the store grows; more if a long body needs it.
const LEAST: usize = 4096;
const MOST: usize = 256 * 1024;

/// Bytes that a chunked body leaves free in the store, so that its framing can be read.
const SLACK: usize = 16;

impl<'m, const H: usize> Input<'m, H> {
    pub(crate) fn new(store: Store<'m>) -> Self {
        Input {
            store,
            start: 0,
            end: 0,
            searched: 0,
            line_at: 0,
            has_line: false,
            head: 0,
            line: Line::NONE,
            fields: [Field::default(); H],
            known: KnownFields::default(),
            kept: Kept::NONE,
            body: Body::Length(0),
        }
    }

    pub(crate) const fn take_store(&mut self) -> Store<'m> {
        core::mem::replace(&mut self.store, Store::none())
    }

    /// Returns the place to read into, so that at most `most` bytes are held. A store that grows has room for as many bytes as it
    /// has had so far, and for `waiting` ones, which the caller knows to be there.
    pub(crate) fn space(&mut self, most: usize, waiting: usize) -> &mut [u8] {
        let size = self.store.bytes().len();
        if self.end == size || (self.start > self.kept.front() && self.end - self.start <= 64) {
            if self.end == size {
                self.kept.forget();
            }
            self.close_gaps();
            if self.end == size && size < self.store.limit() {
                // The head may stay in front of the next request, which is as large.
                let more = self.end.clamp(LEAST, MOST).max(waiting.saturating_add(self.head));
                let wanted = self.end.saturating_add(more).min(self.store.limit());
                self.store.reach(wanted.min(self.start.saturating_add(most)));
            }
        }
        let bytes = self.store.bytes_mut();
        let to = self.start.saturating_add(most).min(bytes.len());
        bytes.get_mut(self.end..to).unwrap_or(&mut [])
    }

    /// Returns the number of bytes that the current body lacks; `None` if it is not known.
    #[cfg(feature = "alloc")]
    pub(crate) fn missing(&self) -> Option<usize> {
        let Body::Length(length) = self.body else { return None };
        self.head.saturating_add(length).checked_sub(self.end.saturating_sub(self.start))
    }

    /// Returns the current size of the store in bytes.
    pub(crate) fn size(&self) -> usize {
        self.store.bytes().len()
    }

    pub(crate) fn filled(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.store.bytes().len());
    }

    /// Returns `true` if no byte of a request was received.
    pub(crate) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Moves the held bytes to the front, behind a head that is kept, and the bytes that are not parsed yet to the end of the body.
    fn close_gaps(&mut self) {
        let (front, start, end) = (self.kept.front(), self.start, self.end);
        let bytes = self.store.bytes_mut();
        if start > front && start <= end && end <= bytes.len() {
            bytes.copy_within(start..end, front);
            #[cfg(test)]
            super::tests::work::add(end - start);
            (self.start, self.end) = (front, front + end - start);
        }
        if let Body::Chunked(chunked) = &mut self.body {
            let gap = chunked.read.saturating_sub(chunked.body);
            let (read, body) = (self.start + chunked.read, self.start + chunked.body);
            if gap > 0 && read <= self.end && self.end <= bytes.len() {
                bytes.copy_within(read..self.end, body);
                #[cfg(test)]
                super::tests::work::add(self.end - read);
                chunked.read = chunked.body;
                self.end -= gap;
            }
        }
    }

    /// Parses a head. Returns `None` if its end was not received yet.
    pub(crate) fn find_head(&mut self, limits: &ConnectionLimits) -> Result<Option<HeadFacts>, Status> {
        let most = limits.head.min(self.store.limit()).min(head::LONGEST);
        // Most heads arrive whole. The slow way handles all others and finds the error.
        if self.is_empty() {
            return Ok(None);
        }
        if self.searched == 0 {
            let (store, limit) = (self.store.bytes(), self.store.limit());
            let bytes = store.get(self.start..self.end).unwrap_or(&[]);
            let longest = limits.body.min(limit.saturating_sub(self.kept.front()));
            if let Some((len, facts)) = self.kept.find(store, bytes, longest) {
                #[cfg(test)]
                super::tests::work::add(len);
                return self.take_facts(len, facts).map(Some);
            }
            // What was parsed of it is overwritten now.
            self.kept.forget();
            if let Some(parsed) = self.parse_at_once(limits, most) {
                return self.take_head(parsed).map(Some);
            }
        }
        if !self.find_head_end(limits, most)? {
            return Ok(None);
        }
        let head = self.store.bytes().get(self.start..self.start + self.line_at).unwrap_or(&[]);
        let parsed = head::parse(head, limits, &mut self.fields)?;
        if parsed.len != self.line_at {
            return Err(Status::BAD_REQUEST);
        }
        self.take_head(parsed).map(Some)
    }

    fn parse_at_once(&mut self, limits: &ConnectionLimits, most: usize) -> Option<Parsed> {
        let bytes = self.store.bytes().get(self.start..self.end)?;
        let bytes = bytes.get(..most).unwrap_or(bytes);
        #[cfg(test)]
        super::tests::work::add(bytes.len());
        // The line feed does not count.
        head::parse(bytes, limits, &mut self.fields).ok().filter(|parsed| parsed.line_len <= limits.line + 1)
    }

    fn take_head(&mut self, parsed: Parsed) -> Result<HeadFacts, Status> {
        (self.line, self.known) = (parsed.line, parsed.known);
        self.kept.note(parsed.repeatable);
        self.take_facts(parsed.len, parsed.facts)
    }

    fn take_facts(&mut self, head: usize, facts: HeadFacts) -> Result<HeadFacts, Status> {
        self.head = head;
        self.body = match facts.body {
            Framing::Length(length) if length > self.store.limit() - self.head => {
                return Err(Status::CONTENT_TOO_LARGE);
            }
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Chunked::new(self.head)),
        };
        Ok(facts)
    }

    /// Searches the received lines. Returns `true` if the end of the head is among them.
    fn find_head_end(&mut self, limits: &ConnectionLimits, most: usize) -> Result<bool, Status> {
        let bytes = self.store.bytes().get(self.start..self.end).unwrap_or(&[]);
        loop {
            let first = bytes.get(self.line_at).filter(|_| !self.has_line && self.line_at < most);
            if first.is_some_and(|&byte| !is_token(byte) && byte != b'\r') {
                return Err(Status::BAD_REQUEST); // no method begins with this byte: perhaps TLS
            }
            let unseen = bytes.get(self.searched..).unwrap_or(&[]);
            let found = memchr::memchr(b'\n', unseen).map(|at| self.searched + at);
            let seen = found.unwrap_or(bytes.len());
            #[cfg(test)]
            super::tests::work::add(seen.saturating_sub(self.searched));
            if !self.has_line && seen - self.line_at > limits.line {
                return Err(Status::URI_TOO_LONG);
            }
            if seen >= most {
                return Err(if self.has_line { Status::HEADER_TOO_LARGE } else { Status::URI_TOO_LONG });
            }
            self.searched = seen;
            let Some(newline) = found else { return Ok(false) };
            let line = bytes.get(self.line_at..newline).unwrap_or(&[]);
            if line.last() != Some(&b'\r') {
                return Err(Status::BAD_REQUEST);
            }
            (self.line_at, self.searched) = (newline + 1, newline + 1);
            if line.len() > 1 {
                self.has_line = true;
            } else if self.has_line {
                return Ok(true);
            }
        }
    }

    /// Returns `true` if a head that was refused is that of a `POST`, and its headers have control characters.
    pub(crate) fn is_post_with_control_characters(&self) -> bool {
        let head = self.store.bytes().get(self.start..self.start + self.line_at).unwrap_or(&[]);
        let lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut lines = lines.skip_while(|line| line.is_empty());
        let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        lines.next().is_some_and(|line| line.starts_with(b"POST ")) && lines.any(|line| line.iter().any(is_control))
    }

    /// Searches the end of the body. Returns `true` if it was received.
    pub(crate) fn find_body(&mut self, limits: &ConnectionLimits) -> Result<bool, Status> {
        match &mut self.body {
            Body::Length(length) => Ok(self.end - self.start - self.head >= *length),
            Body::Chunked(chunked) => {
                let most = self.store.limit().saturating_sub(self.head + SLACK).min(limits.body);
                let bounds = Bounds { at: self.head, body: most, extra: limits.head };
                let bytes = self.store.bytes_mut().get_mut(self.start..self.end).unwrap_or(&mut []);
                chunked.run(bytes, bounds)
            }
        }
    }

    /// Returns the head, which must be whole.
    pub(crate) fn head(&self) -> HttpHead<'_> {
        let bytes = self.store.bytes().get(self.start..).and_then(|bytes| bytes.get(..self.head)).unwrap_or(&[]);
        let fields = self.fields.get(..usize::from(self.known.count)).unwrap_or(&[]);
        HttpHead::new(bytes, self.line, fields, &self.known)
    }

    /// Returns the body, which must be whole.
    pub(crate) fn body(&self) -> &[u8] {
        let end = match self.body {
            Body::Length(length) => self.head + length,
            Body::Chunked(chunked) => chunked.body,
        };
        self.store.bytes().get(self.start..).and_then(|bytes| bytes.get(self.head..end)).unwrap_or(&[])
    }

    /// Drops the current request, whose body is whole. The bytes after it are the next request.
    pub(crate) fn consume(&mut self) {
        self.kept.keep(self.store.bytes_mut(), self.start, self.head);
        self.start += match self.body {
            Body::Length(length) => self.head + length,
            Body::Chunked(chunked) => chunked.read,
        };
        if self.start >= self.end {
            (self.start, self.end) = (self.kept.front(), self.kept.front());
        }
        self.forget_request();
    }

    /// Drops all bytes and returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        let dropped = self.end - self.start;
        (self.start, self.end) = (0, 0);
        self.kept.forget();
        self.forget_request();
        dropped
    }

    fn forget_request(&mut self) {
        (self.searched, self.line_at, self.has_line, self.head) = (0, 0, false, 0);
        self.body = Body::Length(0);
    }

    /// Gives unused memory back to the allocator.
    pub(crate) fn release(&mut self) {
        self.kept.forget();
        self.close_gaps();
        let held = self.end - self.start;
        let worth = if held == 0 { 0 } else { held.saturating_mul(2).max(LEAST) };
        if self.size() > worth {
            self.store.shrink(self.end);
        }
    }
}
