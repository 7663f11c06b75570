//! Bytes received on a connection: heads, then bodies without their framing.

use core::ops::Range;

use mcp_sansio::memory::Store;

use super::event::FailureReason;
use super::reply::{Framing, Reply};
use crate::http1::chunked::{Bounds, Chunked};

/// The bytes of a connection. A head stays until its body is read; the bytes of a body are taken as they arrive.
#[derive(Debug)]
pub(crate) struct Input<'m> {
    store: Store<'m>,
    /// Decoded bytes of a body that are not taken yet.
    ready: Range<usize>,
    /// The start of the bytes that are not parsed yet.
    from: usize,
    end: usize,
    framing: Framing,
    chunked: Chunked,
    /// Number of bytes of a head that were searched for its end.
    searched: usize,
}

/// The least and the most bytes that are read at once where the store grows.
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
        let size = self.store.bytes().len();
        // What a head promises has room for one read: a long body needs few of them, and a promise takes no more than that.
        let promised = match self.framing {
            Framing::Length(left) => usize::try_from(left).unwrap_or(MOST).min(MOST),
            _ => 0,
        };
        if self.end == size || promised > size - self.end.min(size) {
            let more = if self.end == size { self.end.clamp(LEAST, MOST) } else { 0 };
            self.store.reach(self.end.saturating_add(more.max(promised)).min(self.store.limit()));
        }
        self.store.bytes_mut().get_mut(self.end..).unwrap_or(&mut [])
    }

    pub(crate) fn filled(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.store.bytes().len());
    }

    /// Returns `true` if no received byte is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.from == self.end && self.ready.start >= self.ready.end
    }

    pub(crate) fn clear(&mut self) {
        (self.ready, self.from, self.end, self.searched) = (0..0, 0, 0, 0);
        self.framing = Framing::None;
    }

    /// Returns the next head, if it is whole; `most` is the number of bytes that it may have. Its texts are in [`text`](Input::text).
    pub(crate) fn head(&mut self, most: usize) -> Result<Option<Reply>, FailureReason> {
        let all = self.store.bytes().get(..self.end).unwrap_or(&[]);
        let bytes = all.get(self.from..).unwrap_or(&[]);
        let unseen = bytes.get(self.searched..).unwrap_or(&[]);
        let has_line = memchr::memchr(b'\n', unseen).is_some();
        self.searched = bytes.len();
        let whole = bytes.len() >= most.min(self.store.limit());
        if !has_line && !whole {
            return if could_be_http(bytes) { Ok(None) } else { Err(FailureReason::NotHttp) };
        }
        match Reply::parse(all, self.from)? {
            None if whole => Err(FailureReason::TooLarge),
            None => Ok(None),
            // The limit holds however much of the head arrives at once.
            Some(reply) if reply.head.end - self.from > most => Err(FailureReason::TooLarge),
            Some(reply) => {
                self.from = reply.head.end;
                self.searched = 0;
                self.framing = reply.framing;
                self.ready = self.from..self.from;
                self.chunked = Chunked::new(self.from);
                Ok(Some(reply))
            }
        }
    }

    /// Returns the bytes of the last head, or of a part of it.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.store.bytes().get(range).unwrap_or(&[])
    }

    /// Returns a part of the last head.
    pub(crate) fn text(&self, range: Range<usize>) -> &str {
        core::str::from_utf8(self.bytes(range)).unwrap_or("")
    }

    /// Returns the next bytes of the body: empty if more must arrive first, and at the end.
    pub(crate) fn body(&mut self, extra: usize) -> Result<&[u8], FailureReason> {
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

    fn decode(&mut self, extra: usize) -> Result<(), FailureReason> {
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
                let done = self.chunked.run(bytes, bounds).map_err(|_| FailureReason::NotHttp)?;
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

    /// Returns `true` if the whole body was taken.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.framing, Framing::None | Framing::Length(0)) && self.ready.is_empty()
    }

    /// Returns `true` if the body ends with the connection.
    pub(crate) const fn ends_with_connection(&self) -> bool {
        matches!(self.framing, Framing::Close)
    }
}

