//! Several hosts, whose server is the program's.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{
    IncomingRequest, MessageLimits, Peer, RequestToken, Scope, Server, ServerEvent, ServerInfo, ServerOptions,
};
use mcp_sansio::sink::LineSink;
use mcp_sansio_bridge::{Bridge, BridgeLimits, Output};

use crate::rig::Rig;

const OLD: Revision = Revision::V2025_11_25;
/// Stands for the keys of a program.
const SECRET: u64 = 0x5eed;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;

/// The server of two hosts, and what they have got.
struct Hosts {
    rig: Rig,
    server: Server<'static>,
    peers: [Peer; 2],
    got: [LineSink<Vec<u8>>; 2],
    of: Vec<(RequestToken, usize)>,
}

impl Hosts {
    fn new() -> Hosts {
        Hosts::with(BridgeLimits::DEFAULT)
    }

    fn with(limits: BridgeLimits) -> Hosts {
        let mut rig = Rig::of(OLD, Bridge::for_hosts(limits, |round| round ^ SECRET));
        rig.bridge.open(None);
        rig.up();
        let got = [(); 2].map(|()| LineSink::new(Vec::new()));
        let server = Server::growing(MessageLimits::default());
        let mut hosts = Hosts { rig, server, peers: [Peer::NEW; 2], got, of: Vec::new() };
        for host in 0..2 {
            let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
                "capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"h","version":"1"}}}"#;
            assert!(hosts.admit(host, open).is_none());
            hosts.text(host);
        }
        hosts
    }

    fn admit(&mut self, host: usize, line: &str) -> Option<RequestToken> {
        let about = [ServerCapability::Logging, ServerCapability::Subscribe].into_iter();
        let about = about.fold(ServerInfo::new("front", "1").feature(ServerCapability::Tools), ServerInfo::feature);
        let (options, out) = (ServerOptions::new(&about), &mut self.got[host]);
        let event = self.server.with_peer(&mut self.peers[host], Scope(host as u32), |server| {
            let mut request = IncomingRequest::empty();
            request.read(line.as_bytes()).unwrap();
            request.shape();
            if request.method.is_setting() {
                return server.admit_own(&options, &request, out).unwrap();
            }
            match server.handle_read(&options, &mut request, out).unwrap() {
                Some(ServerEvent::Request { token }) => Some(token),
                _ => None,
            }
        });
        self.of.extend(event.map(|token| (token, host)));
        event
    }

    fn call(&mut self, host: usize) -> RequestToken {
        self.ask(host, CALL)
    }

    fn ask(&mut self, host: usize, line: &str) -> RequestToken {
        let token = self.admit(host, line).expect("a request");
        self.rig.act(|bridge, link, now| bridge.request(token, line.as_bytes(), link, now));
        token
    }

    /// Sets something for a host, and returns what the server has heard of it; it agrees.
    fn set(&mut self, host: usize, method: &str, params: serde_json::Value) -> Option<serde_json::Value> {
        let request = serde_json::json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        self.rig.heard.clear();
        self.ask(host, &request.to_string());
        let heard = self.rig.heard.pop();
        heard.iter().for_each(|heard| self.rig.result(heard, "{}"));
        assert!(self.text(host).ends_with("\"id\":5,\"result\":{}}\n"));
        let uris: Vec<_> = self.server.subscribed_uris().map(String::from).collect();
        self.rig.act(|bridge, link, _| bridge.subscribed(uris.iter().map(|uri| &**uri), link));
        let later = self.rig.heard.pop();
        assert!(later.is_none() || heard.is_none(), "{later:?}");
        heard.or(later)
    }

    /// Writes what the bridge has, and returns what the host has got.
    fn text(&mut self, host: usize) -> String {
        while let Some(output) = self.rig.bridge.next_output() {
            let (Output::About(Some(request), _) | Output::Ask { request: Some(request), .. }) = &output else {
                continue;
            };
            let Some(&(request, of)) = self.of.iter().find(|(token, _)| token == request) else { continue };
            let out = &mut self.got[of];
            let asked = self.server.with_peer(&mut self.peers[of], Scope(of as u32), |server| match output {
                Output::About(_, act) => {
                    act(server, out);
                    None
                }
                Output::Ask { question, method, params, .. } => {
                    let id = server.send_request(method, Some(params.raw()), out).unwrap();
                    Some((question, id, server.scope()))
                }
                _ => None,
            });
            if let Some((question, id, scope)) = asked {
                self.rig.act(|bridge, link, _| bridge.asked(Some(request), question, Some((id, scope)), link));
            }
        }
        let out = &mut self.got[host];
        let text = std::str::from_utf8(out.pending()).unwrap().to_owned();
        out.sent(text.len());
        text
    }
}

