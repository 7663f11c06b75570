//! The events of streams. The log keeps an event until it was sent, and longer while there is room if the client
//! may ask for it again.

use mcp_sansio::FullError;
use mcp_sansio::json::write::digits;
use mcp_sansio::memory::FixedText;
use mcp_sansio::protocol::code;
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink};

use super::log::{HEAD, Log, Record, Spot};
use super::stream::{Stream, Streams};

/// In the tag of a record: the message continues in another record.
const MORE: u8 = 1;
/// In the tag of a record: it continues a message.
const GOES_ON: u8 = 2;

/// In the tag of a record: the status that an error has as the only message of a response.
const BAD_REQUEST: u8 = 4;
const NOT_FOUND: u8 = 8;

/// Returns the status of a JSON body.
pub(crate) fn status_of(head: MessageHead<'_>, modern: bool) -> u16 {
    match (head, modern) {
        (MessageHead::Refusal(code::INTERNAL), _) => 503,
        (MessageHead::Error(code::METHOD_NOT_FOUND) | MessageHead::Refusal(code::METHOD_NOT_FOUND), true) => 404,
        (
            MessageHead::Refusal(_)
            | MessageHead::Error(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION),
            true,
        ) => 400,
        (MessageHead::Refusal(code::PARSE | code::INVALID_REQUEST), false) => 400,
        _ => 200,
    }
}

/// Returns the tag for the status of a message.
fn status_tag(head: MessageHead<'_>) -> u8 {
    match status_of(head, true) {
        _ if !cfg!(feature = "alloc") => 0,
        400 => BAD_REQUEST,
        404 => NOT_FOUND,
        _ => 0,
    }
}

/// The sink of one stream: messages go into the log.
#[derive(Debug)]
pub(crate) struct StreamOut<'s, 'm> {
    log: &'s mut Log<'m>,
    streams: &'s mut [Stream],
    pub(crate) slot: u16,
    /// The stream is in the middle of a reply in windows.
    held: bool,
    /// The record that is being written.
    open: Option<Open>,
    /// The place of the stream when this sink was made. No earlier byte is taken back.
    begun: Begun,
}

/// A record that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: Spot,
    tag: u8,
    /// Number of unsent bytes before it.
    before: usize,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Spot,
    unsent: usize,
    event: u32,
}

impl<'s, 'm> StreamOut<'s, 'm> {
    /// Makes the sink of the stream in `slot`, which must be one of `streams`; `held` if it is in the middle of a
    /// reply in windows.
    pub(crate) fn new(log: &'s mut Log<'m>, streams: &'s mut [Stream], slot: u16, held: bool) -> Self {
        let stream = streams.get(usize::from(slot)).copied().unwrap_or(Stream::FREE);
        let begun = Begun { at: stream.chain.end, unsent: stream.chain.unsent(), event: stream.next_event };
        let mut out = StreamOut { log, streams, slot, held, open: None, begun };
        if held {
            // The message in windows continues in a record of its own. Without room for one, this window is
            // empty.
            let _ = out.open(GOES_ON);
        }
        out
    }

    fn stream(&self) -> &Stream {
        self.streams.get(usize::from(self.slot)).unwrap_or(const { &Stream::FREE })
    }

    fn open(&mut self, tag: u8) -> Result<(), FullError> {
        let before = self.stream().chain.unsent();
        let at = self.log.open(self.streams, self.slot, tag).ok_or(FullError::Now)?;
        self.open = Some(Open { at, tag, before });
        Ok(())
    }

    /// Ends the current record: the message, or this window of it.
    fn close(&mut self, more: bool) {
        let Some(open) = self.open.take() else { return };
        let size = self.stream().chain.unsent() - open.before;
        if size == HEAD && open.tag & GOES_ON != 0 && more {
            // An empty window.
            self.cut(open.before);
            return;
        }
        self.log.set_head(open.at, Record { size, tag: if more { open.tag | MORE } else { open.tag } });
        if let Some(stream) = self.streams.get_mut(usize::from(self.slot)) {
            stream.next_event += 1;
        }
    }

