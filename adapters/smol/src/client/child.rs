//! A server as a child process: lines over its stdin and stdout
//! ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)).

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};

use async_io::Timer;
use async_process::{Child as Spawned, ChildStderr, ChildStdin, Command};
use blocking::Task;
use futures_lite::AsyncRead;
use mcp_sansio::client::{ClientHandler, ClientInfo};
use mcp_sansio::server::Millis;
use mcp_sansio_host::{ChildSession, ChildShutdown};

use super::alarm::Alarm;
use super::lines::{Got, LineLink};
use super::pipe::OutputPipe;
use super::{ChildExit, ClientError, StopSignal, Trace, Transport, TransportState};
use crate::interrupted::retry;

/// The limit of chunks that are read from stderr in one turn.
const CHUNKS: usize = 16;

/// A function that gets each line of a server's stderr. The driver calls it; it must not block.
pub type OnLine = Box<dyn FnMut(&[u8]) + Send>;

/// The use of the text that a server writes to its stderr.
pub type Stderr = mcp_sansio_host::Stderr<OnLine>;

/// Takes the bytes of the pipe.
pub(super) type Log = mcp_sansio_host::StderrLog<OnLine>;

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
    session: Session,
    link: LineLink<OutputPipe, ChildStdin>,
    command: Command,
    /// `None` while there is no process, and while this is dropped.
    process: Option<ChildProcess>,
    /// Ends the old process before there is another one.
    stopping: Option<Task<ChildExit>>,
    id: u32,
}

type Session = ChildSession<'static, OnLine, Trace>;

impl Child {
    /// Starts a server with the default options. Its stdin and stdout become pipes to the client; settings of
    /// `command` for them are replaced.
    ///
    /// # Errors
    /// [`ClientError::Start`] if the program cannot be started; [`ClientError::Io`] if it has no pipes.
    pub fn spawn(command: std::process::Command, info: &'static ClientInfo<'static>) -> Result<Self, ClientError> {
        Child::spawn_with(command, info, ChildOptions::new())
    }

    /// Starts a server, as [`spawn`](Child::spawn) does, with options.
    ///
    /// # Errors
    /// As [`spawn`](Child::spawn).
    pub fn spawn_with(
        mut command: std::process::Command,
        info: &'static ClientInfo<'static>,
        options: ChildOptions,
    ) -> Result<Self, ClientError> {
        let session = Session::new(&mut command, info, options);
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(session.log.stdio());
        let (child, input, output) = start(&mut command, &session)?;
        Ok(Child {
            link: LineLink::new(output, input),
            command,
            id: child.id(),
            process: Some(ChildProcess::new(child, session.shutdown())),
            session,
            stopping: None,
        })
    }

    /// Starts the process once more if it has ended at the probe. Returns whether it runs.
    fn start_again(&mut self) -> bool {
        if !self.session.starts_again() {
            return false;
        }
        if let Some(stopping) = self.give_up() {
            stopping.detach();
        }
        self.replace().is_ok()
    }

    /// Ends the process, if there is one.
    fn give_up(&mut self) -> Option<Task<ChildExit>> {
        self.link.writer = None;
        stop(self.process.take()?, self.link.reader.take(), Log::new(Stderr::Null))
    }

    /// Starts another process.
    fn replace(&mut self) -> Result<(), ClientError> {
        let (child, input, output) = start(&mut self.command, &self.session)?;
        self.link = LineLink::new(output, input);
        self.id = child.id();
        self.process = Some(ChildProcess::new(child, self.session.shutdown()));
        self.session.started();
        Ok(())
    }

    /// Returns the id of the process.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Reads what there is, and finds out whether more can come. Returns whether there may be more at once.
    fn read(&mut self, now: Millis, status: Option<ExitStatus>, cx: &Context<'_>) -> bool {
        let got = self.link.poll_read(&mut self.session.lines, cx);
        let again = self.session.found(got.read(), status, now);
        if again {
            self.link.look_again();
            self.link.reader.iter_mut().for_each(OutputPipe::look_again);
        }
        again || got == Got::Bytes
    }
}

