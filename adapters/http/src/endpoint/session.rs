//! Sessions of the legacy revisions.

use mcp_sansio::server::{Millis, Peer, Scope};

use super::head::SessionId;
use super::stream::StreamId;

/// The longest name of a principal; an application with longer ones gives a digest.
pub const PRINCIPAL_MAX: usize = 64;

/// One session.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub(crate) live: bool,
    pub(crate) id: SessionId,
    pub(crate) scope: Scope,
    pub(crate) peer: Peer,
    principal: Principal,
    pub(crate) used: Millis,
    /// The stream for what concerns no request.
    pub(crate) stream: Option<StreamId>,
    /// It speaks the old transport: it ends with its stream.
    pub(crate) old: bool,
    /// Somebody listens to it, or something is being done for it; see `Endpoint::mark_busy`.
    pub(crate) busy: bool,
}

impl Session {
    /// A slot without a session.
    pub const FREE: Session = Session {
        live: false,
        id: SessionId([b'0'; SessionId::LEN]),
        scope: Scope(0),
        peer: Peer::NEW,
        principal: Principal::NOBODY,
        used: 0,
        stream: None,
        old: false,
        busy: false,
    };

    /// A session that begins.
    pub(crate) fn new(id: SessionId, scope: Scope, principal: Option<&str>, now: Millis) -> Self {
        Session { live: true, id, scope, principal: Principal::new(principal), used: now, ..Session::FREE }
    }

    /// Whose it is.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.principal.name()
    }

    /// Whether it is this principal's.
    pub(crate) fn is_of(&self, principal: Option<&str>) -> bool {
        self.principal() == principal
    }
}

/// The name of a principal, kept.
#[derive(Clone, Copy)]
pub(crate) struct Principal {
    bytes: [u8; PRINCIPAL_MAX],
    /// One more than its length; 0 for nobody.
    len: u8,
}

impl Principal {
    pub(crate) const NOBODY: Principal = Principal { bytes: [0; PRINCIPAL_MAX], len: 0 };

    /// At most [`PRINCIPAL_MAX`] bytes are kept.
    pub(crate) fn new(name: Option<&str>) -> Self {
        let mut principal = Principal::NOBODY;
        if let Some(name) = name {
            for (place, byte) in principal.bytes.iter_mut().zip(name.bytes()) {
                *place = byte;
            }
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

/// An id of random bytes. Its first four digits are covered with the number of the session's slot, so that it is found
/// without a search; 112 random bits remain.
pub(crate) fn make_id(random: [u8; SessionId::LEN / 2], slot: u16) -> SessionId {
    let mut id = [0; SessionId::LEN];
    let [high, low] = slot.to_be_bytes();
    let bytes = [high, low].into_iter().chain(random.into_iter().skip(2));
    for (place, byte) in id.chunks_exact_mut(2).zip(bytes) {
        if let [first, second] = place {
            (*first, *second) = (hex(byte >> 4), hex(byte & 15));
        }
    }
    SessionId(id)
}

/// The slot that an id names.
pub(crate) fn slot_of(id: &[u8]) -> Option<usize> {
    if id.len() != SessionId::LEN {
        return None;
    }
    usize::from_str_radix(core::str::from_utf8(id.get(..4)?).ok()?, 16).ok()
}

const fn hex(digit: u8) -> u8 {
    if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
}

/// Whether two ids are the same, in a time that does not tell where they differ.
pub(crate) fn same_id(known: &SessionId, given: &[u8]) -> bool {
    let differences = known.0.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == SessionId::LEN && differences == 0
}
