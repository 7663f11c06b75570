//! Clients that follow the events of a server, over stdio and over HTTP.
#![cfg(all(feature = "client", unix))]

#[path = "../../../tests/remote/event_server.rs"]
mod event_server;

use std::time::Duration;

use mcp_sansio::client::{ClientInfo, Request, SendError};
use mcp_sansio::json::Raw;
use mcp_sansio_blocking::client::{Child, Client, ClientError, Ignore, Transport};
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};

/// The longest time for any step. None comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

fn child(server: &str, streams: usize) -> Client<'static, Child<'static>, Ignore> {
    let mut client = Client::new(Child::spawn(event_server::command(server, streams), &PROFILE).unwrap(), Ignore);
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

fn ring(client: &mut Client<'static, impl Transport<'static>, Ignore>) {
    client.request(&Request::call("ring")).unwrap();
}

/// By polls of a server without room for a stream, and by a stream.
#[test]
fn what_happens_is_heard_also_after_a_gap_and_another_start() {
    for streams in [0, 4] {
        heard_after_a_gap_and_another_start(streams);
    }
}

fn heard_after_a_gap_and_another_start(streams: usize) {
    let mut client = child("server", streams);
    let mut bell = EventFollower::new("bell.rung").poll_floor(1);
    // The first poll says where it begins.
    assert_eq!(client.next_event(&mut bell, Duration::ZERO).unwrap(), None);
    for expected in 1..3 {
        ring(&mut client);
        assert_eq!(rung(client.next_event(&mut bell, PATIENCE).unwrap()), expected);
    }
    let cursor = bell.cursor().map(str::to_owned);
    assert_eq!(bell.method_name(), if streams == 0 { "events/poll" } else { "events/stream" });
    client.end_events(bell);
    (0..4).for_each(|_| ring(&mut client));
    let mut again = EventFollower::new("bell.rung").poll_floor(1).cursor_from(cursor);
    let heard: Vec<u64> = (0..4).map(|_| rung(client.next_event(&mut again, PATIENCE).unwrap())).collect();
    assert_eq!(heard, [0, 4, 5, 6]);
    let refused = client.next_event(&mut EventFollower::new("bell.broken"), PATIENCE).unwrap_err();
    assert_eq!(refused.server().map(|error| error.code), Some(-32023));
    let odd = &mut EventFollower::new("bell.rung").arguments(Raw::constant("[]"));
    assert_eq!(client.next_event(odd, PATIENCE).unwrap_err().server().map(|error| error.code), Some(-32602));
}

// spec: E057
/// Two streams beside calls. What comes for one is kept while the other is waited for.
#[test]
fn streams_beside_each_other() {
    let mut client = child("server", 4);
    let mut bells = [0, 1].map(|_| EventFollower::new("bell.rung").poll_floor(1));
    for bell in &mut bells {
        assert_eq!(client.next_event(bell, Duration::ZERO).unwrap(), None);
    }
    ring(&mut client);
    ring(&mut client);
    let heard: Vec<_> = bells.iter_mut().map(|bell| rung(client.next_event(bell, PATIENCE).unwrap())).collect();
    assert_eq!(heard, [1, 1]);
    let [first, mut second] = bells;
    client.end_events(first);
    let ended = client.request(&Request::call("ended")).unwrap();
    assert!(ended.as_str().contains("ended: 1"), "{ended:?}");
    assert_eq!(rung(client.next_event(&mut second, PATIENCE).unwrap()), 2);

    // The server ends the subscription, and takes it again later.
    client.request(&Request::call("close")).unwrap();
    let terminated = client.next_event(&mut second, PATIENCE).unwrap_err();
    assert_eq!(terminated.server().map(|error| error.code), Some(-32024), "{terminated}");
    let refused = client.next_event(&mut second, PATIENCE).unwrap_err();
    assert_eq!(refused.server().map(|error| error.code), Some(-32024), "{refused}");
    client.request(&Request::call("open")).unwrap();
    assert_eq!(rung(client.next_event(&mut second, PATIENCE).unwrap()), 3);

    // A follower goes on with another client.
    client.restart().unwrap();
    assert_eq!(rung(client.next_event(&mut second, PATIENCE).unwrap()), 0, "the new server knows no such cursor");
    ring(&mut client);
    assert_eq!(rung(client.next_event(&mut second, PATIENCE).unwrap()), 1);
}

/// A server that ends and comes again is followed again.
#[cfg(feature = "http")]
#[test]
fn a_stream_over_http_is_opened_again() {
    use mcp_sansio_blocking::client::Http;
    use mcp_sansio_blocking::http::HttpServer;
    use mcp_sansio_extensions::events::{deliver, turn};
    use mcp_sansio_http::endpoint::App;

    let mut address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let mut bell = EventFollower::new("bell.rung").poll_floor(1);
    let mut client: Option<Client<'static, Http<'static>, Ignore>> = None;
    for start in 1..3 {
        // A child that another test starts holds the socket of the first server until its `exec`.
        let bind = |_| match HttpServer::<event_server::Door>::bind(address) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                std::thread::sleep(Duration::from_millis(10));
                None
            }
            bound => Some(bound.unwrap()),
        };
        let server = (0..500).find_map(bind).expect("the address is free again").grace(Duration::ZERO);
        address = server.local_addr().unwrap();
        let stopper = server.stopper();
        let serving = std::thread::spawn(move || {
            let server = server.tick(|app, endpoint, now| {
                turn(app.state, now, |door, token| {
                    endpoint.answer(&mut App::new(&event_server::SERVICE, door), token.as_custom(), deliver)
                })
            });
            server.serve(const { &event_server::SERVICE }, &mut event_server::Door::new(start, 4))
        });
        let client = client.get_or_insert_with(|| {
            let mut client = Client::new(Http::new(&format!("http://{address}/mcp"), &PROFILE).unwrap(), Ignore);
            client.connect().unwrap();
            client
        });
        let first = client.next_event(&mut bell, if start == 1 { Duration::ZERO } else { PATIENCE }).unwrap();
        assert_eq!(first, (start == 2).then_some(FollowedEvent::Gap));
        for expected in 1..3 {
            ring(client);
            assert_eq!(rung(client.next_event(&mut bell, PATIENCE).unwrap()), expected);
        }
        assert_eq!((bell.method_name(), bell.cursor()), ("events/stream", Some(&*format!("{start}.2"))));
        stopper.stop();
        serving.join().unwrap().unwrap();
    }
}

// spec: E020
#[test]
fn a_server_without_events_is_not_asked() {
    let refused = child("silent_server", 0).next_event(&mut EventFollower::new("bell.rung"), PATIENCE);
    assert!(matches!(refused, Err(ClientError::NotSent(SendError::NotOffered))), "{refused:?}");
}
