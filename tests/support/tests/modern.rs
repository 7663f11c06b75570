//! Messages of 2026-07-28, good and bad.

mod common;
use common::*;
use mcp_sansio_test_support::Oracle;
use serde_json::Value;

/// [`Oracle::server_answers`], or that of clients.
type Sends = fn(&Oracle, &str, &dyn Fn(&Value) -> Option<String>, &[u8]) -> Result<(), String>;

const CACHED: &str = r#""ttlMs":0,"cacheScope":"private""#;

/// A complete answer.
fn complete(method: &str, members: &str) -> Result<(), String> {
    answer(E, method, &result("complete", members))
}

#[test]
fn requests_carry_their_meta() {
    good(client(E, &modern("server/discover", "")));
    good(client(E, &modern("tools/call", r#""name":"t","arguments":{}"#)));
    good(client(
        E,
        &modern(
            "subscriptions/listen",
            r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}"#,
        ),
    ));
    bad(
        client(E, &modern("subscriptions/listen", r#""notifications":{"toolsChanged":true}"#)),
        "SubscriptionFilter.toolsChanged",
    );
    bad(client(E, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), "protocolVersion is null");
    bad(client(E, &modern("tools/list", "").replace("2026-07-28", "2025-11-25")), "protocolVersion is \"2025-11-25\"");
    bad(
        client(E, &modern("tools/list", "").replace("clientCapabilities\":{}", "clientCapabilities\":1")),
        "clientCapabilities is no object",
    );
    bad(
        client(E, &modern("tools/list", "").replace("Capabilities\":{}", "Capabilities\":{\"tasks\":{}}")),
        "ClientCapabilities.tasks",
    );
    for gone in ["ping", "initialize", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"] {
        bad(client(E, &modern(gone, "")), "a Client does not send");
    }
    bad(server(E, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), "a modern server sends no requests");
    bad(server(E, r#"{"jsonrpc":"2.0","id":1,"method":"acme/own"}"#), "a modern server sends no requests");
    bad(
        client(E, r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#),
        "a modern client sends no responses",
    );
    bad(
        client(E, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}"#),
        "a modern client sends no responses",
    );
}

#[test]
fn results_say_what_they_are() {
    good(complete("completion/complete", r#""completion":{"values":[]}"#));
    bad(answer(E, "completion/complete", r#"{"completion":{"values":[]}}"#), "resultType is None");
    bad(
        answer(E, "completion/complete", &result("done", r#""completion":{"values":[]}"#)),
        "resultType is Some(\"done\")",
    );
    let unnamed = r#"{"resultType":"complete","completion":{"values":[]}}"#;
    bad(answer(E, "completion/complete", unnamed), "no _meta io.modelcontextprotocol/serverInfo");
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{unnamed}}}"#);
    good(Oracle::new().without_server_info().server_sends(E, Some("completion/complete"), line.as_bytes()));
    bad(complete("ping", ""), "a Client does not ask ping in 2026-07-28");
    let odd = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","vendor":"v"}},"completion":{"values":[]}}"#;
    bad(answer(E, "completion/complete", odd), "Implementation.vendor");
}

#[test]
fn only_six_answers_are_cached() {
    let lists = [
        ("tools/list", r#""tools":[]"#),
        ("prompts/list", r#""prompts":[]"#),
        ("resources/list", r#""resources":[]"#),
        ("resources/templates/list", r#""resourceTemplates":[]"#),
        ("resources/read", r#""contents":[]"#),
        ("server/discover", r#""supportedVersions":["2026-07-28"],"capabilities":{}"#),
    ];
    for (method, members) in lists {
        good(complete(method, &format!("{members},{CACHED}")));
        bad(complete(method, members), "ttlMs is null");
        bad(complete(method, &format!(r#"{members},"ttlMs":-1,"cacheScope":"private""#)), "ttlMs is -1");
        bad(complete(method, &format!(r#"{members},"ttlMs":1,"cacheScope":"shared""#)), "cacheScope is \"shared\"");
    }
    for (method, members) in [("tools/call", r#""content":[],"isError":false"#), ("prompts/get", r#""messages":[]"#)] {
        good(complete(method, members));
        bad(complete(method, &format!("{members},{CACHED}")), "ttlMs in a result that cannot be cached");
    }
    let asking = format!(r#""requestState":"s",{CACHED}"#);
    bad(answer(E, "resources/read", &result("input_required", &asking)), "cannot be cached");
}

#[test]
fn discovery_names_stateless_versions() {
    let found = |versions: &str| {
        complete(
            "server/discover",
            &format!(r#""supportedVersions":[{versions}],"capabilities":{{"tools":{{}}}},{CACHED}"#),
        )
    };
    good(found(r#""2026-07-28""#));
    bad(found(r#""2026-07-28","2025-11-25""#), "not served statelessly");
    bad(found(""), "supportedVersions is empty");
    bad(complete("server/discover", CACHED), "supportedVersions is no array");
}

#[test]
fn tool_results() {
    good(complete("tools/call", r#""content":[],"isError":true,"structuredContent":[1,"a",null]"#));
    bad(complete("tools/call", r#""content":[]"#), "without isError");
    bad(complete("tools/call", r#""isError":false"#), "rust-mcp-schema");
    bad(complete("tools/call", r#""content":[{"type":"text","txt":"x"}],"isError":false"#), "TextContent.txt");
    let tool = |m: &str| {
        complete(
            "tools/list",
            &format!(r#""tools":[{{"name":"t","inputSchema":{{"type":"object","oneOf":[]}}{m}}}],{CACHED}"#),
        )
    };
    good(tool(r#","outputSchema":{"type":"array"},"icons":[{"src":"data:,x"}]"#));
    bad(tool(r#","execution":{}"#), "Tool.execution");
}

#[test]
fn input_required() {
    let ask = |method: &str, members: &str| answer(E, method, &result("input_required", members));
    let elicit = r#""inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"number","default":0.5}}}}}}"#;
    let roots = r#""inputRequests":{"k":{"method":"roots/list"}}"#;
    let sample = r#""inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"maxTokens":9}}}"#;
    for method in ["tools/call", "prompts/get", "resources/read"] {
        for members in [elicit, roots, sample, r#""requestState":"s""#] {
            good(ask(method, members));
        }
    }
    bad(ask("tools/list", roots), "tools/list cannot ask for input");
    bad(ask("tools/call", ""), "asks nothing");
    bad(ask("tools/call", r#""requestState":"s","isError":false"#), "InputRequiredResult.isError");
    bad(ask("tools/call", r#""inputRequests":{"k":{"method":"ping"}}"#), "inputRequests may not hold \"ping\"");
    bad(
        ask("tools/call", r#""inputRequests":{"k":{"jsonrpc":"2.0","id":1,"method":"roots/list"}}"#),
        "input request.jsonrpc",
    );
    bad(ask("tools/call", &elicit.replace("form", "url")), "rust-mcp-schema");
    bad(
        ask("tools/call", &elicit.replace(r#""message":"m""#, r#""message":"m","elicitationId":"e""#)),
        "params.elicitationId is not known in 2026-07-28",
    );
}

#[test]
fn input_responses() {
    let retry = |answers: &str| {
        client(E, &modern("tools/call", &format!(r#""name":"t","inputResponses":{{{answers}}},"requestState":"s""#)))
    };
    good(retry(r#""a":{"action":"accept","content":{"n":95.5}},"b":{"roots":[{"uri":"file:///x"}]}"#));
    good(retry(r#""c":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"endTurn"}"#));
    bad(retry(r#""a":{"action":"decline","resultType":"complete"}"#), "ElicitResult.resultType");
    bad(retry(r#""b":{"roots":[],"resultType":"complete"}"#), "ListRootsResult.resultType");
    bad(retry(r#""a":{"action":"accept","content":{"n":{}}}"#), "schema");
    bad(client(E, &modern("tools/list", r#""requestState":"s""#)), "params.requestState");
}

#[test]
fn notifications() {
    let note = |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#);
    let id = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"l"}"#;
    for name in [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    ] {
        good(server(E, &note(name, id)));
        bad(server(E, &note(name, "")), "names no io.modelcontextprotocol/subscriptionId");
    }
    good(server(E, &note("notifications/resources/updated", &format!(r#""uri":"file:///x",{id}"#))));
    bad(server(E, &note("notifications/resources/updated", r#""uri":"file:///x""#)), "subscriptionId");
    good(server(E, &note("notifications/subscriptions/acknowledged", &format!(r#""notifications":{{}},{id}"#))));
    bad(server(E, &note("notifications/subscriptions/acknowledged", id)), "rust-mcp-schema");
    good(server(E, &note("notifications/progress", r#""progressToken":1,"progress":1,"message":"m""#)));
    bad(client(E, &note("notifications/progress", r#""progressToken":1,"progress":1"#)), "a Client does not send");
    good(client(E, &note("notifications/cancelled", r#""requestId":1"#)));
    bad(client(E, &note("notifications/cancelled", "")), "rust-mcp-schema");
    let cancels = note("notifications/cancelled", r#""requestId":1"#);
    good(server(E, &cancels));
    let about = |sender: Sends, revision, method: &str| {
        let method_of = |id: &Value| (*id == 1).then(|| method.to_owned());
        sender(&Oracle::new(), revision, &method_of, cancels.as_bytes())
    };
    good(about(Oracle::server_answers, E, "subscriptions/listen"));
    bad(about(Oracle::server_answers, E, "tools/call"), "a modern server cancels tools/call, which is not a listen");
    good(about(Oracle::server_answers, D, "tools/call"));
    good(about(Oracle::client_answers, E, "tools/call"));
    good(server(E, &note("notifications/message", r#""level":"info","data":1"#)));
    for gone in ["notifications/initialized", "notifications/roots/list_changed"] {
        bad(client(E, &note(gone, "")), "a Client does not send");
    }
    bad(server(E, &note("notifications/elicitation/complete", r#""elicitationId":"e""#)), "does not send");
    bad(server(E, &note("notifications/tasks", "")), "nothing about tasks");
}

#[test]
fn a_listen_ends_with_its_id() {
    let end = |meta: &str| {
        answer(
            E,
            "subscriptions/listen",
            &format!(
                r#"{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}}{meta}}}}}"#
            ),
        )
    };
    good(end(r#","io.modelcontextprotocol/subscriptionId":7"#));
    bad(end(""), "the end of a listen names no");
}

#[test]
fn errors() {
    good(error(E, r#"{"code":-32602,"message":"x","data":{"uri":"file:///x"}}"#));
    good(error(E, r#"{"code":-32020,"message":"x"}"#));
    good(error(E, r#"{"code":-32021,"message":"x","data":{"requiredCapabilities":{"sampling":{}}}}"#));
    bad(error(E, r#"{"code":-32021,"message":"x"}"#), "-32021 without data.requiredCapabilities");
    good(error(E, r#"{"code":-32022,"message":"x","data":{"requested":"2030-01-01","supported":["2026-07-28"]}}"#));
    bad(
        error(E, r#"{"code":-32022,"message":"x","data":{"supported":["2026-07-28"]}}"#),
        "-32022 without data.requested",
    );
    bad(
        error(E, r#"{"code":-32022,"message":"x","data":{"requested":"x","supported":["2025-11-25"]}}"#),
        "not served statelessly",
    );
    for code in [-32002, -32042, -32001, -32003, -32004, -32000, -32023, -32099] {
        bad(error(E, &format!(r#"{{"code":{code},"message":"x"}}"#)), "does not send the code");
    }
    if Oracle::new().schemas_present() {
        bad(
            error(E, r#"{"code":-32021,"message":"x","data":{"requiredCapabilities":{"sampling":1}}}"#),
            "schema MissingRequiredClientCapabilityError",
        );
        bad(
            error(E, r#"{"code":-32022,"message":"x","data":{"requested":1,"supported":[]}}"#),
            "schema UnsupportedProtocolVersionError",
        );
    }
}

/// `JSONValue` of the official schema has neither `null` nor fractions.
#[test]
fn null_and_fractions_in_free_objects() {
    let free = r#""experimental":{"x":{"a":null,"b":[1.5]}},"extensions":{"a.b/c":{"d":{"e":null}}}"#;
    good(complete(
        "server/discover",
        &format!(r#""supportedVersions":["2026-07-28"],"capabilities":{{{free}}},{CACHED}"#),
    ));
    good(client(E, &modern("tools/list", "").replace("Capabilities\":{}", &format!("Capabilities\":{{{free}}}"))));
    good(error(E, &format!(r#"{{"code":-32021,"message":"x","data":{{"requiredCapabilities":{{{free}}}}}}}"#)));
    let sample = r#""inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9,"metadata":{"a":null,"b":0.5}}}}"#;
    good(answer(E, "tools/call", &result("input_required", sample)));
    bad(
        complete("server/discover", r#""supportedVersions":["2026-07-28"],"capabilities":{"experimental":{"x":null}}"#),
        "rust-mcp-schema",
    );
}
