//! Server-sent events: the format of a `text/event-stream`. See
//! [transports](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http).

use core::fmt;

use mcp_sansio::memory::{FixedText, Store};
use mcp_sansio::sink::copy;

/// Reads an event stream as the HTML standard says (section 9.2.6), in pieces of any size.
///
/// 1. Pass bytes to [`read`](SseDecoder::read). It stops after each event.
/// 2. Handle the event that [`item`](SseDecoder::item) returns, then call [`consume`](SseDecoder::consume).
///
/// The data of an event may be as large as the store, an id `ID` bytes. An event without its blank line at the
/// end of the stream does not count.
///
/// ```
/// use mcp_sansio_http::sse::{SseDecoder, SseItem};
/// let mut bytes = [0; 32];
/// let mut stream = SseDecoder::<32>::new(&mut bytes);
/// let mut input = &b": hello\nid: 7\nretry: 500\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata: cut off"[..];
/// let n = stream.read(input);
/// input = &input[n..];
/// let Some(SseItem::Event(event)) = stream.item() else { panic!("there is one") };
/// assert_eq!((event.name, event.id, &*event.data), ("", "7", &b"{\"a\":\n1}"[..]));
/// stream.consume();
/// assert_eq!(stream.read(input), input.len());
/// assert_eq!(stream.item(), None);
/// assert_eq!((stream.last_id(), stream.retry), ("7", Some(500)));
/// ```
pub struct SseDecoder<'m, const ID: usize = 128> {
    /// The store, for other use while no stream is read. Call [`restart`](SseDecoder::restart) before the next stream.
    pub store: Store<'m>,
    /// The number of bytes of data, each line with its newline.
    len: usize,
    state: LineState,
    /// The name of the field on the line under way: its first bytes, with a byte order mark on the first line.
    field_name: FixedText<16>,
    /// The field whose value is being read.
    field: Field,
    /// The first line is under way, which may begin with a byte order mark.
    is_first: bool,
    /// The last line ended with a carriage return: a line feed after it belongs to the same end.
    after_return: bool,
    /// The value of a `retry` line, as far as it was read.
    retry_at: Option<u32>,
    /// The last `retry`: the time to wait before connecting again, in milliseconds.
    pub retry: Option<u32>,
    name: FixedText<32>,
    /// The id of the event under way, or the last one.
    id: FixedText<ID>,
    /// The id on the line under way; `None` if it does not count.
    draft: Option<FixedText<ID>>,
    /// The id of the last event.
    last_id: FixedText<ID>,
    waiting: Option<Waiting>,
    /// The event under way is too large: it is dropped up to its blank line.
    skipping: bool,
}

/// An item of the stream that a [`SseDecoder`] found.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SseItem<'d> {
    /// An event.
    Event(SseMessage<'d>),
    /// An event with more data than the store holds. Reported when the data exceeds it; the rest of the event
    /// is skipped.
    TooLarge {
        /// The data that fitted.
        start: &'d [u8],
    },
}

/// An event that was read.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct SseMessage<'d> {
    /// The `event` field: its type; empty means `message`. Only the first 32 bytes of a longer one.
    pub name: &'d str,
    /// The value of `Last-Event-ID` from here on; empty if there is no id.
    pub id: &'d str,
    /// The `data` lines, joined by line feeds.
    pub data: &'d mut [u8],
}

/// The place in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Name,
    /// After the colon.
    Colon,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    /// A comment, or a field without a meaning.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Event,
    TooLarge,
}

/// A byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

impl<'m, const ID: usize> SseDecoder<'m, ID> {
    /// Makes a decoder for the start of a stream. The store is the room for the data of one event.
    #[must_use]
    pub fn new(store: impl Into<Store<'m>>) -> Self {
        SseDecoder {
            store: store.into(),
            len: 0,
            state: LineState::Name,
            field_name: FixedText::EMPTY,
            field: Field::Other,
            is_first: true,
            after_return: false,
            retry_at: None,
            retry: None,
            name: FixedText::EMPTY,
            id: FixedText::EMPTY,
            draft: None,
            last_id: FixedText::EMPTY,
            waiting: None,
            skipping: false,
        }
    }

    /// Begins another stream. Keeps the last id and `retry`: the new stream may continue the old one.
    pub fn restart(&mut self) {
        (self.len, self.state, self.is_first) = (0, LineState::Name, true);
        (self.after_return, self.skipping, self.waiting) = (false, false, None);
        (self.field_name, self.name) = (FixedText::EMPTY, FixedText::EMPTY);
        self.id = self.last_id;
    }

