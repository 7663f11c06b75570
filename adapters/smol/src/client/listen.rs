//! Subscriptions: streams of
//! [changes](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_lite::Stream;
use mcp_sansio::client::{
    ChangeNotification, ClientEvent, ClientHandle, ClientHandler, PendingId, SubscriptionFilter, Subscriptions,
    TransportError,
};

use super::wakes::Wakes;
use super::{Client, ClientError};

/// An item of a [`SubscriptionStream`] stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// The subscription is open, for the part that the server agreed to. Comes again after each reconnection.
    Listening(Subscriptions),
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// The contents of the resource with this URI have changed.
    Resource(String),
    /// All that the subscription is for may have changed: more than 4,096 changes or 1 MiB of URIs waited to be taken, and this
    /// event is in their place.
    All,
}

impl SubscriptionEvent {
    const fn size(&self) -> usize {
        match self {
            SubscriptionEvent::Resource(uri) => uri.len(),
            _ => 0,
        }
    }
}

/// The limits of changes that wait to be taken: number, and bytes of their URIs. Beyond them the changes become one
/// [`SubscriptionEvent::All`].
const CHANGES: usize = 4096;
const BYTES: usize = 1 << 20;

/// The open subscriptions.
pub(super) type Listens = HashMap<PendingId, Heard>;

/// A handler that keeps the changes that subscriptions are for, and passes on all other events.
pub(super) struct ListenHandler<'l> {
    pub(super) listens: &'l mut Listens,
    pub(super) handler: &'l mut dyn ClientHandler,
}

impl ClientHandler for ListenHandler<'_> {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        match &event {
            ClientEvent::Done { token, outcome, .. } => {
                if let Some(heard) = self.listens.get_mut(token) {
                    return heard.end(outcome.as_ref().err().map(ClientError::failed));
                }
            }
            ClientEvent::Listening(listening) => {
                if let Some(heard) = self.listens.get_mut(&listening.token) {
                    return heard.open(*listening);
                }
            }
            ClientEvent::Changed { listen: Some(token), what } => {
                if let Some(heard) = self.listens.get_mut(token) {
                    return heard.changed(what);
                }
            }
            ClientEvent::Changed { listen: None, what } => {
                let wanted = self.listens.values_mut().filter(|heard| heard.wants(what));
                wanted.for_each(|heard| heard.changed(what));
            }
            _ => {}
        }
        self.handler.event(event, handle);
    }
}

/// The changes of one subscription that wait to be taken. Equal changes are kept once.
pub(super) struct Heard {
    uris: Vec<String>,
    /// The part of the filter that the server agreed to.
    agreed: Option<Subscriptions>,
    changes: VecDeque<SubscriptionEvent>,
    /// The bytes of the URIs in `changes`.
    bytes: usize,
    ended: bool,
    error: Option<ClientError>,
    waker: Option<Waker>,
}

impl Heard {
    pub(super) fn new(filter: &SubscriptionFilter<'_>) -> Self {
        Heard {
            uris: filter.single().iter().map(|&uri| uri.to_owned()).collect(),
            agreed: None,
            changes: VecDeque::new(),
            bytes: 0,
            ended: false,
            error: None,
            waker: None,
        }
    }

    /// Returns whether this change, which names no subscription (up to 2025-11-25), fits the filter.
    pub(super) fn wants(&self, what: &ChangeNotification<'_>) -> bool {
        let Some(agreed) = self.agreed else { return false };
        match what {
            ChangeNotification::Tools => agreed.tools,
            ChangeNotification::Prompts => agreed.prompts,
            ChangeNotification::Resources => agreed.resources,
            // The server may also name a part of a subscribed resource.
            ChangeNotification::Resource(uri) => {
                let uri = uri.to_string();
                self.uris.iter().any(|wanted| uri.starts_with(wanted.as_str()))
            }
            _ => false,
        }
    }

    pub(super) fn open(&mut self, listening: Subscriptions) {
        self.agreed = Some(listening);
        self.changes.retain(|change| !matches!(change, SubscriptionEvent::Listening(_)));
        self.changes.push_back(SubscriptionEvent::Listening(listening));
    }

    pub(super) fn changed(&mut self, what: &ChangeNotification<'_>) {
        let Some(change) = SubscriptionEvent::of(what) else { return };
        if self.changes.iter().any(|waiting| *waiting == change || *waiting == SubscriptionEvent::All) {
            return;
        }
        if self.changes.len() < CHANGES && self.bytes + change.size() <= BYTES {
            self.bytes += change.size();
            self.changes.push_back(change);
        } else {
            self.changes.retain(|waiting| matches!(waiting, SubscriptionEvent::Listening(_)));
            self.changes.push_back(SubscriptionEvent::All);
            self.bytes = 0;
        }
    }

