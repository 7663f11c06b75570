//! The state machine of a server: a message and a sink in, an event and bytes out.
//!
//! [`Server`] answers the messages that the protocol alone decides: opening, ping, subscriptions, log levels, wrong
//! messages. It hands out all others as a [`ServerEvent`] that borrows the message.
//! [`Service`](crate::service::Service) sits on top of it and calls handlers. Programs without a service use
//! [`handle`](Server::handle), [`respond`](Server::respond) and [`fail`](Server::fail).
//!
//! The caller lends all memory: [`Slots`] for the requests in flight, [`Store`]s for everything else. The caller also
//! sets the time, in the field [`now`](Server::now).

mod admission;
pub(crate) mod around;
pub(crate) mod ask;
mod batch;
mod id;
mod in_flight;
pub(crate) mod notify;
mod peer;
#[cfg(feature = "alloc")]
pub(crate) mod published;
mod request;
mod seal;
pub(crate) mod server_info;
mod streamed_reply;
pub(crate) mod subscriptions;
pub(crate) mod topics;

pub use batch::BatchOut;
pub use id::{RequestToken, Scope, ServerId};
#[cfg(feature = "ask")]
pub(crate) use in_flight::Ended;
pub(crate) use in_flight::{ASKS, IdText, OVERLOADED};
pub use in_flight::{ID_MAX, RequestSlot};
pub use notify::{NotifyStatus, Progress, ProgressValue, PullStatus, ServerChange};
pub use peer::Peer;
#[cfg(feature = "alloc")]
pub use published::OwnedServerChange;
pub use request::IncomingRequest;
pub use seal::{AssociatedData, Seal, SealError, is_same_secret};
#[cfg(feature = "extensions")]
pub(crate) use server_info::DeclareExtensions;
pub use server_info::{Caching, ServerInfo, ServerOptions, TransportChecks};
#[cfg(feature = "windows")]
pub(crate) use streamed_reply::{Give, Puller, Skip};
pub(crate) use streamed_reply::{ListPage, StreamBody, StreamedReply, WINDOWS, WriteReply};

pub use crate::content::Icon;
pub(crate) use crate::error::respond as respond_failure;
pub(crate) use crate::error::words;
pub use crate::error::{RpcError, write_error};
pub use crate::time::Millis;

use self::around::SentMessage;
use self::subscriptions::{NewsWriter, Quota, RecordChange, SubscriptionVtable, WRITE_ALL, WRITE_LISTS};
use crate::json::{ParseError, Raw, Text};
use crate::memory::{Slots, Store, records::Records};
use crate::protocol::{Method, code};
use crate::revision::Revision;
use crate::rpc::{Envelope, MessageShape, fault_code};
use crate::sink::{FullError, MessageHead, Out};

/// The least size of a sink, in bytes, with which every automatic answer fits: 256, with the feature `alloc` 384. The end of a
/// `subscriptions/listen` names an id of the largest size twice.
pub const MIN_ROOM: usize = 124 + 2 * ID_MAX;

