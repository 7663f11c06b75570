//! Events for clients (feature `events-client`): follows one subscription, without I/O.
//!
//! An [`EventFollower`] says which request to send and when, and takes the answers. The client of `mcp_sansio_blocking` runs it
//! with `next_event`. It polls as often as the server says, drops what comes twice, and reports gaps. Its
//! [cursor](EventFollower::cursor) is the caller's: a program that starts again goes on from there.
//!
//! ```
//! use mcp_sansio::json::Raw;
//! use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent};
//!
//! let mut bell = EventFollower::new("bell.rung").cursor_from(None); // the cursor of the last run, if there is one
//! let EventStep::Send(request) = bell.next(0) else { panic!() };
//! assert_eq!(request.method_name(), "events/poll");
//! bell.answered(Raw::constant(r#"{"events":[],"cursor":"77.0","nextPollMs":5000}"#), 10)?;
//! assert!(matches!(bell.next(20), EventStep::Wait(5010)));
//! let EventStep::Send(request) = bell.next(5010) else { panic!() };
//! bell.answered(
//!     Raw::constant(
//!         r#"{"events":[{"eventId":"e1","name":"bell.rung","timestamp":"2026-07-28T09:30:00Z","data":{"times":2}}],
//!             "cursor":"77.1","nextPollMs":5000}"#,
//!     ),
//!     5020,
//! )?;
//! let Some(FollowedEvent::Occurred(event)) = bell.event() else { panic!() };
//! assert_eq!(event.data.raw().get("times").and_then(|times| times.u64()), Some(2));
//! assert_eq!(bell.cursor(), Some("77.1")); // keep it
//! # Ok::<(), mcp_sansio::client::views::ViewError>(())
//! ```
//!
//! `data` comes from others, as the results of tools do: see "Untrusted text" among the duties of a client.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::client::Request;
use mcp_sansio::client::views::ViewError;
use mcp_sansio::json::{JsonKind, Object, OwnedRaw, Raw};
use mcp_sansio::protocol::code;
use mcp_sansio::server::Millis;

use crate::events::ID;
use crate::written::written;

/// The number of the last occurrences whose ids are known, to drop duplicates.
const KNOWN: usize = 256;

/// The longest time between two polls, in milliseconds.
const LONGEST: Millis = 3_600_000;

/// The time limit of one request, in milliseconds.
const REQUEST_TIME: Millis = 30_000;

/// The requests in a row that may fail.
const FAILURES: u8 = 5;

/// Returns whether a server with these capabilities offers events: to others no request of the extension may be sent.
#[must_use]
pub fn are_offered(capabilities: Option<Raw<'_>>) -> bool {
    capabilities.and_then(|capabilities| capabilities.get("extensions")?.get(ID)).is_some()
}

/// The next step of an [`EventFollower`].
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "a caller must handle each step")]
pub enum EventStep<'f> {
    /// Send this request, then call [`answered`](EventFollower::answered), [`refused`](EventFollower::refused) or
    /// [`lost`](EventFollower::lost).
    Send(Request<'f>),
    /// Wait until this time.
    Wait(Millis),
}

/// An event of an [`EventFollower`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowedEvent {
    /// Something has happened at the server.
    Occurred(Occurrence),
    /// The server may have left occurrences out (`truncated`): if it matters, read by tools how things are.
    Gap,
}

/// An `EventOccurrence`. All of it is untrusted, as the results of tools are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occurrence {
    /// `eventId`.
    pub event_id: String,
    /// The name of the event type.
    pub name: String,
    /// The time of the occurrence, as ISO 8601.
    pub timestamp: String,
    /// `data`, a JSON object.
    pub data: OwnedRaw,
}

impl Occurrence {
    fn of(raw: Raw<'_>) -> Option<Self> {
        let text = |name| Some(raw.get(name)?.text()?.to_string());
        let data = raw.get("data").filter(|data| data.kind() == JsonKind::Object)?;
        let (event_id, name, timestamp) = (text("eventId")?, text("name")?, text("timestamp")?);
        Some(Occurrence { event_id, name, timestamp, data: OwnedRaw::new(data) })
    }
}

/// Follows one subscription: an event type with arguments.
#[derive(Debug)]
pub struct EventFollower {
    name: String,
    arguments: Option<OwnedRaw>,
    max_age: Option<Millis>,
    floor: Millis,
    cursor: Option<String>,
    /// The cursor after the events that are not taken yet.
    next_cursor: Option<String>,
    due: Millis,
    failures: u8,
    params: Vec<u8>,
    known: VecDeque<String>,
    events: VecDeque<FollowedEvent>,
}

impl EventFollower {
    /// Follows the event type with this name, from now on.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        EventFollower {
            name: name.into(),
            arguments: None,
            max_age: None,
            floor: 1_000,
            cursor: None,
            next_cursor: None,
            due: 0,
            failures: 0,
            params: Vec::new(),
            known: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Sets the arguments, a JSON object. Default: none.
    #[must_use]
    pub fn arguments(self, arguments: Raw<'_>) -> Self {
        EventFollower { arguments: Some(OwnedRaw::new(arguments)), ..self }
    }

