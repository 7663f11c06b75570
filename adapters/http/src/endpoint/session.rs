//! Sessions of the legacy revisions, and their principals. No step costs more with more sessions.

use mcp_sansio::memory::Slots;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Millis, Peer, Scope};

use super::ids::{Principal, SessionId, StreamId};
use super::list::{Free, Links, List};

/// In place of the number of a slot: none.
const NONE: u16 = u16::MAX;

/// A session
/// ([session management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports)).
#[derive(Clone, Debug)]
pub struct Session {
    live: bool,
    pub(crate) id: SessionId,
    pub(crate) scope: Scope,
    pub(crate) peer: Peer,
    /// The time of its last use: by a request, or by a stream that was open until then.
    used: Millis,
    /// The stream for messages that belong to no request.
    pub(crate) stream: Option<StreamId>,
    /// The session is of 2024-11-05: it ends with its stream.
    pub(crate) old: bool,
    /// Its streams, linked through their slots.
    pub(crate) streams: List,
    /// Number of its streams that are attached.
    attached: u16,
    /// Number of its other streams on which a request in flight will be answered.
    waiting: u16,
    /// The record of its owner; [`NONE`] without a principal.
    owner: u16,
    /// The session is in the list of those that sent nothing after `initialize`.
    begun: bool,
    idle: Links,
    idle_of_owner: Links,
    // The rest belongs to other sessions: a record of some principal, and the first owner of a row of the index.
    record: Owner,
    row: u16,
}

impl Session {
    /// A slot without a session.
    pub const FREE: Session = Session {
        live: false,
        id: SessionId::NONE,
        scope: Scope(0),
        peer: Peer::NEW,
        used: 0,
        stream: None,
        old: false,
        streams: List::EMPTY,
        attached: 0,
        waiting: 0,
        owner: NONE,
        begun: false,
        idle: Links::NONE,
        idle_of_owner: Links::NONE,
        record: Owner::FREE,
        row: NONE,
    };

    /// Returns whether its streams begin with an event without a message.
    pub(crate) fn primes_streams(&self) -> bool {
        self.peer.revision().is_some_and(Revision::primes_streams)
    }
}

/// A principal that has sessions. There are at most as many as sessions, so each slot has room for one.
#[derive(Clone, Copy, Debug)]
struct Owner {
    principal: Principal,
    hash: u32,
    sessions: u16,
    idle: Idle,
    /// The next one in the same row of the index, or the next free record.
    next: u16,
}

impl Owner {
    const FREE: Owner = Owner { principal: Principal::NOBODY, hash: 0, sessions: 0, idle: Idle::NONE, next: NONE };
}

/// Sessions without an open stream, except those of 2024-11-05. The last used one is at the end.
#[derive(Clone, Copy, Debug)]
struct Idle {
    /// Sessions that sent nothing after `initialize`.
    begun: List,
    others: List,
}

impl Idle {
    const NONE: Idle = Idle { begun: List::EMPTY, others: List::EMPTY };

    const fn of(&mut self, begun: bool) -> &mut List {
        if begun { &mut self.begun } else { &mut self.others }
    }
}

/// A principal, with a hash of its name. Clients do not know the key of the hash.
pub(crate) type Hashed<'p> = Option<(&'p str, u64)>;

/// The sessions of an endpoint.
///
/// An index finds principals. It has as many rows as there are slots (linear hashing): when the table grows by
/// one slot, one row is split.
#[derive(Debug)]
pub(crate) struct Sessions<'m> {
    slots: Slots<'m, Session>,
    free: Free,
    pub(crate) live: usize,
    idle: Idle,
    /// The first free record of an owner that was in use, and the first that never was.
    free_owner: u16,
    fresh_owner: u16,
}

impl<'m> Sessions<'m> {
    pub(crate) fn new(mut slots: Slots<'m, Session>) -> Self {
        slots.as_mut_slice().fill(Session::FREE);
        Sessions { slots, free: Free::ALL, live: 0, idle: Idle::NONE, free_owner: NONE, fresh_owner: 0 }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.free.has_any(&self.slots)
    }

    pub(crate) fn get(&self, slot: u16) -> Option<&Session> {
        self.slots.as_slice().get(usize::from(slot)).filter(|session| session.live)
    }

    pub(crate) fn get_mut(&mut self, slot: u16) -> Option<&mut Session> {
        self.slots.as_mut_slice().get_mut(usize::from(slot)).filter(|session| session.live)
    }

    /// Returns the number of places for sessions.
    pub(crate) fn capacity(&self) -> u16 {
        self.slots.as_slice().len() as u16
    }

