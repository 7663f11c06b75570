//! The processes of a fleet: messages to the others, and what arrives from them.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use mcp_sansio::server::{Millis, ServerChange};

use super::copies::Copies;
use super::follow::Follows;
use super::stream::Origin;
use super::{App, Endpoint};

mod counts;
mod old;
mod relay;
mod sessions;
mod topics;

use counts::Counts;
use old::OldMessages;
pub(crate) use relay::Dispatch;
use relay::Relays;
use sessions::SharedSessions;
use topics::Topics;

use crate::fleet::wire::{Message, decode};
use crate::fleet::{Arrival, Engine, FleetLimits, Outbox, ProcessTag};

/// The place of an endpoint in its fleet.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) tag: ProcessTag,
    pub(crate) limits: FleetLimits,
    pub(crate) outbox: Outbox,
    pub(crate) relays: Relays,
    pub(crate) topics: Topics,
    pub(crate) counts: Counts,
    presence: Presence,
    /// The other processes that were heard.
    alive: BTreeSet<ProcessTag>,
    pub(crate) sessions: SharedSessions,
    old: OldMessages,
    /// The streams of other processes that are resumed here.
    pub(crate) follows: Follows,
}

/// The knowledge of a process about the others.
#[derive(Debug)]
enum Presence {
    /// The engine has not said anything yet.
    Unknown,
    /// The engine is away.
    Alone,
    /// It has joined, at this time: others that are alive may not have been heard yet. Some are known to have left since.
    Joining { since: Millis, left: BTreeSet<ProcessTag> },
    /// All that are alive were heard.
    Joined,
}

/// The state of another process, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// It has ended.
    Gone,
    /// It was not heard, but may be alive: this process has just started, or joined.
    Unheard,
    /// This process is alone, and does not know.
    Unknown,
}

impl Membership {
    /// Gives a change of this process to the others. The state of a topic is written later.
    pub(crate) fn change(&mut self, change: ServerChange<'_>, now: Millis) {
        self.sessions.keep(change, now);
        match change {
            ServerChange::Topic { member, key } if self.topics.note(member, key) => {}
            change => self.outbox.change(change),
        }
    }

    /// Returns the other processes that are alive; none while this one is alone.
    fn others(&self) -> BTreeSet<ProcessTag> {
        self.alive.clone()
    }

    /// Returns whether the engine is away.
    pub(crate) const fn is_alone(&self) -> bool {
        matches!(self.presence, Presence::Alone)
    }

    /// Returns whether another process is alive.
    pub(crate) fn life(&self, process: ProcessTag) -> Life {
        match &self.presence {
            Presence::Alone => Life::Unknown,
            _ if self.alive.contains(&process) => Life::Alive,
            Presence::Unknown => Life::Unheard,
            Presence::Joining { left, .. } if !left.contains(&process) => Life::Unheard,
            Presence::Joining { .. } | Presence::Joined => Life::Gone,
        }
    }

    /// Returns the time at which all that are alive were heard.
    fn heard_all_at(&self) -> Option<Millis> {
        match &self.presence {
            Presence::Joining { since, .. } => Some(since.saturating_add(self.limits.join_within)),
            _ => None,
        }
    }

    /// Notes that this process has joined, or another one.
    fn joined(&mut self, process: ProcessTag, now: Millis) {
        if process == self.tag {
            self.presence = Presence::Joining { since: now, left: BTreeSet::new() };
        } else if self.alive.len() < self.limits.processes {
            self.alive.insert(process);
        }
    }

    /// Notes that another process has left.
    fn left(&mut self, process: ProcessTag) {
        self.alive.remove(&process);
        if let Presence::Joining { left, .. } = &mut self.presence
            && left.len() < self.limits.processes
        {
            left.insert(process);
        }
    }
}

