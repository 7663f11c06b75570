//! The client's side: JSON-RPC messages go out as HTTP requests, what comes back is taken apart. Sans-IO, all revisions.
//!
//! [`Remote`] is an [`Out`]: an engine writes whole messages into it and knows nothing of HTTP. What
//! headers, sessions and streams need to know is read from the messages that pass by. The driver moves bytes between
//! sockets and slots, each of which is one connection with one exchange at a time:
//!
//! ```
//! use mcp_sansio_http::client::{Action, Config, Event, Remote};
//!
//! /// A turn of a driver's loop. `sockets` does not block.
//! fn turn<S>(
//!     remote: &mut Remote<'_, 4>,
//!     sockets: &mut [Option<S>; 4],
//!     now: u64,
//!     connect: impl Fn(&str, u16) -> Option<S>,
//!     mut write: impl FnMut(&mut S, &[u8]) -> Option<usize>,
//!     mut read: impl FnMut(&mut S, &mut [u8]) -> Option<usize>, // 0: nothing now; None: the end
//!     mut tell: impl FnMut(Event<'_>),
//! ) {
//!     remote.expire(now); // the time, whenever the loop wakes up
//!     for slot in 0..4 {
//!         let Some(socket) = &mut sockets[slot] else { continue };
//!         let written = if remote.pending(slot).is_empty() { Some(0) } else { write(socket, remote.pending(slot)) };
//!         if let Some(n) = written {
//!             remote.sent(slot, n);
//!         }
//!         // Where writing failed there may be an answer all the same.
//!         let come = if remote.space(slot).is_empty() { Some(0) } else { read(socket, remote.space(slot)) };
//!         match come {
//!             Some(n) => remote.filled(slot, n),
//!             None => remote.closed(slot), // or `failed`, if it was reset
//!         }
//!         if come.is_none() || written.is_none() {
//!             remote.failed(slot); // does nothing where the end is known
//!             sockets[slot] = None;
//!         }
//!     }
//!     loop {
//!         while let Some(event) = remote.next_event() {
//!             tell(event); // to the engine, which may have something to send
//!         }
//!         match remote.next_action() {
//!             None => break,
//!             Some(Action::Close(slot)) => sockets[slot] = None,
//!             Some(Action::Connect(slot)) => {
//!                 sockets[slot] = connect(remote.host(), remote.port());
//!                 if sockets[slot].is_some() { remote.connected(slot) } else { remote.failed(slot) }
//!             }
//!         }
//!     }
//!     // Then wait: for sockets to read from, for those with something `pending`, for `remote.next_deadline()`.
//! }
//!
//! # #[cfg(feature = "alloc")] {
//! let mut remote: Remote<'_, 4> = Remote::growing("http://localhost:8931/mcp", Config::DEFAULT)?;
//! let mut sockets = [None::<()>; 4];
//! turn(&mut remote, &mut sockets, 0, |_, _| None, |_, _| None, |_, _| None, |_| {});
//! # }
//! # Ok::<(), mcp_sansio_http::client::UrlError>(())
//! ```
//!
//! A request takes a slot until it is answered; in legacy sessions one is left for what is no request, and one is taken by
//! the stream of the server's own messages. So four slots serve two requests at once there, four under 2026-07-28.
//!
//! What stays with the driver: names and addresses, TLS, proxies. What stays with the engine: deadlines of requests, ids
//! (unsigned integers), initializing anew after [`Why::SessionLost`].

mod config;
mod event;
mod exchange;
mod head;
mod input;
pub mod params;
mod reply;
mod session;
mod site;
mod slot;
#[cfg(all(test, feature = "alloc"))]
mod tests;
mod url;
mod web;

pub use config::{Config, Transport};
pub use event::{Action, Blame, Event, Why};
pub use head::BadHeader;
pub use slot::Slot;
pub use url::{Redacted, Url, UrlError};
pub use web::{CHALLENGES, Challenge, Fault, Headers, Hooks, Verdict, Web, lost};

use mcp_sansio::Full;
use mcp_sansio::json::Text;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Kind, Mark, Out, Sink};
use mcp_sansio::store::Store;

use params::BadAnnotation;
use site::Site;

/// A server that is reached over HTTP, with at most `N` connections. The [module](self) shows the loop around it.
#[derive(Debug)]
pub struct Remote<'m, const N: usize> {
    slots: [Slot<'m>; N],
    site: Site<'m>,
    /// The slot that the message at hand is written into.
    writing: Option<usize>,
    held: bool,
    /// The slot of the event that was given out last.
    given: Option<usize>,
    /// Where the next event is looked for first, so that no stream starves the others.
    next: usize,
}

/// How it stands with the stream of a legacy session for the server's own messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "there is none, there will be, there is")]
pub enum Listening {
    /// There is none: not asked for, not offered, or no such session.
    #[default]
    No,
    /// It is being opened, or opened again.
    Opening,
    /// It is open. What a server asks on it from now on arrives.
    Open,
}

