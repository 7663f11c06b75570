//! Extensions of the protocol, as a server offers them (feature `extensions`): tables of methods, members of capabilities,
//! results of other kinds, and topics that a `subscriptions/listen` selects. See
//! [extensions](https://modelcontextprotocol.io/extensions/overview).
//!
//! A crate defines an extension as a constant [`Extension`], generic over the state of the program. A program puts the
//! extensions that it wants into one table, and the table into its service with
//! [`Service::extend`](super::Service::extend).
//!
//! ```
//! use mcp_sansio::json::Object;
//! use mcp_sansio::service::{CustomRequest, Extension, ExtensionMethod, HandlerResult, Service, Topic};
//!
//! struct Kitchen {
//!     seconds_left: u64,
//! }
//!
//! /// `com.example/timer/get`
//! fn get(kitchen: &mut Kitchen, request: &mut CustomRequest<'_>) -> HandlerResult {
//!     request.result_as("complete", &mut |result| result.number("secondsLeft", kitchen.seconds_left))
//! }
//!
//! /// `notifications/com.example/timer`, for listens with `"timers": true`. The loop publishes
//! /// `ServerChange::Topic { member: "timers", key: "" }` when the time has changed.
//! const TIMERS: Topic<Kitchen> = Topic::new("timers", "notifications/com.example/timer", |kitchen, _, params| {
//!     params.number("secondsLeft", kitchen.seconds_left)
//! });
//!
//! static EXTENSIONS: [Extension<Kitchen>; 1] = [Extension::new("com.example/timer")
//!     .methods(&[ExtensionMethod::new("com.example/timer/get", get)])
//!     .topics(&[TIMERS])];
//! const SERVICE: Service<'static, Kitchen> = Service::new("kitchen", "1.0").extend(&EXTENSIONS);
//! # let _ = SERVICE;
//! ```
//!
//! The parts of the contract:
//!
//! | a part of the extension | is |
//! |---|---|
//! | methods | [`ExtensionMethod`]: served only to clients that declare the extension, unless it says otherwise |
//! | `Mcp-Name` of their requests over HTTP | [`ExtensionMethod::target`] |
//! | `ttlMs` and `cacheScope` of their results | [`ExtensionMethod::caching`] |
//! | its member of `capabilities.extensions` | [`Extension::settings`] |
//! | other members of `capabilities` | [`Extension::capabilities`] |
//! | the declaration of the client | [`RequestContext::client_extension`], [`RequestContext::need_extension`] |
//! | the same in each revision, and in late answers | [`RequestContext::client_supports`], [`Extension::accepts`] |
//! | members of a result, `resultType` | [`RequestContext::result_as`], from each handler; so a `tools/call` is answered with another kind of result |
//! | `_meta` of results and entries | [`RequestContext::set_meta`], [`Tool::meta`](super::Tool::meta) and its like |
//! | `_meta` of the contents of a resource | [`contents_meta`](super::ReadResource::contents_meta) |
//! | results that are kept for later | [`Service::write_detached_result`](super::Service::write_detached_result), [`RequestContext::fail_raw`], [`InputRequest::write`](super::InputRequest::write), [`InputRequest::kept`](super::InputRequest::kept), [`InputResponse::new`](super::InputResponse::new) |
//! | requests of it that wait | [`RequestContext::suspend`], [`RequestToken::to_bits`](crate::server::RequestToken::to_bits) |
//! | members of an entry of `tools/list` | [`Tool::entry`](super::Tool::entry) |
//! | calls of tools that it refuses | [`Extension::check_calls`] |
//! | requests of it that stay open, with notifications | [`RequestContext::notify`], [`RequestContext::end_notifications`], [`RequestContext::later`] |
//! | its notifications, and the filter that selects them | [`Topic`], [`ServerChange::Topic`](crate::server::ServerChange::Topic) |
//!
//! A client needs no tables: [`ClientInfo::extensions`](crate::client::ClientInfo::extensions) declares,
//! [`Request::raw`](crate::client::Request::raw) sends, [`SubscriptionFilter::topics`](crate::client::SubscriptionFilter::topics)
//! selects, and unknown notifications and results of other kinds are events.

