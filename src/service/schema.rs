//! Types as schemas: what `#[derive(Arguments)]` and `#[derive(Output)]` expand to, without serde and without a heap.
//!
//! ```
//! use mcp_sansio::service::{Arguments, Call, HandlerResult, Tool, tool};
//!
//! #[derive(Arguments)]
//! struct Add {
//!     /// The first summand
//!     a: i64,
//!     #[arguments(default = 1, minimum = 0)]
//!     b: i64,
//! }
//!
//! /// Adds two integers
//! #[tool]
//! fn add(_: &mut (), call: &mut Call<'_>, Add { a, b }: Add) -> HandlerResult {
//!     call.text(a.saturating_add(b))
//! }
//!
//! static TOOLS: [Tool<()>; 1] = [ADD];
//! assert_eq!(
//!     Add::SCHEMA,
//!     r#"{"type":"object","properties":{"a":{"type":"integer","description":"The first summand"},"b":{"type":"integer","minimum":0,"default":1}},"required":["a"]}"#
//! );
//! # let _ = &TOOLS;
//! ```
//!
//! A [`TypeSchema`] is a constant. The text of the schema is made from it when the program is compiled, and the reader
//! compares with its limits; so they cannot differ. In the program are the text and the limits.
//!
//! | type | schema | read |
//! |---|---|---|
//! | `i8` to `i32`, `u8` to `u32` | `integer`, with the limits of the type | also `2.0` |
//! | `i64`, `isize` | `integer` | what does not fit is refused |
//! | `u64`, `usize` | `integer`, `minimum` 0 | what does not fit is refused |
//! | `f64`, `f32` | `number` | what is not finite is refused |
//! | `bool` | `boolean` | |
//! | `&str` | `string` | borrowed from the message; with escapes, from the scratch of the server |
//! | [`Text`] | `string` | borrowed from the message, with its escapes |
//! | `String` (`alloc`), `heapless::String<N>` | `string`; the latter with `maxLength` N | copied |
//! | [`Raw`] | any value | borrowed from the message |
//! | `[T; N]`, `Vec<T>` (`alloc`), `heapless::Vec<T, N>` | `array` with the limits of the type | |
//! | a struct, an enum | as derived: an object, `enum`, or a tagged object | |
//! | `Option<T>` | as `T`, and not in `required` | `null` counts as left out |
//!
//! Unknown members are skipped, as serde does. A member that is there twice is refused. Schemas are flat: a type that
//! contains itself has none.

#[cfg(doc)]
use super::Tool;
use super::context::{HandlerError, HandlerFailure, HandlerResult, RequestContext, ToolError};
use super::requests::Call;
use crate::content::TextValue;
use crate::json::write::{self, Escape};
use crate::json::{Decimal, JsonKind, Raw, Text};
use crate::protocol::{Method, code};
use crate::sink::{FullError, Sink};

/// The arguments of a tool as a type. `#[derive(Arguments)]` implements it for structs with named fields, and for enums
/// with `#[arguments(tag = "..")]`; for enums of unit variants the derive implements [`Argument`] alone.
///
/// # Attributes of the type
///
/// | `#[arguments(..)]` | |
/// |---|---|
/// | `deny_unknown` | an unknown member is refused; writes `additionalProperties: false` |
/// | `rename_all = ".."` | the names in `lowercase`, `UPPERCASE`, `camelCase`, `PascalCase`, `snake_case`, `kebab-case` or `SCREAMING_SNAKE_CASE` |
/// | `tag = ".."` | an enum is an object with this member, which names the variant |
///
/// # Attributes of a field
///
/// | `#[arguments(..)]` | |
/// |---|---|
/// | `rename = ".."` | the name of the member, or of the variant |
/// | `minimum = 1`, `maximum = 1` | of a number |
/// | `min_length = 1`, `max_length = 1` | of a text, in characters |
/// | `min_items = 1`, `max_items = 1` | of an array |
/// | `default = 1` | a literal, checked when compiled: the value of a member that is left out, also in the schema |
/// | `default` | the `Default` of the type for a member that is left out; not in the schema |
/// | `format = ".."` | told, and not checked: `format` is an annotation in JSON Schema 2020-12 |
/// | `pattern = "..", check = function` | the pattern is told; `fn(&T) -> bool` enforces it, since there is no engine for regular expressions. One without the other does not compile |
/// | `header = ".."` | `x-mcp-header`: clients of 2026-07-28 repeat the value in an HTTP header |
///
/// A comment with `///` is the `description` of a field. What does not fit does not compile:
///
/// ```compile_fail
/// # use mcp_sansio::service::Arguments;
/// #[derive(Arguments)]
/// struct Volume {
///     #[arguments(max_length = 11)]
///     level: u8,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type for the arguments of a tool",
    label = "derive `Arguments` for this struct"
)]
pub trait Arguments<'a>: Argument<'a> {
    /// The `inputSchema`: JSON Schema 2020-12, flat, of type `object`, with `properties`.
    const SCHEMA: &'static str;
}

/// A value within arguments. Implement it for a type of your own with the schema and the reader of another one:
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio::service::schema::{Argument, ArgumentReader, TypeSchema};
///
/// struct Percent(u8);
///
/// impl<'a> Argument<'a> for Percent {
///     const ARGUMENT: TypeSchema = <u8 as Argument>::ARGUMENT.maximum(100);
///
///     fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
///         u8::read(value, schema, reader).map(Percent)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema as an argument",
    label = "not an argument: derive `Arguments` for it, or implement `Argument`",
    note = "an `Option` may be the type of a field alone; arrays have elements that are `Copy`, and `Vec` and `String` need the feature `alloc` of mcp-sansio"
)]
pub trait Argument<'a>: Sized {
    /// The schema of the type, without the limits of a field.
    const ARGUMENT: TypeSchema;

    /// Reads a value. `schema` is [`ARGUMENT`](Argument::ARGUMENT), perhaps with narrower limits. Returns `None` after
    /// [`ArgumentReader::fail`].
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self>;
}

