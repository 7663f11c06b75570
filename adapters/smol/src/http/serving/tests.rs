//! The loop of the server with sockets.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::task::Waker;

use async_io::Async;
use futures_lite::future::block_on;
use mcp_sansio_host::{HttpStream, NetSocket};
use mcp_sansio_http::endpoint::{Access, RequestHead};

use super::*;
use crate::socket::AsyncSocket;

/// A request that is answered with 404.
const REQUEST: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// A request for the stream of a session of HTTP with SSE.
const STREAM: &[u8] = b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";

/// Runs a test with a server that has no connection, and an application that asks `authorize`.
fn with_asking_server(
    authorize: &dyn Fn(&RequestHead<'_>) -> Access<'static>,
    test: impl FnOnce(&mut Driver<()>, &mut App<'_, ()>),
) {
    let (service, mut state) = (Service::new("test", "1"), ());
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let Serving { service, state, mut driver, .. } = Serving::new(server, &service, &mut state);
    let asks = |head: &RequestHead<'_>| authorize(head);
    test(&mut driver, &mut App::new(service, state).authorize(&asks));
}

/// Runs a test with a server that has no connection.
fn with_server(test: impl FnOnce(&mut Driver<()>, &mut App<'_, ()>)) {
    with_asking_server(&|_| Access::Granted { principal: None }, test);
}

/// Accepts a client that has sent `bytes`. Returns its end, which does not block.
fn connect(driver: &mut Driver<()>, app: &mut App<'_, ()>, bytes: &[u8]) -> UnixStream {
    let (mut client, server) = UnixStream::pair().unwrap();
    client.set_nonblocking(true).unwrap();
    client.write_all(bytes).unwrap();
    server.set_nonblocking(true).unwrap();
    driver.enter(app, Socket::Net(HttpStream::Plain(AsyncSocket::new(NetSocket::Unix(server)).unwrap())));
    client
}

/// Gives a connection the turn that it has when its socket wakes it.
fn wake(driver: &mut Driver<()>, app: &mut App<'_, ()>, slot: usize) {
    driver.serving.host.socket(slot).unwrap().ring();
    driver.serve_woken(app, &Context::from_waker(Waker::noop()));
}

/// Returns the bytes that the client can read now.
fn received(client: &mut UnixStream) -> String {
    let mut bytes = [0; 4096];
    let n = client.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

/// Looks for clients that have gone, at this time.
fn look(driver: &mut Driver<()>, app: &mut App<'_, ()>, at: Millis) {
    driver.look_at = driver.look_at.map(|look_at| if look_at <= at { 0 } else { look_at });
    driver.look(app);
}

#[test]
fn a_socket_that_has_woken_is_served_once() {
    with_server(|driver, app| {
        let mut client = connect(driver, app, b"");
        client.write_all(REQUEST).unwrap();
        wake(driver, app, 0);
        assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        assert!(driver.slots.contains(&0) && driver.slots.capacity() > 0, "its allocation is kept");
        // The reactor may wake it too, a moment later.
        let is_idle = (0..100).any(|_| {
            driver.serve_woken(app, &Context::from_waker(Waker::noop()));
            driver.slots.is_empty()
        });
        assert!(is_idle, "it is served again and again");
    });
}

/// Also those that were received together with others, when no further byte comes.
#[test]
fn requests_that_are_there_are_answered() {
    with_server(|driver, app| {
        let mut client = connect(driver, app, &REQUEST.repeat(200));
        let mut answered = 0;
        for _ in 0..100 {
            answered += received(&mut client).matches("HTTP/1.1 404").count();
            driver.serve_woken(app, &Context::from_waker(Waker::noop()));
        }
        assert!(answered >= 195, "{answered}");
    });
}

/// Also one whose bytes have come a moment ago, so that its socket has not woken yet.
#[test]
fn a_request_that_is_there_at_the_end_is_answered() {
    with_server(|driver, app| {
        let mut client = connect(driver, app, REQUEST);
        assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        client.write_all(REQUEST).unwrap();
        driver.serving.host.drain(app, driver.serving.now());
        let answer = received(&mut client);
        assert!(answer.starts_with("HTTP/1.1 ") && answer.contains("Connection: close\r\n"), "{answer}");
        assert_eq!(driver.serving.host.open(), 0);
    });
}

/// Nothing is read from it meanwhile, so only a look finds that it has gone. A client that has closed its side waits for its answer.
#[test]
fn a_client_whose_request_is_undecided_is_looked_at() {
    const LIST: &str =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let asked = std::cell::Cell::new(0);
    let authorize = |_: &RequestHead<'_>| {
        asked.set(asked.get() + 1);
        Access::Later
    };
    with_asking_server(&authorize, |driver, app| {
        let client = connect(driver, app, LIST.as_bytes());
        driver.look(app);
        let (first, once) = (driver.look_at.unwrap(), asked.get());
        assert!(once > 0 && first > driver.serving.now());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        look(driver, app, first);
        assert_eq!(
            (driver.look_at, asked.get(), driver.serving.host.open()),
            (Some(driver.serving.now() + LOOK), once, 1)
        );
        drop(client);
        look(driver, app, first - 1);
        assert_eq!(driver.serving.host.open(), 1);
        look(driver, app, first + LOOK);
        assert_eq!(driver.serving.host.open(), 0);
        look(driver, app, first + 3 * LOOK);
        assert_eq!(driver.look_at, None);
    });
}

/// It is gone when it has closed its side: its stream was all that it waited for.
#[test]
fn a_client_with_a_full_input_behind_its_stream_is_looked_at() {
    with_server(|driver, app| {
        let mut client = connect(driver, app, STREAM);
        driver.look(app);
        assert_eq!(driver.look_at, None);
        while client.write(&[b' '; 16 * 1024]).is_ok() {}
        wake(driver, app, 0);
        driver.look(app);
        let look_at = driver.look_at.unwrap();
        look(driver, app, look_at);
        assert_eq!(driver.serving.host.open(), 1);
        client.shutdown(std::net::Shutdown::Write).unwrap();
        look(driver, app, look_at + LOOK);
        assert_eq!(driver.serving.host.open(), 0);
    });
}

/// The only client of a server over a stream cannot open another connection.
#[test]
fn a_server_over_a_stream_does_not_end_for_being_idle() {
    let (client, server) = UnixStream::pair().unwrap();
    let (reader, writer) = (Async::new(server.try_clone().unwrap()).unwrap(), Async::new(server).unwrap());
    let (service, mut state) = (Service::<()>::new("test", "1"), ());
    let mut serving = Serving::new(HttpServer::over(reader, writer), &service, &mut state);
    assert!(serving.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let driver = &mut serving.driver;
    driver.serving.host.expire(&mut App::new(&service, &mut ()), driver.serving.now() + 3_600_000);
    assert_eq!(driver.serving.host.open(), 1);
    drop(client);
    let ended = block_on(poll_fn(|cx| serving.poll(cx)));
    assert!(ended.is_ok());
}

/// When all connections that wait were accepted, the next one need not wait.
#[test]
fn accepting_rests_only_after_an_error() {
    let (service, mut state) = (Service::<()>::new("test", "1"), ());
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut serving = Serving::new(server, &service, &mut state);
    let mut clients = Vec::new();
    for connections in 1..4 {
        clients.push(TcpStream::connect(address).unwrap());
        block_on(poll_fn(|cx| match serving.poll(cx) {
            Poll::Ready(ended) => panic!("{ended:?}"),
            Poll::Pending if serving.driver.serving.host.open() == connections => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }));
        assert!(serving.driver.serving.accepts());
    }
}
