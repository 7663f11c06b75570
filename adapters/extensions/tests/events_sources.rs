//! Event types with cursors of their own, whose subscriptions are heard of, and that come and go.

use mcp_sansio::error::RpcError;
use mcp_sansio::server::{MessageLimits, RespondError, Server};
use mcp_sansio::service::{Extension, MessageSource, Service};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_extensions::events::{
    EventOccurrence, EventSubscription, EventType, Events, FORBIDDEN, HasEvents, LIST_CHANGED, LeaseSlot, Occurrences,
    StreamSlot, deliver, emit, end_stream, extension, turn,
};
use serde_json::{Value, json};

/// A mailbox whose letters have numbers of their own. The first ones are thrown away at times.
struct Post {
    events: Events<'static>,
    /// The number and the box of each letter.
    letters: Vec<(u64, u64)>,
    is_broken: bool,
    is_closed: bool,
    /// The subscriptions that began and ended.
    heard: Vec<String>,
}

fn read_letters(
    post: &Post,
    subscription: &EventSubscription<'_>,
    found: &mut Occurrences<'_>,
) -> Result<(), RpcError<'static>> {
    if post.is_broken {
        return Err(RpcError::internal("UpstreamError"));
    }
    let last = post.letters.last().map_or(0, |(number, _)| *number);
    let after = match found.cursor() {
        None => last,
        Some(cursor) => cursor.strip_prefix("letter-").and_then(|number| number.parse().ok()).unwrap_or(0),
    };
    let first = post.letters.first().map_or(0, |(number, _)| *number);
    if after + 1 < first {
        found.gap(&format!("letter-{}", first - 1));
    }
    let wanted = subscription.arguments.get("box").and_then(|wanted| wanted.u64());
    for (number, letter_box) in post.letters.iter().filter(|(number, _)| *number > after) {
        if wanted.is_none_or(|wanted| wanted == *letter_box) {
            let (id, cursor) = (format!("<{number}@post>"), format!("letter-{number}"));
            if !found.push(&id, number * 1000, &cursor, &mut |data| data.number("box", *letter_box)) {
                return Ok(());
            }
        }
    }
    found.end(&format!("letter-{last}"));
    Ok(())
}

fn note(post: &mut Post, what: &str, subscription: &EventSubscription<'_>) {
    assert!(what == "join" || subscription.arguments.get("panics").is_none(), "a test panics");
    post.heard.push(format!("{what} {} {}", subscription.arguments.as_str(), subscription.principal.unwrap_or("-")));
    let greeting = EventOccurrence::new("channel.joined");
    emit(post, &greeting, 0, &mut |_| {}).unwrap();
}

impl HasEvents for Post {
    const EVENTS: &'static [EventType<Self>] = &[
        EventType::new("letter.received", "A letter is in the box").source(read_letters),
        EventType::new("message.sent", "A message is in the channel")
            .check(|_, subscription| match subscription.principal {
                Some("mallory") => Err(FORBIDDEN),
                _ => Ok(()),
            })
            .on_subscribe(
                |post, subscription| note(post, "join", subscription),
                |post, subscription| note(post, "leave", subscription),
            ),
        EventType::new("channel.joined", "A channel is joined or left").offered(|post: &Post| !post.is_closed),
    ];
    const STREAMS: bool = true;
    const LEASES: bool = true;
    const LIST_CHANGED: bool = true;

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

static EXTENSIONS: [Extension<Post>; 1] = [extension()];
const SERVICE: Service<'static, Post> = Service::new("post", "1.0")
    .extend(&EXTENSIONS)
    .on_cancel(end_stream)
    .contain_panics(|run| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok());

struct Desk {
    server: Server<'static>,
    post: Post,
    now: u64,
    user: Option<&'static str>,
    output: usize,
    next: Option<u64>,
}

impl Desk {
    fn new() -> Self {
        let leaked = |bytes: usize| vec![0; bytes].leak();
        let events = Events::new(leaked(1024), 16, 77)
            .streams(vec![StreamSlot::FREE; 4].leak(), leaked(256), 4)
            .leases(vec![LeaseSlot::FREE; 3].leak(), leaked(128), 2, 10_000);
        let post = Post { events, letters: Vec::new(), is_broken: false, is_closed: false, heard: Vec::new() };
        let server = Server::growing(MessageLimits::default());
        Desk { server, post, now: 1, user: None, output: 4096, next: None }
    }

