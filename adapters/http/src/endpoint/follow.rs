//! Event streams of other processes that their clients resume here: this process reads their [copies](super::copies).
//!
//! A GET with `Last-Event-ID` of another process begins a look into the log of that stream. Until the first entry has arrived the
//! request is undecided: its driver keeps it, or answers 503. If the entry names the session, a stream is opened, and the entries
//! become events with the ids that they had. They stay in the log of the endpoint, as those of own streams do: for a slow
//! reader, and for one that comes back once more.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::json::Raw;
use mcp_sansio::rpc::{Envelope, MessageShape, same_id};
use mcp_sansio::server::{Millis, RpcError, ServerChange, write_error};
use mcp_sansio::sink::{MessageKind, Out, Sink};

use super::Endpoint;
use super::copies::{CopiedIds, CopyRecord, log_name, read_log_name, records};
use super::events::{EventId, StreamOut, skip_events};
use super::fleet::Life;
use super::ids::StreamId;
use super::legacy::NoStream;
use super::log::Spot;
use super::sealed::{Nonce, nonce_of};
use super::stream::{Origin, Plan, Purpose, Stream};
use crate::fleet::wire::{Message, SessionRef};
use crate::fleet::{Arrival, Errand, FleetLimits, ProcessTag, Recipients};

/// The time, in milliseconds, for the first entry of a log, and then for the client to ask again.
const LOOK: Millis = 10_000;

/// The time, in milliseconds, after which a process that is alive has no such stream: the client may be here before its log.
const GRACE: Millis = 1_000;

/// The time, in milliseconds, for which a log is followed before it is asked for anew.
const FOLLOW: Millis = 600_000;

/// Number of events after which the process of a stream is informed that its client has them.
const INFORM: u32 = 64;

/// The time, in milliseconds, by which the clocks of two processes may differ.
const SKEW: Millis = 1_000;

/// The limit of event numbers.
const EVENTS: u32 = 1 << 31;

/// The streams of other processes that are resumed here.
#[derive(Debug)]
pub(crate) struct Follows {
    share: usize,
    total: usize,
    by_stream: BTreeMap<Origin, Follow>,
    /// Their numbers by session.
    counts: BTreeMap<Nonce, usize>,
    /// Those that no response has named yet, by time.
    looks: VecDeque<(Millis, Origin)>,
    /// Those without an entry so far, whose process is alive, by time.
    late: VecDeque<(Millis, Origin)>,
    /// Those whose clients read them here, by the time of the last message to their process.
    read: VecDeque<(Millis, Origin)>,
    /// Those whose events found no room, and that wait for readers, with the blocks that the log had.
    stalled: Vec<(Origin, usize)>,
    /// Streams of this process that are read at another one, whose connections here are still open.
    given_up: Vec<StreamId>,
}

/// A stream that is resumed here.
#[derive(Debug)]
struct Follow {
    session: Nonce,
    state: FollowState,
    /// The client had this event when it came.
    after: u32,
    /// The id of the last entry that was read.
    entry: u64,
    /// The requests without an answer so far, by their ids.
    open: Vec<Box<[u8]>>,
    /// All entries that there were have arrived.
    has_caught_up: bool,
    /// The log is being read, until this time.
    reads: Option<Millis>,
    /// Events after those that were read were not copied.
    is_cut: bool,
    /// The end of the stream has been read, or its process is gone.
    has_ended: bool,
    /// The local stream has all, the end included.
    is_over: bool,
    /// The last event of which its process was informed.
    informed: u32,
    /// The time of that, as long as a client reads it here.
    informed_at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowState {
    /// Nothing is known yet.
    Looking,
    /// The session has no such stream.
    Unknown,
    /// The engine does not answer, or there is no room.
    Unavailable,
    /// Its events go to the stream in this slot.
    Found(u16),
}

impl Follows {
    pub(crate) const fn new(limits: &FleetLimits) -> Self {
        Follows {
            share: limits.followed_share,
            total: limits.followed,
            by_stream: BTreeMap::new(),
            counts: BTreeMap::new(),
            looks: VecDeque::new(),
            late: VecDeque::new(),
            read: VecDeque::new(),
            stalled: Vec::new(),
            given_up: Vec::new(),
        }
    }

