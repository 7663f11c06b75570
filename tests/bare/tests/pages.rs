//! Without the feature `windows`, a list is cut into pages that fit. An item that does not fit is an error.

use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::{Call, Caller, DynamicList, HandlerResult, Service, Tool, ToolInfo};
use mcp_sansio::sink::{LineSink, SliceStorage};

static TOOLS: [Tool<()>; 5] = [
    Tool::new("one", "The first", said),
    Tool::new("two", "The second", said),
    Tool::new("three", "The third", said),
    Tool::new("four", "The fourth", said),
    Tool::new("five", "The fifth", said),
];

/// A text that does not fit.
const WORDS: &str = match str::from_utf8(&[b'x'; 600]) {
    Ok(words) => words,
    Err(_) => "",
};
static LONG: [Tool<()>; 1] = [Tool::new("long", WORDS, said)];

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn said(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.text("said")
}

/// Returns the output of a service to a sink of `room` bytes.
fn answer(service: &Service<'_, ()>, server: &mut Server<'_>, room: usize, message: &str) -> String {
    let mut space = vec![0; room];
    let mut out = LineSink::new(SliceStorage::new(&mut space));
    let _ = service.dispatch(&mut (), message.as_bytes(), server, &mut out);
    String::from_utf8_lossy(out.pending()).into_owned()
}

fn opened() -> Server<'static> {
    let mut server = Server::new(vec![RequestSlot::FREE, RequestSlot::FREE].leak());
    assert!(answer(&Service::new("demo", "1"), &mut server, 512, INITIALIZE).contains("\"result\""));
    server
}

/// Returns each text between `before` and the next quote.
fn quoted<'p>(page: &'p str, before: &str) -> Vec<&'p str> {
    page.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn each_tool_is_on_one_page() {
    let service = Service::new("demo", "1").tools(&TOOLS);
    let whole = answer(&service, &mut opened(), 1024, LIST);
    assert_eq!(quoted(&whole, "\"name\":\"").len(), TOOLS.len());
    for room in 256..whole.len() {
        let (mut server, mut names, mut request) = (opened(), Vec::new(), LIST.to_owned());
        for _ in 0..TOOLS.len() {
            let page = answer(&service, &mut server, room, &request);
            names.extend(quoted(&page, "\"name\":\"").into_iter().map(str::to_owned));
            let Some(cursor) = quoted(&page, "\"nextCursor\":\"").first().copied().map(str::to_owned) else { break };
            request = LIST.replace('}', &format!(r#","params":{{"cursor":"{cursor}"}}}}"#));
        }
        assert_eq!(names, ["one", "two", "three", "four", "five"], "in {room} bytes");
    }
}

/// Tools that are not in a table; the third does not fit.
struct More;

impl DynamicList<Tool<()>> for More {
    fn list(&self, (): &(), _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        let words = ["6", "7", WORDS, "9", "10"];
        let _ = words
            .iter()
            .zip(["six", "seven", "eight", "nine", "ten"])
            .skip(from)
            .all(|(words, name)| with(&ToolInfo::new(name, words)));
    }

    fn run(&self, key: usize, (): &mut (), call: &mut Call<'_>) -> HandlerResult {
        call.text(["6", "7", WORDS, "9", "10"][key])
    }
}

#[test]
fn a_tool_that_does_not_fit_is_left_out_if_it_is_not_in_a_table() {
    let service = Service::new("demo", "1").tools(&TOOLS).dynamic_tools(&More);
    for room in [256, 300, 400, 512, 600] {
        let (mut server, mut names, mut request) = (opened(), Vec::new(), LIST.to_owned());
        for _ in 0..12 {
            let page = answer(&service, &mut server, room, &request);
            names.extend(quoted(&page, "\"name\":\"").into_iter().map(str::to_owned));
            let Some(cursor) = quoted(&page, "\"nextCursor\":\"").first().copied().map(str::to_owned) else { break };
            request = LIST.replace('}', &format!(r#","params":{{"cursor":"{cursor}"}}}}"#));
        }
        let expected = ["one", "two", "three", "four", "five", "six", "seven", "nine", "ten"];
        assert_eq!(names, expected, "in {room} bytes");
        assert_eq!(server.in_flight(), 0);
    }
}

#[test]
fn what_does_not_fit_at_all_is_an_error() {
    let service = Service::new("demo", "1").tools(&LONG).instructions(WORDS);
    let mut server = opened();
    let list = answer(&service, &mut server, 512, LIST);
    assert!(list.contains("-32603"), "{list}");
    server.forget_peer();
    let opening = answer(&service, &mut server, 512, INITIALIZE);
    assert!(opening.contains("-32603"), "{opening}");
    assert_eq!(server.in_flight(), 0);
}
