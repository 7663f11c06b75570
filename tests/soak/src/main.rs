//! A soak: well-behaved clients work beside hostile ones, against a real server process over HTTP.
//!
//! ```text
//! soak --seconds 60 [--only ATTACK] PROGRAM ARGUMENTS...     the port is appended to the last argument
//! soak --seconds 600 target/release/examples/calc --http ""
//! soak --seconds 600 target/release/examples/sysmon --http 127.0.0.1:
//! ```
//!
//! One run with one server: slices of time in which the well-behaved clients are alone, and slices in which they work
//! beside every [attack](attacks::ALL), by turns, so that what else the machine does falls on both. At the end the
//! attackers are gone.
//!
//! What must hold, or the exit code is 1:
//!
//! - every call of a well-behaved client is answered, and rightly, in all phases;
//! - the 99th percentile of their times beside attackers is at most [`FACTOR`] times that without (or [`FACTOR`] times
//!   [`NOISE`], where that is more), each taken from the middle one of its slices;
//! - at the end the server holds as many descriptors as after the first slice, and at most [`MEMORY`] more memory.
//!
//! `soak --rounds 10000 PROGRAM ARGUMENTS...` looks for leaks instead: see [`leaks`].

mod attacks;
mod client;
mod leaks;
mod server;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::Tally;
use server::Server;

/// How much slower the slowest of 100 calls may be beside attackers.
const FACTOR: u32 = 3;
/// Below this the scheduler decides, not the server: attackers, clients and server share two processors.
const NOISE: Duration = Duration::from_millis(10);
/// What an allocator may keep of what was given back, in KiB.
const MEMORY: u64 = 16 << 10;
/// Slices of each kind.
const SLICES: u32 = 3;
/// Well-behaved clients at once.
const CLIENTS: usize = 4;
/// The longest that what attackers have left may live: half-open connections, sessions without an end.
const SETTLE: Duration = Duration::from_secs(75);

fn main() -> ExitCode {
    let Some(plan) = Plan::parse(std::env::args().skip(1)) else {
        eprintln!("soak --seconds N [--only ATTACK] PROGRAM ARGUMENTS...\nsoak --rounds N PROGRAM ARGUMENTS...");
        return ExitCode::from(2);
    };
    let server = Server::start(&plan.program, &plan.arguments);
    let wrong = match plan.rounds {
        Some(rounds) => leaks::look(&server, rounds),
        None => soak(&server, &plan),
    };
    wrong.iter().for_each(|what| println!("soak: {what}"));
    println!("{} passed, {} failed", usize::from(wrong.is_empty()), wrong.len());
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// What the arguments ask for.
#[derive(Default)]
struct Plan {
    seconds: u64,
    /// Instead of a soak.
    rounds: Option<u32>,
    /// The only attack, by its name.
    only: Option<String>,
    program: String,
    arguments: Vec<String>,
}

impl Plan {
    fn parse(mut args: impl Iterator<Item = String>) -> Option<Plan> {
        let mut plan = Plan::default();
        loop {
            let arg = args.next()?;
            match arg.as_str() {
                "--seconds" => plan.seconds = args.next()?.parse().ok()?,
                "--rounds" => plan.rounds = Some(args.next()?.parse().ok()?),
                "--only" => plan.only = Some(args.next()?),
                _ => {
                    plan.program = arg;
                    plan.arguments = args.collect();
                    return (plan.seconds > 0 || plan.rounds.is_some()).then_some(plan);
                }
            }
        }
    }
}

/// Alone and beside attackers by turns, then once more alone. Returns what did not hold.
fn soak(server: &Server, plan: &Plan) -> Vec<String> {
    let slice = Duration::from_secs(plan.seconds) / (2 * SLICES + 1);
    let attacks: Vec<_> =
        attacks::ALL.iter().filter(|attack| plan.only.as_ref().is_none_or(|only| attack.name == only)).collect();
    let mut wrong = Vec::new();
    let mut note = |name: &str, tally: &Tally| {
        wrong.extend(
            tally.wrong.first().map(|what| format!("{name}: {} calls went wrong, first: {what}", tally.wrong.len())),
        );
        tally.percentile(99)
    };

    let (mut alone, mut attacked, mut before) = (Vec::new(), Vec::new(), None);
    for _ in 0..SLICES {
        alone.push(note("alone", &phase("alone", server, slice, &[])));
        before.get_or_insert_with(|| server.holds());
        attacked.push(note("beside attackers", &phase("beside attackers", server, slice, &attacks)));
        println!("held while attacked: {}", server.holds());
    }
    note("alone at the end", &phase("alone at the end", server, slice, &[]));
    let before = before.unwrap_or_else(|| server.holds());
    let left = settled(server, before.descriptors, before.memory + MEMORY, SETTLE);

    let (usual, beside) = (median(alone), median(attacked));
    println!("p99 in the middle slice: {usual:?} alone, {beside:?} beside attackers");
    let bound = usual.max(NOISE) * FACTOR;
    if beside > bound {
        wrong.push(format!("beside attackers the 99th percentile is {beside:?}, more than {bound:?}"));
    }
    if left.descriptors > before.descriptors {
        wrong.push(format!("{} descriptors before, {} at the end", before.descriptors, left.descriptors));
    }
    if left.memory > before.memory + MEMORY {
        wrong.push(format!("{} KiB before, {} KiB at the end", before.memory, left.memory));
    }
    println!("held after the first slice: {before}; at the end: {left}");
    wrong
}

/// The middle one: what else the machine does for a moment does not decide.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Runs the well-behaved clients and the attackers for a time.
fn phase(name: &str, server: &Server, time: Duration, attacks: &[&attacks::Attack]) -> Tally {
    let end = Instant::now() + time;
    let stop = AtomicBool::new(false);
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        for attack in attacks {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // An attacker's own connections fail all the time: that is no news.
                    let _ = (attack.run)(server.address(), &stop);
                    attacks::rest(&stop, attack.pause);
                }
            });
        }
        let clients: Vec<_> =
            (0..CLIENTS).map(|index| scope.spawn(move || client::work(server.address(), index, end))).collect();
        for client in clients {
            all.add(client.join().expect("a client does not panic"));
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!(
        "{name}: {} calls, p50 {:?}, p99 {:?}, slowest {:?}, {} wrong",
        all.times.len(),
        all.percentile(50),
        all.percentile(99),
        all.percentile(100),
        all.wrong.len()
    );
    all
}

/// Waits until the server holds no more than that, or for `patience`.
fn settled(server: &Server, descriptors: usize, memory: u64, patience: Duration) -> server::Holds {
    let end = Instant::now() + patience;
    loop {
        let now = server.holds();
        if (now.descriptors <= descriptors && now.memory <= memory) || Instant::now() > end {
            return now;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
