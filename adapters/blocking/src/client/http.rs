//! A server over HTTP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientHandler, ClientInfo};
use mcp_sansio::server::Millis;
#[cfg(feature = "tls")]
use mcp_sansio_host::AuthorizationOptions;
use mcp_sansio_host::{
    AuthorizationDriver, AuthorizationFlow, CONNECTIONS, HttpOptions, HttpPlace, HttpSession, HttpStream, NetSocket,
    TransportState,
};
use mcp_sansio_http::client::{ChallengeAnswer, ChallengedRequest, HeaderWriter, SocketAction};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::pipes::Got;
use super::tcp::{self, Connecting, Dialed};
use super::{ChildExit, ClientError, Ignore, Trace, Transport};
use crate::millis_since;
use crate::pump::Pump;

/// The time for the `DELETE` that ends the session when the client is closed.
const GOODBYE: Duration = Duration::from_secs(2);

/// The application's function for authorization.
type Authorize = Box<dyn FnMut(&ChallengedRequest<'_>, &mut HeaderWriter<'_>) -> ChallengeAnswer>;

/// A slot for one connection.
#[derive(Debug, Default)]
struct Socket {
    carrier: Carrier,
    /// The socket may have something to read.
    ready: bool,
}

#[derive(Debug, Default)]
enum Carrier {
    #[default]
    None,
    Connecting(Connecting),
    Up(HttpStream<NetSocket>),
}

/// A server over HTTP: [Streamable
/// HTTP](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http) of all revisions,
/// and [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse) of
/// 2024-11-05.
///
/// ```no_run
/// use mcp_sansio::client::{ClientInfo, Request};
/// use mcp_sansio_blocking::client::{Client, Http, Ignore};
///
/// let info = ClientInfo::new("demo", "1.0");
/// let mut client = Client::new(Http::new("http://localhost:8931/mcp", &info)?, Ignore);
/// println!("{:?}", client.connect()?);
/// println!("{:?}", client.request(&Request::list_tools())?);
/// client.close();
/// # Ok::<(), mcp_sansio_blocking::client::ClientError>(())
/// ```
pub struct Http<'m> {
    session: Session<'m>,
    sockets: [Socket; CONNECTIONS],
    /// The stream that was not used yet, if this is the place.
    stream: Option<UnixStream>,
    time: Millis,
    /// The last turn has taken an event, and more of the same bytes may follow.
    took: bool,
}

type Session<'m> = HttpSession<'m, Authorization, Trace>;

/// The function of the application for authorization.
#[derive(Default)]
struct Authorization(Option<Authorize>);

impl AuthorizationDriver for Authorization {
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, headers: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        self.0.as_mut().map_or(ChallengeAnswer::GiveUp, |authorize| authorize(challenge, headers))
    }

    fn carry_out(&mut self, flow: &Arc<dyn AuthorizationFlow>, _: Option<usize>) -> ChallengeAnswer {
        if flow.carry_out() { ChallengeAnswer::Retry } else { ChallengeAnswer::GiveUp }
    }
}

impl<'m> Http<'m> {
    /// Makes a client's end for the server at `url`. It connects with the first request. `unix:/run/mcp.sock` is a server at a
    /// Unix socket, see [`HttpOptions::open`].
    ///
    /// # Errors
    /// [`ClientError::Url`] if the URL does not begin with `http`, `unix:` or (with the feature `tls`) `https`.
    pub fn new(url: &str, info: &'m ClientInfo<'m>) -> Result<Self, ClientError> {
        Http::with(url, info, HttpOptions::new())
    }

    /// Makes a client's end for the server at `url`, with options. It connects with the first request.
    ///
    /// # Errors
    /// As [`new`](Http::new); also [`ClientError::Url`] if a header of the options is not valid.
    pub fn with(url: &str, info: &'m ClientInfo<'m>, options: HttpOptions) -> Result<Self, ClientError> {
        Ok(Http::of(options.open(url, info, Authorization::default())?, None))
    }

