//! A soak: well-behaved clients work beside hostile ones, against a real server process over HTTP.
//!
//! ```text
//! soak --seconds 60 [--only ATTACK] PROGRAM ARGUMENTS...     the port is appended to the last argument
//! soak --seconds 600 target/release/examples/calc --http ""
//! soak --seconds 600 target/release/examples/sysmon --http 127.0.0.1:
//! ```
//!
//! One run has two servers of the same kind. One is never attacked: its clients show the usual times on this machine.
//! Beside the clients of the other one work all [attacks](attacks::ALL). The two take turns of a few seconds,
//! so that other load on the machine affects both. Attackers run at the lowest priority, servers and well-behaved clients
//! at a high one if the system allows it: what counts is the work that attackers make for the server, not their own
//! processor time (real ones are on other machines), nor that of other programs.
//!
//! The exit code is 1 unless all of these hold:
//!
//! - every call of a well-behaved client is answered correctly;
//! - in most turns, the 99th percentile of their times beside attackers is at most [`FACTOR`] times that of the turn
//!   before it without attackers (or [`FACTOR`] times [`NOISE`], where that is more);
//! - at the end the attacked server holds as many descriptors as before the first attack, and at most [`MEMORY`] more
//!   memory.
//!
//! `soak --rounds 10000 PROGRAM ARGUMENTS...` looks for leaks of a server instead, see [`leaks`]; `soak --clients
//! 10000` for leaks of our own HTTP clients, see [`clients`]; `soak --children 10000` for those of clients of child processes, see [`children`].

mod attacks;
mod children;
mod client;
mod clients;
mod leaks;
mod server;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::Tally;
use server::Server;

/// The factor by which the slowest of 100 calls may be slower beside attackers.
const FACTOR: f64 = 3.0;
/// A time below this depends on the scheduler: clients, server and attackers share the processors.
const NOISE: Duration = Duration::from_millis(4);
/// The limit of additional memory at the end, in KiB. What stays, as traced with allocations of 100 KB and more: the tables of
/// sessions and of streams keep the slots that they once had (10,000 of 288 and of 160 bytes, which is 4.3 MiB), the log of events
/// keeps what clients may still come back for (1 MiB and the gaps in it: some 3 MiB), and an allocator keeps some freed memory.
const MEMORY: u64 = 16 << 10;
/// The time of a turn, in a run that is long enough for [`TURNS`].
const TURN: Duration = Duration::from_secs(5);
/// The lowest number of turns of each kind.
const TURNS: u32 = 7;
/// The priority of servers and well-behaved clients.
const FIRST: i32 = -15;
/// The priority of attackers.
const LAST: i32 = 19;
/// The number of well-behaved clients at a time.
const CLIENTS: usize = 4;
/// The longest life of things that attackers leave behind: half-open connections, sessions without an end.
const SETTLE: Duration = Duration::from_secs(75);

