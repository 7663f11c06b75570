//! Engines in one process, for tests: a hub in place of a database, which can fail.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_sansio::server::Millis;

use super::{Arrival, Engine, ProcessTag, Recipients};

/// A function that reports arrivals.
type Wake = Arc<dyn Fn() + Send + Sync>;

/// A place where engines of one process meet, for tests of several endpoints without a database. Its time is what
/// [`advance`](MemoryHub::advance) makes it. It can cut off, lose, delay and kill. Clones are the same hub.
///
/// ```
/// use mcp_sansio_http::fleet::{Arrival, Engine, MemoryHub, ProcessTag, Recipients};
///
/// let hub = MemoryHub::new();
/// let (one, two) = (ProcessTag::new(1), ProcessTag::new(2));
/// let (mut a, mut b) = (hub.join(one), hub.join(two));
/// a.publish(Recipients::Others, b"hello", 1_000);
/// assert_eq!((b.take(), b.take()), (Some(Arrival::Joined(one)), Some(Arrival::Joined(two))));
/// assert_eq!(b.take(), Some(Arrival::Message { from: one, message: b"hello".to_vec() }));
/// ```
#[derive(Clone, Default)]
pub struct MemoryHub(Arc<Mutex<Hub>>);

/// The engine of one process at a [`MemoryHub`]. When it is dropped, the process has left.
#[derive(Debug)]
pub struct MemoryEngine {
    hub: MemoryHub,
    tag: ProcessTag,
}

#[derive(Default)]
struct Hub {
    now: Millis,
    members: BTreeMap<ProcessTag, Member>,
    logs: BTreeMap<String, Log>,
    /// The number of messages to lose.
    lose: usize,
    /// Arrivals that are delayed.
    held: Option<Vec<(ProcessTag, Arrival)>>,
}

#[derive(Default)]
struct Member {
    arrivals: VecDeque<Arrival>,
    wake: Option<Wake>,
    is_away: bool,
    /// A message for all others was left out.
    owes: bool,
    /// The logs that it follows: the end of that.
    follows: BTreeMap<String, Millis>,
}

#[derive(Default)]
struct Log {
    entries: Vec<(u64, Vec<u8>)>,
    until: Millis,
}

impl MemoryHub {
    /// Makes an empty hub, at time 0.
    #[must_use]
    pub fn new() -> Self {
        MemoryHub::default()
    }

    /// Adds a process. All others hear that it has joined.
    #[must_use]
    pub fn join(&self, tag: ProcessTag) -> MemoryEngine {
        self.change(|hub| {
            hub.members.insert(tag, Member::default());
            hub.greet(tag);
        });
        MemoryEngine { hub: self.clone(), tag }
    }

    /// Cuts a process off. It hears that it is alone, and the others that it has left. What it sends or reads meanwhile is
    /// left out.
    pub fn cut(&self, tag: ProcessTag) {
        self.change(|hub| {
            let others = hub.leave(tag);
            let Some(member) = hub.members.get_mut(&tag) else { return };
            member.is_away = true;
            for log in core::mem::take(&mut member.follows).into_keys() {
                member.arrivals.push_back(Arrival::ReadOver { log });
            }
            member.arrivals.extend(others.into_iter().chain([tag]).map(Arrival::Left));
        });
    }

    /// Brings a process back. It hears that messages may be lost; so do the others if it has sent some meanwhile.
    pub fn heal(&self, tag: ProcessTag) {
        self.change(|hub| {
            let Some(member) = hub.members.get_mut(&tag) else { return };
            member.is_away = false;
            let owes = core::mem::take(&mut member.owes);
            hub.greet(tag);
            hub.give(tag, Arrival::Lost);
            if owes {
                hub.give_others(tag, &Arrival::Lost);
            }
        });
    }

    /// Loses the next `messages` messages. Those whom a message for all others does not reach hear that some may be lost.
    pub fn lose(&self, messages: usize) {
        self.lock().lose = messages;
    }

    /// Delays all that arrives, until [`release`](MemoryHub::release).
    pub fn hold(&self) {
        self.lock().held.get_or_insert_default();
    }

    /// Delivers what was delayed.
    pub fn release(&self) {
        self.change(|hub| {
            for (to, arrival) in hub.held.take().unwrap_or_default() {
                hub.give(to, arrival);
            }
        });
    }

    /// Ends a process, as `kill -9` would: its engine does nothing any more, and the others hear that it has left.
    pub fn kill(&self, tag: ProcessTag) {
        self.change(|hub| {
            hub.leave(tag);
            hub.members.remove(&tag);
        });
    }

