//! Several processes of one server behind a plain proxy: a change that a handler publishes in one process reaches the clients
//! of all. The changes go through a stream of [Redis](https://redis.io), 7.0 or later.
//!
//! ```no_run
//! use mcp_sansio::protocol::ServerCapability;
//! use mcp_sansio::server::ServerChange;
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio_fleet::{Fleet, FleetNews, FleetOptions};
//!
//! struct Notes {
//!     fleet: Fleet,
//! }
//!
//! fn add(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
//!     // To the clients of this process, and to those of the others.
//!     notes.fleet.publish(call, ServerChange::Resources);
//!     call.text("added")
//! }
//!
//! static TOOLS: [Tool<Notes>; 1] = [Tool::new("add", "Adds a note", add)];
//! let service = Service::new("notes", "1.0").tools(&TOOLS).feature(ServerCapability::ResourcesChanged);
//! let fleet = Fleet::start("redis://127.0.0.1/", FleetOptions::new("notes"), |news| match news {
//!     FleetNews::Changed(change) => { /* give it to the server: its late channel, or `endpoint.publish` in its loop */ }
//!     FleetNews::Alone { reason } => eprintln!("alone: {reason}"),
//!     _ => eprintln!("in the fleet"),
//! })?;
//! # Ok::<(), mcp_sansio_fleet::FleetError>(())
//! ```
//!
//! # Guarantees
//!
//! - Each process hears each change of the others once, in the order of Redis. If some may be lost (Redis was started anew, or a
//!   process was away for longer than [`keep`](FleetOptions::keep) changes), it hears [`ServerChange::All`] in their place, and its
//!   clients read anew.
//! - Without Redis each process serves its own clients as one alone, says so ([`FleetNews::Alone`]) and tries again every two seconds
//!   at the longest. Its changes wait, up to [`queue`](FleetOptions::queue) of them; more become one [`ServerChange::All`].
//! - Nothing blocks: [`Fleet::publish`] puts the change into a queue, and a thread sends it.
//!
//! Redis has to be in a network of its own: a program that can write to it can make clients read anew as often as it likes, but
//! not change the contents. `docs/http.md` says what processes have to share beside changes.

mod message;
mod news;
mod options;
mod outbox;
mod position;
mod redis_stream;

use std::fmt;
use std::sync::Arc;
use std::thread;

use mcp_sansio::server::ServerChange;
use mcp_sansio::service::RequestContext;

pub use news::FleetNews;
pub use options::FleetOptions;
use outbox::Outbox;
use redis_stream::Member;

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

/// A process among others that serve the same clients. Clones are the same process; with the last one it leaves: to drop it
/// waits until the changes that are left are sent, for [`timeout`](FleetOptions::timeout) at most, and not if Redis is away.
#[derive(Clone)]
pub struct Fleet(Arc<Membership>);

/// Leaves when it is dropped; the threads have only [`Member`].
struct Membership(Arc<Member>);

impl Drop for Membership {
    fn drop(&mut self) {
        self.0.outbox.end();
        self.0.outbox.wait_left(self.0.options.timeout);
    }
}

impl Fleet {
    /// Starts two threads that connect to Redis at `url` (`redis://[user:password@]host[:port]/[database]`, or `unix:///path`), now or
    /// later. `tell` is called with what they learn, on a thread of the fleet; it may block for a moment.
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
        let name = format!("{:016x}", u64::from_le_bytes(random));
        let outbox = Outbox::new(options.queue);
        let member = Arc::new(Member { client, options, name, outbox });
        let fleet = Fleet(Arc::new(Membership(Arc::clone(&member))));
        let (sending, hearing) = (Arc::clone(&member), member);
        let named = |name: &str| thread::Builder::new().name(name.into());
        named("fleet: sends").spawn(move || redis_stream::send(&sending)).map_err(FleetError::Thread)?;
        named("fleet: hears").spawn(move || redis_stream::hear(&hearing, tell)).map_err(FleetError::Thread)?;
        Ok(fleet)
    }

    /// Publishes a change from a handler: to the clients of this process
    /// ([`RequestContext::publish`]) and to those of the others. Never blocks.
    pub fn publish(&self, context: &mut RequestContext<'_>, change: ServerChange<'_>) {
        context.publish(change);
        self.publish_to_others(change);
    }

    /// Publishes a change to the clients of the other processes alone, for a loop that publishes to its own itself. Never blocks.
    pub fn publish_to_others(&self, change: ServerChange<'_>) {
        self.0.0.outbox.push(change);
    }

    /// Returns how many changes of this process wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.0.outbox.len()
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("Fleet").field("options", &self.0.0.options).finish_non_exhaustive()
    }
}

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
