//! Clients of child processes, with correct and with faulty servers. The client soon reports each error, and
//! requests that are not affected go on.
#![cfg(all(feature = "client", unix))]

mod common;
#[path = "../../../tests/remote/restarting.rs"]
mod restarting;

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use common::{PROFILE, QUICK, SOON, call, lost, service, soon};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::{CallToolResult, ListToolsResult};
use mcp_sansio::client::{ClientInfo, ProtocolViolation, Request, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::Serve;
use mcp_sansio_blocking::client::{
    Child, ChildOptions, Client, ClientError, ClientEvent, ClientHandle, ClientOptions, Direction, Ignore, PageLimits,
    Stderr, StopSignal,
};
use restarting::{folder, process, program, runs};

/// A correct server: this program runs it when [`own_server`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    mcp_sansio_blocking::serve_stdio(&service(), &mut ()).unwrap();
}

/// The same with the loop that takes late answers, too.
#[test]
#[ignore = "a server"]
fn server_with_a_loop() {
    Serve::new(&service()).stdio(&mut ()).unwrap();
}

fn own_server() -> Command {
    server_of("server")
}

/// The test harness prints lines of its own to stdout, which a client must ignore.
fn server_of(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command
}

/// Starts a server that is a shell script and needs no opening. It gets requests with the ids 1, 2, ...; the client
/// waits `timeout` for their answers.
fn scripted(script: &str, timeout: Duration) -> Client<'static, Child<'static>, Ignore> {
    scripted_with(script, timeout, Stderr::Keep, Ignore)
}

fn scripted_with<H: mcp_sansio::client::ClientHandler>(
    script: &str,
    timeout: Duration,
    stderr: Stderr,
    handler: H,
) -> Client<'static, Child<'static>, H> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    let options = ClientOptions::DEFAULT.timeout(timeout).message(100_000);
    let options = ChildOptions::new().options(options).stderr(stderr);
    let options = options.close_time(QUICK).terminate_time(QUICK);
    let mut client = Client::new(Child::spawn_with(command, &PROFILE, options).unwrap(), handler);
    client.connect_as(Revision::V2026_07_28).unwrap();
    client
}

const ANSWER: &str = r#""result":{"content":[],"resultType":"complete"}}"#;

