//! Events for a task: the messages of a server that answer no request, through a bounded channel.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use async_channel::{Receiver, Sender};
use futures_lite::Stream;
use mcp_sansio::client::{
    ChangeNotification, ClientEvent, ClientHandle, ClientHandler, PendingId, ProtocolViolation, ServerRequest,
    ServerRequestId, ServerRequestKind,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::protocol::{LoggingLevel, code};
use mcp_sansio::revision::Revision;

use super::SubscriptionEvent;

/// An event of the connection or a message of the server. It owns its parts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OwnedEvent {
    /// The connection is open, or open again.
    Connected(Revision),
    /// The connection could not be opened again, for this reason.
    Unconnected(String),
    /// The open connection has ended.
    Closed,
    /// The server sent a request: answer it with [`reply`](super::Client::reply) or
    /// [`refuse`](super::Client::refuse).
    Asked(OwnedServerRequest),
    /// The server cancelled its request.
    Withdrawn {
        /// The request of the server.
        question: ServerRequestId,
        /// The `reason` of its `notifications/cancelled`, for logs.
        reason: Option<String>,
    },
    /// `notifications/progress`: the
    /// [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress) of a request.
    Progress {
        /// The request, see [`request_with`](super::Client::request_with).
        token: PendingId,
        /// The member `progress`: the amount that is done.
        done: f64,
        /// The member `total`: the whole amount.
        total: Option<f64>,
        /// The member `message`: a text for users.
        message: Option<String>,
    },
    /// `notifications/message`: a [log
    /// message](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
    Log {
        /// The request that it belongs to, if that is known.
        token: Option<PendingId>,
        /// The member `level`; `None` if the protocol has no such level.
        level: Option<LoggingLevel>,
        /// The member `logger`: the part of the server that logs.
        logger: Option<String>,
        /// The member `data`: JSON, mostly a string.
        data: String,
    },
    /// A change without a subscription stream (up to 2025-11-25).
    Changed(SubscriptionEvent),
    /// `notifications/elicitation/complete` (2025-11-25): the user has finished at the URL; the `elicitationId`
    /// ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)).
    ElicitationComplete(String),
    /// A notification that the protocol does not know.
    Notification {
        /// The member `method`.
        method: String,
        /// The member `params`, as JSON.
        params: Option<String>,
    },
    /// The server violated the protocol. The client ignored the message.
    Ignored(ProtocolViolation),
}

/// A request of the server to the client. It owns its params.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedServerRequest {
    /// The id to answer it with, at once or later.
    pub id: ServerRequestId,
    /// The method: sampling, elicitation or roots.
    pub kind: ServerRequestKind,
    /// The request of the client during which the server sent it, if that is known.
    pub token: Option<PendingId>,
    params: Box<str>,
}

impl OwnedServerRequest {
    fn new(question: &ServerRequest<'_>, token: Option<PendingId>) -> Self {
        OwnedServerRequest { id: question.id, kind: question.kind, token, params: question.params.as_str().into() }
    }

    /// Returns the member `params`; `{}` if it is missing.
    #[must_use]
    pub fn params(&self) -> Raw<'_> {
        Raw::parse(self.params.as_bytes()).unwrap_or(Raw::constant("{}"))
    }
}

/// Makes a channel for events: the handler for [`Client::new`](super::Client::new), and the stream that a task reads.
/// It keeps at most `capacity` events. Further ones are dropped and [counted](Events::missed); further requests of
/// the server are refused.
#[must_use]
pub fn events(capacity: usize) -> (EventSender, Events) {
    let (to, from) = async_channel::bounded(capacity.max(1));
    let missed = Arc::new(AtomicUsize::new(0));
    (EventSender { to, missed: missed.clone() }, Events { from: Box::pin(from), missed })
}

/// The handler's end of a channel of [`events`].
#[derive(Clone, Debug)]
pub struct EventSender {
    to: Sender<OwnedEvent>,
    missed: Arc<AtomicUsize>,
}

