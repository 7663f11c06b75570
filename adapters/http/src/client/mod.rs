//! The HTTP transport of a client: sends each JSON-RPC message as an HTTP request and reads the responses. It
//! does no I/O and speaks all revisions.
//!
//! - 2024-11-05: [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports).
//! - 2025-03-26 to 2025-11-25: Streamable HTTP
//!   [with sessions](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http).
//! - 2026-07-28: Streamable HTTP
//!   [without sessions](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
//!
//! [`HttpTransport`] is an [`Out`]: a client engine writes whole messages into it and knows nothing of HTTP. It
//! reads in these messages which headers, sessions and streams they need. A driver moves bytes between sockets
//! and slots. Each slot is one connection with one exchange at a time. A turn of the driver's loop:
//!
//! 1. Call [`expire`](HttpTransport::expire) with the time.
//! 2. For each socket, write [`pending`](HttpTransport::pending) and call [`sent`](HttpTransport::sent), then read into
//!    [`space`](HttpTransport::space) and call [`filled`](HttpTransport::filled).
//! 3. Give each [`next_event`](HttpTransport::next_event) to the engine, and carry out each
//!    [`next_action`](HttpTransport::next_action).
//! 4. Wait for sockets or for [`next_deadline`](HttpTransport::next_deadline).
//!
//! ```
//! use mcp_sansio_http::client::{SocketAction, HttpClientConfig, HttpClientEvent, HttpTransport};
//!
//! /// A turn of a driver's loop. `sockets` does not block.
//! fn turn<S>(
//!     remote: &mut HttpTransport<'_>,
//!     sockets: &mut [Option<S>; 4],
//!     now: u64,
//!     connect: impl Fn(&str, u16) -> Option<S>,
//!     mut write: impl FnMut(&mut S, &[u8]) -> Option<usize>,
//!     mut read: impl FnMut(&mut S, &mut [u8]) -> Option<usize>, // 0: nothing now; None: the end
//!     mut tell: impl FnMut(HttpClientEvent<'_>),
//! ) {
//!     remote.expire(now); // the time, whenever the loop wakes up
//!     for slot in 0..4 {
//!         let Some(socket) = &mut sockets[slot] else { continue };
//!         let written = if remote.pending(slot).is_empty() { Some(0) } else { write(socket, remote.pending(slot)) };
//!         if let Some(n) = written {
//!             remote.sent(slot, n);
//!         }
//!         // After a failed write the server's answer may still be there to read.
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
//!             Some(SocketAction::Close(slot)) => sockets[slot] = None,
//!             Some(SocketAction::Connect(slot)) => {
//!                 sockets[slot] = connect(remote.url().host(), remote.url().port());
//!                 if sockets[slot].is_some() { remote.connected(slot) } else { remote.failed(slot) }
//!             }
//!         }
//!     }
//!     // Then wait: for sockets to read from, for those with something `pending`, for `remote.next_deadline()`.
//! }
//!
//! # #[cfg(feature = "alloc")] {
//! let mut remote = HttpTransport::growing("http://localhost:8931/mcp", HttpClientConfig::DEFAULT, 4)?;
//! let mut sockets = [None::<()>; 4];
//! turn(&mut remote, &mut sockets, 0, |_, _| None, |_, _| None, |_, _| None, |_| {});
//! # }
//! # Ok::<(), mcp_sansio_http::client::UrlError>(())
//! ```
//!
//! A request takes a slot until it is answered. In a legacy session one slot stays free for notifications and
//! responses, and the stream for the server's own messages takes one. So four slots serve two requests at once in
//! a legacy session, and four under 2026-07-28.
//!
//! [`Fetch`] is one GET or POST to any other URL, such as the metadata of an authorization server.
//!
//! The driver does name resolution, TLS and proxies. The engine keeps the deadlines of requests, gives ids
//! (unsigned integers), and initializes again after [`FailureReason::SessionLost`].

mod config;
mod event;
mod exchange;
mod fetch;
mod head;
mod http_client;
mod input;
mod origin;
mod outgoing;
pub mod params;
mod reply;
mod scheduler;
mod task;
#[cfg(all(test, feature = "alloc"))]
mod tests;
mod url;

