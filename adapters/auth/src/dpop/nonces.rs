//! Nonces of proofs.

use hmac::{Hmac, Mac};
use mcp_sansio::json::write::base64url;
use mcp_sansio::sink::{BodyBuffer, SliceStorage};
use sha2::Sha256;

use crate::time::UnixSeconds;

/// Makes nonces for the proofs of clients, and checks them, without memory: each is a code of the time under a key. A
/// nonce is valid for its period and the one after it.
#[derive(Clone)]
pub struct Nonces {
    key: [u8; 32],
    period: UnixSeconds,
}

/// Length of a nonce of [`Nonces`].
pub const NONCE_TEXT: usize = 22;

impl Nonces {
    /// Makes nonces under a key: 32 secure random bytes. Each has a period of five minutes. Processes that replace each
    /// other may share the key.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Nonces { key, period: 300 }
    }

    /// Sets the period, in seconds. At least 1.
    #[must_use]
    pub const fn period(self, seconds: UnixSeconds) -> Self {
        Nonces { period: seconds, ..self }
    }

    /// Returns the nonce of this time, for the header `DPoP-Nonce`.
    #[must_use]
    pub fn current(&self, now: UnixSeconds) -> [u8; NONCE_TEXT] {
        self.nonce(now / self.period.max(1))
    }

    /// Returns whether a nonce is valid now.
    #[must_use]
    pub fn accepts(&self, nonce: &str, now: UnixSeconds) -> bool {
        let number = now / self.period.max(1);
        [number, number.saturating_sub(1)].iter().any(|number| self.nonce(*number) == nonce.as_bytes())
    }

    fn nonce(&self, number: u64) -> [u8; NONCE_TEXT] {
        // The key is half a block, so HMAC needs no hash of it.
        let mut block = [0; 64];
        mcp_sansio::sink::copy(&mut block, &self.key);
        let mut mac = <Hmac<Sha256> as hmac::digest::KeyInit>::new(&block.into());
        mac.update(&number.to_le_bytes());
        let code = mac.finalize().into_bytes();
        let mut text = [0; NONCE_TEXT];
        // 16 bytes are 22 characters: it cannot be full.
        let _ = base64url(&mut BodyBuffer::new(SliceStorage::new(&mut text)), code.get(..16).unwrap_or_default());
        text
    }
}

// The key must not be in logs.
mcp_sansio::debug_fields!(impl for Nonces { period });
