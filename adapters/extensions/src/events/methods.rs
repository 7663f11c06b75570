//! The methods of the extension.

use core::marker::PhantomData;

use mcp_sansio::FullError;
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{JsonKind, Object, Raw};
use mcp_sansio::server::{Millis, RequestToken, RespondError};
use mcp_sansio::service::{CustomRequest, Extension, ExtensionMethod, HandlerResult, Topic};
use mcp_sansio::sink::Writer;

use crate::events::event_type::{EventType, FORBIDDEN, NOT_FOUND};
use crate::events::leases::{end_lapsed, hold, unsubscribe};
use crate::events::ring::{HasEvents, ID, WebhookMethods, ring};
use crate::events::source::{Cursor, EventSubscription, NO_ARGUMENTS, Occurrences, Step, cursor_of};
use crate::events::streams::StreamSlot;
use crate::shared::Pages;

/// The most occurrences in the result of a poll.
const BATCH: usize = 100;

const NO_PUSH: RpcError<'static> = unsupported(r#"{"feature":"deliveryMode","value":"push"}"#);
const NO_WEBHOOK: RpcError<'static> = unsupported(r#"{"feature":"deliveryMode","value":"webhook"}"#);
pub(crate) const NO_SUBSCRIPTION: RpcError<'static> =
    RpcError::new(-32023, "NotFound").with_data(Raw::constant(r#"{"kind":"subscription"}"#));

const fn unsupported(data: &'static str) -> RpcError<'static> {
    RpcError::new(-32026, "Unsupported").with_data(Raw::constant(data))
}

/// Returns the extension: `events/list` and `events/poll`, and with [`STREAMS`](HasEvents::STREAMS) `events/stream`. `events/subscribe`
/// and `events/unsubscribe` answer with the errors of a server without webhooks, unless there are [`WEBHOOKS`](HasEvents::WEBHOOKS).
pub const fn extension<S: HasEvents>() -> Extension<S> {
    let extension = Extension::new(ID).methods(Tables::<S>::METHODS);
    if S::LIST_CHANGED {
        return extension.settings(Raw::constant(r#"{"listChanged":true}"#)).topics(Tables::<S>::TOPICS);
    }
    extension
}

/// The constant tables, one set for each type of state.
struct Tables<S>(PhantomData<S>);

impl<S: HasEvents> Tables<S> {
    const TOPICS: &'static [Topic<S>] =
        &[Topic::new("eventsListChanged", "notifications/events/list_changed", |_, _, _| {}).open()];

    // The handlers run once: the reply must fit into the empty sink. Clients need not declare the extension.
    const METHODS: &'static [ExtensionMethod<S>] = &[
        ExtensionMethod::new("events/list", list).open().reserve(usize::MAX),
        ExtensionMethod::new("events/poll", poll).open().reserve(usize::MAX),
        ExtensionMethod::new("events/stream", if S::STREAMS { stream } else { no_stream }).open().reserve(usize::MAX),
        ExtensionMethod::new("events/subscribe", Self::WEBHOOKS[0]).open().reserve(usize::MAX),
        ExtensionMethod::new("events/unsubscribe", Self::WEBHOOKS[1]).open(),
    ];

    const WEBHOOKS: WebhookMethods<S> = match S::WEBHOOKS {
        Some(methods) => methods,
        None => [
            |state, request| webhook(state, request, NO_WEBHOOK),
            |state, request| webhook(state, request, NO_SUBSCRIPTION),
        ],
    };

    const DELIVERY: &'static str = match (S::STREAMS, S::WEBHOOKS.is_some()) {
        (false, false) => r#"["poll"]"#,
        (true, false) => r#"["push","poll"]"#,
        (false, true) => r#"["webhook","poll"]"#,
        (true, true) => r#"["webhook","push","poll"]"#,
    };
}

/// `events/list`
fn list<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let is_item = |number: usize| S::EVENTS.get(number).is_some_and(|event| event.is_offered(state));
    let write = |number: usize, out: &mut Writer<'_>| {
        let Some(event) = S::EVENTS.get(number) else { return };
        let mut entry = Object::open(out);
        entry.text("name", event.name);
        entry.text("description", event.description);
        entry.fixed("delivery", Tables::<S>::DELIVERY);
        entry.fixed("inputSchema", event.input);
        entry.fixed("payloadSchema", event.payload);
        entry.raw_if("_meta", event.meta);
        entry.close();
    };
    let (places, most) = (S::EVENTS.len(), usize::MAX);
    Pages { member: "events", places, most, is_item: &is_item, write: &write }.answer(request)
}

/// Returns the event type that a request names, and its number.
fn named<S: HasEvents>(
    state: &S,
    request: &CustomRequest<'_>,
) -> Result<(&'static EventType<S>, u32), RpcError<'static>> {
    let name = request.params().and_then(|params| params.get("name")?.text());
    let name = name.ok_or(RpcError::invalid_params("Invalid params: name is missing"))?;
    let is_it = |(event, _): &(&EventType<S>, u32)| name.eq_str(event.name) && event.is_offered(state);
    S::EVENTS.iter().zip(0..).find(is_it).ok_or(NOT_FOUND)
}

/// The subscription of a request, and its beginning.
pub(crate) struct Wanted<'r, S: HasEvents> {
    pub(crate) event: &'static EventType<S>,
    pub(crate) number: u32,
    pub(crate) subscription: EventSubscription<'r>,
    cursor: Option<Cursor>,
    /// The oldest `timestamp` that is delivered, in milliseconds since the beginning of 1970.
    pub(crate) not_before: u64,
}

impl<'r, S: HasEvents> Wanted<'r, S> {
    /// Returns the event type of a request, its number, and the subscription, which is not checked yet.
    pub(crate) fn named(
        state: &S,
        request: &CustomRequest<'r>,
    ) -> Result<(&'static EventType<S>, u32, EventSubscription<'r>), RpcError<'static>> {
        let (event, number) = named(state, request)?;
        let arguments = request.params().and_then(|params| params.get("arguments")).unwrap_or(NO_ARGUMENTS);
        if arguments.kind() != JsonKind::Object {
            return Err(RpcError::invalid_params("Invalid params: arguments is not an object"));
        }
        Ok((event, number, EventSubscription { arguments, principal: request.principal() }))
    }

    pub(crate) fn of(state: &S, request: &CustomRequest<'r>) -> Result<Self, RpcError<'static>> {
        let member = |name| request.params().and_then(|params| params.get(name));
        let (event, number, subscription) = Self::named(state, request)?;
        event.admit(state, &subscription)?;
        let cursor = match member("cursor").filter(|cursor| cursor.kind() != JsonKind::Null) {
            // No ring makes one with escapes, and no source should.
            Some(cursor) => match cursor.text() {
                Some(text) => Some(cursor_of(text.plain().unwrap_or_default())),
                None => return Err(RpcError::invalid_params("Invalid params: cursor is not a string")),
            },
            None => None,
        };
        let not_before = match member("maxAgeMs").map(|age| age.u64()) {
            Some(None) => {
                return Err(RpcError::invalid_params("Invalid params: maxAgeMs is not a number of milliseconds"));
            }
            // Without a cursor it begins now, also if a source gives older times.
            Some(Some(age)) if cursor.is_some() => state.events().unix_millis(request.now()).saturating_sub(age),
            _ => 0,
        };
        Ok(Wanted { event, number, subscription, cursor, not_before })
    }

    fn read(&self, state: &S, take: &mut dyn FnMut(Step<'_>) -> bool) -> Result<(Cursor, bool), RpcError<'static>> {
        let mut found = Occurrences::new(self.number, self.cursor, self.not_before, take);
        self.event.source.unwrap_or(ring::<S>)(state, &self.subscription, &mut found)?;
        Ok((found.position, found.truncated))
    }

    /// Looks where a subscription that stays begins, and whether that is later than its cursor.
    pub(crate) fn begin(&self, state: &S) -> Result<(Cursor, bool), RpcError<'static>> {
        let mut first = None;
        let (end, truncated) = self.read(state, &mut |step| {
            if let Step::Gap(cursor) = step {
                first.get_or_insert(cursor_of(cursor));
            }
            true
        })?;
        Ok((first.or(self.cursor).unwrap_or(end), truncated))
    }

    /// Writes the result of a poll with up to `most` occurrences, after as many as are to be skipped.
    fn write_batch(
        &self,
        state: &S,
        most: usize,
        mut skip: usize,
        result: &mut Object<'_, '_>,
    ) -> Result<(), RpcError<'static>> {
        let out = result.key("events");
        out.put(b"[");
        let (mut count, mut has_more, skips) = (0, false, skip > 0);
        let (cursor, truncated) = self.read(state, &mut |step| {
            let Step::Occurrence(mut found) = step else { return true };
            if skip > 0 {
                skip -= 1;
                return true;
            }
            has_more = count == most;
            if !has_more {
                out.put(if count == 0 { b"" } else { b"," });
                let mut occurrence = Object::open(out);
                found.write(self.event.name, &mut occurrence);
                occurrence.close();
                count += 1;
            }
            !has_more
        })?;
        out.put(b"]");
        write_cursor(result, &cursor);
        result.boolean("truncated", truncated || skips);
        result.boolean("hasMore", has_more);
        result.number("nextPollMs", state.events().poll_interval());
        Ok(())
    }
}

/// Writes a cursor. A source without cursors has an empty one, and an absent one is as `null`.
pub(crate) fn write_cursor(members: &mut Object<'_, '_>, cursor: &Cursor) {
    if !cursor.as_str().is_empty() {
        members.text("cursor", cursor.as_str());
    }
}

fn poll<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let wanted = Wanted::of(&*state, request)?;
    let mut most = match request.params().and_then(|params| params.get("maxEvents")).map(|most| most.u64()) {
        Some(None | Some(0)) => {
            return Err(RpcError::invalid_params("Invalid params: maxEvents is not a positive number").into());
        }
        most => most.flatten().map_or(BATCH, |most| usize::try_from(most).unwrap_or(BATCH).min(BATCH)),
    };
    if S::LEASES && wanted.event.hooks.is_some() {
        hold(state, wanted.number, &wanted.subscription, request.now())?;
    }
    loop {
        let mut failure = None;
        let polled = request.result_as("complete", &mut |result| {
            // One that never fits is skipped: the client would ask for it again and again.
            if let Err(why) = wanted.write_batch(state, most, usize::from(most == 0), result) {
                failure = Some(why);
                result.fail();
            }
        });
        match failure {
            Some(why) => return Err(why.into()),
            // Fewer may fit.
            None if polled.is_err() && most > 0 => most /= 2,
            None => return polled,
        }
    }
}