/// Called when `initialize` comes on an open connection, or with an id that is in use. Without it, and where it returns `false`, the
/// request is refused.
type Reopen = fn(&mut Server<'_>, Option<&[u8]>) -> bool;

/// The state machine of a server: requests in flight, the connection, subscriptions.
///
/// Its methods are of four kinds. *Input*: [`handle`](Server::handle), [`end_of_input`](Server::end_of_input),
/// [`expire`](Server::expire). *Answers*: [`respond`](Server::respond),
/// [`fail`](Server::fail), [`progress`](Server::progress), [`log`](Server::log). *Changes*:
/// [`publish`](Server::publish), [`pull`](Server::pull). *State*: [`in_flight`](Server::in_flight),
/// [`ready`](Server::ready), [`next_deadline`](Server::next_deadline).
///
/// ```
/// use mcp_sansio::server::{ServerInfo, ServerOptions, IncomingRequest, Server, RequestSlot};
/// use mcp_sansio::sink::{LineSink, SliceStorage};
///
/// let about = ServerInfo::new("demo", "1.0");
/// let mut slots = [RequestSlot::FREE; 4]; // at most 4 requests in flight
/// let mut server = Server::new(&mut slots);
/// let mut bytes = [0; 512];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes));
/// let mut request = IncomingRequest::empty();
/// let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// let event = server.handle(&ServerOptions::new(&about), ping, &mut request, &mut out)?;
/// assert!(event.is_none()); // answered by the server
/// assert_eq!(out.pending(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
pub struct Server<'m> {
    /// The facts about the client.
    pub peer: Peer,
    pub(crate) scope: Scope,
    /// The number that requests get from here on, for [`Server::transport_id`]. Over HTTP: the exchange that they belong to.
    pub transport_id: u32,
    /// The scopes that the user behind the next messages has granted, one bit each in an order of the application's, for
    /// [`Caller::scopes`](crate::service::Caller::scopes). Default: all, because a line has no scopes.
    pub caller_scopes: u64,
    /// Messages travel in HTTP exchanges: an error for a message that could not be read has no `id`, and a listen ends with its
    /// result alone. Default: one stream.
    pub over_http: bool,
    /// The time in milliseconds, for the deadlines of questions from here on.
    pub now: Millis,
    pub(crate) ask_timeout: Option<Millis>,
    pub(crate) asks: Records<'m>,
    /// The most bytes of `asks` of one scope.
    pub(crate) ask_share: usize,
    pub(crate) subscriptions: Records<'m>,
    /// The share of one scope in them.
    pub(crate) subscription_share: Quota,
    pub(crate) scratch: Store<'m>,
    pub(crate) seal: Option<&'m (dyn Seal + Sync)>,
    pub(crate) subscribing: Option<&'static SubscriptionVtable>,
    pub(crate) write_news: Option<NewsWriter>,
    pub(crate) reopen: Option<Reopen>,
    /// Changes that handlers have published.
    #[cfg(feature = "alloc")]
    pub(crate) published: published::PublishedChanges,
    /// A record of a subscription is marked.
    pub(crate) news: bool,
    /// The id of the next request to a client. It only grows: no id is used twice.
    pub(crate) next_id: u64,
    /// See [`Server::set_most_in_flight`].
    pub(crate) most_in_flight: u16,
    live: u16,
    pub(crate) tokens: id::Tokens,
    pub(crate) slots: Slots<'m, RequestSlot>,
}

/// The part of a message that concerns the application. It borrows the message, never the server and never the sink.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it lives for a moment on the stack; a box would need an allocator")]
pub enum ServerEvent<'a> {
    /// A request, which was read into the [`IncomingRequest`]. Answer it now or later.
    Request {
        /// The token for the answer.
        token: RequestToken,
    },
    /// A notification. The server has noted the part that concerns it.
    Notification {
        /// `method`
        method: Text<'a>,
        /// `params`
        params: Option<Raw<'a>>,
    },
    /// The client has
    /// [cancelled](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation) a request.
    /// [`IncomingRequest::reason`] of the message has its reason.
    Cancelled {
        /// The token of the request, which is stale now.
        token: RequestToken,
    },
    /// The server has answered `initialize`.
    Opened {
        /// The negotiated revision.
        revision: Revision,
        /// `clientInfo`
        client: Option<Raw<'a>>,
    },
    /// The reply is larger than the sink and goes out in windows: call [`pump`](Server::pump) when there is room.
    Streaming {
        /// The token for `pump`.
        token: RequestToken,
    },
    /// A batch (2024-11-05 and 2025-03-26). Handle each element as a message, with a [`BatchOut`].
    Batch {
        /// The array.
        elements: Raw<'a>,
    },
}

crate::error_enum! {
    /// The reason why an answer was not written. Nothing has changed, except that the handler may have run.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    RespondError {
        /// The sink is full: send the pending bytes, then call again.
        FullNow => "the sink is full for now",
        /// The answer is larger than the empty sink. The request is still open.
        FullNever => "the answer is larger than the sink",
        /// The request was answered or cancelled.
        Stale => "the request was answered or cancelled",
        /// The request has another method than the one that is answered; or it cannot be resumed, because its handler has
        /// not [suspended](crate::service::RequestContext::suspend) it. It is still open.
        WrongKind => "the request is of another kind",
        /// The client has not sent `initialize`: a server can send it no requests.
        NotInitialized => "the client has not sent initialize",
    }
}

impl From<FullError> for RespondError {
    fn from(full: FullError) -> Self {
        match full {
            FullError::Now => RespondError::FullNow,
            FullError::Never => RespondError::FullNever,
        }
    }
}

