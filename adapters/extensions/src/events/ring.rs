//! The ring of the last occurrences, in lent memory.

use mcp_sansio::FullError;
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Object, Raw, write};
use mcp_sansio::memory::records::{OVERHEAD, Record, Records};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::{Millis, ServerChange};
use mcp_sansio::service::{CustomRequest, HandlerResult};
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink, whole};

use crate::events::event_type::EventType;
use crate::events::source::{Cursor, EventSubscription, Occurrences};
use crate::events::streams::{StreamSlot, Streams};
use crate::events::subscribers::{LeaseSlot, Subscribers};
use crate::shared::record_out::RecordOut;

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/events";

/// The change to publish when event types come, go, or change, for a server that declares it:
/// [`HasEvents::LIST_CHANGED`].
#[doc(alias = "notifications/events/list_changed")]
pub const LIST_CHANGED: ServerChange<'static> = ServerChange::Topic { member: "eventsListChanged", key: "" };

/// The bytes before the `eventId` of an occurrence: the timestamp, and the length of the id.
const HEAD: usize = 9;

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

    /// Sets `eventId`, at most 255 bytes: the identifier that the source of the occurrence gave it, by which a client drops
    /// duplicates. Default: one that is new in this ring.
    #[doc(alias = "eventId")]
    pub const fn id(self, id: &'o str) -> Self {
        EventOccurrence { id, ..self }
    }

    /// Sets `timestamp`, in milliseconds since the beginning of 1970. Default: now.
    pub const fn timestamp(self, unix_millis: u64) -> Self {
        EventOccurrence { timestamp: Some(unix_millis), ..self }
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
    records: Records<'m>,
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
            records: Records::new(store.into()),
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

    /// Returns the occurrences of an event type from a position on, oldest first.
    fn stored(&self, event: u32, from: u64) -> impl Iterator<Item = Stored<'_>> {
        let of_event = (self.oldest()..).zip(self.records.iter());
        of_event
            .filter(move |(position, record)| *position >= from && record.owner == event)
            .filter_map(|(position, record)| Stored::of(position, &record))
    }

    fn push(
        &mut self,
        event: u32,
        occurrence: &EventOccurrence<'_>,
        now: Millis,
        data: &mut dyn FnMut(&mut Object<'_, '_>),
    ) -> Result<(), EmitError> {
        let id_len = u8::try_from(occurrence.id.len()).map_err(|_| EmitError::TooLarge)?;
        let mut write = |out: &mut dyn Out| {
            whole(out, MessageHead::Result, |out| {
                let mut object = Object::open(out);
                data(&mut object);
                object.close()
            })
        };
        // Writes it twice, so that no more occurrences are dropped than it needs.
        let mut size = Measure(0);
        write(&mut size).map_err(|_| EmitError::NotWritten)?;
        self.make_room(OVERHEAD + HEAD + occurrence.id.len() + size.0)?;
        let timestamp = occurrence.timestamp.unwrap_or(self.unix_millis(now)).to_le_bytes();
        let from = self.records.used();
        let head = [&timestamp[..], &[id_len], occurrence.id.as_bytes()];
        self.records.push(event, 0, 0, &head).map_err(|_| EmitError::TooLarge)?;
        let mut out = RecordOut { records: &mut self.records, at: from, from: HEAD + occurrence.id.len(), len: 0 };
        if write(&mut out).is_err() {
            self.records.drop_last(from);
            return Err(EmitError::NotWritten);
        }
        (self.count, self.next) = (self.count + 1, self.next + 1);
        Ok(())
    }

    /// Drops the oldest occurrences until there is room for one more with `size` bytes.
    fn make_room(&mut self, size: usize) -> Result<(), EmitError> {
        if size > self.records.limit() || self.most == 0 {
            return Err(EmitError::TooLarge);
        }
        let (mut used, mut dropped) = (self.records.used(), 0);
        for record in self.records.iter() {
            if used + size <= self.records.limit() && self.count - dropped < self.most {
                break;
            }
            (used, dropped) = (used - record.size(), dropped + 1);
        }
        if dropped == 0 {
            return Ok(());
        }
        let mut left = dropped;
        self.records.remove(|_| {
            let drops = left > 0;
            left -= usize::from(drops);
            drops
        });
        self.count -= dropped;
        Ok(())
    }
}

/// An occurrence of the ring.
#[derive(Clone, Copy)]
struct Stored<'r> {
    position: u64,
    /// In milliseconds since the beginning of 1970.
    timestamp: u64,
    /// Empty if the program gave none.
    id: &'r str,
    data: Raw<'r>,
}

impl<'r> Stored<'r> {
    fn of(position: u64, record: &Record<'r>) -> Option<Self> {
        let (timestamp, rest) = record.data.split_first_chunk()?;
        let (len, rest) = rest.split_first()?;
        let (id, data) = rest.split_at_checked(usize::from(*len))?;
        let (id, data) = (core::str::from_utf8(id).ok()?, Raw::parse(data).ok()?);
        Some(Stored { position, timestamp: u64::from_le_bytes(*timestamp), id, data })
    }
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
    for stored in events.stored(found.event, from) {
        if !(event.matches)(state, subscription, stored.data) {
            continue;
        }
        let (own, after) = (events.cursor(stored.position), events.cursor(stored.position + 1));
        let id = if stored.id.is_empty() { own.as_str() } else { stored.id };
        let mut data = |data: &mut Object<'_, '_>| (event.transform)(state, subscription, stored.data, data);
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

/// A sink that counts.
struct Measure(usize);

impl Sink for Measure {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0 += bytes.len();
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}

impl Out for Measure {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        Ok(())
    }
    fn end(&mut self) {}
    fn mark(&self) -> Mark {
        Mark::new(self.0)
    }
    fn roll_back(&mut self, mark: Mark) {
        self.0 = mark.at();
    }
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        usize::MAX
    }
}
