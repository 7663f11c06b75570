//! Signed tokens: JWS in its compact form ([RFC 7515](https://www.rfc-editor.org/rfc/rfc7515)), JWK and JWK sets
//! ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517)), and the traits of keys. Nothing here allocates: the caller lends
//! the memory.
//!
//! [`Signer`] is a private key, wherever it is: in memory, in a secure element, in a TPM. [`Verifier`] checks signatures.
//! With the feature `es256` there are `Es256Key` and `Es256`, ECDSA on P-256; other algorithms are the caller's.

use mcp_sansio::FullError;
use mcp_sansio::json::write::{base64url, decode_base64url};
use mcp_sansio::json::{DecodeError, JsonKind, Object, ParseError, Raw, Text};
use mcp_sansio::sink::{BodyBuffer, MessageHead, Sink, SliceStorage, Storage, Writer, copy, whole};
use sha2::{Digest, Sha256};

use crate::time::UnixSeconds;

#[cfg(feature = "es256")]
mod es256;
#[cfg(feature = "es256")]
pub use es256::{Es256, Es256Key, KeyError};

/// Largest signature, in bytes: RSA with 4,096 bits.
pub const SIGNATURE_MAX: usize = 512;

/// A private key that signs. The key need not be in memory: an implementation may ask a secure element.
pub trait Signer {
    /// Returns the algorithm of its signatures, as in `alg`: `ES256`.
    fn algorithm(&self) -> &str;

    /// Returns the public key as a JWK that has no private member. `None` if the peer knows the key by other means; DPoP
    /// needs it.
    fn public_key(&self) -> Option<Raw<'_>>;

    /// Returns the name of the key, `kid`. Default: none.
    fn key_id(&self) -> Option<&str> {
        None
    }

    /// Signs `message`. Writes the signature to `signature`, in the form of
    /// [RFC 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3.4) (for ES256 r and s, 64 bytes), and returns its
    /// length.
    ///
    /// # Errors
    /// [`SignError::Key`] if the key cannot sign, [`SignError::Full`] if the signature is longer than `signature`.
    fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<usize, SignError>;
}

/// Checks signatures of one algorithm or of several. Implement it for algorithms that are not here, like RS256.
pub trait Verifier {
    /// Returns whether it checks signatures of an algorithm, as in `alg`. Symmetric algorithms and `none` never get
    /// here.
    fn supports(&self, algorithm: &str) -> bool;

    /// Returns whether `signature` is the signature of `message` by `key`. `algorithm` is one that it supports, and `key`
    /// [fits](Jwk::fits) it.
    fn verify(&self, algorithm: &str, key: &Jwk<'_>, message: &[u8], signature: &[u8]) -> bool;
}

mcp_sansio::error_enum! {
    /// The reason why nothing was signed.
    SignError {
        /// The lent memory is too small.
        Full => "the signed token does not fit the memory that was lent for it",
        /// The key cannot sign, or has no public key where one is needed.
        Key => "the key cannot sign",
    }
}

impl From<FullError> for SignError {
    fn from(_: FullError) -> Self {
        SignError::Full
    }
}

/// The place of the public key in the header of a JWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHeader {
    /// `kid`, if the signer has one.
    Id,
    /// `jwk`, the whole key.
    Jwk,
}

