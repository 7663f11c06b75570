//! The head of a request: parsed once, kept as places in the received bytes.

use super::limits::ConnectionLimits;
use super::scan::{above, below, equal, find, high};
use super::status::Status;
use crate::endpoint::{Accept, Field as EndpointField, Fields, RequestHead};
use crate::names::{Known, same_name};
use crate::token::is_token;

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
    known: &'r KnownFields,
}

/// A place in the bytes of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// The number of headers, and the places of those that the protocol reads, found while the head is parsed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownFields {
    /// One more than the number of the first line of each, by [`Known`]; 0 for a header that is missing.
    lines: [u8; Known::READ],
    pub(crate) count: u8,
    /// Those with several lines that differ: a bit for each.
    differing: u16,
    /// A value of the head has a byte that is not ASCII.
    foreign: bool,
}

impl KnownFields {
    /// Notes the last one of `fields`, whose name is `known`.
    fn note(&mut self, bytes: &[u8], known: Known, fields: &[Field]) {
        let (Some(line), [.., last]) = (self.lines.get_mut(known as usize), fields) else { return };
        let Some(first) = usize::from(*line).checked_sub(1) else {
            *line = fields.len() as u8;
            return;
        };
        if fields.get(first).map(|first| first.value.of(bytes)) != Some(last.value.of(bytes)) {
            self.differing |= 1 << known as usize;
        }
    }

    const fn differs(&self, known: Known) -> bool {
        self.differing & 1 << known as usize != 0
    }
}

impl Span {
    /// Returns the bytes at the place in `whole`.
    fn of(self, whole: &[u8]) -> &[u8] {
        let from = whole.get(usize::from(self.at)..).unwrap_or(&[]);
        from.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl<'r> HttpHead<'r> {
    pub(crate) const fn new(bytes: &'r [u8], line: Line, fields: &'r [Field], known: &'r KnownFields) -> Self {
        HttpHead { bytes, line, fields, known }
    }

    /// Returns the method. Methods are case-sensitive.
    #[must_use]
    pub fn method(&self) -> &'r str {
        match self.bytes_at(self.line.method) {
            b"POST" => "POST",
            b"GET" => "GET",
            _ => self.text(self.line.method),
        }
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
        span.of(self.bytes)
    }

    /// Returns the head for the endpoint, without a second walk through the headers.
    pub(crate) fn request_head<'s>(&'s self) -> RequestHead<'s> {
        let mut accept = Accept::default();
        if self.known.differs(Known::Accept) {
            self.get_all("accept").for_each(|value| accept.take(value));
        } else if let Some(value) = self.value(Known::Accept) {
            accept.take(value);
        }
        let fields = Fields {
            host: match self.line.authority {
                Some(authority) => EndpointField::new(Some(self.bytes_at(authority)), false, true),
                None => self.known_field(Known::Host),
            },
            authority: EndpointField::default(),
            origin: self.known_field(Known::Origin),
            site: self.known_field(Known::Site),
            content_type: self.known_field(Known::ContentType),
            accept,
            session: self.known_field(Known::Session),
            version: self.known_field(Known::Version),
            method: self.known_field(Known::Method),
            name: self.known_field(Known::Name),
            last_event_id: self.known_field(Known::LastEventId),
        };
        RequestHead::with_fields(self.method(), self.path(), self.query(), self, fields)
    }

    /// Returns the value of the first line of a header that the endpoint reads.
    #[inline]
    fn value(&self, name: Known) -> Option<&'r [u8]> {
        let line = self.known.lines.get(name as usize)?;
        let field = self.fields.get(usize::from(*line).checked_sub(1)?)?;
        Some(self.bytes_at(field.value))
    }

    #[inline]
    fn known_field(&self, name: Known) -> EndpointField<'r> {
        EndpointField::new(self.value(name), self.known.differs(name), !self.known.foreign)
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
    pub(crate) known: KnownFields,
    /// Length of the request line in bytes, with its CR LF.
    pub(crate) line_len: usize,
    /// Length of the head in bytes.
    pub(crate) len: usize,
    pub(crate) asked: Asked,
}

