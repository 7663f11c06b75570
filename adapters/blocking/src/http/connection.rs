//! One HTTP connection: its socket, and the loop between the socket and the protocol.

use std::io::{self, ErrorKind};
use std::net::Shutdown;

use mcp_sansio::memory::Store;
use mcp_sansio_http::endpoint::StreamId;
use mcp_sansio_http::host::{Budget, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1;

use super::socket::Socket;
use super::sockets::Wants;

/// The limit of rounds (serve, then write) in one turn of a connection.
const ROUNDS: usize = 4;

/// A connection with its socket.
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) wired: HttpConnection<'static>,
    wait: WaitFor,
    shut: bool,
    /// The events that the socket is watched for.
    pub(super) wants: Wants,
    /// The stream that it carries.
    pub(super) stream: Option<StreamId>,
    /// The buffer has no room for input.
    full: bool,
    /// The last turn has read or written something.
    pub(super) moved: bool,
    /// The last read took as many bytes as there was room for.
    filled: bool,
    /// It is in the list of connections that wait for a stream.
    pub(super) parked: bool,
    /// It is in the list of connections about which the application decides later.
    #[cfg(feature = "resource-server")]
    pub(super) listed: bool,
}

impl Connection {
    pub(super) fn new(socket: Socket, limits: http1::ConnectionLimits, message: usize) -> Self {
        let input = Store::growing(message.saturating_add(64 * 1024));
        let output = Store::growing(message.saturating_mul(2).saturating_add(64 * 1024));
        Connection {
            socket,
            wired: HttpConnection::new(input, output, limits),
            wait: WaitFor::Read,
            shut: false,
            wants: Wants::Read,
            stream: None,
            full: false,
            moved: false,
            filled: false,
            parked: false,
            #[cfg(feature = "resource-server")]
            listed: false,
        }
    }

    pub(super) fn interest(&self) -> Wants {
        match self.wait {
            WaitFor::Write | WaitFor::Close => Wants::Write,
            // The loop serves it again after each turn.
            _ if self.is_parked() && self.wired.has_pending() => Wants::Write,
            // A client that has ended its side is still answered.
            _ if self.is_parked() => Wants::Nothing,
            // The client may send more requests while a stream is open. They wait in the socket until there is room.
            _ if self.full && self.wired.has_pending() => Wants::Write,
            _ if self.full => Wants::End,
            _ if self.wired.has_pending() => Wants::Both,
            _ => Wants::Read,
        }
    }

    /// Returns whether its request waits, for a decision or for the stream of its session.
    fn is_parked(&self) -> bool {
        #[cfg(feature = "resource-server")]
        if self.is_undecided() {
            return true;
        }
        self.waits_for_stream()
    }

    /// Returns whether its request waits for the stream of its session.
    pub(super) fn waits_for_stream(&self) -> bool {
        self.wait == WaitFor::Stream
    }

    /// Returns whether the application has not decided about its request.
    #[cfg(feature = "resource-server")]
    pub(super) fn is_undecided(&self) -> bool {
        self.wait == WaitFor::Decision
    }

    /// Does one turn. Returns `false` if the connection is over.
    pub(super) fn turn<S>(
        &mut self,
        host: &mut ServeContext<'_, '_, '_, S, Vec<u8>>,
        random: &mut dyn FnMut(&mut [u8]),
        budget: &mut Budget,
        read: bool,
    ) -> bool {
        self.moved = false;
        if read && self.wait != WaitFor::Write && !self.read(budget) {
            return false;
        }
        for round in 1..=ROUNDS {
            self.wait = self.wired.serve(host, random);
            self.full &= self.wired.stream().is_some();
            let Ok(emptied) = self.write() else { return false };
            match self.wait {
                WaitFor::Write if emptied => {}
                // The socket may hold more of the body: one read for all of it.
                WaitFor::Read if self.filled && round < ROUNDS && self.wired.reads_body() => {
                    self.wired.set_waiting(self.socket.waiting());
                    if !self.read(budget) {
                        return false;
                    }
                }
                WaitFor::Close if emptied => return false,
                WaitFor::Shut if emptied && !self.shut => {
                    self.shut = true;
                    return self.socket.shutdown(Shutdown::Write).is_ok();
                }
                _ => return true,
            }
        }
        // The socket still takes bytes, so it is ready again at once; first the other connections have their turns.
        true
    }

