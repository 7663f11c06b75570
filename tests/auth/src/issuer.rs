//! An authorization server that checks each parameter.

use std::collections::HashMap;
use std::time::Instant;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use mcp_sansio_auth::jose::{Es256, Es256Key, Jwk, KeyHeader, Signer, Verifier, sign};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::form;
use crate::{Origins, Request, Response, Role, State, escape};

/// The state of one authorization server.
#[derive(Default)]
pub(crate) struct Issuer {
    clients: HashMap<String, Client>,
    codes: HashMap<String, Code>,
    pub(crate) tokens: HashMap<String, Token>,
    pub(crate) refresh: HashMap<String, Token>,
    count: u32,
}

#[derive(Clone)]
struct Client {
    secret: Option<String>,
    method: String,
    redirect_uris: Vec<String>,
}

#[derive(Clone)]
struct Code {
    client: String,
    redirect_uri: String,
    challenge: String,
    resource: String,
    scope: String,
}

/// A token that is out.
#[derive(Clone, Debug, Default)]
pub struct Token {
    /// The resource that it is for.
    pub resource: String,
    /// Its scopes.
    pub scope: String,
    /// The client that it was given to.
    pub client: String,
    /// The thumbprint of its key.
    pub jkt: Option<String>,
    pub(crate) until: Option<Instant>,
}

pub(crate) fn answer(state: &mut State, origins: &Origins, role: Role, request: &Request) -> Response {
    let origin = origins.of(role).to_owned();
    let mut issuer = state.issuers.remove(&role).unwrap_or_default();
    let response = match request.path() {
        "/.well-known/oauth-authorization-server" => metadata(&origin),
        "/register" => register(state, &mut issuer, role, request),
        "/authorize" => authorize(state, &mut issuer, &origin, request),
        "/token" => token(state, &mut issuer, &origin, request),
        "/revoke" => revoke(state, &mut issuer, request),
        "/introspect" => introspect(state, &issuer, &origin, request),
        "/jwks" => state.with_key(|key| Response::new(200, "application/json", format!("{{\"keys\":[{key}]}}"))),
        _ => Response::new(404, "text/plain", "nothing here"),
    };
    state.issuers.insert(role, issuer);
    response
}

fn metadata(origin: &str) -> Response {
    Response::json(
        200,
        &json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "revocation_endpoint": format!("{origin}/revoke"),
            "introspection_endpoint": format!("{origin}/introspect"),
            "jwks_uri": format!("{origin}/jwks"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true,
        }),
    )
}

fn refuse(status: u16, error: &str) -> Response {
    Response::json(status, &json!({"error": error, "error_description": format!("the mock says {error}")}))
}

