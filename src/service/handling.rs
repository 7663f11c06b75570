//! What every handler can do, whatever it handles: report progress, log, answer later, ask the client.

use core::fmt;

use super::content::Words;
use super::question::{Answer, NoAnswer, Question};
use crate::json::{JsonKind, Raw, object::Object, write};
use crate::protocol::{ClientFeature, ClientFeatures, Feature, Level, Method, code, meta};
use crate::records::{self, Keep, NoRoom};
use crate::revision::Revision;
use crate::rpc::{Members, begin};
use crate::server::ask::{ANSWER, Ended, KEY, PARAMS, QUESTIONS_MAX, REFUSED, ROUNDS_MAX, STATE};
use crate::server::notify::{least_level, tell_log, tell_progress};
use crate::server::{
    About, Bound, Caching, Failure, Millis, Progress, Scope, Seal, Slot, Token, Told, What, is_complete,
    respond_failure,
};
use crate::sink::{Full, Kind, Out, Writer, whole};
use crate::small::SMALL;

/// What a handler returns: that it has done something about its request, or why it cannot.
pub type Outcome = Result<Done, Refusal>;

/// A handler's receipt. It cannot be made by hand: call one of the methods that answer, ask or put off.
#[derive(Debug)]
pub struct Done(pub(crate) Settled);

/// How a handler has dealt with its request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Settled {
    Answered,
    Later,
    /// As `Later`, and what is needed to run the handler again was kept.
    Suspended,
    Asked,
    /// Its head is written, the rest is pulled from its source.
    Streaming(What),
}

/// Why a handler does not answer. `?` turns it into the right reply: for wrong arguments of a tool a result with
/// `isError`, so that the model can do better; for a [`Failure`] the JSON-RPC error.
///
/// Errors of the application's own are told in words, which the model reads:
///
/// ```
/// use mcp_sansio::service::{Call, Outcome};
///
/// fn host_name(_: &mut (), call: &mut Call<'_>) -> Outcome {
///     match std::fs::read_to_string("/etc/hostname") {
///         Ok(name) => call.text(name.trim()),
///         Err(error) => call.error(format_args!("/etc/hostname cannot be read: {error}")),
///     }
/// }
/// # let _: fn(&mut (), &mut Call<'_>) -> Outcome = host_name;
/// ```
///
/// Where many steps can fail, put them into a function with errors of its own, so that `?` works in it, and tell the error
/// in one place:
///
/// ```
/// use mcp_sansio::service::{Call, Outcome};
///
/// fn total() -> Result<u64, Box<dyn std::error::Error>> {
///     let text = std::fs::read_to_string("/var/lib/shop/prices")?;
///     Ok(text.lines().map(str::parse::<u64>).sum::<Result<u64, _>>()?)
/// }
///
/// fn sum_up(_: &mut (), call: &mut Call<'_>) -> Outcome {
///     match total() {
///         Ok(total) => call.text(format_args!("{total}")),
///         Err(error) => call.error(format_args!("the prices cannot be read: {error}")),
///     }
/// }
/// # let _: fn(&mut (), &mut Call<'_>) -> Outcome = sum_up;
/// ```
///
/// A JSON-RPC error with a message made at run time is written by [`Handling::fail`].
#[derive(Clone, Copy, Debug)]
pub struct Refusal(pub(crate) Why);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    Fail(Failure<'static>),
    Teach(Lesson),
    /// No room for the questions now: nothing was written, the handler may be run again.
    AskLater,
    /// No room for the reply: the handler has had its effects and may not be run again.
    TooLarge,
}

/// What a model is told where the protocol leaves the choice, which is in a tool's result, and the error that it is
/// elsewhere. In pieces, so that a device need not format; made by those who refuse, so that a program which never does
/// is linked without the words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lesson {
    pub(crate) words: [&'static str; 4],
    code: i32,
    otherwise: &'static str,
}

impl Lesson {
    pub(crate) const fn otherwise(&self) -> Failure<'static> {
        Failure::new(self.code, self.otherwise)
    }
}

impl Why {
    /// An error in few words, for which room was kept.
    pub(crate) const fn in_short(&self) -> Failure<'static> {
        let short = Failure::too_large();
        match self {
            Why::Fail(failure) => Failure { code: failure.code, ..short },
            Why::Teach(lesson) => Failure { code: lesson.code, ..short },
            Why::AskLater | Why::TooLarge => short,
        }
    }
}

impl From<Failure<'static>> for Refusal {
    fn from(failure: Failure<'static>) -> Self {
        Refusal(Why::Fail(failure))
    }
}

#[cfg(feature = "serde")]
impl From<crate::json::Refused> for Refusal {
    fn from(refused: crate::json::Refused) -> Self {
        let [first, second, third] = refused.words();
        Refusal(Why::Teach(Lesson {
            words: ["Invalid arguments: ", first, second, third],
            code: code::INVALID_PARAMS,
            otherwise: "Invalid params: wrong arguments",
        }))
    }
}

