//! Tools made at run time, with closures.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mcp_sansio::client::views::{ToolView, View as _};
use mcp_sansio::json::{ParseError, Raw, Text, constant};
use mcp_sansio::server::{Icon, RpcError};
use mcp_sansio::service::{Call, Caller, DynamicList, HandlerResult, Tool, ToolAnnotations, ToolInfo, is_tool_name};

type Run<S> = Box<dyn Fn(&mut S, &mut Call<'_>) -> HandlerResult + Send + Sync>;

/// A [tool](https://modelcontextprotocol.io/specification/2025-11-25/server/tools) made at run time, with a closure.
#[must_use]
pub struct OwnedTool<S> {
    name: String,
    description: String,
    title: Option<String>,
    input: Option<String>,
    output: Option<String>,
    hints: ToolAnnotations,
    icons: Vec<OwnedIcon>,
    meta: Option<String>,
    reserve: Option<usize>,
    run: Run<S>,
}

struct OwnedIcon {
    src: String,
    mime: Option<String>,
    sizes: Vec<String>,
    theme: Option<String>,
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
        allowed.then(|| OwnedTool::bare(name, description, Box::new(run)))
    }

    /// Makes a tool under a name of your own with all that another server says of its tool, as a gateway does: description,
    /// title, schemas, annotations, icons and `_meta`. If the name is not allowed, or a schema is not right, the tool is left out
    /// of the list and cannot be called.
    pub fn of(
        name: impl Into<String>,
        tool: &ToolView<'_>,
        run: impl Fn(&mut S, &mut Call<'_>) -> HandlerResult + Send + Sync + 'static,
    ) -> Self {
        let (hints, text) = (tool.hints(), |text: Text<'_>| text.to_string());
        let icons = tool.icons().flatten().map(|icon| OwnedIcon {
            src: icon.src().to_string(),
            mime: icon.mime().map(text),
            sizes: icon.sizes().map(text).collect(),
            theme: icon.theme().map(text),
        });
        let mut annotations = ToolAnnotations::new();
        (annotations.read_only, annotations.destructive) = (hints.read_only_hint(), hints.destructive_hint());
        (annotations.idempotent, annotations.open_world) = (hints.idempotent_hint(), hints.open_world_hint());
        OwnedTool {
            title: tool.title().or_else(|| hints.title()).map(text),
            input: Some(tool.input_schema().to_string()),
            output: tool.output_schema().map(|schema| schema.to_string()),
            hints: annotations,
            icons: icons.collect(),
            meta: tool.meta().map(|meta| meta.to_string()),
            ..OwnedTool::bare(name.into(), tool.description().map(text).unwrap_or_default(), Box::new(run))
        }
    }

    fn bare(name: String, description: String, run: Run<S>) -> Self {
        OwnedTool {
            name,
            description,
            title: None,
            input: None,
            output: None,
            hints: ToolAnnotations::new(),
            icons: Vec::new(),
            meta: None,
            reserve: None,
            run,
        }
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

    /// Sets `annotations`; written from 2025-03-26 on.
    #[doc(alias = "annotations")]
    pub const fn hints(mut self, hints: ToolAnnotations) -> Self {
        self.hints = hints;
        self
    }

    /// Sets `icons`; written from 2025-11-25 on.
    pub fn icons(mut self, icons: &[Icon<'_>]) -> Self {
        let own = |icon: &Icon<'_>| OwnedIcon {
            src: icon.src.to_owned(),
            mime: icon.mime.map(str::to_owned),
            sizes: icon.sizes.iter().map(|size| (*size).to_owned()).collect(),
            theme: icon.theme.map(str::to_owned),
        };
        self.icons = icons.iter().map(own).collect();
        self
    }

    /// Sets `_meta`, a JSON object; written from 2025-06-18 on.
    ///
    /// # Errors
    /// The [`ParseError`] of a text that is not JSON; [`ParseError::Syntax`] if it is not an object.
    pub fn meta(mut self, meta: impl Into<String>) -> Result<Self, ParseError> {
        self.meta = Some(checked(meta.into(), constant::is_object)?);
        Ok(self)
    }

    /// Sets the room that is kept for the reply, in bytes. Default:
    /// [`DEFAULT_RESERVE`](mcp_sansio::service::DEFAULT_RESERVE).
    pub const fn reserve(mut self, bytes: usize) -> Self {
        self.reserve = Some(bytes);
        self
    }

    /// Passes the description to `with`.
    fn describe(&self, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) -> bool {
        let sizes = self.icons.iter().map(|icon| icon.sizes.iter().map(String::as_str).collect::<Vec<_>>());
        let sizes: Vec<_> = sizes.collect();
        let icons = self.icons.iter().zip(&sizes).map(|(icon, sizes)| {
            let mut lent = Icon::new(&icon.src).sizes(sizes);
            (lent.mime, lent.theme) = (icon.mime.as_deref(), icon.theme.as_deref());
            lent
        });
        let icons: Vec<_> = icons.collect();
        let mut info = ToolInfo::new(&self.name, &self.description).icons(&icons);
        (info.title, info.meta) = (self.title.as_deref(), self.meta.as_deref());
        (info.input, info.output) = (self.input.as_deref().unwrap_or(info.input), self.output.as_deref());
        (info.hints, info.reserve) = (self.hints, self.reserve.unwrap_or(info.reserve));
        with(&info)
    }
}

/// Returns the text if it is JSON and `is_right`.
fn checked(text: String, is_right: fn(&str) -> bool) -> Result<String, ParseError> {
    Raw::parse(text.as_bytes())?;
    if is_right(&text) { Ok(text) } else { Err(ParseError::Syntax) }
}

impl<S> std::fmt::Debug for OwnedTool<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnedTool").field(&self.name).finish()
    }
}

/// Tools made at run time, in order; see [`Service::dynamic_tools`](mcp_sansio::service::Service::dynamic_tools). They can
/// change while they are served, from any thread: publish
/// [`ServerChange::Tools`](mcp_sansio::server::ServerChange::Tools) then. A call that has begun goes on with its tool.
///
/// ```
/// use mcp_sansio::protocol::ServerCapability;
/// use mcp_sansio::service::Service;
/// use mcp_sansio_host::{OwnedTool, OwnedTools};
///
/// let greeting = String::from("good morning");
/// let tools = OwnedTools::new();
/// tools.push(OwnedTool::new("greet", "Greets", move |_: &mut (), call| call.text(&greeting)).unwrap());
/// let service = Service::new("greeter", "1.0").dynamic_tools(&tools).feature(ServerCapability::ToolsChanged);
/// // Later, while it is served:
/// tools.remove("greet");
/// # let _ = service;
/// ```
#[derive(Debug)]
pub struct OwnedTools<S>(RwLock<Vec<Arc<OwnedTool<S>>>>);

impl<S> OwnedTools<S> {
    /// Makes an empty list.
    pub const fn new() -> Self {
        OwnedTools(RwLock::new(Vec::new()))
    }

    /// Adds a tool, or replaces the one of the same name.
    pub fn push(&self, tool: OwnedTool<S>) {
        self.replace(|_| false, [tool]);
    }

    /// Removes a tool. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.replace(|known| known == name, []) > 0
    }

    /// Removes the tools whose names `is_old` accepts, and adds others, in one step: a list shows all of it or nothing. A tool
    /// that another thread adds meanwhile stays. Returns the number of tools that were removed.
    pub fn replace(
        &self,
        mut is_old: impl FnMut(&str) -> bool,
        others: impl IntoIterator<Item = OwnedTool<S>>,
    ) -> usize {
        // Nothing of the application runs under the lock, neither these functions nor the drop of a tool: it may use these tools.
        let others: Vec<_> = others.into_iter().map(Arc::new).collect();
        let mut old = self.read().clone();
        old.retain(|tool| is_old(&tool.name));
        let places: HashSet<_> = old.iter().map(Arc::as_ptr).collect();
        let mut gone = Vec::new();
        let mut tools = self.write();
        let before = tools.len();
        tools.retain(|tool| !places.contains(&Arc::as_ptr(tool)));
        let removed = before - tools.len();
        for tool in others {
            match tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => gone.push(std::mem::replace(known, tool)),
                None => tools.push(tool),
            }
        }
        drop(tools);
        drop(gone);
        removed
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Returns whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    // No tool is half changed if a thread panics.
    fn read(&self) -> RwLockReadGuard<'_, Vec<Arc<OwnedTool<S>>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Arc<OwnedTool<S>>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Default for OwnedTools<S> {
    fn default() -> Self {
        OwnedTools::new()
    }
}

