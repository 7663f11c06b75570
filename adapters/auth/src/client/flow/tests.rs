//! Flows against scripted servers.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::*;
use crate::client::config::{AuthMethod, AuthorizationLimits, RegisteredClient};
use crate::client::text::text_of;
use crate::form::{self, encode};

const SERVER: &str = "https://h.example/mcp";
const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "http://127.0.0.1:8976/callback";
const CHALLENGE: &str =
    r#"Bearer scope="a", resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp""#;

/// A request that was fetched, with its form.
#[derive(Clone, Debug)]
struct Seen {
    method: &'static str,
    url: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Seen {
    fn field(&self, name: &str) -> Option<String> {
        let mut values = form::fields(&self.body).filter(|(found, _)| *found == name);
        let value = values.next().map(|(_, value)| form::decode(value).unwrap());
        assert_eq!(values.next(), None, "{name} is there twice");
        value
    }
}

/// An answer of a scripted server.
#[derive(Clone)]
struct Answer {
    status: u16,
    kind: &'static str,
    location: Option<String>,
    nonce: Option<String>,
    body: String,
}

fn json(status: u16, body: impl Into<String>) -> Answer {
    Answer { status, kind: "application/json; charset=utf-8", location: None, nonce: None, body: body.into() }
}

/// The end of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Retry,
    Refused(AuthorizationError),
    Idle,
}

/// Makes the URL of a redirect.
type Redirect = dyn Fn(&BTreeMap<String, String>) -> String;

/// A client and the world around it.
struct World {
    auth: Authorization,
    now: u64,
    seed: u8,
    seen: Vec<Seen>,
    visits: Vec<String>,
    /// URLs and their answers; several answers are given in turn, the last one for ever.
    script: BTreeMap<String, Vec<Answer>>,
    /// Makes the URL of the redirect from the parameters of the visit.
    redirect: Box<Redirect>,
}

const METADATA: &str = r#"{"issuer":"https://as.example","authorization_endpoint":"https://as.example/authorize?x=y",
    "token_endpoint":"https://as.example/token","registration_endpoint":"https://as.example/register",
    "response_types_supported":["code"],"code_challenge_methods_supported":["plain","S256"],
    "token_endpoint_auth_methods_supported":["none","client_secret_post","client_secret_basic","private_key_jwt"]}"#;
const TOKEN: &str = r#"{"access_token":"T1","token_type":"bearer","expires_in":3600,"refresh_token":"R1"}"#;

fn percent(text: &str) -> String {
    text_of(|out| out.write(|out| encode(out, text)))
}

impl World {
    fn new(config: AuthorizationConfig) -> Self {
        Self::with_store(config, CredentialStore::new())
    }

