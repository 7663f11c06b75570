//! The HTTP+SSE transport of 2024-11-05.
use crate::common;

use common::http::*;
use common::{answer, call, initialize, json, notify};
use mcp_sansio::server::ServerChange;
use mcp_sansio_http::endpoint::{Access, App, EndpointLimits, RequestHead, StreamId, StreamStatus};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

fn open(web: &mut Web, path: &str) -> (StreamId, String) {
    let stream = web.request("GET", path, &[SSE], "").opened();
    let first = web.pull(stream).events.remove(0);
    assert_eq!(first.kind, "endpoint");
    assert!(first.data.starts_with("/messages?session="), "{first:?}");
    (stream, first.data)
}

fn post(web: &mut Web, path: &str, body: &str) {
    let reply = web.request("POST", path, &[JSON], body);
    assert_eq!((reply.status, reply.body.is_null()), (202, true), "{reply:?}");
}

fn opened(web: &mut Web, path: &str) -> (StreamId, String) {
    let (stream, to) = open(web, path);
    post(web, &to, &initialize("2024-11-05", common::all_capabilities("2024-11-05")));
    assert_eq!(web.pull(stream).json()[0]["result"]["protocolVersion"], "2024-11-05");
    post(web, &to, &notify("notifications/initialized", json!({})));
    (stream, to)
}

// spec: T022 T023 T024 T025
#[test]
fn everything_is_answered_on_the_stream() {
    for path in ["/sse", "/mcp"] {
        let mut web = Web::new();
        let (stream, to) = opened(&mut web, path);
        post(&mut web, &to, &call("2024-11-05", 1, "count", json!({})));
        assert!(web.is_ready(stream));
        assert_eq!(web.pull(stream).json()[0]["result"]["content"][0]["text"], "1");
        post(&mut web, &to, &call("2024-11-05", 2, "later", json!({"tag": "l"})));
        web.answer(web.later("l"), "done").unwrap();
        assert_eq!(web.pull(stream).json()[0]["id"], 2);
        post(&mut web, &to, "{");
        assert_eq!(web.pull(stream).json()[0]["error"]["code"], -32700);
        web.publish(ServerChange::Tools);
        assert_eq!(web.pull(stream).json()[0]["method"], "notifications/tools/list_changed");
        post(&mut web, &to, &call("2024-11-05", 3, "book", json!({})));
        assert_eq!(web.pull(stream).json()[0]["result"]["content"][0]["text"], common::handlers::book_text());
        assert_eq!(web.endpoint.load(), (0, 1, 1));
    }
}

/// The only stream of a session ends after the last answer on it.
#[test]
fn draining() {
    let mut web = Web::new();
    let ((idle, _), (busy, to)) = (opened(&mut web, "/sse"), opened(&mut web, "/sse"));
    post(&mut web, &to, &call("2024-11-05", 1, "later", json!({"tag": "l"})));
    web.drain();
    assert!(web.pull(idle).ended && !web.pull(busy).ended);
    web.request("POST", &to, &[JSON], &call("2024-11-05", 2, "count", json!({}))).refused(503);
    post(&mut web, &to, &notify("notifications/x", json!({})));
    web.answer(web.later("l"), "done").unwrap();
    let last = web.pull(busy);
    assert!(last.ended);
    assert_eq!(last.only()["result"]["content"][0]["text"], "done");
    assert_eq!(web.endpoint.load(), (0, 0, 0));

    // The end of the time: an error for those that are left.
    let mut web = Web::new();
    let (busy, to) = opened(&mut web, "/sse");
    post(&mut web, &to, &call("2024-11-05", 1, "later", json!({})));
    web.drain();
    assert!(!web.pull(busy).ended);
    web.endpoint.shut_down();
    let last = web.pull(busy);
    assert!(last.ended);
    assert_eq!(last.only()["error"]["code"], -32603);
}

#[test]
fn questions() {
    let mut web = Web::new();
    let (stream, to) = opened(&mut web, "/sse");
    post(&mut web, &to, &call("2024-11-05", 1, "roots", json!({})));
    let question = web.pull(stream).json().remove(0);
    assert_eq!(question["method"], "roots/list");
    post(&mut web, &to, &answer(&question["id"], json!({"roots": [{"uri": "file:///x"}]})));
    assert_eq!(web.pull(stream).json()[0]["result"]["content"][0]["text"], "file:///x");
}