impl<'m, const N: usize> Remote<'m, N> {
    /// A server at `url`, over lent storage: `texts` for the URL, the headers that are set and the session's id, `tools`
    /// for annotations of parameters (`x-mcp-header`), and the slots.
    ///
    /// # Errors
    /// If `url` is not one of `http` or `https`, or `texts` is too small for it.
    pub fn new(
        url: &str,
        config: Config,
        texts: impl Into<Store<'m>>,
        tools: impl Into<Store<'m>>,
        slots: [Slot<'m>; N],
    ) -> Result<Self, UrlError> {
        let site = Site::new(url, config, texts.into(), tools.into())?;
        Ok(Remote { slots, site, writing: None, held: false, given: None, next: 0 })
    }

    /// The same with memory from the allocator: messages and events of at most 16 MiB.
    ///
    /// # Errors
    /// If `url` is not one of `http` or `https`.
    #[cfg(feature = "alloc")]
    pub fn growing(url: &str, config: Config) -> Result<Self, UrlError> {
        Self::growing_up_to(url, config, slot::MOST)
    }

    /// The same for messages and events of at most `limit` bytes.
    ///
    /// # Errors
    /// If `url` is not one of `http` or `https`.
    #[cfg(feature = "alloc")]
    pub fn growing_up_to(url: &str, config: Config, limit: usize) -> Result<Self, UrlError> {
        let slots = core::array::from_fn(|_| Slot::growing(limit));
        Self::new(url, config, Store::growing(1 << 16), Store::growing(1 << 20), slots)
    }

    /// The URL it was made with.
    #[must_use]
    pub fn url(&self) -> Url<'_> {
        self.site.url()
    }

    /// The host to connect to: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.site.url().host()
    }

    /// The port to connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.site.url().port()
    }

    /// Whether TLS goes around each connection.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.site.url().is_secure()
    }

    /// Sets a header that goes with every request from now on, retried ones too.
    ///
    /// # Errors
    /// If it cannot be a header, is one that the client writes itself, or does not fit.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), BadHeader> {
        self.site.set_header(name, value)
    }

    /// Removes a header that was set.
    pub fn remove_header(&mut self, name: &str) {
        self.site.remove_header(name);
    }

    /// The id of the legacy session, if the server gave one.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.site.session()
    }

    /// The revision that `initialize` was answered with.
    #[must_use]
    pub const fn version(&self) -> Option<Revision> {
        self.site.version
    }

    /// Whether the server turned out to be one of 2024-11-05 (HTTP with SSE).
    #[must_use]
    pub const fn is_old(&self) -> bool {
        self.site.is_old()
    }

    /// How it stands with the stream for the server's own messages. A server may send what it asks there, so wait with
    /// requests until this is not [`Listening::Opening`].
    #[must_use]
    pub fn listening(&self) -> Listening {
        let will_be = self.site.config.listen && self.site.old == site::Old::No && !self.site.modern;
        let begins = || self.slots.iter().any(|slot| slot.task.topic == slot::Topic::Initialized && !slot.is_free());
        if will_be && begins() { Listening::Opening } else { self.site.listening }
    }

    /// How many tools were listed whose annotations did not fit, or were more than [`Config::tools`]: their calls lack
    /// headers.
    #[must_use]
    pub const fn tools_forgotten(&self) -> u32 {
        self.site.tools.forgotten
    }

    /// The tools that were listed with annotations that cannot be followed, and why (2026-07-28). They must be left out of
    /// what the server offers, which [`params::leave_out`] does; calls of them fail with [`Why::Excluded`].
    pub fn excluded(&self) -> impl Iterator<Item = (Text<'_>, BadAnnotation)> {
        self.site.tools.excluded()
    }

    /// What to connect or close next.
    #[must_use]
    pub fn next_action(&mut self) -> Option<Action> {
        self.slots.iter_mut().enumerate().find_map(|(at, slot)| slot.action(at))
    }

    /// Says that the slot's connection is there.
    pub fn connected(&mut self, slot: usize) {
        let now = self.site.now;
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.connected(now, &self.site.config);
        }
    }

    /// Says that the slot's connection could not be made, or broke.
    pub fn failed(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.gone(false);
        }
    }

    /// Says that the server closed the slot's connection in order: nothing more comes.
    pub fn closed(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.gone(true);
        }
    }

    /// What to send on the slot's connection.
    #[must_use]
    pub fn pending(&self, slot: usize) -> &[u8] {
        self.slots.get(slot).map_or(&[], Slot::pending)
    }

    /// Says that the first `n` pending bytes were sent.
    pub fn sent(&mut self, slot: usize, n: usize) {
        let now = self.site.now;
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.sent(n, now, &self.site.config);
        }
    }

    /// Where to read to from the slot's connection. Empty if it has none, and while an event of it waits: call
    /// [`next_event`](Remote::next_event).
    #[must_use]
    pub fn space(&mut self, slot: usize) -> &mut [u8] {
        self.slots.get_mut(slot).map_or(&mut [], Slot::space)
    }

    /// Says that `n` bytes were read.
    pub fn filled(&mut self, slot: usize, n: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.filled(n);
        }
    }

    /// What happened, one thing after the other; call it until there is nothing.
    #[must_use]
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        let at = self.find_event()?;
        self.give(at)
    }

    /// The request of a slot.
    pub(crate) fn request(&self, slot: usize) -> Option<u64> {
        self.slots.get(slot).and_then(Slot::request)
    }

    /// How often the message of a slot was challenged, the last time included.
    pub(crate) fn challenges(&self, slot: usize) -> u8 {
        self.slots.get(slot).map_or(0, |slot| slot.task.challenges)
    }

    /// When to call [`expire`](Remote::expire) at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        self.slots.iter().filter_map(Slot::deadline).min()
    }

    /// Has the time of what was begun since [`settled`](Remote::settled) begin now: nobody told how late it was.
    pub(crate) fn rebase(&mut self, now: Millis) {
        let passed = now.saturating_sub(self.site.now);
        for slot in self.slots.iter_mut().filter(|slot| slot.fresh) {
            slot.fresh = false;
            slot.deadline = slot.deadline.map(|deadline| deadline.saturating_add(passed));
        }
    }

    /// What was begun so far was begun at the time that is known.
    pub(crate) fn settled(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.fresh = false);
    }

    /// Tells the time. Call it first whenever the loop wakes up: deadlines count from what was told last.
    pub fn expire(&mut self, now: Millis) {
        self.told();
        self.site.now = self.site.now.max(now);
        for (at, slot) in self.slots.iter_mut().enumerate() {
            slot.expire(at, &mut self.site);
        }
    }

    /// Sends the message of a [challenged](Event::Challenge) exchange again, with the headers that are set now.
    pub fn retry(&mut self, slot: usize) {
        self.told();
        if let Some(place) = self.slots.get_mut(slot) {
            place.retry(slot, &mut self.site);
        }
    }

    /// Ends a [challenged](Event::Challenge) exchange with [`Why::GivenUp`].
    pub fn give_up(&mut self, slot: usize) {
        self.told();
        if let Some(place) = self.slots.get_mut(slot) {
            place.give_up(slot, &mut self.site);
        }
    }

    /// Closes the exchange of a request, which under 2026-07-28 cancels it. Nothing more is told of the request. Whether
    /// it was under way.
    pub fn abandon(&mut self, request: u64) -> bool {
        self.told();
        let found = self.slots.iter_mut().enumerate().find(|(_, slot)| slot.request() == Some(request));
        let Some((at, slot)) = found else { return false };
        slot.abandon(&mut self.site, at);
        true
    }

    /// [Abandons](Remote::abandon) the exchanges of all requests that are not wanted any more.
    pub fn abandon_unless(&mut self, wanted: impl Fn(u64) -> bool) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.ready.is_none() && slot.request().is_some_and(|request| !wanted(request)) {
                slot.abandon(&mut self.site, at);
            }
        }
    }

    /// Ends the legacy session (DELETE); [`Event::Ended`] follows. `false` if there is none to end. If all slots are
    /// taken, the one with the stream of the server's own is closed for it, or else the session is merely forgotten.
    pub fn end_session(&mut self) -> bool {
        self.told();
        self.delete_session()
    }

    /// Closes all connections and forgets all exchanges: nothing more is told of them. Carry out the actions that follow.
    pub fn shut_down(&mut self) {
        self.told();
        self.drop_all();
    }

    /// Whether no exchange is under way; idle connections and the stream of the server's own do not count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.is_free() || slot.is_listen())
    }
}

