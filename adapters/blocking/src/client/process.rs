//! The server's process: whether it lives, and how it is ended.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

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

    /// How it ended, if it has.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// What to wait for, if waiting for it is possible.
    #[cfg(unix)]
    pub(super) fn watch(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return self.watch.as_ref().filter(|_| self.status.is_none()).map(std::os::fd::AsFd::as_fd);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        None
    }

    /// How long to wait at most before looking whether it has ended.
    pub(super) fn look_after(&self) -> Duration {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.watch.is_some() {
            return Duration::MAX;
        }
        if self.status.is_some() { Duration::MAX } else { Duration::from_millis(50) }
    }

    /// Asks it to end.
    pub(super) fn terminate(&mut self) {
        // A process that has been waited for is not ours any more.
        if self.status().is_none() {
            #[cfg(unix)]
            if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }
    }

    pub(super) fn kill(&mut self) {
        if self.status().is_none() {
            let _ = self.child.kill();
        }
    }

    /// Waits for its end, at most so long, without reading what it says.
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
