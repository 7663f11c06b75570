//! The methods of the extension.

use core::marker::PhantomData;

use mcp_sansio::FullError;
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{JsonKind, Object, Raw};
use mcp_sansio::service::{CustomRequest, Extension, ExtensionMethod, HandlerResult};

use crate::date::iso_8601;
use crate::events::event_type::{EventSubscription, EventType, FORBIDDEN, NOT_FOUND};
use crate::events::ring::{Events, HasEvents, ID, Stored};
use crate::events::streams::StreamSlot;

/// The most occurrences in the result of a poll.
const BATCH: usize = 100;

const NO_PUSH: RpcError<'static> = unsupported(r#"{"feature":"deliveryMode","value":"push"}"#);
const NO_WEBHOOK: RpcError<'static> = unsupported(r#"{"feature":"deliveryMode","value":"webhook"}"#);
const NO_SUBSCRIPTION: RpcError<'static> =
    RpcError::new(-32023, "NotFound").with_data(Raw::constant(r#"{"kind":"subscription"}"#));

const fn unsupported(data: &'static str) -> RpcError<'static> {
    RpcError::new(-32026, "Unsupported").with_data(Raw::constant(data))
}

/// Returns the extension: `events/list` and `events/poll`, and with [`STREAMS`](HasEvents::STREAMS) `events/stream`. `events/subscribe`
/// and `events/unsubscribe` answer with the errors of a server without webhooks.
pub const fn extension<S: HasEvents>() -> Extension<S> {
    Extension::new(ID).methods(Tables::<S>::METHODS)
}

/// The constant tables, one set for each type of state.
struct Tables<S>(PhantomData<S>);

impl<S: HasEvents> Tables<S> {
    // The handlers run once: the reply must fit into the empty sink. Clients need not declare the extension.
    const METHODS: &'static [ExtensionMethod<S>] = &[
        ExtensionMethod::new("events/list", list).open().reserve(usize::MAX),
        ExtensionMethod::new("events/poll", poll).open().reserve(usize::MAX),
        ExtensionMethod::new("events/stream", if S::STREAMS { stream } else { no_stream }).open().reserve(usize::MAX),
        ExtensionMethod::new("events/subscribe", |state, request| webhook(state, request, NO_WEBHOOK)).open(),
        ExtensionMethod::new("events/unsubscribe", |state, request| webhook(state, request, NO_SUBSCRIPTION)).open(),
    ];
}

/// `events/list`. A cursor is the number of an event type.
fn list<S: HasEvents>(_: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let cursor = request.params().and_then(|params| params.get("cursor"));
    let place = |cursor: Raw<'_>| cursor.text()?.plain()?.parse().ok().filter(|from| *from < S::EVENTS.len());
    let from = match cursor.map(place) {
        Some(None) => return Err(RpcError::invalid_params("Invalid params: there is no such cursor").into()),
        from => from.flatten().unwrap_or(0),
    };
    let mut most = S::EVENTS.len();
    loop {
        let listed = request.result_as("complete", &mut |result| write_page::<S>(from, most, result));
        // A smaller page may fit.
        if listed.is_ok() || most <= 1 {
            return listed;
        }
        most /= 2;
    }
}

fn write_page<S: HasEvents>(from: usize, most: usize, result: &mut Object<'_, '_>) {
    let out = result.key("events");
    out.put(b"[");
    for (number, event) in S::EVENTS.iter().skip(from).take(most).enumerate() {
        out.put(if number == 0 { b"" } else { b"," });
        let mut entry = Object::open(out);
        entry.text("name", event.name);
        entry.text("description", event.description);
        entry.fixed("delivery", if S::STREAMS { r#"["push","poll"]"# } else { r#"["poll"]"# });
        entry.fixed("inputSchema", event.input);
        entry.fixed("payloadSchema", event.payload);
        entry.raw_if("_meta", event.meta);
        entry.close();
    }
    out.put(b"]");
    if from + most < S::EVENTS.len() {
        result.shown("nextCursor", &(from + most));
    }
}

/// The subscription of a request, and what it may hear.
struct Hearing<'h, S: HasEvents> {
    state: &'h S,
    event: &'static EventType<S>,
    number: u32,
    subscription: EventSubscription<'h>,
    /// The oldest `timestamp` that is delivered, in milliseconds since the beginning of 1970.
    not_before: u64,
}

impl<'h, S: HasEvents> Hearing<'h, S> {
    /// Reads the subscription, and where it begins: the position, and whether it is later than its cursor.
    fn of<'r: 'h>(state: &'h S, request: &CustomRequest<'r>) -> Result<(Self, u64, bool), RpcError<'static>> {
        let member = |name| request.params().and_then(|params| params.get(name));
        let (event, number) = named::<S>(request)?;
        let arguments = member("arguments").unwrap_or(Raw::constant("{}"));
        if arguments.kind() != JsonKind::Object {
            return Err(RpcError::invalid_params("Invalid params: arguments is not an object"));
        }
        let subscription = EventSubscription { arguments, principal: request.principal() };
        (event.check)(state, &subscription)?;
        let (position, mut truncated) = state.events().position(member("cursor"))?;
        let not_before = match member("maxAgeMs").map(|age| age.u64()) {
            Some(None) => {
                return Err(RpcError::invalid_params("Invalid params: maxAgeMs is not a number of milliseconds"));
            }
            Some(Some(age)) => state.events().unix_millis(request.now()).saturating_sub(age),
            None => 0,
        };
        let hearing = Hearing { state, event, number, subscription, not_before };
        truncated |= hearing.matching(position).any(|stored| stored.timestamp < not_before);
        Ok((hearing, position, truncated))
    }

    fn matching(&self, from: u64) -> impl Iterator<Item = Stored<'_>> {
        let stored = self.state.events().stored(self.number, from);
        stored.filter(|stored| (self.event.matches)(self.state, &self.subscription, stored.data))
    }

    /// Returns the occurrences that the subscription gets, from a position on.
    fn heard(&self, from: u64) -> impl Iterator<Item = Stored<'_>> {
        self.matching(from).filter(|stored| stored.timestamp >= self.not_before)
    }

    fn write_occurrence(&self, stored: &Stored<'_>, occurrence: &mut Object<'_, '_>) {
        let own = self.state.events().cursor(stored.position);
        occurrence.text("eventId", if stored.id.is_empty() { own.as_str() } else { stored.id });
        occurrence.text("name", self.event.name);
        occurrence.text("timestamp", iso_8601(stored.timestamp).as_str());
        let mut data = Object::open(occurrence.key("data"));
        (self.event.transform)(self.state, &self.subscription, stored.data, &mut data);
        data.close()
    }

    /// Writes the result of a poll with up to `most` occurrences.
    fn write_batch(&self, from: u64, most: usize, truncated: bool, result: &mut Object<'_, '_>) {
        let events = self.state.events();
        let (mut heard, mut position) = (self.heard(from), from);
        let out = result.key("events");
        out.put(b"[");
        for (number, stored) in heard.by_ref().take(most).enumerate() {
            out.put(if number == 0 { b"" } else { b"," });
            let mut occurrence = Object::open(out);
            self.write_occurrence(&stored, &mut occurrence);
            occurrence.close();
            position = stored.position + 1;
        }
        out.put(b"]");
        let has_more = heard.next().is_some();
        result.text("cursor", events.cursor(if has_more { position } else { events.end() }).as_str());
        result.boolean("truncated", truncated);
        result.boolean("hasMore", has_more);
        result.number("nextPollMs", events.poll_interval());
    }
}

