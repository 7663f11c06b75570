//! The client of MCP without I/O: messages and times go in, messages and events come out.
//!
//! 1. Make a [`Client`] from a [`ClientInfo`] and memory, and call [`connect`](Client::connect). A client of all
//!    revisions asks with `server/discover` first. It falls back to `initialize` if the answer is not that of a
//!    server of 2026-07-28
//!    ([versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning),
//!    [lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle)).
//! 2. Give each message of the server to [`receive`](Client::receive). Then call [`advance`](Client::advance)
//!    with the time until it returns no more events: it writes the client's own messages. Call it again at
//!    [`next_deadline`](Client::next_deadline).
//! 3. After [`ClientEvent::Connected`] [send](Client::send) requests. Each gives a [`PendingId`] and ends in exactly one
//!    [`ClientEvent::Done`].
//! 4. Answer the requests of the server ([`ClientEvent::Asked`]) with [`reply`](Client::reply), at once or later, in
//!    the same way in all revisions.
//!
//! ```
//! use mcp_sansio::client::{Client, ClientEvent, PendingRequest, ClientInfo, Request};
//! use mcp_sansio::sink::{LineSink, SliceStorage};
//!
//! let info = ClientInfo::new("demo", "1.0");
//! let mut slots = [PendingRequest::FREE; 4]; // at most 4 requests in flight
//! let mut client = Client::new(&info, &mut slots);
//! let mut bytes = [0; 1024];
//! let mut out = LineSink::new(SliceStorage::new(&mut bytes));
//! client.connect();
//! assert!(client.advance(0, &mut out)?.is_none()); // writes the probe
//! let n = out.pending().len();
//! out.sent(n);
//!
//! let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","capabilities":{"tools":{}},
//!     "supportedVersions":["2026-07-28"]}}"#;
//! let event = client.receive(answer, &mut out)?;
//! assert!(matches!(event, Some(ClientEvent::Connected(_))));
//! let token = client.send(&Request::list_tools(), &mut out).unwrap();
//! assert!(client.is_open(token));
//! # Ok::<(), mcp_sansio::FullError>(())
//! ```

pub mod cache;
mod client_info;
mod connect;
pub mod form;
mod held;
mod layer;
mod line_client;
mod notifications;
mod pending;
mod request;
mod request_meta;
mod responses;
pub mod result;
mod retry;
mod sanitize;
mod server_requests;
mod subscription_state;
mod subscriptions;
mod timeouts;
pub mod views;

pub use client_info::ClientInfo;
pub use connect::InitializeResult;
pub use layer::{Layer, LayerRequest};
pub use line_client::{ClientHandle, ClientHandler, LineClient};
pub use notifications::ChangeNotification;
pub use pending::PendingRequest;
#[cfg(feature = "alloc")]
pub use request::OwnedRequest;
pub use request::{Arguments, Request};
pub use responses::{ErrorObject, RequestError};
pub use sanitize::{printable_line, printable_lines};
pub use server_requests::{InputRequests, ServerRequest, ServerRequestId, ServerRequestKind};
pub use subscriptions::{SubscriptionFilter, Subscriptions};

use crate::error::{self, RpcError, words};
use crate::json::{Raw, Text};
use crate::memory::{Slots, Store, records::Records};
use crate::protocol::{LoggingLevel, Method, ServerCapabilities};
use crate::revision::Revision;
use crate::rpc::{Envelope, MessageShape, write_notification};
use crate::sink::{FullError, MessageHead, Out, RequestInfo, Writer};
use crate::time::Millis;

use connect::Opening;
use pending::{PendingState, until};
use request::write_text_of;
use request_meta::MetaParts;
use subscription_state::SubscriptionState;

/// Identifies a request or a subscription of the client. Each token is used once: a call with the token of a
/// request that has ended fails and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PendingId(pub(crate) u32);

