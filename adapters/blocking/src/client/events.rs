//! Follows the events of the server.

use std::task::Poll;
use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientHandler, SendError};
use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent, are_offered};
use mcp_sansio_host::{FollowerInput, Outcomes, take_follower_input};

use super::{Client, ClientError, Transport};

impl<'m, T: Transport<'m>, H: ClientHandler> Client<'m, T, H> {
    /// Follows an [event type](https://modelcontextprotocol.io/seps/3415-events-extension) of the server until its next event: by
    /// a stream, or, if the server has none, by polls as often as it says. Returns `None` if there is no event in `at_most`; the next
    /// call continues, and gets what came meanwhile. It waits longer for the answer that says where the subscription begins. Requests
    /// of the server go to the handler.
    ///
    /// ```no_run
    /// # use std::process::Command;
    /// # use std::time::Duration;
    /// # use mcp_sansio::client::ClientInfo;
    /// # use mcp_sansio_blocking::client::{Child, Client, Ignore};
    /// use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
    ///
    /// let profile = ClientInfo::new("demo", "1.0");
    /// let mut client = Client::new(Child::spawn(Command::new("door"), &profile)?, Ignore);
    /// client.connect()?;
    /// let mut bell = EventFollower::new("bell.rung").cursor_from(std::fs::read_to_string("bell.cursor").ok());
    /// loop {
    ///     match client.next_event(&mut bell, Duration::from_secs(60))? {
    ///         Some(FollowedEvent::Occurred(event)) => println!("{} {}", event.timestamp, event.data),
    ///         Some(_) => println!("something may be missing"),
    ///         None => continue,
    ///     }
    ///     std::fs::write("bell.cursor", bell.cursor().unwrap_or_default())?; // for the next start
    /// }
    /// # #[allow(unreachable_code)]
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SendError::NotOffered`] if the server has no events. [`ClientError::Server`] if it has refused or ended the subscription.
    /// As [`request`](Client::request), when the connection is lost or too many requests in a row have failed: go on with another
    /// client of the same server, and the same follower.
    pub fn next_event(
        &mut self,
        follower: &mut EventFollower,
        at_most: Duration,
    ) -> Result<Option<FollowedEvent>, ClientError> {
        if !are_offered(self.server().and_then(|hello| hello.capabilities())) {
            return Err(SendError::NotOffered.into());
        }
        let end = Instant::now() + at_most;
        if follower.token().is_some() {
            // A stream is silent only if nothing has come.
            self.run()?;
        }
        loop {
            if let Some(event) = follower.event() {
                return Ok(Some(event));
            }
            let now = self.now();
            if let Some(token) = *follower.token()
                && let Poll::Ready(heard) = self.outcomes.poll_input(token, None)
            {
                self.take_input(follower, heard)?;
                continue;
            }
            match follower.next(now) {
                EventStep::Send(request) => match self.send_and(&request, Outcomes::hear) {
                    Ok(token) => *follower.token() = Some(token),
                    Err(error) => self.take_input(follower, FollowerInput::Outcome(Err(error)))?,
                },
                EventStep::Cancel => self.cancel_stream(follower),
                EventStep::Wait(until) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() && !follower.awaits_answer() {
                        return Ok(None);
                    }
                    let left = if follower.awaits_answer() { Duration::MAX } else { left };
                    self.turn(left.min(Duration::from_millis(until.saturating_sub(now))))?;
                }
            }
        }
    }

    /// Ends a subscription: cancels its stream. Polls end by themselves.
    pub fn end_events(&mut self, mut follower: EventFollower) {
        self.cancel_stream(&mut follower);
    }

    fn cancel_stream(&mut self, follower: &mut EventFollower) {
        if let Some(token) = follower.token().take() {
            // It may be over already.
            let _ = self.cancel(token, None);
        }
    }

    fn take_input(&mut self, follower: &mut EventFollower, heard: FollowerInput) -> Result<(), ClientError> {
        let taken = take_follower_input(follower, heard, self.now(), self.engine());
        if !follower.is_under_way() {
            self.cancel_stream(follower);
        }
        taken
    }
}
