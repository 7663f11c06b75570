//! ECDSA on P-256 with SHA-256 (`ES256`).

use core::fmt;

use mcp_sansio::json::write::decode_base64;
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::sink::{BodyBuffer, MessageHead, SliceStorage, whole};
use p256::EncodedPoint;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::pkcs8::DecodePrivateKey;

use super::{Jwk, SignError, Signer, Verifier, write_bytes};

/// Length of a public key as JWK: the names of its members, and two times 43 characters.
const PUBLIC: usize = 126;

/// A private key on P-256, in memory. Its signatures need no randomness
/// ([RFC 6979](https://www.rfc-editor.org/rfc/rfc6979)).
#[derive(Clone)]
pub struct Es256Key<'k> {
    key: SigningKey,
    public: [u8; PUBLIC],
    id: Option<&'k str>,
}

/// The bytes or the text are not a private key on P-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not a private key on P-256")
    }
}

impl core::error::Error for KeyError {}

impl<'k> Es256Key<'k> {
    /// Makes a key of 32 bytes. For a new key, give secure random bytes.
    ///
    /// # Errors
    /// [`KeyError`] if the bytes are 0 or not below the order of the curve. Of random bytes fewer than one in 2³² are: take
    /// others then.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        SigningKey::from_slice(bytes).map_err(|_| KeyError).and_then(Self::new)
    }

    /// Reads a key as PKCS#8 in DER ([RFC 5208](https://www.rfc-editor.org/rfc/rfc5208)).
    ///
    /// # Errors
    /// [`KeyError`] if it is something else, also for keys of other algorithms.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, KeyError> {
        SigningKey::from_pkcs8_der(der).map_err(|_| KeyError).and_then(Self::new)
    }

    /// Reads a key as PKCS#8 in PEM: the text that begins with `-----BEGIN PRIVATE KEY-----`.
    ///
    /// # Errors
    /// As [`from_pkcs8_der`](Es256Key::from_pkcs8_der).
    pub fn from_pkcs8_pem(pem: &str) -> Result<Self, KeyError> {
        let (_, body) = pem.split_once("-----BEGIN PRIVATE KEY-----").ok_or(KeyError)?;
        let (body, _) = body.split_once("-----END PRIVATE KEY-----").ok_or(KeyError)?;
        let mut text = [0; 512];
        let mut len = 0;
        for byte in body.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            *text.get_mut(len).ok_or(KeyError)? = byte;
            len += 1;
        }
        let mut der = [0; 384];
        let len = decode_base64(text.get(..len).unwrap_or_default(), &mut der).ok_or(KeyError)?;
        Self::from_pkcs8_der(der.get(..len).unwrap_or_default())
    }

    /// Sets the name of the key, `kid`.
    #[must_use]
    pub fn key_id(self, id: &'k str) -> Self {
        Es256Key { id: Some(id), ..self }
    }

    fn new(key: SigningKey) -> Result<Self, KeyError> {
        let point = key.verifying_key().to_encoded_point(false);
        let (Some(x), Some(y)) = (point.x(), point.y()) else { return Err(KeyError) };
        let mut public = [0; PUBLIC];
        let mut out = BodyBuffer::new(SliceStorage::new(&mut public));
        let written = whole(&mut out, MessageHead::Result, |out| {
            let mut public = Object::open(out);
            public.text("crv", "P-256");
            public.text("kty", "EC");
            write_bytes(&mut public, "x", x);
            write_bytes(&mut public, "y", y);
            public.close();
        });
        written.map_err(|_| KeyError)?;
        Ok(Es256Key { key, public, id: None })
    }
}

