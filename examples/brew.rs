//! A server with tasks, for clients of 2025-11-25 and of 2026-07-28: over stdio, and with `--http ADDRESS` over HTTP. The loop for
//! stdio is made with the standard library alone: a thread reads the input, and the loop waits for input or for the next step
//! of a task.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::json::Raw;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::server::{MessageLimits, Millis, RpcError, ServerChange};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_blocking::http::HttpServer;
use mcp_sansio_extensions::tasks::{
    HasTasks, TaskOptions, TaskSupport, TaskToken, Tasks, begin, complete, extension, task_support, wants_task,
};

/// The most tasks, with those that have ended and are kept for their clients.
const TASKS: usize = 64;

/// The bytes for what belongs to them.
const BYTES: usize = 64 * 1024;

/// The time that one cup takes.
const CUP: Millis = 200;

struct Kitchen {
    tasks: Tasks<'static>,
    jobs: Vec<Job>,
    random: File,
}

/// The work of a task, and the time of its next step; `None` while it waits for the client.
struct Job {
    token: TaskToken,
    work: Work,
    due: Option<Millis>,
}

#[derive(Clone, Copy)]
enum Work {
    Brew(u64),
    Break,
    Ask,
    Serve,
    Run,
}

impl HasTasks for Kitchen {
    const LEGACY: bool = true;

    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

/// `brew`: a task if the client wants one.
fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    let Some(cups) = call.arguments().get("cups").and_then(|cups| cups.u64()).filter(|cups| (1..=100).contains(cups))
    else {
        return call.error("cups is a number from 1 to 100");
    };
    if wants_task(kitchen, call) {
        return start(kitchen, call, Work::Brew(cups), cups * CUP);
    }
    call.text(format_args!("{cups} cups of instant coffee"))
}

/// `break`: the tool fails.
fn break_down(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    start(kitchen, call, Work::Break, CUP)
}

/// `order`: the task asks the user.
fn order(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    call.need(ClientCapability::ElicitForm)?;
    start(kitchen, call, Work::Ask, CUP)
}

/// `run`: the task runs until it is cancelled.
fn run(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    start(kitchen, call, Work::Run, CUP)
}

fn start(kitchen: &mut Kitchen, call: &mut Call<'_>, work: Work, wait: Millis) -> HandlerResult {
    let mut random = [0; 16];
    if kitchen.random.read_exact(&mut random).is_err() {
        return Err(RpcError::internal("There are no random bytes").into());
    }
    let options = TaskOptions::new(random).ttl(600_000).poll_interval(100).message("The water is getting hot");
    let (token, done) = begin(kitchen, call, &options)?;
    kitchen.jobs.push(Job { token, work, due: Some(call.now() + wait) });
    Ok(done)
}

static TOOLS: [Tool<Kitchen>; 4] = [
    task_support(Tool::new("brew", "Brews coffee", brew), TaskSupport::Optional).input(
        r#"{"type":"object","properties":{"cups":{"type":"integer","minimum":1,"maximum":100}},"required":["cups"]}"#,
    ),
    task_support(Tool::new("break", "Breaks down", break_down), TaskSupport::Required),
    task_support(Tool::new("order", "Asks for the milk", order), TaskSupport::Required),
    task_support(Tool::new("run", "Runs until it is cancelled", run), TaskSupport::Required),
];
static EXTENSIONS: [Extension<Kitchen>; 1] = [extension()];
const SERVICE: Service<'static, Kitchen> = Service::new("brew", "1.0").tools(&TOOLS).extend(&EXTENSIONS);

const MILK: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"milk":{"type":"boolean"}},"required":["milk"]}"#);

/// Does the steps that are due. Returns the time of the next step.
fn go_on(kitchen: &mut Kitchen, has_ended: bool, now: Millis) -> Option<Millis> {
    kitchen.tasks.expire(now);
    while let Some(token) = kitchen.tasks.next_answered() {
        let answered = kitchen.jobs.iter_mut().filter(|job| job.token == token);
        answered.for_each(|job| (job.work, job.due) = (Work::Serve, Some(now)));
    }
    while let Some(token) = kitchen.tasks.next_cancelled() {
        kitchen.jobs.retain(|job| job.token != token);
    }
    if has_ended {
        // Their client is gone and cannot cancel them.
        for job in kitchen.jobs.extract_if(.., |job| matches!(job.work, Work::Run)) {
            let _ = kitchen.tasks.fail(job.token, now, &RpcError::internal("The server ends"));
        }
    }
    while let Some(at) = kitchen.jobs.iter().position(|job| job.due.is_some_and(|due| due <= now)) {
        let job = kitchen.jobs.swap_remove(at);
        step(kitchen, job, now);
    }
    kitchen.jobs.iter().filter_map(|job| job.due).min()
}

