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
//! Macros make the entries of tables: [`tool`](macro@super::tool), [`prompt`](macro@super::prompt),
//! [`resource`](macro@super::resource). A function that needs no context may leave it out, and return a value or a `Result`;
//! its error is one for the model:
//!
//! ```
//! use mcp_sansio::service::{Service, tool};
//!
//! /// Divides two numbers
//! #[tool]
//! fn div(a: f64, b: f64) -> Result<f64, &'static str> {
//!     if b == 0.0 { Err("the divisor is 0") } else { Ok(a / b) }
//! }
//! let service = Service::new("calc", "1.0").tools(&[DIV]);
//! # let _: Service<'_, ()> = service;
//! ```
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

mod arguments;
#[cfg(feature = "ask")]
mod form;
mod output;
mod reader;
mod returned;
mod text;

#[cfg(feature = "ask")]
pub use form::Form;
pub use output::ObjectWriter;
pub use reader::{ArgumentError, ArgumentReader, Bound};
#[doc(hidden)]
pub use returned::{
    Answered, DisplayAnswer, NoOutput, OutputOf, PlainValue, Returned, ReturnedError, TextAnswer, TextContext,
};

use super::PromptArgument;
use crate::json::{Raw, schema::Pen};
use crate::search::same;
use crate::sink::{FullError, Sink};
#[cfg(doc)]
use {super::Call, super::Tool, crate::json::Text};

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
/// | `title = ".."` | a name for people |
/// | `default` | the `Default` of the type for a member that is left out; not in the schema |
/// | `format = ".."` | stated in the schema, and not checked: `format` is an annotation in JSON Schema 2020-12 |
/// | `pattern = "..", check = function` | the schema has the pattern, and `fn(&T) -> bool` enforces it: there is no engine for regular expressions. One without the other does not compile |
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
    label = "derive `Arguments` for this struct",
    note = "a parameter that is one argument among several, and not all of them, has a comment or `#[arguments]` before it"
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

/// The value of a variable of a URI template: a parameter of a function with `#[resource("..")]`.
///
/// ```
/// use mcp_sansio::service::{HandlerResult, ReadResource, ResourceTemplate, resource};
///
/// /// The weather of a day
/// #[resource("weather://{city}/{day}", mime = "text/plain")]
/// fn weather(_: &mut (), read: &mut ReadResource<'_>, city: &str, day: u8) -> HandlerResult {
///     read.text(format_args!("{city} on day {day}: sunny"))
/// }
///
/// static TEMPLATES: [ResourceTemplate<()>; 1] = [WEATHER];
/// # let _ = &TEMPLATES;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no variable of a URI template",
    label = "take `&str` or an integer"
)]
pub trait Variable<'a>: Sized {
    /// Reads the text as in the URI; `None` if the URI has no resource.
    fn read(text: &'a str) -> Option<Self>;
}

impl<'a> Variable<'a> for &'a str {
    fn read(text: &'a str) -> Option<Self> {
        Some(text)
    }
}

macro_rules! variables {
    ($($type:ty)*) => { $(
        impl<'a> Variable<'a> for $type {
            fn read(text: &'a str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )* };
}

variables!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

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
    title: Option<&'static str>,
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
            title: None,
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

    crate::const_setters! {
        /// Refuses members that the object does not have: `additionalProperties` is `false`.
        closed() => closed = true;
        /// Sets `title`, a name for people.
        title(text: &'static str) => title = Some(text);
        /// Sets `description`.
        description(text: &'static str) => description = Some(text);
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

    /// Sets `pattern`. The reader of the type enforces it.
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
    /// If it is no text, or the schema refuses `text`; `json` is the text as JSON.
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

    /// Returns the schema, if a form of elicitation may have it: an object of texts, numbers, booleans, choices, and arrays of
    /// choices.
    ///
    /// # Panics
    /// If it is another one.
    pub const fn form(self) -> Self {
        let mut rest = self.properties;
        while let [member, behind @ ..] = rest {
            let TypeSchema { kind, items, pattern, header, .. } = member.schema;
            let is_field = match (kind, items) {
                (Kind::Boolean | Kind::Integer | Kind::Number | Kind::String, _) => true,
                (Kind::Array, Some(items)) => !items.names.is_empty(),
                _ => false,
            };
            assert!(is_field, "a field of a form is a text, a number, a boolean, a choice, or an array of choices");
            assert!(pattern.is_none() && header.is_none(), "no form has `pattern` or `header`");
            rest = behind;
        }
        self
    }

    /// Returns the number of members.
    #[must_use]
    pub const fn property_count(&self) -> usize {
        self.properties.len()
    }

    /// Returns the members as the arguments of a prompt. `N` is their number.
    ///
    /// # Panics
    /// If one of them is no text.
    pub const fn prompt_arguments<const N: usize>(&self) -> [PromptArgument<'static>; N] {
        let mut arguments = [PromptArgument::optional(""); N];
        let (mut places, mut rest): (&mut [_], _) = (&mut arguments, self.properties);
        while let ([place, others @ ..], [member, behind @ ..]) = (places, rest) {
            let Property { name, schema, required } = *member;
            assert!(matches!(schema.kind, Kind::String), "an argument of a prompt is a text or a choice");
            *place = PromptArgument { name, title: schema.title, description: schema.description, required };
            (places, rest) = (others, behind);
        }
        arguments
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