/// Signs the claims that `claims` writes, a JSON object, as a compact JWS with the type `typ`. Writes it to `space` and
/// returns it.
///
/// ```
/// # #[cfg(feature = "es256")] {
/// use mcp_sansio_auth::jose::{Es256Key, KeyHeader, sign};
///
/// let key = Es256Key::from_bytes(&[7; 32])?; // better: secure random bytes
/// let mut space = [0; 512];
/// let token = sign(&key, "JWT", KeyHeader::Id, &mut |out| out.put(br#"{"sub":"ann"}"#), &mut space)?;
/// assert!(token.starts_with("eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ."));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`SignError`]: `space` is too small, or the key cannot sign.
pub fn sign<'b>(
    signer: &dyn Signer,
    typ: &str,
    header: KeyHeader,
    claims: &mut dyn FnMut(&mut Writer<'_>),
    space: &'b mut [u8],
) -> Result<&'b str, SignError> {
    let key = if header == KeyHeader::Jwk { Some(signer.public_key().ok_or(SignError::Key)?) } else { None };
    let mut header = |out: &mut Writer<'_>| {
        let mut header = Object::open(out);
        header.text("typ", typ);
        header.text("alg", signer.algorithm());
        match key {
            Some(key) => header.raw("jwk", key),
            None => header.text_if("kid", signer.key_id()),
        }
        header.close();
    };
    let dot = encode(space, 0, &mut header)?;
    *space.get_mut(dot).ok_or(SignError::Full)? = b'.';
    let end = encode(space, dot + 1, claims)?;
    let (signed, rest) = space.split_at_mut_checked(end).ok_or(SignError::Full)?;
    let mut signature = [0; SIGNATURE_MAX];
    let len = signer.sign(signed, &mut signature)?;
    let mut out = BodyBuffer::new(SliceStorage::new(rest));
    out.put(b".")?;
    base64url(&mut out, signature.get(..len).ok_or(SignError::Key)?)?;
    let len = end + out.storage.bytes().len();
    space.get(..len).and_then(|token| core::str::from_utf8(token).ok()).ok_or(SignError::Full)
}

/// Writes JSON to `space` from `from` on, as base64url. Returns the end of it.
fn encode(space: &mut [u8], from: usize, json: &mut dyn FnMut(&mut Writer<'_>)) -> Result<usize, FullError> {
    let place = space.get_mut(from..).ok_or(FullError::Never)?;
    let mut out = BodyBuffer::new(SliceStorage::new(place));
    whole(&mut out, MessageHead::Result, |out| json(out))?;
    let len = out.storage.bytes().len();
    // In place, from the last three bytes on: their four characters lie behind all that is still to be read.
    for group in (0..len.div_ceil(3)).rev() {
        let (mut three, bytes) = ([0; 3], place.get(3 * group..len).unwrap_or_default());
        copy(&mut three, bytes);
        let count = bytes.len().min(3);
        let mut out = BodyBuffer::new(SliceStorage::new(place.get_mut(4 * group..).unwrap_or_default()));
        base64url(&mut out, three.get(..count).unwrap_or_default())?;
    }
    Ok(from + (4 * len).div_ceil(3))
}

/// Signs the assertion by which a client authenticates at a token endpoint (`private_key_jwt`,
/// [RFC 7523](https://www.rfc-editor.org/rfc/rfc7523#section-3)): `iss` and `sub` are `client`, `aud` is `audience`, the
/// issuer of the authorization server. `random` is 16 secure random bytes, new for each assertion; the assertion is valid
/// for one minute from `now`.
///
/// # Errors
/// [`SignError`]: `space` is too small, or the key cannot sign.
pub fn client_assertion<'b>(
    signer: &dyn Signer,
    client: &str,
    audience: &str,
    now: UnixSeconds,
    random: &[u8; 16],
    space: &'b mut [u8],
) -> Result<&'b str, SignError> {
    let mut claims = |out: &mut Writer<'_>| {
        let mut claims = Object::open(out);
        claims.text("iss", client);
        claims.text("sub", client);
        claims.text("aud", audience);
        claims.number("iat", now);
        claims.number("exp", now.saturating_add(60));
        write_bytes(&mut claims, "jti", random);
        claims.close();
    };
    sign(signer, "JWT", KeyHeader::Id, &mut claims, space)
}

/// Writes a member whose value is bytes, as base64url.
pub(crate) fn write_bytes(object: &mut Object<'_, '_>, key: &str, bytes: &[u8]) {
    let out = object.key(key);
    out.put(b"\"");
    out.write(|out| base64url(out, bytes));
    out.put(b"\"");
}

mcp_sansio::error_enum! {
    /// The reason why a text is not a JWS that can be read.
    JwsError {
        /// It is not three parts in base64url, of which the first two are JSON objects, or it has no `alg`.
        Malformed => "the token is not a signed JWT",
        /// The decoded parts are larger than the lent memory.
        TooLong => "the token is too long",
        /// The header has `crit`: it demands an extension, and none is known here.
        Critical => "the token demands an extension that is not known",
    }
}

