//! What all connections share: the URL, the session, headers, what was learned.

use core::fmt;

use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::records::{OVERHEAD, Records};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::store::Store;

use super::Listening;
use super::config::{Config, Transport};
use super::event::Why;
use super::head::{BadHeader, RESERVED};
use super::params::Tools;
use super::slot::Task;
use super::url::{Astray, Url, UrlError, resolve};
use crate::wire::chunked::is_token;

/// What all connections share.
pub(crate) struct Site<'m> {
    pub(crate) config: Config,
    pub(crate) now: Millis,
    /// The URL first.
    texts: Records<'m>,
    pub(crate) tools: Tools<'m>,
    /// What `initialize` was answered with.
    pub(crate) version: Option<Revision>,
    pub(crate) listening: Listening,
    pub(crate) old: Old,
    /// Requests have been of 2026-07-28.
    pub(crate) modern: bool,
    /// What one exchange found out that concerns the others.
    pub(crate) news: News,
}

/// How it stands with the transport of 2024-11-05.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// It is not this one.
    No,
    /// A stream is to be opened, to find out or anew.
    Wanted,
    /// The stream is there, or almost, but where to post to is not known.
    Opening,
    /// Messages are posted to the endpoint.
    Known,
}

/// What one exchange found out that concerns the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// `notifications/initialized` was accepted.
    pub(crate) initialized: bool,
    /// The session is lost.
    pub(crate) lost: bool,
    /// The endpoint of the old transport is known.
    pub(crate) endpoint: bool,
    /// The stream of the old transport could not be opened, or is gone.
    pub(crate) old_failed: Option<Why>,
}

const URL: u8 = 0;
/// Where to post to, if not to the URL.
const ENDPOINT: u8 = 1;
const SESSION: u8 = 2;
/// A header that was set, as it is written.
const HEADER: u8 = 3;
/// Where the slot of that number was redirected to.
const REDIRECT: u8 = 4;

/// Without the session's id and the headers, which may be secret.
impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url();
        f.debug_struct("Site")
            .field("secure", &url.is_secure())
            .field("authority", &url.authority())
            .finish_non_exhaustive()
    }
}

impl<'m> Site<'m> {
    pub(crate) fn new(url: &str, config: Config, texts: Store<'m>, tools: Store<'m>) -> Result<Self, UrlError> {
        Url::parse(url)?;
        let text = url.trim_ascii().split('#').next().unwrap_or("");
        let mut texts = Records::new(texts);
        texts.push(0, URL, 0, &[text.as_bytes()]).map_err(|_| UrlError::Room)?;
        Ok(Site {
            config,
            now: 0,
            texts,
            tools: Tools::new(tools, config.tools),
            version: None,
            listening: Listening::No,
            old: if config.transport == Transport::Sse { Old::Wanted } else { Old::No },
            modern: false,
            news: News::default(),
        })
    }

