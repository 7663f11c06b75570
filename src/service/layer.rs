//! Layers around every request and every notification of a service.
//!
//! A service without layers is linked without this code: [`Service::layers`] sets other [hooks](super::router::Hooks).

use core::cell::Cell;
use core::ops::{Deref, DerefMut};

use super::context::{Extra, HandlerError, HandlerFailure, HandlerInput, HandlerRun, Receipt, RequestContext, Settled};
use super::router::{Dispatched, Hooks, NotificationContext};
use super::{Caller, MessageSource, ResultMeta, SentMessage, Service, ToolAnnotations};
use crate::around::{AroundOut, Passage, Passing};
use crate::json::{Raw, Text};
use crate::protocol::Method;
use crate::rpc::MessageShape;
use crate::server::around::{Around, watched};
use crate::server::{
    IncomingRequest, MIN_ROOM, Millis, NotifyStatus, Progress, RequestToken, RpcError, Scope, Server, ServerOptions,
    words,
};
use crate::sink::{FullError, MessageHead, Out, Sink};

/// A layer around a service, for [`Service::layers`]: a journal, a limit, a switch. It may read a request, refuse it, answer it or
/// replace its `params`; read, replace or refuse its outcome, and add to the `_meta` of its result; read or drop a notification of
/// the client; read, replace or drop one of the server.
///
/// A request goes through the layers when the server has admitted it, also one that the server answers itself (`initialize`,
/// `server/discover`, `ping`, `logging/setLevel`, subscriptions): it takes a slot for so long. One that is refused before, for
/// its revision or its `_meta`, no layer gets.
///
/// Messages go out while they are written; nothing gathers them. So a layer [gets them in pieces](Layer::writes).
///
/// ```
/// use mcp_sansio::server::RpcError;
/// use mcp_sansio::service::{Call, HandlerError, HandlerResult, Layer, LayerRequest, Receipt, Service, Tool};
///
/// /// Refuses everything while the plant is being cleaned.
/// struct Cleaning;
///
/// impl Layer<bool> for Cleaning {
///     fn request(&self, is_cleaned: &mut bool, _: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
///         if *is_cleaned { Err(RpcError::new(-31000, "The plant is being cleaned").into()) } else { Ok(None) }
///     }
/// }
///
/// fn fill(_: &mut bool, call: &mut Call<'_>) -> HandlerResult {
///     call.text("filled")
/// }
/// static TOOLS: [Tool<bool>; 1] = [Tool::new("fill", "Fills the tank", fill)];
/// const SERVICE: Service<'static, bool> = Service::new("plant", "1.0").tools(&TOOLS).layers(&[&Cleaning]);
/// # let _ = SERVICE;
/// ```
pub trait Layer<S>: Sync {
    /// Gets a request that the server has admitted, before its entry is looked for. `Ok(None)` lets it go on; an answer, by a
    /// method of the [`RequestContext`], or an error ends its way in: later layers and the handler do not get it.
    ///
    /// # Errors
    /// As any handler, see [`HandlerError`].
    fn request(&self, state: &mut S, request: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
        let _ = (state, request);
        Ok(None)
    }

    /// Gets the outcome of a request that [`request`](Layer::request) has got, at `now` on the caller's clock. A request that is
    /// put off has two: [`Later`](Outcome::Later), then that of the late answer. The outcome of a `subscriptions/listen` is that of
    /// its opening.
    fn outcome(&self, state: &mut S, token: RequestToken, outcome: Outcome, now: Millis) {
        let _ = (state, token, outcome, now);
    }

    /// Gets a notification of the client, before anything else, at `now` on the caller's clock. `cancels` is the request that a
    /// `notifications/cancelled` ends, if it is in flight. If it returns `false`, the notification is dropped.
    fn notification(
        &self,
        state: &mut S,
        notification: &NotificationContext<'_>,
        cancels: Option<RequestToken>,
        now: Millis,
    ) -> bool {
        let _ = (state, notification, cancels, now);
        true
    }

