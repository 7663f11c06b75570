//! Tables that are made at run time from texts of others, such as those of a C program: with errors in place of panics.

use super::definition::{
    Prompt, PromptInfo, Resource, ResourceInfo, ResourceTemplate, Tool, ToolInfo, any_prompt_hides, any_resource_hides,
    any_template_hides, any_tool_hides, is_tool_name, unique_prompts, unique_resources, unique_templates, unique_tools,
};
use super::template;
use super::{Call, GetPrompt, HandlerResult, ReadResource, Service};
use crate::json::{JsonKind, Raw, constant};

/// The reason why an entry cannot be in a table, see the rules of [`Tool`], [`Resource`], [`ResourceTemplate`] and [`Prompt`].
///
/// ```
/// use mcp_sansio::service::{Call, DefinitionError, HandlerResult, Service, Tool, ToolInfo};
///
/// fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     call.text("hello")
/// }
/// // Texts that a configuration brings, and that live as long as the program.
/// let wrong = Tool::checked(ToolInfo::new("two words", "Says hello"), hello);
/// assert_eq!(wrong.err(), Some(DefinitionError::Tool));
/// let tools = [Tool::checked(ToolInfo::new("hello", "Says hello"), hello)?];
/// let service = Service::new("greeter", "1.0").checked_tools(&tools)?;
/// # let _ = service;
/// # Ok::<(), DefinitionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name, a schema or `_meta` of a tool is not allowed.
    Tool,
    /// There is no description.
    Description,
    /// The URI of a resource has no scheme, or characters that RFC 3986 escapes.
    Uri,
    /// A URI template has no scheme, no variable, or braces that are not balanced.
    Template,
    /// A prompt has no name, or its `_meta` is not a JSON object.
    Prompt,
    /// Two entries have the same name or URI.
    Duplicate,
    /// An entry has a [visibility](super::Visibility), which takes a table of constants: what it needs is linked only there.
    Visibility,
}

impl DefinitionError {
    /// Returns the rule that was broken, in words.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            DefinitionError::Tool => {
                "a tool's name has 1 to 128 letters, digits, '_', '-', '.'; its schemas are JSON, the input's of type object"
            }
            DefinitionError::Description => "a description is needed",
            DefinitionError::Uri => "a URI has a scheme, and % before what RFC 3986 escapes",
            DefinitionError::Template => "a URI template has a scheme, and braces that are balanced and name variables",
            DefinitionError::Prompt => "a prompt needs a name",
            DefinitionError::Duplicate => "two entries have the same name or URI",
            DefinitionError::Visibility => "an entry with a visibility belongs into a constant table",
        }
    }
}

impl core::fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for DefinitionError {}

/// Returns the error unless the rule holds.
const fn rule(holds: bool, error: DefinitionError) -> Result<(), DefinitionError> {
    if holds { Ok(()) } else { Err(error) }
}

impl<S> Tool<S> {
    /// Makes a tool from a description that is made at run time. An `x-mcp-header` in its schema is not looked at: see
    /// [`has_valid_headers`](constant::has_valid_headers).
    ///
    /// # Errors
    /// [`DefinitionError::Tool`] or [`DefinitionError::Description`], where [`Tool::new`] and its setters panic.
    pub fn checked(
        info: ToolInfo<'static>,
        run: fn(&mut S, &mut Call<'_>) -> HandlerResult,
    ) -> Result<Self, DefinitionError> {
        // By the reader of messages, which every program has: the one of constants would be 1.2 KB more.
        let object = |text: Option<&'static str>| match text.map(|text| Raw::parse(text.as_bytes())) {
            Some(Ok(raw)) => raw.kind() == JsonKind::Object,
            other => other.is_none(),
        };
        let kind = Raw::parse(info.input.as_bytes()).ok().and_then(|schema| schema.get("type")?.text());
        let is_schema = kind.is_some_and(|kind| kind.eq_str("object"));
        let sound = is_tool_name(info.name) && is_schema && object(info.output) && object(info.meta);
        rule(sound, DefinitionError::Tool)?;
        rule(!info.description.is_empty(), DefinitionError::Description)?;
        Ok(Tool::of(info, run))
    }
}

impl<S> Resource<S> {
    /// Makes a resource from a description that is made at run time.
    ///
    /// # Errors
    /// [`DefinitionError::Uri`], where [`Resource::new`] panics.
    pub const fn checked(
        info: ResourceInfo<'static>,
        read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult,
    ) -> Result<Self, DefinitionError> {
        if !constant::is_uri(info.uri, false) {
            return Err(DefinitionError::Uri);
        }
        Ok(Resource {
            info,
            read,
            visible: None,
            #[cfg(feature = "windows")]
            source: None,
        })
    }
}

impl<S> ResourceTemplate<S> {
    /// Makes a template from a description that is made at run time.
    ///
    /// # Errors
    /// [`DefinitionError::Template`], where [`ResourceTemplate::new`] panics.
    pub const fn checked(
        info: ResourceInfo<'static>,
        read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult,
    ) -> Result<Self, DefinitionError> {
        if !template::is_valid(info.uri) || !constant::is_uri(info.uri, true) {
            return Err(DefinitionError::Template);
        }
        Ok(ResourceTemplate {
            info,
            read,
            visible: None,
            complete: None,
            #[cfg(feature = "windows")]
            source: None,
        })
    }
}

