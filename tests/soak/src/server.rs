//! The server's process.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server process that ends when this value is dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
}

/// The resources that a process holds.
pub(crate) struct Holds {
    pub(crate) descriptors: usize,
    /// Resident, in KiB.
    pub(crate) memory: u64,
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} descriptors, {} KiB", self.descriptors, self.memory)
    }
}

impl Holds {
    /// Returns the resources of a process, by its id or `self`, from the system.
    pub(crate) fn of(process: &str) -> Holds {
        let folder = format!("/proc/{process}");
        let status = fs::read_to_string(format!("{folder}/status")).expect("the process is alive");
        let memory =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
        Holds {
            descriptors: fs::read_dir(format!("{folder}/fd")).map(Iterator::count).expect("the process is alive"),
            memory: memory.expect("VmRSS"),
        }
    }
}

impl Server {
    /// Starts a server on a free port, which is appended to the last argument, and waits until it listens.
    pub(crate) fn start(program: &str, arguments: &[String]) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
        let address = free.expect("there is a free port");
        let mut arguments = arguments.to_vec();
        match arguments.last_mut() {
            Some(last) => last.push_str(&address.port().to_string()),
            None => arguments.push(address.port().to_string()),
        }
        let child = Command::new(program).args(&arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Server { child: child.unwrap_or_else(|error| panic!("{program}: {error}")), address };
        for _ in 0..200 {
            if TcpStream::connect(address).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{program} does not listen at {address}");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the resources of the server.
    pub(crate) fn holds(&self) -> Holds {
        Holds::of(&self.child.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