    /// Gets the response of a client up to 2025-11-25 to a request that the program has written with
    /// [`Server::send_request`]: its `result`, or its `error` object, and the connection or session that it came from. Other
    /// responses come too: compare `id`.
    fn response(&self, state: &mut S, id: u64, response: Result<Raw<'_>, Raw<'_>>, scope: Scope) {
        let _ = (state, id, response, scope);
    }

    /// Adds members to the `_meta` of the result of a request. Use names with a prefix of your own: a handler may have set
    /// others. A handler may be running, so the state is not at hand. It may be called again for the same result.
    ///
    /// Not called for results that the server writes itself, which [`sends`](Layer::sends) may replace, nor for those that go out in
    /// windows, larger than the sink. The room that is kept for a reply ([`Tool::reserve`](super::Tool::reserve)) has to do for
    /// these members too.
    fn result_meta(&self, token: RequestToken, meta: &mut ResultMeta<'_, '_, '_>) {
        let _ = (token, meta);
    }

    /// Gets a piece of a message that the server sends, while it is written: of the `params` of a notification, or of the `result` or
    /// the `error` that answers a request which [`request`](Layer::request) has got. It puts into `out` what goes on; default: all.
    /// The pieces of a message are its JSON, cut anywhere, after a first one that is empty. A message that does not fit ends without
    /// a word, and may come again.
    ///
    /// Not called for answers that go out in windows, nor for notifications by [`Server::progress`], [`Server::notify`] and
    /// [`Server::elicitation_complete`], which know no service: [`Service::progress`] does.
    ///
    /// # Errors
    /// That of `out`: there is no room.
    fn writes(&self, message: &SentMessage<'_>, piece: &[u8], out: &mut dyn Sink) -> Result<(), FullError> {
        let _ = message;
        out.put(piece)
    }

    /// Hears that a message is whole whose pieces [`writes`](Layer::writes) has got. A layer that has kept them puts into `out` what
    /// goes out in their place; `out` keeps room for the end of the message alone. If it returns `false`, a notification is taken
    /// back, and an answer becomes error -32603, as do those that do not fit any more. A handler may be running, so the state is not
    /// at hand. A notification that is taken back after all, because a reply needs its room, was seen too.
    ///
    /// A sink that writes through, such as that of blocking stdio, cannot take back a long answer that has gone on: a layer that may
    /// refuse one keeps its pieces.
    fn sends(&self, message: &SentMessage<'_>, out: &mut dyn Sink) -> bool {
        let _ = (message, out);
        true
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Outcome {
    /// A result.
    Result,
    /// The result of a tool with `isError`.
    ToolError,
    /// A JSON-RPC error with this code.
    Error(i32),
    /// None yet: it is answered later, or its handler has asked the client.
    Later,
    /// None: the sink has no room, and the same message comes again. Forget the request.
    Again,
}

/// A request on its way in, for [`Layer::request`]. It dereferences to the [`RequestContext`], with the methods that read and
/// answer it.
#[derive(Debug)]
pub struct LayerRequest<'h, 'm> {
    handling: RequestContext<'h>,
    /// The source of the message. A layer that answers for tools which the service does not know calls
    /// [`arguments`](crate::server::TransportChecks::arguments) of its `checks` with their schemas.
    pub source: MessageSource<'h>,
    /// The `method`.
    pub method: Text<'m>,
    /// The tool or prompt that it names, or the URI of the resource, as the client has sent it.
    pub name: Option<Text<'m>>,
    /// The `annotations` of the tool that a `tools/call` names; `None` if there is no such tool for this caller.
    pub tool_hints: Option<ToolAnnotations>,
    replaced: Option<Raw<'m>>,
}

impl<'h, 'm> LayerRequest<'h, 'm> {
    /// Returns who asks.
    pub fn caller(&self) -> &Caller<'h> {
        self.source.caller()
    }

    /// Replaces `params`, a JSON object: a part of the message, or a constant. Later layers and the handler get these.
    pub const fn replace_params(&mut self, params: Raw<'m>) {
        self.replaced = Some(params);
    }

    /// Answers with a result of your own, see [`CustomRequest::result`](super::CustomRequest::result).
    ///
    /// # Errors
    /// It was answered already, or the result does not fit.
    pub fn result(&mut self, result: Raw<'_>) -> Result<Option<Receipt>, HandlerError> {
        self.handling.write_own(result, None).map(Some)
    }
}

impl<'h> Deref for LayerRequest<'h, '_> {
    type Target = RequestContext<'h>;

