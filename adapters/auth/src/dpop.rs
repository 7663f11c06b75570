//! Proofs of possession ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449), DPoP): a client signs each request with a
//! key, and its access token is good only together with such a proof.
//!
//! A client writes a [`Proof`] for each HTTP request. A resource server checks it with [`ProofCheck`], and remembers it in
//! a [`ReplayTable`] so that it is not accepted twice.

use mcp_sansio::json::{JsonKind, Object, Raw, Text};
use mcp_sansio::memory::Slots;
use mcp_sansio::sink::Writer;
use mcp_sansio_http::client::Url;
use sha2::{Digest, Sha256};

mod nonces;

use crate::jose::{Jwk, Jws, JwsError, KeyHeader, SignError, Signer, Verifier, hash_text, sign, write_bytes};
use crate::pkce::{Base64Of32, sha256_base64url};
use crate::time::UnixSeconds;

pub use nonces::{NONCE_TEXT, Nonces};

/// The proof for one HTTP request. Also a request that is sent again needs a new one.
///
/// ```
/// # #[cfg(feature = "es256")] {
/// use mcp_sansio_auth::dpop::Proof;
/// use mcp_sansio_auth::jose::Es256Key;
///
/// let key = Es256Key::from_bytes(&[7; 32])?; // better: secure random bytes, and kept as long as the token
/// let random = [1; 16]; // better: secure random bytes, new for each proof
/// let mut space = [0; 1024];
/// let proof = Proof::new("POST", "https://example.com/mcp?x=1", 1_700_000_000, &random).access_token("token");
/// let header = proof.sign(&key, &mut space)?; // DPoP: …
/// assert_eq!(header.split('.').count(), 3);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Proof<'p> {
    method: &'p str,
    url: &'p str,
    now: UnixSeconds,
    random: &'p [u8; 16],
    access_token: Option<&'p str>,
    nonce: Option<&'p str>,
}

impl<'p> Proof<'p> {
    /// Makes the proof for a request of `method` to `url`, made at `now`. `random` is 16 secure random bytes, new for each
    /// proof (`jti`).
    #[must_use]
    pub const fn new(method: &'p str, url: &'p str, now: UnixSeconds, random: &'p [u8; 16]) -> Self {
        Proof { method, url, now, random, access_token: None, nonce: None }
    }

    mcp_sansio::const_setters! {
        /// Sets the access token that goes with the request (`ath`). None goes to the token endpoint.
        #[must_use]
        access_token(token: &'p str) => access_token = Some(token);
        /// Sets the newest nonce that this server has sent in `DPoP-Nonce`.
        #[must_use]
        nonce(nonce: &'p str) => nonce = Some(nonce);
    }

    /// Signs it: the value of the header `DPoP`. Writes it to `space`, of which 1,024 bytes suffice for ES256 and URLs of
    /// 255 bytes.
    ///
    /// # Errors
    /// [`SignError`]: `space` is too small, or the key has no public key or cannot sign.
    pub fn sign<'b>(&self, signer: &dyn Signer, space: &'b mut [u8]) -> Result<&'b str, SignError> {
        let mut claims = |out: &mut Writer<'_>| {
            let mut claims = Object::open(out);
            write_bytes(&mut claims, "jti", self.random);
            claims.text("htm", self.method);
            claims.text("htu", bare(self.url));
            claims.number("iat", self.now);
            claims.text_if("ath", self.access_token.map(sha256_base64url).as_ref().map(Base64Of32::as_str));
            claims.text_if("nonce", self.nonce);
            claims.close();
        };
        sign(signer, "dpop+jwt", KeyHeader::Jwk, &mut claims, space)
    }
}

