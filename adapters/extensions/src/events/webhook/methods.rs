//! `events/subscribe`, `events/unsubscribe`, and the work between them.

use alloc::string::ToString;
use alloc::vec::Vec;

use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::server::{Millis, RequestToken, RespondError};
use mcp_sansio::service::{CustomRequest, HandlerResult, Service};
use mcp_sansio::sink::to_vec;

use crate::events::event_type::{EventType, FORBIDDEN};
use crate::events::methods::{NO_SUBSCRIPTION, Wanted, write_cursor};
use crate::events::ring::{HasEvents, WebhookMethods};
use crate::events::source::{Cursor, EventSubscription, NO_ARGUMENTS, Occurrences, Step, cursor_of};
use crate::events::subscribers::TOO_MANY;
use crate::events::webhook::signature::WebhookSecret;
use crate::events::webhook::table::{DeliveryFailure, Hook, HookState, LONGEST_BODY, Subscribe, Webhooks};
use crate::shared::date::iso_8601;

/// The end of a subscription whose functions have panicked.
const PANICKED: RpcError<'static> = RpcError::internal("The event type has panicked");

/// The state of a program whose events can be delivered by webhook.
pub trait HasWebhooks: HasEvents {
    /// Returns the subscriptions by webhook.
    fn webhooks(&self) -> &Webhooks;

    /// Returns the subscriptions by webhook, to change them.
    fn webhooks_mut(&mut self) -> &mut Webhooks;
}

/// Returns the methods, for the constant [`HasEvents::WEBHOOKS`].
#[must_use]
pub const fn methods<S: HasWebhooks>() -> WebhookMethods<S> {
    [subscribe::<S>, unsubscribe::<S>]
}

const fn invalid(why: &'static str) -> RpcError<'static> {
    RpcError::invalid_params(why)
}

/// Returns the URL of a request.
fn url<'r, S: HasWebhooks>(state: &S, request: &CustomRequest<'r>) -> Result<(Raw<'r>, &'r str), RpcError<'static>> {
    let delivery = request.params().and_then(|params| params.get("delivery"));
    let delivery = delivery.ok_or(invalid("Invalid params: delivery is missing"))?;
    let url = delivery.get("url").and_then(|url| url.text()?.plain()).filter(|url| state.webhooks().accepts(url));
    Ok((delivery, url.ok_or(invalid("Invalid params: delivery.url is not an https URL"))?))
}

/// Returns the time at which a subscription of this request ends.
fn grant(webhooks: &Webhooks, request: &CustomRequest<'_>) -> Result<Millis, RpcError<'static>> {
    let limits = &webhooks.limits;
    let ttl = match request.params().and_then(|params| params.get("ttlMs")) {
        Some(ttl) if ttl.as_str() != "null" => {
            ttl.u64().ok_or(invalid("Invalid params: ttlMs is not a number of milliseconds"))?
        }
        _ => limits.longest,
    };
    Ok(request.now().saturating_add(ttl.max(limits.shortest).min(limits.longest)))
}

fn subscribe<S: HasWebhooks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let Some(principal) = request.principal() else { return Err(FORBIDDEN.into()) };
    let wanted = Wanted::of(&*state, request)?;
    let (delivery, url) = url(state, request)?;
    let secret = delivery.get("secret").and_then(|secret| WebhookSecret::parse(secret.text()?.plain()?));
    let subscribe = Subscribe {
        url,
        secret: secret.ok_or(invalid("Invalid params: delivery.secret is not a whsec_ secret"))?,
        event: wanted.number,
        name: wanted.event.name,
        subscription: wanted.subscription,
        until: grant(state.webhooks(), request)?,
    };
    let now = request.now();
    end_expired(state, now);
    if let Some(at) = state.webhooks().find(url, wanted.number, &wanted.subscription) {
        let Some(hook) = state.webhooks().hooks.get(&at) else { return Err(NO_SUBSCRIPTION.into()) };
        if hook.state != HookState::Active {
            // Another request waits for its endpoint.
            return Err(TOO_MANY.into());
        }
        state.webhooks_mut().renew(at, &subscribe, now);
        return answer_subscribe(state, at, true, request);
    }
    state.webhooks().check_room(principal)?;
    if state.webhooks().is_asking(url, principal) {
        return Err(TOO_MANY.into());
    }
    let begin = wanted.begin(&*state)?;
    let (token, not_before) = (request.token(), wanted.not_before);
    let Some(at) = state.webhooks_mut().add(&subscribe, begin, not_before, token, now) else {
        return request.later().1;
    };
    if let Some((begin, _)) = wanted.event.hooks {
        begin(state, &wanted.subscription);
    }
    answer_subscribe(state, at, false, request)
}

