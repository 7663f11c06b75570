//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use crate::arguments::meant;
use crate::completions;
use crate::hosts::{HostKind, Places};
use crate::tasks::Action;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::revision::Revision;
use mcp_sansio::trace_context::TraceParent;

pub(crate) const HELP: &str = "\
inspect: looks at any MCP server

Usage: inspect [OPTIONS] [COMMAND] URL          https://…, http://… or unix:/path
       inspect [OPTIONS] [COMMAND] -- PROGRAM [ARGUMENTS]
       inspect [OPTIONS] --from HOST NAME [COMMAND]   a server that a host has

Commands (without one: an overview)
  tools [NAME]             tools and their arguments; of one tool, its output too
  resources                resources and resource templates
  prompts                  prompts and their arguments
  skills [FOLDER]          skills, their descriptions and sizes; with a FOLDER, those
                           in it, by the same rules and without a server
  call NAME [ARGS]         call a tool
  read URI                 read a resource
  prompt NAME [ARGS]       fill in a prompt
  skill NAME               the SKILL.md of a skill, by its name or URI; with -o its
                           verified files, to a new or empty folder
  tasks get|cancel ID...   show tasks, or ask the server to cancel them; without more:
                           the tasks of a server that has a list (2025-11-25)
  tasks follow ID          wait for the result of a task, as call does
  events [NAME [ARGS]]     event types; with a NAME, print what happens, until Ctrl-C
  complete REF NAME [TEXT] [ARGS]
                           complete the argument NAME of a prompt, or of a template
                           (a URI with {braces}): its values that begin with TEXT
  watch [URI]...           print changes of the lists and of the resources (of all
                           that are listed), until Ctrl-C
  ping                     how long an answer takes
  lint                     what of the tools some clients refuse: names and schemas;
                           and what their list costs a model
  install NAME [HOST]...   the configuration that starts the server as NAME, for the
                           hosts claude, claude-code, codex, cursor, gemini, vscode,
                           windsurf, zed (default: all); with --write into their
                           files, where these hosts are
  manifest                 write server.json for the registry, and of a program also
                           manifest.json of MCPB, or bring both up to date; in the
                           folder of -o
  completions SHELL        print the completions for bash, zsh or fish
  man                      print the manual page
  raw METHOD [PARAMS]      send any request; PARAMS is a JSON object
  login                    log in to a server at a URL now; the other commands do so
                           where the server demands it
  logout                   revoke and forget the login of a server at a URL
  trace [COMMAND]          print the messages of a command, instead of its result

ARGS are key=value pairs, read as the types that the tool's schema names; key:=JSON
for a value as it is; or one JSON object. \"-\" reads that from stdin. Dots reach into
objects and arrays: due.date=2026-01-02 list.0=4

