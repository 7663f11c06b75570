//! The one error type of the client.

use alloc::string::String;
use core::fmt;

use crate::challenge::ChallengeError;
use crate::jose::SignError;
use crate::url::RefusedUrlError;

/// The reason why there is no token.
///
/// Texts that come from a server have only printable characters of ASCII, and a length of at most [`TEXT`] bytes. None of
/// them is a token, a code or a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// `WWW-Authenticate` cannot be read.
    Challenge(ChallengeError),
    /// The server answered 403, and no other token would change that.
    Forbidden,
    /// The server refuses a token that is new.
    TokenRejected,
    /// The server demands scopes that were asked for already.
    ScopesNotGranted,
    /// There were too many step-ups for one operation.
    TooManyStepUps,
    /// A URL is not acceptable.
    Url {
        /// The member or parameter that has the URL.
        member: &'static str,
        /// The reason.
        reason: RefusedUrlError,
    },
    /// A document could not be fetched.
    Unavailable {
        /// The document: `protected resource metadata`, `token`.
        document: Document,
        /// The failure at the last place that was tried.
        failure: FetchFailure,
    },
    /// A document is no JSON object, or too large, or a member is missing or has another type than it should.
    Document {
        /// The document.
        document: Document,
        /// The member; empty if it is the document as a whole.
        member: &'static str,
    },
    /// `resource` of the protected resource metadata is not this server.
    ResourceMismatch(Mismatch),
    /// `issuer` of the authorization server metadata is not the one that was asked.
    IssuerMismatch(Mismatch),
    /// The authorization server does not support PKCE with `S256`.
    NoPkce,
    /// The authorization server does not support the grant.
    NoGrant,
    /// The client is registered at another authorization server than the one that the resource names.
    OtherIssuer(Mismatch),
    /// There is no way to be a client: nothing is registered in advance, and the server registers none.
    NoClient,
    /// There is no way of client authentication that both sides have.
    NoClientAuthentication,
    /// The authorization server answered with an error.
    Refused {
        /// The request.
        document: Document,
        /// `error`.
        error: String,
        /// `error_description`. Default: empty.
        description: String,
    },
    /// `state` of the redirect is not the one of this flow, or it was used before. The flow continues.
    State,
    /// The redirect has neither a code nor an error, or has a parameter twice.
    Redirect,
    /// `iss` of the redirect is missing or another one.
    Iss(Mismatch),
    /// The person took too long.
    Expired,
    /// The application gave up.
    Cancelled,
    /// The token is of a type that was not asked for.
    TokenType,
    /// A proof of possession is demanded and there is no key, or the key's algorithm is not supported.
    NoProofKey,
    /// The server refuses each proof of possession.
    ProofRejected,
    /// Nothing was signed.
    Sign(SignError),
    /// A request to another origin must not carry the token.
    OtherOrigin,
}

/// Two values that must be equal, character by character, and are not. Characters beyond ASCII are escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The value that must be there.
    pub expected: String,
    /// The present value; empty without one.
    pub found: String,
}

impl Mismatch {
    pub(crate) fn new(expected: &str, found: &str) -> Self {
        let shown = |text: &str| shown(text.chars().flat_map(char::escape_default));
        Mismatch { expected: shown(expected), found: shown(found) }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.found.is_empty() { "nothing" } else { &self.found };
        write!(f, "{found} in place of {}", self.expected)
    }
}

/// The most bytes of a text of a server that an error keeps.
pub const TEXT: usize = 200;

/// A document that a client fetches, or a request whose answer it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Document {
    /// [Protected resource metadata](https://www.rfc-editor.org/rfc/rfc9728).
    ResourceMetadata,
    /// [Authorization server metadata](https://www.rfc-editor.org/rfc/rfc8414).
    ServerMetadata,
    /// [Dynamic client registration](https://www.rfc-editor.org/rfc/rfc7591).
    Registration,
    /// The redirect of an authorization request.
    Redirect,
    /// A token request.
    Token,
    /// A [token exchange](https://www.rfc-editor.org/rfc/rfc8693) at the identity provider.
    TokenExchange,
    /// A [revocation](https://www.rfc-editor.org/rfc/rfc7009).
    Revocation,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Document::ResourceMetadata => "protected resource metadata",
            Document::ServerMetadata => "authorization server metadata",
            Document::Registration => "client registration",
            Document::Redirect => "authorization",
            Document::Token => "token request",
            Document::TokenExchange => "token exchange",
            Document::Revocation => "revocation",
        })
    }
}

