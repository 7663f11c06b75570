//! Event streams: the first event, ids, resumption, lost connections, slow readers.
use crate::common;

use common::http::*;
use common::{Value, World, answer, cancel, json, notify};
use data_encoding::BASE64;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{NotifyStatus, Progress, ServerChange};
use mcp_sansio::service::{Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_http::endpoint::{
    App, EndpointConfig, EndpointLimits, RequestHead, StreamId, StreamPolicy, StreamStatus,
};

fn with_token(session: &str, web: &mut Web, id: i64, tool: &str) -> Reply {
    let params = json!({"name": tool, "arguments": {"tag": "t"}, "_meta": {"progressToken": "p"}});
    web.say(session, &common::request("2025-11-25", id, "tools/call", params))
}

// spec: T008 T044 T046
#[test]
fn priming_only_in_2025_11_25() {
    for (revision, primed) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let mut web = Web::new();
        let session = web.open(revision);
        for stream in [web.call(&session, 1, "later", json!({})).opened(), web.listen(&session, None).opened()] {
            let pulled = web.pull(stream);
            assert_eq!(pulled.events.len(), usize::from(primed));
            for event in pulled.events {
                assert!(event.id.is_some() && event.data.is_empty() && event.retry == Some(1000), "{event:?}");
            }
        }
    }
}

// spec: T041 T042 T043
#[test]
fn progress_then_result_on_one_stream() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let stream = with_token(&session, &mut web, 1, "later").opened();
    let token = web.later("t");
    assert_eq!(web.endpoint.progress(token, Progress::new(1)), NotifyStatus::Sent);
    assert_eq!(web.pull(stream).json()[0]["params"]["progress"], 1);
    assert_eq!(web.endpoint.progress(token, Progress::new(2)), NotifyStatus::Sent);
    assert!(web.is_ready(stream));
    web.answer(token, "done").unwrap();
    let pulled = web.pull(stream);
    assert!(pulled.ended && pulled.json().len() == 2);
    let ids: Vec<_> = pulled.events.iter().map(|event| event.id.clone().unwrap()).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(web.sip(stream, 100), (StreamStatus::Stale, 0));
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

// spec: T007 T048 T049
#[test]
fn resumed_where_it_broke_off() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let stream = with_token(&session, &mut web, 1, "later").opened();
    let token = web.later("t");
    web.endpoint.progress(token, Progress::new(1));
    web.endpoint.progress(token, Progress::new(2));
    let events = web.pull(stream).events;
    web.detach(stream);
    web.endpoint.progress(token, Progress::new(3));
    web.answer(token, "at last").unwrap();
    assert_eq!(web.endpoint.load(), (0, 1, 1));
    for (from, left) in [(1, 3), (0, 4), (2, 2)] {
        let last = events[from].id.as_deref();
        let again = web.listen(&session, last).opened();
        if from != 2 {
            // The connection breaks once more, in the middle of an event.
            let _ = web.sip(again, 150);
            web.detach(again);
            continue;
        }
        let pulled = web.pull(again);
        assert_eq!(pulled.json().len(), left);
        assert!(pulled.ended && pulled.json()[1]["result"]["content"][0]["text"] == "at last");
    }
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

/// The stream of a call that its handler releases ends after the first event, and the client comes back for the answer.
/// Clients of a revision without that first event could not come back: their stream stays.
#[test]
fn released() {
    static TOOLS: [Tool<World>; 1] = [Tool::new("slow", "Answers long after", |world, call| {
        call.release();
        common::handlers::later(world, call)
    })];
    for (revision, released) in [("2025-06-18", false), ("2025-11-25", true)] {
        let mut web = Web::new();
        web.service = Service::new("slow", "1").tools(&TOOLS);
        let session = web.open(revision);
        let stream = web.call(&session, 1, "slow", json!({"tag": "t"})).opened();
        let pulled = web.pull(stream);
        assert_eq!((pulled.ended, pulled.events.len()), (released, usize::from(released)));
        assert_eq!(web.endpoint.load(), (1, 1, 1), "the call goes on");
        let again = match pulled.events.first() {
            Some(first) => {
                assert_eq!(web.sip(stream, 1000), (StreamStatus::Stale, 0));
                let again = web.listen(&session, first.id.as_deref()).opened();
                assert!(!web.pull(again).ended, "once is enough: the client waits now");
                again
            }
            None => stream,
        };
        web.answer(web.later("t"), "done").unwrap();
        assert_eq!(web.pull(again).only()["result"]["content"][0]["text"], "done");
        assert_eq!(web.endpoint.load(), (0, 1, 0));
    }
}

#[test]
fn resumed_by_its_own_session_only() {
    let mut web = Web::new();
    let (session, other) = (web.open("2025-11-25"), web.open("2025-11-25"));
    let stream = web.call(&session, 1, "later", json!({"tag": "t"})).opened();
    let id = web.pull(stream).events[0].id.clone().unwrap();
    web.detach(stream);
    web.listen(&other, Some(&id)).refused(400);
    for wrong in ["", "0", "0-1", "0-1-0-0", "9-1-0", "0-99-0", "0-1-7", "x-y-z", "-1-1-1", "00000000000000000000-1-1"]
    {
        web.listen(&session, Some(wrong)).refused(400);
    }
    assert!(web.listen(&session, Some(&id)).stream.is_some());
}

/// An event id is enough to find its stream, and brings back no event of another stream.
// spec: T016 T017
#[test]
fn only_what_was_lost_on_that_stream_is_sent_again() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let broken: Vec<_> = (1..=3)
        .map(|id| {
            let stream = web.call(&session, id, "later", json!({"tag": id.to_string()})).opened();
            let first = web.pull(stream).events[0].id.clone().unwrap();
            web.detach(stream);
            (id, first)
        })
        .collect();
    for (id, _) in broken.iter().rev() {
        web.answer(web.later(&id.to_string()), &format!("answer {id}")).unwrap();
    }
    for (id, first) in &broken {
        let stream = web.listen(&session, Some(first)).opened();
        let answer = web.pull(stream).only();
        assert_eq!((&answer["id"], common::text(&answer.to_string())), (&json!(id), format!("answer {id}")));
    }
}

