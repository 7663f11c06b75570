//! The notifications of the server: progress, logs, changes.

use super::subscription_state::SubscriptionState;
use super::{Client, ClientEvent, PendingId, ProtocolViolation};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::LoggingLevel;
use crate::revision::Revision;
use crate::rpc::Envelope;

/// A change that the server reports.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ChangeNotification<'a> {
    /// `notifications/tools/list_changed`.
    Tools,
    /// `notifications/prompts/list_changed`.
    Prompts,
    /// `notifications/resources/list_changed`.
    Resources,
    /// `notifications/resources/updated`, with its `uri`.
    Resource(Text<'a>),
}

impl Client<'_> {
    pub(crate) fn notification<'a>(
        &mut self,
        exchange: Option<u64>,
        envelope: &Envelope<'a>,
        method: Text<'a>,
    ) -> Option<ClientEvent<'a>> {
        // Compared as text, because some servers escape slashes.
        let is = |name| method.eq_str(name);
        match () {
            () if is("notifications/progress") => {
                self.progress(envelope).or(Some(ClientEvent::Ignored(ProtocolViolation::UnknownProgress)))
            }
            () if is("notifications/message") => self.log(exchange, envelope),
            () if is("notifications/tools/list_changed") => self.changed(envelope, ChangeNotification::Tools),
            () if is("notifications/prompts/list_changed") => self.changed(envelope, ChangeNotification::Prompts),
            () if is("notifications/resources/list_changed") => self.changed(envelope, ChangeNotification::Resources),
            () if is("notifications/resources/updated") => {
                let uri = envelope.members.uri?.text()?;
                self.changed(envelope, ChangeNotification::Resource(uri))
            }
            () if is("notifications/subscriptions/acknowledged") => Some(self.acknowledged(envelope)),
            () if is("notifications/cancelled") => self.cancelled_by_server(envelope),
            () if is("notifications/elicitation/complete") => {
                let id = envelope.params?.get("elicitationId")?.text()?;
                let known = self.revision.is_some_and(Revision::has_elicitation_complete) && self.ends_visit(&id);
                Some(if known {
                    ClientEvent::ElicitationComplete { id }
                } else {
                    ClientEvent::Ignored(ProtocolViolation::UnknownVisit)
                })
            }
            () => Some(ClientEvent::Notification { method, params: envelope.params }),
        }
    }

    fn progress<'a>(&mut self, envelope: &Envelope<'a>) -> Option<ClientEvent<'a>> {
        let params = envelope.params?;
        let now = self.now;
        let id = params.get("progressToken")?.u64()?;
        let done = params.get("progress").filter(is_number)?;
        let pending = self.on_wire_mut(id).filter(|pending| pending.options.progress)?;
        pending.progressed(done.as_bytes(), now);
        Some(ClientEvent::Progress {
            token: PendingId(pending.token),
            done,
            total: params.get("total").filter(is_number),
            message: params.get("message").and_then(|message| message.text()),
        })
    }

    fn log<'a>(&self, exchange: Option<u64>, envelope: &Envelope<'a>) -> Option<ClientEvent<'a>> {
        let params = envelope.params?;
        let token = exchange.and_then(|id| self.on_wire(id)).map(|pending| PendingId(pending.token));
        let level = envelope.members.level.and_then(LoggingLevel::read);
        let logger = params.get("logger").and_then(|logger| logger.text());
        Some(ClientEvent::Log { token, level, logger, data: params.get("data")? })
    }

    fn changed<'a>(&mut self, envelope: &Envelope<'a>, what: ChangeNotification<'a>) -> Option<ClientEvent<'a>> {
        let listen = self.subscription_of(envelope).map(|pending| PendingId(pending.token));
        if let Some(pending) = listen.and_then(|listen| self.pending_mut(listen.0)) {
            pending.rounds = 0;
        }
        if listen.is_none() && self.revision.is_some_and(Revision::is_modern) {
            return Some(ClientEvent::Ignored(ProtocolViolation::UnknownListen));
        }
        Some(ClientEvent::Changed { listen, what })
    }

    /// Takes `notifications/cancelled`: the server withdraws a request of its own, or ends a subscription.
    fn cancelled_by_server<'a>(&mut self, envelope: &Envelope<'a>) -> Option<ClientEvent<'a>> {
        let id = envelope.members.request_id?;
        if let Some(question) = self.withdrawn(id) {
            let reason = envelope.params?.get("reason").and_then(|reason| reason.text());
            return Some(ClientEvent::Withdrawn { question, reason });
        }
        let cancelled = self.on_wire(id.u64()?)?;
        if matches!(cancelled.subscription()?, SubscriptionState::Open { .. }) {
            self.reopen_later(cancelled.token);
        }
        None
    }
}

fn is_number(value: &Raw<'_>) -> bool {
    value.kind() == JsonKind::Number
}
