//! Event streams: what is said on them is kept in the log until it has been sent, and for as long after that as there
//! is room if the client may come back for it.

use mcp_sansio::Full;
use mcp_sansio::server::{Millis, Scope};
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

use super::log::{Chain, HEAD, Log, Record, Spot};

/// An event stream of an [`Endpoint`](super::Endpoint). Small and `Copy`; that of a stream which is gone is stale and
/// harms nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamId {
    pub(crate) slot: u16,
    /// Its number, see [`Stream::number`].
    pub(crate) number: u64,
    /// Which connection of it: clients come back, and the one before must not read on.
    pub(crate) visit: u32,
}

impl StreamId {
    /// The number of its place: small, and that of no other stream while this one lasts.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Whether somebody reads a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Free,
    Attached,
    /// The client is away and may come back.
    Detached {
        since: Millis,
    },
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The answer to a POST.
    Post,
    /// What concerns no request, in a session.
    Session,
    /// A listen of 2026-07-28.
    Listen,
    /// Everything, for a client of 2024-11-05.
    Old,
}

/// One event stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub(crate) link: Link,
    /// Given when the stream is sent, from 1 on, and never again by the same endpoint. Event ids have it, so that those
    /// of a stream that is over name no other one.
    pub(crate) number: u64,
    pub(crate) visit: u32,
    pub(crate) purpose: Purpose,
    /// The session it belongs to.
    pub(crate) session: Option<u16>,
    /// The exchange whose requests are answered on it.
    pub(crate) route: u32,
    /// Where ids live, of a stream without session.
    pub(crate) scope: Scope,
    /// Events have ids, and stay in the log after they were sent.
    pub(crate) resumable: bool,
    /// An event with an id and no data begins it (2025-11-25).
    pub(crate) primed: bool,
    /// The head of the stream that is not an event of the log has been written: priming, endpoint.
    pub(crate) greeted: bool,
    /// The number of the next event.
    pub(crate) next_event: u32,
    /// Events before this one have been sent on the present connection.
    pub(crate) cursor: u32,
    /// Events before this one have been sent on some connection.
    pub(crate) seen: u32,
    /// How many bytes of the record that is being sent have been sent.
    pub(crate) offset: usize,
    /// How much of the head of the event, or of the stream, that is being sent has gone out.
    pub(crate) head: usize,
    /// What it has in the log.
    pub(crate) chain: Chain,
    /// A reply in windows is under way on it.
    pub(crate) held: bool,
    /// Nothing more will be said on it.
    pub(crate) ended: bool,
    /// The server has closed the connection once; the client comes back for the rest. One that comes back too soon is
    /// not sent away again.
    pub(crate) hung_up: bool,
    pub(crate) ready: bool,
    /// When something was written last, for keep-alives.
    pub(crate) written: Millis,
}

impl Stream {
    /// A slot without a stream.
    pub const FREE: Stream = Stream {
        link: Link::Free,
        number: 0,
        visit: 0,
        purpose: Purpose::Post,
        session: None,
        route: 0,
        scope: Scope(0),
        resumable: false,
        primed: false,
        greeted: false,
        next_event: 1,
        cursor: 1,
        seen: 1,
        offset: 0,
        head: 0,
        chain: Chain::EMPTY,
        held: false,
        ended: false,
        hung_up: false,
        ready: false,
        written: 0,
    };

    /// Writes the rest of a head, as much of it as there is room for.
    pub(crate) fn put_head(&mut self, parts: &[&[u8]], out: &mut dyn Sink) -> Result<(), Full> {
        let mut skip = self.head;
        for part in parts {
            let rest = part.get(skip.min(part.len())..).unwrap_or(&[]);
            skip = skip.saturating_sub(part.len());
            let now = rest.get(..out.room().min(rest.len())).unwrap_or(&[]);
            if !now.is_empty() {
                out.put(now)?;
            }
            self.head += now.len();
            if now.len() < rest.len() {
                return Err(Full::Now);
            }
        }
        Ok(())
    }

    /// Whether it is the one of that name, and on the same connection.
    pub(crate) fn is(&self, id: StreamId) -> bool {
        !self.is_free() && (self.number, self.visit) == (id.number, id.visit)
    }

    pub(crate) fn is_free(&self) -> bool {
        self.link == Link::Free
    }

    /// Events in the log that have not been sent.
    pub(crate) const fn unread(&self) -> usize {
        self.next_event.saturating_sub(self.cursor) as usize
    }

    /// Goes on with another connection, behind the event that the client saw last.
    pub(crate) fn attach(&mut self, cursor: u32) {
        self.link = Link::Attached;
        self.visit = self.visit.wrapping_add(1);
        (self.cursor, self.offset, self.head) = (cursor, 0, 0);
        self.ready = true;
    }
}

/// In the tag of a record: more of the same message follows in another.
const MORE: u8 = 1;
/// In the tag of a record: it goes on with a message.
const GOES_ON: u8 = 2;

