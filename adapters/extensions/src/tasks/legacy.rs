//! Tasks of [2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks), where they are a part
//! of the protocol itself: the client asks for a task with `task` in the params of a call, and fetches the result with
//! `tasks/result`, which waits until the task has ended. Meanwhile it also asks the questions of the task.

use mcp_sansio::json::{JsonKind, Object, Raw};
use mcp_sansio::memory::FixedText;
use mcp_sansio::protocol::code;
use mcp_sansio::protocol::meta::RELATED_TASK;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::{Millis, RpcError};
use mcp_sansio::service::{Call, CustomRequest, HandlerResult, InputError, InputRequest, Tool};
use mcp_sansio::sink::Writer;

use crate::shared::Pages;
use crate::tasks::machine::{Session, TaskStatus, Wanted};
use crate::tasks::place::find;
use crate::tasks::response::{HAS_ENDED, WAS_CANCELLED, write_response};
use crate::tasks::store::{HasTasks, QUESTIONS_MAX, TaskError, TaskToken, Tasks};
use crate::tasks::waiters;

/// The revision with these tasks.
pub(crate) const ALONE: Revisions = Revisions::NONE.with(Revision::V2025_11_25);
/// The same, and those with the extension.
pub(crate) const AND_LATER: Revisions = Revisions::from(Revision::V2025_11_25);

/// The error of a `tasks/result` whose place another one has taken.
pub(crate) const TOO_MANY_WAIT: RpcError<'static> =
    RpcError::internal("Overloaded: too many requests wait for the task");

/// The most tasks in one result of `tasks/list`.
const PAGE: usize = 16;

/// The state of a `tasks/result` that has waited before.
const WAITED: &[u8] = b"1";

/// The `taskSupport` of a tool in `tools/list` of 2025-11-25. Without it a client must not ask for a task. See
/// [tool-level negotiation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#tool-level-negotiation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the revision has these two, and `forbidden`, the default")]
pub enum TaskSupport {
    /// `optional`: the handler answers at once if [`wants_task`](crate::tasks::wants_task) returns `false`.
    Optional,
    /// `required`: each call becomes a task.
    Required,
}

/// Sets `execution.taskSupport` in the entry of a tool in `tools/list`, in 2025-11-25. It takes the place of the
/// [`entry`](Tool::entry) of the tool.
pub const fn task_support<S>(tool: Tool<S>, support: TaskSupport) -> Tool<S> {
    let members = match support {
        TaskSupport::Optional => r#"{"execution":{"taskSupport":"optional"}}"#,
        TaskSupport::Required => r#"{"execution":{"taskSupport":"required"}}"#,
    };
    tool.entry(members, ALONE)
}

/// Writes the capability `tasks` of a server.
pub(crate) fn write_capabilities(capabilities: &mut Object<'_, '_>, revision: Revision) {
    if revision.has_core_tasks() {
        capabilities.fixed("tasks", r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#);
    }
}

/// Refuses a `tools/call` with `task` for a tool without [`task_support`].
pub(crate) fn check_call(call: &Call<'_>, entry: Option<Raw<'_>>) -> Result<(), RpcError<'static>> {
    let has_support = || entry.and_then(|entry| entry.get("execution")?.get("taskSupport")).is_some();
    match call.revision().has_core_tasks() && has_task(call) && !has_support() {
        true => Err(RpcError::new(code::METHOD_NOT_FOUND, "The tool cannot be called as a task")),
        false => Ok(()),
    }
}

/// Returns whether the client asks for a task.
pub(crate) fn has_task(call: &Call<'_>) -> bool {
    call.params().is_some_and(|params| params.get("task").is_some())
}

