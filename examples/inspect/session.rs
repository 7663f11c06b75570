//! A connection with a user: Ctrl-C ends requests, and the user answers questions in between.

use std::cell::RefCell;
use std::io;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mcp_sansio::client::result::{ClientResult, CreateMessageResult};
use mcp_sansio::client::{
    ClientHandle, ClientHandler, ClientInfo, PendingId, Request, ServerRequestId, ServerRequestKind,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;
use mcp_sansio::service::ContentBlock;
use mcp_sansio::trace_context::{TraceContext, TraceParent};
use mcp_sansio_blocking::client::{
    Child, ChildExit, ChildOptions, Client, ClientError, ClientOptions as Limits, OwnedResult, PageLimits, Stderr,
    Trace, Transport, TransportState,
};
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
use mcp_sansio_extensions::tasks::client::{TaskEnd, TaskEvent, TaskFollower, TaskQuestion};
use mcp_sansio_host::PageCursor;

use crate::args::{Options, Target};
use crate::ask::{Asker, Console, Said};
use crate::commands::Trouble;
use crate::host::{Host, Waiting};
use crate::live::Live;
use crate::login;
use crate::page::{Look, Style};
use crate::system::is_unread;
use crate::terminal::{Keyboard, Stop};
use crate::text::one_line;

/// The longest wait between two checks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(200);

/// The interval of checks for the server's messages while the user types.
const GLANCE: Duration = Duration::from_millis(20);

/// The wait in each of these checks: the transport receives only while it waits.
const BLINK: Duration = Duration::from_millis(1);

/// The longest wait for the first answer. After it the server counts as one of an older revision.
const PROBE: Duration = Duration::from_secs(5);

/// The longest wait for an answer, without `--timeout`.
const TIME: Duration = Duration::from_secs(60);

/// The limit for all pages of a list, in time limits of one request.
const LIST_TIMES: u32 = 4;

/// The time for a server to end before the user sees a note. Interpreters take seconds to clean up.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The error after the time of `--total`.
#[derive(Debug)]
struct TotalOver;

impl std::fmt::Display for TotalOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it took longer than --total allows")
    }
}

impl std::error::Error for TotalOver {}

/// Returns `true` if the error means that the time of `--total` is over.
pub(crate) fn is_total(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TotalOver>())
}

/// A transport that fails after Ctrl-C, and after the time of `--total`.
pub(crate) struct Stoppable<'m> {
    inner: Box<dyn Transport<'m> + 'm>,
    around: Around,
}

impl<'m> Transport<'m> for Stoppable<'m> {
    fn state(&self) -> &dyn TransportState<'m, Trace> {
        self.inner.state()
    }
    fn state_mut(&mut self) -> &mut dyn TransportState<'m, Trace> {
        self.inner.state_mut()
    }
    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool> {
        self.inner.run(now, handler)
    }
    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.around.check()?;
        self.inner.wait(at_most.min(SLICE))?;
        self.around.live.borrow_mut().still_waiting();
        self.around.check()
    }
    fn close(&mut self) -> Option<ChildExit> {
        self.inner.close()
    }
}

/// The parts of a connection besides the options.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) live: Rc<RefCell<Live>>,
    pub(crate) stop: Stop,
    pub(crate) look: Look,
    /// The end of the time of `--total`.
    pub(crate) deadline: Option<Instant>,
}

impl Around {
    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns an error after Ctrl-C, and after the time of `--total`.
    fn check(&self) -> io::Result<()> {
        self.stop.check()?;
        if self.is_over() { Err(io::Error::new(io::ErrorKind::TimedOut, TotalOver)) } else { Ok(()) }
    }
}

pub(crate) struct Session<'m> {
    client: Client<'m, Stoppable<'m>, Host>,
    keyboard: Keyboard,
    around: Around,
    /// The time limit of a request.
    time: Duration,
    /// The trace of all requests.
    trace: TraceContext<'static>,
    /// The method of the latest request that the server refused.
    refused: String,
}

impl<'m> Session<'m> {
    /// Creates the connection. It starts the program if there is one, but sends nothing.
    pub(crate) fn new(
        target: &Target,
        options: &Options,
        profile: &'m ClientInfo<'m>,
        host: Host,
        around: Around,
    ) -> Result<Self, ClientError> {
        let mut limits = Limits::DEFAULT;
        if let Some(time) = options.timeout {
            // With a long timeout the server may be slow to start, for example because it is compiled first.
            limits = limits.timeout(time).probe_timeout(PROBE.max(time / 10));
        }
        let inner: Box<dyn Transport<'m> + 'm> = match target {
            Target::Program(words) => Box::new(spawn(words, options, limits, profile, &around)?),
            Target::Url(url) => Box::new(login::reach(url, options, limits, profile, &around.stop)?),
        };
        let client = Client::new(Stoppable { inner, around: around.clone() }, host);
        Ok(Session {
            client,
            keyboard: Keyboard::default(),
            around,
            time: options.timeout.unwrap_or(TIME),
            trace: options.traceparent.or_else(surrounding).map_or(TraceContext::NONE, TraceContext::new),
            refused: String::new(),
        })
    }

