//! Events for clients (feature `alloc`): follows one subscription, without I/O.
//!
//! An [`EventFollower`] says which request to send and when, and takes the answers. The clients of `mcp_sansio_blocking` (`next_event`)
//! and `mcp_sansio_smol` (`follow_events`) run it. It keeps a stream open (`events/stream`); if the server has none, it polls as often as the
//! server says. It drops what comes twice, and reports gaps. Its [cursor](EventFollower::cursor) is the caller's: a program that starts
//! again goes on from there.
//!
//! ```
//! use mcp_sansio::json::Raw;
//! use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent};
//!
//! let mut bell = EventFollower::new("bell.rung").cursor_from(None); // the cursor of the last run, if there is one
//! let EventStep::Send(request) = bell.next(0) else { panic!() };
//! assert_eq!(request.name, "events/stream");
//! bell.refused(-32026, 5); // a server that is only polled
//! let EventStep::Send(request) = bell.next(5) else { panic!() };
//! assert_eq!(request.name, "events/poll");
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

use mcp_sansio::client::views::ViewError;
use mcp_sansio::client::{PendingId, Request};
use mcp_sansio::json::{JsonKind, Object, OwnedRaw, Raw, Text};
use mcp_sansio::protocol::{code, meta};
use mcp_sansio::server::Millis;
use mcp_sansio::sink::to_vec;
use mcp_sansio::time::jittered;

use crate::events::ID;

/// The number of the last occurrences whose ids are known, to drop duplicates.
const KNOWN: usize = 256;

/// The longest id that is remembered for it, in bytes.
const LONGEST_ID: usize = 1_024;

/// The longest time between two polls, in milliseconds.
const LONGEST: Millis = 3_600_000;

/// The time limit of a poll, and of the confirmation of a stream, in milliseconds.
const REQUEST_TIME: Millis = 30_000;

/// The longest silence of a stream, in milliseconds: twice the time between two heartbeats.
const SILENCE: Millis = 60_000;

/// The requests in a row that may fail.
const FAILURES: u8 = 5;

/// Returns whether a server with these capabilities offers events: to others no request of the extension may be sent.
#[must_use]
pub fn are_offered(capabilities: Option<Raw<'_>>) -> bool {
    capabilities.and_then(|capabilities| capabilities.get("extensions")?.get(ID)).is_some()
}

/// A topic of [`SubscriptionFilter::topics`](mcp_sansio::client::SubscriptionFilter::topics): the server sends
/// `notifications/events/list_changed` when its event types have changed. List them again then.
pub const LIST_CHANGED: (&str, &[&str]) = ("eventsListChanged", &[]);

/// The notifications about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamNotification {
    /// `notifications/events/active`.
    Active,
    /// `notifications/events/event`.
    Event,
    /// `notifications/events/heartbeat`.
    Heartbeat,
    /// `notifications/events/error`.
    Error,
    /// `notifications/events/terminated`.
    Terminated,
}

impl StreamNotification {
    /// Returns the kind of a notification of the server, and its request `events/stream`; `None` if it is about no stream.
    #[must_use]
    pub fn of(method: &Text<'_>, params: Option<Raw<'_>>) -> Option<(Self, PendingId)> {
        let id = params?.get("_meta")?.get(meta::SUBSCRIPTION_ID)?.u64()?;
        let kinds = [
            ("notifications/events/active", StreamNotification::Active),
            ("notifications/events/event", StreamNotification::Event),
            ("notifications/events/heartbeat", StreamNotification::Heartbeat),
            ("notifications/events/error", StreamNotification::Error),
            ("notifications/events/terminated", StreamNotification::Terminated),
        ];
        let (_, kind) = kinds.into_iter().find(|(name, _)| method.eq_str(name))?;
        Some((kind, PendingId::from_bits(u32::try_from(id).ok()?)))
    }
}

