//! Views of the results of tools, resources, prompts and completions.

use super::{
    ContentBlockView, PromptMessageView, ResourceContentsView, View, ViewError, array, boolean, may, may_be, must,
    object, shape, text, view, whole,
};
use crate::json::{Raw, Text};

/// The result of `tools/call` ([tool
/// result](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result)).
///
/// The library does not check it against the tool's `outputSchema`: see [Results](crate::duties::client#results).
///
/// ```
/// use mcp_sansio::client::views::{CallToolResult, View};
/// use mcp_sansio::json::Raw;
///
/// let result = Raw::constant(r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#);
/// let result = CallToolResult::of(result)?;
/// assert!(result.is_error);
/// assert!(result.text().is_some_and(|text| text.eq_str("no such city")));
/// # Ok::<(), mcp_sansio::client::views::ViewError>(())
/// ```
///
/// `content` may be missing beside `structuredContent`. [`View::of`] fails if `isError` is not a boolean: an
/// application must not take a failure for a success.
#[derive(Clone, Copy, Debug)]
pub struct CallToolResult<'a> {
    raw: Raw<'a>,
    content: Option<Raw<'a>>,
    /// `structuredContent` (from 2025-06-18 on): an object, and from 2026-07-28 on any JSON value, also `null`.
    #[doc(alias = "structuredContent")]
    pub structured: Option<Raw<'a>>,
    /// `isError`: `true` if the tool failed. The content then has the reason, for the model.
    pub is_error: bool,
}

impl<'a> View<'a> for CallToolResult<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
        shape(raw)?;
        let [content, structured, is_error] = raw.pick(["content", "structuredContent", "isError"]);
        let content = may_be(content, "content", array)?;
        if content.is_none() && structured.is_none() {
            return Err(ViewError::Missing("content"));
        }
        let is_error = may_be(is_error, "isError", boolean)?.unwrap_or(false);
        Ok(CallToolResult { raw, content, structured, is_error })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }

    fn check(&self) -> Result<(), ViewError> {
        may(self.raw, "_meta", object).map(|_| ())
    }
}

impl<'a> CallToolResult<'a> {
    /// Returns the content blocks.
    pub fn content(&self) -> impl Iterator<Item = Result<ContentBlockView<'a>, ViewError>> + Clone + use<'a> {
        self.content.into_iter().flat_map(|content| content.items()).map(ContentBlockView::of)
    }

    /// Returns the first text block.
    #[must_use]
    pub fn text(&self) -> Option<Text<'a>> {
        self.content().flatten().find_map(|piece| piece.text())
    }
}

view! {
    /// The result of `resources/read`
    /// ([resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources)).
    ReadResourceResult {
        list {
            /// Returns the contents of the resource, or of several resources that it consists of.
            contents: ResourceContentsView = "contents" as array;
        }
    }
}

view! {
    /// The result of `prompts/get`
    /// ([prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#getting-a-prompt)).
    GetPromptResult {
        list {
            /// Returns the messages in their order.
            messages: PromptMessageView = "messages" as array;
        }
        may {
            /// Returns `description`.
            description: Text<'a> = "description" as text;
        }
    }
}

/// The result of `completion/complete`
/// ([completion](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion)).
///
/// ```
/// use mcp_sansio::client::views::{CompleteResult, View};
/// use mcp_sansio::json::Raw;
///
/// let result = Raw::constant(r#"{"completion":{"values":["rust","ruby"],"total":12,"hasMore":true}}"#);
/// let completion = CompleteResult::of(result)?;
/// assert_eq!(completion.values().count(), 2);
/// assert_eq!((completion.total(), completion.has_more()), (Some(12), true));
/// # Ok::<(), mcp_sansio::client::views::ViewError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CompleteResult<'a> {
    raw: Raw<'a>,
    completion: Raw<'a>,
    values: Raw<'a>,
}