/// Answers `events/subscribe` for an active subscription.
fn answer_subscribe<S: HasWebhooks>(
    state: &mut S,
    at: u64,
    is_refresh: bool,
    request: &mut CustomRequest<'_>,
) -> HandlerResult {
    let (events, Some(hook)) = (state.events(), state.webhooks().hooks.get(&at)) else {
        return Err(NO_SUBSCRIPTION.into());
    };
    let time = |at: Millis| iso_8601(events.unix_millis(at));
    request.result_as("complete", &mut |result| {
        result.text("id", &hook.id);
        result.text("refreshBefore", time(hook.until).as_str());
        write_cursor(result, &hook.cursor);
        result.boolean("truncated", hook.truncated && !is_refresh);
        if !is_refresh {
            return;
        }
        let mut status = Object::open(result.key("deliveryStatus"));
        status.boolean("active", true);
        for (member, at) in [("lastDeliveryAt", hook.last_delivery), ("failedSince", hook.failed_since)] {
            if let Some(at) = at {
                status.text(member, time(at).as_str());
            }
        }
        match hook.last_error {
            Some(failure) => status.text("lastError", failure.name()),
            None => status.fixed("lastError", "null"),
        }
        status.close();
    })
}

fn unsubscribe<S: HasWebhooks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    if request.principal().is_none() {
        return Err(FORBIDDEN.into());
    }
    // Also of an event type that the user may not hear of any more.
    let (event, number, subscription) = Wanted::named(&*state, request)?;
    let (_, url) = url(state, request)?;
    let at = state.webhooks().find(url, number, &subscription).ok_or(NO_SUBSCRIPTION)?;
    let hooks = &mut state.webhooks_mut().hooks;
    // The request that waits for the endpoint is answered in the next turn.
    if !hooks.get_mut(&at).is_some_and(|hook| hook.give_up(DeliveryFailure::ChallengeFailed)) {
        let hook = hooks.remove(&at).ok_or(NO_SUBSCRIPTION)?;
        if let Some((_, end)) = event.hooks {
            end(state, &hook.subscription());
        }
    }
    request.result_as("complete", &mut |_| {})
}

fn event<S: HasWebhooks>(hook: &Hook) -> Option<&'static EventType<S>> {
    S::EVENTS.get(hook.event as usize)
}

/// Removes the subscriptions that were not renewed, and ends the questions to endpoints whose outcome was never noted.
fn end_expired<S: HasWebhooks>(state: &mut S, now: Millis) {
    // One that waits for its answer is answered first.
    let is_over = |hook: &mut Hook| hook.end() <= now && !hook.give_up(DeliveryFailure::Timeout);
    let over = state.webhooks_mut().hooks.iter_mut().filter_map(|(at, hook)| is_over(hook).then_some(*at));
    let over: Vec<u64> = over.collect();
    for at in over {
        let Some(hook) = state.webhooks_mut().hooks.remove(&at) else { continue };
        if let (Some((_, end)), HookState::Active) = (event::<S>(&hook).and_then(|event| event.hooks), hook.state) {
            end(state, &hook.subscription());
        }
    }
}

/// Does what is due: ends subscriptions that were not renewed or may not go on, answers requests whose endpoints have answered, and makes the
/// next deliveries. Returns the time of the next turn. `answer` answers a request with [`complete`], by the method `answer` of its
/// connection. A subscription ends whose functions panic, if the service [contains](Service::contain_panics) panics.
pub fn turn<S: HasWebhooks>(
    service: &Service<'_, S>,
    state: &mut S,
    now: Millis,
    mut answer: impl FnMut(&mut S, RequestToken) -> Result<(), RespondError>,
) -> Option<Millis> {
    service.contained(&mut || end_expired(state, now));
    let waiting = |(at, hook): (u64, &Hook)| match hook.state {
        HookState::Verified(token, _) => Some((at, token)),
        _ => None,
    };
    let answers: Vec<_> = state.webhooks().all().filter_map(waiting).collect();
    for (at, token) in answers {
        state.webhooks_mut().answering = at;
        if let Err(RespondError::Stale) = answer(state, token) {
            state.webhooks_mut().hooks.remove(&at);
        }
    }
    let all: Vec<u64> = state.webhooks().all().map(|(at, _)| at).collect();
    for at in all {
        let mut prepared = Err(PANICKED);
        service.contained(&mut || prepared = prepare(state, at, now));
        if let Err(refusal) = prepared {
            service.contained(&mut || terminate(state, at, &refusal, now));
        }
    }
    state.webhooks_mut().find_due(now)
}