/// A reply that did not fit.
impl From<Full> for Refusal {
    fn from(_: Full) -> Self {
        Refusal(Why::TooLarge)
    }
}

/// Where answers to earlier questions come from, and where new ones are kept.
pub(crate) enum Desk<'a> {
    /// 2026-07-28: answers and state travel with the request. Only what is suspended is kept; `again` if it was, and now
    /// runs again.
    Travels { responses: Option<Raw<'a>>, keep: &'a mut dyn Keep, again: bool },
    /// Before: both are kept here. `live` has what there is, none on the first run.
    Stays { live: Option<records::Iter<'a>>, keep: &'a mut dyn Keep, has_slot: bool, next_id: u64 },
    /// A request that was put off: it has answered no questions and asks none.
    Closed,
}

/// What a handler is given, whatever it handles. [`Call`](super::Call), [`Read`](super::Read), [`Get`](super::Get) and
/// [`Complete`](super::Complete) dereference to it.
pub struct Handling<'a> {
    pub(crate) about: &'a About<'a>,
    pub(crate) out: &'a mut dyn Out,
    pub(crate) slot: &'a mut Slot,
    pub(crate) token: Token,
    pub(crate) params: Option<Raw<'a>>,
    pub(crate) members: &'a Members<'a>,
    pub(crate) state: &'a [u8],
    pub(crate) scratch: &'a mut [u8],
    /// For a state to be sealed; apart from the scratch, which reading the arguments uses up.
    pub(crate) sealing: &'a mut [u8],
    pub(crate) desk: Desk<'a>,
    pub(crate) seal: Option<&'a (dyn Seal + Sync)>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) session_level: Level,
    pub(crate) now: Millis,
    pub(crate) ask_timeout: Option<Millis>,
    /// Room kept for the reply.
    pub(crate) reserve: usize,
    pub(crate) result_meta: Option<Extra<'a>>,
    /// Whether the definition has a source to stream from.
    #[cfg(feature = "windows")]
    pub(crate) sourced: bool,
    /// There is no place for a reply in windows.
    #[cfg(feature = "windows")]
    pub(crate) crowded: bool,
    /// What the handler has done already: it may do it once.
    pub(crate) settled: Option<Settled>,
}

