//! Registrations and tokens: what the application keeps, so that the next start does not ask again.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::json::{JsonKind, Object, Raw};

use crate::client::config::{AuthMethod, Secret};
use crate::client::text::text_of;
use crate::time::UnixSeconds;

/// Registrations by issuer, and tokens by server, issuer and resource.
///
/// The application keeps [`to_json`](Self::to_json) where only its user can read it (a file with mode 0600, a keyring), and
/// gives it back with [`from_json`](Self::from_json). [`Debug`](fmt::Debug) shows no secrets.
///
/// ```
/// use mcp_sansio_auth::CredentialStore;
/// let store = CredentialStore::new();
/// let text = store.to_json();
/// assert_eq!(CredentialStore::from_json(text.as_bytes())?, store);
/// # Ok::<(), mcp_sansio_auth::store::StoreError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialStore {
    registrations: Vec<Registration>,
    tokens: Vec<Token>,
}

/// A text is not a [`CredentialStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreError;

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text holds no registrations and tokens")
    }
}

impl core::error::Error for StoreError {}

/// A client as one authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) secret: Option<Secret>,
    /// 0: never.
    pub(crate) secret_expires_at: UnixSeconds,
    pub(crate) method: AuthMethod,
    /// Empty: registered in advance, and bound to this issuer.
    pub(crate) redirect_uri: String,
}

/// A token of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The URL of the server.
    pub(crate) server: String,
    pub(crate) issuer: String,
    /// Empty: the authorization server knows no resources (2025-03-26).
    pub(crate) resource: String,
    pub(crate) token_endpoint: String,
    /// Default: empty.
    pub(crate) revocation_endpoint: String,
    pub(crate) client_id: String,
    pub(crate) method: AuthMethod,
    pub(crate) access_token: Secret,
    /// The thumbprint of the key to which the token is bound; empty for a Bearer token.
    pub(crate) jkt: String,
    pub(crate) refresh_token: Option<Secret>,
    pub(crate) obtained_at: UnixSeconds,
    /// `None`: the server did not say.
    pub(crate) expires_at: Option<UnixSeconds>,
    /// The scopes that were asked for.
    pub(crate) scope: String,
}

impl CredentialStore {
    /// Makes an empty store.
    #[must_use]
    pub const fn new() -> Self {
        CredentialStore { registrations: Vec::new(), tokens: Vec::new() }
    }

    /// Returns whether there is a token for the server at `url`.
    #[must_use]
    pub fn has_token(&self, url: &str) -> bool {
        self.token(url).is_some()
    }

    /// Returns the redirect URI of the newest registration that a client made for itself. A client that listens there again need
    /// not register again.
    #[must_use]
    pub fn redirect_uri(&self) -> Option<&str> {
        self.registrations.iter().rev().map(|known| known.redirect_uri.as_str()).find(|uri| !uri.is_empty())
    }

    /// Forgets the token for the server at `url`. Registrations stay.
    pub fn forget(&mut self, url: &str) {
        self.tokens.retain(|token| token.server != url);
    }

    /// Forgets what the authorization server `issuer` has registered.
    pub fn forget_registration(&mut self, issuer: &str) {
        self.registrations.retain(|registration| registration.issuer != issuer);
    }

    pub(crate) fn token(&self, server: &str) -> Option<&Token> {
        self.tokens.iter().find(|token| token.server == server)
    }

    pub(crate) fn token_mut(&mut self, server: &str) -> Option<&mut Token> {
        self.tokens.iter_mut().find(|token| token.server == server)
    }

    /// Keeps a token in place of an earlier one of the same server.
    pub(crate) fn set_token(&mut self, token: Token) {
        self.forget(&token.server);
        self.tokens.push(token);
    }

