//! A seal for the state of questions, `requestState` of 2026-07-28: HMAC-SHA256.

use hmac::{Hmac, Mac};
use mcp_sansio::server::{Bound, Millis, Seal, SealError};
use sha2::Sha256;

/// Bytes that it adds to a state: an expiry and a code.
pub const OVERHEAD: usize = EXPIRY + CODE;

const EXPIRY: usize = 8;
const CODE: usize = 32;

/// Makes the state of a question useless to anybody who changes it, or sends it with another request.
///
/// A state comes back only with the same method, the same name or URI, the same arguments and from the same principal,
/// and not after its expiry. It is protected against change, not against reading: do not put secrets into a state. A
/// client may also send a good state twice: what must happen once only, the handler has to note elsewhere.
///
/// Processes that stand in for each other share the key, and a clock.
///
/// ```
/// use mcp_sansio::server::Server;
/// use mcp_sansio_http::seal::HmacSeal;
///
/// let key = [7; 32]; // better: bytes that nobody can guess
/// let seal = HmacSeal::new(&key);
/// let server = Server::<4>::new().seal(&seal);
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct HmacSeal {
    /// The key, digested already.
    mac: Hmac<Sha256>,
    lifetime: Millis,
}

impl HmacSeal {
    /// A seal whose states are good for five minutes. The key is 32 bytes that nobody can guess: with new ones in each
    /// process, states do not outlive it.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        // The key is half a block, so that it is used as it stands.
        let mut block = [0; 64];
        for (place, byte) in block.iter_mut().zip(key) {
            *place = *byte;
        }
        HmacSeal { mac: <Hmac<Sha256> as hmac::digest::KeyInit>::new(&block.into()), lifetime: 300_000 }
    }

    /// How long a state is good for: as long as a user may take to answer.
    #[must_use]
    pub const fn lifetime(self, millis: Millis) -> Self {
        HmacSeal { lifetime: millis, mac: self.mac }
    }

    /// What is sealed, each part with its length before it: two requests never look the same.
    fn mac(&self, bound: &Bound<'_>, expiry: &[u8], state: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        let principal = bound.principal.map_or(&b""[..], str::as_bytes);
        mac.update(&[u8::from(bound.principal.is_some())]);
        for part in [expiry, bound.method.as_bytes(), bound.target, bound.arguments, principal, state] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl Seal for HmacSeal {
    fn seal(&self, bound: &Bound<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError> {
        let expiry = bound.now.saturating_add(self.lifetime).to_le_bytes();
        let code = self.mac(bound, &expiry, state).finalize().into_bytes();
        let len = state.len() + OVERHEAD;
        let sealed = sealed.get_mut(..len).ok_or(SealError::Room)?;
        for (place, byte) in sealed.iter_mut().zip(expiry.iter().chain(state).chain(&code)) {
            *place = *byte;
        }
        Ok(len)
    }

    fn open(&self, bound: &Bound<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError> {
        let (expiry, rest) = sealed.split_first_chunk::<EXPIRY>().ok_or(SealError::Broken)?;
        let (kept, code) = rest.split_last_chunk::<CODE>().ok_or(SealError::Broken)?;
        // Takes the same time wherever the codes differ.
        self.mac(bound, expiry, kept).verify_slice(code).map_err(|_| SealError::Broken)?;
        if bound.now > Millis::from_le_bytes(*expiry) {
            return Err(SealError::Broken);
        }
        let place = state.get_mut(..kept.len()).ok_or(SealError::Room)?;
        place.copy_from_slice(kept);
        Ok(kept.len())
    }
}

impl core::fmt::Debug for HmacSeal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The key does not belong into logs.
        f.debug_struct("HmacSeal").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const KEY: [u8; 32] = [3; 32];

    fn with<'b>(arguments: &'b [u8], principal: Option<&'b str>, now: Millis) -> Bound<'b> {
        Bound::new("tools/call", b"\"book\"", arguments).principal(principal).now(now)
    }

    fn sealed(bound: &Bound<'_>, state: &[u8]) -> Vec<u8> {
        let mut sealed = [0; 256];
        let len = HmacSeal::new(&KEY).seal(bound, state, &mut sealed).unwrap();
        sealed[..len].to_vec()
    }

    fn opened(bound: &Bound<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
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

    #[test]
    fn it_is_good_for_one_request_only() {
        let bound = with(b"{}", Some("ann"), 1_000);
        let good = sealed(&bound, b"state");
        let others = [
            with(b"{\"a\":1}", Some("ann"), 1_000),
            with(b"{}", Some("bob"), 1_000),
            with(b"{}", None, 1_000),
            Bound::new("prompts/get", b"\"book\"", b"{}").principal(Some("ann")).now(1_000),
            Bound::new("tools/call", b"\"boo\"", b"{}").principal(Some("ann")).now(1_000),
            // The same bytes in a row, parted elsewhere.
            Bound::new("tools/cal", b"l\"book\"", b"{}").principal(Some("ann")).now(1_000),
        ];
        for other in others {
            assert_eq!(opened(&other, &good), Err(SealError::Broken), "{other:?}");
        }
        let nobody = sealed(&with(b"{}", None, 1_000), b"state");
        assert_eq!(opened(&with(b"{}", Some(""), 1_000), &nobody), Err(SealError::Broken));
    }

    #[test]
    fn it_expires() {
        let good = sealed(&with(b"{}", None, 1_000), b"state");
        assert!(opened(&with(b"{}", None, 301_000), &good).is_ok());
        assert_eq!(opened(&with(b"{}", None, 301_001), &good), Err(SealError::Broken));
    }

    #[test]
    fn it_needs_room() {
        let bound = with(b"{}", None, 0);
        let seal = HmacSeal::new(&KEY);
        assert_eq!(seal.seal(&bound, b"state", &mut [0; OVERHEAD]), Err(SealError::Room));
        let good = sealed(&bound, b"state");
        assert_eq!(seal.open(&bound, &good, &mut [0; 4]), Err(SealError::Room));
    }

    /// RFC 4231, case 2 has a short key; here a key of 32 bytes against a code computed by another implementation.
    #[test]
    fn it_is_hmac_sha256() {
        let mut mac = HmacSeal::new(&KEY).mac.clone();
        mac.update(b"what do ya want for nothing?");
        let code = mac.finalize().into_bytes();
        let hex: std::string::String = code.iter().map(|byte| std::format!("{byte:02x}")).collect();
        assert_eq!(hex, "13ccc817c2388909497052d17930d6f060bbc10b09b743de1bcc345fee31ade9");
    }
}