Options
  --from HOST              take the server NAME from the file of a host of install
  --json                   print results as JSON: one document; of watch, trace and
                           events NAME, a line for each event
  --revision DATE          speak this revision: 2024-11-05, 2025-03-26, 2025-06-18,
                           2025-11-25, 2026-07-28 (default: the best that both speak)
  --timeout SECONDS        how long an answer may take (default: 60); progress begins
                           the time again
  --total SECONDS          how long everything together may take; of watch and
                           events: how long to watch
  --header 'NAME: VALUE'   send with each request over HTTP; may be repeated
  --no-browser             only print the URL of a login; without it, the program that
                           BROWSER names opens it, or the system's browser
  --client-id ID           the client that is registered for this program
  --client-secret-env NAME the variable that has the client's secret
  --client-metadata URL    the client metadata document that is this client's id
  --scope SCOPES           scopes to ask for besides those that the server demands
  --env NAME=VALUE         set for the program; may be repeated
  --root PATH              a root for the server; may be repeated
  --check                  of manifest: write nothing, and tell what is out of date
  --cargo                  of manifest: the package of the Cargo.toml in the folder,
                           and whether its README shows the server's name
  --pack                   of manifest: the bundle too, as NAME-VERSION.mcpb with its
                           digest
  --write                  of install: write the files, with a copy of the old ones
  --bridge                 of install: put mcp-bridge before the server, which may
                           then be restarted, or of another revision
  --log LEVEL              log messages to ask for: debug, info, notice, warning,
                           error, critical, alert, emergency (default: info, of
                           watch debug; up to 2025-11-25 the server's choice)
  -o, --output FILE        write the contents of a resource, or the only item of a
                           tool's answer, to a file unchanged; of a skill, a folder
  --trace                  print all messages on stderr, too
  --traceparent VALUE      the trace that the requests belong to, as W3C Trace Context
                           writes it (default: the variable TRACEPARENT)
  -q, --quiet              hide progress, logs and the program's stderr
  --no-color               no colours; also if NO_COLOR is set, or without a terminal
  -V, --version            print the version
  -h, --help               print this

Questions of the server are asked on the terminal. Without one, the server learns
that they get no answers: its tool does without, or the call is refused.
A call may become a task: its status is shown until it has a result, for at most an
hour, or the seconds of --timeout. Ctrl-C asks the server to cancel the task; the
second Ctrl-C does not wait for its end.

On a terminal, the program that PAGER names, or less, shows what is longer than it.
No proxy is used: the variables HTTP_PROXY and HTTPS_PROXY are not read.

Exit codes: 0 good, 1 the tool failed, or lint or --check found something, 2 wrong
usage, 3 no connection, 4 the server answered with an error, 5 time-out, 6 the
connection broke or an answer was invalid, 130 interrupted (watch: 0)
";

/// The command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Overview,
    Tools { name: Option<String> },
    Resources,
    Prompts,
    Skills,
    Skill { name: String },
    Events { name: Option<String>, args: Vec<String> },
    Tasks { action: Option<Action>, ids: Vec<String> },
    Call { name: String, args: Vec<String> },
    Read { uri: String },
    Prompt { name: String, args: Vec<String> },
    Complete { reference: String, name: String, value: String, args: Vec<String> },
    Watch { uris: Vec<String> },
    Ping,
    Lint,
    Install { name: String, hosts: Vec<HostKind> },
    Manifest,
    Raw { method: String, params: Option<String> },
    Login,
    Logout,
}

pub(crate) const COMMANDS: [&str; 22] = [
    "tools",
    "resources",
    "prompts",
    "skills",
    "tasks",
    "call",
    "read",
    "prompt",
    "skill",
    "events",
    "complete",
    "watch",
    "ping",
    "lint",
    "install",
    "manifest",
    "completions",
    "man",
    "raw",
    "trace",
    "login",
    "logout",
];

pub(crate) const OPTIONS: [&str; 26] = [
    "--from",
    "--cargo",
    "--pack",
    "--total",
    "--check",
    "--write",
    "--bridge",
    "--no-browser",
    "--client-id",
    "--client-secret-env",
    "--client-metadata",
    "--scope",
    "--json",
    "--revision",
    "--timeout",
    "--header",
    "--env",
    "--root",
    "--log",
    "--output",
    "--trace",
    "--traceparent",
    "--quiet",
    "--no-color",
    "--version",
    "--help",
];

/// The address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Url(String),
    Program(Vec<OsString>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) json: bool,
    pub(crate) revision: Option<Revision>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) total: Option<Duration>,
    pub(crate) check: bool,
    pub(crate) cargo: bool,
    pub(crate) pack: bool,
    pub(crate) write: bool,
    pub(crate) bridge: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) no_browser: bool,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret_env: Option<String>,
    pub(crate) client_metadata: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    /// The working directory of the program.
    pub(crate) folder: Option<String>,
    pub(crate) roots: Vec<String>,
    pub(crate) log: Option<LoggingLevel>,
    pub(crate) output: Option<String>,
    pub(crate) trace: bool,
    pub(crate) traceparent: Option<TraceParent>,
    /// The command `trace`: print the messages instead of the result.
    pub(crate) only_trace: bool,
    pub(crate) quiet: bool,
    pub(crate) no_color: bool,
}

/// The result of parsing: a command to run, or a text to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Run(Box<(Options, Command, Target)>),
    /// Show the skills in a folder.
    Skills(Box<Options>, String),
    Print(String),
}

