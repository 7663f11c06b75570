//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use crate::arguments::meant;
use mcp_sansio::protocol::Level;
use mcp_sansio::revision::Revision;

pub(crate) const HELP: &str = "\
inspect: looks at any MCP server

Usage: inspect [OPTIONS] [COMMAND] URL
       inspect [OPTIONS] [COMMAND] -- PROGRAM [ARGUMENTS]

Commands (without one: an overview)
  tools [NAME]             tools and what they take; of one, what it answers too
  resources                resources and resource templates
  prompts                  prompts and what they take
  call NAME [ARGS]         call a tool
  read URI                 read a resource
  prompt NAME [ARGS]       fill in a prompt
  complete REF NAME [TEXT] [ARGS]
                           what the argument NAME of a prompt, or of a template
                           (a URI with {braces}), could be that begins with TEXT
  watch [URI]...           print changes of the lists and of the resources (of all
                           that are listed), until Ctrl-C
  ping                     how long an answer takes
  raw METHOD [PARAMS]      send any request; PARAMS is a JSON object
  trace [COMMAND]          print the messages of a command, instead of its result

ARGS are key=value pairs, read as the types that the tool's schema names; key:=JSON
for a value as it is; or one JSON object. \"-\" reads that from stdin.

Options
  --json                   print results as JSON: one document; of watch and trace,
                           a line for each event
  --revision DATE          speak this revision: 2024-11-05, 2025-03-26, 2025-06-18,
                           2025-11-25, 2026-07-28 (default: the best that both speak)
  --timeout SECONDS        how long an answer may take (default: 60)
  --header 'NAME: VALUE'   send with each request over HTTP; may be repeated
  --env NAME=VALUE         set for the program; may be repeated
  --root PATH              a root to tell the server; may be repeated
  --log LEVEL              log messages to ask for: debug, info, notice, warning,
                           error, critical, alert, emergency (default: info, of
                           watch debug; up to 2025-11-25 what the server likes)
  -o, --output FILE        write what is read, or the one thing a tool answers, to a
                           file as it is
  --trace                  print all messages on stderr, too
  -q, --quiet              no progress, no logs, nothing of the program's stderr
  --no-color               no colours; so too if NO_COLOR is set, or not on a terminal
  -V, --version            print the version
  -h, --help               print this

On a terminal, questions of the server are asked there; elsewhere they are declined.

Exit codes: 0 good, 1 the tool failed, 2 wrong usage, 3 no connection, 4 the server
answered with an error, 5 it took too long, 6 the connection broke or an answer made
no sense, 130 interrupted (watch: 0)
";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Overview,
    Tools { name: Option<String> },
    Resources,
    Prompts,
    Call { name: String, args: Vec<String> },
    Read { uri: String },
    Prompt { name: String, args: Vec<String> },
    Complete { reference: String, name: String, value: String, args: Vec<String> },
    Watch { uris: Vec<String> },
    Ping,
    Raw { method: String, params: Option<String> },
}

const COMMANDS: [&str; 11] =
    ["tools", "resources", "prompts", "call", "read", "prompt", "complete", "watch", "ping", "raw", "trace"];

const OPTIONS: [&str; 13] = [
    "--json",
    "--revision",
    "--timeout",
    "--header",
    "--env",
    "--root",
    "--log",
    "--output",
    "--trace",
    "--quiet",
    "--no-color",
    "--version",
    "--help",
];

/// Where the server is.
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
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) roots: Vec<String>,
    pub(crate) log: Option<Level>,
    pub(crate) output: Option<String>,
    pub(crate) trace: bool,
    /// The messages are the result.
    pub(crate) only_trace: bool,
    pub(crate) quiet: bool,
    pub(crate) no_color: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Run(Box<(Options, Command, Target)>),
    Print(String),
}

/// Reads the command line, without the program's own name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, String> {
    let mut args = args.into_iter();
    let (mut options, mut words) = (Options::default(), Vec::new());
    let mut program = None;
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
            "--json" => options.json = true,
            "--trace" => options.trace = true,
            "-q" | "--quiet" => options.quiet = true,
            "--no-color" | "--no-colour" => options.no_color = true,
            "--revision" => options.revision = Some(revision(&value("a date, like 2026-07-28")?)?),
            "--timeout" => options.timeout = Some(seconds(&value("a number of seconds")?)?),
            "--header" => options.headers.push(pair(&value("a header, like 'Name: value'")?, ':', name)?),
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
    let (words, target) = target(words, program)?;
    match target {
        Target::Url(_) if !options.env.is_empty() => return Err("--env is for programs, not for a URL".into()),
        Target::Program(_) if !options.headers.is_empty() => {
            return Err("--header is for servers at a URL, not for programs".into());
        }
        _ => {}
    }
    options.only_trace = words.first().is_some_and(|word| word == "trace");
    options.trace |= options.only_trace;
    let command = command(words.into_iter().skip(usize::from(options.only_trace)))?;
    Ok(Parsed::Run(Box::new((options, command, target))))
}

