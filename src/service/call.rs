//! What handlers are given: a tool call, a read, a prompt to fill in, something to complete.

use core::ops::{Deref, DerefMut};

use super::content::{Content, Contents, Message, Words, write_all, write_messages};
pub use super::handling::{Done, Outcome, Refusal};
use super::handling::{Handling, Settled, Why, begin_result};
#[cfg(feature = "windows")]
use super::stream::{pull_base64, pull_text};
use crate::json::{JsonKind, Raw, Text, object::Object, write};
use crate::revision::{Revision, Since};
#[cfg(feature = "windows")]
use crate::server::OVERLOADED;
use crate::server::{Caching, Failure, Puller, What};
#[cfg(feature = "serde")]
use crate::sink::Sink;
use crate::sink::{Full, Kind, Writer, part};

/// A call of a tool. It dereferences to [`Handling`].
///
/// ```
/// use mcp_sansio::service::{Call, Content, Outcome};
///
/// fn greet(greetings: &mut u32, call: &mut Call<'_>) -> Outcome {
///     *greetings += 1;
///     match call.arguments().get("name").and_then(|name| name.text()) {
///         Some(name) => call.content(&[Content::text("hello"), Content::text(name)]),
///         None => call.error("there is nobody to greet"),
///     }
/// }
/// # let _: fn(&mut u32, &mut Call<'_>) -> Outcome = greet;
/// ```
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) handling: Handling<'a>,
}

/// A read of a resource. It dereferences to [`Handling`].
#[derive(Debug)]
pub struct Read<'a> {
    pub(crate) handling: Handling<'a>,
    pub(crate) uri: &'a str,
    /// The template that the URI matches, if it is one.
    pub(crate) template: Option<&'static str>,
    pub(crate) mime: Option<&'static str>,
    pub(crate) caching: Caching,
}

/// A prompt to fill in. It dereferences to [`Handling`].
#[derive(Debug)]
pub struct Get<'a> {
    pub(crate) handling: Handling<'a>,
    pub(crate) description: &'a str,
}

/// A value to complete. It dereferences to [`Handling`].
#[derive(Debug)]
pub struct Complete<'a> {
    pub(crate) handling: Handling<'a>,
    pub(crate) argument: Text<'a>,
    pub(crate) value: &'a str,
    pub(crate) context: Option<Raw<'a>>,
}

/// A request that the protocol does not know. It dereferences to [`Handling`].
#[derive(Debug)]
pub struct Other<'a> {
    pub(crate) handling: Handling<'a>,
    pub(crate) method: Text<'a>,
}

macro_rules! handles {
    ($($type:ident)*) => { $(
        impl<'a> Deref for $type<'a> {
            type Target = Handling<'a>;
            fn deref(&self) -> &Handling<'a> {
                &self.handling
            }
        }
        impl DerefMut for $type<'_> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.handling
            }
        }
    )* };
}
handles!(Call Read Get Complete Other);

impl<'a> Handling<'a> {
    /// The arguments as they came; an empty object if there were none.
    #[must_use]
    pub const fn arguments(&self) -> Raw<'a> {
        match self.members.arguments {
            Some(arguments) => arguments,
            None => Raw::trusted(b"{}"),
        }
    }

    /// The arguments as a type, once. Text is borrowed: from the message, or from the server's scratch if it has
    /// escapes.
    #[cfg(feature = "serde")]
    pub fn args<T: serde::Deserialize<'a>>(&mut self) -> Result<T, Refusal> {
        let scratch = core::mem::take(&mut self.scratch);
        self.arguments().to(scratch).map_err(Refusal::from)
    }

    /// One argument, for handlers that are too small for a type of their own. One that may be left out is an `Option`.
    #[cfg(feature = "serde")]
    pub fn arg<T: serde::Deserialize<'a>>(&mut self, name: &'static str) -> Result<T, Refusal> {
        let scratch = core::mem::take(&mut self.scratch);
        let (value, rest) = self.arguments().member_to(name, scratch)?;
        self.scratch = rest;
        Ok(value)
    }

    /// Answers with a result of the application's own making, an object as it stands. What the revision demands is
    /// added.
    pub fn result(&mut self, result: Raw<'_>) -> Outcome {
        if result.kind() != JsonKind::Object {
            return Err(Failure::internal("The handler's result is not an object").into());
        }
        self.write_own(result, None)
    }

    /// Keeps what a large reply is to be, and writes its head. Without a source nothing is written: error -32603.
    fn begin_stream(
        &mut self,
        what: What,
        head: &mut dyn FnMut(&mut Object<'_, '_>, Revision) -> Result<(), Full>,
    ) -> Outcome {
        self.unsettled()?;
        if !self.is_sourced() {
            return Err(Failure::internal("The handler streams, and its definition has no source").into());
        }
        // Decided before the reply begins: what has begun to go out cannot be taken back.
        #[cfg(feature = "windows")]
        if self.crowded {
            return Err(OVERLOADED.into());
        }
        let mark = self.out.mark();
        let (id, revision) = (self.slot.id, self.slot.revision);
        let mut write = || {
            self.out.begin(Kind::Streamed)?;
            part(self.out, |out| head(&mut begin_result(out, id.as_bytes(), revision), revision))
        };
        if let Err(full) = write() {
            self.out.roll_back(mark);
            return Err(full.into());
        }
        self.settle(Settled::Streaming(what))
    }
}

