//! The server's process: whether it runs, and how it is stopped.

use std::fs::File;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use mcp_sansio_host::StopSignal;

use super::exit_watch::exit_watch;

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    status: Option<ExitStatus>,
    /// Becomes readable when the process ends.
    watch: Option<File>,
}

impl Process {
    pub(super) fn new(child: Child) -> Self {
        Process { watch: exit_watch(&child), child, status: None }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its exit status, if it has ended.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Returns a descriptor that becomes readable when the process ends, where the system has one.
    #[cfg(unix)]
    pub(super) fn watch(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.watch.as_ref().filter(|_| self.status.is_none()).map(std::os::fd::AsFd::as_fd)
    }

    /// Returns the longest time to wait before its status is looked at again.
    pub(super) fn look_after(&self) -> Duration {
        if self.watch.is_some() || self.status.is_some() { Duration::MAX } else { Duration::from_millis(50) }
    }

    /// Sends SIGTERM to it and its children.
    pub(super) fn terminate(&mut self) {
        // The status call reaps a process that has ended. After that its id may belong to another process.
        if self.status().is_none() {
            mcp_sansio_host::signal_group(self.child.id(), StopSignal::Terminate);
        }
    }

    pub(super) fn kill(&mut self) {
        if self.status().is_none() {
            mcp_sansio_host::signal_group(self.child.id(), StopSignal::Kill);
            let _ = self.child.kill();
        }
    }

    /// Waits at most this time for its end, without reading its output.
    pub(super) fn wait(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + at_most;
        while self.status().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.status
    }
}

#[cfg(all(test, unix))]
impl Process {
    /// Makes it one whose end has to be asked for, as on systems without `pidfd_open`.
    pub(super) fn unwatched(&mut self) {
        self.watch = None;
    }
}
