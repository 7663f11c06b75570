//! A server that runs as a child process: how it is started and stopped, and the report of its end.

#[cfg_attr(not(unix), path = "child/no_group.rs")]
mod group;
mod lines;
mod session;
mod stderr;
mod trace;

pub use group::signal_group;
pub use lines::LineSession;
pub use session::{ChildSession, ChildShutdown};
pub use stderr::{Stderr, StderrLog};

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::ClientOptions;

/// Options of a child process: how it is started and stopped.
#[must_use]
pub struct ChildOptions<L> {
    pub(crate) options: ClientOptions,
    pub(crate) stderr: Stderr<L>,
    pub(crate) timeouts: ShutdownTimeouts,
}

/// The time that each step of the
/// [shutdown](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#stdio) of a child process may
/// take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShutdownTimeouts {
    /// After its stdin was closed.
    close: Duration,
    /// After SIGTERM. With zero, SIGTERM is not sent.
    terminate: Duration,
    /// After SIGKILL.
    kill: Duration,
}

impl ShutdownTimeouts {
    /// Returns the step that follows `last`, and how long the process may take to end after it; `None` after the last
    /// step.
    pub(crate) fn next(&self, last: StopSignal) -> Option<(StopSignal, Duration)> {
        match last {
            StopSignal::None => Some((StopSignal::StdinClosed, self.close)),
            StopSignal::StdinClosed if cfg!(unix) && !self.terminate.is_zero() => {
                Some((StopSignal::Terminate, self.terminate))
            }
            StopSignal::StdinClosed | StopSignal::Terminate => Some((StopSignal::Kill, self.kill)),
            StopSignal::Kill => None,
        }
    }
}

impl<L> ChildOptions<L> {
    /// Returns the defaults. Stderr is [kept](Stderr::Keep) for errors. After its stdin is closed the process has 5
    /// seconds to end by itself, because interpreters need that on a busy machine; each other step has 2 seconds.
    pub const fn new() -> Self {
        let time = Duration::from_secs(2);
        let timeouts = ShutdownTimeouts { close: Duration::from_secs(5), terminate: time, kill: time };
        ChildOptions { options: ClientOptions::DEFAULT, stderr: Stderr::Keep, timeouts }
    }

    /// Sets times and limits of the client.
    pub const fn options(mut self, options: ClientOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets where the process's stderr goes. Default: [`Stderr::Keep`].
    pub fn stderr(self, stderr: Stderr<L>) -> Self {
        ChildOptions { stderr, ..self }
    }

    mcp_sansio::const_setters! {
        /// Sets how long the process may take to end after its stdin was closed, before it gets SIGTERM. Default: 5
        /// seconds.
        close_time(time: Duration) => timeouts.close = time;
        /// Sets how long the process may take to end after SIGTERM, before it is killed. Default: 2 seconds. With zero,
        /// SIGTERM is not sent.
        terminate_time(time: Duration) => timeouts.terminate = time;
        /// Sets how long the client waits for a killed process. Default: 2 seconds.
        kill_time(time: Duration) => timeouts.kill = time;
    }
}

impl<L> Default for ChildOptions<L> {
    fn default() -> Self {
        ChildOptions::new()
    }
}

impl<L> fmt::Debug for ChildOptions<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildOptions")
            .field("options", &self.options)
            .field("stderr", &self.stderr)
            .field("timeouts", &self.timeouts)
            .finish()
    }
}

/// The report of how a server's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildExit {
    /// The exit status; `None` if the process still ran after [`ChildOptions::kill_time`].
    pub status: Option<ExitStatus>,
    /// The last step that was taken to stop it.
    pub after: StopSignal,
}

impl ChildExit {
    /// Makes the report of a process that ended with `status` after the step `after`.
    #[must_use]
    pub const fn new(status: Option<ExitStatus>, after: StopSignal) -> Self {
        ChildExit { status, after }
    }
}

/// A step of stopping a server's process, in the order of the
/// [specification](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#stdio).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StopSignal {
    /// No step was needed: the process ended by itself.
    None,
    /// The client closed the process's stdin.
    StdinClosed,
    /// The client sent SIGTERM to the process and its children, on Unix only.
    Terminate,
    /// The client killed the process; on Unix its children too.
    Kill,
}

/// The reason why nothing more comes from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The process has ended.
    Process,
    /// The process closed its stdout, or the server its end of a stream.
    Output,
    /// The process closed its stdin, or the server takes nothing more from a stream.
    Input,
    /// The client closed the connection.
    Closed,
}

impl ExitReason {
    /// Describes the reason for an error message, with the process's status if it has ended.
    pub(crate) fn explain(self, program: &str, status: Option<ExitStatus>) -> String {
        match (self, status) {
            (ExitReason::Closed, _) => "it was closed".to_owned(),
            (_, Some(status)) => format!("the process {program:?} ended ({status})"),
            (ExitReason::Input, None) => format!("the process {program:?} closed its stdin, but goes on"),
            (_, None) => format!("the process {program:?} closed its stdout, but goes on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_an_end() {
        let second = Duration::from_secs(1);
        let steps = |terminate| {
            let timeouts = ShutdownTimeouts { close: second, terminate, kill: second };
            let mut last = Some((StopSignal::None, second));
            std::iter::from_fn(move || {
                last = timeouts.next(last?.0);
                Some(last?.0)
            })
            .collect::<Vec<_>>()
        };
        let without = [StopSignal::StdinClosed, StopSignal::Kill];
        assert_eq!(steps(Duration::ZERO), without);
        let all = [StopSignal::StdinClosed, StopSignal::Terminate, StopSignal::Kill];
        assert_eq!(steps(second), if cfg!(unix) { &all[..] } else { &without });
    }
}
