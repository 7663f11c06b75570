//! A connection to a server in one value: line buffer, server, sink, and the loop between them; for stdio and serial lines.
//!
//! A [`LineServer`] does no I/O. The loop around it, yours or that of an adapter, takes these steps in each turn:
//!
//! 1. Call [`Server::expire`] with the time, if handlers ask the client or read the time.
//! 2. Call [`run`](LineServer::run). After [`NextStep::Read`] read on; after [`NextStep::Write`] only when something was
//!    sent. Send the pending bytes in both cases.
//! 3. Read into [`space`](LineServer::space), and call [`filled`](LineServer::filled) with the number of bytes. At the end of
//!    the input call [`end_of_input`](LineServer::end_of_input).
//! 4. Write the [`pending`](LineSink::pending) bytes of [`out`](LineServer::out), and call [`sent`](LineSink::sent) with the number
//!    of bytes. The loop ends when [`is_done`](LineServer::is_done) and nothing is pending.
//!
//! Between turns, [`answer`](LineServer::answer) requests that were put off, [wake](Server::wake) suspended ones, and
//! [publish](Server::publish) changes; then run. Call [`new_peer`](LineServer::new_peer) when the wire shows that the
//! client has gone and another one may come.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio).

pub use crate::frame::NextStep;
use crate::frame::{LineBuffer, LineStatus};
use crate::server::{NotifyStatus, Progress, PullStatus, RequestToken, RespondError, Server, WINDOWS};
use crate::service::{Dispatched, HandlerResult, LateRequest, Service};
use crate::sink::{FullError, LineSink, Out, Storage};

/// The route of all requests of a line.
const LINE: u32 = 0;

/// A connection to a server over lines: line buffer, server and sink.
///
/// ```
/// use mcp_sansio::frame::LineBuffer;
/// use mcp_sansio::server::{Server, RequestSlot};
/// use mcp_sansio::service::Service;
/// use mcp_sansio::line_server::{NextStep, LineServer};
/// use mcp_sansio::sink::{LineSink, SliceStorage};
///
/// let service = Service::<()>::new("demo", "1.0");
/// let (mut input, mut output, mut slots) = ([0; 512], [0; 512], [RequestSlot::FREE; 4]);
/// let server = Server::new(&mut slots);
/// let mut session = LineServer::new(LineBuffer::new(&mut input), server, LineSink::new(SliceStorage::new(&mut output)));
/// // 1. Read, in pieces of any size.
/// let received = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
/// session.space()[..received.len()].copy_from_slice(received);
/// session.filled(received.len());
/// // 2. Run.
/// while session.run(&service, &mut ()) == NextStep::Write {
///     // 3. Write the pending bytes, as many as the other end takes.
///     let taken = session.out.pending().len();
///     session.out.sent(taken);
/// }
/// assert_eq!(session.out.pending(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// ```
#[derive(Debug)]
pub struct LineServer<'m, O> {
    input: LineBuffer<'m>,
    /// The server.
    pub server: Server<'m>,
    /// The sink, whose pending bytes are to be sent.
    pub out: O,
    ended: bool,
}

#[cfg(feature = "alloc")]
impl<O: Out> LineServer<'static, O> {
    /// Makes a connection whose buffers grow up to limits; that of `out` is the one of its
    /// [`GrowingStorage`](crate::sink::GrowingStorage). A second `initialize` is answered like the first one, see
    /// [`reinitializing`](Server::reinitializing): behind a gateway, several clients share the line of one process.
    #[must_use]
    pub fn growing(limits: crate::server::MessageLimits, out: O) -> Self {
        let server = Server::growing(limits).reinitializing();
        LineServer::new(LineBuffer::new(crate::memory::Store::growing(limits.message)), server, out)
    }
}

impl<'m, O: Out> LineServer<'m, O> {
    /// Makes a connection from its parts.
    #[must_use]
    pub const fn new(input: LineBuffer<'m>, server: Server<'m>, out: O) -> Self {
        LineServer { input, server, out, ended: false }
    }

    /// Returns the space to read into. It is not empty after [`run`](LineServer::run) returned [`NextStep::Read`].
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// Takes the first `n` bytes of [`space`](LineServer::space) as input.
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Ends the input. A rest without a newline is handled as a line if it is a whole message. Open questions get
    /// [`InputError::Closed`](crate::service::InputError::Closed), and subscriptions end. Call [`run`](LineServer::run) until
    /// [`is_done`](LineServer::is_done).
    pub fn end_of_input(&mut self) {
        self.ended = true;
    }

    /// Returns whether [`end_of_input`](LineServer::end_of_input) was called, and [`new_peer`](LineServer::new_peer) was not
    /// called after it.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the input has ended and all replies are written: only the pending bytes are left to send.
    pub fn is_done(&self) -> bool {
        self.ended && self.input.is_empty() && self.server.in_flight() == 0 && !self.server.has_news()
    }

