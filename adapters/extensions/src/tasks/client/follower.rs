//! Follows a task to its end, without I/O.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::View;
use mcp_sansio::client::{Client, Request, SendError, ServerRequestKind, TransportError, printable_line};
use mcp_sansio::json::{Object, OwnedRaw, Raw, write};
use mcp_sansio::protocol::code;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::to_vec;
use mcp_sansio::trace_context::TraceContext;

use super::handle::TaskHandle;
use super::task::DetailedTask;
use crate::tasks::machine::TaskStatus;

/// The time between two polls of a task whose server suggests none, in milliseconds.
const UNSUGGESTED: Millis = 1_000;

mcp_sansio::options! {
    /// The limits of following a task. Times are in milliseconds.
    #[derive(Clone, Copy, Debug)]
    #[must_use]
    pub struct FollowLimits {
        /// The time after which it [gives up](TaskEnd::GaveUp), counted from the first [`TaskFollower::next`]. Default: one
        /// hour.
        total_timeout: Millis = 3_600_000,
        /// The time limit of one request. Default: 30 seconds.
        request_timeout: Millis = 30_000,
        /// The time for the end of a task after [`TaskFollower::cancel`]. Default: 10 seconds.
        cancel_time: Millis = 10_000,
        /// The number of requests in a row that may fail. Default: 5.
        failures: u8 = 5,
        /// The number of questions that one task may ask. Default: 64.
        questions: usize = 64,
    }
    by hand {
        /// The shortest time between two polls. Default: 200 milliseconds.
        shortest: Millis = 200,
        /// The longest time between two polls. Default: one minute.
        longest: Millis = 60_000,
    }
}

impl FollowLimits {
    /// Sets the shortest and the longest time between two polls: a server that suggests another one gets the nearer of them.
    pub const fn poll_interval(self, shortest: Millis, longest: Millis) -> Self {
        FollowLimits { shortest, longest: if longest < shortest { shortest } else { longest }, ..self }
    }
}

/// The next step of a [`TaskFollower`].
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "a caller must handle each step")]
pub enum TaskStep<'f> {
    /// Send this request, then call [`answered`](TaskFollower::answered), [`refused`](TaskFollower::refused) or
    /// [`lost`](TaskFollower::lost).
    Send(Request<'f>),
    /// Wait until this time, or until something else is to be done.
    Wait(Millis),
    /// It is over: [`TaskEvent::Ended`] says how.
    End,
}

/// An event of a [`TaskFollower`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEvent {
    /// The status of the task, or its message, is another one than before.
    Status {
        /// `status`.
        status: TaskStatus,
        /// `statusMessage`: untrusted text of the server, for users.
        message: Option<String>,
    },
    /// The task asks: [answer](TaskFollower::answer), or [cancel](TaskFollower::cancel) the task. Each question comes once.
    Asked(TaskQuestion),
    /// The question with this key needs no answer any more.
    Withdrawn(String),
    /// The last event.
    Ended(TaskEnd),
}

/// A question of a task. It deserves the same care as a request that the server sends by itself: see "Visits", "Forms" and "Sampling"
/// among the duties of a client in the documentation of `mcp-sansio`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskQuestion {
    /// Its key in `inputRequests`, for [`TaskFollower::answer`].
    pub key: String,
    /// The kind.
    pub kind: ServerRequestKind,
    /// The `params`.
    pub params: OwnedRaw,
}

/// The way in which following a task has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEnd {
    /// `completed`: the result of the call, also one with `isError`.
    Completed(OwnedRaw),
    /// `failed`: the JSON-RPC error of the call, for [`ErrorObject::read`](mcp_sansio::client::ErrorObject::read).
    Failed(OwnedRaw),
    /// `cancelled`.
    Cancelled,
    /// The server does not know the task (-32602; in 2025-11-25 also -32002): its time is over, or it is a task of another
    /// server or user.
    Gone,
    /// The server answered with another error.
    Refused {
        /// `code`.
        code: i32,
        /// `message`: untrusted text of the server.
        message: String,
    },
    /// The server broke a rule: with [`TransportError::Undeclared`] it asked for something that the client did not declare,
    /// with [`TransportError::TooManyRounds`] it asked more questions than the limit. The task may go on.
    Invalid(TransportError),
    /// The time of [`FollowLimits::total_timeout`] is over. The task goes on.
    GaveUp,
    /// The server has taken the cancellation, but the task did not end in the time of [`FollowLimits::cancel_time`]. It need
    /// not end.
    Unconfirmed,
}

