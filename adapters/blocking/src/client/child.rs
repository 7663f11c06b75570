//! A server as a child process: lines over its stdin and stdout
//! ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)).

use std::fmt;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientHandle, ClientHandler, ClientInfo, LineClient, TransportError};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::LineSink;
use mcp_sansio_host::{ExitReason, LineTrace, ShutdownTimeouts};

use super::pipes::{Got, Pipes, Wants};
use super::process::Process;
use super::stderr::{Log, OnLine};
use super::{ChildExit, ClientError, IN_FLIGHT, StopSignal, Trace, Transport};

/// The limit of pending answers, in bytes: while more are pending, nothing is read. It stops a server that sends
/// requests and does not read the answers. Pending requests do not count, however large: a server may have to write
/// before it can read them.
const BACKLOG: usize = 16 << 20;

/// The time to read on after the server has closed its stdin: its last messages may explain why.
const LAST_WORDS: Millis = 500;

/// The time to learn how the process ended: for its exit status, so that an error can name it, and its last lines.
const LEARN: Duration = Duration::from_millis(200);

/// Options of a child process: how it is started and stopped.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio_blocking::client::{ChildOptions, Stderr};
/// let options = ChildOptions::new()
///     .stderr(Stderr::Lines(Box::new(|line| println!("server: {}", String::from_utf8_lossy(line)))))
///     .close_time(Duration::from_secs(1));
/// ```
pub type ChildOptions = mcp_sansio_host::ChildOptions<OnLine>;

/// A server that runs as a child process. Dropping it stops the process as [`end`](Child::end) does.
///
/// A client of all revisions first sends `server/discover`. Some older servers end at it: the command is then started once
/// more, and the client sends `initialize`.
///
/// ```no_run
/// use std::process::Command;
/// use mcp_sansio::client::ClientInfo;
/// use mcp_sansio_blocking::client::{Child, Client, Ignore};
///
/// let profile = ClientInfo::new("demo", "1.0");
/// let mut client = Client::new(Child::spawn(Command::new("calc"), &profile)?, Ignore);
/// println!("{:?}", client.connect()?);
/// println!("{:?}", client.close()); // how the process ended
/// # Ok::<(), mcp_sansio_blocking::client::ClientError>(())
/// ```
pub struct Child<'m> {
    session: LineClient<'m, LineSink<Vec<u8>>>,
    command: Command,
    process: Process,
    pipes: Pipes,
    log: Log,
    program: String,
    timeouts: ShutdownTimeouts,
    gone: Option<ExitReason>,
    /// The process has ended, and its last output was read.
    looked: bool,
    input_broke: Option<Millis>,
    /// The number of pending bytes that are answers.
    owed: usize,
    now: Millis,
    tracing: Option<LineTrace<Trace>>,
    ended: Option<ChildExit>,
}

impl<'m> Child<'m> {
    /// Starts a server with the default options. Its stdin and stdout become pipes to the client; settings of
    /// `command` for them are replaced.
    ///
    /// # Errors
    /// [`ClientError::Start`] if the program cannot be started; [`ClientError::Io`] if its pipes cannot be set up.
    pub fn spawn(command: Command, profile: &'m ClientInfo<'m>) -> Result<Self, ClientError> {
        Child::spawn_with(command, profile, ChildOptions::new())
    }

