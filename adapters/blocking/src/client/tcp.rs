//! Sockets that never block, and how they connect.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mcp_sansio_host::{HttpOrigin, NetSocket, connect_error};

use super::pipes::Got;

/// A connection in the making: tries one address after the other.
#[derive(Debug)]
pub(super) struct Connecting {
    addresses: std::vec::IntoIter<SocketAddr>,
    /// The address that is tried now.
    pub(super) address: SocketAddr,
    socket: NetSocket,
    each: Duration,
    until: Instant,
}

/// The state of a connection attempt.
pub(super) enum Dialed {
    NotYet(Connecting),
    Up(NetSocket),
}

impl Connecting {
    /// Begins with the first address.
    pub(super) fn begin(origin: &mut HttpOrigin) -> io::Result<Self> {
        let (addresses, each) = origin.addresses()?;
        Connecting::next(addresses.into_iter(), each, None)
    }

    /// Tries the remaining addresses. `failed` is the error of the previous one.
    fn next(
        mut addresses: std::vec::IntoIter<SocketAddr>,
        each: Duration,
        mut failed: Option<io::Error>,
    ) -> io::Result<Self> {
        for address in addresses.by_ref() {
            match NetSocket::begin_to_connect(&address) {
                Ok(socket) => {
                    return Ok(Connecting { addresses, address, socket, each, until: Instant::now() + each });
                }
                Err(error) => failed = Some(connect_error(address, &error)),
            }
        }
        Err(failed.unwrap_or_else(|| io::Error::other("the name has no address")))
    }

    /// Looks whether the attempt has succeeded or failed; `ready` says that it has done one of both.
    pub(super) fn look(self, ready: bool) -> io::Result<Dialed> {
        let failed = if ready {
            match rustix::net::sockopt::socket_error(&self.socket).and_then(|outcome| outcome) {
                Ok(()) => return Ok(Dialed::Up(self.socket)),
                Err(error) => connect_error(self.address, &error.into()),
            }
        } else if Instant::now() >= self.until {
            connect_error(self.address, &ErrorKind::TimedOut.into())
        } else {
            return Ok(Dialed::NotYet(self));
        };
        Connecting::next(self.addresses, self.each, Some(failed)).map(Dialed::NotYet)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// Reads once.
pub(super) fn read(socket: &mut impl Read, space: &mut [u8]) -> io::Result<Got> {
    match socket.read(space) {
        Ok(0) => Ok(Got::End),
        Ok(n) => Ok(Got::Bytes(n)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Got::Nothing),
        Err(error) => Err(error),
    }
}

/// Writes as much as the socket takes.
pub(super) fn write(socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    match socket.write(bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        done => done,
    }
}

#[cfg(test)]
impl Connecting {
    /// Makes a connection that waits until `socket` can be written to, and has no other address to try.
    pub(super) fn stuck(socket: NetSocket, each: Duration) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        Connecting { addresses: Vec::new().into_iter(), address, socket, each, until: Instant::now() + each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket on which each call fails.
    struct Failing(ErrorKind);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
    }

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A socket without room or bytes, or a signal, is no failure.
    #[test]
    fn errors_that_are_none() {
        for kind in [ErrorKind::WouldBlock, ErrorKind::Interrupted] {
            assert!(matches!(read(&mut Failing(kind), &mut [0]), Ok(Got::Nothing)));
            assert!(matches!(write(&mut Failing(kind), b"x"), Ok(0)));
        }
        let kind = ErrorKind::ConnectionReset;
        assert!(read(&mut Failing(kind), &mut [0]).is_err() && write(&mut Failing(kind), b"x").is_err());
    }
}
