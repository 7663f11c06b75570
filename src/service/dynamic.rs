//! Tools, resources, templates and prompts that are not in constant tables: listed and found at run time, in the state of the
//! program, in a database, behind a lock, at another server.
//!
//! A program without them is linked without this code: the builder methods set other [routes](super::linked).

use super::context::HandlerInput;
use super::find::{Target, UNKNOWN_PROMPT, UNKNOWN_TOOL, find_read, find_tool, matching};
use super::linked::{Route, call_tool, complete, decode_uri};
use super::requests::{Call, Complete, GetPrompt, HandlerResult};
use super::{Caller, ListEntry, MessageSource, Prompt, Resource, ResourceTemplate, Service, Tool, template};
use crate::json::Text;
use crate::protocol::ServerCapability;
use crate::server::{ListPage, RequestSlot, RpcError, words};
use crate::sink::Writer;
#[cfg(feature = "windows")]
use crate::{server::StreamedReply, sink::Out};

/// A list whose entries are not in a constant table: made at run time, in a database, or at another server. `E` is the kind of the
/// entries: [`Tool`], [`Resource`], [`ResourceTemplate`] or [`Prompt`]. For [`Service::dynamic_tools`],
/// [`dynamic_resources`](Service::dynamic_resources), [`dynamic_templates`](Service::dynamic_templates) and
/// [`dynamic_prompts`](Service::dynamic_prompts). `mcp_sansio_host::OwnedTools` is a list of tools that owns them.
///
/// A description is lent to a closure, so it may be made on the spot, or come from behind a lock. These entries are left out of
/// lists, and cannot be used:
///
/// - a tool whose name is not allowed, or whose schemas or `_meta` are not JSON of the right type,
/// - a resource whose URI has no scheme,
/// - a template without a variable, or with braces that are not balanced,
/// - a prompt without a name.
///
/// Names and URIs must be unique; an entry of the constant table hides one of the same name. For a URI, the table of resources is
/// asked first, then this list of resources, then the table of templates, then this list of templates.
///
/// The list may change at any time. When it does, publish [`ServerChange::Tools`](crate::server::ServerChange::Tools) or its like,
/// and declare [`ServerCapability::ToolsChanged`] or its like: clients list again. A client that was at its second page then gets a
/// page of the new list, empty if the list has become shorter than that.
///
/// ```
/// use mcp_sansio::service::{Call, Caller, DynamicList, HandlerResult, Service, Tool, ToolInfo};
///
/// struct Robot {
///     moves: Vec<String>,
/// }
/// struct Moves;
///
/// impl DynamicList<Tool<Robot>> for Moves {
///     fn list(&self, robot: &Robot, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
///         let _ = robot.moves.iter().skip(from).all(|name| with(&ToolInfo::new(name, "Moves the robot")));
///     }
///
///     fn run(&self, key: usize, robot: &mut Robot, call: &mut Call<'_>) -> HandlerResult {
///         call.text(format_args!("done: {}", robot.moves[key]))
///     }
/// }
/// let service = Service::new("robot", "1.0").dynamic_tools(&Moves);
/// # let _: Service<'_, Robot> = service;
/// ```
///
/// ```
/// use mcp_sansio::service::{Caller, DynamicList, HandlerResult, ReadResource, Resource, ResourceInfo, Service};
///
/// struct Note {
///     uri: String,
///     title: String,
///     body: String,
/// }
/// struct Notes;
///
/// impl DynamicList<Resource<Vec<Note>>> for Notes {
///     fn list(&self, notes: &Vec<Note>, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
///         let _ = notes.iter().skip(from).all(|note| with(&ResourceInfo::new(&note.uri, &note.title)));
///     }
///
///     fn run(&self, key: usize, notes: &mut Vec<Note>, read: &mut ReadResource<'_>) -> HandlerResult {
///         read.mime = Some("text/plain");
///         read.text(&notes[key].body)
///     }
/// }
/// let service = Service::new("notes", "1.0").dynamic_resources(&Notes);
/// # let _: Service<'_, Vec<Note>> = service;
/// ```
pub trait DynamicList<E: ListEntry> {
    /// Passes the descriptions to `with`, in order, beginning with the one at index `from`, until `with` returns `false`.
    ///
    /// For a list that changes, `from` comes from the cursor of a client, who can choose it: it may be far beyond the end, where
    /// there is nothing to pass. `iter().skip(from)` does that, and `[from..]` panics.
    ///
    /// It is called once for a list that fits into the sink; in [windows](Service::pump) once for each window. An entry whose
    /// description is larger than an empty window is left out.
    fn list(&self, state: &E::State, caller: &Caller<'_>, from: usize, with: &mut dyn FnMut(&E::Info<'_>) -> bool);

    /// Finds the entry that has this name or URI, or the template that this URI matches, and passes its key and its description to
    /// `with`. The key is any number that [`run`](DynamicList::run) understands. Also a client that subscribes to a resource makes
    /// the service look for it. [`Text::plain`] is the name or URI as `&str`, if it has no escapes.
    ///
    /// The default takes the first such entry of the list; the key is the index. Write another one for a long list, and for one
    /// behind a lock, where the index may be another entry's when the entry is used.
    fn find(
        &self,
        state: &E::State,
        caller: &Caller<'_>,
        wanted: &Text<'_>,
        with: &mut dyn FnMut(usize, &E::Info<'_>),
    ) {
        let mut index = 0;
        self.list(state, caller, 0, &mut |info| {
            let found = E::is_meant(info, wanted);
            if found {
                with(index, info);
            }
            index += 1;
            !found
        });
    }

    /// Runs the entry with this key: calls the tool, reads the resource, gets the prompt.
    ///
    /// [`Call::name`], [`ReadResource::uri`](super::ReadResource::uri) and [`GetPrompt::name`] say which. Set [`mime`](super::ReadResource::mime) before you
    /// answer a read: contents have no MIME type by default. [`caching`](super::ReadResource::caching) has `ttlMs` and
    /// `cacheScope`; the default is that of the service. There is no [source](super::Resource::source).
    /// [`ReadResource::var_of`](super::ReadResource::var_of) returns the variables of a template; [`var`](super::ReadResource::var) does not know the template.
    /// A prompt whose required argument is missing was refused before; its result has no `description`.
    ///
    /// # Errors
    /// As any handler, see [`HandlerError`](super::HandlerError).
    fn run(&self, key: usize, state: &mut E::State, request: &mut E::Request<'_>) -> HandlerResult;

    /// Completes an argument of the prompt with this key, or a variable of the template at this index of the list. Default: it
    /// offers nothing. Declare [`ServerCapability::Completions`], so that clients ask.
    ///
    /// # Errors
    /// As any handler, see [`HandlerError`](super::HandlerError).
    fn complete(&self, key: usize, state: &mut E::State, complete: &mut Complete<'_>) -> HandlerResult {
        let _ = (key, state);
        complete.offer::<&str>([])
    }
}

/// The functions that write lists, reached through a pointer that [`Service::dynamic_tools`] and its like set.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) struct DynamicLists<S: 'static> {
    pub(crate) write: fn(&Service<'_, S>, &S, &Caller<'_>, &RequestSlot, &mut ListPage, &mut Writer<'_>),
    #[cfg(feature = "windows")]
    pub(crate) pump:
        fn(&Service<'_, S>, &S, &Caller<'_>, &mut StreamedReply, &RequestSlot, ListPage, &mut dyn Out) -> bool,
}

/// The parts of a service that are not in tables.
pub(crate) struct Dynamic<'t, S: 'static> {
    /// Lists them after the tables, if there are any.
    pub(crate) lists: Option<&'static DynamicLists<S>>,
    pub(crate) tools: Option<&'t (dyn DynamicList<Tool<S>> + Sync)>,
    pub(crate) resources: Option<&'t (dyn DynamicList<Resource<S>> + Sync)>,
    pub(crate) templates: Option<&'t (dyn DynamicList<ResourceTemplate<S>> + Sync)>,
    pub(crate) prompts: Option<&'t (dyn DynamicList<Prompt<S>> + Sync)>,
}

impl<S> Dynamic<'_, S> {
    pub(crate) const NONE: Self = Dynamic { lists: None, tools: None, resources: None, templates: None, prompts: None };
}

