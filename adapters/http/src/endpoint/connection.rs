//! Connections of streams begin and end.

use mcp_sansio::server::Millis;

use super::ids::StreamId;
use super::stream::{Asker, Purpose};
use super::{App, Endpoint};

impl Endpoint<'_> {
    /// Returns `true` if a stream answers no request, but is open for later messages. If connections are scarce,
    /// end these first: their clients come back.
    #[must_use]
    pub fn only_listens(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| matches!(stream.purpose, Purpose::Session | Purpose::Listen))
    }

    /// Reports that the connection of a stream is gone. A client of a revision with sessions may come back for
    /// its answer. Under 2026-07-28 this
    /// [cancels](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation) the
    /// request.
    pub fn detach<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis) {
        let Some(&stream) = self.streams.get(id).filter(|stream| stream.is_attached()) else { return };
        match (stream.purpose, stream.resumable) {
            (Purpose::Old, _) => {
                self.free_stream(id.slot);
                if let Some(session) = stream.session {
                    self.end_session(app, session);
                }
            }
            (_, true) if stream.session.is_some() && self.requests.server.streaming(stream.exchange_id).is_none() => {
                let waits = self.requests.has_exchange(stream.exchange_id);
                self.streams.detach(&mut self.sessions, id.slot, waits, now);
                // Without an event id the client cannot come back, and does not know the requests that were sent
                // to it.
                if stream.seen == 1 && !(stream.primed && stream.greeted) {
                    self.requests.server.end_questions(stream.exchange_id);
                }
                self.resume_ready(app);
            }
            (_, true) => {
                // Its session is over, or a reply in windows has begun, which cannot be sent again.
                self.free_stream(id.slot);
                if stream.session.is_some() {
                    self.give_up_exchange(app, stream.exchange_id);
                }
            }
            (_, false) => {
                self.free_stream(id.slot);
                if stream.session.is_none() {
                    app.service.end_scope(app.state, stream.scope, &mut self.requests.server);
                }
            }
        }
    }

    /// Reserves a slot for a stream: a free one, or that of an answer that was sent and is only kept for a
    /// return.
    pub(crate) fn reserve_stream(&mut self, asker: Asker, exchange_id: u32) -> Option<u16> {
        self.streams.reserve_or_evict(asker, exchange_id, &mut self.sessions, self.now)
    }

    /// Sends a stream whose slot was reserved.
    pub(crate) fn send_stream(&mut self, slot: u16, purpose: Purpose) -> StreamId {
        self.streams.send(&mut self.sessions, slot, purpose, self.now)
    }

    pub(crate) fn free_stream(&mut self, slot: u16) {
        self.streams.free(&mut self.sessions, slot, self.now);
    }
}
