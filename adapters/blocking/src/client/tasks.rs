//! Follows a task of the server.

use std::task::Poll;
use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientHandler, PendingId, SendError};
use mcp_sansio_extensions::tasks::client::{TaskEvent, TaskFollower, TaskStep};
use mcp_sansio_host::take_task_outcome;

use super::{Client, ClientError, Transport};

impl<'m, T: Transport<'m>, H: ClientHandler> Client<'m, T, H> {
    /// Follows a [task](https://modelcontextprotocol.io/seps/2663-tasks-extension) until its next event: sends its requests
    /// when they are due, and waits in between. Returns `None` if there is no event in `at_most`; the next call continues.
    /// Requests of the server go to the handler meanwhile. The questions of a task of 2025-11-25 are such requests.
    ///
    /// A `notifications/tasks` about the task counts as a poll: to get them, [listen](Client::listen) to the topic `taskIds` with
    /// its id, and poll rarely with [`FollowLimits::poll_interval`](mcp_sansio_extensions::tasks::client::FollowLimits::poll_interval).
    ///
    /// The info must [declare](mcp_sansio_extensions::tasks::client::DECLARATION) tasks.
    ///
    /// ```no_run
    /// # use std::process::Command;
    /// # use std::time::Duration;
    /// # use mcp_sansio::client::{ClientInfo, Request};
    /// # use mcp_sansio::client::result::ClientResult;
    /// # use mcp_sansio_blocking::client::{Child, Client, Ignore};
    /// use mcp_sansio_extensions::tasks::client::{DECLARATION, RESULT_TYPES, FollowLimits, TaskEvent, TaskFollower, TaskHandle};
    ///
    /// let info = ClientInfo::new("demo", "1.0").extensions(DECLARATION, RESULT_TYPES);
    /// let mut client = Client::new(Child::spawn(Command::new("builder"), &info)?, Ignore);
    /// client.connect()?;
    /// let result = client.request(&Request::call("build"))?;
    /// let Some(handle) = TaskHandle::of(result.raw())? else { return Ok(()) }; // an ordinary result
    /// let mut task = TaskFollower::new(handle, FollowLimits::DEFAULT.total_timeout(600_000));
    /// let end = loop {
    ///     std::fs::write("task.json", task.handle().to_string())?; // for the next start
    ///     match client.follow(&mut task, Duration::from_secs(60))? {
    ///         Some(TaskEvent::Asked(question)) => task.answer(&question.key, &ClientResult::decline())?,
    ///         Some(TaskEvent::Ended(end)) => break end,
    ///         other => println!("{other:?}"),
    ///     }
    /// };
    /// println!("{end}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`request`](Client::request), when the connection is lost or too many requests in a row have failed. The task is not
    /// lost: call [`TaskFollower::reconnected`], and follow it with another client of the same server.
    /// [`SendError::Stale`] after its last event.
    pub fn follow(&mut self, task: &mut TaskFollower, at_most: Duration) -> Result<Option<TaskEvent>, ClientError> {
        let end = Instant::now() + at_most;
        self.outcomes.followed.begin(&task.handle().id);
        loop {
            if let Some(event) = task.event() {
                if matches!(event, TaskEvent::Ended(_)) {
                    self.outcomes.followed.end(&task.handle().id);
                }
                return Ok(Some(event));
            }
            let now = self.now();
            if let Poll::Ready(params) = self.outcomes.followed.poll(&task.handle().id, None, &mut Vec::new()) {
                task.notified(params.raw(), now, self.engine());
                continue;
            }
            let outcome = match self.under_way(task) {
                Some(token) => self.poll(token),
                None => match task.next(now) {
                    TaskStep::Send(request) => match self.send(&request) {
                        Ok(token) => {
                            self.following = Some((task.handle().id.clone(), token));
                            continue;
                        }
                        Err(error) => Some(Err(error)),
                    },
                    TaskStep::Wait(until) => {
                        let left = end.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            return Ok(None);
                        }
                        self.turn(left.min(Duration::from_millis(until.saturating_sub(now))))?;
                        continue;
                    }
                    TaskStep::End => {
                        self.outcomes.followed.end(&task.handle().id);
                        return task.event().map(Some).ok_or(SendError::Stale.into());
                    }
                },
            };
            if let Some(outcome) = outcome {
                take_task_outcome(task, outcome, self.now(), self.engine())?;
                continue;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.turn(left)?;
        }
    }

    /// Returns the request of this task that is under way. Cancels one whose answer does not matter any more.
    fn under_way(&mut self, task: &TaskFollower) -> Option<PendingId> {
        let (id, token) = self.following.take()?;
        if id == task.handle().id && task.awaits_answer() {
            self.following = Some((id, token));
            return Some(token);
        }
        // It is over already, or the connection has ended.
        let _ = self.cancel(token, None);
        None
    }
}