/// The `structuredContent` of a tool as a type. `#[derive(Output)]` implements it for structs with named fields, and for
/// enums with `#[output(tag = "..")]`; for enums of unit variants the derive implements [`OutputValue`] alone.
/// [`Call::output`] answers with it.
///
/// | `#[output(..)]` | |
/// |---|---|
/// | `rename_all = ".."`, `tag = ".."` | of a type, as with [`Arguments`] |
/// | `rename = ".."` | of a field or variant |
/// | `format = ".."` | of a field: its `format` |
///
/// A member that is `None` is left out. A float that is not finite is written as `null`, as by serde; no schema of a
/// number allows that, so make it an `Option`.
///
/// ```
/// use mcp_sansio::service::{Arguments, Call, HandlerResult, Output, Tool, tool};
///
/// #[derive(Arguments)]
/// struct Divide {
///     a: i32,
///     #[arguments(minimum = 1)]
///     b: i32,
/// }
///
/// #[derive(Output)]
/// struct Quotient {
///     quotient: i32,
///     /// Less than the divisor
///     remainder: i32,
/// }
///
/// /// Divides integers
/// #[tool(output = Quotient)]
/// fn divide(_: &mut (), call: &mut Call<'_>, Divide { a, b }: Divide) -> HandlerResult {
///     call.output(&Quotient { quotient: a / b, remainder: a % b })
/// }
///
/// static TOOLS: [Tool<()>; 1] = [DIVIDE];
/// # let _ = &TOOLS;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type for the output of a tool",
    label = "derive `Output` for this struct"
)]
pub trait Output: OutputValue {
    /// The `outputSchema`: JSON Schema 2020-12, flat, of type `object`, with `properties`.
    const OUTPUT_SCHEMA: &'static str;
}

/// A value within an output.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema as an output",
    label = "not an output: derive `Output` for it, or implement `OutputValue`",
    note = "an `Option` may be the type of a field alone; `Vec` and `String` need the feature `alloc` of mcp-sansio"
)]
pub trait OutputValue {
    /// The schema of the type.
    const OUTPUT: TypeSchema;

    /// Writes the value as JSON.
    ///
    /// # Errors
    /// [`FullError`] if it does not fit. A part may be written by then; the caller takes it back.
    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError>;
}

/// The type in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

/// A limit of a number: an integer, or the text of a number and its value.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Integer(i128),
    Number(&'static str, f64),
}

impl Limit {
    #[allow(clippy::cast_precision_loss, reason = "a limit that no float has is as good as the nearest one")]
    const fn number(self) -> f64 {
        match self {
            Limit::Integer(value) => value as f64,
            Limit::Number(_, value) => value,
        }
    }
}

/// The schema of a type, as a constant.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct TypeSchema {
    kind: Kind,
    description: Option<&'static str>,
    /// Of numbers.
    minimum: Option<Limit>,
    maximum: Option<Limit>,
    /// Of texts and arrays.
    shortest: Option<usize>,
    longest: Option<usize>,
    format: Option<&'static str>,
    pattern: Option<&'static str>,
    /// JSON.
    default: Option<&'static str>,
    header: Option<&'static str>,
    /// The values of a text.
    names: &'static [&'static str],
    items: Option<&'static TypeSchema>,
    properties: &'static [Property],
    closed: bool,
    /// The name of the member that names the variant; empty if there are no variants.
    tag: &'static str,
    variants: &'static [Variant],
}

/// A member of an object in a [`TypeSchema`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Property {
    name: &'static str,
    schema: TypeSchema,
    required: bool,
}

impl Property {
    /// Makes a member that may be left out unless it is `required`.
    pub const fn new(name: &'static str, schema: TypeSchema, required: bool) -> Self {
        Property { name, schema, required }
    }
}

/// A variant of a tagged object in a [`TypeSchema`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Variant {
    name: &'static str,
    properties: &'static [Property],
}

impl Variant {
    /// Makes a variant with these members beside the tag.
    pub const fn new(name: &'static str, properties: &'static [Property]) -> Self {
        Variant { name, properties }
    }
}

impl TypeSchema {
    const fn of(kind: Kind) -> Self {
        TypeSchema {
            kind,
            description: None,
            minimum: None,
            maximum: None,
            shortest: None,
            longest: None,
            format: None,
            pattern: None,
            default: None,
            header: None,
            names: &[],
            items: None,
            properties: &[],
            closed: false,
            tag: "",
            variants: &[],
        }
    }

    /// Any value.
    pub const ANY: TypeSchema = TypeSchema::of(Kind::Any);
    /// `true` or `false`.
    pub const BOOLEAN: TypeSchema = TypeSchema::of(Kind::Boolean);
    /// A whole number.
    pub const INTEGER: TypeSchema = TypeSchema::of(Kind::Integer);
    /// A number.
    pub const NUMBER: TypeSchema = TypeSchema::of(Kind::Number);
    /// A text.
    pub const STRING: TypeSchema = TypeSchema::of(Kind::String);

