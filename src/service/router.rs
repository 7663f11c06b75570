//! The path of a message from bytes to reply, in [`Service::dispatch_from`] and [`Service::dispatch_read`].
//!
//! A `tools/call` goes through eight steps: parse, admit, check, find, reserve, invoke, write, release. A request is refused
//! in one of three places, in this order:
//!
//! 1. `Server::take` admits it: id, era, version, capabilities, the headers of the transport, params, `progressToken`, log
//!    level, a second request with the same id, a free slot (`src/server/admission.rs`, `src/server/in_flight.rs`).
//! 2. [`Service::check`]: the types of the members that the method needs.
//! 3. [`Route::find`](super::linked::Route): the tool, resource, prompt or completion that it names, required arguments, the
//!    copies of arguments in the transport; then `requestState`, by its seal.

use core::cell::Cell;

use super::contain::{PANICKED, run_handler};
use super::context::{AskVia, Extra, HandlerInput, are_responses};
use super::find::Target;
use super::linked::Route;
use super::requests::Call;
use super::scratch;
use super::{Caller, MessageSource, Service};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::Method;
use crate::server::{
    ASKS, IncomingRequest, MIN_ROOM, RequestSlot, RequestToken, RespondError, RpcError, Scope, Server, ServerEvent,
    ServerId, ServerOptions, respond_failure, words,
};
use crate::sink::{FullError, Out};

/// The work that is left after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a reply in windows needs to be pumped"]
#[non_exhaustive]
pub enum Dispatched {
    /// Nothing.
    Handled,
    /// A handler answers later, with this token.
    Later(RequestToken),
    /// The reply is larger than the sink. Send the pending bytes, then call [`Service::pump`], until it returns
    /// [`Handled`](Dispatched::Handled).
    Streaming(RequestToken),
}

/// The context of a notification from the client, for [`Service::on_notification`].
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct NotificationContext<'a> {
    /// The `method`.
    pub method: Text<'a>,
    /// The `params`, unchanged.
    pub params: Option<Raw<'a>>,
    /// The server that it came to, see [`RequestContext::server`](super::RequestContext::server).
    pub server: ServerId,
    /// The session, see [`RequestContext::scope`](super::RequestContext::scope). Over stdio and in 2026-07-28 it is always
    /// the same.
    pub scope: Scope,
    /// The authenticated user, if the transport knows one.
    pub principal: Option<&'a str>,
}

/// The code of a service whose entries differ by caller, or that has layers or contains panics: others are linked without it.
pub(crate) struct Hooks<S: 'static> {
    /// Handles a message that was read.
    pub(crate) dispatch: DispatchMessage<S>,
    /// Runs a function that may answer a request, and passes its outcome to the layers.
    pub(crate) watch: Option<WatchAnswer<S>>,
    /// The writer of the `_meta` that layers add to a result.
    pub(crate) meta: Option<Extra<'static>>,
}

impl<S> Hooks<S> {
    pub(crate) const BY_CALLER: &'static Hooks<S> = &Hooks {
        dispatch: |service, origin, state, request, server, out| {
            service.dispatch_message::<true>(None, origin, state, request, server, out)
        },
        watch: None,
        meta: None,
    };
}

