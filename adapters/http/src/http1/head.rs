//! The head of a request: parsed once, kept as places in the received bytes.

use core::mem::MaybeUninit;

use super::limits::ConnectionLimits;
use super::status::Status;
use crate::param_headers::same_name;

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "HTTP/1 has two")]
pub enum HttpVersion {
    /// HTTP/1.0: no chunks, and one request per connection unless the client asks for more.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// The head of a request. It borrows the received bytes.
///
/// Names of headers are compared without regard to case. Values have no white space around them. See
/// [`Connection`](super::Connection) for an example.
#[derive(Clone, Copy, Debug)]
pub struct HttpHead<'r> {
    bytes: &'r [u8],
    line: Line,
    fields: &'r [Field],
}

/// A place in the bytes of a head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    at: u16,
    len: u16,
}

/// A header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field {
    name: Span,
    value: Span,
}

/// The request line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    method: Span,
    path: Span,
    query: Option<Span>,
    /// The authority of an absolute target, which replaces the `Host` header.
    authority: Option<Span>,
    version: HttpVersion,
}

impl Line {
    pub(crate) const NONE: Line = Line {
        method: Span { at: 0, len: 0 },
        path: Span { at: 0, len: 0 },
        query: None,
        authority: None,
        version: HttpVersion::Http11,
    };
}

impl<'r> HttpHead<'r> {
    pub(crate) const fn new(bytes: &'r [u8], line: Line, fields: &'r [Field]) -> Self {
        HttpHead { bytes, line, fields }
    }

    /// Returns the method. Methods are case-sensitive.
    #[must_use]
    pub fn method(&self) -> &'r str {
        self.text(self.line.method)
    }

    /// Returns the path as it was sent, without the query, and without the scheme and host of a request through a
    /// proxy. It begins with `/`, except for `OPTIONS *`.
    #[must_use]
    pub fn path(&self) -> &'r str {
        match self.text(self.line.path) {
            "" => "/",
            path => path,
        }
    }

    /// Returns the part of the target after the first `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'r str> {
        self.line.query.map(|query| self.text(query))
    }

    /// Returns the path with its query.
    #[must_use]
    pub fn target(&self) -> &'r str {
        match self.line.query {
            // Both are in the request line, with a question mark between them.
            Some(query) if self.line.path.len > 0 => self.text(Span {
                at: self.line.path.at,
                len: query.at.saturating_add(query.len).saturating_sub(self.line.path.at),
            }),
            _ => self.path(),
        }
    }

    /// Returns the HTTP version.
    #[must_use]
    pub const fn version(&self) -> HttpVersion {
        self.line.version
    }

    /// Returns the host, with its port if there is one: that of an absolute target, else the `Host` header. Under
    /// HTTP/1.1 there is always one; it may be empty.
    #[must_use]
    pub fn host(&self) -> Option<&'r str> {
        match self.line.authority {
            Some(authority) => Some(self.text(authority)),
            None => self.text_of("host"),
        }
    }

    /// Returns the value of the first header with that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'r [u8]> {
        self.get_all(name).next()
    }

    /// Returns the value of the first header with that name, or `None` if it is not UTF-8.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&'r str> {
        core::str::from_utf8(self.get(name)?).ok()
    }

    /// Returns the values of all headers with that name, in order.
    pub fn get_all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'r [u8]> + use<'r, 'n> {
        let head = *self;
        head.fields.iter().filter(move |field| head.is(field, name)).map(move |field| head.bytes_at(field.value))
    }

    /// Returns all headers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'r str, &'r [u8])> + use<'r> {
        let head = *self;
        head.fields.iter().map(move |field| (head.text(field.name), head.bytes_at(field.value)))
    }

    fn is(&self, field: &Field, name: &str) -> bool {
        usize::from(field.name.len) == name.len() && same_name(self.bytes_at(field.name), name.as_bytes())
    }

    fn bytes_at(&self, span: Span) -> &'r [u8] {
        let from = self.bytes.get(usize::from(span.at)..).unwrap_or(&[]);
        from.get(..usize::from(span.len)).unwrap_or(&[])
    }

    fn text(&self, span: Span) -> &'r str {
        core::str::from_utf8(self.bytes_at(span)).unwrap_or("")
    }
}