/// Returns the `ttl` of a task: the smaller one of that of the program and that of the call.
pub(crate) fn ttl(own: Option<Millis>, call: &Call<'_>) -> Result<Option<Millis>, RpcError<'static>> {
    const REQUIRED: RpcError<'static> =
        RpcError::new(code::METHOD_NOT_FOUND, "The tool is called as a task only: task is missing");
    shorter_ttl(own, call.params().and_then(|params| params.get("task")).ok_or(REQUIRED)?)
}

/// Does the same for the member `task` of a request.
pub(crate) fn shorter_ttl(own: Option<Millis>, task: Raw<'_>) -> Result<Option<Millis>, RpcError<'static>> {
    if task.kind() != JsonKind::Object {
        return Err(RpcError::invalid_params("Invalid params: task is not an object"));
    }
    let Some(asked) = task.get("ttl") else { return Ok(own) };
    let asked =
        asked.u64().ok_or(RpcError::invalid_params("Invalid params: task.ttl is not a number of milliseconds"))?;
    Ok(Some(own.map_or(asked, |own| own.min(asked))))
}

/// Writes the members of a `CreateTaskResult`.
pub(crate) fn write_created(tasks: &Tasks<'_>, token: TaskToken, result: &mut Object<'_, '_>) {
    let mut task = Object::open(result.key("task"));
    tasks.write_task(token, &mut task);
    task.close()
}

/// Answers `tasks/cancel`: with the task, or an error if it had ended before.
pub(crate) fn cancelled(
    tasks: &Tasks<'_>,
    token: TaskToken,
    cancelled: Result<(), TaskError>,
    request: &mut CustomRequest<'_>,
) -> HandlerResult {
    if cancelled.is_err() {
        return Err(HAS_ENDED.into());
    }
    request.result_as("complete", &mut |result| tasks.write_task(token, result))
}

/// `tasks/list`: the tasks of the user; without users those of the connection or session.
pub(crate) fn list<S: HasTasks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let tasks = state.tasks_mut();
    tasks.expire(request.now());
    tasks.mark(request.principal());
    let of = (request.principal().is_some(), Some((request.server(), request.scope())));
    with_pages(tasks, of, |pages| pages.answer(request))
}

/// Calls `act` with the list of the tasks that are marked. A place is a slot.
pub(crate) fn with_pages<T>(
    tasks: &Tasks<'_>,
    (has_user, session): (bool, Option<Session>),
    act: impl FnOnce(Pages<'_>) -> T,
) -> T {
    let item = |slot| tasks.marked(slot).filter(|token| tasks.is_of(*token, has_user, session));
    let write = |slot: usize, out: &mut Writer<'_>| {
        let Some(token) = item(slot) else { return };
        let mut task = Object::open(out);
        tasks.write_task(token, &mut task);
        task.close();
    };
    let (places, is_item) = (tasks.slots(), |slot| item(slot).is_some());
    act(Pages { member: "tasks", places, most: PAGE, is_item: &is_item, write: &write })
}

/// `tasks/result`: the result of the task. Until there is one the request is suspended, or asks the questions of the task.
pub(crate) fn result<S: HasTasks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let (waiter, is_first) = (request.token(), request.state().is_empty());
    let token = match find(state, request, Wanted::Result) {
        Ok(token) => token,
        Err(done) => return done,
    };
    let tasks = state.tasks_mut();
    let mut is_unanswered = false;
    // A run that was woken sees old answers.
    if !is_first && !request.is_resumed() {
        let taken = tasks.take_answers(token, request.now(), |key| request.answer(key));
        taken.map_err(|_| RpcError::internal("Overloaded: the answers are too large"))?;
        let lost = |key: &str| {
            matches!(request.answer(key)?.result.err()?, InputError::TimedOut | InputError::Closed).then_some(())
        };
        is_unanswered = tasks.questions(token).any(|(key, _)| lost(key).is_some());
    }
    if tasks.status(token).is_none_or(TaskStatus::is_terminal) {
        waiters::remove(tasks.records_mut(), waiter);
        return write_result(tasks, token, request);
    }
    let owner = u32::from(token.slot);
    if is_first {
        let added = waiters::add(tasks.records_mut(), owner, waiter);
        added.map_err(|_| RpcError::internal("Overloaded: no room to wait for the task"))?;
    } else if !waiters::contains(tasks.records_mut(), owner, waiter) {
        return Err(TOO_MANY_WAIT.into());
    }
    let asks = tasks.questions(token).next().is_some() && waiters::is_newest(tasks.records_mut(), owner, waiter);
    if asks && is_unanswered {
        waiters::remove(tasks.records_mut(), waiter);
        return Err(RpcError::internal("The questions of the task were not answered in time").into());
    }
    let done = if asks { ask(tasks, token, request) } else { request.suspend(WAITED).map(|(_, done)| done) };
    match done.is_ok() {
        true => waiters::set_asking(tasks.records_mut(), waiter, asks),
        // It is answered with the error, or comes again as the first time.
        false if is_first => waiters::remove(tasks.records_mut(), waiter),
        false => {}
    }
    done
}

/// Asks the open questions of a task.
fn ask(tasks: &Tasks<'_>, token: TaskToken, request: &mut CustomRequest<'_>) -> HandlerResult {
    let mut related = FixedText::<96>::EMPTY;
    for part in ["{\"", RELATED_TASK, "\":{\"taskId\":\"", tasks.id(token).unwrap_or(FixedText::EMPTY).as_str(), "\"}}"]
    {
        related.push(part.as_bytes());
    }
    let meta = Raw::parse(related.as_bytes()).unwrap_or(Raw::constant("{}"));
    let mut questions = [InputRequest::roots(""); QUESTIONS_MAX];
    let open = tasks.questions(token).filter_map(|(key, question)| InputRequest::kept(key, question, meta));
    let count = questions.iter_mut().zip(open).map(|(place, question)| *place = question).count();
    request.ask(questions.get(..count).unwrap_or(&[]), WAITED)
}

/// Answers with what the call would have been answered with, and the task in `_meta`.
fn write_result(tasks: &Tasks<'_>, token: TaskToken, request: &mut CustomRequest<'_>) -> HandlerResult {
    if tasks.status(token) == Some(TaskStatus::Cancelled) {
        return Err(WAS_CANCELLED.into());
    }
    let response = tasks.response(token);
    let (result, error) = response.map_or((None, None), |response| (response.result, response.error));
    write_response(result, error, tasks.id(token).unwrap_or(FixedText::EMPTY).as_str(), request)
}
