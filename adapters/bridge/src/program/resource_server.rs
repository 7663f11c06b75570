//! Access tokens of hosts (`docs/authorization.md`). `no_resource_server.rs` is for a bridge without TLS.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use blocking::unblock;
use mcp_sansio::json::Raw;
use mcp_sansio::json::write::base64;
use mcp_sansio::memory::Slots;
use mcp_sansio::sink::{LineSink, Sink};
use mcp_sansio_smol::client::auth::dpop::{Nonces, ReplayEntry, ReplayTable};
use mcp_sansio_smol::client::auth::form::encode;
use mcp_sansio_smol::client::auth::jose::{Jwk, Jwks, Verifier};
use mcp_sansio_smol::client::auth::pkce::sha256_base64url;
use mcp_sansio_smol::client::auth::resource_server::{
    PresentedToken, ResourceMetadata, ResourceServer, TokenError, TokenScheme, TrustedIssuer, introspection_request,
};
use mcp_sansio_smol::client::auth::url::acceptable;
use mcp_sansio_smol::client::auth::well_known::{inserted, server_places};
use mcp_sansio_smol::client::{FetchLimits, FetchRequest, Fetcher};
use mcp_sansio_smol::http::{Access, EndpointConfig, Grant, Refusal, RequestHead};
use mcp_sansio_smol::{LateReceiver, LateSender, channel};
use ring::rand::{SystemRandom, generate};
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};

use crate::arguments::Arguments;
use crate::{Shared, lock};

pub(crate) const HELP: &str = "
access tokens of hosts, with --listen:
  --issuer URL        lets in hosts alone that have a token of this authorization server
  --resource URL      the public URL of the bridge, for which the tokens must be; its path is served
  --scope NAME        a scope that each token must have; may come again
  --introspect URL    asks this endpoint about each token; else its signature is checked (ES256, RS256)
  --client-file FILE  how to log in there: the client's id, and on the next line its secret
";

/// The time for which an authorization server may be silent.
const SILENCE: Duration = Duration::from_secs(5);
/// The least time between two questions for the same thing: anybody can send a token with an unknown key.
const PAUSE: Duration = Duration::from_secs(5);
/// The time for which the word about a token holds.
const KEPT: Duration = Duration::from_secs(60);
/// The most answers that are kept, and the most bytes of one.
const WORDS: usize = 256;
const WORD: usize = 64 << 10;
/// The most questions at a time.
const QUESTIONS: usize = 16;
/// The most proofs of possession that are kept, each for ten minutes.
const PROOFS: usize = 10_000;

/// The options about access tokens. Texts that were not given are empty.
#[derive(Clone, Default)]
pub(crate) struct GuardOptions {
    issuer: String,
    resource: String,
    scopes: Vec<String>,
    introspect: String,
    /// The value of `Authorization` for the introspection endpoint.
    client: String,
}

impl GuardOptions {
    /// Takes an option. Returns `false` if it is another one.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let place = match name {
            "--issuer" => &mut self.issuer,
            "--resource" => &mut self.resource,
            "--introspect" => &mut self.introspect,
            "--scope" => {
                self.scopes.push(value.into());
                return Ok(true);
            }
            "--client-file" => {
                self.client = client(value).map_err(|why| format!("{value}: {why}"))?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let url = acceptable(value, value).map_err(|why| format!("{name}: {value:?} cannot be used: {why}"))?;
        if name == "--resource" && url.target().contains('?') {
            return Err(format!("{name}: {value:?} has a query"));
        }
        value.clone_into(place);
        Ok(true)
    }

    /// Checks that the options belong together. `is_alone` is `true` if there is a front for them, without other tokens.
    pub(crate) fn check(&self, is_alone: bool) -> Result<(), String> {
        let GuardOptions { issuer, resource, scopes, introspect, client } = self;
        let is_off = scopes.is_empty() && [issuer, resource, introspect, client].iter().all(|text| text.is_empty());
        let has_both = !issuer.is_empty() && !resource.is_empty();
        if is_off || is_alone && has_both && introspect.is_empty() == client.is_empty() {
            return Ok(());
        }
        Err("--issuer needs --resource and --listen, without --token-file; --introspect needs --client-file".into())
    }
}

/// Reads the file of a client. Returns the value of `Authorization` (RFC 6749, section 2.3.1).
fn client(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let (id, secret) = text.trim().split_once('\n').ok_or("it needs two lines")?;
    let (mut pair, mut coded) = (LineSink::new(Vec::new()), LineSink::new(Vec::new()));
    let written = encode(&mut pair, id.trim())
        .and_then(|()| pair.put(b":"))
        .and_then(|()| encode(&mut pair, secret.trim()))
        .and_then(|()| base64(&mut coded, pair.pending()));
    written.map_err(|error| error.to_string())?;
    Ok(format!("Basic {}", String::from_utf8_lossy(coded.pending())))
}

