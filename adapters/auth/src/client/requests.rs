//! The requests of a flow, and parts of their answers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::json::Raw;
use mcp_sansio::json::write::base64;
use mcp_sansio::sink::Writer;
use mcp_sansio_http::client::Url;

use crate::client::config::{AuthMethod, IdentityProvider, RegisteredClient, Secret};
use crate::client::error::{AuthorizationError, Document, FetchFailure};
use crate::client::metadata::{Members, includes};
use crate::client::registration::Client;
use crate::client::state::Flow;
use crate::client::steps::{Environment, FetchStep, Response};
use crate::client::store::Token;
use crate::client::text::text_of;
use crate::client::well_known::origin;
use crate::dpop::Proof;
use crate::form::{FormWriter, encode};
use crate::jose::{Jwk, Signer, client_assertion};
use crate::pkce::{Base64Of32, CodeVerifier};
use crate::url::acceptable;

/// Bytes for a proof or an assertion.
const SIGNED: usize = 8 << 10;

pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub(crate) const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

/// Makes the request for metadata.
pub(crate) fn metadata(url: String, protocol_version: Option<&str>) -> FetchStep {
    let mut headers = alloc::vec![("Accept", "application/json".to_string())];
    headers.extend(protocol_version.map(|version| ("MCP-Protocol-Version", version.to_string())));
    FetchStep { method: "GET", url, headers, body: String::new(), limit: 0, is_configured: false }
}

/// Makes the request for a registration.
pub(crate) fn registration(url: String, body: String) -> FetchStep {
    let headers = [("Accept", "application/json"), ("Content-Type", "application/json")];
    let headers = headers.map(|(name, value)| (name, value.to_string())).into();
    FetchStep { method: "POST", url, headers, body, limit: 0, is_configured: false }
}

/// Makes the URL of the authorization request
/// ([authorization code](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)). `jkt` is the
/// thumbprint of the key for proofs, or empty.
pub(crate) fn authorization(flow: &Flow, redirect_uri: &str, verifier: &CodeVerifier, jkt: &str) -> String {
    let endpoint = &flow.metadata.authorization_endpoint;
    let separator = if endpoint.contains('?') { "&" } else { "?" };
    // OpenID Connect servers ignore `offline_access` without it (OpenID Connect Core, section 11).
    let prompt = if includes(&flow.scope, OFFLINE_ACCESS) { "consent" } else { "" };
    let challenge = verifier.challenge();
    let query = [
        ("response_type", "code"),
        ("client_id", flow.client.as_ref().map_or("", |client| &client.client_id)),
        ("redirect_uri", redirect_uri),
        ("state", &flow.state),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("scope", &flow.scope),
        ("prompt", prompt),
        ("resource", &flow.resource),
        ("dpop_jkt", jkt),
    ];
    alloc::format!("{endpoint}{separator}{}", text_of(|out| write_fields(&mut FormWriter::new(out), &query)))
}

/// Writes the fields that are not empty.
fn write_fields(form: &mut FormWriter<'_, Writer<'_>>, fields: &[(&str, &str)]) {
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        // A text that grows takes everything.
        let _ = form.field(name, value);
    }
}

/// Makes the request of a token exchange
/// ([RFC 8693](https://www.rfc-editor.org/rfc/rfc8693#section-2.1)).
pub(crate) fn exchange(
    flow: &Flow,
    provider: &IdentityProvider,
    env: &mut Environment<'_>,
) -> Result<FetchStep, AuthorizationError> {
    let method = match (&provider.client.secret, provider.client.method) {
        (Some(_), Some(AuthMethod::SecretPost)) => AuthMethod::SecretPost,
        (Some(_), _) => AuthMethod::SecretBasic,
        (None, _) => AuthMethod::None,
    };
    let RegisteredClient { client_id, secret, .. } = provider.client.clone();
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", ID_JAG),
        ("audience", &flow.issuer),
        ("resource", &flow.resource),
        ("scope", &flow.scope),
        ("subject_token", provider.id_token.expose()),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
    ];
    let request = post(&provider.token_endpoint, &fields, &Client { client_id, secret, method }, "", None, env)?;
    Ok(FetchStep { is_configured: true, ..request })
}

/// Makes the request that sends the grant of a flow to the token endpoint. `key` signs a proof, with a nonce if there is
/// one.
pub(crate) fn token(
    flow: &Flow,
    key: Option<(&dyn Signer, Option<&str>)>,
    env: &mut Environment<'_>,
) -> Result<FetchStep, AuthorizationError> {
    let url = &flow.metadata.token_endpoint;
    let is = |name: &str| flow.grant.first().is_some_and(|(_, grant)| grant.expose() == name);
    // The code and the refresh token stand for their scopes.
    let scope = if is("authorization_code") || is("refresh_token") { "" } else { &flow.scope };
    let mut fields: Vec<_> = flow.grant.iter().map(|(name, value)| (*name, value.expose())).collect();
    fields.extend([("resource", flow.resource.as_str()), ("scope", scope)]);
    let client = flow.client.clone().unwrap_or(Client::NONE);
    post(url, &fields, &client, &flow.metadata.issuer, key, env)
}

/// Makes the request that revokes a token ([RFC 7009](https://www.rfc-editor.org/rfc/rfc7009)).
pub(crate) fn revocation(
    token: &Token,
    client: &Client,
    env: &mut Environment<'_>,
) -> Result<FetchStep, AuthorizationError> {
    let (kind, secret) = match &token.refresh_token {
        Some(refresh_token) => ("refresh_token", refresh_token),
        None => ("access_token", &token.access_token),
    };
    let fields = [("token", secret.expose()), ("token_type_hint", kind)];
    post(&token.revocation_endpoint, &fields, client, &token.issuer, None, env)
}

