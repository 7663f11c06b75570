//! Runs the program as users and scripts do, against the examples `calc` and `sysmon` and against servers scripted
//! here.

#[path = "parts/events.rs"]
mod events;
#[path = "parts/product.rs"]
mod product;
#[path = "../../../tests/remote/programs.rs"]
mod programs;
#[path = "../../../tests/remote/scripted.rs"]
mod scripted;
#[path = "parts/tasks.rs"]
mod tasks;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_sansio::revision::Revision;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The longest time for any step.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the path of an example, as an argument.
fn example(name: &str) -> String {
    programs::example(name).to_str().unwrap().into()
}

fn inspect(args: &[&str]) -> Command {
    started(env!("CARGO_BIN_EXE_inspect"), args)
}

fn started(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("COLUMNS", "80").env_remove("NO_COLOR").env_remove("TRACEPARENT").env("TERM", "xterm");
    command
}

/// Waits for the process, and kills it after [`PATIENCE`]. Returns `true` if it ended in time.
fn wait(child: &mut Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    false
}

fn run(args: &[&str]) -> (i32, String, String) {
    let mut child = inspect(args).spawn().unwrap();
    // In a thread: the program may print more than a pipe holds.
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).unwrap();
            text
        })
    };
    let out = read(Box::new(child.stdout.take().unwrap()));
    let err = read(Box::new(child.stderr.take().unwrap()));
    let ended = wait(&mut child);
    let code = child.wait().unwrap().code();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    assert!(ended, "{args:?} does not end; so far:\n{out}{err}");
    (code.unwrap_or(-1), out, err)
}

/// Runs a command against a program.
fn against(program: &str, args: &[&str]) -> (i32, String, String) {
    let program = example(program);
    run(&[args, &["--", program.as_str()]].concat())
}

/// Builds a server as a script for `sh -c`: it reads a line, then sends an answer, for each of the answers.
fn script(answers: &[&str]) -> String {
    let mut script = String::new();
    for answer in answers {
        script.push_str(&format!("read -r line; printf '%s\\n' '{}'\n", answer.replace('\'', "'\\''")));
    }
    script + "cat >/dev/null"
}

/// Runs a command against a server with these answers.
fn made_up(answers: &[&str], args: &[&str]) -> (i32, String, String) {
    run(&[args, &["--", "sh", "-c", &script(answers)]].concat())
}

