//! The extension over lines: a conversation by hand, and client and server of this project with each other.

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::{RequestToken, RespondError, ServerChange};
use mcp_sansio::service::{Call, Caller, DynamicList, HandlerResult, Service, Tool, ToolInfo};
use mcp_sansio_extension_tests::{ID, Kitchen, SERVICE};
use mcp_sansio_host::testing::{ClientServerPair, Conversation, Delivery};
use serde_json::{Value, json};

const CUTS: [Delivery; 3] = [Delivery::Whole, Delivery::Bytes, Delivery::Random(3)];

/// A request of 2026-07-28, from a client that declares these extensions.
fn request(method: &str, mut params: Value, extensions: &Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
    });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string()
}

struct Talk<'s>(Conversation<'s, Kitchen>);

impl Talk<'_> {
    fn ask_with(&mut self, extensions: &Value, method: &str, params: Value) -> Value {
        let mut lines = self.0.say(&request(method, params, extensions));
        assert_eq!(lines.len(), 1, "{lines:?}");
        serde_json::from_str(&lines.remove(0)).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.ask_with(&json!({ ID: {} }), method, params)
    }
}

fn talk() -> impl Iterator<Item = Talk<'static>> {
    CUTS.into_iter().map(|cut| Talk(Conversation::new(const { &SERVICE }, Kitchen::new()).cut(cut)))
}

#[test]
fn capabilities_of_all_extensions() {
    for mut talk in talk() {
        let result = &talk.ask("server/discover", json!({}))["result"];
        let extensions = json!({ "com.example/by-hand": {}, ID: { "most": 2 }, "com.example/other": {} });
        assert_eq!(result["capabilities"]["extensions"], extensions);
        assert!(result["capabilities"].get("timers").is_none());
    }
    let mut old = Conversation::new(const { &SERVICE }, Kitchen::new());
    let mut capabilities = |revision| -> Value {
        let opened = old.open(revision);
        serde_json::from_str(opened.result().get("capabilities").unwrap().as_str()).unwrap()
    };
    let extensions = json!({ "com.example/by-hand": {} });
    let expected = json!({ "extensions": extensions, "tools": {}, "timers": {} });
    assert_eq!(capabilities(Revision::V2025_11_25), expected);
    assert_eq!(capabilities(Revision::V2025_06_18), json!({ "tools": {}, "timers": {} }));
}

#[test]
fn methods_and_their_gates() {
    let missing = json!({ "requiredCapabilities": { "extensions": { ID: {} } } });
    for mut talk in talk() {
        let timer = talk.ask("com.example/timers/get", json!({ "timer": "egg" }));
        assert_eq!(timer["result"]["seconds"], 300);
        assert_eq!(timer["result"]["resultType"], "complete");
        assert_eq!(timer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "kitchen");
        for undeclared in [json!({}), json!({ ID: null }), json!({ "com.example/other": {} })] {
            let mut ask = |method, params| talk.ask_with(&undeclared, method, params)["error"].take();
            let error = ask("com.example/timers/get", json!({ "timer": "egg" }));
            assert_eq!((&error["code"], &error["data"]), (&json!(-32021), &missing));
            assert_eq!(ask("com.example/timers/hidden", json!({}))["code"], -32601);
            assert_eq!(ask("com.example/timers/count", json!({})), json!(null));
            assert_eq!(ask("com.example/timers/none", json!({}))["code"], -32601);
        }
        assert_eq!(talk.ask("com.example/timers/get", json!({ "timer": "tea" }))["error"]["code"], -32602);
        assert_eq!(talk.ask("com.example/timers/get", json!({ "timer": "cake" }))["error"]["code"], -32602);
        assert_eq!(talk.ask("com.example/timers/hidden", json!({}))["result"]["count"], 2);
        assert_eq!(talk.ask("example.com/own", json!({}))["result"]["own"], true);
        assert_eq!(talk.ask("com.example/timers/none", json!({}))["error"]["code"], -32601);
    }
}

#[test]
fn methods_of_the_revisions_before() {
    let mut old = Conversation::new(const { &SERVICE }, Kitchen::new());
    old.open(Revision::V2025_11_25);
    let mut ask = |method: &str| -> Value {
        let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method }).to_string();
        serde_json::from_str(&old.say(&line)[0]).unwrap()
    };
    for unserved in ["com.example/timers/get", "com.example/timers/count", "com.example/timers/hidden"] {
        assert_eq!(ask(unserved)["error"]["code"], -32601, "{unserved}");
    }
    assert_eq!(
        ask("com.example/timers/old")["result"],
        json!({ "count": 2, "_meta": { "com.example/counted": true } })
    );
    assert_eq!(ask("example.com/own")["result"], json!({ "own": true }));
}