fn main() -> ExitCode {
    let Some(plan) = Plan::parse(std::env::args().skip(1)) else {
        eprintln!("soak --seconds N [--only ATTACK] PROGRAM ARGUMENTS...");
        eprintln!("soak --rounds N PROGRAM ARGUMENTS...\nsoak --clients N\nsoak --children N");
        return ExitCode::from(2);
    };
    let wrong = if let Some(rounds) = plan.clients {
        clients::look(rounds)
    } else if let Some(rounds) = plan.children {
        children::look(rounds)
    } else {
        // Not everybody may raise a priority. Without it, a busy machine makes the figures worse.
        if rustix::process::setpriority_process(None, FIRST).is_err() {
            println!("soak: at the usual priority: other programs will be seen in the figures");
        }
        let start = || Server::start(&plan.program, &plan.arguments);
        match plan.rounds {
            Some(rounds) => leaks::look(&start(), rounds),
            None => soak(&start(), &start(), &plan),
        }
    };
    wrong.iter().for_each(|what| println!("soak: {what}"));
    println!("{} passed, {} failed", usize::from(wrong.is_empty()), wrong.len());
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// The command line.
#[derive(Default)]
struct Plan {
    seconds: u64,
    /// The rounds against a server, instead of a soak.
    rounds: Option<u32>,
    /// The rounds of our own clients, instead of a soak.
    clients: Option<u32>,
    /// The rounds of which our own clients of child processes make a share, instead of a soak.
    children: Option<u32>,
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
                "--clients" => {
                    plan.clients = Some(args.next()?.parse().ok()?);
                    return Some(plan);
                }
                "--children" => {
                    plan.children = Some(args.next()?.parse().ok()?);
                    return Some(plan);
                }
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

/// Turns at a server that is left alone and at one that is attacked. Returns the violations.
fn soak(alone: &Server, attacked: &Server, plan: &Plan) -> Vec<String> {
    let whole = Duration::from_secs(plan.seconds);
    let turns = u32::try_from(whole.as_secs() / (2 * TURN.as_secs())).unwrap_or(u32::MAX).max(TURNS);
    let turn = whole / (2 * turns + 2);
    let attacks: Vec<_> = attacks::ALL
        .iter()
        .filter(|attack| plan.only.as_ref().is_none_or(|only| attack.name == only))
        .map(|attack| (attack, AtomicUsize::new(0)))
        .collect();

    let mut beside_attackers = Tally::default();
    beside_attackers.add(work(attacked, turn, &[]));
    // A little time for the connections of these clients to close.
    let before = settled(|| attacked.holds(), 0, 0, Duration::from_secs(1));
    let (mut usual, mut ratios) = (Tally::default(), Vec::new());
    for index in 1..=turns {
        let (quiet, beside) = (work(alone, turn, &[]), work(attacked, turn, &attacks));
        let ratio = beside.percentile(99).as_secs_f64() / quiet.percentile(99).max(NOISE).as_secs_f64();
        println!("turn {index}: {quiet}; beside attackers {beside}; factor {ratio:.2}; held: {}", attacked.holds());
        ratios.push(ratio);
        usual.add(quiet);
        beside_attackers.add(beside);
    }
    beside_attackers.add(work(attacked, turn, &[]));
    let left = settled(|| attacked.holds(), before.descriptors, before.memory + MEMORY, SETTLE);

    let mut wrong = Vec::new();
    for (name, tally) in [("alone", &usual), ("beside attackers", &beside_attackers)] {
        println!("{name}: {} calls, {tally}", tally.times.len());
        let first = tally.wrong.first();
        wrong.extend(first.map(|what| format!("{name}: {} calls went wrong, first: {what}", tally.wrong.len())));
    }
    for (attack, rounds) in &attacks {
        let rounds = rounds.load(Ordering::Relaxed);
        println!("{}: {rounds} rounds", attack.name);
        if rounds == 0 {
            wrong.push(format!("{} had no round", attack.name));
        }
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let factor = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    println!("p99 beside attackers: {factor:.2} times the usual one in the middle turn");
    if factor > FACTOR {
        wrong.push(format!("beside attackers the 99th percentile is {factor:.2} times the usual one, not {FACTOR}"));
    }
    if left.descriptors > before.descriptors {
        wrong.push(format!("{} descriptors before, {} at the end", before.descriptors, left.descriptors));
    }
    if left.memory > before.memory + MEMORY {
        wrong.push(format!("{} KiB before, {} KiB at the end", before.memory, left.memory));
    }
    println!("held before the first attack: {before}; at the end: {left}");
    wrong
}

/// Runs the well-behaved clients, and beside them the attackers, for a time. Counts the rounds of each attack.
fn work(server: &Server, time: Duration, attacks: &[(&attacks::Attack, AtomicUsize)]) -> Tally {
    let end = Instant::now() + time;
    let stop = AtomicBool::new(false);
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        for (attack, rounds) in attacks {
            scope.spawn(|| {
                // On Linux, the priority of this thread alone.
                rustix::process::setpriority_process(None, LAST).expect("a priority can be lowered");
                while !stop.load(Ordering::Relaxed) {
                    // Connections of attackers fail all the time.
                    let _ = (attack.run)(server.address(), &stop);
                    rounds.fetch_add(1, Ordering::Relaxed);
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
    all
}

/// Waits at most `patience` until a process holds no more than these limits.
fn settled(holds: impl Fn() -> server::Holds, descriptors: usize, memory: u64, patience: Duration) -> server::Holds {
    let end = Instant::now() + patience;
    loop {
        let now = holds();
        if (now.descriptors <= descriptors && now.memory <= memory) || Instant::now() > end {
            return now;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