// The token must not be in logs.
mcp_sansio::debug_fields!(impl for Proof<'_> { method, url });

/// Returns a URL without its query and fragment.
fn bare(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

mcp_sansio::error_enum! {
    /// The reason why a proof is not accepted.
    ProofError {
        /// There is no `DPoP` header.
        Missing => "the DPoP proof is missing",
        /// There are several `DPoP` headers.
        Several => "there are several DPoP proofs",
        /// It is not a JWS that can be read.
        Jws(error: JwsError) => "{error}",
        /// `typ` is not `dpop+jwt`.
        Type => "the type of the proof is not dpop+jwt",
        /// A claim is missing, or has another type than it must have.
        Claims => "the proof lacks a claim",
        /// The algorithm is not one of the verifiers'.
        Algorithm => "the algorithm of the proof is not accepted",
        /// `jwk` is missing, unusable, or has a private member.
        Key => "the proof has no public key that can be used",
        /// The signature is not by `jwk`.
        Signature => "the signature of the proof is wrong",
        /// `htm` is another method.
        Method => "the proof is for another method",
        /// `htu` is another URL.
        Url => "the proof is for another URL",
        /// `nonce` is missing or not one that is valid now. The answer has a new one in `DPoP-Nonce`.
        Nonce => "the proof needs the nonce of this answer",
        /// `iat` is too far from the server's time.
        Time => "the proof is too old, or from the future",
        /// `ath` is not the hash of the access token.
        AccessToken => "the proof is for another access token",
        /// The key is another than the one that the access token is bound to.
        Binding => "the access token is bound to another key",
        /// The proof was used before.
        Replayed => "the proof was used before",
        /// The table of used proofs is full: no proof can be accepted now.
        TableFull => "no more proofs can be checked now",
    }
}

impl ProofError {
    /// Returns `error` of the challenge.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            ProofError::Nonce => "use_dpop_nonce",
            _ => "invalid_dpop_proof",
        }
    }
}

/// The demands of a resource server on the proof of one request.
#[derive(Clone, Copy)]
#[must_use]
pub struct ProofCheck<'c> {
    method: &'c str,
    url: &'c str,
    access_token: &'c str,
    thumbprint: &'c [u8; 32],
    now: UnixSeconds,
    window: UnixSeconds,
    nonce: Option<&'c dyn Fn(&str) -> bool>,
}

impl<'c> ProofCheck<'c> {
    /// Makes the check for a request of `method` to `url` at `now`, with an access token that is bound to the key with
    /// this thumbprint (`cnf.jkt`). `url` is the server's own idea of its URL, not one from the request.
    pub const fn new(
        method: &'c str,
        url: &'c str,
        access_token: &'c str,
        thumbprint: &'c [u8; 32],
        now: UnixSeconds,
    ) -> Self {
        ProofCheck { method, url, access_token, thumbprint, now, window: 300, nonce: None }
    }

