//! Finds what an entry of a constant table demands of its caller, and checks it.

use super::linked::{HandlerInput, UNKNOWN_PROMPT, UNKNOWN_REFERENCE, UNKNOWN_TOOL};
use super::{Caller, Service, Visibility, template};
use crate::json::{Raw, Text};
use crate::protocol::Method;
use crate::server::{RequestSlot, RpcError, words};

impl<S> Service<'_, S> {
    /// Returns the scopes that a caller needs for the entry of a constant table that a request names, if it
    /// [challenges](Visibility::challenge): 0 for others. `name` is that of a tool or a prompt, or the URI of a resource. For
    /// transports that challenge.
    #[must_use]
    pub fn challenged_scopes(&self, method: &Text<'_>, name: Option<&Text<'_>>) -> u64 {
        let visibility = match (Method::from_name(method), name) {
            (Method::ToolsCall, Some(name)) => self.tool_visibility(name),
            (Method::PromptsGet, Some(name)) => self.prompt_visibility(name),
            (Method::ResourcesRead | Method::Subscribe, Some(uri)) => self.resource_visibility(uri),
            _ => None,
        };
        visibility.map_or(0, |visibility| if visibility.challenges { visibility.scopes } else { 0 })
    }

    fn tool_visibility(&self, name: &Text<'_>) -> Option<&'static Visibility<S>> {
        self.tools.iter().find(|tool| name.eq_str(tool.info.name))?.visible
    }

    fn prompt_visibility(&self, name: &Text<'_>) -> Option<&'static Visibility<S>> {
        self.prompts.iter().find(|prompt| name.eq_str(prompt.info.name))?.visible
    }

    fn resource_visibility(&self, uri: &Text<'_>) -> Option<&'static Visibility<S>> {
        match self.resources.iter().find(|resource| uri.eq_str(resource.info.uri)) {
            Some(resource) => resource.visible,
            None => self.templates.iter().find(|it| template::matches_any(it.info.uri, uri))?.visible,
        }
    }

    /// Returns whether a client may subscribe to a URI, as far as the constant tables say.
    pub(crate) fn shows_resource(&self, state: &S, caller: &Caller<'_>, uri: &Text<'_>) -> bool {
        let visibility = self.resource_visibility(uri);
        visibility.is_none_or(|it| it.shows(state, caller) && it.has_scopes(caller))
    }

    /// Checks that the caller may use the entry of a constant table that a request names.
    pub(crate) fn check_caller<'a>(
        &self,
        state: &S,
        caller: &Caller<'_>,
        slot: &RequestSlot,
        input: &HandlerInput<'a>,
    ) -> Result<(), RpcError<'a>> {
        let members = input.members;
        let name = members.name.and_then(|name| name.text());
        let uri = members.uri.and_then(|uri| uri.text());
        let visibility = match slot.method {
            Method::ToolsCall => name.and_then(|name| self.tool_visibility(&name)),
            Method::PromptsGet => name.and_then(|name| self.prompt_visibility(&name)),
            Method::ResourcesRead => uri.and_then(|uri| self.resource_visibility(&uri)),
            Method::Complete => members.reference.and_then(|of| self.completed_visibility(of)),
            _ => None,
        };
        let Some(visibility) = visibility else { return Ok(()) };
        if !visibility.shows(state, caller) {
            return Err(match (slot.method, uri) {
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

    /// Returns the visibility of the prompt, template or resource that a `completion/complete` refers to.
    fn completed_visibility(&self, reference: Raw<'_>) -> Option<&'static Visibility<S>> {
        if reference.get("type")?.text()?.eq_str("ref/prompt") {
            return self.prompt_visibility(&reference.get("name")?.text()?);
        }
        let uri = reference.get("uri")?.text()?;
        match self.templates.iter().find(|it| uri.eq_str(it.info.uri)) {
            Some(template) => template.visible,
            None => self.resources.iter().find(|resource| uri.eq_str(resource.info.uri))?.visible,
        }
    }
}
