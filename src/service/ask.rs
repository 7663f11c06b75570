//! Asking the client: the handlers' methods for it, in both eras (feature `ask`).

use super::context::{
    AskVia, HandlerError, HandlerFailure, HandlerResult, Receipt, RequestContext, Settled, begin_message, bound,
    end_result,
};
use super::input_request::{InputError, InputRequest, InputResponse, cannot_ask, wrong_ask};
use crate::content::write_base64;
use crate::json::Raw;
use crate::json::object::{Object, array};
use crate::memory::records::{self, Keep, NoRoomError};
use crate::protocol::{ClientCapabilities, Method, code};
use crate::revision::Revision;
use crate::rpc::{begin, begin_request};
use crate::server::ask::{ANSWER, KEY, PARAMS, PRINCIPAL, QUESTIONS_MAX, REFUSED, ROUNDS_MAX, STATE};
use crate::server::server_info::WriteQuestionMeta;
use crate::server::{Ended, RequestToken};
use crate::sink::{FullError, MessageHead, Out, RequestInfo, whole};
use crate::trace_context::TraceContext;

impl<'a> RequestContext<'a> {
    /// Puts the answer off as [`later`](RequestContext::later) does, and keeps the request: its handler runs again after
    /// [`Server::wake`](crate::server::Server::wake), or the methods of that name in the adapters. It runs
    /// from its beginning with the arguments of the request; [`is_resumed`](RequestContext::is_resumed) returns `true`, and
    /// [`state`](RequestContext::state) the `state` given here. It may answer, [`ask`](RequestContext::ask) the client, or
    /// suspend its request again. A suspended request can also be answered late.
    ///
    /// Tools, resources and prompts can do it, in all revisions, and the methods of [extensions](crate::service::extension). The params, the `state` and the principal are kept in the
    /// memory for questions: [`Server::asks`](crate::server::Server::asks), or
    /// [`MessageLimits::asks`](crate::server::MessageLimits::asks), 4 MiB by default.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::server::RequestToken;
    /// use mcp_sansio::service::{Call, HandlerResult, InputRequest};
    ///
    /// struct Shop {
    ///     price: Option<u32>,
    ///     asked_for: Option<RequestToken>,
    /// }
    /// const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
    ///
    /// fn order(shop: &mut Shop, call: &mut Call<'_>) -> HandlerResult {
    ///     if let Some(answer) = call.answer("sure") {
    ///         return call.text(if answer.accepted() { "ordered" } else { "not ordered" });
    ///     }
    ///     let Some(price) = shop.price.take() else {
    ///         let (token, done) = call.suspend(b"")?;
    ///         shop.asked_for = Some(token); // when there is a price: `session.server.wake(token)`
    ///         return Ok(done);
    ///     };
    ///     // This is the second run: the price is there.
    ///     call.ask(&[InputRequest::elicit("sure", &format!("Pay {price}?"), SURE)], b"")
    /// }
    /// # let _: fn(&mut Shop, &mut Call<'_>) -> HandlerResult = order;
    /// ```
    ///
    /// # Errors
    /// There is no room to keep the request: nothing was put off. Returned with `?`, it is a result with `isError` for a
    /// tool, and error -32603 for other requests.
    pub fn suspend(&mut self, state: &[u8]) -> Result<(RequestToken, Receipt), HandlerError> {
        self.unsettled()?;
        if !self.slot.method.may_ask() && !self.is_of_extension() {
            return Err(wrong_ask("The handler suspends what cannot be resumed"));
        }
        let (keep, again) = match &mut self.ask {
            AskVia::Travels { keep, again, .. } => (keep, *again),
            AskVia::Stays { keep, live, .. } => (keep, live.is_some()),
            AskVia::Closed => return Err(cannot_ask("an answer that was put off cannot be suspended")),
        };
        let owner = u32::from(self.token.slot());
        let first = (!again).then_some((self.input.params, self.principal));
        if keep_ask(*keep, owner, first, state, &[]).is_err() {
            keep.drop_all(owner);
            return Err(cannot_ask("the request is too large to be kept"));
        }
        self.slot.suspend();
        self.settle(Settled::Suspended).map(|done| (self.token, done))
    }

