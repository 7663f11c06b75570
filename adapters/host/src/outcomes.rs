//! The outcomes that callers wait for: what every driver of a client decides about them, without waiting.

mod events;

use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};

use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientHandler, PendingId, TransportError};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::events::client::StreamNotification;

pub use events::{FollowerInput, take_follower_input};

use crate::{ClientError, FollowedTasks, OwnedResult, ServerHello, TransportState};

/// The outcome of a request.
type Outcome = Result<OwnedResult, ClientError>;

/// The outcomes that callers wait for: of requests, of the opening of the connection, and the notifications about tasks that
/// are followed. A driver that parks its thread gives no wakers, and looks again after each turn.
#[derive(Default)]
pub struct Outcomes {
    /// The requests, and in the same places what is known of each. A search looks at few bytes: few requests are in flight.
    tokens: Vec<PendingId>,
    requests: Vec<Pending>,
    /// The requests that have got their outcome in this turn.
    fresh: Vec<PendingId>,
    opening: bool,
    refused: Option<ClientError>,
    openers: Vec<Waker>,
    /// The words of the server about itself; `None` before the connection is open.
    pub hello: Option<Arc<ServerHello>>,
    is_new: bool,
    /// The time until which requests wait for the stream of the server's own requests, in a new connection.
    pub settles: Option<Millis>,
    /// The tasks that are followed.
    pub followed: FollowedTasks,
}

#[derive(Default)]
struct Pending {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    /// The notifications about a stream of events, for whom follows it.
    notifications: Option<Box<events::WaitingNotifications>>,
}

impl Outcomes {
    /// Keeps the outcome of a request that was sent.
    pub fn expect(&mut self, token: PendingId) {
        self.tokens.push(token);
        self.requests.push(Pending::default());
    }

    /// Keeps also the notifications about a request that was sent for an event follower.
    pub fn hear(&mut self, token: PendingId) {
        if let Some(pending) = self.get(token) {
            pending.notifications = Some(Box::default());
        }
    }

    fn place(&self, token: PendingId) -> Option<usize> {
        self.tokens.iter().position(|known| *known == token)
    }

    fn get(&mut self, token: PendingId) -> Option<&mut Pending> {
        let place = self.place(token)?;
        self.requests.get_mut(place)
    }

    fn remove(&mut self, place: usize) -> Pending {
        self.tokens.swap_remove(place);
        self.requests.swap_remove(place)
    }

    /// Keeps the outcome of a request no more. Returns whether it has none yet.
    pub fn forget(&mut self, token: PendingId) -> bool {
        self.place(token).is_some_and(|place| self.remove(place).outcome.is_none())
    }

    /// Returns the number of requests whose outcome was not taken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// Takes the waker of the task that waits for the outcome of a request, which looks for it now.
    pub fn take_waker(&mut self, token: PendingId) -> Option<Waker> {
        self.get(token)?.waker.take()
    }

    /// Takes the outcome of a request: `None` if there is no such request. Pending while it has no outcome; then `waker` is woken
    /// when it has one.
    pub fn poll(&mut self, token: PendingId, waker: Option<&Waker>) -> Poll<Option<Outcome>> {
        let Some(place) = self.place(token) else { return Poll::Ready(None) };
        match self.requests.get_mut(place) {
            Some(Pending { outcome: None, waker: kept, .. }) => {
                match (kept, waker) {
                    (Some(old), Some(new)) => old.clone_from(new),
                    (old, new) => *old = new.cloned(),
                }
                Poll::Pending
            }
            _ => Poll::Ready(self.remove(place).outcome),
        }
    }

    /// Takes what came for a request of [`hear`](Outcomes::hear): first its notifications, then its outcome. One that is not known counts
    /// as lost.
    pub fn poll_input(&mut self, token: PendingId, waker: Option<&Waker>) -> Poll<FollowerInput> {
        let lost = || FollowerInput::Outcome(Err(ClientError::lost_by(TransportError::Closed)));
        let Some(notifications) = self.get(token).and_then(|pending| pending.notifications.as_mut()) else {
            return Poll::Ready(lost());
        };
        match notifications.next() {
            Some((kind, params)) => Poll::Ready(FollowerInput::Notification(kind, params)),
            None => self.poll(token, waker).map(|outcome| outcome.map_or_else(lost, FollowerInput::Outcome)),
        }
    }

