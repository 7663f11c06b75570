//! The states of event streams. No step costs more with more streams.

use mcp_sansio::FullError;
use mcp_sansio::machine;
use mcp_sansio::memory::Slots;
use mcp_sansio::server::{Millis, Scope};
use mcp_sansio::sink::Sink;

use super::ids::StreamId;
use super::list::{Free, Links, List};
use super::log::{Chain, HasChain, Log};
use super::session::{Session, Sessions};

/// The state of a stream. In `Quiet`, `Ready` and `Sending` it is attached: its client has a connection for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    Free,
    /// Reserved for the answer to a request, which may not need it.
    Reserved,
    /// There are no messages.
    Quiet,
    /// The endpoint returns it as ready to be pulled.
    Ready,
    /// The driver pulls it again after it has sent the written bytes.
    Sending,
    /// The client is away and may come back. A request in flight will be answered on it.
    Waiting {
        since: Millis,
    },
    /// The client is away and may come back for sent messages. `Millis::MAX` until the time of that is known.
    Resting {
        since: Millis,
    },
}

/// The transitions of a stream: from, to, cause. `docs/internals/state-machines.md` shows them.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Free", "Reserved", "a request may need a stream"),
    ("Reserved", "Free", "over"),
    ("Reserved", "Ready", "sent to the client"),
    ("Quiet", "Ready", "something to say, or a keep-alive is due"),
    ("Quiet", "Quiet", "pulled, and all was written"),
    ("Ready", "Quiet", "pulled, and all was written"),
    ("Sending", "Quiet", "pulled, and all was written"),
    ("Quiet", "Sending", "pulled, and there was no room"),
    ("Ready", "Sending", "pulled, and there was no room"),
    ("Sending", "Sending", "pulled, and there was no room"),
    ("Quiet", "Ready", "the client is back"),
    ("Ready", "Ready", "the client is back"),
    ("Sending", "Ready", "the client is back"),
    ("Quiet", "Waiting", "the client is gone, before its answer"),
    ("Ready", "Waiting", "the client is gone, before its answer"),
    ("Sending", "Waiting", "the client is gone, before its answer"),
    ("Quiet", "Resting", "the client is gone"),
    ("Ready", "Resting", "the client is gone"),
    ("Sending", "Resting", "the client is gone"),
    ("Waiting", "Resting", "answered, or cancelled"),
    ("Waiting", "Ready", "the client is back"),
    ("Resting", "Ready", "the client is back"),
    ("Waiting", "Waiting", "the clock was set back"),
    ("Resting", "Resting", "the clock was set back"),
    ("Resting", "Resting", "the time is known"),
    ("Quiet", "Free", "over"),
    ("Ready", "Free", "over"),
    ("Sending", "Free", "over"),
    ("Waiting", "Free", "over"),
    ("Resting", "Free", "over"),
];

machine!(StreamState, TRANSITIONS: Free Reserved Quiet Ready Sending Waiting Resting);

impl StreamState {
    const fn is_attached(self) -> bool {
        matches!(self, StreamState::Quiet | StreamState::Ready | StreamState::Sending)
    }

    const fn waits(self) -> bool {
        matches!(self, StreamState::Waiting { .. })
    }
}

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The answer to a POST.
    Post,
    /// Messages of a session that belong to no request.
    Session,
    /// A `subscriptions/listen` of 2026-07-28.
    Listen,
    /// All messages for a client of 2024-11-05.
    Old,
}

/// One event stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// See [`TRANSITIONS`].
    state: StreamState,
    /// Given when the stream is sent, from 1 on; the endpoint gives no number twice. Event ids contain it, so
    /// that an old id names no other stream.
    pub(crate) number: u64,
    visit: u32,
    pub(crate) purpose: Purpose,
    /// The session of the stream.
    pub(crate) session: Option<u16>,
    /// The exchange whose requests are answered on it.
    pub(crate) exchange_id: u32,
    /// The scope of request ids, for a stream without session.
    pub(crate) scope: Scope,
    /// The hash of the principal of a listen.
    pub(crate) owner: Option<u64>,
    /// Events have ids, and stay in the log after they were sent.
    pub(crate) resumable: bool,
    /// The stream begins with an event that has an id and no data (2025-11-25).
    pub(crate) primed: bool,
    /// The bytes before the first event of the log are written: priming, `endpoint`.
    pub(crate) greeted: bool,
    /// The number of the next event.
    pub(crate) next_event: u32,
    /// Events before this one were sent on the current connection.
    pub(crate) cursor: u32,
    /// Events before this one were sent on some connection.
    pub(crate) seen: u32,
    /// Number of sent bytes of the current record.
    pub(crate) offset: usize,
    /// Number of sent bytes of the current head, of an event or of the stream.
    pub(crate) head: usize,
    /// Its records in the log.
    pub(crate) chain: Chain,
    /// No more messages come on it.
    pub(crate) ended: bool,
    /// It has a message for which the log has no room.
    is_starved: bool,
    /// The server closed the connection once; the client comes back for the rest. It is not sent away again if it
    /// comes back too soon.
    pub(crate) hung_up: bool,
    /// The time when bytes were written last, for keep-alives; while it waits, the time of the last check.
    pub(crate) noted: Millis,
    /// Links of the intrusive list of streams in this state.
    peers: Links,
    /// Links of the intrusive list of streams that are ready.
    ready: Links,
    /// Its neighbours among those of its session.
    mates: Links,
}

