//! The method decides which member names the target of a request: another `name` or `uri` beside it changes nothing.
use crate::common;

use common::*;
use mcp_sansio::json::Raw;
use mcp_sansio::server::{AssociatedData, Seal, SealError};
use mcp_sansio::service::{
    Call, GetPrompt, HandlerResult, InputRequest, Prompt, ReadResource, ResourceTemplate, Service, Tool,
};
use mcp_sansio_http::seal::HmacSeal;
use std::sync::LazyLock;

const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);

fn question() -> [InputRequest<'static>; 1] {
    [InputRequest::elicit("sure", "Sure?", SURE)]
}

fn call(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if call.answer("sure").is_none() {
        return call.ask(&question(), b"granted");
    }
    call.text("done")
}

fn read(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    if read.var("path") == Some("none") {
        return read.not_found();
    }
    if read.answer("sure").is_none() {
        return read.ask(&question(), b"granted");
    }
    read.text("done")
}

fn get(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    if get.answer("sure").is_none() {
        return get.ask(&question(), b"granted");
    }
    get.user("done")
}

static TOOLS: [Tool<World>; 2] = [Tool::new("a", "A", call).reserve(1024), Tool::new("b", "B", call).reserve(1024)];
static TEMPLATES: [ResourceTemplate<World>; 1] = [ResourceTemplate::new("s://{+path}", "s", read).reserve(1024)];
static PROMPTS: [Prompt<World>; 2] =
    [Prompt::new("a", "A", get).reserve(1024), Prompt::new("b", "B", get).reserve(1024)];

const fn service() -> Service<'static, World> {
    Service::new("targets", "1.0").tools(&TOOLS).templates(&TEMPLATES).prompts(&PROMPTS)
}

fn rig(seal: &'static (dyn Seal + Sync)) -> Rig {
    use mcp_sansio::server::{MessageLimits, Server};
    Rig::of(usize::MAX, Server::growing(MessageLimits::default()).seal(seal)).serving(service())
}

static HMAC: LazyLock<HmacSeal> = LazyLock::new(|| HmacSeal::new(&[7; 32]));

/// A state that was sealed for one target is refused for another, with any other members beside its name.
#[test]
fn a_sealed_state_belongs_to_what_the_method_names() {
    let ways = [
        ("resources/read", "uri", "name", ["s://a", "s://b"]),
        ("tools/call", "name", "uri", ["a", "b"]),
        ("prompts/get", "name", "uri", ["a", "b"]),
    ];
    let seals: [&'static (dyn Seal + Sync); 2] = [&*HMAC, &toy_seal::SEAL];
    for seal in seals {
        for (method, member, foreign, [a, b]) in ways {
            for beside in [json!("x"), json!(a), json!(5), json!({"x": 1})] {
                let mut rig = rig(seal);
                let ask = json!({member: a, foreign: beside});
                let asked = parse(&rig.one(&request(MODERN, 1, method, ask.clone())));
                let state = asked["result"]["requestState"].clone();
                assert!(state.is_string(), "{asked}");
                let answers = json!({"sure": {"action": "accept", "content": {"sure": true}}});
                let retry = |target: &str, beside: &Value| {
                    let params = json!({member: target, foreign: beside, "requestState": state,
                        "inputResponses": answers});
                    request(MODERN, 2, method, params)
                };
                assert_eq!(code(&rig.one(&retry(b, &beside))), -32602, "{method}, beside {beside}");
                assert_eq!(code(&rig.one(&retry(b, &json!(a)))), -32602);
                assert!(rig.one(&retry(a, &json!("another"))).contains("done"), "{method}, beside {beside}");
            }
        }
    }
}

/// A seal that protects nothing.
struct Unsealed;

impl Seal for Unsealed {
    fn seal(&self, _: &AssociatedData<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError> {
        sealed[..state.len()].copy_from_slice(state);
        Ok(state.len())
    }

    fn open(&self, bound: &AssociatedData<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError> {
        self.seal(bound, sealed, state)
    }
}

/// With a seal that refuses nothing, the state is accepted: the refusal above is the work of the seal.
#[test]
fn without_protection_the_state_is_taken() {
    let mut rig = rig(&Unsealed);
    let asked = parse(&rig.one(&request(MODERN, 1, "resources/read", json!({"uri": "s://a"}))));
    let params = json!({"uri": "s://b", "requestState": asked["result"]["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {"sure": true}}}});
    assert!(rig.one(&request(MODERN, 2, "resources/read", params)).contains("done"));
}

/// `data.uri` of the error is the URI that was asked for.
#[test]
fn errors_name_the_uri() {
    for revision in REVISIONS {
        let mut rig = Rig::new().serving(service()).opened(revision);
        for params in [
            json!({"uri": "s://none", "name": "fake"}),
            json!({"uri": "s://none"}),
            json!({"uri": "t://unknown", "name": "fake"}),
        ] {
            let reply = rig.one(&request(revision, 1, "resources/read", params.clone()));
            assert_eq!(code(&reply), if is_modern(revision) { -32602 } else { -32002 });
            assert_eq!(parse(&reply)["error"]["data"], json!({"uri": params["uri"]}), "{reply}");
        }
    }
}