    /// Makes the schema of a text that is one of `names`.
    pub const fn one_of(names: &'static [&'static str]) -> Self {
        TypeSchema { names, ..TypeSchema::STRING }
    }

    /// Makes the schema of an array.
    pub const fn array(items: &'static TypeSchema) -> Self {
        TypeSchema { items: Some(items), ..TypeSchema::of(Kind::Array) }
    }

    /// Makes the schema of an object.
    pub const fn object(properties: &'static [Property]) -> Self {
        TypeSchema { properties, ..TypeSchema::of(Kind::Object) }
    }

    /// Makes the schema of an object whose member `tag` names its variant. Members of one name have one schema.
    pub const fn tagged(tag: &'static str, variants: &'static [Variant]) -> Self {
        TypeSchema { tag, variants, ..TypeSchema::of(Kind::Object) }
    }

    /// Refuses members that the object does not have: `additionalProperties` is `false`.
    pub const fn closed(self) -> Self {
        TypeSchema { closed: true, ..self }
    }

    /// Sets `description`.
    pub const fn description(self, text: &'static str) -> Self {
        TypeSchema { description: Some(text), ..self }
    }

    /// Sets `minimum`.
    ///
    /// # Panics
    /// If it is no number, or the type has no value as small. A constant does not compile then; so do all below.
    pub const fn minimum(self, limit: i128) -> Self {
        self.check_limit(limit);
        TypeSchema { minimum: Some(Limit::Integer(limit)), ..self }
    }

    /// Sets `maximum`.
    ///
    /// # Panics
    /// If it is no number, or the type has no value as large.
    pub const fn maximum(self, limit: i128) -> Self {
        self.check_limit(limit);
        TypeSchema { maximum: Some(Limit::Integer(limit)), ..self }
    }

    /// Sets `minimum` with a fraction: its text in JSON, and its value.
    ///
    /// # Panics
    /// If it is no number, or an integer.
    pub const fn minimum_number(self, text: &'static str, value: f64) -> Self {
        assert!(matches!(self.kind, Kind::Number), "a limit with a fraction is one of `f64` or `f32`");
        TypeSchema { minimum: Some(Limit::Number(text, value)), ..self }
    }

    /// Sets `maximum` with a fraction: its text in JSON, and its value.
    ///
    /// # Panics
    /// If it is no number, or an integer.
    pub const fn maximum_number(self, text: &'static str, value: f64) -> Self {
        assert!(matches!(self.kind, Kind::Number), "a limit with a fraction is one of `f64` or `f32`");
        TypeSchema { maximum: Some(Limit::Number(text, value)), ..self }
    }

    const fn check_limit(&self, limit: i128) {
        assert!(matches!(self.kind, Kind::Integer | Kind::Number), "`minimum` and `maximum` are limits of numbers");
        assert!(self.has_integer(limit), "this limit is outside of the limits of the type");
    }

    /// Returns whether the limits allow this integer.
    const fn has_integer(&self, value: i128) -> bool {
        let above = match self.minimum {
            Some(Limit::Integer(limit)) => value >= limit,
            Some(Limit::Number(_, limit)) => value as f64 >= limit,
            None => value >= i64::MIN as i128,
        };
        let below = match self.maximum {
            Some(Limit::Integer(limit)) => value <= limit,
            Some(Limit::Number(_, limit)) => value as f64 <= limit,
            None => value <= u64::MAX as i128,
        };
        above && below
    }

    /// Sets `minLength`, in characters.
    ///
    /// # Panics
    /// If it is no text, or one of a set of names.
    pub const fn min_length(self, characters: usize) -> Self {
        self.check_length();
        TypeSchema { shortest: Some(characters), ..self }
    }

    /// Sets `maxLength`, in characters.
    ///
    /// # Panics
    /// If it is no text, or one of a set of names, or the type has less room.
    pub const fn max_length(self, characters: usize) -> Self {
        self.check_length();
        TypeSchema { longest: Some(self.narrower(characters)), ..self }
    }

    const fn check_length(&self) {
        let is_text = matches!(self.kind, Kind::String) && self.names.is_empty();
        assert!(is_text, "`min_length` and `max_length` are limits of texts");
    }

    /// Sets `minItems`.
    ///
    /// # Panics
    /// If it is no array, or the type has another number of items.
    pub const fn min_items(self, count: usize) -> Self {
        assert!(matches!(self.kind, Kind::Array), "`min_items` and `max_items` are limits of arrays");
        assert!(self.shortest.is_none(), "the type has its number of items");
        if let Some(longest) = self.longest {
            assert!(count <= longest, "the type has no room for so many");
        }
        TypeSchema { shortest: Some(count), ..self }
    }

    /// Sets `maxItems`.
    ///
    /// # Panics
    /// If it is no array, or the type has less room.
    pub const fn max_items(self, count: usize) -> Self {
        assert!(matches!(self.kind, Kind::Array), "`min_items` and `max_items` are limits of arrays");
        TypeSchema { longest: Some(self.narrower(count)), ..self }
    }

    const fn narrower(&self, most: usize) -> usize {
        if let Some(longest) = self.longest {
            assert!(most <= longest, "the type has no room for so many");
        }
        if let Some(shortest) = self.shortest {
            assert!(most >= shortest, "the most is less than the least");
        }
        most
    }

    /// Sets `format`.
    ///
    /// # Panics
    /// If it is no text and no number.
    pub const fn format(self, format: &'static str) -> Self {
        let allowed = matches!(self.kind, Kind::String | Kind::Integer | Kind::Number);
        assert!(allowed, "`format` belongs to texts and numbers");
        TypeSchema { format: Some(format), ..self }
    }

    /// Sets `pattern`. Whoever reads it enforces it.
    ///
    /// # Panics
    /// If it is no text.
    pub const fn pattern(self, pattern: &'static str) -> Self {
        self.check_length();
        TypeSchema { pattern: Some(pattern), ..self }
    }

    /// Sets `default` to a text.
    ///
    /// # Panics
    /// If it is no text, or `text` is none that the schema allows; `json` is the text as JSON.
    pub const fn default_text(self, json: &'static str, text: &str) -> Self {
        assert!(matches!(self.kind, Kind::String), "this default is a text, and the type is not");
        assert!(self.names.is_empty() || position(self.names, text).is_some(), "this default is none of the variants");
        let len = characters(text);
        let long_enough = match self.shortest {
            Some(least) => len >= least,
            None => true,
        };
        let short_enough = match self.longest {
            Some(most) => len <= most,
            None => true,
        };
        assert!(long_enough && short_enough, "this default has a length that the schema refuses");
        TypeSchema { default: Some(json), ..self }
    }

    /// Sets `default` to a whole number; `json` is its text.
    ///
    /// # Panics
    /// If it is no number, or out of the limits.
    pub const fn default_integer(self, json: &'static str, value: i128) -> Self {
        assert!(matches!(self.kind, Kind::Integer | Kind::Number), "this default is a number, and the type is not");
        assert!(self.has_integer(value), "this default is outside of the limits");
        TypeSchema { default: Some(json), ..self }
    }

    /// Sets `default` to a number with a fraction; `json` is its text.
    ///
    /// # Panics
    /// If it is no number, or out of the limits.
    pub const fn default_number(self, json: &'static str, value: f64) -> Self {
        assert!(matches!(self.kind, Kind::Number), "this default is a number with a fraction, and the type is not");
        let above = match self.minimum {
            Some(limit) => value >= limit.number(),
            None => true,
        };
        let below = match self.maximum {
            Some(limit) => value <= limit.number(),
            None => true,
        };
        assert!(above && below, "this default is outside of the limits");
        TypeSchema { default: Some(json), ..self }
    }

    /// Sets `default` to `true` or `false`; `json` is its text.
    ///
    /// # Panics
    /// If it is no boolean.
    pub const fn default_boolean(self, json: &'static str) -> Self {
        assert!(matches!(self.kind, Kind::Boolean), "this default is a boolean, and the type is not");
        TypeSchema { default: Some(json), ..self }
    }

    /// Sets `x-mcp-header`; [`Tool::input`] checks it.
    pub const fn header(self, name: &'static str) -> Self {
        TypeSchema { header: Some(name), ..self }
    }

    /// Returns the length of the schema as text, in bytes.
    #[must_use]
    pub const fn text_len(&self) -> usize {
        let mut pen = Pen::<0> { bytes: [], len: 0 };
        pen.schema(self);
        pen.len
    }

    /// Returns the schema as text. `N` is its length.
    #[must_use]
    pub const fn text<const N: usize>(&self) -> [u8; N] {
        let mut pen = Pen { bytes: [b' '; N], len: 0 };
        pen.schema(self);
        pen.bytes
    }
}

