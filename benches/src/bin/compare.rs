//! Loads HTTP servers of several libraries (`PROGRAM http PORT`, at `/mcp`) in turns, and checks every answer. Each has the
//! second processor for itself; with one connection the load runs there too, since client and server never run together then.
//!
//! `compare ROUNDS MILLIS NAME=PROGRAM...` prints a line for each load and server: kind, connections, server, requests/s, as a
//! multiple of the first server's in the same round, µs of the median and of the 99th percentile of an answer, µs of the
//! server's processor time for a request. A server that does not serve a kind has its reason in place of the numbers.

use mcp_sansio_bench::Kind;
use mcp_sansio_bench::load::{Connection, run};
use mcp_sansio_bench::web::Server;
use std::process::Command;
use std::time::Duration;

const LOADS: [(Kind, usize); 18] = [
    (Kind::Echo32, 1),
    (Kind::Echo32, 16),
    (Kind::Echo32, 64),
    (Kind::Modern32, 1),
    (Kind::Modern32, 16),
    (Kind::Modern32, 64),
    // One connection is a client that waits for each answer.
    (Kind::Plain4k, 1),
    (Kind::Plain4k, 16),
    (Kind::Modern4k, 1),
    (Kind::Modern4k, 16),
    (Kind::Plain64k, 1),
    (Kind::Plain64k, 16),
    (Kind::Modern64k, 1),
    (Kind::Modern64k, 16),
    (Kind::Plain1m, 1),
    (Kind::Plain1m, 16),
    (Kind::Modern1m, 1),
    (Kind::Modern1m, 16),
];

/// What one round has measured.
struct Round {
    rate: f64,
    median: f64,
    late: f64,
    cost: f64,
}

/// Puts this process on one processor.
fn move_to(cpu: usize) {
    let id = std::process::id().to_string();
    let moved =
        Command::new("taskset").args(["-pc", &cpu.to_string(), &id]).stdout(std::process::Stdio::null()).status();
    assert!(moved.expect("taskset").success(), "no processor {cpu}");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn measure(server: &Server, connections: &mut [Connection], time: Duration) -> Result<Round, String> {
    let spent = server.processor_time();
    let (seconds, mut took) = run(connections, time)?;
    let spent = (server.processor_time() - spent) as f64;
    took.sort_by(f64::total_cmp);
    let count = took.len();
    Ok(Round {
        rate: count as f64 / seconds,
        median: took[count / 2],
        late: took[count * 99 / 100],
        cost: spent / count as f64 / 1e3,
    })
}

fn main() {
    let mut words = std::env::args().skip(1);
    let mut whole =
        || words.next().and_then(|word| word.parse::<u64>().ok()).expect("compare ROUNDS MILLIS NAME=PROGRAM...");
    let (rounds, time) = (whole(), Duration::from_millis(whole()));
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let own = 1 % cpus;
    let servers: Vec<(String, Server)> = words
        .map(|word| {
            let (name, program) = word.split_once('=').expect("NAME=PROGRAM");
            (name.to_owned(), Server::start(program, own))
        })
        .collect();
    for (kind, width) in LOADS {
        move_to(if width == 1 { own } else { 0 });
        let open = |server: &Server| (0..width).map(|_| Connection::open(server.port, kind)).collect();
        let mut opened: Vec<Result<Vec<Connection>, String>> = servers.iter().map(|(_, server)| open(server)).collect();
        let mut measured: Vec<Vec<Round>> = servers.iter().map(|_| Vec::new()).collect();
        for round in 0..=rounds {
            for (place, (_, server)) in servers.iter().enumerate() {
                let Ok(connections) = &mut opened[place] else { continue };
                // The first is to warm up.
                let time = if round == 0 { time / 4 } else { time };
                let found = measure(server, connections, time).or_else(|_| {
                    // Some servers close a connection that has rested while the others were measured.
                    *connections = open(server)?;
                    measure(server, connections, time)
                });
                match found {
                    Ok(one) if round > 0 => measured[place].push(one),
                    Ok(_) => {}
                    Err(reason) => opened[place] = Err(reason),
                }
            }
        }
        for (place, (name, _)) in servers.iter().enumerate() {
            let values = match &opened[place] {
                Err(reason) => format!("failed\t{reason}"),
                Ok(_) => {
                    let of = |value: fn(&Round) -> f64| median(measured[place].iter().map(value));
                    let pairs = measured[place].iter().zip(&measured[0]);
                    let ratio = median(pairs.map(|(one, first)| one.rate / first.rate));
                    let (rate, middle, late, cost) = (of(|r| r.rate), of(|r| r.median), of(|r| r.late), of(|r| r.cost));
                    format!("{rate:.0}\t{ratio:.3}\t{middle:.1}\t{late:.1}\t{cost:.2}")
                }
            };
            println!("{}\t{width}\t{name}\t{values}", kind.name());
        }
    }
}
