//! The checks of a server on access tokens, and its answers to clients without a good one.
//!
//! For each request, in this order:
//!
//! 1. [`PresentedToken::read`] takes the token from the head of the request.
//! 2. [`ResourceServer::check_jwt`] checks a signed token with the keys of its issuer. For tokens that only the issuer can
//!    read, ask its introspection endpoint with [`introspection_request`], and give its answer to
//!    [`ResourceServer::check_introspection`].
//! 3. [`ResourceServer::check_possession`] checks the DPoP proof, or that the token needs none.
//! 4. [`ResourceServer::require`] compares the scopes of the token with those of the operation.
//!
//! Each error has the HTTP [status](TokenError::status), and [`ResourceServer::challenge`] writes `WWW-Authenticate` for
//! it. [`ResourceMetadata`] is the document by which clients find the authorization server.
//!
//! ```
//! # #[cfg(feature = "es256")] {
//! use mcp_sansio_auth::jose::{Es256, Es256Key, Jwks, KeyHeader, Signer, sign};
//! use mcp_sansio_auth::resource_server::{PresentedToken, ResourceServer, TokenError, TokenScheme, TrustedIssuer};
//!
//! // The key set of the authorization server, which the program has fetched from its `jwks_uri`.
//! let key = Es256Key::from_bytes(&[7; 32])?;
//! let set = format!(r#"{{"keys":[{}]}}"#, key.public_key().unwrap());
//! let issuers = [TrustedIssuer::new("https://as.example", Jwks::parse(set.as_bytes())?)];
//! let server = ResourceServer::new("https://example.com/mcp", &issuers, &[&Es256])
//!     .metadata_url("https://example.com/.well-known/oauth-protected-resource/mcp");
//!
//! // A token as the authorization server makes it.
//! let claims = br#"{"iss":"https://as.example","aud":"https://example.com/mcp","sub":"ann","exp":1700000600,"scope":"read"}"#;
//! let mut space = [0; 1024];
//! let token = sign(&key, "at+jwt", KeyHeader::Id, &mut |out| out.put(claims), &mut space)?;
//!
//! let (now, mut space) = (1_700_000_000, [0; 1024]);
//! let token = server.check_jwt(token, now, &mut space)?;
//! assert!(server.require(&token, &["read"]).is_ok());
//! let error = server.require(&token, &["read", "write"]).unwrap_err();
//! assert_eq!((error, error.status()), (TokenError::Scope, 403));
//! assert_eq!(
//!     server.challenge(error, &["read", "write"]).to_string(),
//!     "Bearer error=\"insufficient_scope\", error_description=\"the access token lacks a scope\", scope=\"read write\", \
//!      resource_metadata=\"https://example.com/.well-known/oauth-protected-resource/mcp\""
//! );
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt::{self, Write};

use mcp_sansio::FullError;
use mcp_sansio::json::{JsonKind, Object, Raw, Text};
use mcp_sansio::sink::{BodyBuffer, MessageHead, Sink, SliceStorage, Storage, whole};
use mcp_sansio_http::endpoint::RequestHead;
use sha2::{Digest, Sha256};

use crate::dpop::{Nonces, ProofCheck, ProofError, ReplayTable, bound_thumbprint};
use crate::form::FormWriter;
use crate::jose::{Jwks, Jws, JwsError, Verifier, hash_text, numeric_date};
use crate::pkce::Base64Of32;
use crate::time::UnixSeconds;

/// The scheme of the `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenScheme {
    /// `Bearer` ([RFC 6750](https://www.rfc-editor.org/rfc/rfc6750)).
    Bearer,
    /// `DPoP` ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449)).
    Dpop,
}

/// The access token of a request, not checked yet.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PresentedToken<'h> {
    /// The scheme.
    pub scheme: TokenScheme,
    /// The token itself. Do not log it, and send it to no other server than the introspection endpoint of its issuer.
    pub token: &'h str,
    proof: Result<&'h str, ProofError>,
}

impl<'h> PresentedToken<'h> {
    /// Reads the headers `Authorization` and `DPoP` of a request.
    ///
    /// # Errors
    /// [`TokenError::Missing`] without a token, [`TokenError::Malformed`] if it cannot be read, there are two, or one is
    /// in the query.
    pub fn read(head: &RequestHead<'h>) -> Result<Self, TokenError> {
        if head.query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("access_token="))) {
            return Err(TokenError::Malformed);
        }
        let value = match head.lines("authorization") {
            (0, _) => return Err(TokenError::Missing),
            (1, value) => core::str::from_utf8(value).map_err(|_| TokenError::Malformed)?.trim_ascii(),
            _ => return Err(TokenError::Malformed),
        };
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        let scheme = match scheme {
            scheme if scheme.eq_ignore_ascii_case("bearer") => TokenScheme::Bearer,
            scheme if scheme.eq_ignore_ascii_case("dpop") => TokenScheme::Dpop,
            // Another scheme, like `Basic`: the client must learn which one is wanted.
            _ => return Err(TokenError::Missing),
        };
        let token = token.trim_ascii();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
            return Err(TokenError::Malformed);
        }
        let proof = match head.lines("dpop") {
            (0, _) => Err(ProofError::Missing),
            (1, proof) => {
                core::str::from_utf8(proof).map(str::trim_ascii).map_err(|_| ProofError::Jws(JwsError::Malformed))
            }
            _ => Err(ProofError::Several),
        };
        Ok(PresentedToken { scheme, token, proof })
    }
}

