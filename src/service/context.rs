//! The common part of all contexts: progress, log messages, late answers, errors; and the writers of results.

use core::fmt;

use crate::content::{AnswerText, TextValue};
use crate::json::{JsonKind, Raw, Text, object::Object};
use crate::memory::records::{self, Keep};
use crate::protocol::{ClientCapability, LoggingLevel, Method, ServerCapability, code, meta};
use crate::revision::Revision;
use crate::rpc::{RequestMembers, begin, is_complete};
use crate::server::around::ResultMeta;
use crate::server::notify::{least_level, notify_log, notify_progress};
use crate::server::{
    AssociatedData, Caching, Millis, NotifyStatus, Progress, RequestSlot, RequestToken, RpcError, Scope, Seal,
    ServerId, ServerInfo, StreamBody, respond_failure, words,
};
use crate::sink::{FullError, MessageHead, Out, Writer, whole};
use crate::trace_context::TraceContext;

/// The result of a handler: a [`Receipt`] from a method that answers, asks or puts off, or an error.
pub type HandlerResult = Result<Receipt, HandlerError>;

/// The proof that a handler has answered, asked or put off its request. Only the methods of its context make it.
#[derive(Debug)]
pub struct Receipt(pub(crate) Settled);

/// The state of a request after its handler.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(all(feature = "ask", feature = "windows")), allow(dead_code, reason = "not all can happen"))]
pub(crate) enum Settled {
    Answered,
    Later,
    /// As `Later`; the request was kept, to run the handler again.
    Suspended,
    Asked,
    /// The head of the reply is written, the rest is pulled from its source.
    Streaming(StreamBody),
}

/// The error of a handler. The service answers with it: invalid arguments of a tool become a result with `isError`, which the
/// model can read and fix; an [`RpcError`] becomes the JSON-RPC error.
///
/// Turn errors of the application into it with [`RequestContext::ok`] or, to say more,
/// [`RequestContext::failed`], and `?`: the model reads their text. A constant text needs neither:
///
/// ```
/// use mcp_sansio::service::{Call, HandlerResult};
///
/// fn total(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     let prices = std::fs::read_to_string("/var/lib/shop/prices")
///         .map_err(|error| call.failed(format_args!("the prices cannot be read: {error}")))?;
///     let first = prices.lines().next().ok_or("there are no prices")?;
///     let price: u64 = call.ok(first.parse())?;
///     call.text(price)
/// }
/// # let _: fn(&mut (), &mut Call<'_>) -> HandlerResult = total;
/// ```
///
/// [`RequestContext::fail`] answers with a JSON-RPC error, also for a tool.
#[derive(Clone, Copy, Debug)]
pub struct HandlerError(pub(crate) HandlerFailure);

/// The outcome of a run of a handler. It borrows nothing.
pub(crate) struct HandlerRun {
    pub(crate) outcome: Result<Settled, HandlerFailure>,
    /// The bytes of new records in the draft of a question.
    pub(crate) drafted: usize,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "ask"), allow(dead_code, reason = "not all can happen"))]
pub(crate) enum HandlerFailure {
    Fail(RpcError<'static>),
    ToolError(ToolError),
    /// There is no room for the questions now. Nothing was written, so the handler may run again.
    AskLater,
    /// There is no room for the reply. The handler has had its effects and must not run again.
    TooLarge,
}

/// The error of a handler that has answered. It is not written: the answer counts.
const ANSWERED: RpcError<'static> = RpcError::internal(words("The handler has answered already"));

/// An error as a text for the model, in the result of a tool, and as a JSON-RPC error for other requests. The text is in
/// pieces, so that a device need not format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolError {
    pub(crate) words: [&'static str; 4],
    pub(crate) code: i32,
    pub(crate) otherwise: &'static str,
}

impl HandlerFailure {
    /// Returns a short error, which fits into the room that was kept.
    pub(crate) const fn in_short(&self) -> RpcError<'static> {
        let short = RpcError::too_large();
        match self {
            HandlerFailure::Fail(failure) => RpcError::new(failure.code, short.message),
            HandlerFailure::ToolError(error) => RpcError::new(error.code, short.message),
            HandlerFailure::AskLater | HandlerFailure::TooLarge => short,
        }
    }
}

