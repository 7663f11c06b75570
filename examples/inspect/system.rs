//! System calls of Unix: the terminal, and locks and owners of files. `system_other.rs` does the same elsewhere.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub(crate) use std::os::fd::AsFd as Handle;

/// Returns the columns and rows of a terminal.
pub(crate) fn size(terminal: &impl AsFd) -> Option<(u16, u16)> {
    rustix::termios::tcgetwinsize(terminal).ok().map(|size| (size.ws_col, size.ws_row))
}

/// Waits for input from the keyboard for a limited time. Nothing in it means its end.
pub(crate) fn typed(at_most: Duration) -> io::Result<Option<Vec<u8>>> {
    let stdin = rustix::stdio::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec::try_from(at_most).ok();
    match poll(&mut fds, time.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut bytes = [0; 4096];
    match rustix::io::read(stdin, &mut bytes) {
        Ok(n) => Ok(Some(bytes[..n].to_vec())),
        Err(Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns `true` if the reader of stdout has closed it.
pub(crate) fn is_unread() -> bool {
    let stdout = rustix::stdio::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let found = poll(&mut fds, Some(&Timespec::default()));
    found.is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

/// Locks a folder against other processes of this program, until the value is dropped. A lock file would stay there.
pub(crate) fn lock(folder: &Path) -> io::Result<File> {
    /// The time for all that are before this one.
    const PATIENCE: Duration = Duration::from_secs(20);
    let begun = Instant::now();
    let folder = File::open(folder)?;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK) => return Err(io::Error::other("another program has locked its folder")),
            // Some file systems have no locks.
            _ => return Ok(folder),
        }
    }
}

/// Creates a file that is not there yet, with this mode.
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Gives a file the owner of another, where the system lets it: root must not take the file from its user.
pub(crate) fn give(file: &File, old: &Metadata) {
    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
}