impl<S> DynamicList<Tool<S>> for OwnedTools<S> {
    fn list(&self, _: &S, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        let _ = self.read().iter().skip(from).all(|tool| tool.describe(with));
    }

    fn find(&self, _: &S, _: &Caller<'_>, name: &Text<'_>, with: &mut dyn FnMut(usize, &ToolInfo<'_>)) {
        if let Some((at, tool)) = self.read().iter().enumerate().find(|(_, tool)| name.eq_str(&tool.name)) {
            tool.describe(&mut |info| {
                with(at, info);
                false
            });
        }
    }

    fn run(&self, _: usize, state: &mut S, call: &mut Call<'_>) -> HandlerResult {
        // By its name: another thread may have removed one before it. The lock is not held while the tool runs.
        let name = call.name();
        let found = self.read().iter().find(|tool| name.eq_str(&tool.name)).cloned();
        match found {
            Some(tool) => (tool.run)(state, call),
            None => Err(RpcError::invalid_params("Unknown tool").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Conversation;
    use mcp_sansio::client::views::ListToolsResult;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::service::Service;
    use serde_json::{Value, json};

    fn tool(name: &str, text: &'static str) -> OwnedTool<()> {
        OwnedTool::new(name, "A tool", move |(): &mut (), call| call.text(text)).unwrap()
    }

    fn listed(tools: &OwnedTools<()>) -> Value {
        let service = Service::new("owned", "1").dynamic_tools(tools);
        let mut talk = Conversation::new(&service, ());
        talk.open(Revision::V2025_11_25);
        let listed = talk.request("tools/list", &json!({}));
        serde_json::from_str::<Value>(listed.result().as_str()).unwrap()["tools"].take()
    }

    fn names(tools: &OwnedTools<()>) -> Vec<String> {
        listed(tools).as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_is_no_tool_is_refused() {
        let new = |name: &str, description: &str| OwnedTool::new(name, description, |(): &mut (), call| call.text(""));
        assert!(new("a", "A tool").is_some());
        assert!(new("a", "").is_none() && new("", "A tool").is_none() && new("a b", "A tool").is_none());
        let fresh = || tool("a", "");
        for (schema, is_input, is_output) in [
            (r#"{"type":"object"}"#, true, true),
            (r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#, true, true),
            (r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a name"}}}"#, false, true),
            (r#"{"type":"string"}"#, false, true),
            ("[]", false, false),
            (r#"{"type":"object""#, false, false),
            (r#"{"type":"object"}x"#, false, false),
            ("", false, false),
        ] {
            assert_eq!(fresh().input(schema).is_ok(), is_input, "{schema}");
            assert_eq!(fresh().output(schema).is_ok(), is_output, "{schema}");
            assert_eq!(fresh().meta(schema).is_ok(), is_output, "{schema}");
        }
        assert!(matches!(fresh().meta("[]"), Err(ParseError::Syntax)));
    }

    #[test]
    fn a_list_changes_while_it_is_served() {
        let tools = OwnedTools::new();
        assert_eq!((tools.is_empty(), tools.len(), tools.remove("a")), (true, 0, false));
        for name in ["a", "b", "c"] {
            tools.push(tool(name, "old"));
        }
        assert_eq!(
            (tools.len(), tools.is_empty(), names(&tools)),
            (3, false, vec!["a".into(), "b".into(), "c".into()])
        );
        // In its place.
        tools.push(tool("b", "new"));
        assert_eq!(names(&tools), ["a", "b", "c"]);
        let service = Service::new("owned", "1").dynamic_tools(&tools);
        let mut talk = Conversation::new(&service, ());
        talk.open(Revision::V2025_11_25);
        let mut text = |name: &str| talk.call(name, &json!({})).to_string();
        assert!(text("a").contains("old") && text("b").contains("new") && text("c").contains("old"));
        assert!(tools.remove("a") && !tools.remove("a"));
        assert!(text("a").contains("-32602") && text("c").contains("old"));
        assert_eq!(tools.replace(|name| name != "x", [tool("d", "d"), tool("e", "e")]), 2);
        assert_eq!(names(&tools), ["d", "e"]);
        assert_eq!(tools.replace(|_| false, [tool("e", "again"), tool("f", "f")]), 0);
        assert_eq!(names(&tools), ["d", "e", "f"]);
        assert!(text("e").contains("again"));
    }

    /// A tool that uses the list when it is dropped, and functions that do so while the list changes.
    #[test]
    fn the_list_can_be_used_while_it_changes() {
        struct Counts(std::sync::Weak<OwnedTools<()>>, std::sync::mpsc::Sender<usize>);
        impl Drop for Counts {
            fn drop(&mut self) {
                let Some(tools) = self.0.upgrade() else { return };
                tools.push(tool("dropped", ""));
                let _ = self.1.send(tools.len());
            }
        }
        let (send, lens) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            let tools = Arc::new(OwnedTools::new());
            let counting = |name: &str| {
                let counts = Counts(Arc::downgrade(&tools), send.clone());
                OwnedTool::new(name, "A tool", move |(): &mut (), call| {
                    let _ = &counts;
                    call.text("")
                })
                .unwrap()
            };
            tools.push(counting("a"));
            tools.push(counting("b"));
            tools.push(tool("a", "in its place"));
            assert!(tools.remove("b"));
            tools.push(counting("c"));
            let removed = tools.replace(
                |name| {
                    tools.push(tool("asked", ""));
                    name == "c"
                },
                [tool("d", "")],
            );
            assert_eq!((removed, names(&tools)), (1, ["a", "dropped", "asked", "d"].map(String::from).to_vec()));
        });
        for expected in [3, 2, 4] {
            assert_eq!(lens.recv_timeout(std::time::Duration::from_secs(20)), Ok(expected), "it waits for itself");
        }
        worker.join().unwrap();
    }

    #[test]
    fn a_tool_of_another_server_is_listed_as_there() {
        let theirs = json!({
            "name": "theirs", "title": "Title", "description": "Says it all",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
            "outputSchema": {"type": "object", "properties": {"b": {"type": "string"}}},
            "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
            "icons": [
                {"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["1x1", "any"], "theme": "dark"},
                {"src": "https://example.com/b.png"},
            ],
            "_meta": {"example.com/a": 1},
        });
        let bare = json!({"name": "bare", "description": "", "inputSchema": {"type": "object", "properties": {}}});
        let text = json!({"tools": [theirs, bare]}).to_string();
        let views = ListToolsResult::of(Raw::parse(text.as_bytes()).unwrap()).unwrap();
        let tools = OwnedTools::new();
        for (name, view) in ["theirs", "bare"].into_iter().zip(views.iter().flatten()) {
            tools.push(OwnedTool::of(name, &view, |(): &mut (), call| call.text("")));
        }
        assert_eq!(listed(&tools), json!([theirs, bare]));
        // A title in the annotations, as older servers write it, is the title.
        let old =
            json!({"tools": [{"name": "old", "inputSchema": {"type": "object"}, "annotations": {"title": "Old"}}]});
        let text = old.to_string();
        let views = ListToolsResult::of(Raw::parse(text.as_bytes()).unwrap()).unwrap();
        let view = views.iter().flatten().next().unwrap();
        tools.push(OwnedTool::of("bare", &view, |(): &mut (), call| call.text("")));
        assert_eq!(listed(&tools)[1]["title"], "Old");
    }

    #[test]
    fn what_was_set_is_listed() {
        let full = tool("full", "").title("Full").input(r#"{"type":"object","properties":{"a":{}}}"#).unwrap();
        let full = full.output(r#"{"type":"object"}"#).unwrap().meta(r#"{"a.example/x":1}"#).unwrap();
        let hints = ToolAnnotations::new().destructive(true).open_world(false);
        let icons = [Icon::new("https://example.com/i.png").mime("image/png").sizes(&["1x1"]).theme("dark")];
        let tools = OwnedTools::new();
        tools.push(full.hints(hints).icons(&icons));
        let expected = json!([{
            "name": "full", "title": "Full", "description": "A tool",
            "inputSchema": {"type": "object", "properties": {"a": {}}}, "outputSchema": {"type": "object"},
            "annotations": {"destructiveHint": true, "openWorldHint": false},
            "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["1x1"], "theme": "dark"}],
            "_meta": {"a.example/x": 1},
        }]);
        assert_eq!(listed(&tools), expected);
    }
}