    pub(crate) fn client(&mut self) -> &mut Client<'m, Stoppable<'m>, Host> {
        &mut self.client
    }

    /// Sends a request and waits for its answer. Meanwhile asks the user the server's questions.
    pub(crate) fn request(&mut self, request: &Request<'_>) -> Result<OwnedResult, ClientError> {
        let token = self.client.send(&request.trace_context(&self.trace))?;
        self.around.live.borrow_mut().waits(true);
        let outcome = self.outcome(token);
        // The server need not continue. If the notification fails, nothing is lost.
        if self.around.stop.is_set() {
            if is_interrupt(&outcome) {
                let words = "The server is told that the answer is not wanted any more.";
                self.around.live.borrow_mut().note(Style::Warn, words);
            }
            let _ = self.client.cancel(token, Some("The user pressed Ctrl-C"));
        } else if self.around.is_over() {
            let _ = self.client.cancel(token, Some("The user gave it no more time"));
        }
        self.around.live.borrow_mut().waits(false);
        self.around.live.borrow_mut().clear();
        if matches!(outcome, Err(ClientError::Server(_))) {
            self.refused = request.name.to_owned();
        }
        outcome
    }

    /// The method of the latest request that the server refused.
    pub(crate) fn refused(&self) -> &str {
        &self.refused
    }

    fn outcome(&mut self, token: PendingId) -> Result<OwnedResult, ClientError> {
        loop {
            if let Some(outcome) = self.client.poll(token) {
                return outcome;
            }
            self.ask_waiting()?;
            // A server that never stops sending leaves no wait, and only a wait checks for Ctrl-C and the time.
            self.around.check()?;
            self.client.turn(SLICE)?;
        }
    }

    /// Requests all pages of a list, within [`PageLimits`] and [`LIST_TIMES`] times the limit of one request.
    pub(crate) fn list(&mut self, list: Request<'_>) -> Result<Vec<OwnedResult>, ClientError> {
        let mut pages: Vec<OwnedResult> = Vec::new();
        let mut cursor = PageCursor::new(PageLimits::DEFAULT.time(self.time * LIST_TIMES));
        while let Some(request) = cursor.ask(&list) {
            let page = self.request(&request?);
            if !cursor.took(&page) {
                let words =
                    format!("{}: the server gives the same page again and again; what follows is left out", list.name);
                self.around.live.borrow_mut().note(Style::Warn, &words);
                break;
            }
            pages.push(page?);
        }
        // The user may miss a tool: name the excluded ones.
        let excluded = if list.name == "tools/list" { self.client.excluded() } else { Vec::new() };
        let mut live = self.around.live.borrow_mut();
        excluded.iter().for_each(|tool| live.note(Style::Warn, &tool.to_string()));
        Ok(pages)
    }