#[test]
fn overview() {
    let (code, out, err) = against("calc", &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (head, rest) = out.split_once("after ").unwrap();
    assert_eq!(head, format!("calc {}\n2026-07-28 · stdio · ready ", env!("CARGO_PKG_VERSION")));
    let (_, rest) = rest.split_once('\n').unwrap();
    let expected = "
Capabilities
  tools

Tools 2
  add a b    Adds two integers
  echo text  Gives a text back
";
    assert_eq!(rest, expected);
}

#[test]
fn tools_resources_prompts() {
    let (_, out, _) = against("calc", &["tools"]);
    let expected = "\
add
  Adds two integers
  a  integer  required
  b  integer  required

echo
  Gives a text back
  text  string  required
";
    assert_eq!(out, expected);
    let (_, out, _) = against("sysmon", &["tools", "processes"]);
    let expected = "\
processes  Processes · read-only · closed world
  The processes that hold the most memory, largest first, and what they have
  used.
  limit  integer  How many to list · at least 1 · default 10

  answers with
  total           integer   Processes there are
  processes       object[]
    pid           integer
    parent        integer
    name          string
    state         string
    memory_bytes  integer
    cpu_seconds   number
";
    assert_eq!(out, expected);
    let (_, out, _) = against("sysmon", &["resources"]);
    assert!(out.starts_with("Resources 3\n  sys://load         Load averages: "), "{out}");
    assert!(out.contains("\n  ui://sysmon/panel  Panel: "), "{out}");
    assert!(out.contains("\nTemplates 1\n  proc://{pid}/status  Status of a process: "), "{out}");
    let (_, out, _) = against("sysmon", &["prompts"]);
    assert!(out.starts_with("diagnose  Diagnose a problem\n  Finds out"), "{out}");
    assert_eq!(against("calc", &["prompts"]).1, "The server has no prompts.\n");
}

#[test]
fn calls() {
    for args in [&["a=1", "b=2"][..], &["{\"a\":1,\"b\":2}"], &["a:=1", "b=2.0"]] {
        let (code, out, err) = against("calc", &[&["call", "add"], args].concat());
        assert_eq!((code, out.as_str(), err.as_str()), (0, "3\n", ""), "{args:?}");
    }
    assert_eq!(against("calc", &["call", "echo", "text=12"]).1, "12\n");
    let (_, out, _) = against("sysmon", &["call", "uptime"]);
    let lines: Vec<_> = out.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(lines, ["seconds", "words"]);
    let (code, out, _) = against("sysmon", &["call", "disk", "path=/does/not/exist"]);
    assert!(code == 1 && out.starts_with("The tool failed:\nCannot look at /does/not/exist: "), "{out}");
    let (code, _, err) = against("sysmon", &["call", "watch", "seconds=1", "interval_ms=100"]);
    assert!(code == 0 && err.starts_with("progress 1") && err.contains(" of 1000: processors "), "{err}");
    assert_eq!(against("sysmon", &["-q", "call", "watch", "seconds=1", "interval_ms=500"]).2, "");
}

#[test]
fn reads_prompts_completions() {
    let (_, out, _) = against("sysmon", &["read", "sys://memory"]);
    assert!(out.contains("available_bytes  "), "{out}");
    let (_, out, _) = against("sysmon", &["prompt", "diagnose", "symptom=it is slow"]);
    assert!(out.contains("\nuser\n  On this machine: it is slow\n"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let (_, out, _) = against("sysmon", &["complete", "proc://{pid}/status", "pid", "1"]);
    assert!(out.lines().any(|line| line == "1"), "{out}");
    let file = std::env::temp_dir().join(format!("inspect-{}", std::process::id()));
    let (code, out, _) = against("sysmon", &["read", "sys://load", "-o", file.to_str().unwrap()]);
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    assert!(code == 0 && out.is_empty() && written.starts_with("{\"one_minute\":"), "{written}");
}

#[test]
fn json_is_one_document() {
    for (args, begin) in [
        (
            &["--json"][..],
            "{\"server\":{\"name\":\"calc\",\"version\":\"0.1.0\"},\"revision\":\"2026-07-28\",\"capabilities\":{\"tools\":{}},\"tools\":[{\"name\":\"add\",",
        ),
        (&["--json", "tools"], "{\"tools\":[{\"name\":\"add\","),
        (&["--json", "tools", "echo"], "{\"name\":\"echo\","),
        (
            &["--json", "call", "add", "a=1", "b=2"],
            "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"3\"}]",
        ),
        (&["--json", "ping"], "{\"method\":\"server/discover\",\"milliseconds\":["),
        (&["raw", "tools/list"], "{\"resultType\":\"complete\",\"tools\":["),
        (
            &["--json", "raw", "nope"],
            "{\"error\":{\"method\":\"nope\",\"code\":-32601,\"message\":\"Method not found\"}}",
        ),
    ] {
        let (_, out, _) = against("calc", args);
        assert!(out.starts_with(begin) && out.ends_with("}\n") && out.lines().count() == 1, "{args:?}: {out}");
        assert!(mcp_sansio::json::Raw::parse(out.as_bytes()).is_ok(), "{out}");
    }
    let (_, out, _) = against("calc", &["--json", "trace", "ping"]);
    assert_eq!(out.lines().count(), 12);
    assert!(out.lines().all(|line| mcp_sansio::json::Raw::parse(line.as_bytes()).is_ok()), "{out}");
}

#[test]
fn exit_codes_and_advice() {
    let calc = example("calc");
    for (args, code, words) in [
        (&["call", "add", "--", calc.as_str()][..], 1, ""),
        (&["--zzzzzz"], 2, "there is no option --zzzzzz; see inspect --help"),
        (
            &["call", "ad", "a=1", "--", &calc],
            2,
            "there is no tool \"ad\" (did you mean \"add\"?); there are add, echo",
        ),
        (&["call", "add", "a=x", "--", &calc], 2, "a must be an integer, not \"x\""),
        (&["--", "/does/not/exist"], 3, "is it installed, and in PATH?"),
        (&["http://127.0.0.1:1/mcp"], 3, "is it running, and are host and port right?"),
        (&["--", "false"], 3, "the process \"false\" ended (exit status: 1)"),
        (
            &["--revision", "2024-11-05", "ping", "--", "sh", "-c", "echo sorry >&2"],
            3,
            "after it wrote to stderr: sorry",
        ),
        (
            &["call", "nope", "--", &calc],
            4,
            "tools/call: the server answered with error -32602: Unknown tool; inspect tools lists the tools",
        ),
        (&["complete", "p", "a", "--", &calc], 4, "inspect without a command tells what it offers"),
        (&["--timeout", "0.2", "--", "sh", "-c", "cat >/dev/null"], 5, "--timeout SECONDS gives it more time"),
    ] {
        let (found, out, err) = run(args);
        assert!(found == code && err.contains(words), "{args:?}: {found}\n{out}{err}");
    }
    assert_eq!(run(&["--help"]).0, 0);
}

#[test]
fn all_revisions() {
    for (revision, is_modern) in Revision::ALL.map(|revision| (revision.date(), revision.is_modern())) {
        let (code, out, err) = against("sysmon", &["--revision", revision]);
        assert!(code == 0 && err.is_empty() && out.contains(&format!("\n{revision} · stdio")), "{out}{err}");
        assert!(out.contains("\nTools 8\n") && out.contains("\nResource templates 1\n"), "{out}");
        let (code, _, err) = against("sysmon", &["--revision", revision, "call", "kill_hint", "pid=1"]);
        // Without a terminal there is no user, so the questions are not declared.
        assert!(!err.contains("declined"), "{err}");
        assert_eq!(code, if is_modern { 4 } else { 1 }, "{revision}: {err}");
    }
}

#[test]
fn over_http() {
    over("127.0.0.1:0");
}

#[test]
fn at_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("mcp-inspect-{}.sock", std::process::id()));
    let address = format!("unix:{}", path.display());
    over(&address);
    // The server was killed: its file is there, and the next one replaces it.
    assert!(path.exists());
    over(&address);
    std::fs::remove_file(path).unwrap();
    let (code, _, err) = run(&["ping", &address]);
    assert!(code == 3 && err.contains("No such file"), "{code} {err}");
}

fn over(address: &str) {
    let mut server = Command::new(example("sysmon"));
    let mut server = server.args(["--http", address]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().rsplit(' ').next().unwrap();
    let done = std::panic::catch_unwind(|| {
        for revision in Revision::ALL.map(Revision::date) {
            let (code, out, err) = run(&["--revision", revision, url]);
            assert!(code == 0 && out.contains(&format!("\n{revision} · {url} · ready")), "{out}{err}");
        }
        let (_, out, _) = run(&[url, "call", "load"]);
        assert!(out.starts_with("one_minute"), "{out}");
        let (code, out, err) = run(&["call", "kill_hint", "pid=1", url]);
        assert!(code == 4 && err.contains("error -32021"), "{out}{err}");
        let (_, out, err) = run(&["call", "watch", "seconds=1", "interval_ms=300", url]);
        assert!(out.contains("cpu_percent_average") && err.contains(" of 1000: processors "), "{out}{err}");
        assert_eq!(run(&["read", "sys://nope", url]).0, 4);
        watch(&[url]);
    });
    server.kill().unwrap();
    server.wait().unwrap();
    done.unwrap();
}

/// Tools with invalid headers are excluded and reported.
// spec: T125
#[test]
fn tools_that_are_left_out_are_named() {
    let server = scripted::scripted(|_, request, socket| {
        let tool = |name: &str, kind: &str| {
            format!(
                r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"{kind}","x-mcp-header":"A"}}}}}}}}"#
            )
        };
        let result = match request.contains("tools/list") {
            true => format!(r#""tools":[{},{}]"#, tool("good", "string"), tool("bad", "number")),
            false => r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}"#.into(),
        };
        let id = scripted::id(request);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{result}}}}}"#);
        scripted::send(socket, &scripted::json(&body));
    });
    for arguments in [&["tools"][..], &[]] {
        let (code, out, err) = run(&[arguments, &[&server.url()]].concat());
        assert!(code == 0 && out.contains("good") && !out.contains("bad"), "{out}{err}");
        let why =
            "the tool bad is left out: x-mcp-header on a parameter that is not a string, an integer or a boolean\n";
        assert_eq!(err, why, "{out}");
    }
}