// The token must not be in logs.
mcp_sansio::debug_fields!(impl for PresentedToken<'_> { scheme });

mcp_sansio::error_enum! {
    /// The reason why a request is refused.
    TokenError {
        /// There is no token.
        Missing => "there is no access token",
        /// The token cannot be read, there are two, or it is in the query.
        Malformed => "the access token cannot be read, or there are several",
        /// It is not a signed JWT.
        Jws(error: JwsError) => "{error}",
        /// `typ` is not one of an access token.
        Type => "this kind of token is not an access token",
        /// `iss` is not a trusted issuer.
        Issuer => "the access token is by an issuer that is not trusted here",
        /// The algorithm is not one of the verifiers'.
        Algorithm => "the algorithm of the access token is not accepted",
        /// The issuer's key set has no key that could have signed it. See [`may_have_new_key`](TokenError::may_have_new_key).
        UnknownKey => "the key of the access token is not known",
        /// The signature is wrong.
        Signature => "the signature of the access token is wrong",
        /// A claim has another type than it must have, or `exp` is missing.
        Claims => "a claim of the access token is missing or has a wrong type",
        /// The token is for another server (`aud`).
        Audience => "the access token is for another server",
        /// The token has expired.
        Expired => "the access token has expired",
        /// The token is not valid yet (`nbf`).
        NotYetValid => "the access token is not valid yet",
        /// The issuer says that the token is not active: it is unknown there, has expired, or was revoked.
        Inactive => "the access token is not active",
        /// The token is bound to a key, but came as `Bearer`, or it is bound in a way that is not known here.
        Bound => "the access token is bound to a key and needs a proof",
        /// The token is not bound to a key, but came as `DPoP`, or the server accepts only bound ones.
        Unbound => "the access token is not bound to a key",
        /// The DPoP proof is bad.
        Proof(error: ProofError) => "{error}",
        /// The token lacks a scope.
        Scope => "the access token lacks a scope",
    }
}

impl TokenError {
    /// Returns the HTTP status of the answer: 400, 401, 403 or 503.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            TokenError::Malformed => 400,
            TokenError::Scope => 403,
            TokenError::Proof(ProofError::TableFull) => 503,
            _ => 401,
        }
    }

    /// Returns `true` if the token could be good with a newer key set of its issuer: a key was added, or one without `kid`
    /// replaced, or the set that was read is not whole. Fetch it again then, decide once more, and keep the old set if the
    /// new one is no [`Jwks`]. Not more often than every few seconds: anybody can send such a token.
    #[must_use]
    pub const fn may_have_new_key(self) -> bool {
        matches!(self, TokenError::UnknownKey | TokenError::Signature)
    }

    /// Returns `error` of the challenge; `None` without a token.
    #[must_use]
    pub const fn code(self) -> Option<&'static str> {
        match self {
            TokenError::Missing => None,
            TokenError::Malformed => Some("invalid_request"),
            TokenError::Scope => Some("insufficient_scope"),
            TokenError::Proof(error) => Some(error.code()),
            _ => Some("invalid_token"),
        }
    }
}

impl From<ProofError> for TokenError {
    fn from(error: ProofError) -> Self {
        TokenError::Proof(error)
    }
}

/// An authorization server whose tokens are accepted, and its keys.
#[derive(Clone, Copy, Debug)]
pub struct TrustedIssuer<'c> {
    issuer: &'c str,
    keys: Jwks<'c>,
}

impl<'c> TrustedIssuer<'c> {
    /// Takes an issuer, as in `authorization_servers` of the [metadata](ResourceMetadata), with its key set. For issuers
    /// that are asked about each token, the set is [`Jwks::EMPTY`].
    #[must_use]
    pub const fn new(issuer: &'c str, keys: Jwks<'c>) -> Self {
        TrustedIssuer { issuer, keys }
    }
}

/// The policy of a server on DPoP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopPolicy {
    /// Tokens that are bound to a key are accepted, and need a proof. Others are bearer tokens.
    Accepted,
    /// Only tokens that are bound to a key are accepted.
    Required,
}

/// The rules by which a server judges tokens. It borrows all its parts, so it can be made for each request, with the
/// keys of that time.
#[derive(Clone, Copy)]
#[must_use]
pub struct ResourceServer<'c> {
    resource: &'c str,
    issuers: &'c [TrustedIssuer<'c>],
    verifiers: &'c [&'c dyn Verifier],
    metadata_url: Option<&'c str>,
    implied: &'c [(&'c str, &'c str)],
    dpop: DpopPolicy,
    nonces: Option<&'c Nonces>,
    leeway: UnixSeconds,
    asked_audience: bool,
}

/// Number of keys that are tried for a token that names none.
const KEYS_TRIED: usize = 4;

