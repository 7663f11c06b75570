//! Requests: checks the head, reads the body, and calls the handler of the revision.

use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::protocol::Method;
use mcp_sansio::revision::{Era, Revisions};
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{IncomingRequest, Millis, Peer};
use mcp_sansio::sink::{Mark, Out};

use super::config::same_path;
use super::exchange::Message;
use super::head::{ALLOWED_HEADERS, EndpointResponse, Grant, RequestHead, ResponseBody, unsupported};
use super::header_check::{NO_VERSION, Version, check_version};
use super::metadata::{is_metadata, serve_metadata};
use super::refusal::{going_away, id_of, no_json, not_allowed, refuse, refuse_request};
use super::stream::Asker;
use super::{Access, App, Endpoint, Turn};
use crate::names::Known;

impl Endpoint<'_> {
    /// Checks the head of a request before its body is read: `Host`, `Origin`, `Sec-Fetch-Site`, path, method,
    /// and [`App::authorize`]. Add the result to the [`RequestHead`] with [`RequestHead::admitted`] before you call
    /// [`request`](Endpoint::request), which checks a head without it itself.
    ///
    /// Returns `None` if the application does not know yet (`Access::Later`): keep the request, and call again when it may know
    /// more. [`request`](Endpoint::request) without a grant answers 503 then.
    ///
    /// # Errors
    /// The response, if the head alone decides it: a refusal, a CORS preflight, or the metadata of the resource.
    /// A JSON body is written to `body`, which must be empty. Do not read the request's body then.
    #[allow(clippy::result_large_err, reason = "there is no allocator for a box, and it is handed on at once")]
    pub fn admit<'r, 'a: 'r, S>(
        &self,
        app: &App<'a, S>,
        head: &RequestHead<'r>,
        body: &mut dyn Out,
    ) -> Result<Option<Grant>, EndpointResponse<'r>> {
        match self.judge(app, head, body) {
            Ok((grant, _)) => Ok(Some(grant)),
            Err(response) if response.undecided => {
                body.roll_back(Mark::new(0));
                Ok(None)
            }
            Err(mut response) => {
                self.add_origin(&mut response, head);
                Err(response)
            }
        }
    }

    /// Handles one HTTP request. Writes a JSON body to `body`, which must be empty; event streams are
    /// [pulled](Endpoint::pull). `random` fills its argument with secure random bytes.
    pub fn request<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &RequestHead<'r>,
        content: &[u8],
        now: Millis,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> EndpointResponse<'r> {
        self.tick(now);
        let judged;
        let (grant, place) = match head.grant {
            Some(grant) => (grant, self.place(head.path, self.served(app))),
            None => match self.judge(app, head, body) {
                Ok((grant, place)) => {
                    judged = grant;
                    (&judged, Some(place))
                }
                Err(mut response) => {
                    self.add_origin(&mut response, head);
                    return response;
                }
            },
        };
        if let Err(mut response) = grant.permit(app, head, content, body) {
            self.add_origin(&mut response, head);
            return response;
        }
        let principal = grant.principal.name();
        if principal.is_some() {
            self.requests.make_key(random);
        }
        self.requests.server.caller_scopes = grant.parts.scopes();
        let mut response = self.route(&mut Turn { app, head, content, principal, random, body }, place);
        grant.add_headers(&mut response);
        self.publish_of_handlers();
        self.add_origin(&mut response, head);
        response
    }

    /// Adds the origin that may read a response (CORS).
    fn add_origin<'r>(&self, response: &mut EndpointResponse<'r>, head: &RequestHead<'r>) {
        if self.config.cors {
            response.origin = head.text("origin").filter(|origin| self.config.allows_origin(origin.as_bytes()));
        }
    }

    /// Returns the response that the head alone decides, or the principal, and the place at its path with the methods of it.
    #[allow(clippy::result_large_err, reason = "as above")]
    fn judge<'r, 'a: 'r, S>(
        &self,
        app: &App<'a, S>,
        head: &RequestHead<'r>,
        body: &mut dyn Out,
    ) -> Result<(Grant, PathMethods), EndpointResponse<'r>> {
        if self.is_foreign(head) {
            return Err(refuse(body, 403, "Host or Origin is not allowed"));
        }
        if head.method == "OPTIONS" && self.config.cors {
            let mut response = EndpointResponse::status(204);
            let asked = head.text("access-control-request-headers").filter(|names| is_header_list(names));
            response.preflight = Some(asked.unwrap_or(ALLOWED_HEADERS));
            return Err(response);
        }
        let path = head.path;
        if let Some(metadata) = self.config.resource_metadata.filter(|_| is_metadata(path, self.config.path)) {
            return Err(serve_metadata(head, metadata, body));
        }
        let Some((place, allowed)) = self.place(path, self.served(app)) else {
            return Err(refuse(body, 404, "There is nothing here"));
        };
        let grant = match (app.authorize)(head) {
            Access::Granted { principal } => {
                Grant::to(principal).map_err(|_| refuse(body, 500, "The principal's name is too long"))?
            }
            Access::Denied { status, challenge } => {
                return Err(EndpointResponse { challenge, ..refuse(body, status, "Not authorized") });
            }
            #[cfg(feature = "resource-server")]
            access => super::authorize::granted(access, body)?,
        };
        // The answer to GET and DELETE also depends on the revision: `route` decides.
        match head.method {
            "POST" if place != EndpointPath::Old => {}
            "GET" | "DELETE" => {}
            _ => return Err(not_allowed(body, allowed)),
        }
        Ok((grant, (place, allowed)))
    }

    /// Returns the served revisions: those of the service, without those with sessions if these are off.
    fn served<S>(&self, app: &App<'_, S>) -> Revisions {
        let served = app.service.about().served();
        if self.config.legacy { served } else { served.of(Era::Modern).fold(Revisions::NONE, Revisions::with) }
    }

    /// Returns the place at a path, with or without a slash at its end, and its methods.
    fn place(&self, path: &str, served: Revisions) -> Option<PathMethods> {
        let config = &self.config;
        match served.has_era(Era::Legacy) {
            has_sessions if same_path(config.path, path) => {
                Some((EndpointPath::Endpoint, if has_sessions { "GET, POST, DELETE" } else { "POST" }))
            }
            true if same_path(config.post_path, path) => Some((EndpointPath::OldPost, "POST")),
            true if same_path(config.old_path, path) => Some((EndpointPath::Old, "GET")),
            _ => None,
        }
    }

    /// Returns `true` if `Host` or `Origin` names a site that is not allowed, or a foreign page sends a request
    /// without `Origin`, for example with `<img>`. `Sec-Fetch-Site` shows that; only browsers send it.
    fn is_foreign(&self, head: &RequestHead<'_>) -> bool {
        let (host, origin) = (head.fields.get(Known::Host), head.fields.get(Known::Origin));
        let mut foreign = host.value.is_some_and(|host| !self.config.allows(host));
        if host.differs {
            let mut check = |name: &[u8], value: &[u8]| {
                foreign |= Known::of(name) == Some(Known::Host) && !self.config.allows(value.trim_ascii());
            };
            head.headers.all(&mut check);
        }
        // A browser sends one line. If there are several, a proxy may check another one.
        foreign |= origin.value.is_some_and(|first| origin.differs || !self.config.allows_origin(first));
        let is_hidden = !origin.is_there() && head.fields.get(Known::Site).value == Some(b"cross-site");
        foreign || is_hidden && !self.config.any_host
    }

    fn route<S>(&mut self, turn: &mut Turn<'_, '_, S>, found: Option<PathMethods>) -> EndpointResponse<'static> {
        let served = self.served(turn.app);
        let Some((place, allowed)) = found else { return turn.refuse(404, "There is nothing here") };
        match (place, turn.head.method, Version::of(turn.head, served)) {
            (EndpointPath::Old, "GET", _) => self.old_get(turn),
            (EndpointPath::OldPost, "POST", _) => self.old_post(turn),
            (EndpointPath::Endpoint, "POST", version) => self.post(turn, version, served),
            (EndpointPath::Endpoint, "GET" | "DELETE", _) if !served.has_era(Era::Legacy) => {
                not_allowed(turn.body, allowed)
            }
            (EndpointPath::Endpoint, "GET" | "DELETE", Version::Unsupported(_) | Version::Bad(_)) => {
                turn.refuse(400, NO_VERSION)
            }
            (EndpointPath::Endpoint, "GET" | "DELETE", Version::Modern) => not_allowed(turn.body, "POST"),
            (EndpointPath::Endpoint, "GET", _) => self.get(turn),
            (EndpointPath::Endpoint, "DELETE", _) => self.delete(turn),
            _ => not_allowed(turn.body, allowed),
        }
    }

    fn post<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        version: Version<'_>,
        served: Revisions,
    ) -> EndpointResponse<'static> {
        if let Some(why) = unsupported(turn.head) {
            return turn.refuse(415, why);
        }
        if !turn.head.fields.accept.json() {
            return turn.refuse(406, "Accept must have application/json and text/event-stream");
        }
        let mut request = IncomingRequest::empty();
        let read = request.read(turn.content);
        let by_itself = served.has_era(Era::Modern) && request.envelope.meta.is_modern();
        let modern = version == Version::Modern || by_itself || !served.has_era(Era::Legacy);
        if self.draining && (read.is_err() || is_request(&request.envelope)) {
            return going_away(read.is_ok().then_some(&request.envelope), turn.body);
        }
        if read.is_err() {
            return match version {
                Version::None | Version::Legacy if !modern => self.legacy_batch(turn),
                _ => unreadable(turn.content, turn.body),
            };
        }
        let shape = request.shape();
        let method = matches!(shape, MessageShape::Request { .. }).then(|| request.method);
        let mut buffer = None;
        if let Err(failure) = check_version(version, served, turn.head, (&request, method), &mut buffer) {
            return refuse_request(turn.body, 400, id_of(&shape), &failure);
        }
        if !is_acceptable(&shape, &request.envelope) {
            return turn.refuse(400, "Invalid request: neither a notification nor a response");
        }
        match (modern, shape) {
            (true, MessageShape::Response { .. }) => turn.refuse(400, "A client sends no responses here"),
            // In this revision a client cancels by closing the connection, so a notification needs no handling.
            (true, MessageShape::Notification { .. }) => EndpointResponse::status(202),
            (true, _) => self.modern_post(turn, &mut request, method),
            (false, _) => self.legacy_post(turn, &mut request, method),
        }
    }

    /// Handles a request of 2026-07-28, of this method, or an invalid message. Each is its own scope.
    fn modern_post<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        request: &mut IncomingRequest<'_>,
        method: Option<Method>,
    ) -> EndpointResponse<'static> {
        let listens = method == Some(Method::Listen);
        if listens && !turn.head.fields.accept.stream() {
            return turn.refuse(406, "A listen is answered with an event stream");
        }
        let scope = self.requests.new_scope();
        let asker = Asker { scope, session: None, resumable: false, primed: false, modern: true, listens };
        let response = self.exchange(turn, asker, &mut Peer::NEW.clone(), Message::Read(request));
        if let (true, ResponseBody::Stream(id), Some(name)) = (listens, &response.content, turn.principal) {
            let owner = self.requests.hash(name);
            if let Some(stream) = self.streams.at_mut(id.slot) {
                stream.owner = Some(owner);
            }
        }
        // All else ends with the response. Only a listen has subscriptions.
        if listens && !matches!(response.content, ResponseBody::Stream(_)) {
            self.requests.server.end_scope(scope);
        }
        response
    }
}

