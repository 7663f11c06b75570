//! Tasks of other processes of the same server. A request for one is relayed to its process. When that has ended, the task is
//! answered from its last state, which the transport has kept: the members of `notifications/tasks`.

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::code;
use mcp_sansio::server::RpcError;
use mcp_sansio::service::{CustomRequest, HandlerError, HandlerResult, KeptTopic, Receipt};
use mcp_sansio::sink::FullError;

use crate::machine::TaskStatus;
use crate::response::{HAS_ENDED, WAS_CANCELLED, write_response};
use crate::store::{HasTasks, TaskToken, Tasks, UNKNOWN};

/// The message of a task that was not completed when its process ended.
const ENDED: &str = "The process that worked on the task has ended";

/// Digits of an id that name its process.
const DIGITS: usize = 5;

/// A request about a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Task,
    Update,
    Cancel,
    Result,
}

/// The place of the task that a request names.
pub(crate) enum Place {
    Here(TaskToken),
    /// It is relayed to its process, or answered.
    Elsewhere(Receipt),
}

impl Tasks<'_> {
    /// Makes the table one of a process of a [fleet](HasTasks::FLEET), whose tag has this number: the first five digits of each
    /// new `taskId` are the number, instead of random ones. Only the lowest 20 bits count. 0, the default: there are no other
    /// processes.
    #[must_use]
    pub fn process(mut self, tag: u32) -> Self {
        self.process = tag & 0xf_ffff;
        self
    }

    /// Returns the number of the other process to which an id belongs.
    pub(crate) fn process_of(&self, id: &str) -> Option<u32> {
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_id = id.len() == 32 && id.bytes().all(is_digit);
        let number = u32::from_str_radix(id.get(..DIGITS).filter(|_| is_id)?, 16).ok()?;
        (self.process != 0 && number != 0 && number != self.process).then_some(number)
    }

    /// Returns for whom and for how long the state of a task is kept.
    pub(crate) fn kept(&self, id: &str) -> Option<KeptTopic<'_>> {
        let token = self.find(id).filter(|_| self.process != 0)?;
        Some(KeptTopic { principal: self.user(token), keep: self.ttl(token).unwrap_or(u64::MAX) })
    }
}

/// Finds the task that a request names. One of another process is relayed to it, or answered from what it has kept.
pub(crate) fn find<S: HasTasks>(
    state: &mut S,
    request: &mut CustomRequest<'_>,
    wanted: Wanted,
) -> Result<Place, HandlerError> {
    let unknown = match state.tasks_mut().named_by(request) {
        Ok(token) => return Ok(Place::Here(token)),
        Err(unknown) => unknown,
    };
    let id = request.params().and_then(|params| params.get("taskId")?.text()?.plain());
    let process = id.and_then(|id| Some((id, state.tasks().process_of(id)?)));
    let Some((id, process)) = process.filter(|_| S::FLEET) else { return Err(unknown.into()) };
    let done = match request.kept() {
        Some(kept) => answer(kept, request, wanted),
        None if request.can_relay() => request.relay(process, id),
        None => Err(UNKNOWN.into()),
    };
    done.map(Place::Elsewhere)
}

/// Returns whether a task that was kept had a status.
fn is(kept: Raw<'_>, status: TaskStatus) -> bool {
    kept.get("status").and_then(|kept| kept.text()).is_some_and(|kept| kept.eq_str(status.name()))
}

/// Returns whether a task that was kept had ended.
fn has_ended(kept: Raw<'_>) -> bool {
    [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled].iter().any(|status| is(kept, *status))
}

/// Writes the notification about a task that had not ended when its process did.
pub(crate) fn write_ended(kept: Raw<'_>, params: &mut Object<'_, '_>) -> Result<(), FullError> {
    match has_ended(kept) {
        true => Err(FullError::Never),
        false => write_task(kept, true, false, params),
    }
}

/// Answers from what the process of a task has kept.
fn answer(kept: Raw<'_>, request: &mut CustomRequest<'_>, wanted: Wanted) -> HandlerResult {
    let modern = request.revision().is_modern();
    // In 2025-11-25 there are only tasks of this revision, and in later revisions none of them.
    if kept.get(if modern { "ttlMs" } else { "ttl" }).is_none() {
        return Err(UNKNOWN.into());
    }
    let has_ended = has_ended(kept);
    match wanted {
        Wanted::Task => request.result_as("complete", &mut |result| write_task(kept, modern, has_ended, result)),
        Wanted::Update => request.result_as("complete", &mut |_| Ok(())),
        Wanted::Cancel if modern => request.result_as("complete", &mut |_| Ok(())),
        Wanted::Cancel => Err(HAS_ENDED.into()),
        Wanted::Result if is(kept, TaskStatus::Cancelled) => Err(WAS_CANCELLED.into()),
        Wanted::Result if !has_ended => Err(RpcError::internal(ENDED).into()),
        Wanted::Result => {
            let id = kept.get("taskId").and_then(|id| id.text()?.plain()).unwrap_or("");
            write_response(kept.get("result"), kept.get("error"), id, request)
        }
    }
}

/// Writes the members of a task as it was kept; of one that had not ended, as a failed one.
fn write_task(kept: Raw<'_>, modern: bool, has_ended: bool, task: &mut Object<'_, '_>) -> Result<(), FullError> {
    for (key, value) in kept.members() {
        let of_details = ["result", "error", "inputRequests"].iter().any(|name| key.eq_str(name));
        let of_status = key.eq_str("status") || key.eq_str("statusMessage");
        let is_left_out = if has_ended { of_details && !modern } else { of_details || of_status };
        if !is_left_out {
            task.member(key, value)?;
        }
    }
    if has_ended {
        return Ok(());
    }
    task.text("status", TaskStatus::Failed.name())?;
    task.text("statusMessage", ENDED)?;
    if !modern {
        return Ok(());
    }
    let mut error = Object::open(task.key("error"));
    error.fixed("code", "-32603")?;
    const _: () = assert!(code::INTERNAL == -32603);
    error.text("message", ENDED)?;
    error.close()
}
