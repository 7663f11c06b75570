//! Entries of Redis streams: their ids, and a message as an entry.

use std::fmt;

use mcp_sansio_http::fleet::ProcessTag;
use redis::streams::StreamId;

/// The fields of an entry: the process that made it, its number there, and the message. An entry without a message says only that the
/// process is alive; [`LEFT`] that it leaves. One with [`JOINED`] has no number: the process has joined, and asks all others for a sign of
/// life.
pub(crate) const FROM: &str = "f";
pub(crate) const NUMBER: &str = "n";
pub(crate) const MESSAGE: &str = "m";
pub(crate) const LEFT: &str = "l";
pub(crate) const JOINED: &str = "j";

/// The id of an entry: milliseconds, and a number within these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId(pub(crate) u64, pub(crate) u64);

/// Bits of the number within a millisecond, in an id of a log.
const NUMBER_BITS: u32 = 20;
/// Ids of a log from here on have milliseconds.
const TIMED: u64 = 1 << 60;

impl EntryId {
    /// Reads `1700000000000-0`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (milliseconds, number) = text.split_once('-')?;
        Some(EntryId(milliseconds.parse().ok()?, number.parse().ok()?))
    }

    /// Makes the id of an entry of a log: one that a process gave is the number, and has no milliseconds.
    pub(crate) const fn of_log(id: u64) -> Self {
        if id >= TIMED { EntryId(id >> NUMBER_BITS, id & ((1 << NUMBER_BITS) - 1)) } else { EntryId(0, id) }
    }

    /// Returns the id of an entry of a log as a number.
    pub(crate) fn to_log(self) -> u64 {
        match self {
            EntryId(0, id) => id.min(TIMED - 1),
            EntryId(milliseconds, number) => {
                let last = (1 << NUMBER_BITS) - 1;
                (milliseconds.min(u64::MAX >> NUMBER_BITS) << NUMBER_BITS | number.min(last)).max(TIMED)
            }
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// The process that made an entry: its tag, and its run. A process that is started anew may have the tag of an old one.
pub(crate) fn sender(from: &str) -> Option<ProcessTag> {
    let (tag, _) = from.split_once('.')?;
    let number = u32::from_str_radix(tag, 16).ok()?;
    Some(ProcessTag::new(number)).filter(|tag| tag.number() == number)
}

/// Returns a field of an entry.
pub(crate) fn field(entry: &StreamId, name: &str) -> Option<Vec<u8>> {
    redis::from_redis_value_ref(entry.map.get(name)?).ok()
}

/// Returns a field of an entry that is a text.
pub(crate) fn text(entry: &StreamId, name: &str) -> Option<String> {
    String::from_utf8(field(entry, name)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_order() {
        assert_eq!(EntryId::read("12-3").unwrap().to_string(), "12-3");
        assert!(EntryId::read("12-3") > EntryId::read("12-2") && EntryId::read("13-0") > EntryId::read("12-9"));
        assert_eq!(EntryId::read("12"), None);
    }

    #[test]
    fn ids_of_logs_there_and_back() {
        for id in [EntryId(0, 1), EntryId(0, 7_000_000), EntryId(1_790_000_000_000, 0), EntryId(1_790_000_000_000, 5)] {
            assert_eq!(EntryId::of_log(id.to_log()), id);
        }
        assert!(EntryId(0, u64::MAX).to_log() < EntryId(1_790_000_000_000, 0).to_log());
        assert!(EntryId(u64::MAX, u64::MAX).to_log() >= EntryId(1_790_000_000_000, u64::MAX).to_log());
    }

    #[test]
    fn senders() {
        assert_eq!(sender("0000f.1234"), Some(ProcessTag::new(15)));
        for wrong in ["", "f", ".1", "x.1", "100000.1", "0.1"] {
            assert_eq!(sender(wrong), None, "{wrong}");
        }
    }
}
