//! The core's client and its HTTP transport in one value, shared by all drivers over HTTP.

use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientHandler, ProtocolViolation, TransportError};
use mcp_sansio::memory::records::Records;
use mcp_sansio::memory::{FixedText, Store};
use mcp_sansio::protocol::Method;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use super::origin::Sse;
use super::origin::check_header;
use super::outgoing::keep_all;
use super::params::{self, AnnotationError};
use super::{ExchangeSlot, FailureReason, HeaderError, HttpClientEvent, HttpTransport, ListenState, Url};

/// Decisions and views that a driver's user adds to a [`HttpClient`].
pub trait HttpHooks {
    /// Decides about a challenge: set headers and try again, or give up. OAuth flows plug in here
    /// ([authorization](https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization)). Default:
    /// [`ChallengeAnswer::GiveUp`].
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, headers: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        let _ = (challenge, headers);
        ChallengeAnswer::GiveUp
    }

    /// Adds headers to one HTTP request that is about to be sent. Called only after [`HttpClient::sign_heads`], and
    /// then for each request: messages that are sent again, GET and DELETE included. Headers that are set here replace
    /// those that were set for all requests. Returns a number for the credentials in them, which comes back in
    /// [`ChallengedRequest::credentials`]. Default: adds none and returns 0.
    fn sending(&mut self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        let _ = (request, headers);
        0
    }

    /// Notes that the server has answered a request with these [credentials](HttpHooks::sending) with a status other
    /// than 401 and 403. Called for the newest of them, and not for credentials with the number 0.
    fn accepted(&mut self, credentials: u32) {
        let _ = credentials;
    }

    /// Shows a message that was sent. Called only after [`HttpClient::trace`].
    fn sent(&mut self, message: &[u8]) {
        let _ = message;
    }

    /// Shows a message that was received.
    fn received(&mut self, message: &[u8]) {
        let _ = message;
    }
}

/// Gives up each challenge and shows no message.
impl HttpHooks for () {}

/// The server's demand for authorization.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ChallengedRequest<'c> {
    /// The slot of the exchange that waits, for [`ChallengeAnswer::Later`].
    pub slot: usize,
    /// 401 or 403.
    pub status: u16,
    /// All challenges of the answer as one list: the values of all `WWW-Authenticate` headers, joined by commas. Empty
    /// if the server sent none, or more than the store takes.
    pub www_authenticate: &'c str,
    /// The server's URL.
    pub url: &'c str,
    /// Number of earlier challenges of this message. After [`CHALLENGES`] the client gives the message up.
    pub tries: u8,
    /// The number that [`HttpHooks::sending`] returned for the refused request. If there are newer credentials, the
    /// message only needs to be sent again.
    pub credentials: u32,
    /// The `DPoP-Nonce` that the server sent last ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449#section-9)). Empty
    /// if it sent none, and without [`HttpClient::sign_heads`].
    pub dpop_nonce: &'c str,
    /// The method of the message and the name of its tool or prompt, with a space between: `tools/call add`. Empty for
    /// GET and for responses.
    pub operation: &'c str,
}

/// An HTTP request that is about to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OutgoingRequest<'r> {
    /// `POST`, `GET` or `DELETE`.
    pub method: &'static str,
    /// The URL that it goes to, on the server's origin.
    pub url: Url<'r>,
    /// The `DPoP-Nonce` that the server sent last; empty if it sent none.
    pub dpop_nonce: &'r str,
}

/// Number of times that a message may be challenged; twice as many if the server has sent a `DPoP-Nonce`, since it may demand a
/// new one after each change of credentials.
pub const CHALLENGES: u8 = 3;

/// The decision about a [`ChallengedRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "now, later or never")]
pub enum ChallengeAnswer {
    /// Send the message again, with the headers as they are set now.
    Retry,
    /// Give up: there is no authorization.
    GiveUp,
    /// Decide later with [`HttpClient::retry`] or [`HttpClient::give_up`]. The request's deadline does not run meanwhile.
    Later,
}

