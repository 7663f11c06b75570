//! Notifications that the server sends: progress, log messages, changes.

use core::fmt;

use super::around::watched;
use super::topics::{NO_TOPICS, TopicsRef};
use super::{RequestSlot, RequestToken, Server, ServerInfo};
use crate::json::{Raw, object::Object};
use crate::protocol::{ClientCapability, LoggingLevel, PROMPTS, RESOURCES, ServerCapability, TOOLS};
use crate::revision::{Revision, Since};
use crate::rpc::begin_notification;
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

/// A change to publish with [`Server::publish`](super::Server::publish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ServerChange<'u> {
    /// The list of
    /// [tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#list-changed-notification):
    /// `notifications/tools/list_changed`.
    Tools,
    /// The list of
    /// [prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#list-changed-notification):
    /// `notifications/prompts/list_changed`.
    Prompts,
    /// The list of
    /// [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#list-changed-notification):
    /// `notifications/resources/list_changed`.
    Resources,
    /// The contents of the resource with this URI: `notifications/resources/updated`, see
    /// [subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
    Resource(&'u str),
    /// A key of a [`Topic`](crate::service::Topic) of an extension: its notification, to each listen that selected it.
    #[cfg(feature = "extensions")]
    Topic {
        /// The member of the filter of `subscriptions/listen`.
        member: &'u str,
        /// The selected element; empty if the member is a boolean.
        key: &'u str,
    },
    /// Changes were lost, and anything may have changed: all lists that declare that they change, each resource that
    /// a client subscribed to, each key of a topic. The client gets the notification of each, and reads again.
    #[cfg(feature = "alloc")]
    All,
}

impl ServerChange<'_> {
    /// Returns the capability that a service must declare for the change to reach clients; `None` for those of extensions,
    /// which the extension declares, and for [`All`](ServerChange::All), which needs none.
    #[must_use]
    pub const fn capability(&self) -> Option<ServerCapability> {
        match self {
            ServerChange::Tools => Some(ServerCapability::ToolsChanged),
            ServerChange::Prompts => Some(ServerCapability::PromptsChanged),
            ServerChange::Resources => Some(ServerCapability::ResourcesChanged),
            ServerChange::Resource(_) => Some(ServerCapability::Subscribe),
            #[cfg(feature = "extensions")]
            ServerChange::Topic { .. } => None,
            #[cfg(feature = "alloc")]
            ServerChange::All => None,
        }
    }

    /// Returns the bits of the lists that change; 0 for a single resource.
    pub(crate) const fn list_bit(&self) -> u8 {
        match self {
            ServerChange::Tools => TOOLS,
            ServerChange::Prompts => PROMPTS,
            ServerChange::Resources => RESOURCES,
            ServerChange::Resource(_) => 0,
            #[cfg(feature = "extensions")]
            ServerChange::Topic { .. } => 0,
            #[cfg(feature = "alloc")]
            ServerChange::All => TOOLS | PROMPTS | RESOURCES,
        }
    }
}

/// The outcome of a progress notification or a log message. None of the values is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum NotifyStatus {
    /// It was written.
    Sent,
    /// It was left out: the client did not ask for it, or the progress does not increase.
    NotAsked,
    /// It was left out: the sink has no room. Call again if it matters.
    NoRoom,
    /// The request was answered or cancelled.
    Stale,
}

/// The outcome of [`Server::pull`](super::Server::pull).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum PullStatus {
    /// Everything was written.
    Idle,
    /// The sink is full: send the pending bytes, then pull again.
    More,
    /// A notification was left out: it is larger than the empty sink.
    TooSmall,
}

