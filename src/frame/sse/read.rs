//! Events as they are read.

use core::fmt;

use crate::sink::copy;
use crate::store::Store;

/// Takes an event stream apart, as the HTML standard says (section 9.2.6), wherever it is cut.
///
/// Give it bytes with [`read`](Decoder::read), which stops behind each event; handle what [`item`](Decoder::item) gives and
/// [`consume`](Decoder::consume) it. The limit on the data of an event is the store's size, on an id `ID` bytes. Where a
/// stream ends in the middle of an event, that event never was.
///
/// ```
/// use mcp_sansio::frame::sse::{Decoder, Item};
/// let mut bytes = [0; 32];
/// let mut stream = Decoder::<32>::new(&mut bytes);
/// let mut input = &b": hello\nid: 7\nretry: 500\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata: cut off"[..];
/// let n = stream.read(input);
/// input = &input[n..];
/// let Some(Item::Event(event)) = stream.item() else { panic!("there is one") };
/// assert_eq!((event.name, event.id, &*event.data), ("", "7", &b"{\"a\":\n1}"[..]));
/// stream.consume();
/// assert_eq!(stream.read(input), input.len());
/// assert_eq!(stream.item(), None);
/// assert_eq!((stream.last_id(), stream.retry()), ("7", Some(500)));
/// ```
pub struct Decoder<'m, const ID: usize = 128> {
    store: Store<'m>,
    /// Bytes of data so far, each line with its newline.
    len: usize,
    state: State,
    field: Field,
    /// The last byte ended a line as a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// How much of a byte order mark was seen; more than it has bytes when there can be none.
    mark: usize,
    /// Where the digits of a `retry` stand.
    retry_at: Option<u32>,
    retry: Option<u32>,
    name: Short<32>,
    /// The id that the event under way brings, or an earlier one.
    id: Short<ID>,
    /// The id on the line at hand; `None` once it is known not to count.
    draft: Option<Short<ID>>,
    /// The id of the last event that came.
    last_id: Short<ID>,
    waiting: Option<Waiting>,
    /// The event under way is too large: it is dropped up to its blank line.
    skipping: bool,
}

/// What a [`Decoder`] found.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Item<'d> {
    /// An event.
    Event(Received<'d>),
    /// An event with more data than fits; what follows of it is skipped. Told as soon as it is known.
    TooLarge {
        /// As much of its data as was kept.
        start: &'d [u8],
    },
}

/// An event that came.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Received<'d> {
    /// Its type; empty means `message`. Of longer ones, only the first 32 bytes.
    pub name: &'d str,
    /// What to send as `Last-Event-ID` from here on; empty if there is none.
    pub id: &'d str,
    /// Its data: the lines joined by line feeds.
    pub data: &'d mut [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the name of a field, of which so many bytes are known.
    Name(u8),
    /// Behind the colon.
    Colon,
    /// In the value.
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// So far its name could be any of them.
    Unknown,
    Data,
    Event,
    Id,
    Retry,
    /// A comment, or one without a meaning.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Event,
    TooLarge,
}

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const FIELDS: [(Field, &[u8]); 4] =
    [(Field::Data, b"data"), (Field::Event, b"event"), (Field::Id, b"id"), (Field::Retry, b"retry")];

impl<'m, const ID: usize> Decoder<'m, ID> {
    /// At the start of a stream.
    #[must_use]
    pub fn new(store: impl Into<Store<'m>>) -> Self {
        Decoder {
            store: store.into(),
            len: 0,
            state: State::Name(0),
            field: Field::Unknown,
            after_return: false,
            mark: 0,
            retry_at: None,
            retry: None,
            name: Short::EMPTY,
            id: Short::EMPTY,
            draft: None,
            last_id: Short::EMPTY,
            waiting: None,
            skipping: false,
        }
    }

    /// Begins another stream. The last id and the time to wait stay: the new stream may go on where the old one ended.
    pub fn restart(&mut self) {
        (self.len, self.state, self.field) = (0, State::Name(0), Field::Unknown);
        (self.after_return, self.mark, self.skipping, self.waiting) = (false, 0, false, None);
        self.name = Short::EMPTY;
        self.id = self.last_id;
    }

    /// Begins a stream that has nothing to do with what was read before.
    pub fn reset(&mut self) {
        self.last_id = Short::EMPTY;
        self.retry = None;
        self.restart();
    }