    /// Makes a client's end for a server that speaks HTTP over a stream of bytes: the pipes of a process, a serial line.
    /// Two threads copy the bytes, so `reader` and `writer` must block; `writer` is dropped when the client is closed.
    ///
    /// Requests go to `http://localhost/mcp`, one after the other: each waits until the one before it is answered. An event
    /// stream takes the connection until its end. So a session has no stream for the server's own messages; from
    /// 2026-07-28 on use a listen only if nothing else is to be sent. Up to 2025-11-25 the server's questions within a
    /// call cannot be answered. A request that is cancelled or too late closes the connection, and with it the stream:
    /// make a new client then.
    ///
    /// ```no_run
    /// use std::process::{Command, Stdio};
    /// use mcp_sansio::client::ClientInfo;
    /// use mcp_sansio_blocking::client::{Client, Http, HttpOptions, Ignore};
    ///
    /// let mut server = Command::new("http_stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    /// let (Some(output), Some(input)) = (server.stdout.take(), server.stdin.take()) else { return Ok(()) };
    /// let info = ClientInfo::new("demo", "1.0");
    /// let mut client = Client::new(Http::over(output, input, &info, HttpOptions::new())?, Ignore);
    /// println!("{:?}", client.connect()?);
    /// client.close(); // closes its stdin
    /// server.wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ClientError::Url`] if a header of the options is not valid; [`ClientError::Io`] if the system has no more sockets or
    /// threads.
    pub fn over(
        reader: impl io::Read + Send + 'static,
        writer: impl io::Write + Send + 'static,
        info: &'m ClientInfo<'m>,
        options: HttpOptions,
    ) -> Result<Self, ClientError> {
        let session = options.open_stream(info, Authorization::default())?;
        let (socket, _) = Pump::start(reader, writer)?;
        socket.set_nonblocking(true)?;
        Ok(Http::of(session, Some(socket)))
    }

    fn of(session: Session<'m>, stream: Option<UnixStream>) -> Self {
        Http { session, sockets: Default::default(), stream, time: 0, took: false }
    }

    /// Calls `authorize` when the server answers 401 or 403. The function sets headers and returns whether to try
    /// again (see [authorization](https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization)).
    ///
    /// The function may block. The challenged request's time does not run meanwhile; the times of other requests do,
    /// but they are neither sent nor answered. For long work return [`ChallengeAnswer::Later`]: other requests then go on.
    /// Later call [`set_header`](Http::set_header) and [`retry`](Http::retry) (or [`give_up`](Http::give_up)) with
    /// the [slot](ChallengedRequest::slot), through [`Client::transport`](super::Client::transport).
    ///
    /// ```
    /// use mcp_sansio::client::ClientInfo;
    /// use mcp_sansio_blocking::client::{Http, ChallengeAnswer};
    ///
    /// let info = ClientInfo::new("demo", "1.0");
    /// let server = Http::new("http://localhost:8931/mcp", &info)?.authorize(|challenge, headers| {
    ///     if challenge.tries > 0 || headers.set("Authorization", "Bearer fresh").is_err() {
    ///         return ChallengeAnswer::GiveUp;
    ///     }
    ///     ChallengeAnswer::Retry
    /// });
    /// # Ok::<(), mcp_sansio_blocking::client::ClientError>(())
    /// ```
    #[must_use]
    pub fn authorize(
        mut self,
        authorize: impl FnMut(&ChallengedRequest<'_>, &mut HeaderWriter<'_>) -> ChallengeAnswer + 'static,
    ) -> Self {
        self.session.hooks.0 = Some(Box::new(authorize));
        self
    }

    /// Turns on authorization
    /// ([OAuth](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)): when the server answers
    /// 401 or 403, the client gets a token, by a person who visits a URL or as the
    /// [configuration](AuthorizationOptions::config) says, and sends the message again.
    ///
    /// The client blocks while it gets a token. The challenged request's time does not run meanwhile; the times of other
    /// requests do.
    ///
    /// ```no_run
    /// use mcp_sansio::client::ClientInfo;
    /// use mcp_sansio_blocking::client::{AuthorizationOptions, Client, Http, Ignore, TokenFile};
    ///
    /// let info = ClientInfo::new("demo", "1.0");
    /// let options = AuthorizationOptions::new("demo")
    ///     .visit(|url| println!("Log in at {url}"))
    ///     .tokens(TokenFile::new("tokens.json"));
    /// let server = Http::new("http://localhost:8931/mcp", &info)?.authorization(options)?;
    /// let mut client = Client::new(server, Ignore);
    /// client.connect()?;
    /// # Ok::<(), mcp_sansio_blocking::client::ClientError>(())
    /// ```
    ///
    /// # Errors
    /// [`ClientError::Url`] if tokens must not be sent to the server's URL, or the server is not on the network (a Unix
    /// socket, a stream); [`ClientError::Io`] if the tokens cannot be
    /// read, or there is no port to listen on for the redirect.
    #[cfg(feature = "tls")]
    pub fn authorization(mut self, options: AuthorizationOptions) -> Result<Self, ClientError> {
        self.session.authorize(options)?;
        Ok(self)
    }