/// A JWS that was taken apart. Its claims are worth nothing before [`verify`](Jws::verify).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Jws<'t> {
    /// The header.
    pub header: Raw<'t>,
    /// The claims. Verify the signature before you believe them.
    pub claims: Raw<'t>,
    /// `alg` of the header.
    pub algorithm: &'t str,
    signed: &'t [u8],
    signature: &'t [u8],
}

impl<'t> Jws<'t> {
    /// Takes a compact JWS with JSON claims apart. The decoded parts are kept in `space`: three quarters of the length
    /// of `token` suffice.
    ///
    /// # Errors
    /// [`JwsError`]: it is something else, too long, or demands an extension.
    pub fn parse(token: &'t str, space: &'t mut [u8]) -> Result<Self, JwsError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(JwsError::Malformed)?;
        let (header, space) = decode(header, space)?;
        let (claims, space) = decode(claims, space)?;
        let (signature, _) = decode(signature, space)?;
        let object =
            |bytes| Raw::parse(bytes).ok().filter(|raw| raw.kind() == JsonKind::Object).ok_or(JwsError::Malformed);
        let (header, claims) = (object(header)?, object(claims)?);
        if header.get("crit").is_some() {
            return Err(JwsError::Critical);
        }
        let algorithm = header.get("alg").and_then(|alg| alg.text()?.plain()).ok_or(JwsError::Malformed)?;
        Ok(Jws { header, claims, algorithm, signed: signed.as_bytes(), signature })
    }

    /// Returns whether `typ` of the header is `typ`, in any case, with or without `application/`.
    #[must_use]
    pub fn has_type(&self, typ: &str) -> bool {
        let given = self.header.get("typ").and_then(|given| given.text()?.plain()).unwrap_or_default();
        let bare = given
            .get(..12)
            .filter(|start| start.eq_ignore_ascii_case("application/"))
            .map_or(given, |_| given.get(12..).unwrap_or_default());
        bare.eq_ignore_ascii_case(typ)
    }

    /// Returns the first of `verifiers` that may check the signature: its algorithm is asymmetric, and the verifier
    /// supports it.
    #[must_use]
    pub fn verifier<'v>(&self, verifiers: &[&'v dyn Verifier]) -> Option<&'v dyn Verifier> {
        let known = !is_symmetric(self.algorithm);
        verifiers.iter().copied().find(|verifier| known && verifier.supports(self.algorithm))
    }

    /// Returns whether the signature is one by `key`, with an algorithm of `verifiers`.
    #[must_use]
    pub fn verify(&self, verifiers: &[&dyn Verifier], key: &Jwk<'_>) -> bool {
        let verifier = self.verifier(verifiers).filter(|_| key.fits(self.algorithm));
        verifier.is_some_and(|verifier| verifier.verify(self.algorithm, key, self.signed, self.signature))
    }
}

/// Decodes one part into the front of `space`. Returns it, and the rest of the space.
fn decode<'s>(part: &str, space: &'s mut [u8]) -> Result<(&'s [u8], &'s mut [u8]), JwsError> {
    // The exact length of a good part. Of a bad one `decode_base64url` thinks otherwise.
    let len = part.len() / 4 * 3 + (part.len() % 4).saturating_sub(1);
    let (place, rest) = space.split_at_mut_checked(len).ok_or(JwsError::TooLong)?;
    match decode_base64url(part.as_bytes(), place) {
        Some(decoded) if decoded == len => Ok((place, rest)),
        _ => Err(JwsError::Malformed),
    }
}

/// Returns whether an algorithm needs no private key: everybody who can check such a signature can make one.
fn is_symmetric(algorithm: &str) -> bool {
    let family = algorithm.get(..2).unwrap_or_default();
    family.eq_ignore_ascii_case("HS") || algorithm.eq_ignore_ascii_case("none")
}

/// A key as JSON (JWK).
#[derive(Clone, Copy, Debug)]
pub struct Jwk<'k>(Raw<'k>);

impl<'k> Jwk<'k> {
    /// Takes a JSON value as a key; `None` if it is no object with a `kty`.
    #[must_use]
    pub fn new(value: Raw<'k>) -> Option<Self> {
        let key = Jwk(value);
        key.text("kty").is_some().then_some(key)
    }

