//! The head of a response.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::event::Why;

/// What a head says; its texts are places in the bytes it came in.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Its length.
    pub(crate) len: usize,
    pub(crate) framing: Framing,
    pub(crate) content: Content,
    /// The connection can be used again.
    pub(crate) keep: bool,
    pub(crate) retry_after: Option<u32>,
    pub(crate) location: Range<usize>,
    pub(crate) challenge: Option<Range<usize>>,
    pub(crate) session: Range<usize>,
}

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none, or nothing of it is left.
    None,
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    /// It ends with the connection.
    Close,
}

/// What the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// It is not said.
    Unknown,
    Json,
    Stream,
    Other,
}

/// The most headers that are looked at.
const HEADERS: usize = 100;

impl Reply {
    /// Parses the head that `bytes` begin with; `None` if it is not whole.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Reply>, Why> {
        let mut places = [const { MaybeUninit::uninit() }; HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed =
            httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut places);
        let len = match parsed {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Why::NotHttp),
        };
        let status = response.code.filter(|code| (100..600).contains(code)).ok_or(Why::NotHttp)?;
        let mut facts = Facts { bytes, ..Facts::default() };
        for header in response.headers.iter() {
            facts.note(header)?;
        }
        let http10 = response.version == Some(0);
        let framing = facts.framing(status);
        Ok(Some(Reply {
            status,
            len,
            framing,
            content: if facts.encoded { Content::Other } else { facts.content },
            keep: !facts.close && (!http10 || facts.keep_alive) && framing != Framing::Close && !facts.ambiguous(),
            retry_after: facts.retry_after,
            location: facts.location,
            challenge: facts.challenge,
            session: facts.session,
        }))
    }

    /// As if it had come so much later in its bytes.
    pub(crate) fn moved(mut self, by: usize) -> Self {
        let ranges = [Some(&mut self.location), self.challenge.as_mut(), Some(&mut self.session)];
        for range in ranges.into_iter().flatten() {
            *range = range.start + by..range.end + by;
        }
        self
    }
}

/// Collected over all headers.
struct Facts<'h> {
    bytes: &'h [u8],
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    encoded: bool,
    content: Content,
    retry_after: Option<u32>,
    location: Range<usize>,
    challenge: Option<Range<usize>>,
    bearer: bool,
    session: Range<usize>,
}

impl Default for Facts<'_> {
    fn default() -> Self {
        Facts {
            bytes: &[],
            length: None,
            chunked: false,
            close: false,
            keep_alive: false,
            encoded: false,
            content: Content::Unknown,
            retry_after: None,
            location: 0..0,
            challenge: None,
            bearer: false,
            session: 0..0,
        }
    }
}

impl Facts<'_> {
    fn note(&mut self, header: &httparse::Header<'_>) -> Result<(), Why> {
        let (name, value) = (header.name, header.value.trim_ascii());
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") {
            self.length(value)?;
        } else if is("transfer-encoding") {
            // Nothing but chunks: no other coding was asked for.
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Why::NotHttp);
            }
            self.chunked = true;
        } else if is("connection") {
            for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if is("content-type") {
            self.content = content(value);
        } else if is("content-encoding") {
            self.encoded |= !value.is_empty() && !value.eq_ignore_ascii_case(b"identity");
        } else if is("retry-after") {
            self.retry_after = number(value).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
        } else if is("location") {
            self.location = place(self.bytes, value);
        } else if is("www-authenticate") {
            self.challenge(value);
        } else if is("mcp-session-id") {
            self.session = place(self.bytes, value);
        }
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Why> {
        for part in value.split(|byte| *byte == b',') {
            let length = number(part.trim_ascii()).ok_or(Why::NotHttp)?;
            if self.length.is_some_and(|other| other != length) {
                return Err(Why::NotHttp);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// Of several, the first that asks for a bearer token, or the first.
    fn challenge(&mut self, value: &[u8]) {
        let bearer = value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"));
        if self.challenge.is_none() || (bearer && !self.bearer) {
            self.challenge = Some(place(self.bytes, value));
            self.bearer = bearer;
        }
    }

    const fn framing(&self, status: u16) -> Framing {
        match (status, self.length) {
            (100..200 | 204 | 304, _) => Framing::None,
            _ if self.chunked => Framing::Chunked,
            (_, Some(0)) => Framing::None,
            (_, Some(length)) => Framing::Length(length),
            (_, None) => Framing::Close,
        }
    }

    /// Both a length and chunks: somebody in between may have read it the other way.
    const fn ambiguous(&self) -> bool {
        self.chunked && self.length.is_some()
    }
}

fn content(value: &[u8]) -> Content {
    let kind = value.split(|byte| matches!(byte, b';' | b',')).next().unwrap_or(&[]).trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/json") {
        Content::Json
    } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
        Content::Stream
    } else {
        Content::Other
    }
}

/// Digits and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    let text = core::str::from_utf8(digits).ok()?;
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// The place of a part of `whole`; its address tells.
fn place(whole: &[u8], part: &[u8]) -> Range<usize> {
    let at = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    at..at.wrapping_add(part.len())
}