use super::context::{
    HandlerError, HandlerFailure, HandlerInput, HandlerResult, HandlerRun, RequestContext, Settled, ToolError,
    begin_message, end_result, refuse,
};
use super::find::Target;
#[cfg(feature = "ask")]
use super::input_request::{InputError, InputRequest, InputResponse};
use super::linked::Route;
use super::requests::{Call, CustomRequest};
use super::{DEFAULT_RESERVE, MessageSource, Service, ToolInfo};
use crate::json::{JsonKind, Raw, Text, object::Object};
use crate::protocol::{ClientCapabilities, Method, code, is_filter_member, meta};
use crate::revision::{Revision, Revisions};
use crate::rpc::{begin, begin_notification};
use crate::search::same;
use crate::server::subscriptions::{write_listen_result, write_subscription_id};
use crate::server::topics::Topics;
use crate::server::{
    Caching, DeclareExtensions, Millis, RequestSlot, RequestToken, RespondError, RpcError, ServerId, respond_failure,
};
use crate::sink::{FullError, MessageHead, Out, whole};

/// An extension of the protocol that a server offers. See the [module](crate::service::extension) for its parts.
#[must_use]
pub struct Extension<S: 'static> {
    /// The identifier.
    pub id: &'static str,
    needs: &'static [&'static str],
    settings: Raw<'static>,
    accepts: fn(Raw<'_>) -> bool,
    capabilities: Option<WriteCapabilities>,
    methods: &'static [ExtensionMethod<S>],
    topics: &'static [Topic<S>],
    check_call: Option<CheckCall>,
}

type CheckCall = fn(&Call<'_>, Option<Raw<'_>>) -> Result<(), RpcError<'static>>;

type WriteCapabilities = fn(&mut Object<'_, '_>, Revision);

impl<S> Extension<S> {
    /// Makes an extension with this identifier, such as `com.example/timer`. Panics if a character of it needs an escape in
    /// JSON; a constant does not compile then.
    pub const fn new(id: &'static str) -> Self {
        assert!(crate::json::write::is_plain(id), "an identifier needs no escapes");
        let settings = Raw::constant("{}");
        let (methods, topics): (&[ExtensionMethod<S>], &[Topic<S>]) = (&[], &[]);
        Extension { id, needs: &[], settings, accepts: |_| true, capabilities: None, methods, topics, check_call: None }
    }

