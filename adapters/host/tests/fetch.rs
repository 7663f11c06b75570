//! Requests over TLS, and servers that let a request wait.
#![cfg(feature = "tls")]

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use mcp_sansio_host::{FetchFailed, FetchedResponse, Fetcher, HttpStream, TlsConnector};
use mcp_sansio_http::client::{FailureReason, FetchLimits, FetchRequest};
// For `secured`.
#[allow(clippy::single_component_path_imports, reason = "a module finds it here")]
use rustls;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

#[path = "../../../tests/remote/secured.rs"]
mod secured;

use secured::{CERTIFICATE, secured, trusting};

const KEY: &[u8] = include_bytes!("../../../tests/remote/localhost.key.der");

const LIMITS: FetchLimits = FetchLimits::DEFAULT.time(300);

fn reason(fetched: Result<FetchedResponse, FetchFailed>) -> FailureReason {
    match fetched {
        Err(FetchFailed::Exchange(why, _)) => why,
        other => panic!("{other:?}"),
    }
}

/// Answers one connection, and returns what it has received up to the end of the head.
fn answer(listener: &TcpListener, answer: &str) -> String {
    let (mut socket, _) = listener.accept().unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    socket.write_all(answer.as_bytes()).unwrap();
    String::from_utf8(head).unwrap()
}

/// Neither a request that is not read nor a handshake that is not answered outlasts the limit.
#[test]
fn each_wait_for_a_server_ends_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16 * 1024).unwrap();
    let address = listener.local_addr().unwrap();
    let (plain, secure) = (format!("http://{address}/"), format!("https://{address}/"));
    let fetcher = Fetcher::new(LIMITS).tls(trusting(None));
    // More than sockets take without a reader. To copy it takes a part of the time.
    let body = vec![b'x'; 6 << 20];
    let patient = Fetcher::new(LIMITS.time(1_000));
    assert_eq!(reason(patient.fetch(&FetchRequest::post(&plain, &body))), FailureReason::TimedOut);
    assert_eq!(reason(fetcher.fetch(&FetchRequest::get(&plain))), FailureReason::TimedOut);
    assert_eq!(reason(fetcher.fetch(&FetchRequest::get(&secure))), FailureReason::TimedOut);
}

#[test]
fn a_response_comes_over_tls_to_those_who_trust_the_server() {
    let inner = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/a", secured(inner.local_addr().unwrap()).port());
    let kept = inner.try_clone().unwrap();
    let serves = thread::spawn(move || answer(&kept, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    let fetcher = |certificate| Fetcher::new(FetchLimits::DEFAULT).tls(trusting(certificate));
    let response = fetcher(Some(CERTIFICATE)).fetch(&FetchRequest::get(&url)).unwrap();
    assert_eq!((response.status, response.body.as_slice()), (200, &b"ok"[..]));
    assert!(serves.join().unwrap().starts_with("GET /a HTTP/1.1\r\n"));
    assert_eq!(reason(fetcher(None).fetch(&FetchRequest::get(&url))), FailureReason::Refused);
}

/// Without redirects to follow, a redirect is a response with its place.
#[test]
fn redirects_may_be_responses_and_bodies_have_a_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serves = thread::spawn(move || {
        let redirect = "HTTP/1.1 302 There\r\nLocation: /b\r\nContent-Length: 5\r\n\r\nthere";
        [(); 3].map(|()| answer(&listener, redirect))
    });
    let fetcher = Fetcher::new(FetchLimits::DEFAULT.redirects(0));
    let response = fetcher.fetch(&FetchRequest::get(&url)).unwrap();
    assert_eq!((response.status, response.location.as_deref(), response.content_type), (302, Some("/b"), None));
    assert_eq!(fetcher.clone().body(5).fetch(&FetchRequest::get(&url)).unwrap().body, b"there");
    assert_eq!(reason(fetcher.body(4).fetch(&FetchRequest::get(&url))), FailureReason::TooLarge);
    serves.join().unwrap();
}

/// A server at the other end of a TLS connection, in memory.
struct Peer {
    server: ServerConnection,
    /// Bytes for the client.
    sent: Vec<u8>,
    /// The connection is over.
    is_over: bool,
    /// The next write fails with this.
    fails: Option<ErrorKind>,
}

impl Peer {
    fn new() -> Self {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key);
        let server = ServerConnection::new(Arc::new(config.unwrap())).unwrap();
        Peer { server, sent: Vec::new(), is_over: false, fails: None }
    }

    /// Gives the client what the server has to say.
    fn speak(&mut self) {
        while self.server.wants_write() {
            self.server.write_tls(&mut self.sent).unwrap();
        }
    }

    fn say(&mut self, text: &[u8]) {
        self.server.writer().write_all(text).unwrap();
        self.speak();
    }

    fn heard(&mut self) -> Vec<u8> {
        let mut heard = Vec::new();
        let end = self.server.reader().read_to_end(&mut heard).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::WouldBlock);
        heard
    }
}

