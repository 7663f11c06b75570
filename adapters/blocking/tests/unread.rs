//! Requests that wait for the stream of their session.
#![cfg(all(feature = "http", unix))]

use std::io::{ErrorKind, Write};
use std::time::Duration;

use mcp_sansio::server::MessageLimits;
use mcp_sansio_blocking::http::{HttpServer, HttpServerOptions};

#[path = "../../../tests/remote/unread.rs"]
mod unread;
use unread::{PING, post, read_until, unread_session, waits};

fn serve(options: HttpServerOptions, test: fn(std::net::SocketAddr)) {
    let server = HttpServer::bind("127.0.0.1:0").unwrap().options(options);
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = std::thread::spawn(move || server.serve(&unread::SERVICE, &mut ()));
    test(address);
    stopper.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_request_waits_for_its_stream() {
    serve(HttpServerOptions::new(), unread::a_request_waits_for_its_stream);
}

/// The connection of a request that waits breaks: its place comes free, also if more is behind the request than the input takes.
#[test]
fn a_client_that_waits_is_reset() {
    let limits = MessageLimits { message: 10_000, ..MessageLimits::default() };
    serve(HttpServerOptions::new().connections(2).limits(limits), |address| {
        let (_stream, path) = unread_session(address);
        for fills in [false, true] {
            let mut gone = post(address, &path, PING);
            waits(&mut gone);
            gone.set_nonblocking(true).unwrap();
            let mut refused = if fills { 0 } else { 5 };
            while refused < 5 {
                match gone.write(&[b' '; 64 * 1024]) {
                    Ok(n) => refused = usize::from(n == 0),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock, "it stays open");
                        refused += 1;
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }
            rustix::net::sockopt::set_socket_linger(&gone, Some(Duration::ZERO)).unwrap();
            drop(gone);
            assert!(read_until(&mut post(address, "/nowhere", "{}"), "\r\n\r\n").starts_with("HTTP/1.1 404"));
        }
    });
}
