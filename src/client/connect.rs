//! Opens a connection: the probe, `initialize`, and the negotiation of the revision
//! ([versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning),
//! [lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle)).

use super::pending::{after, until};
use super::request::write_request;
use super::request_meta::MetaParts;
use super::timeouts::write_timed_out;
use super::{
    Client, ClientEvent, ErrorObject, PendingId, ProtocolViolation, RequestError, SendError, TransportError, Turn,
};
use crate::json::{Raw, Text};
use crate::machine;
use crate::protocol::{ClientCapabilities, Method, ServerCapabilities, code, meta};
use crate::revision::{Era, Revision};
use crate::rpc::{Envelope, is_complete, write_notification};
use crate::sink::{FullError, MessageHead, Out, RequestInfo};
use crate::time::Millis;

/// The state of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// The client sends `server/discover`, the probe, next.
    WantDiscover,
    Discovering,
    /// The client sends `initialize` next.
    WantInitialize,
    Initializing,
    Ready,
    /// The opening failed. The client reports it next.
    Failed(TransportError),
    /// An open connection has ended. The client reports it next.
    Ended,
    Over,
}

/// All transitions of a [`Phase`]: from, to, cause. The diagram in `docs/internals/state-machines.md` shows the same. Each
/// [`connect`](super::Client::connect) starts at `Idle`.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Idle", "WantDiscover", "connect"),
    ("Idle", "WantInitialize", "connect"),
    ("Idle", "WantInitialize", "connect_as"),
    ("Idle", "Ready", "connect_as"),
    ("WantDiscover", "Discovering", "advance"),
    ("WantDiscover", "Failed", "end"),
    ("Discovering", "Ready", "DiscoverResult"),
    ("Discovering", "WantDiscover", "other version supported"),
    ("Discovering", "WantInitialize", "other answer, older versions"),
    ("Discovering", "WantInitialize", "timeout"),
    ("Discovering", "WantInitialize", "end of the process"),
    ("Discovering", "WantInitialize", "lost"),
    ("Discovering", "Over", "not opened"),
    ("Discovering", "Failed", "lost"),
    ("Discovering", "Failed", "end"),
    ("WantInitialize", "Initializing", "advance"),
    ("WantInitialize", "Ready", "late DiscoverResult"),
    ("WantInitialize", "Over", "not opened"),
    ("WantInitialize", "Failed", "end"),
    ("Initializing", "Ready", "InitializeResult"),
    ("Initializing", "Ready", "late DiscoverResult"),
    ("Initializing", "WantInitialize", "other version supported"),
    ("Initializing", "WantInitialize", "end of the process"),
    ("Initializing", "Over", "not opened"),
    ("Initializing", "Failed", "lost"),
    ("Initializing", "Failed", "end"),
    ("Ready", "Ended", "end"),
    ("Ended", "Over", "told"),
    ("Failed", "Over", "not opened"),
];

machine!(Phase, TRANSITIONS: Idle WantDiscover Discovering WantInitialize Initializing Ready Failed Ended Over);

/// The opening of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    phase: Phase,
    /// The id of the probe or of `initialize` on the wire.
    wire: u32,
    /// The id of a probe that was not answered in time. The answer may come late. 0: none.
    late_probe: u32,
    /// The id of an `initialize` that is not needed, because the probe was answered late. The answer may still
    /// come. 0: none.
    late_initialize: u32,
    tries: u8,
    /// The revision of `initialize`.
    asks: Option<Revision>,
    pub(super) deadline: Option<Millis>,
}

impl Opening {
    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    pub(crate) fn is_on_wire(&self, wire: u64) -> bool {
        wire != 0 && [self.wire, self.late_probe, self.late_initialize].iter().any(|&own| u64::from(own) == wire)
    }

    fn enter(&mut self, cause: &str, phase: Phase) {
        self.phase.enter(cause, phase);
        self.deadline = None;
        self.wire = 0;
    }
}

/// The most times that the client tries another revision after an error of the server.
const TRIES: u8 = 3;

/// The `DiscoverResult` or `InitializeResult` of the server
/// ([discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover),
/// [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization)).
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct InitializeResult<'a> {
    /// The negotiated revision.
    pub revision: Revision,
    /// `serverInfo`, unverified: for people only.
    pub server: Option<Raw<'a>>,
    /// `capabilities`.
    pub capabilities: Option<Raw<'a>>,
    /// `instructions`: hints for a model that uses the server.
    pub instructions: Option<Text<'a>>,
    /// The whole result; `null` if the client did not ask.
    pub result: Raw<'a>,
}

