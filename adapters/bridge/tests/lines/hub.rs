//! One host, whose server is the program's, and two servers.

use std::mem::swap;

use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{IncomingRequest, MessageLimits, Server, ServerEvent, ServerOptions, TransportChecks};
use mcp_sansio::sink::LineSink;
use mcp_sansio_bridge::{Bridge, BridgeLimits, Hub, Output, ToolFilter};
use serde_json::{Value, json};

use crate::rig::Rig;

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;

struct Hubs {
    hub: Hub,
    rigs: [Rig; 2],
    server: Server<'static>,
    out: LineSink<Vec<u8>>,
    changes: usize,
    last: u64,
}

impl Hubs {
    /// Two servers, `a` and `b`, that are open.
    fn new(eras: [Revision; 2], filter: ToolFilter) -> Hubs {
        let limits = BridgeLimits::DEFAULT.schemas(1000);
        let bridge = || Bridge::for_hosts(limits, |round| round).tools(filter.clone());
        let hub = Hub::new([("a".to_owned(), bridge()), ("b".to_owned(), bridge())]).unwrap();
        let rigs = eras.map(|era| Rig::new(era, BridgeLimits::DEFAULT));
        let server = Server::growing(MessageLimits::default());
        let mut hubs = Hubs { hub, rigs, server, out: LineSink::new(Vec::new()), changes: 0, last: 0 };
        hubs.hub.open(None);
        for at in 0..2 {
            hubs.at(at, Rig::up);
            hubs.rigs[at].heard.clear();
        }
        assert!(hubs.hub.is_settled());
        let info = json!({"name": "h", "version": "1"});
        let opened =
            hubs.ask("initialize", json!({"protocolVersion": OLD.date(), "capabilities": {}, "clientInfo": info}));
        assert_eq!(opened["result"]["capabilities"]["tools"], json!({"listChanged": true}), "{opened}");
        hubs
    }

    /// Acts on one server and its bridge.
    fn at<T>(&mut self, at: usize, act: impl FnOnce(&mut Rig) -> T) -> T {
        swap(self.hub.bridge(at), &mut self.rigs[at].bridge);
        let done = act(&mut self.rigs[at]);
        swap(self.hub.bridge(at), &mut self.rigs[at].bridge);
        self.pump();
        done
    }

    fn pump(&mut self) {
        while let Some((at, work)) = self.hub.next_work() {
            swap(self.hub.bridge(at), &mut self.rigs[at].bridge);
            self.rigs[at].act(|bridge, link, now| work.run(bridge, link, now));
            swap(self.hub.bridge(at), &mut self.rigs[at].bridge);
        }
        while let Some(output) = self.hub.next_output() {
            match output {
                Output::About(_, act) => act(&mut self.server, &mut self.out),
                Output::Changed(_) => self.changes += 1,
                Output::Ask { request, question, method, params } => {
                    let id = self.server.send_request(method, Some(params.raw()), &mut self.out).unwrap();
                    let scope = self.server.scope();
                    self.hub.asked(request, question, Some((id, scope)));
                    // A host that answers before the hub's work is done.
                    self.hub.response(id, Ok(Raw::parse(br#"{"roots":[]}"#).unwrap()), scope);
                    self.pump();
                }
                _ => {}
            }
        }
    }

    /// Sends a request of the host.
    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).to_string();
        self.say(&line);
        self.last
    }

    fn say(&mut self, line: &str) {
        let mut request = IncomingRequest::empty();
        let hello = self.hub.hello();
        let info = hello.info();
        let options = ServerOptions::new(&info);
        request.read(line.as_bytes()).unwrap();
        request.shape();
        let event = match request.method.is_setting() {
            true => self
                .server
                .admit_own(&options, &request, &mut self.out)
                .unwrap()
                .map(|token| ServerEvent::Request { token }),
            false => self.server.handle_read(&options, &mut request, &mut self.out).unwrap(),
        };
        match event {
            Some(ServerEvent::Request { token }) => {
                let method = request.name.to_string();
                if let Err(failure) =
                    self.hub.request(token, self.server.scope(), &method, request.envelope.params, &NoRed)
                {
                    self.server.fail(token, &failure, &mut self.out).unwrap();
                }
            }
            Some(ServerEvent::Cancelled { token }) => self.hub.cancel(token),
            _ => {}
        }
        self.pump();
    }

    /// Returns the messages that the host has got.
    fn got(&mut self) -> Vec<Value> {
        let text = std::str::from_utf8(self.out.pending()).unwrap().to_owned();
        self.out.sent(text.len());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends a request that is answered at once.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn answer(&mut self, id: u64) -> Value {
        let mut got = self.got();
        assert!(got.len() == 1 && got[0]["id"] == id, "{id}: {got:?}");
        got.remove(0)
    }

    /// Returns the only request of this method that a server has heard.
    fn heard(&mut self, at: usize, method: &str) -> Value {
        self.rigs[at].one(method)
    }

    /// Answers a request that a server has heard.
    fn result(&mut self, at: usize, heard: &Value, result: &str) {
        self.at(at, |rig| rig.result(heard, result));
    }

    fn refuse(&mut self, at: usize, heard: &Value, code: i32) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"no"}}}}"#, heard["id"]);
        self.at(at, |rig| rig.serve(&line));
    }
}

