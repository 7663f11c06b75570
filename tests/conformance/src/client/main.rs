//! The client that the official conformance suites start: `conformance-client [--smol] URL`, with its task in the
//! environment.
//! It connects, lists every item, and tries every item.

mod events;
mod futures;
mod invent;
mod login;
mod skills;
mod user;

use std::process::{ExitCode, exit};
use std::thread;
use std::time::Duration;

use mcp_sansio::client::views::{ListPromptsResult, ListResourcesResult, ListToolsResult};
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::json::{OwnedRaw, Raw};
use mcp_sansio::protocol::{ClientCapability, ServerCapability};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{Client, ClientError, ClientOptions, Http, HttpOptions, OwnedResult};

use mcp_sansio_extensions::skills::{SkillsCapability, capability};
use user::User;

/// The suites wait for ever for a client that does not end, so it ends by itself.
const LONGEST_RUN: Duration = Duration::from_secs(25);
/// Longer than any scenario delays an answer, and short enough to report the failure.
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    thread::spawn(|| {
        thread::sleep(LONGEST_RUN);
        eprintln!("not done after {LONGEST_RUN:?}");
        exit(3);
    });
    let (mut smol, mut url) = (false, None);
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "--smol" => smol = true,
            _ => url = Some(word),
        }
    }
    let Some(url) = url else {
        eprintln!("usage: conformance-client [--smol] URL");
        return ExitCode::from(2);
    };
    match run(&url, smol) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("{failures} failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The task that the suites give.
struct Task {
    scenario: String,
    context: String,
    revision: Option<Revision>,
}

impl Task {
    fn new() -> Self {
        let told = |name: &str| std::env::var(name).unwrap_or_default();
        Task {
            scenario: told("MCP_CONFORMANCE_SCENARIO"),
            context: told("MCP_CONFORMANCE_CONTEXT"),
            revision: Revision::from_date(&told("MCP_CONFORMANCE_PROTOCOL_VERSION")),
        }
    }

    /// Returns the named revision and the older ones of its era. Version 0.1.16 of the suites names none: then all.
    fn revisions(&self) -> Revisions {
        let Some(named) = self.revision else { return Revisions::ALL };
        let older = Revisions::ALL.of(named.era()).filter(|revision| revision.date() <= named.date());
        older.fold(Revisions::NONE, Revisions::with)
    }
}

fn run(url: &str, smol: bool) -> Result<usize, ClientError> {
    let task = Task::new();
    let info = ClientInfo::new("conformance-client", env!("CARGO_PKG_VERSION"))
        .title("Conformance client")
        .feature(ClientCapability::ElicitForm)
        .feature(ClientCapability::ElicitUrl)
        .feature(ClientCapability::Sampling)
        .feature(ClientCapability::Roots)
        .revisions(task.revisions());
    let info = if task.scenario == EXTENSIONS { info.extensions(OWN_EXTENSIONS, &[]) } else { info };
    let options = HttpOptions::new().options(ClientOptions::DEFAULT.timeout(TIMEOUT));
    let speaks_2025_03_26 = task.revisions().contains(Revision::V2025_03_26);
    let login = login::options(&task.context, speaks_2025_03_26, task.revision.map(Revision::date));
    if smol {
        return futures::run(url, &task, info, options, login);
    }
    let server = Http::with(url, &info, options)?.authorization(login)?;
    let mut host = Host { client: Client::new(server, User), scenario: task.scenario.clone(), failures: 0 };
    host.client.connect()?;
    match task.scenario.as_str() {
        "http-custom-headers" => host.call_as_told(&task.context)?,
        "json-schema-2020-12-preservation" => host.echo_schema()?,
        EXTENSIONS => {
            let declared = host.client.server().and_then(|server| server.capabilities()).map(OwnedRaw::<0>::new);
            let arguments = EchoExtensions::of(declared.as_ref().map(OwnedRaw::raw));
            host.request(&Request::call(ECHO_EXTENSIONS).arguments(&arguments));
        }
        hearing if hearing.starts_with(events::SCENARIOS) => {
            events::hear(&mut host.client, events::time(&task.context))?;
        }
        _ => host.try_everything()?,
    }
    host.client.close();
    Ok(host.failures)
}

/// The arguments of the tool that returns a schema.
#[derive(serde::Serialize)]
struct Echo<'a> {
    schema: Raw<'a>,
}

/// The scenario in which client and server of 2025-11-25 declare extensions, what the client declares, and the tool that gets what it
/// has seen of the server's.
const EXTENSIONS: &str = "legacy-extensions";
const OWN_EXTENSIONS: Raw<'static> = Raw::constant(
    r#"{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"com.example/conformance":{"nested":{"enabled":false,"limit":0},"values":["a",2,null]},"com.example/empty":{}}"#,
);
const ECHO_EXTENSIONS: &str = "test_legacy_extension_capabilities";

