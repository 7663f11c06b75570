//! What a server offers: tools, resources, templates, prompts, in lists of pages.

use super::server::{Hints, Icon};
use super::{Each, Flaw, View, array, boolean, may, must, object, text, view, whole};
use crate::json::{Raw, Text};

/// One page of a list.
macro_rules! list {
    ($(#[$about:meta])* $name:ident of $element:ident in $key:literal) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            raw: Raw<'a>,
            items: Raw<'a>,
            next: Option<Text<'a>>,
        }

        impl<'a> View<'a> for $name<'a> {
            fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
                object(raw).map_err(Flaw::Shape)?;
                Ok($name { raw, items: must(raw, $key, array)?, next: may(raw, "nextCursor", text)? })
            }

            fn raw(&self) -> Raw<'a> {
                self.raw
            }
        }

        impl<'a> $name<'a> {
            /// The elements of this page in their order, each with what is wrong with it.
            #[must_use]
            pub fn iter(&self) -> Each<'a, $element<'a>> {
                Each::of(self.items)
            }

            /// What the next page is asked for with, as it stands; `None` on the last page. An empty string is a cursor
            /// too.
            #[must_use]
            pub const fn next_cursor(&self) -> Option<Text<'a>> {
                self.next
            }
        }

        impl<'a> IntoIterator for $name<'a> {
            type Item = Result<$element<'a>, Flaw>;
            type IntoIter = Each<'a, $element<'a>>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        impl<'a> IntoIterator for &$name<'a> {
            type Item = Result<$element<'a>, Flaw>;
            type IntoIter = Each<'a, $element<'a>>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }
    };
}

list! {
    /// The result of `tools/list`.
    Tools of Tool in "tools"
}

list! {
    /// The result of `resources/list`.
    Resources of Resource in "resources"
}

list! {
    /// The result of `resources/templates/list`.
    Templates of Template in "resourceTemplates"
}

list! {
    /// The result of `prompts/list`.
    Prompts of Prompt in "prompts"
}

view! {
    /// A tool.
    Tool {
        must {
            /// The name it is called by.
            name: Text<'a> = "name" as text;
            /// The schema of its arguments, to the byte as the server sent it. What it refers to with `$ref` is nowhere fetched.
            input_schema: Raw<'a> = "inputSchema" as object;
        }
        may {
            /// Its name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// What it does.
            description: Text<'a> = "description" as text;
            /// The schema of its structured output (from 2025-06-18 on).
            output_schema: Raw<'a> = "outputSchema" as object;
            /// `annotations` as it stands; [`hints`](Self::hints) reads it.
            annotations: Raw<'a> = "annotations" as object;
            /// `icons` as it stands; [`icons`](Self::icons) reads it.
            raw_icons: Raw<'a> = "icons" as array;
            /// `_meta` (from 2025-06-18 on).
            meta: Raw<'a> = "_meta" as object;
        }
    }
}

impl<'a> Tool<'a> {
    /// What the server says of its behaviour (from 2025-03-26 on).
    #[must_use]
    pub fn hints(&self) -> ToolHints<'a> {
        let hints = self.annotations().and_then(|annotations| ToolHints::of(annotations).ok());
        hints.unwrap_or(ToolHints { raw: Raw::trusted(b"{}") })
    }

    /// What to show to people: its title, or what stands for it in 2025-03-26, or its name.
    #[must_use]
    pub fn label(&self) -> Text<'a> {
        self.title().or_else(|| self.hints().title()).unwrap_or(self.name)
    }

    /// Its icons (from 2025-11-25 on).
    #[must_use]
    pub fn icons(&self) -> Each<'a, Icon<'a>> {
        Each::maybe(self.raw_icons())
    }
}

view! {
    /// What a server says of a tool's behaviour. Do not decide by it unless the server is trusted (the specification's
    /// `ToolAnnotations`).
    ToolHints {
        must {}
        may {
            /// A name for people.
            title: Text<'a> = "title" as text;
            /// `readOnlyHint` as it was said, if it was.
            read_only_hint: bool = "readOnlyHint" as boolean;
            /// `destructiveHint` as it was said, if it was.
            destructive_hint: bool = "destructiveHint" as boolean;
            /// `idempotentHint` as it was said, if it was.
            idempotent_hint: bool = "idempotentHint" as boolean;
            /// `openWorldHint` as it was said, if it was.
            open_world_hint: bool = "openWorldHint" as boolean;
        }
    }
}