#[test]
fn ends_with_its_stream() {
    let mut web = Web::new();
    let (stream, to) = opened(&mut web, "/sse");
    post(&mut web, &to, &call("2024-11-05", 1, "later", json!({})));
    web.wait(4_000_000);
    assert_eq!(web.endpoint.load(), (1, 1, 1));
    web.detach(stream);
    assert_eq!(web.endpoint.load(), (0, 0, 0));
    web.request("POST", &to, &[JSON], "{}").refused(404);
}

// spec: T024
#[test]
fn where_to_post() {
    let mut web = Web::new();
    let (_, to) = opened(&mut web, "/sse");
    web.request("POST", "/messages", &[JSON], "{}").refused(400);
    web.request("POST", "/messages?session=1", &[JSON], "{}").refused(404);
    web.request("POST", &to, &[("content-type", "text/plain")], "{}").refused(415);
    web.request("POST", &to, &[JSON, ("content-encoding", "gzip")], "{}").refused(415);
    web.request("GET", "/sse", &[("accept", "application/json")], "").refused(406);
    let session = to.split_once('=').unwrap().1;
    // It is no session of Streamable HTTP, and sessions of Streamable HTTP do not exist here.
    web.call(session, 1, "count", json!({})).refused(404);
    web.request("DELETE", "/mcp", &[("mcp-session-id", session)], "").refused(404);
    let newer = web.open("2025-11-25");
    web.request("POST", &format!("/messages?session={newer}"), &[JSON], "{}").refused(404);
}

#[test]
fn a_reader_that_does_not_read() {
    let mut web = Web::lent(2, 2, 2000);
    let (stream, to) = opened(&mut web, "/sse");
    let mut taken = 0;
    let body = |id| call("2024-11-05", id, "count", json!({}));
    while web.request("POST", &to, &[JSON], &body(taken)).status == 202 {
        taken += 1;
        assert!(taken < 100);
    }
    assert_eq!(web.pull(stream).json().len() as i64, taken);
    post(&mut web, &to, &body(taken));
    assert_eq!(web.pull(stream).json().len(), 1);
}

#[test]
fn another_request_waits_for_a_reply_in_windows() {
    let mut web = Web::lent(2, 2, 2000);
    let (stream, to) = opened(&mut web, "/sse");
    let waits = |web: &Web, to: &str| {
        let (path, query) = to.split_once('?').unwrap();
        let none: &[(&str, &[u8])] = &[];
        web.endpoint.must_wait_for(&RequestHead::new("POST", path, Some(query), &none)).is_some()
    };
    assert!(!waits(&web, &to));
    post(&mut web, &to, &call("2024-11-05", 1, "book", json!({})));
    assert!(waits(&web, &to));
    assert!(!waits(&web, &to.replace("messages", "elsewhere")) && !waits(&web, "/messages?session=0001"));
    web.request("POST", &to, &[JSON], &call("2024-11-05", 2, "count", json!({}))).refused(503);
    // Also while there is room for its answer: nothing may stand in the middle of a reply, so no handler runs.
    let _ = web.sip(stream, 600);
    assert!(waits(&web, &to));
    web.request("POST", &to, &[JSON], &call("2024-11-05", 2, "count", json!({}))).refused(503);
    assert_eq!(web.world.effects, 0);
    assert_eq!(web.pull(stream).json()[0]["result"]["content"][0]["text"], common::handlers::book_text());
    assert!(!waits(&web, &to));
    post(&mut web, &to, &call("2024-11-05", 2, "count", json!({})));
    assert_eq!(web.pull(stream).json()[0]["id"], 2);
    assert_eq!(web.world.effects, 1);
}

