//! Tasks for clients (feature `alloc`): a `tools/call` may come back with a task instead of its result.
//!
//! 1. The [`ClientInfo`](mcp_sansio::client::ClientInfo) declares the extension: [`DECLARATION`].
//! 2. [`TaskHandle::of`] finds the task in the result of a call. Keep [its text](TaskHandle): a program that starts again
//!    follows the task from there.
//! 3. A [`TaskFollower`] says which request to send and when, and takes the answers: it polls, sends the answers to questions,
//!    and cancels. The clients of `mcp_sansio_blocking` and `mcp_sansio_smol` run it with `follow` (feature `client`).
//!
//! ```
//! use mcp_sansio::client::{Client, ClientInfo};
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::revision::Revision;
//! use mcp_sansio_extensions::tasks::TaskStatus;
//! use mcp_sansio_extensions::tasks::client::{DECLARATION, RESULT_TYPES, FollowLimits, TaskEnd, TaskEvent, TaskFollower, TaskHandle, TaskStep};
//!
//! let info = ClientInfo::new("demo", "1.0").extensions(DECLARATION, RESULT_TYPES);
//! let mut engine = Client::growing(&info);
//! engine.connect_as(Revision::V2026_07_28);
//! let result = Raw::constant(
//!     r#"{"resultType":"task","taskId":"786512e2","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":60000,
//!         "pollIntervalMs":5000}"#,
//! );
//! let handle = TaskHandle::of(result)?.expect("an ordinary result");
//! let kept = handle.to_string(); // to a file
//! assert_eq!(kept.parse(), Ok(handle.clone()));
//!
//! let mut task = TaskFollower::new(handle, FollowLimits::DEFAULT);
//! assert!(matches!(task.next(0), TaskStep::Wait(5000)));
//! let TaskStep::Send(request) = task.next(5000) else { panic!() };
//! assert_eq!(request.name, "tasks/get");
//! let got = Raw::constant(
//!     r#"{"resultType":"complete","taskId":"786512e2","status":"completed","result":{"content":[]}}"#,
//! );
//! task.answered(got, 5010, &engine);
//! assert!(matches!(task.event(), Some(TaskEvent::Status { status: TaskStatus::Completed, .. })));
//! let Some(TaskEvent::Ended(TaskEnd::Completed(result))) = task.event() else { panic!() };
//! assert_eq!(result.raw().as_str(), r#"{"content":[]}"#);
//! # Ok::<(), mcp_sansio::client::views::ViewError>(())
//! ```

mod follower;
pub(crate) mod handle;
mod task;

pub use follower::{FollowLimits, TaskEnd, TaskEvent, TaskFollower, TaskQuestion, TaskStep};
pub use handle::{ParseTaskHandleError, TaskHandle};
pub use task::DetailedTask;

use mcp_sansio::json::Raw;

/// The extension with its settings, for [`ClientInfo::extensions`](mcp_sansio::client::ClientInfo::extensions). A client
/// with other extensions too writes one object with all of them.
pub const DECLARATION: Raw<'static> = Raw::constant(r#"{"io.modelcontextprotocol/tasks":{}}"#);

/// The types of its results, for [`ClientInfo::extensions`](mcp_sansio::client::ClientInfo::extensions).
pub const RESULT_TYPES: &[&str] = &["task"];
