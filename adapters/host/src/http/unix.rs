//! Unix sockets of HTTP: the file of a listener, and connections to one.

use std::io::{self, ErrorKind};
#[cfg(feature = "client")]
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// The file of a Unix socket that listens. Dropping it removes the file, unless another socket is there by now.
#[derive(Debug)]
pub struct UnixSocketFile {
    path: PathBuf,
    /// Device and inode of the file.
    id: (u64, u64),
}

/// The limit of connections that wait until they are accepted; the system may have a lower one.
const BACKLOG: i32 = 4096;

/// The number of times that a stale file is removed: another process may bind the path at the same time.
const TRIES: usize = 3;

impl UnixSocketFile {
    /// Binds a Unix socket that listens at `path`. The permissions of the file are `mode` (as in `chmod`) before the first
    /// client can connect. A socket at `path` that no process listens on is replaced. Two processes that start in the same
    /// moment may both replace it: then the second one listens.
    ///
    /// The listener blocks. Relative paths mean the working directory of now.
    ///
    /// # Errors
    /// [`ErrorKind::AddrInUse`] if a process listens at `path`; [`ErrorKind::AlreadyExists`] if something else than a
    /// socket is there; [`ErrorKind::InvalidInput`] if the path is longer than the system allows (107 bytes on Linux);
    /// otherwise an error of the system. Each names the path.
    pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, UnixSocketFile)> {
        let path = std::path::absolute(path)?;
        let bound = address(&path).and_then(|address| {
            for _ in 1..TRIES {
                match listen(&path, &address, mode) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => remove_stale(&path, &address)?,
                    done => return done,
                }
            }
            listen(&path, &address, mode)
        });
        match bound {
            Ok((listener, id)) => Ok((listener, UnixSocketFile { path, id })),
            Err(error) => Err(named(&path, &error)),
        }
    }

    /// Returns the absolute path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocketFile {
    fn drop(&mut self) {
        if id(&self.path).is_ok_and(|id| id == self.id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Connects to the Unix socket at `path`, without waiting. The stream does not block.
///
/// # Errors
/// If no process listens there, or too many connections wait for it ([`ErrorKind::WouldBlock`]). Each error names the path.
#[cfg(feature = "client")]
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let connected = address(path).and_then(|address| try_connect(&address));
    connected.map_err(|error| named(path, &error))
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|error| match error {
        Errno::NAMETOOLONG => io::Error::new(ErrorKind::InvalidInput, "the path is too long for a Unix socket"),
        error => error.into(),
    })
}

fn listen(path: &Path, address: &SocketAddrUnix, mode: u32) -> io::Result<(UnixListener, (u64, u64))> {
    let socket = socket(AddressFamily::UNIX)?;
    rustix::net::bind(&socket, address)?;
    // Between `bind` and `listen` connections are refused, so no client comes before the permissions are set.
    let prepared = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).and_then(|()| {
        rustix::net::listen(&socket, BACKLOG)?;
        id(path)
    });
    match prepared {
        Ok(id) => Ok((UnixListener::from(socket), id)),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// Removes a socket that no process listens on.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "the file exists and is no socket"));
    }
    match try_connect(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
        // Connected, or too many connections wait, or it is a socket of another type.
        _ => return Err(io::Error::new(ErrorKind::AddrInUse, "another process listens on the socket")),
    }
    if id(path).is_ok_and(|id| id == (found.dev(), found.ino())) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Returns a socket of TCP that is connecting, and does not block.
#[cfg(feature = "client")]
pub(crate) fn begin_to_connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    // Each request goes out in one write, so waiting for more bytes (Nagle) only delays it.
    let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

fn try_connect(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let socket = socket(AddressFamily::UNIX)?;
    rustix::io::ioctl_fionbio(socket.as_fd(), true)?;
    rustix::net::connect(&socket, address)?;
    Ok(UnixStream::from(socket))
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("mcp-unix-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_comes_and_goes() {
        let folder = folder("life");
        let path = folder.join("s");
        let (listener, file) = UnixSocketFile::bind(&path, 0o620).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o620);
        // Who reads from it does not wait.
        let mut stream = connect(&path).unwrap();
        assert_eq!(std::io::Read::read(&mut stream, &mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let second = UnixSocketFile::bind(&path, 0o600).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        assert!(second.to_string().contains("another process listens"), "{second}");
        // The first one lives on.
        assert!(connect(&path).is_ok());
        drop((listener, file));
        assert!(!path.exists());
        assert_eq!(connect(&path).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_stale_file_is_replaced() {
        let folder = folder("stale");
        let path = folder.join("s");
        // The listener is closed, and its file stays, as after a kill.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (listener, file) = UnixSocketFile::bind(&path, 0o600).unwrap();
        assert!(connect(&path).is_ok());
        // Another socket took the place: it is not removed with the first one.
        std::fs::remove_file(&path).unwrap();
        let (_other, _its_file) = UnixSocketFile::bind(&path, 0o600).unwrap();
        drop((listener, file));
        assert!(path.exists());
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// A socket of another type refuses connections in a way of its own.
    #[test]
    fn a_socket_of_another_type_is_in_use() {
        let folder = folder("type");
        let path = folder.join("s");
        let datagrams = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let error = UnixSocketFile::bind(&path, 0o600).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains("another process listens"), "{error}");
        // It is there still.
        assert_eq!(std::os::unix::net::UnixDatagram::unbound().unwrap().send_to(b"hi", &path).unwrap(), 2);
        drop(datagrams);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = folder("other");
        let path = folder.join("s");
        std::fs::write(&path, "precious").unwrap();
        let error = UnixSocketFile::bind(&path, 0o600).unwrap_err();
        assert!(error.kind() == ErrorKind::AlreadyExists && error.to_string().contains("is no socket"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        let long = UnixSocketFile::bind(&folder.join("x".repeat(200)), 0o600).unwrap_err();
        assert!(long.to_string().contains("too long"), "{long}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
