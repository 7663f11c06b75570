//! What a server tells without being asked: progress, log messages, changes.

use core::fmt;

use super::{About, Engine, Slot, Token};
use crate::json::{Raw, object::Object};
use crate::protocol::{ClientFeature, Feature, Level};
use crate::revision::{Revision, Since};
use crate::sink::{Full, Kind, Out, Writer, whole};

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Change<'u> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The contents of the resource with this URI.
    Resource(&'u str),
}

impl Change<'_> {
    /// The bit of a list that changes; 0 for a single resource.
    pub(crate) const fn list_bit(&self) -> u8 {
        match self {
            Change::Tools => 1,
            Change::Prompts => 2,
            Change::Resources => 4,
            Change::Resource(_) => 0,
        }
    }
}

/// What became of a progress notification or a log message. None of these is an error: a client that did not ask
/// is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Told {
    /// It was written.
    Sent,
    /// The client did not ask for it, or it is no step forward.
    NotAsked,
    /// There is no room in the sink; it was left out. Call again if it matters.
    NoRoom,
    /// The request was answered or cancelled.
    Stale,
}

/// What [`ServerOf::pull`](super::ServerOf::pull) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum Pull {
    /// There is nothing to say.
    Idle,
    /// There is more to say: send what is pending, then pull again.
    More,
    /// Something went unsaid, because the sink is too small for it even when it is empty.
    TooSmall,
}

/// How far a request is.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Progress<'p> {
    /// So much is done.
    pub done: u64,
    /// Out of so much.
    pub total: Option<u64>,
    /// What is being done.
    pub message: Option<&'p str>,
}

impl<'p> Progress<'p> {
    /// So much is done. Only steps forward are sent.
    #[must_use]
    pub const fn new(done: u64) -> Self {
        Progress { done, total: None, message: None }
    }

    /// Out of so much.
    #[must_use]
    pub const fn of(self, total: u64) -> Self {
        Progress { total: Some(total), ..self }
    }

    /// What is being done (from 2025-03-26 on).
    #[must_use]
    pub const fn message(self, message: &'p str) -> Self {
        Progress { message: Some(message), ..self }
    }
}

impl Engine<'_> {
    /// Tells how far a request is, if its client asked for that.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>, out: &mut dyn Out) -> Told {
        match self.slot_mut(token) {
            Some(slot) => tell_progress(slot, progress, 0, out),
            None => Told::Stale,
        }
    }

    /// Sends a log message on behalf of a request, or of nobody in particular (which 2026-07-28 does not have).
    pub fn log(
        &mut self,
        about: &About<'_>,
        token: Option<Token>,
        level: Level,
        logger: Option<&str>,
        message: fmt::Arguments<'_>,
        out: &mut dyn Out,
    ) -> Told {
        match self.least_told(about, token) {
            Ok(least) => tell_log(least, level, logger, &mut |params| params.shown("data", &message), 0, out),
            Err(told) => told,
        }
    }

    /// As [`log`](Engine::log), with `data` that is any JSON.
    pub fn log_data(
        &mut self,
        about: &About<'_>,
        token: Option<Token>,
        level: Level,
        logger: Option<&str>,
        data: Raw<'_>,
        out: &mut dyn Out,
    ) -> Told {
        match self.least_told(about, token) {
            Ok(least) => tell_log(least, level, logger, &mut |params| params.raw("data", data), 0, out),
            Err(told) => told,
        }
    }

    /// The least level of log messages that is told, `None` for none, or why nothing is.
    fn least_told(&self, about: &About<'_>, token: Option<Token>) -> Result<Option<Level>, Told> {
        if !about.has(Feature::Logging) {
            return Err(Told::NotAsked);
        }
        match token {
            None => Ok(self.peer.revision.map(|_| self.peer.level)),
            Some(token) => {
                let slot = self.slot(token).ok_or(Told::Stale)?;
                Ok(least_level(slot, self.peer.level))
            }
        }
    }

    /// Tells that something has changed. This only sets marks: it cannot fail, repeated changes fold into one, and
    /// [`pull`](Engine::pull) writes what there is to say.
    pub fn publish(&mut self, change: Change<'_>) {
        self.mark(change);
    }

    /// Whether anybody waits to hear of changes, so that whoever looks for them can rest if not.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.subscriptions.used() > 0
    }

    /// Whether [`pull`](Engine::pull) may have something to write.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.news || (self.peer.changed != 0 && self.peer.initialized)
    }

    /// Writes what was published and what ends. Call it whenever the sink has room; it may be called at any time.
    pub fn pull(&mut self, about: &About<'_>, out: &mut dyn Out) -> Pull {
        if !self.has_news() {
            return Pull::Idle;
        }
        let Some(tell) = self.teller else { return Pull::Idle };
        match tell(self, about, out) {
            Ok(pull) => pull,
            Err(Full::Now) => Pull::More,
            Err(Full::Never) => Pull::TooSmall,
        }
    }

    /// Tells a client of 2025-11-25 that the user has been to the URL of an elicitation, by
    /// `notifications/elicitation/complete`. [`Told::NotAsked`] for clients of other revisions and for those that did not
    /// declare `elicitation.url`: they cannot have been asked.
    ///
    /// `elicitation_id` is the `id` that [`Question::visit`](crate::service::Question::visit) was given, and the present
    /// peer must be the client that was asked: neither is checked. The notification is the server's choice; no adapter sends
    /// it, so it needs a loop of one's own, with [`Session::parts`](crate::session::Session::parts).
    ///
    /// # Errors
    /// [`Full`] if there is no room for it; nothing was written then.
    pub fn elicitation_complete(&mut self, elicitation_id: &str, out: &mut dyn Out) -> Result<Told, Full> {
        let knows = self.peer.revision.is_some_and(Revision::has_url_elicitation_error);
        if !knows || !self.peer.client.has(ClientFeature::ElicitUrl) {
            return Ok(Told::NotAsked);
        }
        whole(out, Kind::Notification, |out| {
            out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\",\"params\":")?;
            let mut params = Object::open(out);
            params.text("elicitationId", elicitation_id)?;
            params.close()?;
            out.put(b"}")
        })?;
        Ok(Told::Sent)
    }
}

