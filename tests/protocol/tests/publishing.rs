//! Changes that handlers publish: over lines and over HTTP, in all revisions, at once, late and when they run again.
use crate::common;

use common::http::*;
use common::*;
use mcp_sansio::protocol::{ClientCapabilities, ServerCapability};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Peer, RequestSlot, Scope, Server, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, InputRequest, ReadResource, Resource, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_host::testing::Conversation;

const URI: &str = "notes://1";

/// Publishes each change twice.
fn add(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    for change in
        [ServerChange::Resources, ServerChange::Resource(URI), ServerChange::Resources, ServerChange::Resource(URI)]
    {
        assert!(call.publish(change));
    }
    call.text("added")
}

fn fail(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.publish(ServerChange::Tools);
    call.error("failed, but changed something")
}

fn later(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    world.later.push((String::from("later"), token));
    outcome
}

fn asks(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if call.answer("roots").is_none() {
        return call.ask(&[InputRequest::roots("roots")], b"");
    }
    call.publish(ServerChange::Prompts);
    call.text("asked")
}

fn read(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.publish(ServerChange::Tools);
    read.text("a note")
}

static TOOLS: [Tool<World>; 4] = [
    Tool::new("add", "Adds", add),
    Tool::new("fail", "Fails", fail),
    Tool::new("later", "Answers later", later),
    Tool::new("asks", "Asks", asks),
];
static RESOURCES: [Resource<World>; 1] = [Resource::new(URI, "note", read)];

fn service() -> Service<'static, World> {
    Service::new("notes", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::PromptsChanged)
        .feature(ServerCapability::ResourcesChanged)
        .feature(ServerCapability::Subscribe)
}

fn methods(lines: &[String]) -> Vec<String> {
    lines.iter().filter_map(|line| parse(line)["method"].as_str().map(String::from)).collect()
}

#[test]
fn on_a_line_stream_they_follow_the_answer() {
    let service = service();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut conversation = Conversation::new(&service, World::default());
        conversation.open(Revision::from_date(revision).unwrap());
        conversation.say(&request(revision, 2, "resources/subscribe", json!({"uri": URI})));
        let lines = conversation.say(&call(revision, 3, "add", json!({})));
        assert_eq!(parse(&lines[0])["id"], 3, "{lines:?}");
        assert_eq!(methods(&lines), ["notifications/resources/list_changed", "notifications/resources/updated"]);
        let lines = conversation.say(&call(revision, 4, "fail", json!({})));
        assert_eq!(methods(&lines), ["notifications/tools/list_changed"]);
        let lines = conversation.say(&request(revision, 5, "resources/read", json!({"uri": URI})));
        assert_eq!(methods(&lines), ["notifications/tools/list_changed"]);
        assert!(methods(&conversation.wait(1000)).is_empty());
    }
}

#[test]
fn a_listen_gets_what_it_selected() {
    let service = service();
    let mut conversation = Conversation::new(&service, World::default());
    let filter = json!({"notifications": {"resourceSubscriptions": [URI], "toolsListChanged": true}});
    conversation.say(&request(MODERN, 1, "subscriptions/listen", filter));
    assert_eq!(methods(&conversation.say(&call(MODERN, 2, "add", json!({})))), ["notifications/resources/updated"]);
    assert_eq!(methods(&conversation.say(&call(MODERN, 3, "fail", json!({})))), ["notifications/tools/list_changed"]);
}

#[test]
fn late_answers_and_second_runs_publish() {
    let service = service();
    let mut conversation = Conversation::new(&service, World::default());
    conversation.open(Revision::V2025_11_25);
    assert!(conversation.say(&call("2025-11-25", 2, "later", json!({}))).is_empty());
    let token = conversation.state().later[0].1;
    let lines = conversation.answer(token, |_, call| {
        assert!(call.publish(ServerChange::Tools));
        call.text("done")
    });
    assert_eq!(methods(&lines.unwrap()), ["notifications/tools/list_changed"]);
    let asked = conversation.say(&call("2025-11-25", 3, "asks", json!({})));
    assert_eq!(methods(&asked), ["roots/list"]);
    let answered = conversation.say(&answer(&parse(&asked[0])["id"], json!({"roots": []})));
    assert_eq!(methods(&answered), ["notifications/prompts/list_changed"]);
}

