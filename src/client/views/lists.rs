//! Views of lists: tools, resources, resource templates, prompts.

use core::marker::PhantomData;

use super::server::{AnnotationsView, IconView};
use super::{View, ViewError, array, boolean, may, must, object, shape, text, view, whole};
use crate::json::{Raw, Text};

/// A page of a list: `tools/list`, `resources/list`, `resources/templates/list` or `prompts/list`.
#[derive(Clone, Copy, Debug)]
pub struct ListResult<'a, T> {
    raw: Raw<'a>,
    items: Raw<'a>,
    /// `nextCursor`, for the request for the next page; `None` on the last page. An empty string is a cursor too
    /// ([pagination](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination)).
    pub next_cursor: Option<Text<'a>>,
    item: PhantomData<T>,
}

/// The result of `tools/list`
/// ([tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#listing-tools)).
pub type ListToolsResult<'a> = ListResult<'a, ToolView<'a>>;

/// The result of `resources/list`
/// ([resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#listing-resources)).
pub type ListResourcesResult<'a> = ListResult<'a, ResourceView<'a>>;

/// The result of `resources/templates/list` ([resource
/// templates](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-templates)).
pub type ListResourceTemplatesResult<'a> = ListResult<'a, ResourceTemplateView<'a>>;

/// The result of `prompts/list`
/// ([prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#listing-prompts)).
pub type ListPromptsResult<'a> = ListResult<'a, PromptView<'a>>;

impl<'a, T: View<'a>> View<'a> for ListResult<'a, T> {
    fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
        shape(raw)?;
        let items = must(raw, T::LIST_MEMBER, array)?;
        Ok(ListResult { raw, items, next_cursor: may(raw, "nextCursor", text)?, item: PhantomData })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

impl<'a, T: View<'a>> ListResult<'a, T> {
    /// Returns the elements of this page in their order: a view, or the reason why the element is invalid.
    pub fn iter(&self) -> impl Iterator<Item = Result<T, ViewError>> + Clone + use<'a, T> {
        self.items.items().map(T::of)
    }
}

view! {
    /// A tool ([tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool)). Ask the user
    /// before you call it: see [Consent](crate::duties::client#consent) and [Untrusted content](crate::duties::client#untrusted-content).
    ToolView {
        list "tools";
        must {
            /// Returns `name`, for [`Request::call`](crate::client::Request::call).
            name: Text<'a> = "name" as text;
            /// Returns `inputSchema`, exactly as the server sent it. The library does not fetch what `$ref`
            /// refers to.
            input_schema: Raw<'a> = "inputSchema" as object;
        }
        may {
            /// Returns `title`, a name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// Returns `description`.
            description: Text<'a> = "description" as text;
            /// Returns `outputSchema`: the schema of `structuredContent` (from 2025-06-18 on).
            output_schema: Raw<'a> = "outputSchema" as object;
        }
        parts {
            /// Returns `annotations`: the behaviour of the tool (from 2025-03-26 on).
            #[doc(alias = "annotations")]
            hints: ToolAnnotationsView = "annotations";
        }
        lists {
            /// Returns `icons` (from 2025-11-25 on).
            icons: IconView = "icons";
        }
    }
}

impl<'a> ToolView<'a> {
    /// Returns the name to show to people: `title`, `annotations.title`, or `name`.
    #[must_use]
    pub fn label(&self) -> Text<'a> {
        self.title().or_else(|| self.hints().title()).unwrap_or(self.name)
    }
}

view! {
    /// The `ToolAnnotations` of a tool: its behaviour as the server describes it. Do not decide by it unless you
    /// trust the server.
    ToolAnnotationsView {
        may {
            /// Returns `title`, a name for people.
            title: Text<'a> = "title" as text;
            /// Returns `readOnlyHint`; `None` if the server did not send it.
            read_only_hint: bool = "readOnlyHint" as boolean;
            /// Returns `destructiveHint`; `None` if the server did not send it.
            destructive_hint: bool = "destructiveHint" as boolean;
            /// Returns `idempotentHint`; `None` if the server did not send it.
            idempotent_hint: bool = "idempotentHint" as boolean;
            /// Returns `openWorldHint`; `None` if the server did not send it.
            open_world_hint: bool = "openWorldHint" as boolean;
        }
    }
}

