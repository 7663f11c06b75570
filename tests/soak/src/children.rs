//! Rounds of our own clients with servers that are child processes and break off anywhere. Afterwards the clients must hold no more
//! resources than before, and no process is left that has ended and was not waited for.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use mcp_sansio_blocking::client as blocking;
use mcp_sansio_blocking::mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio_blocking::mcp_sansio::revision::Revision;
use mcp_sansio_smol::client as smol_client;

use crate::leaks::{Dice, Rounds};
use crate::server::Holds;

static PROFILE: ClientInfo<'static> = ClientInfo::new("soak", "1");
/// The time for a request: some servers never answer.
const PATIENCE: Duration = Duration::from_millis(200);
/// The time for each step of the end of a process: some end only when they are killed.
const STEP: Duration = Duration::from_millis(20);
/// The limit of time for a round.
const HANGS: Duration = Duration::from_secs(20);
/// The part of the rounds of HTTP clients that these clients make: each starts processes.
const SHARE: u32 = 10;
/// The fewest rounds.
const LEAST: u32 = 100;

/// A function of the shell that answers the request in `line`.
const ANSWER: &str = r#"answer() { id=${line#*'"id":'}; id=${id%%[,\}]*}
    echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[],"tools":[],"resultType":"complete"}}'; }"#;

/// The servers: their names, and what they do, with [`ANSWER`] before it.
const SERVERS: [(&str, &str); 8] = [
    ("answers, and ends at the end of its input", "while read -r line; do answer; done"),
    ("ends at once", "exit 3"),
    ("answers once, and is killed", "read -r line; answer; read -r line; kill -9 $$"),
    ("answers half", "read -r line; answer; read -r line; printf '{\"jsonrpc\":\"2.0\",\"id\"'"),
    ("closes its output, and stays", "read -r line; answer; read -r line; exec >&-; while read -r line; do :; done"),
    (
        "floods",
        "read -r line; answer; while echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}'; do :; done",
    ),
    ("closes its input, and hangs", "read -r line; answer; exec <&-; exec sleep 30"),
    ("hangs, and bears SIGTERM", "trap '' TERM; while read -r line; do :; done; exec sleep 30"),
];

/// A round with a server. Returns how many requests were answered.
type Round = fn(Command, &mut Dice) -> usize;

/// Runs a share of these rounds with each client. Returns the violations.
pub(crate) fn look(rounds: u32) -> Vec<String> {
    let rounds = (rounds / SHARE).max(LEAST);
    let clients: [(&str, Round); 2] = [("blocking", with_blocking), ("smol", with_smol)];
    let mut wrong = Vec::new();
    for (name, round) in clients {
        let (mut dice, mut answers, mut slowest) = (Dice(7), 0, (Duration::ZERO, ""));
        let run = |index: u32| {
            let (kind, script) = SERVERS[index as usize % SERVERS.len()];
            let mut server = Command::new("/bin/sh");
            server.args(["-c", &format!("{ANSWER}\n{script}")]);
            let begun = Instant::now();
            let answered = round(server, &mut dice);
            slowest = slowest.max((begun.elapsed(), kind));
            answers += answered;
            answered > 0
        };
        // One server in eight always answers.
        let found = Rounds { rounds, enough: rounds / 10 }.look(run, || Holds::of("self"));
        let (time, kind) = slowest;
        println!("{name}: {answers} requests were answered, the slowest round took {time:?}: the server {kind}");
        wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        if time > HANGS {
            wrong.push(format!("{name}: a round took {time:?}: the server {kind}"));
        }
        wrong.extend(children().map(|left| format!("{name}: process {left} is left")));
    }
    wrong
}

/// Returns the children of this process that run, or have ended and were not waited for, after a time in which they may end: `PID (NAME)`.
fn children() -> impl Iterator<Item = String> {
    let own = std::process::id().to_string();
    let left = move || -> Vec<String> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
        // `PID (NAME) STATE PARENT ..`; the name may contain anything.
        let is_child = |stat: &String| {
            stat.rsplit_once(')')
                .and_then(|(_, rest)| rest.split_whitespace().nth(1))
                .is_some_and(|parent| parent == own)
        };
        stats.filter(is_child).map(|stat| stat.split(") ").next().unwrap_or("").to_owned() + ")").collect()
    };
    let end = Instant::now() + HANGS;
    while !left().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
    }
    left().into_iter()
}

/// A client, some requests, and the end. Returns how many were answered.
fn with_blocking(server: Command, dice: &mut Dice) -> usize {
    let options = blocking::ClientOptions::DEFAULT.timeout(PATIENCE);
    let options = blocking::ChildOptions::new().options(options).close_time(STEP).terminate_time(STEP);
    let child = blocking::Child::spawn_with(server, &PROFILE, options).expect("there is a shell");
    let mut client = blocking::Client::new(child, blocking::Ignore);
    if client.connect_as(Revision::V2026_07_28).is_err() {
        return 0;
    }
    let answered = (0..=dice.below(3)).filter(|_| client.request(&Request::call("any")).is_ok()).count();
    if dice.below(2) == 0 {
        client.close();
    }
    answered
}

/// The same with futures.
fn with_smol(server: Command, dice: &mut Dice) -> usize {
    let options = smol_client::ClientOptions::DEFAULT.timeout(PATIENCE);
    let options = smol_client::ChildOptions::new().options(options).close_time(STEP).terminate_time(STEP);
    let child = smol_client::Child::spawn_with(server, &PROFILE, options).expect("there is a shell");
    let (client, driver) = smol_client::Client::new(child, smol_client::Ignore);
    let executor = smol::LocalExecutor::new();
    let driver = executor.spawn(driver);
    smol::block_on(executor.run(async {
        let mut answered = 0;
        if client.connect_as(Revision::V2026_07_28).await.is_ok() {
            for _ in 0..=dice.below(3) {
                answered += usize::from(client.request(Request::call("any")).await.is_ok());
            }
        }
        match dice.below(3) {
            0 => drop(client.close().await),
            1 => {
                drop(client);
                driver.await;
            }
            _ => {} // both are dropped with the executor
        }
        answered
    }))
}