impl<'t, S> Service<'t, S> {
    /// Sets tools that are not in a constant table; they come after those of [`tools`](Service::tools). Declares `tools`.
    pub const fn dynamic_tools(mut self, tools: &'t (dyn DynamicList<Tool<S>> + Sync)) -> Self {
        self.dynamic.tools = Some(tools);
        self = self.differs_by_caller();
        self.routes.tools = Some(Route::DYNAMIC_TOOLS);
        self.feature(ServerCapability::Tools)
    }

    /// Sets resources that are not in a constant table; they come after those of [`resources`](Service::resources). Declares
    /// `resources`.
    pub const fn dynamic_resources(mut self, resources: &'t (dyn DynamicList<Resource<S>> + Sync)) -> Self {
        self.dynamic.resources = Some(resources);
        self.dynamic_uris()
    }

    /// Sets resource templates that are not in a constant table; they come after those of [`templates`](Service::templates).
    /// Declares `resources`; `completions` is declared with [`feature`](Service::feature), if they complete their variables.
    pub const fn dynamic_templates(mut self, templates: &'t (dyn DynamicList<ResourceTemplate<S>> + Sync)) -> Self {
        self.dynamic.templates = Some(templates);
        self.dynamic_uris()
    }

    const fn dynamic_uris(mut self) -> Self {
        self = self.differs_by_caller();
        self.routes.resources = Some(Route::DYNAMIC_RESOURCES);
        self.routes.completions = Some(Route::DYNAMIC_COMPLETIONS);
        self.templated = Some(find_dynamic);
        self.feature(ServerCapability::Resources)
    }

