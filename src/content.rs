//! Content that both roles send: text, images, audio, resources, links and icons. It is written in the form of
//! the revision that the peer uses.
//!
//! See the types `ContentBlock`, `Annotations` and `Icon` of the
//! [schema](https://modelcontextprotocol.io/specification/2025-11-25/schema).

use core::fmt;

#[cfg(feature = "ask")]
use crate::balance::Piece;
use crate::json::object::{Object, array};
use crate::json::{Decimal, Raw, Text};
use crate::revision::{Revision, Since};
use crate::sink::Writer;

/// Text to write. It is made by `into()` from a `&str`, a `&String`, a number, a text of a message, `format_args!(..)`, or
/// several of these: `&[..]`. Only `format_args!` and floats need `core::fmt`. A text of a message is the fastest: its
/// escapes are not decoded. Methods that write it at once take an [`AnswerText`], which may own its text.
///
/// A float is written as `Display` writes it: `1.5`, `2`, also `NaN` and `inf`, which are text here and no numbers of JSON.
#[derive(Clone, Copy, Debug)]
pub struct TextValue<'w>(TextSource<'w>);

#[derive(Clone, Copy, Debug)]
enum TextSource<'w> {
    Plain(&'w str),
    /// With the function that writes it: so a program that formats nothing is linked without `core::fmt`.
    Formatted(Formatted<'w>, WriteFormatted),
    /// Text of a message, written with its escapes.
    Verbatim(Text<'w>),
    Number(Decimal),
    Joined(&'w [TextValue<'w>]),
}

#[derive(Clone, Copy, Debug)]
enum Formatted<'w> {
    Arguments(fmt::Arguments<'w>),
    /// A number that is no [`Decimal`], or a character. In one variant with the arguments: another one would be code in
    /// each program, 24 bytes.
    Bits(u64),
}

impl Formatted<'_> {
    const fn bits(self) -> u64 {
        match self {
            Formatted::Arguments(_) => 0,
            Formatted::Bits(bits) => bits,
        }
    }
}

type WriteFormatted = fn(&mut Writer<'_>, Formatted<'_>);

#[inline(never)]
fn write_joined(words: &[TextValue<'_>], out: &mut Writer<'_>) {
    words.iter().for_each(|words| words.write_body(out));
}

fn write_formatted(out: &mut Writer<'_>, formatted: Formatted<'_>) {
    let Formatted::Arguments(arguments) = formatted else { return };
    match arguments.as_str() {
        Some(text) => out.escape(text),
        None => out.display(arguments),
    }
}

impl TextValue<'_> {
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.put(b"\"");
        self.write_body(out);
        out.put(b"\"")
    }

    /// Writes the text without the quotes.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn write_body(&self, out: &mut Writer<'_>) {
        match self.0 {
            TextSource::Plain(text) => out.escape(text),
            TextSource::Formatted(formatted, write) => write(out, formatted),
            TextSource::Verbatim(text) => out.put(text.raw()),
            TextSource::Number(number) => out.decimal(number),
            TextSource::Joined(words) => write_joined(words, out),
        }
    }
}