// spec: T001 T083 T084 T085
#[test]
fn a_whole_life() {
    let mut client = Client::new(Child::spawn(own_server(), &PROFILE).unwrap(), Ignore);
    let hello = client.connect().unwrap();
    assert_eq!(hello.revision(), Revision::V2026_07_28);
    assert!(hello.server().unwrap().get("name").unwrap().text().unwrap().eq_str("own"));
    let mut names = Vec::new();
    for page in client.pages(Request::list_tools()) {
        let page = page.unwrap();
        names.extend(page.view::<ListToolsResult<'_>>().unwrap().iter().map(|tool| tool.unwrap().name().to_string()));
    }
    assert_eq!(names, ["add", "confirm"]);
    let arguments = Raw::constant(r#"{"a":1,"b":2}"#);
    let answer = client.request(&Request::call("add").arguments(&arguments)).unwrap();
    assert!(answer.as_str().contains("\"3\""), "{answer:?}");
    answer.view::<CallToolResult<'_>>().unwrap();
    let error = client.request(&Request::call("nothing")).unwrap_err();
    assert_eq!(error.server().unwrap().code, -32602);
    let ended = soon(|| client.close().unwrap());
    assert_eq!(ended.after, StopSignal::StdinClosed);
}

/// A journal is a layer of a client.
#[test]
fn a_journal_of_a_client() {
    let journal = mcp_sansio_blocking::layers::Journal::new(Vec::new());
    let layers: [&dyn mcp_sansio::client::Layer; 1] = [&journal];
    let info = PROFILE.layers(&layers);
    let mut client = Client::new(Child::spawn(own_server(), &info).unwrap(), Ignore);
    client.connect().unwrap();
    let arguments = Raw::constant(r#"{"a":1,"b":2}"#);
    client.request(&Request::call("add").arguments(&arguments)).unwrap();
    client.request(&Request::call("nothing")).unwrap_err();
    client.close().unwrap();
    let lines = journal.with(|lines| String::from_utf8(lines.clone()).unwrap());
    let expected = [
        r#""method":"server/discover","outcome":"result""#,
        r#""method":"tools/call","name":"add","outcome":"result""#,
        r#""method":"tools/call","name":"nothing","outcome":"error","code":-32602"#,
    ];
    for (line, expected) in lines.lines().zip(expected) {
        assert!(line.contains(expected), "{lines}");
    }
    assert_eq!(lines.lines().count(), expected.len(), "{lines}");
}

/// A request waits while the connection is being opened.
#[test]
fn a_request_waits_for_the_opening() {
    let mut client = Client::new(Child::spawn(own_server(), &PROFILE).unwrap(), Ignore);
    client.handle().client.connect();
    assert!(client.request(&Request::list_tools()).unwrap().as_str().contains("confirm"));
}

/// The handler gets the server's requests in each revision that has them, and the server gets the answers.
#[test]
fn questions() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut asked = 0;
        let handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Asked(questions) = event {
                for question in questions.questions() {
                    asked += 1;
                    handle.reply(question.id, &ClientResult::accept(Raw::constant(r#"{"yes":true}"#))).unwrap();
                }
            }
        };
        let mut client = Client::new(Child::spawn(own_server(), &info).unwrap(), handler);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let answer = client.request(&Request::call("confirm")).unwrap();
        assert!(answer.as_str().contains("confirmed"), "{answer:?}");
        drop(client);
        assert_eq!(asked, 1);
    }
}

fn restarted(folder: &std::path::Path) -> Client<'static, Child<'static>, Ignore> {
    let options = ChildOptions::new().close_time(QUICK).terminate_time(QUICK);
    let child = Child::spawn_with(Command::new(program(folder)), &PROFILE, options).unwrap();
    let mut client = Client::new(child, Ignore);
    client.connect().unwrap();
    client
}

#[test]
fn a_server_that_has_ended_is_started_again() {
    let folder = folder("ended");
    let mut client = restarted(&folder);
    let first = process(&client.request(&Request::call("any")).unwrap());
    for _ in 0..2 {
        let error = client.request(&Request::call("end")).unwrap_err();
        assert!(error.is_disconnected(), "{error}");
        assert!(client.request(&Request::call("any")).unwrap_err().is_disconnected());
        client.restart().unwrap();
        assert_ne!(process(&client.request(&Request::call("any")).unwrap()), first);
        assert_ne!(u64::from(client.transport.id()), first);
    }
    client.transport.end();
    client.restart().unwrap();
    client.request(&Request::call("any")).unwrap();
    assert_eq!(client.close().unwrap().after, StopSignal::StdinClosed);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The old process ends before the new one begins.
#[test]
fn a_server_that_hangs_is_ended_and_started_again() {
    let folder = folder("hangs");
    let mut client = restarted(&folder);
    let hung = client.send(&Request::call("hang")).unwrap();
    let error = client.request(&Request::call("any").timeout(100)).unwrap_err();
    assert!(error.lost() == Some(TransportError::TimedOut) && !error.is_disconnected(), "{error}");
    client.restart().unwrap();
    assert_eq!(client.wait(hung).unwrap_err().lost(), Some(TransportError::Closed));
    client.request(&Request::call("any")).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_program_that_is_gone_can_come_back() {
    let folder = folder("gone");
    let mut client = restarted(&folder);
    let open = client.send(&Request::call("hang")).unwrap();
    std::fs::remove_file(folder.join("server")).unwrap();
    for _ in 0..2 {
        let error = client.restart().unwrap_err();
        assert!(matches!(error, ClientError::Start { .. }) && error.is_disconnected(), "{error}");
    }
    assert_eq!(client.wait(open).unwrap_err().lost(), Some(TransportError::Closed));
    assert!(client.request(&Request::call("any")).unwrap_err().is_disconnected());
    program(&folder);
    client.restart().unwrap();
    client.request(&Request::call("any")).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

/// Sends many requests at once; cancelled ones have no outcome.
#[test]
fn many_at_once() {
    let mut client = Client::new(Child::spawn(server_of("server_with_a_loop"), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    let arguments = Raw::constant(r#"{"a":20,"b":22}"#);
    let add = Request::call("add").arguments(&arguments);
    let tokens: Vec<_> = (0..64).map(|_| client.send(&add).unwrap()).collect();
    client.cancel(tokens[5], Some("enough")).ok();
    for (at, token) in tokens.into_iter().enumerate().rev() {
        let outcome = client.wait(token);
        match at {
            5 => assert!(matches!(outcome, Err(ClientError::NotSent(_)))),
            _ => assert!(outcome.unwrap().as_str().contains("42")),
        }
    }
}

#[test]
fn a_trace_shows_all_messages() {
    let mut client = Client::new(Child::spawn(own_server(), &PROFILE).unwrap(), Ignore);
    let shown = Rc::new(RefCell::new(Vec::new()));
    let sink = shown.clone();
    client.trace(move |way, message| sink.borrow_mut().push((way, String::from_utf8_lossy(message).into_owned())));
    client.connect().unwrap();
    client.request(&Request::list_tools()).unwrap();
    let shown = shown.borrow();
    let sent: Vec<_> = shown.iter().filter(|(way, _)| *way == Direction::Sent).collect();
    assert!(sent.len() == 2 && sent[0].1.contains("server/discover") && sent[1].1.contains("tools/list"), "{sent:?}");
    assert!(shown.iter().any(|(way, text)| *way == Direction::Received && text.contains("inputSchema")));
}

#[test]
fn no_such_program() {
    let error = Child::spawn(Command::new("/nowhere/to/be/found"), &PROFILE).unwrap_err();
    assert!(error.to_string().contains("/nowhere/to/be/found"), "{error}");
}

#[test]
fn a_program_that_is_no_server() {
    let options = ChildOptions::new().options(ClientOptions::DEFAULT.probe_timeout(QUICK).timeout(QUICK));
    let mut client = Client::new(Child::spawn_with(Command::new("true"), &PROFILE, options).unwrap(), Ignore);
    let error = soon(|| client.connect().unwrap_err());
    assert_eq!(error.lost(), Some(TransportError::Closed));
    assert!(error.to_string().contains("exit status: 0"), "{error}");
}

/// A server of an older revision that ends at a request before `initialize`. It notes each of its starts in the file `$0`.
const STRICT: &str = r#"echo start >> "$0"
read line
case "$line" in *'"method":"initialize"'*) ;; *) echo "expected initialize" >&2; exit 1 ;; esac
id=${line#*'"id":'}; id=${id%%[,\}]*}
echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"strict","version":"1"}}}'
read line
while read line; do id=${line#*'"id":'}; echo '{"jsonrpc":"2.0","id":'${id%%[,\}]*}',"result":{"tools":[]}}'; done"#;

/// The process is started once more, and no third time.
#[test]
fn a_server_that_ends_at_the_probe() {
    let starts = std::env::temp_dir().join(format!("mcp-starts-blocking-{}", std::process::id()));
    let command = |script| Command::new("/bin/sh").args(["-c", script]).arg(&starts).take();
    let options = || ChildOptions::new().close_time(QUICK).terminate_time(QUICK);
    let counted = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let mut client = Client::new(Child::spawn_with(command(STRICT), &PROFILE, options()).unwrap(), Ignore);
    let first = client.transport.id();
    assert_eq!(client.connect().unwrap().revision(), Revision::V2025_06_18);
    assert_ne!(client.transport.id(), first);
    assert!(client.request(&Request::list_tools()).unwrap().as_str().contains("tools"));
    assert_eq!(client.close().unwrap().after, StopSignal::StdinClosed);
    assert_eq!(counted(), 2);
    let mut client = Client::new(
        Child::spawn_with(command("echo start >> \"$0\"; read line; echo never >&2; exit 3"), &PROFILE, options())
            .unwrap(),
        Ignore,
    );
    let error = client.connect().unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.matches("never").count() == 1, "{error}");
    assert_eq!(counted(), 4);
    // A client of 2026-07-28 alone has no other way to begin.
    static LATEST: ClientInfo<'static> = ClientInfo::new("test", "1").revisions(Revisions::from(Revision::V2026_07_28));
    let mut client = Client::new(Child::spawn_with(command(STRICT), &LATEST, options()).unwrap(), Ignore);
    assert_eq!(client.connect().unwrap_err().lost(), Some(TransportError::Closed));
    assert_eq!(counted(), 5);
    std::fs::remove_file(starts).unwrap();
}

/// A server that only closes its stdout at the probe is stopped before it is started again.
#[cfg(target_os = "linux")]
#[test]
fn the_first_start_does_not_outlive_the_second() {
    let starts = std::env::temp_dir().join(format!("mcp-closes-blocking-{}", std::process::id()));
    let script = format!("if [ ! -e \"$0\" ]; then echo start > \"$0\"; exec 1>&-; exec sleep 60; fi\n{STRICT}");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).arg(&starts);
    let options = ChildOptions::new().close_time(QUICK).terminate_time(QUICK);
    let mut client = Client::new(Child::spawn_with(command, &PROFILE, options).unwrap(), Ignore);
    let first = std::path::PathBuf::from(format!("/proc/{}", client.transport.id()));
    assert!(first.exists());
    assert_eq!(client.connect().unwrap().revision(), Revision::V2025_06_18);
    assert!(!first.exists(), "it runs on");
    std::fs::remove_file(starts).unwrap();
}

/// The part of the probe that the first start has not read does not go to the second one.
#[test]
fn the_rest_of_the_probe_is_dropped() {
    let starts = std::env::temp_dir().join(format!("mcp-rest-blocking-{}", std::process::id()));
    let script = format!(
        "if [ ! -e \"$0\" ]; then echo start > \"$0\"; head -c 1 >/dev/null; exec 1>&-; exec sleep 60; fi\n{STRICT}"
    );
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).arg(&starts);
    // A pipe holds 64 KiB.
    let name = "x".repeat(150_000);
    let info = ClientInfo::new(&name, "1");
    let options = ChildOptions::new().close_time(QUICK).terminate_time(QUICK);
    let mut client = Client::new(Child::spawn_with(command, &info, options).unwrap(), Ignore);
    let shown = Rc::new(RefCell::new(Vec::new()));
    let sink = shown.clone();
    client.trace(move |way, message| sink.borrow_mut().push((way, String::from_utf8_lossy(message).into_owned())));
    assert_eq!(client.connect().unwrap().revision(), Revision::V2025_06_18);
    client.close();
    // A trace shows each message whole, and none twice.
    let shown = shown.borrow();
    let sent: Vec<_> = shown.iter().filter(|(way, _)| *way == Direction::Sent).map(|(_, text)| text).collect();
    let methods = ["server/discover", "initialize", "notifications/initialized"];
    assert_eq!(sent.len(), methods.len());
    for (text, method) in sent.iter().zip(methods) {
        let method = format!("\"method\":\"{method}\"");
        let is_whole = text.starts_with('{') && text.ends_with('}');
        assert!(is_whole && text.matches(&method).count() == 1, "{method} {}", text.len());
    }
    std::fs::remove_file(starts).unwrap();
}

/// Messages that were sent before the end are written, and the server's last lines of stderr are read, also while another process
/// keeps it open.
#[test]
fn the_last_message_and_the_last_words() {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let sink = lines.clone();
    let stderr =
        Stderr::Lines(Box::new(move |line| sink.borrow_mut().push(String::from_utf8_lossy(line).into_owned())));
    let script = "sleep 4 & while read l; do n=$((n+1)); done; echo \"$n lines\" >&2; printf 'and no newline' >&2";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    let options = ChildOptions::new().stderr(stderr).close_time(Duration::from_secs(20));
    let mut client = Client::new(Child::spawn_with(command, &PROFILE, options).unwrap(), Ignore);
    client.connect_as(Revision::V2026_07_28).unwrap();
    client.send(&call()).unwrap();
    client.handle().send(&call()).unwrap();
    let ended = client.transport.end();
    assert_eq!(ended.after, StopSignal::StdinClosed);
    assert_eq!(*lines.borrow(), ["2 lines", "and no newline"]);
    // The end is known now.
    assert_eq!(client.transport.end().after, StopSignal::StdinClosed);
    assert_eq!(client.close().unwrap().after, StopSignal::StdinClosed);
}

/// Each message is shown once, also if the pipe takes it in pieces, and none after the server has closed its stdin.
#[test]
fn a_trace_shows_each_message_once() {
    let mut client = scripted("read l; echo ready >&2; sleep 0.2; exec cat >/dev/null", SOON * 4);
    let shown = Rc::new(RefCell::new(Vec::new()));
    let sink = shown.clone();
    client.trace(move |way, message| sink.borrow_mut().push((way, message.len())));
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(300_000));
    let arguments = Raw::parse(large.as_bytes()).unwrap();
    for request in [call(), call().arguments(&arguments), call().arguments(&arguments), call()] {
        client.send(&request).unwrap();
    }
    let begun = Instant::now();
    while shown.borrow().len() < 4 {
        client.turn(QUICK / 10).unwrap();
        assert!(begun.elapsed() < SOON * 4, "{shown:?}");
    }
    client.turn(QUICK).unwrap();
    let shown = shown.borrow();
    assert!(shown.iter().all(|(way, _)| *way == Direction::Sent) && shown.len() == 4, "{shown:?}");
    assert!(shown[1].1 > 300_000 && shown[1].1 == shown[2].1 && shown[0].1 == shown[3].1, "{shown:?}");
}

/// The server reads and writes nothing: each of the two attempts to open the connection ends after its time.
#[test]
fn a_program_that_says_nothing() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "cat >/dev/null"]);
    let options = ChildOptions::new().options(ClientOptions::DEFAULT.probe_timeout(QUICK).timeout(QUICK));
    let mut client = Client::new(Child::spawn_with(command, &PROFILE, options).unwrap(), Ignore);
    let error = soon(|| client.connect().unwrap_err());
    assert_eq!(error.lost(), Some(TransportError::TimedOut), "{error}");
}

