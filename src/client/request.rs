//! What a client asks: every request of the protocol, and raw ones for anything else.

use super::profile::{MetaParts, Profile};
use crate::json::{Raw, Text, object::Object, write};
use crate::protocol::{Level, Method};
use crate::revision::{Revision, Since};
use crate::server::Millis;
use crate::service::Words;
#[cfg(feature = "alloc")]
use crate::sink::part;
use crate::sink::{Full, Kind, Out, Sink, Writer, whole};

/// Something that can be written as a JSON object: the arguments of a call.
///
/// With the feature `serde` everything that serializes is one, `serde_json::json!` values included; without it
/// [`Raw`] is, and what you implement it for.
pub trait Arguments {
    /// Writes the object.
    fn write(&self, out: &mut dyn Sink) -> Result<(), Full>;
}

#[cfg(not(feature = "serde"))]
impl Arguments for Raw<'_> {
    fn write(&self, out: &mut dyn Sink) -> Result<(), Full> {
        write::raw(out, *self)
    }
}

/// What cannot be written as JSON is told as [`Full::Never`].
#[cfg(feature = "serde")]
impl<T: serde::Serialize + ?Sized> Arguments for T {
    fn write(&self, out: &mut dyn Sink) -> Result<(), Full> {
        crate::json::to_sink(out, self).map_err(|error| error.full().unwrap_or(Full::Never))
    }
}

/// What a completion is asked for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reference<'r> {
    /// An argument of the prompt with that name.
    Prompt(Words<'r>),
    /// A variable of the resource template with that URI template.
    Resource(Words<'r>),
}

impl<'r> Reference<'r> {
    /// An argument of the prompt `name`.
    pub fn prompt(name: impl Into<Words<'r>>) -> Self {
        Reference::Prompt(name.into())
    }

    /// A variable of the template `uri`.
    pub fn resource(uri: impl Into<Words<'r>>) -> Self {
        Reference::Resource(uri.into())
    }
}

/// A request, ready to be [sent](super::ClientOf::send).
///
/// ```
/// use mcp_sansio::client::Request;
/// use mcp_sansio::json::Raw;
///
/// let arguments = Raw::parse(br#"{"a":1,"b":2}"#)?;
/// let request = Request::call("add").arguments(&arguments).with_progress().timeout(5_000);
/// let next_page = Request::list_tools().after("cursor-2");
/// # let _ = (request, next_page);
/// # Ok::<(), mcp_sansio::json::Fault>(())
/// ```
#[derive(Clone, Copy)]
#[must_use = "send it"]
pub struct Request<'r> {
    pub(crate) method: Method,
    pub(crate) name: &'r str,
    body: Body<'r>,
    arguments: Option<&'r dyn Arguments>,
    own_meta: Option<Raw<'r>>,
    pub(crate) options: Options,
}

/// How long a request may take, and what it wants to hear meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) progress: bool,
    pub(crate) level: Option<Level>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) longest: Option<Millis>,
    pub(crate) patient: bool,
}

impl Options {
    /// How long it may take whatever happens: without a time of its own, the usual one, if its deadline is put off by
    /// progress.
    pub(crate) fn end(&self, usual: Millis) -> Option<Millis> {
        let usual = self.timeout.filter(|_| self.progress).map(|timeout| timeout.max(usual));
        self.longest.or(usual)
    }
}

