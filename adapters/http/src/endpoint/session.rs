//! Sessions of the legacy revisions, and their principals. No step costs more with more sessions; to open one costs more with more
//! sessions of its principal, whose number is limited.

use mcp_sansio::memory::Slots;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Millis, Peer, Scope};

use super::ids::{Principal, SessionId, StreamId};
use super::list::{Free, Links, List};

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
    principal: Principal,
    /// The hash of the name of the principal.
    hash: u32,
    /// The session is in the list of those that sent nothing after `initialize`.
    begun: bool,
    idle: Links,
    /// Its neighbours in its row of the index.
    kin: Links,
    /// A row of the index: it has other sessions.
    row: List,
}

const IDLE: fn(&mut Session) -> &mut Links = |session| &mut session.idle;
const KIN: fn(&mut Session) -> &mut Links = |session| &mut session.kin;

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
        principal: Principal::NOBODY,
        hash: 0,
        begun: false,
        idle: Links::NONE,
        kin: Links::NONE,
        row: List::EMPTY,
    };

    /// Returns whether its streams begin with an event without a message.
    pub(crate) fn primes_streams(&self) -> bool {
        self.peer.revision().is_some_and(Revision::primes_streams)
    }
}

/// Sessions without an open stream, except those of 2024-11-05. The last used one is at the end.
#[derive(Debug)]
struct Idle {
    /// Sessions that sent nothing after `initialize`.
    begun: List,
    others: List,
}

impl Idle {
    const fn of(&mut self, begun: bool) -> &mut List {
        if begun { &mut self.begun } else { &mut self.others }
    }
}

/// A principal, with a hash of its name. Clients do not know the key of the hash.
pub(crate) type Hashed<'p> = (&'p str, u64);

/// The sessions of an endpoint.
///
/// An index finds the sessions of a principal. It has as many rows as there are slots (linear hashing): when the table grows by
/// one slot, one row is split.
#[derive(Debug)]
pub(crate) struct Sessions<'m> {
    slots: Slots<'m, Session>,
    free: Free,
    pub(crate) live: usize,
    idle: Idle,
}

