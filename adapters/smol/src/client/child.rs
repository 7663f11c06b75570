//! A server as a child process: lines over its stdin and stdout.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Timer;
use async_process::{Child as Spawned, ChildStderr, ChildStdin, ChildStdout, Command};
use futures_lite::AsyncRead;
use mcp_sansio::client::owned::{self, Gone, Patience};
use mcp_sansio::client::{Handler, Link, Lost, Profile};
use mcp_sansio::server::Millis;

use super::lines::{Got, Talk};
use super::stderr::{Log, OnLine};
use super::{Ended, Error, How, Trace, Transport};
use crate::interrupted::retry;

/// How long to wait to learn how the process ended when its stdout has.
const LEARN: Millis = 200;

/// Chunks of stderr that are read before it is the others' turn.
const CHUNKS: usize = 16;

/// How a child process is started and ended.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio_smol::client::{ChildOptions, Stderr};
/// let options = ChildOptions::new()
///     .stderr(Stderr::Lines(Box::new(|line| println!("server: {}", String::from_utf8_lossy(line)))))
///     .close_time(Duration::from_secs(1));
/// ```
pub type ChildOptions = owned::ChildOptions<OnLine>;

/// A server that runs as a child process. When it is dropped without [`Client::close`](super::Client::close), its process
/// is ended in the same order by a thread of [`blocking`]: its stdin is closed, then it is asked to end, then it is killed.
pub struct Child {
    talk: Talk<ChildStdout, ChildStdin>,
    /// `None` when this is being dropped.
    life: Option<Life>,
    id: u32,
    program: String,
    /// Its stdout has ended, and until when it is waited for why.
    ending: Option<Millis>,
    gone: Option<Gone>,
}

impl Child {
    /// Starts a server. Its stdin and stdout are the client's; whatever `command` says of its stdio is replaced.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(command: impl Into<Command>, profile: &'static Profile<'static>) -> Result<Self, Error> {
        Child::spawn_with(command, profile, ChildOptions::new())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn_with(
        command: impl Into<Command>,
        profile: &'static Profile<'static>,
        options: ChildOptions,
    ) -> Result<Self, Error> {
        let (options, stderr, patience) = options.into_parts();
        let mut command = command.into();
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.stdio());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Err(Error::Start { program, error }),
        };
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Io(io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Child {
            talk: Talk::new(output, input, profile, &options),
            id: child.id(),
            life: Some(Life::new(child, Log::new(stderr), patience)),
            program,
            ending: None,
            gone: None,
        })
    }

    /// The id of the process.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Finds out whether anything more will come.
    fn look(&mut self, now: Millis, got: Got) {
        let status = self.life.as_ref().and_then(|life| life.status);
        if got == Got::End && self.ending.is_none() {
            self.ending = Some(now.saturating_add(LEARN));
        }
        let reason = match (self.ending, status) {
            (_, Some(_)) if got != Got::Bytes => Gone::Process,
            (Some(until), _) if until <= now => Gone::Output,
            (None, _) if got == Got::Nothing && self.talk.last_words().is_some_and(|at| at <= now) => Gone::Input,
            _ => return,
        };
        self.gone.get_or_insert(reason);
    }
}

impl Transport for Child {
    fn link(&mut self) -> Link<'_, 'static> {
        self.talk.session.link()
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn Handler) -> bool {
        let mut more = false;
        if let Some(life) = &mut self.life {
            life.poll_status(cx);
            more = life.poll_errors(cx);
        }
        self.talk.poll_write(now, cx);
        let owing = self.talk.is_owing();
        if self.gone.is_none() && !owing {
            let got = self.talk.poll_read(cx);
            self.look(now, got);
            more |= got == Got::Bytes;
        }
        if self.gone.is_some() {
            self.talk.session.end_of_input();
        }
        self.talk.run(now, handler);
        self.talk.poll_write(now, cx);
        more || owing && !self.talk.is_owing()
    }

    fn next_deadline(&self) -> Option<Millis> {
        let last = self.ending.or(self.talk.last_words()).filter(|_| self.gone.is_none());
        self.talk.session.engine().next_deadline().into_iter().chain(last).min()
    }

    fn is_full(&mut self) -> bool {
        self.talk.is_full()
    }

    fn explain(&self, why: Lost) -> String {
        let gone = self.gone.filter(|_| why == Lost::Closed);
        let status = self.life.as_ref().and_then(|life| life.status);
        let known = gone.map(|gone| gone.explain(&self.program, status)).unwrap_or_default();
        match &self.life {
            Some(life) => life.log.explain(why, known),
            None => known,
        }
    }

    fn trace(&mut self, trace: Trace) {
        self.talk.trace(trace);
    }

