//! What an endpoint tells the other processes of its server, and what it does with what they tell.
use crate::common;

use std::sync::{Arc, Mutex};

use common::everything::World;
use common::http::*;
use common::{LEGACY, json, request};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MessageLimits, Millis, Server, ServerChange};
use mcp_sansio::service::{Service, Tool};
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointLimits, Fleet, SessionSeal};
use mcp_sansio_http::seal::HmacSeal;

/// The other processes: they keep what is published and ended.
#[derive(Clone, Debug, Default)]
struct Others(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<Ended>>>);

type Ended = ([u8; 16], Millis);

impl Fleet for Others {
    fn publish(&mut self, to: Option<&str>, change: ServerChange<'_>) {
        let to = to.map_or_else(String::new, |principal| format!("{principal} "));
        self.0.lock().unwrap().push(format!("{to}{change:?}"));
    }

    fn end_session(&mut self, session: &[u8; 16], until: Millis) {
        self.1.lock().unwrap().push((*session, until));
    }
}

impl Others {
    fn changes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn ended(&self) -> Vec<Ended> {
        std::mem::take(&mut self.1.lock().unwrap())
    }
}

/// Returns an endpoint with sealed sessions, and the other processes.
fn process(dice: u64) -> (Web, Others) {
    let others = Others::default();
    let seal = SessionSeal::new(Box::leak(Box::new(HmacSeal::new(&[7; 32])))).lifetime(HOUR);
    let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
    let endpoint = Endpoint::growing(config(), server, EndpointLimits::default()).seal_sessions(seal);
    let mut web = Web::of(endpoint.fleet(Box::leak(Box::new(others.clone()))));
    web.dice.0 = dice;
    (web, others)
}

static TOOLS: [Tool<World>; 1] = [Tool::new("change", "Publishes a change", |_, call| {
    call.publish(ServerChange::Resources);
    call.text("changed")
})];

const HOUR: u64 = 3_600_000;
const URI: &str = "test://watched";

fn end_here(web: &mut Web, session: &str, until: Millis) {
    let Web { endpoint, service, world, .. } = web;
    let session = session.as_bytes().first_chunk().unwrap();
    endpoint.end_session_here(&mut App::new(service, world), session, until);
}

fn ping(web: &mut Web, session: &str) -> u16 {
    web.say(session, &request("2025-11-25", 9, "ping", json!({}))).status
}

#[test]
fn changes_are_told_once() {
    let (mut web, others) = process(1);
    web.publish(ServerChange::Tools);
    assert_eq!(others.changes(), ["Tools"]);
    // Those of another process are not told again.
    web.endpoint.publish_here(None, ServerChange::Prompts);
    assert_eq!(others.changes(), [""; 0]);
    // One that a handler has published.
    web.service = Service::new("test", "1").tools(&TOOLS).feature(ServerCapability::ResourcesChanged);
    let session = web.open("2025-11-25");
    assert_eq!(web.call(&session, 1, "change", json!({})).text(), "changed");
    assert_eq!(others.changes(), ["Resources"]);
}

/// Until something is set in it, each process serves a session; then one alone.
#[test]
fn a_session_in_which_something_is_set_stays_at_its_process() {
    for revision in &LEGACY[1..] {
        let subscribe = request(revision, 5, "resources/subscribe", json!({"uri": URI}));
        let set_level = request(revision, 5, "logging/setLevel", json!({"level": "error"}));
        for set in [&subscribe, &set_level, "GET"] {
            let ((mut a, told_by_a), (mut b, told_by_b)) = (process(1), process(2));
            let session = a.open(revision);
            b.sessions.insert(session.clone(), (*revision).to_owned());
            assert_eq!((ping(&mut a, &session), ping(&mut b, &session)), (200, 200));
            assert_eq!((told_by_a.ended(), told_by_b.ended()), (vec![], vec![]));
            for _ in 0..2 {
                let status = if set == "GET" { b.listen(&session, None).status } else { b.say(&session, set).status };
                assert_eq!(status, 200, "{set}");
            }
            // It is said once.
            let told = told_by_b.ended();
            assert_eq!(told, [(*session.as_bytes().first_chunk().unwrap(), 1000 + HOUR)], "{set}");
            end_here(&mut a, &session, told[0].1);
            assert_eq!((ping(&mut a, &session), ping(&mut b, &session)), (404, 200));
            assert_eq!((a.endpoint.load().1, told_by_a.ended()), (0, vec![]));
        }
    }
}

/// It may have a subscription among its elements.
#[test]
fn a_batch_keeps_its_session() {
    let (mut web, others) = process(1);
    let session = web.open("2025-03-26");
    let ping = request("2025-03-26", 1, "ping", json!({}));
    assert_eq!(web.say(&session, &format!("[{ping}]")).status, 200);
    assert_eq!(others.ended().len(), 1);
}

// spec: T054
#[test]
fn an_ended_session_is_ended_at_all_processes() {
    let ((mut a, others), (mut b, _)) = (process(1), process(2));
    let session = a.open("2025-06-18");
    b.sessions.insert(session.clone(), "2025-06-18".to_owned());
    let call = b.call(&session, 1, "later", json!({"tag": "x"})).opened();
    assert_eq!(a.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status, 204);
    let [(_, until)] = others.ended()[..] else { panic!("it is said once") };
    end_here(&mut b, &session, until);
    assert!(b.pull(call).ended);
    assert_eq!((ping(&mut b, &session), b.endpoint.load().1), (404, 0));
    // One that the process has never seen, until its time is over: the id is then no good anyway.
    let other = a.open("2025-06-18");
    b.sessions.insert(other.clone(), "2025-06-18".to_owned());
    end_here(&mut b, &other, until);
    end_here(&mut b, &other, until);
    assert_eq!(ping(&mut b, &other), 404);
}

/// A change for one principal is told to the others, and not again where it comes from one of them.
#[test]
fn changes_for_one_principal() {
    let (mut web, others) = process(1);
    web.endpoint.publish_to("ann", ServerChange::Tools);
    web.endpoint.publish_here(Some("bob"), ServerChange::Tools);
    assert_eq!(others.changes(), ["ann Tools"]);
}
