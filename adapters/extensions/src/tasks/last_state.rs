//! The last states of tasks: with them another process of the same server answers when the one that worked on a task has ended.

use alloc::string::String;

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::code;
use mcp_sansio::server::{Millis, RpcError};
use mcp_sansio::service::{CustomRequest, HandlerResult};
use mcp_sansio::sink::to_vec;

use crate::tasks::machine::{TaskId, TaskStatus, Wanted};
use crate::tasks::response::{HAS_ENDED, WAS_CANCELLED, write_response};
use crate::tasks::store::{HasTasks, TaskLookUp, Tasks, UNKNOWN};

/// The message of a task that was not completed when its process ended.
const ENDED: &str = "The process that worked on the task has ended";

/// The state of a task, to be kept outside of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastState {
    /// The user that the task belongs to.
    pub user: Option<String>,
    /// The milliseconds for which it is kept: its time to live.
    pub keep: Millis,
    /// The members of the task with its result or error: a JSON object.
    pub task: String,
}

impl Tasks<'_> {
    /// Sets the number of this process among those that serve the same clients: it is the first five digits of each new `taskId`,
    /// instead of random ones, so that a proxy finds the process of a task (`Mcp-Name`). Only the lowest 20 bits count. 0, the
    /// default: there are no other processes.
    #[must_use]
    pub fn process(mut self, number: u32) -> Self {
        self.process = number & 0xf_ffff;
        self
    }

    /// Returns the state of a task that has [changed](Tasks::next_change), to be kept for other processes.
    #[must_use]
    pub fn last_state(&self, id: &str) -> Option<LastState> {
        let token = self.find(id)?;
        let task = to_vec(|out| {
            let mut task = Object::open(out);
            self.write_detailed(token, &mut task);
            task.close()
        });
        let task = String::from_utf8(task.ok()?).ok()?;
        Some(LastState { user: self.user(token).map(String::from), keep: self.ttl(token).unwrap_or(Millis::MAX), task })
    }
}

/// Looks up the task that a request names. `None` if it is unknown: the table has it for others, or the last states are kept nowhere.
pub(crate) fn look_up<S: HasTasks>(
    state: &S,
    request: &mut CustomRequest<'_>,
    wanted: Wanted,
) -> Option<HandlerResult> {
    let states = state.last_states()?;
    let named = request.params()?.get("taskId")?.text()?.plain()?;
    let mut id = TaskId::EMPTY;
    if !is_id(named) || state.tasks().find(named).is_some() || !id.set(named.as_bytes()) {
        return None;
    }
    let (user, is_modern) = (request.principal().map(String::from), request.revision().is_modern());
    let (token, done) = request.later();
    states.look_up(TaskLookUp { token, id, user, wanted, is_modern });
    Some(done)
}

fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

impl TaskLookUp {
    /// Returns the `taskId`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Returns whether a task had ended in the state that was kept: it is its last one, also while its process is alive.
    #[must_use]
    pub fn has_ended(&self, task: &str) -> bool {
        Raw::parse(task.as_bytes()).is_ok_and(has_ended)
    }

    /// Answers the request with the user and the [task](LastState::task) that were kept, or with an error if there is no such task. The process of the
    /// task has ended: a task that had not is failed.
    ///
    /// # Errors
    /// Error -32602 if there is no such task, or it is not one of the user, or of the client's revision.
    pub fn answer(&self, kept: Option<(Option<&str>, &str)>, request: &mut CustomRequest<'_>) -> HandlerResult {
        let kept = kept.filter(|(user, _)| *user == self.user.as_deref());
        let kept = kept.and_then(|(_, task)| Raw::parse(task.as_bytes()).ok());
        // In 2025-11-25 there are only tasks of this revision, and in later revisions none of them.
        let ttl = if self.is_modern { "ttlMs" } else { "ttl" };
        let Some(kept) = kept.filter(|kept| kept.get(ttl).is_some()) else { return Err(UNKNOWN.into()) };
        let (modern, has_ended) = (self.is_modern, has_ended(kept));
        match self.wanted {
            Wanted::Task => request.result_as("complete", &mut |result| write_task(kept, modern, has_ended, result)),
            Wanted::Update => request.result_as("complete", &mut |_| {}),
            Wanted::Cancel if modern => request.result_as("complete", &mut |_| {}),
            Wanted::Cancel => Err(HAS_ENDED.into()),
            Wanted::Result if is(kept, TaskStatus::Cancelled) => Err(WAS_CANCELLED.into()),
            Wanted::Result if !has_ended => Err(RpcError::internal(ENDED).into()),
            Wanted::Result => write_response(kept.get("result"), kept.get("error"), self.id(), request),
        }
    }
}

/// Returns whether a task that was kept had a status.
fn is(kept: Raw<'_>, status: TaskStatus) -> bool {
    kept.get("status").and_then(|kept| kept.text()).is_some_and(|kept| kept.eq_str(status.name()))
}

/// Returns whether a task that was kept had ended.
fn has_ended(kept: Raw<'_>) -> bool {
    [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled].iter().any(|status| is(kept, *status))
}

/// Writes the members of a task as it was kept; of one that had not ended, as a failed one.
fn write_task(kept: Raw<'_>, modern: bool, has_ended: bool, task: &mut Object<'_, '_>) {
    for (key, value) in kept.members() {
        let of_details = ["result", "error", "inputRequests"].iter().any(|name| key.eq_str(name));
        let of_status = key.eq_str("status") || key.eq_str("statusMessage");
        let is_left_out = if has_ended { of_details && !modern } else { of_details || of_status };
        if !is_left_out {
            task.member(key, value);
        }
    }
    if has_ended {
        return;
    }
    task.text("status", TaskStatus::Failed.name());
    task.text("statusMessage", ENDED);
    if !modern {
        return;
    }
    let mut error = Object::open(task.key("error"));
    error.fixed("code", "-32603");
    const _: () = assert!(code::INTERNAL == -32603);
    error.text("message", ENDED);
    error.close()
}