/// Returns the text of a schema, which is UTF-8.
///
/// # Panics
/// If it is not.
#[must_use]
pub const fn schema_text(bytes: &'static [u8]) -> &'static str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a schema is UTF-8"),
    }
}

const fn same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while let ([first, behind @ ..], [second, after @ ..]) = (one, other) {
        if *first != *second {
            return false;
        }
        (one, other) = (behind, after);
    }
    one.is_empty() && other.is_empty()
}

const fn position(names: &[&str], name: &str) -> Option<usize> {
    let (mut rest, mut at) = (names, 0);
    while let [first, behind @ ..] = rest {
        if same(first, name) {
            return Some(at);
        }
        (rest, at) = (behind, at + 1);
    }
    None
}

/// Counts characters.
const fn characters(text: &str) -> usize {
    let (mut rest, mut count) = (text.as_bytes(), 0);
    while let [byte, behind @ ..] = rest {
        if *byte & 0xc0 != 0x80 {
            count += 1;
        }
        rest = behind;
    }
    count
}

/// Writes a schema when the program is compiled; only counts what does not fit.
struct Pen<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Pen<N> {
    const fn byte(&mut self, byte: u8) {
        #[allow(clippy::indexing_slicing, reason = "`get_mut` is not const; the index is checked")]
        if self.len < N {
            self.bytes[self.len] = byte;
        }
        self.len += 1;
    }

    const fn put(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let [byte, behind @ ..] = rest {
            self.byte(*byte);
            rest = behind;
        }
    }

