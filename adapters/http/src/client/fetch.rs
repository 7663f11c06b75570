//! One GET or POST to any URL, with limits.

use core::fmt;
use core::ops::Range;

use mcp_sansio::FullError;
use mcp_sansio::json::write;
use mcp_sansio::memory::Store;
use mcp_sansio::memory::records::Records;
use mcp_sansio::server::Millis;

use super::HeaderError;
use super::event::FailureReason;
use super::head::{UNCODED, replaces, write_start};
use super::input::Input;
use super::origin::{check_free_header, copied};
use super::outgoing::{Outgoing, keep_all};
use super::reply::{Framing, Reply, values};
use super::url::{LONGEST, Url, UrlError, resolve};

/// The `User-Agent` of requests without one of their own: firewalls refuse requests without it.
const AGENT: &[u8] = concat!("User-Agent: ", env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")).as_bytes();

/// A request to any URL. `Accept-Encoding` is `identity`, and `User-Agent` names this crate, unless they are among the
/// [headers](FetchRequest::headers).
///
/// ```
/// use mcp_sansio_http::client::FetchRequest;
/// let url = "http://localhost:8931/.well-known/oauth-protected-resource/mcp";
/// let request = FetchRequest::get(url).headers(&[("Accept", "application/json")]);
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct FetchRequest<'r> {
    url: &'r str,
    headers: &'r [(&'r str, &'r str)],
    body: Option<&'r [u8]>,
}

impl<'r> FetchRequest<'r> {
    /// Makes a GET request.
    pub const fn get(url: &'r str) -> Self {
        FetchRequest { url, headers: &[], body: None }
    }

    /// Makes a POST request. Set its `Content-Type` with [`headers`](FetchRequest::headers).
    pub const fn post(url: &'r str, body: &'r [u8]) -> Self {
        FetchRequest { url, headers: &[], body: Some(body) }
    }

    /// Sets the headers. [`Fetch`] writes `Host`, `Connection` and `Content-Length` itself.
    pub const fn headers(self, headers: &'r [(&'r str, &'r str)]) -> Self {
        FetchRequest { headers, ..self }
    }
}

/// Leaves headers and body out, which may be secret, and shows the URL without its query.
impl fmt::Debug for FetchRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or("");
        f.debug_struct("FetchRequest").field("url", &super::Redacted(url)).finish_non_exhaustive()
    }
}

mcp_sansio::options! {
    /// Limits of a [`Fetch`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FetchLimits {
        /// Time for the whole exchange, with connecting and redirects, in milliseconds. Default: 20 seconds.
        time: Millis = 20_000,
        /// Longest head of the response in bytes. Default: 16 KiB.
        head: usize = 16 << 10,
        /// Longest body of the response in bytes. Default: 256 KiB.
        body: usize = 256 << 10,
        /// Number of redirects that a GET follows, on the same origin; a POST follows none. With 0 a redirect is returned
        /// as the response. Default: 3.
        redirects: u8 = 3,
    }
}

mcp_sansio::error_enum! {
    /// The reason why a [`Fetch`] cannot begin.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    FetchError {
        /// The URL cannot be used.
        Url(error: UrlError) => "{error}",
        /// A header cannot be sent.
        Header(error: HeaderError) => "{error}",
        /// The request is larger than the stores.
        Room => "there is no room for the request",
    }
}

/// The response to a [`Fetch`].
#[derive(Clone, Copy)]
pub struct FetchResponse<'f> {
    /// The HTTP status: 200 to 599.
    pub status: u16,
    head: &'f [u8],
    /// The body. It is not decoded: one of an error with a `Content-Encoding` is not what the server meant.
    pub body: &'f [u8],
}

impl<'f> FetchResponse<'f> {
    /// Returns the values of all headers called `name`, those that are UTF-8.
    pub fn headers<'n>(&self, name: &'n str) -> impl Iterator<Item = &'f str> + use<'f, 'n> {
        values(self.head, name).filter_map(|value| core::str::from_utf8(value).ok())
    }
}