/// Parses the command line, without the program's own name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, String> {
    let mut args = args.into_iter();
    let (mut options, mut words) = (Options::default(), Vec::new());
    let (mut program, mut from) = (None, None);
    while let Some(arg) = args.next() {
        let arg = utf8(arg)?;
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg.as_str(), None),
        };
        let mut value = |what: &str| match inline.clone() {
            Some(value) => Ok(value),
            None => args.next().map(utf8).transpose()?.ok_or_else(|| format!("{name} needs {what}")),
        };
        match name {
            "--" => {
                program = Some(args.collect());
                break;
            }
            "-h" | "--help" => return Ok(Parsed::Print(HELP.into())),
            "-V" | "--version" => return Ok(Parsed::Print(format!("inspect {}\n", env!("CARGO_PKG_VERSION")))),
            "--from" => from = Some(HostKind::named(&value("a host, like claude")?)?),
            "--json" => options.json = true,
            "--trace" => options.trace = true,
            "--traceparent" => options.traceparent = Some(traceparent(&value("a traceparent")?)?),
            "-q" | "--quiet" => options.quiet = true,
            "--no-color" | "--no-colour" => options.no_color = true,
            "--revision" => options.revision = Some(revision(&value("a date, like 2026-07-28")?)?),
            "--timeout" => options.timeout = Some(seconds(name, &value("a number of seconds")?)?),
            "--total" => options.total = Some(seconds(name, &value("a number of seconds")?)?),
            "--check" => options.check = true,
            "--cargo" => options.cargo = true,
            "--pack" => options.pack = true,
            "--write" => options.write = true,
            "--bridge" => options.bridge = true,
            "--header" => options.headers.push(pair(&value("a header, like 'Name: value'")?, ':', name)?),
            "--no-browser" => options.no_browser = true,
            "--client-id" => options.client_id = Some(value("the id of a client")?),
            "--client-secret-env" => options.client_secret_env = Some(value("the name of a variable")?),
            "--client-metadata" => options.client_metadata = Some(value("a URL")?),
            "--scope" => options.scope = Some(value("scopes, with spaces between")?),
            "--env" => options.env.push(pair(&value("a variable, like NAME=value")?, '=', name)?),
            "--root" => options.roots.push(value("a path")?),
            "--log" => options.log = Some(level(&value("a level, like info")?)?),
            "-o" | "--output" => options.output = Some(value("a file")?),
            _ if arg.len() > 1 && arg.starts_with('-') => {
                return Err(format!("there is no option {arg}{}", meant(name, &OPTIONS)));
            }
            _ => words.push(arg),
        }
    }
    if program.is_none() && from.is_none() && !words.last().is_some_and(|word| is_url(word)) {
        match words.as_slice() {
            [first] if first == "man" => return Ok(Parsed::Print(completions::man())),
            [first, shell] if first == "completions" => return completions::script(shell).map(Parsed::Print),
            [first, ..] if first == "completions" => {
                return Err(format!("completions needs one shell: {}", completions::SHELLS.join(", ")));
            }
            [first, folder] if first == "skills" => return Ok(Parsed::Skills(Box::new(options), folder.clone())),
            _ => {}
        }
    }
    let (words, target) = match from {
        Some(_) if program.is_some() => {
            return Err("there are two servers: one of --from, and a program behind --".into());
        }
        Some(host) => known(host, words, &mut options)?,
        None => target(words, program)?,
    };
    options.only_trace = words.first().is_some_and(|word| word == "trace");
    options.trace |= options.only_trace;
    let command = command(words.into_iter().skip(usize::from(options.only_trace)))?;
    check(&options, &command, &target)?;
    Ok(Parsed::Run(Box::new((options, command, target))))
}

/// Checks that options, command and server belong together.
fn check(options: &Options, command: &Command, target: &Target) -> Result<(), String> {
    let wrong = match target {
        Target::Url(_) if !options.env.is_empty() => "--env is for programs, not for a URL",
        Target::Url(url) if is_unix(url) && is_for_others(command) => {
            "login, logout, install and manifest need a server on the network, not at a Unix socket"
        }
        Target::Program(_) if options.is_about_login() => {
            "--client-id, --client-metadata and --scope are for servers at a URL"
        }
        _ if options.client_secret_env.is_some() && options.client_id.is_none() => {
            "--client-secret-env needs --client-id"
        }
        _ if (options.check || options.cargo || options.pack) && *command != Command::Manifest => {
            "--check, --cargo and --pack are for manifest"
        }
        Target::Url(_) if options.cargo || options.pack => "--cargo and --pack are for programs, not for a URL",
        _ if options.write && !matches!(command, Command::Install { .. }) => "--write is for install",
        _ if options.bridge && !matches!(command, Command::Install { .. }) => "--bridge is for install",
        Target::Url(_) if options.bridge && !options.headers.is_empty() => "--bridge sends no --header",
        Target::Program(_) if !options.headers.is_empty() => "--header is for servers at a URL, not for programs",
        Target::Program(_) if matches!(command, Command::Login | Command::Logout) => {
            "login and logout are for servers at a URL"
        }
        _ => return Ok(()),
    };
    Err(wrong.into())
}

