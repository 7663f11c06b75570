//! Finds the entry that a request names in the constant tables, and checks what the entry demands of its caller.

use super::context::HandlerInput;
use super::requests::Completer;
use super::{
    Caller, MessageSource, Prompt, PromptInfo, Resource, ResourceTemplate, Service, Tool, ToolInfo, Visibility,
};
use super::{DEFAULT_RESERVE, template};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::Method;
use crate::server::{RequestSlot, RpcError, TransportChecks, words};

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

/// Finds what a URI names that is not in the table of resources.
pub(crate) type Matching<S> = fn(&Service<'_, S>, &S, &MessageSource<'_>, &Text<'_>) -> Option<Target<S>>;

/// The entry that the `ref` of a `completion/complete` names.
enum Reference<'t, S: 'static> {
    Prompt(&'t Prompt<S>),
    Template(&'t ResourceTemplate<S>),
    Resource(&'t Resource<S>),
}

/// The error for a tool that does not exist.
pub(crate) const UNKNOWN_TOOL: RpcError<'static> = RpcError::invalid_params(words("Unknown tool"));

/// The error for a prompt that does not exist.
pub(crate) const UNKNOWN_PROMPT: RpcError<'static> = RpcError::invalid_params(words("Unknown prompt"));

/// The error for a completion of what does not exist.
pub(crate) const UNKNOWN_REFERENCE: RpcError<'static> =
    RpcError::invalid_params(words("Invalid params: completion needs a known ref and an argument"));

// Functions and no closures, which would copy their arguments: 2 % of a `tools/call`, with `call_tool`.

/// Finds the tool that a request names.
pub(crate) fn find_tool<'a, S>(
    service: &Service<'_, S>,
    _: &S,
    origin: &MessageSource<'_>,
    _: &RequestSlot,
    input: &HandlerInput<'a>,
) -> Result<Target<S>, RpcError<'a>> {
    let name = input.members.name.and_then(|name| name.text_of(input.members.plain));
    let Some((index, tool)) = name.and_then(|name| service.tool(&name)) else { return Err(UNKNOWN_TOOL) };
    input.check_tool(index, &tool.info, origin.checks)
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

/// Finds the template that a URI matches.
pub(crate) fn matching<S>(service: &Service<'_, S>, _: &S, _: &MessageSource<'_>, uri: &Text<'_>) -> Option<Target<S>> {
    let (index, template) = service.template(uri)?;
    Some(Target::at(service.resources.len() + index, template.info.reserve))
}

impl<S> Service<'_, S> {
    pub(crate) fn tool(&self, name: &Text<'_>) -> Option<(usize, &Tool<S>)> {
        self.tools.iter().enumerate().find(|(_, tool)| name.eq_str(tool.info.name))
    }

    pub(crate) fn prompt(&self, name: &Text<'_>) -> Option<(usize, &Prompt<S>)> {
        self.prompts.iter().enumerate().find(|(_, prompt)| name.eq_str(prompt.info.name))
    }

    fn resource(&self, uri: &Text<'_>) -> Option<(usize, &Resource<S>)> {
        self.resources.iter().enumerate().find(|(_, resource)| uri.eq_str(resource.info.uri))
    }

    /// Returns the template that a URI matches.
    fn template(&self, uri: &Text<'_>) -> Option<(usize, &ResourceTemplate<S>)> {
        self.templates.iter().enumerate().find(|(_, template)| template::matches_any(template.info.uri, uri))
    }

    /// Returns the entry that the `ref` of a `completion/complete` names.
    fn reference(&self, reference: Raw<'_>) -> Option<Reference<'_, S>> {
        let text = |member| reference.get(member)?.text();
        let kind = text("type")?;
        if kind.eq_str("ref/prompt") {
            return self.prompt(&text("name")?).map(|(_, prompt)| Reference::Prompt(prompt));
        }
        let uri = text("uri").filter(|_| kind.eq_str("ref/resource"))?;
        let template = self.templates.iter().find(|template| uri.eq_str(template.info.uri));
        template.map(Reference::Template).or_else(|| Some(Reference::Resource(self.resource(&uri)?.1)))
    }

    /// Finds the resource at `uri`; templates come after the resources.
    pub(crate) fn find_resource(&self, state: &S, origin: &MessageSource<'_>, uri: &Text<'_>) -> Option<Target<S>> {
        match self.resource(uri) {
            Some((index, resource)) => Some(Target::at(index, resource.info.reserve)),
            None => self.templated?(self, state, origin, uri),
        }
    }

    pub(crate) fn find_prompt<'a>(&self, input: &HandlerInput<'a>) -> Result<Target<S>, RpcError<'a>> {
        let name = input.members.name.and_then(|name| name.text());
        let (index, prompt) = name.and_then(|name| self.prompt(&name)).ok_or(UNKNOWN_PROMPT)?;
        input.check_prompt(index, &prompt.info)
    }

    /// Finds the function that completes a value, if there is one.
    pub(crate) fn find_completion<'a>(&self, input: &HandlerInput<'a>) -> Result<Target<S>, RpcError<'a>> {
        let reference = input.members.reference.and_then(|reference| self.reference(reference));
        let (reference, (name, _)) = reference.zip(input.completed()).ok_or(UNKNOWN_REFERENCE)?;
        let complete = match reference {
            Reference::Prompt(Prompt { info, complete, .. }) => {
                complete.filter(|_| info.arguments.iter().any(|argument| name.eq_str(argument.name)))
            }
            Reference::Template(ResourceTemplate { info, complete, .. }) => {
                complete.filter(|_| name.plain().is_some_and(|name| template::has_variable(info.uri, name)))
            }
            Reference::Resource(_) => None,
        };
        Ok(Target { index: 0, reserve: DEFAULT_RESERVE, complete })
    }
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

    /// Checks a request for the prompt at `index`.
    pub(crate) fn check_prompt<S>(&self, index: usize, info: &PromptInfo<'_>) -> Result<Target<S>, RpcError<'a>> {
        let given = |name: &str| self.members.arguments.and_then(|arguments| arguments.get(name));
        if info.arguments.iter().any(|argument| argument.required && given(argument.name).is_none()) {
            return Err(RpcError::invalid_params(words(
                "Invalid params: a required argument of the prompt is missing",
            )));
        }
        let is_wrong = |arguments: Raw<'_>| arguments.members().any(|(_, value)| value.kind() != JsonKind::String);
        if self.members.arguments.is_some_and(is_wrong) {
            return Err(RpcError::invalid_params(words("Invalid params: a prompt's arguments are strings")));
        }
        Ok(Target::at(index, info.reserve))
    }
}