/// The endpoint's view. `host` is the host of [`HttpHead::host`].
impl crate::endpoint::RequestHeaders for HttpHead<'_> {
    fn all<'s>(&'s self, tell: &mut dyn FnMut(&'s [u8], &'s [u8])) {
        let authority = self.line.authority.map(|authority| self.bytes_at(authority));
        if let Some(authority) = authority {
            tell(b"host", authority);
        }
        for field in self.fields {
            let name = self.bytes_at(field.name);
            if authority.is_none() || !same_name(name, b"host") {
                tell(name, self.bytes_at(field.value));
            }
        }
    }
}

/// The facts of a head about the bytes after it and about its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// A HEAD request: its answer has no body.
    pub(crate) head: bool,
    pub(crate) http10: bool,
    /// No further request follows on the connection.
    pub(crate) close: bool,
    /// The client waits for 100 (Continue) before it sends the body.
    pub(crate) expects: bool,
    pub(crate) body: Framing,
}

impl Asked {
    /// For a request that was not understood: no further request follows.
    pub(crate) const LAST: Asked =
        Asked { head: false, http10: false, close: true, expects: false, body: Framing::Length(0) };
}

/// The length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// A head that was parsed.
pub(crate) struct Parsed {
    pub(crate) line: Line,
    /// Number of headers.
    pub(crate) count: usize,
    /// Length of the head in bytes.
    pub(crate) len: usize,
    pub(crate) asked: Asked,
}

/// Returns `true` if a head, parsed without a search for its lines, has at most `line` and `most` bytes and CR LF
/// after each line.
pub(crate) fn is_strict(bytes: &[u8], parsed: &Parsed, fields: &[Field], line: usize, most: usize) -> bool {
    let ends = |at: usize| at.checked_sub(2).and_then(|end| bytes.get(end..at)) == Some(b"\r\n");
    let fields = fields.get(..parsed.count).unwrap_or(&[]);
    let first = fields.first().map_or(parsed.len.saturating_sub(2), |field| usize::from(field.name.at));
    parsed.line.method.at == 0
        && parsed.len <= most
        && first <= line + 1
        && fields.iter().all(|field| ends(usize::from(field.name.at)))
        && ends(parsed.len)
        && ends(parsed.len.saturating_sub(2))
}

/// Parses the head at the start of `bytes` and fills `fields`, or returns the status of the refusal.
pub(crate) fn parse<const H: usize>(
    bytes: &[u8],
    limits: &ConnectionLimits,
    fields: &mut [Field; H],
) -> Result<Parsed, Status> {
    let mut places = [const { MaybeUninit::uninit() }; H];
    let mut request = httparse::Request::new(&mut []);
    let len = match request.parse_with_uninit_headers(bytes, &mut places) {
        Ok(httparse::Status::Complete(len)) => len,
        Err(httparse::Error::TooManyHeaders) => return Err(Status::HEADER_TOO_LARGE),
        Err(httparse::Error::Version) => return Err(bad_version(bytes)),
        _ => return Err(Status::BAD_REQUEST),
    };
    let span = |part: &[u8]| span(bytes, part).ok_or(Status::HEADER_TOO_LARGE);
    let http10 = request.version == Some(0);
    let mut facts = Facts::default();
    for (place, header) in fields.iter_mut().zip(request.headers.iter()) {
        *place = Field { name: span(header.name.as_bytes())?, value: span(header.value)? };
        facts.note(header)?;
    }
    let method = request.method.ok_or(Status::BAD_REQUEST)?;
    let target = Target::parse(method, request.path.ok_or(Status::BAD_REQUEST)?)?;
    let line = Line {
        method: span(method.as_bytes())?,
        path: span(target.path.as_bytes())?,
        query: target.query.map(|query| span(query.as_bytes())).transpose()?,
        authority: target.authority.map(|authority| span(authority.as_bytes())).transpose()?,
        version: if http10 { HttpVersion::Http10 } else { HttpVersion::Http11 },
    };
    let asked = facts.settle(method == "HEAD", http10, limits)?;
    Ok(Parsed { line, count: request.headers.len(), len, asked })
}

/// Returns the place of `part` in `whole`, by its address.
fn span(whole: &[u8], part: &[u8]) -> Option<Span> {
    let at = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    Some(Span { at: u16::try_from(at).ok()?, len: u16::try_from(part.len()).ok()? })
}

/// Returns the status for a request line without a version that is served.
fn bad_version(bytes: &[u8]) -> Status {
    let line = bytes.split(|&byte| byte == b'\n').find(|line| line.len() > 1).unwrap_or(&[]);
    let mut parts = line.split(|&byte| byte == b' ');
    match (parts.nth(2).unwrap_or(&[]), parts.next()) {
        ([b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b'\r'], None)
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Status::VERSION_NOT_SUPPORTED
        }
        _ => Status::BAD_REQUEST,
    }
}

