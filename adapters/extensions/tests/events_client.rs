//! A client that follows events: against the server of this crate, and against answers that no good server gives.
#![cfg(feature = "events-client")]

use mcp_sansio::client::Request;
use mcp_sansio::client::views::ViewError;
use mcp_sansio::json::Raw;
use mcp_sansio::service::{Extension, Service};
use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent, are_offered};
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, emit, extension};
use mcp_sansio_host::testing::Conversation;

struct Door {
    events: Events<'static>,
}

impl HasEvents for Door {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings the bell")];

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

static EXTENSIONS: [Extension<Door>; 1] = [extension()];
const SERVICE: Service<'static, Door> = Service::new("door", "1.0").extend(&EXTENSIONS);

fn door(occurrences: usize, start: u64) -> Conversation<'static, Door> {
    let events = Events::new(vec![0; 4096].leak(), occurrences, start);
    Conversation::new(&SERVICE, Door { events })
}

fn ring(door: &mut Conversation<'_, Door>, times: u64) {
    let event = EventOccurrence::new("bell.rung");
    emit(door.state(), &event, 0, &mut |data| data.number("times", times)).unwrap();
}

/// Returns the params of the request that is due.
fn due(follower: &mut EventFollower, now: u64) -> String {
    match follower.next(now) {
        EventStep::Send(request) => params(&request),
        EventStep::Wait(until) => panic!("it waits until {until}"),
    }
}

fn params(request: &Request<'_>) -> String {
    assert_eq!(request.method_name(), "events/poll");
    let mut bytes = vec![0; 2048];
    let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
    let profile = mcp_sansio::client::ClientInfo::new("test", "1");
    let mut client = mcp_sansio::client::Client::growing(&profile);
    client.connect_as(mcp_sansio::revision::Revision::LATEST);
    client.send(request, &mut out).unwrap();
    let line = Raw::parse(out.pending().trim_ascii()).unwrap();
    line.get("params").unwrap().as_str().to_owned()
}

/// Sends the request that is due, and takes the answer.
fn poll(door: &mut Conversation<'_, Door>, follower: &mut EventFollower, now: u64) {
    let params = due(follower, now);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"events/poll","params":{params}}}"#);
    let answer = door.say(&line).remove(0);
    let answer = Raw::parse(answer.as_bytes()).unwrap();
    follower.answered(answer.get("result").unwrap_or_else(|| panic!("{answer:?}")), now).unwrap();
}

/// Takes all events: the value of `times`, or 0 for a gap.
fn rings(follower: &mut EventFollower) -> Vec<u64> {
    let mut rings = Vec::new();
    while let Some(event) = follower.event() {
        rings.push(match event {
            FollowedEvent::Occurred(event) => event.data.raw().get("times").unwrap().u64().unwrap(),
            FollowedEvent::Gap => 0,
            other => panic!("{other:?}"),
        });
    }
    rings
}

fn is_waiting_until(follower: &mut EventFollower, now: u64, until: u64) {
    assert!(matches!(follower.next(now), EventStep::Wait(time) if time == until), "{:?}", follower.next(now));
}

// spec: E014 E017
#[test]
fn from_one_start_to_the_next() {
    let mut door = door(3, 77);
    ring(&mut door, 1);
    let mut bell = EventFollower::new("bell.rung");
    assert_eq!(bell.cursor(), None);
    poll(&mut door, &mut bell, 0);
    assert_eq!((rings(&mut bell), bell.cursor()), (vec![], Some("77.1")));
    is_waiting_until(&mut bell, 10, 5_000);
    ring(&mut door, 2);
    ring(&mut door, 3);
    poll(&mut door, &mut bell, 5_000);
    // Until all events are taken, the cursor is the one before them.
    assert!(bell.event().is_some());
    assert_eq!(bell.cursor(), Some("77.1"));
    assert_eq!((rings(&mut bell), bell.cursor()), (vec![3], Some("77.3")));

    // The program starts again, and too much has happened meanwhile.
    (4..8).for_each(|n| ring(&mut door, n));
    let mut again = EventFollower::new("bell.rung").cursor_from(bell.cursor().map(str::to_owned));
    assert_eq!(again.cursor(), Some("77.3"));
    poll(&mut door, &mut again, 0);
    assert_eq!((rings(&mut again), again.cursor()), (vec![0, 5, 6, 7], Some("77.7")));
}

// spec: E014
#[test]
fn the_server_starts_again() {
    let mut bell = EventFollower::new("bell.rung");
    let mut before = door(8, 1);
    poll(&mut before, &mut bell, 0);
    let mut after = door(8, 2);
    ring(&mut after, 1);
    poll(&mut after, &mut bell, 5_000);
    assert_eq!((rings(&mut bell), bell.cursor()), (vec![0, 1], Some("2.1")));
}