impl PendingId {
    /// Returns the id as a number, such as for a program in C. It is the JSON-RPC id of the request as it was first sent.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Makes the id from the number of [`to_bits`](PendingId::to_bits). Any other number is the id of another request, or of none.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        PendingId(bits)
    }
}

/// The state machine of a client: the connection, requests in flight, subscriptions. The [module](self) has an
/// example.
///
/// - Opening: [`connect`](Client::connect), [`connect_as`](Client::connect_as), [`reconnect`](Client::reconnect).
/// - Input: [`receive`](Client::receive), [`advance`](Client::advance), [`lost`](Client::lost),
///   [`end_of_input`](Client::end_of_input).
/// - Requests: [`send`](Client::send), [`listen`](Client::listen), [`cancel`](Client::cancel).
/// - Answers to the server: [`reply`](Client::reply), [`refuse`](Client::refuse).
pub struct Client<'m> {
    /// The description of the client.
    pub info: &'m ClientInfo<'m>,
    pub(crate) opening: Opening,
    pub(crate) revision: Option<Revision>,
    /// The capabilities of the server.
    pub offered: ServerCapabilities,
    /// The log level of requests under 2026-07-28, set by `set_log_level`.
    pub(crate) level: Option<LoggingLevel>,
    /// The time from which the deadlines of the next requests count. [`advance`](Client::advance) sets it too.
    pub now: Millis,
    /// The number that [`seed`](Client::seed()) has set.
    pub seed: u64,
    pub(crate) timeout: Option<Millis>,
    pub(crate) probe_timeout: Option<Millis>,
    /// The default of [`Request::total_timeout`] for requests with progress.
    pub(crate) longest: Millis,
    /// The most rounds of input requests for one request.
    pub(crate) rounds_max: u8,
    /// The number of requests of the server since the client sent its last request (up to 2025-11-25).
    pub(crate) questions: u16,
    /// The last id on the wire.
    pub(crate) last_id: u32,
    pub(crate) held: Records<'m>,
    pub(crate) pending: Slots<'m, PendingRequest>,
}

