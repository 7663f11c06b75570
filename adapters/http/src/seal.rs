//! Seals `requestState` (2026-07-28) with HMAC-SHA256.

use hmac::{Hmac, Mac};
use mcp_sansio::server::{AssociatedData, Millis, Seal, SealError};
use sha2::Sha256;

/// Number of bytes that a seal adds to a state: an expiry and a code.
pub const OVERHEAD: usize = EXPIRY + CODE;

const EXPIRY: usize = 8;
const CODE: usize = 32;

/// Protects `requestState` of an
/// [input request](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr): a state that
/// was changed, or comes with another request, is refused.
///
/// A state is accepted only with the same method, the same name or URI, the same arguments and the same
/// principal, and before its expiry. The client can read it: put no secrets into a state. A client may also send
/// a valid state twice: if an action must happen only once, the handler must note that elsewhere.
///
/// Processes that replace each other need the same key and the same clock.
///
/// ```
/// use mcp_sansio::server::{Server, RequestSlot};
/// use mcp_sansio_http::seal::HmacSeal;
///
/// let key = [7; 32]; // better: secure random bytes
/// let seal = HmacSeal::new(&key);
/// let mut slots = [RequestSlot::FREE; 4];
/// let server = Server::new(&mut slots).seal(&seal);
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct HmacSeal {
    /// The digested key.
    mac: Hmac<Sha256>,
    /// Another key that is accepted.
    other: Option<Hmac<Sha256>>,
    lifetime: Millis,
}

impl HmacSeal {
    /// Makes a seal whose states are valid for five minutes. `key` must be 32 secure random bytes. With a new key
    /// in each process, a state is invalid after a restart.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        HmacSeal { mac: keyed(key), other: None, lifetime: 300_000 }
    }

    /// Accepts what was sealed with another key too, while keys change: first all processes accept the new key, then all
    /// seal with it and accept the old one, and when the longest lifetime is over, none accepts the old one. So nothing that
    /// was sealed is lost.
    ///
    /// ```
    /// use mcp_sansio_http::seal::HmacSeal;
    /// let (old, new) = ([6; 32], [7; 32]);
    /// let first = HmacSeal::new(&old).accept(&new);
    /// let then = HmacSeal::new(&new).accept(&old);
    /// # let _ = (first, then);
    /// ```
    #[must_use]
    pub fn accept(self, key: &[u8; 32]) -> Self {
        HmacSeal { other: Some(keyed(key)), ..self }
    }

    /// Sets the milliseconds for which a state is valid: the time that a user may take to answer.
    #[must_use]
    pub const fn lifetime(self, millis: Millis) -> Self {
        HmacSeal { lifetime: millis, mac: self.mac, other: self.other }
    }

    /// Digests the sealed parts, each after its length: so two different requests never have the same bytes.
    fn mac(key: &Hmac<Sha256>, bound: &AssociatedData<'_>, expiry: &[u8], state: &[u8]) -> Hmac<Sha256> {
        let mut mac = key.clone();
        let principal = bound.principal.map_or(&b""[..], str::as_bytes);
        mac.update(&[u8::from(bound.principal.is_some())]);
        for part in [expiry, bound.method.as_bytes(), bound.target, bound.arguments, principal, state] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

/// The key is half a block, so HMAC needs no hash of it.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    mcp_sansio::sink::copy(&mut block, key);
    <Hmac<Sha256> as hmac::digest::KeyInit>::new(&block.into())
}

