//! The part of a task that a client keeps.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use mcp_sansio::client::views::{View, ViewError};
use mcp_sansio::json::{JsonKind, Object, Raw};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Writer, to_vec};

use super::task::DetailedTask;
use crate::shared::array;

/// The revision of a handle that is kept, if it is not the latest.
const LEGACY: &str = "2025-11-25";

/// A task to come back to: its id, what the server said about its times, and the keys of the questions that are answered.
///
/// Its text (`to_string`, `parse`) can be kept, so that a program that starts again [resumes](super::TaskFollower::resume).
/// Keep the address of the server beside it: no other server knows the task. Keep it as secret as a password: at a server
/// without authorization, the id is enough to get the result.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskHandle {
    /// `taskId`
    pub id: String,
    /// The task is one of 2025-11-25.
    pub(super) is_legacy: bool,
    /// The last `ttlMs`: the time in milliseconds from its creation for which the server keeps the task. `None`: without limit, or
    /// not known.
    #[doc(alias = "ttlMs")]
    pub ttl: Option<Millis>,
    /// The last `pollIntervalMs` that the server suggested, in milliseconds.
    #[doc(alias = "pollIntervalMs")]
    pub poll_interval: Option<Millis>,
    pub(super) answered: Vec<String>,
}

impl TaskHandle {
    /// Makes the handle of a task whose id is known, at a server of this revision.
    #[must_use]
    pub fn new(id: impl Into<String>, revision: Revision) -> Self {
        let is_legacy = !revision.is_modern();
        TaskHandle { id: id.into(), is_legacy, ttl: None, poll_interval: None, answered: Vec::new() }
    }

    /// Reads the result of a `tools/call`: `None` if it is an ordinary result, not a task. The results of other requests are
    /// never tasks. In 2025-11-25 only a call with a member `task` in its params gets a task.
    ///
    /// # Errors
    /// [`ViewError`] if its `resultType` is `task` or it has a member `task` in place of a content, and it is not a valid
    /// `CreateTaskResult`.
    pub fn of(result: Raw<'_>) -> Result<Option<Self>, ViewError> {
        let kind = result.get("resultType").map(|kind| kind.text());
        let legacy = result.get("task").filter(|_| kind.is_none() && result.get("content").is_none());
        let is_task = kind.flatten().is_some_and(|kind| kind.eq_str("task"));
        let Some(task) = Some(result).filter(|_| is_task).or(legacy) else { return Ok(None) };
        let task = DetailedTask::of(task)?;
        let mut handle = TaskHandle::new(task.id.to_string(), Revision::LATEST);
        handle.is_legacy = legacy.is_some();
        handle.note(&task);
        Ok(Some(handle))
    }

    /// Notes the times of a task. They may change.
    pub(super) fn note(&mut self, task: &DetailedTask<'_>) {
        (self.ttl, self.poll_interval) = (task.ttl(), task.poll_interval());
    }

    fn write(&self, out: &mut Writer<'_>) {
        let mut object = Object::open(out);
        object.text("taskId", &self.id);
        object.text_if("revision", self.is_legacy.then_some(LEGACY));
        for (name, time) in [("ttlMs", self.ttl), ("pollIntervalMs", self.poll_interval)] {
            if let Some(time) = time {
                object.number(name, time);
            }
        }
        if !self.answered.is_empty() {
            array(object.key("answered"), self.answered.iter(), |key, out| out.string(key));
        }
        object.close()
    }
}

// Writes the handle without the id, which may be a secret.
mcp_sansio::debug_fields!(impl for TaskHandle { ttl, poll_interval });

