//! The ring of the last occurrences, in lent memory.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Object, Raw, write};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::{Millis, ServerChange};
use mcp_sansio::service::{CustomRequest, HandlerResult};
use mcp_sansio::sink::{BodyBuffer, MessageHead, Out, Sink, SliceStorage, Storage, whole};

use crate::events::event_type::EventType;
use crate::events::source::{Cursor, EventSubscription, Occurrences};
use crate::events::streams::{StreamSlot, Streams};
use crate::events::subscribers::{LeaseSlot, Subscribers};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/events";

/// The change to publish when event types come, go, or change, for a server that declares it:
/// [`HasEvents::LIST_CHANGED`].
#[doc(alias = "notifications/events/list_changed")]
pub const LIST_CHANGED: ServerChange<'static> = ServerChange::Topic { member: "eventsListChanged", key: "" };

/// The bytes before the `eventId` of an occurrence: the length of what follows, the place of the occurrence before, the timestamp, the
/// event type, and the length of the id.
const HEAD: usize = 19;

/// The methods `events/subscribe` and `events/unsubscribe`: `webhook::methods` (feature `webhooks`).
pub type WebhookMethods<S> = [fn(&mut S, &mut CustomRequest<'_>) -> HandlerResult; 2];

/// The state of a program that has events.
pub trait HasEvents: Sized + 'static {
    /// The event types, each name once.
    const EVENTS: &'static [EventType<Self>];

    /// With `true`, clients may also keep a request open for the occurrences: `events/stream`. The loop around
    /// [delivers](crate::events::deliver) them. Default: `false`; the code for it is not linked.
    const STREAMS: bool = false;

    /// With `true`, event types with [`on_subscribe`](EventType::on_subscribe) also hear of clients that poll, for which the program lends
    /// [memory](Events::leases). Default: `false`; the code for it is not linked.
    const LEASES: bool = false;

    /// With `true`, the server declares `listChanged`: clients can listen for changes of the event types. The program publishes
    /// [`LIST_CHANGED`], and its server has subscriptions. Default: `false`.
    #[doc(alias = "listChanged")]
    const LIST_CHANGED: bool = false;

    /// The methods of webhooks, with which a server on a host also delivers to URLs of its clients. Default: none.
    const WEBHOOKS: Option<WebhookMethods<Self>> = None;

    /// Returns the events.
    fn events(&self) -> &Events<'static>;

    /// Returns the events, to change them.
    fn events_mut(&mut self) -> &mut Events<'static>;
}

/// An occurrence that is to be [emitted](emit).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct EventOccurrence<'o> {
    name: &'o str,
    id: &'o str,
    timestamp: Option<u64>,
}

impl<'o> EventOccurrence<'o> {
    /// Makes an occurrence of the event type with this name.
    pub const fn new(name: &'o str) -> Self {
        EventOccurrence { name, id: "", timestamp: None }
    }

    mcp_sansio::const_setters! {
        /// Sets `eventId`, at most 255 bytes: the identifier that the source of the occurrence gave it, by which a client drops
        /// duplicates. Default: one that is new in this ring.
        #[doc(alias = "eventId")]
        id(id: &'o str) => id = id;
        /// Sets `timestamp`, in milliseconds since the beginning of 1970. Default: now.
        timestamp(unix_millis: u64) => timestamp = Some(unix_millis);
    }
}

mcp_sansio::error_enum! {
    /// The reason why an occurrence was not emitted.
    EmitError {
        /// No event type has this name.
        UnknownEvent => "no event type has this name",
        /// It is larger than the memory, or its id is longer than 255 bytes.
        TooLarge => "the occurrence is larger than the memory for events",
        /// The function that writes `data` gave up.
        NotWritten => "the data was not written",
    }
}

/// The last occurrences of the events of a program, in memory that it lends.
#[derive(Debug)]
pub struct Events<'m> {
    /// The occurrences one after the other, each in one piece; the one after `wrap` begins at 0.
    store: Store<'m>,
    first: usize,
    last: usize,
    end: usize,
    wrap: usize,
    most: usize,
    count: usize,
    /// The position after the last occurrence.
    next: u64,
    start: u64,
    epoch: u64,
    poll_interval: Millis,
    heartbeat: Millis,
    /// The time of the last turn: the clock of a server may be behind it.
    pub(crate) now: Millis,
    pub(crate) lease: Millis,
    pub(crate) streams: Streams<'m>,
    pub(crate) leases: Subscribers<'m, LeaseSlot>,
}