/// Answers `events/subscribe` after its endpoint was asked, in [`turn`].
///
/// # Errors
/// The handler has answered already, or the answer does not fit.
pub fn complete<S: HasWebhooks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let at = state.webhooks().answering;
    let Some(hook) = state.webhooks_mut().hooks.get_mut(&at) else { return Err(NO_SUBSCRIPTION.into()) };
    match hook.state {
        HookState::Verified(token, Err(failure)) if token == request.token() => {
            state.webhooks_mut().hooks.remove(&at);
            Err(failure.error().into())
        }
        HookState::Verified(token, Ok(())) if token == request.token() => {
            hook.state = HookState::Active;
            if let Some((begin, _)) = event::<S>(hook).and_then(|event| event.hooks) {
                // The hook gets the whole state.
                let hook = state.webhooks_mut().hooks.remove(&at).ok_or(NO_SUBSCRIPTION)?;
                begin(state, &hook.subscription());
                state.webhooks_mut().hooks.insert(at, hook);
            }
            answer_subscribe(state, at, false, request)
        }
        _ => Err(NO_SUBSCRIPTION.into()),
    }
}

/// Ends a subscription: its endpoint hears why.
fn terminate<S: HasWebhooks>(state: &mut S, at: u64, refusal: &RpcError<'static>, now: Millis) {
    let error = to_vec(|out| refusal.write(out)).unwrap_or_default();
    let body = [br#"{"type":"terminated","error":"#, error.as_slice(), b"}"].concat();
    let Some(hook) = state.webhooks_mut().hooks.get_mut(&at) else { return };
    hook.state = HookState::Ended;
    let (event, cursor, principal) = (event::<S>(hook), hook.cursor, hook.principal.clone());
    // The hook gets the whole state.
    let arguments = core::mem::take(&mut hook.arguments);
    state.webhooks_mut().control(at, "terminated", body, cursor, now);
    if let Some((_, end)) = event.and_then(|event| event.hooks) {
        let arguments = Raw::parse(&arguments).unwrap_or(NO_ARGUMENTS);
        end(state, &EventSubscription { arguments, principal: Some(&principal) });
    }
}

/// Makes the next delivery of a subscription that has none.
///
/// # Errors
/// It may not go on.
fn prepare<S: HasWebhooks>(state: &mut S, at: u64, now: Millis) -> Result<(), RpcError<'static>> {
    let Some(hook) = state.webhooks().hooks.get(&at) else { return Ok(()) };
    let Some(event) = event::<S>(hook) else { return Ok(()) };
    if hook.state != HookState::Active || hook.pending.is_some() {
        return Ok(());
    }
    event.admit(state, &hook.subscription())?;
    // A turn comes after each message of anybody: without news it reads nothing.
    let has_news = match event.source {
        Some(_) => now >= hook.look,
        None => hook.not_before > 0 || state.events().end().as_str() != hook.cursor.as_str(),
    };
    if !has_news {
        return Ok(());
    }
    let mut next = None;
    let mut take = |step: Step<'_>| {
        if next.is_some() {
            return false;
        }
        next = Some(match step {
            Step::Gap(cursor) => (None, cursor_of(cursor)),
            Step::Occurrence(mut found) => {
                let cursor = cursor_of(found.cursor);
                let body = to_vec(|out| {
                    let mut occurrence = Object::open(out);
                    found.write(event.name, &mut occurrence);
                    write_cursor(&mut occurrence, &cursor);
                    occurrence.close();
                });
                let body = body.ok().filter(|body| body.len() <= LONGEST_BODY && is_value(found.id));
                (body.map(|body| (found.id.to_string(), body)), cursor)
            }
        });
        true
    };
    let mut found = Occurrences::new(hook.event, Some(hook.cursor), hook.not_before, &mut take);
    let read = event.source.unwrap_or(crate::events::ring::ring::<S>)(state, &hook.subscription(), &mut found);
    let end = found.position;
    let look = now.saturating_add(state.events().poll_interval());
    let webhooks = state.webhooks_mut();
    if let Some(hook) = webhooks.hooks.get_mut(&at) {
        hook.look = look;
        // After an error it is tried again.
        if next.is_none() && read.is_ok() {
            (hook.cursor, hook.not_before) = (end, 0);
        }
    }
    match next {
        Some((Some(delivery), cursor)) => webhooks.deliver(at, delivery, cursor, now),
        // Some are gone, or one cannot be sent.
        Some((None, cursor)) => webhooks.control(at, "gap", gap(&cursor), cursor, now),
        None => {}
    }
    Ok(())
}

