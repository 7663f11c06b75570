//! The requests of the server
//! ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation),
//! [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling),
//! [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots)) and their answers. Up to
//! 2025-11-25 they are JSON-RPC requests, from 2026-07-28 on `inputRequests` of a result ([multi round-trip
//! requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)); the application
//! handles both in the same way.

use super::form::Form;
use super::held::{ANSWER, QUESTION, RELATED_TASK, VISIT, push_written};
use super::result::ClientResult;
use super::views::{View, ViewError};
use super::{Client, ClientEvent, PendingId, ProtocolViolation, SendError, TransportError, Turn};
use crate::error::{self, RpcError, words};
use crate::json::{JsonKind, Object, Raw, Text};
use crate::memory::records::Record;
use crate::protocol::{ClientCapabilities, ClientCapability, ELICITATION, SAMPLING, code, meta};
use crate::revision::{Revision, Since};
use crate::rpc::Envelope;
use crate::rpc::begin;
use crate::sink::{FullError, MessageHead, Out, Writer, whole};
use crate::trace_context::TraceContext;

/// The most URL elicitations in memory whose end the server has not reported.
const VISITS: usize = 64;

/// Identifies a request of the server. Each id is used once: an answer with the id of a request that has ended
/// fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ServerRequestId {
    owner: u32,
    index: u8,
    kind: ServerRequestKind,
}

impl ServerRequestId {
    /// Returns the kind of the request.
    #[must_use]
    pub const fn kind(self) -> ServerRequestKind {
        self.kind
    }
}

/// The most input requests in one result.
pub(crate) const QUESTIONS_MAX: usize = 16;

/// The kinds of requests of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ServerRequestKind {
    /// `elicitation/create` in form mode
    /// ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)): a form for
    /// the user. See [`ServerRequest::message`] and [`ServerRequest::form`].
    Form,
    /// `elicitation/create` in URL mode
    /// ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)): a page for
    /// the user to visit. See [`ServerRequest::message`] and [`ServerRequest::url`]; the params often have
    /// `elicitationId`.
    UrlElicitation,
    /// `sampling/createMessage`
    /// ([sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling)): a message from a
    /// language model. The params have `messages`, `maxTokens` and others. Keep to `maxTokens`: cut the message, and say so with
    /// [`stop_reason`](super::result::CreateMessageResult::stop_reason).
    Sampling,
    /// `roots/list` ([roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots)): the folders
    /// that the server may use.
    Roots,
    /// `tasks/get`: the state of a task of the client. This kind and the following ones come only in 2025-11-25, and only if
    /// the client declared [tasks](super::ClientInfo::tasks). The params have `taskId`. See
    /// [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
    GetTask,
    /// `tasks/result`: the result of a task of the client. The answer waits until the task has ended. The params have
    /// `taskId`; [`reply`](super::Client::reply) adds it to `_meta` of the result.
    GetTaskPayload,
    /// `tasks/list`: the tasks of the client. The params may have `cursor`.
    ListTasks,
    /// `tasks/cancel`: the end of a task of the client. The params have `taskId`.
    CancelTask,
}

impl ServerRequestKind {
    pub(crate) fn of(method: &Text<'_>, params: Option<Raw<'_>>) -> Option<Self> {
        let mode = params.and_then(|params| params.get("mode")?.text());
        match () {
            () if method.eq_str("sampling/createMessage") => Some(ServerRequestKind::Sampling),
            () if method.eq_str("roots/list") => Some(ServerRequestKind::Roots),
            () if !method.eq_str("elicitation/create") => None,
            () if mode.is_some_and(|mode| mode.eq_str("url")) => Some(ServerRequestKind::UrlElicitation),
            () => Some(ServerRequestKind::Form),
        }
    }

