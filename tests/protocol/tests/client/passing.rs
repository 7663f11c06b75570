//! What a program needs that passes messages on: it changes as little as it can.

use crate::desk::{Desk, FULL, PLAIN, everywhere};
use mcp_sansio::client::{ErrorObject, Request, SendError, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Method;
use mcp_sansio::revision::Revision;

const PARAMS: &str = r#"{"arguments":{"z":1.10e5,"a":[ 1 ]},"name":"import","_meta":{"x":"\u00e9","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"progressToken":"host"}}"#;
const ONE_FORM: &str = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}"#;

fn call(params: &'static str) -> Request<'static> {
    let params = Raw::constant(params);
    Request::of(Method::ToolsCall, Some(params), params.get("_meta"))
}

/// Params of any members are those of a request of the protocol, which may be asked back.
#[test]
fn any_params_of_a_known_method() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&call(PARAMS));
        let first = desk.one();
        assert_eq!(first["params"]["arguments"]["z"], 110_000.0);
        assert_eq!(first["params"]["_meta"]["x"], "\u{e9}");
        desk.result(ONE_FORM);
        assert_eq!(desk.event(), "asked [Form]");
        desk
    });
}

/// A server of both eras would take a request of 2025-11-25 for one of 2026-07-28.
#[test]
fn the_terms_of_a_request_are_those_of_the_client() {
    for revision in Revision::ALL {
        let mut desk = Desk::speaking(revision);
        desk.send(&call(PARAMS));
        let meta = desk.one()["params"]["_meta"].clone();
        assert_eq!(meta["x"], "\u{e9}");
        let terms = ["protocolVersion", "clientCapabilities"].map(|name| format!("io.modelcontextprotocol/{name}"));
        assert_eq!(
            terms.iter().filter(|name| meta.get(name.as_str()).is_some()).count(),
            if revision.is_modern() { 2 } else { 0 }
        );
        assert_ne!(meta["io.modelcontextprotocol/clientCapabilities"], serde_json::json!({"roots": {}}));
        assert!(meta.get("progressToken").is_none());
    }
}

/// The program asks, and the client keeps nothing.
#[test]
fn a_result_of_any_type_is_a_result() {
    everywhere(|| {
        let mut desk = Desk::modern(&PLAIN);
        for result in [ONE_FORM, r#"{"resultType":"com.example/new","a":1}"#] {
            desk.send(&call(r#"{"name":"x"}"#).any_result_type());
            desk.forget();
            desk.result(result);
            assert_eq!(desk.event(), format!("tools/call ok {result}"));
        }
        let again = r#"{"name":"x","requestState":"s","inputResponses":{"k":{"action":"decline"}}}"#;
        desk.send(&call(again).any_result_type());
        assert_eq!(desk.one()["params"]["inputResponses"]["k"]["action"], "decline");
        desk
    });
}

#[test]
fn notifications_of_any_method() {
    let mut desk = Desk::new(&PLAIN);
    let params = Some(Raw::constant(r#"{"a":1}"#));
    assert_eq!(desk.with(|client, out| client.notify("x/y", params, out)), Err(SendError::NotConnected));
    let mut out = mcp_sansio::sink::LineSink::new(Vec::new());
    let mut desk = Desk::legacy(&PLAIN, Revision::V2025_11_25);
    desk.client().notify("x/\"y", params, &mut out).unwrap();
    assert_eq!(out.pending(), b"{\"jsonrpc\":\"2.0\",\"method\":\"x/\\\"y\",\"params\":{\"a\":1}}\n");
}

#[test]
fn which_losses_were_not_executed() {
    use TransportError::{Broken, Closed, Excluded, SessionLost, TimedOut, Unreachable, Unsent};
    assert!([Unsent, Unreachable, SessionLost, Excluded].into_iter().all(TransportError::is_unsent));
    assert!(![Closed, Broken, TimedOut].into_iter().any(TransportError::is_unsent));
}

#[test]
fn errors_as_they_came() {
    let raw = Raw::constant(r#"{"code":-32602,"message":"Not opened: send initialize first","extra":[ 1 ]}"#);
    let error = ErrorObject::read(raw);
    assert!(error.is_not_opened() && error.raw.is_some_and(|own| own.as_str() == raw.as_str()));
    assert!(!ErrorObject::read(Raw::constant(r#"{"code":-32602,"message":"Opened"}"#)).is_not_opened());
}
