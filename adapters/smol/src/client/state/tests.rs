use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::task::Wake;
use std::time::Duration;

use futures_lite::StreamExt;
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::{ListToolsResult, ToolView};
use mcp_sansio::client::{ClientInfo, LineClient};
use mcp_sansio::error::RpcError;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::memory::Store;
use mcp_sansio::protocol::{ClientCapability, LoggingLevel, Method};
use mcp_sansio::revision::Revisions;

use super::*;
use crate::client::{
    Client, ClientOptions, Driver, ExcludedTool, IN_FLIGHT, Ignore, OwnedEvent, StopSignal, SubscriptionEvent, Trace,
};
use mcp_sansio_host::{Backlog, TransportState};

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
static OLDER: ClientInfo<'static> = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_11_25));

/// All that a test sets and sees of its transport.
#[derive(Default)]
struct Desk {
    is_full: bool,
    is_settling: bool,
    settle: Duration,
    /// There may be more to do at once.
    more: bool,
    /// The server has closed the connection.
    ends: bool,
    detail: &'static str,
    /// Lines of the server.
    input: String,
    /// Lines of the client.
    output: String,
    runs: usize,
    /// The time of the last run.
    at: Millis,
    /// A deadline that is never met.
    due: Option<Millis>,
    /// The steps of closing, in order.
    closing: Vec<&'static str>,
    /// Closing takes time.
    is_slow: bool,
    is_traced: bool,
}

impl Desk {
    /// Returns how often something was written.
    fn count(&self, what: &str) -> usize {
        self.output.matches(what).count()
    }

    /// The server answers the last request.
    fn answer(&mut self, member: &str) {
        let line = self.output.lines().rfind(|line| line.contains("\"id\"")).unwrap();
        let id = Raw::parse(line.as_bytes()).unwrap().get("id").unwrap();
        self.input = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{member}}}\n");
    }
}

/// A transport that does what its desk says.
struct Scripted {
    session: LineClient<'static, Backlog>,
    desk: Arc<Mutex<Desk>>,
}

impl TransportState<'static, Trace> for Scripted {
    fn handle(&mut self) -> ClientHandle<'_, 'static> {
        self.session.handle()
    }
    fn engine(&self) -> &mcp_sansio::client::Client<'static> {
        &self.session.client
    }
    fn next_deadline(&self) -> Option<Millis> {
        self.session.client.next_deadline().into_iter().chain(self.desk.lock().unwrap().due).min()
    }
    fn is_full(&mut self) -> bool {
        self.desk.lock().unwrap().is_full
    }
    fn explain(&self, _: TransportError) -> String {
        self.desk.lock().unwrap().detail.to_owned()
    }
    fn is_settling(&self) -> bool {
        self.desk.lock().unwrap().is_settling
    }
    fn settle_time(&self) -> Duration {
        self.desk.lock().unwrap().settle
    }
    fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        Some(format!("left out: {}", tool.name()))
    }
    fn excluded(&self) -> Vec<ExcludedTool> {
        vec![ExcludedTool::new("a".to_owned(), "it is bad".to_owned())]
    }
    fn trace(&mut self, _: Trace) {
        self.desk.lock().unwrap().is_traced = true;
    }
}

impl Transport for Scripted {
    fn state(&self) -> &dyn TransportState<'static, Trace> {
        self
    }
    fn state_mut(&mut self) -> &mut dyn TransportState<'static, Trace> {
        self
    }
    fn poll_run(&mut self, now: Millis, _: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool {
        let mut desk = self.desk.lock().unwrap();
        desk.runs += 1;
        desk.at = now;
        let input = std::mem::take(&mut desk.input);
        self.session.space()[..input.len()].copy_from_slice(input.as_bytes());
        self.session.filled(input.len());
        if desk.ends {
            self.session.end_of_input();
        }
        let _ = self.session.run(now, handler);
        let n = self.session.out.pending().len();
        desk.output.push_str(std::str::from_utf8(self.session.out.pending()).unwrap());
        self.session.out.sent(n);
        desk.more
    }
    fn begin_close(&mut self, _: Millis) {
        self.desk.lock().unwrap().closing.push("begin");
    }
    fn poll_close(&mut self, _: Millis, _: &mut Context<'_>) -> Poll<Option<ChildExit>> {
        let mut desk = self.desk.lock().unwrap();
        desk.closing.push("poll");
        match desk.is_slow {
            true => Poll::Pending,
            false => Poll::Ready(Some(ChildExit::new(None, StopSignal::Kill))),
        }
    }
}

fn scripted(info: &'static ClientInfo<'static>, limit: usize) -> (Scripted, Arc<Mutex<Desk>>) {
    let desk = Arc::<Mutex<Desk>>::default();
    let input = LineBuffer::new(Store::growing(1 << 20));
    let engine = ClientOptions::DEFAULT.engine(info, IN_FLIGHT);
    let session = LineClient::new(input, engine, Backlog::new(limit));
    (Scripted { session, desk: Arc::clone(&desk) }, desk)
}

/// A task that counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Task(Arc<Count>, Waker);

impl Task {
    fn new() -> Self {
        let count = Arc::new(Count::default());
        Task(Arc::clone(&count), Waker::from(count))
    }