    /// Lets the others take a process for dead that is only silent, and hear it again.
    pub fn suspect(&self, tag: ProcessTag) {
        self.change(|hub| {
            hub.give_others(tag, &Arrival::Left(tag));
            hub.give_others(tag, &Arrival::Joined(tag));
        });
    }

    /// Sets the time forward: logs whose time is over are forgotten, and the reading of logs ends.
    pub fn advance(&self, millis: Millis) {
        self.change(|hub| {
            hub.now = hub.now.saturating_add(millis);
            let now = hub.now;
            hub.logs.retain(|_, log| log.until > now);
            let mut over = Vec::new();
            for (tag, member) in &mut hub.members {
                member.follows.retain(|log, until| {
                    let goes_on = *until > now;
                    if !goes_on {
                        over.push((*tag, Arrival::ReadOver { log: log.clone() }));
                    }
                    goes_on
                });
            }
            over.into_iter().for_each(|(tag, arrival)| hub.give(tag, arrival));
        });
    }

    /// Starts the hub anew, as a database without files: it has forgotten all logs, and all hear that messages may be lost.
    pub fn restart(&self) {
        self.change(|hub| {
            hub.logs.clear();
            let all: Vec<_> = hub.there().collect();
            all.into_iter().for_each(|tag| hub.give(tag, Arrival::Lost));
        });
    }

    /// Returns the names of the logs and the numbers of their entries.
    #[must_use]
    pub fn logs(&self) -> Vec<(String, usize)> {
        self.lock().logs.iter().map(|(name, log)| (name.clone(), log.entries.len())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Hub> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something, then wakes those for whom something has arrived.
    fn change(&self, act: impl FnOnce(&mut Hub)) {
        let mut hub = self.lock();
        let before: BTreeMap<_, _> = hub.members.iter().map(|(tag, member)| (*tag, member.arrivals.len())).collect();
        act(&mut hub);
        let has_grown = |(tag, member): (&ProcessTag, &Member)| member.arrivals.len() > *before.get(tag).unwrap_or(&0);
        let grown = hub.members.iter().filter(|member| has_grown(*member));
        let wakes: Vec<Wake> = grown.filter_map(|(_, member)| member.wake.clone()).collect();
        drop(hub);
        wakes.iter().for_each(|wake| wake());
    }
}

impl Hub {
    /// Introduces a process and those that are there to each other.
    fn greet(&mut self, tag: ProcessTag) {
        let others: Vec<_> = self.there().filter(|other| *other != tag).collect();
        for other in others.into_iter().chain([tag]) {
            self.give(tag, Arrival::Joined(other));
        }
        self.give_others(tag, &Arrival::Joined(tag));
    }

    /// Reports to the others that a process has left. Returns them.
    fn leave(&mut self, tag: ProcessTag) -> Vec<ProcessTag> {
        self.give_others(tag, &Arrival::Left(tag));
        self.there().filter(|other| *other != tag).collect()
    }

    fn there(&self) -> impl Iterator<Item = ProcessTag> {
        self.members.iter().filter(|(_, member)| !member.is_away).map(|(tag, _)| *tag)
    }

    fn give_others(&mut self, from: ProcessTag, arrival: &Arrival) {
        let others: Vec<_> = self.there().filter(|other| *other != from).collect();
        for other in others {
            self.give(other, arrival.clone());
        }
    }

    fn give(&mut self, to: ProcessTag, arrival: Arrival) {
        match (&mut self.held, self.members.get_mut(&to)) {
            (Some(held), _) => held.push((to, arrival)),
            (None, Some(member)) if !member.is_away => member.arrivals.push_back(arrival),
            _ => {}
        }
    }

    fn publish(&mut self, from: ProcessTag, to: Recipients, message: &[u8]) {
        let Some(member) = self.members.get_mut(&from) else { return };
        if member.is_away {
            member.owes |= to == Recipients::Others;
            return;
        }
        let is_lost = self.lose > 0;
        self.lose = self.lose.saturating_sub(1);
        let arrival = Arrival::Message { from, message: message.into() };
        match to {
            Recipients::Others => self.give_others(from, if is_lost { &Arrival::Lost } else { &arrival }),
            Recipients::One(to) if !is_lost => self.give(to, arrival),
            Recipients::One(_) => {}
        }
    }

    fn append(&mut self, from: ProcessTag, name: &str, id: Option<u64>, entry: &[u8], keep: Millis) {
        if self.members.get(&from).is_none_or(|member| member.is_away) {
            return;
        }
        let log = self.logs.entry(name.into()).or_default();
        log.until = log.until.max(self.now.saturating_add(keep));
        let last = log.entries.last().map_or(0, |(id, _)| *id);
        let id = id.unwrap_or(last + 1);
        if id <= last {
            return;
        }
        log.entries.push((id, entry.into()));
        let follow = self.members.iter().filter(|(_, member)| member.follows.contains_key(name));
        let followers: Vec<_> = follow.map(|(tag, _)| *tag).collect();
        for tag in followers {
            self.give(tag, Arrival::Entry { log: name.into(), id, entry: entry.into() });
        }
    }

    fn read(&mut self, tag: ProcessTag, name: &str, after: u64, follow: Option<Millis>) {
        let until = follow.map(|millis| self.now.saturating_add(millis));
        let Some(member) = self.members.get_mut(&tag) else { return };
        if member.is_away {
            return member.arrivals.push_back(Arrival::ReadOver { log: name.into() });
        }
        if let Some(until) = until {
            member.follows.insert(name.into(), until);
        }
        let entries = self.logs.get(name).map(|log| log.entries.clone()).unwrap_or_default();
        for (id, entry) in entries.into_iter().filter(|(id, _)| *id > after) {
            self.give(tag, Arrival::Entry { log: name.into(), id, entry });
        }
        self.give(tag, Arrival::CaughtUp { log: name.into() });
    }
}

impl Engine for MemoryEngine {
    fn tag(&self) -> ProcessTag {
        self.tag
    }

    fn publish(&mut self, to: Recipients, message: &[u8], _: Millis) {
        self.hub.change(|hub| hub.publish(self.tag, to, message));
    }

    fn take(&mut self) -> Option<Arrival> {
        self.hub.lock().members.get_mut(&self.tag)?.arrivals.pop_front()
    }

    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], keep: Millis) {
        self.hub.change(|hub| hub.append(self.tag, log, id, entry, keep));
    }