impl<'c> ResourceServer<'c> {
    /// Makes the rules of the server whose tokens have `resource` in `aud`: the URL of its endpoint, byte for byte as in
    /// its metadata.
    pub const fn new(resource: &'c str, issuers: &'c [TrustedIssuer<'c>], verifiers: &'c [&'c dyn Verifier]) -> Self {
        ResourceServer {
            resource,
            issuers,
            verifiers,
            metadata_url: None,
            implied: &[],
            dpop: DpopPolicy::Accepted,
            nonces: None,
            leeway: 30,
            asked_audience: false,
        }
    }

    mcp_sansio::const_setters! {
        /// Sets the URL of the metadata, for `resource_metadata` of challenges.
        metadata_url(url: &'c str) => metadata_url = Some(url);
        /// Sets pairs of scopes of which the first includes the second. Default: none. Chains must be written out: with
        /// `admin` over `write` and `write` over `read`, add `admin` over `read`.
        implied(pairs: &'c [(&'c str, &'c str)]) => implied = pairs;
        /// Sets the policy on DPoP. Default: [`DpopPolicy::Accepted`].
        dpop(policy: DpopPolicy) => dpop = policy;
        /// Demands nonces in DPoP proofs. Send the [current](Nonces::current) one in `DPoP-Nonce` with answers, at least with
        /// [`ProofError::Nonce`]. Default: none are demanded.
        nonces(nonces: &'c Nonces) => nonces = Some(nonces);
        /// Sets how far the clocks of issuer and server may be apart, in seconds, for `exp` and `nbf`. Default: 30.
        leeway(seconds: UnixSeconds) => leeway = seconds;
        /// Sets whether an answer of the introspection endpoint counts also if it has no `aud`. Only for issuers that answer
        /// `active` solely for tokens that are meant for the server that asks. Default: `false`.
        trust_asked_audience(yes: bool) => asked_audience = yes;
    }

    /// Checks an access token that is a signed JWT ([RFC 9068](https://www.rfc-editor.org/rfc/rfc9068)): type, issuer,
    /// algorithm, signature, audience and time. The decoded parts are kept in `space`: three quarters of the length of
    /// the token suffice.
    ///
    /// # Errors
    /// [`TokenError`] with the first reason.
    pub fn check_jwt<'s>(
        &self,
        token: &'s str,
        now: UnixSeconds,
        space: &'s mut [u8],
    ) -> Result<AccessToken<'s>, TokenError> {
        let jws = Jws::parse(token, space).map_err(TokenError::Jws)?;
        // Other kinds of JWT by the same issuer, like logout tokens, must not pass as access tokens.
        if jws.header.get("typ").is_some() && !jws.has_type("at+jwt") && !jws.has_type("JWT") {
            return Err(TokenError::Type);
        }
        let issuer = jws.claims.get("iss").and_then(|issuer| issuer.text()).ok_or(TokenError::Issuer)?;
        let issuer = self.issuers.iter().find(|known| issuer.eq_str(known.issuer)).ok_or(TokenError::Issuer)?;
        let verifier = jws.verifier(self.verifiers).ok_or(TokenError::Algorithm)?;
        let mut keys = issuer.keys.keys_for(&jws).take(KEYS_TRIED).peekable();
        keys.peek().ok_or(TokenError::UnknownKey)?;
        if !keys.any(|key| jws.verify(&[verifier], &key)) {
            return Err(TokenError::Signature);
        }
        self.check_audience(jws.claims)?;
        self.check_claims(jws.claims, now, false)
    }

    /// Checks the answer of an introspection endpoint about a token
    /// ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662#section-2.2)): active, issuer if it is there, audience and time.
    ///
    /// # Errors
    /// [`TokenError`] with the first reason; [`TokenError::Claims`] also if the answer is not a JSON object.
    pub fn check_introspection<'s>(&self, answer: &'s [u8], now: UnixSeconds) -> Result<AccessToken<'s>, TokenError> {
        let claims = Raw::parse(answer).ok().filter(|claims| claims.kind() == JsonKind::Object);
        let claims = claims.ok_or(TokenError::Claims)?;
        match claims.get("active").and_then(|active| active.bool()) {
            Some(true) => {}
            Some(false) => return Err(TokenError::Inactive),
            None => return Err(TokenError::Claims),
        }
        if let Some(issuer) = claims.get("iss") {
            let issuer = issuer.text().ok_or(TokenError::Issuer)?;
            self.issuers.iter().find(|known| issuer.eq_str(known.issuer)).ok_or(TokenError::Issuer)?;
        }
        if self.asked_audience && claims.get("aud").is_none() {
            return self.check_claims(claims, now, claims.get("exp").is_none());
        }
        self.check_audience(claims)?;
        self.check_claims(claims, now, claims.get("exp").is_none())
    }

    fn check_audience(&self, claims: Raw<'_>) -> Result<(), TokenError> {
        let audience = claims.get("aud").ok_or(TokenError::Audience)?;
        let is_own = |value: Raw<'_>| value.text().is_some_and(|text| text.eq_str(self.resource));
        let is_one_of = audience.items().all(|value| is_text(&value)) && audience.items().any(is_own);
        if is_own(audience) || is_one_of { Ok(()) } else { Err(TokenError::Audience) }
    }

    /// Checks the claims that are texts, `exp` and `nbf`; `endless` allows a missing `exp`.
    fn check_claims<'s>(
        &self,
        claims: Raw<'s>,
        now: UnixSeconds,
        endless: bool,
    ) -> Result<AccessToken<'s>, TokenError> {
        // Two values that are not texts would be the same principal, or the same key of the application.
        if TEXTS.iter().any(|name| claims.get(name).is_some_and(|value| !is_text(&value))) {
            return Err(TokenError::Claims);
        }
        let time = |name: &str| claims.get(name).map(|value| numeric_date(value).ok_or(TokenError::Claims)).transpose();
        match time("exp")? {
            None if !endless => return Err(TokenError::Claims),
            Some(expiry) if expiry.saturating_add(self.leeway) <= now => return Err(TokenError::Expired),
            _ => {}
        }
        if time("nbf")?.is_some_and(|start| start > now.saturating_add(self.leeway)) {
            return Err(TokenError::NotYetValid);
        }
        Ok(AccessToken { claims })
    }

    /// Checks that the client may use the token: a token that is bound to a key came as `DPoP` with a good proof for a
    /// request of `method` to this server, any other as `Bearer`. Notes the proof in `table`, so call it once for each
    /// request, and last if something else has to wait. `space` is as in [`ProofCheck::check`].
    ///
    /// # Errors
    /// [`TokenError::Bound`], [`TokenError::Unbound`] or [`TokenError::Proof`].
    pub fn check_possession(
        &self,
        presented: &PresentedToken<'_>,
        token: &AccessToken<'_>,
        method: &str,
        now: UnixSeconds,
        table: &mut ReplayTable<'_>,
        space: &mut [u8],
    ) -> Result<(), TokenError> {
        let is_bound = token.claims.get("cnf").is_some();
        match (presented.scheme, is_bound) {
            (TokenScheme::Bearer, true) => return Err(TokenError::Bound),
            (TokenScheme::Bearer, false) if self.dpop == DpopPolicy::Accepted => return Ok(()),
            (_, false) => return Err(TokenError::Unbound),
            (TokenScheme::Dpop, true) => {}
        }
        let thumbprint = bound_thumbprint(token.claims).ok_or(TokenError::Bound)?;
        let proof = presented.proof?;
        let mut check = ProofCheck::new(method, self.resource, presented.token, &thumbprint, now);
        let accepts;
        if let Some(nonces) = self.nonces {
            accepts = move |nonce: &str| nonces.accepts(nonce, now);
            check = check.nonce(&accepts);
        }
        Ok(check.check(proof, self.verifiers, table, space)?)
    }

    /// Checks that the token has all scopes of an operation, itself or by a broader one that
    /// [implies](ResourceServer::implied) it.
    ///
    /// # Errors
    /// [`TokenError::Scope`] if one is missing. Give the same list to [`challenge`](ResourceServer::challenge): it then
    /// names all that the operation needs.
    pub fn require(&self, token: &AccessToken<'_>, scopes: &[&str]) -> Result<(), TokenError> {
        let has = |scope: &str| {
            let implied = |(broader, narrower): &(&str, &str)| *narrower == scope && token.has_scope(broader);
            token.has_scope(scope) || self.implied.iter().any(implied)
        };
        if scopes.iter().all(|scope| has(scope)) { Ok(()) } else { Err(TokenError::Scope) }
    }

    /// Returns the value of `WWW-Authenticate` for an error, with `scopes` that the operation needs.
    #[must_use]
    pub const fn challenge<'w>(&self, error: TokenError, scopes: &'w [&'w str]) -> WwwAuthenticate<'w>
    where
        'c: 'w,
    {
        WwwAuthenticate { error, scopes, metadata_url: self.metadata_url, verifiers: self.verifiers, dpop: self.dpop }
    }
}