impl Call<'_> {
    /// Answers with text: a `&str` or `&String`, a number, `format_args!(..)`, or several of these as `&[..]`.
    pub fn text<'w>(&mut self, text: impl Into<Words<'w>>) -> Outcome {
        self.words(text.into(), false)
    }

    /// Answers that the call failed, in words from which a model can learn how to do better.
    pub fn error<'w>(&mut self, text: impl Into<Words<'w>>) -> Outcome {
        self.words(text.into(), true)
    }

    /// Answers with pieces of content.
    pub fn content(&mut self, content: &[Content<'_>]) -> Outcome {
        self.contents(content, false)
    }

    /// Answers that the call failed, with pieces of content.
    pub fn error_content(&mut self, content: &[Content<'_>]) -> Outcome {
        self.contents(content, true)
    }

    /// Answers with structured content, and with its JSON as text for clients that do not know it.
    #[cfg(feature = "serde")]
    pub fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        use crate::json::ser::{SerError, to_escaped, to_sink};
        // What is not JSON shows before the first byte has gone out.
        let mut first = First::default();
        to_sink(&mut first, value).map_err(|_| Failure::internal("The handler's result is not JSON"))?;
        let full = |error: SerError| error.full().unwrap_or(Full::Never);
        self.structured(first.0 == Some(b'{'), &|out| to_escaped(out, value).map_err(full), &|out| {
            to_sink(out, value).map_err(full)
        })
    }

    /// Answers with structured content that is JSON already, and with itself as text.
    pub fn json_raw(&mut self, value: Raw<'_>) -> Outcome {
        self.structured(value.kind() == JsonKind::Object, &|out| write::escape(out, value.as_str()), &|out| {
            write::raw(out, value)
        })
    }

    /// Answers with text of any length, pulled from the tool's [`source`](super::Tool::source) while the sink drains. A
    /// tool without one is answered with error -32603.
    #[cfg(feature = "windows")]
    pub fn stream_text(&mut self, key: u32) -> Outcome {
        let index = self.slot.handler;
        self.begin_stream(What::Content { index, key, pull: pull_text }, &mut |result, _| {
            result.key("content").put(b"[{\"type\":\"text\",\"text\":\"")
        })
    }

    /// Answers with an image of any size, pulled from the tool's [`source`](super::Tool::source).
    #[cfg(feature = "windows")]
    pub fn stream_image(&mut self, key: u32, mime: &str) -> Outcome {
        let index = self.slot.handler;
        self.begin_stream(What::Content { index, key, pull: pull_base64 }, &mut |result, _| {
            let out = result.key("content");
            out.put(b"[")?;
            let mut image = Object::open(out);
            image.fixed("type", "\"image\"")?;
            image.text("mimeType", mime)?;
            image.key("data").put(b"\"")
        })
    }

    fn words(&mut self, words: Words<'_>, is_error: bool) -> Outcome {
        self.write_words(&words, is_error)
    }

    fn contents(&mut self, content: &[Content<'_>], is_error: bool) -> Outcome {
        self.write_result(&mut |result, revision| {
            write_all(result.key("content"), content, revision)?;
            result.boolean("isError", is_error)
        })
    }

    fn structured(
        &mut self,
        is_object: bool,
        text: &dyn Fn(&mut Writer<'_>) -> Result<(), Full>,
        value: &dyn Fn(&mut Writer<'_>) -> Result<(), Full>,
    ) -> Outcome {
        self.write_result(&mut |result, revision| {
            let out = result.key("content");
            out.put(b"[{\"type\":\"text\",\"text\":\"")?;
            text(out)?;
            out.put(b"\"}]")?;
            if revision.has(Since::AnyStructured) || is_object && revision.has(Since::StructuredOutput) {
                value(result.key("structuredContent"))?;
            }
            result.boolean("isError", false)
        })
    }
}

/// Takes everything and keeps only the first byte of it.
#[cfg(feature = "serde")]
#[derive(Default)]
struct First(Option<u8>);

#[cfg(feature = "serde")]
impl Sink for First {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0 = self.0.or(bytes.first().copied());
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

impl<'a> Read<'a> {
    /// As [`Handling::result`]: answers with a result of the application's own making, an object as it stands. In
    /// 2026-07-28 `ttlMs` and `cacheScope` are those of the definition where the object has no valid ones.
    ///
    /// # Errors
    /// `result` is not an object, the handler has answered already, or the result does not fit.
    pub fn result(&mut self, result: Raw<'_>) -> Outcome {
        if result.kind() != JsonKind::Object {
            return Err(Failure::internal("The handler's result is not an object").into());
        }
        let caching = self.caching;
        self.write_own(result, Some(caching))
    }

    /// The URI that is read.
    #[must_use]
    pub const fn uri(&self) -> &'a str {
        self.uri
    }

    /// What a variable of the template stands for.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&'a str> {
        super::template::variable(self.template?, self.uri, name)
    }

    /// Answers with text, at the URI that was asked for, of the MIME type of the definition.
    pub fn text<'w>(&mut self, text: impl Into<Words<'w>>) -> Outcome {
        // Not by `contents`: a program with no other contents is linked without what writes them.
        let (words, uri, mime, caching) = (text.into(), self.uri, self.mime, self.caching);
        self.write_result(&mut |result, revision| {
            let out = result.key("contents");
            out.put(b"[")?;
            let mut contents = Object::open(out);
            contents.text("uri", uri)?;
            contents.text_if("mimeType", mime)?;
            words.write(contents.key("text"))?;
            contents.finish().put(b"]")?;
            if revision.is_modern() { caching.write(result) } else { Ok(()) }
        })
    }

    /// Answers with bytes, at the URI that was asked for, of the MIME type of the definition.
    pub fn blob(&mut self, bytes: &[u8]) -> Outcome {
        let contents = Contents::blob(self.uri, bytes);
        self.contents(&[self.with_mime(contents)])
    }

    /// Answers with a value as JSON, at the URI that was asked for, of the MIME type of the definition.
    #[cfg(feature = "serde")]
    pub fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        use crate::json::ser::{SerError, to_escaped, to_sink};
        to_sink(&mut First::default(), value).map_err(|_| Failure::internal("The handler's value is not JSON"))?;
        let (uri, mime, caching) = (self.uri, self.mime, self.caching);
        self.write_result(&mut |result, revision| {
            let out = result.key("contents");
            out.put(b"[")?;
            let mut contents = Object::open(out);
            contents.text("uri", uri)?;
            contents.text_if("mimeType", mime)?;
            let out = contents.key("text");
            out.put(b"\"")?;
            to_escaped(out, value).map_err(|error: SerError| error.full().unwrap_or(Full::Never))?;
            out.put(b"\"")?;
            contents.finish().put(b"]")?;
            if revision.is_modern() { caching.write(result) } else { Ok(()) }
        })
    }

    /// Answers with any number of contents, as for a folder. None at all is for a folder that is empty; what does not exist
    /// is [`not_found`](Read::not_found), which 2026-07-28 demands.
    pub fn contents(&mut self, contents: &[Contents<'_>]) -> Outcome {
        let caching = self.caching;
        self.write_result(&mut |result, revision| {
            let out = result.key("contents");
            out.put(b"[")?;
            for (i, contents) in contents.iter().enumerate() {
                if i > 0 {
                    out.put(b",")?;
                }
                contents.write(out, revision)?;
            }
            out.put(b"]")?;
            if revision.is_modern() { caching.write(result) } else { Ok(()) }
        })
    }

    /// Answers with text of any length, pulled from the [`source`](super::Resource::source) of the definition; without one
    /// with error -32603. If the source breaks off, what was sent is a result with `_meta.incomplete`, which no cache may
    /// keep (`ttlMs` 0).
    #[cfg(feature = "windows")]
    pub fn stream_text(&mut self, key: u32) -> Outcome {
        self.stream(key, "text", pull_text)
    }

    /// Answers with bytes of any number, pulled from the [`source`](super::Resource::source) of the definition.
    #[cfg(feature = "windows")]
    pub fn stream_blob(&mut self, key: u32) -> Outcome {
        self.stream(key, "blob", pull_base64)
    }

    /// Answers that there is no such resource, with the URI as `data.uri`: code -32002 up to 2025-11-25, then -32602. What a
    /// template's handler answers for a URI that names nothing.
    pub fn not_found(&mut self) -> Outcome {
        let revision = self.revision();
        let uri = self.members.target(self.slot.method).and_then(|uri| uri.text());
        let failure = match uri {
            Some(uri) => Failure::unknown_resource(uri, revision),
            // Read later: only the decoded URI is there.
            None => Failure::unknown_resource_at(self.uri, revision),
        };
        self.fail(&failure)
    }

    fn with_mime<'c>(&self, contents: Contents<'c>) -> Contents<'c> {
        match self.mime {
            Some(mime) => contents.mime(mime),
            None => contents,
        }
    }

    fn stream(&mut self, key: u32, member: &str, pull: Puller) -> Outcome {
        let (index, uri, mime) = (self.slot.handler, self.uri, self.mime);
        self.begin_stream(What::Content { index, key, pull }, &mut |result, _| {
            let out = result.key("contents");
            out.put(b"[")?;
            let mut contents = Object::open(out);
            contents.text("uri", uri)?;
            contents.text_if("mimeType", mime)?;
            contents.key(member).put(b"\"")
        })
    }
}

