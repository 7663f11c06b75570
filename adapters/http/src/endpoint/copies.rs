//! Copies of event streams in logs of the fleet's engine: where the connection of a stream breaks, another process goes on.
//!
//! A stream that answers a POST of a session with a sealed id has a log, with one entry for each turn in which it had events. An
//! entry is a byte for the version of the format, then records: a byte for the kind, the length of the rest in four bytes, the
//! rest. Unknown kinds are ignored.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;

use super::sealed::Nonce;
use super::stream::Origin;
use crate::fleet::wire::{Fields, is_line};
use crate::fleet::{Engine, FleetLimits};

/// The version of the format.
const VERSION: u8 = 1;

const BEGIN: u8 = 1;
const EVENT: u8 = 2;
const CUT: u8 = 3;
const END: u8 = 4;
const GOES_ON: u8 = 5;

/// Bytes of a record before its content.
const HEAD: usize = 5;

/// Number of bytes that are counted for each log besides its records: what a database needs for one, and the lists here.
const EACH: usize = 256;

/// A record of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyRecord<'r> {
    /// The first: the session, and the ids of the requests that will be answered.
    Begin(&'r Nonce, CopiedIds<'r>),
    /// An event with its number.
    Event(u32, &'r [u8]),
    /// The events that follow are not copied.
    Cut,
    /// No event follows. `true`: requests without an answer will get none.
    End(bool),
}

/// Ids of requests, as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedIds<'r>(&'r [u8]);

impl<'r> Iterator for CopiedIds<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<&'r [u8]> {
        let mut fields = Fields(self.0);
        let id = fields.bytes()?;
        self.0 = fields.0;
        Some(id)
    }
}

/// Returns the records of an entry; `None` if its version is unknown. Those after a damaged one are left out.
pub(crate) fn records(entry: &[u8]) -> Option<impl Iterator<Item = CopyRecord<'_>>> {
    let (&VERSION, entry) = entry.split_first()? else { return None };
    let mut fields = Fields(entry);
    let all = core::iter::from_fn(move || {
        let (&kind, rest) = fields.0.split_first()?;
        fields = Fields(rest);
        Some((kind, fields.bytes()?))
    });
    Some(all.filter_map(|(kind, content)| {
        Some(match kind {
            BEGIN => {
                let (nonce, ids) = content.split_first_chunk()?;
                CopyRecord::Begin(nonce, CopiedIds(ids))
            }
            EVENT => {
                let mut fields = Fields(content);
                let event = fields.number()?;
                CopyRecord::Event(
                    event,
                    Some(fields.0).filter(|message| is_line(message) && Raw::parse(message).is_ok())?,
                )
            }
            CUT => CopyRecord::Cut,
            END => CopyRecord::End(!content.is_empty()),
            _ => return None,
        })
    }))
}

/// Returns the name of the log of a stream.
pub(crate) fn log_name(origin: Origin) -> String {
    let Origin { tag, slot, number } = origin;
    alloc::format!("e:{tag}-{slot}-{number}")
}

/// Reads the name of a log.
pub(crate) fn read_log_name(name: &str) -> Option<Origin> {
    let mut parts = name.strip_prefix("e:")?.splitn(3, '-');
    let mut next = || parts.next();
    Some(Origin { tag: next()?.parse().ok()?, slot: next()?.parse().ok()?, number: next()?.parse().ok()? })
}

/// The copies of the streams of this process.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Most bytes of one stream, and of all.
    share: usize,
    total: usize,
    open: BTreeMap<u64, StreamCopy>,
    /// Those with records for the engine.
    changed: Vec<u64>,
    /// Bytes of all that the engine keeps.
    bytes: usize,
    /// Bytes of those that have ended, and the times when the engine forgets them.
    ended: VecDeque<(Millis, usize)>,
    /// Those that are open, by the time of the last sign that they go on.
    signs: VecDeque<(Millis, u64)>,
    /// Those that are begun anew: their logs may be lost.
    again: Vec<Origin>,
}

/// The copy of a stream.
#[derive(Debug)]
struct StreamCopy {
    origin: Origin,
    /// The id of the last entry.
    entry: u64,
    /// The records of the next entry.
    records: Vec<u8>,
    bytes: usize,
    is_cut: bool,
    has_ended: bool,
}

