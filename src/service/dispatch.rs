//! From a message to a handler: finds what a request names and calls it.

use super::Service;
use super::handling::are_responses;
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::Method;
use crate::server::{
    ASKS, BatchOut, Context, Engine, Failure, Gate, Large, OVERLOADED, Request, Scope, Taken, Token, WINDOWS, What,
    respond_failure,
};
use crate::sink::{Full, Kind, Out, whole};

/// What is left to do after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a reply in windows needs to be pumped"]
#[non_exhaustive]
pub enum Step {
    /// Nothing.
    Handled,
    /// A handler answers later, with this ticket.
    Later(Token),
    /// The reply is larger than the sink: call [`Service::pump`] whenever there is room.
    Streaming(Token),
}

/// Where a message came from, as far as its transport knows more than its bytes.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Origin<'o> {
    /// What the transport checks in between.
    pub gate: &'o dyn Gate,
    /// Whom the message came from.
    pub principal: Option<&'o str>,
}

/// A notification that a client sent, for [`Service::on_notification`].
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Notified<'a> {
    /// Its `method`.
    pub method: Text<'a>,
    /// Its `params` as they came.
    pub params: Option<Raw<'a>>,
    /// Which session it came from: the [`scope`](super::Handling::scope) of the requests of that session. Over stdio and in
    /// 2026-07-28 it tells nothing.
    pub scope: Scope,
    /// Whom it came from, where the transport knows that.
    pub principal: Option<&'a str>,
}

impl Origin<'_> {
    /// A line of which nothing more is known.
    pub const LINE: Origin<'static> = Origin { gate: &(), principal: None };
}

impl<'o> Origin<'o> {
    /// A transport with checks of its own.
    #[must_use]
    pub const fn new(gate: &'o dyn Gate) -> Self {
        Origin { gate, principal: None }
    }

    /// From somebody known.
    #[must_use]
    pub const fn principal(self, principal: &'o str) -> Self {
        Origin { principal: Some(principal), ..self }
    }
}