impl From<RpcError<'static>> for HandlerError {
    fn from(failure: RpcError<'static>) -> Self {
        HandlerError(HandlerFailure::Fail(failure))
    }
}

/// The error is answered as by [`RequestContext::failed`].
impl From<&'static str> for HandlerError {
    fn from(text: &'static str) -> Self {
        let error = ToolError { words: [text, "", "", ""], code: code::INTERNAL, otherwise: text };
        HandlerError(HandlerFailure::ToolError(error))
    }
}

#[cfg(feature = "serde")]
impl From<crate::json::DeserializeError> for HandlerError {
    fn from(refused: crate::json::DeserializeError) -> Self {
        let [first, second, third] = refused.words();
        HandlerError(HandlerFailure::ToolError(ToolError {
            words: ["Invalid arguments: ", first, second, third],
            code: code::INVALID_PARAMS,
            otherwise: "Invalid params: wrong arguments",
        }))
    }
}

impl From<FullError> for HandlerError {
    fn from(_: FullError) -> Self {
        HandlerError(HandlerFailure::TooLarge)
    }
}

/// The parameters of one handler run: read from the message, or from the retry record.
#[derive(Clone, Copy)]
pub(crate) struct HandlerInput<'a> {
    pub(crate) params: Option<Raw<'a>>,
    pub(crate) members: &'a RequestMembers<'a>,
    /// The `method` of a request that the protocol does not know.
    pub(crate) name: Option<Text<'a>>,
}

impl HandlerInput<'_> {
    const NONE: HandlerInput<'static> = HandlerInput { params: None, members: &RequestMembers::NONE, name: None };
}

/// The way of questions to the client and of their answers.
#[cfg_attr(not(feature = "ask"), allow(dead_code, reason = "it stays closed"))]
pub(crate) enum AskVia<'a> {
    /// 2026-07-28: answers and state travel with the request. Only a suspended request is kept; `again` if it runs again.
    Travels { responses: Option<Raw<'a>>, keep: &'a mut dyn Keep, again: bool },
    /// Up to 2025-11-25: both are kept here. `live` has the answers; it is `None` in the first run.
    Stays { live: Option<records::RecordIter<'a>>, keep: &'a mut dyn Keep, has_slot: bool, next_id: u64 },
    /// A late answer: it cannot ask.
    Closed,
}

/// The common part of the contexts of handlers. [`Call`](super::Call), [`ReadResource`](super::ReadResource),
/// [`GetPrompt`](super::GetPrompt), [`Complete`](super::Complete) and [`CustomRequest`](super::CustomRequest) dereference
/// to it.
#[cfg_attr(not(feature = "ask"), allow(dead_code, reason = "some fields are for asking alone"))]
pub struct RequestContext<'a> {
    pub(crate) about: &'a ServerInfo<'a>,
    pub(crate) out: &'a mut dyn Out,
    pub(crate) slot: &'a mut RequestSlot,
    pub(crate) token: RequestToken,
    pub(crate) server: ServerId,
    pub(crate) input: &'a HandlerInput<'a>,
    pub(crate) state: &'a [u8],
    /// For the decoded text of the arguments, of which each takes its part, then for the sealed state of a question.
    pub(crate) scratch: &'a mut [u8],
    pub(crate) ask: AskVia<'a>,
    pub(crate) seal: Option<&'a (dyn Seal + Sync)>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) session_level: LoggingLevel,
    pub(crate) now: Millis,
    /// The timeout of the questions of this run, in milliseconds. Default:
    /// [`Server::ask_timeout`](crate::server::Server::ask_timeout),
    /// [`MessageLimits::ask_timeout`](crate::server::MessageLimits::ask_timeout). Set it before
    /// [`ask`](RequestContext::ask). After the timeout the handler runs again, and [`answer`](RequestContext::answer) returns
    /// [`InputError::TimedOut`](super::InputError::TimedOut).
    ///
    /// It has no effect in 2026-07-28: the client calls again at any time.
    pub ask_timeout: Option<Millis>,
    /// The room that is kept for the reply, in bytes.
    pub(crate) reserve: usize,
    pub(crate) result_meta: Option<Extra<'a>>,
    /// The definition has a source to stream from.
    #[cfg(feature = "windows")]
    pub(crate) sourced: bool,
    /// There is no slot for a reply in windows.
    #[cfg(feature = "windows")]
    pub(crate) crowded: bool,
    /// `None` in an answer outside of a server.
    #[cfg(feature = "alloc")]
    pub(crate) published: Option<&'a mut crate::server::published::PublishedChanges>,
    /// The answer of the handler, which answers once.
    pub(crate) settled: Option<Settled>,
}

