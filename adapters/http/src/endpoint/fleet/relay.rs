//! Requests that another process answers: one side gives them away, the other one serves them.
//!
//! The process that got a request over HTTP keeps it in flight, and counts it in the share of its client. The owner handles
//! it as if it had come over HTTP: on a stream of its own, whose messages go back and are written as they are. If the owner
//! has ended, the last state that it has kept is read from its log, and the handler runs again with it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::code;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{IncomingRequest, Millis, Peer, RequestToken, RpcError, Scope};
use mcp_sansio::service::{Relay, RelayTarget};
use mcp_sansio::sink::{LineSink, MessageKind, Sink, whole};

use crate::endpoint::events::StreamOut;
use crate::endpoint::exchange::origin_of;
use crate::endpoint::fleet::Life;
use crate::endpoint::ids::StreamId;
use crate::endpoint::share::Client;
use crate::endpoint::stream::{Purpose, Stream};
use crate::endpoint::{App, Asker, Endpoint, SessionId, StreamStatus};
use crate::fleet::wire::{Message, decode, encode};
use crate::fleet::{Arrival, Errand, ProcessTag, Recipients};

const UNREACHED: RpcError<'static> =
    RpcError::internal("The process that can answer did not answer in time: try again");
const REQUEST_TOO_LARGE: RpcError<'static> = RpcError::internal("The request is too large for another process");
const TOO_LARGE: RpcError<'static> = RpcError::internal("The answer of the other process is too large");
const UNANSWERED: RpcError<'static> =
    RpcError::internal("The other process has not answered, or its answer is too large");
const OVERLOADED: RpcError<'static> = RpcError::internal("Overloaded: too many requests of other processes");
const NO_SESSION: RpcError<'static> = RpcError::new(-32001, "Session not found");

/// The relayed requests of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    /// Those that were given away, by their number.
    given: BTreeMap<u32, Given>,
    /// Those that were taken from others, by process and number.
    taken: BTreeMap<(ProcessTag, u32), Taken>,
    /// Those that were taken and not answered at once, by the time of the last sign that they are worked on.
    signs: VecDeque<(Millis, (ProcessTag, u32))>,
    last: u32,
}

impl Relays {
    /// Returns the processes that requests wait for.
    pub(super) fn owners(&self) -> impl Iterator<Item = ProcessTag> {
        self.given.values().map(|given| given.owner)
    }
}

/// A request that another process answers.
#[derive(Debug)]
struct Given {
    token: RequestToken,
    owner: ProcessTag,
    /// The log with the last state of what it names; empty if nothing is kept.
    log: String,
    principal: Option<String>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It was sent; the owner has to take it until then.
    Sent(Millis),
    /// The owner works on it, and has to say so again until then.
    Taken(Millis),
    /// The owner has ended. Its log is read, until then; the last entry so far.
    Reading(Millis, Option<Vec<u8>>),
    /// The handler runs again, with what was kept for its principal.
    Ended(Option<Vec<u8>>),
}

/// A request of another process, served here.
#[derive(Debug)]
struct Taken {
    stream: StreamId,
    route: u32,
    /// The beginning of an event.
    part: Vec<u8>,
}

/// A relayed request that was just dispatched.
#[derive(Debug)]
pub(crate) struct Dispatch {
    token: RequestToken,
    target: RelayTarget,
    request: Vec<u8>,
}

impl Dispatch {
    /// Returns what is to be relayed after a request was dispatched.
    pub(crate) fn of(relay: &Relay<'_>, token: RequestToken, request: &IncomingRequest<'_>) -> Option<Self> {
        let target = relay.take()?;
        Some(Dispatch { token, target, request: message_of(request)? })
    }
}

