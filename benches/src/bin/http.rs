//! Loads HTTP servers (`PROGRAM http PORT`, at `/mcp`) and checks every answer.
//!
//! - `http load NAME=PROGRAM...` prints rates over 1 and 16 kept connections, in rounds, compared with the
//!   first server.
//! - `http allocations` counts the allocations of the blocking server and the endpoint for each request.
//! - `http requests KIND N PROGRAM [MICROSECONDS]` sends N requests over one connection, to count instructions or system
//!   calls, with a pause before each. `http heads …` does the same with heads that differ from each other.

use mcp_sansio_bench::Kind;
use mcp_sansio_bench::counting::{self, Counting};
use mcp_sansio_bench::web::{Load, Server, rate};
use std::time::Duration;

use mcp_sansio::json::Text;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::HttpServer;

const ROUNDS: usize = 5;
const WARM: Duration = Duration::from_millis(100);
const MEASURE: Duration = Duration::from_millis(400);

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn loads(servers: &[(&str, &str)]) {
    println!("| HTTP load | connections | server | requests/s | of {0} | cpu us each | of {0} |", servers[0].0);
    println!("|---|---|---|---|---|---|---|");
    for (kind, width) in [(Kind::Modern32, 1), (Kind::Modern32, 16), (Kind::Echo32, 1), (Kind::Echo32, 16)] {
        let cpu = if width == 1 { 0 } else { 1 };
        let mut measured = vec![Vec::new(); servers.len()];
        for _ in 0..ROUNDS {
            for (place, (_, program)) in measured.iter_mut().zip(servers) {
                let server = Server::start(program, cpu);
                let mut clients: Vec<_> = (0..width).map(|_| Load::new(server.port, kind)).collect();
                rate(&server, &mut clients, WARM);
                place.push(rate(&server, &mut clients, MEASURE));
            }
        }
        for (results, (name, _)) in measured.iter().zip(servers) {
            let ratio =
                |of: fn(&(f64, f64)) -> f64| median(results.iter().zip(&measured[0]).map(|(a, b)| of(a) / of(b)));
            println!(
                "| {} | {width} | {name} | {:.0} | {:.2} | {:.2} | {:.2} |",
                kind.name(),
                median(results.iter().map(|r| r.0)),
                ratio(|r| r.0),
                median(results.iter().map(|r| r.1)),
                ratio(|r| r.1)
            );
        }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

static TOOLS: [Tool<()>; 1] = [Tool::new("echo", "Gives a text back", echo)
    .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#)];

/// Counts the allocations of client and server: both run in this process.
fn allocations() {
    let server = HttpServer::bind("127.0.0.1:0").expect("a free port");
    let port = server.local_addr().expect("bound").port();
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.serve(&Service::new("count", "1").tools(&TOOLS), &mut ()));
    println!("| allocations per HTTP request | driver, endpoint, engine |\n|---|---|");
    for (kind, width) in [(Kind::Modern32, 1), (Kind::Modern32, 16), (Kind::Echo32, 1), (Kind::Echo32, 16)] {
        let mut loads: Vec<_> = (0..width).map(|_| Load::new(port, kind)).collect();
        let mut run = |n: usize| {
            let before = counting::allocations();
            for _ in 0..n {
                loads.iter_mut().for_each(Load::send);
                loads.iter_mut().for_each(Load::check);
            }
            counting::allocations() - before
        };
        run(100);
        let count = run(1000);
        println!("| {}, {width} connections | {:.3} |", kind.name(), count as f64 / (1000 * width) as f64);
        assert_eq!(count, 0, "allocations in the steady state");
    }
    stopper.stop();
    serving.join().expect("no panic").expect("no error");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", ref servers @ ..] if !servers.is_empty() => {
            loads(&servers.iter().map(|s| s.split_once('=').expect("NAME=PROGRAM")).collect::<Vec<_>>());
        }
        ["allocations"] => allocations(),
        [how @ ("requests" | "heads"), kind, n, program, ref pause @ ..] => {
            let pause = pause.first().map_or(0, |pause| pause.parse().expect("microseconds"));
            let server = Server::start(program, 0);
            let mut load = Load::new(server.port, Kind::named(kind));
            if how == "heads" {
                load.change_heads();
            }
            for _ in 0..n.parse().expect("a number") {
                std::thread::sleep(Duration::from_micros(pause));
                load.send();
                load.check();
            }
        }
        _ => eprintln!("usage: http load NAME=PROGRAM... | allocations | requests|heads KIND N PROGRAM [MICROSECONDS]"),
    }
}