#[test]
fn duplicates_are_dropped() {
    let event = |id: &str| format!(r#"{{"eventId":"{id}","name":"bell.rung","timestamp":"t","data":{{"times":1}}}}"#);
    let mut bell = EventFollower::new("bell.rung");
    let mut take = |ids: &[&str]| {
        let events: Vec<_> = ids.iter().map(|id| event(id)).collect();
        let answer = format!(r#"{{"events":[{}],"cursor":"c"}}"#, events.join(","));
        bell.answered(Raw::parse(answer.as_bytes()).unwrap(), 0).unwrap();
        let mut ids = Vec::new();
        while let Some(FollowedEvent::Occurred(event)) = bell.event() {
            ids.push(event.event_id);
        }
        ids
    };
    assert_eq!(take(&["a", "b", "a"]), ["a", "b"]);
    assert_eq!(take(&["b", "c"]), ["c"]);
    // The oldest are forgotten.
    let many: Vec<String> = (0..256).map(|n| n.to_string()).collect();
    assert_eq!(take(&many.iter().map(String::as_str).collect::<Vec<_>>()).len(), 256);
    assert_eq!(take(&["a"]), ["a"]);
    assert_eq!(take(&["255"]).len(), 0);
}

// spec: E015 E016 E018
#[test]
fn the_time_of_the_next_poll() {
    let mut bell = EventFollower::new("bell.rung");
    let mut answer = |json: &str, now| {
        bell.answered(Raw::parse(json.as_bytes()).unwrap(), now).map(|()| match bell.next(now) {
            EventStep::Send(_) => now,
            EventStep::Wait(until) => until,
        })
    };
    for (json, until) in [
        (r#"{"events":[],"cursor":"a","nextPollMs":30000}"#, 30_000),
        // Not more often than the floor, and not as good as never.
        (r#"{"events":[],"cursor":"a","nextPollMs":1}"#, 1_000),
        (r#"{"events":[],"cursor":"a"}"#, 1_000),
        (r#"{"events":[],"cursor":"a","nextPollMs":99999999999}"#, 3_600_000),
        // More is there: at once, if there is a way forward.
        (r#"{"events":[],"cursor":"b","nextPollMs":30000,"hasMore":true}"#, 0),
        (r#"{"events":[],"cursor":"b","nextPollMs":30000,"hasMore":true}"#, 30_000),
        (r#"{"events":[],"cursor":null,"nextPollMs":2000,"hasMore":true}"#, 2_000),
    ] {
        assert_eq!(answer(json, 0), Ok(until), "{json}");
    }
    let mut quick = EventFollower::new("bell.rung").poll_floor(10);
    quick.answered(Raw::constant(r#"{"events":[],"cursor":"a","nextPollMs":1}"#), 0).unwrap();
    is_waiting_until(&mut quick, 0, 10);
}

// spec: E011 E019
#[test]
fn without_replay_there_is_no_cursor() {
    for answer in [r#"{"events":[],"cursor":null,"truncated":true}"#, r#"{"events":[],"truncated":true}"#] {
        let mut bell = EventFollower::new("bell.rung").cursor_from(Some("old".into())).max_age(60_000);
        let first = due(&mut bell, 0);
        assert!(first.contains(r#""cursor":"old","maxAgeMs":60000"#), "{first}");
        bell.answered(Raw::parse(answer.as_bytes()).unwrap(), 0).unwrap();
        assert_eq!((bell.event(), bell.cursor()), (None, None));
        assert!(due(&mut bell, 1_000).contains(r#""cursor":null"#));
    }
}

#[test]
fn arguments_are_sent() {
    let mut bell = EventFollower::new("bell.rung").arguments(Raw::constant(r#"{"door":2}"#));
    let sent = due(&mut bell, 0);
    assert!(sent.starts_with(r#"{"name":"bell.rung","arguments":{"door":2},"cursor":null"#), "{sent}");
}

#[test]
fn what_may_pass_is_tried_again() {
    let mut bell = EventFollower::new("bell.rung");
    for (failure, until) in [2_000, 4_000, 8_000, 16_000].into_iter().enumerate() {
        assert!(if failure % 2 == 0 { bell.lost(0) } else { bell.refused(-32603, 0) });
        is_waiting_until(&mut bell, 0, until);
    }
    assert!(!bell.refused(-32025, 0));
    // An answer begins the count again.
    bell.answered(Raw::constant(r#"{"events":[]}"#), 0).unwrap();
    assert!(bell.lost(0));
    for code in [-32602, -32601, -32023, -32024, -32026] {
        assert!(!EventFollower::new("bell.rung").refused(code, 0), "{code}");
    }
}

#[test]
fn answers_that_no_good_server_gives() {
    let mut bell = EventFollower::new("bell.rung");
    for wrong in ["{}", r#"{"events":{}}"#, "[]", "1"] {
        let wrong = bell.answered(Raw::parse(wrong.as_bytes()).unwrap(), 0);
        assert_eq!(wrong, Err(ViewError::Missing("events")));
    }
    // An entry that is no occurrence is left out.
    let odd = r#"{"events":[1,{},{"eventId":"a","name":"b","timestamp":"c","data":[]},{"eventId":"a","name":"b","timestamp":"c"},
        {"eventId":"a","name":"b","timestamp":"c","data":{"times":9}}],"cursor":"x"}"#;
    bell.answered(Raw::parse(odd.as_bytes()).unwrap(), 0).unwrap();
    assert_eq!(rings(&mut bell), [9]);
}

// spec: E020
#[test]
fn servers_with_and_without_events() {
    let offered = |json: &'static str| are_offered(Some(Raw::parse(json.as_bytes()).unwrap()));
    assert!(offered(r#"{"extensions":{"io.modelcontextprotocol/events":{}}}"#));
    assert!(!offered(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#) && !offered("{}") && !are_offered(None));
}