#[derive(Clone, Copy)]
enum Body<'r> {
    /// Nothing, or the next page of a list.
    List(Option<Words<'r>>),
    Named(Words<'r>),
    Uri(Words<'r>),
    Complete {
        reference: Reference<'r>,
        name: &'r str,
        value: &'r str,
    },
    Level(Level),
    Raw(Option<Raw<'r>>),
}

impl<'r> Request<'r> {
    fn new(method: Method, body: Body<'r>) -> Self {
        let options = Options::default();
        Request { method, name: method.name(), body, arguments: None, own_meta: None, options }
    }

    /// `tools/list`
    pub fn list_tools() -> Self {
        Request::new(Method::ToolsList, Body::List(None))
    }

    /// `resources/list`
    pub fn list_resources() -> Self {
        Request::new(Method::ResourcesList, Body::List(None))
    }

    /// `resources/templates/list`
    pub fn list_templates() -> Self {
        Request::new(Method::TemplatesList, Body::List(None))
    }

    /// `prompts/list`
    pub fn list_prompts() -> Self {
        Request::new(Method::PromptsList, Body::List(None))
    }

    /// `tools/call`
    pub fn call(tool: impl Into<Words<'r>>) -> Self {
        Request::new(Method::ToolsCall, Body::Named(tool.into()))
    }

    /// `resources/read`
    pub fn read(uri: impl Into<Words<'r>>) -> Self {
        Request::new(Method::ResourcesRead, Body::Uri(uri.into()))
    }

    /// `prompts/get`; the values of its [`arguments`](Request::arguments) are strings.
    pub fn prompt(name: impl Into<Words<'r>>) -> Self {
        Request::new(Method::PromptsGet, Body::Named(name.into()))
    }

    /// `completion/complete`: what the argument `name` could be that begins with `value`. What other arguments are
    /// already is said with [`arguments`](Request::arguments) (from 2025-06-18 on).
    pub fn complete(reference: Reference<'r>, name: &'r str, value: &'r str) -> Self {
        Request::new(Method::Complete, Body::Complete { reference, name, value })
    }

    /// `ping` (up to 2025-11-25).
    pub fn ping() -> Self {
        Request::new(Method::Ping, Body::Raw(None))
    }

    /// `server/discover` (from 2026-07-28 on).
    pub fn discover() -> Self {
        Request::new(Method::Discover, Body::Raw(None))
    }

    /// `resources/subscribe` (up to 2025-11-25); [`listen`](super::ClientOf::listen) does it in every revision.
    pub fn subscribe(uri: impl Into<Words<'r>>) -> Self {
        Request::new(Method::Subscribe, Body::Uri(uri.into()))
    }

    /// `resources/unsubscribe` (up to 2025-11-25).
    pub fn unsubscribe(uri: impl Into<Words<'r>>) -> Self {
        Request::new(Method::Unsubscribe, Body::Uri(uri.into()))
    }

    /// `logging/setLevel` (up to 2025-11-25); [`set_log_level`](super::ClientOf::set_log_level) does it in every
    /// revision.
    pub fn set_level(level: Level) -> Self {
        Request::new(Method::SetLevel, Body::Level(level))
    }

    /// Any method, with params as they stand. What the protocol demands in `_meta` is added to them.
    pub fn raw(method: &'r str, params: Option<Raw<'r>>) -> Self {
        Request { name: method, ..Request::new(Method::Other, Body::Raw(params)) }
    }

    /// The method's name, as it is sent in `method`.
    #[must_use]
    pub const fn method_name(&self) -> &'r str {
        self.name
    }

    /// The page of a list behind `cursor`, which came with the page before it.
    pub fn after(self, cursor: impl Into<Words<'r>>) -> Self {
        Request { body: Body::List(Some(cursor.into())), ..self }
    }

    /// The arguments of a tool or prompt; the context of a completion.
    pub fn arguments(self, arguments: &'r dyn Arguments) -> Self {
        Request { arguments: Some(arguments), ..self }
    }

    /// Members for `_meta`, an object as it stands.
    pub fn meta(self, object: Raw<'r>) -> Self {
        Request { own_meta: Some(object), ..self }
    }

    /// Asks for progress. Each report with another value than the one before also starts the time of
    /// [`timeout`](Request::timeout) again, until [`at_most`](Request::at_most) is over.
    pub fn with_progress(mut self) -> Self {
        self.options.progress = true;
        self
    }

    /// Asks for log messages of that severity or more under 2026-07-28, for this request alone.
    pub fn with_logs(mut self, level: Level) -> Self {
        self.options.level = Some(level);
        self
    }

    /// How many milliseconds it may take, instead of the client's usual time. Then it is cancelled.
    pub fn timeout(mut self, millis: Millis) -> Self {
        self.options.timeout = Some(millis);
        self
    }

    /// How many milliseconds it may take although there is progress, and questions with the time that they take. Unless it
    /// is said, there is no such limit without progress; with progress it is that of the client
    /// ([`Client::at_most`](super::Client::at_most): an hour), in which the time of questions does not count.
    pub fn at_most(mut self, millis: Millis) -> Self {
        self.options.longest = Some(millis);
        self
    }

    /// It may take any time.
    pub fn patient(mut self) -> Self {
        self.options.patient = true;
        self
    }

    /// The members of its params, without `_meta`.
    pub(crate) fn write_members(&self, params: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
        match &self.body {
            Body::List(None) | Body::Raw(None) => {}
            Body::List(Some(cursor)) => cursor.write(params.key("cursor"))?,
            Body::Named(name) => {
                name.write(params.key("name"))?;
                if let Some(arguments) = self.arguments {
                    write_arguments(params.key("arguments"), arguments)?;
                }
            }
            Body::Uri(uri) => uri.write(params.key("uri"))?,
            Body::Complete { reference, name, value } => {
                write_completion(params, reference, name, value)?;
                if let Some(arguments) = self.arguments.filter(|_| revision.has(Since::CompletionContext)) {
                    let mut context = Object::open(params.key("context"));
                    write_arguments(context.key("arguments"), arguments)?;
                    context.close()?;
                }
            }
            Body::Level(level) => params.text("level", level.name())?,
            Body::Raw(Some(object)) => {
                // Of one that was kept, see `keep`.
                let context = self.method != Method::Complete || revision.has(Since::CompletionContext);
                let wanted = |key: &Text<'_>| !key.is("_meta") && (context || !key.is("context"));
                for (key, value) in object.members().filter(|(key, _)| wanted(key)) {
                    params.member(key, value)?;
                }
            }
        }
        Ok(())
    }

    /// The application's own members of `_meta`.
    pub(crate) fn own_meta(&self) -> Option<Raw<'r>> {
        match self.body {
            Body::Raw(Some(params)) => self.own_meta.or_else(|| params.get("_meta")),
            _ => self.own_meta,
        }
    }

    /// Writes the message.
    pub(crate) fn write(
        &self,
        out: &mut dyn Out,
        wire: u32,
        profile: &Profile<'_>,
        revision: Revision,
        level: Option<Level>,
    ) -> Result<(), Full> {
        let meta = MetaParts {
            progress: self.options.progress.then_some(wire),
            level: self.options.level.or(level),
            own: self.own_meta(),
        };
        write_request(out, wire, self.name, &mut |params| {
            self.write_members(params, revision)?;
            profile.write_meta(params, revision, meta)
        })
    }
}

impl core::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Request").field("method", &self.name).finish_non_exhaustive()
    }
}