    /// Begins a stream that does not continue an earlier one. Forgets the last id and `retry`.
    pub fn reset(&mut self) {
        self.last_id = FixedText::EMPTY;
        self.retry = None;
        self.restart();
    }

    /// Returns the id of the last event that had one, for `Last-Event-ID`; else empty.
    #[must_use]
    pub fn last_id(&self) -> &str {
        self.last_id.as_str()
    }

    /// Reads up to the end of an event or of `bytes`. Returns how many bytes it read; 0 while an item waits.
    pub fn read(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while self.waiting.is_none() && !rest.is_empty() {
            let n = self.some(rest);
            rest = rest.get(n..).unwrap_or(&[]);
        }
        bytes.len() - rest.len()
    }

    /// Returns the item that was found, until [`consume`](SseDecoder::consume).
    #[must_use]
    pub fn item(&mut self) -> Option<SseItem<'_>> {
        let waiting = self.waiting?;
        let data = self.store.bytes_mut().get_mut(..self.len).unwrap_or(&mut []);
        Some(match waiting {
            Waiting::TooLarge => SseItem::TooLarge { start: data },
            Waiting::Event => {
                // Without the last line's newline.
                let data = data.split_last_mut().map_or(&mut [][..], |(_, data)| data);
                SseItem::Event(SseMessage { name: self.name.as_str(), id: self.last_id.as_str(), data })
            }
        })
    }

    /// Drops the item that [`item`](SseDecoder::item) returned.
    pub fn consume(&mut self) {
        if self.waiting.take().is_some() {
            self.len = 0;
            self.name = FixedText::EMPTY;
        }
    }

    /// Reads a run of bytes, at least one, and returns its length.
    fn some(&mut self, bytes: &[u8]) -> usize {
        let Some(&byte) = bytes.first() else { return 0 };
        if core::mem::take(&mut self.after_return) && byte == b'\n' {
            return 1;
        }
        if matches!(byte, b'\r' | b'\n') {
            self.after_return = byte == b'\r';
            self.end_line();
            return 1;
        }
        match self.state {
            LineState::Name if byte == b':' => self.begin_value(),
            LineState::Name => {
                let end = memchr::memchr3(b':', b'\r', b'\n', bytes).unwrap_or(bytes.len());
                self.field_name.push(bytes.get(..end).unwrap_or(&[]));
                return end;
            }
            LineState::Colon if byte == b' ' => self.state = LineState::Value,
            LineState::Colon | LineState::Value => {
                self.state = LineState::Value;
                return self.value(bytes);
            }
        }
        1
    }

    /// Returns the name of the field on the line.
    fn field_name(&self) -> &[u8] {
        let name = self.field_name.as_bytes();
        name.strip_prefix(MARK).filter(|_| self.is_first).unwrap_or(name)
    }

    /// Begins the value of the field whose name was read.
    fn begin_value(&mut self) {
        self.state = LineState::Colon;
        self.field = match self.field_name() {
            b"data" => Field::Data,
            b"event" => Field::Event,
            b"id" => Field::Id,
            b"retry" => Field::Retry,
            _ => Field::Other,
        };
        match self.field {
            Field::Event => self.name = FixedText::EMPTY,
            Field::Id => self.draft = Some(FixedText::EMPTY),
            Field::Retry => self.retry_at = None,
            Field::Data | Field::Other => {}
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
            Field::Other => {}
        }
        end
    }

    /// An id with a NUL does not count. An id that is too long cannot be sent back, so it counts as empty.
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
        let is_name = self.state == LineState::Name;
        let blank = is_name && self.field_name().is_empty();
        if is_name {
            self.begin_value();
        }
        match self.field {
            Field::Data => self.data(b"\n"),
            Field::Id => self.id = self.draft.take().unwrap_or(self.id),
            Field::Retry => self.retry = self.retry_at.or(self.retry),
            _ => {}
        }
        (self.state, self.field_name, self.is_first) = (LineState::Name, FixedText::EMPTY, false);
        if blank {
            self.dispatch();
        }
    }

    /// Ends the event at a blank line.
    fn dispatch(&mut self) {
        self.last_id = if self.id.is_whole() { self.id } else { FixedText::EMPTY };
        self.skipping = false;
        if self.len > 0 {
            self.waiting = Some(Waiting::Event);
        } else {
            self.name = FixedText::EMPTY;
        }
    }
}

