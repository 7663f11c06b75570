//! The loop of the server: sockets, events and timers around all connections.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use mcp_sansio::server::Millis;
use mcp_sansio_host::{HttpServing, HttpSetup, NetSocket};
use mcp_sansio_http::endpoint::App;
use mcp_sansio_http::host::Interest;
use rustix::event::Timespec;

use super::socket::{Listener, Socket};
use super::sockets::{Ready, Sockets};

/// A server while it serves.
pub(super) struct Serving<'a, S: 'static> {
    /// `None` when the server ends.
    listener: Option<Listener>,
    serving: HttpServing<S, Socket>,
    app: App<'a, S>,
    /// Ends a wait of the loop, from any thread.
    waker: Waker,
    woken: UnixStream,
    sockets: Sockets,
    /// The listener is watched.
    accepting: bool,
    /// The sockets that are ready. Kept between turns for its allocation.
    ready: Vec<Ready>,
}

/// Wakes the loop: late messages have come, or it is stopped.
struct SocketWaker(UnixStream);

impl Wake for SocketWaker {
    fn wake(self: Arc<Self>) {
        // If the socket is full, the loop is awake.
        let _ = (&self.0).write(&[1]);
    }
}

/// The numbers of the sockets that belong to no connection.
const WOKEN: usize = usize::MAX;
const LISTENER: usize = usize::MAX - 1;

/// The time for the rest of the output of a server over one stream.
pub(super) const GRACE: Duration = Duration::from_secs(5);

impl<'a, S> Serving<'a, S> {
    pub(super) fn new(listener: Listener, setup: HttpSetup<S>, mut app: App<'a, S>) -> io::Result<Self> {
        let sockets = Sockets::new()?;
        let (woken, waking) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        waking.set_nonblocking(true)?;
        sockets.watcher.add(&woken, Interest::Read, WOKEN)?;
        if let Some(listener) = listener.net() {
            sockets.watcher.add(listener, Interest::Read, LISTENER)?;
        }
        let mut random = File::open("/dev/urandom")?;
        let random = move |bytes: &mut [u8]| {
            // Never continues with a guessable session id.
            random.read_exact(bytes).expect("the system has random bytes");
        };
        Ok(Serving {
            serving: setup.serve(listener.net().is_none(), &mut app, random),
            listener: Some(listener),
            app,
            waker: Waker::from(Arc::new(SocketWaker(waking))),
            woken,
            sockets,
            accepting: true,
            ready: Vec::new(),
        })
    }

    pub(super) fn run(&mut self) -> io::Result<()> {
        // The first turn does not wait: it registers what wakes the others.
        let mut wake = Some(0);
        loop {
            wake = self.turn(wake)?;
            if self.serving.has_ended(&mut self.app, &self.waker, &mut self.listener) {
                return Ok(());
            }
        }
    }

    /// Does one turn of the loop: waits until the time `wake` at most, and does all that can be done then. Returns the time of the
    /// next turn, if there is something to do.
    fn turn(&mut self, wake: Option<Millis>) -> io::Result<Option<Millis>> {
        self.wait(wake)?;
        let now = self.serving.look_at_clock();
        for at in 0..self.ready.len() {
            let Some(&Ready { number, gone }) = self.ready.get(at) else { break };
            match number {
                WOKEN => while self.woken.read(&mut [0; 64]).is_ok_and(|n| n == 64) {},
                LISTENER => self.accept(Listener::accept),
                // The handlers of the turns before it may have taken long.
                slot if at > 0 => self.serve(slot, gone, None),
                slot => self.serve(slot, gone, Some(now)),
            }
        }
        Ok(self.serving.turn(&mut self.app, &mut Context::from_waker(&self.waker)))
    }

    /// Serves a connection whose socket is ready. `now` is the time if it is known.
    fn serve(&mut self, slot: usize, gone: bool, now: Option<Millis>) {
        let Serving { serving, app, .. } = self;
        let Some(socket) = serving.host.socket(slot) else { return };
        socket.set_ready();
        match now {
            Some(now) => serving.host.turn(slot, app, now),
            None => serving.serve(slot, app),
        }
        // Not if something was read or written: there may be more to read.
        if gone && serving.host.socket(slot).is_some_and(|socket| !socket.has_moved) {
            let now = serving.look_at_clock();
            serving.host.close(slot, app, now);
        }
    }

