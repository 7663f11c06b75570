//! Requests of the server ("questions") and their answers, in both eras.

use crate::desk::{Desk, FULL, LEGACY, OFFERS, PLAIN, everywhere};
use mcp_sansio::client::cache::{CacheKey, ResponseCache};
use mcp_sansio::client::result::{ClientResult, CreateMessageResult, Root};
use mcp_sansio::client::views::ViewError;
use mcp_sansio::client::{Client, ClientEvent, ClientInfo, Request, SendError, TransportError};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::memory::Slots;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio::service::ContentBlock;

const ROOTS: [Root<'static>; 1] = [Root::new("file:///work").unwrap().name("w")];
const FORM: &str =
    r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
const VISIT: &str = r#"{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"e1"}"#;
const SAMPLE: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}"#;
const ONE_ROOTS: &str = r#"{"r":{"method":"roots/list"}}"#;

fn sampled() -> ClientResult<'static> {
    ClientResult::sampled(CreateMessageResult::new("m", ContentBlock::text("42")))
}

fn required(requests: &str, state: &str) -> String {
    let requests = if requests.is_empty() { String::new() } else { format!(r#","inputRequests":{requests}"#) };
    let state = if state.is_empty() { String::new() } else { format!(r#","requestState":{state}"#) };
    format!(r#"{{"resultType":"input_required"{requests}{state}}}"#)
}

/// Returns a 2026-07-28 client with all capabilities that has called a tool.
fn called() -> Desk {
    let mut desk = Desk::modern(&FULL);
    let meta = Raw::constant(r#"{"com.example/x":{"y":"\u00e9"}}"#);
    let arguments = serde_json::json!({"a": [1, 2], "b": "\u{e9}\n"});
    desk.send(&Request::call("to\"ol").arguments(&arguments).meta(meta).with_progress());
    desk
}

fn four() -> String {
    format!(
        r#"{{"a \"key\"":{{"method":"elicitation/create","params":{FORM}}},"\u0062":{{"method":"elicitation\/create","params":{VISIT}}},"c":{{"method":"sampling/createMessage","params":{SAMPLE}}},"d":{{"method":"roots/list"}}}}"#
    )
}

// spec: B002 B144 B146 B150 S043
#[test]
fn all_kinds_of_questions_in_any_order() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        everywhere(|| {
            let mut desk = called();
            let first = desk.one();
            let state = r#""s\u0074a\/te \" \\ é""#;
            desk.result(&required(&four(), state));
            assert_eq!(desk.event(), "asked [Form, UrlElicitation, Sampling, Roots]");
            let asked = desk.asked.clone();
            assert_eq!(asked[0].1, FORM);
            assert_eq!(asked[3].1, "{}");
            let replies = [
                ClientResult::accept(Raw::constant(r#"{"name":"x"}"#)),
                ClientResult::consent(),
                sampled(),
                ClientResult::roots(&ROOTS),
            ];
            for (n, &which) in order.iter().enumerate() {
                // The user's time is not limited.
                desk.wait(1_000_000);
                desk.quiet();
                desk.reply(asked[which].0, &replies[which]).unwrap();
                let said = desk.said();
                assert_eq!(said.len(), usize::from(n == 3));
                if n < 3 {
                    assert_eq!(desk.reply(asked[which].0, &replies[which]), Err(SendError::Stale));
                    continue;
                }
                let again = &said[0];
                assert_ne!(again["id"], first["id"]);
                assert_eq!(again["params"]["_meta"]["progressToken"], again["id"]);
                assert_eq!(again["params"]["_meta"]["com.example/x"], first["params"]["_meta"]["com.example/x"]);
                for same in ["name", "arguments"] {
                    assert_eq!(again["params"][same], first["params"][same]);
                }
                assert_eq!(again["params"]["requestState"], "sta/te \" \\ \u{e9}");
                let responses = again["params"]["inputResponses"].as_object().unwrap();
                let keys: Vec<_> = responses.keys().collect();
                assert_eq!(keys, ["a \"key\"", "b", "c", "d"]);
                assert_eq!(responses["a \"key\""]["content"]["name"], "x");
                assert_eq!(responses["c"]["stopReason"], "endTurn");
                assert_eq!(responses["d"]["roots"][0]["uri"], "file:///work");
            }
            // The time of the request began again.
            desk.wait(59_999);
            desk.quiet();
            desk.result(r#"{"resultType":"complete","content":[]}"#);
            assert!(desk.event().starts_with("tools/call ok"));
            assert_eq!(desk.client().in_flight(), 0);
            desk
        });
    }
}

/// `requestState` comes back byte by byte, with its escapes.
// spec: B081 B147 B148 B156
#[test]
fn the_state_comes_back_as_it_came() {
    let info = FULL;
    let mut client = Client::growing(&info);
    let mut out = mcp_sansio::sink::LineSink::new(Vec::new());
    client.connect_as(Revision::V2026_07_28);
    let arguments = Raw::constant(r#"{"n":1.50e+1,"s":"\u00e9\/"}"#);
    client.send(&Request::call("x").arguments(&arguments), &mut out).unwrap();
    let state = r#""a\u0062\/\\\" \uD83D\uDE00 \ud800""#;
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{ "resultType" : "input_required" , "requestState" : {state} }}}}"#
    );
    assert!(client.receive(answer.as_bytes(), &mut out).unwrap().is_none());
    out.sent(out.pending().len());
    assert!(client.advance(0, &mut out).unwrap().is_none());
    let line = String::from_utf8(out.pending().to_vec()).unwrap();
    assert!(line.contains(&format!(r#""requestState":{state}"#)), "{line}");
    assert!(line.contains(r#""arguments":{"n":1.50e+1,"s":"\u00e9\/"}"#), "{line}");
}

/// Only a form has fields, and only a visit has a page, whatever other members their params have.
#[test]
fn what_questions_show() {
    let schema = r#""requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}"#;
    let url = r#""url":"https://example.com/x""#;
    let form = format!(r#"{{"message":"Who?",{schema},{url}}}"#);
    let visit = format!(r#"{{"mode":"url","message":"Go","elicitationId":"e1",{url},{schema}}}"#);
    let sample = format!(r#"{{"messages":[],"maxTokens":9,{url},{schema}}}"#);
    let questions = [
        ("elicitation/create", form, (Some("Who?"), Ok(1), None)),
        (
            "elicitation/create",
            visit,
            (Some("Go"), Err(ViewError::Missing("requestedSchema")), Some("https://example.com/x")),
        ),
        ("sampling/createMessage", sample, (None, Err(ViewError::Missing("requestedSchema")), None)),
    ];
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut desk = Desk::speaking(revision);
        for (method, params, (message, fields, url)) in &questions {
            desk.send(&Request::call("x"));
            let id = desk.last_id();
            let asks = format!(r#""method":"{method}","params":{params}"#);
            let line = match revision.is_modern() {
                true => {
                    let result = required(&format!(r#"{{"q":{{{asks}}}}}"#), "");
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
                }
                false => format!(r#"{{"jsonrpc":"2.0","id":{id},{asks}}}"#),
            };
            let mut out = mcp_sansio::sink::LineSink::new(Vec::new());
            let event = desk.client().receive(line.as_bytes(), &mut out).unwrap();
            let Some(ClientEvent::Asked(asked)) = event else { panic!("{revision}, {line}: {event:?}") };
            let question = asked.questions().next().unwrap();
            let text = |text: Option<Text<'_>>| text.map(|text| text.to_string());
            assert_eq!(text(question.message()).as_deref(), *message, "{revision}");
            assert_eq!(question.form().map(|form| form.fields().count()), *fields, "{revision}, {line}");
            assert_eq!(text(question.url()).as_deref(), *url, "{revision}, {line}");
        }
    }
}

/// A state without questions is sent back; an empty object of questions is none.
#[test]
fn a_round_without_questions_asks_nothing() {
    for requests in ["", "{}"] {
        everywhere(|| {
            let mut desk = called();
            desk.result(&required(requests, r#""s""#));
            let said = desk.said();
            let [first, again] = &said[..] else { panic!("{said:?}") };
            assert_eq!((&first["method"], &again["params"]["requestState"]), (&again["method"], &"s".into()));
            assert!(again["params"].get("inputResponses").is_none() && desk.asked.is_empty());
            desk.forget();
            desk.quiet();
            desk
        });
    }
}

// spec: B149
#[test]
fn questions_of_an_earlier_round_are_stale() {
    everywhere(|| {
        let mut desk = called();
        desk.result(&required(ONE_ROOTS, r#""s""#));
        let first = desk.asked[0].0;
        desk.reply(first, &ClientResult::roots(&ROOTS)).unwrap();
        assert_eq!(desk.said()[1]["params"]["requestState"], "s");
        desk.result(&required(ONE_ROOTS, ""));
        assert_eq!(desk.reply(first, &ClientResult::roots(&[])), Err(SendError::Stale));
        assert_eq!(desk.refuse(first, &RpcError::refused()), Err(SendError::Stale));
        let second = desk.asked[0].0;
        desk.forget();
        desk.reply(second, &ClientResult::roots(&ROOTS)).unwrap();
        let again = desk.one();
        assert_eq!(again["params"]["inputResponses"]["r"]["roots"][0]["name"], "w");
        assert_eq!(again["params"].get("requestState"), None, "no state came with the last question");
        desk
    });
}

/// Other requests carry neither the answers nor the state of a question.
// spec: B151
#[test]
fn answers_go_with_their_request_alone() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::call("asks"));
        let id = desk.last_id();
        desk.send(&Request::call("asks"));
        desk.forget();
        desk.result_of(id, &required(ONE_ROOTS, r#""s""#));
        let question = desk.asked[0].0;
        desk.send(&Request::call("asks"));
        desk.send(&Request::read("r://x"));
        desk.reply(question, &ClientResult::roots(&ROOTS)).unwrap();
        desk.send(&Request::call("asks"));
        let said = desk.said();
        let with: Vec<_> = said
            .iter()
            .map(|line| (line["params"].get("inputResponses").is_some(), line["params"].get("requestState").is_some()))
            .collect();
        assert_eq!(with, [(false, false), (false, false), (true, true), (false, false)]);
        desk
    });
}

#[test]
fn the_other_methods_that_may_ask() {
    for request in [Request::read("r://x"), Request::prompt("p")] {
        everywhere(|| {
            let mut desk = Desk::modern(&FULL);
            desk.send(&request);
            let first = desk.one();
            desk.result(&required(ONE_ROOTS, r#""s""#));
            desk.reply(desk.asked[0].0, &ClientResult::roots(&[])).unwrap();
            let again = desk.one();
            assert_eq!(again["method"], first["method"]);
            for same in ["uri", "name"] {
                assert_eq!(again["params"][same], first["params"][same]);
            }
            desk
        });
    }
}

// spec: C121
#[test]
fn rounds_are_bounded() {
    for requests in ["", ONE_ROOTS] {
        everywhere(|| {
            let mut desk = Desk::of(Client::growing(&FULL).max_input_rounds(3));
            desk.open_modern(OFFERS);
            desk.send(&Request::call("x"));
            for round in 0..3 {
                desk.result(&required(requests, r#""again""#));
                if !requests.is_empty() {
                    desk.reply(desk.asked[0].0, &ClientResult::roots(&[])).unwrap();
                }
                assert_eq!(desk.said().len(), 1 + usize::from(round == 0));
            }
            desk.forget();
            desk.result(&required(requests, r#""again""#));
            assert_eq!(
                desk.event(),
                "tools/call failed: the server asked again and again"
                    .replace("asked again and again", "asked back too often")
            );
            desk.quiet();
            desk
        });
    }
}

// spec: C123 C130
#[test]
fn what_is_no_question() {
    let broken = "the answer is not a valid one";
    let undeclared = "the server asked for something that the client did not declare";
    let cases = [
        ("", "", broken),
        ("{}", "", broken),
        ("[]", r#""x""#, broken),
        (ONE_ROOTS, "3", broken),
        (ONE_ROOTS, "null", broken),
        (r#"{"a":{}}"#, "", broken),
        (r#"{"a":{"method":"tools/list"}}"#, "", broken),
        (r#"{"a":{"method":"elicitation/create","params":{"message":"no schema"}}}"#, "", broken),
        (r#"{"a":{"method":"elicitation/create","params":{"mode":"url","message":"no url"}}}"#, "", broken),
        (r#"{"a":{"method":"sampling/createMessage"}}"#, "", broken),
        (r#"{"a":{"method":"sampling/createMessage","params":{"messages":[{"role":"user"}]}}}"#, "", broken),
        // A tool use of the model without the result of the tool.
        (
            r#"{"a":{"method":"sampling/createMessage","params":{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"a"}}]}}}"#,
            "",
            broken,
        ),
        (r#"{"a":{"method":"roots/list"},"\u0061":{"method":"roots/list"}}"#, "", broken),
        (r#"{"a":{"method":"sampling/createMessage","params":{"messages":[],"tools":[]}}}"#, "", undeclared),
        (
            r#"{"r":{"method":"roots/list"},"a":{"method":"elicitation/create","params":{"mode":"url","url":"x"}}}"#,
            "",
            undeclared,
        ),
    ];
    static SOME: ClientInfo<'static> = PLAIN
        .feature(ClientCapability::Roots)
        .feature(ClientCapability::ElicitForm)
        .feature(ClientCapability::Sampling);
    for (requests, state, expected) in cases {
        everywhere(|| {
            let mut desk = Desk::modern(if expected == broken { &FULL } else { &SOME });
            desk.send(&Request::call("x"));
            desk.forget();
            desk.result(&required(requests, state));
            assert_eq!(desk.event(), format!("tools/call failed: {expected}"), "{requests} {state}");
            desk.quiet();
            assert_eq!(desk.client().in_flight(), 0);
            desk
        });
    }
}

#[test]
fn too_much_is_refused() {
    everywhere(|| {
        let mut desk = called();
        let many: Vec<_> = (0..17).map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#)).collect();
        desk.result(&required(&format!("{{{}}}", many[..16].join(",")), ""));
        assert!(desk.event().starts_with("asked"));
        for (question, _) in desk.asked.clone() {
            desk.reply(question, &ClientResult::roots(&[])).unwrap();
        }
        assert_eq!(desk.said().last().unwrap()["params"]["inputResponses"].as_object().unwrap().len(), 16);
        desk.result(&required(&format!("{{{}}}", many.join(",")), ""));
        assert_eq!(desk.event(), "tools/call failed: the server asked more than there is room for");
        desk
    });
}

/// With a store that is too small, requests are still sent.
#[test]
fn a_small_store() {
    for size in 0..200 {
        let store = vec![0; size].leak();
        let mut desk = Desk::of(Client::new(&FULL, Slots::growing(6)).held(&mut *store));
        desk.open_modern(OFFERS);
        desk.send(&Request::call("a-tool").meta(Raw::constant(r#"{"k":"v"}"#)));
        desk.forget();
        desk.result(&required(&four(), r#""some state""#));
        let event = desk.event();
        if event.starts_with("asked") {
            let asked = desk.asked.clone();
            let replies = [ClientResult::decline(), ClientResult::consent(), sampled(), ClientResult::roots(&ROOTS)];
            let kept = asked.iter().zip(&replies).map(|(asked, reply)| desk.reply(asked.0, reply)).collect::<Vec<_>>();
            let all = kept.iter().all(Result::is_ok);
            assert!(kept.iter().all(|kept| matches!(kept, Ok(()) | Err(SendError::NoRoom))));
            assert_eq!(desk.said().len(), usize::from(all));
            desk.client().end_of_input();
            desk.pump();
            assert_eq!(desk.events().len(), 2);
        } else {
            assert_eq!(event, "tools/call failed: the server asked more than there is room for");
        }
        assert_eq!(desk.client().in_flight(), 0);
    }
}

#[test]
fn refusals_where_there_are_no_errors() {
    everywhere(|| {
        let mut desk = called();
        desk.forget();
        desk.result(&required(&four(), ""));
        let asked = desk.asked.clone();
        desk.refuse(asked[0].0, &RpcError::refused()).unwrap();
        desk.refuse(asked[1].0, &RpcError::refused()).unwrap();
        desk.forget();
        desk.refuse(asked[2].0, &RpcError::refused()).unwrap();
        assert_eq!(desk.event(), "tools/call failed: what the server asked for was refused");
        desk.quiet();
        assert_eq!(desk.reply(asked[3].0, &ClientResult::roots(&[])), Err(SendError::Stale));
        let mut desk = called();
        desk.forget();
        desk.result(&required(&format!(r#"{{"f":{{"method":"elicitation/create","params":{FORM}}}}}"#), ""));
        desk.refuse(desk.asked[0].0, &RpcError::refused()).unwrap();
        assert_eq!(desk.one()["params"]["inputResponses"]["f"]["action"], "decline");
        desk
    });
}

#[test]
fn an_absolute_limit_holds_while_the_user_thinks() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let token = desk.send(&Request::call("x").total_timeout(90_000));
        desk.forget();
        desk.result(&required(ONE_ROOTS, ""));
        assert_eq!(desk.client().next_deadline(), Some(90_000));
        desk.forget();
        desk.wait(89_999);
        desk.quiet();
        desk.wait(1);
        assert_eq!(desk.event(), "tools/call failed: the request took too long");
        desk.quiet();
        assert_eq!(desk.reply(desk.asked[0].0, &ClientResult::roots(&[])), Err(SendError::Stale));
        assert!(!desk.client().is_open(token));
        desk
    });
}

// spec: B124 B185
#[test]
fn a_request_that_waits_for_answers_can_be_cancelled() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let token = desk.send(&Request::call("x"));
        desk.result(&required(ONE_ROOTS, ""));
        desk.forget();
        desk.cancel(token).unwrap();
        desk.quiet();
        assert_eq!(desk.reply(desk.asked[0].0, &ClientResult::roots(&[])), Err(SendError::Stale));
        desk
    });
}

// spec: B065 B069 B070 B120 C010
#[test]
fn questions_of_the_older_revisions() {
    for revision in LEGACY {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, revision);
            let form = FORM.replace(r#""mode":"form","#, "");
            let (elicits, visits) = (revision >= Revision::V2025_06_18, revision >= Revision::V2025_11_25);
            let cases = [
                ("\"r\\u0031\"", "roots/list", "{}", true, -32601),
                ("-1", "sampling/createMessage", SAMPLE, true, -32601),
                ("9007199254740993", "elicitation/create", &form, elicits, -32601),
                ("4", "elicitation/create", VISIT, visits, if elicits { -32602 } else { -32601 }),
            ];
            for (number, (id, method, params, known, code)) in cases.into_iter().enumerate() {
                desk.ask(id, method, params);
                if !known {
                    assert_eq!(desk.event(), "ignored Undeclared", "{method} in {revision}");
                    assert_eq!(desk.one()["error"]["code"], code);
                    continue;
                }
                assert!(desk.event().starts_with("asked ["));
                desk.quiet();
                let question = desk.asked[0].0;
                let replies = [
                    ClientResult::roots(&ROOTS),
                    sampled(),
                    ClientResult::accept(Raw::constant(r#"{"name":"x"}"#)),
                    ClientResult::consent(),
                ];
                desk.wait(1_000_000);
                desk.reply(question, &replies[number]).unwrap();
                let answer = desk.one();
                assert_eq!(answer["id"], serde_json::from_str::<serde_json::Value>(id).unwrap());
                assert!(answer["result"].is_object());
                assert_eq!(desk.reply(question, &replies[number]), Err(SendError::Stale));
            }
            desk
        });
    }
}

// spec: C002 C013 C014 C105 C106 C131
#[test]
fn what_was_not_declared_is_refused() {
    static FORMS: ClientInfo<'static> = PLAIN.feature(ClientCapability::ElicitForm).feature(ClientCapability::Sampling);
    static VISITS: ClientInfo<'static> = PLAIN.feature(ClientCapability::ElicitUrl);
    let tools = r#"{"messages":[],"maxTokens":1,"tools":[]}"#;
    let cases = [
        (&FORMS, "elicitation/create", VISIT, -32602),
        (&FORMS, "elicitation/create", r#"{"mode":"voice","message":"m","requestedSchema":{}}"#, -32602),
        (&FORMS, "elicitation/create", r#"{"mode":3,"message":"m","requestedSchema":{}}"#, -32602),
        (&VISITS, "elicitation/create", FORM, -32602),
        (&PLAIN, "elicitation/create", FORM, -32601),
        (&FORMS, "roots/list", "{}", -32601),
        (&VISITS, "sampling/createMessage", SAMPLE, -32601),
        (&FORMS, "sampling/createMessage", tools, -32602),
    ];
    for (info, method, params, code) in cases {
        everywhere(|| {
            let mut desk = Desk::legacy(info, Revision::V2025_11_25);
            desk.ask("5", method, params);
            assert_eq!((desk.event().as_str(), &desk.one()["error"]["code"]), ("ignored Undeclared", &code.into()));
            desk
        });
    }
    let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
    let unbalanced = r#"{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"a","name":"t","input":{}}}],"maxTokens":1}"#;
    desk.ask("5", "sampling/createMessage", unbalanced);
    assert_eq!((desk.event().as_str(), &desk.one()["error"]["code"]), ("ignored BadRequest", &(-32602).into()));
}

/// A sampling without role or content is not passed to the application, in any revision.
// spec: C107 C111 C116
#[test]
fn samplings_without_role_or_content_are_refused() {
    let said = r#"{"role":"user","content":{"type":"text","text":"?"}}"#;
    for message in [
        r#"{"role":"system","content":{"type":"text","text":"x"}}"#,
        r#"{"content":{"type":"text","text":"x"}}"#,
        r#"{"role":"user"}"#,
        r#"{"role":"user","content":null}"#,
        r#"{"role":"user","content":"x"}"#,
        "3",
    ] {
        for messages in [message.to_owned(), format!("{said},{message}")] {
            let params = format!(r#"{{"messages":[{messages}],"maxTokens":9}}"#);
            for revision in LEGACY {
                let mut desk = Desk::legacy(&FULL, revision);
                desk.ask("5", "sampling/createMessage", &params);
                assert_eq!(
                    (desk.event().as_str(), &desk.one()["error"]["code"]),
                    ("ignored BadRequest", &(-32602).into())
                );
            }
        }
    }
}

/// `tools` came with 2025-11-25: in older revisions it is an unknown member, which is ignored.
// spec: C010
#[test]
fn members_of_later_revisions_are_not_looked_at() {
    static SAMPLES: ClientInfo<'static> =
        PLAIN.feature(ClientCapability::Sampling).feature(ClientCapability::ElicitForm);
    for revision in LEGACY {
        everywhere(|| {
            let mut desk = Desk::legacy(&SAMPLES, revision);
            for (member, later) in
                [(r#""tools":[]"#, true), (r#""toolChoice":{"mode":"auto"}"#, true), (r#""tools":null"#, false)]
            {
                let params = SAMPLE.replace("{\"messages\"", &format!("{{{member},\"messages\""));
                desk.ask("5", "sampling/createMessage", &params);
                if revision == Revision::V2025_11_25 && later {
                    assert_eq!(
                        (desk.event().as_str(), &desk.one()["error"]["code"]),
                        ("ignored Undeclared", &(-32602).into())
                    );
                } else {
                    assert_eq!(desk.event(), "asked [Sampling]", "{member} in {revision}");
                }
            }
            desk
        });
    }
    // `"mode":"form"` in a revision that has no other mode.
    let mut desk = Desk::legacy(&SAMPLES, Revision::V2025_06_18);
    desk.ask("5", "elicitation/create", FORM);
    assert_eq!(desk.event(), "asked [Form]");
    // `null` is like no `mode`, in each revision that has forms.
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut desk = Desk::legacy(&SAMPLES, revision);
        desk.ask("5", "elicitation/create", &FORM.replace(r#""mode":"form""#, r#""mode":null"#));
        assert_eq!(desk.event(), "asked [Form]", "{revision}");
    }
    // No `mode` in a revision that has several.
    let mut desk = called();
    let params = FORM.replace(r#""mode":"form","#, "");
    desk.result(&required(&format!(r#"{{"f":{{"method":"elicitation/create","params":{params}}}}}"#), ""));
    assert_eq!(desk.event(), "asked [Form]");
}

/// This client declares no tasks: a question with the member `task` is answered like any other.
// spec: K063
#[test]
fn tasks_are_not_looked_at() {
    for (method, params, reply) in [
        ("sampling/createMessage", SAMPLE, sampled()),
        ("elicitation/create", FORM, ClientResult::accept(Raw::constant(r#"{"name":"x"}"#))),
    ] {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
            let [plain, task] = ["", r#""task":{"ttl":60000},"#].map(|member| {
                desk.ask("5", method, &params.replacen('{', &format!("{{{member}"), 1));
                assert!(desk.event().starts_with("asked ["), "{method} {member}");
                desk.reply(desk.asked[0].0, &reply).unwrap();
                desk.one()
            });
            assert_eq!(task, plain);
            desk
        });
    }
}

/// In 2025-11-25 the result of a request that names a task in its `_meta` names the same task.
// spec: K001 K027
#[test]
fn results_name_the_task_of_their_question() {
    const RELATED: &str = "io.modelcontextprotocol/related-task";
    let named = |params: &str, related: &str| {
        params.replacen('{', &format!(r#"{{"_meta":{{"a":1,"{RELATED}":{related}}},"#), 1)
    };
    let own = Raw::constant(r#"{"com.example/a":1,"io.modelcontextprotocol/related-task":7}"#);
    let text = CreateMessageResult::new("m", ContentBlock::text("42"));
    let cases = [
        ("sampling/createMessage", SAMPLE, ClientResult::sampled(text), false),
        ("sampling/createMessage", SAMPLE, ClientResult::sampled(text.meta(own)), true),
        ("elicitation/create", FORM, ClientResult::accept(Raw::constant(r#"{"name":"x"}"#)), false),
        ("elicitation/create", VISIT, ClientResult::decline(), false),
        ("elicitation/create", FORM, ClientResult::cancel(), false),
        ("roots/list", "{}", ClientResult::roots(&ROOTS), false),
        (
            "roots/list",
            r#"{"x":1}"#,
            ClientResult::raw(Raw::constant(r#"{"_meta":{"com.example/a":1},"roots":[]}"#)),
            true,
        ),
    ];
    for (method, params, reply, has_meta) in cases {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
            desk.ask("5", method, params);
            desk.event();
            desk.reply(desk.asked[0].0, &reply).unwrap();
            let mut expected = desk.one();
            let mut meta = serde_json::json!({ RELATED: { "taskId": "t\"\u{e9}" } });
            if has_meta {
                meta["com.example/a"] = 1.into();
            }
            expected["result"]["_meta"] = meta;
            // `roots/list` has `{}` for params.
            let params = named(params, r#"{"taskId":"t\"\u00e9","x":1}"#).replace(",}", "}");
            desk.ask("5", method, &params);
            desk.event();
            desk.reply(desk.asked[0].0, &reply).unwrap();
            assert_eq!(desk.one(), expected, "{method}");
            assert_eq!(desk.reply(desk.asked[0].0, &reply), Err(SendError::Stale));
            desk
        });
    }
    // A value that names no task, and the revisions without tasks.
    for (revision, related) in [
        (Revision::V2025_11_25, r#"{"taskId":7}"#),
        (Revision::V2025_11_25, r#""t""#),
        (Revision::V2025_06_18, r#"{"taskId":"t"}"#),
    ] {
        let mut desk = Desk::legacy(&FULL, revision);
        desk.ask("5", "elicitation/create", &named(FORM, related));
        desk.event();
        desk.reply(desk.asked[0].0, &ClientResult::decline()).unwrap();
        assert_eq!(desk.one()["result"], serde_json::json!({ "action": "decline" }), "{revision} {related}");
    }
}

/// The id of the task, and the result of a request that names one, count as held.
#[test]
fn a_task_needs_room() {
    let id = "t".repeat(40);
    let params =
        FORM.replacen('{', &format!(r#"{{"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}}}},"#), 1);
    let content = format!(r#"{{"name":"{}"}}"#, "x".repeat(100));
    let big = ClientResult::accept(Raw::parse(content.as_bytes()).unwrap());
    let desk = |room| {
        let mut desk = Desk::of(Client::new(&FULL, Slots::growing(1)).held(mcp_sansio::memory::Store::growing(room)));
        desk.open_legacy(Revision::V2025_11_25, OFFERS);
        desk.ask("5", "elicitation/create", &params);
        desk
    };
    let mut small = desk(40);
    for _ in 0..9 {
        assert_eq!((small.event().as_str(), &small.one()["error"]["code"]), ("ignored NoRoom", &(-32603).into()));
        small.ask("5", "elicitation/create", &params);
    }
    small.forget();
    // Nothing of them was held.
    small.ask("6", "elicitation/create", FORM);
    assert_eq!(small.event(), "asked [Form]");
    let mut middle = desk(120);
    assert_eq!(middle.event(), "asked [Form]");
    assert_eq!(middle.reply(middle.asked[0].0, &big), Err(SendError::NoRoom));
    middle.reply(middle.asked[0].0, &ClientResult::decline()).unwrap();
    assert_eq!(middle.one()["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id.as_str());
}

// spec: C088 C089
#[test]
fn roots_that_were_not_declared() {
    for revision in LEGACY {
        let mut desk = Desk::legacy(&PLAIN, revision);
        desk.ask("5", "roots/list", "{}");
        assert_eq!((desk.event().as_str(), &desk.one()["error"]["code"]), ("ignored Undeclared", &(-32601).into()));
    }
}

/// The exact capabilities of a client, in each revision.
// spec: B091 B095 C001 C002 C004 C086 C087 C100 C102 C131
#[test]
fn capabilities() {
    static FORMS: ClientInfo<'static> = PLAIN.feature(ClientCapability::ElicitForm);
    static VISITS: ClientInfo<'static> = PLAIN.feature(ClientCapability::ElicitUrl);
    static SAMPLES: ClientInfo<'static> = PLAIN.feature(ClientCapability::Sampling).feature(ClientCapability::Roots);
    static TOOLS: ClientInfo<'static> = PLAIN.feature(ClientCapability::SamplingTools);
    static CONTEXT: ClientInfo<'static> = SAMPLES.feature(ClientCapability::SamplingContext).roots_changed();
    // Up to 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
    let cases = [
        (&PLAIN, ["{}"; 4]),
        (&FORMS, ["{}", r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#, r#"{"elicitation":{"form":{}}}"#]),
        (&VISITS, ["{}", "{}", r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"url":{}}}"#]),
        (&SAMPLES, [r#"{"roots":{},"sampling":{}}"#; 4]),
        (
            &TOOLS,
            [
                r#"{"sampling":{}}"#,
                r#"{"sampling":{}}"#,
                r#"{"sampling":{"tools":{}}}"#,
                r#"{"sampling":{"tools":{}}}"#,
            ],
        ),
        (
            &CONTEXT,
            [
                r#"{"roots":{"listChanged":true},"sampling":{}}"#,
                r#"{"roots":{"listChanged":true},"sampling":{}}"#,
                r#"{"roots":{"listChanged":true},"sampling":{"context":{}}}"#,
                r#"{"roots":{},"sampling":{"context":{}}}"#,
            ],
        ),
    ];
    for (info, expected) in cases {
        for revision in Revision::ALL {
            let place = match revision {
                Revision::V2024_11_05 | Revision::V2025_03_26 => 0,
                Revision::V2025_06_18 => 1,
                Revision::V2025_11_25 => 2,
                _ => 3,
            };
            let mut desk = Desk::new(info);
            desk.client().connect_as(revision);
            desk.pump();
            if revision.is_modern() {
                desk.send(&Request::list_tools());
            }
            let params = &desk.one()["params"];
            let told = match revision.is_modern() {
                true => &params["_meta"]["io.modelcontextprotocol/clientCapabilities"],
                false => &params["capabilities"],
            };
            assert_eq!(told.to_string(), expected[place], "{revision}");
        }
    }
}

/// Up to 2025-11-25 a question names no request, so the limit counts questions between two requests of the client.
// spec: C121
#[test]
fn questions_of_the_older_revisions_are_bounded() {
    let mut desk = Desk::of(Client::growing(&FULL).max_input_rounds(2));
    desk.open_legacy(Revision::V2025_11_25, OFFERS);
    desk.send(&Request::call("x"));
    desk.forget();
    let ask = |desk: &mut Desk| {
        desk.ask("5", "roots/list", "{}");
        let event = desk.event();
        if event == "asked [Roots]" {
            desk.reply(desk.asked[0].0, &ClientResult::roots(&[])).unwrap();
        }
        (event, desk.one())
    };
    for _ in 0..32 {
        assert_eq!(ask(&mut desk).0, "asked [Roots]");
    }
    let (event, answer) = ask(&mut desk);
    assert_eq!((event.as_str(), &answer["error"]["code"]), ("ignored NoRoom", &(-32603).into()));
    // The count begins again with the next request; nothing is counted while no request is in flight.
    let token = desk.send(&Request::call("y"));
    desk.forget();
    assert_eq!(ask(&mut desk).0, "asked [Roots]");
    desk.cancel(token).unwrap();
    desk.client().end_of_input();
    desk.pump();
    desk.open_legacy(Revision::V2025_11_25, OFFERS);
    for _ in 0..100 {
        assert_eq!(ask(&mut desk).0, "asked [Roots]");
    }
}

// spec: B014 B015 B016 B065 B068 C103 C104
#[test]
fn errors_for_the_older_revisions() {
    for revision in LEGACY {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, revision);
            desk.ask("7", "sampling/createMessage", SAMPLE);
            desk.forget();
            desk.refuse(desk.asked[0].0, &RpcError::refused()).unwrap();
            let refused = desk.one();
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&7.into(), &(-1).into()));
            assert!(refused["error"]["message"].is_string());
            assert_eq!(desk.refuse(desk.asked[0].0, &RpcError::refused()), Err(SendError::Stale));
            desk
        });
    }
}

#[test]
fn the_second_of_two_questions_is_withdrawn() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
        desk.ask("1", "elicitation/create", VISIT);
        let first = desk.asked[0].0;
        desk.ask("2", "roots/list", "{}");
        let second = desk.asked[0].0;
        desk.forget();
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
        assert_eq!(desk.event(), "withdrawn Roots");
        assert_eq!(desk.reply(second, &ClientResult::roots(&[])), Err(SendError::Stale));
        desk.reply(first, &ClientResult::consent()).unwrap();
        assert_eq!(desk.one()["id"], 1);
        desk
    });
}

// spec: B129 B130 B132 B187
#[test]
fn withdrawn_questions() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        desk.ask(r#""\u00e9""#, "roots/list", "{}");
        desk.forget();
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é","reason":"x"}}"#);
        assert_eq!(desk.event(), "withdrawn Roots: x");
        assert_eq!(desk.reply(desk.asked[0].0, &ClientResult::roots(&[])), Err(SendError::Stale));
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é"}}"#);
        desk.quiet();
        // After the connection is lost the server does not wait for the answer either.
        desk.ask("8", "roots/list", "{}");
        desk.client().end_of_input();
        assert_eq!(desk.reply(desk.asked[0].0, &ClientResult::roots(&[])), Err(SendError::Stale));
        desk
    });
}

/// No notification is answered, and a cancellation that is malformed, or of nothing, cancels nothing.
// spec: B057 B128 B131
#[test]
fn notifications_are_not_answered() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            if !revision.is_modern() {
                desk.ask("8", "roots/list", "{}");
            }
            let request = desk.send(&Request::list_tools());
            desk.forget();
            for method in
                ["cancelled", "progress", "message", "tools/list_changed", "resources/updated", "com.example/x"]
            {
                for params in [
                    "",
                    r#","params":null"#,
                    r#","params":[]"#,
                    r#","params":{}"#,
                    r#","params":{"requestId":null,"progressToken":null,"uri":null}"#,
                    r#","params":{"requestId":{},"progressToken":[],"uri":7}"#,
                    r#","params":{"requestId":[8],"progressToken":1.5,"uri":"x:y"}"#,
                    r#","params":{"requestId":"8","progress":1}"#,
                    r#","params":{"requestId":9,"progressToken":"none","progress":1}"#,
                ] {
                    desk.feed(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"{params}}}"#));
                    assert_eq!(desk.said(), [serde_json::Value::Null; 0], "{method} {params} in {revision}");
                }
            }
            assert!(!desk.events().iter().any(|event| event.starts_with("withdrawn")));
            assert!(desk.client().is_open(request));
            if !revision.is_modern() {
                desk.reply(desk.asked[0].0, &ClientResult::roots(&ROOTS)).unwrap();
                assert_eq!(desk.one()["id"], 8);
            }
            desk
        });
    }
}

// spec: C090
#[test]
fn no_room_for_a_question() {
    let mut desk = Desk::of(Client::new(&FULL, Slots::growing(6)));
    desk.open_legacy(Revision::V2025_06_18, OFFERS);
    desk.ask("8", "roots/list", "{}");
    assert_eq!(desk.event(), "ignored NoRoom");
    assert_eq!(desk.one()["error"]["code"], -32603);
}

fn visits(count: usize) -> String {
    let visits = vec![VISIT; count].join(",");
    format!(r#"{{"elicitations":[{visits}]}}"#)
}

#[test]
fn required_visits() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
        let token = desk.send(&Request::call("x").arguments(&serde_json::json!({"a": 1})));
        let first = desk.one();
        desk.error(-32042, &visits(2));
        assert_eq!(desk.event(), "asked [UrlElicitation, UrlElicitation]");
        assert_eq!(desk.asked[1].1, VISIT);
        let asked = desk.asked.clone();
        desk.reply(asked[1].0, &ClientResult::consent()).unwrap();
        desk.wait(1_000_000);
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#);
        assert_eq!(desk.event(), "visited e1");
        desk.quiet();
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#);
        assert_eq!(desk.event(), "ignored UnknownVisit");
        desk.reply(asked[0].0, &ClientResult::consent()).unwrap();
        let again = desk.one();
        assert_ne!(again["id"], first["id"]);
        assert_eq!(again["params"], first["params"]);
        desk.error(-32042, &visits(1));
        desk.forget();
        desk.reply(desk.asked[0].0, &ClientResult::decline()).unwrap();
        assert_eq!(desk.event(), "tools/call failed: what the server asked for was refused");
        assert!(!desk.client().is_open(token));
        desk
    });
}

/// The end of a visit (`notifications/elicitation/complete`) is reported once, and only if the server asked for the
/// visit.
// spec: C007
#[test]
fn ends_of_visits() {
    let over = |desk: &mut Desk, id: &str| {
        desk.feed(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"{id}"}}}}"#
        ));
        desk.event()
    };
    for revision in Revision::ALL {
        let mut desk = Desk::speaking(revision);
        assert_eq!(over(&mut desk, "never-asked"), "ignored UnknownVisit", "{revision}");
    }
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
        desk.ask("1", "elicitation/create", VISIT);
        desk.reply(desk.asked[0].0, &ClientResult::consent()).unwrap();
        desk.forget();
        assert_eq!(over(&mut desk, "e2"), "ignored UnknownVisit");
        assert_eq!(over(&mut desk, "\\u00651"), "visited e1");
        assert_eq!(over(&mut desk, "e1"), "ignored UnknownVisit");
        desk
    });
    let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
    // The client remembers the newest visits, and none in the next connection.
    for n in 0..65 {
        desk.ask("1", "elicitation/create", &VISIT.replace("e1", &format!("n{n}")));
        desk.reply(desk.asked[0].0, &ClientResult::decline()).unwrap();
    }
    desk.forget();
    assert_eq!(over(&mut desk, "n0"), "ignored UnknownVisit");
    assert_eq!(over(&mut desk, "n1"), "visited n1");
    desk.client().reconnect(TransportError::SessionLost);
    desk.pump();
    desk.initialized("2025-11-25", OFFERS);
    desk.forget();
    assert_eq!(over(&mut desk, "n64"), "ignored UnknownVisit");
}

/// A result of a request that was sent again must not be cached: the outcome says so.
// spec: S072
#[test]
fn outcomes_say_whether_the_request_was_sent_again() {
    for (again, expected) in [(false, false), (true, true)] {
        let mut client = Client::growing(&FULL);
        let mut out = mcp_sansio::sink::LineSink::new(Vec::new());
        client.connect_as(Revision::V2026_07_28);
        client.send(&Request::read("t://a"), &mut out).unwrap();
        let mut id = 1;
        if again {
            let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s1"}}"#;
            assert!(client.receive(answer, &mut out).unwrap().is_none());
            assert!(client.advance(0, &mut out).unwrap().is_none());
            let written = String::from_utf8(out.pending().to_vec()).unwrap();
            let last: serde_json::Value = serde_json::from_str(written.lines().last().unwrap()).unwrap();
            id = last["id"].as_u64().unwrap();
        }
        let result = r#"{"resultType":"complete","contents":[],"ttlMs":60000,"cacheScope":"public"}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let Some(ClientEvent::Done { method, retried, outcome: Ok(result), .. }) =
            client.receive(answer.as_bytes(), &mut out).unwrap()
        else {
            panic!("no outcome")
        };
        assert_eq!(retried, expected);
        let mut cache = ResponseCache::new(mcp_sansio::memory::Store::growing(1000));
        let key = CacheKey::new(method, Some(Raw::constant(r#"{"uri":"t://a"}"#)));
        assert_eq!(cache.put(key.retried(retried), result, 0), !expected);
    }
}

/// The client keeps nothing of a question after it has answered it.
// spec: C108
#[test]
fn nothing_is_kept_of_what_was_answered() {
    let store = vec![0; 400].leak();
    let mut desk = Desk::of(Client::new(&FULL, Slots::growing(6)).held(&mut *store));
    desk.open_legacy(Revision::V2025_11_25, OFFERS);
    for _ in 0..100 {
        desk.ask("5", "sampling/createMessage", SAMPLE);
        assert_eq!(desk.event(), "asked [Sampling]");
        desk.reply(desk.asked[0].0, &sampled()).unwrap();
        desk.forget();
    }
}

#[test]
fn visits_that_cannot_be_made_are_plain_errors() {
    let plain = "tools/call failed: no (-32042)";
    for (info, revision, data) in [
        (&PLAIN, Revision::V2025_11_25, visits(1)),
        (&FULL, Revision::V2025_06_18, visits(1)),
        (&FULL, Revision::V2026_07_28, visits(1)),
        (&FULL, Revision::V2025_11_25, visits(0)),
        (&FULL, Revision::V2025_11_25, visits(17)),
        (&FULL, Revision::V2025_11_25, String::new()),
        (&FULL, Revision::V2025_11_25, r#"{"elicitations":[{"mode":"url"}]}"#.to_owned()),
    ] {
        everywhere(|| {
            let mut desk = if revision.is_modern() { Desk::modern(info) } else { Desk::legacy(info, revision) };
            desk.send(&Request::call("x"));
            desk.error(-32042, &data);
            assert_eq!(desk.event(), plain);
            desk
        });
    }
}
