//! Writes messages as bodies and as events.

use crate::sse::{self, SseEvent};
use mcp_sansio::sink::{FullError, Mark, MessageHead, Out, Sink};

use super::answer::{HeaderFields, Phase, ResponseBuffer};
use super::status::Status;

/// Writes one JSON message as the body of the answer. The kind of message decides the status.
///
/// A result that goes out in windows, and a batch, are sent in chunks; all else with its length. Requests and
/// notifications fail with [`FullError::Never`].
///
/// ```
/// use mcp_sansio::sink::{MessageHead, Out, Sink};
/// use mcp_sansio_http::http1::{ResponseBuffer, BodyOut, Connection, ConnectionLimits, Status, ConnectionStep};
///
/// let (mut input, mut output) = ([0; 256], [0; 256]);
/// let mut connection = Connection::<8>::new(&mut input, &mut output, ConnectionLimits::default());
/// let request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
/// connection.space()[..request.len()].copy_from_slice(request);
/// connection.filled(request.len());
/// assert_eq!(connection.step(0), ConnectionStep::Request);
///
/// let status = |head: MessageHead<'_>| match head {
///     MessageHead::Error(-32601) => Status::NOT_FOUND,
///     _ => Status::OK,
/// };
/// let mut out = BodyOut::new(connection.answer(), &status, &[]);
/// out.begin(MessageHead::Error(-32601))?;
/// out.put(b"{}")?;
/// out.end();
/// let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n";
/// assert_eq!(connection.pending(), [head, "{}"].concat().as_bytes());
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
pub struct BodyOut<'a, 'm> {
    answer: &'a mut ResponseBuffer<'m>,
    status: &'a dyn Fn(MessageHead<'_>) -> Status,
    fields: HeaderFields<'a>,
}

impl<'a, 'm> BodyOut<'a, 'm> {
    /// Writes one message as the body of `answer`. `status` gives the status for its kind; `fields` are more
    /// headers.
    #[must_use]
    pub fn new(
        answer: &'a mut ResponseBuffer<'m>,
        status: &'a dyn Fn(MessageHead<'_>) -> Status,
        fields: HeaderFields<'a>,
    ) -> Self {
        BodyOut { answer, status, fields }
    }
}

impl Sink for BodyOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.answer.put(bytes)
    }

    fn room(&self) -> usize {
        match self.answer.phase {
            Phase::Owed => self.answer.room_after(ResponseBuffer::body_head(self.fields)),
            _ => self.answer.room(),
        }
    }
}

impl Out for BodyOut<'_, '_> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        let flows = match head {
            _ if head.is_unasked() => return Err(FullError::Never),
            _ if self.answer.held => return Err(FullError::Now),
            MessageHead::Streamed | MessageHead::Batch => true,
            _ => false,
        };
        self.answer.begin_body((self.status)(head), self.fields, flows)
    }

    fn end(&mut self) {
        self.answer.end_body();
    }

    fn mark(&self) -> Mark {
        self.answer.mark()
    }

    fn roll_back(&mut self, mark: Mark) {
        self.answer.roll_back(mark);
    }

    fn hold(&mut self, on: bool) {
        self.answer.held = on;
    }

    fn held(&self) -> bool {
        self.answer.held
    }

    fn capacity(&self) -> usize {
        self.answer.capacity_after(ResponseBuffer::body_head(self.fields))
    }
}

/// Writes one message as a body whose status and headers are known only later. [`ResponseBuffer::finish`] writes them
/// into room before the body, so the head may depend on the result of the handler.
///
/// Results in windows, requests and notifications fail with [`FullError::Never`].
///
/// ```
/// use mcp_sansio::sink::{MessageHead, Out, Sink};
/// use mcp_sansio_http::http1::{Connection, DraftOut, ConnectionLimits, Status, ConnectionStep};
///
/// let (mut input, mut output) = ([0; 256], [0; 256]);
/// let mut connection = Connection::<8>::new(&mut input, &mut output, ConnectionLimits::default());
/// let request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
/// connection.space()[..request.len()].copy_from_slice(request);
/// connection.filled(request.len());
/// assert_eq!(connection.step(0), ConnectionStep::Request);
///
/// let mut out = DraftOut::new(connection.answer());
/// out.begin(MessageHead::Result)?;
/// out.put(b"{}")?;
/// out.end();
/// assert_eq!(connection.pending(), b"");
/// connection.answer().finish(Status::OK, &[("Mcp-Session-Id", "7")])?;
/// assert_eq!(connection.pending(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: 7\r\n\r\n{}");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
#[derive(Debug)]
pub struct DraftOut<'a, 'm> {
    answer: &'a mut ResponseBuffer<'m>,
}

