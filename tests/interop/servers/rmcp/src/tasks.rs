//! Tasks on rmcp 3: a server with the extension of 2026-07-28, and a client that follows the tasks of our example `brew`.

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleClient, RoleServer, RunningService, ServiceError};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use rmcp::{ClientLifecycleMode, ClientServiceExt, ErrorData, ServerHandler};
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub struct Kitchen {
    tasks: TaskManager,
}

/// Asks one question of a task.
async fn ask(task: &TaskContext, key: &str, request: Value) -> Result<Value, TaskExit> {
    task.request_input(key, crate::read(request)?).await
}

fn form(field: &str) -> Value {
    let properties = json!({field: {"type": "boolean"}});
    let schema = json!({"type": "object", "properties": properties, "required": [field]});
    let message = format!("Do you take {field}?");
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

async fn work(task: TaskContext, name: String, cups: u64) -> Result<CallToolResult, TaskExit> {
    match name.as_str() {
        "brew" => {
            tokio::time::sleep(Duration::from_millis(cups * 150)).await;
            task.set_status_message("It drips");
            tokio::time::sleep(Duration::from_millis(cups * 150)).await;
            Ok(text(format!("{cups} cups of coffee")))
        }
        "break" => Ok(CallToolResult::error(vec![ContentBlock::text("The machine is broken")])),
        "fail" => {
            Err(ErrorData::new(ErrorCode(-32050), "The machine is on fire", Some(json!({"degrees": 900}))).into())
        }
        "order" => {
            // Both questions at once.
            let (milk, sugar) =
                tokio::join!(ask(&task, "milk", form("milk")), ask(&task, "a \"sugar\"", form("sugar")));
            Ok(text(format!("milk {}, sugar {}", milk?["content"]["milk"], sugar?["content"]["sugar"])))
        }
        "roots" => {
            let roots = ask(&task, "roots", json!({"method": "roots/list"})).await?;
            Ok(text(roots["roots"][0]["uri"].as_str().unwrap_or("no roots")))
        }
        "run" => {
            task.cancelled().await;
            Err(TaskExit::Cancelled)
        }
        "stubborn" => {
            task.cancelled().await;
            Ok(text("done anyway"))
        }
        other => Err(ErrorData::invalid_params(format!("no tool {other}"), None).into()),
    }
}

impl ServerHandler for Kitchen {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(Implementation::new("tasks-rmcp", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"cups": {"type": "integer"}}});
        let names = ["brew", "break", "fail", "order", "roots", "run", "stubborn"];
        let tools: Vec<_> = names.iter().map(|name| json!({"name": name, "inputSchema": schema})).collect();
        crate::read(json!({"tools": tools}))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.clone().unwrap_or_default());
        let (name, cups) = (request.name.to_string(), args["cups"].as_u64().unwrap_or(1));
        if name == "brew" && !context.client_capabilities().is_some_and(|all| all.supports_tasks()) {
            return Ok(text(format!("{cups} cups of instant coffee")).into());
        }
        // If the client does not know tasks, rmcp refuses in place of this result.
        let options =
            TaskOptions::new().with_ttl_ms(600_000).with_poll_interval_ms(100).with_status_message("It heats");
        let task = self.tasks.spawn(options, move |task| Box::pin(work(task, name, cups)));
        Ok(CreateTaskResult::new(task).into())
    }

    async fn get_task(&self, of: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&of.task_id)?))
    }

    async fn update_task(&self, of: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&of.task_id, of.input_responses)
    }

    async fn cancel_task(&self, of: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&of.task_id)
    }
}

type Failed = Box<dyn Error>;
type Client = RunningService<RoleClient, ClientConfig>;

fn check(name: &str, found: impl Into<Value>, wanted: Value) -> Result<(), Failed> {
    let found = found.into();
    if found != wanted {
        return Err(format!("{name}: found {found}, wanted {wanted}").into());
    }
    println!("pass  rmcp    {name}");
    Ok(())
}