// The key must not be in logs.
mcp_sansio::debug_fields!(impl for Es256Key<'_> { id });

impl Signer for Es256Key<'_> {
    fn algorithm(&self) -> &str {
        "ES256"
    }

    fn public_key(&self) -> Option<Raw<'_>> {
        Raw::parse(&self.public).ok()
    }

    fn key_id(&self) -> Option<&str> {
        self.id
    }

    fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<usize, SignError> {
        let signed: Signature = self.key.try_sign(message).map_err(|_| SignError::Key)?;
        let bytes = signed.to_bytes();
        signature.get_mut(..bytes.len()).ok_or(SignError::Full)?.copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// Checks signatures with ES256.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing to set")]
pub struct Es256;

impl Verifier for Es256 {
    fn supports(&self, algorithm: &str) -> bool {
        algorithm == "ES256"
    }

    fn verify(&self, _: &str, key: &Jwk<'_>, message: &[u8], signature: &[u8]) -> bool {
        let (mut x, mut y) = ([0; 32], [0; 32]);
        let has = |name, place: &mut [u8; 32]| key.bytes(name, place).is_some_and(|bytes| bytes.len() == 32);
        if !has("x", &mut x) || !has("y", &mut y) {
            return false;
        }
        // This also refuses points that are not on the curve.
        let point = EncodedPoint::from_affine_coordinates(&x.into(), &y.into(), false);
        let (Ok(key), Ok(signature)) = (VerifyingKey::from_encoded_point(&point), Signature::from_slice(signature))
        else {
            return false;
        };
        key.verify(message, &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Jwks, Jws, KeyHeader, client_assertion, sign};
    use super::*;

    /// RFC 7515, appendix A.3.
    const EXAMPLE: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvb\
        S9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    const EXAMPLE_KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;

    fn verifies(token: &str, key: &str) -> bool {
        let key = Jwk::new(Raw::parse(key.as_bytes()).unwrap()).unwrap();
        let mut space = [0; 512];
        Jws::parse(token, &mut space).is_ok_and(|jws| jws.verify(&[&Es256], &key))
    }

    #[test]
    fn the_example_of_rfc_7515() {
        assert!(verifies(EXAMPLE, EXAMPLE_KEY));
        let mut space = [0; 256];
        let jws = Jws::parse(EXAMPLE, &mut space).unwrap();
        assert!(jws.claims.get("iss").unwrap().text().unwrap().eq_str("joe"));
        // Any changed character breaks it.
        let bytes = EXAMPLE.as_bytes();
        for at in 0..bytes.len() {
            let mut changed = std::vec::Vec::from(bytes);
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(!verifies(std::str::from_utf8(&changed).unwrap(), EXAMPLE_KEY), "{at}");
        }
    }

    #[test]
    fn keys_that_are_none() {
        // Not on the curve; too short; another curve; a missing coordinate.
        for (from, to) in [("f83O", "g83O"), ("f83OJ3D2", "f83O"), ("P-256", "P-384"), ("\"y\"", "\"z\"")] {
            assert!(!verifies(EXAMPLE, &EXAMPLE_KEY.replace(from, to)), "{to}");
        }
        assert_eq!(Es256Key::from_bytes(&[0; 32]).map(drop), Err(KeyError));
        assert_eq!(Es256Key::from_bytes(&[255; 32]).map(drop), Err(KeyError));
    }

    #[test]
    fn signed_and_verified() {
        let key = Es256Key::from_bytes(&[7; 32]).unwrap().key_id("k1");
        let mut space = [0; 512];
        let token = sign(&key, "at+jwt", KeyHeader::Id, &mut |out| out.put(br#"{"a":1}"#), &mut space).unwrap();
        let public = key.public_key().unwrap();
        assert!(verifies(token, public.as_str()));
        let mut decoded = [0; 512];
        let jws = Jws::parse(token, &mut decoded).unwrap();
        assert!(jws.has_type("at+jwt") && jws.has_type("AT+JWT") && !jws.has_type("JWT"));
        let set = std::format!(
            r#"{{"keys":[7,{{"kty":"EC"}},{},{}]}}"#,
            public.as_str(),
            public.as_str().replace("{\"crv", "{\"kid\":\"k1\",\"crv")
        );
        let set = Jwks::parse(set.as_bytes()).unwrap();
        assert_eq!((set.keys().count(), set.keys_for(&jws).count()), (3, 1));
        assert!(set.keys_for(&jws).all(|key| jws.verify(&[&Es256], &key)));
        assert!(!std::format!("{key:?}").contains('7'));
    }

    #[test]
    fn assertions() {
        let key = Es256Key::from_bytes(&[7; 32]).unwrap();
        let mut space = [0; 512];
        let token = client_assertion(&key, "me \"1\"", "https://as", 1000, &[1; 16], &mut space).unwrap();
        let mut decoded = [0; 512];
        let jws = Jws::parse(token, &mut decoded).unwrap();
        let expected = r#"{"iss":"me \"1\"","sub":"me \"1\"","aud":"https://as","iat":1000,"exp":1060,"jti":"AQEBAQEBAQEBAQEBAQEBAQ"}"#;
        assert_eq!(jws.claims.as_str(), expected);
    }

    /// Written by `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`.
    #[test]
    fn pem() {
        let pem = "-----BEGIN PRIVATE KEY-----\n\
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAISm+6W9LTcFoqOx\n\
            ZAiFZT4U0O4z4nkccppoYWDceHShRANCAASkZWg2yvjCTboT+2346YytBVjCS3YP\n\
            9MFD5xA7BMBWzGObtMwcxPopXWvFnIT8KPPnCwfXeStX7PlaIrnXhind\n\
            -----END PRIVATE KEY-----\n";
        let key = Es256Key::from_pkcs8_pem(pem).unwrap();
        assert_eq!(
            key.public_key().unwrap().as_str(),
            r#"{"crv":"P-256","kty":"EC","x":"pGVoNsr4wk26E_tt-OmMrQVYwkt2D_TBQ-cQOwTAVsw","y":"Y5u0zBzE-ilda8WchPwo8-cLB9d5K1fs-VoiudeGKd0"}"#
        );
        assert!(Es256Key::from_pkcs8_pem(&pem.replace("MIG", "MIH")).is_err());
        assert!(Es256Key::from_pkcs8_pem("").is_err());
        assert!(Es256Key::from_pkcs8_pem("-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----").is_err());
    }
}
