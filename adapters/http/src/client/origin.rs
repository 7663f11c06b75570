//! State shared by all exchanges with a server: its URL, the session, the caller's headers, facts from responses.

use core::fmt;

use mcp_sansio::client::ClientInfo;
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::memory::records::{OVERHEAD, Records};
use mcp_sansio::memory::{FixedText, Store};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use super::ListenState;
use super::config::{HttpClientConfig, TransportKind};
use super::event::FailureReason;
use super::params::Tools;
use super::url::{Astray, LONGEST, Url, UrlError, resolve};
use crate::names::is_token;

mcp_sansio::error_enum! {
    /// The reason why a header cannot be set.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    HeaderError {
        /// The name is not a header name.
        Name => "not the name of a header",
        /// The value has control characters, or white space around it.
        Value => "not the value of a header",
        /// The client writes this header itself.
        Reserved => "the client writes this header itself",
        /// There is no room for it.
        Room => "there is no room for the header",
    }
}

/// Headers of a connection and of the framing of messages, which this crate writes itself, or never.
const FRAMING: [&str; 9] =
    ["host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"];

/// Further headers that the client of a server writes itself.
const RESERVED: [&str; 7] =
    ["accept", "content-type", "last-event-id", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"];

/// The most bytes of a `User-Agent` that the client makes.
const AGENT: usize = 96;

/// State shared by all exchanges with a server.
pub(crate) struct OriginState<'m> {
    pub(crate) config: HttpClientConfig,
    pub(crate) now: Millis,
    /// Spreads the pauses before streams are resumed, see [`jittered`](mcp_sansio::time::jittered).
    pub(crate) seed: u64,
    /// The URL is the first record.
    texts: Records<'m>,
    pub(crate) tools: Tools<'m>,
    /// The revision in the answer to `initialize`.
    pub(crate) version: Option<Revision>,
    pub(crate) listening: ListenState,
    pub(crate) sse: Sse,
    /// The client has sent requests of 2026-07-28.
    pub(crate) modern: bool,
    pub(crate) signals: Signals,
    /// Each head waits for headers of the caller.
    pub(crate) signs: bool,
    /// The highest number of credentials that the server has accepted since the caller heard of it last; 0 if none.
    pub(crate) accepted: u32,
}

/// The use of HTTP with SSE (2024-11-05), and the state of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sse {
    Unused,
    /// The stream must be opened, as a try or again.
    Wanted,
    /// The stream is being opened; the URL to post to is not known.
    Opening,
    /// Messages are posted to the endpoint.
    Known,
}

/// Facts from one exchange that concern the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// The server accepted `notifications/initialized`.
    pub(crate) initialized: bool,
    pub(crate) session_lost: bool,
    /// The endpoint of HTTP with SSE is known.
    pub(crate) endpoint: bool,
    /// The stream of HTTP with SSE could not be opened, or is gone.
    pub(crate) sse_failed: Option<FailureReason>,
}

const URL: u8 = 0;
/// The target to post to, if it is not the URL.
const ENDPOINT: u8 = 1;
const SESSION: u8 = 2;
/// A header that was set, in the form it is written.
const HEADER: u8 = 3;
/// The target to which the slot with that number was redirected.
const REDIRECT: u8 = 4;
/// The `DPoP-Nonce` that the server sent last.
const NONCE: u8 = 5;

/// Leaves out the session's id and the headers, which may be secret.
impl fmt::Debug for OriginState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url();
        f.debug_struct("OriginState")
            .field("secure", &url.is_secure())
            .field("authority", &url.authority())
            .finish_non_exhaustive()
    }
}

impl<'m> OriginState<'m> {
    pub(crate) fn new(
        url: &str,
        config: HttpClientConfig,
        texts: Store<'m>,
        tools: Store<'m>,
    ) -> Result<Self, UrlError> {
        // From a command line or a file.
        let url = url.trim_ascii();
        Url::parse(url)?;
        let text = url.split('#').next().unwrap_or("");
        let mut texts = Records::new(texts);
        texts.push(0, URL, 0, &[text.as_bytes()]).map_err(|_| UrlError::Room)?;
        Ok(OriginState {
            config,
            now: 0,
            seed: 0,
            texts,
            tools: Tools::new(tools, config.tools),
            version: None,
            listening: ListenState::No,
            sse: if config.transport == TransportKind::Sse { Sse::Wanted } else { Sse::Unused },
            modern: false,
            signals: Signals::default(),
            signs: false,
            accepted: 0,
        })
    }

