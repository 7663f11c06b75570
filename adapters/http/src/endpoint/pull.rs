//! Pulls streams: writes their messages into the sinks of their connections.

use mcp_sansio::FullError;
use mcp_sansio::server::{Millis, Peer, PullStatus};
use mcp_sansio::sink::Sink;

use super::events::{Written, write_priming};
use super::ids::StreamId;
use super::stream::{Purpose, Stream};
use super::{App, Endpoint};

/// The result of [`Endpoint::pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum StreamStatus {
    /// There is no message.
    Idle,
    /// There are more bytes: send the written ones, then pull again.
    More,
    /// The stream ended: end the response.
    End,
    /// The stream does not exist any more: end the response.
    Stale,
}

/// A sink with the limit of one turn.
struct TurnSink<'o> {
    left: usize,
    out: &'o mut dyn Sink,
}

impl Sink for TurnSink<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let left = self.left.checked_sub(bytes.len()).ok_or(FullError::Now)?;
        self.out.put(bytes)?;
        self.left = left;
        Ok(())
    }

    fn room(&self) -> usize {
        self.out.room().min(self.left)
    }
}

impl Endpoint<'_> {
    /// Returns the streams that have, or may have, messages.
    pub fn ready(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.streams.ready()
    }

    /// Returns `true` if nothing decides yet whether the answer on a stream is a body.
    pub(crate) fn may_refuse(&self, id: StreamId) -> bool {
        let is_untouched = |stream: &Stream| stream.next_event == 1 && stream.purpose == Purpose::Post;
        let is_modern = |stream: &Stream| stream.session.is_none();
        self.config.defers() && self.streams.get(id).is_some_and(|stream| is_untouched(stream) && is_modern(stream))
    }

    /// Takes the answer on a stream of which nothing was written, if it is an error whose status is not 200: writes it to `body`,
    /// returns the status, and frees the stream.
    pub(crate) fn take_refusal(&mut self, id: StreamId, body: &mut dyn Sink) -> Option<u16> {
        self.streams.get(id).filter(|_| self.config.defers())?;
        let status = self.streams.write_refusal(id.slot, body)?;
        self.free_stream(id.slot);
        Some(status)
    }

    /// Writes the messages of a stream into the sink of its connection. Call it when the stream is
    /// [`ready`](Endpoint::ready) and whenever its socket has room. Other calls do no harm.
    pub fn pull<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> StreamStatus {
        let mut turn = TurnSink { left: self.config.turn.max(1024), out };
        let room = turn.room();
        let pulled = self.pull_some(id, app, now, &mut turn);
        if turn.room() != room {
            // A handler that could not run because the log or this stream was full has room now, and so has another stream.
            self.resume_ready(app);
            self.streams.feed();
        }
        if pulled == StreamStatus::More && self.streams.get(id).is_some() {
            self.streams.pulled(id.slot, true);
        }
        pulled
    }

    fn pull_some<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> StreamStatus {
        self.tick(now);
        self.resume_ready(app);
        if !self.streams.get(id).is_some_and(Stream::is_attached) {
            return StreamStatus::Stale;
        }
        if self.greet(id, out).is_err() {
            return StreamStatus::More;
        }
        let room = out.room();
        let mut waits = false;
        while !waits {
            let before = out.room();
            let more = self.fill(id, app);
            if self.streams.write_events(id.slot, out) == Written::Full {
                self.streams.wrote(id.slot, now);
                return StreamStatus::More;
            }
            if !more {
                break;
            }
            // Messages that never fit do not get here.
            waits = out.room() == before;
        }
        if out.room() != room {
            self.streams.wrote(id.slot, now);
        }
        if !waits {
            return self.finish_pull(id, app, now, out);
        }
        self.streams.wait_for_room(id.slot);
        self.keep_alive(id, now, out)
    }

    /// Decides whether the stream ends, after all its messages were written.
    fn finish_pull<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> StreamStatus {
        let Some(&stream) = self.streams.get(id) else { return StreamStatus::Stale };
        self.streams.pulled(id.slot, false);
        if self.is_over(&stream) {
            self.free_stream(id.slot);
            if let Some(session) = stream.session.filter(|_| stream.purpose == Purpose::Old) {
                // A session of HTTP with SSE ends with its stream.
                self.end_session(app, session);
            }
            return StreamStatus::End;
        }
        let released =
            stream.purpose == Purpose::Post && !stream.hung_up && self.requests.server.is_released(stream.exchange_id);
        if released && self.hang_up(id, now) {
            return StreamStatus::End;
        }
        self.keep_alive(id, now, out)
    }

    /// Returns `true` if no more messages can come on a stream.
    fn is_over(&self, stream: &Stream) -> bool {
        match stream.purpose {
            Purpose::Post => !self.requests.has_exchange(stream.exchange_id),
            Purpose::Listen => !self.requests.server.has_subscriptions(stream.scope),
            Purpose::Session => stream.ended,
            Purpose::Old => stream.ended && !self.owes_answers(stream),
        }
    }

    /// Returns `true` if an endpoint that drains still has to answer on a stream of HTTP with SSE.
    fn owes_answers(&self, stream: &Stream) -> bool {
        self.draining && self.requests.has_exchange(stream.exchange_id)
    }

    /// Writes a comment if no event was written for a while.
    fn keep_alive(&mut self, id: StreamId, now: Millis, out: &mut dyn Sink) -> StreamStatus {
        let written = self.streams.get(id).map_or(now, |stream| stream.noted);
        if self.config.keep_alive > 0 && now.saturating_sub(written) >= self.config.keep_alive {
            if out.put(b":\n\n").is_err() {
                return StreamStatus::More;
            }
            self.streams.wrote(id.slot, now);
        }
        StreamStatus::Idle
    }

    /// Closes the connection of a client that can and will come back.
    fn hang_up(&mut self, id: StreamId, now: Millis) -> bool {
        match self.streams.get_mut(id).filter(|stream| stream.primed) {
            Some(stream) => {
                stream.hung_up = true;
                self.streams.detach(&mut self.sessions, id.slot, true, now);
                true
            }
            None => false,
        }
    }

    /// Writes the bytes before the first event.
    fn greet(&mut self, id: StreamId, out: &mut dyn Sink) -> Result<(), FullError> {
        let (retry, post_path) = (self.config.retry, self.config.post_path);
        let session = self.streams.get(id).and_then(|stream| stream.session);
        let session = session.and_then(|slot| self.sessions.get(slot)).map(|session| session.id.as_str());
        let Some(stream) = self.streams.get_mut(id).filter(|stream| !stream.greeted) else { return Ok(()) };
        match (stream.purpose, session) {
            (Purpose::Old, Some(session)) => {
                let (begin, id) = (b"event: endpoint\ndata: ", session.as_bytes());
                stream.put_head(&[begin, post_path.as_bytes(), b"?session=", id, b"\n\n"], out)?;
            }
            _ if stream.primed => write_priming(stream, id.slot, retry, out)?,
            _ => {}
        }
        (stream.greeted, stream.head) = (true, 0);
        Ok(())
    }

    /// Puts windows of a large reply and changes into the log. Returns `true` if there may be more after these
    /// are written.
    fn fill<S>(&mut self, id: StreamId, app: &mut App<'_, S>) -> bool {
        let Some(stream) = self.streams.at(id.slot) else { return false };
        if stream.ended && stream.purpose == Purpose::Session {
            // A newer stream sends the session's messages.
            return false;
        }
        let (exchange_id, purpose, scope, session) = (stream.exchange_id, stream.purpose, stream.scope, stream.session);
        let of_requests = stream.is_of_requests();
        let server = &mut self.requests.server;
        if let Some(token) = server.streaming(exchange_id).filter(|_| of_requests) {
            // Changes come after it.
            let _ = app.service.pump(app.state, token, server, &mut self.streams.out(id.slot, true));
            return true;
        }
        let mut nobody = Peer::NEW;
        let peer = match (purpose, session) {
            (Purpose::Session | Purpose::Old, Some(slot)) => match self.sessions.get_mut(slot) {
                Some(session) => &mut session.peer,
                None => return false,
            },
            (Purpose::Listen, _) => &mut nobody,
            _ => return false,
        };
        let mut out = self.streams.out(id.slot, false);
        server.with_peer(peer, scope, |server| app.service.pull(app.state, server, &mut out)) == PullStatus::More
    }
}