/// A text that is written at once, so that it may own its bytes: a `String`, a `Cow<str>`, or all that becomes a
/// [`TextValue`] by `into()`. A handler answers with it.
///
/// ```
/// use mcp_sansio::service::{Call, HandlerResult};
///
/// fn describe(name: &mut String, call: &mut Call<'_>) -> HandlerResult {
///     match call.arguments().members().count() {
///         0 => call.text("no arguments"),
///         1 => call.text(name.to_uppercase()),
///         2 => call.text(42u64),
///         3 => call.text(1.5),
///         _ => call.text(format_args!("for {name}")), // all that is `Display`
///     }
/// }
/// # let _: fn(&mut String, &mut Call<'_>) -> HandlerResult = describe;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no text",
    label = "for a value that is `Display`: `format_args!(\"{{value}}\")`",
    note = "a text is a `&str`, a `String`, a number, a text of a message, `format_args!(..)`, or several of these: `&[..]`"
)]
pub trait AnswerText {
    /// Passes the text to `write`, and returns its result.
    fn with_text<R>(self, write: impl FnOnce(&TextValue<'_>) -> R) -> R;
}

/// Implements `From` for what becomes a [`TextValue`], and [`AnswerText`].
macro_rules! texts {
    ($($type:ty: |$value:ident| $made:expr;)*) => { $(
        impl<'w> From<$type> for TextValue<'w> {
            fn from($value: $type) -> Self {
                $made
            }
        }

        answers!(('w) $type: |value| value;);
    )* };
}

macro_rules! answers {
    ($(($($generics:tt)*) $type:ty: |$value:ident| $made:expr;)*) => { $(
        impl<$($generics)*> AnswerText for $type {
            #[inline(always)]
            fn with_text<R>(self, write: impl FnOnce(&TextValue<'_>) -> R) -> R {
                let $value = self;
                write(&TextValue::from($made))
            }
        }
    )* };
}

texts! {
    &'w str: |text| TextValue(TextSource::Plain(text));
    Text<'w>: |text| TextValue(TextSource::Verbatim(text));
    fmt::Arguments<'w>: |text| TextValue(TextSource::Formatted(Formatted::Arguments(text), write_formatted));
    Decimal: |number| TextValue(TextSource::Number(number));
    i64: |number| Decimal::new(number, 0).into();
    i8: |number| i64::from(number).into();
    i16: |number| i64::from(number).into();
    i32: |number| i64::from(number).into();
    isize: |number| (number as i64).into();
    u8: |number| i64::from(number).into();
    u16: |number| i64::from(number).into();
    u32: |number| i64::from(number).into();
    usize: |number| (number as u64).into();
    u64: |number| bits(number, |out, number| out.unsigned(number.bits()));
    f64: |number| bits(number.to_bits(), |out, number| out.display(f64::from_bits(number.bits())));
    // Not by way of `f64`: 0.1 would be 0.10000000149011612.
    f32: |number| bits(number.to_bits().into(), |out, number| out.display(f32::from_bits(number.bits() as u32)));
    bool: |yes| if yes { "true".into() } else { "false".into() };
    char: |letter| bits(u32::from(letter).into(), |out, letter| {
        let letter = char::from_u32(letter.bits() as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.escape(letter.encode_utf8(&mut [0; 4]))
    });
}

fn bits(bits: u64, write: WriteFormatted) -> TextValue<'static> {
    TextValue(TextSource::Formatted(Formatted::Bits(bits), write))
}

impl<'w, const N: usize> From<&'w [TextValue<'w>; N]> for TextValue<'w> {
    fn from(words: &'w [TextValue<'w>; N]) -> Self {
        TextValue(TextSource::Joined(words))
    }
}

answers! {
    ('w, const N: usize) &'w [TextValue<'w>; N]: |words| words;
    () TextValue<'_>: |text| text;
}

/// The texts of an allocator.
#[cfg(feature = "alloc")]
mod owned {
    use super::*;
    use alloc::borrow::Cow;
    use alloc::boxed::Box;
    use alloc::string::String;

    texts! {
        &'w String: |text| text.as_str().into();
        &'w Cow<'_, str>: |text| (&**text).into();
    }

    answers! {
        () String: |text| text.as_str();
        () Box<str>: |text| &*text;
        () Cow<'_, str>: |text| &*text;
    }
}

/// The `annotations` of content and resources: its audience, its priority, the time of the last change. See
/// [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Annotations<'c> {
    /// Puts `user` into `audience`.
    pub for_user: bool,
    /// Puts `assistant` into `audience`.
    pub for_assistant: bool,
    /// The `priority` in percent, 0 to 100; sent as a number from 0 to 1. Default: absent.
    pub priority: Option<u8>,
    /// The time of the last change (`lastModified`), as ISO 8601; written from 2025-06-18 on. Default: absent.
    pub last_modified: Option<&'c str>,
}

impl<'c> Annotations<'c> {
    /// Makes annotations without any member.
    pub const fn new() -> Self {
        Annotations { for_user: false, for_assistant: false, priority: None, last_modified: None }
    }

    crate::const_setters! {
        /// Adds `user` to `audience`.
        #[doc(alias = "audience")]
        user() => for_user = true;
        /// Adds `assistant` to `audience`: the content is for the model.
        #[doc(alias = "audience")]
        assistant() => for_assistant = true;
    }

    /// Sets `priority`, in percent. More than 100 counts as 100.
    pub const fn priority(self, percent: u8) -> Self {
        let percent = if percent > 100 { 100 } else { percent };
        Annotations { priority: Some(percent), ..self }
    }

    /// Sets `lastModified`: the time of the last change, as ISO 8601.
    pub const fn last_modified(self, time: &'c str) -> Self {
        Annotations { last_modified: Some(time), ..self }
    }

    pub(crate) fn write(&self, object: &mut Object<'_, '_>, revision: Revision) {
        let last_modified = self.last_modified.filter(|_| revision.has(Since::LastModified));
        if !self.for_user && !self.for_assistant && self.priority.is_none() && last_modified.is_none() {
            return;
        }
        let mut inner = Object::open(object.key("annotations"));
        match (self.for_user, self.for_assistant) {
            (true, true) => inner.fixed("audience", r#"["user","assistant"]"#),
            (true, false) => inner.fixed("audience", r#"["user"]"#),
            (false, true) => inner.fixed("audience", r#"["assistant"]"#),
            (false, false) => {}
        }
        if let Some(percent) = self.priority {
            inner.key("priority").decimal(Decimal::new(percent.into(), 2));
        }
        inner.text_if("lastModified", last_modified);
        inner.close()
    }
}

/// An icon of a server, tool, resource or prompt; written from 2025-11-25 on. See
/// [icons](https://modelcontextprotocol.io/specification/2025-11-25/basic#icons).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Icon<'t> {
    /// The address: an `https:` or `data:` URI.
    pub src: &'t str,
    /// The `mimeType`.
    pub mime: Option<&'t str>,
    /// The sizes, like `48x48`; `any` for an icon that scales.
    pub sizes: &'t [&'t str],
    /// `light` or `dark` if the icon is for one of these themes.
    pub theme: Option<&'t str>,
}

impl<'t> Icon<'t> {
    /// Makes an icon with its address: an `https:` or `data:` URI.
    pub const fn new(src: &'t str) -> Self {
        Icon { src, mime: None, sizes: &[], theme: None }
    }

    crate::const_setters! {
        /// Sets `mimeType`.
        #[doc(alias = "mimeType")]
        mime(mime: &'t str) => mime = Some(mime);
        /// Sets `sizes`, like `48x48` or `any`.
        sizes(sizes: &'t [&'t str]) => sizes = sizes;
        /// Sets `theme`: `light` or `dark`.
        theme(theme: &'t str) => theme = Some(theme);
    }

    fn write(&self, out: &mut Writer<'_>) {
        let mut object = Object::open(out);
        object.text("src", self.src);
        object.text_if("mimeType", self.mime);
        if !self.sizes.is_empty() {
            write_texts(object.key("sizes"), self.sizes);
        }
        object.text_if("theme", self.theme);
        object.close()
    }
}

/// The icons of something. A program without icons is linked without the code that writes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Icons<'t>(Option<(&'t [Icon<'t>], WriteIcons)>);

type WriteIcons = fn(&mut Writer<'_>, &[Icon<'_>]);

impl<'t> Icons<'t> {
    pub(crate) const NONE: Icons<'static> = Icons(None);

    pub(crate) const fn new(icons: &'t [Icon<'t>]) -> Self {
        if icons.is_empty() { Icons(None) } else { Icons(Some((icons, write_icons))) }
    }

    pub(crate) fn write(self, object: &mut Object<'_, '_>, revision: Revision) {
        if let Some((icons, write)) = self.0.filter(|_| revision.has(Since::Icons)) {
            write(object.key("icons"), icons);
        }
    }
}

fn write_icons(out: &mut Writer<'_>, icons: &[Icon<'_>]) {
    array(out, icons, |out, icon| icon.write(out))
}

pub(crate) fn write_texts(out: &mut Writer<'_>, texts: &[&str]) {
    array(out, texts, |out, text| out.string(text))
}

/// The contents of a resource: text or bytes. See
/// [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct ResourceContents<'c> {
    uri: TextValue<'c>,
    mime: Option<&'c str>,
    body: Body<'c>,
    meta: Option<Raw<'c>>,
}

#[derive(Clone, Copy, Debug)]
enum Body<'c> {
    Text(TextValue<'c>),
    Blob(&'c [u8]),
}

impl<'c> ResourceContents<'c> {
    /// Makes contents of `text`, with the URI of the resource.
    pub fn text(uri: impl Into<TextValue<'c>>, text: impl Into<TextValue<'c>>) -> Self {
        ResourceContents { uri: uri.into(), mime: None, body: Body::Text(text.into()), meta: None }
    }

    /// Makes contents of `bytes`, with the URI of the resource. They are sent as base64, in `blob`.
    pub fn blob(uri: impl Into<TextValue<'c>>, bytes: &'c [u8]) -> Self {
        ResourceContents { uri: uri.into(), mime: None, body: Body::Blob(bytes), meta: None }
    }

    crate::const_setters! {
        /// Sets `mimeType`.
        #[doc(alias = "mimeType")]
        mime(mime: &'c str) => mime = Some(mime);
        /// Sets `_meta`, a JSON object; written from 2025-06-18 on.
        meta(meta: Raw<'c>) => meta = Some(meta);
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        let mut object = Object::open(out);
        self.uri.write(object.key("uri"));
        object.text_if("mimeType", self.mime);
        match self.body {
            Body::Text(text) => text.write(object.key("text")),
            Body::Blob(bytes) => write_base64(object.key("blob"), bytes),
        }
        write_meta(&mut object, revision, self.meta);
        object.close()
    }
}

/// A link to a resource (`resource_link`). Before 2025-06-18 it is written as text with the name and the URI.
/// See [tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#resource-links).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct ResourceLink<'c> {
    uri: &'c str,
    name: &'c str,
    title: Option<&'c str>,
    description: Option<&'c str>,
    mime: Option<&'c str>,
    size: Option<u64>,
    icons: Icons<'c>,
}

impl<'c> ResourceLink<'c> {
    /// Makes a link from the URI and the `name` of a resource.
    pub const fn new(uri: &'c str, name: &'c str) -> Self {
        ResourceLink { uri, name, title: None, description: None, mime: None, size: None, icons: Icons::NONE }
    }

    crate::const_setters! {
        /// Sets `title`, a name for people.
        title(title: &'c str) => title = Some(title);
        /// Sets `description`.
        description(description: &'c str) => description = Some(description);
        /// Sets `mimeType`.
        #[doc(alias = "mimeType")]
        mime(mime: &'c str) => mime = Some(mime);
        /// Sets `size`, in bytes.
        size(bytes: u64) => size = Some(bytes);
        /// Sets `icons`; written from 2025-11-25 on.
        icons(icons: &'c [Icon<'c>]) => icons = Icons::new(icons);
    }

    fn write(&self, object: &mut Object<'_, '_>, revision: Revision) {
        object.fixed("type", "\"resource_link\"");
        object.text("uri", self.uri);
        object.text("name", self.name);
        object.text_if("title", self.title);
        object.text_if("description", self.description);
        object.text_if("mimeType", self.mime);
        if let Some(size) = self.size {
            object.number("size", size);
        }
        self.icons.write(object, revision)
    }
}

/// One piece of content of a result, a prompt message or a sampling message. See
/// [tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result).
///
/// ```
/// use mcp_sansio::service::{Annotations, ContentBlock};
/// let pieces = [
///     ContentBlock::text("two images:"),
///     ContentBlock::image(&[0x89, b'P', b'N', b'G'], "image/png").annotations(Annotations::new().user()),
/// ];
/// # let _ = pieces;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ContentBlock<'c> {
    kind: Kind<'c>,
    annotations: Annotations<'c>,
    meta: Option<Raw<'c>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind<'c> {
    Text(TextValue<'c>),
    Image(&'c [u8], &'c str),
    Audio(&'c [u8], &'c str),
    Resource(ResourceContents<'c>),
    Link(ResourceLink<'c>),
    ToolUse { id: &'c str, name: &'c str, input: Raw<'c> },
    ToolResult { id: &'c str, content: &'c [ContentBlock<'c>], is_error: bool },
}

impl<'c> ContentBlock<'c> {
    /// Makes text content (`text`).
    pub fn text(text: impl Into<TextValue<'c>>) -> Self {
        Kind::Text(text.into()).into()
    }

    /// Makes an image (`image`) with its MIME type. The bytes are sent as base64.
    pub fn image(bytes: &'c [u8], mime: &'c str) -> Self {
        Kind::Image(bytes, mime).into()
    }

    /// Makes audio content (`audio`) with its MIME type. The bytes are sent as base64. Before 2025-03-26 it is
    /// written as an embedded resource.
    pub fn audio(bytes: &'c [u8], mime: &'c str) -> Self {
        Kind::Audio(bytes, mime).into()
    }

    /// Embeds the contents of a resource (`resource`).
    pub fn resource(contents: ResourceContents<'c>) -> Self {
        Kind::Resource(contents).into()
    }

    /// Makes a link to a resource (`resource_link`).
    pub fn link(link: ResourceLink<'c>) -> Self {
        Kind::Link(link).into()
    }

    /// Makes a call of a tool by the model (`tool_use`), with its `id`, `name` and `input`. Only for messages
    /// of [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling), from 2025-11-25
    /// on.
    pub fn tool_use(id: &'c str, name: &'c str, input: Raw<'c>) -> Self {
        Kind::ToolUse { id, name, input }.into()
    }

    /// Makes the result of a tool for the model (`tool_result`); `id` is that of the `tool_use`. Only for
    /// messages of [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling), from
    /// 2025-11-25 on.
    pub fn tool_result(id: &'c str, content: &'c [ContentBlock<'c>], is_error: bool) -> Self {
        Kind::ToolResult { id, content, is_error }.into()
    }

    crate::const_setters! {
        /// Sets `annotations`.
        annotations(annotations: Annotations<'c>) => annotations = annotations;
        /// Sets `_meta`, a JSON object; written from 2025-06-18 on.
        meta(meta: Raw<'c>) => meta = Some(meta);
    }

    /// Returns the piece that the balance rule of a conversation looks at.
    #[cfg(feature = "ask")]
    pub(crate) const fn piece(&self) -> Piece<&'c str> {
        match self.kind {
            Kind::ToolUse { id, .. } => Piece::Use(Some(id)),
            Kind::ToolResult { id, .. } => Piece::Result(Some(id)),
            _ => Piece::Other,
        }
    }

    /// Returns whether it is `tool_use` or `tool_result`.
    pub(crate) const fn is_tool_traffic(&self) -> bool {
        matches!(self.kind, Kind::ToolUse { .. } | Kind::ToolResult { .. })
    }

    /// Writes the content. Messages for `sampling` cannot have resources and links: these are written as text.
    pub(crate) fn write_in(&self, out: &mut Writer<'_>, revision: Revision, sampling: bool) {
        let mut object = Object::open(out);
        match self.kind {
            Kind::Text(text) => write_text(&mut object, text),
            Kind::Image(bytes, mime) => write_media(&mut object, "\"image\"", bytes, mime),
            Kind::Audio(bytes, mime) if revision.has(Since::Audio) => {
                write_media(&mut object, "\"audio\"", bytes, mime);
            }
            Kind::Audio(_, mime) if sampling => {
                write_text(&mut object, TextValue::from(&["(".into(), mime.into(), ")".into()]));
            }
            Kind::Audio(bytes, mime) => {
                let contents = ResourceContents::blob("data:,audio", bytes).mime(mime);
                write_resource(&mut object, &contents, revision);
            }
            Kind::Resource(contents) if sampling => match contents.body {
                Body::Text(text) => write_text(&mut object, text),
                Body::Blob(_) => write_text(&mut object, contents.uri),
            },
            Kind::Resource(contents) => write_resource(&mut object, &contents, revision),
            Kind::Link(link) if !sampling && revision.has(Since::ResourceLink) => link.write(&mut object, revision),
            Kind::Link(link) => {
                let name = link.title.unwrap_or(link.name);
                write_text(&mut object, TextValue::from(&[name.into(), ": ".into(), link.uri.into()]));
            }
            Kind::ToolUse { id, name, input } => {
                object.fixed("type", "\"tool_use\"");
                object.text("id", id);
                object.text("name", name);
                object.raw("input", input);
            }
            Kind::ToolResult { id, content, is_error } => {
                object.fixed("type", "\"tool_result\"");
                object.text("toolUseId", id);
                array(object.key("content"), content, |out, piece| piece.write_in(out, revision, false));
                object.boolean("isError", is_error);
            }
        }
        self.annotations.write(&mut object, revision);
        write_meta(&mut object, revision, self.meta);
        object.close()
    }
}

impl<'c> From<Kind<'c>> for ContentBlock<'c> {
    fn from(kind: Kind<'c>) -> Self {
        ContentBlock { kind, annotations: Annotations::new(), meta: None }
    }
}

/// The `role` of a message: its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A message of a [prompt](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts) or of a
/// conversation for [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct PromptMessage<'c> {
    /// The author.
    pub role: Role,
    /// The content.
    pub content: ContentBlock<'c>,
    /// More content of the same message, see [`and`](PromptMessage::and).
    pub more: &'c [ContentBlock<'c>],
}

impl<'c> PromptMessage<'c> {
    /// Makes a message of the user.
    pub const fn user(content: ContentBlock<'c>) -> Self {
        PromptMessage { role: Role::User, content, more: &[] }
    }

    /// Makes a message of the model.
    pub const fn assistant(content: ContentBlock<'c>) -> Self {
        PromptMessage { role: Role::Assistant, content, more: &[] }
    }

    /// Adds more content to the message: a model may call several tools at once, and their results belong into
    /// one message. For sampling from 2025-11-25 on, one message takes all content. In prompts and before
    /// 2025-11-25 a message has one content, so that each piece becomes a message with the same role.
    pub const fn and(self, more: &'c [ContentBlock<'c>]) -> Self {
        PromptMessage { more, ..self }
    }

    /// Returns all content of the message.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &ContentBlock<'c>> + Clone {
        core::iter::once(&self.content).chain(self.more)
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision, sampling: bool) {
        let head: &[u8] = match self.role {
            Role::User => b"{\"role\":\"user\",\"content\":",
            Role::Assistant => b"{\"role\":\"assistant\",\"content\":",
        };
        out.put(head);
        if sampling && revision.has(Since::SamplingTools) && !self.more.is_empty() {
            array(out, self.pieces(), |out, piece| piece.write_in(out, revision, sampling));
            return out.put(b"}");
        }
        for (i, piece) in self.pieces().enumerate() {
            if i > 0 {
                out.put(b"},");
                out.put(head);
            }
            piece.write_in(out, revision, sampling);
        }
        out.put(b"}")
    }
}

/// Writes `_meta` of an object if the revision has it.
pub(crate) fn write_meta(object: &mut Object<'_, '_>, revision: Revision, meta: Option<Raw<'_>>) {
    object.raw_if("_meta", meta.filter(|_| revision.has(Since::ObjectMeta)))
}

fn write_text(object: &mut Object<'_, '_>, text: TextValue<'_>) {
    object.fixed("type", "\"text\"");
    text.write(object.key("text"))
}

fn write_media(object: &mut Object<'_, '_>, kind: &str, bytes: &[u8], mime: &str) {
    object.fixed("type", kind);
    write_base64(object.key("data"), bytes);
    object.text("mimeType", mime)
}

fn write_resource(object: &mut Object<'_, '_>, contents: &ResourceContents<'_>, revision: Revision) {
    object.fixed("type", "\"resource\"");
    contents.write(object.key("resource"), revision)
}

pub(crate) fn write_base64(out: &mut Writer<'_>, bytes: &[u8]) {
    out.put(b"\"");
    out.base64(bytes);
    out.put(b"\"")
}