/// The next step of an [`EventFollower`].
#[derive(Debug)]
#[allow(clippy::exhaustive_enums, reason = "a caller must handle each step")]
pub enum EventStep<'f> {
    /// Send this request, then call [`answered`](EventFollower::answered), [`refused`](EventFollower::refused) or
    /// [`lost`](EventFollower::lost), and [`notified`](EventFollower::notified) for each notification about it.
    Send(Request<'f>),
    /// Cancel the request that is under way: its stream is silent.
    Cancel,
    /// Wait until this time, or until something comes for the request that is under way.
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
    /// The server could not get an occurrence (`notifications/events/error`), and goes on.
    Failed(EventError),
}

/// An error that the server reports on a stream. The text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventError {
    /// `code`; 0 if the server sent none.
    pub code: i32,
    /// `message`; empty if the server sent none.
    pub message: String,
    /// `data`.
    pub data: Option<OwnedRaw>,
}

impl EventError {
    pub(super) fn of(error: Option<Raw<'_>>) -> Self {
        let member = |name| error.and_then(|error| error.get(name));
        EventError {
            code: member("code").and_then(|code| code.i64()).and_then(|code| code.try_into().ok()).unwrap_or(0),
            message: member("message")
                .and_then(|message| message.text())
                .map(|text| text.to_string())
                .unwrap_or_default(),
            data: member("data").map(OwnedRaw::new),
        }
    }
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
    pub(super) fn of(raw: Raw<'_>) -> Option<Self> {
        let text = |name| Some(raw.get(name)?.text()?.to_string());
        let data = raw.get("data").filter(|data| data.kind() == JsonKind::Object)?;
        let (event_id, name, timestamp) = (text("eventId")?, text("name")?, text("timestamp")?);
        Some(Occurrence { event_id, name, timestamp, data: OwnedRaw::new(data) })
    }
}

/// Follows one subscription: an event type with arguments.
#[derive(Debug)]
#[must_use]
pub struct EventFollower {
    pub(super) name: String,
    arguments: Option<OwnedRaw>,
    max_age: Option<Millis>,
    floor: Millis,
    cursor: Option<String>,
    /// The cursor after the events that are not taken yet.
    next_cursor: Option<String>,
    /// It asks for a stream. Else it polls.
    streams: bool,
    /// The time of the next request, or the end of the time for a sign of life.
    due: Millis,
    under_way: bool,
    /// The stream that is under way is confirmed.
    is_active: bool,
    token: Option<PendingId>,
    failures: u8,
    seed: u64,
    params: Vec<u8>,
    known: VecDeque<String>,
    /// With the cursor that counts once the event is taken, if it moves.
    pub(super) events: VecDeque<(FollowedEvent, Option<Option<String>>)>,
}

impl EventFollower {
    /// Follows the event type with this name, from now on.
    pub fn new(name: impl Into<String>) -> Self {
        EventFollower {
            name: name.into(),
            arguments: None,
            max_age: None,
            floor: 1_000,
            cursor: None,
            next_cursor: None,
            streams: true,
            due: 0,
            under_way: false,
            is_active: false,
            token: None,
            failures: 0,
            seed: 0,
            params: Vec::new(),
            known: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Sets the [cursor](EventFollower::cursor) from which it goes on; `None` or an empty text: from now on. Default: `None`.
    pub fn cursor_from(self, cursor: Option<String>) -> Self {
        let cursor = cursor.filter(|cursor| !cursor.is_empty());
        EventFollower { next_cursor: cursor.clone(), cursor, ..self }
    }

    mcp_sansio::setters! {
        /// Sets the arguments, a JSON object. Default: none.
        arguments(arguments: Raw<'_>) => arguments = Some(OwnedRaw::new(arguments));
        /// Sets `maxAgeMs`: older occurrences, in milliseconds, are left out. Default: none are.
        #[doc(alias = "maxAgeMs")]
        max_age(millis: Millis) => max_age = Some(millis);
        /// Polls, also if the server has streams: for a client that must not keep a connection open.
        poll_only() => streams = false;
        /// Sets the shortest time between two polls, in milliseconds. Default: 1000.
        poll_floor(millis: Millis) => floor = millis;
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
        let (event, cursor) = self.events.pop_front()?;
        if let Some(cursor) = cursor {
            self.cursor = cursor;
        }
        Some(event)
    }

    /// Returns the method of its requests: `events/stream`, or `events/poll`.
    #[must_use]
    pub const fn method_name(&self) -> &'static str {
        if self.streams { "events/stream" } else { "events/poll" }
    }

    /// Returns whether a request is under way. If not, one that the driver still has is to be cancelled.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Returns whether a poll, or the confirmation of a stream, has no answer yet.
    #[must_use]
    pub const fn awaits_answer(&self) -> bool {
        self.under_way && !self.is_active
    }

    /// Returns the place of a driver for the id of the request that is under way.
    pub const fn token(&mut self) -> &mut Option<PendingId> {
        &mut self.token
    }

    /// Sets the seed that [spreads](jittered) the pauses after failures: that of the client.
    pub const fn set_jitter_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Millis) -> EventStep<'_> {
        if self.under_way {
            if !self.streams {
                // The client keeps the time of a poll.
                self.due = self.due.max(now.saturating_add(1));
            } else if now >= self.due {
                self.cut_off(now);
                return EventStep::Cancel;
            }
        }
        if now < self.due {
            return EventStep::Wait(self.due);
        }
        let params = to_vec(|out| {
            let mut params = Object::open(out);
            self.write_subscription(&mut params);
            self.write_position(&mut params);
            params.close()
        });
        // Memory for any JSON is there.
        self.params = params.unwrap_or_default();
        (self.under_way, self.is_active) = (true, false);
        self.due = now.saturating_add(REQUEST_TIME);
        let request = Request::raw(self.method_name(), Raw::parse(&self.params).ok());
        EventStep::Send(if self.streams { request.no_timeout() } else { request.timeout(REQUEST_TIME) })
    }

