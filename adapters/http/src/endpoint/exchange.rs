//! The answer to one request: a body if it is the first thing that is said, else an event stream.

use mcp_sansio::Full;
use mcp_sansio::protocol::code;
use mcp_sansio::server::{Engine, Gate, Peer, Request, Scope};
use mcp_sansio::service::{Origin, Step};
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

use super::config::Streams;
use super::gate::HeaderGate;
use super::head::{Content, Head, Response};
use super::media::Accept;
use super::refusal::refuse;
use super::stream::StreamOut;
use super::{App, Asker, Endpoint};

/// Where the answer goes.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Nothing has been said.
    Undecided,
    /// One JSON body; what it is decides the status.
    Body(Kind),
    /// Events.
    Stream,
}

/// The sink of one request. The first message decides: a result or an error becomes the body, anything else opens the
/// stream.
pub(crate) struct Exchange<'x, 's, 'm> {
    pub(crate) mode: Mode,
    /// Something had to be said that a body cannot carry, and there was no stream.
    pub(crate) wanted_stream: bool,
    /// An event stream was needed that the client takes, and at present there is none, or no room in the log for it.
    pub(crate) crowded: bool,
    body: &'x mut dyn Out,
    /// A stream that is opened if need be; none where there is none left, or the client takes none.
    stream: Option<StreamOut<'s, 'm>>,
    takes_stream: bool,
    /// A result becomes an event even if it comes first.
    prefers_stream: bool,
    /// What was begun last.
    begun: Kind,
}

impl<'x, 's, 'm> Exchange<'x, 's, 'm> {
    fn new(body: &'x mut dyn Out, stream: Option<StreamOut<'s, 'm>>, accept: &Accept, prefers_stream: bool) -> Self {
        Exchange {
            mode: Mode::Undecided,
            wanted_stream: false,
            crowded: false,
            body,
            stream,
            takes_stream: accept.stream(),
            prefers_stream,
            begun: Kind::Notification,
        }
    }

    /// Begins an event. Notes why that cannot be done, unless it is a notification: those may be left out.
    fn begin_event(&mut self, kind: Kind) -> Result<(), Full> {
        let begun = self.stream.as_mut().map_or(Err(Full::Never), |stream| stream.begin(kind));
        match begun {
            Ok(()) => self.mode = Mode::Stream,
            Err(_) => self.note_missing(),
        }
        begun
    }

    fn note_missing(&mut self) {
        if self.begun != Kind::Notification {
            self.wanted_stream |= !self.takes_stream;
            self.crowded |= self.takes_stream && self.stream.as_ref().is_none_or(StreamOut::is_crowded);
        }
    }

    fn current(&self) -> Option<&dyn Out> {
        match (&self.mode, &self.stream) {
            (Mode::Stream, Some(stream)) => Some(stream),
            (Mode::Stream, None) => None,
            _ => Some(&*self.body),
        }
    }

    fn current_mut(&mut self) -> Option<&mut dyn Out> {
        match (&self.mode, &mut self.stream) {
            (Mode::Stream, Some(stream)) => Some(stream),
            (Mode::Stream, None) => None,
            _ => Some(&mut *self.body),
        }
    }
}

impl Exchange<'_, '_, '_> {
    /// Takes back whatever has been said.
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
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.current_mut().map_or(Err(Full::Never), |out| out.put(bytes))
    }

    fn room(&self) -> usize {
        self.current().map_or(0, |out| out.room())
    }
}

impl Out for Exchange<'_, '_, '_> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        self.begun = kind;
        match (self.mode, kind) {
            // Of a batch, the answers that come later follow as events.
            (Mode::Undecided, Kind::Batch) if self.stream.is_some() => self.begin_event(kind),
            (Mode::Undecided, Kind::Result) if self.prefers_stream && self.begin_event(kind).is_ok() => Ok(()),
            (Mode::Undecided, Kind::Result | Kind::Error(_) | Kind::Refusal(_) | Kind::Batch) => {
                self.body.begin(kind)?;
                self.mode = Mode::Body(kind);
                Ok(())
            }
            // A body holds one message.
            (Mode::Body(_), _) => Err(Full::Never),
            (Mode::Undecided | Mode::Stream, _) => self.begin_event(kind),
        }
    }

    fn end(&mut self) {
        if let Some(out) = self.current_mut() {
            out.end();
        }
    }

    fn mark(&self) -> Mark {
        self.current().map_or(Mark::new(0), |out| out.mark())
    }

    fn roll_back(&mut self, mark: Mark) {
        if let Some(out) = self.current_mut() {
            out.roll_back(mark);
        }
        if mark.at() == 0 {
            if matches!(self.mode, Mode::Stream) {
                self.note_missing();
            }
            self.mode = Mode::Undecided;
        }
    }

    fn hold(&mut self, on: bool) {
        if let Some(out) = self.current_mut() {
            out.hold(on);
        }
    }

    fn held(&self) -> bool {
        self.current().is_some_and(|out| out.held())
    }

    fn capacity(&self) -> usize {
        self.current().map_or(0, |out| out.capacity())
    }
}