impl Endpoint<'_> {
    /// Makes the endpoint one of several processes that serve the same clients, over an [`Engine`]: call
    /// [`meet_fleet`](Endpoint::meet_fleet) with it. The HTTP servers of the adapters do both.
    ///
    /// Changes that handlers and the server [publish](Endpoint::publish) reach the clients of all. Where some may be lost,
    /// clients hear that [all](ServerChange::All) may have changed.
    ///
    /// With [`seal_sessions`](Endpoint::seal_sessions) a client may send each message of a session to another process: answers to
    /// questions and cancels reach the process that waits for them, subscriptions and the level of `logging/setLevel` count at
    /// all, and DELETE ends the session at all. A session of 2024-11-05 stays with the process that has its stream; the others
    /// give it what they get. An event stream that breaks is resumed at any.
    ///
    /// ```
    /// use mcp_sansio::server::{MessageLimits, Server, ServerChange};
    /// use mcp_sansio::service::Service;
    /// use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits};
    /// use mcp_sansio_http::fleet::{Engine, FleetLimits, MemoryHub, ProcessTag};
    ///
    /// let hub = MemoryHub::new(); // better: an engine over a database
    /// let mut engine = hub.join(ProcessTag::new(7));
    /// let server = Server::growing(MessageLimits::default());
    /// let endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default());
    /// let mut endpoint = endpoint.join_fleet(engine.tag(), FleetLimits::default());
    /// let (service, mut state) = (Service::<()>::new("demo", "1.0"), ());
    /// let mut app = App::new(&service, &mut state);
    /// endpoint.publish(ServerChange::Tools);
    /// // After each turn, and when the engine wakes.
    /// while endpoint.meet_fleet(&mut app, &mut engine, 0) {}
    /// ```
    #[must_use]
    pub fn join_fleet(mut self, tag: ProcessTag, limits: FleetLimits) -> Self {
        let outbox = Outbox::new(&limits);
        self.server.set_next_id(tag.first_question());
        let follows = Follows::new(&limits);
        self.fleet = Some(Box::new(Membership {
            tag,
            limits,
            outbox,
            presence: Presence::Unknown,
            alive: BTreeSet::new(),
            sessions: SharedSessions::default(),
            old: OldMessages::default(),
            relays: Relays::default(),
            topics: Topics::default(),
            counts: Counts::default(),
            follows,
        }));
        self.log.copies = Some(Box::new(Copies::new(&limits)));
        self.streams.tag = tag.number();
        self
    }

    /// Gives the engine what this process has to say to the others, and handles what has arrived from them, up to
    /// [`FleetLimits::turn`] of it. Returns `true` if something has arrived or there may be more: give requests a turn, those too that
    /// are [undecided](crate::endpoint::EndpointResponse::is_undecided), then call again. Without
    /// [`join_fleet`](Endpoint::join_fleet) it does nothing.
    pub fn meet_fleet<S>(&mut self, app: &mut App<'_, S>, engine: &mut dyn Engine, now: Millis) -> bool {
        if self.fleet.is_none() {
            return false;
        }
        self.turn_relays(app);
        self.tell_topics(app);
        self.tend_follows(now);
        self.tend_awaited(app);
        self.tend_presence(app, now);
        let turn = self.fleet.as_ref().map_or(1, |fleet| fleet.limits.turn.max(1));
        let has_more = self.copy_anew(turn);
        self.hand_over(engine, now);
        let mut taken = 0;
        while taken < turn
            && let Some(arrival) = engine.take()
        {
            if taken == 0 {
                self.tick(now);
            }
            taken += 1;
            self.arrived(app, &arrival);
        }
        if self.fleet.as_ref().is_some_and(|fleet| fleet.old.is_waiting()) {
            self.tick(now);
            self.go_on_old(app);
        }
        if taken > 0 {
            self.go_on(app);
            self.turn_relays(app);
            self.tell_topics(app);
            self.hand_over(engine, now);
        }
        taken > 0 || has_more
    }

    /// Keeps a change for subscriptions that arrive after it.
    fn keep_change(&mut self, change: ServerChange<'_>) {
        if let Some(fleet) = &mut self.fleet {
            fleet.sessions.keep(change, self.now);
        }
    }

    /// Returns the times of the next work for the fleet.
    pub(crate) fn fleet_deadlines(&self) -> [Option<Millis>; 5] {
        let live = self.server.in_flight();
        let counts = self.fleet.as_ref().and_then(|fleet| fleet.counts.deadline(live));
        let heard_all = self.fleet.as_ref().and_then(|fleet| fleet.heard_all_at());
        [self.relay_deadline(), counts, self.awaited_deadline(), self.log_deadline(), heard_all]
    }

    /// Treats the processes that were not heard in time after this one has joined as those that have left.
    pub(crate) fn tend_presence<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        let Some(fleet) = self.fleet.as_mut().filter(|fleet| fleet.heard_all_at().is_some_and(|at| at <= now)) else {
            return;
        };
        fleet.presence = Presence::Joined;
        let named = fleet.relays.owners().chain(fleet.topics.processes()).chain(fleet.follows.processes());
        let gone: BTreeSet<_> =
            named.filter(|process| *process != fleet.tag && !fleet.alive.contains(process)).collect();
        for process in gone {
            self.process_left(app, process);
        }
    }

    /// Ends what waits for a process that has left.
    fn process_left<S>(&mut self, app: &mut App<'_, S>, process: ProcessTag) {
        if let Some(fleet) = &mut self.fleet {
            fleet.counts.left(process);
            fleet.sessions.awaited_left(process);
        }
        self.owner_left(app, process);
        self.topics_ended(process);
        self.followed_left(process);
    }

    /// Gives the engine what waits for it.
    fn hand_over(&mut self, engine: &mut dyn Engine, now: Millis) {
        if let Some(copies) = &mut self.log.copies {
            copies.hand_over(engine, now, self.config.resume_within);
        }
        if let Some(fleet) = &mut self.fleet {
            fleet.outbox.hand_over(engine);
        }
    }

    /// Handles an arrival.
    fn arrived<S>(&mut self, app: &mut App<'_, S>, arrival: &Arrival) {
        let Some(fleet) = &mut self.fleet else { return };
        match arrival {
            Arrival::Message { from, message } => self.heard(app, *from, message),
            Arrival::Lost => {
                self.publish_here(ServerChange::All);
                self.read_sessions();
                // The logs may be lost too.
                if let Some(copies) = &mut self.log.copies {
                    copies.begin_all_anew();
                }
            }
            Arrival::Joined(process) => fleet.joined(*process, self.now),
            Arrival::Left(process) if *process == fleet.tag => {
                fleet.alive.clear();
                fleet.presence = Presence::Alone;
                fleet.counts.alone();
                fleet.sessions.awaited_alone();
                self.fail_given(app, |_| true);
                self.leave_followed();
            }
            Arrival::Left(process) => {
                fleet.left(*process);
                self.process_left(app, *process);
            }
            Arrival::Entry { .. } | Arrival::CaughtUp { .. } | Arrival::ReadOver { .. } => {
                // Each knows its logs by the beginning of their names.
                if !self.hear_log(app, arrival) {
                    self.hear_kept(arrival);
                    self.hear_copy(arrival);
                }
            }
        }
    }

    /// Handles a message of another process.
    fn heard<S>(&mut self, app: &mut App<'_, S>, from: ProcessTag, message: &[u8]) {
        match decode(message) {
            Some(Message::Change(change)) => {
                self.keep_change(change);
                self.publish_here(change);
            }
            Some(Message::InSession { session, message }) => self.hear_in_session(app, session, message),
            Some(Message::Setting { session, request, message }) => {
                self.hear_setting(app, from, session, request, message);
            }
            Some(Message::Ended { session }) => self.hear_end(app, from, session),
            Some(Message::Known { session, request }) => self.hear_known(from, session.id, request),
            Some(Message::Old { session, message }) => self.hear_old(app, session, message),
            Some(Message::Relay { number, session, principal, request }) => {
                self.take_relayed(app, (from, number), session, principal, request);
            }
            Some(Message::Relayed { number, is_last, message }) => {
                self.relayed(app, from, number, is_last, message);
            }
            Some(Message::RelayEnd { number }) => self.stop_taken(app, (from, number)),
            Some(Message::InFlight(entries)) => {
                let now = self.now;
                if let Some(fleet) = &mut self.fleet {
                    fleet.counts.heard(from, entries, &fleet.limits, now);
                }
            }
            Some(Message::State { member, key, principal, params }) => {
                self.topic_heard(from, (member, key), principal, params);
            }
            Some(Message::Follows { session, slot, number, event, since }) => {
                if let (Some(session), Ok(slot)) = (self.open_session_of(app, session), slot.try_into()) {
                    self.hear_follower(session, Origin { tag: 0, slot, number }, event, since);
                }
            }
            Some(Message::Stream { session, since }) => {
                if let Some(session) = self.open_session_of(app, session) {
                    self.hear_session_stream(session, from, since);
                }
            }
            None => {}
        }
    }
}
