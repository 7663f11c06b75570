//! A client that follows the events of a server, over stdio.
#![cfg(all(feature = "client", unix))]

use std::process::Command;
use std::time::Duration;

use mcp_sansio::client::{ClientInfo, Request, SendError};
use mcp_sansio::json::Raw;
use mcp_sansio::service::{Call, Extension, HandlerResult, Service, Tool};
use mcp_sansio_blocking::client::{Child, Client, ClientError, Ignore};
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, emit, extension};

/// The longest time for any step. None comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Door {
    events: Events<'static>,
    rung: u64,
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

fn ring(door: &mut Door, call: &mut Call<'_>) -> HandlerResult {
    door.rung += 1;
    let (rung, event) = (door.rung, EventOccurrence::new("bell.rung"));
    emit(door, &event, call.now(), &mut |data| data.number("rung", rung)).map_err(|_| "no room")?;
    call.text("rung")
}

static TOOLS: [Tool<Door>; 1] = [Tool::new("ring", "Rings the bell", ring)];
static EXTENSIONS: [Extension<Door>; 1] = [extension()];

/// A server: this program runs it when [`child`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    let mut events = Events::new(vec![0; 4096].leak(), 3, std::process::id().into());
    events.set_poll_interval(1);
    let service = Service::new("door", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
    mcp_sansio_blocking::serve_stdio(&service, &mut Door { events, rung: 0 }).unwrap();
}

#[test]
#[ignore = "a server"]
fn silent_server() {
    mcp_sansio_blocking::serve_stdio(&Service::<()>::new("silent", "1.0"), &mut ()).unwrap();
}

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

fn child(server: &str) -> Client<'static, Child<'static>, Ignore> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", server, "--ignored", "--nocapture"]);
    let mut client = Client::new(Child::spawn(command, &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    client
}

fn rung(event: Option<FollowedEvent>) -> u64 {
    match event {
        Some(FollowedEvent::Occurred(event)) => event.data.raw().get("rung").and_then(|rung| rung.u64()).unwrap(),
        Some(FollowedEvent::Gap) => 0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_happens_is_heard_also_after_a_gap_and_another_start() {
    let mut client = child("server");
    let mut bell = EventFollower::new("bell.rung").poll_floor(1);
    // The first poll says where it begins.
    assert_eq!(client.next_event(&mut bell, Duration::ZERO).unwrap(), None);
    for expected in 1..3 {
        client.request(&Request::call("ring")).unwrap();
        assert_eq!(rung(client.next_event(&mut bell, PATIENCE).unwrap()), expected);
    }
    let cursor = bell.cursor().map(str::to_owned);
    for _ in 0..4 {
        client.request(&Request::call("ring")).unwrap();
    }
    let mut again = EventFollower::new("bell.rung").poll_floor(1).cursor_from(cursor);
    let heard: Vec<u64> = (0..4).map(|_| rung(client.next_event(&mut again, PATIENCE).unwrap())).collect();
    assert_eq!(heard, [0, 4, 5, 6]);
    let refused = client.next_event(&mut EventFollower::new("bell.broken"), PATIENCE).unwrap_err();
    assert_eq!(refused.server().map(|error| error.code), Some(-32023));
    let odd = &mut EventFollower::new("bell.rung").arguments(Raw::constant("[]"));
    assert_eq!(client.next_event(odd, PATIENCE).unwrap_err().server().map(|error| error.code), Some(-32602));
}

// spec: E020
#[test]
fn a_server_without_events_is_not_asked() {
    let refused = child("silent_server").next_event(&mut EventFollower::new("bell.rung"), PATIENCE);
    assert!(matches!(refused, Err(ClientError::NotSent(SendError::NotOffered))), "{refused:?}");
}
