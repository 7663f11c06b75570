//! Asks the system about the state of a socket.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns whether the peer has closed its side or reset the connection, even if bytes still wait to be read.
pub(crate) fn has_gone(socket: &impl AsFd) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let closed = PollFlags::RDHUP;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let closed = PollFlags::empty();
    // The system always reports broken connections; only a half-closed one has to be asked for.
    has(socket, closed)
}

/// Returns whether the connection is broken. That of a peer that has only closed its side is not.
pub(crate) fn is_broken(socket: &impl AsFd) -> bool {
    has(socket, PollFlags::empty())
}

fn has(socket: &impl AsFd, events: PollFlags) -> bool {
    poll(&mut [PollFd::new(socket, events)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}
