//! A soak: well-behaved clients work beside hostile ones, against a real server process over HTTP.
//!
//! ```text
//! soak --seconds 60 PROGRAM ARGUMENTS...     the port is appended to the last argument
//! soak --seconds 600 target/release/examples/calc --http ""
//! soak --seconds 600 target/release/examples/sysmon --http 127.0.0.1:
//! ```
//!
//! Three phases of one run, with the same server:
//!
//! 1. well-behaved clients alone, for a quarter of the time;
//! 2. the same clients beside every [attack](attacks::ALL), for half of the time;
//! 3. the attackers are gone: once more the well-behaved clients alone.
//!
//! What must hold, or the exit code is 1:
//!
//! - every call of a well-behaved client is answered, and rightly, in all phases;
//! - the 99th percentile of their times beside attackers is at most [`FACTOR`] times that of phase 1 (or of
//!   [`NOISE`], where phase 1 is quicker);
//! - at the end the server holds as many descriptors as after phase 1, and at most [`MEMORY`] more memory.

mod attacks;
mod client;
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
/// Well-behaved clients at once.
const CLIENTS: usize = 4;
/// The longest that what attackers have left may live: half-open connections, sessions without an end.
const SETTLE: Duration = Duration::from_secs(75);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some("--seconds"), Some(seconds), Some(program)) = (args.next().as_deref(), args.next(), args.next()) else {
        eprintln!("soak --seconds N PROGRAM ARGUMENTS...");
        return ExitCode::from(2);
    };
    let Ok(seconds) = seconds.parse::<u64>() else {
        eprintln!("soak: {seconds} is no number of seconds");
        return ExitCode::from(2);
    };
    let server = Server::start(&program, &args.collect::<Vec<_>>());
    let quarter = Duration::from_secs(seconds) / 4;

    let alone = phase("alone", &server, quarter, &[]);
    let before = server.holds();
    let attacked = phase("beside attackers", &server, quarter * 2, attacks::ALL);
    println!("held while attacked: {}", server.holds());
    let after = phase("alone again", &server, quarter, &[]);
    let left = settle(&server, &before);

    let mut wrong = Vec::new();
    for (name, tally) in [("alone", &alone), ("beside attackers", &attacked), ("alone again", &after)] {
        wrong.extend(
            tally.wrong.first().map(|what| format!("{name}: {} calls went wrong, first: {what}", tally.wrong.len())),
        );
    }
    let bound = alone.percentile(99).max(NOISE) * FACTOR;
    if attacked.percentile(99) > bound {
        wrong.push(format!(
            "beside attackers the 99th percentile is {:?}, more than {bound:?}",
            attacked.percentile(99)
        ));
    }
    if left.descriptors > before.descriptors {
        wrong.push(format!("{} descriptors before, {} at the end", before.descriptors, left.descriptors));
    }
    if left.memory > before.memory + MEMORY {
        wrong.push(format!("{} KiB before, {} KiB at the end", before.memory, left.memory));
    }
    println!("held after phase 1: {before}; at the end: {left}");
    wrong.iter().for_each(|what| println!("soak: {what}"));
    println!("{} passed, {} failed", usize::from(wrong.is_empty()), wrong.len());
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Runs the well-behaved clients and the attackers for a time.
fn phase(name: &str, server: &Server, time: Duration, attacks: &[attacks::Attack]) -> Tally {
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

/// Waits until the server holds no more than before, or for [`SETTLE`].
fn settle(server: &Server, before: &server::Holds) -> server::Holds {
    let end = Instant::now() + SETTLE;
    loop {
        let now = server.holds();
        let settled = now.descriptors <= before.descriptors && now.memory <= before.memory + MEMORY;
        if settled || Instant::now() > end {
            return now;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
