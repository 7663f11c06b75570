//! `mcp-bridge`: stands between a host, over stdio, or several over HTTP, and a server that is started again, plugged in again or updated while the host
//! stays. See the README of the package.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "what it says to people")]

mod arguments;
#[cfg_attr(not(target_os = "linux"), path = "no_clock.rs")]
mod clock;
mod journal;
mod listen;
#[cfg_attr(not(feature = "tls"), path = "no_login.rs")]
mod login;
#[cfg_attr(not(feature = "tls"), path = "no_resource_server.rs")]
mod resource_server;
#[cfg_attr(not(unix), path = "no_system.rs")]
mod system;
mod target;

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::future::{Future, poll_fn};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use async_io::Timer;
use blocking::Unblock;
use futures_lite::{AsyncReadExt, FutureExt};
use mcp_sansio::FullError;
use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo};
use mcp_sansio::frame::{LineBuffer, LineStatus};
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::memory::Store;
use mcp_sansio::protocol::ClientCapability as Cap;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::to_vec;
use mcp_sansio_bridge::{Bridge, BridgeLimits, Hub};
use mcp_sansio_smol::Stopper;
use mcp_sansio_smol::client::{Client, Driver};

use arguments::{Arguments, Parsed, Target};
use clock::Clock;

/// Bytes of the host that are read ahead.
const READ_AHEAD: usize = 64 << 10;

/// The time for the last answers, after the host has closed stdin. Hosts kill a server two seconds after that; [`target`] has the
/// rest of that time for the end of the servers.
const GRACE: Duration = Duration::from_secs(1);

/// The state that the tasks of the program share. One thread runs them all.
#[derive(Clone)]
struct Shared {
    hub: Arc<Mutex<Hub>>,
    /// The client of each server.
    clients: Arc<[Mutex<Option<Client>>]>,
    clock: Clock,
}

thread_local! {
    /// The hosts are polled, and in the same round the drivers after them.
    static BEFORE_DRIVERS: Cell<bool> = const { Cell::new(false) };
    /// The host has left: the servers are closed, and no other connection is opened.
    static ENDING: Cell<bool> = const { Cell::new(false) };
}

/// Wakes the program for a driver that would not be polled anyway: another round for each line of the host takes 2,300 instructions.
struct DriverWaker(Waker);

