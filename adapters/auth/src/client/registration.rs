//! The client as an authorization server knows it: registered in advance, by a metadata document, or dynamically
//! ([client registration](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration)).

use alloc::string::String;

use mcp_sansio::json::Object;
use mcp_sansio_http::client::Url;

use crate::client::config::{AuthMethod, AuthorizationConfig, RegisteredClient, Secret};
use crate::client::error::{AuthorizationError, Document};
use crate::client::metadata::{IntoSome, Members, ServerMetadata};
use crate::client::store::Registration;
use crate::client::text::text_of;
use crate::url::Reach;

/// A client and the way in which it authenticates.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Empty: the grant needs no client.
    pub(crate) client_id: String,
    pub(crate) secret: Option<Secret>,
    pub(crate) method: AuthMethod,
}

impl Client {
    pub(crate) const NONE: Client = Client { client_id: String::new(), secret: None, method: AuthMethod::None };
}

/// Returns the client that was registered in advance.
pub(crate) fn configured(client: &RegisteredClient, metadata: &ServerMetadata, has_key: bool) -> Client {
    Client {
        client_id: client.client_id.clone(),
        secret: client.secret.clone(),
        method: client.method.unwrap_or_else(|| method_of(client.secret.is_some(), has_key, metadata)),
    }
}

/// Returns the way to authenticate: the first of those that the client can and the server supports.
fn method_of(has_secret: bool, has_key: bool, metadata: &ServerMetadata) -> AuthMethod {
    let can = [
        (has_key, AuthMethod::PrivateKeyJwt),
        (has_secret, AuthMethod::SecretBasic),
        (has_secret, AuthMethod::SecretPost),
        (true, AuthMethod::None),
    ];
    let supported = can.iter().find(|(can, method)| *can && supports(metadata, *method));
    match supported {
        Some((_, method)) => *method,
        None if has_secret => AuthMethod::SecretBasic,
        None if has_key => AuthMethod::PrivateKeyJwt,
        // Servers often leave `none` out of their list.
        None => AuthMethod::None,
    }
}

/// Returns whether a server supports a way to authenticate. One that does not say supports `client_secret_basic`, and an
/// assertion if there is nothing else.
fn supports(metadata: &ServerMetadata, method: AuthMethod) -> bool {
    match &metadata.auth_methods {
        Some(methods) => methods.iter().any(|supported| supported == method.as_str()),
        None => method == AuthMethod::SecretBasic,
    }
}

/// Returns the client of a metadata document, if there is one and the server supports it.
pub(crate) fn by_metadata_document(
    config: &AuthorizationConfig,
    metadata: &ServerMetadata,
    has_key: bool,
) -> Result<Option<Client>, AuthorizationError> {
    let Some(client_id) = config.client_metadata_url.as_ref().filter(|_| metadata.takes_metadata_documents) else {
        return Ok(None);
    };
    // The path is more than a slash; a query is no path.
    let is_path = |path: &str| path.len() > 1 && !path.split('/').any(|segment| matches!(segment, "." | ".."));
    let has_path = |url: &Url<'_>| url.target().split('?').next().is_some_and(is_path);
    let is_good = |url: &Url<'_>| url.is_secure() && has_path(url) && !client_id.contains(['#', ' ']);
    if !Url::parse(client_id).is_ok_and(|url| is_good(&url)) {
        let reason = crate::url::RefusedUrlError::Malformed;
        return Err(AuthorizationError::Url { member: "client_metadata_url", reason });
    }
    let method = method_of(false, has_key, metadata);
    Ok(Some(Client { client_id: client_id.clone(), secret: None, method }))
}

/// Returns the way to authenticate that a registration asks for. A client with the user at its side needs no secret.
pub(crate) fn method_to_ask(metadata: &ServerMetadata) -> Result<AuthMethod, AuthorizationError> {
    if metadata.auth_methods.is_none() {
        return Ok(AuthMethod::None);
    }
    [AuthMethod::None, AuthMethod::SecretBasic, AuthMethod::SecretPost]
        .into_iter()
        .find(|method| supports(metadata, *method))
        .ok_or(AuthorizationError::NoClientAuthentication)
}

