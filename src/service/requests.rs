//! The contexts of handlers: a tool call, a read, a prompt, a completion, a request with a method of your own.

use core::ops::{Deref, DerefMut};

pub use super::context::{HandlerError, HandlerResult, Receipt};
use super::context::{HandlerFailure, HandlerRun, RequestContext};
#[cfg(feature = "extensions")]
use crate::content::write_meta;
use crate::content::{AnswerText, ContentBlock, PromptMessage, ResourceContents, write_base64};
use crate::json::object::{Object, array};
use crate::json::{JsonKind, Raw, Text};
use crate::revision::Since;
use crate::server::{Caching, RpcError};
#[cfg(feature = "serde")]
use crate::sink::{FullError, Sink};
use crate::sink::{MessageHead, Writer};

/// The error of a [source](super::Tool::source) that cannot give the rest of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "it has nothing inside")]
pub struct SourceError;

/// The context of a [`tools/call`](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#calling-tools).
/// It dereferences to [`RequestContext`].
///
/// ```
/// use mcp_sansio::service::{Call, ContentBlock, HandlerResult};
///
/// fn greet(greetings: &mut u32, call: &mut Call<'_>) -> HandlerResult {
///     *greetings += 1;
///     match call.arguments().get("name").and_then(|name| name.text()) {
///         Some(name) => call.content(&[ContentBlock::text("hello"), ContentBlock::text(name)]),
///         None => call.error("The name is missing"),
///     }
/// }
/// # let _: fn(&mut u32, &mut Call<'_>) -> HandlerResult = greet;
/// ```
#[doc(alias = "CallToolRequest")]
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) handling: RequestContext<'a>,
}

/// The context of a
/// [`resources/read`](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources). It
/// dereferences to [`RequestContext`].
///
/// ```
/// use mcp_sansio::service::{HandlerResult, ReadResource};
///
/// /// Reads `user://{name}`.
/// fn user(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
///     match read.var("name") {
///         Some("root") => read.text("The first user"),
///         _ => read.not_found(),
///     }
/// }
/// # let _: fn(&mut (), &mut ReadResource<'_>) -> HandlerResult = user;
/// ```
#[doc(alias = "ReadResourceRequest")]
#[derive(Debug)]
pub struct ReadResource<'a> {
    pub(crate) handling: RequestContext<'a>,
    /// The URI that is read.
    pub uri: &'a str,
    /// The template that the URI matches, if there is one.
    pub(crate) template: Option<&'static str>,
    /// The MIME type of [`text`](ReadResource::text), [`blob`](ReadResource::blob) and [`json`](ReadResource::json): at first that
    /// of the definition. For `json` without one, `application/json`.
    #[doc(alias = "mimeType")]
    pub mime: Option<&'a str>,
    /// `ttlMs` and `cacheScope` of the contents (2026-07-28): at first those of the definition, else those of the service.
    #[doc(alias = "ttlMs")]
    pub caching: Caching,
    /// The `_meta` of the contents, a JSON object; written from 2025-06-18 on by [`text`](ReadResource::text),
    /// [`blob`](ReadResource::blob), [`json`](ReadResource::json) and the methods that stream.
    #[cfg(feature = "extensions")]
    pub contents_meta: Option<Raw<'a>>,
}

/// The context of a [`prompts/get`](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#getting-a-prompt).
/// It dereferences to [`RequestContext`].
///
/// ```
/// use mcp_sansio::service::{ContentBlock, GetPrompt, HandlerResult, PromptMessage};
///
/// fn review(_: &mut (), get: &mut GetPrompt<'_>) -> HandlerResult {
///     let Some(code) = get.arg("code") else { return get.user("Ask me for my code, then review it.") };
///     get.messages(&[
///         PromptMessage::user(ContentBlock::text("Review this code:")),
///         PromptMessage::user(ContentBlock::text(code)),
///     ])
/// }
/// # let _: fn(&mut (), &mut GetPrompt<'_>) -> HandlerResult = review;
/// ```
#[doc(alias = "GetPromptRequest")]
#[derive(Debug)]
pub struct GetPrompt<'a> {
    pub(crate) handling: RequestContext<'a>,
    pub(crate) description: &'a str,
}

