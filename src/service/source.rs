//! Content of any length, read from a source piece by piece (feature `windows`).

use super::context::{Extra, HandlerResult, RequestContext, Settled, begin_result, end_result};
use super::requests::begin_contents;
use super::{Call, ReadResource, Service, SourceError};
#[cfg(feature = "extensions")]
use crate::content::write_meta;
use crate::json::{Raw, object::Object};
use crate::protocol::Method;
use crate::revision::Revision;
use crate::server::{Caching, Give, OVERLOADED, Puller, RequestSlot, RpcError, StreamBody, StreamedReply, words};
use crate::sink::{MessageHead, Out, Writer, part};

/// The `_meta` of contents that broke off: the result of `resources/read` has no other member for it.
const INCOMPLETE: Raw<'static> = Raw::constant(r#"{"incomplete":true}"#);

/// The most bytes that are read from a source at once; a multiple of three for base64.
const CHUNK: usize = 96;

/// The function that reads large content, described at [`Tool::source`](super::Tool::source).
pub(crate) type ContentSource<S> = fn(&mut S, u32, u32, &mut [u8]) -> Result<usize, SourceError>;

/// A source, and the function that sends from it: a program without sources is linked without.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) struct Sourced<S: 'static> {
    pub(crate) give: ContentSource<S>,
    pub(crate) pump:
        fn(&Service<'_, S>, ContentSource<S>, &mut S, &mut StreamedReply, &RequestSlot, &mut dyn Out) -> bool,
}

impl<S> Sourced<S> {
    pub(crate) const fn new(give: ContentSource<S>) -> Self {
        Sourced {
            give,
            pump: |service, give, state, large, slot, out| service.pump_content(give, state, large, slot, out),
        }
    }
}

impl<S> Service<'_, S> {
    fn pump_content(
        &self,
        source: ContentSource<S>,
        state: &mut S,
        large: &mut StreamedReply,
        slot: &RequestSlot,
        out: &mut dyn Out,
    ) -> bool {
        let StreamBody::Content { index, key, pull } = large.what else { return true };
        if large.piece == 0 {
            let mut give = |at, bytes: &mut [u8]| {
                let given = self.guard(|| source(state, key, at, bytes));
                given.unwrap_or(Err(SourceError)).map_err(|_| ())
            };
            if !large.broken && !pull(&mut give, large, out) {
                return false;
            }
            (large.piece, large.offset) = (1, 0);
        }
        let broken = large.broken;
        large.send(out, &mut |out| self.end_content(slot, usize::from(index), broken, out))
    }

    /// Writes the end of the reply, which says whether the content broke off.
    fn end_content(&self, slot: &RequestSlot, index: usize, broken: bool, out: &mut Writer<'_>) {
        out.put(b"\"}]");
        let mut result = Object::resume(out, false);
        if slot.method == Method::ToolsCall {
            result.boolean("isError", broken);
            return end_result(result, &self.about, slot, None);
        }
        if slot.revision.is_modern() {
            // No cache may keep a part of a content.
            let caching = if broken { Caching::NONE } else { self.caching_of(index) };
            caching.write(&mut result);
        }
        end_result(result, &self.about, slot, broken.then_some(Extra::new(INCOMPLETE)))
    }

    /// Returns the source of a tool, resource or template; `index` is that of its table.
    pub(crate) fn source(&self, method: Method, index: usize) -> Option<&Sourced<S>> {
        if method == Method::ToolsCall {
            return self.tools.get(index)?.source.as_ref();
        }
        match self.resources.get(index) {
            Some(resource) => resource.source.as_ref(),
            None => self.templates.get(index.checked_sub(self.resources.len())?)?.source.as_ref(),
        }
    }
}

impl RequestContext<'_> {
    /// Writes the head of a large reply. Without a source it writes nothing and returns error -32603.
    fn begin_stream(&mut self, what: StreamBody, head: &mut dyn FnMut(&mut Object<'_, '_>, Revision)) -> HandlerResult {
        self.unsettled()?;
        if !self.sourced {
            return Err(RpcError::internal(words("The handler streams, and its definition has no source")).into());
        }
        // Before the reply begins: the beginning cannot be taken back.
        if self.crowded {
            return Err(OVERLOADED.into());
        }
        let mark = self.out.mark();
        let (id, revision) = (self.slot.id, self.slot.revision);
        let mut write = || {
            self.out.begin(MessageHead::Streamed)?;
            part(self.out, |out| head(&mut begin_result(out, id.as_bytes(), revision), revision))
        };
        if let Err(full) = write() {
            self.out.roll_back(mark);
            return Err(full.into());
        }
        self.settle(Settled::Streaming(what))
    }
}