impl<'m> Server<'m> {
    /// Makes a server with at most as many requests in flight as there are `slots`. Without stores its handlers
    /// cannot ask, it keeps no subscriptions, and it cannot decode text with escapes: lend it the stores that it
    /// needs. Requests that another server has left in the slots are dropped.
    #[must_use]
    pub fn new(slots: impl Into<Slots<'m, RequestSlot>>) -> Self {
        let mut slots = slots.into();
        slots.iter_mut().for_each(RequestSlot::clear);
        Server {
            peer: Peer::NEW,
            scope: Scope(0),
            transport_id: 0,
            caller_scopes: u64::MAX,
            over_http: false,
            now: 0,
            ask_timeout: None,
            asks: Records::new(Store::none()),
            ask_share: usize::MAX,
            subscriptions: Records::new(Store::none()),
            subscription_share: Quota::ALL,
            scratch: Store::none(),
            seal: None,
            subscribing: None,
            write_news: None,
            reopen: None,
            #[cfg(feature = "alloc")]
            published: published::PublishedChanges::new(),
            news: false,
            next_id: 1,
            most_in_flight: u16::MAX,
            live: 0,
            tokens: id::Tokens::new(&slots),
            slots,
        }
    }

    /// Lends memory for questions to clients of the legacy revisions: the params of each request that asks, the state
    /// of its handler, the answers. Also for [suspended](crate::service::RequestContext::suspend) requests, in all
    /// revisions. 512 bytes hold two ordinary elicitations. Default: none.
    #[cfg(feature = "ask")]
    #[must_use]
    pub fn asks(mut self, store: impl Into<Store<'m>>) -> Self {
        self.asks = Records::new(store.into());
        self
    }

    /// Lends memory for subscriptions: the URI and the request id of each, and some ten bytes more. Default: none.
    #[must_use]
    pub fn subscriptions(mut self, store: impl Into<Store<'m>>) -> Self {
        self.subscriptions = Records::new(store.into());
        self.subscribing = Some(&SubscriptionVtable::VTABLE);
        self.write_news = Some(WRITE_ALL);
        self
    }

    /// Sets the share of one [`Scope`] (a session, a connection) in the memory for subscriptions: bytes, with ids and
    /// some ten bytes for each, and URIs. Also limits the URIs that one listen may name. A subscription beyond it is
    /// refused as overload; a listen is granted as far as there is room. Default: no limit.
    #[must_use]
    pub const fn subscription_share(mut self, bytes: usize, uris: usize) -> Self {
        self.subscription_share = Quota { bytes, uris };
        self
    }

    /// Sets the share of one [`Scope`] (a session) in the memory for questions, in bytes. Beyond it a handler cannot
    /// ask, and an answer is dropped. Default: no limit.
    #[cfg(feature = "ask")]
    #[must_use]
    pub const fn ask_share(mut self, bytes: usize) -> Self {
        self.ask_share = bytes;
        self
    }

    /// Lets `initialize` on an open connection open it again, after [`forget_peer`](Server::forget_peer). For wires
    /// without a sign that a client has gone, such as a UART. From 2026-07-28 on there is no `initialize`: a request whose id is in use
    /// ends the one before, which a client that has gone has sent. Default: both are refused.
    #[must_use]
    pub const fn reopening(mut self) -> Self {
        self.reopen = Some(|server, id| {
            let Some(id) = id else {
                server.forget_peer();
                return true;
            };
            server.change_subscriptions(RecordChange::DropListen(id));
            if let Some(token) = server.find(id) {
                server.forget(token);
            }
            true
        });
        self
    }

    /// Answers `initialize` on an open connection again; its revision and capabilities count from there on. Requests
    /// in flight, open questions and subscriptions stay: they may belong to another client. For lines that several
    /// clients share, such as stdio behind a gateway. Default: it is refused.
    #[must_use]
    pub const fn reinitializing(mut self) -> Self {
        self.reopen = Some(|server, id| {
            if id.is_none() {
                server.peer.reopen();
            }
            id.is_none()
        });
        self
    }

    /// Lends memory for the decoded text of the arguments of one call. Text without escapes needs none. Default:
    /// none.
    #[must_use]
    pub fn scratch(mut self, store: impl Into<Store<'m>>) -> Self {
        self.scratch = store.into();
        self
    }

