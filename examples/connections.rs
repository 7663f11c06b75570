//! Several clients in one loop: TCP on 127.0.0.1, one thread, `poll`, no runtime. They share a list of notes. A change is
//! published to all of them, a late answer goes to the client that waits for it, and a client can be sent away.
//!
//! Try it: `cargo run --example connections`, and twice `nc 127.0.0.1 8933`, with a JSON-RPC message on each line.
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MessageLimits, Millis, RequestToken, RespondError, ServerChange, ServerId};
use mcp_sansio::service::{Call, HandlerResult, Resource, Service, Tool};
use mcp_sansio::sink::{GrowingStorage, LineSink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Deserialize;

/// The most clients at once. More wait in the queue of the operating system.
const CLIENTS: usize = 64;
const ALL: &str = "notes://all";

/// The state of the handlers, which all clients share.
#[derive(Default)]
struct Notes {
    notes: Vec<String>,
    /// The clients have not heard of the last change.
    changed: bool,
    /// For each request that waits its time, its token and its text.
    reminders: Vec<(Millis, RequestToken, String)>,
    /// The connections whose clients want to leave.
    leaving: Vec<ServerId>,
}

#[derive(Deserialize)]
struct Add<'a> {
    text: &'a str,
}

fn add(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    let Add { text } = call.args()?;
    if notes.notes.len() >= 1_000 || text.len() > 1_000 {
        return call.error("There is no room for the note");
    }
    notes.notes.push(text.to_owned());
    // `call.publish` would reach the client of this call alone.
    notes.changed = true;
    call.text("added")
}

#[derive(Deserialize)]
struct Remind<'a> {
    after_ms: u64,
    text: &'a str,
}

fn remind(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    let Remind { after_ms, text } = call.args()?;
    let at = call.now() + after_ms.min(60_000);
    let (token, outcome) = call.later();
    notes.reminders.push((at, token, text.to_owned()));
    outcome
}

fn leave(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    notes.leaving.push(call.server());
    call.text("goodbye")
}