    crate::const_setters! {
        /// Sets the identifiers of other extensions on which it depends: [`Service::extend`](super::Service::extend) refuses a table
        /// without them. Default: none.
        needs(ids: &'static [&'static str]) => needs = ids;
        /// Sets the settings in `capabilities.extensions` (from 2026-07-28 on), a JSON object. Default: `{}`.
        settings(object: Raw<'static>) => settings = object;
        /// Sets the function that says whether the server can work with these settings of a client, a JSON object:
        /// [`RequestContext::client_supports`] is `false` for others. Default: it can with all.
        accepts(accepts: fn(Raw<'_>) -> bool) => accepts = accepts;
        /// Sets the function that writes further members of the server's `capabilities`, in each revision. Default: none.
        capabilities(write: fn(&mut Object<'_, '_>, Revision)) => capabilities = Some(write);
        /// Sets the methods. Default: none.
        methods(methods: &'static [ExtensionMethod<S>]) => methods = methods;
        /// Sets the topics that a [`subscriptions/listen`] can select. Default: none.
        ///
        /// [`subscriptions/listen`]: https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
        topics(topics: &'static [Topic<S>]) => topics = topics;
        /// Sets the function that checks each `tools/call` before its handler runs. It also gets the members that
        /// [`Tool::entry`](super::Tool::entry) has set for the revision. If it returns an error, the handler does not run. Default:
        /// none.
        check_calls(check: fn(&Call<'_>, Option<Raw<'_>>) -> Result<(), RpcError<'static>>) => check_call = Some(check);
    }
}

crate::debug_fields!(impl<S> for Extension<S> { id });

/// The clients to which a method is served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Declared,
    Hidden,
    Open,
}

/// A method of an extension. It is served from 2026-07-28 on, to clients that declare the extension in the capabilities of
/// the request; others get error -32021, which names the extension.
#[must_use]
pub struct ExtensionMethod<S: 'static> {
    name: &'static str,
    run: fn(&mut S, &mut CustomRequest<'_>) -> HandlerResult,
    gate: Gate,
    target: Option<&'static str>,
    reserve: usize,
    caching: Option<Caching>,
    revisions: Option<Revisions>,
}

impl<S> ExtensionMethod<S> {
    /// Makes a method with this name, and the function that handles its requests.
    pub const fn new(name: &'static str, run: fn(&mut S, &mut CustomRequest<'_>) -> HandlerResult) -> Self {
        ExtensionMethod {
            name,
            run,
            gate: Gate::Declared,
            target: None,
            reserve: DEFAULT_RESERVE,
            caching: None,
            revisions: None,
        }
    }

    crate::const_setters! {
        /// Serves the method to all clients.
        open() => gate = Gate::Open;
        /// Answers clients that do not declare the extension with error -32601 instead of -32021.
        hidden() => gate = Gate::Hidden;
        /// Sets the member of `params` that the header `Mcp-Name` repeats over HTTP: a request whose header differs is refused
        /// with error -32020. Default: there is no such header. See
        /// [headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
        target(member: &'static str) => target = Some(member);
        /// Sets the room that is kept for the reply, in bytes. Default: [`DEFAULT_RESERVE`].
        reserve(bytes: usize) => reserve = bytes;
        /// Sets `ttlMs` and `cacheScope` of the results (from 2026-07-28 on). Default: the results have none.
        #[doc(alias = "ttlMs")]
        caching(caching: Caching) => caching = Some(caching);
        /// Sets the revisions in which the method is served. Up to 2025-11-25 it is served to all clients. Default: 2026-07-28
        /// and later.
        revisions(revisions: Revisions) => revisions = Some(revisions);
    }

    fn is_served(&self, revision: Revision) -> bool {
        self.revisions.map_or(revision.is_modern(), |revisions| revisions.contains(revision))
    }
}

crate::debug_fields!(impl<S> for ExtensionMethod<S> { name });

/// The function that writes the members of the params of a notification.
type WriteNews<S> = fn(&S, &str, &mut Object<'_, '_>);

/// A member of the filter of
/// [`subscriptions/listen`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions), and the
/// notification that it selects. In the filter the member is `true`, or an array of strings: the keys. A client that does
/// not declare the extension gets error -32021.
///
/// Publish [`ServerChange::Topic`](crate::server::ServerChange::Topic) when there is something new. The notification is
/// written when there is room for it; changes of one key in between become one notification.
#[must_use]
pub struct Topic<S: 'static> {
    member: &'static str,
    method: &'static str,
    agrees: fn(&S, &str, Option<&str>) -> bool,
    write: WriteNews<S>,
    open: bool,
}

impl<S> Topic<S> {
    /// Makes a topic: the `member` of the filter, the `method` of its notifications, and the function that writes the members
    /// of their params from the state, for a key (empty if the member is `true`). If the function calls
    /// [`Object::fail`], the notification is left out.
    pub const fn new(member: &'static str, method: &'static str, write: fn(&S, &str, &mut Object<'_, '_>)) -> Self {
        Topic { member, method, agrees: |_, _, _| true, write, open: false }
    }

    crate::const_setters! {
        /// Sets the function that says whether a client may listen to a key; it gets the key and the authenticated user. The
        /// acknowledgement leaves out the other keys. Default: it may listen to all.
        agrees(agrees: fn(&S, &str, Option<&str>) -> bool) => agrees = agrees;
        /// Lets all clients select the topic, also those that do not declare the extension.
        open() => open = true;
    }
}

crate::debug_fields!(impl<S> for Topic<S> { member });

impl<S, const N: usize> DeclareExtensions for [Extension<S>; N] {
    fn write_settings(&self, extensions: &mut Object<'_, '_>) {
        self.iter().for_each(|extension| extensions.raw(extension.id, extension.settings));
    }

    fn bit(&self, id: &str) -> u8 {
        let place = self.iter().take(8).position(|extension| extension.id == id);
        place.map_or(0, |place| 1 << place)
    }

    fn accepted(&self, extensions: Raw<'_>) -> u8 {
        let accepts = |extension: &Extension<S>| {
            let settings = extensions.get(extension.id).filter(|settings| settings.kind() == JsonKind::Object);
            settings.is_some_and(extension.accepts)
        };
        self.iter().take(8).rev().fold(0, |bits, extension| bits << 1 | u8::from(accepts(extension)))
    }

    fn write_capabilities(&self, capabilities: &mut Object<'_, '_>, revision: Revision) {
        self.iter().filter_map(|extension| extension.capabilities).for_each(|write| write(capabilities, revision));
    }
}

/// Returns the settings of an extension in the capabilities of a client, if it declares the extension.
fn declared<'a>(capabilities: Option<Raw<'a>>, id: &str) -> Option<Raw<'a>> {
    capabilities?.get("extensions")?.get(id).filter(|settings| settings.kind() == JsonKind::Object)
}

impl<S> Route<S> {
    /// The methods of extensions, and after them those of [`Service::other`].
    pub(crate) const EXTENSIONS: &'static Route<S> =
        &Route { find: find_method, call: call_method, write: |_, _, _, _, _, _| {} };
}

impl<'t, S> Service<'t, S> {
    /// Sets the table of the [extensions](crate::service::extension) that the server offers. It declares each of them in
    /// `capabilities.extensions`, beside those of [`extensions`](Service::extensions).
    ///
    /// # Panics
    /// In a constant: it does not compile. If the table was set before; if two extensions have the same identifier, two methods
    /// the same name or two topics the same member; if one of these is the protocol's own; if an extension
    /// [needs](Extension::needs) another one that is not in the table.
    ///
    /// ```compile_fail,E0080
    /// use mcp_sansio::service::{Extension, Service};
    ///
    /// static EXTENSIONS: [Extension<()>; 1] = [Extension::new("com.example/map").needs(&["com.example/place"])];
    /// const SERVICE: Service<'static, ()> = Service::new("guide", "1.0").extend(&EXTENSIONS);
    /// # let _ = SERVICE;
    /// ```
    pub const fn extend<const N: usize>(mut self, table: &'t [Extension<S>; N]) -> Self {
        assert!(self.extension_table.is_empty(), "the extensions were set before: one table has them all");
        check_table(table);
        self.about = self.about.declare(table);
        self.extension_table = table;
        // Extensions without methods do not link the code for them: 700 bytes of flash.
        let mut rest: &[Extension<S>] = table;
        while let [extension, behind @ ..] = rest {
            if !extension.methods.is_empty() {
                self.routes.others = Some(Route::EXTENSIONS);
            }
            rest = behind;
        }
        self
    }