    /// Waits until a socket is ready or the time `wake` is reached.
    fn wait(&mut self, wake: Option<Millis>) -> io::Result<()> {
        let accepting = self.serving.accepts();
        let interest = if accepting { Interest::Read } else { Interest::Nothing };
        let listener = self.listener.as_ref().and_then(Listener::net);
        if let Some(listener) = listener.filter(|_| accepting != self.accepting) {
            self.accepting = accepting;
            self.sockets.watcher.change(listener, interest, LISTENER)?;
        }
        let timeout = self.timeout(wake);
        let listener = listener.map(|listener| (listener.as_fd(), interest, LISTENER));
        let own = [(self.woken.as_fd(), Interest::Read, WOKEN)].into_iter().chain(listener);
        let connections = self.serving.host.sockets().map(|(slot, socket)| (socket.as_fd(), socket.interest, slot));
        self.sockets.wait(own.chain(connections), timeout.as_ref(), &mut self.ready)
    }

    /// Returns how long to wait.
    fn timeout(&self, wake: Option<Millis>) -> Option<Timespec> {
        let left = self.serving.next(wake)?.saturating_sub(self.serving.now()).min(60_000);
        Some(Timespec { tv_sec: (left / 1000) as i64, tv_nsec: (left % 1000 * 1_000_000) as _ })
    }

    /// Accepts connections by `next`, while there is room.
    fn accept(&mut self, mut next: impl FnMut(&Listener) -> io::Result<NetSocket>) {
        while self.serving.accepts() {
            let Some(listener) = &self.listener else { return };
            match next(listener) {
                Ok(accepted) => {
                    // One that cannot be prepared leaves its place to the next.
                    let _ = self.carry(accepted);
                }
                Err(error) if self.serving.accept_failed(error.kind()) => {}
                Err(_) => return,
            }
        }
    }

