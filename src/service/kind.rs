//! Kinds: what a service does with resources, prompts, completions and requests of other protocols.
//!
//! A [`Service`] points to the kinds that it was given things of, and reaches their code by these pointers alone. So the
//! linker leaves out what a program does not offer.

use super::call::{Complete, Get, Other, Outcome, Read};
use super::find::{Asked, completed};
use super::handling::Handling;
use super::run::Ran;
use super::{DEFAULT_RESERVE, Service};
use crate::json::Text;
use crate::protocol::Method;
use crate::revision::Revision;
use crate::server::{Failure, Slot};
use crate::sink::{Full, Writer};

/// What completes a value.
pub(crate) type Completer<S> = fn(&mut S, &mut Complete<'_>) -> Outcome;

/// Finds, runs and lists things of one kind.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) struct Kind<S: 'static> {
    /// What a request names.
    pub(crate) find: for<'a> fn(&Service<'_, S>, &Slot, &Asked<'a>) -> Result<Spot<S>, Failure<'a>>,
    /// Runs its handler.
    pub(crate) call: for<'a> fn(&'a Service<'a, S>, &mut S, &Spot<S>, &Asked<'a>, Handling<'a>) -> Ran,
    /// Writes the one at an index of the list that the method asks for.
    pub(crate) write: fn(&Service<'_, S>, Method, usize, Revision, &mut Writer<'_>) -> Result<(), Full>,
}

/// Where a thing is among those of its kind.
pub(crate) struct Spot<S: 'static> {
    pub(crate) index: usize,
    /// Room that its reply needs.
    pub(crate) reserve: usize,
    complete: Option<Completer<S>>,
}

impl<S> Spot<S> {
    const fn at(index: usize, reserve: usize) -> Self {
        Spot { index, reserve, complete: None }
    }
}

impl<S> Kind<S> {
    /// Resources, and behind them templates.
    pub(crate) const RESOURCES: &'static Kind<S> = &Kind {
        find: |service, slot, asked| {
            let uri = asked.members.uri.and_then(|uri| uri.text());
            let uri = uri.ok_or(Failure::invalid_params("Invalid params: uri is missing"))?;
            let index = service.find_resource(&uri).ok_or(Failure::unknown_resource(uri, slot.revision))?;
            Ok(Spot::at(index, service.resource_info(index).map_or(0, |info| info.reserve)))
        },
        call: |service, state, spot, asked, handling| service.call_read(state, handling, spot.index, asked),
        write: |service, method, index, revision, out| match method {
            Method::ResourcesList => match service.resources.get(index) {
                Some(resource) => resource.info.write(out, "uri", revision),
                None => Ok(()),
            },
            _ => match service.templates.get(index) {
                Some(it) => it.info.write(out, "uriTemplate", revision),
                None => Ok(()),
            },
        },
    };

    /// Prompts.
    pub(crate) const PROMPTS: &'static Kind<S> = &Kind {
        find: |service, _, asked| {
            let index = service.find_prompt(asked)?;
            Ok(Spot::at(index, service.prompts.get(index).map_or(0, |prompt| prompt.reserve)))
        },
        call: |service, state, spot, _, handling| {
            let Some(prompt) = service.prompts.get(spot.index) else { return handling.ran_nothing() };
            handling.slot.handler = spot.index as u16;
            let mut get = Get { handling, description: prompt.description };
            let outcome = (prompt.get)(state, &mut get);
            get.handling.ran(outcome)
        },
        write: |service, _, index, revision, out| match service.prompts.get(index) {
            Some(prompt) => prompt.write(out, revision),
            None => Ok(()),
        },
    };

    /// Completions of templates' variables and prompts' arguments.
    pub(crate) const COMPLETIONS: &'static Kind<S> = &Kind {
        find: |service, _, asked| {
            Ok(Spot { index: 0, reserve: DEFAULT_RESERVE, complete: service.find_completion(asked)? })
        },
        call: |_, state, spot, asked, mut handling| {
            let Some((complete, (argument, value))) = spot.complete.zip(completed(asked)) else {
                // Nobody completes it: an empty list.
                let argument = Text::from_raw(b"");
                let mut call = Complete { handling, argument, value: "", context: None };
                let outcome = call.offer::<&str>([]);
                return call.handling.ran(outcome);
            };
            let value = match value.plain() {
                Some(value) => value,
                None => match value.decode(core::mem::take(&mut handling.scratch)) {
                    Ok(value) => value,
                    // It came with escapes, and there is no room to decode them.
                    Err(_) => return handling.ran(Err(Failure::internal("The value is too long").into())),
                },
            };
            let mut call = Complete { handling, argument, value, context: asked.members.context };
            let outcome = complete(state, &mut call);
            call.handling.ran(outcome)
        },
        write: nothing,
    };

    /// Requests that the protocol does not know.
    pub(crate) const OTHERS: &'static Kind<S> = &Kind {
        find: |_, _, _| Ok(Spot::at(0, DEFAULT_RESERVE)),
        call: |service, state, _, asked, handling| {
            let Some(other) = service.other else { return handling.ran_nothing() };
            let method = asked.name.unwrap_or(Text::from_raw(b""));
            let mut call = Other { handling, method };
            let outcome = other(state, &mut call);
            call.handling.ran(outcome)
        },
        write: nothing,
    };
}

