//! Sessions with sealed ids at several processes: messages that belong to another one, and what all have to know.
//!
//! Subscriptions, levels and the end of a session go to all processes, and into the log of the session (`s:` and the first 16
//! characters of its id) for processes that open it later.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio::protocol::Method;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{IncomingRequest, Millis, OwnedServerChange, Scope, ServerChange};
use mcp_sansio::sink::{Mark, MessageKind, Out, Sink};

use super::{App, Endpoint, Membership};
use crate::endpoint::exchange::{Message as Incoming, origin_of};
use crate::endpoint::head::{EndpointResponse, RequestHead};
use crate::endpoint::ids::SessionId;
use crate::endpoint::request::is_acceptable;
use crate::endpoint::sealed::{Found, Nonce, nonce_of};
use crate::fleet::wire::{Entry, Message, SessionRef, decode_entry, encode, encode_entry};
use crate::fleet::{Arrival, Errand, ProcessTag, Recipients};
use crate::names::Known;

/// The beginning of the names of logs of sessions.
const LOG: &str = "s:";

/// Milliseconds for which a change is kept for subscriptions that were made before it, and arrive after it.
const RECENT: Millis = 5_000;
/// Number of changes that are kept.
const MOST_RECENT: usize = 64;

/// The most milliseconds that DELETE of a session waits for the other processes.
const END_WITHIN: Millis = 200;
/// The most sessions whose end is awaited at a time. DELETE of others is answered at once.
const ENDINGS: usize = 1_000;

/// A session whose DELETE waits.
#[derive(Debug)]
struct Ending {
    id: SessionId,
    /// The processes that have not acknowledged it yet.
    by: BTreeSet<ProcessTag>,
    until: Millis,
}

/// The state of sessions beside their slots.
#[derive(Debug, Default)]
pub(crate) struct SharedSessions {
    logs: BTreeMap<Nonce, SessionLog>,
    /// Sessions whose end the other processes have not acknowledged yet.
    endings: BTreeMap<Nonce, Ending>,
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
    is_read: bool,
    /// The settings of this process while the log is read: they come after those of the log.
    newer: Vec<Vec<u8>>,
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
    pub(crate) fn read_session(&mut self, nonce: &Nonce) {
        self.sessions.logs.insert(*nonce, SessionLog { is_read: true, ..SessionLog::default() });
        let _ = self.outbox.push(Errand::Read { log: log_of(nonce), after: 0, follow: None });
    }

    /// Adds a setting to the log of a session, within its limits.
    fn log_setting(&mut self, nonce: &Nonce, setting: &[u8], keep: Millis) {
        let log = self.sessions.logs.entry(*nonce).or_default();
        let bytes = log.bytes.saturating_add(setting.len());
        if log.entries >= self.limits.session_entries || bytes > self.limits.session_bytes {
            return;
        }
        (log.entries, log.bytes) = (log.entries + 1, bytes);
        if log.is_read {
            log.newer.push(setting.into());
        }
        let entry = encode_entry(&Entry::Setting(setting));
        let _ = self.outbox.push(Errand::Append { log: log_of(nonce), id: None, entry, keep });
    }

    /// Forgets a session that is not open here any more.
    pub(crate) fn forget_session(&mut self, id: &SessionId) {
        let Some(nonce) = nonce_of(id.as_str().as_bytes()) else { return };
        if self.sessions.logs.remove(&nonce).is_some_and(|log| log.is_read) {
            let _ = self.outbox.push(Errand::Stop { log: log_of(&nonce) });
        }
    }
}

impl SharedSessions {
    /// Notes that a process has left: no end waits for it.
    pub(super) fn end_left(&mut self, process: ProcessTag) {
        for ending in self.endings.values_mut() {
            ending.by.remove(&process);
        }
    }