    pub(crate) fn url(&self) -> Url<'_> {
        // The text was parsed before it was kept.
        Url::parse(self.text(0, URL).unwrap_or("")).unwrap_or(Url::NOWHERE)
    }

    fn text(&self, owner: u32, kind: u8) -> Option<&str> {
        let record = self.texts.iter().find(|record| record.kind == kind && record.owner == owner)?;
        core::str::from_utf8(record.data).ok()
    }

    fn forget(&mut self, owner: u32, kind: u8) {
        self.texts.remove(|record| record.kind == kind && record.owner == owner);
    }

    /// Returns `true` if a session gets a stream for the server's own messages.
    pub(crate) fn may_listen(&self) -> bool {
        self.config.listen && self.sse == Sse::Unused && !self.modern
    }

    /// Returns `true` if the answer to a message may be in an array (JSON-RPC batch).
    pub(crate) fn takes_batches(&self, modern: bool) -> bool {
        !modern && self.version.is_none_or(Revision::has_batches)
    }

    /// Returns the URL of a slot's request: the server's, or the endpoint or redirect that it goes to.
    pub(crate) fn url_of(&self, slot: usize, posts: bool) -> Url<'_> {
        let endpoint = || self.text(0, ENDPOINT).filter(|_| posts);
        let (url, target) = (self.url(), self.text(owner(slot), REDIRECT).or_else(endpoint));
        target.map_or(url, |target| url.with_target(target))
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.text(0, SESSION)
    }

    /// Keeps the id of a new session; it must be visible ASCII.
    pub(crate) fn set_session(&mut self, id: &str) {
        self.forget(0, SESSION);
        if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()) {
            // Without room for the id, the server answers that the session is missing.
            let _ = self.texts.push(0, SESSION, 0, &[id.as_bytes()]);
        }
    }

    /// Ends a legacy session and all that belongs to it.
    pub(crate) fn end_session(&mut self) {
        self.forget(0, SESSION);
        self.version = None;
        self.listening = ListenState::No;
        self.end_sse();
    }

    /// Forgets the stream of HTTP with SSE, and its endpoint.
    pub(crate) fn end_sse(&mut self) {
        if self.sse != Sse::Unused {
            self.forget(0, ENDPOINT);
            // If HTTP with SSE was only a try, the next server on this URL may speak another transport.
            self.sse = if self.config.transport == TransportKind::Sse { Sse::Wanted } else { Sse::Unused };
        }
    }

    pub(crate) fn nonce(&self) -> &str {
        self.text(0, NONCE).unwrap_or("")
    }

    /// Keeps the newest `DPoP-Nonce`, if the caller signs heads.
    pub(crate) fn note_nonce(&mut self, nonce: &str) {
        if self.signs && !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.forget(0, NONCE);
            // Without room for it the server asks for a proof with a nonce again, and the message fails.
            let _ = self.texts.push(0, NONCE, 0, &[nonce.as_bytes()]);
        }
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().filter(|record| record.kind == HEADER).map(|record| record.data)
    }

    pub(crate) fn set_header(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        check_header(name, value)?;
        let size = OVERHEAD + name.len() + 2 + value.len();
        let old = self.header(name).map_or(0, |data| OVERHEAD + data.len());
        if self.texts.used().saturating_sub(old).saturating_add(size) > self.texts.limit() {
            return Err(HeaderError::Room);
        }
        self.remove_header(name);
        let parts = [name.as_bytes(), b": ", value.as_bytes()];
        self.texts.push(0, HEADER, 0, &parts).map_err(|_| HeaderError::Room)
    }

    /// Sets `User-Agent` to the name and version of a client, if it is not set and there is room: firewalls refuse requests without it
    /// ([RFC 9110, section 10.1.5](https://www.rfc-editor.org/rfc/rfc9110#section-10.1.5)).
    pub(crate) fn name_agent(&mut self, info: &ClientInfo<'_>) {
        if self.header("User-Agent").is_some() {
            return;
        }
        let mut agent = FixedText::<AGENT>::EMPTY;
        for (part, end) in [(info.name, &b"/"[..]), (info.version, b"")] {
            part.bytes().for_each(|byte| agent.push(&[if is_token(byte) { byte } else { b'-' }]));
            agent.push(end);
        }
        // The header is left out if it does not fit.
        let _ = self.set_header("User-Agent", agent.as_str());
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers().find(|header| is_named(header, name))
    }

    pub(crate) fn remove_header(&mut self, name: &str) {
        self.texts.remove(|record| record.kind == HEADER && is_named(record.data, name));
    }

    /// Keeps the URL of the `endpoint` event.
    pub(crate) fn set_endpoint(&mut self, reference: &str) -> Result<(), FailureReason> {
        self.resolve(reference, None, (0, ENDPOINT)).map_err(|astray| match astray {
            Astray::Origin => FailureReason::Endpoint,
            Astray::Room => FailureReason::NoRoom,
        })?;
        self.sse = Sse::Known;
        self.signals.endpoint = true;
        Ok(())
    }

    /// Keeps the redirect of a slot. Returns `true` if its message may follow.
    pub(crate) fn redirect(&mut self, slot: usize, location: &str, posts: bool) -> bool {
        !location.is_empty() && self.resolve(location, Some((slot, posts)), (owner(slot), REDIRECT)).is_ok()
    }

    /// Forgets the redirect of a slot whose exchange is over.
    pub(crate) fn forget_redirect(&mut self, slot: usize) {
        self.forget(owner(slot), REDIRECT);
    }

    fn resolve(&mut self, reference: &str, from: Option<(usize, bool)>, place: (u32, u8)) -> Result<(), Astray> {
        let mut url = [0; LONGEST];
        let mut target = [0; LONGEST];
        let url = copied(self.text(0, URL).unwrap_or(""), &mut url)?;
        let url = Url::parse(url).map_err(|_| Astray::Origin)?;
        let from = match from {
            None => url.target(),
            Some((slot, posts)) => copied(self.url_of(slot, posts).target(), &mut target)?,
        };
        self.forget(place.0, place.1);
        resolve(&url, from, reference, &mut self.texts, place).map(|_| ())
    }

    pub(crate) fn learn_version(&mut self, result: Raw<'_>) {
        let version = result.get("protocolVersion").filter(|version| version.kind() == JsonKind::String);
        let text = version.and_then(|version| version.text()).and_then(|text| text.plain());
        self.version = text.and_then(Revision::from_date);
    }
}