#[test]
fn the_connection_before_reads_no_more() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let old = web.call(&session, 1, "later", json!({"tag": "t"})).opened();
    let id = web.pull(old).events[0].id.clone().unwrap();
    // The client resumes before the server has noticed the loss.
    let new = web.listen(&session, Some(&id)).opened();
    assert_ne!(old, new);
    web.answer(web.later("t"), "done").unwrap();
    assert_eq!(web.sip(old, 1000), (StreamStatus::Stale, 0));
    web.detach(old);
    assert_eq!(web.pull(new).only()["id"], 1);
}

#[test]
fn evicted() {
    let mut web = Web::lent(2, 4, 4096);
    let session = web.open("2025-11-25");
    let stream = with_token(&session, &mut web, 1, "later").opened();
    let token = web.later("t");
    let mut ids = Vec::new();
    for done in 1..60 {
        assert_eq!(web.endpoint.progress(token, Progress::new(done)), NotifyStatus::Sent);
        ids.extend(web.pull(stream).events.into_iter().map(|event| event.id.unwrap()));
    }
    web.detach(stream);
    web.listen(&session, Some(&ids[0])).refused(400);
    let again = web.listen(&session, ids.iter().rev().nth(2).map(String::as_str)).opened();
    assert_eq!(web.pull(again).json().len(), 2);
}

#[test]
fn what_is_sent_again_is_not_forgotten_meanwhile() {
    let mut web = Web::lent(2, 4, 4096);
    let session = web.open("2025-11-25");
    let stream = with_token(&session, &mut web, 1, "later").opened();
    let token = web.later("t");
    for done in 1..4 {
        web.endpoint.progress(token, Progress::new(done));
    }
    let first = web.pull(stream).events[1].id.clone().unwrap();
    web.detach(stream);
    let again = web.listen(&session, Some(&first)).opened();
    let _ = web.sip(again, 60);
    // Other streams fill the log.
    for id in 10..30 {
        let other = web.call(&session, id, "gossip", json!({})).opened();
        let _ = web.pull(other);
    }
    assert_eq!(web.pull(again).json().iter().map(|m| m["params"]["progress"].clone()).collect::<Vec<Value>>(), [2, 3]);
}

/// The log keeps a certain number of events: exactly those can be resumed from.
#[test]
fn coming_back_at_the_borders() {
    let mut web = Web::limited(config(), EndpointLimits::default().keep(1_000));
    let session = web.open("2025-06-18");
    let mut stream = with_token(&session, &mut web, 1, "later").opened();
    let token = web.later("t");
    let mut events = Vec::new();
    for done in 100..130 {
        assert_eq!(web.endpoint.progress(token, Progress::new(done)), NotifyStatus::Sent);
        events.extend(web.pull(stream).events);
    }
    assert_eq!(events.len(), 30);
    // Five bytes of the log are the event's head.
    let kept = 1_000 / (events[0].data.len() + 5);
    let id = |at: usize| events[at].id.clone().unwrap();
    for at in 0..30 {
        web.detach(stream);
        let reply = web.listen(&session, Some(&id(at)));
        if at + 1 < 30 - kept {
            reply.refused(400);
            stream = web.listen(&session, Some(&id(29))).opened();
            continue;
        }
        stream = reply.opened();
        assert_eq!(web.pull(stream).events, events[at + 1..]);
    }
    // The event is in the log but was not sent: no client can know its id.
    assert_eq!(web.endpoint.progress(token, Progress::new(130)), NotifyStatus::Sent);
    web.detach(stream);
    let (place, last) = events[29].id.as_deref().unwrap().rsplit_once('-').unwrap();
    let next = format!("{place}-{}", last.parse::<u32>().unwrap() + 1);
    web.listen(&session, Some(&next)).refused(400);
    stream = web.listen(&session, Some(&id(29))).opened();
    assert_eq!(web.pull(stream).events[0].id, Some(next));
    web.answer(token, "done").unwrap();
    assert_eq!(web.pull(stream).only()["id"], 1);
}

/// A client that resumes an older stream of its session reads the messages that belong to no request there, and no
/// longer on the newer one.
#[test]
fn coming_back_to_a_session_stream_takes_over() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let older = web.listen(&session, None).opened();
    let id = web.pull(older).events[0].id.clone().unwrap();
    web.detach(older);
    let newer = web.listen(&session, None).opened();
    let _ = web.pull(newer);
    let older = web.listen(&session, Some(&id)).opened();
    web.publish(ServerChange::Tools);
    assert!(web.pull(newer).ended);
    assert_eq!(web.pull(older).json()[0]["method"], "notifications/tools/list_changed");
    assert_eq!(web.endpoint.load(), (0, 1, 1));
}

/// Event ids do not repeat after 65,536 other requests: an old id finds no events of a later stream.
// spec: T014 T016
#[test]
fn event_ids_do_not_come_again() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let later = |web: &mut Web, id: i64| {
        let stream = web.call(&session, id, "later", json!({"tag": id.to_string()})).opened();
        web.answer(web.later(&id.to_string()), "done").unwrap();
        let events = web.pull(stream).events;
        events.into_iter().map(|event| event.id.unwrap()).collect::<Vec<_>>()
    };
    let first = later(&mut web, 1);
    // Without judging the answers, because there are many.
    let headers = [JSON, ACCEPT, ("Mcp-Session-Id", &session)].map(|(name, value)| (name, value.as_bytes()));
    let (headers, ping) = (&headers[..], br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    for _ in 0..65_536 {
        let Web { endpoint, service, world, now, .. } = &mut web;
        let mut out = LineSink::new(Vec::new());
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let response = endpoint.request(&mut App::new(service, world), &head, ping, *now, &mut |_| {}, &mut out);
        assert_eq!(response.status, 200);
    }
    let second = later(&mut web, 2);
    assert!(first.iter().all(|id| !second.contains(id)), "{first:?} {second:?}");
    web.listen(&session, Some(&first[0])).refused(400);
}