/// Writes the body of a registration ([RFC 7591](https://www.rfc-editor.org/rfc/rfc7591#section-3.1)). `other_type` is for a
/// server that has refused the `application_type` that belongs to the redirect URI.
pub(crate) fn request(config: &AuthorizationConfig, method: AuthMethod, scope: &str, other_type: bool) -> String {
    let is_native = Url::parse(&config.redirect_uri).is_ok_and(|url| Reach::of(&url) == Reach::Loopback);
    text_of(|out| {
        let mut object = Object::open(out);
        let uris = object.key("redirect_uris");
        uris.put(b"[");
        uris.string(&config.redirect_uri);
        uris.put(b"]");
        object.text("client_name", &config.client_name);
        object.text_if("client_uri", config.client_uri.as_deref());
        object.text_if("scope", Some(scope).filter(|scope| !scope.is_empty()));
        object.fixed("grant_types", r#"["authorization_code","refresh_token"]"#);
        object.fixed("response_types", r#"["code"]"#);
        object.text("application_type", if is_native != other_type { "native" } else { "web" });
        object.text("token_endpoint_auth_method", method.as_str());
        object.close();
    })
}

/// Reads the answer to a registration that asked for `method`.
pub(crate) fn answer(
    body: &[u8],
    method: AuthMethod,
    metadata: &ServerMetadata,
    config: &AuthorizationConfig,
    issuer: &str,
) -> Result<Registration, AuthorizationError> {
    let members = Members::parse(Document::Registration, body)?;
    if members.list("redirect_uris")?.is_some_and(|uris| !uris.contains(&config.redirect_uri)) {
        return Err(members.wrong("redirect_uris"));
    }
    let secret = members.text("client_secret")?.into_some();
    let named = members.text("token_endpoint_auth_method")?;
    let method = match AuthMethod::from_name(&named) {
        // Neither answer nor metadata say it: a client that got a secret uses it.
        None if named.is_empty() && secret.is_some() && metadata.auth_methods.is_none() => AuthMethod::SecretBasic,
        None if named.is_empty() => method,
        // An assertion needs a key that the registration did not name.
        None | Some(AuthMethod::PrivateKeyJwt) => return Err(AuthorizationError::NoClientAuthentication),
        Some(method) => method,
    };
    if secret.is_none() && matches!(method, AuthMethod::SecretBasic | AuthMethod::SecretPost) {
        return Err(members.wrong("client_secret"));
    }
    let expires = members.get("client_secret_expires_at").map_or(Some(0), |value| value.u64());
    Ok(Registration {
        issuer: issuer.into(),
        client_id: members.required("client_id")?,
        secret: secret.map(Secret::new),
        secret_expires_at: expires.ok_or(members.wrong("client_secret_expires_at"))?,
        method,
        redirect_uri: config.redirect_uri.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that does not name its ways has `client_secret_basic`
    /// ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-2)).
    #[test]
    fn ways_to_authenticate() {
        use AuthMethod::{None as Nothing, PrivateKeyJwt, SecretBasic, SecretPost};
        let all: &[&str] = &["none", "client_secret_post", "client_secret_basic", "private_key_jwt"];
        // (what the server names, the client has a secret, it has a key, what it uses)
        for (named, has_secret, has_key, expected) in [
            (None, true, false, SecretBasic),
            (None, true, true, SecretBasic),
            (None, false, true, PrivateKeyJwt),
            (None, false, false, Nothing),
            (Some(all), true, true, PrivateKeyJwt),
            (Some(all), true, false, SecretBasic),
            (Some(&all[..2]), true, false, SecretPost),
            (Some(&all[..1]), true, false, Nothing),
            (Some(&[][..]), true, true, SecretBasic),
            (Some(&[][..]), false, true, PrivateKeyJwt),
            (Some(&[][..]), false, false, Nothing),
        ] {
            let mut metadata = ServerMetadata::of_origin("https://as.example");
            metadata.auth_methods = named.map(|named| named.iter().map(|name| String::from(*name)).collect());
            assert_eq!(method_of(has_secret, has_key, &metadata), expected, "{named:?} {has_secret} {has_key}");
        }
    }
}