impl ToolAnnotationsView<'_> {
    /// Returns `true` if the tool changes nothing. Default: `false`.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.read_only_hint().unwrap_or(false)
    }

    /// Returns `true` if the tool may destroy something. Default: `true`, but `false` for a tool that changes
    /// nothing.
    #[must_use]
    pub fn destructive(&self) -> bool {
        !self.read_only() && self.destructive_hint().unwrap_or(true)
    }

    /// Returns `true` if a second call with the same arguments changes nothing more. Default: `false`, but `true`
    /// for a tool that changes nothing.
    #[must_use]
    pub fn idempotent(&self) -> bool {
        self.read_only() || self.idempotent_hint().unwrap_or(false)
    }

    /// Returns `true` if the tool uses systems outside the server. Default: `true`.
    #[must_use]
    pub fn open_world(&self) -> bool {
        self.open_world_hint().unwrap_or(true)
    }
}

view! {
    /// A resource of a list, or a link to one in content
    /// ([resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource)).
    ResourceView {
        list "resources";
        must {
            /// Returns `uri`.
            uri: Text<'a> = "uri" as text;
            /// Returns `name`.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Returns `title`, a name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// Returns `description`.
            description: Text<'a> = "description" as text;
            /// Returns `mimeType`.
            #[doc(alias = "mimeType")]
            mime: Text<'a> = "mimeType" as text;
            /// Returns `size` in bytes.
            size: u64 = "size" as whole;
        }
        parts {
            /// Returns `annotations`: audience and priority.
            #[doc(alias = "annotations")]
            hints: AnnotationsView = "annotations";
        }
        lists {
            /// Returns `icons` (from 2025-11-25 on).
            icons: IconView = "icons";
        }
    }
}

view! {
    /// A resource template ([resource
    /// templates](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-templates)).
    ResourceTemplateView {
        list "resourceTemplates";
        must {
            /// Returns `uriTemplate`, a URI with variables (RFC 6570).
            uri_template: Text<'a> = "uriTemplate" as text;
            /// Returns `name`.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Returns `title`, a name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// Returns `description`.
            description: Text<'a> = "description" as text;
            /// Returns `mimeType`, if all resources of the template have the same.
            #[doc(alias = "mimeType")]
            mime: Text<'a> = "mimeType" as text;
        }
        parts {
            /// Returns `annotations` of the resources: audience and priority.
            #[doc(alias = "annotations")]
            hints: AnnotationsView = "annotations";
        }
        lists {
            /// Returns `icons` (from 2025-11-25 on).
            icons: IconView = "icons";
        }
    }
}

view! {
    /// A prompt ([prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#prompt)).
    PromptView {
        list "prompts";
        must {
            /// Returns `name`, for [`Request::prompt`](crate::client::Request::prompt).
            name: Text<'a> = "name" as text;
        }
        may {
            /// Returns `title`, a name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// Returns `description`.
            description: Text<'a> = "description" as text;
        }
        lists {
            /// Returns `arguments`.
            arguments: PromptArgumentView = "arguments";
            /// Returns `icons` (from 2025-11-25 on).
            icons: IconView = "icons";
        }
    }
}

view! {
    /// An argument of a prompt. Its values are strings.
    PromptArgumentView {
        must {
            /// Returns `name`.
            name: Text<'a> = "name" as text;
        }
        may {
            /// Returns `title`, a name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// Returns `description`.
            description: Text<'a> = "description" as text;
        }
        flags {
            /// Returns `required`: `true` if a request must have this argument. Default: `false`.
            is_required = "required";
        }
    }
}