/// Answers go to the stream of their request; if that stream is gone, they go nowhere.
// spec: T006 T007
#[test]
fn no_answer_on_a_stream_for_what_concerns_no_request() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let events = web.listen(&session, None).opened();
    let own = with_token(&session, &mut web, 1, "later").opened();
    web.detach(own);
    let token = web.later("t");
    web.endpoint.progress(token, Progress::new(1));
    web.answer(token, "late").unwrap();
    assert!(web.pull(events).events.is_empty());
    web.wait(60_000);
    assert_eq!(web.endpoint.load(), (0, 1, 1), "the stream of the answer is gone");
    assert!(web.pull(events).json().is_empty());
    assert!(web.answer(token, "once more").is_err());
    assert!(web.pull(events).json().is_empty());
}

/// Log messages that belong to no request go to each session that wants them, on its own stream, and nowhere else.
// spec: T034
#[test]
fn announced() {
    let mut web = Web::new();
    let sessions = ["2025-03-26", "2025-11-25", "2025-06-18"].map(|revision| web.open(revision));
    let streams: Vec<_> = sessions[..2].iter().map(|session| web.listen(session, None).opened()).collect();
    let post = web.call(&sessions[0], 1, "later", json!({})).opened();
    streams.iter().chain([&post]).for_each(|stream| drop(web.pull(*stream)));
    let level = json!({"level": "error"});
    assert_eq!(web.say(&sessions[1], &common::request("2025-11-25", 2, "logging/setLevel", level)).status, 200);
    let announce = |web: &mut Web, level, text: &str| {
        let Web { endpoint, service, world, .. } = web;
        let sent = endpoint.log(&App::new(service, world), None, level, Some("fire"), text);
        assert_eq!(sent, NotifyStatus::Sent);
        assert!(streams.iter().any(|stream| web.is_ready(*stream)));
        let mut all = streams.iter().map(|stream| web.pull(*stream).json());
        [all.next().unwrap(), all.next().unwrap()].map(|messages| {
            assert!(messages.iter().all(|m| m["params"]["logger"] == "fire"), "{messages:?}");
            messages.iter().map(|m| m["params"]["data"].clone()).collect::<Vec<_>>()
        })
    };
    assert_eq!(announce(&mut web, LoggingLevel::Error, "it burns"), [["it burns"], ["it burns"]]);
    assert_eq!(announce(&mut web, LoggingLevel::Info, "all is well"), [vec![json!("all is well")], vec![]]);
    assert!(web.pull(post).json().is_empty());
    // A session without a stream does not get them later either.
    let late = web.listen(&sessions[2], None).opened();
    assert!(web.pull(late).json().is_empty());
}

/// A request whose stream is full still ends when the server shuts down.
#[test]
fn shut_down_without_room_for_a_word() {
    let mut untold = 0;
    for log in (900..1100).step_by(16) {
        let mut web = Web::lent(1, 1, log);
        let session = web.open("2025-06-18");
        let stream = with_token(&session, &mut web, 1, "later").opened();
        let token = web.later("t");
        let told =
            (1..).take_while(|done| web.endpoint.progress(token, Progress::new(*done)) == NotifyStatus::Sent).count();
        web.endpoint.shut_down();
        let pulled = web.pull(stream);
        assert!(pulled.ended && (told..=told + 1).contains(&pulled.json().len()), "{pulled:?}");
        untold += usize::from(pulled.json().len() == told);
        assert_eq!(web.endpoint.load(), (0, 1, 0));
    }
    assert!(untold > 0);
}

#[test]
fn forgotten_after_a_while() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let stream = web.call(&session, 1, "later", json!({"tag": "t"})).opened();
    let id = web.pull(stream).events[0].id.clone().unwrap();
    web.detach(stream);
    // The time for resumption begins with the answer, however late it is.
    web.wait(300_000);
    assert_eq!(web.endpoint.load(), (1, 1, 1));
    assert_eq!(web.answer(web.later("t"), "done"), Ok(()));
    web.wait(59_000);
    assert_eq!(web.endpoint.load(), (0, 1, 1));
    web.wait(1_000);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
    assert_eq!(web.endpoint.load(), (0, 1, 0));
    web.listen(&session, Some(&id)).refused(400);
}

#[test]
fn a_newer_session_stream_takes_over() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let older = web.listen(&session, None).opened();
    web.publish(ServerChange::Tools);
    let newer = web.listen(&session, None).opened();
    assert!(web.is_ready(older));
    let pulled = web.pull(older);
    assert!(pulled.ended && pulled.events.is_empty());
    assert_eq!(web.pull(newer).json().len(), 1);
    web.publish(ServerChange::Prompts);
    web.publish(ServerChange::Prompts);
    assert_eq!(web.pull(newer).json()[0]["method"], "notifications/prompts/list_changed");
    assert_eq!(web.endpoint.load(), (0, 1, 1));
}