impl ToolHints<'_> {
    /// Whether it changes nothing; not, unless it is said.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.read_only_hint().unwrap_or(false)
    }

    /// Whether it may destroy something; it may, unless it is said that it does not, or that it only reads.
    #[must_use]
    pub fn destructive(&self) -> bool {
        !self.read_only() && self.destructive_hint().unwrap_or(true)
    }

    /// Whether a second call with the same arguments changes nothing more; not, unless it is said.
    #[must_use]
    pub fn idempotent(&self) -> bool {
        self.read_only() || self.idempotent_hint().unwrap_or(false)
    }

    /// Whether it deals with a world outside; it does, unless it is said that it does not.
    #[must_use]
    pub fn open_world(&self) -> bool {
        self.open_world_hint().unwrap_or(true)
    }
}

view! {
    /// A resource, in a list or as a link in content.
    Resource {
        must {
            /// Where it is.
            uri: Text<'a> = "uri" as text;
            /// Its name.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Its name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// What it is.
            description: Text<'a> = "description" as text;
            /// Its MIME type.
            mime: Text<'a> = "mimeType" as text;
            /// Its size in bytes.
            size: u64 = "size" as whole;
            /// `annotations` as it stands; [`hints`](Self::hints) reads it.
            annotations: Raw<'a> = "annotations" as object;
            /// `icons` as it stands; [`icons`](Self::icons) reads it.
            raw_icons: Raw<'a> = "icons" as array;
            /// `_meta` (from 2025-06-18 on).
            meta: Raw<'a> = "_meta" as object;
        }
    }
}

view! {
    /// A family of resources.
    Template {
        must {
            /// The URI with places to fill in (RFC 6570).
            uri_template: Text<'a> = "uriTemplate" as text;
            /// Its name.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Its name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// What it is.
            description: Text<'a> = "description" as text;
            /// The MIME type, if all of the family have the same.
            mime: Text<'a> = "mimeType" as text;
            /// `annotations` as it stands; [`hints`](Self::hints) reads it.
            annotations: Raw<'a> = "annotations" as object;
            /// `icons` as it stands; [`icons`](Self::icons) reads it.
            raw_icons: Raw<'a> = "icons" as array;
            /// `_meta` (from 2025-06-18 on).
            meta: Raw<'a> = "_meta" as object;
        }
    }
}

view! {
    /// A prompt.
    Prompt {
        must {
            /// The name it is asked for by.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Its name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// What it is for.
            description: Text<'a> = "description" as text;
            /// `arguments` as it stands; [`arguments`](Self::arguments) reads it.
            raw_arguments: Raw<'a> = "arguments" as array;
            /// `icons` as it stands; [`icons`](Self::icons) reads it.
            raw_icons: Raw<'a> = "icons" as array;
            /// `_meta` (from 2025-06-18 on).
            meta: Raw<'a> = "_meta" as object;
        }
    }
}

impl<'a> Prompt<'a> {
    /// The arguments it takes.
    #[must_use]
    pub fn arguments(&self) -> Each<'a, PromptArgument<'a>> {
        Each::maybe(self.raw_arguments())
    }
}

view! {
    /// An argument of a prompt; its values are strings.
    PromptArgument {
        must {
            /// Its name.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Its name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// What it means.
            description: Text<'a> = "description" as text;
            /// `required` as it was said, if it was.
            required: bool = "required" as boolean;
        }
    }
}

impl PromptArgument<'_> {
    /// Whether it must be given.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required().unwrap_or(false)
    }
}

