//! `mcp-bridge`: stands between a host, over stdio, or several over HTTP, and a server that is started again, plugged in again or updated while the host
//! stays. See the README of the package.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "what it says to people")]

mod arguments;
mod journal;
mod listen;
mod target;

use std::collections::hash_map::RandomState;
use std::future::{Future, poll_fn};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use async_io::Timer;
use blocking::Unblock;
use futures_lite::{AsyncReadExt, FutureExt};
use mcp_sansio::FullError;
use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo};
use mcp_sansio::frame::{LineBuffer, LineStatus};
use mcp_sansio::json::Raw;
use mcp_sansio::memory::Store;
use mcp_sansio::protocol::ClientCapability as Cap;
use mcp_sansio::server::Millis;
use mcp_sansio_bridge::{Bridge, BridgeLimits};
use mcp_sansio_smol::client::{Client, Driver};

use arguments::{Arguments, Parsed};

/// Bytes of the host that are read ahead.
const READ_AHEAD: usize = 64 << 10;

/// The time for the last answers, after the host has closed stdin. Hosts kill a server two seconds after that.
const GRACE: Duration = Duration::from_secs(1);

/// The state that the tasks of the program share. One thread runs them all.
#[derive(Clone)]
struct Shared {
    bridge: Arc<Mutex<Bridge>>,
    client: Arc<Mutex<Option<Client>>>,
    started: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Calls `act` with the bridge, and with the client if there is one, and writes what the host gets.
    fn act<T>(&self, mut act: impl FnMut(&mut Bridge, Option<&mut ClientHandle<'_, '_>>) -> T) -> T {
        let mut run = |link: Option<&mut ClientHandle<'_, '_>>| {
            let mut bridge = lock(&self.bridge);
            let done = act(&mut bridge, link);
            flush(&mut bridge);
            done
        };
        let client = lock(&self.client).clone();
        match client.and_then(|client| client.handle(|link| run(Some(link))).ok()) {
            Some(done) => done,
            None => run(None),
        }
    }
}

/// Writes to the host. It waits for a host that does not read, and the server behind waits with it.
fn flush(bridge: &mut Bridge) {
    loop {
        let pending = bridge.pending();
        if !pending.is_empty() {
            let mut stdout = io::stdout().lock();
            if stdout.write_all(pending).and_then(|()| stdout.flush()).is_err() {
                // The host is gone; the end of stdin follows.
                std::process::exit(0);
            }
            let n = pending.len();
            bridge.sent(n);
        }
        if !bridge.pull() {
            return;
        }
    }
}

/// Reads the lines of the host until it ends, then waits for its last answers.
async fn serve_host(shared: &Shared, limits: BridgeLimits) {
    let mut stdin = Unblock::with_capacity(READ_AHEAD, io::stdin());
    let mut lines = LineBuffer::new(Store::growing(limits.message));
    loop {
        while let Some(status) = lines.peek() {
            let now = shared.now();
            let taken = shared.act(|bridge, link| match status {
                LineStatus::Message(line) => bridge.line(line, link, now),
                _ => bridge.refuse_too_long(),
            });
            // Everything was flushed: there is room now.
            if taken != Err(FullError::Now) {
                lines.consume();
            }
        }
        match stdin.read(lines.space()).await {
            Ok(n) if n > 0 => lines.filled(n),
            _ => break,
        }
    }
    let idle = poll_fn(|_| if lock(&shared.bridge).is_idle() { Poll::Ready(()) } else { Poll::Pending });
    let patience = async {
        Timer::after(GRACE).await;
    };
    idle.or(patience).await;
}