    /// Returns the JSON object.
    #[must_use]
    pub const fn raw(&self) -> Raw<'k> {
        self.0
    }

    /// Returns a string member.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Text<'k>> {
        self.0.get(name)?.text()
    }

    /// Returns the decoded bytes of a member in base64url, like `x` or `n`. Writes them to `space`.
    #[must_use]
    pub fn bytes<'s>(&self, name: &str, space: &'s mut [u8]) -> Option<&'s [u8]> {
        let len = decode_base64url(self.text(name)?.plain()?.as_bytes(), space)?;
        space.get(..len)
    }

    /// Returns whether it has a member that only the owner of the key may know, or is a shared secret.
    #[must_use]
    pub fn is_private(&self) -> bool {
        let mut members = self.0.members();
        members.any(|(name, _)| ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"].iter().any(|p| name.eq_str(p)))
    }

    /// Returns whether it may be used to check signatures of an algorithm: `kty` and `crv` belong to it, and `alg`,
    /// `use` and `key_ops` allow it, where they are there.
    #[must_use]
    pub fn fits(&self, algorithm: &str) -> bool {
        let is = |name: &str, value: &str| self.text(name).is_some_and(|text| text.eq_str(value));
        let allows = |name: &str, value: &str| self.0.get(name).is_none() || is(name, value);
        let kind = match algorithm {
            "ES256" => is("kty", "EC") && is("crv", "P-256"),
            "ES384" => is("kty", "EC") && is("crv", "P-384"),
            "ES512" => is("kty", "EC") && is("crv", "P-521"),
            "RS256" | "RS384" | "RS512" | "PS256" | "PS384" | "PS512" => is("kty", "RSA"),
            "EdDSA" | "Ed25519" | "Ed448" => is("kty", "OKP"),
            _ => !is("kty", "oct"),
        };
        let verifies = |item: Raw<'_>| item.text().is_some_and(|text| text.eq_str("verify"));
        let operations = self.0.get("key_ops").is_none_or(|operations| operations.items().any(verifies));
        kind && operations && allows("alg", algorithm) && allows("use", "sig")
    }

    /// Returns its thumbprint ([RFC 7638](https://www.rfc-editor.org/rfc/rfc7638)): SHA-256 over the members that make the
    /// key. `None` if one is missing, or the `kty` is not EC, RSA or OKP.
    #[must_use]
    pub fn thumbprint(&self) -> Option<[u8; 32]> {
        let names: &[&str] = match self.text("kty")?.plain()? {
            "EC" => &["crv", "kty", "x", "y"],
            "RSA" => &["e", "kty", "n"],
            "OKP" => &["crv", "kty", "x"],
            _ => return None,
        };
        let mut hash = Sha256::new();
        let mut before = "{\"";
        for name in names {
            // The values of these members never need an escape.
            let value = self.text(name)?.plain()?;
            for part in [before, name, "\":\"", value, "\""] {
                hash.update(part.as_bytes());
            }
            before = ",\"";
        }
        hash.update(b"}");
        Some(hash.finalize().into())
    }
}

/// A set of keys (JWK Set).
#[derive(Clone, Copy, Debug, Default)]
pub struct Jwks<'k> {
    keys: Option<Raw<'k>>,
}

impl<'k> Jwks<'k> {
    /// The set without keys.
    pub const EMPTY: Jwks<'static> = Jwks { keys: None };

    /// Reads a JWK Set, an object with `keys`. Values in it that are no keys are passed over.
    ///
    /// # Errors
    /// [`ParseError`] if it is not JSON. An object without `keys` is an empty set.
    pub fn parse(text: &'k [u8]) -> Result<Self, ParseError> {
        Ok(Jwks { keys: Raw::parse(text)?.get("keys") })
    }

    /// Returns its keys.
    pub fn keys(&self) -> impl Iterator<Item = Jwk<'k>> + use<'k> {
        self.keys.into_iter().flat_map(|keys| keys.items()).filter_map(Jwk::new)
    }

    /// Returns the keys that may have signed `jws`: those that fit its algorithm and, if it names a key by `kid`, have
    /// this name.
    pub fn keys_for<'j>(&self, jws: &'j Jws<'_>) -> impl Iterator<Item = Jwk<'k>> + use<'j, 'k> {
        let id = jws.header.get("kid").and_then(|id| id.text());
        let algorithm = jws.algorithm;
        self.keys().filter(move |key| {
            let is_named = id.is_none_or(|id| key.text("kid").is_some_and(|known| known.same(&id)));
            is_named && key.fits(algorithm)
        })
    }
}

