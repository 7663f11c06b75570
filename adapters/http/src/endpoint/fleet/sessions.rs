//! Sessions with sealed ids at several processes: messages that belong to another one, and what all have to know.
//!
//! Subscriptions, levels and the end of a session go to all processes, and into the log of the session (`s:` and the first 16
//! characters of its id) for processes that open it later.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::json::write::escape;
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::protocol::{LoggingLevel, Method};
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{IncomingRequest, Millis, OwnedServerChange, Scope, ServerChange};
use mcp_sansio::sink::{Mark, MessageKind, Out, Sink};

use super::relay::Bytes;
use super::{App, Endpoint, Membership};
use crate::endpoint::exchange::{Message as Incoming, origin_of};
use crate::endpoint::head::{EndpointResponse, RequestHead};
use crate::endpoint::ids::SessionId;
use crate::endpoint::request::is_acceptable;
use crate::endpoint::sealed::{Found, Nonce, nonce_of};
use crate::fleet::wire::{Entry, Message, SessionRef, decode_entry, encode, encode_entry};
use crate::fleet::{Arrival, Errand, FleetLimits, ProcessTag, Recipients};
use crate::names::Known;

/// The beginning of the names of logs of sessions.
const LOG: &str = "s:";

/// Milliseconds for which a change is kept for subscriptions that were made before it, and arrive after it.
const RECENT: Millis = 5_000;
/// Number of changes that are kept.
const MOST_RECENT: usize = 64;

/// A request that waits until the other processes know what it changes: DELETE of a session, or a setting in one.
#[derive(Debug)]
struct Awaited {
    id: SessionId,
    /// The processes that have not acknowledged it yet.
    by: BTreeSet<ProcessTag>,
    until: Millis,
}

/// Milliseconds after its time in which such a request is given again by its driver. After these its connection is gone.
const GIVEN_AGAIN: Millis = 2_000;

/// A session, and the `id` of the request as JSON; empty for DELETE.
type AwaitedKey = (Nonce, Box<[u8]>);

/// The state of sessions beside their slots.
#[derive(Debug, Default)]
pub(crate) struct SharedSessions {
    logs: BTreeMap<Nonce, SessionLog>,
    /// Requests whose effect the other processes have not acknowledged yet.
    awaited: BTreeMap<AwaitedKey, Awaited>,
    /// The times when logs of sessions began to be read, as long as requests wait for them.
    reads: VecDeque<Millis>,
    /// Resources that have changed lately.
    recent: VecDeque<(Millis, OwnedServerChange)>,
    /// The message that is handled cancels a request of this process.
    pub(crate) cancels_here: bool,
}

/// The use of the log of a session.
#[derive(Debug, Default)]
struct SessionLog {
    entries: usize,
    bytes: usize,
    /// The log is being read, since then.
    read_since: Option<Millis>,
    /// The settings that came while the log was read: they come after those of the log.
    newer: Vec<Vec<u8>>,
    /// The settings that this process knows, without those of the log: if the log was lost, they go into it again.
    missing: Vec<Vec<u8>>,
}

impl SharedSessions {
    /// Keeps a change of a resource for a while.
    pub(crate) fn keep(&mut self, change: ServerChange<'_>, now: Millis) {
        if let ServerChange::Resource(_) = change {
            if self.recent.len() >= MOST_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((now, change.into()));
        }
    }

    /// Returns whether a resource has changed lately.
    fn has_changed(&self, uri: &str, now: Millis) -> bool {
        let is_recent = |at: Millis| now.saturating_sub(at) <= RECENT;
        self.recent.iter().any(|(at, change)| is_recent(*at) && change.as_change() == ServerChange::Resource(uri))
    }
}

impl Membership {
    /// Adds a message to the outbox. Returns `false` if it is left out, for lack of room.
    pub(crate) fn publish(&mut self, to: Recipients, message: &Message<'_>) -> bool {
        let (message, within) = (encode(message), self.limits.within);
        self.outbox.push(Errand::Publish { to, message, within })
    }

