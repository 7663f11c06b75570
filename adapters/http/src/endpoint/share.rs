//! Shares of the requests in flight: each client has a share, and some places are reserved for requests answered
//! at once. Requests of clients that are gone are given up for others.

use mcp_sansio::server::{Millis, RequestToken, Scope, Server};

use super::config::EndpointConfig;
use super::stream::Streams;
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

/// The requests in flight, and the numbers that they and their clients get.
#[derive(Debug)]
pub(crate) struct Requests<'m> {
    pub(crate) server: Server<'m>,
    /// The key of the hash of principals, so that clients cannot choose names with equal hashes. 0 until it is
    /// set.
    hash_key: u64,
    /// The number of the last exchange.
    exchanges: u32,
    /// The last scope that was given; 0 is never given.
    scopes: u32,
}

impl<'m> Requests<'m> {
    pub(crate) fn new(mut server: Server<'m>) -> Self {
        server.over_http = true;
        Requests { server, hash_key: 0, exchanges: 0, scopes: 0 }
    }

    /// Makes the key of the hash of principals, once.
    pub(crate) fn make_key(&mut self, random: &mut dyn FnMut(&mut [u8])) {
        if self.hash_key == 0 {
            let mut key = [0; 8];
            random(&mut key);
            self.hash_key = u64::from_le_bytes(key);
        }
    }

    pub(crate) fn new_scope(&mut self) -> Scope {
        self.scopes = self.scopes.wrapping_add(1).max(1);
        Scope(self.scopes)
    }

    pub(crate) fn new_exchange(&mut self) -> u32 {
        self.exchanges = self.exchanges.wrapping_add(1).max(1);
        self.exchanges
    }

    /// Returns whether an exchange has a request in flight.
    pub(crate) fn has_exchange(&self, exchange_id: u32) -> bool {
        self.server.with_transport_id(exchange_id).is_some()
    }

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
    fn total(&self, config: &EndpointConfig<'_>) -> usize {
        self.server.capacity().saturating_sub(config.quick_places).max(1)
    }

    /// Returns the number of requests that one client may have in flight. Clients that cannot be distinguished
    /// leave one share to the others, if there are enough places.
    fn share(&self, config: &EndpointConfig<'_>, client: Client) -> usize {
        let (share, places, total) = (config.request_share.max(1), self.server.capacity(), self.total(config));
        match client {
            Client::ANYONE if share <= places / 4 => total - share,
            Client::ANYONE => total,
            _ => share.min((places * 3).div_ceil(4)).min(total),
        }
    }

    /// Sets the number of requests in flight with which one more of this client may stay.
    pub(crate) fn allow_places(&mut self, streams: &Streams<'_>, config: &EndpointConfig<'_>, client: Client) {
        let (live, share) = (self.server.in_flight(), self.share(config, client));
        if live <= share / 2 {
            // Their clients do not matter here: only a batch may need more than half a share at once.
            return self.server.set_most_in_flight(share);
        }
        let (mut gone, mut own, mut own_gone) = (0, 0, 0);
        for (_, is_own, away) in self.all(streams, client) {
            let away = usize::from(away.is_some());
            gone += away;
            own += usize::from(is_own);
            own_gone += if is_own { away } else { 0 };
        }
        // Requests of clients that are gone are given up afterwards, if needed.
        let free = (self.total(config) + gone).min(self.server.capacity()).saturating_sub(live);
        let left = (share + own_gone).saturating_sub(own);
        self.server.set_most_in_flight(live + free.min(left));
    }

    /// Returns all requests: `true` for one of this client, and the time since which its own client is gone.
    fn all(&self, streams: &Streams<'_>, client: Client) -> impl Iterator<Item = (RequestToken, bool, Option<Millis>)> {
        (0..self.server.capacity()).filter_map(move |slot| {
            let token = self.server.token_at(slot)?;
            let place = RequestOwner::from_transport_data(self.server.transport_data(token)?);
            let stream = streams.at(place.stream)?;
            let away = stream.waits_since().filter(|_| self.server.transport_id(token) == Some(stream.exchange_id));
            Some((token, place.client == client, away))
        })
    }
}

impl Endpoint<'_> {
    /// Notes the client of an exchange's requests that stay in flight. Beyond the share or the total, gives up
    /// requests whose client is gone: first the one whose client has been gone longest.
    pub(crate) fn settle<S>(&mut self, app: &mut App<'_, S>, client: Client, exchange_id: u32, stream: u16) {
        self.requests.server.set_most_in_flight(usize::MAX);
        if !self.requests.has_exchange(exchange_id) {
            return;
        }
        for slot in 0..self.requests.server.capacity() {
            let server = &mut self.requests.server;
            let token = server.token_at(slot).filter(|token| server.transport_id(*token) == Some(exchange_id));
            if let Some(token) = token {
                server.set_transport_data(token, RequestOwner { client, stream }.transport_data());
            }
        }
        let config = self.config;
        let own = |endpoint: &Self| endpoint.requests.all(&endpoint.streams, client).filter(|at| at.1).count();
        while own(self) > self.requests.share(&config, client) && self.give_up_gone(app, client, true) {}
        let total = self.requests.total(&config);
        while self.requests.server.in_flight() > total && self.give_up_gone(app, client, false) {}
    }

    /// Gives up the request whose client has been gone longest, of this client's or of all. Returns `true` if
    /// there was one.
    fn give_up_gone<S>(&mut self, app: &mut App<'_, S>, client: Client, own: bool) -> bool {
        let all = self.requests.all(&self.streams, client).filter(|(_, is_own, _)| *is_own || !own);
        let gone = all.filter_map(|(token, _, away)| Some((token, away?)));
        let Some((token, _)) = gone.min_by_key(|(_, since)| *since) else { return false };
        // Its client gets the error if it comes back.
        let told = self.on_stream_of(token, |server, _, out| {
            // If the log has no room, the error is lost.
            let _ = app.service.abandon_request(app.state, token, "Overloaded: others needed its place", server, out);
        });
        if told.is_none() {
            app.service.forget(app.state, token, &mut self.requests.server);
        }
        true
    }
}
