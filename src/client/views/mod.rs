//! Typed views of the results of a server. A view is `Copy` and borrows from the message.
//!
//! 1. [`View::of`] makes a view. It fails if a member that the protocol requires is missing or has the wrong
//!    type.
//! 2. The methods of a view read the other members. A member that is missing, `null` or of the wrong type is
//!    `None`. Many servers write `null` for a missing member.
//! 3. [`View::check`] reports optional members of the wrong type.
//! 4. [`View::raw`] gives the whole value, with members that the protocol does not define.
//!
//! The iterators over lists return a [`Result`] for each element: one invalid tool does not hide the others.
//!
//! ```
//! use mcp_sansio::client::views::{ViewError, ListToolsResult, View};
//! use mcp_sansio::json::Raw;
//!
//! let result = Raw::constant(
//!     r#"{"tools":[
//!         {"name":"add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"x-cost":3},
//!         {"name":"broken"}
//!     ],"nextCursor":"p2"}"#,
//! );
//! let tools = ListToolsResult::of(result)?;
//! let mut each = tools.iter();
//! let add = each.next().unwrap()?;
//! assert!(add.name().eq_str("add") && add.hints().read_only());
//! assert_eq!(add.raw().get("x-cost").and_then(|cost| cost.u64()), Some(3));
//! assert_eq!(each.next().unwrap().unwrap_err(), ViewError::Missing("inputSchema"));
//! assert!(tools.next_cursor.is_some_and(|cursor| cursor.eq_str("p2")));
//! assert_eq!(tools.iter().flatten().count(), 1); // the valid ones
//! # Ok::<(), ViewError>(())
//! ```

mod content;
mod lists;
mod results;
mod server;

pub use content::{
    Blob, ContentBlockKind, ContentBlockView, PromptMessageView, ResourceContentsView, ToolResultContent,
};
pub use lists::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListResult, ListToolsResult,
    PromptArgumentView, PromptView, ResourceTemplateView, ResourceView, ToolAnnotationsView, ToolView,
};
pub use results::{CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult};
pub use server::{AnnotationsView, IconView, ImplementationView};

use crate::json::{JsonKind, Raw, Text};
use core::fmt;

/// The reason why a value of the server is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ViewError {
    /// The value is not of this kind.
    Shape(JsonKind),
    /// The required member of this name is missing.
    Missing(&'static str),
    /// The member of this name is not of this kind.
    Type(&'static str, JsonKind),
    /// The member of this name has a value that the protocol does not allow.
    Value(&'static str),
    /// The text of a [`Blob`] is not base64 in the standard alphabet with padding.
    Base64,
    /// The buffer is smaller than [`Blob::decoded_len`].
    BufferTooSmall,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Shape(kind) => write!(f, "not {}", article(*kind)),
            ViewError::Missing(member) => write!(f, "`{member}` is missing"),
            ViewError::Type(member, kind) => write!(f, "`{member}` is not {}", article(*kind)),
            ViewError::Value(member) => write!(f, "`{member}` is not one of the values allowed"),
            ViewError::Base64 => f.write_str("not valid base64"),
            ViewError::BufferTooSmall => f.write_str("the bytes do not fit into the buffer"),
        }
    }
}

impl core::error::Error for ViewError {}

const fn article(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number => "a number that fits",
        JsonKind::Bool => "a boolean",
        JsonKind::Null => "null",
    }
}

/// A typed view of one JSON value.
pub trait View<'a>: Copy {
    /// The member of a [`ListResult`] with the elements of this type, for example `tools`; empty if no list has them.
    const LIST_MEMBER: &'static str = "";

    /// Makes a view of a value.
    ///
    /// # Errors
    /// If the value is not an object, or a required member is missing or of the wrong type.
    fn of(raw: Raw<'a>) -> Result<Self, ViewError>;

    /// Returns the whole value, with members that the protocol does not define.
    fn raw(&self) -> Raw<'a>;

    /// Returns `_meta` (from 2025-06-18 on).
    fn meta(&self) -> Option<Raw<'a>> {
        may(self.raw(), "_meta", object).ok().flatten()
    }

    /// Checks the types of the optional members. The methods return `None` for those of the wrong type.
    ///
    /// # Errors
    /// The first member of the wrong type.
    fn check(&self) -> Result<(), ViewError> {
        Ok(())
    }
}