    fn replace(&mut self, log: &str, entry: &[u8], keep: Millis) {
        self.hub.change(|hub| {
            hub.append(self.tag, log, None, entry, keep);
            if let Some(log) = hub.logs.get_mut(log) {
                log.entries.drain(..log.entries.len().saturating_sub(1));
            }
        });
    }

    fn read(&mut self, log: &str, after: u64, follow: Option<Millis>) {
        self.hub.change(|hub| hub.read(self.tag, log, after, follow));
    }

    fn stop(&mut self, log: &str) {
        if let Some(member) = self.hub.lock().members.get_mut(&self.tag) {
            member.follows.remove(log);
        }
    }

    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        let wakes = match self.hub.lock().members.get_mut(&self.tag) {
            Some(member) => {
                member.wake = Some(Arc::clone(&wake));
                !member.arrivals.is_empty()
            }
            None => false,
        };
        if wakes {
            wake();
        }
    }
}

impl Drop for MemoryEngine {
    fn drop(&mut self) {
        self.hub.kill(self.tag);
    }
}

impl fmt::Debug for MemoryHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHub").finish_non_exhaustive()
    }
}

/// An engine can be put into a box.
const _: fn(MemoryEngine) -> Box<dyn Engine> = |engine| Box::new(engine);

#[cfg(test)]
mod tests {
    use super::*;

    fn all(engine: &mut MemoryEngine) -> Vec<Arrival> {
        core::iter::from_fn(|| engine.take()).collect()
    }

    fn three() -> (MemoryHub, [MemoryEngine; 3]) {
        let hub = MemoryHub::new();
        let mut engines = [1, 2, 3].map(|tag| hub.join(ProcessTag::new(tag)));
        engines.iter_mut().for_each(|engine| drop(all(engine)));
        (hub, engines)
    }

    fn message(from: u32, message: &[u8]) -> Arrival {
        Arrival::Message { from: ProcessTag::new(from), message: message.into() }
    }

    /// A waker that is set late is called for earlier arrivals, and for nothing else.
    #[test]
    fn a_waker_hears_of_what_waits() {
        use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let (_hub, [mut a, mut b, mut c]) = three();
        a.publish(Recipients::One(ProcessTag::new(2)), b"one", 1);
        let woken = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        for (engine, woken) in [&mut b, &mut c].into_iter().zip(&woken) {
            let woken = Arc::clone(woken);
            engine.set_waker(Arc::new(move || _ = woken.fetch_add(1, Relaxed)));
        }
        assert_eq!(woken.each_ref().map(|woken| woken.load(Relaxed)), [1, 0]);
        a.publish(Recipients::Others, b"all", 1);
        assert_eq!(woken.each_ref().map(|woken| woken.load(Relaxed)), [2, 1]);
    }