impl StreamCopy {
    /// Begins a record, for which there is room: the content has `len` bytes.
    fn record(&mut self, changed: &mut Vec<u64>, number: u64, kind: u8, len: usize) -> &mut Vec<u8> {
        if self.records.is_empty() {
            changed.push(number);
            self.records.push(VERSION);
        }
        self.records.push(kind);
        put_number(&mut self.records, len);
        &mut self.records
    }
}

fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

impl Copies {
    pub(crate) const fn new(limits: &FleetLimits) -> Self {
        Copies {
            share: limits.copied_stream,
            total: limits.copied,
            open: BTreeMap::new(),
            changed: Vec::new(),
            bytes: 0,
            ended: VecDeque::new(),
            signs: VecDeque::new(),
            again: Vec::new(),
        }
    }

    /// Begins all copies anew that are open.
    pub(crate) fn begin_all_anew(&mut self) {
        self.again = self.open.values().filter(|copy| !copy.has_ended).map(|copy| copy.origin).collect();
    }

    /// Returns the next stream whose copy is begun anew.
    pub(crate) fn next_anew(&mut self) -> Option<Origin> {
        self.again.pop()
    }

    /// Returns whether there are more of these.
    pub(crate) const fn has_anew(&self) -> bool {
        !self.again.is_empty()
    }

