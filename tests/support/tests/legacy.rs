//! Messages of the four revisions with a handshake, good and bad.

mod common;
use common::*;
use mcp_sansio_test_support::Oracle;

#[test]
fn handshake() {
    for revision in LEGACY {
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{"listChanged":true}},"sampling":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        );
        good(client(revision, &hello));
        bad(server(revision, &hello), "a Server does not send initialize");
        let welcome = |version: &str, capabilities: &str, info: &str| {
            format!(
                r#"{{"protocolVersion":"{version}","capabilities":{{{capabilities}}},"serverInfo":{{"name":"s","version":"1"{info}}},"instructions":"x"}}"#
            )
        };
        let some = r#""tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{},"experimental":{"x":{}}"#;
        good(answer(revision, "initialize", &welcome(revision, some, "")));
        bad(answer(revision, "initialize", &welcome(E, "", "")), "initialize is answered with \"2026-07-28\"");
        bad(answer(revision, "initialize", &welcome(revision, r#""tasks":{}"#, "")), "ServerCapabilities.tasks");
        let extended = answer(revision, "initialize", &welcome(revision, r#""extensions":{}"#, ""));
        match revision {
            D => good(extended),
            _ => bad(extended, "ServerCapabilities.extensions"),
        }
        bad(answer(revision, "initialize", &welcome(revision, r#""tool":{}"#, "")), "not known in any revision");
        bad(
            answer(revision, "initialize", &welcome(revision, r#""logging":{"level":1}"#, "")),
            "an empty object.level",
        );
        bad(answer(revision, "initialize", r#"{"protocolVersion":"x"}"#), "rust-mcp-schema");
        good(client(revision, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        bad(server(revision, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), "a Server does not send");
    }
    let with = |revision, members: &str| {
        answer(
            revision,
            "initialize",
            &format!(
                r#"{{"protocolVersion":"{revision}","capabilities":{{"completions":{{}}}},"serverInfo":{{"name":"s","version":"1"{members}}}}}"#
            ),
        )
    };
    bad(with(A, ""), "ServerCapabilities.completions is not known in 2024-11-05");
    good(with(B, ""));
    bad(with(B, r#","title":"S""#), "Implementation.title is not known in 2025-03-26");
    good(with(C, r#","title":"S""#));
    bad(with(C, r#","icons":[]"#), "Implementation.icons");
    bad(with(C, r#","websiteUrl":"https://x.example""#), "Implementation.websiteUrl");
    good(with(
        D,
        r#","title":"S","icons":[{"src":"https://x.example/i.png","theme":"dark"}],"websiteUrl":"https://x.example","description":"d""#,
    ));
    bad(with(D, r#","icons":[{"src":"https://x.example/i.png","colour":"red"}]"#), "Icon.colour");
}

#[test]
fn empty_results_are_empty() {
    for revision in LEGACY {
        for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
            good(answer(revision, method, "{}"));
            bad(answer(revision, method, r#"{"_meta":{}}"#), "{} exactly");
            bad(answer(revision, method, r#"{"ok":true}"#), "{} exactly");
        }
        good(client_answer(revision, "ping", "{}"));
        bad(client_answer(revision, "ping", r#"{"x":1}"#), "{} exactly");
    }
}

#[test]
fn nothing_modern_in_results() {
    for revision in LEGACY {
        for members in [
            r#""resultType":"complete""#,
            r#""ttlMs":0"#,
            r#""cacheScope":"private""#,
            r#""inputRequests":{}"#,
            r#""requestState":"s""#,
        ] {
            let name = members.split('"').nth(1).unwrap();
            bad(
                answer(revision, "tools/list", &format!(r#"{{"tools":[],{members}}}"#)),
                &format!("{name} in a legacy result"),
            );
            // The same for a method that the oracle does not know.
            bad(answer(revision, "x/y", &format!("{{{members}}}")), &format!("{name} in a legacy result"));
        }
        let info = r#"{"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
        bad(answer(revision, "tools/list", info), "serverInfo in a legacy result");
        bad(answer(revision, "server/discover", "{}"), "a Client does not ask server/discover");
        bad(answer(revision, "tasks/list", r#"{"resultType":"x"}"#), "resultType");
    }
}

/// Members of tools, each with the first revision that knows it.
#[test]
fn tools() {
    let list = |revision, members: &str| {
        answer(
            revision,
            "tools/list",
            &format!(
                r#"{{"tools":[{{"name":"t","description":"d","inputSchema":{{"type":"object"}}{members}}}],"nextCursor":""}}"#
            ),
        )
    };
    let members = [
        (B, "annotations", r#"{"title":"T","readOnlyHint":true}"#),
        (C, "title", r#""T""#),
        (C, "outputSchema", r#"{"type":"object"}"#),
        (C, "_meta", "{}"),
        (D, "icons", r#"[{"src":"https://x.example/i.png","sizes":["any"]}]"#),
    ];
    for revision in LEGACY {
        good(list(revision, ""));
        bad(
            list(revision, r#","execution":{"taskSupport":"forbidden"}"#),
            "Tool.execution is not known in any revision",
        );
        bad(list(revision, r#","descripton":"typo""#), "Tool.descripton is not known in any revision");
        for (first, name, value) in members {
            let judgement = list(revision, &format!(r#","{name}":{value}"#));
            if revision >= first {
                good(judgement)
            } else {
                bad(judgement, &format!("Tool.{name} is not known in {revision}"))
            }
        }
        bad(answer(revision, "tools/list", r#"{"tools":[{"name":"t"}]}"#), "rust-mcp-schema");
    }
    bad(list(C, r#","annotations":{"readonlyHint":true}"#), "ToolAnnotations.readonlyHint");
    schema_says(list(C, r#","outputSchema":{"type":"array"}"#), "outputSchema");
}

/// Refused by the official schema, where it is there.
#[track_caller]
fn schema_says(judgement: Result<(), String>, words: &str) {
    if Oracle::new().schemas_present() {
        bad(judgement.clone(), "- schema ");
        bad(judgement, words);
    }
}

#[test]
fn content() {
    let call = |revision, content: &str| {
        answer(revision, "tools/call", &format!(r#"{{"content":[{content}],"isError":false}}"#))
    };
    let kinds = [
        (A, "text", r#"{"type":"text","text":"x","annotations":{"audience":["user"],"priority":0.5}}"#),
        (A, "image", r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#),
        (A, "resource", r#"{"type":"resource","resource":{"uri":"file:///x","text":"x","mimeType":"text/plain"}}"#),
        (B, "audio", r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#),
        (C, "resource_link", r#"{"type":"resource_link","uri":"file:///x","name":"x","title":"X","size":1}"#),
    ];
    for revision in LEGACY {
        for (first, name, block) in kinds {
            let message = format!(r#"{{"description":"d","messages":[{{"role":"user","content":{block}}}]}}"#);
            for judgement in [call(revision, block), answer(revision, "prompts/get", &message)] {
                let refusal = format!("content of type {name} is not known here in {revision}");
                if revision >= first { good(judgement) } else { bad(judgement, &refusal) }
            }
        }
        bad(call(revision, r#"{"type":"tool_use","id":"1","name":"t","input":{}}"#), "content of type tool_use");
        bad(call(revision, r#"{"text":"x"}"#), "content of type (none)");
        schema_says(call(revision, r#"{"type":"text","text":1}"#), "content");
        schema_says(call(revision, r#"{"type":"image","data":"not base64!","mimeType":"image/png"}"#), "content");
        bad(answer(revision, "tools/call", r#"{"content":[]}"#), "without isError");
        bad(answer(revision, "tools/call", r#"{"isError":false}"#), "rust-mcp-schema");
    }
    bad(call(B, r#"{"type":"text","text":"x","_meta":{}}"#), "TextContent._meta");
    bad(call(B, r#"{"type":"text","text":"x","annotations":{"lastModified":"2025-01-12T15:00:58Z"}}"#), "lastModified");
    bad(call(C, r#"{"type":"resource_link","uri":"file:///x","name":"x","icons":[]}"#), "ResourceLink.icons");
    let structured = |value: &str| format!(r#"{{"content":[],"isError":false,"structuredContent":{value}}}"#);
    bad(answer(B, "tools/call", &structured("{}")), "CallToolResult.structuredContent is not known in 2025-03-26");
    good(answer(C, "tools/call", &structured(r#"{"a":1}"#)));
    schema_says(answer(D, "tools/call", &structured("[1]")), "structuredContent");
}

#[test]
fn switches() {
    let bare = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    good(Oracle::new().without_is_error().server_sends(C, Some("tools/call"), bare));
    let own = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false,"x-own":1}}"#;
    bad(Oracle::new().server_sends(C, Some("tools/call"), own), "x-own");
    good(Oracle::new().with_unknown_members().server_sends(C, Some("tools/call"), own));
    let late = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false,"structuredContent":{}}}"#;
    bad(Oracle::new().with_unknown_members().server_sends(B, Some("tools/call"), late), "structuredContent");
}

#[test]
fn resources_prompts_and_completion() {
    for revision in LEGACY {
        let resources = |m: &str| {
            format!(r#"{{"resources":[{{"uri":"file:///x","name":"x","size":3,"mimeType":"text/plain"{m}}}]}}"#)
        };
        good(answer(revision, "resources/list", &resources("")));
        bad(answer(revision, "resources/list", &resources(r#","uriTemplate":"x""#)), "Resource.uriTemplate");
        let templates =
            |m: &str| format!(r#"{{"resourceTemplates":[{{"uriTemplate":"file:///{{x}}","name":"x"{m}}}]}}"#);
        good(answer(revision, "resources/templates/list", &templates("")));
        bad(answer(revision, "resources/templates/list", &templates(r#","size":3"#)), "ResourceTemplate.size");
        good(answer(revision, "resources/read", r#"{"contents":[{"uri":"file:///x","blob":"AAAA"}]}"#));
        bad(answer(revision, "resources/read", r#"{"contents":[{"uri":"file:///x"}]}"#), "rust-mcp-schema");
        bad(
            answer(revision, "resources/read", r#"{"contents":[{"uri":"file:///x","text":"","name":"x"}]}"#),
            "ResourceContents.name",
        );
        let prompts = |m: &str| {
            format!(
                r#"{{"prompts":[{{"name":"p","description":"d","arguments":[{{"name":"a","required":true{m}}}]}}]}}"#
            )
        };
        good(answer(revision, "prompts/list", &prompts("")));
        let titled = answer(revision, "prompts/list", &prompts(r#","title":"A""#));
        if revision >= C {
            good(titled)
        } else {
            bad(titled, "PromptArgument.title is not known in")
        }
        good(answer(revision, "completion/complete", r#"{"completion":{"values":["a"],"total":1,"hasMore":false}}"#));
        let many = vec![r#""a""#; 101].join(",");
        bad(
            answer(revision, "completion/complete", &format!(r#"{{"completion":{{"values":[{many}]}}}}"#)),
            "more than 100",
        );
        bad(answer(revision, "completion/complete", r#"{"completion":{"values":[1]}}"#), "rust-mcp-schema");
        schema_says(answer(revision, "resources/list", r#"{"resources":[{"uri":"no uri","name":"x"}]}"#), "uri");
    }
    bad(answer(B, "resources/list", r#"{"resources":[{"uri":"file:///x","name":"x","title":"X"}]}"#), "Resource.title");
    bad(answer(C, "prompts/list", r#"{"prompts":[{"name":"p","icons":[]}]}"#), "Prompt.icons");
}

#[test]
fn requests_of_clients() {
    for revision in LEGACY {
        let send = |method: &str, params: &str| {
            client(revision, &format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{{{params}}}}}"#))
        };
        good(send("tools/list", r#""cursor":"""#));
        good(send("tools/call", r#""name":"t","arguments":{"any":{"thing":[1.5]}},"_meta":{"progressToken":1}"#));
        good(send("resources/read", r#""uri":"file:///x""#));
        good(send("resources/subscribe", r#""uri":"file:///x""#));
        good(send("prompts/get", r#""name":"p","arguments":{"a":"b"}"#));
        good(send("logging/setLevel", r#""level":"error""#));
        good(send(
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#,
        ));
        good(send("acme/own", r#""x":1"#));
        bad(send("tools/call", r#""arguments":{}"#), "rust-mcp-schema");
        bad(send("tools/call", r#""name":"t","arguments":[]"#), "rust-mcp-schema");
        bad(send("tools/call", r#""name":"t","requestState":"s""#), "params.requestState is not known in");
        bad(send("tools/call", r#""name":"t","task":{}"#), "params.task is not known in any revision");
        bad(send("tasks/list", ""), "nothing about tasks");
        bad(send("prompts/get", r#""name":"p","arguments":{"a":1}"#), "rust-mcp-schema");
        bad(send("logging/setLevel", r#""level":"loud""#), "rust-mcp-schema");
        bad(send("server/discover", ""), "a Client does not send server/discover");
        bad(send("subscriptions/listen", ""), "a Client does not send subscriptions/listen");
        bad(send("sampling/createMessage", ""), "a Client does not send sampling/createMessage");
        bad(
            send("ping", r#""_meta":{"io.modelcontextprotocol/protocolVersion":"x"}"#),
            "protocolVersion is not known in",
        );
        let context = send(
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{"x":"y"}}"#,
        );
        if revision >= C { good(context) } else { bad(context, "params.context is not known in") }
    }
}

#[test]
fn notifications() {
    for revision in LEGACY {
        let note =
            |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#);
        let progress =
            |m: &str| note("notifications/progress", &format!(r#""progressToken":"p","progress":0.5,"total":1{m}"#));
        good(server(revision, &progress("")));
        good(client(revision, &progress("")));
        let told = server(revision, &progress(r#","message":"half""#));
        if revision > A {
            good(told)
        } else {
            bad(told, "params.message is not known in 2024-11-05")
        }
        bad(server(revision, &note("notifications/progress", r#""progress":1"#)), "rust-mcp-schema");
        good(server(revision, &note("notifications/message", r#""level":"info","logger":"l","data":{"any":1}"#)));
        bad(server(revision, &note("notifications/message", r#""level":"loud","data":1"#)), "rust-mcp-schema");
        bad(client(revision, &note("notifications/message", r#""level":"info","data":1"#)), "a Client does not send");
        good(server(revision, &note("notifications/cancelled", r#""requestId":1,"reason":"r""#)));
        bad(server(revision, &note("notifications/cancelled", r#""requestId":1.5"#)), "rust-mcp-schema");
        good(server(revision, &note("notifications/tools/list_changed", "")));
        good(server(revision, &note("notifications/resources/updated", r#""uri":"file:///x""#)));
        bad(
            server(revision, &note("notifications/resources/updated", r#""uri":"file:///x","title":"x""#)),
            "params.title",
        );
        let listened = r#""uri":"file:///x","_meta":{"io.modelcontextprotocol/subscriptionId":1}"#;
        bad(server(revision, &note("notifications/resources/updated", listened)), "subscriptionId is not known in");
        bad(server(revision, &note("notifications/subscriptions/acknowledged", "")), "does not send");
        bad(server(revision, &note("notifications/roots/list_changed", "")), "a Server does not send");
        good(client(revision, &note("notifications/roots/list_changed", "")));
        let complete = server(revision, &note("notifications/elicitation/complete", r#""elicitationId":"e""#));
        if revision == D { good(complete) } else { bad(complete, "does not send") }
    }
}

#[test]
fn servers_ask() {
    for revision in LEGACY {
        let ask = |method: &str, params: &str| {
            server(revision, &format!(r#"{{"jsonrpc":"2.0","id":"s1","method":"{method}","params":{{{params}}}}}"#))
        };
        let sample = |m: &str| {
            ask(
                "sampling/createMessage",
                &format!(r#""messages":[{{"role":"user","content":{{"type":"text","text":"x"}}}}],"maxTokens":9{m}"#),
            )
        };
        good(sample(r#","temperature":0.5,"modelPreferences":{"hints":[{"name":"m"}],"costPriority":0}"#));
        bad(sample(r#","modelPreferences":{"hint":[]}"#), "ModelPreferences.hint ");
        let tools = sample(r#","tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}"#);
        if revision == D {
            good(tools)
        } else {
            bad(tools, "params.tools is not known in")
        }
        bad(ask("sampling/createMessage", r#""messages":[]"#), "rust-mcp-schema");
        let audio = ask(
            "sampling/createMessage",
            r#""messages":[{"role":"user","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"}}],"maxTokens":9"#,
        );
        if revision >= B {
            good(audio)
        } else {
            bad(audio, "content of type audio")
        }
        good(ask("roots/list", ""));
        good(ask("ping", ""));
        bad(ask("tools/list", ""), "a Server does not send tools/list");
    }
    let elicit = |revision, members: &str, schema: &str| {
        server(
            revision,
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{schema}}}}}{members}}}}}"#
            ),
        )
    };
    bad(elicit(B, "", r#"{"type":"string"}"#), "a Server does not send elicitation/create in 2025-03-26");
    good(elicit(C, "", r#"{"type":"boolean","default":true}"#));
    good(elicit(C, "", r#"{"type":"number","minimum":0.5,"maximum":1.5}"#));
    bad(elicit(C, "", r#"{"type":"string","default":"x"}"#), "only a boolean has a default");
    bad(elicit(C, r#","mode":"form""#, r#"{"type":"string"}"#), "params.mode is not known in 2025-06-18");
    bad(elicit(C, "", r#"{"type":"string","oneOf":[]}"#), ".oneOf is not known in 2025-06-18");
    good(elicit(D, r#","mode":"form""#, r#"{"type":"string","default":"x"}"#));
    good(elicit(D, "", r#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#));
    schema_says(elicit(D, "", r#"{"type":"object"}"#), "ElicitRequest");
    good(server(
        D,
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example","elicitationId":"e"}}"#,
    ));
}

#[test]
fn clients_answer() {
    for revision in LEGACY {
        let said = r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"endTurn"}"#;
        good(client_answer(revision, "sampling/createMessage", said));
        bad(
            client_answer(revision, "sampling/createMessage", &said.replace(r#","stopReason":"endTurn""#, "")),
            "without stopReason",
        );
        bad(
            client_answer(revision, "sampling/createMessage", &said.replace("model", "modell")),
            "CreateMessageResult.modell",
        );
        good(client_answer(revision, "roots/list", r#"{"roots":[{"uri":"file:///x","name":"x"}]}"#));
        bad(client_answer(revision, "roots/list", r#"{"roots":[{"name":"x"}]}"#), "rust-mcp-schema");
        bad(client_answer(revision, "tools/list", r#"{"tools":[]}"#), "a Server does not ask tools/list");
    }
    bad(client_answer(B, "elicitation/create", r#"{"action":"decline"}"#), "a Server does not ask elicitation/create");
    for revision in [C, D] {
        good(client_answer(
            revision,
            "elicitation/create",
            r#"{"action":"accept","content":{"n":95.5,"s":"x","b":true,"i":3}}"#,
        ));
        bad(client_answer(revision, "elicitation/create", r#"{"action":"reject"}"#), "rust-mcp-schema");
        bad(
            client_answer(revision, "elicitation/create", r#"{"action":"accept","content":{"o":{}}}"#),
            "rust-mcp-schema",
        );
    }
    schema_says(client_answer(C, "elicitation/create", r#"{"action":"accept","content":{"a":["x"]}}"#), "content");
    good(client_answer(D, "elicitation/create", r#"{"action":"accept","content":{"a":["x"]}}"#));
    good(client_answer(
        D,
        "sampling/createMessage",
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}],"model":"m","stopReason":"toolUse"}"#,
    ));
    bad(
        client_answer(
            C,
            "sampling/createMessage",
            r#"{"role":"assistant","content":{"type":"tool_use","id":"1","name":"t","input":{}},"model":"m","stopReason":"toolUse"}"#,
        ),
        "content of type tool_use",
    );
}

#[test]
fn errors() {
    for revision in LEGACY {
        good(error(revision, r#"{"code":-32601,"message":"x"}"#));
        good(error(revision, r#"{"code":-1,"message":"x","data":[1]}"#));
        good(error(revision, r#"{"code":-32002,"message":"x","data":{"uri":"file:///x"}}"#));
        bad(error(revision, r#"{"code":-32002,"message":"x"}"#), "-32002 without data.uri");
        bad(
            error(revision, r#"{"code":-32022,"message":"x","data":{"requested":"x","supported":["2026-07-28"]}}"#),
            "does not send the code -32022",
        );
        bad(error(revision, r#"{"code":-32000,"message":"x"}"#), "does not send the code -32000");
        bad(error(revision, r#"{"code":-32604,"message":"x"}"#), "does not send the code -32604");
        bad(error(revision, r#"{"code":-32601}"#), "no message");
        bad(error(revision, r#"{"code":"x","message":"x"}"#), "no integer");
        bad(error(revision, r#"{"code":-32601,"message":"x","extra":1}"#), "odd member Some(\"extra\") of the error");
        bad(error(revision, "null"), "error is not an object");
        let refused = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"x","data":{"uri":"x:y"}}}"#;
        bad(Oracle::new().client_sends(revision, None, refused), "a Client does not send the code -32002");
    }
    let url = r#"{"code":-32042,"message":"x","data":{"elicitations":[{"mode":"url","message":"m","url":"https://x.example","elicitationId":"e"}]}}"#;
    good(error(D, url));
    bad(error(C, url), "does not send the code -32042");
    bad(error(D, &url.replace("elicitationId", "id")), "not url mode with an id");
    bad(error(D, r#"{"code":-32042,"message":"x","data":{}}"#), "-32042 without data.elicitations");
}
