//! Follows a task of the server.

use std::future::poll_fn;

use async_io::Timer;
use mcp_sansio::client::SendError;
use mcp_sansio::json::OwnedRaw;
use mcp_sansio_extensions::tasks::client::{TaskEvent, TaskFollower, TaskStep};
use mcp_sansio_host::take_task_outcome;

use super::{Client, ClientError, OwnedResult, PendingResponse};

/// The end of a wait.
enum Happened {
    Outcome(Result<OwnedResult, ClientError>),
    Notified(OwnedRaw),
    Time,
}

impl Client {
    /// Follows a [task](https://modelcontextprotocol.io/seps/2663-tasks-extension) until its next event: sends its requests
    /// when they are due, and waits in between. The future may be dropped, for example to cancel the task: the next one
    /// continues.
    ///
    /// A `notifications/tasks` about the task counts as a poll: to get them, [listen](Client::listen) to the topic `taskIds` with
    /// its id, and poll rarely with [`FollowLimits::poll_interval`](mcp_sansio_extensions::tasks::client::FollowLimits::poll_interval).
    ///
    /// The info must [declare](mcp_sansio_extensions::tasks::client::DECLARATION) tasks.
    ///
    /// ```no_run
    /// # use mcp_sansio::client::{ClientInfo, Request};
    /// # use mcp_sansio::client::result::ClientResult;
    /// # use mcp_sansio_smol::client::Client;
    /// use mcp_sansio_extensions::tasks::client::{DECLARATION, RESULT_TYPES, FollowLimits, TaskEvent, TaskFollower, TaskHandle};
    ///
    /// static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0").extensions(DECLARATION, RESULT_TYPES);
    ///
    /// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let result = client.request(Request::call("build")).await?;
    /// let Some(handle) = TaskHandle::of(result.raw())? else { return Ok(()) }; // an ordinary result
    /// let mut task = TaskFollower::new(handle, FollowLimits::DEFAULT.total_timeout(600_000));
    /// let end = loop {
    ///     std::fs::write("task.json", task.handle().to_string())?; // for the next start
    ///     match client.follow(&mut task).await? {
    ///         TaskEvent::Asked(question) => task.answer(&question.key, &ClientResult::decline())?,
    ///         TaskEvent::Ended(end) => break end,
    ///         other => println!("{other:?}"),
    ///     }
    /// };
    /// println!("{end}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As a [request](Client::request), when the connection is lost or too many requests in a row have failed. The task is
    /// not lost: call [`TaskFollower::reconnected`], and follow it with another client of the same server.
    /// [`SendError::Stale`] after its last event.
    pub async fn follow(&self, task: &mut TaskFollower) -> Result<TaskEvent, ClientError> {
        let id = task.handle().id.clone();
        self.with(|state| state.wakes.extend(state.outcomes.followed.begin(&id)));
        let mut under_way: Option<PendingResponse> = None;
        loop {
            if let Some(event) = task.event() {
                if matches!(event, TaskEvent::Ended(_)) {
                    self.end_to_follow(&id);
                }
                return Ok(event);
            }
            if !task.awaits_answer() {
                under_way = None;
            }
            let mut until = 0;
            if under_way.is_none() {
                match task.next(self.with(|state| state.now())) {
                    TaskStep::Send(request) => under_way = Some(self.request(request)),
                    TaskStep::Wait(time) => until = time,
                    TaskStep::End => {
                        self.end_to_follow(&id);
                        return task.event().ok_or(SendError::Stale.into());
                    }
                }
            }
            let next = async {
                match &mut under_way {
                    Some(response) => Happened::Outcome(response.await),
                    None => {
                        let until = self.with(|state| state.instant(until));
                        until.map_or_else(Timer::never, Timer::at).await;
                        Happened::Time
                    }
                }
            };
            let notified =
                poll_fn(|cx| self.with(|state| state.outcomes.followed.poll(&id, Some(cx.waker()), &mut state.wakes)));
            let notified = async { Happened::Notified(notified.await) };
            match futures_lite::future::or(next, notified).await {
                // The task awaits no answer after it, so the response is dropped.
                Happened::Outcome(outcome) => {
                    let now = self.with(|state| state.now());
                    self.engine(|engine| take_task_outcome(task, outcome, now, engine))??;
                }
                Happened::Notified(params) => {
                    let now = self.with(|state| state.now());
                    self.engine(|engine| task.notified(params.raw(), now, engine))?;
                }
                Happened::Time => {}
            }
        }
    }

