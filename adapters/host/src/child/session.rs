//! A client of a child process: what is decided about the process, without pipes and signals.

use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use mcp_sansio::client::{Client, ClientHandle, ClientInfo, TransportError};
use mcp_sansio::server::Millis;

use super::group::lead_group;
use super::{ChildExit, ChildOptions, ExitReason, LineSession, ShutdownTimeouts, Stderr, StderrLog, StopSignal};
use crate::{ClientError, Direction, TransportState};

/// The time to wait for the exit status after the end of stdout, so that an error can name it.
const LEARN: Millis = 200;

/// A client of a child process: finds out when nothing more comes from the process and why, whether its command is started
/// once more, and what an error says about it. An adapter has the process and its pipes.
pub struct ChildSession<'m, L, T> {
    /// The messages. In each turn write what is pending.
    pub lines: LineSession<'m, T>,
    /// Takes the bytes of stderr. Read stderr before each [`found`](ChildSession::found).
    pub log: StderrLog<L>,
    program: String,
    timeouts: ShutdownTimeouts,
    status: Option<ExitStatus>,
    /// The time until which the exit status is waited for: stdout has ended.
    learns: Option<Millis>,
    /// The process has ended, and its output was looked at again.
    looked: bool,
    closed: bool,
}

impl<'m, L: FnMut(&[u8]), T: FnMut(Direction, &[u8])> ChildSession<'m, L, T> {
    /// Makes the client of a process that `command` will start, and sets its process group. The adapter sets the pipes: stderr
    /// as the [log](StderrLog::stdio) says.
    pub fn new(command: &mut Command, info: &'m ClientInfo<'m>, options: ChildOptions<L>) -> Self {
        lead_group(command);
        ChildSession {
            lines: LineSession::new(info, &options.options),
            log: StderrLog::new(options.stderr),
            program: command.get_program().to_string_lossy().into_owned(),
            timeouts: options.timeouts,
            status: None,
            learns: None,
            looked: false,
            closed: false,
        }
    }

    /// Returns the error of a command that cannot be started.
    pub fn not_started(&self, error: io::Error) -> ClientError {
        ClientError::Start { program: self.program.clone(), error }
    }

    /// Returns the steps to stop the process.
    pub const fn shutdown(&self) -> ChildShutdown {
        ChildShutdown { timeouts: self.timeouts, last: StopSignal::None, ended: None }
    }

    /// Takes what a turn has found out: the number of bytes that were read from stdout, which is 0 at its end and `None` if
    /// there was nothing, and the exit status of a process that has ended. Returns whether stdout and stderr must be read again,
    /// even if they seem to have nothing: before its end the process may have written more.
    pub fn found(&mut self, read: Option<usize>, status: Option<ExitStatus>, now: Millis) -> bool {
        self.status = status;
        if read == Some(0) && self.learns.is_none() {
            self.learns = Some(now.saturating_add(LEARN));
        }
        let is_due = |at: Option<Millis>| at.is_some_and(|at| at <= now);
        let reason = match (read, status) {
            (Some(1..), None) => return false,
            (Some(1..), Some(_)) => {
                self.looked = true;
                return true;
            }
            (None, Some(_)) if !self.looked => {
                self.looked = true;
                return true;
            }
            (_, Some(_)) => ExitReason::Process,
            (_, None) if is_due(self.learns) => ExitReason::Output,
            (None, None) if self.learns.is_none() && is_due(self.lines.last_words()) => ExitReason::Input,
            (_, None) => return false,
        };
        self.lines.gone.get_or_insert(reason);
        false
    }

    /// Returns whether the command has to be started once more: the process has ended at the probe, and the client has not closed the
    /// connection.
    pub fn starts_again(&mut self) -> bool {
        self.lines.gone.is_some() && !self.closed && self.lines.give_up_probe()
    }

    /// Notes that another process was started.
    pub fn started(&mut self) {
        self.lines.forget_server();
        self.log.start_again();
        (self.status, self.learns) = (None, None);
        (self.looked, self.closed) = (false, false);
    }

    /// Notes that the client closes the connection.
    pub fn close(&mut self) {
        self.closed = true;
        self.lines.close();
    }

    /// Takes the log for one who stops the process, if this session ends before.
    pub fn take_log(&mut self) -> StderrLog<L> {
        std::mem::replace(&mut self.log, StderrLog::new(Stderr::Null))
    }
}

impl<'m, L: FnMut(&[u8]), T: FnMut(Direction, &[u8])> TransportState<'m, T> for ChildSession<'m, L, T> {
    fn handle(&mut self) -> ClientHandle<'_, 'm> {
        self.lines.handle()
    }

    fn engine(&self) -> &Client<'m> {
        self.lines.engine()
    }

    fn next_deadline(&self) -> Option<Millis> {
        let last = self.learns.or(self.lines.last_words()).filter(|_| self.lines.gone.is_none());
        self.engine().next_deadline().into_iter().chain(last).min()
    }

    fn explain(&self, why: TransportError) -> String {
        let gone = self.lines.reason(why);
        self.log.explain(why, gone.map(|gone| gone.explain(&self.program, self.status)).unwrap_or_default())
    }

    fn trace(&mut self, trace: T) {
        self.lines.trace(trace);
    }

    fn is_full(&mut self) -> bool {
        self.lines.is_full()
    }
}

