//! The loop of the server: sockets, late answers and timers around one endpoint.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_io::Timer;
use futures_lite::FutureExt;
use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
use mcp_sansio_host::{HttpShutdown, LateReceiver, ShutdownStep, SpareDescriptors, Stopper};
use mcp_sansio_http::endpoint::{Access, App, RequestHead, StreamId};
use mcp_sansio_http::host::{BodyBuffer, Budget, ServeContext};
use mcp_sansio_http::http1::ExpireStatus;

use super::connection::{Connection, Turn};
use super::socket::{Listener, Socket};
use super::wake::{Bell, Woken};
use super::{Authorize, HttpEndpoint, HttpServer, Tick, Watch, WireLimits};

/// A server while it serves. It keeps the whole state: dropping a future that polls it loses nothing.
pub(crate) struct Serving<'s, 't, 'a, S: 'static> {
    service: &'s Service<'t, S>,
    state: &'s mut S,
    authorize: Option<Authorize<'a>>,
    #[cfg(feature = "resource-server")]
    permit: Option<super::Permit<'a>>,
    late: Option<LateReceiver<S>>,
    watch: Option<Watch<S>>,
    tick: Option<Tick<S>>,
    /// The time to call `tick` next.
    tick_at: Option<Millis>,
    stopper: Stopper,
    shutdown: HttpShutdown,
    hall: Hall,
    /// The time to look for changes next; `None` while no stream is open.
    look_at: Option<Instant>,
    timer: Timer,
    /// The time when `timer` fires.
    due: Option<Instant>,
}

/// The connections and the endpoint.
struct Hall {
    endpoint: HttpEndpoint,
    body: BodyBuffer<Vec<u8>>,
    epoch: Millis,
    started: Instant,
    listener: Option<Listener>,
    /// There is only the connection over a stream: the server ends with it.
    single: bool,
    most: usize,
    spare: SpareDescriptors,
    /// No descriptors are left for connections, until one closes.
    crowded: bool,
    /// The memory that inputs and outputs of connections may take.
    budget: Budget,
    limits: WireLimits,
    message: usize,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// The deadline of each connection. In a list of its own, so that the next one is found fast.
    deadlines: Vec<Millis>,
    /// No deadline of a connection is before this time.
    soonest: Millis,
    /// The time to release the buffers of idle connections.
    sweep: Millis,
    streams: HashMap<StreamId, usize>,
    /// The streams to be written in the next turns.
    ready: Vec<StreamId>,
    woken: Arc<Woken>,
    /// The time to accept connections again, after an error.
    accept_at: Option<Instant>,
    /// Kept between turns for its allocation.
    slots: Vec<usize>,
    /// Connections whose request waits until the stream of its session was read.
    parked: Vec<usize>,
    /// Connections whose request the application has not decided about.
    #[cfg(feature = "resource-server")]
    undecided: Vec<usize>,
}

/// The time without accepting after an error: the process has no free descriptor.
const PAUSE: Duration = Duration::from_millis(100);
const DAY: Duration = Duration::from_secs(86_400);
/// The period of releasing buffers of idle connections.
const SWEEP: Millis = 5_000;
/// The time to wait before an overdue deadline is looked at again.
const OVERDUE: Millis = 500;
/// The limit of messages and connections that are taken, and of streams that are written, in one turn.
const AT_ONCE: usize = 64;
const NEVER: Millis = Millis::MAX;
/// Some 50 days: long enough, and far from the end of the numbers.
const FOREVER: Millis = u32::MAX as Millis;
/// Number of requests that may wait for the stream of their session. Further ones are handled at once, and may get 503.
const PARKED: usize = 256;