impl fmt::Display for AuthorizationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use AuthorizationError as Error;
        match self {
            Error::Challenge(error) => error.fmt(f),
            Error::Forbidden => f.write_str("the server refuses the request whatever the token"),
            Error::TokenRejected => f.write_str("the server refuses a new token"),
            Error::ScopesNotGranted => f.write_str("the server demands scopes that were asked for already"),
            Error::TooManyStepUps => f.write_str("the server demanded more scopes too often"),
            Error::Url { member, reason } => write!(f, "the URL of {member} is not used: {reason}"),
            // The user named another server: its authorization server takes known clients only.
            Error::Unavailable {
                document: Document::Registration,
                failure: FetchFailure::Status(status @ (401 | 403)),
            } => write!(
                f,
                "the authorization server registers no clients by itself (status {status}): give the client that it knows"
            ),
            Error::Unavailable { document, failure } => write!(f, "{document}: {failure}"),
            Error::Document { document, member: "" } => write!(f, "{document}: the answer is no JSON object"),
            Error::Document { document, member } => {
                write!(f, "{document}: `{member}` is missing or not as it should be")
            }
            Error::ResourceMismatch(which) => {
                write!(f, "the protected resource metadata is about another resource: {which}")
            }
            Error::IssuerMismatch(which) => {
                write!(f, "the authorization server metadata is about another issuer: {which}")
            }
            Error::NoPkce => f.write_str("the authorization server does not support PKCE with S256"),
            Error::NoGrant => f.write_str("the authorization server does not support the grant"),
            Error::OtherIssuer(which) => {
                write!(f, "the client is registered at another authorization server: {which}")
            }
            Error::NoClient => f.write_str("no client is registered, and the authorization server registers none"),
            Error::NoClientAuthentication => {
                f.write_str("the authorization server supports no way in which the client can authenticate")
            }
            Error::Refused { document, error, description } => {
                write!(f, "{document}: the authorization server refused: {error}")?;
                if description.is_empty() { Ok(()) } else { write!(f, " ({description})") }
            }
            Error::State => f.write_str("the redirect does not belong to this authorization, or came twice"),
            Error::Redirect => f.write_str("the redirect has no code"),
            Error::Iss(which) => write!(f, "the redirect is from another authorization server: {which}"),
            Error::Expired => f.write_str("the authorization took too long"),
            Error::Cancelled => f.write_str("the authorization was cancelled"),
            Error::TokenType => f.write_str("the token is of a type that was not asked for"),
            Error::NoProofKey => f.write_str("a proof of possession is demanded, and there is no key for it"),
            Error::ProofRejected => f.write_str("the server refuses the proof of possession"),
            Error::Sign(error) => error.fmt(f),
            Error::OtherOrigin => f.write_str("the token is not for this URL"),
        }
    }
}

impl core::error::Error for AuthorizationError {}

mcp_sansio::error_enum! {
    /// The reason why a fetch has no usable answer.
    FetchFailure {
        /// There was no connection, or it broke.
        Unreachable => "there was no connection",
        /// The name of the host has no address but some that are nearer than the server: in a private network, or on this
        /// machine.
        Private => "the URL leads into a private network",
        /// The answer took too long.
        Timeout => "the answer took too long",
        /// The answer is larger than [`FetchStep::limit`](crate::FetchStep::limit).
        TooLarge => "the answer is too large",
        /// The answer has this status.
        Status(status: u16) => "the answer has the status {status}",
        /// The answer is a redirect that is not followed.
        Redirect => "the answer is a redirect to another place",
        /// The flow had too many fetches.
        TooMany => "there were too many requests",
    }
}

/// Keeps the printable characters of a server's text.
pub(crate) fn shown(chars: impl Iterator<Item = char>) -> String {
    chars.filter(|char| matches!(char, ' '..='~')).take(TEXT).collect()
}
