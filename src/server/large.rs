//! Replies larger than the sink, sent through it in windows.
//!
//! What is sent is made again for each window, from constant tables or from a source that can be read at any place, and
//! the part that has gone out already is skipped: no buffer, a few bytes of state, any size of window.

use super::{About, Engine, State, Token};
use crate::revision::Revision;
use crate::sink::{Full, Kind, Mark, Out, Sink, Writer, part};

/// Whether replies may be larger than the sink.
pub(crate) const WINDOWS: bool = cfg!(feature = "windows");

/// What goes out in windows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Nothing,
    /// A reply that is always the same.
    Reply(WriteReply),
    /// A list, or a page of it.
    List {
        start: u32,
        end: u32,
    },
    /// Content from a source.
    Content {
        /// Which tool, resource or template.
        index: u16,
        /// The handler's own number, given to the source.
        key: u32,
        pull: Puller,
    },
}

/// Writes a reply with this id under this revision.
pub(crate) type WriteReply = fn(&About<'_>, &[u8], Revision, &mut Writer<'_>) -> Result<(), Full>;

/// Gives bytes of content from a place on, see [`Source`](crate::service::Source).
pub(crate) type Give<'g> = dyn FnMut(u32, &mut [u8]) -> Result<usize, ()> + 'g;

/// Sends more of some content in one form or another; whether it is through.
pub(crate) type Puller = fn(&mut Give<'_>, &mut Large, &mut dyn Out) -> bool;

/// A reply in windows, and how far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Large {
    pub(crate) what: What,
    /// Which piece is being sent.
    pub(crate) piece: u32,
    /// How much of the piece has gone out; of a source, how much of it was read.
    pub(crate) offset: u32,
    /// It is being cut short: the source broke off, or nobody wants it any more.
    pub(crate) broken: bool,
}

impl Large {
    pub(crate) const NONE: Large = Large::of(What::Nothing);

    pub(crate) const fn of(what: What) -> Self {
        Large { what, piece: 0, offset: 0, broken: false }
    }

    /// Sends as much of a piece as there is room for; whether it is through.
    pub(crate) fn send(
        &mut self,
        out: &mut dyn Out,
        write: &mut dyn FnMut(&mut Writer<'_>) -> Result<(), Full>,
    ) -> bool {
        let mut window = Skip::new(out, self.offset as usize);
        let whole = part(&mut window, write).is_ok();
        self.offset = if whole { 0 } else { window.gone as u32 };
        if whole {
            self.piece += 1;
        }
        whole
    }

    /// Nobody wants the rest. What stands behind a content says whether it is whole, so that it must not change once it
    /// has begun to go out.
    pub(crate) fn cut_short(&mut self) {
        self.broken |= self.piece == 0 || !matches!(self.what, What::Content { .. });
    }
}

impl Engine<'_> {
    /// Begins a reply in windows and holds the sink for it. On [`Full`] the request is gone as if it had not come.
    pub(crate) fn begin_large(&mut self, token: Token, large: Large, out: &mut dyn Out) -> Result<(), Full> {
        if let Err(full) = out.begin(Kind::Streamed) {
            self.close(token);
            return Err(full);
        }
        out.hold(true);
        if let Some(slot) = self.slot_mut(token) {
            slot.state = State::Streaming;
            slot.large = large;
        }
        Ok(())
    }

    /// Ends a reply in windows and releases the sink.
    pub(crate) fn end_large(&mut self, token: Token, out: &mut dyn Out) {
        out.hold(false);
        out.end();
        self.close(token);
    }

    /// Sends more of what [`Event::Streaming`](super::Event::Streaming) began; `true` when it is through. Call it
    /// whenever the sink has room. Those who use a [`Service`](crate::service::Service) call its `pump` instead.
    pub fn pump(&mut self, token: Token, about: &About<'_>, out: &mut dyn Out) -> bool {
        let Some(slot) = self.slot_mut(token).filter(|slot| WINDOWS && slot.state == State::Streaming) else {
            return true;
        };
        let (id, revision, large) = (slot.id, slot.revision, &mut slot.large);
        let done = match large.what {
            What::Reply(write) => large.send(out, &mut |out| write(about, id.as_bytes(), revision, out)),
            _ => true,
        };
        if done {
            self.end_large(token, out);
        }
        done
    }
}

/// A window onto a longer text: skips what has gone out already, takes what there is room for.
pub(crate) struct Skip<'o> {
    out: &'o mut dyn Out,
    /// How much is still to be skipped.
    skip: usize,
    /// How much has gone out, in this window and before it: never less than there was to skip.
    gone: usize,
    /// There was no room for some of it: nothing behind that may go out.
    shut: bool,
}

impl<'o> Skip<'o> {
    pub(crate) fn new(out: &'o mut dyn Out, skip: usize) -> Self {
        Skip { out, skip, gone: skip, shut: false }
    }
}

impl Sink for Skip<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.shut {
            return Err(Full::Now);
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
        if self.shut { Err(Full::Now) } else { Ok(()) }
    }

    fn room(&self) -> usize {
        self.out.room()
    }
}

impl Out for Skip<'_> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
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
    use crate::sink::{Lines, Slice};
    use std::vec::Vec;

    /// A sink that takes nothing at all, not even nothing.
    struct Shut;

    impl Sink for Shut {
        fn put(&mut self, _: &[u8]) -> Result<(), Full> {
            Err(Full::Now)
        }
        fn room(&self) -> usize {
            1
        }
    }

    impl Out for Shut {
        fn begin(&mut self, _: Kind) -> Result<(), Full> {
            Err(Full::Now)
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

    fn say(out: &mut Writer<'_>) -> Result<(), Full> {
        out.put(b"one,")?;
        out.put(b"two,")?;
        out.put(b"three")
    }

    /// A window that nothing goes through, wherever it comes, sends nothing twice.
    #[test]
    fn an_empty_window_loses_no_ground() {
        for room in 1..13 {
            let (mut large, mut said) = (Large::NONE, Vec::new());
            loop {
                let (shut, offset) = (large.send(&mut Shut, &mut say), large.offset);
                assert!(!shut && offset as usize == said.len(), "behind {}", said.len());
                let mut space = [0; 14];
                let mut out = Lines::new(Slice::new(&mut space[..=room]));
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
        let mut large = Large::of(What::Content { index: 0, key: 0, pull: |_, _, _| true });
        large.piece = 1;
        large.cut_short();
        assert!(!large.broken);
        large.piece = 0;
        large.cut_short();
        assert!(large.broken);
    }
}
