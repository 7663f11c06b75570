//! Runs handlers, and settles what they did: the reply that is owed, the questions that are open.

use super::call::{Call, Complete, Get, Other, Read};
use super::content::Words;
use super::dispatch::{Origin, Step, fail};
use super::find::{Asked, Found};
use super::handling::{Desk, Handling, Outcome, Settled, Why, write_words};
use super::parts::{Layout, Parts, SEALED, escaped_texts};
use super::{Service, ToolInfo};
use crate::json::{Raw, Text};
use crate::protocol::Method;
use crate::records::Iter;
use crate::rpc::Members;
use crate::server::ask::{Ended, PARAMS, PRINCIPAL, STATE};
use crate::server::{
    ASKS, About, Engine, Failure, Large, OVERLOADED, Request, SendError, Slot, State, Token, WINDOWS, respond_failure,
};
use crate::sink::{Full, Out};

/// What a finished run leaves behind, freed from everything it borrowed.
pub(crate) struct Ran {
    pub(crate) outcome: Result<Settled, Why>,
    /// Bytes of new records in the draft of a resumed ask.
    pub(crate) drafted: usize,
}

impl<S> Service<'_, S> {
    /// Runs the handler of a request that has just come in.
    pub(crate) fn run(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        token: Token,
        request: &Request<'_>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let asked = Asked { params: request.params(), members: request.members(), name: Some(request.method_name()) };
        let Some(slot) = server.slot(token) else { return Ok(Step::Handled) };
        let modern = slot.revision.is_modern();
        let mut why = Failure::NONE;
        let found = self.check(request, modern, &mut why).and_then(|()| self.find(slot, &asked, &mut why));
        let found = found.filter(|found| why.unless(self.check_gate(origin, found, &asked)).is_some());
        let Some(found) = found else { return fail(server, token, &why, out) };
        let reserve = self.reserve(&found);
        if out.held() || out.room() < reserve.min(out.capacity()) {
            server.retract(token);
            return Err(Full::Now);
        }
        let (has_slot, next_id) = (server.can_ask(asked.params), server.next_id);
        let layout = match Layout::prepare(server, token, &asked, origin.principal, modern) {
            Ok(layout) => layout,
            Err(failure) => return fail(server, token, &failure, out),
        };
        let Some((parts, asks)) = Parts::of(server, token, layout) else { return Ok(Step::Handled) };
        let desk = match modern {
            _ if !ASKS => Desk::Closed,
            true => Desk::Travels { responses: asked.members.input_responses, keep: asks, again: false },
            false => Desk::Stays { live: None, keep: asks, has_slot, next_id },
        };
        let ran = self.call(origin, state, (found, reserve), &asked, parts, desk, token, out);
        self.settle(state, token, ran, server, out)
    }

    /// Goes on with a request that [`ready`](crate::server::ServerOf::ready) named: its handler is run again, with the
    /// answers to its questions, or because it was [woken](crate::server::ServerOf::wake). `out` is where its reply belongs. On [`Full::Now`] nothing has changed: send and call again.
    pub fn resume(
        &self,
        state: &mut S,
        token: Token,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        self.resume_from(&Origin::LINE, state, token, server, out)
    }

    /// As [`resume`](Service::resume), for a transport that knows whom the request came from.
    pub fn resume_from(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        token: Token,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let Some(slot) = server.slot(token).filter(|slot| slot.is_ready()) else {
            return Ok(Step::Handled);
        };
        if out.held() {
            return Err(Full::Now);
        }
        if slot.asking.ended == Some(Ended::TimedOut) {
            match server.cancel_questions(slot, out) {
                Err(Full::Now) => return Err(Full::Now),
                Err(Full::Never) | Ok(()) => {}
            }
            if let Some(slot) = server.slot_mut(token) {
                slot.asking.asked = slot.asking.answered;
            }
        }
        self.run_again(origin, state, token, server, out)
    }

    fn run_again(
        &self,
        origin: &Origin<'_>,
        state: &mut S,
        token: Token,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        let owner = u32::from(token.slot);
        let old = server.asks.iter().count();
        let spare = room_to_run_again(server, owner);
        let has_slot = server.can_ask_again();
        #[cfg(feature = "windows")]
        let crowded = server.is_crowded();
        let (live, mut draft) = server.asks.split(spare);
        let params = kept(&live, owner, PARAMS).map(Raw::trusted);
        let kept_state = kept(&live, owner, STATE).unwrap_or(b"");
        let members = params.map_or(Members::NONE, crate::rpc::read_params);
        let asked = Asked { params, members: &members, name: None };
        let Some(slot) = server.slots.get_mut(usize::from(token.slot)) else { return Ok(Step::Handled) };
        let mut why = Failure::NONE;
        let Some(found) = self.find(slot, &asked, &mut why) else {
            // The service has changed meanwhile.
            respond_failure(out, Some(slot.id.as_bytes()), &why)?;
            server.close(token);
            return Ok(Step::Handled);
        };
        let reserve = self.reserve(&found);
        if out.room() < reserve.min(out.capacity()) {
            return Err(Full::Now);
        }
        slot.state = State::Open;
        let scratch = server.scratch.bytes_mut();
        let (seal, level, now, ask_timeout) = (server.seal, server.peer.level, server.now, server.ask_timeout);
        let modern = slot.revision.is_modern();
        // Only where state travels is it sealed.
        let texts = if modern { escaped_texts(&members).min(scratch.len()) } else { scratch.len() };
        let (scratch, sealing) = scratch.split_at_mut_checked(texts).unwrap_or_default();
        let parts = Parts {
            slot,
            scratch,
            sealing,
            state: kept_state,
            seal,
            level,
            now,
            ask_timeout,
            #[cfg(feature = "windows")]
            crowded,
        };
        let principal = kept(&live, owner, PRINCIPAL).and_then(|name| core::str::from_utf8(name).ok());
        let origin = Origin { principal: principal.or(origin.principal), ..*origin };
        let next_id = server.next_id;
        let desk = match modern {
            true => Desk::Travels { responses: members.input_responses, keep: &mut draft, again: true },
            false => Desk::Stays { live: Some(live), keep: &mut draft, has_slot, next_id },
        };
        let mut ran = self.call(&origin, state, (found, reserve), &asked, parts, desk, token, out);
        ran.drafted = draft.used();
        keep_questions(server, token, old, &ran)?;
        self.settle(state, token, ran, server, out)
    }

    /// What a transport says of a tool's arguments.
    fn check_gate(&self, origin: &Origin<'_>, found: &Found<'_, S>, asked: &Asked<'_>) -> Result<(), Failure<'static>> {
        let arguments = asked.members.arguments.unwrap_or(Raw::trusted(b"{}"));
        let check = |info: &ToolInfo<'_>| origin.gate.arguments(Raw::trusted(info.input.as_bytes()), arguments);
        match found {
            Found::Tool(tool, _) => check(&tool.info),
            Found::Boxed(index) => self.with_tool(*index, check).unwrap_or(Ok(())),
            _ => Ok(()),
        }
    }

    /// Room that must be there before a handler runs.
    fn reserve(&self, found: &Found<'_, S>) -> usize {
        let wished = match found {
            Found::Tool(tool, _) => tool.info.reserve,
            Found::Boxed(index) => self.with_tool(*index, |info| info.reserve).unwrap_or(0),
            Found::Of(_, spot) => spot.reserve,
        };
        // Less than this, and the error that replaces a reply would not fit either.
        wished.max(crate::server::MIN_ROOM)
    }

    pub(crate) fn resource_info(&self, index: usize) -> Option<&super::define::ResourceInfo> {
        match self.resources.get(index) {
            Some(resource) => Some(&resource.info),
            None => self.templates.get(index.checked_sub(self.resources.len())?).map(|template| &template.info),
        }
    }

    /// Calls the handler. Everything it needs is lent to it; what comes back borrows nothing.
    #[allow(clippy::too_many_arguments, reason = "one place where all the parts meet")]
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn call<'a>(
        &'a self,
        origin: &Origin<'a>,
        state: &mut S,
        (found, reserve): (Found<'_, S>, usize),
        asked: &Asked<'a>,
        parts: Parts<'a>,
        desk: Desk<'a>,
        token: Token,
        out: &'a mut dyn Out,
    ) -> Ran {
        #[cfg(feature = "windows")]
        let sourced = matches!(&found, Found::Tool(tool, _) if tool.source.is_some());
        // A tool is called most, and this is large: what is called with it is made of it in place.
        let mut call = Call {
            handling: Handling {
                about: &self.about,
                out,
                slot: parts.slot,
                token,
                params: asked.params,
                members: asked.members,
                state: parts.state,
                scratch: parts.scratch,
                sealing: parts.sealing,
                desk,
                seal: parts.seal,
                principal: origin.principal,
                session_level: parts.level,
                now: parts.now,
                ask_timeout: parts.ask_timeout,
                reserve,
                result_meta: None,
                #[cfg(feature = "windows")]
                sourced,
                #[cfg(feature = "windows")]
                crowded: parts.crowded,
                settled: None,
            },
        };
        let outcome = match found {
            Found::Tool(tool, index) => {
                call.slot.handler = index as u16;
                (tool.run)(state, &mut call)
            }
            Found::Boxed(index) => {
                call.slot.handler = index as u16;
                match self.toolbox {
                    Some(toolbox) => toolbox.lent.run(index - self.tools.len(), state, &mut call),
                    None => Err(Failure::method_not_found().into()),
                }
            }
            Found::Of(kind, spot) => return (kind.call)(self, state, &spot, asked, call.handling),
        };
        call.ran(outcome)
    }

    /// Does what a handler's outcome demands.
    #[inline]
    fn settle(
        &self,
        state: &mut S,
        token: Token,
        ran: Ran,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        if let Ok(Settled::Answered) = ran.outcome {
            server.close(token);
            return Ok(Step::Handled);
        }
        self.settle_other(state, token, ran.outcome, server, out)
    }

    #[inline(never)]
    fn settle_other(
        &self,
        state: &mut S,
        token: Token,
        outcome: Result<Settled, Why>,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
    ) -> Result<Step, Full> {
        match outcome {
            Ok(Settled::Answered) => Ok(Step::Handled),
            Ok(Settled::Later | Settled::Suspended) if server.is_crowded() => {
                // The handler may have kept the token, and must not run again.
                let refused = self.give_up(state, token, OVERLOADED.message, server, out);
                refused.map(|()| Step::Handled).map_err(|_| Full::Never)
            }
            Ok(Settled::Later) => {
                server.forget_questions(token);
                Ok(Step::Later(token))
            }
            Ok(Settled::Suspended) => Ok(Step::Later(token)),
            Ok(Settled::Asked) => {
                // Without the feature it does not come to this.
                if let Some(slot) = server.slot_mut(token) {
                    slot.state = State::Asking;
                    let asked = slot.asking.asked.count_ones();
                    server.next_id += u64::from(asked);
                }
                Ok(Step::Handled)
            }
            Ok(Settled::Streaming(_)) if !WINDOWS => Ok(Step::Handled),
            Ok(Settled::Streaming(what)) => {
                server.forget_questions(token);
                out.hold(true);
                if let Some(slot) = server.slot_mut(token) {
                    slot.state = State::Streaming;
                    slot.large = Large::of(what);
                }
                Ok(self.streaming(state, token, server, out))
            }
            Err(Why::AskLater) if ASKS => Err(Full::Now),
            Err(why) => {
                let Some(slot) = server.slot(token) else { return Ok(Step::Handled) };
                let refused = match refuse(&self.about, slot, why, out) {
                    // The handler has run and must not run again: what fits now is said now.
                    Err(_) => respond_failure(out, Some(slot.id.as_bytes()), &why.in_short()),
                    refused => refused,
                };
                server.close(token);
                refused.map(|()| Step::Handled).map_err(|_| Full::Never)
            }
        }
    }
}

