//! A host that hears of events: it subscribes to each listed event type in the mode that its entry names, for the time of the task, and
//! prints what it hears.

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::client::{Request, SendError, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio_blocking::client::{Client, ClientError, Http, OwnedResult};
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent, LIST_CHANGED, are_offered};
use mcp_sansio_extensions::events::webhook::{WebhookFollower, WebhookSecret};

use crate::user::{EVENTS_CHANGED, User};

/// The beginning of the names of its scenarios.
pub(crate) const SCENARIOS: &str = "events-client-";

/// The time between two looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A subscription by one of the modes.
#[allow(clippy::large_enum_variant, reason = "there are two")]
pub(crate) enum Listener {
    Follower(EventFollower),
    Webhook(WebhookFollower),
}

/// Returns the time for which the suite wants to see subscriptions.
pub(crate) fn time(context: &str) -> Duration {
    let millis = Raw::parse(context.as_bytes()).ok().and_then(|context| context.get("durationMs")?.u64());
    Duration::from_millis(millis.unwrap_or_default())
}

/// Makes a subscription for each listed event type.
pub(crate) fn listeners(pages: &[OwnedResult]) -> Vec<(String, Listener)> {
    let mut all = Vec::new();
    for event in pages.iter().filter_map(|page| page.raw().get("events")).flat_map(|events| events.items()) {
        let Some(name) = event.get("name").and_then(|name| name.text()) else { continue };
        let name = name.to_string();
        let modes = event.get("delivery").unwrap_or(Raw::constant("[]"));
        let has = |mode: &str| modes.items().any(|item| item.text().is_some_and(|text| text.eq_str(mode)));
        let follower = EventFollower::new(name.clone());
        let listener = if has("push") {
            Listener::Follower(follower)
        } else if has("webhook") {
            let mut random = [0; 32];
            getrandom::fill(&mut random).expect("the system has random bytes");
            let secret = WebhookSecret::new(&random).expect("it is long enough");
            Listener::Webhook(WebhookFollower::new(follower, "https://receiver.example/hooks", secret))
        } else {
            Listener::Follower(follower.poll_only())
        };
        all.push((name, listener));
    }
    all
}

/// Prints what is heard.
pub(crate) fn show(name: &str, event: &FollowedEvent) {
    match event {
        FollowedEvent::Occurred(event) => println!("event {name} {}", event.event_id),
        FollowedEvent::Gap => println!("gap {name}"),
        other => println!("{name} {other:?}"),
    }
}

/// Prints the end of a subscription. Any other error is one of the connection.
pub(crate) fn ended(name: &str, error: ClientError) -> Result<(), ClientError> {
    match error.server() {
        Some(error) => println!("ended {name} {}", error.code),
        None => return Err(error),
    }
    Ok(())
}

/// Returns whether the server tells of changes of its event types.
pub(crate) fn tells_of_changes(capabilities: Option<Raw<'_>>) -> bool {
    let settings = capabilities.and_then(|all| all.get("extensions")?.get(mcp_sansio_extensions::events::ID));
    settings.and_then(|settings| settings.get("listChanged")?.bool()) == Some(true)
}

/// Returns the time in milliseconds since the beginning of 1970.
pub(crate) fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Hears for as long as the task says.
pub(crate) fn hear<'m>(client: &mut Client<'m, Http<'m>, User>, time: Duration) -> Result<(), ClientError> {
    let capabilities = client.server().and_then(|server| server.capabilities());
    if !are_offered(capabilities) {
        return match client.next_event(&mut EventFollower::new("conformance.ticks"), time) {
            Err(ClientError::NotSent(SendError::NotOffered)) => Ok(()),
            other => other.map(|event| println!("heard {event:?}")),
        };
    }
    if tells_of_changes(capabilities) {
        client.listen(&SubscriptionFilter::new().topics(&[LIST_CHANGED]))?;
    }
    let list = Request::raw("events/list", None);
    let pages = client.pages(list).collect::<Result<Vec<_>, _>>()?;
    let (mut all, end) = (listeners(&pages), Instant::now() + time);
    while Instant::now() < end {
        if EVENTS_CHANGED.swap(false, Ordering::Relaxed) {
            client.pages(list).collect::<Result<Vec<_>, _>>()?;
        }
        let mut left = Vec::new();
        for (name, mut listener) in all {
            let done = match &mut listener {
                Listener::Follower(follower) => client.next_event(follower, PAUSE).map(|event| {
                    if let Some(event) = event {
                        show(&name, &event);
                    }
                }),
                Listener::Webhook(hook) if hook.refresh_at.is_some_and(|at| unix_millis() < at) => {
                    sleep(PAUSE);
                    Ok(())
                }
                Listener::Webhook(hook) => client.request(&hook.subscribe()).map(|result| {
                    if let Err(error) = hook.subscribed(result.raw(), unix_millis()) {
                        println!("no subscription to {name}: {error}");
                    }
                }),
            };
            match done {
                Ok(()) => left.push((name, listener)),
                Err(error) => ended(&name, error)?,
            }
        }
        all = left;
    }
    Ok(())
}
