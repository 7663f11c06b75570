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
    /// The processes that are alive. This one is among them while it is not alone.
    alive: BTreeSet<ProcessTag>,
    pub(crate) sessions: SharedSessions,
    old: OldMessages,
    /// The streams of other processes that are resumed here.
    pub(crate) follows: Follows,
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
        match self.alive.contains(&self.tag) {
            true => self.alive.iter().copied().filter(|process| *process != self.tag).collect(),
            false => BTreeSet::new(),
        }
    }

    /// Returns whether another process is alive; `None` while this one is alone, and does not know.
    pub(crate) fn is_alive(&self, process: ProcessTag) -> Option<bool> {
        self.alive.contains(&self.tag).then(|| self.alive.contains(&process))
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
    /// [`FleetLimits::turn`] of it. Returns `true` if there may be more: give requests a turn, then call again. Without
    /// [`join_fleet`](Endpoint::join_fleet) it does nothing.
    pub fn meet_fleet<S>(&mut self, app: &mut App<'_, S>, engine: &mut dyn Engine, now: Millis) -> bool {
        if self.fleet.is_none() {
            return false;
        }
        self.turn_relays(app);
        self.tell_topics(app);
        self.tell_counts();
        self.tend_follows(now);
        self.tend_endings(app);
        self.hand_over(engine, now);
        let turn = self.fleet.as_ref().map_or(1, |fleet| fleet.limits.turn.max(1));
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
        taken == turn
    }

    /// Keeps a change for subscriptions that arrive after it.
    fn keep_change(&mut self, change: ServerChange<'_>) {
        if let Some(fleet) = &mut self.fleet {
            fleet.sessions.keep(change, self.now);
        }
    }

    /// Returns the times of the next work for the fleet.
    pub(crate) fn fleet_deadlines(&self) -> [Option<Millis>; 3] {
        let live = self.server.in_flight();
        let counts = self.fleet.as_ref().and_then(|fleet| fleet.counts.deadline(live));
        [self.relay_deadline(), counts, self.ending_deadline()]
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
                // Those with a deadline have it; others would wait for ever.
                self.fail_given(app, |has_deadline, _| !has_deadline);
            }
            Arrival::Joined(process) => {
                // This process always has a place.
                if fleet.alive.len() < fleet.limits.processes || *process == fleet.tag {
                    fleet.alive.insert(*process);
                }
            }
            Arrival::Left(process) if *process == fleet.tag => {
                fleet.alive.clear();
                fleet.counts.alone();
                fleet.sessions.end_alone();
                self.fail_given(app, |_, _| true);
                self.leave_followed();
            }
            Arrival::Left(process) => {
                fleet.alive.remove(process);
                fleet.counts.left(*process);
                fleet.sessions.end_left(*process);
                self.owner_left(app, *process);
                self.topics_ended(*process);
                self.followed_left(*process);
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
            Some(Message::Setting { session, message }) => self.hear_setting(app, session, message),
            Some(Message::Ended { session }) => self.hear_end(app, from, session),
            Some(Message::EndKnown { session }) => self.hear_end_known(from, session.id),
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
