//! Reads the values of a message within the limits of schemas.

use super::{Argument, Arguments, Limit, TypeSchema};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::{Method, code};
use crate::service::context::{HandlerError, HandlerFailure, RequestContext, ToolError};
use crate::sink::{MessageHead, Writer};

/// A step of the path to a value.
#[derive(Clone, Copy, Debug)]
enum Step {
    Member(&'static str),
    Item(usize),
}

/// The mistake in a value, and what was expected: with it, a model can correct itself.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ArgumentError<'a> {
    /// A member is missing.
    Missing(&'static str),
    /// A member is there twice.
    Twice(&'static str),
    /// There is no such member; `expected` lists those that there are.
    UnknownMember {
        /// The name in the message.
        found: Text<'a>,
        /// The names that the type has, for people: "`a`, `b`".
        expected: &'static str,
    },
    /// There is no such variant; `expected` lists those that there are.
    UnknownVariant {
        /// The name in the message.
        found: Text<'a>,
        /// The names that the type has, for people: "`idea`, `todo`".
        expected: &'static str,
    },
    /// Another kind of value was expected: "an integer".
    Expected(&'static str),
    /// A number from `least` to `most` was expected.
    Range {
        /// "an integer" or "a number".
        what: &'static str,
        /// The `minimum`.
        least: Option<Bound>,
        /// The `maximum`.
        most: Option<Bound>,
    },
    /// Another length was expected.
    Length {
        /// "text" or "an array".
        what: &'static str,
        /// The least number of units.
        least: usize,
        /// The greatest number of units.
        most: Option<usize>,
        /// "characters", "bytes" or "elements".
        unit: &'static str,
    },
    /// Text of this `pattern` was expected.
    Pattern(&'static str),
}

/// The limit of a number, for people.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Bound {
    /// An integer.
    Integer(i64),
    /// The text of another number.
    Text(&'static str),
}

impl Bound {
    const fn of(limit: Option<Limit>) -> Option<Bound> {
        match limit {
            None => None,
            Some(Limit::Number(text, _)) => Some(Bound::Text(text)),
            Some(Limit::Integer(value)) if value > i64::MAX as i128 => Some(Bound::Text("18446744073709551615")),
            #[allow(clippy::cast_possible_truncation, reason = "no limit is below that of an `i64`")]
            Some(Limit::Integer(value)) => Some(Bound::Integer(value as i64)),
        }
    }
}

/// The most steps of the path that an error shows: those at its end.
const STEPS: usize = 8;
/// The most bytes of a name in the message that an error shows.
const FOUND_MAX: usize = 64;

/// Reads the arguments of a call: keeps the rest of the scratch, and the first error with its path.
#[derive(Debug)]
pub struct ArgumentReader<'a> {
    scratch: &'a mut [u8],
    /// The first error.
    pub error: Option<ArgumentError<'a>>,
    /// The steps to the error, the last one first.
    path: [Step; STEPS],
    steps: usize,
}

impl<'a> ArgumentReader<'a> {
    /// Makes a reader that decodes `&str` with escapes into `scratch`, for which the length of the arguments is enough.
    // Apart: it is long, and each handler has it.
    #[inline(never)]
    #[must_use]
    pub const fn new(scratch: &'a mut [u8]) -> Self {
        ArgumentReader { scratch, error: None, path: [Step::Item(0); STEPS], steps: 0 }
    }

    /// Stores what is wrong with a value. Returns `None`.
    #[cold]
    pub const fn fail<T>(&mut self, error: ArgumentError<'a>) -> Option<T> {
        self.error = Some(error);
        None
    }

    /// Adds a step to the path of the error.
    #[cold]
    fn step(&mut self, step: Step) {
        if let Some(place) = self.path.get_mut(self.steps) {
            *place = step;
        }
        self.steps += 1;
    }

    /// Finds the members of an object by their names. Stores the value of the member `names[n]` in `values[n]`.
    ///
    /// `unknown` refuses other members; it lists the names for the error.
    pub fn members(
        &mut self,
        value: Raw<'a>,
        names: &[&'static str],
        values: &mut [Option<Raw<'a>>],
        unknown: Option<&'static str>,
    ) -> Option<()> {
        if value.kind() != JsonKind::Object {
            return self.fail(ArgumentError::Expected("an object"));
        }
        for (key, value) in value.members() {
            let found = names.iter().zip(&mut *values).find(|(name, _)| key.eq_str(name));
            match (found, unknown) {
                (Some((_, place @ None)), _) => *place = Some(value),
                (Some((name, _)), _) => return self.fail(ArgumentError::Twice(name)),
                (None, Some(expected)) => return self.fail(ArgumentError::UnknownMember { found: key, expected }),
                (None, None) => {}
            }
        }
        Some(())
    }

    /// Reads a member that must be there.
    #[inline]
    pub fn required<T: Argument<'a>>(
        &mut self,
        value: Option<Raw<'a>>,
        name: &'static str,
        schema: &TypeSchema,
    ) -> Option<T> {
        match value {
            Some(value) => self.member(value, name, schema),
            None => self.fail(ArgumentError::Missing(name)),
        }
    }

    /// Reads a member that may be left out, or be `null`.
    #[inline]
    #[allow(clippy::option_option, reason = "the outer one is that of `read`")]
    pub fn optional<T: Argument<'a>>(
        &mut self,
        value: Option<Raw<'a>>,
        name: &'static str,
        schema: &TypeSchema,
    ) -> Option<Option<T>> {
        match value {
            Some(value) if value.kind() != JsonKind::Null => self.member(value, name, schema).map(Some),
            _ => Some(None),
        }
    }

    /// Reads a member; one that is left out or `null` has the value of `default`.
    #[inline]
    pub fn or<T: Argument<'a>>(
        &mut self,
        value: Option<Raw<'a>>,
        name: &'static str,
        schema: &TypeSchema,
        default: Raw<'static>,
    ) -> Option<T> {
        match value {
            Some(value) if value.kind() != JsonKind::Null => self.member(value, name, schema),
            _ => self.member(default, name, schema),
        }
    }

    #[inline]
    fn member<T: Argument<'a>>(&mut self, value: Raw<'a>, name: &'static str, schema: &TypeSchema) -> Option<T> {
        let read = T::read(value, schema, self);
        if read.is_none() {
            self.step(Step::Member(name));
        }
        read
    }

    /// Returns `value` if it is of the `pattern` of the member `name`, as its check found.
    #[inline]
    pub fn matched<T>(&mut self, value: T, is_match: bool, name: &'static str, pattern: &'static str) -> Option<T> {
        if is_match {
            return Some(value);
        }
        self.step(Step::Member(name));
        self.fail(ArgumentError::Pattern(pattern))
    }

    /// Reads an integer within `least` and `most`.
    pub fn integer(&mut self, value: Raw<'a>, least: i64, most: i64) -> Option<i64> {
        if let Some(number) = value.i64()
            && least <= number
            && number <= most
        {
            return Some(number);
        }
        if value.kind() != JsonKind::Number {
            return self.fail(ArgumentError::Expected("an integer"));
        }
        let (least, most) = (Some(Bound::Integer(least)), Some(Bound::Integer(most)));
        self.fail(ArgumentError::Range { what: "an integer", least, most })
    }

    /// Reads an integer from 0 on within `least` and `most`.
    pub fn unsigned(&mut self, value: Raw<'a>, least: u64, most: u64) -> Option<u64> {
        if let Some(number) = value.u64()
            && least <= number
            && number <= most
        {
            return Some(number);
        }
        if value.kind() != JsonKind::Number {
            return self.fail(ArgumentError::Expected("an integer"));
        }
        let bound = |bound: u64| Some(i64::try_from(bound).map_or(Bound::Text("18446744073709551615"), Bound::Integer));
        self.fail(ArgumentError::Range { what: "an integer", least: bound(least), most: bound(most) })
    }

    /// Reads a number within the limits of `schema`.
    #[inline]
    pub fn number(&mut self, value: Raw<'a>, schema: &TypeSchema) -> Option<f64> {
        let least = schema.minimum.map_or(f64::MIN, Limit::number);
        let most = schema.maximum.map_or(f64::MAX, Limit::number);
        self.float(value, (least, Bound::of(schema.minimum)), (most, Bound::of(schema.maximum)))
    }

    fn float(
        &mut self,
        value: Raw<'a>,
        (least, shown_least): (f64, Option<Bound>),
        (most, shown_most): (f64, Option<Bound>),
    ) -> Option<f64> {
        match value.f64() {
            Some(number) if least <= number && number <= most => Some(number),
            None => self.fail(ArgumentError::Expected("a number")),
            _ => self.fail(ArgumentError::Range { what: "a number", least: shown_least, most: shown_most }),
        }
    }

    /// Reads a boolean.
    pub fn boolean(&mut self, value: Raw<'a>) -> Option<bool> {
        match value.bool() {
            None => self.fail(ArgumentError::Expected("true or false")),
            read => read,
        }
    }

    /// Reads a text within the lengths of `schema`, with its escapes.
    #[inline]
    pub fn text(&mut self, value: Raw<'a>, schema: &TypeSchema) -> Option<Text<'a>> {
        let Some(text) = value.text() else { return self.fail(ArgumentError::Expected("text")) };
        if schema.shortest.is_some() || schema.longest.is_some() {
            self.measure(text.chars().count(), schema, "text", "characters")?;
        }
        Some(text)
    }

    #[inline]
    fn measure(&mut self, len: usize, schema: &TypeSchema, what: &'static str, unit: &'static str) -> Option<()> {
        let (least, most) = (schema.shortest.unwrap_or_default(), schema.longest);
        if least <= len && most.is_none_or(|most| len <= most) {
            return Some(());
        }
        self.fail(ArgumentError::Length { what, least, most, unit })
    }

    /// Returns a text with the lifetime of the message, in the scratch if it has escapes.
    pub fn decoded(&mut self, text: Text<'a>) -> Option<&'a str> {
        if let Some(plain) = text.plain() {
            return Some(plain);
        }
        let (room, raw) = (core::mem::take(&mut self.scratch), text.raw().len());
        let Some(len) = text.decoded_len() else {
            return self.fail(ArgumentError::Expected("text without lone surrogates"));
        };
        let Some((place, rest)) = room.split_at_mut_checked(len.min(raw)) else {
            return self.fail(ArgumentError::Expected("shorter text, or text without escapes"));
        };
        self.scratch = rest;
        match text.decode(place) {
            Ok(decoded) => Some(decoded),
            Err(_) => self.fail(ArgumentError::Expected("text")),
        }
    }

    /// Reads a text that is one of `names`, and returns its index; `expected` lists the names for the error.
    pub fn variant(&mut self, value: Raw<'a>, names: &[&'static str], expected: &'static str) -> Option<usize> {
        let Some(found) = value.text() else { return self.fail(ArgumentError::Expected("text")) };
        match names.iter().position(|name| found.eq_str(name)) {
            None => self.fail(ArgumentError::UnknownVariant { found, expected }),
            index => index,
        }
    }

    /// Reads the member that names the variant of a tagged object, and returns its index.
    pub fn tag(
        &mut self,
        value: Option<Raw<'a>>,
        tag: &'static str,
        names: &[&'static str],
        expected: &'static str,
    ) -> Option<usize> {
        let Some(value) = value else { return self.fail(ArgumentError::Missing(tag)) };
        let index = self.variant(value, names, expected);
        if index.is_none() {
            self.step(Step::Member(tag));
        }
        index
    }

    /// Passes each item of an array within the lengths of `schema` to `put`.
    pub fn items<T: Argument<'a>>(
        &mut self,
        value: Raw<'a>,
        schema: &TypeSchema,
        mut put: impl FnMut(usize, T),
    ) -> Option<()> {
        if value.kind() != JsonKind::Array {
            return self.fail(ArgumentError::Expected("an array"));
        }
        if schema.shortest.is_some() || schema.longest.is_some() {
            self.measure(value.items().count(), schema, "an array", "elements")?;
        }
        for (index, item) in value.items().enumerate() {
            match T::read(item, schema.items.unwrap_or(&T::ARGUMENT), self) {
                Some(item) => put(index, item),
                None => {
                    self.step(Step::Item(index));
                    return None;
                }
            }
        }
        Some(())
    }

    /// Writes the error as a text for the model: piece by piece, so that a device need not format and has no copy.
    #[cold]
    fn explain(&self, what: &str, out: &mut Writer<'_>) {
        let shown = self.path.get(..self.steps.min(STEPS)).unwrap_or_default();
        put(out, what);
        if !shown.is_empty() {
            put(out, if self.steps > STEPS { "`…" } else { "`" });
            for (index, step) in shown.iter().rev().enumerate() {
                match *step {
                    Step::Member(name) => {
                        put(out, if index > 0 { "." } else { "" });
                        out.escape(name);
                    }
                    Step::Item(item) => {
                        put(out, "[");
                        count(out, item);
                        put(out, "]");
                    }
                }
            }
            put(out, "`: ");
        }
        match self.error {
            None => put(out, "a value has the wrong type"),
            Some(error) => error.explain(out),
        }
    }
}

/// Writes text without characters that need an escape.
fn put(out: &mut Writer<'_>, text: &str) {
    out.put(text.as_bytes())
}

fn count(out: &mut Writer<'_>, count: usize) {
    out.unsigned(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Writes a name between two texts.
fn named(out: &mut Writer<'_>, before: &str, name: &str, behind: &str) {
    put(out, before);
    out.escape(name);
    put(out, behind)
}

impl Bound {
    fn write(self, out: &mut Writer<'_>) {
        match self {
            Bound::Integer(value) => out.signed(value),
            Bound::Text(text) => put(out, text),
        }
    }
}

impl ArgumentError<'_> {
    fn explain(self, out: &mut Writer<'_>) {
        match self {
            ArgumentError::Missing(name) => named(out, "missing member `", name, "`"),
            ArgumentError::Twice(name) => named(out, "member `", name, "` is there twice"),
            ArgumentError::UnknownMember { found, expected } => unknown(out, "unknown member", found, expected),
            ArgumentError::UnknownVariant { found, expected } => unknown(out, "unknown variant", found, expected),
            ArgumentError::Pattern(pattern) => named(out, "expected text that matches `", pattern, "`"),
            ArgumentError::Expected(what) => named(out, "expected ", what, ""),
            ArgumentError::Range { what, least, most } => {
                named(out, "expected ", what, "");
                match (least, most) {
                    (Some(least), Some(most)) => {
                        put(out, " from ");
                        least.write(out);
                        put(out, " to ");
                        most.write(out)
                    }
                    (Some(least), None) => {
                        put(out, " of at least ");
                        least.write(out)
                    }
                    (None, Some(most)) => {
                        put(out, " of at most ");
                        most.write(out)
                    }
                    (None, None) => put(out, " that is not as large"),
                }
            }
            ArgumentError::Length { what, least, most, unit } => {
                named(out, "expected ", what, " of ");
                match most {
                    Some(most) if least == most => {}
                    Some(_) if least > 0 => {
                        count(out, least);
                        put(out, " to ");
                    }
                    Some(_) => put(out, "at most "),
                    None => put(out, "at least "),
                }
                count(out, most.unwrap_or(least));
                named(out, " ", unit, "")
            }
        }
    }
}

fn unknown(out: &mut Writer<'_>, what: &str, found: Text<'_>, expected: &str) {
    put(out, what);
    if found.raw().len() <= FOUND_MAX {
        put(out, " `");
        out.put(found.raw());
        put(out, "`");
    }
    named(out, ", expected one of ", expected, "")
}

impl<'a> RequestContext<'a> {
    /// Reads the arguments into a type that derives [`Arguments`]: without serde or a heap, within all limits of its
    /// schema. Text is borrowed from the message, or from the scratch of the server if it has escapes and the type is
    /// `&str`: each time it is called, it uses up a part of it.
    ///
    /// # Errors
    /// The arguments are not of this type, or the scratch is too small. Return it with `?`: a tool has answered already,
    /// with `isError` and a text like "`due.remind_days`: expected an integer from 0 to 255"; other requests are answered
    /// with error -32602.
    pub fn read_args<T: Arguments<'a>>(&mut self) -> Result<T, HandlerError> {
        self.read_value(self.arguments(), "Invalid arguments: ")
    }

    /// Reads a value, and answers with the error of the reader if there is one.
    #[inline]
    pub(super) fn read_value<T: Argument<'a>>(&mut self, value: Raw<'a>, wrong: &str) -> Result<T, HandlerError> {
        let mut reader = ArgumentReader::new(core::mem::take(&mut self.scratch));
        let read = T::read(value, &T::ARGUMENT, &mut reader);
        self.scratch = core::mem::take(&mut reader.scratch);
        match read {
            Some(read) => Ok(read),
            None => Err(self.wrong(&reader, wrong)),
        }
    }

    /// Answers with the error of a reader.
    #[cold]
    fn wrong(&mut self, reader: &ArgumentReader<'_>, what: &str) -> HandlerError {
        if self.slot.method != Method::ToolsCall {
            return WRONG;
        }
        // The result that is written counts, not the error that is returned.
        let written = self.write_result_as(MessageHead::ToolError, &mut |result, _| {
            let out = result.key("content");
            put(out, "[{\"type\":\"text\",\"text\":\"");
            reader.explain(what, out);
            put(out, "\"}]");
            result.boolean("isError", true)
        });
        written.err().unwrap_or(WRONG)
    }
}

/// Stands for an answer that is written already, or for the error of a request that is no call of a tool.
pub(super) const WRONG: HandlerError = HandlerError(HandlerFailure::ToolError(ToolError {
    words: ["Invalid arguments", "", "", ""],
    code: code::INVALID_PARAMS,
    otherwise: "Invalid params: wrong arguments",
}));