impl<'m> Events<'m> {
    /// Makes an empty ring for the last `occurrences`, as far as the bytes of `store` suffice: each occurrence takes 19 bytes
    /// beside `eventId` and `data`. `start` is a number that is another one after each start of the program, such as a random
    /// one or a count: cursors have it, so that a cursor from before the start is recognized.
    #[must_use]
    pub fn new(store: impl Into<Store<'m>>, occurrences: usize, start: u64) -> Self {
        Events {
            store: store.into(),
            first: 0,
            last: 0,
            end: 0,
            wrap: usize::MAX,
            most: occurrences,
            count: 0,
            next: 0,
            start,
            epoch: 0,
            poll_interval: 5_000,
            heartbeat: 20_000,
            now: 0,
            lease: 20_000,
            streams: Streams::none(),
            leases: Subscribers::none(),
        }
    }

    /// Sets the time at which the caller's clock was 0, in milliseconds since the beginning of 1970, for `timestamp`. Default: 0.
    /// A device without the time of day leaves it.
    #[must_use]
    pub const fn epoch(mut self, unix_millis: u64) -> Self {
        self.epoch = unix_millis;
        self
    }

    /// Sets `nextPollMs`: the time between two polls of a client, in milliseconds. Default: 5000. A program may change it at
    /// any time.
    #[doc(alias = "nextPollMs")]
    pub const fn set_poll_interval(&mut self, millis: Millis) {
        self.poll_interval = millis;
    }

    /// Lends the memory for open requests for [streams](HasEvents::STREAMS): `slots` is the most of them, `store` has their arguments and
    /// the names of their users, `share` is the most of one user. Requests without a user have one share together. One stream more is
    /// answered with error -32025. Default: there is no memory.
    #[must_use]
    pub fn streams(
        mut self,
        slots: impl Into<Slots<'m, StreamSlot>>,
        store: impl Into<Store<'m>>,
        share: usize,
    ) -> Self {
        self.streams = Streams::new(slots.into(), store.into(), share);
        self
    }

    /// Sets the time after which a stream without occurrences gets a heartbeat, in milliseconds. Default: 20,000; the extension asks for
    /// one each 30 seconds at least.
    pub const fn set_heartbeat(&mut self, millis: Millis) {
        self.heartbeat = millis;
    }

    /// Lends the memory for subscriptions of clients that poll, which event types with
    /// [`on_subscribe`](EventType::on_subscribe) keep: `slots` is the most of them, `store` has their arguments and the names of their
    /// users, `share` is the most of one user; those without a user have one share together. A subscription lasts for `time` milliseconds
    /// after its last poll: some times the [poll interval](Events::set_poll_interval). One more is answered with error -32025. Default:
    /// there is no memory.
    #[must_use]
    pub fn leases(
        mut self,
        slots: impl Into<Slots<'m, LeaseSlot>>,
        store: impl Into<Store<'m>>,
        share: usize,
        time: Millis,
    ) -> Self {
        self.lease = time.max(1);
        self.leases = Subscribers::new(slots.into(), store.into(), share);
        self
    }

    /// Has all streams looked at in the next [`turn`](crate::events::turn): their sources are read, and those that may not hear of it any
    /// more, or whose event type is gone, are ended. Call it when a source has something new, and when rights have changed.
    pub const fn wake(&mut self) {
        self.streams.is_woken = true;
    }