/// Makes a `POST` of a form, without the fields that are empty, which shows who the client is.
fn post(
    url: &str,
    fields: &[(&str, &str)],
    client: &Client,
    issuer: &str,
    key: Option<(&dyn Signer, Option<&str>)>,
    env: &mut Environment<'_>,
) -> Result<FetchStep, AuthorizationError> {
    let headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")];
    let mut headers = headers.map(|(name, value)| (name, value.to_string())).into();
    let mut authenticated = Ok(());
    let body = text_of(|out| {
        let mut form = FormWriter::new(out);
        write_fields(&mut form, fields);
        authenticated = authenticate(client, issuer, &mut form, &mut headers, env);
    });
    authenticated?;
    if let Some((key, nonce)) = key {
        headers.push(("DPoP", proof("POST", url, None, nonce, key, env)?));
    }
    Ok(FetchStep { method: "POST", url: url.to_string(), headers, body, limit: 0, is_configured: false })
}

/// Adds what shows who the client is.
fn authenticate(
    client: &Client,
    issuer: &str,
    form: &mut FormWriter<'_, Writer<'_>>,
    headers: &mut Vec<(&'static str, String)>,
    env: &mut Environment<'_>,
) -> Result<(), AuthorizationError> {
    let secret = client.secret.as_ref().map_or("", Secret::expose);
    match client.method {
        AuthMethod::None => write_fields(form, &[("client_id", &client.client_id)]),
        AuthMethod::SecretBasic => headers.push(("Authorization", basic(&client.client_id, secret))),
        AuthMethod::SecretPost => write_fields(form, &[("client_id", &client.client_id), ("client_secret", secret)]),
        AuthMethod::PrivateKeyJwt => {
            let key = env.client_key.ok_or(AuthorizationError::NoClientAuthentication)?;
            let (mut random, mut space) = ([0; 16], alloc::vec![0; SIGNED]);
            (env.random)(&mut random);
            let assertion = client_assertion(key, &client.client_id, issuer, env.now, &random, &mut space);
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            let assertion = assertion.map_err(AuthorizationError::Sign)?;
            write_fields(form, &[("client_assertion_type", kind), ("client_assertion", assertion)]);
        }
    }
    Ok(())
}

/// Returns the header of `client_secret_basic`: both parts are form-encoded first
/// ([RFC 6749, section 2.3.1](https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1)).
fn basic(client_id: &str, secret: &str) -> String {
    let pair = text_of(|out| {
        out.write(|out| encode(out, client_id));
        out.put(b":");
        out.write(|out| encode(out, secret));
    });
    alloc::format!("Basic {}", text_of(|out| out.write(|out| base64(out, pair.as_bytes()))))
}

/// Makes a proof of possession.
pub(crate) fn proof(
    method: &str,
    url: &str,
    token: Option<&str>,
    nonce: Option<&str>,
    key: &dyn Signer,
    env: &mut Environment<'_>,
) -> Result<String, AuthorizationError> {
    let (mut random, mut space) = ([0; 16], alloc::vec![0; SIGNED]);
    (env.random)(&mut random);
    let mut proof = Proof::new(method, url, env.now, &random);
    if let Some(token) = token {
        proof = proof.access_token(token);
    }
    if let Some(nonce) = nonce {
        proof = proof.nonce(nonce);
    }
    proof.sign(key, &mut space).map(ToString::to_string).map_err(AuthorizationError::Sign)
}

/// Returns the thumbprint of a key as base64url.
pub(crate) fn thumbprint(key: &dyn Signer) -> Option<String> {
    Some(Base64Of32::new(&Jwk::new(key.public_key()?)?.thumbprint()?).as_str().to_string())
}

pub(crate) fn origin_of(url: &str) -> String {
    Url::parse(url).map_or(String::new(), |url| origin(&url))
}

/// Returns the target of a redirect, if it stays on the origin of `url`.
pub(crate) fn same_origin(url: &str, location: &str, server: &str) -> Option<String> {
    let base = Url::parse(url).ok()?;
    let is_path = location.starts_with('/') && !location.starts_with("//");
    let target = if is_path { alloc::format!("{}{location}", origin(&base)) } else { location.to_string() };
    let is_same = acceptable(&target, server).is_ok_and(|target| target.is_same_origin(&base));
    is_same.then_some(target)
}

/// Returns whether the body is JSON by its `Content-Type`; without that, the body itself shows it.
pub(crate) fn is_json(response: &Response<'_>) -> bool {
    let Some(kind) = response.content_type else { return true };
    let kind = kind.split(';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Returns the error of an answer.
pub(crate) fn refusal(document: Document, response: &Response<'_>) -> AuthorizationError {
    let failure = FetchFailure::Status(response.status);
    let is_error = (400..500).contains(&response.status);
    let members = Members::parse(document, response.body).ok().filter(|_| is_error);
    members.and_then(|members| members.refusal()).unwrap_or(AuthorizationError::Unavailable { document, failure })
}

/// Reads `expires_in`. Some servers send it as a string.
pub(crate) fn seconds(value: Raw<'_>) -> Option<u64> {
    value.u64().or_else(|| value.text()?.plain()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_known_by_its_type() {
        for (kind, expected) in [
            (None, true),
            (Some("application/json"), true),
            (Some(" Application/JSON ; charset=utf-8"), true),
            (Some("application/problem+json"), true),
            (Some("text/problem+json"), false),
            (Some("application/xml"), false),
            (Some("application/json-seq"), false),
            (Some("text/html"), false),
            (Some(""), false),
        ] {
            let response = Response { content_type: kind, ..Response::new(200, b"{}") };
            assert_eq!(is_json(&response), expected, "{kind:?}");
        }
    }
}