    mcp_sansio::const_setters! {
        /// Sets how far `iat` may be from the time of the server, in seconds, both ways. Default: 300, as the profile of MCP
        /// has it.
        window(seconds: UnixSeconds) => window = seconds;
        /// Demands a nonce. `accepts` returns whether a nonce is valid now.
        nonce(accepts: &'c dyn Fn(&str) -> bool) => nonce = Some(accepts);
    }

    /// Checks a proof, the value of the only `DPoP` header, in the order of
    /// [RFC 9449, section 4.3](https://www.rfc-editor.org/rfc/rfc9449#section-4.3). Notes it in `table` if all is well. The
    /// decoded parts are kept in `space`: three quarters of the length of the proof suffice.
    ///
    /// # Errors
    /// [`ProofError`] with the first reason. The table is then unchanged.
    pub fn check(
        &self,
        proof: &str,
        verifiers: &[&dyn Verifier],
        table: &mut ReplayTable<'_>,
        space: &mut [u8],
    ) -> Result<(), ProofError> {
        let jws = Jws::parse(proof, space).map_err(ProofError::Jws)?;
        let claims = jws.claims;
        let text = |name: &str| claims.get(name).and_then(|value| value.text()).ok_or(ProofError::Claims);
        let (id, method, url) = (text("jti")?, text("htm")?, text("htu")?);
        let issued = claims.get("iat").and_then(crate::jose::numeric_date).ok_or(ProofError::Claims)?;
        if id.raw().is_empty() {
            return Err(ProofError::Claims);
        }
        if !jws.has_type("dpop+jwt") {
            return Err(ProofError::Type);
        }
        let verifier = jws.verifier(verifiers).ok_or(ProofError::Algorithm)?;
        let key = jws.header.get("jwk").filter(|key| key.kind() == JsonKind::Object).and_then(Jwk::new);
        let key = key.filter(|key| !key.is_private() && key.fits(jws.algorithm)).ok_or(ProofError::Key)?;
        if !jws.verify(&[verifier], &key) {
            return Err(ProofError::Signature);
        }
        if !method.eq_str(self.method) {
            return Err(ProofError::Method);
        }
        if !url.plain().is_some_and(|url| is_same_url(url, self.url)) && !is_escaped_url(url, self.url) {
            return Err(ProofError::Url);
        }
        if let Some(accepts) = self.nonce {
            // Room for escapes in it, as in `\/`.
            let mut space = [0; 128];
            let nonce = claims.get("nonce").and_then(|nonce| nonce.text()?.decode(&mut space).ok());
            nonce.filter(|nonce| accepts(nonce)).ok_or(ProofError::Nonce)?;
        }
        if issued.abs_diff(self.now) > self.window {
            return Err(ProofError::Time);
        }
        let hash = sha256_base64url(self.access_token);
        if !claims.get("ath").and_then(|ath| ath.text()).is_some_and(|ath| ath.eq_str(hash.as_str())) {
            return Err(ProofError::AccessToken);
        }
        if key.thumbprint().as_ref() != Some(self.thumbprint) {
            return Err(ProofError::Binding);
        }
        table.note(self.thumbprint, &id, issued.saturating_add(self.window), self.now)
    }
}

mcp_sansio::debug_fields!(impl for ProofCheck<'_> { method, url });

/// Returns whether a URL is `own`, both without query and fragment: the same origin, and the same path.
fn is_same_url(url: &str, own: &str) -> bool {
    let (Ok(url), Ok(own)) = (Url::parse(bare(url)), Url::parse(bare(own))) else { return false };
    url.is_same_origin(&own) && url.target() == own.target()
}

/// Compares a URL with JSON escapes, like `https:\/\/…`. It must then be written exactly as `own` is.
fn is_escaped_url(url: Text<'_>, own: &str) -> bool {
    url.eq_str(bare(own))
}

/// Proofs that were used and are not too old yet, in lent memory or in memory that grows to a limit. A server needs as
/// many entries as requests may come within twice the window, 10 minutes by default. With a full table, proofs are
/// refused.
///
/// A look through the table takes time in proportion to its size: some 2 µs for 1,000 entries on a computer.
///
/// The table is empty after a restart: for twice the window a proof from before could be used again. Where that matters,
/// demand [nonces](Nonces) with a new key.
#[derive(Debug)]
pub struct ReplayTable<'m> {
    entries: Slots<'m, ReplayEntry>,
}

/// One entry of a [`ReplayTable`].
#[derive(Clone, Copy, Debug)]
pub struct ReplayEntry {
    /// The first half of a SHA-256 hash.
    hash: [u8; 16],
    /// The last second in which the proof could be used again; 0 for a free entry.
    until: UnixSeconds,
}

impl ReplayEntry {
    /// A free entry.
    pub const FREE: ReplayEntry = ReplayEntry { hash: [0; 16], until: 0 };
}

impl<'m> ReplayTable<'m> {
    /// Makes a table over entries, which are [free](ReplayEntry::FREE).
    pub fn new(entries: impl Into<Slots<'m, ReplayEntry>>) -> Self {
        ReplayTable { entries: entries.into() }
    }

    /// Notes the `jti` of a key, which could be used again up to the second `until`.
    fn note(
        &mut self,
        thumbprint: &[u8; 32],
        id: &Text<'_>,
        until: UnixSeconds,
        now: UnixSeconds,
    ) -> Result<(), ProofError> {
        let mut hash = Sha256::new();
        hash.update(thumbprint);
        hash_text(&mut hash, id).map_err(|_| ProofError::Claims)?;
        let digest: [u8; 32] = hash.finalize().into();
        let hash = *digest.first_chunk().unwrap_or(&[0; 16]);
        // An entry in its last second still counts, hence the comparison of `find_free` below.
        if self.entries.iter().any(|entry| entry.until >= now && entry.until > 0 && entry.hash == hash) {
            return Err(ProofError::Replayed);
        }
        let free = |entry: &ReplayEntry| entry.until < now || entry.until == 0;
        let at = self.entries.find_free(free, || ReplayEntry::FREE).ok_or(ProofError::TableFull)?;
        if let Some(entry) = self.entries.get_mut(at) {
            *entry = ReplayEntry { hash, until: until.max(1) };
        }
        Ok(())
    }
}

/// Reads the thumbprint that an access token is bound to, `cnf.jkt` of its claims.
#[must_use]
pub fn bound_thumbprint(claims: Raw<'_>) -> Option<[u8; 32]> {
    let mut thumbprint = [0; 32];
    // A hash of SHA-256 has 43 characters.
    let mut space = [0; 43];
    let text = claims.get("cnf")?.get("jkt")?.text()?.decode(&mut space).ok()?;
    let len = mcp_sansio::json::write::decode_base64url(text.as_bytes(), &mut thumbprint)?;
    (len == thumbprint.len()).then_some(thumbprint)
}

#[cfg(all(test, feature = "es256"))]
mod tests {
    use super::*;
    use crate::jose::{Es256, Es256Key};

