//! Clients that follow tasks, over stdio and over HTTP.
#![cfg(all(feature = "client", unix))]

#[path = "../../../tests/remote/task_server.rs"]
mod task_server;

use std::future::Future;
use std::process::Command;
use std::time::Duration;

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{ClientInfo, Request, SendError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio_extensions::tasks::TaskStatus;
use mcp_sansio_extensions::tasks::client::{
    DECLARATION, FollowLimits, RESULT_TYPES, TaskEnd, TaskEvent, TaskFollower, TaskHandle,
};
use mcp_sansio_smol::Serve;
use mcp_sansio_smol::client::{Child, Client, ClientError, Ignore, Transport};
use smol::{Timer, future};
use task_server::{World, service};

static PROFILE: ClientInfo<'static> =
    ClientInfo::new("test", "1").extensions(DECLARATION, RESULT_TYPES).feature(ClientCapability::ElicitForm);

const SURE: Raw<'static> = Raw::constant(r#"{"sure":true}"#);
const LIMITS: FollowLimits = FollowLimits::DEFAULT.poll_interval(20, 100);

/// A server: this program runs it when [`child`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    smol::block_on(Serve::new(&service()).stdio(&mut World::new())).unwrap();
}

fn child() -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server", "--ignored", "--nocapture"]);
    Child::spawn(command, &PROFILE).unwrap()
}

/// Runs a test beside the driver. A test that hangs fails.
fn run<R: Send + 'static, F: Future<Output = R> + Send + 'static>(
    transport: impl Transport + 'static,
    test: impl FnOnce(Client) -> F,
) -> R {
    let (client, driver) = Client::new(transport, Ignore);
    smol::block_on(future::or(
        async {
            let driver = smol::spawn(driver);
            client.connect().await.unwrap();
            // The future of a test can be moved to another thread.
            let done = smol::spawn(test(client)).await;
            driver.await;
            done
        },
        async {
            Timer::after(Duration::from_secs(60)).await;
            panic!("it hangs")
        },
    ))
}

async fn begin(client: &Client) -> TaskHandle {
    let result = client.request(Request::call("work")).await.unwrap();
    TaskHandle::of(result.raw()).unwrap().unwrap()
}

