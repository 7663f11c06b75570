//! The engine in your own event loop: `poll`, non-blocking descriptors, a timer. It uses no adapter and no
//! runtime, and every buffer has a fixed size. The tool `remind` answers later, at a given time.
use std::io::{self, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{Millis, RequestSlot, RequestToken, RespondError, Server};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use serde::Deserialize;

/// The state of the handlers: for each waiting request its time, its token and its text.
type Reminders = Vec<(Millis, RequestToken, String)>;

#[derive(Deserialize)]
struct Remind<'a> {
    after_ms: u64,
    text: &'a str,
}

fn remind(reminders: &mut Reminders, call: &mut Call<'_>) -> HandlerResult {
    let Remind { after_ms, text } = call.args()?;
    if after_ms > 60_000 {
        return call.error("after_ms is 60000 at the most");
    }
    let at = call.now() + after_ms;
    let (token, outcome) = call.later();
    reminders.push((at, token, text.to_owned()));
    outcome
}

static TOOLS: [Tool<Reminders>; 1] = [Tool::new("remind", "Waits, then gives a text back", remind).input(
    r#"{
        "type": "object",
        "properties": {"after_ms": {"type": "integer", "minimum": 0, "maximum": 60000}, "text": {"type": "string"}},
        "required": ["after_ms", "text"]
    }"#,
)];

/// A session with output of a fixed size.
type Connection<'m> = LineServer<'m, LineSink<SliceStorage<'m>>>;

fn main() -> io::Result<()> {
    let (input, output) = (NonBlocking::new(stdin().as_fd())?, NonBlocking::new(stdout().as_fd())?);
    let service = Service::new("event_loop", "1.0").tools(&TOOLS).on_cancel(|reminders: &mut Reminders, token| {
        reminders.retain(|reminder| reminder.1 != token);
    });
    let (mut reminders, mut open, started) = (Reminders::new(), true, Instant::now());
    let (mut line, mut scratch, mut bytes) = ([0; 8192], [0; 8192], [0; 4096]);
    let mut slots = [RequestSlot::FREE; 8]; // requests in flight
    let server = Server::new(&mut slots).scratch(&mut scratch);
    let mut session = Connection::new(LineBuffer::new(&mut line), server, LineSink::new(SliceStorage::new(&mut bytes)));
    loop {
        // 1. Let the engine work: it never blocks.
        let now = started.elapsed().as_millis() as Millis;
        session.server.expire(now);
        answer_due(&mut session, &service, &mut reminders, now);
        let next = session.run(&service, &mut reminders);
        if !open && session.is_done() && session.out.pending().is_empty() {
            return Ok(());
        }
        // 2. Wait. While the output is full, read nothing: a client that does not read is not served further.
        let (reads, writes) = (open && next == NextStep::Read, !session.out.pending().is_empty());
        wait(reads.then_some(&input), writes.then_some(&output), next_due(&reminders, now).map(|at| at - now))?;
        // 3. Move as many bytes as possible without blocking.
        if reads {
            match ready(rustix::io::read(&input.fd, session.space()))? {
                Some(0) => {
                    open = false;
                    session.end_of_input();
                }
                n => session.filled(n.unwrap_or(0)),
            }
        }
        if writes {
            match ready(rustix::io::write(&output.fd, session.out.pending())) {
                Ok(n) => session.out.sent(n.unwrap_or(0)),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Answers the requests that are due. If there is no room for an answer, the next turn tries again.
fn answer_due(session: &mut Connection<'_>, service: &Service<'_, Reminders>, reminders: &mut Reminders, now: Millis) {
    while let Some(due) = reminders.iter().position(|reminder| reminder.0 <= now) {
        let (at, token, text) = reminders.swap_remove(due);
        if session.answer(service, reminders, token, |_, call| call.text(&text)) == Err(RespondError::FullNow) {
            return reminders.push((at, token, text));
        }
    }
}

/// Returns the time of the next reminder. An overdue reminder is skipped: it waits for room, not for time.
fn next_due(reminders: &Reminders, now: Millis) -> Option<Millis> {
    reminders.iter().map(|reminder| reminder.0).filter(|at| *at > now).min()
}

fn wait(input: Option<&NonBlocking>, output: Option<&NonBlocking>, millis: Option<Millis>) -> io::Result<()> {
    let input = input.map(|input| PollFd::new(&input.fd, PollFlags::IN));
    let output = output.map(|output| PollFd::new(&output.fd, PollFlags::OUT));
    let mut fds: Vec<PollFd<'_>> = input.into_iter().chain(output).collect();
    let timeout =
        millis.map(|millis| Timespec { tv_sec: (millis / 1000) as i64, tv_nsec: (millis % 1000 * 1_000_000) as _ });
    ready(poll(&mut fds, timeout.as_ref())).map(|_| ())
}

/// Returns `None` if the call would block, or if a signal interrupted it.
fn ready(done: rustix::io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A descriptor in non-blocking mode. Dropping it restores the old mode, because the parent process shares the
/// descriptor.
struct NonBlocking {
    fd: OwnedFd,
    before: OFlags,
}

impl NonBlocking {
    fn new(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let (fd, before) = (fd.try_clone_to_owned()?, fcntl_getfl(fd)?);
        fcntl_setfl(&fd, before | OFlags::NONBLOCK)?;
        Ok(NonBlocking { fd, before })
    }
}

impl Drop for NonBlocking {
    fn drop(&mut self) {
        let _ = fcntl_setfl(&self.fd, self.before);
    }
}
