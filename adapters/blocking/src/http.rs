//! An HTTP server over `std::net`: one thread, non-blocking sockets, many connections.
//!
//! ```no_run
//! use mcp_sansio::service::Service;
//! use mcp_sansio_blocking::http::HttpServer;
//!
//! let service = Service::<()>::new("demo", "1.0");
//! HttpServer::bind("127.0.0.1:8931")?.serve(&service, &mut ())?; // at http://127.0.0.1:8931/mcp
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Handlers run one after the other, and nothing is sent while one runs, not even its progress. One that takes long calls
//! [`later`](mcp_sansio::service::Handling::later); `tick` of [`serve_with`](HttpServer::serve_with) tells its progress and
//! answers.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::server::{Limits, Millis, Seal, Server};
use mcp_sansio::service::Service;
pub use mcp_sansio_http::endpoint::{Access, App, Config, Endpoint, EndpointLimits, Head, StreamId, Streams};
use mcp_sansio_http::host::{Body, Budget, Host, Wait, Wired};
#[cfg(feature = "seal")]
pub use mcp_sansio_http::seal::HmacSeal;
use mcp_sansio_http::wire;
use rustix::event::Timespec;

use crate::sockets::{Ready, Sockets, Wants, first_spare};

/// Requests in flight at the most: those whose answer is put off, or that ask the client.
pub const IN_FLIGHT: usize = 256;

/// The endpoint of an [`HttpServer`].
pub type HttpEndpoint = Endpoint<'static, IN_FLIGHT>;