/// The function that completes a value.
pub(crate) type Completer<S> = fn(&mut S, &mut Complete<'_>) -> HandlerResult;

/// The context of a
/// [`completion/complete`](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion). It
/// dereferences to [`RequestContext`].
///
/// ```
/// use mcp_sansio::service::{Complete, HandlerResult};
///
/// fn complete(_: &mut (), complete: &mut Complete<'_>) -> HandlerResult {
///     if complete.argument.eq_str("language") {
///         return complete.matching(["Python", "Rust"]);
///     }
///     complete.offer::<&str>([])
/// }
/// # let _: fn(&mut (), &mut Complete<'_>) -> HandlerResult = complete;
/// ```
///
/// The handler offers only values that this user may see: see [Completions](crate::duties::server#completions).
#[doc(alias = "CompleteRequest")]
#[derive(Debug)]
pub struct Complete<'a> {
    pub(crate) handling: RequestContext<'a>,
    /// `argument.name`: the argument of a prompt or the variable of a template.
    pub argument: Text<'a>,
    /// `argument.value`: the text that the user has typed so far.
    pub value: &'a str,
    pub(crate) context: Option<Raw<'a>>,
}

/// The context of a request that the protocol does not know, for [`Service::other`](super::Service::other). It
/// dereferences to [`RequestContext`].
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio::service::{CustomRequest, HandlerResult, Service};
///
/// fn other(_: &mut (), request: &mut CustomRequest<'_>) -> HandlerResult {
///     if request.method.eq_str("example.com/now") {
///         return request.result(Raw::constant(r#"{"seconds":0}"#));
///     }
///     request.decline()
/// }
/// let service = Service::new("clock", "1.0").other(other);
/// # let _ = service;
/// ```
#[derive(Debug)]
pub struct CustomRequest<'a> {
    pub(crate) handling: RequestContext<'a>,
    /// The name of the method.
    pub method: Text<'a>,
    /// The hints of the results, if the method of the extension has them.
    #[cfg(feature = "extensions")]
    pub(crate) caching: Option<Caching>,
}

macro_rules! handles {
    ($($type:ident)*) => { $(
        impl<'a> Deref for $type<'a> {
            type Target = RequestContext<'a>;
            fn deref(&self) -> &RequestContext<'a> {
                &self.handling
            }
        }
        impl DerefMut for $type<'_> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.handling
            }
        }
        impl $type<'_> {
            // Also here, and not through `DerefMut` alone: so `call.ok(f(call.arguments()))` compiles.

            /// Returns the value of `result`, or answers with its error: [`RequestContext::ok`].
            ///
            /// # Errors
            /// `result` is an error, which is answered: return what is returned here, by `?`.
            #[inline]
            pub fn ok<T, E: core::fmt::Display>(&mut self, result: Result<T, E>) -> Result<T, HandlerError> {
                self.handling.ok(result)
            }

            /// Runs a handler with this context.
            #[inline]
            pub(super) fn run<S>(
                mut self,
                state: &mut S,
                handler: impl FnOnce(&mut S, &mut Self) -> HandlerResult,
            ) -> HandlerRun {
                let outcome = handler(state, &mut self);
                self.handling.ran(outcome)
            }
        }
    )* };
}
handles!(Call ReadResource GetPrompt Complete CustomRequest);

impl<'a> RequestContext<'a> {
    /// Returns `params.arguments`, an empty object if they are absent.
    pub const fn arguments(&self) -> Raw<'a> {
        match self.input.members.arguments {
            Some(arguments) => arguments,
            None => Raw::trusted(b"{}"),
        }
    }

    /// Reads the arguments into a type. Text is borrowed from the message, or from the scratch of the server if it has
    /// escapes: each time it is called, it uses up a part of it.
    ///
    /// # Errors
    /// The arguments are not of this type, or the scratch is too small. Returned with `?`, the error is a result with
    /// `isError` for a tool, and error -32602 for other requests.
    #[cfg(feature = "serde")]
    pub fn args<T: serde::Deserialize<'a>>(&mut self) -> Result<T, HandlerError> {
        self.arguments().to_within(&mut self.scratch).map_err(HandlerError::from)
    }

    /// Reads one argument. `T` is an `Option` for one that may be absent.
    ///
    /// # Errors
    /// As [`args`](RequestContext::args).
    #[cfg(feature = "serde")]
    pub fn arg<T: serde::Deserialize<'a>>(&mut self, name: &'static str) -> Result<T, HandlerError> {
        self.arguments().member_to(name, &mut self.scratch).map_err(HandlerError::from)
    }

    fn name(&self) -> Text<'a> {
        self.input.members.name.and_then(|name| name.text()).unwrap_or(Text::from_raw(b""))
    }

    /// Answers with `result`, a JSON object. The members that the revision demands are added.
    ///
    /// # Errors
    /// `result` is not an object, the handler has answered already, or the result does not fit.
    pub fn result(&mut self, result: Raw<'_>) -> HandlerResult {
        self.write_own(result, None)
    }
}