    /// Sets a header of all later requests.
    ///
    /// # Errors
    /// [`ClientError::Url`] if the header is not valid.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), ClientError> {
        self.session.set_header(name, value)
    }

    /// Sends a challenged message again; see [`ChallengeAnswer::Later`].
    pub fn retry(&mut self, slot: usize) {
        self.session.web.retry(slot);
    }

    /// Gives up a challenged message; see [`ChallengeAnswer::Later`].
    pub fn give_up(&mut self, slot: usize) {
        self.session.web.give_up(slot);
    }

    /// Returns the `Mcp-Session-Id`, if the server gave one (up to 2025-11-25).
    pub fn session(&mut self) -> Option<&str> {
        self.session.web.remote.session()
    }

    /// Moves bytes between sockets and slots. Returns whether the engine has to look at them.
    fn carry(&mut self) -> bool {
        let mut any = false;
        while let Some(action) = self.session.web.remote.next_action() {
            any = true;
            match action {
                SocketAction::Close(slot) => self.sockets[slot] = Socket::default(),
                SocketAction::Connect(slot) => match self.dial() {
                    Ok(Dialed::NotYet(connecting)) => {
                        self.sockets[slot] = Socket { carrier: Carrier::Connecting(connecting), ready: false };
                    }
                    Ok(Dialed::Up(socket)) => self.is_up(slot, socket),
                    Err(error) => self.session.not_connected(slot, &error),
                },
            }
        }
        for slot in 0..CONNECTIONS {
            any |= self.carry_one(slot);
        }
        any
    }

    /// Begins to connect.
    fn dial(&mut self) -> io::Result<Dialed> {
        match (&mut self.session.place, self.stream.take()) {
            (_, Some(stream)) => Ok(Dialed::Up(NetSocket::Unix(stream))),
            (HttpPlace::Tcp(origin), None) => Connecting::begin(origin).map(Dialed::NotYet),
            (place, None) => place.connect().map(Dialed::Up),
        }
    }

    /// Moves the bytes of one slot. Returns whether the engine has to look: bytes were read, or a connection is there or over.
    fn carry_one(&mut self, slot: usize) -> bool {
        match std::mem::take(&mut self.sockets[slot].carrier) {
            Carrier::None => false,
            Carrier::Connecting(connecting) => {
                let ready = std::mem::take(&mut self.sockets[slot].ready);
                let address = connecting.address;
                match connecting.look(ready) {
                    Ok(Dialed::NotYet(connecting)) => {
                        self.sockets[slot].carrier = Carrier::Connecting(connecting);
                        return false;
                    }
                    Ok(Dialed::Up(socket)) => {
                        self.session.reached(address);
                        self.is_up(slot, socket);
                    }
                    Err(error) => self.session.not_connected(slot, &error),
                }
                true
            }
            Carrier::Up(mut stream) => {
                if !stream.is_up() {
                    match stream.handshake() {
                        Ok(false) => return self.keep(slot, stream, Ok(false)),
                        Ok(true) => self.session.web.remote.connected(slot),
                        Err(error) => {
                            self.session.not_connected(slot, &error);
                            return true;
                        }
                    }
                }
                let holds_more = !matches!(stream, HttpStream::Plain(_));
                let done = self.move_bytes(slot, &mut stream, holds_more);
                let done = done.and_then(|any| io::Write::flush(&mut stream).map(|()| any));
                self.keep(slot, stream, done)
            }
        }
    }

    fn is_up(&mut self, slot: usize, socket: NetSocket) {
        match HttpStream::new(socket, self.session.secure.as_ref()) {
            Ok(stream) => {
                if stream.is_up() {
                    self.session.web.remote.connected(slot);
                }
                self.sockets[slot] = Socket { carrier: Carrier::Up(stream), ready: false };
            }
            Err(error) => self.session.not_connected(slot, &error),
        }
    }

    /// Keeps a connection unless it is over.
    fn keep(&mut self, slot: usize, stream: HttpStream<NetSocket>, done: io::Result<bool>) -> bool {
        match done {
            Ok(any) => {
                self.sockets[slot].carrier = Carrier::Up(stream);
                any
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.session.web.remote.closed(slot);
                true
            }
            Err(error) => {
                self.session.failed(slot, &error);
                true
            }
        }
    }

    /// Writes the pending bytes and reads. Returns whether bytes were read, and `UnexpectedEof` at the end of the connection.
    fn move_bytes<C: io::Read + io::Write>(
        &mut self,
        slot: usize,
        socket: &mut C,
        holds_more: bool,
    ) -> io::Result<bool> {
        let remote = &mut self.session.web.remote;
        let mut any = false;
        // Reads before it writes: a server may have closed an idle connection. Then nothing was sent, and the request
        // may safely go over a new connection.
        self.sockets[slot].ready |= !remote.pending(slot).is_empty();
        while self.sockets[slot].ready && !remote.space(slot).is_empty() {
            match tcp::read(socket, remote.space(slot))? {
                Got::Nothing => self.sockets[slot].ready = false,
                Got::Bytes(n) => {
                    // A socket gives all that it has. What comes later, and its end, wakes the next wait. TLS may hold more.
                    let all = n < remote.space(slot).len();
                    self.sockets[slot].ready = !all || holds_more;
                    remote.filled(slot, n);
                    any = true;
                    // One read per turn: the handler gets these messages before the next ones are read.
                    break;
                }
                Got::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        while !remote.pending(slot).is_empty() {
            match tcp::write(socket, remote.pending(slot))? {
                0 => break,
                n => remote.sent(slot, n),
            }
        }
        Ok(any)
    }

    /// Ends the session, if there is one, and waits at most this time for the answer.
    fn end_session(&mut self, at_most: Duration) {
        let begun = Instant::now();
        self.session.end(self.time.saturating_add(at_most.as_millis() as Millis));
        loop {
            let now = self.time + millis_since(begun);
            if self.session.has_ended(now, false) {
                break;
            }
            let more = self.session.run(now, &mut Ignore) || self.carry();
            let due =
                self.session.next_deadline().map_or(at_most, |due| Duration::from_millis(due.saturating_sub(now)));
            if !more && self.wait(due).is_err() {
                break;
            }
        }
    }
}

/// Waits for sockets, at most this time. Returns which slots have something to read, or are connected. Allocates nothing.
fn poll_sockets(
    wanted: &[Option<(usize, BorrowedFd<'_>, PollFlags)>; CONNECTIONS],
    time: Duration,
) -> io::Result<[bool; CONNECTIONS]> {
    let mut ready = [false; CONNECTIONS];
    // Unused entries repeat the first, so the array needs no allocation.
    let first = wanted.iter().flatten().next().copied();
    let mut listed = first.map(|first| {
        let mut listed = wanted.iter().flatten();
        [(); CONNECTIONS].map(|()| {
            let (_, fd, flags) = listed.next().copied().unwrap_or(first);
            PollFd::from_borrowed_fd(fd, flags)
        })
    });
    let count = wanted.iter().flatten().count();
    let fds = listed.as_mut().map_or(&mut [][..], |fds| &mut fds[..count]);
    match rustix::event::poll(fds, Timespec::try_from(time).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    for (fd, &(slot, _, flags)) in fds.iter().zip(wanted.iter().flatten()) {
        let told = fd.revents();
        // Room to write is not recorded: each turn tries to write.
        ready[slot] = told.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
            || (flags == PollFlags::OUT && told.intersects(PollFlags::OUT));
    }
    Ok(ready)
}

/// Returns the events that a connection with TLS itself waits for.
fn tls_wants<S>(stream: &HttpStream<S>) -> PollFlags {
    let read = if stream.is_up() { PollFlags::empty() } else { PollFlags::IN };
    if stream.wants_write() { read | PollFlags::OUT } else { read }
}

impl<'m> Transport<'m> for Http<'m> {
    fn state(&self) -> &dyn TransportState<'m, Trace> {
        &self.session
    }

    fn state_mut(&mut self) -> &mut dyn TransportState<'m, Trace> {
        &mut self.session
    }

    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool> {
        self.time = now;
        // The messages that were read before come first.
        if !std::mem::take(&mut self.took) {
            self.carry();
        }
        self.took = self.session.run(now, handler);
        Ok(self.took || self.carry())
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let mut time = at_most;
        let (remote, sockets) = (&mut self.session.web.remote, &self.sockets);
        let mut wanted = [None::<(usize, BorrowedFd<'_>, PollFlags)>; CONNECTIONS];
        for ((slot, socket), place) in sockets.iter().enumerate().zip(&mut wanted) {
            let (fd, mut flags) = match &socket.carrier {
                Carrier::None => continue,
                Carrier::Connecting(connecting) => {
                    time = time.min(connecting.time_left());
                    *place = Some((slot, connecting.fd(), PollFlags::OUT));
                    continue;
                }
                Carrier::Up(stream) => (stream.socket().as_fd(), tls_wants(stream)),
            };
            if !remote.space(slot).is_empty() {
                flags |= PollFlags::IN;
            }
            if !remote.pending(slot).is_empty() {
                flags |= PollFlags::OUT;
            }
            *place = Some((slot, fd, flags)).filter(|_| !flags.is_empty());
        }
        let ready = poll_sockets(&wanted, time)?;
        for (socket, ready) in self.sockets.iter_mut().zip(ready) {
            socket.ready |= ready;
        }
        Ok(())
    }

    fn close(&mut self) -> Option<ChildExit> {
        self.end_session(GOODBYE);
        self.session.web.remote.shut_down();
        self.sockets = Default::default();
        self.session.close();
        None
    }
}

mcp_sansio::debug_fields!(impl for Http<'_> { session });

#[cfg(all(test, feature = "tls", target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::client::Client;
    use mcp_sansio::client::Request;
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::HttpOrigin;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    /// A name that stood for this machine may stand for another one when the client connects: then what that server says does not
    /// lead to this machine. The test connects to 0.0.0.0 instead: it counts as a private network, and leads to this machine.
    #[test]
    fn the_network_in_which_the_server_was_reached_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (mut socket, mut bytes) = (socket.unwrap(), [0; 4096]);
                let n = socket.read(&mut bytes).unwrap();
                let _ = tell.send(String::from_utf8_lossy(&bytes[..n]).lines().next().unwrap().to_owned());
                let challenge = format!("Bearer resource_metadata=\"http://{address}/metadata\"");
                let head = format!("HTTP/1.1 401 Who?\r\nWWW-Authenticate: {challenge}\r\nConnection: close\r\n");
                let _ = socket.write_all((head + "Content-Length: 0\r\n\r\n").as_bytes());
            }
        });
        let http = Http::new(&format!("http://{address}/mcp"), &PROFILE).unwrap();
        let mut http = http.authorization(AuthorizationOptions::new("test")).unwrap();
        http.session.place = HttpPlace::Tcp(HttpOrigin::new("0.0.0.0", address.port(), Duration::from_secs(20)));
        let mut client = Client::new(http, Ignore);
        client.connect_as(Revision::V2026_07_28).unwrap();
        let error = client.request(&Request::list_tools()).unwrap_err().to_string();
        assert!(error.contains("the URL leads into a private network"), "{error}");
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["POST /mcp HTTP/1.1"]);
    }
}