    pub(crate) fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.iter()
    }

    /// Keeps a registration in place of an earlier one at the same issuer with the same way of redirecting.
    pub(crate) fn set_registration(&mut self, new: Registration) {
        self.registrations
            .retain(|old| old.issuer != new.issuer || old.redirect_uri.is_empty() != new.redirect_uri.is_empty());
        self.registrations.push(new);
    }

    /// Returns the store as JSON. It has secrets.
    #[must_use]
    pub fn to_json(&self) -> String {
        text_of(|out| {
            let mut store = Object::open(out);
            store.number("version", 1);
            list(&mut store, "registrations", &self.registrations, |registration, entry| {
                entry.text("issuer", &registration.issuer);
                text(entry, "client_id", &registration.client_id);
                text(entry, "client_secret", registration.secret.as_ref().map_or("", Secret::expose));
                entry.number("client_secret_expires_at", registration.secret_expires_at);
                text(entry, "token_endpoint_auth_method", registration.method.as_str());
                text(entry, "redirect_uri", &registration.redirect_uri);
            });
            list(&mut store, "tokens", &self.tokens, |token, entry| {
                entry.text("server", &token.server);
                text(entry, "issuer", &token.issuer);
                text(entry, "resource", &token.resource);
                text(entry, "token_endpoint", &token.token_endpoint);
                text(entry, "revocation_endpoint", &token.revocation_endpoint);
                text(entry, "client_id", &token.client_id);
                text(entry, "token_endpoint_auth_method", token.method.as_str());
                text(entry, "access_token", token.access_token.expose());
                text(entry, "jkt", &token.jkt);
                text(entry, "refresh_token", token.refresh_token.as_ref().map_or("", Secret::expose));
                entry.number("obtained_at", token.obtained_at);
                if let Some(expires_at) = token.expires_at {
                    entry.number("expires_at", expires_at);
                }
                text(entry, "scope", &token.scope);
            });
            store.close();
        })
    }

    /// Reads a store.
    ///
    /// # Errors
    /// [`StoreError`] if the text is not what [`to_json`](Self::to_json) returns.
    pub fn from_json(json: &[u8]) -> Result<Self, StoreError> {
        let raw = Raw::parse(json).map_err(|_| StoreError)?;
        let list = |key| raw.get(key).filter(|list| list.kind() == JsonKind::Array).ok_or(StoreError);
        if raw.get("version").and_then(|version| version.u64()) != Some(1) {
            return Err(StoreError);
        }
        let registrations = list("registrations")?.items().map(|entry| registration(entry).ok_or(StoreError));
        let tokens = list("tokens")?.items().map(|entry| token(entry).ok_or(StoreError));
        Ok(CredentialStore {
            registrations: registrations.collect::<Result<_, _>>()?,
            tokens: tokens.collect::<Result<_, _>>()?,
        })
    }
}

/// Writes a list of objects.
fn list<T>(store: &mut Object<'_, '_>, key: &str, entries: &[T], write: impl Fn(&T, &mut Object<'_, '_>)) {
    let out = store.key(key);
    let mut before: &[u8] = b"[";
    for entry in entries {
        out.put(core::mem::replace(&mut before, b","));
        let mut object = Object::open(out);
        write(entry, &mut object);
        object.close();
    }
    out.put(if entries.is_empty() { b"[]" } else { b"]" });
}

/// Writes a string member; an empty one is left out.
fn text(object: &mut Object<'_, '_>, key: &str, value: &str) {
    object.text_if(key, Some(value).filter(|value| !value.is_empty()));
}

/// Returns a string member; the empty string if it is missing, `None` if it is something else.
fn member(entry: Raw<'_>, key: &str) -> Option<String> {
    let Some(value) = entry.get(key) else { return Some(String::new()) };
    value.text()?.chars().collect::<Result<_, _>>().ok()
}

/// Returns a string member that must be there.
fn required(entry: Raw<'_>, key: &str) -> Option<String> {
    member(entry, key).filter(|text| !text.is_empty())
}

fn secret(entry: Raw<'_>, key: &str) -> Option<Option<Secret>> {
    member(entry, key).map(|text| (!text.is_empty()).then(|| Secret::new(text)))
}

fn registration(entry: Raw<'_>) -> Option<Registration> {
    Some(Registration {
        issuer: required(entry, "issuer")?,
        client_id: required(entry, "client_id")?,
        secret: secret(entry, "client_secret")?,
        secret_expires_at: entry.get("client_secret_expires_at")?.u64()?,
        method: AuthMethod::from_name(&required(entry, "token_endpoint_auth_method")?)?,
        redirect_uri: member(entry, "redirect_uri")?,
    })
}