    /// Returns the `method`.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            ServerRequestKind::Form | ServerRequestKind::UrlElicitation => "elicitation/create",
            ServerRequestKind::Sampling => "sampling/createMessage",
            ServerRequestKind::Roots => "roots/list",
            ServerRequestKind::GetTask => "tasks/get",
            ServerRequestKind::GetTaskPayload => "tasks/result",
            ServerRequestKind::ListTasks => "tasks/list",
            ServerRequestKind::CancelTask => "tasks/cancel",
        }
    }

    /// Returns the kind of a request about the tasks of the client.
    fn about_tasks(method: &Text<'_>) -> Option<Self> {
        use ServerRequestKind::{CancelTask, GetTask, GetTaskPayload, ListTasks};
        [GetTask, GetTaskPayload, ListTasks, CancelTask].into_iter().find(|kind| method.eq_str(kind.method()))
    }

    const fn is_about_tasks(self) -> bool {
        use ServerRequestKind::{CancelTask, GetTask, GetTaskPayload, ListTasks};
        matches!(self, GetTask | GetTaskPayload | ListTasks | CancelTask)
    }

    /// Returns `true` if the client declared the capability for this request.
    pub(crate) fn is_declared(self, declared: ClientCapabilities, revision: Revision, params: Option<Raw<'_>>) -> bool {
        let get = |key| params.and_then(|params| params.get(key)).filter(|value| value.kind() != JsonKind::Null);
        // The protocol has no other modes yet.
        let form = get("mode").is_none_or(|mode| mode.text().is_some_and(|mode| mode.eq_str("form")));
        // Before the revision with tools in sampling, these members have no meaning.
        let tools = revision.has(Since::SamplingTools) && ["tools", "toolChoice"].iter().any(|key| get(key).is_some());
        declared.has(match self {
            ServerRequestKind::Form if !form => return false,
            ServerRequestKind::Form => ClientCapability::ElicitForm,
            ServerRequestKind::UrlElicitation => ClientCapability::ElicitUrl,
            ServerRequestKind::Roots => ClientCapability::Roots,
            ServerRequestKind::Sampling if tools => ClientCapability::SamplingTools,
            ServerRequestKind::Sampling => ClientCapability::Sampling,
            // Without the declaration they are unknown methods.
            _ => return true,
        })
    }

    /// Returns `true` if the params have the members that the application reads.
    pub(crate) fn is_well_formed(self, params: Option<Raw<'_>>) -> bool {
        let get = |key| params.and_then(|params| params.get(key));
        match self {
            ServerRequestKind::Form => get("requestedSchema").is_some(),
            ServerRequestKind::UrlElicitation => get("url").is_some_and(|url| url.text().is_some()),
            ServerRequestKind::Sampling => get("messages").is_some_and(super::result::balanced),
            ServerRequestKind::Roots | ServerRequestKind::ListTasks => true,
            _ => get("taskId").is_some_and(|id| id.text().is_some()),
        }
    }

    /// Returns the error for a request without its capability. -32602: the client declared another mode of
    /// elicitation, or sampling without tools. -32601: the client declared nothing of the capability. The
    /// specification of 2025-11-25 has -32602 for a mode, and -32601 for a method that the client does not
    /// support.
    fn undeclared(self, declared: ClientCapabilities) -> RpcError<'static> {
        let elicits = declared.has(ClientCapability::ElicitForm) || declared.has(ClientCapability::ElicitUrl);
        match self {
            ServerRequestKind::Form | ServerRequestKind::UrlElicitation if elicits => {
                RpcError::invalid_params(words("The client did not declare this mode of elicitation"))
            }
            ServerRequestKind::Sampling if declared.has(ClientCapability::Sampling) => {
                RpcError::invalid_params(words("The client did not declare sampling with tools"))
            }
            _ => RpcError::new(code::METHOD_NOT_FOUND, words("The client did not declare this capability")),
        }
    }
}