impl Seal for HmacSeal {
    fn seal(&self, bound: &AssociatedData<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError> {
        let expiry = bound.now.saturating_add(self.lifetime).to_le_bytes();
        let code = HmacSeal::mac(&self.mac, bound, &expiry, state).finalize().into_bytes();
        let len = state.len() + OVERHEAD;
        let sealed = sealed.get_mut(..len).ok_or(SealError::Room)?;
        for (place, byte) in sealed.iter_mut().zip(expiry.iter().chain(state).chain(&code)) {
            *place = *byte;
        }
        Ok(len)
    }

    fn open(&self, bound: &AssociatedData<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError> {
        let (expiry, rest) = sealed.split_first_chunk::<EXPIRY>().ok_or(SealError::Broken)?;
        let (kept, code) = rest.split_last_chunk::<CODE>().ok_or(SealError::Broken)?;
        // Takes the same time for each wrong code.
        let is_of = |key| HmacSeal::mac(key, bound, expiry, kept).verify_slice(code).is_ok();
        if !is_of(&self.mac) && !self.other.as_ref().is_some_and(is_of) {
            return Err(SealError::Broken);
        }
        if bound.now > Millis::from_le_bytes(*expiry) {
            return Err(SealError::Broken);
        }
        let place = state.get_mut(..kept.len()).ok_or(SealError::Room)?;
        place.copy_from_slice(kept);
        Ok(kept.len())
    }
}

// The key must not be in logs.
mcp_sansio::debug_fields!(impl for HmacSeal { lifetime });

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const KEY: [u8; 32] = [3; 32];

    fn with<'b>(arguments: &'b [u8], principal: Option<&'b str>, now: Millis) -> AssociatedData<'b> {
        data("tools/call", b"\"book\"", arguments, principal, now)
    }

    fn data<'b>(
        method: &'b str,
        target: &'b [u8],
        arguments: &'b [u8],
        principal: Option<&'b str>,
        now: Millis,
    ) -> AssociatedData<'b> {
        let mut data = AssociatedData::new(method, target, arguments);
        (data.principal, data.now) = (principal, now);
        data
    }

    fn sealed(bound: &AssociatedData<'_>, state: &[u8]) -> Vec<u8> {
        let mut sealed = [0; 256];
        let len = HmacSeal::new(&KEY).seal(bound, state, &mut sealed).unwrap();
        sealed[..len].to_vec()
    }

    fn opened(bound: &AssociatedData<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut state = [0; 256];
        let len = HmacSeal::new(&KEY).open(bound, sealed, &mut state)?;
        Ok(state[..len].to_vec())
    }

    #[test]
    fn comes_back_as_it_was() {
        let bound = with(b"{}", Some("ann"), 1_000);
        for state in [&b""[..], b"x", b"step 2: Alice"] {
            let sealed = sealed(&bound, state);
            assert_eq!(sealed.len(), state.len() + OVERHEAD);
            assert_eq!(opened(&bound, &sealed).as_deref(), Ok(state));
        }
    }

    // spec: B161 B162
    #[test]
    fn any_change_breaks_it() {
        let bound = with(b"{}", None, 1_000);
        let good = sealed(&bound, b"state");
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 1;
            assert_eq!(opened(&bound, &changed), Err(SealError::Broken), "{at}");
            assert_eq!(opened(&bound, &good[..at]), Err(SealError::Broken), "{at}");
        }
        let longer: Vec<u8> = good.iter().copied().chain(*b"-TAMPERED").collect();
        assert_eq!(opened(&bound, &longer), Err(SealError::Broken));
        let other = HmacSeal::new(&[4; 32]);
        assert_eq!(other.open(&bound, &good, &mut [0; 64]), Err(SealError::Broken));
    }

    // spec: B163
    #[test]
    fn it_is_good_for_one_request_only() {
        let bound = with(b"{}", Some("ann"), 1_000);
        let good = sealed(&bound, b"state");
        let others = [
            with(b"{\"a\":1}", Some("ann"), 1_000),
            with(b"{}", Some("bob"), 1_000),
            with(b"{}", None, 1_000),
            data("prompts/get", b"\"book\"", b"{}", Some("ann"), 1_000),
            data("tools/call", b"\"boo\"", b"{}", Some("ann"), 1_000),
            // The same bytes in a row, split at another place.
            data("tools/cal", b"l\"book\"", b"{}", Some("ann"), 1_000),
        ];
        for other in others {
            assert_eq!(opened(&other, &good), Err(SealError::Broken), "{other:?}");
        }
        let nobody = sealed(&with(b"{}", None, 1_000), b"state");
        assert_eq!(opened(&with(b"{}", Some(""), 1_000), &nobody), Err(SealError::Broken));
    }

    // spec: B163
    #[test]
    fn it_expires() {
        let good = sealed(&with(b"{}", None, 1_000), b"state");
        assert!(opened(&with(b"{}", None, 301_000), &good).is_ok());
        assert_eq!(opened(&with(b"{}", None, 301_001), &good), Err(SealError::Broken));
    }

    #[test]
    fn two_keys_while_they_change() {
        let bound = with(b"{}", None, 1_000);
        let open = |seal: &HmacSeal, sealed: &[u8]| seal.open(&bound, sealed, &mut [0; 64]).is_ok();
        let sealed_with = |seal: &HmacSeal| {
            let mut sealed = [0; 64];
            let len = seal.seal(&bound, b"state", &mut sealed).unwrap();
            sealed[..len].to_vec()
        };
        let (old, new) = (HmacSeal::new(&[3; 32]), HmacSeal::new(&[4; 32]));
        let (first, then) = (old.clone().accept(&[4; 32]), new.clone().accept(&[3; 32]));
        for (seal, sealed, good) in [
            (&first, sealed_with(&then), true),
            (&then, sealed_with(&first), true),
            (&old, sealed_with(&first), true),
            (&new, sealed_with(&then), true),
            (&old, sealed_with(&then), false),
            (&new, sealed_with(&first), false),
            (&then, sealed_with(&HmacSeal::new(&[5; 32])), false),
        ] {
            assert_eq!(open(seal, &sealed), good);
        }
    }

    #[test]
    fn it_needs_room() {
        let bound = with(b"{}", None, 0);
        let seal = HmacSeal::new(&KEY);
        assert_eq!(seal.seal(&bound, b"state", &mut [0; OVERHEAD]), Err(SealError::Room));
        let good = sealed(&bound, b"state");
        assert_eq!(seal.open(&bound, &good, &mut [0; 4]), Err(SealError::Room));
    }

    /// Case 2 of RFC 4231 has a short key. This test has a key of 32 bytes, and a code from another
    /// implementation.
    #[test]
    fn it_is_hmac_sha256() {
        let mut mac = HmacSeal::new(&KEY).mac.clone();
        mac.update(b"what do ya want for nothing?");
        let code = mac.finalize().into_bytes();
        let hex: std::string::String = code.iter().map(|byte| std::format!("{byte:02x}")).collect();
        assert_eq!(hex, "13ccc817c2388909497052d17930d6f060bbc10b09b743de1bcc345fee31ade9");
    }
}