fn names(answer: &Value) -> Vec<&str> {
    answer["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// All pages of all servers, each tool with its server's name and its other bytes.
#[test]
fn lists_become_one() {
    let mut hubs = Hubs::new([OLD, NEW], ToolFilter::default());
    let list = hubs.send("tools/list", json!({}));
    let (first, second) = (hubs.heard(0, "tools/list"), hubs.heard(1, "tools/list"));
    hubs.result(
        1,
        &second,
        r#"{"tools":[{"name":"x","n":1.10e5}],"resultType":"complete","ttlMs":9,"nextCursor":"\u0032\""}"#,
    );
    assert!(hubs.got().is_empty());
    hubs.result(0, &first, r#"{"tools":[{"name":"x"},{"name":"y"}],"odd":[ ]}"#);
    let text = std::str::from_utf8(hubs.out.pending()).unwrap().to_owned();
    assert!(text.contains(r#"{"n":1.10e5,"name":"b_x"}"#) && text.contains(r#""odd":[ ]"#), "{text}");
    assert!(!text.contains("ttlMs") && !text.contains("resultType"), "{text}");
    let page = hubs.answer(list);
    assert_eq!(names(&page), ["a_x", "a_y", "b_x"]);
    let cursor = &page["result"]["nextCursor"];
    let list = hubs.send("tools/list", json!({"cursor": cursor}));
    assert!(hubs.rigs[0].heard.is_empty(), "{:?}", hubs.rigs[0].heard);
    let more = hubs.heard(1, "tools/list");
    assert_eq!(more["params"]["cursor"], "2\"");
    hubs.result(1, &more, r#"{"tools":[{"name":"z"}],"resultType":"complete"}"#);
    let page = hubs.answer(list);
    assert!(names(&page) == ["b_z"] && page["result"].get("nextCursor").is_none(), "{page}");
    for cursor in ["", "[]", "[null,null]", "7"] {
        assert_eq!(hubs.ask("tools/list", json!({"cursor": cursor}))["error"]["code"], -32602, "{cursor}");
    }
}

#[test]
fn names_say_which_server() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    let call = hubs.send("tools/call", json!({"name": "b_t_u", "arguments": {"x": 1}, "odd": []}));
    let heard = hubs.heard(1, "tools/call");
    assert_eq!(heard["params"], json!({"name": "t_u", "arguments": {"x": 1}, "odd": []}));
    hubs.result(1, &heard, r#"{"content":[ 1 ]}"#);
    assert_eq!(hubs.answer(call)["result"]["content"], json!([1]));
    for name in ["t", "c_t", "", "b"] {
        assert_eq!(hubs.ask("tools/call", json!({"name": name}))["error"]["code"], -32602, "{name}");
    }
    let message = hubs.rigs.iter().map(|rig| rig.heard.len()).sum::<usize>();
    assert_eq!(message, 0);
}

#[test]
fn servers_whose_names_clash_are_refused() {
    let hub = |names: &[&str]| {
        let bridge = || Bridge::for_hosts(BridgeLimits::DEFAULT, |round| round);
        Hub::new(names.iter().map(|name| ((*name).to_owned(), bridge()))).map(drop)
    };
    assert!(hub(&["a", "b", "ab"]).is_ok() && hub(&["a_b", "a_c", "a-b"]).is_ok() && hub(&[""]).is_ok());
    for names in [["a", "a_b"], ["a b", "a.b"], ["", "a"], ["a_b", "a"]] {
        assert!(hub(&names).unwrap_err().contains("rename one"), "{names:?}");
    }
}

#[test]
fn a_server_that_is_away_does_not_hinder_the_others() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    let both = hubs.send("tools/list", json!({}));
    hubs.at(0, Rig::lose);
    // It may be there again at once.
    let waits = hubs.send("tools/call", json!({"name": "a_t"}));
    let first = hubs.heard(1, "tools/list");
    hubs.result(1, &first, r#"{"tools":[{"name":"x"}]}"#);
    assert_eq!(names(&hubs.answer(both)), ["b_x"]);
    let list = hubs.send("tools/list", json!({}));
    let second = hubs.heard(1, "tools/list");
    hubs.result(1, &second, r#"{"tools":[{"name":"x"}]}"#);
    assert!(hubs.got().is_empty());
    hubs.at(0, |rig| {
        rig.begin();
        rig.lose();
    });
    assert_eq!(names(&hubs.answer(list)), ["b_x"]);
    let changes = hubs.changes;
    hubs.at(0, Rig::up);
    assert!(hubs.changes > changes);
    let heard = hubs.heard(0, "tools/call");
    hubs.result(0, &heard, r#"{"content":[]}"#);
    assert!(hubs.answer(waits)["result"].is_object());
    let list = hubs.send("tools/list", json!({}));
    for at in [0, 1] {
        let heard = hubs.heard(at, "tools/list");
        hubs.result(at, &heard, r#"{"tools":[{"name":"x"}]}"#);
    }
    assert_eq!(names(&hubs.answer(list)), ["a_x", "b_x"]);
}

/// It is up, and says nothing: hosts get the lists of the others, at once while it owes one, and hear when it has answered.
#[test]
fn a_server_that_is_silent_does_not_hinder_the_others() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    let list = |hubs: &mut Hubs| {
        let list = hubs.send("tools/list", json!({}));
        let heard = hubs.heard(1, "tools/list");
        hubs.result(1, &heard, r#"{"tools":[{"name":"x"}]}"#);
        list
    };
    let first = list(&mut hubs);
    let owed = hubs.heard(0, "tools/list");
    hubs.at(0, |rig| rig.wait(9_999));
    assert!(hubs.got().is_empty());
    hubs.at(0, |rig| rig.wait(1));
    assert_eq!(names(&hubs.answer(first)), ["b_x"]);
    let second = list(&mut hubs);
    assert_eq!(names(&hubs.answer(second)), ["b_x"]);
    // Another list is not late.
    hubs.send("resources/list", json!({}));
    hubs.heard(0, "resources/list");
    let changes = hubs.changes;
    hubs.result(0, &owed, r#"{"tools":[]}"#);
    assert_eq!(hubs.changes, changes + 1);
    let third = list(&mut hubs);
    let heard = hubs.heard(0, "tools/list");
    hubs.result(0, &heard, r#"{"tools":[{"name":"x"}]}"#);
    assert_eq!(names(&hubs.answer(third)), ["a_x", "b_x"]);
}

/// A resource goes to the server whose list has shown it; another one to those that are left.
#[test]
fn resources_are_found() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    let list = hubs.send("resources/list", json!({}));
    for (at, uri) in ["r://one", "r://two"].into_iter().enumerate() {
        let heard = hubs.heard(at, "resources/list");
        hubs.result(at, &heard, &format!(r#"{{"resources":[{{"uri":"{uri}","name":"r"}}]}}"#));
    }
    assert_eq!(hubs.answer(list)["result"]["resources"][1]["uri"], "r://two");
    let read = hubs.send("resources/read", json!({"uri": "r://two"}));
    assert!(hubs.rigs[0].heard.is_empty());
    let heard = hubs.heard(1, "resources/read");
    hubs.refuse(1, &heard, -32002);
    assert_eq!(hubs.answer(read)["error"]["code"], -32002);
    let read = hubs.send("resources/read", json!({"uri": "r://three"}));
    let heard = hubs.heard(0, "resources/read");
    hubs.refuse(0, &heard, -32002);
    let heard = hubs.heard(1, "resources/read");
    hubs.result(1, &heard, r#"{"contents":[]}"#);
    assert!(hubs.answer(read)["result"].is_object());
    // An error that says something else is the answer.
    let read = hubs.send("resources/read", json!({"uri": "r://three"}));
    let heard = hubs.heard(0, "resources/read");
    hubs.refuse(0, &heard, -7);
    assert_eq!(hubs.answer(read)["error"]["code"], -7);
    assert!(hubs.rigs[1].heard.is_empty());
}

/// A transport that says that no argument is red.
struct NoRed;

impl TransportChecks for NoRed {
    fn arguments(&self, schema: Raw<'_>, arguments: Raw<'_>) -> Result<(), RpcError<'static>> {
        let is_red = arguments.get(schema.get("of").unwrap().text().unwrap().plain().unwrap());
        if is_red.is_some() { Err(RpcError::new(-32020, "red").refusing()) } else { Ok(()) }
    }
}

#[test]
fn headers_repeat_arguments() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    let list = |hubs: &mut Hubs, schema: &str| {
        let list = hubs.send("tools/list", json!({}));
        for at in [0, 1] {
            let heard = hubs.heard(at, "tools/list");
            hubs.result(at, &heard, &format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#));
        }
        hubs.answer(list);
    };
    let passes = |hubs: &mut Hubs| {
        let call = hubs.send("tools/call", json!({"name": "b_t", "arguments": {"red": 1}}));
        let Some(refused) = hubs.got().pop() else {
            let heard = hubs.heard(1, "tools/call");
            hubs.result(1, &heard, r#"{"content":[]}"#);
            assert!(hubs.answer(call)["result"].is_object());
            return true;
        };
        assert!(refused["error"]["code"] == -32020 && hubs.rigs[1].heard.is_empty(), "{refused}");
        false
    };
    // No list has shown the tool.
    assert!(passes(&mut hubs));
    list(&mut hubs, r#"{"of":"red","x-mcp-header":1}"#);
    assert!(!passes(&mut hubs));
    // The last list holds.
    list(&mut hubs, r#"{"of":"red"}"#);
    assert!(passes(&mut hubs));
    list(&mut hubs, r#"{"of":"red","x\u002dmcp-header":1}"#);
    assert!(!passes(&mut hubs));
    // Beyond the limit.
    list(&mut hubs, &format!(r#"{{"of":"red","x-mcp-header":"{}"}}"#, "x".repeat(1000)));
    assert!(passes(&mut hubs));
}

#[test]
fn questions_and_cancellations_are_routed() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    hubs.send("tools/call", json!({"name": "b_t"}));
    hubs.heard(1, "tools/call");
    hubs.at(1, |rig| rig.serve(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{}}"#));
    assert_eq!(hubs.got().remove(0)["method"], "roots/list");
    assert!(hubs.rigs[0].heard.is_empty());
    assert_eq!(hubs.rigs[1].heard.pop().unwrap()["result"], json!({"roots": []}));
    let list = hubs.send("tools/list", json!({}));
    hubs.rigs.iter_mut().for_each(|rig| rig.heard.clear());
    hubs.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{list}}}}}"#));
    for at in [0, 1] {
        hubs.heard(at, "notifications/cancelled");
    }
    assert!(hubs.got().is_empty());
}

#[test]
fn tools_are_selected_by_the_names_that_hosts_see() {
    let filter = ToolFilter { only: vec!["a_*".into(), "b_x".into()], deny: vec!["a_x".into()], read_only: false };
    let mut hubs = Hubs::new([OLD, OLD], filter);
    let list = hubs.send("tools/list", json!({}));
    for at in [0, 1] {
        let heard = hubs.heard(at, "tools/list");
        hubs.result(at, &heard, r#"{"tools":[{"name":"x"},{"name":"y"}]}"#);
    }
    assert_eq!(names(&hubs.answer(list)), ["a_y", "b_x"]);
    assert_eq!(hubs.ask("tools/call", json!({"name": "a_x"}))["error"]["code"], -32602);
    hubs.send("tools/call", json!({"name": "a_y"}));
    assert_eq!(hubs.heard(0, "tools/call")["params"]["name"], "y");
}

/// The server that agrees to a subscription has it alone; all get the level.
#[test]
fn what_the_host_sets() {
    let mut hubs = Hubs::new([OLD, OLD], ToolFilter::default());
    let uri = json!({"uri": "r://b"});
    hubs.send("resources/subscribe", uri.clone());
    let heard = hubs.rigs[0].one("resources/subscribe");
    let unknown = json!({"jsonrpc": "2.0", "id": heard["id"], "error": {"code": -32002, "message": "Unknown"}});
    hubs.at(0, |rig| rig.serve(&unknown.to_string()));
    let heard = hubs.rigs[1].one("resources/subscribe");
    hubs.at(1, |rig| rig.result(&heard, "{}"));
    assert_eq!(hubs.got()[0]["result"], json!({}));
    let uris: Vec<_> = hubs.server.subscribed_uris().map(String::from).collect();
    assert_eq!(uris, ["r://b"]);
    hubs.hub.subscribed(uris.iter().map(|uri| &**uri));
    hubs.pump();
    assert!(hubs.rigs.iter().all(|rig| rig.heard.is_empty()));
    assert_eq!(hubs.ask("resources/unsubscribe", uri)["result"], json!({}));
    hubs.hub.subscribed([].into_iter());
    hubs.pump();
    hubs.rigs[1].one("resources/unsubscribe");
    assert_eq!(hubs.ask("logging/setLevel", json!({"level": "none"}))["error"]["code"], -32602);
    assert_eq!(hubs.ask("logging/setLevel", json!({"level": "error"}))["result"], json!({}));
    for rig in &mut hubs.rigs {
        assert_eq!(rig.one("logging/setLevel")["params"]["level"], "error");
    }
}