    pub(super) fn end(&mut self, error: Option<ClientError>) {
        if !self.ended {
            self.ended = true;
            self.error = error;
        }
    }

    pub(super) fn explain(&mut self, with: impl FnOnce(TransportError) -> String) {
        if let Some(error) = &mut self.error {
            error.explain(with);
        }
    }

    pub(super) fn wake(&mut self, wakes: &mut Wakes) {
        if self.ended || !self.changes.is_empty() {
            wakes.extend(self.waker.take());
        }
    }

    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<SubscriptionEvent, ClientError>>> {
        if let Some(change) = self.changes.pop_front() {
            self.bytes -= change.size();
            return Poll::Ready(Some(Ok(change)));
        }
        if self.ended {
            return Poll::Ready(self.error.take().map(Err));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A subscription: a stream of changes, see [`Client::listen`]. Equal changes that wait to be taken become one, and too
/// many become [`SubscriptionEvent::All`]. It survives reconnections, and ends with an error when the connection cannot
/// be opened again. Dropping it unsubscribes.
#[must_use = "dropping it ends it"]
#[derive(Debug)]
pub struct SubscriptionStream {
    client: Client,
    token: PendingId,
}

impl SubscriptionStream {
    pub(super) const fn new(client: Client, token: PendingId) -> Self {
        SubscriptionStream { client, token }
    }

    /// Returns its token, which events for the [`ClientHandler`](super::ClientHandler) carry.
    #[must_use]
    pub const fn token(&self) -> PendingId {
        self.token
    }
}

impl Stream for SubscriptionStream {
    type Item = Result<SubscriptionEvent, ClientError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.client.with(|state| match state.listens.get_mut(&self.token) {
            Some(heard) => heard.poll(cx),
            None => Poll::Ready(None),
        })
    }
}

impl Drop for SubscriptionStream {
    fn drop(&mut self) {
        // Its waker is dropped after the lock is released.
        let _heard = self.client.with(|state| {
            let heard = state.listens.remove(&self.token);
            if heard.as_ref().is_some_and(|heard| !heard.ended) {
                state.cancel(self.token);
            }
            heard
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientOptions;
    use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, LineClient};
    use mcp_sansio::frame::LineBuffer;
    use mcp_sansio::json::Raw;
    use mcp_sansio::memory::Store;
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::Backlog;

    fn heard() -> Heard {
        Heard::new(&SubscriptionFilter::new())
    }

    fn change(heard: &mut Heard, uri: &str) {
        let json = format!("\"{uri}\"");
        let uri = Raw::parse(json.as_bytes()).unwrap().text().unwrap();
        heard.changed(&ChangeNotification::Resource(uri));
    }

    fn next(heard: &mut Heard) -> Option<SubscriptionEvent> {
        match heard.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(change))) => Some(change),
            other => {
                assert!(other.is_pending());
                None
            }
        }
    }

    #[test]
    fn too_many_changes_become_one() {
        let mut heard = heard();
        (0..CHANGES).for_each(|number| change(&mut heard, &format!("test://{number}")));
        change(&mut heard, "test://0");
        assert_eq!(heard.changes.len(), CHANGES, "all fit, and equal ones are kept once");
        change(&mut heard, "test://one too many");
        change(&mut heard, "test://0");
        assert_eq!(next(&mut heard), Some(SubscriptionEvent::All));
        assert_eq!(next(&mut heard), None);
        // Later ones are reported again.
        change(&mut heard, "test://0");
        assert_eq!(next(&mut heard), Some(SubscriptionEvent::Resource("test://0".to_owned())));
        assert_eq!((next(&mut heard), heard.bytes), (None, 0));
    }

    #[test]
    fn changes_with_too_many_bytes_become_one() {
        let mut heard = heard();
        let long = |start: &str| format!("{start}{}", "x".repeat(BYTES / 2 - start.len()));
        for (third, told) in [("", 2), ("c", 1)] {
            ["a", "b"].iter().for_each(|start| change(&mut heard, &long(start)));
            change(&mut heard, third);
            let events: Vec<_> = std::iter::from_fn(|| next(&mut heard)).collect();
            // An empty URI fits.
            assert_eq!(events.len(), told + usize::from(third.is_empty()));
            assert_eq!(events.contains(&SubscriptionEvent::All), !third.is_empty());
        }
        assert_eq!(heard.bytes, 0);
    }

    /// Returns the part of a subscription to all lists that a server has agreed to.
    fn agreed(lists: &str) -> Subscriptions {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let input = LineBuffer::new(Store::growing(1 << 10));
        let engine = ClientOptions::DEFAULT.engine(&PROFILE, 1);
        let mut session = LineClient::new(input, engine, Backlog::new(usize::MAX));
        session.client.connect_as(Revision::V2026_07_28);
        session.client.listen(&SubscriptionFilter::new().tools().prompts().resources()).unwrap();
        let mut agreed = None;
        let mut note = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Listening(listening) = event {
                agreed = Some(listening);
            }
        };
        let _ = session.run(0, &mut note);
        let lists = if lists.is_empty() { String::new() } else { format!("\"{lists}\":true") };
        let id = Raw::parse(session.out.pending()).unwrap().get("id").unwrap().to_string();
        let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        let params = format!("{{\"notifications\":{{{lists}}},{meta}}}");
        let method = "notifications/subscriptions/acknowledged";
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n");
        session.space()[..line.len()].copy_from_slice(line.as_bytes());
        session.filled(line.len());
        let _ = session.run(0, &mut note);
        agreed.unwrap()
    }