impl<'a> Call<'a> {
    /// Returns `params.name`, the name of the tool. In a late answer it is empty.
    pub fn name(&self) -> Text<'a> {
        self.handling.name()
    }
}

impl Call<'_> {
    /// Answers with text: a `&str` or `String`, a number, `format_args!(..)` for all that is `Display`, or several of these as
    /// `&[..]`.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    pub fn text(&mut self, text: impl AnswerText) -> HandlerResult {
        text.with_text(|text| self.write_words(text, false))
    }

    /// Answers with `isError` and a text by which the model can correct the call.
    ///
    /// # Errors
    /// As [`text`](Call::text).
    #[doc(alias = "isError")]
    pub fn error(&mut self, text: impl AnswerText) -> HandlerResult {
        text.with_text(|text| self.write_words(text, true))
    }

    /// Answers with `content`.
    ///
    /// # Errors
    /// As [`text`](Call::text).
    pub fn content(&mut self, content: &[ContentBlock<'_>]) -> HandlerResult {
        self.contents(content, false)
    }

    /// Answers with `isError` and `content`.
    ///
    /// # Errors
    /// As [`text`](Call::text).
    pub fn error_content(&mut self, content: &[ContentBlock<'_>]) -> HandlerResult {
        self.contents(content, true)
    }

    /// Answers with `structuredContent` if the revision has it, and with the same JSON as text.
    ///
    /// # Errors
    /// As [`text`](Call::text); or the value has no form in JSON.
    #[doc(alias = "structuredContent")]
    #[cfg(feature = "serde")]
    pub fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> HandlerResult {
        use crate::json::ser::{SerializeError, to_escaped, to_sink};
        // An error must show before the first byte goes out.
        let mut first = First::default();
        to_sink(&mut first, value)
            .map_err(|_| RpcError::internal(crate::error::words("The handler's result is not JSON")))?;
        let full = |error: SerializeError| error.full().unwrap_or(FullError::Never);
        self.structured(first.0 == Some(b'{'), &|out| out.write(|out| to_escaped(out, value).map_err(full)), &|out| {
            out.write(|out| to_sink(out, value).map_err(full))
        })
    }

    /// Answers as [`json`](Call::json) does, with a value that is JSON already.
    ///
    /// # Errors
    /// As [`text`](Call::text).
    pub fn json_raw(&mut self, value: Raw<'_>) -> HandlerResult {
        self.structured(value.kind() == JsonKind::Object, &|out| out.escape(value.as_str()), &|out| out.raw(value))
    }

    fn contents(&mut self, content: &[ContentBlock<'_>], is_error: bool) -> HandlerResult {
        let head = if is_error { MessageHead::ToolError } else { MessageHead::Result };
        self.write_result_as(head, &mut |result, revision| {
            array(result.key("content"), content, |out, piece| piece.write_in(out, revision, false));
            result.boolean("isError", is_error)
        })
    }

    pub(super) fn structured(
        &mut self,
        is_object: bool,
        text: &dyn Fn(&mut Writer<'_>),
        value: &dyn Fn(&mut Writer<'_>),
    ) -> HandlerResult {
        self.write_result(&mut |result, revision| {
            let out = result.key("content");
            out.put(b"[{\"type\":\"text\",\"text\":\"");
            text(out);
            out.put(b"\"}]");
            if revision.has(Since::AnyStructured) || is_object && revision.has(Since::StructuredOutput) {
                value(result.key("structuredContent"));
            }
            result.boolean("isError", false)
        })
    }
}

/// Takes everything, and keeps only the first byte.
#[cfg(feature = "serde")]
#[derive(Default)]
struct First(Option<u8>);

#[cfg(feature = "serde")]
impl Sink for First {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0 = self.0.or(bytes.first().copied());
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

impl<'a> ReadResource<'a> {
    /// Answers as [`RequestContext::result`] does. In 2026-07-28 `ttlMs` and `cacheScope` are those of the definition
    /// where the object has no valid ones.
    ///
    /// # Errors
    /// As [`RequestContext::result`].
    pub fn result(&mut self, result: Raw<'_>) -> HandlerResult {
        let caching = self.caching;
        self.write_own(result, Some(caching))
    }

    /// Returns the value of a variable of the template, as in the URI: `%20` stays `%20`.
    pub fn var(&self, name: &str) -> Option<&'a str> {
        self.var_of(self.template?, name)
    }

    /// Returns the value of a variable of `template`, which need not be a constant; `None` if the URI does not match it. For
    /// a [`DynamicList`](super::DynamicList) of templates.
    pub fn var_of(&self, template: &str, name: &str) -> Option<&'a str> {
        super::template::variable(template, self.uri, name)
    }

    /// Answers with `text`, at the URI of the request, with the MIME type of the definition.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    pub fn text(&mut self, text: impl AnswerText) -> HandlerResult {
        text.with_text(|text| self.one("text", &|out| text.write(out)))
    }

    /// Answers with bytes, sent as base64 in `blob`, at the URI of the request, with the MIME type of the definition.
    ///
    /// # Errors
    /// As [`text`](ReadResource::text).
    pub fn blob(&mut self, bytes: &[u8]) -> HandlerResult {
        self.one("blob", &|out| write_base64(out, bytes))
    }

    /// Answers with a value as JSON in `text`, at the URI of the request, with the MIME type of the definition, else
    /// `application/json`.
    ///
    /// # Errors
    /// As [`text`](ReadResource::text); or the value has no form in JSON.
    #[cfg(feature = "serde")]
    pub fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> HandlerResult {
        use crate::json::ser::{SerializeError, to_escaped, to_sink};
        to_sink(&mut First::default(), value)
            .map_err(|_| RpcError::internal(crate::error::words("The handler's value is not JSON")))?;
        self.mime = self.mime.or(Some("application/json"));
        self.one("text", &|out| {
            out.put(b"\"");
            let full = |error: SerializeError| error.full().unwrap_or(FullError::Never);
            out.write(|out| to_escaped(out, value).map_err(full));
            out.put(b"\"")
        })
    }

    /// Answers with one content. Not by [`contents`](ReadResource::contents): a program without it is linked without the
    /// writer of contents.
    fn one(&mut self, member: &str, write: &dyn Fn(&mut Writer<'_>)) -> HandlerResult {
        let (uri, mime, caching) = (self.uri, self.mime, self.caching);
        #[cfg(feature = "extensions")]
        let meta = self.contents_meta;
        self.write_result(&mut |result, revision| {
            let mut contents = begin_contents(result, uri, mime);
            #[cfg(feature = "extensions")]
            write_meta(&mut contents, revision, meta);
            write(contents.key(member));
            contents.finish().put(b"]");
            if revision.is_modern() {
                caching.write(result);
            }
        })
    }

    /// Answers with any number of contents, as for a folder; with no contents for an empty folder. For a resource that does
    /// not exist, answer by [`not_found`](ReadResource::not_found).
    ///
    /// # Errors
    /// As [`text`](ReadResource::text).
    pub fn contents(&mut self, contents: &[ResourceContents<'_>]) -> HandlerResult {
        let caching = self.caching;
        self.write_result(&mut |result, revision| {
            array(result.key("contents"), contents, |out, contents| contents.write(out, revision));
            if revision.is_modern() {
                caching.write(result);
            }
        })
    }

    /// Answers with the error for a resource that does not exist, with `data.uri`: code -32002 up to 2025-11-25, -32602 in
    /// 2026-07-28. The handler of a template calls it for a URI without a resource.
    ///
    /// # Errors
    /// As [`text`](ReadResource::text).
    pub fn not_found(&mut self) -> HandlerResult {
        let revision = self.revision();
        let uri = self.input.members.target(self.slot.method).and_then(|uri| uri.text());
        let failure = match uri {
            Some(uri) => RpcError::unknown_resource(uri, revision),
            // A late answer: there is only the decoded URI.
            None => RpcError::unknown_resource_at(self.uri, revision),
        };
        self.fail(&failure)
    }
}

/// Begins `contents` with one content: all members but the last one.
pub(crate) fn begin_contents<'o, 'w>(result: &'o mut Object<'_, 'w>, uri: &str, mime: Option<&str>) -> Object<'o, 'w> {
    let out = result.key("contents");
    out.put(b"[");
    let mut contents = Object::open(out);
    contents.text("uri", uri);
    contents.text_if("mimeType", mime);
    contents
}

impl<'a> GetPrompt<'a> {
    /// Returns `params.name`, the name of the prompt. In a late answer it is empty.
    pub fn name(&self) -> Text<'a> {
        self.handling.name()
    }

    /// Returns an argument of the prompt.
    pub fn arg(&self, name: &str) -> Option<Text<'a>> {
        self.arguments().get(name)?.text()
    }

    /// Answers with one text message of the user.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    pub fn user(&mut self, text: impl AnswerText) -> HandlerResult {
        // Not by `messages`: a program without it is linked without the writer of content.
        text.with_text(|text| {
            self.described(&mut |result| {
                let out = result.key("messages");
                out.put(b"[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
                text.write(out);
                out.put(b"}}]")
            })
        })
    }

    /// Answers with `messages`.
    ///
    /// # Errors
    /// As [`user`](GetPrompt::user).
    pub fn messages(&mut self, messages: &[PromptMessage<'_>]) -> HandlerResult {
        let revision = self.revision();
        self.described(&mut |result| {
            array(result.key("messages"), messages, |out, message| message.write(out, revision, false))
        })
    }

    /// Answers with the `description` of the definition, and with `messages`.
    fn described(&mut self, messages: &mut dyn FnMut(&mut Object<'_, '_>)) -> HandlerResult {
        let description = self.description;
        self.write_result(&mut |result, _| {
            if !description.is_empty() {
                result.text("description", description);
            }
            messages(result)
        })
    }
}

/// The most `values` in the result of a completion; the protocol's limit.
const COMPLETIONS_MAX: usize = 100;

impl<'a> Complete<'a> {
    /// Returns the value of another argument, from `context.arguments`, if the client sent it (from 2025-06-18 on).
    #[doc(alias = "context")]
    pub fn other(&self, name: &str) -> Option<Text<'a>> {
        self.context?.get("arguments")?.get(name)?.text()
    }

    /// Answers with `values`, best first. The first 100 are sent; `hasMore` is set if there are more.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    pub fn offer<T: AsRef<str>>(&mut self, values: impl IntoIterator<Item = T>) -> HandlerResult {
        let mut values = values.into_iter();
        let values: &mut dyn Iterator<Item = T> = &mut values;
        self.write_result(&mut |result, _| {
            let mut completion = Object::open(result.key("completion"));
            let first = (&mut *values).take(COMPLETIONS_MAX);
            array(completion.key("values"), first, |out, value| out.string(value.as_ref()));
            completion.boolean("hasMore", values.next().is_some());
            completion.close()
        })
    }

    /// Answers with those of the values that begin with [`value`](Complete::value).
    ///
    /// # Errors
    /// As [`offer`](Complete::offer).
    pub fn matching<T: AsRef<str>>(&mut self, values: impl IntoIterator<Item = T>) -> HandlerResult {
        let typed = self.value;
        self.offer(values.into_iter().filter(|value| value.as_ref().starts_with(typed)))
    }
}

impl<'a> CustomRequest<'a> {
    pub(crate) const fn new(handling: RequestContext<'a>, method: Text<'a>) -> Self {
        CustomRequest {
            handling,
            method,
            #[cfg(feature = "extensions")]
            caching: None,
        }
    }

    /// Answers with error -32601: there is no such method.
    ///
    /// # Errors
    /// Always: return it.
    pub fn decline(&mut self) -> HandlerResult {
        Err(HandlerError(HandlerFailure::Fail(RpcError::method_not_found())))
    }
}