impl<'a> Handling<'a> {
    /// The ticket for answering later.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.token
    }

    /// The revision that the request is served under.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.slot.revision
    }

    /// The request's params as they came.
    #[must_use]
    pub const fn params(&self) -> Option<Raw<'a>> {
        self.params
    }

    /// The request's `_meta` as it came.
    #[must_use]
    pub const fn meta(&self) -> Option<Raw<'a>> {
        self.members.meta
    }

    /// Whom the request came from, where the transport knows that.
    #[must_use]
    pub const fn principal(&self) -> Option<&'a str> {
        self.principal
    }

    /// Which session the request came from, to be compared with that of a [notification](super::Notified).
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.slot.scope
    }

    /// The time on the caller's clock.
    #[must_use]
    pub const fn now(&self) -> Millis {
        self.now
    }

    /// Whether the client declared a capability.
    #[must_use]
    pub fn client_has(&self, feature: ClientFeature) -> bool {
        self.slot.client.has(feature)
    }

    /// Refuses to go on without a client capability: -32021 from 2026-07-28 on, before that the nearest there is.
    pub fn need(&self, feature: ClientFeature) -> Result<(), Refusal> {
        if self.client_has(feature) {
            return Ok(());
        }
        if self.slot.revision.is_modern() {
            return Err(Failure::missing_capability(feature).into());
        }
        Err(Refusal(Why::Teach(Lesson {
            words: ["The client does not support ", feature.name(), "", ""],
            code: code::INTERNAL,
            otherwise: "The client cannot be asked",
        })))
    }

    /// Puts `meta`, an object as it stands, into the reply's `_meta`. Call it before answering.
    pub fn set_meta(&mut self, meta: Raw<'a>) {
        self.result_meta = Some(Extra::new(meta));
    }

    /// Tells how far the request is, if its client asked for that. Room for the reply is left alone.
    pub fn progress(&mut self, progress: Progress<'_>) -> Told {
        if self.settled.is_some() {
            return Told::Stale;
        }
        tell_progress(self.slot, progress, self.reserve, self.out)
    }

    /// Sends a log message on behalf of the request, if its client wants messages of that level and the service
    /// declares logging. Room for the reply is left alone.
    pub fn log(&mut self, level: Level, message: impl fmt::Display) -> Told {
        self.log_as(None, level, &message)
    }

    /// As [`log`](Handling::log), with the name of a logger.
    pub fn log_as(&mut self, logger: Option<&str>, level: Level, message: &dyn fmt::Display) -> Told {
        self.tell_log(logger, level, &mut |params| params.shown("data", message))
    }

    /// As [`log_as`](Handling::log_as), with `data` that is any JSON: an object with what a reader of the log wants to know.
    pub fn log_data(&mut self, logger: Option<&str>, level: Level, data: Raw<'_>) -> Told {
        self.tell_log(logger, level, &mut |params| params.raw("data", data))
    }

    fn tell_log(
        &mut self,
        logger: Option<&str>,
        level: Level,
        data: &mut dyn FnMut(&mut Object<'_, '_>) -> Result<(), Full>,
    ) -> Told {
        if self.settled.is_some() {
            return Told::Stale;
        }
        if !self.about.has(Feature::Logging) {
            return Told::NotAsked;
        }
        tell_log(least_level(self.slot, self.session_level), level, logger, data, self.reserve, self.out)
    }

    /// Puts the answer off: keep the token, return the outcome, and answer when there is something to say, by the method
    /// of the request: [`Session::answer`](crate::session::Session::answer) for a tool,
    /// [`answer_read`](crate::session::Session::answer_read), [`answer_prompt`](crate::session::Session::answer_prompt),
    /// [`answer_complete`](crate::session::Session::answer_complete),
    /// [`answer_other`](crate::session::Session::answer_other). The adapters have methods of the same names. Another one
    /// than that of the request is refused with [`SendError::WrongKind`](crate::server::SendError::WrongKind).
    ///
    /// Such an answer cannot [`ask`](Handling::ask) the client: a handler that wants to has to
    /// [`suspend`](Handling::suspend) its request instead.
    ///
    /// ```
    /// use mcp_sansio::server::{SendError, Token};
    /// use mcp_sansio::service::{Outcome, Read, Resource, Service};
    /// # use mcp_sansio::{frame::LineBuffer, server::Server, session::Session, sink::{Lines, Slice}};
    ///
    /// fn forecast(waiting: &mut Option<Token>, read: &mut Read<'_>) -> Outcome {
    ///     let (token, outcome) = read.later();
    ///     *waiting = Some(token); // who knows the weather is told the token
    ///     outcome
    /// }
    /// static RESOURCES: [Resource<Option<Token>>; 1] = [Resource::new("weather://tomorrow", "tomorrow", forecast)];
    /// let service = Service::new("weather", "1.0").resources(&RESOURCES);
    /// # let (mut input, mut output) = ([0; 512], [0; 512]);
    /// # let mut session = Session::<_, 2>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
    /// # let line = br#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"weather://tomorrow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    /// # session.space()[..line.len()].copy_from_slice(line);
    /// # session.filled(line.len());
    /// # session.end_of_input();
    /// # let mut waiting = None;
    /// # let _ = session.run(&service, &mut waiting);
    ///
    /// // Later, in the loop around the session:
    /// let token = waiting.take().unwrap();
    /// let wrong = session.answer(&service, &mut waiting, token, |_, call| call.text("sunny"));
    /// assert_eq!(wrong, Err(SendError::WrongKind)); // a resource is read, no tool is called
    /// session.answer_read(&service, &mut waiting, token, "weather://tomorrow", |_, read| read.text("sunny"))?;
    /// # assert!(core::str::from_utf8(session.pending()).unwrap().contains("sunny"));
    /// # Ok::<(), SendError>(())
    /// ```
    pub fn later(&mut self) -> (Token, Outcome) {
        (self.token, self.settle(Settled::Later))
    }

    /// Puts the answer off as [`later`](Handling::later) does, and keeps the request, so that its handler can be run again
    /// when what it waits for is there: by [`Session::resume`](crate::session::Session::resume), and by the methods of that
    /// name in the adapters. The handler is then run from its beginning with the arguments of the request;
    /// [`is_resumed`](Handling::is_resumed) tells that, and [`state`](Handling::state) is the `state` given here. It may
    /// answer, [`ask`](Handling::ask) the client, or suspend its request again. A suspended request may also be answered as
    /// one that was put off.
    ///
    /// For tools, resources and prompts. What is kept (the request's params, `state`, the principal) lies in the memory
    /// that the server was lent for questions ([`Server::asks`](crate::server::Server::asks), or
    /// [`Limits::asks`](crate::server::Limits::asks), 4 MiB by default), in all revisions.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::server::Token;
    /// use mcp_sansio::service::{Call, Outcome, Question};
    ///
    /// struct Shop {
    ///     price: Option<u32>,
    ///     asked_for: Option<Token>,
    /// }
    /// const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
    ///
    /// fn order(shop: &mut Shop, call: &mut Call<'_>) -> Outcome {
    ///     if let Some(answer) = call.answer("sure") {
    ///         return call.text(if answer.accepted() { "ordered" } else { "not ordered" });
    ///     }
    ///     let Some(price) = shop.price.take() else {
    ///         let (token, done) = call.suspend(b"")?;
    ///         shop.asked_for = Some(token); // when there is a price: `session.resume(token)`
    ///         return Ok(done);
    ///     };
    ///     // This is the second run: the price is there.
    ///     call.ask(&[Question::elicit("sure", &format!("Pay {price}?"), SURE)], b"")
    /// }
    /// # let _: fn(&mut Shop, &mut Call<'_>) -> Outcome = order;
    /// ```
    ///
    /// # Errors
    /// There is no room to keep the request: nothing was put off. Returned with `?`, it is a tool's result with `isError`,
    /// or error -32603.
    #[cfg(feature = "ask")]
    pub fn suspend(&mut self, state: &[u8]) -> Result<(Token, Done), Refusal> {
        self.unsettled()?;
        if !self.slot.method.may_ask() {
            return Err(Refusal(Why::Fail(Failure::internal("The handler suspends what cannot be resumed"))));
        }
        let (keep, again) = match &mut self.desk {
            Desk::Travels { keep, again, .. } => (keep, *again),
            Desk::Stays { keep, live, .. } => (keep, live.is_some()),
            Desk::Closed => return Err(cannot_ask("an answer that was put off cannot be suspended")),
        };
        use crate::server::ask::PRINCIPAL;
        let owner = u32::from(self.token.slot);
        let params = (!again).then(|| self.params.map_or(&b"{}"[..], |params| params.as_bytes()));
        let principal = self.principal.filter(|_| !again);
        let kept = match principal {
            Some(principal) => keep.keep(owner, PRINCIPAL, 0, &[principal.as_bytes()]),
            None => Ok(()),
        };
        if kept.and_then(|()| keep_ask(*keep, owner, params, state, &[])).is_err() {
            keep.drop_all(owner);
            return Err(cannot_ask("the request is too large to be kept"));
        }
        let asking = &mut self.slot.asking;
        asking.round = asking.round.max(1);
        asking.answered = asking.asked;
        (asking.suspended, asking.ready, asking.deadline) = (true, false, None);
        self.settle(Settled::Suspended).map(|done| (self.token, done))
    }

    /// Whether this run comes of a resumption, see [`suspend`](Handling::suspend). When the client has answered what such a
    /// run asked, that is a run of its own, which was not resumed.
    #[cfg(feature = "ask")]
    #[must_use]
    pub const fn is_resumed(&self) -> bool {
        self.slot.asking.suspended && !matches!(self.desk, Desk::Closed)
    }

    /// The client may hang up and come back for the answer: where the transport has a way for that (polling over HTTP,
    /// 2025-11-25), the connection is closed meanwhile. Answer with [`later`](Handling::later).
    pub fn release(&mut self) {
        self.slot.released = true;
    }

    /// The answer to a question that an earlier run of this handler asked under `key`, if that has been asked. Only
    /// the last round's answers are there: keep what matters in the state.
    #[cfg(feature = "ask")]
    #[must_use]
    pub fn answer(&self, key: &str) -> Option<Answer<'a>> {
        match &self.desk {
            Desk::Travels { responses, .. } => Some(Answer { result: Ok(responses.as_ref()?.get(key)?) }),
            Desk::Stays { live, .. } => self.kept_answer(live.clone()?, key),
            Desk::Closed => None,
        }
    }

    /// The state that an earlier run of this handler kept, by [`ask`](Handling::ask) or [`suspend`](Handling::suspend);
    /// empty on the first.
    #[cfg(feature = "ask")]
    #[must_use]
    pub const fn state(&self) -> &'a [u8] {
        self.state
    }

    /// Asks the client. When the answers are in, the handler is run again from its beginning, with
    /// [`answer`](Handling::answer) and [`state`](Handling::state); so ask before effects. All questions are sent or none.
    /// Where something has to be awaited first, [`suspend`](Handling::suspend) the request: an answer that was put off with
    /// [`later`](Handling::later) cannot ask.
    ///
    /// Without questions, the handler is run again at once in the legacy revisions, and at the client's pleasure from
    /// 2026-07-28 on; there state without a [`Seal`] is refused.
    ///
    /// # Errors
    /// For the model, if the client cannot be asked. The request ends with -32603 if the handler is wrong: it has answered
    /// already, asks more than eight questions, two under one key or nothing without state, or a conversation in which
    /// the results of tools are not those that were asked for (see [`Sampling::new`](super::Sampling::new)).
    #[cfg(feature = "ask")]
    pub fn ask(&mut self, questions: &[Question<'_>], state: &[u8]) -> Outcome {
        let possible = self.check_questions(questions, state);
        possible?;
        match self.desk {
            Desk::Travels { .. } => self.ask_by_result(questions, state),
            Desk::Stays { .. } => self.ask_by_request(questions, state),
            Desk::Closed => {
                Err(cannot_ask("an answer that was put off cannot ask: its handler has to suspend the request"))
            }
        }
    }

    /// Sets how many milliseconds the questions of this run may wait for their answers, in place of the server's time
    /// ([`Server::ask_timeout`](crate::server::Server::ask_timeout), [`Limits::ask_timeout`](crate::server::Limits::ask_timeout)).
    /// Call it before [`ask`](Handling::ask). When the time is over, the handler is run again, and
    /// [`answer`](Handling::answer) says [`NoAnswer::TimedOut`](super::NoAnswer::TimedOut).
    ///
    /// It has no effect in 2026-07-28, where the client comes back with the answers whenever it wants to.
    #[cfg(feature = "ask")]
    pub const fn set_ask_timeout(&mut self, millis: Millis) {
        self.ask_timeout = Some(millis);
    }

    /// Tells the client that the user must visit pages first: error -32042 in 2025-11-25, where the client calls again
    /// by itself, and an ask from 2026-07-28 on.
    ///
    /// # Errors
    /// As [`ask`](Handling::ask); the request ends with -32603 also if there is no question, or one that is no
    /// [`visit`](Question::visit).
    #[cfg(feature = "ask")]
    pub fn require_visits(&mut self, questions: &[Question<'_>]) -> Outcome {
        if questions.is_empty() || !questions.iter().all(Question::is_url) {
            return Err(wrong_ask("The handler requires visits, and asks something else"));
        }
        if !self.slot.revision.has_url_elicitation_error() {
            return self.ask(questions, b"");
        }
        self.check_questions(questions, b"")?;
        let terms = (self.slot.revision, self.slot.client);
        let id = self.slot.id;
        whole(self.out, Kind::Error(code::URL_ELICITATION_REQUIRED), |out| {
            write_visits(out, id.as_bytes(), questions, terms)
        })?;
        self.settle(Settled::Answered)
    }

    /// Answers with a JSON-RPC error whose message is made at run time: one that is passed on from another server, say.
    /// An error with a constant message can also be returned, `Err(failure.into())`. For what a model should read and
    /// learn from, answer a tool call with [`Call::error`](super::Call::error) instead.
    ///
    /// ```
    /// use mcp_sansio::server::Failure;
    /// use mcp_sansio::service::{Call, Outcome};
    ///
    /// fn forward(_: &mut (), call: &mut Call<'_>) -> Outcome {
    ///     let message = format!("upstream has {} jobs waiting", 12);
    ///     call.fail(&Failure::new(-31001, &message))
    /// }
    /// # let _: fn(&mut (), &mut Call<'_>) -> Outcome = forward;
    /// ```
    ///
    /// # Errors
    /// The handler has answered already, or the error is larger than the sink takes now.
    pub fn fail(&mut self, failure: &Failure<'_>) -> Outcome {
        self.unsettled()?;
        respond_failure(self.out, Some(self.slot.id.as_bytes()), failure)?;
        self.settle(Settled::Answered)
    }

    /// Notes what the handler has done; a second time is an error of the handler, and nothing is written.
    pub(crate) fn settle(&mut self, settled: Settled) -> Outcome {
        self.settled = Some(settled);
        Ok(Done(settled))
    }

    /// Whether the definition has a source to stream from.
    pub(crate) const fn is_sourced(&self) -> bool {
        #[cfg(feature = "windows")]
        return self.sourced;
        #[cfg(not(feature = "windows"))]
        false
    }

    /// Refuses a second answer.
    pub(crate) fn unsettled(&self) -> Result<(), Refusal> {
        match self.settled {
            None => Ok(()),
            Some(_) => Err(Refusal(Why::Fail(Failure::internal("The handler has answered already")))),
        }
    }

    /// Writes a result: head, what `members` writes, `_meta`, tail.
    pub(crate) fn write_result(
        &mut self,
        members: &mut dyn FnMut(&mut Object<'_, '_>, Revision) -> Result<(), Full>,
    ) -> Outcome {
        self.unsettled()?;
        let (about, slot, extra) = (self.about, &*self.slot, self.result_meta);
        whole(self.out, Kind::Result, |out| {
            let mut result = begin_result(out, slot.id.as_bytes(), slot.revision);
            members(&mut result, slot.revision)?;
            end_result(result, about, slot.revision, extra)
        })?;
        self.settle(Settled::Answered)
    }

    /// As [`write_result`](Handling::write_result), of a result that is one text: the most frequent of all.
    pub(crate) fn write_words(&mut self, words: &Words<'_>, is_error: bool) -> Outcome {
        self.unsettled()?;
        write_words(self.out, self.about, self.slot, self.result_meta, words, is_error)?;
        self.settle(Settled::Answered)
    }

    /// Writes a result of the handler's own making: what it says of `resultType` and `_meta` is taken over, nothing is
    /// said twice. `caching` is what holds where it says nothing valid of that, for results that may be kept.
    pub(crate) fn write_own(&mut self, own: Raw<'_>, caching: Option<Caching>) -> Outcome {
        self.unsettled()?;
        let (about, slot, extra) = (self.about, &*self.slot, self.result_meta);
        let modern = slot.revision.is_modern();
        whole(self.out, Kind::Result, |out| {
            let mut result = begin_message(out, slot.id.as_bytes());
            match own.get("resultType").filter(|_| modern) {
                Some(kind) => result.raw("resultType", kind)?,
                None if modern => result.fixed("resultType", "\"complete\"")?,
                None => {}
            }
            let others = own.members().filter(|(key, _)| !key.is("resultType") && !key.is("_meta"));
            for (key, value) in others.filter(|(key, _)| caching.is_none() || !Caching::is_hint(key)) {
                result.member(key, value)?;
            }
            if let Some(caching) = caching.filter(|_| modern && is_complete(own)) {
                caching.or_of(own).write(&mut result)?;
            }
            let meta = own.get("_meta").filter(|meta| meta.kind() == JsonKind::Object);
            end_result(result, about, slot.revision, meta.map(Extra::new).or(extra))
        })?;
        self.settle(Settled::Answered)
    }

    fn check_questions(&self, questions: &[Question<'_>], state: &[u8]) -> Result<(), Refusal> {
        self.unsettled()?;
        if !self.slot.method.may_ask() || questions.len() > QUESTIONS_MAX {
            return Err(wrong_ask("The handler asks what it cannot ask"));
        }
        if questions.is_empty() && state.is_empty() {
            return Err(wrong_ask("The handler asks nothing and keeps nothing"));
        }
        let modern = self.slot.revision.is_modern();
        if modern && !state.is_empty() && self.seal.is_none() {
            return Err(Refusal(Why::Fail(Failure::internal("The handler keeps state, and no seal was lent"))));
        }
        for (number, question) in questions.iter().enumerate() {
            if questions.iter().take(number).any(|earlier| earlier.key == question.key) {
                return Err(wrong_ask("The handler asks two questions under one key"));
            }
            if !question.is_sound() {
                return Err(wrong_ask("The handler samples with tool results that are not those asked for"));
            }
            if !question.exists_in(self.slot.revision) {
                return Err(cannot_ask("this client's protocol revision cannot ask that"));
            }
            self.need(question.needs())?;
        }
        Ok(())
    }

    /// 2026-07-28: the questions are the result, the client calls again with the answers.
    fn ask_by_result(&mut self, questions: &[Question<'_>], state: &[u8]) -> Outcome {
        let sealed = self.seal_state(questions, state)?;
        let sealing = &*self.sealing;
        let sealed = sealed.map(|len| sealing.get(..len).unwrap_or(&[]));
        let (about, slot, extra) = (self.about, &*self.slot, self.result_meta);
        whole(self.out, Kind::Result, |out| {
            let mut result = begin_message(out, slot.id.as_bytes());
            result.fixed("resultType", "\"input_required\"")?;
            write_questions(&mut result, questions, (slot.revision, slot.client))?;
            if let Some(sealed) = sealed {
                let out = result.key("requestState");
                out.put(b"\"")?;
                write::base64(out, sealed)?;
                out.put(b"\"")?;
            }
            end_result(result, about, slot.revision, extra)
        })
        .map_err(ask_later)?;
        self.settle(Settled::Answered)
    }

    /// Writes the sealed state into its place; its length, or nothing if there is nothing to keep.
    fn seal_state(&mut self, questions: &[Question<'_>], state: &[u8]) -> Result<Option<usize>, Refusal> {
        if state.is_empty() && !questions.is_empty() {
            return Ok(None);
        }
        let bound = self.bound();
        let sealed = match self.seal {
            Some(seal) => seal.seal(&bound, state, self.sealing),
            None => Ok(0),
        };
        sealed.map(Some).map_err(|_| Refusal(Why::Fail(Failure::internal("The state is too large to be sealed"))))
    }

    pub(crate) fn bound(&self) -> Bound<'a> {
        bound(self.slot.method, self.members, self.principal, self.now)
    }

    /// Before 2026-07-28: the questions are requests, and the request waits here for the answers.
    fn ask_by_request(&mut self, questions: &[Question<'_>], state: &[u8]) -> Outcome {
        let Desk::Stays { live, keep, has_slot, next_id } = &mut self.desk else {
            return Err(cannot_ask("there is nowhere to wait for the answer"));
        };
        if !*has_slot {
            return Err(cannot_ask("too many questions are open already; try again later"));
        }
        let round = self.slot.asking.round;
        if round >= ROUNDS_MAX {
            return Err(Refusal(Why::Fail(Failure::internal("The handler asks again and again"))));
        }
        let owner = u32::from(self.token.slot);
        let params =
            if live.is_none() { Some(self.params.map_or(&b"{}"[..], |params| params.as_bytes())) } else { None };
        if keep_ask(*keep, owner, params, state, questions).is_err() {
            keep.drop_all(owner);
            return Err(cannot_ask("the request is too large to wait for an answer"));
        }
        let terms = (self.slot.revision, self.slot.client);
        if let Err(full) = send_questions(self.out, *next_id, questions, terms) {
            keep.drop_all(owner);
            return Err(ask_later(full));
        }
        let asking = &mut self.slot.asking;
        asking.round = round + 1;
        asking.first = *next_id;
        asking.asked = (1u16 << questions.len()).wrapping_sub(1) as u8;
        asking.answered = 0;
        asking.suspended = false;
        asking.ended = None;
        // Nothing to wait for: the handler wants to be run again.
        asking.ready = questions.is_empty();
        asking.deadline = self.ask_timeout.map(|timeout| self.now.wrapping_add(timeout));
        self.settle(Settled::Asked)
    }

    fn kept_answer(&self, live: records::Iter<'a>, key: &str) -> Option<Answer<'a>> {
        let owner = u32::from(self.token.slot);
        let mut mine = live.filter(|record| record.owner == owner);
        let question = mine.clone().find(|record| record.kind == KEY && record.data == key.as_bytes())?.tag;
        let answer = mine.find(|record| record.kind == ANSWER && record.tag & !REFUSED == question);
        Some(match answer {
            Some(answer) if answer.tag & REFUSED != 0 => Answer::error(Raw::trusted(answer.data)),
            Some(answer) => Answer { result: Ok(Raw::trusted(answer.data)) },
            None => Answer {
                result: Err(match self.slot.asking.ended? {
                    Ended::TimedOut => NoAnswer::TimedOut,
                    Ended::Closed => NoAnswer::Closed,
                }),
            },
        })
    }
}

impl fmt::Debug for Handling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handling")
            .field("token", &self.token)
            .field("arguments", &self.arguments())
            .finish_non_exhaustive()
    }
}

/// The handler asks in a way that is wrong whoever the client is.
const fn wrong_ask(words: &'static str) -> Refusal {
    Refusal(Why::Fail(Failure::internal(words)))
}

/// The client cannot be asked, in words for the model.
const fn cannot_ask(words: &'static str) -> Refusal {
    Refusal(Why::Teach(Lesson { words: [words, "", "", ""], code: code::INTERNAL, otherwise: words }))
}

/// No room for questions: wait if that helps.
fn ask_later(full: Full) -> Refusal {
    match full {
        Full::Now => Refusal(Why::AskLater),
        Full::Never => cannot_ask("the questions are larger than the output buffer"),
    }
}

/// What a state is bound to.
pub(crate) fn bound<'b>(method: Method, members: &Members<'b>, principal: Option<&'b str>, now: Millis) -> Bound<'b> {
    let target = members.target(method).map_or(&b""[..], |target| target.as_bytes());
    let arguments = members.arguments.map_or(&b"{}"[..], |arguments| arguments.as_bytes());
    Bound { method: method.name(), target, arguments, principal, now }
}

/// Whether `inputResponses` is an object of objects, as it must be.
pub(crate) fn are_responses(responses: Raw<'_>) -> bool {
    responses.kind() == JsonKind::Object && responses.members().all(|(_, value)| value.kind() == JsonKind::Object)
}

fn keep_ask(
    keep: &mut dyn Keep,
    owner: u32,
    params: Option<&[u8]>,
    state: &[u8],
    questions: &[Question<'_>],
) -> Result<(), NoRoom> {
    if let Some(params) = params {
        keep.keep(owner, PARAMS, 0, &[params])?;
    }
    keep.keep(owner, STATE, 0, &[state])?;
    for (number, question) in questions.iter().enumerate() {
        keep.keep(owner, KEY, number as u8, &[question.key.as_bytes()])?;
    }
    Ok(())
}

/// All questions as requests, or none.
fn send_questions(
    out: &mut dyn Out,
    first: u64,
    questions: &[Question<'_>],
    (revision, client): (Revision, ClientFeatures),
) -> Result<(), Full> {
    let mark = out.mark();
    for (id, question) in (first..).zip(questions) {
        let sent = whole(out, Kind::Request, |out| {
            out.put(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
            write::unsigned(out, id)?;
            out.put(b",\"method\":\"")?;
            out.put(question.method().as_bytes())?;
            out.put(b"\",\"params\":")?;
            question.write_params(out, revision, client)?;
            out.put(b"}")
        });
        if let Err(full) = sent {
            out.roll_back(mark);
            return Err(if mark.at() == 0 { Full::Never } else { full });
        }
    }
    Ok(())
}

fn write_questions(
    result: &mut Object<'_, '_>,
    questions: &[Question<'_>],
    (revision, client): (Revision, ClientFeatures),
) -> Result<(), Full> {
    if questions.is_empty() {
        return Ok(());
    }
    let out = result.key("inputRequests");
    for (i, question) in questions.iter().enumerate() {
        out.put(if i == 0 { b"{" } else { b"," })?;
        write::string(out, question.key)?;
        out.put(b":{\"method\":\"")?;
        out.put(question.method().as_bytes())?;
        out.put(b"\",\"params\":")?;
        question.write_params(out, revision, client)?;
        out.put(b"}")?;
    }
    out.put(b"}")
}

fn write_visits(
    out: &mut Writer<'_>,
    id: &[u8],
    questions: &[Question<'_>],
    (revision, client): (Revision, ClientFeatures),
) -> Result<(), Full> {
    const HEAD: &str =
        ",\"error\":{\"code\":-32042,\"message\":\"The user must visit a page first\",\"data\":{\"elicitations\":[";
    begin(out, id, HEAD);
    for (i, question) in questions.iter().enumerate() {
        if i > 0 {
            out.put(b",")?;
        }
        question.write_params(out, revision, client)?;
    }
    out.put(b"]}}}")
}

/// The head of a result: envelope, and what the revision demands of every complete one.
pub(crate) fn begin_result<'o, 'w>(out: &'o mut Writer<'w>, id: &[u8], revision: Revision) -> Object<'o, 'w> {
    let modern = revision.is_modern();
    begin(out, id, if modern { ",\"result\":{\"resultType\":\"complete\"" } else { ",\"result\":{" });
    Object::resume(out, !modern)
}

fn begin_message<'o, 'w>(out: &'o mut Writer<'w>, id: &[u8]) -> Object<'o, 'w> {
    begin(out, id, ",\"result\":{");
    Object::resume(out, true)
}

/// Writes a tool's result that is one text.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(crate) fn write_words(
    out: &mut dyn Out,
    about: &About<'_>,
    slot: &Slot,
    extra: Option<Extra<'_>>,
    words: &Words<'_>,
    is_error: bool,
) -> Result<(), Full> {
    whole(out, Kind::Result, |out| {
        if !SMALL {
            return write_words_in_few(out, about, slot, extra, words, is_error);
        }
        let mut result = begin_result(out, slot.id.as_bytes(), slot.revision);
        let out = result.key("content");
        out.put(b"[{\"type\":\"text\",\"text\":\"")?;
        words.write_body(out)?;
        out.put(b"\"}]")?;
        result.boolean("isError", is_error)?;
        end_result(result, about, slot.revision, extra)
    })
}

/// The same in few pieces: each has its price.
#[inline]
fn write_words_in_few(
    out: &mut Writer<'_>,
    about: &About<'_>,
    slot: &Slot,
    extra: Option<Extra<'_>>,
    words: &Words<'_>,
    is_error: bool,
) -> Result<(), Full> {
    let modern = slot.revision.is_modern();
    let head = match modern {
        true => r#","result":{"resultType":"complete","content":[{"type":"text","text":""#,
        false => r#","result":{"content":[{"type":"text","text":""#,
    };
    begin(out, slot.id.as_bytes(), head);
    words.write_body(out)?;
    let (tail, ends) = match is_error {
        true => (r#""}],"isError":true"#, r#""}],"isError":true}}"#),
        false => (r#""}],"isError":false"#, r#""}],"isError":false}}"#),
    };
    if !modern && extra.is_none() {
        return out.put(ends.as_bytes());
    }
    out.put(tail.as_bytes())?;
    end_result(Object::resume(out, false), about, slot.revision, extra)
}

/// What a handler adds to `_meta`, and what writes it: a program without is linked without.
#[derive(Clone, Copy)]
pub(crate) struct Extra<'a> {
    meta: Raw<'a>,
    write: fn(Raw<'_>, &mut Object<'_, '_>, &About<'_>, bool) -> Result<(), Full>,
}

impl<'a> Extra<'a> {
    /// An object as it stands.
    pub(crate) const fn new(meta: Raw<'a>) -> Self {
        Extra { meta, write: write_extra }
    }
}

fn write_extra(extra: Raw<'_>, result: &mut Object<'_, '_>, about: &About<'_>, signs: bool) -> Result<(), Full> {
    let mut object = Object::open(result.key("_meta"));
    if signs && extra.get(meta::SERVER_INFO).is_none() {
        about.write_signature(object.key(meta::SERVER_INFO))?;
    }
    object.spread(extra)?;
    object.close()
}

/// The tail of a result: `_meta` and the closing braces.
pub(crate) fn end_result(
    mut result: Object<'_, '_>,
    about: &About<'_>,
    revision: Revision,
    extra: Option<Extra<'_>>,
) -> Result<(), Full> {
    let signs = revision.is_modern() && about.signs_results;
    match extra {
        None if signs => return about.sign(result),
        None => {}
        Some(extra) => (extra.write)(extra.meta, &mut result, about, signs)?,
    }
    result.close_with(b"}}")
}