    /// Returns whether an extension checks calls.
    pub(crate) fn checks_calls(&self) -> bool {
        self.extension_table.iter().any(|extension| extension.check_call.is_some())
    }

    /// Checks the call of a tool, for each extension that does so.
    pub(crate) fn check_call(&self, info: &ToolInfo<'_>, call: &Call<'_>) -> Result<(), RpcError<'static>> {
        let entry = info.entry.filter(|(_, revisions)| revisions.contains(call.revision()));
        let entry = entry.map(|(members, _)| Raw::trusted(members.as_bytes()));
        self.extension_table
            .iter()
            .filter_map(|extension| extension.check_call)
            .try_for_each(|check| check(call, entry))
    }

    /// Returns the methods of all extensions.
    fn methods(&self) -> impl Iterator<Item = (&'t Extension<S>, &'t ExtensionMethod<S>)> {
        self.extension_table
            .iter()
            .flat_map(|extension| extension.methods.iter().map(move |method| (extension, method)))
    }

    fn topics(&self) -> impl Iterator<Item = (&'t Extension<S>, &'t Topic<S>)> {
        self.extension_table.iter().flat_map(|extension| extension.topics.iter().map(move |topic| (extension, topic)))
    }
}

/// Panics if a table of extensions names something twice, or something of the protocol, or lacks what one of them needs.
const fn check_table<S>(table: &[Extension<S>]) {
    let mut rest = table;
    while let [extension, behind @ ..] = rest {
        assert!(!has_id(behind, extension.id), "two extensions have the same identifier");
        let mut needs = extension.needs;
        while let [needed, others @ ..] = needs {
            assert!(has_id(table, needed), "an extension needs another one that is not in the table");
            needs = others;
        }
        let mut methods = extension.methods;
        while let [method, others @ ..] = methods {
            assert!(!Method::has_name(method.name), "an extension has a method of the protocol");
            let again = has_method(others, method.name) || any_has_method(behind, method.name);
            assert!(!again, "two extensions have the same method");
            methods = others;
        }
        let mut topics = extension.topics;
        while let [topic, others @ ..] = topics {
            assert!(!is_filter_member(topic.member), "an extension has a topic of the protocol");
            let again = has_topic(others, topic.member) || any_has_topic(behind, topic.member);
            assert!(!again, "two extensions have the same topic");
            topics = others;
        }
        rest = behind;
    }
}