#[test]
fn dies_mid_reply() {
    let script = r#"read l; printf '{"jsonrpc":"2.0","id":1,"resu'; echo 'out of cheese' >&2; exit 3"#;
    let mut client = scripted(script, SOON * 2);
    let (why, text) = soon(|| lost(client.request(&call())));
    assert_eq!(why, TransportError::Closed);
    assert!(text.contains("exit status: 3") && text.contains("out of cheese"), "{text}");
    // A later request gets the same error.
    let (why, text) = soon(|| lost(client.request(&call())));
    assert!(why == TransportError::Closed && text.contains("exit status: 3"), "{text}");
}

#[test]
fn killed() {
    let mut client = scripted("read l; kill -9 $$", SOON * 2);
    let (why, text) = soon(|| lost(client.request(&call())));
    assert!(why == TransportError::Closed && text.contains("signal: 9"), "{text}");
    assert_eq!(client.close().unwrap().after, StopSignal::None);
}

/// The server ends, but a child of its own keeps the pipes open.
#[test]
fn dies_and_leaves_a_child() {
    let mut client = scripted("sleep 4 & read l; exit 1", SOON * 2);
    let (why, text) = soon(|| lost(client.request(&call())));
    assert!(why == TransportError::Closed && text.contains("exit status: 1"), "{text}");
}

