//! A server as a child process: lines over its stdin and stdout
//! ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)).

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};

use async_io::Timer;
#[cfg(not(unix))]
use async_process::ChildStdout as OutputPipe;
use async_process::{Child as Spawned, ChildStderr, ChildStdin, Command};
use blocking::Task;
use futures_lite::AsyncRead;
use mcp_sansio::client::{ClientHandle, ClientHandler, ClientInfo, TransportError};
use mcp_sansio::server::Millis;
use mcp_sansio_host::{ExitReason, ShutdownTimeouts};

use super::alarm::Alarm;
use super::lines::{Got, Talk};
#[cfg(unix)]
use super::pipe::OutputPipe;
use super::stderr::{Log, OnLine};
use super::{ChildExit, ClientError, Stderr, StopSignal, Trace, Transport};
use crate::interrupted::retry;

/// The time to wait for the exit status after the end of stdout, so that an error can name it.
const LEARN: Millis = 200;

/// The limit of chunks that are read from stderr in one turn.
const CHUNKS: usize = 16;

/// Options of a child process: how it is started and stopped.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio_smol::client::{ChildOptions, Stderr};
/// let options = ChildOptions::new()
///     .stderr(Stderr::Lines(Box::new(|line| println!("server: {}", String::from_utf8_lossy(line)))))
///     .close_time(Duration::from_secs(1));
/// ```
pub type ChildOptions = mcp_sansio_host::ChildOptions<OnLine>;

/// A server that runs as a child process. A client of all revisions first sends `server/discover`. Some older servers end at
/// it: the command is then started once more, and the client sends `initialize`. Dropping it without [`Client::close`](super::Client::close) stops the
/// process in the same order, on a thread of [`blocking`]: closes its stdin, then sends SIGTERM, then SIGKILL
/// ([shutdown](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#stdio)).
pub struct Child {
    talk: Talk<OutputPipe, ChildStdin>,
    command: Command,
    /// `None` while there is no process, and while this is dropped.
    life: Option<Life>,
    /// Parts of the old process for the next one.
    spare: Option<(Log, ShutdownTimeouts)>,
    /// Ends the old process before there is another one.
    stopping: Option<Task<ChildExit>>,
    id: u32,
    program: String,
    /// Stdout has ended. The time until which its exit status is waited for.
    ending: Option<Millis>,
    gone: Option<ExitReason>,
}

impl Child {
    /// Starts a server with the default options. Its stdin and stdout become pipes to the client; settings of
    /// `command` for them are replaced.
    ///
    /// # Errors
    /// [`ClientError::Start`] if the program cannot be started; [`ClientError::Io`] if it has no pipes.
    pub fn spawn(command: std::process::Command, profile: &'static ClientInfo<'static>) -> Result<Self, ClientError> {
        Child::spawn_with(command, profile, ChildOptions::new())
    }

    /// Starts a server, as [`spawn`](Child::spawn) does, with options.
    ///
    /// # Errors
    /// As [`spawn`](Child::spawn).
    pub fn spawn_with(
        mut command: std::process::Command,
        profile: &'static ClientInfo<'static>,
        options: ChildOptions,
    ) -> Result<Self, ClientError> {
        let (options, stderr, timeouts) = options.into_parts();
        mcp_sansio_host::lead_group(&mut command);
        let mut command = Command::from(command);
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.stdio());
        let (child, input, output) = start(&mut command)?;
        Ok(Child {
            talk: Talk::new(output, input, profile, &options),
            command,
            id: child.id(),
            life: Some(Life::new(child, Log::new(stderr), timeouts)),
            spare: None,
            stopping: None,
            program,
            ending: None,
            gone: None,
        })
    }

    /// Starts the process once more if it has ended at the probe. Returns whether it runs.
    fn start_again(&mut self) -> bool {
        if self.gone == Some(ExitReason::Closed) || !self.talk.session.give_up_probe() {
            return false;
        }
        if let Some(stopping) = self.give_up() {
            stopping.detach();
        }
        self.replace().is_ok()
    }

    /// Ends the process, if there is one.
    fn give_up(&mut self) -> Option<Task<ChildExit>> {
        let mut old = self.life.take()?;
        let mut log = mem::replace(&mut old.log, Log::new(Stderr::Null));
        log.start_again();
        self.spare = Some((log, old.timeouts));
        stop(old, self.talk.restart())
    }

    /// Starts another process.
    fn replace(&mut self) -> Result<(), ClientError> {
        let (child, input, output) = start(&mut self.command)?;
        let Some((log, timeouts)) = self.spare.take() else { return Ok(()) };
        (self.talk.writer, self.talk.reader) = (Some(input), Some(output));
        self.id = child.id();
        self.life = Some(Life::new(child, log, timeouts));
        (self.ending, self.gone) = (None, None);
        Ok(())
    }

    /// Returns the id of the process.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Finds out whether the server can still send something, and if not, why.
    fn look(&mut self, now: Millis, got: Got) {
        let status = self.life.as_ref().and_then(|life| life.status);
        if got == Got::End && self.ending.is_none() {
            self.ending = Some(now.saturating_add(LEARN));
        }
        let reason = match (self.ending, status) {
            (_, Some(_)) if !matches!(got, Got::Bytes | Got::Last) => ExitReason::Process,
            (Some(until), _) if until <= now => ExitReason::Output,
            (None, _) if got == Got::Nothing && self.talk.last_words().is_some_and(|at| at <= now) => ExitReason::Input,
            _ => return,
        };
        self.gone.get_or_insert(reason);
    }
}

