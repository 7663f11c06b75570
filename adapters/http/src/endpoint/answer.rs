//! What is said of a request when its POST has been taken already: late answers, progress, log messages, and what
//! handlers say that run again. All of it goes to the request's own stream.

use mcp_sansio::protocol::Level;
use mcp_sansio::server::{Engine, Millis, Progress, Scope, SendError, Token, Told};
use mcp_sansio::service::{Call, Complete, Get, Other, Outcome, Read, Step};
use mcp_sansio::sink::Out;

use super::exchange::origin_of;
use super::session::Session;
use super::stream::{Link, Purpose, Stream, StreamId, StreamOut};
use super::{App, Endpoint};

impl<'m, const N: usize> Endpoint<'m, N> {
    /// Answers a tool call that was put off, see [`Service::answer`](mcp_sansio::service::Service::answer).
    ///
    /// # Errors
    /// [`SendError::Stale`] if the request was cancelled or its client is gone; [`SendError::WrongKind`] if it is no
    /// `tools/call`; the other ones leave it open, and it may be answered again.
    pub fn answer<S>(
        &mut self,
        app: &mut App<'_, S>,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.answer_by(token, |server, out| app.service.answer(app.state, token, server, out, answer))
    }

    /// Answers a read of a resource that was put off, see [`Service::answer_read`](mcp_sansio::service::Service::answer_read).
    ///
    /// # Errors
    /// As [`answer`](Endpoint::answer).
    pub fn answer_read<S>(
        &mut self,
        app: &mut App<'_, S>,
        token: Token,
        uri: &str,
        answer: impl FnOnce(&mut S, &mut Read<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.answer_by(token, |server, out| app.service.answer_read(app.state, token, uri, server, out, answer))
    }

    /// Answers a prompt that was put off, see [`Service::answer_prompt`](mcp_sansio::service::Service::answer_prompt).
    ///
    /// # Errors
    /// As [`answer`](Endpoint::answer).
    pub fn answer_prompt<S>(
        &mut self,
        app: &mut App<'_, S>,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Get<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.answer_by(token, |server, out| app.service.answer_prompt(app.state, token, server, out, answer))
    }

    /// Answers a completion that was put off, see [`Service::answer_complete`](mcp_sansio::service::Service::answer_complete).
    ///
    /// # Errors
    /// As [`answer`](Endpoint::answer).
    pub fn answer_complete<S>(
        &mut self,
        app: &mut App<'_, S>,
        token: Token,
        value: &str,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.answer_by(token, |server, out| app.service.answer_complete(app.state, token, value, server, out, answer))
    }

    /// Answers a request that the protocol does not know and that was put off, see [`Service::answer_other`](mcp_sansio::service::Service::answer_other).
    ///
    /// # Errors
    /// As [`answer`](Endpoint::answer).
    pub fn answer_other<S>(
        &mut self,
        app: &mut App<'_, S>,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Other<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.answer_by(token, |server, out| app.service.answer_other(app.state, token, server, out, answer))
    }

    /// Resumes a request that its handler has [suspended](mcp_sansio::service::Handling::suspend): the handler is run again
    /// at once, or as soon as the stream of its request has room. What it asks goes out on that stream.
    ///
    /// # Errors
    /// [`SendError::Stale`] if the request was answered or cancelled or its client is gone, [`SendError::WrongKind`] if it
    /// is not suspended.
    pub fn resume<S>(&mut self, app: &mut App<'_, S>, token: Token) -> Result<(), SendError> {
        self.stream_of(token).ok_or(SendError::Stale)?;
        self.server.wake(token)?;
        self.go_on(app);
        Ok(())
    }

    /// Whether [`resume`](Endpoint::resume) can run the handler of a request again: it has suspended it, and the client is
    /// there.
    #[must_use]
    pub fn is_suspended(&self, token: Token) -> bool {
        self.server.is_suspended(token) && self.stream_of(token).is_some()
    }

    fn answer_by(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut Engine<'m>, &mut dyn Out) -> Result<Step, SendError>,
    ) -> Result<(), SendError> {
        let answered = self.on_stream_of(token, |server, _, out| answer(server, out));
        answered.unwrap_or(Err(SendError::Stale)).map(drop)
    }

    /// Tells how far a request is that was put off.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>) -> Told {
        let told = self.on_stream_of(token, |server, _, out| server.progress(token, progress, out));
        told.unwrap_or(Told::Stale)
    }

