//! The head of a request as the protocol sees it, and the head of a response.

use mcp_sansio::FullError;

use super::extra_headers::{ExtraHeaders, GrantParts, REFUSAL_HEADERS};
use super::ids::{PRINCIPAL_MAX, Principal, SessionId, StreamId};
use super::media::{Accept, is_json};
use crate::names::{Known, same_name};

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
    /// The value of the first line, without white space around it.
    pub(crate) value: Option<&'h [u8]>,
    pub(crate) differs: bool,
    /// The value is known to have visible ASCII, spaces and tabs only.
    visible: bool,
}

impl<'h> Field<'h> {
    /// Makes a header whose lines were compared already; `value` has no white space around it. `visible` if it is known
    /// to have visible ASCII, spaces and tabs only.
    pub(crate) const fn new(value: Option<&'h [u8]>, differs: bool, visible: bool) -> Self {
        Field { value, differs, visible }
    }

    fn note(&mut self, value: &'h [u8]) {
        let value = value.trim_ascii();
        match self.value {
            None => self.value = Some(value),
            Some(first) => self.differs |= first != value,
        }
    }

    pub(crate) const fn is_there(&self) -> bool {
        self.value.is_some()
    }

    /// Returns the value of all lines, which is ASCII. Fails if the lines differ, or have other characters.
    pub(crate) fn only(&self) -> Result<Option<&'h [u8]>, BadField> {
        let Some(value) = self.value else { return Ok(None) };
        if self.differs {
            return Err(BadField::Differing);
        }
        let is_visible = self.visible || value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        if is_visible { Ok(Some(value)) } else { Err(BadField::Characters) }
    }
}

/// The headers that the endpoint uses, found in one walk through the head.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'h> {
    /// The value of the first line of each, by [`Known`], without white space around it.
    pub(crate) values: [Option<&'h [u8]>; Known::READ],
    /// Those with several lines that differ: a bit for each.
    pub(crate) differing: u16,
    /// All values are known to have visible ASCII, spaces and tabs only.
    pub(crate) visible: bool,
    pub(crate) accept: Accept,
}

impl<'h> Fields<'h> {
    fn of(headers: &'h dyn RequestHeaders) -> Self {
        let mut fields =
            Fields { values: [None; Known::READ], differing: 0, visible: false, accept: Accept::default() };
        headers.all(&mut |name, value| match Known::of(name) {
            Some(Known::Accept) => fields.accept.take(value),
            Some(known) => {
                if let Some(place) = fields.values.get_mut(known as usize) {
                    let mut field = Field::new(*place, false, false);
                    field.note(value);
                    *place = field.value;
                    fields.differing |= u16::from(field.differs) << known as u16;
                }
            }
            None => {}
        });
        fields
    }

    /// Returns one of the headers that the endpoint reads.
    #[inline]
    pub(crate) fn get(&self, known: Known) -> Field<'h> {
        let value = self.values.get(known as usize).copied().flatten();
        Field::new(value, self.differing & 1 << known as u16 != 0, self.visible)
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
    pub(crate) grant: Option<&'h Grant>,
}

/// The permission of a client to use the endpoint: of the application (`Access::GrantedTo`), and with it of
/// [`Endpoint::admit`](super::Endpoint::admit) to read the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Grant {
    pub(crate) principal: Principal,
    pub(crate) parts: GrantParts,
}

impl Grant {
    /// Grants the use to a principal, if it is known: sessions, subscriptions and states belong to it. Give a digest of
    /// longer names.
    ///
    /// # Errors
    /// [`FullError::Never`] if the name has more than [`PRINCIPAL_MAX`] bytes.
    pub fn to(principal: Option<&str>) -> Result<Self, FullError> {
        if principal.is_some_and(|principal| principal.len() > PRINCIPAL_MAX) {
            return Err(FullError::Never);
        }
        Ok(Grant { principal: Principal::new(principal), parts: GrantParts::NONE })
    }
}

impl<'h> RequestHead<'h> {
    /// Makes a head from its parts.
    pub fn new(method: &'h str, path: &'h str, query: Option<&'h str>, headers: &'h dyn RequestHeaders) -> Self {
        RequestHead::with_fields(method, path, query, headers, Fields::of(headers))
    }

    /// Makes a head whose headers were read already.
    pub(crate) const fn with_fields(
        method: &'h str,
        path: &'h str,
        query: Option<&'h str>,
        headers: &'h dyn RequestHeaders,
        fields: Fields<'h>,
    ) -> Self {
        RequestHead { method, path, query, headers, fields, grant: None }
    }

