//! Timeouts and cancellation: `notifications/cancelled`
//! ([cancellation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation)).

use super::pending::{PendingRequest, until};
use super::{Client, PendingId, SendError};
use crate::json::object::Object;
use crate::rpc::begin_notification;
use crate::sink::{FullError, MessageHead, Out, whole};
use crate::time::Millis;

impl Client<'_> {
    /// Cancels a request or a subscription: sends `notifications/cancelled` with `reason`. No
    /// [`ClientEvent::Done`](super::ClientEvent::Done) follows, and the client ignores a late answer.
    ///
    /// # Errors
    /// [`SendError::Stale`] if the request has ended; [`SendError::FullNow`] or [`SendError::FullNever`] if the
    /// sink has no room.
    pub fn cancel(&mut self, token: PendingId, reason: Option<&str>, out: &mut dyn Out) -> Result<(), SendError> {
        if !self.is_open(token) {
            return Err(SendError::Stale);
        }
        if !self.close_subscription(token.0) {
            if let Some(id) = self.pending(token.0).and_then(PendingRequest::id) {
                self.tell(out, |out| write_cancelled(id, reason, out))?;
            }
            self.close(token.0);
        }
        if let Some(around) = self.info.around {
            around.dropped(token, true, self.now);
        }
        Ok(())
    }

    /// Stops the timeout of the request with this id on the wire, until [`resume`](super::Client::resume): its
    /// transport waits for credentials. The limit of [`total_timeout`](super::Request::total_timeout) stays.
    pub fn pause(&mut self, wire: u64) {
        self.set_timeout(wire, false);
    }

    /// Starts the timeout of [`pause`](super::Client::pause) again. Set [`now`](super::Client::now)
    /// first.
    pub fn resume(&mut self, wire: u64) {
        self.set_timeout(wire, true);
    }

    fn set_timeout(&mut self, wire: u64, runs: bool) {
        let now = self.now;
        if self.opening.is_on_wire(wire) {
            self.opening_time(wire, runs);
        } else if let Some(pending) = self.on_wire_mut(wire) {
            pending.set_timeout(now, runs);
        }
    }

    /// Returns the time of the next deadline: call [`advance`](super::Client::advance) then at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let pending = self.pending.iter().filter_map(|pending| pending.due(self.now));
        pending.chain(self.opening.deadline).min_by_key(|&time| until(time, self.now))
    }
}

/// Writes `notifications/cancelled` for a request whose time is over.
pub(crate) fn write_timed_out(id: u32, out: &mut dyn Out) -> Result<(), FullError> {
    match write_cancelled(id, Some("timed out"), out) {
        // Larger than the whole sink: the server sends its answer all the same, and the client ignores it.
        Err(FullError::Never) => Ok(()),
        done => done,
    }
}

/// Writes `notifications/cancelled`.
fn write_cancelled(id: u32, reason: Option<&str>, out: &mut dyn Out) -> Result<(), FullError> {
    whole(out, MessageHead::Notification, |out| {
        begin_notification(out, "notifications/cancelled", ",\"params\":");
        let mut params = Object::open(out);
        params.key("requestId").unsigned(id.into());
        params.text_if("reason", reason);
        params.finish().put(b"}")
    })
}
