//! The hooks that hear of subscriptions, and the leases of those by poll.

use mcp_sansio::error::RpcError;
use mcp_sansio::server::Millis;

use crate::events::ring::{Events, HasEvents};
use crate::events::source::EventSubscription;
use crate::events::subscribers::{Entry, LeaseSlot, Place, Subscribers};

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
    let is_held = |entry: &Entry<'_>| {
        leases.slots.get(entry.number).is_some_and(|slot| !slot.is_free() && slot.event == event)
            && entry.principal == subscription.principal.map(str::as_bytes)
            && entry.arguments == subscription.arguments.as_bytes()
    };
    let held = leases.entries(0).find(is_held).map(|entry| entry.number);
    if let Some(slot) = held.and_then(|number| leases.slots.get_mut(number)) {
        slot.until = until;
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
    let mut next = 0;
    while let Some(Entry { number, at, end, .. }) = state.events().leases.entry(next) {
        next = end;
        let slot = state.events_mut().leases.slots.get_mut(number).filter(|slot| is_over(slot));
        if let Some(LeaseSlot { event, .. }) = slot.map(|slot| core::mem::replace(slot, LeaseSlot::FREE)) {
            unsubscribe(state, event, at, |events| &mut events.leases);
        }
    }
    state.events().leases.slots.iter().filter_map(|slot| slot.until).min()
}

/// Returns one of the tables.
type Table<T> = for<'e> fn(&'e mut Events<'static>) -> &'e mut Subscribers<'static, T>;

/// Calls the hook for a subscription that is over, which is at this position in the records. Its place is free already.
pub(crate) fn unsubscribe<S: HasEvents, T: Place>(state: &mut S, event: u32, at: usize, table: Table<T>) {
    if let Some((_, end)) = S::EVENTS.get(event as usize).and_then(|event| event.hooks) {
        // The hook gets the state and the arguments, which lie there: the table is taken out meanwhile.
        let taken = core::mem::replace(table(state.events_mut()), Subscribers::none());
        let lent = Lent { state, taken, table };
        if let Some(entry) = lent.taken.entry(at) {
            end(lent.state, &entry.subscription());
        }
        drop(lent);
        if S::STREAMS {
            // What the hook has emitted.
            state.events_mut().wake();
        }
    }
}

/// A table that was taken out. It is put back also when a hook panics, whose panic is contained.
struct Lent<'s, S: HasEvents, T: 'static> {
    state: &'s mut S,
    taken: Subscribers<'static, T>,
    table: Table<T>,
}

impl<S: HasEvents, T> Drop for Lent<'_, S, T> {
    fn drop(&mut self) {
        core::mem::swap((self.table)(self.state.events_mut()), &mut self.taken);
    }
}
