//! Routes: the code of a service for each kind of request, linked only where it is used.
//!
//! A device must not pay for methods that its program does not offer. Rust cannot ask at link time whether a table is empty,
//! so code is reached through pointers that a builder method sets: [`Service::resources`] sets the route of resources,
//! [`Service::prompts`] that of prompts, and so on. Without the call nothing refers to the route, and the linker leaves out
//! all code behind it. The same is done, for the same reason, in `Server::subscriptions`, `ServerInfo::revisions`,
//! `Tool::source`, `Service::dynamic_tools` and its like, `ServerInfo`, `Icons` and `Extra`.

use super::context::{HandlerRun, RequestContext};
use super::requests::{Call, Complete, Completer, CustomRequest, GetPrompt, ReadResource};
use super::{DEFAULT_RESERVE, MessageSource, Service, ToolInfo};
use crate::json::{Raw, Text};
use crate::protocol::Method;
use crate::revision::Revision;
use crate::rpc::RequestMembers;
use crate::server::{RequestSlot, RpcError, TransportChecks, words};
use crate::sink::Writer;

/// Runs a function, and returns whether it came to its end: `false` if it panicked.
#[cfg(feature = "alloc")]
pub type CatchPanic = fn(&mut dyn FnMut()) -> bool;

/// The parameters of one handler run: read from the message, or from the retry record.
#[derive(Clone, Copy)]
pub(crate) struct HandlerInput<'a> {
    pub(crate) params: Option<Raw<'a>>,
    pub(crate) members: &'a RequestMembers<'a>,
    /// The `method` of a request that the protocol does not know.
    pub(crate) name: Option<Text<'a>>,
}

impl<'a> HandlerInput<'a> {
    /// Returns `argument.name` and `argument.value` of a completion.
    pub(crate) fn completed(&self) -> Option<(Text<'a>, Text<'a>)> {
        let argument = self.members.argument?;
        Some((argument.get("name")?.text()?, argument.get("value")?.text()?))
    }

    /// Checks a call of the tool at `index`.
    pub(crate) fn check_tool<S>(
        &self,
        index: usize,
        info: &ToolInfo<'_>,
        checks: &dyn TransportChecks,
    ) -> Result<Target<S>, RpcError<'a>> {
        let arguments = self.members.arguments.unwrap_or(Raw::trusted(b"{}"));
        checks.arguments(Raw::trusted(info.input.as_bytes()), arguments)?;
        Ok(Target::at(index, info.reserve))
    }
}

/// The entry of a table that a request names.
pub(crate) struct Target<S: 'static> {
    pub(crate) index: usize,
    /// The room for its reply, in bytes.
    pub(crate) reserve: usize,
    pub(crate) complete: Option<Completer<S>>,
}

impl<S> Target<S> {
    pub(crate) const fn at(index: usize, reserve: usize) -> Self {
        Target { index, reserve, complete: None }
    }
}

/// Finds, runs and lists the entries of one kind.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) struct Route<S: 'static> {
    /// Finds the entry that a request names, or refuses the request.
    pub(crate) find: for<'a> fn(
        &Service<'_, S>,
        &S,
        &MessageSource<'_>,
        &RequestSlot,
        &HandlerInput<'a>,
    ) -> Result<Target<S>, RpcError<'a>>,
    /// Runs the handler. It takes a [`Call`], which a tool gets as it is: made from a [`RequestContext`] it would be a copy.
    pub(crate) call: for<'a> fn(&'a Service<'a, S>, &mut S, &Target<S>, &HandlerInput<'a>, Call<'a>) -> HandlerRun,
    /// Writes a separator and the entry at an index of the table of the method.
    pub(crate) write: fn(&Service<'_, S>, Method, usize, &[u8], Revision, &mut Writer<'_>),
}

