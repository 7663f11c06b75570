//! Session ids that carry their session: any process with the key serves it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use mcp_sansio::json::write::{base64url, decode_base64url};
use mcp_sansio::protocol::ClientCapabilities;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{AssociatedData, Millis, Peer, Seal};
use mcp_sansio::sink::LineSink;

use super::ids::SessionId;
use super::legacy::NoSession;
use super::{App, Endpoint, Turn};

/// Stands for a method in the data that the seal is bound to: no `requestState` has it.
const METHOD: &str = "Mcp-Session-Id";

/// The first byte of what is sealed. A later format has another one.
const FORMAT: u8 = 1;

/// Length of what is sealed: format, end, revision, capabilities.
const STATE: usize = 1 + END + 1 + 2;
const END: usize = 6;

/// Number of characters of the unsealed part of an id: 12 random bytes.
pub(crate) const NONCE: usize = 16;

/// The longest id.
const LONGEST: usize = 128;

/// The limit of the sealed bytes, so that an id is not longer.
const SEALED: usize = (LONGEST - NONCE) / 4 * 3;

/// The beginning of an id, by which its session is found.
pub(crate) type Nonce = [u8; NONCE];

/// Makes the ids of sessions carry what `initialize` negotiated: revision and capabilities of the client. An id is sealed, bound to
/// its principal, and has an end. Each endpoint with a seal of the same key serves such a session, wherever it was opened:
/// it opens the session again from the id, within its limits for sessions.
///
/// By itself it carries no more: open event streams and their events stay with their endpoint, and so do requests in flight with
/// their questions, subscriptions, and the level of `logging/setLevel`; a session that was ended (DELETE) is over only at the
/// endpoint that ended it, unless there is a [fleet](super::Fleet). Endpoints with one key must run the same version of the service, with the same table of extensions, and have the same clock.
///
/// Without it, an id is random and its session is known to one endpoint. Sessions of 2024-11-05 (HTTP+SSE) always live on their
/// stream, at one endpoint.
///
/// ```
/// use mcp_sansio::server::{MessageLimits, Server};
/// use mcp_sansio_http::endpoint::{Endpoint, EndpointConfig, EndpointLimits, SessionSeal};
/// use mcp_sansio_http::seal::HmacSeal;
///
/// let (key, old) = ([7; 32], [6; 32]); // better: secure random bytes, shared by all processes
/// let seal = HmacSeal::new(&key).accept(&old);
/// let sessions = SessionSeal::new(&seal).lifetime(8 * 3_600_000);
/// let server = Server::growing(MessageLimits::default());
/// let endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default()).seal_sessions(sessions);
/// # let _ = endpoint;
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct SessionSeal<'m> {
    seal: &'m (dyn Seal + Sync),
    lifetime: Millis,
    ended: usize,
}

impl<'m> SessionSeal<'m> {
    /// Makes sessions that last 24 hours. The seal may be the one of `requestState`: its own lifetime does not count here. It
    /// may add at most 74 bytes; with one that adds more, sessions stay with their process.
    pub const fn new(seal: &'m (dyn Seal + Sync)) -> Self {
        SessionSeal { seal, lifetime: 24 * 3_600_000, ended: 100_000 }
    }

    mcp_sansio::const_setters! {
        /// Sets the milliseconds from `initialize` to the end of a session. Use does not prolong it; the client then gets 404, and
        /// initializes anew. Default: 24 hours.
        lifetime(millis: Millis) => lifetime = millis;
        /// Sets the number of ended sessions (DELETE) that are remembered until their time is over. Beyond it, the one that is
        /// over first is forgotten: its id would open it again. In a [fleet](super::Fleet) those that stay at other processes are among them.
        /// Each takes some 100 bytes. Default: 100,000.
        ended(most: usize) => ended = most;
    }
}

mcp_sansio::debug_fields!(impl for SessionSeal<'_> { lifetime, ended });

/// A session with a sealed id.
#[derive(Clone, Copy)]
enum Known {
    /// Its slot, and the time of its end. `true`: the other processes do not serve it.
    Open(u16, Millis, bool),
    /// The client has ended it, or another process serves it alone.
    Ended,
}

/// The sessions of an endpoint that have sealed ids.
pub(crate) struct SealedSessions<'m> {
    with: SessionSeal<'m>,
    known: BTreeMap<Nonce, Known>,
    /// The ended ones, in the order of their ends.
    ended: BTreeSet<(Millis, Nonce)>,
}

impl<'m> SealedSessions<'m> {
    pub(crate) const fn new(with: SessionSeal<'m>) -> Self {
        SealedSessions { with, known: BTreeMap::new(), ended: BTreeSet::new() }
    }

