//! A descriptor that becomes readable when a process ends (`pidfd_open`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The descriptor, if the system gave one.
#[derive(Debug, Default)]
pub(super) struct ExitWatch(Option<OwnedFd>);

impl ExitWatch {
    pub(super) fn new(child: &Child) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        ExitWatch(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    pub(super) const fn is_there(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }
}