impl HasChain for Stream {
    fn chain(&self) -> &Chain {
        &self.chain
    }

    fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }
}

impl Stream {
    /// A slot without a stream.
    pub const FREE: Stream = Stream {
        state: StreamState::Free,
        number: 0,
        visit: 0,
        purpose: Purpose::Post,
        session: None,
        exchange_id: 0,
        scope: Scope(0),
        owner: None,
        resumable: false,
        primed: false,
        greeted: false,
        next_event: 1,
        cursor: 1,
        seen: 1,
        offset: 0,
        head: 0,
        chain: Chain::EMPTY,
        ended: false,
        is_starved: false,
        hung_up: false,
        noted: 0,
        peers: Links::NONE,
        ready: Links::NONE,
        mates: Links::NONE,
    };

    /// Writes as much of the rest of a head as there is room for.
    pub(crate) fn put_head(&mut self, parts: &[&[u8]], out: &mut dyn Sink) -> Result<(), FullError> {
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
                return Err(FullError::Now);
            }
        }
        Ok(())
    }

    /// Returns `true` if it is the stream with that id, on the same connection.
    pub(crate) fn is(&self, id: StreamId) -> bool {
        self.state != StreamState::Free && (self.number, self.visit) == (id.number, id.visit)
    }

    pub(crate) const fn is_attached(&self) -> bool {
        self.state.is_attached()
    }

    /// Returns the time since which its client is gone, if a request in flight waits for it.
    pub(crate) fn waits_since(&self) -> Option<Millis> {
        match self.state {
            StreamState::Waiting { since } => Some(since),
            _ => None,
        }
    }

    /// Returns `true` if it is for the messages of requests.
    pub(crate) const fn is_of_requests(&self) -> bool {
        match self.purpose {
            Purpose::Post | Purpose::Old => true,
            Purpose::Session | Purpose::Listen => false,
        }
    }

    /// Returns the number of unsent events in the log.
    pub(crate) const fn unread(&self) -> usize {
        self.next_event.saturating_sub(self.cursor) as usize
    }
}

/// The client of a request, and the properties of its stream.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) scope: Scope,
    pub(crate) session: Option<u16>,
    pub(crate) resumable: bool,
    pub(crate) primed: bool,
    pub(crate) modern: bool,
    /// The request is `subscriptions/listen` (2026-07-28).
    pub(crate) listens: bool,
}

impl Asker {
    pub(crate) fn of_session(slot: u16, session: &Session) -> Self {
        let (scope, primed) = (session.scope, session.primes_streams());
        Asker { scope, session: Some(slot), resumable: true, primed, modern: false, listens: false }
    }
}

const PEERS: fn(&mut Stream) -> &mut Links = |stream| &mut stream.peers;
const READY: fn(&mut Stream) -> &mut Links = |stream| &mut stream.ready;
const MATES: fn(&mut Stream) -> &mut Links = |stream| &mut stream.mates;

/// The streams of an endpoint, and the log of their events.
#[derive(Debug)]
pub(crate) struct Streams<'m> {
    slots: Slots<'m, Stream>,
    pub(crate) log: Log<'m>,
    free: Free,
    pub(crate) live: usize,
    /// The number of the last stream that was sent.
    sent: u64,
    /// Streams that are ready to be pulled, in the order in which they became ready.
    ready: List,
    lists: Lists,
    /// While streams wait for room in the log: the blocks that it had.
    starved: Option<usize>,
}

/// Streams by state, each list in the order of the times noted for it.
#[derive(Debug)]
struct Lists {
    /// By the time of the last write. A stream whose keep-alive is due is not in it until it was pulled.
    attached: List,
    waiting: List,
    resting: List,
}

