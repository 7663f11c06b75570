//! Proof key for code exchange ([RFC 7636](https://www.rfc-editor.org/rfc/rfc7636)), with `S256`.

use core::fmt;

use mcp_sansio::json::write::base64url;
use mcp_sansio::sink::{BodyBuffer, SliceStorage};
use sha2::{Digest, Sha256};

/// A `code_verifier`: 43 characters of 32 random bytes. [`Debug`](fmt::Debug) does not show it.
///
/// ```
/// use mcp_sansio_auth::pkce::CodeVerifier;
/// let verifier = CodeVerifier::new(&[7; 32]); // better: secure random bytes, new for each request
/// assert_eq!(verifier.as_str(), "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc");
/// assert_eq!(verifier.challenge().as_str().len(), 43);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CodeVerifier(Base64Of32);

impl CodeVerifier {
    /// Makes a verifier of secure random bytes.
    #[must_use]
    pub fn new(random: &[u8; 32]) -> Self {
        CodeVerifier(Base64Of32::new(random))
    }

    /// Returns the text of `code_verifier`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the `code_challenge` for `code_challenge_method=S256`.
    #[must_use]
    pub fn challenge(&self) -> Base64Of32 {
        sha256_base64url(self.as_str())
    }
}

impl fmt::Debug for CodeVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeVerifier(…)")
    }
}

/// Returns the SHA-256 of a text as base64url: `code_challenge` of a verifier, `ath` of a token.
#[must_use]
pub fn sha256_base64url(text: &str) -> Base64Of32 {
    Base64Of32::new(&Sha256::digest(text.as_bytes()).into())
}

/// 32 bytes as base64url: 43 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Base64Of32([u8; 43]);

impl Base64Of32 {
    /// Encodes 32 bytes.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        // 32 bytes need 43 characters: it cannot be full.
        let mut text = [b'A'; 43];
        let _ = base64url(&mut BodyBuffer::new(SliceStorage::new(&mut text)), bytes);
        Base64Of32(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Base64Of32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_vector_of_the_rfc() {
        let random = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        let verifier = CodeVerifier::new(&random);
        assert_eq!(verifier.as_str(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge().as_str(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(std::format!("{verifier:?}"), "CodeVerifier(…)");
    }
}
