//! Each small example does what its first line says: it runs as a child process, and the blocking client uses it.

#[path = "remote/programs.rs"]
mod programs;

use std::process::Command;

use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::json::Raw;
use mcp_sansio_blocking::client::{Child, Client, Ignore};
use programs::example;

/// Sends `request` to the example `name` and returns the result as JSON text.
fn ask(name: &str, request: &Request<'_>) -> Result<String, Box<dyn std::error::Error>> {
    let info = ClientInfo::new("test", "1.0");
    let mut client = Client::new(Child::spawn(Command::new(example(name)), &info)?, Ignore);
    client.connect()?;
    let answer = client.request(request)?.as_str().to_owned();
    client.close();
    Ok(answer)
}

/// Both ends of the example: HTTP over the pipes of a process, which ends when its stdin is closed.
#[cfg(unix)]
#[test]
fn http_stdio_serves_and_asks() {
    let output = Command::new(example("http_stdio")).arg("client").output().expect("the example");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "revision 2026-07-28\n1 + 2 = 3\nexit status: 0\n", "{}", String::from_utf8_lossy(&output.stderr));
}

/// A loop of one's own ends with its stdin, after the answers that are due.
// spec: T087
#[cfg(unix)]
#[test]
fn event_loop_ends_with_its_input() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let mut child = Command::new(example("event_loop"));
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the example");
    let (mut input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    for (id, after) in [(1, 0), (2, 100)] {
        let params = format!(r#"{{"name":"remind","arguments":{{"after_ms":{after},"text":"tea"}},{meta}}}"#);
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#).unwrap();
    }
    let mut lines = BufReader::new(output).lines();
    assert!(lines.next().expect("an answer").unwrap().contains("\"id\":1,\"result\""));
    drop(input);
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > std::time::Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.len() == 1 && rest[0].contains("\"id\":2,\"result\""), "{rest:?}");
}

