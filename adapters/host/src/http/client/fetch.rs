//! One GET or POST to any URL, over sockets that block.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_sansio::server::Millis;
use mcp_sansio_http::client::{FailureReason, Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse};

use super::HttpOrigin;
use crate::HttpStream;
use crate::http::tls::{TlsConfig, TlsConnector};

/// Sends one request over connections of its own and waits for the response, as long as the limits allow.
#[derive(Clone, Default)]
#[must_use]
pub struct Fetcher {
    limits: FetchLimits,
    pub(crate) allows: Option<Allows>,
    pub(crate) tls: Option<TlsConfig>,
}

/// Decides whether to connect to an address.
pub(crate) type Allows = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

mcp_sansio::debug_fields!(impl for Fetcher { limits });

/// A response that owns its bytes.
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchedResponse {
    /// The HTTP status: 200 to 599.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// The header `Content-Type`; the first if there are several, as below.
    pub content_type: Option<String>,
    /// The header `Location`.
    pub location: Option<String>,
    /// The header `DPoP-Nonce`.
    pub dpop_nonce: Option<String>,
}

impl FetchedResponse {
    fn new(response: &FetchResponse<'_>) -> Self {
        let header = |name| response.headers(name).next().map(str::to_owned);
        FetchedResponse {
            status: response.status,
            body: response.body.to_vec(),
            content_type: header("content-type"),
            location: header("location"),
            dpop_nonce: header("dpop-nonce"),
        }
    }
}

// Leaves headers and body out, which may be secret.
mcp_sansio::debug_fields!(impl for FetchedResponse { status });

/// The reason why there is no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchFailed {
    /// The request cannot be sent.
    Request(FetchError),
    /// The name of the host has no address that is allowed; this one is not.
    Address(IpAddr),
    /// The exchange failed.
    Exchange(FailureReason, Option<io::Error>),
}

impl fmt::Display for FetchFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchFailed::Request(error) => error.fmt(f),
            FetchFailed::Address(address) => write!(f, "connections to {address} are not allowed"),
            FetchFailed::Exchange(why, None) => why.fmt(f),
            FetchFailed::Exchange(why, Some(error)) => write!(f, "{why}: {error}"),
        }
    }
}

impl std::error::Error for FetchFailed {}

impl Fetcher {
    /// Makes a fetcher with these limits.
    pub fn new(limits: FetchLimits) -> Self {
        Fetcher { limits, ..Fetcher::default() }
    }

    mcp_sansio::setters! {
        /// Sets the TLS configuration. Default: the certificates of the system are trusted.
        #[cfg(feature = "tls")]
        tls(config: Arc<rustls::ClientConfig>) => tls = Some(config);
        /// Connects only to addresses for which `allows` returns `true`, of those that the name of the host has. Default: to
        /// all, for URLs of others choose those of `mcp_sansio_auth::url::Reach::Public`; [authorization](crate::AuthorizationOptions::fetcher) has a default of its own.
        addresses(allows: impl Fn(IpAddr) -> bool + Send + Sync + 'static) => allows = Some(Arc::new(allows));
    }

    /// Sets the longest body of a response, in bytes.
    pub fn body(mut self, bytes: usize) -> Self {
        self.limits = self.limits.body(bytes);
        self
    }

    /// Sends a request and waits for the response. It blocks.
    ///
    /// # Errors
    /// [`FetchFailed`]: the request cannot be sent, there is no connection, or a limit is reached.
    pub fn fetch(&self, request: &FetchRequest<'_>) -> Result<FetchedResponse, FetchFailed> {
        let begun = Instant::now();
        let mut fetch = Fetch::growing(request, self.limits, 0).map_err(FetchFailed::Request)?;
        let limit = Duration::from_millis(fetch.deadline);
        let mut trouble = None;
        loop {
            match fetch.response() {
                Some(Ok(response)) => return Ok(FetchedResponse::new(&response)),
                Some(Err(why)) => return Err(FetchFailed::Exchange(why, trouble)),
                None => {}
            }
            if !fetch.connects() {
                continue;
            }
            match self.exchange(&mut fetch, begun + limit) {
                Ok(None) => {}
                Ok(Some(refused)) => return Err(FetchFailed::Address(refused)),
                Err(error) => {
                    // Without effect if the connection failed after the response. If the time is over, that is the reason.
                    fetch.expire(begun.elapsed().as_millis() as Millis);
                    fetch.failed();
                    trouble = Some(error);
                }
            }
        }
    }

    /// Carries out the exchange over one connection. Returns an address to which no connection is allowed, if there is no other.
    fn exchange(&self, fetch: &mut Fetch<'_>, end: Instant) -> io::Result<Option<IpAddr>> {
        let url = fetch.url();
        let mut origin = HttpOrigin::new(url.host(), url.port(), left(end)?);
        let (mut addresses, each) = origin.addresses()?;
        let allows = |address: &SocketAddr| self.allows.as_ref().is_none_or(|allows| allows(address.ip()));
        let refused = addresses.iter().find(|address| !allows(address)).map(SocketAddr::ip);
        addresses.retain(allows);
        if refused.is_some() && addresses.is_empty() {
            return Ok(refused);
        }
        let socket = Patient { socket: connect(&addresses, each, end)?, end };
        let secure = url.is_secure().then(|| TlsConnector::new(url.host(), self.tls.clone())).transpose();
        let mut stream = HttpStream::new(socket, secure.map_err(io::Error::other)?.as_ref())?;
        while !stream.is_up() {
            stream.handshake()?;
        }
        carry(fetch, stream).map(|()| None)
    }
}

/// Returns the time that is left.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn connect(addresses: &[SocketAddr], each: Duration, end: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, each.min(left(end)?)) {
            Ok(socket) => {
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Err(error) => failed = super::options::connect_error(*address, &error),
        }
    }
    Err(failed)
}

