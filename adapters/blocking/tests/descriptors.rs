//! The HTTP server with few descriptors. This is one test, because the limit holds for the whole process.
#![cfg(all(feature = "http", unix))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use mcp_sansio::service::Service;
use mcp_sansio_blocking::http::{HttpServer, HttpServerOptions};

#[path = "../../../tests/remote/descriptors.rs"]
mod descriptors;
use descriptors::{DESCRIPTORS, SPARED, limit, use_up};

#[test]
fn some_are_left_and_none_is_no_end() {
    limit(DESCRIPTORS);
    let server = HttpServer::bind("127.0.0.1:0").unwrap().options(HttpServerOptions::new().spare_descriptors(SPARED));
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let serving = thread::spawn(move || {
        let service = Service::<()>::new("few", "1");
        let server = server.tick(move |_, _, _| {
            counted.fetch_add(1, Relaxed);
            None
        });
        server.serve(&service, &mut ())
    });

    use_up(address, &turns);
    stopper.stop();
    serving.join().unwrap().unwrap();
}
