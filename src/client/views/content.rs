//! Content: what tools answer, what prompts and conversations are made of, what is in a resource.

use super::server::Hints;
use super::{Each, Flaw, Resource, View, array, boolean, must, object, text, view};
use crate::json::{Raw, Text, write};
use crate::service::Role;
use core::fmt;

/// One piece of content.
///
/// ```
/// use mcp_sansio::client::views::{CallResult, Content, View};
/// use mcp_sansio::json::Raw;
///
/// let result = Raw::constant(r#"{"content":[{"type":"text","text":"5"},{"type":"hologram","data":"…"}]}"#);
/// let result = CallResult::of(result)?;
/// let mut shown = 0;
/// for piece in result.content().flatten() {
///     match piece {
///         Content::Text(text) => shown += usize::from(text.text().is("5")),
///         Content::Other(raw) => assert!(raw.get("data").is_some()), // newer than this crate
///         _ => {}
///     }
/// }
/// assert_eq!(shown, 1);
/// # Ok::<(), mcp_sansio::client::views::Flaw>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// `text`
    Text(Quote<'a>),
    /// `image`
    Image(Media<'a>),
    /// `audio` (from 2025-03-26 on)
    Audio(Media<'a>),
    /// `resource`: its contents, embedded.
    Resource(Embedded<'a>),
    /// `resource_link` (from 2025-06-18 on)
    Link(Resource<'a>),
    /// `tool_use`, only in sampling (from 2025-11-25 on)
    ToolUse(ToolUse<'a>),
    /// `tool_result`, only in sampling (from 2025-11-25 on)
    ToolResult(ToolResult<'a>),
    /// Of a type that this crate does not know.
    Other(Raw<'a>),
}

impl<'a> View<'a> for Content<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        let kind = must(raw, "type", text)?;
        for (name, read) in KINDS {
            if kind.is(name) {
                return read(raw);
            }
        }
        Ok(Content::Other(raw))
    }

    fn raw(&self) -> Raw<'a> {
        match self {
            Content::Text(view) => view.raw(),
            Content::Image(view) | Content::Audio(view) => view.raw(),
            Content::Resource(view) => view.raw(),
            Content::Link(view) => view.raw(),
            Content::ToolUse(view) => view.raw(),
            Content::ToolResult(view) => view.raw(),
            Content::Other(raw) => *raw,
        }
    }
}

type Read = for<'a> fn(Raw<'a>) -> Result<Content<'a>, Flaw>;

const KINDS: [(&str, Read); 7] = [
    ("text", |raw| Quote::of(raw).map(Content::Text)),
    ("image", |raw| Media::of(raw).map(Content::Image)),
    ("audio", |raw| Media::of(raw).map(Content::Audio)),
    ("resource", |raw| Embedded::of(raw).map(Content::Resource)),
    ("resource_link", |raw| Resource::of(raw).map(Content::Link)),
    ("tool_use", |raw| ToolUse::of(raw).map(Content::ToolUse)),
    ("tool_result", |raw| ToolResult::of(raw).map(Content::ToolResult)),
];

impl<'a> Content<'a> {
    /// The text, if it is text.
    #[must_use]
    pub fn text(&self) -> Option<Text<'a>> {
        match self {
            Content::Text(quote) => Some(quote.text()),
            _ => None,
        }
    }

    /// For whom it is and how much it matters.
    #[must_use]
    pub fn hints(&self) -> Hints<'a> {
        Hints::in_member(self.raw())
    }

    /// `_meta` (from 2025-06-18 on).
    #[must_use]
    pub fn meta(&self) -> Option<Raw<'a>> {
        self.raw().get("_meta").and_then(|meta| object(meta).ok())
    }
}

view! {
    /// Text.
    Quote {
        must {
            /// The text.
            text: Text<'a> = "text" as text;
        }
        may {}
    }
}

view! {
    /// An image or a sound.
    Media {
        must {
            /// The bytes, in base64.
            data: Blob<'a> = "data" as blob;
            /// The MIME type; look at the bytes before it is believed.
            mime: Text<'a> = "mimeType" as text;
        }
        may {}
    }
}

view! {
    /// A resource whose contents are in the message.
    Embedded {
        must {
            /// The resource as it stands; [`contents`](Self::contents) reads it.
            resource: Raw<'a> = "resource" as object;
        }
        may {}
    }
}

impl<'a> Embedded<'a> {
    /// The contents of the resource.
    ///
    /// # Errors
    /// If they are not whole.
    pub fn contents(&self) -> Result<Contents<'a>, Flaw> {
        Contents::of(self.resource)
    }
}

view! {
    /// A model's wish to call a tool.
    ToolUse {
        must {
            /// Names the wish; the [`ToolResult`] has the same.
            id: Text<'a> = "id" as text;
            /// The tool.
            name: Text<'a> = "name" as text;
            /// Its arguments.
            input: Raw<'a> = "input" as object;
        }
        may {}
    }
}