#[cfg(all(test, feature = "tls", target_os = "linux"))]
use super::rustls;
#[cfg(all(test, feature = "tls", target_os = "linux"))]
#[path = "../../../../tests/remote/secured.rs"]
mod secured;

#[cfg(all(test, feature = "tls", target_os = "linux"))]
mod secure {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::secured::{CERTIFICATE, secured, trusting};
    use super::*;

    /// A TLS connection reads during its handshake, and waits for room whenever it has bytes left to send.
    #[test]
    fn the_events_that_a_tls_connection_waits_for() {
        // Takes no bytes, so that neither does the TLS before it.
        let inner = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = secured(inner.local_addr().unwrap());
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let connector = mcp_sansio_host::TlsConnector::new("localhost", Some(trusting(Some(CERTIFICATE)))).unwrap();
        let mut tls = HttpStream::new(socket, Some(&connector)).unwrap();
        let begun = Instant::now();
        assert_eq!(tls_wants(&tls), PollFlags::IN | PollFlags::OUT);
        while !tls.handshake().unwrap() {
            assert_eq!(tls_wants(&tls), PollFlags::IN);
            assert!(begun.elapsed() < Duration::from_secs(20), "it is not up");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(tls_wants(&tls), PollFlags::empty());
        while !tls.wants_write() {
            tls.write_all(&[0; 8192]).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(20), "there is always room");
        }
        assert_eq!(tls_wants(&tls), PollFlags::OUT);
    }
}

