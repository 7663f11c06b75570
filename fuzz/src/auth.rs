//! A client that wants a token, with answers made from the fuzzer's bytes. Each secret names the authorization server that
//! gave it, so that it can be followed.

use std::collections::BTreeSet;

use arbitrary::{Result, Unstructured};
use mcp_sansio::json::Raw;
use mcp_sansio_auth::config::{AuthMethod, AuthorizationLimits, IdentityProvider, Secret};
use mcp_sansio_auth::form::{decode, fields};
use mcp_sansio_auth::jose::{SignError, Signer};
use mcp_sansio_auth::{
    Authorization, AuthorizationConfig, CredentialStore, Environment, FetchFailure, FetchStep, GrantType, Outcome,
    RegisteredClient, Rejection, Response, Step,
};

const SERVER: &str = "https://h.example/mcp";
/// The hosts of authorization servers; the last one is the server itself.
const HOSTS: [&str; 3] = ["a.example", "b.example", "h.example"];
const FETCHES: u8 = 12;
/// Hosts of this machine and of private networks; nothing may go there.
const NEAR: [&str; 8] = [
    "[::1]",
    "[fd00::1]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "127.1",
    "localhost",
    "10.0.0.1",
];

/// A key that signs everything alike.
struct Key;

impl Signer for Key {
    fn algorithm(&self) -> &str {
        "ES256"
    }
    fn public_key(&self) -> Option<Raw<'_>> {
        Some(Raw::constant(r#"{"crv":"P-256","kty":"EC","x":"AA","y":"AA"}"#))
    }
    fn sign(&self, _: &[u8], signature: &mut [u8]) -> std::result::Result<usize, SignError> {
        let place = signature.get_mut(..64).ok_or(SignError::Full)?;
        place.fill(1);
        Ok(64)
    }
}

/// The state of the world around the client.
#[derive(Default)]
struct World {
    now: u64,
    random: u64,
    count: u32,
    has_dpop: bool,
    has_client_key: bool,
    /// The authorization server that has seen the client that belongs to the first one.
    first: Option<String>,
    /// Values of `state` that have led to a token request, or to the end of a flow.
    used: BTreeSet<String>,
    /// Steps since the flow began.
    steps: u32,
    /// Registrations that were refused since the flow began.
    refused: BTreeSet<String>,
}

impl World {
    fn begin(&mut self) {
        self.steps = 0;
        self.refused.clear();
    }

