//! The states of a flow, and its data.

use alloc::string::String;
use alloc::vec::Vec;

use crate::client::config::Secret;
use crate::client::demand::Demand;
use crate::client::error::AuthorizationError;
use crate::client::metadata::ServerMetadata;
use crate::client::registration::Client;
use crate::pkce::CodeVerifier;
use crate::time::UnixSeconds;

/// The state of a flow. It is changed in `flow.rs` alone, see [`TRANSITIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No flow.
    Idle,
    /// Protected resource metadata is fetched.
    ResourceMetadata,
    /// Authorization server metadata is fetched.
    ServerMetadata,
    /// The client registers.
    Registering,
    /// A person visits the authorization endpoint.
    Visiting,
    /// The identity provider exchanges an id token for an assertion.
    Exchanging,
    /// The token endpoint gets a grant.
    Requesting,
    /// The token endpoint gets a refresh token.
    Refreshing,
    /// The revocation endpoint gets a token.
    Revoking,
    /// There is a token, and the application has not seen it yet.
    Done,
    /// There is no token, and the application has not seen the error yet.
    Refused,
}

/// Every change of a flow's state: from, to, cause.
pub(crate) const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Idle", "ResourceMetadata", "401, or more scopes are demanded"),
    ("Idle", "Refreshing", "401, or the token ends soon"),
    ("ResourceMetadata", "ResourceMetadata", "redirect, or the next place"),
    ("ResourceMetadata", "ServerMetadata", "metadata, or none (2025-03-26)"),
    ("ServerMetadata", "ServerMetadata", "redirect, or the next place"),
    ("ServerMetadata", "Registering", "no client yet"),
    ("ServerMetadata", "Visiting", "authorization code"),
    ("ServerMetadata", "Exchanging", "enterprise-managed"),
    ("ServerMetadata", "Requesting", "client credentials, or workload identity"),
    ("Registering", "Registering", "its scopes or its type are refused"),
    ("Registering", "Visiting", "registered"),
    ("Visiting", "Requesting", "the code"),
    ("Exchanging", "Requesting", "the assertion"),
    ("Requesting", "Requesting", "another nonce"),
    ("Requesting", "Registering", "the client is not known any more"),
    ("Refreshing", "Refreshing", "another nonce"),
    ("Refreshing", "ResourceMetadata", "the refresh token is no good"),
    ("Refreshing", "Done", "token, or the early refresh failed"),
    ("Requesting", "Done", "token"),
    ("Idle", "Revoking", "logout"),
    ("Revoking", "Done", "revoked"),
    ("ResourceMetadata", "Refused", "error, or cancelled"),
    ("ServerMetadata", "Refused", "error, or cancelled"),
    ("Registering", "Refused", "error, or cancelled"),
    ("Visiting", "Refused", "error, or cancelled"),
    ("Exchanging", "Refused", "error, or cancelled"),
    ("Requesting", "Refused", "error, or cancelled"),
    ("Refreshing", "Refused", "error, or cancelled"),
    ("Revoking", "Refused", "error, or cancelled"),
    ("Done", "Idle", "seen"),
    ("Refused", "Idle", "seen"),
];

mcp_sansio::machine!(State, TRANSITIONS: Idle ResourceMetadata ServerMetadata Registering Visiting Exchanging Requesting Refreshing Revoking Done Refused);

/// The origin of the current token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was stored, or the server has accepted it: the server may come to refuse it.
    Trusted,
    /// It was refreshed, and not accepted yet.
    Refreshed,
    /// It is from a whole flow, and not accepted yet: if it is refused, the next one will be too.
    New,
}

/// The data of a flow.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) demand: Demand,
    /// Places that are still to be tried, the next one at the end.
    pub(crate) places: Vec<String>,
    /// Each place answered that there is nothing.
    pub(crate) is_absent: bool,
    pub(crate) failure: Option<AuthorizationError>,
    pub(crate) redirects: u8,
    pub(crate) fetches: u8,
    /// The authorization server is the server's origin (2025-03-26).
    pub(crate) is_legacy: bool,
    /// As the metadata wrote it; empty in a legacy flow.
    pub(crate) resource: String,
    pub(crate) scopes_supported: String,
    pub(crate) issuer: String,
    pub(crate) metadata: ServerMetadata,
    pub(crate) demands_dpop: bool,
    pub(crate) client: Option<Client>,
    /// The client has registered in this flow.
    pub(crate) is_registered: bool,
    /// The registration has no scopes: there are none, or the authorization server refused them.
    pub(crate) omits_scope: bool,
    /// The registration has the other `application_type`: the authorization server refused the first.
    pub(crate) has_other_type: bool,
    pub(crate) scope: String,
    pub(crate) state: String,
    pub(crate) verifier: Option<CodeVerifier>,
    pub(crate) visit: String,
    pub(crate) begun: UnixSeconds,
    /// The fields of the grant, for each time that it is sent.
    pub(crate) grant: Vec<(&'static str, Secret)>,
    pub(crate) nonces: u8,
    /// The refresh was not begun by an answer.
    pub(crate) is_early: bool,
}
