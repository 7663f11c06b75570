//! The identity of a server, and the tokens of its requests.

use core::num::{NonZeroU32, NonZeroU64};

/// A token for a request in flight. It is small and `Copy`: keep it, send it to another task, answer later.
///
/// The token of a request that was answered or cancelled is *stale*: every use of it is refused. So is the token of a request of
/// another [`Server`](super::Server): in a program with several connections, a token that is given to a wrong one does no harm.
///
/// No two requests of a program have equal tokens, on targets with atomic counters (`target_has_atomic = "32"`): that ends after
/// 2^32 servers, and a server counts as one more for each 65,536 requests.
///
/// On the other targets (`thumbv6m`, `riscv32imc`), no two servers that exist at the same time have equal tokens. But a server that
/// is made in the memory of one that is gone has its tokens again: keep the server, and call
/// [`new_peer`](crate::line_server::LineServer::new_peer) for the next client. A server has a token again after 65,536 requests for
/// each byte of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RequestToken(NonZeroU64);

impl RequestToken {
    /// The token of no request.
    pub(crate) const NONE: RequestToken = RequestToken(NonZeroU64::MAX);

    /// Returns the index of its slot.
    pub(crate) const fn slot(self) -> u16 {
        (self.0.get() >> u32::BITS) as u16
    }

    /// Returns the token as a number, to be kept as bytes. It means nothing to another run of the program.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// Makes the token from the number of [`to_bits`](RequestToken::to_bits). Of any other number it is the token of another
    /// request, or a stale one.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        match NonZeroU64::new(bits) {
            Some(bits) => RequestToken(bits),
            None => RequestToken::NONE,
        }
    }
}

/// The identity of a [`Server`](super::Server): of a connection over lines, or of an endpoint of HTTP. It is as unique as the
/// [tokens](RequestToken) of the server, and is never sent.
///
/// It names the server, not the client: it stays the same after [`forget_peer`](super::Server::forget_peer), and all sessions of an
/// endpoint have the same one, see [`RequestContext::scope`](crate::service::RequestContext::scope).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ServerId(NonZeroU32);

impl ServerId {
    /// Of no server.
    pub(crate) const NONE: ServerId = ServerId(NonZeroU32::MAX);
}

/// The number of a connection, a session or a single POST. A request id and a progress token are unique in one scope
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Scope(pub u32);

/// Makes the tokens of one server. From the lowest bit on, a token has a number that no other server has (32 bits), the index of
/// the slot (16), and a count (16). When the count begins anew, there is a new number.
pub(crate) struct Tokens {
    pub(crate) id: ServerId,
    number: NonZeroU32,
    /// In the upper half.
    count: u32,
    numbers: Numbers,
}

impl Tokens {
    pub(super) fn new<T>(slots: &[T]) -> Self {
        let (numbers, number) = Numbers::new(slots);
        Tokens { id: ServerId(number), number, count: 0, numbers }
    }

    /// Makes the token of a new request.
    pub(super) fn take(&mut self, slot: u16) -> RequestToken {
        let token = NonZeroU64::from(self.number) | u64::from(self.count | u32::from(slot)) << u32::BITS;
        self.count = self.count.wrapping_add(1 << u16::BITS);
        if self.count == 0 {
            self.renew();
        }
        RequestToken(token)
    }

    #[cold]
    fn renew(&mut self) {
        self.number = self.numbers.next(self.number);
    }
}

#[cfg(not(target_has_atomic = "32"))]
use addresses::SlotAddresses as Numbers;
#[cfg(target_has_atomic = "32")]
use counter::Numbers;

/// With an atomic counter, its values are the numbers.
#[cfg(target_has_atomic = "32")]
mod counter {
    use super::NonZeroU32;
    use core::sync::atomic::{AtomicU32, Ordering};

    pub(crate) struct Numbers;

    impl Numbers {
        pub(super) fn new<T>(_: &[T]) -> (Self, NonZeroU32) {
            (Numbers, take())
        }

        /// Returns a number that no server has.
        #[allow(clippy::unused_self, reason = "the same as without a counter")]
        pub(super) fn next(&self, _: NonZeroU32) -> NonZeroU32 {
            take()
        }
    }

    #[inline(never)]
    fn take() -> NonZeroU32 {
        static LAST: AtomicU32 = AtomicU32::new(0);
        NonZeroU32::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Without an atomic counter, the addresses of the slots are the numbers: they are lent to one server only.
#[cfg(any(test, not(target_has_atomic = "32")))]
mod addresses {
    use super::NonZeroU32;

    pub(crate) struct SlotAddresses {
        first: NonZeroU32,
        bytes: u32,
        /// Has addresses in place of slots that are not lent.
        #[cfg(feature = "alloc")]
        _own: Option<alloc::boxed::Box<[u8; 64]>>,
    }

    impl SlotAddresses {
        pub(super) fn new<T>(slots: &[T]) -> (Self, NonZeroU32) {
            let (address, bytes) = (slots.as_ptr().addr(), size_of_val(slots));
            #[cfg(feature = "alloc")]
            let own = slots.is_empty().then(|| alloc::boxed::Box::new([0; 64]));
            #[cfg(feature = "alloc")]
            let (address, bytes) = own.as_ref().map_or((address, bytes), |own| (own.as_ptr().addr(), own.len()));
            let first = NonZeroU32::new(address as u32).unwrap_or(NonZeroU32::MIN);
            let place = SlotAddresses {
                first,
                bytes: bytes as u32,
                #[cfg(feature = "alloc")]
                _own: own,
            };
            (place, first)
        }

        /// Returns the number after this one, or the first one again.
        pub(super) fn next(&self, number: NonZeroU32) -> NonZeroU32 {
            let next = number.saturating_add(1);
            if next.get() - self.first.get() < self.bytes { next } else { self.first }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of servers that exist at once, in lent memory and without: none is of two of them.
    #[test]
    fn addresses_are_numbers_of_one_server() {
        let lent = [[0_u64; 8]; 2];
        let places = [addresses::SlotAddresses::new(&lent[0]), addresses::SlotAddresses::new(&lent[1])];
        #[cfg(feature = "alloc")]
        let places = places
            .into_iter()
            .chain([addresses::SlotAddresses::new::<u64>(&[]), addresses::SlotAddresses::new::<u64>(&[])]);
        let mut seen = std::collections::HashSet::new();
        for (numbers, first) in places {
            let (mut number, mut count) = (first, 0);
            while seen.insert(number) {
                (number, count) = (numbers.next(number), count + 1);
            }
            // They begin anew with the first one.
            assert_eq!(number, first);
            assert!(count == size_of_val(&lent[0]) || count == 64, "{count}");
        }
    }

    /// A server takes another number when its count is used up.
    #[test]
    fn tokens_do_not_come_again() {
        let mut tokens = Tokens::new::<u64>(&[]);
        let seen: std::collections::HashSet<_> = (0..200_000).map(|_| tokens.take(7)).collect();
        assert_eq!((seen.len(), seen.iter().all(|token| token.slot() == 7)), (200_000, true));
    }
}