/// A socket to a [`Peer`], which the test uses too.
#[derive(Clone)]
struct Wire(std::rc::Rc<std::cell::RefCell<Peer>>);

impl Read for Wire {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut peer = self.0.borrow_mut();
        let n = peer.sent.len().min(space.len());
        if n == 0 {
            return if peer.is_over { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
        space[..n].copy_from_slice(&peer.sent[..n]);
        peer.sent.drain(..n);
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut peer = self.0.borrow_mut();
        if let Some(kind) = peer.fails {
            return Err(kind.into());
        }
        let n = peer.server.read_tls(&mut &bytes[..]).unwrap();
        // It is an error if the client refuses the certificate; the client says why.
        let _ = peer.server.process_new_packets();
        peer.speak();
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connected() -> (Wire, HttpStream<Wire>) {
    let wire = Wire(std::rc::Rc::new(std::cell::RefCell::new(Peer::new())));
    let connector = TlsConnector::new("localhost", Some(trusting(Some(CERTIFICATE)))).unwrap();
    let mut stream = HttpStream::new(wire.clone(), Some(&connector)).unwrap();
    assert!(!stream.is_up());
    assert!(stream.handshake().unwrap() && stream.is_up() && !stream.wants_write());
    (wire, stream)
}

#[test]
fn a_stream_over_tls_carries_both_directions() {
    let (wire, mut stream) = connected();
    assert_eq!(stream.write(b"hello").unwrap(), 5);
    assert_eq!(wire.0.borrow_mut().heard(), b"hello");
    let mut space = [0; 16];
    assert_eq!(stream.read(&mut space).unwrap_err().kind(), ErrorKind::WouldBlock);
    wire.0.borrow_mut().say(b"good morning");
    assert_eq!(stream.read(&mut space[..4]).unwrap(), 4);
    assert_eq!(stream.read(&mut space[4..]).unwrap(), 8);
    assert_eq!(&space[..12], b"good morning");
}

/// An end in order is the end; without it the peer, or a stranger, may have cut something off.
#[test]
fn the_end_of_a_stream_over_tls_is_in_order_or_a_reset() {
    for in_order in [true, false] {
        let (wire, mut stream) = connected();
        wire.0.borrow_mut().say(b"bye");
        if in_order {
            wire.0.borrow_mut().server.send_close_notify();
            wire.0.borrow_mut().speak();
        }
        wire.0.borrow_mut().is_over = true;
        let mut space = [0; 16];
        assert_eq!(stream.read(&mut space).unwrap(), 3);
        let end = stream.read(&mut space).map_err(|error| error.kind());
        assert_eq!(end, if in_order { Ok(0) } else { Err(ErrorKind::ConnectionReset) });
    }
}

#[test]
fn a_socket_that_fails_ends_a_stream_over_tls() {
    let (wire, mut stream) = connected();
    wire.0.borrow_mut().fails = Some(ErrorKind::WouldBlock);
    assert_eq!(stream.write(b"later").unwrap(), 5);
    assert!(stream.wants_write());
    wire.0.borrow_mut().fails = Some(ErrorKind::BrokenPipe);
    assert_eq!(stream.flush().unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(stream.write(b"lost").unwrap_err().kind(), ErrorKind::BrokenPipe);
    wire.0.borrow_mut().fails = None;
    stream.flush().unwrap();
    assert!(!stream.wants_write() && wire.0.borrow_mut().heard().starts_with(b"later"));
}

#[test]
fn a_handshake_fails_with_its_socket() {
    let wire = Wire(std::rc::Rc::new(std::cell::RefCell::new(Peer::new())));
    wire.0.borrow_mut().fails = Some(ErrorKind::BrokenPipe);
    let connector = TlsConnector::new("localhost", Some(trusting(Some(CERTIFICATE)))).unwrap();
    let mut stream = HttpStream::new(wire.clone(), Some(&connector)).unwrap();
    assert_eq!(stream.handshake().unwrap_err().kind(), ErrorKind::BrokenPipe);
    // The peer does not know this certificate's authority.
    let wire = Wire(std::rc::Rc::new(std::cell::RefCell::new(Peer::new())));
    let connector = TlsConnector::new("localhost", Some(trusting(None))).unwrap();
    let mut stream = HttpStream::new(wire, Some(&connector)).unwrap();
    assert!(stream.handshake().is_err() && !stream.is_up());
}
