//! The clients of `fleet_costs.py`.
//!
//! `fleet-costs-client load PORT KIND CONNECTIONS MILLIS` sends `tools/call` over kept connections, one at a time on each, and
//! checks each answer. Kinds: `modern` (2026-07-28), `session` (2025-06-18), and `stream` (in a session, answered by an event
//! stream). Prints the number of requests and the seconds.
//!
//! `fleet-costs-client latency HERE ELSEWHERE ROUNDS` does what a process can do by itself, and what it needs another one for. The
//! ports are those of two processes. Prints a line for each: what, where, and the microseconds of the median and of the 99th
//! percentile.

use std::env;
use std::time::{Duration, Instant};

use mcp_sansio_bench::web::{Client, MODERN, post, session_fields};
use serde_json::Value;

const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"costs","version":"1"}}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/clientInfo":{"name":"costs","version":"1"}}"#;
const WATCHED: &str = "scale://resource/1";

/// Returns a request of 2026-07-28; `params` begin with a comma or are empty, `name` is the name that its header has.
fn modern(method: &str, name: &str, params: &str) -> Vec<u8> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}{params}}}}}"#);
    let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    post(&body, &format!("{MODERN}Mcp-Method: {method}\r\n{name}"))
}

/// Returns a `tools/call` of 2026-07-28.
fn call(tool: &str, text: &str) -> Vec<u8> {
    modern("tools/call", tool, &format!(r#","name":"{tool}","arguments":{{"text":"{text}"}}"#))
}

/// Returns a `tools/call` in a session, whose answer may be a stream.
fn call_in(session: &str, tool: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"abc"}},"_meta":{{"progressToken":1}}}}}}"#
    );
    post(&body, &session_fields(session))
}

/// Reads a whole answer, with a length or in chunks. Returns its text.
fn whole(client: &mut Client) -> String {
    let head = client.head();
    let fields = String::from_utf8_lossy(&client.received[..head]).to_ascii_lowercase();
    if fields.contains("transfer-encoding: chunked") {
        while !client.received.ends_with(b"\r\n0\r\n\r\n") {
            client.read();
        }
    } else if fields.contains("content-length: ") {
        client.answer();
    }
    let text = String::from_utf8_lossy(&client.received).into_owned();
    client.received.clear();
    text
}

/// Sends a request, and returns its whole answer, which must be a result.
fn exchange(client: &mut Client, request: &[u8]) -> String {
    client.send(request);
    let text = whole(client);
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("\"result\""), "{text}");
    text
}

/// Waits until `text` has come.
fn wait_for(client: &mut Client, text: &str) {
    while memchr::memmem::find(&client.received, text.as_bytes()).is_none() {
        client.read();
    }
}

/// Opens a session. Returns its id.
fn open_session(client: &mut Client) -> String {
    let text = exchange(client, &post(OPENING, ""));
    text.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: ")).expect("it opens sessions").to_owned()
}

/// Ends a session.
fn end_session(client: &mut Client, session: &str) {
    let fields = session_fields(session);
    client.send(format!("DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n").as_bytes());
    let text = whole(client);
    assert!(text.starts_with("HTTP/1.1 20"), "{text}");
}

/// Returns the JSON of the first message of an answer with this in it.
fn message(text: &str, with: &str) -> Value {
    let line = text.lines().find(|line| line.contains(with)).unwrap_or_else(|| panic!("no {with} in {text}"));
    serde_json::from_str(line.trim_start_matches("data: ")).expect("a message is JSON")
}