async fn call(client: &Client, tool: &str) {
    let result = client.request(Request::call(tool)).await.unwrap();
    assert!(!result.as_str().contains(r#""isError":true"#), "{result:?}");
}

async fn text(client: &Client, task: &mut TaskFollower) -> String {
    loop {
        match client.follow(task).await.unwrap() {
            TaskEvent::Status { .. } => {}
            TaskEvent::Ended(TaskEnd::Completed(result)) => {
                let text = result.raw().get("content").and_then(|content| content.items().next()?.get("text")?.text());
                return text.unwrap().to_string();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A task with a question, and one that is cancelled.
async fn a_whole_life(client: Client) {
    let mut task = TaskFollower::new(begin(&client).await, LIMITS);
    let working = TaskEvent::Status { status: TaskStatus::Working, message: Some("begun".into()) };
    assert_eq!(client.follow(&mut task).await.unwrap(), working);
    call(&client, "ask").await;
    let status = client.follow(&mut task).await.unwrap();
    assert!(matches!(status, TaskEvent::Status { status: TaskStatus::InputRequired, .. }), "{status:?}");
    let TaskEvent::Asked(question) = client.follow(&mut task).await.unwrap() else { panic!() };
    task.answer(&question.key, &ClientResult::accept(SURE)).unwrap();
    assert_eq!(client.follow(&mut task).await.unwrap(), working);
    call(&client, "finish").await;
    assert_eq!(text(&client, &mut task).await, "done, surely");
    let over = client.follow(&mut task).await;
    assert!(matches!(over, Err(ClientError::NotSent(SendError::Stale))), "{over:?}");

    // The future that follows is dropped, to cancel.
    let mut task = TaskFollower::new(begin(&client).await, LIMITS);
    client.follow(&mut task).await.unwrap();
    let dropped = future::or(async { Some(client.follow(&mut task).await) }, async {
        Timer::after(Duration::from_millis(30)).await;
        None
    });
    assert!(dropped.await.is_none());
    task.cancel();
    let status = client.follow(&mut task).await.unwrap();
    assert!(matches!(status, TaskEvent::Status { status: TaskStatus::Cancelled, .. }), "{status:?}");
    assert_eq!(client.follow(&mut task).await.unwrap(), TaskEvent::Ended(TaskEnd::Cancelled));

    let mut task = TaskFollower::new(begin(&client).await, LIMITS.total_timeout(1));
    assert_eq!(client.follow(&mut task).await.unwrap(), TaskEvent::Ended(TaskEnd::GaveUp));
}

#[test]
fn over_stdio() {
    run(child(), a_whole_life);
}

/// A notification ends the wait for the next poll, which would take an hour.
#[test]
fn a_notification_is_as_good_as_a_poll() {
    let state =
        |status: &str| format!(r#""taskId":"t","status":"{status}","createdAt":"","lastUpdatedAt":"","ttlMs":null"#);
    let got = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete",{}}}}}"#, state("working"));
    let completed = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{},"result":{{"content":[{{"type":"text","text":"4"}}]}}}}}}"#,
        state("completed")
    );
    let other = completed.replace("\"t\"", "\"u\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("read -r line; echo '{got}'; echo '{other}'; echo '{completed}'; cat >/dev/null")]);
    let limits = FollowLimits::DEFAULT.poll_interval(3_600_000, 3_600_000).total_timeout(36_000_000);
    let (client, driver) = Client::new(Child::spawn(command, &PROFILE).unwrap(), Ignore);
    smol::block_on(future::or(
        async {
            let driver = smol::spawn(driver);
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            let mut task = TaskFollower::resume(TaskHandle::new("t", Revision::V2026_07_28), limits);
            assert_eq!(text(&client, &mut task).await, "4");
            client.close().await;
            driver.await;
        },
        async {
            Timer::after(Duration::from_secs(60)).await;
            panic!("it hangs")
        },
    ));
}

/// Another server does not know the task. A client whose server has ended says so.
#[test]
fn a_server_that_ends_takes_its_tasks_with_it() {
    let mut task = run(child(), |client| async move {
        let mut task = TaskFollower::new(begin(&client).await, LIMITS);
        client.follow(&mut task).await.unwrap();
        client.close().await;
        let lost = client.follow(&mut task).await.unwrap_err();
        assert!(lost.lost().is_some(), "{lost}");
        task
    });
    task.reconnected();
    run(child(), |client| async move {
        assert_eq!(client.follow(&mut task).await.unwrap(), TaskEvent::Ended(TaskEnd::Gone));
    });
}

#[cfg(feature = "http")]
mod http {
    use super::*;
    use mcp_sansio_smol::client::Http;
    use mcp_sansio_smol::http::{HttpServer, Stopper};
    use std::thread::JoinHandle;

    struct Running {
        url: String,
        stopper: Stopper,
        thread: JoinHandle<World>,
    }

    fn start(address: &str, mut world: World) -> Running {
        let server = HttpServer::bind(address).unwrap();
        let url = format!("http://{}/mcp", server.local_addr().unwrap());
        let stopper = server.stopper();
        let thread = std::thread::spawn(move || {
            smol::block_on(server.serve(&service(), &mut world)).unwrap();
            world
        });
        Running { url, stopper, thread }
    }

    impl Running {
        fn stop(self) -> World {
            self.stopper.stop();
            self.thread.join().unwrap()
        }

        fn connect(&self) -> Http {
            Http::new(&self.url, &PROFILE).unwrap()
        }
    }

    #[test]
    fn over_http() {
        let server = start("127.0.0.1:0", World::new());
        run(server.connect(), a_whole_life);
        server.stop();
    }

    /// The program ends, and starts again with the text of the handle.
    #[test]
    fn a_kept_handle_resumes() {
        let server = start("127.0.0.1:0", World::new());
        let kept = run(server.connect(), |client| async move {
            let mut task = TaskFollower::new(begin(&client).await, LIMITS);
            call(&client, "ask").await;
            while !matches!(client.follow(&mut task).await.unwrap(), TaskEvent::Asked(_)) {}
            task.answer("sure", &ClientResult::decline()).unwrap();
            client.follow(&mut task).await.unwrap();
            task.handle().to_string()
        });
        assert!(kept.contains("sure"), "{kept}");
        run(server.connect(), |client| async move {
            call(&client, "finish").await;
            let mut task = TaskFollower::resume(kept.parse().unwrap(), LIMITS);
            assert_eq!(text(&client, &mut task).await, "done, perhaps");
        });
        server.stop();
    }

    /// The server is away for a while.
    #[test]
    fn a_reconnect_continues() {
        let server = start("127.0.0.1:0", World::new());
        let transport = server.connect();
        run(transport, |client| async move {
            let mut task = TaskFollower::new(begin(&client).await, LIMITS.failures(2));
            client.follow(&mut task).await.unwrap();
            let address = server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
            let world = server.stop();
            let lost = client.follow(&mut task).await.unwrap_err();
            assert!(lost.lost().is_some(), "{lost}");
            let server = start(&address, world);
            task.reconnected();
            call(&client, "finish").await;
            assert_eq!(text(&client, &mut task).await, "done");
            server.stop();
        });
    }
}
