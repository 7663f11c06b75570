//! A server as a child process: lines over its stdin and stdout.

use std::fmt;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcp_sansio::client::owned::{self, Gone, LineTrace, Patience};
use mcp_sansio::client::{Engine, Handler, Link, Lost, Profile, Session};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::Lines;
use mcp_sansio::store::Store;

use super::pipes::{Got, Pipes, Wants};
use super::process::Process;
use super::stderr::{Log, OnLine};
use super::{Ended, Error, How, IN_FLIGHT, Trace, Transport};

/// How much of what the server's own messages led to waits to be written before no more is read: a server that asks and
/// asks and does not read the answers. Requests do not count, however large: a server may have something to say before it
/// reads them.
const BACKLOG: usize = 16 << 20;

/// How long a server that has closed its stdin is waited for: what it says last may still come.
const LAST_WORDS: Millis = 500;

/// How long an error waits to learn how the process ended.
const LEARN: Duration = Duration::from_millis(200);

/// How a child process is started and ended.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio_blocking::client::{ChildOptions, Stderr};
/// let options = ChildOptions::new()
///     .stderr(Stderr::Lines(Box::new(|line| println!("server: {}", String::from_utf8_lossy(line)))))
///     .close_time(Duration::from_secs(1));
/// ```
pub type ChildOptions = owned::ChildOptions<OnLine>;

/// A server that runs as a child process. When this is dropped, the process is ended in the order that the specification
/// asks for: its stdin is closed, then it is asked to end, then it is killed, each after a while.
pub struct Child<'m> {
    session: Session<'m, Lines<Vec<u8>>, IN_FLIGHT>,
    process: Process,
    pipes: Pipes,
    log: Log,
    program: String,
    patience: Patience,
    gone: Option<Gone>,
    /// It has ended, and what it wrote last was looked for.
    looked: bool,
    input_broke: Option<Millis>,
    /// So much of what waits to be written is answers.
    owed: usize,
    now: Millis,
    tracing: Option<LineTrace<Trace>>,
    ended: Option<Ended>,
}