    /// Adds the grant that [`Endpoint::admit`](super::Endpoint::admit) returned for this head.
    /// [`Endpoint::request`](super::Endpoint::request) then does not check the head or call
    /// [`App::authorize`](super::App::authorize) a second time.
    #[must_use]
    pub const fn admitted(self, grant: &'h Grant) -> Self {
        RequestHead { grant: Some(grant), ..self }
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

    /// Returns the number of lines of a header, and the value of the last one: a header that decides something must come once.
    #[must_use]
    pub fn lines(&self, name: &str) -> (usize, &'h [u8]) {
        let mut found = (0_usize, &b""[..]);
        self.headers.each(name, &mut |value| found = (found.0.saturating_add(1), value));
        found
    }

    /// Returns the token of the only `Authorization` header, if its scheme is `Bearer`, in any case
    /// ([RFC 6750](https://www.rfc-editor.org/rfc/rfc6750)). `None` without one, with several, and for other schemes. The
    /// caller compares it with the token it expects in constant time, or checks its signature.
    ///
    /// ```
    /// use mcp_sansio_http::endpoint::RequestHead;
    ///
    /// let headers = &[("Authorization", &b"bearer secret"[..])][..];
    /// assert_eq!(RequestHead::new("POST", "/mcp", None, &headers).bearer(), Some("secret"));
    /// ```
    #[must_use]
    pub fn bearer(&self) -> Option<&'h str> {
        let (1, value) = self.lines("authorization") else { return None };
        let value = core::str::from_utf8(value).ok()?;
        let (scheme, token) = value.trim_ascii().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_ascii())
    }

    /// Returns a header as text without white space around it; `None` if it is missing or not UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'h str> {
        core::str::from_utf8(self.value(name)?).ok()
    }
}

mcp_sansio::debug_fields!(impl for RequestHead<'_> { method, path });

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
#[derive(Clone, Debug)]
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
    /// The headers that are allowed, if the response answers a CORS preflight.
    pub preflight: Option<&'r str>,
    /// The headers that the application adds; none without the feature `resource-server`.
    pub extra: ExtraHeaders<REFUSAL_HEADERS>,
    /// The application has not decided yet.
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
            preflight: None,
            extra: ExtraHeaders::EMPTY,
            undecided: false,
        }
    }

    pub(crate) fn with(self, content: ResponseBody) -> Self {
        EndpointResponse { content, ..self }
    }

    /// Gives each header to `tell`, except those of framing and connection.
    pub fn headers<'s>(&'s self, tell: &mut dyn FnMut(&'s str, &'s str)) {
        match self.content {
            ResponseBody::Json => tell("Content-Type", "application/json"),
            // The caller adds `STREAM_HEADERS` to an event stream.
            ResponseBody::Stream(_) | ResponseBody::None => {}
        }
        self.more_headers(tell);
    }

    /// Returns `true` if there is no header except `Content-Type`.
    pub(crate) fn is_plain(&self) -> bool {
        let mut is_plain = true;
        self.more_headers(&mut |_, _| is_plain = false);
        is_plain
    }

    /// Gives each header except `Content-Type` to `tell`.
    pub(crate) fn more_headers<'s>(&'s self, tell: &mut dyn FnMut(&'s str, &'s str)) {
        if let Some(session) = &self.session {
            tell("Mcp-Session-Id", session.as_str());
        }
        if let Some(allow) = self.allow {
            tell("Allow", allow);
        }
        if let Some(challenge) = self.challenge {
            tell("WWW-Authenticate", challenge);
        }
        self.extra.each(tell);
        match self.status {
            415 => tell("Accept-Encoding", "identity"),
            503 => tell("Retry-After", "1"),
            _ => {}
        }
        if let Some(origin) = self.origin {
            tell("Access-Control-Allow-Origin", origin);
            tell("Vary", "Origin");
            let exposed = "Mcp-Session-Id, WWW-Authenticate";
            let exposed = if self.extra.is_empty() { exposed } else { "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce" };
            tell("Access-Control-Expose-Headers", exposed);
        }
        if let Some(allowed) = self.preflight {
            tell("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
            tell("Access-Control-Allow-Headers", allowed);
            tell("Access-Control-Max-Age", "86400");
        }
    }
}

/// The headers of each event stream, besides those of [`EndpointResponse::headers`].
pub const STREAM_HEADERS: [(&str, &str); 3] =
    [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")];

/// The headers allowed to a preflight that names none. `Mcp-Param-*` cannot be in such a list, so a preflight
/// gets exactly the headers that it asks for.
pub(crate) const ALLOWED_HEADERS: &str = "Content-Type, Accept, Authorization, Last-Event-ID, MCP-Protocol-Version, \
    Mcp-Session-Id, Mcp-Method, Mcp-Name";

/// Returns why the body of a request cannot be read, if its head says so: a media type other than JSON, or a content coding
/// ([RFC 9110, section 15.5.16](https://www.rfc-editor.org/rfc/rfc9110#section-15.5.16)).
pub(crate) fn unsupported(head: &RequestHead<'_>) -> Option<&'static str> {
    let coding = head.fields.get(Known::ContentEncoding);
    if coding.differs || coding.value.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
        return Some("Content-Encoding is not identity");
    }
    let is_json = is_json(head.fields.get(Known::ContentType).value);
    (!is_json).then_some("Content-Type is not application/json")
}
