//! Clients of a server that has few descriptors. The tests of both servers include it by its path.
#![allow(unreachable_pub, reason = "shared by two tests")]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of descriptors of the process.
pub const DESCRIPTORS: u64 = 100;
/// The number of them that the server spares.
pub const SPARED: usize = 40;

const REQUEST: &[u8] = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A connection that has sent a request.
fn connect(address: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(REQUEST).unwrap();
    socket
}

fn read(socket: &mut TcpStream) {
    let mut answer = [0; 4096];
    let n = socket.read(&mut answer).unwrap();
    assert!(answer[..n].starts_with(b"HTTP/1.1 404"));
}

/// Returns whether nothing was answered, although the server had time to answer others.
fn waits(socket: &TcpStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    let waits = socket.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    socket.set_nonblocking(false).unwrap();
    waits
}

/// Returns the lowest free number: it shows how many are in use.
fn next_number() -> u64 {
    File::open("/dev/null").unwrap().as_raw_fd() as u64
}

/// Sets the number of descriptors that this process may open.
pub fn limit(most: u64) {
    let now = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: now.maximum }).unwrap();
}

/// Takes all connections that a server in this process serves, then all descriptors. The server counts its turns.
pub fn use_up(address: SocketAddr, turns: &AtomicUsize) {
    // Numbers up to 60 are for connections. Clients and server use them together, because all are in this process.
    let mut served: Vec<TcpStream> = Vec::new();
    while next_number() < 58 {
        served.push(connect(address));
        read(served.last_mut().unwrap());
    }
    let mut queued: Vec<TcpStream> = (0..10).map(|_| connect(address)).collect();
    for _ in 0..3 {
        served[0].write_all(REQUEST).unwrap();
        read(&mut served[0]);
    }
    let waiting = queued.iter().filter(|socket| waits(socket)).count();
    assert!(waiting >= 8, "only {waiting} wait, and {} are in use", next_number());
    let of_handlers: Vec<File> = (0..20).map(|_| File::open("/dev/null").unwrap()).collect();
    drop(of_handlers);
    // When connections close, waiting ones are served.
    for socket in &mut queued {
        served.pop();
        read(socket);
    }
    drop((served, queued));

    // No descriptor is free: accepting fails, which must not make a busy loop, and it works again when some are free.
    read(&mut connect(address));
    limit(next_number() + 1);
    let mut socket = TcpStream::connect(address).unwrap();
    let before = turns.load(Relaxed);
    thread::sleep(Duration::from_millis(350));
    let spent = turns.load(Relaxed) - before;
    assert!((2..40).contains(&spent), "{spent} turns with nothing to be done");
    limit(DESCRIPTORS);
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(REQUEST).unwrap();
    read(&mut socket);
    // And the pause is over.
    let before = turns.load(Relaxed);
    thread::sleep(Duration::from_millis(200));
    let spent = turns.load(Relaxed) - before;
    assert!(spent < 20, "{spent} turns at rest");
}
