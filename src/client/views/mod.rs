//! Typed views over what a server answers: thin, `Copy`, borrowed from the message.
//!
//! A view is made by [`View::of`], which says at once if a member that the protocol requires is missing or of the wrong
//! type. All else is read when it is asked for: a member that is not there, or is `null` (many servers write out what
//! they do not have), is `None`, and so is one of the wrong type, which [`View::check`] tells apart. Members that the
//! protocol does not know are left alone and are found through [`View::raw`].
//!
//! Lists hand out a [`Result`] for every element, so that one bad tool does not hide the others:
//!
//! ```
//! use mcp_sansio::client::views::{Flaw, Tools, View};
//! use mcp_sansio::json::Raw;
//!
//! let result = Raw::constant(
//!     r#"{"tools":[
//!         {"name":"add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"x-cost":3},
//!         {"name":"broken"}
//!     ],"nextCursor":"p2"}"#,
//! );
//! let tools = Tools::of(result)?;
//! let mut each = tools.iter();
//! let add = each.next().unwrap()?;
//! assert!(add.name().is("add") && add.hints().read_only());
//! assert_eq!(add.raw().get("x-cost").and_then(|cost| cost.u64()), Some(3));
//! assert_eq!(each.next().unwrap().unwrap_err(), Flaw::Missing("inputSchema"));
//! assert!(tools.next_cursor().is_some_and(|cursor| cursor.is("p2")));
//! assert_eq!(tools.iter().flatten().count(), 1); // those that are whole
//! # Ok::<(), Flaw>(())
//! ```

mod content;
mod offers;
mod results;
mod server;

pub use content::{Blob, BlobError, Body, Content, Contents, Embedded, Media, Message, Quote, ToolResult, ToolUse};
pub use offers::{Prompt, PromptArgument, Prompts, Resource, Resources, Template, Templates, Tool, ToolHints, Tools};
pub use results::{CallResult, Completion, PromptResult, ReadResult};
pub use server::{Hints, Icon, ServerInfo};

use crate::json::{Items, JsonKind, Raw, Text};
use core::fmt;
use core::marker::PhantomData;

/// What is wrong with something that a server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Flaw {
    /// The value itself should be of this kind.
    Shape(JsonKind),
    /// The member of this name is required and missing.
    Missing(&'static str),
    /// The member of this name should be of this kind.
    Type(&'static str, JsonKind),
    /// The member of this name is of the right type, but not one of the values allowed.
    Value(&'static str),
}

impl Flaw {
    /// The member it is about; empty if it is about the value itself.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Flaw::Shape(_) => "",
            Flaw::Missing(member) | Flaw::Type(member, _) | Flaw::Value(member) => member,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Shape(kind) => write!(f, "not {}", article(*kind)),
            Flaw::Missing(member) => write!(f, "`{member}` is missing"),
            Flaw::Type(member, kind) => write!(f, "`{member}` is not {}", article(*kind)),
            Flaw::Value(member) => write!(f, "`{member}` is not one of the values allowed"),
        }
    }
}

impl core::error::Error for Flaw {}

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

/// A typed view over one value of a message.
pub trait View<'a>: Copy {
    /// Looks at a value.
    ///
    /// # Errors
    /// If a member that the protocol requires is missing or of the wrong type.
    fn of(raw: Raw<'a>) -> Result<Self, Flaw>;

    /// The value as it stands, with the members that the protocol does not know.
    fn raw(&self) -> Raw<'a>;

    /// Whether the optional members are of the right types as well. The getters read those that are not as `None`.
    ///
    /// # Errors
    /// The first one that is not.
    fn check(&self) -> Result<(), Flaw> {
        Ok(())
    }
}

/// The elements of a list, each with what is wrong with it; see [`View`].
#[derive(Clone, Debug)]
pub struct Each<'a, T> {
    one: Option<Raw<'a>>,
    items: Items<'a>,
    view: PhantomData<T>,
}

impl<'a, T> Each<'a, T> {
    /// The elements of an array; none of anything else.
    pub(crate) fn of(array: Raw<'a>) -> Self {
        Each { one: None, items: array.items(), view: PhantomData }
    }

    /// The elements of an array, or the one value that stands in place of one.
    fn one_or_more(value: Raw<'a>) -> Self {
        Each { one: Some(value).filter(|value| value.kind() != JsonKind::Array), ..Each::of(value) }
    }

    /// The elements of an array that may not be there.
    fn maybe(array: Option<Raw<'a>>) -> Self {
        Each::of(array.unwrap_or(Raw::trusted(b"[]")))
    }
}

impl<'a, T: View<'a>> Iterator for Each<'a, T> {
    type Item = Result<T, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        self.one.take().or_else(|| self.items.next()).map(T::of)
    }
}

impl<'a, T: View<'a>> core::iter::FusedIterator for Each<'a, T> {}

/// What a member should be: its value, or the kind it should have been of.
type Want<'a, T> = fn(Raw<'a>) -> Result<T, JsonKind>;