/// The change of one client's call reaches the other clients.
#[test]
fn over_http_they_reach_all_sessions() {
    let mut web = Web::new();
    web.service = service();
    let sessions = ["2025-03-26", "2025-06-18", "2025-11-25"].map(|revision| web.open(revision));
    let streams = sessions.clone().map(|session| web.listen(&session, None).opened());
    let filter = json!({"notifications": {"resourcesListChanged": true, "toolsListChanged": true}});
    let listen = web.modern(7, "subscriptions/listen", filter).opened();
    assert_eq!(web.pull(listen).json().len(), 1);
    let of = |pulled: Pulled| -> Vec<String> {
        pulled.json().iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(web.call(&sessions[2], 2, "add", json!({})).status, 200);
    for stream in streams.into_iter().chain([listen]) {
        assert!(web.is_ready(stream));
        assert_eq!(of(web.pull(stream)), ["notifications/resources/list_changed"]);
    }
    // From a call without a session.
    assert_eq!(web.modern(8, "tools/call", json!({"name": "fail", "arguments": {}})).status, 200);
    for stream in streams.into_iter().chain([listen]) {
        assert_eq!(of(web.pull(stream)), ["notifications/tools/list_changed"]);
        assert!(of(web.pull(stream)).is_empty());
    }
    // From a late answer.
    let call = web.call(&sessions[1], 9, "later", json!({})).opened();
    let token = web.later("later");
    let Web { endpoint, service, world, .. } = &mut web;
    let mut app = mcp_sansio_http::endpoint::App::new(service, world);
    endpoint
        .answer(&mut app, token, |_, call| {
            call.publish(ServerChange::Prompts);
            call.text("done")
        })
        .unwrap();
    assert_eq!(web.pull(call).json().len(), 1);
    assert_eq!(of(web.pull(streams[0])), ["notifications/prompts/list_changed"]);
}

/// After a loss each client reads anew what it wanted to hear of, and nothing else.
#[test]
fn all_is_each_list_and_each_subscription() {
    let service = service();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut conversation = Conversation::new(&service, World::default());
        conversation.open(Revision::from_date(revision).unwrap());
        let lists = ["tools", "prompts", "resources"].map(|list| format!("notifications/{list}/list_changed"));
        assert_eq!(methods(&conversation.publish(ServerChange::All)), lists);
        conversation.say(&request(revision, 2, "resources/subscribe", json!({"uri": URI})));
        let heard = methods(&conversation.publish(ServerChange::All));
        assert_eq!((&heard[..3], &heard[3..]), (&lists[..], &[String::from("notifications/resources/updated")][..]));
    }
    let mut conversation = Conversation::new(&service, World::default());
    let filter = json!({"notifications": {"resourceSubscriptions": [URI], "promptsListChanged": true}});
    conversation.say(&request(MODERN, 1, "subscriptions/listen", filter));
    let wanted = ["notifications/prompts/list_changed", "notifications/resources/updated"];
    assert_eq!(methods(&conversation.publish(ServerChange::All)), wanted);
    assert!(methods(&conversation.wait(1000)).is_empty());
}

/// A server that was lent no memory for subscriptions, and has published nothing itself.
#[test]
fn changes_that_a_peer_has_noted_are_sent_where_it_is_served() {
    let (service, world) = (service(), World::default());
    let mut peer = Peer::opened_elsewhere(Revision::V2025_11_25, ClientCapabilities::default());
    peer.record(ServerChange::Tools);
    let mut slots = [RequestSlot::FREE; 1];
    let mut server = Server::new(&mut slots);
    let mut out = LineSink::new(Vec::new());
    let _ = server.with_peer(&mut peer, Scope(1), |server| service.pull(&world, server, &mut out));
    let lines: Vec<_> = std::str::from_utf8(out.pending()).unwrap().lines().map(String::from).collect();
    assert_eq!(methods(&lines), ["notifications/tools/list_changed"]);
    // Before it is open, there is nothing to send it.
    let mut new = Peer::NEW;
    new.record(ServerChange::Tools);
    assert_eq!(format!("{new:?}"), format!("{:?}", Peer::NEW));
}
