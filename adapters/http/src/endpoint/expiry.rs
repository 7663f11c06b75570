//! What ends by itself, when its time has come: sessions, streams that nobody comes back to, the whole endpoint.

use mcp_sansio::server::{Millis, Token};

use super::stream::{Link, Purpose};
use super::{App, Endpoint};

impl<const N: usize> Endpoint<'_, N> {
    /// Tells the time: ends sessions that are idle, forgets answers that nobody comes back for.
    pub fn expire<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.tick(now);
        if self.soonest <= now {
            self.expire_all(app, now);
        }
        self.go_on(app);
        if self.soonest <= now {
            // Handlers have just answered on streams that nobody reads: the time to come back for that begins now.
            self.expire_all(app, now);
        }
        self.log.release(self.streams.slots_mut());
    }

    /// Looks at every session and every stream, at each once.
    fn expire_all<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.soonest = Millis::MAX;
        self.use_heard_sessions(now);
        for slot in 0..self.sessions.slots().len() {
            self.expire_session(app, slot, now);
        }
        for slot in 0..self.streams.slots().len() {
            self.expire_stream(slot, now);
        }
    }

    /// A session with an open stream is in use, even without requests.
    fn use_heard_sessions(&mut self, now: Millis) {
        let sessions = self.sessions.slots_mut();
        let attached = self.streams.slots().iter().filter(|stream| stream.link == Link::Attached);
        for slot in attached.filter_map(|stream| stream.session) {
            let Some(session) = sessions.get_mut(usize::from(slot)) else { continue };
            if now.saturating_sub(session.used) >= self.config.session_idle {
                session.used = now;
            }
        }
    }

    fn expire_session<S>(&mut self, app: &mut App<'_, S>, slot: usize, now: Millis) {
        let Some(session) = self.sessions.slots().get(slot).filter(|session| session.live && !session.old) else {
            return;
        };
        let used = session.used;
        match now.saturating_sub(used) >= self.config.session_idle {
            true => self.end_session(app, slot as u16),
            false => self.due(self.config.session_idle, used),
        }
    }

    fn expire_stream(&mut self, slot: usize, now: Millis) {
        let Some(stream) = self.streams.slots_mut().get_mut(slot) else { return };
        match stream.link {
            // Losing its stream cancels nothing, and the time for coming back begins anew with the answer. But what was asked
            // on it is not waited for any longer.
            Link::Detached { since } if stream.purpose == Purpose::Post && self.server.has_route(stream.route) => {
                let gone = now.saturating_sub(since) >= self.config.resume_within;
                if gone {
                    self.server.end_questions(stream.route);
                }
                self.due(self.config.resume_within, if gone { now } else { since });
            }
            Link::Detached { since } if since > now => {
                stream.link = Link::Detached { since: now };
                self.due(self.config.resume_within, now);
            }
            Link::Detached { since } if now.saturating_sub(since) >= self.config.resume_within => {
                self.free_stream(slot as u16);
            }
            Link::Detached { since } => self.due(self.config.resume_within, since),
            // One that is ready is about to be pulled, or waits for its socket.
            Link::Attached if self.config.keep_alive > 0 && !stream.ready => {
                let written = stream.written;
                stream.ready = now.saturating_sub(written) >= self.config.keep_alive;
                match stream.ready {
                    true => self.stirred.set(true),
                    false => self.due(self.config.keep_alive, written),
                }
            }
            _ => {}
        }
    }

    /// Something is due so long after a time; 0 for never.
    pub(crate) fn due(&mut self, after: Millis, since: Millis) {
        if after > 0 {
            self.soonest = self.soonest.min(since.saturating_add(after));
        }
    }

    /// The time at which [`expire`](Endpoint::expire) is to be called; it may then have nothing to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let own = (self.soonest != Millis::MAX).then_some(self.soonest);
        own.into_iter().chain(self.server.next_deadline()).min()
    }

    pub(crate) fn tick(&mut self, now: Millis) {
        self.now = now;
        self.server.expire(now);
    }

    /// The server is going away: listens end, what is open is answered with an error. Pull the streams to their ends.
    pub fn shut_down(&mut self) {
        self.server.end_listens();
        self.stirred.set(true);
        for slot in 0..self.streams.slots().len() {
            let id = self.stream_id(slot as u16);
            let Some(stream) = self.stream_mut(id).filter(|stream| !stream.is_free()) else { continue };
            stream.ended = true;
            stream.ready = true;
        }
        let open: [Option<Token>; N] = core::array::from_fn(|slot| self.server.token_at(slot));
        for token in open.into_iter().flatten() {
            // A reply in windows is under way already, and ends by itself.
            let streams = self.server.route(token).and_then(|route| self.server.streaming(route)) == Some(token);
            let attached = self.stream_of(token).is_some_and(|id| self.is_attached(id));
            if streams && attached {
                continue;
            }
            let told =
                self.on_stream_of(token, |server, _, out| server.give_up(token, "The server is going away", out));
            if told != Some(Ok(())) {
                self.server.forget(token);
            }
        }
    }
}