async fn connect(
    command: &[String],
    tasks: bool,
    mode: ClientLifecycleMode,
) -> Result<(Client, tokio::process::Child), Failed> {
    let mut command_line = tokio::process::Command::new(&command[0]);
    let command_line = command_line.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command_line.kill_on_drop(true).spawn()?;
    let pipes = (server.stdout.take().ok_or("no stdout")?, server.stdin.take().ok_or("no stdin")?);
    let all = ClientCapabilities::builder().enable_elicitation();
    let capabilities = if tasks { all.enable_tasks().build() } else { all.build() };
    let client = ClientConfig::new(capabilities, Implementation::new("interop", "1"));
    Ok((client.serve_with_lifecycle(pipes, mode).await?, server))
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

async fn call(client: &Client, name: &'static str) -> Result<CallToolResponse, Failed> {
    let arguments = json!({"cups": 2}).as_object().cloned().unwrap_or_default();
    Ok(client.call_tool_once(CallToolRequestParams::new(name).with_arguments(arguments)).await?)
}

async fn begin(client: &Client, name: &'static str) -> Result<Task, Failed> {
    match call(client, name).await? {
        CallToolResponse::Task(created) => Ok(created.task),
        other => Err(format!("{name} is no task: {other:?}").into()),
    }
}

/// Polls a task, and answers its questions, until it has ended.
async fn end(client: &Client, id: &str) -> Result<Value, Failed> {
    loop {
        let task = client.get_task(GetTaskParams::new(id)).await?.task;
        match &task.payload {
            TaskPayload::Working => {}
            TaskPayload::InputRequired { input_requests } => {
                let answer = json!({"action": "accept", "content": {"milk": true}});
                let answers = input_requests.keys().map(|key| (key.clone(), answer.clone())).collect();
                client.update_task(UpdateTaskParams::new(id, answers)).await?;
            }
            _ => return Ok(json!(task)),
        }
        tokio::time::sleep(Duration::from_millis(task.task.poll_interval_ms.unwrap_or(1000))).await;
    }
}

fn code<T>(done: Result<T, ServiceError>) -> Value {
    match done {
        Err(ServiceError::McpError(error)) => json!(error.code.0),
        Err(other) => json!(other.to_string()),
        Ok(_) => Value::Null,
    }
}

/// Follows the tasks of `brew`.
pub async fn follow(command: &[String]) -> Result<(), Failed> {
    let (client, _server) = connect(command, true, modern()).await?;
    let brewing = begin(&client, "brew").await?;
    check("created", json!([brewing.ttl_ms, brewing.poll_interval_ms]), json!([600_000, 100]))?;
    let brewed = end(&client, &brewing.task_id).await?;
    check("a task", brewed["result"]["content"][0]["text"].clone(), json!("2 cups of coffee"))?;
    let broken = end(&client, &begin(&client, "break").await?.task_id).await?;
    check("a tool that fails", json!([broken["status"], broken["result"]["isError"]]), json!(["completed", true]))?;
    let ordered = end(&client, &begin(&client, "order").await?.task_id).await?;
    check("a question", ordered["result"]["content"][0]["text"].clone(), json!("coffee with milk"))?;
    let running = begin(&client, "run").await?.task_id;
    client.cancel_task(CancelTaskParams::new(&running)).await?;
    check("cancelled", end(&client, &running).await?["status"].clone(), json!("cancelled"))?;
    check("unknown", code(client.get_task(GetTaskParams::new("unknown")).await), json!(-32602))?;
    client.cancel().await?;

    // Without the extension, and in 2025-11-25, which has no extensions: rmcp 3 has no tasks of that revision.
    for (tasks, mode) in [(false, modern()), (true, ClientLifecycleMode::Initialize)] {
        let (client, _server) = connect(command, tasks, mode).await?;
        let CallToolResponse::Complete(brewed) = call(&client, "brew").await? else { return Err("a task".into()) };
        check("no task", json!(brewed)["content"][0]["text"].clone(), json!("2 cups of instant coffee"))?;
        let refused = client.call_tool_once(CallToolRequestParams::new("run")).await;
        check("a task is required", code(refused), json!(if tasks { -32601 } else { -32021 }))?;
        client.cancel().await?;
    }
    Ok(())
}