    fn send(&mut self, message: &Value) -> Vec<Value> {
        let source = MessageSource::LINE.principal(self.user);
        self.server.now = self.now;
        let mut bytes = vec![0; self.output];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let line = message.to_string();
        let _ = SERVICE.dispatch_from(&source, &mut self.post, line.as_bytes(), &mut self.server, &mut out).unwrap();
        let _ = SERVICE.pull(&self.post, &mut self.server, &mut out);
        read(out.pending())
    }

    fn ask(&mut self, id: u64, method: &str, mut params: Value) -> Vec<Value> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Polls. The boxes of the letters, the cursor, `truncated` and `hasMore`; or the code of the error.
    fn poll(&mut self, params: Value) -> String {
        let answer = &self.ask(1, "events/poll", params)[0];
        let result = &answer["result"];
        match result["events"].as_array() {
            None => answer["error"]["code"].to_string(),
            Some(events) => {
                let boxes: Vec<_> = events.iter().map(|event| event["data"]["box"].to_string()).collect();
                let rest = (&result["cursor"], &result["truncated"], &result["hasMore"]);
                format!("[{}] {} {} {}", boxes.join(" "), rest.0.as_str().unwrap_or("null"), rest.1, rest.2)
            }
        }
    }

    fn letters(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.post.letters.extend(numbers.into_iter().map(|number| (number, number % 2)));
    }

    /// One turn of a loop. The last words of the methods, and the cursors or codes.
    fn turn(&mut self) -> Vec<String> {
        self.server.now = self.now;
        let (mut heard, Desk { server, post, now, output, next, .. }) = (Vec::new(), self);
        *next = turn(post, *now, |post, token| {
            let mut bytes = vec![0; *output];
            let mut out = LineSink::new(SliceStorage::new(&mut bytes));
            let done = SERVICE.answer(post, token.as_custom(), server, &mut out, deliver);
            heard.extend(read(out.pending()).iter().map(short));
            assert!(matches!(done, Ok(_) | Err(RespondError::Stale)), "{done:?}");
            done.map(drop)
        });
        heard
    }
}

fn short(message: &Value) -> String {
    let params = &message["params"];
    let what = message["method"].as_str().map_or("result", |method| method.rsplit('/').next().unwrap());
    let about = [&params["cursor"], &params["error"]["code"], &params["truncated"]];
    let about = about.iter().filter(|about| !about.is_null()).map(|about| about.to_string());
    [what.to_owned()].into_iter().chain(about).collect::<Vec<_>>().join(" ").replace('"', "")
}