#[derive(serde::Serialize)]
struct EchoExtensions<'a> {
    extensions: Option<Raw<'a>>,
}

impl<'a> EchoExtensions<'a> {
    fn of(capabilities: Option<Raw<'a>>) -> Self {
        EchoExtensions { extensions: capabilities.and_then(|all| all.get("extensions")) }
    }
}

/// An application with its connection.
struct Host<'m> {
    client: Client<'m, Http<'m>, User>,
    scenario: String,
    failures: usize,
}

impl Host<'_> {
    fn try_everything(&mut self) -> Result<(), ClientError> {
        let offered = self.client.engine().offered;
        if offered.has(ServerCapability::Tools) {
            self.try_tools()?;
        }
        if self.client.server().and_then(|server| server.capabilities()).and_then(SkillsCapability::of).is_some() {
            self.load_skills()?;
        }
        if offered.has(ServerCapability::Resources) {
            for page in self.list(Request::list_resources())? {
                for resource in page.view::<ListResourcesResult>().iter().flat_map(|page| page.iter()).flatten() {
                    self.request(&Request::read(resource.uri()));
                }
            }
        }
        if offered.has(ServerCapability::Prompts) {
            for page in self.list(Request::list_prompts())? {
                for prompt in page.view::<ListPromptsResult>().iter().flat_map(|page| page.iter()).flatten() {
                    let arguments = invent::prompt_arguments(&prompt);
                    self.request(&Request::prompt(prompt.name()).arguments(&arguments.raw()));
                }
            }
        }
        Ok(())
    }

    /// Calls every tool with invented arguments.
    fn try_tools(&mut self) -> Result<(), ClientError> {
        let pages = self.list(Request::list_tools())?;
        self.client.excluded().iter().for_each(|excluded| println!("{excluded}"));
        for page in pages {
            for tool in page.view::<ListToolsResult>().iter().flat_map(|page| page.iter()).flatten() {
                let arguments = invent::value(tool.input_schema());
                self.request(&Request::call(tool.name()).arguments(&arguments.raw()));
            }
        }
        Ok(())
    }

    /// Lists the skills, and loads those that the scenario wants.
    fn load_skills(&mut self) -> Result<(), ClientError> {
        let pages = self.list(Request::raw(capability::LIST, None))?;
        for skill in skills::to_load(&pages, &self.scenario) {
            let uri = skill.uri().to_owned();
            let result = self.client.request(&Request::read(&*uri))?;
            match skills::activate(skill, &result) {
                Some(mut active) => {
                    for uri in skills::needed(&active) {
                        let result = self.client.request(&Request::read(&*uri))?;
                        skills::show(&uri, &active.file(&uri, result.raw()));
                    }
                }
                None => self.failures += 1,
            }
        }
        Ok(())
    }

    /// Makes the calls that the context names, with the given arguments.
    fn call_as_told(&mut self, context: &str) -> Result<(), ClientError> {
        self.list(Request::list_tools())?;
        let context = Raw::parse(context.as_bytes()).unwrap_or(Raw::constant("{}"));
        for call in context.get("toolCalls").iter().flat_map(Raw::items) {
            let name = call.get("name").and_then(|name| name.text());
            if let (Some(name), Some(arguments)) = (name, call.get("arguments")) {
                self.request(&Request::call(name).arguments(&arguments));
            }
        }
        Ok(())
    }

    /// Gives the schema of one tool to another one.
    fn echo_schema(&mut self) -> Result<(), ClientError> {
        for page in self.list(Request::list_tools())? {
            for tool in page.view::<ListToolsResult>().iter().flat_map(|page| page.iter()).flatten() {
                if tool.name().eq_str("json_schema_2020_12_tool") {
                    let arguments = Echo { schema: tool.input_schema() };
                    self.request(&Request::call("json_schema_echo").arguments(&arguments));
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, list: Request<'_>) -> Result<Vec<OwnedResult>, ClientError> {
        self.client.pages(list).inspect(|page| println!("{list:?}: {page:?}")).collect()
    }

    /// Sends a request and prints its outcome. An error of the server is an outcome too.
    fn request(&mut self, request: &Request<'_>) {
        match self.client.request(request) {
            Ok(answer) => println!("{request:?}: {answer:?}"),
            Err(ClientError::Server(error)) => println!("{request:?}: {error}"),
            Err(error) => {
                self.failures += 1;
                eprintln!("{request:?}: {error}");
            }
        }
    }
}
