//! The loop of the server: sockets and timers around one endpoint.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::server::Millis;
use mcp_sansio_host::{HttpServerOptions, HttpShutdown, LateReceiver, ShutdownStep, SpareDescriptors, Stopper};
use mcp_sansio_http::endpoint::{App, StreamId};
use mcp_sansio_http::host::{BodyBuffer, Budget, ServeContext};
use mcp_sansio_http::http1;
use rustix::event::Timespec;

use super::connection::Connection;
use super::socket::{Listener, Socket};
use super::sockets::{Ready, Sockets, Wants};
use super::{HttpEndpoint, HttpServer, Tick, Watch};

/// A server while it serves.
pub(super) struct Serving<'a, S: 'static> {
    /// `None` when the server ends.
    listener: Option<Listener>,
    /// It serves one stream, and no connection will come.
    is_single: bool,
    options: HttpServerOptions,
    late: Option<LateReceiver<S>>,
    watch: Option<Watch<S>>,
    /// The time to look for changes next; `None` while no stream is open.
    look_at: Option<Millis>,
    tick: Option<Tick<S>>,
    stopper: Stopper,
    shutdown: HttpShutdown,
    /// Ends a wait of the loop, from any thread.
    waker: Waker,
    woken: UnixStream,
    endpoint: HttpEndpoint,
    app: App<'a, S>,
    body: BodyBuffer<Vec<u8>>,
    random: File,
    epoch: Millis,
    started: Instant,
    /// The time of the last look at the clock.
    time: Millis,
    connections: Vec<Option<Connection>>,
    /// Free places in `connections`.
    free: Vec<usize>,
    /// The connection of each stream, by [`StreamId::slot`].
    carriers: Vec<usize>,
    /// No deadline of a connection is before this time.
    soonest: Millis,
    /// The time to release the buffers of idle connections.
    sweep: Millis,
    /// The time to accept connections again, after an error.
    accept_at: Option<Millis>,
    spare: SpareDescriptors,
    /// No descriptors are left for connections, until one closes.
    crowded: bool,
    /// The memory that inputs and outputs of connections may take.
    budget: Budget,
    accepting: bool,
    sockets: Sockets,
    /// Connections whose request waits until the stream of its session was read.
    parked: Vec<usize>,
    /// Connections whose request the application has not decided about.
    #[cfg(feature = "resource-server")]
    undecided: Vec<usize>,
    /// The sockets that are ready. Kept between turns for its allocation.
    ready: Vec<Ready>,
    /// The streams to be written in the next turns.
    streams: Vec<StreamId>,
}

/// Wakes the loop: late messages have come, or it is stopped.
struct Bell(UnixStream);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // If the socket is full, the loop is awake.
        let _ = (&self.0).write(&[1]);
    }
}

/// The numbers of the sockets that belong to no connection.
const WOKEN: usize = usize::MAX;
const LISTENER: usize = usize::MAX - 1;

/// Some 50 days: long enough, and far from the end of the numbers.
const FOREVER: Millis = u32::MAX as Millis;

/// The period of releasing buffers of idle connections.
const SWEEP: Millis = 5_000;

/// The time without accepting after an error.
const ACCEPT_PAUSE: Millis = 100;

/// Number of requests that may wait for the stream of their session. Further ones are handled at once, and may get 503.
const PARKED: usize = 256;

/// The limit of streams that are written in one turn. After a change for ten thousand of them, requests wait for these.
const AT_ONCE: usize = 64;

/// The time for the rest of the output of a server over one stream.
pub(super) const GRACE: Duration = Duration::from_secs(5);

