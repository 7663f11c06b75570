//! A connection in one value: line buffer, server, sink, and the loop between them.
//!
//! A [`Session`] is what stdio and serial lines need. It does no I/O: read into [`space`](Session::space), call
//! [`run`](Session::run), write what is [`pending`](Session::pending). Adapters are loops around it; so is yours. Each turn:
//!
//! 1. [`expire`](Session::expire) with the time, if handlers ask the client or look at the time.
//! 2. [`run`](Session::run). After [`Next::Read`] read on, after [`Next::Write`] only once something was sent. Send what is
//!    pending in both cases.
//! 3. Read into [`space`](Session::space) and say with [`filled`](Session::filled) how much came; at the end of the input
//!    call [`end_of_input`](Session::end_of_input).
//! 4. Write what is pending and say with [`sent`](Session::sent) how much went. The loop is over when
//!    [`is_done`](Session::is_done) and nothing is pending.
//!
//! Between turns [`answer`](Session::answer) what was put off, [`resume`](Session::resume) what was suspended, and
//! [`publish`](Session::publish) what has changed; then run. Call [`new_peer`](Session::new_peer) when the wire tells that a
//! client has gone and another one may come.

use crate::frame::{Line, LineBuffer};
use crate::server::{Change, Engine, Millis, Progress, Pull, SendError, Server, Token, Told, WINDOWS};
use crate::service::{Call, Complete, Get, Other, Outcome, Pump, Read, Service, Step};
use crate::sink::{Full, Lines, Out, Storage};

/// What a [`Session`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum Next {
    /// More input. There may be pending output to send.
    Read,
    /// Room: send what is pending, then run again. Input waits, nothing is lost.
    Write,
}

/// Line buffer, server and sink, with at most `N` requests in flight.
///
/// ```
/// use mcp_sansio::frame::LineBuffer;
/// use mcp_sansio::server::Server;
/// use mcp_sansio::service::Service;
/// use mcp_sansio::session::{Next, Session};
/// use mcp_sansio::sink::{Lines, Slice};
///
/// let service = Service::<()>::new("demo", "1.0");
/// let (mut input, mut output) = ([0; 512], [0; 512]);
/// let mut session = Session::<_, 4>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
/// // 1. Read as much as there is, in pieces of any size.
/// let received = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
/// session.space()[..received.len()].copy_from_slice(received);
/// session.filled(received.len());
/// // 2. Let the session work.
/// while session.run(&service, &mut ()) == Next::Write {
///     // 3. Write what is pending, as much as the other end takes.
///     let taken = session.pending().len();
///     session.sent(taken);
/// }
/// assert_eq!(session.pending(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// ```
#[derive(Debug)]
pub struct Session<'m, O, const N: usize> {
    input: LineBuffer<'m>,
    server: Server<'m, N>,
    out: O,
    /// The reply that goes out in windows.
    streaming: Option<Token>,
    ended: bool,
}

#[cfg(feature = "alloc")]
impl<O: Out, const N: usize> Session<'static, O, N> {
    /// A connection whose buffers grow up to limits. A second `initialize` is answered as the first one was, see
    /// [`reinitializing`](Server::reinitializing): gateways let several clients share the line of one process.
    #[must_use]
    pub fn growing(limits: crate::server::Limits, out: O) -> Self {
        let server = Server::growing(limits).reinitializing();
        Session::new(LineBuffer::new(crate::store::Store::growing(limits.message)), server, out)
    }
}

impl<'m, O: Out, const N: usize> Session<'m, O, N> {
    /// A connection that nothing has come over yet.
    #[must_use]
    pub const fn new(input: LineBuffer<'m>, server: Server<'m, N>, out: O) -> Self {
        Session { input, server, out, streaming: None, ended: false }
    }

    /// Where to read to; never empty after [`run`](Session::run) returned [`Next::Read`].
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// Says that `n` bytes were read into [`space`](Session::space).
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Says that there is no more input. What is left without a newline is handled as a last line if it is a whole
    /// message; open questions resolve as closed, listens are ended. Run on until [`is_done`](Session::is_done).
    pub fn end_of_input(&mut self) {
        self.ended = true;
    }