/// See [`Hooks::watch`].
pub(crate) type WatchAnswer<S> = fn(
    &Service<'_, S>,
    &mut S,
    RequestToken,
    &mut Server<'_>,
    &mut dyn Out,
    &mut dyn FnMut(&mut S, &mut Server<'_>, &mut dyn Out),
);

/// Handles a message that was read, see [`Service::dispatch_read`].
pub(crate) type DispatchMessage<S> = fn(
    &Service<'_, S>,
    &MessageSource<'_>,
    &mut S,
    &mut IncomingRequest<'_>,
    &mut Server<'_>,
    &mut dyn Out,
) -> Result<Dispatched, FullError>;

impl<S> Service<'_, S> {
    /// Handles one message: answers it, or calls its handler.
    ///
    /// # Errors
    /// [`FullError::Now`]: nothing has changed, and no handler has run. Send the pending bytes, and call again with the same
    /// message. [`FullError::Never`]: the sink is smaller than [`MIN_ROOM`]. Drop the message.
    pub fn dispatch(
        &self,
        state: &mut S,
        message: &[u8],
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        self.dispatch_from(&MessageSource::LINE, state, message, server, out)
    }

    /// Handles one message as [`dispatch`](Service::dispatch) does, for a transport with checks or users.
    ///
    /// # Errors
    /// As [`dispatch`](Service::dispatch).
    pub fn dispatch_from(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        message: &[u8],
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        let mut request = IncomingRequest::empty();
        // 1. Parse: one pass finds all members that the protocol knows.
        match request.read(message) {
            Ok(()) => self.dispatch_read(origin, state, &mut request, server, out),
            Err(fault) => {
                let event = server.unreadable(fault, message, out)?;
                self.event(origin, state, event, server, out)
            }
        }
    }

    /// Handles one message as [`dispatch_from`](Service::dispatch_from) does, for a transport that has
    /// [read](IncomingRequest::read) it already.
    ///
    /// # Errors
    /// As [`dispatch`](Service::dispatch).
    #[inline(never)]
    pub fn dispatch_read(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        request: &mut IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        match self.hooks {
            Some(hooks) => (hooks.dispatch)(self, origin, state, request, server, out),
            None => self.dispatch_message::<false>(None, origin, state, request, server, out),
        }
    }

    /// Handles one message that was read; `BY_CALLER` if the service has [`Hooks`]. Notes in `entered`
    /// the request that goes through the layers. The whole story in one function: cut at step 2 or 5 it has 88 or 44 bytes of flash more
    /// (uart, tools only).
    #[inline(always)]
    pub(crate) fn dispatch_message<const BY_CALLER: bool>(
        &self,
        entered: Option<&Cell<Option<RequestToken>>>,
        origin: &MessageSource<'_>,
        state: &mut S,
        request: &mut IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        let caller =
            if BY_CALLER { Caller::new(origin, request.envelope.members.meta, server) } else { Caller::NOBODY };
        let called = if BY_CALLER { &origin.of(&caller) } else { origin };
        // 2. Admit: the server answers requests without a handler, and gives a slot to the others.
        let has_resource = |uri: &Text<'_>| {
            let has = || match BY_CALLER {
                true => self.has_resource(&*state, called, uri),
                // The closure has no origin: 8 bytes of flash less (uart, tools only).
                false => self.find_resource(&*state, &MessageSource::LINE, uri).is_some(),
            };
            self.guard(has).unwrap_or_default()
        };
        #[cfg(feature = "extensions")]
        let topics = super::extension::ServiceTopics {
            service: self,
            state: &*state,
            principal: origin.principal,
            capabilities: request.envelope.meta.capabilities,
        };
        let checks = origin.checks;
        let context = ServerOptions { checks, has_resource: &has_resource, ..ServerOptions::new(&self.about) };
        #[cfg(feature = "extensions")]
        let context = ServerOptions { topics: &topics, ..context };
        // No `?` here: it would copy the event.
        let token = match server.handle_read(&context, request, out) {
            Ok(Some(ServerEvent::Request { token })) => token,
            event => return self.event(origin, state, event?, server, out),
        };
        if let (true, Some(entered)) = (BY_CALLER, entered) {
            entered.set(Some(token));
            let answered = self.enter_layers(called, state, token, request, server, out);
            let answered = answered.inspect_err(|_| entered.set(None))?;
            if let Some(ran) = answered {
                return self.settle(state, token, ran, server, out);
            }
        }
        if request.method.is_list() {
            return self.run_list::<BY_CALLER>(state, called, token, request, server, out);
        }
        let Some(slot) = server.slot(token) else { return Ok(Dispatched::Handled) };
        let caller = if BY_CALLER { caller.of(slot) } else { caller };
        let called = if BY_CALLER { &origin.of(&caller) } else { origin };
        let modern = slot.revision.is_modern();
        let input = HandlerInput {
            params: request.envelope.params,
            members: &request.envelope.members,
            name: Some(request.name),
        };
        // 3. Check the members.
        if let Err(failure) = Self::check(request, modern) {
            return fail(server, token, &failure, out);
        }
        // 4. Find the entry that the request names, and open the state that came with it.
        let (route, target) = match self.find::<BY_CALLER>(state, called, slot, &input) {
            Ok(found) => found,
            Err(failure) => return fail(server, token, &failure, out),
        };
        let opened = match scratch::prepare(server, token, &input, origin.principal, modern) {
            Ok(opened) => opened,
            Err(failure) => return fail(server, token, &failure, out),
        };
        // 5. Reserve room for the reply: no handler runs twice because its reply did not fit.
        let reserve = target.reserve.max(MIN_ROOM);
        if out.held() || out.room() < reserve.min(out.capacity()) {
            server.forget(token);
            return Err(FullError::Now);
        }
        // 6. Invoke the handler. 7. It writes its reply straight into the sink.
        let (has_slot, next_id) = (!modern && server.can_ask(input.params), server.next_id);
        let Some((handling, asks)) = self.context(server, token, opened, &mut *out) else {
            return Ok(Dispatched::Handled);
        };
        // Filled where it stays: to make it last copies it, 27 instructions of a `tools/call`.
        let mut call = Call { handling };
        call.handling.ask = match modern {
            _ if !ASKS => AskVia::Closed,
            true => AskVia::Travels { responses: input.members.input_responses, keep: asks, again: false },
            false => AskVia::Stays { live: None, keep: asks, has_slot, next_id },
        };
        (call.handling.input, call.handling.principal, call.handling.reserve) = (&input, origin.principal, reserve);
        if BY_CALLER {
            call.handling.result_meta = self.layers_meta();
        }
        // A service that contains panics has hooks: with both ways, each would fill its own context.
        let ran = if BY_CALLER {
            run_handler!(self, out, call, (route.call)(self, state, &target, call))
        } else {
            (route.call)(self, state, &target, call)
        };
        // 8. Release the slot, or put the request off, ask, or stream.
        self.settle(state, token, ran, server, out)
    }

    /// Checks the types of the members of a request.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn check(request: &IncomingRequest<'_>, modern: bool) -> Result<(), RpcError<'static>> {
        let members = &request.envelope.members;
        let message = match request.method {
            Method::ToolsCall | Method::PromptsGet if !members.name.is_some_and(is_string) => {
                "Invalid params: name is missing"
            }
            _ if members.arguments.is_some_and(|arguments| arguments.kind() != JsonKind::Object) => {
                "Invalid params: arguments is not an object"
            }
            // Up to 2025-11-25, and without the feature `ask`, there are no such members.
            _ if !modern || !ASKS => return Ok(()),
            _ if members.input_responses.is_some_and(|responses| !are_responses(responses)) => {
                "Invalid params: inputResponses is not an object of objects"
            }
            _ if members.request_state.is_some_and(|state| !is_string(state)) => {
                "Invalid params: requestState is not a string"
            }
            _ => return Ok(()),
        };
        Err(RpcError::invalid_params(words(message)))
    }

    /// Finds the entry that a request names, and its route.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn find<'a, const BY_CALLER: bool>(
        &self,
        state: &S,
        origin: &MessageSource<'_>,
        slot: &RequestSlot,
        input: &HandlerInput<'a>,
    ) -> Result<(&'static Route<S>, Target<S>), RpcError<'a>> {
        let route = self.routes.of(slot.method).ok_or(RpcError::method_not_found())?;
        let find = || {
            if BY_CALLER {
                self.check_caller(state, origin.caller(), slot, input)?;
            }
            (route.find)(self, state, origin, slot, input)
        };
        Ok((route, self.guard(find).unwrap_or(Err(PANICKED))?))
    }

    /// Handles an event without a handler for requests.
    fn event(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        event: Option<ServerEvent<'_>>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        match event {
            Some(ServerEvent::Streaming { token }) => return Ok(self.pump(state, token, server, out)),
            Some(ServerEvent::Notification { method, params }) => {
                let principal = origin.principal;
                if let Some(notified) = self.notified {
                    let (server, scope) = (server.id(), server.scope());
                    let notification = NotificationContext { method, params, server, scope, principal };
                    self.guard(|| notified(state, &notification));
                }
            }
            Some(ServerEvent::Cancelled { token }) => {
                if let Some(cancelled) = self.cancelled {
                    self.guard(|| cancelled(state, token));
                }
            }
            // The guard lets the compiler leave out the code of batches if no served revision has them.
            Some(ServerEvent::Batch { elements }) if self.about.revisions.have_batches() => {
                return self.batch(origin, state, elements, server, out);
            }
            _ => {}
        }
        Ok(Dispatched::Handled)
    }

    /// Drops a request whose client is gone, and calls [`on_cancel`](Service::on_cancel).
    pub fn forget(&self, state: &mut S, token: RequestToken, server: &mut Server<'_>) {
        let Some(_) = server.slot(token) else { return };
        server.forget(token);
        if let Some(cancelled) = self.cancelled {
            self.guard(|| cancelled(state, token));
        }
    }

    /// Drops a request as [`forget`](Service::forget) does, and answers it with error -32603.
    ///
    /// # Errors
    /// There is no room for the error. The request is dropped also then.
    pub fn abandon_request(
        &self,
        state: &mut S,
        token: RequestToken,
        message: &str,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<(), FullError> {
        let Some(slot) = server.slot(token) else { return Ok(()) };
        let answered = respond_failure(out, Some(slot.id.as_bytes()), &RpcError::internal(message).refusing());
        self.forget(state, token, server);
        answered
    }

    /// Drops all requests and subscriptions of a connection or session that is over, and calls
    /// [`on_cancel`](Service::on_cancel) for each request.
    pub fn end_scope(&self, state: &mut S, scope: Scope, server: &mut Server<'_>) {
        while let Some(token) = server.any_of(scope) {
            self.forget(state, token, server);
        }
        server.end_scope(scope);
    }
}

fn is_string(value: Raw<'_>) -> bool {
    value.kind() == JsonKind::String
}

/// Answers with an error.
pub(crate) fn fail(
    server: &mut Server<'_>,
    token: RequestToken,
    failure: &RpcError<'_>,
    out: &mut dyn Out,
) -> Result<Dispatched, FullError> {
    match server.fail(token, failure, out) {
        Ok(()) | Err(RespondError::Stale | RespondError::WrongKind) => Ok(Dispatched::Handled),
        Err(RespondError::FullNow) => {
            server.forget(token);
            Err(FullError::Now)
        }
        Err(RespondError::FullNever | RespondError::NotInitialized) => {
            server.forget(token);
            Err(FullError::Never)
        }
    }
}
