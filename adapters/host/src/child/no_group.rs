//! In place of the process group of a child process, on systems that have none.

use std::process::Command;

use super::StopSignal;

/// Does nothing.
pub(crate) const fn lead_group(_: &mut Command) {}

/// Does nothing.
pub const fn signal_group(_: u32, _: StopSignal) {}
