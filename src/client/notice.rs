//! Notifications: progress, logs, changes.

use super::flight::{State, after};
use super::{Engine, Event, Oddity, Token};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::{Level, Method, meta};
use crate::revision::Revision;
use crate::rpc::Envelope;

/// How far a request is. Numbers are as the server wrote them.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ProgressReport<'a> {
    /// Which request.
    pub token: Token,
    /// So much is done.
    pub done: Raw<'a>,
    /// Out of so much.
    pub total: Option<Raw<'a>>,
    /// What is being done.
    pub message: Option<Text<'a>>,
}

/// A log message of the server's.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Log<'a> {
    /// The request that it belongs to, where that is known.
    pub token: Option<Token>,
    /// How severe it is; `None` if the server names a level that there is none of.
    pub level: Option<Level>,
    /// Which part of the server says it.
    pub logger: Option<Text<'a>>,
    /// What it says: a string, or any JSON.
    pub data: Raw<'a>,
}

/// What has changed at the server.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Changed<'a> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The contents of the resource with this URI.
    Resource(Text<'a>),
}

/// What the protocol knows of.
#[derive(Clone, Copy)]
enum Notice {
    Progress,
    Message,
    Tools,
    Prompts,
    Resources,
    Updated,
    Acknowledged,
    Cancelled,
    Visited,
}

const NOTIFICATIONS: [(&str, Notice); 9] = [
    ("notifications/progress", Notice::Progress),
    ("notifications/message", Notice::Message),
    ("notifications/tools/list_changed", Notice::Tools),
    ("notifications/prompts/list_changed", Notice::Prompts),
    ("notifications/resources/list_changed", Notice::Resources),
    ("notifications/resources/updated", Notice::Updated),
    ("notifications/subscriptions/acknowledged", Notice::Acknowledged),
    ("notifications/cancelled", Notice::Cancelled),
    ("notifications/elicitation/complete", Notice::Visited),
];

impl Engine<'_> {
    pub(crate) fn notification<'a>(
        &mut self,
        exchange: Option<u64>,
        envelope: &Envelope<'a>,
        method: Text<'a>,
    ) -> Option<Event<'a>> {
        // Some writers escape slashes.
        let name = NOTIFICATIONS.into_iter().find(|(name, _)| method.is(name));
        let Some((_, notice)) = name else { return Some(Event::Notification { method, params: envelope.params }) };
        match notice {
            Notice::Progress => Some(self.progress(envelope)),
            Notice::Message => self.log(exchange, envelope),
            Notice::Tools => self.changed(envelope, Changed::Tools),
            Notice::Prompts => self.changed(envelope, Changed::Prompts),
            Notice::Resources => self.changed(envelope, Changed::Resources),
            Notice::Updated => {
                let uri = envelope.members.uri?.text()?;
                self.changed(envelope, Changed::Resource(uri))
            }
            Notice::Acknowledged => Some(self.acknowledged(envelope)),
            Notice::Cancelled => self.cancelled_by_server(envelope),
            Notice::Visited => {
                let id = envelope.params?.get("elicitationId")?.text()?;
                let known = self.revision == Some(Revision::V2025_11_25) && self.ends_visit(&id);
                Some(if known { Event::Visited { id } } else { Event::Ignored(Oddity::UnknownVisit) })
            }
        }
    }

    fn progress<'a>(&mut self, envelope: &Envelope<'a>) -> Event<'a> {
        let read = || {
            let params = envelope.params?;
            let wire = params.get("progressToken")?.u64()?;
            let flight = self.on_wire(wire).filter(|flight| flight.options.progress)?;
            Some(ProgressReport {
                token: Token(flight.token),
                done: params.get("progress").filter(is_number)?,
                total: params.get("total").filter(is_number),
                message: params.get("message").and_then(|message| message.text()),
            })
        };
        let Some(report) = read() else { return Event::Ignored(Oddity::UnknownProgress) };
        let now = self.now;
        let value =
            report.done.as_bytes().iter().fold(1, |sum: u32, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        // It must increase: a server that says the same again and again has not come further.
        if let Some(flight) = self.flight_mut(report.token.0).filter(|flight| flight.reported != value) {
            flight.reported = value;
            flight.deadline = after(now, flight.options.timeout);
        }
        Event::Progress(report)
    }

    fn log<'a>(&self, exchange: Option<u64>, envelope: &Envelope<'a>) -> Option<Event<'a>> {
        let params = envelope.params?;
        let token = exchange.and_then(|wire| self.on_wire(wire)).map(|flight| Token(flight.token));
        let level = envelope.members.level.and_then(Level::read);
        let logger = params.get("logger").and_then(|logger| logger.text());
        Some(Event::Log(Log { token, level, logger, data: params.get("data")? }))
    }

    /// The listen that a notification belongs to, by its `_meta`.
    pub(crate) fn listen_of(&self, envelope: &Envelope<'_>) -> Option<u32> {
        let wire = envelope.members.meta?.get(meta::SUBSCRIPTION_ID)?.u64()?;
        self.on_wire(wire).filter(|flight| flight.method == Method::Listen).map(|flight| flight.token)
    }

    fn changed<'a>(&mut self, envelope: &Envelope<'a>, what: Changed<'a>) -> Option<Event<'a>> {
        let listen = self.listen_of(envelope).map(Token);
        let modern = self.revision.is_some_and(Revision::is_modern);
        if modern && listen.is_none() {
            return Some(Event::Ignored(Oddity::UnknownListen));
        }
        Some(Event::Changed { listen, what })
    }

    /// The server takes a request of its own back, or ends a listen.
    fn cancelled_by_server<'a>(&mut self, envelope: &Envelope<'a>) -> Option<Event<'a>> {
        let id = envelope.members.request_id?;
        if let Some(question) = self.withdrawn(id) {
            return Some(Event::Withdrawn(question));
        }
        let listen = self.on_wire(id.u64()?).filter(|f| f.method == Method::Listen && f.state == State::Open)?;
        let token = listen.token;
        self.reopen_later(token);
        None
    }
}

fn is_number(value: &Raw<'_>) -> bool {
    value.kind() == JsonKind::Number
}