/// What is called after each turn of the loop with the time; it may answer, publish and say when it wants to be called
/// next.
type Tick<'t, S> = &'t mut dyn FnMut(&mut App<'_, S>, &mut HttpEndpoint, Millis) -> Option<Millis>;

/// An HTTP server that is bound and not serving yet. Only requests for this machine's own names are answered unless
/// [`config`](HttpServer::config) says otherwise.
pub struct HttpServer {
    listener: TcpListener,
    config: Config<'static>,
    limits: Limits,
    endpoint_limits: EndpointLimits,
    wire_limits: wire::Limits,
    connections: usize,
    input_total: usize,
    spare_descriptors: usize,
    seal: Option<&'static (dyn Seal + Sync)>,
    stop: (UnixStream, UnixStream),
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Stops an [`HttpServer`] from anywhere: streams are ended, what is pending is sent.
#[derive(Debug)]
pub struct Stopper(UnixStream);

impl Stopper {
    /// Stops it.
    pub fn stop(&self) {
        // The only failure is a server that is gone already.
        let _ = (&self.0).write(&[1]);
    }
}

impl HttpServer {
    /// Binds a socket.
    ///
    /// # Errors
    /// What binding fails with.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let stop = UnixStream::pair()?;
        stop.0.set_nonblocking(true)?;
        let limits = Limits::default();
        Ok(HttpServer {
            listener,
            config: Config::DEFAULT,
            limits,
            endpoint_limits: EndpointLimits::default(),
            wire_limits: wire::Limits::default().body(limits.message),
            connections: 10_000,
            input_total: 256 << 20,
            spare_descriptors: 32,
            seal: None,
            stop,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What asking the socket fails with.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Paths, hosts, times.
    #[must_use]
    pub fn config(mut self, config: Config<'static>) -> Self {
        self.config = config;
        self
    }

    /// Limits of messages, questions and subscriptions.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self.wire_limits = self.wire_limits.body(limits.message);
        self
    }

    /// Limits of sessions and streams.
    #[must_use]
    pub fn endpoint_limits(mut self, limits: EndpointLimits) -> Self {
        self.endpoint_limits = limits;
        self
    }

    /// Limits of connections: sizes of heads, times.
    #[must_use]
    pub fn wire_limits(mut self, limits: wire::Limits) -> Self {
        self.wire_limits = limits;
        self
    }

    /// Connections at the most, 10,000; further ones wait in the listener's queue.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// Bytes that the requests of all connections take while they come in, 256 MiB. A request for which there is no more
    /// room gets 503; one of up to [`wire::Limits::head`] bytes, with its body, always has room.
    #[must_use]
    pub fn input_total(mut self, bytes: usize) -> Self {
        self.input_total = bytes;
        self
    }

    /// Descriptors that are left to everything else in the process, such as handlers that open files, 32. While fewer are
    /// free, further connections wait in the listener's queue. Counted from the soft limit (`RLIMIT_NOFILE`) when it
    /// begins to serve, of which at most half is spared.
    #[must_use]
    pub fn spare_descriptors(mut self, spare: usize) -> Self {
        self.spare_descriptors = spare;
        self
    }

    /// What protects the state of questions that travels through clients of 2026-07-28: `HmacSeal`, with the feature
    /// `seal`, or one of your own. The time that it is told is that of the system, in milliseconds since 1970.
    #[must_use]
    pub fn seal(mut self, seal: &'static (dyn Seal + Sync)) -> Self {
        self.seal = Some(seal);
        self
    }

    /// What stops it.
    ///
    /// # Errors
    /// What duplicating a socket fails with.
    pub fn stopper(&self) -> io::Result<Stopper> {
        self.stop.1.try_clone().map(Stopper)
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// What waiting for the sockets fails with; a connection's own failure only ends that connection.
    pub fn serve<S>(self, service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
        self.serve_with(App::new(service, state), &mut |_, _, _| None)
    }

    /// Serves until it is stopped, with authorization if `app` has it. `tick` is called after each turn of the loop, and
    /// at the time that it said last.
    ///
    /// ```no_run
    /// use std::sync::mpsc::{Sender, channel};
    /// use mcp_sansio::server::{Change, Token};
    /// use mcp_sansio::service::{Call, Outcome, Service, Tool};
    /// use mcp_sansio_blocking::http::{App, HttpServer};
    ///
    /// fn brew(ready: &mut Sender<Token>, call: &mut Call<'_>) -> Outcome {
    ///     let (token, outcome) = call.later();
    ///     let ready = ready.clone();
    ///     std::thread::spawn(move || ready.send(token)); // when it is
    ///     outcome
    /// }
    /// static TOOLS: [Tool<Sender<Token>>; 1] = [Tool::new("brew", "Brews coffee", brew)];
    ///
    /// let service = Service::new("kitchen", "1.0").tools(&TOOLS);
    /// let (mut ready, brewed) = channel();
    /// let app = App::new(&service, &mut ready);
    /// HttpServer::bind("127.0.0.1:8931")?.serve_with(app, &mut |app, endpoint, now| {
    ///     for token in brewed.try_iter() {
    ///         // It fails if the client has cancelled: then there is nobody to tell. A resource would be answered by
    ///         // `answer_read`, a prompt by `answer_prompt`; `resume` runs a handler again that has suspended its request.
    ///         let _ = endpoint.answer(app, token, |_, call| call.text("coffee"));
    ///         endpoint.publish(Change::Resource("kitchen://pot"));
    ///     }
    ///     Some(now + 50) // looks again in 50 ms at the latest
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`serve`](HttpServer::serve).
    pub fn serve_with<S>(self, app: App<'_, S>, tick: Tick<'_, S>) -> io::Result<()> {
        let server = Server::growing(self.limits);
        let server = match self.seal {
            Some(seal) => server.seal(seal),
            None => server,
        };
        // From here on the clock only goes forward, and processes that stand in for each other agree on it.
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis);
        let mut serving = Serving {
            endpoint: Endpoint::growing(self.config, server, self.endpoint_limits),
            app,
            body: Body::new(Vec::new()),
            random: File::open("/dev/urandom")?,
            epoch,
            started: Instant::now(),
            connections: Vec::new(),
            free: Vec::new(),
            carriers: Vec::new(),
            soonest: Millis::MAX,
            sweep: Millis::MAX,
            accept_at: None,
            first_spare: first_spare(self.spare_descriptors),
            crowded: false,
            budget: Budget::new(self.input_total),
            stopping: false,
            accepting: true,
            sockets: Sockets::new()?,
            ready: Vec::new(),
            streams: Vec::new(),
            server: &self,
        };
        serving.sockets.add(&self.stop.0, Wants::Read, STOP)?;
        serving.sockets.add(&self.listener, Wants::Read, LISTENER)?;
        serving.run(tick)
    }
}

/// A connection with its socket.
struct Connection {
    socket: TcpStream,
    wired: Wired<'static>,
    wait: Wait,
    shut: bool,
    /// What the socket is watched for.
    wants: Wants,
    /// The stream that it carries.
    stream: Option<StreamId>,
    /// There is no room for input.
    full: bool,
    /// It has had a turn since its memory was looked at.
    used: bool,
    /// The last turn has read or written something.
    moved: bool,
}

struct Serving<'s, 'a, S: 'static> {
    server: &'s HttpServer,
    endpoint: HttpEndpoint,
    app: App<'a, S>,
    body: Body<Vec<u8>>,
    random: File,
    epoch: Millis,
    started: Instant,
    connections: Vec<Option<Connection>>,
    /// Places in `connections` that are free.
    free: Vec<usize>,
    /// The connection of each stream, by [`StreamId::slot`].
    carriers: Vec<usize>,
    /// No connection's deadline is before this.
    soonest: Millis,
    /// When buffers of idle connections are given back.
    sweep: Millis,
    /// When connections are accepted again, after that failed.
    accept_at: Option<Millis>,
    /// A socket with this number, or a higher one, is the last for now.
    first_spare: usize,
    /// No descriptors are left for connections, until one closes.
    crowded: bool,
    /// What the inputs of connections may take.
    budget: Budget,
    stopping: bool,
    accepting: bool,
    sockets: Sockets,
    /// The sockets that are ready; kept for its memory, like the next one.
    ready: Vec<Ready>,
    streams: Vec<StreamId>,
}

/// The numbers of the sockets that are no connection's.
const STOP: usize = usize::MAX;
const LISTENER: usize = usize::MAX - 1;

/// How often buffers of connections that were idle meanwhile are given back.
const SWEEP: Millis = 5_000;

/// How long no connections are accepted after that failed.
const ACCEPT_PAUSE: Millis = 100;

/// How often one turn of a connection serves what has come and writes it while the socket takes everything.
const ROUNDS: usize = 4;

/// How long what is pending may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);

impl<S> Serving<'_, '_, S> {
    fn run(&mut self, tick: Tick<'_, S>) -> io::Result<()> {
        let mut wake = None;
        let mut stop_at = None;
        loop {
            self.wait(wake)?;
            for at in 0..self.ready.len() {
                let Some(&Ready { number, gone }) = self.ready.get(at) else { break };
                match number {
                    STOP if !self.stopping => {
                        // It is said once: from then on it must not wake the loop again and again.
                        self.sockets.change(&self.server.stop.0, Wants::Nothing, STOP)?;
                        self.stopping = true;
                        self.endpoint.shut_down();
                        stop_at = Some(Instant::now() + GRACE);
                    }
                    STOP => {}
                    LISTENER => self.accept(),
                    slot => {
                        self.turn(slot, true);
                        if gone {
                            self.hang_up(slot);
                        }
                    }
                }
            }
            let now = self.now();
            self.expire();
            wake = tick(&mut self.app, &mut self.endpoint, now);
            if self.write_streams() {
                // That may have run handlers, which `tick` wants to know of.
                wake = Some(now + 1);
            }
            if stop_at.is_some_and(|at| self.is_drained() || Instant::now() >= at) {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Millis {
        self.epoch + self.started.elapsed().as_millis() as Millis
    }

    fn open(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// Whether there is room for another connection.
    fn has_room(&self) -> bool {
        self.open() < self.server.connections && !self.stopping && !self.crowded
    }

    /// Waits until a socket is ready or a time has come.
    fn wait(&mut self, wake: Option<Millis>) -> io::Result<()> {
        let rests = self.accept_at.is_some_and(|at| self.now() < at);
        let accepting = self.has_room() && !rests;
        if accepting != self.accepting {
            self.accepting = accepting;
            let wants = if accepting { Wants::Read } else { Wants::Nothing };
            self.sockets.change(&self.server.listener, wants, LISTENER)?;
        }
        let timeout = self.timeout(wake);
        let wants = |on| if on { Wants::Read } else { Wants::Nothing };
        let own = [
            (self.server.stop.0.as_fd(), wants(!self.stopping), STOP),
            (self.server.listener.as_fd(), wants(accepting), LISTENER),
        ];
        let connections = self.connections.iter().enumerate().filter_map(|(slot, connection)| {
            let connection = connection.as_ref()?;
            Some((connection.socket.as_fd(), connection.wants, slot))
        });
        self.sockets.wait(own.into_iter().chain(connections), timeout.as_ref(), &mut self.ready)
    }

    fn timeout(&self, wake: Option<Millis>) -> Option<Timespec> {
        if self.stopping {
            return Some(Timespec { tv_sec: 0, tv_nsec: 10_000_000 });
        }
        let connections = Some(self.soonest.min(self.sweep)).filter(|soonest| *soonest != Millis::MAX);
        let accept = self.accept_at.filter(|at| *at > self.now());
        let next = connections.into_iter().chain(self.endpoint.next_deadline()).chain(wake).chain(accept).min()?;
        let left = next.saturating_sub(self.now()).min(60_000);
        Some(Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as _ })
    }

    fn accept(&mut self) {
        while self.has_room() {
            let socket = match self.server.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => continue,
                // No more files: the listener stays readable, so that it is left alone for a while.
                Err(_) => {
                    self.accept_at = Some(self.now() + ACCEPT_PAUSE);
                    return;
                }
            };
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let prepared = socket
                .set_nonblocking(true)
                .and_then(|()| socket.set_nodelay(true))
                .and_then(|()| self.sockets.add(&socket, Wants::Read, slot));
            if prepared.is_err() {
                self.free.push(slot);
                continue;
            }
            self.crowded = usize::try_from(socket.as_raw_fd()).is_ok_and(|number| number >= self.first_spare);
            let limits = self.server.wire_limits;
            let store = |size| mcp_sansio::store::Store::growing(size);
            let input = store(self.server.limits.message + 64 * 1024);
            let output = store(self.server.limits.message.saturating_mul(2) + 64 * 1024);
            let wired = Wired::new(input, output, limits);
            self.connections[slot] = Some(Connection {
                socket,
                wired,
                wait: Wait::Read,
                shut: false,
                full: false,
                wants: Wants::Read,
                stream: None,
                used: true,
                moved: false,
            });
            // There may be a request already.
            self.turn(slot, true);
        }
    }

    /// Reads what there is, serves it, writes what there is.
    fn turn(&mut self, slot: usize, read: bool) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let mut host = Host { endpoint: &mut self.endpoint, app: &mut self.app, body: &mut self.body, now };
        let random = &mut self.random;
        let mut fill = |bytes: &mut [u8]| {
            // An id that can be guessed would be worse than none.
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
        if let Some(deadline) = connection.deadline() {
            self.soonest = self.soonest.min(deadline);
        }
        connection.used = true;
        if self.sweep == Millis::MAX {
            self.sweep = now + SWEEP;
        }
        let stream = connection.wired.stream();
        if stream == connection.stream {
            return;
        }
        connection.stream = stream;
        if let Some(stream) = stream {
            // It may last for long, and nothing is read meanwhile.
            connection.wired.release(&mut self.budget);
            connection.used = false;
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
        let mut host = Host { endpoint: &mut self.endpoint, app: &mut self.app, body: &mut self.body, now };
        connection.wired.leave(&mut host);
    }

    /// Closes a connection whose peer has gone, unless its turn has read or written something: there may be more then.
    fn hang_up(&mut self, slot: usize) {
        let connection = self.connections.get(slot).and_then(Option::as_ref);
        if connection.is_some_and(|connection| !connection.moved) {
            self.close(slot, self.now());
        }
    }

    /// Streams with something to say write it; whether there were any.
    fn write_streams(&mut self) -> bool {
        let mut any = false;
        let mut streams = std::mem::take(&mut self.streams);
        streams.extend(self.endpoint.ready());
        for stream in streams.drain(..) {
            let Some(&slot) = self.carriers.get(stream.slot()) else { continue };
            let connection = self.connections.get(slot).and_then(Option::as_ref);
            // One that waits for its socket is written when that has room.
            if connection.is_some_and(|found| found.stream == Some(stream) && !found.wired.has_pending()) {
                self.turn(slot, false);
                any = true;
            }
        }
        self.streams = streams;
        any
    }

    fn expire(&mut self) {
        let now = self.now();
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
            let Some(deadline) = connection.deadline() else { continue };
            if deadline > now {
                self.soonest = self.soonest.min(deadline);
                continue;
            }
            match connection.wired.connection().expire(now) {
                wire::Expired::Nothing => {}
                wire::Expired::Refused => self.turn(slot, false),
                _ => self.close(slot, now),
            }
        }
    }

    /// Gives back the buffers of connections that were idle since the last time.
    fn give_back(&mut self, now: Millis) {
        self.sweep = Millis::MAX;
        for connection in self.connections.iter_mut().flatten() {
            match connection.used {
                true => self.sweep = now + SWEEP,
                false => connection.wired.release(&mut self.budget),
            }
            connection.used = false;
        }
    }

    /// Whether no connection has anything left to send.
    fn is_drained(&mut self) -> bool {
        self.connections
            .iter_mut()
            .flatten()
            .all(|connection| connection.wired.pending().is_empty() && connection.wired.stream().is_none())
    }
}

impl Connection {
    fn interest(&self) -> Wants {
        match self.wait {
            Wait::Write | Wait::Close => Wants::Write,
            // What is sent ahead while a stream is open waits in the socket when there is no more room for it.
            _ if self.full && self.wired.has_pending() => Wants::Write,
            _ if self.full => Wants::Nothing,
            _ if self.wired.has_pending() => Wants::Both,
            _ => Wants::Read,
        }
    }

    fn deadline(&self) -> Option<Millis> {
        self.wired.next_deadline()
    }

    /// One turn; `false` if the connection is over.
    fn turn<S>(
        &mut self,
        host: &mut Host<'_, '_, '_, S, Vec<u8>, IN_FLIGHT>,
        random: &mut dyn FnMut(&mut [u8]),
        budget: &mut Budget,
        read: bool,
    ) -> bool {
        self.moved = false;
        if read && self.wait != Wait::Write && !self.read(budget) {
            return false;
        }
        for _ in 0..ROUNDS {
            self.wait = self.wired.serve(host, random);
            self.full &= self.wired.stream().is_some();
            let Ok(emptied) = self.write() else { return false };
            match self.wait {
                Wait::Write if emptied => {}
                Wait::Close if emptied => return false,
                Wait::Shut if emptied && !self.shut => {
                    self.shut = true;
                    return self.socket.shutdown(Shutdown::Write).is_ok();
                }
                _ => return true,
            }
        }
        // The socket has room: it is ready again at once, and the others have their turns first.
        true
    }

    /// Reads once; `false` if the connection is broken.
    fn read(&mut self, budget: &mut Budget) -> bool {
        let space = self.wired.space_in(budget);
        self.full = space.is_empty();
        if self.full {
            return true;
        }
        match self.socket.read(space) {
            Ok(0) => self.wired.end_of_input(),
            Ok(n) => {
                self.moved = true;
                self.wired.filled(n);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return false,
        }
        true
    }

    /// Writes as much as the socket takes; whether that was everything.
    fn write(&mut self) -> io::Result<bool> {
        loop {
            let pending = self.wired.pending();
            if pending.is_empty() {
                return Ok(true);
            }
            match self.socket.write(pending) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.moved = true;
                    self.wired.sent(n);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