    /// Sets prompts that are not in a constant table; they come after those of [`prompts`](Service::prompts). Declares
    /// `prompts`; `completions` is declared with [`feature`](Service::feature), if they complete their arguments.
    pub const fn dynamic_prompts(mut self, prompts: &'t (dyn DynamicList<Prompt<S>> + Sync)) -> Self {
        self.dynamic.prompts = Some(prompts);
        self = self.differs_by_caller();
        self.routes.prompts = Some(Route::DYNAMIC_PROMPTS);
        self.routes.completions = Some(Route::DYNAMIC_COMPLETIONS);
        self.feature(ServerCapability::Prompts)
    }
}

/// [`Target::index`] of what has a key: after the `table`, one `kind` of two beside the other.
fn target<S>(table: usize, key: usize, kind: usize, reserve: usize) -> Option<Target<S>> {
    Some(Target::at(key.checked_mul(2)?.checked_add(table)?.checked_add(kind)?, reserve))
}

/// Returns the key and the kind of a target; `None` for one of the table.
fn key_of<S>(target: &Target<S>, table: usize) -> Option<(usize, usize)> {
    let behind = target.index.checked_sub(table)?;
    Some((behind / 2, behind % 2))
}

/// The place in the slot for what is not in a table: no table has it.
const NO_TABLE: u16 = u16::MAX;

/// The kinds of targets.
const PLAIN: usize = 0;
const TEMPLATE: usize = 1;