impl<'s, 't, 'a, S> Serving<'s, 't, 'a, S> {
    pub(crate) fn new(server: HttpServer<'a, S>, service: &'s Service<'t, S>, state: &'s mut S) -> Self {
        // A wall clock at the start, and then a monotonic one: a `requestState` may come back to another process.
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis);
        let woken = Arc::<Woken>::default();
        let endpoint = server.options.endpoint();
        let endpoint = match server.fleet {
            Some(fleet) => endpoint.fleet(fleet),
            None => endpoint,
        };
        let (mut endpoint, mut late) = (endpoint, server.late);
        if let Some(late) = &mut late {
            // Sessions that other processes have ended get 404 from the first request on.
            while late.give(&mut endpoint, service, state) {}
        }
        let hall = Hall {
            endpoint,
            body: BodyBuffer::new(Vec::new()),
            epoch,
            started: Instant::now(),
            single: server.listener.is_stream(),
            listener: Some(server.listener),
            most: server.options.connections,
            spare: SpareDescriptors::of(server.options.spare_descriptors),
            crowded: false,
            budget: Budget::new(server.options.input_total).output(server.options.output_total),
            limits: server.options.wire_limits,
            message: server.options.limits.message,
            connections: Vec::new(),
            free: Vec::new(),
            deadlines: Vec::new(),
            soonest: NEVER,
            sweep: NEVER,
            streams: HashMap::new(),
            ready: Vec::new(),
            woken,
            accept_at: None,
            slots: Vec::new(),
            parked: Vec::new(),
            #[cfg(feature = "resource-server")]
            undecided: Vec::new(),
        };
        Serving {
            service,
            state,
            authorize: server.authorize,
            #[cfg(feature = "resource-server")]
            permit: server.permit,
            late,
            watch: server.watch,
            tick: server.tick,
            tick_at: None,
            stopper: server.stopper,
            shutdown: server.shutdown,
            hall,
            look_at: None,
            timer: Timer::never(),
            due: None,
        }
    }

    /// Does all work that needs no waiting. Ready when the server has stopped.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Serving { service, state, authorize, late, watch, tick, tick_at, hall, look_at, .. } = self;
        let authorize = *authorize;
        let asks = move |head: &RequestHead<'_>| {
            authorize.map_or(Access::Granted { principal: None }, |authorize| authorize(head))
        };
        let mut app = App::new(service, state).authorize(&asks);
        #[cfg(feature = "resource-server")]
        let permit = self.permit;
        #[cfg(feature = "resource-server")]
        let permits = move |message: &mcp_sansio_http::endpoint::MessageAccess<'_>| {
            permit.map_or(Access::Granted { principal: None }, |permit| permit(message))
        };
        #[cfg(feature = "resource-server")]
        if permit.is_some() {
            app = app.permit(&permits);
        }

        let stops = self.stopper.count(cx);
        let mut again = false;
        if let Some(socket) = hall.listener.as_mut().and_then(Listener::take_stream) {
            // Its client cannot open another connection, so it is not closed for being idle.
            hall.limits.idle_time = FOREVER;
            hall.enter(&mut app, socket);
        }
        hall.serve_woken(&mut app, cx);
        if let (Some(watch), Some(_)) = (watch.as_ref(), look_at.take_if(|at| *at <= Instant::now())) {
            (watch.look)(app.state, &mut hall.endpoint);
        }
        hall.expire(&mut app, hall.now());
        // After the sockets that have woken: an answer may wait for the room that they give.
        if let Some(late) = late {
            late.give(&mut hall.endpoint, app.service, app.state);
            again |= late.poll_ready(cx).is_ready();
            #[cfg(feature = "resource-server")]
            if late.take_decided() {
                hall.ask_again(&mut app);
            }
        }
        if let Some(tick) = tick {
            let now = hall.now();
            *tick_at = tick(&mut app, &mut hall.endpoint, now);
        }
        again |= hall.write_streams(&mut app);
        again |= hall.serve_parked(&mut app);
        // After the closed connections have made room.
        again |= hall.accept(&mut app, cx)?;
        // A server over one stream ends with it.
        if hall.single && hall.connections.len() == hall.free.len() {
            return Poll::Ready(Ok(()));
        }
        while let Some(step) = self.shutdown.step(stops, hall.is_drained(), Instant::now()) {
            match step {
                ShutdownStep::Drain => hall.drain(&mut app),
                ShutdownStep::ShutDown => hall.endpoint.shut_down(),
                _ => return Poll::Ready(Ok(())),
            }
            hall.write_streams(&mut app);
            while !hall.ready.is_empty() {
                hall.write_streams(&mut app);
            }
            again = true;
        }
        again |= self.set_timer(cx);
        if again {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Sets the timer to the next deadline. Returns whether that is now.
    fn set_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let hall = &self.hall;
        let watch = self.watch.as_ref().filter(|_| !hall.streams.is_empty());
        self.look_at = watch.map(|watch| self.look_at.unwrap_or_else(|| Instant::now() + watch.period));
        // At most a day: `Instant` cannot represent every deadline.
        let after = |at: Millis| Duration::from_millis(at.saturating_sub(hall.epoch)).min(hall.started.elapsed() + DAY);
        let deadline = hall.next_deadline(hall.now()).map(|at| hall.started + after(at));
        let tick_at = self.tick_at.map(|at| hall.started + after(at));
        let next = [deadline, self.look_at, tick_at, hall.accept_at, self.shutdown.deadline()];
        let next = next.into_iter().flatten().min();
        // The timer is only ever set to an earlier time. Firing too early costs less than setting it for every
        // request.
        if let Some(next) = next.filter(|next| self.due.is_none_or(|due| *next < due)) {
            self.due = Some(next);
            self.timer = Timer::at(next);
        }
        let fired = self.due.is_some() && self.timer.poll(cx).is_ready();
        if fired {
            self.due = None;
        }
        fired
    }
}

