//! Messages as bodies and as events: the framings of HTTP.

use mcp_sansio::frame::{Event, sse};
use mcp_sansio::sink::{Full, Kind, Mark, Out, Sink};

use super::answer::{Answer, Fields, Phase};
use super::status::Status;

/// One JSON message as the body of the answer. What it is decides its status.
///
/// A result that goes out in windows, or a batch, is sent in chunks; anything else with its length. A request or a
/// notification has no place here: [`Full::Never`].
///
/// ```
/// use mcp_sansio::sink::{Kind, Out, Sink};
/// use mcp_sansio_http::wire::{Answer, BodyOut, Connection, Limits, Status, Step};
///
/// let (mut input, mut output) = ([0; 256], [0; 256]);
/// let mut connection = Connection::<8>::new(&mut input, &mut output, Limits::default());
/// let request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
/// connection.space()[..request.len()].copy_from_slice(request);
/// connection.filled(request.len());
/// assert_eq!(connection.step(0), Step::Request);
///
/// let status = |kind: Kind| match kind {
///     Kind::Error(-32601) => Status::NOT_FOUND,
///     _ => Status::OK,
/// };
/// let mut out = BodyOut::new(connection.answer(), &status, &[]);
/// out.begin(Kind::Error(-32601))?;
/// out.put(b"{}")?;
/// out.end();
/// let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n";
/// assert_eq!(connection.pending(), [head, "{}"].concat().as_bytes());
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
pub struct BodyOut<'a, 'm> {
    answer: &'a mut Answer<'m>,
    status: &'a dyn Fn(Kind) -> Status,
    fields: Fields<'a>,
}

impl<'a, 'm> BodyOut<'a, 'm> {
    /// One message as the body of `answer`, with the status that `status` gives for its kind and with more `fields`
    /// in its head.
    #[must_use]
    pub fn new(answer: &'a mut Answer<'m>, status: &'a dyn Fn(Kind) -> Status, fields: Fields<'a>) -> Self {
        BodyOut { answer, status, fields }
    }
}

impl Sink for BodyOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.answer.put(bytes)
    }

    fn room(&self) -> usize {
        match self.answer.phase {
            Phase::Owed => self.answer.room_after(Answer::body_head(self.fields)),
            _ => self.answer.room(),
        }
    }
}

impl Out for BodyOut<'_, '_> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        let flows = match kind {
            Kind::Request | Kind::Notification => return Err(Full::Never),
            _ if self.answer.held => return Err(Full::Now),
            Kind::Streamed | Kind::Batch => true,
            _ => false,
        };
        self.answer.begin_body((self.status)(kind), self.fields, flows)
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
        self.answer.capacity_after(Answer::body_head(self.fields))
    }
}

/// One message as a body whose status and headers are known only afterwards: [`Answer::finish`] writes them, in front
/// of the body, into room that was left there. So the head may depend on how the handling went.
///
/// What goes out in windows, requests and notifications have no place here: [`Full::Never`].
///
/// ```
/// use mcp_sansio::sink::{Kind, Out, Sink};
/// use mcp_sansio_http::wire::{Connection, DraftOut, Limits, Status, Step};
///
/// let (mut input, mut output) = ([0; 256], [0; 256]);
/// let mut connection = Connection::<8>::new(&mut input, &mut output, Limits::default());
/// let request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
/// connection.space()[..request.len()].copy_from_slice(request);
/// connection.filled(request.len());
/// assert_eq!(connection.step(0), Step::Request);
///
/// let mut out = DraftOut::new(connection.answer());
/// out.begin(Kind::Result)?;
/// out.put(b"{}")?;
/// out.end();
/// assert_eq!(connection.pending(), b"");
/// connection.answer().finish(Status::OK, &[("Mcp-Session-Id", "7")])?;
/// assert_eq!(connection.pending(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nMcp-Session-Id: 7\r\n\r\n{}");
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
#[derive(Debug)]
pub struct DraftOut<'a, 'm> {
    answer: &'a mut Answer<'m>,
}

impl<'a, 'm> DraftOut<'a, 'm> {
    /// One message as the body of `answer`.
    #[must_use]
    pub const fn new(answer: &'a mut Answer<'m>) -> Self {
        DraftOut { answer }
    }
}

impl Sink for DraftOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.answer.put(bytes)
    }

    fn room(&self) -> usize {
        self.answer.room_for_draft()
    }
}

impl Out for DraftOut<'_, '_> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        match kind {
            Kind::Request | Kind::Notification | Kind::Streamed => Err(Full::Never),
            _ if self.answer.held => Err(Full::Now),
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

/// Each message as an event of an open stream.
///
/// How the data is cut into `put`s makes no difference: a message has no newlines. One without a stream is refused
/// with [`Full::Never`]: [`Answer::stream`] comes first.
///
/// ```
/// use mcp_sansio::frame::{Event, sse};
/// use mcp_sansio::sink::{Kind, Out, Sink};
/// use mcp_sansio_http::wire::{Connection, EventOut, Limits, Step};
///
/// let (mut input, mut output) = ([0; 256], [0; 256]);
/// let mut connection = Connection::<8>::new(&mut input, &mut output, Limits::default());
/// let request = b"GET /mcp HTTP/1.0\r\n\r\n"; // an old client: no chunks
/// connection.space()[..request.len()].copy_from_slice(request);
/// connection.filled(request.len());
/// assert_eq!(connection.step(0), Step::Request);
///
/// connection.answer().stream(&[])?;
/// let n = connection.pending().len();
/// connection.sent(n); // the head
/// let mut out = EventOut::new(connection.answer(), Event::new().id("a-1"));
/// out.begin(Kind::Notification)?;
/// out.put(b"{}")?;
/// out.end();
/// sse::comment("", connection.answer())?;
/// connection.answer().end_stream();
/// assert_eq!(connection.pending(), b"id: a-1\ndata: {}\n\n: \n\n");
/// assert_eq!(connection.step(0), Step::Close);
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
pub struct EventOut<'a, 'm> {
    answer: &'a mut Answer<'m>,
    fields: Event<'a>,
    /// Where the message that has been begun starts.
    open: Option<usize>,
}

impl<'a, 'm> EventOut<'a, 'm> {
    /// Messages as events of `answer`, each with the `fields`. To number them, make a new one for each.
    #[must_use]
    pub const fn new(answer: &'a mut Answer<'m>, fields: Event<'a>) -> Self {
        EventOut { answer, fields, open: None }
    }

    fn around(&self) -> usize {
        if self.open.is_some() { sse::END.len() } else { self.fields.open_len() + sse::END.len() }
    }
}

impl Sink for EventOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.room() < bytes.len() { Err(Full::Now) } else { self.answer.put(bytes) }
    }

    fn room(&self) -> usize {
        self.answer.room().saturating_sub(self.around())
    }
}

impl Out for EventOut<'_, '_> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        if !self.answer.is_stream() {
            return Err(Full::Never);
        }
        if self.answer.held || self.answer.room() <= self.around() {
            return Err(Full::Now);
        }
        let at = self.answer.mark().at();
        self.fields.open(self.answer)?;
        self.open = Some(at);
        Ok(())
    }

    fn end(&mut self) {
        // This room was kept back.
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