/// Answers as a server of 2025-11-25 with the session `abc`, which has no stream of its own. Returns `false` if the request is
/// none of the session's.
fn serve_session(request: &str, socket: &mut std::net::TcpStream) -> bool {
    let id = scripted::id(request);
    let answer = match request {
        _ if request.contains("\"initialize\"") => {
            let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#;
            let body = scripted::json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
            body.replacen("\r\n", "\r\nMcp-Session-Id: abc\r\n", 1)
        }
        _ if request.starts_with("GET") => "HTTP/1.1 405 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into(),
        _ if request.starts_with("DELETE") || request.contains("\"notifications/") => {
            "HTTP/1.1 202 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into()
        }
        _ => return false,
    };
    scripted::send(socket, &answer);
    true
}

#[track_caller]
fn ends_its_session(server: &scripted::Scripted) {
    let requests = server.requests.lock().unwrap();
    // Not always the last one: a cancellation goes out at the same time on another connection.
    let end = requests.iter().rev().take(2).find(|request| request.starts_with("DELETE /mcp "));
    assert!(end.is_some_and(|end| end.contains("\r\nMcp-Session-Id: abc\r\n")), "{requests:?}");
}

// spec: T056
#[test]
fn a_session_is_ended() {
    let server = scripted::scripted(|_, request, socket| {
        if !serve_session(request, socket) {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[]}}}}"#, scripted::id(request));
            scripted::send(socket, &scripted::json(&body));
        }
    });
    let (code, out, err) = run(&["--revision", "2025-11-25", "tools", &server.url()]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "The server has no tools.\n", ""));
    ends_its_session(&server);
    // Also after Ctrl-C.
    let server = scripted::scripted(|_, request, socket| {
        if !serve_session(request, socket) {
            scripted::until_gone(socket);
        }
    });
    let mut child = inspect(&["--revision", "2025-11-25", "tools", &server.url()]).spawn().unwrap();
    let begun = Instant::now();
    while !server.was_asked("tools/list") {
        assert!(begun.elapsed() < PATIENCE, "{:?}", server.requests.lock().unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    assert!(wait(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    ends_its_session(&server);
}

/// The server may have run the call: it is not sent again.
#[test]
fn a_call_that_lost_its_session_is_not_sent_again() {
    let server = scripted::scripted(|_, request, socket| {
        if !serve_session(request, socket) {
            scripted::send(socket, "HTTP/1.1 404 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let (code, _, err) = run(&["--revision", "2025-11-25", "call", "x", &server.url()]);
    assert!(code == 6 && err.contains("the server has forgotten the session"), "{code} {err}");
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests.iter().filter(|request| request.contains("tools/call")).count(), 1, "{requests:?}");
}

#[test]
fn watches_until_interrupted() {
    watch(&["--", &example("sysmon")]);
}

fn watch(target: &[&str]) {
    let mut child = inspect(&[&["watch", "--json"], target].concat()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let rest = line.split_once(',').unwrap().1;
    assert!(rest.starts_with("\"event\":\"changed\",\"uri\":\"sys://"), "{line}");
    interrupt(&child);
    assert!(wait(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Like `inspect watch | head -1`.
#[test]
fn watches_as_long_as_somebody_reads() {
    let mut child = inspect(&["watch", "--", &example("sysmon")]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("has changed"), "{line}");
    assert!(wait(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn nobody_reads_stderr() {
    let mut child = inspect(&["--timeout", "0.5", "tools", "--", "yes"]).spawn().unwrap();
    drop(child.stderr.take());
    assert!(wait(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// The trace of all requests: the option, or the variable; a malformed variable counts as absent.
#[test]
fn requests_belong_to_a_trace() {
    let [option, variable] = ["-01", "-00"].map(|flags| format!("00-{}-{}{flags}", "0a".repeat(16), "b0".repeat(8)));
    let calc = example("calc");
    let traces = |value: &str, more: &[&str]| {
        let mut command = inspect(&[more, &["trace", "--json", "tools", "--", &calc]].concat());
        let out = command.env("TRACEPARENT", value).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        let out = String::from_utf8(out.stdout).unwrap();
        [&option, &variable].map(|parent| out.contains(parent.as_str()))
    };
    assert_eq!(traces(&variable, &[]), [false, true]);
    assert_eq!(traces(&variable, &["--traceparent", &option]), [true, false]);
    assert_eq!(traces("00-x", &[]), [false, false]);
    assert_eq!(run(&["--traceparent", "00-x", "tools", "--", "x"]).0, 2);
}

#[test]
fn near_names_are_suggested() {
    let sysmon = |args: &[&str]| against("sysmon", args);
    for (args, code, words) in [
        (&["call", "proceses"][..], 4, "tools has no \"proceses\" (did you mean \"processes\"?)"),
        (&["call", "proceses", "limit=1"], 2, "(did you mean \"processes\"?); there are"),
        (&["call", "processes", "lmit=1"], 2, "no member `lmit` (did you mean \"limit\"?)"),
        (&["read", "sys://lod"], 4, "(did you mean \"sys://load\"?)"),
        (&["prompt", "diagnos", "symptom=x"], 4, "(did you mean \"diagnose\"?)"),
        (&["raw", "tools/list", "[1]"], 2, "must be a JSON object"),
        (&["call", "load", "-"], 2, "nothing on stdin"),
    ] {
        let (got, _, err) = sysmon(args);
        assert!(got == code && err.contains(words), "{args:?}: {got} {err}");
    }
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// Interrupts `inspect tools` once the server has written a line to stderr. Returns what both write there.
fn interrupted(script: &str) -> String {
    let mut child = inspect(&["tools", "--", "sh", "-c", script]).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    err.read_line(&mut text).unwrap();
    interrupt(&child);
    err.read_to_string(&mut text).unwrap();
    assert!(wait(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    text
}

/// The server's stdin is closed first, and it gets time to end.
// spec: B109
#[test]
fn an_interrupt_ends_the_server_in_order() {
    let hello = script(&[HELLO]).replace("cat >/dev/null", "");
    let script = format!(
        "trap 'echo terminated >&2' TERM; {hello}read -r line; echo begun >&2; cat >/dev/null; echo closed >&2"
    );
    let text = interrupted(&script);
    assert_eq!(text, format!("sh | begun\n{UNWANTED}sh | closed\n"));
}

const UNWANTED: &str = "The server is told that the answer is not wanted any more.\n";

// spec: B133
#[test]
fn an_interrupt_cancels_the_request() {
    let script = script(&[HELLO]).replace("cat >/dev/null", "read -r line; echo begun >&2; cat >&2");
    let text = interrupted(&script);
    let told = text.strip_prefix(&format!("sh | begun\n{UNWANTED}sh | ")).unwrap_or_else(|| panic!("{text}"));
    let told = mcp_sansio::json::Raw::parse(told.trim().as_bytes()).unwrap_or_else(|_| panic!("{text}"));
    assert!(told.get("method").unwrap().text().unwrap().eq_str("notifications/cancelled"), "{text}");
    let params = told.get("params").unwrap();
    assert_eq!(params.get("requestId").unwrap().as_str(), "2");
    assert!(params.get("reason").unwrap().text().unwrap().eq_str("The user pressed Ctrl-C"), "{text}");
}

/// Cursors are not compared, and an empty one is one.
#[test]
fn all_pages_of_a_list_are_shown() {
    let page = |id: u8, cursor: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{{"name":"t{id}","inputSchema":{{"type":"object"}}}}]{cursor}}}}}"#
        )
    };
    let more = [r#","nextCursor":"x""#, r#","nextCursor":"x""#, r#","nextCursor":"""#, ""];
    let [a, b, c, d] = [2, 3, 4, 5].map(|id| page(id, more[usize::from(id) - 2]));
    let (code, out, err) = made_up(&[HELLO, &a, &b, &c, &d], &["tools"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let names: Vec<_> = out.lines().filter(|line| line.starts_with('t')).collect();
    assert_eq!(names, ["t2", "t3", "t4", "t5"], "{out}");
}

/// Over stdio there are no headers, and none before 2026-07-28.
#[test]
fn headers_are_named_where_they_are_sent() {
    let tools = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{{"name":"t","inputSchema":{{"type":"object","properties":{{"region":{{"type":"string","x-mcp-header":"Region"}}}}}}}}]}}}}"#
        )
    };
    let words = "region  string  sent as header Mcp-Param-Region\n";
    let (code, out, _) = made_up(&[HELLO, &tools("2")], &["tools"]);
    assert!(code == 0 && out.contains("region  string\n"), "{out}");
    let modern = scripted::scripted(move |_, request, socket| {
        let id = scripted::id(request);
        let hello = HELLO.replace("\"id\":1", &format!("\"id\":{id}"));
        let body = if request.contains("tools/list") { tools(id) } else { hello };
        scripted::send(socket, &scripted::json(&body));
    });
    let (code, out, err) = run(&["tools", &modern.url()]);
    assert!(code == 0 && out.contains(words), "{out}{err}");
    let legacy = scripted::scripted(move |_, request, socket| {
        if !serve_session(request, socket) {
            scripted::send(socket, &scripted::json(&tools(scripted::id(request))));
        }
    });
    let (code, out, err) = run(&["--revision", "2025-11-25", "tools", &legacy.url()]);
    assert!(code == 0 && out.contains("region  string\n"), "{out}{err}");
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"\u001b[1mx":{}},"instructions":"\u001b]0;title\u0007\u009b2J\u202e","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"evil\u001b[31m","version":"\b\b\b1"}}}}"#;
const TOOLS: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[{"name":"a\u001b[2J","description":"\u001b[H\r\u0000","inputSchema":{"properties":{"\u001bc":{"description":"\u007f\u0085","default":"\u001b[0m"}}}},{"name":"\u001b[5m"}]}}"#;
const EVIL: &str = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"\u001b[2Jno","data":"\u001b[3J"}}"#;
const IMAGE: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[
    {"type":"text","text":"\u001b[31mred"},
    {"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAIAAAA="},
    {"type":"resource_link","uri":"file:///x\u001b[2J","name":"x","size":2048,"mimeType":"text/plain"},
    {"type":"resource","resource":{"uri":"a:b","text":"inside"}},
    {"type":"audio"}],"structuredContent":{"k\u001b":"\u001b[2J"}}}"#;

fn assert_harmless(text: &str) {
    let bad = text.chars().find(|&c| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)));
    assert_eq!(bad, None, "{text:?}");
}

#[test]
fn nothing_of_the_servers_moves_the_cursor() {
    let image = IMAGE.replace('\n', "");
    let garbage = format!("\u{1b}[2J\n{HELLO}");
    for (answers, args) in [
        (&[HELLO, TOOLS][..], &[][..]),
        (&[HELLO, TOOLS], &["tools"]),
        (&[HELLO, TOOLS], &["--json", "tools"]),
        (&[HELLO, TOOLS], &["trace", "tools"]),
        (&[HELLO, TOOLS], &["call", "nope", "a=1"]),
        (&[HELLO, EVIL], &["tools"]),
        (&[HELLO, EVIL], &["--json", "tools"]),
        (&[HELLO, &image], &["call", "x"]),
        (&[&garbage, EVIL], &["--trace", "tools"]),
    ] {
        let (_, out, err) = made_up(answers, args);
        assert_harmless(&out);
        assert_harmless(&err);
    }
    let (_, out, err) = run(&["--", "sh", "-c", "printf '\\033[2Jhello\\a\\n' >&2"]);
    assert_harmless(&out);
    assert_harmless(&err);
    assert!(err.contains("stderr: \u{fffd}[2Jhello\u{fffd}\n"), "{err}");
}

#[test]
fn contents_are_described() {
    let (code, out, _) = made_up(&[HELLO, &IMAGE.replace('\n', "")], &["call", "x"]);
    let expected = "\
␛[31mred
image image/png · 29 bytes · 640 × 480
→ file:///x␛[2J  x · text/plain · 2.0 KiB
a:b
  inside
Content that is not whole: `data` is missing
k␛  ␛[2J
";
    assert_eq!((code, out.as_str()), (0, expected));
    let (_, out, _) = made_up(&[HELLO, TOOLS], &["tools"]);
    assert!(out.ends_with("␛[5m: `inputSchema` is missing\n"), "{out}");
}

/// The answers of a server up to 2025-11-25 that has tools and resources.
const OLD: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"old","version":"1"}}}"#,
];

