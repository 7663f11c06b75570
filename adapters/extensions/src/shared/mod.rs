//! Parts of several extensions: times as text, arrays, and lists with pages.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::service::{CustomRequest, HandlerResult};
use mcp_sansio::sink::Writer;

pub(crate) mod date;

/// Writes an array.
pub(crate) fn array<T>(
    out: &mut Writer<'_>,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(T, &mut Writer<'_>),
) {
    out.put(b"[");
    for (number, item) in items.enumerate() {
        out.put(if number == 0 { b"" } else { b"," });
        write(item, out);
    }
    out.put(b"]");
}

/// A list with pages, of places of which some may have no item. A cursor is the number of a place.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'p> {
    /// The member of the result.
    pub(crate) member: &'static str,
    pub(crate) places: usize,
    /// The most items of a page.
    pub(crate) most: usize,
    pub(crate) is_item: &'p dyn Fn(usize) -> bool,
    pub(crate) write: &'p dyn Fn(usize, &mut Writer<'_>),
}

impl Pages<'_> {
    /// Returns where the page begins that a request wants.
    pub(crate) fn start(&self, params: Option<Raw<'_>>) -> Result<usize, RpcError<'static>> {
        let place = |cursor: Raw<'_>| cursor.text()?.plain()?.parse().ok().filter(|start| *start < self.places);
        match params.and_then(|params| params.get("cursor")).map(place) {
            Some(None) => Err(RpcError::invalid_params("Invalid params: there is no such cursor")),
            start => Ok(start.flatten().unwrap_or(0)),
        }
    }

    /// Writes a page.
    pub(crate) fn write(&self, start: usize, most: usize, result: &mut Object<'_, '_>) {
        let mut items = (start..self.places).filter(|place| (self.is_item)(*place));
        array(result.key(self.member), items.by_ref().take(most), self.write);
        if let Some(next) = items.next() {
            result.shown("nextCursor", &next);
        }
    }

    /// Answers with the page that the request wants, as much of it as there is room for.
    pub(crate) fn answer(&self, request: &mut CustomRequest<'_>) -> HandlerResult {
        let start = self.start(request.params())?;
        let mut most = self.most.min(self.places - start).max(1);
        loop {
            let done = request.result_as("complete", &mut |result| self.write(start, most, result));
            match done {
                // Nothing was written: the rest is on the next page.
                Err(_) if most > 1 => most -= most.div_ceil(4),
                done => return done,
            }
        }
    }
}

/// Counts how often places are looked at, or walked over.
#[cfg(test)]
pub(crate) mod looks {
    std::thread_local!(static LOOKS: core::cell::Cell<usize> = const { core::cell::Cell::new(0) });

    pub(crate) fn add_one() {
        LOOKS.set(LOOKS.get() + 1);
    }

    pub(crate) fn take() -> usize {
        LOOKS.take()
    }
}