impl Wake for DriverWaker {
    fn wake(self: Arc<Self>) {
        if !BEFORE_DRIVERS.get() {
            self.0.wake_by_ref();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Calls `act` with the bridge of a server, and with its client if there is one, and writes what the host gets.
    fn act<T>(&self, at: usize, mut act: impl FnMut(&mut Bridge, Option<&mut ClientHandle<'_, '_>>) -> T) -> T {
        let mut run = |link: Option<&mut ClientHandle<'_, '_>>| {
            let mut hub = lock(&self.hub);
            let bridge = hub.bridge(at);
            let done = act(bridge, link);
            flush(bridge);
            done
        };
        let client = lock(&self.clients[at]).clone();
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

/// Reads the lines of the host until it ends.
async fn serve_host(shared: &Shared, limits: BridgeLimits) {
    let mut stdin = Unblock::with_capacity(READ_AHEAD, io::stdin());
    let mut lines = LineBuffer::new(Store::growing(limits.message));
    loop {
        while let Some(status) = lines.peek() {
            let now = shared.now();
            let taken = shared.act(0, |bridge, link| match status {
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
            _ => return,
        }
    }
}

/// Waits for a signal that ends the program.
async fn stopped(stopper: &Stopper) {
    poll_fn(|cx| if stopper.count(cx) > 0 { Poll::Ready(()) } else { Poll::Pending }).await
}

/// Closes the clients of all servers: a child process ends before this does.
async fn close(shared: &Shared) -> Result<(), String> {
    ENDING.set(true);
    let clients = shared.clients.iter().filter_map(|client| lock(client).clone());
    let mut closing: Vec<_> = clients.map(|client| Box::pin(async move { client.close().await })).collect();
    poll_fn(|cx| {
        closing.retain_mut(|client| client.as_mut().poll(cx).is_pending());
        if closing.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// Keeps a connection to the server, and opens another one when it is lost.
async fn keep_server(shared: &Shared, arguments: &Arguments, at: usize, target: &Target) {
    let mut info: Option<&'static ClientInfo<'static>> = None;
    let mut says = true;
    loop {
        poll_fn(|_| match lock(&shared.hub).bridge(at).wants_connection() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        let info = *info.get_or_insert_with(|| {
            let host = lock(&shared.hub).bridge(at).host().cloned();
            // Once for each process: the host stays the same.
            let info = match host {
                Some(host) => Box::leak(Box::new(host)).client_info(),
                None => UNKNOWN,
            };
            Box::leak(Box::new(arguments.restrict(info)))
        });
        let begun = Instant::now();
        match target::open(shared, arguments, at, info).await {
            Ok(transport) => {
                let events = shared.clone();
                let handler = move |event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>| {
                    let mut hub = lock(&events.hub);
                    let bridge = hub.bridge(at);
                    bridge.event(event, link, events.now());
                    flush(bridge);
                };
                let (client, mut driver) = Client::new(transport, handler);
                *lock(&shared.clients[at]) = Some(client.clone());
                let mut opened = pin!(connect(shared, at, &client));
                let mut told = false;
                let over = poll_fn(|cx| {
                    // The outcome of `connect` is also an event, but for a failure.
                    let _ = opened.as_mut().poll(cx);
                    let mut hub = lock(&shared.hub);
                    let bridge = hub.bridge(at);
                    if bridge.is_open() && !told {
                        told = true;
                        eprintln!("mcp-bridge: {} is there, after {} ms", target.label(), begun.elapsed().as_millis());
                        keep(arguments, &mut hub);
                        return Poll::Pending;
                    }
                    if bridge.is_up() || ENDING.get() { Poll::Pending } else { Poll::Ready(()) }
                });
                run_beside(&mut driver, over).await;
                *lock(&shared.clients[at]) = None;
                says |= told;
                says = say_lost(shared, at, target, says);
                run_beside(&mut driver, async {
                    let _ = client.close().await;
                })
                .await;
            }
            Err(why) => {
                let now = shared.now();
                shared.act(at, |bridge, _| bridge.failed(&why, now));
                says = say_lost(shared, at, target, says);
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

async fn connect(shared: &Shared, at: usize, client: &Client) {
    if let Err(error) = client.connect().await {
        let now = shared.now();
        let why = error.to_string();
        shared.act(at, |bridge, _| bridge.failed(&why, now));
    }
    std::future::pending().await
}

/// Says once that the server is lost. Returns whether the next loss is said.
fn say_lost(shared: &Shared, at: usize, target: &Target, says: bool) -> bool {
    if says {
        let (mut hub, label) = (lock(&shared.hub), target.label());
        eprintln!("mcp-bridge: {label} is not there: {}; trying again", hub.bridge(at).why());
    }
    false
}

/// Keeps what the servers have said, for the next run: that of the only one as it is, of several by their names.
fn keep(arguments: &Arguments, hub: &mut Hub) {
    let Some(path) = &arguments.cache else { return };
    let written = to_vec(|out| {
        let mut all = Object::open(out);
        for (at, target) in arguments.targets.iter().enumerate() {
            all.raw_if(&target.name, hub.bridge(at).server());
        }
        all.close();
    });
    let said = match &*arguments.targets {
        [only] if only.name.is_empty() => hub.bridge(0).server().map(|said| said.as_bytes()),
        _ => written.as_deref().ok(),
    };
    if let Some(Err(error)) = said.map(|said| replace(path, said)) {
        eprintln!("mcp-bridge: {path}: {error}");
    }
}

/// Replaces a file as a whole: a program that reads it meanwhile gets the old text or the new one.
fn replace(path: &str, text: &[u8]) -> io::Result<()> {
    let fresh = format!("{path}.{}.new", std::process::id());
    // Of a process with the same id that was killed.
    let _ = fs::remove_file(&fresh);
    let file = system::private(OpenOptions::new().write(true).create_new(true)).open(&fresh);
    let written = file.and_then(|mut file| file.write_all(text)).and_then(|()| fs::rename(&fresh, path));
    written.inspect_err(|_| drop(fs::remove_file(&fresh)))
}

/// Runs a driver until `until` is over.
async fn run_beside(driver: &mut Driver, until: impl Future<Output = ()>) {
    let mut until = pin!(until);
    let (mut ended, mut waker) = (false, None);
    poll_fn(|cx| {
        // First: its events decide about the other future.
        if !ended {
            let waker = waker.get_or_insert_with(|| Waker::from(Arc::new(DriverWaker(cx.waker().clone()))));
            ended = Pin::new(&mut *driver).poll(&mut Context::from_waker(waker)).is_ready();
        }
        until.as_mut().poll(cx)
    })
    .await;
}

/// Wakes the program at the deadlines of the bridge.
async fn keep_time(shared: &Shared) {
    let mut timer = Timer::never();
    let mut set = None;
    poll_fn(|cx| {
        loop {
            let due = {
                let mut hub = lock(&shared.hub);
                (0..hub.len()).filter_map(|at| hub.bridge(at).next_deadline()).min()
            };
            if due != set {
                set = due;
                let after = due.map(|due| Duration::from_millis(due.saturating_sub(shared.now())));
                timer = after.map_or_else(Timer::never, Timer::after);
            }
            if Pin::new(&mut timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            set = None;
            let now = shared.now().max(due.unwrap_or(0));
            (0..shared.clients.len()).for_each(|at| shared.act(at, |bridge, link| bridge.expire(link, now)));
            // The other tasks look at the new state.
            cx.waker().wake_by_ref();
        }
    })
    .await
}

fn main() -> ExitCode {
    let refused = |why: &str, status: u8| {
        eprintln!("mcp-bridge: {why}");
        ExitCode::from(status)
    };
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Parsed::Run(arguments)) => arguments,
        Ok(Parsed::Help(text)) => {
            let _ = io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(why) => return refused(&why, 2),
    };
    let served = match hub(&arguments) {
        Ok(hub) => serve(&arguments, hub),
        Err(why) => return refused(&why, 2),
    };
    served.map_or_else(|why| refused(&why, 1), |()| ExitCode::SUCCESS)
}

/// Runs the front and all servers until the host has gone, or a signal comes.
fn serve(arguments: &Arguments, hub: Hub) -> Result<(), String> {
    let clients = arguments.targets.iter().map(|_| Mutex::default()).collect();
    let shared = Shared { hub: Arc::new(Mutex::new(hub)), clients, clock: Clock::start() };
    let is_line = arguments.listen.is_none() && !arguments.is_hub();
    let hosts = async {
        if let Some(address) = &arguments.listen {
            return listen::serve_hosts(&shared, arguments, address).await;
        }
        let stopper = Stopper::new();
        system::at_signal(stopper.clone())?;
        match is_line {
            true => serve_host(&shared, arguments.limits).or(stopped(&stopper)).await,
            false => listen::serve_line(&shared, &arguments.limits, &stopper).await,
        }
        Ok(())
    };
    let mut hosts = pin!(hosts);
    let hosts = poll_fn(|cx| {
        BEFORE_DRIVERS.set(true);
        let polled = hosts.as_mut().poll(cx);
        BEFORE_DRIVERS.set(false);
        polled
    });
    let keep = |(at, target)| Box::pin(keep_server(&shared, arguments, at, target));
    let mut servers: Vec<_> = arguments.targets.iter().enumerate().map(keep).collect();
    let mut time = pin!(keep_time(&shared));
    let mut others = pin!(poll_fn(|cx| {
        for server in &mut servers {
            let _ = server.as_mut().poll(cx);
        }
        let _ = time.as_mut().poll(cx);
        // Last: what the others have left. One host on a line gets all from its bridge: 400 instructions less for a call.
        if !is_line && pass_on(&shared) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }));
    async_io::block_on(async {
        hosts.or(others.as_mut()).await?;
        // After the drivers in each round: they bring the last answers.
        let is_idle = || !is_line || lock(&shared.hub).bridge(0).is_idle();
        let answered = poll_fn(|_| if is_idle() { Poll::Ready(Ok(())) } else { Poll::Pending });
        let patience = async {
            Timer::after(GRACE).await;
            Ok(())
        };
        others.as_mut().or(answered).or(patience).await?;
        close(&shared).or(others).await
    })
}

/// Makes the bridges of all servers.
fn hub(arguments: &Arguments) -> Result<Hub, String> {
    let fault = |path: &str, error: io::Error| format!("{path}: {error}");
    let (mut said, most) = (Vec::new(), u64::try_from(arguments.limits.message).unwrap_or(u64::MAX));
    if let Some(file) = arguments.cache.as_ref().and_then(|path| File::open(path).ok()) {
        // One that is longer is cut, and so no JSON: it is left out.
        let _ = file.take(most).read_to_end(&mut said);
    }
    let said = Raw::parse(&said).ok();
    let mut bridges = Vec::new();
    for target in &arguments.targets {
        // Where the end of a program or of a connection is seen, there is nothing to check.
        let check = if target.is_silent() { arguments.limits.check } else { Millis::MAX };
        let limits = arguments.limits.check(check);
        let mut bridge = match arguments.listen.is_some() || arguments.is_hub() {
            true => {
                let keys = RandomState::new();
                Bridge::for_hosts(limits, move |round| keys.hash_one(round))
            }
            false => Bridge::new(limits),
        };
        bridge = bridge.tools(arguments.tools.clone());
        let name = &*target.name;
        if let Some(said) = if name.is_empty() { said } else { said.and_then(|said| said.get(name)) } {
            bridge = bridge.known_server(said);
        }
        if let Some(path) = &arguments.journal {
            bridge = bridge.journal(
                journal::open(path, name.into(), arguments.journals_arguments).map_err(|error| fault(path, error))?,
            );
        }
        bridges.push((name.to_owned(), bridge));
    }
    Hub::new(bridges)
}

/// Passes on what the hub has for servers. Returns whether there is something for hosts, or more may come.
fn pass_on(shared: &Shared) -> bool {
    let mut has_worked = false;
    while let Some((at, work)) = { lock(&shared.hub).next_work() } {
        let (now, mut work) = (shared.now(), Some(work));
        shared.act(at, |bridge, link| work.take().map(|work| work.run(bridge, link, now)));
        has_worked = true;
    }
    lock(&shared.hub).has_output() || has_worked
}
