//! Several processes of one server behind a proxy, over [Redis](https://redis.io) 7.0 or later: changes, ends of sessions and
//! last states of tasks reach the clients of all.
//!
//! ```no_run
//! use mcp_sansio_fleet::{FleetOptions, RedisFleet};
//! use mcp_sansio_host::channel;
//!
//! let (late, receiver) = channel::<()>();
//! let fleet = RedisFleet::start("redis://127.0.0.1/", FleetOptions::new("notes"), &late, |news| eprintln!("{news:?}"))?;
//! // `HttpServer::bind(address)?.fleet(fleet.link()).late(receiver)` of mcp-sansio-blocking or -smol, and so `MountOptions`
//! # drop((fleet, receiver));
//! # Ok::<(), mcp_sansio_fleet::FleetError>(())
//! ```
//!
//! - **Changes**: what one process publishes, also for one principal, all publish. If a change may be lost, all processes publish
//!   [`ServerChange::All`]: when Redis was restarted, a process missed more than [`keep`](FleetOptions::keep) messages, was silent for
//!   [`silence`](FleetOptions::silence), or has a full queue.
//! - **Sessions** that end at one process end at all, also at those that start later.
//! - **Tasks**: [`FleetTasks`] keeps the last state of each, from which others answer when its process has ended.
//!
//! No request waits for Redis: two threads talk with it. While it is away each process serves its own clients, and reports
//! [`FleetNews::Alone`].
//!
//! | key in Redis | holds |
//! |---|---|
//! | `mcp:NAME:all` | a stream with the last [`keep`](FleetOptions::keep) messages; `mcp:NAME:count` is the number of all |
//! | `mcp:NAME:alive` | the processes, each with the time of its last sign of life |
//! | `mcp:NAME:ended` | the sessions that have ended or stay at one process, until their time is over |
//! | `mcp:NAME:epoch` | a name for the data of this Redis: another name shows that the data was lost |
//! | `mcp:NAME:task:ID` | the last state of a task, until its time to live is over |
//!
//! Protect Redis: a program that can write to it can make clients read again, end their sessions, and answer for tasks.

mod hearing;
mod message;
mod options;
mod sending;
mod shared;
mod tasks;

use std::fmt;
use std::sync::Arc;
use std::thread;

use mcp_sansio::server::{Millis, ServerChange};
use mcp_sansio_host::LateSender;
use mcp_sansio_http::endpoint::{Fleet, PRINCIPAL_MAX};

use message::Message;
pub use options::FleetOptions;
pub use shared::FleetNews;
use shared::{Command, Shared};
pub use tasks::FleetTasks;

/// The error of [`RedisFleet::start`].
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

/// The membership of this process among others that serve the same clients. When it is dropped, the process leaves: the drop waits
/// until the last messages are sent, for [`timeout`](FleetOptions::timeout) at most.
pub struct RedisFleet(Arc<Shared>);

impl RedisFleet {
    /// Starts two threads that connect to Redis at `url` (`redis://[user:password@]host[:port]/[database]`, or `unix:///path`).
    /// News of the other processes comes through `late`. One of the threads calls `tell` with news for an operator.
    /// It waits until it knows the ended sessions, or that Redis is away, for [`timeout`](FleetOptions::timeout) at most: start it
    /// before the address is bound.
    ///
    /// # Errors
    /// [`FleetError`] if the URL is not one of Redis, or the system has no threads or random bytes. If Redis is away, that is not
    /// an error.
    pub fn start<S: 'static>(
        url: &str,
        options: FleetOptions,
        late: &LateSender<S>,
        tell: impl FnMut(FleetNews) + Send + 'static,
    ) -> Result<Self, FleetError> {
        let client = redis::Client::open(url).map_err(FleetError::Url)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(FleetError::Random)?;
        let run = format!("{:016x}", u64::from_le_bytes(random));
        let shared = Arc::new(Shared::new(client, options, run, Box::new(tell)));
        let named = |name: &str| thread::Builder::new().name(name.into());
        let (sending, hearing, late) = (Arc::clone(&shared), Arc::clone(&shared), late.clone());
        named("fleet: sends").spawn(move || sending::send(&sending)).map_err(FleetError::Thread)?;
        named("fleet: hears").spawn(move || hearing::hear(&hearing, &late)).map_err(FleetError::Thread)?;
        shared.wait_told();
        Ok(RedisFleet(shared))
    }

    /// Returns the link for the `fleet` of an endpoint. It takes some bytes that are never freed.
    #[must_use]
    pub fn link(&self) -> &'static mut dyn Fleet {
        Box::leak(Box::new(Link(Arc::clone(&self.0))))
    }

    /// Returns the last states of tasks, for the state of the handlers.
    #[must_use]
    pub fn tasks<S: 'static>(&self, late: &LateSender<S>) -> FleetTasks<S> {
        FleetTasks::new(Arc::clone(&self.0), late.clone())
    }
}

impl Drop for RedisFleet {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl fmt::Debug for RedisFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password.
        f.debug_struct("RedisFleet").field("options", &self.0.options).finish_non_exhaustive()
    }
}

/// The end of an endpoint.
struct Link(Arc<Shared>);

impl Fleet for Link {
    fn publish(&mut self, to: Option<&str>, change: ServerChange<'_>) {
        // No client has a longer name.
        if to.is_none_or(|principal| principal.len() <= PRINCIPAL_MAX) {
            self.0.publish(&Message::Change(to, change));
        }
    }

    fn end_session(&mut self, session: &[u8; 16], until: Millis) {
        let _ = self.0.push(Command::EndSession(*session, until));
    }
}

mcp_sansio::debug_fields!(impl for Link {});

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
