//! Layers around every request and every notification of a client.
//!
//! A client without layers is linked without this code: [`ClientInfo::layers`](super::ClientInfo::layers) sets the pointer to it.

use super::request::Request;
use super::result::ClientResult;
use super::{
    Client, ClientEvent, ErrorObject, PendingId, RequestError, SendError, ServerRequest, ServerRequestId,
    TransportError, Turn,
};
use crate::around::{AroundOut, Passage, Passing};
use crate::error::{RpcError, words};
use crate::json::{Raw, Text, write::is_plain};
use crate::protocol::Method;
use crate::revision::Revision;
use crate::rpc::Envelope;
use crate::sink::{FullError, MessageHead, Out, Sink, Writer};
use crate::time::Millis;
use crate::trace_context::TraceContext;

/// A layer around a client, for [`ClientInfo::layers`](super::ClientInfo::layers): a journal, a switch, a substitute for tests.
/// It may read a request, refuse it, answer it or replace it, read or replace its outcome, read or drop a notification of the
/// server, and read, replace or drop one of the client.
///
/// A request goes through the layers before it is written, once, however often it is sent again; its outcome goes back through
/// them before the application gets it. The requests of the client itself are among them: `server/discover`, `initialize`, and
/// a `subscriptions/listen` for each subscription, in all revisions. So do the requests of the server, and their answers.
///
/// ```
/// use mcp_sansio::client::{ClientInfo, Layer, LayerRequest};
///
/// /// Sends no calls that may cost something.
/// struct Thrift;
///
/// impl Layer for Thrift {
///     fn request(&self, request: &mut LayerRequest<'_>) -> bool {
///         request.method != "tools/call"
///     }
/// }
///
/// static INFO: ClientInfo<'static> = ClientInfo::new("demo", "1.0").layers(&[&Thrift]);
/// # let _ = &INFO;
/// ```
pub trait Layer: Sync {
    /// Gets a request before it is written. `true` lets it go on. `false` ends its way: nothing is sent, later layers do not get
    /// it, and [`answer`](Layer::answer) has its outcome.
    fn request(&self, request: &mut LayerRequest<'_>) -> bool {
        let _ = request;
        true
    }

    /// Returns the outcome of a request that [`request`](Layer::request) has ended: a `result`, a JSON object, or an error, whose
    /// message has neither quotes nor backslashes. Default: error -32603. An opening fails in any case, as
    /// [`TransportError::Refused`].
    ///
    /// # Errors
    /// The application gets it as an [`ErrorObject`].
    fn answer(&self, token: PendingId) -> Result<Raw<'static>, RpcError<'static>> {
        let _ = token;
        Err(REFUSED)
    }