#[test]
fn requests_that_wait() {
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let modern = revision == "2026-07-28";
        let mut talk = Conversation::new(const { &SERVICE }, Kitchen::new());
        if !modern {
            talk.open(Revision::from_date(revision).unwrap());
        }
        let send = |talk: &mut Conversation<'_, Kitchen>, method: &str| -> Vec<Value> {
            let line = match modern {
                true => request(method, json!({}), &json!({ ID: {} })),
                false => json!({ "jsonrpc": "2.0", "id": 7, "method": method }).to_string(),
            };
            talk.say(&line).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let resume = |talk: &mut Conversation<'_, Kitchen>| -> Result<Vec<Value>, RespondError> {
            let token = RequestToken::from_bits(talk.state().waiting.unwrap());
            Ok(talk.resume(token)?.iter().map(|line| serde_json::from_str(line).unwrap()).collect())
        };
        // A method that is not of an extension cannot be found again.
        assert_eq!(send(&mut talk, "example.com/later")[0]["error"]["code"], -32603);
        assert_eq!(send(&mut talk, "com.example/timers/wait"), [json!(null); 0]);
        let asked = resume(&mut talk).unwrap().remove(0);
        if modern {
            // There the questions are results of the protocol's own methods alone.
            assert_eq!((&asked["id"], &asked["error"]["code"]), (&json!(7), &json!(-32603)));
            continue;
        }
        if revision == "2024-11-05" {
            assert_eq!((&asked["id"], &asked["error"]["code"]), (&json!(7), &json!(-32603)));
            continue;
        }
        assert_eq!(asked["method"], "elicitation/create");
        let params = json!({
            "message": "Now?", "requestedSchema": { "type": "object", "properties": {} },
            "_meta": { "com.example/timer": "egg" },
        });
        assert_eq!(asked["params"], params);
        let answer = |talk: &mut Conversation<'_, Kitchen>, asked: &Value, member: &str, value: Value| -> Value {
            let line = json!({ "jsonrpc": "2.0", "id": asked["id"], member: value }).to_string();
            serde_json::from_str(&talk.say(&line)[0]).unwrap()
        };
        let answered = answer(&mut talk, &asked, "result", json!({ "action": "accept" }));
        assert_eq!((&answered["id"], &answered["result"]), (&json!(7), &json!({ "action": "accept" })));
        assert_eq!(resume(&mut talk), Err(RespondError::Stale));

        // A refusal, and an error that was kept.
        send(&mut talk, "com.example/timers/wait");
        let asked = resume(&mut talk).unwrap().remove(0);
        let answered = answer(&mut talk, &asked, "error", json!({ "code": -1, "message": "no" }));
        assert_eq!(answered["error"], json!({ "code": -31000, "message": "not \"now\"", "data": [1] }));

        // Woken while it asks, it takes the question back.
        send(&mut talk, "com.example/timers/wait");
        let asked = resume(&mut talk).unwrap().remove(0);
        let told = resume(&mut talk).unwrap();
        assert_eq!((told.len(), &told[0]["method"]), (1, &json!("notifications/cancelled")));
        assert_eq!(told[0]["params"]["requestId"], asked["id"]);
        let line = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } }).to_string();
        assert_eq!(talk.say(&line), [""; 0]);
        assert_eq!(resume(&mut talk).unwrap()[0]["result"], json!({ "gone": true }));
    }
}

#[test]
fn calls_that_are_refused() {
    for mut talk in talk() {
        let mut call = |tool: &str, timer: Value| talk.ask("tools/call", json!({ "name": tool, "timer": timer }));
        assert_eq!(call("bake", json!(1))["error"]["code"], -31_001);
        assert_eq!(call("boil", json!(1))["result"]["seconds"], 299);
        let old = talk.0.state().timers[0].seconds;
        assert_eq!(old, 299);
    }
    let mut old = Conversation::new(const { &SERVICE }, Kitchen::new());
    old.open(Revision::V2025_11_25);
    // The entry is that of the revision.
    let line = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"boil","timer":1}}"#;
    assert!(old.say(line)[0].contains("-31001"));
    assert_eq!(old.state().timers[0].seconds, 300);
}

