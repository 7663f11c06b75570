//! Opening a connection: the probe, `initialize`, and which revision is spoken then.

use super::answer::is_complete;
use super::flight::{after, has_come};
use super::profile::MetaParts;
use super::request::write_request;
use super::time::write_timed_out;
use super::{Engine, Event, Failure, Lost, Oddity, RpcError, SendError};
use crate::json::{Raw, Text};
use crate::protocol::{ClientFeatures, Features, Method, code, meta};
use crate::revision::{Era, Revision};
use crate::rpc::Envelope;
use crate::server::Millis;
use crate::sink::{Full, Kind, Out, whole};

/// How far the opening is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    WantProbe,
    Probing,
    WantInitialize,
    Initializing,
    Ready,
    Failed(Lost),
    Over,
}

/// The opening of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    phase: Phase,
    /// The id on the wire of the probe or of `initialize`.
    wire: u32,
    /// The id of a probe that took too long: its answer may still come. 0 if there is none.
    late_probe: u32,
    /// The id of an `initialize` that is not needed any more, because the probe was answered late: its answer may still
    /// come. 0 if there is none.
    late_initialize: u32,
    tries: u8,
    /// The revision that `initialize` asks for.
    asks: Option<Revision>,
    deadline: Option<Millis>,
}

impl Opening {
    pub(crate) const NEW: Opening = Opening {
        phase: Phase::Idle,
        wire: 0,
        late_probe: 0,
        late_initialize: 0,
        tries: 0,
        asks: None,
        deadline: None,
    };

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    pub(crate) fn is_on_wire(&self, wire: u64) -> bool {
        wire != 0 && [self.wire, self.late_probe, self.late_initialize].iter().any(|&own| u64::from(own) == wire)
    }

    pub(crate) const fn due(&self) -> Option<Millis> {
        self.deadline
    }

    fn want(&mut self, phase: Phase) {
        self.phase = phase;
        self.deadline = None;
        self.wire = 0;
    }
}

/// The most times that a server may answer the probe or `initialize` with another revision to try.
const TRIES: u8 = 3;

/// What the server says of itself.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Connected<'a> {
    /// What is spoken.
    pub revision: Revision,
    /// Who the server says it is, for people only: `serverInfo`.
    pub server: Option<Raw<'a>>,
    /// The `capabilities` object.
    pub capabilities: Option<Raw<'a>>,
    /// What a model should know of the server.
    pub instructions: Option<Text<'a>>,
    /// The whole result; `null` where nothing was asked.
    pub result: Raw<'a>,
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Unconnected<'a> {
    /// The server refused with an error.
    Error(RpcError<'a>),
    /// There was no answer.
    Lost(Lost),
    /// There is no revision that both speak.
    NoCommonRevision,
}

impl core::fmt::Display for Unconnected<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Unconnected::Error(error) => write!(f, "the server refused: {error}"),
            Unconnected::Lost(lost) => lost.fmt(f),
            Unconnected::NoCommonRevision => f.write_str("there is no revision that both sides speak"),
        }
    }
}