    fn with_store(config: AuthorizationConfig, store: CredentialStore) -> Self {
        let auth = Authorization::new(config, SERVER, store).unwrap();
        let mut world = World {
            auth,
            now: 1_700_000_000,
            seed: 0,
            seen: Vec::new(),
            visits: Vec::new(),
            script: BTreeMap::new(),
            redirect: Box::new(|visit| format!("{REDIRECT}?code=C1&state={}&iss={}", visit["state"], percent(ISSUER))),
        };
        world.set(
            "https://h.example/.well-known/oauth-protected-resource/mcp",
            json(
                200,
                format!(r#"{{"resource":"{SERVER}","authorization_servers":["{ISSUER}"],"scopes_supported":["p"]}}"#),
            ),
        );
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, METADATA));
        world.set("https://as.example/register", json(201, r#"{"client_id":"id 1"}"#));
        world.set("https://as.example/token", json(200, TOKEN));
        world
    }

    fn set(&mut self, url: &str, answer: Answer) {
        self.script.insert(url.into(), vec![answer]);
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Authorization, &mut Environment<'_>) -> R) -> R {
        let (now, seed) = (self.now, &mut self.seed);
        let mut random = |bytes: &mut [u8]| {
            *seed = seed.wrapping_add(1);
            bytes.fill(*seed);
        };
        let mut env = Environment::new(now, &mut random);
        #[cfg(feature = "es256")]
        {
            static KEYS: std::sync::OnceLock<[crate::jose::Es256Key<'static>; 2]> = std::sync::OnceLock::new();
            let keys =
                KEYS.get_or_init(|| [[7; 32], [8; 32]].map(|bytes| crate::jose::Es256Key::from_bytes(&bytes).unwrap()));
            env.client_key = Some(&keys[0]);
            env.dpop_key = Some(&keys[1]);
        }
        act(&mut self.auth, &mut env)
    }

    fn reject(&mut self, rejection: Rejection<'_>) -> Outcome {
        self.with(|auth, env| auth.rejected(&rejection, env))
    }

    /// Carries out one step. Returns `Some` at the end of the flow.
    fn turn(&mut self) -> Option<End> {
        let fetch = match self.auth.step() {
            Step::Fetch(fetch) => fetch.clone(),
            Step::Visit { url } => {
                let url = url.to_string();
                let query = url.split_once('?').unwrap().1;
                let decoded = |text| form::decode(text).unwrap();
                let fields = form::fields(query).map(|(name, value)| (decoded(name), decoded(value))).collect();
                self.visits.push(url);
                let back = (self.redirect)(&fields);
                let _ = self.with(|auth, env| auth.redirected(&back, env));
                return None;
            }
            Step::Retry => return Some(End::Retry),
            Step::Refused(error) => return Some(End::Refused(error)),
            Step::Idle => return Some(End::Idle),
        };
        assert_eq!(fetch.body.is_empty(), fetch.method == "GET");
        assert_eq!(fetch.is_configured, fetch.url.starts_with("https://idp."));
        let headers: Vec<_> = fetch.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let seen = Seen {
            method: fetch.method,
            url: fetch.url.clone(),
            headers: headers.iter().cloned().collect(),
            body: fetch.body.clone(),
        };
        assert_eq!(seen.headers.len(), headers.len(), "a header is there twice");
        self.seen.push(seen);
        let answer = match self.script.get_mut(&fetch.url) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => Answer { kind: "text/html", ..json(404, "<html>") },
        };
        let mut response = Response::new(answer.status, answer.body.as_bytes());
        response.content_type = Some(answer.kind);
        response.location = answer.location.as_deref();
        response.dpop_nonce = answer.nonce.as_deref();
        self.with(|auth, env| auth.fetched(&response, env));
        None
    }

    fn run(&mut self) -> End {
        (0..50).find_map(|_| self.turn()).expect("a flow ends")
    }

    /// Rejects a first request and goes the whole way.
    fn challenged(&mut self) -> End {
        match self.reject(Rejection::new(401, &[CHALLENGE])) {
            Outcome::Wait => self.run(),
            Outcome::Retry => End::Retry,
            Outcome::Refused(error) => End::Refused(error),
        }
    }

    fn urls(&self) -> Vec<&str> {
        self.seen.iter().map(|seen| seen.url.as_str()).collect()
    }

    fn last(&self) -> &Seen {
        self.seen.last().unwrap()
    }

    fn visited(&self, name: &str) -> Option<String> {
        let query = self.visits.last()?.split_once('?')?.1;
        form::fields(query).find(|(found, _)| *found == name).map(|(_, value)| form::decode(value).unwrap())
    }

    fn authorization(&mut self) -> Option<String> {
        self.with(|auth, env| auth.credentials("POST", SERVER, env)).unwrap().authorization
    }
}

fn config() -> AuthorizationConfig {
    AuthorizationConfig::new("demo", REDIRECT)
}

fn refused(document: Document, error: &str) -> End {
    End::Refused(AuthorizationError::Refused { document, error: error.into(), description: String::new() })
}

// spec: A003 A006 A009 A011 A016 A025 A035 A036 A038 A040 A057 A090 A093 A096 A097 A127 A130 A131 A135 A143
// spec: A146 A147 A148 A162 A164 A165 A166 A192 A193 A194 A209 A214
#[test]
fn from_a_challenge_to_a_token() {
    let mut world = World::new(config());
    assert_eq!(world.authorization(), None);
    assert_eq!(world.challenged(), End::Retry);
    assert_eq!(
        world.urls(),
        [
            "https://h.example/.well-known/oauth-protected-resource/mcp",
            "https://as.example/.well-known/oauth-authorization-server",
            "https://as.example/register",
            "https://as.example/token",
        ]
    );
    assert_eq!(world.seen.iter().map(|seen| seen.method).collect::<Vec<_>>(), ["GET", "GET", "POST", "POST"]);
    for (member, value) in [
        ("redirect_uris", r#"["http://127.0.0.1:8976/callback"]"#),
        ("application_type", r#""native""#),
        ("grant_types", r#"["authorization_code","refresh_token"]"#),
        ("token_endpoint_auth_method", r#""none""#),
        ("client_name", r#""demo""#),
        ("scope", r#""a p""#),
    ] {
        let body = mcp_sansio::json::Raw::parse(world.seen[2].body.as_bytes()).unwrap();
        assert_eq!(body.get(member).map(|value| value.as_str()), Some(value), "{member}");
    }
    assert!(world.visits[0].starts_with("https://as.example/authorize?x=y&response_type=code&"));
    for (name, value) in [
        ("client_id", "id 1"),
        ("redirect_uri", REDIRECT),
        ("scope", "a"),
        ("resource", SERVER),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(world.visited(name).as_deref(), Some(value), "{name}");
    }
    let token = world.last();
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "C1"),
        ("redirect_uri", REDIRECT),
        ("client_id", "id 1"),
        ("resource", SERVER),
    ] {
        assert_eq!(token.field(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(token.headers["Content-Type"], "application/x-www-form-urlencoded");
    let verifier = token.field("code_verifier").unwrap();
    assert_eq!(verifier.len(), 43);
    assert_eq!(world.visited("code_challenge").as_deref(), Some(crate::pkce::sha256_base64url(&verifier).as_str()));
    assert!(world.auth.store_changed() && !world.auth.store_changed());
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
    assert_eq!(world.run(), End::Idle);
    // The next run finds the token, and the one after the registration.
    let json = world.auth.store().to_json();
    let mut store = CredentialStore::from_json(json.as_bytes()).unwrap();
    assert_eq!(World::with_store(config(), store.clone()).authorization().as_deref(), Some("Bearer T1"));
    store.forget(SERVER);
    let mut again = World::with_store(config(), store);
    assert_eq!(again.challenged(), End::Retry);
    assert_eq!(again.seen.len(), 3, "it is registered already");
}

#[test]
fn the_token_goes_to_its_origin_only() {
    let mut world = World::new(config());
    world.challenged();
    for url in [
        "https://evil.example/mcp",
        "http://h.example/mcp",
        "https://h.example:444/mcp",
        "https://h.example@evil.example/",
        "",
    ] {
        let found = world.with(|auth, env| auth.credentials("GET", url, env));
        assert_eq!(found, Err(AuthorizationError::OtherOrigin), "{url}");
    }
    assert!(world.with(|auth, env| auth.credentials("GET", "https://H.example/mcp?x", env)).is_ok());
    assert!(!format!("{:?}", world.auth).contains("T1"));
}

// spec: A036 A040 A042 A057 A072 A073 A074 A075 A076 A089 A138 A165 A167 A198
#[test]
fn metadata_is_found_in_order() {
    let mut world = World::new(config());
    world.script.remove("https://h.example/.well-known/oauth-protected-resource/mcp");
    world.set(
        "https://h.example/.well-known/oauth-protected-resource",
        json(200, r#"{"resource":"https://h.example","authorization_servers":["https://as.example/t"]}"#),
    );
    world.set(
        "https://as.example/t/.well-known/openid-configuration",
        json(200, METADATA.replace("\"issuer\":\"https://as.example\"", "\"issuer\":\"https://as.example/t\"")),
    );
    world.redirect = Box::new(|visit| format!("/callback?code=C1&state={}", visit["state"]));
    assert_eq!(world.reject(Rejection::new(401, &["Bearer"])), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(
        world.urls()[..5],
        [
            "https://h.example/.well-known/oauth-protected-resource/mcp",
            "https://h.example/.well-known/oauth-protected-resource",
            "https://as.example/.well-known/oauth-authorization-server/t",
            "https://as.example/.well-known/openid-configuration/t",
            "https://as.example/t/.well-known/openid-configuration",
        ]
    );
    assert_eq!(world.last().field("resource").as_deref(), Some("https://h.example"));
    assert_eq!(world.visited("scope"), None);
}

/// The issuer is compared at each place of the metadata.
// spec: A080
#[test]
fn metadata_of_another_issuer_is_refused_wherever_it_is() {
    for place in [
        "https://as.example/.well-known/oauth-authorization-server/t",
        "https://as.example/.well-known/openid-configuration/t",
        "https://as.example/t/.well-known/openid-configuration",
    ] {
        for (issuer, is_it) in [("/t", true), ("", false), ("/t/", false), ("/T", false), ("/t#", false)] {
            let mut world = World::new(config());
            world.script.remove("https://as.example/.well-known/oauth-authorization-server");
            world.set(
                "https://h.example/.well-known/oauth-protected-resource/mcp",
                json(200, format!(r#"{{"resource":"{SERVER}","authorization_servers":["{ISSUER}/t"]}}"#)),
            );
            let named = format!(r#""issuer":"{ISSUER}{issuer}""#);
            world.set(place, json(200, METADATA.replace(&format!(r#""issuer":"{ISSUER}""#), &named)));
            world.redirect = Box::new(|visit| format!("/callback?code=C1&state={}", visit["state"]));
            let expected = if is_it {
                End::Retry
            } else {
                End::Refused(other_issuer(&format!("{ISSUER}/t"), &format!("{ISSUER}{issuer}")))
            };
            assert_eq!(world.challenged(), expected, "{place}: {issuer}");
            assert_eq!(world.visits.len(), usize::from(is_it), "{place}: {issuer}");
        }
    }
}

/// The fallback of 2025-03-26.
// spec: A001 A022 A023
#[test]
fn a_server_without_resource_metadata() {
    let mut world = World::new(config());
    world.script.clear();
    world.set("https://h.example/register", json(201, r#"{"client_id":"id","client_secret":"s"}"#));
    world.set("https://h.example/token", json(200, TOKEN));
    world.redirect = Box::new(|visit| format!("/callback?code=C1&state={}", visit["state"]));
    assert_eq!(world.reject(Rejection::new(401, &[])), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.urls()[2], "https://h.example/.well-known/oauth-authorization-server");
    assert!(world.visits[0].starts_with("https://h.example/authorize?"));
    assert_eq!((world.visited("resource"), world.last().field("resource")), (None, None));
    assert_eq!(world.last().headers["Authorization"], "Basic aWQ6cw==");
    // Not if the server has named metadata, nor if it is only out of order, nor if the application wants none.
    let metadata = "https://h.example/.well-known/oauth-protected-resource/mcp";
    for (legacy, challenge, status) in
        [(true, CHALLENGE, 404), (true, "Bearer", 500), (true, "Bearer", 302), (false, "Bearer", 404)]
    {
        let mut world = World::new(config().legacy(legacy));
        world.script.clear();
        world.set(metadata, json(status, "{}"));
        world.reject(Rejection::new(401, &[challenge]));
        assert!(matches!(
            world.run(),
            End::Refused(AuthorizationError::Unavailable { document: Document::ResourceMetadata, .. })
        ));
        assert_eq!(world.seen.len(), 2, "{challenge} {status}");
    }
}

/// Logs in to a world in which a place answers otherwise: the login ends with the error, and the next one is good.
/// Returns whether a person was sent somewhere.
fn is_refused(place: &str, answer: Answer, error: AuthorizationError) -> bool {
    let mut world = World::new(config());
    world.set(place, answer.clone());
    assert_eq!(world.challenged(), End::Refused(error), "{}", answer.body);
    assert_eq!(world.authorization(), None);
    let visited = !world.visits.is_empty();
    world.script = World::new(config()).script;
    assert_eq!(world.challenged(), End::Retry);
    visited
}

fn other_issuer(expected: &str, found: &str) -> AuthorizationError {
    AuthorizationError::IssuerMismatch(Mismatch::new(expected, found))
}

/// Both values are shown, and characters that look alike are not.
#[test]
fn values_that_differ_are_shown() {
    let words = other_issuer(ISSUER, "https://as.example/").to_string();
    assert!(words.ends_with("another issuer: https://as.example/ in place of https://as.example"), "{words}");
    assert!(other_issuer(ISSUER, "").to_string().ends_with(": nothing in place of https://as.example"));
    let alike = other_issuer(ISSUER, "https://аs.example\u{202e}\u{7}").to_string();
    assert!(alike.contains(r"https://\u{430}s.example\u{202e}\u{7} in place"), "{alike}");
    let AuthorizationError::IssuerMismatch(long) = other_issuer(ISSUER, &"x".repeat(9_000)) else { unreachable!() };
    assert_eq!(long.found.len(), crate::client::error::TEXT);
}

// spec: A080 A081 A082
#[test]
fn metadata_that_does_not_belong_is_refused() {
    let prm = "https://h.example/.well-known/oauth-protected-resource/mcp";
    let metadata = "https://as.example/.well-known/oauth-authorization-server";
    let resource = |resource: &str, issuer: &str| {
        json(200, format!(r#"{{"resource":"{resource}","authorization_servers":["{issuer}"]}}"#))
    };
    let url = |member, reason| AuthorizationError::Url { member, reason };
    let other_resource = |found| AuthorizationError::ResourceMismatch(Mismatch::new(SERVER, found));
    use crate::url::RefusedUrlError::{Insecure, Malformed, Private};
    for (place, answer, error) in [
        (prm, resource("https://evil.example/mcp", ISSUER), other_resource("https://evil.example/mcp")),
        (prm, resource("https://h.example/mcpx", ISSUER), other_resource("https://h.example/mcpx")),
        (prm, resource(SERVER, "javascript:x"), url("authorization_servers", Malformed)),
        (prm, resource(SERVER, "http://as.example"), url("authorization_servers", Insecure)),
        (prm, resource(SERVER, "https://192.168.0.1"), url("authorization_servers", Private)),
        (
            metadata,
            json(200, METADATA.replace("\"issuer\":\"https://as", "\"issuer\":\"https://evil")),
            other_issuer(ISSUER, "https://evil.example"),
        ),
        (
            metadata,
            json(200, METADATA.replace("\"issuer\":\"https://as.example", "\"issuer\":\"https://as.example/")),
            other_issuer(ISSUER, "https://as.example/"),
        ),
        (metadata, json(200, METADATA.replace("S256", "S512")), AuthorizationError::NoPkce),
        (metadata, json(200, METADATA.replace("code_challenge_methods_supported", "x")), AuthorizationError::NoPkce),
        (
            metadata,
            json(200, METADATA.replace("https://as.example/token", "file:///token")),
            url("token_endpoint", Malformed),
        ),
        (
            metadata,
            json(200, METADATA.replace("\"response_types", "\"grant_types_supported\":[\"x\"],\"response_types")),
            AuthorizationError::NoGrant,
        ),
        (metadata, json(200, METADATA.replace("registration_endpoint", "x")), AuthorizationError::NoClient),
        (
            metadata,
            json(200, METADATA.replace("\"none\",\"client_secret_post\",\"client_secret_basic\",", "")),
            AuthorizationError::NoClientAuthentication,
        ),
    ] {
        assert!(!is_refused(place, answer, error), "{place}");
    }
}

#[test]
fn registrations_that_do_not_belong_are_refused() {
    for (answer, error) in [
        (
            json(201, r#"{"client_id":"x","token_endpoint_auth_method":"tls_client_auth"}"#),
            AuthorizationError::NoClientAuthentication,
        ),
        (
            json(201, r#"{"client_id":"x","token_endpoint_auth_method":"client_secret_post"}"#),
            AuthorizationError::Document { document: Document::Registration, member: "client_secret" },
        ),
        (
            json(201, r#"{"client_id":"x","redirect_uris":["https://evil.example"]}"#),
            AuthorizationError::Document { document: Document::Registration, member: "redirect_uris" },
        ),
    ] {
        assert!(!is_refused("https://as.example/register", answer, error));
    }
}

#[test]
fn tokens_that_do_not_belong_are_refused() {
    for (answer, error) in [
        (json(200, r#"{"access_token":"x","token_type":"mac"}"#), AuthorizationError::TokenType),
        (json(200, r#"{"access_token":"x","token_type":"N_A"}"#), AuthorizationError::TokenType),
        (
            json(200, r#"{"access_token":"x"}"#),
            AuthorizationError::Document { document: Document::Token, member: "token_type" },
        ),
        (
            json(200, "{\"access_token\":\"x\\r\\nY: z\",\"token_type\":\"Bearer\"}"),
            AuthorizationError::Document { document: Document::Token, member: "access_token" },
        ),
        (json(200, "[]"), AuthorizationError::Document { document: Document::Token, member: "" }),
        (
            json(302, "{}"),
            AuthorizationError::Unavailable { document: Document::Token, failure: FetchFailure::Status(302) },
        ),
    ] {
        assert!(is_refused("https://as.example/token", answer, error));
    }
}

#[test]
fn documents_without_end() {
    let metadata = "https://as.example/.well-known/oauth-authorization-server";
    for body in ["[".repeat(10_000), " ".repeat((64 << 10) + 1), format!("{{\"x\":{}", "[".repeat(10_000))] {
        let mut world = World::new(config());
        world.set(metadata, json(200, body));
        assert!(matches!(
            world.challenged(),
            End::Refused(AuthorizationError::Document { .. } | AuthorizationError::Unavailable { .. })
        ));
    }
    // A good document with more bytes than the limit is not read, and the other place has no document.
    let (document, failure) = (Document::ServerMetadata, FetchFailure::Status(404));
    let nothing = End::Refused(AuthorizationError::Unavailable { document, failure });
    for (len, end) in [((64 << 10) + 1, nothing), (64 << 10, End::Retry)] {
        let mut world = World::new(config());
        world.set(metadata, json(200, format!("{METADATA}{}", " ".repeat(len - METADATA.len()))));
        assert_eq!(world.challenged(), end);
    }
    let mut world = World::new(config());
    world.reject(Rejection::new(401, &[CHALLENGE]));
    for failure in [FetchFailure::TooLarge, FetchFailure::Unreachable] {
        world.with(|auth, env| auth.fetch_failed(failure, env));
    }
    let (document, failure) = (Document::ResourceMetadata, FetchFailure::Unreachable);
    assert_eq!(world.run(), End::Refused(AuthorizationError::Unavailable { document, failure }));
    let limits = AuthorizationLimits { fetches: 2, ..AuthorizationLimits::default() };
    let mut world = World::new(config().limits(limits));
    let (document, failure) = (Document::Registration, FetchFailure::TooMany);
    assert_eq!(world.challenged(), End::Refused(AuthorizationError::Unavailable { document, failure }));
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn redirects_stay_on_their_origin() {
    let place = "https://h.example/.well-known/oauth-protected-resource/mcp";
    let to = |location: &str| Answer { location: Some(location.into()), ..json(302, "") };
    let mut world = World::new(config());
    let good = world.script[place][0].clone();
    world.set(place, to("/x"));
    world.set("https://h.example/x", to("https://h.example/y"));
    world.set("https://h.example/y", good);
    assert_eq!(world.challenged(), End::Retry);
    for location in [
        "https://evil.example/x",
        "http://h.example/x",
        "//evil.example/x",
        "x",
        "",
        "https://127.0.0.1/",
        "javascript:x",
        place,
    ] {
        let mut world = World::new(config());
        world.set(place, to(location));
        let (document, failure) = (Document::ResourceMetadata, FetchFailure::Status(404));
        assert_eq!(
            world.challenged(),
            End::Refused(AuthorizationError::Unavailable { document, failure }),
            "{location}"
        );
        assert!(world.urls().iter().all(|url| url.starts_with("https://h.example/")), "{location}");
        assert!(world.seen.len() <= 5);
    }
}

#[test]
fn challenges_that_lead_astray() {
    use crate::url::RefusedUrlError::{Fragment, Insecure, Malformed, Private};
    for (url, reason) in [
        ("javascript:alert(1)", Malformed),
        ("file:///etc/passwd", Malformed),
        ("http://h.example/x", Insecure),
        ("https://127.0.0.1/x", Private),
        ("https://169.254.169.254/latest", Private),
        ("https://h.example/x#y", Fragment),
    ] {
        let mut world = World::new(config());
        let challenge = format!("Bearer resource_metadata=\"{url}\"");
        let error = AuthorizationError::Url { member: "resource_metadata", reason };
        assert_eq!(world.reject(Rejection::new(401, &[&challenge])), Outcome::Refused(error), "{url}");
        assert_eq!(world.run(), End::Idle);
        assert_eq!(world.challenged(), End::Retry);
    }
    let mut world = World::new(config());
    for header in ["Bearer scope=\"a", "Bearer scope=\"a\\\\b\"", "Bearer scope=a, scope=b"] {
        assert!(matches!(
            world.reject(Rejection::new(401, &[header])),
            Outcome::Refused(AuthorizationError::Challenge(_))
        ));
    }
}

// spec: A119 A122 A124 A125
#[test]
fn redirects_of_the_browser_are_checked() {
    let iss = |iss: &str| format!("&iss={}", percent(iss));
    let error = |text: &str| refused(Document::Redirect, text);
    let iss_error = |found| End::Refused(AuthorizationError::Iss(Mismatch::new(ISSUER, found)));
    for (metadata, query, end) in [
        (false, "code=C1".to_string(), End::Retry),
        (true, format!("code=C1{}", iss(ISSUER)), End::Retry),
        (true, "code=C1".into(), iss_error("")),
        (true, format!("code=C1{}", iss("https://evil.example")), iss_error("https://evil.example")),
        (false, format!("code=C1{}", iss("https://evil.example")), iss_error("https://evil.example")),
        (true, format!("code=C1{}", iss("https://as.example/")), iss_error("https://as.example/")),
        (true, format!("code=C1{}{}", iss(ISSUER), iss(ISSUER)), iss_error("")),
        (
            true,
            format!("error=boom&error_description=x{}", iss("https://evil.example")),
            iss_error("https://evil.example"),
        ),
        (true, format!("error=access_denied{}", iss(ISSUER)), error("access_denied")),
        (false, "error=a%0d%0ab%1b[31m".into(), error("ab[31m")),
        (false, "error=x&code=C1".into(), error("x")),
        (false, "code=C1&code=C2".into(), End::Refused(AuthorizationError::Redirect)),
        (false, "code=".into(), End::Refused(AuthorizationError::Redirect)),
        (false, "code=%zz".into(), End::Refused(AuthorizationError::Redirect)),
        (false, "x=y".into(), End::Refused(AuthorizationError::Redirect)),
    ] {
        let mut world = World::new(config());
        let flag = "\"authorization_response_iss_parameter_supported\":true,\"response_types";
        if metadata {
            let text = METADATA.replace("\"response_types", flag);
            world.set("https://as.example/.well-known/oauth-authorization-server", json(200, text));
        }
        let back = query.clone();
        world.redirect = Box::new(move |visit| format!("/callback?{back}&state={}", visit["state"]));
        assert_eq!(world.challenged(), end, "{query}");
        let asked = world.urls().contains(&"https://as.example/token");
        assert_eq!(asked, end == End::Retry, "{query}");
    }
}

// spec: A211
#[test]
fn states_are_for_one_redirect() {
    let mut world = World::new(config());
    world.reject(Rejection::new(401, &[CHALLENGE]));
    while !matches!(world.auth.step(), Step::Visit { .. }) {
        assert_eq!(world.turn(), None);
    }
    let Step::Visit { url } = world.auth.step() else { unreachable!() };
    let state = url.split("state=").nth(1).unwrap().split('&').next().unwrap().to_string();
    let good = format!("/callback?code=C1&state={state}");
    for bad in [
        "/callback?code=C1",
        "/callback?code=C1&state=",
        "/callback?code=C1&state=x",
        "/callback",
        "",
        &format!("{good}&state={state}"),
        &format!("/callback#{good}"),
    ] {
        let found = world.with(|auth, env| auth.redirected(bad, env));
        assert_eq!(found, Err(AuthorizationError::State), "{bad}");
        assert!(matches!(world.auth.step(), Step::Visit { .. }), "{bad}");
    }
    assert_eq!(world.with(|auth, env| auth.redirected(&good, env)), Ok(()));
    assert_eq!(world.with(|auth, env| auth.redirected(&good, env)), Err(AuthorizationError::State), "a second time");
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.with(|auth, env| auth.redirected(&good, env)), Err(AuthorizationError::State), "late");
    assert_eq!(world.seen.iter().filter(|seen| seen.url.ends_with("/token")).count(), 1);
    // A second flow has another state and another verifier.
    let mut visits = world;
    visits.auth.store.forget(SERVER);
    visits.challenged();
    visits.auth.store.forget(SERVER);
    visits.challenged();
    let parameter = |visit: &String, name: &str| {
        visit.split(&format!("{name}=")).nth(1).unwrap().split('&').next().unwrap().to_string()
    };
    for name in ["state", "code_challenge"] {
        assert_ne!(parameter(&visits.visits[0], name), parameter(&visits.visits[1], name));
    }
}

#[test]
fn a_person_who_is_away() {
    let visit = || {
        let mut world = World::new(config());
        world.reject(Rejection::new(401, &[CHALLENGE]));
        while !matches!(world.auth.step(), Step::Visit { .. }) {
            world.turn();
        }
        world
    };
    let mut world = visit();
    world.now += 600;
    assert_eq!(world.run(), End::Retry);
    let mut world = visit();
    world.now += 601;
    assert_eq!(world.run(), End::Refused(AuthorizationError::Expired));
    let mut world = visit();
    // A clock that is set back ends nothing.
    for (now, left) in [(1_600_000_000, true), (1_700_000_600, true), (1_700_000_601, false)] {
        assert_eq!(world.auth.expire(now), left);
    }
    assert_eq!(world.run(), End::Refused(AuthorizationError::Expired));
    let mut world = visit();
    // Messages that are rejected meanwhile wait for the same flow.
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE])), Outcome::Wait);
    world.auth.cancel();
    assert_eq!(world.run(), End::Refused(AuthorizationError::Cancelled));
    world.auth.cancel();
    assert_eq!(world.run(), End::Idle);
    assert_eq!(world.challenged(), End::Retry);
}

// spec: A006 A007 A090 A091 A116 A117 A131
#[test]
fn clients_that_are_known_in_advance() {
    let secret = |method| RegisteredClient::new("i d").secret("s:/é").method(method);
    for (client, field, header) in [
        (secret(AuthMethod::SecretBasic), None, Some("Basic aStkOnMlM0ElMkYlQzMlQTk=")),
        (secret(AuthMethod::SecretPost), Some("s:/é"), None),
        (RegisteredClient::new("i d").method(AuthMethod::None), None, None),
    ] {
        let mut world = World::new(config().registered(client));
        assert_eq!(world.challenged(), End::Retry);
        assert!(!world.urls().contains(&"https://as.example/register"));
        assert_eq!(world.last().field("client_secret").as_deref(), field);
        assert_eq!(world.last().headers.get("Authorization").map(String::as_str), header);
        assert_eq!(world.last().field("client_id").is_some(), header.is_none());
        // It is bound to the issuer that it met first, also in the next run.
        let mut store = CredentialStore::from_json(world.auth.store().to_json().as_bytes()).unwrap();
        assert!(!world.auth.store().to_json().contains("s:/é"));
        store.forget(SERVER);
        let mut moved = World::with_store(world.auth.config.clone(), store);
        let other = r#"{"resource":"https://h.example/mcp","authorization_servers":["https://other.example"]}"#;
        moved.set("https://h.example/.well-known/oauth-protected-resource/mcp", json(200, other));
        moved.set(
            "https://other.example/.well-known/oauth-authorization-server",
            json(200, METADATA.replace("as.example", "other.example")),
        );
        let which = Mismatch::new(ISSUER, "https://other.example");
        assert_eq!(moved.challenged(), End::Refused(AuthorizationError::OtherIssuer(which)));
        assert!(moved.visits.is_empty());
    }
    let client = RegisteredClient::new("id").secret("s").issuer("https://other.example");
    let mut world = World::new(config().registered(client));
    let which = Mismatch::new("https://other.example", ISSUER);
    assert_eq!(world.challenged(), End::Refused(AuthorizationError::OtherIssuer(which)));
    assert_eq!(world.seen.len(), 1);
}

// spec: A005 A006 A008 A090 A092 A095 A104 A131 A136
#[test]
fn client_id_metadata_documents() {
    let document = "https://client.example/metadata.json";
    let mut world = World::new(config().client_metadata_url(document));
    let metadata =
        METADATA.replace("\"response_types", "\"client_id_metadata_document_supported\":true,\"response_types");
    world.set(
        "https://as.example/.well-known/oauth-authorization-server",
        json(200, metadata.replace(",\"private_key_jwt\"", "")),
    );
    assert_eq!(world.challenged(), End::Retry);
    assert_eq!(world.seen.len(), 3);
    assert_eq!(world.visited("client_id").as_deref(), Some(document));
    assert_eq!(world.last().field("client_id").as_deref(), Some(document));
    let mut world = World::new(config().client_metadata_url(document));
    assert_eq!(world.challenged(), End::Retry);
    assert_eq!(world.visited("client_id").as_deref(), Some("id 1"), "the server does not support documents");
}

// spec: A107
#[test]
fn a_client_id_that_is_no_url_of_a_document_is_refused() {
    let metadata =
        METADATA.replace("\"response_types", "\"client_id_metadata_document_supported\":true,\"response_types");
    for document in [
        "http://client.example/metadata.json",
        "https://client.example/",
        "https://client.example",
        "https://client.example?x=y",
        "https://client.example/?x=y",
        "https://client.example/?/metadata.json",
        "https://client.example/a/../metadata.json",
        "https://client.example/./metadata.json",
        "https://me@client.example/metadata.json",
        "https://client.example/metadata.json#x",
        "https://client.example/meta data.json",
        "metadata.json",
    ] {
        let mut world = World::new(config().client_metadata_url(document));
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, &*metadata));
        let reason = crate::url::RefusedUrlError::Malformed;
        let error = AuthorizationError::Url { member: "client_metadata_url", reason };
        assert_eq!(world.challenged(), End::Refused(error), "{document}");
        assert!(world.visits.is_empty());
    }
}

/// The user goes to the authorization server, and comes back: it needs both addresses.
#[test]
fn without_an_address_to_go_to_or_to_come_back_to_there_is_no_visit() {
    let mut world = World::new(config());
    let metadata = METADATA.replace("authorization_endpoint", "x");
    world.set("https://as.example/.well-known/oauth-authorization-server", json(200, metadata));
    assert_eq!(world.challenged(), End::Refused(AuthorizationError::NoGrant));
    let mut world = World::new(AuthorizationConfig::new("demo", "").registered(RegisteredClient::new("id")));
    assert_eq!(world.challenged(), End::Refused(AuthorizationError::NoGrant));
    assert!(world.visits.is_empty());
}

#[test]
fn registrations_that_are_no_good() {
    let mut world = World::new(config());
    world.set("https://as.example/register", json(400, r#"{"error":"invalid_redirect_uri"}"#));
    assert_eq!(world.challenged(), refused(Document::Registration, "invalid_redirect_uri"));
    // A secret that has expired, and a client that the server has forgotten, register again.
    let mut world = World::new(config());
    let registered = r#"{"client_id":"old","client_secret":"s","client_secret_expires_at":1700000100,"token_endpoint_auth_method":"client_secret_post"}"#;
    world
        .script
        .insert("https://as.example/register".into(), vec![json(201, registered), json(201, r#"{"client_id":"new"}"#)]);
    assert_eq!(world.challenged(), End::Retry);
    assert_eq!(world.last().field("client_secret").as_deref(), Some("s"));
    let mut later = World::with_store(config(), world.auth.store().clone());
    later.script = world.script.clone();
    later.auth.store.forget(SERVER);
    let expired = Answer { body: "{\"error\":\"invalid_client\"}".into(), ..json(401, "") };
    later.script.insert("https://as.example/token".into(), vec![expired, json(200, TOKEN)]);
    assert_eq!(later.challenged(), End::Retry);
    assert_eq!(later.visits.len(), 2);
    assert_eq!(later.last().field("client_id").as_deref(), Some("new"));
    world.auth.store.forget(SERVER);
    world.now += 100;
    assert_eq!(world.challenged(), End::Retry);
    assert_eq!(world.last().field("client_id").as_deref(), Some("new"));
    // A client that is new and not known ends the flow.
    let mut world = World::new(config());
    world.set("https://as.example/token", json(400, r#"{"error":"invalid_client"}"#));
    assert_eq!(world.challenged(), refused(Document::Token, "invalid_client"));
}

// spec: A144
#[test]
fn tokens_are_refreshed() {
    let mut world = World::new(config());
    world.challenged();
    world.auth.answered(1, None);
    world.authorization();
    let prepare = |world: &mut World| world.with(|auth, env| auth.prepare(env));
    assert_eq!(prepare(&mut world), Outcome::Retry);
    // Early; the new refresh token takes the place of the old one.
    world.now += 3_571;
    world.set("https://as.example/token", json(200, TOKEN.replace("T1", "T2").replace("R1", "R2")));
    assert_eq!(prepare(&mut world), Outcome::Wait);
    assert_eq!(prepare(&mut world), Outcome::Wait, "one refresh for both");
    assert_eq!(world.run(), End::Retry);
    let seen = world.last().clone();
    assert_eq!(seen.field("grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(seen.field("refresh_token").as_deref(), Some("R1"));
    assert_eq!(seen.field("resource").as_deref(), Some(SERVER));
    assert_eq!(seen.field("client_id").as_deref(), Some("id 1"));
    assert_eq!(world.authorization().as_deref(), Some("Bearer T2"));
    // At a 401, once for all that met it.
    let count = world.seen.len();
    world.set("https://as.example/token", json(200, r#"{"access_token":"T3","token_type":"Bearer"}"#));
    world.auth.answered(2, None);
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(2)), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.last().field("refresh_token").as_deref(), Some("R2"));
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(2)), Outcome::Retry);
    assert_eq!(world.seen.len(), count + 1);
    assert_eq!(world.visits.len(), 1);
    // The refresh token stays if there is no new one; without a time there is no early refresh.
    assert_eq!(prepare(&mut world), Outcome::Retry);
    // A refresh token that is no good: the whole way.
    world.auth.answered(3, None);
    world
        .script
        .insert("https://as.example/token".into(), vec![json(400, r#"{"error":"invalid_grant"}"#), json(200, TOKEN)]);
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(3)), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.visits.len(), 2);
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
    // A server that gives out no refresh token: the whole way each time.
    let mut world = World::new(config());
    world.set("https://as.example/token", json(200, r#"{"access_token":"T1","token_type":"Bearer","expires_in":60}"#));
    assert_eq!(world.challenged(), End::Retry);
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
    world.now += 3_600;
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
    assert_eq!((world.run(), world.visits.len()), (End::Retry, 2));
}

/// Another process has refreshed: its token is used, and the refresh token that it had used is not sent.
#[test]
fn a_token_of_another_process_ends_a_refresh() {
    let prepare = |world: &mut World| world.with(|auth, env| auth.prepare(env));
    for is_early in [true, false] {
        let mut world = World::new(config());
        world.challenged();
        world.auth.answered(1, None);
        world.authorization();
        let other = |from: &str, to: &str| {
            let text = world.auth.store().to_json();
            assert!(text.contains(from));
            CredentialStore::from_json(text.replace(from, to).as_bytes()).unwrap()
        };
        let (same, newer) = (other("R1", "R1"), other("\"R1\"", "\"R2\",\"x\":0"));
        let (newer, elsewhere) = (
            CredentialStore::from_json(newer.to_json().replace("T1", "T2").as_bytes()).unwrap(),
            other(&std::format!("\"server\":\"{SERVER}\""), "\"server\":\"https://other.example\""),
        );
        // Outside of a refresh nothing is taken.
        assert!(!world.auth.is_refreshing() && !world.auth.adopt(newer.clone()));
        if is_early {
            world.now += 3_571;
            assert_eq!(prepare(&mut world), Outcome::Wait);
        } else {
            assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
        }
        assert!(world.auth.is_refreshing());
        for store in [same, elsewhere, CredentialStore::new()] {
            assert!(!world.auth.adopt(store) && world.auth.is_refreshing());
        }
        let count = world.seen.len();
        assert!(world.auth.adopt(newer));
        assert_eq!((world.run(), world.seen.len()), (End::Retry, count));
        assert_eq!(world.authorization().as_deref(), Some("Bearer T2"));
        // Those that met the token of before are sent again.
        assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Retry);
        // If it is no good any more, it is refreshed.
        assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(2)), Outcome::Wait);
        world.run();
        assert_eq!(world.last().field("refresh_token").as_deref(), Some("R2"));
    }
}

#[test]
fn a_refresh_without_an_answer_loses_nothing() {
    let mut world = World::new(config());
    world.challenged();
    world.authorization();
    world.auth.answered(1, None);
    world.set("https://as.example/token", json(503, ""));
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
    let (document, failure) = (Document::Token, FetchFailure::Status(503));
    assert_eq!(world.run(), End::Refused(AuthorizationError::Unavailable { document, failure }));
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
    // The same if the request failed.
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
    world.with(|auth, env| auth.fetch_failed(FetchFailure::Unreachable, env));
    let failure = FetchFailure::Unreachable;
    assert_eq!(world.run(), End::Refused(AuthorizationError::Unavailable { document, failure }));
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
    // Early, the message goes out with the old token.
    world.now += 3_590;
    assert_eq!(world.with(|auth, env| auth.prepare(env)), Outcome::Wait);
    world.with(|auth, env| auth.fetch_failed(FetchFailure::Unreachable, env));
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
    world.set("https://as.example/token", json(200, TOKEN.replace("T1", "T2")));
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.authorization().as_deref(), Some("Bearer T2"));
    assert_eq!(world.visits.len(), 1);
}

#[test]
fn logout_revokes() {
    let revocable =
        METADATA.replace("\"response_types", "\"revocation_endpoint\":\"https://as.example/revoke\",\"response_types");
    let log_out = |world: &mut World| world.with(|auth, env| auth.log_out(env));
    let mut world = World::new(config());
    assert_eq!(log_out(&mut world), Outcome::Retry, "there is no token");
    world.challenged();
    assert_eq!(log_out(&mut world), Outcome::Retry, "nothing can be revoked");
    assert_eq!(world.authorization(), None);
    world.set("https://as.example/.well-known/oauth-authorization-server", json(200, revocable));
    let (document, failure) = (Document::Revocation, FetchFailure::Status(503));
    for (status, end) in [(200, End::Retry), (503, End::Refused(AuthorizationError::Unavailable { document, failure }))]
    {
        assert_eq!(world.challenged(), End::Retry);
        world.set("https://as.example/revoke", json(status, ""));
        assert_eq!(log_out(&mut world), Outcome::Wait);
        assert_eq!(log_out(&mut world), Outcome::Wait);
        assert_eq!(world.run(), end);
        assert_eq!(world.authorization(), None);
        assert_eq!(world.last().url, "https://as.example/revoke");
        assert_eq!(world.last().body, "token=R1&token_type_hint=refresh_token&client_id=id+1");
    }
}

#[test]
fn tokens_that_are_refused_do_not_loop() {
    let mut world = World::new(config());
    world.challenged();
    world.authorization();
    let reject = |world: &mut World, generation| world.reject(Rejection::new(401, &[CHALLENGE]).generation(generation));
    assert_eq!(reject(&mut world, 1), Outcome::Refused(AuthorizationError::TokenRejected));
    assert_eq!(world.visits.len(), 1);
    // One that was good: refresh, then the whole way, then the end.
    world.auth.answered(1, None);
    for (generation, visits) in [(1, 1), (2, 2)] {
        assert_eq!(reject(&mut world, generation), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
        assert_eq!(world.visits.len(), visits);
    }
    assert_eq!(reject(&mut world, 3), Outcome::Refused(AuthorizationError::TokenRejected));
    // A token that has expired is fetched again.
    let mut short = World::new(config());
    short.set("https://as.example/token", json(200, r#"{"access_token":"T","token_type":"Bearer","expires_in":5}"#));
    short.challenged();
    short.now += 4;
    assert_eq!(reject(&mut short, 1), Outcome::Refused(AuthorizationError::TokenRejected));
    short.now += 1;
    assert_eq!(reject(&mut short, 1), Outcome::Wait);
    // An adapter that does not report good answers.
    world.now += 61;
    assert_eq!(reject(&mut world, 3), Outcome::Wait);
}

// spec: A041 A168 A169 A173
#[test]
fn step_ups_unite_scopes() {
    let more = r#"Bearer error="insufficient_scope", scope="b""#;
    let mut world = World::new(config().scope("x"));
    world.challenged();
    assert_eq!(world.visited("scope").as_deref(), Some("a x"));
    let reject = |world: &mut World, header: &str, generation| {
        world.reject(Rejection::new(403, &[header]).generation(generation).operation("tools/call t"))
    };
    assert_eq!(reject(&mut world, more, 1), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.visited("scope").as_deref(), Some("a x b"));
    assert_eq!(reject(&mut world, more, 1), Outcome::Retry, "a request that went out before");
    assert_eq!(reject(&mut world, more, 2), Outcome::Refused(AuthorizationError::ScopesNotGranted));
    for (scope, generation) in [("c", 2), ("d", 3)] {
        assert_eq!(reject(&mut world, &more.replace("\"b\"", scope), generation), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
    }
    let other = more.replace("\"b\"", "e");
    assert_eq!(reject(&mut world, &other, 4), Outcome::Refused(AuthorizationError::TooManyStepUps));
    assert_eq!(world.reject(Rejection::new(403, &[&other]).generation(4).operation("another")), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.visited("scope").as_deref(), Some("a x b c d e"));
    for header in ["Bearer", "Bearer error=\"insufficient_scope\"", "Bearer error=\"invalid_token\", scope=q", ""] {
        assert_eq!(reject(&mut world, header, 5), Outcome::Refused(AuthorizationError::Forbidden), "{header}");
    }
    // A step-up that fails leaves the token.
    world.redirect = Box::new(|visit| format!("/callback?error=access_denied&state={}", visit["state"]));
    let denied = more.replace("\"b\"", "f");
    assert_eq!(world.reject(Rejection::new(403, &[&denied]).generation(5).operation("third")), Outcome::Wait);
    assert_eq!(world.run(), refused(Document::Redirect, "access_denied"));
    assert_eq!(world.authorization().as_deref(), Some("Bearer T1"));
}

/// The step-ups of 64 operations are counted. The oldest is forgotten for one more, and may begin again.
#[test]
fn step_ups_of_many_operations() {
    let limits = AuthorizationLimits { step_ups: 1, ..AuthorizationLimits::default() };
    let mut world = World::new(config().limits(limits));
    world.challenged();
    let mut scopes = 0;
    let mut step_up = |operation: usize| {
        scopes += 1;
        let header = format!(r#"Bearer error="insufficient_scope", scope="s{scopes}""#);
        let generation = world.with(|auth, env| auth.credentials("POST", SERVER, env)).unwrap().generation;
        let operation = format!("tools/call {operation}");
        let outcome = world.reject(Rejection::new(403, &[&header]).generation(generation).operation(&operation));
        if outcome == Outcome::Wait {
            assert_eq!(world.run(), End::Retry);
        }
        outcome
    };
    for operation in 0..64 {
        assert_eq!(step_up(operation), Outcome::Wait, "{operation}");
    }
    let too_many = Outcome::Refused(AuthorizationError::TooManyStepUps);
    assert_eq!([0, 63].map(&mut step_up), [too_many.clone(), too_many.clone()]);
    assert_eq!(step_up(64), Outcome::Wait);
    assert_eq!(step_up(1), too_many);
    assert_eq!(step_up(0), Outcome::Wait);
    assert_eq!(step_up(1), Outcome::Wait, "the oldest one made room");
}

#[test]
fn offline_access_only_where_it_is_offered() {
    let offered =
        METADATA.replace("\"response_types", "\"scopes_supported\":[\"a\",\"offline_access\"],\"response_types");
    for (metadata, config, scope, prompt) in [
        (METADATA, config(), "a", None),
        (&offered, config(), "a offline_access", Some("consent")),
        (&offered, config().offline_access(false), "a", None),
    ] {
        let mut world = World::new(config);
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, metadata));
        assert_eq!(world.challenged(), End::Retry);
        assert_eq!(world.visited("scope").as_deref(), Some(scope));
        assert_eq!(world.visited("prompt").as_deref(), prompt);
    }
}

#[test]
fn registers_without_scopes_that_are_refused() {
    const REGISTER: &str = "https://as.example/register";
    let refusal = json(400, r#"{"error":"invalid_client_metadata"}"#);
    let mut world = World::new(config());
    world.script.insert(REGISTER.into(), vec![refusal.clone(), json(201, r#"{"client_id":"id 1"}"#)]);
    assert_eq!(world.challenged(), End::Retry);
    let scopes = |world: &World| {
        let sent = world.seen.iter().filter(|seen| seen.url == REGISTER);
        sent.map(|seen| seen.body.contains("\"scope\"")).collect::<Vec<_>>()
    };
    assert_eq!(scopes(&world), [true, false]);
    assert_eq!(world.visited("scope").as_deref(), Some("a"));
    // Without scopes there is nothing to leave out, but the other type.
    let mut world = World::new(config());
    world.set(REGISTER, refusal);
    let document = format!(r#"{{"resource":"{SERVER}","authorization_servers":["{ISSUER}"]}}"#);
    world.set("https://h.example/.well-known/oauth-protected-resource/mcp", json(200, document));
    assert_eq!(world.reject(Rejection::new(401, &["Bearer"])), Outcome::Wait);
    assert_eq!(world.run(), refused(Document::Registration, "invalid_client_metadata"));
    assert_eq!(scopes(&world), [false, false]);
    // Once more, and not for ever; other errors are no matter of scopes.
    for (error, sent) in [
        ("invalid_client_metadata", &[true, false, false][..]),
        ("invalid_redirect_uri", &[true, true]),
        ("unapproved_software_statement", &[true]),
    ] {
        let mut world = World::new(config());
        world.set(REGISTER, json(400, format!(r#"{{"error":"{error}"}}"#)));
        assert_eq!(world.challenged(), refused(Document::Registration, error));
        assert_eq!(scopes(&world), sent);
    }
}

// spec: A097 A098 A099 A100
#[test]
fn registers_with_the_other_type_once() {
    const REGISTER: &str = "https://as.example/register";
    let types = |world: &World| {
        let sent = world.seen.iter().filter(|seen| seen.url == REGISTER);
        sent.map(|seen| seen.body.contains(r#""application_type":"native""#)).collect::<Vec<_>>()
    };
    let refusal = |text: &str| json(400, format!(r#"{{"error":"invalid_redirect_uri","error_description":"{text}"}}"#));
    for (redirect, first) in [(REDIRECT, true), ("https://app.example/callback", false)] {
        let mut world = World::new(AuthorizationConfig::new("demo", redirect));
        world.script.insert(REGISTER.into(), vec![refusal("one"), json(201, r#"{"client_id":"id 1"}"#)]);
        assert_eq!(world.challenged(), End::Retry);
        assert_eq!(types(&world), [first, !first], "{redirect}");
    }
    // The reason that is shown is that of the first.
    let mut world = World::new(config());
    world.script.insert(REGISTER.into(), vec![refusal("one"), refusal("two")]);
    let (document, error) = (Document::Registration, "invalid_redirect_uri".into());
    let refused = AuthorizationError::Refused { document, error, description: "one".into() };
    assert_eq!(world.challenged(), End::Refused(refused));
    assert_eq!(types(&world), [true, false]);
}

#[test]
fn the_authorization_server_moves() {
    let mut world = World::new(config());
    world.set("https://as.example/token", json(200, r#"{"access_token":"T1","token_type":"Bearer"}"#));
    world.challenged();
    world.auth.answered(1, None);
    let other = r#"{"resource":"https://h.example/mcp","authorization_servers":["https://other.example"]}"#;
    world.set("https://h.example/.well-known/oauth-protected-resource/mcp", json(200, other));
    world.set(
        "https://other.example/.well-known/oauth-authorization-server",
        json(200, METADATA.replace("as.example", "other.example")),
    );
    world.set("https://other.example/register", json(201, r#"{"client_id":"id 2"}"#));
    world.set("https://other.example/token", json(200, r#"{"access_token":"T2","token_type":"Bearer"}"#));
    world.redirect = Box::new(|visit| format!("/callback?code=C2&state={}", visit["state"]));
    let count = world.seen.len();
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert!(world.seen[count..].iter().all(|seen| !seen.url.contains("as.example") && !seen.body.contains("id+1")));
    assert!(!world.visits[1].contains("id+1"));
    assert_eq!(world.authorization().as_deref(), Some("Bearer T2"));
    // Back again: the first registration is still known.
    world.auth.answered(2, None);
    let good = World::new(config()).script;
    world.script = good;
    world.redirect = Box::new(|visit| format!("/callback?code=C2&state={}", visit["state"]));
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(2)), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!(world.visited("client_id").as_deref(), Some("id 1"));
}

#[test]
fn client_credentials() {
    let only =
        METADATA.replace("\"response_types", "\"grant_types_supported\":[\"client_credentials\"],\"response_types");
    for grant in [GrantType::Any, GrantType::ClientCredentials] {
        let client = RegisteredClient::new("id").secret("s").method(AuthMethod::SecretBasic);
        let mut world = World::new(config().grant(grant).registered(client));
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, only.as_str()));
        assert_eq!(world.challenged(), End::Retry);
        assert!(world.visits.is_empty());
        let seen = world.last();
        assert_eq!(seen.field("grant_type").as_deref(), Some("client_credentials"));
        assert_eq!(seen.field("resource").as_deref(), Some(SERVER));
        assert_eq!(seen.field("scope").as_deref(), Some("a"));
        assert_eq!(seen.headers["Authorization"], "Basic aWQ6cw==");
        world.auth.answered(1, None);
        // Refusals are final: no other try, no other grant.
        world.set("https://as.example/token", json(400, r#"{"error":"unauthorized_client"}"#));
        world.auth.store.token_mut(SERVER).unwrap().refresh_token = None;
        let count = world.seen.len();
        assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
        assert_eq!(world.run(), refused(Document::Token, "unauthorized_client"));
        assert_eq!(world.seen.len(), count + 3);
    }
    let mut world = World::new(config().grant(GrantType::ClientCredentials));
    world.set("https://as.example/.well-known/oauth-authorization-server", json(200, only));
    assert_eq!(world.challenged(), End::Refused(AuthorizationError::NoClient));
}

#[test]
fn enterprise_managed() {
    let idp = RegisteredClient::new("idp id").secret("idp:s");
    let provider = IdentityProvider::new("https://idp.example/token", idp, Secret::new("ID-TOKEN"));
    let client = RegisteredClient::new("id").secret("s").issuer(ISSUER).method(AuthMethod::SecretBasic);
    let mut world = World::new(config().grant(GrantType::EnterpriseManaged(provider)).registered(client));
    let good =
        r#"{"access_token":"JAG","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}"#;
    let grants = format!("\"grant_types_supported\":[\"{JWT_BEARER}\"],\"response_types");
    world.set(
        "https://as.example/.well-known/oauth-authorization-server",
        json(200, METADATA.replace("\"response_types", &grants)),
    );
    world.set("https://idp.example/token", json(200, good));
    assert_eq!(world.challenged(), End::Retry);
    let exchange = &world.seen[2];
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", ID_JAG),
        ("audience", ISSUER),
        ("resource", SERVER),
        ("subject_token", "ID-TOKEN"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
    ] {
        assert_eq!(exchange.field(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(exchange.headers["Authorization"], "Basic aWRwK2lkOmlkcCUzQXM=");
    let token = world.last();
    assert_eq!(token.field("grant_type").as_deref(), Some(JWT_BEARER));
    assert_eq!(token.field("assertion").as_deref(), Some("JAG"));
    assert_eq!(token.headers["Authorization"], "Basic aWQ6cw==");
    assert!(!token.body.contains("ID-TOKEN"));
    for (from, to) in [("id-jag", "access_token"), ("N_A", "Bearer"), ("\"JAG\"", "1")] {
        world.auth.store.forget(SERVER);
        world.set("https://idp.example/token", json(200, good.replace(from, to)));
        let count = world.seen.len();
        assert!(matches!(world.challenged(), End::Refused(_)), "{to}");
        assert_eq!(world.seen.len(), count + 3, "{to}");
    }
}

#[test]
fn workload_identity() {
    let mut world = World::new(config().grant(GrantType::WorkloadIdentity(Secret::new("JWT"))));
    let grants = format!("\"grant_types_supported\":[\"{JWT_BEARER}\"],\"response_types");
    world.set(
        "https://as.example/.well-known/oauth-authorization-server",
        json(200, METADATA.replace("\"response_types", &grants)),
    );
    world.set("https://as.example/token", json(400, r#"{"error":"invalid_grant"}"#));
    assert_eq!(world.challenged(), refused(Document::Token, "invalid_grant"));
    assert_eq!(world.seen.len(), 3);
    let token = world.last();
    assert_eq!(token.field("assertion").as_deref(), Some("JWT"));
    assert_eq!(token.field("resource").as_deref(), Some(SERVER));
    assert_eq!((token.field("client_id"), token.headers.get("Authorization")), (None, None));
}

/// 30 seconds before its end, or when half of a short lifetime is over; and not before it went out once.
#[test]
fn a_token_is_refreshed_when_it_ends_soon() {
    for (expires_in, early) in [(3_600, 3_570), (40, 20)] {
        let mut world = World::new(config());
        world.set("https://as.example/token", json(200, TOKEN.replace("3600", &expires_in.to_string())));
        world.challenged();
        let prepare = |world: &mut World| world.with(|auth, env| auth.prepare(env));
        world.now += early;
        assert_eq!(prepare(&mut world), Outcome::Retry, "it was not used");
        world.authorization();
        world.now -= 1;
        assert_eq!(prepare(&mut world), Outcome::Retry);
        world.now += 1;
        assert_eq!(prepare(&mut world), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
        assert_eq!(world.last().field("scope"), None, "the refresh token stands for its scopes");
    }
}

/// One that is refused earlier is not fetched again, unless it has ended.
#[test]
fn a_new_token_counts_as_accepted_after_a_minute() {
    let refused = || Outcome::Refused(AuthorizationError::TokenRejected);
    for (expires_in, after, outcome) in [
        (3_600, 60, refused()),
        (3_600, 61, Outcome::Wait),
        (0, 0, refused()),
        (0, 60, refused()),
        (0, 61, Outcome::Wait),
        (1, 0, refused()),
        (1, 1, Outcome::Wait),
    ] {
        let mut world = World::new(config());
        world.set("https://as.example/token", json(200, TOKEN.replace("3600", &expires_in.to_string())));
        world.challenged();
        world.now += after;
        let rejection = Rejection::new(401, &[CHALLENGE]).generation(1);
        assert_eq!(world.reject(rejection), outcome, "{expires_in} seconds, after {after}");
    }
}

#[test]
fn without_step_ups_the_first_is_one_too_many() {
    let mut world = World::new(config().limits(AuthorizationLimits { step_ups: 0, ..AuthorizationLimits::default() }));
    world.challenged();
    let rejection = Rejection::new(403, &[r#"Bearer error="insufficient_scope", scope="b""#]).generation(1);
    assert_eq!(world.reject(rejection), Outcome::Refused(AuthorizationError::TooManyStepUps));
}

/// The first one always goes out.
#[test]
fn a_flow_without_fetches_has_one() {
    let mut world = World::new(config().limits(AuthorizationLimits { fetches: 0, ..AuthorizationLimits::default() }));
    let (document, failure) = (Document::ServerMetadata, FetchFailure::TooMany);
    assert_eq!(world.challenged(), End::Refused(AuthorizationError::Unavailable { document, failure }));
    assert_eq!(world.seen.len(), 1);
}

/// A scope that was granted once is asked for again, but `offline_access` only where it is still offered; and never alone.
#[test]
fn offline_access_belongs_to_other_scopes() {
    const METADATA_AT: &str = "https://as.example/.well-known/oauth-authorization-server";
    let challenge = CHALLENGE.replace(r#"scope="a", "#, "");
    let offered = METADATA.replace("\"response_types", "\"scopes_supported\":[\"offline_access\"],\"response_types");
    let mut world = World::new(config());
    world.set(METADATA_AT, json(200, offered.as_str()));
    assert_eq!(world.challenged(), End::Retry);
    for (metadata, scope) in [(offered.as_str(), "a offline_access p"), (METADATA, "a p")] {
        world.set(METADATA_AT, json(200, metadata));
        let generation = world.auth.generation;
        world.auth.answered(generation, None);
        world.auth.store.token_mut(SERVER).unwrap().refresh_token = None;
        assert_eq!(world.reject(Rejection::new(401, &[&challenge]).generation(generation)), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
        assert_eq!(world.visited("scope").as_deref(), Some(scope));
        assert_eq!(world.last().field("scope"), None, "the code stands for its scopes");
    }
    let mut world = World::new(config());
    world.set(METADATA_AT, json(200, offered));
    let without = format!(r#"{{"resource":"{SERVER}","authorization_servers":["{ISSUER}"]}}"#);
    world.set("https://h.example/.well-known/oauth-protected-resource/mcp", json(200, without));
    assert_eq!(world.reject(Rejection::new(401, &[&challenge])), Outcome::Wait);
    assert_eq!(world.run(), End::Retry);
    assert_eq!((world.visited("scope"), world.visited("prompt")), (None, None));
}

#[test]
fn a_client_whose_secret_has_ended_registers_again() {
    const REGISTER: &str = "https://as.example/register";
    for (ends_at, after, registrations) in [(0, 10_000, 1), (1_700_000_100, 99, 1), (1_700_000_100, 100, 2)] {
        let mut world = World::new(config());
        let client = format!(r#"{{"client_id":"id","client_secret":"s","client_secret_expires_at":{ends_at}}}"#);
        world.set(REGISTER, json(201, client));
        assert_eq!(world.challenged(), End::Retry);
        world.now += after;
        world.auth.store.forget(SERVER);
        assert_eq!(world.challenged(), End::Retry);
        let found = world.urls().into_iter().filter(|url| *url == REGISTER).count();
        assert_eq!(found, registrations, "{ends_at}, {after} seconds later");
    }
}

/// Goes to the end of the flow, and returns the URLs of the answers that have changed the store.
fn changes(world: &mut World) -> Vec<String> {
    let mut changes = Vec::new();
    for _ in 0..50 {
        let end = world.turn();
        if world.auth.store_changed() {
            changes.push(world.last().url.clone());
        }
        if let Some(end) = end {
            assert_eq!(end, End::Retry);
            return changes;
        }
    }
    panic!("a flow ends");
}

#[test]
fn each_change_of_the_store_is_reported() {
    const REGISTER: &str = "https://as.example/register";
    const TOKENS: &str = "https://as.example/token";
    let mut world = World::new(config());
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE])), Outcome::Wait);
    assert_eq!(changes(&mut world), [REGISTER, TOKENS]);
    // A refresh token that is no good, and then a client that is not known any more.
    let refusal = |error: &str| json(400, format!(r#"{{"error":"{error}"}}"#));
    let answers = vec![refusal("invalid_grant"), refusal("invalid_client"), json(200, TOKEN)];
    world.script.insert(TOKENS.into(), answers);
    world.auth.answered(1, None);
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE]).generation(1)), Outcome::Wait);
    assert_eq!(changes(&mut world), [TOKENS, TOKENS, REGISTER, TOKENS]);
    assert_eq!(world.with(|auth, env| auth.log_out(env)), Outcome::Retry);
    assert!(world.auth.store_changed() && !world.auth.store_changed());
    // A client that is known in advance is bound to the authorization server.
    let mut world = World::new(config().registered(RegisteredClient::new("id").method(AuthMethod::None)));
    assert_eq!(world.reject(Rejection::new(401, &[CHALLENGE])), Outcome::Wait);
    assert_eq!(changes(&mut world), ["https://as.example/.well-known/oauth-authorization-server", TOKENS]);
}

#[test]
fn servers_that_must_not_get_tokens() {
    for server in
        ["http://h.example/mcp", "ftp://h.example/", "h.example", "https://h.example/#x", "https://me:pw@h.example/"]
    {
        let found = Authorization::new(config(), server, CredentialStore::new());
        assert!(matches!(found, Err(AuthorizationError::Url { member: "server", .. })), "{server}");
    }
    let found = Authorization::new(AuthorizationConfig::new("x", "http://h.example/"), SERVER, CredentialStore::new());
    assert!(matches!(found, Err(AuthorizationError::Url { member: "redirect_uri", .. })));
    assert!(Authorization::new(config(), "http://localhost:1/mcp", CredentialStore::new()).is_ok());
}

/// With a key: assertions and proofs.
#[cfg(feature = "es256")]
mod keys {
    use super::*;
    use crate::jose::Jws;

    const DPOP: &str = r#"DPoP resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp""#;

    /// Returns the claims of a signed token.
    fn claims(token: &str) -> BTreeMap<String, String> {
        let mut space = vec![0; 4096];
        let jws = Jws::parse(token, &mut space).unwrap();
        let text = |raw: mcp_sansio::json::Raw<'_>| raw.text().map_or(raw.to_string(), |text| text.to_string());
        jws.claims.members().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    fn with_dpop(world: &mut World) {
        let metadata =
            METADATA.replace("\"response_types", "\"dpop_signing_alg_values_supported\":[\"ES256\"],\"response_types");
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, metadata));
        world.set("https://as.example/token", json(200, TOKEN.replace("bearer", "DPoP")));
    }

    #[test]
    fn assertions_of_a_client() {
        let client = RegisteredClient::new("id");
        let mut world = World::new(config().grant(GrantType::ClientCredentials).registered(client));
        let metadata =
            METADATA.replace("\"response_types", "\"grant_types_supported\":[\"client_credentials\"],\"response_types");
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, metadata));
        assert_eq!(world.challenged(), End::Retry);
        let seen = world.last();
        let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        assert_eq!(seen.field("client_assertion_type").as_deref(), Some(kind));
        assert_eq!(seen.field("client_id"), None);
        let first = claims(&seen.field("client_assertion").unwrap());
        assert_eq!((first["iss"].as_str(), first["sub"].as_str(), first["aud"].as_str()), ("id", "id", ISSUER));
        assert_eq!(first["iat"], "1700000000");
        assert!(first["exp"].parse::<u64>().unwrap() <= 1_700_000_300);
        // Each is new, and of the time that the clock shows now, even if it was set back.
        world.auth.store.forget(SERVER);
        world.now -= 7_200;
        assert_eq!(world.challenged(), End::Retry);
        let second = claims(&world.last().field("client_assertion").unwrap());
        assert_ne!(first["jti"], second["jti"]);
        assert_eq!((second["iat"].as_str(), second["exp"].parse::<u64>().unwrap()), ("1699992800", 1_699_992_860));
    }

    #[test]
    fn proofs_are_for_one_request() {
        let mut world = World::new(config());
        with_dpop(&mut world);
        assert_eq!(world.reject(Rejection::new(401, &[DPOP])), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
        assert_eq!(world.visited("dpop_jkt").map(|jkt| jkt.len()), Some(43));
        let at_token = claims(&world.last().headers["DPoP"]);
        assert_eq!((at_token["htm"].as_str(), at_token["htu"].as_str()), ("POST", "https://as.example/token"));
        assert!(!at_token.contains_key("ath"));
        let mut ids = vec![at_token["jti"].clone()];
        for method in ["POST", "GET", "DELETE", "POST"] {
            let found = world.with(|auth, env| auth.credentials(method, SERVER, env)).unwrap();
            assert_eq!(found.authorization.as_deref(), Some("DPoP T1"));
            let claims = claims(&found.dpop.unwrap());
            assert_eq!((claims["htm"].as_str(), claims["htu"].as_str()), (method, SERVER));
            assert_eq!(claims["ath"].len(), 43);
            ids.push(claims["jti"].clone());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 5);
    }

    #[test]
    fn nonces_are_kept_apart() {
        let mut world = World::new(config());
        with_dpop(&mut world);
        let nonce = |nonce: &str, answer| Answer { nonce: Some(nonce.into()), ..answer };
        let demand = json(400, r#"{"error":"use_dpop_nonce"}"#);
        let good = json(200, TOKEN.replace("bearer", "dpop"));
        world.script.insert(
            "https://as.example/token".into(),
            vec![nonce("as-1", demand.clone()), nonce("as-2", good.clone())],
        );
        assert_eq!(world.reject(Rejection::new(401, &[DPOP])), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
        let [first, second] = &world.seen[world.seen.len() - 2..] else { unreachable!() };
        assert_eq!(first.body, second.body, "the same code and verifier");
        assert_eq!(claims(&second.headers["DPoP"])["nonce"], "as-1");
        assert_ne!(claims(&first.headers["DPoP"])["jti"], claims(&second.headers["DPoP"])["jti"]);
        let sent = |world: &mut World| {
            let found = world.with(|auth, env| auth.credentials("POST", SERVER, env)).unwrap();
            claims(&found.dpop.unwrap()).get("nonce").cloned()
        };
        assert_eq!(sent(&mut world), None);
        let use_nonce = r#"DPoP error="use_dpop_nonce""#;
        let reject =
            |world: &mut World, nonce| world.reject(Rejection::new(401, &[use_nonce]).generation(1).dpop_nonce(nonce));
        assert_eq!(reject(&mut world, "rs-1"), Outcome::Retry);
        assert_eq!(sent(&mut world).as_deref(), Some("rs-1"));
        world.auth.answered(1, Some("rs-2"));
        assert_eq!(sent(&mut world).as_deref(), Some("rs-2"));
        // One that no header can carry.
        for nonce in ["", "rs 3", "rs\r\n3", "rs-\u{e9}"] {
            world.auth.answered(1, Some(nonce));
            assert_eq!(sent(&mut world).as_deref(), Some("rs-2"), "{nonce:?}");
        }
        // A server that is never content.
        for _ in 0..NONCES {
            assert_eq!(reject(&mut world, "rs-3"), Outcome::Retry);
        }
        assert_eq!(reject(&mut world, "rs-3"), Outcome::Refused(AuthorizationError::ProofRejected));
        assert_eq!(
            world.reject(Rejection::new(401, &[use_nonce]).generation(1)),
            Outcome::Refused(AuthorizationError::ProofRejected)
        );
        // The refresh uses the newest nonce of the authorization server.
        world.script.insert("https://as.example/token".into(), vec![good]);
        world.auth.answered(1, None);
        assert_eq!(world.reject(Rejection::new(401, &[DPOP]).generation(1)), Outcome::Wait);
        assert_eq!(world.run(), End::Retry);
        assert_eq!(claims(&world.last().headers["DPoP"])["nonce"], "as-2");
        // An authorization server that is never content.
        world.set("https://as.example/token", nonce("as-3", demand));
        world.auth.store.forget(SERVER);
        assert_eq!(world.reject(Rejection::new(401, &[DPOP])), Outcome::Wait);
        assert_eq!(world.run(), refused(Document::Token, "use_dpop_nonce"));
    }

    #[test]
    fn a_token_without_proof_is_refused_where_one_is_demanded() {
        for (challenge, demands) in [(DPOP, false), (CHALLENGE, true)] {
            let mut world = World::new(config().require_dpop(demands));
            with_dpop(&mut world);
            world.set("https://as.example/token", json(200, TOKEN));
            assert_eq!(world.reject(Rejection::new(401, &[challenge])), Outcome::Wait);
            assert_eq!(world.run(), End::Refused(AuthorizationError::TokenType));
            assert_eq!(world.authorization(), None);
        }
        let mut world = World::new(config());
        with_dpop(&mut world);
        world.set("https://as.example/token", json(200, TOKEN));
        assert_eq!(world.challenged(), End::Retry, "nothing demands it");
        let metadata =
            METADATA.replace("\"response_types", "\"dpop_signing_alg_values_supported\":[\"RS256\"],\"response_types");
        world.set("https://as.example/.well-known/oauth-authorization-server", json(200, metadata));
        world.auth.store.forget(SERVER);
        assert_eq!(world.reject(Rejection::new(401, &[DPOP])), Outcome::Wait);
        assert_eq!(world.run(), End::Refused(AuthorizationError::NoProofKey));
    }

    /// The demand holds for the whole way that begins when the refresh token is no good.
    #[test]
    fn a_token_without_proof_is_refused_after_a_refresh_too() {
        for (challenge, demands) in [(DPOP, false), (CHALLENGE, true)] {
            let mut world = World::new(config().require_dpop(demands));
            with_dpop(&mut world);
            assert_eq!(world.reject(Rejection::new(401, &[challenge])), Outcome::Wait);
            assert_eq!(world.run(), End::Retry);
            world.authorization();
            world.auth.answered(1, None);
            let refused = json(400, r#"{"error":"invalid_grant"}"#);
            world.script.insert("https://as.example/token".into(), vec![refused, json(200, TOKEN)]);
            assert_eq!(world.reject(Rejection::new(401, &[challenge]).generation(1)), Outcome::Wait);
            assert_eq!(world.run(), End::Refused(AuthorizationError::TokenType));
        }
    }

    #[test]
    fn a_token_of_another_key_is_forgotten() {
        let mut world = World::new(config());
        with_dpop(&mut world);
        assert_eq!(world.challenged(), End::Retry);
        let key = crate::jose::Es256Key::from_bytes(&[9; 32]).unwrap();
        let mut random = |bytes: &mut [u8]| bytes.fill(1);
        let mut env = Environment::new(world.now, &mut random);
        env.dpop_key = Some(&key);
        assert_eq!(world.auth.credentials("POST", SERVER, &mut env).unwrap().authorization, None);
        assert!(!world.auth.store().has_token(SERVER));
    }
}