/// Writes it on one line, without control characters.
impl fmt::Display for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskEnd::Completed(_) => "the task is completed",
            TaskEnd::Failed(_) => "the task failed",
            TaskEnd::Cancelled => "the task was cancelled",
            TaskEnd::Gone => "the server does not know the task, or not any more",
            TaskEnd::Refused { code, message } => {
                return write!(f, "the server answered with error {code}: {}", printable_line(message));
            }
            TaskEnd::Invalid(why) => return write!(f, "the server broke the rules of tasks: {why}"),
            TaskEnd::GaveUp => "the task took too long; it goes on at the server",
            TaskEnd::Unconfirmed => "the server was asked to cancel the task, and the task has not ended yet",
        })
    }
}

/// The state of a [`TaskFollower`]. It is assigned in this file alone, see [`TRANSITIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowState {
    /// It polls, and sends answers.
    Following,
    /// `tasks/cancel` is to be sent, or on its way.
    Cancelling,
    /// `tasks/cancel` was taken: it polls for the end.
    Confirming,
    Ended,
}

mcp_sansio::machine!(FollowState, TRANSITIONS: Following Cancelling Confirming Ended);

/// Every change of the state: from, to, cause.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Following", "Cancelling", "cancel"),
    ("Cancelling", "Confirming", "taken"),
    ("Following", "Ended", "end"),
    ("Cancelling", "Ended", "end"),
    ("Confirming", "Ended", "end"),
];

/// The request that was returned last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Get,
    Update,
    Cancel,
    /// In 2025-11-25: waits for the end of the task, and returns its result. The server asks meanwhile.
    Result,
}

impl Sent {
    const fn method(self) -> &'static str {
        match self {
            Sent::Get => "tasks/get",
            Sent::Update => "tasks/update",
            Sent::Cancel => "tasks/cancel",
            Sent::Result => "tasks/result",
        }
    }
}

/// An open question.
#[derive(Debug)]
struct Open {
    key: String,
    /// The answer, as JSON.
    answer: Option<Vec<u8>>,
    /// The answer was in a `tasks/update`.
    is_sent: bool,
}

/// Follows one task to its end: polls with `tasks/get`, sends answers with `tasks/update`, cancels with `tasks/cancel`.
///
/// A task of 2025-11-25 has its result from `tasks/result`, and its questions are requests of the server as any other: the
/// handler of the client answers them.
///
/// Ask [`next`](TaskFollower::next) what to do, do it, and take the [events](TaskFollower::event). It always ends: in the
/// time of its [limits](FollowLimits) at the latest. Each request may be sent again, for example after a loss.
#[derive(Debug)]
#[must_use]
pub struct TaskFollower {
    handle: TaskHandle,
    limits: FollowLimits,
    /// The trace of its requests.
    trace: TraceContext<'static>,
    state: FollowState,
    /// The first poll waits for the interval.
    is_new: bool,
    now: Millis,
    /// The time of the next request.
    due: Millis,
    /// The time to give up; `None` until the clock is known.
    end: Option<Millis>,
    /// The time that is left, while the clock is not known.
    left: Millis,
    /// The requests in a row that have failed.
    failures: u8,
    sent: Option<Sent>,
    params: Vec<u8>,
    seen: Option<(TaskStatus, Option<String>)>,
    is_notified: bool,
    /// In 2025-11-25: `tasks/result` is to be sent.
    wants_result: bool,
    questions: Vec<Open>,
    events: VecDeque<TaskEvent>,
}

