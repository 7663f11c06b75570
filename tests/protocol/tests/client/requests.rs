//! Each request in each revision, and the requests that the client itself refuses.

use crate::desk::{Desk, FULL, LEGACY, PLAIN, everywhere};
use mcp_sansio::client::{Request, SendError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::revision::Revision;
use serde_json::json;

const ARGUMENTS: Raw<'static> = Raw::constant("{\"text\":\"a\\nb\",\n\"other\":\"\u{e9}\"}");

fn requests() -> [(&'static str, Request<'static>); 19] {
    [
        ("tools/list", Request::list_tools()),
        ("tools/list", Request::list_tools().after("c\"1\\").with_progress()),
        ("tools/list", Request::list_tools().after("")),
        ("resources/list", Request::list_resources()),
        ("resources/templates/list", Request::list_templates().meta(Raw::constant(r#"{"com.example/x":[1]}"#))),
        ("prompts/list", Request::list_prompts()),
        ("tools/call", Request::call("echo")),
        ("tools/call", Request::call("e\"cho").arguments(&ARGUMENTS).with_progress().with_logs(LoggingLevel::Notice)),
        ("resources/read", Request::read("file:///a%20b")),
        ("prompts/get", Request::prompt("p").arguments(&ARGUMENTS)),
        ("completion/complete", Request::complete_prompt("p", "a", "v")),
        ("completion/complete", Request::complete_template("r://{x}", "x", "").arguments(&ARGUMENTS)),
        ("ping", Request::ping()),
        ("server/discover", Request::discover()),
        ("resources/subscribe", Request::subscribe("r://one")),
        ("resources/unsubscribe", Request::unsubscribe("r://one")),
        ("logging/setLevel", Request::set_level(LoggingLevel::Emergency)),
        (
            "tools/call",
            Request::raw("tools/call", Some(Raw::constant(r#"{"name":"x","_meta":{"com.example/y":"\n"}}"#))),
        ),
        ("prompts/list", Request::raw("prompts/list", None)),
    ]
}

const LEGACY_ONLY: [&str; 4] = ["ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"];

/// The desk judges each message by the schema of its revision.
// spec: B001 B002 B040 B061 B062 B102 B103 B105 B106 B120 K009 K010 K064 K065 T058 T060 T068 T071
#[test]
fn every_request_of_every_revision() {
    for revision in Revision::ALL {
        for (method, request) in requests() {
            everywhere(|| {
                let mut desk = Desk::speaking(revision);
                let foreign =
                    if revision.is_modern() { LEGACY_ONLY.contains(&method) } else { method == "server/discover" };
                if foreign {
                    assert_eq!(desk.try_send(&request), Err(SendError::NotInRevision), "{method} in {revision}");
                    desk.quiet();
                    return desk;
                }
                let token = desk.send(&request);
                let said = desk.one();
                assert_eq!(said["method"], method);
                assert_eq!(said["id"].as_u64(), desk.client().wire_id(token));
                assert!(said["params"]["_meta"].is_object() || !revision.is_modern());
                assert!(said["params"].get("task").is_none(), "this client has no tasks");
                desk.result("{}");
                assert!(desk.event().ends_with(" ok {}"));
                assert!(!desk.client().is_open(token));
                assert_eq!(desk.client().in_flight(), 0);
                desk
            });
        }
    }
}

/// A request that waits is sent later with the same bytes.
#[test]
fn every_kept_request_of_every_revision() {
    for revision in Revision::ALL {
        for (_, request) in requests() {
            let kept = request.keep().unwrap();
            let [now, later] = [request, kept.request()].map(|request| {
                let mut desk = Desk::speaking(revision);
                desk.try_send(&request).map(|_| desk.one())
            });
            assert_eq!(now, later);
        }
    }
}

// spec: B056 C096
#[test]
fn notifications_of_every_revision() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            desk.with(|client, out| client.roots_changed(out)).unwrap();
            let said = desk.said();
            assert_eq!(said.len(), usize::from(!revision.is_modern()));
            assert!(said.iter().all(|line| line["method"] == "notifications/roots/list_changed"));
            desk
        });
    }
    let mut desk = Desk::modern(&PLAIN);
    assert_eq!(desk.with(|client, out| client.roots_changed(out)), Err(SendError::NotOffered));
}

// spec: B084 B104 B107 S016
#[test]
fn what_the_server_does_not_offer_is_not_asked() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::new(&PLAIN);
            match revision.is_modern() {
                true => desk.open_modern(r#"{"resources":{}}"#),
                false => desk.open_legacy(revision, r#"{"resources":{}}"#),
            }
            for (method, request) in requests().into_iter().take(17) {
                let free = method.starts_with("resources/") && !method.ends_with("subscribe")
                    || matches!(method, "ping" | "server/discover")
                    || revision == Revision::V2024_11_05 && method == "completion/complete";
                match desk.try_send(&request) {
                    Ok(token) => {
                        assert!(free, "{method} in {revision}");
                        desk.result("{}");
                        assert!(!desk.client().is_open(token));
                    }
                    Err(SendError::NotInRevision) => {}
                    Err(error) => assert_eq!((error, free), (SendError::NotOffered, false), "{method} in {revision}"),
                }
            }
            desk
        });
    }
}

// spec: B121 B124 B142 T078
#[test]
fn only_so_many_at_once() {
    everywhere(|| {
        let mut desk = Desk::modern(&PLAIN);
        let tokens = [(); 6].map(|()| desk.send(&Request::list_tools()));
        assert_eq!(desk.try_send(&Request::list_tools()), Err(SendError::Busy));
        assert_eq!(desk.said().len(), 6);
        desk.cancel(tokens[2]).unwrap();
        assert_eq!(desk.one()["params"]["requestId"].as_u64(), Some(desk.last_id() - 3));
        let again = desk.send(&Request::list_tools());
        assert!(!tokens.contains(&again));
        assert_eq!(desk.cancel(tokens[2]), Err(SendError::Stale));
        desk
    });
}

#[test]
fn nothing_is_sent_before_there_is_a_connection() {
    let mut desk = Desk::new(&PLAIN);
    assert_eq!(desk.try_send(&Request::ping()), Err(SendError::NotConnected));
    assert_eq!(desk.with(|client, out| client.set_log_level(LoggingLevel::Info, out)), Err(SendError::NotConnected));
    assert_eq!(desk.with(|client, out| client.roots_changed(out)), Err(SendError::NotConnected));
    assert_eq!(
        desk.with(|client, _| client.listen(&mcp_sansio::client::SubscriptionFilter::new().tools())),
        Err(SendError::NotConnected)
    );
    desk.quiet();
}

#[test]
fn log_levels() {
    everywhere(|| {
        let mut desk = Desk::modern(&PLAIN);
        assert_eq!(desk.with(|client, out| client.set_log_level(LoggingLevel::Error, out)), Ok(None));
        desk.quiet();
        let level = "io.modelcontextprotocol/logLevel";
        desk.send(&Request::list_tools());
        assert_eq!(desk.one()["params"]["_meta"][level], "error");
        desk.send(&Request::call("x").with_logs(LoggingLevel::Debug));
        assert_eq!(desk.one()["params"]["_meta"][level], "debug");
        let mut desk = Desk::legacy(&PLAIN, Revision::V2025_11_25);
        let token = desk.with(|client, out| client.set_log_level(LoggingLevel::Warning, out)).unwrap();
        assert_eq!(desk.one()["params"]["level"], "warning");
        desk.result("{}");
        assert_eq!(desk.event(), "logging/setLevel ok {}");
        assert!(token.is_some());
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":{"a":1}}}"#);
        assert_eq!(desk.event(), r#"log None {"a":1}"#);
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications\/message","params":{"level":"error","data":"x"}}"#);
        assert_eq!(desk.event(), r#"log Some(Error) "x""#);
        let of_db = r#"{"level":"info","logger":"db","data":"slow"}"#;
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{of_db}}}"#));
        assert_eq!(desk.event(), r#"log Some(Info) of db: "slow""#);
        desk
    });
}

/// Members of `_meta` from the application are beside those of the engine, and no member comes twice.
#[test]
fn own_meta() {
    let own = Raw::constant(
        r#"{"progressToken":"mine","io.modelcontextprotocol/protocolVersion":"1","io.modelcontextprotocol\/clientInfo":1,"traceparent":"00-x"}"#,
    );
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::call("x").meta(own).with_progress());
        let said = desk.one();
        let meta = &said["params"]["_meta"];
        assert_eq!(meta["progressToken"], said["id"]);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], Revision::LATEST.date());
        assert_eq!(meta["traceparent"], "00-x");
        desk
    });
}

