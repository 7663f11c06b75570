//! A server over HTTP that checks the access tokens of its clients. `read` needs the scope `notes:read`, `erase` both scopes.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization>.
//! Try it: `cargo run --example guarded`. It plays the authorization server too: it prints its URL and a token for each scope. Then
//! `cargo run --example inspect -- --header "Authorization: Bearer TOKEN" call erase http://127.0.0.1:8934/mcp`.
//! With an authorization server: `guarded 127.0.0.1:8934 ISSUER KEYS`, where the file `KEYS` has the document at its `jwks_uri`.
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io::Read};

use mcp_sansio::memory::Slots;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool, Visibility};
use mcp_sansio_auth::dpop::{Nonces, ReplayEntry, ReplayTable};
use mcp_sansio_auth::jose::{Es256, Es256Key, Jwks, KeyHeader, Signer, Verifier, sign};
use mcp_sansio_auth::resource_server::{
    PresentedToken, ResourceMetadata, ResourceServer, TokenError, TokenScheme, TrustedIssuer,
};
use mcp_sansio_blocking::http::{
    Access, EndpointConfig, Grant, HttpServer, HttpServerOptions, MessageAccess, Refusal, RequestHead,
};

type Notes = Vec<&'static str>;

static TOOLS: [Tool<Notes>; 2] = [
    Tool::new("read", "Reads the notes", read),
    // In the list of all, who can log in again for the scope.
    Tool::new("erase", "Erases all notes", erase).visible(&Visibility::challenge(ALL)),
];

fn read(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    call.text(notes.join("\n").as_str())
}

fn erase(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    notes.clear();
    call.text("The notes are gone")
}

/// The scopes in the order of the bits of a grant.
const SCOPES: [&str; 2] = ["notes:read", "notes:write"];
/// The scope that each request needs.
const ANY: [&str; 1] = ["notes:read"];
/// The bits of both.
const ALL: u64 = 0b11;
/// The least time between two readings of the key set, in seconds.
const READ_PAUSE: u64 = 2;
const VERIFIERS: [&dyn Verifier; 1] = [&Es256];

/// The rules of this server, and the memory that they need.
struct Guard {
    resource: String,
    metadata: String,
    issuer: String,
    /// The key set of the issuer, as JSON.
    keys: Mutex<Vec<u8>>,
    file: Option<String>,
    /// The time when the file was read last.
    read_at: AtomicU64,
    proofs: Mutex<ReplayTable<'static>>,
    nonces: Nonces,
}

