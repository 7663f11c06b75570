//! Requests: from the head and the body to those who answer them.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::code;
use mcp_sansio::server::{Millis, Request};
use mcp_sansio::sink::Out;

use super::gate::Version;
use super::head::{Admission, Head, Response};
use super::media::{Accept, is_json};
use super::metadata::{is_metadata, serve_metadata};
use super::refusal::{not_allowed, refuse};
use super::session::{PRINCIPAL_MAX, Principal};
use super::{Access, App, Endpoint};

const NO_VERSION: &str = "MCP-Protocol-Version is not supported";

impl<const N: usize> Endpoint<'_, N> {
    /// Judges a request by its head, before its body is read: `Host`, `Origin`, `Sec-Fetch-Site`, path, method, and
    /// [`App::authorize`]. Give the [`Head`] the admission with [`Head::admitted`] before it goes to
    /// [`request`](Endpoint::request), which judges a head without one itself.
    ///
    /// # Errors
    /// The answer, if the head alone decides it: a refusal, a CORS preflight, or the metadata of the resource. A JSON
    /// body is written to `body`, which must be empty. Do not read the request's body then.
    pub fn admit<'r, 'a: 'r, S>(
        &self,
        app: &App<'a, S>,
        head: &Head<'r>,
        body: &mut dyn Out,
    ) -> Result<Admission, Response<'r>> {
        match self.judge(app, head, body) {
            Ok(principal) => Ok(Admission { principal: Principal::new(principal) }),
            Err(response) => Err(self.readable(response, head)),
        }
    }

    /// Handles one request. A JSON body is written to `body`, which must be empty; streams are pulled. `random` fills
    /// bytes that nobody can guess.
    pub fn request<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        now: Millis,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        self.tick(now);
        let judged = match head.admission {
            Some(admission) => Ok(admission.principal.name()),
            None => self.judge(app, head, body),
        };
        let response = match judged {
            Ok(principal) => self.route(app, head, content, principal, random, body),
            Err(response) => response,
        };
        self.readable(response, head)
    }

    /// Says who may read a response, with CORS.
    fn readable<'r>(&self, mut response: Response<'r>, head: &Head<'r>) -> Response<'r> {
        if self.config.cors {
            response.origin = head.text("origin").filter(|origin| self.config.allows_origin(origin.as_bytes()));
        }
        response
    }

    /// What the head alone decides; the principal if that is nothing.
    fn judge<'r, 'a: 'r, S>(
        &self,
        app: &App<'a, S>,
        head: &Head<'r>,
        body: &mut dyn Out,
    ) -> Result<Option<&'r str>, Response<'r>> {
        if self.is_foreign(head) {
            return Err(refuse(body, 403, code::INVALID_REQUEST, "Host or Origin is not allowed"));
        }
        if head.method == "OPTIONS" && self.config.cors {
            let mut response = Response::status(204);
            response.preflight = true;
            response.requested = head.text("access-control-request-headers").filter(|names| is_header_list(names));
            return Err(response);
        }
        let path = head.path;
        if let Some(metadata) = self.config.resource_metadata.filter(|_| is_metadata(path, self.config.path)) {
            return Err(serve_metadata(head, metadata, body));
        }
        let Some(allowed) = self.allowed(path) else {
            return Err(refuse(body, 404, code::INVALID_REQUEST, "There is nothing here"));
        };
        let principal = match (app.authorize)(head) {
            Access::Granted { principal } => principal,
            Access::Denied { status, challenge } => {
                return Err(Response { challenge, ..refuse(body, status, code::INVALID_REQUEST, "Not authorized") });
            }
        };
        if principal.is_some_and(|principal| principal.len() > PRINCIPAL_MAX) {
            return Err(refuse(body, 500, code::INTERNAL, "The principal's name is too long"));
        }
        // What GET and DELETE are answered with depends on the revision, too: `route` decides that.
        let is_known = |method| allowed.split(", ").any(|known| known == method);
        if !matches!(head.method, "GET" | "DELETE") && !is_known(head.method) {
            return Err(not_allowed(body, allowed));
        }
        Ok(principal)
    }

    /// The methods that are served at a path, if any are.
    fn allowed(&self, path: &str) -> Option<&'static str> {
        let config = &self.config;
        match path {
            _ if path == config.path => Some(if config.legacy { "GET, POST, DELETE" } else { "POST" }),
            _ if path == config.post_path => Some("POST"),
            _ if path == config.old_path => Some("GET"),
            _ => None,
        }
    }

    /// Whether `Host` or `Origin` names a site that may not come here, or a page elsewhere asks without an `Origin`: with
    /// `<img>`, for one, of which browsers tell by `Sec-Fetch-Site`. Nothing but browsers sends that header.
    fn is_foreign(&self, head: &Head<'_>) -> bool {
        let host = head.value("host").or_else(|| head.value(":authority"));
        let origin = head.value("origin");
        host.is_some_and(|host| !self.config.allows(host))
            || origin.is_some_and(|origin| !self.config.allows_origin(origin))
            || (origin.is_none() && !self.config.any_host && head.value("sec-fetch-site") == Some(b"cross-site"))
    }

    fn route<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        let path = head.path;
        if path == self.config.post_path && path != self.config.path {
            return match head.method {
                "POST" => self.old_post(app, head, content, principal, body),
                _ => not_allowed(body, "POST"),
            };
        }
        if path != self.config.path {
            return match head.method {
                "GET" if self.config.legacy => self.old_get(app, head, principal, random, body),
                _ => not_allowed(body, "GET"),
            };
        }
        let version = Version::of(head);
        match head.method {
            // What a POST is can stand in its body, too.
            "GET" | "DELETE" if version == Version::Unknown => refuse(body, 400, code::INVALID_REQUEST, NO_VERSION),
            "POST" if path == self.config.path => self.post(app, head, content, principal, version, random, body),
            "GET" | "DELETE" if version == Version::Modern || !self.config.legacy => not_allowed(body, "POST"),
            "GET" => self.get(app, head, principal, random, body),
            "DELETE" if path == self.config.path => self.delete(app, head, principal, body),
            _ => not_allowed(body, if self.config.legacy { "GET, POST, DELETE" } else { "POST" }),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what a POST has")]
    fn post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        version: Version,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        if !is_json(head) {
            return refuse(body, 415, code::INVALID_REQUEST, "Content-Type is not application/json");
        }
        if !Accept::of(head).json() {
            return refuse(body, 406, code::INVALID_REQUEST, "Accept must have application/json and text/event-stream");
        }
        let mut request = Request::empty();
        let read = request.read(content);
        let modern = version == Version::Modern || request.envelope().meta.is_modern();
        match read {
            Ok(()) if modern => self.modern_post(app, head, &mut request, principal, body),
            Err(_) if modern => self.unreadable(content, body),
            _ if version == Version::Unknown => refuse(body, 400, code::INVALID_REQUEST, NO_VERSION),
            _ if !self.config.legacy => {
                refuse(body, 400, code::INVALID_REQUEST, "This server is stateless: see 2026-07-28")
            }
            Ok(()) => self.legacy_post(app, head, &mut request, principal, random, body),
            Err(_) => self.legacy_batch(app, head, content, principal, body),
        }
    }

    /// Not JSON, or no object.
    pub(crate) fn unreadable<'r>(&mut self, content: &[u8], body: &mut dyn Out) -> Response<'r> {
        match Raw::parse(content) {
            Ok(_) => refuse(body, 400, code::INVALID_REQUEST, "Invalid request: not an object"),
            Err(_) => refuse(body, 400, code::PARSE, "Parse error"),
        }
    }
}

/// Whether a text can stand as a list of header names in a header.
fn is_header_list(names: &str) -> bool {
    names.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte))
}
