//! What the handles of a client and its driver share.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use mcp_sansio::client::{Event, Filter, Handler, Link, Lost, OwnedRequest, Request, SendError, Token};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use super::listen::Heard;
use super::{Answer, Ended, Error, Hello, Transport};

/// How long a request without a time of its own waits for room while nobody else gets any.
const PATIENCE: Millis = 60_000;

/// Everything of one client, behind a lock that is held for as long as a turn of the driver takes.
pub(super) struct Shared {
    state: Mutex<State>,
    /// The thread that holds the lock: which one that is, 0 for none.
    holder: AtomicUsize,
}

impl Shared {
    pub(super) fn new(transport: Box<dyn Transport>) -> Self {
        Shared { state: Mutex::new(State::new(transport)), holder: AtomicUsize::new(0) }
    }

    /// Looks or changes something. Tasks are woken when the lock is free again.
    ///
    /// # Panics
    /// If it is called within itself: a handler that uses the client would wait for itself for ever.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let (done, wakes) = {
            let mut state = self.lock();
            let _held = Held::by_this_thread(&self.holder);
            let done = act(&mut state);
            (done, std::mem::take(&mut state.wakes))
        };
        wakes.into_iter().for_each(Waker::wake);
        done
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => return state,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        // If it says this thread, no other one has written it.
        let held = self.holder.load(Ordering::Relaxed) == this_thread();
        assert!(!held, "a client was used by its own handler, inside the driver: use the link, or another task");
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes who holds a lock.
struct Held<'h>(&'h AtomicUsize);

