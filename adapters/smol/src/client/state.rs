//! The state that the handles of a client share with its driver: requests that wait for their turn, and their
//! outcomes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use mcp_sansio::client::{
    ClientHandle, ClientHandler, OwnedRequest, PendingId, Request, SendError, SubscriptionFilter, TransportError,
};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio_host::{FollowerInput, OutcomeHandler, Outcomes};

use super::listen::{Heard, ListenHandler, Listens};
use super::wakes::Wakes;
use super::{ChildExit, ClientError, OwnedResult, ServerHello, Transport};

/// The longest time that a request without a time of its own waits while no waiting request is sent.
const PATIENCE: Millis = 60_000;

/// The limit of the transport's turns before other tasks run.
const TURNS: usize = 32;

/// A function that gets the events that no task waits for.
pub(super) type Handler = Box<dyn ClientHandler + Send>;

pub(super) struct State {
    /// `None` after the connection was closed.
    pub(super) transport: Option<Box<dyn Transport>>,
    /// Gets the events that no task waits for; `None` after the connection was closed.
    handler: Option<Handler>,
    pub(super) outcomes: Outcomes,
    pub(super) listens: Listens,
    /// The time for which the driver has set its timer.
    pub(super) alarm: Option<Millis>,
    /// The requests that wait for their turn, in order.
    line: VecDeque<Waiting>,
    /// The time when the line began, or when a request of it was last sent.
    moved: Millis,
    last_ticket: u64,
    /// The cancelled requests whose cancellation did not fit into the sink yet.
    given_up: Vec<PendingId>,
    /// The reason why requests are refused after the connection was closed.
    over: String,
    pub(super) closing: bool,
    /// The transport makes a new connection.
    restarting: bool,
    pub(super) ended: Option<ChildExit>,
    closers: Vec<Waker>,
    driver: Option<Waker>,
    pub(super) wakes: Wakes,
    started: Instant,
}

struct Waiting {
    ticket: u64,
    /// The time until which it waits, if the request sets a time.
    own: Option<Millis>,
    /// Its task was woken because its time is over.
    overdue: bool,
    waker: Option<Waker>,
}

impl Waiting {
    /// Returns the time until which it waits.
    const fn due(&self, moved: Millis) -> Millis {
        match self.own {
            Some(due) => due,
            None => moved.saturating_add(PATIENCE),
        }
    }
}

/// A function that gets the token of a request before it is written.
pub(super) type Sending = Box<dyn FnOnce(&mut Outcomes, PendingId) + Send>;

/// The state of a request.
pub(super) enum Ticket {
    /// The request was not sent.
    Failed(ClientError),
    /// The request waits for its turn.
    Waiting(u64, OwnedRequest, Option<Sending>),
    Sent(PendingId),
    /// The outcome was returned.
    Over,
}