    /// Takes the result of the request. That of a stream says that the server has ended it: it is opened again.
    ///
    /// # Errors
    /// [`ViewError`] if it is no result of `events/poll`; the request is sent again later.
    pub fn answered(&mut self, result: Raw<'_>, now: Millis) -> Result<(), ViewError> {
        if self.streams {
            self.cut_off(now);
            return Ok(());
        }
        let Some(events) = result.get("events").filter(|events| events.kind() == JsonKind::Array) else {
            self.lost(now);
            return Err(ViewError::Missing("events"));
        };
        (self.under_way, self.failures) = (false, 0);
        let is_true = |name| result.get(name).and_then(|member| member.bool()) == Some(true);
        let cursor = cursor_of(result);
        // A server that has more and does not move would be asked without end.
        let has_more = is_true("hasMore") && cursor.is_some() && cursor != self.next_cursor;
        self.gap(result);
        for occurrence in events.items() {
            self.occurred(occurrence);
        }
        self.moved(cursor);
        let pause = result.get("nextPollMs").and_then(|pause| pause.u64()).unwrap_or(0);
        let pause = if has_more { 0 } else { pause.min(LONGEST).max(self.floor) };
        self.due = now.saturating_add(pause);
        Ok(())
    }

    /// Takes a notification about the stream that is under way.
    ///
    /// # Errors
    /// `notifications/events/terminated`: the server has ended the subscription. Its request may be cancelled. After -32023 and
    /// -32026 the event type may have changed: list the types again.
    pub fn notified(&mut self, kind: StreamNotification, params: Raw<'_>, now: Millis) -> Result<(), EventError> {
        if !self.under_way {
            return Ok(());
        }
        self.due = now.saturating_add(SILENCE);
        // A stream that is confirmed and breaks, again and again, is not given up, but its pauses grow.
        let failures = if self.is_active { 0 } else { self.failures.min(FAILURES - 2) };
        self.is_active = true;
        match kind {
            StreamNotification::Active => {
                self.failures = failures;
                self.gap(params);
                self.moved(cursor_of(params));
            }
            StreamNotification::Event => {
                self.failures = 0;
                self.occurred(params);
                self.moved(cursor_of(params));
            }
            StreamNotification::Heartbeat => {
                self.failures = 0;
                if let cursor @ Some(_) = cursor_of(params) {
                    self.moved(cursor);
                }
            }
            StreamNotification::Error => {
                self.events.push_back((FollowedEvent::Failed(EventError::of(params.get("error"))), None));
            }
            StreamNotification::Terminated => {
                self.lost(now);
                return Err(EventError::of(params.get("error")));
            }
        }
        Ok(())
    }

