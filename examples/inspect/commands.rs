//! The commands: sends requests and shows the answers.

use std::time::{Duration, Instant};

use mcp_sansio::client::views::{CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult, ViewError};
use mcp_sansio::client::{Request, SendError, SubscriptionFilter};
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::protocol::{LoggingLevel, ServerCapabilities, ServerCapability, code};
use mcp_sansio_blocking::client::{ClientError, OwnedResult, ServerError};
use mcp_sansio_extensions::events::client::{LIST_CHANGED, are_offered};
use mcp_sansio_extensions::tasks::client::TaskEnd;
use mcp_sansio_host::schema::{SchemaLimits, check};

use crate::args::{Command, Options, Target};
use crate::arguments::{are_pairs, build, listed, meant};
use crate::json::{Members, array, compact, pretty, quote};
use crate::lint;
use crate::login;
use crate::page::{Look, Page, Spans, Style};
use crate::schema::{Member, Schema};
use crate::session::{Around, Session};
use crate::show::{self, List};
use crate::terminal::{page_through, print};
use crate::text::{clean, one_line};

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The command line is wrong.
    Usage(String),
    /// The server could not be reached.
    Connect(ClientError),
    /// A request has failed.
    Request(ClientError),
    /// The server has refused a method.
    Refused(String, ServerError),
    /// The server has refused some lists. Their refusals are already shown.
    RefusedLists,
    /// The answer is invalid.
    Flaw(ViewError),
    /// The tool has reported an error (`isError`).
    Tool,
    /// `lint` or `--check` has found something, and has printed it.
    Found,
    /// A task has no result.
    Task {
        end: TaskEnd,
        /// The user pressed Ctrl-C.
        interrupted: bool,
    },
    /// The connection ended too early.
    Over(String),
    Io(std::io::Error),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        Trouble::Request(error)
    }
}

impl From<ViewError> for Trouble {
    fn from(flaw: ViewError) -> Self {
        Trouble::Flaw(flaw)
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Trouble::Io(error)
    }
}

/// The end of a command.
pub(crate) type Done = Result<(), Trouble>;

/// A command with its connection and options.
pub(crate) struct Run<'s, 'm> {
    pub(crate) session: &'s mut Session<'m>,
    pub(crate) options: &'s Options,
    pub(crate) target: &'s Target,
    pub(crate) around: &'s Around,
    /// The style of stdout.
    pub(crate) look: Look,
    pub(crate) pretty: bool,
}

/// The longest wait for the tools after a call that did not need them, in milliseconds.
const LIST_AFTER: u64 = 2_000;

/// The lists of a server: title, key of the items, and the feature that the server must offer.
const LISTS: [(&str, &str, ServerCapability); 4] = [
    ("Tools", "tools", ServerCapability::Tools),
    ("Resources", "resources", ServerCapability::Resources),
    ("Resource templates", "resourceTemplates", ServerCapability::Resources),
    ("Prompts", "prompts", ServerCapability::Prompts),
];

fn list_request(key: &str) -> Request<'static> {
    match key {
        "tools" => Request::list_tools(),
        "resources" => Request::list_resources(),
        "resourceTemplates" => Request::list_templates(),
        _ => Request::list_prompts(),
    }
}

pub(crate) fn items<'a>(pages: &'a [OwnedResult], key: &str) -> Vec<Raw<'a>> {
    pages.iter().filter_map(|page| page.raw().get(key)).flat_map(|items| items.items()).collect()
}

impl Run<'_, '_> {
    /// Connects and runs the command.
    pub(crate) fn run(&mut self, command: &Command) -> Done {
        let begun = Instant::now();
        self.around.live.borrow_mut().waits(true);
        let connected = self.session.client().connect();
        self.around.live.borrow_mut().waits(false);
        self.around.live.borrow_mut().clear();
        connected.map_err(Trouble::Connect)?;
        let took = begun.elapsed();
        self.around.live.borrow_mut().connected();
        match self.command(command, took) {
            Err(Trouble::Request(ClientError::Server(error))) => {
                Err(Trouble::Refused(self.session.refused().to_owned(), error))
            }
            done => done,
        }
    }

