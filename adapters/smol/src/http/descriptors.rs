//! What the system tells of a socket's descriptor.

use std::net::TcpStream;

/// The number from which on descriptors are left to others than the server's sockets: `spare` less than the process may
/// have, but at least half of those. The system gives the lowest number that is free, so that one tells how many are in use.
#[cfg(unix)]
pub(crate) fn first_spare(spare: usize) -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    most.saturating_sub(spare).max(most / 2)
}

/// Whether a socket's number is one of those.
#[cfg(unix)]
pub(crate) fn is_spare(socket: &TcpStream, first: usize) -> bool {
    use std::os::fd::AsRawFd;
    usize::try_from(socket.as_raw_fd()).is_ok_and(|number| number >= first)
}

/// Whether a peer has closed its side or reset the connection, though bytes of its wait to be read.
#[cfg(unix)]
pub(crate) fn has_gone(socket: &TcpStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let closed = PollFlags::RDHUP;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let closed = PollFlags::empty();
    // Broken ones are told of without being asked for.
    poll(&mut [PollFd::new(socket, closed)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
pub(crate) const fn first_spare(_: usize) -> usize {
    usize::MAX
}

#[cfg(not(unix))]
pub(crate) const fn is_spare(_: &TcpStream, _: usize) -> bool {
    false
}

#[cfg(not(unix))]
pub(crate) const fn has_gone(_: &TcpStream) -> bool {
    false
}