/// A socket that waits as long as there is time. It sets the time for each call: TLS makes several for one read, as many as its peer has
/// pieces for one record.
struct Patient {
    socket: TcpStream,
    end: Instant,
}

impl Patient {
    fn wait(&self) -> io::Result<()> {
        let left = left(self.end)?.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))
    }
}

impl Read for Patient {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.socket.read(space)
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait()?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Moves bytes until there is a response or another connection is needed. It is an error if the time is over before.
fn carry(fetch: &mut Fetch<'_>, mut link: impl Read + Write) -> io::Result<()> {
    fetch.connected();
    // After a failed write the response may still be there to read.
    let mut trouble = None;
    while !fetch.pending().is_empty() && trouble.is_none() {
        match link.write(fetch.pending()) {
            Ok(0) => trouble = Some(ErrorKind::WriteZero.into()),
            Ok(n) => fetch.sent(n),
            Err(error) if is_wait(&error) => {}
            Err(error) => trouble = Some(error),
        }
    }
    trouble = trouble.or(link.flush().err());
    while !fetch.space().is_empty() {
        match link.read(fetch.space()) {
            Ok(0) => {
                fetch.closed();
                return Ok(());
            }
            Ok(n) => fetch.filled(n),
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(trouble.unwrap_or(error)),
        }
    }
    Ok(())
}

/// Returns whether the call is made again: a socket that has waited to the end returns another error then.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers one connection with each text, once there is a request. An empty text leaves the connection open.
    fn server(answers: Vec<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a", listener.local_addr().unwrap());
        thread::spawn(move || {
            let mut open = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let n = socket.read(&mut request).unwrap();
                assert!(request[..n].ends_with(b"\r\n\r\n"));
                socket.write_all(answer.as_bytes()).unwrap();
                if answer.is_empty() {
                    open.push(socket);
                }
            }
            thread::sleep(Duration::from_secs(2));
        });
        url
    }

    #[test]
    fn responses_and_failures() {
        let limits = FetchLimits::DEFAULT.body(10).time(700);
        let fetch = |answers| Fetcher::new(limits).fetch(&FetchRequest::get(&server(answers)));
        let redirect = "HTTP/1.1 302 There\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
        let fine = "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nDPoP-Nonce: n\r\nContent-Length: 2\r\n\r\nok";
        let response = fetch(vec![redirect, fine]).unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, &b"ok"[..]));
        assert_eq!(
            (response.content_type.as_deref(), response.dpop_nonce.as_deref(), &response.location),
            (Some("text/x"), Some("n"), &None)
        );
        assert!(!format!("{response:?}").contains("text"));
        let closing = fetch(vec!["HTTP/1.1 200 OK\r\n\r\nall"]).unwrap();
        assert_eq!(closing.body, b"all");
        let failure = |answers| match fetch(answers).unwrap_err() {
            FetchFailed::Exchange(why, _) => why,
            error => panic!("{error}"),
        };
        assert_eq!(failure(vec!["HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n"]), FailureReason::TooLarge);
        assert_eq!(failure(vec![""]), FailureReason::TimedOut);
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = Fetcher::new(limits).fetch(&FetchRequest::get(&format!("http://{free}/"))).unwrap_err();
        assert!(refused.to_string().starts_with("no connection to the server: 127.0.0.1:"), "{refused}");
        let url = Fetcher::new(limits).fetch(&FetchRequest::get("file:///etc/passwd")).unwrap_err();
        assert!(matches!(url, FetchFailed::Request(FetchError::Url(_))));
    }

    /// A peer that sends one byte after the other, of an answer or of a record of TLS, has no more time than another.
    #[test]
    fn a_peer_that_drips_is_left_at_the_end_of_the_time() {
        let drip = |beginning: &'static [u8]| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = thread::spawn(move || {
                let (mut socket, _) = listener.accept().unwrap();
                let end = Instant::now() + Duration::from_secs(5);
                let mut sent = socket.write_all(beginning);
                while sent.is_ok() && Instant::now() < end {
                    thread::sleep(Duration::from_millis(20));
                    sent = socket.write_all(b"1");
                }
                sent.is_err()
            });
            (address, server)
        };
        let schemes: &[(&str, &[u8])] = &[
            ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"),
            ("http", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n"),
            ("http", b"HTTP/1.1 200 OK\r\nX: "),
            #[cfg(feature = "tls")]
            ("https", b"\x16\x03\x03\x40\x00"),
        ];
        for (scheme, beginning) in schemes {
            let (address, server) = drip(beginning);
            let fetcher = Fetcher::new(FetchLimits::DEFAULT.time(500));
            #[cfg(feature = "tls")]
            let fetcher = fetcher.tls(crate::http::tls::tests::config());
            let begun = Instant::now();
            let failed = fetcher.fetch(&FetchRequest::get(&format!("{scheme}://{address}/"))).unwrap_err();
            assert!(matches!(failed, FetchFailed::Exchange(FailureReason::TimedOut, _)), "{scheme}: {failed}");
            assert!(begun.elapsed() < Duration::from_secs(3), "{scheme}");
            assert!(server.join().unwrap(), "{scheme}: the connection is open still");
        }
    }

    /// A name that stands for an address which is not allowed.
    #[test]
    fn addresses_that_are_not_allowed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        let limits = FetchLimits::DEFAULT.time(700);
        let refused = Fetcher::new(limits).addresses(|address| !address.is_loopback());
        let error = refused.fetch(&FetchRequest::get(&url)).unwrap_err();
        assert!(matches!(error, FetchFailed::Address(address) if address.is_loopback()), "{error}");
        assert!(error.to_string().ends_with(" are not allowed"), "{error}");
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "there was a connection");
        // One of the addresses is enough.
        let some = Fetcher::new(limits).addresses(|address| address.is_ipv4());
        assert!(matches!(some.fetch(&FetchRequest::get(&url)).unwrap_err(), FetchFailed::Exchange(..)));
        listener.accept().unwrap();
    }

    #[test]
    fn what_passes_with_time_is_waited_for() {
        for kind in [ErrorKind::WouldBlock, ErrorKind::Interrupted] {
            assert!(is_wait(&kind.into()), "{kind}");
        }
        for kind in [ErrorKind::TimedOut, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::Other] {
            assert!(!is_wait(&kind.into()), "{kind}");
        }
        assert_eq!(left(Instant::now()).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(left(Instant::now() + Duration::from_secs(60)).unwrap() > Duration::from_secs(10));
    }

    /// A connection that takes a byte at a time, and is interrupted and then lost.
    struct Weak {
        sent: Vec<u8>,
        writes: usize,
        fails_after: usize,
        answer: &'static [u8],
    }

    impl Write for Weak {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            if self.writes > self.fails_after {
                return Err(ErrorKind::BrokenPipe.into());
            }
            if self.writes % 2 == 1 {
                return Err(ErrorKind::Interrupted.into());
            }
            self.sent.push(bytes[0]);
            Ok(1)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Weak {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            match self.answer.split_first() {
                None => Err(ErrorKind::ConnectionReset.into()),
                Some((byte, rest)) => {
                    self.answer = rest;
                    space[0] = *byte;
                    Ok(1)
                }
            }
        }
    }

    /// The response counts, also after a failed write; else the first failure does.
    #[test]
    fn a_response_is_read_from_a_weak_connection() {
        let fine: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        for (fails_after, answer, failure) in [
            (usize::MAX, fine, None),
            (4, fine, None),
            (usize::MAX, &fine[..20], Some(ErrorKind::ConnectionReset)),
            (4, &fine[..20], Some(ErrorKind::BrokenPipe)),
        ] {
            let request = FetchRequest::get("http://127.0.0.1/a");
            let mut fetch = Fetch::growing(&request, FetchLimits::DEFAULT.time(60_000), 0).unwrap();
            assert!(fetch.connects());
            let mut weak = Weak { sent: Vec::new(), writes: 0, fails_after, answer };
            let carried = {
                let weak = &mut weak;
                struct Lent<'w>(&'w mut Weak);
                impl Read for Lent<'_> {
                    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
                        self.0.read(space)
                    }
                }
                impl Write for Lent<'_> {
                    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                        self.0.write(bytes)
                    }
                    fn flush(&mut self) -> io::Result<()> {
                        self.0.flush()
                    }
                }
                carry(&mut fetch, Lent(weak))
            };
            assert_eq!(carried.map_err(|error| error.kind()).err(), failure);
            match fails_after {
                4 => assert_eq!(weak.sent, b"GE"),
                _ => assert!(weak.sent.ends_with(b"\r\n\r\n"), "{:?}", weak.sent),
            }
            if failure.is_none() {
                let response = fetch.response().unwrap().unwrap();
                assert_eq!((response.status, response.body), (200, &b"ok"[..]));
            }
        }
    }
}