// Leaves headers and body out, which may be secret.
mcp_sansio::debug_fields!(impl for FetchResponse<'_> { status });

/// The state of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchState {
    /// Waits for the driver to connect.
    Connecting {
        dialing: bool,
    },
    /// The request goes out; the head of the response is awaited.
    Head,
    /// The body of the response is being read.
    Body,
    Done,
    Failed(FailureReason),
}

/// One GET or POST to any URL, over a connection of its own. It does no I/O. A driver connects a socket to
/// [`url`](Fetch::url), moves bytes as with an [`HttpTransport`](super::HttpTransport), and looks at
/// [`response`](Fetch::response). It sends no credentials but those in the headers of the request, and follows no
/// redirect to another origin.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use mcp_sansio_http::client::{Fetch, FetchLimits, FetchRequest};
///
/// let request = FetchRequest::get("http://h/x");
/// let mut fetch = Fetch::growing(&request, FetchLimits::DEFAULT, 0)?;
/// assert!(fetch.connects() && fetch.url().host() == "h");
/// fetch.connected();
/// assert!(fetch.pending().starts_with(b"GET /x HTTP/1.1\r\nHost: h\r\n")); // write it to the socket
/// let n = fetch.pending().len();
/// fetch.sent(n);
/// let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"; // read from the socket
/// fetch.space()[..answer.len()].copy_from_slice(answer);
/// fetch.filled(answer.len());
/// let response = fetch.response().unwrap()?;
/// assert_eq!((response.status, response.body), (200, &b"ok"[..]));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fetch<'m> {
    state: FetchState,
    limits: FetchLimits,
    posts: bool,
    /// The time, in milliseconds, at which the exchange ends without a response.
    pub deadline: Millis,
    /// The URL, the target of the last redirect, and the headers.
    texts: Records<'m>,
    outgoing: Outgoing<'m>,
    input: Input<'m>,
    /// The head of the response and its body.
    answer: Store<'m>,
    answer_head: usize,
    answer_end: usize,
    status: u16,
    redirects: u8,
}

const URL: u8 = 0;
const TARGET: u8 = 1;
/// Headers of the request as lines.
const LINE: u8 = 2;