/// Each answer goes to the host that has asked, also where both have used the same id.
#[test]
fn answers_go_to_their_host() {
    let mut hosts = Hosts::new();
    hosts.call(0);
    let first = hosts.rig.one("tools/call");
    hosts.call(1);
    let second = hosts.rig.one("tools/call");
    hosts.rig.result(&second, r#"{"content":[ 2 ]}"#);
    hosts
        .rig
        .serve(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-7,"message":"no","x":[ ]}}}}"#, first["id"]));
    assert_eq!(hosts.text(0), "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-7,\"message\":\"no\",\"x\":[ ]}}\n");
    assert_eq!(hosts.text(1), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[ 2 ]}}\n");
}

/// The answer to a question counts from the host that was asked.
#[test]
fn another_host_cannot_answer() {
    let mut hosts = Hosts::new();
    hosts.call(0);
    hosts.rig.one("tools/call");
    hosts.rig.serve(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{}}"#);
    assert_eq!(hosts.text(1), "");
    let asked: serde_json::Value = serde_json::from_str(&hosts.text(0)).unwrap();
    let id = asked["id"].as_u64().unwrap();
    let mut answer = |scope: u32| {
        let roots = Raw::parse(br#"{"roots":[]}"#).unwrap();
        hosts.rig.act(|bridge, link, _| bridge.response(id, Ok(roots), Scope(scope), link));
        hosts.rig.heard.iter().filter(|message| message["id"] == 7).count()
    };
    assert_eq!((answer(1), answer(0), answer(0)), (0, 1, 1));
}

/// The end of an elicitation in URL mode goes to the host that was asked, and not to that of the newest request. The oldest are forgotten.
#[test]
fn the_end_of_a_visit() {
    let mut hosts = Hosts::with(BridgeLimits::DEFAULT.questions(2));
    let visit = |hosts: &mut Hosts, id: &str| {
        let params = format!(r#"{{"mode":"url","message":"?","url":"https://a.example","elicitationId":"{id}"}}"#);
        hosts.rig.serve(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{params}}}"#));
        let asked: serde_json::Value = serde_json::from_str(&hosts.text(0)).unwrap();
        let (question, yes) = (asked["id"].as_u64().unwrap(), Raw::parse(br#"{"action":"accept"}"#).unwrap());
        hosts.rig.act(|bridge, link, _| bridge.response(question, Ok(yes), Scope(0), link));
    };
    let ended = |hosts: &mut Hosts, id: &str| {
        let params = format!(r#"{{"elicitationId":"{id}"}}"#);
        let method = "notifications/elicitation/complete";
        hosts.rig.serve(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
        [0, 1].map(|host| hosts.text(host).matches(id).count())
    };
    hosts.call(0);
    let call = hosts.rig.one("tools/call");
    ["old", "one", "two"].iter().for_each(|id| visit(&mut hosts, id));
    hosts.call(1);
    assert_eq!(["one", "old"].map(|id| ended(&mut hosts, id)), [[1, 0], [0, 1]]);
    // Its request has ended: the newest may be of the same host.
    hosts.rig.result(&call, r#"{"content":[]}"#);
    hosts.text(0);
    assert_eq!(ended(&mut hosts, "two"), [0, 1]);
}

/// The `requestState` of a round cannot be guessed from those that a host has seen before.
#[test]
fn another_host_does_not_find_a_round() {
    let mut hosts = Hosts::new();
    hosts.peers = [Peer::NEW; 2];
    let call = |members: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t",{members}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}}}}}}}}"#
        )
    };
    let mut say = |host: usize, members: &str, asks: bool| {
        let line = call(members);
        let token = hosts.admit(host, &line).expect("a request");
        hosts.rig.act(|bridge, link, now| bridge.request(token, line.as_bytes(), link, now));
        if asks {
            hosts.rig.serve(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{}}"#);
        }
        hosts.text(host)
    };
    let round = say(0, "", true);
    let state = format!(r#""requestState":"mcp-bridge:{}""#, 1 ^ SECRET);
    assert!(round.contains(r#""input_required""#) && round.contains(&state), "{round}");
    let guess = say(1, r#""requestState":"mcp-bridge:1","inputResponses":{"7":{"roots":[]}},"#, false);
    assert!(guess.contains("The question is over"), "{guess}");
    let answer = say(0, &format!(r#"{state},"inputResponses":{{"7":{{"roots":[]}}}},"#), false);
    assert!(!answer.contains("error"), "{answer}");
}

/// A host that leaves its questions open takes no place from others.
#[test]
fn questions_that_nobody_answers() {
    let mut hosts = Hosts::with(BridgeLimits::DEFAULT.questions(2).check(u64::MAX));
    let mut number = 10;
    let mut ask = |hosts: &mut Hosts, host: usize| {
        let token = hosts.call(host);
        number += 1;
        hosts.rig.serve(&format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"roots/list","params":{{}}}}"#));
        (token, number, hosts.text(host).contains("roots/list"))
    };
    let refused = |hosts: &Hosts, id: i32| {
        hosts.rig.heard.iter().any(|message| message["id"] == id && message["error"].is_object())
    };
    for _ in 0..3 {
        let (gone, question, asked) = ask(&mut hosts, 0);
        hosts.admit(0, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        hosts.rig.act(|bridge, link, now| bridge.cancel(gone, link, now));
        assert!(asked && refused(&hosts, question));
    }
    // Those whose request has ended are open for some time.
    for time in [600_000, 0] {
        for is_asked in [true, true, false] {
            let (_, _, asked) = ask(&mut hosts, 0);
            assert_eq!(asked, is_asked);
            let call = hosts.rig.heard.iter().rfind(|message| message["method"] == "tools/call").unwrap().clone();
            hosts.rig.result(&call, r#"{"content":[]}"#);
            hosts.text(0);
        }
        hosts.rig.wait(time);
    }
}

/// The rounds that hosts have left make way for requests.
#[test]
fn rounds_that_nobody_goes_on_with() {
    let mut hosts = Hosts::with(BridgeLimits::DEFAULT.in_flight(3));
    hosts.peers[0] = Peer::NEW;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#;
    for id in 0..3 {
        hosts.ask(0, call);
        hosts.rig.serve(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","params":{{}}}}"#));
        assert!(hosts.text(0).contains("input_required"));
    }
    let calls: Vec<_> = hosts.rig.heard.drain(..).filter(|message| message["method"] == "tools/call").collect();
    hosts.call(1);
    assert_eq!(hosts.text(1), "");
    let cancelled = hosts.rig.heard.iter().find(|message| message["method"] == "notifications/cancelled").unwrap();
    assert_eq!(cancelled["params"]["requestId"], calls[0]["id"]);
    hosts.rig.one("tools/call");
}

/// A host that is gone cancels its requests alone; the server logs what any of them wants.
#[test]
fn a_host_goes() {
    let mut hosts = Hosts::new();
    let gone = hosts.call(0);
    hosts.call(1);
    let calls: Vec<_> = hosts.rig.heard.drain(..).filter(|message| message["method"] == "tools/call").collect();
    hosts.rig.act(|bridge, link, now| bridge.cancel(gone, link, now));
    assert_eq!(hosts.rig.one("notifications/cancelled")["params"]["requestId"], calls[0]["id"]);
    for (host, level, behind) in [(0, "error", "error"), (1, "debug", "debug"), (0, "error", "debug")] {
        let heard = hosts.set(host, "logging/setLevel", serde_json::json!({"level": level})).unwrap();
        assert_eq!(heard["params"]["level"], behind);
    }
    assert_eq!(hosts.peers.map(|peer| peer.log_level), [LoggingLevel::Error, LoggingLevel::Debug]);
    hosts.rig.result(&calls[1], r#"{"content":[]}"#);
    assert!(hosts.text(1).contains("\"result\"") && hosts.text(0).is_empty());
}

/// Checks that the server gets one `resources/subscribe` for the first host that wants a URI, and one `resources/unsubscribe` after the last.
#[test]
fn hosts_share_subscriptions() {
    let mut hosts = Hosts::new();
    let uri = serde_json::json!({"uri": "r://a"});
    let mut set = |host, method: &str| {
        let heard = hosts.set(host, method, uri.clone())?;
        assert_eq!(heard["params"], uri);
        heard["method"].as_str().map(String::from)
    };
    let (on, off) = ("resources/subscribe", "resources/unsubscribe");
    assert_eq!(set(0, on).as_deref(), Some(on));
    assert_eq!(set(1, off), None);
    assert_eq!(set(1, on).as_deref(), Some(on));
    assert_eq!(set(0, off), None);
    assert_eq!(set(1, off).as_deref(), Some(off));
}