// spec: T061 T069
#[test]
fn floods_stderr() {
    let script = format!(
        r#"read l; i=0; while [ $i -lt 3000 ]; do echo "line $i is rather long, so that the pipe is full soon, and then some" >&2; i=$((i+1)); done
        echo '{{"jsonrpc":"2.0","id":1,{ANSWER}'; read l"#
    );
    let lines = Rc::new(RefCell::new(Vec::new()));
    let sink = lines.clone();
    let stderr = Stderr::Lines(Box::new(move |line| sink.borrow_mut().push(line.to_vec())));
    let mut client = scripted_with(&script, SOON * 2, stderr, Ignore);
    soon(|| client.request(&call()).unwrap());
    drop(client);
    let lines = lines.borrow();
    assert_eq!(lines.len(), 3000);
    assert!(lines[2999].starts_with(b"line 2999 is"));
}

/// The server never stops writing; a request still ends in time.
#[test]
fn floods_stdout() {
    for line in ["what?", r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#] {
        let mut client = scripted(&format!("exec yes '{line}'"), QUICK);
        let error = soon(|| client.request(&call()).unwrap_err());
        assert!(matches!(error, ClientError::Lost { why: TransportError::TimedOut, .. }), "{error}");
    }
}

/// A line without an end: only one piece of it is kept.
#[test]
fn floods_stderr_without_a_newline() {
    let script = format!(
        r#"read l; head -c 300000 /dev/zero | tr '\0' x >&2; echo '{{"jsonrpc":"2.0","id":1,{ANSWER}'; read l"#
    );
    let longest = Rc::new(RefCell::new((0, 0)));
    let sink = longest.clone();
    let stderr = Stderr::Lines(Box::new(move |line| {
        let (most, all) = *sink.borrow();
        *sink.borrow_mut() = (line.len().max(most), all + line.len());
    }));
    let mut client = scripted_with(&script, SOON * 2, stderr, Ignore);
    soon(|| client.request(&call()).unwrap());
    drop(client);
    assert_eq!(*longest.borrow(), (8192, 300_000));
}

