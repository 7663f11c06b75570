//! Over HTTP: streams that overtake each other, connections that break at any byte, and streams that are resumed.

use crate::world::{Dice, PROFILE, SERVICE, Seen, URIS, World, request};
use mcp_sansio::client::{Client, PendingId, SubscriptionFilter};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{MessageLimits as ServerLimits, Progress, Server, ServerChange};
use mcp_sansio_http::client::{HttpClient, HttpClientConfig as ClientConfig, HttpTransport, SocketAction};
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

const SLOTS: usize = 6;

/// A server and a client with a network in memory.
struct Net {
    endpoint: Endpoint<'static>,
    world: World,
    web: HttpClient<'static>,
    links: [Option<HttpConnection<'static>>; SLOTS],
    seen: Seen,
    sent: Vec<PendingId>,
    cancelled: Vec<PendingId>,
    dice: Dice,
    now: u64,
    moved: usize,
    /// The number of bytes after which the connection breaks.
    breaks_at: usize,
    seeds: u8,
}

impl Net {
    fn new(revision: Revision, seed: u64) -> Net {
        let url = if revision == Revision::V2024_11_05 { "http://localhost/sse" } else { "http://localhost/mcp" };
        let remote = HttpTransport::growing(url, ClientConfig::DEFAULT, SLOTS).unwrap();
        let server = Server::growing(ServerLimits::default());
        let mut net = Net {
            endpoint: Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default()),
            world: World::default(),
            web: HttpClient::growing(Client::growing(&PROFILE).timeout(60_000), remote),
            links: [const { None }; SLOTS],
            seen: Seen { loose: true, ..Seen::default() },
            sent: Vec::new(),
            cancelled: Vec::new(),
            dice: Dice::new(seed),
            now: 0,
            moved: 0,
            breaks_at: usize::MAX,
            seeds: 0,
        };
        match revision {
            Revision::LATEST => net.web.client.connect(),
            _ => net.web.client.connect_as(revision),
        }
        net
    }

    fn host(&mut self, at: usize, leave: bool) -> WaitFor {
        let Some(link) = &mut self.links[at] else { return WaitFor::Read };
        let mut app = App::new(&SERVICE, &mut self.world);
        let mut body = BodyBuffer::new(Vec::new());
        let mut host = ServeContext { endpoint: &mut self.endpoint, app: &mut app, body: &mut body, now: self.now };
        if leave {
            link.leave(&mut host);
            self.links[at] = None;
            return WaitFor::Close;
        }
        let seeds = &mut self.seeds;
        link.serve(&mut host, &mut |bytes| {
            *seeds = seeds.wrapping_add(1);
            bytes.fill(*seeds);
        })
    }

    /// Does one step of those that need no outside action. Returns whether there was one.
    fn step(&mut self) -> bool {
        let mut any = self.web.run(self.now, &mut self.seen, &mut ());
        self.endpoint.expire(&mut App::new(&SERVICE, &mut self.world), self.now);
        while let Some(action) = self.web.remote.next_action() {
            any = true;
            match action {
                SocketAction::Connect(at) => {
                    let http =
                        HttpConnection::new(vec![0; 8192].leak(), vec![0; 8192].leak(), ConnectionLimits::default());
                    self.links[at] = Some(http);
                    self.web.remote.connected(at);
                }
                SocketAction::Close(at) => drop(self.host(at, true)),
            }
        }
        // Begins at a random slot and takes the first with something to do.
        let start = self.dice.below(SLOTS as u64) as usize;
        (0..SLOTS).any(|n| self.carry((start + n) % SLOTS)) || any
    }

    /// Carries a piece each way. Returns whether there was one.
    fn carry(&mut self, at: usize) -> bool {
        let piece = 1 + self.dice.below(200) as usize;
        let left = self.breaks_at.saturating_sub(self.moved);
        let Some(link) = &mut self.links[at] else { return false };
        let (up, space) = (self.web.remote.pending(at), link.space());
        let n = up.len().min(space.len()).min(piece).min(left);
        space[..n].copy_from_slice(&up[..n]);
        link.connection.filled(n);
        self.web.remote.sent(at, n);
        let wait = self.host(at, false);
        let Some(link) = &mut self.links[at] else { return false };
        let (down, space) = (link.connection.pending(), self.web.remote.space(at));
        let m = down.len().min(space.len()).min(piece).min(left - n);
        space[..m].copy_from_slice(&down[..m]);
        link.connection.sent(m);
        self.web.remote.filled(at, m);
        self.moved += n + m;
        if self.moved >= self.breaks_at {
            self.breaks_at = usize::MAX;
            let _ = self.host(at, true);
            self.web.remote.failed(at);
            return true;
        }
        if matches!(wait, WaitFor::Close | WaitFor::Shut)
            && !self.links[at].as_ref().is_some_and(|link| link.connection.has_pending())
        {
            let _ = self.host(at, true);
            self.web.remote.closed(at);
            return true;
        }
        n + m > 0
    }

    fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it spins");
    }

    fn send(&mut self, number: u64) {
        if let Ok(token) = self.web.handle().send(&request(number)) {
            self.sent.push(token);
        }
    }

    fn listen(&mut self) {
        if let Ok(token) = self.web.client.listen(&SubscriptionFilter::new().tools().uris(&URIS)) {
            self.sent.push(token);
        }
    }

    fn answer_call(&mut self) {
        let Some(token) = self.world.open.pop() else { return };
        let _ = self.endpoint.progress(token, Progress::new(1));
        let mut app = App::new(&SERVICE, &mut self.world);
        let _ = self.endpoint.answer(&mut app, token, |_, call| call.text("at last"));
    }

    fn answer_question(&mut self) {
        let at = self.dice.below(self.seen.questions.len() as u64) as usize;
        self.seen.answer(at, false, self.web.handle());
    }

    /// Does a random action.
    fn happens(&mut self) {
        match self.dice.below(14) {
            0..=4 => {
                let number = self.dice.below(18);
                self.send(number);
            }
            5 => self.listen(),
            6 => {
                let at = self.dice.below(self.sent.len() as u64) as usize;
                if let Some(&token) = self.sent.get(at)
                    && self.web.handle().cancel(token, None).is_ok()
                {
                    self.cancelled.push(token);
                }
            }
            7 | 8 => self.answer_question(),
            9 => self.answer_call(),
            10 => self.endpoint.publish(ServerChange::Resource("r://one")),
            11 => self.now += self.dice.below(2_000),
            _ => {
                for _ in 0..self.dice.below(20) {
                    self.step();
                }
            }
        }
    }

    /// Runs until every waiting request is answered.
    fn settle(&mut self) {
        for _ in 0..300 {
            self.run();
            let waits = self.sent.iter().filter(|token| self.web.client.is_open(**token)).count();
            let listens = self.seen_listens();
            if self.seen.questions.is_empty() && self.world.open.is_empty() && waits <= listens {
                return;
            }
            self.answer_question();
            self.answer_call();
            self.run();
            self.now += 500;
        }
        let open: Vec<_> = self.sent.iter().filter(|token| self.web.client.is_open(**token)).collect();
        panic!("it waits for ever: {open:?} of {:?}", self.sent);
    }

    /// Returns the requests that stay open because they are subscriptions.
    fn seen_listens(&mut self) -> usize {
        let client = &mut self.web.client;
        // A subscription has no deadline, so it does not end by itself.
        if client.next_deadline().is_none() { client.in_flight() } else { 0 }
    }

    fn check(&mut self) {
        for token in &self.sent {
            let (count, _) = self.seen.outcomes.get(token).copied().unwrap_or_default();
            let open = self.web.client.is_open(*token);
            let cancelled = self.cancelled.contains(token);
            assert_eq!(
                count + u32::from(open) + u32::from(cancelled),
                1,
                "{token:?} open {open} cancelled {cancelled}"
            );
        }
    }

    fn end(&mut self) {
        self.web.client.end_of_input();
        self.run();
        self.check();
        assert_eq!(self.web.client.in_flight(), 0);
    }
}

// spec: T067
#[test]
fn every_schedule_gives_each_request_one_outcome() {
    for seed in 0..40 {
        for revision in Revision::ALL {
            let mut net = Net::new(revision, seed);
            net.run();
            assert!(net.web.client.is_connected(), "{revision}");
            for _ in 0..120 {
                net.happens();
            }
            net.settle();
            net.check();
            net.end();
        }
    }
}

/// A short conversation with each kind of message.
fn short(net: &mut Net) {
    net.run();
    for number in [4, 6, 5, 7] {
        net.send(number);
        net.step();
    }
    net.settle();
}

#[test]
fn a_connection_that_breaks_at_every_byte() {
    for revision in Revision::ALL {
        let mut whole = Net::new(revision, 3);
        short(&mut whole);
        assert!(whole.seen.outcomes.values().all(|outcome| *outcome == (1, true)), "{revision}");
        // Every 23rd byte; `EVERY_BYTE=1` tests all.
        let step = if std::env::var_os("EVERY_BYTE").is_some() { 1 } else { 23 };
        for at in (0..whole.moved).step_by(step) {
            let mut net = Net::new(revision, 3);
            net.breaks_at = at;
            short(&mut net);
            net.check();
            net.end();
            assert!(net.seen.connected <= 2 && net.seen.unconnected <= 1, "{revision}: broken at {at}");
        }
    }
}