/// A stream that has to end is reported as ready, even if it has no more messages.
#[test]
fn streams_that_end_are_told() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let older = web.listen(&session, None).opened();
    assert!(web.pull(older).events.is_empty() && !web.is_ready(older));
    let newer = web.listen(&session, None).opened();
    assert!(web.is_ready(older) && web.pull(older).ended);
    assert!(web.pull(newer).events.is_empty() && !web.is_ready(newer));
    assert_eq!(web.request("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], "").status, 204);
    assert!(web.is_ready(newer) && web.pull(newer).ended);
    assert_eq!(web.endpoint.load(), (0, 0, 0));
}

// spec: T009 T034
#[test]
fn changes_reach_each_session_once() {
    let mut web = Web::new();
    let sessions: Vec<_> = ["2025-03-26", "2025-06-18", "2025-11-25"].map(|revision| web.open(revision)).into();
    let uri = json!({"uri": "test://text"});
    for (id, session) in sessions.iter().enumerate().skip(1) {
        web.say(session, &common::request("2025-11-25", id as i64, "resources/subscribe", uri.clone()));
    }
    // No stream is open yet: the changes wait.
    web.publish(ServerChange::Tools);
    web.publish(ServerChange::Resource("test://text"));
    let streams: Vec<StreamId> = sessions.iter().map(|session| web.listen(session, None).opened()).collect();
    let post = web.call(&sessions[2], 9, "later", json!({})).opened();
    for (stream, count) in streams.iter().zip([1, 2, 2]) {
        assert_eq!(web.pull(*stream).json().len(), count);
        assert_eq!(web.pull(*stream).json().len(), 0);
    }
    assert_eq!(web.pull(post).json().len(), 0);
    web.publish(ServerChange::Resource("test://text"));
    assert_eq!(streams.iter().map(|stream| web.pull(*stream).json().len()).collect::<Vec<_>>(), [0, 1, 1]);
}

#[test]
fn cancelled_requests_end_their_exchange() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let stream = web.call(&session, 1, "later", json!({"tag": "t"})).opened();
    let asks = web.call(&session, 2, "confirm", json!({})).opened();
    let _ = (web.pull(stream), web.pull(asks));
    for (id, stream, messages) in [(1, stream, 0), (2, asks, 1)] {
        let reply = web.say(&session, &cancel(id));
        assert_eq!((reply.status, reply.stream), (202, None), "a notification opens no stream");
        assert!(web.is_ready(stream));
        let pulled = web.pull(stream);
        assert!(pulled.ended && pulled.json().len() == messages, "{pulled:?}");
    }
    assert_eq!(web.answer(web.later("t"), "x"), Err(mcp_sansio::server::RespondError::Stale));
    assert_eq!(web.endpoint.load(), (0, 1, 0));
    assert_eq!(web.say(&session, &cancel(77)).status, 202);
}

#[test]
fn keep_alive() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let stream = web.listen(&session, None).opened();
    assert!(web.pull(stream).events.is_empty());
    assert_eq!(web.endpoint.next_deadline(), Some(web.now + 15_000));
    web.wait(14_999);
    assert!(!web.is_ready(stream));
    web.wait(1);
    assert!(web.is_ready(stream));
    assert!(web.endpoint.next_deadline().is_none_or(|at| at > web.now), "what is due is told by ready()");
    let events = web.pull(stream).events;
    assert!(events.len() == 1 && events[0].comment);
    assert!(web.pull(stream).events.is_empty() && !web.is_ready(stream));
    // The same again, as long as there is no message.
    for _ in 0..3 {
        web.wait(15_000);
        assert!(web.is_ready(stream) && web.pull(stream).events[0].comment);
    }
}

fn still() -> EndpointConfig<'static> {
    let mut config = config();
    config.keep_alive = 0;
    config
}

/// Each deadline is reported on its own, not only because an earlier one exists.
#[test]
fn without_keep_alive() {
    let mut web = Web::with(still());
    let session = web.open("2025-11-25");
    let events = web.listen(&session, None).opened();
    let _ = web.pull(events);
    for id in 1..3 {
        let stream = web.call(&session, id, "later", json!({"tag": id.to_string()})).opened();
        let _ = web.pull(stream);
        web.detach(stream);
        web.wait(id as u64 * 70_000);
        assert_eq!(web.endpoint.load(), (1, 1, 2), "its answer is waited for");
        web.answer(web.later(&id.to_string()), "done").unwrap();
        web.wait(59_999);
        assert_eq!(web.endpoint.load(), (0, 1, 2));
        web.wait(1);
        assert_eq!(web.endpoint.load(), (0, 1, 1));
    }
    // An open stream counts as use of the session.
    web.wait(3 * 3_600_000);
    assert_eq!(web.endpoint.load(), (0, 1, 1));
    web.detach(events);
    web.wait(60_000);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
    web.wait(3_600_000);
    assert_eq!(web.endpoint.load(), (0, 0, 0));
}

#[test]
fn tiny_sips() {
    for gulp in [3, 5, 16, 64, 100] {
        let mut web = Web::new();
        let session = web.open("2025-11-25");
        web.gulp = gulp;
        let stream = with_token(&session, &mut web, 1, "chatty").opened();
        let pulled = web.pull(stream);
        assert!(pulled.ended && pulled.json().len() == 6 && pulled.events[0].retry.is_some(), "{pulled:?}");
        let old = web.request("GET", "/sse", &[SSE], "").opened();
        assert_eq!(web.pull(old).events[0].kind, "endpoint");
    }
}

#[test]
fn large_replies_in_windows_through_a_small_log() {
    for (gulp, log) in [(50, 2048), (1000, 4096), (usize::MAX, 2048)] {
        let mut web = Web::lent(2, 4, log);
        web.body = 256;
        web.gulp = gulp;
        let session = open_small(&mut web);
        let tools = web.say(&session, &common::request("2025-06-18", 7, "tools/list", json!({}))).opened();
        let book = web.call(&session, 8, "book", json!({})).opened();
        let both = [web.pull(tools).only(), web.pull(book).only()];
        assert_eq!(both[0]["result"]["tools"].as_array().unwrap().len(), 33);
        assert_eq!(both[1]["result"]["content"][0]["text"], common::handlers::book_text());
        assert_eq!(web.endpoint.load(), (0, 1, 0));
    }
}

