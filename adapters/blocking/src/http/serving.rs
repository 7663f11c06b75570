//! The loop of the server: sockets and timers around one endpoint.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::server::Millis;
use mcp_sansio_host::SpareDescriptors;
use mcp_sansio_http::endpoint::{App, StreamId};
use mcp_sansio_http::host::{BodyBuffer, Budget, ServeContext};
use mcp_sansio_http::http1;
use rustix::event::Timespec;

use super::connection::Connection;
use super::socket::Socket;
use super::sockets::{Ready, Sockets, Wants};
use super::{HttpEndpoint, HttpServer, Tick};

/// A server while it serves.
pub(super) struct Serving<'s, 'a, S: 'static> {
    server: &'s HttpServer,
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
    stopping: bool,
    accepting: bool,
    sockets: Sockets,
    /// Connections whose request the application has not decided about.
    #[cfg(feature = "resource-server")]
    undecided: Vec<usize>,
    /// The sockets that are ready. Kept between turns for its allocation.
    ready: Vec<Ready>,
    /// The streams to be written in the next turns.
    streams: Vec<StreamId>,
}

/// The numbers of the sockets that belong to no connection.
const STOP: usize = usize::MAX;
const LISTENER: usize = usize::MAX - 1;

/// Some 50 days: long enough, and far from the end of the numbers.
const FOREVER: Millis = u32::MAX as Millis;

/// The period of releasing buffers of idle connections.
const SWEEP: Millis = 5_000;

/// The time without accepting after an error.
const ACCEPT_PAUSE: Millis = 100;

/// The limit of streams that are written in one turn. After a change for ten thousand of them, requests wait for these.
const AT_ONCE: usize = 64;

/// The time for pending answers when the server stops.
pub(super) const GRACE: Duration = Duration::from_secs(5);

impl<'s, 'a, S> Serving<'s, 'a, S> {
    pub(super) fn new(server: &'s HttpServer, app: App<'a, S>) -> io::Result<Self> {
        // A wall clock at the start, and then a monotonic one: a `requestState` may come back to another process.
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis);
        let sockets = Sockets::new()?;
        sockets.add(&server.stop.0, Wants::Read, STOP)?;
        if let Some(listener) = server.listener.fd() {
            sockets.add(listener, Wants::Read, LISTENER)?;
        }
        Ok(Serving {
            server,
            endpoint: server.options.endpoint(),
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
            stopping: false,
            accepting: true,
            sockets,
            #[cfg(feature = "resource-server")]
            undecided: Vec::new(),
            ready: Vec::new(),
            streams: Vec::new(),
        })
    }

    pub(super) fn run(&mut self, tick: Tick<'_, S>) -> io::Result<()> {
        let mut wake = None;
        let mut stop_at = None;
        loop {
            self.wait(wake)?;
            self.time = self.now();
            for at in 0..self.ready.len() {
                let Some(&Ready { number, gone }) = self.ready.get(at) else { break };
                match number {
                    STOP if !self.stopping => {
                        // The byte stays in the socket: without this change it would end every wait at once.
                        self.sockets.change(&self.server.stop.0, Wants::Nothing, STOP)?;
                        self.stopping = true;
                        self.endpoint.shut_down();
                        stop_at = Some(Instant::now() + GRACE);
                    }
                    STOP => {}
                    LISTENER => self.accept(),
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
            let now = self.time;
            self.expire();
            wake = tick(&mut self.app, &mut self.endpoint, now);
            // `tick` may have learned of decisions.
            #[cfg(feature = "resource-server")]
            for slot in std::mem::take(&mut self.undecided) {
                if let Some(connection) = self.connections[slot].as_mut() {
                    connection.listed = false;
                    self.turn(slot, false);
                }
            }
            if self.write_streams() {
                // A handler may have run after `tick`, which has to see its effects.
                wake = Some(now + 1);
            }
            if !self.streams.is_empty() {
                wake = Some(now);
            }
            // A server over one stream ends with it.
            let is_over = self.server.listener.fd().is_none() && self.open() == 0;
            if is_over || stop_at.is_some_and(|at| self.is_drained() || Instant::now() >= at) {
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

    /// Returns whether there is room for another connection.
    fn has_room(&self) -> bool {
        self.open() < self.server.options.connections && !self.stopping && !self.crowded
    }

    /// Waits until a socket is ready or the time `wake` is reached.
    fn wait(&mut self, wake: Option<Millis>) -> io::Result<()> {
        let rests = self.accept_at.is_some_and(|at| self.time < at);
        let accepting = self.has_room() && !rests;
        if accepting != self.accepting {
            self.accepting = accepting;
            let wants = if accepting { Wants::Read } else { Wants::Nothing };
            if let Some(listener) = self.server.listener.fd() {
                self.sockets.change(listener, wants, LISTENER)?;
            }
        }
        let timeout = self.timeout(wake);
        let wants = |on| if on { Wants::Read } else { Wants::Nothing };
        let listener = self.server.listener.fd().map(|fd| (fd, wants(accepting), LISTENER));
        let own = [Some((self.server.stop.0.as_fd(), wants(!self.stopping), STOP)), listener];
        let connections = self.connections.iter().enumerate().filter_map(|(slot, connection)| {
            let connection = connection.as_ref()?;
            Some((connection.socket.as_fd(), connection.wants, slot))
        });
        self.sockets.wait(own.into_iter().flatten().chain(connections), timeout.as_ref(), &mut self.ready)
    }

    /// Returns how long to wait. The time that `tick` took is not looked at: a deadline may come later by it.
    fn timeout(&self, wake: Option<Millis>) -> Option<Timespec> {
        if self.stopping {
            return Some(Timespec { tv_sec: 0, tv_nsec: 10_000_000 });
        }
        let connections = Some(self.soonest.min(self.sweep)).filter(|soonest| *soonest != Millis::MAX);
        let accept = self.accept_at.filter(|at| *at > self.time);
        let next = connections.into_iter().chain(self.endpoint.next_deadline()).chain(wake).chain(accept).min()?;
        let left = next.saturating_sub(self.time).min(60_000);
        Some(Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as _ })
    }

    fn accept(&mut self) {
        while self.has_room() {
            let socket = match self.server.listener.accept() {
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
                Some(Connection::new(socket, self.server.options.wire_limits, self.server.options.limits.message));
            // The first request may be there already.
            self.turn(slot, true);
        }
    }

    /// Takes the only connection of a server over a stream.
    pub(super) fn carry(&mut self, socket: UnixStream) -> io::Result<()> {
        let socket = Socket::Unix(socket);
        socket.prepare()?;
        self.sockets.add(&socket, Wants::Read, 0)?;
        // Its client cannot open another connection, so it is not closed for being idle.
        let limits = self.server.options.wire_limits.idle_time(FOREVER);
        self.connections.push(Some(Connection::new(socket, limits, self.server.options.limits.message)));
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
        connection.used = true;
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

    /// Writes streams that have messages, [`AT_ONCE`] at most. Returns whether there were any.
    fn write_streams(&mut self) -> bool {
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
        any
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
            match connection.used {
                true => self.sweep = now + SWEEP,
                false => connection.wired.release(&mut self.budget),
            }
            connection.used = false;
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
