//! The head of a response.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::event::FailureReason;
use crate::http1::head::{list, number};

/// The facts of a head. Its texts are ranges of the received bytes.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The place of the head.
    pub(crate) head: Range<usize>,
    pub(crate) framing: Framing,
    pub(crate) content: Content,
    /// The connection can be used again.
    pub(crate) keep: bool,
    pub(crate) retry_after: Option<u32>,
    pub(crate) location: Range<usize>,
    /// The value of `Content-Encoding`; empty without one.
    pub(crate) coding: Range<usize>,
    /// The head has at least one `WWW-Authenticate`.
    pub(crate) challenged: bool,
    pub(crate) dpop_nonce: Range<usize>,
    pub(crate) session: Range<usize>,
}

/// The length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body, or no byte of it is left.
    None,
    /// Number of bytes that still follow.
    Length(u64),
    Chunked,
    /// The body ends with the connection.
    Close,
}

/// The content type of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// The head has no content type.
    #[default]
    Unknown,
    Json,
    Stream,
    Other,
}

/// Largest number of headers that are read.
const HEADERS: usize = 100;

impl Reply {
    /// Parses the head that begins at `from`. Returns `None` if the head is not whole. Its texts are ranges of
    /// `bytes`.
    pub(crate) fn parse(bytes: &[u8], from: usize) -> Result<Option<Reply>, FailureReason> {
        let head = bytes.get(from..).unwrap_or(&[]);
        let mut places = [const { MaybeUninit::uninit() }; HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed =
            httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, head, &mut places);
        let len = match parsed {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(FailureReason::NotHttp),
        };
        let status = response.code.filter(|code| (100..600).contains(code)).ok_or(FailureReason::NotHttp)?;
        let mut facts = Facts { bytes, ..Facts::default() };
        for header in response.headers.iter() {
            facts.note(header)?;
        }
        let http10 = response.version == Some(0);
        let framing = facts.framing(status);
        Ok(Some(Reply {
            status,
            head: from..from.saturating_add(len),
            framing,
            content: if facts.coding.is_empty() { facts.content } else { Content::Other },
            coding: facts.coding,
            // With both a length and chunks, an intermediary may have read the length (request smuggling).
            keep: !facts.close
                && (!http10 || facts.keep_alive)
                && framing != Framing::Close
                && !(facts.chunked && facts.length.is_some()),
            retry_after: facts.retry_after,
            location: facts.location,
            challenged: facts.challenged,
            dpop_nonce: facts.dpop_nonce,
            session: facts.session,
        }))
    }
}

/// Facts collected over all headers.
#[derive(Default)]
struct Facts<'h> {
    bytes: &'h [u8],
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    coding: Range<usize>,
    content: Content,
    retry_after: Option<u32>,
    location: Range<usize>,
    challenged: bool,
    dpop_nonce: Range<usize>,
    session: Range<usize>,
}

impl Facts<'_> {
    fn note(&mut self, header: &httparse::Header<'_>) -> Result<(), FailureReason> {
        let (name, value) = (header.name, header.value.trim_ascii());
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") {
            self.length(value)?;
        } else if is("transfer-encoding") {
            // Only chunks: the request asked for no other coding.
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(FailureReason::NotHttp);
            }
            self.chunked = true;
        } else if is("connection") {
            for option in list(value) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if is("content-type") {
            self.content = content(value);
        } else if is("content-encoding") {
            if !value.eq_ignore_ascii_case(b"identity") {
                self.coding = place(self.bytes, value);
            }
        } else if is("retry-after") {
            self.retry_after = number(value).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
        } else if is("location") {
            self.location = place(self.bytes, value);
        } else if is("www-authenticate") {
            self.challenged = true;
        } else if is("dpop-nonce") {
            self.dpop_nonce = place(self.bytes, value);
        } else if is("mcp-session-id") {
            self.session = place(self.bytes, value);
        }
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), FailureReason> {
        for part in value.split(|byte| *byte == b',') {
            let length = number(part.trim_ascii()).ok_or(FailureReason::NotHttp)?;
            if self.length.is_some_and(|other| other != length) {
                return Err(FailureReason::NotHttp);
            }
            self.length = Some(length);
        }
        Ok(())
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
}

/// Returns the values of all headers called `name`. `head` was parsed before.
pub(crate) fn values<'h>(head: &'h [u8], name: &str) -> impl Iterator<Item = &'h [u8]> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(move |line| {
        let at = memchr::memchr(b':', line)?;
        let (found, value) = line.split_at_checked(at)?;
        found.eq_ignore_ascii_case(name.as_bytes()).then(|| value.get(1..).unwrap_or(&[]).trim_ascii())
    })
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

/// Returns the range of `part` in `whole`, by its address.
fn place(whole: &[u8], part: &[u8]) -> Range<usize> {
    let at = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    at..at.wrapping_add(part.len())
}