    fn begin_close(&mut self, _: Millis) {
        self.gone.get_or_insert(Gone::Closed);
    }

    fn poll_close(&mut self, _: Millis, cx: &mut Context<'_>) -> Poll<Option<Ended>> {
        if let Some(life) = &mut self.life {
            life.begin_end(cx);
        }
        self.talk.writer = None;
        match &mut self.life {
            Some(life) => life.poll_end(&mut self.talk.reader, cx).map(Some),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.talk.writer = None;
        let Some(mut life) = self.life.take().filter(|life| life.ended.is_none()) else { return };
        let mut reader = self.talk.reader.take();
        let end = poll_fn(move |cx| life.poll_end(&mut reader, cx));
        blocking::unblock(move || futures_lite::future::block_on(end)).detach();
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("program", &self.program).field("id", &self.id).finish_non_exhaustive()
    }
}

/// The process: whether it lives, what it says on stderr, and how it is ended.
struct Life {
    child: Spawned,
    ends: Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send>>,
    status: Option<ExitStatus>,
    errors: Option<ChildStderr>,
    log: Log,
    patience: Patience,
    /// What was done to end it.
    how: How,
    timer: Timer,
    ended: Option<Ended>,
}

impl Life {
    fn new(mut child: Spawned, log: Log, patience: Patience) -> Self {
        let errors = child.stderr.take();
        let ends = Box::pin(child.status());
        Life { child, ends, status: None, errors, log, patience, how: How::Itself, timer: Timer::never(), ended: None }
    }

    fn poll_status(&mut self, cx: &mut Context<'_>) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Poll::Ready(Ok(status)) = self.ends.as_mut().poll(cx)
        {
            self.status = Some(status);
        }
        self.status
    }

    /// Reads stderr. Whether there may be more at once.
    fn poll_errors(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..CHUNKS {
            let mut chunk = [0; 4096];
            match poll_read(&mut self.errors, cx, &mut chunk) {
                Poll::Ready(0) => {
                    self.log.end();
                    return false;
                }
                Poll::Ready(n) => self.log.take(&chunk[..n]),
                Poll::Pending => return false,
            }
        }
        true
    }

    /// Notes that its end was not its own idea. Its stdin is to be closed next.
    fn begin_end(&mut self, cx: &mut Context<'_>) {
        if self.how == How::Itself && self.poll_status(cx).is_none() {
            self.step(How::Closed, self.patience.close);
        }
    }

    /// Goes on ending the process. What it writes meanwhile is read, so that it is not stuck in writing.
    fn poll_end(&mut self, output: &mut Option<ChildStdout>, cx: &mut Context<'_>) -> Poll<Ended> {
        self.begin_end(cx);
        while self.ended.is_none() {
            let status = self.poll_status(cx);
            if status.is_some() {
                self.poll_errors(cx);
                self.log.end();
                self.ended = Some(Ended::new(status, self.how));
            } else if self.poll_errors(cx) | poll_waste(output, cx) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            } else if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return Poll::Pending;
            } else {
                self.insist();
            }
        }
        self.ended.map_or(Poll::Pending, Poll::Ready)
    }

    fn step(&mut self, how: How, time: Duration) {
        self.how = how;
        self.timer = Timer::after(time);
    }

    /// It did not end in time.
    fn insist(&mut self) {
        match self.how {
            How::Itself | How::Closed if !self.patience.terminate.is_zero() => {
                self.terminate();
                self.step(How::Terminated, self.patience.terminate);
            }
            How::Killed => self.ended = Some(Ended::new(None, How::Killed)),
            _ => {
                let _ = self.child.kill();
                self.step(How::Killed, self.patience.kill);
            }
        }
    }

    /// Asks it to end.
    fn terminate(&mut self) {
        // A process that has been waited for is not ours any more.
        #[cfg(unix)]
        if let (Ok(None), Some(pid)) =
            (self.child.try_status(), i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

/// Reads and forgets. Whether there may be more at once.
fn poll_waste(output: &mut Option<ChildStdout>, cx: &mut Context<'_>) -> bool {
    let mut waste = [0; 4096];
    (0..CHUNKS).all(|_| matches!(poll_read(output, cx, &mut waste), Poll::Ready(n) if n > 0))
}

/// 0 at the end.
fn poll_read(from: &mut Option<impl AsyncRead + Unpin>, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<usize> {
    let Some(reader) = from else { return Poll::Ready(0) };
    let n = match retry(|| Pin::new(&mut *reader).poll_read(cx, space)) {
        Poll::Ready(read) => read.unwrap_or(0),
        Poll::Pending => return Poll::Pending,
    };
    if n == 0 {
        *from = None;
    }
    Poll::Ready(n)
}
