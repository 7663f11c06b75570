//! In place of a descriptor that becomes readable when a process ends, on systems that have none.

use std::process::Child;

/// No descriptor.
#[derive(Debug, Default)]
pub(super) struct ExitWatch;

#[allow(clippy::unused_self, reason = "the same as with a descriptor")]
impl ExitWatch {
    pub(super) const fn new(_: &Child) -> Self {
        ExitWatch
    }

    pub(super) const fn is_there(&self) -> bool {
        false
    }

    #[cfg(unix)]
    pub(super) const fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}