impl<S> Route<S> {
    /// `tools/call`, `tools/list`.
    pub(crate) const TOOLS: &'static Route<S> = &Route {
        find: find_tool,
        call: call_tool,
        write: |service, _, index, separator, revision, out| {
            out.put(separator);
            if let Some(tool) = service.tools.get(index) {
                tool.info.write(out, revision);
            }
        },
    };

    /// `resources/read` and the two lists: resources, and after them templates.
    pub(crate) const RESOURCES: &'static Route<S> = &Route {
        find: find_read,
        call: |service, state, target, input, call| service.call_read(state, call.handling, target.index, input),
        write: |service, method, index, separator, revision, out| {
            out.put(separator);
            let (info, key) = match method {
                Method::ResourcesList => (service.resources.get(index).map(|it| &it.info), "uri"),
                _ => (service.templates.get(index).map(|it| &it.info), "uriTemplate"),
            };
            if let Some(info) = info {
                info.write(out, key, revision);
            }
        },
    };

    /// `prompts/get`, `prompts/list`.
    pub(crate) const PROMPTS: &'static Route<S> = &Route {
        find: |service, _, _, _, input| service.find_prompt(input),
        call: |service, state, target, _, Call { handling }| {
            let Some(prompt) = service.prompts.get(target.index) else { return handling.ran_nothing() };
            handling.slot.handler = target.index as u16;
            GetPrompt { handling, description: prompt.info.description }.run(state, prompt.get)
        },
        write: |service, _, index, separator, revision, out| {
            out.put(separator);
            if let Some(prompt) = service.prompts.get(index) {
                prompt.info.write(out, revision);
            }
        },
    };

    /// `completion/complete`: variables of templates and arguments of prompts.
    pub(crate) const COMPLETIONS: &'static Route<S> = &Route {
        find: |service, _, _, _, input| {
            Ok(Target { index: 0, reserve: DEFAULT_RESERVE, complete: service.find_completion(input)? })
        },
        call: |_, state, target, input, Call { mut handling }| {
            let Some((complete, (argument, value))) = target.complete.zip(input.completed()) else {
                // There is no function to complete it: an empty list.
                let complete = Complete { handling, argument: Text::from_raw(b""), value: "", context: None };
                return complete.run(state, |_, complete| complete.offer::<&str>([]));
            };
            let Some(value) = decode_value(value, &mut handling) else {
                return handling.ran(Err(RpcError::internal(words("The value is too long")).into()));
            };
            Complete { handling, argument, value, context: input.members.context }.run(state, complete)
        },
        write: |_, _, _, _, _, _| {},
    };

    /// Requests that the protocol does not know.
    pub(crate) const OTHERS: &'static Route<S> = &Route {
        find: |_, _, _, _, _| Ok(Target::at(0, DEFAULT_RESERVE)),
        call: |service, state, _, input, Call { handling }| {
            let Some(other) = service.other else { return handling.ran_nothing() };
            let method = input.name.unwrap_or(Text::from_raw(b""));
            #[cfg(feature = "extensions")]
            {
                handling.slot.handler = 0;
            }
            CustomRequest {
                handling,
                method,
                #[cfg(feature = "extensions")]
                caching: None,
            }
            .run(state, other)
        },
        write: |_, _, _, _, _, _| {},
    };
}

/// The routes of a service: those of the methods that it offers.
pub(crate) struct Routes<S: 'static> {
    pub(crate) tools: Option<&'static Route<S>>,
    pub(crate) resources: Option<&'static Route<S>>,
    pub(crate) prompts: Option<&'static Route<S>>,
    pub(crate) completions: Option<&'static Route<S>>,
    pub(crate) others: Option<&'static Route<S>>,
    /// Catches the panics of handlers, if it is set.
    #[cfg(feature = "alloc")]
    pub(crate) catch: Option<CatchPanic>,
}

impl<S> Routes<S> {
    pub(crate) const NONE: Routes<S> = Routes {
        tools: None,
        resources: None,
        prompts: None,
        completions: None,
        others: None,
        #[cfg(feature = "alloc")]
        catch: None,
    };

    /// Returns the route of a method.
    pub(crate) const fn of(&self, method: Method) -> Option<&'static Route<S>> {
        match method {
            Method::ToolsCall | Method::ToolsList => self.tools,
            Method::ResourcesRead | Method::ResourcesList | Method::TemplatesList => self.resources,
            Method::PromptsGet | Method::PromptsList => self.prompts,
            Method::Complete => self.completions,
            _ => self.others,
        }
    }
}

/// The error for a tool that does not exist.
pub(crate) const UNKNOWN_TOOL: RpcError<'static> = RpcError::invalid_params(words("Unknown tool"));

/// The error for a prompt that does not exist.
pub(crate) const UNKNOWN_PROMPT: RpcError<'static> = RpcError::invalid_params(words("Unknown prompt"));

/// The error for a completion of what does not exist.
pub(crate) const UNKNOWN_REFERENCE: RpcError<'static> =
    RpcError::invalid_params(words("Invalid params: completion needs a known ref and an argument"));

// Functions and no closures, which copy their arguments: 2 % of a `tools/call`.

/// Finds the tool that a request names.
pub(crate) fn find_tool<'a, S>(
    service: &Service<'_, S>,
    _: &S,
    origin: &MessageSource<'_>,
    _: &RequestSlot,
    input: &HandlerInput<'a>,
) -> Result<Target<S>, RpcError<'a>> {
    let name = input.members.name.and_then(|name| name.text_of(input.members.plain));
    let found = name.and_then(|name| service.tools.iter().enumerate().find(|(_, tool)| name.eq_str(tool.info.name)));
    let Some((index, tool)) = found else { return Err(UNKNOWN_TOOL) };
    input.check_tool(index, &tool.info, origin.checks)
}

