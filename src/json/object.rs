//! Writes the members of a JSON object, with the commas.

use super::{Raw, Text, write};
use crate::sink::{FullError, Writer, copy};

/// A JSON object under way: each method writes a member. The keys are those of a protocol: they are written unchanged and
/// must need no escapes. [`sink::whole`](crate::sink::whole) begins a message, and results of extensions get one from
/// `RequestContext::result_as`.
///
/// ```
/// use mcp_sansio::json::Object;
/// use mcp_sansio::sink::{LineSink, MessageHead, SliceStorage, whole};
///
/// let mut bytes = [0; 64];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes));
/// whole(&mut out, MessageHead::Notification, |out| {
///     let mut object = Object::open(out);
///     object.text("name", "pot");
///     object.number("seconds", 90);
///     object.close();
/// })?;
/// assert_eq!(out.pending(), b"{\"name\":\"pot\",\"seconds\":90}\n");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
pub struct Object<'o, 'w> {
    pub(crate) out: &'o mut Writer<'w>,
    stage: Stage,
}

/// The part of an object that was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: the brace is written with the first member.
    Nothing,
    /// The brace.
    Brace,
    /// Members.
    Members,
}

impl Stage {
    /// Returns the bytes before the name of the next member.
    const fn before(self) -> &'static [u8] {
        match self {
            Stage::Nothing => b"{\"",
            Stage::Brace => b"\"",
            Stage::Members => b",\"",
        }
    }
}

crate::debug_fields!(impl for Object<'_, '_> {});

impl<'o, 'w> Object<'o, 'w> {
    /// Begins an object.
    pub fn open(out: &'o mut Writer<'w>) -> Self {
        Object { out, stage: Stage::Nothing }
    }

    /// Continues after members that the caller has written; `first` means that only the brace was written.
    pub(crate) fn resume(out: &'o mut Writer<'w>, first: bool) -> Self {
        Object { out, stage: if first { Stage::Brace } else { Stage::Members } }
    }

