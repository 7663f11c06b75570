//! The functions of `system.rs` with what the standard library has on every system: the size of a terminal is not known, files have no
//! mode, and programs that change a file at the same time are noticed, but do not wait for each other.

use std::fs::{File, Metadata};
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub(crate) use std::io::IsTerminal as Handle;

pub(crate) fn size(_: &impl Handle) -> Option<(u16, u16)> {
    None
}

pub(crate) fn typed(at_most: Duration) -> io::Result<Option<Vec<u8>>> {
    // A read cannot be given up, so another thread reads.
    static LINES: OnceLock<Mutex<Receiver<Vec<u8>>>> = OnceLock::new();
    let lines = LINES.get_or_init(|| {
        let (sender, receiver) = sync_channel(1);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while io::stdin().lock().read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Mutex::new(receiver)
    });
    match lines.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(at_most) {
        Ok(line) => Ok(Some(line)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(Vec::new())),
    }
}

pub(crate) fn is_unread() -> bool {
    false
}

pub(crate) fn lock(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn create(path: &Path, _: u32) -> io::Result<File> {
    File::create_new(path)
}

pub(crate) fn give(_: &File, _: &Metadata) {}