/// A client over a stream whose other end the test has, so that nothing depends on another thread.
#[cfg(all(test, target_os = "linux"))]
mod stream {
    use std::cell::Cell;
    use std::io::{ErrorKind, Read, Write};

    use super::*;
    use crate::client::Client;
    use mcp_sansio::client::{ClientEvent, ClientHandle, Request, TransportError};
    use mcp_sansio::json::Raw;
    use mcp_sansio::revision::{Revision, Revisions};
    use mcp_sansio_http::client::HttpClientConfig;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
    static OLDER: ClientInfo<'static> =
        ClientInfo::new("test", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));

    /// The longest time for any step. None comes near it.
    const PATIENCE: Duration = Duration::from_secs(60);

    const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const NEWS: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

    fn open(info: &'static ClientInfo<'static>, options: HttpOptions) -> (Http<'static>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        for socket in [&ours, &theirs] {
            socket.set_nonblocking(true).unwrap();
        }
        (Http::of(options.open_stream(info, Authorization::default()).unwrap(), Some(ours)), theirs)
    }

    /// Returns a client of 2026-07-28 that has sent a request, and the server's end.
    fn asked() -> (Http<'static>, UnixStream) {
        let (mut http, mut server) = open(&PROFILE, HttpOptions::new());
        http.state_mut().handle().client.connect_as(Revision::V2026_07_28);
        http.state_mut().handle().send(&Request::call("any")).unwrap();
        run(&mut http, 0, &mut Ignore);
        assert!(heard(&mut server).starts_with("POST /mcp HTTP/1.1\r\n"));
        (http, server)
    }

    /// Lets the client do all that it can without waiting.
    fn run(http: &mut Http<'_>, now: Millis, handler: &mut dyn ClientHandler) {
        http.wait(Duration::ZERO).unwrap();
        let turns = (0..100).take_while(|_| http.run(now, handler).unwrap()).count();
        assert!(turns < 100, "a busy loop");
    }

    /// Returns the text that the client has sent.
    fn heard(server: &mut UnixStream) -> String {
        let mut bytes = Vec::new();
        assert_eq!(server.read_to_end(&mut bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
        String::from_utf8(bytes).unwrap()
    }

    fn says(server: &mut UnixStream, text: &str) {
        server.write_all(text.as_bytes()).unwrap();
    }

    /// Returns the bytes that wait for the client.
    fn unread(http: &Http<'_>) -> u64 {
        let Carrier::Up(stream) = &http.sockets[0].carrier else { panic!("it is not connected") };
        rustix::io::ioctl_fionread(stream.socket()).unwrap()
    }

    /// One read may bring several messages: the handler gets all of them before the next read.
    #[test]
    fn messages_are_handled_before_more_is_read() {
        let (mut http, mut server) = asked();
        let seen = Cell::new(0);
        let mut handler = |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| seen.set(seen.get() + 1);
        says(&mut server, &format!("{STREAM}{NEWS}{NEWS}"));
        http.wait(Duration::ZERO).unwrap();
        assert!(http.run(0, &mut handler).unwrap());
        assert_eq!(seen.get(), 1);
        says(&mut server, NEWS);
        http.wait(Duration::ZERO).unwrap();
        http.run(0, &mut handler).unwrap();
        assert_eq!((seen.get(), unread(&http)), (2, NEWS.len() as u64));
        for _ in 0..2 {
            run(&mut http, 0, &mut handler);
        }
        assert_eq!((seen.get(), unread(&http)), (3, 0));
    }

    /// A socket that has bytes, and takes all that are written.
    struct Socketlike(Vec<u8>);

    impl Read for Socketlike {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(space.len());
            space[..n].copy_from_slice(&self.0[..n]);
            self.0.drain(..n);
            if n == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(n) }
        }
    }

    impl Write for Socketlike {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A read that leaves room has taken all that there was, except over TLS. There is one read in a turn.
    #[test]
    fn a_socket_is_not_read_again_for_nothing() {
        for holds_more in [false, true] {
            for fills in [false, true] {
                let (mut http, _server) = asked();
                let room = http.session.web.remote.space(0).len();
                let head = b"HTTP/1.1 200 OK\r\nX: ";
                let mut socket = Socketlike(head.to_vec());
                socket.0.resize(if fills { room + 1 } else { room - 1 }, b'x');
                http.sockets[0].ready = true;
                assert!(http.move_bytes(0, &mut socket, holds_more).unwrap());
                assert_eq!((http.sockets[0].ready, socket.0.len()), (fills || holds_more, usize::from(fills)));
            }
        }
        let (mut http, _server) = asked();
        http.sockets[0].ready = true;
        assert!(!http.move_bytes(0, &mut Socketlike(Vec::new()), false).unwrap());
        assert!(!http.sockets[0].ready);
    }

    /// A large request goes out as the server takes it. Then nothing is waited for but the answer.
    #[test]
    fn a_wait_ends_when_there_is_room_for_more() {
        let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(2 << 20));
        let (mut http, mut server) = open(&PROFILE, HttpOptions::new());
        http.state_mut().handle().client.connect_as(Revision::V2026_07_28);
        http.state_mut()
            .handle()
            .send(&Request::call("any").arguments(&Raw::parse(large.as_bytes()).unwrap()))
            .unwrap();
        let (begun, mut taken, mut waits) = (Instant::now(), 0, 0);
        run(&mut http, 0, &mut Ignore);
        while !http.session.web.remote.pending(0).is_empty() {
            taken += heard(&mut server).len();
            http.wait(PATIENCE).unwrap();
            run(&mut http, 0, &mut Ignore);
            waits += 1;
        }
        taken += heard(&mut server).len();
        assert!(waits > 0 && taken > 2 << 20 && begun.elapsed() < PATIENCE / 2, "{waits} {taken}");
        let (begun, time) = (Instant::now(), Duration::from_millis(20));
        http.wait(time).unwrap();
        assert!(begun.elapsed() >= time);
    }

    /// A body without a length ends with its connection, if that ends in order.
    #[test]
    fn a_reset_is_no_end_of_an_answer() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}"#;
        for is_reset in [false, true] {
            let (mut http, mut server) = open(&PROFILE, HttpOptions::new());
            http.state_mut().handle().client.connect_as(Revision::V2026_07_28);
            let mut client = Client::new(http, Ignore);
            let token = client.send(&Request::call("any")).unwrap();
            if !is_reset {
                heard(&mut server);
            }
            says(&mut server, &format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{answer}"));
            // The system resets a connection with unread bytes.
            drop(server);
            match client.wait(token) {
                Ok(answer) => assert!(!is_reset, "{answer:?}"),
                Err(error) => {
                    assert!(is_reset && error.lost() == Some(TransportError::Broken), "{error}");
                    assert!(error.to_string().to_lowercase().contains("reset"), "{error}");
                }
            }
        }
    }

    /// Returns a client with a session, and the server's end.
    fn session(options: HttpOptions, now: Millis) -> (Http<'static>, UnixStream) {
        let (mut http, mut server) = open(&OLDER, options);
        http.state_mut().handle().client.connect();
        run(&mut http, now, &mut Ignore);
        assert!(heard(&mut server).contains("\"initialize\""));
        let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}}"#;
        let head = "HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Type: application/json\r\nContent-Length:";
        says(&mut server, &format!("{head} {}\r\n\r\n{body}", body.len()));
        run(&mut http, now, &mut Ignore);
        assert!(heard(&mut server).contains("notifications/initialized"));
        says(&mut server, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
        run(&mut http, now, &mut Ignore);
        assert_eq!(http.session(), Some("s"));
        (http, server)
    }

    /// A session ends when the server has answered its `DELETE`, and not later.
    #[test]
    fn the_end_of_a_session_is_answered() {
        let (mut http, mut server) = session(HttpOptions::new(), 0);
        server.set_nonblocking(false).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut text, mut bytes) = (String::new(), [0; 1024]);
            while !text.contains("\r\n\r\n") {
                let n = server.read(&mut bytes).unwrap();
                text.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
            }
            says(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            (text, server)
        });
        let begun = Instant::now();
        http.end_session(PATIENCE);
        assert!(begun.elapsed() < PATIENCE / 2);
        let (text, _server) = thread.join().unwrap();
        assert!(text.starts_with("DELETE /mcp "), "{text}");
        // There is no session any more.
        http.end_session(PATIENCE);
        assert!(begun.elapsed() < PATIENCE / 2);
    }

    /// A server that does not answer holds up the close until the time for it, or for a reply, is over.
    #[test]
    fn the_end_of_a_session_is_not_waited_for_without_end() {
        let short = Duration::from_millis(20);
        for (reply_time, at_most) in [(600_000, short), (20, PATIENCE)] {
            let options = HttpOptions::new().config(HttpClientConfig::DEFAULT.reply_time(reply_time));
            let (mut http, mut server) = session(options, 1_000_000);
            let begun = Instant::now();
            http.end_session(at_most);
            assert!(begun.elapsed() >= short && begun.elapsed() < PATIENCE / 2);
            assert!(heard(&mut server).starts_with("DELETE /mcp "));
        }
    }

    /// A request under way is lost, and the server sees the end of the connection.
    #[test]
    fn closing_ends_the_connection_and_its_requests() {
        let (mut http, mut server) = asked();
        http.close();
        assert_eq!(server.read(&mut [0; 8]).unwrap(), 0);
        let mut lost = Vec::new();
        run(&mut http, 0, &mut |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Done { outcome: Err(failure), .. } = event {
                lost.push(format!("{failure:?}"));
            }
        });
        assert!(lost.len() == 1 && lost[0].contains("Closed"), "{lost:?}");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod connections {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::client::Client;
    use mcp_sansio::client::{ClientEvent, ClientHandle, Request, TransportError};
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::HttpOrigin;

    /// Of several addresses the one that works is tried first, until none works.
    #[test]
    fn the_address_that_works_is_kept() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let known = HttpOrigin::new("localhost", 1, Duration::from_secs(1)).addresses().unwrap().0;
        let (first, last) = (known[0].ip(), known[known.len() - 1].ip());
        // A machine may have no IPv6.
        let Ok(listener) = TcpListener::bind((last, 0)) else { return };
        let url = format!("http://localhost:{}/mcp", listener.local_addr().unwrap().port());
        let mut client = Client::new(Http::new(&url, &PROFILE).unwrap(), Ignore);
        client.connect_as(Revision::V2026_07_28).unwrap();
        let tried_first = |client: &mut Client<'static, Http<'static>, Ignore>| {
            let HttpPlace::Tcp(origin) = &mut client.transport.session.place else { panic!("it is on the network") };
            origin.addresses().unwrap().0[0].ip()
        };
        let token = client.send(&Request::list_tools()).unwrap();
        let begun = Instant::now();
        while tried_first(&mut client) != last {
            assert!(begun.elapsed() < Duration::from_secs(20), "{} is tried first", tried_first(&mut client));
            client.turn(Duration::from_millis(5)).unwrap();
        }
        drop(listener);
        assert!(client.wait(token).is_err());
        let error = client.request(&Request::list_tools()).unwrap_err();
        assert_eq!(error.lost(), Some(TransportError::Unreachable), "{error}");
        assert_eq!(tried_first(&mut client), first);
    }

    /// There is nothing to wait for when a connection cannot be made at all.
    #[test]
    fn a_failure_to_connect_is_reported_without_a_wait() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let mut http = Http::new("unix:/nowhere/to/be/found", &PROFILE).unwrap();
        http.state_mut().handle().client.connect();
        let mut seen = Vec::new();
        let mut handler = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| seen.push(format!("{event:?}"));
        let turns = (0..100).take_while(|_| http.run(0, &mut handler).unwrap()).count();
        assert!(turns < 100 && seen.len() == 1 && seen[0].starts_with("Unconnected"), "{seen:?}");
        let why = http.state().explain(TransportError::Unreachable);
        assert!(why.contains("/nowhere/to/be/found"), "{why}");
    }

    /// An address that does not answer has a limited time, whatever else there is to wait for.
    #[test]
    fn connecting_takes_a_limited_time() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let full = UnixStream::pair().unwrap();
        full.0.set_nonblocking(true).unwrap();
        while (&full.0).write(&[0; 4096]).is_ok() {}
        let mut http = Http::new("http://127.0.0.1:9/mcp", &PROFILE).unwrap();
        let (begun, each) = (Instant::now(), Duration::from_millis(20));
        http.sockets[0].carrier = Carrier::Connecting(Connecting::stuck(NetSocket::Unix(full.0), each));
        http.wait(Duration::from_secs(60)).unwrap();
        assert!(begun.elapsed() >= each && begun.elapsed() < Duration::from_secs(30));
        assert!(http.carry_one(0) && matches!(http.sockets[0].carrier, Carrier::None));
        assert!(http.session.trouble.contains("127.0.0.1:9: "), "{}", http.session.trouble);
    }

    /// The server has closed a connection that was not in use: the next request goes over another one.
    #[test]
    fn a_connection_that_was_closed_while_idle_is_replaced() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let path = std::env::temp_dir().join(format!("mcp-idle-blocking-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let (closed, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for (socket, id) in listener.incoming().zip(1..) {
                let (mut socket, mut bytes) = (socket.unwrap(), [0; 4096]);
                let _ = socket.read(&mut bytes).unwrap();
                let body =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"resultType":"complete"}}}}"#);
                let head = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
                socket.write_all(format!("HTTP/1.1 200 OK\r\n{head}{body}").as_bytes()).unwrap();
                drop(socket);
                let _ = closed.send(());
            }
        });
        let mut client = Client::new(Http::new(&format!("unix:{}", path.display()), &PROFILE).unwrap(), Ignore);
        client.connect_as(Revision::V2026_07_28).unwrap();
        for _ in 0..3 {
            client.request(&Request::call("any")).unwrap();
            told.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        std::fs::remove_file(path).unwrap();
    }

    /// Room to write counts only for a socket that is connecting: each turn tries to write anyway.
    #[test]
    fn sockets_are_ready_to_read_or_connected() {
        let [heard, idle, closed, full, connecting] = [(); 5].map(|()| UnixStream::pair().unwrap());
        (&heard.1).write_all(b"x").unwrap();
        drop(closed.1);
        full.0.set_nonblocking(true).unwrap();
        while (&full.0).write(&[0; 4096]).is_ok() {}
        let (read, write) = (PollFlags::IN, PollFlags::OUT);
        let mut wanted = [None; CONNECTIONS];
        for (slot, socket, flags, is_ready) in [
            (0, &heard.0, read, true),
            (1, &heard.0, write | read, true),
            (2, &idle.0, read, false),
            (2, &idle.0, write | read, false),
            (2, &closed.0, read, true),
            (2, &closed.0, PollFlags::empty(), true),
            (3, &full.0, write, false),
            (3, &connecting.0, write, true),
        ] {
            wanted[slot] = Some((slot, socket.as_fd(), flags));
            let ready = poll_sockets(&wanted, Duration::ZERO).unwrap();
            assert_eq!(ready[slot], is_ready, "{slot} {flags:?}");
            assert_eq!(ready[4..], [false; CONNECTIONS - 4]);
        }
        assert_eq!(poll_sockets(&wanted, Duration::from_secs(60)).unwrap()[..4], [true, true, true, true]);
        (&heard.0).read_exact(&mut [0]).unwrap();
        assert_eq!(poll_sockets(&wanted, Duration::ZERO).unwrap()[..4], [false, false, true, true]);
        let begun = Instant::now();
        let time = Duration::from_millis(20);
        assert_eq!(poll_sockets(&[None; CONNECTIONS], time).unwrap(), [false; CONNECTIONS]);
        assert!(begun.elapsed() >= time);
    }
}
