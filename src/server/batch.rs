//! [Batches](https://modelcontextprotocol.io/specification/2025-03-26/basic#batching) of 2024-11-05 and 2025-03-26:
//! one array in, the answers that are ready out as one array.
//!
//! The elements are handled one after the other. If the sink becomes full, the peer keeps the [`BatchPosition`]: the
//! caller gives the same message again, and no element is handled twice.

use super::{RequestToken, RpcError, Server, WINDOWS, respond_failure, words};
use crate::json::{JsonKind, Raw};
use crate::protocol::Method;
use crate::rpc::{Envelope, MessageShape};
use crate::sink::{FullError, Mark, MessageHead, Out, Sink};

/// The position in the batch that is being handled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchPosition {
    /// The number of elements that are done. One whose reply goes out in windows counts as done.
    pub(crate) done: u32,
    /// The array of answers has been begun.
    pub(crate) open: bool,
}

impl Server<'_> {
    /// Returns the reason why an array cannot be served.
    pub(crate) fn refuse_batch(&self, elements: Raw<'_>) -> Option<&'static str> {
        if !self.peer.revision().is_some_and(|revision| revision.has_batches()) {
            return Some("Invalid request: batches are not part of this revision");
        }
        elements.items().next().is_none().then_some("Invalid request: the batch is empty")
    }

    /// Gives up a batch that does not fit the sink. Only for callers that cannot give the same message again.
    pub fn drop_batch(&mut self) {
        if let Some(token) = self.streaming_element() {
            self.forget(token);
        }
        self.peer.batch = None;
    }

    /// Returns whether a batch is being handled.
    pub(crate) fn has_batch(&self) -> bool {
        self.peer.batch.is_some()
    }

    /// Returns the element of the batch whose reply goes out in windows.
    pub(crate) fn streaming_element(&self) -> Option<RequestToken> {
        self.streaming(self.transport_id).filter(|_| WINDOWS && self.has_batch())
    }

    /// Returns the position in the batch, which begins if none is being handled.
    pub(crate) fn batch(&mut self) -> &mut BatchPosition {
        self.peer.batch.get_or_insert_default()
    }

    /// Ends the batch.
    pub(crate) fn end_batch(&mut self) {
        self.peer.batch = None;
    }

    /// Refuses an element that a batch must not have. Returns `false` if the element can be handled like any message.
    pub(crate) fn refuse_element(&self, element: Raw<'_>, out: &mut dyn Out) -> Result<bool, FullError> {
        let mut id = self.no_id();
        if element.kind() == JsonKind::Object {
            let Ok(envelope) = Envelope::parse(element.as_bytes()) else { return Ok(false) };
            let MessageShape::Request { id: known, method } = envelope.shape() else { return Ok(false) };
            if Method::from_name(&method) != Method::Initialize && !envelope.meta.is_modern() {
                return Ok(false);
            }
            id = Some(known.as_bytes());
        }
        respond_failure(out, id, &RpcError::invalid_request(words("Invalid request: not allowed inside a batch")))?;
        Ok(true)
    }
}

/// A sink that puts responses into an array. A notification or a request to the client closes the array, and later
/// responses begin another one.
pub struct BatchOut<'o> {
    inner: &'o mut dyn Out,
    open: bool,
    /// The position at which the array was last opened or closed, for rolling back over it.
    turned: Option<usize>,
}

/// Room kept back for the closing bracket.
const BRACKET: usize = 1;

impl<'o> BatchOut<'o> {
    /// Makes an array in `inner`; `open` if [`leave`](BatchOut::leave) left it open.
    #[must_use]
    pub fn new(inner: &'o mut dyn Out, open: bool) -> Self {
        if open {
            inner.hold(false);
        }
        BatchOut { inner, open, turned: None }
    }

    /// Leaves the array, to continue later. Returns whether it is open.
    #[must_use]
    pub fn leave(self) -> bool {
        if self.open {
            self.inner.hold(true);
        }
        self.open
    }