impl<const ID: usize> fmt::Debug for SseDecoder<'_, ID> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseDecoder").field("len", &self.len).field("last_id", &self.last_id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
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

    /// Reads `parts` one after the other. Returns the items, the last id and `retry`.
    fn seen(parts: &[&[u8]], size: usize) -> (Vec<Seen>, String, Option<u32>) {
        let mut bytes = [0; 256];
        let mut decoder = SseDecoder::<8>::new(&mut bytes[..size]);
        let mut all = Vec::new();
        for part in parts {
            let mut rest = *part;
            loop {
                rest = &rest[decoder.read(rest)..];
                match decoder.item() {
                    Some(SseItem::Event(event)) => {
                        all.push(Seen::Event(event.name.to_string(), event.id.to_string(), event.data.to_vec()));
                    }
                    Some(SseItem::TooLarge { start }) => all.push(Seen::TooLarge(start.to_vec())),
                    None => break,
                }
                decoder.consume();
            }
            assert!(rest.is_empty());
        }
        (all, decoder.last_id().to_string(), decoder.retry)
    }

    /// Reads the stream whole, byte by byte, and cut at every position: the result must be the same.
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

    /// The parts of an event of one stream are no part of the next stream's.
    #[test]
    fn a_restart_drops_the_event_under_way() {
        for begun in ["data: a", "event: x\ndata: a\n", "event: x\n", "id: 7\ndata: a\nid", "data: 0123456789"] {
            for forgets in [false, true] {
                let mut bytes = [0; 8];
                let mut decoder = SseDecoder::<8>::new(&mut bytes[..]);
                let read = |decoder: &mut SseDecoder<'_, 8>, text: &str| {
                    let n = decoder.read(text.as_bytes());
                    (n < text.len() || decoder.item().is_some()).then(|| decoder.consume())
                };
                read(&mut decoder, "id: 5\ndata: b\n\n");
                read(&mut decoder, begun);
                if forgets {
                    decoder.reset()
                } else {
                    decoder.restart()
                }
                decoder.read(b"data: new\n\n");
                let Some(SseItem::Event(event)) = decoder.item() else { panic!("no event behind {begun:?}") };
                assert_eq!((event.name, &*event.data), ("", &b"new"[..]), "{begun:?}");
                assert_eq!(event.id, if forgets { "" } else { "5" }, "{begun:?}");
            }
        }
    }

    /// A line that only begins like a name is no blank line.
    #[test]
    fn beginnings_of_names() {
        let (seen, _, _) = read(b"data: a\nd\ne\neven\nretr\n\ndata: b\n\n", 100);
        assert_eq!(seen, [event("", "", "a"), event("", "", "b")]);
        let (seen, _, _) = read(b"data: a\nd\ndata: b\n\n", 100);
        assert_eq!(seen, [event("", "", "a\nb")]);
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
        // An event without its end does not count.
        assert_eq!(read(b"data: a\n", 64).0, []);
    }

    #[test]
    fn ids() {
        assert_eq!(read(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n\n", 64).1, "2");
        assert_eq!(read(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n", 64).0, [event("", "1", "a"), event("", "1", "b")]);
        // An id counts from the blank line on.
        assert_eq!(read(b"id: 1\n\nid: 2\n", 64).1, "1");
        assert_eq!(read(b"id: 1\n\nid: 2\x003\n\n", 64).1, "1");
        assert_eq!(read(b"id: 1\n\nid\n\n", 64).1, "");
        assert_eq!(read(b"id: 12345678\n\n", 64).1, "12345678");
        // An id that is too long counts as empty: the client could not resume at it.
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

    /// Any bytes, cut anywhere, give the same result.
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

    /// A stream that does not continue an earlier one has no last id and no `retry` of it; one that continues it has both.
    #[test]
    fn a_new_stream_forgets_the_earlier_one() {
        for (continues, id, retry) in [(true, "1", Some(5)), (false, "", None)] {
            let mut bytes = [0; 64];
            let mut decoder = SseDecoder::<8>::new(&mut bytes[..]);
            assert_eq!(decoder.read(b"id: 1\nretry: 5\ndata: a\n\n"), 24);
            decoder.consume();
            // It breaks off in the middle of an event.
            assert_eq!(decoder.read(b"event: b\nid: 2\ndata: half"), 25);
            if continues {
                decoder.restart()
            } else {
                decoder.reset()
            }
            assert_eq!((decoder.last_id(), decoder.retry), (id, retry));
            assert_eq!(decoder.read(b"data: new\n\n"), 11);
            let Some(SseItem::Event(event)) = decoder.item() else { panic!("no event") };
            assert_eq!((event.name, event.id, &*event.data), ("", id, &b"new"[..]));
        }
    }
}