    fn cx(&self) -> Context<'_> {
        Context::from_waker(&self.1)
    }

    /// Returns how often it was woken since the last look.
    fn woken(&self) -> usize {
        self.0.0.swap(0, Ordering::SeqCst)
    }
}

/// A client and its transport.
struct Scene {
    state: State,
    desk: Arc<Mutex<Desk>>,
}

impl Scene {
    /// Makes a client whose clock stands at 0. No line is begun while `limit` bytes wait.
    fn with(info: &'static ClientInfo<'static>, limit: usize) -> Self {
        let (transport, desk) = scripted(info, limit);
        let mut state = State::new(Box::new(transport), Box::new(Ignore));
        state.started = Instant::now() + Duration::from_secs(3600);
        Scene { state, desk }
    }

    /// A client of 2026-07-28 that is connected.
    fn open() -> Self {
        let mut scene = Scene::with(&PROFILE, usize::MAX);
        scene.state.connect(Some(Revision::V2026_07_28)).unwrap();
        scene.wake();
        scene
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap()
    }

    /// Sets the time since the start of the client. From now on its clock goes.
    fn pass(&mut self, seconds: u64) {
        self.state.started = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
    }

    /// Wakes as is done when the lock is released.
    fn wake(&mut self) {
        std::mem::take(&mut self.state.wakes).wake();
    }

    fn run(&mut self) -> bool {
        let more = self.state.run(&mut Context::from_waker(Waker::noop()));
        self.wake();
        more
    }

    fn begin(&mut self) -> Ticket {
        let ticket = self.state.begin(&Request::call("any"), None);
        self.wake();
        ticket
    }

    fn poll(&mut self, ticket: &mut Ticket, task: &Task) -> Poll<Result<OwnedResult, ClientError>> {
        let polled = self.state.poll_ticket(ticket, &task.cx());
        self.wake();
        polled
    }

    fn opened(&mut self, task: &Task) -> Poll<Result<Arc<ServerHello>, ClientError>> {
        self.state.poll_opened(&task.cx())
    }
}

const COMPLETE: &str = r#""result":{"resultType":"complete","content":[]}"#;
const HELLO: &str =
    r#""result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}"#;
const LOGGED: &str =
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n";