/// Clients of one loop: a change reaches all, a late answer the one that waits, and one can leave.
#[cfg(unix)]
#[test]
fn connections_keeps_its_clients_apart() {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpStream;
    use std::process::{Child, Stdio};
    use std::time::Duration;

    struct Server(Child);
    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    /// A client, which gives its requests the same ids as the others do.
    struct Talker(BufReader<TcpStream>);
    impl Talker {
        fn send(&mut self, line: serde_json::Value) {
            self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        fn next(&mut self) -> serde_json::Value {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line in time");
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
        }
        fn call(&mut self, id: u32, tool: &str, arguments: serde_json::Value) {
            let params = serde_json::json!({"name": tool, "arguments": arguments});
            self.send(serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        }
        /// Reads so many messages, which come in any order. Returns the texts of answers by id; of news, the method.
        fn texts(&mut self, number: usize) -> Vec<(u64, String)> {
            let text = |message: serde_json::Value| match message["id"].as_u64() {
                Some(id) => (id, message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()),
                None => (0, message["method"].as_str().unwrap_or_default().to_owned()),
            };
            let mut texts: Vec<_> = (0..number).map(|_| text(self.next())).collect();
            texts.sort();
            texts
        }
    }
    let mut child = Command::new(example("connections"));
    let mut server = Server(child.arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().expect("the example"));
    let mut said = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{said:?}")).to_owned();
    let connect = || {
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut talker = Talker(BufReader::new(stream));
        let client = serde_json::json!({"name": "test", "version": "1"});
        let params = serde_json::json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        talker.send(serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        talker.next();
        talker.send(serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let params = serde_json::json!({"uri": "notes://all"});
        talker.send(serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params}));
        assert_eq!(talker.next()["result"], serde_json::json!({}));
        talker
    };
    let (mut anna, mut bert, mut carl) = (connect(), connect(), connect());
    anna.call(2, "remind", serde_json::json!({"after_ms": 300, "text": "of anna"}));
    bert.call(2, "remind", serde_json::json!({"after_ms": 150, "text": "of bert"}));
    // These never come: their clients leave before.
    bert.call(3, "remind", serde_json::json!({"after_ms": 60_000, "text": "too late"}));
    carl.call(3, "remind", serde_json::json!({"after_ms": 400, "text": "too late"}));
    drop(carl);
    anna.call(4, "add", serde_json::json!({"text": "milk"}));
    let news = (0, "notifications/resources/updated".to_owned());
    assert_eq!(anna.texts(3), [news.clone(), (2, "of anna".into()), (4, "added".into())]);
    assert_eq!(bert.texts(2), [news.clone(), (2, "of bert".into())]);
    bert.call(5, "leave", serde_json::json!({}));
    assert_eq!(bert.texts(1), [(5, "goodbye".into())]);
    let mut rest = String::new();
    assert_eq!(bert.0.read_line(&mut rest).unwrap(), 0, "{rest}");
    // A new client has a place of one that has gone, and nothing of it; the others are served as before.
    let mut dora = connect();
    dora.call(3, "remind", serde_json::json!({"after_ms": 500, "text": "of dora"}));
    assert_eq!(dora.texts(1), [(3, "of dora".into())]);
    dora.call(4, "add", serde_json::json!({"text": "bread"}));
    assert_eq!(dora.texts(2), [news.clone(), (4, "added".into())]);
    assert_eq!(anna.texts(1), [news]);
    let read = serde_json::json!({"uri": "notes://all"});
    anna.send(serde_json::json!({"jsonrpc": "2.0", "id": 6, "method": "resources/read", "params": read}));
    assert_eq!(anna.next()["result"]["contents"][0]["text"], "milk\nbread");
}

/// A schema from types is the one that `calc` has by hand, and both answer the same.
#[test]
fn derived_is_calc() {
    // Without the description of the server.
    let same = |request: &Request<'_>| {
        let [calc, derived] = ["calc", "derived"].map(|name| {
            let answer: serde_json::Value = serde_json::from_str(&ask(name, request).unwrap()).unwrap();
            [answer["tools"].clone(), answer["content"].clone(), answer["isError"].clone()]
        });
        assert_eq!(calc, derived);
    };
    same(&Request::list_tools());
    for arguments in [serde_json::json!({"a": 1, "b": 2}), serde_json::json!({"a": i64::MIN, "b": -1.0})] {
        same(&Request::call("add").arguments(&arguments));
    }
    same(&Request::call("echo").arguments(&serde_json::json!({"text": "\"\n"})));
    assert!(ask("derived", &Request::call("add")).unwrap().contains("missing member `a`"));
}

#[test]
fn resource_counts_reads() {
    assert!(ask("resource", &Request::read("counter://count")).unwrap().contains(r#""text":"1""#));
}

#[test]
fn template_reads_and_completes() {
    assert!(ask("template", &Request::read("city://oslo")).unwrap().contains("oslo is in Norway"));
    assert!(ask("template", &Request::read("city://atlantis")).is_err());
    let completion = Request::complete_template("city://{name}", "name", "li");
    assert!(ask("template", &completion).unwrap().contains(r#"["lima","lisbon"]"#));
}

#[test]
fn prompt_takes_its_arguments() {
    let arguments = serde_json::json!({"language": "Rust"});
    let get = Request::prompt("review").arguments(&arguments);
    assert!(ask("prompt", &get).unwrap().contains("Rust"));
    assert!(ask("prompt", &Request::prompt("review")).is_err());
}

#[test]
fn question_needs_a_client_that_answers() {
    let error = ask("question", &Request::call("reset")).expect_err("this client declares no elicitation");
    assert!(error.to_string().contains("capability"), "{error}");
}

#[test]
fn progress_answers_when_the_cups_are_ready() {
    assert!(ask("progress", &Request::call("brew")).unwrap().contains("Five cups are ready"));
}

#[test]
fn client_lists_and_calls() {
    let output = Command::new(example("client")).arg(example("calc")).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "add\necho\nadd: 3\n");
}

#[test]
fn tested_tells_the_model_why() {
    let arguments = serde_json::json!({"a": 1, "b": 0});
    let answer = ask("tested", &Request::call("divide").arguments(&arguments)).unwrap();
    assert!(answer.contains(r#""isError":true"#), "{answer}");
}

/// Sends a call to a server with a token. Returns its result, or its error with the challenges.
fn ask_with(url: &str, token: &str, request: &Request<'_>) -> Result<String, String> {
    use std::cell::RefCell;
    use std::rc::Rc;

    use mcp_sansio_blocking::client::{ChallengeAnswer, Http, HttpOptions};

    let info = ClientInfo::new("test", "1.0");
    let challenges = Rc::new(RefCell::new(String::new()));
    let seen = Rc::clone(&challenges);
    let options = HttpOptions::new().header("Authorization", format!("Bearer {token}"));
    let transport = Http::with(url, &info, options).unwrap().authorize(move |challenge, _| {
        seen.borrow_mut().push_str(challenge.www_authenticate);
        ChallengeAnswer::GiveUp
    });
    let mut client = Client::new(transport, Ignore);
    let mut run = || {
        client.connect()?;
        client.request(request).map(|result| result.as_str().to_owned())
    };
    run().map_err(|error| format!("{error} {}", challenges.borrow()))
}

fn call_with(url: &str, token: &str, tool: &str) -> Result<String, String> {
    ask_with(url, token, &Request::call(tool))
}

/// Two users of one server see different tools, and a journal has a line for each of their requests.
#[test]
fn callers_see_their_tools() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut command = Command::new(example("callers"));
    let mut server = command.arg("0").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let url = said.split_once(": ").unwrap().1;
    let list = |token: &str| ask_with(url, token, &Request::list_tools());
    let lists = [list("reader"), list("writer"), list("nobody")];
    let change = |token: &str| {
        ask_with(url, token, &Request::call("change").arguments(&Raw::constant(r#"{"text":"buy bread"}"#)))
    };
    let changed = [change("reader"), change("writer")];
    let shown = ask_with(url, "reader", &Request::call("show"));
    server.kill().unwrap();
    let journal = String::from_utf8(server.wait_with_output().unwrap().stderr).unwrap();
    let has = |list: &Result<String, String>, tool: &str| list.as_ref().is_ok_and(|list| list.contains(tool));
    assert!(has(&lists[0], "\"show\"") && !has(&lists[0], "\"change\""), "{lists:?}");
    assert!(has(&lists[1], "\"show\"") && has(&lists[1], "\"change\""), "{lists:?}");
    assert!(lists[2].as_ref().is_err_and(|error| error.contains("wants authorization")), "{lists:?}");
    assert!(changed[0].as_ref().is_err_and(|error| error.contains("Unknown tool")), "{changed:?}");
    assert!(has(&changed[1], "changed") && has(&shown, "buy bread"), "{changed:?} {shown:?}");
    for line in [
        r#""who":"reader","method":"tools/call","name":"change","outcome":"error","code":-32602"#,
        r#""who":"writer","method":"tools/call","name":"change","outcome":"result""#,
        r#""who":"reader","method":"tools/list","outcome":"result""#,
    ] {
        assert!(journal.contains(line), "{line}: {journal}");
    }
}

/// A client that follows the bell of one door hears of that door alone.
#[test]
fn doorbell_tells_of_its_events() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut server = Command::new(example("doorbell")).arg("0").stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let url = said.split_once(": ").unwrap().1;
    let poll = |cursor: &str| {
        let params = format!(r#"{{"name":"bell.rung","arguments":{{"door":2}},"cursor":{cursor}}}"#);
        let params = Raw::parse(params.as_bytes()).unwrap();
        ask_with(url, "any", &Request::raw("events/poll", Some(params)))
    };
    let ring =
        |door: &str| ask_with(url, "any", &Request::call("ring").arguments(&Raw::parse(door.as_bytes()).unwrap()));
    let begun = poll("null").unwrap_or_default();
    let cursor = Raw::parse(begun.as_bytes()).ok().and_then(|begun| begun.get("cursor")).unwrap_or(Raw::constant("7"));
    let rung = [r#"{"door":3}"#, r#"{"door":2}"#].map(ring);
    let heard = poll(cursor.as_str());
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(rung.iter().all(|rung| rung.as_ref().is_ok_and(|rung| rung.contains("rung"))), "{rung:?}");
    let heard = heard.unwrap();
    assert!(heard.contains(r#""data":{"door":2}"#) && !heard.contains(r#""data":{"door":3}"#), "{begun} {heard}");
}

#[test]
fn guarded_checks_tokens_and_scopes() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server =
        Command::new(example("guarded")).arg(format!("127.0.0.1:{port}")).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().skip(1).take(2);
    let tokens: Vec<String> = lines.map(|line| line.unwrap().split(": ").last().unwrap().to_owned()).collect();
    // It listens before it prints.
    let url = format!("http://127.0.0.1:{port}/mcp");
    let called = [
        call_with(&url, &tokens[0], "read"),
        call_with(&url, &tokens[0], "erase"),
        call_with(&url, &tokens[1], "erase"),
        call_with(&url, &tokens[0].replace('.', ".A"), "read"),
    ];
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(called[0].as_ref().unwrap().contains("water the plants"), "{called:?}");
    let refused = called[1].as_ref().unwrap_err();
    assert!(
        refused.contains("error=\"insufficient_scope\"") && refused.contains("scope=\"notes:read notes:write\""),
        "{refused}"
    );
    assert!(called[2].as_ref().unwrap().contains("The notes are gone"), "{called:?}");
    let refused = called[3].as_ref().unwrap_err();
    assert!(refused.contains("resource_metadata=\"http://127.0.0.1:"), "{refused}");
}

/// An issuer replaces its key, which has no `kid`; a reader may see its file half written.
#[test]
fn guarded_reads_the_keys_of_its_issuer_again() {
    use mcp_sansio_auth::jose::{Es256Key, KeyHeader, Signer, sign};
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let file = std::env::temp_dir().join(format!("keys-{}-{port}", std::process::id()));
    let key = |number: u8| Es256Key::from_bytes(&[number; 32]).unwrap();
    let set = |number| format!("{{\"keys\":[{}]}}", key(number).public_key().unwrap());
    let token = |number| {
        let expiry = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
        let claims = serde_json::json!({"iss": "https://as.example", "aud": url, "sub": "ann", "exp": expiry, "scope": "notes:read"});
        let claims = claims.to_string();
        let mut space = [0; 1024];
        sign(&key(number), "at+jwt", KeyHeader::Id, &mut |out| out.put(claims.as_bytes()), &mut space)
            .unwrap()
            .to_owned()
    };
    std::fs::write(&file, &set(1)[..20]).unwrap();
    let arguments = [&format!("127.0.0.1:{port}"), "https://as.example", file.to_str().unwrap()];
    let mut server = Command::new(example("guarded")).args(arguments).spawn().unwrap();
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // A set is read again every few seconds at most.
    let accepts = |number| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            if call_with(&url, &token(number), "read").is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        false
    };
    let torn = call_with(&url, &token(1), "read").is_err();
    std::fs::write(&file, set(1)).unwrap();
    let whole = accepts(1);
    std::fs::write(&file, set(2)).unwrap();
    let replaced = accepts(2);
    let old = call_with(&url, &token(1), "read").is_err();
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(torn && whole && replaced && old, "torn {torn}, whole {whole}, replaced {replaced}, old {old}");
}