    /// Returns all open sessions.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.as_mut_slice().iter_mut().filter(|session| session.live)
    }

    /// Returns the principal of a session.
    pub(crate) fn principal(&self, slot: u16) -> Option<&str> {
        self.record(self.get(slot)?.owner)?.principal.name()
    }

    /// Returns the session with an id, if it belongs to this principal. A session of another one counts as
    /// unknown.
    pub(crate) fn find(&self, id: &[u8], principal: Option<&str>) -> Option<u16> {
        let slot = SessionId::slot_of(id)?;
        let session = self.get(slot)?;
        (session.id.is(id) && self.principal(slot) == principal).then_some(slot)
    }

    /// Returns the number of sessions of a principal.
    pub(crate) fn count_of(&self, principal: Hashed<'_>) -> usize {
        let owner = self.owner_of(principal).and_then(|owner| self.record(owner));
        owner.map_or(0, |owner| usize::from(owner.sessions))
    }

    /// Opens a session in a free slot; `name` gives its id.
    pub(crate) fn open(
        &mut self,
        principal: Hashed<'_>,
        old: bool,
        now: Millis,
        name: impl FnOnce(u16) -> (SessionId, Scope),
    ) -> Option<u16> {
        let before = self.slots.as_slice().len();
        let slot = self.free.take(&mut self.slots, Session::FREE, |session| &mut session.idle)?;
        if self.slots.as_slice().len() > before {
            self.split_row(before);
        }
        let owner = principal.map_or(NONE, |(name, hash)| {
            let owner = self.owner_of(Some((name, hash))).unwrap_or_else(|| self.add_owner(name, hash as u32));
            if let Some(record) = self.record_mut(owner) {
                record.sessions += 1;
            }
            owner
        });
        let session = self.slots.as_mut_slice().get_mut(usize::from(slot))?;
        let ((id, scope), record, row) = (name(slot), session.record, session.row);
        *session = Session { live: true, id, scope, old, owner, record, row, ..Session::FREE };
        self.live += 1;
        self.touch(slot, now);
        Some(slot)
    }

    /// Closes a session. Its streams are still linked to it.
    pub(crate) fn close(&mut self, slot: u16) {
        self.strike(slot);
        let Some(session) = self.get_mut(slot) else { return };
        (session.live, session.id, session.peer) = (false, SessionId::NONE, Peer::NEW);
        let owner = session.owner;
        self.live -= 1;
        if let Some(record) = self.record_mut(owner) {
            record.sessions -= 1;
            if record.sessions == 0 {
                self.drop_owner(owner);
            }
        }
        self.free.give_back(self.slots.as_mut_slice(), slot, |session| &mut session.idle);
    }

    /// Notes that a session is in use: among idle sessions it becomes the last to be ended.
    pub(crate) fn touch(&mut self, slot: u16, now: Millis) {
        let Some(session) = self.get_mut(slot) else { return };
        session.used = now;
        let begun = !session.peer.is_initialized();
        let is_idle = !session.old && session.attached == 0;
        if is_idle && session.begun == begun && self.idle.of(begun).last() == Some(slot) {
            return;
        }
        self.strike(slot);
        let slots = self.slots.as_mut_slice();
        let Some(session) = slots.get_mut(usize::from(slot)).filter(|_| is_idle) else { return };
        session.begun = begun;
        let owner = usize::from(session.owner);
        self.idle.of(begun).push(slots, slot, |session| &mut session.idle);
        if let Some(mut idle) = slots.get(owner).map(|owner| owner.record.idle) {
            idle.of(begun).push(slots, slot, |session| &mut session.idle_of_owner);
            if let Some(owner) = slots.get_mut(owner) {
                owner.record.idle = idle;
            }
        }
    }

    /// Removes a session from the idle ones.
    fn strike(&mut self, slot: u16) {
        let slots = self.slots.as_mut_slice();
        let Some(session) = slots.get(usize::from(slot)).filter(|session| session.idle.are_listed()) else { return };
        let (begun, owner) = (session.begun, usize::from(session.owner));
        self.idle.of(begun).remove(slots, slot, |session| &mut session.idle);
        if let Some(mut idle) = slots.get(owner).map(|owner| owner.record.idle) {
            idle.of(begun).remove(slots, slot, |session| &mut session.idle_of_owner);
            if let Some(owner) = slots.get_mut(owner) {
                owner.record.idle = idle;
            }
        }
    }

    /// Returns the streams that belong to a session, or did when it was closed.
    pub(crate) fn streams_mut(&mut self, slot: u16) -> Option<&mut List> {
        self.slots.as_mut_slice().get_mut(usize::from(slot)).map(|session| &mut session.streams)
    }

    /// Notes changes in the numbers of a session's attached streams and of those with a waiting request.
    pub(crate) fn count_streams(&mut self, slot: u16, attached: i8, waiting: i8, now: Millis) {
        let Some(session) = self.get_mut(slot) else { return };
        session.attached = session.attached.saturating_add_signed(attached.into());
        session.waiting = session.waiting.saturating_add_signed(waiting.into());
        if attached != 0 {
            self.touch(slot, now);
        }
    }

    /// Returns the session to end for another one: of `principal`, or of all without a principal. First one that
    /// sent nothing after `initialize`, else the one used longest ago, if that is at least `rest` ago. A session
    /// with a request in flight is never returned.
    pub(crate) fn spare(&self, principal: Hashed<'_>, rest: Millis, now: Millis) -> Option<u16> {
        let owner = principal.map(|_| self.owner_of(principal).unwrap_or(NONE));
        let mut idle = match owner {
            Some(owner) => self.record(owner)?.idle,
            None => self.idle,
        };
        for begun in [true, false] {
            let mut at = idle.of(begun).first();
            // It passes over at most as many sessions as there are requests in flight.
            while let Some((slot, session)) = at.and_then(|slot| Some((slot, self.get(slot)?))) {
                if session.waiting == 0 {
                    if begun || now.saturating_sub(session.used) >= rest {
                        return Some(slot);
                    }
                    break;
                }
                at = if owner.is_some() { session.idle_of_owner } else { session.idle }.next();
            }
        }
        None
    }

    /// Limits all times of use to `now`, after the clock was set back, so that the lists stay in their order.
    pub(crate) fn set_back(&mut self, now: Millis) {
        for session in self.slots.as_mut_slice() {
            session.used = session.used.min(now);
        }
    }

    /// Returns the idle session that was used longest ago, and the time of its use.
    pub(crate) fn oldest(&self) -> Option<(u16, Millis)> {
        let first = |list: List| list.first().and_then(|slot| Some((slot, self.get(slot)?.used)));
        first(self.idle.begun).into_iter().chain(first(self.idle.others)).min_by_key(|(_, used)| *used)
    }

    fn record(&self, owner: u16) -> Option<&Owner> {
        self.slots.as_slice().get(usize::from(owner)).map(|slot| &slot.record).filter(|_| owner != NONE)
    }

    fn record_mut(&mut self, owner: u16) -> Option<&mut Owner> {
        self.slots.as_mut_slice().get_mut(usize::from(owner)).map(|slot| &mut slot.record).filter(|_| owner != NONE)
    }

    /// Returns the row of the index for a hash.
    fn row_of(&mut self, hash: u32) -> Option<&mut u16> {
        let row = row_of(hash, self.slots.as_slice().len());
        self.slots.as_mut_slice().get_mut(row).map(|slot| &mut slot.row)
    }

    fn owner_of(&self, principal: Hashed<'_>) -> Option<u16> {
        let (name, hash) = principal?;
        let row = row_of(hash as u32, self.slots.as_slice().len());
        let mut at = self.slots.as_slice().get(row)?.row;
        while let Some(owner) = self.record(at).filter(|owner| owner.principal.name() != Some(name)) {
            at = owner.next;
        }
        Some(at).filter(|at| *at != NONE)
    }

    fn add_owner(&mut self, name: &str, hash: u32) -> u16 {
        let owner = match self.record(self.free_owner).map(|free| free.next) {
            Some(next) => core::mem::replace(&mut self.free_owner, next),
            None => {
                self.fresh_owner += 1;
                self.fresh_owner - 1
            }
        };
        if let Some(record) = self.record_mut(owner) {
            *record = Owner { principal: Principal::new(Some(name)), hash, ..Owner::FREE };
        }
        self.index_owner(owner, hash);
        owner
    }

    fn index_owner(&mut self, owner: u16, hash: u32) {
        let next = self.row_of(hash).map_or(NONE, |row| core::mem::replace(row, owner));
        if let Some(record) = self.record_mut(owner) {
            record.next = next;
        }
    }

    fn drop_owner(&mut self, owner: u16) {
        let Some(&Owner { hash, next, .. }) = self.record(owner) else { return };
        let mut at = self.row_of(hash).copied().unwrap_or(NONE);
        if at == owner
            && let Some(row) = self.row_of(hash)
        {
            *row = next;
        }
        while let Some(record) = self.record_mut(at).filter(|_| at != owner) {
            if record.next == owner {
                record.next = next;
            }
            at = record.next;
        }
        let free = core::mem::replace(&mut self.free_owner, owner);
        if let Some(record) = self.record_mut(owner) {
            *record = Owner { next: free, ..Owner::FREE };
        }
    }

    /// Splits a row after the table has grown by the slot `new`: some of its owners move to the new row.
    fn split_row(&mut self, new: usize) {
        let row = new - (new + 1).next_power_of_two() / 2;
        let mut at = match self.slots.as_mut_slice().get_mut(row) {
            Some(slot) => core::mem::replace(&mut slot.row, NONE),
            None => NONE,
        };
        while let Some(&Owner { hash, next, .. }) = self.record(at) {
            self.index_owner(at, hash);
            at = next;
        }
    }
}

/// Returns the row of a hash among `rows` rows.
fn row_of(hash: u32, rows: usize) -> usize {
    let size = rows.next_power_of_two();
    let row = hash as usize & (size - 1);
    if row < rows { row } else { row & (size / 2).saturating_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::row_of;

    /// A table that grows by a row moves hashes of one other row to it, and no others.
    #[test]
    fn rows_of_a_growing_table() {
        for rows in 1..40_usize {
            let split = rows - (rows + 1).next_power_of_two() / 2;
            for hash in 0..200 {
                let (before, after) = (row_of(hash, rows), row_of(hash, rows + 1));
                assert!(before < rows && (after == before || (before, after) == (split, rows)), "{rows} {hash}");
            }
            assert_eq!(row_of(rows as u32, rows + 1), rows);
        }
    }
}
