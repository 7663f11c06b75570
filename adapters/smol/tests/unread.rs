//! Requests that wait for the stream of their session.

use mcp_sansio_smol::http::HttpServer;

#[path = "../../../tests/remote/unread.rs"]
mod unread;

#[test]
fn a_request_waits_for_its_stream() {
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = std::thread::spawn(move || smol::block_on(server.serve(&unread::SERVICE, &mut ())));
    unread::a_request_waits_for_its_stream(address);
    stopper.stop();
    thread.join().unwrap().unwrap();
}