    /// Reads the log of a session that was opened here anew, or of which something may have been missed.
    pub(crate) fn read_session(&mut self, nonce: &Nonce, now: Millis) {
        let is_read = self.outbox.push(Errand::Read { log: log_of(nonce), after: 0, follow: None });
        // What came while it was read before has not been applied yet.
        let newer = self.sessions.logs.get_mut(nonce).map(|log| core::mem::take(&mut log.newer)).unwrap_or_default();
        let log = SessionLog { read_since: is_read.then_some(now), newer, ..SessionLog::default() };
        self.sessions.logs.insert(*nonce, log);
        if is_read && self.sessions.reads.back() != Some(&now) {
            self.sessions.reads.push_back(now);
        }
    }

    /// Returns whether a request of a session has to wait for its log: this process does not know yet what was set in the session,
    /// and whether it has ended.
    pub(crate) fn awaits_log(&self, nonce: &Nonce, now: Millis) -> bool {
        let since = self.sessions.logs.get(nonce).and_then(|log| log.read_since);
        !self.is_alone() && since.is_some_and(|since| now < since.saturating_add(self.limits.settle_within))
    }

    /// Adds a setting to the log of a session, within its limits.
    fn log_setting(&mut self, nonce: &Nonce, setting: &[u8], keep: Millis) {
        let log = self.sessions.logs.entry(*nonce).or_default();
        let bytes = log.bytes.saturating_add(setting.len());
        if log.entries >= self.limits.session_entries || bytes > self.limits.session_bytes {
            return;
        }
        (log.entries, log.bytes) = (log.entries + 1, bytes);
        if log.read_since.is_some() {
            log.newer.push(setting.into());
        }
        let entry = encode_entry(&Entry::Setting(setting));
        let _ = self.outbox.push(Errand::Append { log: log_of(nonce), id: None, entry, keep });
    }

    /// Keeps a setting of another process that came while the log of its session is read. It may be in the log already; what the log has
    /// before it must not count after it. Returns `false` if the log is not being read.
    fn is_put_off(&mut self, nonce: &Nonce, setting: &[u8]) -> bool {
        let Some(log) = self.sessions.logs.get_mut(nonce).filter(|log| log.read_since.is_some()) else { return false };
        let bytes = log.newer.iter().map(Vec::len).fold(setting.len(), usize::saturating_add);
        // What has no room here has none in the log.
        if log.newer.len() < self.limits.session_entries && bytes <= self.limits.session_bytes {
            log.newer.push(setting.into());
        }
        true
    }

    /// Forgets a session that is not open here any more.
    pub(crate) fn forget_session(&mut self, id: &SessionId) {
        let Some(nonce) = nonce_of(id.as_str().as_bytes()) else { return };
        if self.sessions.logs.remove(&nonce).is_some_and(|log| log.read_since.is_some()) {
            let _ = self.outbox.push(Errand::Stop { log: log_of(&nonce) });
        }
    }
}

impl SharedSessions {
    /// Notes that a process has left: no request waits for it.
    pub(super) fn awaited_left(&mut self, process: ProcessTag) {
        for awaited in self.awaited.values_mut() {
            awaited.by.remove(&process);
        }
    }

    /// Notes that this process is alone: no request waits.
    pub(super) fn awaited_alone(&mut self) {
        for awaited in self.awaited.values_mut() {
            awaited.by.clear();
        }
    }
}

