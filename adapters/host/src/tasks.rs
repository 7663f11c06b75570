//! The outcomes of requests about tasks, and notifications.

use mcp_sansio::client::{Client, SendError, TransportError};
use mcp_sansio::json::{OwnedRaw, Raw, Text};
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::tasks::client::TaskFollower;

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

#[cfg(test)]
mod tests {
    use mcp_sansio::client::ClientInfo;
    use mcp_sansio::revision::Revision;
    use mcp_sansio_extensions::tasks::client::{
        DECLARATION, FollowLimits, RESULT_TYPES, TaskEnd, TaskEvent, TaskHandle, TaskStep,
    };

    use super::*;
    use crate::ServerError;
    use mcp_sansio::protocol::Method;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1").extensions(DECLARATION, RESULT_TYPES);

    /// The params of a notification about the task `a`, and the result of `tasks/get` too.
    const DONE: Raw<'static> = Raw::constant(concat!(
        r#"{"resultType":"complete","taskId":"a","status":"completed","createdAt":"2026-11-25T00:00:00Z","#,
        r#""lastUpdatedAt":"2026-11-25T00:00:00Z","ttlMs":null,"result":{"content":[]}}"#
    ));

    fn engine() -> Client<'static> {
        let mut engine = Client::growing(&PROFILE);
        engine.connect_as(Revision::V2026_07_28);
        engine
    }

    /// A task whose first `tasks/get` is on its way.
    fn asked(failures: u8) -> TaskFollower {
        let handle = TaskHandle::new("a", Revision::V2026_07_28);
        let mut task = TaskFollower::resume(handle, FollowLimits::DEFAULT.failures(failures));
        assert!(matches!(task.next(0), TaskStep::Send(_)));
        task
    }

    fn end(task: &mut TaskFollower) -> Option<TaskEnd> {
        std::iter::from_fn(|| task.event()).find_map(|event| match event {
            TaskEvent::Ended(end) => Some(end),
            _ => None,
        })
    }

    fn lost(why: TransportError) -> ClientError {
        ClientError::lost_by(why)
    }

    #[test]
    fn answers_and_refusals_reach_the_task() {
        let (engine, mut task) = (engine(), asked(1));
        let answer = OwnedResult::new(Method::Other, DONE);
        assert!(take_task_outcome(&mut task, Ok(answer), 1, &engine).is_ok());
        assert!(matches!(end(&mut task), Some(TaskEnd::Completed(_))));
        let mut task = asked(1);
        let error = ServerError { code: -31000, message: "no".into(), data: None };
        assert!(take_task_outcome(&mut task, Err(ClientError::Server(error)), 1, &engine).is_ok());
        let refused = TaskEnd::Refused { code: -31000, message: "no".into() };
        assert_eq!(end(&mut task).map(|end| end.to_string()), Some(refused.to_string()));
    }

    /// A request that has no answer is sent again, if the connection is there, the reason may pass, and there were not too
    /// many of them.
    #[test]
    fn a_lost_request_is_sent_again_while_that_may_help() {
        let passing = [
            TransportError::TimedOut,
            TransportError::Closed,
            TransportError::Unreachable,
            TransportError::Broken,
            TransportError::Status(408),
            TransportError::Status(429),
            TransportError::Status(500),
            TransportError::Status(599),
        ];
        let lasting = [TransportError::Unauthorized, TransportError::TooLarge, TransportError::Status(404)];
        let (connected, unconnected) = (engine(), Client::growing(&PROFILE));
        for why in passing {
            let taken = |failures, engine| take_task_outcome(&mut asked(failures), Err(lost(why)), 1, engine).is_ok();
            assert_eq!((taken(1, &connected), taken(0, &connected), taken(1, &unconnected)), (true, false, false));
        }
        for why in lasting {
            let error = take_task_outcome(&mut asked(1), Err(lost(why)), 1, &connected).unwrap_err();
            assert_eq!(error.lost(), Some(why));
        }
        for (error, again) in [
            (ClientError::NotSent(SendError::FullNow), true),
            (ClientError::NotSent(SendError::Busy), true),
            (ClientError::NotSent(SendError::FullNever), false),
            (ClientError::TooManyPages, false),
        ] {
            let words = error.to_string();
            assert_eq!(take_task_outcome(&mut asked(1), Err(error), 1, &connected).is_ok(), again, "{words}");
        }
    }

    #[test]
    fn the_latest_notification_is_given_to_the_task() {
        let text = |text: &'static str| Raw::parse(text.as_bytes()).unwrap().text().unwrap();
        for (method, params, is_of_a_task) in [
            (r#""notifications/tasks""#, Some(DONE), true),
            (r#""notifications/tasks/status""#, Some(DONE), true),
            (r#""notifications/progress""#, Some(DONE), false),
            (r#""notifications/tasks""#, Some(Raw::constant("{}")), false),
            (r#""notifications/tasks""#, Some(Raw::constant(r#"{"taskId":7}"#)), false),
            (r#""notifications/tasks""#, None, false),
        ] {
            let found = TaskNotice::of(&text(method), params);
            assert_eq!(found.is_some(), is_of_a_task, "{method} {params:?}");
            assert!(found.is_none_or(|(id, params)| id.eq_str("a") && params.as_str() == DONE.as_str()));
        }
        let (engine, mut task, mut notice) = (engine(), asked(1), TaskNotice::default());
        assert!(!notice.is_kept() && !notice.give(&mut task, 1, &engine));
        let working = DONE.as_str().replace("completed", "working");
        notice.keep(Raw::parse(working.as_bytes()).unwrap());
        notice.keep(DONE);
        assert!(notice.is_kept() && notice.give(&mut task, 1, &engine));
        assert!(matches!(end(&mut task), Some(TaskEnd::Completed(_))));
        assert!(!notice.is_kept() && !notice.give(&mut task, 2, &engine));
    }
}
