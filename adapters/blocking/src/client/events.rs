//! Follows the events of the server.

use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientHandler, SendError};
use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent, are_offered};
use mcp_sansio_host::may_pass;

use super::{Client, ClientError, Transport};

impl<'m, T: Transport<'m>, H: ClientHandler> Client<'m, T, H> {
    /// Follows an [event type](https://modelcontextprotocol.io/seps/3415-events-extension) of the server until its next event:
    /// polls as often as the server says, and waits in between. Returns `None` if there is no event in `at_most`; the next call
    /// continues. A poll on its way is waited for. Requests of the server go to the handler meanwhile.
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
        loop {
            if let Some(event) = follower.event() {
                return Ok(Some(event));
            }
            let now = self.now();
            match follower.next(now) {
                EventStep::Send(request) => match self.request(&request) {
                    Ok(result) => follower.answered(result.raw(), self.now())?,
                    Err(ClientError::Server(error)) if follower.refused(error.code, self.now()) => {}
                    Err(ClientError::Server(error)) => return Err(ClientError::Server(error)),
                    Err(error) if may_pass(&error) && follower.lost(self.now()) && self.engine().is_connected() => {}
                    Err(error) => return Err(error),
                },
                EventStep::Wait(until) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.turn(left.min(Duration::from_millis(until.saturating_sub(now))))?;
                }
            }
        }
    }
}