/// Constant functions that look for a text in a table.
macro_rules! has {
    ($($name:ident($table:ty, $wanted:ident): $entry:ident => $found:expr;)*) => { $(
        const fn $name<S>(table: $table, $wanted: &str) -> bool {
            let mut rest = table;
            while let [$entry, behind @ ..] = rest {
                if $found {
                    return true;
                }
                rest = behind;
            }
            false
        }
    )* };
}
has! {
    has_id(&[Extension<S>], id): extension => same(extension.id, id);
    has_method(&[ExtensionMethod<S>], name): method => same(method.name, name);
    has_topic(&[Topic<S>], member): topic => same(topic.member, member);
    any_has_method(&[Extension<S>], name): extension => has_method(extension.methods, name);
    any_has_topic(&[Extension<S>], member): extension => has_topic(extension.topics, member);
}

/// Finds the method that a request names. [`Target::index`] is 0 for [`Service::other`].
fn find_method<'a, S>(
    service: &Service<'_, S>,
    _: &S,
    origin: &MessageSource<'_>,
    slot: &RequestSlot,
    input: &HandlerInput<'a>,
) -> Result<Target<S>, RpcError<'a>> {
    let index = match input.name {
        Some(name) => service.methods().position(|(_, m)| name.eq_str(m.name) && m.is_served(slot.revision)),
        // The handler runs again.
        None => usize::from(slot.handler).checked_sub(1),
    };
    let found = index.and_then(|index| Some((index, service.methods().nth(index)?)));
    let Some((index, (extension, method))) = found else {
        return match service.other {
            Some(_) => Ok(Target::at(0, DEFAULT_RESERVE)),
            None => Err(RpcError::method_not_found()),
        };
    };
    if slot.revision.is_modern() {
        let target = method.target.and_then(|member| input.params?.get(member)?.text());
        if let (Some(name), Some(target)) = (input.name, target) {
            origin.checks.routing(&name, Some(&target))?;
        }
        let capabilities = input.members.meta.and_then(|meta| meta.get(meta::CLIENT_CAPABILITIES));
        if method.gate != Gate::Open && declared(capabilities, extension.id).is_none() {
            return Err(match method.gate {
                Gate::Hidden => RpcError::method_not_found(),
                _ => RpcError::missing_extension(extension.id),
            });
        }
    }
    Ok(Target::at(index + 1, method.reserve))
}

fn call_method<'a, S>(service: &'a Service<'a, S>, state: &mut S, target: &Target<S>, call: Call<'a>) -> HandlerRun {
    let Some((_, found)) = target.index.checked_sub(1).and_then(|index| service.methods().nth(index)) else {
        return (Route::OTHERS.call)(service, state, target, call);
    };
    call.handling.slot.handler = target.index as u16;
    let method = Text::from_raw(found.name.as_bytes());
    CustomRequest { caching: found.caching, ..CustomRequest::new(call.handling, method) }.run(state, found.run)
}

/// The topics of a service: for a listen that opens, or for notifications that are due, which are of no client.
pub(crate) struct ServiceTopics<'l, 't, S: 'static> {
    pub(crate) service: &'l Service<'t, S>,
    pub(crate) state: &'l S,
    pub(crate) principal: Option<&'l str>,
    /// The capabilities of the client.
    pub(crate) capabilities: Option<Raw<'l>>,
}

impl<S> ServiceTopics<'_, '_, S> {
    fn topic(&self, member: &str) -> Option<&Topic<S>> {
        self.service.topics().map(|(_, topic)| topic).find(|topic| topic.member == member)
    }
}

impl<S> Topics for ServiceTopics<'_, '_, S> {
    fn member(&self, index: usize) -> Option<&'static str> {
        self.service.topics().nth(index).map(|(_, topic)| topic.member)
    }

    fn check(&self, index: usize) -> Result<(), RpcError<'static>> {
        match self.service.topics().nth(index) {
            Some((extension, topic)) if !topic.open && declared(self.capabilities, extension.id).is_none() => {
                Err(RpcError::missing_extension(extension.id))
            }
            _ => Ok(()),
        }
    }

    fn agrees(&self, index: usize, key: &str) -> bool {
        self.service.topics().nth(index).is_some_and(|(_, topic)| (topic.agrees)(self.state, key, self.principal))
    }

    fn method(&self, member: &str) -> Option<&'static str> {
        self.topic(member).map(|topic| topic.method)
    }

    fn write(&self, member: &str, key: &str, params: &mut Object<'_, '_>) {
        if let Some(topic) = self.topic(member) {
            (topic.write)(self.state, key, params);
        }
    }
}

