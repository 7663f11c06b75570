//! The engine alone, without processes and pipes.
//!
//! `engine` measures each case for a short time and prints a table; `engine CASE N` runs a case N times, for
//! callgrind; `engine allocations` counts allocations per message of a whole server (adapter, session, engine,
//! tool).

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::line_server::LineServer;
use mcp_sansio::rpc::Envelope;
use mcp_sansio::server::{MessageLimits, RequestSlot, Server};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_bench::counting::{self, Counting};
use mcp_sansio_bench::{Kind, OPENING};
use serde::Deserialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let Echo { text } = call.args()?;
    call.text(text)
}

macro_rules! tools {
    ($($name:literal)*) => { [$(
        Tool::new($name, "Gives a text back, as it came, and does nothing else with it", echo)
            .title("Echo")
            .input(r#"{"type":"object","properties":{"text":{"type":"string","description":"What is given back"},"times":{"type":"integer","minimum":1}},"required":["text"]}"#),
    )*] };
}

static TOOLS: [Tool<()>; 20] =
    tools!("a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r" "s" "echo");

/// The cases to measure.
const CASES: [(&str, Kind); 8] = [
    ("scan", Kind::Echo32),
    ("envelope", Kind::Echo32),
    ("echo32", Kind::Echo32),
    ("modern32", Kind::Modern32),
    ("list20", Kind::List),
    ("plain64k", Kind::Plain64k),
    ("escaped64k", Kind::Escaped64k),
    ("ping", Kind::Ping),
];

/// Runs a case until `go_on` returns `false`. After each turn it gets the number of turns.
fn run(case: &str, kind: Kind, mut go_on: impl FnMut(u64) -> bool) {
    let line = kind.line(7);
    let message = line.trim_end().as_bytes();
    let service = Service::new("engine", "1").tools(&TOOLS);
    let mut server = Server::growing(MessageLimits::default());
    let mut out = LineSink::new(Vec::with_capacity(256 << 10));
    for opening in OPENING.lines() {
        let _ = service.dispatch(&mut (), opening.as_bytes(), &mut server, &mut out);
    }
    let mut turns = 0;
    loop {
        match case {
            "scan" => drop(black_box(Raw::parse(black_box(message)))),
            "envelope" => drop(black_box(Envelope::parse(black_box(message)))),
            _ => {
                let pending = out.pending().len();
                out.sent(pending);
                let step = service.dispatch(&mut (), black_box(message), &mut server, &mut out);
                assert!(step.is_ok() && out.pending().len() > 10);
            }
        }
        turns += 1;
        if !go_on(turns) {
            break;
        }
    }
    assert!(case == "scan" || case == "envelope" || memchr::memmem::find(out.pending(), b"\"error\"").is_none());
}

fn table() {
    println!("| engine alone | ns | MB/s | allocations |\n|---|---|---|---|");
    for (case, kind) in CASES {
        let (mut began, mut before, mut done, mut allocations) = (Instant::now(), 0, 0, 0);
        run(case, kind, |turns| {
            if turns == 64 {
                (began, before) = (Instant::now(), counting::allocations());
            }
            (done, allocations) = (turns, counting::allocations() - before);
            turns % 64 != 0 || turns == 64 || began.elapsed() < Duration::from_millis(200)
        });
        let (elapsed, turns) = (began.elapsed().as_secs_f64(), (done - 64) as f64);
        let bytes = kind.line(7).len() as f64 * turns;
        println!(
            "| {case} | {:.0} | {:.0} | {:.4} |",
            elapsed / turns * 1e9,
            bytes / elapsed / 1e6,
            allocations as f64 / turns
        );
    }
    println!("\n| public type | bytes |\n|---|---|");
    println!("| Envelope | {} |", size_of::<Envelope<'_>>());
    println!("| Slot | {} |", size_of::<RequestSlot>());
    println!("| Server | {} |", size_of::<Server<'_>>());
    println!("| LineBuffer | {} |", size_of::<LineBuffer<'_>>());
    println!("| Session<Lines<Vec>> | {} |", size_of::<LineServer<'_, LineSink<Vec<u8>>>>());
    println!("| Call | {} |", size_of::<Call<'_>>());
}

/// Prints the allocations of N messages through `serve`, by kind.
fn allocations() {
    let count = |kind: Kind, n: u64| {
        let mut input = OPENING.to_owned();
        (0..n).for_each(|i| input.push_str(&kind.line(i)));
        let service = Service::new("engine", "1").tools(&TOOLS);
        let before = counting::allocations();
        mcp_sansio_blocking::serve(input.as_bytes(), std::io::sink(), &service, &mut (), MessageLimits::default())
            .expect("nothing that fails");
        counting::allocations() - before
    };
    println!("| allocations per message | adapter and engine |\n|---|---|");
    for kind in [Kind::Ping, Kind::List, Kind::Echo32, Kind::Modern32, Kind::Plain64k, Kind::Escaped64k] {
        let n = 200;
        let (once, thrice) = (count(kind, n), count(kind, 3 * n));
        println!("| {} | {:.2} |", kind.name(), (thrice - once) as f64 / (2 * n) as f64);
        assert_eq!(once, thrice, "allocations in the steady state");
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => table(),
        ["allocations"] => allocations(),
        [case, n] => {
            let n: u64 = n.parse().expect("a number");
            let kind = CASES.iter().find(|found| found.0 == case).expect("a case").1;
            run(case, kind, |turns| turns < n);
        }
        _ => eprintln!("usage: engine [allocations | CASE N]"),
    }
}
