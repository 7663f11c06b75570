//! Tools made at run time, with closures that capture what they need.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Call, Outcome, ToolInfo, Toolbox};
use crate::json::{Fault, Raw, constant};

type Run<S> = Box<dyn Fn(&mut S, &mut Call<'_>) -> Outcome + Send + Sync>;

/// A tool whose words and function are made at run time.
pub struct OwnedTool<S> {
    name: String,
    description: String,
    title: Option<String>,
    input: String,
    output: Option<String>,
    run: Run<S>,
}

impl<S> OwnedTool<S> {
    /// A tool without arguments. `None` for a name that the protocol does not allow (1 to 128 letters, digits, `_`, `-`,
    /// `.`) or without a description.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl Fn(&mut S, &mut Call<'_>) -> Outcome + Send + Sync + 'static,
    ) -> Option<Self> {
        let (name, description) = (name.into(), description.into());
        let allowed = super::define::is_tool_name(&name) && !description.is_empty();
        let tool = || OwnedTool {
            name,
            description,
            title: None,
            input: String::from(super::define::NO_ARGUMENTS),
            output: None,
            run: Box::new(run),
        };
        allowed.then(tool)
    }

    /// The JSON schema of its arguments.
    ///
    /// # Errors
    /// What is wrong with it, if it is no JSON object with `"type": "object"`; [`Fault::Syntax`], if it has an
    /// `x-mcp-header` for which clients leave the tool out, see [`has_valid_headers`](constant::has_valid_headers).
    pub fn input(mut self, schema: impl Into<String>) -> Result<Self, Fault> {
        let is_right = |schema: &str| constant::is_object_schema(schema) && constant::has_valid_headers(schema);
        self.input = checked(schema.into(), is_right)?;
        Ok(self)
    }

    /// The JSON schema of its structured result; before 2026-07-28 only object schemas are told.
    ///
    /// # Errors
    /// What is wrong with it, if it is no JSON object.
    pub fn output(mut self, schema: impl Into<String>) -> Result<Self, Fault> {
        self.output = Some(checked(schema.into(), constant::is_object)?);
        Ok(self)
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// The schema, if it is JSON and what it must be.
fn checked(schema: String, is_right: fn(&str) -> bool) -> Result<String, Fault> {
    Raw::parse(schema.as_bytes())?;
    if is_right(&schema) { Ok(schema) } else { Err(Fault::Syntax) }
}

impl<S> core::fmt::Debug for OwnedTool<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("OwnedTool").field(&self.name).finish()
    }
}

/// Tools made at run time, in order; see [`Service::toolbox`](super::Service::toolbox).
///
/// ```
/// use mcp_sansio::service::{OwnedTool, OwnedTools, Service};
///
/// let greeting = String::from("good morning");
/// let mut tools = OwnedTools::new();
/// tools.push(OwnedTool::new("greet", "Greets", move |_: &mut (), call| call.text(&greeting)).unwrap());
/// let service = Service::new("greeter", "1.0").toolbox(&tools);
/// # let _ = service;
/// ```
#[derive(Debug)]
pub struct OwnedTools<S>(Vec<OwnedTool<S>>);

impl<S> OwnedTools<S> {
    /// No tools.
    #[must_use]
    pub const fn new() -> Self {
        OwnedTools(Vec::new())
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn push(&mut self, tool: OwnedTool<S>) {
        match self.0.iter_mut().find(|known| known.name == tool.name) {
            Some(known) => *known = tool,
            None => self.0.push(tool),
        }
    }

    /// Removes a tool; whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|tool| tool.name != name);
        self.0.len() < before
    }
}

impl<S> Default for OwnedTools<S> {
    fn default() -> Self {
        OwnedTools::new()
    }
}

impl<S> Toolbox<S> for OwnedTools<S> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn info(&self, index: usize) -> Option<ToolInfo<'_>> {
        let tool = self.0.get(index)?;
        let mut info = ToolInfo::checked(&tool.name, &tool.description)?;
        info.title = tool.title.as_deref();
        info.input = &tool.input;
        info.output = tool.output.as_deref();
        Some(info)
    }

    fn run(&self, index: usize, state: &mut S, call: &mut Call<'_>) -> Outcome {
        match self.0.get(index) {
            Some(tool) => (tool.run)(state, call),
            None => Err(crate::server::Failure::invalid_params("Unknown tool").into()),
        }
    }
}