/// The sink of one stream: messages go into the log.
#[derive(Debug)]
pub(crate) struct StreamOut<'s, 'm> {
    log: &'s mut Log<'m>,
    streams: &'s mut [Stream],
    slot: u16,
    /// The record that is being written.
    open: Option<Open>,
    /// Where the stream stood when this sink was made: nothing before is taken back.
    begun: Begun,
}

/// A record that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: Spot,
    tag: u8,
    /// Bytes before it that have not been sent.
    before: usize,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Spot,
    unsent: usize,
    event: u32,
}

impl<'s, 'm> StreamOut<'s, 'm> {
    /// The sink of the stream in `slot`, which must be one of `streams`.
    pub(crate) fn new(log: &'s mut Log<'m>, streams: &'s mut [Stream], slot: u16) -> Self {
        let stream = streams.get(usize::from(slot)).copied().unwrap_or(Stream::FREE);
        let begun = Begun { at: stream.chain.end(), unsent: stream.chain.unsent(), event: stream.next_event };
        let mut out = StreamOut { log, streams, slot, open: None, begun };
        if stream.held {
            // A message in windows goes on, in a record of its own; without room for one, this window is empty.
            let _ = out.open(GOES_ON);
        }
        out
    }

    fn stream(&self) -> &Stream {
        self.streams.get(usize::from(self.slot)).unwrap_or(const { &Stream::FREE })
    }

    fn open(&mut self, tag: u8) -> Result<(), Full> {
        let before = self.stream().chain.unsent();
        let at = self.log.open(self.streams, self.slot, tag).ok_or(Full::Now)?;
        self.open = Some(Open { at, tag, before });
        Ok(())
    }

    /// Ends the record that is being written: the message, or this window of it.
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
            stream.ready = true;
        }
    }

    /// Takes back bytes of the log until only so many are unsent.
    fn cut(&mut self, unsent: usize) {
        if let Some(Stream { chain, .. }) = self.streams.get_mut(usize::from(self.slot)) {
            self.log.cut(chain, chain.unsent().saturating_sub(unsent));
        }
    }

    /// Whether there is no room for a message only because there is none at present.
    pub(crate) fn is_crowded(&self) -> bool {
        self.room() < self.capacity()
    }
}

impl Drop for StreamOut<'_, '_> {
    fn drop(&mut self) {
        if self.stream().held {
            self.close(true);
        }
    }
}

impl Sink for StreamOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let fits = bytes.is_empty() || (self.open.is_some() && bytes.len() <= self.room());
        if fits && self.log.append(self.streams, self.slot, bytes) { Ok(()) } else { Err(Full::Now) }
    }

    fn room(&self) -> usize {
        if self.stream().held && self.open.is_none() {
            // There was no room for the record of this window.
            return 0;
        }
        let head = if self.open.is_some() { 0 } else { HEAD };
        self.log.room(&self.stream().chain).saturating_sub(head)
    }
}

impl Out for StreamOut<'_, '_> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        // Answers are as many as there are requests, and those are refused by then.
        let more = matches!(kind, Kind::Notification | Kind::Request) && self.stream().unread() >= self.log.unread;
        let shut = more || self.stream().held || self.open.is_some() || self.room() == 0;
        if shut { Err(Full::Now) } else { self.open(0) }
    }

    fn end(&mut self) {
        self.close(false);
    }

    fn mark(&self) -> Mark {
        // Nothing pending counts as an empty sink: then larger than the room is larger than ever.
        Mark::new(self.stream().chain.unsent())
    }

    fn roll_back(&mut self, mark: Mark) {
        match self.open {
            Some(open) if mark.at() > open.before => self.cut(mark.at()),
            // Whole messages that were written by the same call, too.
            _ => self.take_back(mark.at()),
        }
    }

    fn hold(&mut self, on: bool) {
        if let Some(stream) = self.streams.get_mut(usize::from(self.slot)) {
            stream.held = on;
        }
    }

    fn held(&self) -> bool {
        self.stream().held
    }

    fn capacity(&self) -> usize {
        self.log.share.min(self.log.capacity()).saturating_sub(HEAD)
    }
}

impl StreamOut<'_, '_> {
    /// Takes back everything that has not been sent, of a stream that nobody has read from.
    pub(crate) fn clear(&mut self) {
        self.back_to(0);
    }

    /// How much waits to be sent; `None` while a reply in windows is under way.
    pub(crate) fn unsent(&self) -> Option<usize> {
        (!self.stream().held).then_some(self.stream().chain.unsent())
    }

    /// Takes back what the present call has said, to the last byte.
    pub(crate) fn back_to(&mut self, unsent: usize) {
        self.hold(false);
        self.take_back(unsent);
    }