impl Client<'_> {
    /// Opens the connection. [`advance`](super::Client::advance) writes the first message. [`ClientEvent::Connected`]
    /// or [`ClientEvent::Unconnected`] follows.
    ///
    /// A client of all revisions sends `server/discover` first. If the answer is not that of a server of
    /// 2026-07-28, or comes too late, the client sends `initialize` on the same connection
    /// ([compatibility](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning)).
    ///
    /// A client with an open connection starts again, as with [`reconnect`](super::Client::reconnect): requests
    /// in flight end with [`TransportError::Closed`], subscriptions open again.
    pub fn connect(&mut self) {
        let probes = self.newest(Era::Modern).is_some() && self.revision.is_none_or(Revision::is_modern);
        self.open("connect", None, if probes { Phase::WantDiscover } else { Phase::WantInitialize });
    }

    fn open(&mut self, cause: &str, revision: Option<Revision>, first: Phase) {
        self.lose_all(TransportError::Closed, true);
        self.revision = revision;
        self.offered = ServerCapabilities::NONE;
        self.opening = Opening::default();
        self.opening.enter(cause, first);
    }

    /// Opens the connection with a revision that the server is known to support, without a probe. With 2026-07-28
    /// the client can send requests at once; ask for the capabilities with
    /// [`Request::discover`](super::Request::discover). Requests and subscriptions in flight are handled as in
    /// [`connect`](super::Client::connect).
    pub fn connect_as(&mut self, revision: Revision) {
        if revision.is_modern() {
            self.open("connect_as", Some(revision), Phase::Ready);
            self.offered = ServerCapabilities::ALL;
        } else {
            self.open("connect_as", Some(revision), Phase::WantInitialize);
            self.opening.asks = Some(revision);
        }
    }

    /// Opens a lost connection again with the same kind of server. Requests in flight end with `why`.
    /// Subscriptions open again, and [`ClientEvent::Listening`] reports the part that the server agreed to.
    pub fn reconnect(&mut self, why: TransportError) {
        self.lose_all(why, true);
        let known = self.revision.filter(|revision| !revision.is_modern());
        self.connect();
        self.opening.asks = known;
    }

    /// Gives up the probe for `initialize`, which [`advance`](super::Client::advance) sends next, on another connection: a
    /// server of an older revision may end at a request before `initialize`, and the caller has started it again. Returns
    /// `false`, and does nothing, unless the probe waits for its answer and the client has older revisions.
    pub fn give_up_probe(&mut self) -> bool {
        // A server that starts slowly reads the probe after its timeout, and before `initialize`.
        let is_late = self.opening.phase == Phase::Initializing && self.opening.late_probe != 0;
        let gives_up = is_late || self.opening.phase == Phase::Discovering && self.newest(Era::Legacy).is_some();
        if gives_up {
            self.opening_unanswered(self.opening.wire, TransportError::Closed);
            self.opening.late_probe = 0;
            self.opening.enter("end of the process", Phase::WantInitialize);
        }
        gives_up
    }

    /// Returns `true` if the connection is open.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.opening.is_ready()
    }

    /// Returns `true` from [`connect`](super::Client::connect) until the connection is open or has failed.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        !matches!(self.opening.phase, Phase::Idle | Phase::Ready | Phase::Ended | Phase::Over)
    }

    /// Writes the next message of the opening.
    pub(crate) fn advance_opening(&mut self, out: &mut dyn Out) -> Turn<'static> {
        if self.opening.deadline.is_some_and(|deadline| until(deadline, self.now) <= 0) {
            self.opening_unanswered(self.opening.wire, TransportError::TimedOut);
            match self.opening.phase {
                Phase::Discovering if self.newest(Era::Legacy).is_some() => {
                    self.opening.late_probe = self.opening.wire;
                    self.opening.enter("timeout", Phase::WantInitialize);
                }
                phase => {
                    // The protocol forbids to cancel `initialize`.
                    if phase == Phase::Discovering {
                        self.tell(out, |out| write_timed_out(self.opening.wire, out))?;
                    }
                    return Ok(self.unconnected(RequestError::Lost(TransportError::TimedOut)));
                }
            }
        }
        match self.opening.phase {
            Phase::WantDiscover => {
                let newest = self.newest(Era::Modern).unwrap_or(Revision::LATEST);
                self.send_opening(Phase::Discovering, newest, out)?;
            }
            Phase::WantInitialize => match self.opening.asks.or(self.newest(Era::Legacy)) {
                Some(revision) => self.send_opening(Phase::Initializing, revision, out)?,
                None => return Ok(self.unconnected(RequestError::Lost(TransportError::NoCommonRevision))),
            },
            _ => {}
        }
        match self.opening.phase {
            Phase::Failed(why) => Ok(self.unconnected(RequestError::Lost(why))),
            Phase::Ended => {
                self.opening.enter("told", Phase::Over);
                Ok(Some(ClientEvent::Closed))
            }
            _ => Ok(None),
        }
    }

    fn newest(&self, era: Era) -> Option<Revision> {
        self.info.revisions.of(era).last()
    }

    /// Sends the probe or `initialize`.
    fn send_opening(&mut self, sent: Phase, revision: Revision, out: &mut dyn Out) -> Result<(), FullError> {
        let (wire, info) = (self.next_id(), self.info);
        let method = if sent == Phase::Discovering { Method::Discover } else { Method::Initialize };
        let version = if method == Method::Discover { revision.date() } else { "" };
        if self.enter_layers(wire, method).is_some() {
            self.opening_unanswered(wire, TransportError::Refused);
            self.opening_ended(TransportError::Refused);
            return Ok(());
        }
        let written = write_request(
            out,
            RequestInfo { version, ..RequestInfo::new(wire.into(), method.name()) },
            &mut |params| {
                if method == Method::Discover {
                    return info.write_meta(params, revision, MetaParts::default());
                }
                params.text("protocolVersion", revision.date());
                info.write_capabilities(params.key("capabilities"), revision);
                info.write_info(params.key("clientInfo"), revision)
            },
        );
        if let (Err(_), Some(around)) = (written, info.around) {
            around.dropped(PendingId(wire), false, self.now);
        }
        written?;
        self.last_id = wire;
        self.opening.enter("advance", sent);
        self.opening.asks = Some(revision).filter(|revision| !revision.is_modern()).or(self.opening.asks);
        self.opening.wire = wire;
        self.opening_time(wire.into(), true);
        Ok(())
    }

    /// Starts the time limit of the probe or of `initialize`, or stops it.
    pub(crate) fn opening_time(&mut self, wire: u64, goes: bool) {
        if wire != u64::from(self.opening.wire) {
            return;
        }
        // Without an older revision to fall back to, the probe has the timeout of requests.
        let probes = self.opening.phase == Phase::Discovering && self.newest(Era::Legacy).is_some();
        // The opening as a whole takes no longer than a request may: a probe has half of the time at most, and that counts.
        let half = self.timeout.map(|time| time / 2);
        let probe = self.probe_timeout.map(|probe| half.map_or(probe, |half| probe.min(half)));
        let spent = probe.filter(|_| self.opening.late_probe != 0).unwrap_or(0);
        let time = if probes { probe } else { self.timeout.map(|time| time.saturating_sub(spent)) };
        self.opening.deadline = after(self.now, time.filter(|_| goes));
    }

    /// Takes the answer to the probe or to `initialize`.
    pub(crate) fn opening_answered<'a>(&mut self, wire: u64, envelope: &Envelope<'a>, out: &mut dyn Out) -> Turn<'a> {
        if let Some(around) = self.info.around {
            around.leave_opening(PendingId(wire as u32), envelope, self.now);
        }
        if wire == u64::from(self.opening.late_initialize) {
            self.opening.late_initialize = 0;
            return Ok(None);
        }
        let late = wire == u64::from(self.opening.late_probe);
        if late {
            self.opening.late_probe = 0;
        }
        let probes = late || self.opening.phase == Phase::Discovering;
        // A result of another type does not answer the probe.
        let response = envelope.response().filter(|it| !probes || it.is_err() || it.is_ok_and(is_complete));
        Ok(match (self.opening.phase, response) {
            (Phase::Discovering, Some(Ok(result))) => self.discovered("DiscoverResult", result),
            // `initialize` is on the wire, or waits for room in the sink.
            (Phase::Initializing | Phase::WantInitialize, Some(Ok(result))) if late => self.discovered_late(result),
            (Phase::Initializing, Some(Ok(result))) => return self.initialized(result, out),
            (Phase::Discovering, Some(Err(error))) => self.probe_refused(ErrorObject::read(error)),
            (Phase::Initializing, Some(Err(error))) if !late => self.initialize_refused(ErrorObject::read(error)),
            (Phase::Discovering, ..) if self.newest(Era::Legacy).is_some() => self.fall_back(None),
            // The answer confirms an older server that is slow, or the answer to `initialize` came first.
            _ if late => None,
            (Phase::Discovering | Phase::Initializing, ..) => {
                self.unconnected(RequestError::Lost(TransportError::Invalid))
            }
            _ => Some(ClientEvent::Ignored(ProtocolViolation::UnknownResponse)),
        })
    }

    /// Ends the opening.
    fn unconnected<'a>(&mut self, why: RequestError<'a>) -> Option<ClientEvent<'a>> {
        self.opening.enter("not opened", Phase::Over);
        Some(ClientEvent::Unconnected(why))
    }

    /// Returns the newest revision of an era that both the client and the array of dates have.
    fn common(&self, dates: Option<Raw<'_>>, era: Era) -> Option<Revision> {
        let dates = dates?;
        let named =
            |revision: &Revision| dates.items().any(|date| date.text().is_some_and(|t| t.eq_str(revision.date())));
        self.info.revisions.of(era).filter(named).last()
    }

    fn discovered<'a>(&mut self, cause: &str, result: Raw<'a>) -> Option<ClientEvent<'a>> {
        let supported = result.get("supportedVersions");
        if let Some(revision) = self.common(supported, Era::Modern) {
            let server = result.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO));
            return Some(self.connected(cause, revision, result, server));
        }
        self.fall_back(supported)
    }

    /// Takes the answer to the probe that came after `initialize` was sent. It counts if both sides have a
    /// revision of its era.
    fn discovered_late<'a>(&mut self, result: Raw<'a>) -> Option<ClientEvent<'a>> {
        self.common(result.get("supportedVersions"), Era::Modern)?;
        self.opening.late_initialize = self.opening.wire;
        self.discovered("late DiscoverResult", result)
    }

    /// Falls back to `initialize`: the server has no revision of 2026-07-28 or later that the client has.
    fn fall_back<'a>(&mut self, supported: Option<Raw<'_>>) -> Option<ClientEvent<'a>> {
        self.opening.asks = self.common(supported, Era::Legacy);
        // A server that lists revisions lists all of them.
        let named = supported.is_some_and(|dates| dates.items().next().is_some());
        if self.newest(Era::Legacy).is_none() || (named && self.opening.asks.is_none()) {
            return self.unconnected(RequestError::Lost(TransportError::NoCommonRevision));
        }
        self.opening.enter("other answer, older versions", Phase::WantInitialize);
        None
    }

    fn probe_refused<'a>(&mut self, error: ErrorObject<'a>) -> Option<ClientEvent<'a>> {
        let modern = matches!(error.code, code::UNSUPPORTED_VERSION | code::HEADER_MISMATCH | code::MISSING_CAPABILITY);
        if !modern {
            return match self.newest(Era::Legacy) {
                Some(_) => self.fall_back(None),
                None => self.unconnected(RequestError::Error(error)),
            };
        }
        let supported = error.data.and_then(|data| data.get("supported"));
        self.opening.tries += 1;
        if self.common(supported, Era::Modern).is_some() && self.opening.tries < TRIES {
            self.opening.enter("other version supported", Phase::WantDiscover);
            return None;
        }
        if self.common(supported, Era::Legacy).is_some() {
            return self.fall_back(supported);
        }
        self.unconnected(match error.code {
            code::UNSUPPORTED_VERSION => RequestError::Lost(TransportError::NoCommonRevision),
            _ => RequestError::Error(error),
        })
    }

    fn initialized<'a>(&mut self, result: Raw<'a>, out: &mut dyn Out) -> Turn<'a> {
        let Some(version) = result.get("protocolVersion").and_then(|version| version.text()) else {
            return Ok(self.unconnected(RequestError::Lost(TransportError::Invalid)));
        };
        let mut spoken = self.info.revisions.of(Era::Legacy);
        let Some(revision) = spoken.find(|revision| version.eq_str(revision.date())) else {
            return Ok(self.unconnected(RequestError::Lost(TransportError::NoCommonRevision)));
        };
        self.tell(out, |out| write_notification(out, MessageHead::Initialized, "notifications/initialized", None))?;
        Ok(Some(self.connected("InitializeResult", revision, result, result.get("serverInfo"))))
    }

    /// Some servers refuse an unknown revision instead of offering another one.
    fn initialize_refused<'a>(&mut self, error: ErrorObject<'a>) -> Option<ClientEvent<'a>> {
        let supported = error.data.and_then(|data| data.get("supported"));
        self.opening.tries += 1;
        let other = self.common(supported, Era::Legacy).filter(|&other| Some(other) != self.opening.asks);
        if other.is_some() && self.opening.tries < TRIES {
            self.opening.enter("other version supported", Phase::WantInitialize);
            self.opening.asks = other;
            return None;
        }
        self.unconnected(RequestError::Error(error))
    }

    fn connected<'a>(
        &mut self,
        cause: &str,
        revision: Revision,
        result: Raw<'a>,
        server: Option<Raw<'a>>,
    ) -> ClientEvent<'a> {
        let capabilities = result.get("capabilities");
        self.opening.enter(cause, Phase::Ready);
        self.revision = Some(revision);
        self.offered = capabilities.map_or(ServerCapabilities::NONE, ServerCapabilities::read);
        let instructions = result.get("instructions").and_then(|text| text.text());
        ClientEvent::Connected(InitializeResult { revision, server, capabilities, instructions, result })
    }

    /// Takes the failure of the transport to send the probe or `initialize`.
    pub(crate) fn opening_lost(&mut self, wire: u64, why: TransportError) {
        match (self.opening.phase, why) {
            // An older server may answer the unknown request with anything.
            (Phase::Discovering, TransportError::Status(_) | TransportError::Invalid)
                if self.newest(Era::Legacy).is_some() =>
            {
                self.opening_unanswered(self.opening.wire, why);
                self.opening.enter("lost", Phase::WantInitialize);
            }
            (Phase::Discovering | Phase::Initializing, _) if wire == u64::from(self.opening.wire) => {
                self.opening_unanswered(self.opening.wire, why);
                self.opening.enter("lost", Phase::Failed(why));
            }
            _ => {}
        }
    }

    /// Takes the end of the connection, or of the opening by the client itself.
    pub(crate) fn opening_ended(&mut self, why: TransportError) {
        match self.opening.phase {
            Phase::Idle | Phase::Over | Phase::Ended | Phase::Failed(_) => {}
            Phase::Ready => self.opening.enter("end", Phase::Ended),
            _ => {
                self.opening_unanswered(self.opening.wire, why);
                self.opening.enter("end", Phase::Failed(why));
            }
        }
    }

    /// Returns the id of the opening's request that an error without an id answers. A probe that was not answered
    /// in time came first.
    pub(crate) fn opening_waits(&self) -> Option<u64> {
        let waits = matches!(self.opening.phase, Phase::Discovering | Phase::Initializing);
        let wire = if self.opening.late_probe == 0 { self.opening.wire } else { self.opening.late_probe };
        waits.then_some(wire.into())
    }

    /// Returns `true` if the negotiated revision is 2026-07-28. Before the negotiation: `true` if the client has
    /// no older revision.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.revision.map_or_else(|| self.newest(Era::Legacy).is_none(), Revision::is_modern)
    }

    /// Returns the capabilities that the client declared.
    pub(crate) fn declared(&self) -> ClientCapabilities {
        let revision = self.revision.or(self.opening.asks);
        revision.map_or(ClientCapabilities::NONE, |revision| self.info.declared(revision))
    }

    /// Sends `notifications/roots/list_changed`
    /// ([roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots#root-list-changes)). From
    /// 2026-07-28 on it sends nothing.
    ///
    /// Roots are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28 on
    /// (SEP-2577): they still work; a new program takes folders as arguments of tools, as URIs of resources, or from
    /// its configuration.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] if the connection is not open, [`SendError::NotOffered`] without
    /// [`ClientInfo::roots_changed`](super::ClientInfo::roots_changed), [`SendError::FullNow`] or
    /// [`SendError::FullNever`] if the sink has no room.
    pub fn roots_changed(&mut self, out: &mut dyn Out) -> Result<(), SendError> {
        let revision = self.revision().ok_or(SendError::NotConnected)?;
        if !self.info.roots_changed {
            return Err(SendError::NotOffered);
        }
        if !revision.is_modern() {
            const CHANGED: &str = "notifications/roots/list_changed";
            self.tell(out, |out| write_notification(out, MessageHead::Notification, CHANGED, None))?;
        }
        Ok(())
    }
}