    /// Writes the event type and the arguments.
    pub(super) fn write_subscription(&self, params: &mut Object<'_, '_>) {
        params.text("name", &self.name);
        params.raw_if("arguments", self.arguments.as_ref().map(OwnedRaw::raw));
    }

    /// Writes where it goes on.
    pub(super) fn write_position(&self, params: &mut Object<'_, '_>) {
        match &self.next_cursor {
            Some(cursor) => params.text("cursor", cursor),
            None => params.fixed("cursor", "null"),
        }
        if let Some(age) = self.max_age {
            params.number("maxAgeMs", age);
        }
    }

    /// Forgets an occurrence that the program could not keep: it is no duplicate when it comes again.
    pub fn forget(&mut self, event_id: &str) {
        self.known.retain(|known| known != event_id);
    }

    /// Notes a gap if there is one. Without cursors there is no position that could have been passed over.
    pub(super) fn gap(&mut self, message: Raw<'_>) {
        let is_truncated = message.get("truncated").and_then(|truncated| truncated.bool()) == Some(true);
        if is_truncated && cursor_of(message).is_some() {
            self.events.push_back((FollowedEvent::Gap, None));
        }
    }

    /// Takes an occurrence. Returns `false` if it is malformed or known.
    pub(super) fn occurred(&mut self, occurrence: Raw<'_>) -> bool {
        let new = Occurrence::of(occurrence).filter(|occurrence| self.is_new(&occurrence.event_id));
        let is_new = new.is_some();
        self.events.extend(new.map(|occurrence| (FollowedEvent::Occurred(occurrence), None)));
        is_new
    }

    /// Notes an id. Returns `false` if it is known.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        if id.len() > LONGEST_ID {
            return true;
        }
        if self.known.iter().any(|known| known == id) {
            return false;
        }
        if self.known.len() == KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(id.to_string());
        true
    }

    /// Moves the cursor, once the events so far are taken.
    pub(super) fn moved(&mut self, cursor: Option<String>) {
        match self.events.back_mut() {
            Some((_, moved)) => *moved = Some(cursor.clone()),
            None => self.cursor = cursor.clone(),
        }
        self.next_cursor = cursor;
    }

    /// Notes that a stream has ended. One that was never confirmed may be held back on its way: it polls from now on.
    fn cut_off(&mut self, now: Millis) {
        let was_active = self.is_active;
        self.lost(now);
        if !was_active {
            (self.streams, self.due) = (false, now);
        }
    }

    /// Takes an error that the server answered the request with. Returns `false` if it is the end: the event type does not exist
    /// (-32023), is forbidden (-32024), or the like. The event type may have changed: list the types again. Another error, such as
    /// -32603, may pass, and counts as [lost](EventFollower::lost). A server without streams, or without room for one more, is polled.
    pub fn refused(&mut self, code: i32, now: Millis) -> bool {
        let is_of_stream = matches!(code, code::METHOD_NOT_FOUND | -32025 | -32026);
        if core::mem::take(&mut self.under_way) && self.streams && is_of_stream {
            (self.streams, self.due) = (false, now);
            return true;
        }
        let is_final = matches!(
            code,
            code::INVALID_REQUEST | code::METHOD_NOT_FOUND | code::INVALID_PARAMS | -32023 | -32024 | -32026
        );
        self.lost(now) && !is_final
    }

    /// Notes that the request has no answer, or that its stream is cut off: it is sent again, later each time. Returns `false` if five
    /// in a row had none: the caller gives up, or calls [`next`](EventFollower::next) for one more.
    pub fn lost(&mut self, now: Millis) -> bool {
        (self.under_way, self.is_active) = (false, false);
        self.failures = self.failures.saturating_add(1);
        let pause = self.floor.max(1).saturating_mul(1 << self.failures.min(6));
        self.due = now.saturating_add(jittered(pause.min(LONGEST), self.seed, now));
        self.failures < FAILURES
    }
}

/// Returns `cursor`. An absent one is as `null`.
pub(super) fn cursor_of(message: Raw<'_>) -> Option<String> {
    Some(message.get("cursor")?.text()?.to_string())
}
