//! Notifications that concern no request.

use mcp_sansio::protocol::Level;
use mcp_sansio::server::{Change, Engine, Scope};

use super::stream::{Purpose, StreamOut};
use super::{App, Endpoint};

impl<'m, const N: usize> Endpoint<'m, N> {
    /// Tells that something has changed: every session and every listen that wants to hear of it does, once.
    pub fn publish(&mut self, change: Change<'_>) {
        let server: &mut Engine<'m> = &mut self.server;
        server.publish(change);
        for session in self.sessions.slots_mut().iter_mut().filter(|session| session.live) {
            session.peer.note(change);
        }
        self.stirred.set(true);
        for stream in self.streams.slots_mut() {
            stream.ready |= matches!(stream.purpose, Purpose::Session | Purpose::Old | Purpose::Listen);
        }
    }

    /// Sends a log message on behalf of nobody in particular, to each session that wants messages of that level and
    /// hears what concerns no request.
    pub fn announce<S>(&mut self, app: &App<'_, S>, level: Level, message: &str) {
        self.stirred.set(true);
        for slot in 0..self.streams.slots().len() {
            let Some(stream) = self.streams.slots().get(slot) else { break };
            let session = stream.session.filter(|_| matches!(stream.purpose, Purpose::Session | Purpose::Old));
            let Some(session) = session.filter(|_| !stream.is_free()) else { continue };
            let Some(session) = self.sessions.slots_mut().get_mut(usize::from(session)) else { continue };
            let server: &mut Engine<'m> = &mut self.server;
            server.swap_peer(&mut session.peer, session.scope);
            let mut out = StreamOut::new(&mut self.log, self.streams.slots_mut(), slot as u16);
            // A client that does not read misses it.
            let _ = server.log(app.service.about(), None, level, None, format_args!("{message}"), &mut out);
            server.swap_peer(&mut session.peer, Scope(0));
        }
    }
}
