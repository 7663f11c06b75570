//! A stand-in for a secure element, which has a key and signs with it.

use mcp_sansio::json::Raw;
use mcp_sansio_auth::jose::{Jwk, SignError, Signer, Verifier};
use sha2::{Digest, Sha256};

/// The public key. A real element gives it, and a program keeps it.
const PUBLIC_KEY: Raw<'static> = Raw::constant(
    r#"{"crv":"P-256","kty":"EC","x":"HhhTL9R1TALzBB2cdc6zO4P_2BrHzk_ogsyxyYvFiW4","y":"pGwxHE4v9A3ZajZT5uRURdMt_khuztdcepDGoYiBwKM"}"#,
);

/// A secure element without the element: a real driver sends the SHA-256 of the message over its bus and gets r and s back.
/// Here they are made of the same hash, so that the images have the size of programs with a driver, without the driver.
/// It protects nothing.
pub struct Element;

impl Element {
    fn signature(message: &[u8]) -> [u8; 64] {
        let digest = Sha256::digest(message);
        let mut signature = [0; 64];
        for (place, byte) in signature.iter_mut().zip(digest.iter().cycle()) {
            *place = !byte;
        }
        signature
    }
}

impl Signer for Element {
    fn algorithm(&self) -> &str {
        "ES256"
    }

    fn public_key(&self) -> Option<Raw<'_>> {
        Some(PUBLIC_KEY)
    }

    fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<usize, SignError> {
        let signed = Element::signature(message);
        signature.get_mut(..signed.len()).ok_or(SignError::Full)?.copy_from_slice(&signed);
        Ok(signed.len())
    }
}

impl Verifier for Element {
    fn supports(&self, algorithm: &str) -> bool {
        algorithm == "ES256"
    }

    fn verify(&self, _: &str, _: &Jwk<'_>, message: &[u8], signature: &[u8]) -> bool {
        signature == Element::signature(message)
    }
}
