//! The head of a request as the protocol sees it, and the head of a response.

use super::ids::{Principal, SessionId, StreamId};
use super::media::Accept;
use crate::param_headers::same_name;

/// The headers of a request.
pub trait RequestHeaders {
    /// Gives name and value of each header line to `tell`, in order. If a header has several lines, give each:
    /// the endpoint refuses requests whose lines differ where only one value is allowed.
    fn all<'s>(&'s self, tell: &mut dyn FnMut(&'s [u8], &'s [u8]));

    /// Gives the values of all headers with a name, in any case, to `tell`, in order.
    fn each<'s>(&'s self, name: &str, tell: &mut dyn FnMut(&'s [u8])) {
        self.all(&mut |known, value| {
            if same_name(known, name.as_bytes()) {
                tell(value);
            }
        });
    }

    /// Returns the value of the first header with a name, in any case.
    fn get(&self, name: &str) -> Option<&[u8]> {
        let mut first = None;
        self.each(name, &mut |value| first = first.or(Some(value)));
        first
    }
}

/// Reads pairs of name and value.
impl RequestHeaders for &[(&str, &[u8])] {
    fn all<'s>(&'s self, tell: &mut dyn FnMut(&'s [u8], &'s [u8])) {
        self.iter().for_each(|(name, value)| tell(name.as_bytes(), value));
    }
}

/// A header with one line, or with several equal lines.
#[derive(Clone, Copy, Default)]
pub(crate) struct Field<'h> {
    value: Option<&'h [u8]>,
    differs: bool,
}

impl<'h> Field<'h> {
    fn note(&mut self, value: &'h [u8]) {
        match self.value {
            None => self.value = Some(value),
            Some(first) => self.differs |= first.trim_ascii() != value.trim_ascii(),
        }
    }

    pub(crate) const fn is_there(&self) -> bool {
        self.value.is_some()
    }

    pub(crate) const fn differs(&self) -> bool {
        self.differs
    }

    /// Returns the value of the first line, without white space around it.
    pub(crate) fn first(&self) -> Option<&'h [u8]> {
        self.value.map(<[u8]>::trim_ascii)
    }

    /// Returns the value of all lines. Fails if the lines differ, or have other characters.
    pub(crate) fn only(&self) -> Result<Option<&'h str>, BadField> {
        let Some(value) = self.first() else { return Ok(None) };
        if self.differs {
            return Err(BadField::Differing);
        }
        let is_valid = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        let text = core::str::from_utf8(value).ok().filter(|_| is_valid);
        text.map(Some).ok_or(BadField::Characters)
    }
}

/// The headers that the endpoint uses, found in one walk through the head.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields<'h> {
    pub(crate) host: Field<'h>,
    pub(crate) authority: Field<'h>,
    pub(crate) origin: Field<'h>,
    /// `Sec-Fetch-Site`.
    pub(crate) site: Field<'h>,
    pub(crate) content_type: Field<'h>,
    pub(crate) accept: Accept,
    /// `Mcp-Session-Id`.
    pub(crate) session: Field<'h>,
    /// `MCP-Protocol-Version`.
    pub(crate) version: Field<'h>,
    /// `Mcp-Method`.
    pub(crate) method: Field<'h>,
    /// `Mcp-Name`.
    pub(crate) name: Field<'h>,
    pub(crate) last_event_id: Field<'h>,
}

impl<'h> Fields<'h> {
    fn of(headers: &'h dyn RequestHeaders) -> Self {
        let mut fields = Fields::default();
        headers.all(&mut |name, value| {
            // Few headers have a name of these lengths.
            let (field, known): (_, &[u8]) = match name.len() {
                4 => (&mut fields.host, b"host"),
                6 if same_name(name, b"accept") => return fields.accept.take(value),
                6 => (&mut fields.origin, b"origin"),
                8 => (&mut fields.name, b"mcp-name"),
                10 if name.starts_with(b":") => (&mut fields.authority, b":authority"),
                10 => (&mut fields.method, b"mcp-method"),
                12 => (&mut fields.content_type, b"content-type"),
                13 => (&mut fields.last_event_id, b"last-event-id"),
                14 if name.starts_with(b"M") || name.starts_with(b"m") => (&mut fields.session, b"mcp-session-id"),
                14 => (&mut fields.site, b"sec-fetch-site"),
                20 => (&mut fields.version, b"mcp-protocol-version"),
                _ => return,
            };
            if same_name(name, known) {
                field.note(value);
            }
        });
        fields
    }
}

/// The reason why a header has no single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadField {
    /// Its lines differ: a proxy may use another one.
    Differing,
    /// It has characters other than visible ASCII, space and tab.
    Characters,
}

impl BadField {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            BadField::Differing => "Header mismatch: a header came twice, with different values",
            BadField::Characters => "Header mismatch: a header has characters that are not visible ASCII",
        }
    }
}

/// The head of a request.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RequestHead<'h> {
    /// The method, like `POST`.
    pub method: &'h str,
    /// The path, without the query.
    pub path: &'h str,
    /// The text after the question mark.
    pub query: Option<&'h str>,
    /// The headers.
    pub headers: &'h dyn RequestHeaders,
    pub(crate) fields: Fields<'h>,
    pub(crate) admission: Option<&'h Admission>,
}

