//! Over lines: any schedule, and a connection that breaks at any byte.

use crate::world::{Dice, PROFILE, SERVICE, Seen, URIS, World, request};
use mcp_sansio::client::{PendingId, SubscriptionFilter};
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Progress, ServerChange};
use mcp_sansio_host::testing::{ClientServerPair, Delivery};

/// A client, a server, and the events so far.
struct Table {
    pair: ClientServerPair<'static, World>,
    seen: Seen,
    sent: Vec<PendingId>,
    cancelled: Vec<PendingId>,
    dice: Dice,
}

impl Table {
    fn new(revision: Revision, cut: Delivery, seed: u64) -> Table {
        let mut pair = ClientServerPair::new(&PROFILE, &SERVICE, World::default()).cut(cut);
        match revision {
            // One half opens with the probe, one half with the known revision.
            Revision::LATEST if seed & 1 == 0 => pair.client.client.connect(),
            _ => pair.client.client.connect_as(revision),
        }
        Table { pair, seen: Seen::default(), sent: Vec::new(), cancelled: Vec::new(), dice: Dice::new(seed) }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.dice.below(below)
    }

    fn send(&mut self, number: u64) {
        if let Ok(token) = self.pair.client.handle().send(&request(number)) {
            assert!(!self.sent.contains(&token), "a token is given once");
            self.sent.push(token);
        }
    }

    fn answer_question(&mut self, refuse: bool) {
        let at = self.random(self.seen.questions.len() as u64) as usize;
        self.seen.answer(at, refuse, self.pair.client.handle());
    }

    fn answer_call(&mut self) {
        let pair = &mut self.pair;
        let Some(token) = pair.state.open.pop() else { return };
        let _ = pair.server.progress(token, Progress::new(1));
        let _ = pair.server.answer(pair.service, &mut pair.state, token, |_, call| call.text("at last"));
    }

    /// Does a random action.
    fn happens(&mut self) {
        match self.random(16) {
            0..=4 => {
                let number = self.random(18);
                self.send(number);
            }
            5 => {
                let number = self.random(4);
                let uris = &URIS[..(number as usize).min(2)];
                let filter = SubscriptionFilter::new().tools().prompts().uris(uris);
                if let Ok(token) = self.pair.client.client.listen(&filter) {
                    self.sent.push(token);
                }
            }
            6 => {
                let at = self.random(self.sent.len().max(1) as u64) as usize;
                if let Some(&token) = self.sent.get(at)
                    && self.pair.client.handle().cancel(token, Some("enough")).is_ok()
                {
                    self.cancelled.push(token);
                }
            }
            7 => self.answer_question(false),
            8 => {
                let refuse = self.random(4) == 0;
                self.answer_question(refuse);
            }
            9 => self.answer_call(),
            10 => {
                let change = if self.random(2) == 0 { ServerChange::Tools } else { ServerChange::Resource("r://one") };
                self.pair.publish(change);
            }
            11 => {
                let millis = self.random(3_000);
                self.pair.wait(millis, &mut self.seen);
            }
            12 => drop(self.pair.client.handle().client.set_log_level(LoggingLevel::Debug, &mut Void)),
            _ => {
                for _ in 0..self.random(12) {
                    self.pair.step(&mut self.seen);
                }
            }
        }
    }

    /// Runs until every waiting request is answered.
    fn settle(&mut self) {
        for _ in 0..200 {
            self.pair.run(&mut self.seen);
            if self.seen.questions.is_empty() && self.pair.state.open.is_empty() {
                return;
            }
            self.answer_question(false);
            self.answer_call();
        }
        panic!("it asks for ever");
    }

    /// Checks that each request has had one outcome, except cancelled ones and subscriptions.
    fn check(&mut self, lost: bool) {
        for token in &self.sent {
            let (count, _) = self.seen.outcomes.get(token).copied().unwrap_or_default();
            let open = self.pair.client.client.is_open(*token);
            let cancelled = self.cancelled.contains(token);
            assert_eq!(
                count + u32::from(open) + u32::from(cancelled),
                1,
                "{token:?} open {open} cancelled {cancelled}"
            );
        }
        if lost {
            assert_eq!(self.pair.client.client.in_flight(), 0);
        }
    }
}

/// A sink that takes nothing. In 2026-07-28 the log level needs no message; in older revisions the request is refused.
struct Void;

impl mcp_sansio::sink::Sink for Void {
    fn put(&mut self, _: &[u8]) -> Result<(), mcp_sansio::FullError> {
        Err(mcp_sansio::FullError::Now)
    }
    fn room(&self) -> usize {
        0
    }
}