    /// Writes a key and its colon. The caller writes the value.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn key(&mut self, key: &str) -> &mut Writer<'w> {
        self.name(key.as_bytes(), b"\":")
    }

    /// Writes a key with the bytes before and after it. A short one is one piece: in three, a `tools/list` takes 30 %
    /// more instructions, because each piece is a call of the sink.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn name(&mut self, key: &[u8], behind: &[u8]) -> &mut Writer<'w> {
        let stage = core::mem::replace(&mut self.stage, Stage::Members);
        let mut space = [b'"'; 48];
        space[0] = if stage == Stage::Nothing { b'{' } else { b',' };
        let end = 2 + key.len();
        copy(space.get_mut(2..).unwrap_or_default(), key);
        copy(space.get_mut(end..).unwrap_or_default(), behind);
        match space.get(usize::from(stage == Stage::Brace)..end + behind.len()) {
            Some(name) => self.out.put(name),
            None => [stage.before(), key, behind].iter().for_each(|piece| self.out.put(piece)),
        }
        self.out
    }

    /// Writes members that are JSON already, with a comma in front of them.
    pub(crate) fn literal(&mut self, members: &str) -> &mut Writer<'w> {
        let members = members.as_bytes();
        let behind = members.strip_prefix(b",").unwrap_or(members);
        match core::mem::replace(&mut self.stage, Stage::Members) {
            Stage::Nothing => {
                self.out.put(b"{");
                self.out.put(behind);
            }
            Stage::Brace => self.out.put(behind),
            Stage::Members => self.out.put(members),
        }
        self.out
    }

    /// Gives the message up, because what it is about does not exist any more: nothing of it is sent.
    pub fn fail(&mut self) {
        self.out.fail(FullError::Never);
    }

    /// Writes a string member.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn text(&mut self, key: &str, value: &str) {
        let out = self.name(key.as_bytes(), b"\":\"");
        out.escape(value);
        out.put(b"\"");
    }

    /// Writes a string member if there is a value.
    pub fn text_if(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Writes a string member with the text of `value`.
    pub fn shown(&mut self, key: &str, value: &dyn core::fmt::Display) {
        let out = self.key(key);
        out.put(b"\"");
        out.display(value);
        out.put(b"\"");
    }

    /// Writes a member of any kind, unchanged.
    pub fn raw(&mut self, key: &str, value: Raw<'_>) {
        self.key(key).raw(value);
    }

    /// Writes a member of any kind, unchanged, if there is a value.
    pub fn raw_if(&mut self, key: &str, value: Option<Raw<'_>>) {
        if let Some(value) = value {
            self.raw(key, value);
        }
    }

    /// Writes a member whose value is JSON already. It is not checked.
    pub fn fixed(&mut self, key: &str, value: &str) {
        self.key(key).put(value.as_bytes());
    }

    /// Writes a boolean member.
    pub fn boolean(&mut self, key: &str, value: bool) {
        self.fixed(key, if value { "true" } else { "false" });
    }

    /// Writes a boolean member if there is a value.
    pub fn boolean_if(&mut self, key: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.boolean(key, value);
        }
    }

    /// Writes a whole number.
    pub fn number(&mut self, key: &str, value: u64) {
        self.key(key).unsigned(value);
    }

    /// Writes a member of another object.
    pub fn member(&mut self, key: Text<'_>, value: Raw<'_>) {
        self.name(key.raw(), b"\":").raw(value);
    }

    /// Writes all members of another object.
    pub fn spread(&mut self, object: Raw<'_>) {
        let bytes = object.as_bytes();
        let inner = bytes.strip_prefix(b"{").and_then(|bytes| bytes.strip_suffix(b"}")).unwrap_or(&[]).trim_ascii();
        if inner.is_empty() {
            return;
        }
        match core::mem::replace(&mut self.stage, Stage::Members) {
            Stage::Nothing => self.out.put(b"{"),
            Stage::Brace => {}
            Stage::Members => self.out.put(b","),
        }
        self.out.write(|out| write::one_line(out, inner));
    }

    /// Writes the closing brace.
    pub fn close(self) {
        self.finish();
    }

    /// Writes `tail`, which has the closing brace, after members that were [resumed](Object::resume).
    pub(crate) fn close_with(self, tail: &[u8]) {
        self.out.put(tail);
    }

    /// Writes the closing brace and returns the sink.
    pub(crate) fn finish(self) -> &'o mut Writer<'w> {
        self.out.put(if self.stage == Stage::Nothing { b"{}" } else { b"}" });
        self.out
    }
}

/// Writes an array: its brackets, and each of `items` with `write`, separated by commas.
pub(crate) fn array<T>(
    out: &mut Writer<'_>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Writer<'_>, T),
) {
    let mut before: &[u8] = b"[";
    for item in items {
        out.put(before);
        write(out, item);
        before = b",";
    }
    out.put(if before == b"[" { b"[]" } else { b"]" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{LineSink, MessageHead, SliceStorage, whole};

    /// Members that are JSON already come first, behind a brace of the caller, or behind others.
    #[test]
    fn literal_members_anywhere() {
        for (brace, before, expected) in [
            (false, false, &b"{\"b\":2,\"c\":\"d\"}\n"[..]),
            (true, false, b"{\"b\":2,\"c\":\"d\"}\n"),
            (false, true, b"{\"a\":1,\"b\":2,\"c\":\"d\"}\n"),
        ] {
            let mut bytes = [0; 64];
            let mut out = LineSink::new(SliceStorage::new(&mut bytes));
            whole(&mut out, MessageHead::Result, |out| {
                if brace {
                    out.put(b"{");
                }
                let mut object = if brace { Object::resume(out, true) } else { Object::open(out) };
                if before {
                    object.number("a", 1);
                }
                object.literal(",\"b\":2");
                object.text("c", "d");
                object.close()
            })
            .unwrap();
            assert_eq!(out.pending(), expected);
        }
    }
}