/// Returns whether a header can have this value: the id of an occurrence may be the words of a stranger.
fn is_value(id: &str) -> bool {
    id.trim_ascii() == id && !id.bytes().any(|byte| byte.is_ascii_control())
}

fn gap(cursor: &Cursor) -> Vec<u8> {
    let body = to_vec(|out| {
        let mut body = Object::open(out);
        body.text("type", "gap");
        write_cursor(&mut body, cursor);
        body.close();
    });
    body.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{format, vec};

    use mcp_sansio::server::{MessageLimits, Server};
    use mcp_sansio::service::{Extension, MessageSource};
    use mcp_sansio::sink::LineSink;

    use super::*;
    use crate::events::webhook::WebhookLimits;
    use crate::events::{EventOccurrence, Events, emit, extension};
    use crate::shared::looks;

    struct Door {
        events: Events<'static>,
        webhooks: Webhooks,
        hooks: i64,
    }

    impl HasEvents for Door {
        const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell", "Somebody rings")
            .on_subscribe(|door: &mut Door, _| door.hooks += 1, |door, _| door.hooks -= 1)];
        const WEBHOOKS: Option<WebhookMethods<Self>> = Some(methods());

        fn events(&self) -> &Events<'static> {
            &self.events
        }
        fn events_mut(&mut self) -> &mut Events<'static> {
            &mut self.events
        }
    }

    impl HasWebhooks for Door {
        fn webhooks(&self) -> &Webhooks {
            &self.webhooks
        }
        fn webhooks_mut(&mut self) -> &mut Webhooks {
            &mut self.webhooks
        }
    }

    static EXTENSIONS: [Extension<Door>; 1] = [extension()];
    const SERVICE: Service<'static, Door> = Service::new("door", "1.0").extend(&EXTENSIONS);

    /// The work of a turn and of its deliveries grows with the subscriptions, not with their square: each delivery, each outcome, each answer
    /// and each end once searched from the first subscription.
    #[test]
    fn a_turn_looks_at_each_subscription_a_few_times() {
        for count in [10, 100, 1_000] {
            let limits = WebhookLimits { most: count, share: 1, shortest: 0, longest: 1_000 };
            let events = Events::new(vec![0; 256].leak(), 4, 77);
            let mut door = Door { events, webhooks: Webhooks::new(limits, |bytes| bytes.fill(7)), hooks: 0 };
            let mut server = Server::growing(MessageLimits { in_flight: count, ..MessageLimits::default() });
            let mut out = LineSink::new(Vec::new());
            for user in 1..=count {
                let request = format!(
                    r#"{{"jsonrpc":"2.0","id":{user},"method":"events/subscribe","params":{{"name":"bell",
                    "delivery":{{"url":"https://{user}.example/","secret":"{}"}},
                    "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
                    WebhookSecret::new(&[5; 24]).unwrap().to_text()
                );
                let user = format!("{user}");
                let source = MessageSource::LINE.principal(Some(&user));
                let _ = SERVICE.dispatch_from(&source, &mut door, request.as_bytes(), &mut server, &mut out).unwrap();
            }
            let mut deliveries = Vec::new();
            // The questions, an occurrence, and the end.
            for now in [0, 1, 1_000] {
                looks::take();
                // Each endpoint repeats what it gets.
                let answer = |door: &mut Door, token: RequestToken| {
                    SERVICE.answer(door, token.as_custom(), &mut server, &mut out, complete).map(drop)
                };
                turn(&SERVICE, &mut door, now, answer);
                let all: Vec<_> = core::iter::from_fn(|| door.webhooks.next_delivery(now, now)).collect();
                for delivery in &all {
                    door.webhooks.delivered(delivery.number, Ok((200, &delivery.body)), now);
                }
                assert!(looks::take() < 10 * count, "{now}");
                deliveries.push((all.len(), door.webhooks.all().count(), door.hooks));
                emit(&mut door, &EventOccurrence::new("bell"), now, &mut |data| data.number("door", 1)).unwrap();
            }
            let active = i64::try_from(count).unwrap();
            assert_eq!(deliveries, [(count, count, 0), (count, count, active), (0, 0, 0)]);
        }
    }
}