/// Tools that are not in a table have members of an extension too; one with wrong members is left out.
#[test]
fn calls_of_dynamic_tools_are_checked() {
    struct More;
    impl DynamicList<Tool<Kitchen>> for More {
        fn list(&self, _: &Kitchen, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
            let modern = Revisions::from(Revision::LATEST);
            let [fry, roast, broken] = ["fry", "roast", "broken"].map(|name| ToolInfo::new(name, "Cooks"));
            let all = [fry, roast.entry(r#"{"timer":{"seconds":9}}"#, modern), broken.entry("[]", modern)];
            let _ = all.iter().skip(from).all(with);
        }
        fn run(&self, key: usize, _: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
            call.text(i64::try_from(key).unwrap())
        }
    }
    const MORE: Service<'static, Kitchen> = SERVICE.dynamic_tools(&More);
    let mut talk = Talk(Conversation::new(const { &MORE }, Kitchen::new()));
    let mut call = |tool: &str, timer: Value| talk.ask("tools/call", json!({ "name": tool, "timer": timer }));
    assert_eq!(call("fry", json!(1))["error"]["code"], -31_001);
    assert_eq!(call("roast", json!(1))["result"]["content"][0]["text"], "1");
    assert_eq!(call("broken", json!(1))["error"]["code"], -32602);
    assert_eq!(call("boil", json!(1))["result"]["seconds"], 299);
    let tools = talk.ask("tools/list", json!({}))["result"]["tools"].take();
    assert_eq!((&tools[3]["timer"], tools.as_array().unwrap().len()), (&json!({ "seconds": 9 }), 4));
}

#[test]
fn members_of_results_and_entries() {
    for mut talk in talk() {
        let result = talk.ask("com.example/timers/count", json!({}))["result"].take();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(5000), &json!("public")));
        assert_eq!(result["_meta"]["com.example/counted"], true);
        assert_eq!(talk.ask("com.example/timers/hidden", json!({}))["result"].get("ttlMs"), None);
        let tools = talk.ask("tools/list", json!({}))["result"]["tools"].take();
        assert_eq!(tools[0]["timer"], json!({ "seconds": 300 }));
        assert_eq!(tools[0]["_meta"]["com.example/kind"], "egg");
        assert_eq!(tools[1].get("timer"), None);
    }
    let mut old = Conversation::new(const { &SERVICE }, Kitchen::new());
    old.open(Revision::V2025_11_25);
    let tools = old.say(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#).remove(0);
    assert!(!tools.contains("\"timer\""), "{tools}");
}

#[test]
fn a_call_with_another_kind_of_result() {
    for mut talk in talk() {
        let result = talk.ask("tools/call", json!({ "name": "boil" }))["result"].take();
        assert_eq!((&result["resultType"], &result["seconds"]), (&json!("com.example/timer"), &json!(299)));
        assert_eq!(result.get("content"), None);
        let plain = talk.ask_with(&json!({}), "tools/call", json!({ "name": "boil" }))["result"].take();
        assert_eq!((&plain["resultType"], &plain["content"][0]["text"]), (&json!("complete"), &json!("The egg boils")));
        assert_eq!(talk.ask_with(&json!({}), "tools/call", json!({ "name": "bake" }))["error"]["code"], -32021);
        assert_eq!(talk.ask("tools/call", json!({ "name": "bake" }))["result"]["content"][0]["text"], "baked");
    }
    let mut old = Conversation::new(const { &SERVICE }, Kitchen::new());
    old.open(Revision::V2025_11_25);
    let baked = old.say(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"bake"}}"#).remove(0);
    assert!(baked.contains("isError\":true"), "{baked}");
}

#[test]
fn the_uri_of_a_resource_is_no_key_of_a_topic() {
    const WITH_RESOURCES: Service<'static, Kitchen> = SERVICE.feature(ServerCapability::Subscribe);
    let mut talk = Talk(Conversation::new(const { &WITH_RESOURCES }, Kitchen::new()));
    talk.ask("subscriptions/listen", json!({ "notifications": { "timers": ["egg"] } }));
    assert_eq!(talk.0.publish(ServerChange::Resource("egg")), [""; 0]);
    assert_eq!(talk.0.publish(ServerChange::Topic { member: "timers", key: "egg" }).len(), 1);
}

