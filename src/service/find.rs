//! Which handler a request names.

use super::kind::{Completer, Kind, Spot};
use super::{Service, Template, Tool, ToolInfo, template};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::Method;
use crate::rpc::Members;
use crate::server::{Failure, Slot};

/// What a request asks a handler for, from the message or from where it was kept.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) params: Option<Raw<'a>>,
    pub(crate) members: &'a Members<'a>,
    /// The method's name, of a request that the protocol does not know.
    pub(crate) name: Option<Text<'a>>,
}

/// The handler that a request names.
pub(crate) enum Found<'s, S: 'static> {
    Tool(&'s Tool<S>, usize),
    /// One of the toolbox, counted on behind the others.
    Boxed(usize),
    /// No tool.
    Of(&'static Kind<S>, Spot<S>),
}

impl<S> Service<'_, S> {
    /// What a request names.
    #[inline]
    pub(crate) fn find<'a>(&self, slot: &Slot, asked: &Asked<'a>, why: &mut Failure<'a>) -> Option<Found<'_, S>> {
        if slot.method != Method::ToolsCall {
            return self.find_other(slot, asked, why);
        }
        let name = asked.members.name.and_then(|name| name.text_of(asked.members.plain));
        let found = name.and_then(|name| self.find_tool(&name));
        found.or_else(|| why.be_params("Unknown tool"))
    }

    /// What a request names that calls no tool.
    #[inline(never)]
    fn find_other<'a>(&self, slot: &Slot, asked: &Asked<'a>, why: &mut Failure<'a>) -> Option<Found<'_, S>> {
        let Some(kind) = self.kinds.of(slot.method) else {
            return match slot.method {
                // 2024-11-05 has it without a capability: there is merely nothing to complete.
                Method::Complete => why.be_params("Unknown completion reference"),
                _ => why.be_method(),
            };
        };
        why.unless((kind.find)(self, slot, asked)).map(|spot| Found::Of(kind, spot))
    }

    fn find_tool(&self, name: &Text<'_>) -> Option<Found<'_, S>> {
        if let Some((index, tool)) = self.tools.iter().enumerate().find(|(_, tool)| name.is(tool.info.name)) {
            return Some(Found::Tool(tool, index));
        }
        let toolbox = self.toolbox?;
        let is_meant = |info: &ToolInfo<'_>| name.is(info.name) && (toolbox.is_listed)(info);
        let found = (0..toolbox.lent.len()).find(|i| toolbox.lent.info(*i).as_ref().is_some_and(is_meant))?;
        Some(Found::Boxed(self.tools.len() + found))
    }

    /// The number of the resource at `uri`; templates are counted on behind the resources.
    pub(crate) fn find_resource(&self, uri: &Text<'_>) -> Option<usize> {
        let fixed = self.resources.iter().position(|resource| uri.is(resource.info.uri));
        fixed.or_else(|| Some(self.resources.len() + self.templated?(self.templates, uri)?))
    }

    pub(crate) fn find_prompt<'a>(&self, asked: &Asked<'a>) -> Result<usize, Failure<'a>> {
        let name = asked.members.name.and_then(|name| name.text());
        let found = name.and_then(|name| self.prompts.iter().enumerate().find(|(_, prompt)| name.is(prompt.name)));
        let (index, prompt) = found.ok_or(Failure::invalid_params("Unknown prompt"))?;
        let given = |name: &str| asked.members.arguments.and_then(|arguments| arguments.get(name));
        let missing = prompt.arguments.iter().any(|argument| argument.required && given(argument.name).is_none());
        if missing {
            return Err(Failure::invalid_params("Invalid params: a required argument of the prompt is missing"));
        }
        if asked.members.arguments.is_some_and(|arguments| !all_texts(arguments)) {
            return Err(Failure::invalid_params("Invalid params: a prompt's arguments are strings"));
        }
        Ok(index)
    }

    /// What completes a value; `None` if nobody does.
    pub(crate) fn find_completion<'a>(&self, asked: &Asked<'a>) -> Result<Option<Completer<S>>, Failure<'a>> {
        const WRONG: Failure<'static> =
            Failure::invalid_params("Invalid params: completion needs a known ref and an argument");
        let reference = asked.members.reference.ok_or(WRONG)?;
        let kind = reference.get("type").and_then(|kind| kind.text()).ok_or(WRONG)?;
        let (name, _) = completed(asked).ok_or(WRONG)?;
        Ok(if kind.is("ref/prompt") {
            let wanted = reference.get("name").and_then(|name| name.text()).ok_or(WRONG)?;
            let prompt = self.prompts.iter().find(|prompt| wanted.is(prompt.name)).ok_or(WRONG)?;
            prompt.complete.filter(|_| prompt.arguments.iter().any(|argument| name.is(argument.name)))
        } else if kind.is("ref/resource") {
            let wanted = reference.get("uri").and_then(|uri| uri.text()).ok_or(WRONG)?;
            self.find_template_completion(&wanted, &name).ok_or(WRONG)?
        } else {
            return Err(WRONG);
        })
    }

    /// The completion of a template's variable; `None` if there is no such template or resource.
    fn find_template_completion(&self, uri: &Text<'_>, variable: &Text<'_>) -> Option<Option<Completer<S>>> {
        if let Some(it) = self.templates.iter().find(|it| uri.is(it.info.uri)) {
            let known = variable.plain().is_some_and(|name| template::has_variable(it.info.uri, name));
            return Some(it.complete.filter(|_| known));
        }
        self.resources.iter().any(|resource| uri.is(resource.info.uri)).then_some(None)
    }
}

/// What finds the template that a URI matches.
pub(crate) type Matching<S> = fn(&[Template<S>], &Text<'_>) -> Option<usize>;

/// The template that a URI matches. One with escapes in it is decoded later; templates take any character.
pub(crate) fn matching<S>(templates: &[Template<S>], uri: &Text<'_>) -> Option<usize> {
    templates.iter().position(|it| match uri.plain() {
        Some(uri) => template::matches(it.info.uri, uri),
        None => template::matches_text(it.info.uri, uri),
    })
}

/// The argument that is to be completed: its name and what has been typed.
pub(crate) fn completed<'a>(asked: &Asked<'a>) -> Option<(Text<'a>, Text<'a>)> {
    let argument = asked.members.argument?;
    Some((argument.get("name")?.text()?, argument.get("value")?.text()?))
}

fn all_texts(object: Raw<'_>) -> bool {
    object.members().all(|(_, value)| value.kind() == JsonKind::String)
}
