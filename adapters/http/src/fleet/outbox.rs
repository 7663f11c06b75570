//! The errands of an endpoint to its engine, until the two meet.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::server::{Millis, ServerChange};

use super::wire::{Message, encode};
use super::{Engine, FleetLimits, Recipients};

/// A call of an [`Engine`] that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    Publish { to: Recipients, message: Vec<u8>, within: Millis },
    Append { log: String, id: Option<u64>, entry: Vec<u8>, keep: Millis },
    Replace { log: String, entry: Vec<u8>, keep: Millis },
    Read { log: String, after: u64, follow: Option<Millis> },
    Stop { log: String },
}

impl Errand {
    fn size(&self) -> usize {
        match self {
            Errand::Publish { message, .. } => message.len(),
            Errand::Append { log, entry, .. } | Errand::Replace { log, entry, .. } => log.len() + entry.len(),
            Errand::Read { log, .. } | Errand::Stop { log } => log.len(),
        }
    }
}

/// A queue with limits. If it is full, its changes become one [`ServerChange::All`], and other errands are left out.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: VecDeque<Errand>,
    bytes: usize,
    /// Changes were left out.
    lost: bool,
    most: usize,
    most_bytes: usize,
}

impl Outbox {
    pub(crate) const fn new(limits: &FleetLimits) -> Self {
        let (most, most_bytes) = (limits.outbox, limits.outbox_bytes);
        Outbox { waiting: VecDeque::new(), bytes: 0, lost: false, most, most_bytes }
    }

    /// Adds an errand. Returns `false` if there is no room.
    pub(crate) fn push(&mut self, errand: Errand) -> bool {
        let bytes = self.bytes.saturating_add(errand.size());
        if self.waiting.len() >= self.most || bytes > self.most_bytes {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back(errand);
        true
    }

    /// Adds a change for all others, if it does not wait already.
    pub(crate) fn change(&mut self, change: ServerChange<'_>) {
        let message = encode(&Message::Change(change));
        let errand = Errand::Publish { to: Recipients::Others, message, within: Millis::MAX };
        // A few: repeated changes come one after the other.
        let is_there = self.waiting.iter().rev().take(REPEATED).any(|waiting| *waiting == errand);
        if !is_there && !self.lost {
            self.lost = !self.push(errand);
        }
    }

    /// Gives all errands to an engine, in their order.
    pub(crate) fn hand_over(&mut self, engine: &mut dyn Engine) {
        self.bytes = 0;
        for errand in self.waiting.drain(..) {
            match errand {
                Errand::Publish { to, message, within } => engine.publish(to, &message, within),
                Errand::Append { log, id, entry, keep } => engine.append(&log, id, &entry, keep),
                Errand::Replace { log, entry, keep } => engine.replace(&log, &entry, keep),
                Errand::Read { log, after, follow } => engine.read(&log, after, follow),
                Errand::Stop { log } => engine.stop(&log),
            }
        }
        if core::mem::take(&mut self.lost) {
            engine.publish(Recipients::Others, &encode(&Message::Change(ServerChange::All)), Millis::MAX);
        }
    }
}

/// Number of waiting errands that are compared with a change.
const REPEATED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{MemoryHub, ProcessTag};

    /// The limits are those of errands and of their bytes, and both may be reached.
    #[test]
    fn as_many_errands_and_bytes_as_there_is_room_for() {
        let entry = |bytes: usize| Errand::Replace { log: "l".into(), entry: alloc::vec![0; bytes], keep: 1 };
        let mut outbox = Outbox::new(&FleetLimits { outbox: 2, outbox_bytes: 10, ..FleetLimits::default() });
        assert!(!outbox.push(entry(10)));
        assert!(outbox.push(entry(7)) && outbox.push(Errand::Stop { log: "ab".into() }));
        assert!(!outbox.push(Errand::Stop { log: String::new() }), "two errands");
        let mut outbox = Outbox::new(&FleetLimits { outbox: 9, outbox_bytes: 10, ..FleetLimits::default() });
        let message = Errand::Publish { to: Recipients::Others, message: alloc::vec![0; 8], within: 1 };
        assert!(outbox.push(message.clone()) && !outbox.push(message));
        let read = |log: &str| Errand::Read { log: log.into(), after: 0, follow: None };
        assert!(!outbox.push(read("abc")) && outbox.push(read("ab")));
    }