impl<'a, S> Serving<'a, S> {
    pub(super) fn new(server: HttpServer<'_, S>, app: App<'a, S>) -> io::Result<Self> {
        // A wall clock at the start, and then a monotonic one: a `requestState` may come back to another process.
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis);
        let sockets = Sockets::new()?;
        let (woken, bell) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        sockets.add(&woken, Wants::Read, WOKEN)?;
        if let Some(listener) = server.listener.fd() {
            sockets.add(listener, Wants::Read, LISTENER)?;
        }
        let endpoint = server.options.endpoint();
        let endpoint = match server.fleet {
            Some(fleet) => endpoint.fleet(fleet),
            None => endpoint,
        };
        let waker = Waker::from(Arc::new(Bell(bell)));
        Ok(Serving {
            is_single: server.listener.fd().is_none(),
            listener: Some(server.listener),
            late: server.late,
            watch: server.watch,
            look_at: None,
            tick: server.tick,
            stopper: server.stopper,
            shutdown: server.shutdown,
            waker,
            woken,
            endpoint,
            app,
            body: BodyBuffer::new(Vec::new()),
            random: File::open("/dev/urandom")?,
            epoch,
            started: Instant::now(),
            time: epoch,
            connections: Vec::new(),
            free: Vec::new(),
            carriers: Vec::new(),
            soonest: Millis::MAX,
            sweep: Millis::MAX,
            accept_at: None,
            spare: SpareDescriptors::of(server.options.spare_descriptors),
            crowded: false,
            budget: Budget::new(server.options.input_total).output(server.options.output_total),
            options: server.options,
            accepting: true,
            sockets,
            parked: Vec::new(),
            #[cfg(feature = "resource-server")]
            undecided: Vec::new(),
            ready: Vec::new(),
            streams: Vec::new(),
        })
    }

    pub(super) fn run(&mut self) -> io::Result<()> {
        // Sessions that other processes have ended get 404 from the first request on.
        while self.hear().0 {}
        // The first turn does not wait: it registers what wakes the others.
        let mut wake = Some(0);
        loop {
            wake = self.turn_all(wake)?;
            // A server over one stream ends with it.
            if self.end() || (self.is_single && self.open() == 0) {
                return Ok(());
            }
        }
    }

    /// Does one turn of the loop: waits until the time `wake` at most, and does all that can be done then. Returns the time of the
    /// next turn, if there is something to do.
    fn turn_all(&mut self, wake: Option<Millis>) -> io::Result<Option<Millis>> {
        self.wait(wake)?;
        self.time = self.now();
        for at in 0..self.ready.len() {
            let Some(&Ready { number, gone }) = self.ready.get(at) else { break };
            match number {
                WOKEN => while self.woken.read(&mut [0; 64]).is_ok_and(|n| n == 64) {},
                LISTENER => self.accept(Listener::accept),
                slot => {
                    // The handlers of the turns before it may have taken long.
                    if at > 0 {
                        self.time = self.now();
                    }
                    self.turn_now(slot, true);
                    if gone {
                        self.hang_up(slot);
                    }
                }
            }
        }
        self.time = self.now();
        let (more, mut asks) = self.hear();
        self.expire();
        self.look();
        // Each look at the clock is 1 % of the instructions of a `tools/call`.
        let now = if self.tick.is_some() { self.now() } else { self.time };
        let mut wake = more.then_some(now);
        if let Some(tick) = &mut self.tick {
            wake = wake.into_iter().chain(tick(&mut self.app, &mut self.endpoint, now)).min();
            // It may have learned of decisions.
            asks = true;
        }
        if asks {
            self.ask_again();
        }
        Ok(wake.into_iter().chain(self.write_streams(now)).chain(self.serve_parked(now)).min())
    }

    /// Takes late messages. Returns whether there may be more, and whether the application can decide about requests.
    fn hear(&mut self) -> (bool, bool) {
        let Serving { late, endpoint, app, waker, .. } = self;
        let Some(late) = late else { return (false, false) };
        late.give(endpoint, app.service, app.state);
        (late.poll_ready(&mut Context::from_waker(waker)).is_ready(), late.take_decided())
    }

    /// Serves the connections again whose requests wait for the stream of their session. Returns the time of the next turn, if there
    /// is something to do.
    fn serve_parked(&mut self, now: Millis) -> Option<Millis> {
        let parked = std::mem::take(&mut self.parked);
        let mut wake = None;
        for slot in &parked {
            if let Some(connection) = self.connections[*slot].as_mut() {
                connection.parked = false;
                self.turn(*slot, false);
            }
            if !self.parked.contains(slot) {
                // What it has put into the stream is written in the next turn.
                wake = Some(now + 1);
            }
        }
        wake
    }

    /// Asks the application again about the requests about which it has not decided.
    fn ask_again(&mut self) {
        #[cfg(feature = "resource-server")]
        for slot in std::mem::take(&mut self.undecided) {
            if let Some(connection) = self.connections[slot].as_mut() {
                connection.listed = false;
                self.turn(slot, false);
            }
        }
    }

    /// Looks for changes, if it is time.
    fn look(&mut self) {
        let (Some(watch), now) = (&self.watch, self.time) else { return };
        if self.look_at.take_if(|at| *at <= now).is_some() {
            (watch.look)(self.app.state, &mut self.endpoint);
        }
        let period = watch.period.as_millis().try_into().unwrap_or(Millis::MAX);
        let (_, _, streams) = self.endpoint.load();
        self.look_at = (streams > 0).then(|| self.look_at.unwrap_or(now.saturating_add(period)));
    }

    /// Takes the steps to the end of the server. Returns whether it has ended.
    fn end(&mut self) -> bool {
        let stops = self.stopper.count(&Context::from_waker(&self.waker));
        if stops == 0 {
            return false;
        }
        loop {
            let is_drained = self.is_drained();
            match self.shutdown.step(stops, is_drained, Instant::now()) {
                None => return false,
                Some(ShutdownStep::Drain) => self.drain(),
                Some(ShutdownStep::ShutDown) => self.endpoint.shut_down(),
                Some(_) => return true,
            }
            self.write_streams(self.time);
            while !self.streams.is_empty() {
                self.write_streams(self.time);
            }
        }
    }

    /// Begins the end: no further connections and requests.
    fn drain(&mut self) {
        self.listener = None;
        self.endpoint.drain(&mut self.app);
        for slot in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[slot] {
                connection.wired.connection().close();
                self.turn(slot, true);
            }
        }
    }

    fn now(&self) -> Millis {
        self.epoch + self.started.elapsed().as_millis() as Millis
    }

    fn open(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// Returns whether there is room for another connection.
    fn has_room(&self) -> bool {
        self.open() < self.options.connections && self.listener.is_some() && !self.crowded
    }

    /// Waits until a socket is ready or the time `wake` is reached.
    fn wait(&mut self, wake: Option<Millis>) -> io::Result<()> {
        let rests = self.accept_at.is_some_and(|at| self.time < at);
        let accepting = self.has_room() && !rests;
        let wants = if accepting { Wants::Read } else { Wants::Nothing };
        if let Some(listener) = self.listener.as_ref().and_then(Listener::fd).filter(|_| accepting != self.accepting) {
            self.accepting = accepting;
            self.sockets.change(listener, wants, LISTENER)?;
        }
        let timeout = self.timeout(wake);
        let listener = self.listener.as_ref().and_then(Listener::fd).map(|listener| (listener, wants, LISTENER));
        let own = [(self.woken.as_fd(), Wants::Read, WOKEN)].into_iter().chain(listener);
        let connections = self.connections.iter().enumerate().filter_map(|(slot, connection)| {
            let connection = connection.as_ref()?;
            Some((connection.socket.as_fd(), connection.wants, slot))
        });
        self.sockets.wait(own.chain(connections), timeout.as_ref(), &mut self.ready)
    }

    /// Returns how long to wait. The time that `tick` took is not looked at: a deadline may come later by it.
    fn timeout(&self, wake: Option<Millis>) -> Option<Timespec> {
        let connections = Some(self.soonest.min(self.sweep)).filter(|soonest| *soonest != Millis::MAX);
        let accept = self.accept_at.filter(|at| *at > self.time);
        let end = self.shutdown.deadline().map(|at| {
            // A millisecond more: it must be over then.
            self.time + at.saturating_duration_since(Instant::now()).as_millis() as Millis + 1
        });
        let own = wake.into_iter().chain(self.look_at).chain(end);
        let next = connections.into_iter().chain(self.endpoint.next_deadline()).chain(own).chain(accept).min()?;
        let left = next.saturating_sub(self.time).min(60_000);
        Some(Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as _ })
    }

    /// Accepts connections by `next`, while there is room.
    fn accept(&mut self, mut next: impl FnMut(&Listener) -> io::Result<Socket>) {
        while self.has_room() {
            let Some(listener) = &self.listener else { return };
            let socket = match next(listener) {
                Ok(socket) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => continue,
                // The process has no free descriptor. The listener stays readable, so it is not watched for a while.
                Err(_) => {
                    self.accept_at = Some(self.now() + ACCEPT_PAUSE);
                    return;
                }
            };
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let prepared = socket.prepare().and_then(|()| self.sockets.add(&socket, Wants::Read, slot));
            if prepared.is_err() {
                self.free.push(slot);
                continue;
            }
            self.crowded = self.spare.has(&socket);
            self.connections[slot] =
                Some(Connection::new(socket, self.options.wire_limits, self.options.limits.message));
            // The first request may be there already.
            self.turn(slot, true);
        }
    }

    /// Takes the only connection of a server over a stream.
    pub(super) fn carry(&mut self, socket: UnixStream) -> io::Result<()> {
        let socket = Socket::Unix(socket);
        socket.prepare()?;
        self.sockets.add(&socket, Wants::Read, self.connections.len())?;
        // Its client cannot open another connection, so it is not closed for being idle.
        let limits = self.options.wire_limits.idle_time(FOREVER);
        self.connections.push(Some(Connection::new(socket, limits, self.options.limits.message)));
        Ok(())
    }

    /// Does one turn of a connection: reads, serves, writes. If unsent answers then exceed their limit, closes the
    /// connections with the most unsent bytes.
    fn turn(&mut self, slot: usize, read: bool) {
        self.time = self.now();
        self.turn_now(slot, read);
    }

    /// Does the same without a look at the clock.
    fn turn_now(&mut self, slot: usize, read: bool) {
        self.serve(slot, read);
        while self.budget.is_exceeded() {
            let held =
                |slot: &usize| self.connections[*slot].as_ref().map_or(0, |connection| connection.wired.output_held());
            let Some(largest) = (0..self.connections.len()).max_by_key(held) else { return };
            let Some(connection) = &mut self.connections[largest] else { return };
            // Bytes that were sent only have to be released.
            connection.wired.release(&mut self.budget);
            if connection.wired.output_held() > 0 {
                self.close(largest, self.now());
            }
        }
    }

    fn serve(&mut self, slot: usize, read: bool) {
        let now = self.time;
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let mut host = ServeContext { endpoint: &mut self.endpoint, app: &mut self.app, body: &mut self.body, now };
        let random = &mut self.random;
        connection.wired.set_waits_for_streams(self.parked.len() < PARKED);
        let mut fill = |bytes: &mut [u8]| {
            // Never continues with a guessable session id.
            random.read_exact(bytes).expect("the system has random bytes");
        };
        let mut alive = connection.turn(&mut host, &mut fill, &mut self.budget, read);
        connection.wired.trim(&mut self.budget);
        let wants = connection.interest();
        if alive && wants != connection.wants {
            connection.wants = wants;
            alive = self.sockets.change(&connection.socket, wants, slot).is_ok();
        }
        if !alive {
            return self.close(slot, now);
        }
        if let Some(deadline) = connection.wired.next_deadline() {
            self.soonest = self.soonest.min(deadline);
        }
        if connection.waits_for_stream() && !std::mem::replace(&mut connection.parked, true) {
            self.parked.push(slot);
        }
        #[cfg(feature = "resource-server")]
        if connection.is_undecided() && !std::mem::replace(&mut connection.listed, true) {
            self.undecided.push(slot);
        }
        if self.sweep == Millis::MAX {
            self.sweep = now + SWEEP;
        }
        let stream = connection.wired.stream();
        if stream == connection.stream {
            return;
        }
        connection.stream = stream;
        if let Some(stream) = stream {
            // A stream may be open for hours, and nothing is read meanwhile.
            connection.wired.release(&mut self.budget);
            if self.carriers.len() <= stream.slot() {
                self.carriers.resize(stream.slot() + 1, usize::MAX);
            }
            self.carriers[stream.slot()] = slot;
        }
    }

    fn close(&mut self, slot: usize, now: Millis) {
        let Some(mut connection) = self.connections[slot].take() else { return };
        self.free.push(slot);
        self.crowded = false;
        connection.wired.pay_back(&mut self.budget);
        let mut host = ServeContext { endpoint: &mut self.endpoint, app: &mut self.app, body: &mut self.body, now };
        connection.wired.leave(&mut host);
    }

    /// Closes a connection whose peer has gone. Not if its turn has read or written something: there may be more to
    /// read.
    fn hang_up(&mut self, slot: usize) {
        let connection = self.connections.get(slot).and_then(Option::as_ref);
        if connection.is_some_and(|connection| !connection.moved) {
            self.close(slot, self.now());
        }
    }

    /// Writes streams that have messages, [`AT_ONCE`] at most. Returns the time of the next turn, if there is something to do.
    fn write_streams(&mut self, now: Millis) -> Option<Millis> {
        // Those that were left over come before those that are ready since.
        if self.streams.is_empty() {
            self.streams.extend(self.endpoint.ready());
        }
        let mut any = false;
        for _ in 0..AT_ONCE {
            let Some(stream) = self.streams.pop() else { break };
            let Some(&slot) = self.carriers.get(stream.slot()) else { continue };
            let connection = self.connections.get(slot).and_then(Option::as_ref);
            // A stream whose socket is full is written when the socket is ready.
            if connection.is_some_and(|found| found.stream == Some(stream) && !found.wired.has_pending()) {
                self.turn(slot, false);
                any = true;
            }
        }
        // A handler may have run after `tick`, which has to see its effects.
        if self.streams.is_empty() { any.then_some(now + 1) } else { Some(now) }
    }

    fn expire(&mut self) {
        let now = self.time;
        if self.endpoint.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.endpoint.expire(&mut self.app, now);
        }
        if self.sweep <= now {
            self.give_back(now);
        }
        if self.soonest > now {
            return;
        }
        self.soonest = Millis::MAX;
        for slot in 0..self.connections.len() {
            let Some(connection) = self.connections[slot].as_mut() else { continue };
            let Some(deadline) = connection.wired.next_deadline() else { continue };
            if deadline > now {
                self.soonest = self.soonest.min(deadline);
                continue;
            }
            match connection.wired.connection().expire(now) {
                http1::ExpireStatus::Nothing => {}
                http1::ExpireStatus::Refused => self.turn(slot, false),
                _ => self.close(slot, now),
            }
        }
    }

    /// Releases the buffers of connections that were idle since the last sweep.
    fn give_back(&mut self, now: Millis) {
        self.sweep = Millis::MAX;
        for connection in self.connections.iter_mut().flatten() {
            if connection.wired.release_if_idle(&mut self.budget) {
                self.sweep = now + SWEEP;
            }
        }
    }

    /// Returns whether no connection has anything left to send.
    fn is_drained(&mut self) -> bool {
        self.connections
            .iter_mut()
            .flatten()
            .all(|connection| connection.wired.pending().is_empty() && connection.wired.stream().is_none())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
        call.text("here")
    }

    static TOOLS: [Tool<()>; 3] = [
        Tool::new("echo", "Answers", echo),
        Tool::new("slow", "Gives the time, and takes some", |(), call| {
            let now = call.now();
            std::thread::sleep(Duration::from_millis(SLOW));
            call.text(format_args!("at {now};"))
        }),
        Tool::new("later", "Is never answered", |(), call| call.later().1),
    ];

    /// The time that a handler takes, in milliseconds.
    const SLOW: Millis = 5;

    const REQUEST: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";

    const STREAM: &[u8] = b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";

    /// Runs a test with a server of one connection, and with its client, which does not block.
    fn with_one_connection(test: impl FnOnce(&mut Serving<'_, ()>, UnixStream)) {
        with_server(
            |server| server,
            |serving| {
                let client = connect(serving);
                test(serving, client);
            },
        );
    }

    /// Runs a test with a server without connections.
    fn with_server(
        configure: impl FnOnce(HttpServer<'static, ()>) -> HttpServer<'static, ()>,
        test: impl FnOnce(&mut Serving<'_, ()>),
    ) {
        let (service, mut state) = (Service::new("test", "1").tools(&TOOLS), ());
        let server = configure(HttpServer::new(Listener::Stream(None)));
        test(&mut Serving::new(server, App::new(&service, &mut state)).unwrap());
    }

    /// Makes another connection, and returns its client, which does not block.
    fn connect(serving: &mut Serving<'_, ()>) -> UnixStream {
        let (client, theirs) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        serving.carry(theirs).unwrap();
        client
    }

    /// Returns a request of 2026-07-28 that calls a tool without arguments.
    fn call(tool: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    /// Returns the bytes that the client can read now, 4,096 at most.
    fn received(client: &mut UnixStream) -> String {
        let mut bytes = [0; 4096];
        match client.read(&mut bytes) {
            Ok(n) => String::from_utf8_lossy(&bytes[..n]).into_owned(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                String::new()
            }
        }
    }

    /// Opens an event stream, and goes to the time of its next keep-alive.
    fn wait_for_keep_alive(serving: &mut Serving<'_, ()>, client: &mut UnixStream) {
        client.write_all(STREAM).unwrap();
        serving.turn(0, true);
        assert!(received(client).contains("event: endpoint"));
        let deadline = serving.endpoint.next_deadline().unwrap();
        serving.epoch += deadline - serving.time;
        serving.time = deadline;
        serving.expire();
    }

    #[test]
    fn buffers_of_idle_connections_are_given_back() {
        with_one_connection(|serving, mut client| {
            for _ in 0..2 {
                client.write_all(REQUEST).unwrap();
                serving.turn(0, true);
                assert!(received(&mut client).starts_with("HTTP/1.1 404"));
                let (now, used) = (serving.time, serving.budget.used());
                assert!(used > 0);
                // In the first period it had a turn.
                for (passed, sweep, kept) in [
                    (SWEEP - 1, now + SWEEP, used),
                    (SWEEP, now + 2 * SWEEP, used),
                    (2 * SWEEP - 1, now + 2 * SWEEP, used),
                    (2 * SWEEP, Millis::MAX, 0),
                ] {
                    serving.time = now + passed;
                    serving.expire();
                    assert_eq!((serving.sweep, serving.budget.used()), (sweep, kept), "after {passed} ms");
                }
            }
        });
    }

    #[test]
    fn a_deadline_is_met_when_it_comes() {
        with_one_connection(|serving, mut client| {
            client.write_all(&REQUEST[..10]).unwrap();
            // The last look at the clock was long ago: the time of the head begins with its first byte.
            serving.time = 0;
            serving.turn(0, true);
            let deadline = serving.soonest;
            assert!(deadline > serving.epoch);
            serving.time = deadline - 1;
            serving.expire();
            assert_eq!(received(&mut client), "");
            serving.time = deadline;
            serving.expire();
            assert!(received(&mut client).starts_with("HTTP/1.1 408"));
        });
    }

    #[test]
    fn a_deadline_of_a_stream_is_met_when_it_comes() {
        with_one_connection(|serving, mut client| {
            wait_for_keep_alive(serving, &mut client);
            let now = serving.time;
            assert_eq!(serving.write_streams(now), Some(now + 1));
            assert!(received(&mut client).contains(':'));
            assert_eq!(serving.write_streams(now), None);
        });
    }

    /// Those that were left over have their turn at once, also if there was nothing to write for the others.
    #[test]
    fn streams_that_are_left_over_are_written_next() {
        with_one_connection(|serving, mut client| {
            wait_for_keep_alive(serving, &mut client);
            let stream = serving.connections[0].as_ref().and_then(|connection| connection.stream).unwrap();
            serving.close(0, serving.time);
            serving.streams = vec![stream; AT_ONCE + 1];
            assert_eq!((serving.write_streams(7), serving.streams.len()), (Some(7), 1));
            assert_eq!((serving.write_streams(7), serving.streams.len()), (None, 0));
        });
    }

    /// A turn for a stream that has messages, or for a request that waited, takes in no other request.
    #[test]
    fn a_turn_that_only_serves_reads_nothing() {
        with_one_connection(|serving, mut client| {
            client.write_all(REQUEST).unwrap();
            serving.turn(0, false);
            assert_eq!(received(&mut client), "");
            serving.turn(0, true);
            assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        });
    }

    /// The peer has ended its side, but what was written may have made room for the rest of its requests.
    #[test]
    fn a_peer_that_has_gone_is_kept_while_bytes_move() {
        with_one_connection(|serving, mut client| {
            wait_for_keep_alive(serving, &mut client);
            for (sent, kept) in [(true, 1), (false, 0)] {
                serving.turn_now(0, true);
                assert_eq!(!received(&mut client).is_empty(), sent);
                serving.hang_up(0);
                assert_eq!(serving.open(), kept);
            }
        });
    }

    /// Writes bytes to the client until its socket takes no more, and returns their number.
    fn fill(serving: &mut Serving<'_, ()>) -> usize {
        let socket = &mut serving.connections[0].as_mut().unwrap().socket;
        let mut filled = 0;
        for piece in [&[b'~'; 4096][..], b"~"] {
            while let Ok(n) = socket.write(piece) {
                filled += n;
            }
        }
        filled
    }

    /// Makes an answer that cannot be sent. Returns how many bytes the client has to read first.
    fn hold_an_answer(serving: &mut Serving<'_, ()>, client: &mut UnixStream) -> usize {
        let filled = fill(serving);
        client.write_all(REQUEST).unwrap();
        serving.turn(0, true);
        filled
    }

    fn read_away(client: &mut UnixStream, filled: usize) {
        client.read_exact(&mut vec![0; filled]).unwrap();
    }

    /// Waits at most this time. Returns the numbers of the sockets that are ready.
    fn ready(serving: &mut Serving<'_, ()>, millis: Millis) -> Vec<usize> {
        serving.wait(Some(serving.time + millis)).unwrap();
        serving.ready.iter().map(|ready| ready.number).collect()
    }

    #[test]
    fn a_wait_lasts_until_the_first_time_at_which_something_is_due() {
        with_one_connection(|serving, _client| {
            let now = serving.time;
            let left = |serving: &Serving<'_, ()>, wake: Option<Millis>| {
                let time = serving.timeout(wake)?;
                Some(time.tv_sec as Millis * 1000 + time.tv_nsec as Millis / 1_000_000)
            };
            assert_eq!(left(serving, None), None);
            for (wake, millis) in [(0, 0), (1, 1), (999, 999), (1234, 1234), (60_000, 60_000), (60_001, 60_000)] {
                assert_eq!(left(serving, Some(now + wake)), Some(millis));
            }
            assert_eq!(left(serving, Some(now - 1)), Some(0));
            serving.sweep = now + 500;
            assert_eq!(left(serving, Some(now + 600)), Some(500));
            serving.soonest = now + 400;
            assert_eq!((left(serving, None), left(serving, Some(now + 399))), (Some(400), Some(399)));
            serving.look_at = Some(now + 300);
            assert_eq!(left(serving, None), Some(300));
            serving.accept_at = Some(now + 200);
            assert_eq!(left(serving, None), Some(200));
            // It is over, and connections are accepted again.
            serving.accept_at = Some(now);
            assert_eq!(left(serving, None), Some(300));
        });
    }

    #[test]
    fn a_wait_lasts_until_the_end_of_the_grace() {
        with_one_connection(|serving, _client| {
            let time = Duration::from_secs(20);
            serving.shutdown = serving.shutdown.grace(time);
            assert_eq!(serving.shutdown.step(1, false, Instant::now()), Some(ShutdownStep::Drain));
            let end = serving.shutdown.deadline().unwrap();
            let left = serving.timeout(None).unwrap();
            let left = Duration::new(left.tv_sec as u64, left.tv_nsec as u32);
            assert!(Instant::now() + left > end && left <= time + Duration::from_millis(1), "{left:?}");
        });
    }

    #[test]
    fn a_listener_that_has_an_error_rests() {
        with_one_connection(|serving, _client| {
            // The system accepts nothing at a socket that does not listen.
            let (socket, _peer) = UnixStream::pair().unwrap();
            serving.listener = Some(Listener::Tcp(std::os::fd::OwnedFd::from(socket).into()));
            let before = serving.now();
            serving.accept(Listener::accept);
            let at = serving.accept_at.unwrap();
            assert!(at >= before + ACCEPT_PAUSE && at <= serving.now() + ACCEPT_PAUSE, "{}", at - before);
            assert_eq!(serving.connections.len(), 1);
        });
    }

    /// Else a connection that waits in its queue would turn the loop without end.
    #[test]
    fn a_listener_is_watched_only_while_there_is_room() {
        with_one_connection(|serving, _client| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = listener.local_addr().unwrap();
            serving.sockets.add(&listener, Wants::Read, LISTENER).unwrap();
            serving.listener = Some(Listener::Tcp(listener));
            let connect = || std::net::TcpStream::connect(address).unwrap();
            let mut peers = vec![connect()];
            let (now, long) = (serving.time, 60_000);
            assert_eq!(ready(serving, long), [LISTENER]);
            serving.accept_at = Some(now + 1);
            assert_eq!(ready(serving, 0).len(), 0);
            serving.accept_at = Some(now);
            assert_eq!(ready(serving, long), [LISTENER]);
            serving.crowded = true;
            assert_eq!(ready(serving, 0).len(), 0);
            serving.accept(Listener::accept);
            assert_eq!((serving.open(), serving.has_room()), (1, false));
            serving.crowded = false;
            assert_eq!(ready(serving, long), [LISTENER]);
            for (most, watched) in [(0, false), (1, false), (2, true)] {
                serving.options = HttpServerOptions::new().connections(most);
                assert_eq!(serving.has_room(), watched);
                assert_eq!(ready(serving, if watched { long } else { 0 }).len(), usize::from(watched));
            }
            peers.push(connect());
            serving.accept(Listener::accept);
            // One is accepted, and one waits. When the first one of all closes, there is room again, in its place.
            assert_eq!((serving.open(), serving.has_room()), (2, false));
            assert_eq!(ready(serving, 0).len(), 0);
            serving.crowded = true;
            serving.close(0, now);
            assert_eq!((serving.open(), serving.has_room()), (1, true));
            assert_eq!(ready(serving, long), [LISTENER]);
            serving.accept(Listener::accept);
            assert_eq!((serving.open(), serving.connections.len(), serving.free.len()), (2, 2, 0));
            // Both are watched.
            for (slot, peer) in [1, 0].into_iter().zip(&mut peers) {
                peer.write_all(REQUEST).unwrap();
                assert_eq!(ready(serving, long), [slot]);
                serving.turn(slot, true);
                peer.read_exact(&mut [0; 12]).unwrap();
            }
            serving.listener = None;
            serving.options = HttpServerOptions::new();
            assert!(!serving.has_room());
        });
    }

    #[test]
    fn an_answer_goes_on_when_its_socket_has_room() {
        with_one_connection(|serving, mut client| {
            let filled = hold_an_answer(serving, &mut client);
            assert_eq!(ready(serving, 0).len(), 0);
            read_away(&mut client, filled);
            assert_eq!(ready(serving, 60_000), [0]);
            serving.turn(0, true);
            assert!(received(&mut client).starts_with("HTTP/1.1 404"));
            assert_eq!(ready(serving, 0).len(), 0, "it is watched for no more than its next request");
        });
    }

    #[test]
    fn what_a_connection_holds_is_paid_back() {
        with_one_connection(|serving, mut client| {
            hold_an_answer(serving, &mut client);
            assert!(serving.budget.used() > 0 && serving.budget.output_used() > 0);
            serving.close(0, serving.time);
            assert_eq!((serving.budget.used(), serving.budget.output_used(), serving.open()), (0, 0, 0));
        });
        // A large request that was answered, and what has opened a stream.
        with_one_connection(|serving, mut client| {
            send_large(serving, &mut client);
            assert!(serving.budget.used() >= LARGE, "it is kept for the next one");
            client.write_all(STREAM).unwrap();
            serving.turn(0, true);
            assert!(received(&mut client).contains("event: endpoint"));
            assert_eq!(serving.budget.used(), 0);
        });
        // Where memory is scarce.
        with_server(
            |server| server.options(HttpServerOptions::new().input_total(2 * LARGE)),
            |serving| {
                let mut client = connect(serving);
                send_large(serving, &mut client);
                assert!(serving.budget.used() < LARGE / 2, "{}", serving.budget.used());
            },
        );
    }

    const LARGE: usize = 200_000;

    /// Sends a request of `LARGE` bytes, and receives its answer.
    fn send_large(serving: &mut Serving<'_, ()>, client: &mut UnixStream) {
        write!(client, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LARGE}\r\n\r\n").unwrap();
        for part in vec![b' '; LARGE].chunks(10_000) {
            client.write_all(part).unwrap();
            serving.turn(0, true);
        }
        assert!(received(client).starts_with("HTTP/1.1 4"));
    }

    #[test]
    fn a_watch_looks_each_period_while_a_stream_is_open() {
        static LOOKS: AtomicUsize = AtomicUsize::new(0);
        let looks = || LOOKS.load(Relaxed);
        with_one_connection(|serving, mut client| {
            let look = |(): &mut (), _: &mut HttpEndpoint| {
                LOOKS.fetch_add(1, Relaxed);
            };
            serving.watch = Some(Watch { period: Duration::from_millis(50), look });
            serving.look();
            assert_eq!((serving.look_at, looks()), (None, 0));
            wait_for_keep_alive(serving, &mut client);
            let now = serving.time;
            for (passed, next, seen) in [(0, 50, 0), (49, 50, 0), (50, 100, 1), (99, 100, 1), (110, 160, 2)] {
                serving.time = now + passed;
                serving.look();
                assert_eq!((serving.look_at, looks()), (Some(now + next), seen), "after {passed} ms");
            }
            serving.close(0, now);
            serving.endpoint.expire(&mut serving.app, now + 10_000_000);
            serving.look();
            assert_eq!((serving.look_at, looks()), (None, 2));
        });
    }

    /// A request that does not wait any more is answered, and what it has put into streams is written soon.
    #[test]
    fn requests_that_waited_are_served_again() {
        with_one_connection(|serving, mut client| {
            assert_eq!(serving.serve_parked(7), None);
            let filled = hold_an_answer(serving, &mut client);
            let park = |serving: &mut Serving<'_, ()>| {
                serving.connections[0].as_mut().unwrap().parked = true;
                serving.parked.push(0);
            };
            park(serving);
            read_away(&mut client, filled);
            assert_eq!(serving.serve_parked(7), Some(8));
            assert!(received(&mut client).starts_with("HTTP/1.1 404"));
            assert!(serving.parked.is_empty() && !serving.connections[0].as_ref().unwrap().parked);
            park(serving);
            serving.close(0, serving.time);
            assert_eq!((serving.serve_parked(7), serving.serve_parked(7)), (Some(8), None));
        });
    }

    /// A stream whose socket is full has its turn when there is room, and not each time that it has messages.
    #[test]
    fn a_stream_with_a_full_socket_is_left_alone() {
        with_one_connection(|serving, mut client| {
            wait_for_keep_alive(serving, &mut client);
            let stream = serving.connections[0].as_ref().and_then(|connection| connection.stream).unwrap();
            let filled = fill(serving);
            assert!(serving.write_streams(7).is_some());
            serving.give_back(7);
            serving.streams.push(stream);
            assert_eq!(serving.write_streams(7), None);
            serving.give_back(7);
            assert_eq!(serving.sweep, Millis::MAX, "it has had a turn");
            read_away(&mut client, filled);
            serving.turn(0, true);
            assert!(received(&mut client).contains(':'));
            serving.streams.push(stream);
            assert_eq!(serving.write_streams(7), Some(8));
        });
    }

    #[test]
    fn the_end_waits_for_answers_and_streams() {
        with_one_connection(|serving, mut client| {
            assert!(serving.is_drained() && !serving.end());
            let filled = hold_an_answer(serving, &mut client);
            assert!(!serving.is_drained() && !serving.end());
            serving.stopper.stop();
            assert!(!serving.end() && serving.listener.is_none());
            assert!(!serving.end());
            read_away(&mut client, filled);
            serving.turn(0, false);
            assert!(serving.end());
            let answer = received(&mut client);
            assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        });
        with_one_connection(|serving, mut client| {
            client.write_all(STREAM).unwrap();
            serving.turn(0, true);
            assert!(received(&mut client).contains("event: endpoint"));
            assert!(!serving.is_drained());
            serving.close(0, serving.time);
            assert!(serving.is_drained());
        });
    }

    /// A connection that has sent half a request gets no answer, and does not hold up the end.
    #[test]
    fn the_end_closes_connections_without_a_request() {
        with_one_connection(|serving, mut client| {
            client.write_all(REQUEST).unwrap();
            serving.stopper.stop();
            assert!(serving.end());
            assert!(received(&mut client).starts_with("HTTP/1.1 404"), "the request that was there is answered");
            assert_eq!((serving.open(), client.read(&mut [0; 1]).unwrap()), (0, 0), "then its connection closes");
        });
    }

    /// The time of a request is that of its turn, also behind a handler that takes long; what is due then is done in the same turn.
    #[test]
    fn time_goes_on_while_handlers_run() {
        with_server(
            |server| server,
            |serving| {
                let mut clients = [connect(serving), connect(serving)];
                for client in &mut clients {
                    client.write_all(call("slow").as_bytes()).unwrap();
                }
                // The last look at the clock was long ago.
                serving.time = 0;
                assert_eq!(serving.turn_all(Some(0)).unwrap(), None);
                let mut times = clients.map(|mut client| {
                    let answer = received(&mut client);
                    let time = answer.split("at ").nth(1).and_then(|rest| rest.split(';').next());
                    time.unwrap_or_else(|| panic!("{answer}")).parse::<Millis>().unwrap()
                });
                times.sort_unstable();
                assert!(times[0] >= serving.epoch, "{times:?}");
                assert!(times[1] >= times[0] + SLOW, "{times:?}");
                assert!(serving.time >= times[1] + SLOW, "{times:?} {}", serving.time);
            },
        );
    }

    /// The time of one that is due does not move that of another.
    #[test]
    fn each_connection_has_a_deadline_of_its_own() {
        with_one_connection(|serving, mut client| {
            let filled = hold_an_answer(serving, &mut client);
            let first = serving.soonest;
            serving.epoch += 60_000;
            let mut other = connect(serving);
            other.write_all(&REQUEST[..10]).unwrap();
            serving.turn(1, true);
            let second = serving.connections[1].as_ref().and_then(|connection| connection.wired.next_deadline());
            assert!(second.unwrap() > first && serving.soonest == first);
            serving.time = first;
            serving.expire();
            // The first one was closed, because its client does not read.
            assert_eq!((serving.open(), Some(serving.soonest)), (1, second));
            read_away(&mut client, filled);
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            assert_eq!(received(&mut other), "");
            serving.time = serving.soonest;
            serving.expire();
            assert!(received(&mut other).starts_with("HTTP/1.1 408"));
        });
    }

    #[test]
    fn a_connection_closes_in_the_turn_of_its_last_answer() {
        with_one_connection(|serving, mut client| {
            let request = String::from_utf8_lossy(REQUEST).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            client.write_all(request.as_bytes()).unwrap();
            serving.turn(0, true);
            assert_eq!(serving.open(), 0);
            assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        });
    }

    /// A client that has gone before it was accepted, and a signal, are no reason to rest. A request that is there already is
    /// answered at once.
    #[test]
    fn accepting_goes_on_after_an_error_of_one_connection() {
        with_one_connection(|serving, _client| {
            let (mut peer, socket) = UnixStream::pair().unwrap();
            peer.set_nonblocking(true).unwrap();
            peer.write_all(REQUEST).unwrap();
            let mut outcomes = [
                Err(ErrorKind::Interrupted),
                Err(ErrorKind::ConnectionAborted),
                Ok(Socket::Unix(socket)),
                Err(ErrorKind::WouldBlock),
            ]
            .into_iter();
            serving.accept(|_| outcomes.next().unwrap().map_err(io::Error::from));
            assert_eq!((outcomes.len(), serving.open(), serving.accept_at), (0, 2, None));
            assert!(received(&mut peer).starts_with("HTTP/1.1 404"));
        });
    }

    #[test]
    fn a_socket_that_cannot_be_prepared_leaves_its_place_to_the_next() {
        with_one_connection(|serving, _client| {
            let no_socket = std::os::fd::OwnedFd::from(File::open("/dev/null").unwrap());
            let (_peer, socket) = UnixStream::pair().unwrap();
            let mut sockets = [Socket::Tcp(no_socket.into()), Socket::Unix(socket)].into_iter();
            serving.accept(|_| sockets.next().ok_or_else(|| ErrorKind::WouldBlock.into()));
            assert_eq!((serving.open(), serving.connections.len(), serving.free.len()), (2, 2, 0));
        });
    }

    /// Opens an event stream at this connection, and returns the path for the requests of its session.
    fn open_session(serving: &mut Serving<'_, ()>, client: &mut UnixStream, slot: usize) -> String {
        client.write_all(STREAM).unwrap();
        serving.turn(slot, true);
        let begun = received(client);
        begun
            .split("data: ")
            .nth(1)
            .and_then(|data| data.lines().next())
            .unwrap_or_else(|| panic!("{begun}"))
            .to_owned()
    }

    #[test]
    fn ids_of_sessions_are_random() {
        let mut paths = Vec::new();
        for _ in 0..2 {
            with_one_connection(|serving, mut client| paths.push(open_session(serving, &mut client, 0)));
        }
        assert_ne!(paths[0], paths[1]);
    }

    /// Beyond that, requests are answered although the stream of their session was not read.
    #[test]
    fn a_limited_number_of_requests_waits() {
        with_one_connection(|serving, mut stream| {
            let path = open_session(serving, &mut stream, 0);
            let mut client = connect(serving);
            let mut post = |serving: &mut Serving<'_, ()>, body: &str| {
                let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
                write!(client, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
                serving.turn(1, true);
                received(&mut client)
            };
            let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
            assert!(post(serving, hello).starts_with("HTTP/1.1 202"));
            // The answer is not sent yet.
            let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            serving.parked = vec![usize::MAX; PARKED];
            assert!(post(serving, ping).starts_with("HTTP/1.1 202"));
            serving.parked.pop();
            assert_eq!(post(serving, ping), "");
            assert_eq!((serving.parked.len(), serving.parked.last()), (PARKED, Some(&1)));
        });
    }

    /// At the end, also more streams than one turn writes.
    #[test]
    fn the_end_gives_each_request_an_error() {
        with_server(
            |server| server,
            |serving| {
                let mut clients: Vec<_> = (0..AT_ONCE + 6).map(|_| connect(serving)).collect();
                for (client, slot) in clients.iter_mut().zip(0..) {
                    client.write_all(call("later").as_bytes()).unwrap();
                    serving.turn(slot, true);
                    assert!(received(client).starts_with("HTTP/1.1 200"));
                }
                serving.stopper.stop();
                assert!(!serving.end(), "they may finish");
                serving.stopper.stop();
                assert!(serving.end());
                for client in &mut clients {
                    let rest = received(client);
                    assert!(rest.contains("The server is going away") && rest.ends_with("0\r\n\r\n"), "{rest}");
                }
            },
        );
    }

    #[cfg(feature = "resource-server")]
    #[test]
    fn a_request_is_decided_about_until_it_is() {
        use super::super::Access;
        use std::sync::atomic::AtomicBool;

        let known = AtomicBool::new(false);
        let asks = |_: &super::super::RequestHead<'_>| match known.load(Relaxed) {
            true => Access::Granted { principal: None },
            false => Access::Later,
        };
        let (service, mut state) = (Service::new("test", "1").tools(&TOOLS), ());
        let app = App::new(&service, &mut state).authorize(&asks);
        let mut serving = Serving::new(HttpServer::new(Listener::Stream(None)), app).unwrap();
        let mut client = connect(&mut serving);
        client.write_all(call("echo").as_bytes()).unwrap();
        serving.turn(0, true);
        for _ in 0..2 {
            assert_eq!((&serving.undecided[..], received(&mut client)), (&[0][..], String::new()));
            serving.ask_again();
        }
        known.store(true, Relaxed);
        serving.ask_again();
        assert!(received(&mut client).starts_with("HTTP/1.1 200"));
        assert!(serving.undecided.is_empty());
    }

    /// Each late message wakes the loop, also while it is awake.
    #[test]
    fn many_wakes_block_nothing() {
        // The first is as many as one read takes.
        for wakes in [64, 10_000] {
            with_one_connection(|serving, client| {
                for _ in 0..wakes {
                    serving.waker.wake_by_ref();
                }
                assert_eq!(ready(serving, 60_000), [WOKEN]);
                drop(client);
                serving.run().unwrap();
                let left = serving.woken.read(&mut [0]).map_err(|error| error.kind());
                assert_eq!(left, Err(ErrorKind::WouldBlock), "one turn takes all of them");
            });
        }
    }

    #[test]
    fn pipelined_requests_are_answered_in_one_write() {
        // Over such a pair each write is a record, and a read takes one.
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let serving = std::thread::spawn(move || {
            let service = Service::new("test", "1").tools(&TOOLS);
            let (server, mut state) = (HttpServer::new(Listener::Stream(None)), ());
            let mut serving = Serving::new(server, App::new(&service, &mut state)).unwrap();
            serving.carry(UnixStream::from(theirs)).unwrap();
            serving.run().unwrap();
        });
        let request = call("echo");
        let mut client = UnixStream::from(ours);
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for many in [1, 6] {
            client.write_all(request.repeat(many).as_bytes()).unwrap();
            let mut record = vec![0; 64 * 1024];
            let n = client.read(&mut record).unwrap();
            let answers = String::from_utf8_lossy(&record[..n]);
            assert_eq!(
                (answers.matches("HTTP/1.1 200 OK").count(), answers.matches("here").count()),
                (many, many),
                "{answers}"
            );
        }
        drop(client);
        serving.join().unwrap();
    }
}