/// What is to be completed.
fn write_completion(
    params: &mut Object<'_, '_>,
    reference: &Reference<'_>,
    name: &str,
    value: &str,
) -> Result<(), Full> {
    let mut object = Object::open(params.key("ref"));
    match reference {
        Reference::Prompt(name) => {
            object.text("type", "ref/prompt")?;
            name.write(object.key("name"))?;
        }
        Reference::Resource(uri) => {
            object.text("type", "ref/resource")?;
            uri.write(object.key("uri"))?;
        }
    }
    object.close()?;
    let mut argument = Object::open(params.key("argument"));
    argument.text("name", name)?;
    argument.text("value", value)?;
    argument.close()
}

fn write_arguments(out: &mut Writer<'_>, arguments: &dyn Arguments) -> Result<(), Full> {
    arguments.write(&mut OneLine(out))
}

/// Newlines between tokens become spaces: one could otherwise end a line.
struct OneLine<'o, 'w>(&'o mut Writer<'w>);

impl Sink for OneLine<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        write::one_line(self.0, bytes)?;
        self.0.written()
    }

    fn room(&self) -> usize {
        self.0.room()
    }
}

/// Writes a whole request: `params` writes the members of its params, which are left out if there are none.
pub(crate) fn write_request(
    out: &mut dyn Out,
    wire: u32,
    method: &str,
    params: &mut dyn FnMut(&mut Object<'_, '_>) -> Result<(), Full>,
) -> Result<(), Full> {
    whole(out, Kind::Request, |out| {
        out.put(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
        write::unsigned(out, wire.into())?;
        out.put(b",\"method\":")?;
        write::string(out, method)?;
        out.put(b",\"params\":")?;
        let mut object = Object::open(out);
        params(&mut object)?;
        object.finish().put(b"}")
    })
}

/// The text of a cursor, for [`Request::after`].
impl<'r> From<&Text<'r>> for Words<'r> {
    fn from(text: &Text<'r>) -> Self {
        Words::Verbatim(*text)
    }
}

/// A request that owns all it consists of: for those that wait before they are sent.
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
    /// The same request, with everything written out.
    ///
    /// ```
    /// use mcp_sansio::client::{OwnedRequest, Request};
    /// fn later(name: &str) -> OwnedRequest {
    ///     Request::prompt(name).timeout(5_000).keep().unwrap()
    /// }
    /// let kept = later("greeting");
    /// let request: Request<'_> = kept.request(); // to be sent when its time has come
    /// # let _ = request;
    /// ```
    ///
    /// # Errors
    /// [`Full::Never`] if the arguments cannot be written as JSON.
    pub fn keep(&self) -> Result<OwnedRequest, Full> {
        let mut out = crate::sink::Lines::new(alloc::vec::Vec::new());
        part(&mut out, |out| {
            let mut object = Object::open(out);
            // What a revision lacks is left out when it is sent.
            self.write_members(&mut object, Revision::V2026_07_28)?;
            object.close()
        })?;
        Ok(OwnedRequest {
            method: self.method,
            name: self.name.into(),
            params: out.pending().into(),
            meta: self.own_meta().map(|meta| meta.as_bytes().into()),
            options: self.options,
        })
    }
}

#[cfg(feature = "alloc")]
impl OwnedRequest {
    /// The request, ready to be sent.
    pub fn request(&self) -> Request<'_> {
        Request {
            method: self.method,
            name: &self.name,
            body: Body::Raw(Some(Raw::trusted(&self.params))),
            arguments: None,
            own_meta: self.meta.as_deref().map(Raw::trusted),
            options: self.options,
        }
    }

    /// How many milliseconds it may take, if it says so itself.
    #[must_use]
    pub fn time(&self) -> Option<Millis> {
        self.options.timeout
    }
}