pub use config::{HttpClientConfig, TransportKind};
pub use event::{FailureReason, HttpClientEvent, SocketAction};
pub use exchange::ExchangeSlot;
pub use fetch::{Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse};
pub use http_client::{
    CHALLENGES, ChallengeAnswer, ChallengedRequest, HeaderWriter, HttpClient, HttpHooks, LastError, OutgoingRequest,
    lost,
};
pub use origin::HeaderError;
pub use url::{Redacted, Url, UrlError};

use core::mem;

use mcp_sansio::FullError;
use mcp_sansio::json::Text;
use mcp_sansio::memory::records::Records;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink};

use origin::{OriginState, Sse};
use params::AnnotationError;

/// A server reached over HTTP, with at most one connection per slot. The [module](self) shows the loop around it.
#[derive(Debug)]
pub struct HttpTransport<'m> {
    slots: Slots<'m, ExchangeSlot<'m>>,
    origin: OriginState<'m>,
    writing: Target,
    held: bool,
    /// Responses and notifications that wait for a slot.
    outbox: Records<'m>,
    /// Messages that were sent, for [`HttpHooks::sent`].
    shown: Records<'m>,
    /// The slot of the event that was returned last.
    given: Option<usize>,
    /// The slot at which the search for the next event begins, so that no stream starves the others.
    next: usize,
}

/// The target of the message that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// No message is being written.
    None,
    Slot(usize),
    /// The record at this place of the outbox.
    Outbox(usize),
    /// Dropped: from 2026-07-28 on there are no notifications over HTTP; closing the exchange cancels.
    Nowhere,
}

/// The kind of the record of `notifications/initialized` in the outbox.
const INITIALIZED: u8 = 1;

/// A mark before a message while others wait in the outbox: the room grows.
const BEFORE: usize = usize::MAX;

/// The state of a legacy session's stream for the server's own messages
/// ([listening](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "there is none, there will be, there is")]
pub enum ListenState {
    /// There is no stream: not asked for, not offered by the server, or no session that has one.
    #[default]
    No,
    /// The stream is being opened, or opened again.
    Opening,
    /// The stream is open. Requests that the server sends on it from now on arrive.
    Open,
}

impl<'m> HttpTransport<'m> {
    /// Makes a transport to the server at `url`, over lent storage: `texts` for the URL, the headers that are set
    /// and the session's id, `tools` for annotations of parameters (`x-mcp-header`), and the slots.
    ///
    /// # Errors
    /// [`UrlError::Room`] if `texts` is too small for `url`; another [`UrlError`] if `url` is not a usable URL of
    /// `http` or `https`.
    pub fn new(
        url: &str,
        config: HttpClientConfig,
        texts: impl Into<Store<'m>>,
        tools: impl Into<Store<'m>>,
        slots: impl Into<Slots<'m, ExchangeSlot<'m>>>,
    ) -> Result<Self, UrlError> {
        let origin = OriginState::new(url, config, texts.into(), tools.into())?;
        let mut slots = slots.into();
        slots.iter_mut().enumerate().for_each(|(at, slot)| slot.at = at);
        let (outbox, shown) = (Records::new(Store::none()), Records::new(Store::none()));
        Ok(HttpTransport { slots, origin, writing: Target::None, held: false, outbox, shown, given: None, next: 0 })
    }

    /// Makes a transport with memory from the allocator: at most `connections` connections, messages and events
    /// of at most 16 MiB.
    ///
    /// # Errors
    /// [`UrlError`] if `url` is not a usable URL of `http` or `https`.
    #[cfg(feature = "alloc")]
    pub fn growing(url: &str, config: HttpClientConfig, connections: usize) -> Result<Self, UrlError> {
        Self::growing_up_to(url, config, connections, exchange::MOST)
    }

    /// Makes a transport with memory from the allocator, for messages and events of at most `limit` bytes.
    ///
    /// # Errors
    /// [`UrlError`] if `url` is not a usable URL of `http` or `https`.
    #[cfg(feature = "alloc")]
    pub fn growing_up_to(
        url: &str,
        config: HttpClientConfig,
        connections: usize,
        limit: usize,
    ) -> Result<Self, UrlError> {
        let mut slots = Slots::growing(connections);
        for _ in 0..connections {
            slots.push(ExchangeSlot::growing(limit));
        }
        Self::new(url, config, Store::growing(1 << 16), Store::growing(1 << 20), slots)
    }

