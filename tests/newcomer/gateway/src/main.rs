//! Program 5: a server over stdio whose tools are those of its children: `gateway NAME=COMMAND...`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use mcp_sansio::client::views::{ListToolsResult, View};
use mcp_sansio::client::{ClientInfo, PendingId, Request};
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{Progress, RequestToken, RpcError};
use mcp_sansio::service::{Call, DynamicTools, HandlerResult, Service, ToolAnnotations, ToolInfo};
use mcp_sansio_smol::client::{Child, Client, ClientError, Events, OwnedEvent, events};
use mcp_sansio_smol::{LateSender, Serve, channel};
use smol::stream::StreamExt;

static PROFILE: ClientInfo<'static> = ClientInfo::new("gateway", "0.1.0");

/// Which request of a child belongs to which of ours.
type Routes = Arc<Mutex<HashMap<PendingId, RequestToken>>>;

struct State {
    late: LateSender<State>,
    /// Dropping one cancels its request at the child.
    tasks: HashMap<RequestToken, smol::Task<()>>,
}

struct Forward {
    child: Client,
    routes: Routes,
    theirs: String,
    name: String,
    title: Option<String>,
    description: String,
    input: String,
    output: Option<String>,
    meta: Option<String>,
    hints: ToolAnnotations,
}

struct Forwards(Vec<Forward>);

impl DynamicTools<State> for Forwards {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn info(&self, index: usize) -> Option<ToolInfo<'_>> {
        let tool = self.0.get(index)?;
        let mut info = ToolInfo::checked(&tool.name, &tool.description)?;
        (info.title, info.input, info.hints) = (tool.title.as_deref(), &tool.input, tool.hints);
        (info.output, info.meta) = (tool.output.as_deref(), tool.meta.as_deref());
        Some(info)
    }

    fn run(&self, index: usize, state: &mut State, call: &mut Call<'_>) -> HandlerResult {
        let Forward { child, routes, theirs, .. } = &self.0[index];
        let request = Request::call(theirs).with_progress().with_logs(LoggingLevel::Debug);
        let asked = child.request(request.arguments(&call.arguments()));
        let (token, outcome) = call.later();
        let (late, routes, theirs) = (state.late.clone(), routes.clone(), asked.token());
        theirs.map(|theirs| routes.lock().unwrap().insert(theirs, token));
        let task = async move {
            let answer = asked.await;
            theirs.map(|theirs| routes.lock().unwrap().remove(&theirs));
            let pass_on = move |state: &mut State, call: &mut Call<'_>| {
                state.tasks.remove(&token);
                match answer {
                    Ok(answer) => call.result(answer.raw()),
                    Err(ClientError::Server(error)) => call.fail(&RpcError::new(error.code, &error.message)),
                    Err(error) => call.error(format_args!("{error}")),
                }
            };
            let _ = late.answer(token, pass_on).await;
        };
        state.tasks.insert(token, smol::spawn(task));
        outcome
    }
}

/// Passes progress and log messages of a child on.
async fn follow(mut events: Events, routes: Routes, late: LateSender<State>) {
    let ours = |theirs| routes.lock().unwrap().get(&theirs).copied();
    while let Some(event) = events.next().await {
        match event {
            OwnedEvent::Progress { token, done, total, message } => {
                let Some(token) = ours(token) else { continue };
                let mut progress = Progress::new(done as u64);
                (progress.total, progress.message) = (total.map(|total| total as u64), message.as_deref());
                let _ = late.progress(token, progress).await;
            }
            OwnedEvent::Log { token: Some(token), level, data, .. } => {
                let Some(token) = ours(token) else { continue };
                let _ = late.log(token, level.unwrap_or(LoggingLevel::Info), data).await;
            }
            _ => {}
        }
    }
}

/// Adds the tools of a child, with its name before theirs.
async fn list(child: &Client, prefix: &str, routes: &Routes, tools: &mut Vec<Forward>) -> Result<(), Box<dyn Error>> {
    let mut pages = child.pages(Request::list_tools());
    while let Some(page) = pages.next().await {
        for tool in page?.view::<ListToolsResult>()?.iter().flatten() {
            let theirs = tool.hints();
            let hints = ToolAnnotations::new().read_only(theirs.read_only()).destructive(theirs.destructive());
            let hints = hints.idempotent(theirs.idempotent()).open_world(theirs.open_world());
            tools.push(Forward {
                child: child.clone(),
                routes: routes.clone(),
                theirs: tool.name().to_string(),
                name: format!("{prefix}_{}", tool.name()),
                title: tool.title().map(|title| title.to_string()),
                description: tool.description().map(|text| text.to_string()).unwrap_or_default(),
                input: tool.input_schema().to_string(),
                output: tool.output_schema().map(|schema| schema.to_string()),
                meta: tool.meta().map(|meta| meta.to_string()),
                hints,
            });
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    smol::block_on(async {
        let (late, receiver) = channel();
        let (mut children, mut tools) = (Vec::new(), Vec::new());
        for spec in std::env::args().skip(1) {
            let (name, command) = spec.split_once('=').ok_or("usage: gateway NAME=COMMAND...")?;
            let mut words = command.split(' ');
            let mut command = smol::process::Command::new(words.next().unwrap_or_default());
            command.args(words);
            let (handler, events) = events(100);
            let (child, driver) = Client::new(Child::spawn(command, &PROFILE)?, handler);
            let routes = Routes::default();
            smol::spawn(driver).detach();
            smol::spawn(follow(events, routes.clone(), late.clone())).detach();
            child.connect().await?;
            list(&child, name, &routes, &mut tools).await?;
            children.push(child);
        }
        let tools = Forwards(tools);
        let service = Service::new("gateway", "0.1.0")
            .toolbox(&tools)
            .feature(ServerCapability::Logging)
            .on_cancel(|state: &mut State, token| drop(state.tasks.remove(&token)));
        let mut state = State { late, tasks: HashMap::new() };
        Serve::new(&service).late(receiver).stdio(&mut state).await?;
        for child in &children {
            child.close().await;
        }
        Ok(())
    })
}
