//! Calls that become tasks, and the commands for tasks.

#[path = "../../../../tests/remote/task_server.rs"]
mod task_server;

use std::io::{BufRead, BufReader, Read};
use std::thread::JoinHandle;

use mcp_sansio_blocking::http::{HttpServer, Stopper};
use task_server::{World, service};

use super::{HELLO, OLD, assert_harmless, inspect, interrupt, made_up, on_a_terminal, plain, run, script, wait};

/// A task in the answer to the request with this id.
fn task(id: u8, kind: &str, status: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"{kind}","taskId":"t-1","status":"{status}","createdAt":"2026-07-28T09:30:00Z","lastUpdatedAt":"2026-07-28T09:31:00Z","ttlMs":60000,"pollIntervalMs":200{more}}}}}"#
    )
}

const DONE: &str = r#","result":{"content":[{"type":"text","text":"4 pages"}]}"#;
const ASKS: &str = r#","inputRequests":{"paper":{"method":"elicitation/create","params":{"message":"Which paper?","requestedSchema":{"type":"object","properties":{"size":{"type":"string"}}}}}}"#;

#[test]
fn a_call_that_becomes_a_task() {
    let (created, half) = (task(2, "task", "working", ""), r#","statusMessage":"half \u001b[2J""#);
    let working = task(3, "complete", "working", half);
    let answers = [HELLO, &created, &working, &task(4, "complete", "completed", DONE)];
    let (code, out, err) = made_up(&answers, &["call", "print"]);
    assert_eq!((code, out.as_str()), (0, "4 pages\n"));
    assert_eq!(err, "The server answers later: task t-1\ntask working: half ␛[2J\ntask completed\n");
    let (code, out, err) = made_up(&answers, &["-q", "--json", "call", "print"]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "{\"content\":[{\"type\":\"text\",\"text\":\"4 pages\"}]}\n", "")
    );

    for (status, more, expected, words) in [
        ("completed", r#","result":{"content":[],"isError":true}"#, 1, ""),
        ("failed", r#","error":{"code":-32050,"message":"no \u001b[2Jink"}"#, 4, "the task failed: no "),
        ("cancelled", "", 4, "the task was cancelled"),
        ("completed", "", 6, "broke the rules of tasks"),
        // Without a terminal no question is declared.
        ("input_required", ASKS, 6, "the client did not declare"),
    ] {
        let (code, out, err) = made_up(&[HELLO, &created, &task(3, "complete", status, more)], &["call", "print"]);
        assert!(code == expected && err.contains(words), "{status}: {code} {out}{err}");
        assert_harmless(&err);
    }
    let gone = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"?"}}"#;
    let (code, _, err) = made_up(&[HELLO, &created, gone], &["call", "print"]);
    assert!(code == 4 && err.contains("the server does not know the task"), "{err}");
}

#[test]
fn a_task_asks_on_a_terminal() {
    let answers = [
        HELLO,
        &task(2, "task", "working", ""),
        &task(3, "complete", "input_required", ASKS),
        r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete"}}"#,
        &task(5, "complete", "completed", DONE),
    ];
    let file = std::env::temp_dir().join(format!("inspect-task-{}", std::process::id()));
    let script =
        script(&answers).replace("read -r line;", &format!("read -r line; echo \"$line\" >>{};", file.display()));
    let args = ["call", "print", "--", "sh", "-c", &script];
    let (code, shown) = on_a_terminal(&args, &[("leave out] >", "A4\n")]);
    let sent = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let shown = plain(&shown);
    assert!(code == 0 && shown.contains("Which paper?") && shown.ends_with("4 pages\n"), "{code} {shown}");
    let update = sent.lines().nth(3).unwrap();
    let answer = r#""taskId":"t-1","inputResponses":{"paper":{"action":"accept","content":{"size":"A4"}}}"#;
    assert!(update.contains("tasks/update") && update.contains(answer), "{update}");
}