impl Guard {
    fn rules<'g>(&'g self, issuers: &'g [TrustedIssuer<'g>]) -> ResourceServer<'g> {
        ResourceServer::new(&self.resource, issuers, &VERIFIERS).metadata_url(&self.metadata).nonces(&self.nonces)
    }

    /// Decides about a request by its head.
    fn authorize<'a>(&self, head: &RequestHead<'_>) -> Access<'a> {
        let mut judged = self.check(head);
        if judged.as_ref().is_err_and(|error| error.may_have_new_key()) && self.read_keys() {
            judged = self.check(head);
        }
        judged.map_or_else(|error| self.refuse(error, &ANY), Access::GrantedTo)
    }

    /// Reads the key set of the issuer again: `true` if there is another one. Anybody can send a token with an unknown key, so it
    /// is read every few seconds at most. A file that is just being written keeps the set that was good.
    fn read_keys(&self) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| now() >= self.read_at.load(Relaxed) + READ_PAUSE) else {
            return false;
        };
        self.read_at.store(now(), Relaxed);
        let keys = fs::read(file).ok().filter(|keys| Jwks::parse(keys).is_ok());
        keys.map(|keys| *lock(&self.keys) = keys).is_some()
    }

    fn check(&self, head: &RequestHead<'_>) -> Result<Grant, TokenError> {
        let presented = PresentedToken::read(head)?;
        let keys = lock(&self.keys);
        let issuers = [TrustedIssuer::new(&self.issuer, Jwks::parse(&keys).unwrap_or_default())];
        let (rules, mut space) = (self.rules(&issuers), [0; 4096]);
        let token = rules.check_jwt(presented.token, now(), &mut space)?;
        let mut proofs = lock(&self.proofs);
        rules.check_possession(&presented, &token, head.method, now(), &mut proofs, &mut [0; 4096])?;
        rules.require(&token, &ANY)?;
        let bits = SCOPES.iter().enumerate().map(|(bit, scope)| u64::from(token.has_scope(scope)) << bit).sum();
        let principal = token.principal().ok_or(TokenError::Claims)?;
        let mut grant = Grant::to(Some(principal.as_str())).map_err(|_| TokenError::Claims)?.scopes(bits);
        if presented.scheme == TokenScheme::Dpop {
            grant = grant.clone().header("DPoP-Nonce", self.nonce()).unwrap_or(grant);
        }
        Ok(grant)
    }

    /// Decides about a message of a request that was admitted.
    fn permit<'a>(&self, message: &MessageAccess<'_>) -> Access<'a> {
        // The challenge names all scopes that the tool needs, so that the client asks for them at once.
        match message.lacks_scope() {
            true => self.refuse(TokenError::Scope, &SCOPES),
            false => Access::Granted { principal: None },
        }
    }

    fn refuse<'a>(&self, error: TokenError, scopes: &[&str]) -> Access<'a> {
        let refusal = Refusal::new(error.status());
        let challenge = self.rules(&[]).challenge(error, scopes).to_string();
        let refusal = refusal.clone().header("WWW-Authenticate", challenge).unwrap_or(refusal);
        Access::RefusedWith(refusal.clone().header("DPoP-Nonce", self.nonce()).unwrap_or(refusal))
    }

    /// The nonce that proofs must have. Clients read it from the answer before.
    fn nonce(&self) -> String {
        String::from_utf8_lossy(&self.nonces.current(now())).into_owned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let server = HttpServer::bind(arguments.next().unwrap_or("127.0.0.1:8934".into()))?;
    let resource = format!("http://{}/mcp", server.local_addr()?);
    println!("url: {resource}");
    let (issuer, file) = (arguments.next(), arguments.next());
    let keys = match &file {
        Some(file) => fs::read(file)?,
        None => play_issuer(&resource)?,
    };
    let guard = Guard {
        metadata: resource.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"),
        issuer: issuer.unwrap_or(ISSUER.into()),
        keys: Mutex::new(keys),
        file,
        read_at: AtomicU64::new(0),
        // Each proof is kept for ten minutes.
        proofs: Mutex::new(ReplayTable::new(Slots::<ReplayEntry>::growing(10_000))),
        nonces: Nonces::new(random()?),
        resource,
    };
    // The options live as long as the program.
    let issuers = [guard.issuer.as_str()];
    let metadata = ResourceMetadata::new(&guard.resource, &issuers).scopes(&SCOPES).name("Notes");
    let metadata = metadata.dpop(&["ES256"], false).write(vec![0; 1024].leak())?;
    let options = HttpServerOptions::new().config(EndpointConfig::DEFAULT.resource_metadata(metadata));

    let service = Service::new("guarded", "1.0").tools(&TOOLS);
    let authorize = |head: &RequestHead<'_>| guard.authorize(head);
    let permit = |message: &MessageAccess<'_>| guard.permit(message);
    let mut notes = vec!["water the plants"];
    Ok(server.options(options).authorize(&authorize).permit(&permit).serve(&service, &mut notes)?)
}

/// The issuer where there is no authorization server. It has no metadata, so clients cannot log in.
const ISSUER: &str = "https://issuer.example";

/// Prints a token without and one with `notes:write`, and returns the key set for them.
fn play_issuer(resource: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let secret = random()?;
    let key = Es256Key::from_bytes(&secret)?;
    for scope in [SCOPES[0], "notes:read notes:write"] {
        let claims = serde_json::json!({
            "iss": ISSUER, "aud": resource, "sub": "ann", "exp": now() + 3600, "scope": scope
        });
        let mut space = [0; 1024];
        let token = sign(&key, "at+jwt", KeyHeader::Id, &mut |out| out.put(claims.to_string().as_bytes()), &mut space)?;
        println!("{scope}: {token}");
    }
    let public = key.public_key().ok_or("the key has a public one")?;
    Ok(format!("{{\"keys\":[{public}]}}").into_bytes())
}