    fn insert(&mut self, key: Origin, follow: Follow, now: Millis) -> bool {
        let count = self.counts.get(&follow.session).copied().unwrap_or(0);
        let is_full = self.by_stream.len() >= self.total || self.looks.len() >= self.total.saturating_mul(2);
        if count >= self.share || is_full {
            return false;
        }
        self.counts.insert(follow.session, count + 1);
        self.looks.push_back((now, key));
        self.by_stream.insert(key, follow);
        true
    }

    fn remove(&mut self, key: Origin) -> Option<Follow> {
        let follow = self.by_stream.remove(&key)?;
        if let Some(count) = self.counts.get_mut(&follow.session) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&follow.session);
            }
        }
        Some(follow)
    }

    /// Returns the processes whose streams are resumed here.
    pub(crate) fn processes(&self) -> impl Iterator<Item = ProcessTag> {
        self.by_stream.keys().map(|key| ProcessTag::new(key.tag))
    }

    /// Returns the time at which the oldest look is over.
    pub(crate) fn next_deadline(&self, within: Millis) -> Option<Millis> {
        let of =
            |queue: &VecDeque<(Millis, Origin)>, after| queue.front().map(|(since, _)| since.saturating_add(after));
        let read = of(&self.read, (within / 2).max(1));
        of(&self.looks, LOOK).into_iter().chain(of(&self.late, GRACE)).chain(read).min()
    }
}

impl Follow {
    /// Forgets the requests that a message answers.
    fn note_answers(&mut self, message: &[u8]) {
        if self.open.is_empty() {
            return;
        }
        // An array has only answers that were there before the copy began, of requests that are not among these.
        let Ok(envelope) = Envelope::parse(message) else { return };
        if let MessageShape::Response { id: Some(id) } = envelope.shape() {
            self.open.retain(|open| !same_id(open, id.as_bytes()));
        }
    }
}