    /// Returns the URL of the server: the host and the port to connect to, and whether each connection needs TLS.
    #[must_use]
    pub fn url(&self) -> Url<'_> {
        self.origin.url()
    }

    /// Sets a header for every later request, retried ones included.
    ///
    /// # Errors
    /// - [`HeaderError::Name`] or [`HeaderError::Value`]: HTTP does not allow it.
    /// - [`HeaderError::Reserved`]: the client writes this header itself.
    /// - [`HeaderError::Room`]: the store for texts is too small.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        self.origin.set_header(name, value)
    }

    /// Removes a header that [`set_header`](HttpTransport::set_header) set.
    pub fn remove_header(&mut self, name: &str) {
        self.origin.remove_header(name);
    }

    /// Returns the `Mcp-Session-Id` of the legacy session, if the server gave one ([session
    /// management](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management)).
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.origin.session()
    }

    /// Returns the `protocolVersion` of the answer to `initialize`.
    #[must_use]
    pub const fn version(&self) -> Option<Revision> {
        self.origin.version
    }

    /// Returns `true` if the server speaks HTTP with SSE (2024-11-05).
    #[must_use]
    pub const fn is_old(&self) -> bool {
        matches!(self.origin.sse, Sse::Known)
    }

    /// Returns the state of the stream for the server's own messages. A server may send its requests there, so
    /// send no request while this is [`ListenState::Opening`].
    #[must_use]
    pub fn listening(&self) -> ListenState {
        let begins = self.origin.may_listen() && self.slots.iter().any(|slot| slot.greets(false));
        if begins { ListenState::Opening } else { self.origin.listening }
    }

    /// Returns the number of listed tools whose annotations were not kept, for lack of room or beyond
    /// [`HttpClientConfig::tools`]. Calls of these tools lack `Mcp-Param-*` headers.
    #[must_use]
    pub const fn tools_forgotten(&self) -> u32 {
        self.origin.tools.forgotten
    }

    /// Returns the listed tools whose annotations (`x-mcp-header`) are invalid, and the reason (2026-07-28). A
    /// client must leave them out of the server's tools; [`params::leave_out`] does so. Calls of them fail with
    /// [`FailureReason::Excluded`].
    pub fn excluded(&self) -> impl Iterator<Item = (Text<'_>, AnnotationError)> {
        self.origin.tools.excluded()
    }

    /// Acts on a slot, if there is one of this number.
    fn on(&mut self, slot: usize, act: impl FnOnce(&mut ExchangeSlot<'m>, &mut OriginState<'m>)) {
        if let Some(slot) = self.slots.get_mut(slot) {
            act(slot, &mut self.origin);
        }
    }

    /// Returns the next connection to open or close.
    #[must_use]
    pub fn next_action(&mut self) -> Option<SocketAction> {
        self.slots.iter_mut().find_map(ExchangeSlot::action)
    }

    /// Reports that the slot's connection is open.
    pub fn connected(&mut self, slot: usize) {
        self.on(slot, |slot, origin| slot.connected(origin));
    }

    /// Reports that the slot's connection could not be opened, or broke.
    pub fn failed(&mut self, slot: usize) {
        self.on(slot, |slot, _| slot.gone(false));
    }

    /// Reports that the server closed the slot's connection in order: no more bytes follow.
    pub fn closed(&mut self, slot: usize) {
        self.on(slot, |slot, _| slot.gone(true));
    }

    /// Returns the bytes to send on the slot's connection.
    #[must_use]
    pub fn pending(&self, slot: usize) -> &[u8] {
        self.slots.get(slot).map_or(&[], ExchangeSlot::pending)
    }

    /// Reports that the first `n` pending bytes were sent.
    pub fn sent(&mut self, slot: usize, n: usize) {
        self.on(slot, |slot, origin| slot.sent(n, origin));
    }

    /// Returns the place to read bytes of the slot's connection into. It is empty if the slot has no connection,
    /// and while an event of the slot waits for [`next_event`](HttpTransport::next_event).
    #[must_use]
    pub fn space(&mut self, slot: usize) -> &mut [u8] {
        self.slots.get_mut(slot).map_or(&mut [], ExchangeSlot::space)
    }

    /// Reports that `n` bytes were read into [`space`](HttpTransport::space).
    pub fn filled(&mut self, slot: usize, n: usize) {
        self.on(slot, |slot, _| slot.filled(n));
    }

    /// Returns the next event. Call it until it returns `None`.
    #[must_use]
    pub fn next_event(&mut self) -> Option<HttpClientEvent<'_>> {
        let at = self.find_event()?;
        self.tell(at)
    }

    /// Returns the next slot whose challenged exchange is to continue.
    pub(crate) fn next_resumed(&mut self) -> Option<usize> {
        self.slots.iter_mut().position(|slot| mem::take(&mut slot.resumed))
    }

    /// Returns the next request whose head waits for headers of the caller.
    pub(crate) fn next_unsigned(&self) -> Option<(usize, OutgoingRequest<'_>)> {
        let (slot, method) = self.slots.iter().enumerate().find_map(|(at, slot)| Some((at, slot.unsigned()?)))?;
        let url = self.origin.url_of(slot, method != "GET");
        Some((slot, OutgoingRequest { method, url, dpop_nonce: self.origin.nonce() }))
    }

    /// Adds headers to a head that waits for them.
    pub(crate) fn sign(&mut self, slot: usize, lines: &[u8], credentials: u32) {
        self.on(slot, |slot, origin| slot.sign(lines, credentials, origin));
    }

    /// Marks a challenged exchange to continue later.
    pub(crate) fn resume(&mut self, slot: usize) {
        self.on(slot, |slot, _| slot.resumed = true);
    }

    /// Returns the time, in milliseconds, by which to call [`expire`](HttpTransport::expire).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        self.slots.iter().filter_map(|slot| slot.deadline).min()
    }

    /// Moves the deadlines that were set since [`settled`](HttpTransport::settled), to count from `now`: the driver
    /// could not say the time in between.
    pub(crate) fn rebase(&mut self, now: Millis) {
        let passed = now.saturating_sub(self.origin.now);
        self.slots.iter_mut().for_each(|slot| slot.rebase(passed));
    }

    /// Lets the deadlines that were set so far count from the time given last.
    pub(crate) fn settled(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.rebase(0));
    }

    /// Sets the time and does the work that is due. Call it first whenever the loop wakes up: deadlines count
    /// from the time given last.
    pub fn expire(&mut self, now: Millis) {
        self.told();
        self.origin.now = self.origin.now.max(now);
        self.slots.iter_mut().for_each(|slot| slot.expire(&mut self.origin));
        self.flush();
    }

    /// Sends the message of a [challenged](HttpClientEvent::Challenge) exchange again, with the headers as they are set
    /// now.
    pub fn retry(&mut self, slot: usize) {
        self.told();
        self.on(slot, |slot, origin| slot.decide(true, origin));
    }

    /// Ends a [challenged](HttpClientEvent::Challenge) exchange with [`FailureReason::GivenUp`].
    pub fn give_up(&mut self, slot: usize) {
        self.told();
        self.on(slot, |slot, origin| slot.decide(false, origin));
    }

    /// Closes the exchange of a request; no event of it follows. Under 2026-07-28 this
    /// [cancels](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation) the
    /// request. Returns `true` if the request was in flight.
    pub fn abandon(&mut self, request: u64) -> bool {
        self.told();
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.request() == Some(request)) else { return false };
        slot.abandon(&mut self.origin);
        true
    }

    /// [Abandons](HttpTransport::abandon) the exchanges of all requests for which `wanted` returns `false`.
    pub(crate) fn abandon_unless(&mut self, wanted: impl Fn(u64) -> bool) {
        for slot in self.slots.iter_mut().filter(|slot| !slot.has_event()) {
            if slot.request().is_some_and(|request| !wanted(request)) {
                slot.abandon(&mut self.origin);
            }
        }
    }

    /// Ends the legacy session with DELETE; [`HttpClientEvent::Ended`] follows. Returns `false` if there is no session to
    /// end. If all slots are taken, it closes the stream for the server's own messages to get one; without that
    /// stream, it only forgets the session.
    pub fn end_session(&mut self) -> bool {
        self.told();
        self.delete_session()
    }

    /// Closes all connections and forgets all exchanges: no events of them follow. Carry out the actions that
    /// follow.
    pub fn shut_down(&mut self) {
        self.told();
        self.drop_all();
    }

    /// Returns `true` if no exchange is in flight. Idle connections and the stream for the server's own messages
    /// do not count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.is_free() || slot.is_stream())
    }
}