impl<'h> Held<'h> {
    fn by_this_thread(holder: &'h AtomicUsize) -> Self {
        holder.store(this_thread(), Ordering::Relaxed);
        Held(holder)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A number that no other thread has while this one runs; never 0.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

pub(super) struct State {
    /// `None` when all is over.
    pub(super) transport: Option<Box<dyn Transport>>,
    pub(super) book: Book,
    /// Requests that wait for room, first come, first served.
    line: VecDeque<Waiting>,
    /// When the line began, or one of it was sent.
    moved: Millis,
    last_ticket: u64,
    /// Until when requests wait in a new connection for the server's way back.
    settles: Option<Millis>,
    /// What was given up while there was no room to tell the server.
    given_up: Vec<Token>,
    /// Why requests are refused when all is over.
    over: Option<String>,
    pub(super) closing: bool,
    pub(super) ended: Option<Ended>,
    closers: Vec<Waker>,
    driver: Option<Waker>,
    wakes: Vec<Waker>,
    started: Instant,
}

struct Waiting {
    ticket: u64,
    /// How long it waits at most, if it says so itself.
    own: Option<Millis>,
    /// It was told that it has waited for too long.
    overdue: bool,
    waker: Option<Waker>,
}

impl Waiting {
    /// When it has waited for too long.
    const fn due(&self, moved: Millis) -> Millis {
        match self.own {
            Some(due) => due,
            None => moved.saturating_add(PATIENCE),
        }
    }
}

/// What is waited for, and what has come of it.
#[derive(Default)]
pub(super) struct Book {
    requests: HashMap<Token, Pending>,
    pub(super) listens: HashMap<Token, Heard>,
    /// Requests whose outcome has come in this turn.
    fresh: Vec<Token>,
    pub(super) opening: bool,
    opened: Option<Result<(), Error>>,
    openers: Vec<Waker>,
    pub(super) hello: Option<Arc<Hello>>,
    /// The connection is new.
    fresh_connection: bool,
}

#[derive(Default)]
struct Pending {
    outcome: Option<Result<Answer, Error>>,
    waker: Option<Waker>,
}

/// How far a request is.
pub(super) enum Ticket {
    /// It was not sent.
    Failed(Error),
    /// It waits for room.
    Waiting(u64, OwnedRequest),
    Sent(Token),
    /// Its outcome was given out.
    Over,
}

impl State {
    fn new(transport: Box<dyn Transport>) -> Self {
        State {
            transport: Some(transport),
            book: Book::default(),
            line: VecDeque::new(),
            moved: 0,
            last_ticket: 0,
            settles: None,
            given_up: Vec::new(),
            over: None,
            closing: false,
            ended: None,
            closers: Vec::new(),
            driver: None,
            wakes: Vec::new(),
            started: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// When a time of the driver's clock comes.
    pub(super) fn instant(&self, millis: Millis) -> Option<Instant> {
        self.started.checked_add(std::time::Duration::from_millis(millis))
    }

    pub(super) fn wake_driver(&mut self) {
        self.wakes.extend(self.driver.clone());
    }

    pub(super) fn set_driver(&mut self, cx: &Context<'_>) {
        if !self.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            // The old one is dropped when the lock is free.
            self.wakes.extend(self.driver.replace(cx.waker().clone()));
        }
    }

    /// The engine and its sink, told the time.
    pub(super) fn link(&mut self) -> Result<Link<'_, 'static>, Error> {
        let now = self.now();
        match &mut self.transport {
            Some(transport) => {
                let link = transport.link();
                link.client.set_now(now);
                Ok(link)
            }
            None => Err(closed(self.over.as_deref())),
        }
    }

    /// Sends a request, or has it wait for its turn.
    pub(super) fn begin(&mut self, request: &Request<'_>) -> Ticket {
        if self.line.is_empty() {
            match self.send(request) {
                Ok(Some(token)) => return Ticket::Sent(token),
                Ok(None) => {}
                Err(error) => return Ticket::Failed(error),
            }
        }
        let Ok(request) = request.keep() else { return Ticket::Failed(SendError::FullNever.into()) };
        self.last_ticket += 1;
        let now = self.now();
        if self.line.is_empty() {
            self.moved = now;
        }
        let own = request.time().map(|time| now.saturating_add(time));
        self.line.push_back(Waiting { ticket: self.last_ticket, own, overdue: false, waker: None });
        self.wake_driver();
        Ticket::Waiting(self.last_ticket, request)
    }

    /// `None`: there is no room for now.
    fn send(&mut self, request: &Request<'_>) -> Result<Option<Token>, Error> {
        let full = self.transport.as_mut().is_some_and(|transport| transport.is_full());
        let settling = self.is_settling();
        let mut link = self.link()?;
        if full || settling {
            return Ok(None);
        }
        match link.send(request) {
            Ok(token) => {
                self.book.requests.insert(token, Pending::default());
                self.wake_driver();
                Ok(Some(token))
            }
            Err(SendError::FullNow | SendError::Busy) => Ok(None),
            Err(SendError::NotConnected) if link.client.is_opening() => Ok(None),
            Err(SendError::NotConnected) => Err(self.not_connected()),
            Err(error) => Err(error.into()),
        }
    }

    /// What a server asks, it may send where nobody listens yet.
    fn is_settling(&mut self) -> bool {
        let now = self.now();
        let settling = self.transport.as_ref().is_some_and(|transport| transport.is_settling());
        self.settles = self.settles.filter(|&until| settling && now < until);
        self.settles.is_some()
    }

    fn not_connected(&self) -> Error {
        let gone = self.transport.as_ref().map(|transport| transport.explain(Lost::Closed));
        match gone {
            Some(why) if !why.is_empty() => closed(Some(&why)),
            _ => SendError::NotConnected.into(),
        }
    }

    /// How it stands with a request.
    pub(super) fn poll_ticket(&mut self, ticket: &mut Ticket, cx: &Context<'_>) -> Poll<Result<Answer, Error>> {
        match ticket {
            Ticket::Waiting(number, request) => match self.poll_turn(*number, request, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(token)) => *ticket = Ticket::Sent(token),
                Poll::Ready(Err(error)) => *ticket = Ticket::Failed(error),
            },
            Ticket::Failed(_) | Ticket::Sent(_) | Ticket::Over => {}
        }
        if let Ticket::Sent(token) = ticket {
            let Some(pending) = self.book.requests.get_mut(token) else {
                *ticket = Ticket::Over;
                return Poll::Ready(Err(closed(self.over.as_deref())));
            };
            if pending.outcome.is_none() {
                self.wakes.extend(pending.waker.replace(cx.waker().clone()).filter(|old| !old.will_wake(cx.waker())));
                return Poll::Pending;
            }
            let outcome = self.book.requests.remove(token).and_then(|pending| pending.outcome);
            *ticket = Ticket::Over;
            return Poll::Ready(outcome.unwrap_or(Err(Error::lost_by(Lost::Closed))));
        }
        match std::mem::replace(ticket, Ticket::Over) {
            Ticket::Failed(error) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Err(SendError::Stale.into())),
        }
    }

    fn poll_turn(&mut self, ticket: u64, request: &OwnedRequest, cx: &Context<'_>) -> Poll<Result<Token, Error>> {
        let now = self.now();
        let moved = self.moved;
        let mut line = self.line.iter();
        let due = line.find(|waiting| waiting.ticket == ticket).is_none_or(|waiting| waiting.due(moved) <= now);
        let first = self.line.front().is_some_and(|waiting| waiting.ticket == ticket);
        let sent = if self.transport.is_none() {
            Err(closed(self.over.as_deref()))
        } else if due {
            Err(Error::lost_by(Lost::TimedOut))
        } else if first {
            self.send(&request.request())
        } else {
            Ok(None)
        };
        match sent {
            Ok(None) => {
                let place = self.line.iter_mut().find(|waiting| waiting.ticket == ticket);
                if let Some(place) = place {
                    place.overdue = false;
                    self.wakes.extend(place.waker.replace(cx.waker().clone()).filter(|old| !old.will_wake(cx.waker())));
                }
                Poll::Pending
            }
            Ok(Some(token)) => {
                self.moved = now;
                self.leave_line(ticket);
                Poll::Ready(Ok(token))
            }
            Err(error) => {
                self.leave_line(ticket);
                Poll::Ready(Err(error))
            }
        }
    }

    fn leave_line(&mut self, ticket: u64) {
        if let Some(at) = self.line.iter().position(|waiting| waiting.ticket == ticket) {
            self.wakes.extend(self.line.remove(at).and_then(|waiting| waiting.waker));
            if at == 0 {
                self.admit();
            }
        }
    }

    /// Has the first in the line try, and those look at the time that have waited for too long.
    pub(super) fn admit(&mut self) {
        let (now, moved) = (self.now(), self.moved);
        for waiting in self.line.iter_mut().filter(|waiting| waiting.due(moved) <= now && !waiting.overdue) {
            waiting.overdue = true;
            self.wakes.extend(waiting.waker.take());
        }
        self.wakes.extend(self.line.front_mut().and_then(|waiting| waiting.waker.take()));
    }

    /// When the next one in the line has waited for too long, or the first one need not wait any more.
    pub(super) fn line_due(&self) -> Option<Millis> {
        let settles = self.settles.filter(|_| !self.line.is_empty());
        let patient = self.line.iter().filter(|waiting| !waiting.overdue);
        patient.map(|waiting| waiting.due(self.moved)).chain(settles).min()
    }

    /// Nobody waits for a request any more.
    pub(super) fn give_up(&mut self, ticket: &Ticket) {
        match ticket {
            Ticket::Waiting(number, _) => self.leave_line(*number),
            Ticket::Sent(token) => {
                let pending = self.book.requests.remove(token);
                if pending.is_some_and(|pending| pending.outcome.is_none()) {
                    self.cancel(*token);
                }
            }
            Ticket::Failed(_) | Ticket::Over => {}
        }
    }

    /// Gives a request or a listen up, at once or as soon as there is room to say so.
    pub(super) fn cancel(&mut self, token: Token) {
        let cancelled = self.link().map(|mut link| link.cancel(token, None));
        if matches!(cancelled, Ok(Err(SendError::FullNow))) {
            self.given_up.push(token);
        }
        self.wake_driver();
    }

    pub(super) fn cancel_again(&mut self) {
        for token in std::mem::take(&mut self.given_up) {
            let cancelled = self.link().map(|mut link| link.cancel(token, None));
            if matches!(cancelled, Ok(Err(SendError::FullNow))) {
                self.given_up.push(token);
            }
        }
    }

    pub(super) fn listen(&mut self, filter: &Filter<'_>) -> Result<Token, Error> {
        let link = self.link()?;
        match link.client.listen(filter) {
            Ok(token) => {
                self.book.listens.insert(token, Heard::new(filter));
                self.wake_driver();
                Ok(token)
            }
            Err(SendError::NotConnected) if !link.client.is_opening() => Err(self.not_connected()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins to open the connection, unless that is under way.
    pub(super) fn connect(&mut self, known: Option<Revision>) -> Result<(), Error> {
        if self.book.opening {
            return Ok(());
        }
        let link = self.link()?;
        match known {
            Some(revision) => link.client.connect_as(revision),
            None => link.client.connect(),
        }
        let at_once = link.client.is_connected();
        self.book.opening = !at_once;
        self.book.opened = at_once.then_some(Ok(()));
        if let Some(revision) = known.filter(|_| at_once) {
            self.book.hello = Some(Arc::new(Hello::unasked(revision)));
        }
        self.wake_driver();
        Ok(())
    }

    pub(super) fn poll_opened(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<Hello>, Error>> {
        if self.transport.is_none() {
            return Poll::Ready(Err(closed(self.over.as_deref())));
        }
        if self.book.opening {
            wait(&mut self.book.openers, cx);
            return Poll::Pending;
        }
        match (self.book.opened.take(), &self.book.hello) {
            (Some(Err(error)), _) => Poll::Ready(Err(error)),
            (_, Some(hello)) => Poll::Ready(Ok(hello.clone())),
            (_, None) => Poll::Ready(Err(self.not_connected())),
        }
    }

    /// Adds what the transport knows to what was lost in this turn, and wakes who waits.
    pub(super) fn tell(&mut self) {
        if std::mem::take(&mut self.book.fresh_connection) {
            let time = self.transport.as_ref().map(|transport| transport.settle_time()).unwrap_or_default();
            self.settles = Some(self.now().saturating_add(time.as_millis() as Millis)).filter(|_| !time.is_zero());
        }
        let explain = |why| self.transport.as_ref().map_or_else(String::new, |transport| transport.explain(why));
        for token in self.book.fresh.drain(..) {
            let Some(pending) = self.book.requests.get_mut(&token) else { continue };
            if let Some(Err(error)) = &mut pending.outcome {
                error.explain(explain);
            }
            self.wakes.extend(pending.waker.take());
        }
        if let Some(Err(error)) = &mut self.book.opened {
            error.explain(explain);
        }
        if !self.book.opening {
            self.wakes.append(&mut self.book.openers);
        }
        for heard in self.book.listens.values_mut() {
            heard.explain(explain);
            heard.wake(&mut self.wakes);
        }
    }

    pub(super) fn poll_over(&mut self, cx: &Context<'_>) -> Poll<Option<Ended>> {
        if self.transport.is_none() {
            return Poll::Ready(self.ended);
        }
        wait(&mut self.closers, cx);
        Poll::Pending
    }

    /// All is over: nobody is left waiting.
    pub(super) fn finish(&mut self) -> Option<Box<dyn Transport>> {
        let transport = self.transport.take()?;
        let why = transport.explain(Lost::Closed);
        for pending in self.book.requests.values_mut() {
            pending.outcome.get_or_insert_with(|| Err(closed(Some(&why))));
            self.wakes.extend(pending.waker.take());
        }
        for heard in self.book.listens.values_mut() {
            heard.end(Some(closed(Some(&why))));
            heard.wake(&mut self.wakes);
        }
        self.over = Some(why);
        self.book.opening = false;
        self.wakes.append(&mut self.book.openers);
        self.wakes.append(&mut self.closers);
        self.wakes.extend(self.line.iter_mut().filter_map(|waiting| waiting.waker.take()));
        self.wakes.extend(self.driver.take());
        Some(transport)
    }
}

/// Joins those who wait, once.
fn wait(waiting: &mut Vec<Waker>, cx: &Context<'_>) {
    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
        waiting.push(cx.waker().clone());
    }
}

/// There is no connection any more.
fn closed(why: Option<&str>) -> Error {
    Error::Lost { why: Lost::Closed, detail: why.unwrap_or_default().to_owned() }
}

/// Keeps what is waited for, hands on the rest.
pub(super) struct Tap<'t> {
    pub(super) book: &'t mut Book,
    pub(super) handler: &'t mut dyn Handler,
    pub(super) happened: bool,
}

impl Handler for Tap<'_> {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        self.happened = true;
        match &event {
            Event::Done { token, method, retried, outcome } => {
                let kept = || match outcome {
                    Ok(raw) => Ok(Answer::new(*method, *raw).retried(*retried)),
                    Err(failure) => Err(Error::failed(failure)),
                };
                if let Some(pending) = self.book.requests.get_mut(token) {
                    pending.outcome = Some(kept());
                    return self.book.fresh.push(*token);
                }
                if let Some(heard) = self.book.listens.get_mut(token) {
                    return heard.end(kept().err());
                }
            }
            Event::Connected(connected) => {
                self.book.hello = Some(Arc::new(Hello::new(connected)));
                self.book.opened(Ok(()));
                self.book.fresh_connection = true;
            }
            Event::Unconnected(unconnected) if self.book.opening => {
                return self.book.opened(Err(Error::unconnected(unconnected)));
            }
            Event::Listening(listening) => {
                if let Some(heard) = self.book.listens.get_mut(&listening.token) {
                    return heard.open(*listening);
                }
            }
            Event::Changed { listen: Some(token), what } => {
                if let Some(heard) = self.book.listens.get_mut(token) {
                    return heard.changed(what);
                }
            }
            Event::Changed { listen: None, what } => {
                let wanted = self.book.listens.values_mut().filter(|heard| heard.wants(what));
                wanted.for_each(|heard| heard.changed(what));
            }
            _ => {}
        }
        self.handler.event(event, link);
    }
}

impl Book {
    fn opened(&mut self, opened: Result<(), Error>) {
        if self.opening {
            self.opening = false;
            self.opened = Some(opened);
        }
    }
}