impl Options {
    fn is_about_login(&self) -> bool {
        [&self.client_id, &self.client_secret_env, &self.client_metadata, &self.scope].into_iter().any(Option::is_some)
    }
}

fn utf8(arg: OsString) -> Result<String, String> {
    arg.into_string().map_err(|arg| format!("{} is not UTF-8", arg.to_string_lossy()))
}

fn is_url(word: &str) -> bool {
    // Schemes have no case (RFC 3986, section 3.1).
    let begins = |scheme: &str| word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://") || is_unix(word)
}

/// Returns whether a URL names a Unix socket.
pub(crate) fn is_unix(url: &str) -> bool {
    url.starts_with("unix:")
}

/// Finds the server that a host knows by the first word. What the command line says goes before what the host's file says.
fn known(host: HostKind, mut words: Vec<String>, options: &mut Options) -> Result<(Vec<String>, Target), String> {
    let found = host.find(words.first().map(String::as_str), &Places::here())?;
    words.remove(0);
    options.env.splice(0..0, found.env);
    let named = |name: &str| options.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let headers: Vec<_> = found.headers.into_iter().filter(|(name, _)| !named(name)).collect();
    options.headers.extend(headers);
    options.folder = found.folder;
    let target = match found.program.is_empty() {
        true => Target::Url(found.url),
        false => Target::Program(found.program.into_iter().map(OsString::from).collect()),
    };
    Ok((words, target))
}

/// Returns whether a command is about a server that others can reach.
const fn is_for_others(command: &Command) -> bool {
    matches!(command, Command::Login | Command::Logout | Command::Install { .. } | Command::Manifest)
}

/// Finds the server. The words after `--` are the program. Without `--`, the first or the last word is a URL; no
/// command is a URL.
fn target(mut words: Vec<String>, program: Option<Vec<OsString>>) -> Result<(Vec<String>, Target), String> {
    match program {
        Some(program) if program.is_empty() => return Err("a program must follow --".into()),
        Some(_) if words.first().is_some_and(|word| is_url(word)) => {
            return Err("there are two servers: a URL, and a program behind --".into());
        }
        Some(program) => return Ok((words, Target::Program(program))),
        None => {}
    }
    let url = match words.as_slice() {
        [first, ..] if is_url(first) => words.remove(0),
        [.., last] if is_url(last) => words.pop().unwrap_or_default(),
        _ => {
            let ways = "End with its URL (https://, http:// or unix:/path), or with -- and the program to start";
            return Err(format!("which server? {ways}"));
        }
    };
    Ok((words, Target::Url(url)))
}

fn command(mut words: impl Iterator<Item = String>) -> Result<Command, String> {
    let Some(verb) = words.next() else { return Ok(Command::Overview) };
    let mut need = |what: &str| words.next().ok_or_else(|| format!("{verb} needs {what}"));
    let command = match verb.as_str() {
        "tools" => Command::Tools { name: words.next() },
        "resources" => Command::Resources,
        "prompts" => Command::Prompts,
        "skills" => Command::Skills,
        "skill" => Command::Skill { name: need("the name of a skill, or its URI")? },
        "events" => Command::Events { name: words.next(), args: words.by_ref().collect() },
        "tasks" => tasks(&mut words)?,
        "call" => Command::Call { name: need("the name of a tool")?, args: words.by_ref().collect() },
        "read" => Command::Read { uri: need("the URI of a resource")? },
        "prompt" => Command::Prompt { name: need("the name of a prompt")?, args: words.by_ref().collect() },
        "complete" => Command::Complete {
            reference: need("the name of a prompt, or a URI template")?,
            name: need("the name of an argument")?,
            value: words.next().unwrap_or_default(),
            args: words.by_ref().collect(),
        },
        "watch" => Command::Watch { uris: words.by_ref().collect() },
        "ping" => Command::Ping,
        "lint" => Command::Lint,
        "manifest" => Command::Manifest,
        "install" => Command::Install {
            name: need("the name of the server in the host's file")?,
            hosts: words.by_ref().map(|word| HostKind::named(&word)).collect::<Result<_, _>>()?,
        },
        "completions" | "man" => return Err(format!("{verb} needs no server")),
        "login" => Command::Login,
        "logout" => Command::Logout,
        "raw" => Command::Raw { method: need("a method, like tools/list")?, params: words.next() },
        _ => {
            let meant = meant(&verb, &COMMANDS);
            return Err(format!("there is no command {verb:?}{meant}; there are {}", COMMANDS.join(", ")));
        }
    };
    match words.next() {
        Some(more) => Err(format!("{verb} takes no {more:?}")),
        None => Ok(command),
    }
}

