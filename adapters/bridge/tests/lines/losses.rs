//! The server goes and comes.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;
use mcp_sansio_bridge::BridgeLimits;
use serde_json::json;

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;
const PAIRS: [(Revision, Revision); 4] = [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)];

#[test]
fn what_waits_is_sent_once_and_what_was_sent_is_not_sent_again() {
    for (host, server) in PAIRS {
        let mut rig = Rig::open(host, server);
        let modern = host.is_modern();
        let sent = rig.call(modern);
        rig.one("tools/call");
        rig.lose();
        let lost = rig.answer(sent);
        assert!(lost["error"]["message"].as_str().unwrap().contains("may have been executed"), "{lost}");
        let waits = rig.call(modern);
        assert!(rig.is_waiting(waits));
        rig.got.clear();
        rig.up();
        let heard = rig.one("tools/call");
        rig.result(&heard, r#"{"content":[]}"#);
        assert!(rig.answer(waits)["result"].is_object());
        // A host of 2026-07-28 gets changes only on `subscriptions/listen`.
        assert_eq!(rig.count("notifications/tools/list_changed"), usize::from(!modern));
    }
}

#[test]
fn a_server_that_does_not_come() {
    let mut rig = Rig::new(OLD, BridgeLimits::DEFAULT.wait(5_000));
    let opening = rig.opening(OLD);
    for _ in 0..10 {
        rig.begin();
        rig.lose();
        assert!(rig.is_waiting(opening) || rig.now >= 5_000);
        rig.wait(400);
    }
    rig.wait(5_000);
    let opened = rig.answer(opening);
    assert_eq!(opened["result"]["capabilities"]["tools"]["listChanged"], true, "{opened}");
    let waits = rig.call(false);
    rig.wait(4_999);
    assert!(rig.is_waiting(waits));
    rig.wait(1);
    assert!(rig.answer(waits)["error"]["message"].as_str().unwrap().contains("is not there, for 5 s"));
    rig.got.clear();
    rig.up();
    assert_eq!(rig.count("notifications/tools/list_changed"), 1);
}

#[test]
fn a_host_opens_while_a_server_that_is_known_is_away() {
    for (host, server) in PAIRS {
        let rig = Rig::open(host, server);
        let said = rig.bridge.server().unwrap().as_str().to_owned();
        let mut rig = Rig::new(server, BridgeLimits::DEFAULT);
        rig.bridge = rig.bridge.known_server(mcp_sansio::json::Raw::parse(said.as_bytes()).unwrap());
        let opening = rig.opening(host);
        assert!(rig.answer(opening)["result"]["capabilities"]["logging"].is_object());
        let waits = rig.call(host.is_modern());
        assert!(rig.is_waiting(waits));
        rig.up();
        rig.one("tools/call");
    }
    // A file that was cut off, or is another one.
    for said in ["{}", "[1]", "null", r#"{"capabilities":[]}"#] {
        let mut rig = Rig::new(OLD, BridgeLimits::DEFAULT);
        rig.bridge = rig.bridge.known_server(mcp_sansio::json::Raw::constant(said));
        let opening = rig.opening(OLD);
        assert!(rig.is_waiting(opening), "{said}");
    }
}

/// It says so with its answer to the next request, which it has not executed.
#[test]
fn a_board_that_is_reset_behind_a_wire_that_stays() {
    for host in [OLD, NEW] {
        let mut rig = Rig::open(host, OLD);
        // More often than the client has places for requests.
        for _ in 0..100 {
            let call = rig.call(host.is_modern());
            let heard = rig.one("tools/call");
            let not_opened = r#"{"code":-32602,"message":"Not opened: send initialize first (up to 2025-11-25)"}"#;
            rig.serve(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{not_opened}}}"#, heard["id"]));
            assert!(rig.is_waiting(call));
            let opening = rig.one("initialize");
            let offers = crate::rig::OFFERS;
            let info = r#"{"name":"s","version":"2"}"#;
            rig.result(
                &opening,
                &format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{offers},"serverInfo":{info}}}"#),
            );
            let again = rig.one("tools/call");
            rig.result(&again, r#"{"content":[]}"#);
            assert!(rig.answer(call)["result"].is_object());
        }
    }
}

