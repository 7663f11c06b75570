//! Messages about a request after its POST was handled: late answers, progress, log messages, and messages of
//! handlers that run again. All of them go to the request's own stream.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{NotifyStatus, Peer, Progress, RequestToken, RespondError, Server};
use mcp_sansio::service::{HandlerResult, LateRequest, MessageSource};
use mcp_sansio::sink::Out;

use super::events::StreamOut;
use super::ids::StreamId;
use super::share::RequestOwner;
use super::{App, Endpoint};

impl<'m> Endpoint<'m> {
    /// Answers a request that was put off; see [`Service::answer`](mcp_sansio::service::Service::answer).
    ///
    /// # Errors
    /// [`RespondError::Stale`] if the request was cancelled or its client is gone; [`RespondError::WrongKind`] if its method
    /// is another one. After any other error the request stays open and may be answered again.
    pub fn answer<S, R: LateRequest>(
        &mut self,
        app: &mut App<'_, S>,
        request: R,
        answer: impl FnOnce(&mut S, &mut R::Context<'_>) -> HandlerResult,
    ) -> Result<(), RespondError> {
        let answered = self
            .with_stream_of(request.token(), |server, out| app.service.answer(app.state, request, server, out, answer));
        answered.unwrap_or(Err(RespondError::Stale)).map(drop)
    }

    /// Resumes a request that its handler [suspended](mcp_sansio::service::RequestContext::suspend): runs the handler
    /// again, at once or as soon as the request's stream has room. Its requests to the client go out on that
    /// stream.
    ///
    /// # Errors
    /// [`RespondError::Stale`] if the request was answered or cancelled or its client is gone;
    /// [`RespondError::WrongKind`] if it is not suspended.
    pub fn resume<S>(&mut self, app: &mut App<'_, S>, token: RequestToken) -> Result<(), RespondError> {
        self.stream_of(token).ok_or(RespondError::Stale)?;
        self.requests.server.wake(token)?;
        self.resume_ready(app);
        Ok(())
    }

    /// Returns `true` if [`resume`](Endpoint::resume) can run the handler of a request again: it suspended the
    /// request, and the client is connected.
    #[must_use]
    pub fn is_suspended(&self, token: RequestToken) -> bool {
        self.requests.server.is_suspended(token) && self.stream_of(token).is_some()
    }

    /// Sends `notifications/progress` for a request that was put off.
    pub fn progress(&mut self, token: RequestToken, progress: Progress<'_>) -> NotifyStatus {
        let told = self.on_stream_of(token, |server, _, out| server.progress(token, progress, out));
        told.unwrap_or(NotifyStatus::Stale)
    }

    /// Sends `notifications/message` for a request that was put off, or for none: then to each session that has a stream for
    /// it. Only to clients that want messages of that level
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    pub fn log<S>(
        &mut self,
        app: &App<'_, S>,
        token: Option<RequestToken>,
        level: LoggingLevel,
        logger: Option<&str>,
        message: impl core::fmt::Display,
    ) -> NotifyStatus {
        let about = app.service.about();
        self.log_with(token, &mut |server, out| server.log(about, token, level, logger, format_args!("{message}"), out))
    }

    /// Does the same as [`log`](Endpoint::log) with any JSON as `data`.
    pub fn log_data<S>(
        &mut self,
        app: &App<'_, S>,
        token: Option<RequestToken>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: Raw<'_>,
    ) -> NotifyStatus {
        let about = app.service.about();
        self.log_with(token, &mut |server, out| server.log_data(about, token, level, logger, data, out))
    }

    fn log_with(
        &mut self,
        token: Option<RequestToken>,
        log: &mut dyn FnMut(&mut Server<'m>, &mut dyn Out) -> NotifyStatus,
    ) -> NotifyStatus {
        match token {
            Some(token) => self.on_stream_of(token, |server, _, out| log(server, out)).unwrap_or(NotifyStatus::Stale),
            None => self.log_to_all(log),
        }
    }

    /// Calls `act` with the server and the stream of a request, for work that [`answer`](Endpoint::answer) and
    /// [`progress`](Endpoint::progress) do not cover, and publishes the changes of handlers that ran in it. Returns `None` if the
    /// stream is gone.
    pub fn with_stream_of<T>(
        &mut self,
        token: RequestToken,
        act: impl FnOnce(&mut Server<'m>, &mut dyn Out) -> T,
    ) -> Option<T> {
        let done = self.on_stream_of(token, |server, _, out| act(server, out));
        self.publish_of_handlers();
        done
    }

    /// Returns the stream on which a request is answered.
    #[must_use]
    pub fn stream_of(&self, token: RequestToken) -> Option<StreamId> {
        let exchange_id = self.requests.server.transport_id(token)?;
        let slot = RequestOwner::from_transport_data(self.requests.server.transport_data(token)?).stream;
        let stream = self.streams.at(slot)?;
        let answers = stream.exchange_id == exchange_id && stream.is_of_requests();
        answers.then(|| self.streams.id(slot))
    }

    /// Calls a function with the stream on which a request is answered. Returns `None` if it is gone.
    pub(crate) fn on_stream_of<T>(
        &mut self,
        token: RequestToken,
        act: impl FnOnce(&mut Server<'m>, Option<&str>, &mut dyn Out) -> T,
    ) -> Option<T> {
        let id = self.stream_of(token)?;
        // The request has its place already.
        self.requests.server.set_most_in_flight(usize::MAX);
        self.on_stream(id, |server, principal, out| act(server, principal, out))
    }

    /// Calls a function with a stream, and with the server as that of its client. Returns `None` if it is gone.
    pub(crate) fn on_stream<T>(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut Server<'m>, Option<&str>, &mut StreamOut<'_, 'm>) -> T,
    ) -> Option<T> {
        let &stream = self.streams.at(id.slot)?;
        let (session, principal) = match stream.session {
            Some(slot) => (Some(self.sessions.get(slot)?), self.sessions.principal(slot)),
            None => (None, None),
        };
        let mut peer = session.map_or(Peer::NEW, |session| session.peer);
        let mut out = self.streams.out(id.slot, self.requests.server.streaming(stream.exchange_id).is_some());
        let done = self.requests.server.with_peer(&mut peer, stream.scope, |server| act(server, principal, &mut out));
        drop(out);
        if let Some(session) = stream.session.and_then(|slot| self.sessions.get_mut(slot)) {
            session.peer = peer;
        }
        if !self.requests.has_exchange(stream.exchange_id) {
            self.streams.answered(&mut self.sessions, id.slot);
        }
        self.streams.stir(id.slot);
        Some(done)
    }

    /// Runs handlers whose input requests were answered, each on its own stream, and publishes their changes.
    pub(crate) fn resume_ready<S>(&mut self, app: &mut App<'_, S>) {
        self.run_ready(app);
        self.publish_of_handlers();
    }

    /// Runs handlers whose input requests were answered. Inside of a request, where the peer of a session is a copy: its end
    /// publishes their changes.
    pub(crate) fn run_ready<S>(&mut self, app: &mut App<'_, S>) {
        let mut first = 0;
        while let Some((number, token)) = self.requests.server.ready_from(first) {
            first = number + 1;
            let resumed = self.on_stream_of(token, |server, principal, out| {
                app.service.resume_from(&MessageSource::LINE.principal(principal), app.state, token, server, out)
            });
            // Its own stream is full and must be read first; the others do not wait for it.
            if resumed.is_none() {
                self.requests.server.forget(token);
            }
        }
    }

    /// Gives up the requests of an exchange whose answer cannot be received any more, and notifies handlers that
    /// put their answer off.
    pub(crate) fn give_up_exchange<S>(&mut self, app: &mut App<'_, S>, exchange_id: u32) {
        while let Some(token) = self.requests.server.with_transport_id(exchange_id) {
            app.service.forget(app.state, token, &mut self.requests.server);
        }
    }
}