    fn command(&mut self, command: &Command, took: Duration) -> Done {
        self.ask_for_logs(command)?;
        match command {
            Command::Overview => self.overview(took),
            Command::Tools { name } => self.tools(name.as_deref()),
            Command::Resources => self.resources(),
            Command::Prompts => self.prompts(),
            Command::Skills => self.skills(),
            Command::Skill { name } => self.skill(name),
            Command::Tasks { action: None, .. } => self.list_tasks(),
            Command::Tasks { action: Some(action), ids } => self.tasks(*action, ids),
            Command::Events { name, args } => self.events(name.as_deref(), args),
            Command::Call { name, args } => self.call(name, args),
            Command::Read { uri } => self.read(uri),
            Command::Prompt { name, args } => self.prompt(name, args),
            Command::Complete { reference, name, value, args } => self.complete(reference, name, value, args),
            Command::Watch { uris } => self.watch(uris),
            Command::Ping => self.ping(),
            Command::Lint => self.lint(),
            Command::Install { name, hosts } => self.install(name, hosts),
            Command::Manifest => self.manifest(),
            Command::Login => self.login(),
            // It needs no connection.
            Command::Logout => Ok(()),
            Command::Raw { method, params } => self.raw(method, params.as_deref()),
        }
    }

    /// Logs in. Some servers demand it only for requests after the first.
    fn login(&mut self) -> Done {
        if self.features().has(ServerCapability::Tools) {
            self.session.list(Request::list_tools()).map_err(Trouble::Request)?;
        }
        let Target::Url(url) = self.target else { return Ok(()) };
        let done = if login::is_known(url) { "You are logged in" } else { "The server demands no login" };
        Ok(print(format!("{done}: {}\n", clean(url.clone())).as_bytes())?)
    }

    fn features(&mut self) -> ServerCapabilities {
        self.session.client().engine().offered
    }

    /// Sets the log level. Up to 2025-11-25 servers choose the level themselves, so it is set only on request.
    fn ask_for_logs(&mut self, command: &Command) -> Done {
        let modern = self.session.client().engine().revision().is_some_and(|revision| revision.is_modern());
        let wants = match command {
            Command::Watch { .. } => Some(LoggingLevel::Debug),
            Command::Call { .. } | Command::Read { .. } | Command::Prompt { .. } | Command::Raw { .. } if modern => {
                Some(LoggingLevel::Info)
            }
            _ => None,
        };
        let level = self.options.log.or(wants.filter(|_| !self.options.quiet));
        match level.filter(|_| self.features().has(ServerCapability::Logging)) {
            Some(level) => Ok(self.session.client().set_log_level(level)?),
            None => Ok(()),
        }
    }

    pub(crate) fn page(&self) -> Page {
        Page::new(self.look)
    }

    /// Prints the result. The command `trace` prints messages instead.
    pub(crate) fn print(&self, text: &str) -> Done {
        self.around.live.borrow_mut().clear();
        if !self.options.only_trace && !page_through(text, self.pretty) {
            print(text.as_bytes())?;
        }
        Ok(())
    }

    pub(crate) fn print_json(&self, json: &str) -> Done {
        let pretty = Raw::parse(json.as_bytes()).ok().filter(|_| self.pretty).map(|raw| pretty(raw, self.look.width));
        let mut text = pretty.unwrap_or_else(|| json.to_owned());
        text.push('\n');
        self.print(&text)
    }

    /// Requests a list. The result is empty if the server does not offer it.
    pub(crate) fn list(&mut self, key: &str, feature: ServerCapability) -> Result<Vec<OwnedResult>, Trouble> {
        if !self.features().has(feature) {
            return Ok(Vec::new());
        }
        match self.session.list(list_request(key)) {
            Err(ClientError::Server(error)) if error.code == code::METHOD_NOT_FOUND && key == "resourceTemplates" => {
                Ok(Vec::new())
            }
            done => Ok(done?),
        }
    }