    /// Sets the [cursor](EventFollower::cursor) from which it goes on; `None` or an empty text: from now on. Default: `None`.
    #[must_use]
    pub fn cursor_from(self, cursor: Option<String>) -> Self {
        let cursor = cursor.filter(|cursor| !cursor.is_empty());
        EventFollower { next_cursor: cursor.clone(), cursor, ..self }
    }

    /// Sets `maxAgeMs`: older occurrences, in milliseconds, are left out. Default: none are.
    #[doc(alias = "maxAgeMs")]
    #[must_use]
    pub fn max_age(self, millis: Millis) -> Self {
        EventFollower { max_age: Some(millis), ..self }
    }

    /// Sets the shortest time between two polls, in milliseconds. Default: 1000.
    #[must_use]
    pub fn poll_floor(self, millis: Millis) -> Self {
        EventFollower { floor: millis, ..self }
    }

    /// Returns the cursor after the events that were taken: keep it after each, and give it to
    /// [`cursor_from`](EventFollower::cursor_from) at the next start. While events of an answer are left, it is the one before the
    /// answer, so that none is lost. `None` for event types without replay, and before the first answer.
    #[must_use]
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Returns the next event. Take all of them before [`next`](EventFollower::next).
    pub fn event(&mut self) -> Option<FollowedEvent> {
        let event = self.events.pop_front();
        if self.events.is_empty() && self.cursor != self.next_cursor {
            self.cursor = self.next_cursor.clone();
        }
        event
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Millis) -> EventStep<'_> {
        if now < self.due {
            return EventStep::Wait(self.due);
        }
        let params = written(|out| {
            let mut params = Object::open(out);
            params.text("name", &self.name);
            params.raw_if("arguments", self.arguments.as_ref().map(OwnedRaw::raw));
            match &self.next_cursor {
                Some(cursor) => params.text("cursor", cursor),
                None => params.fixed("cursor", "null"),
            }
            if let Some(age) = self.max_age {
                params.number("maxAgeMs", age);
            }
            params.close()
        });
        // Memory for any JSON is there.
        self.params = params.unwrap_or_default();
        EventStep::Send(Request::raw("events/poll", Raw::parse(&self.params).ok()).timeout(REQUEST_TIME))
    }

    /// Takes the result of the request.
    ///
    /// # Errors
    /// [`ViewError`] if it is no result of `events/poll`; the request is sent again later.
    pub fn answered(&mut self, result: Raw<'_>, now: Millis) -> Result<(), ViewError> {
        let Some(events) = result.get("events").filter(|events| events.kind() == JsonKind::Array) else {
            self.lost(now);
            return Err(ViewError::Missing("events"));
        };
        self.failures = 0;
        let is_true = |name| result.get(name).and_then(|member| member.bool()) == Some(true);
        let cursor = result.get("cursor").and_then(|cursor| cursor.text()).map(|cursor| cursor.to_string());
        // Without cursors there is no position that could have been passed over.
        if is_true("truncated") && cursor.is_some() {
            self.events.push_back(FollowedEvent::Gap);
        }
        for occurrence in events.items().filter_map(Occurrence::of) {
            if self.known.contains(&occurrence.event_id) {
                continue;
            }
            if self.known.len() == KNOWN {
                self.known.pop_front();
            }
            self.known.push_back(occurrence.event_id.clone());
            self.events.push_back(FollowedEvent::Occurred(occurrence));
        }
        // A server that has more and does not move would be asked without end.
        let has_more = is_true("hasMore") && cursor.is_some() && cursor != self.next_cursor;
        self.next_cursor = cursor;
        if self.events.is_empty() {
            self.cursor = self.next_cursor.clone();
        }
        let pause = result.get("nextPollMs").and_then(|pause| pause.u64()).unwrap_or(0);
        let pause = if has_more { 0 } else { pause.min(LONGEST).max(self.floor) };
        self.due = now.saturating_add(pause);
        Ok(())
    }

    /// Takes an error that the server answered the request with. Returns `false` if it is the end: the event type does not exist
    /// (-32023), is forbidden (-32024), or the like. The event type may have changed: list the types again. Another error, such as
    /// -32603, may pass, and counts as [lost](EventFollower::lost).
    pub fn refused(&mut self, code: i32, now: Millis) -> bool {
        let is_final = matches!(
            code,
            code::INVALID_REQUEST | code::METHOD_NOT_FOUND | code::INVALID_PARAMS | -32023 | -32024 | -32026
        );
        self.lost(now) && !is_final
    }

    /// Notes that the request has no answer: it is sent again, later each time. Returns `false` if five in a row had none: the caller
    /// gives up, or calls [`next`](EventFollower::next) for one more.
    pub fn lost(&mut self, now: Millis) -> bool {
        self.failures = self.failures.saturating_add(1);
        let pause = self.floor.max(1).saturating_mul(1 << self.failures.min(6));
        self.due = now.saturating_add(pause.min(LONGEST));
        self.failures < FAILURES
    }
}