impl TaskFollower {
    /// Follows a task that a call has just returned: it polls when the interval is over.
    pub fn new(handle: TaskHandle, limits: FollowLimits) -> Self {
        TaskFollower { is_new: true, ..TaskFollower::resume(handle, limits) }
    }

    /// Follows a task whose handle was kept: it polls at once.
    pub fn resume(handle: TaskHandle, limits: FollowLimits) -> Self {
        TaskFollower {
            handle,
            limits,
            trace: TraceContext::NONE,
            state: FollowState::Following,
            is_new: false,
            now: 0,
            due: 0,
            end: None,
            left: limits.total_timeout,
            failures: 0,
            sent: None,
            params: Vec::new(),
            seen: None,
            is_notified: false,
            wants_result: false,
            questions: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Sets the trace of its requests, that of the call which began the task
    /// ([trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta)). Default: none.
    pub fn trace_context(self, trace: TraceContext<'static>) -> Self {
        TaskFollower { trace, ..self }
    }

    /// Returns the handle. It changes with answers and times of the server: keep it again after each event.
    #[must_use]
    pub const fn handle(&self) -> &TaskHandle {
        &self.handle
    }

    /// Returns the next event. Take all of them before [`next`](TaskFollower::next).
    pub fn event(&mut self) -> Option<TaskEvent> {
        self.events.pop_front()
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Millis) -> TaskStep<'_> {
        self.now = now;
        let end = match self.end {
            Some(end) => end,
            None => {
                let end = now.saturating_add(self.left);
                (self.end, self.due) = (Some(end), if self.is_new { now.saturating_add(self.interval()) } else { now });
                end
            }
        };
        match self.state {
            FollowState::Following if now >= end => self.finish(TaskEnd::GaveUp),
            FollowState::Cancelling | FollowState::Confirming if now >= end => self.finish(TaskEnd::Unconfirmed),
            _ => {}
        }
        let has_answers = self.questions.iter().any(|question| question.answer.is_some());
        let sent = match self.state {
            FollowState::Ended => return TaskStep::End,
            _ if now < self.due => return TaskStep::Wait(self.due.min(end)),
            FollowState::Cancelling => Sent::Cancel,
            FollowState::Following | FollowState::Confirming if self.wants_result => Sent::Result,
            FollowState::Following if has_answers => Sent::Update,
            FollowState::Following | FollowState::Confirming => Sent::Get,
        };
        self.sent = Some(sent);
        if self.write_params(sent).is_err() {
            // Memory for any JSON is there; an answer that cannot be written was refused by `answer`.
            self.finish(TaskEnd::Invalid(TransportError::NoRoom));
            return TaskStep::End;
        }
        let params = Raw::parse(&self.params).ok();
        let time = self.limits.request_timeout.min(end - now).max(1);
        TaskStep::Send(Request::raw(sent.method(), params).timeout(time).trace_context(&self.trace))
    }

    fn write_params(&mut self, sent: Sent) -> Result<(), mcp_sansio::FullError> {
        let (id, questions) = (&self.handle.id, &mut self.questions);
        self.params = to_vec(|out| {
            let mut params = Object::open(out);
            params.text("taskId", id);
            if sent == Sent::Update {
                let out = params.key("inputResponses");
                let mut before: &[u8] = b"{";
                for question in questions {
                    let Some(answer) = &question.answer else { continue };
                    out.put(before);
                    out.string(&question.key);
                    out.put(b":");
                    out.put(answer);
                    question.is_sent = true;
                    before = b",";
                }
                out.put(b"}");
            }
            params.close()
        })?;
        Ok(())
    }

    /// Returns whether the answer to the last request matters still: after [`cancel`](TaskFollower::cancel) it does not.
    #[must_use]
    pub const fn awaits_answer(&self) -> bool {
        self.sent.is_some()
    }

    /// Takes the result of the last request. `engine` checks questions of the task against what the client declared.
    pub fn answered(&mut self, result: Raw<'_>, now: Millis, engine: &Client<'_>) {
        self.now = now;
        let sent = self.sent.take();
        match sent {
            // The task may go on, and be followed again with the handle.
            Some(Sent::Update) => self.note_taken(),
            _ if self.state == FollowState::Ended => {}
            Some(Sent::Get) => match DetailedTask::of(result) {
                Ok(task) => self.observe(&task, engine),
                Err(_) => self.finish(TaskEnd::Invalid(TransportError::Invalid)),
            },
            // In 2025-11-25 the answer is the task, which is cancelled before the server answers, and need not be kept.
            Some(Sent::Cancel) => match DetailedTask::of(result) {
                Ok(task) if self.handle.is_legacy && task.status == TaskStatus::Cancelled => {
                    self.observe(&task, engine)
                }
                _ => self.taken(),
            },
            Some(Sent::Result) => self.finish(TaskEnd::Completed(OwnedRaw::new(result))),
            None => {}
        }
    }

    /// Notes that the server has taken the answers that were sent.
    fn note_taken(&mut self) {
        self.failures = 0;
        let sent = self.questions.extract_if(.., |question| question.is_sent);
        self.handle.answered.extend(sent.map(|question| question.key));
        self.due = self.now.saturating_add(self.limits.shortest);
    }

    /// Takes an error that the server answered the last request with.
    pub fn refused(&mut self, code: i32, message: &str, now: Millis) {
        self.now = now;
        let sent = self.sent.take();
        // Servers of rmcp before 3.0 have other codes (2025-11-25).
        let is_unknown = code == code::INVALID_PARAMS || self.handle.is_legacy && code == code::RESOURCE_NOT_FOUND;
        let is_over = is_unknown || self.handle.is_legacy && code == code::INVALID_REQUEST;
        match (sent, code) {
            (None, _) => {}
            (Some(Sent::Get), _) if is_unknown => self.finish(TaskEnd::Gone),
            // Some servers do not cancel a task that has ended: a poll shows that.
            (Some(Sent::Cancel), _) if is_over => self.taken(),
            (Some(Sent::Get | Sent::Cancel), code::INTERNAL) if self.fails() => {}
            (Some(Sent::Result), _) => {
                let error = to_vec(|out| {
                    let mut error = Object::open(out);
                    error.key("code").write(|out| write::signed(out, code.into()));
                    error.text("message", message);
                    error.close()
                });
                let error = error.as_deref().ok().and_then(|error| Raw::parse(error).ok());
                self.finish(error.map_or(INVALID, |error| TaskEnd::Failed(OwnedRaw::new(error))));
            }
            _ => self.finish(TaskEnd::Refused { code, message: message.into() }),
        }
    }

    /// Notes that the last request has no answer. Returns `true` if it is sent again later, and `false` after too many
    /// failures in a row: stop, and call [`reconnected`](TaskFollower::reconnected) if the connection is good again.
    #[must_use]
    pub fn lost(&mut self, now: Millis) -> bool {
        self.now = now;
        let waited = self.sent.take() == Some(Sent::Result);
        if waited && self.seen.as_ref().is_some_and(|(status, _)| !status.is_terminal()) {
            // The task did not end in the time of one request. That is no failure.
            (self.wants_result, self.due) = (false, now.saturating_add(self.interval()));
            return true;
        }
        self.fails()
    }

    /// Counts a failure, and waits longer after each one.
    fn fails(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        let longer = self.interval().saturating_mul(1 << self.failures.min(16)).min(self.limits.longest);
        self.due = self.now.saturating_add(longer);
        self.failures <= self.limits.failures
    }

    /// Begins again with the clock of another connection, and polls at once. The time that is left, the questions and the
    /// answers stay.
    pub fn reconnected(&mut self) {
        if let Some(end) = self.end.take() {
            self.left = end.saturating_sub(self.now);
        }
        (self.is_new, self.failures, self.sent, self.is_notified) = (false, 0, None, false);
        self.wants_result = false;
    }

    /// Takes the params of a `notifications/tasks`, which come to listens with `taskIds`, or of a `notifications/tasks/status`
    /// (2025-11-25). Those of other tasks are ignored. The answer to a `tasks/get` under way may be older, and does not matter
    /// any more.
    pub fn notified(&mut self, params: Raw<'_>, now: Millis, engine: &Client<'_>) {
        self.now = now;
        match DetailedTask::of(params) {
            Ok(task) if task.id.eq_str(&self.handle.id) && self.state != FollowState::Ended => {
                self.sent = self.sent.filter(|sent| *sent != Sent::Get);
                self.observe(&task, engine);
            }
            _ => {}
        }
    }

    /// Sets whether notifications come: if they do, it polls with the longest interval only. Default: `false`.
    pub fn set_notified(&mut self, is_notified: bool) {
        self.is_notified = is_notified;
    }

    /// Answers a question. The answer is sent next.
    ///
    /// # Errors
    /// [`SendError::Stale`] if the question is not open; [`SendError::FullNever`] if the answer cannot be written as JSON.
    pub fn answer(&mut self, key: &str, answer: &ClientResult<'_>) -> Result<(), SendError> {
        let question = self.questions.iter_mut().find(|open| open.key == key && open.answer.is_none());
        let question = question.ok_or(SendError::Stale)?;
        // The methods of the extension are those of the latest revision.
        let bytes = to_vec(|out| answer.write(out, Revision::LATEST)).map_err(|_| SendError::FullNever)?;
        question.answer = Some(bytes);
        self.due = 0;
        Ok(())
    }

    /// Asks the server to cancel the task, then polls for its end. The work may end in another way before.
    pub fn cancel(&mut self) {
        if self.state == FollowState::Following {
            self.state.enter("cancel", FollowState::Cancelling);
            self.questions.clear();
            (self.due, self.is_new, self.failures) = (0, false, 0);
            (self.sent, self.wants_result) = (None, false);
            let left = self.left.min(self.limits.cancel_time);
            (self.left, self.end) = (left, self.end.map(|end| end.min(self.now.saturating_add(left))));
        }
    }

    /// Notes that the server has taken the cancellation.
    fn taken(&mut self) {
        if self.state == FollowState::Cancelling {
            self.state.enter("taken", FollowState::Confirming);
            (self.due, self.failures) = (self.now, 0);
        }
    }

    /// Takes the present state of the task.
    fn observe(&mut self, task: &DetailedTask<'_>, engine: &Client<'_>) {
        if !task.id.eq_str(&self.handle.id) {
            return self.finish(TaskEnd::Invalid(TransportError::Invalid));
        }
        self.failures = 0;
        self.handle.note(task);
        let seen = (task.status, task.status_message().map(|message| message.to_string()));
        if self.seen.as_ref() != Some(&seen) {
            let event = TaskEvent::Status { status: seen.0, message: seen.1.clone() };
            self.seen = Some(seen);
            // The latest is enough, if the application has not taken the one before.
            match self.events.back_mut() {
                Some(last @ TaskEvent::Status { .. }) => *last = event,
                _ => self.events.push_back(event),
            }
        }
        self.due = self.now.saturating_add(if self.is_notified { self.limits.longest } else { self.interval() });
        self.wants_result = self.handle.is_legacy
            && match task.status {
                TaskStatus::InputRequired => self.state == FollowState::Following,
                TaskStatus::Completed | TaskStatus::Failed => true,
                TaskStatus::Working | TaskStatus::Cancelled => false,
            };
        if self.wants_result {
            self.due = self.now;
            return;
        }
        let end = match task.status {
            // Its questions are no part of the task.
            TaskStatus::InputRequired if self.handle.is_legacy => return,
            TaskStatus::Working => return self.withdraw(|_| false),
            TaskStatus::InputRequired => match self.ask(task, engine) {
                Ok(()) => return,
                Err(why) => TaskEnd::Invalid(why),
            },
            TaskStatus::Completed => task.result().map_or(INVALID, |result| TaskEnd::Completed(OwnedRaw::new(result))),
            TaskStatus::Failed => task.error().map_or(INVALID, |error| TaskEnd::Failed(OwnedRaw::new(error))),
            TaskStatus::Cancelled => TaskEnd::Cancelled,
        };
        self.finish(end);
    }

    /// Takes the questions that are not known yet.
    fn ask(&mut self, task: &DetailedTask<'_>, engine: &Client<'_>) -> Result<(), TransportError> {
        let requests = task.input_requests().ok_or(TransportError::Invalid)?;
        if self.state != FollowState::Following {
            return Ok(());
        }
        self.withdraw(|key| requests.members().any(|(other, _)| other.eq_str(key)));
        for (index, (key, request)) in requests.members().enumerate() {
            // A key that two requests have would make the answer ambiguous.
            if index >= self.limits.questions || requests.members().take(index).any(|(other, _)| other.same(&key)) {
                return Err(TransportError::Invalid);
            }
            let key = key.to_string();
            if self.handle.answered.contains(&key) || self.questions.iter().any(|open| open.key == key) {
                continue;
            }
            if self.handle.answered.len() + self.questions.len() >= self.limits.questions {
                return Err(TransportError::TooManyRounds);
            }
            let (kind, params) = engine.input_request(request)?;
            self.questions.push(Open { key: key.clone(), answer: None, is_sent: false });
            self.events.push_back(TaskEvent::Asked(TaskQuestion { key, kind, params: OwnedRaw::new(params) }));
        }
        Ok(())
    }

    /// Drops the questions that are not open any more. One whose answer was sent is answered, even if the answer to the
    /// `tasks/update` is still to come or was lost.
    fn withdraw(&mut self, is_open: impl Fn(&str) -> bool) {
        for question in self.questions.extract_if(.., |question| !is_open(&question.key)) {
            let untaken = |event: &TaskEvent| matches!(event, TaskEvent::Asked(asked) if asked.key == question.key);
            if question.is_sent {
                self.handle.answered.push(question.key);
            } else if let Some(at) = self.events.iter().position(untaken) {
                self.events.remove(at);
            } else {
                self.events.push_back(TaskEvent::Withdrawn(question.key));
            }
        }
    }

    /// Returns the time between two polls.
    fn interval(&self) -> Millis {
        self.handle.poll_interval.unwrap_or(UNSUGGESTED).max(self.limits.shortest).min(self.limits.longest)
    }

    fn finish(&mut self, end: TaskEnd) {
        if self.state != FollowState::Ended {
            self.state.enter("end", FollowState::Ended);
            // Answers may be on their way.
            self.questions.retain(|question| question.is_sent && self.sent == Some(Sent::Update));
            self.events.push_back(TaskEvent::Ended(end));
        }
    }
}

const INVALID: TaskEnd = TaskEnd::Invalid(TransportError::Invalid);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transition_leads_where_the_table_says() {
        let states = [FollowState::Following, FollowState::Cancelling, FollowState::Confirming, FollowState::Ended];
        for (from, to, cause) in TRANSITIONS {
            let state = states.into_iter().find(|state| state.name() == *from).unwrap();
            let mut task = TaskFollower::resume(TaskHandle::new("t", Revision::LATEST), FollowLimits::DEFAULT);
            task.state = state;
            match *cause {
                "cancel" => task.cancel(),
                "taken" => task.taken(),
                "end" => task.finish(TaskEnd::Cancelled),
                other => panic!("{other}"),
            }
            assert_eq!(task.state.name(), *to, "{from}, {cause}");
        }
        // In other states `cancel` does nothing.
        for state in [FollowState::Cancelling, FollowState::Confirming, FollowState::Ended] {
            let mut task = TaskFollower::resume(TaskHandle::new("t", Revision::LATEST), FollowLimits::DEFAULT);
            task.state = state;
            task.cancel();
            assert_eq!(task.state, state);
        }
    }
}
