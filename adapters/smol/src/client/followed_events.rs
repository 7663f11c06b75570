//! Follows the events of the server.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_io::Timer;
use futures_lite::Stream;
use mcp_sansio::client::SendError;
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent, are_offered};
use mcp_sansio_host::{Outcomes, take_follower_input};

use super::{Client, ClientError, PendingResponse};

impl Client {
    /// Follows an [event type](https://modelcontextprotocol.io/seps/3415-events-extension) of the server: by a stream, or, if the
    /// server has none, by polls as often as it says.
    ///
    /// ```no_run
    /// use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
    /// use smol::stream::StreamExt;
    ///
    /// # async fn example(client: mcp_sansio_smol::client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let follower = EventFollower::new("bell.rung").cursor_from(std::fs::read_to_string("bell.cursor").ok());
    /// let mut bell = client.follow_events(follower)?;
    /// while let Some(event) = bell.next().await {
    ///     match event? {
    ///         FollowedEvent::Occurred(event) => println!("{} {}", event.timestamp, event.data),
    ///         _ => println!("something may be missing"),
    ///     }
    ///     std::fs::write("bell.cursor", bell.follower.cursor().unwrap_or_default())?; // for the next start
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::NotOffered`] if the server has no events.
    pub fn follow_events(&self, follower: EventFollower) -> Result<FollowedEvents, ClientError> {
        if !are_offered(self.server().as_ref().and_then(|hello| hello.capabilities())) {
            return Err(SendError::NotOffered.into());
        }
        Ok(FollowedEvents { client: self.clone(), follower, under_way: None, alarm: None, is_over: false })
    }
}

/// A subscription to events: a stream, see [`Client::follow_events`]. It ends with an error: [`ClientError::Server`] if the server has
/// refused or ended the subscription; as a [request](Client::request), when the connection is lost or too many requests in a row have
/// failed. Go on with another client of the same server from its cursor. Dropping it ends the subscription.
#[must_use = "dropping it ends it"]
#[derive(Debug)]
#[non_exhaustive]
pub struct FollowedEvents {
    client: Client,
    /// Its state, with the cursor after the events that were taken.
    pub follower: EventFollower,
    under_way: Option<PendingResponse>,
    alarm: Option<(Millis, Timer)>,
    is_over: bool,
}

impl Stream for FollowedEvents {
    type Item = Result<FollowedEvent, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let FollowedEvents { client, follower, under_way, alarm, is_over } = &mut *self;
        while !*is_over {
            if let Some(event) = follower.event() {
                return Poll::Ready(Some(Ok(event)));
            }
            let now = client.with(|state| state.now());
            if let Some(response) = under_way
                && let Poll::Ready(heard) = response.poll_input(cx)
            {
                let taken =
                    client.engine(|engine| take_follower_input(follower, heard, now, engine)).and_then(|taken| taken);
                if !follower.is_under_way() {
                    *under_way = None;
                }
                if let Err(error) = taken {
                    *is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
                continue;
            }
            match follower.next(now) {
                EventStep::Send(request) => {
                    *under_way = Some(PendingResponse::new(client.clone(), &request, Some(Box::new(Outcomes::hear))));
                }
                EventStep::Cancel => *under_way = None,
                EventStep::Wait(until) => {
                    let (_, timer) = match alarm {
                        Some(set) if set.0 == until => set,
                        _ => {
                            let at = client.with(|state| state.instant(until));
                            alarm.insert((until, at.map_or_else(Timer::never, Timer::at)))
                        }
                    };
                    if Pin::new(timer).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    *alarm = None;
                }
            }
        }
        Poll::Ready(None)
    }
}
