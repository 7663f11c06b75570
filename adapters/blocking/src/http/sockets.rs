//! Finds out which sockets are ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::Timespec;

/// The events that a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Only for the end of the connection, on both sides.
    Nothing,
    /// Also for the end of the peer's side, where the system can tell.
    End,
    Read,
    Write,
    Both,
}

impl Wants {
    const fn reads(self) -> bool {
        matches!(self, Wants::Read | Wants::Both)
    }

    const fn writes(self) -> bool {
        matches!(self, Wants::Write | Wants::Both)
    }
}

/// A socket, its events, and its number.
pub(crate) type Watched<'s> = (BorrowedFd<'s>, Wants, usize);

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) number: usize,
    /// The connection is broken, closed on both sides, or (with [`Wants::End`]) closed by its peer. The system
    /// reports this again in each turn, for any events: close the connection, or the loop never sleeps.
    pub(crate) gone: bool,
}

pub(crate) use system::Sockets;

/// On Linux the kernel keeps the list of sockets (`epoll`): a turn costs as much as sockets are ready, not as are
/// open.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::*;
    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
    use std::os::fd::OwnedFd;

    /// The limit of sockets that one wait reports.
    const AT_ONCE: usize = 256;

    pub(crate) struct Sockets {
        epoll: OwnedFd,
        events: Vec<Event>,
    }

    const fn flags(wants: Wants) -> EventFlags {
        let read = if wants.reads() { EventFlags::IN } else { EventFlags::empty() };
        let write = if wants.writes() { EventFlags::OUT } else { EventFlags::empty() };
        match wants {
            Wants::End => EventFlags::RDHUP,
            _ => read.union(write),
        }
    }

    impl Sockets {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Sockets { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(AT_ONCE) })
        }

        /// Watches a socket until it is closed.
        pub(crate) fn add(&self, socket: impl AsFd, wants: Wants, number: usize) -> io::Result<()> {
            Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number as u64), flags(wants))?)
        }

        pub(crate) fn change(&self, socket: impl AsFd, wants: Wants, number: usize) -> io::Result<()> {
            Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(number as u64), flags(wants))?)
        }

        /// Waits, and puts the ready sockets into `ready`. `_all` are the sockets that were added.
        pub(crate) fn wait<'s>(
            &mut self,
            _all: impl Iterator<Item = Watched<'s>>,
            timeout: Option<&Timespec>,
            ready: &mut Vec<Ready>,
        ) -> io::Result<()> {
            self.events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout) {
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
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    pub(crate) struct Sockets;

    fn flags(wants: Wants) -> PollFlags {
        let read = if wants.reads() { PollFlags::IN } else { PollFlags::empty() };
        let write = if wants.writes() { PollFlags::OUT } else { PollFlags::empty() };
        read | write
    }

    impl Sockets {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Sockets)
        }

        /// Watches a socket until it is closed.
        pub(crate) fn add(&self, _: impl AsFd, _: Wants, _: usize) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn change(&self, _: impl AsFd, _: Wants, _: usize) -> io::Result<()> {
            Ok(())
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
            for (socket, wants, number) in all {
                fds.push(PollFd::from_borrowed_fd(socket, flags(wants)));
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
