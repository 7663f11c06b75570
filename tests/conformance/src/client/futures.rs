//! The same client over `mcp_sansio_smol`: `conformance-client --smol URL`.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mcp_sansio::client::views::{ListPromptsResult, ListResourcesResult, ListToolsResult};
use mcp_sansio::client::{ClientInfo, Request, SendError, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio_extensions::events::client::{EventFollower, LIST_CHANGED, are_offered};
use mcp_sansio_extensions::skills::{SkillsCapability, capability};
use mcp_sansio_smol::client::{AuthorizationOptions, Client, ClientError, Http, HttpOptions, OwnedResult};

use crate::events::Listener;
use crate::user::{EVENTS_CHANGED, User};
use crate::{ECHO_EXTENSIONS, EXTENSIONS, Echo, EchoExtensions, Task, events, invent, skills};

/// Connects and tries every item. Returns the number of requests that failed.
pub(crate) fn run(
    url: &str,
    task: &Task,
    info: ClientInfo<'static>,
    options: HttpOptions,
    login: AuthorizationOptions,
) -> Result<usize, ClientError> {
    // It lives as long as the process.
    let info: &'static ClientInfo<'static> = Box::leak(Box::new(info));
    smol::block_on(async {
        let (client, driver) = Client::new(Http::with(url, info, options)?.authorization(login)?, User);
        let driver = smol::spawn(driver);
        client.connect().await?;
        let mut host = Host { client, scenario: task.scenario.clone(), failures: 0 };
        match task.scenario.as_str() {
            "http-custom-headers" => host.call_as_told(&task.context).await?,
            "json-schema-2020-12-preservation" => host.echo_schema().await?,
            EXTENSIONS => {
                let server = host.client.server();
                let arguments = EchoExtensions::of(server.as_ref().and_then(|server| server.capabilities()));
                host.request(Request::call(ECHO_EXTENSIONS).arguments(&arguments)).await;
            }
            hearing if hearing.starts_with(events::SCENARIOS) => host.hear(events::time(&task.context)).await?,
            _ => host.try_everything().await?,
        }
        host.client.close().await;
        driver.await;
        Ok(host.failures)
    })
}

struct Host {
    client: Client,
    scenario: String,
    failures: usize,
}

impl Host {
    async fn try_everything(&mut self) -> Result<(), ClientError> {
        let offered = self.client.engine(|engine| engine.offered)?;
        if offered.has(ServerCapability::Tools) {
            for page in self.list(Request::list_tools()).await? {
                for tool in page.view::<ListToolsResult>().iter().flat_map(|page| page.iter()).flatten() {
                    let arguments = invent::value(tool.input_schema());
                    self.request(Request::call(tool.name()).arguments(&arguments.raw())).await;
                }
            }
        }
        let server = self.client.server();
        if server.as_ref().and_then(|server| server.capabilities()).and_then(SkillsCapability::of).is_some() {
            self.load_skills().await?;
        }
        if offered.has(ServerCapability::Resources) {
            for page in self.list(Request::list_resources()).await? {
                for resource in page.view::<ListResourcesResult>().iter().flat_map(|page| page.iter()).flatten() {
                    self.request(Request::read(resource.uri())).await;
                }
            }
        }
        if offered.has(ServerCapability::Prompts) {
            for page in self.list(Request::list_prompts()).await? {
                for prompt in page.view::<ListPromptsResult>().iter().flat_map(|page| page.iter()).flatten() {
                    let arguments = invent::prompt_arguments(&prompt);
                    self.request(Request::prompt(prompt.name()).arguments(&arguments.raw())).await;
                }
            }
        }
        Ok(())
    }

    /// Lists the skills, and loads those that the scenario wants.
    async fn load_skills(&mut self) -> Result<(), ClientError> {
        let pages = self.list(Request::raw(capability::LIST, None)).await?;
        for skill in skills::to_load(&pages, &self.scenario) {
            let uri = skill.uri().to_owned();
            let result = self.client.request(Request::read(&*uri)).await?;
            match skills::activate(skill, &result) {
                Some(mut active) => {
                    for uri in skills::needed(&active) {
                        let result = self.client.request(Request::read(&*uri)).await?;
                        skills::show(&uri, &active.file(&uri, result.raw()));
                    }
                }
                None => self.failures += 1,
            }
        }
        Ok(())
    }

    /// Makes the calls that the context names, with the given arguments.
    async fn call_as_told(&mut self, context: &str) -> Result<(), ClientError> {
        self.list(Request::list_tools()).await?;
        let context = Raw::parse(context.as_bytes()).unwrap_or(Raw::constant("{}"));
        for call in context.get("toolCalls").iter().flat_map(Raw::items) {
            let name = call.get("name").and_then(|name| name.text());
            if let (Some(name), Some(arguments)) = (name, call.get("arguments")) {
                self.request(Request::call(name).arguments(&arguments)).await;
            }
        }
        Ok(())
    }

    /// Gives the schema of one tool to another one.
    async fn echo_schema(&mut self) -> Result<(), ClientError> {
        for page in self.list(Request::list_tools()).await? {
            for tool in page.view::<ListToolsResult>().iter().flat_map(|page| page.iter()).flatten() {
                if tool.name().eq_str("json_schema_2020_12_tool") {
                    let arguments = Echo { schema: tool.input_schema() };
                    self.request(Request::call("json_schema_echo").arguments(&arguments)).await;
                }
            }
        }
        Ok(())
    }

    /// Hears of events for as long as the task says.
    async fn hear(&mut self, time: Duration) -> Result<(), ClientError> {
        let server = self.client.server();
        let capabilities = server.as_ref().and_then(|server| server.capabilities());
        if !are_offered(capabilities) {
            return match self.client.follow_events(EventFollower::new("conformance.ticks")) {
                Err(ClientError::NotSent(SendError::NotOffered)) => Ok(()),
                other => other.map(|_| println!("followed")),
            };
        }
        let _changes = match events::tells_of_changes(capabilities) {
            true => Some(self.client.listen(&SubscriptionFilter::new().topics(&[LIST_CHANGED]))?),
            false => None,
        };
        let list = Request::raw("events/list", None);
        let all = events::listeners(&self.list(list).await?);
        let tasks = all.into_iter().map(|(name, listener)| smol::spawn(follow(self.client.clone(), name, listener)));
        let (tasks, end) = (tasks.collect::<Vec<_>>(), Instant::now() + time);
        while Instant::now() < end {
            smol::Timer::after(events::PAUSE).await;
            if EVENTS_CHANGED.swap(false, Ordering::Relaxed) {
                self.list(list).await?;
            }
        }
        for task in tasks {
            // One that still runs ends here.
            if let Some(Err(error)) = task.cancel().await {
                return Err(error);
            }
        }
        Ok(())
    }

    async fn list(&self, list: Request<'_>) -> Result<Vec<OwnedResult>, ClientError> {
        let mut pages = self.client.pages(list);
        let mut all = Vec::new();
        while let Some(page) = smol::stream::StreamExt::next(&mut pages).await {
            all.push(page?);
        }
        Ok(all)
    }

    /// Sends a request and prints its outcome. An error of the server is an outcome too.
    async fn request(&mut self, request: Request<'_>) {
        let name = format!("{request:?}");
        match self.client.request(request).await {
            Ok(answer) => println!("{name}: {answer:?}"),
            Err(ClientError::Server(error)) => println!("{name}: {error}"),
            Err(error) => {
                self.failures += 1;
                eprintln!("{name}: {error}");
            }
        }
    }
}

/// Hears of one event type until it is cancelled, or its subscription is over.
async fn follow(client: Client, name: String, listener: Listener) -> Result<(), ClientError> {
    match listener {
        Listener::Follower(follower) => {
            let mut heard = client.follow_events(follower)?;
            while let Some(event) = smol::stream::StreamExt::next(&mut heard).await {
                match event {
                    Ok(event) => events::show(&name, &event),
                    Err(error) => events::ended(&name, error)?,
                }
            }
        }
        Listener::Webhook(mut hook) => loop {
            let result = match client.request(hook.subscribe()).await {
                Ok(result) => result,
                Err(error) => return events::ended(&name, error),
            };
            if let Err(error) = hook.subscribed(result.raw(), events::unix_millis()) {
                println!("no subscription to {name}: {error}");
            }
            let Some(at) = hook.refresh_at else { return Ok(()) };
            smol::Timer::after(Duration::from_millis(at.saturating_sub(events::unix_millis()))).await;
        },
    }
    Ok(())
}
