//! The state of topics that outlives a process: kept in logs, and heard by listens at other processes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::server::{Scope, Server, ServerChange};
use mcp_sansio::sink::{LineSink, MessageKind, whole};

use super::relay::log_of;
use crate::endpoint::{App, Endpoint};
use crate::fleet::wire::{Message, encode};
use crate::fleet::{Errand, ProcessTag, Recipients};

/// Number of own keys that have changed since the last turn. Changes beyond it are published without their state.
const CHANGED_MAX: usize = 10_000;

/// A member of the filter of a listen, and a key.
type TopicKey = (String, String);

/// The topics of an endpoint in a fleet.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    /// Own keys that have changed.
    changed: BTreeSet<TopicKey>,
    /// The states of keys of other processes, for which there are listens here.
    heard: BTreeMap<TopicKey, Heard>,
    /// The bytes of these.
    bytes: usize,
    /// The principals of listens, by scope.
    listeners: BTreeMap<u32, Option<String>>,
    /// The number of listeners at which those that are gone are looked for.
    sweep_at: usize,
}

/// The last state of a key of another process.
#[derive(Debug)]
struct Heard {
    from: ProcessTag,
    /// The process has ended since.
    has_ended: bool,
    principal: Option<String>,
    params: Vec<u8>,
}

impl Topics {
    /// Notes that an own key has changed. Returns `false` if there is no room.
    pub(crate) fn note(&mut self, member: &str, key: &str) -> bool {
        let has_room = self.changed.len() < CHANGED_MAX;
        if has_room {
            self.changed.insert((member.into(), key.into()));
        }
        has_room
    }

    /// Notes the principal of a listen that was opened.
    pub(crate) fn listen(&mut self, scope: Scope, principal: Option<&str>, server: &Server<'_>) {
        if self.listeners.len() >= self.sweep_at {
            self.listeners.retain(|scope, _| server.has_subscriptions(Scope(*scope)));
            self.sweep_at = self.listeners.len() * 2 + 64;
        }
        self.listeners.insert(scope.0, principal.map(String::from));
    }

    /// Returns the processes whose states were heard, and that have not ended since.
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessTag> {
        self.heard.values().filter(|heard| !heard.has_ended).map(|heard| heard.from)
    }

    /// Returns whether a state of another process was heard.
    pub(crate) fn has_heard(&self) -> bool {
        !self.heard.is_empty()
    }

    /// Writes the notification of a key of another process; `None` for other keys.
    pub(crate) fn write<S>(
        &self,
        app: &App<'_, S>,
        scope: Scope,
        (member, key): (&str, &str),
        params: &mut Object<'_, '_>,
    ) -> Option<Result<(), FullError>> {
        let heard = self.heard.get(&(member.into(), key.into()))?;
        let is_own = self.listeners.get(&scope.0) == Some(&heard.principal);
        let Some(state) = Raw::parse(&heard.params).ok().filter(|_| is_own) else {
            return Some(Err(FullError::Never));
        };
        Some(match heard.has_ended {
            true => app.service.write_ended_topic(member, state, params),
            false => state.members().try_for_each(|(key, value)| params.member(key, value)),
        })
    }

    /// Keeps a state that was heard, within a limit of bytes for all. Returns `false` if there is no room.
    fn keep(&mut self, key: TopicKey, heard: Heard, most: usize, server: &Server<'_>) -> bool {
        let size = |key: &TopicKey, heard: &Heard| {
            let principal = heard.principal.as_ref().map_or(0, String::len);
            key.0.len() + key.1.len() + heard.params.len() + principal + 100
        };
        if let Some(old) = self.heard.remove(&key) {
            self.bytes -= size(&key, &old);
        }
        let new = size(&key, &heard);
        if self.bytes + new > most {
            self.heard.retain(|(member, key), _| server.has_topic(member, key));
            self.bytes = self.heard.iter().map(|(key, heard)| size(key, heard)).sum();
        }
        let fits = self.bytes + new <= most;
        if fits {
            self.bytes += new;
            self.heard.insert(key, heard);
        }
        fits
    }
}

impl Endpoint<'_> {
    /// Keeps the states of own keys that have changed, and sends them to the other processes.
    pub(crate) fn tell_topics<S>(&mut self, app: &App<'_, S>) {
        let Some(fleet) = &mut self.fleet else { return };
        for (member, key) in core::mem::take(&mut fleet.topics.changed) {
            let state = app.service.kept_topic(app.state, &member, &key).and_then(|owner| {
                let mut out = LineSink::new(Vec::new());
                let written = whole(&mut out, MessageKind::Notification, |out| {
                    let mut params = Object::open(out);
                    app.service.write_topic(app.state, &member, &key, &mut params)?;
                    params.close()
                });
                let params = out.pending().trim_ascii_end();
                let state = Message::State { member: &member, key: &key, principal: owner.principal, params };
                let state = encode(&state);
                (written.is_ok() && state.len() <= fleet.limits.relay_bytes).then_some((state, owner.keep))
            });
            let Some((entry, keep)) = state else {
                fleet.outbox.change(ServerChange::Topic { member: &member, key: &key });
                continue;
            };
            let (keep, within) = (keep.min(fleet.limits.keep), fleet.limits.within);
            let message = entry.clone();
            // Without room for it, its clients have to poll.
            fleet.outbox.push(Errand::Replace { log: log_of(&key), entry, keep });
            fleet.outbox.push(Errand::Publish { to: Recipients::Others, message, within });
        }
    }

    /// Handles the state of a key of another process.
    pub(crate) fn topic_heard(
        &mut self,
        from: ProcessTag,
        (member, key): (&str, &str),
        principal: Option<&str>,
        params: &[u8],
    ) {
        let Some(fleet) = &mut self.fleet else { return };
        if !self.server.has_topic(member, key) || Raw::parse(params).is_err() {
            return;
        }
        let heard = Heard { from, has_ended: false, principal: principal.map(String::from), params: params.into() };
        let most = fleet.limits.states_bytes;
        if fleet.topics.keep((member.into(), key.into()), heard, most, &self.server) {
            self.publish_here(ServerChange::Topic { member, key });
        }
    }

    /// Notes that a process has ended: its keys change no more.
    pub(crate) fn topics_ended(&mut self, process: ProcessTag) {
        let Some(fleet) = &mut self.fleet else { return };
        let mut ended = Vec::new();
        for (key, heard) in fleet.topics.heard.iter_mut().filter(|(_, heard)| heard.from == process) {
            heard.has_ended = true;
            ended.push(key.clone());
        }
        for (member, key) in ended {
            self.publish_here(ServerChange::Topic { member: &member, key: &key });
        }
    }
}
