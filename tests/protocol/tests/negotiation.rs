//! The opening of connections: each pair of revisions, both eras, and all errors.
use crate::common;

use common::*;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::Service;

fn serving(revisions: Revisions) -> Rig {
    Rig::new().serving(everything::service().revisions(revisions))
}

fn set(bits: u32) -> (Revisions, Vec<&'static str>) {
    let chosen = Revision::ALL.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
    chosen.fold((Revisions::NONE, Vec::new()), |(set, mut names), (_, revision)| {
        names.push(revision.date());
        (set.with(revision), names)
    })
}

/// `initialize` with every version against servers of every set of revisions.
// spec: B082 B083 B090 B115 B116 B117 B208
#[test]
fn initialize_with_every_version_against_every_set() {
    for bits in 1..1 << REVISIONS.len() {
        let (revisions, names) = set(bits);
        let supported: Vec<_> = names.iter().filter(|name| is_modern(name)).collect();
        let newest = names.iter().rfind(|name| !is_modern(name));
        for asked in REVISIONS.into_iter().chain(["1999-01-01", "", "2025-11-25 ", "DRAFT"]) {
            let served = !is_modern(asked) && names.contains(&asked);
            let expected = if served { Some(&asked) } else { newest };
            // 2026-07-28 has no such request, so the schemas cannot judge the answer.
            let mut rig = if expected.is_none() { serving(revisions).unjudged() } else { serving(revisions) };
            let reply = rig.one(&initialize(asked, json!({})));
            match expected {
                Some(version) => {
                    assert_eq!(parse(&reply)["result"]["protocolVersion"], **version, "{asked} of {names:?}");
                    let listed = rig.one(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
                    assert!(parse(&listed)["result"]["tools"].is_array(), "{listed}");
                    // A second `initialize` changes nothing.
                    assert_eq!(code(&rig.one(&initialize("2024-11-05", json!({})))), -32600);
                    assert_eq!(rig.session.server.peer.revision().map(Revision::date), Some(*version));
                }
                None => {
                    let error = &parse(&reply)["error"];
                    assert_eq!(error["code"], -32022, "{asked} of {names:?}");
                    assert_eq!(error["data"], json!({"supported": supported, "requested": asked}));
                    assert!(
                        error["message"].as_str().unwrap().contains("2026-07-28"),
                        "clients show it alone: {reply}"
                    );
                    assert_eq!(rig.session.server.peer.revision(), None);
                }
            }
        }
    }
}

/// A retry with any of the supported versions succeeds. A server without stateless revisions does not mention them.
// spec: B002 B213
#[test]
fn stateless_requests_with_every_version_against_every_set() {
    for bits in 1..1 << REVISIONS.len() {
        let (revisions, names) = set(bits);
        let supported: Vec<_> = names.iter().filter(|name| is_modern(name)).collect();
        let modern = !supported.is_empty();
        for asked in REVISIONS.into_iter().chain(["1999-01-01", "", "DRAFT"]) {
            for method in ["server/discover", "tools/list"] {
                let mut rig = serving(revisions);
                let meta = json!({"io.modelcontextprotocol/protocolVersion": asked,
                    "io.modelcontextprotocol/clientCapabilities": {}});
                let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).to_string();
                let mut rig_unjudged = serving(revisions).unjudged();
                let reply = if modern { rig.one(&line) } else { rig_unjudged.one(&line) };
                let context = format!("{method} {asked} of {names:?}: {reply}");
                if !modern {
                    let expected = if method == "tools/list" { -32602 } else { -32601 };
                    assert_eq!(code(&reply), expected, "{context}");
                } else if supported.contains(&&asked) {
                    assert_eq!(parse(&reply)["result"]["resultType"], "complete", "{context}");
                } else {
                    let error = &parse(&reply)["error"];
                    assert_eq!(error["code"], -32022, "{context}");
                    assert_eq!(error["data"], json!({"supported": supported, "requested": asked}), "{context}");
                }
            }
        }
    }
}