/// The [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress) of a request: numbers,
/// also with a fraction.
///
/// ```
/// use mcp_sansio::server::Progress;
///
/// let files = Progress::new(3).of(10).message("3 of 10 files");
/// let share = Progress::new(0.25).of(1.0);
/// # let _ = (files, share);
/// ```
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[doc(alias = "ProgressNotification")]
#[must_use]
pub struct Progress<'p> {
    /// `progress`
    #[doc(alias = "progress")]
    pub done: ProgressValue,
    /// `total`
    pub total: Option<ProgressValue>,
    /// `message` (from 2025-03-26 on)
    pub message: Option<&'p str>,
}

impl<'p> Progress<'p> {
    /// Makes a progress of `done`. Only values that increase are sent.
    pub fn new(done: impl Into<ProgressValue>) -> Self {
        Progress { done: done.into(), total: None, message: None }
    }

    /// Sets `total`. Default: absent.
    pub fn of(self, total: impl Into<ProgressValue>) -> Self {
        Progress { total: Some(total.into()), ..self }
    }

    /// Sets `message`, a text for the user (from 2025-03-26 on). Default: absent.
    pub const fn message(self, message: &'p str) -> Self {
        Progress { message: Some(message), ..self }
    }
}

/// A number of [`Progress`], by `into()` from an integer or a float. One that is negative or not finite is never written: as
/// `progress` it sends nothing, as `total` it is left out.
///
/// Values are compared as `f64`: above 2^53 two integers that are neighbours can count as equal.
#[derive(Clone, Copy)]
pub struct ProgressValue {
    /// An integer, or the bits of a float.
    bits: u64,
    /// Writes a float. A function: so a program with integers is linked without the formatting of floats.
    float: Option<WriteFloat>,
}

type WriteFloat = fn(&mut Writer<'_>, u64);

impl ProgressValue {
    /// A value that is never written.
    const NONE: ProgressValue = ProgressValue { bits: u64::MAX, float: Some(|_, _| {}) };

    /// Returns a number that increases with the value: the bits of a float that is not negative. Made without the
    /// arithmetic of floats, which devices have as a library.
    const fn rank(self) -> Option<u64> {
        const MANTISSA: u32 = 52;
        match self.float {
            // A negative float has the highest bit.
            Some(_) if self.bits >= f64::INFINITY.to_bits() => None,
            Some(_) => Some(self.bits),
            None if self.bits == 0 => Some(0),
            None => {
                let zeros = self.bits.leading_zeros();
                let exponent = (1023 + 63 - zeros) as u64;
                // The highest bit is implied.
                Some((exponent << MANTISSA) | (((self.bits << zeros) << 1) >> (64 - MANTISSA)))
            }
        }
    }

    fn write(self, out: &mut Writer<'_>) {
        match self.float {
            None => out.unsigned(self.bits),
            Some(write) => write(out, self.bits),
        }
    }
}

impl fmt::Debug for ProgressValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.float {
            None => self.bits.fmt(f),
            Some(_) => f64::from_bits(self.bits).fmt(f),
        }
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for ProgressValue {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self.float {
            None => defmt::write!(f, "{=u64}", self.bits),
            Some(_) => defmt::write!(f, "{=f64}", f64::from_bits(self.bits)),
        }
    }
}

impl From<f64> for ProgressValue {
    fn from(value: f64) -> Self {
        // -0.0 is 0.
        let bits = if value.to_bits() << 1 == 0 { 0 } else { value.to_bits() };
        // As `{:?}`: 1e300 has no 301 digits.
        let float: WriteFloat = |out, bits| out.display(format_args!("{:?}", f64::from_bits(bits)));
        ProgressValue { bits, float: Some(float) }
    }
}

impl From<f32> for ProgressValue {
    fn from(value: f32) -> Self {
        f64::from(value).into()
    }
}

macro_rules! progress_values {
    ($($type:ty)*) => { $(
        impl From<$type> for ProgressValue {
            fn from(value: $type) -> Self {
                u64::try_from(value).map_or(ProgressValue::NONE, |bits| ProgressValue { bits, float: None })
            }
        }
    )* };
}