    /// Returns whether this run was resumed, see [`suspend`](RequestContext::suspend). If a resumed run asks, the next run,
    /// with the answers, is not a resumed one.
    pub fn is_resumed(&self) -> bool {
        !matches!(self.ask, AskVia::Closed) && self.slot.is_resumed()
    }

    /// Returns the answer to the question `key` that the run before this one asked. Answers to earlier questions are gone:
    /// keep them in the state.
    pub fn answer(&self, key: &str) -> Option<InputResponse<'a>> {
        match &self.ask {
            AskVia::Travels { responses, .. } => Some(InputResponse { result: Ok(responses.as_ref()?.get(key)?) }),
            AskVia::Stays { live, .. } => self.kept_answer(live.clone()?, key),
            AskVia::Closed => None,
        }
    }

    /// Returns the state that an earlier run kept by [`ask`](RequestContext::ask) or [`suspend`](RequestContext::suspend);
    /// empty in the first run.
    pub const fn state(&self) -> &'a [u8] {
        self.state
    }

    /// Asks the client up to eight questions. All of them are sent, or none. When the answers are in, the handler runs again
    /// from its beginning, with [`answer`](RequestContext::answer) and [`state`](RequestContext::state): so ask before any
    /// effect. A late answer cannot ask; [`suspend`](RequestContext::suspend) the request instead.
    ///
    /// Without questions, the handler runs again: at once up to 2025-11-25, and when the client calls again in 2026-07-28. In
    /// 2026-07-28, `state` needs a [`Seal`](crate::server::Seal).
    ///
    /// # Errors
    /// Returned with `?`: a result with `isError` for a tool if the client cannot be asked. Error -32603 for a mistake of the
    /// handler: it has answered already, asks more than eight questions, two questions under one key, neither questions nor
    /// state, or a conversation that breaks the rule of [`CreateMessage::new`](super::CreateMessage::new).
    pub fn ask(&mut self, questions: &[InputRequest<'_>], state: &[u8]) -> HandlerResult {
        self.check_questions(questions, state)?;
        match self.ask {
            AskVia::Travels { .. } => self.ask_by_result(questions, state),
            AskVia::Stays { .. } => self.ask_by_request(questions, state),
            AskVia::Closed => {
                Err(cannot_ask("an answer that was put off cannot ask: its handler has to suspend the request"))
            }
        }
    }

    /// Answers that the user must visit pages first: in 2025-11-25 with error -32042 (`URLElicitationRequiredError`), after
    /// which the client calls again; in 2026-07-28 it is an [`ask`](RequestContext::ask).
    ///
    /// # Errors
    /// As [`ask`](RequestContext::ask); error -32603 also if there is no question, or one that is not a
    /// [`visit`](InputRequest::visit).
    pub fn require_visits(&mut self, questions: &[InputRequest<'_>]) -> HandlerResult {
        if questions.is_empty() || !questions.iter().all(InputRequest::is_url) {
            return Err(wrong_ask("The handler requires visits, and asks something else"));
        }
        if !self.slot.revision.has_url_elicitation_error() {
            return self.ask(questions, b"");
        }
        self.check_questions(questions, b"")?;
        self.write_answer(MessageHead::Error(code::URL_ELICITATION_REQUIRED), &mut |out, _, slot, _| {
            const HEAD: &str = ",\"error\":{\"code\":-32042,\"message\":\"The user must visit a page first\",\
                \"data\":{\"elicitations\":";
            begin(out, slot.id.as_bytes(), HEAD);
            array(out, questions, |out, question| question.write_params(out, slot.revision, slot.client));
            out.put(b"}}}")
        })
    }

    /// Returns whether the request has a method of an extension, which is found again when its handler runs again.
    fn is_of_extension(&self) -> bool {
        cfg!(feature = "extensions") && self.slot.method == Method::Other && self.slot.handler > 0
    }

    fn check_questions(&self, questions: &[InputRequest<'_>], state: &[u8]) -> Result<(), HandlerError> {
        self.unsettled()?;
        let modern = self.slot.revision.is_modern();
        let may_ask = self.slot.method.may_ask() || !modern && self.is_of_extension();
        if !may_ask || questions.len() > QUESTIONS_MAX {
            return Err(wrong_ask("The handler asks what it cannot ask"));
        }
        if questions.is_empty() && state.is_empty() {
            return Err(wrong_ask("The handler asks nothing and keeps nothing"));
        }
        if modern && !state.is_empty() && self.seal.is_none() {
            return Err(wrong_ask("The handler keeps state, and no seal was lent"));
        }
        for (number, question) in questions.iter().enumerate() {
            if questions.iter().take(number).any(|earlier| earlier.key == question.key) {
                return Err(wrong_ask("The handler asks two questions under one key"));
            }
            self.need(question.check(self.slot.revision)?)?;
        }
        Ok(())
    }

    /// Asks in 2026-07-28: the questions are the result, and the client calls again with the answers.
    fn ask_by_result(&mut self, questions: &[InputRequest<'_>], state: &[u8]) -> HandlerResult {
        let sealed = self.seal_state(questions, state)?;
        let scratch = &*self.scratch;
        let sealed = sealed.map(|len| scratch.get(..len).unwrap_or(&[]));
        let (about, slot, extra) = (self.about, &*self.slot, self.result_meta);
        whole(self.out, MessageHead::Result, |out| {
            let mut result = begin_message(out, slot.id.as_bytes());
            result.fixed("resultType", "\"input_required\"");
            write_questions(&mut result, questions, (slot.revision, slot.client));
            if let Some(sealed) = sealed {
                write_base64(result.key("requestState"), sealed);
            }
            end_result(result, about, slot, extra)
        })
        .map_err(ask_later)?;
        self.settle(Settled::Answered)
    }

    /// Writes the sealed state into the scratch. Returns its length; `None` if there is no state.
    fn seal_state(&mut self, questions: &[InputRequest<'_>], state: &[u8]) -> Result<Option<usize>, HandlerError> {
        if state.is_empty() && !questions.is_empty() {
            return Ok(None);
        }
        let bound = bound(self.slot.method, self.input.members, self.principal, self.now);
        let sealed = match self.seal {
            Some(seal) => seal.seal(&bound, state, self.scratch),
            None => Ok(0),
        };
        sealed.map(Some).map_err(|_| wrong_ask("The state is too large to be sealed"))
    }

    /// Asks up to 2025-11-25: the questions are requests, and the request waits here for the answers.
    fn ask_by_request(&mut self, questions: &[InputRequest<'_>], state: &[u8]) -> HandlerResult {
        let AskVia::Stays { live, keep, has_slot, next_id } = &mut self.ask else {
            return Err(cannot_ask("there is nowhere to wait for the answer"));
        };
        if !*has_slot {
            return Err(cannot_ask("too many questions are open already; try again later"));
        }
        if self.slot.round().is_some_and(|round| round.number >= ROUNDS_MAX) {
            return Err(wrong_ask("The handler asks again and again"));
        }
        let owner = u32::from(self.token.slot());
        let first = live.is_none().then_some((self.input.params, self.principal));
        if keep_ask(*keep, owner, first, state, questions).is_err() {
            keep.drop_all(owner);
            return Err(cannot_ask("the request is too large to wait for an answer"));
        }
        let terms = (self.slot.revision, self.slot.client);
        let trace = self.about.trace_questions.map(|write| (write, self.input.members.meta));
        if let Err(full) = send_questions(self.out, *next_id, questions, terms, trace) {
            keep.drop_all(owner);
            return Err(ask_later(full));
        }
        let deadline = self.ask_timeout.map(|timeout| self.now.wrapping_add(timeout));
        self.slot.ask(*next_id, questions.len(), deadline);
        self.settle(Settled::Asked)
    }

    fn kept_answer(&self, live: records::RecordIter<'a>, key: &str) -> Option<InputResponse<'a>> {
        let owner = u32::from(self.token.slot());
        let mut mine = live.filter(|record| record.owner == owner);
        let question = mine.clone().find(|record| record.kind == KEY && record.data == key.as_bytes())?.tag;
        let answer = mine.find(|record| record.kind == ANSWER && record.tag & !REFUSED == question);
        Some(match answer {
            Some(answer) if answer.tag & REFUSED != 0 => InputResponse::error(Raw::trusted(answer.data)),
            Some(answer) => InputResponse { result: Ok(Raw::trusted(answer.data)) },
            None => InputResponse {
                result: Err(match self.slot.round()?.ended? {
                    Ended::TimedOut => InputError::TimedOut,
                    Ended::Closed => InputError::Closed,
                }),
            },
        })
    }
}

/// Makes the error if there is no room for the questions. The handler waits if that helps.
fn ask_later(full: FullError) -> HandlerError {
    match full {
        FullError::Now => HandlerError(HandlerFailure::AskLater),
        FullError::Never => cannot_ask("the questions are larger than the output buffer"),
    }
}

/// Keeps what the next run needs: the state and the keys of the questions, and `first` the params and the principal.
fn keep_ask(
    keep: &mut dyn Keep,
    owner: u32,
    first: Option<(Option<Raw<'_>>, Option<&str>)>,
    state: &[u8],
    questions: &[InputRequest<'_>],
) -> Result<(), NoRoomError> {
    if let Some((params, principal)) = first {
        keep.keep(owner, PARAMS, 0, &[params.map_or(&b"{}"[..], |params| params.as_bytes())])?;
        // A wake-up or an expiry comes from no client, so it has no principal.
        if let Some(principal) = principal {
            keep.keep(owner, PRINCIPAL, 0, &[principal.as_bytes()])?;
        }
    }
    keep.keep(owner, STATE, 0, &[state])?;
    for (number, question) in questions.iter().enumerate() {
        keep.keep(owner, KEY, number as u8, &[question.key.as_bytes()])?;
    }
    Ok(())
}

/// Sends all questions as requests, or none.
fn send_questions(
    out: &mut dyn Out,
    first: u64,
    questions: &[InputRequest<'_>],
    (revision, client): (Revision, ClientCapabilities),
    trace: Option<(WriteQuestionMeta, Option<Raw<'_>>)>,
) -> Result<(), FullError> {
    let mark = out.mark();
    for (id, question) in (first..).zip(questions) {
        let head = RequestInfo::new(id, question.method());
        let sent = whole(out, MessageHead::Request(&head), |out| {
            begin_request(out, id, question.method(), "\"params\":");
            question.write_traced(out, revision, client, trace);
            out.put(b"}")
        });
        if let Err(full) = sent {
            out.roll_back(mark);
            return Err(if mark.at() == 0 { FullError::Never } else { full });
        }
    }
    Ok(())
}

/// Writes the trace context of a request as `_meta` of the params of its question.
pub(super) fn write_trace_context(meta: Option<Raw<'_>>, params: &mut Object<'_, '_>) {
    let trace = TraceContext::of(meta);
    if trace.is_empty() {
        return;
    }
    let mut object = Object::open(params.key("_meta"));
    trace.write(&mut object);
    object.close()
}

fn write_questions(
    result: &mut Object<'_, '_>,
    questions: &[InputRequest<'_>],
    (revision, client): (Revision, ClientCapabilities),
) {
    if questions.is_empty() {
        return;
    }
    let out = result.key("inputRequests");
    for (i, question) in questions.iter().enumerate() {
        out.put(if i == 0 { b"{" } else { b"," });
        out.string(question.key);
        out.put(b":{\"method\":\"");
        out.put(question.method().as_bytes());
        out.put(b"\",\"params\":");
        question.write_params(out, revision, client);
        out.put(b"}");
    }
    out.put(b"}")
}
