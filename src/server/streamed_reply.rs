//! Replies larger than the sink, sent through it in windows.
//!
//! For each window the reply is made again, from constant tables or from a source that can be read at any place, and
//! the part that was sent before is skipped. So a window of any size works, without a buffer and with a few bytes of
//! state.

use super::{RequestToken, Server, ServerInfo};
use crate::revision::Revision;
use crate::sink::{FullError, Mark, MessageHead, Out, Sink, Writer, part};

/// Replies can be larger than the sink.
pub(crate) const WINDOWS: bool = cfg!(feature = "windows");

/// The content of a reply in windows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamBody {
    /// A reply that is always the same.
    Reply(WriteReply),
    /// A list, or a page of it.
    List(ListPage),
    /// Content from a source.
    #[cfg(feature = "windows")]
    Content {
        /// The index of the tool, resource or template.
        index: u16,
        /// A number of the handler's choice, for the source.
        key: u32,
        pull: Puller,
    },
}

/// A page of a list, and how much of it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListPage {
    /// The number of the entry that is next.
    pub(crate) next: u32,
    /// The number of the first entry that is not on the page.
    pub(crate) end: u32,
    /// An entry was written.
    pub(crate) begun: bool,
    /// There is a next page.
    pub(crate) more: bool,
}

impl ListPage {
    /// Makes a page that begins with the entry `next`, and has no end.
    pub(crate) const fn from(next: u32) -> Self {
        ListPage { next, end: u32::MAX, begun: false, more: false }
    }
}

/// Writes the reply to the request with this id, under this revision.
pub(crate) type WriteReply = fn(&ServerInfo<'_>, &[u8], Revision, &mut Writer<'_>);

/// Reads bytes of content from a position on, see [`Tool::source`](crate::service::Tool::source).
#[cfg(feature = "windows")]
pub(crate) type Give<'g> = dyn FnMut(u32, &mut [u8]) -> Result<usize, ()> + 'g;

/// Sends more of a content as text or as base64. Returns whether all of it was sent.
#[cfg(feature = "windows")]
pub(crate) type Puller = fn(&mut Give<'_>, &mut StreamedReply, &mut dyn Out) -> bool;

/// A reply in windows, and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedReply {
    pub(crate) what: StreamBody,
    /// The piece that is being sent.
    pub(crate) piece: u32,
    /// The bytes of the piece that were sent; of a source, the bytes that were read.
    pub(crate) offset: u32,
    /// It ends early: the source failed, or the client has cancelled the request.
    pub(crate) broken: bool,
}

impl StreamedReply {
    pub(crate) const fn of(what: StreamBody) -> Self {
        StreamedReply { what, piece: 0, offset: 0, broken: false }
    }

    /// Sends as much of a piece as the sink takes. Returns whether all of it was sent.
    pub(crate) fn send(&mut self, out: &mut dyn Out, write: &mut dyn FnMut(&mut Writer<'_>)) -> bool {
        let mut window = Skip::new(out, self.offset as usize);
        let whole = part(&mut window, write).is_ok();
        self.offset = if whole { 0 } else { window.gone as u32 };
        if whole {
            self.piece += 1;
        }
        whole
    }

    /// Ends the reply early, because the client has cancelled the request. The text after a content says whether it
    /// is complete, so it must not change once a part of it was sent.
    pub(crate) fn cut_short(&mut self) {
        #[cfg(feature = "windows")]
        let begun = self.piece > 0 && matches!(self.what, StreamBody::Content { .. });
        #[cfg(not(feature = "windows"))]
        let begun = false;
        self.broken |= !begun;
    }
}

impl Server<'_> {
    /// Begins a reply in windows and holds the sink for it. On [`FullError`] forgets the request.
    pub(crate) fn begin_large(
        &mut self,
        token: RequestToken,
        large: StreamedReply,
        out: &mut dyn Out,
    ) -> Result<(), FullError> {
        out.begin(MessageHead::Streamed).inspect_err(|_| self.forget(token))?;
        self.stream(token, large, out);
        Ok(())
    }

    /// Ends a reply in windows and releases the sink.
    pub(crate) fn end_large(&mut self, token: RequestToken, out: &mut dyn Out) {
        out.hold(false);
        out.end();
        self.forget(token);
    }

