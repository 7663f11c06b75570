//! The connections of streams: they come, and they go.

use mcp_sansio::server::Millis;

use super::stream::{Link, Purpose, Stream, StreamId};
use super::{App, Asker, Endpoint};

impl<const N: usize> Endpoint<'_, N> {
    /// Whether a stream answers no request, but is open for what may happen. Where connections are scarce, ending its
    /// connection does the least harm: its client comes back.
    #[must_use]
    pub fn only_listens(&self, id: StreamId) -> bool {
        let stream = self.streams.slots().get(id.slot()).filter(|stream| stream.is(id));
        stream.is_some_and(|stream| matches!(stream.purpose, Purpose::Session | Purpose::Listen))
    }

    /// The connection of a stream is gone. A client of the legacy revisions may come back for its answer; from 2026-07-28
    /// on, that cancels its request.
    pub fn detach<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis) {
        let Some(stream) = self.stream_mut(id).filter(|stream| stream.link == Link::Attached) else { return };
        match (stream.purpose, stream.resumable) {
            (Purpose::Old, _) => {
                let session = stream.session;
                self.free_stream(id.slot);
                if let Some(session) = session {
                    self.end_session(app, session);
                }
            }
            (_, true) if stream.session.is_some() && !stream.held => {
                stream.link = Link::Detached { since: now };
                // Without an event id its client cannot come back, and does not know what it was asked.
                let (route, is_lost) = (stream.route, stream.seen == 1 && !(stream.primed && stream.greeted));
                if is_lost {
                    self.server.end_questions(route);
                }
                self.due(self.config.resume_within, now);
                self.go_on(app);
            }
            (_, true) => {
                // Its session is over; or a reply in windows has begun, which cannot be sent again.
                let (route, ended) = (stream.route, stream.session.is_none());
                self.free_stream(id.slot);
                if !ended {
                    self.give_up_route(app, route);
                }
            }
            (_, false) => {
                let scope = stream.scope;
                let own = stream.session.is_none();
                self.free_stream(id.slot);
                if own {
                    app.service.end_scope(app.state, scope, &mut self.server);
                }
            }
        }
    }

    pub(crate) fn stream_id(&self, slot: u16) -> StreamId {
        let stream = self.streams.slots().get(usize::from(slot));
        let (number, visit) = stream.map_or((0, 0), |stream| (stream.number, stream.visit));
        StreamId { slot, number, visit }
    }

    pub(crate) fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let stream = self.streams.slots_mut().get_mut(usize::from(id.slot))?;
        stream.is(id).then_some(stream)
    }

    pub(crate) fn is_attached(&self, id: StreamId) -> bool {
        let stream = self.streams.slots().get(usize::from(id.slot));
        stream.is_some_and(|stream| stream.is(id) && stream.link == Link::Attached)
    }

    /// A slot for a stream: one that is free, or that of an answer which was sent and only kept in case.
    pub(crate) fn open_stream(&mut self, asker: &Asker, route: u32) -> Option<u16> {
        let slot = self.streams.free(Stream::is_free, || Stream::FREE).or_else(|| self.steal_stream())?;
        let now = self.now;
        self.due(self.config.keep_alive, now);
        *self.streams.slots_mut().get_mut(slot)? = Stream {
            link: Link::Attached,
            session: asker.session,
            route,
            scope: asker.scope,
            resumable: asker.resumable,
            primed: asker.primed,
            written: now,
            ready: true,
            ..Stream::FREE
        };
        u16::try_from(slot).ok()
    }

    /// Gives a stream that is about to be sent its number; its name from now on.
    pub(crate) fn name_stream(&mut self, slot: u16) -> StreamId {
        self.streams_sent += 1;
        if let Some(stream) = self.streams.slots_mut().get_mut(usize::from(slot)) {
            stream.number = self.streams_sent;
        }
        self.stream_id(slot)
    }

    fn steal_stream(&mut self) -> Option<usize> {
        let idle =
            |stream: &Stream| matches!(stream.link, Link::Detached { .. }) && !self.server.has_route(stream.route);
        let slot = self.streams.slots().iter().position(idle)?;
        self.free_stream(slot as u16);
        Some(slot)
    }

    pub(crate) fn free_stream(&mut self, slot: u16) {
        let Some(stream) = self.streams.slots_mut().get_mut(usize::from(slot)) else { return };
        stream.link = Link::Free;
        stream.ready = false;
        self.log.forget(self.streams.slots_mut(), slot);
        self.log.release(self.streams.slots_mut());
    }
}