    /// Writes a string, with quotes and escapes.
    const fn string(&mut self, text: &str) {
        self.byte(b'"');
        let mut rest = text.as_bytes();
        while let [byte, behind @ ..] = rest {
            match *byte {
                b'"' | b'\\' => {
                    self.byte(b'\\');
                    self.byte(*byte);
                }
                b'\n' => self.put("\\n"),
                control @ 0..0x20 => {
                    self.put("\\u00");
                    self.byte(b'0' + (control >> 4));
                    let digit = control & 15;
                    self.byte(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
                }
                byte => self.byte(byte),
            }
            rest = behind;
        }
        self.byte(b'"');
    }

    const fn number(&mut self, value: i128) {
        if value < 0 {
            self.byte(b'-');
        }
        self.digits(value.unsigned_abs());
    }

    const fn digits(&mut self, value: u128) {
        if value >= 10 {
            self.digits(value / 10);
        }
        self.byte(b'0' + (value % 10) as u8);
    }

    const fn limit(&mut self, key: &str, limit: Option<Limit>) {
        match limit {
            None => {}
            Some(Limit::Integer(value)) => {
                self.put(key);
                self.number(value);
            }
            Some(Limit::Number(text, _)) => {
                self.put(key);
                self.put(text);
            }
        }
    }

    const fn count(&mut self, key: &str, count: Option<usize>) {
        if let Some(count) = count {
            self.put(key);
            self.number(count as i128);
        }
    }

    const fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.put(key);
            self.string(text);
        }
    }

    const fn strings(&mut self, names: &[&str]) {
        self.byte(b'[');
        let (mut rest, mut first) = (names, true);
        while let [name, behind @ ..] = rest {
            if !first {
                self.byte(b',');
            }
            self.string(name);
            (rest, first) = (behind, false);
        }
        self.byte(b']');
    }

    const fn schema(&mut self, schema: &TypeSchema) {
        self.byte(b'{');
        let start = self.len;
        self.put(match schema.kind {
            Kind::Any => "",
            Kind::Array => "\"type\":\"array\"",
            Kind::Boolean => "\"type\":\"boolean\"",
            Kind::Integer => "\"type\":\"integer\"",
            Kind::Number => "\"type\":\"number\"",
            Kind::Object => "\"type\":\"object\"",
            Kind::String => "\"type\":\"string\"",
        });
        if let Some(text) = schema.description {
            self.put(if self.len > start { ",\"description\":" } else { "\"description\":" });
            self.string(text);
        }
        if !schema.names.is_empty() {
            self.put(",\"enum\":");
            self.strings(schema.names);
        }
        self.text(",\"format\":", schema.format);
        self.text(",\"pattern\":", schema.pattern);
        self.limit(",\"minimum\":", schema.minimum);
        self.limit(",\"maximum\":", schema.maximum);
        let is_array = matches!(schema.kind, Kind::Array);
        self.count(if is_array { ",\"minItems\":" } else { ",\"minLength\":" }, schema.shortest);
        self.count(if is_array { ",\"maxItems\":" } else { ",\"maxLength\":" }, schema.longest);
        if let Some(items) = schema.items {
            self.put(",\"items\":");
            self.schema(items);
        }
        if let Some(json) = schema.default {
            self.put(",\"default\":");
            self.put(json);
        }
        self.text(if self.len > start { ",\"x-mcp-header\":" } else { "\"x-mcp-header\":" }, schema.header);
        if matches!(schema.kind, Kind::Object) {
            self.object(schema);
        }
        self.byte(b'}');
    }

    const fn object(&mut self, schema: &TypeSchema) {
        self.put(",\"properties\":{");
        let mut first = true;
        if !schema.variants.is_empty() {
            self.string(schema.tag);
            self.put(":{\"type\":\"string\",\"enum\":[");
            let mut rest = schema.variants;
            while let [variant, behind @ ..] = rest {
                self.string(variant.name);
                if !behind.is_empty() {
                    self.byte(b',');
                }
                rest = behind;
            }
            self.put("]}");
            first = false;
        }
        first = self.members(schema.properties, first);
        let (mut rest, mut before) = (schema.variants, 0);
        while let [variant, behind @ ..] = rest {
            let mut members = variant.properties;
            while let [member, more @ ..] = members {
                if !has_member(schema.variants, before, member.name) {
                    self.member(member, first);
                    first = false;
                }
                members = more;
            }
            (rest, before) = (behind, before + 1);
        }
        self.byte(b'}');
        if schema.variants.is_empty() {
            self.required(schema.properties);
        } else {
            self.put(",\"required\":[");
            self.string(schema.tag);
            self.byte(b']');
            self.conditions(schema);
        }
        if schema.closed {
            self.put(",\"additionalProperties\":false");
        }
    }

    /// Writes members. Returns whether there are none so far.
    const fn members(&mut self, members: &[Property], mut first: bool) -> bool {
        let mut rest = members;
        while let [member, behind @ ..] = rest {
            self.member(member, first);
            (rest, first) = (behind, false);
        }
        first
    }

    const fn member(&mut self, member: &Property, first: bool) {
        if !first {
            self.byte(b',');
        }
        self.string(member.name);
        self.byte(b':');
        self.schema(&member.schema);
    }

    /// Writes `required`, if there is such a member.
    const fn required(&mut self, members: &[Property]) {
        let (mut rest, mut count) = (members, 0);
        while let [member, behind @ ..] = rest {
            if member.required {
                self.put(if count == 0 { ",\"required\":[" } else { "," });
                self.string(member.name);
                count += 1;
            }
            rest = behind;
        }
        if count > 0 {
            self.byte(b']');
        }
    }

    /// Writes the members that each variant requires. By `if`, since some hosts refuse `oneOf` beside `type`.
    const fn conditions(&mut self, schema: &TypeSchema) {
        let (mut rest, mut depth) = (schema.variants, 0);
        while let [variant, behind @ ..] = rest {
            if requires(variant.properties) {
                self.put(if depth == 0 { ",\"if\":{\"properties\":{" } else { ",\"else\":{\"if\":{\"properties\":{" });
                self.string(schema.tag);
                self.put(":{\"const\":");
                self.string(variant.name);
                self.put("}}},\"then\":{\"type\":\"object\"");
                self.required(variant.properties);
                self.byte(b'}');
                depth += 1;
            }
            rest = behind;
        }
        while depth > 1 {
            self.byte(b'}');
            depth -= 1;
        }
    }
}

const fn requires(members: &[Property]) -> bool {
    let mut rest = members;
    while let [member, behind @ ..] = rest {
        if member.required {
            return true;
        }
        rest = behind;
    }
    false
}

/// Returns whether one of the first `count` variants has this member.
const fn has_member(variants: &[Variant], count: usize, name: &str) -> bool {
    let (mut rest, mut left) = (variants, count);
    while let [variant, behind @ ..] = rest {
        if left == 0 {
            return false;
        }
        let mut members = variant.properties;
        while let [member, more @ ..] = members {
            if same(member.name, name) {
                return true;
            }
            members = more;
        }
        (rest, left) = (behind, left - 1);
    }
    false
}

/// A step of the path to a value.
#[derive(Clone, Copy, Debug)]
enum Step {
    Member(&'static str),
    Item(usize),
}

/// What is wrong with a value: it is not of this kind, or not within these limits. With it, a model can correct itself.
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

impl From<Bound> for TextValue<'_> {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::Integer(value) => value.into(),
            Bound::Text(text) => text.into(),
        }
    }
}

/// The most steps of the path that an error shows: those at its end.
const STEPS: usize = 8;
/// The most pieces of an error: the path, and 9 around it.
const PIECES: usize = 3 * STEPS + 12;
/// The most bytes of a name in the message that an error shows.
const FOUND_MAX: usize = 64;

