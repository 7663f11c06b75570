//! What tools and prompts answer with: text, images, audio, resources and links, shaped to the client's revision.

use core::fmt;

use crate::json::{Decimal, Raw, Text, object::Object, write};
use crate::revision::{Revision, Since};
use crate::sink::{Full, Writer};

use crate::balance::Piece;
use crate::server::{Icon, Icons};

/// Text to write: a string, something formatted, or the text of a message as it stands (which is the fastest, since
/// nothing is decoded).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Words<'w> {
    /// A string.
    Plain(&'w str),
    /// `format_args!(..)`
    Shown(Shown<'w>),
    /// Text of a message, passed on with its escapes.
    Verbatim(Text<'w>),
    /// A number. Unlike something formatted it needs none of `core::fmt`.
    Number(Decimal),
    /// Several, one behind the other; needs no `core::fmt` either.
    Joined(&'w [Words<'w>]),
}

#[inline(never)]
fn write_joined(words: &[Words<'_>], out: &mut Writer<'_>) -> Result<(), Full> {
    words.iter().try_for_each(|words| words.write_body(out))
}

/// Something formatted, and what writes it: a program that formats nothing is linked without `core::fmt`.
#[derive(Clone, Copy)]
pub struct Shown<'w> {
    arguments: fmt::Arguments<'w>,
    write: fn(&mut Writer<'_>, fmt::Arguments<'_>) -> Result<(), Full>,
}

fn write_shown(out: &mut Writer<'_>, shown: fmt::Arguments<'_>) -> Result<(), Full> {
    match shown.as_str() {
        Some(text) => write::escape(out, text),
        None => write::display(out, shown),
    }
}

impl Words<'_> {
    pub(crate) fn write(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        out.put(b"\"")?;
        self.write_body(out)?;
        out.put(b"\"")
    }

    /// Without the quotes.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn write_body(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Words::Plain(text) => write::escape(out, text),
            Words::Shown(shown) => (shown.write)(out, shown.arguments),
            Words::Verbatim(text) => out.put(text.raw()),
            Words::Number(number) => write::decimal(out, *number),
            Words::Joined(words) => write_joined(words, out),
        }
    }
}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Words::Plain(text) => fmt::Debug::fmt(text, f),
            Words::Shown(shown) => write!(f, "{}", shown.arguments),
            Words::Verbatim(text) => fmt::Debug::fmt(text, f),
            Words::Number(number) => fmt::Debug::fmt(number, f),
            Words::Joined(words) => fmt::Debug::fmt(words, f),
        }
    }
}

impl<'w> From<&'w str> for Words<'w> {
    fn from(text: &'w str) -> Self {
        Words::Plain(text)
    }
}

impl<'w> From<fmt::Arguments<'w>> for Words<'w> {
    fn from(shown: fmt::Arguments<'w>) -> Self {
        Words::Shown(Shown { arguments: shown, write: write_shown })
    }
}

impl<'w> From<Text<'w>> for Words<'w> {
    fn from(text: Text<'w>) -> Self {
        Words::Verbatim(text)
    }
}

impl From<Decimal> for Words<'_> {
    fn from(number: Decimal) -> Self {
        Words::Number(number)
    }
}

impl From<i64> for Words<'_> {
    fn from(number: i64) -> Self {
        Words::Number(Decimal::new(number, 0))
    }
}

impl<'w, const N: usize> From<&'w [Words<'w>; N]> for Words<'w> {
    fn from(words: &'w [Words<'w>; N]) -> Self {
        Words::Joined(words)
    }
}

#[cfg(feature = "alloc")]
impl<'w> From<&'w alloc::string::String> for Words<'w> {
    fn from(text: &'w alloc::string::String) -> Self {
        Words::Plain(text)
    }
}

/// Hints for whom content is and how much it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations<'c> {
    /// It is for the user.
    pub for_user: bool,
    /// It is for the model.
    pub for_assistant: bool,
    /// How much it matters, in percent; sent as a number between 0 and 1.
    pub priority: Option<u8>,
    /// When it changed last, as ISO 8601 (from 2025-06-18 on).
    pub last_modified: Option<&'c str>,
}

impl<'c> Annotations<'c> {
    /// No hints; add some.
    #[must_use]
    pub const fn new() -> Self {
        Annotations { for_user: false, for_assistant: false, priority: None, last_modified: None }
    }

    /// For the user.
    #[must_use]
    pub const fn user(self) -> Self {
        Annotations { for_user: true, ..self }
    }

    /// For the model.
    #[must_use]
    pub const fn assistant(self) -> Self {
        Annotations { for_assistant: true, ..self }
    }