    /// Seals an open session. Returns its id; `None` if the seal needs too much room.
    pub(crate) fn seal(
        &mut self,
        slot: u16,
        peer: &Peer,
        principal: Option<&str>,
        now: Millis,
        random: [u8; NONCE / 4 * 3],
    ) -> Option<SessionId> {
        let revision = Revision::ALL.iter().position(|known| Some(*known) == peer.revision())? as u8;
        let end = now.saturating_add(self.with.lifetime);
        let mut state = [0; STATE];
        let end_bytes = end.to_be_bytes();
        let parts = [FORMAT].into_iter().chain(end_bytes.into_iter().skip(8 - END)).chain([revision]);
        for (place, byte) in state.iter_mut().zip(parts.chain(peer.capabilities.to_bits().to_be_bytes())) {
            *place = byte;
        }
        let mut id = LineSink::new(Vec::with_capacity(LONGEST));
        base64url(&mut id, &random).ok()?;
        let nonce = *id.pending().first_chunk()?;
        let mut sealed = [0; SEALED];
        let len = self.with.seal.seal(&bound(&nonce, principal), &state, &mut sealed).ok()?;
        base64url(&mut id, sealed.get(..len)?).ok()?;
        self.known.insert(nonce, Known::Open(slot, end, false));
        Some(SessionId::sealed(id.into_inner()))
    }

    /// Reads an id of a session that this endpoint has not seen. Returns the time of its end, and what was negotiated.
    fn open(&self, given: &[u8], nonce: Nonce, principal: Option<&str>) -> Option<(Millis, Peer)> {
        let mut sealed = [0; SEALED];
        let len = decode_base64url(given.get(NONCE..).filter(|_| given.len() <= LONGEST)?, &mut sealed)?;
        let mut state = [0; STATE];
        let opened = self.with.seal.open(&bound(&nonce, principal), sealed.get(..len)?, &mut state).ok()?;
        let [FORMAT, e0, e1, e2, e3, e4, e5, revision, c0, c1] = state else { return None };
        if opened != STATE {
            return None;
        }
        let revision = *Revision::ALL.get(usize::from(revision))?;
        let client = ClientCapabilities::from_bits(u16::from_be_bytes([c0, c1]));
        Some((Millis::from_be_bytes([0, 0, e0, e1, e2, e3, e4, e5]), Peer::opened_elsewhere(revision, client)))
    }

    /// Notes that this process alone serves a session, or ends it. Returns its nonce and the time of its end, the first time.
    pub(crate) fn keep_here(&mut self, id: &SessionId) -> Option<(Nonce, Millis)> {
        let nonce = nonce_of(id.as_str().as_bytes())?;
        let Known::Open(_, end, is_alone) = self.known.get_mut(&nonce)? else { return None };
        (!core::mem::replace(is_alone, true)).then_some((nonce, *end))
    }

    /// Forgets a session that was closed: its id may open it again. `true`: its client has ended it, and the id is good no
    /// more.
    pub(crate) fn close(&mut self, id: &SessionId, for_good: bool, now: Millis) {
        let Some(nonce) = nonce_of(id.as_str().as_bytes()) else { return };
        let Some(&Known::Open(_, end, _)) = self.known.get(&nonce) else { return };
        if !for_good {
            self.known.remove(&nonce);
            return;
        }
        self.remember_ended(nonce, end, now);
    }

    /// Notes that the client of a session has ended it, or another process serves it alone. Returns its slot, if it was open here.
    fn remember_ended(&mut self, nonce: Nonce, end: Millis, now: Millis) -> Option<u16> {
        let slot = match self.known.insert(nonce, Known::Ended) {
            Some(Known::Ended) => return None,
            Some(Known::Open(slot, ..)) => Some(slot),
            None => None,
        };
        self.ended.insert((end, nonce));
        while let Some(&(end, nonce)) = self.ended.first()
            && (end <= now || self.ended.len() > self.with.ended)
        {
            self.ended.pop_first();
            self.known.remove(&nonce);
        }
        slot
    }
}

impl<'m> Endpoint<'m> {
    /// Makes session ids that other processes with the same key know too, see [`SessionSeal`].
    #[must_use]
    pub fn seal_sessions(self, seal: SessionSeal<'m>) -> Self {
        Endpoint { sealed: Some(SealedSessions::new(seal)), ..self }
    }

    /// Ends a session that another process has ended, or serves alone: its requests get 404 until its id is over. `session` is the
    /// beginning of its sealed id.
    pub fn end_session_here<S>(&mut self, app: &mut App<'_, S>, session: &[u8; 16], until: Millis) {
        if let Some(sealed) = &mut self.sealed {
            let slot = sealed.remember_ended(*session, until, self.now);
            slot.into_iter().for_each(|slot| self.end_session(app, slot));
        }
    }

