//! An end in order: no further requests, and time for those in flight.

use super::stream::Purpose;
use super::{App, Endpoint};

impl Endpoint<'_> {
    /// Begins an end in order. Requests in flight may finish; when they had enough time, call
    /// [`shut_down`](Endpoint::shut_down).
    ///
    /// - Further requests, and streams of sessions, get 503 with `Retry-After`. Notifications and responses are taken, and a
    ///   client may come back for an answer with `Last-Event-ID`.
    /// - Listens of 2026-07-28 get their result, and their streams end
    ///   ([graceful closure](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#graceful-closure)).
    ///   Streams of sessions end. A stream of HTTP with SSE ends after the last answer of its session.
    /// - Questions to clients end with [`InputError::Closed`](mcp_sansio::service::InputError::Closed), because their answers
    ///   would come over new connections: their handlers run again at once.
    ///
    /// Pull the streams that are [`ready`](Endpoint::ready). A second call does nothing.
    pub fn drain<S>(&mut self, app: &mut App<'_, S>) {
        if core::mem::replace(&mut self.draining, true) {
            return;
        }
        self.requests.server.end_listens();
        for slot in 0..self.streams.slots().len() as u16 {
            let Some(&stream) = self.streams.at(slot) else { continue };
            self.requests.server.end_questions(stream.exchange_id);
            match stream.purpose {
                Purpose::Session | Purpose::Old => self.streams.end(slot),
                Purpose::Listen => self.streams.stir(slot),
                Purpose::Post => {}
            }
        }
        self.resume_ready(app);
    }

    /// Returns `true` after [`drain`](Endpoint::drain).
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.draining
    }
}