#[test]
fn a_refused_list_leaves_the_others() {
    let tools = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;
    let refused =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#);
    // The script reads a line before each answer. The notification `initialized` is a line without an answer.
    let mut script = script(&OLD).replace("cat >/dev/null", "read -r line\n");
    script.push_str(&self::script(&[tools, &refused(4), &refused(5)]));
    let (code, out, err) = run(&["--", "sh", "-c", &script]);
    assert_eq!((code, err.as_str()), (4, ""), "{out}");
    assert!(out.contains("\nTools 1\n") && out.contains("\nResources refused (-32601 Method not found)\n"), "{out}");
    let (code, out, err) = run(&["--json", "--", "sh", "-c", &script]);
    assert_eq!((code, out.lines().count(), err.as_str()), (4, 1, ""), "{out}");
    let error = r#""errors":[{"method":"resources/list","code":-32601,"message":"Method not found"}]"#;
    assert!(out.contains(r#""tools":[{"name":"t""#) && out.contains(error), "{out}");
}

#[test]
fn an_answer_is_shown_once() {
    let call = |result: &str| {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete",{result}}}}}"#);
        let none = r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}"#;
        made_up(&[HELLO, &answer, none], &["call", "x"]).1
    };
    for (result, shown) in [
        (r#""content":[{"type":"text","text":"1024"}],"structuredContent":{"result":"1024"}"#, "1024\n"),
        (r#""content":[{"type":"text","text":"1024"}],"structuredContent":{"result":1024.0}"#, "1024\n"),
        (
            r#""content":[{"type":"text","text":"{\"a\":1.0,\"b\":[2]}"}],"structuredContent":{"b":[2],"a":1}"#,
            "b  2\na  1\n",
        ),
        (r#""content":[{"type":"text","text":"1"}],"structuredContent":{"result":"2"}"#, "1\nresult  2\n"),
        (
            r#""content":[{"type":"text","text":"1"}],"structuredContent":{"result":"1","more":2}"#,
            "1\nresult  1\nmore    2\n",
        ),
    ] {
        assert_eq!(call(result), shown, "{result}");
    }
}

#[test]
fn stderr_before_the_connection_stands_is_kept_back() {
    let noise = "for i in 1 2 3; do echo noise $i >&2; done\n";
    let script = format!(
        "{noise}{}",
        script(&[
            HELLO,
            r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}"#
        ])
    );
    let (code, _, err) = run(&["tools", "--", "sh", "-c", &script]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (_, _, err) = run(&["--trace", "tools", "--", "sh", "-c", &script]);
    assert!(err.contains("sh | noise 3"), "{err}");
    // If connecting fails, the error shows the stderr once.
    let (code, _, err) = run(&["tools", "--", "sh", "-c", &format!("{noise}exit 3")]);
    assert_eq!((code, err.matches("noise 3").count()), (3, 1), "{err}");
    // If the server ends later, its stderr was shown immediately.
    let script = format!(
        "{}read -r line; echo dying >&2; sleep 0.2; exit 7",
        self::script(&[HELLO]).replace("cat >/dev/null", "")
    );
    let (code, _, err) = run(&["tools", "--", "sh", "-c", &script]);
    assert_eq!((code, err.matches("dying").count()), (6, 1), "{err}");
    assert!(err.contains("ended (exit status: 7)"), "{err}");
}

/// Runs the program on a terminal. Each pair of `typed` is a text to wait for, and the text to type then.
fn on_a_terminal(args: &[&str], typed: &[(&str, &str)]) -> (i32, String) {
    on_a_terminal_with(env!("CARGO_BIN_EXE_inspect"), args, typed)
}

fn on_a_terminal_with(program: &str, args: &[&str], typed: &[(&str, &str)]) -> (i32, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let stdio = || Stdio::from(slave.try_clone().unwrap());
    let mut child = started(program, args).stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
    drop(slave);
    let mut keys = File::from(master.try_clone().unwrap());
    let mut screen = File::from(master);
    let (send, shown) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        // Reading fails when the last writer has closed the other end.
        while let Ok(n @ 1..) = screen.read(&mut bytes) {
            let _ = send.send(bytes[..n].to_vec());
        }
    });
    let mut seen = Vec::new();
    let mut from = 0;
    for (words, line) in typed {
        let begun = Instant::now();
        loop {
            let text = String::from_utf8_lossy(&seen[from..]).into_owned();
            if let Some(at) = text.find(words) {
                from += at + words.len();
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{words:?} does not come: {}", String::from_utf8_lossy(&seen));
            seen.extend(shown.recv_timeout(PATIENCE).unwrap_or_default());
        }
        keys.write_all(line.as_bytes()).unwrap();
    }
    assert!(wait(&mut child));
    while let Ok(bytes) = shown.recv_timeout(Duration::from_millis(200)) {
        seen.extend(bytes);
    }
    let text = String::from_utf8(seen).unwrap().replace("\r\n", "\n");
    (child.wait().unwrap().code().unwrap_or(-1), text)
}

/// Removes the program's own colours, and checks that no other control sequences are left.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let (codes, after) = after.split_at(after.find(|c: char| c.is_ascii_alphabetic()).unwrap());
        assert!(codes.chars().all(|c| c.is_ascii_digit()) && after.starts_with(['m', 'K']), "{text:?}");
        rest = &after[1..];
    }
    plain + rest
}

#[test]
fn questions_on_a_terminal() {
    let sysmon = example("sysmon");
    for revision in ["2025-06-18", "2026-07-28"] {
        let args = ["--revision", revision, "call", "kill_hint", "pid=1", "--", &sysmon];
        let (code, shown) = on_a_terminal(&args, &[("[1-4] >", "5\n"), ("[1-4] >", "pause\n")]);
        let shown = plain(&shown);
        assert!(code == 0 && shown.contains("What shall become of it? required\n    1  end\n"), "{shown}");
        assert!(shown.contains("\"5\" is not one of them.") && shown.contains("\nkill -STOP 1    # "), "{shown}");
        let (_, shown) = on_a_terminal(&args, &[("[1-4] >", ":no\n")]);
        assert!(shown.contains("── declined ──") && shown.contains("is left alone."), "{shown}");
        let (_, shown) = on_a_terminal(&args, &[("[1-4] >", "\x04")]);
        assert!(shown.contains("── cancelled ──") && shown.contains("is left alone."), "{shown}");
    }
}

#[test]
fn what_is_longer_than_the_terminal_goes_through_a_pager() {
    let sysmon = example("sysmon");
    for (pager, lines) in [("head -n 2", 2), ("cat", 30), ("no-such-pager 2>&-", 30)] {
        let words = format!("stty rows 10 && PAGER='{pager}' exec \"$0\" tools -- \"$1\"");
        let (code, shown) = on_a_terminal_with("sh", &["-c", &words, env!("CARGO_BIN_EXE_inspect"), &sysmon], &[]);
        let count = shown.lines().count();
        assert!(code == 0 && if lines == 2 { count == 2 } else { count >= lines }, "{pager}: {shown}");
    }
}

#[test]
fn colors_and_bars_on_a_terminal() {
    let calc = example("calc");
    let (_, shown) = on_a_terminal(&["tools", "--", &calc], &[]);
    assert!(shown.starts_with("\x1b[36madd\x1b[0m\n  Adds two integers\n"), "{shown:?}");
    let (_, shown) = on_a_terminal(&["--no-color", "tools", "--", &calc], &[]);
    assert!(!shown.contains('\x1b'), "{shown:?}");
    let sysmon = example("sysmon");
    let (_, shown) = on_a_terminal(&["call", "watch", "seconds=1", "interval_ms=250", "--", &sysmon], &[]);
    assert!(shown.contains("\r██████") && shown.contains("%  processors "), "{shown:?}");
    let (_, result) = shown.rsplit_once("\r\x1b[K").unwrap();
    assert!(plain(result).starts_with("seconds "), "{shown:?}");
    let (_, shown) = on_a_terminal(&["tools", "--", "sh", "-c", &script(&[HELLO, TOOLS])], &[]);
    assert_harmless(&plain(&shown));
}

#[test]
fn nobody_is_asked_for_a_server_that_is_gone() {
    let asks = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Well?","requestedSchema":{"type":"object","properties":{"x":{"type":"string"}}}}}}}}"#;
    let script = script(&[HELLO, asks]).replace("cat >/dev/null", "sleep 0.2; exit 7");
    let (code, shown) = on_a_terminal(&["call", "x", "--", "sh", "-c", &script], &[]);
    let shown = plain(&shown);
    assert!(code == 6 && shown.contains("Well?") && shown.contains("ended (exit status: 7)"), "{code}: {shown}");
}

/// Calls a tool of a server of 2025-06-18 on a terminal. The server sends `asks`, then runs the commands `then`.
fn called_on_a_terminal(asks: &str, then: &str, typed: &[(&str, &str)]) -> (i32, String) {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let done = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}]}}"#;
    // The notification `initialized` is a line without an answer.
    let first = script(&[hello]).replace("cat >/dev/null", "read -r line\n");
    let then = format!("{then}; printf '%s\\n' '{done}'; cat >/dev/null");
    let script = format!("{first}{}", script(&[asks]).replace("cat >/dev/null", &then));
    let (code, shown) = on_a_terminal(&["--revision", "2025-06-18", "call", "x", "--", "sh", "-c", &script], typed);
    (code, plain(&shown))
}

