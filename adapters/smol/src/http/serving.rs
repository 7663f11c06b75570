//! The loop: sockets, late answers and timers around one endpoint.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_channel::Receiver;
use async_io::{Async, Timer};
use futures_lite::{FutureExt, Stream};
use mcp_sansio::server::{Failure, Millis, Progress, SendError, Server, Token};
use mcp_sansio::service::Service;
use mcp_sansio_http::endpoint::{Access, App, Head, StreamId};
use mcp_sansio_http::host::{Body, Budget, Host};
use mcp_sansio_http::wire::Expired;

use super::connection::{Connection, Turn};
use super::descriptors::{first_spare, is_spare};
use super::wake::{Bell, Woken};
use super::{Authorize, Endpoint, HttpEndpoint, HttpServer, Watch, WireLimits};
use crate::answers::{Answer, Late, News, WRONG_KIND};

/// A server that serves. Everything is kept here, not in a future.
pub(crate) struct Serving<'s, 't, 'a, S: 'static> {
    service: &'s Service<'t, S>,
    state: &'s mut S,
    authorize: Option<Authorize<'a>>,
    late: Option<Late<S>>,
    watch: Option<Watch<S>>,
    stop: Pin<Box<Receiver<()>>>,
    hall: Hall<S>,
    /// When to look for changes next; `None` while nobody could hear of any.
    look_at: Option<Instant>,
    timer: Timer,
    /// When `timer` fires.
    due: Option<Instant>,
}

/// The connections, and what they talk to.
struct Hall<S> {
    endpoint: HttpEndpoint,
    body: Body<Vec<u8>>,
    epoch: Millis,
    started: Instant,
    listener: Option<Async<TcpListener>>,
    most: usize,
    /// A socket with this number, or a higher one, is the last for now.
    first_spare: usize,
    /// No descriptors are left for connections, until one closes.
    crowded: bool,
    /// What the inputs of connections may take.
    budget: Budget,
    limits: WireLimits,
    message: usize,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// For each connection, when time makes something of it: beside them, so that finding the next one is quick.
    deadlines: Vec<Millis>,
    streams: HashMap<StreamId, usize>,
    woken: Arc<Woken>,
    /// Answers for which their stream has no room.
    deferred: Vec<(Token, Answer<S>)>,
    /// After accepting has failed: when to try again.
    accept_at: Option<Instant>,
    /// What is pending may take until then.
    stop_at: Option<Instant>,
    /// Kept for its memory.
    slots: Vec<usize>,
}

/// How long what is pending may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// How long nothing is accepted when that has failed: there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);
const DAY: Duration = Duration::from_secs(86_400);
/// How soon what is overdue is looked at again.
const OVERDUE: Millis = 500;
/// How often it is looked whether a peer has gone whose bytes are not read.
const LOOK: Millis = 1_000;
/// News and connections that are taken before it is somebody else's turn.
const AT_ONCE: usize = 64;
const NEVER: Millis = Millis::MAX;

