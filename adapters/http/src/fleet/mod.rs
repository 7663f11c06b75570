//! The processes of one server behind a plain proxy: what they share beside the ids that travel with the client.
//!
//! An [`Engine`] carries messages between the processes and keeps logs for them. It is implemented outside of this crate, on a
//! database or a broker (`mcp-sansio-fleet`: Redis). None of its functions waits: what arrives is taken later.
//!
//! Without the engine's database each process serves its clients as one alone; nothing waits for it.
//!
//! Give the engine to the `fleet` of an HTTP server, which calls
//! [`Endpoint::join_fleet`](crate::endpoint::Endpoint::join_fleet) and
//! [`meet_fleet`](crate::endpoint::Endpoint::meet_fleet). [`MemoryHub`] makes engines for tests.

#[cfg(feature = "std")]
mod memory;
mod outbox;
pub(crate) mod wire;

#[cfg(feature = "std")]
pub use memory::{MemoryEngine, MemoryHub};
pub(crate) use outbox::{Errand, Outbox};

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::server::Millis;

/// A process of a fleet, for as long as it runs: 20 random bits. One that is started anew has another tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessTag(u32);

impl ProcessTag {
    /// Bits of a tag.
    pub const BITS: u32 = 20;

    /// Makes a tag of secure random bits; of more than [`BITS`](ProcessTag::BITS) the lowest count. The tag is never 0.
    #[must_use]
    pub const fn new(random: u32) -> Self {
        let tag = random & ((1 << ProcessTag::BITS) - 1);
        ProcessTag(if tag == 0 { 1 } else { tag })
    }

    /// Returns the `id` of the first question of a process to a client. Those of all processes differ: the upper bits of an id
    /// are the tag, and all together have less than the 53 bits that JSON numbers have in many programs.
    pub(crate) const fn first_question(self) -> u64 {
        (self.0 as u64) << QUESTION_BITS
    }

    /// Returns the process that asked the question with this `id`.
    pub(crate) fn of_question(id: u64) -> Option<Self> {
        ProcessTag::from_number(u32::try_from(id >> QUESTION_BITS).ok()?)
    }

    /// Returns the tag with this number; `None` for 0 and for numbers beyond [`BITS`](ProcessTag::BITS).
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        (1..1 << ProcessTag::BITS).contains(&number).then_some(ProcessTag(number))
    }

    /// Returns the tag as a number of [`BITS`](ProcessTag::BITS) bits.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Bits of the number of a question within a process.
const QUESTION_BITS: u32 = 32;

/// The processes that a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recipients {
    /// All but the one that sends it.
    Others,
    /// One. It is lost if that one is gone.
    One(ProcessTag),
}

/// News from an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// A message of another process. Those of one process arrive in their order, each once.
    Message {
        /// The process that published it.
        from: ProcessTag,
        /// The message.
        message: Vec<u8>,
    },
    /// Messages for [`Recipients::Others`] may be lost: this process, or the database, was away.
    Lost,
    /// An entry of a log that is read, in the order of the log.
    Entry {
        /// The name of the log.
        log: String,
        /// The id of the entry: larger than those before it.
        id: u64,
        /// The entry.
        entry: Vec<u8>,
    },
    /// All entries that a log has were given, or there is no such log. A log that is followed goes on.
    CaughtUp {
        /// The name of the log.
        log: String,
    },
    /// The reading of a log is over: its deadline has come, or the database is away.
    ReadOver {
        /// The name of the log.
        log: String,
    },
    /// The process was heard, for the first time or after it had left. With the tag of this process: messages go to and fro from
    /// now on, and others that are alive and were not heard yet are within
    /// [`FleetLimits::join_within`].
    Joined(ProcessTag),
    /// The process has left, or was not heard for as long as the engine waits. With the tag of this process: the database is
    /// away, and the others are not known any more.
    Left(ProcessTag),
}

/// The place where processes of one server meet: messages, and logs that outlive a process. A database or a broker stands
/// behind it.
///
/// No function waits for the database. What cannot be done is left out: a message or an entry when the queue to the database is
/// full or its deadline has come. The endpoint is right without them, but its clients may have to read anew, or get an
/// error.
pub trait Engine: Send {
    /// Returns the tag of this process.
    fn tag(&self) -> ProcessTag;

    /// Sends a message to other processes, if that is possible within `within` milliseconds. If one for [`Recipients::Others`] is
    /// left out, these take [`Arrival::Lost`] as soon as they hear of this process again.
    fn publish(&mut self, to: Recipients, message: &[u8], within: Millis);

    /// Returns what has arrived, in its order; `None` until more arrives.
    fn take(&mut self) -> Option<Arrival>;

    /// Appends an entry to a log and keeps the whole log for `keep` milliseconds more. With an id from 1 to 2^60, which must be
    /// larger than those of the log, it is in the log once even if it had to be sent again; only one process may append with
    /// ids. Without one the engine gives the next, and the entry may be there twice after a broken connection.
    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], keep: Millis);

    /// Removes the entries of a log and appends this one, as [`append`](Engine::append) without an id does.
    fn replace(&mut self, log: &str, entry: &[u8], keep: Millis);

    /// Reads the entries of a log after an id (0: all), once with `None`, else until `follow` milliseconds have passed. The
    /// entries [arrive](Arrival::Entry), then [`Arrival::CaughtUp`]; where it is followed, later ones too, and then
    /// [`Arrival::ReadOver`].
    fn read(&mut self, log: &str, after: u64, follow: Option<Millis>);

    /// Stops reading a log.
    fn stop(&mut self, log: &str);

    /// Sets the function that is called, from any thread, when something has arrived. It must not block.
    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>);
}

