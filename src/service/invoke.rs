//! Runs handlers again, and does what the outcome of a handler demands: the reply, the questions, the windows.

use super::contain::run_handler;
use super::context::{
    AskVia, HandlerFailure, HandlerInput, HandlerResult, HandlerRun, RequestContext, Settled, refuse,
};
use super::definition::ResourceInfo;
use super::requests::Call;
use super::router::Dispatched;
use super::scratch::SEALED;
use super::{Caller, MessageSource, Service};
use crate::json::Raw;
use crate::memory::records::RecordIter;
use crate::rpc::RequestMembers;
use crate::server::ask::{PARAMS, PRINCIPAL, STATE};
use crate::server::{
    ASKS, Caching, MIN_ROOM, OVERLOADED, RequestSlot, RequestToken, RpcError, Server, StreamedReply, WINDOWS,
    respond_failure,
};
use crate::sink::{FullError, Out};

impl<S> Service<'_, S> {
    /// Runs the handler of a request again: one that [`ready`](Server::ready) returned, because the answers to its questions
    /// are in, or because it was [woken](Server::wake). `out` is the sink for its reply.
    ///
    /// # Errors
    /// [`FullError::Now`]: nothing has changed; send, then call again.
    pub fn resume(
        &self,
        state: &mut S,
        token: RequestToken,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        self.resume_from(&MessageSource::LINE, state, token, server, out)
    }

    /// Runs the handler of a request again as [`resume`](Service::resume) does, for a transport that knows its user.
    ///
    /// # Errors
    /// As [`resume`](Service::resume).
    pub fn resume_from(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        token: RequestToken,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        if !server.slot(token).is_some_and(RequestSlot::is_ready) {
            return Ok(Dispatched::Handled);
        }
        let Some(watch) = self.hooks.and_then(|hooks| hooks.watch) else {
            return self.resume_now(origin, state, token, server, out);
        };
        let mut done = Ok(Dispatched::Handled);
        watch(self, state, token, server, out, &mut |state, server, out| {
            done = self.resume_now(origin, state, token, server, out);
        });
        done
    }

    fn resume_now(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        token: RequestToken,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        if out.held() {
            return Err(FullError::Now);
        }
        server.withdraw_questions(token, out)?;
        let owner = u32::from(token.slot());
        let old = server.asks.iter().count();
        let spare = room_to_run_again(server, owner);
        let (has_slot, next_id) = (server.can_ask_again(), server.next_id);
        let Some((handling, asks)) = self.context(server, token, 0, &mut *out) else {
            return Ok(Dispatched::Handled);
        };
        let (live, mut draft) = asks.split(spare);
        let params = kept(&live, owner, PARAMS).map(Raw::trusted);
        let members = params.map_or(RequestMembers::NONE, crate::rpc::read_params);
        let input = HandlerInput { params, members: &members, name: None };
        let principal = kept(&live, owner, PRINCIPAL).and_then(|name| core::str::from_utf8(name).ok());
        let principal = principal.or(origin.principal);
        // It was allowed when it came.
        let caller = Caller::admitted(principal, members.meta, handling.server, handling.slot);
        let called = MessageSource::LINE.of(&caller);
        let (route, target) = match self.find::<false>(state, &called, handling.slot, &input) {
            Ok(found) => found,
            Err(failure) => {
                // The service has changed meanwhile.
                respond_failure(handling.out, Some(handling.slot.id.as_bytes()), &failure)?;
                server.forget(token);
                return Ok(Dispatched::Handled);
            }
        };
        let reserve = target.reserve.max(MIN_ROOM);
        if handling.out.room() < reserve.min(handling.out.capacity()) {
            return Err(FullError::Now);
        }
        handling.slot.resume();
        let kept_state = kept(&live, owner, STATE).unwrap_or(b"");
        let ask = match handling.slot.revision.is_modern() {
            true => AskVia::Travels { responses: members.input_responses, keep: &mut draft, again: true },
            false => AskVia::Stays { live: Some(live), keep: &mut draft, has_slot, next_id },
        };
        let result_meta = self.layers_meta();
        let handling = RequestContext { input: &input, state: kept_state, ask, principal, ..handling };
        let call = Call { handling: RequestContext { reserve, result_meta, ..handling } };
        let mut ran = run_handler!(self, out, call, (route.call)(self, state, &target, call));
        ran.drafted = draft.used();
        keep_questions(server, token, old, &ran)?;
        self.settle(state, token, ran, server, out)
    }

    pub(crate) fn resource_info(&self, index: usize) -> Option<&ResourceInfo<'static>> {
        match self.resources.get(index) {
            Some(resource) => Some(&resource.info),
            None => self.templates.get(index.checked_sub(self.resources.len())?).map(|template| &template.info),
        }
    }

    pub(crate) fn caching_of(&self, index: usize) -> Caching {
        self.resource_info(index).and_then(|info| info.caching).unwrap_or(self.about.caching)
    }

    /// Does what the outcome of a handler demands.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn settle(
        &self,
        state: &mut S,
        token: RequestToken,
        ran: HandlerRun,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        #[cfg(feature = "alloc")]
        server.note_published();
        if let Ok(Settled::Answered) = ran.outcome {
            server.forget(token);
            return Ok(Dispatched::Handled);
        }
        self.settle_other(state, token, ran.outcome, server, out)
    }

    #[inline(never)]
    fn settle_other(
        &self,
        state: &mut S,
        token: RequestToken,
        outcome: Result<Settled, HandlerFailure>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        match outcome {
            Ok(Settled::Answered) => Ok(Dispatched::Handled),
            Ok(Settled::Later | Settled::Suspended) if server.is_crowded() => {
                // The handler may have kept the token: it must not run again.
                let refused = self.abandon_request(state, token, OVERLOADED.message, server, out);
                refused.map(|()| Dispatched::Handled).map_err(|_| FullError::Never)
            }
            Ok(Settled::Later) => {
                server.put_off(token);
                Ok(Dispatched::Later(token))
            }
            Ok(Settled::Suspended) => Ok(Dispatched::Later(token)),
            Ok(Settled::Asked) => {
                let asked = server.slot(token).and_then(RequestSlot::round).map_or(0, |round| round.asked.count_ones());
                server.next_id += u64::from(asked);
                Ok(Dispatched::Handled)
            }
            Ok(Settled::Streaming(_)) if !WINDOWS => Ok(Dispatched::Handled),
            Ok(Settled::Streaming(what)) => {
                server.stream(token, StreamedReply::of(what), out);
                Ok(self.pump(state, token, server, out))
            }
            Err(HandlerFailure::AskLater) if ASKS => {
                server.forget(token);
                Err(FullError::Now)
            }
            Err(why) => {
                let Some(slot) = server.slot(token) else { return Ok(Dispatched::Handled) };
                let refused = match refuse(&self.about, slot, self.layers_meta(), why, out) {
                    // The handler must not run again: a short error fits.
                    Err(_) => respond_failure(out, Some(slot.id.as_bytes()), &why.in_short()),
                    refused => refused,
                };
                server.forget(token);
                refused.map(|()| Dispatched::Handled).map_err(|_| FullError::Never)
            }
        }
    }
}

