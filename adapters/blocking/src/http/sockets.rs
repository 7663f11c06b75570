//! Finds out which sockets are ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use mcp_sansio_http::host::Interest;
use rustix::event::Timespec;

/// A socket, its events, and its number.
pub(crate) type Watched<'s> = (BorrowedFd<'s>, Interest, usize);

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) number: usize,
    /// The connection is broken, closed on both sides, or (with [`Interest::End`]) closed by its peer. The system
    /// reports this again in each turn, for any events: close the connection, or the loop never sleeps.
    pub(crate) gone: bool,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use by_epoll::{Sockets, Watcher};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use by_poll::{Sockets, Watcher};

const fn reads(interest: Interest) -> bool {
    matches!(interest, Interest::Read | Interest::Both)
}

const fn writes(interest: Interest) -> bool {
    matches!(interest, Interest::Write | Interest::Both)
}

/// On Linux the kernel keeps the list of sockets (`epoll`): a turn costs as much as sockets are ready, not as are
/// open.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod by_epoll {
    use super::*;
    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
    use std::os::fd::OwnedFd;
    use std::rc::Rc;

    /// The limit of sockets that one wait reports.
    const AT_ONCE: usize = 256;

    /// The list of sockets.
    #[derive(Clone, Debug)]
    pub(crate) struct Watcher(Rc<OwnedFd>);

    pub(crate) struct Sockets {
        pub(crate) watcher: Watcher,
        events: Vec<Event>,
    }

    const fn flags(interest: Interest) -> EventFlags {
        let read = if reads(interest) { EventFlags::IN } else { EventFlags::empty() };
        let write = if writes(interest) { EventFlags::OUT } else { EventFlags::empty() };
        match interest {
            Interest::End => EventFlags::RDHUP,
            _ => read.union(write),
        }
    }

    impl Watcher {
        /// Watches a socket until it is closed.
        pub(crate) fn add(&self, socket: impl AsFd, interest: Interest, number: usize) -> io::Result<()> {
            Ok(epoll::add(&self.0, socket, EventData::new_u64(number as u64), flags(interest))?)
        }

        pub(crate) fn change(&self, socket: impl AsFd, interest: Interest, number: usize) -> io::Result<()> {
            Ok(epoll::modify(&self.0, socket, EventData::new_u64(number as u64), flags(interest))?)
        }
    }

    impl Sockets {
        pub(crate) fn new() -> io::Result<Self> {
            let watcher = Watcher(Rc::new(epoll::create(CreateFlags::CLOEXEC)?));
            Ok(Sockets { watcher, events: Vec::with_capacity(AT_ONCE) })
        }

        /// Waits, and puts the ready sockets into `ready`. `_all` are the sockets that were added.
        pub(crate) fn wait<'s>(
            &mut self,
            _all: impl Iterator<Item = Watched<'s>>,
            timeout: Option<&Timespec>,
            ready: &mut Vec<Ready>,
        ) -> io::Result<()> {
            self.events.clear();
            match epoll::wait(&self.watcher.0, rustix::buffer::spare_capacity(&mut self.events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            ready.clear();
            let gone = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
            ready.extend(self.events.iter().map(|event| {
                // The structure is packed: its fields must be copied before they are used.
                let (data, flags) = (event.data, event.flags);
                Ready { number: data.u64() as usize, gone: flags.intersects(gone) }
            }));
            Ok(())
        }
    }
}

/// On other systems each turn passes the whole list (`poll`).
#[cfg(any(not(any(target_os = "linux", target_os = "android")), test))]
#[cfg_attr(any(target_os = "linux", target_os = "android"), allow(dead_code, reason = "only tried out here"))]
mod by_poll {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    /// Keeps no list.
    #[derive(Clone, Debug)]
    pub(crate) struct Watcher;

    pub(crate) struct Sockets {
        pub(crate) watcher: Watcher,
    }

    fn flags(interest: Interest) -> PollFlags {
        let read = if reads(interest) { PollFlags::IN } else { PollFlags::empty() };
        let write = if writes(interest) { PollFlags::OUT } else { PollFlags::empty() };
        read | write
    }

    impl Watcher {
        pub(crate) fn add(&self, _: impl AsFd, _: Interest, _: usize) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn change(&self, _: impl AsFd, _: Interest, _: usize) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sockets {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Sockets { watcher: Watcher })
        }