impl<'a> RequestContext<'a> {
    /// Returns the settings with which the client declares an extension in the capabilities of this request; `None` if it
    /// does not. Up to 2025-11-25, and in a late answer, always `None`.
    pub fn client_extension(&self, id: &str) -> Option<Raw<'a>> {
        if !self.slot.revision.is_modern() {
            return None;
        }
        declared(self.input.members.meta.and_then(|meta| meta.get(meta::CLIENT_CAPABILITIES)), id)
    }

    /// Returns whether the client declares an extension of the [table](Service::extend), with settings that the extension
    /// [accepts](Extension::accepts): in the capabilities of this request, or up to 2025-11-25 in those of `initialize`. It
    /// is known in late answers too. `false` for extensions that are not among the first eight of the table.
    pub fn client_supports(&self, id: &str) -> bool {
        self.about.declared.is_some_and(|table| table.bit(id) & self.slot.client.extensions != 0)
    }

    /// Returns the capabilities that the client declared.
    pub const fn client_capabilities(&self) -> ClientCapabilities {
        self.slot.client
    }

    /// Returns an error if the client did not declare an extension in this request.
    ///
    /// # Errors
    /// Returned with `?`: error -32021 in 2026-07-28. Before it, a result with `isError` for a tool, and error -32603 for
    /// other requests.
    pub fn need_extension(&self, id: &'static str) -> Result<(), HandlerError> {
        if self.client_extension(id).is_some() {
            return Ok(());
        }
        if self.slot.revision.is_modern() {
            return Err(RpcError::missing_extension(id).into());
        }
        Err(HandlerError(HandlerFailure::ToolError(ToolError {
            words: ["The client does not support ", id, "", ""],
            code: code::INTERNAL,
            otherwise: "The client does not support an extension",
        })))
    }

    /// Answers with a result of the kind `kind`, its `resultType` from 2026-07-28 on, whose members `members` writes; it may
    /// run more than once. `_meta` is added. A kind other than `complete` belongs to an extension that the client must have
    /// [declared](RequestContext::client_extension).
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    #[doc(alias = "resultType")]
    pub fn result_as(&mut self, kind: &str, members: &mut dyn FnMut(&mut Object<'_, '_>)) -> HandlerResult {
        self.write_answer(MessageHead::Result, &mut |out, about, slot, extra| {
            let mut result = begin_message(out, slot.id.as_bytes());
            if slot.revision.is_modern() {
                result.text("resultType", kind);
            }
            members(&mut result);
            end_result(result, about, slot, extra)
        })
    }

    /// Sends a notification that belongs to this request, for methods whose answer is
    /// [put off](RequestContext::later) while notifications come: `members` writes the members of its params. The id of the request is
    /// added, as `io.modelcontextprotocol/subscriptionId` in their `_meta`. It works in late answers too, which may put the answer off
    /// again.
    ///
    /// # Errors
    /// [`FullError::Now`]: call again when there is room. [`FullError::Never`]: it is larger than the sink.
    pub fn notify(&mut self, method: &str, members: &mut dyn FnMut(&mut Object<'_, '_>)) -> Result<(), FullError> {
        let slot = &*self.slot;
        whole(self.out, MessageHead::Notification, |out| {
            begin_notification(out, method, ",\"params\":");
            let mut params = Object::open(out);
            members(&mut params);
            write_subscription_id(params.key("_meta"), slot.id.as_bytes());
            params.finish().put(b"}")
        })
    }

    /// Answers a request with [notifications](RequestContext::notify): with an empty result that has its id in `_meta`, as the end of
    /// a `subscriptions/listen`.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    pub fn end_notifications(&mut self) -> HandlerResult {
        self.unsettled()?;
        write_listen_result(self.out, self.about, self.slot.id.as_bytes())?;
        self.settle(Settled::Answered)
    }

    /// Answers with a JSON-RPC error that was kept: an object with `code` and `message`.
    ///
    /// # Errors
    /// The handler has answered already, or the error does not fit.
    pub fn fail_raw(&mut self, error: Raw<'_>) -> HandlerResult {
        let kind = error.get("code").and_then(|code| code.i64()).and_then(|code| i32::try_from(code).ok());
        self.write_answer(MessageHead::Error(kind.unwrap_or(code::INTERNAL)), &mut |out, _, slot, _| {
            begin(out, slot.id.as_bytes(), ",\"error\":");
            out.raw(error);
            out.put(b"}")
        })
    }
}

