//! Subscriptions that a server keeps, each with its arguments and its user, in lent memory.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::memory::records::Records;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::Millis;

use crate::events::source::{EventSubscription, NO_ARGUMENTS};
#[cfg(test)]
use crate::shared::looks;

/// The user of a subscription. Data: the name.
const PRINCIPAL: u8 = 1;
/// The arguments. Data: JSON.
const ARGUMENTS: u8 = 2;

pub(crate) const TOO_MANY: RpcError<'static> =
    RpcError::new(-32025, "ResourceExhausted").with_data(Raw::constant(r#"{"limit":"subscriptions"}"#));

/// A place for a subscription.
pub(crate) trait Place: Copy + 'static {
    const FREE: Self;

    fn is_free(&self) -> bool;
}

/// A table of subscriptions.
#[derive(Debug)]
pub(crate) struct Subscribers<'m, T> {
    pub(crate) slots: Slots<'m, T>,
    /// The arguments of each place, and its user if it has one. Those of free places stay until another one is taken.
    records: Records<'m>,
    share: usize,
    /// The place that a turn was at last, and the next one, as positions in the records.
    pub(crate) walk: (usize, usize),
    /// All places are to be looked at in the next turn.
    pub(crate) is_woken: bool,
}

/// A place that was taken, perhaps free again.
pub(crate) struct Entry<'s> {
    pub(crate) number: usize,
    /// JSON
    pub(crate) arguments: &'s [u8],
    pub(crate) principal: Option<&'s [u8]>,
    /// Its position in the records, and that of the next one.
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl<'s> Entry<'s> {
    pub(crate) fn subscription(&self) -> EventSubscription<'s> {
        let principal = self.principal.and_then(|name| core::str::from_utf8(name).ok());
        EventSubscription { arguments: Raw::parse(self.arguments).unwrap_or(NO_ARGUMENTS), principal }
    }
}

impl<'m, T: Place> Subscribers<'m, T> {
    pub(crate) fn none() -> Self {
        Subscribers::new(Slots::lent(&mut []), Store::none(), usize::MAX)
    }

    pub(crate) fn new(mut slots: Slots<'m, T>, store: Store<'m>, share: usize) -> Self {
        // What others have left there.
        slots.iter_mut().for_each(|slot| *slot = T::FREE);
        Subscribers { slots, records: Records::new(store), share, walk: (0, 0), is_woken: false }
    }

    /// Returns the place at this position in the records.
    pub(crate) fn entry(&self, at: usize) -> Option<Entry<'_>> {
        #[cfg(test)]
        looks::add_one();
        let arguments = self.records.get(at)?;
        let principal = self.records.get(at + arguments.size()).filter(|record| record.kind == PRINCIPAL);
        Some(Entry {
            number: arguments.owner as usize,
            arguments: arguments.data,
            principal: principal.map(|record| record.data),
            at,
            end: at + arguments.size() + principal.map_or(0, |record| record.size()),
        })
    }

    /// Returns the places from this position in the records on.
    pub(crate) fn entries(&self, mut from: usize) -> impl Iterator<Item = Entry<'_>> {
        core::iter::from_fn(move || self.entry(from).inspect(|entry| from = entry.end))
    }

    /// Takes a place for a subscription, if the share of its user is not used up. Returns its number.
    pub(crate) fn add(&mut self, place: T, subscription: &EventSubscription<'_>) -> Result<usize, RpcError<'static>> {
        let slots = &self.slots;
        self.records.remove(|record| slots.get(record.owner as usize).is_none_or(T::is_free));
        self.walk = (0, 0);
        let principal = subscription.principal.map(str::as_bytes);
        // All without a user have one share together.
        let own = self.entries(0).filter(|entry| entry.principal == principal).count();
        if own >= self.share {
            return Err(TOO_MANY);
        }
        let at = self.slots.find_free(T::is_free, || T::FREE).ok_or(TOO_MANY)?;
        let owner = u32::try_from(at).map_err(|_| TOO_MANY)?;
        let arguments = subscription.arguments.as_bytes();
        for (kind, data) in [(ARGUMENTS, Some(arguments)), (PRINCIPAL, principal)] {
            if let Some(data) = data {
                self.records.push(owner, kind, 0, &[data]).map_err(|_| TOO_MANY)?;
            }
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = place;
        }
        Ok(at)
    }
}

/// The place of a lease: a subscription of a client that polls. Lend the [`Events`](crate::events::Events) as many as there may be.
#[derive(Clone, Copy, Debug)]
pub struct LeaseSlot {
    pub(crate) event: u32,
    pub(crate) until: Option<Millis>,
}

impl LeaseSlot {
    /// A place without a lease.
    pub const FREE: LeaseSlot = LeaseSlot { event: 0, until: None };
}

impl Place for LeaseSlot {
    const FREE: Self = LeaseSlot::FREE;

    fn is_free(&self) -> bool {
        self.until.is_none()
    }
}
