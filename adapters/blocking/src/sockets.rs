//! Which of many sockets are ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::Timespec;

/// What a socket is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// For nothing, for now.
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
        read.union(write)
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

        /// Waits, and puts the numbers of those that are ready into `ready`. `_all` are those that were added.
        pub(crate) fn wait<'s>(
            &mut self,
            _all: impl Iterator<Item = Watched<'s>>,
            timeout: Option<&Timespec>,
            ready: &mut Vec<usize>,
        ) -> io::Result<()> {
            self.events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            ready.clear();
            ready.extend(self.events.iter().map(|event| event.data.u64() as usize));
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

        /// Waits, and puts the numbers of those that are ready into `ready`. `all` are those that were added.
        pub(crate) fn wait<'s>(
            &mut self,
            all: impl Iterator<Item = Watched<'s>>,
            timeout: Option<&Timespec>,
            ready: &mut Vec<usize>,
        ) -> io::Result<()> {
            ready.clear();
            let mut fds = Vec::new();
            for (socket, wants, number) in all.filter(|(_, wants, _)| *wants != Wants::Nothing) {
                fds.push(PollFd::from_borrowed_fd(socket, flags(wants)));
                ready.push(number);
            }
            match poll(&mut fds, timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut fds = fds.iter();
            ready.retain(|_| fds.next().is_some_and(|fd| !fd.revents().is_empty()));
            Ok(())
        }
    }
}
