//! Event streams: what is said on them is kept in the log until it has been sent, and for as long after that as there
//! is room if the client may come back for it.

use mcp_sansio::Full;
use mcp_sansio::records::{OVERHEAD, Record, Records};
use mcp_sansio::server::{Millis, Scope};
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

/// An event stream of an [`Endpoint`](super::Endpoint). Small and `Copy`; that of a stream which is gone is stale and
/// harms nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamId {
    pub(crate) slot: u16,
    pub(crate) generation: u16,
    /// Which connection of it: clients come back, and the one before must not read on.
    pub(crate) visit: u16,
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
    pub(crate) generation: u16,
    pub(crate) visit: u16,
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
    /// How much of the record that is being sent has gone out.
    pub(crate) offset: usize,
    /// How much of the head of the event, or of the stream, that is being sent has gone out.
    pub(crate) head: usize,
    /// Bytes in the log that have not been sent.
    pub(crate) unsent: usize,
    /// A reply in windows is under way on it.
    pub(crate) held: bool,
    /// Nothing more will be said on it.
    pub(crate) ended: bool,
    /// The server closes the connection; the client comes back for the rest.
    pub(crate) hangs_up: bool,
    /// It has done so once: a client that comes back too soon is not sent away again.
    pub(crate) hung_up: bool,
    pub(crate) ready: bool,
    /// When something was written last, for keep-alives.
    pub(crate) written: Millis,
}

impl Stream {
    /// A slot without a stream.
    pub const FREE: Stream = Stream {
        link: Link::Free,
        generation: 0,
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
        offset: 0,
        head: 0,
        unsent: 0,
        held: false,
        ended: false,
        hangs_up: false,
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
        !self.is_free() && (self.generation, self.visit) == (id.generation, id.visit)
    }

    pub(crate) fn is_free(&self) -> bool {
        self.link == Link::Free
    }

    /// Goes on with another connection, behind the event that the client saw last.
    pub(crate) fn attach(&mut self, cursor: u32) {
        self.link = Link::Attached;
        self.visit = self.visit.wrapping_add(1);
        (self.cursor, self.offset, self.head) = (cursor, 0, 0);
        self.hangs_up = false;
        self.ready = true;
    }
}

/// In the kind of a record: a message, or a part of one that goes out in windows.
pub(crate) const MESSAGE: u8 = 1;
/// In the tag of a record: more of the same message follows in another.
const MORE: u8 = 1;
/// In the tag of a record: it goes on with a message.
const GOES_ON: u8 = 2;
/// In the tag of a record: it has been sent.
const SENT: u8 = 4;

/// Bytes before the message in a record: the number of its event.
const EVENT: usize = 4;

/// The log: what is said on all streams.
#[derive(Debug)]
pub(crate) struct Log<'m> {
    pub(crate) records: Records<'m>,
    /// Bytes that one stream may have unsent: a slow reader holds nobody else up.
    pub(crate) share: usize,
    /// Bytes that may stay in the log after they were sent.
    pub(crate) keep: usize,
    sent: usize,
}

impl<'m> Log<'m> {
    pub(crate) fn new(records: Records<'m>, share: usize, keep: usize) -> Self {
        Log { records, share, keep, sent: 0 }
    }

    /// Makes room by forgetting what was sent, oldest first.
    fn forget_sent(&mut self, wanted: usize) {
        let mut missing = wanted.saturating_sub(self.records.limit().saturating_sub(self.records.used()));
        let mut surplus = self.sent.saturating_sub(self.keep);
        let sent = &mut self.sent;
        if missing == 0 && surplus == 0 {
            return;
        }
        self.records.remove(|record| {
            let size = record.data.len();
            let gone = record.tag & SENT != 0 && (missing > 0 || surplus > 0);
            if gone {
                missing = missing.saturating_sub(size);
                surplus = surplus.saturating_sub(size);
                *sent = sent.saturating_sub(size);
            }
            gone
        });
    }

    /// Forgets everything of a stream.
    pub(crate) fn forget(&mut self, slot: u16) {
        let sent = &mut self.sent;
        self.records.remove(|record| {
            let gone = record.owner == u32::from(slot);
            if gone && record.tag & SENT != 0 {
                *sent = sent.saturating_sub(record.data.len());
            }
            gone
        });
    }

