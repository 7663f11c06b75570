//! The last states of tasks.

use std::sync::Arc;

use mcp_sansio::server::RpcError;
use mcp_sansio_extensions::tasks::{LastStates, TaskLookUp, Tasks};
use mcp_sansio_host::LateSender;

use crate::shared::{Command, Kept, Shared};

const AWAY: RpcError<'static> = RpcError::internal("The process of the task cannot be reached: try again");

/// The place of the last states of tasks: in Redis, each until its time to live is over. A request for a task that is not here is
/// answered with its last state, if it has ended or its process has; while that is alive, or Redis away, with error -32603.
///
/// ```
/// use mcp_sansio_fleet::FleetTasks;
/// use mcp_sansio_extensions::tasks::{HasTasks, LastStates, Tasks};
///
/// struct Printer {
///     tasks: Tasks<'static>,
///     fleet: FleetTasks<Printer>,
/// }
///
/// impl HasTasks for Printer {
///     fn tasks(&self) -> &Tasks<'static> {
///         &self.tasks
///     }
///     fn tasks_mut(&mut self) -> &mut Tasks<'static> {
///         &mut self.tasks
///     }
///     fn last_states(&self) -> Option<&dyn LastStates> {
///         Some(&self.fleet)
///     }
/// }
///
/// // In the loop, before the change is published:
/// fn changed(printer: &mut Printer) {
///     while let Some(id) = printer.tasks.next_change() {
///         printer.fleet.keep(&printer.tasks, id.as_str());
///         // endpoint.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
///     }
/// }
/// ```
pub struct FleetTasks<S: 'static> {
    shared: Arc<Shared>,
    late: LateSender<S>,
}

impl<S: 'static> FleetTasks<S> {
    pub(crate) const fn new(shared: Arc<Shared>, late: LateSender<S>) -> Self {
        FleetTasks { shared, late }
    }
}

impl<S: 'static> LastStates for FleetTasks<S> {
    // Without room for it the state before stays.
    fn keep(&self, tasks: &Tasks<'_>, id: &str) {
        if let Some(last) = tasks.last_state(id) {
            let keep = last.keep.clamp(1, i64::MAX as u64);
            let _ = self.shared.push(Command::KeepTask { id: id.into(), user: last.user, task: last.task, keep });
        }
    }

    fn look_up(&self, wanted: TaskLookUp) {
        let (late, id) = (self.late.clone(), wanted.id().to_owned());
        let found = move |kept| {
            let token = wanted.token;
            let _ = match kept {
                Kept::Unknown => late.fail(token, &AWAY),
                Kept::Nothing => late.answer(token.as_custom(), move |_, request| wanted.answer(None, request)),
                Kept::State { user, task, is_left } if is_left || wanted.has_ended(&task) => late
                    .answer(token.as_custom(), move |_, request| {
                        wanted.answer(Some((user.as_deref(), &task)), request)
                    }),
                Kept::State { .. } => late.fail(token, &AWAY),
            };
        };
        if let Err(Command::FindTask { found, .. }) = self.shared.push(Command::FindTask { id, found: Box::new(found) })
        {
            found(Kept::Unknown);
        }
    }
}

mcp_sansio::debug_fields!(impl<S> for FleetTasks<S> {});
