//! Decisions about requests that own their texts, and decisions about messages.

use core::fmt;

use mcp_sansio::FullError;
use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::sink::Out;

use super::extra_headers::{ExtraHeaders, REFUSAL_HEADERS};
use super::head::{EndpointResponse, Grant, RequestHead};
use super::refusal::{no_json, refuse};
use super::{Access, App};

impl Grant {
    /// Sets the scopes that the client has, one bit each in an order of the application's: [`App::permit`] gets them with
    /// each message. Default: none.
    #[must_use]
    pub fn scopes(mut self, bits: u64) -> Self {
        self.parts.scopes = bits;
        self
    }

    /// Adds a header to the response, like `DPoP-Nonce`.
    ///
    /// # Errors
    /// As [`ExtraHeaders::add`].
    pub fn header(mut self, name: &str, value: impl fmt::Display) -> Result<Self, FullError> {
        self.parts.headers.add(name, value)?;
        Ok(self)
    }
}

/// The refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Refusal {
    status: u16,
    headers: ExtraHeaders<REFUSAL_HEADERS>,
}

impl Refusal {
    /// Refuses with a status: 401 without a valid token, 403 if the token does not suffice, 400 if it cannot be read.
    #[must_use]
    pub const fn new(status: u16) -> Self {
        Refusal { status, headers: ExtraHeaders::EMPTY }
    }

    /// Adds a header to the response: `WWW-Authenticate`, `DPoP-Nonce`.
    ///
    /// # Errors
    /// As [`ExtraHeaders::add`].
    pub fn header(mut self, name: &str, value: impl fmt::Display) -> Result<Self, FullError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    pub(crate) fn response(&self, body: &mut dyn Out) -> EndpointResponse<'static> {
        let mut response = refuse(body, self.status, "Not authorized");
        response.extra = self.headers.clone();
        response
    }
}

/// A message of an admitted request, before it is handled: see [`App::permit`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct MessageAccess<'x> {
    /// The head of the HTTP request.
    pub head: &'x RequestHead<'x>,
    /// The principal, if it is known.
    pub principal: Option<&'x str>,
    /// The [scopes](Grant::scopes) of the grant.
    pub scopes: u64,
    /// The scopes that the entry it names needs, if it [challenges](mcp_sansio::service::Visibility::challenge): else 0.
    pub needed: u64,
    /// The method of the message, like `tools/call`.
    pub method: Text<'x>,
    /// `name` of `params`: the tool or prompt that is meant.
    pub name: Option<Text<'x>>,
    /// `uri` of `params`: the resource that is meant.
    pub uri: Option<Text<'x>>,
}

impl MessageAccess<'_> {
    /// Returns whether this is a `tools/call` of a tool.
    #[must_use]
    pub fn calls_tool(&self, name: &str) -> bool {
        self.method.eq_str("tools/call") && self.name.is_some_and(|given| given.eq_str(name))
    }

    /// Returns whether the grant lacks a scope that the entry needs: refuse the message then, and name all
    /// [needed](MessageAccess::needed) scopes in the challenge.
    #[must_use]
    pub const fn lacks_scope(&self) -> bool {
        self.needed & !self.scopes != 0
    }
}

mcp_sansio::debug_fields!(impl for MessageAccess<'_> { method, name });

impl Grant {
    /// Adds the headers of the grant.
    pub(crate) fn add_headers(&self, response: &mut EndpointResponse<'_>) {
        // These fit: they are fewer than those of a refusal.
        self.parts.headers.each(&mut |name, value| _ = response.extra.add(name, value));
    }

    /// Asks the application about each message of the body. Messages that are none are refused later.
    #[allow(clippy::result_large_err, reason = "there is no allocator for a box, and it is handed on at once")]
    pub(crate) fn permit<'a, S>(
        &self,
        app: &App<'a, S>,
        head: &RequestHead<'_>,
        content: &[u8],
        body: &mut dyn Out,
    ) -> Result<(), EndpointResponse<'a>> {
        let Some(permit) = app.permit.filter(|_| head.method == "POST") else { return Ok(()) };
        let Ok(content) = Raw::parse(content) else {
            return Err(no_json(body));
        };
        let single = Some(content).filter(|content| content.kind() != JsonKind::Array);
        for message in single.into_iter().chain(content.items()) {
            let message = message.as_bytes();
            // The same reader as the engine's: two readers could see different members.
            let Ok(envelope) = Envelope::parse(message) else { continue };
            let method = match envelope.shape() {
                MessageShape::Request { method, .. } | MessageShape::Notification { method } => method,
                _ => continue,
            };
            let members = &envelope.members;
            let name = members.name.and_then(|name| name.text());
            let uri = members.uri.and_then(|uri| uri.text());
            let (principal, scopes) = (self.principal.name(), self.parts.scopes);
            let needed = app.service.challenged_scopes(&method, name.or(uri).as_ref());
            let access = MessageAccess { head, principal, scopes, needed, method, name, uri };
            match permit(&access) {
                Access::Granted { .. } | Access::GrantedTo(_) => {}
                Access::Denied { status, challenge } => {
                    let refused = refuse(body, status, "Not authorized");
                    return Err(EndpointResponse { challenge, ..refused });
                }
                Access::RefusedWith(refusal) => return Err(refusal.response(body)),
                Access::Later => {
                    return Err(refuse(body, 503, "The authorization is not decided yet"));
                }
            }
        }
        Ok(())
    }
}

impl<'a, S> App<'a, S> {
    /// Sets the function that decides about each message of an admitted request, before it is handled: requests,
    /// notifications, and each element of a batch. If it refuses one, the whole HTTP request is refused. It sees method and
    /// target in all revisions, and whether the client [lacks a scope](MessageAccess::lacks_scope) of an entry that challenges: this
    /// is the place to answer with 403 and a challenge. Its grants are not looked at.
    #[must_use]
    pub fn permit(self, permit: &'a dyn Fn(&MessageAccess<'_>) -> Access<'a>) -> Self {
        App { permit: Some(permit), ..self }
    }
}

/// Returns the grant of a decision that owns its texts.
#[allow(clippy::result_large_err, reason = "as above")]
pub(crate) fn granted<'r>(access: Access<'r>, body: &mut dyn Out) -> Result<Grant, EndpointResponse<'r>> {
    match access {
        Access::GrantedTo(grant) => Ok(grant),
        Access::RefusedWith(refusal) => Err(refusal.response(body)),
        _ => {
            let mut response = refuse(body, 503, "The authorization is not decided yet");
            response.undecided = true;
            Err(response)
        }
    }
}