    /// Starts a server, as [`spawn`](Child::spawn) does, with options.
    ///
    /// # Errors
    /// As [`spawn`](Child::spawn).
    pub fn spawn_with(
        mut command: Command,
        profile: &'m ClientInfo<'m>,
        options: ChildOptions,
    ) -> Result<Self, ClientError> {
        let (options, stderr, timeouts) = options.into_parts();
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.stdio());
        mcp_sansio_host::lead_group(&mut command);
        let (child, pipes) = start(&mut command)?;
        let input = LineBuffer::new(Store::growing(options.message_limit()));
        Ok(Child {
            session: LineClient::new(input, options.engine(profile, IN_FLIGHT), LineSink::new(Vec::new())),
            command,
            process: Process::new(child),
            pipes,
            log: Log::new(stderr),
            program,
            timeouts,
            gone: None,
            looked: false,
            input_broke: None,
            owed: 0,
            now: 0,
            tracing: None,
            ended: None,
        })
    }

    /// Starts the process once more if it has ended at the probe. Returns whether it runs.
    fn start_again(&mut self) -> bool {
        if self.ended.is_some() || !self.session.give_up_probe() {
            return false;
        }
        self.replace().is_ok()
    }

    /// Ends the process, if it still runs, and starts the command again.
    fn replace(&mut self) -> Result<(), ClientError> {
        if self.ended.is_none() {
            self.shut_down();
        }
        // Of the old process, until there is a new one.
        self.gone.get_or_insert(ExitReason::Process);
        self.drop_pending();
        self.log.start_again();
        let (child, pipes) = start(&mut self.command)?;
        (self.process, self.pipes) = (Process::new(child), pipes);
        (self.gone, self.looked, self.input_broke, self.owed, self.ended) = (None, false, None, 0, None);
        Ok(())
    }

    /// Returns the id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the last lines of the process's stderr; empty unless they are [kept](super::Stderr::Keep).
    #[must_use]
    pub fn last_words(&self) -> String {
        self.log.last_words()
    }

    /// Stops the process and reports its end: closes its stdin, then sends SIGTERM, then SIGKILL, with a
    /// [time](ChildOptions) for each step
    /// ([shutdown](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#stdio)). Blocks
    /// meanwhile.
    pub fn end(&mut self) -> ChildExit {
        if let Some(ended) = self.ended {
            return ended;
        }
        let ended = self.shut_down();
        self.ended = Some(ended);
        self.gone.get_or_insert(ExitReason::Closed);
        ended
    }

    fn shut_down(&mut self) -> ChildExit {
        if let Some(status) = self.process.status() {
            self.drain(LEARN);
            return ChildExit::new(Some(status), StopSignal::None);
        }
        self.write();
        let mut last = StopSignal::None;
        while let Some((signal, time)) = self.timeouts.next(last) {
            match signal {
                StopSignal::Terminate => self.process.terminate(),
                StopSignal::Kill => self.process.kill(),
                _ => self.pipes.close_input(),
            }
            if self.drain(time) {
                return ChildExit::new(self.process.status(), signal);
            }
            last = signal;
        }
        ChildExit::new(None, last)
    }

    /// Reads and drops output until the process has ended: with a full pipe, the process would wait for its reader.
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
            // The pipe has no reader any more.
            self.drop_pending();
        }
    }

    fn drop_pending(&mut self) {
        let n = self.session.pending().len();
        self.session.sent(n);
        if let Some(tracing) = &mut self.tracing {
            tracing.written(n);
        }
    }

    /// Reads once. Returns whether there may be more.
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
                return self.pipes.has_more();
            }
            Got::End => self.gone = Some(ExitReason::Output),
            Got::Nothing if self.pipes.may_have_ended() && self.process.status().is_some() => {
                // Between the last read and its end the process may have written more.
                if !std::mem::replace(&mut self.looked, true) {
                    self.pipes.look_again();
                    return true;
                }
                self.gone = Some(ExitReason::Process);
            }
            Got::Nothing if self.input_broke.is_some_and(|at| self.now.saturating_sub(at) >= LAST_WORDS) => {
                self.gone = Some(ExitReason::Input);
            }
            Got::Nothing => {}
        }
        self.gone.is_some()
    }

    fn wants_more(&self) -> bool {
        self.owed.min(self.session.pending().len()) < BACKLOG
    }
}

fn start(command: &mut Command) -> Result<(std::process::Child, Pipes), ClientError> {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            return Err(ClientError::Start { program, error });
        }
    };
    let pipes = Pipes::new(&mut child)?;
    Ok((child, pipes))
}