// spec: C109
#[test]
fn an_answer_in_place_of_a_model_is_cut() {
    let asks = r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":2}}"#;
    let then = r#"read -r line; printf '%s\n' "$line" >&2; sleep 0.2"#;
    for (words, sent) in [
        ("four of", r#""text":"four of"},"model":"a person at a terminal","stopReason":"endTurn""#),
        ("four of course", r#""text":"four of"},"model":"a person at a terminal","stopReason":"maxTokens""#),
    ] {
        let typed = format!("{words}\n\n");
        let (code, shown) = called_on_a_terminal(asks, then, &[("> ", &typed)]);
        assert!(code == 0 && shown.contains(sent) && shown.ends_with("done\n"), "{code}: {shown}");
        assert_eq!(shown.contains("Only the first 2 words are sent"), words != "four of", "{shown}");
    }
}

#[test]
fn the_reason_of_a_withdrawn_question_is_shown() {
    let asks = r#"{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"message":"Well?","requestedSchema":{"type":"object","properties":{"x":{"type":"string"}}}}}"#;
    let withdraws = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"too\nslow\u001b[2J"}}"#;
    let then = format!("sleep 0.3; printf '%s\\n' '{withdraws}'");
    let (code, shown) = called_on_a_terminal(asks, &then, &[("Well?", "")]);
    let words = "The server does not want an answer any more: too slow\u{241b}[2J\n";
    assert!(code == 0 && shown.contains(words) && shown.ends_with("done\n"), "{code}: {shown}");
}

