//! Services: constant tables of tools, resources and prompts, with a plain function for each entry.
//!
//! A [`Service`] has references to such tables, and no state of its own. The state is an argument of each handler. So one
//! service serves stdio, HTTP and several threads, and all handlers change the same state.
//!
//! ```
//! use mcp_sansio::server::{RequestSlot, Server};
//! use mcp_sansio::service::{Call, Dispatched, HandlerResult, Service, Tool};
//! use mcp_sansio::sink::{LineSink, SliceStorage};
//!
//! fn count(counter: &mut u32, call: &mut Call<'_>) -> HandlerResult {
//!     *counter += 1;
//!     call.text(format_args!("called {counter} times"))
//! }
//! static TOOLS: [Tool<u32>; 1] = [Tool::new("count", "Counts its calls", count)];
//!
//! let service = Service::new("counter", "1.0").tools(&TOOLS);
//! let mut slots = [RequestSlot::FREE; 4];
//! let (mut counter, mut server) = (0, Server::new(&mut slots));
//! let mut bytes = [0; 1024];
//! let mut out = LineSink::new(SliceStorage::new(&mut bytes));
//! let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! let step = service.dispatch(&mut counter, call, &mut server, &mut out)?;
//! assert_eq!(step, Dispatched::Handled);
//! assert!(core::str::from_utf8(out.pending()).unwrap().contains("called 1 times"));
//! # Ok::<(), mcp_sansio::FullError>(())
//! ```
//!
//! A message goes through these steps ([`Service::dispatch`]):
//!
//! 1. The [`Server`](crate::server::Server) reads and admits it. It answers some requests itself.
//! 2. The service checks the members of the request, and finds the entry of a table that it names.
//! 3. There must be room in the sink for the reply.
//! 4. The handler runs with a context, and writes its reply through the context into the sink.
//!
//! # Handlers
//!
//! A handler has these methods of its context:
//!
//! - **Read arguments**: [`args`](RequestContext::args) into a type, [`arg`](RequestContext::arg) one by one (feature
//!   `serde`), or [`arguments`](RequestContext::arguments) as JSON. The feature `derive` makes schemas from types, and reads
//!   the arguments into them without serde: module `schema`.
//! - **Answer**: [`text`](Call::text), [`json`](Call::json), [`content`](Call::content), [`error`](Call::error); a
//!   [`Resource`] with [`ReadResource::text`] or [`ReadResource::blob`], a [`Prompt`] with [`GetPrompt::user`].
//! - **Notify**: [`progress`](RequestContext::progress), [`log`](RequestContext::log).
//! - **Answer later**: [`later`](RequestContext::later) gives a token for
//!   [`LineServer::answer`](crate::line_server::LineServer::answer) and its like.
//!   [`suspend`](RequestContext::suspend) (feature `ask`) gives a token with which the handler runs again.
//! - **Ask the client** (feature `ask`): [`ask`](RequestContext::ask). The handler runs again from its beginning when the
//!   answers are in.
//!
//! A service whose resources can be subscribed to declares `.feature(ServerCapability::Subscribe)`. When a resource has changed,
//! the loop calls [`publish`](crate::server::Server::publish). A handler can call
//! [`RequestContext::publish`] (feature `alloc`), or leave a mark in the state for the loop:
//!
//! ```
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::protocol::ServerCapability;
//! use mcp_sansio::service::{Call, HandlerResult, InputRequest, ReadResource, Resource, Service, Tool};
//!
//! struct Counter {
//!     count: u32,
//!     changed: bool, // the loop publishes `ServerChange::Resource("counter://count")` and resets this
//! }
//!
//! const SURE: Raw<'static> = Raw::constant(
//!     r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#,
//! );
//!
//! fn reset(counter: &mut Counter, call: &mut Call<'_>) -> HandlerResult {
//!     let Some(answer) = call.answer("reset") else {
//!         return call.ask(&[InputRequest::elicit("reset", "Begin again from 0?", SURE)], b"");
//!     };
//!     // Not accepted: declined, cancelled, or the client is gone.
//!     if !answer.accepted() || answer.value("sure").and_then(|sure| sure.bool()) != Some(true) {
//!         return call.text("The counter was not changed");
//!     }
//!     (counter.count, counter.changed) = (0, true);
//!     call.text("It is 0 now")
//! }
//!
//! fn read(counter: &mut Counter, read: &mut ReadResource<'_>) -> HandlerResult {
//!     read.text(format_args!("{}", counter.count))
//! }
//!
//! static TOOLS: [Tool<Counter>; 1] = [Tool::new("reset", "Sets the counter to 0, if the user agrees", reset)];
//! static RESOURCES: [Resource<Counter>; 1] = [Resource::new("counter://count", "count", read).mime("text/plain")];
//! let service = Service::new("counter", "1.0").tools(&TOOLS).resources(&RESOURCES).feature(ServerCapability::Subscribe);
//! # let _ = service;
//! ```