/// Writes a request as it came.
fn message_of(request: &IncomingRequest<'_>) -> Option<Vec<u8>> {
    let envelope = request.envelope();
    let MessageShape::Request { id, method } = envelope.shape() else { return None };
    let params = envelope.params.map_or([&b""[..]; 2], |params| [b",\"params\":", params.as_bytes()]);
    let [key, params] = params;
    Some(
        [b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_bytes(), b",\"method\":\"", method.raw(), b"\"", key, params, b"}"]
            .concat(),
    )
}

/// A sink that grows. Its user limits it.
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

/// Requests that were given away.
impl Endpoint<'_> {
    /// Returns whether requests of a peer can be relayed: a session must be known to all processes.
    pub(crate) fn may_relay(&self, asker: &Asker) -> bool {
        let is_sealed = |slot| {
            let session = self.sessions.get(slot);
            session.is_some_and(|session| session.id.as_str().len() > SessionId::LEN)
        };
        self.fleet.is_some() && asker.session.map_or(asker.modern, is_sealed)
    }

    /// Gives a request to the process that can answer it.
    pub(crate) fn give<S>(
        &mut self,
        app: &mut App<'_, S>,
        dispatched: Dispatch,
        session: Option<u16>,
        principal: Option<&str>,
    ) {
        let Dispatch { token, target, request } = dispatched;
        // The client accepts no stream, or there was none: the request is over.
        if self.stream_of(token).is_none() {
            return;
        }
        let session = session.and_then(|slot| self.sessions.get(slot)).map(|session| session.id);
        let session = session.as_ref().map_or("", SessionId::as_str);
        let deadline = self.now.saturating_add(self.relay_within());
        let Some(fleet) = &mut self.fleet else { return };
        let owner = ProcessTag::new(target.process);
        if request.len() > fleet.limits.relay_bytes {
            return self.fail_relayed(app, token, &REQUEST_TOO_LARGE);
        }
        let life = fleet.life(owner);
        fleet.relays.last = fleet.relays.last.wrapping_add(1);
        let number = fleet.relays.last;
        let log = match target.key.as_str() {
            "" => String::new(),
            key => log_of(key),
        };
        let relay = Message::Relay { number, session, principal, request: &request };
        let sent = match life {
            // One that is not heard in time counts as gone then.
            Life::Alive | Life::Unheard => {
                let (to, within) = (Recipients::One(owner), fleet.limits.relay_within);
                fleet.outbox.push(Errand::Publish { to, message: encode(&relay), within })
            }
            Life::Gone => true,
            Life::Unknown => false,
        };
        if !sent {
            return self.fail_relayed(app, token, &UNREACHED);
        }
        let given = Given { token, owner, log, principal: principal.map(String::from), stage: Stage::Sent(deadline) };
        fleet.relays.given.insert(number, given);
        if life == Life::Gone {
            self.owner_left(app, owner);
        }
    }

    fn relay_within(&self) -> Millis {
        self.fleet.as_ref().map_or(0, |fleet| fleet.limits.relay_within)
    }

    /// Answers a relayed request with an error. One that was cancelled needs none.
    fn fail_relayed<S>(&mut self, app: &mut App<'_, S>, token: RequestToken, failure: &RpcError<'_>) {
        let told = self.on_stream_of(token, |server, _, out| server.fail(token, failure, out));
        if told != Some(Ok(())) {
            app.service.forget(app.state, token, &mut self.server);
        }
    }

    /// Notes that a process has left: what it has kept is read for the requests that it had to answer, and its own requests
    /// end.
    pub(crate) fn owner_left<S>(&mut self, app: &mut App<'_, S>, owner: ProcessTag) {
        let deadline = self.now.saturating_add(self.relay_within());
        let mut ended = Vec::new();
        let Some(fleet) = &mut self.fleet else { return };
        for (number, given) in fleet.relays.given.iter_mut().filter(|(_, given)| given.owner == owner) {
            if !matches!(given.stage, Stage::Sent(_) | Stage::Taken(_)) {
                continue;
            }
            if given.log.is_empty() {
                ended.push(*number);
                continue;
            }
            given.stage = Stage::Reading(deadline, None);
            // Without room for it the deadline ends the request.
            fleet.outbox.push(Errand::Read { log: given.log.clone(), after: 0, follow: None });
        }
        let taken = fleet.relays.taken.keys().filter(|(from, _)| *from == owner);
        let taken: Vec<_> = taken.copied().collect();
        for number in ended {
            self.run_ended(number, None);
        }
        for key in taken {
            // It may be there still, and have been silent.
            self.send_relayed(key, true, b"");
            self.stop_taken(app, key);
        }
    }

    /// Fails the requests that wait for other processes, by their deadlines.
    pub(crate) fn fail_given<S>(&mut self, app: &mut App<'_, S>, is_lost: impl Fn(Millis) -> bool) {
        let Some(fleet) = &mut self.fleet else { return };
        let is_over = |given: &Given| match given.stage {
            Stage::Sent(deadline) | Stage::Reading(deadline, _) | Stage::Taken(deadline) => is_lost(deadline),
            Stage::Ended(_) => false,
        };
        let over: Vec<_> = fleet.relays.given.iter().filter(|(_, given)| is_over(given)).map(|(n, _)| *n).collect();
        for number in over {
            if let Some(given) = self.end_given(number) {
                self.fail_relayed(app, given.token, &UNREACHED);
            }
        }
    }

    /// Fails the requests whose deadline has passed.
    pub(crate) fn expire_given<S>(&mut self, app: &mut App<'_, S>) {
        let now = self.now;
        self.fail_given(app, |deadline| deadline <= now);
        self.sign_taken();
    }

    /// Says of the requests that were taken that they are worked on, twice within the time that their processes wait: what these
    /// hear of no more is lost.
    fn sign_taken(&mut self) {
        let (now, within) = (self.now, self.relay_within() / 2);
        while let Some(fleet) = &mut self.fleet
            && let Some(&(since, key)) = fleet.relays.signs.front()
            && now >= since.saturating_add(within.max(1))
        {
            fleet.relays.signs.pop_front();
            if fleet.relays.taken.contains_key(&key) {
                fleet.relays.signs.push_back((now, key));
                self.send_relayed(key, false, b"");
            }
        }
    }

    /// Returns the next deadline of a relayed request.
    pub(crate) fn relay_deadline(&self) -> Option<Millis> {
        let relays = &self.fleet.as_ref()?.relays;
        let deadline = |given: &Given| match given.stage {
            Stage::Sent(deadline) | Stage::Reading(deadline, _) | Stage::Taken(deadline) => Some(deadline),
            Stage::Ended(_) => None,
        };
        let sign = relays.signs.front().map(|(since, _)| since.saturating_add((self.relay_within() / 2).max(1)));
        relays.given.values().filter_map(deadline).chain(sign).min()
    }

    /// Forgets a request that was given away. Its owner stops to work on it.
    fn end_given(&mut self, number: u32) -> Option<Given> {
        let fleet = self.fleet.as_mut()?;
        let given = fleet.relays.given.remove(&number)?;
        if matches!(given.stage, Stage::Sent(_) | Stage::Taken(_)) {
            let (to, within) = (Recipients::One(given.owner), fleet.limits.relay_within);
            // If it is lost, the owner works in vain.
            fleet.outbox.push(Errand::Publish { to, message: encode(&Message::RelayEnd { number }), within });
        }
        Some(given)
    }

    /// Writes a message of the owner on the stream of the request.
    pub(crate) fn relayed<S>(
        &mut self,
        app: &mut App<'_, S>,
        from: ProcessTag,
        number: u32,
        is_last: bool,
        message: &[u8],
    ) {
        let deadline = self.now.saturating_add(self.relay_within());
        let Some(fleet) = &mut self.fleet else { return };
        let Some(given) = fleet.relays.given.get_mut(&number).filter(|given| given.owner == from) else { return };
        if matches!(given.stage, Stage::Reading(..) | Stage::Ended(_)) {
            return;
        }
        given.stage = Stage::Taken(deadline);
        let token = given.token;
        if is_last {
            fleet.relays.given.remove(&number);
        }
        if message.is_empty() {
            if is_last {
                self.fail_relayed(app, token, &UNANSWERED);
            }
            return;
        }
        let Some(kind) = kind_of(message) else {
            if is_last {
                self.fail_relayed(app, token, &UNANSWERED);
            }
            return;
        };
        let written = self.on_stream_of(token, |server, _, out| {
            let written = whole(out, kind, |out| out.put(message));
            if written.is_ok() && is_last {
                server.forget(token);
            }
            written
        });
        match written {
            Some(Ok(())) => {}
            // A notification may be left out.
            _ if kind == MessageKind::Notification => {}
            _ => {
                if !is_last {
                    self.end_given(number);
                }
                self.fail_relayed(app, token, &TOO_LARGE);
            }
        }
    }

    /// Handles an arrival about a log that is read for relayed requests.
    pub(super) fn hear_kept(&mut self, arrival: &Arrival) {
        match arrival {
            Arrival::Entry { log, entry, .. } => self.kept_entry(log, entry),
            Arrival::CaughtUp { log } => self.kept_all(log),
            // The deadline ends what waits for it.
            _ => {}
        }
    }

    /// Handles an entry of such a log.
    fn kept_entry(&mut self, log: &str, entry: &[u8]) {
        let Some(fleet) = &mut self.fleet else { return };
        for given in fleet.relays.given.values_mut().filter(|given| given.log == log) {
            if let Stage::Reading(_, last) = &mut given.stage {
                *last = Some(entry.into());
            }
        }
    }

    /// Handles the end of such a log: the handlers run again.
    fn kept_all(&mut self, log: &str) {
        let Some(fleet) = &mut self.fleet else { return };
        let mut ended = Vec::new();
        for (number, given) in fleet.relays.given.iter_mut().filter(|(_, given)| given.log == log) {
            if let Stage::Reading(_, last) = &mut given.stage {
                let kept = last.take().and_then(|entry| kept_for(given.principal.as_deref(), &entry));
                ended.push((*number, kept));
            }
        }
        for (number, kept) in ended {
            self.run_ended(number, kept);
        }
    }

    /// Lets the handler of a request run again, whose owner has ended.
    fn run_ended(&mut self, number: u32, kept: Option<Vec<u8>>) {
        let Some(given) = self.fleet.as_mut().and_then(|fleet| fleet.relays.given.get_mut(&number)) else { return };
        given.stage = Stage::Ended(kept);
        let token = given.token;
        // A request that was cancelled is stale.
        let _ = self.server.wake(token);
    }

    /// Returns what was kept for a request whose handler runs again; `None` if it was not relayed.
    pub(crate) fn take_ended(&mut self, token: RequestToken) -> Option<Option<Vec<u8>>> {
        let relays = &mut self.fleet.as_mut()?.relays;
        let (number, _) = relays.given.iter().find(|(_, given)| given.token == token)?;
        let number = *number;
        match relays.given.remove(&number)?.stage {
            Stage::Ended(kept) => Some(kept),
            _ => Some(None),
        }
    }
}