    /// Ends a session at the other processes, once.
    pub(crate) fn end_elsewhere(&mut self, slot: u16) {
        if let (Some(fleet), Some(sealed), Some(session)) = (&mut self.fleet, &mut self.sealed, self.sessions.get(slot))
            && let Some((nonce, until)) = sealed.keep_here(&session.id)
        {
            fleet.end_session(&nonce, until);
        }
    }

    /// Notes that a session is closed, see [`SealedSessions::close`].
    pub(crate) fn close_sealed(&mut self, slot: u16, for_good: bool) {
        if let (Some(sealed), Some(session)) = (&mut self.sealed, self.sessions.get(slot)) {
            sealed.close(&session.id, for_good, self.now);
        }
    }

    /// Seals a session that was just opened. Returns its id; `None` if ids are not sealed.
    pub(crate) fn sealed_id<S>(&mut self, slot: u16, turn: &mut Turn<'_, '_, S>) -> Option<SessionId> {
        let (sealed, session) = (self.sealed.as_mut()?, self.sessions.get_mut(slot)?);
        let mut bytes = [0; 12];
        (turn.random)(&mut bytes);
        session.id = sealed.seal(slot, &session.peer, turn.principal, self.now, bytes)?;
        Some(session.id.clone())
    }

    /// Returns the session of a sealed id. Opens it anew if another endpoint has opened it. `None` if the id is not sealed.
    #[inline]
    pub(crate) fn sealed_session<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        given: &[u8],
    ) -> Option<Result<u16, NoSession>> {
        let is_sealed = self.sealed.is_some() && given.len() > SessionId::LEN;
        is_sealed.then(|| self.find_sealed(turn, given))
    }

    #[inline(never)]
    fn find_sealed<S>(&mut self, turn: &mut Turn<'_, '_, S>, given: &[u8]) -> Result<u16, NoSession> {
        let (Some(sealed), Some(nonce)) = (&self.sealed, nonce_of(given)) else { return Err(NoSession::Unknown) };
        match sealed.known.get(&nonce) {
            Some(&Known::Open(slot, end, _)) if end <= self.now => {
                self.end_session(turn.app, slot);
                Err(NoSession::Unknown)
            }
            Some(&Known::Open(slot, ..)) => self.sessions.check(slot, given, turn.principal).ok_or(NoSession::Unknown),
            Some(Known::Ended) => Err(NoSession::Unknown),
            None => match sealed.open(given, nonce, turn.principal).filter(|(end, _)| *end > self.now) {
                Some((end, peer)) => self.open_anew(turn, given, (nonce, end), peer),
                None => Err(NoSession::Unknown),
            },
        }
    }

    /// Opens a session that another endpoint has opened.
    fn open_anew<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        given: &[u8],
        (nonce, end): (Nonce, Millis),
        peer: Peer,
    ) -> Result<u16, NoSession> {
        // Another version of the service may have opened it.
        if !peer.revision().is_some_and(|revision| turn.app.service.about().served().contains(revision)) {
            return Err(NoSession::Unknown);
        }
        let hashed = turn.principal.map(|name| (name, self.requests.hash(name)));
        if !self.make_room(turn.app, hashed) {
            return Err(NoSession::NoRoom);
        }
        let (scope, id) = (self.requests.new_scope(), SessionId::sealed(given.to_vec()));
        let slot = self.sessions.open(hashed, false, self.now, |_| (id, scope)).ok_or(NoSession::NoRoom)?;
        if let Some(session) = self.sessions.get_mut(slot) {
            session.peer = peer;
        }
        if let Some(sealed) = &mut self.sealed {
            sealed.known.insert(nonce, Known::Open(slot, end, false));
        }
        Ok(slot)
    }
}

impl SessionId {
    /// Takes a whole sealed id.
    fn sealed(characters: Vec<u8>) -> Self {
        let mut id = SessionId::NONE;
        id.sealed = characters;
        id
    }
}

// Leaves out the ids: they are keys to their sessions.
mcp_sansio::debug_fields!(impl for SealedSessions<'_> { with });

/// The time is 0 for the seal: the end is in the state.
fn bound<'b>(nonce: &'b Nonce, principal: Option<&'b str>) -> AssociatedData<'b> {
    let mut bound = AssociatedData::new(METHOD, nonce, b"");
    bound.principal = principal;
    bound
}

/// Returns the unsealed part of an id. Ids that are not sealed are shorter.
pub(crate) fn nonce_of(id: &[u8]) -> Option<Nonce> {
    id.first_chunk::<NONCE>().copied().filter(|_| id.len() > SessionId::LEN)
}
