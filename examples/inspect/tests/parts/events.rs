//! The command `events`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::{assert_harmless, example, inspect, made_up};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"io.modelcontextprotocol/events":{}}},"serverInfo":{"name":"door","version":"1"},"ttlMs":0,"cacheScope":"private"}}"#;

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","events":[{"name":"bell.rung","description":"Somebody rings","delivery":["poll"],"inputSchema":{"type":"object","properties":{"door":{"type":"integer"}}},"payloadSchema":{"type":"object"}}]}}"#;

fn polled(id: u8, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{members}}}}}"#)
}

#[test]
fn event_types() {
    let (code, out, err) = made_up(&[HELLO, LIST], &["events"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "bell.rung\n  Somebody rings\n  door  integer\n", ""));
    let (code, out, _) = made_up(&[HELLO, LIST], &["--json", "events"]);
    assert!(code == 0 && out.starts_with(r#"{"events":[{"name":"bell.rung","#), "{out}");
    let plain = HELLO.replace("io.modelcontextprotocol/events", "com.example/other");
    let (code, out, _) = made_up(&[&plain], &["events"]);
    assert_eq!((code, out.as_str()), (0, "The server has no events.\n"));
    let (code, _, err) = made_up(&[HELLO, LIST], &["events", "bell.rang"]);
    assert!(code == 2 && err.contains("there is no event \"bell.rang\" (did you mean \"bell.rung\"?)"), "{err}");
}

/// The server keeps the request open, and ends the subscription.
#[test]
fn occurrences_by_a_stream() {
    let list = LIST.replace("[\"poll\"]", "[\"poll\",\"push\"]");
    let say = |what: &str, members: &str| {
        let meta = r#""_meta":{"io.modelcontextprotocol/subscriptionId":3}"#;
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/events/{what}","params":{{{members},{meta}}}}}"#)
    };
    let occurrence = r#""eventId":"e1","name":"bell.rung","timestamp":"2026-07-28T09:30:00Z","data":{"door":2}"#;
    let stream = [
        say("active", r#""cursor":"a""#),
        say("event", &format!(r#"{occurrence},"cursor":"b""#)),
        say("error", r#""error":{"code":-32603,"message":"UpstreamError"}"#),
        say("terminated", r#""error":{"code":-32024,"message":"Forbidden"}"#),
    ];
    let (code, out, err) = made_up(&[HELLO, &list, &stream.join("\n")], &["events", "bell.rung"]);
    assert_eq!((code, out.as_str()), (4, "2026-07-28T09:30:00Z  {\"door\":2}\n"), "{err}");
    assert!(err.contains("could not get an event: -32603 UpstreamError") && err.contains("-32024"), "{err}");
}

#[test]
fn occurrences_as_they_come() {
    let event = r#"{"eventId":"e1","name":"bell.rung","timestamp":"2026-07-28T09:30:00Z","data":{"who":"\u001b[2J"}}"#;
    let answers = [
        HELLO,
        LIST,
        &polled(3, r#""events":[],"cursor":"a","hasMore":true"#),
        &polled(4, &format!(r#""events":[{event},{event}],"cursor":"b","truncated":true,"hasMore":true"#)),
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32024,"message":"Forbidden"}}"#,
    ];
    let (code, out, err) = made_up(&answers, &["events", "bell.rung", "door=2"]);
    assert_eq!((code, out.as_str()), (4, "2026-07-28T09:30:00Z  {\"who\":\"\\u001b[2J\"}\n"));
    assert!(err.contains("There is a gap") && err.contains("-32024"), "{err}");
    assert_harmless(&out);
    let (code, out, _) = made_up(&answers, &["--json", "events", "bell.rung"]);
    let (event, error) = out.split_once('\n').unwrap();
    assert_eq!(
        event,
        r#"{"eventId":"e1","name":"bell.rung","timestamp":"2026-07-28T09:30:00Z","data":{"who":"\u001b[2J"}}"#
    );
    assert!(code == 4 && error.contains("-32024"), "{error}");
}

/// A real process ends, and `sysmon` says so.
#[test]
fn sysmon_says_that_a_process_has_ended() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = format!("pid={}", sleeper.id());
    let mut watching = inspect(&["--json", "events", "process.ended", &pid, "--", &example("sysmon")]);
    let mut watching = watching.stderr(Stdio::inherit()).spawn().unwrap();
    // Without a word before: a subscription that begins later hears of a process that is not there too.
    sleeper.kill().unwrap();
    let mut line = String::new();
    BufReader::new(watching.stdout.take().unwrap()).read_line(&mut line).unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
    sleeper.wait().unwrap();
    assert!(
        line.contains(r#""name":"process.ended""#) && line.contains(&format!(r#""pid":{}"#, sleeper.id())),
        "{line}"
    );
}