    fn deref(&self) -> &RequestContext<'h> {
        &self.handling
    }
}

impl<'h> DerefMut for LayerRequest<'h, '_> {
    fn deref_mut(&mut self) -> &mut RequestContext<'h> {
        &mut self.handling
    }
}

impl<'t, S> Service<'t, S> {
    /// Sets the [layers](Layer) around all messages. A request goes through them in this order, and its outcome in the reverse
    /// one. Default: none.
    pub const fn layers<const N: usize>(mut self, layers: &'t [&'t dyn Layer<S>; N]) -> Self {
        self.layers = layers;
        self.about.around = Some(layers);
        self.hooks = Some(Hooks::LAYERED);
        self.dynamic.lists = Some(super::dynamic::DynamicLists::LINKED);
        self
    }
}

impl<S> Hooks<S> {
    const LAYERED: &'static Hooks<S> = &Hooks {
        dispatch: |service, origin, state, request, server, out| {
            service.dispatch_layered(origin, state, request, server, out)
        },
        watch: Some(|service, state, token, server, out, run| {
            let (kind, answered) = (Cell::new(None), Cell::new(Some(token)));
            let watch = Watch { layers: service.layers, from: server.sends(), reply: Some((&kind, &answered)) };
            run(state, server, &mut AroundOut::new(out, watch));
            if let Some(outcome) = kind.get() {
                service.leave_layers(state, token, outcome, server.now);
            }
        }),
        meta: Some(Extra::LAYERS),
    };
}

impl<S: 'static, const N: usize> Around for [&dyn Layer<S>; N] {
    fn watch(&self, from: SentMessage<'_>, out: &mut dyn Out, run: &mut dyn FnMut(&mut dyn Out)) {
        run(&mut AroundOut::new(out, Watch { layers: self, from, reply: None }));
    }

    fn add_meta(&self, token: RequestToken, meta: &mut ResultMeta<'_, '_, '_>) {
        for layer in self {
            layer.result_meta(token, meta);
        }
    }
}

/// The error for a layer that puts off what the server answers itself.
const NOT_LATER: RpcError<'static> = RpcError::internal(words("A layer cannot put this request off"));