view! {
    /// What a tool answered a model.
    ToolResult {
        must {
            /// Which [`ToolUse`] it answers.
            tool_use_id: Text<'a> = "toolUseId" as text;
            /// The content as it stands; [`content`](Self::content) reads it.
            raw_content: Raw<'a> = "content" as array;
        }
        may {
            /// `isError` as it was said, if it was.
            error: bool = "isError" as boolean;
        }
    }
}

impl<'a> ToolResult<'a> {
    /// What the tool answered.
    #[must_use]
    pub fn content(&self) -> Each<'a, Content<'a>> {
        Each::of(self.raw_content)
    }

    /// Structured content, any JSON value (an object before 2026-07-28).
    #[must_use]
    pub fn structured(&self) -> Option<Raw<'a>> {
        self.raw.get("structuredContent")
    }

    /// Whether the tool failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.error().unwrap_or(false)
    }
}

/// A message of a prompt, or of a conversation for sampling.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    raw: Raw<'a>,
    role: Role,
    content: Raw<'a>,
}

impl<'a> View<'a> for Message<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        let role = read_role(must(raw, "role", text)?).ok_or(Flaw::Value("role"))?;
        let content = must(raw, "content", array).or_else(|_| must(raw, "content", object))?;
        Ok(Message { raw, role, content })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

impl<'a> Message<'a> {
    /// Who says it.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What is said: one piece in a prompt, one or more in a conversation (from 2025-11-25 on).
    #[must_use]
    pub fn content(&self) -> Each<'a, Content<'a>> {
        Each::one_or_more(self.content)
    }
}

fn read_role(role: Text<'_>) -> Option<Role> {
    match () {
        () if role.is("user") => Some(Role::User),
        () if role.is("assistant") => Some(Role::Assistant),
        () => None,
    }
}

/// The contents of a resource. Either text or bytes.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    raw: Raw<'a>,
    uri: Text<'a>,
    body: Body<'a>,
}

/// Text or bytes.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum Body<'a> {
    /// Text.
    Text(Text<'a>),
    /// Bytes, in base64.
    Blob(Blob<'a>),
}

impl<'a> View<'a> for Contents<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        let uri = must(raw, "uri", text)?;
        let body = match must(raw, "text", text) {
            Err(Flaw::Missing(_)) => must(raw, "blob", blob).map(Body::Blob),
            text => text.map(Body::Text),
        };
        // Neither of them: the message names the one that is usual.
        let body = body.map_err(|flaw| if flaw == Flaw::Missing("blob") { Flaw::Missing("text") } else { flaw })?;
        Ok(Contents { raw, uri, body })
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

impl<'a> Contents<'a> {
    /// Where they are found.
    #[must_use]
    pub const fn uri(&self) -> Text<'a> {
        self.uri
    }

    /// The MIME type.
    #[must_use]
    pub fn mime(&self) -> Option<Text<'a>> {
        self.raw.get("mimeType")?.text()
    }

    /// What is in it.
    #[must_use]
    pub const fn body(&self) -> Body<'a> {
        self.body
    }

    /// The text, if it is text.
    #[must_use]
    pub const fn text(&self) -> Option<Text<'a>> {
        match self.body {
            Body::Text(text) => Some(text),
            Body::Blob(_) => None,
        }
    }

    /// The bytes, if it is bytes.
    #[must_use]
    pub const fn blob(&self) -> Option<Blob<'a>> {
        match self.body {
            Body::Blob(blob) => Some(blob),
            Body::Text(_) => None,
        }
    }

    /// `_meta` (from 2025-06-18 on).
    #[must_use]
    pub fn meta(&self) -> Option<Raw<'a>> {
        self.raw.get("_meta").and_then(|meta| object(meta).ok())
    }
}

/// Bytes in base64, to be decoded into a buffer that is lent.
///
/// ```
/// use mcp_sansio::client::views::{Contents, View};
/// use mcp_sansio::json::Raw;
///
/// let contents = Contents::of(Raw::constant(r#"{"uri":"file:///hi","blob":"aGk="}"#))?;
/// let blob = contents.blob().unwrap();
/// let mut buffer = [0; 16];
/// assert!(blob.len() <= buffer.len());
/// assert_eq!(blob.decode(&mut buffer), Ok(&b"hi"[..]));
/// # Ok::<(), mcp_sansio::client::views::Flaw>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a>(Text<'a>);

/// Why a [`Blob`] was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BlobError {
    /// The buffer is smaller than [`Blob::len`].
    Room,
    /// Not base64 of the standard alphabet, with padding.
    Base64,
}

impl fmt::Display for BlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlobError::Room => "the bytes do not fit into the buffer",
            BlobError::Base64 => "not valid base64",
        })
    }
}

impl core::error::Error for BlobError {}