/// Returns the name of the log of a key.
pub(crate) fn log_of(key: &str) -> String {
    let mut log = String::from("t:");
    log.push_str(key);
    log
}

/// Returns the state in an entry, if it belongs to a principal.
fn kept_for(principal: Option<&str>, entry: &[u8]) -> Option<Vec<u8>> {
    match decode(entry)? {
        Message::State { principal: owner, params, .. } if owner == principal => {
            Raw::parse(params).is_ok().then(|| params.into())
        }
        _ => None,
    }
}

/// Returns the kind of a message; `None` if it is damaged.
fn kind_of(message: &[u8]) -> Option<MessageKind> {
    let envelope = Envelope::parse(message).ok()?;
    Some(match envelope.shape() {
        MessageShape::Request { .. } => MessageKind::Request,
        MessageShape::Notification { .. } => MessageKind::Notification,
        MessageShape::Response { .. } => match envelope.error {
            None => MessageKind::Result,
            Some(error) => {
                let code = error.get("code").and_then(|code| i32::try_from(code.i64()?).ok());
                MessageKind::Error(code.unwrap_or(code::INTERNAL))
            }
        },
        _ => return None,
    })
}

/// Requests of other processes.
impl Endpoint<'_> {
    /// Serves a request that another process has got.
    pub(crate) fn take_relayed<S>(
        &mut self,
        app: &mut App<'_, S>,
        key: (ProcessTag, u32),
        session: &str,
        principal: Option<&str>,
        request: &[u8],
    ) {
        let Some(fleet) = &self.fleet else { return };
        let limits = fleet.limits;
        if fleet.relays.taken.contains_key(&key) {
            // It is served already: the engine has brought it twice.
            return;
        }
        if fleet.relays.taken.len() >= limits.relayed || request.len() > limits.relay_bytes {
            return self.refuse_relayed(key, request, &OVERLOADED);
        }
        if principal.is_some() {
            self.set_hash_key();
        }
        let slot = match session {
            "" => None,
            session => match self.session_named(app, session.as_bytes(), principal) {
                Some(slot) => Some(slot),
                None => return self.refuse_relayed(key, request, &NO_SESSION),
            },
        };
        let (scope, mut peer) = match slot.and_then(|slot| self.sessions.get(slot)) {
            Some(session) => (session.scope, session.peer),
            None => (self.new_scope(), Peer::NEW),
        };
        let asker =
            Asker { scope, session: slot, resumable: false, primed: false, modern: slot.is_none(), listens: false };
        self.exchanges = self.exchanges.wrapping_add(1).max(1);
        let route = self.exchanges;
        let Some(stream) = self.reserve_stream(&asker, route) else {
            return self.refuse_relayed(key, request, &OVERLOADED);
        };
        let id = self.send_stream(stream, Purpose::Relayed);
        self.allow_places(Client::OTHERS, None);
        let server = &mut self.server;
        server.swap_peer(&mut peer, scope);
        server.set_route(route);
        let mut out = StreamOut::new(&mut self.log, self.streams.slots_mut(), id.slot, false);
        let gate = ();
        let step = app.service.dispatch_from(&origin_of(&gate, principal), app.state, request, server, &mut out);
        if step == Err(FullError::Now) {
            server.drop_batch();
            out.clear();
        }
        drop(out);
        server.swap_peer(&mut peer, Scope(0));
        if let Some(session) = slot.and_then(|slot| self.sessions.get_mut(slot)) {
            session.peer = peer;
        }
        self.settle(app, Client::OTHERS, None, route, id.slot);
        if step.is_err() {
            self.give_up_route(app, route);
            self.free_stream(id.slot);
            return self.refuse_relayed(key, request, &OVERLOADED);
        }
        // The other process knows now that it will be answered.
        if self.server.has_route(route) {
            self.send_relayed(key, false, b"");
            if let Some(fleet) = &mut self.fleet {
                fleet.relays.signs.push_back((self.now, key));
            }
        }
        if let Some(fleet) = &mut self.fleet {
            fleet.relays.taken.insert(key, Taken { stream: id, route, part: Vec::new() });
        }
    }

    /// Sets the key of the hashes of principals, if no request has set it. There is no randomness here; the seal is as secret.
    fn set_hash_key(&mut self) {
        if let Some(sealed) = self.sealed.as_ref().filter(|_| self.hash_key == 0) {
            self.hash_key = sealed.secret();
        }
    }

    /// Answers a request of another process with an error.
    fn refuse_relayed(&mut self, key: (ProcessTag, u32), request: &[u8], failure: &RpcError<'_>) {
        let id = Envelope::parse(request).ok().and_then(|envelope| envelope.id);
        let mut out = LineSink::new(Vec::new());
        // A sink that grows has room.
        let _ = mcp_sansio::error::write_error(&mut out, id, failure);
        self.send_relayed(key, true, out.pending().trim_ascii_end());
    }

    fn send_relayed(&mut self, (to, number): (ProcessTag, u32), is_last: bool, message: &[u8]) {
        let Some(fleet) = &mut self.fleet else { return };
        let message = encode(&Message::Relayed { number, is_last, message });
        let (to, within) = (Recipients::One(to), fleet.limits.relay_within);
        // If it is lost, the deadline of the other process ends the request.
        fleet.outbox.push(Errand::Publish { to, message, within });
    }

    /// Stops the work on a request of another process.
    pub(crate) fn stop_taken<S>(&mut self, app: &mut App<'_, S>, key: (ProcessTag, u32)) {
        let Some(taken) = self.fleet.as_mut().and_then(|fleet| fleet.relays.taken.remove(&key)) else { return };
        self.give_up_route(app, taken.route);
        if self.streams.get(taken.stream).is_some() {
            self.free_stream(taken.stream.slot);
        }
    }

    /// Sends what there is for other processes, and stops the work on requests whose clients are gone.
    pub(crate) fn turn_relays<S>(&mut self, app: &mut App<'_, S>) {
        let Some(fleet) = &self.fleet else { return };
        let server = &self.server;
        let gone = fleet.relays.given.iter().filter(|(_, given)| server.route(given.token).is_none());
        let gone: Vec<_> = gone.map(|(number, _)| *number).collect();
        let streams = &self.streams;
        let has_news = |taken: &Taken| streams.get(taken.stream).is_none_or(Stream::has_news);
        let ready = fleet.relays.taken.iter().filter(|(_, taken)| has_news(taken));
        let ready: Vec<_> = ready.map(|(key, _)| *key).collect();
        for number in gone {
            self.end_given(number);
        }
        for key in ready {
            self.pull_taken(app, key);
        }
    }

    /// Sends the messages on the stream of a request of another process.
    fn pull_taken<S>(&mut self, app: &mut App<'_, S>, key: (ProcessTag, u32)) {
        let Some(fleet) = &mut self.fleet else { return };
        let (most, Some(taken)) = (fleet.limits.relay_bytes, fleet.relays.taken.get_mut(&key)) else { return };
        let (id, mut out) = (taken.stream, Bytes(core::mem::take(&mut taken.part)));
        let status = loop {
            let status = self.pull(id, app, self.now, &mut out);
            if status != StreamStatus::More || out.0.len() > most {
                break status;
            }
        };
        let ends = out.0.windows(2).rposition(|pair| pair == b"\n\n").map_or(0, |at| at + 2);
        let (events, part) = out.0.split_at(ends);
        let text = core::str::from_utf8(events).unwrap_or("");
        for (_, message) in text.split("\n\n").filter_map(|event| event.split_once("data: ")) {
            let is_last = matches!(kind_of(message.as_bytes()), Some(MessageKind::Result | MessageKind::Error(_)));
            let message = if message.len() > most { "" } else { message };
            self.send_relayed(key, is_last || message.is_empty(), message.as_bytes());
            if is_last || message.is_empty() {
                return self.stop_taken(app, key);
            }
        }
        if matches!(status, StreamStatus::End | StreamStatus::Stale) || part.len() > most {
            self.send_relayed(key, true, b"");
            self.stop_taken(app, key);
        } else if let Some(taken) = self.fleet.as_mut().and_then(|fleet| fleet.relays.taken.get_mut(&key)) {
            taken.part = part.into();
        }
    }
}