    /// Sends a log message on behalf of a request that was put off, if its client wants messages of that level.
    pub fn log<S>(&mut self, app: &App<'_, S>, token: Token, level: Level, message: impl core::fmt::Display) -> Told {
        let about = app.service.about();
        let told = self.on_stream_of(token, |server, _, out| {
            server.log(about, Some(token), level, None, format_args!("{message}"), out)
        });
        told.unwrap_or(Told::Stale)
    }

    /// Does with the server what [`answer`](Endpoint::answer) and [`progress`](Endpoint::progress) do not, on the stream of a
    /// request; `None` if that is gone.
    pub fn with_stream_of<T>(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Engine<'m>, &mut dyn Out) -> T,
    ) -> Option<T> {
        self.on_stream_of(token, |server, _, out| act(server, out))
    }

    /// The stream on which a request is answered.
    #[must_use]
    pub fn stream_of(&self, token: Token) -> Option<StreamId> {
        let route = self.server.route(token)?;
        let found = self.streams.slots().iter().position(|stream| {
            !stream.is_free() && stream.route == route && matches!(stream.purpose, Purpose::Post | Purpose::Old)
        });
        found.map(|slot| self.stream_id(slot as u16))
    }

    /// Does something with the stream on which a request is answered; `None` if it is gone.
    pub(crate) fn on_stream_of<T>(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Engine<'m>, Option<&str>, &mut dyn Out) -> T,
    ) -> Option<T> {
        let id = self.stream_of(token)?;
        // It has its place already, whatever it does.
        self.server.set_most_in_flight(N);
        let (streams, log) = (self.streams.slots_mut(), &mut self.log);
        let stream = streams.get(usize::from(id.slot))?;
        let (scope, session, route) = (stream.scope, stream.session, stream.route);
        let mut nobody = Session::FREE;
        let session = match session {
            Some(slot) => self.sessions.slots_mut().get_mut(usize::from(slot))?,
            None => &mut nobody,
        };
        let mut peer = session.peer;
        let server: &mut Engine<'m> = &mut self.server;
        server.swap_peer(&mut peer, scope);
        let mut out = StreamOut::new(log, streams, id.slot);
        let done = act(server, session.principal(), &mut out);
        server.swap_peer(&mut peer, Scope(0));
        drop(out);
        session.peer = peer;
        if !self.server.has_route(route)
            && let Some(Stream { link: Link::Detached { since }, .. }) = self.streams.slots_mut().get_mut(id.slot())
        {
            // The clock of the last call does not tell when that is: `expire` does.
            *since = Millis::MAX;
            self.soonest = 0;
        }
        self.mark_ready(id);
        Some(done)
    }

    /// Runs handlers whose questions were answered, each on its own stream.
    pub(crate) fn go_on<S>(&mut self, app: &mut App<'_, S>) {
        let mut first = 0;
        while let Some((number, token)) = self.server.ready_from(first) {
            first = number + 1;
            let resumed = self.on_stream_of(token, |service_server, session, out| {
                let (server, state) = (service_server, &mut *app.state);
                let gate = ();
                let origin = origin_of(&gate, session);
                app.service.resume_from(&origin, state, token, server, out)
            });
            // Full: its own stream must be read first; the others do not wait for it.
            if resumed.is_none() {
                self.server.forget(token);
            }
        }
    }

    /// Gives up the requests of an exchange that nobody can hear any more; handlers that put their answer off are told.
    pub(crate) fn give_up_route<S>(&mut self, app: &mut App<'_, S>, route: u32) {
        for slot in 0..N {
            let token = self.server.token_at(slot).filter(|token| self.server.route(*token) == Some(route));
            if let Some(token) = token {
                app.service.forget(app.state, token, &mut self.server);
            }
        }
    }
}
