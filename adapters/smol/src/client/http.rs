//! A server over HTTP.

use std::io;
use std::task::{Context, Poll, ready};

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::client::{ClientHandler, ClientInfo};
use mcp_sansio::server::Millis;
#[cfg(all(feature = "tls", unix))]
use mcp_sansio_host::AuthorizationOptions;
use mcp_sansio_host::{CONNECTIONS, HttpOptions, HttpSession, TransportState};
use mcp_sansio_http::client::{HttpTransport, SocketAction};

use super::alarm::Alarm;
use super::authorize::{Asking, AuthorizationDemand, AuthorizationHeaders};
use super::dial::{Dialing, dial};
use super::lines::Got;
use super::{ChildExit, ClientError, Trace, Transport};
use crate::socket::{ByteStream, Socket};

/// The time for the `DELETE` that ends the session when the client is closed, and for tokens that are under way.
const GOODBYE: Millis = 2_000;

/// A slot for one connection.
#[derive(Default)]
enum Carrier {
    #[default]
    None,
    Dialing(Dialing),
    Up(Link),
}

/// An open connection.
struct Link {
    socket: Socket,
    alarm: Alarm,
    /// The last read has taken all that there was.
    drained: bool,
}

impl Link {
    fn new(socket: Socket) -> Self {
        Link { socket, alarm: Alarm::new(), drained: false }
    }
}

/// A server over HTTP: [Streamable
/// HTTP](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http) of all revisions,
/// and [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse) of
/// 2024-11-05.
///
/// ```no_run
/// use mcp_sansio::client::{ClientInfo, Request};
/// use mcp_sansio_smol::client::{Client, Http, Ignore};
///
/// static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0");
///
/// # fn main() -> Result<(), mcp_sansio_smol::client::ClientError> {
/// smol::block_on(async {
///     let (client, driver) = Client::new(Http::new("http://localhost:8931/mcp", &PROFILE)?, Ignore);
///     smol::spawn(driver).detach();
///     println!("{:?}", client.connect().await?);
///     println!("{:?}", client.request(Request::list_tools()).await?);
///     client.close().await;
///     Ok(())
/// })
/// # }
/// ```
pub struct Http {
    session: Session,
    sockets: [Carrier; CONNECTIONS],
    /// The stream that was not used yet, if this is the place.
    stream: Option<ByteStream>,
    /// The end of the session has begun.
    ending: bool,
}

type Session = HttpSession<'static, Asking, Trace>;

impl Http {
    /// Makes a client's end for the server at `url`. It connects with the first request. `unix:/run/mcp.sock` is a server at a
    /// Unix socket, see [`HttpOptions::open`].
    ///
    /// # Errors
    /// [`ClientError::Url`] if the URL does not begin with `http`, `unix:` (on Unix) or `https` (with the feature `tls`).
    pub fn new(url: &str, info: &'static ClientInfo<'static>) -> Result<Self, ClientError> {
        Http::with(url, info, HttpOptions::new())
    }

    /// Makes a client's end for the server at `url`, with options. It connects with the first request.
    ///
    /// # Errors
    /// As [`new`](Http::new); also [`ClientError::Url`] if a header of the options is not valid.
    pub fn with(url: &str, info: &'static ClientInfo<'static>, options: HttpOptions) -> Result<Self, ClientError> {
        Ok(Http::of(options.open(url, info, Asking::default())?, None))
    }

    /// Makes a client's end for a server that speaks HTTP over a stream of bytes: the pipes of a process, a serial line.
    /// `writer` is dropped when the client is closed.
    ///
    /// Requests go to `http://localhost/mcp`, one after the other: each waits until the one before it is answered. An event
    /// stream takes the connection until its end. So a session has no stream for the server's own messages; from
    /// 2026-07-28 on use a listen only if nothing else is to be sent. Up to 2025-11-25 the server's questions within a
    /// call cannot be answered. A request that is cancelled or too late closes the connection, and with it the stream:
    /// make a new client then.
    ///
    /// ```no_run
    /// use mcp_sansio::client::ClientInfo;
    /// use mcp_sansio_smol::client::{Client, Http, HttpOptions, Ignore};
    /// use smol::process::{Command, Stdio};
    ///
    /// static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0");
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Command::new("http_stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    /// let (Some(output), Some(input)) = (server.stdout.take(), server.stdin.take()) else { return Ok(()) };
    /// let (client, driver) = Client::new(Http::over(output, input, &PROFILE, HttpOptions::new())?, Ignore);
    /// smol::spawn(driver).detach();
    /// println!("{:?}", client.connect().await?);
    /// client.close().await; // closes its stdin
    /// server.status().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ClientError::Url`] if a header of the options is not valid.
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        info: &'static ClientInfo<'static>,
        options: HttpOptions,
    ) -> Result<Self, ClientError> {
        let session = options.open_stream(info, Asking::default())?;
        Ok(Http::of(session, Some(ByteStream::new(reader, writer))))
    }