impl<S: HasEvents> Hearing<'_, S> {
    /// Sends what a stream has not sent yet, and a heartbeat if there was nothing for long.
    ///
    /// # Errors
    /// [`FullError::Now`]: there is more, when there is room.
    fn tell(&self, stream: &mut StreamSlot, request: &mut CustomRequest<'_>) -> Result<(), FullError> {
        let (events, now) = (self.state.events(), request.now());
        let beat = now.saturating_add(events.heartbeat());
        if stream.beat == 0 {
            // `notifications/events/active` was the first sign of life.
            stream.beat = beat;
        }
        if stream.position < events.oldest() {
            active(events, request, events.oldest(), true)?;
            stream.position = events.oldest();
        }
        for stored in self.heard(stream.position) {
            let after = stored.position + 1;
            let sent = request.notify("notifications/events/event", &mut |params| {
                self.write_occurrence(&stored, params);
                params.text("cursor", events.cursor(after).as_str());
            });
            match sent {
                // One that never fits is skipped.
                Err(FullError::Never) => active(events, request, after, true)?,
                sent => sent?,
            }
            (stream.position, stream.beat) = (after, beat);
        }
        // What comes from now on is new, whatever its source says about its time.
        (stream.position, stream.not_before) = (events.end(), 0);
        if now >= stream.beat {
            request.notify("notifications/events/heartbeat", &mut |params| {
                params.text("cursor", events.cursor(events.end()).as_str());
            })?;
            stream.beat = beat;
        }
        Ok(())
    }
}