    /// Gets the outcome of a request, at `now` on the caller's clock. It may replace it, by a part of it or a constant.
    fn outcome<'a>(&self, token: PendingId, outcome: &mut Result<Raw<'a>, RequestError<'a>>, now: Millis) {
        let _ = (token, outcome, now);
    }

    /// Hears that a request ends without an outcome: it could not be written, and may come again, or the application has
    /// [cancelled](super::Client::cancel) it. Forget it.
    fn dropped(&self, token: PendingId, cancelled: bool, now: Millis) {
        let _ = (token, cancelled, now);
    }

    /// Gets a notification of the server, before anything else. If it returns `false`, the notification is dropped.
    fn notification(&self, method: Text<'_>, params: Option<Raw<'_>>, now: Millis) -> bool {
        let _ = (method, params, now);
        true
    }

    /// Gets a request of the server, but `ping`, before the application; from 2026-07-28 on each of the `inputRequests` of a result.
    /// An error refuses it, and with it all that came in the same message, as [`Client::refuse`](super::Client::refuse) does.
    /// [`answered`](Layer::answered) gets it, and may answer in place of the application. Comes again if the sink was full.
    ///
    /// # Errors
    /// What refuses the request.
    fn question(&self, question: &ServerRequest<'_>, now: Millis) -> Result<(), RpcError<'static>> {
        let _ = (question, now);
        Ok(())
    }

    /// Gets the answer to a request of the server, before it is sent or kept, and may replace it. Comes again if the sink was full.
    fn answered<'a>(
        &self,
        question: ServerRequestId,
        answer: &mut Result<ClientResult<'a>, RpcError<'a>>,
        now: Millis,
    ) {
        let _ = (question, answer, now);
    }

    /// Gets a piece of the `params` of a notification of the client, while it is written, as
    /// [`writes`](crate::service::Layer::writes) of a server's layer does.
    ///
    /// # Errors
    /// That of `out`: there is no room.
    fn writes(&self, method: &str, piece: &[u8], out: &mut dyn Sink) -> Result<(), FullError> {
        let _ = method;
        out.put(piece)
    }

    /// Hears that a notification of the client is whole: `notifications/initialized`, `notifications/cancelled`,
    /// `notifications/roots/list_changed`, and those of [`notify`](super::Client::notify). It may put more into `out`, the whole
    /// `params` too. If it returns `false`, the notification is taken back. Over HTTP in 2026-07-28 the end of an exchange stands for
    /// `notifications/cancelled`.
    fn sends(&self, method: &str, now: Millis, out: &mut dyn Sink) -> bool {
        let _ = (method, now, out);
        true
    }
}

/// The error of a request that a layer has refused.
const REFUSED: RpcError<'static> = RpcError::internal(words("A layer has refused the request"));

/// A request on its way out, for [`Layer::request`].
#[derive(Debug)]
pub struct LayerRequest<'r> {
    /// The token of the request.
    pub token: PendingId,
    /// The `method`.
    pub method: &'r str,
    /// The protocol revision; `None` before it is negotiated.
    pub revision: Option<Revision>,
    /// The time on the caller's clock.
    pub now: Millis,
    request: Option<Request<'r>>,
}

impl<'r> LayerRequest<'r> {
    /// Returns the request of the application; `None` if it is one of the client itself.
    #[must_use]
    pub const fn request(&self) -> Option<&Request<'r>> {
        self.request.as_ref()
    }

    /// Replaces the request of the application, such as by the same one with other [`meta`](Request::meta) or
    /// [`arguments`](Request::arguments). Later layers get this one. A request of the client itself stays.
    pub const fn replace(&mut self, request: Request<'r>) {
        if self.request.is_some() {
            self.method = request.name;
            self.request = Some(request);
        }
    }

    /// Writes the member of `params` with this name, such as `name` or `uri`, as JSON. Returns `false` if it is no text.
    pub fn text(&self, member: &str, out: &mut Writer<'_>) -> bool {
        self.request.is_some_and(|request| request.write_text(member, out))
    }

    /// Returns the trace context that the application has set.
    #[must_use]
    pub fn trace_context(&self) -> TraceContext<'r> {
        let Some(request) = &self.request else { return TraceContext::NONE };
        request.trace.map_or_else(|| TraceContext::of(request.own_meta), |trace| trace.context())
    }
}