    /// Returns the number of occurrences that are in the ring.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    pub(crate) const fn poll_interval(&self) -> Millis {
        self.poll_interval
    }

    /// Returns the time of day, in milliseconds since the beginning of 1970.
    pub(crate) const fn unix_millis(&self, now: Millis) -> u64 {
        self.epoch.saturating_add(now)
    }

    pub(crate) const fn heartbeat(&self) -> Millis {
        self.heartbeat
    }

    const fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.count as u64)
    }

    /// Returns a position as text.
    fn cursor(&self, position: u64) -> Cursor {
        let mut cursor = Cursor::EMPTY;
        cursor.push(write::digits(self.start, &mut [0; 20]));
        cursor.push(b".");
        cursor.push(write::digits(position, &mut [0; 20]));
        cursor
    }

    /// Returns the cursor behind the last occurrence.
    pub(crate) fn end(&self) -> Cursor {
        self.cursor(self.next)
    }

    /// Returns the position of a cursor, and whether it is later than the cursor says. Without a cursor, the end. Any text that
    /// is no cursor of this ring was one of another ring: the oldest occurrence.
    fn position(&self, cursor: Option<&str>) -> (u64, bool) {
        let Some(cursor) = cursor else { return (self.next, false) };
        let own = cursor.split_once('.').filter(|(start, _)| start.parse() == Ok(self.start));
        let position = own.and_then(|(_, position)| position.parse().ok());
        let position = position.filter(|position| (self.oldest()..=self.next).contains(position));
        position.map_or((self.oldest(), true), |position| (position, false))
    }

    /// Returns the occurrences from a position on, oldest first. The work grows with their number.
    fn stored(&self, from: u64) -> impl Iterator<Item = (u64, Stored<'_>)> {
        let mut at = Some(self.last);
        for _ in from.saturating_add(1)..self.next {
            at = at.and_then(|at| self.at(at)).map(|stored| stored.before);
        }
        (from..self.next).scan(at, |at, position| {
            let stored = self.at((*at)?)?;
            *at = Some(self.after(stored.end));
            Some((position, stored))
        })
    }

    /// Returns the occurrence at this place.
    fn at(&self, at: usize) -> Option<Stored<'_>> {
        #[cfg(test)]
        crate::shared::looks::add_one();
        let (head, rest) = self.store.bytes().get(at..)?.split_first_chunk()?;
        let [a, b, c, d, e, f, g, h, timestamp @ .., i, j, id_len]: [u8; HEAD] = *head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let (id, data) = rest.get(..len)?.split_at_checked(usize::from(id_len))?;
        Some(Stored {
            before: u32::from_le_bytes([e, f, g, h]) as usize,
            end: at + HEAD + len,
            event: u16::from_le_bytes([i, j]),
            timestamp: u64::from_le_bytes(timestamp),
            id: core::str::from_utf8(id).ok()?,
            data,
        })
    }

    /// Returns the place of the occurrence after one that ends here.
    const fn after(&self, end: usize) -> usize {
        if end == self.wrap { 0 } else { end }
    }

    fn push(
        &mut self,
        event: u32,
        occurrence: &EventOccurrence<'_>,
        now: Millis,
        data: &mut dyn FnMut(&mut Object<'_, '_>),
    ) -> Result<(), EmitError> {
        let id_len = u8::try_from(occurrence.id.len()).map_err(|_| EmitError::TooLarge)?;
        let event = u16::try_from(event).map_err(|_| EmitError::UnknownEvent)?;
        let mut write = |out: &mut dyn Out| {
            whole(out, MessageHead::Result, |out| {
                let mut object = Object::open(out);
                data(&mut object);
                object.close()
            })
        };
        // Writes it twice, so that no more occurrences are dropped than it needs.
        let mut length = BodyBuffer::new(Length(0));
        write(&mut length).map_err(|_| EmitError::NotWritten)?;
        let len = occurrence.id.len() + length.storage.0;
        let at = self.make_room(HEAD + len)?;
        let number = |number: usize| u32::try_from(number).map(u32::to_le_bytes).map_err(|_| EmitError::TooLarge);
        let timestamp = occurrence.timestamp.unwrap_or(self.unix_millis(now)).to_le_bytes();
        let id = occurrence.id.as_bytes();
        let head = [&number(len)?[..], &number(self.last)?, &timestamp, &event.to_le_bytes(), &[id_len], id];
        let place = self.store.bytes_mut().get_mut(at..at + HEAD + len).unwrap_or_default();
        let mut out = BodyBuffer::new(SliceStorage::new(place));
        let written = head.iter().try_for_each(|part| out.put(part)).and_then(|()| write(&mut out));
        if written.is_err() || out.storage.bytes().len() != HEAD + len {
            return Err(EmitError::NotWritten);
        }
        if at < self.end {
            self.wrap = self.end;
        }
        (self.last, self.end) = (at, at + HEAD + len);
        (self.count, self.next) = (self.count + 1, self.next + 1);
        Ok(())
    }

    /// Drops the oldest occurrences until there is room for one more with `size` bytes in one piece. Returns its place.
    fn make_room(&mut self, size: usize) -> Result<usize, EmitError> {
        if size > self.store.limit() || self.most == 0 {
            return Err(EmitError::TooLarge);
        }
        loop {
            if self.count == 0 {
                (self.first, self.end, self.wrap) = (0, 0, usize::MAX);
            }
            let (at, limit) = match self.end + size {
                _ if self.last < self.first => (self.end, self.first),
                end if end > self.store.limit() => (0, self.first),
                _ => (self.end, self.store.limit()),
            };
            if self.count < self.most && at + size <= limit && self.store.reach(at + size) {
                return Ok(at);
            }
            self.first = self.at(self.first).map(|oldest| self.after(oldest.end)).ok_or(EmitError::TooLarge)?;
            self.count -= 1;
            if self.first == 0 {
                self.wrap = usize::MAX;
            }
        }
    }
}

/// An occurrence of the ring.
#[derive(Clone, Copy)]
struct Stored<'r> {
    /// The places of the one before, and behind this one.
    before: usize,
    end: usize,
    event: u16,
    /// In milliseconds since the beginning of 1970.
    timestamp: u64,
    /// Empty if the program gave none.
    id: &'r str,
    /// JSON
    data: &'r [u8],
}

