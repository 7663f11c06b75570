//! Ids of sessions and streams, and names of principals.

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
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId([u8; SessionId::MAX]);

impl SessionId {
    pub(crate) const LEN: usize = 32;
    /// The longest id. Zeros fill the rest.
    pub(crate) const MAX: usize = if cfg!(all(feature = "seal", feature = "alloc")) { 128 } else { SessionId::LEN };
    pub(crate) const NONE: SessionId = SessionId([b'0'; SessionId::MAX]);

    /// Makes an id of random bytes. The number of the session's slot covers the first four digits, so that the
    /// session is found without a search; 112 random bits remain.
    pub(crate) fn new(random: [u8; SessionId::LEN / 2], slot: u16) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut id = [0; SessionId::MAX];
        let bytes = slot.to_be_bytes().into_iter().chain(random.into_iter().skip(2));
        let digits = bytes.flat_map(|byte| [byte >> 4, byte & 15]);
        for (place, digit) in id.iter_mut().zip(digits) {
            *place = DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0');
        }
        SessionId(id)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.0.get(..self.len()).unwrap_or(&[])).unwrap_or("")
    }

    fn len(&self) -> usize {
        match SessionId::MAX > SessionId::LEN {
            true => memchr::memchr(0, &self.0).unwrap_or(SessionId::MAX),
            false => SessionId::LEN,
        }
    }

    /// Takes a whole id, filled up with zeros or not.
    #[cfg(all(feature = "seal", feature = "alloc"))]
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        let mut id = [0; SessionId::MAX];
        id.get_mut(..text.len())?.copy_from_slice(text);
        Some(SessionId(id))
    }

    /// Returns `true` if a client gave this id, in a time that does not depend on the first difference.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let differences = self.0.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        given.len() == self.len() && differences == 0
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
#[derive(Clone, Copy)]
#[cfg_attr(feature = "resource-server", derive(PartialEq, Eq))]
#[cfg_attr(all(feature = "resource-server", feature = "defmt"), derive(defmt::Format))]
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