/// Decides about the requests of hosts. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Guard(Arc<Inner>);

struct Inner {
    options: &'static GuardOptions,
    /// The URL of the metadata.
    metadata: String,
    late: LateSender<Shared>,
    /// The answers of the authorization server: about tokens by their digests, and its key set, which has no name.
    words: Mutex<HashMap<String, Word>>,
    is_silent: AtomicBool,
    proofs: Mutex<ReplayTable<'static>>,
    nonces: Nonces,
}

/// An answer of the authorization server.
struct Word {
    /// Its last good answer.
    text: Option<Arc<[u8]>>,
    /// The time of the last question.
    asked: Instant,
    is_asking: bool,
}

impl Guard {
    /// Makes the guard of the options, if there are some, and the channel by which it wakes the server. `config` gets path and
    /// metadata of the server, and `names` its public name: they live as long as the program.
    pub(crate) fn new(
        arguments: &Arguments,
        config: &mut EndpointConfig<'static>,
        names: &mut Vec<&'static str>,
    ) -> Result<Option<(Self, LateReceiver<Shared>)>, String> {
        if arguments.guard.issuer.is_empty() {
            return Ok(None);
        }
        let options: &'static GuardOptions = Box::leak(Box::new(arguments.guard.clone()));
        let GuardOptions { issuer, resource, scopes, .. } = options;
        let url = acceptable(resource, resource).map_err(|why| why.to_string())?;
        let (issuers, scopes) = ([&**issuer], scopes.iter().map(|scope| &**scope).collect::<Vec<&str>>());
        let space = vec![0; 1024 + resource.len() + issuer.len() + 2 * scopes.concat().len() + 3 * scopes.len()];
        let metadata = ResourceMetadata::new(resource, &issuers).scopes(&scopes).dpop(&ALGORITHMS, false);
        let metadata = metadata.write(space.leak()).map_err(|error| error.to_string())?;
        *config = config.path(url.target()).resource_metadata(metadata);
        names.push(url.host());
        let nonces = generate(&SystemRandom::new()).map_err(|_| "the system has no random numbers")?;
        let (late, decided) = channel();
        let guard = Guard(Arc::new(Inner {
            metadata: inserted(&url, "oauth-protected-resource"),
            late,
            words: Mutex::default(),
            is_silent: AtomicBool::new(false),
            proofs: Mutex::new(ReplayTable::new(Slots::<ReplayEntry>::growing(PROOFS))),
            nonces: Nonces::new(nonces.expose()),
            options,
        }));
        if guard.0.options.introspect.is_empty() {
            guard.ask(String::new(), "", None);
        }
        Ok(Some((guard, decided)))
    }