/// Limits of a process in a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made with struct update syntax from its default")]
pub struct FleetLimits {
    /// Number of messages and log entries that the endpoint keeps for the engine. Changes beyond it become one
    /// [`ServerChange::All`](mcp_sansio::server::ServerChange::All), others are left out. Default: 10,000.
    pub outbox: usize,
    /// Number of bytes of these. Default: 64 MiB.
    pub outbox_bytes: usize,
    /// Number of milliseconds within which the engine must send a message. Changes have no such limit. Default: 10,000.
    pub within: Millis,
    /// Number of arrivals that one [`meet_fleet`](crate::endpoint::Endpoint::meet_fleet) handles, before requests have a turn.
    /// Default: 64.
    pub turn: usize,
    /// Number of processes that the endpoint knows as alive. Default: 1,000.
    pub processes: usize,
    /// Number of subscriptions, their ends and log levels of one session that are kept in its log for processes that open it
    /// later. Default: 1,000.
    pub session_entries: usize,
    /// Number of bytes of these. Default: 128 KiB.
    pub session_bytes: usize,
    /// Number of requests that wait at once until the other processes know what they change: DELETE of a session,
    /// `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` in one. Others are answered at once. Default: 1,000.
    pub settled: usize,
    /// Number of milliseconds that such a request waits at most, and a request in a session of which this process has not read
    /// yet what was set in it at others. Default: 200.
    pub settle_within: Millis,
    /// Number of milliseconds after this process has joined in which the others have to be heard. Only then one that was not
    /// heard counts as gone. Default: 1,500.
    pub join_within: Millis,
    /// Number of messages for sessions of 2024-11-05 that came to another process, and wait until the stream of their session was
    /// read. One more ends its session. Default: 1,000.
    pub waiting: usize,
    /// Number of these of one session. Default: 64.
    pub waiting_share: usize,
    /// Number of bytes of all of these. Default: 64 MiB.
    pub waiting_bytes: usize,
    /// Number of requests of other processes that this one serves at a time, see
    /// [`RequestContext::relay`](mcp_sansio::service::RequestContext::relay). One more gets error -32603. Default: 1,000.
    pub relayed: usize,
    /// Number of bytes of such a request, and of each message about it. Default: 4 MiB.
    pub relay_bytes: usize,
    /// Number of milliseconds within which another process must begin with a request, and then say again that it works on it, or the
    /// state of one that has ended must be read. Then the client gets error -32603. Default: 5,000.
    pub relay_within: Millis,
    /// Number of bytes of the states of other processes' [topics](mcp_sansio::service::Topic::outlives) that are kept for listens
    /// here. Notifications beyond it are left out. Default: 16 MiB.
    pub states_bytes: usize,
    /// Number of milliseconds that the state of an own topic is kept at most for the other processes. Default: one day.
    pub keep: Millis,
    /// Number of principals whose requests in flight each process counts for the others: those with the most. The others take
    /// them off its [share](crate::endpoint::EndpointConfig::request_share). Default: 1,000.
    pub principals: usize,
    /// Number of bytes of one event stream that are copied for the other processes, so that its client can resume it there.
    /// Events beyond it are not copied. Default: 1 MiB.
    pub copied_stream: usize,
    /// Number of bytes of all copies that the engine keeps for this process: those of streams that are open, and of those
    /// that ended within twice [`EndpointConfig::resume_within`](crate::endpoint::EndpointConfig::resume_within). A stream that
    /// finds no room is not copied. Each takes 256 bytes more than its events. Default: 64 MiB.
    pub copied: usize,
    /// Number of streams of other processes that one session may resume here at once; a further one gets 503. Default: 16.
    pub followed_share: usize,
    /// Number of streams of other processes that all sessions may resume here at once. Default: 1,000.
    pub followed: usize,
}

impl Default for FleetLimits {
    fn default() -> Self {
        FleetLimits {
            outbox: 10_000,
            outbox_bytes: 64 << 20,
            within: 10_000,
            turn: 64,
            processes: 1_000,
            session_entries: 1_000,
            session_bytes: 128 << 10,
            settled: 1_000,
            settle_within: 200,
            join_within: 1_500,
            waiting: 1_000,
            waiting_share: 64,
            waiting_bytes: 64 << 20,
            relayed: 1_000,
            relay_bytes: 4 << 20,
            relay_within: 5_000,
            states_bytes: 16 << 20,
            keep: 24 * 3_600_000,
            principals: 1_000,
            copied_stream: 1 << 20,
            copied: 64 << 20,
            followed_share: 16,
            followed: 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are those of the documentation.
    #[test]
    fn default_limits() {
        let limits = FleetLimits::default();
        let (kib, mib) = (1024, 1024 * 1024);
        assert_eq!((limits.outbox, limits.outbox_bytes, limits.within, limits.turn), (10_000, 64 * mib, 10_000, 64));
        assert_eq!((limits.processes, limits.session_entries, limits.session_bytes), (1_000, 1_000, 128 * kib));
        assert_eq!((limits.settled, limits.settle_within, limits.join_within), (1_000, 200, 1_500));
        assert_eq!((limits.waiting, limits.waiting_share, limits.waiting_bytes), (1_000, 64, 64 * mib));
        assert_eq!((limits.relayed, limits.relay_bytes, limits.relay_within), (1_000, 4 * mib, 5_000));
        assert_eq!((limits.states_bytes, limits.keep, limits.principals), (16 * mib, 86_400_000, 1_000));
        assert_eq!((limits.copied_stream, limits.copied), (mib, 64 * mib));
        assert_eq!((limits.followed_share, limits.followed), (16, 1_000));
    }
}