mcp_sansio::debug_fields!(impl<L, T> for ChildSession<'_, L, T> { program, lines });

/// The steps to stop a process, and its end.
#[derive(Clone, Copy, Debug)]
pub struct ChildShutdown {
    timeouts: ShutdownTimeouts,
    last: StopSignal,
    ended: Option<ChildExit>,
}

impl ChildShutdown {
    /// Begins the next step to stop the process. Returns it, and how long the process may take to end after it; `None` after the
    /// last step.
    pub fn step(&mut self) -> Option<(StopSignal, Duration)> {
        let (signal, time) = self.timeouts.next(self.last)?;
        self.last = signal;
        Some((signal, time))
    }

    /// Returns whether a step was begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.last != StopSignal::None
    }

    /// Notes the exit status; `None` if the process has not ended after the last step. The first report counts.
    pub fn finish(&mut self, status: Option<ExitStatus>) -> ChildExit {
        *self.ended.get_or_insert(ChildExit { status, after: self.last })
    }

    /// Returns how the process ended.
    #[must_use]
    pub const fn ended(&self) -> Option<ChildExit> {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ignore;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    type Session = ChildSession<'static, fn(&[u8]), fn(Direction, &[u8])>;

    fn session() -> Session {
        ChildSession::new(&mut Command::new("calc"), &PROFILE, ChildOptions::new())
    }

    /// A closed stdout leaves time for the exit status.
    #[test]
    fn the_end_of_stdout_waits_for_the_exit_status() {
        let mut child = session();
        child.found(None, None, 10);
        assert_eq!((child.learns, child.next_deadline()), (None, None));
        for now in [10, 50, 9 + LEARN] {
            assert!(!child.found(Some(0), None, now) && child.lines.wants_input());
            assert_eq!((child.learns, child.next_deadline()), (Some(10 + LEARN), Some(10 + LEARN)));
        }
        child.found(Some(0), None, 10 + LEARN);
        assert_eq!(
            (child.lines.gone, child.next_deadline(), child.lines.wants_input()),
            (Some(ExitReason::Output), None, false)
        );
        assert!(child.explain(TransportError::Closed).contains("closed its stdout, but goes on"));
        assert_eq!(child.explain(TransportError::TimedOut), "");
    }

    /// A failed stdin leaves time for the last words.
    #[test]
    fn a_closed_stdin_leaves_time_for_the_last_words() {
        let mut child = session();
        child.lines.run(100, &mut Ignore);
        child.lines.writer_failed();
        for (now, read) in [(599, None), (600, Some(1))] {
            assert!(!child.found(read, None, now));
            assert_eq!((child.lines.gone, child.next_deadline()), (None, Some(600)));
        }
        child.learns = Some(1000);
        child.found(None, None, 700);
        assert_eq!((child.lines.gone, child.next_deadline()), (None, Some(1000)));
        child.learns = None;
        child.found(None, None, 600);
        assert_eq!(child.lines.gone, Some(ExitReason::Input));
        child.found(Some(0), None, 600);
        child.found(Some(0), None, 900);
        assert_eq!(child.lines.gone, Some(ExitReason::Input), "the first reason");
    }

    /// Between the last read and its end the process may have written more.
    #[test]
    fn the_output_of_a_process_that_has_ended_is_looked_at_again() {
        let over = Some(ExitStatus::default());
        for read in [None, Some(5)] {
            let mut child = session();
            assert!(child.found(read, over, 0));
            assert_eq!(child.lines.gone, None, "what was read last is handled first");
            assert!(!child.found(None, over, 0));
            assert_eq!(child.lines.gone, Some(ExitReason::Process));
        }
        let mut child = session();
        assert!(!child.found(Some(0), over, 0));
        assert_eq!(child.lines.gone, Some(ExitReason::Process), "nothing comes behind the end");
        child.started();
        assert!(child.lines.gone.is_none() && child.status.is_none() && child.lines.wants_input());
    }

    /// A server that ends at the probe is started once more, unless the client is closed. One that starts slowly reads the probe
    /// when `initialize` is sent already.
    #[test]
    fn a_process_that_ends_at_the_probe_is_started_once_more() {
        for (time, closed_after, again) in
            [(0, None, true), (5_000, None, true), (0, Some(0), false), (0, Some(1), false)]
        {
            let mut child = session();
            child.lines.handle().client.connect();
            child.lines.run(0, &mut Ignore);
            child.lines.run(time, &mut Ignore);
            assert!(!child.starts_again(), "it runs");
            if closed_after == Some(0) {
                child.close();
            }
            child.found(Some(0), Some(ExitStatus::default()), time);
            if closed_after == Some(1) {
                child.close();
            }
            assert_eq!(child.starts_again(), again);
            if again {
                child.started();
                child.found(Some(0), Some(ExitStatus::default()), time + 1);
                assert!(!child.starts_again(), "once");
            }
            child.lines.run(time + 2, &mut Ignore);
            assert!(!child.lines.engine().is_opening());
        }
    }

    #[test]
    fn the_first_report_of_an_end_counts() {
        let mut shutdown = session().shutdown();
        assert!(!shutdown.has_begun() && shutdown.ended().is_none());
        let signals: Vec<_> = std::iter::from_fn(|| Some(shutdown.step()?.0)).collect();
        assert_eq!((signals.first(), signals.last()), (Some(&StopSignal::StdinClosed), Some(&StopSignal::Kill)));
        assert_eq!(shutdown.finish(None), ChildExit { status: None, after: StopSignal::Kill });
        assert_eq!(shutdown.finish(Some(ExitStatus::default())).status, None);
    }
}
