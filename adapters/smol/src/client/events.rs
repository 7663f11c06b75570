//! Events for a task: what a server says of its own accord, owned, through a channel with bounds.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use async_channel::{Receiver, Sender};
use futures_lite::Stream;
use mcp_sansio::client::reply::Refusal;
use mcp_sansio::client::{
    Changed, Event, Handler, Link, Oddity, ProgressReport, Question, QuestionId, QuestionKind, Token,
};
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::protocol::{Level, code};
use mcp_sansio::revision::Revision;

use super::Change;

/// Something that has happened. It owns its parts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OwnedEvent {
    /// The connection is open, or open again.
    Connected(Revision),
    /// It could not be opened again; why.
    Unconnected(String),
    /// The server asks: [`reply`](super::Client::reply) or [`refuse`](super::Client::refuse).
    Asked(Ask),
    /// The server does not want an answer any more.
    Withdrawn(QuestionId),
    /// How far a request is.
    Progress {
        /// Which request, see [`Outcome::token`](super::Outcome::token).
        token: Token,
        /// So much is done.
        done: f64,
        /// Out of so much.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
    /// A log message.
    Log {
        /// The request that it belongs to, where that is known.
        token: Option<Token>,
        /// How severe it is; `None` if the server names a level that there is none of.
        level: Option<Level>,
        /// Which part of the server says it.
        logger: Option<String>,
        /// What it says: JSON, mostly a string.
        data: String,
    },
    /// Something has changed that came unasked (up to 2025-11-25).
    Changed(Change),
    /// A visit that was asked for is over (2025-11-25): the `elicitationId`.
    Visited(String),
    /// A notification that the protocol does not know.
    Notification {
        /// Its method.
        method: String,
        /// Its params, as JSON.
        params: Option<String>,
    },
    /// Something that a right server does not send. It has changed nothing.
    Ignored(Oddity),
}

/// A question of the server's. It owns its params.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// To answer it by, now or later.
    pub id: QuestionId,
    /// What is asked for.
    pub kind: QuestionKind,
    /// The request on whose behalf it is asked, where that is known.
    pub token: Option<Token>,
    params: Box<str>,
}

impl Ask {
    fn new(question: &Question<'_>, token: Option<Token>) -> Self {
        Ask { id: question.id, kind: question.kind, token, params: question.params.as_str().into() }
    }

    /// The question's params, `{}` if it has none.
    #[must_use]
    pub fn params(&self) -> Raw<'_> {
        Raw::parse(self.params.as_bytes()).unwrap_or(Raw::constant("{}"))
    }
}

/// A channel for events: the handler for [`Client::new`](super::Client::new), and where a task takes them from. At most
/// `capacity` of them wait. Those for which there is no place are dropped and [counted](Events::missed); questions are
/// refused then.
#[must_use]
pub fn events(capacity: usize) -> (Teller, Events) {
    let (to, from) = async_channel::bounded(capacity.max(1));
    let missed = Arc::new(AtomicUsize::new(0));
    (Teller { to, missed: missed.clone() }, Events { from: Box::pin(from), missed })
}

/// The end of a channel of [`events`] that is the handler.
#[derive(Clone, Debug)]
pub struct Teller {
    to: Sender<OwnedEvent>,
    missed: Arc<AtomicUsize>,
}

/// The end of a channel of [`events`] where a task takes them from: a stream. It ends with the driver.
#[derive(Debug)]
pub struct Events {
    from: Pin<Box<Receiver<OwnedEvent>>>,
    missed: Arc<AtomicUsize>,
}

impl Events {
    /// How many events found no place.
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

impl Teller {
    fn tell(&self, event: OwnedEvent) -> bool {
        let told = self.to.try_send(event).is_ok();
        if !told {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        told
    }
}

impl Handler for Teller {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        if let Event::Asked(asked) = &event {
            for question in asked.questions() {
                if !self.tell(OwnedEvent::Asked(Ask::new(&question, asked.token()))) {
                    let refusal = Refusal::new(code::INTERNAL, "The client is too busy to answer");
                    let _ = link.refuse(question.id, &refusal);
                }
            }
        } else if let Some(event) = own(&event) {
            self.tell(event);
        }
    }
}

/// All but questions, which are several, and outcomes, which somebody else waits for.
fn own(event: &Event<'_>) -> Option<OwnedEvent> {
    let owned = |text: &Text<'_>| text.to_string();
    Some(match event {
        Event::Connected(connected) => OwnedEvent::Connected(connected.revision),
        Event::Unconnected(why) => OwnedEvent::Unconnected(why.to_string()),
        Event::Withdrawn(question) => OwnedEvent::Withdrawn(*question),
        Event::Progress(report) => progress(report),
        Event::Log(log) => OwnedEvent::Log {
            token: log.token,
            level: log.level,
            logger: log.logger.as_ref().map(owned),
            data: log.data.as_str().to_owned(),
        },
        Event::Changed { what, .. } => OwnedEvent::Changed(Change::of(what)?),
        Event::Visited { id } => OwnedEvent::Visited(owned(id)),
        Event::Notification { method, params } => {
            OwnedEvent::Notification { method: owned(method), params: params.map(|params| params.as_str().to_owned()) }
        }
        Event::Ignored(oddity) => OwnedEvent::Ignored(*oddity),
        _ => return None,
    })
}

fn progress(report: &ProgressReport<'_>) -> OwnedEvent {
    let number = |raw: Raw<'_>| raw.as_str().parse().ok();
    OwnedEvent::Progress {
        token: report.token,
        done: number(report.done).unwrap_or(0.0),
        total: report.total.and_then(number),
        message: report.message.as_ref().map(ToString::to_string),
    }
}

impl Change {
    pub(super) fn of(what: &Changed<'_>) -> Option<Self> {
        Some(match what {
            Changed::Tools => Change::Tools,
            Changed::Prompts => Change::Prompts,
            Changed::Resources => Change::Resources,
            Changed::Resource(uri) => Change::Resource(uri.to_string()),
            _ => return None,
        })
    }
}