/// An answer without anything in it is said to be so, and a failure is not called anything else.
#[test]
fn answers_that_are_empty() {
    const BOTH: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}}}}"#;
    let result = |json: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public",{json}}}}}"#
        )
    };
    let call = |json: &str| made_up(&[BOTH, &result(json)], &["call", "t", "{}"]);
    let (code, out, _) = call(r#""content":[],"isError":true"#);
    assert_eq!((code, out.as_str()), (1, "The tool failed:\nIt says no more.\n"));
    let (code, out, _) = call(r#""content":[]"#);
    assert_eq!((code, out.as_str()), (0, "The tool answered nothing, and did not fail.\n"));
    let (code, out, err) = call(r#""content":[{"type":"text","text":""}],"isError":true"#);
    assert!(code == 1 && out.trim_end() == "The tool failed:", "{out}{err}");
    for contents in ["", r#"{"uri":"a:b","text":""}"#] {
        let (code, out, err) = made_up(&[BOTH, &result(&format!("\"contents\":[{contents}]"))], &["read", "a:b"]);
        assert_eq!((code, out.trim(), err.as_str()), (0, "", "The answer is empty.\n"));
    }
}

/// A server that gives the same page for ever: what was read is shown, and its tools can be called.
#[test]
fn lists_in_a_circle_end() {
    const TOOLS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#;
    for cursor in ["", "8", "ü"] {
        let page = |id: u8| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{{"name":"t","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer"}}}}}}}}],"nextCursor":"{cursor}"}}}}"#
            )
        };
        let (code, out, err) = made_up(&[TOOLS, &page(2), &page(3)], &["tools"]);
        assert!(code == 0 && out.starts_with("t\n  n  integer") && out.matches("integer").count() == 1, "{out}{err}");
        assert!(err.contains("tools/list: the server gives the same page again and again"), "{err}");
        let called =
            r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[{"type":"text","text":"fine"}]}}"#;
        let (code, out, _) = made_up(&[TOOLS, &page(2), &page(3), called], &["call", "t", "n=5"]);
        assert_eq!((code, out.as_str()), (0, "fine\n"));
    }
}