/// The layers of a client.
pub(crate) trait Around: Sync {
    /// Passes a request through the layers. Returns the number of the one that has ended its way.
    fn enter(&self, request: &mut LayerRequest<'_>) -> Option<u8>;

    /// Sends a request of the application.
    fn send(&self, client: &mut Client<'_>, request: Request<'_>, out: &mut dyn Out) -> Result<PendingId, SendError>;

    /// Returns the outcome of a request that a layer has ended.
    fn answer(&self, layer: u8, token: PendingId) -> Result<Raw<'static>, RequestError<'static>>;

    /// Passes an outcome through the layers.
    fn leave<'a>(&self, token: PendingId, outcome: &mut Result<Raw<'a>, RequestError<'a>>, now: Millis);

    /// Does so with the answer to the probe or to `initialize`. What they make of it changes nothing: the client has read it.
    fn leave_opening(&self, token: PendingId, envelope: &Envelope<'_>, now: Millis);

    fn dropped(&self, token: PendingId, cancelled: bool, now: Millis);

    fn notification(&self, method: Text<'_>, params: Option<Raw<'_>>, now: Millis) -> bool;

    /// Takes a message of the server, see [`Client::receive_on`].
    fn receive<'a>(
        &self,
        client: &mut Client<'_>,
        exchange: Option<u64>,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Turn<'a>;

    /// Passes the answer to a request of the server through the layers.
    fn answered<'a>(&self, question: ServerRequestId, answer: &mut Result<ClientResult<'a>, RpcError<'a>>, now: Millis);

    /// Runs a function that writes a notification.
    fn watch(&self, now: Millis, out: &mut dyn Out, run: &mut dyn FnMut(&mut dyn Out));
}

// As a supertrait, `Debug` would have to be there for the layers of all programs.
impl core::fmt::Debug for dyn Around + '_ {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Around")
    }
}

impl<const N: usize> Around for [&dyn Layer; N] {
    fn enter(&self, request: &mut LayerRequest<'_>) -> Option<u8> {
        self.iter().position(|layer| !layer.request(request)).map(|layer| layer as u8)
    }

    fn send(&self, client: &mut Client<'_>, request: Request<'_>, out: &mut dyn Out) -> Result<PendingId, SendError> {
        let token = PendingId(client.next_id());
        let (revision, now) = (client.revision(), client.now);
        let mut passing = LayerRequest { token, method: request.name, revision, now, request: Some(request) };
        let ended = self.enter(&mut passing);
        let request = passing.request.unwrap_or(request);
        let sent = match ended {
            Some(layer) => client.admit_answered(&request, layer),
            None => client.send_now(&request, out),
        };
        if sent.is_err() {
            self.dropped(token, false, now);
        }
        sent
    }

    fn answer(&self, layer: u8, token: PendingId) -> Result<Raw<'static>, RequestError<'static>> {
        let answer = self.get(usize::from(layer)).map_or(Err(REFUSED), |layer| layer.answer(token));
        answer.map_err(|error| {
            let message = if is_plain(error.message) { error.message } else { REFUSED.message };
            RequestError::Error(ErrorObject {
                code: error.code,
                message: Text::from_raw(message.as_bytes()),
                data: None,
                raw: None,
            })
        })
    }

    fn leave<'a>(&self, token: PendingId, outcome: &mut Result<Raw<'a>, RequestError<'a>>, now: Millis) {
        for layer in self.iter().rev() {
            layer.outcome(token, outcome, now);
        }
    }

    fn leave_opening(&self, token: PendingId, envelope: &Envelope<'_>, now: Millis) {
        let response = envelope.response().ok_or(RequestError::Lost(TransportError::Invalid));
        let mut outcome = response.and_then(|it| it.map_err(|error| RequestError::Error(ErrorObject::read(error))));
        self.leave(token, &mut outcome, now);
    }

    fn dropped(&self, token: PendingId, cancelled: bool, now: Millis) {
        for layer in self.iter().rev() {
            layer.dropped(token, cancelled, now);
        }
    }

    fn notification(&self, method: Text<'_>, params: Option<Raw<'_>>, now: Millis) -> bool {
        self.iter().all(|layer| layer.notification(method, params, now))
    }

    fn receive<'a>(
        &self,
        client: &mut Client<'_>,
        exchange: Option<u64>,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Turn<'a> {
        let asked = match client.receive_now(exchange, message, out)? {
            Some(ClientEvent::Asked(asked)) => asked,
            event => return Ok(event),
        };
        let now = client.now;
        let refused = |question| self.iter().try_for_each(|layer| layer.question(&question, now)).err();
        let Some(refusal) = asked.questions().find_map(refused) else { return Ok(Some(ClientEvent::Asked(asked))) };
        for question in asked.questions() {
            match (client.refuse(question.id, &refusal, out), asked.token) {
                (Err(full @ (SendError::FullNow | SendError::FullNever)), _) => {
                    client.drop_held(asked.owner);
                    return Err(if full == SendError::FullNow { FullError::Now } else { FullError::Never });
                }
                (Err(SendError::NoRoom), Some(token)) => client.lose(token.0, TransportError::NoRoom),
                _ => {}
            }
        }
        Ok(None)
    }

    fn answered<'a>(
        &self,
        question: ServerRequestId,
        answer: &mut Result<ClientResult<'a>, RpcError<'a>>,
        now: Millis,
    ) {
        for layer in self.iter().rev() {
            layer.answered(question, answer, now);
        }
    }

    fn watch(&self, now: Millis, out: &mut dyn Out, run: &mut dyn FnMut(&mut dyn Out)) {
        run(&mut AroundOut::new(out, Watch { layers: self, now }));
    }
}

