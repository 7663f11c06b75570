//! Decodes chunked bodies in place.

use super::status::Status;
use crate::names::is_token;

/// Decodes chunks: moves their data together, and checks and drops their framing. It reads each byte once, for
/// any cut of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    /// End of the body so far.
    pub(crate) body: usize,
    /// The bytes from here on are not parsed yet.
    pub(crate) read: usize,
    state: ChunkState,
    /// Number of bytes of the chunk that still follow.
    left: usize,
    digits: u8,
    /// Number of bytes of extensions and trailers, which have a limit of their own.
    extra: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
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
        Chunked { body: at, read: at, state: ChunkState::Size, left: 0, digits: 0, extra: 0 }
    }

    /// Continues at `at`: the caller has taken the decoded bytes.
    pub(crate) const fn resume(&mut self, at: usize) {
        (self.body, self.read, self.extra) = (at, at, 0);
    }

    /// Decodes the received bytes. Returns `true` if the body is whole.
    pub(crate) fn run(&mut self, bytes: &mut [u8], bounds: Bounds) -> Result<bool, Status> {
        while self.state != ChunkState::Done {
            if self.state == ChunkState::Data {
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
            self.state = ChunkState::DataEnd;
        }
        self.left == 0
    }

    fn next(&mut self, byte: u8, bounds: Bounds) -> Result<ChunkState, Status> {
        let state = match (self.state, byte) {
            (ChunkState::Size, b'\r') if self.digits > 0 => ChunkState::SizeEnd,
            (ChunkState::Size, b';') if self.digits > 0 => ChunkState::Extension,
            (ChunkState::Size, _) => return self.size(byte, bounds),
            (ChunkState::Extension, b'\r') => ChunkState::SizeEnd,
            (ChunkState::Extension, _) if is_text(byte) => {
                return self.extra(ChunkState::Extension, Status::BAD_REQUEST, bounds);
            }
            (ChunkState::SizeEnd, b'\n') => {
                self.digits = 0;
                if self.left > 0 { ChunkState::Data } else { ChunkState::Trailer }
            }
            (ChunkState::DataEnd, b'\r') => ChunkState::DataEnds,
            (ChunkState::DataEnds, b'\n') => ChunkState::Size,
            (ChunkState::Trailer, b'\r') => ChunkState::End,
            (ChunkState::Trailer | ChunkState::TrailerName, _) if is_token(byte) => {
                return self.extra(ChunkState::TrailerName, Status::HEADER_TOO_LARGE, bounds);
            }
            (ChunkState::TrailerName, b':') => ChunkState::TrailerValue,
            (ChunkState::TrailerValue, b'\r') => ChunkState::TrailerEnd,
            (ChunkState::TrailerValue, _) if is_text(byte) => {
                return self.extra(ChunkState::TrailerValue, Status::HEADER_TOO_LARGE, bounds);
            }
            (ChunkState::TrailerEnd, b'\n') => ChunkState::Trailer,
            (ChunkState::End, b'\n') => ChunkState::Done,
            _ => return Err(Status::BAD_REQUEST),
        };
        Ok(state)
    }

    fn size(&mut self, byte: u8, bounds: Bounds) -> Result<ChunkState, Status> {
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
        Ok(ChunkState::Size)
    }

    fn extra(&mut self, state: ChunkState, refusal: Status, bounds: Bounds) -> Result<ChunkState, Status> {
        self.extra += 1;
        if self.extra > bounds.extra { Err(refusal) } else { Ok(state) }
    }
}

/// Returns `true` for a byte that may be in the value of a header.
const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