/// Does one step of a task. A task that has ended meanwhile needs nothing.
fn step(kitchen: &mut Kitchen, job: Job, now: Millis) {
    let token = job.token;
    let _ = match job.work {
        Work::Brew(cups) => {
            complete(&SERVICE, kitchen, token, now, |_, call| call.text(format_args!("{cups} cups of coffee")))
        }
        Work::Break => complete(&SERVICE, kitchen, token, now, |_, call| call.error("The machine is broken")),
        Work::Ask => {
            kitchen.jobs.push(Job { due: None, ..job });
            kitchen.tasks.ask(token, now, &[InputRequest::elicit("milk", "Do you take milk?", MILK)])
        }
        Work::Serve => {
            let milk = kitchen.tasks.answer(token, "milk");
            let milk = milk.filter(|answer| answer.accepted()).and_then(|answer| answer.value("milk")?.bool());
            complete(&SERVICE, kitchen, token, now, |_, call| match milk {
                Some(true) => call.text("coffee with milk"),
                Some(false) => call.text("black coffee"),
                None => call.error("no coffee without an answer"),
            })
        }
        Work::Run => {
            kitchen.jobs.push(Job { due: Some(now + CUP), ..job });
            kitchen.tasks.set_message(token, now, "The machine runs")
        }
    };
}

type Session = LineServer<'static, LineSink<Vec<u8>>>;

fn main() -> io::Result<()> {
    let unix_millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let tasks = Tasks::new(Slots::growing(TASKS), Store::growing(BYTES)).epoch(unix_millis);
    let mut kitchen = Kitchen { tasks, jobs: Vec::new(), random: File::open("/dev/urandom")? };
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => serve_stdio(&mut kitchen),
        [http, address] if http == "--http" => serve_http(&mut kitchen, address),
        _ => Err(io::Error::other("usage: brew [--http ADDRESS]")),
    }
}

fn serve_http(kitchen: &mut Kitchen, address: &str) -> io::Result<()> {
    let server = HttpServer::bind(address)?;
    println!("http://{}/mcp", server.local_addr()?);
    let server = server.tick(|app, endpoint, now| {
        let next = go_on(app.state, false, now);
        // Clients of 2026-07-28 listen to their tasks, those of 2025-11-25 wait for their results.
        while let Some(id) = app.state.tasks.next_change() {
            endpoint.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
        }
        while let Some(request) = app.state.tasks.next_resumable() {
            // A request that was cancelled meanwhile needs nothing.
            let _ = endpoint.resume(app, request);
        }
        next
    });
    server.serve(&SERVICE, kitchen)
}

fn serve_stdio(kitchen: &mut Kitchen) -> io::Result<()> {
    let input = read_input();
    let mut session = Session::growing(MessageLimits::default(), LineSink::new(Vec::new()));
    let started = Instant::now();
    loop {
        let now = started.elapsed().as_millis() as Millis;
        session.server.expire(now);
        run_and_send(&mut session, kitchen)?;
        let next = go_on(kitchen, session.has_ended(), now);
        while let Some(id) = kitchen.tasks.next_change() {
            session.server.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
        }
        while let Some(request) = kitchen.tasks.next_resumable() {
            let _ = session.server.wake(request);
        }
        run_and_send(&mut session, kitchen)?;
        if session.has_ended() && (session.is_done() || kitchen.jobs.is_empty()) {
            return Ok(());
        }
        let wait = next.map_or(Duration::from_secs(1), |next| Duration::from_millis(next.saturating_sub(now)));
        match input.recv_timeout(wait) {
            Ok(bytes) => take(&mut session, kitchen, &bytes)?,
            Err(RecvTimeoutError::Disconnected) if session.has_ended() => thread::sleep(wait),
            Err(RecvTimeoutError::Disconnected) => session.end_of_input(),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads the input in a thread of its own.
fn read_input() -> Receiver<Vec<u8>> {
    let (sender, input) = sync_channel(4);
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = io::stdin().read(&mut bytes) {
            if sender.send(bytes[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    input
}

/// Gives input to the session.
fn take(session: &mut Session, kitchen: &mut Kitchen, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let space = session.space();
        let n = space.len().min(bytes.len());
        space[..n].copy_from_slice(&bytes[..n]);
        session.filled(n);
        bytes = &bytes[n..];
        run_and_send(session, kitchen)?;
    }
    Ok(())
}

/// Runs the session until it needs input, and sends what it writes.
fn run_and_send(session: &mut Session, kitchen: &mut Kitchen) -> io::Result<()> {
    loop {
        let next = session.run(&SERVICE, kitchen);
        let mut out = io::stdout().lock();
        out.write_all(session.out.pending())?;
        out.flush()?;
        session.out.sent(session.out.pending().len());
        if next == NextStep::Read {
            return Ok(());
        }
    }
}
