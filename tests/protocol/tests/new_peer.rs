//! A client that leaves at any byte, and another one on the same wire: `LineServer::new_peer`.
use crate::common;

use common::handlers::{confirm, echo, later, read_text};
use common::*;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{RequestSlot, Server, ServerChange};
use mcp_sansio::service::{Resource, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};

/// Characters of `big`: more than the output buffer holds.
const BIG: usize = 900;

static TOOLS: [Tool<World>; 4] = [
    Tool::new("echo", "Gives a text back", echo),
    Tool::new("later", "Answers later", later),
    Tool::new("confirm", "Asks the user", confirm),
    Tool::new("big", "Goes out in windows", |_, call| call.stream_text(0)).source(|_, _, at, bytes| {
        let n = bytes.len().min(BIG - at as usize);
        bytes[..n].fill(b'x');
        Ok(n)
    }),
];
static RESOURCES: [Resource<World>; 1] = [Resource::new("test://text", "text", read_text)];
const SERVICE: Service<'static, World> = Service::new("test", "1.0")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .feature(ServerCapability::Subscribe)
    .feature(ServerCapability::ToolsChanged);

/// A session in fixed memory whose output goes out through small windows, and the handlers' state.
struct Wire<'m> {
    session: LineServer<'m, LineSink<SliceStorage<'m>>>,
    world: World,
}

/// Lends memory for a session to `test`.
fn with_wire<T>(test: impl FnOnce(&mut Wire<'_>) -> T) -> T {
    let (mut input, mut output) = ([0; 640], [0; 512]);
    let (mut asks, mut subscriptions, mut scratch) = ([0; 1024], [0; 256], [0; 256]);
    let mut slots = [RequestSlot::FREE; 4];
    let server = Server::new(&mut slots).asks(&mut asks).subscriptions(&mut subscriptions).scratch(&mut scratch);
    let session = LineServer::new(LineBuffer::new(&mut input), server, LineSink::new(SliceStorage::new(&mut output)));
    test(&mut Wire { session, world: World::default() })
}

impl Wire<'_> {
    /// Feeds `input` and takes at most `most` bytes of output; stops when the session waits for room.
    fn talk(&mut self, mut input: &[u8], most: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        loop {
            let next = self.session.run(&SERVICE, &mut self.world);
            let n = self.session.out.pending().len().min(most - taken.len());
            taken.extend_from_slice(&self.session.out.pending()[..n]);
            self.session.out.sent(n);
            match next {
                NextStep::Write if n == 0 => return taken,
                NextStep::Write => continue,
                _ => {}
            }
            let space = self.session.space();
            let n = space.len().min(input.len());
            if n == 0 {
                return taken;
            }
            space[..n].copy_from_slice(&input[..n]);
            self.session.filled(n);
            input = &input[n..];
        }
    }
}

/// A client of `revision` that leaves one of each open: a subscription, a question, a call that was put off, a
/// listen. It also requests large answers.
fn conversation(revision: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    if is_modern(revision) {
        let filter = json!({"notifications": {"resourceSubscriptions": ["test://text"], "toolsListChanged": true}});
        lines.push(request(revision, "l", "subscriptions/listen", filter));
    } else {
        lines.push(initialize(revision, all_capabilities(revision)));
        lines.push(notify("notifications/initialized", json!({})));
        lines.push(request(revision, 1, "resources/subscribe", json!({"uri": "test://text"})));
    }
    lines.push(call(revision, 2, "later", json!({"tag": "t"})));
    lines.push(call(revision, 3, "confirm", json!({})));
    lines.push(call(revision, 4, "big", json!({})));
    if revision == "2025-03-26" {
        let elements: Vec<_> = ["echo", "big", "echo"].iter().zip(5..).collect();
        let elements = elements.iter().map(|(tool, id)| call(revision, *id, tool, json!({"text": "a"})));
        lines.push(format!("[{}]", elements.collect::<Vec<_>>().join(",")));
    }
    lines.push("x".repeat(700));
    lines.push(call(revision, 9, "echo", json!({"text": "the last one"})));
    lines.iter().flat_map(|line| line.bytes().chain([b'\n'])).collect()
}

