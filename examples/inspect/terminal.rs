//! The terminal: its size, keys, Ctrl-C.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::page::Look;
use crate::system;

/// The widest page: longer lines are hard to read.
const WIDEST: usize = 120;

/// Returns the look of a standard stream.
pub(crate) fn look(stream: &(impl IsTerminal + system::Handle), no_color: bool) -> Look {
    let terminal = stream.is_terminal();
    let color = terminal && !no_color && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let color = color && env::var_os("TERM").is_none_or(|term| term != "dumb");
    let named = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || system::size(stream).map(|(columns, _)| columns.into());
    let width = named.or_else(|| if terminal { size() } else { None }).filter(|width| *width > 0).unwrap_or(80);
    Look { color, width: width.clamp(20, WIDEST) }
}

/// The flag for Ctrl-C and SIGTERM. The second signal ends the program at once.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn listen() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        // A write beyond the limit of files is an error, as on a full disk; what was begun is removed.
        #[cfg(unix)]
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
        Ok(Stop(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Forgets Ctrl-C: the next one is the first again.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns an error after Ctrl-C.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.is_set() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

/// Reads lines from the keyboard in the background.
#[derive(Debug, Default)]
pub(crate) struct Keyboard {
    typed: Vec<u8>,
    ended: bool,
}

impl Keyboard {
    /// Waits for a line for a limited time. `Some(None)` means the end of input.
    pub(crate) fn line(&mut self, at_most: Duration) -> io::Result<Option<Option<String>>> {
        if let Some(end) = self.typed.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.typed.drain(..=end).collect();
            return Ok(Some(Some(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())));
        }
        if self.ended {
            self.ended = false;
            let rest = std::mem::take(&mut self.typed);
            let rest = String::from_utf8_lossy(&rest).into_owned();
            return Ok(Some(Some(rest).filter(|rest| !rest.is_empty())));
        }
        match system::typed(at_most)? {
            Some(bytes) if bytes.is_empty() => self.ended = true,
            bytes => self.typed.extend(bytes.unwrap_or_default()),
        }
        Ok(None)
    }
}

/// Shows a text that is longer than the terminal with the program that `PAGER` names, or `less`. Returns `false` if the text is still
/// to be printed: it fits, or there is no such program.
pub(crate) fn page_through(text: &str, is_terminal: bool) -> bool {
    let rows = system::size(&io::stdout()).map_or(0, |(_, rows)| rows);
    if !is_terminal || rows == 0 || text.lines().count() < rows.into() {
        return false;
    }
    let pager = env::var("PAGER").unwrap_or_else(|_| "less".into());
    let mut command = Command::new("sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        // Colours, and no end before the reader says so.
        command.env("LESS", "R");
    }
    let Ok(mut pager) = command.spawn() else { return false };
    // A reader who has seen enough ends the pager early.
    let _ = pager.stdin.take().map(|mut pipe| pipe.write_all(text.as_bytes()));
    // What `sh` says of a program that is not there, or cannot be run.
    pager.wait().is_ok_and(|status| !matches!(status.code(), Some(126 | 127)))
}

/// Prints to stdout. A closed stdout is not an error.
pub(crate) fn print(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}