impl<'a> RequestContext<'a> {
    /// Makes a context without input and memory, which cannot ask, stream, log or publish.
    #[inline(always)]
    pub(crate) fn new(
        about: &'a ServerInfo<'a>,
        out: &'a mut dyn Out,
        slot: &'a mut RequestSlot,
        token: RequestToken,
        server: ServerId,
        now: Millis,
    ) -> Self {
        RequestContext {
            about,
            out,
            slot,
            token,
            server,
            input: &HandlerInput::NONE,
            state: &[],
            scratch: &mut [],
            ask: AskVia::Closed,
            seal: None,
            principal: None,
            session_level: LoggingLevel::Emergency,
            now,
            ask_timeout: None,
            reserve: 0,
            result_meta: None,
            #[cfg(feature = "windows")]
            sourced: false,
            #[cfg(feature = "windows")]
            crowded: true,
            #[cfg(feature = "alloc")]
            published: None,
            settled: None,
        }
    }

    /// Returns the token of the request, for [late answers](RequestContext::later).
    pub const fn token(&self) -> RequestToken {
        self.token
    }

    /// Returns the index in its constant table of the entry that handles the request: of the tool, of the prompt, or of the
    /// resource, where templates come after resources.
    pub const fn index(&self) -> usize {
        self.slot.handler as usize
    }

    /// Returns the protocol revision of the request.
    pub const fn revision(&self) -> Revision {
        self.slot.revision
    }

