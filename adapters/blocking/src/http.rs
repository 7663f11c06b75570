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
use std::time::{Duration, Instant};

use mcp_sansio::server::{Limits, Millis, Server};
use mcp_sansio::service::Service;
pub use mcp_sansio_http::endpoint::{Access, App, Config, Endpoint, EndpointLimits, Head};
use mcp_sansio_http::host::{Body, Host, Wait, Wired};
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
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    config: Config<'static>,
    limits: Limits,
    endpoint_limits: EndpointLimits,
    wire_limits: wire::Limits,
    connections: usize,
    stop: (UnixStream, UnixStream),
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
        let mut serving = Serving {
            endpoint: Endpoint::growing(self.config, server, self.endpoint_limits),
            app,
            body: Body::new(Vec::new()),
            random: File::open("/dev/urandom")?,
            started: Instant::now(),
            connections: Vec::new(),
            open: 0,
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
}

struct Serving<'s, 'a, S: 'static> {
    server: &'s HttpServer,
    endpoint: HttpEndpoint,
    app: App<'a, S>,
    body: Body<Vec<u8>>,
    random: File,
    started: Instant,
    connections: Vec<Option<Connection>>,
    open: usize,
    stopping: bool,
}

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
            wake = tick(&mut self.app, &mut self.endpoint, now);
            self.expire();
            self.write_streams();
            if stop_at.is_some_and(|at| self.is_drained() || Instant::now() >= at) {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Millis {
        self.started.elapsed().as_millis() as Millis
    }

    /// Waits until a socket is ready or a time has come.
    fn wait(&self, wake: Option<Millis>) -> io::Result<Ready> {
        let accepts = self.open < self.server.connections && !self.stopping;
        let mut fds = vec![PollFd::new(&self.server.stop.0, PollFlags::IN)];
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
        let next = connections.chain(self.endpoint.next_deadline()).chain(wake).min()?;
        let left = next.saturating_sub(self.now()).clamp(1, 60_000);
        Some(Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as _ })
    }

    fn accept(&mut self) {
        while self.open < self.server.connections {
            let Ok((socket, _)) = self.server.listener.accept() else { return };
            let prepared = socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true));
            if prepared.is_err() {
                continue;
            }
            let limits = self.server.wire_limits;
            let store = |size| mcp_sansio::store::Store::growing(size);
            let input = store(self.server.limits.message + 64 * 1024);
            let output = store(self.server.limits.message.saturating_mul(2) + 64 * 1024);
            let connection =
                Connection { socket, wired: Wired::new(input, output, limits), wait: Wait::Read, shut: false };
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

    /// Streams with something to say write it.
    fn write_streams(&mut self) {
        let ready: Vec<_> = self.endpoint.ready().collect();
        if ready.is_empty() {
            return;
        }
        for slot in 0..self.connections.len() {
            let stream = self.connections[slot].as_ref().and_then(|connection| connection.wired.stream());
            if stream.is_some_and(|stream| ready.contains(&stream)) {
                self.turn(slot, false);
            }
        }
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
        if space.is_empty() {
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
