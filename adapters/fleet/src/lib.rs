//! Several processes of one server behind a plain proxy, over [Redis](https://redis.io) 7.0 or later. [`Fleet`] is the
//! [`Engine`] of `mcp-sansio-http`.
//!
//! ```no_run
//! use mcp_sansio_fleet::{Fleet, FleetOptions};
//!
//! let fleet = Fleet::start("redis://127.0.0.1/", FleetOptions::new("notes"), |news| eprintln!("fleet: {news:?}"))?;
//! // `HttpServer::bind(address)?.fleet(fleet)` of mcp-sansio-blocking or -smol, with their feature `fleet`.
//! # drop(fleet);
//! # Ok::<(), mcp_sansio_fleet::FleetError>(())
//! ```
//!
//! # Guarantees
//!
//! - Each process hears each message of the others once, in the order of Redis. If some may be lost (Redis was started anew, a
//!   process was away for longer than [`keep`](FleetOptions::keep) messages, a queue was full), it takes
//!   [`Arrival::Lost`], and its clients read anew.
//! - A process that joins asks for a sign of life, and the others answer at once.
//! - Without Redis, or while it refuses what is sent (no memory), each process serves its own clients as one alone, says so ([`FleetNews::Alone`]) and tries again every two
//!   seconds at the longest. Its messages wait until their time is over, up to [`queue`](FleetOptions::queue) of them.
//! - Nothing blocks: the functions of the engine put work into a queue, and two threads do it.
//!
//! # Keys in Redis
//!
//! | key | a stream with |
//! |---|---|
//! | `mcp:NAME:all` | messages for all, and a sign of life of each process once a second; some [`keep`](FleetOptions::keep) entries |
//! | `mcp:NAME:to:TAG` | messages for one process; as many, for ten minutes after the last |
//! | `mcp:NAME:log:…` | a log, for as long as the endpoint asks |
//!
//! Redis has to be in a network of its own. A program that can write to it can make clients read anew as often as it likes, and fill
//! the memory of Redis. It cannot act in a session whose sealed id it does not know.

mod entry;
mod hearing;
mod inbox;
mod member;
mod news;
mod options;
mod outbox;
mod position;
mod sending;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mcp_sansio_http::fleet::{Arrival, Engine, ProcessTag, Recipients};

use entry::EntryId;
use inbox::{Inbox, Reading};
use member::Member;
pub use news::FleetNews;
pub use options::FleetOptions;
use outbox::{Command, Outbox};

/// The error of [`Fleet::start`].
#[derive(Debug)]
#[non_exhaustive]
pub enum FleetError {
    /// The URL is not one of Redis.
    Url(redis::RedisError),
    /// The system has no random bytes.
    Random(getrandom::Error),
    /// The system starts no thread.
    Thread(std::io::Error),
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetError::Url(error) => write!(f, "this is no URL of Redis: {error}"),
            FleetError::Random(error) => write!(f, "the system has no random bytes: {error}"),
            FleetError::Thread(error) => write!(f, "the system starts no thread: {error}"),
        }
    }
}

impl std::error::Error for FleetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FleetError::Url(error) => Some(error),
            FleetError::Random(error) => Some(error),
            FleetError::Thread(error) => Some(error),
        }
    }
}

/// A process among others that serve the same clients: an engine for the `fleet` of an HTTP server. When it is dropped, it
/// leaves: that waits until the messages that are left are sent, for [`timeout`](FleetOptions::timeout) at most, and not if Redis is
/// away.
pub struct Fleet(Arc<Member>);

impl Drop for Fleet {
    fn drop(&mut self) {
        self.0.outbox.end();
        self.0.inbox.end();
        self.0.outbox.wait_left(self.0.options.timeout);
    }
}

impl Fleet {
    /// Starts two threads that connect to Redis at `url` (`redis://[user:password@]host[:port]/[database]`, or `unix:///path`), now or
    /// later. `tell` is called with what an operator wants to know, on a thread of the fleet; it may block for a moment.
    ///
    /// # Errors
    /// [`FleetError`] if the URL is not one of Redis, or the system has no threads or random bytes. That Redis is away is not an
    /// error.
    pub fn start(
        url: &str,
        options: FleetOptions,
        tell: impl FnMut(FleetNews) + Send + 'static,
    ) -> Result<Self, FleetError> {
        let client = redis::Client::open(url).map_err(FleetError::Url)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(FleetError::Random)?;
        let random = u64::from_le_bytes(random);
        let tag = ProcessTag::new(random as u32);
        let name = format!("{:05x}.{:x}", tag.number(), random >> ProcessTag::BITS);
        let outbox = Outbox::new(options.queue, options.queue_bytes);
        let inbox = Inbox::new(options.queue, options.queue_bytes);
        let member = Arc::new(Member { client, options, tag, name, outbox, inbox });
        let fleet = Fleet(Arc::clone(&member));
        let (sending, hearing) = (Arc::clone(&member), member);
        let named = |name: &str| thread::Builder::new().name(name.into());
        named("fleet: sends").spawn(move || sending::send(&sending)).map_err(FleetError::Thread)?;
        named("fleet: hears").spawn(move || hearing::hear(&hearing, tell)).map_err(FleetError::Thread)?;
        Ok(fleet)
    }

    /// Returns how many messages and entries of this process wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.outbox.len()
    }
}

/// Returns the end of a time; `None` if it has none.
fn until(millis: u64) -> Option<Instant> {
    Instant::now().checked_add(Duration::from_millis(millis))
}

impl Engine for Fleet {
    fn tag(&self) -> ProcessTag {
        self.0.tag
    }

    fn publish(&mut self, to: Recipients, message: &[u8], within: u64) {
        match to {
            Recipients::Others => self.0.outbox.tell(message, until(within)),
            Recipients::One(to) => self.0.outbox.send(to, message, until(within)),
            // Others are not known to this version.
            _ => {}
        }
    }

    fn take(&mut self) -> Option<Arrival> {
        self.0.inbox.take()
    }

    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], keep: u64) {
        // Without room it is left out.
        let keep = keep.clamp(1, i64::MAX as u64);
        let alone = false;
        let _ = self.0.outbox.add(Command::Append { log: log.into(), id, entry: entry.into(), keep, alone });
    }

    fn replace(&mut self, log: &str, entry: &[u8], keep: u64) {
        let keep = keep.clamp(1, i64::MAX as u64);
        let alone = true;
        let _ = self.0.outbox.add(Command::Append { log: log.into(), id: None, entry: entry.into(), keep, alone });
    }

    fn read(&mut self, log: &str, after: u64, follow: Option<u64>) {
        // Some day, if the time has no end.
        let until = follow.map(|millis| until(millis.min(DAY)).unwrap_or_else(Instant::now));
        let reading = Reading { after: EntryId::of_log(after), until, follows: false };
        let Fleet(member) = self;
        if !member.inbox.read(log, reading) || !member.outbox.add(Command::Read { log: log.into() }) {
            member.inbox.go_on(log, None);
            member.inbox.over(log);
        }
    }

    fn stop(&mut self, log: &str) {
        self.0.inbox.go_on(log, None);
    }

    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.0.inbox.set_waker(wake);
    }
}

/// The longest time that a log is followed, in milliseconds.
const DAY: u64 = 86_400_000;

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("Fleet").field("options", &self.0.options).finish_non_exhaustive()
    }
}

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
