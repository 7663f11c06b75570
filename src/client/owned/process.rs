//! A server that runs as a child process: how it is started and ended, and what is told of its end.

use std::borrow::ToOwned;
use std::fmt;
use std::format;
use std::process::ExitStatus;
use std::string::String;
use std::time::Duration;

use super::{Options, Stderr};

/// How a child process is started and ended.
#[must_use]
pub struct ChildOptions<L> {
    options: Options,
    stderr: Stderr<L>,
    patience: Patience,
}

/// How long each step of ending a process may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "these are the steps that the specification has")]
pub struct Patience {
    /// After its stdin was closed.
    pub close: Duration,
    /// After it was asked to end. Zero does not ask.
    pub terminate: Duration,
    /// After it was killed.
    pub kill: Duration,
}

impl<L> ChildOptions<L> {
    /// The defaults: stderr is [kept](Stderr::Keep) for errors; 5 seconds to end by itself when stdin is closed, which
    /// interpreters on a busy machine need, and 2 seconds for each other step of ending it.
    pub const fn new() -> Self {
        let time = Duration::from_secs(2);
        let patience = Patience { close: Duration::from_secs(5), terminate: time, kill: time };
        ChildOptions { options: Options::new(), stderr: Stderr::Keep, patience }
    }

    /// Times and limits of the client.
    pub const fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// What becomes of what it writes to stderr.
    pub fn stderr(self, stderr: Stderr<L>) -> Self {
        ChildOptions { stderr, ..self }
    }

    /// How long it may take to end after its stdin was closed, before it is asked to (SIGTERM); 5 seconds.
    pub const fn close_time(mut self, time: Duration) -> Self {
        self.patience.close = time;
        self
    }

    /// How long it may take to end after it was asked to, before it is killed; 2 seconds. Zero does not ask.
    pub const fn terminate_time(mut self, time: Duration) -> Self {
        self.patience.terminate = time;
        self
    }

    /// How long to wait for a killed process; 2 seconds.
    pub const fn kill_time(mut self, time: Duration) -> Self {
        self.patience.kill = time;
        self
    }

    /// What an adapter makes a client of.
    pub fn into_parts(self) -> (Options, Stderr<L>, Patience) {
        (self.options, self.stderr, self.patience)
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
            .field("patience", &self.patience)
            .finish()
    }
}

/// How a server's process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// What it ended with; `None` if not even killing it helped in time.
    pub status: Option<ExitStatus>,
    /// What it took.
    pub how: How,
}

impl Ended {
    /// It has ended like that, and that is what it took.
    #[must_use]
    pub const fn new(status: Option<ExitStatus>, how: How) -> Self {
        Ended { status, how }
    }
}

/// What it took to end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum How {
    /// It ended by itself, before it was asked to.
    Itself,
    /// Its stdin was closed.
    Closed,
    /// It was asked to end (SIGTERM; not on Windows).
    Terminated,
    /// It was killed.
    Killed,
}

/// Why nothing more comes from a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gone {
    /// The process has ended.
    Process,
    /// It closed its stdout.
    Output,
    /// It closed its stdin.
    Input,
    /// It was closed from here.
    Closed,
}

impl Gone {
    /// What to tell of it, with the process's status if it has ended.
    #[must_use]
    pub fn explain(self, program: &str, status: Option<ExitStatus>) -> String {
        match (self, status) {
            (Gone::Closed, _) => "it was closed".to_owned(),
            (_, Some(status)) => format!("the process {program:?} ended ({status})"),
            (Gone::Input, None) => format!("the process {program:?} closed its stdin, but goes on"),
            (_, None) => format!("the process {program:?} closed its stdout, but goes on"),
        }
    }
}