impl<'m> Transport<'m> for Child<'m> {
    fn link(&mut self) -> ClientHandle<'_, 'm> {
        self.session.handle()
    }

    fn engine(&self) -> &mcp_sansio::client::Client<'m> {
        self.session.engine()
    }

    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool> {
        self.now = now;
        self.pipes.read_errors(&mut self.log);
        let read = self.read();
        if self.gone.is_some() && !self.start_again() {
            self.session.end_of_input();
        }
        let before = self.session.pending().len();
        // `NextStep::Write` needs no care here: the sink grows, so it is never full.
        let _ = self.session.run(now, handler);
        self.owed = self.owed.min(before) + self.session.pending().len().saturating_sub(before);
        self.write();
        Ok(read)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let write = !self.session.pending().is_empty();
        let wants = Wants { read: self.gone.is_none() && self.wants_more(), write };
        let last_words = self.input_broke.map_or(Duration::MAX, |_| Duration::from_millis(LAST_WORDS));
        self.pipes.wait(wants, &self.process, at_most.min(last_words))
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.session.engine().next_deadline()
    }

    fn explain(&mut self, why: TransportError) -> String {
        let known = match self.gone.filter(|_| why == TransportError::Closed) {
            None => String::new(),
            Some(gone) => {
                self.drain(LEARN);
                gone.explain(&self.program, self.process.status())
            }
        };
        self.log.explain(why, known)
    }

    fn trace(&mut self, trace: Trace) {
        self.tracing = Some(LineTrace::new(trace, self.session.pending().len()));
    }

    fn restart(&mut self) -> Result<(), ClientError> {
        self.replace()?;
        self.session.reconnect(TransportError::Closed);
        Ok(())
    }

    fn close(&mut self) -> Option<ChildExit> {
        Some(self.end())
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::client::{Client, Ignore, Stderr};
    use mcp_sansio::client::Request;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::sink::MessageKind;
    use std::cell::RefCell;
    use std::rc::Rc;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    /// The longest time for any step. None comes near it.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn start(script: &str) -> Child<'static> {
        start_with(script, Stderr::Null)
    }

    fn start_with(script: &str, stderr: Stderr) -> Child<'static> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let options = ChildOptions::new().stderr(stderr);
        let options = options.close_time(Duration::from_millis(50)).terminate_time(Duration::from_millis(50));
        Child::spawn_with(command, &PROFILE, options).unwrap()
    }

    /// The server answers and ends after the pipe was found empty, and before its status is looked at. Its child keeps the pipe
    /// open, so that the output does not end with the server.
    #[test]
    fn the_last_answer_before_the_end_is_read() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}"#;
        let mut child = start(&format!("sleep 4 & read l; sleep 0.3; echo '{answer}'; exit 1"));
        child.process.unwatched();
        let mut client = Client::new(child, Ignore);
        client.connect_as(Revision::V2026_07_28).unwrap();
        let token = client.send(&Request::call("any")).unwrap();
        client.run().unwrap();
        let transport = client.transport();
        assert!(transport.process.wait(Duration::from_secs(20)).is_some());
        assert!(transport.pipes.may_have_ended() && !transport.pipes.has_more());
        assert!(client.wait(token).unwrap().as_str().contains("content"));
    }

    /// A server sends requests without end, and does not read the answers: from some point on its requests are not read.
    #[test]
    fn answers_that_pile_up_end_the_reading() {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(50));
        let mut child = start(&format!("exec yes '{ping}'"));
        child.link().client.connect_as(Revision::V2025_11_25);
        let begun = Instant::now();
        while child.session.pending().len() < BACKLOG {
            child.run(0, &mut Ignore).unwrap();
            child.wait(Duration::from_millis(1)).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes", child.session.pending().len());
        }
        for _ in 0..100 {
            child.run(0, &mut Ignore).unwrap();
            child.wait(Duration::from_millis(1)).unwrap();
        }
        let pending = child.session.pending().len();
        assert!(pending < BACKLOG + (1 << 20), "{pending} bytes");
    }

    /// The process has ended, and nothing of its stderr was read yet.
    #[test]
    fn the_last_lines_of_a_process_that_has_ended_are_read() {
        for is_closed in [false, true] {
            let lines = Rc::new(RefCell::new(Vec::new()));
            let sink = lines.clone();
            let stderr =
                Stderr::Lines(Box::new(move |line| sink.borrow_mut().push(String::from_utf8_lossy(line).into_owned())));
            let mut child = start_with("echo 'out of cheese' >&2; printf 'and bread' >&2; exit 3", stderr);
            assert!(child.process.wait(PATIENCE).is_some());
            if is_closed {
                let ended = child.end();
                assert_eq!((ended.after, ended.status.and_then(|status| status.code())), (StopSignal::None, Some(3)));
            } else {
                child.gone = Some(ExitReason::Process);
                let text = child.explain(TransportError::Closed);
                assert!(text.contains("exit status: 3") && text.contains("out of cheese\nand bread"), "{text}");
            }
            assert_eq!(*lines.borrow(), ["out of cheese", "and bread"]);
        }
    }

    /// A server that has closed its stdin can still say why, for a limited time. What was to be written is dropped.
    #[test]
    fn a_closed_stdin_leaves_time_for_the_last_words() {
        let mut child = start("exec 0<&-; exec sleep 20");
        let begun = Instant::now();
        while child.pipes.write(b"\n").is_ok() {
            assert!(begun.elapsed() < PATIENCE, "it does not close its stdin");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.link().client.connect_as(Revision::V2026_07_28);
        child.link().send(&Request::call("any")).unwrap();
        child.run(1_000, &mut Ignore).unwrap();
        assert!(child.input_broke == Some(1_000) && child.session.pending().is_empty());
        let end = 1_000 + LAST_WORDS;
        for (now, gone) in [(1_000, None), (end - 1, None), (end, Some(ExitReason::Input))] {
            child.run(now, &mut Ignore).unwrap();
            assert_eq!(child.gone, gone, "at {now}");
        }
    }

    /// The output is not waited for while too many answers are pending, or after the loss of the connection.
    #[test]
    fn output_that_is_not_wanted_ends_no_wait() {
        let mut child = start_with("echo hello; echo ready >&2; exec sleep 20", Stderr::Keep);
        while child.log.last_words() != "ready" {
            child.pipes.wait(Wants { read: false, write: false }, &child.process, PATIENCE).unwrap();
            assert!(child.pipes.read_errors(&mut child.log), "it does not begin");
        }
        let out = child.session.handle().out;
        out.begin(MessageKind::Notification).unwrap();
        out.put(&vec![b' '; BACKLOG]).unwrap();
        out.end();
        child.owed = BACKLOG;
        assert!(!child.wants_more());
        child.wait(Duration::ZERO).unwrap();
        assert!(!child.pipes.has_more());
        child.owed = BACKLOG - 1;
        assert!(child.wants_more());
        child.gone = Some(ExitReason::Input);
        child.wait(Duration::ZERO).unwrap();
        assert!(!child.pipes.has_more());
        child.gone = None;
        child.wait(Duration::ZERO).unwrap();
        assert!(child.pipes.has_more());
    }

    /// A client that was closed opens no connection, neither during the probe nor after its server has ended by itself.
    #[test]
    fn a_client_that_was_closed_starts_no_process() {
        for ends_itself in [false, true] {
            let mut child = start(if ends_itself { "exit 3" } else { "exec sleep 20" });
            let (id, begun) = (child.id(), Instant::now());
            if ends_itself {
                while child.gone.is_none() {
                    assert!(begun.elapsed() < PATIENCE, "it does not end");
                    child.wait(Duration::from_millis(50)).unwrap();
                    child.run(0, &mut Ignore).unwrap();
                }
            } else {
                child.link().client.connect();
                child.run(0, &mut Ignore).unwrap();
                assert!(child.engine().is_opening());
            }
            child.end();
            child.link().client.connect();
            for _ in 0..3 {
                child.run(0, &mut Ignore).unwrap();
            }
            assert!(child.id() == id && !child.engine().is_opening());
        }
    }
}