/// The headers of every request, or in [`HttpHooks::sending`] those of one request.
pub struct HeaderWriter<'h>(&'h mut SetHeader<'h>);

/// Sets a header, or removes it.
type SetHeader<'h> = dyn FnMut(&str, Option<&str>) -> Result<(), HeaderError> + 'h;

impl HeaderWriter<'_> {
    /// Sets a header.
    ///
    /// # Errors
    /// As [`HttpTransport::set_header`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        (self.0)(name, Some(value))
    }

    /// Removes a header. Does nothing for the headers of one request.
    pub fn remove(&mut self, name: &str) {
        let _ = (self.0)(name, None);
    }
}

mcp_sansio::debug_fields!(impl for HeaderWriter<'_> {});

/// The last failure, for messages to people.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct LastError<'f> {
    /// The request on the wire that it ended, if any.
    pub request: Option<u64>,
    /// The reason.
    pub why: FailureReason,
    /// Details from the server: the target of a redirect, the start of an error's body, or the authorization that
    /// it wants.
    pub detail: &'f str,
}

/// Number of bytes of such details that are kept.
const DETAIL: usize = 256;

/// Number of sessions lost in a row, without an answer in between, before the client gives up.
const SESSIONS: u8 = 3;

/// A client over HTTP: the core's client and the connections of a [`HttpTransport`]. It does no I/O. A driver moves
/// bytes between sockets and slots of [`remote`](HttpClient::remote), calls [`run`](HttpClient::run) until it returns `false`,
/// and waits for a socket or for [`next_deadline`](HttpClient::next_deadline).
///
/// ```
/// use mcp_sansio::client::{Client, ClientEvent, ClientHandle, PendingRequest, ClientInfo};
/// use mcp_sansio_http::client::{SocketAction, HttpClientConfig, HttpTransport, HttpClient};
///
/// # #[cfg(feature = "alloc")] {
/// let info = ClientInfo::new("demo", "1.0");
/// let remote = HttpTransport::growing("http://localhost:8931/mcp", HttpClientConfig::DEFAULT, 2)?;
/// let (mut held, mut inbox, mut outbox, mut slots) = ([0; 512], [0; 2048], [0; 512], [PendingRequest::FREE; 4]);
/// let client = Client::new(&info, &mut slots).held(&mut held).timeout(10_000);
/// let mut web = HttpClient::new(client, remote, &mut inbox, &mut outbox);
/// let mut revision = None;
/// let mut handler = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
///     if let ClientEvent::Connected(connected) = event {
///         revision = Some(connected.revision.date());
///     }
/// };
///
/// web.client.connect();
/// while web.run(0, &mut handler, &mut ()) {} // writes the probe into a slot
/// let Some(SocketAction::Connect(slot)) = web.remote.next_action() else { panic!() };
/// web.remote.connected(slot);
/// let request = web.remote.pending(slot); // write it to the socket
/// assert!(request.starts_with(b"POST /mcp HTTP/1.1\r\n"));
/// let n = request.len();
/// web.remote.sent(slot, n);
///
/// let body = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}"#;
/// let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
/// let answer = format!("{head}{}\r\n\r\n{body}", body.len()); // read from the socket
/// web.remote.space(slot)[..answer.len()].copy_from_slice(answer.as_bytes());
/// web.remote.filled(slot, answer.len());
/// while web.run(5, &mut handler, &mut ()) {}
/// assert_eq!(revision, Some("2026-07-28"));
/// # }
/// # Ok::<(), mcp_sansio_http::client::UrlError>(())
/// ```
pub struct HttpClient<'m> {
    /// The client.
    pub client: Client<'m>,
    /// The transport: slots and headers.
    pub remote: HttpTransport<'m>,
    /// The current message: the engine reads it while it writes to the slots.
    inbox: Store<'m>,
    blocked: bool,
    ended: bool,
    sessions_lost: u8,
    /// The time when a session was lost last.
    session_lost: Millis,
    fault: Option<(Option<u64>, FailureReason)>,
    detail: FixedText<DETAIL>,
}