/// An event of the client. It borrows from the message, not from the client or the sink.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it lives for a moment on the stack; a box would need an allocator")]
pub enum ClientEvent<'a> {
    /// The connection is open: requests can be sent.
    Connected(InitializeResult<'a>),
    /// The connection could not be opened.
    Unconnected(RequestError<'a>),
    /// The open connection has ended, also while no request was in flight. Comes after the [`Done`](ClientEvent::Done) of each
    /// request that was. Over HTTP there is no such end: the requests alone tell.
    Closed,
    /// A request has ended. Each request has exactly one such event; its token is stale from here on.
    Done {
        /// The request.
        token: PendingId,
        /// The method of the request.
        method: Method,
        /// `true` if the client sent the request again, with `inputResponses` or `requestState`. Such a result
        /// must not be [cached](cache).
        retried: bool,
        /// The `result`, a JSON object, or the reason why there is no result. With
        /// [extensions](ClientInfo::extensions) its `resultType` may be one of those.
        outcome: Result<Raw<'a>, RequestError<'a>>,
    },
    /// The server asks for input:
    /// [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation) by form or URL,
    /// [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling), or
    /// [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots). Answer with
    /// [`reply`](Client::reply) or [`refuse`](Client::refuse).
    Asked(InputRequests<'a>),
    /// The server cancelled its own request with `notifications/cancelled`
    /// ([cancellation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation)).
    /// Its id is stale from here on.
    Withdrawn {
        /// The request of the server.
        question: ServerRequestId,
        /// The `reason` of the notification, for logs.
        reason: Option<Text<'a>>,
    },
    /// The progress of a request: `notifications/progress`
    /// ([progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress)). Numbers are
    /// as the server wrote them.
    Progress {
        /// The request.
        token: PendingId,
        /// `progress`.
        done: Raw<'a>,
        /// `total`.
        total: Option<Raw<'a>>,
        /// `message`.
        message: Option<Text<'a>>,
    },
    /// A log message of the server: `notifications/message`
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
    Log {
        /// The request that caused the message, if it is known (over HTTP).
        token: Option<PendingId>,
        /// `level`; `None` if the protocol does not define it.
        level: Option<LoggingLevel>,
        /// `logger`: the part of the server that wrote the message.
        logger: Option<Text<'a>>,
        /// `data`: a string or any other JSON value.
        data: Raw<'a>,
    },
    /// A subscription is open, for the part of it that the server agreed to. Comes again after each reconnection.
    Listening(Subscriptions),
    /// A list or a resource of the server has changed.
    Changed {
        /// The subscription that the notification belongs to; `None` for notifications without a subscription (up
        /// to 2025-11-25).
        listen: Option<PendingId>,
        /// The list or the resource.
        what: ChangeNotification<'a>,
    },
    /// The user has finished an elicitation in URL mode: `notifications/elicitation/complete`
    /// ([2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)). Comes once
    /// for each elicitation whose `elicitationId` the server sent before.
    ElicitationComplete {
        /// The `elicitationId`.
        id: Text<'a>,
    },
    /// A notification with a method that the protocol does not define.
    Notification {
        /// Its `method`.
        method: Text<'a>,
        /// Its `params`.
        params: Option<Raw<'a>>,
    },
    /// A JSON-RPC batch (2025-03-26 and before,
    /// [batching](https://modelcontextprotocol.io/specification/2025-03-26/basic/index)). Give each item to
    /// [`receive`](Client::receive).
    Batch(Raw<'a>),
    /// The client ignored a message that breaks the protocol, or refused it with an error. No state has changed.
    Ignored(ProtocolViolation),
}

crate::error_enum! {
    /// The reason why a request has neither a result nor an error of the server.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    TransportError {
        /// The time of the request was over. The client has sent `notifications/cancelled`.
        TimedOut => "the request took too long",
        /// The connection ended before the answer.
        Closed => "the connection ended before the answer came",
        /// The connection ended before anything of the request was written.
        Unsent => "the connection ended before the request was sent",
        /// The server has ended the session; the client opens the connection again.
        SessionLost => "the server has forgotten the session",
        /// The transport could not reach the server.
        Unreachable => "the server could not be reached",
        /// The HTTP exchange ended before the answer. The server may have executed the request.
        Broken => "the exchange broke off before the answer came",
        /// The server answered with this HTTP status and no readable message.
        Status(status: u16) => "the server answered with HTTP status {status}",
        /// The server requires authorization, and the application gave no credentials.
        Unauthorized => "the server wants authorization",
        /// The answer is larger than the limit of the application.
        TooLarge => "the answer is larger than the limit",
        /// The answer is not a valid response: no JSON, or no `result`.
        Invalid => "the answer is not a valid one",
        /// The `resultType` of the answer is neither one of the protocol nor of an [extension](ClientInfo::extensions).
        ResultType => "the resultType of the answer is not known",
        /// The server asked for input that the client did not declare in its capabilities.
        Undeclared => "the server asked for something that the client did not declare",
        /// The application refused the input that the server asked for.
        Refused => "what the server asked for was refused",
        /// The server asked for input too many times, see [`Client::max_input_rounds`].
        TooManyRounds => "the server asked back too often",
        /// The server asked for more input at once than the client can hold.
        NoRoom => "the server asked more than there is room for",
        /// Client and server have no revision in common: the connection is not open.
        NoCommonRevision => "there is no revision that both sides speak",
        /// The tool cannot be called over HTTP: its `x-mcp-header` annotations are invalid. The client sent nothing.
        Excluded => "the tool must not be called over HTTP",
    }
}

impl TransportError {
    /// Returns `true` if the server has surely not executed the request: it never got there, or the server has refused the
    /// session before it looked at the request. Such a request can be sent again, also if it changes something.
    #[must_use]
    pub const fn is_unsent(self) -> bool {
        matches!(self, Self::Unsent | Self::Unreachable | Self::SessionLost | Self::NoCommonRevision | Self::Excluded)
    }
}

/// A violation of the protocol by the server, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ProtocolViolation {
    /// The message is not JSON, or not a JSON-RPC message.
    NoMessage,
    /// A response without a request in flight: a second one, a late one, or one with an unknown id.
    UnknownResponse,
    /// An error without an id: the server could not read a message of the client.
    Unread {
        /// The error code.
        code: i32,
    },
    /// Progress for a request that is not in flight or did not ask for progress.
    UnknownProgress,
    /// A change for a subscription that is not open.
    UnknownListen,
    /// The end of an elicitation in URL mode that the server did not ask for, or that has ended already.
    UnknownVisit,
    /// A request that a server must not send. The client refused it.
    BadRequest,
    /// A request for which the client declared no capability. The client refused it.
    Undeclared,
    /// A request that the client has no room to keep. The client refused it.
    NoRoom,
    /// A line longer than the buffer.
    TooLong,
}

crate::error_enum! {
    /// The reason why nothing was sent. No state has changed.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    SendError {
        /// The sink is full now. Send its bytes, then call again.
        FullNow => "the sink is full for now",
        /// The message is larger than the whole sink, or cannot be written as JSON.
        FullNever => "the message is larger than the sink, or is no JSON",
        /// The request has ended, or the request of the server is answered or withdrawn.
        Stale => "the request or question is over",
        /// The connection is not open.
        NotConnected => "the connection is not open",
        /// All slots for requests in flight are taken.
        Busy => "too many requests are in flight",
        /// The negotiated revision does not have this method.
        NotInRevision => "the negotiated revision has no such request",
        /// The server did not declare the capability.
        NotOffered => "the server does not offer that",
        /// The store of [`Client::held`] is too small.
        NoRoom => "the store for what is held is too small",
    }
}

