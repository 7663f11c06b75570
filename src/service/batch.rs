//! Batches (2024-11-05 and 2025-03-26): each element is handled as a message of its own.

use super::router::Dispatched;
use super::{MessageSource, Service};
use crate::json::Raw;
use crate::server::{BatchOut, Server};
use crate::sink::{FullError, Out};

impl<S> Service<'_, S> {
    /// Handles the elements of a batch, from the one on that is next.
    #[inline(never)]
    pub(crate) fn batch(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        elements: Raw<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        let batch = *server.batch();
        let mut array = BatchOut::new(out, batch.open);
        let elements = elements.items().skip(batch.done as usize);
        if self.elements(origin, state, elements, server, &mut array) == Err(FullError::Now) {
            server.batch().open = array.leave();
            return Err(FullError::Now);
        }
        array.finish();
        server.end_batch();
        Ok(Dispatched::Handled)
    }

    fn elements<'e>(
        &self,
        origin: &MessageSource<'_>,
        state: &mut S,
        elements: impl Iterator<Item = Raw<'e>>,
        server: &mut Server<'_>,
        out: &mut BatchOut<'_>,
    ) -> Result<(), FullError> {
        self.stream_element(state, server, out)?;
        for element in elements {
            let step = match server.refuse_element(element, out) {
                Ok(true) => Ok(Dispatched::Handled),
                Ok(false) => self.dispatch_from(origin, state, element.as_bytes(), server, out),
                Err(full) => Err(full),
            };
            // An element whose error does not fit gets no answer; the others do.
            if step == Err(FullError::Now) {
                return Err(FullError::Now);
            }
            server.batch().done += 1;
            self.stream_element(state, server, out)?;
        }
        Ok(())
    }

    /// Sends more of the reply of an element, if it goes out in windows.
    fn stream_element(&self, state: &mut S, server: &mut Server<'_>, out: &mut BatchOut<'_>) -> Result<(), FullError> {
        match server.streaming_element() {
            Some(token) if self.pump(state, token, server, out) != Dispatched::Handled => Err(FullError::Now),
            _ => Ok(()),
        }
    }
}