/// Runs the handler of a tool.
pub(crate) fn call_tool<'a, S>(
    service: &'a Service<'a, S>,
    state: &mut S,
    target: &Target<S>,
    _: &HandlerInput<'a>,
    mut call: Call<'a>,
) -> HandlerRun {
    call.slot.handler = target.index as u16;
    let Some(tool) = service.tools.get(target.index) else { return call.handling.ran_nothing() };
    #[cfg(feature = "extensions")]
    if let Err(failure) = service.check_call(&tool.info, &call) {
        return call.ran(Err(failure.into()));
    }
    #[cfg(feature = "windows")]
    {
        call.handling.sourced = tool.source.is_some();
    }
    let outcome = (tool.run)(state, &mut call);
    call.ran(outcome)
}

/// Finds the resource or template that a request names.
pub(crate) fn find_read<'a, S>(
    service: &Service<'_, S>,
    state: &S,
    origin: &MessageSource<'_>,
    slot: &RequestSlot,
    input: &HandlerInput<'a>,
) -> Result<Target<S>, RpcError<'a>> {
    let uri = input.members.uri.and_then(|uri| uri.text());
    let uri = uri.ok_or(RpcError::invalid_params(words("Invalid params: uri is missing")))?;
    service.find_resource(state, origin, &uri).ok_or(RpcError::unknown_resource(uri, slot.revision))
}

impl<S> Service<'_, S> {
    /// Runs a function of the program. Returns `None` if it panicked and panics are contained.
    #[inline(always)]
    pub(crate) fn guard<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        #[cfg(feature = "alloc")]
        if let Some(catch) = self.routes.catch {
            let (mut run, mut done) = (Some(run), None);
            catch(&mut || done = run.take().map(|run| run()));
            return done;
        }
        Some(run())
    }

    pub(crate) fn call_read<'a>(
        &'a self,
        state: &mut S,
        mut handling: RequestContext<'a>,
        index: usize,
        input: &HandlerInput<'a>,
    ) -> HandlerRun {
        let uri = decode_uri(input, &mut handling.scratch);
        let (read, uri) = match self.resources.get(index) {
            Some(resource) => (resource.read, resource.info.uri),
            None => match self.templates.get(index.wrapping_sub(self.resources.len())) {
                Some(template) if !uri.is_empty() => (template.read, uri),
                // It has escapes, and there is no room to decode them.
                Some(_) => return handling.ran(Err(RpcError::internal(words("The URI is too long")).into())),
                None => return handling.ran_nothing(),
            },
        };
        handling.slot.handler = index as u16;
        #[cfg(feature = "windows")]
        {
            handling.sourced = self.source(Method::ResourcesRead, index).is_some();
        }
        self.reading(handling, index, uri).run(state, read)
    }

    /// Makes the context of a read of the resource or template at `index`.
    pub(crate) fn reading<'a>(&self, handling: RequestContext<'a>, index: usize, uri: &'a str) -> ReadResource<'a> {
        let info = self.resource_info(index);
        let template = info.filter(|_| index >= self.resources.len()).map(|info| info.uri);
        let mime = info.and_then(|info| info.mime);
        ReadResource {
            handling,
            uri,
            template,
            mime,
            caching: self.caching_of(index),
            #[cfg(feature = "extensions")]
            contents_meta: None,
        }
    }
}

/// Runs the handler of a request, whose context is `$context`, by the expression `$run`.
// A macro, and no function: that would copy what a handler returns, 140 bytes of flash (uart-tools).
macro_rules! run_handler {
    ($service:ident, $out:ident, $context:ident, $run:expr) => {
        match () {
            #[cfg(feature = "alloc")]
            () if $service.routes.catch.is_some() => $service
                .run_guarded($context.out.mark(), $context, |$context| $run)
                .unwrap_or_else(|mark| $crate::service::context::HandlerRun::panicked($out, mark)),
            () => $run,
        }
    };
}
pub(crate) use run_handler;

/// Returns the value that is to be completed; `None` if it has escapes, and there is no room to decode them.
pub(crate) fn decode_value<'a>(value: Text<'a>, handling: &mut RequestContext<'a>) -> Option<&'a str> {
    value.plain().or_else(|| value.decode(core::mem::take(&mut handling.scratch)).ok())
}

/// Returns the URI of a request, from the message or decoded into the front of the scratch.
pub(crate) fn decode_uri<'a>(input: &HandlerInput<'a>, scratch: &mut &'a mut [u8]) -> &'a str {
    let Some(uri) = input.members.uri.and_then(|uri| uri.text_of(input.members.plain)) else { return "" };
    if let Some(uri) = uri.plain() {
        return uri;
    }
    let space = core::mem::take(scratch);
    let Some((place, rest)) = space.split_at_mut_checked(uri.decoded_len().unwrap_or(0)) else { return "" };
    *scratch = rest;
    uri.decode(place).unwrap_or("")
}