    /// Sends more of the reply of a [`ServerEvent::Streaming`](super::ServerEvent::Streaming). Returns `true` when
    /// all of it was sent. Call it when the sink has room. Programs with a [`Service`](crate::service::Service) call
    /// its `pump` instead.
    pub fn pump(&mut self, token: RequestToken, about: &ServerInfo<'_>, out: &mut dyn Out) -> bool {
        let Some(slot) = self.slot_mut(token).filter(|slot| slot.is_streaming()) else { return true };
        let (id, revision) = (slot.id, slot.revision);
        let Some(large) = slot.large_mut() else { return true };
        let done = match large.what {
            StreamBody::Reply(write) => large.send(out, &mut |out| write(about, id.as_bytes(), revision, out)),
            _ => true,
        };
        if done {
            self.end_large(token, out);
        }
        done
    }
}

/// A window onto a longer text: skips the part that was sent before, and takes as much as the sink has room for.
pub(crate) struct Skip<'o> {
    out: &'o mut dyn Out,
    /// The bytes that are still to skip.
    skip: usize,
    /// The bytes that were sent, in this window and before it.
    gone: usize,
    /// The sink had no room for some bytes: nothing after them may be sent.
    shut: bool,
}

impl<'o> Skip<'o> {
    pub(crate) fn new(out: &'o mut dyn Out, skip: usize) -> Self {
        Skip { out, skip, gone: skip, shut: false }
    }

    /// Returns the number of bytes that were skipped.
    #[cfg(feature = "windows")]
    pub(crate) const fn skipped(&self) -> usize {
        self.gone - self.skip
    }
}

impl Sink for Skip<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if self.shut {
            return Err(FullError::Now);
        }
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let rest = bytes.get(skipped..).unwrap_or(&[]);
        let now = rest.get(..self.out.room().min(rest.len())).unwrap_or(&[]);
        self.shut = now.len() < rest.len();
        if !now.is_empty() {
            self.out.put(now).inspect_err(|_| self.shut = true)?;
            self.gone += now.len();
        }
        if self.shut { Err(FullError::Now) } else { Ok(()) }
    }

    fn room(&self) -> usize {
        self.out.room()
    }
}

impl Out for Skip<'_> {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        Ok(())
    }
    fn end(&mut self) {}
    fn mark(&self) -> Mark {
        self.out.mark()
    }
    fn roll_back(&mut self, _: Mark) {}
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        true
    }
    fn capacity(&self) -> usize {
        self.out.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{LineSink, SliceStorage};
    use std::vec::Vec;

    /// A sink whose `put` fails, even for an empty slice.
    struct Shut;

    impl Sink for Shut {
        fn put(&mut self, _: &[u8]) -> Result<(), FullError> {
            Err(FullError::Now)
        }
        fn room(&self) -> usize {
            1
        }
    }

    impl Out for Shut {
        fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
            Err(FullError::Now)
        }
        fn end(&mut self) {}
        fn mark(&self) -> Mark {
            Mark::new(0)
        }
        fn roll_back(&mut self, _: Mark) {}
        fn hold(&mut self, _: bool) {}
        fn held(&self) -> bool {
            true
        }
        fn capacity(&self) -> usize {
            0
        }
    }

    fn say(out: &mut Writer<'_>) {
        out.put(b"one,");
        out.put(b"two,");
        out.put(b"three")
    }

    /// A window that nothing goes through, wherever it comes, sends nothing twice.
    #[test]
    fn an_empty_window_loses_no_ground() {
        for room in 1..13 {
            let (mut large, mut said) = (StreamedReply::of(StreamBody::List(ListPage::from(0))), Vec::new());
            loop {
                let (shut, offset) = (large.send(&mut Shut, &mut say), large.offset);
                assert!(!shut && offset as usize == said.len(), "behind {}", said.len());
                let mut space = [0; 14];
                let mut out = LineSink::new(SliceStorage::new(&mut space[..=room]));
                let whole = large.send(&mut out, &mut say);
                said.extend_from_slice(out.pending());
                if whole {
                    break;
                }
            }
            assert_eq!(said, b"one,two,three");
        }
    }

    #[test]
    fn what_stands_behind_a_content_does_not_change() {
        let mut large = StreamedReply::of(StreamBody::Content { index: 0, key: 0, pull: |_, _, _| true });
        large.piece = 1;
        large.cut_short();
        assert!(!large.broken);
        large.piece = 0;
        large.cut_short();
        assert!(large.broken);
    }
}
