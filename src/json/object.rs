//! Writes the members of an object, commas included.

use super::{Raw, Text, write};
use crate::sink::{Full, Writer};
use crate::small::SMALL;

/// An object under way. Keys are the protocol's own and need no escaping.
pub(crate) struct Object<'o, 'w> {
    pub(crate) out: &'o mut Writer<'w>,
    stage: Stage,
}

/// What has been written of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: its brace goes out with its first member.
    Nothing,
    /// The brace.
    Brace,
    /// Members.
    Members,
}

impl Stage {
    /// What stands before the name of the next member.
    const fn before(self) -> &'static [u8] {
        match self {
            Stage::Nothing => b"{\"",
            Stage::Brace => b"\"",
            Stage::Members => b",\"",
        }
    }
}

impl<'o, 'w> Object<'o, 'w> {
    /// Begins an object.
    pub(crate) fn open(out: &'o mut Writer<'w>) -> Self {
        Object { out, stage: Stage::Nothing }
    }

    /// Goes on behind members that were written by hand; `first` if there are none yet, but the brace.
    pub(crate) fn resume(out: &'o mut Writer<'w>, first: bool) -> Self {
        Object { out, stage: if first { Stage::Brace } else { Stage::Members } }
    }

    /// Writes a key and its colon; the value is the caller's.
    pub(crate) fn key(&mut self, key: &str) -> &mut Writer<'w> {
        if !SMALL { self.key_in_one(key) } else { self.key_in_pieces(key.as_bytes()) }
    }

    /// One piece, if it is of ordinary length: each piece that goes to the sink has its price.
    #[inline]
    fn key_in_one(&mut self, key: &str) -> &mut Writer<'w> {
        let before = self.stage.before();
        let mut space = [b'"'; 40];
        if let Some(place) = space.first_chunk_mut::<2>() {
            *place = *before.first_chunk().unwrap_or(b"\"\"");
        }
        let name = before.len()..before.len() + key.len();
        match (space.get_mut(name.clone()), name.end + 2) {
            (Some(place), end) if end <= 40 => {
                self.stage = Stage::Members;
                place.copy_from_slice(key.as_bytes());
                if let Some(colon) = space.get_mut(end - 1) {
                    *colon = b':';
                }
                self.out.add(space.get(..end).unwrap_or_default());
                self.out
            }
            _ => self.key_in_pieces(key.as_bytes()),
        }
    }

    #[inline(never)]
    fn key_in_pieces(&mut self, key: &[u8]) -> &mut Writer<'w> {
        let before = core::mem::replace(&mut self.stage, Stage::Members).before();
        self.out.add(before);
        self.out.add(key);
        self.out.add(b"\":");
        self.out
    }

    /// Members that are written out already, with a comma in front of them.
    pub(crate) fn literal(&mut self, members: &str) -> &mut Writer<'w> {
        let members = members.as_bytes();
        let behind = members.strip_prefix(b",").unwrap_or(members);
        match core::mem::replace(&mut self.stage, Stage::Members) {
            Stage::Nothing => {
                self.out.add(b"{");
                self.out.add(behind);
            }
            Stage::Brace => self.out.add(behind),
            Stage::Members => self.out.add(members),
        }
        self.out
    }

    /// A string member.
    pub(crate) fn text(&mut self, key: &str, value: &str) -> Result<(), Full> {
        write::string(self.key(key), value)
    }

    /// A string member, if there is a value.
    pub(crate) fn text_if(&mut self, key: &str, value: Option<&str>) -> Result<(), Full> {
        value.map_or(Ok(()), |value| self.text(key, value))
    }

    /// A string member that shows `value`.
    pub(crate) fn shown(&mut self, key: &str, value: &dyn core::fmt::Display) -> Result<(), Full> {
        let out = self.key(key);
        out.put(b"\"")?;
        write::display(out, value)?;
        out.put(b"\"")
    }

    /// A member of any kind, as it stands.
    pub(crate) fn raw(&mut self, key: &str, value: Raw<'_>) -> Result<(), Full> {
        write::raw(self.key(key), value)
    }

    /// A member of any kind, as it stands, if there is one.
    pub(crate) fn raw_if(&mut self, key: &str, value: Option<Raw<'_>>) -> Result<(), Full> {
        value.map_or(Ok(()), |value| self.raw(key, value))
    }

    /// A member that is fixed text.
    pub(crate) fn fixed(&mut self, key: &str, value: &str) -> Result<(), Full> {
        self.key(key).put(value.as_bytes())
    }

    /// A boolean member.
    pub(crate) fn boolean(&mut self, key: &str, value: bool) -> Result<(), Full> {
        self.fixed(key, if value { "true" } else { "false" })
    }

    /// A boolean member, if there is a value.
    pub(crate) fn boolean_if(&mut self, key: &str, value: Option<bool>) -> Result<(), Full> {
        value.map_or(Ok(()), |value| self.boolean(key, value))
    }

    /// A whole number.
    pub(crate) fn number(&mut self, key: &str, value: u64) -> Result<(), Full> {
        write::unsigned(self.key(key), value)
    }

    /// A member of another object.
    pub(crate) fn member(&mut self, key: Text<'_>, value: Raw<'_>) -> Result<(), Full> {
        write::raw(self.key_in_pieces(key.raw()), value)
    }

    /// All members of another object.
    pub(crate) fn spread(&mut self, object: Raw<'_>) -> Result<(), Full> {
        let bytes = object.as_bytes();
        let inner = bytes.strip_prefix(b"{").and_then(|bytes| bytes.strip_suffix(b"}")).unwrap_or(&[]).trim_ascii();
        if inner.is_empty() {
            return Ok(());
        }
        match core::mem::replace(&mut self.stage, Stage::Members) {
            Stage::Nothing => self.out.put(b"{")?,
            Stage::Brace => {}
            Stage::Members => self.out.put(b",")?,
        }
        write::one_line(self.out, inner)
    }

    /// Writes the closing brace.
    pub(crate) fn close(self) -> Result<(), Full> {
        self.finish();
        Ok(())
    }

    /// Of one that was [resumed](Object::resume): writes the closing brace and what is behind it.
    pub(crate) fn close_with(self, tail: &[u8]) -> Result<(), Full> {
        self.out.put(tail)
    }

    /// Writes the closing brace and gives the sink back.
    pub(crate) fn finish(self) -> &'o mut Writer<'w> {
        self.out.add(if self.stage == Stage::Nothing { b"{}" } else { b"}" });
        self.out
    }
}