    /// Takes back bytes of the log until only `unsent` bytes are unsent.
    fn cut(&mut self, unsent: usize) {
        if let Some(Stream { chain, .. }) = self.streams.get_mut(usize::from(self.slot)) {
            self.log.cut(chain, chain.unsent().saturating_sub(unsent));
        }
    }

    /// Returns `true` if the log lacks room now, but has more when it is empty.
    pub(crate) fn is_crowded(&self) -> bool {
        self.room() < self.capacity()
    }
}

impl Drop for StreamOut<'_, '_> {
    fn drop(&mut self) {
        if self.held {
            self.close(true);
        }
    }
}

impl Sink for StreamOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let fits = bytes.is_empty() || (self.open.is_some() && bytes.len() <= self.room());
        if fits && self.log.append(self.streams, self.slot, bytes) { Ok(()) } else { Err(FullError::Now) }
    }

    fn room(&self) -> usize {
        if self.held && self.open.is_none() {
            // The log had no room for the record of this window.
            return 0;
        }
        let head = if self.open.is_some() { 0 } else { HEAD };
        self.log.room(&self.stream().chain).saturating_sub(head)
    }
}

impl Out for StreamOut<'_, '_> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        // Answers are limited by their requests, which are refused by then.
        let more = head.is_unasked() && self.stream().unread() >= self.log.unread;
        let shut = more || self.held || self.open.is_some() || self.room() == 0;
        if shut { Err(FullError::Now) } else { self.open(status_tag(head)) }
    }

    fn end(&mut self) {
        self.close(false);
    }

    fn mark(&self) -> Mark {
        // Mark 0 means that a message that does not fit never fits. While others have the log, it may fit later.
        let chain = &self.stream().chain;
        let waits = chain.unsent() == 0 && self.log.is_taken_by_others(chain);
        Mark::new(chain.unsent() << 1 | usize::from(waits))
    }

    fn roll_back(&mut self, mark: Mark) {
        let unsent = mark.at() >> 1;
        match self.open {
            Some(open) if unsent > open.before => self.cut(unsent),
            // Also whole messages that the same call wrote.
            _ => self.take_back(unsent),
        }
    }

    fn hold(&mut self, on: bool) {
        self.held = on;
    }

    fn held(&self) -> bool {
        self.held
    }

    fn capacity(&self) -> usize {
        self.log.share.min(self.log.capacity()).saturating_sub(HEAD)
    }
}

impl StreamOut<'_, '_> {
    /// Takes back all unsent bytes of a stream that was never read.
    pub(crate) fn clear(&mut self) {
        self.back_to(0);
    }

    /// Returns the number of unsent bytes; `None` in the middle of a reply in windows.
    pub(crate) fn unsent(&self) -> Option<usize> {
        (!self.held).then_some(self.stream().chain.unsent())
    }

    /// Takes back messages of the present call until only `unsent` bytes are unsent.
    pub(crate) fn back_to(&mut self, unsent: usize) {
        self.hold(false);
        self.take_back(unsent);
    }

    /// Takes back messages until only `unsent` bytes are unsent. A message that loses only its end continues.
    fn take_back(&mut self, unsent: usize) {
        let unsent = unsent.max(self.begun.unsent);
        let (chain, end) = (self.stream().chain, self.stream().next_event);
        self.open = None;
        let Begun { mut at, unsent: mut before, mut event } = self.begun;
        if before == 0 {
            at = chain.read;
        }
        while event < end {
            let record = self.log.record(at);
            if before + record.size > unsent {
                if before < unsent {
                    self.open = Some(Open { at, tag: record.tag & !MORE, before });
                }
                break;
            }
            (at, before, event) = (self.log.advance(at, record.size), before + record.size, event + 1);
        }
        self.cut(unsent);
        if let Some(stream) = self.streams.get_mut(usize::from(self.slot)) {
            stream.next_event = event;
        }
    }
}

/// The result of writing a stream's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// All bytes are written.
    All,
    /// There are more bytes, and no room.
    Full,
}

impl<'m> Streams<'m> {
    /// Makes the sink of a stream; see [`StreamOut::new`].
    pub(crate) fn out(&mut self, slot: u16, held: bool) -> StreamOut<'_, 'm> {
        let (log, slots) = self.log_mut();
        StreamOut::new(log, slots, slot, held)
    }

