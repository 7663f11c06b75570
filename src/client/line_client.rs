//! A client on a line transport in one value: line buffer, client, sink, and the loop between them.

#[cfg(feature = "alloc")]
use super::ClientInfo;
use super::{Client, ClientEvent, PendingId, ProtocolViolation, Request, SendError, TransportError};
use super::{ServerRequestId, result::ClientResult};
use crate::error::RpcError;
use crate::frame::{LineBuffer, LineStatus, NextStep};
use crate::json::{Raw, Scanner};
use crate::sink::{FullError, Out};
use crate::time::Millis;

/// The event handler of an application. Every `FnMut(ClientEvent<'_>, &mut ClientHandle<'_, '_>)` implements it.
pub trait ClientHandler {
    /// Handles an event. Answer requests of the server through `handle`, now or later.
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>);
}

impl<F: FnMut(ClientEvent<'_>, &mut ClientHandle<'_, '_>) + ?Sized> ClientHandler for F {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        self(event, handle);
    }
}

/// A client together with its sink, to send messages from an event handler.
pub struct ClientHandle<'l, 'm> {
    /// The client.
    pub client: &'l mut Client<'m>,
    /// The sink for its messages.
    pub out: &'l mut dyn Out,
}

impl ClientHandle<'_, '_> {
    /// Sends a request as [`Client::send`](super::Client::send). Its time limit counts from the last time that
    /// was [set](super::Client::now).
    ///
    /// # Errors
    /// As [`Client::send`](super::Client::send).
    pub fn send(&mut self, request: &Request<'_>) -> Result<PendingId, SendError> {
        self.client.send(request, self.out)
    }

    /// Answers a request of the server as [`Client::reply`](super::Client::reply).
    ///
    /// # Errors
    /// As [`Client::reply`](super::Client::reply).
    pub fn reply(&mut self, question: ServerRequestId, reply: &ClientResult<'_>) -> Result<(), SendError> {
        self.client.reply(question, reply, self.out)
    }

    /// Refuses a request of the server as [`Client::refuse`](super::Client::refuse).
    ///
    /// # Errors
    /// As [`Client::refuse`](super::Client::refuse).
    pub fn refuse(&mut self, question: ServerRequestId, refusal: &RpcError<'_>) -> Result<(), SendError> {
        self.client.refuse(question, refusal, self.out)
    }

    /// Cancels a request or a subscription as [`Client::cancel`](super::Client::cancel).
    ///
    /// # Errors
    /// As [`Client::cancel`](super::Client::cancel).
    pub fn cancel(&mut self, token: PendingId, reason: Option<&str>) -> Result<(), SendError> {
        self.client.cancel(token, reason, self.out)
    }

    /// Takes one message, or the messages of a batch from index `done` on. Counts in `done` the messages of the
    /// batch that it has taken.
    ///
    /// # Errors
    /// [`FullError::Now`]: free some space, then call again with the same message and the same `done`. [`FullError::Never`]: an
    /// answer to the message is larger than the whole sink.
    pub fn receive(
        &mut self,
        exchange: Option<u64>,
        message: &[u8],
        done: &mut usize,
        handler: &mut dyn ClientHandler,
    ) -> Result<(), FullError> {
        match self.client.receive_on(exchange, message, self.out)? {
            Some(ClientEvent::Batch(array)) => {
                for message in array.items().skip(*done) {
                    let event = self.client.receive_on(exchange, message.as_bytes(), self.out)?;
                    // A batch must not contain a batch.
                    let is_batch = matches!(event, Some(ClientEvent::Batch(_)));
                    let broken = is_batch.then_some(ClientEvent::Ignored(ProtocolViolation::NoMessage));
                    broken.or(event).into_iter().for_each(|event| handler.event(event, self));
                    *done += 1;
                }
            }
            event => event.into_iter().for_each(|event| handler.event(event, self)),
        }
        Ok(())
    }

    /// Calls [`Client::advance`](super::Client::advance) until it returns no event.
    ///
    /// # Errors
    /// [`FullError::Now`]: free some space, then call again.
    pub fn advance(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> Result<(), FullError> {
        loop {
            match self.client.advance(now, self.out) {
                Ok(Some(event)) => handler.event(event, self),
                Ok(None) => return Ok(()),
                Err(FullError::Now) => return Err(FullError::Now),
                // The client has ended the request of the message that is too large; the next turn reports it.
                Err(FullError::Never) => {}
            }
        }
    }
}

/// A client for stdio and serial lines
/// ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio)). It does no I/O.
/// Each turn:
///
/// 1. [`run`](LineClient::run) with the time.
/// 2. Write the [`pending`](crate::sink::LineSink::pending) bytes of [`out`](LineClient::out), and call
///    [`sent`](crate::sink::LineSink::sent) with their number.
/// 3. Wait until there is input or until [`next_deadline`](super::Client::next_deadline).
/// 4. Read into [`space`](LineClient::space), and call [`filled`](LineClient::filled) with the number of bytes.
///
/// ```
/// use mcp_sansio::client::{Client, ClientEvent, ClientHandle, PendingRequest, ClientInfo, LineClient};
/// use mcp_sansio::frame::LineBuffer;
/// use mcp_sansio::sink::{LineSink, SliceStorage};
///
/// let info = ClientInfo::new("demo", "1.0");
/// let (mut input, mut output, mut held, mut slots) = ([0; 2048], [0; 1024], [0; 512], [PendingRequest::FREE; 4]);
/// let client = Client::new(&info, &mut slots).held(&mut held).timeout(10_000);
/// let mut session = LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
/// session.client.connect();
/// let _ = session.run(0, &mut |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| println!("{event:?}"));
/// assert!(session.out.pending().ends_with(b"}\n")); // the probe: write it to the server
/// ```
#[derive(Debug)]
pub struct LineClient<'m, O> {
    input: LineBuffer<'m>,
    /// The client.
    pub client: Client<'m>,
    /// The sink, whose pending bytes are to be sent.
    pub out: O,
    /// The number of messages of the current batch that were taken.
    done: usize,
    ended: bool,
}

