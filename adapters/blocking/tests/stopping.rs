//! The end of the HTTP server in order.
#![cfg(all(feature = "http", unix))]

use std::thread;
use std::time::Duration;

use mcp_sansio_blocking::channel;
use mcp_sansio_blocking::http::HttpServer;

#[path = "../../../tests/remote/stopping.rs"]
mod stopping;
use stopping::{Running, SERVICE, State};

fn start(grace: Duration) -> Running {
    let (late, receiver) = channel();
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = thread::spawn(move || server.late(receiver).grace(grace).serve(&SERVICE, &mut State { late }));
    Running { address, stopper, thread }
}