    const URL: &str = "https://example.com/mcp";
    const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
    const NOW: UnixSeconds = 1_700_000_000;

    fn key() -> Es256Key<'static> {
        Es256Key::from_bytes(&[7; 32]).unwrap()
    }

    fn thumbprint() -> [u8; 32] {
        Jwk::new(key().public_key().unwrap()).unwrap().thumbprint().unwrap()
    }

    fn check_in(
        proof: &str,
        table: &mut ReplayTable<'_>,
        method: &str,
        url: &str,
        now: UnixSeconds,
    ) -> Result<(), ProofError> {
        let thumbprint = thumbprint();
        ProofCheck::new(method, url, TOKEN, &thumbprint, now).check(proof, &[&Es256], table, &mut [0; 1024])
    }

    fn check(proof: &str) -> Result<(), ProofError> {
        check_in(proof, &mut ReplayTable::new(&mut [ReplayEntry::FREE; 1]), "POST", URL, NOW)
    }

    fn signed(proof: &Proof<'_>) -> std::string::String {
        proof.sign(&key(), &mut [0; 1024]).unwrap().into()
    }

    /// Signs other claims than those of [`Proof`].
    fn forged(typ: &str, header: KeyHeader, claims: &str) -> std::string::String {
        sign(&key(), typ, header, &mut |out| out.put(claims.as_bytes()), &mut [0; 1024]).unwrap().into()
    }