    /// Begins the copy of a stream with the ids of its requests, or begins it anew in the next entry. Returns `false` if there is
    /// no room for it.
    pub(crate) fn begin<'i>(
        &mut self,
        origin: Origin,
        session: &Nonce,
        ids: impl Iterator<Item = &'i [u8]>,
        now: Millis,
    ) -> bool {
        let mut content = Vec::from(session);
        for id in ids {
            put_number(&mut content, id.len());
            content.extend_from_slice(id);
        }
        let (number, bytes) = (origin.number, content.len() + EACH);
        let mut copy = StreamCopy { origin, entry: 0, records: Vec::new(), bytes: 0, is_cut: false, has_ended: false };
        let is_anew = match self.open.remove(&number) {
            Some(old) => {
                self.bytes = self.bytes.saturating_sub(old.bytes);
                self.changed.retain(|changed| *changed != number);
                copy.entry = old.entry;
                true
            }
            None => false,
        };
        if !self.has_room(&copy, bytes) {
            return false;
        }
        copy.bytes = bytes;
        self.bytes += bytes;
        copy.record(&mut self.changed, number, BEGIN, content.len()).append(&mut content);
        self.open.insert(number, copy);
        if !is_anew {
            self.signs.push_back((now, number));
        }
        true
    }

    fn has_room(&self, copy: &StreamCopy, bytes: usize) -> bool {
        copy.bytes.saturating_add(bytes) <= self.share && self.bytes.saturating_add(bytes) <= self.total
    }

    /// Begins the record of an event, and returns the place for its `len` bytes. `None` if it is not copied: one before it was
    /// not, it has no room, or it is no whole message.
    pub(crate) fn event(&mut self, number: u64, event: u32, len: usize, is_whole: bool) -> Option<&mut Vec<u8>> {
        let copy = self.open.get(&number).filter(|copy| !copy.is_cut && !copy.has_ended)?;
        let bytes = len.saturating_add(HEAD + 4);
        let has_room = is_whole && self.has_room(copy, bytes);
        let copy = self.open.get_mut(&number)?;
        if !has_room {
            copy.is_cut = true;
            copy.record(&mut self.changed, number, CUT, 0);
            return None;
        }
        copy.bytes += bytes;
        self.bytes += bytes;
        let records = copy.record(&mut self.changed, number, EVENT, len + 4);
        put_number(records, event as usize);
        Some(records)
    }

    /// Notes that no more events come on a stream; `is_lost` if requests may have no answer.
    pub(crate) fn end(&mut self, number: u64, is_lost: bool) {
        let Some(copy) = self.open.get_mut(&number).filter(|copy| !copy.has_ended) else { return };
        copy.has_ended = true;
        let records = copy.record(&mut self.changed, number, END, is_lost.into());
        records.extend(is_lost.then_some(1));
    }

    /// Returns whether a stream is being copied.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Notes the time. `within` is the time in which a client may come back.
    pub(crate) fn tick(&mut self, now: Millis, within: Millis) {
        while let Some(&(until, bytes)) = self.ended.front()
            && until <= now
        {
            self.ended.pop_front();
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        // Without a sign in time the log of a long request would be forgotten.
        while let Some(&(since, number)) = self.signs.front()
            && now.saturating_sub(since) >= within
        {
            self.signs.pop_front();
            if let Some(copy) = self.open.get_mut(&number) {
                copy.record(&mut self.changed, number, GOES_ON, 0);
                self.signs.push_back((now, number));
            }
        }
    }

    /// Gives the engine what is new.
    pub(crate) fn hand_over(&mut self, engine: &mut dyn Engine, now: Millis, within: Millis) {
        let keep = within.saturating_mul(2);
        for number in self.changed.drain(..) {
            let Some(copy) = self.open.get_mut(&number) else { continue };
            copy.entry += 1;
            let records = core::mem::take(&mut copy.records);
            engine.append(&log_name(copy.origin), Some(copy.entry), &records, keep);
            if copy.has_ended {
                self.ended.push_back((now.saturating_add(keep), copy.bytes));
                self.open.remove(&number);
            }
        }
    }

    /// Returns the time of the next sign that is due.
    pub(crate) fn next_deadline(&self, within: Millis) -> Option<Millis> {
        self.signs.front().map(|(since, _)| since.saturating_add(within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Arrival, MemoryEngine, MemoryHub, ProcessTag};
    use alloc::vec;

    const NONCE: Nonce = *b"0123456789abcdef";
    /// Bytes that are counted for a copy with one request, and for an event besides its message.
    const BEGUN: usize = 16 + 4 + 1 + EACH;
    const EVENT_BYTES: usize = HEAD + 4;

    fn origin(number: u64) -> Origin {
        Origin { tag: 7, slot: 3, number }
    }

    fn copies(share: usize, total: usize) -> Copies {
        Copies::new(&FleetLimits { copied_stream: share, copied: total, ..FleetLimits::default() })
    }

    fn begin(copies: &mut Copies, number: u64) -> bool {
        copies.begin(origin(number), &NONCE, [&b"1"[..]].into_iter(), 0)
    }

    /// Copies an event with this message. Returns `false` if it is not copied.
    fn event(copies: &mut Copies, number: u64, event: u32, message: &[u8]) -> bool {
        let place = copies.event(number, event, message.len(), true);
        place.map(|place| place.extend_from_slice(message)).is_some()
    }

    fn engine() -> (MemoryHub, MemoryEngine) {
        let hub = MemoryHub::new();
        let mut engine = hub.join(ProcessTag::new(7));
        while engine.take().is_some() {}
        (hub, engine)
    }

    /// Gives the engine what is new, and returns the entries of a log with their ids.
    fn entries(copies: &mut Copies, engine: &mut MemoryEngine, number: u64) -> Vec<(u64, Vec<u8>)> {
        copies.hand_over(engine, 0, 1_000);
        engine.read(&log_name(origin(number)), 0, None);
        let arrived = core::iter::from_fn(|| engine.take());
        let of = |arrival| match arrival {
            Arrival::Entry { id, entry, .. } => Some((id, entry)),
            _ => None,
        };
        arrived.filter_map(of).collect()
    }

    fn read(entry: &[u8]) -> Vec<CopyRecord<'_>> {
        records(entry).expect("a known version").collect()
    }

    #[test]
    fn records_there_and_back() {
        let (_hub, mut engine) = engine();
        let mut copies = copies(10_000, 10_000);
        assert!(copies.begin(origin(1), &NONCE, [&b"1"[..], b"\"a\""].into_iter(), 0) && copies.is_open(1));
        assert!(event(&mut copies, 1, 300, b"{}"));
        let all = entries(&mut copies, &mut engine, 1);
        assert_eq!(all.len(), 1);
        let ids = [&b"\0\0\0\x011\0\0\0\x03\"a\""[..]].concat();
        assert_eq!(read(&all[0].1), [CopyRecord::Begin(&NONCE, CopiedIds(&ids)), CopyRecord::Event(300, b"{}")]);
        let CopyRecord::Begin(_, ids) = read(&all[0].1)[0] else { panic!("it begins") };
        assert_eq!(ids.collect::<Vec<_>>(), [&b"1"[..], b"\"a\""]);
        // No event that is not whole, and none after it; the end is noted once.
        assert!(copies.event(1, 301, 2, false).is_none() && !event(&mut copies, 1, 302, b"{}"));
        copies.end(1, false);
        copies.end(1, true);
        assert!(!event(&mut copies, 1, 303, b"{}"));
        let all = entries(&mut copies, &mut engine, 1);
        assert_eq!((all[1].0, read(&all[1].1)), (2, vec![CopyRecord::Cut, CopyRecord::End(false)]));
        assert!(!copies.is_open(1));
        // Nothing is known of it any more.
        copies.end(1, true);
        assert!(!event(&mut copies, 1, 304, b"{}"));
        assert_eq!(entries(&mut copies, &mut engine, 1).len(), 2);
    }

    /// Another version of the program may write other kinds, and a newline would end the event.
    #[test]
    fn records_that_are_unknown_or_damaged_are_left_out() {
        let entry = |parts: &[&[u8]]| [&[VERSION][..], &parts.concat()].concat();
        let (cut, end, lost): (&[u8], &[u8], &[u8]) = (b"\x03\0\0\0\0", b"\x04\0\0\0\0", b"\x04\0\0\0\x01\x01");
        assert_eq!(read(&entry(&[b"\x09\0\0\0\x02ab", b"\x05\0\0\0\0", cut])), [CopyRecord::Cut]);
        assert_eq!(read(&entry(&[end, lost])), [CopyRecord::End(false), CopyRecord::End(true)]);
        for message in [&b"1\n"[..], b"\r1", b"{", b"\"\xd3\"", b""] {
            let event = [&b"\x02\0\0\0"[..], &[message.len() as u8 + 4], b"\0\0\0\x01", message].concat();
            assert_eq!(read(&entry(&[&event, cut])), [CopyRecord::Cut]);
        }
        for short in [&b"\x01\0\0\0\x0f0123456789abcde"[..], b"\x02\0\0\0\x03\0\0\0"] {
            assert_eq!(read(&entry(&[short, cut])), [CopyRecord::Cut]);
        }
        // After one that is cut off nothing can be read.
        assert_eq!(read(&entry(&[cut, b"\x02\0\0\0\x09", cut])), [CopyRecord::Cut]);
        assert_eq!(read(&[VERSION]), []);
        assert!(records(b"").is_none() && records(b"\x02\x03\0\0\0\0").is_none());
    }

    #[test]
    fn names_of_logs() {
        let last = Origin { tag: 0xf_ffff, slot: u16::MAX, number: u64::MAX };
        for origin in [origin(1), last] {
            assert_eq!(read_log_name(&log_name(origin)), Some(origin));
        }
        for wrong in ["", "e:", "e:1", "e:1-2", "e:1-2-", "e:1-2-3-4", "e:1-70000-3", "e:a-2-3", "s:1-2-3", "1-2-3"] {
            assert_eq!(read_log_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_copy_has_a_share_and_all_have_a_total() {
        const MORE: usize = BEGUN + EVENT_BYTES + 2;
        for (share, total, begins, has_event) in [
            (BEGUN - 1, 10_000, false, false),
            (BEGUN, 10_000, true, false),
            (10_000, BEGUN - 1, false, false),
            (10_000, BEGUN, true, false),
            (MORE - 1, 10_000, true, false),
            (10_000, MORE - 1, true, false),
            (MORE, MORE, true, true),
        ] {
            let mut copies = copies(share, total);
            assert_eq!((begin(&mut copies, 1), copies.is_open(1)), (begins, begins), "{share} {total}");
            assert_eq!(event(&mut copies, 1, 1, b"{}"), has_event, "{share} {total}");
            // Nor a smaller one behind one that is missing.
            assert!(!event(&mut copies, 1, 2, b"{}") && !event(&mut copies, 1, 3, b""));
        }
        // Each counts for the total, and not for the share of another one.
        let mut copies = copies(MORE, BEGUN + MORE);
        assert!(begin(&mut copies, 1) && begin(&mut copies, 2) && !begin(&mut copies, 3));
        assert!(event(&mut copies, 2, 1, b"{}") && !event(&mut copies, 1, 1, b""));
    }

    /// The log may be lost: what is in the next entry is the beginning, with ids that go on.
    #[test]
    fn a_copy_that_begins_anew() {
        let (_hub, mut engine) = engine();
        let mut copies = copies(10_000, BEGUN + EVENT_BYTES + 2);
        assert!(begin(&mut copies, 1) && event(&mut copies, 1, 1, b"{}"));
        entries(&mut copies, &mut engine, 1);
        for id in [2, 3] {
            // What waits is replaced, and its room is there again.
            for _ in 0..3 {
                assert!(begin(&mut copies, 1) && event(&mut copies, 1, 1, b"{}"));
            }
            let all = entries(&mut copies, &mut engine, 1);
            let (last, entry) = all.last().unwrap();
            assert_eq!((*last, all.len(), read(entry).len()), (id, id as usize, 2));
        }
        // It gives its signs once.
        copies.tick(1_000, 1_000);
        let all = entries(&mut copies, &mut engine, 1);
        assert_eq!((all.len(), &all[3].1[..]), (4, &[VERSION, GOES_ON, 0, 0, 0, 0][..]));
        // One without room is not copied any more.
        copies.total = BEGUN - 1;
        assert!(!begin(&mut copies, 1) && !copies.is_open(1));
        assert_eq!(copies.bytes, 0);
    }

    #[test]
    fn copies_that_are_open_begin_anew() {
        let mut copies = copies(10_000, 10_000);
        (1..4).for_each(|number| assert!(begin(&mut copies, number)));
        copies.end(2, false);
        assert!(!copies.has_anew());
        copies.begin_all_anew();
        assert!(copies.has_anew());
        let mut anew = vec![copies.next_anew(), copies.next_anew()];
        anew.sort_unstable();
        assert_eq!((anew, copies.has_anew()), (vec![Some(origin(1)), Some(origin(3))], false));
        assert_eq!(copies.next_anew(), None);
    }

    /// The engine keeps a log for twice the time in which a client may come back; until then it takes its room.
    #[test]
    fn the_room_of_a_copy_comes_back_with_its_end() {
        let (hub, mut engine) = engine();
        let mut copies = copies(10_000, BEGUN);
        assert!(begin(&mut copies, 1));
        copies.hand_over(&mut engine, 0, 1_000);
        hub.advance(1_999);
        assert_eq!(hub.logs().len(), 1);
        copies.end(1, true);
        copies.hand_over(&mut engine, 100, 1_000);
        hub.advance(1_999);
        assert_eq!(hub.logs().len(), 1);
        hub.advance(1);
        assert_eq!(hub.logs(), []);
        for (now, has_room) in [(100, false), (2_099, false), (2_101, true)] {
            copies.tick(now, 1_000_000);
            assert_eq!(begin(&mut copies, now), has_room, "{now}");
        }
    }

    /// Without a sign in time the log of a long request would be forgotten.
    #[test]
    fn a_copy_gives_signs_until_it_ends() {
        let (_hub, mut engine) = engine();
        let mut copies = copies(10_000, 10_000);
        assert_eq!(copies.next_deadline(1_000), None);
        assert!(copies.begin(origin(1), &NONCE, core::iter::empty(), 500));
        assert_eq!(entries(&mut copies, &mut engine, 1).len(), 1);
        for (now, signs, next) in [(1_499, 1, 1_500), (1_500, 2, 2_500), (2_499, 2, 2_500), (2_500, 3, 3_500)] {
            copies.tick(now, 1_000);
            assert_eq!(copies.next_deadline(1_000), Some(next));
            assert_eq!(entries(&mut copies, &mut engine, 1).len(), signs, "{now}");
        }
        copies.end(1, false);
        assert_eq!(entries(&mut copies, &mut engine, 1).len(), 4);
        copies.tick(3_500, 1_000);
        assert_eq!((copies.next_deadline(1_000), entries(&mut copies, &mut engine, 1).len()), (None, 4));
    }
}