    /// Decides about a request by its head.
    pub(crate) fn authorize(&self, head: &RequestHead<'_>) -> Access<'static> {
        let presented = match PresentedToken::read(head) {
            Ok(presented) => presented,
            Err(error) => return self.refuse(error),
        };
        let introspects = !self.0.options.introspect.is_empty();
        let name = if introspects { sha256_base64url(presented.token).as_str().to_owned() } else { String::new() };
        let holds = |word: &&Word| !introspects || word.asked.elapsed() < KEPT;
        let text = lock(&self.0.words).get(&name).filter(holds).and_then(|word| word.text.clone());
        match text.map(|text| self.check(&presented, head.method, &text)) {
            Some(Ok(grant)) => Access::GrantedTo(grant),
            Some(Err(error)) if !error.may_have_new_key() => self.refuse(error),
            judged => self.ask(name, presented.token, judged.and_then(Result::err)),
        }
    }

    /// Returns `true` while an answer of the authorization server may be missing.
    pub(crate) fn is_asking(&self) -> bool {
        lock(&self.0.words).values().any(|word| word.is_asking)
    }

    fn rules<'g>(&'g self, issuers: &'g [TrustedIssuer<'g>]) -> ResourceServer<'g> {
        let Inner { options, metadata, nonces, .. } = &*self.0;
        ResourceServer::new(&options.resource, issuers, &[&Signatures]).metadata_url(metadata).nonces(nonces)
    }

    /// Checks a token with the key set, or with the answer of the introspection endpoint.
    fn check(&self, presented: &PresentedToken<'_>, method: &str, text: &[u8]) -> Result<Grant, TokenError> {
        let GuardOptions { issuer, introspect, .. } = &self.0.options;
        let keys = if introspect.is_empty() { Jwks::parse(text).unwrap_or_default() } else { Jwks::EMPTY };
        let issuers = [TrustedIssuer::new(issuer, keys)];
        let (rules, now, mut space) = (self.rules(&issuers), now(), vec![0; presented.token.len()]);
        let token = match introspect.is_empty() {
            true => rules.check_jwt(presented.token, now, &mut space)?,
            false => rules.check_introspection(text, now)?,
        };
        rules.check_possession(presented, &token, method, now, &mut lock(&self.0.proofs), &mut [0; 4096])?;
        rules.require(&token, &self.scopes())?;
        let principal = token.principal().ok_or(TokenError::Claims)?;
        let grant = Grant::to(Some(principal.as_str())).map_err(|_| TokenError::Claims)?;
        Ok(match presented.scheme {
            TokenScheme::Dpop => grant.clone().header("DPoP-Nonce", self.nonce()).unwrap_or(grant),
            _ => grant,
        })
    }

    fn scopes(&self) -> Vec<&str> {
        self.0.options.scopes.iter().map(|scope| &**scope).collect()
    }

    fn refuse(&self, error: TokenError) -> Access<'static> {
        let refusal = Refusal::new(error.status());
        let challenge = self.rules(&[]).challenge(error, &self.scopes()).to_string();
        let refusal = refusal.clone().header("WWW-Authenticate", challenge).unwrap_or(refusal);
        Access::RefusedWith(refusal.clone().header("DPoP-Nonce", self.nonce()).unwrap_or(refusal))
    }

    /// Returns the nonce that proofs must have.
    fn nonce(&self) -> String {
        String::from_utf8_lossy(&self.0.nonces.current(now())).into_owned()
    }

    /// Asks the authorization server about a token, or for its key set. `error` is the judgement with its last answer.
    fn ask(&self, name: String, token: &str, error: Option<TokenError>) -> Access<'static> {
        let unknown = || error.map_or(Access::RefusedWith(Refusal::new(503)), |error| self.refuse(error));
        let mut words = lock(&self.0.words);
        let word = words.get(&name);
        match word {
            Some(word) if word.is_asking && word.asked.elapsed() < SILENCE => return Access::Later,
            Some(word) if word.is_asking || word.asked.elapsed() < PAUSE => return unknown(),
            _ if words.values().filter(|word| word.is_asking).count() >= QUESTIONS => return unknown(),
            Some(_) => {}
            // The oldest word about a token makes way.
            None if words.len() >= WORDS => {
                let others = words.iter().filter(|(name, word)| !name.is_empty() && !word.is_asking);
                let oldest = others.min_by_key(|(_, word)| word.asked).map(|(name, _)| name.clone());
                oldest.map(|oldest| words.remove(&oldest));
            }
            None => {}
        }
        let text = words.remove(&name).and_then(|word| word.text);
        words.insert(name.clone(), Word { text, asked: Instant::now(), is_asking: true });
        let (guard, token) = (self.clone(), token.to_owned());
        unblock(move || guard.answered(&name, guard.question(&token))).detach();
        Access::Later
    }

    /// Keeps an answer, or the last one if this is an error. The first error is printed.
    fn answered(&self, name: &str, answer: Result<Vec<u8>, String>) {
        let issuer = &self.0.options.issuer;
        if let (false, Err(why)) = (self.0.is_silent.swap(answer.is_err(), Ordering::Relaxed), &answer) {
            eprintln!("mcp-bridge: {issuer}: {why}");
        }
        if let Some(word) = lock(&self.0.words).get_mut(name) {
            word.is_asking = false;
            word.text = answer.ok().map(Arc::from).or(word.text.take());
        }
        // The server may have ended.
        let _ = self.0.late.decided();
    }

    /// Asks about a token, or for the key set if it is empty. Blocks.
    fn question(&self, token: &str) -> Result<Vec<u8>, String> {
        let GuardOptions { issuer, introspect, client, .. } = &self.0.options;
        let end = Instant::now() + SILENCE;
        if !introspect.is_empty() {
            let mut body = LineSink::new(Vec::new());
            introspection_request(token, &mut body).map_err(|error| error.to_string())?;
            let form = ("Content-Type", "application/x-www-form-urlencoded");
            let headers = [("Accept", "application/json"), form, ("Authorization", client)];
            return fetch(&FetchRequest::post(introspect, body.pending()).headers(&headers), end);
        }
        let mut why = String::from("no metadata");
        let url = acceptable(issuer, issuer).map_err(|why| why.to_string())?;
        for place in server_places(&url).iter().rev() {
            let metadata = fetch(&FetchRequest::get(place), end);
            match metadata.and_then(|metadata| jwks_uri(&metadata, issuer)) {
                Ok(uri) => {
                    let keys = fetch(&FetchRequest::get(&uri), end)?;
                    Jwks::parse(&keys).map_err(|_| format!("{uri} has no key set"))?;
                    return Ok(keys);
                }
                Err(error) => why = format!("{place}: {error}"),
            }
        }
        Err(why)
    }
}