impl<'a, 'm> DraftOut<'a, 'm> {
    /// Writes one message as the body of `answer`.
    #[must_use]
    pub const fn new(answer: &'a mut ResponseBuffer<'m>) -> Self {
        DraftOut { answer }
    }
}

impl Sink for DraftOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.answer.put(bytes)
    }

    fn room(&self) -> usize {
        self.answer.room_for_draft()
    }
}

impl Out for DraftOut<'_, '_> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        match head {
            MessageHead::Streamed => Err(FullError::Never),
            _ if head.is_unasked() => Err(FullError::Never),
            _ if self.answer.held => Err(FullError::Now),
            _ => self.answer.begin_draft(),
        }
    }

    fn end(&mut self) {}

    fn mark(&self) -> Mark {
        self.answer.mark()
    }

    fn roll_back(&mut self, mark: Mark) {
        self.answer.roll_back(mark);
    }

    fn hold(&mut self, on: bool) {
        self.answer.held = on;
    }

    fn held(&self) -> bool {
        self.answer.held
    }

    fn capacity(&self) -> usize {
        self.answer.capacity_for_draft()
    }
}

/// Writes each message as an event of an open stream.
///
/// A message has no newlines, so its parts may be cut anywhere. Without a stream, messages fail with
/// [`FullError::Never`]: call [`ResponseBuffer::stream`] first.
///
/// ```
/// use mcp_sansio_http::sse::{self, SseEvent};
/// use mcp_sansio::sink::{MessageHead, Out, Sink};
/// use mcp_sansio_http::http1::{Connection, EventOut, ConnectionLimits, ConnectionStep};
///
/// let (mut input, mut output) = ([0; 256], [0; 256]);
/// let mut connection = Connection::<8>::new(&mut input, &mut output, ConnectionLimits::default());
/// let request = b"GET /mcp HTTP/1.0\r\n\r\n"; // an old client: no chunks
/// connection.space()[..request.len()].copy_from_slice(request);
/// connection.filled(request.len());
/// assert_eq!(connection.step(0), ConnectionStep::Request);
///
/// connection.answer().stream(&[])?;
/// let n = connection.pending().len();
/// connection.sent(n); // the head
/// let mut out = EventOut::new(connection.answer(), SseEvent::new().id("a-1"));
/// out.begin(MessageHead::Notification)?;
/// out.put(b"{}")?;
/// out.end();
/// sse::comment("", connection.answer())?;
/// connection.answer().end_stream();
/// assert_eq!(connection.pending(), b"id: a-1\ndata: {}\n\n: \n\n");
/// assert_eq!(connection.step(0), ConnectionStep::Close);
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
pub struct EventOut<'a, 'm> {
    answer: &'a mut ResponseBuffer<'m>,
    fields: SseEvent<'a>,
    /// The start of the message that is being written.
    open: Option<usize>,
}

impl<'a, 'm> EventOut<'a, 'm> {
    /// Writes messages as events of `answer`, each with the `fields`. To number the events, make a new one for
    /// each.
    #[must_use]
    pub const fn new(answer: &'a mut ResponseBuffer<'m>, fields: SseEvent<'a>) -> Self {
        EventOut { answer, fields, open: None }
    }

    fn around(&self) -> usize {
        if self.open.is_some() { sse::END.len() } else { self.fields.open_len() + sse::END.len() }
    }
}

impl Sink for EventOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if self.room() < bytes.len() { Err(FullError::Now) } else { self.answer.put(bytes) }
    }

    fn room(&self) -> usize {
        self.answer.room().saturating_sub(self.around())
    }
}

impl Out for EventOut<'_, '_> {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        if !self.answer.is_stream() {
            return Err(FullError::Never);
        }
        if self.answer.held || self.answer.room() <= self.around() {
            return Err(FullError::Now);
        }
        let at = self.answer.mark().at();
        self.fields.open(self.answer)?;
        self.open = Some(at);
        Ok(())
    }

    fn end(&mut self) {
        // The room for this was reserved.
        let _ = self.answer.put(sse::END);
        self.open = None;
    }

    fn mark(&self) -> Mark {
        self.answer.mark()
    }

    fn roll_back(&mut self, mark: Mark) {
        self.answer.roll_back(mark);
        self.open = self.open.filter(|at| mark.at() > *at);
    }

    fn hold(&mut self, on: bool) {
        self.answer.held = on;
    }

    fn held(&self) -> bool {
        self.answer.held
    }

    fn capacity(&self) -> usize {
        self.answer.capacity_after(self.fields.open_len() + sse::END.len())
    }
}

impl core::fmt::Debug for BodyOut<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BodyOut").field("answer", &self.answer).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for EventOut<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EventOut").field("answer", &self.answer).finish_non_exhaustive()
    }
}
