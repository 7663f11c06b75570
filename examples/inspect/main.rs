//! Inspects any MCP server from the command line. `inspect --help` lists the commands.

mod args;
mod arguments;
mod ask;
mod commands;
mod completions;
mod edit;
mod events;
mod host;
mod hosts;
mod install;
mod json;
mod lint;
mod live;
#[cfg_attr(not(unix), path = "login_other.rs")]
mod login;
mod manifest;
mod pack;
mod page;
mod schema;
mod session;
mod show;
mod skills;
#[cfg_attr(not(unix), path = "system_other.rs")]
mod system;
mod tasks;
mod terminal;
mod text;
mod toml;
mod trace;

use std::cell::RefCell;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use mcp_sansio::client::{ClientInfo, ErrorObject, TransportError};
use mcp_sansio::protocol::{ClientCapability, code};
use mcp_sansio::revision::Revisions;
use mcp_sansio_blocking::client::{ClientError, ServerError};
use mcp_sansio_extensions::tasks::client::{DECLARATION, RESULT_TYPES, TaskEnd};

use args::{Command, Options, Parsed, Target};
use commands::{Run, Trouble};
use host::{Host, News};
use live::Live;
use page::{Look, Style};
use session::{Around, Session};
use terminal::Stop;

fn main() -> ExitCode {
    let begun = Instant::now();
    let (options, command, target) = match args::parse(std::env::args_os().skip(1)) {
        Ok(Parsed::Run(run)) => *run,
        Ok(Parsed::Print(text)) => {
            return ExitCode::from(if terminal::print(text.as_bytes()).is_ok() { 0 } else { 6 });
        }
        Ok(Parsed::Skills(options, folder)) => return skills::in_folder(Path::new(&folder), &options),
        Err(wrong) => {
            live::write(&format!("inspect: {}; see inspect --help\n", text::clean(wrong)));
            return ExitCode::from(2);
        }
    };
    let look = terminal::look(&io::stderr(), options.no_color);
    let live = Rc::new(RefCell::new(Live::new(look, io::stderr().is_terminal(), options.quiet)));
    if options.trace {
        live.borrow_mut().connected();
    }
    let done = inspect(&options, &command, &target, begun, look, &live);
    live.borrow_mut().clear();
    let Err(trouble) = done else { return ExitCode::SUCCESS };
    let (code, mut words) = explain(&trouble, &options, &command, &target);
    // If the connection was made, the user has seen the server's stderr already.
    if live.borrow().shows_stderr()
        && let Some((before, _)) = words.split_once("after it wrote to stderr: ")
    {
        words = before.trim_end_matches([' ', ',', ';']).to_owned();
    }
    if !words.is_empty() {
        live::write(&format!("{} {}\n", look.paint(Style::Bad, "inspect:"), text::clean(words)));
    }
    ExitCode::from(code)
}

fn inspect(
    options: &Options,
    command: &Command,
    target: &Target,
    begun: Instant,
    look: Look,
    live: &Rc<RefCell<Live>>,
) -> Result<(), Trouble> {
    let stop = Stop::listen()?;
    if let (Command::Logout, Target::Url(url)) = (command, target) {
        let done = if login::logout(url, options, &stop)? { "The login is forgotten" } else { "There was no login" };
        return Ok(terminal::print(format!("{done}: {}\n", text::clean(url.clone())).as_bytes())?);
    }
    let out = terminal::look(&io::stdout(), options.no_color);
    let interactive = io::stdin().is_terminal() && io::stderr().is_terminal();
    let roots = roots(&options.roots)?;
    let profile = profile(options, !roots.is_empty(), interactive);
    let news = news(command, options, out);
    let host = Host {
        live: Rc::clone(live),
        roots,
        interactive,
        news,
        waiting: Vec::new(),
        withdrawn: Vec::new(),
        over: None,
        odd: Vec::new(),
    };
    // The time of everything began when the program did.
    let deadline = options.total.map(|total| begun + total);
    let around = Around { live: Rc::clone(live), stop, look, deadline };
    let mut session = Session::new(target, options, &profile, host, around.clone()).map_err(Trouble::Connect)?;
    if options.trace {
        let form = match (options.only_trace, options.json) {
            (true, true) => trace::Form::Json,
            (true, false) => trace::Form::Lines(out),
            (false, _) => trace::Form::Aside(look),
        };
        let mut tracer = trace::Tracer::new(form, Rc::clone(live), begun);
        session.client().trace(move |way, message| tracer.show(way, message));
    }
    let pretty = io::stdout().is_terminal();
    let done = Run { session: &mut session, options, target, around: &around, look: out, pretty }.run(command);
    if let (true, Err(Trouble::Refused(method, error))) = (options.json && !options.only_trace, &done) {
        terminal::print(format!("{{\"error\":{}}}\n", commands::error_json(method, error)).as_bytes())?;
    }
    session.close();
    let lost = live.borrow_mut().lost.take();
    done.and(lost.map_or(Ok(()), |error| Err(Trouble::Io(error))))
}

