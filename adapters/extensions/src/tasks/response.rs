//! Answers in 2025-11-25 about tasks that have ended.

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::meta::RELATED_TASK;
use mcp_sansio::server::RpcError;
use mcp_sansio::service::{CustomRequest, HandlerResult};

use crate::tasks::store::TOO_LARGE;

/// The error of `tasks/cancel` for a task that has ended.
pub(crate) const HAS_ENDED: RpcError<'static> =
    RpcError::invalid_params("The task has ended already: it cannot be cancelled");
/// The error of `tasks/result` for a task that was cancelled.
pub(crate) const WAS_CANCELLED: RpcError<'static> =
    RpcError::invalid_params("The task was cancelled: it has no result");

/// Answers with the result or the error of a task.
pub(crate) fn write_response(
    result: Option<Raw<'_>>,
    error: Option<Raw<'_>>,
    id: &str,
    request: &mut CustomRequest<'_>,
) -> HandlerResult {
    let result = match (result, error) {
        (Some(result), _) => result,
        (None, Some(error)) => return request.fail_raw(error),
        (None, None) => return Err(RpcError::internal(TOO_LARGE).into()),
    };
    request.result_as("complete", &mut |out| {
        for (key, value) in result.members().filter(|(key, _)| !key.eq_str("_meta")) {
            out.member(key, value);
        }
        let mut meta = Object::open(out.key("_meta"));
        let own = result.get("_meta").into_iter().flat_map(|own| own.members());
        for (key, value) in own.filter(|(key, _)| !key.eq_str(RELATED_TASK)) {
            meta.member(key, value);
        }
        let mut related = Object::open(meta.key(RELATED_TASK));
        related.text("taskId", id);
        related.close();
        meta.close()
    })
}