fn utf8(arg: OsString) -> Result<String, String> {
    arg.into_string().map_err(|arg| format!("{} is not UTF-8", arg.to_string_lossy()))
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// What stands behind `--` is the program. Else the server is at a URL: the last word, or the first one, since no command
/// is a URL.
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
            let ways = "End with its URL (http:// or https://), or with -- and the program to start";
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

fn revision(date: &str) -> Result<Revision, String> {
    Revision::from_date(date).ok_or_else(|| {
        let dates: Vec<_> = Revision::ALL.iter().map(|revision| revision.date()).collect();
        format!("there is no revision {date:?}; there are {}", dates.join(", "))
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| *time >= Duration::from_millis(1) && *time <= Duration::from_secs(1_000_000))
        .ok_or_else(|| format!("--timeout needs a number of seconds, not {text:?}"))
}

fn level(name: &str) -> Result<Level, String> {
    let json = crate::json::quote(name);
    let level = mcp_sansio::json::Raw::parse(json.as_bytes()).ok().and_then(Level::read);
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
            Ok(Parsed::Print(text)) => Err(text),
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
        let read = Command::Read { uri: "https://docs/x".into() };
        assert_eq!(command("read https://docs/x http://h/mcp"), (read.clone(), url()));
        assert_eq!(command("http://h/mcp read https://docs/x"), (read.clone(), url()));
        assert_eq!(command("read https://docs/x -- s"), (read, program("s")));
        assert_eq!(
            command("complete p a x k=v -- s").0,
            Command::Complete { reference: "p".into(), name: "a".into(), value: "x".into(), args: vec!["k=v".into()] }
        );
        assert_eq!(command("watch a:b c:d -- s").0, Command::Watch { uris: vec!["a:b".into(), "c:d".into()] });
        assert_eq!(command("raw x/y - -- s").0, Command::Raw { method: "x/y".into(), params: Some("-".into()) });
        let (options, command, _) = parsed("trace ping -- s").unwrap();
        assert!(options.trace && options.only_trace && command == Command::Ping);
    }

    #[test]
    fn options() {
        let (options, ..) = parsed(
            "--json --timeout=2.5 --header A:b --header=C:d:e tools --root . --log info -q --no-color \
             --revision 2025-06-18 --trace -o f http://h/mcp",
        )
        .unwrap();
        let (with_env, ..) = parsed("--env X=y=z -- s").unwrap();
        assert_eq!(with_env.env, [("X".into(), "y=z".into())]);
        let expected = Options {
            json: true,
            revision: Some(Revision::V2025_06_18),
            timeout: Some(Duration::from_millis(2500)),
            headers: vec![("A".into(), "b".into()), ("C".into(), "d:e".into())],
            env: vec![],
            roots: vec![".".into()],
            log: Some(Level::Info),
            output: Some("f".into()),
            trace: true,
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
            ("tools localhost:80/mcp", "http:// or https://"),
            ("tool -- s", "(did you mean \"tools\"?)"),
            ("--jso -- s", "(did you mean \"--json\"?)"),
            ("--", "a program must follow --"),
            ("http://h -- s", "two servers"),
            ("tool -- s", "there is no command \"tool\""),
            ("call -- s", "call needs the name of a tool"),
            ("ping now -- s", "ping takes no \"now\""),
            ("--jso -- s", "there is no option --jso"),
            ("--timeout x -- s", "--timeout needs a number of seconds, not \"x\""),
            ("--timeout", "--timeout needs a number of seconds"),
            ("--header A -- s", "--header needs a name and a value"),
            ("--header A:b -- s", "--header is for servers at a URL"),
            ("--env A=b http://h", "--env is for programs"),
            ("--revision 2020 -- s", "there are 2024-11-05, 2025-03-26"),
            ("--log loud -- s", "there are debug, info"),
        ] {
            let wrong = parsed(line).unwrap_err();
            assert!(wrong.contains(words), "{line}: {wrong}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 86), "the help is too wide");
    }
}