    crate::const_setters! {
        /// Sets the protection of the `requestState` that travels through clients of 2026-07-28. Default: none; handlers
        /// then cannot keep a state there.
        #[cfg(feature = "ask")]
        #[must_use]
        seal(seal: &'m (dyn Seal + Sync)) => seal = Some(seal);
        /// Sets the time that a question may wait for its answer, in milliseconds. Default: no limit.
        #[cfg(feature = "ask")]
        #[must_use]
        ask_timeout(millis: Millis) => ask_timeout = Some(millis);
    }
}

/// The limits to which the memory of a server grows, with an allocator. It grows when the memory is needed.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "made with struct update syntax from its default")]
pub struct MessageLimits {
    /// The most requests in flight. One more is refused as overload. Default: 256.
    pub in_flight: usize,
    /// The most bytes of one incoming message. Default: 16 MiB.
    pub message: usize,
    /// The most bytes of all open questions to clients of the legacy revisions, and of all suspended requests.
    /// Default: 16 MiB.
    pub asks: usize,
    /// The most bytes of open questions of one session: the params of its requests, and the answers. Default: 1 MiB.
    pub ask_share: usize,
    /// The most bytes of all subscriptions. Default: 1 MiB.
    pub subscriptions: usize,
    /// The most bytes of subscriptions of one session, or over HTTP of one listen: URIs, request ids and some ten
    /// bytes each. Default: 64 KiB.
    pub subscription_share: usize,
    /// The most URIs that one session may subscribe to, and that one listen may name. Default: 1,000.
    pub subscription_uris: usize,
    /// The time that a question may wait for its answer, in milliseconds. Default: 600,000.
    pub ask_timeout: Millis,
}

#[cfg(feature = "alloc")]
impl Default for MessageLimits {
    fn default() -> Self {
        MessageLimits {
            in_flight: 256,
            message: 16 << 20,
            asks: 16 << 20,
            ask_share: 1 << 20,
            subscriptions: 1 << 20,
            subscription_share: 64 << 10,
            subscription_uris: 1_000,
            ask_timeout: 600_000,
        }
    }
}

#[cfg(feature = "alloc")]
impl Server<'static> {
    /// Makes a server whose memory grows up to limits.
    #[must_use]
    pub fn growing(limits: MessageLimits) -> Self {
        let server = Server::new(Slots::growing(limits.in_flight))
            .subscriptions(Store::growing(limits.subscriptions))
            .subscription_share(limits.subscription_share, limits.subscription_uris)
            .scratch(Store::growing(limits.message.saturating_mul(2)));
        #[cfg(feature = "ask")]
        let server =
            server.asks(Store::growing(limits.asks)).ask_share(limits.ask_share).ask_timeout(limits.ask_timeout);
        server
    }
}

impl core::fmt::Debug for Server<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server").field("peer", &self.peer).field("in_flight", &self.live).finish_non_exhaustive()
    }
}