impl mcp_sansio::sink::Out for Void {
    fn begin(&mut self, _: mcp_sansio::sink::MessageHead<'_>) -> Result<(), mcp_sansio::FullError> {
        Err(mcp_sansio::FullError::Now)
    }
    fn end(&mut self) {}
    fn mark(&self) -> mcp_sansio::sink::Mark {
        mcp_sansio::sink::Mark::new(1)
    }
    fn roll_back(&mut self, _: mcp_sansio::sink::Mark) {}
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

/// Calls every method, one after the other.
fn everything(revision: Revision, cut: Delivery) -> Table {
    let mut table = Table::new(revision, cut, 2);
    table.pair.run(&mut table.seen);
    let listen = table.pair.client.client.listen(&SubscriptionFilter::new().tools().uris(&URIS)).unwrap();
    table.settle();
    for number in 0..18 {
        table.send(number);
        table.settle();
    }
    table.pair.publish(ServerChange::Tools);
    table.pair.publish(ServerChange::Resource("r://one"));
    table.settle();
    table.pair.client.handle().cancel(listen, None).unwrap();
    table.settle();
    table
}

// spec: T067
#[test]
fn the_whole_list_of_methods() {
    for revision in Revision::ALL {
        let mut moved = None;
        for cut in [Delivery::Whole, Delivery::Bytes, Delivery::Pieces(7), Delivery::Random(5)] {
            let mut table = everything(revision, cut);
            let seen = &table.seen;
            assert_eq!((seen.connected, seen.unconnected), (1, 0));
            assert_eq!((seen.listening, seen.changes), (1, 2), "{revision}");
            assert!(seen.progress.values().all(|done| [1, 5].contains(done)));
            let failed: Vec<_> = table.sent.iter().filter(|token| !seen.outcomes[token].1).collect();
            // The unknown cursor, tool and method.
            assert_eq!(failed.len(), 3, "{revision}");
            assert_eq!(table.sent.len(), if revision.is_modern() { 15 } else { 17 }, "{revision}");
            assert_eq!(table.pair.client.client.in_flight(), 0);
            table.check(true);
            let total = *moved.get_or_insert(table.pair.moved);
            assert_eq!(table.pair.moved, total, "{cut:?}");
        }
    }
}

#[test]
fn every_schedule_gives_each_request_one_outcome() {
    for seed in 0..120 {
        for revision in Revision::ALL {
            let mut table = Table::new(revision, Delivery::Random(seed), seed);
            for _ in 0..150 {
                table.happens();
            }
            table.settle();
            table.check(false);
            let listens = table.sent.iter().filter(|token| table.pair.client.client.is_open(**token)).count();
            assert_eq!(table.pair.client.client.in_flight(), listens);
            table.pair.break_off();
            table.pair.run(&mut table.seen);
            table.check(true);
            // In 2026-07-28 no message is needed to open a connection.
            assert_eq!(table.seen.connected, u32::from(!revision.is_modern() || seed & 1 == 0), "{revision} {seed}");
        }
    }
}

/// A short conversation with each kind of message.
fn short(table: &mut Table) {
    table.pair.run(&mut table.seen);
    for number in [4, 6, 5, 7] {
        table.send(number);
        table.pair.step(&mut table.seen);
    }
    if let Ok(token) = table.pair.client.client.listen(&SubscriptionFilter::new().tools().uris(&URIS[..1])) {
        table.sent.push(token);
    }
    table.pair.publish(ServerChange::Tools);
    table.settle();
}

#[test]
fn a_connection_lost_at_every_byte() {
    for revision in Revision::ALL {
        let mut whole = Table::new(revision, Delivery::Pieces(100), 2);
        short(&mut whole);
        for at in 0..whole.pair.moved {
            let mut table = Table::new(revision, Delivery::Pieces(100), 2);
            table.pair = table.pair.breaks_at(at);
            short(&mut table);
            table.pair.wait(1, &mut table.seen);
            assert!(table.pair.is_broken);
            table.check(true);
            assert_eq!(table.seen.connected + table.seen.unconnected, 1, "lost at {at}");
            // The same from the start.
            if at % 64 == 0 {
                table.pair.state.open.clear();
                table.seen.questions.clear();
                let before = table.sent.len();
                table.pair.reconnect();
                table.pair.run(&mut table.seen);
                assert!(table.pair.client.client.is_connected(), "{revision}: lost at {at}");
                table.send(0);
                table.settle();
                assert_eq!(table.sent.len(), before + 1);
                table.check(false);
            }
        }
    }
}

/// Subscriptions go on with the next connection.
#[test]
fn listens_live_on() {
    for revision in Revision::ALL {
        let mut table = Table::new(revision, Delivery::Bytes, 2);
        table.pair.run(&mut table.seen);
        let listen = table.pair.client.client.listen(&SubscriptionFilter::new().tools().uris(&URIS)).unwrap();
        table.send(5);
        table.pair.run(&mut table.seen);
        assert_eq!(table.seen.listening, 1);
        table.pair.reconnect();
        table.pair.run(&mut table.seen);
        table.check(false);
        assert_eq!((table.seen.listening, table.seen.changes), (2, 0));
        table.pair.publish(ServerChange::Resource("t://two"));
        table.pair.run(&mut table.seen);
        assert_eq!(table.seen.changes, 1);
        assert!(table.pair.client.client.is_open(listen));
    }
}