/// One or more requests of the server that came in one message.
///
/// ```
/// use mcp_sansio::client::result::ClientResult;
/// use mcp_sansio::error::RpcError;
/// use mcp_sansio::client::{InputRequests, Client, ServerRequestKind, SendError};
/// use mcp_sansio::sink::Out;
///
/// fn answer(asked: &InputRequests<'_>, client: &mut Client<'_>, out: &mut dyn Out) -> Result<(), SendError> {
///     for question in asked.questions() {
///         match question.kind {
///             ServerRequestKind::Form => client.reply(question.id, &ClientResult::decline(), out)?,
///             _ => client.refuse(question.id, &RpcError::refused(), out)?,
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InputRequests<'a> {
    /// The request of the client that caused these requests, if it is known.
    pub token: Option<PendingId>,
    /// The token of the JSON-RPC request, or the number of the round.
    pub(super) owner: u32,
    /// A JSON-RPC request of the server (up to 2025-11-25).
    pub(super) one: Option<(ServerRequestKind, Raw<'a>)>,
    /// The `inputRequests` of a result of 2026-07-28, an object, or the `elicitations` of an error of 2025-11-25, an
    /// array. The client has checked them.
    pub(super) list: Raw<'a>,
}

/// A request of the server.
///
/// Show it to the user before you answer: see [Visits](crate::duties::client#visits), [Forms](crate::duties::client#forms) and [Sampling](crate::duties::client#sampling).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServerRequest<'a> {
    /// The id for [`reply`](super::Client::reply) and [`refuse`](super::Client::refuse).
    pub id: ServerRequestId,
    /// The kind.
    pub kind: ServerRequestKind,
    /// The `params`; `{}` if the request has none.
    pub params: Raw<'a>,
}

impl<'a> ServerRequest<'a> {
    /// Returns the trace context of a request of the server up to 2025-11-25
    /// ([`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta)). From 2026-07-28 on such a request is
    /// part of a result, and belongs to the trace of the client's own request.
    #[must_use]
    pub fn trace_context(&self) -> TraceContext<'a> {
        TraceContext::of(self.params.get("_meta"))
    }

    /// Returns `message`, the question to the user, of an elicitation.
    ///
    /// ```
    /// use mcp_sansio::client::ServerRequest;
    ///
    /// /// Shows a question on a terminal.
    /// fn show(question: &ServerRequest<'_>) {
    ///     println!("{}", question.message().map_or(String::from("(no text)"), |text| text.to_string()));
    ///     if let Some(url) = question.url() {
    ///         println!("It wants you to open {url}.");
    ///     }
    ///     for field in question.form().iter().flat_map(|form| form.fields()) {
    ///         println!("- {}{}", field.label(), if field.is_required() { " (required)" } else { "" });
    ///     }
    /// }
    /// # let _: fn(&ServerRequest<'_>) = show;
    /// ```
    #[must_use]
    pub fn message(&self) -> Option<Text<'a>> {
        self.params.get("message")?.text()
    }

    /// Returns the form of an elicitation in form mode (`requestedSchema`).
    ///
    /// # Errors
    /// [`ViewError`] as for [`Form::of`](View::of); [`ViewError::Missing`] also if the request is of another kind.
    pub fn form(&self) -> Result<Form<'a>, ViewError> {
        let schema = self.params.get("requestedSchema").filter(|_| self.kind == ServerRequestKind::Form);
        Form::of(schema.ok_or(ViewError::Missing("requestedSchema"))?)
    }

    /// Returns `url`, the page that an elicitation in URL mode wants the user to visit. Show it whole and open it only with the
    /// user's consent.
    #[must_use]
    pub fn url(&self) -> Option<Text<'a>> {
        self.params.get("url").filter(|_| self.kind == ServerRequestKind::UrlElicitation)?.text()
    }
}

impl<'a> InputRequests<'a> {
    /// Returns the requests. Answer each one, in any order.
    pub fn questions(&self) -> impl Iterator<Item = ServerRequest<'a>> + Clone + use<'a> {
        let owner = self.owner;
        let inputs = self.list.members().filter_map(|(_, request)| {
            let params = request.get("params");
            let kind = ServerRequestKind::of(&request.get("method")?.text()?, params)?;
            Some((kind, params.unwrap_or(const { Raw::constant("{}") })))
        });
        let visits = self.list.items().map(|visit| (ServerRequestKind::UrlElicitation, visit));
        self.one.into_iter().chain(inputs).chain(visits).zip(0..).map(move |((kind, params), index)| {
            let id = ServerRequestId { owner, index, kind };
            ServerRequest { id, kind, params }
        })
    }
}