impl<'s, 't, 'a, S> Serving<'s, 't, 'a, S> {
    pub(crate) fn new(server: HttpServer<'a, S>, service: &'s Service<'t, S>, state: &'s mut S) -> Self {
        let engine = Server::growing(server.limits);
        let engine = match server.seal {
            Some(seal) => engine.seal(seal),
            None => engine,
        };
        // From here on the clock only goes forward, and processes that stand in for each other agree on it.
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis);
        let hall = Hall {
            endpoint: Endpoint::growing(server.config, engine, server.endpoint_limits),
            body: Body::new(Vec::new()),
            epoch,
            started: Instant::now(),
            listener: Some(server.listener),
            most: server.connections,
            first_spare: first_spare(server.spare_descriptors),
            crowded: false,
            budget: Budget::new(server.input_total),
            limits: server.wire_limits,
            message: server.limits.message,
            connections: Vec::new(),
            free: Vec::new(),
            deadlines: Vec::new(),
            streams: HashMap::new(),
            woken: Arc::default(),
            deferred: Vec::new(),
            accept_at: None,
            stop_at: None,
            slots: Vec::new(),
        };
        Serving {
            service,
            state,
            authorize: server.authorize,
            late: server.late,
            watch: server.watch,
            stop: Box::pin(server.stop.1),
            hall,
            look_at: None,
            timer: Timer::never(),
            due: None,
        }
    }

    /// Does all that can be done now; ready when the server has stopped.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Serving { service, state, authorize, late, watch, stop, hall, look_at, .. } = self;
        let authorize = *authorize;
        let asks =
            move |head: &Head<'_>| authorize.map_or(Access::Granted { principal: None }, |authorize| authorize(head));
        let mut app = App::new(service, state).authorize(&asks);

        if hall.stop_at.is_none() && stop.as_mut().poll_next(cx) == Poll::Ready(Some(())) {
            hall.shut_down();
        }
        let mut again = false;
        if let Some(late) = late {
            again |= hall.hear(&mut app, late, cx);
        }
        hall.serve_woken(&mut app, cx);
        if let (Some(watch), Some(_)) = (watch.as_ref(), look_at.take_if(|at| *at <= Instant::now())) {
            (watch.look)(app.state, &mut hall.endpoint);
        }
        hall.expire(&mut app);
        again |= hall.write_streams(&mut app);
        // When others have left there may be room.
        again |= hall.accept(&mut app, cx)?;
        if hall.stop_at.is_some_and(|at| hall.is_drained() || Instant::now() >= at) {
            return Poll::Ready(Ok(()));
        }
        again |= self.set_timer(cx);
        if again {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Sets the timer to whatever comes first; whether that is now.
    fn set_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let hall = &self.hall;
        let watch = self.watch.as_ref().filter(|_| !hall.streams.is_empty());
        self.look_at = watch.map(|watch| self.look_at.unwrap_or_else(|| Instant::now() + watch.period));
        // What is far away is looked at again on the way.
        let after = |at: Millis| Duration::from_millis(at.saturating_sub(hall.epoch)).min(hall.started.elapsed() + DAY);
        let deadline = hall.next_deadline().map(|at| hall.started + after(at));
        let next = [deadline, self.look_at, hall.accept_at, hall.stop_at].into_iter().flatten().min();
        // A timer that fires early costs less than one that is set for every request.
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

impl<S> Hall<S> {
    /// Only goes forward, and processes that stand in for each other agree on it.
    fn now(&self) -> Millis {
        self.epoch + self.started.elapsed().as_millis() as Millis
    }

    fn shut_down(&mut self) {
        self.stop_at = Some(Instant::now() + GRACE);
        self.listener = None;
        self.endpoint.shut_down();
    }

    /// Takes new connections; whether there were any.
    fn accept(&mut self, app: &mut App<'_, S>, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.accept_at.is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.accept_at = None;
        let mut any = false;
        for _ in 0..AT_ONCE {
            let open = self.connections.len() - self.free.len();
            let has_room = open < self.most && !self.crowded;
            let Some(listener) = self.listener.as_ref().filter(|_| has_room) else { break };
            let accepted = listener.get_ref().accept().and_then(|(socket, _)| {
                socket.set_nodelay(true)?;
                Async::new(socket)
            });
            match accepted {
                Ok(socket) => {
                    any = true;
                    self.crowded = is_spare(socket.get_ref(), self.first_spare);
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
                    // There may be a request already.
                    self.turn(app, slot);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => match listener.poll_readable(cx) {
                    Poll::Pending => break,
                    Poll::Ready(ready) => ready?,
                },
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => {
                    self.accept_at = Some(Instant::now() + PAUSE);
                    break;
                }
            }
        }
        Ok(any)
    }

    /// Serves the connections whose sockets have woken.
    fn serve_woken(&mut self, app: &mut App<'_, S>, cx: &Context<'_>) {
        let mut slots = std::mem::take(&mut self.slots);
        self.woken.take(cx, &mut slots);
        for &slot in &slots {
            self.turn(app, slot);
        }
        self.slots = slots;
    }

    /// Streams with something to say write it; whether there may be more.
    fn write_streams(&mut self, app: &mut App<'_, S>) -> bool {
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        let ready = self.endpoint.ready().filter_map(|stream| self.streams.get(&stream).copied());
        slots.extend(ready);
        let mut wrote = false;
        for &slot in &slots {
            let waits = self.connections.get(slot).and_then(Option::as_ref).is_none_or(|connection| connection.blocked);
            if !waits {
                wrote = true;
                self.turn(app, slot);
            }
        }
        self.slots = slots;
        wrote
    }

    fn turn(&mut self, app: &mut App<'_, S>, slot: usize) {
        let now = self.now();
        let Some(place) = self.connections.get_mut(slot) else { return };
        let Some(connection) = place else { return };
        let mut host = Host { endpoint: &mut self.endpoint, app, body: &mut self.body, now };
        // An id that can be guessed would be worse than none.
        let mut random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system has random bytes");
        let turn = connection.turn(&mut host, &mut random, &mut self.budget);
        connection.wired.trim(&mut self.budget);
        if turn == Turn::Over {
            connection.wired.leave(&mut host);
        }
        let (before, stream) = (connection.stream, connection.wired.stream());
        connection.stream = stream;
        if before != stream {
            // Another connection may have taken up the one that was.
            if before.is_some_and(|before| self.streams.get(&before) == Some(&slot)) {
                before.map(|before| self.streams.remove(&before));
            }
            if let Some(stream) = stream {
                self.streams.insert(stream, slot);
                // It may last for long, and little is read meanwhile.
                connection.wired.release(&mut self.budget);
            }
        }
        let look = if connection.is_full() { now + LOOK } else { NEVER };
        let deadline = connection.wired.next_deadline().unwrap_or(NEVER).min(look);
        if turn == Turn::Yields {
            connection.ring();
        }
        if turn == Turn::Over {
            connection.wired.pay_back(&mut self.budget);
            *place = None;
            self.free.push(slot);
            self.crowded = false;
        }
        if let Some(place) = self.deadlines.get_mut(slot) {
            *place = if turn == Turn::Over { NEVER } else { deadline };
        }
    }

    /// Ends what time has ended.
    fn expire(&mut self, app: &mut App<'_, S>) {
        let now = self.now();
        if self.endpoint.next_deadline().is_some_and(|at| at <= now) {
            self.endpoint.expire(app, now);
        }
        for slot in 0..self.deadlines.len() {
            if self.deadlines.get(slot).is_none_or(|at| *at > now) {
                continue;
            }
            let Some(Some(connection)) = self.connections.get_mut(slot) else { continue };
            if connection.is_full() {
                connection.look();
            }
            match connection.wired.connection().expire(now) {
                Expired::Nothing | Expired::Refused => {}
                _ => connection.abandon(),
            }
            self.turn(app, slot);
        }
    }

    fn next_deadline(&self) -> Option<Millis> {
        let connections = self.deadlines.iter().copied().min().filter(|at| *at != NEVER);
        // What is overdue waits for something else: a socket that takes nothing, a session that is still heard.
        let soon = self.now() + OVERDUE;
        let endpoint = self.endpoint.next_deadline().map(|at| if at <= self.now() { soon } else { at });
        connections.into_iter().chain(endpoint).min()
    }

    /// Whether no connection has anything left to send.
    fn is_drained(&self) -> bool {
        let idle = |connection: &Connection| !connection.wired.has_pending() && connection.wired.stream().is_none();
        self.connections.iter().flatten().all(idle)
    }

    /// Takes what tasks have sent; whether there may be more.
    fn hear(&mut self, app: &mut App<'_, S>, late: &mut Late<S>, cx: &mut Context<'_>) -> bool {
        for (token, answer) in std::mem::take(&mut self.deferred) {
            self.answer(app, token, answer);
        }
        for _ in 0..AT_ONCE {
            let Poll::Ready(news) = late.poll(cx) else { return false };
            self.tell(app, news);
        }
        true
    }

    /// Passes on what a task sent. What is stale goes nowhere; progress that a stream has no room for neither.
    fn tell(&mut self, app: &mut App<'_, S>, news: News<S>) {
        match news {
            News::Progress { token, done, total, message } => {
                let mut progress = Progress::new(done);
                (progress.total, progress.message) = (total, message.as_deref());
                let _ = self.endpoint.progress(token, progress);
            }
            News::Log { token: Some(token), level, message } => {
                let about = app.service.about();
                let _ = self.endpoint.with_stream_of(token, |server, out| {
                    server.log(about, Some(token), level, None, format_args!("{message}"), out)
                });
            }
            News::Log { token: None, level, message } => self.endpoint.announce(app, level, &message),
            News::Answer { token, answer } => self.answer(app, token, answer),
            News::Changed(changed) => self.endpoint.publish(changed.as_change()),
        }
    }

    /// Answers when the stream has been read as far as half of what it may keep: a client that does not read waits for
    /// its own answer, and holds nobody else up.
    fn answer(&mut self, app: &mut App<'_, S>, token: Token, answer: Answer<S>) {
        let crowded = self.endpoint.with_stream_of(token, |_, out| out.room() < out.capacity() / 2);
        if crowded == Some(true) {
            self.deferred.push((token, answer));
            return;
        }
        let endpoint = &mut self.endpoint;
        let answered = match answer {
            Answer::Call(answer) => endpoint.answer(app, token, answer),
            Answer::Read(uri, answer) => endpoint.answer_read(app, token, &uri, answer),
            Answer::Prompt(answer) => endpoint.answer_prompt(app, token, answer),
            Answer::Complete(value, answer) => endpoint.answer_complete(app, token, &value, answer),
            Answer::Other(answer) => endpoint.answer_other(app, token, answer),
            // What is prepared must be there when the handler runs, which is at once.
            Answer::Resume(prepare) if endpoint.is_suspended(token) => {
                prepare(app.state);
                endpoint.resume(app, token)
            }
            Answer::Resume(_) => Err(SendError::WrongKind),
        };
        let failure = match answered {
            Ok(()) | Err(SendError::Stale) => return,
            Err(SendError::WrongKind) => WRONG_KIND,
            Err(_) => Failure::internal("The answer is too large"),
        };
        // Of a request that is gone there is nothing left to fail.
        let _ = endpoint.with_stream_of(token, |server, out| server.fail(token, &failure, out));
    }
}