#[cfg(feature = "alloc")]
impl<'m, O: Out> LineClient<'m, O> {
    /// Returns a session whose memory grows up to limits: `message_limit` bytes for a line, and those of
    /// [`Client::growing`] with a timeout of one minute.
    #[must_use]
    pub fn growing(info: &'m ClientInfo<'m>, message_limit: usize, out: O) -> Self {
        LineClient::new(LineBuffer::new(crate::memory::Store::growing(message_limit)), Client::growing(info), out)
    }
}

impl<'m, O: Out> LineClient<'m, O> {
    /// Returns a session of these parts.
    #[must_use]
    pub const fn new(input: LineBuffer<'m>, client: Client<'m>, out: O) -> Self {
        LineClient { input, client, out, done: 0, ended: false }
    }

    /// Returns the free space of the line buffer. Not empty after [`run`](LineClient::run) returned [`NextStep::Read`].
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// Reports that `n` bytes were read into [`space`](LineClient::space).
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Reports the end of the input. The next [`run`](LineClient::run) takes the rest of the input, then ends all
    /// requests in flight.
    pub fn end_of_input(&mut self) {
        self.ended = true;
    }

    /// Opens a lost connection again as [`Client::reconnect`](super::Client::reconnect). Drops the input that was
    /// not taken. The caller drops the bytes in the sink.
    pub fn reconnect(&mut self, why: TransportError) {
        self.input.clear();
        (self.done, self.ended) = (0, false);
        self.client.reconnect(why);
    }

    /// Gives up the probe for `initialize` on another connection, as
    /// [`Client::give_up_probe`](super::Client::give_up_probe) does. Drops the input that was not taken. The caller drops the
    /// bytes in the sink.
    pub fn give_up_probe(&mut self) -> bool {
        let gives_up = self.client.give_up_probe();
        if gives_up {
            self.input.clear();
            (self.done, self.ended) = (0, false);
        }
        gives_up
    }

    /// Sets the time, takes the input and writes the client's messages. Gives each event to `handler`.
    ///
    /// After [`NextStep::Write`] go on reading too: the server may read only after the client has read its output.
    pub fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> NextStep {
        let mut handle = ClientHandle { client: &mut self.client, out: &mut self.out };
        handle.client.now = now;
        loop {
            // After the end of the input the server reads nothing more. A full sink stops only messages that need
            // room, because a server may read only after the client has read its output.
            let waits = !self.ended && handle.advance(now, handler).is_err();
            let taken = match self.input.peek() {
                Some(LineStatus::Message(message)) => handle.receive(None, message, &mut self.done, handler),
                Some(LineStatus::TooLong { start }) => {
                    // Without an id the request ends at its deadline.
                    if let Some(id) = id_of(start) {
                        handle.client.lost(id, TransportError::TooLarge);
                    }
                    handler.event(ClientEvent::Ignored(ProtocolViolation::TooLong), &mut handle);
                    Ok(())
                }
                None if self.ended => {
                    let rest = self.input.rest();
                    // The last message may lack its newline. An answer to it cannot be sent any more.
                    if Raw::parse(rest).is_ok() {
                        let _ = handle.receive(None, rest, &mut 0, handler);
                    }
                    self.input.clear();
                    self.ended = false;
                    handle.client.end_of_input();
                    continue;
                }
                None => return if waits { NextStep::Write } else { NextStep::Read },
            };
            if taken == Err(FullError::Now) && !self.ended {
                return NextStep::Write;
            }
            self.input.consume();
            self.done = 0;
        }
    }

    /// Returns the client together with its sink.
    pub fn handle(&mut self) -> ClientHandle<'_, 'm> {
        ClientHandle { client: &mut self.client, out: &mut self.out }
    }
}

/// Returns the id of a response of which only the beginning is there. The ids of requests of the server do not
/// count: the message must be known to be a response.
fn id_of(start: &[u8]) -> Option<u64> {
    let mut scanner = Scanner::new(start);
    let (mut first, mut id) = (true, None);
    scanner.open().ok()?;
    while let Some(key) = scanner.key(&mut first).ok()? {
        // A message with a method is not a response.
        if key.eq_str("method") {
            return None;
        }
        // The value is not whole, but its key is there.
        if id.is_some() && (key.eq_str("result") || key.eq_str("error")) {
            return id;
        }
        let value = scanner.value().ok()?;
        if key.eq_str("id") {
            id = Some(value.u64()?);
        }
    }
    None
}