    /// The id of the last event that had one, for `Last-Event-ID`; empty if there is none.
    #[must_use]
    pub fn last_id(&self) -> &str {
        self.last_id.as_str()
    }

    /// The milliseconds to wait before coming back, if the stream said so.
    #[must_use]
    pub const fn retry(&self) -> Option<u32> {
        self.retry
    }

    /// The store, for other use while no stream is read; [`restart`](Decoder::restart) before the next one.
    pub const fn store(&mut self) -> &mut Store<'m> {
        &mut self.store
    }

    /// Reads up to the end of an event or of `bytes`; how many bytes that were. None, while an item waits.
    pub fn read(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while self.waiting.is_none() && !rest.is_empty() {
            let n = self.some(rest);
            rest = rest.get(n..).unwrap_or(&[]);
        }
        bytes.len() - rest.len()
    }

    /// What was found and not consumed.
    #[must_use]
    pub fn item(&mut self) -> Option<Item<'_>> {
        let waiting = self.waiting?;
        let data = self.store.bytes_mut().get_mut(..self.len).unwrap_or(&mut []);
        Some(match waiting {
            Waiting::TooLarge => Item::TooLarge { start: data },
            Waiting::Event => {
                // Without the last line's newline.
                let data = data.split_last_mut().map_or(&mut [][..], |(_, data)| data);
                Item::Event(Received { name: self.name.as_str(), id: self.last_id.as_str(), data })
            }
        })
    }

    /// Drops what [`item`](Decoder::item) gave.
    pub fn consume(&mut self) {
        if self.waiting.take().is_some() {
            self.len = 0;
            self.name = Short::EMPTY;
        }
    }

    /// Reads a run of bytes; at least one.
    fn some(&mut self, bytes: &[u8]) -> usize {
        let Some(&byte) = bytes.first() else { return 0 };
        if core::mem::take(&mut self.after_return) && byte == b'\n' {
            return 1;
        }
        if self.byte_order_mark(byte) {
            return 1;
        }
        if matches!(byte, b'\r' | b'\n') {
            self.after_return = byte == b'\r';
            self.end_line();
            return 1;
        }
        match self.state {
            State::Name(known) => self.name_byte(byte, known),
            State::Colon => {
                self.state = State::Value;
                if byte != b' ' {
                    return self.value(bytes);
                }
            }
            State::Value => return self.value(bytes),
        }
        1
    }

    /// A mark at the start of the stream is no part of it. One that is none after all belongs to a name without meaning.
    fn byte_order_mark(&mut self, byte: u8) -> bool {
        let Some(&expected) = MARK.get(self.mark) else { return false };
        if byte == expected {
            self.mark += 1;
            return true;
        }
        if self.mark > 0 {
            self.field = Field::Other;
        }
        self.mark = MARK.len();
        false
    }

    fn name_byte(&mut self, byte: u8, known: u8) {
        let so_far = usize::from(known);
        if byte == b':' {
            self.begin_value(so_far);
            self.state = State::Colon;
            return;
        }
        if self.field == Field::Other {
            return;
        }
        // The first bytes tell the four apart; what differs later on is none of them.
        let candidate = FIELDS
            .iter()
            .find(|(field, name)| name.get(so_far) == Some(&byte) && (so_far == 0 || self.field == *field));
        self.field = candidate.map_or(Field::Other, |(field, _)| *field);
        self.state = State::Name(known.saturating_add(1));
    }

    /// Behind the name of a field: is it known to its end?
    fn begin_value(&mut self, len: usize) {
        if FIELDS.iter().all(|(field, name)| *field != self.field || name.len() != len) {
            self.field = Field::Other;
        }
        match self.field {
            Field::Event => self.name = Short::EMPTY,
            Field::Id => self.draft = Some(Short::EMPTY),
            Field::Retry => self.retry_at = None,
            _ => {}
        }
    }

    fn value(&mut self, bytes: &[u8]) -> usize {
        let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
        let value = bytes.get(..end).unwrap_or(&[]);
        match self.field {
            Field::Data => self.data(value),
            Field::Event => self.name.push(value),
            Field::Id => self.id_part(value),
            Field::Retry => value.iter().for_each(|&byte| self.retry_digit(byte)),
            Field::Unknown | Field::Other => {}
        }
        end
    }

    /// One with a NUL is no id; what is longer than there is room cannot be sent back, and that is as if there was none.
    fn id_part(&mut self, value: &[u8]) {
        if memchr::memchr(0, value).is_some() {
            self.draft = None;
        }
        if let Some(draft) = &mut self.draft {
            draft.push(value);
        }
    }

    fn retry_digit(&mut self, byte: u8) {
        if byte.is_ascii_digit() {
            let digit = u32::from(byte - b'0');
            self.retry_at = Some(self.retry_at.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        } else {
            self.field = Field::Other;
        }
    }

    fn data(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        let wanted = self.len.saturating_add(bytes.len());
        let fits = self.store.reach(wanted);
        if !fits {
            self.store.reach(self.store.limit());
        }
        let place = self.store.bytes_mut().get_mut(self.len..).unwrap_or(&mut []);
        let n = place.len().min(bytes.len());
        copy(place, bytes);
        self.len += n;
        if !fits {
            (self.skipping, self.waiting) = (true, Some(Waiting::TooLarge));
        }
    }

    fn end_line(&mut self) {
        let (state, field) = (self.state, self.field);
        let blank = state == State::Name(0) && field == Field::Unknown;
        if let State::Name(known) = state {
            self.begin_value(usize::from(known));
        }
        match self.field {
            _ if blank => {}
            Field::Data => self.data(b"\n"),
            Field::Id => self.id = self.draft.take().unwrap_or(self.id),
            Field::Retry => self.retry = self.retry_at.or(self.retry),
            _ => {}
        }
        (self.state, self.field) = (State::Name(0), Field::Unknown);
        if blank {
            self.dispatch();
        }
    }

    /// At a blank line.
    fn dispatch(&mut self) {
        self.last_id = if self.id.is_whole() { self.id } else { Short::EMPTY };
        if core::mem::take(&mut self.skipping) {
            self.len = 0;
        }
        if self.len > 0 {
            self.waiting = Some(Waiting::Event);
        } else {
            self.name = Short::EMPTY;
        }
    }
}