impl<S> Service<'_, S> {
    /// Returns the writer of the `_meta` that layers add; `None` if there are no layers.
    pub(crate) fn layers_meta(&self) -> Option<Extra<'static>> {
        self.hooks?.meta
    }

    /// Sends `notifications/progress` as [`Server::progress`] does; the layers see it.
    pub fn progress(
        &self,
        token: RequestToken,
        progress: Progress<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> NotifyStatus {
        let from = server.sends();
        let told = watched(self.about.around, from, out, |out| server.progress(token, progress, out));
        told.unwrap_or(NotifyStatus::Stale)
    }

    fn dispatch_layered(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        request: &mut IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        if let MessageShape::Notification { method } = request.shape() {
            let notification = NotificationContext {
                method,
                params: request.envelope.params,
                server: server.id(),
                scope: server.scope(),
                principal: origin.principal,
            };
            let ends = method.eq_str("notifications/cancelled");
            let (cancels, now) = (if ends { server.named_by(request) } else { None }, server.now);
            let mut passes =
                |layer: &dyn Layer<S>| self.guard(|| layer.notification(state, &notification, cancels, now));
            if !self.layers.iter().all(|layer| passes(*layer).unwrap_or(true)) {
                return Ok(Dispatched::Handled);
            }
        }
        if let MessageShape::Response { id: Some(id) } = request.shape()
            && let Some((id, response)) = id.u64().zip(request.envelope.response())
        {
            let scope = server.scope();
            for layer in self.layers {
                let _ = self.guard(|| layer.response(state, id, response, scope));
            }
        }
        let own = request.method.is_answered_by_server();
        let (kind, entered) = (Cell::new(None), Cell::new(None));
        let watch = Watch { layers: self.layers, from: server.sends(), reply: Some((&kind, &entered)) };
        let mut watch = AroundOut::new(out, watch);
        let step = match own {
            true => self.dispatch_own(&entered, origin, state, request, server, &mut watch),
            false => self.dispatch_message::<true>(Some(&entered), origin, state, request, server, &mut watch),
        };
        if let Some(token) = entered.get() {
            let outcome = match step {
                Err(FullError::Now) => Outcome::Again,
                _ => kind.get().unwrap_or(match request.method {
                    // It is acknowledged.
                    Method::Listen => Outcome::Result,
                    _ => Outcome::Later,
                }),
            };
            self.leave_layers(state, token, outcome, server.now);
        }
        step
    }

    /// Handles a request that the server answers itself. It is in a slot while the layers get it.
    fn dispatch_own(
        &self,
        entered: &Cell<Option<RequestToken>>,
        origin: &MessageSource<'_>,
        state: &mut S,
        request: &mut IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        let context = ServerOptions { checks: origin.checks, ..ServerOptions::new(&self.about) };
        // One that is refused anyway, no layer gets.
        let Some(token) = server.admit_own(&context, request, out)? else { return Ok(Dispatched::Handled) };
        let caller = Caller::new(origin, request.envelope.members.meta, server);
        entered.set(Some(token));
        let answered = self.enter_layers(&origin.of(&caller), state, token, request, server, out);
        let answered = answered.inspect_err(|_| entered.set(None))?;
        if let Some(ran) = answered {
            let outcome = match ran.outcome {
                Ok(Settled::Answered) | Err(_) => ran.outcome,
                Ok(_) if request.method.is_setting() => ran.outcome,
                Ok(_) => Err(HandlerFailure::Fail(NOT_LATER)),
            };
            return self.settle(state, token, HandlerRun { outcome, ..ran }, server, out);
        }
        server.forget(token);
        (Hooks::BY_CALLER.dispatch)(self, origin, state, request, server, out)
    }

    /// Passes an admitted request through the layers. Returns what one of them has done with it.
    ///
    /// # Errors
    /// There is no room for a reply: no layer has got it, and the same message comes again.
    pub(crate) fn enter_layers<'m>(
        &self,
        called: &MessageSource<'_>,
        state: &mut S,
        token: RequestToken,
        request: &mut IncomingRequest<'m>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Option<HandlerRun>, FullError> {
        let (reserve, tool_hints) = self.foresee(called, state, token, request, server, out);
        if out.held() || out.room() < reserve.min(out.capacity()) {
            server.forget(token);
            return Err(FullError::Now);
        }
        for layer in self.layers {
            let (members, params) = (request.envelope.members, request.envelope.params);
            let (method, name) = (request.name, members.name.or(members.uri).and_then(|name| name.text()));
            let input = HandlerInput { params, members: &members, name: Some(method) };
            #[cfg(feature = "alloc")]
            let mark = out.mark();
            let Some((handling, _)) = self.context(server, token, 0, &mut *out) else {
                return Ok(None);
            };
            let handling = RequestContext { input: &input, principal: called.principal, reserve: MIN_ROOM, ..handling };
            let mut passing = LayerRequest { handling, source: *called, method, name, tool_hints, replaced: None };
            let ran = match self.guard(|| layer.request(state, &mut passing)) {
                Some(Ok(None)) if passing.handling.settled.is_none() => None,
                Some(Ok(Some(receipt))) => Some(passing.handling.ran(Ok(receipt))),
                Some(Ok(None)) => Some(passing.handling.ran_nothing()),
                Some(Err(error)) => Some(passing.handling.ran(Err(error))),
                None => {
                    #[cfg(feature = "alloc")]
                    return Ok(Some(HandlerRun::panicked(out, mark)));
                    #[cfg(not(feature = "alloc"))]
                    return Ok(None);
                }
            };
            if ran.is_some() {
                return Ok(ran);
            }
            if let Some(params) = passing.replaced {
                request.envelope.members = crate::rpc::read_params(params);
                request.envelope.params = Some(params);
            }
        }
        Ok(None)
    }

    /// Returns the room that the reply to a request will need, and the annotations of the tool that it names. A handler must not
    /// run twice for want of room, and neither may a layer: a list waits for the empty sink.
    fn foresee(
        &self,
        called: &MessageSource<'_>,
        state: &S,
        token: RequestToken,
        request: &IncomingRequest<'_>,
        server: &Server<'_>,
        out: &dyn Out,
    ) -> (usize, Option<ToolAnnotations>) {
        if request.method.is_list() || request.method.is_answered_by_server() {
            return (out.capacity(), None);
        }
        let input = HandlerInput {
            params: request.envelope.params,
            members: &request.envelope.members,
            name: Some(request.name),
        };
        let found = server.slot(token).and_then(|slot| self.find::<true>(state, called, slot, &input).ok());
        let reserve = found.as_ref().map_or(MIN_ROOM, |(_, target)| target.reserve.max(MIN_ROOM));
        let name = request.envelope.members.name.and_then(|name| name.text());
        let (Method::ToolsCall, Some(_), Some(name)) = (request.method, found, name) else { return (reserve, None) };
        let mut hints = self.tool(&name).map(|(_, tool)| tool.info.hints);
        if let (None, Some(tools)) = (hints, self.dynamic.tools) {
            tools.find(state, called.caller(), &name, &mut |_, info| hints = Some(info.hints));
        }
        (reserve, hints)
    }

    fn leave_layers(&self, state: &mut S, token: RequestToken, outcome: Outcome, now: Millis) {
        for layer in self.layers.iter().rev() {
            self.guard(|| layer.outcome(state, token, outcome, now));
        }
    }
}

