//! Sockets that never block, and how they are connected.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType};

use super::pipes::Got;

/// A name may have many addresses, of which some lead nowhere: each has at least this time.
const LEAST: Duration = Duration::from_millis(250);

/// Where to connect to. Names are looked up once, and again when no address works any more.
#[derive(Debug)]
pub(super) struct Place {
    host: String,
    port: u16,
    addresses: Vec<SocketAddr>,
    /// For all addresses together.
    time: Duration,
}

/// A connection that is being made: one address after the other.
#[derive(Debug)]
pub(super) struct Connecting {
    addresses: std::vec::IntoIter<SocketAddr>,
    address: SocketAddr,
    socket: OwnedFd,
    each: Duration,
    until: Instant,
}

/// What came of connecting.
pub(super) enum Dialed {
    NotYet(Connecting),
    Up(TcpStream, SocketAddr),
}

impl Place {
    pub(super) fn new(host: &str, port: u16, time: Duration) -> Self {
        Place { host: host.to_owned(), port, addresses: Vec::new(), time }
    }

    pub(super) fn connect(&mut self) -> io::Result<Connecting> {
        if self.addresses.is_empty() {
            self.addresses = self.look_up()?;
        }
        let each = (self.time / self.addresses.len().max(1) as u32).max(LEAST);
        Connecting::next(self.addresses.clone().into_iter(), each, None)
    }

    fn look_up(&self) -> io::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.map_err(|error| io::Error::other(format!("no address for {}: {error}", self.host)))?;
        let mut addresses = Vec::new();
        // Both are this machine, whatever its list of names says.
        let here = [IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)];
        let local = here.iter().filter(|_| self.host.eq_ignore_ascii_case("localhost"));
        for address in found.chain(local.map(|address| SocketAddr::new(*address, self.port))) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }

    /// This one works: it is the first to be tried next time.
    pub(super) fn works(&mut self, address: SocketAddr) {
        if let Some(at) = self.addresses.iter().position(|known| *known == address) {
            self.addresses[..=at].rotate_right(1);
        }
    }

    /// None of them works.
    pub(super) fn forget(&mut self) {
        self.addresses.clear();
    }
}

impl Connecting {
    /// Tries the addresses that are left. `failed` is why the one before did not work.
    fn next(
        mut addresses: std::vec::IntoIter<SocketAddr>,
        each: Duration,
        mut failed: Option<io::Error>,
    ) -> io::Result<Self> {
        for address in addresses.by_ref() {
            match begin(&address) {
                Ok(socket) => {
                    return Ok(Connecting { addresses, address, socket, each, until: Instant::now() + each });
                }
                Err(error) => failed = Some(at(address, &error)),
            }
        }
        Err(failed.unwrap_or_else(|| io::Error::other("the name has no address")))
    }

    /// Looks what has come of it; `ready` says that something has.
    pub(super) fn look(self, ready: bool) -> io::Result<Dialed> {
        let failed = if ready {
            match rustix::net::sockopt::socket_error(&self.socket).and_then(|outcome| outcome) {
                Ok(()) => {
                    let socket = TcpStream::from(self.socket);
                    // Requests are small and written whole.
                    let _ = socket.set_nodelay(true);
                    return Ok(Dialed::Up(socket, self.address));
                }
                Err(error) => at(self.address, &error.into()),
            }
        } else if Instant::now() >= self.until {
            at(self.address, &ErrorKind::TimedOut.into())
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

fn at(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{address}: {error}"))
}

/// A socket that is connecting.
fn begin(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(family, SocketType::STREAM, rustix::net::SocketFlags::CLOEXEC, None)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

/// Reads what is there.
pub(super) fn read(socket: &mut impl Read, space: &mut [u8]) -> io::Result<Got> {
    match socket.read(space) {
        Ok(0) => Ok(Got::End),
        Ok(n) => Ok(Got::Bytes(n)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Got::Nothing),
        Err(error) => Err(error),
    }
}

/// Writes as much as there is room for.
pub(super) fn write(socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    match socket.write(bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        done => done,
    }
}