impl<'m> Fetch<'m> {
    /// Makes an exchange over lent storage: `texts` for URL and headers of the request, `output` for its head (1 KiB, more for
    /// long headers) and its body, `input` for the head of the response and at least 64 bytes, `answer` for head and body of the
    /// response.
    ///
    /// # Errors
    /// [`FetchError`] if the URL or a header cannot be used, or if there is no room.
    pub fn new(
        request: &FetchRequest<'_>,
        limits: FetchLimits,
        now: Millis,
        [texts, output, input, answer]: [Store<'m>; 4],
    ) -> Result<Self, FetchError> {
        Url::parse(request.url).map_err(FetchError::Url)?;
        let url = request.url.split('#').next().unwrap_or("");
        let mut texts = Records::new(texts);
        let mut keep = |kind, parts: &[&[u8]]| texts.push(0, kind, 0, parts).map_err(|_| FetchError::Room);
        keep(URL, &[url.as_bytes()])?;
        for (name, value) in request.headers {
            check_free_header(name, value).map_err(FetchError::Header)?;
            keep(LINE, &[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"])?;
        }
        let mut outgoing = Outgoing::new(output);
        outgoing.clear();
        outgoing.put(request.body.unwrap_or(&[])).map_err(|_| FetchError::Room)?;
        let mut fetch = Fetch {
            state: FetchState::Connecting { dialing: false },
            limits,
            posts: request.body.is_some(),
            deadline: now.saturating_add(limits.time),
            texts,
            outgoing,
            input: Input::new(input),
            answer,
            answer_head: 0,
            answer_end: 0,
            status: 0,
            redirects: 0,
        };
        fetch.write_head().map_err(|_| FetchError::Room)?;
        Ok(fetch)
    }

    /// Makes an exchange with memory from the allocator, as much as the limits allow.
    ///
    /// # Errors
    /// [`FetchError::Url`] or [`FetchError::Header`] if the URL or a header cannot be used.
    #[cfg(feature = "alloc")]
    pub fn growing(request: &FetchRequest<'_>, limits: FetchLimits, now: Millis) -> Result<Self, FetchError> {
        let answer = limits.head.saturating_add(limits.body);
        let input = Store::growing(limits.head.saturating_add(1 << 12));
        let stores = [Store::growing(usize::MAX), Store::growing(usize::MAX), input, Store::growing(answer)];
        Self::new(request, limits, now, stores)
    }

    /// Returns the URL to connect to: that of the request, or of the last redirect. Its origin never changes.
    #[must_use]
    pub fn url(&self) -> Url<'_> {
        url(&self.texts)
    }

    /// Returns `true` once for each connection that the driver must open, with TLS if the URL is `https`: then call
    /// [`connected`](Fetch::connected) or [`failed`](Fetch::failed). An earlier connection must be closed.
    #[must_use]
    pub fn connects(&mut self) -> bool {
        let connects = self.state == (FetchState::Connecting { dialing: false });
        if connects {
            self.state = FetchState::Connecting { dialing: true };
        }
        connects
    }

    /// Reports that the connection is open.
    pub fn connected(&mut self) {
        if self.state == (FetchState::Connecting { dialing: true }) {
            self.state = FetchState::Head;
        }
    }

    /// Reports that the connection could not be opened, or broke.
    pub fn failed(&mut self) {
        match self.state {
            FetchState::Connecting { dialing: true } => self.state = FetchState::Failed(FailureReason::Refused),
            FetchState::Head => self.state = FetchState::Failed(FailureReason::Reset),
            FetchState::Body => self.state = FetchState::Failed(FailureReason::Broken),
            _ => {}
        }
    }

    /// Reports that the server closed the connection in order: no more bytes follow.
    pub fn closed(&mut self) {
        if self.state == FetchState::Body && self.input.ends_with_connection() {
            self.state = FetchState::Done;
        } else {
            self.failed();
        }
    }

    /// Returns the bytes to send next.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        if self.state == FetchState::Head { self.outgoing.pending() } else { &[] }
    }

    /// Reports that the first `n` pending bytes were sent.
    pub fn sent(&mut self, n: usize) {
        self.outgoing.advance(n.min(self.pending().len()));
    }

    /// Returns the place to read bytes of the connection into. It is empty if there is no connection.
    #[must_use]
    pub fn space(&mut self) -> &mut [u8] {
        if matches!(self.state, FetchState::Head | FetchState::Body) { self.input.space() } else { &mut [] }
    }

    /// Reports that `n` bytes were read into [`space`](Fetch::space).
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
        while let FetchState::Head | FetchState::Body = self.state {
            let step = if self.state == FetchState::Head { self.read_head() } else { self.read_body() };
            match step {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => self.state = FetchState::Failed(why),
            }
        }
    }

    /// Sets the time. Ends the exchange if its time is over.
    pub fn expire(&mut self, now: Millis) {
        if now >= self.deadline && !self.is_over() {
            self.state = FetchState::Failed(FailureReason::TimedOut);
        }
    }

