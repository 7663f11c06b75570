//! Tasks on rmcp 2.2, the last one with those of 2025-11-25: a server.

use std::sync::Arc;
use std::time::Duration;

// The macro `task_handler` writes this name.
use rmcp_2 as rmcp;

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::OperationProcessor;
use rmcp::{ErrorData as McpError, ServerHandler, task_handler};
use serde_json::json;
use tokio::sync::Mutex;

#[derive(Clone)]
pub struct Kitchen {
    processor: Arc<Mutex<OperationProcessor>>,
}

impl Kitchen {
    pub fn new() -> Self {
        Kitchen { processor: Arc::new(Mutex::new(OperationProcessor::new())) }
    }
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

#[task_handler]
impl ServerHandler for Kitchen {
    fn get_info(&self) -> ServerInfo {
        let tasks = TasksCapability::server_default();
        ServerInfo::new(ServerCapabilities::builder().enable_tools().enable_tasks_with(tasks).build())
            .with_server_info(Implementation::new("tasks-rmcp-2", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, McpError> {
        let schema = json!({"type": "object", "properties": {"cups": {"type": "integer"}}});
        let tool = |name| json!({"name": name, "inputSchema": schema, "execution": {"taskSupport": "required"}});
        let tools: Vec<_> = ["brew", "break", "fail", "order", "run"].map(tool).into();
        serde_json::from_value(json!({"tools": tools}))
            .map_err(|error| McpError::internal_error(error.to_string(), None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, McpError> {
        let cups = request.arguments.as_ref().and_then(|all| all.get("cups")?.as_u64()).unwrap_or(1);
        match request.name.as_ref() {
            "brew" => {
                tokio::time::sleep(Duration::from_millis(cups * 300)).await;
                Ok(text(format!("{cups} cups of coffee")))
            }
            "break" => Ok(CallToolResult::error(vec![ContentBlock::text("The machine is broken")])),
            "fail" => Err(McpError::internal_error("The machine is on fire", None)),
            "order" => {
                let schema = ElicitationSchema::builder().required_bool("milk").build();
                let requested_schema = schema.map_err(|error| McpError::internal_error(error, None))?;
                let message = "Do you take milk?".into();
                let form = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
                let answer = context.peer.create_elicitation(form).await;
                let answer = answer.map_err(|error| McpError::internal_error(error.to_string(), None))?;
                Ok(text(format!("milk {}", json!(answer)["content"]["milk"])))
            }
            "run" => std::future::pending().await,
            other => Err(McpError::invalid_params(format!("no tool {other}"), None)),
        }
    }
}