impl Server<'_> {
    /// Handles one message, which is read into `request`. Returns `None` if the application has nothing to do.
    ///
    /// # Errors
    /// [`FullError::Now`]: nothing has changed. Send the pending bytes and call again with the same message.
    /// [`FullError::Never`]: the sink is smaller than [`MIN_ROOM`] and the message cannot be answered.
    pub fn handle<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        message: &'a [u8],
        request: &mut IncomingRequest<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<ServerEvent<'a>>, FullError> {
        match request.read(message) {
            Ok(()) => self.handle_read(context, request, out),
            Err(fault) => self.unreadable(fault, message, out),
        }
    }

    /// Does the same as [`handle`](Server::handle) for a message that was [read](IncomingRequest::read) before: so a program can look
    /// at it first, and keep the responses to [requests of its own](Server::send_request) for itself.
    ///
    /// # Errors
    /// As [`handle`](Server::handle).
    pub fn handle_read<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        request: &mut IncomingRequest<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<ServerEvent<'a>>, FullError> {
        match request.shape() {
            MessageShape::Request { .. } => self.request(context, request, out),
            MessageShape::Notification { method } => self.notification(&request.envelope, method, out),
            MessageShape::Response { id } => self.response(&request.envelope, id, out).map(|()| None),
            MessageShape::Invalid { id } => {
                let id = id.map(|id| id.as_bytes()).or(self.no_id());
                respond_failure(out, id, &RpcError::invalid_request(words("Invalid request")).refusing()).map(|()| None)
            }
        }
    }

    /// Answers a message that is too long for the buffer it came into.
    ///
    /// # Errors
    /// [`FullError`] if the sink has no room.
    pub fn refuse_too_long(&mut self, out: &mut dyn Out) -> Result<(), FullError> {
        respond_failure(
            out,
            self.no_id(),
            &RpcError::invalid_request(words("Invalid request: the message is too long")).refusing(),
        )
    }

    /// Returns the identity of the server, to be compared with [`RequestContext::server`](crate::service::RequestContext::server).
    #[must_use]
    pub const fn id(&self) -> ServerId {
        self.tokens.id
    }

    /// Calls `act` with the server as that of another client, for a transport that serves many with one server. `peer` has the
    /// facts about this client, also those that `act` adds; `scope` is the scope of its request ids.
    pub fn with_peer<T>(&mut self, peer: &mut Peer, scope: Scope, act: impl FnOnce(&mut Self) -> T) -> T {
        core::mem::swap(&mut self.peer, peer);
        self.write_news = self.write_news.or(Some(WRITE_LISTS));
        let before = core::mem::replace(&mut self.scope, scope);
        let done = act(self);
        core::mem::swap(&mut self.peer, peer);
        self.scope = before;
        done
    }

    /// Forgets the client of a line, because another one may come over the same line. Requests and subscriptions end
    /// without an answer, and their tokens are stale. A reply that goes out in windows still ends.
    ///
    /// The bytes of that client in the line buffer and in the sink stay. Call
    /// [`LineServer::new_peer`](crate::line_server::LineServer::new_peer) to drop these too; this method is for
    /// programs without a [`LineServer`](crate::line_server::LineServer). Do not call it in the middle of a batch.
    pub fn forget_peer(&mut self) {
        for number in 0..self.slots.len() {
            if let Some(token) =
                self.token_at(number).filter(|token| !self.slot(*token).is_some_and(RequestSlot::is_streaming))
            {
                self.forget(token);
            }
        }
        self.subscriptions.remove(|_| true);
        self.news = false;
        self.peer = Peer::NEW;
    }

    /// Returns the scope of the request ids that come in now.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns a notification to the client of now, without its method.
    pub(crate) const fn sends(&self) -> SentMessage<'static> {
        let head = MessageHead::Notification;
        SentMessage { head, method: "", token: None, server: self.id(), scope: self.scope, now: self.now }
    }

    /// Notes a notification and passes it on.
    fn notification<'a>(
        &mut self,
        envelope: &Envelope<'a>,
        method: Text<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<ServerEvent<'a>>, FullError> {
        if method.eq_str("notifications/cancelled") {
            return self.cancelled(envelope, out);
        }
        // Some clients leave the prefix out.
        if method.eq_str("notifications/initialized") || method.eq_str("initialized") {
            self.peer.mark_initialized();
        }
        Ok(Some(ServerEvent::Notification { method, params: envelope.params }))
    }

    /// Ends a connection or session: forgets its requests, whose tokens are then stale, and its subscriptions.
    pub fn end_scope(&mut self, scope: Scope) {
        while let Some(token) = self.any_of(scope) {
            self.forget(token);
        }
        self.change_subscriptions(RecordChange::DropScope(scope));
    }

    /// Ends the request that a `notifications/cancelled` names.
    fn cancelled<'a>(
        &mut self,
        envelope: &Envelope<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<ServerEvent<'a>>, FullError> {
        let Some(id) = envelope.members.request_id.filter(|id| crate::rpc::is_id(*id)) else { return Ok(None) };
        self.change_subscriptions(RecordChange::DropListen(id.as_bytes()));
        let Some(token) = self.find(id.as_bytes()) else { return Ok(None) };
        let Some(slot) = self.slot_mut(token).filter(|slot| slot.method != Method::Initialize) else { return Ok(None) };
        if let Some(large) = slot.large_mut().filter(|_| WINDOWS) {
            // The line has begun: its JSON is closed early.
            large.cut_short();
            return Ok(Some(ServerEvent::Cancelled { token }));
        }
        let waits = ASKS && slot.waiting().is_some();
        if waits && self.cancel_questions(token, out) == Err(FullError::Now) {
            return Err(FullError::Now);
        }
        // If the cancellation is larger than the sink, the questions stay open at the client; their answers are
        // ignored.
        self.forget(token);
        Ok(Some(ServerEvent::Cancelled { token }))
    }

    #[cold]
    pub(crate) fn unreadable<'a>(
        &mut self,
        fault: ParseError,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Result<Option<ServerEvent<'a>>, FullError> {
        let (code, text) = match Raw::parse(message) {
            Ok(elements) if elements.as_bytes().starts_with(b"[") => match self.refuse_batch(elements) {
                Some(text) => (code::INVALID_REQUEST, text),
                None => return Ok(Some(ServerEvent::Batch { elements })),
            },
            Ok(_) => (code::INVALID_REQUEST, "Invalid request: not an object"),
            Err(_) => fault_code(fault),
        };
        respond_failure(out, self.no_id(), &RpcError::new(code, words(text)).refusing()).map(|()| None)
    }

    /// Returns the `id` of an error for a message whose id could not be read.
    pub(crate) fn no_id(&self) -> Option<&'static [u8]> {
        match self.peer.revision() {
            Some(revision) if !self.over_http && revision.writes_null_id() => Some(b"null"),
            _ => None,
        }
    }
}