/// Reads the arguments of a call: keeps the rest of the scratch, and the first error with its path.
#[derive(Debug)]
pub struct ArgumentReader<'a> {
    scratch: &'a mut [u8],
    error: Option<ArgumentError<'a>>,
    /// The steps to the error, the last one first.
    path: [Step; STEPS],
    steps: usize,
}

impl<'a> ArgumentReader<'a> {
    /// Makes a reader that decodes `&str` with escapes into `scratch`, for which the length of the arguments is enough.
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

    /// Returns what was wrong.
    #[must_use]
    pub const fn error(&self) -> Option<ArgumentError<'a>> {
        self.error
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

    /// Writes the error as a text for the model, in pieces: a device need not format.
    #[cold]
    fn told(&self, write: &mut dyn FnMut(&TextValue<'_>) -> Result<(), HandlerError>) -> Result<(), HandlerError> {
        let mut pieces = Pieces { texts: [TextValue::from(""); PIECES], len: 0 };
        pieces.add("Invalid arguments: ");
        let shown = self.path.get(..self.steps.min(STEPS)).unwrap_or_default();
        if !shown.is_empty() {
            pieces.add(if self.steps > STEPS { "`…" } else { "`" });
            for (index, step) in shown.iter().rev().enumerate() {
                match *step {
                    Step::Member(name) => {
                        if index > 0 {
                            pieces.add(".");
                        }
                        pieces.add(name);
                    }
                    Step::Item(item) => {
                        pieces.add("[");
                        pieces.count(item);
                        pieces.add("]");
                    }
                }
            }
            pieces.add("`: ");
        }
        match self.error {
            None => pieces.add("a value has the wrong type"),
            Some(error) => pieces.error(error),
        }
        write(&TextValue::from(&pieces.texts))
    }
}

/// The pieces of an error.
struct Pieces<'a> {
    texts: [TextValue<'a>; PIECES],
    len: usize,
}

impl<'a> Pieces<'a> {
    fn add(&mut self, text: impl Into<TextValue<'a>>) {
        if let Some(place) = self.texts.get_mut(self.len) {
            *place = text.into();
            self.len += 1;
        }
    }

    fn count(&mut self, count: usize) {
        self.add(i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn named(&mut self, what: &'static str, name: impl Into<TextValue<'a>>, behind: &'static str) {
        self.add(what);
        self.add(name);
        self.add(behind);
    }

    fn unknown(&mut self, what: &'static str, found: Text<'a>, expected: &'static str) {
        self.add(what);
        if found.raw().len() <= FOUND_MAX {
            self.named(" `", found, "`");
        }
        self.add(", expected one of ");
        self.add(expected);
    }

    fn error(&mut self, error: ArgumentError<'a>) {
        match error {
            ArgumentError::Missing(name) => self.named("missing member `", name, "`"),
            ArgumentError::Twice(name) => self.named("member `", name, "` is there twice"),
            ArgumentError::UnknownMember { found, expected } => self.unknown("unknown member", found, expected),
            ArgumentError::UnknownVariant { found, expected } => self.unknown("unknown variant", found, expected),
            ArgumentError::Expected(what) => {
                self.add("expected ");
                self.add(what);
            }
            ArgumentError::Range { what, least, most } => {
                self.add("expected ");
                self.add(what);
                match (least, most) {
                    (Some(least), Some(most)) => {
                        self.named(" from ", least, " to ");
                        self.add(most);
                    }
                    (Some(least), None) => self.named(" of at least ", least, ""),
                    (None, Some(most)) => self.named(" of at most ", most, ""),
                    (None, None) => self.add(" that is not as large"),
                }
            }
            ArgumentError::Length { what, least, most, unit } => {
                self.add("expected ");
                self.add(what);
                match most {
                    Some(most) if most == least => {
                        self.add(" of ");
                        self.count(most);
                    }
                    Some(most) if least > 0 => {
                        self.add(" of ");
                        self.count(least);
                        self.add(" to ");
                        self.count(most);
                    }
                    Some(most) => {
                        self.add(" of at most ");
                        self.count(most);
                    }
                    None => {
                        self.add(" of at least ");
                        self.count(least);
                    }
                }
                self.add(" ");
                self.add(unit);
            }
            ArgumentError::Pattern(pattern) => self.named("expected text that matches `", pattern, "`"),
        }
    }
}

impl<'a> RequestContext<'a> {
    /// Reads the arguments into a type that derives [`Arguments`]: without serde and a heap, within all limits of its
    /// schema. Text is borrowed from the message, or from the scratch of the server if it has escapes and the type is
    /// `&str`. Call it once: it uses up the scratch.
    ///
    /// # Errors
    /// The arguments are not of this type, or the scratch is too small. Return it with `?`: a tool has answered already,
    /// with `isError` and a text like "`due.remind_days`: expected an integer from 0 to 255"; other requests are answered
    /// with error -32602.
    pub fn read_args<T: Arguments<'a>>(&mut self) -> Result<T, HandlerError> {
        let mut reader = ArgumentReader::new(core::mem::take(&mut self.scratch));
        match T::read(self.arguments(), &T::ARGUMENT, &mut reader) {
            Some(read) => Ok(read),
            None => Err(self.wrong(&reader)),
        }
    }

    /// Answers with the error of a reader.
    #[cold]
    fn wrong(&mut self, reader: &ArgumentReader<'_>) -> HandlerError {
        const WRONG: HandlerError = HandlerError(HandlerFailure::Teach(ToolError {
            words: ["Invalid arguments", "", "", ""],
            code: code::INVALID_PARAMS,
            otherwise: "Invalid params: wrong arguments",
        }));
        if self.slot.method != Method::ToolsCall {
            return WRONG;
        }
        // What is written counts, not the error that is returned.
        let told = reader.told(&mut |text| self.write_words(text, true).map(|_| ()));
        told.err().unwrap_or(WRONG)
    }
}

/// Integers that fit into an `i64`.
macro_rules! integers {
    ($($type:ident $schema:expr;)*) => { $(
        impl<'a> Argument<'a> for $type {
            const ARGUMENT: TypeSchema = $schema;

            #[inline(always)]
            fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
                #[allow(clippy::cast_possible_truncation, reason = "the limits are those of the type or narrower")]
                let limit = |limit: Option<Limit>, own: i64| match limit {
                    Some(Limit::Integer(limit)) => limit as i64,
                    _ => own,
                };
                #[allow(clippy::cast_lossless, clippy::cast_possible_wrap, reason = "all types are narrower")]
                let (least, most) = (limit(schema.minimum, $type::MIN as i64), limit(schema.maximum, $type::MAX as i64));
                $type::try_from(reader.integer(value, least, most)?).ok()
            }
        }
    )* };
}

#[allow(clippy::cast_lossless, reason = "`from` is not const")]
const fn within(least: i64, most: i64) -> TypeSchema {
    TypeSchema::INTEGER.minimum(least as i128).maximum(most as i128)
}

integers! {
    i8 within(i8::MIN as i64, i8::MAX as i64);
    i16 within(i16::MIN as i64, i16::MAX as i64);
    i32 within(i32::MIN as i64, i32::MAX as i64);
    i64 TypeSchema::INTEGER;
    isize TypeSchema::INTEGER;
    u8 within(0, u8::MAX as i64);
    u16 within(0, u16::MAX as i64);
    u32 within(0, u32::MAX as i64);
}

/// Integers that do not.
macro_rules! unsigned {
    ($($type:ident)*) => { $(
        impl<'a> Argument<'a> for $type {
            const ARGUMENT: TypeSchema = TypeSchema::INTEGER.minimum(0);

            #[inline(always)]
            fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the limits are those of the type or narrower"
                )]
                let limit = |limit: Option<Limit>, own: u64| match limit {
                    Some(Limit::Integer(limit)) => limit as u64,
                    _ => own,
                };
                let (least, most) = (limit(schema.minimum, 0), limit(schema.maximum, $type::MAX as u64));
                $type::try_from(reader.unsigned(value, least, most)?).ok()
            }
        }
    )* };
}