        /// Waits, and puts the ready sockets into `ready`. `all` are the sockets that were added.
        pub(crate) fn wait<'s>(
            &mut self,
            all: impl Iterator<Item = Watched<'s>>,
            timeout: Option<&Timespec>,
            ready: &mut Vec<Ready>,
        ) -> io::Result<()> {
            ready.clear();
            let mut fds = Vec::new();
            for (socket, interest, number) in all {
                fds.push(PollFd::from_borrowed_fd(socket, flags(interest)));
                ready.push(Ready { number, gone: false });
            }
            match poll(&mut fds, timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for (ready, fd) in ready.iter_mut().zip(&fds) {
                ready.gone = fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            }
            let mut fds = fds.iter();
            ready.retain(|_| fds.next().is_some_and(|fd| !fd.revents().is_empty()));
            Ok(())
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    /// A time that is over at once, and one that is never over.
    const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    const LONG: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

    macro_rules! sockets {
        ($name:ident, $sockets:ty, $sees_the_end:expr) => {
            mod $name {
                use super::*;

                /// Sockets of one peer, with the number 7.
                struct Watching {
                    sockets: $sockets,
                    socket: UnixStream,
                    wants: Interest,
                }

                fn watching(wants: Interest) -> (Watching, UnixStream) {
                    let (socket, peer) = UnixStream::pair().unwrap();
                    socket.set_nonblocking(true).unwrap();
                    let sockets = <$sockets>::new().unwrap();
                    sockets.watcher.add(&socket, wants, 7).unwrap();
                    (Watching { sockets, socket, wants }, peer)
                }

                impl Watching {
                    fn change(&mut self, wants: Interest) {
                        self.wants = wants;
                        self.sockets.watcher.change(&self.socket, wants, 7).unwrap();
                    }

                    /// Returns whether the socket is ready, and then whether it is gone.
                    fn wait(&mut self, time: &Timespec) -> Option<bool> {
                        let mut ready = vec![Ready { number: 0, gone: true }];
                        let all = [(self.socket.as_fd(), self.wants, 7)].into_iter();
                        self.sockets.wait(all, Some(time), &mut ready).unwrap();
                        assert!(ready.len() <= 1 && ready.iter().all(|ready| ready.number == 7), "{ready:?}");
                        ready.first().map(|ready| ready.gone)
                    }
                }

                #[test]
                fn only_what_is_wanted_is_reported() {
                    let (mut watching, mut peer) = watching(Interest::Read);
                    assert_eq!(watching.wait(&NOW), None);
                    peer.write_all(b"x").unwrap();
                    assert_eq!(watching.wait(&LONG), Some(false));
                    for (wants, ready) in [
                        (Interest::Nothing, None),
                        (Interest::End, None),
                        (Interest::Write, Some(false)),
                        (Interest::Both, Some(false)),
                        (Interest::Read, Some(false)),
                    ] {
                        watching.change(wants);
                        assert_eq!(watching.wait(&NOW), ready, "{wants:?}");
                    }
                    assert_eq!(watching.socket.read(&mut [0; 8]).unwrap(), 1);
                    assert_eq!(watching.wait(&NOW), None);
                    watching.change(Interest::Both);
                    assert_eq!(watching.wait(&NOW), Some(false));
                    while watching.socket.write(&[0; 4096]).is_ok() {}
                    assert_eq!(watching.wait(&NOW), None);
                }

                /// A peer that has ended its side may still read.
                #[test]
                fn the_end_of_the_peers_side() {
                    for (wants, ready) in
                        [(Interest::Nothing, None), (Interest::End, $sees_the_end), (Interest::Read, Some(false))]
                    {
                        let (mut watching, peer) = watching(wants);
                        peer.shutdown(Shutdown::Write).unwrap();
                        assert_eq!(watching.wait(&NOW), ready, "{wants:?}");
                    }
                }

                #[test]
                fn the_end_of_both_sides_is_always_reported() {
                    for wants in [Interest::Nothing, Interest::End, Interest::Read, Interest::Write, Interest::Both] {
                        let (mut watching, peer) = watching(wants);
                        drop(peer);
                        assert_eq!(watching.wait(&LONG), Some(true), "{wants:?}");
                    }
                }
            }
        };
    }

    sockets!(epoll, by_epoll::Sockets, Some(true));
    // The system cannot tell.
    sockets!(poll, by_poll::Sockets, None);
}
