//! The configuration: how an application is registered, which grant it uses, and its limits.

use alloc::string::String;
use core::fmt;

/// A text that [`Debug`](fmt::Debug) does not show: a token, a code, a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A client that was registered in advance
/// ([pre-registration](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration#pre-registration)).
///
/// ```
/// use mcp_sansio_auth::RegisteredClient;
/// let client = RegisteredClient::new("my-client").secret("s3cret").issuer("https://as.example");
/// assert!(!format!("{client:?}").contains("s3cret"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RegisteredClient {
    pub(crate) client_id: String,
    pub(crate) secret: Option<Secret>,
    pub(crate) issuer: Option<String>,
    pub(crate) method: Option<AuthMethod>,
}

impl RegisteredClient {
    /// Makes a client with this `client_id`, without a secret.
    pub fn new(client_id: impl Into<String>) -> Self {
        RegisteredClient { client_id: client_id.into(), secret: None, issuer: None, method: None }
    }

    mcp_sansio::setters! {
        /// Sets `client_secret`.
        secret(secret: impl Into<String>) => secret = Some(Secret::new(secret));
        /// Sets the `issuer` of the authorization server that has registered the client. The id and the secret go to no other.
        /// Default: the first authorization server that needs them; the [`CredentialStore`](crate::CredentialStore) remembers it.
        issuer(issuer: impl Into<String>) => issuer = Some(issuer.into());
        /// Sets `token_endpoint_auth_method`. Default: the first that the authorization server supports.
        method(method: AuthMethod) => method = Some(method);
    }
}

/// The way in which a client authenticates at the token endpoint: `token_endpoint_auth_method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthMethod {
    /// `none`: only `client_id`, in the body.
    None,
    /// `client_secret_basic`: id and secret in the header `Authorization`.
    SecretBasic,
    /// `client_secret_post`: id and secret in the body.
    SecretPost,
    /// `private_key_jwt`: an assertion that the key of the client has signed
    /// ([RFC 7523](https://www.rfc-editor.org/rfc/rfc7523)).
    PrivateKeyJwt,
}

impl AuthMethod {
    /// Returns the name of the method.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AuthMethod::None => "none",
            AuthMethod::SecretBasic => "client_secret_basic",
            AuthMethod::SecretPost => "client_secret_post",
            AuthMethod::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Returns the method of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [AuthMethod::None, AuthMethod::SecretBasic, AuthMethod::SecretPost, AuthMethod::PrivateKeyJwt]
            .into_iter()
            .find(|method| method.as_str() == name)
    }
}

/// The way to a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantType {
    /// `authorization_code`; for a client that was registered with a secret or has a key, `client_credentials` where the
    /// authorization server's `grant_types_supported` has only that.
    #[default]
    Any,
    /// `authorization_code`: a person visits a URL.
    AuthorizationCode,
    /// `client_credentials`: the client acts for itself. It must be registered in advance.
    ClientCredentials,
    /// Enterprise-managed authorization: an identity provider exchanges an id token for an assertion.
    EnterpriseManaged(IdentityProvider),
    /// Workload identity: an assertion of the platform on which the program runs.
    WorkloadIdentity(Secret),
}

/// The identity provider of [`GrantType::EnterpriseManaged`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct IdentityProvider {
    pub(crate) token_endpoint: String,
    pub(crate) client: RegisteredClient,
    pub(crate) id_token: Secret,
}

impl IdentityProvider {
    /// Makes an identity provider with its token endpoint, the client that is registered there, and an id token of the
    /// person.
    pub fn new(token_endpoint: impl Into<String>, client: RegisteredClient, id_token: Secret) -> Self {
        IdentityProvider { token_endpoint: token_endpoint.into(), client, id_token }
    }
}