/// Returns the elements of an array, or the one object in place of an array.
pub(crate) fn blocks(value: Raw<'_>) -> impl Iterator<Item = Raw<'_>> + Clone {
    let one = Some(value).filter(|value| value.kind() == JsonKind::Object);
    one.into_iter().chain(value.items())
}

/// Reads a member with this name: its value, or the reason why it is invalid.
type Read<'a, T> = fn(Raw<'a>, &'static str) -> Result<T, ViewError>;

pub(crate) fn text<'a>(raw: Raw<'a>, key: &'static str) -> Result<Text<'a>, ViewError> {
    raw.text().ok_or(ViewError::Type(key, JsonKind::String))
}

pub(crate) fn object<'a>(raw: Raw<'a>, key: &'static str) -> Result<Raw<'a>, ViewError> {
    of_kind(raw, key, JsonKind::Object)
}

pub(crate) fn array<'a>(raw: Raw<'a>, key: &'static str) -> Result<Raw<'a>, ViewError> {
    of_kind(raw, key, JsonKind::Array)
}

fn number<'a>(raw: Raw<'a>, key: &'static str) -> Result<Raw<'a>, ViewError> {
    of_kind(raw, key, JsonKind::Number)
}

fn whole(raw: Raw<'_>, key: &'static str) -> Result<u64, ViewError> {
    raw.u64().ok_or(ViewError::Type(key, JsonKind::Number))
}

fn boolean(raw: Raw<'_>, key: &'static str) -> Result<bool, ViewError> {
    raw.bool().ok_or(ViewError::Type(key, JsonKind::Bool))
}

fn of_kind<'a>(raw: Raw<'a>, key: &'static str, kind: JsonKind) -> Result<Raw<'a>, ViewError> {
    if raw.kind() == kind { Ok(raw) } else { Err(ViewError::Type(key, kind)) }
}

/// Checks that the whole value is an object.
pub(crate) fn shape(raw: Raw<'_>) -> Result<(), ViewError> {
    if raw.kind() == JsonKind::Object { Ok(()) } else { Err(ViewError::Shape(JsonKind::Object)) }
}

/// Reads a required member.
pub(crate) fn must<'a, T>(raw: Raw<'a>, key: &'static str, read: Read<'a, T>) -> Result<T, ViewError> {
    must_be(raw.get(key), key, read)
}

/// Reads an optional member; `null` counts as missing.
pub(crate) fn may<'a, T>(raw: Raw<'a>, key: &'static str, read: Read<'a, T>) -> Result<Option<T>, ViewError> {
    may_be(raw.get(key), key, read)
}

/// Reads a required member that was [picked](Raw::pick).
fn must_be<'a, T>(member: Option<Raw<'a>>, key: &'static str, read: Read<'a, T>) -> Result<T, ViewError> {
    may_be(member, key, read)?.ok_or(ViewError::Missing(key))
}

/// Reads an optional member that was [picked](Raw::pick); `null` counts as missing.
fn may_be<'a, T>(member: Option<Raw<'a>>, key: &'static str, read: Read<'a, T>) -> Result<Option<T>, ViewError> {
    let member = member.filter(|member| member.kind() != JsonKind::Null);
    member.map(|member| read(member, key)).transpose()
}

/// Returns an optional object or array; an empty one if it is missing or of the wrong type.
fn part<'a>(raw: Raw<'a>, key: &'static str, read: Read<'a, Raw<'a>>) -> Raw<'a> {
    may(raw, key, read).ok().flatten().unwrap_or(const { Raw::constant("{}") })
}