    /// Whether [`end_of_input`](Session::end_of_input) was called and no [`new_peer`](Session::new_peer) since then.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the input has ended and everything that is owed has been written: only the pending bytes are left to send.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.ended
            && self.input.is_empty()
            && self.streaming.is_none()
            && self.server.in_flight() == 0
            && !self.server.has_news()
    }

    /// Handles all that has been read, as far as the sink has room.
    pub fn run<S>(&mut self, service: &Service<'_, S>, state: &mut S) -> Next {
        let server: &mut Engine<'m> = &mut self.server;
        loop {
            if let Some(token) = self.streaming.filter(|_| WINDOWS) {
                if service.pump(state, token, server, &mut self.out) == Pump::More {
                    // What comes in meanwhile may be a cancellation: it needs no room.
                    return match quiet(&mut self.input, service, state, server, &mut self.out) {
                        true => continue,
                        false => Next::Write,
                    };
                }
                self.streaming = None;
            }
            // A sink that is held here is held by a batch that is under way: it goes on first.
            let ready = if self.out.held() { None } else { server.ready() };
            let step = if let Some(token) = ready {
                service.resume(state, token, server, &mut self.out)
            } else {
                match self.input.peek() {
                    Some(line) => {
                        let step = handle(line, service, state, server, &mut self.out);
                        if step != Err(Full::Now) {
                            self.input.consume();
                        }
                        step
                    }
                    None if self.ended => match last_words(&mut self.input, service, state, server, &mut self.out) {
                        Some(step) => step,
                        None => return tell(server, service, &mut self.out),
                    },
                    None => return tell(server, service, &mut self.out),
                }
            };
            match step {
                Ok(Step::Streaming(token)) => self.streaming = Some(token),
                Err(Full::Now) => return Next::Write,
                // A sink that cannot even take an error: the message is dropped, the next one is not.
                Ok(_) | Err(Full::Never) => {}
            }
        }
    }

    /// Answers everything that is still open with an error, as far as there is room: the server is going away.
    pub fn abandon(&mut self) -> Next {
        match self.server.abandon(&mut self.out) {
            Err(Full::Now) => Next::Write,
            _ => Next::Read,
        }
    }

    /// Answers a tool call that was put off, see [`Service::answer`].
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer<S>(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        let step = service.answer(state, token, &mut self.server, &mut self.out, answer)?;
        self.answered(step)
    }

    /// Answers a read of a resource that was put off, see [`Service::answer_read`].
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_read<S>(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Token,
        uri: &str,
        answer: impl FnOnce(&mut S, &mut Read<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        let step = service.answer_read(state, token, uri, &mut self.server, &mut self.out, answer)?;
        self.answered(step)
    }

    /// Answers a prompt that was put off, see [`Service::answer_prompt`].
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_prompt<S>(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Get<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        let step = service.answer_prompt(state, token, &mut self.server, &mut self.out, answer)?;
        self.answered(step)
    }

    /// Answers a completion that was put off, see [`Service::answer_complete`].
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_complete<S>(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Token,
        value: &str,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        let step = service.answer_complete(state, token, value, &mut self.server, &mut self.out, answer)?;
        self.answered(step)
    }

    /// Answers a request that the protocol does not know and that was put off, see [`Service::answer_other`].
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_other<S>(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Other<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        let step = service.answer_other(state, token, &mut self.server, &mut self.out, answer)?;
        self.answered(step)
    }

    /// Resumes a request that its handler has [suspended](crate::service::Handling::suspend): the next
    /// [`run`](Session::run) calls its handler again.
    ///
    /// # Errors
    /// [`SendError::Stale`] if it was answered or cancelled, [`SendError::WrongKind`] if it is not suspended.
    pub fn resume(&mut self, token: Token) -> Result<(), SendError> {
        self.server.wake(token)
    }

    fn answered(&mut self, step: Step) -> Result<(), SendError> {
        if let Step::Streaming(token) = step {
            self.streaming = Some(token);
        }
        Ok(())
    }

    /// Tells how far a request is that was put off.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>) -> Told {
        self.server.progress(token, progress, &mut self.out)
    }

    /// Tells that something has changed; it is written by the next [`run`](Session::run).
    pub fn publish(&mut self, change: Change<'_>) {
        self.server.publish(change);
    }

    /// Tells the time: for deadlines, see [`expire`](crate::server::ServerOf::expire).
    pub fn expire(&mut self, now: Millis) {
        self.server.expire(now);
    }

    /// The server, for everything else.
    pub fn server(&mut self) -> &mut Engine<'m> {
        &mut self.server
    }

    /// The server and the sink, for messages of the application's own.
    pub fn parts(&mut self) -> (&mut Engine<'m>, &mut O) {
        (&mut self.server, &mut self.out)
    }

    /// The sink.
    pub fn out(&mut self) -> &mut O {
        &mut self.out
    }
}