    /// Returns `true` if there is a response or a failure. Close the connection.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, FetchState::Done | FetchState::Failed(_))
    }

    /// Returns the response or the failure, or `None` while there is neither.
    #[must_use]
    pub fn response(&self) -> Option<Result<FetchResponse<'_>, FailureReason>> {
        match self.state {
            FetchState::Done => {
                let part = |range: Range<usize>| self.answer.bytes().get(range).unwrap_or(&[]);
                let (head, body) = (part(0..self.answer_head), part(self.answer_head..self.answer_end));
                Some(Ok(FetchResponse { status: self.status, head, body }))
            }
            FetchState::Failed(why) => Some(Err(why)),
            _ => None,
        }
    }

    /// Writes the head of the request; `Accept-Encoding` and `User-Agent` have defaults.
    fn write_head(&mut self) -> Result<(), FullError> {
        let (texts, posts) = (&self.texts, self.posts);
        let lines = || texts.iter().filter(|record| record.kind == LINE).map(|record| record.data);
        self.outgoing.write_head(posts, |request, out| {
            write_start(if posts { "POST" } else { "GET" }, &url(texts), out)?;
            lines().try_for_each(|line| out.put(line))?;
            for default in [UNCODED, AGENT] {
                if !lines().any(|line| replaces(line, default)) {
                    out.put(default)?;
                    out.put(b"\r\n")?;
                }
            }
            if posts {
                out.put(b"Content-Length: ")?;
                write::unsigned(out, request.message.len() as u64)?;
                out.put(b"\r\n")?;
            }
            out.put(b"Connection: close\r\n\r\n")
        })
    }

    /// Reads the head of the response. Returns `true` if that changed anything.
    fn read_head(&mut self) -> Result<bool, FailureReason> {
        let Some(reply) = self.input.head(self.limits.head)? else { return Ok(false) };
        match reply.status {
            101 => return Err(FailureReason::NotHttp),
            ..200 => return Ok(true), // the final answer follows
            300..=399 if self.limits.redirects > 0 => return self.redirect(&reply),
            200..=299 if !reply.coding.is_empty() => return Err(FailureReason::ContentEncoding),
            _ => {}
        }
        if matches!(reply.framing, Framing::Length(length) if length > self.limits.body as u64) {
            return Err(FailureReason::TooLarge);
        }
        self.status = reply.status;
        let head = keep_all(&mut self.answer, 0, &[self.input.bytes(reply.head)]).ok_or(FailureReason::TooLarge)?;
        (self.answer_head, self.answer_end) = (head, head);
        self.state = FetchState::Body;
        Ok(true)
    }

    /// Follows a redirect over another connection.
    fn redirect(&mut self, reply: &Reply) -> Result<bool, FailureReason> {
        let refused = FailureReason::Redirect(reply.status);
        let follows = !self.posts && matches!(reply.status, 301 | 302 | 303 | 307 | 308);
        if !follows || self.redirects >= self.limits.redirects {
            return Err(refused);
        }
        let location = self.input.text(reply.location.clone());
        let (mut base, mut target) = ([0; LONGEST], [0; LONGEST]);
        let target = copied(self.url().target(), &mut target).map_err(|_| refused)?;
        let base = copied(text(&self.texts, URL), &mut base).map_err(|_| refused)?;
        let base = Url::parse(base).map_err(|_| refused)?;
        self.texts.remove(|record| record.kind == TARGET);
        if location.is_empty() || resolve(&base, target, location, &mut self.texts, (0, TARGET)).is_err() {
            return Err(refused);
        }
        self.redirects += 1;
        self.input.clear();
        self.state = FetchState::Connecting { dialing: false };
        self.write_head().map(|()| false).map_err(|_| FailureReason::NoRoom)
    }

    /// Reads a part of the body. Returns `true` if that changed anything.
    fn read_body(&mut self) -> Result<bool, FailureReason> {
        let bytes = self.input.body(self.limits.head)?;
        let (len, read) = (bytes.len(), self.answer_end - self.answer_head);
        let fits = read.saturating_add(len) <= self.limits.body;
        let end = if fits { keep_all(&mut self.answer, self.answer_end, &[bytes]) } else { None };
        self.answer_end = end.ok_or(FailureReason::TooLarge)?;
        self.input.take(len);
        if len == 0 && self.input.is_over() {
            self.state = FetchState::Done;
        }
        Ok(len > 0)
    }
}

/// Leaves the texts out, which may be secret.
impl fmt::Debug for Fetch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url();
        f.debug_struct("Fetch").field("state", &self.state).field("authority", &url.authority()).finish_non_exhaustive()
    }
}

fn text<'t>(texts: &'t Records<'_>, kind: u8) -> &'t str {
    let record = texts.iter().find(|record| record.kind == kind);
    record.and_then(|record| core::str::from_utf8(record.data).ok()).unwrap_or("")
}

fn url<'t>(texts: &'t Records<'_>) -> Url<'t> {
    let url = Url::parse(text(texts, URL)).unwrap_or(Url::NOWHERE);
    match text(texts, TARGET) {
        "" => url,
        target => url.with_target(target),
    }
}