    /// Takes back messages until only `unsent` bytes are unsent. One of which only the end is taken back goes on.
    fn take_back(&mut self, unsent: usize) {
        let unsent = unsent.max(self.begun.unsent);
        let (chain, end) = (self.stream().chain, self.stream().next_event);
        self.open = None;
        let Begun { mut at, unsent: mut before, mut event } = self.begun;
        if before == 0 {
            at = chain.read();
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

/// What writing a stream's events came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Everything there is.
    All,
    /// There is more, and no room.
    Full,
}

/// Writes what a stream has to say into the sink of its connection, as far as there is room.
pub(crate) fn write_events(streams: &mut [Stream], slot: u16, log: &mut Log<'_>, out: &mut dyn Sink) -> Written {
    while let Some(stream) = streams.get_mut(usize::from(slot)).filter(|stream| stream.unread() > 0) {
        let (Record { size, tag }, event) = (log.record(stream.chain.read()), stream.cursor);
        if write_head(stream, slot, tag, event, out).is_err() || write_data(stream, size - HEAD, log, out).is_err() {
            return Written::Full;
        }
        if tag & MORE == 0 && out.put(b"\n\n").is_err() {
            return Written::Full;
        }
        stream.cursor = event + 1;
        stream.seen = stream.seen.max(event + 1);
        (stream.offset, stream.head) = (0, 0);
        // A message in windows cannot be sent again: it has no id.
        let keep = stream.resumable && tag & (MORE | GOES_ON) == 0;
        log.set_sent(streams, slot, event, keep);
    }
    Written::All
}

/// The data of an event, as much of it as there is room for.
fn write_data(stream: &mut Stream, len: usize, log: &Log<'_>, out: &mut dyn Sink) -> Result<(), Full> {
    let mut at = log.part(&stream.chain, stream.offset);
    let written = loop {
        let rest = len - stream.offset;
        let (now, next) = log.piece(at, out.room().min(rest));
        if rest == 0 || now.is_empty() || out.put(now).is_err() {
            break if rest == 0 { Ok(()) } else { Err(Full::Now) };
        }
        stream.offset += now.len();
        at = next;
    };
    stream.chain.set_part(at);
    written
}

/// The head of an event, as much of it as there is room for.
fn write_head(stream: &mut Stream, slot: u16, tag: u8, event: u32, out: &mut dyn Sink) -> Result<(), Full> {
    if tag & GOES_ON != 0 {
        return Ok(());
    }
    let mut head = Small::new();
    if stream.resumable && tag & MORE == 0 {
        head.id(stream, slot, event);
    }
    head.text("event: message\ndata: ");
    stream.put_head(&[head.bytes()], out)
}

/// The first event of a stream that has one: an id without data, and when to come back.
pub(crate) fn write_priming(stream: &mut Stream, slot: u16, retry: u32, out: &mut dyn Sink) -> Result<(), Full> {
    let mut head = Small::new();
    head.id(stream, slot, 0);
    head.text("retry: ");
    head.number(retry.into());
    head.text("\ndata: \n\n");
    stream.put_head(&[head.bytes()], out)
}

/// The numbers in an event id: slot, stream, event.
pub(crate) fn read_event_id(id: &str) -> Option<(u16, u64, u32)> {
    let mut parts = id.split('-');
    let slot = parts.next()?.parse().ok()?;
    let stream = parts.next()?.parse().ok()?;
    let event = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((slot, stream, event))
}

/// A few short texts in a row.
struct Small {
    bytes: [u8; 80],
    len: usize,
}

impl Small {
    const fn new() -> Self {
        Small { bytes: [0; 80], len: 0 }
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0; 20];
        let mut len = 0;
        loop {
            if let Some(place) = digits.get_mut(len) {
                *place = b'0' + (value % 10) as u8;
            }
            len += 1;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        for digit in digits.iter().take(len).rev() {
            self.text(core::str::from_utf8(&[*digit]).unwrap_or(""));
        }
    }

    fn id(&mut self, stream: &Stream, slot: u16, event: u32) {
        self.text("id: ");
        self.number(slot.into());
        self.text("-");
        self.number(stream.number);
        self.text("-");
        self.number(event.into());
        self.text("\n");
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::store::Store;

    /// Everything a stream has not sent, as it goes out.
    fn sent(log: &mut Log<'_>, streams: &mut [Stream], slot: u16) -> std::string::String {
        let mut bytes = [0; 1000];
        let mut out = mcp_sansio::sink::Lines::new(mcp_sansio::sink::Slice::new(&mut bytes));
        assert_eq!(write_events(streams, slot, log, &mut out), Written::All);
        std::string::String::from_utf8(out.pending().to_vec()).unwrap()
    }

    fn say(out: &mut StreamOut<'_, '_>, text: &[u8]) {
        out.begin(Kind::Notification).unwrap();
        out.put(text).unwrap();
        out.end();
    }

    /// An array that was closed for the sake of a message that does not fit goes on.
    #[test]
    fn rolled_back_into_a_message_that_has_ended() {
        let mut bytes = [0; 256];
        let mut log = Log::new(Store::from(&mut bytes[..]), 256, 256, 100);
        let mut streams = [Stream { link: Link::Attached, ..Stream::FREE }];
        let mut out = StreamOut::new(&mut log, &mut streams, 0);
        say(&mut out, b"first");
        out.begin(Kind::Batch).unwrap();
        out.put(b"[1").unwrap();
        let (mark, room) = (out.mark(), out.room());
        out.put(b"]").unwrap();
        out.end();
        say(&mut out, b"whole");
        out.begin(Kind::Notification).unwrap();
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
