//! Signatures of webhooks: the symmetric scheme of [Standard Webhooks](https://www.standardwebhooks.com), which the server makes
//! and the receiver verifies.

use alloc::format;
use alloc::string::String;
use core::fmt;

use hmac::{Hmac, Mac};
use mcp_sansio::json::write::{base64, decode_base64};
use mcp_sansio::sink::to_vec;
use sha2::Sha256;

/// The longest secret in bytes.
const LONGEST: usize = 64;
/// The time of a delivery may be so far from now, in seconds.
const FRESH: u64 = 300;

/// The secret of a subscription by webhook (`delivery.secret`): 24 to 64 random bytes, which the client makes. As text it is
/// `whsec_` and their base64. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WebhookSecret {
    bytes: [u8; LONGEST],
    len: usize,
}

mcp_sansio::error_enum! {
    /// The reason why a delivery is refused.
    SignatureError {
        /// `webhook-timestamp` is no number, or more than five minutes away from now.
        Timestamp => "the delivery is too old",
        /// No signature of `webhook-signature` is one of this secret.
        Signature => "the signature is wrong",
    }
}

impl WebhookSecret {
    /// Takes secure random bytes. Returns `None` if they are fewer than 24 or more than 64.
    #[must_use]
    pub fn new(random: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..random.len())?.copy_from_slice(random);
        (random.len() >= 24).then_some(WebhookSecret { bytes, len: random.len() })
    }

    /// Reads the text: `whsec_` and base64. Returns `None` if it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        let len = decode_base64(text.strip_prefix("whsec_")?.as_bytes(), &mut bytes)?;
        (len >= 24).then_some(WebhookSecret { bytes, len })
    }

    /// Returns the text, for `delivery.secret`.
    #[must_use]
    pub fn to_text(&self) -> String {
        base64_after("whsec_", self.bytes())
    }

    /// Returns a signature for the header `webhook-signature`, for a `webhook-id`, a `webhook-timestamp` in seconds since the
    /// beginning of 1970, and the bytes of a body. The header has several, with spaces between them, while the secret changes.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        base64_after("v1,", &self.mac(id, &format!("{timestamp}"), body).finalize().into_bytes())
    }

    /// Verifies a delivery by its three headers and the bytes of its body as they came. `now` is in seconds since the beginning of
    /// 1970.
    ///
    /// # Errors
    /// [`SignatureError`]: answer with an error, and do nothing else.
    pub fn verify(&self, [id, timestamp, signatures]: [&str; 3], body: &[u8], now: u64) -> Result<(), SignatureError> {
        let time: u64 = timestamp.parse().map_err(|_| SignatureError::Timestamp)?;
        if time.abs_diff(now) > FRESH {
            return Err(SignatureError::Timestamp);
        }
        let mac = self.mac(id, timestamp, body);
        let is_own = |signature: &str| {
            let mut code = [0; 32];
            let len = signature.strip_prefix("v1,").and_then(|text| decode_base64(text.as_bytes(), &mut code));
            // Compared in constant time.
            len == Some(32) && mac.clone().verify_slice(&code).is_ok()
        };
        // A sender signs with two secrets at most; the others are of other schemes.
        if signatures.split(' ').take(8).any(is_own) { Ok(()) } else { Err(SignatureError::Signature) }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn mac(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        // A key of HMAC may have any length: the block is never missing.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.bytes()).unwrap_or_else(|_| Hmac::new(&Default::default()));
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

fn base64_after(prefix: &str, bytes: &[u8]) -> String {
    let text = to_vec(|out| {
        out.put(prefix.as_bytes());
        out.write(|out| base64(out, bytes));
    });
    String::from_utf8(text.unwrap_or_default()).unwrap_or_default()
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}