/// Returns the event type that a request names, and its number.
fn named<S: HasEvents>(request: &CustomRequest<'_>) -> Result<(&'static EventType<S>, u32), RpcError<'static>> {
    let name = request.params().and_then(|params| params.get("name")?.text());
    let name = name.ok_or(RpcError::invalid_params("Invalid params: name is missing"))?;
    S::EVENTS.iter().zip(0..).find(|(event, _)| name.eq_str(event.name)).ok_or(NOT_FOUND)
}

fn poll<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let (hearing, mut from, mut truncated) = Hearing::of(&*state, request)?;
    let mut count = match request.params().and_then(|params| params.get("maxEvents")).map(|most| most.u64()) {
        Some(None | Some(0)) => {
            return Err(RpcError::invalid_params("Invalid params: maxEvents is not a positive number").into());
        }
        most => most.flatten().map_or(BATCH, |most| usize::try_from(most).unwrap_or(BATCH).min(BATCH)),
    };
    loop {
        let polled = request.result_as("complete", &mut |result| hearing.write_batch(from, count, truncated, result));
        if polled.is_ok() || count == 0 {
            return polled;
        }
        // Fewer may fit.
        count /= 2;
        if count == 0 {
            // One that never fits is skipped: the client would ask for it again and again.
            let Some(skipped) = hearing.heard(from).next() else { return polled };
            (from, truncated) = (skipped.position + 1, true);
        }
    }
}

fn no_stream<S: HasEvents>(_: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    named::<S>(request)?;
    Err(NO_PUSH.into())
}

/// `events/stream`: opens a stream, which [`deliver`] goes on with.
fn stream<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let (hearing, position, truncated) = Hearing::of(&*state, request)?;
    let slot = StreamSlot::new(request.token(), hearing.number, position, hearing.not_before);
    let arguments = request.params().and_then(|params| params.get("arguments")).unwrap_or(Raw::constant("{}"));
    let events = state.events_mut();
    events.streams.open(slot, arguments, request.principal())?;
    let done = active(events, request, position, truncated).map_err(Into::into).and_then(|()| request.later().1);
    if done.is_err() {
        events.end_stream(request.token());
    }
    done
}

/// Confirms a stream, or reports a gap.
fn active(
    events: &Events<'_>,
    request: &mut CustomRequest<'_>,
    position: u64,
    truncated: bool,
) -> Result<(), FullError> {
    request.notify("notifications/events/active", &mut |params| {
        params.text("cursor", events.cursor(position).as_str());
        params.boolean("truncated", truncated);
    })
}

/// Sends the notifications of a stream that are due, and puts the answer off again: for the method `answer` of a connection, with the
/// token of [`Events::next_stream`]. A stream that [`EventType::check`] refuses now is ended with `notifications/events/terminated`.
///
/// # Errors
/// The handler has answered already, or the last message does not fit.
pub fn deliver<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let token = request.token();
    let Some((mut stream, arguments, principal)) = state.events().streams.find(token) else {
        return request.end_notifications();
    };
    let Some(event) = S::EVENTS.get(stream.event as usize) else { return request.end_notifications() };
    let subscription = EventSubscription { arguments, principal };
    let hearing = Hearing { state: &*state, event, number: stream.event, subscription, not_before: stream.not_before };
    let told = match (event.check)(state, &hearing.subscription) {
        Ok(()) => hearing.tell(&mut stream, request),
        Err(refusal) => {
            let terminated =
                request.notify("notifications/events/terminated", &mut |params| refusal.write(params.key("error")));
            if terminated != Err(FullError::Now) {
                state.events_mut().end_stream(token);
                return request.end_notifications();
            }
            terminated
        }
    };
    state.events_mut().streams.delivered(&stream, told.is_err());
    request.later().1
}

/// Answers the methods of webhooks, which need an authenticated user.
fn webhook<S: HasEvents>(_: &mut S, request: &mut CustomRequest<'_>, otherwise: RpcError<'static>) -> HandlerResult {
    if request.principal().is_none() {
        return Err(FORBIDDEN.into());
    }
    named::<S>(request)?;
    Err(otherwise.into())
}