/// The least level that a request's client wants to hear of; `None` for none.
pub(crate) fn least_level(slot: &Slot, session: Level) -> Option<Level> {
    if slot.revision.is_modern() { slot.level } else { Some(session) }
}

/// Writes a progress notification if it was asked for, leaving `keep` bytes of room behind it.
pub(crate) fn tell_progress(slot: &mut Slot, progress: Progress<'_>, keep: usize, out: &mut dyn Out) -> Told {
    let token = slot.progress_token.as_bytes();
    if token.is_empty() || progress.done < slot.progress {
        return Told::NotAsked;
    }
    let (revision, done) = (slot.revision, progress.done);
    let told = tell(keep, out, |out| {
        out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":")?;
        out.put(token)?;
        let mut params = Object::resume(out, false);
        params.number("progress", done)?;
        if let Some(total) = progress.total {
            params.number("total", total)?;
        }
        if revision.has(Since::ProgressMessage) {
            params.text_if("message", progress.message)?;
        }
        params.close()?;
        out.put(b"}")
    });
    if told == Told::Sent {
        slot.progress = done.saturating_add(1);
    }
    told
}

/// Writes a log message if its level was asked for, leaving `keep` bytes of room behind it. `data` writes the member of
/// that name.
pub(crate) fn tell_log(
    least: Option<Level>,
    level: Level,
    logger: Option<&str>,
    data: &mut dyn FnMut(&mut Object<'_, '_>) -> Result<(), Full>,
    keep: usize,
    out: &mut dyn Out,
) -> Told {
    if least.is_none_or(|least| level < least) {
        return Told::NotAsked;
    }
    tell(keep, out, |out| {
        out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":")?;
        let mut params = Object::open(out);
        params.text("level", level.name())?;
        params.text_if("logger", logger)?;
        data(&mut params)?;
        params.close()?;
        out.put(b"}")
    })
}

/// Writes a notification, unless it would take the last `keep` bytes of room: these belong to a reply.
fn tell(keep: usize, out: &mut dyn Out, write: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Told {
    let mark = out.mark();
    if whole(out, Kind::Notification, write).is_err() {
        return Told::NoRoom;
    }
    if out.room() < keep {
        out.roll_back(mark);
        return Told::NoRoom;
    }
    Told::Sent
}