/// What is in no list.
fn nothing<S>(_: &Service<'_, S>, _: Method, _: usize, _: Revision, _: &mut Writer<'_>) -> Result<(), Full> {
    Ok(())
}

/// The kinds of things that a service has beside tools.
pub(crate) struct Kinds<S: 'static> {
    resources: Option<&'static Kind<S>>,
    prompts: Option<&'static Kind<S>>,
    completions: Option<&'static Kind<S>>,
    others: Option<&'static Kind<S>>,
}

impl<S> Kinds<S> {
    pub(crate) const NONE: Kinds<S> = Kinds { resources: None, prompts: None, completions: None, others: None };

    pub(crate) const fn with_resources(self) -> Self {
        Kinds { resources: Some(Kind::RESOURCES), ..self }
    }

    pub(crate) const fn with_prompts(self) -> Self {
        Kinds { prompts: Some(Kind::PROMPTS), ..self }
    }

    pub(crate) const fn with_completions(self) -> Self {
        Kinds { completions: Some(Kind::COMPLETIONS), ..self }
    }

    pub(crate) const fn with_others(self) -> Self {
        Kinds { others: Some(Kind::OTHERS), ..self }
    }

    /// The kind of things that a method is about.
    pub(crate) const fn of(&self, method: Method) -> Option<&'static Kind<S>> {
        match method {
            Method::ResourcesRead | Method::ResourcesList | Method::TemplatesList => self.resources,
            Method::PromptsGet | Method::PromptsList => self.prompts,
            Method::Complete => self.completions,
            _ => self.others,
        }
    }
}

/// The URI of a request, borrowed from the message or decoded into the scratch, which then is what is left of it.
fn decode_uri<'a>(asked: &Asked<'a>, scratch: &mut &'a mut [u8]) -> &'a str {
    let Some(uri) = asked.members.uri.and_then(|uri| uri.text_of(asked.members.plain)) else { return "" };
    if let Some(uri) = uri.plain() {
        return uri;
    }
    let space = core::mem::take(scratch);
    let Some((place, rest)) = space.split_at_mut_checked(uri.decoded_len().unwrap_or(0)) else { return "" };
    *scratch = rest;
    uri.decode(place).unwrap_or("")
}

impl<S> Clone for Kinds<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Kinds<S> {}

impl<S> Service<'_, S> {
    fn call_read<'a>(&'a self, state: &mut S, mut handling: Handling<'a>, index: usize, asked: &Asked<'a>) -> Ran {
        let uri = decode_uri(asked, &mut handling.scratch);
        let (template, read, uri) = match self.resources.get(index) {
            Some(resource) => (None, resource.read, resource.info.uri),
            None => match self.templates.get(index.wrapping_sub(self.resources.len())) {
                Some(template) if !uri.is_empty() => (Some(template.info.uri), template.read, uri),
                // It came with escapes, and there is no room to decode them.
                Some(_) => return handling.ran(Err(Failure::internal("The URI is too long").into())),
                None => return handling.ran_nothing(),
            },
        };
        let info = self.resource_info(index);
        let caching = info.and_then(|info| info.caching).unwrap_or(self.about.caching);
        let mime = info.and_then(|info| info.mime);
        handling.slot.handler = index as u16;
        #[cfg(feature = "windows")]
        {
            handling.sourced = self.source(Method::ResourcesRead, index).is_some();
        }
        let mut call = Read { handling, uri, template, mime, caching };
        let outcome = read(state, &mut call);
        call.handling.ran(outcome)
    }
}