/// The server answers all requests except one.
#[test]
fn never_answers_one() {
    let script = format!(r#"read l; read l; echo '{{"jsonrpc":"2.0","id":2,{ANSWER}'; cat >/dev/null"#);
    let mut client = scripted(&script, QUICK);
    let (first, second) = (client.send(&call()).unwrap(), client.send(&call()).unwrap());
    soon(|| client.wait(second).unwrap());
    let (why, _) = soon(|| lost(client.wait(first)));
    assert_eq!(why, TransportError::TimedOut);
}

#[test]
fn answers_twice_and_for_others() {
    let script = format!(
        r#"read l; echo '{{"jsonrpc":"2.0","id":1,{ANSWER}'; echo '{{"jsonrpc":"2.0","id":1,{ANSWER}'
        echo '{{"jsonrpc":"2.0","id":77,{ANSWER}'; echo 'Server ready!'; read l
        echo '{{"jsonrpc":"2.0","id":2,{ANSWER}'; read l"#
    );
    let odd = Rc::new(RefCell::new(Vec::new()));
    let sink = odd.clone();
    let handler = move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
        if let ClientEvent::Ignored(oddity) = event {
            sink.borrow_mut().push(oddity);
        }
    };
    let mut client = scripted_with(&script, SOON, Stderr::Keep, handler);
    client.request(&call()).unwrap();
    client.request(&call()).unwrap();
    let expected =
        [ProtocolViolation::UnknownResponse, ProtocolViolation::UnknownResponse, ProtocolViolation::NoMessage];
    assert_eq!(*odd.borrow(), expected);
}

