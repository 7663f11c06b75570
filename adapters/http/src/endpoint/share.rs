//! What one client may have of the requests in flight: its share, and some places that only what is answered at once may
//! take. Requests of clients that are gone make way for others.

use mcp_sansio::server::{Millis, Scope, Token};

use super::stream::Link;
use super::{App, Endpoint};

/// Whose a request in flight is, and on which stream it is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    client: Client,
    stream: u16,
}

impl Place {
    pub(crate) const FREE: Place = Place { client: Client::Anyone, stream: 0 };
}

/// Who shares places with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// 2026-07-28 without a principal: nothing tells one client from another.
    Anyone,
    /// A session without a principal.
    Session(Scope),
    /// A principal, with all its sessions and requests: a hash under a key that clients do not know.
    Principal(u64),
}

impl<const N: usize> Endpoint<'_, N> {
    /// Who asks.
    pub(crate) fn client_of(&self, scope: Scope, modern: bool, principal: Option<&str>) -> Client {
        match principal {
            Some(principal) => Client::Principal(hash(self.hash_key, principal)),
            None if modern => Client::Anyone,
            None => Client::Session(scope),
        }
    }

    /// Requests that may stay in flight, of all clients.
    fn total(&self) -> usize {
        N.saturating_sub(self.config.quick_places).max(1)
    }

    /// Requests that one client may have in flight. Those that cannot be told apart leave one share to the others, where
    /// there are enough places.
    fn share(&self, client: Client) -> usize {
        let share = self.config.request_share.max(1);
        match client {
            Client::Anyone if share <= N / 4 => self.total() - share,
            Client::Anyone => self.total(),
            _ => share.min((N * 3).div_ceil(4)).min(self.total()),
        }
    }

    /// Tells the server how many requests may be in flight with which one of this client's may stay.
    pub(crate) fn allow_places(&mut self, client: Client) {
        let (live, share) = (self.server.in_flight(), self.share(client));
        if live <= share / 2 {
            // Whose they are does not matter; only a batch may want more than half a share at once.
            return self.server.set_most_in_flight(share);
        }
        let (mut gone, mut own, mut own_gone) = (0, 0, 0);
        for slot in 0..N {
            let Some((_, is_own, away)) = self.at(slot, client) else { continue };
            let away = usize::from(away.is_some());
            gone += away;
            own += usize::from(is_own);
            own_gone += if is_own { away } else { 0 };
        }
        // Those that are gone make way afterwards, if it comes to that.
        let free = (self.total() + gone).min(N).saturating_sub(live);
        let left = (share + own_gone).saturating_sub(own);
        self.server.set_most_in_flight(live + free.min(left));
    }

    /// Notes whose the requests of an exchange are that stay in flight. Beyond the share or the total, requests that are gone
    /// are given up, those first that have been for longest.
    pub(crate) fn settle<S>(&mut self, app: &mut App<'_, S>, client: Client, route: u32, stream: u16) {
        self.server.set_most_in_flight(N);
        if !self.server.has_route(route) {
            return;
        }
        for slot in 0..N {
            let token = self.server.token_at(slot);
            if let Some(place) = self.places.get_mut(slot)
                && token.and_then(|token| self.server.route(token)) == Some(route)
            {
                *place = Place { client, stream };
            }
        }
        let own = |endpoint: &Self| (0..N).filter(|slot| endpoint.at(*slot, client).is_some_and(|at| at.1)).count();
        while own(self) > self.share(client) && self.give_up_gone(app, client, true) {}
        while self.server.in_flight() > self.total() && self.give_up_gone(app, client, false) {}
    }

    /// The request in a slot: whether it is this client's, and since when its own client is gone, if it is.
    fn at(&self, slot: usize, client: Client) -> Option<(Token, bool, Option<Millis>)> {
        let token = self.server.token_at(slot)?;
        let place = self.places.get(slot)?;
        let stream = self.streams.slots().get(usize::from(place.stream))?;
        let away = match stream.link {
            Link::Detached { since } if self.server.route(token) == Some(stream.route) => Some(since),
            _ => None,
        };
        Some((token, place.client == client, away))
    }

    /// Gives up the request whose client has been gone for longest, of this client's or of all; whether there was one.
    fn give_up_gone<S>(&mut self, app: &mut App<'_, S>, client: Client, own: bool) -> bool {
        let gone = (0..N).filter_map(|slot| self.at(slot, client));
        let gone = gone.filter(|(_, is_own, _)| *is_own || !own).filter_map(|(token, _, away)| Some((token, away?)));
        let Some((token, _)) = gone.min_by_key(|(_, since)| *since) else { return false };
        // Its client is told if it comes back.
        let told = self.on_stream_of(token, |server, _, out| {
            // What the log has no room for goes unsaid.
            let _ = app.service.give_up(app.state, token, "Overloaded: others needed its place", server, out);
        });
        if told.is_none() {
            app.service.forget(app.state, token, &mut self.server);
        }
        true
    }

    /// Marks the sessions that somebody listens to, or that something is being done for.
    pub(crate) fn mark_busy(&mut self) {
        let (sessions, streams) = (self.sessions.slots_mut(), self.streams.slots());
        for session in sessions.iter_mut() {
            session.busy = false;
        }
        let waits = |slot| self.server.token_at(slot).and(self.places.get(slot)).map(|place| usize::from(place.stream));
        let working =
            (0..N).filter_map(waits).filter_map(|stream| streams.get(stream)).filter(|stream| !stream.is_free());
        let heard = streams.iter().filter(|stream| stream.link == Link::Attached);
        for slot in heard.chain(working).filter_map(|stream| stream.session) {
            if let Some(session) = sessions.get_mut(usize::from(slot)) {
                session.busy = true;
            }
        }
    }
}

/// FNV-1a, begun with a key.
fn hash(key: u64, text: &str) -> u64 {
    text.bytes().fold(key ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