/// The places for the kind of a reply, and for the request that it answers.
type Reply<'o> = (&'o Cell<Option<Outcome>>, &'o Cell<Option<RequestToken>>);

/// The layers around what a server sends. With the places for the kind of the reply, and for the request that it answers, once that
/// went through the layers; without them only notifications go through the layers.
struct Watch<'o, S: 'static> {
    layers: &'o [&'o dyn Layer<S>],
    from: SentMessage<'o>,
    reply: Option<Reply<'o>>,
}

impl<S> Watch<'_, S> {
    fn message<'p>(&'p self, passing: &'p Passing) -> SentMessage<'p> {
        let (head, method) = (passing.head, passing.method());
        let token = self.reply.filter(|_| !head.is_unasked()).and_then(|(_, token)| token.get());
        SentMessage { head, method, token, ..self.from }
    }
}

impl<'o, S> Passage for Watch<'o, S> {
    type Layer = dyn Layer<S> + 'o;

    fn layers(&self) -> &[&Self::Layer] {
        self.layers
    }

    fn begins(&self, head: Option<MessageHead<'_>>) -> bool {
        let kind = match head {
            None => None,
            Some(MessageHead::Result | MessageHead::Streamed) => Some(Outcome::Result),
            Some(MessageHead::ToolError) => Some(Outcome::ToolError),
            Some(MessageHead::Error(code) | MessageHead::Refusal(code)) => Some(Outcome::Error(code)),
            Some(head) => return matches!(head, MessageHead::Notification),
        };
        let Some((place, token)) = self.reply else { return false };
        place.set(kind);
        token.get().is_some()
    }

    fn writes(
        &self,
        layer: &Self::Layer,
        passing: &Passing,
        piece: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), FullError> {
        layer.writes(&self.message(passing), piece, out)
    }

    fn sends(&self, layer: &Self::Layer, passing: &Passing, out: &mut dyn Sink) -> bool {
        layer.sends(&self.message(passing), out)
    }
}