fn no_stream<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    named(&*state, request)?;
    Err(NO_PUSH.into())
}

/// `events/stream`: opens a stream, which [`deliver`] goes on with.
fn stream<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let wanted = Wanted::of(&*state, request)?;
    let (cursor, truncated) = wanted.begin(&*state)?;
    let slot = StreamSlot::new(request.token(), wanted.number, cursor, wanted.not_before);
    state.events_mut().streams.open(slot, &wanted.subscription)?;
    if let Some((begin, _)) = wanted.event.hooks {
        begin(state, &wanted.subscription);
    }
    let done = active(request, &cursor, truncated).map_err(Into::into).and_then(|()| request.later().1);
    if done.is_err() {
        end_stream(state, request.token());
    }
    done
}

/// Confirms a stream, or reports a gap.
fn active(request: &mut CustomRequest<'_>, cursor: &Cursor, truncated: bool) -> Result<(), FullError> {
    request.notify("notifications/events/active", &mut |params| {
        write_cursor(params, cursor);
        params.boolean("truncated", truncated);
    })
}

/// Forgets a stream whose request is over: call it from [`Service::on_cancel`](mcp_sansio::service::Service::on_cancel). Any other token
/// does nothing.
pub fn end_stream<S: HasEvents>(state: &mut S, token: RequestToken) {
    if let Some((at, event)) = state.events_mut().streams.close(token) {
        unsubscribe(state, event, at, |events| &mut events.streams);
    }
}