/// Parses the head at the start of `bytes` in one pass and fills `fields`, or returns the status of the refusal: 400 too
/// if the head is not whole. Each line must end with CR LF. Empty lines before the head are skipped.
pub(crate) fn parse(bytes: &[u8], limits: &ConnectionLimits, fields: &mut [Field]) -> Result<Parsed, Status> {
    let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
    let mut rest = bytes;
    while let [b'\r', b'\n', behind @ ..] = rest {
        rest = behind;
    }
    let before = rest.len();
    let line = parse_line(bytes, &mut rest)?;
    let line_len = before - rest.len();
    let (mut facts, mut known, mut count) = (Facts::default(), KnownFields::default(), 0);
    let rest = loop {
        if let [b'\r', b'\n', body @ ..] = rest {
            break body;
        }
        let (name, value) = parse_field(&mut rest, &mut known.foreign).ok_or(Status::BAD_REQUEST)?;
        let field = Field { name: span(bytes, name), value: span(bytes, value) };
        *fields.get_mut(count).filter(|_| count < MOST).ok_or(Status::HEADER_TOO_LARGE)? = field;
        count += 1;
        match Known::of(name) {
            Some(name) => {
                known.note(bytes, name, fields.get(..count).unwrap_or(&[]));
                facts.note(name, value);
            }
            None if !name.is_empty() && name.iter().all(|byte| is_token(*byte)) => {}
            None => return Err(Status::BAD_REQUEST),
        }
    };
    let asked = facts.settle(line.method.of(bytes) == b"HEAD", line.version, limits)?;
    let line = line.split_target(bytes)?;
    known.count = count as u8;
    Ok(Parsed { line, known, line_len, len: bytes.len() - rest.len(), asked })
}

/// The most headers of a head: their numbers have 8 bits.
const MOST: usize = 254;
/// Places in a head have 16 bits.
pub(crate) const LONGEST: usize = 0xffff;

/// Returns the place of `part` in `whole`, which is at most [`LONGEST`] bytes long.
fn span(whole: &[u8], part: &[u8]) -> Span {
    let at = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    Span { at: at as u16, len: part.len() as u16 }
}

/// Takes the request line from the start of `rest`, with the whole target as its path.
fn parse_line(bytes: &[u8], rest: &mut &[u8]) -> Result<Line, Status> {
    let method = take_part(rest).filter(|method| method.iter().all(|byte| is_token(*byte)));
    let (Some(method), Some(target)) = (method, take_part(rest)) else { return Err(Status::BAD_REQUEST) };
    let version = match rest.split_first_chunk() {
        Some((b"HTTP/1.1\r\n", behind)) => (HttpVersion::Http11, behind),
        Some((b"HTTP/1.0\r\n", behind)) => (HttpVersion::Http10, behind),
        _ => return Err(bad_version(bytes)),
    };
    *rest = version.1;
    let (method, path) = (span(bytes, method), span(bytes, target));
    Ok(Line { method, path, query: None, authority: None, version: version.0 })
}

/// Takes a part of the request line, and the space after it.
fn take_part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = find(rest, |word| below(word, b'!') | equal(word, 0x7f))?;
    let (part, behind) = rest.split_at_checked(end).filter(|(part, _)| !part.is_empty())?;
    *rest = behind.strip_prefix(b" ")?;
    Some(part)
}

/// Takes a header line from the start of `rest`. Returns name and value, or `None` if it is wrong or not whole. The name
/// has no control characters, spaces and colons; whether its bytes are those of a token is not checked. `foreign` is set
/// if the value may have bytes that are not ASCII.
#[inline]
fn parse_field<'b>(rest: &mut &'b [u8], foreign: &mut bool) -> Option<(&'b [u8], &'b [u8])> {
    let colon = find(rest, |word| equal(word, b':') | below(word, b'!'))?;
    let (name, behind) = rest.split_at_checked(colon)?;
    let mut value = behind.strip_prefix(b":")?;
    value = value.strip_prefix(b" ").unwrap_or(value);
    while let [b' ' | b'\t', behind @ ..] = value {
        value = behind;
    }
    let (mut end, mut is_plain) = find_control(value)?;
    while value.get(end) == Some(&b'\t') {
        let (more, is_more_plain) = find_control(value.get(end + 1..)?)?;
        (end, is_plain) = (end + 1 + more, is_plain && is_more_plain);
    }
    let (value, behind) = value.split_at_checked(end)?;
    *rest = behind.strip_prefix(b"\r\n")?;
    if !is_plain {
        *foreign = true;
        if value.contains(&0x7f) {
            return None;
        }
    }
    Some((name, trim_end(value)))
}

