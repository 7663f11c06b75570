//! Program 5: a server over stdio whose tools are those of its children: `gateway NAME=COMMAND...`.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use mcp_sansio::client::views::ListToolsResult;
use mcp_sansio::client::{ClientInfo, PendingId, Request, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{Progress, RequestToken, RpcError, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, Service};
use mcp_sansio_smol::client::{Child, Client, ClientError, Events, OwnedEvent, SubscriptionEvent, events};
use mcp_sansio_smol::{LateSender, LogMessage, OwnedTool, OwnedTools, Serve, Work, channel};
use smol::stream::StreamExt;

static PROFILE: ClientInfo<'static> = ClientInfo::new("gateway", "0.1.0");

/// Which request of a child belongs to which of ours.
type Routes = Arc<Mutex<HashMap<PendingId, RequestToken>>>;

struct State {
    /// Dropping a future cancels its request at the child.
    work: Work<State>,
}

/// Forgets the route of a call, also of one that is cancelled.
struct Route(Routes, RequestToken);

impl Drop for Route {
    fn drop(&mut self) {
        self.0.lock().unwrap().retain(|_, ours| *ours != self.1);
    }
}

/// Passes a call on to a child.
fn forward(child: &Client, routes: &Routes, theirs: &str, state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let arguments = call.arguments();
    let request = Request::call(theirs).with_progress().with_logs(LoggingLevel::Debug).arguments(&arguments);
    let (ours, known) = (call.token(), routes.clone());
    // Before it is written: progress may come at once.
    let asked = child.request_with(request, move |theirs| _ = known.lock().unwrap().insert(theirs, ours));
    let route = Route(routes.clone(), ours);
    let asking = state.work.future(move |_| async move {
        let answer = asked.await;
        drop(route);
        answer
    });
    asking.then(call, |_, call, answer| match answer {
        Ok(answer) => call.result(answer.raw()),
        Err(ClientError::Server(error)) => call.fail(&RpcError::new(error.code, &error.message)),
        Err(error) => call.error(format_args!("{error}")),
    })
}

/// Passes progress and log messages of a child on.
async fn follow(mut events: Events, routes: Routes, late: LateSender<State>) {
    let ours = |theirs| routes.lock().unwrap().get(&theirs).copied();
    while let Some(event) = events.next().await {
        match event {
            OwnedEvent::Progress { token, done, total, message } => {
                let Some(token) = ours(token) else { continue };
                let mut progress = Progress::new(done);
                (progress.total, progress.message) = (total.map(Into::into), message.as_deref());
                let _ = late.progress(token, progress);
            }
            OwnedEvent::Log { token, level, logger, data } => {
                let Ok(data) = Raw::parse(data.as_bytes()) else { continue };
                let (mut message, level) = (LogMessage::from(data), level.unwrap_or(LoggingLevel::Info));
                if let Some(logger) = logger {
                    message = message.logger(logger);
                }
                let _ = match token.map(ours) {
                    Some(Some(token)) => late.log(token, level, message),
                    Some(None) => continue,
                    None => late.announce(level, message), // of no request, or of one that the server does not name
                };
            }
            _ => {}
        }
    }
}

/// Lists the tools of a child, with its name before theirs, in place of those that it had before.
async fn list(child: &Client, prefix: &str, routes: &Routes, tools: &OwnedTools<State>) -> Result<(), Box<dyn Error>> {
    let mut pages = child.pages(Request::list_tools());
    let mut new = Vec::new();
    while let Some(page) = pages.next().await {
        for tool in page?.view::<ListToolsResult>()?.iter().flatten() {
            let (child, routes, theirs) = (child.clone(), routes.clone(), tool.name().to_string());
            let run = move |state: &mut State, call: &mut Call<'_>| forward(&child, &routes, &theirs, state, call);
            new.push(OwnedTool::of(format!("{prefix}{}", tool.name()), &tool, run));
        }
    }
    tools.replace(|name| name.starts_with(prefix), new);
    Ok(())
}

/// Lists the tools of a child again whenever it says that they have changed.
async fn relist(child: Client, prefix: String, routes: Routes, tools: Arc<OwnedTools<State>>, late: LateSender<State>) {
    let Ok(mut changes) = child.listen(&SubscriptionFilter::new().tools()) else { return };
    while let Some(Ok(change)) = changes.next().await {
        if matches!(change, SubscriptionEvent::Tools) && list(&child, &prefix, &routes, &tools).await.is_ok() {
            let _ = late.publish(ServerChange::Tools);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    smol::block_on(async {
        let (late, receiver) = channel();
        let (mut children, tools) = (Vec::new(), Arc::new(OwnedTools::new()));
        for spec in std::env::args().skip(1) {
            let (name, command) = spec.split_once('=').ok_or("usage: gateway NAME=COMMAND...")?;
            let mut words = command.split(' ');
            let mut command = std::process::Command::new(words.next().unwrap_or_default());
            command.args(words);
            let (handler, events) = events(100);
            let (child, driver) = Client::new(Child::spawn(command, &PROFILE)?, handler);
            let routes = Routes::default();
            smol::spawn(driver).detach();
            smol::spawn(follow(events, routes.clone(), late.clone())).detach();
            child.connect().await?;
            let prefix = format!("{name}_");
            list(&child, &prefix, &routes, &tools).await?;
            smol::spawn(relist(child.clone(), prefix, routes, tools.clone(), late.clone())).detach();
            children.push(child);
        }
        let service = Service::new("gateway", "0.1.0")
            .dynamic_tools(&*tools)
            .feature(ServerCapability::ToolsChanged)
            .feature(ServerCapability::Logging)
            .on_cancel(|state: &mut State, token| state.work.cancel(token));
        let mut state = State { work: Work::new(late, 100).spawner(|future| smol::spawn(future).detach()) };
        Serve::new(&service).late(receiver).stdio(&mut state).await?;
        for child in &children {
            child.close().await;
        }
        Ok(())
    })
}