/// Also the halves of messages: each request of the host has one answer, and none is executed twice.
#[test]
fn the_end_at_every_byte() {
    for (host, server) in PAIRS {
        for cut in 0.. {
            let mut rig = Rig::open(host, server);
            let modern = host.is_modern();
            let calls = [rig.call(modern), rig.call(modern)];
            let heard: Vec<_> = rig.heard.drain(..).filter(|message| message["method"] == "tools/call").collect();
            let mut executed = heard.len();
            let mut said =
                String::from("noise\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n");
            for (call, text) in heard.iter().zip(["a", "b"]) {
                let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
                said += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", call["id"]);
            }
            if cut > said.len() {
                break;
            }
            rig.feed(&said.as_bytes()[..cut]);
            rig.lose();
            let third = rig.call(modern);
            rig.up();
            let rest: Vec<_> = rig.heard.drain(..).filter(|message| message["method"] == "tools/call").collect();
            executed += rest.len();
            assert_eq!((executed, rest.len()), (3, 1), "{host} {server} {cut}");
            rig.result(&rest[0], r#"{"content":[]}"#);
            for call in calls.into_iter().chain([third]) {
                rig.answer(call);
            }
            assert!(rig.bridge.is_idle());
        }
    }
}

#[test]
fn subscriptions_and_levels_are_there_again() {
    let mut rig = Rig::open(OLD, OLD);
    rig.send("resources/subscribe", json!({"uri": "r://a"}), false);
    let heard = rig.one("resources/subscribe");
    rig.result(&heard, "{}");
    rig.send("logging/setLevel", json!({"level": "error"}), false);
    let heard = rig.one("logging/setLevel");
    rig.result(&heard, "{}");
    rig.lose();
    rig.got.clear();
    rig.up();
    assert_eq!(rig.count("notifications/resources/updated"), 1);
    assert!(rig.heard.iter().any(|message| message["params"]["level"] == "error"), "{:?}", rig.heard);
    rig.one("resources/subscribe");
    let mut rig = Rig::open(OLD, NEW);
    rig.send("resources/subscribe", json!({"uri": "r://a"}), false);
    let listen = rig.one("subscriptions/listen");
    rig.acknowledge(&listen, json!(["r://a"]));
    rig.lose();
    rig.heard.clear();
    rig.up();
    let listen = rig.one("subscriptions/listen");
    assert_eq!(listen["params"]["notifications"]["resourceSubscriptions"], json!(["r://a"]));
}

/// A program that opens and loses all the time.
#[test]
fn ten_thousand_losses() {
    let mut rig = Rig::open(OLD, NEW);
    for _ in 0..10_000 {
        let call = rig.call(false);
        rig.lose();
        rig.up();
        assert!(rig.answer(call)["error"].is_object());
        (rig.got, rig.heard) = (Vec::new(), Vec::new());
    }
    assert!(rig.bridge.is_idle());
    let state = format!("{:?}", rig.bridge);
    assert!(state.contains("requests: []"), "{state}");
}

/// Whatever part of the server's bytes has come when it is lost: the request has one answer, and the next connection serves.
#[test]
fn lost_at_every_byte() {
    let question = r#"{"messages":[],"maxTokens":1}"#;
    for (host, server) in PAIRS {
        let script = |id: &serde_json::Value| {
            let asks = match server.is_modern() {
                true => format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"sampling/createMessage","params":{question}}}}}}}}}"#
                ),
                false => {
                    format!(r#"{{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{question}}}"#)
                }
            };
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
            );
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
            [progress, changed.into(), asks, answer, String::new()].join("\n").into_bytes()
        };
        let mut cut = 0;
        loop {
            let mut rig = Rig::open(host, server);
            let call = rig.call(host.is_modern());
            let bytes = script(&rig.one("tools/call")["id"]);
            if cut > bytes.len() {
                break;
            }
            rig.feed(&bytes[..cut]);
            rig.lose();
            assert_eq!(rig.answers(call).len(), 1, "{host:?} {server:?} {cut}: {:?}", rig.got);
            // A host that was asked hears that it need not answer.
            let asked = rig.count("sampling/createMessage");
            assert!(rig.count("notifications/cancelled") <= asked, "{:?}", rig.got);
            rig.up();
            rig.heard.retain(|message| message["method"] != "subscriptions/listen");
            let next = rig.call(host.is_modern());
            let heard = rig.one("tools/call");
            rig.result(&heard, r#"{"content":[]}"#);
            assert!(rig.answer(next)["result"].is_object(), "{host:?} {server:?} {cut}");
            assert_eq!(rig.answers(call).len(), 1, "{host:?} {server:?} {cut}");
            cut += 1;
        }
    }
}