impl Client<'_> {
    /// Takes a request of the server. The client answers `ping` itself, refuses requests that the server must not
    /// send, and gives all others to the application.
    pub(crate) fn request<'a>(
        &mut self,
        exchange: Option<u64>,
        envelope: &Envelope<'a>,
        id: Raw<'a>,
        method: Text<'a>,
        out: &mut dyn Out,
    ) -> Turn<'a> {
        if self.is_modern() {
            // A server of 2026-07-28 must not send requests, and over HTTP an answer is not possible.
            return Ok(Some(ClientEvent::Ignored(ProtocolViolation::BadRequest)));
        }
        if method.eq_str("ping") {
            respond(out, id, &mut |out| out.put(b"{}"))?;
            return Ok(None);
        }
        let params = envelope.params;
        let revision = self.revision.unwrap_or(Revision::BEFORE_OPENING);
        let has_tasks = [&SAMPLING[..], &ELICITATION].iter().any(|of| self.info.has_tasks(of, revision));
        let about_tasks = || ServerRequestKind::about_tasks(&method).filter(|_| has_tasks);
        let (failure, oddity) = match ServerRequestKind::of(&method, params).or_else(about_tasks) {
            None => (RpcError::method_not_found(), ProtocolViolation::BadRequest),
            Some(kind) if !kind.is_declared(self.declared(), revision, params) => {
                (kind.undeclared(self.declared()), ProtocolViolation::Undeclared)
            }
            Some(kind) if !kind.is_well_formed(params) => {
                (RpcError::invalid_params(words("Invalid params")), ProtocolViolation::BadRequest)
            }
            Some(kind) => match self.keep_question(id, kind, related_task(kind, params, revision)) {
                Some(owner) => {
                    if let Some(visit) = params.filter(|_| kind == ServerRequestKind::UrlElicitation) {
                        self.keep_visit(visit);
                    }
                    let token = exchange.and_then(|wire| self.on_wire(wire)).map(|pending| PendingId(pending.token));
                    let empty = const { Raw::constant("{}") };
                    let one = Some((kind, params.unwrap_or(empty)));
                    return Ok(Some(ClientEvent::Asked(InputRequests { token, owner, one, list: empty })));
                }
                None => (RpcError::internal(words("No room for another question")), ProtocolViolation::NoRoom),
            },
        };
        error::respond(out, Some(id.as_bytes()), &failure)?;
        Ok(Some(ClientEvent::Ignored(oddity)))
    }

    /// Returns `task` of the params of a request of the server if the client declared [tasks](super::ClientInfo::tasks) for
    /// requests of this kind: the answer is a `CreateTaskResult` then. Otherwise the member has no meaning. See
    /// [creating tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#creating-tasks).
    #[must_use]
    pub fn task_of<'a>(&self, request: &ServerRequest<'a>) -> Option<Raw<'a>> {
        let of: &[ClientCapability] = match request.kind {
            ServerRequestKind::Sampling => &SAMPLING,
            ServerRequestKind::Form | ServerRequestKind::UrlElicitation => &ELICITATION,
            _ => return None,
        };
        // An error of 2025-11-25 may have elicitations too: only a request can have a task.
        let is_request = self.question_id(request.id).is_some() && self.info.has_tasks(of, self.revision?);
        request.params.get("task").filter(|task| is_request && task.kind() != JsonKind::Null)
    }

    /// Reads an entry of `inputRequests`: the kind of the request, and its `params`; `{}` if it has none. The client reads
    /// those of `input_required` results itself. Methods of extensions may have more of them.
    ///
    /// # Errors
    /// [`TransportError::Invalid`] if it is no request that a server may send, [`TransportError::Undeclared`] if the client
    /// did not declare its capability.
    pub fn input_request<'a>(&self, request: Raw<'a>) -> Result<(ServerRequestKind, Raw<'a>), TransportError> {
        let method = request.get("method").and_then(|method| method.text()).ok_or(TransportError::Invalid)?;
        let params = request.get("params");
        let kind = ServerRequestKind::of(&method, params).ok_or(TransportError::Invalid)?;
        if !kind.is_declared(self.declared(), Revision::LATEST, params) {
            return Err(TransportError::Undeclared);
        }
        if !kind.is_well_formed(params) {
            return Err(TransportError::Invalid);
        }
        Ok((kind, params.unwrap_or(const { Raw::constant("{}") })))
    }

    /// Keeps the id of a request and the id of its task, and returns its token. Returns `None` if there is no room, or if
    /// the server sends requests without end while the client has requests in flight.
    fn keep_question(&mut self, id: Raw<'_>, kind: ServerRequestKind, task: Option<Raw<'_>>) -> Option<u32> {
        if self.in_flight() == 0 {
            self.questions = 0;
        }
        // A server polls a task as long as it runs.
        let counts = !kind.is_about_tasks();
        if counts && self.questions >= u16::from(self.rounds_max) * QUESTIONS_MAX as u16 {
            return None;
        }
        let owner = self.next_id();
        let used = self.held.used();
        self.held.push(owner, QUESTION, kind as u8, &[id.as_bytes()]).ok()?;
        if let Some(task) = task
            && self.held.push(owner, RELATED_TASK, 0, &[task.as_bytes()]).is_err()
        {
            self.held.drop_last(used);
            return None;
        }
        self.last_id = owner;
        self.questions += u16::from(counts);
        Some(owner)
    }

    /// Keeps the `elicitationId` of a URL elicitation, so that its end can be reported. The newest one replaces
    /// the oldest. If the store is too small, the client does not report the end.
    pub(crate) fn keep_visit(&mut self, visit: Raw<'_>) {
        let Some(id) = visit.get("elicitationId").and_then(|id| id.text()) else { return };
        let visits = || self.held.iter().filter(|record| record.kind == VISIT);
        let oldest = visits().nth(VISITS - 1).and_then(|_| visits().next()).map(|oldest| oldest.owner);
        if let Some(oldest) = oldest {
            self.drop_held(oldest);
        }
        let owner = self.next_id();
        if self.held.push(owner, VISIT, 0, &[b"\"", id.raw(), b"\""]).is_ok() {
            self.last_id = owner;
        }
    }

    /// Removes an `elicitationId`. Returns `true` if the server sent it before and has not reported the end yet.
    pub(crate) fn ends_visit(&mut self, id: &Text<'_>) -> bool {
        let same = |record: &Record<'_>| Raw::trusted(record.data).text().is_some_and(|known| known.same(id));
        let used = self.held.used();
        // Several elicitations may have the same id.
        self.held.remove(|record| record.kind == VISIT && same(record));
        self.held.used() < used
    }

    /// Sends or keeps the result of a request of the server. From 2026-07-28 on
    /// [`advance`](super::Client::advance) sends the client's request again when all its input requests have an
    /// answer. In 2025-11-25 the result of `tasks/result`, and of a request that names a [task] in its
    /// `_meta`, names the same task.
    ///
    /// [task]: https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#associating-task-related-messages
    ///
    /// # Errors
    /// - [`SendError::Stale`]: the request is answered, withdrawn, or its connection has ended.
    /// - [`SendError::NoRoom`]: the result does not fit the store of [`held`](super::Client::held).
    /// - [`SendError::FullNow`], [`SendError::FullNever`]: the sink has no room.
    pub fn reply(
        &mut self,
        question: ServerRequestId,
        reply: &ClientResult<'_>,
        out: &mut dyn Out,
    ) -> Result<(), SendError> {
        self.answer(question, Ok(*reply), out)
    }

    /// Passes an answer through the layers, then sends or keeps it.
    fn answer<'a>(
        &mut self,
        question: ServerRequestId,
        mut answer: Result<ClientResult<'a>, RpcError<'a>>,
        out: &mut dyn Out,
    ) -> Result<(), SendError> {
        if let Some(around) = self.info.around.filter(|_| self.is_asked(question)) {
            around.answered(question, &mut answer, self.now);
        }
        match answer {
            Ok(reply) => self.reply_now(question, &reply, out),
            Err(refusal) => self.refuse_now(question, &refusal, out),
        }
    }

    fn reply_now(
        &mut self,
        question: ServerRequestId,
        reply: &ClientResult<'_>,
        out: &mut dyn Out,
    ) -> Result<(), SendError> {
        if let Some(token) = self.asking(question) {
            return self.keep_answer(token, question, reply);
        }
        let (revision, owner) = (self.revision.unwrap_or(Revision::BEFORE_OPENING), question.owner);
        self.question_id(question).ok_or(SendError::Stale)?;
        if self.held_of(owner, RELATED_TASK, 0).is_some() {
            // The members of its `_meta` are known when it is written.
            push_written(&mut self.held, (owner, ANSWER, 0), |out| reply.write(out, revision))
                .map_err(|_| SendError::NoRoom)?;
        }
        let id = self.question_id(question).ok_or(SendError::Stale)?;
        let related = self.held_of(owner, ANSWER, 0).zip(self.held_of(owner, RELATED_TASK, 0));
        let sent = respond(out, id, &mut |out| match related {
            Some((result, task)) => write_related(out, result, task),
            None => reply.write(out, revision),
        });
        if let Err(full) = sent {
            self.held.remove(|record| record.owner == owner && record.kind == ANSWER);
            return Err(full.into());
        }
        self.drop_held(owner);
        Ok(())
    }

    /// Answers a request of the server with an error. From 2026-07-28 on input requests cannot have an error: an
    /// elicitation is declined instead, and for any other request the client's request ends with
    /// [`TransportError::Refused`].
    ///
    /// # Errors
    /// As [`reply`](super::Client::reply).
    pub fn refuse(
        &mut self,
        question: ServerRequestId,
        refusal: &RpcError<'_>,
        out: &mut dyn Out,
    ) -> Result<(), SendError> {
        self.answer(question, Err(*refusal), out)
    }

    fn refuse_now(
        &mut self,
        question: ServerRequestId,
        refusal: &RpcError<'_>,
        out: &mut dyn Out,
    ) -> Result<(), SendError> {
        if let Some(token) = self.asking(question) {
            return match question.kind {
                ServerRequestKind::Form | ServerRequestKind::UrlElicitation => {
                    self.keep_answer(token, question, &ClientResult::decline())
                }
                _ => {
                    self.lose(token, TransportError::Refused);
                    Ok(())
                }
            };
        }
        let id = self.question_id(question).ok_or(SendError::Stale)?;
        error::respond(out, Some(id.as_bytes()), refusal)?;
        self.drop_held(question.owner);
        Ok(())
    }

    /// Returns the pending request that waits for this answer.
    fn asking(&self, question: ServerRequestId) -> Option<u32> {
        let mut pending = self.pending.iter();
        pending.find(|pending| pending.awaits_input(question.owner, question.index)).map(|pending| pending.token)
    }

    /// Returns whether a request of the server has no answer yet.
    fn is_asked(&self, question: ServerRequestId) -> bool {
        self.asking(question).is_some() || self.question_id(question).is_some()
    }

    /// Returns the JSON-RPC id of a request of the server.
    fn question_id(&self, question: ServerRequestId) -> Option<Raw<'_>> {
        let found = self.held.iter().find(|record| record.owner == question.owner && record.kind == QUESTION)?;
        Some(Raw::trusted(found.data))
    }

    fn keep_answer(
        &mut self,
        token: u32,
        question: ServerRequestId,
        reply: &ClientResult<'_>,
    ) -> Result<(), SendError> {
        if self.is_modern() {
            let revision = self.revision.unwrap_or(Revision::LATEST);
            push_written(&mut self.held, (token, ANSWER, question.index), |out| reply.write(out, revision))
                .map_err(|_| SendError::NoRoom)?;
        } else if !reply.accepts() {
            // The user does not visit a URL of 2025-11-25.
            self.lose(token, TransportError::Refused);
            return Ok(());
        }
        if let Some(pending) = self.pending_mut(token) {
            pending.input_given(question.index);
        }
        Ok(())
    }

    /// Removes a request that the server has cancelled.
    pub(crate) fn withdrawn(&mut self, id: Raw<'_>) -> Option<ServerRequestId> {
        let same = |data: &[u8]| crate::rpc::same_id(data, id.as_bytes());
        let found = self.held.iter().find(|record| record.kind == QUESTION && same(record.data))?;
        let question = ServerRequestId { owner: found.owner, index: 0, kind: kind_of(found.tag) };
        self.drop_held(question.owner);
        Some(question)
    }

    /// Removes all requests of the server: their connection has ended.
    pub(crate) fn forget_questions(&mut self) {
        self.held.remove(|record| matches!(record.kind, QUESTION | RELATED_TASK | VISIT));
    }
}