    /// Notes that this process is alone: no end waits.
    pub(super) fn end_alone(&mut self) {
        for ending in self.endings.values_mut() {
            ending.by.clear();
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
        let id =
            head.fields.get(Known::Session).first().filter(|id| id.len() > SessionId::LEN && self.sealed.is_some());
        let Some(id) = id else { return };
        let session = SessionRef { id, principal };
        let mut request = IncomingRequest::empty();
        if request.read(content).is_ok() {
            return self.pass_on_one(session, content, request.envelope(), cancels_here);
        }
        for element in Raw::parse(content).iter().flat_map(Raw::items) {
            if let Ok(envelope) = Envelope::parse(element.as_bytes()) {
                self.pass_on_one(session, element.as_bytes(), &envelope, false);
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
            MessageShape::Request { method, .. } => {
                if let Some(setting) = setting(Method::from_name(&method), envelope) {
                    self.share_setting(session, &setting);
                }
            }
            _ => {}
        }
    }

    /// Gives a subscription or a level to the others, and to those that open the session later.
    fn share_setting(&mut self, session: SessionRef<'_>, setting: &[u8]) {
        let (Some(fleet), Some(sealed)) = (&mut self.fleet, &self.sealed) else { return };
        let Some((nonce, end)) = nonce_of(session.id).and_then(|nonce| Some((nonce, sealed.end_of(&nonce)?))) else {
            return;
        };
        // First into the log: who reads it later than the message has the same order.
        fleet.log_setting(&nonce, setting, end.saturating_sub(self.now));
        let _ = fleet.publish(Recipients::Others, &Message::Setting { session, message: setting });
    }

    /// Returns whether DELETE of a session has to wait: the other processes that are alive have to acknowledge the end, within
    /// [`END_WITHIN`]. A client may send its next request to any of them at once.
    pub(crate) fn awaits_end(&mut self, id: &[u8], principal: Option<&str>) -> bool {
        let now = self.now;
        let (Some(nonce), Some(whole)) = (nonce_of(id), SessionId::of(id)) else { return false };
        let Some(fleet) = &mut self.fleet else { return false };
        if let Some(ending) = fleet.sessions.endings.get(&nonce) {
            let waits = !ending.by.is_empty() && now < ending.until;
            if !waits {
                fleet.sessions.endings.remove(&nonce);
            }
            return waits;
        }
        let others = fleet.others();
        self.share_end(id, principal);
        let Some(fleet) = &mut self.fleet else { return false };
        if others.is_empty() || fleet.sessions.endings.len() >= ENDINGS {
            return false;
        }
        let until = now.saturating_add(END_WITHIN);
        fleet.sessions.endings.insert(nonce, Ending { id: whole, by: others, until });
        true
    }

    /// Notes that another process knows of the end of a session.
    pub(super) fn hear_end_known(&mut self, from: ProcessTag, id: &[u8]) {
        let Some(fleet) = &mut self.fleet else { return };
        let ending = nonce_of(id).and_then(|nonce| fleet.sessions.endings.get_mut(&nonce));
        if let Some(ending) = ending.filter(|ending| ending.id.is(id)) {
            ending.by.remove(&from);
        }
    }

    /// Ends the sessions whose DELETE was not answered by this time: its connection is gone.
    pub(crate) fn tend_endings<S>(&mut self, app: &mut App<'_, S>) {
        let now = self.now;
        let Some(fleet) = &mut self.fleet else { return };
        let over = |ending: &Ending| now >= ending.until.saturating_add(END_WITHIN);
        if !fleet.sessions.endings.values().any(over) {
            return;
        }
        let mut ended = Vec::new();
        fleet.sessions.endings.retain(|nonce, ending| {
            let over = over(ending);
            ended.extend(over.then_some(*nonce));
            !over
        });
        for nonce in ended {
            if let Some(slot) = self.sealed.as_ref().and_then(|sealed| sealed.slot_of(&nonce)) {
                self.end_for_good(app, slot);
            }
        }
    }

    /// Returns the time when the next DELETE is answered at the latest, or its session ended.
    pub(super) fn ending_deadline(&self) -> Option<Millis> {
        let endings = self.fleet.as_ref()?.sessions.endings.values();
        endings.map(|ending| if self.now < ending.until { ending.until } else { ending.until + END_WITHIN }).min()
    }

    /// Gives the end of a session to the others. It still is in its slot.
    pub(crate) fn share_end(&mut self, id: &[u8], principal: Option<&str>) {
        let (Some(fleet), Some(sealed)) = (&mut self.fleet, &self.sealed) else { return };
        let Some((nonce, end)) = nonce_of(id).and_then(|nonce| Some((nonce, sealed.end_of(&nonce)?))) else { return };
        let (log, entry, keep) = (log_of(&nonce), encode_entry(&Entry::Ended), end.saturating_sub(self.now));
        let _ = fleet.outbox.push(Errand::Append { log, id: None, entry, keep });
        let _ = fleet.publish(Recipients::Others, &Message::Ended { session: SessionRef { id, principal } });
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
    pub(super) fn hear_setting<S>(&mut self, app: &mut App<'_, S>, session: SessionRef<'_>, setting: &[u8]) {
        if let Some(slot) = self.open_session_of(app, session) {
            self.set_in_session(app, slot, setting);
        }
    }

    /// Handles the end of a session that another process has ended.
    pub(super) fn hear_end<S>(&mut self, app: &mut App<'_, S>, from: ProcessTag, session: SessionRef<'_>) {
        let now = self.now;
        if let Some(fleet) = &mut self.fleet {
            fleet.publish(Recipients::One(from), &Message::EndKnown { session });
        }
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
                        (log.entries, log.bytes) = (log.entries + 1, log.bytes.saturating_add(setting.len()));
                    }
                    self.set_in_session(app, slot, setting);
                }
                Some(Entry::Ended) => self.end_for_good(app, slot),
                None => {}
            },
            (_, Some(log)) => {
                log.is_read = false;
                for setting in core::mem::take(&mut log.newer) {
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

    /// Reads the logs of all sessions that are open here: messages about them may be lost.
    pub(super) fn read_sessions(&mut self) {
        let (Some(fleet), Some(sealed)) = (&mut self.fleet, &self.sealed) else { return };
        for nonce in sealed.open_ones() {
            fleet.read_session(nonce);
        }
    }
}

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
        Method::Subscribe => ("resources/subscribe", "uri", envelope.members.uri?),
        Method::Unsubscribe => ("resources/unsubscribe", "uri", envelope.members.uri?),
        Method::SetLevel => ("logging/setLevel", "level", envelope.params?.get("level")?),
        _ => return None,
    };
    let parts = [r#"{"jsonrpc":"2.0","id":0,"method":""#, method, r#"","params":{""#, member, r#"":"#];
    let mut setting: Vec<u8> = parts.concat().into();
    setting.extend_from_slice(Some(value).filter(|value| value.kind() == JsonKind::String)?.as_bytes());
    setting.extend_from_slice(b"}}");
    Some(setting)
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