    /// Begins to open a connection, if not as a `known` revision with which nothing is sent.
    pub fn connect(&mut self, client: &mut Client<'_>, known: Option<Revision>) {
        match known {
            Some(revision) => client.connect_as(revision),
            None => client.connect(),
        }
        self.begin();
        if let Some(revision) = known.filter(|_| client.is_connected()) {
            self.opening = false;
            self.hello = Some(Arc::new(ServerHello::unasked(revision)));
        }
    }

    /// Notes that the connection is being opened.
    pub fn begin(&mut self) {
        (self.opening, self.refused) = (true, None);
    }

    /// Returns whether the connection is being opened.
    #[must_use]
    pub const fn is_opening(&self) -> bool {
        self.opening
    }

    /// Notes that the connection could not be opened.
    pub fn refuse(&mut self, error: ClientError) {
        if std::mem::take(&mut self.opening) {
            self.refused = Some(error);
        }
    }

    /// Returns the outcome of the opening: `None` if the connection was never open. Wakes `waker` when it has one.
    ///
    /// # Errors
    /// That of the opening, to the first caller.
    pub fn poll_opened(&mut self, waker: Option<&Waker>) -> Poll<Result<Option<Arc<ServerHello>>, ClientError>> {
        if self.opening {
            let waker = waker.filter(|new| !self.openers.iter().any(|waker| waker.will_wake(new)));
            self.openers.extend(waker.cloned());
            return Poll::Pending;
        }
        Poll::Ready(self.refused.take().map_or_else(|| Ok(self.hello.clone()), Err))
    }

    /// Returns whether requests still wait until the server can send requests to the client (over HTTP, its stream is open): the
    /// first request may cause one.
    pub fn is_settling<T>(&mut self, state: &dyn TransportState<'_, T>, now: Millis) -> bool {
        self.settles = self.settles.filter(|&until| now < until && state.is_settling());
        self.settles.is_some()
    }

    /// Adds the transport's facts to the errors of this turn, and gives the wakers of those who can go on to `wakes`.
    pub fn tell<T>(&mut self, state: &dyn TransportState<'_, T>, now: Millis, wakes: &mut impl Extend<Waker>) {
        if std::mem::take(&mut self.is_new) {
            let time = state.settle_time();
            self.settles = Some(now.saturating_add(time.as_millis() as Millis)).filter(|_| !time.is_zero());
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        for token in fresh.drain(..) {
            let Some(pending) = self.get(token) else { continue };
            if let Some(Err(error)) = &mut pending.outcome {
                error.explain(|why| state.explain(why));
            }
            wakes.extend(pending.waker.take());
        }
        self.fresh = fresh;
        if let Some(error) = &mut self.refused {
            error.explain(|why| state.explain(why));
        }
        if !self.opening {
            wakes.extend(self.openers.drain(..));
        }
        self.followed.wake(wakes);
    }

    /// Ends all requests, because the connection is closed for the reason `why`, and wakes all who wait.
    pub fn end(&mut self, why: &str, wakes: &mut impl Extend<Waker>) {
        for pending in &mut self.requests {
            pending.outcome.get_or_insert_with(|| Err(ClientError::closed(why)));
            wakes.extend(pending.waker.take());
        }
        self.opening = false;
        wakes.extend(self.openers.drain(..));
    }
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes").field("requests", &self.requests.len()).finish_non_exhaustive()
    }
}

/// The handler of one turn: keeps the outcomes that callers wait for, and passes on all other events.
#[allow(clippy::exhaustive_structs, reason = "a driver makes it for each turn")]
pub struct OutcomeHandler<'o> {
    /// The place for the outcomes.
    pub outcomes: &'o mut Outcomes,
    /// Gets all other events.
    pub handler: &'o mut dyn ClientHandler,
    /// There was an event. `false` at the start.
    pub happened: bool,
}

