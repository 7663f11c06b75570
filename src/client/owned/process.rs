//! A server that runs as a child process: how it has ended, and what is told of that.

use std::borrow::ToOwned;
use std::format;
use std::process::ExitStatus;
use std::string::String;

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