/// A connection keeps it until the stream was read, if its driver says that it can, and no request that goes elsewhere.
#[test]
fn a_request_waits_in_its_connection() {
    for waits in [true, false] {
        let mut web = Web::lent(2, 2, 2000);
        let (stream, to) = opened(&mut web, "/sse");
        post(&mut web, &to, &call("2024-11-05", 1, "book", json!({})));
        let (mut input, mut output) = ([0; 2048], [0; 2048]);
        let mut connection: HttpConnection<'_> =
            HttpConnection::new(&mut input[..], &mut output[..], ConnectionLimits::DEFAULT);
        connection.set_waits_for_streams(waits);
        let mut body = BodyBuffer::new(Vec::new());
        let mut serve = |web: &mut Web, connection: &mut HttpConnection<'_>| {
            let Web { endpoint, service, world, now, .. } = web;
            let allow = allowing(|_| Access::Granted { principal: None });
            let mut app = App::new(service, world).authorize(&allow);
            let mut host = ServeContext { endpoint, app: &mut app, body: &mut body, now: *now };
            connection.serve(&mut host, &mut |bytes| bytes.fill(9))
        };
        let give = |connection: &mut HttpConnection<'_>, path: &str, message: &str| {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
                message.len()
            );
            for part in [&head, message] {
                connection.space()[..part.len()].copy_from_slice(part.as_bytes());
                connection.connection.filled(part.len());
            }
        };
        let status = |connection: &mut HttpConnection<'_>| {
            let text = String::from_utf8(connection.connection.pending().to_vec()).unwrap();
            connection.connection.sent(text.len());
            text[9..12].to_owned()
        };
        give(&mut connection, "/mcp", &initialize("2025-11-25", json!({})));
        assert_eq!(serve(&mut web, &mut connection), WaitFor::Read);
        assert_eq!(status(&mut connection), "200");
        give(&mut connection, &to, &call("2024-11-05", 2, "count", json!({})));
        if !waits {
            assert_eq!(serve(&mut web, &mut connection), WaitFor::Read);
            assert_eq!((status(&mut connection).as_str(), web.world.effects), ("503", 0));
            continue;
        }
        for _ in 0..3 {
            assert_eq!(serve(&mut web, &mut connection), WaitFor::Stream);
        }
        assert!(!connection.connection.has_pending() && web.world.effects == 0);
        assert_eq!(web.pull(stream).json()[0]["id"], 1);
        assert_eq!(serve(&mut web, &mut connection), WaitFor::Read);
        assert_eq!((status(&mut connection).as_str(), web.world.effects), ("202", 1));
        web.hear("2024-11-05", &call("2024-11-05", 2, "count", json!({})));
        assert_eq!(web.pull(stream).json()[0]["id"], 2);
    }
}

#[test]
fn batches() {
    let mut web = Web::lent(2, 2, 2000);
    let (stream, to) = opened(&mut web, "/sse");
    let ping = |id| json!({"jsonrpc":"2.0","id":id,"method":"ping"});
    post(&mut web, &to, &json!([ping(1), ping(2)]).to_string());
    assert_eq!(web.pull(stream).json()[0].as_array().unwrap().len(), 2);
    let many: Vec<_> = (0..40).map(ping).collect();
    web.request("POST", &to, &[JSON], &json!(many).to_string()).refused(503);
    post(&mut web, &to, &ping(9).to_string());
    assert_eq!(web.pull(stream).json(), [json!({"jsonrpc":"2.0","id":9,"result":{}})]);
}

/// One pull writes a limited number of messages; the others come with the next pulls, in order.
#[test]
fn a_backlog_is_read_in_turns() {
    let mut web = Web::new();
    let (stream, to) = opened(&mut web, "/sse");
    for id in 0..2_000 {
        post(&mut web, &to, &common::request("2024-11-05", id, "ping", json!({})));
    }
    let (pull, written) = web.sip(stream, usize::MAX);
    assert!(pull == StreamStatus::More && (60 * 1024..=64 * 1024).contains(&written), "{written} bytes");
    let ids: Vec<_> = web.pull(stream).json().iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, (0..2_000).collect::<Vec<_>>());
}

/// Further requests of a client that reads no answers are refused before they have an effect; no answer is lost.
#[test]
fn too_many_unread_answers() {
    let mut web = Web::limited(config(), EndpointLimits::default().unread(3));
    let (stream, to) = opened(&mut web, "/sse");
    for id in 1..=3 {
        post(&mut web, &to, &call("2024-11-05", id, "count", json!({})));
    }
    let refused = web.request("POST", &to, &[JSON], &call("2024-11-05", 4, "count", json!({})));
    refused.refused(503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let texts: Vec<_> = web.pull(stream).json().iter().map(|a| a["result"]["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["1", "2", "3"]);
    post(&mut web, &to, &call("2024-11-05", 4, "count", json!({})));
    assert_eq!(web.pull(stream).json()[0]["result"]["content"][0]["text"], "4", "the refused one had not run");
}
