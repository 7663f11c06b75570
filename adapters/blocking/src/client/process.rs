//! The server's process: whether it runs, and how it is stopped.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use mcp_sansio_host::StopSignal;

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    status: Option<ExitStatus>,
    /// Becomes readable when the process ends.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    watch: Option<std::os::fd::OwnedFd>,
}

impl Process {
    pub(super) fn new(child: Child) -> Self {
        Process {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            watch: watch(&child),
            child,
            status: None,
        }
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
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return self.watch.as_ref().filter(|_| self.status.is_none()).map(std::os::fd::AsFd::as_fd);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        None
    }

    /// Returns the longest time to wait before its status is looked at again.
    pub(super) fn look_after(&self) -> Duration {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.watch.is_some() {
            return Duration::MAX;
        }
        if self.status.is_some() { Duration::MAX } else { Duration::from_millis(50) }
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

#[cfg(any(target_os = "linux", target_os = "android"))]
fn watch(child: &Child) -> Option<std::os::fd::OwnedFd> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(all(test, unix))]
impl Process {
    /// Makes it one whose end has to be asked for, as on systems without `pidfd_open`.
    pub(super) fn unwatched(&mut self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            self.watch = None;
        }
    }
}
