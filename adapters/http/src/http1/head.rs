//! The head of a request: parsed once, kept as places in the received bytes.

use super::limits::ConnectionLimits;
use super::scan::{equal_or_below, find, outside};
use super::status::Status;
use crate::endpoint::{Accept, Fields, RequestHead, RequestHeaders};
use crate::names::is_token;
use crate::names::{Known, same_name};

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
/// [`RequestHeaders`] gives its headers. Names are compared without regard to case, and values have no white space around them. See
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
    /// Notes the header whose number is `count`, with this name and value.
    fn note(&mut self, bytes: &[u8], known: Known, value: &[u8], fields: &[Field]) {
        let Some(line) = self.lines.get_mut(known as usize) else { return };
        let Some(first) = usize::from(*line).checked_sub(1) else {
            *line = self.count;
            return;
        };
        if fields.get(first).is_none_or(|first| first.value.of(bytes) != value) {
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
        self.get(whole).unwrap_or(&[])
    }

    /// Returns its first place, and the place behind it.
    #[cfg(feature = "alloc")]
    pub(crate) fn range(self) -> (usize, usize) {
        let at = usize::from(self.at);
        (at, at + usize::from(self.len))
    }

    /// Returns the bytes at the place in `whole`, if it has the place.
    fn get(self, whole: &[u8]) -> Option<&[u8]> {
        let at = usize::from(self.at);
        whole.get(at..at + usize::from(self.len))
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
        match self.bytes_at(self.line.path) {
            b"" => "/",
            // The usual one, without a check of its characters: 1 % of a `tools/call`.
            b"/mcp" => "/mcp",
            _ => self.text(self.line.path),
        }
    }

    /// Returns the part of the target after the first `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'r str> {
        self.line.query.map(|query| self.text(query))
    }

    /// Returns the path with its query; without it if the path is empty, as in `http://host?query`.
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
    pub fn host(&self) -> Option<&str> {
        core::str::from_utf8(self.get("host")?).ok()
    }

    fn bytes_at(&self, span: Span) -> &'r [u8] {
        span.of(self.bytes)
    }

    /// Returns the head for an [`Endpoint`](crate::endpoint::Endpoint), without another walk through the headers. It has the values
    /// of headers as text too.
    #[must_use]
    pub fn request_head<'s>(&'s self) -> RequestHead<'s> {
        let (method, path, query) = (self.method(), self.path(), self.query());
        let mut accept = Accept::default();
        if self.known.differs(Known::Accept) {
            self.each("accept", &mut |value| accept.take(value));
        } else if let Some(value) = self.known.lines.get(Known::Accept as usize).and_then(|line| self.value_of(*line)) {
            accept.take(value);
        }
        let mut differing = self.known.differing;
        // After the calls, so that each value has one place only: 1 % of the instructions of a `tools/call`.
        let mut values = self.known.lines.map(|line| self.value_of(line));
        if let (Some(authority), [host, ..]) = (self.line.authority, &mut values) {
            const { assert!(Known::Host as usize == 0) };
            *host = Some(self.bytes_at(authority));
            differing &= !(1 << Known::Host as u16);
        }
        let fields = Fields { values, differing, visible: !self.known.foreign, accept };
        RequestHead::with_fields(method, path, query, self, fields)
    }

    /// Returns the value of a header, whose `line` is one more than its number, or 0.
    #[inline]
    fn value_of(&self, line: u8) -> Option<&'r [u8]> {
        let field = self.fields.get(usize::from(line).checked_sub(1)?)?;
        field.value.get(self.bytes)
    }

    fn text(&self, span: Span) -> &'r str {
        core::str::from_utf8(self.bytes_at(span)).unwrap_or("")
    }
}

/// The header `host` has the host of [`HttpHead::host`].
impl RequestHeaders for HttpHead<'_> {
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
pub(crate) struct HeadFacts {
    /// A HEAD request: its answer has no body.
    pub(crate) head: bool,
    pub(crate) http10: bool,
    /// No further request follows on the connection.
    pub(crate) close: bool,
    /// The client waits for 100 (Continue) before it sends the body.
    pub(crate) expects: bool,
    pub(crate) body: Framing,
}

impl HeadFacts {
    /// For a request that was not understood: no further request follows.
    pub(crate) const LAST: HeadFacts =
        HeadFacts { head: false, http10: false, close: true, expects: false, body: Framing::Length(0) };
}

