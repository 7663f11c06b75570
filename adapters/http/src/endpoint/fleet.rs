//! The other processes that serve the same clients: changes and ends of sessions go to them, and come from them.

use core::fmt;

use mcp_sansio::server::{Millis, ServerChange};

use super::{App, Endpoint};

/// The other processes of a server, behind the same proxy. `mcp-sansio-fleet` reaches them over Redis. No function waits.
pub trait Fleet: fmt::Debug + Send {
    /// Publishes a change at all other processes ([`Endpoint::publish_here`]). Where it may be lost, they publish
    /// [`ServerChange::All`].
    fn publish(&mut self, change: ServerChange<'_>);

    /// Ends a session at all other processes ([`Endpoint::end_session_here`]), also at those that start later, until its id is over.
    /// Called when the session has ended, and when it gets a stream, a subscription or a log level, which this process alone knows.
    fn end_session(&mut self, session: &[u8; 16], until: Millis);
}

impl<'m> Endpoint<'m> {
    /// Makes the endpoint one of several processes that serve the same clients. With `Endpoint::seal_sessions` (feature `seal`)
    /// each of them serves a session, until it has a stream, a subscription or a log level at one.
    #[must_use]
    pub fn fleet(self, fleet: &'m mut dyn Fleet) -> Self {
        Endpoint { fleet: Some(fleet), ..self }
    }

    /// Ends a session that another process has ended, or serves alone: its requests get 404 until its id is over. `session` is the
    /// beginning of its sealed id.
    #[cfg_attr(not(all(feature = "seal", feature = "alloc")), allow(unused_variables, reason = "for sealed ids"))]
    pub fn end_session_here<S>(&mut self, app: &mut App<'_, S>, session: &[u8; 16], until: Millis) {
        #[cfg(all(feature = "seal", feature = "alloc"))]
        if let Some(sealed) = &mut self.sealed {
            let slot = sealed.slot_of(session);
            sealed.remember_ended(*session, until, self.now);
            if let Some(slot) = slot {
                self.end_session(app, slot);
            }
        }
    }

    /// Ends a session at the other processes, once.
    #[cfg_attr(not(all(feature = "seal", feature = "alloc")), allow(unused_variables, reason = "for sealed ids"))]
    pub(crate) fn end_elsewhere(&mut self, slot: u16) {
        #[cfg(all(feature = "seal", feature = "alloc"))]
        if let (Some(fleet), Some(sealed), Some(session)) = (&mut self.fleet, &mut self.sealed, self.sessions.get(slot))
            && let Some((nonce, until)) = sealed.keep_here(&session.id)
        {
            fleet.end_session(&nonce, until);
        }
    }
}