mcp_sansio::debug_fields!(impl for ResourceServer<'_> { resource });

/// Writes the body of a request to an introspection endpoint
/// ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662#section-2.1)), `application/x-www-form-urlencoded`. The server must
/// authenticate itself there.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn introspection_request(token: &str, out: &mut dyn Sink) -> Result<(), FullError> {
    let mut form = FormWriter::new(out);
    form.field("token", token)?;
    form.field("token_type_hint", "access_token")
}

/// The claims that are texts, and are compared or used as keys here or by the application.
const TEXTS: [&str; 6] = ["iss", "sub", "client_id", "azp", "jti", "scope"];

/// Returns `true` for a text that can be decoded: it has no lone surrogate.
fn is_text(value: &Raw<'_>) -> bool {
    value.text().is_some_and(|text| text.decoded_len().is_some())
}

/// The claims that name a principal.
const PRINCIPAL: [&str; 3] = ["iss", "sub", "client_id"];

/// An access token that was checked: its claims, from the token itself or from introspection.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct AccessToken<'s> {
    /// All claims.
    pub claims: Raw<'s>,
}

impl<'s> AccessToken<'s> {
    /// Returns `sub`: the client acts for this user.
    #[must_use]
    pub fn subject(&self) -> Option<Text<'s>> {
        self.claims.get("sub")?.text()
    }

    /// Returns `client_id`.
    #[must_use]
    pub fn client(&self) -> Option<Text<'s>> {
        self.claims.get("client_id")?.text()
    }

    /// Returns `exp`.
    #[must_use]
    pub fn expiry(&self) -> Option<UnixSeconds> {
        self.claims.get("exp").and_then(numeric_date)
    }

    /// Returns whether `scope` has a scope.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        let Some(granted) = self.claims.get("scope").and_then(|scopes| scopes.text()) else { return false };
        let mut rest = Some(scope.chars());
        let mut characters = granted.chars();
        loop {
            let next = match characters.next() {
                Some(Ok(character)) if character != ' ' => Some(character),
                Some(Err(_)) => {
                    rest = None;
                    continue;
                }
                // The end of one scope.
                Some(Ok(_)) => {
                    if rest.is_some_and(|mut rest| rest.next().is_none()) && !scope.is_empty() {
                        return true;
                    }
                    rest = Some(scope.chars());
                    continue;
                }
                None => return rest.is_some_and(|mut rest| rest.next().is_none()) && !scope.is_empty(),
            };
            rest = rest.and_then(|mut rest| if rest.next() == next { Some(rest) } else { None });
        }
    }

    /// Returns a name for the principal: a digest of issuer, subject and client, shorter than
    /// [`PRINCIPAL_MAX`](mcp_sansio_http::endpoint::PRINCIPAL_MAX). Texts are equal if they are so when decoded. A token without `sub`
    /// stands for its client itself, which is another principal than each user of it. `None` if the token names neither
    /// subject nor client: such tokens have nothing to tell them apart, so refuse them.
    #[must_use]
    pub fn principal(&self) -> Option<Base64Of32> {
        self.subject().or(self.client())?;
        let mut hash = Sha256::new();
        for name in PRINCIPAL {
            // Without a mark at its end and one for what is absent, two principals could have the same bytes. No UTF-8 has
            // these.
            match self.claims.get(name) {
                None => hash.update([0xfe]),
                Some(value) => {
                    hash_text(&mut hash, &value.text()?).ok()?;
                    hash.update([0xff]);
                }
            }
        }
        Some(Base64Of32::new(&hash.finalize().into()))
    }
}

impl fmt::Debug for AccessToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Claims are about a person.
        f.debug_struct("AccessToken").field("expiry", &self.expiry()).finish_non_exhaustive()
    }
}

/// The value of `WWW-Authenticate`: format it with `Display`
/// ([authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)).
#[derive(Clone, Copy)]
pub struct WwwAuthenticate<'w> {
    error: TokenError,
    scopes: &'w [&'w str],
    metadata_url: Option<&'w str>,
    verifiers: &'w [&'w dyn Verifier],
    dpop: DpopPolicy,
}

impl fmt::Display for WwwAuthenticate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_proof = matches!(self.error, TokenError::Proof(_) | TokenError::Bound);
        let dpop = of_proof || self.dpop == DpopPolicy::Required;
        let mut before = if dpop { "DPoP " } else { "Bearer " };
        let mut parameter = |name: &str, value: &dyn fmt::Display| {
            f.write_str(core::mem::replace(&mut before, ", "))?;
            write!(f, "{name}=\"")?;
            write!(Quoted(f), "{value}")?;
            f.write_str("\"")
        };
        if let Some(code) = self.error.code() {
            parameter("error", &code)?;
            parameter("error_description", &self.error)?;
        }
        if !self.scopes.is_empty() {
            parameter("scope", &Scopes(self.scopes))?;
        }
        if dpop {
            parameter("algs", &Algorithms(self.verifiers))?;
        }
        if let Some(url) = self.metadata_url {
            parameter("resource_metadata", &url)?;
        }
        // A challenge without parameters is the scheme alone.
        if before == ", " { Ok(()) } else { f.write_str(before.trim_ascii_end()) }
    }
}

impl fmt::Debug for WwwAuthenticate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the characters that a quoted value of a challenge may have without escapes, and leaves out all others: so no
/// value can end the header.
struct Quoted<'q, 'f>(&'q mut fmt::Formatter<'f>);

impl fmt::Write for Quoted<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let good = |character: &char| matches!(character, ' '..='~') && !matches!(character, '"' | '\\');
        text.chars().filter(good).try_for_each(|character| self.0.write_char(character))
    }
}

struct Scopes<'w>(&'w [&'w str]);

impl fmt::Display for Scopes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        self.0.iter().try_for_each(|scope| write!(f, "{}{scope}", core::mem::replace(&mut before, " ")))
    }
}

/// The asymmetric algorithms that a server may name, of those that its verifiers support.
struct Algorithms<'w>(&'w [&'w dyn Verifier]);

impl fmt::Display for Algorithms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for algorithm in ALGORITHMS.into_iter().filter(|name| self.0.iter().any(|verifier| verifier.supports(name))) {
            write!(f, "{}{algorithm}", core::mem::replace(&mut before, " "))?;
        }
        Ok(())
    }
}

const ALGORITHMS: [&str; 11] =
    ["ES256", "ES384", "ES512", "EdDSA", "Ed25519", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];

