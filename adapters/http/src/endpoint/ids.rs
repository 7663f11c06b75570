//! Ids of sessions and streams, and names of principals.

use mcp_sansio::server::is_same_secret;

/// An event stream of an [`Endpoint`](super::Endpoint). The id of a stream that ended is stale and has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamId {
    pub(crate) slot: u16,
    /// Given when the stream is sent, from 1 on; the endpoint gives no number twice.
    pub(crate) number: u64,
    /// The number of its connection. When a client comes back, the earlier connection must not read on.
    pub(crate) visit: u32,
}

impl StreamId {
    /// Returns the number of its slot: small, and different from that of each other open stream.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The value of `Mcp-Session-Id`: 32 hexadecimal digits, or with a `SessionSeal` a sealed id of at most 128 characters.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId {
    digits: [u8; SessionId::LEN],
    /// In place of the digits, if there are any: few responses have an id, and all are moved several times.
    pub(super) sealed: sealed::Characters,
}

#[cfg(feature = "alloc")]
mod sealed {
    pub(crate) type Characters = alloc::vec::Vec<u8>;
    pub(super) const NONE: Characters = Characters::new();
}
#[cfg(not(feature = "alloc"))]
mod sealed {
    pub(crate) type Characters = [u8; 0];
    pub(super) const NONE: Characters = [];
}

impl SessionId {
    pub(crate) const LEN: usize = 32;
    pub(crate) const NONE: SessionId = SessionId { digits: [b'0'; SessionId::LEN], sealed: sealed::NONE };

    /// Makes an id of random bytes. The number of the session's slot covers the first four digits, so that the
    /// session is found without a search; 112 random bits remain.
    pub(crate) fn new(mut random: [u8; SessionId::LEN / 2], slot: u16) -> Self {
        mcp_sansio::sink::copy(&mut random, &slot.to_be_bytes());
        let mut id = SessionId::NONE;
        for (pair, byte) in id.digits.as_chunks_mut().0.iter_mut().zip(random) {
            // Sums, and no table: the compiler makes many digits at once.
            *pair = [byte >> 4, byte & 15].map(|half| half + if half < 10 { b'0' } else { b'a' - 10 });
        }
        id
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.characters()).unwrap_or("")
    }

    fn characters(&self) -> &[u8] {
        if self.sealed.is_empty() { &self.digits } else { &self.sealed }
    }

    /// Returns `true` if a client gave this id, in a time that does not depend on the first difference.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        // The number of digits is known to the compiler, which compares them at once.
        if self.sealed.is_empty() { is_same_secret(&self.digits, given) } else { is_same_secret(&self.sealed, given) }
    }

    /// Returns the slot in an id.
    pub(crate) fn slot_of(given: &[u8]) -> Option<u16> {
        let digits: &[u8; 4] = given.first_chunk().filter(|_| given.len() == SessionId::LEN)?;
        digits.iter().try_fold(0, |slot, digit| Some(slot << 4 | char::from(*digit).to_digit(16)? as u16))
    }
}

impl core::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // An id is a key to its session, so it must not be in logs.
        f.write_str("SessionId(..)")
    }
}

/// Longest name of a principal in bytes. An application with longer names gives a digest.
pub const PRINCIPAL_MAX: usize = 64;

/// The name of a principal.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Principal {
    bytes: [u8; PRINCIPAL_MAX],
    /// One more than its length; 0 for no principal.
    len: u8,
}

impl Principal {
    pub(crate) const NOBODY: Principal = Principal { bytes: [0; PRINCIPAL_MAX], len: 0 };

    /// Keeps at most [`PRINCIPAL_MAX`] bytes.
    pub(crate) fn new(name: Option<&str>) -> Self {
        let mut principal = Principal::NOBODY;
        if let Some(name) = name {
            mcp_sansio::sink::copy(&mut principal.bytes, name.as_bytes());
            principal.len = name.len().min(PRINCIPAL_MAX) as u8 + 1;
        }
        principal
    }

    pub(crate) fn name(&self) -> Option<&str> {
        let len = usize::from(self.len.checked_sub(1)?);
        self.bytes.get(..len).and_then(|name| core::str::from_utf8(name).ok())
    }
}

impl core::fmt::Debug for Principal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.name().fmt(f)
    }
}