fn tasks(words: &mut impl Iterator<Item = String>) -> Result<Command, String> {
    let Some(name) = words.next() else { return Ok(Command::Tasks { action: None, ids: Vec::new() }) };
    let action = Action::named(&name).ok_or_else(|| format!("tasks takes get, follow or cancel, not {name:?}"))?;
    let most = if action == Action::Follow { 1 } else { usize::MAX };
    let ids: Vec<String> = words.take(most).collect();
    if ids.is_empty() {
        return Err(format!("tasks {name} needs the id of a task"));
    }
    Ok(Command::Tasks { action: Some(action), ids })
}

fn revision(date: &str) -> Result<Revision, String> {
    Revision::from_date(date).ok_or_else(|| {
        let dates: Vec<_> = Revision::ALL.iter().map(|revision| revision.date()).collect();
        format!("there is no revision {date:?}; there are {}", dates.join(", "))
    })
}

fn traceparent(text: &str) -> Result<TraceParent, String> {
    TraceParent::parse(text).map_err(|error| format!("--traceparent: {text:?} is {error}"))
}

fn seconds(option: &str, text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| *time >= Duration::from_millis(1) && *time <= Duration::from_secs(1_000_000))
        .ok_or_else(|| format!("{option} needs a number of seconds, not {text:?}"))
}

fn level(name: &str) -> Result<LoggingLevel, String> {
    let json = crate::json::quote(name);
    let level = mcp_sansio::json::Raw::parse(json.as_bytes()).ok().and_then(LoggingLevel::read);
    level.ok_or_else(|| {
        format!("there is no level {name:?}; there are debug, info, notice, warning, error, critical, alert, emergency")
    })
}