fn blob(raw: Raw<'_>) -> Result<Blob<'_>, crate::json::JsonKind> {
    text(raw).map(Blob)
}

impl<'a> Blob<'a> {
    /// The base64 as it stands, for those who pass it on.
    #[must_use]
    pub const fn base64(&self) -> Text<'a> {
        self.0
    }

    /// How many bytes they are when decoded, provided that it is base64.
    #[must_use]
    pub fn len(&self) -> usize {
        let (mut count, mut padding) = (0usize, 0);
        for c in self.0.chars() {
            count += 1;
            padding += usize::from(c == Ok('='));
        }
        (count / 4 * 3).saturating_sub(padding)
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.raw().is_empty()
    }

    /// The bytes, in the front of `buffer`.
    ///
    /// # Errors
    /// [`BlobError::Room`] if it is smaller than [`len`](Self::len), [`BlobError::Base64`] if they are none. What is in
    /// the buffer then is of no use.
    pub fn decode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], BlobError> {
        if self.len() > buffer.len() {
            return Err(BlobError::Room);
        }
        let len =
            if self.0.is_escaped() { self.decode_escaped(buffer) } else { write::decode_base64(self.0.raw(), buffer) };
        buffer.get(..len.ok_or(BlobError::Base64)?).ok_or(BlobError::Room)
    }

    /// Group by group: some writers escape every slash.
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

    fn content(json: &str) -> Result<Content<'_>, Flaw> {
        Content::of(raw(json))
    }

    #[test]
    fn every_kind() {
        assert!(content(r#"{"type":"text","text":"a"}"#).unwrap().text().is_some_and(|text| text.is("a")));
        let image = content(
            r#"{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"audience":["user"]},"_meta":{}}"#,
        )
        .unwrap();
        assert!(matches!(image, Content::Image(media) if media.mime().is("image/png") && media.data().len() == 1));
        assert!(image.hints().for_user() && image.meta().is_some() && image.text().is_none());
        assert!(matches!(content(r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#), Ok(Content::Audio(_))));
        let resource = content(r#"{"type":"resource","resource":{"uri":"a:b","text":"t","mimeType":"text/plain"}}"#);
        let Ok(Content::Resource(resource)) = resource else { panic!() };
        let contents = resource.contents().unwrap();
        assert!(contents.uri().is("a:b") && contents.text().is_some() && contents.mime().is_some());
        let link = content(r#"{"type":"resource_link","uri":"a:b","name":"n"}"#);
        assert!(matches!(link, Ok(Content::Link(link)) if link.name().is("n")));
        let wish = content(r#"{"type":"tool_use","id":"1","name":"t","input":{"a":1}}"#);
        assert!(matches!(wish, Ok(Content::ToolUse(wish)) if wish.id().is("1") && wish.name().is("t")));
        let done = content(
            r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"x"}],"isError":true,"structuredContent":3}"#,
        );
        let Ok(Content::ToolResult(done)) = done else { panic!() };
        assert!(done.is_error() && done.content().count() == 1 && done.structured().is_some());
        assert!(matches!(content(r#"{"type":"new"}"#), Ok(Content::Other(_))));
    }

    #[test]
    fn what_is_not_whole() {
        let flaw = |json| content(json).unwrap_err();
        assert_eq!(flaw("3"), Flaw::Shape(JsonKind::Object));
        assert_eq!(flaw(r#"{"text":"a"}"#), Flaw::Missing("type"));
        assert_eq!(flaw(r#"{"type":"text","text":5}"#), Flaw::Type("text", JsonKind::String));
        assert_eq!(flaw(r#"{"type":"image","data":"AA=="}"#), Flaw::Missing("mimeType"));
        assert_eq!(flaw(r#"{"type":"resource","resource":[]}"#), Flaw::Type("resource", JsonKind::Object));
        assert_eq!(Contents::of(raw(r#"{"uri":"a:b"}"#)).unwrap_err(), Flaw::Missing("text"));
        assert_eq!(Contents::of(raw(r#"{"uri":"a:b","blob":1}"#)).unwrap_err(), Flaw::Type("blob", JsonKind::String));
    }

    #[test]
    fn messages() {
        let message = Message::of(raw(r#"{"role":"user","content":{"type":"text","text":"a"}}"#)).unwrap();
        assert_eq!((message.role(), message.content().count()), (Role::User, 1));
        let message = Message::of(raw(r#"{"role":"assistant","content":[{"type":"text","text":"a"},{}]}"#)).unwrap();
        assert_eq!((message.role(), message.content().flatten().count()), (Role::Assistant, 1));
        assert_eq!(Message::of(raw(r#"{"role":"system","content":{}}"#)).unwrap_err(), Flaw::Value("role"));
        let flaw = Message::of(raw(r#"{"role":"user","content":"a"}"#)).unwrap_err();
        assert_eq!(flaw, Flaw::Type("content", JsonKind::Object));
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
        assert_eq!(decoded(r#""AAAA""#, 2).0, Err(BlobError::Room));
        for bad in [r#""AAA""#, r#""A=AA""#, r#""AA==AAAA""#, r#""A\/==\/AAA""#, r#""\u00e9AAA""#, r#""A\/A""#] {
            assert_eq!(decoded(bad, 8).0, Err(BlobError::Base64), "{bad}");
        }
    }
}
