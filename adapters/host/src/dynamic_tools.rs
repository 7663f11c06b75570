//! Tools made at run time, with closures.

use mcp_sansio::json::{ParseError, Raw, constant};
use mcp_sansio::server::RpcError;
use mcp_sansio::service::{Call, DynamicTools, HandlerResult, ToolInfo, is_tool_name};

type Run<S> = Box<dyn Fn(&mut S, &mut Call<'_>) -> HandlerResult + Send + Sync>;

/// A [tool](https://modelcontextprotocol.io/specification/2025-11-25/server/tools) made at run time, with a closure.
#[must_use]
pub struct OwnedTool<S> {
    name: String,
    description: String,
    title: Option<String>,
    input: Option<String>,
    output: Option<String>,
    run: Run<S>,
}

impl<S> OwnedTool<S> {
    /// Makes a tool without arguments. Returns `None` if [`is_tool_name`] refuses the name, or the description is empty.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl Fn(&mut S, &mut Call<'_>) -> HandlerResult + Send + Sync + 'static,
    ) -> Option<Self> {
        let (name, description) = (name.into(), description.into());
        let allowed = is_tool_name(&name) && !description.is_empty();
        let tool = || OwnedTool { name, description, title: None, input: None, output: None, run: Box::new(run) };
        allowed.then(tool)
    }

    /// Sets `inputSchema`.
    ///
    /// # Errors
    /// The [`ParseError`] of a schema that is not JSON. [`ParseError::Syntax`] if it is not an object with
    /// `"type": "object"`, or if it has an `x-mcp-header` for which clients exclude the tool, see
    /// [`has_valid_headers`](constant::has_valid_headers).
    pub fn input(mut self, schema: impl Into<String>) -> Result<Self, ParseError> {
        let is_right = |schema: &str| constant::is_object_schema(schema) && constant::has_valid_headers(schema);
        self.input = Some(checked(schema.into(), is_right)?);
        Ok(self)
    }

    /// Sets `outputSchema`, a JSON object; written from 2025-06-18 on, and before 2026-07-28 only if its type is `object`.
    ///
    /// # Errors
    /// The [`ParseError`] of a schema that is not JSON; [`ParseError::Syntax`] if it is not an object.
    pub fn output(mut self, schema: impl Into<String>) -> Result<Self, ParseError> {
        self.output = Some(checked(schema.into(), constant::is_object)?);
        Ok(self)
    }

    /// Sets `title`, a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// Returns the schema if it is JSON and `is_right`.
fn checked(schema: String, is_right: fn(&str) -> bool) -> Result<String, ParseError> {
    Raw::parse(schema.as_bytes())?;
    if is_right(&schema) { Ok(schema) } else { Err(ParseError::Syntax) }
}

impl<S> std::fmt::Debug for OwnedTool<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnedTool").field(&self.name).finish()
    }
}

/// Tools made at run time, in order; see [`Service::toolbox`](mcp_sansio::service::Service::toolbox).
///
/// ```
/// use mcp_sansio::service::Service;
/// use mcp_sansio_host::{OwnedTool, OwnedTools};
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
    /// Makes an empty list.
    pub const fn new() -> Self {
        OwnedTools(Vec::new())
    }

    /// Adds a tool, or replaces the one of the same name.
    pub fn push(&mut self, tool: OwnedTool<S>) {
        match self.0.iter_mut().find(|known| known.name == tool.name) {
            Some(known) => *known = tool,
            None => self.0.push(tool),
        }
    }

    /// Removes a tool. Returns whether there was one.
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

impl<S> DynamicTools<S> for OwnedTools<S> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn info(&self, index: usize) -> Option<ToolInfo<'_>> {
        let tool = self.0.get(index)?;
        let mut info = ToolInfo::checked(&tool.name, &tool.description)?;
        info.title = tool.title.as_deref();
        info.input = tool.input.as_deref().unwrap_or(info.input);
        info.output = tool.output.as_deref();
        Some(info)
    }

    fn run(&self, index: usize, state: &mut S, call: &mut Call<'_>) -> HandlerResult {
        match self.0.get(index) {
            Some(tool) => (tool.run)(state, call),
            None => Err(RpcError::invalid_params("Unknown tool").into()),
        }
    }
}