/// Keeps a connection to the server, and opens another one when it is lost.
async fn keep_server(shared: &Shared, arguments: &Arguments) {
    let mut info: Option<&'static ClientInfo<'static>> = None;
    let mut says = true;
    loop {
        poll_fn(|_| match lock(&shared.bridge).wants_connection() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        let info = *info.get_or_insert_with(|| {
            let host = lock(&shared.bridge).host().cloned();
            // Once for each process: the host stays the same.
            let info = match host {
                Some(host) => Box::leak(Box::new(host)).client_info(),
                None => UNKNOWN,
            };
            Box::leak(Box::new(arguments.restrict(info)))
        });
        let begun = Instant::now();
        match target::open(arguments, info).await {
            Ok(transport) => {
                let events = shared.clone();
                let handler = move |event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>| {
                    let mut bridge = lock(&events.bridge);
                    bridge.event(event, link, events.now());
                    flush(&mut bridge);
                };
                let (client, mut driver) = Client::new(transport, handler);
                *lock(&shared.client) = Some(client.clone());
                let mut opened = pin!(connect(shared, &client));
                let mut told = false;
                let over = poll_fn(|cx| {
                    // The outcome of `connect` is also an event, but for a failure.
                    let _ = opened.as_mut().poll(cx);
                    let bridge = lock(&shared.bridge);
                    if bridge.is_open() && !told {
                        told = true;
                        keep(arguments, &bridge);
                        eprintln!(
                            "mcp-bridge: {} is there, after {} ms",
                            arguments.target,
                            begun.elapsed().as_millis()
                        );
                    }
                    if bridge.is_up() { Poll::Pending } else { Poll::Ready(()) }
                });
                run_beside(&mut driver, over).await;
                *lock(&shared.client) = None;
                says |= told;
                says = say_lost(shared, arguments, says);
                run_beside(&mut driver, async {
                    let _ = client.close().await;
                })
                .await;
            }
            Err(why) => {
                let now = shared.now();
                shared.act(|bridge, _| bridge.failed(&why, now));
                says = say_lost(shared, arguments, says);
            }
        }
    }
}

/// The client for several hosts: a question that its host cannot answer is refused.
const UNKNOWN: ClientInfo<'static> = ClientInfo::new("mcp-bridge", env!("CARGO_PKG_VERSION"))
    .feature(Cap::Sampling)
    .feature(Cap::ElicitForm)
    .feature(Cap::ElicitUrl)
    .feature(Cap::Roots)
    .roots_changed();

async fn connect(shared: &Shared, client: &Client) {
    if let Err(error) = client.connect().await {
        let now = shared.now();
        let why = error.to_string();
        shared.act(|bridge, _| bridge.failed(&why, now));
    }
    std::future::pending().await
}

/// Says once that the server is lost. Returns whether the next loss is said.
fn say_lost(shared: &Shared, arguments: &Arguments, says: bool) -> bool {
    if says {
        eprintln!("mcp-bridge: {} is not there: {}; trying again", arguments.target, lock(&shared.bridge).why());
    }
    false
}

/// Keeps what the server has said, for the next run.
fn keep(arguments: &Arguments, bridge: &Bridge) {
    if let (Some(path), Some(said)) = (&arguments.cache, bridge.server())
        && let Err(error) = std::fs::write(path, said.as_str())
    {
        eprintln!("mcp-bridge: {path}: {error}");
    }
}

/// Runs a driver until `until` is over.
async fn run_beside(driver: &mut Driver, until: impl Future<Output = ()>) {
    let mut until = pin!(until);
    let mut ended = false;
    poll_fn(|cx| {
        // First: its events decide about the other future.
        if !ended {
            ended = Pin::new(&mut *driver).poll(cx).is_ready();
        }
        until.as_mut().poll(cx)
    })
    .await;
}

/// Wakes the program at the deadlines of the bridge.
async fn keep_time(shared: &Shared) -> Result<(), String> {
    let mut timer = Timer::never();
    let mut set = None;
    poll_fn(|cx| {
        loop {
            let due = lock(&shared.bridge).next_deadline();
            if due != set {
                set = due;
                let at = due.and_then(|due| shared.started.checked_add(Duration::from_millis(due)));
                timer = at.map_or_else(Timer::never, Timer::at);
            }
            if Pin::new(&mut timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            set = None;
            let now = shared.now().max(due.unwrap_or(0));
            shared.act(|bridge, link| bridge.expire(link, now));
            // The other tasks look at the new state.
            cx.waker().wake_by_ref();
        }
    })
    .await
}

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Parsed::Run(arguments)) => arguments,
        Ok(Parsed::Help(text)) => {
            let _ = io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("mcp-bridge: {why}");
            return ExitCode::from(2);
        }
    };
    let bridge = match arguments.listen {
        Some(_) => {
            let keys = RandomState::new();
            Bridge::for_hosts(arguments.limits, move |round| keys.hash_one(round))
        }
        None => Bridge::new(arguments.limits),
    };
    let mut bridge = bridge.tools(arguments.tools.clone());
    let said = arguments.cache.as_ref().and_then(|path| std::fs::read(path).ok());
    if let Some(said) = said.as_deref().and_then(|said| Raw::parse(said).ok()) {
        bridge = bridge.known_server(said);
    }
    if let Some(path) = &arguments.journal {
        match journal::open(path) {
            Ok(journal) => bridge = bridge.journal(journal),
            Err(error) => {
                eprintln!("mcp-bridge: {path}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    let shared = Shared { bridge: Arc::new(Mutex::new(bridge)), client: Arc::default(), started: Instant::now() };
    let server = async { keep_server(&shared, &arguments).await };
    // Messages for hosts that the futures before have left: the server in front takes them.
    let rest = poll_fn(|cx| {
        if lock(&shared.bridge).has_output() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    });
    let hosts = async {
        match &arguments.listen {
            Some(address) => listen::serve_hosts(&shared, &arguments, address).await,
            None => {
                serve_host(&shared, arguments.limits).await;
                Ok(())
            }
        }
    };
    let server = async {
        server.await;
        Ok(())
    };
    let served = async_io::block_on(hosts.or(server).or(keep_time(&shared)).or(rest));
    let client = lock(&shared.client).take();
    drop(client);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("mcp-bridge: {why}");
            ExitCode::FAILURE
        }
    }
}
