//! The place of the task that a request names: in the table, or where the last states are kept.

use mcp_sansio::service::{CustomRequest, HandlerResult};

use crate::tasks::machine::Wanted;
use crate::tasks::store::{HasTasks, TaskToken};

/// Finds the task that a request names. `Err`: how the handler ends, because the table does not have it.
pub(crate) fn find<S: HasTasks>(
    state: &mut S,
    request: &mut CustomRequest<'_>,
    wanted: Wanted,
) -> Result<TaskToken, HandlerResult> {
    state.tasks_mut().named_by(request).map_err(|unknown| {
        #[cfg(feature = "alloc")]
        if let Some(done) = crate::tasks::last_state::look_up(state, request, wanted) {
            return done;
        }
        let _ = wanted;
        Err(unknown.into())
    })
}
