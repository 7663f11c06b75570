//! Which of many sockets are ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::Timespec;

/// What a socket is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// For its peer to go, and nothing else.
    Nothing,
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

/// A socket, what it is waited for, and the number by which it is known.
pub(crate) type Watched<'s> = (BorrowedFd<'s>, Wants, usize);

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) number: usize,
    /// The system tells of it whatever it is waited for, and goes on to: it is broken, closed on both sides, or closed by
    /// its peer while it is waited for nothing. Unless a turn moves bytes, close it, or the loop turns without end.
    pub(crate) gone: bool,
}

/// The number from which on descriptors are left to others than the server's sockets: `spare` less than the process may
/// have, but at least half of those. The system gives the lowest number that is free, so that one tells how many are in use.
pub(crate) fn first_spare(spare: usize) -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    most.saturating_sub(spare).max(most / 2)
}

pub(crate) use system::Sockets;

/// Linux remembers what is waited for: a turn costs what is ready, not what is open.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::*;
    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
    use std::os::fd::OwnedFd;

    /// How many are told of at once.
    const AT_ONCE: usize = 256;

    pub(crate) struct Sockets {
        epoll: OwnedFd,
        events: Vec<Event>,
    }

    const fn flags(wants: Wants) -> EventFlags {
        let read = if wants.reads() { EventFlags::IN } else { EventFlags::empty() };
        let write = if wants.writes() { EventFlags::OUT } else { EventFlags::empty() };
        match wants {
            Wants::Nothing => EventFlags::RDHUP,
            _ => read.union(write),
        }
    }

    impl Sockets {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Sockets { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(AT_ONCE) })
        }

        /// Watches a socket, until it is closed.
        pub(crate) fn add(&self, socket: impl AsFd, wants: Wants, number: usize) -> io::Result<()> {
            Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number as u64), flags(wants))?)
        }

        pub(crate) fn change(&self, socket: impl AsFd, wants: Wants, number: usize) -> io::Result<()> {
            Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(number as u64), flags(wants))?)
        }

        /// Waits, and puts those that are ready into `ready`. `_all` are those that were added.
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
                // In a packed structure: copied out of it first.
                let (data, flags) = (event.data, event.flags);
                Ready { number: data.u64() as usize, gone: flags.intersects(gone) }
            }));
            Ok(())
        }
    }
}

/// Elsewhere each turn asks for all of them.
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

        /// Watches a socket, until it is closed.
        pub(crate) fn add(&self, _: impl AsFd, _: Wants, _: usize) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn change(&self, _: impl AsFd, _: Wants, _: usize) -> io::Result<()> {
            Ok(())
        }

        /// Waits, and puts those that are ready into `ready`. `all` are those that were added.
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
