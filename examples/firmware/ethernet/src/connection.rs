//! One TCP socket and the HTTP connection over it.

use mcp_sansio::server::Millis;
use mcp_sansio_http::endpoint::Head;
use mcp_sansio_http::host::{Host, Wait, Wired};
use mcp_sansio_http::wire::{Expired, Limits, Step};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use smoltcp::time::Duration;

use crate::net::Net;
use crate::{App, Body, Endpoint, IN_FLIGHT};

/// Where it listens.
const PORT: u16 = 80;

/// The most headers of a request.
const HEADERS: usize = 24;

/// How long a peer may be silent while it owes an acknowledgement.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a peer may take to close its side.
const CLOSE_MILLIS: Millis = 2_000;
/// The same while others wait for a socket.
const WANTED_MILLIS: Millis = 200;

/// After how long without a byte a client is thought to be gone, when others wait for its socket.
const STALL_MILLIS: Millis = 1_000;

/// What is shared by all connections.
pub(crate) struct Shared<'s, 'a> {
    pub(crate) endpoint: &'s mut Endpoint,
    pub(crate) app: &'s mut App<'a>,
    pub(crate) body: &'s mut Body,
    pub(crate) now: Millis,
}

impl<'a> Shared<'_, 'a> {
    fn host(&mut self) -> Host<'_, 'static, 'a, crate::State, mcp_sansio::sink::Slice<'static>, IN_FLIGHT> {
        Host { endpoint: self.endpoint, app: self.app, body: self.body, now: self.now }
    }
}

/// One TCP socket and the HTTP connection over it.
pub(crate) struct Connection {
    handle: SocketHandle,
    wired: Wired<'static, HEADERS>,
    life: Life,
    /// When something came or went last.
    moved: Millis,
    /// It closes as soon as it can be done without harm.
    leaving: bool,
    /// It closes now.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// For somebody to connect.
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
        limits: Limits,
    ) -> Self {
        Connection {
            handle,
            wired: Wired::new(input, output, limits),
            life: Life::Waiting,
            moved: 0,
            leaving: false,
            cut: false,
        }
    }

    /// Reads, serves, writes; whether there was anything to do. Where sockets are `scarce`, the next answer is the last.
    pub(crate) fn turn(&mut self, net: &mut Net, shared: &mut Shared<'_, '_>, scarce: bool) -> bool {
        let Net { sockets, port, .. } = net;
        let socket = sockets.get_mut::<tcp::Socket<'_>>(self.handle);
        match self.life {
            Life::Waiting => self.wait(socket, shared.now),
            Life::Open => self.serve(scarce, socket, shared, &mut |bytes| port.random.fill(bytes)),
            Life::Closing { since } => {
                let patience = if port.waiting() > 0 { WANTED_MILLIS } else { CLOSE_MILLIS };
                self.close(socket, shared.now.saturating_sub(since) >= patience)
            }
        }
    }

    /// Whether somebody may connect.
    pub(crate) fn is_waiting(&self, net: &Net) -> bool {
        net.sockets.get::<tcp::Socket<'_>>(self.handle).is_listening()
    }

    /// Whether its socket will be free soon.
    pub(crate) fn is_leaving(&self, now: Millis) -> bool {
        let answers = self.leaving && self.wired.stream().is_none() && now.saturating_sub(self.moved) < STALL_MILLIS;
        matches!(self.life, Life::Closing { .. }) || self.cut || answers
    }

    /// Since when it could be let go, unless it is somebody's event stream.
    pub(crate) fn idle_since(&self) -> Option<Millis> {
        (self.life == Life::Open && !self.leaving && self.wired.stream().is_none()).then_some(self.moved)
    }

    /// Since when it has carried nothing, if ending it does little harm: all it does is to listen for what may happen, or
    /// its client does not go on with its request, or with reading the answer.
    pub(crate) fn quiet_since(&self, endpoint: &Endpoint, now: Millis) -> Option<Millis> {
        let quiet = match self.wired.stream() {
            Some(stream) => endpoint.only_listens(stream),
            None => self.leaving && now.saturating_sub(self.moved) >= STALL_MILLIS,
        };
        (self.life == Life::Open && !self.cut && quiet).then_some(self.moved)
    }

    /// Ends it although its client wants to go on listening: it will come back.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Lets it go as soon as what it is at is answered; at once if that is nothing.
    pub(crate) fn let_go(&mut self) {
        self.leaving = true;
        self.wired.connection().close();
    }

    fn wait(&mut self, socket: &mut tcp::Socket<'_>, now: Millis) -> bool {
        if !socket.is_open() {
            listen(socket);
            return false;
        }
        if socket.may_recv() || socket.may_send() {
            (self.life, self.moved) = (Life::Open, now);
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
            // Reset by its peer, or given up by TCP.
            self.wired.leave(&mut shared.host());
            self.forget(socket);
            return true;
        }
        let read = self.read(socket);
        if read && scarce {
            // Not while it is idle: what the client has just sent would be lost.
            self.let_go();
        }
        let expired = match self.wired.next_deadline() {
            Some(deadline) if deadline <= now => self.wired.connection().expire(now),
            _ => Expired::Nothing,
        };
        if expired == Expired::Close || self.cut {
            self.wired.leave(&mut shared.host());
            if self.cut {
                socket.close()
            } else {
                socket.abort()
            }
            self.life = Life::Closing { since: now };
            return true;
        }
        let wait = match self.must_wait(shared) {
            true => Wait::Read,
            false => self.wired.serve(&mut shared.host(), random),
        };
        let sent = socket.send_slice(self.wired.pending()).unwrap_or(0);
        self.wired.sent(sent);
        if read || sent > 0 {
            self.moved = now;
        }
        let emptied = !self.wired.has_pending();
        match wait {
            Wait::Close if emptied => {
                self.wired.leave(&mut shared.host());
                socket.close();
                self.life = Life::Closing { since: now };
                return true;
            }
            // Reading goes on.
            Wait::Shut if emptied => socket.close(),
            _ => {}
        }
        read || sent > 0
    }

    /// Whether the request that has come is to be kept: it would be refused now, and not in a moment.
    fn must_wait(&mut self, shared: &Shared<'_, '_>) -> bool {
        let connection = self.wired.connection();
        if connection.step(shared.now) != Step::Request {
            return false;
        }
        let Some(head) = connection.head() else { return false };
        shared.endpoint.must_wait(&Head::new(head.method(), head.path(), head.query(), &head))
    }

    /// Reads what has come and there is room for; whether that was anything.
    fn read(&mut self, socket: &mut tcp::Socket<'_>) -> bool {
        if !socket.can_recv() {
            if !socket.may_recv() {
                self.wired.end_of_input();
            }
            return false;
        }
        let read = socket.recv_slice(self.wired.space()).unwrap_or(0);
        self.wired.filled(read);
        read > 0
    }

    /// Waits for the peer to close its side as well.
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
        self.wired.reset();
        (self.life, self.leaving, self.cut) = (Life::Waiting, false, false);
    }
}

fn listen(socket: &mut tcp::Socket<'_>) {
    let _ = socket.listen(PORT);
    socket.set_timeout(Some(TCP_TIMEOUT));
    socket.set_nagle_enabled(false);
}