/// The configuration of an [`Authorization`](crate::Authorization).
///
/// ```
/// use mcp_sansio_auth::AuthorizationConfig;
/// let config = AuthorizationConfig::new("inspector", "http://127.0.0.1:8976/callback").scope("files:read");
/// # let _ = config;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct AuthorizationConfig {
    pub(crate) client_name: String,
    pub(crate) redirect_uri: String,
    pub(crate) client_uri: Option<String>,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) registered: Option<RegisteredClient>,
    pub(crate) grant: GrantType,
    pub(crate) scope: String,
    pub(crate) offline_access: bool,
    pub(crate) legacy: bool,
    pub(crate) require_dpop: bool,
    pub(crate) protocol_version: Option<String>,
    pub(crate) limits: AuthorizationLimits,
}

/// The limits of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationLimits {
    /// Most bytes of a document. Default: 64 KiB.
    pub document: usize,
    /// Most redirects of one fetch of metadata, all on the same origin. Default: 3.
    pub redirects: u8,
    /// Most step-ups of one operation. Default: 3.
    pub step_ups: u8,
    /// Seconds for which a person may be away. Default: 600.
    pub visit: u64,
    /// Seconds before its end at which a token is refreshed. Default: 30.
    pub early: u64,
    /// Most fetches of one flow, at least 1. Default: 32.
    pub fetches: u8,
}

impl Default for AuthorizationLimits {
    fn default() -> Self {
        AuthorizationLimits { document: 64 << 10, redirects: 3, step_ups: 3, visit: 600, early: 30, fetches: 32 }
    }
}

impl AuthorizationConfig {
    /// Makes a configuration with `client_name` and the redirect URI, which is `http` on this machine or `https`.
    pub fn new(client_name: impl Into<String>, redirect_uri: impl Into<String>) -> Self {
        AuthorizationConfig {
            client_name: client_name.into(),
            redirect_uri: redirect_uri.into(),
            client_uri: None,
            client_metadata_url: None,
            registered: None,
            grant: GrantType::Any,
            scope: String::new(),
            offline_access: true,
            legacy: true,
            require_dpop: false,
            protocol_version: None,
            limits: AuthorizationLimits::default(),
        }
    }

    mcp_sansio::setters! {
        /// Sets the redirect URI.
        redirect_uri(uri: impl Into<String>) => redirect_uri = uri.into();
        /// Sets `client_uri` of a registration: the home page of the application.
        client_uri(uri: impl Into<String>) => client_uri = Some(uri.into());
        /// Sets the URL of the application's
        /// [client id metadata document](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration#client-id-metadata-documents),
        /// which is the `client_id` at servers that support it: an `https` URL with a path that is more than a slash. Another one
        /// ends the login with [`AuthorizationError::Url`](crate::AuthorizationError::Url).
        client_metadata_url(url: impl Into<String>) => client_metadata_url = Some(url.into());
        /// Sets a client that was registered in advance. It is used before all others.
        registered(client: RegisteredClient) => registered = Some(client);
        /// Sets the way to a token. Default: [`GrantType::Any`].
        grant(grant: GrantType) => grant = grant;
        /// Sets scopes, separated by spaces, that are asked for in addition to what the server demands. Default: none.
        scope(scope: impl Into<String>) => scope = scope.into();
        /// Sets whether `offline_access` is asked for where the authorization server has it, so that there is a refresh token.
        /// Default: `true`.
        offline_access(on: bool) => offline_access = on;
        /// Sets whether a server without protected resource metadata is its own authorization server, as in
        /// [2025-03-26](https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization). Default: `true`. Set
        /// `false` where that revision is not spoken.
        legacy(on: bool) => legacy = on;
        /// Sets whether a token without proof of possession is refused. Default: `false`; it is refused in any case if the
        /// server demands a proof.
        require_dpop(on: bool) => require_dpop = on;
        /// Sets the header `MCP-Protocol-Version` of metadata requests. Default: it is left out.
        protocol_version(version: impl Into<String>) => protocol_version = Some(version.into());
        /// Sets the limits.
        limits(limits: AuthorizationLimits) => limits = limits;
    }
}
