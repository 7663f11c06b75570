//! The hooks that hear of subscriptions, and the leases of those by poll.

use mcp_sansio::error::RpcError;
use mcp_sansio::server::Millis;

use crate::events::ring::{Events, HasEvents};
use crate::events::source::EventSubscription;
use crate::events::subscribers::{LeaseSlot, Place, Subscribers};

/// Begins or renews the lease of a subscription that is polled for.
pub(crate) fn hold<S: HasEvents>(
    state: &mut S,
    event: u32,
    subscription: &EventSubscription<'_>,
    now: Millis,
) -> Result<(), RpcError<'static>> {
    end_lapsed(state, now);
    let events = state.events_mut();
    let until = Some(now.saturating_add(events.lease));
    let leases = &mut events.leases;
    let is_same = |number: usize| {
        let kept = leases.subscription(number);
        kept.principal == subscription.principal && kept.arguments.as_bytes() == subscription.arguments.as_bytes()
    };
    let mut held = leases.slots.iter().enumerate().filter(|(_, slot)| !slot.is_free() && slot.event == event);
    if let Some((number, _)) = held.find(|(number, _)| is_same(*number)) {
        if let Some(slot) = leases.slots.get_mut(number) {
            slot.until = until;
        }
        return Ok(());
    }
    leases.add(LeaseSlot { event, until }, subscription)?;
    if let Some((begin, _)) = S::EVENTS.get(event as usize).and_then(|event| event.hooks) {
        begin(state, subscription);
    }
    Ok(())
}

/// Ends the leases that have lapsed. Returns the time at which the next one does.
pub(crate) fn end_lapsed<S: HasEvents>(state: &mut S, now: Millis) -> Option<Millis> {
    let is_over = |slot: &LeaseSlot| slot.until.is_some_and(|until| until <= now);
    while let Some(number) = state.events().leases.slots.iter().position(is_over) {
        let Some(slot) = state.events_mut().leases.slots.get_mut(number) else { break };
        let event = slot.event;
        *slot = LeaseSlot::FREE;
        unsubscribe(state, event, number, |events| &mut events.leases);
    }
    state.events().leases.slots.iter().filter_map(|slot| slot.until).min()
}

/// Calls the hook for a subscription that is over, and forgets it. Its place is free already.
pub(crate) fn unsubscribe<S: HasEvents, T: Place>(
    state: &mut S,
    event: u32,
    number: usize,
    table: impl for<'e> Fn(&'e mut Events<'static>) -> &'e mut Subscribers<'static, T>,
) {
    if let Some((_, end)) = S::EVENTS.get(event as usize).and_then(|event| event.hooks) {
        // The hook gets the state and the arguments, which lie there: the table is taken out meanwhile.
        let taken = core::mem::replace(table(state.events_mut()), Subscribers::none());
        end(state, &taken.subscription(number));
        *table(state.events_mut()) = taken;
        if S::STREAMS {
            // What the hook has emitted.
            state.events_mut().wake();
        }
    }
    table(state.events_mut()).forget(number);
}