/// Starts a process, and takes over its pipes.
fn start(command: &mut Command, session: &Session) -> Result<(Spawned, ChildStdin, OutputPipe), ClientError> {
    let mut child = command.spawn().map_err(|error| session.not_started(error))?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok((child, input, OutputPipe::new(output)?)),
        _ => Err(ClientError::Io(io::ErrorKind::BrokenPipe.into())),
    }
}

impl Transport for Child {
    fn state(&self) -> &dyn TransportState<'static, Trace> {
        &self.session
    }

    fn state_mut(&mut self) -> &mut dyn TransportState<'static, Trace> {
        &mut self.session
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool {
        let (mut status, mut more) = (None, false);
        if let Some(process) = &mut self.process {
            status = process.poll_status(cx);
            more = process.poll_errors(&mut self.session.log, cx);
        }
        let owing = self.session.lines.is_owing();
        if self.session.lines.wants_input() {
            more |= self.read(now, status, cx);
        }
        more |= self.start_again();
        self.session.lines.run(now, handler);
        self.link.poll_write(&mut self.session.lines, cx);
        more || owing && !self.session.lines.is_owing()
    }

    fn poll_restart(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        if let Some(stopping) = self.give_up() {
            self.session.close();
            self.stopping = Some(stopping);
        }
        if let Some(stopping) = &mut self.stopping {
            ready!(Pin::new(stopping).poll(cx));
            self.stopping = None;
        }
        self.replace()?;
        self.session.lines.reconnect();
        Poll::Ready(Ok(()))
    }

    fn begin_close(&mut self, _: Millis) {
        self.session.close();
    }

    fn poll_close(&mut self, _: Millis, cx: &mut Context<'_>) -> Poll<Option<ChildExit>> {
        if let Some(stopping) = &mut self.stopping {
            return Pin::new(stopping).poll(cx).map(Some);
        }
        if let Some(process) = &mut self.process {
            process.begin_end(cx);
        }
        self.link.writer = None;
        match &mut self.process {
            Some(process) => process.poll_end(&mut self.link.reader, &mut self.session.log, cx).map(Some),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Child {
    /// The stdin of the process is closed with the other fields, right after this.
    fn drop(&mut self) {
        let stopping =
            self.process.take().and_then(|process| stop(process, self.link.reader.take(), self.session.take_log()));
        if let Some(stopping) = stopping.or(self.stopping.take()) {
            stopping.detach();
        }
    }
}

/// Stops a process whose stdin is closed or about to be, on a thread of [`blocking`].
fn stop(mut process: ChildProcess, mut reader: Option<OutputPipe>, mut log: Log) -> Option<Task<ChildExit>> {
    if process.shutdown.ended().is_some() {
        return None;
    }
    let end = poll_fn(move |cx| {
        process.begin_end(cx);
        process.poll_end(&mut reader, &mut log, cx)
    });
    Some(blocking::unblock(move || futures_lite::future::block_on(end)))
}

mcp_sansio::debug_fields!(impl for Child { session, id });

/// The process: its status, its stderr, and the steps to stop it.
struct ChildProcess {
    child: Spawned,
    ends: Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send>>,
    status: Option<ExitStatus>,
    errors: Option<ChildStderr>,
    shutdown: ChildShutdown,
    timer: Timer,
    /// Those of the status and of stderr.
    alarms: [Alarm; 2],
}

impl ChildProcess {
    fn new(mut child: Spawned, shutdown: ChildShutdown) -> Self {
        let errors = child.stderr.take();
        let ends = Box::pin(child.status());
        ChildProcess {
            child,
            ends,
            status: None,
            errors,
            shutdown,
            timer: Timer::never(),
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
    fn poll_errors(&mut self, log: &mut Log, cx: &mut Context<'_>) -> bool {
        let ChildProcess { errors, alarms: [_, alarm], .. } = self;
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
        if !self.shutdown.has_begun() && self.poll_status(cx).is_none() {
            self.step();
        }
    }

    /// Continues to stop the process after [`begin_end`](ChildProcess::begin_end). Reads its output meanwhile: with a full pipe,
    /// the process would wait for its reader.
    fn poll_end(&mut self, output: &mut Option<OutputPipe>, log: &mut Log, cx: &mut Context<'_>) -> Poll<ChildExit> {
        loop {
            if let Some(ended) = self.shutdown.ended() {
                return Poll::Ready(ended);
            }
            let status = self.poll_status(cx);
            if status.is_some() {
                self.poll_errors(log, cx);
                log.end();
                self.shutdown.finish(status);
            } else if self.poll_errors(log, cx) | poll_waste(output, cx) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            } else if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return Poll::Pending;
            } else {
                self.step();
            }
        }
    }

    /// Takes the next step to stop it; the caller closes its stdin. After the last step, reports that it has not
    /// ended.
    fn step(&mut self) {
        let Some((signal, time)) = self.shutdown.step() else {
            self.shutdown.finish(None);
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
    use super::*;
    use crate::client::{Direction, Ignore};
    use futures_lite::FutureExt;
    use mcp_sansio::client::TransportError;
    use mcp_sansio::revision::Revision;
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::Waker;
    use std::time::Duration;

    /// As one that hangs in the kernel: after the last step it is said to live on.
    #[test]
    fn a_process_that_does_not_even_end_by_sigkill_is_given_up() {
        let mut command = std::process::Command::new("sleep");
        command.arg("60");
        let session = Session::new(&mut command, &PROFILE, ChildOptions::new().close_time(Duration::ZERO));
        let child = Command::from(command).spawn().unwrap();
        let (mut process, mut log) = (ChildProcess::new(child, session.shutdown()), Log::new(Stderr::Null));
        process.ends = Box::pin(pending());
        while process.shutdown.step().is_some() {}
        process.timer = Timer::after(Duration::ZERO);
        let late = async {
            Timer::after(Duration::from_secs(10)).await;
            None
        };
        let ended =
            async_io::block_on(async { Some(poll_fn(|cx| process.poll_end(&mut None, &mut log, cx)).await) }.or(late));
        process.child.kill().unwrap();
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

    /// A server that ends at the probe is started once more, unless the client is closed.
    #[test]
    fn a_process_that_is_started_again_has_another_id() {
        let mut child = shell("read line; exit 3");
        child.state_mut().handle().client.connect();
        let first = child.id();
        run_until(&mut child, 0, |child, _| child.id() != first);
        assert!(child.session.lines.wants_input() && child.process.is_some());
        let second = child.id();
        run_until(&mut child, 0, |child, _| !child.session.lines.wants_input());
        assert!(child.state().explain(TransportError::Closed).contains("exit status: 3"));
        assert_eq!(child.id(), second);

        let mut child = shell("exec cat");
        child.state_mut().handle().client.connect();
        let first = child.id();
        child.begin_close(0);
        run_until(&mut child, 0, |_, more| !more);
        assert_eq!((child.id(), child.state().explain(TransportError::Closed).as_str()), (first, "it was closed"));
        assert!(!child.state_mut().handle().client.is_opening());
    }

    /// Counts the lines that are read.
    fn counted(child: &mut Child) -> impl Fn() -> usize + use<> {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        child.state_mut().trace(Box::new(move |way, _| {
            count.fetch_add(usize::from(way == Direction::Received), Ordering::SeqCst);
        }));
        move || seen.load(Ordering::SeqCst)
    }

    /// Waits until the process has ended, and lets the client know that.
    fn wait(child: &mut Child) {
        let process = child.process.as_mut().unwrap();
        process.status = Some(async_io::block_on(process.child.status()).unwrap());
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
        assert!(child.session.lines.wants_input());
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
        assert!(child.state().explain(TransportError::Closed).contains("exit status: 0"));
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

    /// A process that sends requests and reads no answers.
    #[test]
    fn a_process_that_does_not_take_its_answers_is_not_read() {
        let id = "x".repeat(1000);
        let mut child = shell(&format!("exec yes '{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}'"));
        child.state_mut().handle().client.connect_as(Revision::V2025_11_25);
        let seen = counted(&mut child);
        run_until(&mut child, 0, |child, _| child.session.lines.is_owing());
        let before = seen();
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(!child.poll_run(0, cx, &mut Ignore));
        }
        assert_eq!(seen(), before, "it was not read");
    }
}
