//! Sessions of 2024-11-05 at several processes: a session lives on its stream, and its id names the process that has it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use mcp_sansio::protocol::code;
use mcp_sansio::sink::Out;

use super::{App, Endpoint, Life, Membership};
use crate::endpoint::head::EndpointResponse;
use crate::endpoint::refusal::refuse;
use crate::fleet::wire::{Message, SessionRef};
use crate::fleet::{FleetLimits, Recipients};

/// Messages that came to other processes, and wait until the stream of their session was read.
#[derive(Debug, Default)]
pub(crate) struct OldMessages {
    waiting: VecDeque<OldMessage>,
    bytes: usize,
}

#[derive(Debug)]
struct OldMessage {
    id: Box<[u8]>,
    principal: Option<Box<str>>,
    content: Box<[u8]>,
}

impl OldMessage {
    fn session(&self) -> SessionRef<'_> {
        SessionRef { id: &self.id, principal: self.principal.as_deref() }
    }
}

impl OldMessages {
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds a message. Returns `false` if there is no room.
    fn add(&mut self, session: SessionRef<'_>, content: &[u8], limits: &FleetLimits) -> bool {
        let own = self.waiting.iter().filter(|waiting| *waiting.id == *session.id).count();
        let bytes = self.bytes.saturating_add(content.len());
        let fits = self.waiting.len() < limits.waiting && own < limits.waiting_share && bytes <= limits.waiting_bytes;
        if fits {
            self.bytes = bytes;
            let (id, principal) = (session.id.into(), session.principal.map(Box::from));
            self.waiting.push_back(OldMessage { id, principal, content: content.into() });
        }
        fits
    }
}

impl Membership {
    /// Returns whether a message of a session waits already.
    fn has_waiting(&self, session: SessionRef<'_>) -> bool {
        self.old.waiting.iter().any(|waiting| *waiting.id == *session.id)
    }
}

impl Endpoint<'_> {
    /// Names this process in the id of a session that was just opened.
    pub(crate) fn seal_old(&mut self, slot: u16, principal: Option<&str>, random: &mut dyn FnMut(&mut [u8])) {
        let (Some(fleet), Some(sealed), Some(session)) =
            (&self.fleet, self.sealed.as_mut(), self.sessions.get_mut(slot))
        else {
            return;
        };
        let mut bytes = [0; 12];
        random(&mut bytes);
        if let Some(id) = sealed.seal_old(slot, fleet.tag, principal, bytes) {
            session.id = id;
        }
    }

    /// Answers a POST to a session that is not here: gives it to the process that has the session. `None` if the id names no
    /// process of the fleet.
    pub(crate) fn pass_on_old<'r>(
        &mut self,
        id: &[u8],
        content: &[u8],
        principal: Option<&str>,
        body: &mut dyn Out,
    ) -> Option<EndpointResponse<'r>> {
        let (fleet, sealed) = (self.fleet.as_mut()?, self.sealed.as_ref()?);
        let owner = sealed.open_old(id, principal).filter(|owner| *owner != fleet.tag)?;
        match fleet.life(owner) {
            Life::Alive => {
                let session = SessionRef { id, principal };
                let message = Message::Old { session, message: content };
                match fleet.publish(Recipients::One(owner), &message) {
                    true => Some(EndpointResponse::status(202)),
                    false => Some(refuse(body, 503, code::INTERNAL, "Overloaded: try again")),
                }
            }
            Life::Gone => None,
            Life::Unheard | Life::Unknown => {
                Some(refuse(body, 503, code::INTERNAL, "The process of the session is out of reach: try again"))
            }
        }
    }

    /// Handles a message of a session of this process that came to another one.
    pub(super) fn hear_old<S>(&mut self, app: &mut App<'_, S>, session: SessionRef<'_>, content: &[u8]) {
        let Some(slot) = self.old_session(session.id, session.principal) else { return };
        let Some(fleet) = &mut self.fleet else { return };
        if !fleet.has_waiting(session) && self.unread_stream_of(slot).is_none() {
            return self.take_old(app, session, content);
        }
        // A client that sends more and reads nothing would wait for ever: the end of its stream informs it.
        let Some(fleet) = &mut self.fleet else { return };
        if !fleet.old.add(session, content, &fleet.limits) {
            self.end_session(app, slot);
        }
    }

    /// Handles messages whose streams were read, each at most once.
    pub(super) fn go_on_old<S>(&mut self, app: &mut App<'_, S>) {
        let number = self.fleet.as_ref().map_or(0, |fleet| fleet.old.waiting.len());
        let mut later = VecDeque::new();
        for _ in 0..number {
            let Some(message) = self.fleet.as_mut().and_then(|fleet| fleet.old.waiting.pop_front()) else { break };
            let slot = self.old_session(&message.id, message.principal.as_deref());
            let is_behind = later.iter().any(|other: &OldMessage| other.id == message.id);
            if slot.is_some_and(|slot| is_behind || self.unread_stream_of(slot).is_some()) {
                later.push_back(message);
                continue;
            }
            if let Some(fleet) = &mut self.fleet {
                fleet.old.bytes -= message.content.len().min(fleet.old.bytes);
            }
            self.take_old(app, message.session(), &message.content);
        }
        if let Some(fleet) = &mut self.fleet {
            fleet.old.waiting = later;
        }
    }

    fn take_old<S>(&mut self, app: &mut App<'_, S>, session: SessionRef<'_>, content: &[u8]) {
        let Some(slot) = self.old_session(session.id, session.principal) else { return };
        if !self.old_message(app, slot, content, session.principal) {
            self.end_session(app, slot);
        }
    }
}