/// Sends a request, without following redirects.
fn fetch(request: &FetchRequest<'_>, end: Instant) -> Result<Vec<u8>, String> {
    let left = end.saturating_duration_since(Instant::now()).as_millis() as u64;
    let fetcher = Fetcher::new(FetchLimits::DEFAULT.redirects(0).time(left).body(WORD));
    match fetcher.fetch(request).map_err(|error| error.to_string())? {
        answer if answer.status == 200 => Ok(answer.body),
        answer => Err(format!("status {}", answer.status)),
    }
}

/// Returns the place of the key set, from the metadata of an issuer.
fn jwks_uri(metadata: &[u8], issuer: &str) -> Result<String, String> {
    let metadata = Raw::parse(metadata).map_err(|error| error.to_string())?;
    let text = |member: &str| metadata.get(member).and_then(|value| value.text()).map(|text| text.to_string());
    match (text("issuer"), text("jwks_uri")) {
        (Some(other), _) if other != issuer => Err(format!("it is the metadata of {other:?}")),
        (Some(_), Some(uri)) => match acceptable(&uri, issuer) {
            Ok(_) => Ok(uri),
            Err(why) => Err(format!("jwks_uri {uri:?}: {why}")),
        },
        _ => Err("it has no issuer or no jwks_uri".into()),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

const ALGORITHMS: [&str; 2] = ["ES256", "RS256"];

/// Checks signatures with what rustls uses.
struct Signatures;

impl Verifier for Signatures {
    fn supports(&self, algorithm: &str) -> bool {
        ALGORITHMS.contains(&algorithm)
    }

    fn verify(&self, algorithm: &str, key: &Jwk<'_>, message: &[u8], signature: &[u8]) -> bool {
        let (mut first, mut second) = ([0; 1024], [0; 1024]);
        let is_rsa = algorithm == "RS256";
        let (names, space) = (if is_rsa { ["n", "e"] } else { ["x", "y"] }, (&mut first, &mut second));
        let (Some(one), Some(other)) = (key.bytes(names[0], space.0), key.bytes(names[1], space.1)) else {
            return false;
        };
        match is_rsa {
            true => RsaPublicKeyComponents { n: one, e: other }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            // Both coordinates have 32 bytes: others would be another point.
            false if (one.len(), other.len()) != (32, 32) => false,
            false => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [&[4], one, other].concat())
                .verify(message, signature)
                .is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_sansio::json::write::decode_base64url;

    use super::*;

    /// A key of OpenSSL, and its signature of `a.b`.
    const MODULUS: &str = "vTPjIueZMZ72g9amVfAelhqgUEfsdvQYHuDJCBEwskoXvpdbbp3Tay8ujxMgNigmmVhQR6m1quDBzaKepR4-PlFSFS5ttkHOQ-tVMP8tQhKa37\
         XIqHiS5_Fyztd895xZw-jtCQT_KhbJPKkPrnU5sY8R6P4HT_Fmna4OUf2hdkEsP7KFQznYz9v7-rjdthYqof25q9gdu3d4ggt10MsoIh9EHOXv\
         V1lUp8w0vlwVeKpdytYstCy0_u3wwEVpP44PAwBkXGnhgSJUy03CKyQ45FOTjvZ87CNpPrVkWWv1s6LUXiDS-7O7x7GJOKCXh8CcD_ev4uZPEk\
         37OAjHr9v8Ew";
    const SIGNATURE: &str = "neEn6v5qh6khpbz8X8kNiM6x66wmbhv1ghPP2SnUVo_6IHWoaFlyLK3_RaiHXc2lLRHcZ_4r6OhV5nmDyUHasCeF9CpgIS4u8wBr7ENTqMwY-n\
         WNWV50rzOgsQahqsstDKl5hpUQ0B3Tm0gUBxdqzH4acOXEiWiJ6yc1cGcM1zd24R1lWAcW_mPZhMgOTWBWLYmHUnu6LNRSp9Oc-6ZaD6d1vTYJ\
         Zb1_3Cj4pZvKC_GCAV7Yih-8Nmfw7rK2AcNU3gfEsJqrF3CipUUg33rG40FJR1mCkZAJ_CUyI49PsjO6zuJ2lGXC43ycpkokblGtp59P2JMmNH\
         oabUO5-e3kDg";

    #[test]
    fn rsa_signatures() {
        let key = format!(r#"{{"kty":"RSA","e":"AQAB","n":"{MODULUS}"}}"#);
        let key = Jwk::new(Raw::parse(key.as_bytes()).unwrap()).unwrap();
        let mut signature = [0; 256];
        assert_eq!(decode_base64url(SIGNATURE.as_bytes(), &mut signature), Some(256));
        assert!(Signatures.verify("RS256", &key, b"a.b", &signature));
        assert!(!Signatures.verify("RS256", &key, b"a.c", &signature));
        assert!(!Signatures.verify("ES256", &key, b"a.b", &signature));
    }
}
