//! The states of an exchange: random conversations take every transition of the table, and no other.

use core::cell::RefCell;
use std::collections::BTreeSet;

use super::*;
use crate::client::exchange::TRANSITIONS;

/// A transition: from, to, cause.
type Step = (&'static str, &'static str, &'static str);

std::thread_local! {
    static STEPS: RefCell<BTreeSet<Step>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes a transition of an exchange.
pub(crate) fn enter(step: Step) {
    STEPS.with_borrow_mut(|steps| steps.insert(step));
}

/// Random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Returns an answer that a server may send to a request in flight.
fn answer(dice: &mut Dice, id: u64) -> String {
    let body = match dice.below(3) {
        0 => result(id),
        1 => legacy(id, "ping"),
        _ => String::new(),
    };
    match dice.below(14) {
        0 => ACCEPTED.into(),
        1 | 2 => json("200 OK", SESSION, &body),
        3 => json("404 No", "", ""),
        4 => json("401 No", "", ""),
        5 => "HTTP/1.1 307 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n".into(),
        6 => json("500 No", "Connection: close\r\n", &body),
        7 | 8 => stream("event: endpoint\ndata: /post\n\n"),
        n => stream(&format!("id: 1\nretry: 1\ndata: {}\n\n", if n > 11 { result(id) } else { legacy(id, "ping") })),
    }
}

/// Runs a conversation of random parts, with a caller that reads events at random times.
fn converse(dice: &mut Dice) {
    let transport = [TransportKind::Detect, TransportKind::Streamable, TransportKind::Sse][dice.below(3)];
    let mut remote = HttpTransport::growing(
        "http://h/mcp",
        HttpClientConfig::DEFAULT.transport(transport).retry_time(1).retry_most(30_000),
        4,
    )
    .unwrap();
    let (mut now, mut connected, mut coming) = (0, [false; 4], [const { Vec::<u8>::new() }; 4]);
    if dice.below(40) == 0 {
        let mut slots = Slots::growing(4);
        while slots.push(ExchangeSlot::new(Store::growing(999), Store::growing(99), Store::growing(1200))).is_some() {}
        remote =
            HttpTransport::new("http://h/mcp", HttpClientConfig::DEFAULT, Store::growing(9999), Store::none(), slots)
                .unwrap();
        remote.set_header("x", &"y".repeat(2000)).unwrap();
    }
    for id in 1..200 {
        let slot = dice.below(4);
        match dice.below(40) {
            0..6 => {
                let message = match dice.below(6) {
                    0 => modern(id, "tools/call", ""),
                    1 => legacy(id, "initialize"),
                    2 => r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
                    3 => result(1),
                    _ => legacy(id, "tools/call"),
                };
                let gives_up = dice.below(9) == 0;
                let _ = write_with(&mut remote, &message, |out| {
                    if gives_up { out.fail(FullError::Never) } else { out.put(message.as_bytes()) }
                });
            }
            6..12 => drop(remote.next_event()),
            12 if dice.below(4) == 0 => drop(remote.end_session()),
            13 => drop(remote.abandon(id.saturating_sub(dice.below(9) as u64))),
            14 => remote.retry(slot),
            15 => remote.give_up(slot),
            16 if dice.below(20) == 0 => remote.shut_down(),
            17..20 => {
                now += [1, 10, 1_000, 40_000][dice.below(4)];
                remote.expire(now);
            }
            20..24 if connected[slot] => {
                connected[slot] = false;
                if dice.below(2) == 0 { remote.closed(slot) } else { remote.failed(slot) }
            }
            _ => {
                let n = remote.pending(slot).len();
                remote.sent(slot, n);
                if n > 0 {
                    let id = remote
                        .slots
                        .get(slot)
                        .and_then(ExchangeSlot::request)
                        .unwrap_or(id.saturating_sub(dice.below(9) as u64));
                    coming[slot] = answer(dice, id).into_bytes();
                } else if coming[slot].is_empty() && dice.below(2) == 0 {
                    let next = format!("data: {}\n\n", result(id - 1));
                    coming[slot] = if dice.below(2) == 0 { "0\r\n\r\n".into() } else { chunk(&next).into_bytes() };
                }
                let space = remote.space(slot);
                let n = (1 + dice.below(300)).min(space.len()).min(coming[slot].len());
                space[..n].copy_from_slice(&coming[slot][..n]);
                coming[slot].drain(..n);
                remote.filled(slot, n);
            }
        }
        while let Some(action) = remote.next_action() {
            let (SocketAction::Connect(slot) | SocketAction::Close(slot)) = action;
            coming[slot].clear();
            connected[slot] = matches!(action, SocketAction::Connect(_)) && dice.below(8) > 0;
            match action {
                SocketAction::Connect(slot) if connected[slot] => remote.connected(slot),
                SocketAction::Connect(slot) if dice.below(2) == 0 => remote.failed(slot),
                _ => {} // it takes long
            }
        }
    }
}

/// Possible, and too rare for these conversations: a head without room, a caller that gives up in the middle of a message, a
/// refusal of `initialize` that is an answer all the same.
const RARE: [Step; 5] = [
    ("Writing", "Over", "the session is ended"),
    ("Writing", "Free", "the stream is given up"),
    ("Writing", "Free", "abandoned"),
    ("Held", "Over", "answered"),
    ("Backoff", "Free", "the stream is given up"),
];

/// [`ExchangeSlot`] panics on a transition that is not in the table.
#[test]
fn every_step_is_taken() {
    let mut dice = Dice(2);
    for _ in 0..5_000 {
        converse(&mut dice);
    }
    let taken = STEPS.with_borrow(Clone::clone);
    let missing: Vec<_> = TRANSITIONS.iter().filter(|step| !taken.contains(*step) && !RARE.contains(step)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