impl Handling<'_> {
    /// What a handler did: what it returned, unless it contradicts what it has written.
    #[inline]
    pub(crate) fn ran(&self, outcome: Outcome) -> Ran {
        let outcome = match (self.settled, outcome) {
            // It has answered, and then thought better of it: the answer is out.
            (Some(settled), _) => Ok(settled),
            (None, Ok(done)) => Ok(done.0),
            (None, Err(refusal)) => Err(refusal.0),
        };
        Ran { outcome, drafted: 0 }
    }

    /// The service has changed since its handler was looked for.
    pub(crate) fn ran_nothing(&self) -> Ran {
        self.ran(Err(Failure::method_not_found().into()))
    }
}

/// Writes the reply that a refusal becomes: for tools a result that a model can learn from where the protocol leaves
/// the choice, else an error.
fn refuse(about: &About<'_>, slot: &Slot, why: Why, out: &mut dyn Out) -> Result<(), Full> {
    let failure = match why {
        Why::Teach(lesson) if slot.method == Method::ToolsCall => {
            return write_words(out, about, slot, None, &Words::Joined(&lesson.words.map(Words::Plain)), true);
        }
        Why::Teach(lesson) => lesson.otherwise(),
        Why::Fail(failure) => failure,
        Why::AskLater | Why::TooLarge => why.in_short(),
    };
    respond_failure(out, Some(slot.id.as_bytes()), &failure)
}