fn read(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

// spec: E010 E011 E013
#[test]
fn polls_of_a_source_with_cursors_of_its_own() {
    let mut desk = Desk::new();
    desk.letters(1..=2);
    let of = |cursor: &str| json!({ "name": "letter.received", "cursor": cursor });
    assert_eq!(desk.poll(json!({ "name": "letter.received" })), "[] letter-2 false false");
    desk.letters(3..=5);
    assert_eq!(desk.poll(of("letter-2")), "[1 0 1] letter-5 false false");
    let first = desk.ask(1, "events/poll", of("letter-4"))[0]["result"]["events"][0].clone();
    assert_eq!((&first["eventId"], &first["timestamp"]), (&json!("<5@post>"), &json!("1970-01-01T00:00:05.000Z")));
    // In batches.
    let with = |cursor: &str, more: Value| {
        let mut params = of(cursor);
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    assert_eq!(desk.poll(with("letter-0", json!({ "maxEvents": 2 }))), "[1 0] letter-2 false true");
    assert_eq!(desk.poll(with("letter-2", json!({ "maxEvents": 3 }))), "[1 0 1] letter-5 false false");
    // The cursor moves although nothing matches.
    assert_eq!(desk.poll(with("letter-4", json!({ "arguments": { "box": 0 } }))), "[] letter-5 false false");
    // Older ones are left out, and what is gone is a gap.
    desk.now = 6_000;
    assert_eq!(desk.poll(with("letter-0", json!({ "maxAgeMs": 2_000 }))), "[0 1] letter-5 true false");
    desk.post.letters.drain(..3);
    assert_eq!(desk.poll(of("letter-1")), "[0 1] letter-5 true false");
    assert_eq!(desk.poll(of(&"x".repeat(80))), "[0 1] letter-5 true false");
    // None is lost where the output is small.
    desk.letters(6..=9);
    desk.output = 460;
    let (mut boxes, mut cursor) = (Vec::new(), "letter-3".to_owned());
    loop {
        let polled = desk.poll(of(&cursor));
        let (found, rest) = polled[1..].split_once("] ").unwrap();
        boxes.extend(found.split(' ').filter(|found| !found.is_empty()).map(str::to_owned));
        cursor = rest.split(' ').next().unwrap().to_owned();
        if rest.ends_with("false") {
            break;
        }
    }
    assert_eq!(boxes, ["0", "1", "0", "1", "0", "1"]);
    desk.post.is_broken = true;
    assert_eq!(desk.poll(of("letter-1")), "-32603");
}

#[test]
fn streams_read_a_source_from_time_to_time() {
    let mut desk = Desk::new();
    desk.letters(1..=2);
    desk.post.events.set_poll_interval(1_000);
    let opened = desk.ask(5, "events/stream", json!({ "name": "letter.received", "cursor": "letter-1" }));
    assert_eq!(short(&opened[0]), "active letter-1 false");
    assert_eq!(desk.turn(), ["event letter-2"]);
    assert_eq!(desk.next, Some(1_001));
    desk.letters([3]);
    desk.now = 1_000;
    assert!(desk.turn().is_empty());
    desk.now = 1_001;
    assert_eq!(desk.turn(), ["event letter-3"]);
    // Without waiting.
    desk.letters([4]);
    desk.post.events.wake();
    assert_eq!(desk.turn(), ["event letter-4"]);
    // A failure passes: the stream goes on.
    desk.post.is_broken = true;
    desk.letters([5]);
    desk.now = 2_001;
    assert_eq!(desk.turn(), ["error -32603"]);
    assert!(desk.turn().is_empty());
    desk.post.is_broken = false;
    desk.now = 3_001;
    assert_eq!(desk.turn(), ["event letter-5"]);
    desk.post.letters.clear();
    desk.letters([9]);
    desk.post.events.wake();
    assert_eq!(desk.turn(), ["active letter-8 true", "event letter-9"]);
    desk.now = 23_001;
    assert_eq!(desk.turn(), ["heartbeat letter-9"]);
    // A new one begins behind a gap, and one that cannot be read does not begin.
    let opened = desk.ask(6, "events/stream", json!({ "name": "letter.received", "cursor": "letter-3" }));
    assert_eq!(short(&opened[0]), "active letter-8 true");
    desk.post.is_broken = true;
    let refused = desk.ask(7, "events/stream", json!({ "name": "letter.received" }));
    assert_eq!(refused[0]["error"]["code"], -32603);
}

// spec: E042
#[test]
fn a_subscription_by_poll_has_a_lease() {
    let mut desk = Desk::new();
    let of = |room: u64| json!({ "name": "message.sent", "arguments": { "room": room } });
    let heard = |desk: &mut Desk| std::mem::take(&mut desk.post.heard);
    desk.poll(of(1));
    assert_eq!(heard(&mut desk), [r#"join {"room":1} -"#]);
    desk.now = 9_000;
    desk.poll(of(1));
    desk.poll(of(2));
    assert_eq!(heard(&mut desk), [r#"join {"room":2} -"#]);
    // The share of those without a user is used up: the hook does not run.
    assert_eq!(desk.poll(of(3)), "-32025");
    // Another user has another lease, and one who may not hear it has none.
    desk.user = Some("alice");
    desk.poll(of(1));
    assert_eq!(heard(&mut desk), [r#"join {"room":1} alice"#]);
    desk.user = Some("mallory");
    assert_eq!(desk.poll(of(9)), "-32024");
    desk.user = None;
    desk.now = 18_000;
    desk.poll(of(2));
    // Ten seconds after its last poll it lapses, by a turn or by the poll of another one.
    desk.now = 18_999;
    assert!(desk.turn().is_empty() && heard(&mut desk).is_empty());
    assert_eq!(desk.next, Some(19_000));
    desk.now = 19_000;
    desk.turn();
    assert_eq!(heard(&mut desk), [r#"leave {"room":1} -"#, r#"leave {"room":1} alice"#]);
    desk.now = 28_000;
    desk.poll(of(3));
    assert_eq!(heard(&mut desk), [r#"leave {"room":2} -"#, r#"join {"room":3} -"#]);
    // After the lapse it begins anew.
    desk.poll(of(1));
    assert_eq!(heard(&mut desk), [r#"join {"room":1} -"#]);
}

#[test]
fn the_hooks_of_a_stream() {
    let mut desk = Desk::new();
    desk.ask(4, "events/stream", json!({ "name": "channel.joined" }));
    desk.turn();
    desk.ask(5, "events/stream", json!({ "name": "message.sent", "arguments": { "room": 4 } }));
    assert_eq!(desk.post.heard, [r#"join {"room":4} -"#]);
    // What a hook emits is heard.
    assert_eq!(desk.turn(), ["event 77.1"]);
    desk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } }));
    assert_eq!(desk.post.heard.last().unwrap(), r#"leave {"room":4} -"#);
    assert_eq!(desk.turn(), ["event 77.2"]);
    assert_eq!(desk.post.heard.len(), 2);
}

/// Once the panic of a hook took all streams with it: none was heard of again, and no other one could be opened.
#[test]
fn a_hook_that_panics_leaves_the_other_streams() {
    let mut desk = Desk::new();
    desk.ask(4, "events/stream", json!({ "name": "channel.joined" }));
    desk.ask(5, "events/stream", json!({ "name": "message.sent", "arguments": { "panics": 4 } }));
    assert_eq!(desk.turn(), ["event 77.1"]);
    desk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } }));
    assert_eq!(short(&desk.ask(6, "events/stream", json!({ "name": "message.sent" }))[0]), "active 77.1 false");
    assert_eq!(desk.turn(), ["event 77.2"]);
}

// spec: E040
#[test]
fn event_types_come_and_go() {
    let mut desk = Desk::new();
    let discovered = desk.ask(1, "server/discover", json!({}));
    let settings = &discovered[0]["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/events"];
    assert_eq!(settings, &json!({ "listChanged": true }));
    // A client listens that has not declared the extension.
    let listening = desk.ask(2, "subscriptions/listen", json!({ "notifications": { "eventsListChanged": true } }));
    assert_eq!(listening[0]["params"]["notifications"], json!({ "eventsListChanged": true }));
    desk.ask(3, "events/stream", json!({ "name": "channel.joined" }));
    desk.turn();
    desk.post.is_closed = true;
    desk.server.publish(LIST_CHANGED);
    let names = |listed: &[Value]| {
        let events = listed.iter().find_map(|message| message["result"]["events"].as_array()).unwrap();
        events.iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let listed = desk.ask(4, "events/list", json!({}));
    assert_eq!(names(&listed), ["letter.received", "message.sent"]);
    let changed = listed.iter().find(|message| message["method"] == "notifications/events/list_changed");
    assert_eq!(changed.unwrap()["params"]["_meta"], json!({ "io.modelcontextprotocol/subscriptionId": 2 }));
    assert_eq!(desk.poll(json!({ "name": "channel.joined" })), "-32023");
    assert!(desk.turn().is_empty());
    desk.post.events.wake();
    assert_eq!(desk.turn(), ["terminated -32023", "result"]);
    assert_eq!(desk.next, None);
    desk.post.is_closed = false;
    assert_eq!(names(&desk.ask(4, "events/list", json!({}))).len(), 3);
    assert_eq!(desk.poll(json!({ "name": "channel.joined" })), "[] 77.0 false false");
}