    /// The first record of a stream from `cursor` on.
    fn next(&self, slot: u16, cursor: u32) -> Option<Record<'_>> {
        self.records.iter().find(|record| record.owner == u32::from(slot) && event_of(record) >= cursor)
    }

    /// Whether the log still has all events of a stream from `cursor` on.
    pub(crate) fn has_from(&self, slot: u16, cursor: u32, next: u32) -> bool {
        cursor == next || self.next(slot, cursor).is_some_and(|record| event_of(&record) == cursor)
    }

    /// Events from `cursor` on are sent once more: they must not be forgotten before. How many bytes that is.
    pub(crate) fn unsend(&mut self, slot: u16, cursor: u32) -> usize {
        let mut bytes = 0;
        let again = |record: &Record<'_>| {
            record.owner == u32::from(slot) && record.tag & SENT != 0 && event_of(record) >= cursor
        };
        while let Some((at, tag, len)) =
            self.records.iter().find(again).map(|record| (record.at(), record.tag, record.data.len()))
        {
            self.records.set_tag(at, tag & !SENT);
            self.sent = self.sent.saturating_sub(len);
            bytes += len + OVERHEAD;
        }
        bytes
    }

    fn set_sent(&mut self, at: usize, tag: u8, len: usize, resumable: bool) {
        if resumable {
            self.records.set_tag(at, tag | SENT);
            self.sent += len;
            return;
        }
        // The next record moves to the same place: that one stays.
        let mut gone = false;
        self.records.remove(|record| record.at() == at && !core::mem::replace(&mut gone, true));
    }
}

fn event_of(record: &Record<'_>) -> u32 {
    record.data.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The sink of one stream: messages go into the log.
#[derive(Debug)]
pub(crate) struct StreamOut<'s, 'm> {
    log: &'s mut Log<'m>,
    stream: &'s mut Stream,
    slot: u16,
    /// The record that is being written.
    at: Option<usize>,
}

/// Room in a record and on the wire that a message needs beside itself.
const FRAMING: usize = OVERHEAD + EVENT;

impl<'s, 'm> StreamOut<'s, 'm> {
    pub(crate) fn new(log: &'s mut Log<'m>, stream: &'s mut Stream, slot: u16) -> Self {
        let mut out = StreamOut { log, stream, slot, at: None };
        if out.stream.held {
            // A message in windows goes on, in a record of its own; without room for one, this window is empty.
            let _ = out.open(GOES_ON);
        }
        out
    }

    fn open(&mut self, tag: u8) -> Result<(), Full> {
        self.log.forget_sent(FRAMING + 64);
        let at = self.log.records.begin(u32::from(self.slot), MESSAGE, tag).map_err(|_| Full::Now)?;
        let event = self.stream.next_event.to_le_bytes();
        if self.log.records.extend(at, &event).is_err() {
            self.log.records.drop_last(at);
            return Err(Full::Now);
        }
        self.at = Some(at);
        Ok(())
    }

    /// Ends the record that is being written: the message, or this window of it.
    fn close(&mut self, more: bool) {
        let Some(at) = self.at.take() else { return };
        let Some(record) = self.log.records.get(at) else { return };
        let (len, tag) = (record.data.len(), record.tag);
        if len == EVENT && tag & GOES_ON != 0 && more {
            // An empty window.
            self.log.records.drop_last(at);
            return;
        }
        self.log.records.set_tag(at, if more { tag | MORE } else { tag });
        self.stream.unsent += len + OVERHEAD;
        self.stream.next_event += 1;
        self.stream.ready = true;
    }

    fn in_record(&self) -> usize {
        self.at.and_then(|at| self.log.records.get(at)).map_or(0, |record| record.data.len())
    }
}

impl Drop for StreamOut<'_, '_> {
    fn drop(&mut self) {
        if self.stream.held {
            self.close(true);
        }
    }
}

impl Sink for StreamOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.room() {
            return Err(Full::Now);
        }
        let Some(at) = self.at else { return if bytes.is_empty() { Ok(()) } else { Err(Full::Now) } };
        let len = self.in_record();
        self.log.forget_sent(bytes.len());
        // Forgetting has moved the record, which is the last one.
        let at =
            if self.log.records.used() == at + OVERHEAD + len { at } else { self.log.records.used() - OVERHEAD - len };
        self.at = Some(at);
        self.log.records.extend(at, bytes).map_err(|_| Full::Now)
    }

    fn room(&self) -> usize {
        if self.stream.held && self.at.is_none() {
            // There was no room for the record of this window.
            return 0;
        }
        // What was sent can be forgotten, so only what was not counts.
        let log = self.log.records.limit().saturating_sub(self.log.records.used() - self.log.sent);
        let share = self.log.share.saturating_sub(self.stream.unsent + self.in_record());
        let overhead = if self.at.is_some() { 0 } else { FRAMING };
        log.min(share).saturating_sub(overhead)
    }
}

impl Out for StreamOut<'_, '_> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        if self.stream.held || self.at.is_some() || self.room() == 0 { Err(Full::Now) } else { self.open(0) }
    }

    fn end(&mut self) {
        self.close(false);
    }

    fn mark(&self) -> Mark {
        // Nothing pending counts as an empty sink: then larger than the room is larger than ever.
        Mark::new(self.stream.unsent + self.in_record())
    }

    fn roll_back(&mut self, mark: Mark) {
        match (self.at, mark.at().saturating_sub(self.stream.unsent)) {
            (Some(at), within @ 1..) => self.log.records.shorten(at, within),
            // Whole messages that were written by the same call, too: they are the last of the log.
            (at, _) => {
                if let Some(at) = at {
                    self.log.records.drop_last(at);
                    self.at = None;
                }
                self.take_back(mark.at());
            }
        }
    }

    fn hold(&mut self, on: bool) {
        self.stream.held = on;
    }

    fn held(&self) -> bool {
        self.stream.held
    }

    fn capacity(&self) -> usize {
        self.log.share.min(self.log.records.limit()).saturating_sub(FRAMING)
    }
}

