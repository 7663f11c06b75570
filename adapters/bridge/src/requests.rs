//! The requests of the host, from their admission to their answer.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::client::{PendingId, ServerRequestId};
use mcp_sansio::json::{OwnedRaw, Raw};
use mcp_sansio::protocol::{LoggingLevel, Method};
use mcp_sansio::server::{IncomingRequest, Millis, RequestToken, Server};

/// The state of a request.
#[derive(Debug)]
pub(crate) enum RequestState {
    /// It waits for a connection.
    Waiting { until: Millis },
    /// The server behind has it.
    Sent { back: PendingId },
    /// The host of 2026-07-28 was asked back, and will come again. The server, up to 2025-11-25, still has the request.
    Parked { back: PendingId, round: u64, until: Millis, asked: Vec<ServerRequestId>, more: Vec<Question> },
}

/// A question that waits for the next round.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) id: ServerRequestId,
    pub(crate) params: OwnedRaw,
}

/// All transitions of a [`RequestState`]: from, to, cause. The diagram in `docs/internals/state-machines.md` shows the same. It is left by its removal.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Waiting", "Sent", "sent"),
    ("Sent", "Waiting", "surely not executed"),
    ("Sent", "Parked", "asked"),
    ("Parked", "Sent", "the host comes again"),
    ("Parked", "Parked", "the host comes again, and more was asked"),
];

mcp_sansio::machine!(RequestState, TRANSITIONS: Waiting Sent Parked);

/// The value that a request of the host sets, for the server in front as soon as the server behind has agreed.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    /// `resources/subscribe`, or `resources/unsubscribe` (`false`)
    Subscribed(String, bool),
    /// `logging/setLevel`
    Level(LoggingLevel),
}

impl Setting {
    /// Reads what a request sets from its `level` or `uri`.
    pub(crate) fn of(method: Method, level: Option<Raw<'_>>, uri: Option<Raw<'_>>) -> Option<Self> {
        match method {
            Method::SetLevel => level.and_then(LoggingLevel::read).map(Setting::Level),
            _ if method.is_setting() => {
                Some(Setting::Subscribed(uri?.text()?.to_string(), method == Method::Subscribe))
            }
            _ => None,
        }
    }

    /// Returns `false` if there is no room.
    pub(crate) fn apply(&self, server: &mut Server<'_>) -> bool {
        match self {
            Setting::Subscribed(uri, on) => server.set_subscribed(uri, *on),
            Setting::Level(level) => {
                server.peer.log_level = *level;
                true
            }
        }
    }
}

/// A request of the host.
#[derive(Debug)]
pub(crate) struct HostRequest {
    state: RequestState,
    /// That of the host; stale while it is parked.
    pub(crate) front: RequestToken,
    pub(crate) method: Method,
    pub(crate) setting: Option<Setting>,
    /// The host is one of 2026-07-28.
    pub(crate) modern: bool,
    /// The message, to send it again; empty if it is not kept.
    pub(crate) line: Vec<u8>,
    pub(crate) begun: Millis,
    /// Its `progressToken`.
    pub(crate) progress: Option<OwnedRaw>,
    /// The time until which it waits, also if it is sent again.
    pub(crate) until: Millis,
    /// The name of the method, and of the tool, prompt or resource: for a journal, and to send a request of any method.
    pub(crate) name: (String, String),
    /// The name of its host, for a journal.
    pub(crate) host: String,
}

impl HostRequest {
    pub(crate) fn new(front: RequestToken, request: &IncomingRequest<'_>, now: Millis, wait: Millis) -> Self {
        let until = now.saturating_add(wait);
        HostRequest {
            state: RequestState::Waiting { until },
            front,
            method: request.method,
            setting: Setting::of(request.method, request.envelope.members.level, request.envelope.members.uri),
            modern: request.envelope.meta.is_modern(),
            line: Vec::new(),
            begun: now,
            progress: request.envelope.meta.progress_token.map(OwnedRaw::new),
            until,
            name: Default::default(),
            host: String::new(),
        }
    }

    /// Notes the names; `host` is that of the host if the request does not say it.
    pub(crate) fn note_names(&mut self, request: &IncomingRequest<'_>, host: &str) {
        let members = &request.envelope.members;
        let target = members.name.or(members.uri).and_then(|target| target.text());
        self.name = (request.name.to_string(), target.map(|text| text.to_string()).unwrap_or_default());
        let named = request.envelope.meta.client_info.and_then(|info| info.get("name")?.text());
        self.host = named.map_or_else(|| host.into(), |name| name.to_string());
    }

    pub(crate) const fn state(&self) -> &RequestState {
        &self.state
    }

    /// Returns the id that the request has behind.
    pub(crate) const fn back(&self) -> Option<PendingId> {
        match self.state {
            RequestState::Sent { back } | RequestState::Parked { back, .. } => Some(back),
            RequestState::Waiting { .. } => None,
        }
    }

    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.state, RequestState::Waiting { .. })
    }

    pub(crate) const fn is_sent(&self) -> bool {
        matches!(self.state, RequestState::Sent { .. })
    }

    pub(crate) fn is_round(&self, number: u64) -> bool {
        matches!(self.state, RequestState::Parked { round, .. } if round == number)
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        match self.state {
            RequestState::Waiting { until } | RequestState::Parked { until, .. } => Some(until),
            RequestState::Sent { .. } => None,
        }
    }

    pub(crate) fn sent(&mut self, back: PendingId) {
        self.state.enter("sent", RequestState::Sent { back });
    }

    /// Waits again for a connection: the server has surely not executed it.
    pub(crate) fn waits_again(&mut self) {
        if self.is_sent() {
            self.state.enter("surely not executed", RequestState::Waiting { until: self.until });
        }
    }

    /// Parks it with the questions of a round.
    pub(crate) fn park(&mut self, round: u64, until: Millis, asked: Vec<ServerRequestId>) {
        let Some(back) = self.back() else { return };
        let cause = if self.is_sent() { "asked" } else { "the host comes again, and more was asked" };
        self.state.enter(cause, RequestState::Parked { back, round, until, asked, more: Vec::new() });
    }

    /// Keeps a question for the next round, if it is parked.
    pub(crate) fn ask_later(&mut self, question: Question) {
        if let RequestState::Parked { more, .. } = &mut self.state {
            more.push(question);
        }
    }

    /// Returns the number of questions of its round and of the next one.
    pub(crate) fn open_questions(&self) -> usize {
        match &self.state {
            RequestState::Parked { asked, more, .. } => asked.len() + more.len(),
            _ => 0,
        }
    }

    /// Takes the questions of the round that the host answers, and those that came meanwhile. Without the latter it is sent again.
    pub(crate) fn come_again(
        &mut self,
        front: RequestToken,
        request: &IncomingRequest<'_>,
    ) -> (Vec<ServerRequestId>, Vec<Question>) {
        let RequestState::Parked { back, asked, more, .. } = &mut self.state else { return Default::default() };
        let (back, asked, more) = (*back, core::mem::take(asked), core::mem::take(more));
        (self.front, self.progress) = (front, request.envelope.meta.progress_token.map(OwnedRaw::new));
        if more.is_empty() {
            self.state.enter("the host comes again", RequestState::Sent { back });
        }
        (asked, more)
    }
}