impl Lists {
    const fn of(&mut self, state: StreamState) -> Option<&mut List> {
        match state {
            StreamState::Free | StreamState::Reserved => None,
            StreamState::Quiet | StreamState::Ready | StreamState::Sending => Some(&mut self.attached),
            StreamState::Waiting { .. } => Some(&mut self.waiting),
            StreamState::Resting { .. } => Some(&mut self.resting),
        }
    }
}

impl<'m> Streams<'m> {
    pub(crate) fn new(mut slots: Slots<'m, Stream>, log: Log<'m>) -> Self {
        slots.as_mut_slice().fill(Stream::FREE);
        let lists = Lists { attached: List::EMPTY, waiting: List::EMPTY, resting: List::EMPTY };
        Streams { slots, log, free: Free::ALL, live: 0, sent: 0, ready: List::EMPTY, lists, starved: None }
    }

    /// Returns all slots.
    pub(crate) fn slots(&self) -> &[Stream] {
        self.slots.as_slice()
    }

    /// Returns the log and all slots, which have its chains.
    pub(crate) fn log_mut(&mut self) -> (&mut Log<'m>, &mut [Stream]) {
        (&mut self.log, self.slots.as_mut_slice())
    }

    pub(crate) fn at(&self, slot: u16) -> Option<&Stream> {
        self.slots().get(usize::from(slot)).filter(|stream| stream.state != StreamState::Free)
    }

    pub(crate) fn at_mut(&mut self, slot: u16) -> Option<&mut Stream> {
        self.slots.as_mut_slice().get_mut(usize::from(slot)).filter(|stream| stream.state != StreamState::Free)
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.at(id.slot).filter(|stream| stream.is(id))
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.at_mut(id.slot).filter(|stream| stream.is(id))
    }

    pub(crate) fn id(&self, slot: u16) -> StreamId {
        let (number, visit) = self.at(slot).map_or((0, 0), |stream| (stream.number, stream.visit));
        StreamId { slot, number, visit }
    }

