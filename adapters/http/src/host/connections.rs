//! All connections of a server, without I/O and without a clock.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem::{replace, take};
use core::task::Poll;

use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;

use super::{BodyBuffer, Budget, HttpConnection, ServeContext, WaitFor};
use crate::endpoint::{App, Endpoint, StreamId};
use crate::http1::{ConnectionLimits, ExpireStatus};

/// The connection is broken, or its socket cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// The events for which a connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Only the end of the connection, on both sides.
    Nothing,
    /// Also the end of the peer's side, where the system can tell. Bytes are not read.
    End,
    /// There is something to read.
    Read,
    /// There is room for bytes.
    Write,
    /// Something to read, or room for bytes.
    Both,
}

/// The socket of a connection. No function blocks; [`Pending`](Poll::Pending) means that nothing can be done now.
pub trait HttpSocket {
    /// Returns whether there may be something to read. A driver that knows that there is not saves a call of the system; it gives
    /// the connection a [turn](HttpHost::turn) when there is.
    fn is_readable(&mut self) -> bool;

    /// Returns the number of bytes that can be read at once; 0 if that is not known.
    fn waiting(&self) -> usize;

    /// Reads into `space`, which is not empty. 0 is the end of the peer's side.
    ///
    /// # Errors
    /// If the connection is broken.
    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>>;

    /// Writes some of `bytes`.
    ///
    /// # Errors
    /// If the connection is broken.
    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>>;

    /// Makes all written bytes leave the process. Sockets of a system keep none.
    ///
    /// # Errors
    /// If the connection is broken.
    fn flush(&mut self) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the sending side.
    ///
    /// # Errors
    /// If the connection is broken.
    fn shut(&mut self) -> Result<(), Broken>;

    /// Notes the events for the next turn of the connection; called at the end of each. With `again` there is more to do at once,
    /// after the turns of other connections: a driver whose events come only once gives it that turn. Where they come as long as
    /// they are true, the next one comes at once.
    ///
    /// # Errors
    /// If the socket cannot be watched.
    fn wait_for(&mut self, interest: Interest, again: bool) -> Result<(), Broken>;
}

/// A connection with its socket.
struct Served<T> {
    socket: T,
    http: HttpConnection<'static>,
    wait: WaitFor,
    /// The stream that it carries.
    stream: Option<StreamId>,
    /// The sending side was ended.
    is_shut: bool,
    /// The buffer behind an open stream has no room for input.
    is_full: bool,
    /// The last read took as many bytes as there was room for.
    is_filled: bool,
    /// The socket takes no bytes now.
    is_blocked: bool,
    /// It has had a turn since the last sweep.
    is_used: bool,
    /// It is in the list of connections that wait for a stream.
    is_parked: bool,
    /// It is in the list of connections about which the application decides later.
    is_undecided: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Waits,
    /// There is more to do at once; other connections come first.
    Yields,
    Over,
}

impl<T: HttpSocket> Served<T> {
    fn new(socket: T, limits: ConnectionLimits, message: usize) -> Self {
        let input = Store::growing(message.saturating_add(64 * 1024));
        let output = Store::growing(message.saturating_mul(2).saturating_add(64 * 1024));
        Served {
            socket,
            http: HttpConnection::new(input, output, limits),
            wait: WaitFor::Read,
            stream: None,
            is_shut: false,
            is_full: false,
            is_filled: false,
            is_blocked: false,
            is_used: true,
            is_parked: false,
            is_undecided: false,
        }
    }

    /// Returns whether the application has not decided about its request.
    const fn waits_for_decision(&self) -> bool {
        matches!(self.wait, WaitFor::Decision)
    }

    /// Returns whether its request waits, for a decision or for the stream of its session.
    const fn waits(&self) -> bool {
        matches!(self.wait, WaitFor::Stream) || self.waits_for_decision()
    }

    fn interest(&self) -> Interest {
        match self.wait {
            WaitFor::Write | WaitFor::Close => Interest::Write,
            _ if self.waits() && self.http.connection.has_pending() => Interest::Write,
            // The host serves it again. A client that has ended its side is still answered.
            _ if self.waits() => Interest::Nothing,
            // The client may send more requests while a stream is open. They wait in the socket until there is room.
            _ if self.is_full && self.http.connection.has_pending() => Interest::Write,
            _ if self.is_full => Interest::End,
            _ if self.http.connection.has_pending() => Interest::Both,
            _ => Interest::Read,
        }
    }