unsigned!(u64 usize);

impl<'a> Argument<'a> for f64 {
    const ARGUMENT: TypeSchema = TypeSchema::NUMBER;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        reader.number(value, schema)
    }
}

impl<'a> Argument<'a> for f32 {
    const ARGUMENT: TypeSchema = TypeSchema::NUMBER;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        #[allow(clippy::cast_possible_truncation, reason = "the nearest one is meant, infinity is refused")]
        let single = reader.number(value, schema)? as f32;
        if single.is_finite() {
            return Some(single);
        }
        reader.fail(ArgumentError::Range { what: "a number", least: None, most: None })
    }
}

impl<'a> Argument<'a> for bool {
    const ARGUMENT: TypeSchema = TypeSchema::BOOLEAN;

    #[inline(always)]
    fn read(value: Raw<'a>, _: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        reader.boolean(value)
    }
}

impl<'a> Argument<'a> for Text<'a> {
    const ARGUMENT: TypeSchema = TypeSchema::STRING;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        reader.text(value, schema)
    }
}

impl<'a> Argument<'a> for &'a str {
    const ARGUMENT: TypeSchema = TypeSchema::STRING;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let text = reader.text(value, schema)?;
        reader.decoded(text)
    }
}

impl<'a> Argument<'a> for Raw<'a> {
    const ARGUMENT: TypeSchema = TypeSchema::ANY;

    #[inline(always)]
    fn read(value: Raw<'a>, _: &TypeSchema, _: &mut ArgumentReader<'a>) -> Option<Self> {
        Some(value)
    }
}

#[cfg(feature = "alloc")]
impl<'a> Argument<'a> for alloc::string::String {
    const ARGUMENT: TypeSchema = TypeSchema::STRING;

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        match reader.text(value, schema)?.chars().collect() {
            Ok(text) => Some(text),
            Err(_) => reader.fail(ArgumentError::Expected("text without lone surrogates")),
        }
    }
}

#[cfg(feature = "alloc")]
impl<'a, T: Argument<'a>> Argument<'a> for alloc::vec::Vec<T> {
    const ARGUMENT: TypeSchema = TypeSchema::array(const { &T::ARGUMENT });

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut items = alloc::vec::Vec::new();
        reader.items(value, schema, |_, item| items.push(item))?;
        Some(items)
    }
}

/// Of a number or of another type that is `Copy`; not of length 0.
impl<'a, T: Argument<'a> + Copy, const N: usize> Argument<'a> for [T; N] {
    const ARGUMENT: TypeSchema = {
        assert!(N > 0, "an array without elements is no argument");
        let schema = TypeSchema::array(const { &T::ARGUMENT });
        TypeSchema { shortest: Some(N), longest: Some(N), ..schema }
    };

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut items: Option<[T; N]> = None;
        // The schema has N items.
        reader.items(value, schema, |index, item: T| {
            if let Some(place) = items.get_or_insert([item; N]).get_mut(index) {
                *place = item;
            }
        })?;
        items
    }
}

#[cfg(feature = "heapless")]
impl<'a, const N: usize> Argument<'a> for heapless::String<N> {
    const ARGUMENT: TypeSchema = TypeSchema::STRING.max_length(N);

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut copy = heapless::String::new();
        for character in reader.text(value, schema)?.chars() {
            let Ok(character) = character else {
                return reader.fail(ArgumentError::Expected("text without lone surrogates"));
            };
            if copy.push(character).is_err() {
                return reader.fail(ArgumentError::Length { what: "text", least: 0, most: Some(N), unit: "bytes" });
            }
        }
        Some(copy)
    }
}