    /// Returns the streams that are ready to be pulled.
    pub(crate) fn ready(&self) -> impl Iterator<Item = StreamId> + '_ {
        let next = |slot: &u16| self.at(*slot)?.ready.next();
        core::iter::successors(self.ready.first(), next).map(|slot| self.id(slot))
    }

    /// Returns the stream whose client has been away longest, of those without a waiting request.
    pub(crate) fn oldest_resting(&self) -> Option<(u16, Millis)> {
        let slot = self.lists.resting.first()?;
        match self.at(slot)?.state {
            StreamState::Resting { since } => Some((slot, since)),
            _ => None,
        }
    }

    /// Returns the stream that was checked longest ago, of those with a waiting request whose client is away.
    pub(crate) fn oldest_waiting(&self) -> Option<(u16, Millis)> {
        let slot = self.lists.waiting.first()?;
        Some((slot, self.at(slot)?.noted))
    }

    /// Returns the stream with the oldest last write.
    pub(crate) fn oldest_attached(&self) -> Option<(u16, Millis)> {
        let slot = self.lists.attached.first()?;
        Some((slot, self.at(slot)?.noted))
    }

    /// Returns `true` if a stream rests since an unknown time.
    pub(crate) fn has_unstamped(&self) -> bool {
        let last = self.lists.resting.last().and_then(|slot| self.at(slot));
        last.is_some_and(|stream| stream.state == StreamState::Resting { since: Millis::MAX })
    }

    /// Reserves a slot for a stream that may be needed.
    fn reserve(&mut self, asker: Asker, exchange_id: u32) -> Option<u16> {
        let slot = self.free.take(&mut self.slots, Stream::FREE, PEERS)?;
        let Asker { session, scope, resumable, primed, .. } = asker;
        let stream = Stream { session, exchange_id, scope, resumable, primed, ..Stream::FREE };
        *self.slots.as_mut_slice().get_mut(usize::from(slot))? = stream;
        self.set(slot, "a request may need a stream", StreamState::Reserved);
        self.live += 1;
        Some(slot)
    }

    /// Reserves a slot: a free one, or that of an answer that was sent and is only kept for a return.
    pub(crate) fn reserve_or_evict(
        &mut self,
        asker: Asker,
        exchange_id: u32,
        sessions: &mut Sessions<'_>,
        now: Millis,
    ) -> Option<u16> {
        self.reserve(asker, exchange_id).or_else(|| {
            let (oldest, _) = self.oldest_resting()?;
            self.free(sessions, oldest, now);
            self.reserve(asker, exchange_id)
        })
    }

    /// Sends a reserved stream to its client.
    pub(crate) fn send(&mut self, sessions: &mut Sessions<'_>, slot: u16, purpose: Purpose, now: Millis) -> StreamId {
        self.sent += 1;
        let number = self.sent;
        let Some(stream) = self.at_mut(slot) else { return self.id(slot) };
        (stream.number, stream.purpose) = (number, purpose);
        if let Some(session) = stream.session.and_then(|slot| sessions.get_mut(slot)) {
            session.streams.push(self.slots.as_mut_slice(), slot, MATES);
        }
        self.change(sessions, slot, ("sent to the client", StreamState::Ready), now);
        self.id(slot)
    }

    /// Notes that the client is away and may come back; `waits` if a request in flight will be answered on the
    /// stream.
    pub(crate) fn detach(&mut self, sessions: &mut Sessions<'_>, slot: u16, waits: bool, now: Millis) {
        self.stamp(now);
        let next = match waits {
            true => ("the client is gone, before its answer", StreamState::Waiting { since: now }),
            false => ("the client is gone", StreamState::Resting { since: now }),
        };
        self.change(sessions, slot, next, now);
    }

    /// Continues on another connection, after the last event that the client received.
    pub(crate) fn attach(&mut self, sessions: &mut Sessions<'_>, slot: u16, cursor: u32, now: Millis) -> StreamId {
        let Some(stream) = self.at_mut(slot) else { return self.id(slot) };
        stream.visit = stream.visit.wrapping_add(1);
        (stream.cursor, stream.offset, stream.head) = (cursor, 0, 0);
        stream.seen = stream.seen.max(cursor);
        (stream.greeted, stream.ended) = (true, false);
        // The pull that follows reads the time of the last keep-alive.
        let written = stream.noted;
        self.change(sessions, slot, ("the client is back", StreamState::Ready), now);
        if let Some(stream) = self.at_mut(slot) {
            stream.noted = written;
        }
        self.id(slot)
    }

    /// Notes that the awaited request was answered while the client is away. The next call with the time sets
    /// since when it rests.
    pub(crate) fn answered(&mut self, sessions: &mut Sessions<'_>, slot: u16) {
        if self.at(slot).is_some_and(|stream| stream.waits_since().is_some()) {
            let next = ("answered, or cancelled", StreamState::Resting { since: Millis::MAX });
            self.change(sessions, slot, next, 0);
        }
    }

    /// Sets the time of the streams that have begun to rest.
    pub(crate) fn stamp(&mut self, now: Millis) {
        let mut at = self.lists.resting.last();
        while let Some(stream) = at.and_then(|slot| self.at_mut(slot)) {
            if stream.state != (StreamState::Resting { since: Millis::MAX }) {
                break;
            }
            stream.state.enter("the time is known", StreamState::Resting { since: now });
            at = stream.peers.before();
        }
    }

    /// Limits all noted times to `now`, after the clock was set back. Without it the lists are no longer in the order
    /// of their times, and a keep-alive would wait for a stream whose time is far ahead.
    pub(crate) fn set_back(&mut self, now: Millis) {
        for stream in self.slots.as_mut_slice() {
            stream.noted = stream.noted.min(now);
            let state = match stream.state {
                StreamState::Waiting { since } => StreamState::Waiting { since: since.min(now) },
                StreamState::Resting { since } if since != Millis::MAX => {
                    StreamState::Resting { since: since.min(now) }
                }
                _ => continue,
            };
            stream.state.enter("the clock was set back", state);
        }
    }

    /// Ends a stream and frees its slot.
    pub(crate) fn free(&mut self, sessions: &mut Sessions<'_>, slot: u16, now: Millis) {
        self.change(sessions, slot, ("over", StreamState::Free), now);
        self.leave_session(sessions, slot);
        self.log.forget(self.slots.as_mut_slice(), slot);
        self.log.release(self.slots.as_mut_slice());
        self.live -= 1;
        self.free.give_back(self.slots.as_mut_slice(), slot, PEERS);
        self.feed();
    }

    /// Removes a stream from its session, which is over. The end of the stream informs its reader.
    pub(crate) fn leave_session(&mut self, sessions: &mut Sessions<'_>, slot: u16) {
        let Some(stream) = self.slots.as_mut_slice().get_mut(usize::from(slot)) else { return };
        let session = stream.session.take();
        if let Some(streams) = session.and_then(|slot| sessions.streams_mut(slot)) {
            streams.remove(self.slots.as_mut_slice(), slot, MATES);
        }
    }

    /// Notes that no more messages come on a stream.
    pub(crate) fn end(&mut self, slot: u16) {
        if let Some(stream) = self.at_mut(slot) {
            stream.ended = true;
            self.stir(slot);
        }
    }

    /// Notes that there may be messages on a stream.
    pub(crate) fn stir(&mut self, slot: u16) {
        if self.at(slot).is_some_and(|stream| stream.state == StreamState::Quiet) {
            self.set(slot, "something to say, or a keep-alive is due", StreamState::Ready);
            self.ready.push(self.slots.as_mut_slice(), slot, READY);
        }
    }

    /// Notes that a stream has a message for which others have to make room in the log.
    fn starve(&mut self, slot: u16) {
        let available = self.log.available();
        if let Some(stream) = self.at_mut(slot) {
            stream.is_starved = true;
            self.starved = Some(self.starved.map_or(available, |blocks| blocks.min(available)));
        }
    }

    /// Notes that a stream was pulled and has a message for which the log has no room.
    pub(crate) fn wait_for_room(&mut self, slot: u16) {
        self.pulled(slot, false);
        if self.at(slot).is_some_and(|stream| self.log.is_taken_by_others(&stream.chain)) {
            self.starve(slot);
        } else {
            self.stir(slot);
        }
    }

    /// Makes the streams ready that wait for room in the log, if there is more than when they began.
    pub(crate) fn feed(&mut self) {
        if self.starved.is_none_or(|blocks| self.log.available() <= blocks) {
            return;
        }
        self.starved = None;
        for slot in 0..self.slots().len() as u16 {
            if self.at_mut(slot).is_some_and(|stream| core::mem::take(&mut stream.is_starved)) {
                self.stir(slot);
            }
        }
    }

    /// Notes that a stream was pulled; `more` if the driver pulls it again.
    pub(crate) fn pulled(&mut self, slot: u16, more: bool) {
        if self.at(slot).is_some_and(Stream::is_attached) {
            self.ready.remove(self.slots.as_mut_slice(), slot, READY);
            match more {
                true => self.set(slot, "pulled, and there was no room", StreamState::Sending),
                false => self.set(slot, "pulled, and all was written", StreamState::Quiet),
            };
        }
    }

    /// Notes that bytes were written on a stream, or could not be.
    pub(crate) fn wrote(&mut self, slot: u16, now: Millis) {
        if let Some(stream) = self.at_mut(slot).filter(|stream| stream.is_attached()) {
            stream.noted = now;
            self.lists.attached.touch(self.slots.as_mut_slice(), slot, PEERS);
        }
    }

    /// Marks an attached stream whose keep-alive is due as ready, unless the driver pulls it soon anyway.
    pub(crate) fn remind(&mut self, slot: u16) {
        self.lists.attached.remove(self.slots.as_mut_slice(), slot, PEERS);
        self.stir(slot);
    }

    /// Notes that a stream with a waiting request was checked.
    pub(crate) fn look_again(&mut self, slot: u16, now: Millis) {
        if let Some(stream) = self.at_mut(slot) {
            stream.noted = now;
            self.lists.waiting.touch(self.slots.as_mut_slice(), slot, PEERS);
        }
    }

    /// Changes a stream's state, for this cause, and its lists.
    fn change(&mut self, sessions: &mut Sessions<'_>, slot: u16, (cause, state): (&str, StreamState), now: Millis) {
        let before = self.set(slot, cause, state);
        let slots = self.slots.as_mut_slice();
        let Some(stream) = slots.get_mut(usize::from(slot)) else { return };
        let session = stream.session;
        stream.noted = now;
        if let Some(list) = self.lists.of(before) {
            list.remove(slots, slot, PEERS);
        }
        if let Some(list) = self.lists.of(state) {
            list.push(slots, slot, PEERS);
        }
        self.ready.remove(slots, slot, READY);
        if state == StreamState::Ready {
            self.ready.push(slots, slot, READY);
        }
        if let Some(session) = session {
            let attached = i8::from(state.is_attached()) - i8::from(before.is_attached());
            let waits = i8::from(state.waits()) - i8::from(before.waits());
            sessions.count_streams(session, attached, waits, now);
        }
    }

    /// Enters a state and returns the one before.
    fn set(&mut self, slot: u16, cause: &str, state: StreamState) -> StreamState {
        let Some(stream) = self.slots.as_mut_slice().get_mut(usize::from(slot)) else { return StreamState::Free };
        let before = stream.state;
        stream.state.enter(cause, state);
        before
    }
}