static TOOLS: [Tool<Notes>; 3] = [
    Tool::new("add", "Adds a note", add)
        .input(r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#),
    Tool::new("remind", "Waits, then gives a text back", remind).input(
        r#"{"type": "object", "properties": {"after_ms": {"type": "integer"}, "text": {"type": "string"}}, "required": ["after_ms", "text"]}"#,
    ),
    Tool::new("leave", "Ends the connection", leave),
];
static RESOURCES: [Resource<Notes>; 1] =
    [Resource::new(ALL, "notes", |notes: &mut Notes, read| read.text(format_args!("{}", notes.notes.join("\n"))))];

/// A client: its socket and its session.
struct Client {
    stream: TcpStream,
    session: LineServer<'static, LineSink<GrowingStorage>>,
    next: NextStep,
    /// Nothing more is read from it: it goes when it has its answers.
    leaving: bool,
    /// Its socket is broken.
    gone: bool,
}

impl Client {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Each client has these limits of its own.
        let limits = MessageLimits { in_flight: 8, message: 64 << 10, ..MessageLimits::default() };
        let session = LineServer::growing(limits, LineSink::new(GrowingStorage::new(256 << 10)));
        Ok(Client { stream, session, next: NextStep::Read, leaving: false, gone: false })
    }

    /// Moves as many bytes as possible without blocking.
    fn transfer(&mut self) {
        let Client { stream, session, .. } = self;
        let mut moved = || -> io::Result<()> {
            if !session.out.pending().is_empty() {
                let sent = unless_blocked(stream.write(session.out.pending()))?;
                session.out.sent(sent.unwrap_or(0));
            }
            // While the output is full, read nothing: a client that does not read is not served further.
            if !self.leaving && self.next == NextStep::Read {
                let read = unless_blocked(stream.read(session.space()))?;
                session.filled(read.unwrap_or(0));
                self.leaving = read == Some(0);
            }
            Ok(())
        };
        self.gone = moved().is_err();
    }

    fn waits_for(&self) -> PollFlags {
        let reads = if self.leaving || self.next == NextStep::Write { PollFlags::empty() } else { PollFlags::IN };
        if self.session.out.pending().is_empty() { reads } else { reads | PollFlags::OUT }
    }

    fn has_ended(&self) -> bool {
        self.gone || (self.leaving && self.session.out.pending().is_empty())
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8933".into());
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    println!("listening on {}", listener.local_addr()?);
    let service = Service::new("connections", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .feature(ServerCapability::Subscribe)
        .on_cancel(|notes: &mut Notes, token| notes.reminders.retain(|reminder| reminder.1 != token));
    let (mut notes, mut clients, started) = (Notes::default(), Vec::<Client>::new(), Instant::now());
    loop {
        let now = started.elapsed().as_millis() as Millis;
        answer_due(&mut clients, &service, &mut notes, now);
        // 1. Let the engine work: it never blocks. A change goes to all, also to those that have run before it.
        loop {
            for client in &mut clients {
                client.session.server.expire(now);
                client.next = client.session.run(&service, &mut notes);
            }
            if !std::mem::take(&mut notes.changed) {
                break;
            }
            clients.iter_mut().for_each(|client| client.session.server.publish(ServerChange::Resource(ALL)));
        }
        for id in notes.leaving.drain(..) {
            clients
                .iter_mut()
                .filter(|client| client.session.server.id() == id)
                .for_each(|client| client.leaving = true);
        }
        // 2. Wait until a socket is ready, or a reminder is due.
        wait(&listener, &clients, next_due(&notes, now).map(|at| at - now))?;
        // 3. Move bytes, and end what has ended: its requests are cancelled.
        clients.iter_mut().for_each(Client::transfer);
        for mut client in clients.extract_if(.., |client| client.has_ended()) {
            let server = &mut client.session.server;
            service.end_scope(&mut notes, server.scope(), server);
        }
        if clients.len() < CLIENTS
            && let Some((stream, _)) = unless_blocked(listener.accept())?
        {
            clients.push(Client::new(stream)?);
        }
    }
}

/// Answers the requests that are due. A connection refuses the tokens of the others, so any of them can be tried.
fn answer_due(clients: &mut [Client], service: &Service<'_, Notes>, notes: &mut Notes, now: Millis) {
    let due: Vec<_> = notes.reminders.extract_if(.., |reminder| reminder.0 <= now).collect();
    for (at, token, text) in due {
        let answer = |client: &mut Client| client.session.answer(service, notes, token, |_, call| call.text(&text));
        let answered = clients.iter_mut().map(answer).find(|answered| *answered != Err(RespondError::Stale));
        // If there is no room for the answer, the next turn tries again.
        if answered == Some(Err(RespondError::FullNow)) {
            notes.reminders.push((at, token, text));
        }
    }
}

/// Returns the time of the next reminder. An overdue reminder is skipped: it waits for room, not for time.
fn next_due(notes: &Notes, now: Millis) -> Option<Millis> {
    notes.reminders.iter().map(|reminder| reminder.0).filter(|at| *at > now).min()
}

fn wait(listener: &TcpListener, clients: &[Client], millis: Option<Millis>) -> io::Result<()> {
    let accepts = if clients.len() < CLIENTS { PollFlags::IN } else { PollFlags::empty() };
    let sockets = clients.iter().map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), client.waits_for()));
    let mut fds: Vec<PollFd<'_>> = sockets.chain([PollFd::new(listener, accepts)]).collect();
    let timeout =
        millis.map(|millis| Timespec { tv_sec: (millis / 1000) as i64, tv_nsec: (millis % 1000 * 1_000_000) as _ });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns `None` if the call would block, or if a signal interrupted it.
fn unless_blocked<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        done => done.map(Some),
    }
}