    /// Up to 2025-11-25 a change names no subscription.
    #[test]
    fn a_subscription_takes_what_the_server_agreed_to() {
        let json = ["test://a", "test://a/part", "test://b"].map(|uri| format!("\"{uri}\""));
        let uri = |at: usize| ChangeNotification::Resource(Raw::parse(json[at].as_bytes()).unwrap().text().unwrap());
        let changes = || [ChangeNotification::Tools, ChangeNotification::Prompts, ChangeNotification::Resources];
        let all = || changes().into_iter().chain([uri(0), uri(1), uri(2)]);
        for (agreed, lists) in [
            (agreed(""), [false, false, false]),
            (agreed("toolsListChanged"), [true, false, false]),
            (agreed("promptsListChanged"), [false, true, false]),
            (agreed("resourcesListChanged"), [false, false, true]),
        ] {
            let mut heard = Heard::new(&SubscriptionFilter::new().uris(&["test://a"]));
            assert!(all().all(|change| !heard.wants(&change)), "it is not open");
            heard.open(agreed);
            let wanted: Vec<_> = all().map(|change| heard.wants(&change)).collect();
            assert_eq!(wanted, [&lists[..], &[true, true, false]].concat());
        }
    }

    /// One that was opened again says once what it is for now, after the changes that came before.
    #[test]
    fn a_subscription_that_is_opened_twice_says_so_once() {
        let mut heard = heard();
        heard.open(agreed("toolsListChanged"));
        change(&mut heard, "test://0");
        heard.open(agreed("promptsListChanged"));
        let events: Vec<_> = std::iter::from_fn(|| next(&mut heard)).collect();
        let listening = SubscriptionEvent::Listening(agreed("promptsListChanged"));
        assert_eq!(events, [SubscriptionEvent::Resource("test://0".to_owned()), listening]);
    }

    /// Too many changes become one, and the news that it is open stays.
    #[test]
    fn the_opening_of_a_subscription_is_not_left_out() {
        let mut heard = heard();
        heard.open(agreed(""));
        (0..CHANGES).for_each(|number| change(&mut heard, &format!("test://{number}")));
        let events: Vec<_> = std::iter::from_fn(|| next(&mut heard)).collect();
        assert_eq!(events, [SubscriptionEvent::Listening(agreed("")), SubscriptionEvent::All]);
    }

    /// The first end counts: an end without an error stays one.
    #[test]
    fn a_subscription_ends_once() {
        for error in [None, Some(ClientError::lost_by(TransportError::Closed))] {
            let mut heard = heard();
            let is_error = error.is_some();
            heard.end(error);
            heard.end(Some(ClientError::lost_by(TransportError::TimedOut)));
            let ended = heard.poll(&Context::from_waker(Waker::noop()));
            match ended {
                Poll::Ready(Some(Err(error))) => assert_eq!(error.lost(), Some(TransportError::Closed)),
                Poll::Ready(None) => assert!(!is_error),
                other => panic!("{other:?}"),
            }
            assert!(matches!(heard.poll(&Context::from_waker(Waker::noop())), Poll::Ready(None)), "it is over");
        }
    }
}
