//! A child for the gateway, whose tools change while it runs: each name that it learns is a tool.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Call, Caller, DynamicList, HandlerResult, Service, Tool, ToolInfo, tool};

struct Learned;

impl DynamicList<Tool<Vec<String>>> for Learned {
    fn list(&self, learned: &Vec<String>, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        let _ = learned.iter().skip(from).all(|name| with(&ToolInfo::new(name, "Says its name")));
    }

    fn run(&self, key: usize, learned: &mut Vec<String>, call: &mut Call<'_>) -> HandlerResult {
        call.text(format_args!("I am {}", learned[key]))
    }
}

/// Learns a tool
#[tool]
fn learn(learned: &mut Vec<String>, call: &mut Call<'_>, #[arguments] name: String) -> HandlerResult {
    learned.push(name);
    call.log_data(Some("learner"), LoggingLevel::Warning, Raw::constant(r#"{"learned":1}"#));
    call.publish(ServerChange::Tools);
    call.text("learned")
}

static TOOLS: &[Tool<Vec<String>>] = &[LEARN];

fn main() -> std::io::Result<()> {
    let service = Service::new("learner", "1.0")
        .tools(TOOLS)
        .dynamic_tools(&Learned)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::Logging);
    smol::block_on(mcp_sansio_smol::serve_stdio(&service, &mut Vec::new()))
}