impl core::fmt::Debug for Origin<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Origin").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl<S> Service<'_, S> {
    /// Handles one message: answers it, or calls its handler.
    ///
    /// On [`Full::Now`] nothing has changed, and no handler has run: send what is pending and call again with the same
    /// message. On [`Full::Never`] the sink is smaller than [`MIN_ROOM`](crate::server::MIN_ROOM): drop the message.
    pub fn dispatch(
        &self,
        state: &mut S,
        message: &[u8],
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        self.dispatch_from(&Origin::LINE, state, message, server, out)
    }

    /// As [`dispatch`](Service::dispatch), for a transport that knows more than the bytes.
    pub fn dispatch_from(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        message: &[u8],
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let has_resource = |uri: &Text<'_>| self.has_resource(uri);
        let context = self.context(origin, &has_resource);
        let mut request = Request::empty();
        match server.take(&context, message, &mut request, out)? {
            Some(Taken::Request { token }) => self.request(origin, state, token, &request, server, out),
            Some(taken) => self.taken(origin, state, taken, &request, server, out),
            None => Ok(Step::Handled),
        }
    }

    /// As [`dispatch_from`](Service::dispatch_from), for a transport that had to [read](Request::read) the message already.
    pub fn dispatch_read(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        request: &mut Request<'_>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let has_resource = |uri: &Text<'_>| self.has_resource(uri);
        let context = self.context(origin, &has_resource);
        match server.take_read(&context, request, out)? {
            Some(Taken::Request { token }) => self.request(origin, state, token, request, server, out),
            Some(taken) => self.taken(origin, state, taken, request, server, out),
            None => Ok(Step::Handled),
        }
    }

    fn context<'c>(&'c self, origin: &Origin<'c>, has_resource: &'c dyn Fn(&Text<'_>) -> bool) -> Context<'c> {
        let mut context = Context::new(&self.about).with_gate(origin.gate);
        context.has_resource = has_resource;
        context
    }

    fn taken(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        taken: Taken<'_>,
        request: &Request<'_>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        match taken {
            Taken::Request { token } => self.request(origin, state, token, request, server, out),
            Taken::Streaming { token } => Ok(self.streaming(state, token, server, out)),
            Taken::Notification { method, params } => {
                if let Some(notified) = self.notified {
                    notified(state, &Notified { method, params, scope: server.scope(), principal: origin.principal });
                }
                Ok(Step::Handled)
            }
            Taken::Cancelled { token } => {
                if let Some((reasons, reason)) = self.reasons.zip(request.reason()) {
                    reasons(state, token, &reason);
                }
                if let Some(cancelled) = self.cancelled {
                    cancelled(state, token);
                }
                Ok(Step::Handled)
            }
            // Said for the compiler: a service without those revisions need not have the code.
            Taken::Batch { elements } if self.about.revisions.have_batches() => {
                self.batch(origin, state, elements, server, out)
            }
            _ => Ok(Step::Handled),
        }
    }

    /// Gives up a request that nobody can hear the answer of; its handler is told if it has put that off.
    pub fn forget(&self, state: &mut S, token: Token, server: &mut Engine<'_>) {
        let Some(_) = server.slot(token) else { return };
        server.forget(token);
        if let Some(cancelled) = self.cancelled {
            cancelled(state, token);
        }
    }

    /// Gives up a request as [`forget`](Service::forget) does, and tells its client with an error.
    ///
    /// # Errors
    /// [`Full`] if there is no room for the error; the request is given up all the same.
    pub fn give_up(
        &self,
        state: &mut S,
        token: Token,
        message: &str,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<(), Full> {
        let Some(slot) = server.slot(token) else { return Ok(()) };
        let told = respond_failure(out, Some(slot.id.as_bytes()), &Failure::internal(message).refusing());
        self.forget(state, token, server);
        told
    }

    /// Ends everything of a scope: a connection or session that is over. Handlers that put their answer off are told.
    pub fn end_scope(&self, state: &mut S, scope: crate::server::Scope, server: &mut Engine<'_>) {
        while let Some(token) = server.any_of(scope) {
            server.forget(token);
            if let Some(cancelled) = self.cancelled {
                cancelled(state, token);
            }
        }
        server.end_scope(scope);
    }

    /// A request that the engine has admitted. On [`Full`] it is given up, as if it had not come.
    #[inline(never)]
    fn request(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        token: Token,
        request: &Request<'_>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let done = match request.method() {
            Method::ToolsList | Method::ResourcesList | Method::TemplatesList | Method::PromptsList => {
                self.list(state, token, request, server, out)
            }
            _ => self.run(origin, state, token, request, server, out),
        };
        if done.is_err() {
            server.forget(token);
        }
        done
    }

    /// What the members of a request must be, before its handler is looked for.
    pub(super) fn check(&self, request: &Request<'_>, modern: bool, why: &mut Failure<'_>) -> Option<()> {
        let members = request.members();
        match request.method() {
            Method::ToolsCall | Method::PromptsGet if !request.members().name.is_some_and(is_string) => {
                return why.be_params("Invalid params: name is missing");
            }
            Method::ResourcesRead if !request.members().uri.is_some_and(is_string) => {
                return why.be_params("Invalid params: uri is missing");
            }
            _ => {}
        }
        if members.arguments.is_some_and(|arguments| arguments.kind() != JsonKind::Object) {
            return why.be_params("Invalid params: arguments is not an object");
        }
        if !modern || !ASKS {
            // Members that these revisions, or programs that never ask, do not know.
            return Some(());
        }
        if members.input_responses.is_some_and(|responses| !are_responses(responses)) {
            return why.be_params("Invalid params: inputResponses is not an object of objects");
        }
        if members.request_state.is_some_and(|state| !is_string(state)) {
            return why.be_params("Invalid params: requestState is not a string");
        }
        Some(())
    }

    fn list(
        &self,
        state: &mut S,
        token: Token,
        request: &Request<'_>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let Some(mut page) = self.page(request.method(), request.members().cursor) else {
            return fail(server, token, &Failure::invalid_params("Invalid params: no such cursor"), out);
        };
        let Some(slot) = server.slot(token) else { return Ok(Step::Handled) };
        loop {
            match whole(out, Kind::Result, |out| self.write_list(slot, page, out)) {
                Ok(()) => {
                    server.forget(token);
                    return Ok(Step::Handled);
                }
                Err(Full::Now) => {
                    server.retract(token);
                    return Err(Full::Now);
                }
                Err(Full::Never) if WINDOWS => break,
                // What does not fit stands behind the cursor.
                Err(Full::Never) if page.end - page.start > 1 => page.end -= (page.end - page.start).div_ceil(4),
                Err(Full::Never) => return fail(server, token, &Failure::too_large(), out),
            }
        }
        if server.is_crowded() {
            return fail(server, token, &OVERLOADED, out);
        }
        server.begin_large(token, Large::of(What::List { start: page.start, end: page.end }), out)?;
        Ok(self.streaming(state, token, server, out))
    }

    /// Sends the first window of a reply in windows.
    pub(crate) fn streaming(&self, state: &mut S, token: Token, server: &mut Engine<'_>, out: &mut dyn Out) -> Step {
        match self.pump(state, token, server, out) {
            super::Pump::Done => Step::Handled,
            super::Pump::More => Step::Streaming(token),
        }
    }

    /// Handles the elements of a batch from where it was left.
    #[inline(never)]
    fn batch(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        elements: Raw<'_>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let mut array = BatchOut::new(out, server.peer.batch.open);
        let done = self.elements(origin, state, elements, server, &mut array);
        if done == Err(Full::Now) {
            server.peer.batch.open = array.leave();
            return Err(Full::Now);
        }
        array.finish();
        server.peer.batch = crate::server::Batch::NONE;
        done.map(|()| Step::Handled)
    }

    fn elements(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        elements: Raw<'_>,
        server: &mut Engine<'_>,
        out: &mut BatchOut<'_>,
    ) -> Result<(), Full> {
        for element in elements.items().skip(server.peer.batch.done as usize) {
            if server.peer.batch.streaming.is_none() {
                let step = match server.refuse_element(element, out) {
                    Ok(true) => Ok(Step::Handled),
                    Ok(false) => self.dispatch_from(origin, state, element.as_bytes(), server, out),
                    Err(full) => Err(full),
                };
                match step {
                    Err(Full::Now) => return Err(Full::Now),
                    // Not even the error fits: the element goes without an answer, the others do not.
                    Err(Full::Never) | Ok(Step::Handled | Step::Later(_)) => {}
                    Ok(Step::Streaming(token)) => server.peer.batch.streaming = Some(token),
                }
            }
            if let Some(token) = server.peer.batch.streaming.filter(|_| WINDOWS) {
                if self.pump(state, token, server, out) == super::Pump::More {
                    return Err(Full::Now);
                }
                server.peer.batch.streaming = None;
            }
            server.peer.batch.done += 1;
        }
        Ok(())
    }

    /// Whether there is a resource at `uri`, or a template that it matches.
    pub(crate) fn has_resource(&self, uri: &Text<'_>) -> bool {
        self.find_resource(uri).is_some()
    }
}

fn is_string(value: Raw<'_>) -> bool {
    value.kind() == JsonKind::String
}

/// Answers with an error.
pub(crate) fn fail(
    server: &mut Engine<'_>,
    token: Token,
    failure: &Failure<'_>,
    out: &mut dyn Out,
) -> Result<Step, Full> {
    use crate::server::SendError;
    match server.fail(token, failure, out) {
        Ok(()) | Err(SendError::Stale | SendError::WrongKind) => Ok(Step::Handled),
        Err(SendError::FullNow) => {
            server.retract(token);
            Err(Full::Now)
        }
        Err(SendError::FullNever | SendError::NotInitialized) => Err(Full::Never),
    }
}
