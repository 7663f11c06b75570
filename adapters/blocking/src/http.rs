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

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::server::{Limits, Millis, Seal, Server};
use mcp_sansio::service::Service;
pub use mcp_sansio_http::endpoint::{Access, App, Config, Endpoint, EndpointLimits, Head, Streams};
use mcp_sansio_http::host::{Body, Host, Wait, Wired};
#[cfg(feature = "seal")]
pub use mcp_sansio_http::seal::HmacSeal;
use mcp_sansio_http::wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

    /// Connections at the most; further ones wait in the listener's queue.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most;
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
            open: 0,
            accept_at: None,
            stopping: false,
            server: &self,
        };
        serving.run(tick)
    }
}

/// A connection with its socket.
struct Connection {
    socket: TcpStream,
    wired: Wired<'static>,
    wait: Wait,
    shut: bool,
    /// There is no room for input.
    full: bool,
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
    open: usize,
    /// When connections are accepted again, after that failed.
    accept_at: Option<Millis>,
    stopping: bool,
}

/// How long no connections are accepted after that failed.
const ACCEPT_PAUSE: Millis = 100;

/// How long what is pending may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);

impl<S> Serving<'_, '_, S> {
    fn run(&mut self, tick: Tick<'_, S>) -> io::Result<()> {
        let mut wake = None;
        let mut stop_at = None;
        loop {
            let ready = self.wait(wake)?;
            if ready.stop && !self.stopping {
                self.stopping = true;
                self.endpoint.shut_down();
                stop_at = Some(Instant::now() + GRACE);
            }
            if ready.listener && !self.stopping {
                self.accept();
            }
            for slot in ready.connections {
                self.turn(slot, true);
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

    /// Waits until a socket is ready or a time has come.
    fn wait(&self, wake: Option<Millis>) -> io::Result<Ready> {
        let rests = self.accept_at.is_some_and(|at| self.now() < at);
        let accepts = self.open < self.server.connections && !self.stopping && !rests;
        // What stops it is said once: from then on it must not wake the loop again and again.
        let stop = if self.stopping { PollFlags::empty() } else { PollFlags::IN };
        let mut fds = vec![PollFd::new(&self.server.stop.0, stop)];
        let mut slots = Vec::with_capacity(self.open);
        if accepts {
            fds.push(PollFd::new(&self.server.listener, PollFlags::IN));
        }
        let fixed = fds.len();
        for (slot, connection) in self.connections.iter().enumerate() {
            let Some(connection) = connection else { continue };
            fds.push(PollFd::from_borrowed_fd(connection.socket.as_fd(), connection.interest()));
            slots.push(slot);
        }
        let timeout = self.timeout(wake);
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let mut ready = fds.iter().map(is_ready);
        let stop = ready.next().unwrap_or(false);
        let listener = accepts && ready.next().unwrap_or(false);
        let connections = fds.iter().skip(fixed).zip(slots).filter(|(fd, _)| is_ready(fd)).map(|(_, slot)| slot);
        Ok(Ready { stop, listener, connections: connections.collect() })
    }

    fn timeout(&self, wake: Option<Millis>) -> Option<Timespec> {
        if self.stopping {
            return Some(Timespec { tv_sec: 0, tv_nsec: 10_000_000 });
        }
        let connections = self.connections.iter().flatten().filter_map(|connection| connection.deadline());
        let accept = self.accept_at.filter(|at| *at > self.now());
        let next = connections.chain(self.endpoint.next_deadline()).chain(wake).chain(accept).min()?;
        let left = next.saturating_sub(self.now()).min(60_000);
        Some(Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as _ })
    }

    fn accept(&mut self) {
        while self.open < self.server.connections {
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
            let prepared = socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true));
            if prepared.is_err() {
                continue;
            }
            let limits = self.server.wire_limits;
            let store = |size| mcp_sansio::store::Store::growing(size);
            let input = store(self.server.limits.message + 64 * 1024);
            let output = store(self.server.limits.message.saturating_mul(2) + 64 * 1024);
            let connection = Connection {
                socket,
                wired: Wired::new(input, output, limits),
                wait: Wait::Read,
                shut: false,
                full: false,
            };
            let slot = match self.connections.iter().position(Option::is_none) {
                Some(slot) => slot,
                None => {
                    self.connections.push(None);
                    self.connections.len() - 1
                }
            };
            self.connections[slot] = Some(connection);
            self.open += 1;
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
        let alive = connection.turn(&mut host, &mut fill, read);
        if !alive {
            connection.wired.leave(&mut host);
            self.connections[slot] = None;
            self.open -= 1;
        }
    }

    /// Streams with something to say write it; whether there were any.
    fn write_streams(&mut self) -> bool {
        let ready: Vec<_> = self.endpoint.ready().collect();
        let mut any = false;
        if ready.is_empty() {
            return any;
        }
        for slot in 0..self.connections.len() {
            let stream = self.connections[slot].as_ref().and_then(|connection| connection.wired.stream());
            // One that waits for its socket is written when that has room.
            let blocked = self.connections[slot].as_ref().is_some_and(|connection| connection.wired.has_pending());
            if !blocked && stream.is_some_and(|stream| ready.contains(&stream)) {
                self.turn(slot, false);
                any = true;
            }
        }
        any
    }

    fn expire(&mut self) {
        let now = self.now();
        self.endpoint.expire(&mut self.app, now);
        for slot in 0..self.connections.len() {
            let Some(connection) = self.connections[slot].as_mut() else { continue };
            if connection.deadline().is_none_or(|deadline| deadline > now) {
                continue;
            }
            match connection.wired.connection().expire(now) {
                wire::Expired::Nothing => {}
                wire::Expired::Refused => self.turn(slot, false),
                _ => {
                    let mut host = Host { endpoint: &mut self.endpoint, app: &mut self.app, body: &mut self.body, now };
                    connection.wired.leave(&mut host);
                    self.connections[slot] = None;
                    self.open -= 1;
                }
            }
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

struct Ready {
    stop: bool,
    listener: bool,
    connections: Vec<usize>,
}

impl Connection {
    fn interest(&self) -> PollFlags {
        match self.wait {
            Wait::Write | Wait::Close => PollFlags::OUT,
            // What is sent ahead while a stream is open waits in the socket when there is no more room for it.
            _ if self.full => PollFlags::empty(),
            _ if self.wired.has_pending() => PollFlags::IN | PollFlags::OUT,
            _ => PollFlags::IN,
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
        read: bool,
    ) -> bool {
        if read && self.wait != Wait::Write && !self.read() {
            return false;
        }
        loop {
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
    }

    /// Reads once; `false` if the connection is broken.
    fn read(&mut self) -> bool {
        let space = self.wired.space();
        self.full = space.is_empty();
        if self.full {
            return true;
        }
        match self.socket.read(space) {
            Ok(0) => self.wired.end_of_input(),
            Ok(n) => self.wired.filled(n),
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
                Ok(n) => self.wired.sent(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