    /// All of it, each time, as the engine takes the errands and their bytes.
    #[test]
    fn the_room_is_there_again_after_a_meeting() {
        let hub = MemoryHub::new();
        let mut engine = hub.join(ProcessTag::new(1));
        let append = || Errand::Append { log: "l".into(), id: None, entry: alloc::vec![0; 9], keep: 1 };
        let mut outbox = Outbox::new(&FleetLimits { outbox: 1, outbox_bytes: 10, ..FleetLimits::default() });
        for met in 1..=3 {
            assert!(outbox.push(append()) && !outbox.push(append()));
            outbox.hand_over(&mut engine);
            assert_eq!(hub.logs(), [("l".into(), met)]);
        }
    }

    /// A change that waits among the last ones is not added again. If one was left out, all may have changed, once.
    #[test]
    fn changes_come_once() {
        use crate::fleet::Arrival;
        let hub = MemoryHub::new();
        let [mut engine, mut other] = [1, 2].map(|tag| hub.join(ProcessTag::new(tag)));
        let mut heard = |outbox: &mut Outbox| {
            while other.take().is_some() {}
            outbox.hand_over(&mut engine);
            let messages = core::iter::from_fn(|| other.take()).map(|arrival| match arrival {
                Arrival::Message { message, .. } => message,
                arrival => panic!("{arrival:?}"),
            });
            messages.collect::<Vec<_>>()
        };
        let uris: Vec<_> = (0..17).map(|number| alloc::format!("{number:02}")).collect();
        let change = |uri: &str| encode(&Message::Change(ServerChange::Resource(uri)));
        let size = change("00").len();
        let mut outbox = Outbox::new(&FleetLimits { outbox: 99, outbox_bytes: 18 * size, ..FleetLimits::default() });
        let give = |outbox: &mut Outbox, uris: &[String]| {
            uris.iter().for_each(|uri| outbox.change(ServerChange::Resource(uri)));
        };
        give(&mut outbox, &uris[..16]);
        give(&mut outbox, &uris[..16]);
        assert_eq!(heard(&mut outbox), uris[..16].iter().map(|uri| change(uri)).collect::<Vec<_>>());
        give(&mut outbox, &uris);
        give(&mut outbox, &uris[..1]);
        assert_eq!(heard(&mut outbox).len(), 18);
        give(&mut outbox, &uris);
        outbox.change(ServerChange::Resource("one that is longer"));
        // There is room for this one, but the one before is to be read anew in any case.
        outbox.change(ServerChange::Tools);
        outbox.change(ServerChange::Prompts);
        let all = heard(&mut outbox);
        assert_eq!((all.len(), all.last()), (18, Some(&encode(&Message::Change(ServerChange::All)))));
        outbox.change(ServerChange::Tools);
        assert_eq!(heard(&mut outbox), [encode(&Message::Change(ServerChange::Tools))]);
        assert_eq!(heard(&mut outbox), Vec::<Vec<u8>>::new());
    }

    /// An engine gets each errand as it was given.
    #[test]
    fn errands_arrive_in_their_order() {
        use crate::fleet::Arrival;
        let hub = MemoryHub::new();
        let [mut engine, mut other] = [1, 2].map(|tag| hub.join(ProcessTag::new(tag)));
        while engine.take().is_some() || other.take().is_some() {}
        let (log, entry) = (String::from("l"), alloc::vec![1]);
        let mut outbox = Outbox::new(&FleetLimits::default());
        for errand in [
            Errand::Append { log: log.clone(), id: Some(4), entry: entry.clone(), keep: 10 },
            Errand::Read { log: log.clone(), after: 3, follow: Some(5) },
            Errand::Replace { log: log.clone(), entry: entry.clone(), keep: 10 },
            Errand::Stop { log: log.clone() },
            Errand::Append { log: log.clone(), id: None, entry: entry.clone(), keep: 10 },
            Errand::Publish { to: Recipients::One(ProcessTag::new(2)), message: entry.clone(), within: 1 },
        ] {
            assert!(outbox.push(errand));
        }
        outbox.hand_over(&mut engine);
        let read = |id| Arrival::Entry { log: log.clone(), id, entry: entry.clone() };
        let arrived: Vec<_> = core::iter::from_fn(|| engine.take()).collect();
        assert_eq!(arrived, [read(4), Arrival::CaughtUp { log: log.clone() }, read(5)]);
        assert_eq!(other.take(), Some(Arrival::Message { from: ProcessTag::new(1), message: entry }));
        assert_eq!(hub.logs(), [(log, 2)]);
    }
}