impl From<FullError> for SendError {
    fn from(full: FullError) -> Self {
        match full {
            FullError::Now => SendError::FullNow,
            FullError::Never => SendError::FullNever,
        }
    }
}

/// The event of a message or of a turn, if there is one.
type Turn<'a> = Result<Option<ClientEvent<'a>>, FullError>;

impl<'m> Client<'m> {
    /// Returns a client without a connection. It has at most as many requests and subscriptions in flight as
    /// `slots`.
    ///
    /// Without [`held`](Client::held) it answers no requests of the server and subscribes to no single resources.
    /// Without [`timeout`](Client::timeout) requests have no time limit.
    #[must_use]
    pub fn new(info: &'m ClientInfo<'m>, slots: impl Into<Slots<'m, PendingRequest>>) -> Self {
        Client {
            info,
            opening: Opening::default(),
            revision: None,
            offered: ServerCapabilities::NONE,
            level: None,
            now: 0,
            seed: 0,
            timeout: None,
            probe_timeout: Some(5_000),
            longest: 3_600_000,
            rounds_max: 16,
            questions: 0,
            last_id: 0,
            held: Records::new(Store::none()),
            pending: slots.into(),
        }
    }

    /// Sets the memory for messages that the client may send again: the params of requests that may need input,
    /// the `inputRequests`, the `requestState`, the answers, and the URIs of subscriptions. Default: none.
    #[must_use]
    pub fn held(mut self, store: impl Into<Store<'m>>) -> Self {
        self.held = Records::new(store.into());
        self
    }

    crate::const_setters! {
        /// Sets the time in milliseconds that a request may take unless it sets its own with [`Request::timeout`], and that an
        /// opening may take, with its [probe](Client::probe_timeout). Default: no limit.
        #[must_use]
        timeout(millis: Millis) => timeout = Some(millis);
        /// Sets the total time in milliseconds for requests whose timeout starts again with each progress
        /// notification, unless they set their own with [`Request::total_timeout`]. Default: one hour. `Millis::MAX` means
        /// no limit.
        #[must_use]
        total_timeout(millis: Millis) => longest = millis;
        /// Sets the time in milliseconds to wait for the answer to `server/discover`, at most half of the
        /// [timeout](Client::timeout). After it the client falls back to `initialize`. Default: 5 seconds. `None` means no limit.
        #[must_use]
        probe_timeout(millis: Option<Millis>) => probe_timeout = millis;
        /// Sets a random number, another one for each client: it spreads the pauses before something is opened again, so that
        /// many clients of a server that was gone do not come at once. See [`jittered`](crate::time::jittered). Default: 0, no
        /// spread.
        #[must_use]
        seed(random: u64) => seed = random;
    }