    /// Returns `params`, unchanged.
    pub const fn params(&self) -> Option<Raw<'a>> {
        self.input.params
    }

    /// Returns `params._meta`, unchanged.
    pub const fn meta(&self) -> Option<Raw<'a>> {
        self.input.members.meta
    }

    /// Returns the [trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta) of the request:
    /// `traceparent`, `tracestate` and `baggage` in its `_meta`, in every revision. A malformed member counts as absent.
    ///
    /// A handler that runs again, because it has asked or was suspended, has it again: in 2026-07-28 that of the client's
    /// retry, else that of the first run. A late answer has none: keep the
    /// [`TraceParent`](crate::trace_context::TraceParent), which is `Copy`.
    ///
    /// ```
    /// use mcp_sansio::service::{Call, HandlerResult};
    ///
    /// fn order(log: &mut Vec<String>, call: &mut Call<'_>) -> HandlerResult {
    ///     if let Some(parent) = call.trace_context().traceparent() {
    ///         log.push(format!("order, caused by {parent}"));
    ///     }
    ///     call.text("ordered")
    /// }
    /// # let _: fn(&mut Vec<String>, &mut Call<'_>) -> HandlerResult = order;
    /// ```
    pub fn trace_context(&self) -> TraceContext<'a> {
        TraceContext::of(self.input.members.meta)
    }

    /// Returns the authenticated user, if the transport knows one.
    pub const fn principal(&self) -> Option<&'a str> {
        self.principal
    }

    /// Returns the server that handles the request: the connection, in a program with several. Compare it with
    /// [`Server::id`](crate::server::Server::id). Over HTTP it is
    /// the endpoint, whose sessions differ by [`scope`](RequestContext::scope).
    pub const fn server(&self) -> ServerId {
        self.server
    }

    /// Returns the session of the request, to be compared with that of a [notification](super::NotificationContext). It is
    /// unique within one [server](RequestContext::server).
    pub const fn scope(&self) -> Scope {
        self.slot.scope
    }

    /// Returns the time on the caller's clock, in milliseconds.
    pub const fn now(&self) -> Millis {
        self.now
    }

    /// Returns whether the client declared a capability; without the feature `ask` capabilities are not read, and it is `false`.
    pub fn client_has(&self, feature: ClientCapability) -> bool {
        self.slot.client.has(feature)
    }

    /// Returns an error if the client did not declare a capability.
    ///
    /// # Errors
    /// Returned with `?`: error -32021 in 2026-07-28. Before it, a result with `isError` for a tool, and error -32603 for other
    /// requests.
    pub fn need(&self, feature: ClientCapability) -> Result<(), HandlerError> {
        if self.client_has(feature) {
            return Ok(());
        }
        if self.slot.revision.is_modern() {
            return Err(RpcError::missing_capability(feature).into());
        }
        Err(HandlerError(HandlerFailure::ToolError(ToolError {
            words: ["The client does not support ", feature.name(), "", ""],
            code: code::INTERNAL,
            otherwise: "The client cannot be asked",
        })))
    }

    /// Sets the `_meta` of the result, a JSON object. Call it before answering.
    pub fn set_meta(&mut self, meta: Raw<'a>) {
        self.result_meta = Some(Extra::new(meta));
    }

    /// Sends `notifications/progress`, if the client asked for
    /// [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress). It leaves the room for
    /// the reply free.
    pub fn progress(&mut self, progress: Progress<'_>) -> NotifyStatus {
        if self.settled.is_some() {
            return NotifyStatus::Stale;
        }
        notify_progress(self.slot, progress, self.reserve, self.out)
    }

    /// Sends `notifications/message`, if the client wants messages of this level and the service declares
    /// [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging). It leaves the room for the
    /// reply free.
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    pub fn log(&mut self, level: LoggingLevel, message: impl fmt::Display) -> NotifyStatus {
        self.log_as(None, level, &message)
    }

    /// Sends a log message as [`log`](RequestContext::log) does, with `logger`.
    pub fn log_as(&mut self, logger: Option<&str>, level: LoggingLevel, message: &dyn fmt::Display) -> NotifyStatus {
        self.tell_log(logger, level, &mut |params| params.shown("data", message))
    }

    /// Sends a log message as [`log_as`](RequestContext::log_as) does, with any JSON as `data`.
    pub fn log_data(&mut self, logger: Option<&str>, level: LoggingLevel, data: Raw<'_>) -> NotifyStatus {
        self.tell_log(logger, level, &mut |params| params.raw("data", data))
    }

    fn tell_log(
        &mut self,
        logger: Option<&str>,
        level: LoggingLevel,
        data: &mut dyn FnMut(&mut Object<'_, '_>),
    ) -> NotifyStatus {
        if self.settled.is_some() {
            return NotifyStatus::Stale;
        }
        if !self.about.has(ServerCapability::Logging) {
            return NotifyStatus::NotAsked;
        }
        notify_log(least_level(self.slot, self.session_level), level, logger, data, self.reserve, self.out)
    }

    /// Publishes a change that the handler has made: a list, or a resource with subscribers. The notifications go out
    /// after the answer; repeated changes become one. Declare the capability with
    /// [`Service::feature`](super::Service::feature), else nothing is sent.
    ///
    /// It reaches the clients of the [server](RequestContext::server) that handles the request: over a line its one client,
    /// over HTTP each session and each listen of the endpoint that wants it, in a fleet those of all processes. A program with
    /// several servers notes the change in its state and calls
    /// [`Server::publish`](crate::server::Server::publish) of each.
    ///
    /// In an answer [outside of a server](super::Service::write_detached_result) it does nothing and returns `false`: publish in
    /// the loop then.
    ///
    /// Needs the feature `alloc`. Without an allocator, note the change in the state and publish it in the loop.
    ///
    /// # Panics
    /// In builds with debug assertions, if the service does not declare the capability: no client would hear of the change.
    ///
    /// ```
    /// use mcp_sansio::protocol::ServerCapability;
    /// use mcp_sansio::server::ServerChange;
    /// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
    ///
    /// fn add(notes: &mut Vec<String>, call: &mut Call<'_>) -> HandlerResult {
    ///     notes.push(String::from("a new one"));
    ///     call.publish(ServerChange::Resources);
    ///     call.text("added")
    /// }
    /// static TOOLS: [Tool<Vec<String>>; 1] = [Tool::new("add", "Adds a note", add)];
    /// let service = Service::new("notes", "1.0").tools(&TOOLS).feature(ServerCapability::ResourcesChanged);
    /// # let _ = service;
    /// ```
    #[cfg(feature = "alloc")]
    pub fn publish(&mut self, change: crate::server::ServerChange<'_>) -> bool {
        if let (true, Some(capability)) = (cfg!(debug_assertions), change.capability()) {
            debug_assert!(
                self.about.has(capability),
                "{change:?} is published, but not declared: add `.feature(ServerCapability::{capability:?})` to the service"
            );
        }
        match &mut self.published {
            Some(published) => {
                published.add(change);
                true
            }
            None => false,
        }
    }

    /// Puts the answer off. Keep the token, return the result, and answer later:
    /// [`LineServer::answer`](crate::line_server::LineServer::answer), and in the adapters the method of the same name. The
    /// token stands for a `tools/call`, [`as_read`](RequestToken::as_read) and its like make other requests of it. An answer to
    /// another request is refused with [`RespondError::WrongKind`](crate::server::RespondError::WrongKind).
    ///
    /// A late answer cannot [`ask`](RequestContext::ask) the client: [`suspend`](RequestContext::suspend) the request for that.
    ///
    /// ```
    /// use mcp_sansio::server::{RespondError, RequestToken};
    /// use mcp_sansio::service::{HandlerResult, ReadResource, Resource, Service};
    /// # use mcp_sansio::{frame::LineBuffer, server::{Server, RequestSlot}, line_server::LineServer, sink::{LineSink, SliceStorage}};
    ///
    /// fn forecast(waiting: &mut Option<RequestToken>, read: &mut ReadResource<'_>) -> HandlerResult {
    ///     let (token, outcome) = read.later();
    ///     *waiting = Some(token);
    ///     outcome
    /// }
    /// static RESOURCES: [Resource<Option<RequestToken>>; 1] = [Resource::new("weather://tomorrow", "tomorrow", forecast)];
    /// let service = Service::new("weather", "1.0").resources(&RESOURCES);
    /// # let (mut input, mut output, mut slots) = ([0; 512], [0; 512], [RequestSlot::FREE; 2]);
    /// # let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), LineSink::new(SliceStorage::new(&mut output)));
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
    /// assert_eq!(wrong, Err(RespondError::WrongKind)); // a resource is read, no tool is called
    /// session.answer(&service, &mut waiting, token.as_read("weather://tomorrow"), |_, read| read.text("sunny"))?;
    /// # assert!(core::str::from_utf8(session.out.pending()).unwrap().contains("sunny"));
    /// # Ok::<(), RespondError>(())
    /// ```
    pub fn later(&mut self) -> (RequestToken, HandlerResult) {
        // After an answer there is nothing to put off: a second one would follow.
        let done = self.unsettled().and_then(|()| self.settle(Settled::Later));
        (self.token, done)
    }

    /// Lets the transport close the connection until the answer is there: over HTTP in 2025-11-25 the client comes back
    /// for it ([polling](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http)). Return
    /// [`later`](RequestContext::later) then.
    pub fn release(&mut self) {
        self.slot.released = true;
    }

    /// Answers with a JSON-RPC error. An error with a constant message can also be returned: `Err(failure.into())`. For a
    /// message that is made at run time there is [`fail_with`](RequestContext::fail_with). An error that the model should
    /// read is a tool's [`Call::error`](super::Call::error).
    ///
    /// # Errors
    /// The handler has answered already, or the error is larger than the sink takes now.
    pub fn fail(&mut self, failure: &RpcError<'_>) -> HandlerResult {
        self.unsettled()?;
        respond_failure(self.out, Some(self.slot.id.as_bytes()), failure)?;
        self.settle(Settled::Answered)
    }

    /// Answers with a JSON-RPC error as [`fail`](RequestContext::fail) does, with a message that is made at run time. `code`
    /// is one of [`code`], or one of the application outside -32768 to -32000.
    ///
    /// ```
    /// use mcp_sansio::service::{Call, HandlerResult};
    ///
    /// fn forward(waiting: &mut usize, call: &mut Call<'_>) -> HandlerResult {
    ///     call.fail_with(-31001, format_args!("upstream has {waiting} jobs waiting"))
    /// }
    /// # let _: fn(&mut usize, &mut Call<'_>) -> HandlerResult = forward;
    /// ```
    ///
    /// # Errors
    /// As [`fail`](RequestContext::fail).
    pub fn fail_with(&mut self, code: i32, message: impl AnswerText) -> HandlerResult {
        message.with_text(|message| self.write_error(code, message))
    }

    /// Returns the value of `result`; answers with its error as [`failed`](RequestContext::failed) does. So `?` goes with
    /// all errors that are `Display`.
    ///
    /// ```
    /// use mcp_sansio::service::{HandlerResult, ReadResource};
    ///
    /// fn host_name(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
    ///     let name = read.ok(std::fs::read_to_string("/etc/hostname"))?;
    ///     read.text(name.trim())
    /// }
    /// # let _: fn(&mut (), &mut ReadResource<'_>) -> HandlerResult = host_name;
    /// ```
    ///
    /// # Errors
    /// `result` is an error, which is answered: return what is returned here, by `?`.
    pub fn ok<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Result<T, HandlerError> {
        result.map_err(|error| self.failed(format_args!("{error}")))
    }

    /// Answers with an error in words of your own, and returns the error for `?`: a tool with a result with `isError`, which
    /// the model reads; other requests with error -32603.
    ///
    /// ```
    /// use mcp_sansio::service::{Call, HandlerResult};
    ///
    /// fn size(folder: &mut std::path::PathBuf, call: &mut Call<'_>) -> HandlerResult {
    ///     let about = folder
    ///         .metadata()
    ///         .map_err(|error| call.failed(format_args!("{} cannot be read: {error}", folder.display())))?;
    ///     call.text(about.len())
    /// }
    /// # let _: fn(&mut std::path::PathBuf, &mut Call<'_>) -> HandlerResult = size;
    /// ```
    #[must_use = "return it: the request is answered"]
    pub fn failed(&mut self, text: impl AnswerText) -> HandlerError {
        let written = text.with_text(|text| match self.slot.method {
            Method::ToolsCall => self.write_words(text, true),
            _ => self.write_error(code::INTERNAL, text),
        });
        match written {
            Ok(_) => HandlerError(HandlerFailure::Fail(ANSWERED)),
            Err(error) => error,
        }
    }

    /// Writes a JSON-RPC error.
    fn write_error(&mut self, code: i32, message: &TextValue<'_>) -> HandlerResult {
        self.write_answer(MessageHead::Error(code), &mut |out, _, slot, _| {
            begin(out, slot.id.as_bytes(), ",\"error\":{\"code\":");
            out.signed(code.into());
            out.put(b",\"message\":");
            message.write(out);
            out.put(b"}}")
        })
    }

    /// Notes what the handler has done. The caller has called [`unsettled`](RequestContext::unsettled).
    pub(crate) fn settle(&mut self, settled: Settled) -> HandlerResult {
        self.settled = Some(settled);
        Ok(Receipt(settled))
    }

    /// Returns an error if the handler has answered already.
    pub(crate) fn unsettled(&self) -> Result<(), HandlerError> {
        match self.settled {
            None => Ok(()),
            Some(_) => Err(HandlerError(HandlerFailure::Fail(ANSWERED))),
        }
    }

    /// Writes the reply: `write` gets the slot of the request, and what ends a result.
    pub(crate) fn write_answer(&mut self, head: MessageHead<'_>, write: &mut WriteAnswer<'_>) -> HandlerResult {
        self.unsettled()?;
        let (about, slot, extra) = (self.about, &*self.slot, self.result_meta);
        whole(self.out, head, |out| write(out, about, slot, extra))?;
        self.settle(Settled::Answered)
    }

    /// Writes a result; `members` writes its own members.
    pub(crate) fn write_result(&mut self, members: &mut dyn FnMut(&mut Object<'_, '_>, Revision)) -> HandlerResult {
        self.write_result_as(MessageHead::Result, members)
    }

    /// Writes a result of this kind.
    pub(crate) fn write_result_as(
        &mut self,
        head: MessageHead<'_>,
        members: &mut dyn FnMut(&mut Object<'_, '_>, Revision),
    ) -> HandlerResult {
        self.write_answer(head, &mut |out, about, slot, extra| {
            let mut result = begin_result(out, slot.id.as_bytes(), slot.revision);
            members(&mut result, slot.revision);
            end_result(result, about, slot, extra)
        })
    }

    /// Writes a result with one text, the most frequent one.
    pub(crate) fn write_words(&mut self, words: &TextValue<'_>, is_error: bool) -> HandlerResult {
        self.unsettled()?;
        write_words(self.out, self.about, self.slot, self.result_meta, words, is_error)?;
        self.settle(Settled::Answered)
    }

    /// Writes a result that the handler has made; its `resultType` and `_meta` are taken over. `caching` is the default for
    /// results with `ttlMs` and `cacheScope`.
    pub(crate) fn write_own(&mut self, own: Raw<'_>, caching: Option<Caching>) -> HandlerResult {
        if own.kind() != JsonKind::Object {
            return Err(RpcError::internal(words("The handler's result is not an object")).into());
        }
        let modern = self.slot.revision.is_modern();
        let failed = self.slot.method == Method::ToolsCall && own.get("isError").and_then(|is| is.bool()) == Some(true);
        let head = if failed { MessageHead::ToolError } else { MessageHead::Result };
        self.write_answer(head, &mut |out, about, slot, extra| {
            let mut result = begin_message(out, slot.id.as_bytes());
            match own.get("resultType").filter(|_| modern) {
                Some(kind) => result.raw("resultType", kind),
                None if modern => result.fixed("resultType", "\"complete\""),
                None => {}
            }
            let others = own.members().filter(|(key, _)| !key.eq_str("resultType") && !key.eq_str("_meta"));
            for (key, value) in others.filter(|(key, _)| caching.is_none() || !Caching::is_hint(key)) {
                result.member(key, value);
            }
            if let Some(caching) = caching.filter(|_| modern && is_complete(own)) {
                caching.or_of(own).write(&mut result);
            }
            let meta = own.get("_meta").filter(|meta| meta.kind() == JsonKind::Object);
            end_result(result, about, slot, meta.map(Extra::new).or(extra))
        })
    }
}

