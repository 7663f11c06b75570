//! Views of content: tool results, prompt messages, resource contents.

use super::server::AnnotationsView;
use super::{ResourceView, View, ViewError, array, may, must, must_be, object, part, shape, text, view};
use crate::content::Role;
use crate::json::{JsonKind, Raw, Text, write};

/// A content block ([tool
/// result](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result)).
///
/// ```
/// use mcp_sansio::client::views::{CallToolResult, ContentBlockKind, View};
/// use mcp_sansio::json::Raw;
///
/// let result = Raw::constant(r#"{"content":[{"type":"text","text":"5"},{"type":"hologram","data":"…"}]}"#);
/// let result = CallToolResult::of(result)?;
/// let mut shown = 0;
/// for piece in result.content().flatten() {
///     match piece.kind {
///         ContentBlockKind::Text(text) => shown += usize::from(text.eq_str("5")),
///         ContentBlockKind::Other => assert!(piece.raw().get("data").is_some()), // newer than this crate
///         _ => {}
///     }
/// }
/// assert_eq!(shown, 1);
/// # Ok::<(), mcp_sansio::client::views::ViewError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ContentBlockView<'a> {
    raw: Raw<'a>,
    /// The type and the members.
    pub kind: ContentBlockKind<'a>,
}

/// The type and the members of a [`ContentBlockView`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ContentBlockKind<'a> {
    /// `text`: the member `text`.
    #[doc(alias = "TextContent")]
    Text(Text<'a>),
    /// `image`.
    #[doc(alias = "ImageContent")]
    Image {
        /// `data`: bytes in base64.
        data: Blob<'a>,
        /// `mimeType`. Look at the bytes before you trust it.
        mime: Text<'a>,
    },
    /// `audio` (from 2025-03-26 on).
    #[doc(alias = "AudioContent")]
    Audio {
        /// `data`: bytes in base64.
        data: Blob<'a>,
        /// `mimeType`. Look at the bytes before you trust it.
        mime: Text<'a>,
    },
    /// `resource`: the contents of a resource in the message.
    #[doc(alias = "EmbeddedResource")]
    Resource(ResourceContentsView<'a>),
    /// `resource_link` (from 2025-06-18 on).
    #[doc(alias = "ResourceLink")]
    Link(ResourceView<'a>),
    /// `tool_use`: a model asks to call a tool ([tools in
    /// sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#sampling-with-tools), from
    /// 2025-11-25 on).
    #[doc(alias = "ToolUseContent")]
    ToolUse {
        /// `id`. The [`ToolResultContent`] has it as `toolUseId`.
        id: Text<'a>,
        /// `name`: the tool.
        name: Text<'a>,
        /// `input`: the arguments, an object.
        input: Raw<'a>,
    },
    /// `tool_result`, in sampling (from 2025-11-25 on).
    ToolResult(ToolResultContent<'a>),
    /// A type that this crate does not know.
    Other,
}

impl<'a> View<'a> for ContentBlockView<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
        shape(raw)?;
        let get = |key| must(raw, key, text);
        let data = || must(raw, "data", blob);
        // Those of text, the usual kind, are found in one pass.
        let [kind, said] = raw.pick(["type", "text"]);
        let kind = match must_be(kind, "type", text)? {
            kind if kind.eq_str("text") => ContentBlockKind::Text(must_be(said, "text", text)?),
            kind if kind.eq_str("image") => ContentBlockKind::Image { data: data()?, mime: get("mimeType")? },
            kind if kind.eq_str("audio") => ContentBlockKind::Audio { data: data()?, mime: get("mimeType")? },
            kind if kind.eq_str("resource") => ContentBlockKind::Resource(View::of(must(raw, "resource", object)?)?),
            kind if kind.eq_str("resource_link") => ContentBlockKind::Link(View::of(raw)?),
            kind if kind.eq_str("tool_use") => {
                ContentBlockKind::ToolUse { id: get("id")?, name: get("name")?, input: must(raw, "input", object)? }
            }
            kind if kind.eq_str("tool_result") => ContentBlockKind::ToolResult(View::of(raw)?),
            _ => ContentBlockKind::Other,
        };
        Ok(ContentBlockView { raw, kind })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

impl<'a> ContentBlockView<'a> {
    /// Returns the text of a `text` block.
    #[must_use]
    pub const fn text(&self) -> Option<Text<'a>> {
        match self.kind {
            ContentBlockKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns `annotations`: audience and priority.
    #[doc(alias = "annotations")]
    #[must_use]
    pub fn hints(&self) -> AnnotationsView<'a> {
        AnnotationsView { raw: part(self.raw(), "annotations", object) }
    }
}

view! {
    /// A `tool_result` block: the result of a tool for a model ([tools in
    /// sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#tool-result-messages)).
    ToolResultContent {
        must {
            /// Returns `toolUseId`: the `id` of the [`tool_use`](ContentBlockKind::ToolUse).
            tool_use_id: Text<'a> = "toolUseId" as text;
        }
        list {
            /// Returns the content blocks.
            content: ContentBlockView = "content" as array;
        }
        flags {
            /// Returns `isError`: `true` if the tool failed.
            is_error = "isError";
        }
    }
}

impl<'a> ToolResultContent<'a> {
    /// Returns `structuredContent`: any JSON value (an object before 2026-07-28).
    #[doc(alias = "structuredContent")]
    #[must_use]
    pub fn structured(&self) -> Option<Raw<'a>> {
        self.raw.get("structuredContent")
    }
}

view! {
    /// A message of a prompt
    /// ([prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage)) or of a
    /// sampling request.
    PromptMessageView {
        must {
            /// Returns `role`.
            role: Role = "role" as role;
        }
        list {
            /// Returns the content: one block in a prompt, one or more in a sampling request (from 2025-11-25 on).
            content: ContentBlockView = "content" as one_or_more;
        }
    }
}

fn role(raw: Raw<'_>, key: &'static str) -> Result<Role, ViewError> {
    match text(raw, key)? {
        role if role.eq_str("user") => Ok(Role::User),
        role if role.eq_str("assistant") => Ok(Role::Assistant),
        _ => Err(ViewError::Value(key)),
    }
}

fn one_or_more<'a>(raw: Raw<'a>, key: &'static str) -> Result<Raw<'a>, ViewError> {
    if raw.kind() == JsonKind::Array { Ok(raw) } else { object(raw, key) }
}

view! {
    /// The contents of a resource: text or bytes ([resource
    /// contents](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-contents)).
    ResourceContentsView {
        valid has_body;
        must {
            /// Returns `uri`.
            uri: Text<'a> = "uri" as text;
        }
        may {
            /// Returns `mimeType`.
            #[doc(alias = "mimeType")]
            mime: Text<'a> = "mimeType" as text;
            /// Returns `text`; `None` for bytes.
            text: Text<'a> = "text" as text;
            /// Returns `blob`: the bytes; `None` for text.
            blob: Blob<'a> = "blob" as blob;
        }
    }
}

fn has_body(raw: Raw<'_>) -> Result<(), ViewError> {
    if may(raw, "text", text)?.is_some() || may(raw, "blob", blob)?.is_some() {
        return Ok(());
    }
    // Without both members the error names the usual one.
    Err(ViewError::Missing("text"))
}

/// Bytes in base64. [`decode`](Self::decode) writes them into a buffer of the caller.
///
/// ```
/// use mcp_sansio::client::views::{ResourceContentsView, View};
/// use mcp_sansio::json::Raw;
///
/// let contents = ResourceContentsView::of(Raw::constant(r#"{"uri":"file:///hi","blob":"aGk="}"#))?;
/// let blob = contents.blob().unwrap();
/// let mut buffer = [0; 16];
/// assert!(blob.decoded_len() <= buffer.len());
/// assert_eq!(blob.decode(&mut buffer), Ok(&b"hi"[..]));
/// # Ok::<(), mcp_sansio::client::views::ViewError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a>(Text<'a>);

fn blob<'a>(raw: Raw<'a>, key: &'static str) -> Result<Blob<'a>, ViewError> {
    text(raw, key).map(Blob)
}

impl<'a> Blob<'a> {
    /// Returns the base64 text, to forward it.
    #[must_use]
    pub const fn base64(&self) -> Text<'a> {
        self.0
    }

    /// Returns the number of decoded bytes, if the text is valid base64.
    #[must_use]
    pub fn decoded_len(&self) -> usize {
        let padding = self.0.chars().filter(|&c| c == Ok('=')).count();
        (self.0.chars().count() / 4 * 3).saturating_sub(padding)
    }

    /// Writes the bytes to the beginning of `buffer` and returns them.
    ///
    /// # Errors
    /// [`ViewError::BufferTooSmall`] if `buffer` is shorter than [`decoded_len`](Self::decoded_len), [`ViewError::Base64`] if the text is
    /// not base64. The content of `buffer` is then unspecified.
    pub fn decode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], ViewError> {
        if self.decoded_len() > buffer.len() {
            return Err(ViewError::BufferTooSmall);
        }
        let len =
            if self.0.is_escaped() { self.decode_escaped(buffer) } else { write::decode_base64(self.0.raw(), buffer) };
        buffer.get(..len.ok_or(ViewError::Base64)?).ok_or(ViewError::BufferTooSmall)
    }

    /// Decodes in groups of four characters: some servers escape every slash.
    fn decode_escaped(&self, buffer: &mut [u8]) -> Option<usize> {
        let (mut len, mut chars) = (0, self.0.chars());
        while let Some(first) = chars.next() {
            let mut group = [0; 4];
            for (place, c) in group.iter_mut().zip(core::iter::once(first).chain(chars.by_ref())) {
                *place = u8::try_from(c.ok()?).ok()?;
            }
            let last = group.ends_with(b"=");
            len += write::decode_base64(&group, buffer.get_mut(len..)?)?;
            if last {
                return chars.next().is_none().then_some(len);
            }
        }
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonKind;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    fn content(json: &str) -> Result<ContentBlockView<'_>, ViewError> {
        ContentBlockView::of(raw(json))
    }

    #[test]
    fn every_kind() {
        assert!(content(r#"{"type":"text","text":"a"}"#).unwrap().text().is_some_and(|text| text.eq_str("a")));
        let image = content(
            r#"{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"audience":["user"]},"_meta":{}}"#,
        )
        .unwrap();
        let ContentBlockKind::Image { data, mime } = image.kind else { panic!() };
        assert!(mime.eq_str("image/png") && data.decoded_len() == 1);
        assert!(image.hints().is_for(Role::User) && image.meta().is_some() && image.text().is_none());
        let kind = |json| content(json).unwrap().kind;
        let audio = kind(r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#);
        assert!(matches!(audio, ContentBlockKind::Audio { data, .. } if data.decoded_len() == 0));
        let resource = kind(r#"{"type":"resource","resource":{"uri":"a:b","text":"t","mimeType":"text/plain"}}"#);
        let ContentBlockKind::Resource(contents) = resource else { panic!() };
        assert!(contents.uri().eq_str("a:b") && contents.text().is_some() && contents.mime().is_some());
        let link = kind(r#"{"type":"resource_link","uri":"a:b","name":"n"}"#);
        assert!(matches!(link, ContentBlockKind::Link(link) if link.name().eq_str("n")));
        let wish = kind(r#"{"type":"tool_use","id":"1","name":"t","input":{"a":1}}"#);
        assert!(
            matches!(wish, ContentBlockKind::ToolUse { id, name, input } if id.eq_str("1") && name.eq_str("t") && input.get("a").is_some())
        );
        let done = kind(
            r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"x"}],"isError":true,"structuredContent":3}"#,
        );
        let ContentBlockKind::ToolResult(done) = done else { panic!() };
        assert!(done.is_error() && done.content().count() == 1 && done.structured().is_some());
        assert!(matches!(kind(r#"{"type":"new"}"#), ContentBlockKind::Other));
    }

    #[test]
    fn what_is_not_whole() {
        let flaw = |json| content(json).unwrap_err();
        assert_eq!(flaw("3"), ViewError::Shape(JsonKind::Object));
        assert_eq!(flaw(r#"{"text":"a"}"#), ViewError::Missing("type"));
        assert_eq!(flaw(r#"{"type":"text","text":5}"#), ViewError::Type("text", JsonKind::String));
        assert_eq!(flaw(r#"{"type":"image","data":"AA=="}"#), ViewError::Missing("mimeType"));
        assert_eq!(flaw(r#"{"type":"resource","resource":[]}"#), ViewError::Type("resource", JsonKind::Object));
        assert_eq!(flaw(r#"{"type":"resource","resource":{"uri":"a:b"}}"#), ViewError::Missing("text"));
        assert_eq!(ResourceContentsView::of(raw(r#"{"uri":"a:b"}"#)).unwrap_err(), ViewError::Missing("text"));
        assert_eq!(
            ResourceContentsView::of(raw(r#"{"uri":"a:b","blob":1}"#)).unwrap_err(),
            ViewError::Type("blob", JsonKind::String)
        );
    }

    #[test]
    fn messages() {
        let message = PromptMessageView::of(raw(r#"{"role":"user","content":{"type":"text","text":"a"}}"#)).unwrap();
        assert_eq!((message.role(), message.content().count()), (Role::User, 1));
        let message =
            PromptMessageView::of(raw(r#"{"role":"assistant","content":[{"type":"text","text":"a"},{}]}"#)).unwrap();
        assert_eq!((message.role(), message.content().flatten().count()), (Role::Assistant, 1));
        assert_eq!(
            PromptMessageView::of(raw(r#"{"role":"system","content":{}}"#)).unwrap_err(),
            ViewError::Value("role")
        );
        let flaw = PromptMessageView::of(raw(r#"{"role":"user","content":"a"}"#)).unwrap_err();
        assert_eq!(flaw, ViewError::Type("content", JsonKind::Object));
    }

    #[test]
    fn blobs() {
        let decoded = |json: &'static str, room: usize| {
            let mut buffer = [0; 8];
            let decoded = Blob(raw(json).text().unwrap()).decode(buffer.get_mut(..room).unwrap()).map(<[u8]>::len);
            (decoded, buffer)
        };
        assert_eq!(decoded(r#""+//+""#, 3).0, Ok(3));
        assert_eq!(decoded(r#""+\/\/+AAA=""#, 8), (Ok(5), [0xfb, 0xff, 0xfe, 0, 0, 0, 0, 0]));
        assert_eq!(decoded(r#""""#, 0).0, Ok(0));
        assert_eq!(decoded(r#""AAAA""#, 2).0, Err(ViewError::BufferTooSmall));
        for bad in [r#""AAA""#, r#""A=AA""#, r#""AA==AAAA""#, r#""A\/==\/AAA""#, r#""\u00e9AAA""#, r#""A\/A""#] {
            assert_eq!(decoded(bad, 8).0, Err(ViewError::Base64), "{bad}");
        }
    }
}