    /// Takes a connection.
    pub(super) fn carry(&mut self, accepted: NetSocket) -> io::Result<()> {
        let socket = Socket::new(accepted, &self.sockets.watcher, self.serving.host.vacant())?;
        let is_spare = self.serving.spare.has(&socket);
        self.serving.enter(socket, is_spare, &mut self.app);
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use mcp_sansio_host::HttpListener;
    use std::io::ErrorKind;
    use std::task::Poll;

    use mcp_sansio::service::{Service, Tool};
    use mcp_sansio_host::HttpServerOptions;
    use mcp_sansio_http::host::HttpSocket;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    static TOOLS: [Tool<()>; 2] = [
        Tool::new("echo", "Answers", |(), call| call.text("here")),
        Tool::new("slow", "Gives the time, and takes some", |(), call| {
            let now = call.now();
            std::thread::sleep(Duration::from_millis(SLOW));
            call.text(format_args!("at {now};"))
        }),
    ];

    /// The time that a handler takes, in milliseconds.
    const SLOW: Millis = 5;

    const REQUEST: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// Runs a test with a server of these options, over one stream that has not come.
    fn with_options(options: HttpServerOptions, test: impl FnOnce(&mut Serving<'_, ()>)) {
        let (service, mut state) = (Service::new("test", "1").tools(&TOOLS), ());
        let mut setup = HttpSetup::new();
        setup.options = options;
        test(&mut Serving::new(Listener::Stream(None), setup, App::new(&service, &mut state)).unwrap());
    }

    /// Runs a test with a server of one connection, and with its client, which does not block.
    fn with_one_connection(test: impl FnOnce(&mut Serving<'_, ()>, UnixStream)) {
        with_options(HttpServerOptions::new(), |serving| {
            let client = connect(serving);
            test(serving, client);
        });
    }

    /// Makes another connection, and returns its client, which does not block.
    fn connect(serving: &mut Serving<'_, ()>) -> UnixStream {
        let (client, theirs) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        serving.carry(NetSocket::Unix(theirs)).unwrap();
        client
    }

    /// Returns a request of 2026-07-28 that calls a tool without arguments.
    fn call(tool: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    /// Returns the bytes that the client can read now, 4,096 at most.
    fn received(client: &mut UnixStream) -> String {
        let mut bytes = [0; 4096];
        match client.read(&mut bytes) {
            Ok(n) => String::from_utf8_lossy(&bytes[..n]).into_owned(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                String::new()
            }
        }
    }

    /// Waits at most this time. Returns the numbers of the sockets that are ready.
    fn ready(serving: &mut Serving<'_, ()>, millis: Millis) -> Vec<usize> {
        let now = serving.serving.now();
        serving.wait(Some(now + millis)).unwrap();
        serving.ready.iter().map(|ready| ready.number).collect()
    }

    #[test]
    fn a_wait_is_at_most_a_minute() {
        with_options(HttpServerOptions::new(), |serving| {
            let now = serving.serving.now();
            let left = |wake: Option<Millis>| {
                let time = serving.timeout(wake)?;
                Some(time.tv_sec as Millis * 1000 + time.tv_nsec as Millis / 1_000_000)
            };
            assert_eq!(left(None), None);
            for (wake, millis) in [(0, 0), (1, 1), (999, 999), (1234, 1234), (60_000, 60_000), (60_001, 60_000)] {
                assert_eq!(left(Some(now + wake)), Some(millis));
            }
            assert_eq!(left(Some(now - 1)), Some(0));
        });
    }

    /// Else a connection that waits in its queue would turn the loop without end.
    #[test]
    fn a_listener_is_watched_only_while_there_is_room() {
        with_options(HttpServerOptions::new().connections(1), |serving| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = listener.local_addr().unwrap();
            serving.sockets.watcher.add(&listener, Interest::Read, LISTENER).unwrap();
            serving.listener = Some(Listener::Net(HttpListener::Tcp(listener)));
            let mut peers = [(); 2].map(|()| std::net::TcpStream::connect(address).unwrap());
            assert_eq!(ready(serving, 60_000), [LISTENER]);
            // One is accepted, and one waits. When the first one closes, there is room again, in its place.
            for peer in &mut peers {
                serving.accept(Listener::accept);
                assert_eq!((serving.serving.host.open(), ready(serving, 0).len()), (1, 0));
                peer.write_all(REQUEST).unwrap();
                assert_eq!(ready(serving, 60_000), [0]);
                serving.serve(0, false, None);
                peer.read_exact(&mut [0; 12]).unwrap();
                serving.serving.host.close(0, &mut serving.app, 0);
            }
            assert_eq!(ready(serving, 0).len(), 0);
            assert!(serving.accepting);
        });
    }

    #[test]
    fn a_listener_that_has_an_error_rests() {
        with_one_connection(|serving, _client| {
            // The system accepts nothing at a socket that does not listen.
            let (socket, _peer) = UnixStream::pair().unwrap();
            serving.listener = Some(Listener::Net(HttpListener::Tcp(std::os::fd::OwnedFd::from(socket).into())));
            serving.accept(Listener::accept);
            assert!(!serving.serving.accepts() && serving.serving.host.open() == 1);
            assert!(serving.serving.next(None).unwrap() <= serving.serving.now() + 100);
        });
    }

    /// A client that has gone before it was accepted, and a signal, are no reason to rest. A request that is there already is
    /// answered at once.
    #[test]
    fn accepting_goes_on_after_an_error_of_one_connection() {
        with_one_connection(|serving, _client| {
            let (mut peer, socket) = UnixStream::pair().unwrap();
            peer.set_nonblocking(true).unwrap();
            peer.write_all(REQUEST).unwrap();
            let mut outcomes = [
                Err(ErrorKind::Interrupted),
                Err(ErrorKind::ConnectionAborted),
                Ok(NetSocket::Unix(socket)),
                Err(ErrorKind::WouldBlock),
            ]
            .into_iter();
            serving.accept(|_| outcomes.next().unwrap().map_err(io::Error::from));
            assert_eq!((outcomes.len(), serving.serving.host.open(), serving.serving.accepts()), (0, 2, true));
            assert!(received(&mut peer).starts_with("HTTP/1.1 404"));
        });
    }

    #[test]
    fn a_socket_that_cannot_be_prepared_leaves_its_place_to_the_next() {
        with_one_connection(|serving, _client| {
            let no_socket = std::os::fd::OwnedFd::from(File::open("/dev/null").unwrap());
            let (_peer, socket) = UnixStream::pair().unwrap();
            let mut sockets = [NetSocket::Tcp(no_socket.into()), NetSocket::Unix(socket)].into_iter();
            serving.accept(|_| sockets.next().ok_or_else(|| ErrorKind::WouldBlock.into()));
            assert_eq!((serving.serving.host.open(), serving.serving.host.vacant()), (2, 2));
        });
    }

    #[test]
    fn an_answer_goes_on_when_its_socket_has_room() {
        with_one_connection(|serving, mut client| {
            let socket = serving.serving.host.socket(0).unwrap();
            let mut filled = 0;
            for piece in [&[b'~'; 4096][..], b"~"] {
                while let Poll::Ready(Ok(n)) = socket.write(piece) {
                    filled += n;
                }
            }
            client.write_all(REQUEST).unwrap();
            serving.serve(0, false, None);
            assert_eq!(ready(serving, 0).len(), 0);
            client.read_exact(&mut vec![0; filled]).unwrap();
            assert_eq!(ready(serving, 60_000), [0]);
            serving.serve(0, false, None);
            assert!(received(&mut client).starts_with("HTTP/1.1 404"));
            assert_eq!(ready(serving, 0).len(), 0, "it is watched for no more than its next request");
        });
    }

    /// The peer has ended its side, but what was written may have made room for the rest of its requests.
    #[test]
    fn a_peer_that_has_gone_is_kept_while_bytes_move() {
        with_one_connection(|serving, mut client| {
            client.write_all(REQUEST).unwrap();
            for (sent, kept) in [(true, 1), (false, 0)] {
                serving.serve(0, true, None);
                assert_eq!(!received(&mut client).is_empty(), sent);
                assert_eq!(serving.serving.host.open(), kept);
            }
        });
    }

    /// The time of a request is that of its turn, also behind a handler that takes long; what is due then is done in the same turn.
    #[test]
    fn time_goes_on_while_handlers_run() {
        with_options(HttpServerOptions::new(), |serving| {
            let mut clients = [connect(serving), connect(serving)];
            for client in &mut clients {
                client.write_all(call("slow").as_bytes()).unwrap();
            }
            let before = serving.serving.now();
            assert_eq!(serving.turn(Some(0)).unwrap(), None);
            let mut times = clients.map(|mut client| {
                let answer = received(&mut client);
                let time = answer.split("at ").nth(1).and_then(|rest| rest.split(';').next());
                time.unwrap_or_else(|| panic!("{answer}")).parse::<Millis>().unwrap()
            });
            times.sort_unstable();
            assert!(times[0] >= before, "{times:?}");
            assert!(times[1] >= times[0] + SLOW, "{times:?}");
            assert!(serving.serving.now() >= times[1] + SLOW, "{times:?} {}", serving.serving.now());
        });
    }

    /// Each late message wakes the loop, also while it is awake.
    #[test]
    fn many_wakes_block_nothing() {
        // The first is as many as one read takes.
        for wakes in [64, 10_000] {
            with_one_connection(|serving, client| {
                for _ in 0..wakes {
                    serving.waker.wake_by_ref();
                }
                assert_eq!(ready(serving, 60_000), [WOKEN]);
                drop(client);
                serving.run().unwrap();
                let left = serving.woken.read(&mut [0]).map_err(|error| error.kind());
                assert_eq!(left, Err(ErrorKind::WouldBlock), "one turn takes all of them");
            });
        }
    }

    #[test]
    fn pipelined_requests_are_answered_in_one_write() {
        // Over such a pair each write is a record, and a read takes one.
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let serving = std::thread::spawn(move || {
            let service = Service::new("test", "1").tools(&TOOLS);
            let (setup, mut state) = (HttpSetup::new(), ());
            let app = App::new(&service, &mut state);
            let mut serving = Serving::new(Listener::Stream(None), setup, app).unwrap();
            serving.carry(NetSocket::Unix(theirs.into())).unwrap();
            serving.run().unwrap();
        });
        let request = call("echo");
        let mut client = UnixStream::from(ours);
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for many in [1, 6] {
            client.write_all(request.repeat(many).as_bytes()).unwrap();
            let mut record = vec![0; 64 * 1024];
            let n = client.read(&mut record).unwrap();
            let answers = String::from_utf8_lossy(&record[..n]);
            assert_eq!(
                (answers.matches("HTTP/1.1 200 OK").count(), answers.matches("here").count()),
                (many, many),
                "{answers}"
            );
        }
        drop(client);
        serving.join().unwrap();
    }
}
