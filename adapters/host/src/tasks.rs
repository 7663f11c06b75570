//! The outcomes of requests about tasks, and notifications.

use std::task::{Poll, Waker};

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
#[must_use]
pub const fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Lost { why, .. } => matches!(
            why,
            TransportError::TimedOut
                | TransportError::Closed
                | TransportError::Unsent
                | TransportError::Unreachable
                | TransportError::Broken
                | TransportError::Status(408 | 429 | 500..=599)
        ),
        ClientError::NotSent(SendError::FullNow | SendError::Busy) => true,
        _ => false,
    }
}

/// The most tasks whose last notification is kept until they are followed again. Others are polled.
const FOLLOWED: usize = 64;

/// The tasks that are followed, the newest last, with the last notification about each.
#[derive(Debug, Default)]
pub struct FollowedTasks(Vec<FollowedTask>);

#[derive(Debug)]
struct FollowedTask {
    id: String,
    /// The params of the last notification. Each has the whole state, so the latest is enough.
    latest: Option<OwnedRaw>,
    waker: Option<Waker>,
}

impl FollowedTasks {
    /// Keeps notifications about a task from now on. Returns the waker of the task that is followed no more, if there are too
    /// many.
    pub fn begin(&mut self, id: &str) -> Option<Waker> {
        if self.0.iter().any(|task| task.id == id) {
            return None;
        }
        let oldest = if self.0.len() >= FOLLOWED { self.0.remove(0).waker } else { None };
        self.0.push(FollowedTask { id: id.to_owned(), latest: None, waker: None });
        oldest
    }

    /// Keeps no more notifications about a task. Returns its waker.
    pub fn end(&mut self, id: &str) -> Option<Waker> {
        let at = self.0.iter().position(|task| task.id == id)?;
        self.0.remove(at).waker
    }

    /// Takes the last notification about a task. Without one, keeps `waker` for the next, and gives the old waker to `wakes`.
    pub fn poll(&mut self, id: &str, waker: Option<&Waker>, wakes: &mut impl Extend<Waker>) -> Poll<OwnedRaw> {
        let Some(task) = self.0.iter_mut().find(|task| task.id == id) else { return Poll::Pending };
        if let Some(latest) = task.latest.take() {
            return Poll::Ready(latest);
        }
        let old = std::mem::replace(&mut task.waker, waker.cloned());
        wakes.extend(old.filter(|old| waker.is_none_or(|new| !old.will_wake(new))));
        Poll::Pending
    }

    /// Keeps the params of a notification about a task that is followed.
    pub(crate) fn notified(&mut self, method: &Text<'_>, params: Option<Raw<'_>>) {
        let is_meant = ["notifications/tasks", "notifications/tasks/status"].iter().any(|name| method.eq_str(name));
        if let Some(params) = params.filter(|_| is_meant)
            && let Some(id) = params.get("taskId").and_then(|id| id.text())
            && let Some(task) = self.0.iter_mut().find(|task| id.eq_str(&task.id))
        {
            task.latest = Some(params.into());
        }
    }

    /// Wakes those about which there is a notification.
    pub(crate) fn wake(&mut self, wakes: &mut impl Extend<Waker>) {
        self.0.iter_mut().filter(|task| task.latest.is_some()).for_each(|task| wakes.extend(task.waker.take()));
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
            TransportError::Unsent,
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

    /// Notifications are kept for tasks that are followed: for each once, for the newest ones, and until they end.
    #[test]
    fn the_newest_tasks_are_kept_once_until_they_end() {
        let followed = |tasks: &FollowedTasks| tasks.0.iter().map(|task| task.id.clone()).collect::<Vec<_>>();
        let mut tasks = FollowedTasks::default();
        for id in ["a", "b", "a"] {
            tasks.begin(id);
        }
        assert_eq!(followed(&tasks), ["a", "b"]);
        (2..=FOLLOWED).for_each(|number| _ = tasks.begin(&number.to_string()));
        assert_eq!((followed(&tasks).len(), &*followed(&tasks)[0]), (FOLLOWED, "b"));
        tasks.end("b");
        tasks.end("b");
        assert_eq!((followed(&tasks).len(), &*followed(&tasks)[0]), (FOLLOWED - 1, "2"));
    }

    #[test]
    fn the_latest_notification_is_given_to_the_task() {
        let text = |text: &'static str| Raw::parse(text.as_bytes()).unwrap().text().unwrap();
        let poll = |tasks: &mut FollowedTasks, id| tasks.poll(id, None, &mut Vec::new());
        for (method, params, is_of_a_task) in [
            (r#""notifications/tasks""#, Some(DONE), true),
            (r#""notifications/tasks/status""#, Some(DONE), true),
            (r#""notifications/progress""#, Some(DONE), false),
            (r#""notifications/tasks""#, Some(Raw::constant("{}")), false),
            (r#""notifications/tasks""#, Some(Raw::constant(r#"{"taskId":7}"#)), false),
            (r#""notifications/tasks""#, None, false),
        ] {
            let mut tasks = FollowedTasks::default();
            ["a", "b"].iter().for_each(|id| _ = tasks.begin(id));
            assert!(poll(&mut tasks, "a").is_pending());
            let working = DONE.as_str().replace("completed", "working");
            if is_of_a_task {
                tasks.notified(&text(method), Raw::parse(working.as_bytes()).ok());
            }
            tasks.notified(&text(method), params);
            let latest = poll(&mut tasks, "a");
            assert_eq!(latest.is_ready(), is_of_a_task, "{method} {params:?}");
            assert!(poll(&mut tasks, "a").is_pending() && poll(&mut tasks, "b").is_pending());
            assert!(poll(&mut tasks, "unknown").is_pending());
            if let Poll::Ready(latest) = latest {
                let (engine, mut task) = (engine(), asked(1));
                task.notified(latest.raw(), 1, &engine);
                assert!(matches!(end(&mut task), Some(TaskEnd::Completed(_))));
            }
        }
    }
}