progress_values!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl Server<'_> {
    /// Writes `notifications/progress`, if the client sent a `progressToken` with the request.
    pub fn progress(&mut self, token: RequestToken, progress: Progress<'_>, out: &mut dyn Out) -> NotifyStatus {
        match self.slot_mut(token) {
            Some(slot) => notify_progress(slot, progress, 0, out),
            None => NotifyStatus::Stale,
        }
    }

    /// Writes a log message, `notifications/message`, for a request or (up to 2025-11-25) for the connection. See
    /// [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    pub fn log(
        &mut self,
        about: &ServerInfo<'_>,
        token: Option<RequestToken>,
        level: LoggingLevel,
        logger: Option<&str>,
        message: fmt::Arguments<'_>,
        out: &mut dyn Out,
    ) -> NotifyStatus {
        self.tell_log(about, token, level, logger, &mut |params| params.shown("data", &message), out)
    }

    /// Does the same as [`log`](Server::log) with any JSON as `data`.
    pub fn log_data(
        &mut self,
        about: &ServerInfo<'_>,
        token: Option<RequestToken>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: Raw<'_>,
        out: &mut dyn Out,
    ) -> NotifyStatus {
        self.tell_log(about, token, level, logger, &mut |params| params.raw("data", data), out)
    }

    fn tell_log(
        &self,
        about: &ServerInfo<'_>,
        token: Option<RequestToken>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: &mut dyn FnMut(&mut Object<'_, '_>),
        out: &mut dyn Out,
    ) -> NotifyStatus {
        let least = match self.least_logged(about, token) {
            Ok(least) => least,
            Err(status) => return status,
        };
        let told = watched(about.around, self.sends(), out, |out| notify_log(least, level, logger, data, 0, out));
        told.unwrap_or(NotifyStatus::Stale)
    }

    /// Returns the least level of the log messages that the client wants; `None` if it wants none.
    fn least_logged(
        &self,
        about: &ServerInfo<'_>,
        token: Option<RequestToken>,
    ) -> Result<Option<LoggingLevel>, NotifyStatus> {
        if !about.has(ServerCapability::Logging) {
            return Err(NotifyStatus::NotAsked);
        }
        match token {
            None => Ok(self.peer.revision().map(|_| self.peer.log_level)),
            Some(token) => Ok(least_level(self.slot(token).ok_or(NotifyStatus::Stale)?, self.peer.log_level)),
        }
    }

    /// Returns whether a client has subscribed to something, so that a program can rest that looks for changes.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.subscriptions.used() > 0
    }

    /// Returns whether [`pull`](Server::pull) may have something to write.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.news || (self.peer.changed != 0 && self.peer.is_initialized())
    }

    /// Writes the notifications of published changes, and the results of subscriptions that end. Call it when the
    /// sink has room; it can be called at any time.
    ///
    /// Programs with a service call [`Service::pull`](crate::service::Service::pull): this method leaves out the notifications of extensions.
    pub fn pull(&mut self, about: &ServerInfo<'_>, out: &mut dyn Out) -> PullStatus {
        self.pull_with(about, NO_TOPICS, out)
    }

    /// Does the same as [`pull`](Server::pull), with the notifications of extensions.
    #[inline]
    pub(crate) fn pull_with(&mut self, about: &ServerInfo<'_>, topics: TopicsRef<'_>, out: &mut dyn Out) -> PullStatus {
        let Some(write) = self.write_news.filter(|_| self.has_news()) else { return PullStatus::Idle };
        match write(self, about, topics, out) {
            Ok(status) => status,
            Err(FullError::Now) => PullStatus::More,
            Err(FullError::Never) => PullStatus::TooSmall,
        }
    }

    /// Writes `notifications/elicitation/complete`: the user has been to the URL of an elicitation (2025-11-25). See
    /// [URL
    /// mode](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
    /// Returns [`NotifyStatus::NotAsked`] for clients of other revisions, and for those without the capability
    /// `elicitation.url`.
    ///
    /// `elicitation_id` is the `id` that [`InputRequest::visit`](crate::service::InputRequest::visit) was given, and
    /// the present peer must be the client that was asked: neither is checked. The notification is the server's
    /// choice; no adapter sends it. Call it in a loop of your own, with
    /// [`LineServer::out`](crate::line_server::LineServer::out).
    ///
    /// # Errors
    /// [`FullError`] if the sink has no room; then nothing was written.
    pub fn elicitation_complete(&mut self, elicitation_id: &str, out: &mut dyn Out) -> Result<NotifyStatus, FullError> {
        let knows = self.peer.revision().is_some_and(Revision::has_elicitation_complete);
        if !knows || !self.peer.capabilities.has(ClientCapability::ElicitUrl) {
            return Ok(NotifyStatus::NotAsked);
        }
        whole(out, MessageHead::Notification, |out| {
            begin_notification(out, "notifications/elicitation/complete", ",\"params\":");
            let mut params = Object::open(out);
            params.text("elicitationId", elicitation_id);
            params.finish().put(b"}")
        })?;
        Ok(NotifyStatus::Sent)
    }
}