/// A skill with a file besides its `SKILL.md`, and answers of its server.
const GREET: &str = r#"{"uri":"skill://greet/SKILL.md","frontmatter":{"name":"greet","description":"How to greet"},"resources":[{"uri":"skill://greet/SKILL.md","size":57,"digest":"sha256:c3d97b1cd1f452aea9b897ba74ddfa2d7b21ce69996e52a7844902b27cd41714"},{"uri":"skill://greet/a/words.txt","size":3,"digest":"sha256:98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"}]}"#;
const WITH_SKILLS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}}}"#;
const WORDS: &str = "hi\n";
const SKILL_MD: &str = "---\nname: greet\ndescription: How to greet\n---\nSay hello.\n";

fn skills(id: u8, entries: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public","skills":[{entries}]}}}}"#
    )
}

fn contents(id: u8, uri: &str, text: &str) -> String {
    let text = text.replace('\n', "\\n");
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public","contents":[{{"uri":"{uri}","text":"{text}"}}]}}}}"#
    )
}

#[test]
fn skills_are_listed() {
    let other = r#"{"uri":"skill://daily/SKILL.md","frontmatter":{"name":"daily","description":"Today"},"resources":"dynamic"}"#;
    let broken = r#"{"uri":"skill://b/SKILL.md","frontmatter":{"name":"x","description":"y"},"resources":[]}"#;
    let answers = [WITH_SKILLS, &skills(2, &[GREET, other, broken].join(","))];
    let (code, out, err) = made_up(&answers, &["skills"]);
    let expected = "\
greet  2 files, 60 bytes
  How to greet
  skill://greet/SKILL.md

daily  dynamic
  Today
  skill://daily/SKILL.md
";
    assert_eq!((code, out.as_str()), (0, expected));
    assert!(
        err.contains("a skill is left out: the directory of skill://b/SKILL.md is not named as the skill"),
        "{err}"
    );
    let (code, out, _) = made_up(&answers, &["--json", "skills"]);
    assert!(code == 0 && out.starts_with(&format!("{{\"skills\":[{}", &GREET[..60])), "{out}");
    let (code, out, _) = made_up(&[HELLO], &["skills"]);
    assert_eq!((code, out.as_str()), (0, "The server has no skills.\n"));
}