/// The task's end of a channel of [`events`]: a stream, which ends with the driver.
#[derive(Debug)]
pub struct Events {
    from: Pin<Box<Receiver<OwnedEvent>>>,
    missed: Arc<AtomicUsize>,
}

impl Events {
    /// Returns the number of events that were dropped.
    #[must_use]
    pub fn missed(&self) -> usize {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Stream for Events {
    type Item = OwnedEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<OwnedEvent>> {
        self.from.as_mut().poll_next(cx)
    }
}

impl EventSender {
    fn tell(&self, event: OwnedEvent) -> bool {
        let told = self.to.try_send(event).is_ok();
        if !told {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        told
    }
}

impl ClientHandler for EventSender {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        if let ClientEvent::Asked(asked) = &event {
            for question in asked.questions() {
                if !self.tell(OwnedEvent::Asked(OwnedServerRequest::new(&question, asked.token))) {
                    let refusal = RpcError::new(code::INTERNAL, "The client is too busy to answer");
                    let _ = handle.refuse(question.id, &refusal);
                }
            }
        } else if let Some(event) = own(&event) {
            self.tell(event);
        }
    }
}

/// Copies an event. Not requests of the server (one event may hold several) nor outcomes (other tasks wait for them).
fn own(event: &ClientEvent<'_>) -> Option<OwnedEvent> {
    let owned = |text: &Text<'_>| text.to_string();
    let number = |raw: Raw<'_>| raw.as_str().parse().ok();
    Some(match event {
        ClientEvent::Connected(connected) => OwnedEvent::Connected(connected.revision),
        ClientEvent::Unconnected(why) => OwnedEvent::Unconnected(why.to_string()),
        ClientEvent::Closed => OwnedEvent::Closed,
        ClientEvent::Withdrawn { question, reason } => {
            OwnedEvent::Withdrawn { question: *question, reason: reason.as_ref().map(owned) }
        }
        ClientEvent::Progress { token, done, total, message } => OwnedEvent::Progress {
            token: *token,
            done: number(*done).unwrap_or(0.0),
            total: total.and_then(number),
            message: message.as_ref().map(owned),
        },
        ClientEvent::Log { token, level, logger, data } => OwnedEvent::Log {
            token: *token,
            level: *level,
            logger: logger.as_ref().map(owned),
            data: data.as_str().to_owned(),
        },
        ClientEvent::Changed { what, .. } => OwnedEvent::Changed(SubscriptionEvent::of(what)?),
        ClientEvent::ElicitationComplete { id } => OwnedEvent::ElicitationComplete(owned(id)),
        ClientEvent::Notification { method, params } => {
            OwnedEvent::Notification { method: owned(method), params: params.map(|params| params.as_str().to_owned()) }
        }
        ClientEvent::Ignored(oddity) => OwnedEvent::Ignored(*oddity),
        _ => return None,
    })
}

impl SubscriptionEvent {
    pub(super) fn of(what: &ChangeNotification<'_>) -> Option<Self> {
        Some(match what {
            ChangeNotification::Tools => SubscriptionEvent::Tools,
            ChangeNotification::Prompts => SubscriptionEvent::Prompts,
            ChangeNotification::Resources => SubscriptionEvent::Resources,
            ChangeNotification::Resource(uri) => SubscriptionEvent::Resource(uri.to_string()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{StreamTransport, Transport};
    use mcp_sansio::client::{ClientInfo, Request, RequestError, TransportError};
    use std::task::Waker;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    /// Gives events to a channel, and returns what a task gets, and the number of those that were missed.
    fn taken<'e>(capacity: usize, given: impl IntoIterator<Item = ClientEvent<'e>>) -> (Vec<OwnedEvent>, usize) {
        let mut stream = StreamTransport::new(futures_lite::io::empty(), futures_lite::io::sink(), &PROFILE);
        let (mut handler, mut events) = events(capacity);
        for event in given {
            handler.event(event, &mut stream.state_mut().handle());
        }
        drop(handler);
        let mut taken = Vec::new();
        while let Poll::Ready(Some(event)) = Pin::new(&mut events).poll_next(&mut Context::from_waker(Waker::noop())) {
            taken.push(event);
        }
        (taken, events.missed())
    }

    fn text(json: &'static str) -> Text<'static> {
        Raw::parse(json.as_bytes()).unwrap().text().unwrap()
    }

    #[test]
    fn a_task_gets_all_parts_of_an_event() {
        let mut stream = StreamTransport::new(futures_lite::io::empty(), futures_lite::io::sink(), &PROFILE);
        stream.state_mut().handle().client.connect_as(Revision::V2026_07_28);
        let token = stream.state_mut().handle().send(&Request::call("any")).unwrap();
        let changed = |what| ClientEvent::Changed { listen: None, what };
        let given = [
            ClientEvent::Unconnected(RequestError::Lost(TransportError::Unreachable)),
            ClientEvent::Progress {
                token,
                done: Raw::constant("1.5"),
                total: Some(Raw::constant("3")),
                message: Some(text(r#""half""#)),
            },
            ClientEvent::Progress { token, done: Raw::constant("2"), total: None, message: None },
            ClientEvent::Log {
                token: Some(token),
                level: Some(LoggingLevel::Error),
                logger: Some(text(r#""db""#)),
                data: Raw::constant("[1]"),
            },
            changed(ChangeNotification::Tools),
            changed(ChangeNotification::Prompts),
            changed(ChangeNotification::Resources),
            changed(ChangeNotification::Resource(text(r#""test://a""#))),
            ClientEvent::ElicitationComplete { id: text(r#""e-1""#) },
            ClientEvent::Notification { method: text(r#""notifications/x""#), params: Some(Raw::constant("{}")) },
            ClientEvent::Notification { method: text(r#""notifications/y""#), params: None },
            ClientEvent::Ignored(ProtocolViolation::UnknownResponse),
        ];
        let unconnected = RequestError::Lost(TransportError::Unreachable).to_string();
        let expected = [
            OwnedEvent::Unconnected(unconnected),
            OwnedEvent::Progress { token, done: 1.5, total: Some(3.0), message: Some("half".to_owned()) },
            OwnedEvent::Progress { token, done: 2.0, total: None, message: None },
            OwnedEvent::Log {
                token: Some(token),
                level: Some(LoggingLevel::Error),
                logger: Some("db".to_owned()),
                data: "[1]".to_owned(),
            },
            OwnedEvent::Changed(SubscriptionEvent::Tools),
            OwnedEvent::Changed(SubscriptionEvent::Prompts),
            OwnedEvent::Changed(SubscriptionEvent::Resources),
            OwnedEvent::Changed(SubscriptionEvent::Resource("test://a".to_owned())),
            OwnedEvent::ElicitationComplete("e-1".to_owned()),
            OwnedEvent::Notification { method: "notifications/x".to_owned(), params: Some("{}".to_owned()) },
            OwnedEvent::Notification { method: "notifications/y".to_owned(), params: None },
            OwnedEvent::Ignored(ProtocolViolation::UnknownResponse),
        ];
        let (taken, missed) = taken(100, given);
        assert_eq!((taken.as_slice(), missed), (expected.as_slice(), 0));
    }

    #[test]
    fn events_beyond_the_capacity_are_counted() {
        let event = || ClientEvent::Ignored(ProtocolViolation::UnknownResponse);
        for (capacity, kept) in [(0, 1), (1, 1), (3, 3)] {
            let (taken, missed) = taken(capacity, [(); 4].map(|()| event()));
            assert_eq!((taken.len(), missed), (kept, 4 - kept));
        }
    }
}