/// The client alone gives out progress tokens: that of the application could be another request's.
// spec: B175 B204
#[test]
fn a_progress_token_of_ones_own_is_left_out() {
    let own = Raw::constant(r#"{"progressToken":"mine","progress\u0054oken":1,"traceparent":"00-x"}"#);
    let params = Raw::constant(r#"{"_meta":{"progressToken":"mine","traceparent":"00-x"}}"#);
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            for request in [Request::call("x").meta(own), Request::raw("acme/own", Some(params))] {
                desk.send(&request);
                let said = desk.one();
                let meta = &said["params"]["_meta"];
                assert_eq!((meta.get("progressToken"), &meta["traceparent"]), (None, &json!("00-x")), "{said}");
            }
            desk
        });
    }
}

#[test]
fn arguments_that_are_no_json_send_nothing() {
    #[derive(serde::Serialize)]
    struct Wrong(#[serde(serialize_with = "fails")] u8);
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's")]
    fn fails<S: serde::Serializer>(_: &u8, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
    for revision in LEGACY.into_iter().chain([Revision::V2026_07_28]) {
        let mut desk = Desk::speaking(revision);
        assert_eq!(desk.try_send(&Request::call("x").arguments(&Wrong(1))), Err(SendError::FullNever));
        desk.quiet();
        assert_eq!(desk.client().in_flight(), 0);
    }
}
