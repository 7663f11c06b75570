//! The checks of tokens with `--issuer URL`, as the scenario `auth-token-audience-validation` of the official suite wants them: the
//! issuer is that URL, the audience the server's own, and the keys are fetched when a token has one that is not known.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sansio_auth::jose::{Jwk, Jwks, Verifier};
use mcp_sansio_auth::resource_server::{PresentedToken, ResourceServer, TokenError, TrustedIssuer};
use mcp_sansio_blocking::http::{Access, Grant, Refusal, RequestHead};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};

/// The signatures of the suite's issuer: those of RSA, by the crate that TLS uses.
struct Rs256;

impl Verifier for Rs256 {
    fn supports(&self, algorithm: &str) -> bool {
        algorithm == "RS256"
    }

    fn verify(&self, _: &str, key: &Jwk<'_>, message: &[u8], signature: &[u8]) -> bool {
        let (mut modulus, mut exponent) = ([0; 1024], [0; 16]);
        let (Some(n), Some(e)) = (key.bytes("n", &mut modulus), key.bytes("e", &mut exponent)) else { return false };
        RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
    }
}

const VERIFIERS: [&dyn Verifier; 1] = [&Rs256];

/// The rules for tokens of one issuer.
pub(crate) struct Guard {
    issuer: String,
    resource: String,
    metadata: String,
    /// The key set of the issuer, as JSON.
    keys: Mutex<Vec<u8>>,
}

impl Guard {
    /// Makes the rules of the server at `resource`.
    pub(crate) fn new(issuer: &str, resource: String, metadata: &str) -> Self {
        Guard { issuer: issuer.to_owned(), resource, metadata: metadata.to_owned(), keys: Mutex::new(b"{}".to_vec()) }
    }

    /// Decides about a request by its head.
    pub(crate) fn authorize<'a>(&self, head: &RequestHead<'_>) -> Access<'a> {
        let mut judged = self.check(head);
        if judged.as_ref().is_err_and(|error| error.may_have_new_key())
            && let Some(keys) = fetch_keys(&self.issuer)
        {
            *self.keys() = keys;
            judged = self.check(head);
        }
        judged.map_or_else(|error| self.refuse(error), Access::GrantedTo)
    }

    fn keys(&self) -> MutexGuard<'_, Vec<u8>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, head: &RequestHead<'_>) -> Result<Grant, TokenError> {
        let presented = PresentedToken::read(head)?;
        let keys = self.keys();
        let issuers = [TrustedIssuer::new(&self.issuer, Jwks::parse(&keys).unwrap_or_default())];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut space = [0; 4096];
        let token = self.rules(&issuers).check_jwt(presented.token, now, &mut space)?;
        let principal = token.principal().ok_or(TokenError::Claims)?;
        Grant::to(Some(principal.as_str())).map_err(|_| TokenError::Claims).map(|grant| grant.scopes(u64::MAX))
    }

    fn rules<'g>(&'g self, issuers: &'g [TrustedIssuer<'g>]) -> ResourceServer<'g> {
        ResourceServer::new(&self.resource, issuers, &VERIFIERS).metadata_url(&self.metadata)
    }

    fn refuse<'a>(&self, error: TokenError) -> Access<'a> {
        let refusal = Refusal::new(error.status());
        let challenge = self.rules(&[]).challenge(error, &[]).to_string();
        Access::RefusedWith(refusal.clone().header("WWW-Authenticate", challenge).unwrap_or(refusal))
    }
}

/// Reads the key set of an issuer at this machine. It blocks: a server for users asks on a thread of its own.
fn fetch_keys(issuer: &str) -> Option<Vec<u8>> {
    let host = issuer.strip_prefix("http://")?;
    let mut socket = TcpStream::connect(host).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(socket, "GET /.well-known/jwks.json HTTP/1.0\r\nHost: {host}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    socket.take(1 << 16).read_to_end(&mut answer).ok()?;
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
    let keys = answer.split_off(head + 4);
    Jwks::parse(&keys).is_ok().then_some(keys)
}
