//! Subscriptions that a server keeps, each with its arguments and its user, in lent memory.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::memory::records::{Record, Records};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::Millis;

use crate::events::source::{EventSubscription, NO_ARGUMENTS};

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
    records: Records<'m>,
    share: usize,
}

impl<'m, T: Place> Subscribers<'m, T> {
    pub(crate) const fn none() -> Self {
        Subscribers { slots: Slots::lent(&mut []), records: Records::new(Store::none()), share: usize::MAX }
    }

    pub(crate) fn new(mut slots: Slots<'m, T>, store: Store<'m>, share: usize) -> Self {
        // What others have left there.
        slots.iter_mut().for_each(|slot| *slot = T::FREE);
        Subscribers { slots, records: Records::new(store), share }
    }

    /// Returns the arguments and the user of the place with this number.
    pub(crate) fn subscription(&self, number: usize) -> EventSubscription<'_> {
        let one = |kind| self.records.iter().find(|record| record.owner as usize == number && record.kind == kind);
        let arguments = one(ARGUMENTS).and_then(|record| Raw::parse(record.data).ok());
        let principal = one(PRINCIPAL).and_then(|record| core::str::from_utf8(record.data).ok());
        EventSubscription { arguments: arguments.unwrap_or(NO_ARGUMENTS), principal }
    }

    /// Returns the number of a new place for a subscription, if the share of its user is not used up.
    pub(crate) fn add(&mut self, place: T, subscription: &EventSubscription<'_>) -> Result<usize, RpcError<'static>> {
        let principal = subscription.principal;
        let in_use = |slots: &[T], number: u32| slots.get(number as usize).is_some_and(|slot| !slot.is_free());
        let is_own =
            |record: &Record<'_>| record.kind == PRINCIPAL && Some(record.data) == principal.map(str::as_bytes);
        let own = match principal {
            Some(_) => self.records.iter().filter(is_own).count(),
            // All without a user have one share together.
            None => {
                let named =
                    self.records.iter().filter(|record| record.kind == PRINCIPAL && in_use(&self.slots, record.owner));
                self.slots.iter().filter(|slot| !slot.is_free()).count().saturating_sub(named.count())
            }
        };
        if own >= self.share {
            return Err(TOO_MANY);
        }
        let at = self.slots.find_free(T::is_free, || T::FREE).ok_or(TOO_MANY)?;
        let owner = u32::try_from(at).map_err(|_| TOO_MANY)?;
        let arguments = subscription.arguments.as_bytes();
        for (kind, data) in [(ARGUMENTS, Some(arguments)), (PRINCIPAL, principal.map(str::as_bytes))] {
            if let Some(data) = data
                && self.records.push(owner, kind, 0, &[data]).is_err()
            {
                self.records.remove(|record| record.owner == owner);
                return Err(TOO_MANY);
            }
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = place;
        }
        Ok(at)
    }

    /// Forgets what belongs to the place with this number, which the caller frees.
    pub(crate) fn forget(&mut self, number: usize) {
        self.records.remove(|record| record.owner as usize == number);
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
