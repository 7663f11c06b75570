//! A task and its state.

use mcp_sansio::memory::FixedText;
use mcp_sansio::protocol::ClientCapabilities;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Millis, Scope, ServerId};

/// The `status` of a task. See [the schema](https://modelcontextprotocol.io/seps/2663-tasks-extension).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the extension has these five")]
pub enum TaskStatus {
    /// `working`: the work goes on.
    Working,
    /// `input_required`: at least one question to the client is open.
    InputRequired,
    /// `completed`: there is a result; also one with `isError`.
    Completed,
    /// `failed`: there is a JSON-RPC error.
    Failed,
    /// `cancelled`: the client has cancelled it before it was completed.
    Cancelled,
}

impl TaskStatus {
    /// Returns its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Returns whether it is one of the last three: the task does not change any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// The state of a slot. It is assigned in this file alone, see [`TRANSITIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    /// There is no task.
    Free,
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

mcp_sansio::machine!(TaskState, TRANSITIONS: Free Working InputRequired Completed Failed Cancelled);

/// Every change of a task's state: from, to, cause.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Free", "Working", "create"),
    ("Working", "InputRequired", "ask"),
    ("InputRequired", "InputRequired", "ask"),
    ("InputRequired", "InputRequired", "answer"),
    ("InputRequired", "Working", "last answer"),
    ("Working", "Completed", "complete"),
    ("InputRequired", "Completed", "complete"),
    ("Working", "Failed", "fail"),
    ("InputRequired", "Failed", "fail"),
    ("Working", "Cancelled", "cancel"),
    ("InputRequired", "Cancelled", "cancel"),
    ("Working", "Free", "forget"),
    ("InputRequired", "Free", "forget"),
    ("Completed", "Free", "forget"),
    ("Failed", "Free", "forget"),
    ("Cancelled", "Free", "forget"),
];

/// The `taskId` of a task: 32 hexadecimal digits.
pub type TaskId = FixedText<32>;

/// The part of a token that changes with each task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    generation: u32,
    pub(crate) random: [u8; 4],
}

/// A connection, or a session of an endpoint.
pub(crate) type Session = (ServerId, Scope);

/// The place of one task. Lend [`Tasks`](crate::tasks::Tasks) as many as there may be tasks, the finished ones that are kept for
/// their clients included.
#[derive(Debug)]
pub struct TaskSlot {
    state: TaskState,
    pub(crate) stamp: Stamp,
    pub(crate) id: TaskId,
    pub(crate) created: Millis,
    pub(crate) updated: Millis,
    pub(crate) ttl: Option<Millis>,
    pub(crate) poll_interval: Option<Millis>,
    pub(crate) revision: Revision,
    pub(crate) client: ClientCapabilities,
    /// The session that created it.
    pub(crate) session: Option<Session>,
    /// Its listens do not know the present state yet.
    pub(crate) changed: bool,
    /// The program does not know yet that all its questions are answered.
    pub(crate) answered: bool,
    /// The program does not know yet that the client has cancelled it.
    pub(crate) cancelled: bool,
    /// It belongs to the user whose tasks were marked last.
    pub(crate) is_own: bool,
}

impl TaskSlot {
    /// A free slot.
    pub const FREE: TaskSlot = TaskSlot {
        state: TaskState::Free,
        stamp: Stamp { generation: 0, random: [0; 4] },
        id: TaskId::EMPTY,
        created: 0,
        updated: 0,
        ttl: None,
        poll_interval: None,
        revision: Revision::LATEST,
        client: ClientCapabilities::NONE,
        session: None,
        changed: false,
        answered: false,
        cancelled: false,
        is_own: false,
    };

    pub(crate) const fn status(&self) -> Option<TaskStatus> {
        match self.state {
            TaskState::Free => None,
            TaskState::Working => Some(TaskStatus::Working),
            TaskState::InputRequired => Some(TaskStatus::InputRequired),
            TaskState::Completed => Some(TaskStatus::Completed),
            TaskState::Failed => Some(TaskStatus::Failed),
            TaskState::Cancelled => Some(TaskStatus::Cancelled),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.state != TaskState::Free
    }

    /// Returns whether it still changes.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, TaskState::Working | TaskState::InputRequired)
    }

    /// Changes the state, see [`TRANSITIONS`]. There is no other assignment.
    fn change(&mut self, cause: &str, state: TaskState, now: Millis) {
        self.state.enter(cause, state);
        self.updated = now;
        self.changed = true;
    }

    pub(crate) fn create(&mut self, now: Millis) {
        self.created = now;
        (self.answered, self.cancelled) = (false, false);
        self.change("create", TaskState::Working, now);
        // The result of its creation says it.
        self.changed = false;
    }

    pub(crate) fn ask(&mut self, now: Millis) {
        self.change("ask", TaskState::InputRequired, now);
        self.answered = false;
    }

    /// Notes that a question is answered; `left` are still open.
    pub(crate) fn answer(&mut self, left: usize, now: Millis) {
        match left {
            0 => self.change("last answer", TaskState::Working, now),
            _ => self.change("answer", TaskState::InputRequired, now),
        }
        self.answered = left == 0;
    }

    pub(crate) fn complete(&mut self, now: Millis) {
        self.change("complete", TaskState::Completed, now);
    }

    pub(crate) fn fail(&mut self, now: Millis) {
        self.change("fail", TaskState::Failed, now);
    }

    pub(crate) fn cancel(&mut self, now: Millis) {
        self.change("cancel", TaskState::Cancelled, now);
        (self.answered, self.cancelled) = (false, true);
    }

    pub(crate) fn forget(&mut self) {
        self.change("forget", TaskState::Free, self.updated);
        self.stamp.generation = self.stamp.generation.wrapping_add(1);
        (self.changed, self.answered, self.cancelled) = (false, false, false);
    }
}

/// A request about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Task,
    Update,
    Cancel,
    Result,
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: K059
    #[test]
    fn each_transition_leads_where_the_table_says() {
        let states = [
            TaskState::Free,
            TaskState::Working,
            TaskState::InputRequired,
            TaskState::Completed,
            TaskState::Failed,
            TaskState::Cancelled,
        ];
        for (from, to, cause) in TRANSITIONS {
            let state = states.into_iter().find(|state| state.name() == *from).unwrap();
            let mut slot = TaskSlot { state, ..TaskSlot::FREE };
            match *cause {
                "create" => slot.create(1),
                "ask" => slot.ask(1),
                "answer" => slot.answer(1, 1),
                "last answer" => slot.answer(0, 1),
                "complete" => slot.complete(1),
                "fail" => slot.fail(1),
                "cancel" => slot.cancel(1),
                "forget" => slot.forget(),
                other => panic!("{other}"),
            }
            assert_eq!(slot.state.name(), *to, "{from}, {cause}");
        }
    }
}