impl Hall {
    /// Returns the time in milliseconds: a wall clock at the start, and then a monotonic one.
    fn now(&self) -> Millis {
        self.epoch + self.started.elapsed().as_millis() as Millis
    }

    /// Begins the end: no further connections and requests.
    fn drain<S>(&mut self, app: &mut App<'_, S>) {
        self.listener = None;
        self.endpoint.drain(app);
        for slot in 0..self.connections.len() {
            if let Some(Some(connection)) = self.connections.get_mut(slot) {
                connection.drain(&mut self.budget);
                self.turn(app, slot);
            }
        }
    }

    /// Accepts connections. Returns whether there were any.
    fn accept<S>(&mut self, app: &mut App<'_, S>, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.accept_at.is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.accept_at = None;
        // To try without a sign would cost each request a system call.
        match self.open_listener().map(|listener| listener.poll_readable(cx)) {
            None | Some(Poll::Pending) => return Ok(false),
            Some(Poll::Ready(ready)) => ready?,
        }
        let mut any = false;
        for _ in 0..AT_ONCE {
            let Some(listener) = self.open_listener() else { break };
            match listener.accept() {
                Ok(socket) => {
                    any = true;
                    self.enter(app, socket);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => match listener.poll_readable(cx) {
                    Poll::Pending => break,
                    Poll::Ready(ready) => ready?,
                },
                Err(error) if is_of_one_connection(error.kind()) => {}
                Err(_) => {
                    self.accept_at = Some(Instant::now() + PAUSE);
                    break;
                }
            }
        }
        Ok(any)
    }

    /// Returns the listener if there is room for another connection.
    fn open_listener(&self) -> Option<&Listener> {
        let has_room = self.connections.len() - self.free.len() < self.most && !self.crowded;
        self.listener.as_ref().filter(|_| has_room)
    }

    /// Takes a new connection.
    fn enter<S>(&mut self, app: &mut App<'_, S>, socket: Socket) {
        self.crowded = socket.is_spare(self.spare);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.deadlines.push(NEVER);
            self.connections.len() - 1
        });
        let bell = Bell::new(slot, Arc::clone(&self.woken));
        let connection = Connection::new(socket, bell, self.limits, self.message);
        if let Some(place) = self.connections.get_mut(slot) {
            *place = Some(connection);
        }
        // The first request may be there already.
        self.turn(app, slot);
    }

    /// Serves the connections whose sockets have woken.
    fn serve_woken<S>(&mut self, app: &mut App<'_, S>, cx: &Context<'_>) {
        let mut slots = std::mem::take(&mut self.slots);
        self.woken.take(cx, &mut slots);
        for &slot in &slots {
            self.turn(app, slot);
        }
        self.slots = slots;
    }

    /// Writes streams that have messages, [`AT_ONCE`] at most. Returns whether there may be more.
    fn write_streams<S>(&mut self, app: &mut App<'_, S>) -> bool {
        // Those that were left over come before those that are ready since.
        if self.ready.is_empty() {
            self.ready.extend(self.endpoint.ready());
        }
        let mut wrote = false;
        for _ in 0..AT_ONCE {
            let Some(stream) = self.ready.pop() else { break };
            let Some(&slot) = self.streams.get(&stream) else { continue };
            let waits = self.connections.get(slot).and_then(Option::as_ref).is_none_or(|connection| connection.blocked);
            if !waits {
                wrote = true;
                self.turn(app, slot);
            }
        }
        wrote || !self.ready.is_empty()
    }

    /// Serves the connections that wait for a stream again. Returns whether one of them waits no more.
    fn serve_parked<S>(&mut self, app: &mut App<'_, S>) -> bool {
        let before = self.parked.len();
        for slot in std::mem::take(&mut self.parked) {
            if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) {
                connection.parked = false;
                self.turn(app, slot);
            }
        }
        self.parked.len() < before
    }

    /// Does one turn of a connection. If unsent answers then exceed their limit, closes the connections with the most
    /// unsent bytes.
    fn turn<S>(&mut self, app: &mut App<'_, S>, slot: usize) {
        self.serve(app, slot);
        while self.budget.is_exceeded() {
            let connections = self.connections.iter_mut().enumerate();
            let connections = connections.filter_map(|(slot, connection)| Some((slot, connection.as_mut()?)));
            let largest = connections.max_by_key(|(_, connection)| connection.wired.output_held());
            let Some((slot, connection)) = largest else { return };
            // Bytes that were sent only have to be released.
            connection.wired.release(&mut self.budget);
            if connection.wired.output_held() > 0 {
                connection.abandon();
                self.serve(app, slot);
            }
        }
    }

    fn serve<S>(&mut self, app: &mut App<'_, S>, slot: usize) {
        let now = self.now();
        let Some(place) = self.connections.get_mut(slot) else { return };
        let Some(connection) = place else { return };
        let mut host = ServeContext { endpoint: &mut self.endpoint, app, body: &mut self.body, now };
        // Never continues with a guessable session id.
        let mut random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system has random bytes");
        connection.wired.set_waits_for_streams(self.parked.len() < PARKED);
        let turn = connection.turn(&mut host, &mut random, &mut self.budget);
        connection.wired.trim(&mut self.budget);
        if turn == Turn::Over {
            connection.wired.leave(&mut host);
        }
        let (before, stream) = (connection.stream, connection.wired.stream());
        connection.stream = stream;
        if before != stream {
            // Another connection may carry the old stream by now.
            if before.is_some_and(|before| self.streams.get(&before) == Some(&slot)) {
                before.map(|before| self.streams.remove(&before));
            }
            if let Some(stream) = stream {
                self.streams.insert(stream, slot);
                // A stream may be open for hours, and little is read meanwhile.
                connection.wired.release(&mut self.budget);
            }
        }
        let deadline = connection.next_deadline(now);
        if turn == Turn::Yields {
            connection.ring();
        }
        if turn == Turn::Parked && !std::mem::replace(&mut connection.parked, true) {
            self.parked.push(slot);
        }
        #[cfg(feature = "resource-server")]
        if turn == Turn::Undecided && !std::mem::replace(&mut connection.listed, true) {
            self.undecided.push(slot);
        }
        if turn == Turn::Over {
            connection.wired.pay_back(&mut self.budget);
            *place = None;
            self.free.push(slot);
            self.crowded = false;
        }
        self.set_deadline(slot, if turn == Turn::Over { NEVER } else { deadline });
        if self.sweep == NEVER {
            self.sweep = now + SWEEP;
        }
    }

    fn set_deadline(&mut self, slot: usize, deadline: Millis) {
        if let Some(place) = self.deadlines.get_mut(slot) {
            *place = deadline;
            self.soonest = self.soonest.min(deadline);
        }
    }

    /// Ends connections, sessions and requests whose deadline has passed.
    fn expire<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        if self.endpoint.next_deadline().is_some_and(|at| at <= now) {
            self.endpoint.expire(app, now);
        }
        if self.sweep <= now {
            self.give_back(now);
        }
        if self.soonest > now {
            return;
        }
        self.soonest = NEVER;
        for slot in 0..self.deadlines.len() {
            let deadline = self.deadlines.get(slot).copied().unwrap_or(NEVER);
            if deadline > now {
                self.soonest = self.soonest.min(deadline);
                continue;
            }
            let Some(Some(connection)) = self.connections.get_mut(slot) else { continue };
            let is_last = connection.look(now);
            let deadline = connection.next_deadline(now);
            // A peer that is still there needs no turn, which may ask the application again.
            if !is_last && deadline > now {
                self.set_deadline(slot, deadline);
                continue;
            }
            match connection.wired.connection().expire(now) {
                ExpireStatus::Nothing | ExpireStatus::Refused => {}
                _ => connection.abandon(),
            }
            self.turn(app, slot);
        }
    }

    /// Releases the buffers of connections that were idle since the last sweep.
    fn give_back(&mut self, now: Millis) {
        self.sweep = NEVER;
        for connection in self.connections.iter_mut().flatten() {
            if connection.wired.release_if_idle(&mut self.budget) {
                self.sweep = now + SWEEP;
            }
        }
    }

    fn next_deadline(&self, now: Millis) -> Option<Millis> {
        let connections = Some(self.soonest.min(self.sweep)).filter(|at| *at != NEVER);
        // An overdue deadline waits for something else (a full socket, a session in use): without a pause this would
        // loop.
        let endpoint = self.endpoint.next_deadline().map(|at| if at <= now { now + OVERDUE } else { at });
        connections.into_iter().chain(endpoint).min()
    }

    /// Returns whether no connection has anything left to send.
    fn is_drained(&self) -> bool {
        let idle = |connection: &Connection| !connection.wired.has_pending() && connection.wired.stream().is_none();
        self.connections.iter().flatten().all(idle)
    }

    /// Asks the application again about the requests about which it has not decided.
    #[cfg(feature = "resource-server")]
    fn ask_again<S>(&mut self, app: &mut App<'_, S>) {
        for slot in std::mem::take(&mut self.undecided) {
            if let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) {
                connection.listed = false;
            }
            // A turn does no harm to a connection that waits for something else by now.
            self.turn(app, slot);
        }
    }
}

/// Returns whether the listener can accept other connections at once after this error.
fn is_of_one_connection(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}

#[cfg(all(test, unix))]
mod tests;