impl<'a> View<'a> for CompleteResult<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
        shape(raw)?;
        let completion = must(raw, "completion", object)?;
        Ok(CompleteResult { raw, completion, values: must(completion, "values", array)? })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }

    fn check(&self) -> Result<(), ViewError> {
        may(self.completion, "total", whole)?;
        may(self.completion, "hasMore", boolean)?;
        let texts = self.values.items().all(|value| value.text().is_some());
        if texts && self.values.items().count() <= 100 { Ok(()) } else { Err(ViewError::Value("values")) }
    }
}

impl<'a> CompleteResult<'a> {
    /// Returns `values`, best first. Skips those that are not strings. The protocol allows at most 100.
    pub fn values(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        self.values.items().filter_map(|value| value.text())
    }

    /// Returns `total`: the number of all values.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.completion.get("total")?.u64()
    }

    /// Returns `hasMore`: `true` if there are more values. Default: `false`.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.completion.get("hasMore").and_then(|more| more.bool()).unwrap_or(false)
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
    fn calls() {
        let call = |json| CallToolResult::of(raw(json));
        let result = call(
            r#"{"content":[{"type":"image"},{"type":"text","text":"a"}],"isError":true,"structuredContent":{"x":1},"_meta":{}}"#,
        )
        .unwrap();
        assert!(result.is_error && result.text().is_some_and(|text| text.eq_str("a")) && result.meta().is_some());
        assert_eq!(result.content().next().unwrap().unwrap_err(), ViewError::Missing("data"));
        assert_eq!(result.structured.and_then(|value| value.get("x")?.u64()), Some(1));
        assert!(call(r#"{"structuredContent":[1]}"#).is_ok_and(|result| result.content().count() == 0));
        assert_eq!(call("{}").unwrap_err(), ViewError::Missing("content"));
        assert_eq!(call(r#"{"content":"a"}"#).unwrap_err(), ViewError::Type("content", JsonKind::Array));
        let flaw = call(r#"{"content":[],"isError":"true"}"#).unwrap_err();
        assert_eq!(flaw, ViewError::Type("isError", JsonKind::Bool));
        assert!(!call(r#"{"content":[],"isError":null}"#).unwrap().is_error);
    }

    #[test]
    fn reads_and_prompts() {
        let read = ReadResourceResult::of(raw(r#"{"contents":[{"uri":"a:b","blob":"AA=="},{"uri":"a:c"}]}"#)).unwrap();
        assert_eq!(read.contents().next().unwrap().unwrap().blob().unwrap().decoded_len(), 1);
        assert_eq!(read.contents().nth(1).unwrap().unwrap_err(), ViewError::Missing("text"));
        assert_eq!(ReadResourceResult::of(raw("{}")).unwrap_err(), ViewError::Missing("contents"));
        let prompt = r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a"}},{}]}"#;
        let prompt = GetPromptResult::of(raw(prompt)).unwrap();
        assert!(prompt.description().is_some_and(|d| d.eq_str("d")));
        assert_eq!((prompt.messages().count(), prompt.messages().flatten().count()), (2, 1));
    }

    // spec: S112
    #[test]
    fn completions() {
        let completion = CompleteResult::of(raw(r#"{"completion":{"values":["a",1]}}"#)).unwrap();
        assert_eq!((completion.values().count(), completion.total(), completion.has_more()), (1, None, false));
        assert_eq!(completion.check(), Err(ViewError::Value("values")));
        let completion = CompleteResult::of(raw(r#"{"completion":{"values":[],"total":7,"hasMore":true}}"#)).unwrap();
        assert_eq!((completion.total(), completion.has_more(), completion.check()), (Some(7), true, Ok(())));
        assert_eq!(CompleteResult::of(raw(r#"{"completion":{}}"#)).unwrap_err(), ViewError::Missing("values"));
        assert_eq!(CompleteResult::of(raw(r#"{"values":[]}"#)).unwrap_err(), ViewError::Missing("completion"));
    }
}
