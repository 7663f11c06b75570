//! The answer to one request: a body if it is the first message, else an event stream.

use mcp_sansio::FullError;
use mcp_sansio::protocol::code;
use mcp_sansio::server::{IncomingRequest, Millis, Peer};
use mcp_sansio::service::{Dispatched, MessageSource};
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink};

use super::config::StreamPolicy;
use super::events::{StreamOut, status_of};
use super::head::{EndpointResponse, ResponseBody};
use super::header_check::HeaderChecks;
use super::media::Accept;
use super::refusal::refuse;
use super::session::Sessions;
use super::stream::{Asker, Purpose, Streams};
use super::{App, Endpoint, Turn};

/// The form of the answer.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// No message was written yet.
    Undecided,
    /// One JSON body with that status. `failed` if it is the error -32603.
    Body { status: u16, failed: bool },
    /// Events.
    Stream,
}

/// The sink of one request. The first message decides: a result or an error becomes the body, any other message
/// opens the stream.
pub(crate) struct Exchange<'x, 's, 'm> {
    pub(crate) mode: Mode,
    /// A message needed a stream, and there was none.
    pub(crate) wanted_stream: bool,
    /// A message needed a stream that the client accepts, and there was no free stream or no room in the log.
    pub(crate) crowded: bool,
    body: &'x mut dyn Out,
    /// The stream, once a message needed it; `None` if all are in use, or the client accepts none.
    stream: Option<StreamOut<'s, 'm>>,
    /// The place for a stream that no message has needed yet.
    place: Option<StreamPlace<'s, 'm>>,
    takes_stream: bool,
    /// A result becomes an event even if it comes first.
    prefers_stream: bool,
    modern: bool,
    /// The last message is a notification.
    notifies: bool,
}

impl<'x, 's, 'm> Exchange<'x, 's, 'm> {
    fn new(
        body: &'x mut dyn Out,
        place: StreamPlace<'s, 'm>,
        accept: &Accept,
        prefers_stream: bool,
        modern: bool,
    ) -> Self {
        Exchange {
            mode: Mode::Undecided,
            wanted_stream: false,
            crowded: false,
            body,
            stream: None,
            place: Some(place).filter(|_| accept.stream()),
            takes_stream: accept.stream(),
            prefers_stream,
            modern,
            notifies: true,
        }
    }

    /// Begins an event. Notes the reason if that fails, except for a notification: those may be left out.
    fn begin_event(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        self.open_stream();
        let begun = self.stream.as_mut().map_or(Err(FullError::Never), |stream| stream.begin(head));
        match begun {
            Ok(()) => self.mode = Mode::Stream,
            Err(_) => self.note_missing(),
        }
        begun
    }

    /// Reserves the stream at its first use.
    fn open_stream(&mut self) {
        if let Some(place) = self.place.take() {
            self.stream = place.reserve();
        }
    }

    fn note_missing(&mut self) {
        if !self.notifies {
            self.wanted_stream |= !self.takes_stream;
            self.crowded |= self.takes_stream && self.stream.as_ref().is_none_or(StreamOut::is_crowded);
        }
    }

    /// Returns the sink of the current message: the stream once it has begun, else the body.
    fn current(&self) -> &dyn Out {
        match &self.stream {
            Some(stream) if matches!(self.mode, Mode::Stream) => stream,
            _ => &*self.body,
        }
    }

    fn current_mut(&mut self) -> &mut dyn Out {
        match &mut self.stream {
            Some(stream) if matches!(self.mode, Mode::Stream) => stream,
            _ => &mut *self.body,
        }
    }
}

/// The place of a stream that may be needed.
struct StreamPlace<'s, 'm> {
    streams: &'s mut Streams<'m>,
    sessions: &'s mut Sessions<'m>,
    asker: Asker,
    exchange_id: u32,
    now: Millis,
}

impl<'s, 'm> StreamPlace<'s, 'm> {
    fn reserve(self) -> Option<StreamOut<'s, 'm>> {
        let StreamPlace { streams, sessions, asker, exchange_id, now } = self;
        let slot = streams.reserve_or_evict(asker, exchange_id, sessions, now)?;
        Some(streams.out(slot, false))
    }
}