/// Adds a text to a hash as it is when decoded, so that its escapes do not count.
///
/// # Errors
/// [`DecodeError`] if it has a lone surrogate. The hash is of no use then.
pub(crate) fn hash_text(hash: &mut Sha256, text: &Text<'_>) -> Result<(), DecodeError> {
    for character in text.chars() {
        hash.update(character?.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(())
}

/// Reads a `NumericDate`: seconds since 1970, without the digits behind the point. `None` for anything else, also for
/// times before 1970.
#[must_use]
pub fn numeric_date(value: Raw<'_>) -> Option<UnixSeconds> {
    let text = core::str::from_utf8(value.as_bytes()).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if value.kind() != JsonKind::Number || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;
    use crate::pkce::{Base64Of32, sha256_base64url};
    use mcp_sansio::sink::LineSink;

    #[test]
    fn thumbprint_of_rfc_9449() {
        let text = br#"{"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
            "y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","crv":"P-256","kid":"not a part of it"}"#;
        let key = Jwk::new(Raw::parse(text).unwrap()).unwrap();
        let thumbprint = Base64Of32::new(&key.thumbprint().unwrap());
        assert_eq!(thumbprint.as_str(), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
        assert!(key.fits("ES256") && !key.fits("ES384") && !key.fits("RS256") && !key.is_private());
    }

    #[test]
    fn the_hash_of_rfc_9449() {
        let ath = sha256_base64url("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
        assert_eq!(ath.as_str(), "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
    }

    #[test]
    fn keys_that_do_not_fit() {
        let fits = |text: &str, algorithm| {
            Jwk::new(Raw::parse(text.as_bytes()).unwrap()).is_some_and(|key| key.fits(algorithm))
        };
        assert!(fits(r#"{"kty":"RSA","n":"AQ","e":"AQAB","use":"sig","alg":"RS256"}"#, "RS256"));
        assert!(fits(r#"{"kty":"RSA","key_ops":["verify"]}"#, "PS256"));
        assert!(fits(r#"{"kty":"OKP","crv":"Ed25519"}"#, "EdDSA"));
        for (algorithm, curve) in [("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521")] {
            for (kind, found) in [("EC", "P-256"), ("EC", "P-384"), ("EC", "P-521"), ("RSA", curve)] {
                let key = std::format!(r#"{{"kty":"{kind}","crv":"{found}"}}"#);
                assert_eq!(fits(&key, algorithm), kind == "EC" && found == curve, "{key} {algorithm}");
            }
        }
        for (text, algorithm) in [
            (r#"{"kty":"RSA","alg":"RS256"}"#, "RS512"),
            (r#"{"kty":"RSA","use":"enc"}"#, "RS256"),
            (r#"{"kty":"RSA","key_ops":["encrypt"]}"#, "RS256"),
            (r#"{"kty":"oct","k":"AQ"}"#, "RS256"),
            (r#"{"kty":"oct","k":"AQ"}"#, "XX"),
            (r#"{"kty":"EC","crv":"P-384"}"#, "ES256"),
            (r#"{"kty":"RSA"}"#, "EdDSA"),
            (r#"{"kty":7}"#, "ES256"),
            (r#"["kty"]"#, "ES256"),
        ] {
            assert!(!fits(text, algorithm), "{text} {algorithm}");
        }
    }

    #[test]
    fn texts_that_are_no_jws() {
        let parse = |token: &str| Jws::parse(token, &mut [0; 64]).map(drop);
        assert_eq!(parse("eyJhbGciOiJub25lIn0.e30."), Ok(()));
        for bad in [
            "",
            ".",
            "..",
            "eyJhbGciOiJub25lIn0.e30",
            "eyJhbGciOiJub25lIn0.e30.=",
            "eyJhbGciOiJub25lIn0.e30..",
            "e30.e30.",
            "W10.e30.",
            "eyJhbGciOiJub25lIn0.W10.",
            "eyJhbGciOiJub25lIn0.e30.Zg==",
            "eyJhbGciOiJub25lIn0.\u{e9}.Zg",
        ] {
            assert_eq!(parse(bad), Err(JwsError::Malformed), "{bad}");
        }
        assert_eq!(Jws::parse("eyJhbGciOiJub25lIn0.e30.", &mut [0; 15]).map(drop), Err(JwsError::TooLong));
        // {"alg":"ES256","crit":["b64"]}
        assert_eq!(parse("eyJhbGciOiJFUzI1NiIsImNyaXQiOlsiYjY0Il19.e30."), Err(JwsError::Critical));
    }

    struct Trusting;

    impl Verifier for Trusting {
        fn supports(&self, _: &str) -> bool {
            true
        }
        fn verify(&self, _: &str, _: &Jwk<'_>, _: &[u8], _: &[u8]) -> bool {
            true
        }
    }

    /// Not even a verifier that takes everything is asked about algorithms without a private key.
    #[test]
    fn symmetric_algorithms_are_refused() {
        let key = Raw::constant(r#"{"kty":"RSA","n":"AQ","e":"AQAB"}"#);
        let key = Jwk::new(key).unwrap();
        for (header, good) in
            [("RS256", true), ("HS256", false), ("none", false), ("None", false), ("hs512", false), ("NONE", false)]
        {
            let mut space = [0; 64];
            let end = encode(&mut space, 0, &mut |out| {
                let mut members = Object::open(out);
                members.text("alg", header);
                members.close();
            });
            let token = std::format!("{}.e30.AQ", core::str::from_utf8(&space[..end.unwrap()]).unwrap());
            let mut decoded = [0; 64];
            let jws = Jws::parse(&token, &mut decoded).unwrap();
            assert_eq!(jws.verify(&[&Trusting], &key), good, "{header}");
        }
    }

    #[test]
    fn dates() {
        let date = |text: &str| numeric_date(Raw::parse(text.as_bytes()).unwrap());
        assert_eq!((date("0"), date("1700000000"), date("17.9")), (Some(0), Some(1_700_000_000), Some(17)));
        for bad in ["-1", "1e9", "1.5e9", "\"5\"", "null", "99999999999999999999", "{}"] {
            assert_eq!(date(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_sink_that_is_too_small() {
        struct Fixed;
        impl Signer for Fixed {
            fn algorithm(&self) -> &str {
                "X"
            }
            fn public_key(&self) -> Option<Raw<'_>> {
                None
            }
            fn sign(&self, _: &[u8], signature: &mut [u8]) -> Result<usize, SignError> {
                signature.fill(1);
                Ok(3)
            }
        }
        let mut space = [0; 64];
        let mut claims = |out: &mut Writer<'_>| out.put(b"{}");
        let whole = sign(&Fixed, "JWT", KeyHeader::Id, &mut claims, &mut space).unwrap().len();
        for len in 0..whole {
            assert_eq!(
                sign(&Fixed, "JWT", KeyHeader::Id, &mut claims, &mut space[..len]),
                Err(SignError::Full),
                "{len}"
            );
        }
        assert!(sign(&Fixed, "JWT", KeyHeader::Id, &mut claims, &mut space[..whole]).is_ok());
        assert_eq!(sign(&Fixed, "JWT", KeyHeader::Jwk, &mut claims, &mut space), Err(SignError::Key));
    }

    /// Encodes texts of each length in place; the bytes before and behind them stay.
    #[test]
    fn json_becomes_base64_in_place() {
        let json: Vec<u8> = (0..40).collect();
        for len in 0..json.len() {
            let mut expected = LineSink::new(Vec::new());
            base64url(&mut expected, &json[..len]).unwrap();
            let expected = expected.into_inner();
            let mut space = vec![7; 3 + expected.len() + 2];
            assert_eq!(encode(&mut space, 3, &mut |out| out.put(&json[..len])), Ok(3 + expected.len()), "{len}");
            assert_eq!(space, [&[7; 3], &expected[..], &[7; 2]].concat(), "{len}");
            let mut small = vec![0; 2 + expected.len()];
            assert!(encode(&mut small, 3, &mut |out| out.put(&json[..len])).is_err(), "{len}");
        }
    }
}
