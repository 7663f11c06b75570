//! Clients that follow tasks, over stdio and over HTTP.
#![cfg(all(feature = "client", unix))]

#[path = "../../../tests/remote/task_server.rs"]
mod task_server;

use std::process::Command;
use std::time::Duration;

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{ClientHandler, ClientInfo, Request, SendError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio_blocking::client::{Child, Client, ClientError, Direction, Ignore, Transport};
use mcp_sansio_extensions::tasks::TaskStatus;
use mcp_sansio_extensions::tasks::client::{
    DECLARATION, FollowLimits, RESULT_TYPES, TaskEnd, TaskEvent, TaskFollower, TaskHandle,
};
use task_server::{World, service};

static PROFILE: ClientInfo<'static> =
    ClientInfo::new("test", "1").extensions(DECLARATION, RESULT_TYPES).feature(ClientCapability::ElicitForm);

const LIMITS: FollowLimits = FollowLimits::DEFAULT.poll_interval(20, 100);
/// The longest time for any step. None comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server: this program runs it when [`child`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    mcp_sansio_blocking::serve_stdio(&service(), &mut World::new()).unwrap();
}

fn child() -> Client<'static, Child<'static>, Ignore> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server", "--ignored", "--nocapture"]);
    let mut client = Client::new(Child::spawn(command, &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    client
}

fn begin<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>) -> TaskHandle {
    let result = client.request(&Request::call("work")).unwrap();
    TaskHandle::of(result.raw()).unwrap().unwrap()
}

fn call<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>, tool: &str) {
    let result = client.request(&Request::call(tool)).unwrap();
    assert!(!result.as_str().contains(r#""isError":true"#), "{result:?}");
}

#[track_caller]
fn event<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>, task: &mut TaskFollower) -> TaskEvent {
    client.follow(task, PATIENCE).unwrap().unwrap()
}

/// Returns the text of the result.
#[track_caller]
fn text<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>, task: &mut TaskFollower) -> String {
    loop {
        match event(client, task) {
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
fn a_whole_life<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>) {
    let mut task = TaskFollower::new(begin(client), LIMITS);
    let working = TaskEvent::Status { status: TaskStatus::Working, message: Some("begun".into()) };
    assert_eq!(event(client, &mut task), working);
    assert_eq!(client.follow(&mut task, Duration::from_millis(1)).unwrap(), None);
    call(client, "ask");
    assert!(matches!(event(client, &mut task), TaskEvent::Status { status: TaskStatus::InputRequired, .. }));
    let TaskEvent::Asked(question) = event(client, &mut task) else { panic!() };
    let yes = ClientResult::accept(Raw::constant(r#"{"sure":true}"#));
    task.answer(&question.key, &yes).unwrap();
    assert_eq!(event(client, &mut task), working);
    call(client, "finish");
    assert_eq!(text(client, &mut task), "done, surely");
    let over = client.follow(&mut task, PATIENCE);
    assert!(matches!(over, Err(ClientError::NotSent(SendError::Stale))), "{over:?}");

    let mut task = TaskFollower::new(begin(client), LIMITS);
    task.cancel();
    assert!(matches!(event(client, &mut task), TaskEvent::Status { status: TaskStatus::Cancelled, .. }));
    assert_eq!(event(client, &mut task), TaskEvent::Ended(TaskEnd::Cancelled));

    let mut task = TaskFollower::new(begin(client), LIMITS.total_timeout(1));
    assert_eq!(event(client, &mut task), TaskEvent::Ended(TaskEnd::GaveUp));
}

#[test]
fn over_stdio() {
    a_whole_life(&mut child());
}

/// A request that is under way does not hold the caller, and a cancellation does not wait for it.
#[test]
fn a_server_that_is_silent() {
    let mut command = Command::new("/bin/sh");
    let answer = r#"read -r line; echo '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}'"#;
    // It reads `tasks/get`, `notifications/cancelled`, then `tasks/cancel`.
    command.args(["-c", &format!("read -r line; read -r line; {answer}; cat >/dev/null")]);
    let mut client = Client::new(Child::spawn(command, &PROFILE).unwrap(), Ignore);
    client.connect_as(Revision::V2026_07_28).unwrap();
    let mut sent = Vec::new();
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let tracing = seen.clone();
    client.trace(move |direction, line| {
        if direction == Direction::Sent {
            tracing.borrow_mut().push(String::from_utf8_lossy(line).into_owned());
        }
    });
    let mut task = TaskFollower::resume(TaskHandle::new("t", Revision::V2026_07_28), LIMITS.cancel_time(300));
    for _ in 0..3 {
        assert_eq!(client.follow(&mut task, Duration::from_millis(5)).unwrap(), None);
    }
    task.cancel();
    assert_eq!(event(&mut client, &mut task), TaskEvent::Ended(TaskEnd::Unconfirmed));
    for line in seen.borrow().iter() {
        let method = line.split("\"method\":\"").nth(1).and_then(|rest| rest.split('"').next());
        sent.push(method.unwrap().to_owned());
    }
    assert_eq!(sent[..3], ["tasks/get", "notifications/cancelled", "tasks/cancel"]);
}

/// Waiting for the next poll takes no processor time.
#[cfg(target_os = "linux")]
#[test]
fn waiting_is_rest() {
    let run_time = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
    };
    let mut client = child();
    let mut task = TaskFollower::new(begin(&mut client), FollowLimits::DEFAULT.poll_interval(3_600_000, 3_600_000));
    let before = run_time();
    assert_eq!(client.follow(&mut task, Duration::from_millis(400)).unwrap(), None);
    let worked = run_time() - before;
    assert!(worked < Duration::from_millis(100), "{worked:?} of 400 ms");
}

/// A notification ends the wait for the next poll, which would take an hour.
#[test]
fn a_notification_is_as_good_as_a_poll() {
    let got = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete",{}}}}}"#, state("t", "working"));
    let completed = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{},"result":{{"content":[{{"type":"text","text":"4"}}]}}}}}}"#,
        state("t", "completed")
    );
    let other = completed.replace("\"t\"", "\"u\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("read -r line; echo '{got}'; echo '{other}'; echo '{completed}'; cat >/dev/null")]);
    let limits = FollowLimits::DEFAULT.poll_interval(3_600_000, 3_600_000).total_timeout(36_000_000);
    let mut client = Client::new(Child::spawn(command, &PROFILE).unwrap(), Ignore);
    client.connect_as(Revision::V2026_07_28).unwrap();
    let mut task = TaskFollower::resume(TaskHandle::new("t", Revision::V2026_07_28), limits);
    assert_eq!(text(&mut client, &mut task), "4");
}

