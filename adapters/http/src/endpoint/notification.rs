//! Notifications that belong to no request.

use mcp_sansio::server::{NotifyStatus, Server, ServerChange};
use mcp_sansio::sink::Out;

use super::Endpoint;
use super::session::{Hashed, Sessions};
use super::stream::{Purpose, Stream, Streams};

impl<'m> Endpoint<'m> {
    /// Sends a change, once, to each session and each listen that wants it, in a [fleet](Endpoint::fleet) to those of all processes
    /// ([subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions)).
    pub fn publish(&mut self, change: ServerChange<'_>) {
        self.publish_everywhere(None, change);
    }

    /// Sends a change to the sessions and listens of one principal, in a [fleet](Endpoint::fleet) to those of all processes: one that
    /// no other client can see.
    pub fn publish_to(&mut self, principal: &str, change: ServerChange<'_>) {
        self.publish_everywhere(Some(principal), change);
    }

    fn publish_everywhere(&mut self, to: Option<&str>, change: ServerChange<'_>) {
        if let Some(fleet) = &mut self.fleet {
            fleet.publish(to, change);
        }
        self.publish_here(to, change);
    }

    /// Sends a change to the clients of this process alone, or to those of one principal among them: one that another process has
    /// published, or that each sees by itself, such as one of a file that all of them watch.
    pub fn publish_here(&mut self, to: Option<&str>, change: ServerChange<'_>) {
        let to = to.map(|principal| (principal, self.requests.hash(principal)));
        publish(&mut self.requests.server, &mut self.sessions, &mut self.streams, to, change);
    }

    /// Returns the URI of each subscription to a resource, of all sessions and listens. One that several have comes several times.
    pub fn subscribed_uris(&self) -> impl Iterator<Item = &str> {
        self.requests.server.subscribed_uris()
    }

    /// Publishes the changes that handlers have published.
    pub(crate) fn publish_of_handlers(&mut self) {
        let Endpoint { requests, sessions, streams, fleet, .. } = self;
        requests.server.take_published(|server, change| {
            if let Some(fleet) = fleet {
                fleet.publish(None, change);
            }
            publish(server, sessions, streams, None, change);
        });
    }

    /// Sends a log message that belongs to no request, to each session that wants it and has a stream for it.
    pub(crate) fn log_to_all(
        &mut self,
        log: &mut dyn FnMut(&mut Server<'m>, &mut dyn Out) -> NotifyStatus,
    ) -> NotifyStatus {
        let mut sent = NotifyStatus::NotAsked;
        for slot in 0..self.streams.slots().len() as u16 {
            let of_session = |stream: &&Stream| {
                matches!(stream.purpose, Purpose::Session | Purpose::Old) && stream.session.is_some()
            };
            if self.streams.at(slot).filter(of_session).is_none() {
                continue;
            }
            // A client that does not read misses the message.
            let logged = self.on_stream(self.streams.id(slot), |server, _, out| log(server, out));
            if logged == Some(NotifyStatus::Sent) {
                sent = NotifyStatus::Sent;
            }
        }
        sent
    }
}

/// Notes a change for all clients, or for those of one principal.
fn publish(
    server: &mut Server<'_>,
    sessions: &mut Sessions<'_>,
    streams: &mut Streams<'_>,
    to: Option<Hashed<'_>>,
    change: ServerChange<'_>,
) {
    if to.is_none() {
        server.publish(change);
    }
    for session in sessions.all_mut(to.map(|(principal, _)| principal)) {
        session.peer.record(change);
        if to.is_some() {
            server.publish_in(session.scope, change);
        }
    }
    for slot in 0..streams.slots().len() as u16 {
        let Some(stream) = streams.at(slot).filter(|stream| stream.purpose != Purpose::Post) else { continue };
        if to.is_some_and(|(_, hash)| stream.owner == Some(hash)) {
            server.publish_in(stream.scope, change);
        }
        streams.stir(slot);
    }
}