/// Returns the least level of the log messages that the client of a request wants; `None` if it wants none.
pub(crate) fn least_level(slot: &RequestSlot, session: LoggingLevel) -> Option<LoggingLevel> {
    if slot.revision.is_modern() { slot.level } else { Some(session) }
}

/// Writes a progress notification if the client asked for it. Leaves `keep` bytes of room after it.
pub(crate) fn notify_progress(
    slot: &mut RequestSlot,
    progress: Progress<'_>,
    keep: usize,
    out: &mut dyn Out,
) -> NotifyStatus {
    let token = slot.progress_token.as_bytes();
    let Some(rank) = progress.done.rank().filter(|rank| !token.is_empty() && *rank >= slot.progress) else {
        return NotifyStatus::NotAsked;
    };
    let revision = slot.revision;
    let status = notify(keep, out, |out| {
        begin_notification(out, "notifications/progress", ",\"params\":{\"progressToken\":");
        out.put(token);
        let mut params = Object::resume(out, false);
        progress.done.write(params.key("progress"));
        if let Some(total) = progress.total.filter(|total| total.rank().is_some()) {
            total.write(params.key("total"));
        }
        if revision.has(Since::ProgressMessage) {
            params.text_if("message", progress.message);
        }
        params.finish().put(b"}")
    });
    if status == NotifyStatus::Sent {
        slot.progress = rank.saturating_add(1);
    }
    status
}

/// Writes a log message if the client asked for its level. Leaves `keep` bytes of room after it. `data` writes the
/// member of that name.
pub(crate) fn notify_log(
    least: Option<LoggingLevel>,
    level: LoggingLevel,
    logger: Option<&str>,
    data: &mut dyn FnMut(&mut Object<'_, '_>),
    keep: usize,
    out: &mut dyn Out,
) -> NotifyStatus {
    if least.is_none_or(|least| level < least) {
        return NotifyStatus::NotAsked;
    }
    notify(keep, out, |out| {
        begin_notification(out, "notifications/message", ",\"params\":");
        let mut params = Object::open(out);
        params.text("level", level.name());
        params.text_if("logger", logger);
        data(&mut params);
        params.finish().put(b"}")
    })
}

/// Writes a notification, unless it would take the last `keep` bytes of room: these belong to a reply.
fn notify(keep: usize, out: &mut dyn Out, write: impl FnOnce(&mut Writer<'_>)) -> NotifyStatus {
    let mark = out.mark();
    if whole(out, MessageHead::Notification, write).is_err() {
        return NotifyStatus::NoRoom;
    }
    if out.room() < keep {
        out.roll_back(mark);
        return NotifyStatus::NoRoom;
    }
    NotifyStatus::Sent
}
