//! Services: constant tables of tools, resources and prompts, each with a plain function behind it.
//!
//! A [`Service`] is a value of references into such tables; it has no state of its own. The state is the argument of
//! every handler, so one service serves stdio, HTTP and several threads, and handlers share what they change.
//!
//! ```
//! use mcp_sansio::server::Server;
//! use mcp_sansio::service::{Call, Outcome, Service, Step, Tool};
//! use mcp_sansio::sink::{Lines, Slice};
//!
//! fn count(counter: &mut u32, call: &mut Call<'_>) -> Outcome {
//!     *counter += 1;
//!     call.text(format_args!("called {counter} times"))
//! }
//! static TOOLS: [Tool<u32>; 1] = [Tool::new("count", "Counts its calls", count)];
//!
//! let service = Service::new("counter", "1.0").tools(&TOOLS);
//! let (mut counter, mut server) = (0, Server::<4>::new());
//! let mut bytes = [0; 1024];
//! let mut out = Lines::new(Slice::new(&mut bytes));
//! let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! let step = service.dispatch(&mut counter, call, &mut server, &mut out)?;
//! assert_eq!(step, Step::Handled);
//! assert!(core::str::from_utf8(out.pending()).unwrap().contains("called 1 times"));
//! # Ok::<(), mcp_sansio::Full>(())
//! ```

//!
//! # What handlers do
//!
//! - **Read arguments**: [`args`](Handling::args) into a type, [`arg`](Handling::arg) one by one (feature `serde`), or
//!   [`arguments`](Handling::arguments) as JSON.
//! - **Answer**: [`text`](Call::text), [`json`](Call::json), [`content`](Call::content), [`error`](Call::error); a
//!   [`Resource`] with [`Read::text`] or [`Read::blob`], a [`Prompt`] with [`Get::user`].
//! - **Tell**: [`progress`](Handling::progress), [`log`](Handling::log).
//! - **Answer later**: [`later`](Handling::later) gives a token, with which the request is answered by
//!   [`Session::answer`](crate::session::Session::answer) (a tool), [`answer_read`](crate::session::Session::answer_read) (a
//!   resource) and so on, or what the adapters have for that. [`suspend`](Handling::suspend) (feature `ask`) gives one with
//!   which the handler is run again.
//! - **Ask** (feature `ask`): the handler is run again from its beginning when the answers are in.
//!
//! Subscribers of a resource hear of changes if the service declares it, `.feature(Feature::Subscribe)`, and something calls
//! [`publish`](crate::session::Session::publish) when there is one: the loop, not a handler, which may leave a mark in the state.
//!
//! ```
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::protocol::Feature;
//! use mcp_sansio::service::{Call, Outcome, Question, Read, Resource, Service, Tool};
//!
//! struct Counter {
//!     count: u32,
//!     changed: bool, // the loop publishes `Change::Resource("counter://count")` and takes this back
//! }
//!
//! const SURE: Raw<'static> = Raw::constant(
//!     r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#,
//! );
//!
//! fn reset(counter: &mut Counter, call: &mut Call<'_>) -> Outcome {
//!     let Some(answer) = call.answer("reset") else {
//!         return call.ask(&[Question::elicit("reset", "Begin again from 0?", SURE)], b"");
//!     };
//!     // Not accepted: declined, cancelled, or the client is gone.
//!     if !answer.accepted() || answer.value("sure").and_then(|sure| sure.bool()) != Some(true) {
//!         return call.text("It was left as it is");
//!     }
//!     (counter.count, counter.changed) = (0, true);
//!     call.text("It is 0 now")
//! }
//!
//! fn read(counter: &mut Counter, read: &mut Read<'_>) -> Outcome {
//!     read.text(format_args!("{}", counter.count))
//! }
//!
//! static TOOLS: [Tool<Counter>; 1] = [Tool::new("reset", "Sets the counter to 0, if the user agrees", reset)];
//! static RESOURCES: [Resource<Counter>; 1] = [Resource::new("counter://count", "count", read).mime("text/plain")];
//! let service = Service::new("counter", "1.0").tools(&TOOLS).resources(&RESOURCES).feature(Feature::Subscribe);
//! # let _ = service;
//! ```

mod call;
mod content;
mod define;
mod dispatch;
mod find;
mod handling;
mod kind;
mod list;
mod parts;
mod question;
mod run;
mod stream;
mod template;
#[cfg(feature = "alloc")]
mod toolbox;

pub use call::{Call, Complete, Done, Get, Other, Outcome, Read, Refusal};
pub use content::{Annotations, Content, Contents, Link, Message, Role, Shown, Words};
pub use define::{
    Argument, Broken, DEFAULT_RESERVE, Hints, Prompt, Resource, Source, Template, Tool, ToolInfo, is_tool_name,
};
pub use dispatch::{Notified, Origin, Step};
pub use handling::Handling;
pub use question::{Answer, NoAnswer, Question, Sampling};
pub use stream::Pump;
#[cfg(feature = "alloc")]
pub use toolbox::{OwnedTool, OwnedTools};