impl Endpoint<'_> {
    /// Passes the content of a POST on that was accepted here, if other processes need it.
    pub(crate) fn pass_on_accepted(
        &mut self,
        head: &RequestHead<'_>,
        content: &[u8],
        principal: Option<&str>,
        response: &EndpointResponse<'_>,
    ) {
        let Some(fleet) = self.fleet.as_mut().filter(|_| matches!(response.status, 200 | 202)) else { return };
        let cancels_here = core::mem::take(&mut fleet.sessions.cancels_here);
        // Only sealed ids have that length.
        let id = head.fields.get(Known::Session).first().filter(|id| id.len() > SessionId::LEN);
        let Some(id) = id else { return };
        let session = SessionRef { id, principal };
        let mut request = IncomingRequest::empty();
        if request.read(content).is_ok() {
            return self.pass_on_one(session, content, request.envelope(), cancels_here);
        }
        for element in Raw::parse(content).iter().flat_map(Raw::items) {
            if let Ok(envelope) = Envelope::parse(element.as_bytes()) {
                self.pass_on_one(session, element.as_bytes(), &envelope, false);
                // One by itself was shared before it was handled. A batch does not wait.
                if let MessageShape::Request { method, .. } = envelope.shape()
                    && let Some(setting) = setting(Method::from_name(&method), &envelope)
                {
                    self.share_setting(session, b"", &setting);
                }
            }
        }
    }

    fn pass_on_one(&mut self, session: SessionRef<'_>, message: &[u8], envelope: &Envelope<'_>, cancels_here: bool) {
        let Some(fleet) = &mut self.fleet else { return };
        let in_session = Message::InSession { session, message };
        match envelope.shape() {
            MessageShape::Response { id } => {
                let asked_by = id.and_then(|id| id.u64()).and_then(ProcessTag::of_question);
                if let Some(process) = asked_by.filter(|process| *process != fleet.tag) {
                    // Without room it is left out, as one is that comes too late.
                    let _ = fleet.publish(Recipients::One(process), &in_session);
                }
            }
            MessageShape::Notification { method } => {
                let is_for_all = SHARED.iter().any(|name| method.eq_str(name));
                if is_for_all && !(cancels_here && method.eq_str(CANCELLED)) {
                    let _ = fleet.publish(Recipients::Others, &in_session);
                }
            }
            _ => {}
        }
    }

    /// Gives a subscription or a level to the others, and to those that open the session later. They acknowledge it with the id of
    /// its request.
    fn share_setting(&mut self, session: SessionRef<'_>, request: &[u8], setting: &[u8]) {
        let (Some(fleet), Some(sealed)) = (&mut self.fleet, &self.sealed) else { return };
        let Some((nonce, end)) = nonce_of(session.id).and_then(|nonce| Some((nonce, sealed.end_of(&nonce)?))) else {
            return;
        };
        // First into the log: who reads it later than the message has the same order.
        fleet.log_setting(&nonce, setting, end.saturating_sub(self.now));
        let _ = fleet.publish(Recipients::Others, &Message::Setting { session, request, message: setting });
    }

    /// Returns whether a request has to wait that changes what its session hears of.
    pub(crate) fn awaits_setting(
        &mut self,
        head: &RequestHead<'_>,
        envelope: &Envelope<'_>,
        method: Option<Method>,
        principal: Option<&str>,
    ) -> bool {
        if self.fleet.is_none() {
            return false;
        }
        let setting = method.and_then(|method| setting(method, envelope));
        let id = head.fields.get(Known::Session).first();
        let (Some(setting), Some(id), Some(request)) = (setting, id, envelope.id) else { return false };
        self.awaits_others(SessionRef { id, principal }, request.as_bytes(), Some(&setting))
    }

    /// Returns whether a request has to wait until the other processes that are alive have acknowledged what it changes: a setting,
    /// or with `None` the end of its session. They get it with the first call, and have
    /// [`FleetLimits::settle_within`](crate::fleet::FleetLimits::settle_within) for it. A client may send its next request to any of
    /// them at once.
    pub(crate) fn awaits_others(&mut self, session: SessionRef<'_>, request: &[u8], setting: Option<&[u8]>) -> bool {
        let now = self.now;
        let (Some(nonce), Some(id)) = (nonce_of(session.id), SessionId::of(session.id)) else { return false };
        let Some(fleet) = &mut self.fleet else { return false };
        let key = (nonce, Box::from(request));
        if let Some(awaited) = fleet.sessions.awaited.get(&key) {
            let waits = !awaited.by.is_empty() && now < awaited.until;
            if !waits {
                fleet.sessions.awaited.remove(&key);
            }
            return waits;
        }
        let by = fleet.others();
        match setting {
            Some(setting) => self.share_setting(session, request, setting),
            None => self.share_end(session),
        }
        let Some(fleet) = &mut self.fleet else { return false };
        let FleetLimits { settled, settle_within, .. } = fleet.limits;
        if by.is_empty() || settle_within == 0 || fleet.sessions.awaited.len() >= settled {
            return false;
        }
        let until = now.saturating_add(settle_within);
        fleet.sessions.awaited.insert(key, Awaited { id, by, until });
        true
    }

    /// Notes that another process knows of the end of a session, or of a setting in one.
    pub(super) fn hear_known(&mut self, from: ProcessTag, id: &[u8], request: &[u8]) {
        let Some(fleet) = &mut self.fleet else { return };
        let Some(nonce) = nonce_of(id) else { return };
        let awaited = fleet.sessions.awaited.get_mut(&(nonce, request.into()));
        if let Some(awaited) = awaited.filter(|awaited| awaited.id.is(id)) {
            awaited.by.remove(&from);
        }
    }

    /// Acknowledges the end of a session, or a setting in one.
    fn tell_known(&mut self, to: ProcessTag, session: SessionRef<'_>, request: &[u8]) {
        if let Some(fleet) = &mut self.fleet {
            // Without room for it, the other process waits until its time is over.
            let _ = fleet.publish(Recipients::One(to), &Message::Known { session, request });
        }
    }

    /// Finishes what was not answered by this time, as its connection is gone: the others know it already. Ends the sessions, and reads
    /// the logs of those with settings.
    pub(crate) fn tend_awaited<S>(&mut self, app: &mut App<'_, S>) {
        let now = self.now;
        let Some(fleet) = &mut self.fleet else { return };
        let within = fleet.limits.settle_within;
        while fleet.sessions.reads.front().is_some_and(|since| now >= since.saturating_add(within)) {
            fleet.sessions.reads.pop_front();
        }
        let over = |awaited: &Awaited| now >= awaited.until.saturating_add(GIVEN_AGAIN);
        if !fleet.sessions.awaited.values().any(over) {
            return;
        }
        let mut left = Vec::new();
        fleet.sessions.awaited.retain(|key, awaited| {
            let over = over(awaited);
            left.extend(over.then(|| key.clone()));
            !over
        });
        for (nonce, request) in left {
            let slot = self.sealed.as_ref().and_then(|sealed| sealed.slot_of(&nonce));
            match (slot, &mut self.fleet) {
                (Some(slot), _) if request.is_empty() => self.end_for_good(app, slot),
                (Some(_), Some(fleet)) => fleet.read_session(&nonce, now),
                _ => {}
            }
        }
    }

    /// Returns the time when the next of these requests is answered at the latest, or finished.
    pub(super) fn awaited_deadline(&self) -> Option<Millis> {
        let next = |awaited: &Awaited| match self.now < awaited.until {
            true => awaited.until,
            false => awaited.until.saturating_add(GIVEN_AGAIN),
        };
        self.fleet.as_ref()?.sessions.awaited.values().map(next).min()
    }

    /// Returns the time when the requests of a session whose log is read are handled at the latest.
    pub(super) fn log_deadline(&self) -> Option<Millis> {
        let fleet = self.fleet.as_ref()?;
        fleet.sessions.reads.front().map(|since| since.saturating_add(fleet.limits.settle_within))
    }

    /// Gives the end of a session to the others. It still is in its slot.
    fn share_end(&mut self, session: SessionRef<'_>) {
        let (Some(fleet), Some(sealed)) = (&mut self.fleet, &self.sealed) else { return };
        let Some((nonce, end)) = nonce_of(session.id).and_then(|nonce| Some((nonce, sealed.end_of(&nonce)?))) else {
            return;
        };
        let (log, entry, keep) = (log_of(&nonce), encode_entry(&Entry::Ended), end.saturating_sub(self.now));
        let _ = fleet.outbox.push(Errand::Append { log, id: None, entry, keep });
        let _ = fleet.publish(Recipients::Others, &Message::Ended { session });
    }

    /// Returns the slot of a session of the fleet, if it is open here.
    pub(super) fn open_session_of<S>(&mut self, app: &mut App<'_, S>, session: SessionRef<'_>) -> Option<u16> {
        match self.sealed.as_ref()?.find(session.id, session.principal, self.now) {
            Found::Open(slot) if self.sessions.is(slot, session.id, session.principal) => Some(slot),
            Found::Over(slot) if self.sessions.is(slot, session.id, session.principal) => {
                self.end_session(app, slot);
                None
            }
            _ => None,
        }
    }

    /// Handles a notification or a response that came to another process.
    pub(super) fn hear_in_session<S>(&mut self, app: &mut App<'_, S>, session: SessionRef<'_>, message: &[u8]) {
        let mut request = IncomingRequest::empty();
        if request.read(message).is_err() {
            return;
        }
        let (shape, envelope) = (request.envelope().shape(), request.envelope());
        let is_for_here = match &shape {
            MessageShape::Response { .. } => true,
            MessageShape::Notification { method } => SHARED.iter().any(|name| method.eq_str(name)),
            _ => false,
        };
        if !is_for_here || !is_acceptable(&shape, envelope) {
            return;
        }
        let Some(slot) = self.open_session_of(app, session) else { return };
        self.sessions.touch(slot, self.now);
        let cancels = self.cancels(slot, &Incoming::Read(&mut request));
        match cancels {
            Some(id) => self.cancel(app, slot, id, session.principal, Incoming::Read(&mut request)),
            None => self.take_in(app, slot, &mut request),
        }
    }

    /// Handles a subscription or a level that came to another process.
    pub(super) fn hear_setting<S>(
        &mut self,
        app: &mut App<'_, S>,
        from: ProcessTag,
        session: SessionRef<'_>,
        request: &[u8],
        setting: &[u8],
    ) {
        if let Some(slot) = self.open_session_of(app, session) {
            let (Some(nonce), Some(fleet)) = (nonce_of(session.id), &mut self.fleet) else { return };
            if !fleet.is_put_off(&nonce, setting) {
                self.set_in_session(app, slot, setting);
            }
        }
        // One of a batch has no id.
        if !request.is_empty() {
            self.tell_known(from, session, request);
        }
    }

    /// Handles the end of a session that another process has ended.
    pub(super) fn hear_end<S>(&mut self, app: &mut App<'_, S>, from: ProcessTag, session: SessionRef<'_>) {
        let now = self.now;
        self.tell_known(from, session, b"");
        let Some(sealed) = &mut self.sealed else { return };
        match sealed.find(session.id, session.principal, now) {
            Found::Open(slot) if self.sessions.is(slot, session.id, session.principal) => self.end_for_good(app, slot),
            Found::New(nonce, end, _) => sealed.remember_ended(nonce, end, now),
            _ => {}
        }
    }

    /// Ends a session: its id is good no more.
    pub(crate) fn end_for_good<S>(&mut self, app: &mut App<'_, S>, slot: u16) {
        if let (Some(sealed), Some(session)) = (&mut self.sealed, self.sessions.get(slot)) {
            sealed.close(&session.id, true, self.now);
        }
        self.end_session(app, slot);
    }

    /// Handles an arrival about the log of a session. Returns `false` if it is about another log.
    pub(super) fn hear_log<S>(&mut self, app: &mut App<'_, S>, arrival: &Arrival) -> bool {
        let (Arrival::Entry { log, .. } | Arrival::CaughtUp { log } | Arrival::ReadOver { log }) = arrival else {
            return false;
        };
        let Some(nonce) = log.strip_prefix(LOG) else { return false };
        let nonce: Option<Nonce> = nonce.as_bytes().try_into().ok();
        let slot = nonce.and_then(|nonce| Some((nonce, self.sealed.as_ref()?.slot_of(&nonce)?)));
        let (Some((nonce, slot)), Some(fleet)) = (slot, &mut self.fleet) else { return true };
        let known = fleet.sessions.logs.get_mut(&nonce);
        match (arrival, known) {
            (Arrival::Entry { entry, .. }, known) => match decode_entry(entry) {
                Some(Entry::Setting(setting)) => {
                    if let Some(log) = known {
                        log.missing.retain(|missing| subject(missing) != subject(setting));
                        (log.entries, log.bytes) = (log.entries + 1, log.bytes.saturating_add(setting.len()));
                    }
                    self.set_in_session(app, slot, setting);
                }
                // The one that waits here ends it.
                Some(Entry::Ended) if fleet.sessions.awaited.contains_key(&(nonce, Box::default())) => {}
                Some(Entry::Ended) => self.end_for_good(app, slot),
                None => {}
            },
            (_, Some(log)) => {
                log.read_since = None;
                let (newer, missing) = (core::mem::take(&mut log.newer), core::mem::take(&mut log.missing));
                let end = self.sealed.as_ref().and_then(|sealed| sealed.end_of(&nonce));
                let keep = end.map(|end| end.saturating_sub(self.now));
                let is_whole = matches!(arrival, Arrival::CaughtUp { .. });
                for setting in missing.iter().filter(|_| is_whole) {
                    let is_newer = newer.iter().any(|newer| subject(newer) == subject(setting));
                    if let Some(keep) = keep.filter(|_| !is_newer) {
                        fleet.log_setting(&nonce, setting, keep);
                    }
                }
                for setting in newer {
                    self.set_in_session(app, slot, &setting);
                }
            }
            (_, None) => {}
        }
        true
    }

    /// Applies a setting to a session that is open here.
    fn set_in_session<S>(&mut self, app: &mut App<'_, S>, slot: u16, setting: &[u8]) {
        let mut request = IncomingRequest::empty();
        if request.read(setting).is_err() {
            return;
        }
        let method = match request.envelope().shape() {
            MessageShape::Request { method, .. } => Method::from_name(&method),
            _ => return,
        };
        if !matches!(method, Method::Subscribe | Method::Unsubscribe | Method::SetLevel) {
            return;
        }
        let uri = request.target_uri().filter(|_| method == Method::Subscribe);
        self.take_in(app, slot, &mut request);
        // The change may have come before the subscription.
        let (Some(fleet), Some(session)) = (&self.fleet, self.sessions.get(slot)) else { return };
        if let Some(uri) = uri.map(|uri| uri.to_string())
            && fleet.sessions.has_changed(&uri, self.now)
        {
            let stream = session.stream;
            self.server.publish_in(session.scope, &uri);
            if let Some(id) = stream.filter(|id| self.streams.get(*id).is_some()) {
                self.streams.stir(id.slot);
            }
        }
    }

    /// Handles a message in a session. What it answers was answered by another process.
    fn take_in<S>(&mut self, app: &mut App<'_, S>, slot: u16, request: &mut IncomingRequest<'_>) {
        let Some(mut session) = self.sessions.get(slot).copied() else { return };
        let server = &mut self.server;
        server.set_most_in_flight(usize::MAX);
        server.swap_peer(&mut session.peer, session.scope);
        let gate = ();
        let origin = origin_of(&gate, self.sessions.principal(slot));
        // The sink takes everything.
        let _ = app.service.dispatch_read(&origin, app.state, request, server, &mut Discard);
        server.swap_peer(&mut session.peer, Scope(0));
        if let Some(known) = self.sessions.get_mut(slot) {
            known.peer = session.peer;
        }
    }

    /// Reads the logs of all sessions that are open here: messages about them may be lost, and the logs too.
    pub(super) fn read_sessions(&mut self) {
        let (Some(fleet), Some(sealed)) = (&mut self.fleet, &self.sealed) else { return };
        let mut scopes = BTreeMap::new();
        for nonce in sealed.open_ones() {
            fleet.read_session(nonce, self.now);
            let session = sealed.slot_of(nonce).and_then(|slot| self.sessions.get(slot));
            let (Some(session), Some(log)) = (session, fleet.sessions.logs.get_mut(nonce)) else { continue };
            scopes.insert(session.scope.0, *nonce);
            if session.peer.log_level() != LoggingLevel::Info {
                log.missing.extend(setting_of(SET_LEVEL, "level", session.peer.log_level().name()));
            }
        }
        let logs = &mut fleet.sessions.logs;
        self.server.each_subscription(|scope, uri| {
            let log = scopes.get(&scope.0).and_then(|nonce| logs.get_mut(nonce));
            if let Some(log) = log {
                log.missing.extend(setting_of(SUBSCRIBE, "uri", uri));
            }
        });
    }
}

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const SET_LEVEL: &str = "logging/setLevel";

