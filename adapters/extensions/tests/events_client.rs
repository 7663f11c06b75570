//! A client that follows events: against the server of this crate, and against answers that no good server gives.
#![cfg(feature = "alloc")]

use mcp_sansio::client::views::ViewError;
use mcp_sansio::client::{ClientEvent, Request, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::service::{Extension, Service};
use mcp_sansio_extensions::events::client::{
    EventFollower, EventStep, FollowedEvent, LIST_CHANGED, StreamNotification, are_offered,
};
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

fn polled() -> EventFollower {
    EventFollower::new("bell.rung").poll_only()
}

/// Returns the params of the request that is due.
fn due(follower: &mut EventFollower, now: u64) -> String {
    match follower.next(now) {
        EventStep::Send(request) => params(&request, "events/poll"),
        step => panic!("{step:?}"),
    }
}

fn params(request: &Request<'_>, method: &str) -> String {
    assert_eq!(request.name, method);
    let mut bytes = vec![0; 2048];
    let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
    let profile = mcp_sansio::client::ClientInfo::new("test", "1");
    let mut client = mcp_sansio::client::Client::growing(&profile);
    client.connect_as(mcp_sansio::revision::Revision::LATEST);
    client.send(request, &mut out).unwrap();
    assert_eq!(client.next_deadline().is_none(), method == "events/stream");
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
    let mut bell = polled();
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
    let mut again = polled().cursor_from(bell.cursor().map(str::to_owned));
    assert_eq!(again.cursor(), Some("77.3"));
    poll(&mut door, &mut again, 0);
    assert_eq!((rings(&mut again), again.cursor()), (vec![0, 5, 6, 7], Some("77.7")));
}

// spec: E014
#[test]
fn the_server_starts_again() {
    let mut bell = polled();
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
    let mut bell = polled();
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
    // Nor are ids remembered that would fill the memory.
    let (long, longer) = ("x".repeat(1_024), "x".repeat(1_025));
    assert_eq!((take(&[&long, &long]).len(), take(&[&longer, &longer]).len()), (1, 2));
}

// spec: E015 E016 E018
#[test]
fn the_time_of_the_next_poll() {
    let mut bell = polled();
    let mut answer = |json: &str, now| {
        bell.answered(Raw::parse(json.as_bytes()).unwrap(), now).map(|()| match bell.next(now) {
            EventStep::Send(_) => now,
            EventStep::Wait(until) => until,
            EventStep::Cancel => panic!("it cancels a poll"),
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
    let mut quick = polled().poll_floor(10);
    quick.answered(Raw::constant(r#"{"events":[],"cursor":"a","nextPollMs":1}"#), 0).unwrap();
    is_waiting_until(&mut quick, 0, 10);
}

// spec: E011 E019
#[test]
fn without_replay_there_is_no_cursor() {
    for answer in [r#"{"events":[],"cursor":null,"truncated":true}"#, r#"{"events":[],"truncated":true}"#] {
        let mut bell = polled().cursor_from(Some("old".into())).max_age(60_000);
        let first = due(&mut bell, 0);
        assert!(first.contains(r#""cursor":"old","maxAgeMs":60000"#), "{first}");
        bell.answered(Raw::parse(answer.as_bytes()).unwrap(), 0).unwrap();
        assert_eq!((bell.event(), bell.cursor()), (None, None));
        assert!(due(&mut bell, 1_000).contains(r#""cursor":null"#));
    }
}

#[test]
fn arguments_are_sent() {
    let mut bell = polled().arguments(Raw::constant(r#"{"door":2}"#));
    let sent = due(&mut bell, 0);
    assert!(sent.starts_with(r#"{"name":"bell.rung","arguments":{"door":2},"cursor":null"#), "{sent}");
}

#[test]
fn what_may_pass_is_tried_again() {
    let mut bell = polled();
    for (failure, until) in [2_000, 4_000, 8_000, 16_000].into_iter().enumerate() {
        assert!(if failure % 2 == 0 { bell.lost(0) } else { bell.refused(-32603, 0) });
        is_waiting_until(&mut bell, 0, until);
    }
    assert!(!bell.refused(-32025, 0));
    // An answer begins the count again.
    bell.answered(Raw::constant(r#"{"events":[]}"#), 0).unwrap();
    assert!(bell.lost(0));
    for code in [-32602, -32601, -32023, -32024, -32026] {
        assert!(!polled().refused(code, 0), "{code}");
    }
}

#[test]
fn answers_that_no_good_server_gives() {
    let mut bell = polled();
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

/// Begins the stream that is due. Returns its params.
fn stream(follower: &mut EventFollower, now: u64) -> String {
    match follower.next(now) {
        EventStep::Send(request) => params(&request, "events/stream"),
        step => panic!("{step:?}"),
    }
}

/// Gives notifications of a stream to a follower.
fn told(follower: &mut EventFollower, now: u64, notifications: &[(StreamNotification, &str)]) {
    for (kind, params) in notifications {
        follower.notified(*kind, Raw::parse(params.as_bytes()).unwrap(), now).unwrap();
    }
}

fn event(times: u64) -> String {
    let members = r#""name":"bell.rung","timestamp":"t""#;
    format!(r#"{{"eventId":"e{times}",{members},"data":{{"times":{times}}},"cursor":"c{times}"}}"#)
}

const ACTIVE: (StreamNotification, &str) = (StreamNotification::Active, r#"{"cursor":"c0","truncated":false}"#);

// spec: E054 E055 E056
#[test]
fn a_stream_that_is_silent_is_opened_again() {
    let mut bell = EventFollower::new("bell.rung");
    assert!(stream(&mut bell, 0).starts_with(r#"{"name":"bell.rung","cursor":null"#));
    assert!(bell.awaits_answer());
    is_waiting_until(&mut bell, 10, 30_000);
    told(&mut bell, 1_000, &[ACTIVE]);
    assert!(bell.is_under_way() && !bell.awaits_answer());
    assert_eq!((bell.event(), bell.cursor()), (None, Some("c0")));
    // Each event has a cursor of its own.
    let (first, second) = (event(1), event(2));
    told(&mut bell, 2_000, &[(StreamNotification::Event, &first), (StreamNotification::Event, &second)]);
    assert!(bell.event().is_some());
    assert_eq!(bell.cursor(), Some("c1"));
    assert_eq!((rings(&mut bell), bell.cursor()), (vec![2], Some("c2")));
    // A heartbeat moves the cursor, and the end of the patience.
    told(&mut bell, 50_000, &[(StreamNotification::Heartbeat, r#"{"cursor":"c5"}"#)]);
    assert_eq!(bell.cursor(), Some("c5"));
    told(&mut bell, 60_000, &[(StreamNotification::Heartbeat, "{}")]);
    assert_eq!(bell.cursor(), Some("c5"));
    is_waiting_until(&mut bell, 119_999, 120_000);
    assert!(matches!(bell.next(120_000), EventStep::Cancel));
    // What comes late is of another stream.
    told(&mut bell, 120_001, &[(StreamNotification::Event, &event(3))]);
    assert_eq!(bell.event(), None);
    is_waiting_until(&mut bell, 120_001, 122_000);
    assert!(stream(&mut bell, 122_000).contains(r#""cursor":"c5""#));
}

// spec: E014 E017 E056 E057
#[test]
fn gaps_and_the_end_of_a_stream() {
    let mut bell = EventFollower::new("bell.rung").cursor_from(Some("old".into()));
    assert!(stream(&mut bell, 0).contains(r#""cursor":"old""#));
    let gap = (StreamNotification::Active, r#"{"cursor":"new","truncated":true}"#);
    let failed = (StreamNotification::Error, r#"{"error":{"code":-32603,"message":"UpstreamError","data":{"a":1}}}"#);
    told(&mut bell, 0, &[gap]);
    assert_eq!(bell.cursor(), Some("old"));
    assert_eq!((rings(&mut bell), bell.cursor()), (vec![0], Some("new")));
    told(&mut bell, 0, &[failed, (StreamNotification::Event, &event(1)), (StreamNotification::Event, &event(1))]);
    let Some(FollowedEvent::Failed(error)) = bell.event() else { panic!() };
    assert_eq!((error.code, &*error.message, error.data.unwrap().as_str()), (-32603, "UpstreamError", r#"{"a":1}"#));
    assert_eq!((rings(&mut bell), bell.cursor()), (vec![1], Some("c1")));
    // The server ends the stream with a result, and again when it has confirmed the next: the pauses grow.
    for (now, until) in [(1_000, 3_000), (3_000, 7_000), (7_000, 15_000), (15_000, 31_000), (31_000, 47_000)] {
        bell.answered(Raw::constant("{}"), now).unwrap();
        is_waiting_until(&mut bell, now, until);
        stream(&mut bell, until);
        told(&mut bell, until, &[ACTIVE]);
    }
    // A lost connection is no end either.
    assert!(bell.lost(47_000));
    is_waiting_until(&mut bell, 47_000, 63_000);
    stream(&mut bell, 63_000);
    told(&mut bell, 63_000, &[ACTIVE]);
    let terminated = Raw::constant(r#"{"error":{"code":-32024,"message":"Forbidden"}}"#);
    let error = bell.notified(StreamNotification::Terminated, terminated, 63_000).unwrap_err();
    assert_eq!((error.code, &*error.message, error.data), (-32024, "Forbidden", None));
    assert!(!bell.is_under_way());
}

/// The best way that both have: a stream, and else polls.
#[test]
fn a_server_without_streams_is_polled() {
    for code in [-32026, -32601, -32025] {
        let mut bell = EventFollower::new("bell.rung");
        stream(&mut bell, 0);
        assert!(bell.refused(code, 5), "{code}");
        assert!(due(&mut bell, 5).starts_with(r#"{"name":"bell.rung","cursor":null"#));
        assert_eq!(bell.refused(code, 6), code == -32025);
    }
    for code in [-32602, -32023, -32024] {
        let mut bell = EventFollower::new("bell.rung");
        stream(&mut bell, 0);
        assert!(!bell.refused(code, 5), "{code}");
    }
    // Something on the way holds the stream back, or cuts it off at once.
    let mut bell = EventFollower::new("bell.rung");
    stream(&mut bell, 0);
    assert!(matches!(bell.next(30_000), EventStep::Cancel));
    due(&mut bell, 30_000);
    let mut bell = EventFollower::new("bell.rung");
    stream(&mut bell, 0);
    bell.answered(Raw::constant("{}"), 10).unwrap();
    due(&mut bell, 10);
    // The server may be away for a while.
    let mut bell = EventFollower::new("bell.rung");
    stream(&mut bell, 0);
    assert!(bell.lost(0));
    stream(&mut bell, 2_000);
}

#[test]
fn notifications_belong_to_streams() {
    let of = |method: &str, params: &str| {
        let method = format!("\"{method}\"");
        let method = Raw::parse(method.as_bytes()).unwrap().text().unwrap();
        StreamNotification::of(&method, Raw::parse(params.as_bytes()).ok()).map(|(kind, token)| (kind, token.to_bits()))
    };
    let meta = |id: &str| format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#);
    let kinds = [
        ("active", StreamNotification::Active),
        ("event", StreamNotification::Event),
        ("heartbeat", StreamNotification::Heartbeat),
        ("error", StreamNotification::Error),
        ("terminated", StreamNotification::Terminated),
    ];
    for (name, kind) in kinds {
        assert_eq!(of(&format!("notifications/events/{name}"), &meta("7")), Some((kind, 7)));
    }
    for id in ["\"7\"", "-1", "4294967296", "null"] {
        assert_eq!(of("notifications/events/event", &meta(id)), None, "{id}");
    }
    assert_eq!(of("notifications/events/list_changed", &meta("7")), None);
    assert_eq!(of("notifications/events/event", "{}"), None);
}

// spec: E058
#[test]
fn changes_of_the_list_are_heard() {
    let profile = mcp_sansio::client::ClientInfo::new("test", "1");
    let (mut client, mut bytes) = (mcp_sansio::client::Client::growing(&profile), vec![0; 2048]);
    let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
    client.connect_as(mcp_sansio::revision::Revision::LATEST);
    let token = client.listen(&SubscriptionFilter::new().topics(&[LIST_CHANGED])).unwrap();
    client.advance(0, &mut out).unwrap();
    let sent = Raw::parse(out.pending().trim_ascii()).unwrap();
    assert!(sent.as_str().contains(r#""notifications":{"eventsListChanged":true}"#), "{sent}");
    let line = |method: &str, members: &str| {
        let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, sent.get("id").unwrap());
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{members}{meta}}}}}"#)
    };
    let granted = line("subscriptions/acknowledged", r#""notifications":{"eventsListChanged":true},"#);
    let mut bytes = vec![0; 16];
    let mut none = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
    let listening = client.receive(granted.as_bytes(), &mut none).unwrap();
    assert!(
        matches!(listening, Some(ClientEvent::Listening(granted)) if (granted.token, granted.topics) == (token, 1))
    );
    let changed = line("events/list_changed", "");
    match client.receive(changed.as_bytes(), &mut none).unwrap() {
        Some(ClientEvent::Notification { method, .. }) => assert!(method.eq_str("notifications/events/list_changed")),
        other => panic!("{other:?}"),
    }
}

// spec: E020
#[test]
fn servers_with_and_without_events() {
    let offered = |json: &'static str| are_offered(Some(Raw::parse(json.as_bytes()).unwrap()));
    assert!(offered(r#"{"extensions":{"io.modelcontextprotocol/events":{}}}"#));
    assert!(!offered(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#) && !offered("{}") && !are_offered(None));
}