    /// Ends the array, if there was any response.
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

    fn turn(&mut self, open: bool) {
        self.turned = Some(self.inner.mark().at());
        self.open = open;
    }
}

impl Sink for BatchOut<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if self.room() < bytes.len() { Err(FullError::Now) } else { self.inner.put(bytes) }
    }

    fn room(&self) -> usize {
        match self.inner.room() {
            usize::MAX => usize::MAX,
            room => room.saturating_sub(BRACKET),
        }
    }
}

impl Out for BatchOut<'_> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        if self.inner.held() {
            return Err(FullError::Now);
        }
        if head.is_unasked() || matches!(head, MessageHead::Batch) {
            self.close();
            return self.inner.begin(head);
        }
        if self.open {
            return self.put(b",");
        }
        let before = self.inner.mark();
        self.inner.begin(MessageHead::Batch)?;
        self.turn(true);
        self.put(b"[").inspect_err(|_| self.roll_back(before))
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

crate::debug_fields!(impl for BatchOut<'_> { open });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{LineSink, SliceStorage};

    fn say(out: &mut dyn Out, head: MessageHead<'_>, text: &str) {
        out.begin(head).unwrap();
        out.put(text.as_bytes()).unwrap();
        out.end();
    }

    /// An array begins and ends again with what is taken back.
    #[test]
    fn a_message_that_is_taken_back_leaves_the_array_as_it_was() {
        let mut space = [0; 64];
        let mut inner = LineSink::new(SliceStorage::new(&mut space));
        let mut out = BatchOut::new(&mut inner, false);
        let before = out.mark();
        say(&mut out, MessageHead::Result, "1");
        out.roll_back(before);
        out.roll_back(before);
        say(&mut out, MessageHead::Result, "2");
        let after = out.mark();
        say(&mut out, MessageHead::Result, "3");
        out.roll_back(after);
        say(&mut out, MessageHead::Result, "4");
        let after = out.mark();
        say(&mut out, MessageHead::Notification, "n");
        out.roll_back(after);
        out.roll_back(after);
        say(&mut out, MessageHead::Result, "5");
        say(&mut out, MessageHead::Notification, "n");
        // The array stays open until another turn.
        say(&mut out, MessageHead::Result, "6");
        let is_open = out.leave();
        assert!(is_open && inner.held());
        let mut out = BatchOut::new(&mut inner, is_open);
        say(&mut out, MessageHead::Result, "7");
        out.finish();
        assert_eq!((inner.pending(), inner.held()), (&b"[2,4,5]\nn\n[6,7]\n"[..], false));
        let out = BatchOut::new(&mut inner, false);
        assert!(!out.leave() && !inner.held());
    }

    /// The last byte is for the bracket.
    #[test]
    fn an_array_has_room_for_its_end() {
        let mut space = [0; 16];
        let mut inner = LineSink::new(SliceStorage::new(&mut space));
        let (room, capacity) = (inner.room(), inner.capacity());
        let mut out = BatchOut::new(&mut inner, false);
        assert_eq!((out.room(), out.capacity()), (room - 1, capacity - 1));
        out.begin(MessageHead::Result).unwrap();
        let left = out.room();
        assert_eq!(out.put(&b"x".repeat(left + 1)), Err(FullError::Now));
        assert_eq!((out.put(&b"x".repeat(left)), out.room()), (Ok(()), 0));
        out.end();
        assert_eq!(out.begin(MessageHead::Result), Err(FullError::Now));
        out.finish();
        assert!(inner.pending().starts_with(b"[xx") && inner.pending().ends_with(b"x]\n"));
        let mut space = [0; 16];
        let mut inner = LineSink::new(SliceStorage::new(&mut space));
        let mut out = BatchOut::new(&mut inner, false);
        out.hold(true);
        assert!(out.held() && out.begin(MessageHead::Result).is_err());
        out.hold(false);
        assert!(!out.held() && out.begin(MessageHead::Result).is_ok());
    }
}