use self::kind::Kinds;
use crate::json::{Raw, Text};
use crate::protocol::Feature;
use crate::revision::Revisions;
use crate::server::{About, Caching, Icon, Token};

/// Tools that are not a constant table: made at run time, forwarded to another server.
///
/// Names must be unique and, while a list is being sent, stay in order. An entry whose name the protocol does not allow, or
/// whose schemas or `_meta` are not the JSON that they must be, is left out of lists and cannot be called.
pub trait Toolbox<S> {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is told of the tool at `index`.
    fn info(&self, index: usize) -> Option<ToolInfo<'_>>;

    /// Runs the tool at `index`.
    fn run(&self, index: usize, state: &mut S, call: &mut Call<'_>) -> Outcome;
}

/// A toolbox, and what says which of its tools can be listed: a program without is linked without.
pub(crate) struct Lent<'t, S> {
    pub(crate) lent: &'t (dyn Toolbox<S> + Sync),
    pub(crate) is_listed: fn(&ToolInfo<'_>) -> bool,
}

impl<S> Clone for Lent<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Lent<'_, S> {}

/// What a server offers.
///
/// Tables lend themselves for `'t`; a service is cheap to make, so tables that change are given to a new one. Handing
/// over a table declares its capability.
pub struct Service<'t, S: 'static> {
    pub(crate) about: About<'t>,
    pub(crate) tools: &'t [Tool<S>],
    pub(crate) toolbox: Option<Lent<'t, S>>,
    pub(crate) resources: &'t [Resource<S>],
    pub(crate) templates: &'t [Template<S>],
    pub(crate) prompts: &'t [Prompt<S>],
    pub(crate) kinds: Kinds<S>,
    /// Which template a URI matches, if there are templates.
    pub(crate) templated: Option<find::Matching<S>>,
    pub(crate) page_size: usize,
    pub(crate) other: Option<fn(&mut S, &mut Other<'_>) -> Outcome>,
    pub(crate) notified: Option<fn(&mut S, &Notified<'_>)>,
    pub(crate) cancelled: Option<fn(&mut S, Token)>,
    pub(crate) reasons: Option<fn(&mut S, Token, &Text<'_>)>,
}

impl<'t, S> Service<'t, S> {
    /// A service of that name and version, which offers nothing yet, in all revisions.
    #[must_use]
    pub const fn new(name: &'t str, version: &'t str) -> Self {
        Service {
            about: About::new(name, version),
            tools: &[],
            toolbox: None,
            resources: &[],
            templates: &[],
            prompts: &[],
            kinds: Kinds::NONE,
            templated: None,
            page_size: usize::MAX,
            other: None,
            notified: None,
            cancelled: None,
            reasons: None,
        }
    }

    /// Tools. Panics if two have the same name; a constant does not compile then. Where a service is no constant, each name
    /// is compared with each other one whenever it is made.
    #[must_use]
    pub const fn tools(self, tools: &'t [Tool<S>]) -> Self {
        assert!(define::unique_tools(tools), "two tools have the same name");
        Service { tools, ..self.feature(Feature::Tools) }
    }

    /// More tools, made at run time.
    #[must_use]
    pub const fn toolbox(self, toolbox: &'t (dyn Toolbox<S> + Sync)) -> Self {
        let toolbox = Lent { lent: toolbox, is_listed: |info| info.is_sound() };
        Service { toolbox: Some(toolbox), ..self.feature(Feature::Tools) }
    }

    /// Resources. Panics if two have the same URI; a constant does not compile then.
    #[must_use]
    pub const fn resources(self, resources: &'t [Resource<S>]) -> Self {
        assert!(define::unique_resources(resources), "two resources have the same URI");
        Service { resources, ..self.feature(Feature::Resources) }
    }

    /// Families of resources. If any of them completes its variables, completion is declared. Panics if two have the same
    /// template; a constant does not compile then.
    #[must_use]
    pub const fn templates(self, templates: &'t [Template<S>]) -> Self {
        assert!(define::unique_templates(templates), "two templates are the same");
        let completes = any_template_completes(templates);
        let service = self.feature(Feature::Resources);
        let kinds = service.kinds.with_completions();
        let service = Service { templates, templated: Some(find::matching), kinds, ..service };
        if completes { service.feature(Feature::Completions) } else { service }
    }

    /// Prompts. If any of them completes its arguments, completion is declared. Panics if two have the same name; a constant
    /// does not compile then.
    #[must_use]
    pub const fn prompts(self, prompts: &'t [Prompt<S>]) -> Self {
        assert!(define::unique_prompts(prompts), "two prompts have the same name");
        let completes = any_prompt_completes(prompts);
        let service = self.feature(Feature::Prompts);
        let service = Service { prompts, kinds: service.kinds.with_completions(), ..service };
        if completes { service.feature(Feature::Completions) } else { service }
    }

    /// One more capability: that lists change, that resources can be subscribed to, that there are log messages. A part of
    /// a capability, like [`Feature::ToolsChanged`], declares the whole with it.
    #[must_use]
    pub const fn feature(mut self, feature: Feature) -> Self {
        self.about = self.about.feature(feature);
        self.kinds = match feature.whole() {
            Feature::Resources => self.kinds.with_resources(),
            Feature::Prompts => self.kinds.with_prompts(),
            Feature::Completions => self.kinds.with_completions(),
            _ => self.kinds,
        };
        self
    }

    /// Lists in pages of so many. Without, they come whole: many clients do not ask for a second page.
    #[must_use]
    pub const fn page_size(mut self, entries: usize) -> Self {
        self.page_size = if entries == 0 { 1 } else { entries };
        self
    }

    /// What handles requests that the protocol does not know. Without, they are refused.
    #[must_use]
    pub const fn other(mut self, other: fn(&mut S, &mut Other<'_>) -> Outcome) -> Self {
        self.other = Some(other);
        self.kinds = self.kinds.with_others();
        self
    }

    /// What hears notifications, but for `notifications/cancelled`.
    #[must_use]
    pub const fn on_notification(mut self, notified: fn(&mut S, &Notified<'_>)) -> Self {
        self.notified = Some(notified);
        self
    }

    /// What hears that the answer of a request that was put off is not wanted any more.
    #[must_use]
    pub const fn on_cancel(mut self, cancelled: fn(&mut S, Token)) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// What hears why a client does not want an answer any more: the `reason` of a `notifications/cancelled`, where it gives
    /// one. It is called before [`on_cancel`](Service::on_cancel), for any request in flight, and is meant for logs: the text
    /// is the client's, of any length that a message may have.
    #[must_use]
    pub const fn on_cancel_reason(mut self, reasons: fn(&mut S, Token, &Text<'_>)) -> Self {
        self.reasons = Some(reasons);
        self
    }

    /// What the server says of itself.
    #[must_use]
    pub const fn about(&self) -> &About<'t> {
        &self.about
    }

    /// A name for people.
    #[must_use]
    pub const fn title(mut self, title: &'t str) -> Self {
        self.about = self.about.title(title);
        self
    }

    /// One sentence on what it is.
    #[must_use]
    pub const fn description(mut self, description: &'t str) -> Self {
        self.about = self.about.description(description);
        self
    }

    /// Where to read more.
    #[must_use]
    pub const fn website(mut self, url: &'t str) -> Self {
        self.about = self.about.website(url);
        self
    }

    /// Icons.
    #[must_use]
    pub const fn icons(mut self, icons: &'t [Icon<'t>]) -> Self {
        self.about = self.about.icons(icons);
        self
    }

    /// How a model should use it.
    #[must_use]
    pub const fn instructions(mut self, text: &'t str) -> Self {
        self.about = self.about.instructions(text);
        self
    }

    /// The `experimental` capabilities, an object as it stands.
    #[must_use]
    pub const fn experimental(mut self, object: Raw<'t>) -> Self {
        self.about = self.about.experimental(object);
        self
    }

    /// The `extensions` capability, an object as it stands (2026-07-28).
    #[must_use]
    pub const fn extensions(mut self, object: Raw<'t>) -> Self {
        self.about = self.about.extensions(object);
        self
    }

    /// How long clients may keep lists, resources and the server's description (2026-07-28).
    #[must_use]
    pub const fn caching(mut self, caching: Caching) -> Self {
        self.about = self.about.caching(caching);
        self
    }

    /// The revisions it serves.
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.about = self.about.revisions(revisions);
        self
    }

    /// Leaves name and version out of the results of 2026-07-28, where they SHOULD be.
    #[must_use]
    pub const fn unsigned(mut self) -> Self {
        self.about = self.about.unsigned();
        self
    }
}

impl<S> core::fmt::Debug for Service<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Service").field("about", &self.about).finish_non_exhaustive()
    }
}

#[allow(clippy::indexing_slicing, reason = "bounded by the loop; a const fn has no iterators")]
const fn any_template_completes<S>(templates: &[Template<S>]) -> bool {
    let mut i = 0;
    while i < templates.len() {
        if templates[i].complete.is_some() {
            return true;
        }
        i += 1;
    }
    false
}

#[allow(clippy::indexing_slicing, reason = "bounded by the loop; a const fn has no iterators")]
const fn any_prompt_completes<S>(prompts: &[Prompt<S>]) -> bool {
    let mut i = 0;
    while i < prompts.len() {
        if prompts[i].complete.is_some() {
            return true;
        }
        i += 1;
    }
    false
}

/// Services are shared by threads; servers move between them.
#[cfg(test)]
mod tests {
    #[test]
    fn sharing() {
        const fn shared<T: Sync>() {}
        const fn moved<T: Send>() {}
        shared::<super::Service<'static, std::cell::Cell<u8>>>();
        moved::<crate::server::Server<'static, 4>>();
    }
    extern crate std;
}