impl<S> Service<'_, S> {
    /// Answers a tool call that was put off. `answer` is given a [`Call`] with nothing in it but the way to reply: no
    /// arguments, and it cannot ask (see [`suspend`](Handling::suspend) for that). If the answer does not fit the request
    /// stays open and `answer` may be called again.
    ///
    /// Answers of other requests: [`answer_read`](Service::answer_read), [`answer_prompt`](Service::answer_prompt),
    /// [`answer_complete`](Service::answer_complete), [`answer_other`](Service::answer_other).
    ///
    /// # Errors
    /// [`SendError::Stale`] if the request was answered or cancelled; [`SendError::WrongKind`] if it is no `tools/call`,
    /// and `answer` has not run; the others if the answer does not fit.
    pub fn answer(
        &self,
        state: &mut S,
        token: Token,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<Step, SendError> {
        self.answer_with(state, (token, Method::ToolsCall), server, out, "", |state, handling, _| {
            let mut call = Call { handling };
            let outcome = answer(state, &mut call);
            call.handling.ran(outcome)
        })
    }

    /// As [`answer`](Service::answer), for a resource that is being read. `uri` is the one that was read, as
    /// [`Read::uri`] said.
    ///
    /// # Errors
    /// As [`answer`](Service::answer).
    pub fn answer_read(
        &self,
        state: &mut S,
        token: Token,
        uri: &str,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut Read<'_>) -> Outcome,
    ) -> Result<Step, SendError> {
        self.answer_with(state, (token, Method::ResourcesRead), server, out, uri, |state, handling, uri| {
            let index = usize::from(handling.slot.handler);
            let info = self.resource_info(index);
            let caching = info.and_then(|info| info.caching).unwrap_or(self.about.caching);
            let mime = info.and_then(|info| info.mime);
            let template = info.filter(|_| index >= self.resources.len()).map(|info| info.uri);
            let mut call = Read { handling, uri, template, mime, caching };
            let outcome = answer(state, &mut call);
            call.handling.ran(outcome)
        })
    }

    /// As [`answer`](Service::answer), for a prompt.
    ///
    /// # Errors
    /// As [`answer`](Service::answer).
    pub fn answer_prompt(
        &self,
        state: &mut S,
        token: Token,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut Get<'_>) -> Outcome,
    ) -> Result<Step, SendError> {
        self.answer_with(state, (token, Method::PromptsGet), server, out, "", |state, handling, _| {
            let prompt = self.prompts.get(usize::from(handling.slot.handler));
            let mut call = Get { handling, description: prompt.map_or("", |prompt| prompt.description) };
            let outcome = answer(state, &mut call);
            call.handling.ran(outcome)
        })
    }

    /// As [`answer`](Service::answer), for a completion. `value` is what has been typed, as [`Complete::value`] said: for
    /// [`Complete::matching`].
    ///
    /// # Errors
    /// As [`answer`](Service::answer).
    pub fn answer_complete(
        &self,
        state: &mut S,
        token: Token,
        value: &str,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> Outcome,
    ) -> Result<Step, SendError> {
        self.answer_with(state, (token, Method::Complete), server, out, value, |state, handling, value| {
            let mut call = Complete { handling, argument: Text::from_raw(b""), value, context: None };
            let outcome = answer(state, &mut call);
            call.handling.ran(outcome)
        })
    }

    /// As [`answer`](Service::answer), for a request that the protocol does not know.
    ///
    /// # Errors
    /// As [`answer`](Service::answer).
    pub fn answer_other(
        &self,
        state: &mut S,
        token: Token,
        server: &mut Engine<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut Other<'_>) -> Outcome,
    ) -> Result<Step, SendError> {
        self.answer_with(state, (token, Method::Other), server, out, "", |state, handling, _| {
            let mut call = Other { handling, method: Text::from_raw(b"") };
            let outcome = answer(state, &mut call);
            call.handling.ran(outcome)
        })
    }

    fn answer_with(
        &self,
        state: &mut S,
        (token, method): (Token, Method),
        server: &mut Engine<'_>,
        out: &mut dyn Out,
        text: &str,
        answer: impl for<'h> FnOnce(&mut S, Handling<'h>, &'h str) -> Ran,
    ) -> Result<Step, SendError> {
        let slot = server.slot(token).filter(|slot| slot.state == State::Open).ok_or(SendError::Stale)?;
        if slot.method != method {
            return Err(SendError::WrongKind);
        }
        if out.held() {
            return Err(SendError::FullNow);
        }
        #[cfg(feature = "windows")]
        let sourced = self.source(slot.method, usize::from(slot.handler)).is_some();
        let empty = out.mark().at() == 0;
        let Some((parts, _)) = Parts::of(server, token, Layout::EMPTY) else { return Err(SendError::Stale) };
        let handling = Handling {
            about: &self.about,
            out: &mut *out,
            slot: parts.slot,
            token,
            params: None,
            members: &Members::NONE,
            state: b"",
            scratch: &mut [],
            sealing: &mut [],
            desk: Desk::Closed,
            seal: None,
            principal: None,
            session_level: parts.level,
            now: parts.now,
            ask_timeout: None,
            reserve: crate::server::MIN_ROOM,
            result_meta: None,
            #[cfg(feature = "windows")]
            sourced,
            #[cfg(feature = "windows")]
            crowded: parts.crowded,
            settled: None,
        };
        let ran = answer(state, handling, text);
        match ran.outcome {
            Err(Why::TooLarge) => Err(if empty { SendError::FullNever } else { SendError::FullNow }),
            _ => self.settle(state, token, ran, server, out).map_err(SendError::from),
        }
    }
}

