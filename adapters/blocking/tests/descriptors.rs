//! The HTTP server where descriptors are few. One test, since the limit is that of the whole process.
#![cfg(all(feature = "http", unix))]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use mcp_sansio::service::Service;
use mcp_sansio_blocking::http::{App, HttpServer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

/// Whether nothing has come, although the server has had the time to answer others.
fn waits(socket: &TcpStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    let waits = socket.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    socket.set_nonblocking(false).unwrap();
    waits
}

/// The lowest number that is free: how many are in use.
fn next_number() -> u64 {
    File::open("/dev/null").unwrap().as_raw_fd() as u64
}

fn limit(most: u64) {
    let now = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: now.maximum }).unwrap();
}

#[test]
fn some_are_left_and_none_is_no_end() {
    limit(100);
    let server = HttpServer::bind("127.0.0.1:0").unwrap().spare_descriptors(40);
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper().unwrap());
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let serving = thread::spawn(move || {
        let service = Service::<()>::new("few", "1");
        server.serve_with(App::new(&service, &mut ()), &mut |_, _, _| {
            counted.fetch_add(1, Relaxed);
            None
        })
    });

    // Numbers up to 60 are for connections; these are of clients and of the server, since all are in this process.
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
    // Where others leave, those that wait have their turn.
    for socket in &mut queued {
        served.pop();
        read(socket);
    }
    drop((served, queued));

    // None at all: accepting fails, which is no reason to turn; it works again when there are some.
    read(&mut connect(address));
    limit(next_number() + 1);
    let mut socket = TcpStream::connect(address).unwrap();
    let before = turns.load(Relaxed);
    thread::sleep(Duration::from_millis(350));
    let spent = turns.load(Relaxed) - before;
    assert!((2..40).contains(&spent), "{spent} turns with nothing to be done");
    limit(100);
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(REQUEST).unwrap();
    read(&mut socket);
    stopper.stop();
    serving.join().unwrap().unwrap();
}
