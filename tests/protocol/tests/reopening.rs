//! A wire that does not report the end of a client: the next client opens the connection again.

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{RequestSlot, RequestToken, Server, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, ReadResource, Resource, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};

fn wait(state: &mut Option<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    *state = Some(token);
    outcome
}

fn large(_: &mut Option<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

static TOOLS: [Tool<Option<RequestToken>>; 2] = [
    Tool::new("wait", "Waits", wait),
    Tool::new("large", "More than fits", large).source(|_, _, at, bytes| {
        let n = bytes.len().min(2_000 - at as usize);
        bytes[..n].fill(b'x');
        Ok(n)
    }),
];
static RESOURCES: [Resource<Option<RequestToken>>; 1] =
    [Resource::new("test://a", "a", |_: &mut _, read: &mut ReadResource<'_>| read.text("a"))];
const SERVICE: Service<'static, Option<RequestToken>> =
    Service::new("test", "1.0").tools(&TOOLS).resources(&RESOURCES).feature(ServerCapability::Subscribe);

const OPENING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);
const SUBSCRIBE: &str =
    concat!(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}"#, "\n");

fn call(id: u32, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#) + "\n"
}

type Wire<'m> = LineServer<'m, LineSink<SliceStorage<'m>>>;

fn say(session: &mut Wire<'_>, state: &mut Option<RequestToken>, text: &str) -> String {
    let mut said = Vec::new();
    let mut rest = text.as_bytes();
    loop {
        let space = session.space();
        let n = space.len().min(rest.len());
        space[..n].copy_from_slice(&rest[..n]);
        session.filled(n);
        rest = &rest[n..];
        let _ = session.run(&SERVICE, state);
        let pending = session.out.pending().len();
        said.extend_from_slice(session.out.pending());
        session.out.sent(pending);
        if rest.is_empty() && pending == 0 {
            return String::from_utf8(said).unwrap();
        }
    }
}

fn with_wire(reopening: bool, test: impl FnOnce(&mut Wire<'_>, &mut Option<RequestToken>)) {
    let (mut input, mut output, mut subscriptions) = ([0; 1024], [0; 512], [0; 128]);
    let mut slots = [RequestSlot::FREE; 2];
    let server = Server::new(&mut slots).subscriptions(&mut subscriptions);
    let server = if reopening { server.reopening() } else { server };
    let mut session =
        LineServer::new(LineBuffer::new(&mut input), server, LineSink::new(SliceStorage::new(&mut output)));
    test(&mut session, &mut None);
}

/// The same over the standard streams of a process.
#[test]
fn a_process_is_opened_again() {
    let input = [OPENING, OPENING, &call(1, "none"), &OPENING.replace("2025-11-25", "2024-11-05")].concat();
    let mut output = Vec::new();
    mcp_sansio_blocking::serve(input.as_bytes(), &mut output, &SERVICE, &mut None, Default::default()).unwrap();
    let said = String::from_utf8(output).unwrap();
    let said: Vec<_> = said.lines().collect();
    assert_eq!(said.len(), 4, "{said:?}");
    for (line, revision) in [(0, "2025-11-25"), (1, "2025-11-25"), (3, "2024-11-05")] {
        assert!(said[line].contains(&format!(r#""result":{{"protocolVersion":"{revision}""#)), "{said:?}");
    }
}

/// Two clients behind a gateway share one process. The second one opens the same line; the first one still gets its
/// answer, and both go on.
#[test]
fn two_clients_share_a_line() {
    let mut session =
        LineServer::growing(mcp_sansio::server::MessageLimits::default(), LineSink::new(Vec::<u8>::new()));
    const CHANGING: Service<'static, Option<RequestToken>> = SERVICE.feature(ServerCapability::ToolsChanged);
    let mut token = None;
    let tell = |session: &mut LineServer<'static, LineSink<Vec<u8>>>, token: &mut Option<RequestToken>, text: &str| {
        session.space()[..text.len()].copy_from_slice(text.as_bytes());
        session.filled(text.len());
        let _ = session.run(&CHANGING, token);
        let said = String::from_utf8(session.out.pending().to_vec()).unwrap();
        session.out.sent(said.len());
        said
    };
    let first = tell(&mut session, &mut token, OPENING);
    assert!(first.contains(r#""protocolVersion":"2025-11-25""#), "{first}");
    tell(&mut session, &mut token, SUBSCRIBE);
    assert_eq!(tell(&mut session, &mut token, &call(2, "wait")), "");
    // The second client, of another revision. Its first `initialize` is not valid.
    let refused =
        tell(&mut session, &mut token, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\n");
    assert!(refused.contains("-32602"), "{refused}");
    let listed = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}\n";
    assert!(tell(&mut session, &mut token, listed).contains(r#""name":"wait""#), "the first one goes on");
    let second = OPENING.replace("2025-11-25", "2025-06-18");
    let opened = tell(&mut session, &mut token, second.lines().next().unwrap());
    assert_eq!(opened, "", "no newline yet");
    let opened = tell(&mut session, &mut token, "\n");
    assert!(opened.contains(r#""protocolVersion":"2025-06-18""#), "{opened}");
    assert_eq!(session.server.peer.revision().unwrap().date(), "2025-06-18");
    // List changes wait until the client is ready; the subscription still exists.
    session.server.publish(ServerChange::Tools);
    session.server.publish(ServerChange::Resource("test://a"));
    let told = tell(&mut session, &mut token, "\n");
    assert!(told.contains("resources/updated") && !told.contains("list_changed"), "{told}");
    let ready = format!("{}\n", second.lines().nth(1).unwrap());
    let told = tell(&mut session, &mut token, &ready);
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
    assert!(tell(&mut session, &mut token, listed).contains(r#""name":"wait""#));
    // The late answer to the first client.
    session.answer(&SERVICE, &mut token.clone(), token.unwrap(), |_, call| call.text("done")).unwrap();
    let late = tell(&mut session, &mut token, "\n");
    assert!(late.contains(r#""id":2"#) && late.contains("done"), "{late}");
}

#[test]
fn the_next_client_finds_nothing_of_the_one_before() {
    with_wire(true, |session, state| {
        say(session, state, OPENING);
        say(session, state, SUBSCRIBE);
        // All slots are taken, with ids that the next client uses too.
        assert_eq!(say(session, state, &(call(0, "wait") + &call(1, "wait"))), "");
        let token = state.unwrap();
        assert!(say(session, state, OPENING).contains("serverInfo"));
        assert_eq!(session.server.in_flight(), 0);
        assert!(session.answer(&SERVICE, state, token, |_, call| call.text("late")).is_err());
        session.server.publish(ServerChange::Resource("test://a"));
        assert_eq!(say(session, state, ""), "", "nobody is subscribed");
        assert_eq!(say(session, state, &call(1, "wait")), "");
        let token = state.unwrap();
        session.answer(&SERVICE, state, token, |_, call| call.text("now")).unwrap();
        assert!(say(session, state, "").contains("now"));
    });
}

#[test]
fn a_reply_in_windows_ends_first() {
    with_wire(true, |session, state| {
        say(session, state, OPENING);
        let said = say(session, state, &(call(1, "large") + OPENING + &call(1, "large")));
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].len() > 2_000 && lines[1].contains("serverInfo") && lines[2].len() > 2_000);
    });
}

#[test]
fn without_it_a_connection_is_opened_once() {
    with_wire(false, |session, state| {
        say(session, state, OPENING);
        assert!(say(session, state, OPENING).contains("already initialized"));
        session.server.forget_peer();
        assert!(say(session, state, OPENING).contains("serverInfo"));
    });
}

/// In 2026-07-28 nothing opens a connection. A client that counts its ids anew takes the place of one that has gone.
#[test]
fn the_next_client_of_2026_07_28_uses_the_same_ids() {
    let modern = |method: &str, params: &str| {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{method}\",\"params\":{{{params},{meta}}}}}\n")
    };
    let listen = modern("subscriptions/listen", r#""notifications":{"resourceSubscriptions":["test://a"]}"#);
    let wait = modern("tools/call", r#""name":"wait""#);
    for reopening in [true, false] {
        with_wire(reopening, |session, state| {
            say(session, state, &listen);
            let said = say(session, state, &wait);
            assert_eq!(said.contains("the id is in use"), !reopening, "{said}");
            let Some(gone) = *state else { return };
            assert_eq!(say(session, state, &wait), "");
            assert!(session.answer(&SERVICE, state, gone, |_, call| call.text("late")).is_err());
            let token = state.unwrap();
            session.answer(&SERVICE, state, token, |_, call| call.text("done")).unwrap();
            session.server.publish(ServerChange::Resource("test://a"));
            let said = say(session, state, "");
            assert!(said.contains("done") && !said.contains("updated") && said.lines().count() == 1, "{said}");
        });
    }
}