impl<'a> Get<'a> {
    /// An argument of the prompt, by name.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<Text<'a>> {
        self.arguments().get(name)?.text()
    }

    /// Answers with one message of the user.
    pub fn user<'w>(&mut self, text: impl Into<Words<'w>>) -> Outcome {
        // Not by `messages`: a program with no other content is linked without what writes that.
        let (words, description) = (text.into(), self.description);
        self.write_result(&mut |result, _| {
            if !description.is_empty() {
                result.text("description", description)?;
            }
            let out = result.key("messages");
            out.put(b"[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":")?;
            words.write(out)?;
            out.put(b"}}]")
        })
    }

    /// Answers with a conversation.
    pub fn messages(&mut self, messages: &[Message<'_>]) -> Outcome {
        let description = self.description;
        self.write_result(&mut |result, revision| {
            if !description.is_empty() {
                result.text("description", description)?;
            }
            write_messages(result.key("messages"), messages, revision, false)
        })
    }
}

/// The most values that a completion can carry.
const COMPLETIONS_MAX: usize = 100;

impl<'a> Complete<'a> {
    /// The name of the argument or variable that is being typed.
    #[must_use]
    pub const fn argument(&self) -> Text<'a> {
        self.argument
    }

    /// What has been typed so far.
    #[must_use]
    pub const fn value(&self) -> &'a str {
        self.value
    }

    /// The value of another argument, as far as the client tells (from 2025-06-18 on).
    #[must_use]
    pub fn other(&self, name: &str) -> Option<Text<'a>> {
        self.context?.get("arguments")?.get(name)?.text()
    }

    /// Offers values, best first: the first hundred are sent.
    pub fn offer<T: AsRef<str>>(&mut self, values: impl IntoIterator<Item = T>) -> Outcome {
        let mut values = values.into_iter();
        let values: &mut dyn Iterator<Item = T> = &mut values;
        self.write_result(&mut |result, _| {
            let mut completion = Object::open(result.key("completion"));
            let out = completion.key("values");
            out.put(b"[")?;
            for i in 0..COMPLETIONS_MAX {
                let Some(value) = values.next() else { break };
                if i > 0 {
                    out.put(b",")?;
                }
                write::string(out, value.as_ref())?;
            }
            out.put(b"]")?;
            completion.boolean("hasMore", values.next().is_some())?;
            completion.close()
        })
    }

    /// Offers those of the values that begin with what has been typed.
    pub fn matching<T: AsRef<str>>(&mut self, values: impl IntoIterator<Item = T>) -> Outcome {
        let typed = self.value;
        self.offer(values.into_iter().filter(|value| value.as_ref().starts_with(typed)))
    }
}

impl<'a> Other<'a> {
    /// The method's name.
    #[must_use]
    pub const fn method(&self) -> Text<'a> {
        self.method
    }

    /// Answers that there is no such method.
    pub fn decline(&mut self) -> Outcome {
        Err(Refusal(Why::Fail(Failure::method_not_found())))
    }
}
