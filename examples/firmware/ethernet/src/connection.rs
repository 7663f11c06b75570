//! One TCP socket with its HTTP connection.

use mcp_sansio::server::Millis;
use mcp_sansio_http::host::{HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::{ConnectionLimits, ConnectionStep, ExpireStatus};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time::Duration;

use crate::net::Net;
use crate::{App, Body, Endpoint};

/// The TCP port of the server.
const PORT: u16 = 80;

/// The most headers of a request.
const HEADERS: usize = 24;

/// The longest silence of a peer that owes an acknowledgement.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time for a peer to close its side.
const CLOSE_MILLIS: Millis = 2_000;
/// The same limit while other clients wait for a socket.
const WANTED_MILLIS: Millis = 200;

/// The longest pause in a transfer while other clients wait for a socket. After it the client counts as gone.
const STALL_MILLIS: Millis = 1_000;

/// The state that all connections share.
pub(crate) struct Shared<'s, 'a> {
    pub(crate) endpoint: &'s mut Endpoint,
    pub(crate) app: &'s mut App<'a>,
    pub(crate) body: &'s mut Body,
    pub(crate) now: Millis,
}

impl<'a> Shared<'_, 'a> {
    fn host(&mut self) -> ServeContext<'_, 'static, 'a, crate::State, mcp_sansio::sink::SliceStorage<'static>> {
        ServeContext { endpoint: self.endpoint, app: self.app, body: self.body, now: self.now }
    }
}

/// One TCP socket with its HTTP connection.
pub(crate) struct Connection {
    handle: SocketHandle,
    http: HttpConnection<'static, HEADERS>,
    state: ConnectionState,
    /// The time when the last byte arrived or left.
    moved: Millis,
    /// The connection must close as soon as this does no harm.
    leaving: bool,
    /// The connection must close now.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    /// The socket listens for a client.
    Waiting,
    Open,
    /// Our side is closed for good.
    Closing {
        since: Millis,
    },
}

impl Connection {
    pub(crate) fn new(
        handle: SocketHandle,
        input: &'static mut [u8],
        output: &'static mut [u8],
        limits: ConnectionLimits,
    ) -> Self {
        Connection {
            handle,
            http: HttpConnection::new(input, output, limits),
            state: ConnectionState::Waiting,
            moved: 0,
            leaving: false,
            cut: false,
        }
    }

    /// Reads, serves and writes. Returns `true` if there was anything to do. While sockets are `scarce`, the next
    /// answer is the last.
    pub(crate) fn turn(&mut self, net: &mut Net, shared: &mut Shared<'_, '_>, scarce: bool) -> bool {
        let Net { sockets, port, .. } = net;
        let socket = sockets.get_mut::<tcp::Socket<'_>>(self.handle);
        match self.state {
            ConnectionState::Waiting => self.wait(socket, shared.now),
            ConnectionState::Open => self.serve(scarce, socket, shared, &mut |bytes| port.random.fill(bytes)),
            ConnectionState::Closing { since } => {
                let patience = if port.waiting() > 0 { WANTED_MILLIS } else { CLOSE_MILLIS };
                self.close(socket, shared.now.saturating_sub(since) >= patience)
            }
        }
    }

    /// Returns `true` if a client can connect.
    pub(crate) fn is_waiting(&self, net: &Net) -> bool {
        net.sockets.get::<tcp::Socket<'_>>(self.handle).is_listening()
    }

    /// Returns `true` if the socket will be free soon.
    pub(crate) fn is_leaving(&self, now: Millis) -> bool {
        let answers = self.leaving && self.http.stream().is_none() && now.saturating_sub(self.moved) < STALL_MILLIS;
        matches!(self.state, ConnectionState::Closing { .. }) || self.cut || answers
    }

    /// Returns the time of the last byte. `None` if the connection is leaving, or has an event stream.
    pub(crate) fn idle_since(&self) -> Option<Millis> {
        (self.state == ConnectionState::Open && !self.leaving && self.http.stream().is_none()).then_some(self.moved)
    }

