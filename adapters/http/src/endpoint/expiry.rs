//! Work of the time: ends idle sessions, streams whose client does not come back, and the whole endpoint.

use mcp_sansio::server::Millis;

use super::stream::{Purpose, Stream};
use super::{App, Endpoint};

impl Endpoint<'_> {
    /// Sets the time: ends idle sessions, and forgets answers whose client did not come back in time.
    pub fn expire<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.tick(now);
        self.expire_sessions(app);
        self.expire_streams();
        self.resume_ready(app);
        // Handlers may just have answered on streams without a connection.
        self.streams.stamp(now);
        let (log, slots) = self.streams.log_mut();
        log.release(slots);
    }

    fn expire_sessions<S>(&mut self, app: &mut App<'_, S>) {
        while let Some((slot, used)) = self.sessions.oldest()
            && self.now.saturating_sub(used) >= self.config.session_idle
        {
            self.end_session(app, slot);
        }
    }

    /// Ends streams whose time is over, and reads no others.
    fn expire_streams(&mut self) {
        let (now, within, keep_alive) = (self.now, self.config.resume_within, self.config.keep_alive);
        let has_come = |since: Millis, after| now.saturating_sub(since) >= after;
        while let Some((slot, since)) = self.streams.oldest_resting()
            && has_come(since, within)
        {
            self.free_stream(slot);
        }
        // The loss of its stream cancels no request, and the time to come back begins again with the answer. But
        // requests to the client on that stream are given up.
        while let Some((slot, noted)) = self.streams.oldest_waiting()
            && noted < now
            && has_come(noted, within)
        {
            let exchange_id = self.streams.at(slot).map_or(0, |stream| stream.exchange_id);
            if self.requests.has_exchange(exchange_id) {
                self.requests.server.end_questions(exchange_id);
                self.streams.look_again(slot, now);
            } else {
                self.streams.answered(&mut self.sessions, slot);
            }
        }
        while let Some((slot, written)) = self.streams.oldest_attached()
            && keep_alive > 0
            && has_come(written, keep_alive)
        {
            self.streams.remind(slot);
        }
    }

    /// Returns the time, in milliseconds, by which to call [`expire`](Endpoint::expire). There may be no work
    /// then.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let mut soonest = self.requests.server.next_deadline();
        let mut note = |since: Option<(u16, Millis)>, after: Millis| {
            if let Some((_, since)) = since.filter(|_| after > 0) {
                let at = since.saturating_add(after);
                soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
            }
        };
        note(self.sessions.oldest(), self.config.session_idle);
        note(self.streams.oldest_attached(), self.config.keep_alive);
        note(self.streams.oldest_waiting(), self.config.resume_within);
        note(self.streams.oldest_resting().filter(|(_, since)| *since != Millis::MAX), self.config.resume_within);
        // Only `expire` gives the time since which a stream rests.
        if self.streams.has_unstamped() { Some(0) } else { soonest }
    }

    pub(crate) fn tick(&mut self, now: Millis) {
        if now < self.now {
            self.streams.set_back(now);
            self.sessions.set_back(now);
        }
        self.now = now;
        self.streams.stamp(now);
        self.requests.server.expire(now);
    }

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

    /// Ends all for a shutdown: listens end, and open requests get an error. Pull the streams to their ends.
    pub fn shut_down(&mut self) {
        self.requests.server.end_listens();
        for slot in 0..self.streams.slots().len() {
            self.streams.end(slot as u16);
        }
        for slot in 0..self.requests.server.capacity() {
            let Some(token) = self.requests.server.token_at(slot) else { continue };
            // A reply in windows has begun and ends by itself.
            let streams = self
                .requests
                .server
                .transport_id(token)
                .and_then(|exchange_id| self.requests.server.streaming(exchange_id))
                == Some(token);
            let attached = self.stream_of(token).and_then(|id| self.streams.get(id)).is_some_and(Stream::is_attached);
            if streams && attached {
                continue;
            }
            let told = self
                .on_stream_of(token, |server, _, out| server.abandon_request(token, "The server is going away", out));
            if told != Some(Ok(())) {
                self.requests.server.forget(token);
            }
        }
    }
}