impl<'m> Sessions<'m> {
    pub(crate) fn new(mut slots: Slots<'m, Session>) -> Self {
        slots.as_mut_slice().fill(Session::FREE);
        Sessions { slots, free: Free::ALL, live: 0, idle: Idle { begun: List::EMPTY, others: List::EMPTY } }
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

    /// Returns all open sessions, or those of one principal.
    pub(crate) fn all_mut(&mut self, principal: Option<&str>) -> impl Iterator<Item = &mut Session> {
        let is_meant = move |session: &&mut Session| principal.is_none() || session.principal.name() == principal;
        self.slots.as_mut_slice().iter_mut().filter(|session| session.live).filter(is_meant)
    }

    /// Returns the principal of a session.
    pub(crate) fn principal(&self, slot: u16) -> Option<&str> {
        self.get(slot)?.principal.name()
    }

    /// Returns the session with an id, if it belongs to this principal. A session of another one counts as
    /// unknown.
    pub(crate) fn find(&self, id: &[u8], principal: Option<&str>) -> Option<u16> {
        self.check(SessionId::slot_of(id)?, id, principal)
    }

    /// Returns the slot, if the session in it has this id and belongs to this principal.
    pub(crate) fn check(&self, slot: u16, id: &[u8], principal: Option<&str>) -> Option<u16> {
        let session = self.get(slot)?;
        (session.id.is(id) && session.principal.name() == principal).then_some(slot)
    }

    /// Returns the sessions of a principal.
    pub(crate) fn of(&self, (name, hash): Hashed<'_>) -> impl Iterator<Item = (u16, &Session)> {
        let (slots, owner) = (self.slots.as_slice(), Principal::new(Some(name)));
        let row = slots.get(row_of(hash as u32, slots.len())).map_or(List::EMPTY, |first| first.row);
        // Bytes are compared: a session costs some ten instructions, and a principal may have a thousand.
        self.listed(row, |session| session.kin).filter(move |(_, session)| session.principal == owner)
    }

    fn listed(&self, list: List, links: fn(&Session) -> Links) -> impl Iterator<Item = (u16, &Session)> {
        let at = |slot: u16| Some((slot, self.get(slot)?));
        core::iter::successors(list.first().and_then(at), move |(_, session)| links(session).next().and_then(at))
    }

    /// Opens a session in a free slot; `name` gives its id.
    pub(crate) fn open(
        &mut self,
        principal: Option<Hashed<'_>>,
        old: bool,
        now: Millis,
        name: impl FnOnce(u16) -> (SessionId, Scope),
    ) -> Option<u16> {
        let before = self.slots.as_slice().len();
        let slot = self.free.take(&mut self.slots, Session::FREE, IDLE)?;
        if self.slots.as_slice().len() > before {
            self.split_row(before);
        }
        let session = self.slots.as_mut_slice().get_mut(usize::from(slot))?;
        let ((id, scope), row) = (name(slot), session.row);
        let (principal, hash) = principal.map_or((None, 0), |(name, hash)| (Some(name), hash as u32));
        let owner = Principal::new(principal);
        *session = Session { live: true, id, scope, old, principal: owner, hash, row, ..Session::FREE };
        if principal.is_some() {
            self.index(slot, true);
        }
        self.live += 1;
        self.touch(slot, now);
        Some(slot)
    }

    /// Closes a session. Its streams are still linked to it.
    pub(crate) fn close(&mut self, slot: u16) {
        self.strike(slot);
        self.index(slot, false);
        let Some(session) = self.get_mut(slot) else { return };
        (session.live, session.id, session.peer) = (false, SessionId::NONE, Peer::NEW);
        self.live -= 1;
        self.free.give_back(self.slots.as_mut_slice(), slot, IDLE);
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
        if let Some(session) = self.get_mut(slot).filter(|_| is_idle) {
            session.begun = begun;
            self.idle.of(begun).push(self.slots.as_mut_slice(), slot, IDLE);
        }
    }

    /// Removes a session from the idle ones.
    fn strike(&mut self, slot: u16) {
        if let Some(begun) = self.get(slot).map(|session| session.begun) {
            self.idle.of(begun).remove(self.slots.as_mut_slice(), slot, IDLE);
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
    pub(crate) fn spare(&self, principal: Option<Hashed<'_>>, rest: Millis, now: Millis) -> Option<u16> {
        let is_spare = |(_, session): &(u16, &Session)| session.waiting == 0 && session.idle.are_listed();
        let (slot, session) = match principal {
            Some(own) => self.of(own).filter(is_spare).min_by_key(|(_, session)| (!session.begun, session.used))?,
            None => {
                let lists = [self.idle.begun, self.idle.others];
                // It passes over at most as many sessions as there are requests in flight.
                lists.into_iter().flat_map(|list| self.listed(list, |session| session.idle)).find(is_spare)?
            }
        };
        (session.begun || now.saturating_sub(session.used) >= rest).then_some(slot)
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

    /// Puts a session into its row of the index, or removes it if it is there.
    fn index(&mut self, slot: u16, is_new: bool) {
        let rows = self.slots.as_slice().len();
        let Some(row) = self.get(slot).map(|session| row_of(session.hash, rows)) else { return };
        let slots = self.slots.as_mut_slice();
        let Some(mut list) = slots.get(row).map(|first| first.row) else { return };
        match is_new {
            true => list.push(slots, slot, KIN),
            false => list.remove(slots, slot, KIN),
        }
        if let Some(first) = slots.get_mut(row) {
            first.row = list;
        }
    }

    /// Splits a row after the table has grown by the slot `new`: some of its sessions move to the new row.
    fn split_row(&mut self, new: usize) {
        let row = new - (new + 1).next_power_of_two() / 2;
        let Some(row) = self.slots.as_mut_slice().get_mut(row).map(|first| &mut first.row) else { return };
        let mut at = core::mem::replace(row, List::EMPTY).first();
        while let Some(slot) = at {
            at = self.get(slot).and_then(|session| session.kin.next());
            self.index(slot, true);
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