/// Does what is due: has the streams answered that have something to send or need a heartbeat, and ends the leases that have lapsed. Call
/// it after each turn of a loop, and at the time that it returns. `answer` answers a request with [`deliver`], by the method `answer` of
/// its connection.
pub fn turn<S: HasEvents>(
    state: &mut S,
    now: Millis,
    mut answer: impl FnMut(&mut S, RequestToken) -> Result<(), RespondError>,
) -> Option<Millis> {
    let lapse = if S::LEASES { end_lapsed(state, now) } else { None };
    state.events_mut().now = now;
    let next = loop {
        match state.events_mut().streams.next(now) {
            // The request is over.
            Ok(token) if answer(state, token) == Err(RespondError::Stale) => end_stream(state, token),
            Ok(_) => {}
            Err(next) => break next,
        }
    };
    next.into_iter().chain(lapse).min()
}

/// Sends the notifications of a stream that are due, and puts the answer off again: for the method `answer` of a connection, with the
/// token that [`turn`] gives. A stream that may not go on is ended with `notifications/events/terminated`: because
/// [`EventType::check`] refuses it now, or its event type is gone.
///
/// # Errors
/// The handler has answered already, or the last message does not fit.
pub fn deliver<S: HasEvents>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let token = request.token();
    let Some((mut stream, subscription)) = state.events().streams.find(token) else {
        return request.end_notifications();
    };
    let Some(event) = S::EVENTS.get(stream.event as usize) else { return request.end_notifications() };
    let told = match event.admit(state, &subscription) {
        Ok(()) => {
            let (cursor, not_before) = (Some(stream.cursor), stream.not_before);
            let wanted = Wanted { event, number: stream.event, subscription, cursor, not_before };
            tell(&*state, &wanted, &mut stream, request)
        }
        Err(refusal) => match notify_error(request, "notifications/events/terminated", &refusal) {
            Err(FullError::Now) => Err(FullError::Now),
            _ => {
                end_stream(state, token);
                return request.end_notifications();
            }
        },
    };
    state.events_mut().streams.delivered(&stream, told.is_err());
    request.later().1
}