    fn of(session: Session, stream: Option<ByteStream>) -> Self {
        Http { session, sockets: Default::default(), stream, ending: false }
    }

    /// Asks `authorize` for credentials when the server answers 401 or 403. With `None` it gives up: the requests then end with
    /// [`TransportError::Unauthorized`](mcp_sansio::client::TransportError::Unauthorized). Other challenged messages wait for the same
    /// credentials. The times of the waiting requests stop meanwhile, so the future must end by itself. The driver polls it: it must
    /// neither block nor use this client.
    ///
    /// ```
    /// use mcp_sansio::client::ClientInfo;
    /// use mcp_sansio_smol::client::{AuthorizationDemand, Http};
    ///
    /// static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0");
    ///
    /// let server = Http::new("http://localhost:8931/mcp", &PROFILE)?.authorize(async |demand: AuthorizationDemand| {
    ///     // Get a new token here. Other requests go on meanwhile.
    ///     (demand.tries == 0).then(|| vec![("Authorization".to_owned(), "Bearer fresh".to_owned())])
    /// });
    /// # Ok::<(), mcp_sansio_smol::client::ClientError>(())
    /// ```
    #[must_use]
    pub fn authorize<R>(mut self, authorize: impl FnMut(AuthorizationDemand) -> R + Send + 'static) -> Self
    where
        R: Future<Output = Option<AuthorizationHeaders>> + Send + 'static,
    {
        self.session.hooks = Asking::of(authorize);
        self
    }

    /// Turns on authorization
    /// ([OAuth](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)): when the server answers
    /// 401 or 403, the client gets a token, by a person who visits a URL or as the
    /// [configuration](AuthorizationOptions::config) says, and sends the message again. A thread of its own waits for
    /// the authorization server and the person; other requests go on.
    ///
    /// ```no_run
    /// use mcp_sansio::client::ClientInfo;
    /// use mcp_sansio_smol::client::{AuthorizationOptions, Http, TokenFile};
    ///
    /// static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0");
    ///
    /// let options = AuthorizationOptions::new("demo")
    ///     .visit(|url| println!("Log in at {url}"))
    ///     .tokens(TokenFile::new("tokens.json"));
    /// let server = Http::new("http://localhost:8931/mcp", &PROFILE)?.authorization(options)?;
    /// # Ok::<(), mcp_sansio_smol::client::ClientError>(())
    /// ```
    ///
    /// # Errors
    /// [`ClientError::Url`] if tokens must not be sent to the server's URL, or the server is not on the network (a Unix
    /// socket, a stream); [`ClientError::Io`] if the tokens cannot be
    /// read, or there is no port to listen on for the redirect.
    #[cfg(all(feature = "tls", unix))]
    pub fn authorization(mut self, options: AuthorizationOptions) -> Result<Self, ClientError> {
        self.session.authorize(options)?;
        Ok(self)
    }

    /// Continues with challenged messages when the credentials are there.
    fn authorized(&mut self, cx: &mut Context<'_>) {
        let Poll::Ready((credentials, slots)) = self.session.hooks.poll(cx) else { return };
        let remote = &mut self.session.web.remote;
        let set = |mut credentials: super::AuthorizationHeaders| {
            credentials.drain(..).all(|(name, value)| remote.set_header(&name, &value).is_ok())
        };
        let authorized = credentials.is_some_and(set);
        for slot in slots {
            if authorized {
                self.session.web.retry(slot);
            } else {
                self.session.web.give_up(slot);
            }
        }
    }

    /// Moves bytes between sockets and slots. Returns whether there is news for the engine.
    fn carry(&mut self, cx: &mut Context<'_>) -> bool {
        while let Some(action) = self.session.web.remote.next_action() {
            match action {
                SocketAction::Close(slot) => self.sockets[slot] = Carrier::None,
                SocketAction::Connect(slot) => match self.stream.take() {
                    Some(stream) => {
                        self.sockets[slot] = Carrier::Up(Link::new(Socket::Stream(stream)));
                        self.session.web.remote.connected(slot);
                    }
                    None => {
                        self.sockets[slot] =
                            Carrier::Dialing(Box::pin(dial(self.session.place.clone(), self.session.secure.clone())))
                    }
                },
            }
        }
        let mut news = false;
        for slot in 0..CONNECTIONS {
            news |= self.carry_one(slot, cx);
        }
        news
    }

    /// Moves the bytes of one slot. Returns whether there is news for the engine: bytes, or another state of the connection.
    fn carry_one(&mut self, slot: usize, cx: &mut Context<'_>) -> bool {
        match &mut self.sockets[slot] {
            Carrier::None => false,
            Carrier::Dialing(dialing) => match dialing.as_mut().poll(cx) {
                Poll::Ready(Ok(dialed)) => {
                    self.session.place = dialed.http;
                    if let Some(address) = dialed.address {
                        self.session.reached(address);
                    }
                    self.sockets[slot] = Carrier::Up(Link::new(dialed.socket));
                    self.session.web.remote.connected(slot);
                    true
                }
                Poll::Ready(Err(error)) => {
                    self.sockets[slot] = Carrier::None;
                    self.session.not_connected(slot, &error);
                    true
                }
                Poll::Pending => false,
            },
            Carrier::Up(link) => match link.move_bytes(&mut self.session.web.remote, slot, cx) {
                Ok(Got::End) => {
                    self.sockets[slot] = Carrier::None;
                    self.session.web.remote.closed(slot);
                    true
                }
                Ok(got) => got == Got::Bytes,
                Err(error) => {
                    self.sockets[slot] = Carrier::None;
                    self.session.failed(slot, &error);
                    true
                }
            },
        }
    }
}

impl Link {
    /// Reads once, and writes only if there was nothing to read. The server may have closed an idle connection: then
    /// nothing was sent, and the request may safely go over a new one. Or it has answered early and closed.
    fn move_bytes(
        &mut self,
        remote: &mut HttpTransport<'static>,
        slot: usize,
        cx: &mut Context<'_>,
    ) -> io::Result<Got> {
        let Link { socket, alarm, drained } = self;
        if !remote.pending(slot).is_empty() {
            alarm.ring();
            *drained = false;
        }
        let space = remote.space(slot);
        if !space.is_empty() {
            let read = alarm.poll(cx, |cx| {
                if std::mem::take(drained) {
                    ready!(socket.poll_more(cx));
                }
                socket.poll_read(cx, space)
            });
            if let Poll::Ready(read) = read {
                let n = read?;
                if n == 0 {
                    return Ok(Got::End);
                }
                *drained = n < space.len();
                remote.filled(slot, n);
                return Ok(Got::Bytes);
            }
        }
        while !remote.pending(slot).is_empty() {
            match socket.poll_write(cx, remote.pending(slot)) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => remote.sent(slot, written?),
                Poll::Pending => break,
            }
        }
        match socket.poll_flush(cx) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(Got::Nothing),
        }
    }
}