impl RequestContext<'_> {
    /// Returns the outcome of the handler. An answer that is written counts more than an error that it returned.
    #[inline]
    pub(crate) fn ran(&self, outcome: HandlerResult) -> HandlerRun {
        match self.settled {
            Some(settled) => HandlerRun { outcome: Ok(settled), drafted: 0 },
            None => HandlerRun { outcome: outcome.map(|done| done.0).map_err(|refusal| refusal.0), drafted: 0 },
        }
    }

    /// Returns the outcome if the service has changed since its handler was found.
    pub(crate) fn ran_nothing(&self) -> HandlerRun {
        self.ran(Err(RpcError::method_not_found().into()))
    }
}

/// Makes room in the scratch for a handler that runs again: decoded text, new questions and their state. Returns the room
/// for new questions, in bytes.
fn room_to_run_again(server: &mut Server<'_>, owner: u32) -> usize {
    let size = kept(&server.asks.iter(), owner, PARAMS).map_or(0, <[u8]>::len);
    // Decoded text is never longer than its source.
    let _ = server.scratch.reach(size.saturating_mul(2).min(server.scratch.limit()));
    if server.seal.is_some() {
        let _ = server.scratch.reach(size.saturating_add(SEALED).min(server.scratch.limit()));
    }
    // The size of the params is enough for a new state.
    size + 1024
}

/// Returns a record of a request whose handler has asked.
fn kept<'r>(records: &RecordIter<'r>, owner: u32, kind: u8) -> Option<&'r [u8]> {
    let mut records = records.clone();
    records.find(|record| record.owner == owner && record.kind == kind).map(|record| record.data)
}

/// Replaces the `old` records of a request by the new ones, if it waits again.
///
/// # Errors
/// [`FullError::Now`] if the handler has to run once more, when there is room for its questions.
fn keep_questions(server: &mut Server<'_>, token: RequestToken, old: usize, ran: &HandlerRun) -> Result<(), FullError> {
    // The answers of a suspended request stay: its next run sees them too.
    let is_suspended = match ran.outcome {
        Err(HandlerFailure::AskLater) => {
            if let Some(slot) = server.slot_mut(token) {
                slot.wait_for_room();
            }
            return Err(FullError::Now);
        }
        Ok(Settled::Asked) => false,
        Ok(Settled::Suspended) => true,
        _ => return Ok(()),
    };
    server.asks.commit(ran.drafted);
    let mut seen = 0;
    server.asks.remove(|record| {
        seen += 1;
        let stays = if is_suspended { record.kind != STATE } else { matches!(record.kind, PARAMS | PRINCIPAL) };
        seen <= old && record.owner == u32::from(token.slot()) && !stays
    });
    Ok(())
}
