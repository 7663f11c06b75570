//! Shares of the requests in flight: each client has a share, and some places are reserved for requests answered
//! at once. Requests of clients that are gone are given up for others.

use mcp_sansio::server::{Millis, RequestToken, Scope};

use super::{App, Endpoint};

/// The clients that share places: a number of 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Client(u64);

impl Client {
    /// Clients of 2026-07-28 without a principal: they cannot be distinguished.
    const ANYONE: Client = Client(0);

    /// A session without a principal.
    fn session(scope: Scope) -> Self {
        Client(1 << 46 | u64::from(scope.0))
    }

    /// A principal, with all its sessions and requests: a hash whose key clients do not know.
    fn principal(hash: u64) -> Self {
        Client(1 << 47 | hash >> 18)
    }
}

/// The client of a request in flight and the stream of its answer: the server's
/// [data](mcp_sansio::server::Server::transport_data) of the request, with the stream in the upper 16 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestOwner {
    pub(crate) client: Client,
    pub(crate) stream: u16,
}

impl RequestOwner {
    pub(crate) fn from_transport_data(data: u64) -> Self {
        RequestOwner { client: Client(data & !(u64::MAX << 48)), stream: (data >> 48) as u16 }
    }

    fn transport_data(self) -> u64 {
        u64::from(self.stream) << 48 | self.client.0
    }
}

impl Endpoint<'_> {
    /// Returns a hash of a principal's name.
    pub(crate) fn hash(&self, principal: &str) -> u64 {
        // FNV-1a, begun with a key.
        let start = self.hash_key ^ 0xcbf2_9ce4_8422_2325;
        principal.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }

    /// Returns the client of a message.
    pub(crate) fn client_of(&self, scope: Scope, modern: bool, principal: Option<&str>) -> Client {
        match principal {
            Some(principal) => Client::principal(self.hash(principal)),
            None if modern => Client::ANYONE,
            None => Client::session(scope),
        }
    }

    /// Returns the number of requests of all clients that may stay in flight.
    fn total(&self) -> usize {
        self.server.capacity().saturating_sub(self.config.quick_places).max(1)
    }

    /// Returns the number of requests that one client may have in flight. Clients that cannot be distinguished
    /// leave one share to the others, if there are enough places.
    fn share(&self, client: Client) -> usize {
        let (share, places) = (self.config.request_share.max(1), self.server.capacity());
        match client {
            Client::ANYONE if share <= places / 4 => self.total() - share,
            Client::ANYONE => self.total(),
            _ => share.min((places * 3).div_ceil(4)).min(self.total()),
        }
    }

    /// Sets the number of requests in flight with which one more of this client may stay.
    pub(crate) fn allow_places(&mut self, client: Client) {
        let (live, share) = (self.server.in_flight(), self.share(client));
        if live <= share / 2 {
            // Their clients do not matter here: only a batch may need more than half a share at once.
            return self.server.set_most_in_flight(share);
        }
        let (mut gone, mut own, mut own_gone) = (0, 0, 0);
        for slot in 0..self.server.capacity() {
            let Some((_, is_own, away)) = self.at(slot, client) else { continue };
            let away = usize::from(away.is_some());
            gone += away;
            own += usize::from(is_own);
            own_gone += if is_own { away } else { 0 };
        }
        // Requests of clients that are gone are given up afterwards, if needed.
        let free = (self.total() + gone).min(self.server.capacity()).saturating_sub(live);
        let left = (share + own_gone).saturating_sub(own);
        self.server.set_most_in_flight(live + free.min(left));
    }

    /// Notes the client of an exchange's requests that stay in flight. Beyond the share or the total, gives up
    /// requests whose client is gone: first the one whose client has been gone longest.
    pub(crate) fn settle<S>(&mut self, app: &mut App<'_, S>, client: Client, exchange_id: u32, stream: u16) {
        self.server.set_most_in_flight(usize::MAX);
        if !self.server.has_transport_id(exchange_id) {
            return;
        }
        let places = self.server.capacity();
        for slot in 0..places {
            let token =
                self.server.token_at(slot).filter(|token| self.server.transport_id(*token) == Some(exchange_id));
            if let Some(token) = token {
                self.server.set_transport_data(token, RequestOwner { client, stream }.transport_data());
            }
        }
        let own =
            |endpoint: &Self| (0..places).filter(|slot| endpoint.at(*slot, client).is_some_and(|at| at.1)).count();
        while own(self) > self.share(client) && self.give_up_gone(app, client, true) {}
        while self.server.in_flight() > self.total() && self.give_up_gone(app, client, false) {}
    }

    /// Returns the request in a slot: `true` if it is this client's, and the time since which its own client is
    /// gone.
    fn at(&self, slot: usize, client: Client) -> Option<(RequestToken, bool, Option<Millis>)> {
        let token = self.server.token_at(slot)?;
        let place = RequestOwner::from_transport_data(self.server.transport_data(token)?);
        let stream = self.streams.at(place.stream)?;
        let away = stream.waits_since().filter(|_| self.server.transport_id(token) == Some(stream.exchange_id));
        Some((token, place.client == client, away))
    }

    /// Gives up the request whose client has been gone longest, of this client's or of all. Returns `true` if
    /// there was one.
    fn give_up_gone<S>(&mut self, app: &mut App<'_, S>, client: Client, own: bool) -> bool {
        let gone = (0..self.server.capacity()).filter_map(|slot| self.at(slot, client));
        let gone = gone.filter(|(_, is_own, _)| *is_own || !own).filter_map(|(token, _, away)| Some((token, away?)));
        let Some((token, _)) = gone.min_by_key(|(_, since)| *since) else { return false };
        // Its client gets the error if it comes back.
        let told = self.on_stream_of(token, |server, _, out| {
            // If the log has no room, the error is lost.
            let _ = app.service.abandon_request(app.state, token, "Overloaded: others needed its place", server, out);
        });
        if told.is_none() {
            app.service.forget(app.state, token, &mut self.server);
        }
        true
    }
}
