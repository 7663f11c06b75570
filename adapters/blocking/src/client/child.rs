//! A server as a child process: lines over its stdin and stdout
//! ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)).

use std::fmt;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientHandler, ClientInfo};
use mcp_sansio::server::Millis;
use mcp_sansio_host::{ChildSession, ChildShutdown, TransportState};

use super::pipes::{Got, OnLine, Pipes, Wants};
use super::process::Process;
use super::{ChildExit, ClientError, StopSignal, Trace, Transport};

/// The time for the last lines of a process that has ended.
const LEARN: Duration = Duration::from_millis(200);

/// The limit of chunks that are read from stderr in one turn: what a pipe holds.
const CHUNKS: usize = 4;

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
/// use std::process::{Command, Stdio};
/// use mcp_sansio::client::ClientInfo;
/// use mcp_sansio_blocking::client::{Child, Client, Ignore};
///
/// let info = ClientInfo::new("demo", "1.0");
/// let mut client = Client::new(Child::spawn(Command::new("calc"), &info)?, Ignore);
/// println!("{:?}", client.connect()?);
/// println!("{:?}", client.close()); // how the process ended
/// # Ok::<(), mcp_sansio_blocking::client::ClientError>(())
/// ```
pub struct Child<'m> {
    session: ChildSession<'m, OnLine, Trace>,
    command: Command,
    process: Process,
    pipes: Pipes,
    shutdown: ChildShutdown,
}

impl<'m> Child<'m> {
    /// Starts a server with the default options. Its stdin and stdout become pipes to the client; settings of
    /// `command` for them are replaced.
    ///
    /// # Errors
    /// [`ClientError::Start`] if the program cannot be started; [`ClientError::Io`] if its pipes cannot be set up.
    pub fn spawn(command: Command, info: &'m ClientInfo<'m>) -> Result<Self, ClientError> {
        Child::spawn_with(command, info, ChildOptions::new())
    }

    /// Starts a server, as [`spawn`](Child::spawn) does, with options.
    ///
    /// # Errors
    /// As [`spawn`](Child::spawn).
    pub fn spawn_with(
        mut command: Command,
        info: &'m ClientInfo<'m>,
        options: ChildOptions,
    ) -> Result<Self, ClientError> {
        let session = ChildSession::new(&mut command, info, options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(session.log.stdio());
        let (process, pipes) = start(&mut command, &session)?;
        Ok(Child { shutdown: session.shutdown(), session, command, process, pipes })
    }

    /// Ends the process, if it still runs, and starts the command again.
    fn replace(&mut self) -> Result<(), ClientError> {
        self.end();
        (self.process, self.pipes) = start(&mut self.command, &self.session)?;
        self.shutdown = self.session.shutdown();
        self.session.started();
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
        self.session.log.last_words()
    }

    /// Stops the process and reports its end: closes its stdin, then sends SIGTERM, then SIGKILL, with a
    /// [time](ChildOptions) for each step
    /// ([shutdown](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#stdio)). Blocks
    /// meanwhile.
    pub fn end(&mut self) -> ChildExit {
        self.session.close();
        if let Some(ended) = self.shutdown.ended() {
            return ended;
        }
        if self.process.status().is_some() {
            self.drain(LEARN);
            return self.shutdown.finish(self.process.status());
        }
        self.write();
        while let Some((signal, time)) = self.shutdown.step() {
            match signal {
                StopSignal::Terminate => self.process.terminate(),
                StopSignal::Kill => self.process.kill(),
                _ => self.pipes.close_input(),
            }
            if self.drain(time) {
                break;
            }
        }
        self.shutdown.finish(self.process.status())
    }

    /// Reads and drops output until the process has ended: with a full pipe, the process would wait for its reader.
    fn drain(&mut self, at_most: Duration) -> bool {
        let end = Instant::now() + at_most;
        let mut waste = [0; 4096];
        loop {
            self.pipes.read_errors(&mut self.session.log);
            let got = self.pipes.read(&mut waste);
            if self.process.status().is_some() {
                self.pipes.look_again();
                while self.pipes.read_errors(&mut self.session.log) && Instant::now() < end {}
                self.session.log.end();
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
        while let Some(pending) = self.session.lines.pending() {
            match self.pipes.write(pending) {
                Ok(0) => return,
                Ok(n) => self.session.lines.sent(n),
                // The pipe has no reader any more.
                Err(_) => self.session.lines.writer_failed(),
            }
        }
    }

    /// Reads once. Returns whether there may be more.
    fn read(&mut self, now: Millis) -> bool {
        if !self.session.lines.wants_input() {
            return false;
        }
        let read = match self.pipes.read(self.session.lines.space()) {
            Got::Bytes(n) => {
                self.session.lines.filled(n);
                return self.pipes.has_more();
            }
            Got::End => Some(0),
            Got::Nothing => None,
        };
        let status = if self.pipes.may_have_ended() { self.process.status() } else { None };
        let again = self.session.found(read, status, now);
        if again {
            self.pipes.look_again();
        }
        again
    }
}

fn start(command: &mut Command, session: &ChildSession<'_, OnLine, Trace>) -> Result<(Process, Pipes), ClientError> {
    let mut child = command.spawn().map_err(|error| session.not_started(error))?;
    let pipes = Pipes::new(&mut child)?;
    Ok((Process::new(child), pipes))
}

impl<'m> Transport<'m> for Child<'m> {
    fn state(&self) -> &dyn TransportState<'m, Trace> {
        &self.session
    }

    fn state_mut(&mut self) -> &mut dyn TransportState<'m, Trace> {
        &mut self.session
    }

    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool> {
        (0..CHUNKS).all(|_| self.pipes.read_errors(&mut self.session.log));
        let read = self.read(now);
        let again = self.session.starts_again() && self.replace().is_ok();
        self.session.lines.run(now, handler);
        self.write();
        Ok(read || again)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let wants = Wants { read: self.session.lines.wants_input(), write: self.session.lines.pending().is_some() };
        self.pipes.wait(wants, &self.process, at_most)
    }