    /// How much it matters, 0 to 100.
    #[must_use]
    pub const fn priority(self, percent: u8) -> Self {
        let percent = if percent > 100 { 100 } else { percent };
        Annotations { priority: Some(percent), ..self }
    }

    /// When it changed last, as ISO 8601.
    #[must_use]
    pub const fn last_modified(self, time: &'c str) -> Self {
        Annotations { last_modified: Some(time), ..self }
    }

    pub(crate) fn write(&self, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
        let last_modified = self.last_modified.filter(|_| revision.has(Since::LastModified));
        if !self.for_user && !self.for_assistant && self.priority.is_none() && last_modified.is_none() {
            return Ok(());
        }
        let mut inner = Object::open(object.key("annotations"));
        match (self.for_user, self.for_assistant) {
            (true, true) => inner.fixed("audience", r#"["user","assistant"]"#)?,
            (true, false) => inner.fixed("audience", r#"["user"]"#)?,
            (false, true) => inner.fixed("audience", r#"["assistant"]"#)?,
            (false, false) => {}
        }
        if let Some(percent) = self.priority {
            let decimal = crate::json::Decimal::new(percent.into(), 2);
            write::decimal(inner.key("priority"), decimal)?;
        }
        inner.text_if("lastModified", last_modified)?;
        inner.close()
    }
}

/// The contents of a resource: text or bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Contents<'c> {
    uri: Words<'c>,
    mime: Option<&'c str>,
    body: Body<'c>,
    meta: Option<Raw<'c>>,
}

#[derive(Clone, Copy, Debug)]
enum Body<'c> {
    Text(Words<'c>),
    Blob(&'c [u8]),
}

impl<'c> Contents<'c> {
    /// Text, with the URI it is found at.
    pub fn text(uri: impl Into<Words<'c>>, text: impl Into<Words<'c>>) -> Self {
        Contents { uri: uri.into(), mime: None, body: Body::Text(text.into()), meta: None }
    }

    /// Bytes, with the URI they are found at; sent as base64.
    pub fn blob(uri: impl Into<Words<'c>>, bytes: &'c [u8]) -> Self {
        Contents { uri: uri.into(), mime: None, body: Body::Blob(bytes), meta: None }
    }

    /// With a MIME type.
    #[must_use]
    pub const fn mime(self, mime: &'c str) -> Self {
        Contents { mime: Some(mime), ..self }
    }

    /// With `_meta`, an object as it stands (from 2025-06-18 on).
    #[must_use]
    pub const fn meta(self, meta: Raw<'c>) -> Self {
        Contents { meta: Some(meta), ..self }
    }

    /// What can be told of it in text: its own text, or where it is.
    const fn words(&self) -> Words<'c> {
        match self.body {
            Body::Text(text) => text,
            Body::Blob(_) => self.uri,
        }
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        self.uri.write(object.key("uri"))?;
        object.text_if("mimeType", self.mime)?;
        match self.body {
            Body::Text(text) => text.write(object.key("text"))?,
            Body::Blob(bytes) => write_base64(object.key("blob"), bytes)?,
        }
        write_meta(&mut object, revision, self.meta)?;
        object.close()
    }
}

/// A link to a resource (from 2025-06-18 on; before, it becomes text with the name and the URI).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Link<'c> {
    uri: &'c str,
    name: &'c str,
    title: Option<&'c str>,
    description: Option<&'c str>,
    mime: Option<&'c str>,
    size: Option<u64>,
    icons: Icons<'c>,
}

impl<'c> Link<'c> {
    /// A link to `uri`, called `name`.
    #[must_use]
    pub const fn new(uri: &'c str, name: &'c str) -> Self {
        Link { uri, name, title: None, description: None, mime: None, size: None, icons: Icons::NONE }
    }

    /// With a name for people.
    #[must_use]
    pub const fn title(self, title: &'c str) -> Self {
        Link { title: Some(title), ..self }
    }

    /// With a description.
    #[must_use]
    pub const fn description(self, description: &'c str) -> Self {
        Link { description: Some(description), ..self }
    }

    /// With a MIME type.
    #[must_use]
    pub const fn mime(self, mime: &'c str) -> Self {
        Link { mime: Some(mime), ..self }
    }

    /// With its size in bytes.
    #[must_use]
    pub const fn size(self, bytes: u64) -> Self {
        Link { size: Some(bytes), ..self }
    }

    /// With icons.
    #[must_use]
    pub const fn icons(self, icons: &'c [Icon<'c>]) -> Self {
        Link { icons: Icons::new(icons), ..self }
    }

    fn write(&self, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
        object.fixed("type", "\"resource_link\"")?;
        object.text("uri", self.uri)?;
        object.text("name", self.name)?;
        object.text_if("title", self.title)?;
        object.text_if("description", self.description)?;
        object.text_if("mimeType", self.mime)?;
        if let Some(size) = self.size {
            object.number("size", size)?;
        }
        self.icons.write(object, revision)
    }
}

