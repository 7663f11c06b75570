//! The tools of examples/calc.rs on rmcp, as its own examples write them.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Clone)]
pub struct Calc;

#[tool_router]
impl Calc {
    #[tool(description = "Adds two integers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (i128::from(a) + i128::from(b)).to_string()
    }

    #[tool(description = "Gives a text back")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }
}

#[tool_handler]
impl ServerHandler for Calc {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
