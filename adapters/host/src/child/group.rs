//! The process group of a child process.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group};

use super::StopSignal;

/// Makes the process that a command starts the leader of a process group, on Unix: its own children, such as a server behind
/// `sh -c` or a package runner, are then stopped with it. Ctrl-C at a terminal reaches this program alone, which ends the server in
/// order.
pub(crate) fn lead_group(command: &mut Command) {
    command.process_group(0);
}

/// Sends the signal of a step to the process group that the process `id` leads; does nothing on systems other than
/// Unix. The caller must not have waited for the process yet: after that, its id may belong to another process.
pub fn signal_group(id: u32, step: StopSignal) {
    let signal = match step {
        StopSignal::Terminate => Signal::TERM,
        StopSignal::Kill => Signal::KILL,
        StopSignal::None | StopSignal::StdinClosed => return,
    };
    if let Some(leader) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(leader, signal);
    }
}
