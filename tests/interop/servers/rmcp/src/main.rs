//! The kit on rmcp, a bit of everything: `interop-rmcp stdio`, `interop-rmcp http PORT`. Servers with tasks: the same with `tasks`
//! or `tasks-2` before. `interop-rmcp follow PROGRAM [ARGUMENTS]` follows the tasks of a server.
#![allow(deprecated, reason = "logging, sampling, roots and subscriptions of the older revisions")]

mod tasks;
mod tasks_2;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, ServiceExt, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::broadcast;

#[derive(Clone, Copy)]
enum News {
    Tools,
    Counter,
}

#[derive(Clone)]
struct Kit {
    shared: Arc<Shared>,
}

struct Shared {
    counter: AtomicU32,
    grown: AtomicBool,
    news: broadcast::Sender<News>,
}

impl Shared {
    /// rmcp acknowledges a subscription before it calls `listen`, so a call may come before that; and there may be no
    /// subscriber.
    async fn tell(&self, news: News) {
        for _ in 0..20 {
            if self.news.send(news).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn form() -> Result<ElicitRequestParams, ErrorData> {
    read(json!({"mode": "form", "message": "What is it to be?", "requestedSchema": {
        "type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 1},
            "size": {"type": "string", "enum": ["small", "large"], "default": "large"},
        }
    }}))
}

fn page() -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: "Please look".into(),
        url: "https://example.com/".into(),
        elicitation_id: "visit-1".into(),
    }
}

fn wish(prompt: &str) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 10)
}

fn ask_back(request: InputRequest) -> CallToolResponse {
    InputRequiredResult::new(Some([("it".to_owned(), request)].into()), Some("kit.state \u{e9}".into())).into()
}

fn failed(error: rmcp::service::ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn of_order(answer: &Value) -> String {
    let content = &answer["content"];
    match answer["action"].as_str() {
        Some("accept") => format!("{} {}", text(&content["name"]), text(&content["size"])),
        other => other.unwrap_or("?").into(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

impl Kit {
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let answer = request.input_responses.as_ref().and_then(|all| all.get("it"));
        if answer.is_some() && request.request_state.as_deref() != Some("kit.state \u{e9}") {
            return Err(ErrorData::invalid_params("another state came back", None));
        }
        let args = Value::Object(request.arguments.clone().unwrap_or_default());
        let peer = &context.peer;
        Ok(match request.name.as_ref() {
            "add" => {
                let (Some(a), Some(b)) = (args["a"].as_i64(), args["b"].as_i64()) else {
                    return Err(ErrorData::invalid_params("a and b are integers", None));
                };
                CallToolResult::structured(json!({"sum": a + b})).into()
            }
            "slow" => {
                let (steps, millis) = (args["steps"].as_u64().unwrap_or(3), args["millis"].as_u64().unwrap_or(20));
                for step in 0..steps {
                    if let Some(token) = context.meta.get_progress_token() {
                        let report = ProgressNotificationParam::new(token, step as f64).with_total(steps as f64);
                        peer.notify_progress(report.with_message(format!("step {step}"))).await.map_err(failed)?;
                    }
                    if !modern || context.meta.log_level().is_some() {
                        let log = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(format!("at {step}")));
                        peer.notify_logging_message(log).await.map_err(failed)?;
                    }
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(millis)) => {}
                        () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
                    }
                }
                said(format!("{steps} steps"))
            }
            "ask" if modern => match answer {
                None => ask_back(InputRequest::Elicitation(ElicitRequest::new(form()?))),
                Some(answer) => said(of_order(answer)),
            },
            "ask" => said(of_order(&json!(peer.create_elicitation(form()?).await.map_err(failed)?))),
            "visit" if modern => match answer {
                None => ask_back(InputRequest::Elicitation(ElicitRequest::new(page()))),
                Some(answer) => said(text(&answer["action"])),
            },
            "visit" => said(text(&json!(peer.create_elicitation(page()).await.map_err(failed)?)["action"])),
            "sample" => {
                let result = match answer {
                    None if modern => {
                        let request = CreateMessageRequest::new(wish(text(&args["prompt"])));
                        return Ok(ask_back(InputRequest::CreateMessage(request)));
                    }
                    Some(answer) => answer.clone(),
                    None => json!(peer.create_message(wish(text(&args["prompt"]))).await.map_err(failed)?),
                };
                let content = result["content"].as_array().map_or(&result["content"], |all| &all[0]);
                said(format!("{}: {}", text(&result["model"]), text(&content["text"])))
            }
            "roots" => {
                let result = match answer {
                    None if modern => return Ok(ask_back(InputRequest::ListRoots(ListRootsRequest::default()))),
                    Some(answer) => answer.clone(),
                    None => json!(peer.list_roots().await.map_err(failed)?),
                };
                let roots: Vec<&str> =
                    result["roots"].as_array().into_iter().flatten().map(|root| text(&root["uri"])).collect();
                said(roots.join(", "))
            }
            "picture" => CallToolResult::success(vec![ContentBlock::image("iVBORw0KGgo=", "image/png")]).into(),
            "fail" => CallToolResult::error(vec![ContentBlock::text("it went wrong")]).into(),
            "touch" => {
                let now = self.shared.counter.fetch_add(1, Ordering::Relaxed) + 1;
                if !modern {
                    let news = ResourceUpdatedNotificationParam::new("kit://counter");
                    peer.notify_resource_updated(news).await.map_err(failed)?;
                }
                self.shared.tell(News::Counter).await;
                said(now.to_string())
            }
            "grow" => {
                self.shared.grown.store(true, Ordering::Relaxed);
                if !modern {
                    peer.notify_tool_list_changed().await.map_err(failed)?;
                }
                self.shared.tell(News::Tools).await;
                said("grown")
            }
            "grown" => said("new"),
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        })
    }
}