/// Four replies that together fill the log to its last bytes. The size of the log varies, so that any window may find
/// no room.
#[test]
fn large_replies_that_fill_the_log() {
    for log in (4000..4800).step_by(3) {
        let mut web = Web::lent(1, 4, log);
        let call = |web: &mut Web, id| web.modern(id, "tools/call", json!({"name": "torn_picture"})).opened();
        let streams = [1, 2, 3, 4].map(|id| call(&mut web, id));
        for stream in streams {
            web.gulp = 200;
            let result = web.pull(stream).only()["result"].take();
            let bytes = BASE64.decode(result["content"][0]["data"].as_str().unwrap().as_bytes()).unwrap();
            assert_eq!((bytes.len(), &result["isError"]), (699, &json!(true)), "a log of {log}");
        }
        assert_eq!(web.endpoint.load(), (0, 0, 0));
    }
}

/// A cancellation that comes when only the last members of a reply are left, some of them already in a window, does
/// not change them.
#[test]
fn a_large_reply_cancelled_at_its_end() {
    const TAIL: usize = "\"}],\"isError\":false}}\n\n".len();
    let begin = |log| {
        let mut web = Web::lent(1, 1, log);
        let session = web.open("2025-06-18");
        let stream = web.call(&session, 8, "picture", json!({})).opened();
        (web, session, stream)
    };
    let (mut web, _, stream) = begin(600);
    let (mut size, mut pull) = (0, StreamStatus::More);
    while pull == StreamStatus::More {
        let (next, n) = web.sip(stream, 100);
        (pull, size) = (next, size + n);
    }
    for log in 600..1000 {
        let (mut web, session, stream) = begin(log);
        let mut left = size;
        while left > TAIL {
            left -= web.sip(stream, (left - TAIL).min(100)).1;
        }
        web.say(&session, &cancel(8));
        let result = web.pull(stream).only()["result"].take();
        let bytes = BASE64.decode(result["content"][0]["data"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(bytes, common::handlers::picture_bytes(), "a log of {log}");
    }
}

/// Opens a session with a body limit that does not hold the answer to `initialize`.
fn open_small(web: &mut Web) -> String {
    let reply = web.post(&common::initialize("2025-06-18", json!({})));
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let stream = reply.opened();
    assert_eq!(web.pull(stream).only()["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(web.say(&session, &notify("notifications/initialized", json!({}))).status, 202);
    session
}

#[test]
fn a_large_reply_whose_reader_is_gone() {
    let mut web = Web::lent(2, 4, 2048);
    let session = web.open("2025-11-25");
    let book = web.call(&session, 8, "book", json!({})).opened();
    for _ in 0..3 {
        let _ = web.sip(book, 200);
    }
    web.detach(book);
    web.wait(200_000);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
    let book = web.call(&session, 8, "book", json!({})).opened();
    assert!(web.pull(book).only()["result"]["content"].is_array());
}

/// A handler whose question is answered while slow readers fill the log runs as soon as one of them reads.
#[test]
fn an_answered_question_waits_for_room_in_the_log() {
    let mut web = Web::lent(1, 4, 4096);
    let session = web.open("2025-11-25");
    let asking = web.call(&session, 1, "confirm", json!({})).opened();
    let question = web.pull(asking).json()[0]["id"].clone();
    let full: Vec<StreamId> = [2, 3, 4]
        .into_iter()
        .map(|id| {
            let params = json!({"name": "later", "arguments": {"tag": id.to_string()}, "_meta": {"progressToken": id}});
            let stream = web.say(&session, &common::request("2025-11-25", id, "tools/call", params)).opened();
            let token = web.later(&id.to_string());
            let told = (0..100).take_while(|n| web.endpoint.progress(token, Progress::new(*n)) == NotifyStatus::Sent);
            assert!((1..100).contains(&told.count()));
            stream
        })
        .collect();
    let accepted = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(web.say(&session, &answer(&question, accepted)).status, 202);
    assert!(web.pull(asking).events.is_empty());
    assert_eq!((web.world.runs, web.is_ready(asking)), (1, false));
    assert_eq!(web.sip(full[0], usize::MAX).0, StreamStatus::Idle);
    assert_eq!((web.world.runs, web.is_ready(asking)), (2, true));
    assert_eq!(web.pull(asking).only()["result"]["content"][0]["text"], "accepted Ada");
}

#[test]
fn a_slow_reader_holds_nobody_up() {
    let mut web = Web::lent(2, 4, 4096);
    let session = web.open("2025-11-25");
    let slow = with_token(&session, &mut web, 1, "later").opened();
    let token = web.later("t");
    let mut told = 0;
    while web.endpoint.progress(token, Progress::new(told)) == NotifyStatus::Sent {
        told += 1;
        assert!(told < 100);
    }
    let also_slow = web.call(&session, 2, "book", json!({})).opened();
    let _ = web.sip(also_slow, 1);
    for id in 10..40 {
        let fast = web.call(&session, id, "book", json!({})).opened();
        assert!(web.pull(fast).only()["result"].is_object());
    }
    assert_eq!(web.pull(slow).json().len() as u64, told);
    web.answer(token, "done").unwrap();
    assert!(web.pull(slow).ended && web.pull(also_slow).ended);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

/// The log has some room left, and not enough: what others do not read takes no message from a client, and gives the driver no work.
#[test]
fn messages_wait_for_the_readers_of_others() {
    let filter = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://text"]}});
    for (log, goes) in (1024..1536).step_by(64).flat_map(|log| [(log, false), (log, true)]) {
        for what in ["updated", "list_changed", "end"] {
            let mut web = Web::lent(2, 3, log);
            web.endpoint.set_share(log);
            let events = web.modern("a-listen-with-a-long-id", "subscriptions/listen", filter.clone()).opened();
            assert_eq!(web.pull(events).json().len(), 1);
            let call = json!({"name": "later", "arguments": {"tag": "t"}, "_meta": {"progressToken": 1}});
            let slow = web.modern(1, "tools/call", call).opened();
            let token = web.later("t");
            let mut count = 0;
            while web.endpoint.progress(token, Progress::new(count)) == NotifyStatus::Sent {
                count += 1;
            }
            match what {
                "updated" => web.publish(ServerChange::Resource("test://text")),
                "list_changed" => web.publish(ServerChange::Tools),
                _ => web.endpoint.shut_down(),
            }
            for _ in 0..3 {
                assert!(web.pull(events).events.is_empty());
                assert!(!web.is_ready(events), "{what} in {log}: the driver has work without end");
            }
            if goes {
                web.detach(slow);
            } else {
                assert!(web.pull(slow).json().len() as u64 >= count);
            }
            assert!(web.is_ready(events), "{what} in {log}");
            let (pulled, is_end) = (web.pull(events), what == "end");
            assert_eq!((pulled.ended, pulled.json().len()), (is_end, 1), "{what} in {log}");
            let message = pulled.json().remove(0);
            assert!(message["method"].as_str().map_or(is_end, |method| method.ends_with(what)), "{what}: {message}");
        }
    }
}

/// Large answers for more readers than the log has windows, and than there are streams. Those that can be sent are
/// sent; the others are refused for now, and none of them as too large for ever.
#[test]
fn more_readers_than_windows() {
    for (streams, prefers) in [(24, false), (24, true), (3, false), (3, true)] {
        let mut web = Web::lent_with(config_of(prefers), 2, streams, 5 * 1024);
        web.endpoint.set_share(968);
        web.body = 960;
        let mut readers: Vec<i64> = (1..=20).collect();
        let mut rounds = 0;
        while !readers.is_empty() {
            rounds += 1;
            let asked = readers.len();
            let mut open = Vec::new();
            readers.retain(|id| {
                let tool = if id % 2 == 0 { "book" } else { "picture" };
                let body = common::request(common::MODERN, *id, "tools/call", json!({"name": tool}));
                let accept = if prefers { "text/event-stream, application/json" } else { BOTH };
                let named =
                    [("MCP-Protocol-Version", common::MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
                let reply = web.request("POST", "/mcp", &[&[JSON, ("Accept", accept)], &named[..]].concat(), &body);
                match reply.stream {
                    Some(stream) => open.push((*id, stream)),
                    None => {
                        reply.refused(503);
                        assert_eq!(reply.header("retry-after"), Some("1"));
                    }
                }
                reply.stream.is_none()
            });
            assert!(!open.is_empty() && (rounds > 1 || asked > open.len()), "{open:?}");
            for (id, stream) in open {
                assert_eq!(web.pull(stream).only()["id"], id);
            }
        }
        assert_eq!(web.endpoint.load(), (0, 0, 0));
    }
}

fn config_of(prefers: bool) -> EndpointConfig<'static> {
    let mut config = config();
    config.streams = if prefers { StreamPolicy::Preferred } else { StreamPolicy::Needed };
    config
}

#[test]
fn many_quiet_streams_share_a_small_log() {
    let mut web = Web::lent(2, 16, 2048);
    let session = web.open("2025-11-25");
    let quiet = web.listen(&session, None).opened();
    // An equal share would be too small for an answer of ordinary size.
    assert_eq!(web.call(&session, 1, "large", json!({"size": 300})).text().len(), 300);
    let small = with_token(&session, &mut web, 2, "later").opened();
    let token = web.later("t");
    assert!(web.endpoint.only_listens(quiet) && !web.endpoint.only_listens(small));
    assert!(web.answer(token, &"x".repeat(300)).is_err());
    web.endpoint.set_share(1024);
    web.answer(token, &"x".repeat(300)).unwrap();
    assert_eq!(web.pull(small).only()["result"]["content"][0]["text"].as_str().unwrap().len(), 300);
    assert!(!web.endpoint.only_listens(small));
}

#[test]
fn too_many_streams() {
    let mut web = Web::limited(config(), EndpointLimits::default().streams(2));
    let session = web.open("2025-11-25");
    let streams = [1, 2].map(|id| web.call(&session, id, "later", json!({})).opened());
    assert_eq!(web.call(&session, 3, "count", json!({})).text(), "1", "an answer needs no stream");
    let full = web.call(&session, 4, "later", json!({}));
    full.refused(503);
    assert_eq!(full.header("retry-after"), Some("1"));
    web.listen(&session, None).refused(503);
    web.detach(streams[0]);
    web.call(&session, 4, "later", json!({})).refused(503); // somebody may come back for it
    web.say(&session, &cancel(1));
    let _ = web.call(&session, 4, "later", json!({})).opened();
}

// spec: T028 T031 T033 T035 T036
#[test]
fn batches() {
    let mut web = Web::new();
    let session = web.open("2025-03-26");
    let body = json!([
        {"jsonrpc":"2.0","id":1,"method":"ping"},
        {"jsonrpc":"2.0","method":"notifications/x"},
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"later","arguments":{"tag":"b"}}},
        {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count"}},
    ]);
    let stream = web.say(&session, &body.to_string()).opened();
    let pulled = web.pull(stream);
    assert!(!pulled.ended);
    assert_eq!(pulled.json()[0].as_array().unwrap().len(), 2);
    web.answer(web.later("b"), "late").unwrap();
    assert_eq!(web.pull(stream).only()["id"], 2);
    let quiet = json!([{"jsonrpc":"2.0","method":"notifications/x"}, {"jsonrpc":"2.0","id":9,"result":{}}]);
    assert_eq!(web.say(&session, &quiet.to_string()).status, 202);
    let json_only = [JSON, ("accept", "application/json"), ("mcp-session-id", session.as_str())];
    let reply = web.request("POST", "/mcp", &json_only, r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
    assert_eq!(reply.body[0]["id"], 1);
    web.post(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#).refused(400);
}

#[test]
fn a_batch_that_does_not_fit() {
    let mut web = Web::lent(2, 2, 1200);
    let session = web.open("2025-03-26");
    let call = |id| json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"book"}});
    web.say(&session, &json!([call(1), call(2)]).to_string()).refused(503);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
    let one = json!([{"jsonrpc":"2.0","id":1,"method":"ping"}]).to_string();
    let stream = web.say(&session, &one).opened();
    assert_eq!(web.pull(stream).only(), json!([{"jsonrpc":"2.0","id":1,"result":{}}]));
}

/// The same for a client that takes no stream: an answer in one body.
#[test]
fn a_batch_that_does_not_fit_a_body() {
    let mut web = Web::new();
    let session = web.open("2025-03-26");
    let json_only = [JSON, ("accept", "application/json"), ("mcp-session-id", session.as_str())];
    let pings = |count| {
        let pings: Vec<_> = (1..=count).map(|id| json!({"jsonrpc":"2.0","id":id,"method":"ping"})).collect();
        json!(pings).to_string()
    };
    web.body = 300;
    for _ in 0..3 {
        let reply = web.request("POST", "/mcp", &json_only, &pings(20));
        reply.refused(503);
        assert_eq!(reply.body["error"]["code"], -32603, "{reply:?}");
        assert_eq!(web.endpoint.load(), (0, 1, 0));
        let reply = web.request("POST", "/mcp", &json_only, &pings(1));
        assert_eq!((reply.status, reply.body), (200, json!([{"jsonrpc":"2.0","id":1,"result":{}}])));
    }
}

/// A question needs a stream, wherever it stands in a batch. What else is in the batch is answered.
#[test]
fn a_batch_that_asks_needs_a_stream() {
    let mut web = Web::new();
    let session = web.open("2025-03-26");
    let json_only = [JSON, ("accept", "application/json"), ("mcp-session-id", session.as_str())];
    let ping = json!({"jsonrpc":"2.0","id":1,"method":"ping"});
    let asks = json!({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sample"}});
    for batch in [json!([ping, asks]), json!([asks, ping])] {
        let reply = web.request("POST", "/mcp", &json_only, &batch.to_string());
        assert_eq!((reply.status, reply.body.as_array().map(Vec::len)), (406, Some(2)), "{reply:?}");
        let of = |id: u64| reply.body.as_array().unwrap().iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!((&of(1)["result"], &of(2)["result"]["isError"]), (&json!({}), &json!(true)));
        assert_eq!(web.endpoint.load(), (0, 1, 0), "{batch}");
    }
    let _ = web.say(&session, &json!([ping, asks]).to_string()).opened();
}

// spec: B181
#[test]
fn shut_down() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let events = web.listen(&session, None).opened();
    let later = web.call(&session, 1, "later", json!({})).opened();
    let asks = web.call(&session, 2, "confirm", json!({})).opened();
    let book = web.modern(3, "tools/call", json!({"name": "book"}));
    let listen = web.modern("l", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).opened();
    for stream in [events, later, asks, listen] {
        let _ = web.pull(stream);
    }
    if let Some(book) = book.stream {
        assert!(web.pull(book).only()["result"].is_object());
    }
    assert!(![events, later, asks, listen].iter().any(|stream| web.is_ready(*stream)));
    web.endpoint.shut_down();
    for stream in [later, asks] {
        assert_eq!(web.pull(stream).only()["error"]["code"], -32603);
    }
    assert_eq!(web.pull(listen).only()["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
    assert!(web.pull(events).ended);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

/// Calls in flight finish, all else ends; further requests are refused, what belongs to those in flight is not.
#[test]
fn draining() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let events = web.listen(&session, None).opened();
    let later = web.call(&session, 1, "later", json!({"tag": "old"})).opened();
    let asks = web.call(&session, 2, "confirm", json!({})).opened();
    let modern = web.modern(3, "tools/call", json!({"name": "later", "arguments": {"tag": "new"}})).opened();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = web.modern("l", "subscriptions/listen", filter.clone()).opened();
    let gone = web.call(&session, 4, "later", json!({"tag": "gone"})).opened();
    let first = web.pull(gone).events[0].id.clone().unwrap();
    web.detach(gone);
    for stream in [events, later, asks, modern, listen] {
        let _ = web.pull(stream);
    }
    web.publish(ServerChange::Tools);
    assert!(!web.endpoint.is_draining());
    web.drain();
    web.drain();
    assert!(web.endpoint.is_draining());

    assert!(web.pull(events).ended);
    let last = web.pull(listen);
    assert!(last.ended);
    assert_eq!(last.json().last().unwrap()["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
    // A question cannot be answered any more: its handler learns that.
    let asked = web.pull(asks);
    assert!(asked.ended && asked.only()["result"].is_object(), "{asked:?}");
    for stream in [later, modern] {
        assert!(!web.pull(stream).ended);
    }

    // No further requests, and no further streams.
    for refused in [
        web.call(&session, 5, "count", json!({})),
        web.say(&session, &format!("[{}]", common::call("2025-03-26", 6, "count", json!({})))),
        web.modern(7, "tools/call", json!({"name": "count"})),
        web.modern(8, "subscriptions/listen", filter),
        web.post(&common::initialize("2025-11-25", json!({}))),
        web.listen(&session, None),
        web.request("GET", "/sse", &[SSE], ""),
    ] {
        assert_eq!((refused.status, refused.code()), (503, -32603));
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    assert_eq!(web.call(&session, 9, "count", json!({})).body["id"], 9);

    // What belongs to a call in flight: notifications, the return of its client, its answer.
    assert_eq!(web.say(&session, &notify("notifications/x", json!({}))).status, 202);
    let back = web.listen(&session, Some(&first)).opened();
    for (tag, stream) in [("old", later), ("new", modern), ("gone", back)] {
        web.answer(web.later(tag), tag).unwrap();
        let answered = web.pull(stream);
        assert!(answered.ended);
        assert_eq!(answered.only()["result"]["content"][0]["text"], tag);
    }
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

/// A change before `notifications/initialized` makes the stream ready as soon as that notification is received.
#[test]
fn a_change_before_initialized_is_told_after_it() {
    for first in
        [notify("notifications/initialized", json!({})), common::request("2025-11-25", 2, "tools/list", json!({}))]
    {
        let mut web = Web::new();
        let session =
            web.post(&common::initialize("2025-11-25", json!({}))).header("mcp-session-id").unwrap().to_owned();
        let stream = web.listen(&session, None).opened();
        web.pull(stream);
        web.publish(ServerChange::Tools);
        assert!(web.pull(stream).json().is_empty());
        assert!(!web.is_ready(stream));
        web.say(&session, &first);
        assert!(web.is_ready(stream));
        assert_eq!(web.pull(stream).json()[0]["method"], "notifications/tools/list_changed");
    }
}

/// Its driver waits for the socket, and asks again by itself.
#[test]
fn a_stream_that_waits_for_its_socket_is_not_reported() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let stream = web.call(&session, 1, "gossip", json!({})).opened();
    assert!(web.is_ready(stream));
    assert_eq!(web.sip(stream, 40), (StreamStatus::More, 40));
    assert!(!web.is_ready(stream));
    assert_eq!(web.pull(stream).json().len(), 8);
}

/// A sign of life is due as long after the last event as after the last sign, for each stream by itself.
#[test]
fn an_event_is_a_sign_of_life() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let call = |web: &mut Web, id: i64| {
        let params = json!({"name": "later", "arguments": {"tag": id.to_string()}, "_meta": {"progressToken": id}});
        let stream = web.say(&session, &common::request("2025-06-18", id, "tools/call", params)).opened();
        web.pull(stream);
        stream
    };
    let (first, second) = (call(&mut web, 1), call(&mut web, 2));
    web.wait(5_000);
    for (done, room) in [(1, usize::MAX), (2, 30)] {
        let token = web.later("1");
        assert_eq!(web.endpoint.progress(token, Progress::new(done)), NotifyStatus::Sent);
        // The second time only a part of the event goes out.
        let _ = web.sip(first, room);
    }
    assert_eq!(web.endpoint.next_deadline(), Some(web.now + 10_000), "that of the second stream");
    web.wait(9_999);
    assert!(!web.is_ready(second));
    web.wait(1);
    assert!(web.is_ready(second) && web.pull(second).events[0].comment);
    assert_eq!(web.endpoint.next_deadline(), Some(web.now + 5_000), "that of the first one");
    assert!(web.pull(first).events.iter().all(|event| !event.comment));
    // A sign that finds no room is given as soon as there is some.
    web.wait(15_000);
    assert_eq!(web.sip(second, 2), (StreamStatus::More, 0));
    let signs = web.pull(second).events;
    assert!(signs.len() == 1 && signs[0].comment, "{signs:?}");
}

/// A client that is back after a long time gets a sign at once, and one that is back soon does not.
#[test]
fn a_client_that_comes_back_gets_a_sign_in_time() {
    for (away, signs) in [(14_999, 0), (15_000, 1)] {
        let mut web = Web::new();
        let session = web.open("2025-11-25");
        let stream = web.call(&session, 1, "later", json!({})).opened();
        let id = web.pull(stream).events[0].id.clone();
        web.detach(stream);
        web.wait(away);
        let again = web.listen(&session, id.as_deref()).opened();
        assert_eq!(web.pull(again).events.iter().filter(|event| event.comment).count(), signs, "{away}");
    }
}

/// The answer to `initialize` may be too long for a body. Its stream begins as the revision wants it.
#[test]
fn an_opening_on_a_stream_is_primed_in_2025_11_25() {
    for (revision, primed) in [("2025-03-26", 0), ("2025-06-18", 0), ("2025-11-25", 1)] {
        let mut web = Web::new();
        web.body = 256;
        let reply = web.post(&common::initialize(revision, json!({})));
        assert!(reply.header("mcp-session-id").is_some());
        let stream = reply.opened();
        let pulled = web.pull(stream);
        assert_eq!(
            (pulled.events.len(), pulled.events.iter().filter(|event| event.data.is_empty()).count()),
            (primed + 1, primed)
        );
        assert_eq!(web.endpoint.load(), (0, 1, 0));
    }
}

/// The session of a stream of 2024-11-05 that finds no place is not kept.
#[test]
fn an_old_stream_without_a_place_leaves_no_session() {
    let mut web = Web::limited(config(), EndpointLimits::default().streams(1));
    let stream = web.request("GET", "/sse", &[SSE], "").opened();
    let refused = web.request("GET", "/sse", &[SSE], "");
    refused.refused(503);
    assert_eq!(web.endpoint.load(), (0, 1, 1));
    web.detach(stream);
    web.request("GET", "/sse", &[SSE], "").opened();
    assert_eq!(web.endpoint.load(), (0, 1, 1));
}

/// One turn writes at least 1,024 bytes, whatever is configured, and no more than that.
#[test]
fn a_turn_has_a_least_size() {
    for (turn, written) in [(1, 1_024), (1_024, 1_024), (1_500, 1_500)] {
        let mut web = Web::with(config().turn(turn));
        let session = web.open("2025-06-18");
        let token = json!({"name": "later", "arguments": {"tag": "t"}, "_meta": {"progressToken": 1}});
        let stream = web.say(&session, &common::request("2025-06-18", 1, "tools/call", token)).opened();
        web.answer(web.later("t"), &"x".repeat(5_000)).unwrap();
        assert_eq!(web.sip(stream, usize::MAX), (StreamStatus::More, written), "{turn}");
        assert_eq!(web.sip(stream, usize::MAX), (StreamStatus::More, written));
        assert!(web.pull(stream).ended);
    }
}
