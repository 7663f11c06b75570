//! The methods of the extension.

use core::marker::PhantomData;

use mcp_sansio::error::RpcError;
use mcp_sansio::json::{JsonKind, Object, Raw};
use mcp_sansio::service::{CustomRequest, Extension, ExtensionMethod, HandlerResult};

use crate::date::iso_8601;
use crate::events::event_type::{EventSubscription, EventType, FORBIDDEN, NOT_FOUND};
use crate::events::ring::{HasEvents, ID, Stored};

/// The most occurrences in the result of a poll.
const BATCH: usize = 100;

const NO_PUSH: RpcError<'static> = unsupported(r#"{"feature":"deliveryMode","value":"push"}"#);
const NO_WEBHOOK: RpcError<'static> = unsupported(r#"{"feature":"deliveryMode","value":"webhook"}"#);
const NO_SUBSCRIPTION: RpcError<'static> =
    RpcError::new(-32023, "NotFound").with_data(Raw::constant(r#"{"kind":"subscription"}"#));

const fn unsupported(data: &'static str) -> RpcError<'static> {
    RpcError::new(-32026, "Unsupported").with_data(Raw::constant(data))
}

/// Returns the extension: `events/list` and `events/poll`. `events/stream`, `events/subscribe` and `events/unsubscribe` answer with
/// the errors of a server without these modes of delivery.
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
        ExtensionMethod::new("events/stream", stream).open(),
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
        entry.fixed("delivery", r#"["poll"]"#);
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

/// Returns the event type that a request names, and its number.
fn named<S: HasEvents>(request: &CustomRequest<'_>) -> Result<(&'static EventType<S>, u32), RpcError<'static>> {
    let name = request.params().and_then(|params| params.get("name")?.text());
    let name = name.ok_or(RpcError::invalid_params("Invalid params: name is missing"))?;
    S::EVENTS.iter().zip(0..).find(|(event, _)| name.eq_str(event.name)).ok_or(NOT_FOUND)
}

fn poll<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let (hearing, mut from, mut truncated) = Hearing::of(&*state, request)?;
    let most = match request.params().and_then(|params| params.get("maxEvents")).map(|most| most.u64()) {
        Some(None | Some(0)) => {
            return Err(RpcError::invalid_params("Invalid params: maxEvents is not a positive number").into());
        }
        most => most.flatten().map_or(BATCH, |most| usize::try_from(most).unwrap_or(BATCH).min(BATCH)),
    };
    let mut count = most;
    loop {
        let polled = request.result_as("complete", &mut |result| hearing.write_batch(from, count, truncated, result));
        if polled.is_ok() {
            return polled;
        }
        if count > 1 {
            // Fewer may fit.
            count /= 2;
            continue;
        }
        // One that never fits is skipped: the client would ask for it again and again.
        let Some(skipped) = hearing.heard(from).next() else { return polled };
        (from, truncated, count) = (skipped.position + 1, true, most);
    }
}

fn stream<S: HasEvents>(_: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    named::<S>(request)?;
    Err(NO_PUSH.into())
}

/// Answers the methods of webhooks, which need an authenticated user.
fn webhook<S: HasEvents>(_: &mut S, request: &mut CustomRequest<'_>, otherwise: RpcError<'static>) -> HandlerResult {
    if request.principal().is_none() {
        return Err(FORBIDDEN.into());
    }
    named::<S>(request)?;
    Err(otherwise.into())
}