/// The layers around the notifications of a client.
struct Watch<'o> {
    layers: &'o [&'o dyn Layer],
    now: Millis,
}

impl<'o> Passage for Watch<'o> {
    type Layer = dyn Layer + 'o;

    fn layers(&self) -> &[&Self::Layer] {
        self.layers
    }

    fn begins(&self, head: Option<MessageHead<'_>>) -> bool {
        matches!(head, Some(MessageHead::Notification | MessageHead::Initialized))
    }

    fn writes(
        &self,
        layer: &Self::Layer,
        passing: &Passing,
        piece: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), FullError> {
        layer.writes(passing.method(), piece, out)
    }

    fn sends(&self, layer: &Self::Layer, passing: &Passing, out: &mut dyn Sink) -> bool {
        layer.sends(passing.method(), self.now, out)
    }
}

impl Client<'_> {
    /// Passes a request of the client itself through the layers. Returns the number of the one that has ended its way.
    pub(crate) fn enter_layers(&self, token: u32, method: Method) -> Option<u8> {
        let (method, revision, now) = (method.name(), self.revision(), self.now);
        self.info.around?.enter(&mut LayerRequest { token: PendingId(token), method, revision, now, request: None })
    }

    /// Takes a slot for a request that a layer has answered.
    pub(crate) fn admit_answered(&mut self, request: &Request<'_>, layer: u8) -> Result<PendingId, SendError> {
        let id = self.admit(request)?;
        self.last_id = id;
        if let Some(pending) = self.pending_mut(id) {
            pending.answered(layer);
        }
        Ok(PendingId(id))
    }

    /// Ends a request that a layer has answered.
    pub(crate) fn layer_answered(&mut self, token: u32, layer: u8) -> Option<ClientEvent<'static>> {
        let answer = self.info.around?.answer(layer, PendingId(token));
        self.done(token, answer)
    }

    /// Gives the layers the outcome of a request.
    #[inline]
    pub(crate) fn leave_layers<'a>(&self, token: u32, outcome: &mut Result<Raw<'a>, RequestError<'a>>) {
        if let Some(around) = self.info.around {
            around.leave(PendingId(token), outcome, self.now);
        }
    }

    /// Gives the layers the end of the probe or of `initialize` without an answer.
    pub(crate) fn opening_unanswered(&self, wire: u32, why: TransportError) {
        if wire != 0 {
            self.leave_layers(wire, &mut Err(RequestError::Lost(why)));
        }
    }

    /// Writes a notification, with the layers around it if there are any.
    #[inline]
    pub(crate) fn tell(
        &self,
        out: &mut dyn Out,
        write: impl FnOnce(&mut dyn Out) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        let Some(around) = self.info.around else { return write(out) };
        let (mut write, mut done) = (Some(write), Ok(()));
        around.watch(self.now, out, &mut |out| done = write.take().map_or(Ok(()), |write| write(out)));
        done
    }
}