impl<'m> Child<'m> {
    /// Starts a server. Its stdin and stdout are the client's; whatever `command` says of its stdio is replaced.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(command: Command, profile: &'m Profile<'m>) -> Result<Self, Error> {
        Child::spawn_with(command, profile, ChildOptions::new())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn_with(mut command: Command, profile: &'m Profile<'m>, options: ChildOptions) -> Result<Self, Error> {
        let (options, stderr, patience) = options.into_parts();
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.stdio());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Err(Error::Start { program, error }),
        };
        let pipes = Pipes::new(&mut child)?;
        let input = LineBuffer::new(Store::growing(options.message_limit()));
        Ok(Child {
            session: Session::new(input, options.engine(profile), Lines::new(Vec::new())),
            process: Process::new(child),
            pipes,
            log: Log::new(stderr),
            program,
            patience,
            gone: None,
            looked: false,
            input_broke: None,
            owed: 0,
            now: 0,
            tracing: None,
            ended: None,
        })
    }

    /// The id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it wrote to stderr last, if that is read.
    #[must_use]
    pub fn last_words(&self) -> String {
        self.log.last_words()
    }

    /// Ends it, and tells how.
    pub fn end(&mut self) -> Ended {
        if let Some(ended) = self.ended {
            return ended;
        }
        let ended = self.shut_down();
        self.ended = Some(ended);
        self.gone.get_or_insert(Gone::Closed);
        self.session.end_of_input();
        ended
    }

    fn shut_down(&mut self) -> Ended {
        if let Some(status) = self.process.status() {
            return Ended::new(Some(status), How::Itself);
        }
        self.write();
        self.pipes.close_input();
        let Patience { close, terminate, kill } = self.patience;
        for (how, time) in [(How::Closed, close), (How::Terminated, terminate), (How::Killed, kill)] {
            match how {
                How::Terminated if time.is_zero() || !cfg!(unix) => continue,
                How::Terminated => self.process.terminate(),
                How::Killed => self.process.kill(),
                _ => {}
            }
            if self.drain(time) {
                return Ended::new(self.process.status(), how);
            }
        }
        Ended::new(None, How::Killed)
    }

    /// Reads and forgets until the process has ended: one that writes must not be stuck in it.
    fn drain(&mut self, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let mut waste = [0; 4096];
        loop {
            self.pipes.read_errors(&mut self.log);
            let got = self.pipes.read(&mut waste);
            if self.process.status().is_some() {
                self.pipes.look_again();
                while self.pipes.read_errors(&mut self.log) && Instant::now() < end {}
                self.log.end();
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let wants = Wants { read: got != Got::End, write: false };
            if self.pipes.wait(wants, &self.process, left).is_err() {
                return self.process.wait(left).is_some();
            }
        }
    }

    /// Writes as much as the pipe takes.
    fn write(&mut self) {
        while !self.session.pending().is_empty() && self.input_broke.is_none() {
            if let Some(tracing) = &mut self.tracing {
                tracing.sent(self.session.pending());
            }
            match self.pipes.write(self.session.pending()) {
                Ok(0) => return,
                Ok(n) => {
                    self.session.sent(n);
                    if let Some(tracing) = &mut self.tracing {
                        tracing.written(n);
                    }
                }
                Err(_) => self.input_broke = Some(self.now),
            }
        }
        if self.input_broke.is_some() {
            // Nobody will read it.
            let n = self.session.pending().len();
            self.session.sent(n);
            if let Some(tracing) = &mut self.tracing {
                tracing.written(n);
            }
        }
    }

    /// Reads once. Whether there was anything.
    fn read(&mut self) -> bool {
        if self.gone.is_some() || !self.wants_more() {
            return false;
        }
        let space = self.session.space();
        match self.pipes.read(space) {
            Got::Bytes(n) => {
                if let Some(tracing) = &mut self.tracing {
                    tracing.received(&space[..n]);
                }
                self.session.filled(n);
                return true;
            }
            Got::End => self.gone = Some(Gone::Output),
            Got::Nothing if self.pipes.may_have_ended() && self.process.status().is_some() => {
                // It may have written something since.
                if !std::mem::replace(&mut self.looked, true) {
                    self.pipes.look_again();
                    return true;
                }
                self.gone = Some(Gone::Process);
            }
            Got::Nothing if self.input_broke.is_some_and(|at| self.now.saturating_sub(at) >= LAST_WORDS) => {
                self.gone = Some(Gone::Input);
            }
            Got::Nothing => {}
        }
        self.gone.is_some()
    }

    fn wants_more(&self) -> bool {
        self.owed.min(self.session.pending().len()) < BACKLOG
    }
}

impl<'m> Transport<'m> for Child<'m> {
    fn link(&mut self) -> Link<'_, 'm> {
        self.session.link()
    }

    fn engine(&self) -> &Engine<'m> {
        self.session.engine()
    }

    fn run(&mut self, now: Millis, handler: &mut dyn Handler) -> io::Result<bool> {
        self.now = now;
        self.pipes.read_errors(&mut self.log);
        let read = self.read();
        if self.gone.is_some() {
            self.session.end_of_input();
        }
        let before = self.session.pending().len();
        // Its output is never full.
        let _ = self.session.run(now, handler);
        self.owed = self.owed.min(before) + self.session.pending().len().saturating_sub(before);
        self.write();
        Ok(read)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let write = !self.session.pending().is_empty();
        let wants = Wants { read: self.gone.is_none() && self.wants_more(), write };
        let last_words = match self.input_broke {
            Some(_) if self.gone.is_none() => Duration::from_millis(LAST_WORDS),
            _ => Duration::MAX,
        };
        self.pipes.wait(wants, &self.process, at_most.min(last_words))
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.session.engine().next_deadline()
    }

    fn explain(&mut self, why: Lost) -> String {
        let known = match self.gone.filter(|_| why == Lost::Closed) {
            None => String::new(),
            Some(gone) => {
                if gone != Gone::Closed {
                    self.drain(LEARN);
                }
                gone.explain(&self.program, self.process.status())
            }
        };
        self.log.explain(why, known)
    }

    fn trace(&mut self, trace: Trace) {
        self.tracing = Some(LineTrace::new(trace, self.session.pending().len()));
    }

    fn close(&mut self) {
        self.end();
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Child<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("program", &self.program).field("id", &self.id()).finish_non_exhaustive()
    }
}