/// The messages of the next client, with ids that the last one used: with or without a handshake.
fn next_client(revision: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    if is_modern(revision) {
        lines.push(request(revision, 1, "server/discover", json!({})));
    } else {
        lines.push(initialize(revision, json!({})));
        lines.push(notify("notifications/initialized", json!({})));
    }
    lines.push(request_of(revision, 2, "tools/call", json!({"name": "echo", "arguments": {"text": "b"}}), json!({})));
    lines.push(request_of(revision, 3, "tools/call", json!({"name": "big"}), json!({})));
    lines.iter().flat_map(|line| line.bytes().chain([b'\n'])).collect()
}

/// Another client connects. It must see the same as in a new session.
fn another_client_comes(wire: &mut Wire<'_>, fresh: &[(Vec<u8>, Vec<u8>)], when: &dyn Fn() -> String) {
    for (said, expected) in fresh {
        wire.session.new_peer();
        assert!(!wire.session.has_ended() && wire.session.out.pending().is_empty(), "{}", when());
        assert_eq!(wire.session.server.in_flight(), 0, "{}", when());
        for (_, token) in wire.world.later.drain(..) {
            let late = wire.session.answer(&SERVICE, &mut World::default(), token, |_, call| call.text("late"));
            assert!(late.is_err(), "{}", when());
        }
        wire.session.server.publish(ServerChange::Resource("test://text"));
        let heard = wire.talk(said, usize::MAX);
        if heard != *expected {
            let (heard, expected) = (String::from_utf8_lossy(&heard), String::from_utf8_lossy(expected));
            panic!("{}: heard {heard}\ninstead of {expected}", when());
        }
    }
}

/// The messages of the next clients, and their answers in a new session.
fn fresh() -> Vec<(Vec<u8>, Vec<u8>)> {
    let heard = |revision: &&str| {
        let said = next_client(revision);
        let heard = with_wire(|wire| wire.talk(&said, usize::MAX));
        assert!(String::from_utf8_lossy(&heard).contains(&"x".repeat(BIG)), "{revision}");
        (said, heard)
    };
    ["2025-11-25", MODERN].iter().map(heard).collect()
}

const OLD: [&str; 3] = ["2025-03-26", "2025-11-25", MODERN];

#[test]
fn one_that_leaves_at_any_byte_of_what_it_says() {
    let fresh = fresh();
    for revision in OLD {
        let said = conversation(revision);
        for at in 0..=said.len() {
            // At some positions the end of the input is reported too.
            for ends in [false, true].into_iter().take(1 + usize::from(at % 5 == 0)) {
                with_wire(|wire| {
                    wire.talk(&said[..at], usize::MAX);
                    if ends {
                        wire.session.end_of_input();
                        wire.talk(b"", at);
                    }
                    another_client_comes(wire, &fresh, &|| format!("{revision}, byte {at}, ends {ends}"));
                });
            }
        }
    }
}

#[test]
fn one_that_leaves_at_any_byte_of_what_it_hears() {
    let fresh = fresh();
    for revision in OLD {
        let said = conversation(revision);
        let length = with_wire(|wire| wire.talk(&said, usize::MAX).len());
        assert!(length > 1_500, "{revision}");
        for at in 0..=length {
            with_wire(|wire| {
                assert_eq!(wire.talk(&said, at).len(), at);
                another_client_comes(wire, &fresh, &|| format!("{revision}, byte {at}"));
            });
        }
    }
}

/// The next client can be asked, too: the questions of the last one leave no memory behind.
#[test]
fn the_next_client_is_asked_as_often_as_it_likes() {
    with_wire(|wire| {
        for _ in 0..100 {
            let heard = wire.talk(&conversation("2025-11-25"), usize::MAX);
            assert!(String::from_utf8_lossy(&heard).contains("elicitation/create"));
            wire.session.new_peer();
        }
    });
}
