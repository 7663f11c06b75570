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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{EndpointConfig, EndpointLimits};
    use crate::fleet::FleetLimits;
    use mcp_sansio::server::{MessageLimits, Peer};
    use mcp_sansio::service::{Extension, Service, Topic};

    static EXTENSIONS: [Extension<()>; 1] = [Extension::new("com.example/things").topics(&[THINGS])];
    const THINGS: Topic<()> = Topic::new("things", "notifications/things", |(), _, _| Ok(()));

    /// Opens a listen to keys.
    fn listen(server: &mut Server<'static>, scope: u32, keys: &str) {
        let service = Service::<()>::new("test", "1").extend(&EXTENSIONS);
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/things":{}}}}"#
            .replace('\n', "");
        let params = alloc::format!(r#"{{"notifications":{{"things":[{keys}]}},"_meta":{meta}}}"#);
        let message =
            alloc::format!(r#"{{"jsonrpc":"2.0","id":{scope},"method":"subscriptions/listen","params":{params}}}"#);
        let (mut peer, mut out) = (Peer::NEW, LineSink::new(Vec::new()));
        server.swap_peer(&mut peer, Scope(scope));
        let _ = service.dispatch(&mut (), message.as_bytes(), server, &mut out).unwrap();
        server.swap_peer(&mut peer, Scope(0));
        assert!(server.has_subscriptions(Scope(scope)), "{}", out.pending().escape_ascii());
    }

    fn server() -> Server<'static> {
        Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() })
    }

    /// They are looked for each time that their number has doubled.
    #[test]
    fn listeners_that_are_gone_are_forgotten() {
        let (mut topics, mut server) = (Topics::default(), server());
        for scope in 1..=10 {
            listen(&mut server, scope, r#""a""#);
            topics.listen(Scope(scope), Some("ann"), &server);
        }
        let sizes: Vec<_> = (100..500)
            .map(|scope| {
                topics.listen(Scope(scope), None, &server);
                topics.listeners.len()
            })
            .collect();
        // Those that are there, and then 54 and 74 others: a look at 64, and the next ones at 84.
        let sweeps: Vec<_> = sizes.windows(2).filter(|pair| pair[1] < pair[0]).map(|pair| pair[0]).collect();
        assert_eq!((&sweeps[..3], sizes.iter().min()), (&[64, 84, 84][..], Some(&11)));
        assert!((1..=10).all(|scope| topics.listeners.get(&scope).is_some_and(|of| of.as_deref() == Some("ann"))));
    }

    fn heard(params: &str, principal: Option<&str>) -> Heard {
        let principal = principal.map(String::from);
        Heard { from: ProcessTag::new(2), has_ended: false, principal, params: params.into() }
    }

    /// Those without a listen make room for others.
    #[test]
    fn states_that_were_heard_have_a_limit_of_bytes() {
        // A member of 6 bytes, a key, params, and 100 for the rest.
        const EACH: usize = 6 + 1 + 2 + 100;
        let (mut topics, mut server) = (Topics::default(), server());
        listen(&mut server, 1, r#""a","b""#);
        let keep = |topics: &mut Topics, key: &str, heard: Heard, most: usize| {
            let kept = topics.keep(("things".into(), key.into()), heard, most, &server);
            let keys: String = topics.heard.keys().map(|key| &*key.1).collect();
            (kept, keys, topics.bytes)
        };
        for principal in [None, Some("ann")] {
            let len = principal.map_or(0, str::len);
            let kept = keep(&mut topics, "a", heard("{}", principal), EACH + len - 1);
            assert_eq!(kept, (false, String::new(), 0));
            assert_eq!(keep(&mut topics, "a", heard("{}", principal), EACH + len), (true, "a".into(), EACH + len));
        }
        // One state replaces another one of its key, and its bytes.
        assert_eq!(keep(&mut topics, "a", heard("{}", None), 10 * EACH), (true, "a".into(), EACH));
        assert_eq!(keep(&mut topics, "c", heard("{}", None), 2 * EACH), (true, "ac".into(), 2 * EACH));
        assert_eq!(keep(&mut topics, "b", heard("{}", None), 2 * EACH), (true, "ab".into(), 2 * EACH));
        // An older state than the last one is not kept in its place.
        assert_eq!(keep(&mut topics, "a", heard("[1]", None), 2 * EACH), (false, "b".into(), EACH));
        assert_eq!(keep(&mut topics, "a", heard("[1]", None), 2 * EACH + 1), (true, "ab".into(), 2 * EACH + 1));
    }

    /// Only what a listen here has selected, and only JSON.
    #[test]
    fn states_are_kept_for_listens() {
        let endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server(), EndpointLimits::default());
        let mut endpoint = endpoint.join_fleet(ProcessTag::new(1), FleetLimits::default());
        listen(&mut endpoint.server, 1, r#""a","b""#);
        let [two, three] = [2, 3].map(ProcessTag::new);
        endpoint.topic_heard(two, ("things", "c"), None, b"{}");
        endpoint.topic_heard(two, ("other", "a"), None, b"{}");
        endpoint.topic_heard(two, ("things", "a"), None, b"nonsense");
        let topics = |endpoint: &Endpoint<'_>| {
            let topics = &endpoint.fleet.as_ref().unwrap().topics;
            assert_eq!(topics.has_heard(), !topics.heard.is_empty());
            let ended = topics.heard.values().map(|heard| heard.has_ended).collect::<Vec<_>>();
            (topics.heard.keys().map(|key| key.1.clone()).collect::<String>(), ended)
        };
        assert_eq!(topics(&endpoint), (String::new(), alloc::vec![]));
        endpoint.topic_heard(two, ("things", "a"), None, b"{}");
        endpoint.topic_heard(three, ("things", "b"), None, b"{}");
        assert_eq!(topics(&endpoint), ("ab".into(), alloc::vec![false, false]));
        endpoint.topics_ended(two);
        assert_eq!(topics(&endpoint), ("ab".into(), alloc::vec![true, false]));
        let processes: Vec<_> = endpoint.fleet.as_ref().unwrap().topics.processes().collect();
        assert_eq!(processes, [three]);
        // It was only silent.
        endpoint.topic_heard(two, ("things", "a"), None, b"{}");
        assert_eq!(topics(&endpoint), ("ab".into(), alloc::vec![false, false]));
    }
}