impl<const ID: usize> fmt::Debug for Decoder<'_, ID> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("len", &self.len).field("last_id", &self.last_id()).finish_non_exhaustive()
    }
}

/// A short text of its own.
#[derive(Clone, Copy)]
struct Short<const L: usize> {
    bytes: [u8; L],
    /// How long it is, or would be if there was room.
    len: usize,
}

impl<const L: usize> Short<L> {
    const EMPTY: Self = Short { bytes: [0; L], len: 0 };

    fn push(&mut self, bytes: &[u8]) {
        copy(self.bytes.get_mut(self.len..).unwrap_or(&mut []), bytes);
        self.len = self.len.saturating_add(bytes.len());
    }

    fn is_whole(&self) -> bool {
        self.len <= L
    }

    /// As much of it as is UTF-8.
    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len.min(L)).unwrap_or(&[]);
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    #[derive(Debug, PartialEq, Eq)]
    enum Seen {
        Event(String, String, Vec<u8>),
        TooLarge(Vec<u8>),
    }

    fn event(name: &str, id: &str, data: &str) -> Seen {
        Seen::Event(name.to_string(), id.to_string(), data.as_bytes().to_vec())
    }

    /// Everything in `parts`, one after the other, and where the stream stands then.
    fn seen(parts: &[&[u8]], size: usize) -> (Vec<Seen>, String, Option<u32>) {
        let mut bytes = [0; 256];
        let mut decoder = Decoder::<8>::new(&mut bytes[..size]);
        let mut all = Vec::new();
        for part in parts {
            let mut rest = *part;
            loop {
                rest = &rest[decoder.read(rest)..];
                match decoder.item() {
                    Some(Item::Event(event)) => {
                        all.push(Seen::Event(event.name.to_string(), event.id.to_string(), event.data.to_vec()));
                    }
                    Some(Item::TooLarge { start }) => all.push(Seen::TooLarge(start.to_vec())),
                    None => break,
                }
                decoder.consume();
            }
            assert!(rest.is_empty());
        }
        (all, decoder.last_id().to_string(), decoder.retry())
    }

    /// The same, whole, byte by byte, and cut at every place.
    fn read(stream: &[u8], size: usize) -> (Vec<Seen>, String, Option<u32>) {
        let whole = seen(&[stream], size);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(seen(&bytes, size), whole, "byte by byte: {}", String::from_utf8_lossy(stream));
        for at in 0..stream.len() {
            let (one, other) = stream.split_at(at);
            assert_eq!(seen(&[one, other], size), whole, "cut at {at}: {}", String::from_utf8_lossy(stream));
        }
        whole
    }

    #[test]
    fn ends_of_lines() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = "data: a\ndata: b\n\nevent: x\ndata\n\n:c\n\ndata:d\n\n".replace('\n', end);
            let expected = [event("", "", "a\nb"), event("x", "", ""), event("", "", "d")];
            assert_eq!(read(stream.as_bytes(), 64).0, expected, "{end:?}");
        }
        assert_eq!(read(b"data: a\r\ndata: b\r\r\ndata: c\n\r\n", 64).0, [event("", "", "a\nb"), event("", "", "c")]);
    }

    #[test]
    fn fields() {
        let stream = b"data:  two\nunknown: x\nDATA: no\ndatax: no\ndat: no\n data: no\nnothing\n\n";
        assert_eq!(read(stream, 64).0, [event("", "", " two")]);
        assert_eq!(
            read(b"event: a\nevent: b\nevent: endpoint\ndata: /x:y\n\ndata: z\n\n", 64).0,
            [event("endpoint", "", "/x:y"), event("", "", "z"),]
        );
        // No data, no event; its type is forgotten.
        assert_eq!(read(b"event: a\n\n\n\ndata: b\n\n", 64).0, [event("", "", "b")]);
        // What has no end is no event.
        assert_eq!(read(b"data: a\n", 64).0, []);
    }

    #[test]
    fn ids() {
        assert_eq!(read(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n\n", 64).1, "2");
        assert_eq!(read(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n", 64).0, [event("", "1", "a"), event("", "1", "b")]);
        // It counts from the blank line on.
        assert_eq!(read(b"id: 1\n\nid: 2\n", 64).1, "1");
        assert_eq!(read(b"id: 1\n\nid: 2\x003\n\n", 64).1, "1");
        assert_eq!(read(b"id: 1\n\nid\n\n", 64).1, "");
        assert_eq!(read(b"id: 12345678\n\n", 64).1, "12345678");
        // One that is too long to be kept is none: nothing could be resumed at it.
        assert_eq!(read(b"id: 1\n\nid: 123456789\n\n", 64).1, "");
    }

    #[test]
    fn retries() {
        for (stream, retry) in [
            ("retry: 500\n", Some(500)),
            ("retry:500\nretry: 5x\nretry\nretry: \nretry: -1\n", Some(500)),
            ("retry: 99999999999999\n", Some(u32::MAX)),
            ("retry: 12", None),
        ] {
            assert_eq!(read(stream.as_bytes(), 64).2, retry, "{stream}");
        }
    }

    #[test]
    fn byte_order_mark() {
        assert_eq!(read(b"\xef\xbb\xbfdata: a\n\n", 64).0, [event("", "", "a")]);
        assert_eq!(read(b"\xef\xbbdata: a\n\ndata: b\n\n", 64).0, [event("", "", "b")]);
        assert_eq!(read(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", 64).0, [event("", "", "b")]);
    }

    #[test]
    fn too_large_up_to_the_blank_line() {
        let stream = b"data: 1234\n\ndata: 123456789\ndata: more\nid: 3\n\ndata: 5\n\n";
        assert_eq!(read(stream, 64).0.len(), 3);
        let (all, last, _) = read(stream, 5);
        assert_eq!(all, [event("", "", "1234"), Seen::TooLarge(b"12345".to_vec()), event("", "3", "5")]);
        assert_eq!(last, "3");
        assert_eq!(read(b"data: 1\n\n", 0).0, [Seen::TooLarge(Vec::new())]);
    }

    /// What is written comes back, and any other bytes do no harm however they are cut.
    #[test]
    fn any_bytes() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..300 {
            let stream: Vec<u8> = (0..60)
                .flat_map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let words: [&[u8]; 12] =
                        [b"data", b"id", b":", b"\n", b"\r", b" ", b"retry", b"7", b"event", b"\0", b"\xef", b"\n\n"];
                    words[state as usize % words.len()].iter().copied()
                })
                .collect();
            read(&stream, 12);
        }
    }
}
