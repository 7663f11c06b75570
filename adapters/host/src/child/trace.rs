//! Shows the lines of a connection on their way, for debugging.

use crate::Direction;

/// The limit of a line, in bytes; longer lines are shown in pieces.
const SHOWN: usize = 1 << 20;

/// Shows the lines of a connection in both directions.
#[derive(Debug)]
pub(crate) struct LineTrace<T> {
    trace: T,
    /// The number of pending bytes that were shown.
    shown: usize,
    /// The beginning of a line whose end was not received yet.
    line: Vec<u8>,
}

impl<T: FnMut(Direction, &[u8])> LineTrace<T> {
    /// Begins a trace. The first `pending` bytes, which wait already, are not shown.
    pub(crate) const fn new(trace: T, pending: usize) -> Self {
        LineTrace { trace, shown: pending, line: Vec::new() }
    }

    /// Shows the bytes that are about to be written, except those that were shown before.
    pub(crate) fn sent(&mut self, pending: &[u8]) {
        for line in pending.get(self.shown..).unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
            (self.trace)(Direction::Sent, line.trim_ascii_end());
        }
        self.shown = pending.len();
    }

    /// Notes that the first `bytes` of the pending ones were written.
    pub(crate) fn written(&mut self, bytes: usize) {
        self.shown = self.shown.saturating_sub(bytes);
    }

    /// Shows bytes that were received.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() >= SHOWN {
                (self.trace)(Direction::Received, self.line.trim_ascii_end());
                self.line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown = Vec<(Direction, String)>;

    fn show(shown: &mut Shown, act: impl FnOnce(&mut LineTrace<&mut dyn FnMut(Direction, &[u8])>), pending: usize) {
        let mut note = |direction, line: &[u8]| shown.push((direction, String::from_utf8(line.to_vec()).unwrap()));
        act(&mut LineTrace::new(&mut note, pending));
    }

    #[test]
    fn lines_that_are_sent_are_shown_once() {
        let mut shown = Shown::new();
        show(
            &mut shown,
            |trace| {
                trace.sent(b"old\nnew\n");
                trace.sent(b"old\nnew\n");
                trace.written(5);
                trace.sent(b"ew\nthird\r\nfourth\n");
                trace.written(19);
                // A count beyond what was sent is cut to it, so the next line is shown in whole.
                trace.written(100);
                trace.sent(b"fifth\n");
            },
            4,
        );
        let lines = ["new", "third", "fourth", "fifth"].map(|line| (Direction::Sent, line.to_owned()));
        assert_eq!(shown, lines);
    }

    #[test]
    fn lines_that_are_received_are_shown_whole() {
        let mut shown = Shown::new();
        show(
            &mut shown,
            |trace| {
                trace.received(b"on");
                trace.received(b"e\ntwo\r\nthr");
                trace.received(b"ee");
                trace.received(b"\n");
            },
            0,
        );
        assert_eq!(shown, ["one", "two", "three"].map(|line| (Direction::Received, line.to_owned())));
        let mut shown = Shown::new();
        show(
            &mut shown,
            |trace| {
                trace.received(&vec![b'x'; SHOWN - 1]);
                trace.received(b"y");
                trace.received(b"z\n");
            },
            0,
        );
        assert_eq!(shown.iter().map(|(_, line)| line.len()).collect::<Vec<_>>(), [SHOWN, 1]);
    }
}
