//! Routes: the code of a service for each kind of request, linked only where it is used.
//!
//! A device must not pay for methods that its program does not offer. Rust cannot ask at link time whether a table is empty,
//! so code is reached through pointers that a builder method sets: [`Service::resources`] sets the route of resources,
//! [`Service::prompts`] that of prompts, and so on. Without the call nothing refers to the route, and the linker leaves out
//! all code behind it. The same is done, for the same reason, in `Server::subscriptions`, `ServerInfo::revisions`,
//! `Tool::source`, `Service::dynamic_tools` and its like, `ServerInfo`, `Icons` and `Extra`.

use super::context::{HandlerInput, HandlerRun, RequestContext};
use super::find::{Target, find_read, find_tool};
use super::requests::{Call, Complete, CustomRequest, GetPrompt, ReadResource};
use super::{DEFAULT_RESERVE, MessageSource, Service};
use crate::json::Text;
use crate::protocol::Method;
use crate::revision::Revision;
use crate::server::{RequestSlot, RpcError, words};
use crate::sink::Writer;

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
    pub(crate) call: for<'a> fn(&'a Service<'a, S>, &mut S, &Target<S>, Call<'a>) -> HandlerRun,
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
        call: |service, state, target, call| service.call_read(state, call.handling, target.index),
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
        call: |service, state, target, Call { handling }| {
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
        find: |service, _, _, _, input| service.find_completion(input),
        call: |_, state, target, Call { handling }| match target.complete {
            Some(function) => complete(handling, |complete| complete.run(state, function)),
            // There is no function to complete it: an empty list.
            None => Complete { handling, argument: Text::from_raw(b""), value: "", context: None }
                .run(state, |_, complete| complete.offer::<&str>([])),
        },
        write: |_, _, _, _, _, _| {},
    };

    /// Requests that the protocol does not know.
    pub(crate) const OTHERS: &'static Route<S> = &Route {
        find: |_, _, _, _, _| Ok(Target::at(0, DEFAULT_RESERVE)),
        call: |service, state, _, Call { handling }| {
            let Some(other) = service.other else { return handling.ran_nothing() };
            handling.slot.handler = 0;
            let method = handling.input.name.unwrap_or(Text::from_raw(b""));
            CustomRequest::new(handling, method).run(state, other)
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
    pub(crate) catch: Option<super::contain::CatchPanic>,
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

// A function and no closure, which would copy its arguments, as `find_tool` is: 2 % of a `tools/call`.

/// Runs the handler of a tool.
pub(crate) fn call_tool<'a, S>(
    service: &'a Service<'a, S>,
    state: &mut S,
    target: &Target<S>,
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

impl<S> Service<'_, S> {
    pub(crate) fn call_read<'a>(&'a self, state: &mut S, mut handling: RequestContext<'a>, index: usize) -> HandlerRun {
        let uri = decode_uri(&mut handling);
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

/// Completes a value, by a function that gets the context.
pub(crate) fn complete<'a>(
    mut handling: RequestContext<'a>,
    run: impl FnOnce(Complete<'a>) -> HandlerRun,
) -> HandlerRun {
    let (input, nothing) = (handling.input, Text::from_raw(b""));
    let (argument, value) = input.completed().unwrap_or((nothing, nothing));
    match value.plain().or_else(|| value.decode(core::mem::take(&mut handling.scratch)).ok()) {
        Some(value) => run(Complete { handling, argument, value, context: input.members.context }),
        // It has escapes, and there is no room to decode them.
        None => handling.ran(Err(RpcError::internal(words("The value is too long")).into())),
    }
}

/// Returns the URI of a request, from the message or decoded into the front of the scratch.
pub(crate) fn decode_uri<'a>(handling: &mut RequestContext<'a>) -> &'a str {
    let members = handling.input.members;
    let Some(uri) = members.uri.and_then(|uri| uri.text_of(members.plain)) else { return "" };
    if let Some(uri) = uri.plain() {
        return uri;
    }
    let space = core::mem::take(&mut handling.scratch);
    let Some((place, rest)) = space.split_at_mut_checked(uri.decoded_len().unwrap_or(0)) else { return "" };
    handling.scratch = rest;
    uri.decode(place).unwrap_or("")
}
