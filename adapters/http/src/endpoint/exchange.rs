//! The answer to one request: a body if it is the first thing that is said, else an event stream.

use mcp_sansio::Full;
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

use super::stream::StreamOut;

/// Where the answer goes.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Nothing has been said.
    Undecided,
    /// One JSON body; what it is decides the status.
    Body(Kind),
    /// Events.
    Stream,
}

/// The sink of one request. The first message decides: a result or an error becomes the body, anything else opens the
/// stream.
pub(crate) struct Exchange<'x, 's, 'm> {
    pub(crate) mode: Mode,
    /// Something had to be said that a body cannot carry, and there was no stream.
    pub(crate) wanted_stream: bool,
    body: &'x mut dyn Out,
    /// A stream that is opened if need be; none where there is none left, or the client takes none.
    stream: Option<StreamOut<'s, 'm>>,
    /// A result becomes an event even if it comes first.
    prefers_stream: bool,
}

impl<'x, 's, 'm> Exchange<'x, 's, 'm> {
    pub(crate) fn new(body: &'x mut dyn Out, stream: Option<StreamOut<'s, 'm>>, prefers_stream: bool) -> Self {
        let prefers_stream = prefers_stream && stream.is_some();
        Exchange { mode: Mode::Undecided, wanted_stream: false, body, stream, prefers_stream }
    }

    fn current(&self) -> Option<&dyn Out> {
        match (&self.mode, &self.stream) {
            (Mode::Stream, Some(stream)) => Some(stream),
            (Mode::Stream, None) => None,
            _ => Some(&*self.body),
        }
    }

    fn current_mut(&mut self) -> Option<&mut dyn Out> {
        match (&self.mode, &mut self.stream) {
            (Mode::Stream, Some(stream)) => Some(stream),
            (Mode::Stream, None) => None,
            _ => Some(&mut *self.body),
        }
    }
}

impl Exchange<'_, '_, '_> {
    /// Takes back whatever has been said.
    pub(crate) fn clear(&mut self) {
        self.body.hold(false);
        self.body.roll_back(Mark::new(0));
        if let Some(stream) = &mut self.stream {
            stream.clear();
        }
        self.mode = Mode::Undecided;
    }
}

impl Sink for Exchange<'_, '_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.current_mut().map_or(Err(Full::Never), |out| out.put(bytes))
    }

    fn room(&self) -> usize {
        self.current().map_or(0, |out| out.room())
    }
}

impl Out for Exchange<'_, '_, '_> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        match (&self.mode, kind) {
            // Of a batch, the answers that come later follow as events.
            (Mode::Undecided, Kind::Result | Kind::Batch)
                if self.prefers_stream || (kind == Kind::Batch && self.stream.is_some()) =>
            {
                self.stream.as_mut().ok_or(Full::Never)?.begin(kind)?;
                self.mode = Mode::Stream;
                Ok(())
            }
            (Mode::Undecided, Kind::Result | Kind::Error(_) | Kind::Refusal(_) | Kind::Batch) => {
                self.body.begin(kind)?;
                self.mode = Mode::Body(kind);
                Ok(())
            }
            // A body holds one message.
            (Mode::Body(_), _) => Err(Full::Never),
            (Mode::Undecided | Mode::Stream, _) => {
                self.wanted_stream |= self.stream.is_none() && !matches!(kind, Kind::Notification);
                self.stream.as_mut().ok_or(Full::Never)?.begin(kind)?;
                self.mode = Mode::Stream;
                Ok(())
            }
        }
    }

    fn end(&mut self) {
        if let Some(out) = self.current_mut() {
            out.end();
        }
    }

    fn mark(&self) -> Mark {
        self.current().map_or(Mark::new(0), |out| out.mark())
    }

    fn roll_back(&mut self, mark: Mark) {
        if let Some(out) = self.current_mut() {
            out.roll_back(mark);
        }
        if mark.at() == 0 {
            self.mode = Mode::Undecided;
        }
    }

    fn hold(&mut self, on: bool) {
        if let Some(out) = self.current_mut() {
            out.hold(on);
        }
    }

    fn held(&self) -> bool {
        self.current().is_some_and(|out| out.held())
    }

    fn capacity(&self) -> usize {
        self.current().map_or(0, |out| out.capacity())
    }
}
