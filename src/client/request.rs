//! The requests of a client: one constructor for each method of the protocol, and [`Request::raw`] for any other.

use super::Client;
#[cfg(feature = "alloc")]
use super::request_meta::write_own_meta;
use super::request_meta::{MetaParts, TraceMembers};
use crate::content::TextValue;
use crate::json::{JsonKind, Raw, Text, object::Object};
use crate::protocol::{LoggingLevel, Method};
use crate::revision::{Revision, Since};
use crate::rpc::begin_request;
use crate::sink::{FullError, MessageHead, Out, RequestInfo, Sink, Writer, whole};
use crate::time::Millis;
use crate::trace_context::TraceContext;

/// A value that writes a JSON object: the arguments of a call.
///
/// With the feature `serde` every `Serialize` type implements it, also `serde_json::json!` values. Without it
/// [`Raw`] implements it, and types of the application can.
pub trait Arguments {
    /// Writes the object, on one line: a newline would end the message on a line transport.
    ///
    /// # Errors
    /// [`FullError::Now`] or [`FullError::Never`] of the sink.
    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError>;
}

#[cfg(not(feature = "serde"))]
impl Arguments for Raw<'_> {
    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        crate::json::write::raw(out, *self)
    }
}

/// Writes `null`, as with the feature `serde`.
#[cfg(not(feature = "serde"))]
impl Arguments for () {
    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        out.put(b"null")
    }
}

/// A value that cannot be written as JSON gives [`FullError::Never`].
#[cfg(feature = "serde")]
impl<T: serde::Serialize + ?Sized> Arguments for T {
    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        crate::json::to_sink(out, self).map_err(|error| error.full().unwrap_or(FullError::Never))
    }
}

/// A request of the client, to [send](super::Client::send).
///
/// ```
/// use mcp_sansio::client::Request;
/// use mcp_sansio::json::Raw;
///
/// let arguments = Raw::parse(br#"{"a":1,"b":2}"#)?;
/// let request = Request::call("add").arguments(&arguments).with_progress().timeout(5_000);
/// let next_page = Request::list_tools().after("cursor-2");
/// # let _ = (request, next_page);
/// # Ok::<(), mcp_sansio::json::ParseError>(())
/// ```
///
/// It borrows its arguments, whatever their type, and is not `Send`. A task that uses one again after an `.await` holds an
/// [`OwnedRequest`], which [`keep`](Request::keep) makes (feature `alloc`).
#[derive(Clone, Copy)]
#[must_use = "send it"]
pub struct Request<'r> {
    pub(crate) method: Method,
    /// The `method`, as it is written.
    pub name: &'r str,
    body: Body<'r>,
    arguments: Option<&'r dyn Arguments>,
    /// The application's own members of `_meta`, without its trace context.
    pub(crate) own_meta: Option<Raw<'r>>,
    pub(crate) trace: Option<&'r dyn TraceMembers>,
    pub(crate) options: Options,
}

/// The limits of a request and the notifications that it asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) progress: bool,
    pub(crate) level: Option<LoggingLevel>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) longest: Option<Millis>,
    pub(crate) no_timeout: bool,
    /// A result of any type ends the request.
    pub(crate) any_result: bool,
    /// Its own `_meta` says who the client is.
    pub(crate) own_client: bool,
}

impl Options {
    /// Returns the total time limit. Without one of its own, a request with a timeout and progress has the
    /// client's, and at least its timeout.
    pub(crate) fn end(&self, usual: Millis) -> Option<Millis> {
        let usual = self.timeout.filter(|_| self.progress).map(|timeout| timeout.max(usual));
        self.longest.or(usual)
    }
}