    fn with<R>(
        &mut self,
        auth: &mut Authorization,
        act: impl FnOnce(&mut Authorization, &mut Environment<'_>) -> R,
    ) -> R {
        let state = &mut self.random;
        let mut random = |bytes: &mut [u8]| {
            *state += 1;
            bytes.fill(0);
            bytes[..8].copy_from_slice(&state.to_be_bytes());
        };
        let mut env = Environment::new(self.now, &mut random);
        if self.has_dpop {
            env.dpop_key = Some(&Key);
        }
        if self.has_client_key {
            env.client_key = Some(&Key);
        }
        act(auth, &mut env)
    }
}

fn config(u: &mut Unstructured<'_>) -> Result<AuthorizationConfig> {
    let mut config = AuthorizationConfig::new("fuzz", if u.ratio(1, 20)? { "" } else { "http://127.0.0.1:1/back" });
    let mut limits = AuthorizationLimits::default();
    limits.fetches = FETCHES;
    limits.document = 2048;
    config = config.limits(limits).legacy(u.arbitrary()?).offline_access(u.arbitrary()?).require_dpop(u.ratio(1, 20)?);
    if u.ratio(1, 4)? {
        config = config.client_metadata_url("https://client.example/x");
    }
    if u.ratio(1, 4)? {
        // Without an issuer, it belongs to the first that needs it.
        let mut client = RegisteredClient::new("FIRST-");
        if u.arbitrary()? {
            client = RegisteredClient::new("ID-a.example-").secret("SEC-a.example-").issuer("https://a.example");
        }
        if u.arbitrary()? {
            client =
                client.method(*u.choose(&[AuthMethod::None, AuthMethod::SecretPost, AuthMethod::PrivateKeyJwt])?);
        }
        config = config.registered(client);
    }
    let provider = || {
        IdentityProvider::new("https://idp.example/token/idp", RegisteredClient::new("idp"), Secret::new("IDT-idp-"))
    };
    let grant = match u.int_in_range(0..=9)? {
        0 => GrantType::ClientCredentials,
        1 => GrantType::EnterpriseManaged(provider()),
        2 => GrantType::WorkloadIdentity(Secret::new("WIF")),
        _ => GrantType::Any,
    };
    Ok(config.grant(grant))
}

/// Makes the headers of a rejection.
fn challenge(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text =
        (*u.choose(&["Bearer ", "Bearer ", "Bearer ", "Bearer ", "DPoP ", "Basic x=y, Bearer "])?).to_owned();
    if u.ratio(1, 12)? {
        return Ok(String::from_utf8_lossy(u.bytes(16.min(u.len()))?).into_owned());
    }
    let error = *u.choose(&["insufficient_scope", "invalid_token", "use_dpop_nonce", "x"])?;
    text += &format!("error=\"{error}\"");
    if u.arbitrary()? {
        text += &format!(", scope=\"{}\"", u.choose(&["a", "a b", "c", "d e f", "", "\\\""])?);
    }
    if u.arbitrary()? {
        let urls = [
            "https://h.example/.well-known/oauth-protected-resource/mcp",
            "https://evil.example/x",
            "http://h.example/",
            "https://10.0.0.1/",
        ];
        let url = if u.ratio(7, 8)? { urls[0] } else { u.choose(&urls)? };
        text += &format!(", resource_metadata=\"{url}\"");
    }
    Ok(text)
}

/// Makes an answer: mostly one that leads on.
fn answer(u: &mut Unstructured<'_>, world: &mut World, fetch: &FetchStep) -> Result<(u16, String)> {
    if u.ratio(1, 25)? {
        let status = *u.choose(&[200, 201, 302, 400, 401, 404, 500, 999])?;
        let bodies = [
            "",
            "{}",
            "[]",
            "{\"error\":\"invalid_client\"}",
            "{\"error\":\"use_dpop_nonce\"}",
            "{\"error\":\"invalid_grant\"}",
            "<html>",
            "{\"error\":\"invalid_client_metadata\"}",
        ];
        return Ok((status, (*u.choose(&bodies)?).to_owned()));
    }
    world.count += 1;
    let (url, count) = (fetch.url.as_str(), world.count);
    let host = url.split('/').nth(2).unwrap_or_default();
    if url.contains("oauth-protected-resource") || host == "evil.example" {
        if u.ratio(1, 6)? {
            return Ok((404, String::new()));
        }
        let odd = if u.ratio(1, 40)? { Some(u.choose_index(NEAR.len() + 1)?) } else { None };
        let resource = if odd == Some(NEAR.len()) { "https://evil.example/mcp" } else { SERVER };
        let near = odd.and_then(|odd| NEAR.get(odd));
        let issuer = near.unwrap_or(u.choose(&HOSTS)?);
        return Ok((
            200,
            format!(
                r#"{{"resource":"{resource}","authorization_servers":["https://{issuer}"],"scopes_supported":["a"]}}"#
            ),
        ));
    }
    if url.contains("/.well-known/") {
        if u.ratio(1, 4)? {
            return Ok((404, String::new()));
        }
        // The endpoints name the host that wrote the document, whatever it says about its issuer.
        let issuer = if u.ratio(1, 20)? { *u.choose(&HOSTS)? } else { host };
        let mut methods = r#"["S256"]"#;
        let mut at = host;
        if u.ratio(1, 8)? {
            at = match u.int_in_range(0..=3)? {
                0 => "else.example",
                1 => "[2606:2800::1]",
                2 => *u.choose(&NEAR)?,
                // A server without PKCE: no person may be sent to it.
                _ => {
                    methods = *u.choose(&["[]", r#"["plain"]"#])?;
                    "plain.example"
                }
            };
        }
        let grants =
            u.choose(&["authorization_code", "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"])?;
        let grants = if u.ratio(1, 8)? { format!(r#","grant_types_supported":["{grants}"]"#) } else { String::new() };
        let more = *u.choose(&[
            "",
            r#","token_endpoint_auth_methods_supported":["client_secret_post"]"#,
            r#","client_id_metadata_document_supported":true"#,
            r#","dpop_signing_alg_values_supported":["ES256"],"scopes_supported":["offline_access"]"#,
            r#","authorization_response_iss_parameter_supported":true"#,
        ])?;
        return Ok((
            200,
            format!(
                r#"{{"issuer":"https://{issuer}","token_endpoint":"https://{at}/token/{host}","authorization_endpoint":"https://{at}/authorize/{host}",
            "registration_endpoint":"https://{at}/register/{host}","revocation_endpoint":"https://{at}/revoke/{host}","code_challenge_methods_supported":{methods}{grants}{more}}}"#
            ),
        ));
    }
    // The fallback of 2025-03-26 has no name in its paths.
    let owner = url.rsplit('/').next().filter(|owner| owner.contains('.') || *owner == "idp").unwrap_or("h.example");
    if url.contains("/register") {
        let secret = if u.arbitrary()? { format!(r#","client_secret":"SEC-{owner}-{count}""#) } else { String::new() };
        let method = match u.int_in_range(0..=4)? {
            0 => "",
            1 => r#","token_endpoint_auth_method":"client_secret_post""#,
            2 => r#","token_endpoint_auth_method":"none""#,
            refused => {
                let error = ["invalid_client_metadata", "invalid_redirect_uri"][refused - 3];
                assert!(world.refused.insert(fetch.body.clone()), "a registration that was refused comes again");
                return Ok((400, format!(r#"{{"error":"{error}"}}"#)));
            }
        };
        return Ok((201, format!(r#"{{"client_id":"ID-{owner}-{count}"{secret}{method}}}"#)));
    }
    if owner == "idp" {
        let kind = "urn:ietf:params:oauth:token-type:id-jag";
        return Ok((200, format!(r#"{{"access_token":"JAG","issued_token_type":"{kind}","token_type":"N_A"}}"#)));
    }
    let kind = *u.choose(&["Bearer", "Bearer", "Bearer", "Bearer", "DPoP", "mac"])?;
    let refresh = if u.arbitrary()? { format!(r#","refresh_token":"REF-{owner}-{count}""#) } else { String::new() };
    let expires = if u.arbitrary()? { format!(r#","expires_in":{}"#, u.int_in_range(0..=200)?) } else { String::new() };
    Ok((200, format!(r#"{{"access_token":"TOK-{owner}-{count}","token_type":"{kind}"{refresh}{expires}}}"#)))
}

/// Checks that a request has nothing that belongs elsewhere.
fn check_request(world: &mut World, fetch: &FetchStep) {
    let url = fetch.url.as_str();
    assert!(url.starts_with("https://"), "{url}");
    let host = url.split('/').nth(2).unwrap_or_default();
    assert!(!NEAR.contains(&host), "{url}");
    let owner = url.rsplit('/').next().filter(|owner| owner.contains('.') || *owner == "idp").unwrap_or(host);
    let mut texts = vec![url.to_owned()];
    for (name, value) in &fetch.headers {
        assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{name} has a strange character");
        let basic = value.strip_prefix("Basic ").map(|text| {
            let mut space = vec![0; text.len()];
            let len = mcp_sansio::json::write::decode_base64(text.as_bytes(), &mut space).expect("it is base64");
            String::from_utf8(space[..len].to_vec()).expect("it is text")
        });
        texts.push(basic.unwrap_or_else(|| value.clone()));
    }
    texts.push(fetch.body.clone());
    for text in &texts {
        if text.contains("FIRST-") {
            assert_eq!(world.first.get_or_insert_with(|| owner.to_owned()), owner, "a client of another issuer");
        }
        assert!(!text.contains("TOK-") || url.contains("/revoke/"), "an access token went to {url}");
        for tag in ["TOK-", "REF-", "SEC-", "ID-", "IDT-"] {
            for (at, _) in text.match_indices(tag) {
                let name = text[at + tag.len()..].split('-').next().unwrap_or_default();
                assert_eq!(name, owner, "{tag} went to {url}");
            }
        }
    }
    assert!(!["REF-", "SEC-", "IDT-", "code="].iter().any(|tag| url.contains(tag)), "a secret is in {url}");
}

/// Checks the URL that a person visits. Returns its `state`.
fn check_visit(world: &mut World, url: &str) -> String {
    let (place, query) = url.split_once('?').expect("it has parameters");
    let host = place.strip_prefix("https://").and_then(|place| place.split('/').next()).expect("it is https");
    assert!(!NEAR.contains(&host) && host != "plain.example", "{url}");
    let last = place.rsplit('/').next().unwrap_or_default();
    let owner = if last.contains('.') { last } else { "h.example" };
    let all: Vec<_> = fields(query).collect();
    let find = |name: &str| all.iter().find(|(found, _)| *found == name).and_then(|(_, value)| decode(value));
    for name in ["TOK-", "REF-", "SEC-", "code_verifier"] {
        assert!(!url.contains(name), "{name} is in {url}");
    }
    let client = find("client_id").expect("it names the client");
    if client == "FIRST-" {
        assert_eq!(world.first.get_or_insert_with(|| owner.to_owned()), owner, "a client of another issuer");
    }
    assert!(client.strip_prefix("ID-").is_none_or(|name| name.starts_with(owner)), "{client} at {url}");
    assert_eq!(find("code_challenge_method").as_deref(), Some("S256"));
    find("state").expect("it has a state")
}

/// Checks the credentials of a request to `url`.
fn check_credentials(u: &mut Unstructured<'_>, world: &mut World, auth: &mut Authorization) -> Result<u32> {
    let urls = [
        SERVER,
        "https://h.example/other",
        "https://evil.example/mcp",
        "http://h.example/mcp",
        "https://h.example:444/",
    ];
    let url = *u.choose(&urls)?;
    let found = world.with(auth, |auth, env| auth.credentials("POST", url, env));
    if !url.starts_with("https://h.example/") {
        assert!(found.is_err(), "there are credentials for {url}");
        return Ok(0);
    }
    let found = found.expect("the origin is right");
    assert_eq!(found.generation == 0, found.authorization.is_none());
    if let Some(text) = &found.authorization {
        assert!(text.starts_with("Bearer TOK-") || (text.starts_with("DPoP TOK-") && found.dpop.is_some()), "{text}");
    }
    Ok(found.generation)
}

pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut world =
        World { now: 1_000_000, has_dpop: u.arbitrary()?, has_client_key: u.ratio(1, 4)?, ..World::default() };
    let config = config(u)?;
    let mut auth = Authorization::new(config.clone(), SERVER, CredentialStore::new()).expect("the URLs are good");
    let mut generation = 0;
    while !u.is_empty() {
        match u.int_in_range(0..=23)? {
            0 => {
                let text = challenge(u)?;
                let headers = [text.as_str(), "Negotiate"];
                let mut rejection = Rejection::new(*u.choose(&[401, 401, 403, 500])?, &headers).operation("op");
                rejection = rejection.generation(if u.ratio(1, 4)? { 0 } else { generation });
                if u.arbitrary()? {
                    rejection = rejection.dpop_nonce(u.choose(&["n1", "n2", "bad\r\nX: y"])?);
                }
                let _ = world.with(&mut auth, |auth, env| auth.rejected(&rejection, env));
            }
            1 => generation = check_credentials(u, &mut world, &mut auth)?,
            2 => {
                let idle = !matches!(auth.step(), Step::Fetch(_) | Step::Visit { .. });
                if idle {
                    world.begin();
                }
                let outcome = world.with(&mut auth, |auth, env| auth.prepare(env));
                assert!(idle || outcome == Outcome::Wait);
            }
            3 => auth.answered(generation, Some("n3")),
            4 => {
                world.now = world.now.wrapping_add_signed(*u.choose(&[1, 50, 601, -1000, i64::from(u32::MAX)])?).max(1)
            }
            5 if u.ratio(1, 16)? => auth.cancel(),
            6 => {
                let _ = auth.expire(world.now);
            }
            8 if u.ratio(1, 2)? => {
                let _ = world.with(&mut auth, |auth, env| auth.log_out(env));
            }
            7 if u.ratio(1, 4)? => {
                // The next run, with the same store.
                let text = auth.store().to_json();
                let store = CredentialStore::from_json(text.as_bytes()).expect("it was written here");
                assert_eq!(&store, auth.store());
                auth = Authorization::new(config.clone(), SERVER, store).expect("the URLs are good");
                generation = 0;
                world.begin();
            }
            _ => step(u, &mut world, &mut auth)?,
        }
    }
    let shown = format!("{auth:?}");
    assert!(!["TOK-", "REF-", "SEC-", "IDT-"].iter().any(|tag| shown.contains(tag)), "a secret is shown: {shown}");
    // It ends, whatever comes.
    for _ in 0..2 * u32::from(FETCHES) {
        match auth.step() {
            Step::Fetch(_) => world.with(&mut auth, |auth, env| auth.fetch_failed(FetchFailure::Unreachable, env)),
            Step::Visit { .. } => auth.cancel(),
            Step::Idle => return Ok(()),
            _ => {}
        }
    }
    panic!("the flow does not end");
}

/// Carries out a step.
fn step(u: &mut Unstructured<'_>, world: &mut World, auth: &mut Authorization) -> Result<()> {
    world.steps += 1;
    assert!(world.steps < 4 * u32::from(FETCHES) * 16, "the flow does not end");
    let fetch = match auth.step() {
        Step::Fetch(fetch) => fetch.clone(),
        Step::Visit { url } => {
            let state = check_visit(world, url);
            assert!(!world.used.contains(&state), "a state is used twice");
            let iss = *u.choose(&[
                "",
                "",
                "",
                "&iss=https%3A%2F%2Fa.example",
                "&iss=https%3A%2F%2Fb.example",
                "&iss=x",
                "&iss=x&iss=x",
            ])?;
            let result =
                *u.choose(&["code=C", "code=C", "code=C", "code=C", "error=access_denied", "code=C&code=C", ""])?;
            let good = u.ratio(9, 10)?;
            let back = if good {
                format!("/back?{result}&state={state}{iss}")
            } else {
                format!("/back?{result}&state=x{iss}")
            };
            let found = world.with(auth, |auth, env| auth.redirected(&back, env));
            assert!(good || found.is_err());
            assert!(found.is_err() || (result == "code=C" && !iss.contains("=x")), "{back}");
            if good {
                world.used.insert(state);
                assert!(world.with(auth, |auth, env| auth.redirected(&back, env)).is_err(), "a redirect comes twice");
            }
            return Ok(());
        }
        Step::Retry => {
            world.begin();
            return Ok(());
        }
        Step::Refused(error) => {
            world.begin();
            let shown = error.to_string();
            assert!(shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{shown}");
            return Ok(());
        }
        _ => return Ok(()),
    };
    check_request(world, &fetch);
    if u.ratio(1, 40)? {
        let failure = *u.choose(&[FetchFailure::TooLarge, FetchFailure::Timeout, FetchFailure::Unreachable])?;
        world.with(auth, |auth, env| auth.fetch_failed(failure, env));
        return Ok(());
    }
    let (status, body) = answer(u, world, &fetch)?;
    let location = *u.choose(&[
        None,
        Some("/x"),
        Some("https://evil.example/x"),
        Some("https://h.example/.well-known/oauth-protected-resource"),
    ])?;
    let nonce = *u.choose(&[None, Some("n4"), Some("bad\r\n")])?;
    let kind = if u.ratio(1, 30)? { "text/html" } else { "application/json;charset=utf-8" };
    let mut response = Response::new(status, body.as_bytes());
    (response.content_type, response.location, response.dpop_nonce) = (Some(kind), location, nonce);
    world.with(auth, |auth, env| auth.fetched(&response, env));
    Ok(())
}