    fn restart(&mut self) -> Result<(), ClientError> {
        self.replace()?;
        self.session.lines.reconnect();
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
        f.debug_struct("Child").field("session", &self.session).field("id", &self.id()).finish_non_exhaustive()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::client::{Client, Ignore, Stderr};
    use mcp_sansio::client::{Request, TransportError};
    use mcp_sansio::revision::Revision;
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

    fn run_until_gone(child: &mut Child<'_>) {
        let begun = Instant::now();
        while child.session.lines.wants_input() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            child.wait(Duration::from_millis(50)).unwrap();
            child.run(0, &mut Ignore).unwrap();
        }
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
        let transport = &mut client.transport;
        assert!(transport.process.wait(Duration::from_secs(20)).is_some());
        assert!(transport.pipes.may_have_ended() && !transport.pipes.has_more());
        assert!(client.wait(token).unwrap().as_str().contains("content"));
    }

    /// A server sends requests without end, and does not read the answers: from some point on its requests are not read.
    #[test]
    fn answers_that_pile_up_end_the_reading() {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(50));
        let mut child = start(&format!("exec yes '{ping}'"));
        child.state_mut().handle().client.connect_as(Revision::V2025_11_25);
        let begun = Instant::now();
        let pending = |child: &mut Child<'_>| child.session.lines.pending().map_or(0, <[u8]>::len);
        while child.session.lines.wants_input() {
            child.run(0, &mut Ignore).unwrap();
            child.wait(Duration::from_millis(1)).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes", pending(&mut child));
        }
        let at_most = pending(&mut child);
        for _ in 0..100 {
            child.run(0, &mut Ignore).unwrap();
            child.wait(Duration::from_millis(1)).unwrap();
        }
        assert!(pending(&mut child) <= at_most, "{} bytes", pending(&mut child));
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
                run_until_gone(&mut child);
                let text = child.state().explain(TransportError::Closed);
                assert!(text.contains("exit status: 3") && text.contains("out of cheese\nand bread"), "{text}");
            }
            // The log ends with the connection.
            assert_eq!(lines.borrow()[0], "out of cheese");
            child.end();
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
        child.state_mut().handle().client.connect_as(Revision::V2026_07_28);
        child.state_mut().handle().send(&Request::call("any")).unwrap();
        child.run(1_000, &mut Ignore).unwrap();
        assert!(child.session.lines.pending().is_none());
        for (now, is_read) in [(1_000, true), (1_499, true), (1_500, false)] {
            assert_eq!(child.state().next_deadline(), Some(1_500));
            child.run(now, &mut Ignore).unwrap();
            assert_eq!(child.session.lines.wants_input(), is_read, "at {now}");
        }
        assert!(child.state().explain(TransportError::Closed).contains("closed its stdin, but goes on"));
    }

    /// The output is not waited for after the loss of the connection.
    #[test]
    fn output_that_is_not_wanted_ends_no_wait() {
        let mut child = start_with("echo hello; echo ready >&2; exec sleep 20", Stderr::Keep);
        while child.session.log.last_words() != "ready" {
            child.pipes.wait(Wants { read: false, write: false }, &child.process, PATIENCE).unwrap();
            assert!(child.pipes.read_errors(&mut child.session.log), "it does not begin");
        }
        child.session.close();
        child.wait(Duration::ZERO).unwrap();
        assert!(!child.pipes.has_more());
        child.session.started();
        child.wait(Duration::ZERO).unwrap();
        assert!(child.pipes.has_more());
    }

    /// A client that was closed opens no connection, neither during the probe nor after its server has ended by itself.
    #[test]
    fn a_client_that_was_closed_starts_no_process() {
        for ends_itself in [false, true] {
            let mut child = start(if ends_itself { "exit 3" } else { "exec sleep 20" });
            let id = child.id();
            if ends_itself {
                run_until_gone(&mut child);
            } else {
                child.state_mut().handle().client.connect();
                child.run(0, &mut Ignore).unwrap();
                assert!(child.state().engine().is_opening());
            }
            child.end();
            child.state_mut().handle().client.connect();
            for _ in 0..3 {
                child.run(0, &mut Ignore).unwrap();
            }
            assert!(child.id() == id && !child.state().engine().is_opening());
        }
    }
}
