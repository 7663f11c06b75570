//! A client that follows the events of a server, over stdio.
#![cfg(all(feature = "client", unix))]

#[path = "../../../tests/remote/event_server.rs"]
mod event_server;

use std::future::Future;
use std::time::Duration;

use mcp_sansio::client::{ClientInfo, Request, SendError};
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
use mcp_sansio_smol::client::{Child, Client, ClientError, FollowedEvents, Ignore};
use smol::stream::StreamExt;
use smol::{Timer, future};

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

/// Runs a test beside the driver. A test that hangs fails.
fn run<F: Future<Output = ()> + Send + 'static>(server: &str, streams: usize, test: impl FnOnce(Client) -> F) {
    let (client, driver) = Client::new(Child::spawn(event_server::command(server, streams), &PROFILE).unwrap(), Ignore);
    smol::block_on(future::or(
        async {
            let driver = smol::spawn(driver);
            client.connect().await.unwrap();
            smol::spawn(test(client)).await;
            driver.await;
        },
        async {
            Timer::after(Duration::from_secs(120)).await;
            panic!("it hangs")
        },
    ));
}

fn bell() -> EventFollower {
    EventFollower::new("bell.rung").poll_floor(1)
}

/// Returns the number of the next ring, or 0 for a gap.
async fn rung(bell: &mut FollowedEvents) -> u64 {
    match bell.next().await.unwrap().unwrap() {
        FollowedEvent::Occurred(event) => event.data.raw().get("rung").and_then(|rung| rung.u64()).unwrap(),
        FollowedEvent::Gap => 0,
        other => panic!("{other:?}"),
    }
}

async fn call(client: &Client, tool: &str) -> String {
    client.request(Request::call(tool)).await.unwrap().as_str().to_owned()
}

/// Waits until the subscription has a cursor.
async fn begun(bell: &mut FollowedEvents) {
    future::poll_once(bell.next()).await;
    while bell.follower.cursor().is_none() {
        Timer::after(Duration::from_millis(5)).await;
        assert!(future::poll_once(bell.next()).await.is_none());
    }
}

/// By polls of a server without room for a stream, and by a stream.
#[test]
fn what_happens_is_heard_also_after_a_gap() {
    for (streams, method) in [(0, "events/poll"), (4, "events/stream")] {
        run("server", streams, async move |client| {
            let mut first = client.follow_events(bell()).unwrap();
            begun(&mut first).await;
            for expected in 1..3 {
                call(&client, "ring").await;
                assert_eq!(rung(&mut first).await, expected);
            }
            assert_eq!(first.follower.method_name(), method);
            let cursor = first.follower.cursor().map(str::to_owned);
            drop(first);
            for _ in 0..4 {
                call(&client, "ring").await;
            }
            let ended = call(&client, "ended").await;
            assert!(ended.contains(if streams == 0 { "ended: 0" } else { "ended: 1" }), "{ended}");
            let mut again = client.follow_events(bell().cursor_from(cursor)).unwrap();
            for expected in [0, 4, 5, 6] {
                assert_eq!(rung(&mut again).await, expected);
            }
        });
    }
}

// spec: E057
/// A task that waits is woken by what comes, and by the end of the subscription.
#[test]
fn a_task_that_waits_is_woken() {
    run("server", 4, async |client| {
        let mut bell = client.follow_events(bell()).unwrap();
        begun(&mut bell).await;
        let waiting =
            smol::spawn(async move { (rung(&mut bell).await, bell.next().await, bell.next().await.is_none()) });
        call(&client, "ring").await;
        call(&client, "close").await;
        let (heard, error, is_over) = waiting.await;
        let error = error.unwrap().unwrap_err();
        assert_eq!((heard, error.server().map(|error| error.code), is_over), (1, Some(-32024), true), "{error}");
    });
}

// spec: E020
#[test]
fn a_server_without_events_is_not_asked() {
    run("silent_server", 0, async |client| {
        let refused = client.follow_events(bell()).unwrap_err();
        assert!(matches!(refused, ClientError::NotSent(SendError::NotOffered)), "{refused:?}");
    });
}