/// Returns the place of the first control character, and `true` if no byte before it is 127 or more; `false` may be
/// wrong.
// In a function of its own, the loop has its constants in registers.
#[inline(never)]
fn find_control(value: &[u8]) -> Option<(usize, bool)> {
    let mut seen = 0;
    let end = find(value, |word| {
        seen |= above(word);
        below(word, b' ')
    })?;
    Some((end, high(seen) == 0))
}

/// Returns a value without the spaces and tabs at its end.
fn trim_end(mut value: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\t'] = value {
        value = before;
    }
    value
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
    /// The status for the first header that cannot be accepted.
    refusal: Option<Status>,
    hosts: usize,
    length: Option<u64>,
    lengths: usize,
    chunked: usize,
    close: bool,
    keep_alive: bool,
    expects: bool,
}

impl Facts {
    fn note(&mut self, name: Known, value: &[u8]) {
        let accepted = match name {
            Known::Host => {
                self.hosts += 1;
                if is_host(value) { Ok(()) } else { Err(Status::BAD_REQUEST) }
            }
            Known::Expect => {
                self.expects = value.eq_ignore_ascii_case(b"100-continue");
                if self.expects { Ok(()) } else { Err(Status::EXPECTATION_FAILED) }
            }
            Known::Connection => {
                for option in list(value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
                Ok(())
            }
            Known::ContentLength => {
                self.lengths += 1;
                self.length = number(value);
                self.length.map(|_| ()).ok_or(Status::BAD_REQUEST)
            }
            Known::TransferEncoding => self.note_codings(value),
            _ => Ok(()),
        };
        self.refusal = self.refusal.or(accepted.err());
    }

    fn note_codings(&mut self, value: &[u8]) -> Result<(), Status> {
        for coding in list(value) {
            if !coding.eq_ignore_ascii_case(b"chunked") {
                return Err(Status::NOT_IMPLEMENTED);
            }
            self.chunked += 1;
        }
        if self.chunked == 0 { Err(Status::BAD_REQUEST) } else { Ok(()) }
    }

    fn settle(self, head: bool, version: HttpVersion, limits: &ConnectionLimits) -> Result<Asked, Status> {
        if let Some(status) = self.refusal {
            return Err(status);
        }
        let http10 = version == HttpVersion::Http10;
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
    // A bit for each byte that a host may have.
    const HOST: u128 = {
        let (mut bits, mut byte) = (0, 0u8);
        while byte < 128 {
            let is_mark = matches!(byte, b'!' | b'$'..=b'.' | b':' | b';' | b'=' | b'[' | b']' | b'_' | b'~');
            bits |= ((byte.is_ascii_alphanumeric() || is_mark) as u128) << byte;
            byte += 1;
        }
        bits
    };
    value.iter().all(|byte| byte.is_ascii() && HOST >> byte & 1 == 1)
}

impl Line {
    /// Divides the target, which is the path of a line that was just parsed.
    fn split_target(self, bytes: &[u8]) -> Result<Self, Status> {
        let target = self.path.of(bytes);
        // Clients send no fragment, and escape characters that are not ASCII.
        if target.iter().any(|byte| !byte.is_ascii() || *byte == b'#') {
            return Err(Status::BAD_REQUEST);
        }
        if target == b"*" && self.method.of(bytes) == b"OPTIONS" {
            return Ok(self);
        }
        let between = |at: usize, end: usize| Span { at: at as u16, len: (end - at) as u16 };
        let start = usize::from(self.path.at);
        let (mut path, end) = (start, start + target.len());
        let mut authority = None;
        if !target.starts_with(b"/") {
            let host = start + scheme(target).ok_or(Status::BAD_REQUEST)?;
            let rest = bytes.get(host..end).unwrap_or(&[]);
            path = host + rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
            let place = between(host, path);
            if place.len == 0 || !is_host(place.of(bytes)) {
                return Err(Status::BAD_REQUEST);
            }
            authority = Some(place);
        }
        let rest = bytes.get(path..end).unwrap_or(&[]);
        let mark = rest.iter().position(|byte| *byte == b'?').map(|at| path + at);
        let query = mark.map(|mark| between(mark + 1, end));
        Ok(Line { path: between(path, mark.unwrap_or(end)), query, authority, ..self })
    }
}

/// Returns the length of the scheme of an absolute target, with the slashes after it.
fn scheme(target: &[u8]) -> Option<usize> {
    let schemes: [&[u8]; 2] = [b"http://", b"https://"];
    let is = |scheme: &&&[u8]| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    schemes.iter().find(is).map(|scheme| scheme.len())
}