    /// Reads once. Returns `false` if the connection is broken.
    fn read(&mut self, budget: &mut Budget) -> bool {
        let space = self.wired.space_in(budget);
        let room = space.len();
        (self.full, self.filled) = (room == 0, false);
        if self.full {
            return true;
        }
        match self.socket.read(space) {
            Ok(0) => self.wired.end_of_input(),
            Ok(n) => {
                self.moved = true;
                self.filled = n == room;
                self.wired.filled(n);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return false,
        }
        true
    }

    /// Writes as much as the socket takes. Returns whether that was everything.
    fn write(&mut self) -> io::Result<bool> {
        loop {
            let pending = self.wired.pending();
            if pending.is_empty() {
                return Ok(true);
            }
            match self.socket.write(pending) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.moved = true;
                    self.wired.sent(n);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use mcp_sansio::service::{Service, Tool};
    use mcp_sansio_host::HttpServerOptions;
    use mcp_sansio_http::endpoint::{App, Endpoint};
    use mcp_sansio_http::host::BodyBuffer;

    const REQUEST: &str = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// A connection and its server.
    struct Turning<'a> {
        connection: Connection,
        endpoint: Endpoint<'static>,
        app: App<'a, ()>,
        body: BodyBuffer<Vec<u8>>,
        budget: Budget,
    }

    static TOOLS: [Tool<()>; 1] = [Tool::new("large", "60,000 bytes", |(), call| call.text(&*"x".repeat(60_000)))];

    /// Runs a test with a connection, and with its client, which does not block.
    fn with_connection(test: impl FnOnce(&mut Turning<'_>, UnixStream)) {
        with_connection_for(100_000, test);
    }

    /// Runs a test with a connection for messages of this size.
    fn with_connection_for(message: usize, test: impl FnOnce(&mut Turning<'_>, UnixStream)) {
        let (client, ours) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        let socket = Socket::Unix(ours);
        socket.prepare().unwrap();
        let (service, mut state) = (Service::new("test", "1").tools(&TOOLS), ());
        let mut turning = Turning {
            connection: Connection::new(socket, http1::ConnectionLimits::DEFAULT, message),
            endpoint: HttpServerOptions::new().endpoint(),
            app: App::new(&service, &mut state),
            body: BodyBuffer::new(Vec::new()),
            budget: Budget::new(1 << 20),
        };
        test(&mut turning, client);
    }

    impl Turning<'_> {
        fn turn(&mut self, read: bool) -> bool {
            let Turning { connection, endpoint, app, body, budget } = self;
            let mut host = ServeContext { endpoint, app, body, now: 0 };
            connection.turn(&mut host, &mut |bytes| bytes.fill(7), budget, read)
        }

        /// Writes bytes to the client until its socket takes no more, and returns their number.
        fn fill(&mut self) -> usize {
            let mut filled = 0;
            for piece in [&[b'~'; 4096][..], b"~"] {
                while let Ok(n) = self.connection.socket.write(piece) {
                    filled += n;
                }
            }
            filled
        }

        /// Returns how many answers wait to be sent.
        fn pending(&mut self) -> usize {
            String::from_utf8_lossy(self.connection.wired.pending()).matches("HTTP/1.1 404").count()
        }
    }

    /// Reads and drops what has filled the socket.
    fn drop_filling(client: &mut UnixStream, filled: usize) {
        client.read_exact(&mut vec![0; filled]).unwrap();
    }

    /// Returns the bytes that the client can read now, and whether it sees the end.
    fn received(client: &mut UnixStream) -> (String, bool) {
        let (mut text, mut chunk) = (String::new(), [0; 4096]);
        loop {
            match client.read(&mut chunk) {
                Ok(0) => return (text, true),
                Ok(n) => text += &String::from_utf8_lossy(&chunk[..n]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return (text, false);
                }
            }
        }
    }

    #[test]
    fn a_connection_is_watched_for_what_it_waits_for() {
        let parked = [
            WaitFor::Stream,
            #[cfg(feature = "resource-server")]
            WaitFor::Decision,
        ];
        let cases = [
            (WaitFor::Write, false, [Wants::Write, Wants::Write]),
            (WaitFor::Close, false, [Wants::Write, Wants::Write]),
            (WaitFor::Close, true, [Wants::Write, Wants::Write]),
            (WaitFor::Read, false, [Wants::Read, Wants::Both]),
            (WaitFor::Read, true, [Wants::End, Wants::Write]),
            (WaitFor::Shut, false, [Wants::Read, Wants::Both]),
            (WaitFor::Shut, true, [Wants::End, Wants::Write]),
        ];
        let parked = parked.map(|wait| [false, true].map(|full| (wait, full, [Wants::Nothing, Wants::Write])));
        with_connection(|turning, mut client| {
            for pending in [false, true] {
                assert_eq!(turning.connection.wired.has_pending(), pending);
                for &(wait, full, wants) in parked.iter().flatten().chain(&cases) {
                    (turning.connection.wait, turning.connection.full) = (wait, full);
                    let wants = wants[usize::from(pending)];
                    assert_eq!(turning.connection.interest(), wants, "{wait:?}, full: {full}, pending: {pending}");
                }
                turning.connection.wait = WaitFor::Read;
                turning.fill();
                client.write_all(REQUEST.as_bytes()).unwrap();
                assert!(turning.turn(true));
            }
        });
    }

    #[test]
    fn the_last_answer_is_sent_before_the_connection_closes() {
        with_connection(|turning, mut client| {
            let filled = turning.fill();
            client.write_all(REQUEST.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
            assert!(turning.turn(true) && turning.connection.moved);
            // Nothing can be written, and nothing is there to read.
            assert!(turning.turn(true) && !turning.connection.moved);
            drop_filling(&mut client, filled);
            assert!(!turning.turn(false) && turning.connection.moved);
            assert!(received(&mut client).0.starts_with("HTTP/1.1 404"));
        });
    }

    /// The rest of a body that is refused is read, so that the system does not reset the connection before the answer was read.
    #[test]
    fn a_refused_body_is_read_after_the_answer_is_sent_and_the_sending_side_is_shut() {
        with_connection(|turning, mut client| {
            let filled = turning.fill();
            client.write_all(b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 16000\r\n\r\n").unwrap();
            assert!(turning.turn(true) && turning.turn(false));
            assert!(!turning.connection.shut);
            drop_filling(&mut client, filled);
            assert_eq!(received(&mut client), (String::new(), false));
            assert!(turning.turn(false) && turning.connection.shut);
            let (answer, ended) = received(&mut client);
            assert!(answer.starts_with("HTTP/1.1 403") && ended, "{answer}");
            client.write_all(&[b' '; 1000]).unwrap();
            assert!(turning.turn(true) && turning.connection.moved);
            client.shutdown(Shutdown::Write).unwrap();
            assert!(!turning.turn(true), "the peer has ended its side, too");
        });
    }

    /// Behind an open stream, a client may send some bytes; then only the end of the connection is looked for.
    #[test]
    fn a_stream_that_is_open_takes_little_input() {
        with_connection(|turning, mut client| {
            client.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
            assert!(turning.turn(true));
            assert_eq!((turning.connection.interest(), turning.connection.full), (Wants::Read, false));
            client.write_all(&[b'\n'; 100]).unwrap();
            while client.write(&[b'x'; 4096]).is_ok() {}
            while turning.connection.moved {
                assert!(turning.turn(true));
            }
            assert_eq!((turning.connection.interest(), turning.connection.full), (Wants::End, true));
        });
    }

    /// Requests that are all there at once are answered in one turn while the client reads. Otherwise the next ones wait, and no
    /// others are read.
    #[test]
    fn answers_that_wait_hold_up_further_requests() {
        with_connection(|turning, mut client| {
            let requests = REQUEST.repeat(40);
            client.write_all(requests.as_bytes()).unwrap();
            assert!(turning.turn(true));
            let at_once = received(&mut client).0.matches("HTTP/1.1 404").count();
            assert_eq!(at_once, 40);

            let filled = turning.fill();
            client.write_all(requests.as_bytes()).unwrap();
            assert!(turning.turn(true));
            let held = turning.pending();
            assert!(held < 40, "{held}");
            assert_eq!(turning.connection.wait, WaitFor::Write);
            client.write_all(REQUEST.as_bytes()).unwrap();
            assert!(turning.turn(true) && !turning.connection.moved);
            drop_filling(&mut client, filled);
            // The first one reads nothing.
            assert!(turning.turn(true) && turning.turn(true));
            assert_eq!(received(&mut client).0.matches("HTTP/1.1 404").count(), 41);
        });
    }

    /// The output has some room beside its messages.
    #[test]
    fn an_answer_may_be_larger_than_the_largest_request() {
        with_connection_for(1_000, |turning, mut client| {
            let body = concat!(
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large","_meta":{"#,
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
            );
            write!(
                client,
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                 Mcp-Method: tools/call\r\nMcp-Name: large\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            assert!(turning.turn(true));
            let answer = received(&mut client).0;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > 60_000, "{} bytes", answer.len());
        });
    }

    #[test]
    fn a_connection_that_is_broken_is_over() {
        // Bytes that the client did not read: the system resets the connection.
        with_connection(|turning, client| {
            turning.fill();
            drop(client);
            assert!(!turning.turn(true));
        });
        // The client has gone, and its request is still there.
        with_connection(|turning, mut client| {
            client.write_all(REQUEST.as_bytes()).unwrap();
            drop(client);
            assert!(!turning.turn(true));
        });
        // It has sent nothing.
        with_connection(|turning, client| {
            assert!(turning.turn(true));
            drop(client);
            assert!(!turning.turn(true));
        });
    }
}
