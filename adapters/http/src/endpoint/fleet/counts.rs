//! The share of a principal over all processes: each counts its requests in flight, and the others take them off its share.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use mcp_sansio::server::Millis;
use sha2::{Digest as _, Sha256};

use crate::endpoint::Endpoint;
use crate::endpoint::share::{Client, Place};
use crate::fleet::wire::{Message, encode};
use crate::fleet::{Errand, FleetLimits, ProcessTag, Recipients};

/// Milliseconds between two messages with counts.
const EVERY: Millis = 200;
/// Milliseconds after which counts that have not changed are sent again.
const AGAIN: Millis = 2_000;
/// Milliseconds after which the counts of a silent process do not count.
const SILENT: Millis = 5_000;

/// Stands for the name of a principal.
type PrincipalDigest = [u8; 16];

/// Length of an entry of a message: a digest and a count.
const ENTRY: usize = 20;

fn digest(principal: &str) -> PrincipalDigest {
    let digest: [u8; 32] = Sha256::digest(principal.as_bytes()).into();
    let mut short = [0; 16];
    short.iter_mut().zip(digest).for_each(|(place, byte)| *place = byte);
    short
}

/// The requests in flight, by principal, of this process and of the others.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The principals of requests in flight here.
    names: BTreeMap<Client, PrincipalDigest>,
    /// The last message that was sent, and its time.
    sent: Vec<u8>,
    sent_at: Millis,
    /// A principal was noted since then.
    noted: bool,
    /// The number of all requests in flight at the last look.
    live: usize,
    others: BTreeMap<ProcessTag, Others>,
}

/// The counts of another process.
#[derive(Debug)]
struct Others {
    heard: Millis,
    counts: BTreeMap<PrincipalDigest, u32>,
}

impl Counts {
    /// Returns the number of requests of a principal at other processes.
    pub(crate) fn elsewhere(&self, principal: &str, now: Millis) -> usize {
        if self.others.is_empty() {
            return 0;
        }
        let digest = digest(principal);
        let fresh = self.others.values().filter(|others| now.saturating_sub(others.heard) < SILENT);
        fresh.filter_map(|others| others.counts.get(&digest)).fold(0, |sum, count| sum.saturating_add(*count as usize))
    }

    /// Notes the principal of a request that stays in flight.
    pub(crate) fn note(&mut self, client: Client, principal: &str) {
        self.names.entry(client).or_insert_with(|| digest(principal));
        self.noted = true;
    }

    /// Handles the counts of another process.
    pub(crate) fn heard(&mut self, from: ProcessTag, entries: &[u8], limits: &FleetLimits, now: Millis) {
        let read = |entry: &[u8]| {
            let (digest, count) = entry.split_first_chunk()?;
            Some((*digest, u32::from_be_bytes(count.try_into().ok()?)))
        };
        let counts: BTreeMap<_, _> = entries.chunks_exact(ENTRY).take(limits.principals).filter_map(read).collect();
        match counts.is_empty() {
            true => drop(self.others.remove(&from)),
            false if self.has_place(from, limits.processes, now) => {
                self.others.insert(from, Others { heard: now, counts });
            }
            false => {}
        }
    }

    /// Returns whether the counts of a process may be kept.
    fn has_place(&mut self, process: ProcessTag, most: usize, now: Millis) -> bool {
        if self.others.len() >= most && !self.others.contains_key(&process) {
            self.others.retain(|_, others| now.saturating_sub(others.heard) < SILENT);
        }
        self.others.len() < most || self.others.contains_key(&process)
    }

    /// Forgets the counts of a process that has left.
    pub(crate) fn left(&mut self, process: ProcessTag) {
        self.others.remove(&process);
    }

    /// Forgets those of all others.
    pub(crate) fn alone(&mut self) {
        self.others.clear();
    }

    /// Returns the time of the next message; `None` while there is nothing to say. `live` requests are in flight now.
    pub(crate) fn deadline(&self, live: usize) -> Option<Millis> {
        let has_changed = self.noted || live != self.live;
        match (has_changed, self.sent.is_empty()) {
            _ if self.names.is_empty() && self.sent.is_empty() => None,
            (true, _) => Some(self.sent_at.saturating_add(EVERY)),
            (false, false) => Some(self.sent_at.saturating_add(AGAIN)),
            (false, true) => None,
        }
    }
}

impl Endpoint<'_> {
    /// Sends the counts to the others, if they have changed or it is time.
    pub(crate) fn tell_counts(&mut self) {
        let now = self.now;
        let Some(fleet) = &mut self.fleet else { return };
        let live = self.server.in_flight();
        // The clock may have been set back.
        let is_early = |deadline| now < deadline && now >= fleet.counts.sent_at;
        if fleet.counts.deadline(live).is_none_or(is_early) {
            return;
        }
        (fleet.counts.noted, fleet.counts.live) = (false, live);
        let mut counts = BTreeMap::<Client, u32>::new();
        for slot in 0..self.server.capacity() {
            let token = self.server.token_at(slot);
            if let Some(note) = token.and_then(|token| self.server.note(token)) {
                *counts.entry(Place::from_note(note).client).or_default() += 1;
            }
        }
        fleet.counts.names.retain(|client, _| counts.contains_key(client));
        let mut entries: Vec<_> =
            fleet.counts.names.iter().filter_map(|(client, digest)| Some((*counts.get(client)?, *digest))).collect();
        entries.sort_unstable_by(|one, other| other.cmp(one));
        entries.truncate(fleet.limits.principals);
        let mut message = Vec::new();
        for (count, digest) in entries {
            message.extend_from_slice(&digest);
            message.extend_from_slice(&count.to_be_bytes());
        }
        let is_due = now.saturating_sub(fleet.counts.sent_at) >= AGAIN || now < fleet.counts.sent_at;
        if message == fleet.counts.sent && !is_due {
            return;
        }
        let errand =
            Errand::Publish { to: Recipients::Others, message: encode(&Message::InFlight(&message)), within: SILENT };
        // Without room for it, it is said again in time.
        fleet.outbox.push(errand);
        (fleet.counts.sent, fleet.counts.sent_at) = (message, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_so_many_processes_are_kept() {
        let limits = FleetLimits { processes: 2, principals: 1, ..FleetLimits::default() };
        let (mut counts, ann) = (Counts::default(), digest("ann"));
        let entries = [&ann[..], &3u32.to_be_bytes(), &digest("bob"), &4u32.to_be_bytes()].concat();
        for tag in 1..100 {
            counts.heard(ProcessTag::new(tag), &entries, &limits, 0);
        }
        assert_eq!((counts.elsewhere("ann", 0), counts.elsewhere("bob", 0)), (6, 0));
        // Those that are known go on, and make room.
        counts.heard(ProcessTag::new(2), &[&ann[..], &5u32.to_be_bytes()].concat(), &limits, 0);
        assert_eq!(counts.elsewhere("ann", 0), 8);
        counts.heard(ProcessTag::new(1), b"", &limits, 0);
        counts.heard(ProcessTag::new(50), &entries, &limits, 0);
        assert_eq!(counts.elsewhere("ann", 0), 8);
        // Silent ones make room too.
        counts.heard(ProcessTag::new(51), &entries, &limits, SILENT);
        assert_eq!(counts.elsewhere("ann", SILENT), 3);
    }
}