impl Transport for Http {
    fn state(&self) -> &dyn TransportState<'static, Trace> {
        &self.session
    }

    fn state_mut(&mut self) -> &mut dyn TransportState<'static, Trace> {
        &mut self.session
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool {
        self.authorized(cx);
        let ran = self.session.run(now, handler);
        self.carry(cx) || ran
    }

    fn begin_close(&mut self, _: Millis) {
        self.session.close();
    }

    fn poll_close(&mut self, now: Millis, cx: &mut Context<'_>) -> Poll<Option<ChildExit>> {
        if !std::mem::replace(&mut self.ending, true) {
            self.session.end(now.saturating_add(GOODBYE));
            cx.waker().wake_by_ref();
        }
        if !self.session.has_ended(now, self.session.hooks.under_way.is_some()) {
            return Poll::Pending;
        }
        self.sockets = Default::default();
        Poll::Ready(None)
    }
}

mcp_sansio::debug_fields!(impl for Http { session });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Ignore;
    use crate::socket::AsyncSocket;
    use async_io::Timer;
    use futures_lite::FutureExt;
    use mcp_sansio::client::{ClientEvent, ClientHandle, Request, TransportError};
    use mcp_sansio::revision::{Revision, Revisions};
    use mcp_sansio_host::{HttpStream, NetSocket};
    use std::future::poll_fn;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};
    use std::time::Duration;

    static PROFILE: ClientInfo<'static> =
        ClientInfo::new("test", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));

    /// The bytes between a client and a server that the test plays.
    #[derive(Default)]
    struct Bytes {
        input: Vec<u8>,
        ended: bool,
        output: String,
        reader: Option<Waker>,
        /// Bytes are not taken: 0 are.
        is_shut: bool,
        flush_fails: bool,
        reads: usize,
    }

    /// Notes that it was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Lets a connection fail.
    type Fail = fn(&mut Bytes);

    #[derive(Clone, Default)]
    struct Wire(Arc<Mutex<Bytes>>);

    impl AsyncRead for Wire {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
            let mut bytes = self.0.lock().unwrap();
            bytes.reads += 1;
            let n = bytes.input.len().min(space.len());
            if n == 0 && !bytes.ended {
                bytes.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            space[..n].copy_from_slice(&bytes.input[..n]);
            bytes.input.drain(..n);
            Poll::Ready(Ok(n))
        }
    }

    impl AsyncWrite for Wire {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, text: &[u8]) -> Poll<io::Result<usize>> {
            let mut bytes = self.0.lock().unwrap();
            if bytes.is_shut {
                return Poll::Ready(Ok(0));
            }
            bytes.output.push_str(std::str::from_utf8(text).unwrap());
            Poll::Ready(Ok(text.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            match self.0.lock().unwrap().flush_fails {
                true => Poll::Ready(Err(io::Error::other("a full disk"))),
                false => Poll::Ready(Ok(())),
            }
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Wire {
        fn open(&self) -> Http {
            Http::over(self.clone(), self.clone(), &PROFILE, HttpOptions::new()).unwrap()
        }

        /// Returns a client of a server on the network, to which this is the first connection.
        #[cfg(all(feature = "tls", unix))]
        fn authorizing(&self, url: &str, options: AuthorizationOptions) -> Http {
            let mut http = Http::new(url, &PROFILE).unwrap().authorization(options).unwrap();
            http.stream = Some(ByteStream::new(self.clone(), self.clone()));
            http
        }

        /// Returns a client with a session.
        fn connected(&self) -> Http {
            let mut http = self.open();
            http.state_mut().handle().client.connect();
            Wire::run(&mut http, 0);
            assert!(self.was_asked("\"initialize\""));
            let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}}"#;
            let head = "HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Type: application/json\r\nContent-Length:";
            self.says(&mut http, 0, &format!("{head} {}\r\n\r\n{body}", body.len()));
            assert!(self.was_asked("notifications/initialized"));
            self.says(&mut http, 0, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
            assert!(http.state_mut().handle().client.is_connected());
            http
        }

        /// Lets the client do all that it can do at `now`.
        fn run(http: &mut Http, now: Millis) {
            let turns = (0..100).take_while(|_| http.poll_run(now, &mut cx(), &mut Ignore)).count();
            assert!(turns < 100, "a busy loop");
        }

        fn says(&self, http: &mut Http, now: Millis, answer: &str) {
            let reader = {
                let mut bytes = self.0.lock().unwrap();
                bytes.input.extend_from_slice(answer.as_bytes());
                bytes.reader.take()
            };
            reader.into_iter().for_each(Waker::wake);
            Wire::run(http, now);
        }

        fn was_asked(&self, what: &str) -> bool {
            self.0.lock().unwrap().output.contains(what)
        }
    }

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    fn is_idle(http: &Http) -> bool {
        http.sockets.iter().all(|carrier| matches!(carrier, Carrier::None))
    }

    /// The client waits for the answer to its `DELETE`, and not longer than its time.
    #[test]
    fn closing_waits_for_the_end_of_the_session_for_a_limited_time() {
        for is_answered in [true, false] {
            let wire = Wire::default();
            let mut http = wire.connected();
            assert_ne!(http.state().explain(TransportError::Closed), "it was closed");
            http.begin_close(1_000);
            assert_eq!(http.state().explain(TransportError::Closed), "it was closed");
            assert_ne!(http.state().explain(TransportError::TimedOut), "it was closed");
            let count = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&count));
            assert!(http.poll_close(1_000, &mut Context::from_waker(&waker)).is_pending());
            assert!(count.0.load(Ordering::SeqCst), "the driver has to write it");
            Wire::run(&mut http, 1_000);
            assert!(wire.was_asked("DELETE /mcp"));
            assert!(http.poll_close(1_000, &mut cx()).is_pending());
            let until = 1_000 + GOODBYE;
            assert!(http.state().next_deadline().is_some_and(|due| due <= until));
            assert!(!is_idle(&http));
            if is_answered {
                wire.says(&mut http, 1_100, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                assert!(http.poll_close(1_100, &mut cx()).is_ready());
            } else {
                assert!(http.poll_close(until - 1, &mut cx()).is_pending());
                assert!(http.poll_close(until, &mut cx()).is_ready());
            }
            assert!(is_idle(&http));
        }
    }

    #[test]
    fn without_a_session_closing_takes_no_time() {
        let mut http = Wire::default().open();
        http.begin_close(0);
        assert!(http.poll_close(0, &mut cx()).is_ready());
    }

    /// The slot of a connection that fails is free, and the error is kept for the request.
    #[test]
    fn a_connection_that_fails_is_given_up() {
        let fails: [(Fail, &str); 3] = [
            (|bytes| bytes.is_shut = true, "write zero"),
            (|bytes| bytes.flush_fails = true, "a full disk"),
            (|bytes| bytes.ended = true, ""),
        ];
        for (fail, trouble) in fails {
            let wire = Wire::default();
            let mut http = wire.open();
            http.state_mut().handle().client.connect();
            fail(&mut wire.0.lock().unwrap());
            Wire::run(&mut http, 0);
            assert!(!http.state_mut().handle().client.is_opening(), "{trouble}");
            assert!(is_idle(&http));
            assert_eq!(http.session.trouble.is_empty(), trouble.is_empty(), "{}", http.session.trouble);
        }
    }

    /// A connection at rest is not read; one that the server has closed meanwhile gets no request.
    #[test]
    fn a_connection_at_rest_is_read_before_it_is_written() {
        let wire = Wire::default();
        let mut http = wire.connected();
        let reads = wire.0.lock().unwrap().reads;
        for _ in 0..3 {
            Wire::run(&mut http, 0);
        }
        assert_eq!(wire.0.lock().unwrap().reads, reads, "nothing has woken the driver");
        // The news of the end has not come yet.
        wire.0.lock().unwrap().ended = true;
        http.state_mut().handle().send(&Request::call("any")).unwrap();
        Wire::run(&mut http, 0);
        assert!(!wire.was_asked("tools/call"));
    }

    /// Requests that wait end at once, not when the server has ended the session.
    #[test]
    fn requests_in_flight_are_lost_when_the_client_is_closed() {
        let wire = Wire::default();
        let mut http = wire.connected();
        let token = http.state_mut().handle().send(&Request::call("any")).unwrap();
        Wire::run(&mut http, 0);
        assert!(wire.was_asked("tools/call"));
        let mut lost = Vec::new();
        let mut note = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Done { token, outcome: Err(why), .. } = event {
                lost.push((token, why.to_string()));
            }
        };
        http.begin_close(0);
        while http.poll_run(0, &mut cx(), &mut note) {}
        assert_eq!(lost, [(token, TransportError::Closed.to_string())]);
    }

    /// Returns a client whose first request is about to be written to a connection over TCP, its slot, and its server.
    fn over_tcp(drained: bool) -> (Http, usize, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut http = Wire::default().open();
        http.state_mut().handle().client.connect();
        while http.session.web.run(0, &mut Ignore, &mut ()) {}
        let Some(SocketAction::Connect(slot)) = http.session.web.remote.next_action() else {
            panic!("no connection is wanted")
        };
        near.set_nonblocking(true).unwrap();
        let near = AsyncSocket::new(NetSocket::Tcp(near)).unwrap();
        let socket = Socket::Net(HttpStream::Plain(near));
        http.sockets[slot] = Carrier::Up(Link { drained, ..Link::new(socket) });
        http.session.web.remote.connected(slot);
        (http, slot, far)
    }

    /// Waits until there is something to read, without a word to the reactor.
    fn wait_for_news(http: &Http, slot: usize) {
        let Carrier::Up(link) = &http.sockets[slot] else { panic!("it is closed") };
        let Some(NetSocket::Tcp(socket)) = link.socket.net() else { panic!("it is no socket of TCP") };
        while socket.peek(&mut [0]).is_err() {
            std::thread::yield_now();
        }
    }

    /// Also right after a read: the server may have closed it since.
    #[test]
    fn a_connection_that_has_ended_gets_no_request() {
        for drained in [false, true] {
            let (mut http, slot, mut far) = over_tcp(drained);
            far.shutdown(std::net::Shutdown::Write).unwrap();
            wait_for_news(&http, slot);
            assert!(http.carry_one(slot, &mut cx()), "its end is news");
            assert!(is_idle(&http));
            let mut got = String::new();
            far.read_to_string(&mut got).unwrap();
            assert_eq!(got, "");
        }
    }

    #[test]
    fn a_read_that_took_all_is_followed_by_a_wait() {
        let (mut http, slot, mut far) = over_tcp(false);
        let is_drained = |http: &Http| matches!(&http.sockets[slot], Carrier::Up(link) if link.drained);
        assert!(!http.carry_one(slot, &mut cx()), "a request that was written is no news");
        far.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        wait_for_news(&http, slot);
        if let Carrier::Up(link) = &http.sockets[slot] {
            link.alarm.ring();
        }
        assert!(http.carry_one(slot, &mut cx()));
        assert!(is_drained(&http));
        assert!(!http.carry_one(slot, &mut cx()));
        assert!(!is_drained(&http), "it waits already");
    }

    /// Runs a client beside the reactor. A test that hangs fails.
    fn run_until(http: &mut Http, mut is_done: impl FnMut(&mut Http) -> bool) {
        let done = poll_fn(|cx| {
            while http.poll_run(0, cx, &mut Ignore) {}
            if is_done(http) { Poll::Ready(true) } else { Poll::Pending }
        });
        let late = async {
            Timer::after(Duration::from_secs(20)).await;
            false
        };
        assert!(async_io::block_on(done.or(late)), "it hangs");
    }

    /// The name of the server is resolved once, and again when it cannot be reached.
    #[test]
    fn addresses_are_kept_while_they_work() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut http = Http::new(&format!("http://{address}/mcp"), &PROFILE).unwrap();
        let knows = |http: &Http| format!("{http:?}").contains(&format!("[{address}]"));
        assert!(!knows(&http));
        http.state_mut().handle().client.connect();
        run_until(&mut http, |http| http.sockets.iter().any(|carrier| matches!(carrier, Carrier::Up(_))));
        assert!(knows(&http), "{http:?}");
        drop(listener);
        for _ in 0..2 {
            run_until(&mut http, |http| !http.state_mut().handle().client.is_opening());
            http.state_mut().handle().client.connect();
        }
        assert!(!knows(&http), "{http:?}");
    }

    /// Reads the head of a request and answers it. Returns the head, and the connection, which stays open.
    #[cfg(all(feature = "tls", unix))]
    fn serve_one(listener: &TcpListener, answer: &str) -> (String, TcpStream) {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        socket.write_all(answer.as_bytes()).unwrap();
        (String::from_utf8(head).unwrap(), socket)
    }

    /// Answers the requests for the two documents of an authorization server, one after the other.
    #[cfg(all(feature = "tls", unix))]
    fn publish(listener: TcpListener) {
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let resource = format!(r#"{{"resource":"{origin}/mcp","authorization_servers":["{origin}"]}}"#);
        let server = format!(
            r#"{{"issuer":"{origin}","authorization_endpoint":"{origin}/in","token_endpoint":"{origin}/token","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}}"#
        );
        std::thread::spawn(move || {
            for body in [resource, server] {
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length:";
                serve_one(&listener, &format!("{head} {}\r\n\r\n{body}", body.len()));
            }
        });
    }

    /// They may be as near as the address at which the server was reached, which its name need not have any more.
    #[cfg(all(feature = "tls", unix))]
    #[test]
    fn documents_may_come_from_the_network_of_the_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let name = format!("http://without-address.localhost:{}/mcp", address.port());
        let mut http = Http::new(&name, &PROFILE).unwrap();
        http.session.authorize(AuthorizationOptions::new("test")).unwrap();
        let origin = mcp_sansio_host::HttpOrigin::new("127.0.0.1", address.port(), Duration::from_secs(20));
        http.session.place = mcp_sansio_host::HttpPlace::Tcp(origin);
        let (asked, is_asked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"http://{address}/document\"");
            let challenge = format!("HTTP/1.1 401 Unauthorized\r\n{challenge}\r\nContent-Length: 0\r\n\r\n");
            let challenged = serve_one(&listener, &challenge);
            let (head, _socket) = serve_one(&listener, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            asked.send(head).unwrap();
            drop(challenged);
        });
        http.state_mut().handle().client.connect();
        run_until(&mut http, |http| !http.state_mut().handle().client.is_opening());
        let head = is_asked.recv_timeout(Duration::from_secs(20));
        assert!(head.as_ref().is_ok_and(|head| head.starts_with("GET /document ")), "{head:?}");
    }

    /// The end of a client waits for the authorization server, whose tokens are to be kept, and not for a person.
    #[cfg(all(feature = "tls", unix))]
    #[test]
    fn closing_waits_for_tokens_and_not_for_a_person() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (visited, is_visited) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let me = mcp_sansio_auth::RegisteredClient::new("me").issuer(url.trim_end_matches("/mcp"));
        let options = AuthorizationOptions::new("test")
            .config(|config| config.registered(me))
            .visit(move |url| visited.send(url.to_owned()).unwrap())
            .wait_while(move || stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty));
        let wire = Wire::default();
        let mut http = wire.authorizing(&url, options);
        http.state_mut().handle().client.connect();
        Wire::run(&mut http, 0);
        wire.says(&mut http, 0, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n");
        assert!(http.session.hooks.under_way.is_some());
        http.begin_close(0);
        for now in [0, GOODBYE - 1] {
            assert!(http.poll_close(now, &mut cx()).is_pending(), "the authorization server may have new tokens");
        }
        publish(listener);
        let visit = is_visited.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(visit.contains("/in?"), "{visit}");
        assert!(http.poll_close(0, &mut cx()).is_ready());
        drop(stop);
    }

    /// For a limited time.
    #[cfg(all(feature = "tls", unix))]
    #[test]
    fn closing_waits_for_tokens_until_they_have_come() {
        for has_come in [true, false] {
            let options = AuthorizationOptions::new("test");
            let mut http = Wire::default().authorizing("http://127.0.0.1:9/mcp", options);
            http.session.hooks.under_way = Some(Box::pin(std::future::pending()));
            http.begin_close(0);
            assert!(http.poll_close(0, &mut cx()).is_pending());
            assert!(http.poll_close(GOODBYE - 1, &mut cx()).is_pending());
            if has_come {
                http.session.hooks.under_way = None;
            }
            assert_eq!(http.poll_close(GOODBYE - 1, &mut cx()).is_ready(), has_come);
            assert!(http.poll_close(GOODBYE, &mut cx()).is_ready());
        }
    }

    #[cfg(all(feature = "tls", unix))]
    #[test]
    fn authorization_needs_a_network() {
        let http = Wire::default().open().authorization(AuthorizationOptions::new("test"));
        assert!(matches!(http, Err(ClientError::Url(why)) if why.contains("on the network")));
    }
}