    /// Returns the time since which the connection has carried no bytes, if ending it does little harm: the client
    /// only listens to an event stream, or has stopped in the middle of its request or of reading the answer.
    pub(crate) fn quiet_since(&self, endpoint: &Endpoint, now: Millis) -> Option<Millis> {
        let quiet = match self.http.stream() {
            Some(stream) => endpoint.only_listens(stream),
            None => self.leaving && now.saturating_sub(self.moved) >= STALL_MILLIS,
        };
        (self.state == ConnectionState::Open && !self.cut && quiet).then_some(self.moved)
    }

    /// Ends the connection although its client listens. The client will connect again.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Closes the connection after the current answer, or at once if no answer is due.
    pub(crate) fn let_go(&mut self) {
        self.leaving = true;
        self.http.connection.close();
    }

    fn wait(&mut self, socket: &mut tcp::Socket<'_>, now: Millis) -> bool {
        if !socket.is_open() {
            listen(socket);
            return false;
        }
        if socket.may_recv() || socket.may_send() {
            (self.state, self.moved) = (ConnectionState::Open, now);
            return true;
        }
        false
    }

    fn serve(
        &mut self,
        scarce: bool,
        socket: &mut tcp::Socket<'_>,
        shared: &mut Shared<'_, '_>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let now = shared.now;
        if !socket.is_active() {
            // The peer has reset the connection, or TCP has given it up.
            self.http.leave(&mut shared.host());
            self.forget(socket);
            return true;
        }
        let read = self.read(socket);
        if read && scarce {
            // Not while the connection is idle: a request that the client has just sent would be lost.
            self.let_go();
        }
        let expired = match self.http.connection.next_deadline() {
            Some(deadline) if deadline <= now => self.http.connection.expire(now),
            _ => ExpireStatus::Nothing,
        };
        if expired == ExpireStatus::Close || self.cut {
            self.http.leave(&mut shared.host());
            if self.cut {
                socket.close()
            } else {
                socket.abort()
            }
            self.state = ConnectionState::Closing { since: now };
            return true;
        }
        let wait = match self.must_wait(shared) {
            true => WaitFor::Read,
            false => self.http.serve(&mut shared.host(), random),
        };
        let sent = socket.send_slice(self.http.connection.pending()).unwrap_or(0);
        self.http.connection.sent(sent);
        if read || sent > 0 {
            self.moved = now;
        }
        let emptied = !self.http.connection.has_pending();
        match wait {
            WaitFor::Close if emptied => {
                self.http.leave(&mut shared.host());
                socket.close();
                self.state = ConnectionState::Closing { since: now };
                return true;
            }
            // Reading goes on.
            WaitFor::Shut if emptied => socket.close(),
            _ => {}
        }
        read || sent > 0
    }

    /// Returns `true` if the request must wait: it would be refused now, but not in a moment.
    fn must_wait(&mut self, shared: &Shared<'_, '_>) -> bool {
        let connection = &mut self.http.connection;
        if connection.step(shared.now) != ConnectionStep::Request {
            return false;
        }
        let Some((request, _)) = connection.exchange() else { return false };
        shared.endpoint.must_wait_for(&request.head.request_head()).is_some()
    }

    /// Reads as many bytes as there is room for. Returns `true` if there were any.
    fn read(&mut self, socket: &mut tcp::Socket<'_>) -> bool {
        if !socket.can_recv() {
            if !socket.may_recv() {
                self.http.connection.ended = true;
            }
            return false;
        }
        let read = socket.recv_slice(self.http.space()).unwrap_or(0);
        self.http.connection.filled(read);
        read > 0
    }

    /// Waits for the peer to close its side too.
    fn close(&mut self, socket: &mut tcp::Socket<'_>, at_once: bool) -> bool {
        if !socket.is_open() {
            self.forget(socket);
            return true;
        }
        let _ = socket.recv(|bytes| (bytes.len(), ()));
        if at_once {
            socket.abort();
        }
        false
    }

    fn forget(&mut self, socket: &mut tcp::Socket<'_>) {
        listen(socket);
        self.http.reset();
        (self.state, self.leaving, self.cut) = (ConnectionState::Waiting, false, false);
    }
}

fn listen(socket: &mut tcp::Socket<'_>) {
    let _ = socket.listen(PORT);
    socket.set_timeout(Some(TCP_TIMEOUT));
    socket.set_nagle_enabled(false);
}
