//! The other processes that serve the same clients: changes and ends of sessions go to them, and come from them.

use core::fmt;

use mcp_sansio::server::{Millis, ServerChange};

use super::Endpoint;

/// The other processes of a server, behind the same proxy. `mcp-sansio-fleet` reaches them over Redis. No function waits.
pub trait Fleet: fmt::Debug + Send {
    /// Publishes a change at all other processes, with `to` to the clients of that principal ([`Endpoint::publish_here`]). Where it
    /// may be lost, they publish [`ServerChange::All`].
    fn publish(&mut self, to: Option<&str>, change: ServerChange<'_>);

    /// Ends a session at all other processes (`Endpoint::end_session_here`), also at those that start later, until its id is over.
    /// Called when the session has ended, and when it gets a stream, a subscription or a log level, which this process alone knows.
    fn end_session(&mut self, session: &[u8; 16], until: Millis);
}

impl<'m> Endpoint<'m> {
    /// Makes the endpoint one of several processes that serve the same clients. With `Endpoint::seal_sessions` (feature `alloc`)
    /// each of them serves a session, until it has a stream, a subscription or a log level at one.
    #[must_use]
    pub fn fleet(self, fleet: &'m mut dyn Fleet) -> Self {
        Endpoint { fleet: Some(fleet), ..self }
    }
}