/// Returns a setting with this value.
fn setting_of(method: &str, member: &str, value: &str) -> Option<Vec<u8>> {
    let mut text = Bytes(Vec::from(b"\""));
    escape(&mut text, value).and_then(|()| text.put(b"\"")).ok()?;
    Some(write_setting(method, member, &text.0))
}

fn write_setting(method: &str, member: &str, value: &[u8]) -> Vec<u8> {
    let parts = [r#"{"jsonrpc":"2.0","id":0,"method":""#, method, r#"","params":{""#, member, r#"":"#];
    [parts.concat().as_bytes(), value, b"}}"].concat()
}

/// Returns what a setting is about: the level, or a resource.
fn subject(setting: &[u8]) -> &[u8] {
    let is_level = setting.windows(SET_LEVEL.len()).any(|part| part == SET_LEVEL.as_bytes());
    let params = setting.windows(PARAMS.len()).position(|part| part == PARAMS);
    if is_level { SET_LEVEL.as_bytes() } else { params.and_then(|at| setting.get(at..)).unwrap_or(setting) }
}

/// The beginning of the parameters of a setting.
const PARAMS: &[u8] = br#""params":"#;

const CANCELLED: &str = "notifications/cancelled";
/// The notifications of a client that concern all processes with its session.
const SHARED: [&str; 3] = [CANCELLED, "notifications/progress", "notifications/roots/list_changed"];

fn log_of(nonce: &Nonce) -> String {
    let mut log = String::from(LOG);
    log.extend(nonce.iter().map(|byte| char::from(*byte)));
    log
}

/// Returns a request in its shortest form, if it changes what a session hears of: only its `uri` or `level`.
fn setting(method: Method, envelope: &Envelope<'_>) -> Option<Vec<u8>> {
    let (method, member, value) = match method {
        Method::Subscribe => (SUBSCRIBE, "uri", envelope.members.uri?),
        Method::Unsubscribe => (UNSUBSCRIBE, "uri", envelope.members.uri?),
        Method::SetLevel => (SET_LEVEL, "level", envelope.params?.get("level")?),
        _ => return None,
    };
    let value = Some(value).filter(|value| value.kind() == JsonKind::String)?;
    Some(write_setting(method, member, value.as_bytes()))
}

/// A sink that forgets everything.
struct Discard;

impl Sink for Discard {
    fn put(&mut self, _: &[u8]) -> Result<(), FullError> {
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

impl Out for Discard {
    fn begin(&mut self, _: MessageKind) -> Result<(), FullError> {
        Ok(())
    }
    fn end(&mut self) {}
    fn mark(&self) -> Mark {
        Mark::new(0)
    }
    fn roll_back(&mut self, _: Mark) {}
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        usize::MAX
    }
}