impl Engine<'_> {
    /// Opens the connection: [`advance`](super::ClientOf::advance) writes the first message, and
    /// [`Event::Connected`] or [`Event::Unconnected`] follows.
    ///
    /// A client of both eras sends `server/discover` first; whatever comes back that is no modern answer, and nothing
    /// within the time for it, makes it fall back to `initialize` on the same connection.
    ///
    /// A client that is connected already begins anew, as with [`reconnect`](super::ClientOf::reconnect): requests in
    /// flight end as [`Lost::Closed`], listens are opened again.
    pub fn connect(&mut self) {
        self.lose_all(Lost::Closed, true);
        let known = self.revision;
        self.revision = None;
        self.offered = Features::NONE;
        self.opening = Opening::NEW;
        let modern = self.profile.revisions.of(Era::Modern).next().is_some();
        let legacy = known.is_some_and(|revision| !revision.is_modern());
        self.opening.phase = if modern && !legacy { Phase::WantProbe } else { Phase::WantInitialize };
    }

    /// Opens the connection with a revision that the server is known to speak: no probe is needed. Under 2026-07-28
    /// requests can be sent at once, and nothing is known of the server until [`Request::discover`](super::Request)
    /// asks it. What is in flight ends as with [`connect`](super::ClientOf::connect).
    pub fn connect_as(&mut self, revision: Revision) {
        self.lose_all(Lost::Closed, true);
        self.opening = Opening::NEW;
        self.revision = Some(revision);
        if revision.is_modern() {
            self.offered = Features::ALL;
            self.opening.phase = Phase::Ready;
        } else {
            self.offered = Features::NONE;
            self.opening.phase = Phase::WantInitialize;
            self.opening.asks = Some(revision);
        }
    }

    /// Opens a lost connection again, in the era that it had. Requests in flight are lost; listens are opened again, and
    /// [`Event::Listening`] tells with how much of them.
    pub fn reconnect(&mut self, why: Lost) {
        self.lose_all(why, true);
        match self.revision.filter(|revision| revision.is_modern()) {
            Some(_) => self.connect(),
            None => {
                let known = self.revision;
                self.connect();
                self.opening.asks = known;
            }
        }
    }

    /// Whether the connection is open.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.opening.is_ready()
    }

    /// Whether the connection is being opened.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        !matches!(self.opening.phase, Phase::Idle | Phase::Ready | Phase::Over)
    }

    /// Writes what the opening has to say.
    pub(crate) fn advance_opening(&mut self, out: &mut dyn Out) -> Result<Option<Event<'static>>, Full> {
        if let Phase::Failed(why) = self.opening.phase {
            self.opening.want(Phase::Over);
            return Ok(Some(Event::Unconnected(Unconnected::Lost(why))));
        }
        if self.opening.deadline.is_some_and(|deadline| has_come(deadline, self.now)) {
            match self.opening.phase {
                Phase::Probing if self.newest(Era::Legacy).is_some() => {
                    self.opening.late_probe = self.opening.wire;
                    self.opening.want(Phase::WantInitialize);
                }
                phase => {
                    // `initialize` must not be cancelled.
                    if phase == Phase::Probing {
                        write_timed_out(self.opening.wire, out)?;
                    }
                    self.opening.want(Phase::Over);
                    return Ok(Some(Event::Unconnected(Unconnected::Lost(Lost::TimedOut))));
                }
            }
        }
        match self.opening.phase {
            Phase::WantProbe => self.probe(out)?,
            Phase::WantInitialize => match self.opening.asks.or(self.newest(Era::Legacy)) {
                Some(revision) => self.initialize(revision, out)?,
                None => {
                    self.opening.want(Phase::Over);
                    return Ok(Some(Event::Unconnected(Unconnected::NoCommonRevision)));
                }
            },
            _ => {}
        }
        Ok(None)
    }

    fn newest(&self, era: Era) -> Option<Revision> {
        self.profile.revisions.of(era).last()
    }

    fn probe(&mut self, out: &mut dyn Out) -> Result<(), Full> {
        let Some(revision) = self.newest(Era::Modern) else {
            self.opening.want(Phase::WantInitialize);
            return Ok(());
        };
        let (wire, profile) = (self.next_wire(), self.profile);
        write_request(out, wire, Method::Discover.name(), &mut |params| {
            profile.write_meta(params, revision, MetaParts::default())
        })?;
        self.on_the_wire(Phase::Probing, wire);
        Ok(())
    }

    fn initialize(&mut self, revision: Revision, out: &mut dyn Out) -> Result<(), Full> {
        let (wire, profile) = (self.next_wire(), self.profile);
        write_request(out, wire, Method::Initialize.name(), &mut |params| {
            params.text("protocolVersion", revision.date())?;
            profile.write_capabilities(params.key("capabilities"), revision)?;
            profile.write_info(params.key("clientInfo"), revision)
        })?;
        self.opening.asks = Some(revision);
        self.on_the_wire(Phase::Initializing, wire);
        Ok(())
    }

    fn on_the_wire(&mut self, phase: Phase, wire: u32) {
        self.last_wire = wire;
        self.opening.phase = phase;
        self.opening.wire = wire;
        self.opening_time(wire.into(), true);
    }

    /// The time of the probe or of `initialize` begins, or stands still.
    pub(crate) fn opening_time(&mut self, wire: u64, goes: bool) {
        if wire != u64::from(self.opening.wire) {
            return;
        }
        // Without a legacy revision to fall back to, the probe may take as long as any request.
        let probes = self.opening.phase == Phase::Probing && self.newest(Era::Legacy).is_some();
        let time = if probes { self.probe_timeout } else { self.timeout };
        self.opening.deadline = after(self.now, time.filter(|_| goes));
    }

    /// The answer to the probe or to `initialize`.
    pub(crate) fn opening_answered<'a>(
        &mut self,
        wire: u64,
        envelope: &Envelope<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Event<'a>>, Full> {
        if wire == u64::from(self.opening.late_initialize) {
            self.opening.late_initialize = 0;
            return Ok(None);
        }
        let late = wire == u64::from(self.opening.late_probe);
        if late {
            self.opening.late_probe = 0;
        }
        let probes = late || self.opening.phase == Phase::Probing;
        // A result of another type is no answer to the probe.
        let result = envelope.result.filter(|&result| !probes || is_complete(result));
        match (self.opening.phase, result, envelope.error) {
            (Phase::Probing, Some(result), None) => Ok(self.discovered(result)),
            // `initialize` is on its way, or waits for room.
            (Phase::Initializing | Phase::WantInitialize, Some(result), None) if late => {
                Ok(self.discovered_late(result))
            }
            (Phase::Initializing, Some(result), None) => self.initialized(result, out),
            // The server is slow, and it is what was thought: one of the older ones.
            (Phase::Initializing | Phase::WantInitialize, ..) if late => Ok(None),
            (Phase::Probing, None, Some(error)) => Ok(self.probe_refused(RpcError::read(error))),
            (Phase::Initializing, None, Some(error)) => Ok(self.initialize_refused(RpcError::read(error))),
            (Phase::Probing, ..) if self.newest(Era::Legacy).is_some() => Ok(self.fall_back(None)),
            (Phase::Probing | Phase::Initializing, ..) => Ok(Some(self.invalid())),
            // `initialize` was answered first.
            _ if late => Ok(None),
            _ => Ok(Some(Event::Ignored(Oddity::UnknownResponse))),
        }
    }

    /// The answer is none.
    fn invalid<'a>(&mut self) -> Event<'a> {
        self.opening.want(Phase::Over);
        Event::Unconnected(Unconnected::Lost(Lost::Invalid))
    }

    /// The newest revision of an era that is in an array of dates and that we speak.
    fn common(&self, dates: Option<Raw<'_>>, era: Era) -> Option<Revision> {
        let dates = dates?;
        let named = |revision: &Revision| dates.items().any(|date| date.text().is_some_and(|t| t.is(revision.date())));
        self.profile.revisions.of(era).filter(named).last()
    }

    fn discovered<'a>(&mut self, result: Raw<'a>) -> Option<Event<'a>> {
        let supported = result.get("supportedVersions");
        if let Some(revision) = self.common(supported, Era::Modern) {
            let server = result.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO));
            return Some(self.connected(revision, result, server));
        }
        self.fall_back(supported)
    }

    /// The probe's answer came when `initialize` was on its way: if it is a modern one, it counts.
    fn discovered_late<'a>(&mut self, result: Raw<'a>) -> Option<Event<'a>> {
        self.common(result.get("supportedVersions"), Era::Modern)?;
        self.opening.late_initialize = self.opening.wire;
        self.discovered(result)
    }

    /// The server does not speak a modern revision that we speak.
    fn fall_back<'a>(&mut self, supported: Option<Raw<'_>>) -> Option<Event<'a>> {
        self.opening.asks = self.common(supported, Era::Legacy);
        // Whoever names revisions knows which ones it speaks.
        let named = supported.is_some_and(|dates| dates.items().next().is_some());
        if self.newest(Era::Legacy).is_none() || (named && self.opening.asks.is_none()) {
            self.opening.want(Phase::Over);
            return Some(Event::Unconnected(Unconnected::NoCommonRevision));
        }
        self.opening.want(Phase::WantInitialize);
        None
    }

    fn probe_refused<'a>(&mut self, error: RpcError<'a>) -> Option<Event<'a>> {
        let modern = matches!(error.code, code::UNSUPPORTED_VERSION | code::HEADER_MISMATCH | code::MISSING_CAPABILITY);
        if !modern {
            return match self.newest(Era::Legacy) {
                Some(_) => self.fall_back(None),
                None => {
                    self.opening.want(Phase::Over);
                    Some(Event::Unconnected(Unconnected::Error(error)))
                }
            };
        }
        let supported = error.data.and_then(|data| data.get("supported"));
        self.opening.tries += 1;
        if self.common(supported, Era::Modern).is_some() && self.opening.tries < TRIES {
            self.opening.want(Phase::WantProbe);
            return None;
        }
        if self.common(supported, Era::Legacy).is_some() {
            return self.fall_back(supported);
        }
        self.opening.want(Phase::Over);
        let unsupported = error.code == code::UNSUPPORTED_VERSION;
        Some(Event::Unconnected(if unsupported { Unconnected::NoCommonRevision } else { Unconnected::Error(error) }))
    }

    fn initialized<'a>(&mut self, result: Raw<'a>, out: &mut dyn Out) -> Result<Option<Event<'a>>, Full> {
        let Some(version) = result.get("protocolVersion").and_then(|version| version.text()) else {
            return Ok(Some(self.invalid()));
        };
        let mut spoken = self.profile.revisions.of(Era::Legacy);
        let Some(revision) = spoken.find(|revision| version.is(revision.date())) else {
            self.opening.want(Phase::Over);
            return Ok(Some(Event::Unconnected(Unconnected::NoCommonRevision)));
        };
        write_notification(out, "notifications/initialized")?;
        Ok(Some(self.connected(revision, result, result.get("serverInfo"))))
    }

    /// Some servers refuse a revision that they do not know instead of offering another one.
    fn initialize_refused<'a>(&mut self, error: RpcError<'a>) -> Option<Event<'a>> {
        let supported = error.data.and_then(|data| data.get("supported"));
        self.opening.tries += 1;
        let other = self.common(supported, Era::Legacy).filter(|&other| Some(other) != self.opening.asks);
        if other.is_some() && self.opening.tries < TRIES {
            self.opening.want(Phase::WantInitialize);
            self.opening.asks = other;
            return None;
        }
        self.opening.want(Phase::Over);
        Some(Event::Unconnected(Unconnected::Error(error)))
    }

    fn connected<'a>(&mut self, revision: Revision, result: Raw<'a>, server: Option<Raw<'a>>) -> Event<'a> {
        let capabilities = result.get("capabilities");
        self.opening.want(Phase::Ready);
        self.revision = Some(revision);
        self.offered = capabilities.map_or(Features::NONE, Features::read);
        let instructions = result.get("instructions").and_then(|text| text.text());
        Event::Connected(Connected { revision, server, capabilities, instructions, result })
    }

    /// The transport lost the probe or `initialize`.
    pub(crate) fn opening_lost(&mut self, wire: u64, why: Lost) {
        match (self.opening.phase, why) {
            // Whatever an older server says to a request that it does not know.
            (Phase::Probing, Lost::Status(_) | Lost::Invalid) if self.newest(Era::Legacy).is_some() => {
                self.opening.want(Phase::WantInitialize);
            }
            (Phase::Probing | Phase::Initializing, _) if wire == u64::from(self.opening.wire) => {
                self.opening.want(Phase::Failed(why));
            }
            _ => {}
        }
    }

    /// The opening cannot go on.
    pub(crate) fn opening_fails(&mut self, why: Lost) {
        self.opening.want(Phase::Failed(why));
    }

    /// The connection ended.
    pub(crate) fn opening_closed(&mut self) {
        match self.opening.phase {
            Phase::Idle | Phase::Over | Phase::Failed(_) => {}
            Phase::Ready => self.opening.want(Phase::Over),
            _ => self.opening.want(Phase::Failed(Lost::Closed)),
        }
    }

    /// An error that names no request: if the opening waits for an answer, it is meant. A probe that was not answered in
    /// time came first.
    pub(crate) fn opening_waits(&self) -> Option<u64> {
        let waits = matches!(self.opening.phase, Phase::Probing | Phase::Initializing);
        let wire = if self.opening.late_probe == 0 { self.opening.wire } else { self.opening.late_probe };
        waits.then_some(wire.into())
    }

    /// Whether 2026-07-28 is spoken; while nothing is agreed on yet, whether the profile has no older revision.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.revision.map_or_else(|| self.newest(Era::Legacy).is_none(), Revision::is_modern)
    }

    /// What the server was told that it can ask for.
    pub(crate) fn declared(&self) -> ClientFeatures {
        let revision = self.revision.or(self.opening.asks);
        revision.map_or(ClientFeatures::NONE, |revision| self.profile.declared(revision))
    }

    /// Tells that the roots have changed (up to 2025-11-25; nothing is told later).
    ///
    /// # Errors
    /// [`SendError::FullNow`] if there is no room; [`SendError::NotOffered`] if the profile does not say that it tells.
    pub fn roots_changed(&mut self, out: &mut dyn Out) -> Result<(), SendError> {
        let revision = self.revision().ok_or(SendError::NotConnected)?;
        if !self.profile.tells_roots() {
            return Err(SendError::NotOffered);
        }
        if !revision.is_modern() {
            write_notification(out, "notifications/roots/list_changed")?;
        }
        Ok(())
    }
}

fn write_notification(out: &mut dyn Out, method: &str) -> Result<(), Full> {
    whole(out, Kind::Notification, |out| {
        out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"")?;
        out.put(method.as_bytes())?;
        out.put(b"\"}")
    })
}

impl<'a> From<Failure<'a>> for Unconnected<'a> {
    fn from(failure: Failure<'a>) -> Self {
        match failure {
            Failure::Error(error) => Unconnected::Error(error),
            Failure::Lost(lost) => Unconnected::Lost(lost),
        }
    }
}