fn load(port: u16, kind: &str, connections: usize, time: Duration) {
    let mut clients: Vec<_> = (0..connections).map(|_| Client::connect(port)).collect();
    let requests: Vec<_> = clients
        .iter_mut()
        .map(|client| match kind {
            "modern" => call("echo", "abc"),
            "session" => call_in(&open_session(client), "echo"),
            "stream" => call_in(&open_session(client), "stream"),
            other => panic!("no kind {other}"),
        })
        .collect();
    // Each process opens each session once.
    for (client, request) in clients.iter_mut().zip(&requests) {
        for _ in 0..6 {
            exchange(client, request);
        }
    }
    let (began, mut count) = (Instant::now(), 0_u64);
    while began.elapsed() < time {
        for (client, request) in clients.iter_mut().zip(&requests) {
            client.send(request);
        }
        for client in &mut clients {
            let text = whole(client);
            assert!(text.contains(r#""text":"abc""#), "{text}");
            count += 1;
            // nginx ends a connection after a thousand requests.
            if text.contains("Connection: close") {
                *client = Client::connect(port);
            }
        }
    }
    println!("{count}\t{:.4}", began.elapsed().as_secs_f64());
}

/// Prints the median and the 99th percentile of times.
fn report(what: &str, place: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1e6;
    println!("{what}\t{place}\t{:.0}\t{:.0}", at(50), at(99));
}

/// Does something `rounds` times. What it returns is the time of one.
fn times(rounds: usize, mut once: impl FnMut() -> Duration) -> Vec<Duration> {
    (0..rounds + 20).map(|_| once()).skip(20).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// A call that the process answers by itself, and the end of a session, which waits for the others.
fn plain(here: u16, rounds: usize) {
    let mut client = Client::connect(here);
    let request = call("echo", "abc");
    report("call", "here", times(rounds, || timed(|| drop(exchange(&mut client, &request)))));
    let ends = times(rounds, || {
        let session = open_session(&mut client);
        timed(|| end_session(&mut client, &session))
    });
    report("delete", "elsewhere", ends);
}

/// The poll of a task.
fn poll(here: u16, place: &str, port: u16, rounds: usize) {
    let begun = exchange(&mut Client::connect(here), &call("start", "-"));
    let task = message(&begun, "taskId")["result"]["taskId"].as_str().expect("a task has an id").to_owned();
    let request = modern("tasks/get", &task, &format!(r#","taskId":"{task}""#));
    let mut client = Client::connect(port);
    let polls = times(rounds, || timed(|| assert!(exchange(&mut client, &request).contains("working"))));
    report("poll", place, polls);
}

/// The answer to a question within a call, until the call is answered.
fn answer(here: u16, place: &str, port: u16, rounds: usize) {
    let (mut asking, mut answering) = (Client::connect(here), Client::connect(port));
    let session = open_session(&mut asking);
    let request = call_in(&session, "ask");
    let answers = times(rounds, || {
        asking.send(&request);
        wait_for(&mut asking, "elicitation/create");
        wait_for(&mut asking, "\n\n");
        let id = message(&String::from_utf8_lossy(&asking.received), "elicitation/create")["id"].clone();
        let reply =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"sure":true}}}}}}"#);
        let reply = post(&reply, &session_fields(&session));
        timed(|| {
            answering.send(&reply);
            let said = whole(&mut answering);
            assert!(said.starts_with("HTTP/1.1 202"), "{said}");
            let text = whole(&mut asking);
            assert!(text.contains(r#""text":"sure""#), "{text}");
        })
    });
    report("answer", place, answers);
}

/// An open stream that broke after its first event, until the client has the second.
fn resume(here: u16, place: &str, port: u16, rounds: usize) {
    let mut ending = Client::connect(here);
    let resumed = times(rounds, || {
        let (mut first, mut second) = (Client::connect(here), Client::connect(port));
        let session = open_session(&mut first);
        first.send(&call_in(&session, "wait"));
        wait_for(&mut first, r#""progress":2"#);
        let text = String::from_utf8_lossy(&first.received).into_owned();
        let event = text.lines().find_map(|line| line.strip_prefix("id: ")).expect("events have ids");
        drop(first);
        let fields = session_fields(&session);
        let get = format!(
            "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n{fields}Last-Event-ID: {event}\r\n\r\n"
        );
        let time = timed(|| {
            second.send(get.as_bytes());
            wait_for(&mut second, r#""progress":2"#);
        });
        end_session(&mut ending, &session);
        time
    });
    report("resume", place, resumed);
}

/// A change, until clients hear of it here and elsewhere.
fn change(here: u16, elsewhere: u16, rounds: usize) {
    let listen =
        modern("subscriptions/listen", "", &format!(r#","notifications":{{"resourceSubscriptions":["{WATCHED}"]}}"#));
    let mut listening = [here, elsewhere].map(|port| {
        let mut client = Client::connect(port);
        client.open_stream(&listen);
        wait_for(&mut client, "acknowledged");
        client.received.clear();
        client
    });
    let (mut client, mut far) = (Client::connect(here), Vec::new());
    let touch = call("touch", WATCHED);
    let near = times(rounds, || {
        let began = Instant::now();
        client.send(&touch);
        let [near, far_time] = listening.each_mut().map(|listener| {
            wait_for(listener, "notifications/resources/updated");
            wait_for(listener, "\n\n");
            listener.received.clear();
            began.elapsed()
        });
        whole(&mut client);
        far.push(far_time);
        near
    });
    report("change", "here", near);
    report("change", "elsewhere", far.split_off(far.len() - rounds));
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |text: &str| text.parse::<u16>().expect("a number up to 65,535");
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", port, kind, connections, millis] => {
            load(number(port), kind, number(connections).into(), Duration::from_millis(number(millis).into()));
        }
        ["latency", here, elsewhere, rounds] => {
            let (here, elsewhere, rounds) = (number(here), number(elsewhere), number(rounds).into());
            plain(here, rounds);
            for (place, port) in [("here", here), ("elsewhere", elsewhere)] {
                poll(here, place, port, rounds);
                answer(here, place, port, rounds);
                resume(here, place, port, rounds);
            }
            change(here, elsewhere, rounds);
        }
        _ => panic!("usage: fleet-costs-client load PORT KIND CONNECTIONS MILLIS | latency HERE ELSEWHERE ROUNDS"),
    }
}