/// The metadata of a protected resource ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728)), for
/// [`EndpointConfig::resource_metadata`](mcp_sansio_http::endpoint::EndpointConfig).
///
/// ```
/// use mcp_sansio_auth::resource_server::ResourceMetadata;
/// use mcp_sansio_http::mcp_sansio::json::Raw;
///
/// let mut space = [0; 256];
/// let metadata = ResourceMetadata::new("https://example.com/mcp", &["https://as.example"]).scopes(&["read", "write"]);
/// assert_eq!(
///     metadata.write(&mut space)?.as_str(),
///     r#"{"resource":"https://example.com/mcp","authorization_servers":["https://as.example"],"scopes_supported":["read","write"],"bearer_methods_supported":["header"]}"#
/// );
/// # Ok::<(), mcp_sansio_http::mcp_sansio::FullError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ResourceMetadata<'c> {
    resource: &'c str,
    issuers: &'c [&'c str],
    scopes: &'c [&'c str],
    name: Option<&'c str>,
    documentation: Option<&'c str>,
    dpop_algorithms: &'c [&'c str],
    dpop_required: bool,
}

impl<'c> ResourceMetadata<'c> {
    /// Makes the metadata of the server at `resource`, an https URL, whose clients get tokens from one of `issuers`.
    pub const fn new(resource: &'c str, issuers: &'c [&'c str]) -> Self {
        ResourceMetadata {
            resource,
            issuers,
            scopes: &[],
            name: None,
            documentation: None,
            dpop_algorithms: &[],
            dpop_required: false,
        }
    }

    mcp_sansio::const_setters! {
        /// Sets `scopes_supported`: those that a client asks for if a challenge names none. Do not put `offline_access` here.
        scopes(scopes: &'c [&'c str]) => scopes = scopes;
        /// Sets `resource_name`, for people.
        name(name: &'c str) => name = Some(name);
        /// Sets `resource_documentation`, the URL of a page for people.
        documentation(url: &'c str) => documentation = Some(url);
        /// Sets the algorithms of DPoP proofs (`dpop_signing_alg_values_supported`), and whether tokens must be bound
        /// (`dpop_bound_access_tokens_required`).
        dpop(algorithms: &'c [&'c str], required: bool) => dpop_algorithms = algorithms, dpop_required = required;
    }

    /// Writes the JSON object to `space`.
    ///
    /// # Errors
    /// [`FullError::Never`] if it does not fit.
    pub fn write<'b>(&self, space: &'b mut [u8]) -> Result<Raw<'b>, FullError> {
        let mut out = BodyBuffer::new(SliceStorage::new(&mut *space));
        whole(&mut out, MessageHead::Result, |out| {
            let mut metadata = Object::open(out);
            metadata.text("resource", self.resource);
            for (name, values) in [
                ("authorization_servers", self.issuers),
                ("scopes_supported", self.scopes),
                ("bearer_methods_supported", &["header"]),
                ("dpop_signing_alg_values_supported", self.dpop_algorithms),
            ] {
                if let Some((first, others)) = values.split_first() {
                    let out = metadata.key(name);
                    out.put(b"[");
                    out.string(first);
                    for value in others {
                        out.put(b",");
                        out.string(value);
                    }
                    out.put(b"]");
                }
            }
            metadata.boolean_if("dpop_bound_access_tokens_required", self.dpop_required.then_some(true));
            metadata.text_if("resource_name", self.name);
            metadata.text_if("resource_documentation", self.documentation);
            metadata.close();
        })?;
        let len = out.storage.bytes().len();
        Raw::parse(space.get(..len).unwrap_or_default()).map_err(|_| FullError::Never)
    }
}

#[cfg(all(test, feature = "es256"))]
mod tests {
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;
    use crate::dpop::{Proof, ReplayEntry};
    use crate::jose::{Es256, Es256Key, Jwk, KeyHeader, SignError, Signer, sign};

    const URL: &str = "https://example.com/mcp";
    const ISSUER: &str = "https://as.example";
    const NOW: UnixSeconds = 1_700_000_000;
    const CLAIMS: &str = r#"{"iss":"https://as.example","aud":"https://example.com/mcp","sub":"ann","client_id":"c1","exp":1700000600,"scope":"read  list"}"#;