impl<S> Service<'_, S> {
    /// Writes the response to a `tools/call` into any sink, without a request in flight: for extensions that keep results.
    /// `answer` gets a [`Call`] without arguments, which can only answer at once. The response is a whole message with the id
    /// 0; an error that `answer` returns becomes what it would be for a call.
    ///
    /// # Errors
    /// [`RespondError::WrongKind`] if `answer` does not answer at once; [`RespondError::FullNow`] or
    /// [`RespondError::FullNever`] if not even a short error fits.
    pub fn write_detached_result(
        &self,
        revision: Revision,
        now: Millis,
        state: &mut S,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> HandlerResult,
    ) -> Result<(), RespondError> {
        let mut slot = RequestSlot::FREE;
        (slot.method, slot.revision) = (Method::ToolsCall, revision);
        let _ = slot.id.set(b"0");
        let handling = RequestContext::new(&self.about, &mut *out, &mut slot, RequestToken::NONE, ServerId::NONE, now);
        let why = match (Call { handling }).run(state, answer).outcome {
            Ok(Settled::Answered) => return Ok(()),
            Ok(_) => return Err(RespondError::WrongKind),
            Err(why) => why,
        };
        refuse(&self.about, &slot, None, why, out).or_else(|_| respond_failure(out, Some(b"0"), &why.in_short()))?;
        Ok(())
    }
}

/// Questions of extensions, which do not go out by [`RequestContext::ask`].
#[cfg(feature = "ask")]
impl InputRequest<'_> {
    /// Returns whether a client with these capabilities can be asked in this revision.
    #[must_use]
    pub fn can_be_asked(&self, revision: Revision, client: ClientCapabilities) -> bool {
        self.check(revision).is_ok_and(|feature| client.has(feature))
    }

    /// Writes the request as an object with `method` and `params`, as an entry of `inputRequests` has them.
    #[doc(alias = "inputRequests")]
    pub fn write(&self, out: &mut crate::sink::Writer<'_>, revision: Revision, client: ClientCapabilities) {
        let mut request = Object::open(out);
        request.text("method", self.method());
        self.write_params(request.key("params"), revision, client);
        request.close()
    }
}

#[cfg(feature = "ask")]
impl<'a> InputResponse<'a> {
    /// Makes the answer from an entry of `inputResponses`.
    #[must_use]
    pub const fn new(result: Raw<'a>) -> Self {
        InputResponse { result: Ok(result) }
    }

    /// Makes the answer of a client that has answered with an error of this code.
    #[must_use]
    pub const fn refused(code: i32) -> Self {
        InputResponse { result: Err(InputError::Error(code)) }
    }
}

impl CustomRequest<'_> {
    /// Answers as [`RequestContext::result`] does. If the method has [caching](ExtensionMethod::caching), `ttlMs` and
    /// `cacheScope` are added where the object has no valid ones.
    ///
    /// # Errors
    /// As [`RequestContext::result`].
    pub fn result(&mut self, result: Raw<'_>) -> HandlerResult {
        let caching = self.caching;
        self.write_own(result, caching)
    }

    /// Answers as [`RequestContext::result_as`] does, with `ttlMs` and `cacheScope` if the method has
    /// [caching](ExtensionMethod::caching).
    ///
    /// # Errors
    /// As [`RequestContext::result_as`].
    pub fn result_as(&mut self, kind: &str, members: &mut dyn FnMut(&mut Object<'_, '_>)) -> HandlerResult {
        let caching = self.caching.filter(|_| self.slot.revision.is_modern() && kind == "complete");
        self.handling.result_as(kind, &mut |result| {
            if let Some(caching) = caching {
                caching.write(result);
            }
            members(result)
        })
    }
}