#[cfg(feature = "ask")]
mod ask;
mod batch;
mod caller;
mod checked;
mod contain;
mod context;
mod definition;
mod dynamic;
mod dynamic_list;
#[cfg(feature = "extensions")]
pub mod extension;
mod find;
#[cfg(feature = "ask")]
mod input_request;
mod invoke;
mod late;
mod layer;
mod linked;
mod list;
mod requests;
mod router;
#[cfg(feature = "derive")]
pub mod schema;
mod scratch;
#[cfg(feature = "windows")]
mod source;
mod stream;
mod template;

pub use crate::content::{
    Annotations, AnswerText, ContentBlock, PromptMessage, ResourceContents, ResourceLink, Role, TextValue,
};
pub use crate::server::around::{ResultMeta, SentMessage};
pub use caller::{Caller, MessageSource, Visibility};
pub use checked::DefinitionError;
pub use contain::CatchPanic;
pub use context::RequestContext;
pub use definition::{
    DEFAULT_RESERVE, ListEntry, Prompt, PromptArgument, PromptInfo, Resource, ResourceInfo, ResourceTemplate, Tool,
    ToolAnnotations, ToolInfo, is_tool_name,
};
pub use dynamic::DynamicList;
#[cfg(feature = "extensions")]
pub use extension::{Extension, ExtensionMethod, Topic};
#[cfg(feature = "ask")]
pub use input_request::{CreateMessage, InputError, InputRequest, InputResponse};
pub use late::{Late, LateRequest};
pub use layer::{Layer, LayerRequest, Outcome};
pub use requests::{
    Call, Complete, CustomRequest, GetPrompt, HandlerError, HandlerResult, ReadResource, Receipt, SourceError,
};
pub use router::{Dispatched, NotificationContext};
#[cfg(all(feature = "ask", feature = "derive"))]
pub use schema::Form;
#[cfg(feature = "derive")]
pub use schema::{Argument, Arguments, Output, OutputValue};

#[cfg(all(feature = "ask", feature = "derive"))]
pub use mcp_sansio_derive::Form;
/// The macros of `mcp-sansio-derive`; see [`schema`].
#[cfg(feature = "derive")]
pub use mcp_sansio_derive::{Arguments, Output, prompt, resource, tool};

use core::num::NonZeroUsize;

use self::dynamic::Dynamic;
use self::linked::{Route, Routes};
use crate::json::Raw;
use crate::protocol::ServerCapability;
use crate::revision::Revisions;
use crate::server::{Caching, Icon, RequestToken, ServerInfo};