    /// Keeps no more notifications about a task.
    fn end_to_follow(&self, id: &str) {
        self.with(|state| state.wakes.extend(state.outcomes.followed.end(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::state::State;
    use crate::client::{Ignore, StreamTransport};
    use mcp_sansio::client::ClientInfo;
    use mcp_sansio_extensions::tasks::client::{FollowLimits, TaskEnd, TaskHandle};

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    struct Count(std::sync::atomic::AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }

    /// A notification of the server wakes the task that follows, which gets it once.
    #[test]
    fn a_notification_wakes_the_task_that_follows() {
        const NOTE: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{\"taskId\":\"a\",\"status\":\"working\"}}\n";
        let counts = [(); 3].map(|()| std::sync::Arc::new(Count(0.into())));
        let wakers = [0, 1, 2].map(|at: usize| std::task::Waker::from(counts[at].clone()));
        let woken = || [0, 1, 2].map(|at: usize| counts[at].0.swap(0, std::sync::atomic::Ordering::SeqCst));
        let stream = StreamTransport::new(NOTE.as_bytes(), futures_lite::io::sink(), &PROFILE);
        let mut state = State::new(Box::new(stream), Box::new(Ignore));
        state.connect(Some(mcp_sansio::revision::Revision::V2026_07_28)).unwrap();
        ["a", "b"].iter().for_each(|id| _ = state.outcomes.followed.begin(id));
        let poll =
            |state: &mut State, id, waker| state.outcomes.followed.poll(id, Some(waker), &mut state.wakes).is_pending();
        for (id, at, expected) in [("a", 0, [0; 3]), ("b", 1, [0; 3]), ("a", 0, [0; 3]), ("a", 2, [1, 0, 0])] {
            assert!(poll(&mut state, id, &wakers[at]));
            std::mem::take(&mut state.wakes).wake();
            assert_eq!(woken(), expected, "only a waker that is replaced");
        }
        state.run(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        std::mem::take(&mut state.wakes).wake();
        assert_eq!(woken(), [0, 0, 1]);
        assert!(!poll(&mut state, "a", &wakers[2]), "it has come");
        assert!(["a", "b", "unknown"].iter().all(|id| poll(&mut state, id, &wakers[2])));
    }

    /// Follows a task to its next event. The driver runs beside it and begins after it, so the answer comes after the request.
    fn next(
        client: &Client,
        driver: &mut crate::client::Driver,
        task: &mut TaskFollower,
    ) -> Result<TaskEvent, ClientError> {
        let driven = async {
            driver.await;
            panic!("the driver has ended")
        };
        async_io::block_on(futures_lite::future::or(client.follow(task), driven))
    }

    /// No more notifications are kept for it, whether the server or a limit has ended it.
    #[test]
    fn a_task_that_has_ended_is_followed_no_more() {
        const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"taskId\":\"a\",\"status\":\"cancelled\",\"createdAt\":\"\",\"lastUpdatedAt\":\"\",\"ttlMs\":null}}\n";
        for (limits, end, statuses) in [
            (FollowLimits::DEFAULT, TaskEnd::Cancelled, 1),
            (FollowLimits::DEFAULT.total_timeout(0), TaskEnd::GaveUp, 0),
        ] {
            let stream = StreamTransport::new(ANSWER.as_bytes(), futures_lite::io::sink(), &PROFILE);
            let (client, mut driver) = Client::new(stream, Ignore);
            let revision = mcp_sansio::revision::Revision::V2026_07_28;
            async_io::block_on(client.connect_as(revision)).unwrap();
            let mut task = TaskFollower::resume(TaskHandle::new("a", revision), limits);
            let count = || client.with(|state| format!("{:?}", state.outcomes.followed).matches("id: ").count());
            for _ in 0..statuses {
                let status = next(&client, &mut driver, &mut task).unwrap();
                assert!(matches!(status, TaskEvent::Status { .. }), "{status:?}");
                assert_eq!(count(), 1);
            }
            assert_eq!(next(&client, &mut driver, &mut task).unwrap(), TaskEvent::Ended(end));
            assert_eq!(count(), 0);
            let over = next(&client, &mut driver, &mut task);
            assert!(matches!(over, Err(ClientError::NotSent(SendError::Stale))), "{over:?}");
            assert_eq!(count(), 0);
        }
    }
}
