//! The client that the official conformance suites start: `conformance-client URL`, with what it shall do in the
//! environment. It does what an application does that is curious: connects, lists everything, and tries everything out.

mod invent;
mod user;

use std::process::{ExitCode, exit};
use std::thread;
use std::time::Duration;

use mcp_sansio::client::views::{Prompts, Resources, Tools};
use mcp_sansio::client::{Profile, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{ClientFeature, Feature};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{Answer, Client, Error, Http, HttpOptions, Options};

use user::User;

/// The suites wait for ever for a client that does not end, so it does.
const LONGEST_RUN: Duration = Duration::from_secs(25);
/// Longer than any scenario lets a request wait, and short enough for its failure to be told.
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    thread::spawn(|| {
        thread::sleep(LONGEST_RUN);
        eprintln!("not done after {LONGEST_RUN:?}");
        exit(3);
    });
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance-client URL");
        return ExitCode::from(2);
    };
    match run(&url) {
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

/// What the suites say.
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

    /// The revision that is named, and the older ones of its era. 0.1.16 names none: then it is found out.
    fn revisions(&self) -> Revisions {
        let Some(named) = self.revision else { return Revisions::ALL };
        let older = Revisions::ALL.of(named.era()).filter(|revision| revision.date() <= named.date());
        older.fold(Revisions::NONE, Revisions::with)
    }
}

fn run(url: &str) -> Result<usize, Error> {
    let task = Task::new();
    let profile = Profile::new("conformance-client", env!("CARGO_PKG_VERSION"))
        .title("Conformance client")
        .feature(ClientFeature::ElicitForm)
        .feature(ClientFeature::ElicitUrl)
        .feature(ClientFeature::Sampling)
        .feature(ClientFeature::Roots)
        .revisions(task.revisions());
    let options = HttpOptions::new().options(Options::new().timeout(TIMEOUT));
    let mut host = Host { client: Client::new(Http::with(url, &profile, options)?, User), failures: 0 };
    host.client.connect()?;
    match task.scenario.as_str() {
        "http-custom-headers" => host.call_as_told(&task.context)?,
        "json-schema-2020-12-preservation" => host.echo_schema()?,
        _ => host.try_everything()?,
    }
    host.client.close();
    Ok(host.failures)
}

/// An application with its connection.
struct Host<'m> {
    client: Client<'m, Http<'m>, User>,
    failures: usize,
}

impl Host<'_> {
    fn try_everything(&mut self) -> Result<(), Error> {
        let offered = self.client.engine().offered();
        if offered.has(Feature::Tools) {
            self.try_tools()?;
        }
        if offered.has(Feature::Resources) {
            for page in self.list(Request::list_resources())? {
                for resource in page.view::<Resources>().ok().iter().flatten().flatten() {
                    self.request(&Request::read(resource.uri()));
                }
            }
        }
        if offered.has(Feature::Prompts) {
            for page in self.list(Request::list_prompts())? {
                for prompt in page.view::<Prompts>().ok().iter().flatten().flatten() {
                    let arguments = invent::prompt_arguments(&prompt);
                    self.request(&Request::prompt(prompt.name()).arguments(&arguments.raw()));
                }
            }
        }
        Ok(())
    }

    /// Calls every tool with invented arguments.
    fn try_tools(&mut self) -> Result<(), Error> {
        let pages = self.list(Request::list_tools())?;
        self.client.excluded().iter().for_each(|excluded| println!("{excluded}"));
        for page in pages {
            for tool in page.view::<Tools>().ok().iter().flatten().flatten() {
                let arguments = invent::value(tool.input_schema());
                self.request(&Request::call(tool.name()).arguments(&arguments.raw()));
            }
        }
        Ok(())
    }

    /// The calls that the context names, with their arguments as they stand.
    fn call_as_told(&mut self, context: &str) -> Result<(), Error> {
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
    fn echo_schema(&mut self) -> Result<(), Error> {
        #[derive(serde::Serialize)]
        struct Echo<'a> {
            schema: Raw<'a>,
        }
        for page in self.list(Request::list_tools())? {
            for tool in page.view::<Tools>().ok().iter().flatten().flatten() {
                if tool.name().is("json_schema_2020_12_tool") {
                    let arguments = Echo { schema: tool.input_schema() };
                    self.request(&Request::call("json_schema_echo").arguments(&arguments));
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, list: Request<'_>) -> Result<Vec<Answer>, Error> {
        self.client.pages(list).inspect(|page| println!("{list:?}: {page:?}")).collect()
    }

    /// Sends a request and shows what came of it. A server may refuse: that is an answer too.
    fn request(&mut self, request: &Request<'_>) {
        match self.client.request(request) {
            Ok(answer) => println!("{request:?}: {answer:?}"),
            Err(Error::Server(error)) => println!("{request:?}: {error}"),
            Err(error) => {
                self.failures += 1;
                eprintln!("{request:?}: {error}");
            }
        }
    }
}
