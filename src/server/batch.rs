//! Batches (2024-11-05 and 2025-03-26): one array in, the answers that are ready out as one array.
//!
//! Elements are handled one after the other. When the sink is full in between, the place is remembered, so that the
//! same message can be given again and no element is handled twice.

use super::{Engine, Failure, Token, respond_failure};
use crate::json::{JsonKind, Raw};
use crate::protocol::Method;
use crate::rpc::{Envelope, Shape};
use crate::sink::{Full, Kind, Mark, Out, Sink};

/// How far a batch is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Elements that are done.
    pub(crate) done: u32,
    /// The array of answers has been begun.
    pub(crate) open: bool,
    /// An answer that goes out in windows.
    pub(crate) streaming: Option<Token>,
}

impl Batch {
    pub(crate) const NONE: Batch = Batch { done: 0, open: false, streaming: None };
}

impl Engine<'_> {
    /// An array came in: why it cannot be served.
    pub(crate) fn refuse_batch(&self, elements: Raw<'_>) -> Option<&'static str> {
        if !self.peer.revision.is_some_and(|revision| revision.has_batches()) {
            return Some("Invalid request: batches are not part of this revision");
        }
        elements.items().next().is_none().then_some("Invalid request: the batch is empty")
    }

    /// Gives up a batch that does not fit its sink, for those who cannot give the same message again.
    pub fn drop_batch(&mut self) {
        if let Some(token) = self.peer.batch.streaming {
            self.close(token);
        }
        self.peer.batch = Batch::NONE;
    }

    /// Refuses what must not be inside a batch; `false` if the element can be handled like any message.
    pub(crate) fn refuse_element(&self, element: Raw<'_>, out: &mut dyn Out) -> Result<bool, Full> {
        let mut id = self.no_id();
        if element.kind() == JsonKind::Object {
            let Ok(envelope) = Envelope::parse(element.as_bytes()) else { return Ok(false) };
            let Shape::Request { id: known, method } = envelope.shape() else { return Ok(false) };
            let legacy = Method::from_name(&method) != Method::Initialize && !envelope.meta.is_modern();
            if legacy {
                return Ok(false);
            }
            id = Some(known.as_bytes());
        }
        respond_failure(out, id, &Failure::invalid_request("Invalid request: not allowed inside a batch"))?;
        Ok(true)
    }
}

/// A sink that puts answers into an array. What is not an answer cannot stand in it: a notification or a request to the
/// client closes the array, and later answers begin another.
pub struct BatchOut<'o> {
    inner: &'o mut dyn Out,
    open: bool,
    /// Where the array was opened or closed last, for rolling back over it.
    turned: Option<usize>,
}

/// Room kept back for the closing bracket.
const BRACKET: usize = 1;

impl<'o> BatchOut<'o> {
    /// An array into `inner`; `open` if an earlier one was left open by [`leave`](BatchOut::leave).
    #[must_use]
    pub fn new(inner: &'o mut dyn Out, open: bool) -> Self {
        if open {
            inner.hold(false);
        }
        BatchOut { inner, open, turned: None }
    }

    /// Leaves the array open, to go on later; whether it is open.
    #[must_use]
    pub fn leave(self) -> bool {
        if self.open {
            self.inner.hold(true);
        }
        self.open
    }

    /// Ends the array, if there was any answer.
    pub fn finish(mut self) {
        self.close();
    }

    fn close(&mut self) {
        if self.open {
            self.turn(false);
            // `room` kept this byte back.
            let _ = self.inner.put(b"]");
            self.inner.end();
        }
    }
}

impl BatchOut<'_> {
    fn turn(&mut self, open: bool) {
        self.turned = Some(self.inner.mark().at());
        self.open = open;
    }
}

impl Sink for BatchOut<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.room() < bytes.len() { Err(Full::Now) } else { self.inner.put(bytes) }
    }

    fn room(&self) -> usize {
        match self.inner.room() {
            usize::MAX => usize::MAX,
            room => room.saturating_sub(BRACKET),
        }
    }
}

impl Out for BatchOut<'_> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        if self.inner.held() {
            return Err(Full::Now);
        }
        match kind {
            Kind::Result | Kind::Streamed | Kind::Error(_) | Kind::Refusal(_) if self.open => self.put(b","),
            Kind::Result | Kind::Streamed | Kind::Error(_) | Kind::Refusal(_) => {
                let before = self.inner.mark();
                self.inner.begin(Kind::Batch)?;
                self.turn(true);
                self.put(b"[").inspect_err(|_| self.roll_back(before))
            }
            _ => {
                self.close();
                self.inner.begin(kind)
            }
        }
    }

    fn end(&mut self) {
        if !self.open {
            self.inner.end();
        }
    }

    fn mark(&self) -> Mark {
        self.inner.mark()
    }

    fn roll_back(&mut self, mark: Mark) {
        self.inner.roll_back(mark);
        if self.turned.is_some_and(|turned| mark.at() <= turned) {
            self.open = !self.open;
            self.turned = None;
        }
    }

    fn hold(&mut self, on: bool) {
        self.inner.hold(on);
    }

    fn held(&self) -> bool {
        self.inner.held()
    }

    fn capacity(&self) -> usize {
        match self.inner.capacity() {
            usize::MAX => usize::MAX,
            capacity => capacity.saturating_sub(BRACKET),
        }
    }
}

impl core::fmt::Debug for BatchOut<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BatchOut").field("open", &self.open).finish_non_exhaustive()
    }
}