impl<S> Prompt<S> {
    /// Makes a prompt from a description that is made at run time.
    ///
    /// # Errors
    /// [`DefinitionError::Prompt`] or [`DefinitionError::Description`], where [`Prompt::new`] panics.
    pub fn checked(
        info: PromptInfo<'static>,
        get: fn(&mut S, &mut GetPrompt<'_>) -> HandlerResult,
    ) -> Result<Self, DefinitionError> {
        rule(info.is_sound(), DefinitionError::Prompt)?;
        rule(!info.description.is_empty(), DefinitionError::Description)?;
        Ok(Prompt { info, get, complete: None, visible: None })
    }
}

impl<'t, S> Service<'t, S> {
    /// Sets the tools, as [`tools`](Service::tools) does.
    ///
    /// # Errors
    /// [`DefinitionError::Duplicate`], where that panics; [`DefinitionError::Visibility`]. This holds for the next three too.
    pub const fn checked_tools(self, tools: &'t [Tool<S>]) -> Result<Self, DefinitionError> {
        if any_tool_hides(tools) {
            return Err(DefinitionError::Visibility);
        }
        if unique_tools(tools) { Ok(self.set_tools(tools)) } else { Err(DefinitionError::Duplicate) }
    }

    /// Sets the resources, as [`resources`](Service::resources) does.
    ///
    /// # Errors
    /// As [`checked_tools`](Service::checked_tools).
    pub const fn checked_resources(self, resources: &'t [Resource<S>]) -> Result<Self, DefinitionError> {
        if any_resource_hides(resources) {
            return Err(DefinitionError::Visibility);
        }
        if unique_resources(resources) { Ok(self.set_resources(resources)) } else { Err(DefinitionError::Duplicate) }
    }

    /// Sets the templates, as [`templates`](Service::templates) does.
    ///
    /// # Errors
    /// As [`checked_tools`](Service::checked_tools).
    pub const fn checked_templates(self, templates: &'t [ResourceTemplate<S>]) -> Result<Self, DefinitionError> {
        if any_template_hides(templates) {
            return Err(DefinitionError::Visibility);
        }
        if unique_templates(templates) { Ok(self.set_templates(templates)) } else { Err(DefinitionError::Duplicate) }
    }

    /// Sets the prompts, as [`prompts`](Service::prompts) does.
    ///
    /// # Errors
    /// As [`checked_tools`](Service::checked_tools).
    pub const fn checked_prompts(self, prompts: &'t [Prompt<S>]) -> Result<Self, DefinitionError> {
        if any_prompt_hides(prompts) {
            return Err(DefinitionError::Visibility);
        }
        if unique_prompts(prompts) { Ok(self.set_prompts(prompts)) } else { Err(DefinitionError::Duplicate) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Visibility;
    use super::*;

    fn call(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
        call.text("")
    }

    fn read(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
        read.text("")
    }

    fn get(_: &mut (), get: &mut GetPrompt<'_>) -> HandlerResult {
        get.user("")
    }

    #[test]
    fn wrong_entries_are_refused() {
        let tool = |info| Tool::checked(info, call).err();
        let good = ToolInfo::new("a", "A");
        assert_eq!(tool(good), None);
        assert_eq!(tool(ToolInfo::new("a b", "A")), Some(DefinitionError::Tool));
        assert_eq!(tool(ToolInfo::new("a", "")), Some(DefinitionError::Description));
        for schema in ["", "{", "[]", r#"{"type":"string"}"#, r#"{"type":["object"]}"#] {
            assert_eq!(tool(good.input(schema)), Some(DefinitionError::Tool), "{schema}");
        }
        assert_eq!(tool(good.output("[]")), Some(DefinitionError::Tool));
        assert_eq!(tool(good.meta("1")), Some(DefinitionError::Tool));
        let uri = |uri| ResourceInfo::new(uri, "a");
        assert_eq!(Resource::checked(uri("a://b"), read).err(), None);
        assert_eq!(Resource::checked(uri("a b"), read).err(), Some(DefinitionError::Uri));
        assert_eq!(ResourceTemplate::checked(uri("a://{b}"), read).err(), None);
        for template in ["a://b", "a://{b", "{b}"] {
            assert_eq!(
                ResourceTemplate::checked(uri(template), read).err(),
                Some(DefinitionError::Template),
                "{template}"
            );
        }
        assert_eq!(Prompt::checked(PromptInfo::new("", "A"), get).err(), Some(DefinitionError::Prompt));
        assert_eq!(Prompt::checked(PromptInfo::new("a", ""), get).err(), Some(DefinitionError::Description));
    }

    #[test]
    fn an_entry_twice_is_refused() {
        let service = || Service::<()>::new("test", "1");
        let tools = [ToolInfo::new("a", "A"), ToolInfo::new("a", "B")].map(|info| Tool::checked(info, call).unwrap());
        assert_eq!(service().checked_tools(&tools).err(), Some(DefinitionError::Duplicate));
        assert!(service().checked_tools(&tools[..1]).is_ok());
        static HIDDEN: Visibility<()> = Visibility::scopes(1);
        let hidden = [Tool::checked(ToolInfo::new("a", "A"), call).unwrap().visible(&HIDDEN)];
        assert_eq!(service().checked_tools(&hidden).err(), Some(DefinitionError::Visibility));
        let resources = ["a:b", "a:b"].map(|uri| Resource::checked(ResourceInfo::new(uri, "a"), read).unwrap());
        assert_eq!(service().checked_resources(&resources).err(), Some(DefinitionError::Duplicate));
        let templates =
            ["a:{b}", "a:{b}"].map(|uri| ResourceTemplate::checked(ResourceInfo::new(uri, "a"), read).unwrap());
        assert_eq!(service().checked_templates(&templates).err(), Some(DefinitionError::Duplicate));
        let prompts = ["a", "a"].map(|name| Prompt::checked(PromptInfo::new(name, "A"), get).unwrap());
        assert_eq!(service().checked_prompts(&prompts).err(), Some(DefinitionError::Duplicate));
    }
}