    #[test]
    fn messages_reach_their_recipients() {
        let (_, [mut a, mut b, mut c]) = three();
        a.publish(Recipients::Others, b"all", 1);
        a.publish(Recipients::One(ProcessTag::new(3)), b"one", 1);
        assert_eq!((all(&mut a).len(), all(&mut b)), (0, [message(1, b"all")].into()));
        assert_eq!(all(&mut c), [message(1, b"all"), message(1, b"one")]);
    }

    #[test]
    fn a_log_is_read_and_followed_until_its_time() {
        let (hub, [mut a, mut b, _c]) = three();
        for id in [1, 2, 2, 1] {
            a.append("l", Some(id), b"x", 1_000);
        }
        b.read("l", 1, Some(500));
        a.append("l", None, b"y", 1_000);
        hub.advance(500);
        a.append("l", None, b"z", 1_000);
        let entry = |id, entry: &[u8]| Arrival::Entry { log: "l".into(), id, entry: entry.into() };
        let (caught_up, over) = (Arrival::CaughtUp { log: "l".into() }, Arrival::ReadOver { log: "l".into() });
        assert_eq!(all(&mut b), [entry(2, b"x"), caught_up.clone(), entry(3, b"y"), over]);
        hub.advance(1_000);
        b.read("l", 0, None);
        assert_eq!((all(&mut b), hub.logs()), ([caught_up].into(), Vec::new()));
    }

    /// An entry of a log that is not followed any more does not arrive.
    #[test]
    fn a_log_that_is_stopped() {
        let (_hub, [mut a, mut b, _c]) = three();
        b.read("l", 0, Some(500));
        a.append("l", None, b"x", 1_000);
        assert_eq!(all(&mut b).len(), 2);
        b.stop("l");
        a.append("l", None, b"y", 1_000);
        assert_eq!(all(&mut b), []);
    }

    #[test]
    fn what_fails_is_heard_of() {
        let (hub, [mut a, mut b, mut c]) = three();
        let [one, two, three] = [1, 2, 3].map(ProcessTag::new);
        hub.cut(one);
        a.publish(Recipients::Others, b"no", 1);
        b.publish(Recipients::Others, b"yes", 1);
        assert_eq!(all(&mut a), [two, three, one].map(Arrival::Left));
        assert_eq!(all(&mut c), [Arrival::Left(one), message(2, b"yes")]);
        hub.heal(one);
        assert_eq!(all(&mut a), [Arrival::Joined(two), Arrival::Joined(three), Arrival::Joined(one), Arrival::Lost]);
        assert_eq!(all(&mut c), [Arrival::Joined(one), Arrival::Lost]);
        hub.lose(1);
        a.publish(Recipients::Others, b"no", 1);
        hub.hold();
        a.publish(Recipients::Others, b"late", 1);
        assert_eq!(all(&mut c), [Arrival::Lost]);
        hub.release();
        drop(a);
        assert_eq!(all(&mut c), [message(1, b"late"), Arrival::Left(one)]);
    }

    /// Neither what is sent to it nor what was on its way.
    #[test]
    fn nothing_reaches_a_process_that_is_cut_off() {
        let (hub, [mut a, mut b, _c]) = three();
        let [one, two, three] = [1, 2, 3].map(ProcessTag::new);
        hub.hold();
        a.publish(Recipients::One(two), b"on its way", 1);
        hub.cut(two);
        hub.release();
        a.publish(Recipients::One(two), b"no", 1);
        assert_eq!(all(&mut b), [one, three, two].map(Arrival::Left));
        hub.heal(two);
        a.publish(Recipients::One(two), b"yes", 1);
        let joined = [one, three, two].map(Arrival::Joined);
        assert_eq!(all(&mut b), joined.into_iter().chain([Arrival::Lost, message(1, b"yes")]).collect::<Vec<_>>());
    }

    #[test]
    fn a_process_that_is_suspected_is_heard_again() {
        let (hub, [mut a, mut b, mut c]) = three();
        let one = ProcessTag::new(1);
        hub.suspect(one);
        for engine in [&mut b, &mut c] {
            assert_eq!(all(engine), [Arrival::Left(one), Arrival::Joined(one)]);
        }
        assert_eq!(all(&mut a), []);
    }

    #[test]
    fn a_restart_forgets_the_logs_and_all_hear_of_a_loss() {
        let (hub, [mut a, mut b, mut c]) = three();
        a.append("l", None, b"x", 1_000);
        hub.restart();
        for engine in [&mut a, &mut b, &mut c] {
            assert_eq!(all(engine), [Arrival::Lost]);
        }
        b.read("l", 0, None);
        assert_eq!((all(&mut b), hub.logs()), ([Arrival::CaughtUp { log: "l".into() }].into(), Vec::new()));
    }