    /// Reads, serves and writes, as far as the socket allows. With `is_last`, also tries a socket that has said nothing.
    fn turn<S>(
        &mut self,
        host: &mut ServeContext<'_, '_, '_, S, Vec<u8>>,
        random: &mut dyn FnMut(&mut [u8]),
        budget: &mut Budget,
        is_last: bool,
    ) -> Result<Turn, Broken> {
        let takes_input = self.wait != WaitFor::Write && !self.waits();
        let mut reads = is_last || takes_input && self.socket.is_readable();
        for _ in 0..ROUNDS {
            if reads {
                self.read(budget)?;
            }
            self.wait = self.http.serve(host, random);
            self.is_full &= self.http.stream().is_some();
            self.write()?;
            match self.wait {
                WaitFor::Write | WaitFor::Close if self.is_blocked => return Ok(Turn::Waits),
                WaitFor::Close => return Ok(Turn::Over),
                WaitFor::Shut if !self.is_blocked && !replace(&mut self.is_shut, true) => self.socket.shut()?,
                _ => {}
            }
            reads = self.wait != WaitFor::Write;
            if reads && (self.is_full || self.waits() || !self.socket.is_readable()) {
                return Ok(Turn::Waits);
            }
        }
        Ok(Turn::Yields)
    }

    /// Reads once.
    fn read(&mut self, budget: &mut Budget) -> Result<(), Broken> {
        // The socket may hold more of the body: one read for all of it.
        if self.is_filled {
            self.http.connection.expect(|| self.socket.waiting());
        }
        let space = self.http.space_in(budget);
        let room = space.len();
        (self.is_full, self.is_filled) = (room == 0, false);
        if self.is_full {
            return Ok(());
        }
        match self.socket.read(space) {
            Poll::Pending => {}
            Poll::Ready(Ok(0)) => self.http.connection.ended = true,
            Poll::Ready(Ok(n)) => {
                self.is_filled = n == room;
                self.http.connection.filled(n);
            }
            Poll::Ready(Err(broken)) => return Err(broken),
        }
        Ok(())
    }

    /// Writes as much as the socket takes.
    fn write(&mut self) -> Result<(), Broken> {
        loop {
            let pending = self.http.connection.pending();
            if pending.is_empty() {
                let flushed = self.socket.flush();
                self.is_blocked = flushed.is_pending();
                return if let Poll::Ready(flushed) = flushed { flushed } else { Ok(()) };
            }
            match self.socket.write(pending) {
                Poll::Ready(Ok(0)) => return Err(Broken),
                Poll::Ready(Ok(n)) => self.http.connection.sent(n),
                Poll::Ready(Err(broken)) => return Err(broken),
                Poll::Pending => {
                    self.is_blocked = true;
                    return Ok(());
                }
            }
        }
    }
}

/// All connections of an HTTP server, and its endpoint: what a driver needs besides sockets, events and a clock.
///
/// 1. Call [`enter`](HttpHost::enter) with each accepted socket while the host [has room](HttpHost::has_room).
/// 2. When a socket is ready, call [`turn`](HttpHost::turn).
/// 3. After that, and at [`next_deadline`](HttpHost::next_deadline), call [`expire`](HttpHost::expire), then
///    [`write_streams`](HttpHost::write_streams) and [`serve_parked`](HttpHost::serve_parked).
///
/// All memory is counted in one [`Budget`], and given back when a connection is idle for some seconds. A socket is dropped when its
/// connection is over. `now` is a time in milliseconds that never goes back.
pub struct HttpHost<T> {
    /// The endpoint.
    pub endpoint: Endpoint<'static>,
    body: BodyBuffer<Vec<u8>>,
    random: Random,
    limits: HostLimits,
    /// The memory that connections take.
    pub budget: Budget,
    connections: Vec<Option<Served<T>>>,
    /// Free places in `connections`.
    free: Vec<usize>,
    /// There is no room for another connection until one closes, such as for lack of descriptors. The driver sets it.
    pub is_crowded: bool,
    /// The connection of each stream, by [`StreamId::slot`].
    carriers: Vec<usize>,
    /// No deadline of a connection is before this time.
    soonest: Millis,
    /// The time to release the buffers of idle connections.
    sweep: Millis,
    /// Connections whose request waits until the stream of its session was read.
    parked: Vec<usize>,
    /// Connections whose request the application has not decided about.
    undecided: Vec<usize>,
    /// The streams to be written in the next turns.
    streams: Vec<StreamId>,
}

/// Fills ids of sessions with secure random bytes.
type Random = Box<dyn FnMut(&mut [u8]) + Send>;

/// The limits of an [`HttpHost`].
#[derive(Clone, Copy, Debug)]
pub struct HostLimits {
    /// Limits of each connection.
    pub wire: ConnectionLimits,
    /// Number of bytes of a message.
    pub message: usize,
    /// Number of connections.
    pub connections: usize,
    /// Number of bytes that the received requests of all connections take.
    pub input_total: usize,
    /// Number of bytes that the unsent answers of all connections take.
    pub output_total: usize,
}