impl Endpoint<'_> {
    /// Begins to copy a stream that was just sent, if it answers a request in a session that other processes may know.
    pub(crate) fn begin_copy(&mut self, slot: u16) {
        self.copy_from(slot, |stream| (stream.chain.read(), 1));
    }

    /// Begins copies anew whose logs may be lost, with the events that are still here. Returns `true` if there are more than `most`
    /// of them.
    pub(crate) fn copy_anew(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(origin) = self.log.copies.as_mut().and_then(|copies| copies.next_anew()) else { return false };
            let is_open = |stream: &&Stream| stream.number == origin.number && stream.is_copied;
            if self.streams.at(origin.slot).is_some_and(|stream| is_open(&stream)) {
                self.copy_from(origin.slot, |stream| (stream.chain.start(), stream.chain.first()));
            }
        }
        self.log.copies.as_ref().is_some_and(|copies| copies.has_anew())
    }

    /// Begins the copy of a stream with the events from one on, which is at this place of the log.
    fn copy_from(&mut self, slot: u16, first: impl FnOnce(&Stream) -> (Spot, u32)) {
        let Some(copies) = self.log.copies.as_mut().filter(|_| self.config.resume_within > 0) else { return };
        let Some(stream) = self.streams.at_mut(slot).filter(|stream| stream.resumable) else { return };
        let session = stream.session().and_then(|slot| self.sessions.get(slot));
        let Some(session) = session.and_then(|session| nonce_of(session.id.as_str().as_bytes())) else { return };
        let server = &self.server;
        let tokens = (0..server.capacity()).filter_map(|number| server.token_at(number));
        let ids = tokens.filter(|token| server.route(*token) == Some(stream.route));
        stream.is_copied =
            copies.begin(stream.origin, &session, ids.filter_map(|token| server.request_id(token)), self.now);
        if stream.is_copied {
            let (number, (spot, first), end, route) = (stream.number, first(stream), stream.next_event, stream.route);
            self.log.copy_events(number, spot, first..end);
            self.end_copy(slot, route);
        }
    }

    /// Ends the copy of a stream if all its requests are answered.
    pub(crate) fn end_copy(&mut self, slot: u16, route: u32) {
        let Some(copies) = &mut self.log.copies else { return };
        if let Some(stream) = self.streams.at(slot).filter(|stream| stream.is_copied)
            && !self.server.has_route(route)
        {
            copies.end(stream.number, false);
        }
    }

    /// Resumes a stream that an event id with the tag of a process names.
    pub(crate) fn come_back_in_fleet(&mut self, session: u16, id: &EventId, tag: u32) -> Result<StreamId, NoStream> {
        let is_own = self.fleet.as_ref().is_some_and(|fleet| fleet.tag.number() == tag);
        if is_own && let Some(stream) = self.come_back_here(session, id) {
            return Ok(stream);
        }
        match (id.of_session, is_own) {
            (true, true) => Err(NoStream::Unknown),
            (true, false) => self.take_over(session),
            (false, _) if self.draining => Err(NoStream::Unavailable),
            (false, _) => self.follow(session, id, tag),
        }
    }

    /// Opens the stream of a session, in place of one of another process. What was sent there is not known here.
    fn take_over(&mut self, slot: u16) -> Result<StreamId, NoStream> {
        if self.draining {
            return Err(NoStream::Unavailable);
        }
        let stream = self.open_session_stream(slot).ok_or(NoStream::NoRoom)?;
        if let Some(session) = self.sessions.get_mut(slot) {
            session.peer.record(ServerChange::All);
        }
        Ok(stream)
    }

    /// Resumes a stream of another process, or one of this process that is gone, for the client of a session.
    fn follow(&mut self, session: u16, id: &EventId, tag: u32) -> Result<StreamId, NoStream> {
        self.forget_unfollowed();
        let known = self.sessions.get(session).and_then(|session| nonce_of(session.id.as_str().as_bytes()));
        let nonce = known.ok_or(NoStream::Unknown)?;
        let key = Origin { tag, slot: id.slot, number: id.stream };
        let Some(fleet) = &mut self.fleet else { return Err(NoStream::Unknown) };
        let Some(follow) = fleet.follows.by_stream.get(&key) else { return self.look(nonce, id, tag) };
        let has_caught_up = follow.has_caught_up;
        match follow.state {
            FollowState::Looking => Err(NoStream::Undecided),
            // It was found, or not found, for another session.
            _ if follow.session != nonce => Err(NoStream::Unknown),
            FollowState::Unknown => {
                fleet.follows.remove(key);
                Err(NoStream::Unknown)
            }
            FollowState::Unavailable => {
                self.drop_follow(key);
                Err(NoStream::Unavailable)
            }
            FollowState::Found(slot) => match self.claim(session, key, slot, id) {
                Some(found) => found,
                None => {
                    // It came back for other events than those that are here.
                    self.drop_follow(key);
                    // Otherwise it could take what arrives yet for what it asks for.
                    if has_caught_up { self.look(nonce, id, tag) } else { Err(NoStream::Unavailable) }
                }
            },
        }
    }

    /// Begins to read the log of a stream.
    fn look(&mut self, session: Nonce, id: &EventId, tag: u32) -> Result<StreamId, NoStream> {
        let Some(fleet) = self.fleet.as_mut().filter(|_| id.event < EVENTS) else { return Err(NoStream::Unknown) };
        let origin = Origin { tag, slot: id.slot, number: id.stream };
        let follow = Follow {
            session,
            state: FollowState::Looking,
            after: id.event,
            entry: 0,
            open: Vec::new(),
            has_caught_up: false,
            reads: Some(self.now.saturating_add(FOLLOW)),
            is_cut: false,
            has_ended: false,
            is_over: false,
            informed: id.event,
            informed_at: 0,
        };
        let read = Errand::Read { log: log_name(origin), after: 0, follow: Some(FOLLOW) };
        if !fleet.follows.insert(origin, follow, self.now) {
            return Err(NoStream::NoRoom);
        }
        if !fleet.outbox.push(read) {
            fleet.follows.remove(origin);
            return Err(NoStream::Unavailable);
        }
        Err(NoStream::Undecided)
    }

    /// Gives the stream of a log that was found to its client. `None` if it does not have the events after that one.
    fn claim(&mut self, session: u16, key: Origin, slot: u16, id: &EventId) -> Option<Result<StreamId, NoStream>> {
        let fleet = self.fleet.as_mut()?;
        let follow = fleet.follows.by_stream.get(&key)?;
        let stream = self.streams.at(slot).filter(|stream| stream.session() == Some(session))?;
        if follow.is_cut && !follow.has_ended {
            // The process itself has the rest.
            return Some(Err(NoStream::Unavailable));
        }
        let (is_new, is_over, after) = (stream.number == 0, follow.is_over, follow.after);
        let resumed = match is_new && id.event == after {
            true => self.send_stream(slot, Purpose::Followed),
            false if is_new => return None,
            false => self.resume_at(session, slot, id.event)?,
        };
        if let Some(stream) = self.streams.at_mut(slot) {
            // The first connection had the bytes before the first event.
            stream.greeted = true;
        }
        if is_over {
            self.streams.end(slot);
        } else {
            self.read_on(key);
            self.inform_owner(key, slot);
            if let Some(fleet) = &mut self.fleet
                && let Some(follow) = fleet.follows.by_stream.get_mut(&key)
                && is_new
            {
                follow.informed_at = self.now;
                fleet.follows.read.push_back((self.now, key));
            }
        }
        Some(Ok(resumed))
    }

    /// Informs the process of a stream that its client reads it here, and which events it has.
    fn inform_owner(&mut self, key: Origin, slot: u16) {
        let Some(&Stream { opened: since, next_event, .. }) = self.streams.at(slot) else { return };
        let Some(session) = self.streams.at(slot).and_then(Stream::session) else { return };
        let Some(id) = self.sessions.get(session).map(|session| session.id) else { return };
        let Some(fleet) = self.fleet.as_mut().filter(|fleet| fleet.tag.number() != key.tag) else { return };
        let session = SessionRef { id: id.as_str().as_bytes(), principal: self.sessions.principal(session) };
        let (event, slot, number) = (next_event.saturating_sub(1), key.slot.into(), key.number);
        let message = Message::Follows { session, slot, number, event, since };
        fleet.publish(Recipients::One(ProcessTag::new(key.tag)), &message);
        if let Some(follow) = fleet.follows.by_stream.get_mut(&key) {
            follow.informed = event;
        }
    }

    /// Takes a message that the client of a stream reads it at another process. What is sent there is not kept here as unsent, its
    /// questions wait, and its earlier connection here is given up.
    pub(crate) fn hear_follower(&mut self, session: u16, stream: Origin, event: u32, since: Millis) {
        let slot = stream.slot;
        let known = self.streams.at(slot).filter(|known| known.number == stream.number && known.is_copied);
        let Some(&known) = known.filter(|known| known.session() == Some(session)) else { return };
        if known.is_attached() {
            if known.opened.saturating_add(SKEW) >= since {
                // It has come back here since. If it has not, its connection here soon fails.
                return;
            }
            // Its driver closes it. If the client is here after all, it comes again and loses nothing.
            let id = self.streams.id(slot);
            let streams = &self.streams;
            if let Some(fleet) = &mut self.fleet {
                fleet.follows.given_up.retain(|id| streams.get(*id).is_some());
                fleet.follows.given_up.push(id);
            }
        }
        let waits = self.server.has_route(known.route);
        self.streams.detach(&mut self.sessions, slot, waits, self.now);
        if let Some(stream) = self.streams.at_mut(slot) {
            (stream.offset, stream.head) = (0, 0);
        }
        skip_events(self.streams.slots_mut(), slot, &mut self.log, event);
    }

    /// Returns the streams whose connections end, because their clients read them at other processes.
    pub(crate) fn given_up(&self) -> impl Iterator<Item = StreamId> + '_ {
        let given_up = self.fleet.iter().flat_map(|fleet| &fleet.follows.given_up).copied();
        given_up.filter(|id| self.streams.get(*id).is_some())
    }

    /// Notes that the connection of a stream has ended.
    pub(crate) fn forget_given_up(&mut self, id: StreamId) {
        if let Some(fleet) = &mut self.fleet {
            fleet.follows.given_up.retain(|given_up| *given_up != id);
        }
    }

    /// Informs the others that the stream of a session was opened here: each message goes to one stream only.
    pub(crate) fn inform_of_session_stream(&mut self, session: u16) {
        let Some(fleet) = &mut self.fleet else { return };
        let Some(known) = self.sessions.get(session) else { return };
        if nonce_of(known.id.as_str().as_bytes()).is_some() {
            let session = SessionRef { id: known.id.as_str().as_bytes(), principal: self.sessions.principal(session) };
            fleet.publish(Recipients::Others, &Message::Stream { session, since: self.now });
        }
    }

    /// Takes a message that the stream of a session was opened at another process: one that is older ends.
    pub(crate) fn hear_session_stream(&mut self, session: u16, from: ProcessTag, since: Millis) {
        let stream = self.sessions.get(session).and_then(|session| session.stream);
        let Some((id, stream)) = stream.and_then(|id| Some((id, self.streams.get(id)?))) else { return };
        let own = self.fleet.as_ref().map(|fleet| fleet.tag);
        if (stream.opened, own) > (since, Some(from)) {
            return;
        }
        match stream.is_attached() {
            true => self.streams.end(id.slot),
            false => self.free_stream(id.slot),
        }
    }

    /// Goes on reading a log that is not being read.
    fn read_on(&mut self, key: Origin) {
        let Some(fleet) = &mut self.fleet else { return };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key).filter(|follow| follow.reads.is_none()) else {
            return;
        };
        let log = log_name(key);
        if fleet.outbox.push(Errand::Read { log, after: follow.entry, follow: Some(FOLLOW) }) {
            (follow.reads, follow.has_caught_up) = (Some(self.now.saturating_add(FOLLOW)), false);
        }
    }

    /// Stops reading a log.
    fn stop_reading(&mut self, key: Origin) {
        let Some(fleet) = &mut self.fleet else { return };
        if let Some(follow) = fleet.follows.by_stream.get_mut(&key)
            && follow.reads.take().is_some()
        {
            // Without room for it, what arrives is ignored.
            fleet.outbox.push(Errand::Stop { log: log_name(key) });
        }
    }

    /// Forgets a stream that is resumed here, with its local one.
    fn drop_follow(&mut self, key: Origin) {
        self.stop_reading(key);
        let follow = self.fleet.as_mut().and_then(|fleet| fleet.follows.remove(key));
        if let Some(Follow { state: FollowState::Found(slot), .. }) = follow
            && self.streams.at(slot).is_some_and(|stream| follows(stream, key))
        {
            self.free_stream(slot);
        }
    }

    /// Forgets the streams whose local ones are over.
    pub(crate) fn forget_unfollowed(&mut self) {
        for key in core::mem::take(&mut self.streams.unfollowed) {
            self.stop_reading(key);
            if let Some(fleet) = &mut self.fleet {
                fleet.follows.remove(key);
            }
        }
    }

    /// Hears of a log with a copy of a stream. Other logs are left out.
    pub(crate) fn hear_copy(&mut self, arrival: &Arrival) {
        match arrival {
            Arrival::Entry { log, id, entry } => self.read_entry(log, *id, entry),
            Arrival::CaughtUp { log } => self.caught_up(log),
            Arrival::ReadOver { log } => self.read_over(log),
            _ => {}
        }
    }

    /// Takes an entry of a log that is read.
    fn read_entry(&mut self, log: &str, id: u64, entry: &[u8]) {
        let Some(key) = read_log_name(log) else { return };
        let Some(fleet) = &mut self.fleet else { return };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key) else { return };
        if follow.reads.is_none() || follow.has_ended || id <= follow.entry {
            return;
        }
        // A copy is begun anew if its log may be lost.
        let begins = records(entry).is_some_and(|mut all| matches!(all.next(), Some(CopyRecord::Begin(..))));
        if follow.entry == 0 && !begins {
            // Without the first one nothing is known of the session.
            return;
        }
        let (Some(records), true) = (records(entry), begins || id == follow.entry + 1) else {
            // One before it is missing, or was written by a later version.
            follow.is_cut = true;
            return self.cut_follow(key);
        };
        for record in records {
            if self.take_record(key, &record).is_err() {
                self.stop_reading(key);
                return self.stall(key);
            }
        }
        let Some(follow) = self.fleet.as_mut().and_then(|fleet| fleet.follows.by_stream.get_mut(&key)) else { return };
        follow.entry = id;
        if let FollowState::Found(slot) = follow.state
            && !follow.has_ended
            && let Some(stream) = self.streams.at(slot).filter(|stream| stream.is_attached())
            && stream.next_event.saturating_sub(follow.informed) > INFORM
        {
            self.inform_owner(key, slot);
        }
    }

    /// Takes a record. An error if an event finds no room now.
    fn take_record(&mut self, key: Origin, record: &CopyRecord<'_>) -> Result<(), FullError> {
        let Some(fleet) = &mut self.fleet else { return Ok(()) };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key) else { return Ok(()) };
        match (*record, follow.state) {
            (CopyRecord::Begin(session, ids), FollowState::Looking) => self.begin_follow(key, session, ids),
            (CopyRecord::Event(event, message), FollowState::Found(slot)) if !follow.is_cut => {
                let Some(stream) = self.streams.at(slot) else { return Ok(()) };
                if event >= stream.next_event {
                    let fits = message.len()
                        <= StreamOut::new(&mut self.log, self.streams.slots_mut(), slot, false).capacity();
                    let is_next = self.streams.at(slot).is_some_and(|stream| stream.next_event == event);
                    if !fits || !is_next {
                        follow.is_cut = true;
                        self.cut_follow(key);
                        return Ok(());
                    }
                    self.write_followed(slot, |out| {
                        // As a notification, so that it waits while its reader has too much to read.
                        out.begin(MessageKind::Notification)?;
                        out.put(message)?;
                        out.end();
                        Ok(())
                    })?;
                }
                if let Some(fleet) = &mut self.fleet
                    && let Some(follow) = fleet.follows.by_stream.get_mut(&key)
                {
                    follow.note_answers(message);
                }
            }
            (CopyRecord::Cut, FollowState::Found(_)) => {
                follow.is_cut = true;
                self.cut_follow(key);
            }
            (CopyRecord::End(is_lost), FollowState::Found(_)) => {
                if !is_lost && !follow.is_cut {
                    // The others were cancelled.
                    follow.open.clear();
                }
                self.end_follow(key);
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens the local stream, if the session is the one that looks for it.
    fn begin_follow(&mut self, key: Origin, session: &Nonce, ids: CopiedIds<'_>) {
        let Some(fleet) = &mut self.fleet else { return };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key) else { return };
        let own =
            self.sealed.as_ref().and_then(|sealed| sealed.slot_of(session)).filter(|_| *session == follow.session);
        let Some(slot) = own.filter(|slot| self.sessions.get(*slot).is_some()) else {
            follow.state = FollowState::Unknown;
            return self.stop_reading(key);
        };
        follow.open = ids.map(Box::from).collect();
        let next = follow.after.saturating_add(1);
        let scope = self.sessions.get(slot).map_or_else(Default::default, |session| session.scope);
        let plan = Plan { session: Some(slot), route: 0, scope, resumable: true, primed: false };
        let place = self.streams.reserve_or_evict(&plan, &mut self.sessions, &mut self.log, self.now);
        if let Some(stream) = place.and_then(|place| self.streams.at_mut(place)) {
            (stream.purpose, stream.origin) = (Purpose::Followed, key);
            stream.begin_at(next);
        }
        let Some(fleet) = &mut self.fleet else { return };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key) else { return };
        follow.state = place.map_or(FollowState::Unavailable, FollowState::Found);
        if place.is_none() {
            self.stop_reading(key);
        }
    }

    /// Writes an event on a local stream.
    fn write_followed(
        &mut self,
        slot: u16,
        write: impl FnOnce(&mut StreamOut<'_, '_>) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        let mut out = StreamOut::new(&mut self.log, self.streams.slots_mut(), slot, false);
        let mark = out.mark();
        let written = write(&mut out);
        if written.is_err() {
            out.roll_back(mark);
        }
        drop(out);
        self.streams.stir(slot);
        written
    }

    /// Ends the connection of a stream whose further events only its own process has: the client comes again, and may find it.
    fn cut_follow(&mut self, key: Origin) {
        let follow = self.fleet.as_ref().and_then(|fleet| fleet.follows.by_stream.get(&key));
        match follow.map(|follow| follow.state) {
            Some(FollowState::Found(slot)) => self.streams.end(slot),
            Some(_) => self.make_unavailable(key),
            None => {}
        }
    }

    fn make_unavailable(&mut self, key: Origin) {
        self.stop_reading(key);
        if let Some(fleet) = &mut self.fleet
            && let Some(follow) = fleet.follows.by_stream.get_mut(&key)
        {
            follow.state = FollowState::Unavailable;
        }
    }

    /// Ends a stream: its end was read, or its process is gone. Requests without an answer get an error.
    fn end_follow(&mut self, key: Origin) {
        let Some(fleet) = &mut self.fleet else { return };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key) else { return };
        follow.has_ended = true;
        let FollowState::Found(slot) = follow.state else { return };
        while let Some(follow) = self.fleet.as_mut().and_then(|fleet| fleet.follows.by_stream.get_mut(&key))
            && let Some(id) = follow.open.pop()
        {
            let lost = RpcError::internal("The process that worked on this request has ended");
            if let Ok(raw) = Raw::parse(&id)
                && self.write_followed(slot, |out| write_error(out, Some(raw), &lost)).is_err()
            {
                let Some(fleet) = &mut self.fleet else { return };
                if let Some(follow) = fleet.follows.by_stream.get_mut(&key) {
                    follow.open.push(id);
                }
                return self.stall(key);
            }
        }
        if let Some(follow) = self.fleet.as_mut().and_then(|fleet| fleet.follows.by_stream.get_mut(&key)) {
            follow.is_over = true;
        }
        self.stop_reading(key);
        self.streams.end(slot);
    }

    /// Notes that all entries of a log were read.
    fn caught_up(&mut self, log: &str) {
        let Some(key) = read_log_name(log) else { return };
        let Some(fleet) = &mut self.fleet else { return };
        let life = match ProcessTag::new(key.tag) {
            own if own == fleet.tag => {
                match self.log.copies.as_ref().is_some_and(|copies| copies.is_open(key.number)) {
                    true => Life::Alive,
                    // The copy has ended, and its end is lost.
                    false => Life::Gone,
                }
            }
            process => fleet.life(process),
        };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key).filter(|follow| follow.reads.is_some()) else {
            return;
        };
        follow.has_caught_up = true;
        match follow.state {
            // Each of them is also among the looks, whose number is limited.
            FollowState::Looking if matches!(life, Life::Alive | Life::Unheard) => {
                fleet.follows.late.push_back((self.now, key));
            }
            FollowState::Looking => {
                follow.state = match life {
                    Life::Unknown => FollowState::Unavailable,
                    _ => FollowState::Unknown,
                };
                self.stop_reading(key);
            }
            FollowState::Found(_) if life == Life::Gone => self.end_follow(key),
            _ => {}
        }
    }

    /// Notes that a log is not read any more.
    fn read_over(&mut self, log: &str) {
        let Some(key) = read_log_name(log) else { return };
        let Some(fleet) = &mut self.fleet else { return };
        let Some(follow) = fleet.follows.by_stream.get_mut(&key) else { return };
        let Some(until) = follow.reads.take() else { return };
        match follow.state {
            FollowState::Looking => follow.state = FollowState::Unavailable,
            FollowState::Found(_) if until <= self.now => self.read_on(key),
            // The database is away. The client comes again.
            FollowState::Found(slot) => self.streams.end(slot),
            _ => {}
        }
    }

    /// Ends the streams of a process that is gone.
    pub(crate) fn followed_left(&mut self, process: ProcessTag) {
        let Some(fleet) = &self.fleet else { return };
        let tag = process.number();
        let of = Origin { tag, slot: 0, number: 0 }..=Origin { tag, slot: u16::MAX, number: u64::MAX };
        let left =
            fleet.follows.by_stream.range(of).filter(|(_, follow)| follow.has_caught_up && follow.reads.is_some());
        for key in left.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.end_follow(key);
        }
    }

    /// Waits with the next event of a stream until readers have made room.
    fn stall(&mut self, key: Origin) {
        if let Some(fleet) = &mut self.fleet {
            fleet.follows.stalled.push((key, self.log.available()));
        }
    }

    /// Goes on with the streams that have room again.
    fn read_on_stalled(&mut self) {
        let Some(fleet) = &mut self.fleet else { return };
        let stalled = core::mem::take(&mut fleet.follows.stalled);
        for (key, blocks) in stalled {
            let Some(fleet) = &mut self.fleet else { return };
            let Some(follow) = fleet.follows.by_stream.get(&key) else { continue };
            let FollowState::Found(slot) = follow.state else { continue };
            let log = &self.log;
            let waits = |stream: &Stream| {
                // Reading the same entry again would find no room again.
                stream.unread() > 0 || (log.is_taken_by_others(&stream.chain) && log.available() <= blocks)
            };
            if self.streams.at(slot).is_some_and(waits) {
                fleet.follows.stalled.push((key, blocks));
            } else if follow.has_ended {
                self.end_follow(key);
            } else {
                self.read_on(key);
            }
        }
    }

    /// Goes on with the streams that have room again, and forgets looks whose clients did not ask again.
    pub(crate) fn tend_follows(&mut self, now: Millis) {
        if let Some(copies) = &mut self.log.copies {
            copies.tick(now, self.config.resume_within);
        }
        self.forget_unfollowed();
        self.read_on_stalled();
        let within = self.config.resume_within / 2;
        while let Some(fleet) = &mut self.fleet
            && let Some(&(since, key)) = fleet.follows.read.front()
            && now.saturating_sub(since) >= within.max(1)
        {
            fleet.follows.read.pop_front();
            let follow = fleet.follows.by_stream.get_mut(&key).filter(|follow| follow.informed_at == since);
            if let Some(Follow { state: FollowState::Found(slot), has_ended: false, informed_at, .. }) = follow {
                let slot = *slot;
                *informed_at = now;
                fleet.follows.read.push_back((now, key));
                if self.streams.at(slot).is_some_and(Stream::is_attached) {
                    // The process keeps what it has, and the questions, for this client.
                    self.inform_owner(key, slot);
                }
            }
        }
        while let Some(fleet) = &mut self.fleet
            && let Some(&(since, key)) = fleet.follows.late.front()
            && now.saturating_sub(since) >= GRACE
        {
            fleet.follows.late.pop_front();
            if let Some(follow) = fleet.follows.by_stream.get_mut(&key)
                && follow.state == FollowState::Looking
            {
                follow.state = FollowState::Unknown;
                self.stop_reading(key);
            }
        }
        while let Some(fleet) = &mut self.fleet
            && let Some(&(since, key)) = fleet.follows.looks.front()
            && now.saturating_sub(since) >= LOOK
        {
            fleet.follows.looks.pop_front();
            match fleet.follows.by_stream.get(&key).map(|follow| follow.state) {
                Some(FollowState::Looking) => {
                    self.make_unavailable(key);
                    if let Some(fleet) = &mut self.fleet {
                        fleet.follows.looks.push_back((now, key));
                    }
                }
                Some(FollowState::Found(slot)) if self.streams.at(slot).is_some_and(|stream| stream.number != 0) => {}
                Some(_) => self.drop_follow(key),
                None => {}
            }
        }
    }

    /// Ends what is resumed here, because the engine is away: the clients come again.
    pub(crate) fn leave_followed(&mut self) {
        let Some(fleet) = &self.fleet else { return };
        for key in fleet.follows.by_stream.keys().copied().collect::<Vec<_>>() {
            self.stop_reading(key);
            let Some(follow) = self.fleet.as_mut().and_then(|fleet| fleet.follows.by_stream.get_mut(&key)) else {
                continue;
            };
            match follow.state {
                FollowState::Looking => follow.state = FollowState::Unavailable,
                FollowState::Found(slot) => self.streams.end(slot),
                _ => {}
            }
        }
    }
}

/// Returns `true` if a stream has the events of another one.
fn follows(stream: &Stream, origin: Origin) -> bool {
    stream.purpose == Purpose::Followed && stream.origin == origin
}
