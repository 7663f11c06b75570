//! The memory of a client: a whole conversation of each era in lent bytes, without an allocation. This is one test in
//! its own program, because the counter counts the whole process.

use mcp_sansio::client::result::{ClientResult, Root};
use mcp_sansio::client::{
    Client, ClientEvent, ClientHandle, ClientHandler, ClientInfo, LineClient, PendingId, PendingRequest, Request,
    ServerRequestId, SubscriptionFilter,
};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::NextStep;
use mcp_sansio::protocol::{ClientCapability, LoggingLevel};
use mcp_sansio::revision::Revision;
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_test_allocator::{Counting, count};
use std::fmt::Write;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PROFILE: ClientInfo<'static> = ClientInfo::new("device", "1").feature(ClientCapability::Roots);
const ROOTS: [Root<'static>; 1] = [Root::new("file:///x").unwrap()];

/// The events so far, and the questions to answer.
#[derive(Default)]
struct Seen {
    connected: u32,
    done: u32,
    listening: u32,
    changed: u32,
    question: Option<ServerRequestId>,
}

impl ClientHandler for Seen {
    fn event(&mut self, event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {
        match event {
            ClientEvent::Connected(_) => self.connected += 1,
            ClientEvent::Done { .. } => self.done += 1,
            ClientEvent::Listening(_) => self.listening += 1,
            ClientEvent::Changed { .. } => self.changed += 1,
            ClientEvent::Asked(asked) => self.question = asked.questions().next().map(|question| question.id),
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

type Device<'m> = LineClient<'m, LineSink<SliceStorage<'m>>>;

fn run(device: &mut Device<'_>, seen: &mut Seen) {
    while device.run(0, seen) == NextStep::Write {
        let all = device.out.pending().len();
        assert!(all > 0, "there is room");
        device.out.sent(all);
    }
    let all = device.out.pending().len();
    device.out.sent(all);
}

fn hear(device: &mut Device<'_>, seen: &mut Seen, line: std::fmt::Arguments<'_>) {
    let mut text = Line { bytes: [0; 512], len: 0 };
    text.write_fmt(line).unwrap();
    text.write_str("\n").unwrap();
    device.space()[..text.len].copy_from_slice(&text.bytes[..text.len]);
    device.filled(text.len);
    run(device, seen);
}

fn result(device: &mut Device<'_>, seen: &mut Seen, token: PendingId, result: &str) {
    let wire = device.client.wire_id(token).unwrap();
    hear(device, seen, format_args!(r#"{{"jsonrpc":"2.0","id":{wire},"result":{result}}}"#));
}

fn converse(device: &mut Device<'_>, seen: &mut Seen, revision: Revision) {
    let capabilities = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;
    device.client.connect();
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
    let call = device.handle().send(&Request::call("x").arguments(&arguments).with_progress().timeout(10)).unwrap();
    let listen = device.client.listen(&SubscriptionFilter::new().tools().uris(&["r://x"])).unwrap();
    run(device, seen);
    let wire = device.client.wire_id(call).unwrap();
    hear(
        device,
        seen,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{wire},"progress":1}}}}"#
        ),
    );
    let subscription = device.client.wire_id(listen).unwrap();
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
    device.handle().reply(seen.question.take().unwrap(), &ClientResult::roots(&ROOTS)).unwrap();
    run(device, seen);
    result(device, seen, call, r#"{"content":[]}"#);
    hear(
        device,
        seen,
        format_args!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"r://x",{meta}}}}}"#
        ),
    );
    let handle = device.handle();
    let level = handle.client.set_log_level(LoggingLevel::Error, handle.out).unwrap();
    run(device, seen);
    if let Some(level) = level {
        result(device, seen, level, "{}");
    }
    device.handle().cancel(listen, None).unwrap();
    run(device, seen);
    device.end_of_input();
    run(device, seen);
    assert_eq!(device.client.in_flight(), 0);
}

#[test]
fn no_allocation() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let (mut input, mut output, mut held) = ([0; 600], [0; 600], [0; 400]);
        let mut slots = [PendingRequest::FREE; 4];
        let client = Client::new(&PROFILE, &mut slots).held(&mut held).timeout(1_000);
        let mut device =
            LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
        let mut seen = Seen::default();
        let before = count();
        converse(&mut device, &mut seen, revision);
        assert_eq!(count() - before, 0, "{revision}");
        let expected = (1, if revision.is_modern() { 1 } else { 2 }, 1, 1);
        assert_eq!((seen.connected, seen.done, seen.listening, seen.changed), expected, "{revision}");
    }
}
