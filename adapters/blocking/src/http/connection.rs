//! One HTTP connection: its socket, and the loop between the socket and the protocol.

use std::io::{self, ErrorKind, Read, Write};
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
    /// The connection has had a turn since the last sweep of idle buffers.
    pub(super) used: bool,
    /// The last turn has read or written something.
    pub(super) moved: bool,
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
            used: true,
            moved: false,
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
        for _ in 0..ROUNDS {
            self.wait = self.wired.serve(host, random);
            self.full &= self.wired.stream().is_some();
            let Ok(emptied) = self.write() else { return false };
            match self.wait {
                WaitFor::Write if emptied => {}
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
        self.full = space.is_empty();
        if self.full {
            return true;
        }
        match self.socket.read(space) {
            Ok(0) => self.wired.end_of_input(),
            Ok(n) => {
                self.moved = true;
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
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