/// One piece of content.
///
/// ```
/// use mcp_sansio::service::{Annotations, Content};
/// let pieces = [
///     Content::text("two images:"),
///     Content::image(&[0x89, b'P', b'N', b'G'], "image/png").annotations(Annotations::new().user()),
/// ];
/// # let _ = pieces;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Content<'c> {
    kind: Kind<'c>,
    annotations: Annotations<'c>,
    meta: Option<Raw<'c>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind<'c> {
    Text(Words<'c>),
    Image(&'c [u8], &'c str),
    Audio(&'c [u8], &'c str),
    Resource(Contents<'c>),
    Link(Link<'c>),
    ToolUse { id: &'c str, name: &'c str, input: Raw<'c> },
    ToolResult { id: &'c str, content: &'c [Content<'c>], is_error: bool },
}

impl<'c> Content<'c> {
    /// Text.
    pub fn text(text: impl Into<Words<'c>>) -> Self {
        Kind::Text(text.into()).into()
    }

    /// An image; sent as base64.
    #[must_use]
    pub fn image(bytes: &'c [u8], mime: &'c str) -> Self {
        Kind::Image(bytes, mime).into()
    }

    /// A sound; sent as base64. Before 2025-03-26 it becomes an embedded resource.
    #[must_use]
    pub fn audio(bytes: &'c [u8], mime: &'c str) -> Self {
        Kind::Audio(bytes, mime).into()
    }

    /// The contents of a resource, embedded.
    #[must_use]
    pub fn resource(contents: Contents<'c>) -> Self {
        Kind::Resource(contents).into()
    }

    /// A link to a resource.
    #[must_use]
    pub fn link(link: Link<'c>) -> Self {
        Kind::Link(link).into()
    }

    /// A model's wish to call a tool; only in messages for sampling (from 2025-11-25 on).
    #[must_use]
    pub fn tool_use(id: &'c str, name: &'c str, input: Raw<'c>) -> Self {
        Kind::ToolUse { id, name, input }.into()
    }

    /// What a tool answered a model; only in messages for sampling (from 2025-11-25 on).
    #[must_use]
    pub fn tool_result(id: &'c str, content: &'c [Content<'c>], is_error: bool) -> Self {
        Kind::ToolResult { id, content, is_error }.into()
    }

    /// With hints.
    #[must_use]
    pub const fn annotations(self, annotations: Annotations<'c>) -> Self {
        Content { annotations, ..self }
    }

    /// With `_meta`, an object as it stands (from 2025-06-18 on).
    #[must_use]
    pub const fn meta(self, meta: Raw<'c>) -> Self {
        Content { meta: Some(meta), ..self }
    }

    /// What of it counts for the balance of a conversation.
    pub(crate) const fn piece(&self) -> Piece<&'c str> {
        match self.kind {
            Kind::ToolUse { id, .. } => Piece::Use(Some(id)),
            Kind::ToolResult { id, .. } => Piece::Result(Some(id)),
            _ => Piece::Other,
        }
    }

    /// Whether it is about a model's tools.
    pub(crate) const fn is_tool_traffic(&self) -> bool {
        matches!(self.kind, Kind::ToolUse { .. } | Kind::ToolResult { .. })
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        self.write_in(out, revision, false)
    }

    /// Writes it; in messages for `sampling` there are no resources and no links, so that these become text.
    pub(crate) fn write_in(&self, out: &mut Writer<'_>, revision: Revision, sampling: bool) -> Result<(), Full> {
        let mut object = Object::open(out);
        match self.kind {
            Kind::Text(text) => {
                object.fixed("type", "\"text\"")?;
                text.write(object.key("text"))?;
            }
            Kind::Image(bytes, mime) => write_media(&mut object, "\"image\"", bytes, mime)?,
            Kind::Audio(bytes, mime) if revision.has(Since::Audio) => {
                write_media(&mut object, "\"audio\"", bytes, mime)?;
            }
            Kind::Audio(_, mime) if sampling => {
                object.fixed("type", "\"text\"")?;
                object.shown("text", &format_args!("({mime})"))?;
            }
            Kind::Audio(bytes, mime) => {
                let contents = Contents::blob("data:,audio", bytes).mime(mime);
                write_resource(&mut object, &contents, revision)?;
            }
            Kind::Resource(contents) if sampling => {
                object.fixed("type", "\"text\"")?;
                contents.words().write(object.key("text"))?;
            }
            Kind::Resource(contents) => write_resource(&mut object, &contents, revision)?,
            Kind::Link(link) if !sampling && revision.has(Since::ResourceLink) => link.write(&mut object, revision)?,
            Kind::Link(link) => {
                object.fixed("type", "\"text\"")?;
                object.shown("text", &format_args!("{}: {}", link.title.unwrap_or(link.name), link.uri))?;
            }
            Kind::ToolUse { id, name, input } => {
                object.fixed("type", "\"tool_use\"")?;
                object.text("id", id)?;
                object.text("name", name)?;
                object.raw("input", input)?;
            }
            Kind::ToolResult { id, content, is_error } => {
                object.fixed("type", "\"tool_result\"")?;
                object.text("toolUseId", id)?;
                write_all(object.key("content"), content, revision)?;
                object.boolean("isError", is_error)?;
            }
        }
        self.annotations.write(&mut object, revision)?;
        write_meta(&mut object, revision, self.meta)?;
        object.close()
    }
}

impl<'c> From<Kind<'c>> for Content<'c> {
    fn from(kind: Kind<'c>) -> Self {
        Content { kind, annotations: Annotations::new(), meta: None }
    }
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A message of a prompt, or of a conversation for sampling.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Message<'c> {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content<'c>,
    /// What is said besides, see [`and`](Message::and).
    pub more: &'c [Content<'c>],
}

impl<'c> Message<'c> {
    /// Said by the user.
    #[must_use]
    pub const fn user(content: Content<'c>) -> Self {
        Message { role: Role::User, content, more: &[] }
    }

    /// Said by the model.
    #[must_use]
    pub const fn assistant(content: Content<'c>) -> Self {
        Message { role: Role::Assistant, content, more: &[] }
    }

    /// With more content behind it: a model may want several tools at once, and their results belong into one message.
    /// For sampling from 2025-11-25 on it is one message; where messages have one content, in prompts and before, it is
    /// one for each.
    #[must_use]
    pub const fn and(self, more: &'c [Content<'c>]) -> Self {
        Message { more, ..self }
    }

    /// All that is said.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Content<'c>> + Clone {
        core::iter::once(&self.content).chain(self.more)
    }

    fn write(&self, out: &mut Writer<'_>, revision: Revision, sampling: bool) -> Result<(), Full> {
        let head: &[u8] = match self.role {
            Role::User => b"{\"role\":\"user\",\"content\":",
            Role::Assistant => b"{\"role\":\"assistant\",\"content\":",
        };
        let together = sampling && revision.has(Since::SamplingTools) && !self.more.is_empty();
        let (opening, between, end): (_, &[&[u8]], &[u8]) = match together {
            true => (&b"["[..], &[b","], b"]}"),
            false => (&b""[..], &[b"},", head], b"}"),
        };
        out.put(head)?;
        out.put(opening)?;
        for (i, piece) in self.pieces().enumerate() {
            if i > 0 {
                between.iter().try_for_each(|part| out.put(part))?;
            }
            piece.write_in(out, revision, sampling)?;
        }
        out.put(end)
    }
}

/// An array of contents.
pub(crate) fn write_all(out: &mut Writer<'_>, content: &[Content<'_>], revision: Revision) -> Result<(), Full> {
    out.put(b"[")?;
    for (i, piece) in content.iter().enumerate() {
        if i > 0 {
            out.put(b",")?;
        }
        piece.write(out, revision)?;
    }
    out.put(b"]")
}

/// An array of messages, of a prompt or for sampling.
pub(crate) fn write_messages(
    out: &mut Writer<'_>,
    messages: &[Message<'_>],
    revision: Revision,
    sampling: bool,
) -> Result<(), Full> {
    out.put(b"[")?;
    for (i, message) in messages.iter().enumerate() {
        if i > 0 {
            out.put(b",")?;
        }
        message.write(out, revision, sampling)?;
    }
    out.put(b"]")
}

/// `_meta` of an object, where the revision has that.
pub(crate) fn write_meta(object: &mut Object<'_, '_>, revision: Revision, meta: Option<Raw<'_>>) -> Result<(), Full> {
    object.raw_if("_meta", meta.filter(|_| revision.has(Since::ObjectMeta)))
}

fn write_media(object: &mut Object<'_, '_>, kind: &str, bytes: &[u8], mime: &str) -> Result<(), Full> {
    object.fixed("type", kind)?;
    write_base64(object.key("data"), bytes)?;
    object.text("mimeType", mime)
}

fn write_resource(object: &mut Object<'_, '_>, contents: &Contents<'_>, revision: Revision) -> Result<(), Full> {
    object.fixed("type", "\"resource\"")?;
    contents.write(object.key("resource"), revision)
}

fn write_base64(out: &mut Writer<'_>, bytes: &[u8]) -> Result<(), Full> {
    out.put(b"\"")?;
    write::base64(out, bytes)?;
    out.put(b"\"")
}
