//! A descriptor that becomes readable when a process ends (`pidfd_open`).

use std::fs::File;
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Returns the descriptor, if the system gives one.
pub(super) fn exit_watch(child: &Child) -> Option<File> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok().map(File::from)
}