type WriteAnswer<'w> = dyn FnMut(&mut Writer<'_>, &ServerInfo<'_>, &RequestSlot, Option<Extra<'_>>) + 'w;

impl fmt::Debug for RequestContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("token", &self.token)
            .field("arguments", &self.arguments())
            .finish_non_exhaustive()
    }
}

/// Returns the associated data of the sealed state of a request.
pub(crate) fn bound<'b>(
    method: Method,
    members: &RequestMembers<'b>,
    principal: Option<&'b str>,
    now: Millis,
) -> AssociatedData<'b> {
    let target = members.target(method).map_or(&b""[..], |target| target.as_bytes());
    let arguments = members.arguments.map_or(&b"{}"[..], |arguments| arguments.as_bytes());
    AssociatedData { method: method.name(), target, arguments, principal, now }
}

/// Returns whether `inputResponses` is an object of objects.
pub(crate) fn are_responses(responses: Raw<'_>) -> bool {
    responses.kind() == JsonKind::Object && responses.members().all(|(_, value)| value.kind() == JsonKind::Object)
}

/// Begins a result that is complete, with the members that the revision demands.
pub(crate) fn begin_result<'o, 'w>(out: &'o mut Writer<'w>, id: &[u8], revision: Revision) -> Object<'o, 'w> {
    let modern = revision.is_modern();
    begin(out, id, if modern { ",\"result\":{\"resultType\":\"complete\"" } else { ",\"result\":{" });
    Object::resume(out, !modern)
}

