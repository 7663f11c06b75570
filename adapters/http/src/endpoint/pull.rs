//! Pulling streams: what they have to say goes into the sinks of their connections.

use mcp_sansio::Full;
use mcp_sansio::server::{self, Engine, Millis, Peer, Scope};
use mcp_sansio::service::Pump;
use mcp_sansio::sink::Sink;

use super::stream::{Link, Purpose, Stream, StreamId, StreamOut, Written, write_events, write_priming};
use super::{App, Endpoint};

/// What [`Endpoint::pull`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum Pull {
    /// There is nothing to say.
    Idle,
    /// There is more to say: send what there is, then pull again.
    More,
    /// That was all: end the response.
    End,
    /// There is no such stream any more: end the response.
    Stale,
}

/// A sink that takes only so much more in this turn.
struct Turn<'o> {
    left: usize,
    out: &'o mut dyn Sink,
}

impl Sink for Turn<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let left = self.left.checked_sub(bytes.len()).ok_or(Full::Now)?;
        self.out.put(bytes)?;
        self.left = left;
        Ok(())
    }

    fn room(&self) -> usize {
        self.out.room().min(self.left)
    }
}

impl<const N: usize> Endpoint<'_, N> {
    /// The streams that have something to say, or may have.
    pub fn ready(&self) -> impl Iterator<Item = StreamId> + '_ {
        let is_ready = |stream: &Stream| stream.ready && stream.link == Link::Attached;
        // Most turns make no stream ready: then none is looked at.
        self.stirred.set(self.stirred.get() && self.streams.slots().iter().any(is_ready));
        let streams = if self.stirred.get() { self.streams.slots() } else { &[] };
        let ready = streams.iter().enumerate().filter(move |(_, stream)| is_ready(stream));
        ready.map(|(slot, stream)| StreamId { slot: slot as u16, number: stream.number, visit: stream.visit })
    }

    /// Writes what a stream has to say into the sink of its connection. Call it when the stream is [`ready`](Endpoint::ready)
    /// and whenever its socket has room; it may be called at any time.
    pub fn pull<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> Pull {
        let mut turn = Turn { left: self.config.turn.max(1024), out };
        let pulled = self.pull_some(id, app, now, &mut turn);
        if pulled == Pull::More {
            self.stirred.set(true);
        }
        pulled
    }

    fn pull_some<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> Pull {
        self.tick(now);
        self.go_on(app);
        if self.stream_mut(id).is_none_or(|stream| stream.link != Link::Attached) {
            return Pull::Stale;
        }
        if self.greet(id, out).is_err() {
            return Pull::More;
        }
        let room = out.room();
        loop {
            let before = out.room();
            let more = self.fill(id, app);
            let (streams, log) = (self.streams.slots_mut(), &mut self.log);
            if write_events(streams, id.slot, log, out) == Written::Full {
                self.wrote(id, now);
                return Pull::More;
            }
            if !more {
                break;
            }
            if out.room() == before {
                // Others have taken the log: later. (What never fits does not come here.)
                self.mark_ready(id);
                return Pull::Idle;
            }
        }
        if out.room() != room {
            self.wrote(id, now);
        }
        self.finish_pull(id, app, now, out)
    }

    pub(crate) fn mark_ready(&mut self, id: StreamId) {
        self.stirred.set(true);
        if let Some(stream) = self.stream_mut(id) {
            stream.ready = true;
        }
    }

    fn wrote(&mut self, id: StreamId, now: Millis) {
        if let Some(stream) = self.stream_mut(id) {
            stream.written = now;
        }
    }

    /// Everything there is has been written: is that the end?
    fn finish_pull<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> Pull {
        let Some(stream) = self.stream_mut(id) else { return Pull::Stale };
        stream.ready = false;
        let stream = *stream;
        if self.is_over(&stream) {
            self.free_stream(id.slot);
            if let Some(session) = stream.session.filter(|_| stream.purpose == Purpose::Old) {
                // A session of the old transport is its stream.
                self.end_session(app, session);
            }
            return Pull::End;
        }
        let released = stream.purpose == Purpose::Post && !stream.hung_up && self.server.is_released(stream.route);
        if released && self.hang_up(id, now) {
            return Pull::End;
        }
        self.keep_alive(id, now, out)
    }

    /// Whether nothing more will be said on a stream.
    fn is_over(&self, stream: &Stream) -> bool {
        match stream.purpose {
            Purpose::Post => !self.server.has_route(stream.route),
            Purpose::Listen => !self.server.has_subscriptions(stream.scope),
            Purpose::Session | Purpose::Old => stream.ended,
        }
    }

    /// Writes a comment where nothing was written for a while.
    fn keep_alive(&mut self, id: StreamId, now: Millis, out: &mut dyn Sink) -> Pull {
        let written = self.stream_mut(id).map_or(now, |stream| stream.written);
        if self.config.keep_alive > 0 && now.saturating_sub(written) >= self.config.keep_alive {
            if out.put(b":\n\n").is_err() {
                return Pull::More;
            }
            self.wrote(id, now);
        }
        let written = self.stream_mut(id).map_or(now, |stream| stream.written);
        self.due(self.config.keep_alive, written);
        Pull::Idle
    }

    /// Lets go of a client that will come back; only where it can.
    fn hang_up(&mut self, id: StreamId, now: Millis) -> bool {
        match self.stream_mut(id).filter(|stream| stream.primed) {
            Some(stream) => {
                stream.link = Link::Detached { since: now };
                stream.hung_up = true;
                self.due(self.config.resume_within, now);
                true
            }
            None => false,
        }
    }

    /// Writes what stands before the first event.
    fn greet(&mut self, id: StreamId, out: &mut dyn Sink) -> Result<(), Full> {
        let (retry, post_path) = (self.config.retry, self.config.post_path);
        let session = self.stream_mut(id).and_then(|stream| stream.session);
        let session = session.and_then(|slot| self.sessions.slots().get(usize::from(slot)).map(|session| session.id));
        let Some(stream) = self.stream_mut(id).filter(|stream| !stream.greeted) else { return Ok(()) };
        match (stream.purpose, session) {
            (Purpose::Old, Some(session)) => {
                let (begin, id) = (b"event: endpoint\ndata: ", session.as_str().as_bytes());
                stream.put_head(&[begin, post_path.as_bytes(), b"?session=", id, b"\n\n"], out)?;
            }
            _ if stream.primed => write_priming(stream, id.slot, retry, out)?,
            _ => {}
        }
        (stream.greeted, stream.head) = (true, 0);
        Ok(())
    }

    /// Puts into the log what is due on a stream: windows of a large reply, changes. Whether there may be more once that
    /// has been written.
    fn fill<S>(&mut self, id: StreamId, app: &mut App<'_, S>) -> bool {
        let (streams, log) = (self.streams.slots_mut(), &mut self.log);
        let Some(stream) = streams.get(usize::from(id.slot)) else { return false };
        if stream.ended && stream.purpose == Purpose::Session {
            // A newer one says what there is to say.
            return false;
        }
        let (route, purpose, scope, session) = (stream.route, stream.purpose, stream.scope, stream.session);
        let server: &mut Engine<'_> = &mut self.server;
        if let Some(token) = server.streaming(route).filter(|_| matches!(purpose, Purpose::Post | Purpose::Old)) {
            let mut out = StreamOut::new(log, streams, id.slot);
            return app.service.pump(app.state, token, server, &mut out) == Pump::More;
        }
        let mut nobody = Peer::NEW;
        let peer = match (purpose, session) {
            (Purpose::Session | Purpose::Old, Some(slot)) => {
                match self.sessions.slots_mut().get_mut(usize::from(slot)) {
                    Some(session) => &mut session.peer,
                    None => return false,
                }
            }
            (Purpose::Listen, _) => &mut nobody,
            _ => return false,
        };
        let mut out = StreamOut::new(log, streams, id.slot);
        server.swap_peer(peer, scope);
        let pulled = server.pull(app.service.about(), &mut out);
        server.swap_peer(peer, Scope(0));
        pulled == server::Pull::More
    }
}
