//! Memory of a client: a whole conversation of either era in lent bytes, without an allocation.
//! One test, in a program of its own: the counter counts the whole process.

use mcp_sansio::client::reply::{Reply, Root};
use mcp_sansio::client::{Client, Event, Filter, Handler, Link, Profile, QuestionId, Request, Session, Token};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{ClientFeature, Level};
use mcp_sansio::revision::Revision;
use mcp_sansio::session::Next;
use mcp_sansio::sink::{Lines, Slice};
use mcp_sansio_test_allocator::{Counting, count};
use std::fmt::Write;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PROFILE: Profile<'static> = Profile::new("device", "1").feature(ClientFeature::Roots);
const ROOTS: [Root<'static>; 1] = [Root::new("file:///x").unwrap()];

/// What has happened, and what is to be answered.
#[derive(Default)]
struct Seen {
    connected: u32,
    done: u32,
    listening: u32,
    changed: u32,
    question: Option<QuestionId>,
}

impl Handler for Seen {
    fn event(&mut self, event: Event<'_>, _: &mut Link<'_, '_>) {
        match event {
            Event::Connected(_) => self.connected += 1,
            Event::Done { .. } => self.done += 1,
            Event::Listening(_) => self.listening += 1,
            Event::Changed { .. } => self.changed += 1,
            Event::Asked(asked) => self.question = asked.questions().next().map(|question| question.id),
            _ => {}
        }
    }
}

/// A line without an allocator.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes[self.len..][..text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

type Device<'m> = Session<'m, Lines<Slice<'m>>, 4>;

fn run(device: &mut Device<'_>, seen: &mut Seen) {
    while device.run(0, seen) == Next::Write {
        let all = device.pending().len();
        assert!(all > 0, "there is room");
        device.sent(all);
    }
    let all = device.pending().len();
    device.sent(all);
}

fn hear(device: &mut Device<'_>, seen: &mut Seen, line: std::fmt::Arguments<'_>) {
    let mut text = Line { bytes: [0; 512], len: 0 };
    text.write_fmt(line).unwrap();
    text.write_str("\n").unwrap();
    device.space()[..text.len].copy_from_slice(&text.bytes[..text.len]);
    device.filled(text.len);
    run(device, seen);
}

fn result(device: &mut Device<'_>, seen: &mut Seen, token: Token, result: &str) {
    let wire = device.client().wire_id(token).unwrap();
    hear(device, seen, format_args!(r#"{{"jsonrpc":"2.0","id":{wire},"result":{result}}}"#));
}

fn converse(device: &mut Device<'_>, seen: &mut Seen, revision: Revision) {
    let capabilities = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;
    device.client().connect();
    run(device, seen);
    if revision.is_modern() {
        hear(
            device,
            seen,
            format_args!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"supportedVersions":["{revision}"],"capabilities":{capabilities}}}}}"#
            ),
        );
    } else {
        hear(device, seen, format_args!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"?"}}}}"#));
        hear(
            device,
            seen,
            format_args!(
                r#"{{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":"{revision}","capabilities":{capabilities}}}}}"#
            ),
        );
    }
    let arguments = Raw::constant(r#"{"a":"b"}"#);
    let call = device.link().send(&Request::call("x").arguments(&arguments).with_progress().timeout(10)).unwrap();
    let listen = device.client().listen(&Filter::new().tools().uris(&["r://x"])).unwrap();
    run(device, seen);
    let wire = device.client().wire_id(call).unwrap();
    hear(
        device,
        seen,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{wire},"progress":1}}}}"#
        ),
    );
    let subscription = device.client().wire_id(listen).unwrap();
    let meta = format_args!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{subscription}}}"#);
    if revision.is_modern() {
        hear(
            device,
            seen,
            format_args!(
                r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{}},{meta}}}}}"#
            ),
        );
        result(
            device,
            seen,
            call,
            r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"}"#,
        );
    } else {
        result(device, seen, listen, "{}");
        hear(device, seen, format_args!(r#"{{"jsonrpc":"2.0","id":"q","method":"roots/list"}}"#));
    }
    device.link().reply(seen.question.take().unwrap(), &Reply::roots(&ROOTS)).unwrap();
    run(device, seen);
    result(device, seen, call, r#"{"content":[]}"#);
    hear(
        device,
        seen,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"r://x",{meta}}}}}"#
        ),
    );
    let link = device.link();
    let level = link.client.set_log_level(Level::Error, link.out).unwrap();
    run(device, seen);
    if let Some(level) = level {
        result(device, seen, level, "{}");
    }
    device.link().cancel(listen, None).unwrap();
    run(device, seen);
    device.end_of_input();
    run(device, seen);
    assert_eq!(device.client().in_flight(), 0);
}

#[test]
fn no_allocation() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let (mut input, mut output, mut held) = ([0; 600], [0; 600], [0; 400]);
        let client = Client::<4>::new(&PROFILE).held(&mut held).timeout(1_000);
        let mut device = Session::new(LineBuffer::new(&mut input), client, Lines::new(Slice::new(&mut output)));
        let mut seen = Seen::default();
        let before = count();
        converse(&mut device, &mut seen, revision);
        assert_eq!(count() - before, 0, "{revision}");
        let expected = (1, if revision.is_modern() { 1 } else { 2 }, 1, 1);
        assert_eq!((seen.connected, seen.done, seen.listening, seen.changed), expected, "{revision}");
    }
}