impl<const N: usize> Sink for Remote<'_, N> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let slot = self.writing.and_then(|at| self.slots.get_mut(at)).ok_or(Full::Now)?;
        slot.put(bytes)
    }

    fn room(&self) -> usize {
        match self.writing.and_then(|at| self.slots.get(at)) {
            Some(slot) => slot.room(),
            None => self.capacity(),
        }
    }
}

/// Takes one message after the other, each into a slot of its own. [`Full::Now`] if none is free.
impl<const N: usize> Out for Remote<'_, N> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        if self.held || self.writing.is_some() {
            return Err(Full::Now);
        }
        self.told();
        let at = self.choose(kind == Kind::Request).ok_or(Full::Now)?;
        if let Some(slot) = self.slots.get_mut(at) {
            slot.begin();
        }
        self.writing = Some(at);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(at) = self.writing.take() {
            self.dispatch(at);
        }
    }

    fn mark(&self) -> Mark {
        Mark::new(self.writing.and_then(|at| self.slots.get(at)).map_or(0, |slot| 1 + slot.written()))
    }

    fn roll_back(&mut self, mark: Mark) {
        let Some(slot) = self.writing.and_then(|at| self.slots.get_mut(at)) else { return };
        match mark.at().checked_sub(1) {
            Some(len) => slot.truncate(len),
            None => {
                slot.unbegin(&self.site);
                self.writing = None;
            }
        }
    }

    fn hold(&mut self, on: bool) {
        self.held = on;
    }

    fn held(&self) -> bool {
        self.held
    }

    fn capacity(&self) -> usize {
        self.slots.iter().map(Slot::capacity).min().unwrap_or(0)
    }
}