    fn key(number: u8) -> Es256Key<'static> {
        Es256Key::from_bytes(&[number; 32]).unwrap()
    }

    fn signed(key: &dyn Signer, typ: &str, claims: &str) -> String {
        sign(key, typ, KeyHeader::Id, &mut |out| out.put(claims.as_bytes()), &mut [0; 2048]).unwrap().into()
    }

    /// Makes the rules with a key set of the keys 7 and 8, the second of which is named `two`.
    fn with<T>(act: impl FnOnce(ResourceServer<'_>) -> T) -> T {
        let two = key(8).public_key().unwrap().as_str().replace('{', "{\"kid\":\"two\",");
        let set = std::format!(r#"{{"keys":[{{"kty":"RSA"}},{two},{}]}}"#, key(7).public_key().unwrap());
        let other = std::format!(r#"{{"keys":[{}]}}"#, key(9).public_key().unwrap());
        let issuers = [
            TrustedIssuer::new(ISSUER, Jwks::parse(set.as_bytes()).unwrap()),
            TrustedIssuer::new("https://other.example", Jwks::parse(other.as_bytes()).unwrap()),
        ];
        act(ResourceServer::new(URL, &issuers, &[&Es256]).implied(&[("admin", "write")]))
    }

    fn check(token: &str) -> Result<(), TokenError> {
        with(|server| server.check_jwt(token, NOW, &mut [0; 2048]).map(drop))
    }

    #[test]
    fn good_tokens() {
        for typ in ["at+jwt", "application/at+jwt", "JWT"] {
            assert_eq!(check(&signed(&key(7), typ, CLAIMS)), Ok(()), "{typ}");
        }
        assert_eq!(check(&signed(&key(8).key_id("two"), "JWT", CLAIMS)), Ok(()));
        for (from, to) in [
            ("\"https://example.com/mcp\"", r#"["x","https:\/\/example.com\/mcp"]"#),
            ("1700000600", "1699999971"),
            ("1700000600", "1700000600.5"),
            ("\"sub\"", "\"nbf\":1700000030,\"sub\""),
        ] {
            assert_eq!(check(&signed(&key(7), "JWT", &CLAIMS.replace(from, to))), Ok(()), "{to}");
        }
    }

    #[test]
    fn a_token_needs_no_type() {
        let part = |bytes: &[u8]| {
            let mut out = BodyBuffer::new(Vec::new());
            mcp_sansio::json::write::base64url(&mut out, bytes).unwrap();
            String::from_utf8(out.storage).unwrap()
        };
        let message = std::format!("{}.{}", part(br#"{"alg":"ES256"}"#), part(CLAIMS.as_bytes()));
        let mut signature = [0; 64];
        let n = key(7).sign(message.as_bytes(), &mut signature).unwrap();
        assert_eq!(check(&std::format!("{message}.{}", part(&signature[..n]))), Ok(()));
    }

    #[test]
    fn a_token_names_its_user_its_client_and_its_end() {
        let token = AccessToken { claims: Raw::constant(CLAIMS) };
        assert!(token.subject().is_some_and(|name| name.eq_str("ann")));
        assert!(token.client().is_some_and(|name| name.eq_str("c1")));
        assert_eq!(token.expiry(), Some(1_700_000_600));
    }

    // spec: A063 A176 A177 A181 A190 A215
    #[test]
    fn bad_tokens() {
        for (from, to, expected) in [
            ("as.example", "as.example/", TokenError::Issuer),
            ("as.example", "AS.example", TokenError::Issuer),
            ("\"iss\"", "\"x\"", TokenError::Issuer),
            // The key of one issuer does not sign for another.
            ("as.example", "other.example", TokenError::Signature),
            ("\"aud\"", "\"x\"", TokenError::Audience),
            ("com/mcp", "com/mcp/", TokenError::Audience),
            ("com/mcp", "com", TokenError::Audience),
            ("com/mcp", "com/mcpx", TokenError::Audience),
            ("\"https://example.com/mcp\"", "[]", TokenError::Audience),
            ("\"https://example.com/mcp\"", r#"{"a":"https://example.com/mcp"}"#, TokenError::Audience),
            ("1700000600", "1699999970", TokenError::Expired),
            ("1700000600", "\"1700000600\"", TokenError::Claims),
            ("\"exp\"", "\"x\"", TokenError::Claims),
            ("\"sub\"", "\"nbf\":1700000031,\"sub\"", TokenError::NotYetValid),
            ("\"sub\"", "\"nbf\":\"x\",\"sub\"", TokenError::Claims),
            ("\"ann\"", "5", TokenError::Claims),
            ("\"ann\"", "null", TokenError::Claims),
            ("\"ann\"", "[\"ann\"]", TokenError::Claims),
            ("\"ann\"", r#""\ud800""#, TokenError::Claims),
            ("\"ann\"", r#""ann\udc00\ud800""#, TokenError::Claims),
            ("\"c1\"", "1", TokenError::Claims),
            ("\"read  list\"", "5", TokenError::Claims),
            ("\"read  list\"", r#"["read"]"#, TokenError::Claims),
            ("read  list", r"read \udc00", TokenError::Claims),
            ("\"sub\"", "\"jti\":7,\"sub\"", TokenError::Claims),
            ("\"sub\"", r#""jti":"\ud800","sub""#, TokenError::Claims),
            ("\"sub\"", r#""azp":["c1"],"sub""#, TokenError::Claims),
            ("\"https://example.com/mcp\"", r#"["https://example.com/mcp",5]"#, TokenError::Audience),
            ("\"https://example.com/mcp\"", r#"["\ud800","https://example.com/mcp"]"#, TokenError::Audience),
            ("\"https://example.com/mcp\"", r#"[["https://example.com/mcp"]]"#, TokenError::Audience),
            ("\"c1\"", r#""c\udfff""#, TokenError::Claims),
        ] {
            assert_eq!(check(&signed(&key(7), "JWT", &CLAIMS.replace(from, to))), Err(expected), "{from} {to}");
        }
        assert_eq!(check("not.a.token"), Err(TokenError::Jws(JwsError::Malformed)));
        for typ in ["dpop+jwt", "logout+jwt", "oauth-id-jag+jwt", ""] {
            assert_eq!(check(&signed(&key(7), typ, CLAIMS)), Err(TokenError::Type), "{typ}");
        }
        assert_eq!(check(&signed(&key(9), "JWT", CLAIMS)), Err(TokenError::Signature));
        assert_eq!(check(&signed(&key(7).key_id("two"), "JWT", CLAIMS)), Err(TokenError::Signature));
        assert_eq!(check(&signed(&key(7).key_id("three"), "JWT", CLAIMS)), Err(TokenError::UnknownKey));
    }

    /// Anybody can send a token without `kid`. It must not cost as many checks as an issuer has keys.
    #[test]
    fn only_some_keys_are_tried() {
        let check = |before: u8| {
            let keys: Vec<String> =
                (20..20 + before).chain([7]).map(|number| key(number).public_key().unwrap().to_string()).collect();
            let set = std::format!(r#"{{"keys":[{}]}}"#, keys.join(","));
            let issuers = [TrustedIssuer::new(ISSUER, Jwks::parse(set.as_bytes()).unwrap())];
            let token = signed(&key(7), "JWT", CLAIMS);
            ResourceServer::new(URL, &issuers, &[&Es256]).check_jwt(&token, NOW, &mut [0; 2048]).map(drop)
        };
        assert_eq!((check(3), check(4)), (Ok(()), Err(TokenError::Signature)));
    }

    struct Renamed(&'static str);

    impl Signer for Renamed {
        fn algorithm(&self) -> &str {
            self.0
        }
        fn public_key(&self) -> Option<Raw<'_>> {
            None
        }
        fn sign(&self, message: &[u8], signature: &mut [u8]) -> Result<usize, SignError> {
            key(7).sign(message, signature)
        }
    }

    #[test]
    fn algorithms_are_not_confused() {
        for algorithm in ["none", "HS256", "RS256", "ES384", "es256", ""] {
            assert_eq!(check(&signed(&Renamed(algorithm), "JWT", CLAIMS)), Err(TokenError::Algorithm), "{algorithm}");
        }
    }

    #[test]
    fn introspection() {
        let check = |answer: &str| with(|server| server.check_introspection(answer.as_bytes(), NOW).map(drop));
        let good = CLAIMS.replace('{', "{\"active\":true,");
        assert_eq!(check(&good), Ok(()));
        assert_eq!(check(r#"{"active":true,"aud":"https://example.com/mcp"}"#), Ok(()));
        for (answer, expected) in [
            (r#"{"active":false}"#, TokenError::Inactive),
            (r#"{"active":"true"}"#, TokenError::Claims),
            (CLAIMS, TokenError::Claims),
            ("[]", TokenError::Claims),
            ("<html>", TokenError::Claims),
            ("", TokenError::Claims),
            (r#"{"active":true}"#, TokenError::Audience),
            (&good.replace("1700000600", "1699999970"), TokenError::Expired),
            (&good.replace("as.example", "evil.example"), TokenError::Issuer),
            (&good.replace("com/mcp", "com/other"), TokenError::Audience),
        ] {
            assert_eq!(check(answer), Err(expected), "{answer}");
        }
        let trusting = |answer: &str| {
            with(|server| server.trust_asked_audience(true).check_introspection(answer.as_bytes(), NOW).map(drop))
        };
        assert_eq!(trusting(r#"{"active":true}"#), Ok(()));
        assert_eq!(trusting(r#"{"active":true,"exp":1}"#), Err(TokenError::Expired));
        assert_eq!(trusting(r#"{"active":true,"aud":"x"}"#), Err(TokenError::Audience));
        let mut out = BodyBuffer::new(Vec::new());
        introspection_request("a+/=~b", &mut out).unwrap();
        assert_eq!(out.storage, b"token=a%2B%2F%3D%7Eb&token_type_hint=access_token");
    }

    // spec: A174
    #[test]
    fn scopes() {
        let has = |scopes: &str, required: &[&str]| {
            let claims = std::format!("{{\"scope\":{scopes}}}");
            let token = AccessToken { claims: Raw::parse(claims.as_bytes()).unwrap() };
            with(|server| server.require(&token, required).is_ok())
        };
        assert!(has(r#""read""#, &["read"]) && has(r#""a read b""#, &["b", "read", "a"]) && has("7", &[]));
        assert!(has(r#""files\/read x""#, &["files/read"]) && has(r#""a  b""#, &["b"]));
        assert!(has(r#""admin""#, &["write", "admin"]));
        for (scopes, required) in [
            (r#""read""#, "rea"),
            (r#""read""#, "reads"),
            (r#""read""#, ""),
            (r#""""#, ""),
            (r#""a  b""#, ""),
            (r#""read_all""#, "read"),
            (r#""xread""#, "read"),
            (r#""READ""#, "read"),
            (r#"["read"]"#, "read"),
            (r#""write""#, "admin"),
            (r#""re\ud800ad read\ud800""#, "read"),
        ] {
            assert!(!has(scopes, &[required]), "{scopes} {required}");
        }
        assert!(!has(r#""read""#, &["read", "write"]));
    }

    #[test]
    fn possession() {
        let thumbprint = Base64Of32::new(&Jwk::new(key(5).public_key().unwrap()).unwrap().thumbprint().unwrap());
        let thumbprint = thumbprint.as_str();
        let bound = CLAIMS.replace('{', &std::format!("{{\"cnf\":{{\"jkt\":\"{thumbprint}\"}},"));
        let tls = CLAIMS.replace('{', "{\"cnf\":{\"x5t#S256\":\"AA\"},");
        let proof = |number: u8, token: &str| -> String {
            Proof::new("POST", URL, NOW, &[number; 16])
                .access_token(token)
                .sign(&key(5), &mut [0; 1024])
                .unwrap()
                .into()
        };
        let good = proof(1, "t");
        let mut entries = [ReplayEntry::FREE; 1];
        let mut table = ReplayTable::new(&mut entries);
        for (scheme, claims, proof, policy, expected) in [
            (TokenScheme::Bearer, CLAIMS, Err(ProofError::Missing), DpopPolicy::Accepted, Ok(())),
            (TokenScheme::Bearer, CLAIMS, Err(ProofError::Missing), DpopPolicy::Required, Err(TokenError::Unbound)),
            (TokenScheme::Bearer, &bound, Ok(&*good), DpopPolicy::Accepted, Err(TokenError::Bound)),
            (TokenScheme::Bearer, &tls, Err(ProofError::Missing), DpopPolicy::Accepted, Err(TokenError::Bound)),
            (TokenScheme::Dpop, &tls, Ok(&good), DpopPolicy::Accepted, Err(TokenError::Bound)),
            (TokenScheme::Dpop, CLAIMS, Ok(&good), DpopPolicy::Accepted, Err(TokenError::Unbound)),
            (
                TokenScheme::Dpop,
                &bound,
                Err(ProofError::Missing),
                DpopPolicy::Accepted,
                Err(ProofError::Missing.into()),
            ),
            (
                TokenScheme::Dpop,
                &bound,
                Err(ProofError::Several),
                DpopPolicy::Accepted,
                Err(ProofError::Several.into()),
            ),
            (TokenScheme::Dpop, &bound, Ok(&good), DpopPolicy::Required, Ok(())),
            (TokenScheme::Dpop, &bound, Ok(&good), DpopPolicy::Required, Err(ProofError::Replayed.into())),
        ] {
            let presented = PresentedToken { scheme, token: "t", proof };
            let token = AccessToken { claims: Raw::parse(claims.as_bytes()).unwrap() };
            let judged = with(|server| {
                server.dpop(policy).check_possession(&presented, &token, "POST", NOW, &mut table, &mut [0; 1024])
            });
            assert_eq!(judged, expected, "{scheme:?} {policy:?} {proof:?}");
        }
        let nonces = Nonces::new([1; 32]);
        let other = proof(2, "t");
        let presented = PresentedToken { scheme: TokenScheme::Dpop, token: "t", proof: Ok(&other) };
        let token = AccessToken { claims: Raw::parse(bound.as_bytes()).unwrap() };
        let mut entries = [ReplayEntry::FREE; 1];
        let mut table = ReplayTable::new(&mut entries);
        let judged = with(|server| {
            server.nonces(&nonces).check_possession(&presented, &token, "POST", NOW, &mut table, &mut [0; 1024])
        });
        assert_eq!(judged, Err(ProofError::Nonce.into()));
    }

    fn read(lines: &[(&str, &str)], query: Option<&str>) -> Result<(TokenScheme, String), TokenError> {
        let lines: Vec<(&str, &[u8])> = lines.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let headers = &lines[..];
        let head = RequestHead::new("POST", "/mcp", query, &headers);
        PresentedToken::read(&head).map(|presented| (presented.scheme, presented.token.to_string()))
    }

    // spec: A182
    #[test]
    fn tokens_in_heads() {
        let (auth, bearer) = ("Authorization", TokenScheme::Bearer);
        assert_eq!(read(&[(auth, "Bearer a.b_c~d+/==")], None), Ok((bearer, "a.b_c~d+/==".into())));
        assert_eq!(read(&[("authorization", " bEARER  x ")], Some("access=1")), Ok((bearer, "x".into())));
        assert_eq!(read(&[(auth, "DPoP x"), ("DPoP", "p")], None), Ok((TokenScheme::Dpop, "x".into())));
        assert_eq!(read(&[], None), Err(TokenError::Missing));
        assert_eq!(read(&[(auth, "Basic eDp5")], None), Err(TokenError::Missing));
        for lines in
            [&[(auth, "Bearer")][..], &[(auth, "Bearer a b")], &[(auth, "Bearer a,b")], &[(auth, "Bearer \u{e9}")]]
        {
            assert_eq!(read(lines, None), Err(TokenError::Malformed), "{lines:?}");
        }
        assert_eq!(read(&[(auth, "Bearer x"), (auth, "Bearer x")], None), Err(TokenError::Malformed));
        assert_eq!(read(&[(auth, "Bearer x")], Some("a=1&access_token=x")), Err(TokenError::Malformed));
        assert_eq!(read(&[], Some("access_token=x")), Err(TokenError::Malformed));
    }

    #[test]
    fn proofs_in_heads() {
        let proof = |proofs: &[&'static [u8]]| {
            let token = ("Authorization", &b"DPoP x"[..]);
            let lines: Vec<_> = proofs.iter().map(|proof| ("dpop", *proof)).chain([token]).collect();
            PresentedToken::read(&RequestHead::new("POST", "/mcp", None, &&lines[..])).unwrap().proof.map(String::from)
        };
        assert_eq!(proof(&[b" a.b.c "]), Ok("a.b.c".into()));
        assert_eq!(proof(&[]), Err(ProofError::Missing));
        assert_eq!(proof(&[b"a.b.c", b"a.b.c"]), Err(ProofError::Several));
        assert_eq!(proof(&[b"\xff"]), Err(ProofError::Jws(JwsError::Malformed)));
    }

    // spec: A043 A154 A155 A156 A159
    #[test]
    fn challenges() {
        let challenge = |error, scopes: &[&str]| with(|server| server.challenge(error, scopes).to_string());
        assert_eq!(challenge(TokenError::Missing, &[]), "Bearer");
        assert_eq!(challenge(TokenError::Missing, &["a", "b"]), "Bearer scope=\"a b\"");
        assert_eq!(
            challenge(TokenError::Expired, &[]),
            "Bearer error=\"invalid_token\", error_description=\"the access token has expired\""
        );
        assert_eq!(
            challenge(TokenError::Scope, &["a", "b"]),
            "Bearer error=\"insufficient_scope\", error_description=\"the access token lacks a scope\", scope=\"a b\""
        );
        // Nothing ends the quotes or the header.
        assert_eq!(challenge(TokenError::Missing, &["a\"\r\nX: \\y\u{e9}"]), "Bearer scope=\"aX: y\"");
        let required = |error| {
            with(|server| server.dpop(DpopPolicy::Required).metadata_url("https://m").challenge(error, &[]).to_string())
        };
        assert_eq!(required(TokenError::Missing), "DPoP algs=\"ES256\", resource_metadata=\"https://m\"");
        let nonce = challenge(ProofError::Nonce.into(), &[]);
        assert!(nonce.starts_with("DPoP error=\"use_dpop_nonce\", "), "{nonce}");
        assert_eq!(TokenError::Proof(ProofError::TableFull).status(), 503);
        assert_eq!(
            (TokenError::Malformed.status(), TokenError::Scope.status(), TokenError::Bound.status()),
            (400, 403, 401)
        );
    }

    #[test]
    fn principals() {
        let name = |claims: &str| AccessToken { claims: Raw::parse(claims.as_bytes()).unwrap() }.principal();
        let ann = name(r#"{"iss":"i","sub":"ann","client_id":"c"}"#);
        assert_eq!(ann, name(r#"{"client_id":"c","sub":"a\u006en","iss":"i","exp":1}"#));
        assert_eq!(name(r#"{"iss":"i"}"#), None);
        for other in [
            r#"{"iss":"i","sub":"annc","client_id":""}"#,
            r#"{"iss":"ia","sub":"nn","client_id":"c"}"#,
            r#"{"iss":"i","sub":"bob","client_id":"c"}"#,
            r#"{"iss":"i","sub":"ann"}"#,
            r#"{"iss":"i","client_id":"c"}"#,
        ] {
            assert_ne!(ann, name(other), "{other}");
        }
        let replaced = name(r#"{"iss":"i","sub":"\ufffd"}"#);
        assert!(replaced.is_some() && replaced == name("{\"iss\":\"i\",\"sub\":\"\u{fffd}\"}"));
        assert_ne!(name(r#"{"iss":"i","sub":"","client_id":"c"}"#), name(r#"{"iss":"i","client_id":"c"}"#));
        for nobody in
            [r#"{"iss":"i","sub":5}"#, r#"{"iss":"i","sub":5,"client_id":"c"}"#, r#"{"iss":"i","sub":"\ud800"}"#]
        {
            assert_eq!(name(nobody), None, "{nobody}");
        }
        // Neither tokens nor claims are in logs.
        let presented = PresentedToken { scheme: TokenScheme::Bearer, token: "secret", proof: Ok("proof") };
        let token = AccessToken { claims: Raw::constant(r#"{"sub":"ann"}"#) };
        let text = std::format!("{presented:?} {token:?}");
        assert!(!text.contains("secret") && !text.contains("ann"), "{text}");
    }

    #[test]
    fn metadata_of_all_kinds() {
        let mut space = [0; 512];
        let metadata =
            ResourceMetadata::new(URL, &["a", "b"]).name("My \"one\"").documentation("d").dpop(&["ES256"], true);
        assert_eq!(
            metadata.write(&mut space).unwrap().as_str(),
            r#"{"resource":"https://example.com/mcp","authorization_servers":["a","b"],"bearer_methods_supported":["header"],"dpop_signing_alg_values_supported":["ES256"],"dpop_bound_access_tokens_required":true,"resource_name":"My \"one\"","resource_documentation":"d"}"#
        );
        for len in 0..200 {
            assert!(metadata.write(&mut space[..len]).is_err(), "{len}");
        }
    }
}