#[test]
fn a_skill_is_shown_when_it_is_verified() {
    let read = |md: &str| contents(3, "skill://greet/SKILL.md", md);
    let list = skills(2, GREET);
    let (code, out, err) = made_up(&[WITH_SKILLS, &list, &read(SKILL_MD)], &["skill", "greet"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, SKILL_MD, ""));
    // The file was changed, and the current entry is that of the list.
    let changed = SKILL_MD.replace("hello", "jello");
    let get = format!(
        r#"{{"jsonrpc":"2.0","id":4,"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public","skill":{GREET}}}}}"#
    );
    let again = contents(5, "skill://greet/SKILL.md", &changed);
    let (code, out, err) = made_up(&[WITH_SKILLS, &list, &read(&changed), &get, &again], &["skill", "greet"]);
    assert_eq!((code, out.as_str()), (6, ""));
    assert!(err.contains("the skill is refused: the digest of skill://greet/SKILL.md"), "{err}");
    let good = contents(5, "skill://greet/SKILL.md", SKILL_MD);
    let (code, out, _) = made_up(&[WITH_SKILLS, &list, &read(&changed), &get, &good], &["skill", "greet"]);
    assert_eq!((code, out.as_str()), (0, SKILL_MD));
    // By its URI it need not be listed.
    let get = get.replace("\"id\":4", "\"id\":2");
    let (code, out, _) = made_up(&[WITH_SKILLS, &get, &read(SKILL_MD)], &["skill", "skill://greet/SKILL.md"]);
    assert_eq!((code, out.as_str()), (0, SKILL_MD));
    let (code, _, err) = made_up(&[WITH_SKILLS, &list], &["skill", "great"]);
    assert!(code == 2 && err.contains("there is no skill \"great\" (did you mean \"greet\"?)"), "{err}");
    let (code, _, err) = made_up(&[WITH_SKILLS, &skills(2, &[GREET, GREET].join(","))], &["skill", "greet"]);
    assert!(code == 2 && err.contains("there are several; give one of the URIs"), "{err}");
    let (code, _, err) = made_up(&[HELLO], &["skill", "greet"]);
    assert!(code == 2 && err.contains("the server has no skills"), "{err}");
}

#[test]
fn files_of_a_skill_are_written_when_all_are_verified() {
    let folder = std::env::temp_dir().join(format!("inspect-skill-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let path = folder.to_str().unwrap();
    let answers = |words: &str| {
        let md = contents(3, "skill://greet/SKILL.md", SKILL_MD);
        [WITH_SKILLS.into(), skills(2, GREET), md, contents(4, "skill://greet/a/words.txt", words)]
    };
    let save = |words: &str| {
        let answers = answers(words);
        made_up(&answers.each_ref().map(String::as_str), &["skill", "greet", "-o", path])
    };
    // A file that is not the listed one: nothing is written.
    let (code, out, err) = save("ho\n");
    assert_eq!((code, out.as_str()), (6, ""));
    assert!(err.contains("the skill is refused: the digest of skill://greet/a/words.txt") && !folder.exists(), "{err}");
    let (code, out, err) = save(WORDS);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out, format!("{path}/SKILL.md  57 bytes\n{path}/a/words.txt  3 bytes\n"));
    assert_eq!(std::fs::read_to_string(folder.join("SKILL.md")).unwrap(), SKILL_MD);
    assert_eq!(std::fs::read_to_string(folder.join("a/words.txt")).unwrap(), WORDS);
    // A file has the name that the list shows.
    let odd = "skill://greet/a%E2%80%AE/gpj\u{202e}%C2%85.exe";
    let named = format!("{path}/odd/a<U+202E>/gpj<U+202E><U+0085>.exe");
    let entry = GREET.replace("skill://greet/a/words.txt", odd);
    let answers = [
        WITH_SKILLS.into(),
        skills(2, &entry),
        contents(3, "skill://greet/SKILL.md", SKILL_MD),
        contents(4, odd, WORDS),
    ];
    let (code, out, err) =
        made_up(&answers.each_ref().map(String::as_str), &["skill", "greet", "-o", &format!("{path}/odd")]);
    assert!(code == 0 && out.contains(&named) && std::path::Path::new(&named).is_file(), "{out}{err}");
    std::fs::remove_dir_all(folder.join("odd")).unwrap();
    // Nothing is overwritten, and no link that is there is followed.
    let (code, _, err) = save(WORDS);
    assert!(code == 2 && err.contains("is not empty"), "{err}");
    std::fs::remove_dir_all(&folder).unwrap();
    // Entries that lead elsewhere are no skills.
    for uri in
        ["skill://greet/../x", "skill://greet/%2e%2e/x", "skill://greet/a%5cb", "skill://greet//x", "file:///x", "x"]
    {
        let entry = GREET.replace("skill://greet/a/words.txt", uri);
        let (code, _, err) = made_up(&[WITH_SKILLS, &skills(2, &entry)], &["skill", "greet", "-o", path]);
        assert!(
            code == 2 && err.contains("is not within the directory of the skill") && !folder.exists(),
            "{uri}: {err}"
        );
    }
}