#[test]
fn a_listen_selects_topics() {
    for mut talk in talk() {
        let filter = json!({ "notifications": {
            "timers": ["egg", "cake", "egg", "tea", "e\u{67}g", ""], "anyTimer": true, "toolsListChanged": true, "unknown": ["x"],
        } });
        // Neither the cake of another user, nor what does not exist.
        let acknowledged = talk.ask("subscriptions/listen", filter.clone());
        assert_eq!(acknowledged["params"]["notifications"], json!({ "timers": ["egg"], "anyTimer": true }));
        assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);

        let Talk(conversation) = &mut talk;
        let mut publish = |member, key| conversation.publish(ServerChange::Topic { member, key });
        let told: Value = serde_json::from_str(&publish("timers", "egg")[0]).unwrap();
        assert_eq!(told["method"], "notifications/com.example/timer");
        assert_eq!(
            told["params"],
            json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": 7 }, "timer": "egg", "seconds": 300 })
        );
        assert_eq!(publish("timers", "cake"), [""; 0]);
        assert_eq!(publish("anyTimer", "egg"), [""; 0]);
        assert!(publish("anyTimer", "")[0].contains(r#""timers":2"#));
        // Nothing is written for a listen that has ended.
        conversation.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
        assert_eq!(conversation.publish(ServerChange::Topic { member: "timers", key: "egg" }), [""; 0]);
        assert_eq!(conversation.finish(), [""; 0]);

        let error = Talk(Conversation::new(const { &SERVICE }, Kitchen::new())).ask_with(
            &json!({}),
            "subscriptions/listen",
            filter,
        )["error"]
            .take();
        assert_eq!(error["code"], -32021);
        assert_eq!(error["data"]["requiredCapabilities"]["extensions"], json!({ ID: {} }));
    }
}

#[test]
fn the_client_of_this_project() {
    let declared = Raw::constant(r#"{"com.example/timers":{}}"#);
    let info = ClientInfo::new("cook", "1.0").extensions(declared, &["com.example/timer"]);
    for cut in CUTS {
        let mut pair = ClientServerPair::new(&info, const { &SERVICE }, Kitchen::new()).cut(cut);
        let mut heard = Vec::new();
        let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
            ClientEvent::Connected(_) => {
                let params = Raw::constant(r#"{"timer":"egg"}"#);
                handle.send(&Request::raw("com.example/timers/get", Some(params))).unwrap();
                handle.send(&Request::call("boil")).unwrap();
                let topics: &[(&str, &[&str])] = &[("timers", &["egg", "cake"]), ("anyTimer", &[])];
                handle.client.listen(&SubscriptionFilter::new().topics(topics)).unwrap();
            }
            ClientEvent::Done { outcome: Ok(result), .. } => heard.push(result.to_string()),
            ClientEvent::Listening(granted) => heard.push(format!("listening to {}", granted.topics)),
            ClientEvent::Notification { method, params } => heard.push(format!("{method} {}", params.unwrap())),
            other => panic!("{other:?}"),
        };
        pair.client.client.connect();
        pair.run(&mut handler);
        pair.publish(ServerChange::Topic { member: "timers", key: "egg" });
        pair.run(&mut handler);
        heard.sort();
        let [listening, told, boiled, got] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(listening, "listening to 2");
        assert!(told.starts_with("notifications/com.example/timer {") && told.contains(r#""seconds":299"#), "{told}");
        assert!(boiled.contains(r#""resultType":"com.example/timer""#), "{boiled}");
        assert!(got.contains(r#""seconds":300"#), "{got}");
    }
}

#[test]
fn each_listen_of_a_client_has_its_own_topics() {
    let declared = Raw::constant(r#"{"com.example/timers":{}}"#);
    let info = ClientInfo::new("cook", "1.0").extensions(declared, &["com.example/timer"]);
    let mut pair = ClientServerPair::new(&info, const { &SERVICE }, Kitchen::new());
    let mut heard = Vec::new();
    let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Connected(_) => {
            let topics: [&[(&str, &[&str])]; 2] = [&[("timers", &["egg"]), ("anyTimer", &[])], &[("timers", &["egg"])]];
            for topics in topics {
                handle.client.listen(&SubscriptionFilter::new().topics(topics)).unwrap();
            }
        }
        ClientEvent::Listening(granted) => heard.push(granted.topics),
        other => panic!("{other:?}"),
    };
    pair.client.client.connect();
    pair.run(&mut handler);
    assert_eq!(heard, [2, 1]);
}