impl Sink for HttpTransport<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        match self.writing {
            Target::Slot(at) => self.slots.get_mut(at).ok_or(FullError::Now)?.outgoing.put(bytes),
            Target::Outbox(at) => self.outbox.extend(at, bytes).map_err(|_| FullError::Now),
            Target::Nowhere => Ok(()),
            Target::None => Err(FullError::Now),
        }
    }

    fn room(&self) -> usize {
        match self.writing {
            Target::Slot(at) => self.slots.get(at).map_or(0, |slot| slot.outgoing.room()),
            Target::Outbox(_) => self.outbox.limit().saturating_sub(self.outbox.used()),
            Target::Nowhere => usize::MAX,
            Target::None => self.capacity(),
        }
    }
}

/// Takes one message after the other, each into a slot of its own. If no slot is free, responses and notifications of a
/// [`HttpClient`] wait in its outbox; else `begin` fails with [`FullError::Now`]. After a request of 2026-07-28 notifications are
/// dropped.
impl Out for HttpTransport<'_> {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        if self.held || self.writing != Target::None {
            return Err(FullError::Now);
        }
        self.told();
        let is_request = matches!(head, MessageHead::Request(_));
        if self.origin.modern && matches!(head, MessageHead::Notification) {
            self.writing = Target::Nowhere;
            return Ok(());
        }
        // Messages in the outbox go first.
        let waits = !is_request && self.outbox.used() > 0;
        self.writing = match if waits { None } else { self.choose(is_request) } {
            Some(at) => {
                self.slots.get_mut(at).ok_or(FullError::Now)?.begin(head, &self.origin)?;
                Target::Slot(at)
            }
            None if is_request => return Err(FullError::Now),
            None => {
                let kind = if matches!(head, MessageHead::Initialized) { INITIALIZED } else { 0 };
                Target::Outbox(self.outbox.begin(0, kind, 0).map_err(|_| FullError::Now)?)
            }
        };
        Ok(())
    }

    fn end(&mut self) {
        if let Target::Slot(at) = mem::replace(&mut self.writing, Target::None) {
            self.dispatch(at);
        }
    }

    fn mark(&self) -> Mark {
        Mark::new(match self.writing {
            Target::Slot(at) => 1 + self.slots.get(at).map_or(0, |slot| slot.outgoing.len()),
            Target::Outbox(at) => 1 + self.outbox.get(at).map_or(0, |record| record.data.len()),
            Target::None if self.outbox.used() > 0 => BEFORE,
            Target::None | Target::Nowhere => 0,
        })
    }

    fn roll_back(&mut self, mark: Mark) {
        let len = mark.at().checked_sub(1).filter(|_| mark.at() != BEFORE);
        match (self.writing, len) {
            (Target::Slot(at), _) => {
                if let Some(slot) = self.slots.get_mut(at) {
                    match len {
                        Some(len) => slot.outgoing.truncate(len),
                        None => slot.roll_back(&self.origin),
                    }
                }
            }
            (Target::Outbox(at), Some(len)) => self.outbox.shorten(at, len),
            (Target::Outbox(at), None) => self.outbox.drop_last(at),
            (Target::None | Target::Nowhere, _) => {}
        }
        if len.is_none() {
            self.writing = Target::None;
        }
    }

    fn hold(&mut self, on: bool) {
        self.held = on;
    }

    fn held(&self) -> bool {
        self.held
    }

    fn capacity(&self) -> usize {
        self.slots.iter().map(|slot| slot.outgoing.capacity()).min().unwrap_or(0)
    }
}
