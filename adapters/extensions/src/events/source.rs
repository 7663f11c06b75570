//! Sources of occurrences: the ring, or one with cursors of its own.

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::memory::FixedText;

use crate::shared::date::iso_8601;

/// A subscription: what a client wants to hear of. The server keeps none of it for polls.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EventSubscription<'s> {
    /// The `arguments`, a JSON object; `{}` if the client sent none.
    pub arguments: Raw<'s>,
    /// The authenticated user.
    pub principal: Option<&'s str>,
}

/// The arguments of a subscription that gives none. A constant: at run time it would be checked, and could panic.
pub(crate) const NO_ARGUMENTS: Raw<'static> = Raw::constant("{}");

/// A cursor: at most 64 bytes.
pub(crate) type Cursor = FixedText<64>;

/// Makes a cursor. One that is too long is as one that does not exist.
pub(crate) fn cursor_of(text: &str) -> Cursor {
    let mut cursor = Cursor::EMPTY;
    let _ = cursor.set(text.as_bytes());
    cursor
}

/// A step of a source.
pub(crate) enum Step<'s> {
    Occurrence(Found<'s>),
    /// Some are missing; it goes on at this cursor.
    Gap(&'s str),
}

/// An occurrence that a source has found.
pub(crate) struct Found<'s> {
    pub(crate) id: &'s str,
    pub(crate) timestamp: u64,
    pub(crate) cursor: &'s str,
    pub(crate) data: &'s mut dyn FnMut(&mut Object<'_, '_>),
}

impl Found<'_> {
    pub(crate) fn write(&mut self, name: &str, occurrence: &mut Object<'_, '_>) {
        occurrence.text("eventId", self.id);
        occurrence.text("name", name);
        occurrence.text("timestamp", iso_8601(self.timestamp).as_str());
        let mut data = Object::open(occurrence.key("data"));
        (self.data)(&mut data);
        data.close()
    }
}

/// The question to a [source](crate::events::EventType::source), and the place for its answer.
pub struct Occurrences<'o> {
    pub(crate) event: u32,
    from: Option<Cursor>,
    not_before: u64,
    pub(crate) position: Cursor,
    pub(crate) truncated: bool,
    stopped: bool,
    take: &'o mut dyn FnMut(Step<'_>) -> bool,
}

impl<'o> Occurrences<'o> {
    pub(crate) fn new(
        event: u32,
        from: Option<Cursor>,
        not_before: u64,
        take: &'o mut dyn FnMut(Step<'_>) -> bool,
    ) -> Self {
        let position = from.unwrap_or(Cursor::EMPTY);
        Occurrences { event, from, not_before, position, truncated: false, stopped: false, take }
    }

    /// Returns the cursor after which the client wants occurrences, at most 64 bytes: one that the source has given, or any other
    /// text. `None`: the client begins now, without occurrences; say only the [end](Occurrences::end).
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        self.from.as_ref().map(Cursor::as_str)
    }

    /// Returns the time of the oldest occurrence that the client wants (`maxAgeMs`), in milliseconds since the beginning of 1970; 0
    /// if it wants all. Older ones are left out by themselves: a source that can seek need not read them. It says
    /// [`gap`](Occurrences::gap) then.
    #[doc(alias = "maxAgeMs")]
    #[must_use]
    pub const fn not_before(&self) -> u64 {
        self.not_before
    }

    /// Adds the next occurrence: its `eventId`, its time in milliseconds since the beginning of 1970, the cursor behind it (at most 64
    /// bytes), and the members of its `data`. Returns `false` if it was not taken: return then.
    pub fn push(
        &mut self,
        id: &str,
        unix_millis: u64,
        cursor: &str,
        data: &mut dyn FnMut(&mut Object<'_, '_>),
    ) -> bool {
        if unix_millis < self.not_before {
            self.truncated = true;
            return self.pass(cursor, true);
        }
        let taken = !self.stopped && (self.take)(Step::Occurrence(Found { id, timestamp: unix_millis, cursor, data }));
        self.pass(cursor, taken)
    }

    /// Says that there may have been occurrences between the client's cursor and this one, from which the source goes on:
    /// `truncated`.
    #[doc(alias = "truncated")]
    pub fn gap(&mut self, cursor: &str) {
        self.truncated = true;
        let taken = !self.stopped && (self.take)(Step::Gap(cursor));
        self.pass(cursor, taken);
    }

    /// Says where the source ends now: the cursor from which the client goes on, also if there were no occurrences.
    pub fn end(&mut self, cursor: &str) {
        self.pass(cursor, true);
    }

    fn pass(&mut self, cursor: &str, taken: bool) -> bool {
        self.stopped |= !taken;
        if !self.stopped {
            self.position = cursor_of(cursor);
        }
        !self.stopped
    }
}

mcp_sansio::debug_fields!(impl for Occurrences<'_> { from });