#[test]
fn a_broken_initialize_leaves_nothing() {
    let info = json!({"name": "c", "version": "1"});
    let broken = [
        json!({}),
        json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
        json!({"protocolVersion": "2025-06-18", "clientInfo": info}),
        json!({"capabilities": {}, "clientInfo": info}),
        json!({"protocolVersion": 20250618, "capabilities": {}, "clientInfo": info}),
        json!({"protocolVersion": "2025-06-18", "capabilities": [], "clientInfo": info}),
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": "c"}),
    ];
    let mut rig = Rig::new();
    for params in broken {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
        assert_eq!(code(&rig.one(&line)), -32602, "{line}");
        assert_eq!(code(&rig.one(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#)), -32602);
        assert_eq!(rig.session.server.peer.revision(), None);
    }
    let mut rig = rig.opened("2025-06-18");
    assert_eq!(text(&rig.one(&call("2025-06-18", 1, "add", json!({"a": 1, "b": 1})))), "2");
}

/// Members inside `clientInfo` are not checked, and a capability that is no object counts as absent.
#[test]
fn an_initialize_that_lacks_little() {
    for revision in LEGACY {
        for (info, capabilities) in
            [(json!({"name": "c"}), json!({})), (json!({}), json!({})), (json!({"name": "c"}), json!({"roots": null}))]
        {
            let mut rig = Rig::new();
            let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info});
            let line = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
            assert_eq!(parse(&rig.one(&line))["result"]["protocolVersion"], revision, "{line}");
            assert_eq!(text(&rig.one(&call(revision, 2, "add", json!({"a": 1, "b": 1})))), "2");
        }
    }
}

/// Before any era: the requests that are served, and the errors of the others. No message ends the server.
// spec: B089
#[test]
fn before_any_era() {
    let plain = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).to_string();
    let mut rig = Rig::new();
    assert_eq!(rig.one(&plain("ping")), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let known = [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "server/discover",
        "subscriptions/listen",
    ];
    for method in known {
        let reply = rig.one(&plain(method));
        assert_eq!(code(&reply), -32602, "{method}");
        assert!(reply.contains("initialize") && reply.contains("_meta"), "both ways in: {reply}");
    }
    for method in ["demo/hello", "tasks/list", "", "Tools/List", "notifications/initialized"] {
        assert_eq!(code(&rig.one(&plain(method))), -32601, "{method}");
    }
    assert!(rig.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty());
    assert_eq!(code(&rig.one("[]")), -32600);
    assert_eq!(code(&rig.one("nonsense")), -32700);
    assert!(!rig.one("nonsense").contains("\"id\""), "no id before any era");
    rig.opened("2024-11-05");
}

/// A server of the newest revision alone judges each message by that revision.
// spec: B047 B208
#[test]
fn without_a_handshake() {
    let mut rig = serving(Revisions::NONE.with(Revision::LATEST)).unjudged();
    let plain = |method: &str| json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {}}).to_string();
    for method in ["ping", "tools/list", "logging/setLevel", "server/discover", "foo/bar", "subscriptions/listen"] {
        let reply = rig.one(&plain(method));
        assert_eq!((code(&reply), &parse(&reply)["id"]), (-32602, &json!(3)), "{method}");
        assert!(reply.contains("_meta") && !reply.contains("initialize"), "the only way in: {reply}");
    }
    let broken = rig.one(&plain("initialize"));
    assert_eq!(parse(&broken)["error"]["data"], json!({"supported": [MODERN], "requested": ""}));
    assert_eq!(code(&rig.one(&request(MODERN, 1, "initialize", json!({})))), -32601);
    assert_eq!(code(&rig.one(&request(MODERN, 1, "ping", json!({})))), -32601);
    assert_eq!(text(&rig.one(&call(MODERN, 1, "add", json!({"a": 1, "b": 1})))), "2");
}

