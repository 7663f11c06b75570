//! A task as messages show it.

use mcp_sansio::client::views::{View, ViewError};
use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio::server::Millis;

use crate::tasks::machine::TaskStatus;

const STATUSES: [TaskStatus; 5] =
    [TaskStatus::Working, TaskStatus::InputRequired, TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled];

/// A task in a message: the result of `tasks/get`, the params of `notifications/tasks`, or the `CreateTaskResult` of a call.
/// The last one has no result, error or requests, whatever its status is.
#[derive(Clone, Copy, Debug)]
pub struct DetailedTask<'a> {
    raw: Raw<'a>,
    /// `taskId`
    pub id: Text<'a>,
    /// `status`
    pub status: TaskStatus,
}

impl<'a> View<'a> for DetailedTask<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
        if raw.kind() != JsonKind::Object {
            return Err(ViewError::Shape(JsonKind::Object));
        }
        let text = |name| {
            let member = raw.get(name).ok_or(ViewError::Missing(name))?;
            member.text().ok_or(ViewError::Type(name, JsonKind::String))
        };
        let (id, status) = (text("taskId")?, text("status")?);
        if id.raw().is_empty() {
            return Err(ViewError::Value("taskId"));
        }
        let status = STATUSES.into_iter().find(|known| status.eq_str(known.name()));
        Ok(DetailedTask { raw, id, status: status.ok_or(ViewError::Value("status"))? })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

impl<'a> DetailedTask<'a> {
    /// Returns `statusMessage`: untrusted text of the server, for users.
    #[must_use]
    pub fn status_message(&self) -> Option<Text<'a>> {
        self.raw.get("statusMessage")?.text()
    }

    /// Returns `createdAt`, a point in time as ISO 8601.
    #[must_use]
    pub fn created_at(&self) -> Option<Text<'a>> {
        self.raw.get("createdAt")?.text()
    }

    /// Returns `lastUpdatedAt`, a point in time as ISO 8601.
    #[must_use]
    pub fn last_updated_at(&self) -> Option<Text<'a>> {
        self.raw.get("lastUpdatedAt")?.text()
    }

    /// Returns `ttlMs` (in 2025-11-25 `ttl`): the time in milliseconds from its creation for which the server keeps the task.
    /// `None`: without limit.
    #[doc(alias = "ttlMs")]
    #[must_use]
    pub fn ttl(&self) -> Option<Millis> {
        self.raw.get("ttlMs").or_else(|| self.raw.get("ttl"))?.u64()
    }

    /// Returns `pollIntervalMs` (in 2025-11-25 `pollInterval`): the time in milliseconds between two polls that the server
    /// suggests.
    #[doc(alias = "pollIntervalMs")]
    #[must_use]
    pub fn poll_interval(&self) -> Option<Millis> {
        self.raw.get("pollIntervalMs").or_else(|| self.raw.get("pollInterval"))?.u64()
    }

    /// Returns `inputRequests`: the open questions of a task that is `input_required`, an object.
    #[must_use]
    pub fn input_requests(&self) -> Option<Raw<'a>> {
        self.object("inputRequests", TaskStatus::InputRequired)
    }

    /// Returns `result` of a completed task: what the call would have returned.
    #[must_use]
    pub fn result(&self) -> Option<Raw<'a>> {
        self.object("result", TaskStatus::Completed)
    }

    /// Returns `error` of a failed task; [`ErrorObject::read`](mcp_sansio::client::ErrorObject::read) reads it.
    #[must_use]
    pub fn error(&self) -> Option<Raw<'a>> {
        self.object("error", TaskStatus::Failed)
    }

    fn object(&self, name: &str, status: TaskStatus) -> Option<Raw<'a>> {
        self.raw.get(name).filter(|value| self.status == status && value.kind() == JsonKind::Object)
    }
}