/// The permission of [`Endpoint::admit`](super::Endpoint::admit) to read the body of a request. Contains the
/// principal.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    pub(crate) principal: Principal,
    #[cfg(feature = "resource-server")]
    pub(crate) scopes: u64,
    #[cfg(feature = "resource-server")]
    pub(crate) headers: super::ExtraHeaders<{ super::GRANT_HEADERS }>,
}

impl<'h> RequestHead<'h> {
    /// Makes a head from its parts.
    pub fn new(method: &'h str, path: &'h str, query: Option<&'h str>, headers: &'h dyn RequestHeaders) -> Self {
        RequestHead { method, path, query, headers, fields: Fields::of(headers), admission: None }
    }

    /// Adds the admission that [`Endpoint::admit`](super::Endpoint::admit) returned for this head.
    /// [`Endpoint::request`](super::Endpoint::request) then does not check the head or call
    /// [`App::authorize`](super::App::authorize) a second time.
    #[must_use]
    pub const fn admitted(self, admission: &'h Admission) -> Self {
        RequestHead { admission: Some(admission), ..self }
    }

    /// Returns a member of the query, without decoding.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&'h str> {
        self.query?
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// Returns the value of a header, without white space around it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'h [u8]> {
        self.headers.get(name).map(<[u8]>::trim_ascii)
    }

    /// Returns a header with one line, or with several equal lines.
    pub(crate) fn field(&self, name: &str) -> Field<'h> {
        let mut field = Field::default();
        self.headers.each(name, &mut |value| field.note(value));
        field
    }

    /// Returns a header as text without white space around it; `None` if it is missing or not UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'h str> {
        core::str::from_utf8(self.value(name)?).ok()
    }
}

impl core::fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Head").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

/// The body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ResponseBody {
    /// No body.
    None,
    /// JSON, in the sink that was given with the request.
    Json,
    /// An event stream: pull it whenever there is room, until its end.
    Stream(StreamId),
}

/// A response: status and headers. [`ResponseBody`] says where its body is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EndpointResponse<'r> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub content: ResponseBody,
    /// The session that begins with it (`Mcp-Session-Id`).
    pub session: Option<SessionId>,
    /// The allowed methods, for status 405.
    pub allow: Option<&'static str>,
    /// The challenge to a client without authorization (`WWW-Authenticate`).
    pub challenge: Option<&'r str>,
    /// The origin that may read the response, if CORS is on.
    pub origin: Option<&'r str>,
    /// The response answers a CORS preflight.
    pub preflight: bool,
    /// The headers that the preflight asks for; they are allowed.
    pub requested: Option<&'r str>,
    /// The headers that the application adds.
    #[cfg(feature = "resource-server")]
    pub extra: super::ExtraHeaders<{ super::REFUSAL_HEADERS }>,
    /// The application has not decided yet.
    #[cfg(feature = "resource-server")]
    pub(crate) undecided: bool,
}

impl<'r> EndpointResponse<'r> {
    pub(crate) const fn status(status: u16) -> Self {
        EndpointResponse {
            status,
            content: ResponseBody::None,
            session: None,
            allow: None,
            challenge: None,
            origin: None,
            preflight: false,
            requested: None,
            #[cfg(feature = "resource-server")]
            extra: super::ExtraHeaders::EMPTY,
            #[cfg(feature = "resource-server")]
            undecided: false,
        }
    }

    pub(crate) const fn with(self, content: ResponseBody) -> Self {
        EndpointResponse { content, ..self }
    }

    /// Gives each header to `tell`, except those of framing and connection.
    pub fn headers<'s>(&'s self, tell: &mut dyn FnMut(&'s str, &'s str)) {
        match self.content {
            ResponseBody::Json => tell("Content-Type", "application/json"),
            // The caller adds `STREAM_HEADERS` to an event stream.
            ResponseBody::Stream(_) | ResponseBody::None => {}
        }
        if let Some(session) = &self.session {
            tell("Mcp-Session-Id", session.as_str());
        }
        if let Some(allow) = self.allow {
            tell("Allow", allow);
        }
        if let Some(challenge) = self.challenge {
            tell("WWW-Authenticate", challenge);
        }
        #[cfg(feature = "resource-server")]
        self.extra.each(tell);
        if self.status == 503 {
            tell("Retry-After", "1");
        }
        if let Some(origin) = self.origin {
            tell("Access-Control-Allow-Origin", origin);
            tell("Vary", "Origin");
            let exposed = "Mcp-Session-Id, WWW-Authenticate";
            #[cfg(feature = "resource-server")]
            let exposed = if self.extra.is_empty() { exposed } else { "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce" };
            tell("Access-Control-Expose-Headers", exposed);
        }
        if self.preflight {
            tell("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
            tell("Access-Control-Allow-Headers", self.requested.unwrap_or(ALLOWED_HEADERS));
            tell("Access-Control-Max-Age", "86400");
        }
    }
}

/// The headers of each event stream, besides those of [`EndpointResponse::headers`].
pub const STREAM_HEADERS: [(&str, &str); 3] =
    [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")];

/// The headers allowed to a preflight that names none. `Mcp-Param-*` cannot be in such a list, so a preflight
/// gets exactly the headers that it asks for.
const ALLOWED_HEADERS: &str = "Content-Type, Accept, Authorization, Last-Event-ID, MCP-Protocol-Version, \
    Mcp-Session-Id, Mcp-Method, Mcp-Name";
