//! The end of the HTTP server in order.

use std::thread;
use std::time::Duration;

use mcp_sansio_smol::channel;
use mcp_sansio_smol::http::HttpServer;

#[path = "../../../tests/remote/stopping.rs"]
mod stopping;
use stopping::{Running, SERVICE, State};

fn start(grace: Duration) -> Running {
    let (late, receiver) = channel();
    let server = HttpServer::bind("127.0.0.1:0").unwrap().late(receiver).grace(grace);
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = thread::spawn(move || smol::block_on(server.serve(&SERVICE, &mut State { late })));
    Running { address, stopper, thread }
}