/// The demands of entries on their callers.
impl<S> Service<'_, S> {
    /// Returns the scopes that a caller needs for the entry of a constant table that a request names, if it
    /// [challenges](Visibility::challenge): 0 for others. `name` is that of a tool or a prompt, or the URI of a resource. For
    /// transports that challenge.
    #[must_use]
    pub fn challenged_scopes(&self, method: &Text<'_>, name: Option<&Text<'_>>) -> u64 {
        let visibility = self.visibility(Method::from_name(method), name);
        visibility.map_or(0, |visibility| if visibility.challenges { visibility.scopes } else { 0 })
    }

    /// Returns the visibility of the entry with this name, or URI.
    fn visibility(&self, method: Method, name: Option<&Text<'_>>) -> Option<&'static Visibility<S>> {
        match method {
            Method::ToolsCall => self.tool(name?)?.1.visible,
            Method::PromptsGet => self.prompt(name?)?.1.visible,
            Method::ResourcesRead | Method::Subscribe => match self.resource(name?) {
                Some((_, resource)) => resource.visible,
                None => self.template(name?)?.1.visible,
            },
            _ => None,
        }
    }

    /// Returns whether a caller may subscribe to a URI.
    pub(crate) fn has_resource(&self, state: &S, origin: &MessageSource<'_>, uri: &Text<'_>) -> bool {
        let (visibility, caller) = (self.visibility(Method::Subscribe, Some(uri)), origin.caller());
        visibility.is_none_or(|it| it.shows(state, caller) && it.has_scopes(caller))
            && self.find_resource(state, origin, uri).is_some()
    }

    /// Checks that the caller may use the entry of a constant table that a request names.
    pub(crate) fn check_caller<'a>(
        &self,
        state: &S,
        caller: &Caller<'_>,
        slot: &RequestSlot,
        input: &HandlerInput<'a>,
    ) -> Result<(), RpcError<'a>> {
        let (method, members) = (slot.method, input.members);
        let name = members.target(method).and_then(|name| name.text());
        let visibility = match members.reference.filter(|_| method == Method::Complete) {
            Some(reference) => self.reference(reference).and_then(|reference| match reference {
                Reference::Prompt(prompt) => prompt.visible,
                Reference::Template(template) => template.visible,
                Reference::Resource(resource) => resource.visible,
            }),
            None => self.visibility(method, name.as_ref()),
        };
        let Some(visibility) = visibility else { return Ok(()) };
        if !visibility.shows(state, caller) {
            return Err(match (method, name) {
                (Method::ToolsCall, _) => UNKNOWN_TOOL,
                (Method::PromptsGet, _) => UNKNOWN_PROMPT,
                (Method::ResourcesRead, Some(uri)) => RpcError::unknown_resource(uri, slot.revision),
                _ => UNKNOWN_REFERENCE,
            });
        }
        match visibility.has_scopes(caller) {
            true => Ok(()),
            false => Err(RpcError::invalid_request(words("Not authorized: the caller lacks a scope"))),
        }
    }
}