/// Starts a process, and takes over its pipes.
fn start(command: &mut Command) -> Result<(Spawned, ChildStdin, OutputPipe), ClientError> {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            return Err(ClientError::Start { program, error });
        }
    };
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok((child, input, taken(output)?)),
        _ => Err(ClientError::Io(io::ErrorKind::BrokenPipe.into())),
    }
}

/// Takes over the pipe from the process.
#[cfg(unix)]
fn taken(output: async_process::ChildStdout) -> io::Result<OutputPipe> {
    OutputPipe::new(output)
}

/// Takes over the pipe from the process.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
fn taken(output: OutputPipe) -> io::Result<OutputPipe> {
    Ok(output)
}

impl Transport for Child {
    fn link(&mut self) -> ClientHandle<'_, 'static> {
        self.talk.session.handle()
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool {
        let mut more = false;
        if let Some(life) = &mut self.life {
            life.poll_status(cx);
            more = life.poll_errors(cx);
        }
        let owing = self.talk.is_owing();
        if self.gone.is_none() && !owing {
            let got = self.talk.poll_read(cx);
            self.look(now, got);
            // What was read last is handled before the end of the process.
            let has_ended = self.life.as_ref().is_some_and(|life| life.status.is_some());
            more |= got == Got::Bytes || got == Got::Last && has_ended;
        }
        if self.gone.is_some() {
            match self.start_again() {
                true => more = true,
                false => self.talk.session.end_of_input(),
            }
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

    fn explain(&self, why: TransportError) -> String {
        let gone = self.gone.filter(|_| why == TransportError::Closed);
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

    fn poll_restart(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        if let Some(stopping) = self.give_up() {
            self.gone.get_or_insert(ExitReason::Closed);
            self.stopping = Some(stopping);
        }
        if let Some(stopping) = &mut self.stopping {
            ready!(Pin::new(stopping).poll(cx));
            self.stopping = None;
        }
        self.replace()?;
        self.talk.session.reconnect(TransportError::Closed);
        Poll::Ready(Ok(()))
    }

    fn begin_close(&mut self, _: Millis) {
        self.gone.get_or_insert(ExitReason::Closed);
    }

    fn poll_close(&mut self, _: Millis, cx: &mut Context<'_>) -> Poll<Option<ChildExit>> {
        if let Some(stopping) = &mut self.stopping {
            return Pin::new(stopping).poll(cx).map(Some);
        }
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
    /// The stdin of the process is closed with the other fields, right after this.
    fn drop(&mut self) {
        let stopping = self.life.take().and_then(|life| stop(life, self.talk.reader.take()));
        if let Some(stopping) = stopping.or(self.stopping.take()) {
            stopping.detach();
        }
    }
}

/// Stops a process whose stdin is closed or about to be, on a thread of [`blocking`].
fn stop(mut life: Life, mut reader: Option<OutputPipe>) -> Option<Task<ChildExit>> {
    if life.ended.is_some() {
        return None;
    }
    let end = poll_fn(move |cx| {
        life.begin_end(cx);
        life.poll_end(&mut reader, cx)
    });
    Some(blocking::unblock(move || futures_lite::future::block_on(end)))
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("program", &self.program).field("id", &self.id).finish_non_exhaustive()
    }
}

/// The process: its status, its stderr, and the steps to stop it.
struct Life {
    child: Spawned,
    ends: Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send>>,
    status: Option<ExitStatus>,
    errors: Option<ChildStderr>,
    log: Log,
    timeouts: ShutdownTimeouts,
    /// The last step that was taken to stop it.
    last: StopSignal,
    timer: Timer,
    ended: Option<ChildExit>,
    /// Those of the status and of stderr.
    alarms: [Alarm; 2],
}

impl Life {
    fn new(mut child: Spawned, log: Log, timeouts: ShutdownTimeouts) -> Self {
        let errors = child.stderr.take();
        let ends = Box::pin(child.status());
        Life {
            child,
            ends,
            status: None,
            errors,
            log,
            timeouts,
            last: StopSignal::None,
            timer: Timer::never(),
            ended: None,
            alarms: [Alarm::new(), Alarm::new()],
        }
    }

    fn poll_status(&mut self, cx: &mut Context<'_>) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Poll::Ready(Ok(status)) = self.alarms[0].poll(cx, |cx| self.ends.as_mut().poll(cx))
        {
            self.status = Some(status);
        }
        self.status
    }

    /// Reads stderr. Returns whether there may be more at once.
    fn poll_errors(&mut self, cx: &mut Context<'_>) -> bool {
        let Life { errors, log, alarms: [_, alarm], .. } = self;
        for _ in 0..CHUNKS {
            if errors.is_none() {
                return false;
            }
            let polled = alarm.poll(cx, |cx| {
                let mut chunk = [0; 4096];
                let n = ready!(poll_read(errors, cx, &mut chunk));
                log.take(&chunk[..n]);
                Poll::Ready(n)
            });
            match polled {
                Poll::Ready(0) => {
                    log.end();
                    return false;
                }
                Poll::Ready(_) => {}
                Poll::Pending => return false,
            }
        }
        true
    }

    /// Takes the first step to stop the process, unless it has ended by itself. The caller closes its stdin then.
    fn begin_end(&mut self, cx: &mut Context<'_>) {
        if self.last == StopSignal::None && self.poll_status(cx).is_none() {
            self.step();
        }
    }

    /// Continues to stop the process after [`begin_end`](Life::begin_end). Reads its output meanwhile: with a full pipe,
    /// the process would wait for its reader.
    fn poll_end(&mut self, output: &mut Option<OutputPipe>, cx: &mut Context<'_>) -> Poll<ChildExit> {
        while self.ended.is_none() {
            let status = self.poll_status(cx);
            if status.is_some() {
                self.poll_errors(cx);
                self.log.end();
                self.ended = Some(ChildExit::new(status, self.last));
            } else if self.poll_errors(cx) | poll_waste(output, cx) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            } else if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return Poll::Pending;
            } else {
                self.step();
            }
        }
        self.ended.map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes the next step to stop it; the caller closes its stdin. After the last step, reports that it has not
    /// ended.
    fn step(&mut self) {
        let Some((signal, time)) = self.timeouts.next(self.last) else {
            self.ended = Some(ChildExit::new(None, self.last));
            return;
        };
        match signal {
            // The status call reaps a process that has ended. After that its id may belong to another process.
            StopSignal::Terminate if matches!(self.child.try_status(), Ok(None)) => {
                mcp_sansio_host::signal_group(self.child.id(), signal);
            }
            StopSignal::Kill => {
                if matches!(self.child.try_status(), Ok(None)) {
                    mcp_sansio_host::signal_group(self.child.id(), signal);
                }
                drop(self.child.kill());
            }
            _ => {}
        }
        self.last = signal;
        self.timer = Timer::after(time);
    }
}

/// Reads and drops output. Returns whether there may be more at once.
fn poll_waste(output: &mut Option<OutputPipe>, cx: &mut Context<'_>) -> bool {
    let mut waste = [0; 4096];
    (0..CHUNKS).all(|_| matches!(poll_read(output, cx, &mut waste), Poll::Ready(n) if n > 0))
}

/// Reads once. Returns 0 at the end.
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

#[cfg(all(test, unix))]
mod tests {
    use super::super::lines::OWED;
    use super::*;
    use crate::client::{Direction, Ignore};
    use futures_lite::FutureExt;
    use mcp_sansio::sink::Sink;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::Waker;
    use std::time::Duration;

    /// As one that hangs in the kernel: after the last step it is said to live on.
    #[test]
    fn a_process_that_does_not_even_end_by_sigkill_is_given_up() {
        let timeouts = ChildOptions::new().close_time(Duration::ZERO).into_parts().2;
        let mut command = std::process::Command::new("sleep");
        command.arg("60");
        let child = Command::from(command).spawn().unwrap();
        let mut life = Life::new(child, Log::new(Stderr::Null), timeouts);
        life.ends = Box::pin(pending());
        (life.last, life.timer) = (StopSignal::Kill, Timer::after(Duration::ZERO));
        let late = async {
            Timer::after(Duration::from_secs(10)).await;
            None
        };
        let ended = async_io::block_on(async { Some(poll_fn(|cx| life.poll_end(&mut None, cx)).await) }.or(late));
        life.child.kill().unwrap();
        assert_eq!(ended.map(|ended| (ended.after, ended.status)), Some((StopSignal::Kill, None)));
    }

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    fn shell(script: &str) -> Child {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", script]);
        let time = Duration::from_millis(100);
        Child::spawn_with(command, &PROFILE, ChildOptions::new().close_time(time).terminate_time(time)).unwrap()
    }

    /// Runs a process beside its driver until `is_done`. A test that hangs fails.
    fn run_until(child: &mut Child, now: Millis, mut is_done: impl FnMut(&mut Child, bool) -> bool) {
        let done = poll_fn(|cx| {
            loop {
                let more = child.poll_run(now, cx, &mut Ignore);
                if is_done(child, more) {
                    return Poll::Ready(true);
                }
                if !more {
                    return Poll::Pending;
                }
            }
        });
        let late = async {
            Timer::after(Duration::from_secs(20)).await;
            false
        };
        assert!(async_io::block_on(done.or(late)), "it hangs");
    }

    /// A closed stdout leaves time for the exit status, a failed stdin for the last words.
    #[test]
    fn the_reason_of_an_end_is_found_out_in_time() {
        use std::os::unix::process::ExitStatusExt;
        let mut child = shell("exec cat");
        child.look(10, Got::Nothing);
        assert_eq!((child.ending, child.next_deadline()), (None, None));
        child.look(10, Got::End);
        assert_eq!((child.ending, child.next_deadline()), (Some(10 + LEARN), Some(10 + LEARN)));
        child.look(50, Got::End);
        child.look(9 + LEARN, Got::End);
        assert_eq!((child.ending, child.gone), (Some(10 + LEARN), None));
        child.look(10 + LEARN, Got::End);
        assert_eq!((child.gone, child.next_deadline()), (Some(ExitReason::Output), None));
        assert!(child.explain(TransportError::Closed).contains("closed its stdout, but goes on"));
        assert_eq!(child.explain(TransportError::TimedOut), "");

        (child.ending, child.gone, child.talk.broke) = (None, None, Some(100));
        for (now, got) in [(599, Got::Nothing), (600, Got::Bytes), (600, Got::Last)] {
            child.look(now, got);
            assert_eq!((child.gone, child.next_deadline()), (None, Some(600)));
        }
        child.ending = Some(1000);
        child.look(700, Got::Nothing);
        assert_eq!((child.gone, child.next_deadline()), (None, Some(1000)));
        child.ending = None;
        child.look(600, Got::Nothing);
        assert_eq!(child.gone, Some(ExitReason::Input));
        child.look(600, Got::End);
        child.look(900, Got::End);
        assert_eq!(child.gone, Some(ExitReason::Input), "the first reason");

        (child.ending, child.gone, child.talk.broke) = (None, None, None);
        child.life.as_mut().unwrap().status = Some(ExitStatus::from_raw(0));
        for got in [Got::Bytes, Got::Last] {
            child.look(0, got);
            assert_eq!(child.gone, None, "what was read last is handled first");
        }
        child.look(0, Got::Nothing);
        assert_eq!(child.gone, Some(ExitReason::Process));
        child.life.as_mut().unwrap().status = None;
    }

    /// A server that ends at the probe is started once more, unless the client is closed.
    #[test]
    fn a_process_that_is_started_again_has_another_id() {
        let mut child = shell("read line; exit 3");
        child.link().client.connect();
        let first = child.id();
        run_until(&mut child, 0, |child, _| child.id() != first);
        assert_eq!((child.gone, child.ending, child.life.is_some()), (None, None, true));
        let second = child.id();
        run_until(&mut child, 0, |child, _| child.gone.is_some());
        assert_eq!((child.gone, child.id()), (Some(ExitReason::Process), second));

        let mut child = shell("exec cat");
        child.link().client.connect();
        let first = child.id();
        child.begin_close(0);
        run_until(&mut child, 0, |_, more| !more);
        assert_eq!((child.id(), child.explain(TransportError::Closed).as_str()), (first, "it was closed"));
        assert!(!child.link().client.is_opening());
    }

    /// Counts the lines that are read.
    fn counted(child: &mut Child) -> impl Fn() -> usize + use<> {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        child.trace(Box::new(move |way, _| {
            count.fetch_add(usize::from(way == Direction::Received), Ordering::SeqCst);
        }));
        move || seen.load(Ordering::SeqCst)
    }

    /// Waits until the process has ended, and lets the client know that.
    fn wait(child: &mut Child) {
        let life = child.life.as_mut().unwrap();
        life.status = Some(async_io::block_on(life.child.status()).unwrap());
    }

    #[test]
    fn a_turn_that_has_read_all_asks_for_no_other_one() {
        let mut child = shell("echo '{}'; exec cat");
        let seen = counted(&mut child);
        run_until(&mut child, 0, |_, more| {
            let is_read = seen() > 0;
            assert!(!is_read || !more, "there is nothing more to do");
            is_read
        });
        assert!(child.gone.is_none());
    }

    /// A process that is left behind and holds the output of the one that has ended, until its stdin is closed.
    const HEIR: &str = "exec 3<&0; cat <&3 3<&- &";

    /// The end of its output would come later, or never.
    #[test]
    fn the_last_message_of_a_process_is_handled_before_its_end() {
        let mut child = shell(&format!("{HEIR} echo '{{}}'"));
        let seen = counted(&mut child);
        wait(&mut child);
        let mut turn = || child.poll_run(0, &mut Context::from_waker(Waker::noop()), &mut Ignore);
        assert!(turn(), "the end is found in another turn");
        assert_eq!(seen(), 1);
        assert!(!turn());
        assert_eq!(child.gone, Some(ExitReason::Process));
    }

    #[test]
    fn all_that_a_process_has_written_to_stderr_is_given_out_at_its_end() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let stderr = Stderr::Lines(Box::new(move |line| {
            kept.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
        }));
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", &format!("{HEIR} printf 'one\nhalf' >&2")]);
        let mut child = Child::spawn_with(command, &PROFILE, ChildOptions::new().stderr(stderr)).unwrap();
        wait(&mut child);
        let ended = child.poll_close(0, &mut Context::from_waker(Waker::noop()));
        assert!(matches!(ended, Poll::Ready(Some(ended)) if ended.after == StopSignal::None), "{ended:?}");
        assert_eq!(*lines.lock().unwrap(), ["one", "half"]);
    }

    /// A process that sends requests and reads no answers. The turn that brings the answers below the limit asks for another
    /// one, which reads again.
    #[test]
    fn a_process_that_does_not_take_its_answers_is_not_read() {
        let mut child = shell("exec yes '{}'");
        let seen = counted(&mut child);
        run_until(&mut child, 0, |_, _| seen() > 0);
        let owe = |child: &mut Child, bytes: usize, more: bool| {
            let out = child.talk.session.out();
            out.put(&vec![b' '; bytes - out.pending().len()]).unwrap();
            child.talk.owed = usize::MAX;
            let before = seen();
            let cx = &mut Context::from_waker(Waker::noop());
            assert_eq!(child.poll_run(0, cx, &mut Ignore), more);
            assert_eq!(seen(), before, "it was not read");
        };
        // A part of them fits into the pipe.
        owe(&mut child, OWED, true);
        let before = seen();
        run_until(&mut child, 0, |_, _| seen() > before);
        for _ in 0..3 {
            owe(&mut child, OWED + (1 << 20), false);
        }
    }
}
