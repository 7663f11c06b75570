//! Asks the system about the state of a socket.

/// Returns whether the peer has closed its side or reset the connection, even if bytes still wait to be read.
#[cfg(unix)]
pub(crate) fn has_gone(socket: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let closed = PollFlags::RDHUP;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let closed = PollFlags::empty();
    // The system always reports broken connections; only a half-closed one has to be asked for.
    poll(&mut [PollFd::new(socket, closed)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
pub(crate) const fn has_gone<T>(_: &T) -> bool {
    false
}
