//! The [tasks extension](https://modelcontextprotocol.io/seps/2663-tasks-extension) for servers
//! (`io.modelcontextprotocol/tasks`, 2026-07-28): a `tools/call` is answered with a task at once, and the client fetches the
//! result later. It is made with the contract for extensions of `mcp-sansio` alone, without I/O, and without an allocator.
//!
//! 1. The state of the program has [`Tasks`], the table of its tasks in lent memory, and gives it out by [`HasTasks`].
//! 2. The service offers [`extension`].
//! 3. A handler calls [`begin`]: its answer becomes a task. It keeps the [`TaskToken`].
//! 4. The loop around does the work, and calls [`complete`] with an answer as a handler writes it. In between it may
//!    [ask](Tasks::ask) the client, and looks for [answers](Tasks::next_answered) and [cancellations](Tasks::next_cancelled).
//! 5. After each turn it publishes [changes](Tasks::next_change), for clients that listen to `taskIds`.
//!
//! ```
//! use mcp_sansio::server::ServerChange;
//! use mcp_sansio::service::{Call, Extension, HandlerResult, Service, Tool};
//! use mcp_sansio_host::testing::Conversation;
//! use mcp_sansio_extensions::tasks::{HasTasks, TaskOptions, TaskSlot, TaskToken, Tasks, begin, complete, extension};
//!
//! struct Device {
//!     tasks: Tasks<'static>,
//!     flashing: Option<TaskToken>,
//! }
//!
//! impl HasTasks for Device {
//!     fn tasks(&self) -> &Tasks<'static> {
//!         &self.tasks
//!     }
//!     fn tasks_mut(&mut self) -> &mut Tasks<'static> {
//!         &mut self.tasks
//!     }
//! }
//!
//! fn flash(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
//!     let random = [7; 16]; // from a generator of secure random bytes
//!     let options = TaskOptions::new(random).ttl(600_000).poll_interval(1_000);
//!     let (token, done) = begin(device, call, &options)?;
//!     device.flashing = Some(token);
//!     Ok(done)
//! }
//!
//! static TOOLS: [Tool<Device>; 1] = [Tool::new("flash", "Flashes a firmware", flash)];
//! static EXTENSIONS: [Extension<Device>; 1] = [extension()];
//! const SERVICE: Service<'static, Device> = Service::new("device", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
//!
//! # fn meta() -> &'static str {
//! #     r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#
//! # }
//! let slots = Box::leak(Box::new([TaskSlot::FREE; 2])); // two tasks, and 2 KiB for all their results
//! let tasks = Tasks::new(&mut slots[..], Box::leak(Box::new([0; 2048])));
//! let mut conversation = Conversation::new(&SERVICE, Device { tasks, flashing: None });
//! let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"flash",{}}}}}"#, meta());
//! assert!(conversation.say(&call)[0].contains(r#""resultType":"task","taskId":"07070707"#));
//!
//! // The loop: the work is done.
//! let token = conversation.state().flashing.take().unwrap();
//! complete(&SERVICE, conversation.state(), token, 9_000, |_, call| call.text("flashed"))?;
//! while let Some(id) = conversation.state().tasks.next_change() {
//!     conversation.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
//! }
//! let id = "07".repeat(16);
//! let get = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{{"taskId":"{id}",{}}}}}"#, meta());
//! let got = conversation.say(&get).remove(0);
//! assert!(got.contains(r#""status":"completed""#) && got.contains(r#""text":"flashed""#));
//! # Ok::<(), mcp_sansio_extensions::tasks::TaskError>(())
//! ```
//!
//! A task belongs to the user that called the tool: to others it does not exist. Without authorization all clients are one
//! user, and the id is the only protection: 128 bits from the random bytes of the caller.
//!
//! A task is kept until its [`ttl`](TaskOptions::ttl) is over, also when it has ended; it then does not exist any more, and a
//! call for its token fails. When all slots are taken, [`begin`] fails, and the call is answered with error -32603.
//!
//! Clients follow a task with the module `client` (feature `alloc`). In 2025-11-25 a client may have tasks too: `receiver`.
//!
//! # Clients of 2025-11-25
//!
//! In 2025-11-25 [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks) are a part of the protocol
//! itself. With [`HasTasks::LEGACY`] the same handlers serve these clients too:
//!
//! - The program says which tools have tasks, by [`task_support`]. The client decides for each call, by `task` in its params: a
//!   handler that can also answer at once asks [`wants_task`].
//! - `tasks/get`, `tasks/list` and `tasks/cancel` answer at once. `tasks/result` waits until the task has ended, and meanwhile
//!   asks the [questions](Tasks::ask) of the task. The loop resumes it when [`Tasks::next_resumable`] returns it: after each turn,
//!   and after each call of [`complete`] or of a method of [`Tasks`].
//! - A request that waits is kept in the memory for questions, see [`suspend`](mcp_sansio::service::RequestContext::suspend);
//!   without such memory `tasks/result` of a task that runs is error -32603. At most four wait for one task: a fifth takes the
//!   place of the oldest, which gets error -32603.
//! - Without authorization a task belongs to the connection or session that created it: to others it does not exist.
//! - Clients of 2025-11-25 do not see tasks of 2026-07-28, and the other way round.
//!
//! `examples/brew.rs` is a server for both, with a loop of its own.

