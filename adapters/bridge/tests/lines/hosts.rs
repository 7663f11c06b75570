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
        let mut rig = Rig::of(OLD, Bridge::for_hosts(BridgeLimits::default(), |round| round ^ SECRET));
        rig.bridge.open(None);
        rig.up();
        let got = [(); 2].map(|()| LineSink::new(Vec::new()));
        let server = Server::growing(MessageLimits::default());
        let mut hosts = Hosts { rig, server, peers: [Peer::NEW; 2], got, of: Vec::new() };
        for host in 0..2 {
            let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
                "capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;
            assert!(hosts.admit(host, open).is_none());
            hosts.text(host);
        }
        hosts
    }

    fn admit(&mut self, host: usize, line: &str) -> Option<RequestToken> {
        let about = ServerInfo::new("front", "1").feature(ServerCapability::Tools);
        let out = &mut self.got[host];
        let event = self.server.with_peer(&mut self.peers[host], Scope(host as u32), |server| {
            let mut request = IncomingRequest::empty();
            match server.handle(&ServerOptions::new(&about), line.as_bytes(), &mut request, out).unwrap() {
                Some(ServerEvent::Request { token }) => Some(token),
                _ => None,
            }
        });
        self.of.extend(event.map(|token| (token, host)));
        event
    }

    fn call(&mut self, host: usize) -> RequestToken {
        let token = self.admit(host, CALL).expect("a request");
        self.rig.act(|bridge, link, now| bridge.request(token, CALL.as_bytes(), link, now));
        token
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

/// A host that is gone cancels its requests alone; the server logs what any of them wants.
#[test]
fn a_host_goes() {
    let mut hosts = Hosts::new();
    let gone = hosts.call(0);
    hosts.call(1);
    let calls: Vec<_> = hosts.rig.heard.drain(..).filter(|message| message["method"] == "tools/call").collect();
    hosts.rig.act(|bridge, link, now| bridge.cancel(gone, link, now));
    assert_eq!(hosts.rig.one("notifications/cancelled")["params"]["requestId"], calls[0]["id"]);
    for (level, behind) in
        [(LoggingLevel::Error, "error"), (LoggingLevel::Debug, "debug"), (LoggingLevel::Error, "debug")]
    {
        hosts.rig.act(|bridge, link, _| bridge.set_level(level, link));
        let heard = hosts.rig.heard.pop().map(|message| message["params"]["level"].clone());
        assert!(heard.is_none_or(|heard| heard == behind), "{level:?}");
    }
    hosts.rig.result(&calls[1], r#"{"content":[]}"#);
    assert!(hosts.text(1).contains("\"result\"") && hosts.text(0).is_empty());
}