/// The limit of rounds (read, serve, write) of a connection in one turn.
const ROUNDS: usize = 4;
/// The period of releasing buffers of idle connections.
const SWEEP: Millis = 5_000;
/// The time to wait before an overdue deadline of the endpoint is looked at again.
const OVERDUE: Millis = 500;
/// Number of requests that may wait for the stream of their session. Further ones are handled at once, and may get 503.
const PARKED: usize = 256;
/// The limit of streams that are written in one turn. After a change for ten thousand of them, requests wait for these.
const AT_ONCE: usize = 64;
const NEVER: Millis = Millis::MAX;

impl<T> fmt::Debug for HttpHost<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHost").field("limits", &self.limits).field("open", &self.open()).finish_non_exhaustive()
    }
}

impl<T> HttpHost<T> {
    /// Makes a host. `random` fills ids of sessions with secure random bytes.
    #[must_use]
    pub fn new(
        endpoint: Endpoint<'static>,
        limits: HostLimits,
        random: impl FnMut(&mut [u8]) + Send + 'static,
    ) -> Self {
        HttpHost {
            endpoint,
            body: BodyBuffer::new(Vec::new()),
            random: Box::new(random),
            limits,
            budget: Budget::new(limits.input_total).output(limits.output_total),
            connections: Vec::new(),
            free: Vec::new(),
            is_crowded: false,
            carriers: Vec::new(),
            soonest: NEVER,
            sweep: NEVER,
            parked: Vec::new(),
            undecided: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Returns the number of connections.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// Returns whether there is room for another connection.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.open() < self.limits.connections && !self.is_crowded
    }

    /// Returns the place that the next connection gets.
    #[must_use]
    pub fn vacant(&self) -> usize {
        self.free.last().copied().unwrap_or(self.connections.len())
    }

    /// Returns the socket at this place.
    pub fn socket(&mut self, slot: usize) -> Option<&mut T> {
        self.connections.get_mut(slot)?.as_mut().map(|connection| &mut connection.socket)
    }

    /// Returns all sockets with their places.
    pub fn sockets(&self) -> impl Iterator<Item = (usize, &T)> {
        let connections = self.connections.iter().enumerate();
        connections.filter_map(|(slot, connection)| Some((slot, &connection.as_ref()?.socket)))
    }

    /// Returns the time of the next call of [`expire`](HttpHost::expire), if there is one.
    #[must_use]
    pub fn next_deadline(&self, now: Millis) -> Option<Millis> {
        let connections = Some(self.soonest.min(self.sweep)).filter(|at| *at != NEVER);
        // An overdue deadline waits for something else (a full socket, a session in use): without a pause this would loop.
        let endpoint = self.endpoint.next_deadline().map(|at| if at <= now { now.saturating_add(OVERDUE) } else { at });
        connections.into_iter().chain(endpoint).min()
    }

    /// Returns whether no connection has anything left to send.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let idle =
            |connection: &Served<T>| !connection.http.connection.has_pending() && connection.http.stream().is_none();
        self.connections.iter().flatten().all(idle)
    }
}