struct Running {
    url: String,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

fn start() -> Running {
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let stopper = server.stopper();
    let thread = std::thread::spawn(move || server.serve(&service(), &mut World::new()).unwrap());
    Running { url, stopper, thread: Some(thread) }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn an_interrupt_cancels_the_task() {
    let server = start();
    let mut child = inspect(&["call", "work", &server.url]).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("task working: begun\n") {
        assert!(err.read_line(&mut text).unwrap() > 0, "{text}");
    }
    interrupt(&child);
    err.read_to_string(&mut text).unwrap();
    assert!(wait(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    let ends = "The server is asked to cancel the task.\ntask cancelled: begun\ninspect: the task was cancelled\n";
    assert!(text.ends_with(ends), "{text}");
}

/// Begins a task, and ends the client. Returns the id.
fn begin(url: &str) -> String {
    let mut child = inspect(&["call", "work", url]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line.trim_end().strip_prefix("The server answers later: task ").unwrap().to_owned()
}

#[test]
fn tasks_by_their_ids() {
    let server = start();
    let url = server.url.as_str();
    // The task continues without its client.
    let id = begin(url);
    let (code, out, err) = run(&["tasks", "get", &id, url]);
    let (head, rest) = out.split_once('\n').unwrap();
    assert_eq!((code, head, err.as_str()), (0, format!("{id}  working").as_str(), ""));
    assert!(
        rest.starts_with("  begun\n  created ") && rest.ends_with("  is kept for 600 s\n  poll every 0.05 s\n"),
        "{rest}"
    );
    assert_eq!(run(&["call", "ask", url]).0, 1, "the client of the task did not declare questions");
    assert_eq!(run(&["call", "finish", url]).1, "finished\n");
    assert_eq!(run(&["tasks", "follow", &id, url]).1, "done\n");
    let (_, out, _) = run(&["--json", "tasks", "get", &id, url]);
    assert!(out.starts_with("{\"tasks\":[{") && out.contains("\"status\":\"completed\""), "{out}");

    let id = begin(url);
    let (code, out, _) = run(&["tasks", "cancel", &id, url]);
    assert!(code == 0 && out.starts_with(&format!("{id}  cancelled\n")), "{out}");
    let (code, _, err) = run(&["tasks", "get", "unknown", url]);
    assert!(code == 4 && err.contains("tasks/get: the server answered with error -32602"), "{err}");
    let (code, _, err) = run(&["tasks", url]);
    assert!(code == 2 && err.contains("no list of tasks; give the id of one"), "{err}");
}

/// Servers of 2025-11-25 may have a list.
#[test]
fn tasks_are_listed() {
    let hello = OLD[1].replace("\"tools\":{}", "\"tasks\":{\"list\":{}}");
    let list = r#"{"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"a","status":"working","createdAt":"2025-11-25T10:00:00Z","lastUpdatedAt":"2025-11-25T10:00:00Z","ttl":60000,"pollInterval":5000},{"taskId":"b","status":"failed","statusMessage":"no ink","createdAt":"2025-11-25T10:00:00Z","lastUpdatedAt":"2025-11-25T10:00:00Z","ttl":null}]}}"#;
    let script = script(&[OLD[0], &hello]).replace("cat >/dev/null", "read -r line\n") + &self::script(&[list]);
    let (code, out, err) = run(&["tasks", "--", "sh", "-c", &script]);
    let expected = "\
a  working
  created 2025-11-25T10:00:00Z
  updated 2025-11-25T10:00:00Z
  is kept for 60 s
  poll every 5 s

b  failed
  no ink
  created 2025-11-25T10:00:00Z
  updated 2025-11-25T10:00:00Z
";
    assert_eq!((code, out.as_str()), (0, expected), "{err}");
    let script = self::script(&OLD).replace("cat >/dev/null", "cat >/dev/null\n");
    let (code, out, _) = run(&["tasks", "--", "sh", "-c", &script]);
    assert_eq!((code, out.as_str()), (0, "The server has no tasks.\n"));
}

/// In 2025-11-25 the answer to a cancellation is the task, which the server may forget then.
#[test]
fn a_cancelled_task_may_be_gone() {
    let hello = OLD[1].replace("\"tools\":{}", "\"tasks\":{\"cancel\":{}}");
    let cancelled = r#"{"jsonrpc":"2.0","id":3,"result":{"taskId":"a","status":"cancelled","statusMessage":"no ink","createdAt":"2025-11-25T10:00:00Z","lastUpdatedAt":"2025-11-25T10:00:00Z","ttl":null}}"#;
    let gone = r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"?"}}"#;
    let script =
        script(&[OLD[0], &hello]).replace("cat >/dev/null", "read -r line\n") + &self::script(&[cancelled, gone]);
    let (code, out, err) = run(&["tasks", "cancel", "a", "--", "sh", "-c", &script]);
    assert!(code == 0 && out.starts_with("a  cancelled\n  no ink\n"), "{out}{err}");
}

/// A server of 2025-11-25 says which tools are tasks only.
// spec: K067
#[test]
fn a_tool_that_demands_a_task_gets_one() {
    let hello = OLD[1].replace("\"tools\":{}", "\"tools\":{},\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}");
    let tools = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"print","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}}"#;
    let state = |status: &str| {
        format!(
            r#""taskId":"t","status":"{status}","createdAt":"2025-11-25T10:00:00Z","lastUpdatedAt":"2025-11-25T10:00:00Z","ttl":null,"pollInterval":200"#
        )
    };
    let created = format!(r#"{{"jsonrpc":"2.0","id":4,"result":{{"task":{{{}}}}}}}"#, state("working"));
    let got = format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{{}}}}}"#, state("completed"));
    let result = r#"{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"4 pages"}]}}"#;
    let script = script(&[OLD[0], &hello]).replace("cat >/dev/null", "read -r line\n")
        + &self::script(&[tools, &created, &got, result]);
    let (code, out, err) = run(&["--trace", "call", "print", "--", "sh", "-c", &script]);
    assert_eq!((code, out.as_str()), (0, "4 pages\n"), "{err}");
    for words in ["\"task\": {}", "tasks/get", "tasks/result", "task completed"] {
        assert!(err.contains(words), "{words}: {err}");
    }
    let optional = tools.replace("required", "optional");
    let plain = r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"4 pages"}]}}"#;
    let script = self::script(&[OLD[0], &hello]).replace("cat >/dev/null", "read -r line\n")
        + &self::script(&[&optional, plain]);
    let (code, out, err) = run(&["--trace", "call", "print", "--", "sh", "-c", &script]);
    assert_eq!((code, out.as_str()), (0, "4 pages\n"), "{err}");
    assert!(!err.contains("\"task\""), "{err}");
}