pub(crate) fn text(raw: Raw<'_>) -> Result<Text<'_>, JsonKind> {
    raw.text().ok_or(JsonKind::String)
}

pub(crate) fn object(raw: Raw<'_>) -> Result<Raw<'_>, JsonKind> {
    of_kind(raw, JsonKind::Object)
}

pub(crate) fn array(raw: Raw<'_>) -> Result<Raw<'_>, JsonKind> {
    of_kind(raw, JsonKind::Array)
}

fn number(raw: Raw<'_>) -> Result<Raw<'_>, JsonKind> {
    of_kind(raw, JsonKind::Number)
}

fn whole(raw: Raw<'_>) -> Result<u64, JsonKind> {
    raw.u64().ok_or(JsonKind::Number)
}

fn boolean(raw: Raw<'_>) -> Result<bool, JsonKind> {
    raw.bool().ok_or(JsonKind::Bool)
}

fn of_kind(raw: Raw<'_>, kind: JsonKind) -> Result<Raw<'_>, JsonKind> {
    if raw.kind() == kind { Ok(raw) } else { Err(kind) }
}

/// A member that must be there.
pub(crate) fn must<'a, T>(raw: Raw<'a>, key: &'static str, want: Want<'a, T>) -> Result<T, Flaw> {
    may(raw, key, want)?.ok_or(Flaw::Missing(key))
}

/// A member that may be there; `null` means that it is not.
pub(crate) fn may<'a, T>(raw: Raw<'a>, key: &'static str, want: Want<'a, T>) -> Result<Option<T>, Flaw> {
    let member = raw.get(key).filter(|member| member.kind() != JsonKind::Null);
    member.map(|member| want(member).map_err(|kind| Flaw::Type(key, kind))).transpose()
}

/// A view: `must` members are read when it is made and kept, `may` members when they are asked for.
macro_rules! view {
    ($(#[$about:meta])* $name:ident {
        must { $($(#[$must_about:meta])* $must:ident: $must_type:ty = $must_key:literal as $must_want:path;)* }
        may { $($(#[$may_about:meta])* $may:ident: $may_type:ty = $may_key:literal as $may_want:path;)* }
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            raw: $crate::json::Raw<'a>,
            $($must: $must_type,)*
        }

        impl<'a> $crate::client::views::View<'a> for $name<'a> {
            fn of(raw: $crate::json::Raw<'a>) -> Result<Self, $crate::client::views::Flaw> {
                $crate::client::views::object(raw).map_err($crate::client::views::Flaw::Shape)?;
                Ok($name { raw, $($must: $crate::client::views::must(raw, $must_key, $must_want)?,)* })
            }

            fn raw(&self) -> $crate::json::Raw<'a> {
                self.raw
            }

            fn check(&self) -> Result<(), $crate::client::views::Flaw> {
                $($crate::client::views::may(self.raw, $may_key, $may_want)?;)*
                Ok(())
            }
        }

        impl<'a> $name<'a> {
            $($(#[$must_about])*
            #[must_use]
            pub const fn $must(&self) -> $must_type {
                self.$must
            })*
            $($(#[$may_about])*
            #[must_use]
            pub fn $may(&self) -> Option<$may_type> {
                $crate::client::views::may(self.raw, $may_key, $may_want).ok().flatten()
            })*
        }
    };
}
pub(crate) use view;

#[cfg(test)]
#[allow(unreachable_pub, reason = "what the macro makes is public")]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    view! {
        /// For the tests.
        Sample {
            must {
                /// Required.
                name: Text<'a> = "name" as text;
            }
            may {
                /// Not required.
                size: u64 = "size" as whole;
                /// Neither.
                on: bool = "on" as boolean;
            }
        }
    }

    #[test]
    fn required_members_are_told_of_at_once() {
        assert_eq!(Sample::of(raw("[]")).unwrap_err(), Flaw::Shape(JsonKind::Object));
        assert_eq!(Sample::of(raw("{}")).unwrap_err(), Flaw::Missing("name"));
        assert_eq!(Sample::of(raw(r#"{"name":null}"#)).unwrap_err(), Flaw::Missing("name"));
        assert_eq!(Sample::of(raw(r#"{"name":1}"#)).unwrap_err(), Flaw::Type("name", JsonKind::String));
        assert_eq!(Flaw::Type("name", JsonKind::String).member(), "name");
    }

    #[test]
    fn optional_members_are_read_leniently_and_checked_on_demand() {
        let sample = Sample::of(raw(r#"{"name":"\u006e","size":"3","on":null,"more":[1]}"#)).unwrap();
        assert!(sample.name().is("n"));
        assert_eq!((sample.size(), sample.on()), (None, None));
        assert_eq!(sample.check(), Err(Flaw::Type("size", JsonKind::Number)));
        assert!(sample.raw().get("more").is_some());
        let good = Sample::of(raw(r#"{"name":"n","size":3.0,"on":false}"#)).unwrap();
        assert_eq!((good.size(), good.on(), good.check()), (Some(3), Some(false), Ok(())));
    }

    #[test]
    fn each_hides_nothing() {
        let list = raw(r#"[{"name":"a"},7,{"name":"b"}]"#);
        let each: [_; 3] = {
            let mut each = Each::<Sample<'_>>::of(list);
            core::array::from_fn(|_| each.next().unwrap())
        };
        assert!(each[0].unwrap().name().is("a") && each[2].unwrap().name().is("b"));
        assert_eq!(each[1].unwrap_err(), Flaw::Shape(JsonKind::Object));
        assert_eq!(Each::<Sample<'_>>::one_or_more(raw(r#"{"name":"a"}"#)).count(), 1);
        assert_eq!(Each::<Sample<'_>>::one_or_more(list).count(), 3);
        assert_eq!(Each::<Sample<'_>>::maybe(None).count(), 0);
    }
}