/// Once answered, requests are served before `initialized`, and the name without its prefix is understood.
// spec: B100
#[test]
fn requests_before_initialized() {
    for revision in LEGACY {
        let mut rig = Rig::new();
        rig.one(&initialize(revision, all_capabilities(revision)));
        // Changes are announced only after the client is ready.
        rig.session.server.publish(mcp_sansio::server::ServerChange::Tools);
        assert!(rig.say(r#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#).is_empty());
        assert_eq!(rig.one(&request(revision, 1, "ping", json!({}))), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let level = request(revision, 1, "logging/setLevel", json!({"level": "error"}));
        let lines = rig.say(&level);
        assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(lines[1], r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, "{revision}");
        let mut rig = Rig::new();
        rig.one(&initialize(revision, json!({})));
        rig.session.server.publish(mcp_sansio::server::ServerChange::Tools);
        assert_eq!(rig.say(r#"{"jsonrpc":"2.0","method":"initialized"}"#).len(), 1);
    }
}

/// Both eras on one connection, in any order.
#[test]
fn both_eras_on_one_connection() {
    for legacy in LEGACY {
        let mut rig = Rig::new();
        for round in 0..2 {
            let reply = rig.one(&call(MODERN, format!("m{round}"), "contents", json!({})));
            assert_eq!(parse(&reply)["result"]["resultType"], "complete");
            if round == 0 {
                rig.one(&initialize(legacy, all_capabilities(legacy)));
            } else {
                assert_eq!(code(&rig.one(&initialize(legacy, json!({})))), -32600);
            }
            let reply = rig.one(&call(legacy, round + 1, "contents", json!({})));
            assert!(parse(&reply)["result"].get("resultType").is_none());
        }
        // The same id may not be in flight in both eras: they share the connection.
        assert!(rig.say(&call(MODERN, 9, "later", json!({"tag": "x"}))).is_empty());
        assert_eq!(code(&rig.one(&call(legacy, 9, "add", json!({"a": 1, "b": 1})))), -32600);
        // Removed methods are unknown with `_meta`, and exist without it.
        assert_eq!(code(&rig.one(&request(MODERN, 10, "ping", json!({})))), -32601);
        rig.one(&request(legacy, 10, "ping", json!({})));
        assert_eq!(code(&rig.one(&request(legacy, 10, "server/discover", json!({})))), -32601);
    }
}

/// The capabilities and subscriptions of a handshake do not apply to stateless requests on the same connection, and
/// the other way round.
// spec: B077 C003
#[test]
fn eras_keep_their_capabilities_apart() {
    for (legacy, able, bare) in LEGACY.map(|legacy| (legacy, all_capabilities(legacy), json!({}))) {
        let mut rig = Rig::new().opened_by(legacy, able.clone());
        rig.one(&request(legacy, 1, "logging/setLevel", json!({"level": "debug"})));
        let roots =
            |capabilities: &Value| request_of(MODERN, 2, "tools/call", json!({"name": "roots"}), capabilities.clone());
        assert_eq!(code(&rig.one(&roots(&bare))), -32021, "{legacy}");
        assert_eq!(rig.say(&call(MODERN, 3, "gossip", json!({}))).len(), 1, "no log messages");
        let mut rig = Rig::new().opened_by(legacy, bare);
        assert!(rig.one(&roots(&able)).contains("inputRequests"), "{legacy}");
        assert!(rig.one(&call(legacy, 4, "roots", json!({}))).contains("\"isError\":true"), "{legacy}");
        let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
        let modern = rig.say(&request(MODERN, 5, "tools/call", json!({"name": "gossip", "_meta": meta})));
        let said = rig.say(&call(legacy, 6, "gossip", json!({})));
        assert_eq!((modern.len(), said.len()), (9, 8), "{legacy}: debug was asked for by the one request alone");
    }
}

/// The client's name, or a missing name, changes nothing.
// spec: B053
#[test]
fn names_change_nothing() {
    let infos = [
        Some(json!({"name": "tests", "version": "1"})),
        Some(json!({"name": "inspector", "version": "", "title": "x", "more": [1]})),
        Some(json!({"name": "", "version": "99.0.0"})),
        None,
    ];
    for revision in REVISIONS {
        let mut seen: Vec<Vec<String>> = Vec::new();
        for info in &infos {
            // `initialize` must have one.
            if !is_modern(revision) && info.is_none() {
                continue;
            }
            let mut rig = Rig::new();
            let mut said = Vec::new();
            if !is_modern(revision) {
                let opening = initialize(revision, all_capabilities(revision));
                let info = info.as_ref().unwrap().to_string();
                said.push(rig.one(&opening.replace(r#"{"name":"tests","version":"1"}"#, &info)));
                rig.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            }
            for (id, (method, params)) in [
                ("tools/list", json!({})),
                ("tools/call", json!({"name": "contents"})),
                ("tools/call", json!({"name": "sample"})),
                ("resources/read", json!({"uri": "test://text"})),
                ("prompts/list", json!({})),
            ]
            .into_iter()
            .enumerate()
            {
                let mut params = params;
                if let Some(info) = info.as_ref().filter(|_| is_modern(revision)) {
                    params["_meta"] = json!({"io.modelcontextprotocol/clientInfo": info});
                }
                said.extend(rig.say(&request(revision, id + 10, method, params)));
            }
            seen.push(said);
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]) && seen[0].len() >= 5, "{revision} {seen:?}");
    }
}

/// The order of checks in 2026-07-28: each request also has all errors that are checked later.
#[test]
fn order_of_checks() {
    let (version, capabilities) =
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
    let level = "io.modelcontextprotocol/logLevel";
    let mut rig = Rig::new().serving(Service::new("bare", "1").tools(&everything::TOOLS)).unjudged();
    let rows = [
        (json!({"jsonrpc": "1.0", "id": 1, "method": "x", "params": {"_meta": {version: "1"}}}), -32600),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {version: "1", level: "x"}}}), -32602),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {version: 1, capabilities: {}}}}),
            -32602,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {version: "1", capabilities: 1}}}),
            -32602,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "x",
            "params": {"_meta": {version: "1", capabilities: {}, level: "x"}}}),
            -32022,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read",
            "params": {"_meta": {version: MODERN, capabilities: {}, level: "x"}}}),
            -32601,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "none", "_meta": {version: MODERN, capabilities: {}, level: "x"}}}),
            -32602,
        ),
    ];
    for (line, expected) in rows {
        let reply = rig.one(&line.to_string());
        assert_eq!(code(&reply), expected, "{line}\n{reply}");
    }
    let wrong = json!({"_meta": {version: MODERN, capabilities: {}, "io.modelcontextprotocol/clientInfo": "me"}});
    assert_eq!(
        code(&rig.one(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": wrong}).to_string())),
        -32602
    );
}

/// The methods of an undeclared capability are -32601 in each revision, also completion in 2024-11-05, which has no key for it.
// spec: S006 S020 S037 S096 S101
#[test]
fn capabilities_that_are_not_declared() {
    let gated = [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ];
    let legacy = ["resources/subscribe", "resources/unsubscribe", "logging/setLevel"];
    for revision in REVISIONS {
        let bare = Service::new("bare", "1");
        let mut rig = Rig::new().serving(bare);
        let opened = if is_modern(revision) {
            rig.one(&request(revision, 0, "server/discover", json!({})))
        } else {
            rig.one(&initialize(revision, json!({})))
        };
        assert_eq!(parse(&opened)["result"]["capabilities"], json!({}), "{revision}");
        let of_revision = legacy.iter().filter(|_| !is_modern(revision));
        for method in gated.iter().chain(of_revision) {
            let reply = rig.one(&request(revision, 1, method, json!({})));
            assert_eq!(code(&reply), -32601, "{revision} {method}");
        }
    }
}

/// Subscribing needs its own capability; log messages need theirs.
// spec: S007 S008 S016 S021 S039 S119
#[test]
fn parts_of_capabilities() {
    let service = || Service::new("parts", "1").resources(&everything::RESOURCES).tools(&everything::TOOLS);
    let mut rig = Rig::new().serving(service()).opened("2025-06-18");
    let subscribe = request("2025-06-18", 1, "resources/subscribe", json!({"uri": "test://text"}));
    assert_eq!(code(&rig.one(&subscribe)), -32601);
    assert_eq!(rig.say(&call("2025-06-18", 2, "gossip", json!({}))).len(), 1, "no log messages");
    let mut rig = Rig::new().serving(service().feature(ServerCapability::Subscribe)).opened("2025-06-18");
    assert_eq!(rig.one(&subscribe), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    // A part declares its whole capability.
    for (part, whole, list) in [
        (ServerCapability::ToolsChanged, json!({"tools": {"listChanged": true}}), "tools/list"),
        (ServerCapability::PromptsChanged, json!({"prompts": {"listChanged": true}}), "prompts/list"),
        (ServerCapability::ResourcesChanged, json!({"resources": {"listChanged": true}}), "resources/list"),
        (ServerCapability::Subscribe, json!({"resources": {"subscribe": true}}), "resources/templates/list"),
    ] {
        for revision in REVISIONS {
            let mut rig = Rig::new().serving(Service::new("part", "1").feature(part));
            let opening = match revision {
                modern if is_modern(modern) => request(modern, 0, "server/discover", json!({})),
                _ => initialize(revision, json!({})),
            };
            assert_eq!(parse(&rig.one(&opening))["result"]["capabilities"], whole, "{revision}");
            let listed = parse(&rig.one(&request(revision, 1, list, json!({}))));
            assert!(listed["result"].is_object(), "{listed}");
        }
    }
    // A subscription is always served, for the declared part.
    let mut rig = Rig::new().serving(service());
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://text"]});
    let reply = rig.one(&request(MODERN, 1, "subscriptions/listen", json!({"notifications": filter})));
    assert_eq!(parse(&reply)["params"]["notifications"], json!({}));
}
