//! Streams of events: what came for them, and what it means to a follower.

use std::collections::VecDeque;

use mcp_sansio::client::{Client, TransportError};
use mcp_sansio::json::{OwnedRaw, Raw};
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::events::client::{EventError, EventFollower, StreamNotification};

use crate::{ClientError, OwnedResult, ServerError, may_pass};

/// The most notifications of one stream that wait to be taken, and their bytes.
const WAITING: usize = 1024;
const BYTES: usize = 1 << 20;

/// The notifications of one stream that wait to be taken.
#[derive(Debug, Default)]
pub(crate) struct WaitingNotifications {
    waiting: VecDeque<(StreamNotification, OwnedRaw)>,
    bytes: usize,
}

impl WaitingNotifications {
    /// Keeps a notification. Returns `false` if there is no room.
    pub(crate) fn keep(&mut self, kind: StreamNotification, params: Option<Raw<'_>>) -> bool {
        let params = params.unwrap_or(Raw::constant("{}"));
        let bytes = self.bytes.saturating_add(params.as_bytes().len());
        if self.waiting.len() >= WAITING || bytes > BYTES {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back((kind, params.into()));
        true
    }

    pub(crate) fn next(&mut self) -> Option<(StreamNotification, OwnedRaw)> {
        let next = self.waiting.pop_front()?;
        self.bytes -= next.1.as_str().len();
        Some(next)
    }
}

/// An input of an event follower: it came for its request.
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "an answer, or what comes before it")]
pub enum FollowerInput {
    /// A notification about its stream, with its params.
    Notification(StreamNotification, OwnedRaw),
    /// Its outcome.
    Outcome(Result<OwnedResult, ClientError>),
}

/// Gives what came for its request to an event follower.
///
/// # Errors
/// The error of the request or of the stream, if to send it again later cannot help: the server has refused or ended the subscription,
/// the connection is lost, or too many requests in a row have failed.
pub fn take_follower_input(
    follower: &mut EventFollower,
    input: FollowerInput,
    now: Millis,
    engine: &Client<'_>,
) -> Result<(), ClientError> {
    follower.set_jitter_seed(engine.seed);
    match input {
        FollowerInput::Notification(kind, params) => {
            follower.notified(kind, params.raw(), now).map_err(|error| ClientError::Server(error.into()))
        }
        FollowerInput::Outcome(Ok(result)) => Ok(follower.answered(result.raw(), now)?),
        FollowerInput::Outcome(Err(ClientError::Server(error))) => match follower.refused(error.code, now) {
            true => Ok(()),
            false => Err(ClientError::Server(error)),
        },
        FollowerInput::Outcome(Err(error)) => {
            // A server, or what is between, may end a confirmed stream in order, without a response.
            let in_order = !follower.awaits_answer() && error.lost() == Some(TransportError::Invalid);
            match follower.lost(now) && engine.is_connected() && (in_order || may_pass(&error)) {
                true => Ok(()),
                false => Err(error),
            }
        }
    }
}

impl From<EventError> for ServerError {
    fn from(error: EventError) -> Self {
        let data = error.data.map(|data| data.as_str().to_owned());
        ServerError { code: error.code, message: error.message, data }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler, ClientInfo, LineClient, Request, RequestError};
    use mcp_sansio::frame::LineBuffer;
    use mcp_sansio::memory::Store;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::sink::LineSink;

    use super::*;
    use crate::{ClientOptions, OutcomeHandler, Outcomes};

    /// A stream whose notifications are not taken is cancelled. Those before are there, and then it counts as lost.
    #[test]
    fn a_stream_that_is_not_read_ends() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let engine = ClientOptions::DEFAULT.engine(&PROFILE, 4);
        let mut client = LineClient::new(LineBuffer::new(Store::growing(1 << 10)), engine, LineSink::new(Vec::new()));
        client.handle().client.connect_as(Revision::V2026_07_28);
        let mut outcomes = Outcomes::default();
        let send = |outcomes: &mut Outcomes, client: &mut LineClient<'_, _>| {
            let token = client.handle().send(&Request::raw("events/stream", None).no_timeout()).unwrap();
            outcomes.expect(token);
            token
        };
        let (stream, other) = (send(&mut outcomes, &mut client), send(&mut outcomes, &mut client));
        outcomes.hear(stream);
        let mut passed = 0;
        let mut say = |outcomes: &mut Outcomes, client: &mut LineClient<'_, _>, id: u32, more: &str| {
            let method = Raw::constant("\"notifications/events/heartbeat\"").text().unwrap();
            let params = format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"more":"{more}"}}"#);
            let params = Raw::parse(params.as_bytes()).ok();
            let mut count = |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| passed += 1;
            OutcomeHandler { outcomes, handler: &mut count, happened: false }
                .event(ClientEvent::Notification { method, params }, &mut client.handle());
            passed
        };
        let cancelled = |client: &LineClient<'_, LineSink<Vec<u8>>>| {
            String::from_utf8_lossy(client.out.pending()).matches("notifications/cancelled").count()
        };
        for _ in 0..WAITING {
            assert_eq!(say(&mut outcomes, &mut client, stream.to_bits(), ""), 0);
        }
        assert_eq!(cancelled(&client), 0);
        assert_eq!(say(&mut outcomes, &mut client, stream.to_bits(), ""), 0);
        assert_eq!(cancelled(&client), 1);
        // What comes behind the one that was dropped would move the cursor over it.
        assert!(matches!(outcomes.poll_input(stream, None), Poll::Ready(FollowerInput::Notification(..))));
        assert_eq!(say(&mut outcomes, &mut client, stream.to_bits(), ""), 0);
        for _ in 1..WAITING {
            let next = outcomes.poll_input(stream, None);
            assert!(matches!(next, Poll::Ready(FollowerInput::Notification(StreamNotification::Heartbeat, _))));
        }
        let lost = |next| matches!(next, Poll::Ready(FollowerInput::Outcome(Err(error))) if error.lost() == Some(TransportError::Closed));
        assert!(lost(outcomes.poll_input(stream, None)), "it was cancelled");
        assert!(lost(outcomes.poll_input(stream, None)), "it is not known");
        // Those of other requests go to the handler.
        assert_eq!(say(&mut outcomes, &mut client, other.to_bits(), ""), 1);
        assert!(lost(outcomes.poll_input(other, None)) && outcomes.poll(other, None).is_pending());

        let long = "x".repeat(BYTES / 2);
        let third = send(&mut outcomes, &mut client);
        outcomes.hear(third);
        for ended in [1, 2] {
            say(&mut outcomes, &mut client, third.to_bits(), &long);
            assert_eq!(cancelled(&client), ended);
        }
    }
    // spec: E056
    #[test]
    fn a_confirmed_stream_may_end_without_a_response() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let mut engine = ClientOptions::DEFAULT.engine(&PROFILE, 4);
        engine.connect_as(Revision::V2026_07_28);
        for is_confirmed in [true, false] {
            let mut bell = EventFollower::new("bell.rung");
            bell.next(0);
            if is_confirmed {
                let params = OwnedRaw::new(Raw::constant(r#"{"cursor":"1"}"#));
                let active = FollowerInput::Notification(StreamNotification::Active, params);
                take_follower_input(&mut bell, active, 0, &engine).unwrap();
            }
            let lost = ClientError::failed(&RequestError::Lost(TransportError::Invalid));
            let taken = take_follower_input(&mut bell, FollowerInput::Outcome(Err(lost)), 0, &engine);
            assert_eq!(taken.is_ok(), is_confirmed, "{taken:?}");
        }
    }
}
