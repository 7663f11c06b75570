//! Live output on stderr: progress, logs, and the stderr of the program.

use std::io::Write;
use std::time::{Duration, Instant};

use mcp_sansio::protocol::LoggingLevel;

use crate::page::{Look, Style};
use crate::text::{cut, one_line, width};

/// A user who sees nothing for so long wonders.
const PATIENT: Duration = Duration::from_secs(2);

/// Lines of live output, with at most one progress bar below them.
#[derive(Debug)]
pub(crate) struct Live {
    look: Look,
    terminal: bool,
    quiet: bool,
    begun: Instant,
    bar: Option<String>,
    last: String,
    /// The begin of a wait for an answer.
    waiting: Option<Instant>,
    /// The bar shows the wait, not progress.
    is_wait: bool,
    /// The stderr of the program is shown immediately.
    shows_stderr: bool,
    /// The first error of writing a trace to stdout. Later messages are missing there.
    pub(crate) lost: Option<std::io::Error>,
}

impl Live {
    pub(crate) fn new(look: Look, terminal: bool, quiet: bool) -> Self {
        Live {
            look,
            terminal,
            quiet,
            begun: Instant::now(),
            bar: None,
            last: String::new(),
            waiting: None,
            is_wait: false,
            shows_stderr: false,
            lost: None,
        }
    }

    /// Returns the seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Prints text that is ready for the terminal, above the bar.
    pub(crate) fn print(&mut self, text: &str) {
        let bar = self.bar.take();
        if bar.is_some() {
            write("\r\x1b[K");
        }
        write(text);
        if let Some(bar) = bar {
            let is_wait = self.is_wait;
            self.draw(bar);
            self.is_wait = is_wait;
        }
    }

    /// Prints a line, except with `--quiet`.
    pub(crate) fn note(&mut self, style: Style, text: &str) {
        if !self.quiet {
            let line = self.look.paint(style, text);
            self.print(&format!("{line}\n"));
        }
    }

    /// From now on shows the stderr of the program immediately. Before the connection is made it is held back: many
    /// servers log dozens of lines about the first message of a newer revision. If connecting fails, the error has
    /// the last lines.
    pub(crate) fn connected(&mut self) {
        self.shows_stderr = true;
    }

    /// Returns `true` if the stderr of the program is shown immediately.
    pub(crate) fn shows_stderr(&self) -> bool {
        self.shows_stderr && !self.quiet
    }

    /// Handles a line of the program's stderr.
    pub(crate) fn said(&mut self, program: &str, line: &[u8]) {
        if !self.shows_stderr {
            return;
        }
        let line = String::from_utf8_lossy(line);
        self.note(Style::Dim, &format!("{program} | {line}"));
    }

    /// Prints a log message of the server.
    pub(crate) fn log(&mut self, level: Option<LoggingLevel>, logger: Option<&str>, text: &str) {
        if self.quiet {
            return;
        }
        let line = log_line(self.look, level, logger, text);
        self.print(&format!("{line}\n"));
    }

    /// Shows the progress of a request.
    pub(crate) fn progress(&mut self, done: &str, total: Option<&str>, message: Option<&str>) {
        if self.quiet {
            return;
        }
        if self.terminal {
            let bar = bar(self.look.width, done, total, message.unwrap_or_default());
            self.draw(bar);
            return;
        }
        let of = total.map_or_else(String::new, |total| format!(" of {total}"));
        let message = message.map_or_else(String::new, |message| format!(": {message}"));
        let line = one_line(format!("progress {done}{of}{message}"));
        if line != self.last {
            self.note(Style::Dim, &line);
            self.last = line;
        }
    }

    /// Begins or ends a wait for an answer. Returns `true` if there was one.
    pub(crate) fn waits(&mut self, on: bool) -> bool {
        std::mem::replace(&mut self.waiting, on.then(Instant::now)).is_some()
    }

    /// On a terminal, says that there is no answer yet.
    pub(crate) fn still_waiting(&mut self) {
        let Some(waited) = self.waiting.map(|since| since.elapsed()) else { return };
        let free = self.bar.is_none() || self.is_wait;
        if self.terminal && !self.quiet && free && waited >= PATIENT {
            let bar = format!("waiting for an answer … {} s", waited.as_secs());
            if self.bar.as_ref() != Some(&bar) {
                self.draw(bar);
            }
            self.is_wait = true;
        }
    }

    fn draw(&mut self, bar: String) {
        self.is_wait = false;
        write(&format!("\r{}\x1b[K", self.look.paint(Style::Plain, &bar)));
        self.bar = Some(bar);
    }

    /// Removes the bar.
    pub(crate) fn clear(&mut self) {
        if self.bar.take().is_some() {
            write("\r\x1b[K");
        }
    }
}

/// Writes to stderr without changes.
pub(crate) fn write(text: &str) {
    // If stderr fails, the error cannot be reported.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Formats a log message, on one or more lines.
pub(crate) fn log_line(look: Look, level: Option<LoggingLevel>, logger: Option<&str>, text: &str) -> String {
    let style = match level {
        Some(LoggingLevel::Debug) => Style::Dim,
        Some(LoggingLevel::Info | LoggingLevel::Notice) => Style::Good,
        Some(LoggingLevel::Warning) | None => Style::Warn,
        Some(_) => Style::Bad,
    };
    let level = look.paint(style, level.map_or("log", LoggingLevel::name));
    let logger = logger.map_or_else(String::new, |logger| look.paint(Style::Dim, &format!(" {}", one_line(logger))));
    format!("{level}{logger} {}", look.paint(Style::Plain, text))
}

/// Formats a bar that fits on one line.
fn bar(columns: usize, done: &str, total: Option<&str>, message: &str) -> String {
    const CELLS: usize = 24;
    let share = total.and_then(|total| {
        let share = done.parse::<f64>().ok()? / total.parse::<f64>().ok()?;
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    });
    let head = match share {
        Some(share) => {
            let eighths = (share * CELLS as f64 * 8.0) as usize;
            let mut cells = "█".repeat(eighths / 8);
            cells.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
            let empty = CELLS - cells.chars().count();
            format!("{cells}{} {:>3.0}%", "░".repeat(empty), share * 100.0)
        }
        None => format!("… {done}{}", total.map_or_else(String::new, |total| format!(" of {total}"))),
    };
    let room = columns.saturating_sub(width(&head) + 3);
    let message = cut(&one_line(message), room);
    cut(format!("{head}  {message}").trim_end(), columns.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit() {
        assert_eq!(bar(60, "3", Some("6"), "half"), "████████████░░░░░░░░░░░░  50%  half");
        assert_eq!(bar(60, "1", Some("50"), ""), "▍░░░░░░░░░░░░░░░░░░░░░░░   2%");
        assert_eq!(bar(60, "9", Some("6"), ""), "████████████████████████ 100%");
        assert_eq!(bar(60, "3", None, "so far\n\x1b[2J"), "… 3  so far ␛[2J");
        for columns in 1..60 {
            assert!(width(&bar(columns, "3", Some("6"), "a long message that does not fit")) <= columns.max(2));
        }
    }

    #[test]
    fn logs() {
        let look = Look { color: false, width: 60 };
        assert_eq!(log_line(look, Some(LoggingLevel::Info), Some("db"), "a\x1b[2J"), "info db a␛[2J");
        assert_eq!(log_line(look, None, None, "x"), "log x");
    }
}