/// Facts about connection and body, collected over all headers.
#[derive(Default)]
struct Facts {
    hosts: usize,
    length: Option<u64>,
    lengths: usize,
    chunked: usize,
    close: bool,
    keep_alive: bool,
    expects: bool,
}

impl Facts {
    fn note(&mut self, header: &httparse::Header<'_>) -> Result<(), Status> {
        // Few headers have a name of these lengths.
        let name = header.name.as_bytes();
        match name.len() {
            4 if same_name(name, b"host") => {
                self.hosts += 1;
                if !is_host(header.value) {
                    return Err(Status::BAD_REQUEST);
                }
            }
            6 if same_name(name, b"expect") => {
                self.expects = header.value.eq_ignore_ascii_case(b"100-continue");
                if !self.expects {
                    return Err(Status::EXPECTATION_FAILED);
                }
            }
            10 if same_name(name, b"connection") => {
                for option in list(header.value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if same_name(name, b"content-length") => {
                self.lengths += 1;
                self.length = Some(number(header.value).ok_or(Status::BAD_REQUEST)?);
            }
            17 if same_name(name, b"transfer-encoding") => {
                for coding in list(header.value) {
                    if !coding.eq_ignore_ascii_case(b"chunked") {
                        return Err(Status::NOT_IMPLEMENTED);
                    }
                    self.chunked += 1;
                }
                if self.chunked == 0 {
                    return Err(Status::BAD_REQUEST);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn settle(self, head: bool, http10: bool, limits: &ConnectionLimits) -> Result<Asked, Status> {
        let hosts = if http10 { self.hosts < 2 } else { self.hosts == 1 };
        // Two lengths, two codings, or both: a proxy may have read the other one (request smuggling).
        if !hosts || self.lengths + self.chunked > 1 || (http10 && self.chunked > 0) {
            return Err(Status::BAD_REQUEST);
        }
        let body = match self.length {
            None if self.chunked > 0 => Framing::Chunked,
            None => Framing::Length(0),
            Some(length) => match usize::try_from(length) {
                Ok(length) if length <= limits.body => Framing::Length(length),
                _ => return Err(Status::CONTENT_TOO_LARGE),
            },
        };
        Ok(Asked {
            head,
            http10,
            close: self.close || (http10 && !self.keep_alive),
            expects: self.expects && !http10 && body != Framing::Length(0),
            body,
        })
    }
}

/// Returns the elements of a comma-separated list, without empty ones.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// Parses digits. A number that is too large becomes the largest one.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        Some(number.saturating_mul(10).saturating_add(u64::from(digit)))
    })
}

/// Returns `true` if it can be a host with a port.
fn is_host(value: &[u8]) -> bool {
    let is_host = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'!' | b'$'..=b'.' | b':' | b';' | b'=' | b'[' | b']' | b'_' | b'~')
    };
    value.iter().all(is_host)
}

/// A request target.
struct Target<'t> {
    path: &'t str,
    query: Option<&'t str>,
    authority: Option<&'t str>,
}

impl<'t> Target<'t> {
    fn parse(method: &str, target: &'t str) -> Result<Self, Status> {
        // Clients send no fragment, and escape characters that are not ASCII.
        if target.bytes().any(|byte| !byte.is_ascii() || byte == b'#') {
            return Err(Status::BAD_REQUEST);
        }
        if target == "*" && method == "OPTIONS" {
            return Ok(Target { path: target, query: None, authority: None });
        }
        let (authority, rest) = if target.starts_with('/') {
            (None, target)
        } else {
            let rest = strip_scheme(target).ok_or(Status::BAD_REQUEST)?;
            let (authority, rest) =
                rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len())).unwrap_or((rest, ""));
            if authority.is_empty() || !is_host(authority.as_bytes()) {
                return Err(Status::BAD_REQUEST);
            }
            (Some(authority), rest)
        };
        let mark = rest.bytes().position(|byte| byte == b'?').unwrap_or(rest.len());
        let (path, query) = rest.split_at_checked(mark).unwrap_or((rest, ""));
        let query = query.strip_prefix('?');
        Ok(Target { path, query, authority })
    }
}

fn strip_scheme(target: &str) -> Option<&str> {
    ["http://", "https://"].iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}
