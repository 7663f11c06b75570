//! Requests: from the head and the body to those who answer them.

use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::protocol::code;
use mcp_sansio::revision::{Era, Revisions};
use mcp_sansio::rpc::{Envelope, Shape};
use mcp_sansio::server::{Millis, Request};
use mcp_sansio::sink::Out;

use super::config::same_path;
use super::gate::{NO_VERSION, Version, VersionBuffer, check_version};
use super::head::{Admission, Head, Response};
use super::media::{Accept, is_json};
use super::metadata::{is_metadata, serve_metadata};
use super::refusal::{not_allowed, refuse, refuse_request};
use super::session::{PRINCIPAL_MAX, Principal};
use super::{Access, App, Endpoint};

impl<const N: usize> Endpoint<'_, N> {
    /// Judges a request by its head, before its body is read: `Host`, `Origin`, `Sec-Fetch-Site`, path, method, and
    /// [`App::authorize`]. Give the [`Head`] the admission with [`Head::admitted`] before it goes to
    /// [`request`](Endpoint::request), which judges a head without one itself.
    ///
    /// # Errors
    /// The answer, if the head alone decides it: a refusal, a CORS preflight, or the metadata of the resource. A JSON
    /// body is written to `body`, which must be empty. Do not read the request's body then.
    #[allow(clippy::result_large_err, reason = "there is no allocator for a box, and it is handed on at once")]
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
        if self.hash_key == 0 && matches!(judged, Ok(Some(_))) {
            let mut key = [0; 8];
            random(&mut key);
            self.hash_key = u64::from_le_bytes(key);
        }
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
    #[allow(clippy::result_large_err, reason = "as above")]
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
        let Some(allowed) = self.place(path, self.served(app)).map(|(_, allowed)| allowed) else {
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
        let is_known = |method| allowed.split(',').any(|known| known.trim_start_matches(' ') == method);
        if !matches!(head.method, "GET" | "DELETE") && !is_known(head.method) {
            return Err(not_allowed(body, allowed));
        }
        Ok(principal)
    }

    /// The revisions that are served: those of the service, without those that have sessions if there are to be none.
    fn served<S>(&self, app: &App<'_, S>) -> Revisions {
        let served = app.service.about().served();
        if self.config.legacy { served } else { served.of(Era::Modern).fold(Revisions::NONE, Revisions::with) }
    }

    /// What is at a path, with or without a slash at its end, and the methods that are served there.
    fn place(&self, path: &str, served: Revisions) -> Option<(Place, &'static str)> {
        let config = &self.config;
        match served.has_era(Era::Legacy) {
            has_sessions if same_path(config.path, path) => {
                Some((Place::Endpoint, if has_sessions { "GET, POST, DELETE" } else { "POST" }))
            }
            true if same_path(config.post_path, path) => Some((Place::OldPost, "POST")),
            true if same_path(config.old_path, path) => Some((Place::Old, "GET")),
            _ => None,
        }
    }

    /// Whether `Host` or `Origin` names a site that may not come here, or a page elsewhere asks without an `Origin`: with
    /// `<img>`, for one, of which browsers tell by `Sec-Fetch-Site`. Nothing but browsers sends that header.
    fn is_foreign(&self, head: &Head<'_>) -> bool {
        let host = if head.headers.get("host").is_some() { "host" } else { ":authority" };
        let mut foreign = false;
        head.headers.each(host, &mut |host| foreign |= !self.config.allows(host.trim_ascii()));
        // A browser sends one. Of several it is not known which one somebody in between looks at.
        let mut first = None;
        head.headers.each("origin", &mut |origin| {
            let origin = origin.trim_ascii();
            foreign |= *first.get_or_insert(origin) != origin || !self.config.allows_origin(origin);
        });
        let is_hidden = || first.is_none() && head.value("sec-fetch-site") == Some(b"cross-site");
        foreign || !self.config.any_host && is_hidden()
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
        let served = self.served(app);
        let Some((place, allowed)) = self.place(head.path, served) else {
            return refuse(body, 404, code::INVALID_REQUEST, "There is nothing here");
        };
        match (place, head.method, Version::of(head, served)) {
            (Place::Old, "GET", _) => self.old_get(app, head, principal, random, body),
            (Place::OldPost, "POST", _) => self.old_post(app, head, content, principal, body),
            (Place::Endpoint, "POST", version) => {
                self.post(app, head, content, principal, (version, served), random, body)
            }
            (Place::Endpoint, "GET" | "DELETE", _) if !served.has_era(Era::Legacy) => not_allowed(body, allowed),
            (Place::Endpoint, "GET" | "DELETE", Version::Unsupported(_) | Version::Bad(_)) => {
                refuse(body, 400, code::INVALID_REQUEST, NO_VERSION)
            }
            (Place::Endpoint, "GET" | "DELETE", Version::Modern) => not_allowed(body, "POST"),
            (Place::Endpoint, "GET", _) => self.get(app, head, principal, random, body),
            (Place::Endpoint, "DELETE", _) => self.delete(app, head, principal, body),
            _ => not_allowed(body, allowed),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what a POST has")]
    fn post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        (version, served): (Version<'_>, Revisions),
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
        let by_itself = served.has_era(Era::Modern) && request.envelope().meta.is_modern();
        let modern = version == Version::Modern || by_itself || !served.has_era(Era::Legacy);
        if read.is_err() {
            return match version {
                Version::None | Version::Legacy if !modern => self.legacy_batch(app, head, content, principal, body),
                _ => self.unreadable(content, body),
            };
        }
        let mut buffer: VersionBuffer = [0; 66];
        if let Err(failure) = check_version(version, served, head, &request, &mut buffer) {
            return refuse_request(body, 400, id_of(request.envelope()), &failure);
        }
        if !is_acceptable(request.envelope()) {
            return refuse(body, 400, code::INVALID_REQUEST, "Invalid request: neither a notification nor a response");
        }
        if modern {
            self.modern_post(app, head, &mut request, principal, body)
        } else {
            self.legacy_post(app, head, &mut request, principal, random, body)
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

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Streamable HTTP, and the stream of 2024-11-05.
    Endpoint,
    /// The stream of 2024-11-05.
    Old,
    /// Where clients of 2024-11-05 post.
    OldPost,
}

/// The id of a request, or of what would be one.
fn id_of<'e>(envelope: &Envelope<'e>) -> Option<Raw<'e>> {
    match envelope.shape() {
        Shape::Request { id, .. } => Some(id),
        Shape::Invalid { id } => id,
        _ => None,
    }
}

/// Whether a notification or a response can be taken: nothing answers it but the status (Streamable HTTP, Sending
/// Messages). A request, or what would be one, is answered by the engine.
fn is_acceptable(envelope: &Envelope<'_>) -> bool {
    let is_object = |value: Raw<'_>| value.kind() == JsonKind::Object;
    let is_sound = envelope.jsonrpc && !envelope.duplicate;
    match envelope.shape() {
        Shape::Notification { .. } => is_sound && envelope.params.is_none_or(is_object),
        Shape::Response { id } => match (envelope.result, envelope.error) {
            (Some(result), None) => is_sound && id.is_some() && is_object(result),
            // An error may concern a message whose id could not be read.
            (None, Some(error)) => is_sound && is_object(error),
            _ => false,
        },
        _ => true,
    }
}

/// Whether a text can stand as a list of header names in a header.
fn is_header_list(names: &str) -> bool {
    names.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte))
}