/// Refuses a body that is not JSON, or not an object.
pub(crate) fn unreadable(content: &[u8], body: &mut dyn Out) -> EndpointResponse<'static> {
    match Raw::parse(content) {
        Ok(_) => refuse(body, 400, "Invalid request: not an object"),
        Err(_) => no_json(body),
    }
}

/// A place and its methods.
type PathMethods = (EndpointPath, &'static str);

/// The place at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndpointPath {
    /// Streamable HTTP, and the stream of 2024-11-05.
    Endpoint,
    /// The stream of 2024-11-05.
    Old,
    /// The path to which clients of 2024-11-05 post.
    OldPost,
}

pub(crate) fn is_request(envelope: &Envelope<'_>) -> bool {
    matches!(envelope.shape(), MessageShape::Request { .. })
}

/// Returns `true` if a notification or a response can be accepted: only the status answers it
/// ([sending messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports)).
/// The engine answers all other messages.
pub(crate) fn is_acceptable(shape: &MessageShape<'_>, envelope: &Envelope<'_>) -> bool {
    let is_object = |value: Raw<'_>| value.kind() == JsonKind::Object;
    let is_sound = envelope.jsonrpc && !envelope.duplicate;
    match shape {
        MessageShape::Notification { .. } => is_sound && envelope.params.is_none_or(is_object),
        MessageShape::Response { id } => match (envelope.result, envelope.error) {
            (Some(result), None) => is_sound && id.is_some() && is_object(result),
            // An error may belong to a message whose id could not be read.
            (None, Some(error)) => is_sound && is_object(error),
            _ => false,
        },
        _ => true,
    }
}

/// Returns `true` if a text is a list of header names.
fn is_header_list(names: &str) -> bool {
    names.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte))
}
