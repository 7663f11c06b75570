//! The errors that end a loop before its input ends.

use core::fmt;

use embedded_io::ErrorKind;

/// The reason why a loop stopped. The session stays valid: it keeps the bytes that were read, and the output that
/// was not written is still pending. To go on, call the loop again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum IoError<R, W = R> {
    /// Reading failed. A UART reports this when a byte is damaged or lost. The message with that byte is then no
    /// valid JSON; the next message is read as usual.
    Read(R),
    /// Writing failed. The pending output is kept.
    Write(W),
    /// The writer took no byte and gave no error, which `embedded-io` forbids.
    Zero,
    /// The input buffer is empty, or the output buffer is too small for the smallest answer
    /// ([`MIN_ROOM`](mcp_sansio::server::MIN_ROOM)).
    TooSmall,
}

impl<R: fmt::Display, W: fmt::Display> fmt::Display for IoError<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoError::Read(error) => write!(f, "reading failed: {error}"),
            IoError::Write(error) => write!(f, "writing failed: {error}"),
            IoError::Zero => f.write_str("the writer took nothing"),
            IoError::TooSmall => f.write_str("a buffer of the session is too small"),
        }
    }
}

impl<R: core::error::Error, W: core::error::Error> core::error::Error for IoError<R, W> {}

impl<R: embedded_io::Error, W: embedded_io::Error> embedded_io::Error for IoError<R, W> {
    fn kind(&self) -> ErrorKind {
        match self {
            IoError::Read(error) => error.kind(),
            IoError::Write(error) => error.kind(),
            IoError::Zero => ErrorKind::WriteZero,
            IoError::TooSmall => ErrorKind::OutOfMemory,
        }
    }
}