/// Returns `true` if bytes without a whole line can be the start of a head.
fn could_be_http(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    start.iter().zip(b"HTTP/1.").all(|(byte, expected)| byte == expected)
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";

    /// Gives bytes, as many as there is room for. Returns their number.
    fn give(input: &mut Input<'_>, bytes: &str) -> usize {
        let space = input.space();
        let n = space.len().min(bytes.len());
        space[..n].copy_from_slice(&bytes.as_bytes()[..n]);
        input.filled(n);
        n
    }

    /// Takes the body that is there.
    fn body(input: &mut Input<'_>) -> std::string::String {
        let bytes = input.body(100).unwrap().to_vec();
        input.take(bytes.len());
        std::string::String::from_utf8(bytes).unwrap()
    }

    /// Bytes that were read make room for what follows, also where they filled the store.
    #[test]
    fn a_store_that_a_head_fills_has_room_for_the_body() {
        for behind in 0..4 {
            let mut bytes = std::vec![0; HEAD.len() + behind];
            let mut input = Input::new(Store::from(&mut bytes[..]));
            let whole = [HEAD, "abcd"].concat();
            assert_eq!(give(&mut input, &whole), HEAD.len() + behind);
            assert!(input.space().is_empty());
            assert_eq!(input.head(1_000).unwrap().unwrap().status, 200);
            let first = body(&mut input);
            assert_eq!(input.space().len(), HEAD.len() + behind);
            assert!(!input.is_over());
            give(&mut input, &whole[HEAD.len() + behind..]);
            assert_eq!([first, body(&mut input)].concat(), "abcd");
            assert!(input.is_over() && input.is_empty());
        }
    }

    /// Bytes that are not parsed yet move to the start, also from the very end of the store.
    #[test]
    fn a_part_of_a_head_behind_another_one_has_room_for_its_rest() {
        const FIRST: &str = "HTTP/1.1 100 Continue\r\n\r\n";
        for part in [0, 10] {
            let mut bytes = std::vec![0; FIRST.len() + part];
            let mut input = Input::new(Store::from(&mut bytes[..]));
            let whole = [FIRST, "HTTP/1.1 204 A\r\n\r\n"].concat();
            let given = give(&mut input, &whole);
            assert_eq!(given, FIRST.len() + part);
            assert_eq!(input.head(1_000).unwrap().unwrap().status, 100);
            assert_eq!(input.head(1_000).unwrap().map(|head| head.status), None);
            assert_eq!(input.space().len(), FIRST.len());
            give(&mut input, &whole[given..]);
            assert_eq!(input.head(1_000).unwrap().unwrap().status, 204);
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        let len = HEAD.len();
        for (most, store, fits) in
            [(len, 200, true), (len + 1, 200, true), (len - 1, 200, false), (200, len, true), (200, len - 1, false)]
        {
            let mut bytes = std::vec![0; store];
            let mut input = Input::new(Store::from(&mut bytes[..]));
            give(&mut input, HEAD);
            assert_eq!(input.head(most).map(|head| head.is_some()).ok(), fits.then_some(true), "{most} {store}");
        }
        // One that is not whole is waited for, and no longer than it may be.
        for (most, error) in [(len, None), (len - 1, Some(FailureReason::TooLarge))] {
            let mut input = Input::new(Store::growing(1_000));
            give(&mut input, &HEAD[..len - 1]);
            assert_eq!(input.head(most).err(), error);
        }
        // Bytes that are no head are known before the first line has ended.
        for (start, error) in [
            ("HTTP/1.", None),
            ("\r\nHT", None),
            ("HTTP/2", Some(FailureReason::NotHttp)),
            ("<ht", Some(FailureReason::NotHttp)),
        ] {
            let mut input = Input::new(Store::growing(1_000));
            give(&mut input, start);
            assert_eq!(input.head(500).err(), error, "{start}");
        }
    }

    /// Bytes behind a body are of the next answer.
    #[test]
    fn a_body_ends_where_its_head_says() {
        let mut input = Input::new(Store::growing(1_000));
        let both = [HEAD, "abcd", HEAD, "efgh"].concat();
        assert_eq!(give(&mut input, &both), both.len());
        for expected in ["abcd", "efgh"] {
            assert!(input.head(500).unwrap().is_some());
            assert!(!input.is_empty() && !input.is_over());
            // In two parts.
            assert_eq!(input.body(100), Ok(expected.as_bytes()));
            input.take(1);
            assert_eq!(input.body(100), Ok(&expected.as_bytes()[1..]));
            input.take(100);
            assert!(input.is_over());
            assert_eq!(input.body(100), Ok(&b""[..]));
        }
        assert!(input.is_empty());
        // One that ends with its connection is never over.
        give(&mut input, "HTTP/1.1 200 OK\r\n\r\nabc");
        assert!(input.head(500).unwrap().is_some());
        assert_eq!((body(&mut input).as_str(), input.is_over(), input.ends_with_connection()), ("abc", false, true));
        give(&mut input, "def");
        assert_eq!(body(&mut input), "def");
        input.clear();
        assert!(input.is_empty() && input.is_over() && !input.ends_with_connection());
    }

    /// A store doubles from a small size, by no more than a bound.
    #[test]
    fn an_input_grows_with_what_arrives() {
        let mut input = Input::new(Store::growing(200 << 10));
        let mut sizes = std::vec::Vec::new();
        loop {
            let n = input.space().len();
            if n == 0 {
                break;
            }
            input.filled(n);
            sizes.push(input.end >> 10);
        }
        assert_eq!(sizes, [4, 8, 16, 32, 64, 128, 192, 200]);
        input.filled(1);
        assert_eq!(input.end, 200 << 10);
    }

    /// A promise has room for one read; a body that comes at once is read in few.
    #[cfg(feature = "alloc")]
    #[test]
    fn long_bodies_are_read_in_few_reads() {
        for (length, most) in [(4096, 2), (65_536, 3), (1 << 20, 18)] {
            let head = std::format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let answer = [head.as_bytes(), &std::vec![b'x'; length]].concat();
            let mut input = Input::new(Store::growing(17 << 20));
            let (mut rest, mut reads, mut taken) = (&answer[..], 0, 0);
            while taken < length {
                let n = input.space().len().min(rest.len());
                input.space()[..n].copy_from_slice(&rest[..n]);
                input.filled(n);
                (rest, reads) = (&rest[n..], reads + 1);
                if reads == 1 {
                    assert!(input.head(16 << 10).unwrap().is_some());
                }
                let n = input.body(0).unwrap().len();
                input.take(n);
                taken += n;
            }
            assert!(reads <= most && input.is_over(), "{reads} reads of {length} bytes");
        }
        let mut input = Input::new(Store::growing(17 << 20));
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 16000000\r\n\r\n";
        input.space()[..head.len()].copy_from_slice(head);
        input.filled(head.len());
        assert!(input.head(16 << 10).unwrap().is_some());
        assert!(input.body(0).unwrap().is_empty() && input.space().len() <= MOST);
    }
}