    /// Writes the messages of a stream into the sink of its connection, as far as there is room.
    pub(crate) fn write_events(&mut self, slot: u16, out: &mut dyn Sink) -> Written {
        let (log, slots) = self.log_mut();
        write_events(slots, slot, log, out)
    }

    /// Writes the only message of a stream to `body`, if it is an error whose status is not 200, and returns the status.
    pub(crate) fn write_refusal(&mut self, slot: u16, body: &mut dyn Sink) -> Option<u16> {
        let mut stream = self.at(slot).copied().filter(|stream| stream.next_event == 2)?;
        let Record { size, tag } = self.log.record(stream.chain.read);
        let status = match tag {
            BAD_REQUEST => 400,
            NOT_FOUND => 404,
            _ => return None,
        };
        write_data(&mut stream, size - HEAD, &self.log, body).ok().map(|()| status)
    }
}

/// Writes the messages of a stream, as [`Streams::write_events`].
pub(crate) fn write_events(streams: &mut [Stream], slot: u16, log: &mut Log<'_>, out: &mut dyn Sink) -> Written {
    while let Some(stream) = streams.get_mut(usize::from(slot)).filter(|stream| stream.unread() > 0) {
        let (Record { size, tag }, event) = (log.record(stream.chain.read), stream.cursor);
        if write_head(stream, slot, tag, event, out).is_err() || write_data(stream, size - HEAD, log, out).is_err() {
            return Written::Full;
        }
        if tag & MORE == 0 && out.put(b"\n\n").is_err() {
            return Written::Full;
        }
        stream.cursor = event + 1;
        stream.seen = stream.seen.max(event + 1);
        (stream.offset, stream.head) = (0, 0);
        // A message in windows has no id, so it cannot be sent again.
        let keep = stream.resumable && tag & (MORE | GOES_ON) == 0;
        log.set_sent(streams, slot, event, keep);
    }
    Written::All
}

/// Writes as much of the data of an event as there is room for.
fn write_data(stream: &mut Stream, len: usize, log: &Log<'_>, out: &mut dyn Sink) -> Result<(), FullError> {
    let mut at = log.part(&stream.chain, stream.offset);
    let written = loop {
        let rest = len - stream.offset;
        let (now, next) = log.piece(at, out.room().min(rest));
        if rest == 0 || now.is_empty() || out.put(now).is_err() {
            break if rest == 0 { Ok(()) } else { Err(FullError::Now) };
        }
        stream.offset += now.len();
        at = next;
    };
    stream.chain.part = at;
    written
}

/// Writes as much of the head of an event as there is room for.
fn write_head(stream: &mut Stream, slot: u16, tag: u8, event: u32, out: &mut dyn Sink) -> Result<(), FullError> {
    if tag & GOES_ON != 0 {
        return Ok(());
    }
    let mut head = Small(FixedText::EMPTY);
    if stream.resumable && tag & MORE == 0 {
        head.id(stream, slot, event);
    }
    head.text("event: message\ndata: ");
    stream.put_head(&[head.0.as_bytes()], out)
}

/// Writes the first event of a stream that has one: an id without data, and `retry`.
pub(crate) fn write_priming(stream: &mut Stream, slot: u16, retry: u32, out: &mut dyn Sink) -> Result<(), FullError> {
    let mut head = Small(FixedText::EMPTY);
    head.id(stream, slot, 0);
    head.text("retry: ");
    head.number(retry.into());
    head.text("\ndata: \n\n");
    stream.put_head(&[head.0.as_bytes()], out)
}

/// The parts of an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) slot: u16,
    pub(crate) stream: u64,
    pub(crate) event: u32,
}

impl EventId {
    pub(crate) fn read(id: &str) -> Option<EventId> {
        let mut parts = id.split('-');
        let slot = parts.next()?.parse().ok()?;
        let stream = parts.next()?.parse().ok()?;
        let event = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(EventId { slot, stream, event })
    }
}

/// Short texts in a row.
struct Small(FixedText<80>);

impl Small {
    fn text(&mut self, text: &str) {
        self.0.push(text.as_bytes());
    }

    fn number(&mut self, value: u64) {
        self.0.push(digits(value, &mut [0; 20]));
    }