impl State {
    pub(super) fn new(transport: Box<dyn Transport>, handler: Handler) -> Self {
        State {
            transport: Some(transport),
            handler: Some(handler),
            outcomes: Outcomes::default(),
            listens: Listens::default(),
            alarm: None,
            line: VecDeque::new(),
            moved: 0,
            last_ticket: 0,
            given_up: Vec::new(),
            over: String::new(),
            closing: false,
            restarting: false,
            ended: None,
            closers: Vec::new(),
            driver: None,
            wakes: Wakes::default(),
            started: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Converts a time of the driver's clock.
    pub(super) fn instant(&self, millis: Millis) -> Option<Instant> {
        self.started.checked_add(std::time::Duration::from_millis(millis))
    }

    pub(super) fn wake_driver(&mut self) {
        self.wakes.extend(self.driver.clone());
    }

    pub(super) fn set_driver(&mut self, cx: &Context<'_>) {
        if !self.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            // `wakes` keeps the old waker until the lock is released: dropping a waker may run code of the executor.
            self.wakes.extend(self.driver.replace(cx.waker().clone()));
        }
    }

    /// Reads and writes as much as is possible without waiting, and passes the events on. Returns whether there may be more.
    pub(super) fn run(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.poll_restarted(cx) {
            return false;
        }
        for _ in 0..TURNS {
            self.cancel_again();
            let now = self.now();
            let State { transport: Some(transport), handler: Some(handler), outcomes, listens, .. } = self else {
                return false;
            };
            let mut handler = ListenHandler { listens, handler: &mut **handler };
            let mut handler = OutcomeHandler { outcomes, handler: &mut handler, happened: false };
            let more = transport.poll_run(now, cx, &mut handler);
            if handler.happened {
                self.tell();
            }
            self.admit();
            if !more {
                return false;
            }
        }
        true
    }

    /// Continues to make a new connection. Returns `false` while it is not there.
    fn poll_restarted(&mut self, cx: &mut Context<'_>) -> bool {
        let State { transport: Some(transport), restarting: true, closing: false, .. } = self else { return true };
        match transport.poll_restart(cx) {
            Poll::Ready(restarted) => {
                self.restarting = false;
                if let Err(error) = restarted {
                    self.outcomes.refuse(error);
                    self.tell();
                }
                true
            }
            Poll::Pending => {
                // Requests that wait have times of their own.
                self.admit();
                false
            }
        }
    }

    /// Does the driver's work in the task of a lone request: to wake the driver, and to be woken by it, costs more than all
    /// else of a call. What is waited for still wakes the driver. With more requests under way the driver writes and reads
    /// for all of them at once.
    fn run_for_driver(&mut self) {
        // There is no waker before the driver runs, and only the driver closes the connection.
        let driver = self.driver.clone().filter(|_| self.is_lone() && !self.closing);
        let more = driver.is_none_or(|driver| self.run(&mut Context::from_waker(&driver)));
        if more || self.sooner_than_alarm().is_some() {
            self.wake_driver();
        }
    }

    /// Returns whether there is one request, and none that waits for its turn.
    fn is_lone(&self) -> bool {
        self.outcomes.count() == 1 && self.line.is_empty()
    }

    /// Returns the time of the next deadline if the driver's timer is not set for it, nor for an earlier time.
    pub(super) fn sooner_than_alarm(&self) -> Option<Millis> {
        let transport = self.transport.as_ref()?;
        let next = transport.state().next_deadline().filter(|_| !self.restarting);
        let due = next.into_iter().chain(self.line_due()).min()?;
        Some(due).filter(|due| self.alarm.is_none_or(|alarm| *due < alarm))
    }

    /// Returns the engine, with its time set, and its sink.
    pub(super) fn handle(&mut self) -> Result<ClientHandle<'_, 'static>, ClientError> {
        let now = self.now();
        match &mut self.transport {
            Some(transport) => {
                let handle = transport.state_mut().handle();
                handle.client.now = now;
                Ok(handle)
            }
            None => Err(ClientError::closed(&self.over)),
        }
    }

    /// Sends a request, or lets it wait for its turn.
    pub(super) fn begin(&mut self, request: &Request<'_>, mut sending: Option<Sending>) -> Ticket {
        if self.line.is_empty() {
            match self.send(request, &mut sending) {
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
        Ticket::Waiting(self.last_ticket, request, sending)
    }

    /// Sends a request. Returns `None` if it has to wait.
    fn send(&mut self, request: &Request<'_>, sending: &mut Option<Sending>) -> Result<Option<PendingId>, ClientError> {
        let full = self.transport.as_mut().is_some_and(|transport| transport.state_mut().is_full());
        let (settling, restarting) = (self.is_settling(), self.restarting);
        let mut handle = self.handle()?;
        if full || settling || restarting {
            return Ok(None);
        }
        match handle.send(request) {
            Ok(token) => {
                self.outcomes.expect(token);
                // Before it is written: its first event may come in the same turn, or to another thread.
                if let Some(sending) = sending.take() {
                    sending(&mut self.outcomes, token);
                }
                self.run_for_driver();
                Ok(Some(token))
            }
            Err(SendError::FullNow | SendError::Busy) => Ok(None),
            Err(SendError::NotConnected) if handle.client.is_opening() => Ok(None),
            Err(SendError::NotConnected) => Err(self.not_connected()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether requests still wait until the server can send requests to the client (over HTTP, its stream is
    /// open): the first request may cause one.
    fn is_settling(&mut self) -> bool {
        // Without looking at the clock.
        self.outcomes.settles.is_some() && {
            let now = self.now();
            self.transport.as_ref().is_some_and(|transport| self.outcomes.is_settling(transport.state(), now))
        }
    }

    fn not_connected(&self) -> ClientError {
        let gone = self.transport.as_ref().map(|transport| transport.state().explain(TransportError::Closed));
        match gone {
            Some(why) if !why.is_empty() => ClientError::closed(&why),
            _ => SendError::NotConnected.into(),
        }
    }

    /// Sends a request that waits, if it is its turn.
    fn poll_sent(&mut self, ticket: &mut Ticket, cx: &Context<'_>) -> Poll<()> {
        if let Ticket::Waiting(number, request, sending) = ticket {
            *ticket = ready!(self.poll_turn(*number, request, sending, cx)).map_or_else(Ticket::Failed, Ticket::Sent);
        }
        Poll::Ready(())
    }

    /// Returns what came for the request of an event follower, or sends the request if it is its turn.
    pub(super) fn poll_input(&mut self, ticket: &mut Ticket, cx: &Context<'_>) -> Poll<FollowerInput> {
        ready!(self.poll_sent(ticket, cx));
        match ticket {
            Ticket::Sent(token) => self.outcomes.poll_input(*token, Some(cx.waker())),
            _ => self.poll_ticket(ticket, cx).map(FollowerInput::Outcome),
        }
    }

    /// Returns the outcome of a request, or sends the request if it is its turn.
    pub(super) fn poll_ticket(
        &mut self,
        ticket: &mut Ticket,
        cx: &Context<'_>,
    ) -> Poll<Result<OwnedResult, ClientError>> {
        ready!(self.poll_sent(ticket, cx));
        if let Ticket::Sent(token) = ticket {
            // Woken, it looks for its answer by itself.
            if self.outcomes.take_waker(*token).is_some() && self.is_lone() {
                self.run_for_driver();
            }
            let Poll::Ready(outcome) = self.outcomes.poll(*token, Some(cx.waker())) else { return Poll::Pending };
            *ticket = Ticket::Over;
            return Poll::Ready(outcome.unwrap_or(Err(ClientError::closed(""))));
        }
        match std::mem::replace(ticket, Ticket::Over) {
            Ticket::Failed(error) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Err(SendError::Stale.into())),
        }
    }

    fn poll_turn(
        &mut self,
        ticket: u64,
        request: &OwnedRequest,
        sending: &mut Option<Sending>,
        cx: &Context<'_>,
    ) -> Poll<Result<PendingId, ClientError>> {
        let now = self.now();
        let moved = self.moved;
        let mut line = self.line.iter();
        let due = line.find(|waiting| waiting.ticket == ticket).is_none_or(|waiting| waiting.due(moved) <= now);
        let first = self.line.front().is_some_and(|waiting| waiting.ticket == ticket);
        let sent = if self.transport.is_none() {
            Err(ClientError::closed(&self.over))
        } else if due {
            Err(ClientError::lost_by(TransportError::TimedOut))
        } else if first {
            self.send(&request.request(), sending)
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

    /// Wakes the first task in the line, and the tasks whose time is over.
    pub(super) fn admit(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let (now, moved) = (self.now(), self.moved);
        for waiting in self.line.iter_mut().filter(|waiting| waiting.due(moved) <= now && !waiting.overdue) {
            waiting.overdue = true;
            self.wakes.extend(waiting.waker.take());
        }
        self.wakes.extend(self.line.front_mut().and_then(|waiting| waiting.waker.take()));
    }

    /// Returns the time when a task in the line has to be woken.
    pub(super) fn line_due(&self) -> Option<Millis> {
        let settles = self.outcomes.settles.filter(|_| !self.line.is_empty());
        let patient = self.line.iter().filter(|waiting| !waiting.overdue);
        patient.map(|waiting| waiting.due(self.moved)).chain(settles).min()
    }

    /// Drops the outcome of a request, and cancels the request if it was sent.
    pub(super) fn give_up(&mut self, ticket: &Ticket) {
        match ticket {
            Ticket::Waiting(number, ..) => self.leave_line(*number),
            Ticket::Sent(token) => {
                if self.outcomes.forget(*token) {
                    self.cancel(*token);
                }
            }
            Ticket::Failed(_) | Ticket::Over => {}
        }
    }

    /// Cancels a request or subscription, at once or when the cancellation fits into the sink.
    pub(super) fn cancel(&mut self, token: PendingId) {
        let cancelled = self.handle().map(|mut handle| handle.cancel(token, None));
        if matches!(cancelled, Ok(Err(SendError::FullNow))) {
            self.given_up.push(token);
        }
        self.wake_driver();
    }

    pub(super) fn cancel_again(&mut self) {
        for token in std::mem::take(&mut self.given_up) {
            let cancelled = self.handle().map(|mut handle| handle.cancel(token, None));
            if matches!(cancelled, Ok(Err(SendError::FullNow))) {
                self.given_up.push(token);
            }
        }
    }

    pub(super) fn listen(&mut self, filter: &SubscriptionFilter<'_>) -> Result<PendingId, ClientError> {
        let handle = self.handle()?;
        match handle.client.listen(filter) {
            Ok(token) => {
                self.listens.insert(token, Heard::new(filter));
                self.wake_driver();
                Ok(token)
            }
            Err(SendError::NotConnected) if !handle.client.is_opening() => Err(self.not_connected()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins to open the connection, unless it is being opened.
    pub(super) fn connect(&mut self, known: Option<Revision>) -> Result<(), ClientError> {
        self.handle()?;
        if let Some(transport) = self.transport.as_mut().filter(|_| !self.outcomes.is_opening()) {
            self.outcomes.connect(transport.state_mut().handle().client, known);
            self.wake_driver();
        }
        Ok(())
    }

    /// Begins to make a new connection, unless one is being made.
    pub(super) fn restart(&mut self) -> Result<(), ClientError> {
        self.handle()?;
        if !self.restarting {
            self.restarting = true;
            self.outcomes.begin();
            self.wake_driver();
        }
        Ok(())
    }

    pub(super) fn poll_opened(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<ServerHello>, ClientError>> {
        if self.transport.is_none() {
            return Poll::Ready(Err(ClientError::closed(&self.over)));
        }
        let opened = ready!(self.outcomes.poll_opened(Some(cx.waker())))?;
        Poll::Ready(opened.ok_or_else(|| self.not_connected()))
    }

    /// Adds the transport's facts to the errors of this turn, and wakes the waiting tasks.
    pub(super) fn tell(&mut self) {
        let now = self.now();
        let Some(transport) = &self.transport else { return };
        self.outcomes.tell(transport.state(), now, &mut self.wakes);
        for heard in self.listens.values_mut() {
            heard.explain(|why| transport.state().explain(why));
            heard.wake(&mut self.wakes);
        }
    }

    pub(super) fn poll_over(&mut self, cx: &Context<'_>) -> Poll<Option<ChildExit>> {
        if self.transport.is_none() {
            return Poll::Ready(self.ended);
        }
        if !self.closers.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.closers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Ends all requests and subscriptions, and wakes all tasks.
    pub(super) fn finish(&mut self) -> Option<(Box<dyn Transport>, Option<Handler>)> {
        let transport = self.transport.take()?;
        let handler = self.handler.take();
        let why = transport.state().explain(TransportError::Closed);
        self.outcomes.end(&why, &mut self.wakes);
        for heard in self.listens.values_mut() {
            heard.end(Some(ClientError::closed(&why)));
            heard.wake(&mut self.wakes);
        }
        self.over = why;
        self.wakes.extend(self.closers.drain(..));
        self.wakes.extend(self.line.iter_mut().filter_map(|waiting| waiting.waker.take()));
        self.wakes.extend(self.driver.take());
        Some((transport, handler))
    }
}

#[cfg(test)]
mod tests;
