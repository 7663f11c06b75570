//! The engine in an event loop of one's own: `poll`, non-blocking descriptors, a timer. No adapter, no runtime, and
//! every buffer has a fixed size. The tool `remind` answers later, when its time has come.
use std::io::{self, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::{Millis, SendError, Server, Token};
use mcp_sansio::service::{Call, Outcome, Service, Tool};
use mcp_sansio::session::{Next, Session};
use mcp_sansio::sink::{Lines, Slice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use serde::Deserialize;

/// What the handlers share: who waits, until when, for what.
type Reminders = Vec<(Millis, Token, String)>;

#[derive(Deserialize)]
struct Remind<'a> {
    after_ms: u64,
    text: &'a str,
}

fn remind(reminders: &mut Reminders, call: &mut Call<'_>) -> Outcome {
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

/// Eight requests in flight, and output of a fixed size.
type Connection<'m> = Session<'m, Lines<Slice<'m>>, 8>;

fn main() -> io::Result<()> {
    let (input, output) = (NonBlocking::new(stdin().as_fd())?, NonBlocking::new(stdout().as_fd())?);
    let service = Service::new("event_loop", "1.0").tools(&TOOLS).on_cancel(|reminders: &mut Reminders, token| {
        reminders.retain(|reminder| reminder.1 != token);
    });
    let (mut reminders, mut open, started) = (Reminders::new(), true, Instant::now());
    let (mut line, mut scratch, mut bytes) = ([0; 8192], [0; 8192], [0; 4096]);
    let server = Server::new().scratch(&mut scratch);
    let mut session = Connection::new(LineBuffer::new(&mut line), server, Lines::new(Slice::new(&mut bytes)));
    loop {
        // 1. Let the engine work: it never blocks.
        let now = started.elapsed().as_millis() as Millis;
        session.expire(now);
        answer_due(&mut session, &service, &mut reminders, now);
        let next = session.run(&service, &mut reminders);
        if !open && session.is_done() && session.pending().is_empty() {
            return Ok(());
        }
        // 2. Wait. While the output is full nothing is read: so a client that does not read is not listened to.
        let (reads, writes) = (open && next == Next::Read, !session.pending().is_empty());
        wait(reads.then_some(&input), writes.then_some(&output), next_due(&reminders, now).map(|at| at - now))?;
        // 3. Move bytes, as many as go.
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
            match ready(rustix::io::write(&output.fd, session.pending())) {
                Ok(n) => session.sent(n.unwrap_or(0)),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Answers whom it is time to answer; those for whom there is no room wait for the next turn.
fn answer_due(session: &mut Connection<'_>, service: &Service<'_, Reminders>, reminders: &mut Reminders, now: Millis) {
    while let Some(due) = reminders.iter().position(|reminder| reminder.0 <= now) {
        let (at, token, text) = reminders.swap_remove(due);
        if session.answer(service, reminders, token, |_, call| call.text(&text)) == Err(SendError::FullNow) {
            return reminders.push((at, token, text));
        }
    }
}

/// When the next reminder is due. One that is overdue waits for room, not for time.
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

/// `None` if it would block, or a signal came.
fn ready(done: rustix::io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A descriptor in non-blocking mode, which is given back: it is shared with whoever started the program.
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