impl StreamOut<'_, '_> {
    /// Takes back everything that has not been sent, of a stream that nobody has read from.
    pub(crate) fn clear(&mut self) {
        self.back_to(0);
    }

    /// How much waits to be sent; `None` while a reply in windows is under way.
    pub(crate) fn unsent(&self) -> Option<usize> {
        (!self.stream.held).then_some(self.stream.unsent)
    }

    /// Takes back what the present call has said, to the last byte.
    pub(crate) fn back_to(&mut self, unsent: usize) {
        self.stream.held = false;
        if let Some(at) = self.at.take() {
            self.log.records.drop_last(at);
        }
        self.take_back(unsent);
    }

    /// Takes back messages until only `unsent` bytes are unsent. One of which only the end is taken back goes on.
    fn take_back(&mut self, unsent: usize) {
        while self.stream.unsent > unsent {
            let last = self.log.records.iter().last().map(|record| (record.at(), record.tag, record.data.len()));
            let Some((at, tag, len)) = last else { break };
            self.stream.unsent = self.stream.unsent.saturating_sub(len + OVERHEAD);
            self.stream.next_event -= 1;
            match unsent.saturating_sub(self.stream.unsent) {
                0 => self.log.records.drop_last(at),
                within => {
                    self.log.records.shorten(at, within);
                    self.log.records.set_tag(at, tag & !MORE);
                    self.at = Some(at);
                    break;
                }
            }
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
pub(crate) fn write_events(stream: &mut Stream, slot: u16, log: &mut Log<'_>, out: &mut dyn Sink) -> Written {
    loop {
        let Some(record) = log.next(slot, stream.cursor) else { return Written::All };
        let (at, tag, len, event) = (record.at(), record.tag, record.data.len(), event_of(&record));
        if write_head(stream, slot, tag, event, out).is_err() {
            return Written::Full;
        }
        let rest = record.data.get(EVENT + stream.offset..).unwrap_or(&[]);
        let now = rest.get(..out.room().min(rest.len())).unwrap_or(&[]);
        let whole = now.len() == rest.len();
        if !now.is_empty() && out.put(now).is_err() {
            return Written::Full;
        }
        stream.offset += now.len();
        if !whole || (tag & MORE == 0 && out.put(b"\n\n").is_err()) {
            return Written::Full;
        }
        if tag & SENT == 0 {
            stream.unsent = stream.unsent.saturating_sub(len + OVERHEAD);
            // A message in windows cannot be sent again: it has no id.
            log.set_sent(at, tag, len, stream.resumable && tag & (MORE | GOES_ON) == 0);
        }
        stream.cursor = event + 1;
        (stream.offset, stream.head) = (0, 0);
    }
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
    head.number(retry);
    head.text("\ndata: \n\n");
    stream.put_head(&[head.bytes()], out)
}

/// The numbers in an event id: slot, generation, event.
pub(crate) fn read_event_id(id: &str) -> Option<(u16, u16, u32)> {
    let mut parts = id.split('-');
    let slot = parts.next()?.parse().ok()?;
    let generation = parts.next()?.parse().ok()?;
    let event = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((slot, generation, event))
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

    fn number(&mut self, mut value: u32) {
        let mut digits = [0; 10];
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
        self.number(stream.generation.into());
        self.text("-");
        self.number(event);
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

    /// An array that was closed for the sake of a message that does not fit goes on.
    #[test]
    fn rolled_back_into_a_message_that_has_ended() {
        let mut bytes = [0; 256];
        let mut log = Log::new(Records::new(Store::from(&mut bytes[..])), 256, 256);
        let mut stream = Stream { link: Link::Attached, ..Stream::FREE };
        let mut out = StreamOut::new(&mut log, &mut stream, 0);
        let say = |out: &mut StreamOut<'_, '_>, text: &[u8]| {
            out.begin(Kind::Notification).unwrap();
            out.put(text).unwrap();
            out.end();
        };
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
        assert_eq!(stream.next_event, 4);
        assert_eq!(log.records.used(), stream.unsent);
        let data = |n| log.records.iter().nth(n).map(|record| record.data[EVENT..].to_vec());
        assert_eq!([data(0), data(1), data(2)], [&b"first"[..], b"[1,2]", b"last"].map(|text| Some(text.to_vec())));
        assert_eq!(data(3), None);
    }
}