/// The length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// A head from which the next one may differ in the length of its body alone. Sizes of places in a head have 16 bits.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "for stores that grow"))]
pub(crate) struct Repeatable {
    /// The place of the digits of `Content-Length`.
    pub(crate) digits: Span,
    /// As in [`HeadFacts`].
    pub(crate) head: bool,
    pub(crate) http10: bool,
}

/// A head that was parsed.
pub(crate) struct Parsed {
    pub(crate) line: Line,
    pub(crate) known: KnownFields,
    /// Length of the request line in bytes, with its CR LF.
    pub(crate) line_len: usize,
    /// Length of the head in bytes.
    pub(crate) len: usize,
    pub(crate) facts: HeadFacts,
    pub(crate) repeatable: Option<Repeatable>,
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
    let mut headers = Headers { bytes, fields, known: KnownFields::default(), facts: Facts::default() };
    let rest = loop {
        if let Some((b"\r\n", body)) = rest.split_first_chunk() {
            break body;
        }
        let (name, value) = parse_field(&mut rest, &mut headers.known.foreign).ok_or(Status::BAD_REQUEST)?;
        headers.note(name, value)?;
    };
    let Headers { known, facts, .. } = headers;
    let (digits, expects) = (facts.digits, facts.expects);
    let facts = facts.settle(line.method.of(bytes) == b"HEAD", line.version, limits)?;
    let HeadFacts { head, http10, close, .. } = facts;
    let repeatable = digits.filter(|_| !expects && !close).map(|digits| Repeatable { digits, head, http10 });
    Ok(Parsed { line, known, line_len, len: bytes.len() - rest.len(), facts, repeatable })
}

/// The headers that were read.
struct Headers<'h> {
    bytes: &'h [u8],
    fields: &'h mut [Field],
    known: KnownFields,
    facts: Facts,
}

impl Headers<'_> {
    /// Notes the next header.
    // In a function of its own, so that the loops that search the line have their constants in registers: 6 % of the
    // instructions of a head.
    #[inline(never)]
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Status> {
        let count = usize::from(self.known.count);
        let place = self.fields.get_mut(count).filter(|_| count < MOST).ok_or(Status::HEADER_TOO_LARGE)?;
        *place = Field { name: span(self.bytes, name), value: span(self.bytes, value) };
        let place = place.value;
        self.known.count += 1;
        match Known::of(name) {
            Some(name) => {
                self.known.note(self.bytes, name, value, self.fields);
                self.facts.note(name, value);
                if name == Known::ContentLength {
                    self.facts.digits = Some(place);
                }
                Ok(())
            }
            None if !name.is_empty() && name.iter().all(|byte| is_token(*byte)) => Ok(()),
            None => Err(Status::BAD_REQUEST),
        }
    }
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

/// Takes the request line from the start of `rest`.
fn parse_line(bytes: &[u8], rest: &mut &[u8]) -> Result<Line, Status> {
    let (Some(method), Some(target)) = (take_part(rest), take_part(rest)) else { return Err(Status::BAD_REQUEST) };
    if method != b"POST" && !method.iter().all(|byte| is_token(*byte)) {
        return Err(Status::BAD_REQUEST);
    }
    let version = match rest.split_first_chunk() {
        Some((b"HTTP/1.1\r\n", behind)) => (HttpVersion::Http11, behind),
        Some((b"HTTP/1.0\r\n", behind)) => (HttpVersion::Http10, behind),
        _ => return Err(bad_version(bytes)),
    };
    *rest = version.1;
    let (method, path) = (span(bytes, method), span(bytes, target));
    Line { method, path, query: None, authority: None, version: version.0 }.split_target(bytes, target)
}

/// Takes a part of the request line, of visible ASCII, and the space after it.
fn take_part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = find(rest, |word| outside(word, b'!'))?;
    let (part, behind) = rest.split_at_checked(end).filter(|(part, _)| !part.is_empty())?;
    *rest = behind.strip_prefix(b" ")?;
    Some(part)
}

/// Takes a header line from the start of `rest`. Returns name and value, or `None` if it is wrong or not whole. The name
/// has no control characters, spaces and colons; whether its bytes are those of a token is not checked. `foreign` is set if
/// the value has bytes that are not ASCII.
#[inline]
fn parse_field<'b>(rest: &mut &'b [u8], foreign: &mut bool) -> Option<(&'b [u8], &'b [u8])> {
    let colon = find(rest, |word| equal_or_below(word, b':', b'!'))?;
    let (name, behind) = rest.split_at_checked(colon)?;
    let value = behind.strip_prefix(b":")?;
    let value = trim_start(value.strip_prefix(b" ").unwrap_or(value));
    let end = find(value, |word| outside(word, b' '))?;
    let end = if value.get(end) == Some(&b'\r') { end } else { find_end(value, end, foreign)? };
    let (value, behind) = value.split_at_checked(end)?;
    let (b"\r\n", behind) = behind.split_first_chunk()? else { return None };
    *rest = behind;
    Some((name, trim_end(value)))
}