impl Call<'_> {
    /// Answers with text of any length, read from the [`source`](super::Tool::source) of the tool while the sink is sent.
    /// The source gets `key`.
    ///
    /// # Errors
    /// The tool has no source, the handler has answered already, or there is no room for the head of the reply.
    pub fn stream_text(&mut self, key: u32) -> HandlerResult {
        let index = self.slot.handler;
        self.begin_stream(StreamBody::Content { index, key, pull: pull_text }, &mut |result, _| {
            result.key("content").put(b"[{\"type\":\"text\",\"text\":\"")
        })
    }

    /// Answers with an image of any size, sent as base64, read from the [`source`](super::Tool::source) of the tool.
    ///
    /// # Errors
    /// As [`stream_text`](Call::stream_text).
    pub fn stream_image(&mut self, key: u32, mime: &str) -> HandlerResult {
        let index = self.slot.handler;
        self.begin_stream(StreamBody::Content { index, key, pull: pull_base64 }, &mut |result, _| {
            let out = result.key("content");
            out.put(b"[");
            let mut image = Object::open(out);
            image.fixed("type", "\"image\"");
            image.text("mimeType", mime);
            image.key("data").put(b"\"")
        })
    }
}

impl ReadResource<'_> {
    /// Answers with text of any length, read from the [`source`](super::Resource::source) of the definition. The source
    /// gets `key`. If it breaks off, the result has `_meta.incomplete` and `ttlMs` 0.
    ///
    /// # Errors
    /// As [`Call::stream_text`].
    pub fn stream_text(&mut self, key: u32) -> HandlerResult {
        self.stream(key, "text", pull_text)
    }

    /// Answers with bytes of any number, sent as base64 in `blob`, read from the [`source`](super::Resource::source) of the
    /// definition.
    ///
    /// # Errors
    /// As [`Call::stream_text`].
    pub fn stream_blob(&mut self, key: u32) -> HandlerResult {
        self.stream(key, "blob", pull_base64)
    }

    fn stream(&mut self, key: u32, member: &str, pull: Puller) -> HandlerResult {
        let (index, uri, mime) = (self.slot.handler, self.uri, self.mime);
        #[cfg(feature = "extensions")]
        let (meta, revision) = (self.contents_meta, self.revision());
        self.begin_stream(StreamBody::Content { index, key, pull }, &mut |result, _| {
            let mut contents = begin_contents(result, uri, mime);
            #[cfg(feature = "extensions")]
            write_meta(&mut contents, revision, meta);
            contents.key(member).put(b"\"")
        })
    }
}

/// The reason why a chunk is not full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is full.
    NotYet,
    /// The source has no more.
    Through,
    /// The source broke off.
    Broken,
}

/// Fills `chunk` from the source, from the position `at` on. Returns the number of bytes, and why it is not full.
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

/// Sends bytes as base64, in groups of three. Returns whether the source is at its end.
pub(crate) fn pull_base64(source: &mut Give<'_>, large: &mut StreamedReply, out: &mut dyn Out) -> bool {
    let mut chunk = [0; CHUNK];
    loop {
        let wanted = (out.room() / 4 * 3).min(CHUNK);
        let Some(place) = chunk.get_mut(..wanted).filter(|place| !place.is_empty()) else { return false };
        let (len, end) = fill(source, large.offset, place);
        // If it broke off, only whole groups are sent.
        let len = if end == End::Broken { len - len % 3 } else { len };
        if part(out, |out| out.base64(place.get(..len).unwrap_or(&[]))).is_err() {
            return false;
        }
        large.offset += len as u32;
        large.broken |= end == End::Broken;
        if end != End::NotYet {
            return true;
        }
    }
}

/// Sends text, cut between characters. Returns whether the source is at its end.
pub(crate) fn pull_text(source: &mut Give<'_>, large: &mut StreamedReply, out: &mut dyn Out) -> bool {
    let mut chunk = [0; CHUNK];
    loop {
        // An escaped byte takes six bytes at most.
        let wanted = (out.room() / 6).min(CHUNK);
        let Some(place) = chunk.get_mut(..wanted).filter(|place| place.len() >= 4) else { return false };
        let (len, end) = fill(source, large.offset, place);
        let filled = place.get(..len).unwrap_or(&[]);
        let (text, no_text) = match core::str::from_utf8(filled) {
            Ok(text) => (text, false),
            Err(error) => {
                let text = filled.get(..error.valid_up_to()).and_then(|valid| core::str::from_utf8(valid).ok());
                // A character that the chunk cuts off is read again; anything else is not text.
                (text.unwrap_or(""), error.error_len().is_some() || end != End::NotYet)
            }
        };
        if part(out, |out| out.escape(text)).is_err() {
            return false;
        }
        large.offset += text.len() as u32;
        large.broken |= no_text || end == End::Broken;
        if no_text || end != End::NotYet {
            return true;
        }
    }
}