/// The result of `tasks/get` or the params of a notification.
fn state(id: &str, status: &str) -> String {
    format!(r#""taskId":"{id}","status":"{status}","createdAt":"","lastUpdatedAt":"","ttlMs":null"#)
}

/// Returns a shell command that answers the request with this id.
fn answers(id: u32, result: &str) -> String {
    format!(r#"echo '{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{result}}}}}'"#)
}

/// Returns a client of a server that is a shell script.
fn scripted(script: &str) -> Client<'static, Child<'static>, Ignore> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    let mut client = Client::new(Child::spawn(command, &PROFILE).unwrap(), Ignore);
    client.connect_as(Revision::V2026_07_28).unwrap();
    client
}

fn followed(id: &str, limits: FollowLimits) -> TaskFollower {
    TaskFollower::resume(TaskHandle::new(id, Revision::V2026_07_28), limits)
}

/// The last notification about each task that was followed is kept until it is followed again.
#[test]
fn a_notification_between_two_looks_is_kept() {
    let completed = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{},"result":{{"content":[{{"type":"text","text":"{id}"}}]}}}}}}"#,
            state(id, "completed")
        )
    };
    let mut client = scripted(&format!(
        "read -r line; {}; read -r line; {}; read -r line; echo '{}'; echo '{}'; {}; cat >/dev/null",
        answers(1, &state("t", "working")),
        answers(2, &state("u", "working")),
        completed("u"),
        completed("t"),
        answers(3, r#""content":[]"#),
    ));
    let limits = FollowLimits::DEFAULT.poll_interval(3_600_000, 3_600_000).total_timeout(36_000_000);
    let [mut t, mut u] = ["t", "u"].map(|id| followed(id, limits));
    for task in [&mut t, &mut u] {
        assert!(matches!(event(&mut client, task), TaskEvent::Status { status: TaskStatus::Working, .. }));
    }
    call(&mut client, "any");
    assert_eq!(text(&mut client, &mut u), "u");
    // That about another task is not its result.
    assert_eq!(text(&mut client, &mut t), "t");
}