fn pair(text: &str, between: char, option: &str) -> Result<(String, String), String> {
    let pair = text.split_once(between).map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pair.filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("{option} needs a name and a value with {between:?} between them, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Options, Command, Target), String> {
        match parse(line.split(' ').filter(|word| !word.is_empty()).map(OsString::from)) {
            Ok(Parsed::Run(run)) => Ok(*run),
            Ok(Parsed::Print(text) | Parsed::Skills(_, text)) => Err(text),
            Err(wrong) => Err(wrong),
        }
    }

    fn program(line: &str) -> Target {
        Target::Program(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn servers_and_commands() {
        let url = || Target::Url("http://h/mcp".into());
        let command = |line: &str| parsed(line).map(|(_, command, target)| (command, target)).unwrap();
        assert_eq!(command("-- ./s --json tools"), (Command::Overview, program("./s --json tools")));
        assert_eq!(command("tools -- ./s -- --x"), (Command::Tools { name: None }, program("./s -- --x")));
        assert_eq!(command("http://h/mcp"), (Command::Overview, url()));
        let add = Command::Call { name: "add".into(), args: vec!["a=1".into(), "b=2".into()] };
        assert_eq!(command("call add a=1 b=2 http://h/mcp"), (add.clone(), url()));
        assert_eq!(command("http://h/mcp call add a=1 b=2"), (add, url()));
        assert_eq!(command("unix:/run/s tools").1, Target::Url("unix:/run/s".into()));
        let read = Command::Read { uri: "https://docs/x".into() };
        assert_eq!(command("read https://docs/x http://h/mcp"), (read.clone(), url()));
        assert_eq!(command("http://h/mcp read https://docs/x"), (read.clone(), url()));
        assert_eq!(command("read https://docs/x -- s"), (read, program("s")));
        assert_eq!(
            command("complete p a x k=v -- s").0,
            Command::Complete { reference: "p".into(), name: "a".into(), value: "x".into(), args: vec!["k=v".into()] }
        );
        assert_eq!(command("watch a:b c:d -- s").0, Command::Watch { uris: vec!["a:b".into(), "c:d".into()] });
        assert_eq!(command("events -- s").0, Command::Events { name: None, args: vec![] });
        assert_eq!(command("tasks -- s").0, Command::Tasks { action: None, ids: vec![] });
        let cancel = Command::Tasks { action: Some(Action::Cancel), ids: vec!["a".into(), "b".into()] };
        assert_eq!(command("tasks cancel a b -- s").0, cancel);
        assert_eq!(command("raw x/y - -- s").0, Command::Raw { method: "x/y".into(), params: Some("-".into()) });
        let (options, command, _) = parsed("trace ping -- s").unwrap();
        assert!(options.trace && options.only_trace && command == Command::Ping);
    }

    #[test]
    fn options() {
        let (options, ..) = parsed(
            "--json --timeout=2.5 --total 60 --header A:b --header=C:d:e tools --root . --log info -q --no-color \
             --revision 2025-06-18 --trace -o f --no-browser --client-id i --client-secret-env S \
             --client-metadata https://c/m --scope a http://h/mcp",
        )
        .unwrap();
        let (with_env, ..) = parsed("--env X=y=z -- s").unwrap();
        assert_eq!(with_env.env, [("X".into(), "y=z".into())]);
        let expected = Options {
            json: true,
            revision: Some(Revision::V2025_06_18),
            timeout: Some(Duration::from_millis(2500)),
            total: Some(Duration::from_secs(60)),
            check: false,
            cargo: false,
            pack: false,
            write: false,
            bridge: false,
            headers: vec![("A".into(), "b".into()), ("C".into(), "d:e".into())],
            no_browser: true,
            client_id: Some("i".into()),
            client_secret_env: Some("S".into()),
            client_metadata: Some("https://c/m".into()),
            scope: Some("a".into()),
            env: vec![],
            folder: None,
            roots: vec![".".into()],
            log: Some(LoggingLevel::Info),
            output: Some("f".into()),
            trace: true,
            traceparent: None,
            only_trace: false,
            quiet: true,
            no_color: true,
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn wrong_usage_says_what_is_right() {
        for (line, words) in [
            ("", "which server?"),
            ("tools", "which server?"),
            ("tools localhost:80/mcp", "https://, http:// or unix:/path"),
            ("install s unix:/run/s", "not at a Unix socket"),
            ("tool -- s", "(did you mean \"tools\"?)"),
            ("--jso -- s", "(did you mean \"--json\"?)"),
            ("--", "a program must follow --"),
            ("http://h -- s", "two servers"),
            ("tool -- s", "there is no command \"tool\""),
            ("call -- s", "call needs the name of a tool"),
            ("ping now -- s", "ping takes no \"now\""),
            ("tasks a -- s", "tasks takes get, follow or cancel, not \"a\""),
            ("tasks get -- s", "tasks get needs the id of a task"),
            ("tasks follow a b -- s", "tasks takes no \"b\""),
            ("--jso -- s", "there is no option --jso"),
            ("--traceparent 00-x -- s", "--traceparent: \"00-x\" is not a traceparent"),
            ("--total x -- s", "--total needs a number of seconds, not \"x\""),
            ("--check tools -- s", "--check, --cargo and --pack are for manifest"),
            ("--pack manifest http://h", "--cargo and --pack are for programs"),
            ("--write tools -- s", "--write is for install"),
            ("--bridge tools -- s", "--bridge is for install"),
            ("--bridge --header A:b install s http://h", "--bridge sends no --header"),
            ("install a nano -- s", "there is no host \"nano\"; there are claude, claude-code, codex, cursor,"),
            ("install -- s", "install needs the name of the server"),
            ("completions", "completions needs one shell: bash, zsh, fish"),
            (
                "completions ksh",
                "there are no completions for \"ksh\" (did you mean \"zsh\"?); there are bash, zsh, fish",
            ),
            ("completions bash -- s", "completions needs no server"),
            ("man -- s", "man needs no server"),
            ("--from nano a", "there is no host \"nano\""),
            ("--from zed a -- s", "two servers: one of --from"),
            ("--timeout x -- s", "--timeout needs a number of seconds, not \"x\""),
            ("--timeout", "--timeout needs a number of seconds"),
            ("--header A -- s", "--header needs a name and a value"),
            ("--header A:b -- s", "--header is for servers at a URL"),
            ("--env A=b http://h", "--env is for programs"),
            ("--scope a -- s", "--scope are for servers at a URL"),
            ("--client-secret-env A http://h", "--client-secret-env needs --client-id"),
            ("login -- s", "login and logout are for servers at a URL"),
            ("--revision 2020 -- s", "there are 2024-11-05, 2025-03-26"),
            ("--log loud -- s", "there are debug, info"),
        ] {
            let wrong = parsed(line).unwrap_err();
            assert!(wrong.contains(words), "{line}: {wrong}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 86), "the help is too wide");
    }
}