/// Defines a view by its members, in this order:
///
/// - `list "tools";`: the [`View::LIST_MEMBER`]; `valid check;`: a function with further conditions of `View::of`;
/// - `must`: required members, read by `View::of`;
/// - `list`: required arrays of views;
/// - `may`: optional members;
/// - `flags`: optional booleans with the default `false`;
/// - `parts`: optional objects; without one all its members are missing;
/// - `lists`: optional arrays of views.
macro_rules! view {
    ($(#[$about:meta])* $name:ident {
        $(list $member:literal;)?
        $(valid $valid:path;)?
        $(must { $($(#[$must_about:meta])* $must:ident: $must_type:ty = $must_key:literal as $must_read:path;)* })?
        $(list { $($(#[$list_about:meta])* $list:ident: $item:ident = $list_key:literal as $list_read:path;)* })?
        $(may { $($(#[$may_about:meta])* $may:ident: $may_type:ty = $may_key:literal as $may_read:path;)* })?
        $(flags { $($(#[$flag_about:meta])* $flag:ident = $flag_key:literal;)* })?
        $(parts { $($(#[$part_about:meta])* $part:ident: $part_view:ident = $part_key:literal;)* })?
        $(lists { $($(#[$lists_about:meta])* $lists:ident: $lists_item:ident = $lists_key:literal;)* })?
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            pub(super) raw: Raw<'a>,
            $($($must: $must_type,)*)?
            $($($list: Raw<'a>,)*)?
        }

        impl<'a> View<'a> for $name<'a> {
            $(const LIST_MEMBER: &'static str = $member;)?

            fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
                super::shape(raw)?;
                // Large lists and schemas are among the members: all of them are found in one pass.
                let mut _members = raw.pick([$($($must_key,)*)? $($($list_key,)*)?]).into_iter();
                let view = $name {
                    raw,
                    $($($must: super::must_be(_members.next().flatten(), $must_key, $must_read)?,)*)?
                    $($($list: super::must_be(_members.next().flatten(), $list_key, $list_read)?,)*)?
                };
                $($valid(raw)?;)?
                Ok(view)
            }

            fn raw(&self) -> Raw<'a> {
                self.raw
            }

            fn check(&self) -> Result<(), ViewError> {
                $($(super::may(self.raw, $may_key, $may_read)?;)*)?
                $($(super::may(self.raw, $flag_key, super::boolean)?;)*)?
                $($(super::may(self.raw, $part_key, super::object)?;)*)?
                $($(super::may(self.raw, $lists_key, super::array)?;)*)?
                super::may(self.raw, "_meta", super::object).map(|_| ())
            }
        }

        impl<'a> $name<'a> {
            $($($(#[$must_about])*
            #[must_use]
            pub const fn $must(&self) -> $must_type {
                self.$must
            })*)?

            $($($(#[$list_about])*
            pub fn $list(&self) -> impl Iterator<Item = Result<$item<'a>, ViewError>> + Clone + use<'a> {
                super::blocks(self.$list).map($item::of)
            })*)?

            $($($(#[$may_about])*
            #[must_use]
            pub fn $may(&self) -> Option<$may_type> {
                super::may(self.raw, $may_key, $may_read).ok().flatten()
            })*)?

            $($($(#[$flag_about])*
            #[must_use]
            pub fn $flag(&self) -> bool {
                super::may(self.raw, $flag_key, super::boolean).ok().flatten().unwrap_or(false)
            })*)?

            $($($(#[$part_about])*
            #[must_use]
            pub fn $part(&self) -> $part_view<'a> {
                $part_view { raw: super::part(self.raw, $part_key, super::object) }
            })*)?

            $($($(#[$lists_about])*
            pub fn $lists(&self) -> impl Iterator<Item = Result<$lists_item<'a>, ViewError>> + Clone + use<'a> {
                super::part(self.raw, $lists_key, super::array).items().map($lists_item::of)
            })*)?
        }
    };
}
use view;

#[cfg(test)]
#[allow(unreachable_pub, reason = "what the macro makes is public")]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    view! {
        /// A view for the tests.
        Sample {
            must {
                /// A required member.
                name: Text<'a> = "name" as text;
            }
            may {
                /// An optional member.
                size: u64 = "size" as whole;
                /// Another optional member.
                on: bool = "on" as boolean;
            }
        }
    }

    #[test]
    fn required_members_are_told_of_at_once() {
        assert_eq!(Sample::of(raw("[]")).unwrap_err(), ViewError::Shape(JsonKind::Object));
        assert_eq!(Sample::of(raw("{}")).unwrap_err(), ViewError::Missing("name"));
        assert_eq!(Sample::of(raw(r#"{"name":null}"#)).unwrap_err(), ViewError::Missing("name"));
        assert_eq!(Sample::of(raw(r#"{"name":1}"#)).unwrap_err(), ViewError::Type("name", JsonKind::String));
    }

    #[test]
    fn optional_members_are_read_leniently_and_checked_on_demand() {
        let sample = Sample::of(raw(r#"{"name":"\u006e","size":"3","on":null,"more":[1]}"#)).unwrap();
        assert!(sample.name().eq_str("n"));
        assert_eq!((sample.size(), sample.on()), (None, None));
        assert_eq!(sample.check(), Err(ViewError::Type("size", JsonKind::Number)));
        assert!(sample.raw().get("more").is_some());
        let good = Sample::of(raw(r#"{"name":"n","size":3.0,"on":false}"#)).unwrap();
        assert_eq!((good.size(), good.on(), good.check()), (Some(3), Some(false), Ok(())));
    }

    #[test]
    fn each_hides_nothing() {
        let list = raw(r#"[{"name":"a"},7,{"name":"b"}]"#);
        let count = |json| blocks(raw(json)).count();
        let each: [_; 3] = {
            let mut each = blocks(list).map(Sample::of);
            core::array::from_fn(|_| each.next().unwrap())
        };
        assert!(each[0].unwrap().name().eq_str("a") && each[2].unwrap().name().eq_str("b"));
        assert_eq!(each[1].unwrap_err(), ViewError::Shape(JsonKind::Object));
        assert_eq!((count(r#"{"name":"a"}"#), count("[1,2]"), count("3")), (1, 2, 0));
    }
}