impl<S> Route<S> {
    /// `tools/call`, `tools/list`: the tools of the table, and after them the others.
    pub(crate) const DYNAMIC_TOOLS: &'static Route<S> = &Route {
        find: |service, state, origin, slot, input| {
            let name = input.members.name.and_then(|name| name.text_of(input.members.plain));
            let unknown = Err(UNKNOWN_TOOL);
            let (Some(name), Some(tools)) = (name, service.dynamic.tools) else { return unknown };
            if service.tool(&name).is_some() {
                return find_tool(service, state, origin, slot, input);
            }
            let mut found = unknown;
            tools.find(state, origin.caller(), &name, &mut |key, info| {
                if let Some(Target { index, .. }) = target::<S>(service.tools.len(), key, PLAIN, 0)
                    && info.is_sound()
                {
                    found = input.check_tool(index, info, origin.checks);
                }
            });
            found
        },
        call: |service, state, target, mut call| {
            let (Some((key, _)), Some(tools)) = (key_of(target, service.tools.len()), service.dynamic.tools) else {
                return call_tool(service, state, target, call);
            };
            call.slot.handler = NO_TABLE;
            #[cfg(feature = "extensions")]
            if let Some(name) = call.input.members.name.and_then(|name| name.text()).filter(|_| service.checks_calls())
            {
                let mut checked = Ok(());
                let caller = Caller::admitted(call.principal, call.input.members.meta, call.server, call.slot);
                tools.find(state, &caller, &name, &mut |_, info| checked = service.check_call(info, &call));
                if let Err(failure) = checked {
                    return call.ran(Err(failure.into()));
                }
            }
            call.run(state, |state, call| tools.run(key, state, call))
        },
        write: Route::TOOLS.write,
    };

    /// `resources/read` and the two lists: the entries of the tables, and after them the others.
    pub(crate) const DYNAMIC_RESOURCES: &'static Route<S> = &Route {
        find: find_read,
        call: |service, state, target, mut call| {
            let Some((key, kind)) = key_of(target, service.resources.len() + service.templates.len()) else {
                return service.call_read(state, call.handling, target.index);
            };
            let uri = decode_uri(&mut call.handling);
            if uri.is_empty() {
                // It has escapes, and there is no room to decode them.
                return call.ran(Err(RpcError::internal(words("The URI is too long")).into()));
            }
            call.slot.handler = NO_TABLE;
            let read = service.reading(call.handling, usize::from(NO_TABLE), uri);
            match (kind, service.dynamic.resources, service.dynamic.templates) {
                (PLAIN, Some(resources), _) => read.run(state, |state, read| resources.run(key, state, read)),
                (_, _, Some(templates)) => read.run(state, |state, read| templates.run(key, state, read)),
                _ => read.ran_nothing(),
            }
        },
        write: Route::RESOURCES.write,
    };

    /// `prompts/get`, `prompts/list`: the prompts of the table, and after them the others.
    pub(crate) const DYNAMIC_PROMPTS: &'static Route<S> = &Route {
        find: |service, state, origin, _, input| {
            let name = input.members.name.and_then(|name| name.text());
            let unknown = Err(UNKNOWN_PROMPT);
            let (Some(name), Some(prompts)) = (name, service.dynamic.prompts) else { return unknown };
            if service.prompt(&name).is_some() {
                return service.find_prompt(input);
            }
            let mut found = unknown;
            prompts.find(state, origin.caller(), &name, &mut |key, info| {
                if let Some(Target { index, .. }) = target::<S>(service.prompts.len(), key, PLAIN, 0)
                    && info.is_sound()
                {
                    found = input.check_prompt(index, info);
                }
            });
            found
        },
        call: |service, state, target, call| {
            let found = key_of(target, service.prompts.len()).zip(service.dynamic.prompts);
            let Some(((key, _), prompts)) = found else {
                return (Route::PROMPTS.call)(service, state, target, call);
            };
            let Call { handling } = call;
            handling.slot.handler = NO_TABLE;
            GetPrompt { handling, description: "" }.run(state, |state, get| prompts.run(key, state, get))
        },
        write: Route::PROMPTS.write,
    };

    /// `completion/complete`: first of what the tables have. The index is that of [`target`] plus one.
    pub(crate) const DYNAMIC_COMPLETIONS: &'static Route<S> = &Route {
        find: |service, state, origin, slot, input| {
            let found = (Route::COMPLETIONS.find)(service, state, origin, slot, input);
            found.or_else(|unknown| {
                service.find_dynamic_completion(state, origin.caller(), input).unwrap_or(Err(unknown))
            })
        },
        call: |service, state, target, call| {
            let Some((key, kind)) = key_of(target, 1) else {
                return (Route::COMPLETIONS.call)(service, state, target, call);
            };
            complete(call.handling, |complete| match (kind, service.dynamic.prompts, service.dynamic.templates) {
                (PLAIN, Some(prompts), _) => complete.run(state, |state, it| prompts.complete(key, state, it)),
                (_, _, Some(templates)) => complete.run(state, |state, it| templates.complete(key, state, it)),
                _ => complete.ran_nothing(),
            })
        },
        write: Route::COMPLETIONS.write,
    };
}