impl Exchange<'_, '_, '_> {
    /// Takes back all messages.
    fn clear(&mut self) {
        self.body.hold(false);
        self.body.roll_back(Mark::new(0));
        if let Some(stream) = &mut self.stream {
            stream.clear();
        }
        self.mode = Mode::Undecided;
    }
}

impl Sink for Exchange<'_, '_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.current_mut().put(bytes)
    }

    fn room(&self) -> usize {
        self.current().room()
    }
}

impl Out for Exchange<'_, '_, '_> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        self.notifies = matches!(head, MessageHead::Notification);
        if matches!(head, MessageHead::Batch) {
            self.open_stream();
        }
        match (self.mode, head) {
            // The later answers of a batch follow as events.
            (Mode::Undecided, MessageHead::Batch) if self.stream.is_some() => self.begin_event(head),
            (Mode::Undecided, MessageHead::Result | MessageHead::ToolError)
                if self.prefers_stream && self.begin_event(head).is_ok() =>
            {
                Ok(())
            }
            (
                Mode::Undecided,
                MessageHead::Result
                | MessageHead::ToolError
                | MessageHead::Error(_)
                | MessageHead::Refusal(_)
                | MessageHead::Batch,
            ) => {
                self.body.begin(head)?;
                let failed = matches!(head, MessageHead::Error(code::INTERNAL));
                self.mode = Mode::Body { status: status_of(head, self.modern), failed };
                Ok(())
            }
            // A body has one message. For a question there would have to be a stream.
            (Mode::Body { .. }, _) => {
                if matches!(head, MessageHead::Request(_)) {
                    self.note_missing();
                }
                Err(FullError::Never)
            }
            (Mode::Undecided | Mode::Stream, _) => self.begin_event(head),
        }
    }

    fn end(&mut self) {
        self.current_mut().end();
    }

    fn mark(&self) -> Mark {
        self.current().mark()
    }

    fn roll_back(&mut self, mark: Mark) {
        self.current_mut().roll_back(mark);
        if mark.at() == 0 {
            if matches!(self.mode, Mode::Stream) {
                self.note_missing();
            }
            self.mode = Mode::Undecided;
        }
    }

    fn hold(&mut self, on: bool) {
        self.current_mut().hold(on);
    }

    fn held(&self) -> bool {
        self.current().held()
    }

    fn capacity(&self) -> usize {
        self.current().capacity()
    }
}