    /// It hears that its reading is over; what it sends meanwhile reaches no one and no log.
    #[test]
    fn a_process_that_is_cut_off_sends_and_reads_nothing() {
        let (hub, [mut a, mut b, mut c]) = three();
        let [one, two, three] = [1, 2, 3].map(ProcessTag::new);
        let over = || Arrival::ReadOver { log: "l".into() };
        b.append("l", None, b"x", 1_000);
        a.read("l", 1, Some(500));
        assert_eq!(all(&mut a), [Arrival::CaughtUp { log: "l".into() }]);
        hub.cut(one);
        assert_eq!(all(&mut a), [over(), Arrival::Left(two), Arrival::Left(three), Arrival::Left(one)]);
        a.append("l", None, b"no", 1_000);
        a.replace("other", b"no", 1_000);
        a.read("l", 0, Some(500));
        a.publish(Recipients::One(two), b"no", 1);
        assert_eq!((all(&mut a), hub.logs()), ([over()].into(), [("l".into(), 1)].into()));
        hub.restart();
        b.append("l", None, b"y", 1_000);
        hub.heal(one);
        // A message to one is not missed by all, and what was followed before is not followed any more.
        b.append("l", None, b"z", 1_000);
        assert_eq!(
            all(&mut a),
            [two, three, one].map(Arrival::Joined).into_iter().chain([Arrival::Lost]).collect::<Vec<_>>()
        );
        assert_eq!(all(&mut c), [Arrival::Left(one), Arrival::Lost, Arrival::Joined(one)]);
        // One for all is, whatever follows it; and only once.
        for _ in 0..2 {
            hub.cut(one);
            a.publish(Recipients::Others, b"no", 1);
            a.publish(Recipients::One(two), b"no", 1);
            hub.heal(one);
            assert_eq!(all(&mut c), [Arrival::Left(one), Arrival::Joined(one), Arrival::Lost]);
        }
        hub.cut(one);
        hub.heal(one);
        assert_eq!(all(&mut c), [Arrival::Left(one), Arrival::Joined(one)]);
    }

    #[test]
    fn so_many_messages_are_lost() {
        let (hub, [mut a, mut b, mut c]) = three();
        hub.lose(2);
        a.publish(Recipients::One(ProcessTag::new(2)), b"no", 1);
        a.publish(Recipients::Others, b"no", 1);
        a.publish(Recipients::Others, b"yes", 1);
        assert_eq!((all(&mut a), all(&mut b)), (Vec::new(), [Arrival::Lost, message(1, b"yes")].into()));
        assert_eq!(all(&mut c), [Arrival::Lost, message(1, b"yes")]);
    }

    /// Neither a shorter time nor an entry that comes twice shortens the life of a log, and a last state replaces all.
    #[test]
    fn a_log_lives_as_long_as_its_longest_entry() {
        let (hub, [mut a, mut b, _c]) = three();
        a.append("l", Some(5), b"x", 1_000);
        a.append("l", None, b"y", 10);
        hub.advance(999);
        assert_eq!(hub.logs(), [("l".into(), 2)]);
        a.replace("l", b"z", 1);
        b.read("l", 0, None);
        // It is read, not followed.
        a.append("l", Some(9), b"later", 1);
        let (log, entry) = (String::from("l"), b"z".to_vec());
        assert_eq!(all(&mut b), [Arrival::Entry { log: log.clone(), id: 7, entry }, Arrival::CaughtUp { log }]);
        hub.advance(1);
        assert_eq!(hub.logs(), []);
    }

    /// Nothing reaches an engine whose process was killed, nor comes from it.
    #[test]
    fn a_process_that_was_killed() {
        let (hub, [mut a, mut b, mut c]) = three();
        let one = ProcessTag::new(1);
        b.publish(Recipients::One(one), b"no", 1);
        hub.kill(one);
        a.publish(Recipients::Others, b"no", 1);
        a.append("l", None, b"x", 1);
        a.read("l", 0, Some(1));
        a.stop("l");
        a.set_waker(Arc::new(|| panic!("nothing waits")));
        b.publish(Recipients::Others, b"yes", 1);
        assert_eq!((all(&mut a), hub.logs()), (Vec::new(), Vec::new()));
        assert_eq!(
            (all(&mut b), all(&mut c)),
            ([Arrival::Left(one)].into(), [Arrival::Left(one), message(2, b"yes")].into())
        );
        assert_eq!(alloc::format!("{hub:?}"), "MemoryHub { .. }");
    }
}