/// Returns the profile of this client.
fn profile(options: &Options, has_roots: bool, interactive: bool) -> ClientInfo<'static> {
    let mut profile = ClientInfo::new("inspect", env!("CARGO_PKG_VERSION")).title("Inspector of mcp-sansio");
    profile = profile.extensions(DECLARATION, RESULT_TYPES);
    // Without a user, the questions are not declared: a server can then use another way.
    if interactive {
        profile = profile
            .feature(ClientCapability::ElicitForm)
            .feature(ClientCapability::ElicitUrl)
            .feature(ClientCapability::Sampling);
    }
    if has_roots {
        profile = profile.feature(ClientCapability::Roots);
    }
    match options.revision {
        Some(revision) => profile.revisions(Revisions::NONE.with(revision)),
        None => profile,
    }
}

/// Selects the format of events on stdout.
fn news(command: &Command, options: &Options, out: Look) -> News {
    match command {
        Command::Watch { .. } if options.only_trace => News::No,
        Command::Watch { .. } if options.json => News::Json,
        Command::Watch { .. } => News::Lines(out),
        _ => News::No,
    }
}

/// Converts the roots to URIs with names.
fn roots(paths: &[String]) -> Result<Vec<(String, String)>, Trouble> {
    let root = |path: &String| {
        let full = std::fs::canonicalize(path);
        let full = full.map_err(|error| Trouble::Usage(format!("--root {path}: {error}")))?;
        let name = full.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned());
        Ok((file_uri(&full), name))
    };
    paths.iter().map(root).collect()
}

