//! What ends a loop before its input ends.

use core::fmt;

use embedded_io::ErrorKind;

/// Why a loop stopped. The session is whole: what was read is in it, what was not written is still pending. Calling the
/// loop again goes on where it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error<R, W = R> {
    /// Reading failed; a UART says so when a byte was damaged or lost. What has come of the message at hand will fail to
    /// be JSON, and the next one is read again from its beginning.
    Read(R),
    /// Writing failed. What is pending was not written.
    Write(W),
    /// The writer took no byte and gave no error, which `embedded-io` forbids.
    Zero,
    /// The input buffer is empty, or the output buffer holds not even the smallest answer
    /// ([`MIN_ROOM`](mcp_sansio::server::MIN_ROOM)).
    TooSmall,
}

impl<R: fmt::Display, W: fmt::Display> fmt::Display for Error<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(error) => write!(f, "reading failed: {error}"),
            Error::Write(error) => write!(f, "writing failed: {error}"),
            Error::Zero => f.write_str("the writer took nothing"),
            Error::TooSmall => f.write_str("a buffer of the session is too small"),
        }
    }
}

impl<R: core::error::Error, W: core::error::Error> core::error::Error for Error<R, W> {}

impl<R: embedded_io::Error, W: embedded_io::Error> embedded_io::Error for Error<R, W> {
    fn kind(&self) -> ErrorKind {
        match self {
            Error::Read(error) => error.kind(),
            Error::Write(error) => error.kind(),
            Error::Zero => ErrorKind::WriteZero,
            Error::TooSmall => ErrorKind::OutOfMemory,
        }
    }
}