/// A machine that slept: what has waited ends once, the connection is opened at once, and what is under way stays.
#[test]
fn the_clock_jumps() {
    const DAY: u64 = 86_400_000;
    let mut rig = Rig::open(OLD, OLD);
    let call = rig.call(false);
    let heard = rig.one("tools/call");
    rig.wait(DAY);
    rig.result(&heard, r#"{"content":[]}"#);
    assert!(rig.answer(call)["result"].is_object());
    rig.lose();
    let waits = rig.call(false);
    assert!(rig.is_waiting(waits));
    rig.wait(DAY);
    assert!(rig.answer(waits)["error"].is_object() && rig.bridge.next_deadline().is_none());
    rig.up();
    // A clock that was set back: nothing ends early, and a new deadline counts from it.
    rig.lose();
    rig.now = 0;
    let early = rig.call(false);
    rig.wait(1);
    assert!(rig.is_waiting(early));
    rig.wait(DAY);
    assert!(rig.answer(early)["error"].is_object());
}

impl Rig {
    /// Takes the check of a silent connection.
    fn check(&mut self, server: Revision) -> serde_json::Value {
        self.one(if server.is_modern() { "server/discover" } else { "ping" })
    }

    /// Answers the check of a server of 2026-07-28, whose capabilities these are.
    fn discovered(&mut self, check: &serde_json::Value, offers: &str) {
        let result =
            format!(r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{offers}}}"#);
        self.result(check, &result);
    }
}

/// A connection at rest is checked once in a while. A server that does not answer is lost.
#[test]
fn silence_is_checked() {
    let check = BridgeLimits::DEFAULT.check;
    for (host, server) in PAIRS {
        let mut rig = Rig::open(host, server);
        rig.wait(check - 1);
        assert_eq!(rig.heard.len(), 0, "{:?}", rig.heard);
        rig.wait(1);
        let first = rig.check(server);
        match server.is_modern() {
            true => rig.discovered(&first, crate::rig::OFFERS),
            false => rig.result(&first, "{}"),
        }
        rig.heard.clear();
        // While a request is under way, the server may be busy.
        let call = rig.call(host.is_modern());
        let heard = rig.one("tools/call");
        rig.wait(2 * check);
        assert_eq!(rig.heard.len(), 0, "{:?}", rig.heard);
        rig.result(&heard, r#"{"content":[]}"#);
        assert!(rig.answer(call)["result"].is_object());
        rig.wait(check);
        rig.check(server);
        assert!(rig.bridge.is_up());
        rig.wait(BridgeLimits::DEFAULT.wait);
        assert!(!rig.bridge.is_up() && rig.bridge.why().contains("no answer to a check"), "{}", rig.bridge.why());
        rig.up();
        assert!(rig.bridge.is_open());
    }
}

/// After a sleep the first request waits for the check, and so was surely not executed if the connection is dead.
#[test]
fn a_request_after_a_sleep() {
    for (host, server) in PAIRS {
        for is_dead in [true, false] {
            let mut rig = Rig::open(host, server);
            rig.now += 86_400_000;
            let call = rig.call(host.is_modern());
            let check = rig.check(server);
            match (is_dead, server.is_modern()) {
                (true, _) => {
                    rig.lose();
                    rig.up();
                }
                (false, true) => rig.discovered(&check, crate::rig::OFFERS),
                (false, false) => rig.result(&check, "{}"),
            }
            rig.heard.retain(|message| message["method"] == "tools/call");
            let heard = rig.one("tools/call");
            rig.result(&heard, r#"{"content":[]}"#);
            assert!(rig.answer(call)["result"].is_object());
        }
    }
}

/// A server of 2026-07-28 has no session, so no answer shows that it was reset: each check opens the listen anew.
#[test]
fn a_board_of_2026_that_is_reset_behind_a_wire_that_stays() {
    let changes =
        |rig: &Rig| (rig.count("notifications/tools/list_changed"), rig.count("notifications/resources/updated"));
    let mut rig = Rig::open(OLD, NEW);
    rig.send("resources/subscribe", json!({"uri": "r://a"}), false);
    let listen = rig.one("subscriptions/listen");
    rig.acknowledge(&listen, json!(["r://a"]));
    rig.send("logging/setLevel", json!({"level": "error"}), false);
    rig.got.clear();
    let listens = |rig: &mut Rig| {
        let heard = rig.heard.drain(..).filter(|message| message["method"] == "subscriptions/listen");
        heard.map(|listen| listen["params"]["notifications"]["resourceSubscriptions"].clone()).collect::<Vec<_>>()
    };
    listens(&mut rig);
    rig.wait(BridgeLimits::DEFAULT.check);
    let check = rig.check(NEW);
    assert_eq!(check["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "error");
    rig.discovered(&check, crate::rig::OFFERS);
    assert_eq!((listens(&mut rig), changes(&rig)), (vec![json!(["r://a"])], (0, 0)));
    // Its first words, or a half line.
    rig.serve("ets Jun  8 2016 00:22:57");
    let check = rig.check(NEW);
    rig.discovered(&check, crate::rig::OFFERS);
    assert_eq!((listens(&mut rig), changes(&rig)), (vec![json!(["r://a"])], (1, 1)));
    // Other firmware.
    rig.wait(BridgeLimits::DEFAULT.check);
    let check = rig.check(NEW);
    rig.discovered(&check, r#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#);
    assert_eq!((listens(&mut rig), changes(&rig)), (vec![json!(["r://a"])], (2, 2)));
}