/// Returns the kind from the tag of a record.
fn kind_of(tag: u8) -> ServerRequestKind {
    use ServerRequestKind::{CancelTask, Form, GetTask, GetTaskPayload, ListTasks, Sampling, UrlElicitation};
    const KINDS: [ServerRequestKind; 7] =
        [Form, UrlElicitation, Sampling, GetTask, GetTaskPayload, ListTasks, CancelTask];
    KINDS.into_iter().find(|&kind| kind as u8 == tag).unwrap_or(ServerRequestKind::Roots)
}

/// Returns the `taskId` of the task of 2025-11-25 to which a request of the server belongs, a JSON string.
fn related_task(kind: ServerRequestKind, params: Option<Raw<'_>>, revision: Revision) -> Option<Raw<'_>> {
    let params = params.filter(|_| revision.has_core_tasks())?;
    let task = match kind {
        // The result alone does not name the task.
        ServerRequestKind::GetTaskPayload => params.get("taskId"),
        kind if kind.is_about_tasks() => None,
        _ => params.get("_meta")?.get(meta::RELATED_TASK)?.get("taskId"),
    };
    task.filter(|task| task.kind() == JsonKind::String)
}

/// Writes a result with the `taskId` of its task in `_meta`.
fn write_related(out: &mut Writer<'_>, result: Raw<'_>, task: Raw<'_>) {
    let mut object = Object::open(out);
    for (key, value) in result.members().filter(|(key, _)| !key.eq_str("_meta")) {
        object.member(key, value);
    }
    let mut meta = Object::open(object.key("_meta"));
    let own = result.get("_meta").into_iter().flat_map(|own| own.members());
    for (key, value) in own.filter(|(key, _)| !key.eq_str(meta::RELATED_TASK)) {
        meta.member(key, value);
    }
    let mut related = Object::open(meta.key(meta::RELATED_TASK));
    related.raw("taskId", task);
    related.close();
    meta.close();
    object.close()
}

/// Writes a response with a result.
fn respond(out: &mut dyn Out, id: Raw<'_>, result: &mut dyn FnMut(&mut Writer<'_>)) -> Result<(), FullError> {
    whole(out, MessageHead::Result, |out| {
        begin(out, id.as_bytes(), ",\"result\":");
        result(out);
        out.put(b"}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_elicitations() {
        let of = |kind, params| ServerRequest {
            id: ServerRequestId { owner: 0, index: 0, kind },
            kind,
            params: Raw::parse(params).expect("JSON"),
        };
        let both = r#"{"message":"Who?","url":"https://example.com","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
        let form = of(ServerRequestKind::Form, both.as_bytes());
        assert!(form.message().is_some_and(|message| message.eq_str("Who?")));
        assert!(form.form().is_ok_and(|form| form.fields().count() == 1) && form.url().is_none());
        let visit = of(ServerRequestKind::UrlElicitation, both.as_bytes());
        assert!(visit.url().is_some_and(|url| url.eq_str("https://example.com")));
        assert_eq!(visit.form().err(), Some(ViewError::Missing("requestedSchema")));
        let broken = of(ServerRequestKind::Form, br#"{"message":3,"requestedSchema":[]}"#);
        assert!(broken.message().is_none() && broken.url().is_none());
        assert_eq!(broken.form().err(), Some(ViewError::Shape(JsonKind::Object)));
    }
}