fn register(state: &mut State, issuer: &mut Issuer, role: Role, request: &Request) -> Response {
    let wish = request.json();
    let uris: Vec<String> = wish["redirect_uris"]
        .as_array()
        .map(|uris| uris.iter().filter_map(|uri| uri.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if request.method != "POST" || request.header("content-type") != "application/json" || uris.is_empty() {
        state.violation("a registration that is none");
        return refuse(400, "invalid_client_metadata");
    }
    if !matches!(wish["application_type"].as_str(), Some("native" | "web")) {
        state.violation("a registration without application_type");
    }
    issuer.count += 1;
    let id = format!("client-{role:?}-{}", issuer.count);
    let method = wish["token_endpoint_auth_method"].as_str().unwrap_or("client_secret_basic").to_owned();
    issuer.clients.insert(id.clone(), Client { secret: None, method: method.clone(), redirect_uris: uris.clone() });
    Response::json(201, &json!({"client_id": id, "redirect_uris": uris, "token_endpoint_auth_method": method}))
}

impl State {
    /// Calls `act` with the public key of tokens that are signed.
    fn with_key<R>(&self, act: impl FnOnce(&str) -> R) -> R {
        let key = Es256Key::from_bytes(&[self.key.max(1); 32]).unwrap();
        let public = key.public_key().unwrap().to_string();
        act(&format!("{{\"kid\":\"{}\",{}", self.key, &public[1..]))
    }

    /// Signs an access token.
    pub fn sign(&self, claims: &Value) -> String {
        let (id, mut space) = (self.key.to_string(), [0; 4096]);
        let key = Es256Key::from_bytes(&[self.key.max(1); 32]).unwrap().key_id(&id);
        let mut write = |out: &mut mcp_sansio::sink::Writer<'_>| out.put(claims.to_string().as_bytes());
        sign(&key, "at+jwt", KeyHeader::Id, &mut write, &mut space).unwrap().to_owned()
    }

    /// Registers a client in advance.
    pub fn register(&mut self, role: Role, id: &str, secret: &str) {
        let client = Client {
            secret: Some(secret.to_owned()),
            method: "client_secret_basic".to_owned(),
            redirect_uris: vec!["*".to_owned()],
        };
        self.secrets.push(secret.to_owned());
        self.issuers.entry(role).or_default().clients.insert(id.to_owned(), client);
    }

    /// Gives each registered client of an authorization server a secret and the way to authenticate with it.
    pub fn harden(&mut self, role: Role, secret: &str, method: &str) {
        for client in self.issuers.entry(role).or_default().clients.values_mut() {
            (client.secret, client.method) = (Some(secret.to_owned()), method.to_owned());
        }
    }
}

fn authorize(state: &mut State, issuer: &mut Issuer, origin: &str, request: &Request) -> Response {
    let params = request.query();
    let param = |name: &str| request.param(name);
    for (at, (name, _)) in params.iter().enumerate() {
        if params[..at].iter().any(|(other, _)| other == name) {
            state.violation(&format!("{name} twice in the authorization request"));
        }
    }
    let (id, redirect_uri) = (param("client_id"), param("redirect_uri"));
    let is_document = id.starts_with("https://");
    let known = issuer
        .clients
        .get(&id)
        .is_some_and(|client| client.redirect_uris.iter().any(|uri| *uri == redirect_uri || uri == "*"));
    if !known && !is_document {
        state.violation("an authorization request of an unknown client, or with another redirect URI");
        return refuse(400, "invalid_client");
    }
    let challenge = param("code_challenge");
    for (is_good, text) in [
        (request.method == "GET", "an authorization request that is no GET"),
        (param("response_type") == "code", "response_type"),
        (param("code_challenge_method") == "S256" && challenge.len() == 43, "code_challenge"),
        (state.is_new(&challenge), "a code_challenge for the second time"),
        (param("state").len() >= 16, "a state that can be guessed"),
        (state.is_new(&param("state")), "a state for the second time"),
        (!param("resource").is_empty(), "an authorization request without resource"),
        (redirect_uri.starts_with("http://127.0.0.1:"), "a redirect URI elsewhere"),
    ] {
        if !is_good {
            state.violation(text);
        }
    }
    issuer.count += 1;
    let code = format!("code-{}-{}", issuer.count, &challenge[..challenge.len().min(8)]);
    let (resource, scope) = (param("resource"), param("scope"));
    issuer
        .codes
        .insert(code.clone(), Code { client: id, redirect_uri: redirect_uri.clone(), challenge, resource, scope });
    let answer = [("code", code.as_str()), ("state", &param("state")), ("iss", origin)];
    let answer = answer.map(|(name, value)| format!("{name}={}", escape(value))).join("&");
    Response::redirect(302, &format!("{redirect_uri}?{answer}"))
}

fn token(state: &mut State, issuer: &mut Issuer, origin: &str, request: &Request) -> Response {
    let params = request.form();
    for (at, (name, _)) in params.iter().enumerate() {
        if params[..at].iter().any(|(other, _)| other == name) {
            state.violation(&format!("{name} twice in the token request"));
        }
    }
    let form_type = request.header("content-type").starts_with("application/x-www-form-urlencoded");
    if request.method != "POST" || !form_type || request.target.contains('?') {
        state.violation("a token request that is none");
    }
    let client = match authenticate(state, issuer, request) {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    let jkt = if request.headers("dpop").next().is_some() {
        match proof(state, request, &format!("{origin}/token"), None) {
            Ok(proof) => Some(proof.jkt),
            Err(refusal) => return refusal,
        }
    } else {
        None
    };
    let resource = request.param("resource");
    let (mut granted, refreshes) = match request.param("grant_type").as_str() {
        "authorization_code" => match redeem(state, issuer, &client, request) {
            Ok(granted) => (granted, true),
            Err(refusal) => return refusal,
        },
        "refresh_token" => {
            // A refresh token is good once.
            let Some(old) = issuer.refresh.remove(&request.param("refresh_token")) else {
                return refuse(400, "invalid_grant");
            };
            if old.client != client {
                state.violation("a refresh token of another client");
                return refuse(400, "invalid_grant");
            }
            (old, true)
        }
        "client_credentials" => {
            (Token { resource: resource.clone(), scope: request.param("scope"), client, ..Token::default() }, false)
        }
        _ => return refuse(400, "unsupported_grant_type"),
    };
    if resource != granted.resource {
        state.violation("the token request has another resource");
        return refuse(400, "invalid_target");
    }
    granted.jkt = jkt;
    granted.until = state.lifetime.map(|time| Instant::now() + time);
    issuer.count += 1;
    let port = origin.rsplit(':').next().unwrap_or("");
    let access = match state.signs {
        true => state.sign(&claims(origin, &granted)),
        false => format!("access-{port}-{}", issuer.count),
    };
    let mut body = json!({
        "access_token": access,
        "token_type": if granted.jkt.is_some() { "DPoP" } else { "Bearer" },
        "expires_in": state.lifetime.map_or(3600, |time| time.as_secs()),
        "scope": granted.scope,
    });
    if refreshes {
        let refresh = format!("refresh-{port}-{}", issuer.count);
        body["refresh_token"] = json!(refresh);
        state.secrets.push(refresh.clone());
        issuer.refresh.insert(refresh, Token { until: None, ..granted.clone() });
    }
    state.secrets.push(access.clone());
    issuer.tokens.insert(access, granted);
    Response::json(200, &body).with("Cache-Control", "no-store")
}

/// The claims of a token.
fn claims(origin: &str, token: &Token) -> Value {
    let (client, scope, resource) = (&token.client, &token.scope, &token.resource);
    let mut claims = json!({"iss": origin, "aud": resource, "sub": "ann", "client_id": client, "scope": scope});
    claims["exp"] = json!(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 600);
    if let Some(jkt) = &token.jkt {
        claims["cnf"] = json!({"jkt": jkt});
    }
    claims
}

/// Says what a token is.
fn introspect(state: &mut State, issuer: &Issuer, origin: &str, request: &Request) -> Response {
    if let Err(refusal) = authenticate(state, issuer, request) {
        return refusal;
    }
    let Some(token) = issuer.tokens.get(&request.param("token")) else {
        return Response::json(200, &json!({"active": false}));
    };
    let mut claims = claims(origin, token);
    claims["active"] = json!(token.until.is_none_or(|until| until > Instant::now()));
    Response::json(200, &claims)
}

/// Revokes a refresh token.
fn revoke(state: &mut State, issuer: &mut Issuer, request: &Request) -> Response {
    let client = match authenticate(state, issuer, request) {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    if issuer.refresh.remove(&request.param("token")).is_none_or(|token| token.client != client) {
        state.violation("the revoked token is none of this client");
    }
    Response::json(200, &json!({}))
}

/// Redeems a code.
fn redeem(state: &mut State, issuer: &mut Issuer, client: &str, request: &Request) -> Result<Token, Response> {
    let Some(code) = issuer.codes.remove(&request.param("code")) else {
        state.violation("an unknown code, or one for the second time");
        return Err(refuse(400, "invalid_grant"));
    };
    let verifier = request.param("code_verifier");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let hash = BASE64URL_NOPAD.encode(&Sha256::digest(verifier.as_bytes()));
    state.secrets.push(verifier.clone());
    for (is_good, text) in [
        (code.client == client, "a code of another client"),
        (code.redirect_uri == request.param("redirect_uri"), "another redirect URI in the token request"),
        ((43..=128).contains(&verifier.len()) && verifier.bytes().all(is_plain), "a code_verifier that is none"),
        (hash == code.challenge, "a code_verifier of another challenge"),
    ] {
        if !is_good {
            state.violation(text);
            return Err(refuse(400, "invalid_grant"));
        }
    }
    let Code { resource, scope, .. } = code;
    Ok(Token { resource, scope, client: client.to_owned(), ..Token::default() })
}

/// Checks the client, and returns its id.
fn authenticate(state: &mut State, issuer: &Issuer, request: &Request) -> Result<String, Response> {
    let header = request.header("authorization");
    let (id, secret, method) = if let Some(basic) = header.strip_prefix("Basic ") {
        let text =
            BASE64.decode(basic.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let (id, secret) = text.split_once(':').unwrap_or((&text, ""));
        let plain = |text: &str| form(text).first().map(|(key, _)| key.clone()).unwrap_or_default();
        (plain(id), plain(secret), "client_secret_basic")
    } else if !header.is_empty() {
        state.violation("a token went to the token endpoint");
        return Err(refuse(401, "invalid_client"));
    } else if request.param("client_secret").is_empty() {
        (request.param("client_id"), String::new(), "none")
    } else {
        (request.param("client_id"), request.param("client_secret"), "client_secret_post")
    };
    if id.starts_with("https://") && method == "none" {
        return Ok(id);
    }
    let Some(client) = issuer.clients.get(&id) else {
        state.violation(&format!("the client {id} is of another authorization server"));
        return Err(refuse(401, "invalid_client"));
    };
    if client.method != method || client.secret.as_deref().unwrap_or("") != secret {
        state.violation(&format!("the client authenticates by {method}"));
        return Err(refuse(401, "invalid_client"));
    }
    Ok(id)
}

/// A proof of possession that is good.
pub(crate) struct Proof {
    pub(crate) jkt: String,
    pub(crate) nonce: String,
}

/// Checks the proof of possession of a request.
pub(crate) fn proof(state: &mut State, request: &Request, url: &str, token: Option<&str>) -> Result<Proof, Response> {
    let proofs: Vec<_> = request.headers("dpop").collect();
    let refused = |state: &mut State, text: &str| {
        state.violation(&format!("the proof of possession: {text}"));
        Err(refuse(400, "invalid_dpop_proof"))
    };
    let [proof] = proofs[..] else { return refused(state, "not exactly one") };
    let parts: Vec<_> = proof.split('.').collect();
    let [head, claims, signature] = parts[..] else { return refused(state, "no JWS") };
    let read = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).unwrap_or_default();
    let value = |part: &str| serde_json::from_slice::<Value>(&read(part)).unwrap_or(Value::Null);
    let (header, body) = (value(head), value(claims));
    let jwk = header["jwk"].clone();
    let member = |name: &str| jwk[name].as_str().unwrap_or("").to_owned();
    let thumb = format!(
        "{{\"crv\":\"{}\",\"kty\":\"{}\",\"x\":\"{}\",\"y\":\"{}\"}}",
        member("crv"),
        member("kty"),
        member("x"),
        member("y")
    );
    let text = jwk.to_string();
    let raw = mcp_sansio::json::Raw::parse(text.as_bytes()).unwrap();
    let key = Jwk::new(raw);
    let message = format!("{head}.{claims}");
    let signed = key.is_some_and(|key| Es256.verify("ES256", &key, message.as_bytes(), &read(signature)));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let hash = token.map(|token| BASE64URL_NOPAD.encode(&Sha256::digest(token.as_bytes())));
    let text = |name: &str| body[name].as_str().unwrap_or("").to_owned();
    for (is_good, text) in [
        (header["typ"] == "dpop+jwt" && header["alg"] == "ES256", "typ or alg"),
        (jwk.get("d").is_none(), "the private key is in it"),
        (signed, "the signature"),
        (body["htm"] == request.method, "htm"),
        (body["htu"] == url, "htu"),
        (body["iat"].as_u64().is_some_and(|time| now.abs_diff(time) < 60), "iat"),
        (body["ath"].as_str().map(str::to_owned) == hash, "ath"),
        (state.is_new(&text("jti")) && text("jti").len() >= 16, "jti"),
    ] {
        if !is_good {
            return refused(state, text);
        }
    }
    Ok(Proof { jkt: BASE64URL_NOPAD.encode(&Sha256::digest(thumb.as_bytes())), nonce: text("nonce") })
}