#[track_caller]
fn lost(error: &ClientError) -> (TransportError, &str) {
    match error {
        ClientError::Lost { why, detail } => (*why, detail),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn error<T>(polled: Poll<Result<T, ClientError>>) -> ClientError {
    match polled {
        Poll::Ready(Err(error)) => error,
        _ => panic!("no error"),
    }
}

const fn waits(ticket: &Ticket) -> bool {
    matches!(ticket, Ticket::Waiting(..))
}

/// The first request of a connection waits for the stream and for the time, whichever comes first, and then no more.
#[test]
fn requests_wait_for_the_stream_while_it_is_opened_and_there_is_time() {
    for (is_settling, until, waits) in [(true, 1, true), (true, 0, false), (false, Millis::MAX, false)] {
        let mut scene = Scene::open();
        scene.desk().is_settling = is_settling;
        scene.state.outcomes.settles = Some(until);
        assert_eq!(scene.state.is_settling(), waits, "{is_settling} {until}");
        assert_eq!(scene.state.outcomes.settles.is_some(), waits);
    }
}

#[test]
fn requests_wait_while_the_transport_is_full_or_opens_its_stream() {
    for (is_full, is_settling) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut scene = Scene::open();
        (scene.desk().is_full, scene.desk().is_settling) = (is_full, is_settling);
        scene.state.outcomes.settles = Some(9);
        let ticket = scene.begin();
        assert_eq!(waits(&ticket), is_full || is_settling);
        assert_eq!(scene.state.outcomes.count() == 0, is_full || is_settling);
    }
}

/// In order, each when it is its turn; those that leave let the next one go on.
#[test]
fn requests_that_wait_are_sent_in_order() {
    let mut scene = Scene::open();
    scene.desk().is_full = true;
    let driver = Task::new();
    scene.state.set_driver(&driver.cx());
    let tasks = [(); 4].map(|()| Task::new());
    let mut tickets = [(); 4].map(|()| scene.begin());
    assert!(driver.woken() > 0, "the driver has to look for the time of the line");
    for (ticket, task) in tickets.iter_mut().zip(&tasks) {
        for _ in 0..2 {
            assert!(scene.poll(ticket, task).is_pending());
        }
    }
    let woken = || [0, 1, 2, 3].map(|at: usize| tasks[at].woken());
    assert_eq!(woken(), [0; 4], "they have nothing to do");
    scene.desk().is_full = false;
    assert!(scene.poll(&mut tickets[1], &tasks[1]).is_pending());
    assert!(waits(&tickets[1]), "it is not the first");
    assert!(scene.poll(&mut tickets[0], &tasks[0]).is_pending());
    assert!(matches!(tickets[0], Ticket::Sent(_)));
    assert_eq!((woken()[1..].to_vec(), scene.state.line.len()), (vec![1, 0, 0], 3));

    scene.desk().is_full = true;
    assert!(scene.poll(&mut tickets[1], &tasks[1]).is_pending());
    scene.state.give_up(&tickets[2]);
    scene.wake();
    // Its own waker is not dropped under the lock: it is woken.
    assert_eq!((woken()[1..].to_vec(), scene.state.line.len()), (vec![0, 1, 0], 2));
    scene.state.give_up(&tickets[1]);
    scene.wake();
    assert_eq!((woken()[3], scene.state.line.len()), (1, 1), "the next one is woken");
    scene.state.give_up(&tickets[3]);
    assert!(scene.state.line.is_empty());
    assert_eq!(scene.state.outcomes.count(), 1);
}

/// A future that goes to another task wakes that one, and the old waker is kept until the lock is released.
#[test]
fn a_request_that_waits_wakes_the_task_that_polled_it_last() {
    let mut scene = Scene::open();
    scene.desk().is_full = true;
    let (one, other) = (Task::new(), Task::new());
    let mut ticket = scene.begin();
    assert!(scene.poll(&mut ticket, &one).is_pending());
    assert!(scene.poll(&mut ticket, &other).is_pending());
    assert_eq!((one.woken(), other.woken()), (1, 0));
    scene.state.admit();
    scene.wake();
    assert_eq!((one.woken(), other.woken()), (0, 1));
    // The same after it was sent.
    scene.desk().is_full = false;
    assert!(scene.poll(&mut ticket, &one).is_pending());
    assert!(scene.poll(&mut ticket, &other).is_pending());
    scene.run();
    scene.desk().answer(COMPLETE);
    scene.run();
    assert_eq!((one.woken(), other.woken()), (0, 1));
    assert!(matches!(scene.poll(&mut ticket, &other), Poll::Ready(Ok(_))));
    assert_eq!(scene.state.outcomes.count(), 0);
    let again = error(scene.poll(&mut ticket, &other));
    assert!(matches!(again, ClientError::NotSent(SendError::Stale)), "{again:?}");
}

/// The time of those that set none begins with the line, and again when one of them is sent.
#[test]
fn the_line_has_patience_while_it_moves() {
    let mut scene = Scene::open();
    scene.desk().is_full = true;
    scene.pass(100);
    let mut first = scene.begin();
    let second = scene.begin();
    let due = scene.state.line_due().unwrap();
    assert!((160_000..200_000).contains(&due), "{due}");
    scene.pass(150);
    scene.desk().is_full = false;
    assert!(scene.poll(&mut first, &Task::new()).is_pending());
    assert!(waits(&second));
    let due = scene.state.line_due().unwrap();
    assert!((210_000..300_000).contains(&due), "{due}");
}

#[test]
fn requests_that_wait_too_long_are_woken_once_and_end() {
    let mut scene = Scene::open();
    scene.desk().is_full = true;
    let tasks = [(); 3].map(|()| Task::new());
    let mut tickets = [(); 3].map(|()| scene.begin());
    for (ticket, task) in tickets.iter_mut().zip(&tasks) {
        assert!(scene.poll(ticket, task).is_pending());
    }
    (scene.state.line[1].own, scene.state.line[2].own) = (Some(0), Some(5));
    assert_eq!(scene.state.line_due(), Some(0));
    scene.state.admit();
    scene.wake();
    assert_eq!([0, 1, 2].map(|at: usize| tasks[at].woken()), [1, 1, 0]);
    assert_eq!(scene.state.line_due(), Some(5), "the driver waits for the next one");
    let late = error(scene.poll(&mut tickets[1], &tasks[1]));
    assert_eq!((lost(&late).0, scene.state.line.len()), (TransportError::TimedOut, 2));
    // Woken for another reason, it waits on.
    scene.state.line[1].overdue = true;
    assert_eq!(scene.state.line_due(), Some(PATIENCE));
    assert!(scene.poll(&mut tickets[2], &tasks[2]).is_pending());
    assert_eq!(scene.state.line_due(), Some(5));
}

#[test]
fn the_line_is_due_when_the_time_for_the_stream_is_over() {
    let mut scene = Scene::open();
    scene.desk().is_settling = true;
    scene.state.outcomes.settles = Some(3);
    assert_eq!(scene.state.line_due(), None);
    let _ticket = scene.begin();
    assert_eq!(scene.state.line_due(), Some(3));
}

#[test]
fn those_that_open_the_connection_wait_until_it_is_open() {
    let mut scene = Scene::with(&OLDER, usize::MAX);
    let (driver, tasks) = (Task::new(), [Task::new(), Task::new()]);
    scene.state.set_driver(&driver.cx());
    for _ in 0..2 {
        scene.state.connect(None).unwrap();
        scene.run();
    }
    assert!(driver.woken() > 0);
    assert_eq!(scene.desk().count("\"initialize\""), 1);
    for at in [0, 0, 1] {
        assert!(scene.opened(&tasks[at]).is_pending());
    }
    assert!(waits(&scene.begin()), "a request waits for the connection");
    scene.desk().detail = "nothing is known";
    let refused = scene.state.listen(&SubscriptionFilter::new().tools()).unwrap_err();
    assert!(matches!(refused, ClientError::NotSent(SendError::NotConnected)), "{refused:?}");
    scene.desk().input = LOGGED.to_owned();
    scene.run();
    assert_eq!([0, 1].map(|at: usize| tasks[at].woken()), [0, 0], "it is not open");
}

#[test]
fn the_answer_of_the_server_opens_the_connection() {
    for settle in [Duration::ZERO, Duration::from_secs(5)] {
        let mut scene = Scene::with(&OLDER, usize::MAX);
        scene.desk().settle = settle;
        let tasks = [Task::new(), Task::new()];
        scene.state.connect(None).unwrap();
        scene.run();
        for at in [0, 0, 1] {
            assert!(scene.opened(&tasks[at]).is_pending());
        }
        let mut ticket = scene.begin();
        let waiting = Task::new();
        assert!(scene.poll(&mut ticket, &waiting).is_pending());
        scene.desk().answer(HELLO);
        scene.run();
        assert_eq!([0, 1].map(|at: usize| tasks[at].woken()), [1, 1], "each task once");
        assert!(waiting.woken() > 0);
        for task in &tasks {
            let Poll::Ready(Ok(hello)) = scene.opened(task) else { panic!("it is open") };
            assert_eq!(hello.revision(), Revision::V2025_11_25);
        }
        let until = (!settle.is_zero()).then_some(5_000);
        assert_eq!(scene.state.outcomes.settles, until, "requests wait for the stream");
    }
}

#[test]
fn a_server_that_refuses_is_an_error_of_those_that_connect() {
    let mut scene = Scene::with(&OLDER, usize::MAX);
    let task = Task::new();
    scene.state.connect(None).unwrap();
    scene.run();
    assert!(scene.opened(&task).is_pending());
    scene.desk().answer(r#""error":{"code":-32000,"message":"go away"}"#);
    scene.run();
    assert_eq!(task.woken(), 1);
    let refused = error(scene.opened(&task));
    assert!(refused.to_string().contains("go away"), "{refused}");
    assert!(matches!(scene.begin(), Ticket::Failed(_)));
    // It can be tried again.
    scene.state.connect(None).unwrap();
    assert!(scene.opened(&task).is_pending());
    scene.run();
    assert_eq!(scene.desk().count("\"initialize\""), 2);
}

#[test]
fn with_a_known_revision_the_connection_is_open_at_once() {
    let mut scene = Scene::with(&PROFILE, usize::MAX);
    let (driver, task) = (Task::new(), Task::new());
    scene.state.set_driver(&driver.cx());
    scene.state.connect(Some(Revision::V2026_07_28)).unwrap();
    scene.wake();
    assert_eq!(driver.woken(), 1);
    let Poll::Ready(Ok(hello)) = scene.opened(&task) else { panic!("it is open") };
    assert_eq!(hello.revision(), Revision::V2026_07_28);
    // A known revision that has to be opened with a message.
    let mut scene = Scene::with(&OLDER, usize::MAX);
    scene.state.connect(Some(Revision::V2025_11_25)).unwrap();
    assert!(scene.opened(&task).is_pending());
    assert!(scene.state.outcomes.hello.is_none());
}

/// Its error was not taken, since the future that waited for it was dropped.
#[test]
fn the_failure_of_an_earlier_attempt_is_forgotten() {
    let mut scene = Scene::with(&PROFILE, usize::MAX);
    scene.state.connect(None).unwrap();
    scene.run();
    // The probe, then `initialize`.
    for _ in 0..2 {
        scene.desk().answer(r#""error":{"code":-32601,"message":"go away"}"#);
        scene.run();
        scene.run();
    }
    assert!(!scene.state.outcomes.is_opening());
    scene.state.connect(Some(Revision::V2026_07_28)).unwrap();
    assert!(matches!(scene.opened(&Task::new()), Poll::Ready(Ok(_))));
}

/// The error names the reason that the transport knows.
#[test]
fn without_a_connection_the_error_says_why() {
    for detail in ["", "the cat has eaten it"] {
        let mut scene = Scene::with(&PROFILE, usize::MAX);
        scene.desk().detail = detail;
        let mut ticket = scene.begin();
        let errors = [
            error(scene.poll(&mut ticket, &Task::new())),
            scene.state.listen(&SubscriptionFilter::new().tools()).unwrap_err(),
            error(scene.opened(&Task::new())),
        ];
        for error in &errors {
            match detail.is_empty() {
                true => assert!(matches!(error, ClientError::NotSent(SendError::NotConnected)), "{error:?}"),
                false => assert_eq!(lost(error), (TransportError::Closed, detail)),
            }
        }
    }
}

#[test]
fn a_lost_connection_is_explained_to_all_that_wait() {
    const WHY: &str = "the cat has eaten it";
    let mut scene = Scene::open();
    let tasks = [(); 2].map(|()| Task::new());
    let mut tickets = [(); 2].map(|()| scene.begin());
    for (ticket, task) in tickets.iter_mut().zip(&tasks) {
        assert!(scene.poll(ticket, task).is_pending());
    }
    let token = scene.state.listen(&SubscriptionFilter::new().tools()).unwrap();
    (scene.desk().detail, scene.desk().ends) = (WHY, true);
    scene.run();
    for (ticket, task) in tickets.iter_mut().zip(&tasks) {
        assert_eq!(task.woken(), 1);
        assert_eq!(lost(&error(scene.poll(ticket, task))), (TransportError::Closed, WHY));
    }
    let heard = scene.state.listens.get_mut(&token).unwrap();
    match heard.poll(&Task::new().cx()) {
        Poll::Ready(Some(Err(error))) => assert_eq!(lost(&error), (TransportError::Closed, WHY)),
        other => panic!("{other:?}"),
    }
    // While the connection is opened.
    let mut scene = Scene::with(&OLDER, usize::MAX);
    scene.state.connect(None).unwrap();
    scene.run();
    (scene.desk().detail, scene.desk().ends) = (WHY, true);
    scene.run();
    assert_eq!(lost(&error(scene.opened(&Task::new()))), (TransportError::Closed, WHY));
}

#[test]
fn a_change_wakes_the_task_that_listens() {
    let mut scene = Scene::open();
    let task = Task::new();
    let driver = Task::new();
    scene.state.set_driver(&driver.cx());
    let token = scene.state.listen(&SubscriptionFilter::new().tools()).unwrap();
    scene.wake();
    assert_eq!(driver.woken(), 1);
    scene.run();
    let poll = |scene: &mut Scene| match scene.state.listens.get_mut(&token).unwrap().poll(&task.cx()) {
        Poll::Ready(Some(Ok(change))) => Some(change),
        Poll::Ready(other) => panic!("{other:?}"),
        Poll::Pending => None,
    };
    assert_eq!(poll(&mut scene), None);
    let id = {
        let desk = scene.desk();
        let line = desk.output.lines().next().unwrap();
        Raw::parse(line.as_bytes()).unwrap().get("id").unwrap().to_string()
    };
    let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let note = |method: &str, rest: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\",\"params\":{{{rest}{meta}}}}}\n")
    };
    scene.desk().input = note("subscriptions/acknowledged", r#""notifications":{"toolsListChanged":true},"#);
    scene.run();
    assert_eq!(task.woken(), 1);
    assert!(matches!(poll(&mut scene), Some(SubscriptionEvent::Listening(agreed)) if agreed.tools));
    assert_eq!((poll(&mut scene), task.woken()), (None, 0));
    scene.desk().input = note("tools/list_changed", "");
    scene.run();
    assert_eq!(task.woken(), 1);
    assert_eq!(poll(&mut scene), Some(SubscriptionEvent::Tools));
}

#[test]
fn requests_that_are_given_up_are_cancelled_if_they_have_no_outcome() {
    let mut scene = Scene::open();
    let driver = Task::new();
    let done = scene.begin();
    scene.run();
    scene.desk().answer(COMPLETE);
    scene.run();
    scene.state.give_up(&done);
    let ticket = scene.begin();
    scene.run();
    scene.state.set_driver(&driver.cx());
    assert_eq!(scene.desk().count("notifications/cancelled"), 0);
    scene.state.give_up(&ticket);
    scene.wake();
    assert_eq!(driver.woken(), 1);
    scene.run();
    assert_eq!(scene.desk().count("notifications/cancelled"), 1);
    assert_eq!(scene.state.outcomes.count(), 0);
}

#[test]
fn a_cancellation_that_does_not_fit_is_sent_later_and_once() {
    let mut scene = Scene::with(&PROFILE, 1);
    scene.state.connect(Some(Revision::V2026_07_28)).unwrap();
    let ticket = scene.begin();
    assert!(matches!(ticket, Ticket::Sent(_)));
    assert!(waits(&scene.begin()), "one line is enough");
    scene.state.give_up(&ticket);
    scene.state.cancel_again();
    assert_eq!(scene.state.given_up.len(), 1);
    for _ in 0..3 {
        scene.run();
    }
    assert_eq!((scene.desk().count("notifications/cancelled"), scene.state.given_up.len()), (1, 0));
}

/// All tasks are woken, each once, and learn the reason.
#[test]
fn the_end_of_the_driver_wakes_all() {
    const WHY: &str = "the cat has eaten it";
    let mut scene = Scene::open();
    scene.desk().detail = WHY;
    let [driver, sent, waiting, opener, closer, listener] = [(); 6].map(|()| Task::new());
    let mut ticket = scene.begin();
    assert!(scene.poll(&mut ticket, &sent).is_pending());
    let token = scene.state.listen(&SubscriptionFilter::new().tools()).unwrap();
    assert!(scene.state.listens.get_mut(&token).unwrap().poll(&listener.cx()).is_pending());
    scene.desk().is_full = true;
    let mut queued = scene.begin();
    assert!(scene.poll(&mut queued, &waiting).is_pending());
    scene.state.outcomes.begin();
    assert!(scene.opened(&opener).is_pending());
    for _ in 0..2 {
        assert!(scene.state.poll_over(&closer.cx()).is_pending());
    }
    scene.state.set_driver(&driver.cx());
    scene.wake();
    assert!(scene.state.finish().is_some());
    scene.wake();
    let tasks = [&driver, &sent, &waiting, &opener, &closer, &listener];
    assert_eq!(tasks.map(Task::woken), [1; 6]);
    assert!(scene.state.finish().is_none());
    assert!(!scene.state.outcomes.is_opening());
    assert!(scene.state.poll_over(&closer.cx()).is_ready());
    let mut later = scene.begin();
    let errors = [
        error(scene.poll(&mut ticket, &sent)),
        error(scene.poll(&mut queued, &waiting)),
        error(scene.opened(&opener)),
        error(scene.poll(&mut later, &sent)),
        scene.state.connect(None).unwrap_err(),
    ];
    for error in &errors {
        assert_eq!(lost(error), (TransportError::Closed, WHY));
    }
    match scene.state.listens.get_mut(&token).unwrap().poll(&listener.cx()) {
        Poll::Ready(Some(Err(error))) => assert_eq!(lost(&error), (TransportError::Closed, WHY)),
        other => panic!("{other:?}"),
    }
    assert!(!scene.run());
}

/// A turn of the driver ends after a while, so that other tasks run.
#[test]
fn a_transport_that_has_always_more_is_left_for_a_while() {
    let mut scene = Scene::open();
    assert!(!scene.run());
    assert_eq!(scene.desk().runs, 1);
    scene.desk().more = true;
    assert!(scene.run());
    assert_eq!(scene.desk().runs, 1 + TURNS);
}

/// A lone request is written at once; the driver is woken only if its timer is too late, or if there is more to do.
#[test]
fn the_driver_is_woken_for_a_lone_request_if_it_has_to_do_something() {
    let mut scene = Scene::open();
    scene.begin();
    let due = scene.state.sooner_than_alarm().unwrap();
    assert!(due > 0);
    for (alarm, more, is_woken) in [
        (None, false, true),
        (Some(0), false, false),
        (Some(due), false, false),
        (Some(due + 1), false, true),
        (Some(0), true, true),
    ] {
        let (mut scene, driver) = (Scene::open(), Task::new());
        scene.state.set_driver(&driver.cx());
        (scene.state.alarm, scene.desk().more) = (alarm, more);
        let _ticket = scene.begin();
        assert_eq!(scene.desk().count("tools/call"), 1, "{alarm:?}");
        assert_eq!(driver.woken() > 0, is_woken, "{alarm:?} {more}");
    }
}

#[test]
fn several_requests_and_a_closed_client_are_left_to_the_driver() {
    let (mut scene, driver) = (Scene::open(), Task::new());
    scene.state.set_driver(&driver.cx());
    scene.state.alarm = Some(0);
    let _tickets = [scene.begin(), scene.begin()];
    assert_eq!((scene.desk().count("tools/call"), driver.woken()), (1, 1));
    scene.run();
    assert_eq!(scene.desk().count("tools/call"), 2);

    let mut scene = Scene::open();
    scene.state.set_driver(&driver.cx());
    (scene.state.alarm, scene.state.closing) = (Some(0), true);
    let _ticket = scene.begin();
    assert_eq!((scene.desk().count("tools/call"), driver.woken()), (0, 1));
}

/// A task that is polled again reads from the connection itself, without the driver, if its request is the only one.
#[test]
fn the_answer_of_a_lone_request_is_read_in_its_task() {
    for is_lone in [true, false] {
        let (mut scene, driver, task) = (Scene::open(), Task::new(), Task::new());
        scene.state.set_driver(&driver.cx());
        let mut ticket = scene.begin();
        let _other = (!is_lone).then(|| scene.begin());
        let runs = scene.desk().runs;
        assert!(scene.poll(&mut ticket, &task).is_pending());
        assert_eq!(scene.desk().runs, runs, "it was just written");
        scene.desk().answer(COMPLETE);
        assert_eq!(scene.poll(&mut ticket, &task).is_ready(), is_lone);
        assert_eq!(task.woken(), 0);
    }
}

#[test]
fn the_driver_that_was_polled_last_is_woken() {
    let mut scene = Scene::open();
    let (one, other) = (Task::new(), Task::new());
    for task in [&one, &one, &other] {
        scene.state.set_driver(&task.cx());
        scene.wake();
    }
    // The old waker is kept until the lock is released.
    assert_eq!((one.woken(), other.woken()), (1, 0));
    scene.state.wake_driver();
    scene.wake();
    assert_eq!((one.woken(), other.woken()), (0, 1));
}

/// Deadlines of requests count from the time when they are sent.
#[test]
fn the_engine_knows_the_time_of_a_request() {
    let mut scene = Scene::open();
    scene.pass(100);
    let _ticket = scene.state.begin(&Request::call("any").timeout(7_000), None);
    let due = scene.state.sooner_than_alarm().unwrap();
    assert!((107_000..150_000).contains(&due), "{due}");
    let at = scene.state.instant(due).unwrap();
    assert_eq!(at.duration_since(scene.state.started), Duration::from_millis(due));
}

/// A client, its driver and its transport.
fn driven() -> (Client, Driver, Arc<Mutex<Desk>>) {
    let (talk, desk) = scripted(&PROFILE, usize::MAX);
    let (client, driver) = Client::new(talk, Ignore);
    (client, driver, desk)
}

fn turn(driver: &mut Driver, task: &Task) -> bool {
    std::pin::Pin::new(driver).poll(&mut task.cx()).is_ready()
}

/// A deadline that is due and stays due costs one turn of the driver each millisecond, and no more.
#[test]
fn a_deadline_that_is_not_met_makes_no_busy_loop() {
    let (_client, mut driver, desk) = driven();
    desk.lock().unwrap().due = Some(0);
    assert!(!turn(&mut driver, &Task::new()));
    let runs = desk.lock().unwrap().runs;
    assert!((2..200).contains(&runs), "{runs}");
}

#[test]
fn the_driver_runs_again_when_its_timer_fires() {
    let (_client, mut driver, desk) = driven();
    desk.lock().unwrap().due = Some(20);
    let timed = futures_lite::future::or(
        async {
            std::future::poll_fn(|cx| {
                let _ = std::pin::Pin::new(&mut driver).poll(cx);
                let mut desk = desk.lock().unwrap();
                if desk.runs < 2 {
                    return Poll::Pending;
                }
                desk.due = None;
                Poll::Ready(true)
            })
            .await
        },
        async {
            async_io::Timer::after(Duration::from_secs(10)).await;
            false
        },
    );
    assert!(async_io::block_on(timed), "it has not run again");
}

/// The next deadline may be later than the one for which the timer was set.
#[test]
fn the_timer_is_set_anew_after_it_has_fired() {
    let (_client, mut driver, desk) = driven();
    desk.lock().unwrap().due = Some(0);
    let mut runs = 0;
    let timed = futures_lite::future::or(
        std::future::poll_fn(|cx| {
            assert!(std::pin::Pin::new(&mut driver).poll(cx).is_pending());
            let mut desk = desk.lock().unwrap();
            // Two runs follow when the timer has fired, and another one at the second deadline.
            if runs == 0 {
                (runs, desk.due) = (desk.runs, Some(desk.at + 40));
            }
            if desk.runs < runs + 3 { Poll::Pending } else { Poll::Ready(true) }
        }),
        async {
            async_io::Timer::after(Duration::from_secs(10)).await;
            false
        },
    );
    assert!(async_io::block_on(timed), "it has not run again");
}

#[test]
fn a_driver_with_more_to_do_lets_other_tasks_run_and_comes_back() {
    let (_client, mut driver, desk) = driven();
    let task = Task::new();
    assert!(!turn(&mut driver, &task));
    assert_eq!(task.woken(), 0);
    desk.lock().unwrap().more = true;
    assert!(!turn(&mut driver, &task));
    assert_eq!(task.woken(), 1);
}

/// `begin_close` is called once, `poll_close` in each turn until it is ready. Then the driver ends, and `close` returns the outcome.
#[test]
fn the_driver_closes_the_connection_in_order() {
    for is_dropped in [true, false] {
        let (client, mut driver, desk) = driven();
        let (task, closer) = (Task::new(), Task::new());
        assert!(!turn(&mut driver, &task));
        assert!(desk.lock().unwrap().closing.is_empty());
        desk.lock().unwrap().is_slow = true;
        let mut close = None;
        if is_dropped {
            drop(client);
        } else {
            let closing = close.insert(Box::pin(async move { client.close().await }));
            assert!(closing.as_mut().poll(&mut closer.cx()).is_pending());
        }
        assert!(task.woken() > 0, "the driver is woken");
        for _ in 0..2 {
            assert!(!turn(&mut driver, &task));
        }
        assert_eq!(desk.lock().unwrap().closing, ["begin", "poll", "poll"]);
        desk.lock().unwrap().is_slow = false;
        assert!(turn(&mut driver, &task));
        assert_eq!(desk.lock().unwrap().closing, ["begin", "poll", "poll", "poll"]);
        if let Some(mut close) = close {
            assert_eq!(closer.woken(), 1);
            let Poll::Ready(Some(ended)) = close.as_mut().poll(&mut closer.cx()) else { panic!("it is closed") };
            assert_eq!(ended.after, StopSignal::Kill);
        }
    }
}

/// A transport in a box is the same transport.
#[test]
fn a_boxed_transport_does_what_its_transport_does() {
    let (talk, desk) = scripted(&PROFILE, usize::MAX);
    let mut boxed = Box::<dyn Transport>::from(talk);
    assert_eq!(
        (boxed.state_mut().is_full(), boxed.state().is_settling(), boxed.state().settle_time()),
        (false, false, Duration::ZERO)
    );
    assert_eq!((boxed.state().next_deadline(), boxed.state().explain(TransportError::Closed)), (None, String::new()));
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(!boxed.poll_run(0, cx, &mut Ignore));
    {
        let mut desk = desk.lock().unwrap();
        (desk.is_full, desk.is_settling, desk.more, desk.due) = (true, true, true, Some(7));
        (desk.settle, desk.detail) = (Duration::from_secs(1), "why");
    }
    assert_eq!(
        (boxed.state_mut().is_full(), boxed.state().is_settling(), boxed.state().settle_time()),
        (true, true, Duration::from_secs(1))
    );
    assert_eq!(
        (boxed.state().next_deadline(), boxed.state().explain(TransportError::Closed)),
        (Some(7), "why".to_owned())
    );
    assert!(boxed.poll_run(0, cx, &mut Ignore));
    let tool = OwnedResult::new(Method::ToolsList, Raw::constant(r#"{"tools":[{"name":"a","inputSchema":{}}]}"#));
    let tool = tool.view::<ListToolsResult<'_>>().unwrap().iter().next().unwrap().unwrap();
    assert_eq!(boxed.state().excludes(&tool).as_deref(), Some("left out: a"));
    assert_eq!(boxed.state().excluded(), [ExcludedTool::new("a".to_owned(), "it is bad".to_owned())]);
    boxed.state_mut().trace(Box::new(|_, _| {}));
    boxed.begin_close(0);
    assert!(boxed.poll_close(0, cx).is_ready());
    {
        let desk = desk.lock().unwrap();
        assert_eq!((desk.runs, desk.closing.as_slice(), desk.is_traced), (2, ["begin", "poll"].as_slice(), true));
    }
    let (client, _driver) = Client::new(boxed, Ignore);
    assert!(client.excludes(&tool).is_some());
}

/// The driver writes the messages that a task sends, and is woken for them.
#[test]
fn a_handle_wakes_the_driver_and_reports_what_cannot_be_sent() {
    static WITH_ROOTS: ClientInfo<'static> = OLDER.feature(ClientCapability::Roots).roots_changed();
    let (talk, desk) = scripted(&WITH_ROOTS, usize::MAX);
    let (handler, mut events) = crate::client::events(9);
    let (client, mut driver) = Client::new(talk, handler);
    let task = Task::new();
    assert!(client.server().is_none());
    assert!(matches!(client.roots_changed(), Err(ClientError::NotSent(_))));
    let opener = client.clone();
    let mut opening = Box::pin(async move { opener.connect().await });
    assert!(opening.as_mut().poll(&mut task.cx()).is_pending());
    assert!(!turn(&mut driver, &task));
    desk.lock().unwrap().answer(HELLO);
    assert!(!turn(&mut driver, &task));
    assert!(matches!(opening.as_mut().poll(&mut task.cx()), Poll::Ready(Ok(_))));
    assert_eq!(client.server().unwrap().revision(), Revision::V2025_11_25);
    task.woken();
    client.roots_changed().unwrap();
    assert_eq!(task.woken(), 1);
    assert!(!turn(&mut driver, &task));
    assert_eq!(desk.lock().unwrap().count("notifications/roots/list_changed"), 1);

    let question = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"roots/list\"}}\n");
    for (id, expected) in [(7, "\"id\":7,\"error\""), (8, "\"id\":8,\"result\"")] {
        desk.lock().unwrap().input = question(id);
        assert!(!turn(&mut driver, &task));
        let asked = loop {
            match futures_lite::future::block_on(events.next()) {
                Some(OwnedEvent::Asked(asked)) => break asked.id,
                Some(_) => {}
                None => panic!("it has ended"),
            }
        };
        let send = || match id {
            7 => client.refuse(asked, &RpcError::new(-32000, "no")),
            _ => client.reply(asked, &ClientResult::roots(&[])),
        };
        send().unwrap();
        assert!(matches!(send(), Err(ClientError::NotSent(SendError::Stale))));
        assert!(!turn(&mut driver, &task));
        assert_eq!(desk.lock().unwrap().count(expected), 1, "{}", desk.lock().unwrap().output);
    }
}

/// The server asks, and does not want the answer any more.
#[test]
fn a_question_that_is_withdrawn_is_an_event() {
    static WITH_ROOTS: ClientInfo<'static> = OLDER.feature(ClientCapability::Roots);
    let (talk, desk) = scripted(&WITH_ROOTS, usize::MAX);
    let (handler, events) = crate::client::events(9);
    let (client, mut driver) = Client::new(talk, handler);
    let task = Task::new();
    let mut opening = Box::pin(async { client.connect().await });
    assert!(opening.as_mut().poll(&mut task.cx()).is_pending());
    assert!(!turn(&mut driver, &task));
    desk.lock().unwrap().answer(HELLO);
    assert!(!turn(&mut driver, &task));
    let asked = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n";
    let params = r#"{"requestId":7,"reason":"too late"}"#;
    let withdrawn = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}\n");
    for line in [asked, &withdrawn] {
        line.clone_into(&mut desk.lock().unwrap().input);
        assert!(!turn(&mut driver, &task));
    }
    drop(opening);
    drop((client, driver));
    let events: Vec<_> = futures_lite::future::block_on(events.collect());
    let [OwnedEvent::Connected(_), OwnedEvent::Asked(asked), OwnedEvent::Withdrawn { question, reason }] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((asked.id, reason.as_deref()), (*question, Some("too late")));
}

/// From 2026-07-28 on the level is only noted, for later requests.
#[test]
fn the_level_of_a_log_goes_with_later_requests() {
    let (talk, desk) = scripted(&PROFILE, usize::MAX);
    let (client, mut driver) = Client::new(talk, Ignore);
    let task = Task::new();
    futures_lite::future::block_on(async {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        client.set_log_level(LoggingLevel::Error).await.unwrap();
    });
    assert!(!turn(&mut driver, &task));
    assert_eq!(desk.lock().unwrap().output, "");
    let _answer = client.request(Request::call("any"));
    assert!(!turn(&mut driver, &task));
    assert_eq!(desk.lock().unwrap().count("logLevel\":\"error\""), 1);
}