/// A server without its connection: the tools, resources and prompts, and the functions behind them.
///
/// Tables are lent for `'t`, and do not change. Entries that come and go while the service is served, or are not known when
/// the program is compiled, are a [`DynamicList`]. A method that takes a table or a list declares the capability.
///
/// ```
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
///
/// fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     call.text("hello")
/// }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
/// const SERVICE: Service<'static, ()> =
///     Service::new("greeter", "1.0").title("Greeter").instructions("Use it to greet.").tools(&TOOLS);
/// # let _ = SERVICE;
/// ```
///
/// Your program has [duties](crate::duties::server) that no library can keep for it.
#[must_use]
pub struct Service<'t, S: 'static> {
    pub(crate) about: ServerInfo<'t>,
    pub(crate) tools: &'t [Tool<S>],
    pub(crate) resources: &'t [Resource<S>],
    pub(crate) templates: &'t [ResourceTemplate<S>],
    pub(crate) prompts: &'t [Prompt<S>],
    pub(crate) routes: Routes<S>,
    /// The code for entries that differ by caller, and for layers.
    pub(crate) hooks: Option<&'static router::Hooks<S>>,
    pub(crate) layers: &'t [&'t dyn Layer<S>],
    /// The parts that are not in tables.
    pub(crate) dynamic: Dynamic<'t, S>,
    /// Finds what is not in the table of resources, if there can be such a thing.
    pub(crate) templated: Option<find::Matching<S>>,
    /// The extensions that the server offers.
    #[cfg(feature = "extensions")]
    pub(crate) extension_table: &'t [Extension<S>],
    pub(crate) page_size: NonZeroUsize,
    pub(crate) other: Option<fn(&mut S, &mut CustomRequest<'_>) -> HandlerResult>,
    pub(crate) notified: Option<fn(&mut S, &NotificationContext<'_>)>,
    pub(crate) cancelled: Option<fn(&mut S, RequestToken)>,
}

impl<'t, S> Service<'t, S> {
    /// Makes a service without tools, resources and prompts, with the `name` and `version` of its
    /// [`Implementation`](https://modelcontextprotocol.io/specification/2025-11-25/schema#implementation), in all revisions.
    pub const fn new(name: &'t str, version: &'t str) -> Self {
        Service {
            about: ServerInfo::new(name, version),
            tools: &[],
            resources: &[],
            templates: &[],
            prompts: &[],
            routes: Routes::NONE,
            hooks: None,
            layers: &[],
            dynamic: Dynamic::NONE,
            templated: None,
            #[cfg(feature = "extensions")]
            extension_table: &[],
            page_size: NonZeroUsize::MAX,
            other: None,
            notified: None,
            cancelled: None,
        }
    }

    /// Makes a service that describes itself with `about`, without tables: for a program that passes all requests on, with a
    /// [`Layer`]. Clients may subscribe to any URI.
    pub const fn described(about: ServerInfo<'t>) -> Self {
        let mut service = Service::new("", "");
        service.about = about;
        service.templated = Some(|_, _, _, _| Some(find::Target::at(0, 0)));
        service
    }

    /// Sets the [tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools). Panics if two of them have
    /// the same name; a constant does not compile then. If the service is not a constant, all names are compared each time
    /// it is made.
    pub const fn tools(self, tools: &'t [Tool<S>]) -> Self {
        assert!(definition::unique_tools(tools), "two tools have the same name");
        let service = self.set_tools(tools);
        if definition::any_tool_hides(tools) { service.differs_by_caller() } else { service }
    }

    const fn set_tools(mut self, tools: &'t [Tool<S>]) -> Self {
        self.tools = tools;
        self.feature(ServerCapability::Tools)
    }

    /// Sets the [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources). Panics if two of
    /// them have the same URI; a constant does not compile then.
    pub const fn resources(self, resources: &'t [Resource<S>]) -> Self {
        assert!(definition::unique_resources(resources), "two resources have the same URI");
        let service = self.set_resources(resources);
        if definition::any_resource_hides(resources) { service.differs_by_caller() } else { service }
    }

    const fn set_resources(mut self, resources: &'t [Resource<S>]) -> Self {
        self.resources = resources;
        self.feature(ServerCapability::Resources)
    }

    /// Sets the
    /// [resource templates](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-templates).
    /// If one of them completes its variables, it declares `completions`. Panics if two templates are the same; a constant
    /// does not compile then.
    pub const fn templates(self, templates: &'t [ResourceTemplate<S>]) -> Self {
        assert!(definition::unique_templates(templates), "two templates are the same");
        let service = self.set_templates(templates);
        if definition::any_template_hides(templates) { service.differs_by_caller() } else { service }
    }

    const fn set_templates(mut self, templates: &'t [ResourceTemplate<S>]) -> Self {
        self.templates = templates;
        if self.templated.is_none() {
            self.templated = Some(find::matching);
        }
        self.routes.completions = or(self.routes.completions, Route::COMPLETIONS);
        let completes = definition::any_template_completes(templates);
        let service = self.feature(ServerCapability::Resources);
        if completes { service.feature(ServerCapability::Completions) } else { service }
    }

    /// Sets the [prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts). If one of them completes
    /// its arguments, it declares `completions`. Panics if two of them have the same name; a constant does not compile then.
    pub const fn prompts(self, prompts: &'t [Prompt<S>]) -> Self {
        assert!(definition::unique_prompts(prompts), "two prompts have the same name");
        let service = self.set_prompts(prompts);
        if definition::any_prompt_hides(prompts) { service.differs_by_caller() } else { service }
    }

    const fn set_prompts(mut self, prompts: &'t [Prompt<S>]) -> Self {
        self.prompts = prompts;
        self.routes.completions = or(self.routes.completions, Route::COMPLETIONS);
        let completes = definition::any_prompt_completes(prompts);
        let service = self.feature(ServerCapability::Prompts);
        if completes { service.feature(ServerCapability::Completions) } else { service }
    }

    /// Declares a [capability](ServerCapability): that lists change, that resources can be subscribed to, that there are log
    /// messages. A part of a capability, like [`ServerCapability::ToolsChanged`], declares also the whole.
    // In line: where the service is no constant, only the routes of this capability are linked. 11 KB of a C program's flash.
    #[doc(alias = "capabilities")]
    #[inline(always)]
    pub const fn feature(mut self, feature: ServerCapability) -> Self {
        self.about = self.about.feature(feature);
        match feature.whole() {
            ServerCapability::Tools => self.routes.tools = or(self.routes.tools, Route::TOOLS),
            ServerCapability::Resources => self.routes.resources = or(self.routes.resources, Route::RESOURCES),
            ServerCapability::Prompts => self.routes.prompts = or(self.routes.prompts, Route::PROMPTS),
            ServerCapability::Completions => {
                self.routes.completions = or(self.routes.completions, Route::COMPLETIONS);
            }
            _ => {}
        }
        self
    }

    /// Links what entries that differ by caller need.
    const fn differs_by_caller(mut self) -> Self {
        self.dynamic.lists = Some(dynamic::DynamicLists::LINKED);
        self.with_hooks()
    }

    /// Links the code that calls hooks.
    const fn with_hooks(mut self) -> Self {
        if self.hooks.is_none() {
            self.hooks = Some(router::Hooks::BY_CALLER);
        }
        self
    }

    /// Sets the number of entries on a page of a list. Default: all, because many clients do not ask for a second page. See
    /// [pagination](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination).
    pub const fn page_size(mut self, entries: usize) -> Self {
        // Without a branch that panics, where the value is not known when the program is compiled.
        self.page_size = match NonZeroUsize::new(entries) {
            Some(entries) => entries,
            None => NonZeroUsize::MIN,
        };
        self
    }

    /// Sets the handler of requests that the protocol does not know. Default: they are refused with error -32601.
    pub const fn other(mut self, other: fn(&mut S, &mut CustomRequest<'_>) -> HandlerResult) -> Self {
        self.other = Some(other);
        if self.routes.others.is_none() {
            self.routes.others = Some(Route::OTHERS);
        }
        self
    }

    crate::const_setters! {
        /// Sets the function that is called with each notification except `notifications/cancelled`.
        on_notification(notified: fn(&mut S, &NotificationContext<'_>)) => notified = Some(notified);
        /// Sets the function that is called when a request is cancelled whose answer was put off. See
        /// [cancellation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation).
        on_cancel(cancelled: fn(&mut S, RequestToken)) => cancelled = Some(cancelled);
        /// Gives the questions of handlers up to 2025-11-25, which are requests of the server, the
        /// [trace context](RequestContext::trace_context) of the request that asks them. In 2026-07-28 questions are a result of
        /// that request and need none. Default: questions have no trace context.
        #[cfg(feature = "ask")]
        trace_questions() => about.trace_questions = Some(ask::write_trace_context);
    }

    /// Returns the description of the server.
    pub const fn about(&self) -> &ServerInfo<'t> {
        &self.about
    }
}

/// Makes setters that are those of [`ServerInfo`].
macro_rules! describes {
    ($($(#[$doc:meta])* $setter:ident($($value:ident: $type:ty)?);)*) => {
        impl<'t, S> Service<'t, S> { $(
            $(#[$doc])*
            pub const fn $setter(mut self, $($value: $type)?) -> Self {
                self.about = self.about.$setter($($value)?);
                self
            }
        )* }
    };
}
describes! {
    /// Sets `title`, a name for people; written from 2025-06-18 on.
    title(title: &'t str);
    /// Sets `description`, in one sentence; written from 2025-11-25 on.
    description(description: &'t str);
    /// Sets `websiteUrl`; written from 2025-11-25 on.
    #[doc(alias = "websiteUrl")]
    website(url: &'t str);
    /// Sets `icons`; written from 2025-11-25 on.
    icons(icons: &'t [Icon<'t>]);
    /// Sets `instructions`: how a model should use the server.
    instructions(text: &'t str);
    /// Sets `capabilities.experimental`, a JSON object.
    experimental(object: Raw<'t>);
    /// Sets `capabilities.extensions`, a JSON object (from 2025-11-25 on). The feature `extensions` has tables of extensions, which
    /// declare themselves (from 2026-07-28 on).
    extensions(object: Raw<'t>);
    /// Sets `ttlMs` and `cacheScope` of lists, resources and the description of the server
    /// ([caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching), 2026-07-28). Default:
    /// [`Caching::NONE`].
    #[doc(alias = "ttlMs")]
    caching(caching: Caching);
    /// Sets the protocol revisions that are served. Default: all.
    revisions(revisions: Revisions);
    /// Leaves `io.modelcontextprotocol/serverInfo` out of the results of 2026-07-28. The specification says that it SHOULD be
    /// there.
    without_server_info();
}

/// Returns the route that was set before, which may be one of [`Dynamic`], or this one.
const fn or<S>(before: Option<&'static Route<S>>, route: &'static Route<S>) -> Option<&'static Route<S>> {
    if before.is_some() { before } else { Some(route) }
}

crate::debug_fields!(impl<S> for Service<'_, S> { about });

/// Threads share services, and servers move between threads.
#[cfg(test)]
mod tests {
    #[test]
    fn sharing() {
        const fn shared<T: Sync>() {}
        const fn moved<T: Send>() {}
        shared::<super::Service<'static, std::cell::Cell<u8>>>();
        moved::<crate::server::Server<'static>>();
    }
    extern crate std;
}