/// Makes room for what a handler that runs again may need: decoded text, and new questions with their state. How much of
/// it is for those.
fn room_to_run_again(server: &mut Engine<'_>, owner: u32) -> usize {
    let size = kept(&server.asks.iter(), owner, PARAMS).map_or(0, <[u8]>::len);
    // Decoded text is never longer than it was.
    let _ = server.scratch.reach(size.saturating_mul(2).min(server.scratch.limit()));
    if server.seal.is_some() {
        let _ = server.scratch.reach(size.saturating_add(SEALED).min(server.scratch.limit()));
    }
    // As much as the params again is plenty for a new state.
    size + 1024
}

/// What was kept of a request whose handler has asked.
fn kept<'r>(records: &Iter<'r>, owner: u32, kind: u8) -> Option<&'r [u8]> {
    let mut records = records.clone();
    records.find(|record| record.owner == owner && record.kind == kind).map(|record| record.data)
}

/// Replaces the `old` records of a request by what its handler has asked or kept now, if it waits again. [`Full`] if
/// that is to be tried later.
fn keep_questions(server: &mut Engine<'_>, token: Token, old: usize, ran: &Ran) -> Result<(), Full> {
    match ran.outcome {
        Err(Why::AskLater) => {
            if let Some(slot) = server.slot_mut(token) {
                slot.state = State::Asking;
            }
            Err(Full::Now)
        }
        Ok(Settled::Asked) => {
            let owner = u32::from(token.slot);
            server.asks.commit(ran.drafted);
            let mut seen = 0;
            server.asks.remove(|record| {
                seen += 1;
                seen <= old && record.owner == owner && !matches!(record.kind, PARAMS | PRINCIPAL)
            });
            Ok(())
        }
        Ok(Settled::Suspended) => {
            let owner = u32::from(token.slot);
            server.asks.commit(ran.drafted);
            // The answers stay: the next run sees them too.
            let mut seen = 0;
            server.asks.remove(|record| {
                seen += 1;
                seen <= old && record.owner == owner && record.kind == STATE
            });
            Ok(())
        }
        _ => Ok(()),
    }
}