#[derive(Clone, Copy)]
enum Body<'r> {
    None,
    /// One string member: its name and its value.
    Text(&'static str, TextValue<'r>),
    /// A completion of an argument (name and value) of a prompt or a resource template: the `type` of its `ref`, the
    /// member that identifies it, and the value of that member.
    Complete([&'static str; 2], TextValue<'r>, [&'r str; 2]),
    Raw(Raw<'r>),
}

impl<'r> Request<'r> {
    fn new(method: Method, body: Body<'r>) -> Self {
        let options = Options::default();
        Request { method, name: method.name(), body, arguments: None, own_meta: None, trace: None, options }
    }

    /// `tools/list` ([tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools)).
    pub fn list_tools() -> Self {
        Request::new(Method::ToolsList, Body::None)
    }

    /// `resources/list` ([resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources)).
    pub fn list_resources() -> Self {
        Request::new(Method::ResourcesList, Body::None)
    }

    /// `resources/templates/list` ([resource
    /// templates](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-templates)).
    pub fn list_templates() -> Self {
        Request::new(Method::TemplatesList, Body::None)
    }

    /// `prompts/list` ([prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts)).
    pub fn list_prompts() -> Self {
        Request::new(Method::PromptsList, Body::None)
    }

    /// `tools/call`
    /// ([tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#calling-tools)).
    pub fn call(tool: impl Into<TextValue<'r>>) -> Self {
        Request::new(Method::ToolsCall, Body::Text("name", tool.into()))
    }

    /// `resources/read`
    /// ([resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources)).
    pub fn read(uri: impl Into<TextValue<'r>>) -> Self {
        Request::new(Method::ResourcesRead, Body::Text("uri", uri.into()))
    }

    /// `prompts/get`
    /// ([prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#getting-a-prompt)). The
    /// values of its [`arguments`](Request::arguments) are strings.
    pub fn prompt(name: impl Into<TextValue<'r>>) -> Self {
        Request::new(Method::PromptsGet, Body::Text("name", name.into()))
    }

    /// `completion/complete`
    /// ([completion](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/completion)): asks
    /// for values of the argument `name` of a prompt that begin with `value`. [`arguments`](Request::arguments) sets
    /// the known other arguments in `context` (from 2025-06-18 on).
    pub fn complete_prompt(prompt: impl Into<TextValue<'r>>, name: &'r str, value: &'r str) -> Self {
        Request::new(Method::Complete, Body::Complete(["ref/prompt", "name"], prompt.into(), [name, value]))
    }

    /// `completion/complete` for the variable `name` of a resource template, as
    /// [`complete_prompt`](Request::complete_prompt).
    pub fn complete_template(uri: impl Into<TextValue<'r>>, name: &'r str, value: &'r str) -> Self {
        Request::new(Method::Complete, Body::Complete(["ref/resource", "uri"], uri.into(), [name, value]))
    }

    /// `ping` (up to 2025-11-25,
    /// [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping)).
    pub fn ping() -> Self {
        Request::new(Method::Ping, Body::None)
    }

    /// `server/discover` (from 2026-07-28 on,
    /// [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover)).
    pub fn discover() -> Self {
        Request::new(Method::Discover, Body::None)
    }

    /// `resources/subscribe` (up to 2025-11-25,
    /// [subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)).
    /// [`listen`](super::Client::listen) subscribes in every revision.
    pub fn subscribe(uri: impl Into<TextValue<'r>>) -> Self {
        Request::new(Method::Subscribe, Body::Text("uri", uri.into()))
    }

    /// `resources/unsubscribe` (up to 2025-11-25).
    pub fn unsubscribe(uri: impl Into<TextValue<'r>>) -> Self {
        Request::new(Method::Unsubscribe, Body::Text("uri", uri.into()))
    }

    /// `logging/setLevel` (up to 2025-11-25,
    /// [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
    /// [`set_log_level`](super::Client::set_log_level) sets the level in every revision.
    pub fn set_level(level: LoggingLevel) -> Self {
        Request::new(Method::SetLevel, Body::Text("level", level.name().into()))
    }

    /// A request with any method and these `params`, for extensions. The client adds the members of `_meta` that
    /// the protocol requires.
    pub fn raw(method: &'r str, params: Option<Raw<'r>>) -> Self {
        let meta = params.and_then(|params| params.get("_meta"));
        Request { name: method, ..Request::of(Method::Other, params, meta) }
    }

    /// Returns a request with a method of the protocol and any params, for a program that passes requests on: the constructors of
    /// each method write the members that they know. The members are sent as they are, but for those of `_meta` that are the
    /// client's own. A `tools/call`, `prompts/get` or `resources/read` may be asked back, as those of [`call`](Request::call) are.
    /// `meta` must be the `_meta` of `params`: a program that has read the request knows it, and to find it takes as long as to send it.
    ///
    /// ```
    /// use mcp_sansio::client::Request;
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::protocol::Method;
    ///
    /// let params = Raw::constant(r#"{"name":"import","arguments":{},"task":{"ttl":60000}}"#);
    /// assert_eq!(Request::of(Method::ToolsCall, Some(params), None).name, "tools/call");
    /// ```
    pub fn of(method: Method, params: Option<Raw<'r>>, meta: Option<Raw<'r>>) -> Self {
        Request { own_meta: meta, ..Request::new(method, params.map_or(Body::None, Body::Raw)) }
    }

    crate::setters! {
        /// Sets `cursor`: the request asks for the next page of the list
        /// ([pagination](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination)).
        after(cursor: impl Into<TextValue<'r>>) => body = Body::Text("cursor", cursor.into());
        /// Sets `arguments` of a tool or a prompt, or `context.arguments` of a completion.
        arguments(arguments: &'r dyn Arguments) => arguments = Some(arguments);
        /// Adds the members of a JSON object to `_meta`. `progressToken` is left out: use
        /// [`with_progress`](Request::with_progress).
        meta(object: Raw<'r>) => own_meta = Some(object);
    }

    /// Sets `traceparent`, `tracestate` and `baggage` in `_meta`
    /// ([trace context](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta)), in every revision. Such
    /// members of [`meta`](Request::meta) are left out. A request that the client sends again has them again.
    ///
    /// A server that makes the request in a handler passes the trace on: `request.trace_context(&call.trace_context())`.
    pub fn trace_context(mut self, trace: &'r TraceContext<'r>) -> Self {
        self.trace = if trace.is_empty() { None } else { Some(trace) };
        self
    }

    crate::setters! {
        /// Asks for `notifications/progress`
        /// ([progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress)). Each
        /// notification with a new value also starts the time of [`timeout`](Request::timeout) again, within the
        /// total time of [`total_timeout`](Request::total_timeout).
        with_progress() => options.progress = true;
        /// Asks for log messages of this level and above, for this request alone (2026-07-28,
        /// [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging)).
        with_logs(level: LoggingLevel) => options.level = Some(level);
        /// Sets the time limit in milliseconds. After it the client cancels the request. Default:
        /// [`Client::timeout`](super::Client::timeout).
        timeout(millis: Millis) => options.timeout = Some(millis);
        /// Sets the limit in milliseconds of the total time, with progress and with the time of requests of the
        /// server.
        ///
        /// Default: no limit without progress; with progress that of [`Client::total_timeout`](super::Client::total_timeout),
        /// which does not count the time of requests of the server.
        total_timeout(millis: Millis) => options.longest = Some(millis);
        /// Removes the time limit.
        no_timeout() => options.no_timeout = true;
        /// Takes a result of any `resultType` as the result, for a program that passes results on. So `input_required`
        /// ([multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)) is the
        /// caller's: it sends another request with `inputResponses` and `requestState`. Default: the client asks by
        /// [`ClientEvent::Asked`](super::ClientEvent::Asked), and refuses types that it does not know.
        any_result_type() => options.any_result = true;
        /// Sends the members of the request's own `_meta` that describe the client, its name and capabilities (2026-07-28), in place of
        /// those of the [`ClientInfo`](super::ClientInfo): for a program that passes on requests of several clients. Default: they are
        /// left out.
        own_client() => options.own_client = true;
    }

    /// Writes the members of the params without `_meta`.
    pub(crate) fn write_members(&self, params: &mut Object<'_, '_>, revision: Revision) {
        match &self.body {
            Body::None => {}
            Body::Text(key, value) => {
                value.write(params.key(key));
                let takes = matches!(self.method, Method::ToolsCall | Method::PromptsGet);
                if let Some(arguments) = self.arguments.filter(|_| takes) {
                    params.key("arguments").write(|out| arguments.write(out));
                }
            }
            Body::Complete([kind, key], reference, [name, value]) => {
                let mut object = Object::open(params.key("ref"));
                object.text("type", kind);
                reference.write(object.key(key));
                object.close();
                let mut argument = Object::open(params.key("argument"));
                argument.text("name", name);
                argument.text("value", value);
                argument.close();
                if let Some(arguments) = self.arguments.filter(|_| revision.has(Since::CompletionContext)) {
                    let mut context = Object::open(params.key("context"));
                    context.key("arguments").write(|out| arguments.write(out));
                    context.close();
                }
            }
            Body::Raw(object) => {
                // The params of a kept request are those of the latest revision, see `keep`.
                let context = self.method != Method::Complete || revision.has(Since::CompletionContext);
                if context && self.own_meta.is_none() {
                    return params.spread(*object);
                }
                let wanted = |key: &Text<'_>| !key.eq_str("_meta") && (context || !key.eq_str("context"));
                for (key, value) in object.members().filter(|(key, _)| wanted(key)) {
                    params.member(key, value);
                }
            }
        }
    }

    /// Writes a text among the members, see [`RequestInfo::text`].
    pub(crate) fn write_text(&self, member: &str, out: &mut Writer<'_>) -> bool {
        match &self.body {
            Body::Text(key, value) if *key == member => value.write(out),
            Body::Raw(object) => return write_text_of(Some(*object), member, out),
            _ => return false,
        }
        true
    }
}

impl Client<'_> {
    /// Writes a request to the connected server: the members of its params that `members` writes, and `_meta`.
    pub(crate) fn write_request(
        &self,
        out: &mut dyn Out,
        head: RequestInfo<'_>,
        meta: MetaParts<'_>,
        members: &mut dyn FnMut(&mut Object<'_, '_>),
    ) -> Result<(), FullError> {
        let revision = self.revision.unwrap_or(Revision::LATEST);
        let version = if revision.is_modern() { revision.date() } else { "" };
        write_request(out, RequestInfo { version, ..head }, &mut |params| {
            members(params);
            self.info.write_meta(params, revision, meta)
        })
    }
}

impl core::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Request").field("method", &self.name).finish_non_exhaustive()
    }
}

/// Writes a text among the members of an object, see [`RequestInfo::text`].
pub(crate) fn write_text_of(object: Option<Raw<'_>>, member: &str, out: &mut Writer<'_>) -> bool {
    let text = object.and_then(|object| object.get(member)).filter(|value| value.kind() == JsonKind::String);
    text.map(|text| out.put(text.as_bytes())).is_some()
}

/// Writes a whole request. `params` writes the members of its params; an object without members is left out.
pub(crate) fn write_request(
    out: &mut dyn Out,
    head: RequestInfo<'_>,
    params: &mut dyn FnMut(&mut Object<'_, '_>),
) -> Result<(), FullError> {
    whole(out, MessageHead::Request(&head), |out| {
        begin_request(out, head.id, head.method, "\"params\":");
        let mut object = Object::open(out);
        params(&mut object);
        object.finish().put(b"}")
    })
}

/// Converts the `nextCursor` of a page for [`Request::after`].
impl<'r> From<&Text<'r>> for TextValue<'r> {
    fn from(text: &Text<'r>) -> Self {
        (*text).into()
    }
}

/// A request that owns its data, to send later. [`Request::keep`] makes one.
#[cfg(feature = "alloc")]
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    method: Method,
    name: alloc::string::String,
    params: alloc::vec::Vec<u8>,
    meta: Option<alloc::vec::Vec<u8>>,
    options: Options,
}

#[cfg(feature = "alloc")]
impl Request<'_> {
    /// Returns the same request with its own copy of all data.
    ///
    /// ```
    /// use mcp_sansio::client::{OwnedRequest, Request};
    /// fn later(name: &str) -> OwnedRequest {
    ///     Request::prompt(name).timeout(5_000).keep().unwrap()
    /// }
    /// let kept = later("greeting");
    /// let request: Request<'_> = kept.request(); // send it now
    /// # let _ = request;
    /// ```
    ///
    /// # Errors
    /// [`FullError::Never`] if the arguments cannot be written as JSON.
    pub fn keep(&self) -> Result<OwnedRequest, FullError> {
        let params = crate::sink::to_vec(|out| {
            let mut object = Object::open(out);
            // The client leaves out members that the negotiated revision lacks when it sends the request.
            self.write_members(&mut object, Revision::LATEST);
            object.close()
        })?;
        Ok(OwnedRequest {
            method: self.method,
            name: self.name.into(),
            params,
            meta: match self.trace {
                Some(_) => Some(crate::sink::to_vec(|out| write_own_meta(out, self.own_meta, self.trace))?),
                None => self.own_meta.map(|meta| meta.as_bytes().into()),
            },
            options: self.options,
        })
    }
}

#[cfg(feature = "alloc")]
impl OwnedRequest {
    /// Returns the request, to send.
    pub fn request(&self) -> Request<'_> {
        Request {
            method: self.method,
            name: &self.name,
            body: Body::Raw(Raw::trusted(&self.params)),
            arguments: None,
            own_meta: self.meta.as_deref().map(Raw::trusted),
            trace: None,
            options: self.options,
        }
    }

    /// Returns the request's own [`timeout`](Request::timeout) in milliseconds.
    #[must_use]
    pub fn time(&self) -> Option<Millis> {
        self.options.timeout
    }
}