/// Leaves the messages out.
impl core::fmt::Debug for HttpClient<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HttpClient").field("client", &self.client).field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl<'m> HttpClient<'m> {
    /// Joins a client and a transport over lent storage: `inbox` for the longest message received, `outbox` for
    /// responses and notifications while all connections are taken. The transport's `User-Agent` becomes the name and the version of
    /// the client, unless [it is set](HttpTransport::set_header).
    pub fn new(
        client: Client<'m>,
        mut remote: HttpTransport<'m>,
        inbox: impl Into<Store<'m>>,
        outbox: impl Into<Store<'m>>,
    ) -> Self {
        remote.origin.name_agent(client.info);
        remote.origin.seed = client.seed;
        remote.outbox = Records::new(outbox.into());
        HttpClient {
            client,
            remote,
            inbox: inbox.into(),
            blocked: false,
            ended: false,
            sessions_lost: 0,
            session_lost: 0,
            fault: None,
            detail: FixedText::EMPTY,
        }
    }

    /// Joins a client and a transport with memory from the allocator.
    #[cfg(feature = "alloc")]
    pub fn growing(client: Client<'m>, remote: HttpTransport<'m>) -> Self {
        HttpClient::new(client, remote, Store::growing(usize::MAX), Store::growing(1 << 20))
    }

    /// Makes [`HttpHooks::sent`] show the messages that are sent. `store` keeps them between two runs.
    pub fn trace(&mut self, store: impl Into<Store<'m>>) {
        self.remote.shown = Records::new(store.into());
    }

    /// Makes each request wait until [`HttpHooks::sending`] has added its headers, which the next
    /// [`run`](HttpClient::run) asks for. Call it before the first message.
    pub const fn sign_heads(&mut self) {
        self.remote.origin.signs = true;
    }

    /// Returns the client together with its sink. [Set the time](Client::now) before you send.
    pub fn handle(&mut self) -> ClientHandle<'_, 'm> {
        ClientHandle { client: &mut self.client, out: &mut self.remote }
    }

    /// Sets the time, handles at most one event, and writes messages into slots. Returns `true` if there may be
    /// more to do: call it again.
    pub fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler, hooks: &mut dyn HttpHooks) -> bool {
        self.remote.rebase(now);
        self.remote.expire(now);
        self.client.now = now;
        while let Some(slot) = self.remote.next_resumed() {
            if let Some(request) = self.remote.slots.get(slot).and_then(ExchangeSlot::request) {
                self.client.resume(request);
            }
            self.remote.retry(slot);
        }
        self.blocked = self.handle().advance(now, handler).is_err();
        self.sweep();
        let taken = self.take(handler, hooks);
        self.remote.settled();
        self.tell_accepted(hooks);
        let signed = self.sign(hooks);
        for message in self.remote.shown.iter() {
            hooks.sent(message.data);
        }
        self.remote.shown.remove(|_| true);
        taken || signed
    }

    fn tell_accepted(&mut self, hooks: &mut dyn HttpHooks) {
        match core::mem::take(&mut self.remote.origin.accepted) {
            0 => {}
            credentials => hooks.accepted(credentials),
        }
    }

    /// Lets the caller add headers to the requests that are about to be sent. Returns `true` if there was one.
    fn sign(&mut self, hooks: &mut dyn HttpHooks) -> bool {
        let mut any = false;
        while let Some((slot, request)) = self.remote.next_unsigned() {
            let (inbox, mut used) = (&mut self.inbox, 0);
            let mut add = |name: &str, value: Option<&str>| {
                let Some(value) = value else { return Ok(()) };
                check_header(name, value)?;
                let line = [name, ": ", value, "\r\n"];
                used = keep_all(inbox, used, &line).ok_or(HeaderError::Room)?;
                Ok(())
            };
            let credentials = hooks.sending(&request, &mut HeaderWriter(&mut add));
            self.remote.sign(slot, self.inbox.bytes().get(..used).unwrap_or(&[]), credentials);
            any = true;
        }
        any
    }

    /// Closes exchanges without a waiting request: cancelled ones, those past their deadline, and the probe of a
    /// server that turned out to be older.
    fn sweep(&mut self) {
        let client = &self.client;
        self.remote.abandon_unless(|request| client.awaits(request));
    }

    fn take(&mut self, handler: &mut dyn ClientHandler, hooks: &mut dyn HttpHooks) -> bool {
        let Some(event) = self.remote.next_event() else { return false };
        match event {
            HttpClientEvent::Message { request, bytes } => {
                let len = keep_all(&mut self.inbox, 0, &[bytes]);
                self.receive(request, len, handler, hooks);
            }
            HttpClientEvent::Failed { request, why, detail } => {
                if why != FailureReason::GivenUp || !detail.is_empty() {
                    self.detail = start_of(detail.as_bytes());
                }
                self.fault = Some((request, why));
                self.failed(request, why);
            }
            HttpClientEvent::Challenge { slot, request, status, www_authenticate } => {
                // The decision may wait for a user, so the deadline of the request does not run.
                if let Some(request) = request {
                    self.client.pause(request);
                }
                self.detail = start_of(www_authenticate.as_bytes());
                let len = keep_all(&mut self.inbox, 0, &[www_authenticate]);
                self.challenge(slot, status, len.unwrap_or(0), hooks);
            }
            HttpClientEvent::Skipped { request, why, start } => {
                self.detail = start_of(core::str::from_utf8(start).unwrap_or("").as_bytes());
                self.fault = Some((request, why));
                let oddity = if why == FailureReason::TooLarge {
                    ProtocolViolation::TooLong
                } else {
                    ProtocolViolation::NoMessage
                };
                handler.event(ClientEvent::Ignored(oddity), &mut self.handle());
            }
            HttpClientEvent::Ended => self.ended = true,
        }
        true
    }

    fn receive(
        &mut self,
        request: Option<u64>,
        len: Option<usize>,
        handler: &mut dyn ClientHandler,
        hooks: &mut dyn HttpHooks,
    ) {
        if self.client.is_connected() && request.is_some() {
            self.sessions_lost = 0;
        }
        let message = len.and_then(|len| self.inbox.bytes_mut().get_mut(..len));
        let mut handle = ClientHandle { client: &mut self.client, out: &mut self.remote };
        let Some(message) = message else {
            if let Some(request) = request {
                handle.client.lost(request, TransportError::TooLarge);
            }
            return handler.event(ClientEvent::Ignored(ProtocolViolation::TooLong), &mut handle);
        };
        hooks.received(message);
        let lists = request.and_then(|request| handle.client.method_of(request)) == Some(Method::ToolsList);
        if lists && handle.client.is_modern() {
            params::leave_out(message);
        }
        let mut done = 0;
        if handle.receive(request, message, &mut done, handler).is_err() {
            // The server reads nothing, and the outbox is full of other messages: this answer has no room.
            if let Some(request) = request {
                handle.client.lost(request, TransportError::NoRoom);
            }
            handler.event(ClientEvent::Ignored(ProtocolViolation::NoRoom), &mut handle);
        }
    }

    fn failed(&mut self, request: Option<u64>, why: FailureReason) {
        let lost = lost(why);
        // Several exchanges may report the same loss. A session that began since then is another one.
        let news = self.client.is_connected() && self.remote.session().is_none();
        if lost == TransportError::SessionLost && news {
            // A session that lived for a while was not lost in vain.
            let origin = &self.remote.origin;
            let short = origin.now.saturating_sub(self.session_lost) < origin.config.retry_most;
            self.sessions_lost = if short { self.sessions_lost.saturating_add(1) } else { 1 };
            self.session_lost = origin.now;
            if self.sessions_lost > SESSIONS {
                self.client.end_of_input();
            } else {
                self.client.reconnect(TransportError::SessionLost);
            }
            return;
        }
        if let Some(request) = request {
            self.client.lost(request, lost);
        }
    }

    fn challenge(&mut self, slot: usize, status: u16, len: usize, hooks: &mut dyn HttpHooks) {
        self.tell_accepted(hooks);
        let remote = &self.remote;
        let Some(exchange) = remote.slots.get(slot) else { return };
        let (url, nonce, [method, name]) = (remote.url(), remote.origin.nonce(), exchange.operation());
        let (tries, credentials) = (exchange.task.challenges.saturating_sub(1), exchange.credentials);
        let scheme = if url.is_secure() { "https://" } else { "http://" };
        let slash = if url.is_bare() { "/" } else { "" };
        let space = if name.is_empty() { "" } else { " " };
        // The texts go behind the challenge: hooks may change the transport that they are from.
        let parts = [&[scheme, url.authority(), slash, url.target()][..], &[nonce], &[method, space, name]];
        let (mut ends, mut end) = ([len; 3], Some(len));
        for (part, place) in parts.into_iter().zip(&mut ends) {
            end = end.and_then(|end| keep_all(&mut self.inbox, end, part));
            *place = end.unwrap_or(len);
        }
        let whole = end.is_some();
        let bytes = self.inbox.bytes();
        let text = |from: usize, to: usize| core::str::from_utf8(bytes.get(from..to).unwrap_or(&[])).unwrap_or("");
        let [url_end, nonce_end, end] = ends;
        let challenge = ChallengedRequest {
            slot,
            status,
            www_authenticate: text(0, len),
            url: text(len, url_end),
            tries,
            credentials,
            dpop_nonce: text(url_end, nonce_end),
            operation: text(nonce_end, end),
        };
        let remote = &mut self.remote;
        // A cut URL would ask for credentials of another server.
        let limit = if challenge.dpop_nonce.is_empty() { CHALLENGES } else { 2 * CHALLENGES };
        let verdict = if tries >= limit || !whole {
            ChallengeAnswer::GiveUp
        } else {
            hooks.challenged(
                &challenge,
                &mut HeaderWriter(&mut |name, value| match value {
                    Some(value) => remote.set_header(name, value),
                    None => {
                        remote.remove_header(name);
                        Ok(())
                    }
                }),
            )
        };
        match verdict {
            ChallengeAnswer::Retry => self.retry(slot),
            ChallengeAnswer::GiveUp => self.give_up(slot),
            ChallengeAnswer::Later => {}
        }
    }

    /// Makes the next [`run`](HttpClient::run) send the message of a challenged exchange again; see [`ChallengeAnswer::Later`].
    pub fn retry(&mut self, slot: usize) {
        self.remote.resume(slot);
    }

    /// Gives up a challenged exchange.
    pub fn give_up(&mut self, slot: usize) {
        self.remote.give_up(slot);
    }

    /// Returns the last failure.
    #[must_use]
    pub fn fault(&self) -> Option<LastError<'_>> {
        let (request, why) = self.fault?;
        Some(LastError { request, why, detail: self.detail.as_str() })
    }

    /// Describes the loss that [`run`](HttpClient::run) reported last, beyond its reason. `trouble` is the driver's own
    /// text about its connections.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn explain(&self, why: TransportError, trouble: &str) -> alloc::string::String {
        use alloc::string::{String, ToString};
        let Some(fault) = self.fault().filter(|fault| lost(fault.why) == why) else { return String::new() };
        let what = match why {
            // The text of the reason says it all.
            TransportError::Status(_) | TransportError::SessionLost | TransportError::Unauthorized => String::new(),
            _ => fault.why.to_string(),
        };
        let trouble = if matches!(why, TransportError::Unreachable | TransportError::Broken) { trouble } else { "" };
        let mut parts = alloc::vec::Vec::from([what.as_str(), fault.detail.trim(), trouble]);
        parts.retain(|part| !part.is_empty());
        parts.join(": ")
    }

    /// Returns `true` while a new legacy session still opens its stream for the server's own messages. The server
    /// may send requests there, so wait with the first request, but for a limited time.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        let legacy = self.client.revision().is_some_and(|revision| !revision.is_modern());
        // It is opened when the server has taken `notifications/initialized`.
        legacy && (self.remote.listening() == ListenState::Opening || !self.remote.is_idle())
    }

    /// Returns `false` if the server's own requests and notifications cannot arrive. Up to 2025-11-25 they come on a GET stream, which
    /// the server may refuse and the [configuration](super::HttpClientConfig::listen) may not want. Under 2026-07-28 each listen has
    /// a stream of its own.
    #[must_use]
    pub fn hears_server(&self) -> bool {
        let remote = &self.remote;
        let legacy = self.client.revision().is_some_and(|revision| !revision.is_modern());
        !legacy || remote.listening() != ListenState::No || remote.origin.sse != Sse::Unused
    }

    /// Returns the tools that were left out of the server's lists, and the reason: see
    /// [`excludes`](HttpClient::excludes). Calls of them fail with [`TransportError::Excluded`] while they are kept
    /// ([`HttpClientConfig::tools`](super::HttpClientConfig::tools) limits that).
    pub fn excluded(&self) -> impl Iterator<Item = (mcp_sansio::json::Text<'_>, AnnotationError)> {
        self.remote.excluded()
    }

    /// Returns the reason why a tool must be left out of the server's tools: under 2026-07-28, its annotations
    /// (`x-mcp-header`) are invalid. Results of [`Request::list_tools`](mcp_sansio::client::Request::list_tools)
    /// come without such tools; results of raw requests come unchanged.
    #[must_use]
    pub fn excludes(&self, tool: &ToolView<'_>) -> Option<AnnotationError> {
        let modern = self.client.revision().is_some_and(Revision::is_modern);
        params::check(tool.input_schema()).err().filter(|_| modern)
    }

    /// Ends the session. Returns `true` if the driver must go on until [`is_over`](HttpClient::is_over); limit the time
    /// for that.
    pub fn end(&mut self) -> bool {
        self.ended = !self.remote.end_session();
        !self.ended
    }

    /// Returns `true` after the session has [ended](HttpClient::end).
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended
    }

    /// Returns the time, in milliseconds, by which to [`run`](HttpClient::run) again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        // An expired deadline is not reported while no slot is free: waking earlier changes nothing.
        let now = self.remote.origin.now;
        let client = self.client.next_deadline().filter(|&due| !self.blocked || due > now);
        client.into_iter().chain(self.remote.next_deadline()).min()
    }
}

/// Keeps the start of a text.
fn start_of(text: &[u8]) -> FixedText<DETAIL> {
    let mut detail = FixedText::EMPTY;
    detail.push(text);
    detail
}

/// Returns the core's reason for a failed exchange.
#[must_use]
pub const fn lost(why: FailureReason) -> TransportError {
    match why {
        FailureReason::Refused | FailureReason::TimedOut => TransportError::Unreachable,
        FailureReason::Reset | FailureReason::Broken => TransportError::Broken,
        FailureReason::Status { code, .. } | FailureReason::Redirect(code) => TransportError::Status(code),
        FailureReason::SessionLost => TransportError::SessionLost,
        FailureReason::TooLarge | FailureReason::NoRoom => TransportError::TooLarge,
        FailureReason::GivenUp => TransportError::Unauthorized,
        FailureReason::Excluded(_) => TransportError::Excluded,
        FailureReason::NotHttp
        | FailureReason::Garbage
        | FailureReason::ContentType
        | FailureReason::ContentEncoding
        | FailureReason::Unanswered
        | FailureReason::Endpoint => TransportError::Invalid,
    }
}