fn token(entry: Raw<'_>) -> Option<Token> {
    Some(Token {
        server: required(entry, "server")?,
        issuer: required(entry, "issuer")?,
        resource: member(entry, "resource")?,
        token_endpoint: required(entry, "token_endpoint")?,
        revocation_endpoint: member(entry, "revocation_endpoint")?,
        client_id: member(entry, "client_id")?,
        method: AuthMethod::from_name(&required(entry, "token_endpoint_auth_method")?)?,
        access_token: secret(entry, "access_token")?.filter(|token| is_sendable(token.expose()))?,
        jkt: member(entry, "jkt")?,
        refresh_token: secret(entry, "refresh_token")?,
        obtained_at: entry.get("obtained_at")?.u64()?,
        expires_at: match entry.get("expires_at") {
            Some(expires_at) => Some(expires_at.u64()?),
            None => None,
        },
        scope: member(entry, "scope")?,
    })
}

/// Returns whether a token has only characters that a header can carry.
pub(crate) fn is_sendable(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> CredentialStore {
        let mut store = CredentialStore::new();
        for issuer in ["https://a", "https://b"] {
            store.set_registration(Registration {
                issuer: issuer.into(),
                client_id: "id \"é\"".into(),
                secret: Some(Secret::new("hush")),
                secret_expires_at: 0,
                method: AuthMethod::SecretPost,
                redirect_uri: "http://127.0.0.1:1/".into(),
            });
            store.set_token(Token {
                server: std::format!("{issuer}/mcp"),
                issuer: issuer.into(),
                resource: issuer.into(),
                token_endpoint: "https://a/token".into(),
                revocation_endpoint: String::new(),
                client_id: "id".into(),
                method: AuthMethod::None,
                access_token: Secret::new("hush-access"),
                jkt: String::new(),
                refresh_token: None,
                obtained_at: 1,
                expires_at: Some(2),
                scope: "a b".into(),
            });
        }
        store
    }

    #[test]
    fn json_and_back() {
        let store = full();
        let text = store.to_json();
        assert_eq!(CredentialStore::from_json(text.as_bytes()), Ok(store.clone()));
        assert!(!std::format!("{store:?}").contains("hush"));
        let mut forgotten = store;
        forgotten.forget("https://a/mcp");
        forgotten.forget_registration("https://b");
        assert!(!forgotten.has_token("https://a/mcp") && forgotten.has_token("https://b/mcp"));
        assert_eq!(CredentialStore::from_json(forgotten.to_json().as_bytes()), Ok(forgotten));
    }

    #[test]
    fn other_texts_are_refused() {
        let text = full().to_json();
        for cut in 0..text.len() {
            assert!(CredentialStore::from_json(&text.as_bytes()[..cut]).is_err(), "{cut}");
        }
        for (from, to) in [
            ("\"version\":1", "\"version\":2"),
            ("hush-access", "hush\\r\\nX: y"),
            ("client_secret_post", "magic"),
            ("\"obtained_at\":1", "\"obtained_at\":\"1\""),
        ] {
            assert!(text.contains(from));
            assert_eq!(CredentialStore::from_json(text.replace(from, to).as_bytes()), Err(StoreError), "{to}");
        }
    }

    /// One that is bound to an issuer in advance, and one that the client made for itself, stand beside each other.
    #[test]
    fn a_registration_takes_the_place_of_one_of_its_kind() {
        let of = |issuer: &str, id: &str, redirect_uri: &str| Registration {
            issuer: issuer.into(),
            client_id: id.into(),
            secret: None,
            secret_expires_at: 0,
            method: AuthMethod::None,
            redirect_uri: redirect_uri.into(),
        };
        let mut store = CredentialStore::new();
        assert_eq!(store.redirect_uri(), None);
        for (issuer, id, redirect_uri) in
            [("a", "1", "http://x"), ("b", "2", "http://y"), ("a", "3", ""), ("a", "4", "http://z"), ("a", "5", "")]
        {
            store.set_registration(of(issuer, id, redirect_uri));
        }
        let ids: Vec<_> = store.registrations().map(|known| known.client_id.as_str()).collect();
        assert_eq!(ids, ["2", "4", "5"]);
        assert_eq!(store.redirect_uri(), Some("http://z"));
    }
}
