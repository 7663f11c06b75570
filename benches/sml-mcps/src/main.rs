//! The tools of examples/calc.rs on sml_mcps, as its own examples write them: `bench-sml-mcps`, or `bench-sml-mcps http PORT`.

use serde_json::{Value, json};
use sml_mcps::{CallToolResult, HttpServer, McpError, Result, Server, ServerConfig, StdioTransport, Tool, ToolEnv};

struct Add;

impl Tool<()> for Add {
    fn name(&self) -> &str {
        "add"
    }
    fn description(&self) -> &str {
        "Adds two integers"
    }
    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]})
    }
    fn execute(&self, args: Value, _: &mut (), _: &ToolEnv) -> Result<CallToolResult> {
        let number =
            |name| args[name].as_i64().map(i128::from).ok_or_else(|| McpError::InvalidParams(format!("no {name}")));
        Ok(CallToolResult::text((number("a")? + number("b")?).to_string()))
    }
}

struct Echo;

impl Tool<()> for Echo {
    fn name(&self) -> &str {
        "echo"
    }
    fn description(&self) -> &str {
        "Gives a text back"
    }
    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    }
    fn execute(&self, args: Value, _: &mut (), _: &ToolEnv) -> Result<CallToolResult> {
        let text = args["text"].as_str().ok_or_else(|| McpError::InvalidParams("no text".into()))?;
        Ok(CallToolResult::text(text))
    }
}

fn offer(server: &mut Server<()>) -> Result<()> {
    server.add_tool(Add)?;
    server.add_tool(Echo)
}

fn main() -> Result<()> {
    let config = ServerConfig { name: "calc".into(), version: "1".into(), ..ServerConfig::default() };
    if let Some(port) = std::env::args().nth(2) {
        return HttpServer::new(config).with_tools(offer).serve(&format!("127.0.0.1:{port}"), || ());
    }
    let mut server = Server::new(config);
    offer(&mut server)?;
    server.start(StdioTransport::new(), ())
}