fn notify_error(request: &mut CustomRequest<'_>, method: &str, error: &RpcError<'_>) -> Result<(), FullError> {
    request.notify(method, &mut |params| error.write(params.key("error")))
}

/// Sends what a stream has not sent yet, and a heartbeat if there was nothing for long.
///
/// # Errors
/// [`FullError::Now`]: there is more, when there is room.
fn tell<S: HasEvents>(
    state: &S,
    wanted: &Wanted<'_, S>,
    stream: &mut StreamSlot,
    request: &mut CustomRequest<'_>,
) -> Result<(), FullError> {
    let events = state.events();
    let now = request.now().max(events.now);
    let beat = now.saturating_add(events.heartbeat());
    if stream.beat == 0 {
        // `notifications/events/active` was the first sign of life.
        stream.beat = beat;
    }
    let mut sent = Ok(());
    let read = wanted.read(state, &mut |step| {
        let (cursor, told) = match step {
            Step::Gap(cursor) => (cursor, active(request, &cursor_of(cursor), true)),
            Step::Occurrence(mut found) => {
                let told = request.notify("notifications/events/event", &mut |params| {
                    found.write(wanted.event.name, params);
                    write_cursor(params, &cursor_of(found.cursor));
                });
                match told {
                    // One that never fits is skipped.
                    Err(FullError::Never) => (found.cursor, active(request, &cursor_of(found.cursor), true)),
                    told => (found.cursor, told),
                }
            }
        };
        sent = told;
        if sent.is_ok() {
            (stream.cursor, stream.beat) = (cursor_of(cursor), beat);
        }
        sent.is_ok()
    });
    sent?;
    if wanted.event.source.is_some() {
        stream.look = now.saturating_add(events.poll_interval());
    }
    match read {
        // What comes from now on is new, whatever its source says about its time.
        Ok((end, _)) => (stream.cursor, stream.not_before) = (end, 0),
        // It is tried again.
        Err(failure) => notify_error(request, "notifications/events/error", &failure)?,
    }
    if now >= stream.beat {
        let cursor = stream.cursor;
        request.notify("notifications/events/heartbeat", &mut |params| write_cursor(params, &cursor))?;
        stream.beat = beat;
    }
    Ok(())
}

/// Answers the methods of webhooks, which need an authenticated user.
fn webhook<S: HasEvents>(
    state: &mut S,
    request: &mut CustomRequest<'_>,
    otherwise: RpcError<'static>,
) -> HandlerResult {
    if request.principal().is_none() {
        return Err(FORBIDDEN.into());
    }
    named(&*state, request)?;
    Err(otherwise.into())
}