impl<T: HttpSocket> HttpHost<T> {
    /// Takes a new connection, and gives it a turn: its first request may be there already.
    pub fn enter<S>(&mut self, socket: T, app: &mut App<'_, S>, now: Millis) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        if let Some(place) = self.connections.get_mut(slot) {
            *place = Some(Served::new(socket, self.limits.wire, self.limits.message));
        }
        self.turn(slot, app, now);
    }

    /// Gives the connection at this place a turn: reads, serves, writes. If unsent answers then exceed their limit, closes the
    /// connections with the most unsent bytes.
    pub fn turn<S>(&mut self, slot: usize, app: &mut App<'_, S>, now: Millis) {
        self.serve(slot, app, now, false);
        while self.budget.is_exceeded() {
            let connections = self.connections.iter_mut().enumerate();
            let connections = connections.filter_map(|(slot, connection)| Some((slot, connection.as_mut()?)));
            let largest = connections.max_by_key(|(_, connection)| connection.http.output_held());
            let Some((slot, connection)) = largest else { return };
            // Bytes that were sent only have to be released.
            connection.http.release(&mut self.budget);
            if connection.http.output_held() > 0 {
                self.close(slot, app, now);
            }
        }
    }

    fn serve<S>(&mut self, slot: usize, app: &mut App<'_, S>, now: Millis, is_last: bool) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let mut host = ServeContext { endpoint: &mut self.endpoint, app, body: &mut self.body, now };
        connection.http.set_waits_for_streams(self.parked.len() < PARKED);
        let turn = connection.turn(&mut host, &mut *self.random, &mut self.budget, is_last);
        connection.http.trim(&mut self.budget);
        let again = turn == Ok(Turn::Yields);
        let is_over = turn.is_err() || turn == Ok(Turn::Over);
        if is_over || connection.socket.wait_for(connection.interest(), again).is_err() {
            return self.close(slot, app, now);
        }
        if let Some(deadline) = connection.http.connection.next_deadline() {
            self.soonest = self.soonest.min(deadline);
        }
        connection.is_used = true;
        if self.sweep == NEVER {
            self.sweep = now.saturating_add(SWEEP);
        }
        if connection.wait == WaitFor::Stream && !replace(&mut connection.is_parked, true) {
            self.parked.push(slot);
        }
        if connection.waits_for_decision() && !replace(&mut connection.is_undecided, true) {
            self.undecided.push(slot);
        }
        let stream = connection.http.stream();
        if stream == connection.stream {
            return;
        }
        connection.stream = stream;
        let Some(stream) = stream else { return };
        // A stream may be open for hours, and little is read meanwhile.
        connection.http.release(&mut self.budget);
        if self.carriers.len() <= stream.slot() {
            self.carriers.resize(stream.slot() + 1, usize::MAX);
        }
        if let Some(carrier) = self.carriers.get_mut(stream.slot()) {
            *carrier = slot;
        }
    }

    /// Closes the connection at this place. The endpoint decides about its stream.
    pub fn close<S>(&mut self, slot: usize, app: &mut App<'_, S>, now: Millis) {
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        self.is_crowded = false;
        connection.http.pay_back(&mut self.budget);
        let mut host = ServeContext { endpoint: &mut self.endpoint, app, body: &mut self.body, now };
        connection.http.leave(&mut host);
    }

    /// Writes streams that have messages, 64 at most. Returns the time of the next turn, if there is something to do.
    pub fn write_streams<S>(&mut self, app: &mut App<'_, S>, now: Millis) -> Option<Millis> {
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
            if connection.is_some_and(|found| found.stream == Some(stream) && !found.is_blocked) {
                self.turn(slot, app, now);
                any = true;
            }
        }
        // A handler may have run since the application had its turn, which has to see its effects.
        if self.streams.is_empty() { any.then_some(now.saturating_add(1)) } else { Some(now) }
    }

    /// Serves the connections again whose requests wait for the stream of their session. Returns the time of the next turn, if there
    /// is something to do.
    pub fn serve_parked<S>(&mut self, app: &mut App<'_, S>, now: Millis) -> Option<Millis> {
        let before = self.parked.len();
        for slot in take(&mut self.parked) {
            if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) {
                connection.is_parked = false;
                self.turn(slot, app, now);
            }
        }
        // What they have put into streams is written in the next turn.
        (self.parked.len() < before).then_some(now.saturating_add(1))
    }

    /// Asks the application again about the requests about which it has not decided.
    pub fn ask_again<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        for slot in take(&mut self.undecided) {
            if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) {
                connection.is_undecided = false;
                self.turn(slot, app, now);
            }
        }
    }

    /// Ends requests, sessions and connections whose deadline has passed, and releases the buffers of idle connections.
    pub fn expire<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        if self.endpoint.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.endpoint.expire(app, now);
        }
        if self.sweep <= now {
            self.sweep(now);
        }
        if self.soonest > now {
            return;
        }
        self.soonest = NEVER;
        for slot in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { continue };
            let Some(deadline) = connection.http.connection.next_deadline() else { continue };
            if deadline > now {
                self.soonest = self.soonest.min(deadline);
                continue;
            }
            match connection.http.connection.expire(now) {
                ExpireStatus::Nothing => {}
                ExpireStatus::Refused => self.turn(slot, app, now),
                ExpireStatus::Close => self.close(slot, app, now),
            }
        }
    }

    /// Releases the buffers of connections that were idle since the last sweep.
    fn sweep(&mut self, now: Millis) {
        self.sweep = NEVER;
        for connection in self.connections.iter_mut().flatten() {
            if take(&mut connection.is_used) {
                self.sweep = now.saturating_add(SWEEP);
            } else {
                connection.http.release(&mut self.budget);
            }
        }
    }

    /// Begins the end: requests that are there are answered, then each connection closes, and the endpoint takes nothing new.
    /// The caller closes its listener.
    pub fn drain<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.endpoint.drain(app);
        for slot in 0..self.connections.len() {
            if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) {
                connection.http.connection.close();
                self.serve(slot, app, now, true);
            }
        }
        self.write_all_streams(app, now);
    }

    /// Gives all requests that are left an error, and writes it as far as sockets allow.
    pub fn shut_down<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.endpoint.shut_down();
        self.write_all_streams(app, now);
    }

    fn write_all_streams<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.write_streams(app, now);
        while !self.streams.is_empty() {
            self.write_streams(app, now);
        }
    }
}

#[cfg(test)]
mod tests;