#[test]
fn half_a_line_and_no_more() {
    let mut client = scripted(r#"read l; printf '{"jsonrpc":"2.0","id":1,"res'; cat >/dev/null"#, QUICK);
    let (why, _) = soon(|| lost(client.request(&call())));
    assert_eq!(why, TransportError::TimedOut);
}

#[test]
fn a_line_that_never_ends() {
    let script = format!(
        r#"read l; printf '{{"jsonrpc":"2.0","id":1,"result":"'; head -c 500000 /dev/zero | tr '\0' x; echo
        read l; echo '{{"jsonrpc":"2.0","id":2,{ANSWER}'; read l"#
    );
    let mut client = scripted(&script, SOON * 2);
    let (why, _) = soon(|| lost(client.request(&call())));
    assert_eq!(why, TransportError::TooLarge);
    client.request(&call()).unwrap();
}

// spec: T086
#[test]
fn closes_stdout_and_lives_on() {
    let mut client = scripted("read l; exec 1>&-; exec sleep 4", SOON * 2);
    let (why, text) = soon(|| lost(client.request(&call())));
    assert!(why == TransportError::Closed && text.contains("closed its stdout"), "{text}");
    assert_eq!(soon(|| client.close().unwrap().after), StopSignal::Terminate);
}

#[test]
fn closes_stdin_and_lives_on() {
    let mut client = scripted("exec 0<&-; echo closed >&2; exec sleep 4", SOON * 2);
    while client.transport.last_words() != "closed" {
        client.turn(Duration::from_millis(5)).unwrap();
    }
    let (why, text) = soon(|| lost(client.request(&call())));
    assert!(why == TransportError::Unsent && text.contains("closed its stdin"), "{text}");
}

/// A pipe holds 64 KiB; the rest waits in the client, which does not block.
// spec: B110
#[test]
fn reads_nothing() {
    let mut client = scripted("exec sleep 4", QUICK);
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(300_000));
    let arguments = Raw::parse(large.as_bytes()).unwrap();
    let (why, _) = soon(|| lost(client.request(&call().arguments(&arguments))));
    assert_eq!(why, TransportError::TimedOut);
    assert_eq!(soon(|| client.close().unwrap().after), StopSignal::Terminate);
}