    /// Sets how many times a server may ask for input for one request. Default: 16.
    ///
    /// Up to 2025-11-25 a request of the server does not name the request of the client that it belongs to. There
    /// the limit is 16 times `most` requests of the server since the client's last request. The client refuses
    /// further ones with -32603 while it has requests or subscriptions in flight.
    #[must_use]
    pub const fn max_input_rounds(mut self, most: u8) -> Self {
        self.rounds_max = most;
        self
    }
}

#[cfg(feature = "alloc")]
impl<'m> Client<'m> {
    /// Returns a client whose memory grows up to limits: 64 requests in flight, and 16 MiB that are
    /// [held](Client::held). The timeout of requests is one minute. For other limits use [`new`](Client::new)
    /// with [`Slots::growing`].
    #[must_use]
    pub fn growing(info: &'m ClientInfo<'m>) -> Self {
        Client::new(info, Slots::growing(64)).held(Store::growing(16 << 20)).timeout(60_000)
    }
}

crate::debug_fields!(impl for Client<'_> { revision });

impl<'m> Client<'m> {
    /// Returns the negotiated revision; `None` if the connection is not open.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision.filter(|_| self.opening.is_ready())
    }

    /// Sends a request. Its result comes as [`ClientEvent::Done`] with the token.
    ///
    /// # Errors
    /// - [`SendError::NotConnected`]: the connection is not open.
    /// - [`SendError::NotInRevision`], [`SendError::NotOffered`]: the revision does not have the method, or the
    ///   server does not offer it.
    /// - [`SendError::Busy`]: no slot is free.
    /// - [`SendError::FullNow`], [`SendError::FullNever`]: the sink has no room.
    pub fn send(&mut self, request: &Request<'_>, out: &mut dyn Out) -> Result<PendingId, SendError> {
        match self.info.around.filter(|_| self.opening.is_ready()) {
            Some(around) => around.send(self, *request, out),
            None => self.send_now(request, out),
        }
    }

    /// Sends a request that has passed the layers.
    pub(crate) fn send_now(&mut self, request: &Request<'_>, out: &mut dyn Out) -> Result<PendingId, SendError> {
        let revision = self.revision().ok_or(SendError::NotConnected)?;
        if request.method != Method::Other {
            if !request.method.is_of(revision.era()) {
                return Err(SendError::NotInRevision);
            }
            if request.method.gate(revision).is_some_and(|capability| !self.offered.has(capability)) {
                return Err(SendError::NotOffered);
            }
        }
        let id = self.admit(request)?;
        self.keep_params(id, request, revision);
        let options = &request.options;
        let progress = options.progress.then_some(id);
        let (level, own) = (options.level.or(self.level), request.own_meta);
        let meta = MetaParts { progress, level, own, own_client: options.own_client, trace: request.trace };
        let kept = self.held_of(id, held::PARAMS, 0);
        let text = |member: &str, out: &mut Writer<'_>| match kept {
            Some(_) => write_text_of(kept, member, out),
            None => request.write_text(member, out),
        };
        let head = RequestInfo { text: &text, ..RequestInfo::new(id.into(), request.name) };
        let written = self.write_request(out, head, meta, &mut |params| match kept {
            Some(members) => params.spread(members),
            None => request.write_members(params, revision),
        });
        if let Err(full) = written {
            self.close(id);
            return Err(full.into());
        }
        self.last_id = id;
        self.questions = 0;
        Ok(PendingId(id))
    }

    /// Sends a notification of any method, as it is, for a program that passes notifications on.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] if the connection is not open, [`SendError::FullNow`] or [`SendError::FullNever`] if the sink
    /// has no room.
    pub fn notify(&mut self, method: &str, params: Option<Raw<'_>>, out: &mut dyn Out) -> Result<(), SendError> {
        self.revision().ok_or(SendError::NotConnected)?;
        Ok(self.tell(out, |out| write_notification(out, MessageHead::Notification, method, params))?)
    }

    /// Sets the least severe level of log messages that the server sends
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)). Up to
    /// 2025-11-25 this sends `logging/setLevel` and returns its token. From 2026-07-28 on it sends nothing: all
    /// later requests carry the level in `_meta`.
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    ///
    /// # Errors
    /// As [`send`](Client::send).
    pub fn set_log_level(&mut self, level: LoggingLevel, out: &mut dyn Out) -> Result<Option<PendingId>, SendError> {
        let revision = self.revision().ok_or(SendError::NotConnected)?;
        if revision.is_modern() {
            self.level = Some(level);
            return Ok(None);
        }
        self.send(&Request::set_level(level), out).map(Some)
    }

    /// Takes one message of the server. Returns `None` if the application has nothing to do.
    ///
    /// # Errors
    /// No state has changed. [`FullError::Now`]: free some space, then call again with the same message. [`FullError::Never`]: an
    /// answer to the message is larger than the whole sink.
    pub fn receive<'a>(&mut self, message: &'a [u8], out: &mut dyn Out) -> Result<Option<ClientEvent<'a>>, FullError> {
        self.receive_on(None, message, out)
    }

    /// Takes one message that came in the HTTP exchange of the request with the id `exchange` on the wire. An
    /// error in it answers that request, even without an id. Otherwise as [`receive`](Client::receive).
    ///
    /// # Errors
    /// As [`receive`](Client::receive).
    pub fn receive_on<'a>(
        &mut self,
        exchange: Option<u64>,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Result<Option<ClientEvent<'a>>, FullError> {
        match self.info.around {
            Some(around) => around.receive(self, exchange, message, out),
            None => self.receive_now(exchange, message, out),
        }
    }

    #[inline]
    pub(crate) fn receive_now<'a>(
        &mut self,
        exchange: Option<u64>,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Result<Option<ClientEvent<'a>>, FullError> {
        // It is read in place: to return it by value copies it twice, 150 instructions of a call.
        let mut envelope = Envelope::EMPTY;
        if envelope.read(message).is_err() {
            let batches = self.revision.is_none_or(Revision::has_batches);
            return Ok(Some(match Raw::parse(message) {
                Ok(array) if batches && array.as_bytes().starts_with(b"[") => ClientEvent::Batch(array),
                _ => ClientEvent::Ignored(ProtocolViolation::NoMessage),
            }));
        }
        match envelope.shape() {
            MessageShape::Response { .. } => self.response(exchange, &envelope, out),
            MessageShape::Notification { method } => {
                let around = self.info.around;
                if around.is_some_and(|around| !around.notification(method, envelope.params, self.now)) {
                    return Ok(None);
                }
                Ok(self.notification(exchange, &envelope, method))
            }
            MessageShape::Request { id, method } => self.request(exchange, &envelope, id, method, out),
            MessageShape::Invalid { id } => {
                // A server of 2026-07-28 must not send requests, and over HTTP an answer is not possible.
                if let Some(id) = id.filter(|_| envelope.method.is_some() && !self.is_modern()) {
                    error::respond(out, Some(id.as_bytes()), &RpcError::invalid_request(words("Invalid request")))?;
                }
                Ok(Some(ClientEvent::Ignored(ProtocolViolation::NoMessage)))
            }
        }
    }

    /// Sets the time and writes the client's own messages: the opening, retries with `inputResponses`,
    /// subscriptions, and cancellations of requests whose time is over. Call it after every other method, and at
    /// [`next_deadline`](Client::next_deadline), until it returns no event.
    ///
    /// # Errors
    /// - [`FullError::Now`]: send the bytes of the sink, then call again.
    /// - [`FullError::Never`]: a message is larger than the sink. The client gave its request up; the next call
    ///   returns the event.
    pub fn advance(&mut self, now: Millis, out: &mut dyn Out) -> Result<Option<ClientEvent<'static>>, FullError> {
        self.now = now;
        let mut full = false;
        let mut at = 0;
        while let Some(pending) = self.pending.get(at) {
            at += 1;
            let (token, state, id) = (pending.token, pending.state(), pending.id());
            let due = pending.due(now).is_some_and(|due| until(due, now) <= 0);
            let done = match state {
                PendingState::Ended(why) => Ok(self.done(token, Err(RequestError::Lost(why)))),
                PendingState::Answered { layer } => Ok(self.layer_answered(token, layer)),
                PendingState::Subscription(state) if due && state.is_closing() => {
                    self.close(token);
                    Ok(None)
                }
                PendingState::Subscription(SubscriptionState::Resting) if due => self.reopen(token, out),
                _ if due => id
                    .map_or(Ok(()), |id| self.tell(out, |out| timeouts::write_timed_out(id, out)))
                    .map(|()| self.done(token, Err(RequestError::Lost(TransportError::TimedOut)))),
                // A request that has ended is reported even while nothing can be sent.
                _ if full || !self.opening.is_ready() => Ok(None),
                PendingState::Retry => self.send_again(token, out).map(|()| None),
                PendingState::ListTools { .. } => self.send_tools_list(token, out).map(|()| None),
                PendingState::Subscription(SubscriptionState::Opening | SubscriptionState::Closing) => {
                    self.advance_subscription(token, out)
                }
                _ => Ok(None),
            };
            match done {
                Ok(None) => {}
                Err(FullError::Now) => full = true,
                Ok(event) => return Ok(event),
                Err(FullError::Never) => {
                    self.lose(token, TransportError::TooLarge);
                    return Err(FullError::Never);
                }
            }
        }
        let opened = self.advance_opening(out);
        if matches!(opened, Err(FullError::Never)) {
            self.opening_ended(TransportError::TooLarge);
        }
        if full && matches!(opened, Ok(None)) { Err(FullError::Now) } else { opened }
    }

    /// Ends the request with the JSON-RPC id `wire`, because the transport failed. Subscriptions open again
    /// after some time where the reason allows it.
    pub fn lost(&mut self, wire: u64, why: TransportError) {
        if self.opening.is_on_wire(wire) {
            return self.opening_lost(wire, why);
        }
        let Some(pending) = self.on_wire(wire) else { return };
        let token = pending.token;
        match pending.subscription() {
            Some(state) if state.is_closing() => drop(self.close(token)),
            Some(_) if matches!(why, TransportError::Broken | TransportError::Unreachable) => self.reopen_later(token),
            // A server may end the stream of an open subscription in order, without a response.
            Some(SubscriptionState::Open { .. }) if why == TransportError::Invalid => self.reopen_later(token),
            _ => self.lose(token, why),
        }
    }

    /// Ends the connection. The next [`advance`](Client::advance) returns [`TransportError::Closed`] for each request in
    /// flight.
    pub fn end_of_input(&mut self) {
        self.opening_ended(TransportError::Closed);
        self.lose_all(TransportError::Closed, false);
    }

    /// Ends all requests without a response. Subscriptions end too, unless the next connection opens them again.
    pub(crate) fn lose_all(&mut self, why: TransportError, keep_subscriptions: bool) {
        self.forget_questions();
        let mut at = 0;
        while let Some(pending) = self.pending.get_mut(at) {
            at += 1;
            match pending.subscription() {
                Some(state) if state.is_closing() => {
                    let token = pending.token;
                    self.close(token);
                }
                Some(_) if keep_subscriptions => {}
                _ => pending.lose(why),
            }
        }
        self.reopen_subscriptions();
    }
}