    /// Follows a task to its end, and asks the user its questions. Ctrl-C asks the server to cancel it, the first time. Returns
    /// also whether that happened.
    pub(crate) fn follow(&mut self, task: TaskFollower) -> Result<(TaskEnd, bool), ClientError> {
        let task = &mut task.trace_context(self.trace);
        let mut is_cancelled = false;
        loop {
            let event = self.client.follow(task, SLICE);
            let done = event.and_then(|event| match event {
                Some(TaskEvent::Ended(end)) => Ok(Some(end)),
                event => self.handle(task, event).map(|()| None),
            });
            match done {
                Ok(None) => {}
                Ok(Some(end)) => {
                    self.around.live.borrow_mut().clear();
                    return Ok((end, is_cancelled));
                }
                done if is_interrupt(&done) && !is_cancelled => {
                    is_cancelled = true;
                    self.around.stop.clear();
                    self.cancel(task);
                }
                Err(error) => {
                    if matches!(error, ClientError::Server(_)) {
                        self.refused = "tasks/get".into();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Hands each event to `tell`, until stdout is closed, the time is over, or Ctrl-C.
    pub(crate) fn follow_events(
        &mut self,
        mut follower: EventFollower,
        mut tell: impl FnMut(FollowedEvent) -> io::Result<()>,
    ) -> Result<(), Trouble> {
        while !self.around.stop.is_set() && !is_unread() {
            let event = self.client.next_event(&mut follower, SLICE);
            match event {
                done if is_interrupt(&done) => return Ok(()),
                Err(ClientError::Io(error)) if is_total(&error) => return Ok(()),
                Err(error) => {
                    self.refused = follower.method_name().into();
                    return Err(error.into());
                }
                Ok(event) => event.map_or(Ok(()), &mut tell)?,
            }
            self.ask_waiting()?;
        }
        Ok(())
    }

    fn cancel(&mut self, task: &mut TaskFollower) {
        self.around.live.borrow_mut().note(Style::Warn, "The server is asked to cancel the task.");
        task.cancel();
    }

    /// Handles an event of a task, and the questions that the server sends by itself.
    fn handle(&mut self, task: &mut TaskFollower, event: Option<TaskEvent>) -> Result<(), ClientError> {
        match event {
            Some(TaskEvent::Status { status, message }) => {
                let message = message.map_or_else(String::new, |message| format!(": {}", one_line(message)));
                self.around.live.borrow_mut().note(Style::Dim, &format!("task {}{message}", status.name()));
            }
            Some(TaskEvent::Asked(TaskQuestion { key, kind: ServerRequestKind::Roots, .. })) => {
                task.answer(&key, &ClientResult::roots(&self.client.handler.valid_roots()))?;
            }
            Some(TaskEvent::Asked(question)) => {
                let said = self.ask(None, question.kind, question.params.raw())?.unwrap_or(Said::Cancel);
                match reply(question.kind, &said) {
                    Some(reply) => task.answer(&question.key, &reply)?,
                    // Only elicitations can be declined: without the answer the task cannot go on.
                    None => self.cancel(task),
                }
            }
            Some(TaskEvent::Withdrawn(_)) => {
                let words = "The server does not want an answer any more.";
                self.around.live.borrow_mut().note(Style::Dim, words);
            }
            _ => {}
        }
        self.ask_waiting()
    }

    /// Reports events until they end, stdout is closed, or Ctrl-C.
    pub(crate) fn watch(&mut self) -> Result<(), ClientError> {
        let mut refused = false;
        while self.client.handler.over.is_none() && !self.around.stop.is_set() && !is_unread() {
            match self.client.turn(SLICE) {
                done if is_interrupt(&done) => return Ok(()),
                Err(ClientError::Io(error)) if is_total(&error) => return Ok(()),
                done => done?,
            };
            let state = self.client.transport.state();
            if !refused && !state.is_settling() && !state.hears_server() {
                refused = true;
                let words = "The server refuses the stream for its own messages (GET): no change can come.";
                self.around.live.borrow_mut().note(Style::Warn, words);
            }
            self.ask_waiting()?;
        }
        Ok(())
    }

    fn ask_waiting(&mut self) -> Result<(), ClientError> {
        while !self.client.handler.waiting.is_empty() {
            let waiting = self.client.handler.waiting.remove(0);
            let params = Raw::parse(waiting.params.as_bytes()).unwrap_or(Raw::constant("{}"));
            let Some(said) = self.ask(Some(waiting.id), waiting.kind, params)? else { continue };
            let _ = answer(&mut self.client.handle(), &waiting, &said);
            self.client.run()?;
        }
        Ok(())
    }

    /// Asks the user. Returns `None` if the question was withdrawn. Questions of tasks have no id.
    fn ask(
        &mut self,
        id: Option<ServerRequestId>,
        kind: ServerRequestKind,
        params: Raw<'_>,
    ) -> Result<Option<Said>, ClientError> {
        self.around.live.borrow_mut().clear();
        let waited = self.around.live.borrow_mut().waits(false);
        let server = self.client.server().and_then(|hello| hello.server()).and_then(|info| info.get("name")?.text());
        let server = server.map_or_else(|| "the server".to_owned(), |name| name.to_string());
        let look = self.around.look;
        let mut console = Terminal { session: self, question: id, over: false, broken: None };
        let mut asker = Asker { console: &mut console, look };
        let said = match kind {
            ServerRequestKind::Form => asker.form(&server, params),
            ServerRequestKind::UrlElicitation => asker.visit(&server, params),
            _ => asker.sampling(&server, params),
        };
        let (broken, over) = (console.broken.take(), console.over);
        self.around.live.borrow_mut().waits(waited);
        match broken {
            Some(error) => Err(error),
            None => Ok(Some(said).filter(|_| !over)),
        }
    }

    /// Closes the connection, and ends the program that was started for it.
    pub(crate) fn close(self) {
        let begun = Instant::now();
        let live = Rc::clone(&self.around.live);
        self.client.close();
        if begun.elapsed() > ENDS_WITHIN {
            live.borrow_mut().note(Style::Dim, "The server did not end when its stdin was closed.");
        }
    }
}

/// Returns `true` after Ctrl-C.
fn is_interrupt<T>(done: &Result<T, ClientError>) -> bool {
    matches!(done, Err(ClientError::Io(error)) if error.kind() == io::ErrorKind::Interrupted)
}

/// Returns the trace that the variable `TRACEPARENT` names. A malformed one counts as absent, as in a message.
fn surrounding() -> Option<TraceParent> {
    TraceParent::parse(&std::env::var("TRACEPARENT").ok()?).ok()
}

fn spawn<'m>(
    words: &[std::ffi::OsString],
    options: &Options,
    limits: Limits,
    profile: &'m ClientInfo<'m>,
    around: &Around,
) -> Result<Child<'m>, ClientError> {
    let (program, arguments) = words.split_first().ok_or_else(|| ClientError::Url("which program?".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).envs(options.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &options.folder {
        command.current_dir(folder);
    }
    let name = std::path::Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let live = Rc::clone(&around.live);
    let stderr = match options.quiet {
        true => Stderr::Keep,
        false => Stderr::Lines(Box::new(move |line| live.borrow_mut().said(&name, line))),
    };
    Child::spawn_with(command, profile, ChildOptions::new().options(limits).stderr(stderr))
}

/// Sends the user's answer to the server.
fn answer(
    link: &mut ClientHandle<'_, '_>,
    waiting: &Waiting,
    said: &Said,
) -> Result<(), mcp_sansio::client::SendError> {
    match reply(waiting.kind, said) {
        Some(reply) => link.reply(waiting.id, &reply),
        None => link.refuse(waiting.id, &RpcError::refused()),
    }
}

/// Returns the answer; `None` if it is an error.
fn reply(kind: ServerRequestKind, said: &Said) -> Option<ClientResult<'_>> {
    Some(match (kind, said) {
        (ServerRequestKind::Form, Said::Yes(content)) => {
            Raw::parse(content.as_bytes()).map_or(ClientResult::cancel(), ClientResult::accept)
        }
        (ServerRequestKind::UrlElicitation, Said::Yes(_)) => ClientResult::consent(),
        (ServerRequestKind::Form | ServerRequestKind::UrlElicitation, Said::No) => ClientResult::decline(),
        (ServerRequestKind::Form | ServerRequestKind::UrlElicitation, Said::Cancel) => ClientResult::cancel(),
        (_, Said::Yes(text)) => ClientResult::sampled(typed(text)),
        (_, Said::Cut(text)) => ClientResult::sampled(typed(text).stop_reason("maxTokens")),
        (_, _) => return None,
    })
}

/// Returns the message of a person in place of a model.
fn typed(text: &str) -> CreateMessageResult<'_> {
    CreateMessageResult::new("a person at a terminal", ContentBlock::text(text))
}

/// The terminal. While it waits for input, the connection goes on.
struct Terminal<'s, 'm> {
    session: &'s mut Session<'m>,
    question: Option<ServerRequestId>,
    /// The question was withdrawn, or the connection has ended.
    over: bool,
    broken: Option<ClientError>,
}

impl Console for Terminal<'_, '_> {
    fn say(&mut self, text: &str) {
        self.session.around.live.borrow_mut().print(text);
    }

    fn line(&mut self, prompt: &str) -> Option<String> {
        if self.broken.is_some() || self.over {
            return None;
        }
        self.say(prompt);
        loop {
            let typed = self.session.keyboard.line(GLANCE).map_err(ClientError::from);
            let stopped = self.session.around.check().map_err(ClientError::from);
            match stopped.and(typed) {
                Ok(Some(line)) => {
                    if line.is_none() {
                        self.say("\n");
                    }
                    return line;
                }
                Ok(None) => {}
                Err(error) => {
                    self.say("\n");
                    self.broken = Some(error);
                    return None;
                }
            }
            if let Err(error) = self.session.client.turn(BLINK) {
                self.broken = Some(error);
                return None;
            }
            let withdrawn = &self.session.client.handler.withdrawn;
            let withdrawn = self.question.is_some_and(|question| withdrawn.contains(&question));
            if withdrawn || !self.session.client.engine().is_connected() {
                self.over = true;
                return None;
            }
        }
    }
}