impl<const N: usize> Endpoint<'_, N> {
    /// Runs one message for one peer, and turns what was said into a response.
    #[allow(clippy::too_many_arguments, reason = "one place where all the parts meet")]
    pub(crate) fn exchange<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        asker: &Asker,
        peer: &mut Peer,
        principal: Option<&str>,
        message: Message<'_, '_>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        let client = self.client_of(asker.scope, asker.modern, principal);
        self.allow_places(client);
        let mut said = self.run(app, head, asker, peer, principal, message, body);
        self.settle(app, client, said.route, said.slot.unwrap_or(u16::MAX));
        if said.step == Err(Full::Now) {
            self.give_up_route(app, said.route);
        }
        // Without a stream there is nowhere to answer later.
        said.wanted_stream |= !said.takes_stream && self.server.has_route(said.route);
        let response = self.conclude(app, asker, &said, body);
        // What every call may have made possible.
        self.go_on(app);
        response
    }

    #[allow(clippy::too_many_arguments, reason = "one place where all the parts meet")]
    fn run<'a, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'_>,
        asker: &Asker,
        peer: &mut Peer,
        principal: Option<&str>,
        message: Message<'_, '_>,
        body: &mut dyn Out,
    ) -> Said {
        self.exchanges = self.exchanges.wrapping_add(1).max(1);
        let route = self.exchanges;
        let accept = Accept::of(head);
        let slot = if accept.stream() { self.open_stream(asker, route) } else { None };
        let (streams, log) = (self.streams.slots_mut(), &mut self.log);
        let stream = slot.map(|slot| StreamOut::new(log, streams, slot));
        // What opens a session is a body: it decides what the session's streams are like.
        let open = asker.modern || peer.revision().is_some();
        let prefers = open && self.config.streams == Streams::Preferred && accept.prefers_stream();
        let mut exchange = Exchange::new(body, stream, &accept, prefers);
        let gate = HeaderGate { head: *head, modern: asker.modern };
        let origin = origin_of(&gate, principal);
        let server: &mut Engine<'_> = &mut self.server;
        server.swap_peer(peer, asker.scope);
        server.set_route(route);
        let step = match message {
            Message::Read(request) => app.service.dispatch_read(&origin, app.state, request, server, &mut exchange),
            Message::Bytes(bytes) => app.service.dispatch_from(&origin, app.state, bytes, server, &mut exchange),
        };
        if step == Err(Full::Now) {
            // The message will not come again.
            server.drop_batch();
            exchange.clear();
        }
        server.swap_peer(peer, Scope(0));
        Said {
            route,
            takes_stream: accept.stream(),
            slot,
            step,
            mode: exchange.mode,
            wanted_stream: exchange.wanted_stream,
            crowded: exchange.crowded,
        }
    }

    fn conclude<'r, S>(
        &mut self,
        app: &mut App<'_, S>,
        asker: &Asker,
        said: &Said,
        body: &mut dyn Out,
    ) -> Response<'r> {
        let waits = self.server.has_route(said.route);
        let response = match (said.mode, said.slot) {
            (Mode::Stream, Some(slot)) => return self.streamed(slot),
            // The error says that the answer does not fit a body; in a moment it need not.
            (Mode::Body(Kind::Error(code::INTERNAL)), _) if said.crowded => {
                body.roll_back(Mark::new(0));
                refuse(body, 503, code::INTERNAL, "Overloaded: try again")
            }
            (Mode::Body(kind), _) => {
                let status = if said.wanted_stream { 406 } else { status_of(kind, asker.modern) };
                Response::status(status).with(Content::Json)
            }
            (_, Some(slot)) if waits => return self.streamed(slot),
            _ => said.nothing(waits, body),
        };
        if waits {
            // Nobody can hear the answer.
            self.give_up_route(app, said.route);
        }
        if let Some(slot) = said.slot {
            self.free_stream(slot);
        }
        response
    }

    fn streamed<'r>(&mut self, slot: u16) -> Response<'r> {
        let id = self.name_stream(slot);
        self.mark_ready(id);
        Response::status(200).with(Content::Stream(id))
    }
}

/// What an exchange leaves behind.
struct Said {
    route: u32,
    /// The client takes an event stream.
    takes_stream: bool,
    /// The stream that was opened for it, whether it is needed or not.
    slot: Option<u16>,
    step: Result<Step, Full>,
    mode: Mode,
    /// Something had to be said, or will be, that a body cannot carry, and there was no stream.
    wanted_stream: bool,
    /// There was no stream, or no room on it, for what a body cannot carry; in a moment there may be.
    crowded: bool,
}

impl Said {
    /// The response where neither a body nor a stream was begun; `waits` if an answer was put off.
    fn nothing<'r>(&self, waits: bool, body: &mut dyn Out) -> Response<'r> {
        if self.step.is_err() {
            return refuse(body, 503, code::INTERNAL, "Overloaded: try again");
        }
        match (waits, self.wanted_stream) {
            (false, _) => Response::status(202),
            // A handler puts its answer off, and the client takes no stream, or there is none left.
            (true, false) => refuse(body, 503, code::INTERNAL, "Overloaded: too many streams"),
            (true, true) => refuse(body, 406, code::INVALID_REQUEST, "The answer is an event stream"),
        }
    }
}

/// One message of a request.
pub(crate) enum Message<'x, 'a> {
    Read(&'x mut Request<'a>),
    Bytes(&'a [u8]),
}

pub(crate) fn origin_of<'o>(gate: &'o dyn Gate, principal: Option<&'o str>) -> Origin<'o> {
    match principal {
        Some(principal) => Origin::new(gate).principal(principal),
        None => Origin::new(gate),
    }
}

/// The status of a JSON body.
fn status_of(kind: Kind, modern: bool) -> u16 {
    match (kind, modern) {
        (Kind::Refusal(code::INTERNAL), _) => 503,
        (Kind::Error(code::METHOD_NOT_FOUND) | Kind::Refusal(code::METHOD_NOT_FOUND), true) => 404,
        (Kind::Refusal(_), true) => 400,
        (Kind::Refusal(code::PARSE | code::INVALID_REQUEST), false) => 400,
        _ => 200,
    }
}