/// Returns the place of the CR behind a value that has a tab or bytes that are not ASCII, from `at` on; `None` if it has
/// other control characters.
#[cold]
fn find_end(value: &[u8], at: usize, foreign: &mut bool) -> Option<usize> {
    for (place, byte) in value.iter().enumerate().skip(at) {
        match byte {
            b'\r' => return Some(place),
            b'\t' | b' '..=b'~' => {}
            128.. => *foreign = true,
            _ => return None,
        }
    }
    None
}

/// Returns `value` without the spaces and tabs at its start. Few values have any.
#[inline]
fn trim_start(value: &[u8]) -> &[u8] {
    #[cold]
    fn trim(value: &[u8]) -> &[u8] {
        let spaces = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        value.get(spaces..).unwrap_or(&[])
    }
    if matches!(value, [b' ' | b'\t', ..]) { trim(value) } else { value }
}

/// Returns `value` without the spaces and tabs at its end. Few values have any.
#[inline]
fn trim_end(value: &[u8]) -> &[u8] {
    #[cold]
    fn trim(value: &[u8]) -> &[u8] {
        let spaces = value.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        value.get(..value.len() - spaces).unwrap_or(&[])
    }
    if matches!(value, [.., b' ' | b'\t']) { trim(value) } else { value }
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
    /// The place of the length.
    digits: Option<Span>,
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
            _ => return,
        };
        if let Err(status) = accepted {
            self.refusal.get_or_insert(status);
        }
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

    fn settle(self, head: bool, version: HttpVersion, limits: &ConnectionLimits) -> Result<HeadFacts, Status> {
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
        Ok(HeadFacts {
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
    #[allow(clippy::indexing_slicing, reason = "when it is compiled")]
    const HOST: [bool; 256] = {
        let (mut allowed, mut byte) = ([false; 256], 0u8);
        while byte < 128 {
            let is_mark = matches!(byte, b'!' | b'$'..=b'.' | b':' | b';' | b'=' | b'[' | b']' | b'_' | b'~');
            allowed[byte as usize] = byte.is_ascii_alphanumeric() || is_mark;
            byte += 1;
        }
        allowed
    };
    value.iter().all(|byte| HOST.get(usize::from(*byte)) == Some(&true))
}

impl Line {
    /// Divides the target, which is the path of a line that was just parsed.
    fn split_target(self, bytes: &[u8], target: &[u8]) -> Result<Self, Status> {
        if target == b"*" && self.method.of(bytes) == b"OPTIONS" {
            return Ok(self);
        }
        let (mut path, mut authority) = (target, None);
        if !target.starts_with(b"/") {
            let (host, rest) = split_authority(target).ok_or(Status::BAD_REQUEST)?;
            (path, authority) = (rest, Some(span(bytes, host)));
        }
        let mut query = None;
        if let Some(mark) = path.iter().position(|byte| matches!(byte, b'?' | b'#')) {
            let (before, behind) = path.split_at_checked(mark).ok_or(Status::BAD_REQUEST)?;
            // Clients send no fragment.
            if behind.contains(&b'#') {
                return Err(Status::BAD_REQUEST);
            }
            (path, query) = (before, Some(span(bytes, behind.get(1..).unwrap_or(&[]))));
        }
        Ok(Line { path: span(bytes, path), query, authority, ..self })
    }
}

/// Returns the authority of an absolute target, and the rest behind it.
fn split_authority(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let behind = target.get(scheme(target)?..)?;
    let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(behind.len());
    let (host, rest) = behind.split_at_checked(end)?;
    (!host.is_empty() && is_host(host)).then_some((host, rest))
}

/// Returns the length of the scheme of an absolute target, with the slashes after it.
fn scheme(target: &[u8]) -> Option<usize> {
    let schemes: [&[u8]; 2] = [b"http://", b"https://"];
    let is = |scheme: &&&[u8]| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    schemes.iter().find(is).map(|scheme| scheme.len())
}