/// Finds what a URI names that is not in the table of resources: a resource, a template of the table, another template.
fn find_dynamic<S>(
    service: &Service<'_, S>,
    state: &S,
    origin: &MessageSource<'_>,
    uri: &Text<'_>,
) -> Option<Target<S>> {
    let table = service.resources.len() + service.templates.len();
    let mut found = None;
    if let Some(resources) = service.dynamic.resources {
        resources.find(state, origin.caller(), uri, &mut |key, info| {
            found = target(table, key, PLAIN, info.reserve).filter(|_| info.is_sound());
        });
    }
    found = found.or_else(|| matching(service, state, origin, uri));
    if let (None, Some(templates)) = (&found, service.dynamic.templates) {
        templates.find(state, origin.caller(), uri, &mut |key, info| {
            found = target(table, key, TEMPLATE, info.reserve).filter(|_| info.is_sound_template());
        });
    }
    found
}

impl<S> Service<'_, S> {
    /// Finds what completes a value; `None` if nothing is known by the name. The tables were asked before.
    fn find_dynamic_completion<'a>(
        &self,
        state: &S,
        caller: &Caller<'_>,
        input: &HandlerInput<'a>,
    ) -> Option<Result<Target<S>, RpcError<'a>>> {
        let reference = input.members.reference?;
        let (argument, _) = input.completed()?;
        let known = |is_known: bool, key, kind| match is_known {
            true => {
                target(1, key, kind, super::DEFAULT_RESERVE).ok_or(RpcError::internal(words("The key is too large")))
            }
            // An argument that it does not have: an empty list.
            false => Ok(Target::at(0, super::DEFAULT_RESERVE)),
        };
        let mut found = None;
        let kind = reference.get("type")?.text()?;
        if kind.eq_str("ref/prompt") {
            let name = reference.get("name")?.text()?;
            self.dynamic.prompts?.find(state, caller, &name, &mut |key, info| {
                let has = info.arguments.iter().any(|known| argument.eq_str(known.name));
                found = info.is_sound().then(|| known(has, key, PLAIN));
            });
        } else if kind.eq_str("ref/resource") {
            let uri = reference.get("uri")?.text()?;
            let mut index = 0;
            if let Some(templates) = self.dynamic.templates {
                templates.list(state, caller, 0, &mut |info| {
                    if found.is_none() && uri.eq_str(info.uri) && info.is_sound_template() {
                        let has = argument.plain().is_some_and(|name| template::has_variable(info.uri, name));
                        found = Some(known(has, index, TEMPLATE));
                    }
                    index += 1;
                    found.is_none()
                });
            }
            if let (None, Some(resources)) = (&found, self.dynamic.resources) {
                resources
                    .find(state, caller, &uri, &mut |_, info| found = info.is_sound().then(|| known(false, 0, PLAIN)));
            }
        }
        found
    }
}