    fn id(&mut self, stream: &Stream, slot: u16, event: u32) {
        self.text("id: ");
        let number = stream.number;
        self.number(slot.into());
        self.text("-");
        self.number(number);
        self.text("-");
        self.number(event.into());
        self.text("\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::memory::Store;

    /// Returns all unsent bytes of a stream, as they go out.
    fn sent(log: &mut Log<'_>, streams: &mut [Stream], slot: u16) -> std::string::String {
        let mut bytes = [0; 1000];
        let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
        assert_eq!(write_events(streams, slot, log, &mut out), Written::All);
        std::string::String::from_utf8(out.pending().to_vec()).unwrap()
    }

    fn say(out: &mut StreamOut<'_, '_>, text: &[u8]) {
        out.begin(MessageHead::Notification).unwrap();
        out.put(text).unwrap();
        out.end();
    }

    /// In the middle of a reply in windows the sink says so, and no other message begins.
    #[test]
    fn a_held_stream_takes_no_other_message() {
        let mut bytes = [0; 512];
        let mut log = Log::new(Store::from(&mut bytes[..]), 512, 512, 100);
        let mut streams = [Stream::FREE];
        let mut out = StreamOut::new(&mut log, &mut streams, 0, true);
        assert!(out.held() && out.room() > 100);
        assert_eq!(out.begin(MessageHead::Notification), Err(FullError::Now));
        assert_eq!(out.unsent(), None);
        out.hold(false);
        assert!(!out.held());
        out.end();
        say(&mut out, b"next");
        // What is taken back is not continued either.
        let unsent = out.unsent().unwrap();
        out.begin(MessageHead::Streamed).unwrap();
        out.put(b"the beginning").unwrap();
        out.hold(true);
        out.back_to(unsent);
        assert_eq!((out.held(), out.unsent()), (false, Some(unsent)));
    }

    /// Back to the place between two messages: the next one begins there.
    #[test]
    fn rolled_back_between_two_messages() {
        let mut bytes = [0; 512];
        let mut log = Log::new(Store::from(&mut bytes[..]), 512, 512, 100);
        let mut streams = [Stream::FREE];
        let mut out = StreamOut::new(&mut log, &mut streams, 0, false);
        say(&mut out, b"first");
        let (mark, room) = (out.mark(), out.room());
        say(&mut out, b"second");
        say(&mut out, b"third");
        out.begin(MessageHead::Notification).unwrap();
        out.roll_back(mark);
        assert_eq!((out.mark(), out.room()), (mark, room));
        say(&mut out, b"other");
        drop(out);
        assert_eq!(streams[0].next_event, 3);
        assert_eq!(
            sent(&mut log, &mut streams, 0),
            ["first", "other"].map(|text| ["event: message\ndata: ", text, "\n\n"].concat()).concat()
        );
    }

    /// An array that was closed for a message that does not fit continues.
    #[test]
    fn rolled_back_into_a_message_that_has_ended() {
        let mut bytes = [0; 256];
        let mut log = Log::new(Store::from(&mut bytes[..]), 256, 256, 100);
        let mut streams = [Stream::FREE];
        let mut out = StreamOut::new(&mut log, &mut streams, 0, false);
        say(&mut out, b"first");
        out.begin(MessageHead::Batch).unwrap();
        out.put(b"[1").unwrap();
        let (mark, room) = (out.mark(), out.room());
        out.put(b"]").unwrap();
        out.end();
        say(&mut out, b"whole");
        out.begin(MessageHead::Notification).unwrap();
        out.put(b"ha").unwrap();
        out.roll_back(mark);
        assert_eq!((out.mark(), out.room()), (mark, room));
        out.put(b",2]").unwrap();
        out.end();
        say(&mut out, b"last");
        drop(out);
        assert_eq!(streams[0].next_event, 4);
        let head = "event: message\ndata: ";
        assert_eq!(
            sent(&mut log, &mut streams, 0),
            ["first", "[1,2]", "last"].map(|text| [head, text, "\n\n"].concat()).concat()
        );
        assert_eq!((streams[0].chain.unsent(), log.room(&streams[0].chain)), (0, log.capacity()));
    }
}
