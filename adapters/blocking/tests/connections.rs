//! Limits of connections, and their ends.
#![cfg(all(feature = "http", unix))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio_blocking::http::{HttpServer, HttpServerOptions};

#[path = "../../../tests/remote/connections.rs"]
mod connections;
use connections::{Running, SERVICE};

fn start(options: HttpServerOptions) -> Running {
    let server = HttpServer::bind("127.0.0.1:0").unwrap().options(options);
    let (address, stopper, turns) = (server.local_addr().unwrap(), server.stopper(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&turns);
    let thread = std::thread::spawn(move || {
        let server = server.tick(move |_, _, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            None
        });
        server.serve(&SERVICE, &mut ())
    });
    Running { address, stopper, thread: Some(thread), turns }
}