impl Endpoint<'_> {
    /// Handles one message of one peer, and returns its response.
    pub(crate) fn exchange<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        asker: Asker,
        peer: &mut Peer,
        message: Message<'_, '_>,
    ) -> EndpointResponse<'static> {
        let client = self.requests.client_of(asker.scope, asker.modern, turn.principal);
        self.requests.allow_places(&self.streams, &self.config, client);
        let mut start = self.run(turn, asker, peer, message);
        if start.step == Err(FullError::Now) {
            self.give_up_exchange(turn.app, start.exchange_id);
        }
        start.waits = self.requests.has_exchange(start.exchange_id);
        if start.waits && start.takes_stream && start.slot.is_none() {
            // For the answer that was put off.
            start.slot = self.reserve_stream(asker, start.exchange_id);
        }
        // Without a stream there is no place for a later answer.
        start.wanted_stream |= start.waits && !start.takes_stream;
        self.settle(turn.app, client, start.exchange_id, start.slot.unwrap_or(u16::MAX));
        let response = self.conclude(turn, asker, &start);
        // Each call may have made it possible for other handlers to continue.
        self.run_ready(turn.app);
        response
    }

    fn run<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        asker: Asker,
        peer: &mut Peer,
        message: Message<'_, '_>,
    ) -> ResponseStart {
        let exchange_id = self.requests.new_exchange();
        let accept = turn.head.fields.accept;
        let (streams, sessions) = (&mut self.streams, &mut self.sessions);
        let place = StreamPlace { streams, sessions, asker, exchange_id, now: self.now };
        // The response that opens a session is a body: it decides the properties of the session's streams.
        let open = asker.modern || peer.revision().is_some();
        let prefers = open && self.config.streams == StreamPolicy::Preferred && accept.prefers_stream();
        let mut exchange = Exchange::new(&mut *turn.body, place, &accept, prefers, asker.modern);
        let checks = HeaderChecks { head: turn.head, modern: asker.modern };
        let origin = MessageSource::new(&checks).principal(turn.principal);
        let App { service, state, .. } = &mut *turn.app;
        let step = self.requests.server.with_peer(peer, asker.scope, |server| {
            server.transport_id = exchange_id;
            let step = match message {
                Message::Read(request) => service.dispatch_read(&origin, state, request, server, &mut exchange),
                Message::Bytes(bytes) => service.dispatch_from(&origin, state, bytes, server, &mut exchange),
            };
            if step == Err(FullError::Now) {
                // The client does not send the message again.
                server.drop_batch();
                exchange.clear();
            }
            step
        });
        ResponseStart {
            exchange_id,
            takes_stream: accept.stream(),
            slot: exchange.stream.as_ref().map(|out| out.slot),
            step,
            waits: false,
            mode: exchange.mode,
            wanted_stream: exchange.wanted_stream,
            crowded: exchange.crowded,
        }
    }

    fn conclude<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        asker: Asker,
        start: &ResponseStart,
    ) -> EndpointResponse<'static> {
        let response = match (start.mode, start.slot) {
            (Mode::Stream, Some(slot)) => return self.streamed(asker, slot),
            // The error says that the answer does not fit a body. Soon there may be a stream for it.
            (Mode::Body { failed: true, .. }, _) if start.crowded => {
                turn.body.roll_back(Mark::new(0));
                turn.refuse(503, "Overloaded: try again")
            }
            (Mode::Body { status, .. }, _) => {
                let status = if start.wanted_stream { 406 } else { status };
                EndpointResponse::status(status).with(ResponseBody::Json)
            }
            (_, Some(slot)) if start.waits => return self.streamed(asker, slot),
            _ => start.nothing(turn.body),
        };
        if start.waits {
            // The client cannot receive the answer.
            self.give_up_exchange(turn.app, start.exchange_id);
        }
        if let Some(slot) = start.slot {
            self.free_stream(slot);
        }
        response
    }

    fn streamed(&mut self, asker: Asker, slot: u16) -> EndpointResponse<'static> {
        let id = self.send_stream(slot, if asker.listens { Purpose::Listen } else { Purpose::Post });
        EndpointResponse::status(200).with(ResponseBody::Stream(id))
    }
}

/// The result of an exchange.
struct ResponseStart {
    exchange_id: u32,
    /// The client accepts an event stream.
    takes_stream: bool,
    /// The stream that was reserved for it.
    slot: Option<u16>,
    step: Result<Dispatched, FullError>,
    /// An answer was put off.
    waits: bool,
    mode: Mode,
    /// A message needed, or will need, a stream, and there was none.
    wanted_stream: bool,
    /// There was no free stream, or no room on it; soon there may be.
    crowded: bool,
}

impl ResponseStart {
    /// Returns the response if neither a body nor a stream was begun.
    fn nothing(&self, body: &mut dyn Out) -> EndpointResponse<'static> {
        if self.step.is_err() {
            return refuse(body, 503, "Overloaded: try again");
        }
        match (self.waits, self.wanted_stream) {
            (false, _) => EndpointResponse::status(202),
            // A handler put its answer off, and the client accepts no stream, or all are in use.
            (true, false) => refuse(body, 503, "Overloaded: too many streams"),
            (true, true) => refuse(body, 406, "The answer is an event stream"),
        }
    }
}

/// One message of a request.
pub(crate) enum Message<'x, 'a> {
    Read(&'x mut IncomingRequest<'a>),
    Bytes(&'a [u8]),
}