impl ClientHandler for OutcomeHandler<'_> {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        self.happened = true;
        match &event {
            ClientEvent::Done { token, method, retried, outcome } => {
                if let Some(pending) = self.outcomes.get(*token) {
                    pending.outcome = Some(match outcome {
                        Ok(raw) => {
                            let mut result = OwnedResult::new(*method, *raw);
                            result.retried = *retried;
                            Ok(result)
                        }
                        Err(failure) => Err(ClientError::failed(failure)),
                    });
                    return self.outcomes.fresh.push(*token);
                }
            }
            ClientEvent::Connected(connected) => {
                self.outcomes.hello = Some(Arc::new(ServerHello::new(connected)));
                self.outcomes.opening = false;
                self.outcomes.is_new = true;
            }
            ClientEvent::Unconnected(why) if self.outcomes.opening => {
                return self.outcomes.refuse(ClientError::failed(why));
            }
            ClientEvent::Notification { method, params } => {
                if let Some((kind, token)) = StreamNotification::of(method, *params)
                    && let Some(pending) = self.outcomes.get(token)
                    && let Some(notifications) = &mut pending.notifications
                {
                    // Not what comes behind one that was left out: the cursor would pass over it.
                    if pending.outcome.is_some() {
                        return;
                    }
                    if !notifications.keep(kind, *params) {
                        // The caller does not take them. It opens the stream again, from the cursor of the last that was kept.
                        let _ = handle.cancel(token, None);
                        pending.outcome = Some(Err(ClientError::lost_by(TransportError::Closed)));
                    }
                    return self.outcomes.fresh.push(token);
                }
                self.outcomes.followed.notified(method, *params);
            }
            _ => {}
        }
        self.handler.event(event, handle);
    }
}

mcp_sansio::debug_fields!(impl for OutcomeHandler<'_> { happened });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientOptions, IN_FLIGHT};
    use mcp_sansio::client::{ClientInfo, LineClient, Request, RequestError, TransportError};
    use mcp_sansio::json::Raw;
    use mcp_sansio::protocol::Method;
    use mcp_sansio::sink::LineSink;

    /// A handler that names the events which it gets.
    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl ClientHandler for Names {
        fn event(&mut self, event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {
            self.0.push(match event {
                ClientEvent::Done { .. } => "done",
                ClientEvent::Unconnected(_) => "unconnected",
                ClientEvent::Notification { .. } => "notification",
                _ => "another",
            });
        }
    }

    /// The client reconnects by itself, and requests are sent through its handle.
    #[test]
    fn the_handler_gets_what_no_caller_waits_for() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let engine = ClientOptions::DEFAULT.engine(&PROFILE, IN_FLIGHT);
        let input = mcp_sansio::frame::LineBuffer::new(mcp_sansio::memory::Store::growing(1 << 10));
        let mut client = LineClient::new(input, engine, LineSink::new(Vec::new()));
        client.handle().client.connect_as(Revision::V2026_07_28);
        let token = client.handle().send(&Request::call("any")).unwrap();
        let text = Raw::constant("\"notifications/x\"");
        let why = || RequestError::Lost(TransportError::Unreachable);
        let events = || {
            [
                ClientEvent::Done { token, method: Method::ToolsCall, retried: false, outcome: Err(why()) },
                ClientEvent::Unconnected(why()),
                ClientEvent::Notification { method: text.text().unwrap(), params: None },
            ]
        };
        let mut given = |outcomes: &mut Outcomes| {
            let mut names = Names::default();
            let mut handler = OutcomeHandler { outcomes, handler: &mut names, happened: false };
            events().into_iter().for_each(|event| handler.event(event, &mut client.handle()));
            assert!(handler.happened);
            names.0
        };
        let mut outcomes = Outcomes::default();
        assert_eq!(given(&mut outcomes), ["done", "unconnected", "notification"]);
        assert!(outcomes.fresh.is_empty() && outcomes.refused.is_none());
        assert_eq!(outcomes.poll(token, None).map(|outcome| outcome.is_none()), Poll::Ready(true));
        outcomes.begin();
        outcomes.expect(token);
        assert!(outcomes.poll(token, None).is_pending() && outcomes.poll_opened(None).is_pending());
        assert_eq!(given(&mut outcomes), ["notification"]);
        assert!(outcomes.fresh == [token] && !outcomes.is_opening());
        assert!(matches!(outcomes.poll(token, None), Poll::Ready(Some(Err(_)))));
        assert!(matches!(outcomes.poll_opened(None), Poll::Ready(Err(_))));
        assert!(matches!(outcomes.poll_opened(None), Poll::Ready(Ok(None))), "the first caller has it");
    }
}