    fn overview(&mut self, took: Duration) -> Done {
        let (mut lists, mut refused) = (Vec::new(), Vec::new());
        for (title, key, feature) in LISTS {
            match self.list(key, feature) {
                _ if !self.features().has(feature) => {}
                Ok(pages) => lists.push((title, key, pages)),
                // The other lists may work.
                Err(Trouble::Request(ClientError::Server(error))) => {
                    refused.push((title, self.session.refused().to_owned(), error))
                }
                Err(trouble) => return Err(trouble),
            }
        }
        let hello = self.session.client().server().cloned();
        let Some(hello) = hello else { return Ok(()) };
        if self.options.json {
            let mut json = Members::default();
            hello.server().into_iter().for_each(|info| json.add("server", &compact(info)));
            json.add("revision", &quote(hello.revision().date()));
            json.add("capabilities", &hello.capabilities().map_or_else(|| "{}".into(), compact));
            let instructions = hello.instructions().map(|text| quote(&text.to_string()));
            instructions.iter().for_each(|text| json.add("instructions", text));
            for (_, key, pages) in &lists {
                json.add(key, &array(&items(pages, key).into_iter().map(compact).collect::<Vec<_>>()));
            }
            if !refused.is_empty() {
                let errors: Vec<String> = refused.iter().map(|(_, method, error)| error_json(method, error)).collect();
                json.add("errors", &array(&errors));
            }
            self.print_json(&json.finish())?;
            return if refused.is_empty() { Ok(()) } else { Err(Trouble::RefusedLists) };
        }
        let mut page = self.page();
        let way = match self.target {
            Target::Url(url) => url.clone(),
            Target::Program(_) => "stdio".into(),
        };
        let facts = format!("{} · {way} · ready after {:.0} ms", hello.revision().date(), took.as_secs_f64() * 1e3);
        show::server(&mut page, hello.server(), &facts);
        hello.instructions().into_iter().for_each(|text| show::instructions(&mut page, text));
        show::capabilities(&mut page, hello.capabilities().unwrap_or(Raw::constant("{}")));
        for (title, key, pages) in &lists {
            let items = items(pages, key);
            if !items.is_empty() || *key != "resourceTemplates" {
                show::short_list(&mut page, &List { title, items });
            }
        }
        for (title, _, error) in &refused {
            show::refused(&mut page, title, error.code, &error.message);
        }
        self.print(&page.finish())?;
        if refused.is_empty() { Ok(()) } else { Err(Trouble::RefusedLists) }
    }

    pub(crate) fn print_lists(&self, lists: &[(&str, &[OwnedResult])]) -> Done {
        let mut json = Members::default();
        for (key, pages) in lists {
            json.add(key, &array(&items(pages, key).into_iter().map(compact).collect::<Vec<_>>()));
        }
        self.print_json(&json.finish())
    }

    fn tools(&mut self, name: Option<&str>) -> Done {
        let pages = self.list("tools", ServerCapability::Tools)?;
        let all = items(&pages, "tools");
        if let Some(name) = name {
            let tool = named(&all, "tool", name)?;
            if self.options.json {
                return self.print_json(&compact(tool));
            }
            let mut page = self.page();
            show::tools(&mut page, &[tool], true, self.sends_headers());
            return self.print(&page.finish());
        }
        if self.options.json {
            return self.print_lists(&[("tools", &pages)]);
        }
        let mut page = self.page();
        show::tools(&mut page, &all, false, self.sends_headers());
        self.nothing_if_empty(page, all.is_empty(), "tools")
    }

    /// Returns `true` if arguments with `x-mcp-header` are also sent as headers: over HTTP, since 2026-07-28. Tools with wrong
    /// annotations are not in the lists.
    fn sends_headers(&mut self) -> bool {
        matches!(self.target, Target::Url(_)) && self.session.client().engine().is_modern()
    }

    pub(crate) fn nothing_if_empty(&self, mut page: Page, empty: bool, what: &str) -> Done {
        if empty {
            page.say(0, Style::Dim, format_args!("The server has no {what}."));
        }
        self.print(&page.finish())
    }

    fn resources(&mut self) -> Done {
        let resources = self.list("resources", ServerCapability::Resources)?;
        let templates = self.list("resourceTemplates", ServerCapability::Resources)?;
        if self.options.json {
            return self.print_lists(&[("resources", &resources), ("resourceTemplates", &templates)]);
        }
        let mut page = self.page();
        let lists =
            [("Resources", items(&resources, "resources")), ("Templates", items(&templates, "resourceTemplates"))];
        let empty = lists.iter().all(|(_, items)| items.is_empty());
        for (title, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
            show::short_list(&mut page, &List { title, items });
        }
        self.nothing_if_empty(page, empty, "resources")
    }

    fn prompts(&mut self) -> Done {
        let pages = self.list("prompts", ServerCapability::Prompts)?;
        if self.options.json {
            return self.print_lists(&[("prompts", &pages)]);
        }
        let mut page = self.page();
        let all = items(&pages, "prompts");
        show::prompts(&mut page, &all);
        self.nothing_if_empty(page, all.is_empty(), "prompts")
    }