#[cfg(feature = "alloc")]
pub mod client;
#[cfg(feature = "alloc")]
mod last_state;
mod legacy;
mod machine;
mod methods;
mod place;
#[cfg(feature = "alloc")]
pub mod receiver;
mod record_bytes;
mod response;
mod store;
mod waiters;

pub use legacy::{TaskSupport, task_support};
pub use machine::{TaskId, TaskSlot, TaskStatus};
pub use methods::extension;
pub use store::{HasTasks, ID, TaskError, TaskOptions, TaskToken, Tasks};
#[cfg(feature = "alloc")]
pub use {
    last_state::LastState,
    store::{LastStates, TaskLookUp},
};

use mcp_sansio::server::Millis;
use mcp_sansio::service::{Call, HandlerError, HandlerResult, Receipt, Service};
use store::Owner;

/// The methods with a target, and the member of their params that `Mcp-Name` repeats: for
/// `mcp_sansio_http::client::HttpClientConfig::names`.
pub const NAMES: &[(&str, &str)] = &[("tasks/get", "taskId"), ("tasks/update", "taskId"), ("tasks/cancel", "taskId")];

/// Returns whether the answer of a `tools/call` may be a task: the client declared the extension in this request, or in
/// 2025-11-25 with [`LEGACY`](HasTasks::LEGACY) its params have [`task`]. A handler that can also answer at once looks first.
///
/// [`task`]: https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#creating-tasks
pub fn wants_task<S: HasTasks>(_: &S, call: &Call<'_>) -> bool {
    match S::LEGACY && call.revision().has_core_tasks() {
        true => legacy::has_task(call),
        false => call.client_extension(ID).is_some(),
    }
}

/// Answers a `tools/call` with a new task (`CreateTaskResult`). A handler that can also answer at once calls [`wants_task`]
/// first.
///
/// # Errors
/// Returned with `?`: error -32021 if the client did not declare the extension in this request, -32603 if there is no room
/// for the task, or for the result in the sink. In 2025-11-25 with [`LEGACY`](HasTasks::LEGACY) error -32601 for a call without
/// `task`, and -32602 for one with a wrong `task`.
pub fn begin<S: HasTasks>(
    state: &mut S,
    call: &mut Call<'_>,
    options: &TaskOptions<'_>,
) -> Result<(TaskToken, Receipt), HandlerError> {
    let mut options = *options;
    let legacy = S::LEGACY && call.revision().has_core_tasks();
    if legacy {
        options.ttl = legacy::ttl(options.ttl, call)?;
    } else {
        call.need_extension(ID)?;
    }
    let tasks = state.tasks_mut();
    let token = tasks.create(&options, &Owner::of(call), call.now()).map_err(store::not_created)?;
    let created = call.result_as("task", &mut |result| match legacy {
        true => legacy::write_created(tasks, token, result),
        false => tasks.write_task(token, result),
    });
    match created {
        Ok(done) => Ok((token, done)),
        Err(error) => {
            tasks.forget(token);
            Err(error)
        }
    }
}

/// Completes a task with the answer that `answer` writes, as a handler does: by [`Call::text`], [`Call::content`] and so on. An
/// error that it returns becomes what it would be for a call: the state `failed` for a JSON-RPC error, else a result with
/// `isError`. If the result is larger than the memory, the task fails with error -32603.
///
/// While `answer` runs, the state has no tasks.
///
/// # Errors
/// [`TaskError::Over`] if the task has ended or was forgotten; `answer` has not run then. [`TaskError::Unanswered`] if
/// `answer` does not answer at once; the task goes on.
pub fn complete<S: HasTasks>(
    service: &Service<'_, S>,
    state: &mut S,
    token: TaskToken,
    now: Millis,
    answer: impl FnOnce(&mut S, &mut Call<'_>) -> HandlerResult,
) -> Result<(), TaskError> {
    let mut tasks = core::mem::replace(state.tasks_mut(), Tasks::none());
    let completed = tasks
        .complete_with(token, now, |revision, out| service.write_detached_result(revision, now, state, out, answer));
    *state.tasks_mut() = tasks;
    completed
}

/// The programs of the page about tasks are tests too.
#[cfg(all(doctest, feature = "alloc"))]
#[doc = include_str!("../../../../docs/tasks.md")]
struct TasksDocument;