/// Begins a result without members.
pub(crate) fn begin_message<'o, 'w>(out: &'o mut Writer<'w>, id: &[u8]) -> Object<'o, 'w> {
    begin(out, id, ",\"result\":{");
    Object::resume(out, true)
}

/// Writes the result of a tool with one text.
pub(crate) fn write_words(
    out: &mut dyn Out,
    about: &ServerInfo<'_>,
    slot: &RequestSlot,
    extra: Option<Extra<'_>>,
    words: &TextValue<'_>,
    is_error: bool,
) -> Result<(), FullError> {
    let head = if is_error { MessageHead::ToolError } else { MessageHead::Result };
    whole(out, head, |out| {
        // In few pieces: in many it takes 8 % more instructions of a `tools/call`.
        let modern = slot.revision.is_modern();
        let head = match modern {
            true => r#","result":{"resultType":"complete","content":[{"type":"text","text":""#,
            false => r#","result":{"content":[{"type":"text","text":""#,
        };
        begin(out, slot.id.as_bytes(), head);
        words.write_body(out);
        let (tail, ends) = match is_error {
            true => (r#""}],"isError":true"#, r#""}],"isError":true}}"#),
            false => (r#""}],"isError":false"#, r#""}],"isError":false}}"#),
        };
        if !modern && extra.is_none() {
            return out.put(ends.as_bytes());
        }
        out.put(tail.as_bytes());
        end_result(Object::resume(out, false), about, slot, extra)
    })
}

/// The `_meta` from a handler, and its writer: a program without it is linked without the writer.
#[derive(Clone, Copy)]
pub(crate) struct Extra<'a> {
    meta: Raw<'a>,
    write: fn(Raw<'_>, &mut Object<'_, '_>, &ServerInfo<'_>, &RequestSlot, bool),
}

impl<'a> Extra<'a> {
    /// The `_meta` of layers alone.
    pub(crate) const LAYERS: Extra<'static> = Extra::new(Raw::constant("{}"));

    pub(crate) const fn new(meta: Raw<'a>) -> Self {
        Extra { meta, write: write_extra }
    }
}

fn write_extra(extra: Raw<'_>, result: &mut Object<'_, '_>, about: &ServerInfo<'_>, slot: &RequestSlot, signs: bool) {
    let mut written = ResultMeta::new(result);
    if signs && let Some(object) = written.object() {
        about.write_signature(object.key(meta::SERVER_INFO));
    }
    // A result that is passed on from another server names that server; this one answers for itself.
    for (key, value) in extra.members().filter(|(key, _)| !key.eq_str(meta::SERVER_INFO)) {
        if let Some(object) = written.object() {
            object.member(key, value);
        }
    }
    if let (Some(around), Some(token)) = (about.around, slot.token()) {
        around.add_meta(token, &mut written);
    }
    written.close()
}

/// Ends a result: `_meta` and the closing braces.
pub(crate) fn end_result(
    mut result: Object<'_, '_>,
    about: &ServerInfo<'_>,
    slot: &RequestSlot,
    extra: Option<Extra<'_>>,
) {
    let signs = slot.revision.is_modern() && about.signs_results;
    match extra {
        None if signs => return about.sign(result),
        None => {}
        Some(extra) => (extra.write)(extra.meta, &mut result, about, slot, signs),
    }
    result.close_with(b"}}")
}

/// Writes the reply for the error of a handler: a result with `isError` if the model can learn from it, else an error.
pub(crate) fn refuse(
    about: &ServerInfo<'_>,
    slot: &RequestSlot,
    extra: Option<Extra<'_>>,
    why: HandlerFailure,
    out: &mut dyn Out,
) -> Result<(), FullError> {
    let failure = match why {
        HandlerFailure::ToolError(error) if slot.method == Method::ToolsCall => {
            return write_words(out, about, slot, extra, &TextValue::from(&error.words.map(TextValue::from)), true);
        }
        HandlerFailure::ToolError(error) => RpcError::new(error.code, error.otherwise),
        HandlerFailure::Fail(failure) => failure,
        HandlerFailure::AskLater | HandlerFailure::TooLarge => why.in_short(),
    };
    respond_failure(out, Some(slot.id.as_bytes()), &failure)
}