/// Each of two tasks gets the answers to its own requests, also if another one is followed before they come.
#[test]
fn two_tasks_that_are_followed_in_turn() {
    let read = "read -r line; ";
    let mut client = scripted(&format!(
        // `tasks/get` of one, its cancellation, the same of the other one, then `tasks/get` of the first one again.
        "{}{}; {}; cat >/dev/null",
        read.repeat(5),
        answers(2, &state("u", "completed")),
        answers(3, &state("t", "working")),
    ));
    let [mut t, mut u] = ["t", "u"].map(|id| followed(id, LIMITS));
    for task in [&mut t, &mut u] {
        assert_eq!(client.follow(task, Duration::ZERO).unwrap(), None);
    }
    let working = TaskEvent::Status { status: TaskStatus::Working, message: None };
    assert_eq!(event(&mut client, &mut t), working);
}

/// Another server does not know the task. A client whose server has ended says so.
#[test]
fn a_server_that_ends_takes_its_tasks_with_it() {
    let mut client = child();
    let mut task = TaskFollower::new(begin(&mut client), LIMITS);
    event(&mut client, &mut task);
    client.transport.end();
    let lost = client.follow(&mut task, PATIENCE).unwrap_err();
    assert!(lost.lost().is_some(), "{lost}");
    task.reconnected();
    let mut client = child();
    assert_eq!(event(&mut client, &mut task), TaskEvent::Ended(TaskEnd::Gone));
}

#[cfg(feature = "http")]
mod http {
    use super::*;
    use mcp_sansio_blocking::client::Http;
    use mcp_sansio_blocking::http::{HttpServer, Stopper};
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
            server.serve(&service(), &mut world).unwrap();
            world
        });
        Running { url, stopper, thread }
    }

    impl Running {
        fn stop(self) -> World {
            self.stopper.stop();
            self.thread.join().unwrap()
        }
    }

    fn connect(url: &str) -> Client<'static, Http<'static>, Ignore> {
        let mut client = Client::new(Http::new(url, &PROFILE).unwrap(), Ignore);
        client.connect().unwrap();
        client
    }

    #[test]
    fn over_http() {
        let server = start("127.0.0.1:0", World::new());
        a_whole_life(&mut connect(&server.url));
        server.stop();
    }

    /// The program ends, and starts again with the text of the handle.
    #[test]
    fn a_kept_handle_resumes() {
        let server = start("127.0.0.1:0", World::new());
        let mut client = connect(&server.url);
        let mut task = TaskFollower::new(begin(&mut client), LIMITS);
        call(&mut client, "ask");
        while !matches!(event(&mut client, &mut task), TaskEvent::Asked(_)) {}
        task.answer("sure", &ClientResult::decline()).unwrap();
        // The answer is sent; there is no event until the task has ended or works again.
        event(&mut client, &mut task);
        let kept = task.handle().to_string();
        assert!(kept.contains("sure"), "{kept}");
        drop((client, task));

        let mut client = connect(&server.url);
        call(&mut client, "finish");
        let mut task = TaskFollower::resume(kept.parse().unwrap(), LIMITS);
        assert_eq!(text(&mut client, &mut task), "done, perhaps");
        server.stop();
    }

    /// The server is away for a while.
    #[test]
    fn a_reconnect_continues() {
        let server = start("127.0.0.1:0", World::new());
        let mut client = connect(&server.url);
        let mut task = TaskFollower::new(begin(&mut client), LIMITS.failures(2));
        event(&mut client, &mut task);
        let address = server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let world = server.stop();
        let lost = client.follow(&mut task, PATIENCE).unwrap_err();
        assert!(lost.lost().is_some(), "{lost}");
        let server = start(&address, world);
        task.reconnected();
        call(&mut client, "finish");
        assert_eq!(text(&mut client, &mut task), "done");
        server.stop();
    }
}
