//! The outcomes of requests about tasks, and notifications.

use mcp_sansio::client::{Client, SendError, TransportError};
use mcp_sansio::json::{OwnedRaw, Raw, Text};
use mcp_sansio::server::Millis;
use mcp_sansio_tasks::client::TaskFollower;

use crate::{ClientError, OwnedResult};

/// Gives the outcome of the request that a task has asked for to the task.
///
/// # Errors
/// The error of the request, if sending it again later cannot help: the connection is lost, or too many requests in a row
/// have failed. The task can go on after [`TaskFollower::reconnected`].
pub fn take_task_outcome(
    task: &mut TaskFollower,
    outcome: Result<OwnedResult, ClientError>,
    now: Millis,
    engine: &Client<'_>,
) -> Result<(), ClientError> {
    match outcome {
        Ok(result) => task.answered(result.raw(), now, engine),
        Err(ClientError::Server(error)) => task.refused(error.code, &error.message, now),
        Err(error) => {
            let again = task.lost(now);
            if !again || !engine.is_connected() || !may_pass(&error) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Returns whether the next request may have more luck.
const fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Lost { why, .. } => matches!(
            why,
            TransportError::TimedOut
                | TransportError::Closed
                | TransportError::Unreachable
                | TransportError::Broken
                | TransportError::Status(408 | 429 | 500..=599)
        ),
        ClientError::NotSent(SendError::FullNow | SendError::Busy) => true,
        _ => false,
    }
}

/// The last notification about a task that is followed.
#[derive(Debug, Default)]
pub struct TaskNotice {
    latest: Option<OwnedRaw>,
}

impl TaskNotice {
    /// Returns the params of a notification about a task, and the id of the task; `None` for any other notification.
    #[must_use]
    pub fn of<'a>(method: &Text<'_>, params: Option<Raw<'a>>) -> Option<(Text<'a>, Raw<'a>)> {
        let is_meant = ["notifications/tasks", "notifications/tasks/status"].iter().any(|name| method.eq_str(name));
        let params = params.filter(|_| is_meant)?;
        Some((params.get("taskId")?.text()?, params))
    }

    /// Keeps a copy of the params. Each has the whole state, so the latest is enough.
    pub fn keep(&mut self, params: Raw<'_>) {
        self.latest = Some(params.into());
    }

    /// Returns whether there are any.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.latest.is_some()
    }

    /// Gives them to the task. Returns whether there were any.
    pub fn give(&mut self, task: &mut TaskFollower, now: Millis, engine: &Client<'_>) -> bool {
        let Some(params) = self.latest.take() else { return false };
        task.notified(params.raw(), now, engine);
        true
    }
}