#[cfg(feature = "heapless")]
impl<'a, T: Argument<'a>, const N: usize> Argument<'a> for heapless::Vec<T, N> {
    const ARGUMENT: TypeSchema = TypeSchema::array(const { &T::ARGUMENT }).max_items(N);

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut items = heapless::Vec::new();
        // The schema has at most N items.
        reader.items(value, schema, |_, item| drop(items.push(item)))?;
        Some(items)
    }
}

impl Call<'_> {
    /// Answers with `structuredContent` if the revision has it, and with the same JSON as text; as
    /// [`json`](Call::json), without serde.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    #[doc(alias = "structuredContent")]
    pub fn output<T: Output + ?Sized>(&mut self, value: &T) -> HandlerResult {
        self.structured(true, &|out| value.write(&mut Escape::new(out)), &|out| value.write(out))
    }
}

/// Writes the members of an object, with the commas.
pub struct ObjectWriter<'o> {
    out: &'o mut dyn Sink,
    before: &'static [u8],
}

impl core::fmt::Debug for ObjectWriter<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ObjectWriter").finish_non_exhaustive()
    }
}

impl<'o> ObjectWriter<'o> {
    /// Begins an object.
    pub const fn new(out: &'o mut dyn Sink) -> Self {
        ObjectWriter { out, before: b"{" }
    }

    /// Writes members that are JSON already.
    ///
    /// # Errors
    /// [`FullError`] if they do not fit; so do all below.
    pub fn literal(&mut self, members: &str) -> Result<(), FullError> {
        self.out.put(self.before)?;
        self.before = b",";
        self.out.put(members.as_bytes())
    }

    /// Writes a member. The key has its quotes and the colon.
    ///
    /// # Errors
    /// [`FullError`] if it does not fit.
    #[inline]
    pub fn member<T: OutputValue + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), FullError> {
        self.literal(key)?;
        value.write(self.out)
    }

    /// Writes the closing brace.
    ///
    /// # Errors
    /// [`FullError`] if it does not fit.
    pub fn close(self) -> Result<(), FullError> {
        self.out.put(if self.before == b"{" { b"{}" } else { b"}" })
    }
}

macro_rules! written {
    ($($type:ty: $schema:expr, |$value:ident, $out:ident| $write:expr;)*) => { $(
        impl OutputValue for $type {
            const OUTPUT: TypeSchema = $schema;

            fn write(&self, $out: &mut dyn Sink) -> Result<(), FullError> {
                let $value = self;
                $write
            }
        }
    )* };
}

written! {
    bool: TypeSchema::BOOLEAN, |value, out| out.put(if *value { b"true" } else { b"false" });
    i8: <i8 as Argument<'static>>::ARGUMENT, |value, out| write::signed(out, (*value).into());
    i16: <i16 as Argument<'static>>::ARGUMENT, |value, out| write::signed(out, (*value).into());
    i32: <i32 as Argument<'static>>::ARGUMENT, |value, out| write::signed(out, (*value).into());
    i64: TypeSchema::INTEGER, |value, out| write::signed(out, *value);
    isize: TypeSchema::INTEGER, |value, out| write::signed(out, i64::try_from(*value).unwrap_or_default());
    u8: <u8 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, (*value).into());
    u16: <u16 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, (*value).into());
    u32: <u32 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, (*value).into());
    u64: <u64 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, *value);
    usize: <usize as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, u64::try_from(*value).unwrap_or_default());
    f64: TypeSchema::NUMBER, |value, out| float(out, value.is_finite(), format_args!("{value:?}"));
    f32: TypeSchema::NUMBER, |value, out| float(out, value.is_finite(), format_args!("{value:?}"));
    Decimal: TypeSchema::NUMBER, |value, out| write::decimal(out, *value);
    str: TypeSchema::STRING, |value, out| write::string(out, value);
    Text<'_>: TypeSchema::STRING, |value, out| write::text(out, *value);
    Raw<'_>: TypeSchema::ANY, |value, out| write::raw(out, *value);
}

fn float(out: &mut dyn Sink, is_finite: bool, text: core::fmt::Arguments<'_>) -> Result<(), FullError> {
    if is_finite { write::display(out, text) } else { out.put(b"null") }
}

/// Writes an array.
fn array<T: OutputValue>(items: &[T], out: &mut dyn Sink) -> Result<(), FullError> {
    let mut before: &[u8] = b"[";
    for item in items {
        out.put(before)?;
        item.write(out)?;
        before = b",";
    }
    out.put(if before == b"[" { b"[]" } else { b"]" })
}

impl<T: OutputValue + ?Sized> OutputValue for &T {
    const OUTPUT: TypeSchema = T::OUTPUT;

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        T::write(self, out)
    }
}

impl<T: OutputValue> OutputValue for [T] {
    const OUTPUT: TypeSchema = TypeSchema::array(const { &T::OUTPUT });

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}

impl<T: OutputValue, const N: usize> OutputValue for [T; N] {
    const OUTPUT: TypeSchema =
        TypeSchema { shortest: Some(N), longest: Some(N), ..TypeSchema::array(const { &T::OUTPUT }) };

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}

#[cfg(feature = "alloc")]
impl OutputValue for alloc::string::String {
    const OUTPUT: TypeSchema = TypeSchema::STRING;

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        write::string(out, self)
    }
}

#[cfg(feature = "alloc")]
impl<T: OutputValue> OutputValue for alloc::vec::Vec<T> {
    const OUTPUT: TypeSchema = TypeSchema::array(const { &T::OUTPUT });

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> OutputValue for heapless::String<N> {
    const OUTPUT: TypeSchema = TypeSchema::STRING.max_length(N);

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        write::string(out, self)
    }
}

#[cfg(feature = "heapless")]
impl<T: OutputValue, const N: usize> OutputValue for heapless::Vec<T, N> {
    const OUTPUT: TypeSchema = TypeSchema::array(const { &T::OUTPUT }).max_items(N);

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}
