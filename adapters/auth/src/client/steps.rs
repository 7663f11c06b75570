//! The types of a flow: its steps, and the answers that go in.

use alloc::string::String;
use alloc::vec::Vec;

use crate::client::error::AuthorizationError;
use crate::jose::Signer;
use crate::time::UnixSeconds;

/// Time, randomness and keys, which the caller lends.
#[non_exhaustive]
#[must_use]
pub struct Environment<'e> {
    /// The time.
    pub now: UnixSeconds,
    /// Fills bytes with secure random ones.
    pub random: &'e mut dyn FnMut(&mut [u8]),
    /// The key with which the client authenticates (`private_key_jwt`).
    pub client_key: Option<&'e dyn Signer>,
    /// The key to which tokens are bound ([DPoP](https://www.rfc-editor.org/rfc/rfc9449)). It is used where the
    /// authorization server supports its algorithm.
    pub dpop_key: Option<&'e dyn Signer>,
}

impl<'e> Environment<'e> {
    /// Makes an environment without keys.
    pub fn new(now: UnixSeconds, random: &'e mut dyn FnMut(&mut [u8])) -> Self {
        Environment { now, random, client_key: None, dpop_key: None }
    }
}

mcp_sansio::debug_fields!(impl for Environment<'_> { now });

/// An answer 401 or 403 of the server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct Rejection<'r> {
    /// 401 or 403.
    pub status: u16,
    /// The values of all headers `WWW-Authenticate`.
    pub www_authenticate: &'r [&'r str],
    /// The value of the header `DPoP-Nonce`.
    pub dpop_nonce: Option<&'r str>,
    /// [`Credentials::generation`] of the request; 0 if it had none.
    pub generation: u32,
    /// The operation, for the limit of step-ups: the method, and the name of a tool.
    pub operation: &'r str,
}

impl<'r> Rejection<'r> {
    /// Makes a rejection of a request without credentials.
    pub const fn new(status: u16, www_authenticate: &'r [&'r str]) -> Self {
        Rejection { status, www_authenticate, dpop_nonce: None, generation: 0, operation: "" }
    }

    mcp_sansio::const_setters! {
        /// Sets the header `DPoP-Nonce`.
        dpop_nonce(nonce: &'r str) => dpop_nonce = Some(nonce);
        /// Sets with which credentials the request went out.
        generation(generation: u32) => generation = generation;
        /// Sets the operation.
        operation(operation: &'r str) => operation = operation;
    }
}

/// The next action for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "now, later or never")]
pub enum Outcome {
    /// Send it again now.
    Retry,
    /// It waits until [`Authorization::step`](crate::Authorization::step) returns [`Step::Retry`] or [`Step::Refused`].
    Wait,
    /// It fails.
    Refused(AuthorizationError),
}

/// The next step, see [`Authorization::step`](crate::Authorization::step).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// There is nothing to do.
    Idle,
    /// Send this request and report its answer. Follow no redirects.
    Fetch(&'a FetchStep),
    /// Let a person visit this URL. The browser comes back to the redirect URI.
    Visit {
        /// The URL of the authorization request.
        url: &'a str,
    },
    /// There is a token: send everything again that waits. It is returned once.
    Retry,
    /// There is no token: everything that waits fails. It is returned once.
    Refused(AuthorizationError),
}

/// A request of HTTP. [`Debug`](core::fmt::Debug) shows neither headers nor the body.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchStep {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The URL: `https`, or `http` on this machine.
    pub url: String,
    /// The headers, `Content-Type` included; the caller adds `Host` and `Content-Length`.
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for a `GET`.
    pub body: String,
    /// The most bytes of the answer's body: stop reading behind them, and report
    /// [`FetchFailure::TooLarge`](crate::FetchFailure::TooLarge).
    pub limit: usize,
    /// The URL is from the [configuration](crate::AuthorizationConfig), and not from a server. Any other URL must not lead to an
    /// address that is [nearer](crate::url::Reach) than the server's: look at the addresses of its name before you connect, and report
    /// [`FetchFailure::Private`](crate::FetchFailure::Private).
    pub is_configured: bool,
}

mcp_sansio::debug_fields!(impl for FetchStep { method, url });

/// The answer to a [`FetchStep`].
#[derive(Clone, Copy)]
#[non_exhaustive]
#[must_use]
pub struct Response<'r> {
    /// The status.
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: Option<&'r str>,
    /// The header `Location`.
    pub location: Option<&'r str>,
    /// The header `DPoP-Nonce`.
    pub dpop_nonce: Option<&'r str>,
    /// The body.
    pub body: &'r [u8],
}

impl<'r> Response<'r> {
    /// Makes an answer without headers.
    pub const fn new(status: u16, body: &'r [u8]) -> Self {
        Response { status, content_type: None, location: None, dpop_nonce: None, body }
    }
}

mcp_sansio::debug_fields!(impl for Response<'_> { status });

/// The credentials of one request, see [`Authorization::credentials`](crate::Authorization::credentials). [`Debug`](core::fmt::Debug) does not show them.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// The number of the credentials, for [`Rejection::generation`]; 0 if there are none.
    pub generation: u32,
    /// The value of the header `Authorization`.
    pub authorization: Option<String>,
    /// The value of the header `DPoP`, for this one request.
    pub dpop: Option<String>,
}

mcp_sansio::debug_fields!(impl for Credentials { generation });