/// Returns arguments that are larger than the limit of pending answers.
fn huge() -> String {
    format!(r#"{{"text":"{}"}}"#, "x".repeat(17 << 20))
}

/// The server writes all its messages before it reads the next line.
#[test]
fn says_much_before_it_reads() {
    let script = format!(
        "yes '{{}}' | head -n 100000; head -n 1 >/dev/null; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,{ANSWER}'; cat"
    );
    let mut client = scripted(&script, SOON * 2);
    let huge = huge();
    let arguments = Raw::parse(huge.as_bytes()).unwrap();
    client.request(&call().arguments(&arguments)).unwrap();
}

#[test]
fn dies_while_much_waits_for_it() {
    let mut client = scripted("sleep 0.2", SOON * 2);
    let huge = huge();
    let arguments = Raw::parse(huge.as_bytes()).unwrap();
    let (why, text) = soon(|| lost(client.request(&call().arguments(&arguments))));
    // On a busy machine it ends before anything is written.
    assert!(matches!(why, TransportError::Closed | TransportError::Unsent) && text.contains("ended"), "{text}");
}

/// `run` handles messages that are already there without waiting.
#[test]
fn looks_without_waiting() {
    let script = format!("while read line; do echo '{{\"jsonrpc\":\"2.0\",\"id\":'$((n+=1))',{ANSWER}'; done");
    let mut client = scripted(&script, SOON * 2);
    for way in [false, true] {
        let token = client.send(&call()).unwrap();
        let begun = Instant::now();
        // Each turn takes no time, so there are many turns before the shell answers.
        let outcome = loop {
            if way {
                client.run().unwrap();
            } else {
                client.turn(Duration::ZERO).unwrap();
            }
            if let Some(outcome) = client.poll(token) {
                break outcome;
            }
            assert!(begun.elapsed() < SOON * 2, "it does not come");
            std::thread::sleep(Duration::from_millis(5));
        };
        outcome.unwrap();
    }
}

/// The server pings between two requests.
// spec: B190
#[test]
fn a_turn_answers_pings() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let script = format!(
        r#"read l; echo '{hello}'; read l; read l; echo '{{"jsonrpc":"2.0","id":2,{ANSWER}'
        sleep 0.1; echo '{{"jsonrpc":"2.0","id":"p","method":"ping"}}'; read l; printf '%s\n' "$l" >&2; read l"#
    );
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]);
    let lines = Rc::new(RefCell::new(Vec::new()));
    let sink = lines.clone();
    let stderr =
        Stderr::Lines(Box::new(move |line| sink.borrow_mut().push(String::from_utf8_lossy(line).into_owned())));
    let options = ChildOptions::new().stderr(stderr).close_time(QUICK).terminate_time(QUICK);
    let info = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_06_18));
    let mut client = Client::new(Child::spawn_with(command, &info, options).unwrap(), Ignore);
    client.connect().unwrap();
    client.request(&call()).unwrap();
    let begun = Instant::now();
    while lines.borrow().is_empty() && begun.elapsed() < SOON {
        client.turn(QUICK).unwrap();
    }
    assert_eq!(*lines.borrow(), [r#"{"jsonrpc":"2.0","id":"p","result":{}}"#]);
}

// spec: B086 B108 B111 T086
#[test]
fn wants_to_be_killed() {
    let mut client = scripted("trap '' TERM; echo ready >&2; while :; do sleep 0.05; done", QUICK);
    while !client.transport.last_words().contains("ready") {
        client.turn(Duration::from_millis(5)).unwrap();
    }
    let ended = soon(|| client.close().unwrap());
    assert_eq!(ended.after, StopSignal::Kill);
    assert!(ended.status.is_some());
}

/// The server is a child of a shell, as behind `npx` or `uv run`: it is stopped with it.
#[test]
fn a_wrapper_is_stopped_with_its_server() {
    let mut client = scripted("sleep 60 & echo server $! >&2; wait", QUICK);
    let server = loop {
        client.turn(Duration::from_millis(5)).unwrap();
        let words = client.transport.last_words();
        if let Some((_, rest)) = words.split_once("server ") {
            break rest.trim().to_owned();
        }
    };
    soon(|| client.close().unwrap());
    let begun = Instant::now();
    while runs(&server) {
        assert!(begun.elapsed() < Duration::from_secs(5), "the process {server} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A client that was closed starts nothing again, and its error says so.
#[test]
fn closed_by_its_user() {
    let mut client = Client::new(Child::spawn(own_server(), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    let token = client.send(&call()).unwrap();
    client.transport.end();
    let (why, text) = lost(client.wait(token));
    assert_eq!((why, text.contains("it was closed")), (TransportError::Closed, true), "{text}");
    // The same while it learns the server's revision.
    let mut client = scripted_with("read line; sleep 20", SOON, Stderr::Keep, Ignore);
    client.transport.end();
    let (why, text) = lost(client.request(&call()));
    assert_eq!((why, text.contains("it was closed")), (TransportError::Closed, true), "{text}");
}

/// The server may use its whole shutdown time to write, and must not block on a full pipe.
// spec: B109
#[test]
fn says_a_lot_at_the_end() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "cat >/dev/null; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 7"]);
    let options = ChildOptions::new().close_time(Duration::from_secs(20));
    let mut client = Client::new(Child::spawn_with(command, &PROFILE, options).unwrap(), Ignore);
    client.connect_as(Revision::V2026_07_28).unwrap();
    client.run().unwrap();
    let ended = soon(|| client.close().unwrap());
    assert_eq!((ended.after, ended.status.and_then(|status| status.code())), (StopSignal::StdinClosed, Some(7)));
}

/// The server keeps the position itself and sends the same cursor with each page: the client must not compare
/// cursors.
// spec: S015 S166 S167 S168 S169
#[test]
fn pages_with_equal_cursors() {
    let lists = [
        (Request::list_tools(), "tools", "again"),
        (Request::list_prompts(), "prompts", ""),
        (Request::list_resources(), "resources", "again"),
        (Request::list_templates(), "resourceTemplates", ""),
    ];
    for (list, member, cursor) in lists {
        let script = format!(
            r#"i=0; while read l; do i=$((i+1)); next=',"nextCursor":"{cursor}"'; [ $i = 4 ] && next=
            echo '{{"jsonrpc":"2.0","id":'$i',"result":{{"{member}":[],"page":'$i$next',"resultType":"complete"}}}}'; done"#
        );
        let mut client = scripted(&script, SOON);
        let pages: Vec<u32> =
            client.pages(list).map(|page| page.unwrap().raw().get("page").unwrap().deserialize().unwrap()).collect();
        assert_eq!(pages, [1, 2, 3, 4], "{member}");
    }
}

/// Checks that an error is the expected one.
type Expected = fn(&ClientError) -> bool;

/// Each limit of a list ends it with an error that says that there are more pages.
#[test]
fn pages_have_limits() {
    let script = r#"i=0; while read l; do i=$((i+1)); echo '{"jsonrpc":"2.0","id":'$i',"result":{"tools":[],"page":'$i',"nextCursor":"c","resultType":"complete"}}'; done"#;
    let size = r#"{"tools":[],"page":1,"nextCursor":"c","resultType":"complete"}"#.len();
    let limits = PageLimits::DEFAULT;
    let cases: [(PageLimits, usize, Expected); 4] = [
        (limits.pages(3), 3, |error| matches!(error, ClientError::TooManyPages)),
        (limits.bytes(2 * size), 2, |error| matches!(error, ClientError::ListTooLarge)),
        (limits.bytes(2 * size + 1), 3, |error| matches!(error, ClientError::ListTooLarge)),
        (limits.time(Duration::ZERO), 0, |error| matches!(error, ClientError::ListTooSlow)),
    ];
    for (limits, good, is_expected) in cases {
        let mut client = scripted(script, SOON);
        let mut pages = client.pages(Request::list_tools()).limits(limits);
        for _ in 0..good {
            pages.next().unwrap().unwrap();
        }
        let error = pages.next().unwrap().unwrap_err();
        assert!(is_expected(&error), "{error}");
        assert!(pages.next().is_none());
    }
}

/// A list whose cursors form a circle ends.
#[test]
fn endless_pages() {
    let script = r#"i=1; while read l; do echo '{"jsonrpc":"2.0","id":'$i',"result":{"tools":[],"nextCursor":"'$((i%2))'","resultType":"complete"}}'; i=$((i+1)); done"#;
    let mut client =
        Client::new(Child::spawn(Command::new("/bin/sh").args(["-c", script]).take(), &PROFILE).unwrap(), Ignore);
    client.connect_as(Revision::V2026_07_28).unwrap();
    let mut pages = client.pages(Request::list_tools());
    assert_eq!(pages.by_ref().filter(Result::is_ok).count(), 2);
    assert!(pages.next().is_none());
}

/// The methods of `Command` return a reference; this takes the value.
trait Take {
    fn take(&mut self) -> Command;
}

impl Take for Command {
    fn take(&mut self) -> Command {
        std::mem::replace(self, Command::new("true"))
    }
}
