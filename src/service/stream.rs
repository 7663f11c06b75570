//! Replies in windows: lists, and content that a source gives piece by piece.

use super::handling::{Extra, end_result};
use super::list::Page;
use super::{Service, Source};
use crate::json::{Raw, object::Object, write};
use crate::protocol::Method;
use crate::server::{Caching, Engine, Give, Large, Slot, State, Token, WINDOWS, What};
use crate::sink::{Full, Out, Writer, part};

/// What [`Service::pump`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[allow(clippy::exhaustive_enums, reason = "it is through or it is not")]
pub enum Pump {
    /// Send what is pending, then pump again.
    More,
    /// The reply is through.
    Done,
}

/// `_meta` of contents that broke off: reading a resource has no other way to say so.
const INCOMPLETE: Raw<'static> = Raw::constant(r#"{"incomplete":true}"#);

/// How much is asked of a source at once; a multiple of three for base64.
const CHUNK: usize = 96;

/// A source, and what sends from it: a program without sources is linked without.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) struct Sourced<S: 'static> {
    give: Source<S>,
    pump: fn(&Service<'_, S>, Source<S>, &mut S, &mut Large, &Slot, &mut dyn Out) -> bool,
}

impl<S> Sourced<S> {
    pub(crate) const fn new(give: Source<S>) -> Self {
        let pump =
            |service: &Service<'_, S>, give, state: &mut S, large: &mut Large, slot: &Slot, out: &mut dyn Out| {
                service.pump_content(give, state, large, slot, out)
            };
        Sourced { give, pump }
    }
}

impl<S> Clone for Sourced<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Sourced<S> {}

impl<S> Service<'_, S> {
    /// Sends more of a reply in windows. Call it whenever the sink has room, until it is done.
    pub fn pump(&self, state: &mut S, token: Token, server: &mut Engine<'_>, out: &mut dyn Out) -> Pump {
        let Some(slot) = server.slot_mut(token).filter(|slot| WINDOWS && slot.state == State::Streaming) else {
            return Pump::Done;
        };
        let mut large = slot.large;
        let done = match large.what {
            What::List { start, end } => self.pump_list(&mut large, slot, Page { start, end }, out),
            What::Content { index, .. } => match self.source(slot.method, usize::from(index)) {
                Some(source) => (source.pump)(self, source.give, state, &mut large, slot, out),
                // The service has changed. What is begun is closed.
                None => large.send(out, &mut |out| out.put(b"\"}]}}")),
            },
            _ => return if server.pump(token, &self.about, out) { Pump::Done } else { Pump::More },
        };
        slot.large = large;
        if !done {
            return Pump::More;
        }
        server.end_large(token, out);
        Pump::Done
    }

    fn pump_content(
        &self,
        source: Source<S>,
        state: &mut S,
        large: &mut Large,
        slot: &Slot,
        out: &mut dyn Out,
    ) -> bool {
        let What::Content { index, key, pull } = large.what else { return true };
        if large.piece == 0 {
            let mut give = |at, bytes: &mut [u8]| source(state, key, at, bytes).map_err(|_| ());
            if !large.broken && !pull(&mut give, large, out) {
                return false;
            }
            (large.piece, large.offset) = (1, 0);
        }
        let broken = large.broken;
        large.send(out, &mut |out| self.end_content(slot, usize::from(index), broken, out))
    }

    /// What stands behind the content; whether it broke off can still be said there.
    fn end_content(&self, slot: &Slot, index: usize, broken: bool, out: &mut Writer<'_>) -> Result<(), Full> {
        out.put(b"\"}]")?;
        let mut result = Object::resume(out, false);
        if slot.method == Method::ToolsCall {
            result.boolean("isError", broken)?;
            return end_result(result, &self.about, slot.revision, None);
        }
        if slot.revision.is_modern() {
            // A part of a content must not be kept by any cache.
            let caching = if broken { Caching::NONE } else { self.read_caching(index) };
            caching.write(&mut result)?;
        }
        end_result(result, &self.about, slot.revision, broken.then_some(Extra::new(INCOMPLETE)))
    }

    fn read_caching(&self, index: usize) -> Caching {
        self.resource_info(index).and_then(|info| info.caching).unwrap_or(self.about.caching)
    }

    /// What a tool's, resource's or template's stream is pulled from; `index` is that of its table.
    pub(crate) fn source(&self, method: Method, index: usize) -> Option<Sourced<S>> {
        if method == Method::ToolsCall {
            return self.tools.get(index)?.source;
        }
        match self.resources.get(index) {
            Some(resource) => resource.source,
            None => self.templates.get(index.checked_sub(self.resources.len())?)?.source,
        }
    }
}

/// Why a chunk is not fuller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is full.
    NotYet,
    /// The source has no more.
    Through,
    /// The source broke off behind what it gave.
    Broken,
}

/// Fills as much of `chunk` as the source gives from `at` on; how much that is, and why it is not more.
fn fill(source: &mut Give<'_>, at: u32, chunk: &mut [u8]) -> (usize, End) {
    let mut len = 0;
    while let Some(rest) = chunk.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match source(at + len as u32, rest) {
            Ok(0) => return (len, End::Through),
            Ok(n) => len += n.min(rest.len()),
            Err(()) => return (len, End::Broken),
        }
    }
    (len, End::NotYet)
}

/// Sends bytes as base64, in groups of three; whether the source is through.
pub(crate) fn pull_base64(source: &mut Give<'_>, large: &mut Large, out: &mut dyn Out) -> bool {
    let mut chunk = [0; CHUNK];
    loop {
        let wanted = (out.room() / 4 * 3).min(CHUNK);
        let Some(place) = chunk.get_mut(..wanted).filter(|place| !place.is_empty()) else { return false };
        let (len, end) = fill(source, large.offset, place);
        // Where it broke off, only whole groups are sent.
        let len = if end == End::Broken { len - len % 3 } else { len };
        if part(out, |out| write::base64(out, place.get(..len).unwrap_or(&[]))).is_err() {
            return false;
        }
        large.offset += len as u32;
        large.broken |= end == End::Broken;
        if end != End::NotYet {
            return true;
        }
    }
}

/// Sends text, cut between characters; whether the source is through.
pub(crate) fn pull_text(source: &mut Give<'_>, large: &mut Large, out: &mut dyn Out) -> bool {
    let mut chunk = [0; CHUNK];
    loop {
        // An escaped character takes six bytes at the most.
        let wanted = (out.room() / 6).min(CHUNK);
        let Some(place) = chunk.get_mut(..wanted).filter(|place| place.len() >= 4) else { return false };
        let (len, end) = fill(source, large.offset, place);
        let filled = place.get(..len).unwrap_or(&[]);
        let (text, no_text) = match core::str::from_utf8(filled) {
            Ok(text) => (text, false),
            Err(error) => {
                let text = filled.get(..error.valid_up_to()).and_then(|valid| core::str::from_utf8(valid).ok());
                // A character that is cut off by the chunk is asked for again; anything else is not text.
                (text.unwrap_or(""), error.error_len().is_some() || end != End::NotYet)
            }
        };
        if part(out, |out| write::escape(out, text)).is_err() {
            return false;
        }
        large.offset += text.len() as u32;
        large.broken |= no_text || end == End::Broken;
        if no_text || end != End::NotYet {
            return true;
        }
    }
}