/// What resources, templates and prompts have alike.
macro_rules! labelled {
    ($($name:ident)*) => {$(
        impl<'a> $name<'a> {
            /// What to show to people: its title, or its name.
            #[must_use]
            pub fn label(&self) -> Text<'a> {
                self.title().unwrap_or(self.name)
            }

            /// Its icons (from 2025-11-25 on).
            #[must_use]
            pub fn icons(&self) -> Each<'a, Icon<'a>> {
                Each::maybe(self.raw_icons())
            }
        }
    )*};
}
labelled!(Resource Template Prompt);

impl<'a> Resource<'a> {
    /// For whom it is and how much it matters.
    #[must_use]
    pub fn hints(&self) -> Hints<'a> {
        Hints::in_member(self.raw)
    }
}

impl<'a> Template<'a> {
    /// For whom they are and how much they matter.
    #[must_use]
    pub fn hints(&self) -> Hints<'a> {
        Hints::in_member(self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonKind;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn cursors() {
        let page = |json| Tools::of(raw(json));
        assert!(page(r#"{"tools":[]}"#).unwrap().next_cursor().is_none());
        assert!(page(r#"{"tools":[],"nextCursor":null}"#).unwrap().next_cursor().is_none());
        assert!(page(r#"{"tools":[],"nextCursor":""}"#).unwrap().next_cursor().is_some_and(|c| c.is("")));
        let flaw = page(r#"{"tools":[],"nextCursor":3}"#).unwrap_err();
        assert_eq!(flaw, Flaw::Type("nextCursor", JsonKind::String));
        assert_eq!(page(r#"{"tools":{}}"#).unwrap_err(), Flaw::Type("tools", JsonKind::Array));
        assert_eq!(page("{}").unwrap_err(), Flaw::Missing("tools"));
    }

    #[test]
    fn a_tool_says_what_it_is() {
        let tool = Tool::of(raw(
            r#"{"name":"t","inputSchema":{ "type" : "object" },"annotations":{"title":"T","destructiveHint":false},"outputSchema":{"type":"array"},"_meta":{"k":1},"icons":[{"src":"data:,"},{"src":"file:///x"}]}"#,
        ))
        .unwrap();
        assert_eq!(tool.input_schema().as_str(), r#"{ "type" : "object" }"#);
        assert!(tool.label().is("T") && tool.output_schema().is_some() && tool.meta().is_some());
        let hints = tool.hints();
        assert!(!hints.read_only() && !hints.destructive() && !hints.idempotent() && hints.open_world());
        assert_eq!(tool.icons().flatten().count(), 1);
        assert_eq!(tool.check(), Ok(()));
        let bare = Tool::of(raw(r#"{"name":"t","inputSchema":{},"annotations":[]}"#)).unwrap();
        assert!(bare.hints().destructive() && bare.label().is("t"));
        assert_eq!(bare.check(), Err(Flaw::Type("annotations", JsonKind::Object)));
    }

    #[test]
    fn resources_templates_prompts() {
        let list = r#"{"resources":[{"uri":"a:b","name":"n","size":12,"mimeType":"text/plain","annotations":{"audience":["user"]}},{"name":"n"}]}"#;
        let list = Resources::of(raw(list)).unwrap();
        let resource = list.iter().next().unwrap().unwrap();
        assert_eq!(resource.size(), Some(12));
        assert!(resource.uri().is("a:b") && resource.mime().is_some() && resource.hints().for_user());
        assert_eq!(list.into_iter().nth(1).unwrap().unwrap_err(), Flaw::Missing("uri"));

        let list = raw(r#"{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n","title":"N"}]}"#);
        let template = Templates::of(list).unwrap().iter().next().unwrap().unwrap();
        assert!(template.uri_template().is("a:{b}") && template.label().is("N"));

        let list = raw(
            r#"{"prompts":[{"name":"p","arguments":[{"name":"a","required":true},{"name":"b"},{"required":true}]}]}"#,
        );
        let prompt = Prompts::of(list).unwrap().iter().next().unwrap().unwrap();
        let required: [_; 3] = {
            let mut each = prompt.arguments();
            core::array::from_fn(|_| each.next().unwrap().map(|argument| argument.is_required()))
        };
        assert_eq!(required, [Ok(true), Ok(false), Err(Flaw::Missing("name"))]);
    }
}