    /// Handles the input, as far as the sink has room.
    pub fn run<S>(&mut self, service: &Service<'_, S>, state: &mut S) -> NextStep {
        loop {
            // In a batch, the batch sends the windows.
            if let Some(token) = self.server.streaming(LINE).filter(|_| WINDOWS && !self.server.has_batch())
                && service.pump(state, token, &mut self.server, &mut self.out) != Dispatched::Handled
            {
                // A cancellation needs no room. All messages that write are refused by the held sink.
                let Some(line) = self.input.peek() else { return NextStep::Write };
                if handle(line, service, state, &mut self.server, &mut self.out).is_err() {
                    return NextStep::Write;
                }
                self.input.consume();
                continue;
            }
            // A sink that is held here is held by a batch, which goes on first.
            let ready = if self.out.held() { None } else { self.server.ready() };
            let step = if let Some(token) = ready {
                service.resume(state, token, &mut self.server, &mut self.out)
            } else if let Some(line) = self.input.peek() {
                let step = handle(line, service, state, &mut self.server, &mut self.out);
                if step != Err(FullError::Now) {
                    self.input.consume();
                }
                step
            } else if let Some(step) = self.ended.then(|| self.flush_at_eof(service, state)).flatten() {
                step
            } else {
                // A change that is too large for the sink is dropped: it must not stop the input.
                return match service.pull(state, &mut self.server, &mut self.out) {
                    PullStatus::More => NextStep::Write,
                    _ => NextStep::Read,
                };
            };
            // After `FullError::Never` the message is dropped, and the next one is handled.
            if step == Err(FullError::Now) {
                return NextStep::Write;
            }
        }
    }

    /// Handles the end of the input: a last line without its newline, then open questions and subscriptions.
    fn flush_at_eof<S>(&mut self, service: &Service<'_, S>, state: &mut S) -> Option<Result<Dispatched, FullError>> {
        let rest = self.input.rest();
        if crate::json::Raw::parse(rest).is_ok() {
            let step = service.dispatch(state, rest, &mut self.server, &mut self.out);
            if step != Err(FullError::Now) {
                self.input.clear();
            }
            return Some(step);
        }
        // A message that was cut off is dropped.
        self.input.clear();
        self.server.end_of_input();
        let token = self.server.ready()?;
        Some(service.resume(state, token, &mut self.server, &mut self.out))
    }

    /// Answers all open requests with an error, as far as there is room: the server ends.
    pub fn abandon(&mut self) -> NextStep {
        match self.server.abandon(&mut self.out) {
            Err(FullError::Now) => NextStep::Write,
            _ => NextStep::Read,
        }
    }

    /// Answers a request that was put off, see [`Service::answer`].
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer<S, R: LateRequest>(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        request: R,
        answer: impl FnOnce(&mut S, &mut R::Context<'_>) -> HandlerResult,
    ) -> Result<(), RespondError> {
        service.answer(state, request, &mut self.server, &mut self.out, answer).map(drop)
    }

    /// Sends `notifications/progress` for a request that was put off, see [`Server::progress`].
    pub fn progress(&mut self, token: RequestToken, progress: Progress<'_>) -> NotifyStatus {
        self.server.progress(token, progress, &mut self.out)
    }
}

impl<S: Storage> LineServer<'_, LineSink<S>> {
    /// Prepares the connection for another client on the same wire. Call it when the wire shows that the client has gone (DTR
    /// of a USB serial line falls, the cable is unplugged, a break), or to use a connection again whose input has ended.
    ///
    /// It drops everything of the old client: input, pending bytes, the rest of a reply in windows or of a batch, requests in
    /// flight, questions, subscriptions. Tokens of old requests are stale, and handlers are not called. The lent buffers and
    /// the configuration of the server stay. Bytes that were read but not [`filled`](LineServer::filled) in, and bytes that
    /// were sent but are not on the wire yet, are the caller's to drop.
    ///
    /// If the wire does not show that the client has gone, see [`reopening`](crate::server::Server::reopening).
    pub fn new_peer(&mut self) {
        self.input.clear();
        self.out.clear();
        self.server.drop_batch();
        if let Some(token) = self.server.streaming(LINE) {
            self.server.forget(token);
        }
        self.server.forget_peer();
        self.ended = false;
    }
}

/// Handles one line: a message, or a line that is too long.
fn handle<S>(
    line: LineStatus<'_>,
    service: &Service<'_, S>,
    state: &mut S,
    server: &mut Server<'_>,
    out: &mut dyn Out,
) -> Result<Dispatched, FullError> {
    match line {
        LineStatus::Message(message) => service.dispatch(state, message, server, out),
        _ => server.refuse_too_long(out).map(|()| Dispatched::Handled),
    }
}