impl ServerHandler for Kit {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("kit-rmcp", "1"))
            .with_instructions("A kit for tests.")
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let none = json!({"type": "object"});
        let number = json!({"type": "integer"});
        let mut tools = vec![
            json!({"name": "add", "description": "Adds.",
                "inputSchema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
                "outputSchema": {"type": "object", "properties": {"sum": number}, "required": ["sum"]}}),
            json!({"name": "slow", "description": "Takes its time, and tells how far it is.",
                "inputSchema": {"type": "object", "properties": {"steps": number, "millis": number}}}),
            json!({"name": "sample", "description": "Asks a model.",
                "inputSchema": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}}),
        ];
        let mut names = vec!["ask", "visit", "roots", "picture", "fail", "touch", "grow"];
        if self.shared.grown.load(Ordering::Relaxed) {
            names.push("grown");
        }
        tools.extend(names.iter().map(|name| json!({"name": name, "description": name, "inputSchema": none})));
        // Two pages.
        match request.and_then(|request| request.cursor) {
            None => read(json!({"tools": tools[..4], "nextCursor": "the \"rest\""})),
            Some(cursor) if cursor == "the \"rest\"" => read(json!({"tools": tools[4..]})),
            Some(_) => Err(ErrorData::invalid_params("no such page", None)),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        read(json!({"resources": [
            {"uri": "kit://text", "name": "text", "mimeType": "text/plain"},
            {"uri": "kit://blob", "name": "blob", "mimeType": "application/octet-stream"},
            {"uri": "kit://counter", "name": "count", "mimeType": "text/plain"},
        ]}))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        read(
            json!({"resourceTemplates": [{"uriTemplate": "kit://item/{id}", "name": "item", "mimeType": "text/plain"}]}),
        )
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let contents = match uri {
            "kit://text" => ResourceContents::text("plain \u{e9}\u{4e2d}\u{1f600}\n", uri),
            "kit://blob" => ResourceContents::blob("AAECAwQFBgcICQ==", uri),
            "kit://counter" => ResourceContents::text(self.shared.counter.load(Ordering::Relaxed).to_string(), uri),
            _ => match uri.strip_prefix("kit://item/") {
                Some(id) => ResourceContents::text(format!("item {id}"), uri),
                None => return Err(ErrorData::resource_not_found("no such resource", Some(json!({"uri": uri})))),
            },
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut news = self.shared.news.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                Ok(what) = news.recv() => {
                    // The sink refuses changes that the subscriber did not ask for.
                    let _ = match what {
                        News::Tools => context.sink().notify_tool_list_changed().await,
                        News::Counter => context.sink().notify_resource_updated("kit://counter").await,
                    };
                }
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        read(json!({"prompts": [
            {"name": "hello", "description": "Says hello."},
            {"name": "greet", "arguments": [{"name": "name", "required": true}, {"name": "mood"}]},
        ]}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let args = json!(request.arguments);
        let said = match request.name.as_ref() {
            "hello" => "Hello.".to_owned(),
            "greet" if args["name"].is_string() => {
                format!("Hello {}, {}.", text(&args["name"]), args["mood"].as_str().unwrap_or("fine"))
            }
            _ => return Err(ErrorData::invalid_params("no such prompt, or no name", None)),
        };
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, said)]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let all: &[&str] =
            if request.argument.name == "name" { &["Ada", "Alan", "Barbara"] } else { &["1", "10", "2"] };
        let values: Vec<&&str> = all.iter().filter(|value| value.starts_with(&request.argument.value)).collect();
        read(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
    }
}

/// Serves over HTTP, and prints the URL.
async fn listen(port: &str, router: axum::Router) -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}

fn http<S: ServerHandler>(make: impl Fn() -> S + Send + Sync + 'static) -> axum::Router {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(make()), sessions, StreamableHttpServerConfig::default());
    axum::Router::new().nest_service("/mcp", service)
}

/// The same with rmcp 2.
fn http_2() -> axum::Router {
    use rmcp_2::transport::streamable_http_server::session::local::LocalSessionManager;
    use rmcp_2::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
    let sessions = Arc::new(LocalSessionManager::default());
    // Its ids of tasks are those of the requests, so each session needs tasks of its own.
    let make = || Ok(tasks_2::Kitchen::new());
    let service = StreamableHttpService::new(make, sessions, StreamableHttpServerConfig::default());
    axum::Router::new().nest_service("/mcp", service)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (news, _) = broadcast::channel(16);
    let shared = Shared { counter: AtomicU32::new(0), grown: AtomicBool::new(false), news };
    let kit = Kit { shared: Arc::new(shared) };
    let kitchen = tasks::Kitchen::default();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stdio"] => {
            kit.serve(rmcp::transport::stdio()).await?.waiting().await?;
        }
        ["http", port] => listen(port, http(move || kit.clone())).await?,
        ["tasks", "stdio"] => {
            kitchen.serve(rmcp::transport::stdio()).await?.waiting().await?;
        }
        ["tasks", "http", port] => listen(port, http(move || kitchen.clone())).await?,
        ["tasks-2", "stdio"] => {
            let running = rmcp_2::serve_server(tasks_2::Kitchen::new(), rmcp_2::transport::stdio()).await?;
            running.waiting().await?;
        }
        ["tasks-2", "http", port] => listen(port, http_2()).await?,
        ["follow", _, ..] => tasks::follow(&words[1..]).await?,
        _ => {
            eprintln!("usage: interop-rmcp [tasks|tasks-2] stdio|http PORT, or interop-rmcp follow PROGRAM [ARGUMENTS]")
        }
    }
    Ok(())
}