fn owner(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX).saturating_add(1)
}

/// Copies a text, so that the store it is in can change.
pub(super) fn copied<'b>(text: &str, bytes: &'b mut [u8; LONGEST]) -> Result<&'b str, Astray> {
    let place = bytes.get_mut(..text.len()).ok_or(Astray::Room)?;
    mcp_sansio::sink::copy(place, text.as_bytes());
    core::str::from_utf8(place).map_err(|_| Astray::Room)
}

/// Checks a header that a caller sets for requests to a server.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), HeaderError> {
    check_free_header(name, value)?;
    let is_param = name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("mcp-param-"));
    if is_param || RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(HeaderError::Reserved);
    }
    Ok(())
}

/// Checks a header that a caller sets for any request: its characters, and that it does not change the framing.
pub(super) fn check_free_header(name: &str, value: &str) -> Result<(), HeaderError> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderError::Name);
    }
    let is_value = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    if !value.bytes().all(is_value) || value.trim_ascii() != value {
        return Err(HeaderError::Value);
    }
    if FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing)) { Err(HeaderError::Reserved) } else { Ok(()) }
}

fn is_named(header: &[u8], name: &str) -> bool {
    let named = header.split(|byte| *byte == b':').next().unwrap_or(&[]);
    named.eq_ignore_ascii_case(name.as_bytes())
}