/// The ring as the source of an event type.
pub(crate) fn ring<S: HasEvents>(
    state: &S,
    subscription: &EventSubscription<'_>,
    found: &mut Occurrences<'_>,
) -> Result<(), RpcError<'static>> {
    let events = state.events();
    let Some(event) = S::EVENTS.get(found.event as usize) else { return Ok(()) };
    let (from, is_gap) = events.position(found.cursor());
    if is_gap {
        found.gap(events.cursor(from).as_str());
    }
    let number = found.event;
    for (position, stored) in events.stored(from).filter(|(_, stored)| u32::from(stored.event) == number) {
        let Some(content) = Raw::parse(stored.data).ok().filter(|data| (event.matches)(state, subscription, *data))
        else {
            continue;
        };
        let (own, after) = (events.cursor(position), events.cursor(position + 1));
        let id = if stored.id.is_empty() { own.as_str() } else { stored.id };
        let mut data = |data: &mut Object<'_, '_>| (event.transform)(state, subscription, content, data);
        if !found.push(id, stored.timestamp, after.as_str(), &mut data) {
            return Ok(());
        }
    }
    found.end(events.end().as_str());
    Ok(())
}

/// Emits an occurrence: subscriptions to its event type get it, as far as it [matches](EventType::matches) them. `data` writes the
/// members of `data`; it runs twice, and must write the same both times. The oldest occurrences are dropped if there is no room.
///
/// # Errors
/// [`EmitError`]; then nothing was emitted.
pub fn emit<S: HasEvents>(
    state: &mut S,
    occurrence: &EventOccurrence<'_>,
    now: Millis,
    data: &mut dyn FnMut(&mut Object<'_, '_>),
) -> Result<(), EmitError> {
    let event = S::EVENTS.iter().zip(0..).find(|(event, _)| event.name == occurrence.name);
    let (_, number) = event.ok_or(EmitError::UnknownEvent)?;
    state.events_mut().push(number, occurrence, now, data)?;
    if S::STREAMS {
        state.events_mut().streams.emitted(Some(number));
    }
    Ok(())
}

/// The number of bytes that were written.
struct Length(usize);

impl Storage for Length {
    fn bytes(&self) -> &[u8] {
        &[]
    }
    fn append(&mut self, bytes: &[u8]) -> bool {
        self.0 += bytes.len();
        true
    }
    fn truncate(&mut self, _: usize) {}
    fn drop_front(&mut self, _: usize) {}
    fn limit(&self) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;
    use crate::shared::looks;

    fn emit(events: &mut Events<'_>, event: u32, id: &str, text: &str) -> Result<(), EmitError> {
        events.push(event, &EventOccurrence::new("any").id(id), 5, &mut |data| data.text("a", text))
    }

    /// Occurrences of all sizes, in memory of all sizes: those that are left are the last ones, whole, wherever the ring turns.
    #[test]
    fn what_is_left_is_whole() {
        let mut random = 9_u32;
        let mut next = move |most: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % most
        };
        for limit in 40..400 {
            let mut bytes = std::vec![0xff; limit];
            let (mut events, mut all) = (Events::new(bytes.as_mut_slice(), 1 + limit / 40, 7), Vec::new());
            for event in 0..60 {
                let (id, text) = ("i".repeat(next(4) as usize), "x".repeat(next(limit as u32 / 2) as usize));
                match emit(&mut events, event, &id, &text) {
                    Ok(()) => all.push((event, id, text)),
                    Err(why) => assert_eq!(why, EmitError::TooLarge),
                }
                let gave_up = events.push(event, &EventOccurrence::new("any"), 5, &mut |data| {
                    data.text("a", if next(2) == 0 { "x" } else { "other" });
                });
                match gave_up {
                    Ok(()) => all.extend(events.stored(events.next - 1).map(|(_, stored)| {
                        let text = String::from_utf8(stored.data[6..stored.data.len() - 2].to_vec()).unwrap();
                        (event, String::new(), text)
                    })),
                    Err(why) => assert!(matches!(why, EmitError::NotWritten | EmitError::TooLarge)),
                }
                for from in events.oldest()..=events.next {
                    let stored = events.stored(from).map(|(_, stored)| {
                        let text = Raw::parse(stored.data).unwrap().get("a").unwrap().text().unwrap().to_string();
                        (u32::from(stored.event), stored.id.into(), text)
                    });
                    assert_eq!(stored.collect::<Vec<_>>(), all[from as usize..], "{limit} bytes, from {from}");
                }
            }
        }
    }

    /// Neither to emit into a full ring nor to read its end passes all that is there.
    #[test]
    fn a_full_ring_costs_no_more() {
        let mut bytes = std::vec![0; 64 << 10];
        let mut events = Events::new(bytes.as_mut_slice(), 1_000, 7);
        for count in [1_000, 10_000] {
            looks::take();
            (0..count).for_each(|event| emit(&mut events, event, "", "text").unwrap());
            assert!(looks::take() <= count as usize);
            assert_eq!((events.count(), events.stored(events.next - 3).count()), (1_000, 3));
            assert!(looks::take() < 10);
        }
    }
}