    fn call(&mut self, name: &str, args: &[String]) -> Done {
        let args = from_stdin(args)?;
        let mut pages = Vec::new();
        let json = if are_pairs(&args) {
            pages = self.list("tools", ServerCapability::Tools)?;
            let tool = named(&items(&pages, "tools"), "tool", name)?;
            let schema = Schema::new(tool.get("inputSchema").unwrap_or(Raw::constant("{}")));
            let json = build(&args, Some(&schema)).map_err(Trouble::Usage)?;
            self.note_odd(&schema, &json);
            json
        } else {
            build(&args, None).map_err(Trouble::Usage)?
        };
        let arguments = Raw::parse(json.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
        let answer = if self.needs_task(name)? {
            let params = format!("{{\"name\":{},\"arguments\":{json},\"task\":{{}}}}", quote(name));
            let params = Raw::parse(params.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
            self.session.request(&Request::raw("tools/call", Some(params)).with_progress())
        } else {
            self.session.request(&Request::call(name).arguments(&arguments).with_progress())
        };
        let answer = self.or_note_unknown(answer, ("tools", "name", ServerCapability::Tools), name)?;
        let answer = self.finished(answer)?;
        let shown = self.show_call(&answer);
        if pages.is_empty() && answer.raw().get("structuredContent").is_some() {
            // The answer is shown already: a server that does not list its tools in time has no further part in it.
            pages = self.session.list(Request::list_tools().timeout(LIST_AFTER)).unwrap_or_default();
        }
        if let Ok(tool) = named(&items(&pages, "tools"), "tool", name) {
            self.note_output(tool, answer.raw());
        }
        shown
    }

    /// Warns if an answer does not fit the output schema of its tool.
    fn note_output(&self, tool: Raw<'_>, answer: Raw<'_>) {
        let Some(schema) = tool.get("outputSchema") else { return };
        // One line each: a value of the server may have newlines.
        let note = |words: &str| self.around.live.borrow_mut().note(Style::Warn, &one_line(words));
        let Some(content) = answer.get("structuredContent") else {
            if answer.get("isError").and_then(|error| error.bool()) != Some(true) {
                note("the answer has no structuredContent, though the tool has an output schema");
            }
            return;
        };
        let report = check(schema, content, &SchemaLimits::DEFAULT);
        for mismatch in &report.mismatches {
            note(&format!("the answer does not fit the output schema: {mismatch}"));
        }
        if !report.ignored.is_empty() {
            let words = format!("not looked at in the output schema: {}", report.ignored.join(", "));
            self.around.live.borrow_mut().note(Style::Dim, &words);
        }
        if let Some(dialect) = report.dialect {
            let words = format!("the output schema is of the dialect {}; it was taken for 2020-12", one_line(dialect));
            self.around.live.borrow_mut().note(Style::Dim, &words);
        } else if report.is_incomplete {
            note(
                "the answer was not compared with the whole output schema: it is too large, or its $ref leads elsewhere",
            );
        }
    }

    /// Warns about what some clients refuse.
    fn lint(&mut self) -> Done {
        let pages = self.list("tools", ServerCapability::Tools)?;
        let all = items(&pages, "tools");
        let warnings = lint::tools(&all);
        let cost = lint::cost(&all);
        if self.options.json {
            let one = |warning: &lint::Warning| {
                let mut json = Members::default();
                json.add("tool", &quote(&warning.tool));
                json.add("place", &quote(&warning.place));
                json.add("warning", &quote(&warning.words));
                json.finish()
            };
            let list = array(&warnings.iter().map(one).collect::<Vec<_>>());
            let mut json = Members::default();
            json.add("warnings", &list);
            json.add("cost", &cost.json());
            self.print_json(&json.finish())?;
        } else {
            let mut page = self.page();
            for warning in &warnings {
                let place = [warning.tool.as_str(), warning.place.as_str()];
                let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
                page.hanging(
                    0,
                    2,
                    &Spans::of(Style::Name, place).and(Style::Plain, format_args!("  {}", warning.words)),
                );
            }
            if warnings.is_empty() {
                page.say(0, Style::Good, format_args!("{} tools, nothing that clients are known to refuse", all.len()));
            }
            page.say(0, Style::Dim, &cost);
            self.print(&page.finish())?;
        }
        if warnings.is_empty() { Ok(()) } else { Err(Trouble::Found) }
    }

    pub(crate) fn show_call(&self, answer: &OwnedResult) -> Done {
        let result: CallToolResult<'_> = answer.view()?;
        self.show_or_save(answer, |page| show::call(page, result))?;
        if result.is_error { Err(Trouble::Tool) } else { Ok(()) }
    }

    /// Warns if the arguments do not fit the schema. They are sent anyway, because the schema may be wrong.
    fn note_odd(&self, schema: &Schema<'_>, json: &str) {
        let given = Raw::parse(json.as_bytes()).unwrap_or(Raw::constant("{}"));
        let params = schema.params();
        let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
        for (name, _) in given.members() {
            let name = name.to_string();
            let meant = meant(&name, &names);
            if matches!(schema.member(schema.root(), &name), Member::Unknown(_)) {
                let note = format!("the schema has no {name:?}{meant}");
                self.around.live.borrow_mut().note(Style::Warn, &note);
            }
        }
        let missing: Vec<&str> = params
            .iter()
            .filter(|param| param.required && given.get(&param.name).is_none())
            .map(|param| param.name.as_str())
            .collect();
        if !missing.is_empty() {
            let note = format!("{}, says the schema", listed("missing:", "", &missing));
            self.around.live.borrow_mut().note(Style::Warn, &note);
        }
    }

    /// If the server does not know the name, suggests a similar one.
    fn or_note_unknown(
        &mut self,
        answer: Result<OwnedResult, ClientError>,
        (list, key, feature): (&str, &str, ServerCapability),
        name: &str,
    ) -> Result<OwnedResult, Trouble> {
        let refused = matches!(&answer, Err(ClientError::Server(error))
            if matches!(error.code, code::INVALID_PARAMS | code::RESOURCE_NOT_FOUND));
        if refused && let Ok(pages) = self.list(list, feature) {
            let texts = items(&pages, list).into_iter().filter_map(|item| item.get(key)?.text());
            let names: Vec<String> = texts.map(|text| text.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let meant = meant(name, &names);
            if !names.contains(&name) && !meant.is_empty() {
                let note = format!("{list} has no {name:?}{meant}");
                self.around.live.borrow_mut().note(Style::Warn, &note);
            }
        }
        Ok(answer?)
    }

    fn read(&mut self, uri: &str) -> Done {
        let answer = self.session.request(&Request::read(uri).with_progress());
        let answer = self.or_note_unknown(answer, ("resources", "uri", ServerCapability::Resources), uri)?;
        let result: ReadResourceResult<'_> = answer.view()?;
        self.show_or_save(&answer, |page| show::read(page, result))
    }

    fn show_or_save(&self, answer: &OwnedResult, show: impl FnOnce(&mut Page)) -> Done {
        if let Some(path) = &self.options.output {
            let body = show::one_body(answer.raw()).ok_or_else(|| {
                Trouble::Usage("the answer is not one text or one blob, so there is nothing to write to a file".into())
            })?;
            match path.as_str() {
                "-" => print(&body)?,
                path => std::fs::write(path, body)
                    .map_err(|error| Trouble::Usage(format!("{path} cannot be written: {error}")))?,
            }
            return Ok(());
        }
        if self.options.json {
            return self.print_json(&compact(answer.raw()));
        }
        let mut page = self.page();
        show(&mut page);
        let text = page.finish();
        if text.trim().is_empty() {
            // Not on stdout, where an empty text is what was asked for.
            self.around.live.borrow_mut().note(Style::Dim, "The answer is empty.");
        }
        self.print(&text)
    }

    fn prompt(&mut self, name: &str, args: &[String]) -> Done {
        let json = build(&from_stdin(args)?, None).map_err(Trouble::Usage)?;
        let arguments = Raw::parse(json.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
        let answer = self.session.request(&Request::prompt(name).arguments(&arguments).with_progress());
        let answer = self.or_note_unknown(answer, ("prompts", "name", ServerCapability::Prompts), name)?;
        let result: GetPromptResult<'_> = answer.view()?;
        self.show_or_save(&answer, |page| show::prompt(page, result))
    }

    fn complete(&mut self, reference: &str, name: &str, value: &str, args: &[String]) -> Done {
        let json = build(args, None).map_err(Trouble::Usage)?;
        let arguments = Raw::parse(json.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
        let template = reference.contains('{') || reference.contains("://");
        let mut request = match template {
            true => Request::complete_template(reference, name, value),
            false => Request::complete_prompt(reference, name, value),
        };
        if !args.is_empty() {
            request = request.arguments(&arguments);
        }
        let answer = self.session.request(&request)?;
        let result: CompleteResult<'_> = answer.view()?;
        self.show_or_save(&answer, |page| show::completion(page, result))
    }

    fn watch(&mut self, uris: &[String]) -> Done {
        let mut uris = uris.to_vec();
        if uris.is_empty() && self.features().has(ServerCapability::Subscribe) {
            let pages = self.list("resources", ServerCapability::Resources)?;
            let found = items(&pages, "resources").into_iter().filter_map(|item| item.get("uri")?.text());
            uris.extend(found.map(|uri| uri.to_string()));
        }
        let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
        let hello = self.session.client().server();
        let topics: &[_] =
            if are_offered(hello.and_then(|hello| hello.capabilities())) { &[LIST_CHANGED] } else { &[] };
        let filter = SubscriptionFilter::new().tools().prompts().resources().uris(&uris).topics(topics);
        self.session.client().listen(&filter)?;
        self.session.watch()?;
        match self.session.client().handler.over.take() {
            Some(why) => Err(Trouble::Over(why)),
            None => Ok(()),
        }
    }

    fn ping(&mut self) -> Done {
        const TIMES: usize = 5;
        let modern = self.session.client().engine().revision().is_some_and(|revision| revision.is_modern());
        let (method, request) =
            if modern { ("server/discover", Request::discover()) } else { ("ping", Request::ping()) };
        let mut millis = Vec::new();
        for _ in 0..TIMES {
            let begun = Instant::now();
            self.session.request(&request)?;
            millis.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        if self.options.json {
            let mut json = Members::default();
            json.add("method", &quote(method));
            json.add("milliseconds", &array(&millis.iter().map(|time| format!("{time:.3}")).collect::<Vec<_>>()));
            return self.print_json(&json.finish());
        }
        millis.sort_by(f64::total_cmp);
        let (fastest, median, slowest) = (millis[0], millis[TIMES / 2], millis[TIMES - 1]);
        let text = format!(
            "{TIMES} answers to {method}: fastest {fastest:.2} ms, median {median:.2} ms, slowest {slowest:.2} ms\n"
        );
        self.print(&text)
    }

    fn raw(&mut self, method: &str, params: Option<&str>) -> Done {
        let params = match params {
            Some(params) => from_stdin(&[params.to_owned()])?.remove(0),
            None => "{}".into(),
        };
        let params = Raw::parse(params.as_bytes())
            .map_err(|fault| Trouble::Usage(format!("the params are no valid JSON: {fault}")))?;
        if params.kind() != JsonKind::Object {
            return Err(Trouble::Usage("the params must be a JSON object".into()));
        }
        let answer = self.session.request(&Request::raw(method, Some(params)).with_progress())?;
        self.print_json(&compact(answer.raw()))
    }
}

/// Formats an error of the server as JSON, with the method that it refused.
pub(crate) fn error_json(method: &str, error: &ServerError) -> String {
    let mut json = Members::default();
    json.add("method", &quote(method));
    json.add("code", &error.code.to_string());
    json.add("message", &quote(&error.message));
    error.data.iter().for_each(|data| json.add("data", data));
    json.finish()
}

/// Finds the item of that name. The error lists the names that exist.
pub(crate) fn named<'a>(items: &[Raw<'a>], what: &str, name: &str) -> Result<Raw<'a>, Trouble> {
    let is = |item: &&Raw<'a>| item.get("name").and_then(|found| found.text()).is_some_and(|found| found.eq_str(name));
    items.iter().find(is).copied().ok_or_else(|| {
        let names: Vec<String> =
            items.iter().filter_map(|item| Some(crate::text::one_line(item.get("name")?.text()?))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Trouble::Usage(format!(
            "there is no {what} {name:?}{}; {}",
            meant(name, &names),
            listed("there are", "there are none", &names)
        ))
    })
}

/// Replaces the argument `-` with the text from stdin.
pub(crate) fn from_stdin(args: &[String]) -> Result<Vec<String>, Trouble> {
    if args != ["-"] {
        return Ok(args.to_vec());
    }
    let text = std::io::read_to_string(std::io::stdin())?;
    if text.trim().is_empty() {
        return Err(Trouble::Usage("there is nothing on stdin, where \"-\" reads the arguments from".into()));
    }
    Ok(vec![text])
}

/// Returns `true` if the error means that the server does not offer the feature.
pub(crate) fn is_not_offered(error: &ClientError) -> bool {
    matches!(error, ClientError::NotSent(SendError::NotOffered | SendError::NotInRevision))
}