/// Implements `label` for views whose name for people is `title`, or else `name`.
macro_rules! labelled {
    ($($name:ident)*) => {$(
        impl<'a> $name<'a> {
            /// Returns the name to show to people: `title`, or `name`.
            #[must_use]
            pub fn label(&self) -> Text<'a> {
                self.title().unwrap_or(self.name)
            }
        }
    )*};
}
labelled!(ResourceView ResourceTemplateView PromptView);

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::content::Role;
    use crate::json::JsonKind;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn cursors() {
        let page = |json| ListToolsResult::of(raw(json));
        assert!(page(r#"{"tools":[]}"#).unwrap().next_cursor.is_none());
        assert!(page(r#"{"tools":[],"nextCursor":null}"#).unwrap().next_cursor.is_none());
        assert!(page(r#"{"tools":[],"nextCursor":""}"#).unwrap().next_cursor.is_some_and(|c| c.eq_str("")));
        let flaw = page(r#"{"tools":[],"nextCursor":3}"#).unwrap_err();
        assert_eq!(flaw, ViewError::Type("nextCursor", JsonKind::String));
        assert_eq!(page(r#"{"tools":{}}"#).unwrap_err(), ViewError::Type("tools", JsonKind::Array));
        assert_eq!(page("{}").unwrap_err(), ViewError::Missing("tools"));
    }

    #[test]
    fn a_tool_says_what_it_is() {
        let tool = ToolView::of(raw(
            r#"{"name":"t","inputSchema":{ "type" : "object" },"annotations":{"title":"T","destructiveHint":false},"outputSchema":{"type":"array"},"_meta":{"k":1},"icons":[{"src":"data:,"},{"src":"file:///x"}]}"#,
        ))
        .unwrap();
        assert_eq!(tool.input_schema().as_str(), r#"{ "type" : "object" }"#);
        assert!(tool.label().eq_str("T") && tool.output_schema().is_some() && tool.meta().is_some());
        let hints = tool.hints();
        assert!(!hints.read_only() && !hints.destructive() && !hints.idempotent() && hints.open_world());
        assert_eq!(tool.icons().flatten().count(), 1);
        assert_eq!(tool.check(), Ok(()));
        let bare = ToolView::of(raw(r#"{"name":"t","inputSchema":{},"annotations":[]}"#)).unwrap();
        assert!(bare.hints().destructive() && !bare.hints().idempotent() && bare.label().eq_str("t"));
        assert_eq!(bare.check(), Err(ViewError::Type("annotations", JsonKind::Object)));
    }

    #[test]
    fn what_changes_nothing_is_idempotent_and_destroys_nothing() {
        for (hints, read_only, destructive, idempotent) in [
            (r#"{"readOnlyHint":true}"#, true, false, true),
            (r#"{"readOnlyHint":true,"destructiveHint":true,"idempotentHint":false}"#, true, false, true),
            (r#"{"readOnlyHint":false,"idempotentHint":true}"#, false, true, true),
            (r#"{"destructiveHint":true}"#, false, true, false),
        ] {
            let json = std::format!(r#"{{"name":"t","inputSchema":{{}},"annotations":{hints}}}"#);
            let tool = ToolView::of(raw(&json)).unwrap();
            let found = tool.hints();
            let found = (found.read_only(), found.destructive(), found.idempotent());
            assert_eq!(found, (read_only, destructive, idempotent), "{hints}");
        }
    }

    #[test]
    fn resources_templates_prompts() {
        let list = r#"{"resources":[{"uri":"a:b","name":"n","size":12,"mimeType":"text/plain","annotations":{"audience":["user"]}},{"name":"n"}]}"#;
        let list = ListResourcesResult::of(raw(list)).unwrap();
        let resource = list.iter().next().unwrap().unwrap();
        assert_eq!(resource.size(), Some(12));
        assert!(resource.uri().eq_str("a:b") && resource.mime().is_some() && resource.hints().is_for(Role::User));
        assert_eq!(list.iter().nth(1).unwrap().unwrap_err(), ViewError::Missing("uri"));

        let list = raw(r#"{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n","title":"N"}]}"#);
        let template = ListResourceTemplatesResult::of(list).unwrap().iter().next().unwrap().unwrap();
        assert!(template.uri_template().eq_str("a:{b}") && template.label().eq_str("N"));

        let list = raw(
            r#"{"prompts":[{"name":"p","arguments":[{"name":"a","required":true},{"name":"b"},{"required":true}]}]}"#,
        );
        let prompt = ListPromptsResult::of(list).unwrap().iter().next().unwrap().unwrap();
        let required: [_; 3] = {
            let mut each = prompt.arguments();
            core::array::from_fn(|_| each.next().unwrap().map(|argument| argument.is_required()))
        };
        assert_eq!(required, [Ok(true), Ok(false), Err(ViewError::Missing("name"))]);
    }
}
