//! The head of a request, as far as the protocol looks at it, and the answers that need no body.

use super::session::Principal;
use super::stream::StreamId;

/// The headers of a request, looked up by name in any case.
pub trait Headers {
    /// Tells the values of all headers of that name, in order. Where a header came in several lines, each is a value of
    /// its own: the endpoint refuses requests whose lines differ where there must be one value.
    fn each<'s>(&'s self, name: &str, tell: &mut dyn FnMut(&'s [u8]));

    /// The value of the first header of that name.
    fn get(&self, name: &str) -> Option<&[u8]> {
        let mut first = None;
        self.each(name, &mut |value| first = first.or(Some(value)));
        first
    }
}

/// Name and value pairs, as parsers give them.
impl Headers for &[(&str, &[u8])] {
    fn each<'s>(&'s self, name: &str, tell: &mut dyn FnMut(&'s [u8])) {
        self.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).for_each(|(_, value)| tell(value));
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// Why a header that must have one value has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadField {
    /// Its lines differ: somebody in between may look at another one.
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
pub struct Head<'h> {
    /// The method, like `POST`.
    pub method: &'h str,
    /// The path, without its query.
    pub path: &'h str,
    /// What stands behind the question mark.
    pub query: Option<&'h str>,
    /// The headers.
    pub headers: &'h dyn Headers,
    pub(crate) admission: Option<&'h Admission>,
}

/// What [`Endpoint::admit`](super::Endpoint::admit) gives for a head that may have its body read: who asks.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    pub(crate) principal: Principal,
}

impl<'h> Head<'h> {
    /// A head of its parts.
    pub const fn new(method: &'h str, path: &'h str, query: Option<&'h str>, headers: &'h dyn Headers) -> Self {
        Head { method, path, query, headers, admission: None }
    }

    /// The same head, which [`Endpoint::admit`](super::Endpoint::admit) gave `admission` for:
    /// [`Endpoint::request`](super::Endpoint::request) does not judge it, and does not call
    /// [`App::authorize`](super::App::authorize), a second time.
    #[must_use]
    pub const fn admitted(self, admission: &'h Admission) -> Self {
        Head { admission: Some(admission), ..self }
    }

    /// A member of the query, as it stands.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&'h str> {
        self.query?
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// A header without white space around it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'h [u8]> {
        self.headers.get(name).map(<[u8]>::trim_ascii)
    }

    /// The value of a header that may come once, or in several lines that say the same.
    pub(crate) fn only(&self, name: &str) -> Result<Option<&'h str>, BadField> {
        let (mut found, mut differ) = (None, false);
        self.headers.each(name, &mut |value| {
            let value = value.trim_ascii();
            differ |= *found.get_or_insert(value) != value;
        });
        let is_valid = |value: &&[u8]| value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        match found {
            None => Ok(None),
            Some(_) if differ => Err(BadField::Differing),
            Some(value) => {
                let text = Some(value).filter(is_valid).and_then(|value| core::str::from_utf8(value).ok());
                text.map(Some).ok_or(BadField::Characters)
            }
        }
    }

    /// A header as text without white space around it; `None` if it is not there or not UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'h str> {
        core::str::from_utf8(self.value(name)?).ok()
    }
}

impl core::fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Head").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

/// The id of a session, as it stands in headers: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId(pub(crate) [u8; SessionId::LEN]);

impl SessionId {
    pub(crate) const LEN: usize = 32;

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or("")
    }
}

impl core::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // An id is a key to its session: it does not belong into logs.
        f.write_str("SessionId(..)")
    }
}

/// What a response carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Content {
    /// Nothing.
    None,
    /// JSON: it is in the sink that was given with the request.
    Json,
    /// An event stream: pull it whenever there is room, until its end.
    Stream(StreamId),
}

/// A response: status and headers; the body is where [`Content`] says.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Response<'r> {
    /// The status code.
    pub status: u16,
    /// What it carries.
    pub content: Content,
    /// The session that begins with it.
    pub session: Option<SessionId>,
    /// Methods that are allowed, if the one asked for is not.
    pub allow: Option<&'static str>,
    /// The challenge to a client without authorization.
    pub challenge: Option<&'r str>,
    /// The origin that may read it, if CORS is on.
    pub origin: Option<&'r str>,
    /// It answers a CORS preflight.
    pub preflight: bool,
    /// The headers that the preflight asks for, which are granted.
    pub requested: Option<&'r str>,
}

impl<'r> Response<'r> {
    pub(crate) const fn status(status: u16) -> Self {
        Response {
            status,
            content: Content::None,
            session: None,
            allow: None,
            challenge: None,
            origin: None,
            preflight: false,
            requested: None,
        }
    }

    pub(crate) const fn with(self, content: Content) -> Self {
        Response { content, ..self }
    }

    /// Tells each header but those of framing and connection.
    pub fn headers<'s>(&'s self, tell: &mut dyn FnMut(&'s str, &'s str)) {
        match self.content {
            Content::Json => tell("Content-Type", "application/json"),
            // An event stream has its own, see `STREAM_HEADERS`.
            Content::Stream(_) | Content::None => {}
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
        if self.status == 503 {
            tell("Retry-After", "1");
        }
        if let Some(origin) = self.origin {
            tell("Access-Control-Allow-Origin", origin);
            tell("Vary", "Origin");
            tell("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate");
        }
        if self.preflight {
            tell("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
            tell("Access-Control-Allow-Headers", self.requested.unwrap_or(ALLOWED_HEADERS));
            tell("Access-Control-Max-Age", "86400");
        }
    }
}

/// The headers that every event stream has, beside those of [`Response::headers`].
pub const STREAM_HEADERS: [(&str, &str); 3] =
    [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")];

/// What a preflight that names no headers is told. A list cannot say `Mcp-Param-*`, so those that are asked for are
/// granted as they stand.
const ALLOWED_HEADERS: &str = "Content-Type, Accept, Authorization, Last-Event-ID, MCP-Protocol-Version, \
    Mcp-Session-Id, Mcp-Method, Mcp-Name";