fn file_uri(path: &Path) -> String {
    let path = path.as_os_str().as_encoded_bytes();
    let (begin, path) = match path.strip_prefix(br"\\?\") {
        Some(path) => ("file:///", path), // of Windows
        None => ("file://", path),
    };
    let mut uri = String::from(begin);
    for &byte in path {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(byte.into()),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the exit code and the error message.
fn explain(trouble: &Trouble, options: &Options, command: &Command, target: &Target) -> (u8, String) {
    let (code, error) = match trouble {
        Trouble::Usage(words) => return (2, words.clone()),
        Trouble::Tool | Trouble::Found => return (1, String::new()),
        Trouble::Flaw(flaw) => return (6, format!("the answer is not what it must be: {flaw}; add --trace to see it")),
        Trouble::Over(why) => return (6, why.clone()),
        Trouble::Io(error) if error.kind() == ErrorKind::Interrupted => return (130, String::new()),
        Trouble::Io(error) => return (6, error.to_string()),
        Trouble::Refused(method, error) => return (4, refusal(method, error, command)),
        Trouble::RefusedLists => return (4, String::new()),
        Trouble::Task { end, interrupted } => {
            let (code, words) = task_end(end);
            return (if *interrupted { 130 } else { code }, words);
        }
        Trouble::Connect(error) => (3, error),
        Trouble::Request(error) => (6, error),
    };
    match error {
        ClientError::Io(error) if error.kind() == ErrorKind::Interrupted => (130, String::new()),
        ClientError::Io(error) if session::is_total(error) => (5, error.to_string()),
        ClientError::Url(_) => (2, error.to_string()),
        ClientError::Lost { why: TransportError::TimedOut, detail } => {
            let detail = if detail.is_empty() { String::new() } else { format!("; {detail}") };
            (5, format!("it took too long{detail}; --timeout SECONDS gives it more time, --trace shows the messages"))
        }
        ClientError::Lost { why: TransportError::Unauthorized, .. } => {
            (code, format!("{error}; a token can be given with --header 'Authorization: Bearer TOKEN'"))
        }
        ClientError::Lost { why: TransportError::Status(404 | 405), .. } | ClientError::Server(_)
            if code == 3 && !has_path(target) =>
        {
            (code, format!("{error}; many servers are at a path, like /mcp"))
        }
        ClientError::Lost { why: TransportError::Status(404 | 405), .. } if code == 3 => {
            (code, format!("{error}; is that the whole URL of an MCP server?"))
        }
        ClientError::Lost { why: TransportError::Status(301 | 302 | 307 | 308), .. } => {
            (code, format!("{error}; redirections are not followed: give the URL that it names"))
        }
        ClientError::NoCommonRevision if options.revision.is_some() => {
            (3, "the server does not speak that revision; without --revision the best one is found".into())
        }
        error if commands::is_not_offered(error) => {
            (4, format!("{error}; inspect without a command tells what it offers"))
        }
        error => (code, error.to_string()),
    }
}

/// Returns the exit code and the error message of a task that has no result.
fn task_end(end: &TaskEnd) -> (u8, String) {
    let code = match end {
        TaskEnd::Failed(_) | TaskEnd::Refused { .. } | TaskEnd::Gone | TaskEnd::Cancelled => 4,
        TaskEnd::GaveUp => 5,
        _ => 6,
    };
    let more = match end {
        TaskEnd::Failed(error) => format!(": {}", ErrorObject::read(error.raw())),
        TaskEnd::GaveUp => "; inspect tasks follow ID waits on, and --timeout SECONDS gives it more time".into(),
        _ => String::new(),
    };
    (code, format!("{end}{more}"))
}

/// Returns `true` if a URL has a path. For a program or a Unix socket it is `true`: no path can be wrong.
fn has_path(target: &Target) -> bool {
    let Target::Url(url) = target else { return true };
    // The path of a Unix socket has a default.
    if args::is_unix(url) {
        return true;
    }
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    rest.split_once('/').is_some_and(|(_, path)| !path.is_empty())
}

/// Formats the server's refusal, with a hint.
fn refusal(method: &str, error: &ServerError, command: &Command) -> String {
    let data = error.data.as_ref().map_or_else(String::new, |data| format!("\n{data}"));
    let unknown = matches!(error.code, code::INVALID_PARAMS | code::RESOURCE_NOT_FOUND);
    let see = match command {
        Command::Call { .. } if unknown => "; inspect tools lists the tools and their arguments",
        Command::Read { .. } if unknown => "; inspect resources lists what there is",
        Command::Skill { .. } if unknown => "; inspect skills lists the skills",
        Command::Prompt { .. } | Command::Complete { .. } if unknown => "; inspect prompts lists the prompts",
        _ => "",
    };
    format!("{method}: {error}{see}{data}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: C095
    #[test]
    fn paths_become_uris() {
        assert_eq!(file_uri(Path::new("/a b/%/é")), "file:///a%20b/%25/%C3%A9");
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let path = Path::new(std::ffi::OsStr::from_bytes(b"/x\xff?#"));
            assert_eq!(file_uri(path), "file:///x%FF%3F%23");
        }
    }

    #[test]
    fn a_task_that_goes_on_can_be_followed() {
        let (code, words) = task_end(&TaskEnd::GaveUp);
        assert!(code == 5 && words.contains("inspect tasks follow ID waits on"), "{words}");
    }
}
