//! The results of calls, reads, prompts and completions.

use super::{Content, Contents, Each, Flaw, Message, View, array, boolean, may, must, object, text, view, whole};
use crate::json::{Raw, Text};

/// The result of `tools/call`.
#[derive(Clone, Copy, Debug)]
pub struct CallResult<'a> {
    raw: Raw<'a>,
    content: Option<Raw<'a>>,
    is_error: bool,
}

/// `content` may be missing where there is structured content. An `isError` that is no boolean is a [`Flaw`]: a failure must
/// not pass for a success.
impl<'a> View<'a> for CallResult<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        let content = may(raw, "content", array)?;
        if content.is_none() && raw.get("structuredContent").is_none() {
            return Err(Flaw::Missing("content"));
        }
        let is_error = may(raw, "isError", boolean)?.unwrap_or(false);
        Ok(CallResult { raw, content, is_error })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

impl<'a> CallResult<'a> {
    /// What the tool answered, piece by piece.
    #[must_use]
    pub fn content(&self) -> Each<'a, Content<'a>> {
        Each::maybe(self.content)
    }

    /// The first text that it answered.
    #[must_use]
    pub fn text(&self) -> Option<Text<'a>> {
        self.content().flatten().find_map(|piece| piece.text())
    }

    /// Structured content (from 2025-06-18 on): an object, and any JSON value from 2026-07-28 on, `null` too.
    #[must_use]
    pub fn structured(&self) -> Option<Raw<'a>> {
        self.raw.get("structuredContent")
    }

    /// Whether the tool failed; its content says how, for the model to learn from.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.is_error
    }

    /// `_meta`
    #[must_use]
    pub fn meta(&self) -> Option<Raw<'a>> {
        may(self.raw, "_meta", object).ok().flatten()
    }
}

view! {
    /// The result of `resources/read`.
    ReadResult {
        must {
            /// The contents as they stand; [`contents`](Self::contents) reads them.
            raw_contents: Raw<'a> = "contents" as array;
        }
        may {
            /// `_meta`
            meta: Raw<'a> = "_meta" as object;
        }
    }
}

impl<'a> ReadResult<'a> {
    /// The contents: of the resource asked for, or of several that it is made of.
    #[must_use]
    pub fn contents(&self) -> Each<'a, Contents<'a>> {
        Each::of(self.raw_contents)
    }
}

view! {
    /// The result of `prompts/get`.
    PromptResult {
        must {
            /// The messages as they stand; [`messages`](Self::messages) reads them.
            raw_messages: Raw<'a> = "messages" as array;
        }
        may {
            /// What the prompt is for.
            description: Text<'a> = "description" as text;
            /// `_meta`
            meta: Raw<'a> = "_meta" as object;
        }
    }
}

impl<'a> PromptResult<'a> {
    /// The messages in their order.
    #[must_use]
    pub fn messages(&self) -> Each<'a, Message<'a>> {
        Each::of(self.raw_messages)
    }
}

/// The result of `completion/complete`.
///
/// ```
/// use mcp_sansio::client::views::{Completion, View};
/// use mcp_sansio::json::Raw;
///
/// let result = Raw::constant(r#"{"completion":{"values":["rust","ruby"],"total":12,"hasMore":true}}"#);
/// let completion = Completion::of(result)?;
/// assert_eq!(completion.values().count(), 2);
/// assert_eq!((completion.total(), completion.has_more()), (Some(12), true));
/// # Ok::<(), mcp_sansio::client::views::Flaw>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Completion<'a> {
    raw: Raw<'a>,
    completion: Raw<'a>,
    values: Raw<'a>,
}

impl<'a> View<'a> for Completion<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        let completion = must(raw, "completion", object)?;
        Ok(Completion { raw, completion, values: must(completion, "values", array)? })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }

    fn check(&self) -> Result<(), Flaw> {
        may(self.completion, "total", whole)?;
        may(self.completion, "hasMore", boolean)?;
        let texts = self.values.items().all(|value| value.text().is_some());
        if texts && self.values.items().count() <= 100 { Ok(()) } else { Err(Flaw::Value("values")) }
    }
}

impl<'a> Completion<'a> {
    /// The values, best first; those that are not strings are passed over. At most 100, says the specification.
    pub fn values(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        self.values.items().filter_map(|value| value.text())
    }

    /// How many there are in all, if that is known.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.completion.get("total")?.u64()
    }

    /// Whether there are more than these.
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
        let call = |json| CallResult::of(raw(json));
        let result = call(
            r#"{"content":[{"type":"image"},{"type":"text","text":"a"}],"isError":true,"structuredContent":{"x":1},"_meta":{}}"#,
        )
        .unwrap();
        assert!(result.is_error() && result.text().is_some_and(|text| text.is("a")) && result.meta().is_some());
        assert_eq!(result.content().next().unwrap().unwrap_err(), Flaw::Missing("data"));
        assert_eq!(result.structured().and_then(|value| value.get("x")?.u64()), Some(1));
        assert!(call(r#"{"structuredContent":[1]}"#).is_ok_and(|result| result.content().count() == 0));
        assert_eq!(call("{}").unwrap_err(), Flaw::Missing("content"));
        assert_eq!(call(r#"{"content":"a"}"#).unwrap_err(), Flaw::Type("content", JsonKind::Array));
        let flaw = call(r#"{"content":[],"isError":"true"}"#).unwrap_err();
        assert_eq!(flaw, Flaw::Type("isError", JsonKind::Bool));
        assert!(!call(r#"{"content":[],"isError":null}"#).unwrap().is_error());
    }

    #[test]
    fn reads_and_prompts() {
        let read = ReadResult::of(raw(r#"{"contents":[{"uri":"a:b","blob":"AA=="},{"uri":"a:c"}]}"#)).unwrap();
        assert_eq!(read.contents().next().unwrap().unwrap().blob().unwrap().len(), 1);
        assert_eq!(read.contents().nth(1).unwrap().unwrap_err(), Flaw::Missing("text"));
        assert_eq!(ReadResult::of(raw("{}")).unwrap_err(), Flaw::Missing("contents"));
        let prompt = r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a"}},{}]}"#;
        let prompt = PromptResult::of(raw(prompt)).unwrap();
        assert!(prompt.description().is_some_and(|d| d.is("d")));
        assert_eq!((prompt.messages().count(), prompt.messages().flatten().count()), (2, 1));
    }

    #[test]
    fn completions() {
        let completion = Completion::of(raw(r#"{"completion":{"values":["a",1]}}"#)).unwrap();
        assert_eq!((completion.values().count(), completion.total(), completion.has_more()), (1, None, false));
        assert_eq!(completion.check(), Err(Flaw::Value("values")));
        assert_eq!(Completion::of(raw(r#"{"completion":{}}"#)).unwrap_err(), Flaw::Missing("values"));
        assert_eq!(Completion::of(raw(r#"{"values":[]}"#)).unwrap_err(), Flaw::Missing("completion"));
    }
}