    fn good() -> Proof<'static> {
        Proof::new("POST", URL, NOW, &[1; 16]).access_token(TOKEN)
    }

    /// RFC 9449, section 4.1: a proof for a token request.
    #[test]
    fn the_example_of_rfc_9449() {
        let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOX\
            pDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2\
            In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwia\
            WF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
        let mut space = [0; 1024];
        let jws = Jws::parse(proof, &mut space).unwrap();
        let key = Jwk::new(jws.header.get("jwk").unwrap()).unwrap();
        assert!(jws.verify(&[&Es256], &key) && jws.has_type("dpop+jwt"));
        // It has no `ath`, which a resource server demands, so all checks before that one were passed.
        let thumbprint = key.thumbprint().unwrap();
        let demands = ProofCheck::new("POST", "https://server.example.com/token", TOKEN, &thumbprint, 1_562_262_616);
        let mut entries = [ReplayEntry::FREE; 1];
        let checked = demands.check(proof, &[&Es256], &mut ReplayTable::new(&mut entries), &mut [0; 1024]);
        assert_eq!(checked, Err(ProofError::AccessToken));
    }

    #[test]
    fn good_proofs() {
        assert_eq!(check(&signed(&good())), Ok(()));
        for (written, own) in [
            ("https://example.com/mcp?x=1#y", URL),
            ("HTTPS://EXAMPLE.com:443/mcp", URL),
            ("https://example.com/mcp", "https://example.com/mcp?session=7"),
            ("https://example.com", "https://example.com/"),
        ] {
            let proof = signed(&Proof::new("POST", written, NOW, &[1; 16]).access_token(TOKEN));
            let mut entries = [ReplayEntry::FREE; 1];
            assert_eq!(check_in(&proof, &mut ReplayTable::new(&mut entries), "POST", own, NOW), Ok(()), "{written}");
        }
    }

    #[test]
    fn bad_proofs() {
        let hash = sha256_base64url(TOKEN);
        let ath = hash.as_str();
        let claims = std::format!(r#"{{"jti":"a","htm":"POST","htu":"{URL}","iat":{NOW},"ath":"{ath}"}}"#);
        assert_eq!(check(&forged("dpop+jwt", KeyHeader::Jwk, &claims)), Ok(()));
        let escaped = claims.replace('/', "\\/");
        assert_eq!(check(&forged("dpop+jwt", KeyHeader::Jwk, &escaped)), Ok(()));
        for (from, to, expected) in [
            ("\"jti\":\"a\",", "", ProofError::Claims),
            ("\"jti\":\"a\"", "\"jti\":\"\"", ProofError::Claims),
            ("\"jti\":\"a\"", "\"jti\":7", ProofError::Claims),
            ("\"htm\"", "\"x\"", ProofError::Claims),
            ("\"htu\"", "\"x\"", ProofError::Claims),
            ("\"iat\"", "\"x\"", ProofError::Claims),
            ("POST", "GET", ProofError::Method),
            ("POST", "post", ProofError::Method),
            ("https://", "http://", ProofError::Url),
            ("https://", " https://", ProofError::Url),
            ("https://", "\\u0009https://", ProofError::Url),
            ("com/mcp", "com/mcp ", ProofError::Url),
            ("com/mcp", "com/mcp\\n", ProofError::Url),
            ("com/mcp", "com/mcp #", ProofError::Url),
            ("POST", "POST ", ProofError::Method),
            ("POST", " POST", ProofError::Method),
            (ath, &std::format!(" {ath}"), ProofError::AccessToken),
            (ath, &std::format!("{ath}="), ProofError::AccessToken),
            ("/mcp", "/mcp/", ProofError::Url),
            ("/mcp", "/MCP", ProofError::Url),
            ("example.com", "example.com:8443", ProofError::Url),
            ("example.com", "evil.example.com", ProofError::Url),
            ("\"ath\"", "\"x\"", ProofError::AccessToken),
            (ath, "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEp", ProofError::AccessToken),
            ("1700000000", "1699999699", ProofError::Time),
            ("1700000000", "1700000301", ProofError::Time),
        ] {
            let proof = forged("dpop+jwt", KeyHeader::Jwk, &claims.replace(from, to));
            assert_eq!(check(&proof), Err(expected), "{from} {to}");
        }
        assert_eq!(check(&forged("JWT", KeyHeader::Jwk, &claims)), Err(ProofError::Type));
        assert_eq!(check(&forged("dpop+jwt", KeyHeader::Id, &claims)), Err(ProofError::Key));
        assert_eq!(check("x"), Err(ProofError::Jws(JwsError::Malformed)));
        let proof = signed(&good());
        let (start, _) = proof.rsplit_once('.').unwrap();
        let zeros = "A".repeat(86);
        assert_eq!(check(&std::format!("{start}.{zeros}")), Err(ProofError::Signature));
    }

    struct Private(Es256Key<'static>, std::string::String);

    impl Signer for Private {
        fn algorithm(&self) -> &str {
            self.0.algorithm()
        }
        fn public_key(&self) -> Option<Raw<'_>> {
            Raw::parse(self.1.as_bytes()).ok()
        }
        fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<usize, SignError> {
            self.0.sign(message, signature)
        }
    }

    #[test]
    fn a_private_key_in_the_header() {
        let public = key().public_key().unwrap().as_str().replace("{", "{\"d\":\"AQ\",");
        let proof: std::string::String = good().sign(&Private(key(), public), &mut [0; 1024]).unwrap().into();
        assert_eq!(check(&proof), Err(ProofError::Key));
        // A key that does not belong to the algorithm.
        let proof: std::string::String =
            good().sign(&Private(key(), r#"{"kty":"oct"}"#.into()), &mut [0; 1024]).unwrap().into();
        assert_eq!(check(&proof), Err(ProofError::Key));
    }

    #[test]
    fn another_key_than_the_token_is_bound_to() {
        let other = Es256Key::from_bytes(&[8; 32]).unwrap();
        let proof: std::string::String = good().sign(&other, &mut [0; 1024]).unwrap().into();
        assert_eq!(check(&proof), Err(ProofError::Binding));
    }

    #[test]
    fn a_proof_is_good_once() {
        let mut entries = [ReplayEntry::FREE; 2];
        let table = &mut ReplayTable::new(&mut entries);
        let proof = |n| signed(&Proof::new("POST", URL, NOW, &[n; 16]).access_token(TOKEN));
        assert_eq!(check_in(&proof(1), table, "POST", URL, NOW), Ok(()));
        for now in [NOW, NOW + 1, NOW + 300] {
            assert_eq!(check_in(&proof(1), table, "POST", URL, now), Err(ProofError::Replayed), "{now}");
        }
        assert_eq!(check_in(&proof(1), table, "POST", URL, NOW + 301), Err(ProofError::Time));
        assert_eq!(check_in(&proof(2), table, "POST", URL, NOW), Ok(()));
        // A full table accepts nothing, until an entry is too old to matter.
        assert_eq!(check_in(&proof(3), table, "POST", URL, NOW + 300), Err(ProofError::TableFull));
        let later = signed(&Proof::new("POST", URL, NOW + 301, &[4; 16]).access_token(TOKEN));
        assert_eq!(check_in(&later, table, "POST", URL, NOW + 301), Ok(()));
    }

    /// The same `jti` by chance, or to keep another client out.
    #[test]
    fn keys_do_not_share_their_ids() {
        let mut entries = [ReplayEntry::FREE; 2];
        let table = &mut ReplayTable::new(&mut entries);
        assert_eq!(check_in(&signed(&good()), table, "POST", URL, NOW), Ok(()));
        let other = Es256Key::from_bytes(&[8; 32]).unwrap();
        let bound = Jwk::new(other.public_key().unwrap()).unwrap().thumbprint().unwrap();
        let proof: std::string::String = good().sign(&other, &mut [0; 1024]).unwrap().into();
        let check = ProofCheck::new("POST", URL, TOKEN, &bound, NOW);
        assert_eq!(check.check(&proof, &[&Es256], table, &mut [0; 1024]), Ok(()));
    }

    #[test]
    fn a_refused_proof_is_not_noted() {
        let mut entries = [ReplayEntry::FREE; 1];
        let table = &mut ReplayTable::new(&mut entries);
        let proof = signed(&good());
        assert_eq!(check_in(&proof, table, "GET", URL, NOW), Err(ProofError::Method));
        assert_eq!(check_in(&proof, table, "POST", URL, NOW), Ok(()));
    }

    #[test]
    fn nonces() {
        let nonces = Nonces::new([5; 32]);
        let current = nonces.current(NOW);
        let nonce = core::str::from_utf8(&current).unwrap();
        let period = NOW / 300 * 300;
        for (now, good) in
            [(period, true), (period + 299, true), (period + 599, true), (period + 600, false), (period - 1, false)]
        {
            assert_eq!(nonces.accepts(nonce, now), good, "{now}");
        }
        assert!(!Nonces::new([6; 32]).accepts(nonce, NOW) && !nonces.accepts("", NOW));
        let (bound, mut entries) = (thumbprint(), [ReplayEntry::FREE; 4]);
        let table = &mut ReplayTable::new(&mut entries);
        let accepts = |nonce: &str| nonces.accepts(nonce, NOW);
        let demands = ProofCheck::new("POST", URL, TOKEN, &bound, NOW).nonce(&accepts);
        let mut checked = |proof: &Proof<'_>| demands.check(&signed(proof), &[&Es256], table, &mut [0; 1024]);
        assert_eq!(checked(&good()), Err(ProofError::Nonce));
        assert_eq!(checked(&good().nonce("old")), Err(ProofError::Nonce));
        assert_eq!(checked(&good().nonce(nonce)), Ok(()));
        assert_eq!((ProofError::Nonce.code(), ProofError::Time.code()), ("use_dpop_nonce", "invalid_dpop_proof"));
    }

    #[test]
    fn confirmations() {
        let bound = |text: &str| bound_thumbprint(Raw::parse(text.as_bytes()).unwrap()).map(|bytes| bytes[0]);
        assert_eq!(bound(r#"{"cnf":{"jkt":"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}"#), Some(0xd1));
        // Equal as decoded text.
        assert_eq!(bound(r#"{"cnf":{"jkt":"\u0030ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4\u0049"}}"#), Some(0xd1));
        for bad in [
            r#"{"cnf":{"jkt":"0ZcO"}}"#,
            r#"{"cnf":{"jkt":"\ud800ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}"#,
            r#"{"cnf":{"jkt":7}}"#,
            r#"{"cnf":"jkt"}"#,
            "{}",
        ] {
            assert_eq!(bound(bad), None, "{bad}");
        }
    }
}