/// Writes one line of JSON.
impl fmt::Display for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = to_vec(|out| self.write(out)).map_err(|_| fmt::Error)?;
        f.write_str(core::str::from_utf8(&bytes).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for TaskHandle {
    type Err = ParseTaskHandleError;

    fn from_str(text: &str) -> Result<Self, ParseTaskHandleError> {
        let raw = Raw::parse(text.as_bytes()).map_err(|_| ParseTaskHandleError)?;
        let id = raw.get("taskId").and_then(|id| id.text()).filter(|id| !id.raw().is_empty());
        let number = |name| raw.get(name).map(|time| time.u64().ok_or(ParseTaskHandleError)).transpose();
        let answered = raw.get("answered");
        if answered.is_some_and(|keys| keys.kind() != JsonKind::Array) {
            return Err(ParseTaskHandleError);
        }
        let keys = answered.iter().flat_map(Raw::items).map(|key| Some(key.text()?.to_string()));
        let revision = raw.get("revision");
        if revision.is_some_and(|revision| !revision.text().is_some_and(|date| date.eq_str(LEGACY))) {
            return Err(ParseTaskHandleError);
        }
        Ok(TaskHandle {
            is_legacy: revision.is_some(),
            id: id.ok_or(ParseTaskHandleError)?.to_string(),
            ttl: number("ttlMs")?,
            poll_interval: number("pollIntervalMs")?,
            answered: keys.collect::<Option<_>>().ok_or(ParseTaskHandleError)?,
        })
    }
}

/// The text is not that of a [`TaskHandle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct ParseTaskHandleError;

impl fmt::Display for ParseTaskHandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not the text of a task")
    }
}

impl core::error::Error for ParseTaskHandleError {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn a_handle_is_a_text() {
        let mut handle = TaskHandle::new("a\"\n\u{e9}", Revision::LATEST);
        assert_eq!(handle.to_string(), "{\"taskId\":\"a\\\"\\n\u{e9}\"}");
        (handle.ttl, handle.poll_interval) = (Some(60_000), Some(0));
        handle.answered = ["q\\1".into(), String::new()].into();
        let text = handle.to_string();
        assert!(text.ends_with(r#","ttlMs":60000,"pollIntervalMs":0,"answered":["q\\1",""]}"#), "{text}");
        assert_eq!(text.parse(), Ok(handle.clone()));
        assert!(!format!("{handle:?}").contains('"'), "{handle:?}");
        let old = TaskHandle::new("a", Revision::V2025_11_25);
        assert_eq!(old.to_string(), r#"{"taskId":"a","revision":"2025-11-25"}"#);
        assert_eq!(old.to_string().parse(), Ok(old));
        for wrong in [
            "",
            "7",
            "{}",
            r#"{"taskId":7}"#,
            r#"{"taskId":""}"#,
            r#"{"taskId":"a","revision":"2024-11-05"}"#,
            r#"{"taskId":"a","ttlMs":"1"}"#,
            r#"{"taskId":"a","answered":{}}"#,
            r#"{"taskId":"a","answered":[7]}"#,
        ] {
            assert_eq!(wrong.parse::<TaskHandle>(), Err(ParseTaskHandleError), "{wrong}");
        }
    }

    #[test]
    fn only_a_task_is_a_task() {
        let of = |json: &'static str| TaskHandle::of(Raw::parse(json.as_bytes()).unwrap());
        assert_eq!(of(r#"{"content":[],"taskId":"a","status":"working"}"#), Ok(None));
        assert_eq!(of(r#"{"resultType":"complete","taskId":"a","status":"working"}"#), Ok(None));
        let handle = of(r#"{"resultType":"task","taskId":"a","status":"working","ttlMs":null,"pollIntervalMs":7}"#);
        let handle = handle.unwrap().unwrap();
        assert_eq!((handle.id.as_str(), handle.ttl, handle.poll_interval), ("a", None, Some(7)));
        let legacy = of(r#"{"task":{"taskId":"a","status":"working","ttl":9,"pollInterval":8}}"#).unwrap().unwrap();
        assert_eq!((legacy.is_legacy, legacy.ttl, legacy.poll_interval), (true, Some(9), Some(8)));
        assert_eq!(of(r#"{"content":[],"task":{"taskId":"a","status":"working"}}"#), Ok(None));
        for (json, error) in [
            (r#"{"task":{"taskId":"a"}}"#, ViewError::Missing("status")),
            (r#"{"resultType":"task","status":"working"}"#, ViewError::Missing("taskId")),
            (r#"{"resultType":"task","taskId":"","status":"working"}"#, ViewError::Value("taskId")),
            (r#"{"resultType":"task","taskId":"a","status":7}"#, ViewError::Type("status", JsonKind::String)),
            (r#"{"resultType":"task","taskId":"a","status":"done"}"#, ViewError::Value("status")),
        ] {
            assert_eq!(of(json), Err(error), "{json}");
        }
    }
}
