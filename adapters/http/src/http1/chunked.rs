//! Decodes chunked bodies in place.

use super::status::Status;
use crate::token::is_token;

/// Decodes chunks: moves their data together, and checks and drops their framing. It reads each byte once, for
/// any cut of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    /// End of the body so far.
    pub(crate) body: usize,
    /// The bytes from here on are not parsed yet.
    pub(crate) read: usize,
    state: State,
    /// Number of bytes of the chunk that still follow.
    left: usize,
    digits: u8,
    /// Number of bytes of extensions and trailers, which have a limit of their own.
    extra: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeEnd,
    Data,
    DataEnd,
    DataEnds,
    /// At the start of a trailer, or of the end.
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerEnd,
    End,
    Done,
}

/// The limits of a chunked body.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The start of the body.
    pub(crate) at: usize,
    pub(crate) body: usize,
    pub(crate) extra: usize,
}

/// More digits than any size that fits.
const DIGITS: u8 = 16;

impl Chunked {
    pub(crate) const fn new(at: usize) -> Self {
        Chunked { body: at, read: at, state: State::Size, left: 0, digits: 0, extra: 0 }
    }

    /// Continues at `at`: the caller has taken the decoded bytes.
    pub(crate) const fn resume(&mut self, at: usize) {
        (self.body, self.read, self.extra) = (at, at, 0);
    }

    /// Decodes the received bytes. Returns `true` if the body is whole.
    pub(crate) fn run(&mut self, bytes: &mut [u8], bounds: Bounds) -> Result<bool, Status> {
        while self.state != State::Done {
            if self.state == State::Data {
                if !self.data(bytes) {
                    return Ok(false);
                }
                continue;
            }
            let Some(&byte) = bytes.get(self.read) else { return Ok(false) };
            self.read += 1;
            #[cfg(test)]
            super::tests::work::add(1);
            self.state = self.next(byte, bounds)?;
        }
        Ok(true)
    }

    /// Moves data to the end of the body. Returns `true` if the chunk is complete.
    fn data(&mut self, bytes: &mut [u8]) -> bool {
        let n = self.left.min(bytes.len().saturating_sub(self.read));
        let end = self.read + n;
        if self.body <= self.read && end <= bytes.len() {
            bytes.copy_within(self.read..end, self.body);
            #[cfg(test)]
            super::tests::work::add(n);
        }
        self.read = end;
        self.body += n;
        self.left -= n;
        if self.left == 0 {
            self.state = State::DataEnd;
        }
        self.left == 0
    }

    fn next(&mut self, byte: u8, bounds: Bounds) -> Result<State, Status> {
        let state = match (self.state, byte) {
            (State::Size, b'\r') if self.digits > 0 => State::SizeEnd,
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Size, _) => return self.size(byte, bounds),
            (State::Extension, b'\r') => State::SizeEnd,
            (State::Extension, _) if is_text(byte) => return self.extra(State::Extension, Status::BAD_REQUEST, bounds),
            (State::SizeEnd, b'\n') => {
                self.digits = 0;
                if self.left > 0 { State::Data } else { State::Trailer }
            }
            (State::DataEnd, b'\r') => State::DataEnds,
            (State::DataEnds, b'\n') => State::Size,
            (State::Trailer, b'\r') => State::End,
            (State::Trailer | State::TrailerName, _) if is_token(byte) => {
                return self.extra(State::TrailerName, Status::HEADER_TOO_LARGE, bounds);
            }
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerValue, b'\r') => State::TrailerEnd,
            (State::TrailerValue, _) if is_text(byte) => {
                return self.extra(State::TrailerValue, Status::HEADER_TOO_LARGE, bounds);
            }
            (State::TrailerEnd, b'\n') => State::Trailer,
            (State::End, b'\n') => State::Done,
            _ => return Err(Status::BAD_REQUEST),
        };
        Ok(state)
    }

    fn size(&mut self, byte: u8, bounds: Bounds) -> Result<State, Status> {
        let digit = (byte as char).to_digit(16).ok_or(Status::BAD_REQUEST)?;
        self.digits += 1;
        if self.digits > DIGITS {
            return Err(Status::BAD_REQUEST);
        }
        self.left = self.left.saturating_mul(16).saturating_add(digit as usize);
        let so_far = self.body.saturating_sub(bounds.at);
        if so_far.saturating_add(self.left) > bounds.body {
            return Err(Status::CONTENT_TOO_LARGE);
        }
        Ok(State::Size)
    }

    fn extra(&mut self, state: State, refusal: Status, bounds: Bounds) -> Result<State, Status> {
        self.extra += 1;
        if self.extra > bounds.extra { Err(refusal) } else { Ok(state) }
    }
}

/// Returns `true` for a byte that may be in the value of a header.
const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