impl<S: Storage, const N: usize> Session<'_, Lines<S>, N> {
    /// The bytes to send.
    pub fn pending(&self) -> &[u8] {
        self.out.pending()
    }

    /// Says that the first `n` pending bytes were sent.
    pub fn sent(&mut self, n: usize) {
        self.out.sent(n);
    }

    /// Begins anew for another client on the same wire: call it when the wire tells that a client has gone (DTR of USB's
    /// serial class falls, the cable is unplugged, a break), or to use a session again whose input has ended.
    ///
    /// Drops everything of the client before: the line that was begun, lines that wait, bytes that are pending, the rest of
    /// a reply that goes out in windows or of a batch, requests in flight, questions, subscriptions, listens. The tokens of
    /// its requests are stale, and the handlers are not told. The lent buffers, and what the server was configured with,
    /// stay. Bytes that were read but not [`filled`](Session::filled) in, or sent and not yet on the wire, are the caller's to
    /// drop.
    ///
    /// For wires that do not tell see [`reopening`](crate::server::Server::reopening).
    pub fn new_peer(&mut self) {
        self.input.clear();
        self.out.clear();
        self.server.drop_batch();
        if let Some(token) = self.streaming.take() {
            self.server.close(token);
        }
        self.server.forget_peer();
        self.ended = false;
    }
}

/// One line: a message, or too long to be one.
fn handle<S>(
    line: Line<'_>,
    service: &Service<'_, S>,
    state: &mut S,
    server: &mut Engine<'_>,
    out: &mut dyn Out,
) -> Result<Step, Full> {
    match line {
        Line::Message(message) => service.dispatch(state, message, server, out),
        _ => server.refuse_too_long(out).map(|()| Step::Handled),
    }
}

/// While the sink is held by a reply in windows, messages that need no room are handled all the same; whether there
/// was one.
fn quiet<S>(
    input: &mut LineBuffer<'_>,
    service: &Service<'_, S>,
    state: &mut S,
    server: &mut Engine<'_>,
    out: &mut dyn Out,
) -> bool {
    let Some(line) = input.peek() else { return false };
    // Everything that writes is refused by the held sink, and nothing has changed then.
    let handled = handle(line, service, state, server, out).is_ok();
    if handled {
        input.consume();
    }
    handled
}

/// After the end of the input: a last line without its newline, then what is owed to open questions and listens.
fn last_words<S>(
    input: &mut LineBuffer<'_>,
    service: &Service<'_, S>,
    state: &mut S,
    server: &mut Engine<'_>,
    out: &mut dyn Out,
) -> Option<Result<Step, Full>> {
    let rest = input.rest();
    if crate::json::Raw::parse(rest).is_ok() {
        let step = service.dispatch(state, rest, server, out);
        if step != Err(Full::Now) {
            input.clear();
        }
        return Some(step);
    }
    // A message that was cut off is none.
    input.clear();
    server.end_of_input();
    server.ready().map(|token| service.resume(state, token, server, out))
}

/// Writes what was published.
fn tell<S>(server: &mut Engine<'_>, service: &Service<'_, S>, out: &mut dyn Out) -> Next {
    match server.pull(service.about(), out) {
        Pull::More => Next::Write,
        // What is too large for the sink goes unsaid; it must not stop the input.
        _ => Next::Read,
    }
}