    pub(crate) fn url(&self) -> Url<'_> {
        // It was parsed when it was kept.
        Url::parse(self.text(0, URL).unwrap_or("")).unwrap_or(Url::NOWHERE)
    }

    fn text(&self, owner: u32, kind: u8) -> Option<&str> {
        let record = self.texts.iter().find(|record| record.kind == kind && record.owner == owner)?;
        core::str::from_utf8(record.data).ok()
    }

    fn forget(&mut self, owner: u32, kind: u8) {
        self.texts.remove(|record| record.kind == kind && record.owner == owner);
    }

    /// Whether the answer to a message may stand in an array.
    pub(crate) fn takes_batches(&self, task: &Task) -> bool {
        !task.modern && self.version.is_none_or(Revision::has_batches)
    }

    pub(crate) const fn is_old(&self) -> bool {
        matches!(self.old, Old::Known)
    }

    /// The target of a slot's message.
    pub(crate) fn post_target(&self, slot: usize) -> &str {
        let own = self.text(owner(slot), REDIRECT).or_else(|| self.text(0, ENDPOINT));
        own.unwrap_or_else(|| self.url().target())
    }

    /// The target of a slot's stream.
    pub(crate) fn stream_target(&self, slot: usize) -> &str {
        self.text(owner(slot), REDIRECT).unwrap_or_else(|| self.url().target())
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.text(0, SESSION)
    }

    /// Takes the id of a new session; it must be visible ASCII.
    pub(crate) fn set_session(&mut self, id: &str) {
        self.drop_session();
        if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()) {
            // Where there is no room, the server will say that the session is missing.
            let _ = self.texts.push(0, SESSION, 0, &[id.as_bytes()]);
        }
    }

    pub(crate) fn drop_session(&mut self) {
        self.forget(0, SESSION);
    }

    /// Everything that belongs to a legacy session is over.
    pub(crate) fn end_session(&mut self) {
        self.drop_session();
        self.version = None;
        self.listening = Listening::No;
        self.end_old();
    }

    /// The stream of the old transport is gone, and with it the endpoint.
    pub(crate) fn end_old(&mut self) {
        if self.old != Old::No {
            self.forget(0, ENDPOINT);
            // Where the transport was merely tried, it may be another one the next time.
            self.old = if self.config.transport == Transport::Sse { Old::Wanted } else { Old::No };
        }
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().filter(|record| record.kind == HEADER).map(|record| record.data)
    }

    pub(crate) fn set_header(&mut self, name: &str, value: &str) -> Result<(), BadHeader> {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(BadHeader::Name);
        }
        let is_param = name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("mcp-param-"));
        if is_param || RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
            return Err(BadHeader::Reserved);
        }
        let is_value = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
        if !value.bytes().all(is_value) || value.trim_ascii() != value {
            return Err(BadHeader::Value);
        }
        let size = OVERHEAD + name.len() + 2 + value.len();
        let old = self.header(name).map_or(0, |data| OVERHEAD + data.len());
        if self.texts.used().saturating_sub(old).saturating_add(size) > self.texts.limit() {
            return Err(BadHeader::Room);
        }
        self.remove_header(name);
        let parts = [name.as_bytes(), b": ", value.as_bytes()];
        self.texts.push(0, HEADER, 0, &parts).map_err(|_| BadHeader::Room)
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers().find(|header| is_named(header, name))
    }

    pub(crate) fn remove_header(&mut self, name: &str) {
        self.texts.remove(|record| record.kind == HEADER && is_named(record.data, name));
    }

    /// The endpoint of the old transport has come.
    pub(crate) fn set_endpoint(&mut self, reference: &str) -> Result<(), Why> {
        self.resolve(reference, None, (0, ENDPOINT)).map_err(|astray| match astray {
            Astray::Origin => Why::Endpoint,
            Astray::Room => Why::NoRoom,
        })?;
        self.old = Old::Known;
        self.news.endpoint = true;
        Ok(())
    }

    /// A slot is redirected; whether its message may follow.
    pub(crate) fn redirect(&mut self, slot: usize, location: &str, post: bool) -> bool {
        !location.is_empty() && self.resolve(location, Some((slot, post)), (owner(slot), REDIRECT)).is_ok()
    }

    pub(crate) fn has_redirect(&self, slot: usize) -> bool {
        self.text(owner(slot), REDIRECT).is_some()
    }

    /// The exchange of a slot is over.
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
            Some((slot, true)) => copied(self.post_target(slot), &mut target)?,
            Some((slot, false)) => copied(self.stream_target(slot), &mut target)?,
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

/// The longest URL and target that references are resolved against.
const LONGEST: usize = 1024;

fn owner(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX).saturating_add(1)
}

fn copied<'b>(text: &str, bytes: &'b mut [u8; LONGEST]) -> Result<&'b str, Astray> {
    let place = bytes.get_mut(..text.len()).ok_or(Astray::Room)?;
    for (to, from) in place.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    core::str::from_utf8(place).map_err(|_| Astray::Room)
}

fn is_named(header: &[u8], name: &str) -> bool {
    let named = header.split(|byte| *byte == b':').next().unwrap_or(&[]);
    named.eq_ignore_ascii_case(name.as_bytes())
}
