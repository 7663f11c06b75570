//! The server's state machine: a message and a sink in, an event and bytes out.
//!
//! [`Server`] answers what the protocol itself must answer (opening, ping, subscriptions, log levels, wrong messages)
//! and hands everything else out as an [`Event`] that borrows the message. [`Service`](crate::service::Service) sits on
//! top of it and calls handlers; those who would rather dispatch themselves use [`handle`](ServerOf::handle),
//! [`respond`](ServerOf::respond) and [`fail`](ServerOf::fail).
//!
//! All storage is the caller's: the number of requests in flight is the const generic, everything else is lent as
//! [`Store`]s. The caller also tells the time, with [`set_now`](ServerOf::set_now).

mod about;
pub(crate) mod ask;
mod batch;
mod failure;
mod flight;
mod large;
pub(crate) mod notify;
mod opening;
mod request;
mod slot;
mod subscriptions;

pub(crate) use about::write_texts;
pub use about::{About, Caching, Icon, Icons};
pub(crate) use ask::ASKS;
pub use ask::{Bound, Seal, SealError, Unsealed};
pub(crate) use batch::Batch;
pub use batch::BatchOut;
pub use failure::Failure;
pub(crate) use failure::respond as respond_failure;
pub use failure::write_error;
pub(crate) use flight::{OVERLOADED, is_complete};
pub(crate) use large::{Give, Large, Puller, WINDOWS, What, WriteReply};
pub use notify::{Change, Progress, Pull, Told};
pub use opening::{Context, Gate};
pub use request::Request;
pub(crate) use slot::State;
pub use slot::{ID_MAX, Scope, Slot, Token};

use self::subscriptions::{Quota, Subscribing, TELL_ALL, TELL_LISTS, Teller};
use crate::json::{Fault, Raw, Text};
use crate::protocol::{ClientFeatures, Level, Method, code};
use crate::records::Records;
use crate::revision::Revision;
use crate::rpc::{Envelope, Shape, fault_code};
use crate::sink::{Full, Out};
use crate::store::Store;

/// Room in a sink with which no automatic answer can fail, whatever comes in: ids of the largest size, and room for an
/// error that replaces a reply which is larger than the sink.
pub const MIN_ROOM: usize = 256;

/// Milliseconds on the caller's clock; only differences count, and it may wrap around.
pub type Millis = u64;

/// What is known of the peer at the other end of a connection or of a session.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The revision that `initialize` negotiated, if it did.
    pub(crate) revision: Option<Revision>,
    /// It said `notifications/initialized`, or sent an ordinary request.
    pub(crate) initialized: bool,
    pub(crate) client: ClientFeatures,
    /// What `logging/setLevel` asked for.
    pub(crate) level: Level,
    /// List changes that were published and not sent yet.
    pub(crate) changed: u8,
    pub(crate) batch: batch::Batch,
}

impl Peer {
    /// One that has not said anything.
    pub const NEW: Peer = Peer {
        revision: None,
        initialized: false,
        client: ClientFeatures::NONE,
        level: Level::Info,
        changed: 0,
        batch: batch::Batch::NONE,
    };

    /// The revision that `initialize` negotiated; `None` before that, and with clients of 2026-07-28.
    #[must_use]
    pub const fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Whether it has gone on after `initialize`: with `notifications/initialized`, or with a request.
    #[must_use]
    pub const fn is_initialized(&self) -> bool {
        self.initialized
    }

    /// Notes a change of a list, for those who keep peers apart from the server: [`publish`](ServerOf::publish) tells the
    /// present one, and all subscribers.
    pub const fn note(&mut self, change: Change<'_>) {
        if self.revision.is_some() {
            self.changed |= change.list_bit();
        }
    }
}

/// The state machine, over any number of requests in flight; see [`Server`].
///
/// Methods fall into four families: *feed* ([`handle`](ServerOf::handle), [`end_of_input`](ServerOf::end_of_input),
/// [`set_now`](ServerOf::set_now), [`expire`](ServerOf::expire)), *answer* ([`respond`](ServerOf::respond),
/// [`fail`](ServerOf::fail), [`progress`](ServerOf::progress), [`log`](ServerOf::log)), *tell*
/// ([`publish`](ServerOf::publish), [`pull`](ServerOf::pull)) and *inspect* ([`in_flight`](ServerOf::in_flight),
/// [`ready`](ServerOf::ready), [`next_deadline`](ServerOf::next_deadline)).
pub struct ServerOf<'m, F: ?Sized> {
    pub(crate) peer: Peer,
    pub(crate) scope: Scope,
    /// What the transport wants noted on requests that come in now.
    pub(crate) route: u32,
    /// Messages travel in HTTP exchanges, not on one stream.
    pub(crate) over_http: bool,
    pub(crate) now: Millis,
    pub(crate) ask_timeout: Option<Millis>,
    pub(crate) asks: Records<'m>,
    /// Bytes of `asks` that one scope may use.
    pub(crate) ask_share: usize,
    pub(crate) subscriptions: Records<'m>,
    /// What one scope may have of them.
    pub(crate) subscription_share: Quota,
    pub(crate) scratch: Store<'m>,
    pub(crate) seal: Option<&'m (dyn Seal + Sync)>,
    pub(crate) subscribing: Option<&'static Subscribing>,
    pub(crate) teller: Option<Teller>,
    /// What is done when a client opens a connection that is open.
    pub(crate) reopen: Option<fn(&mut Engine<'_>)>,
    /// Some listen or subscription has something to say.
    pub(crate) news: bool,
    /// The id of the next request to a client. It only grows: no id is sent twice.
    pub(crate) next_id: u64,
    /// The most requests in flight with which one that has just come in may stay.
    pub(crate) most_in_flight: u16,
    live: u16,
    pub(crate) slots: F,
}

/// A server with at most `N` requests in flight.
///
/// ```
/// use mcp_sansio::server::{About, Context, Event, Server};
/// use mcp_sansio::sink::{Lines, Slice};
///
/// let about = About::new("demo", "1.0");
/// let mut server = Server::<4>::new();
/// let mut bytes = [0; 512];
/// let mut out = Lines::new(Slice::new(&mut bytes));
/// let event = server.handle(&Context::new(&about), br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, &mut out)?;
/// assert!(event.is_none()); // answered by the engine
/// assert_eq!(out.pending(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
pub type Server<'m, const N: usize> = ServerOf<'m, [Slot; N]>;

/// A [`Server`] of any size: what functions take, so that there is one copy of them.
pub type Engine<'m> = ServerOf<'m, [Slot]>;

/// What a message asks of the application. It borrows the message, never the server and never the sink.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it lives for a moment on the stack; a box would need an allocator")]
pub enum Event<'a> {
    /// Answer with the token, now or later.
    Request {
        /// The ticket for the answer.
        token: Token,
        /// What is asked.
        request: Request<'a>,
    },
    /// The peer tells something; the engine has taken note of what concerns it.
    Notification {
        /// The notification's method.
        method: Text<'a>,
        /// Its params.
        params: Option<Raw<'a>>,
    },
    /// The client does not want the answer any more. The token is stale already.
    Cancelled {
        /// Whose answer is not wanted.
        token: Token,
        /// Why, as the client says: the `reason` of its `notifications/cancelled`, for logs.
        reason: Option<Text<'a>>,
    },
    /// A client opened the connection with `initialize`, and was answered.
    Opened {
        /// The revision that was agreed on.
        revision: Revision,
        /// Who the client says it is.
        client: Option<Raw<'a>>,
    },
    /// The answer is larger than the sink and goes out in windows: call [`pump`](ServerOf::pump) when there is room.
    Streaming {
        /// The ticket for `pump`.
        token: Token,
    },
    /// A batch. Its elements are messages: see [`BatchOut`].
    Batch {
        /// The array.
        elements: Raw<'a>,
    },
}

/// An [`Event`] whose request is somewhere else.
#[derive(Debug)]
pub(crate) enum Taken<'a> {
    Request { token: Token },
    Notification { method: Text<'a>, params: Option<Raw<'a>> },
    Cancelled { token: Token },
    Opened { revision: Revision, client: Option<Raw<'a>> },
    Streaming { token: Token },
    Batch { elements: Raw<'a> },
}

impl<'a> Taken<'a> {
    fn event(self, request: Request<'a>) -> Event<'a> {
        match self {
            Taken::Request { token } => Event::Request { token, request },
            Taken::Notification { method, params } => Event::Notification { method, params },
            Taken::Cancelled { token } => Event::Cancelled { token, reason: request.reason() },
            Taken::Opened { revision, client } => Event::Opened { revision, client },
            Taken::Streaming { token } => Event::Streaming { token },
            Taken::Batch { elements } => Event::Batch { elements },
        }
    }
}

/// Why an answer was not sent. Nothing has changed then, except that the handler of the answer may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SendError {
    /// Send what is pending, then call again.
    FullNow,
    /// Larger than the sink will ever take. The request is still open.
    FullNever,
    /// The request was answered or cancelled.
    Stale,
    /// The request is none of that kind: it has another method than the one that is answered, or it is to be resumed and
    /// its handler has not [suspended](crate::service::Handling::suspend) it. It is still open.
    WrongKind,
    /// The client has not sent `initialize`, and can be sent no requests.
    NotInitialized,
}

impl From<Full> for SendError {
    fn from(full: Full) -> Self {
        match full {
            Full::Now => SendError::FullNow,
            Full::Never => SendError::FullNever,
        }
    }
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SendError::FullNow => "the sink is full for now",
            SendError::FullNever => "the answer is larger than the sink",
            SendError::Stale => "the request was answered or cancelled",
            SendError::WrongKind => "the request is of another kind",
            SendError::NotInitialized => "the client has not sent initialize",
        })
    }
}

impl core::error::Error for SendError {}

impl<'m, const N: usize> Server<'m, N> {
    /// A server that nobody has talked to. Without stores it asks nothing, keeps no subscriptions and decodes no
    /// escaped text; lend it what it shall use.
    #[must_use]
    pub const fn new() -> Self {
        ServerOf {
            peer: Peer::NEW,
            scope: Scope(0),
            route: 0,
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
            teller: None,
            reopen: None,
            news: false,
            next_id: 1,
            most_in_flight: u16::MAX,
            live: 0,
            slots: [Slot::FREE; N],
        }
    }

    /// Memory for questions to clients of the legacy revisions: for each open one its request's params, the handler's
    /// state and the answers. Also for requests that are [suspended](crate::service::Handling::suspend), in all revisions. 512 bytes carry two elicitations of ordinary size.
    #[cfg(feature = "ask")]
    #[must_use]
    pub fn asks(mut self, store: impl Into<Store<'m>>) -> Self {
        self.asks = Records::new(store.into());
        self
    }

    /// Memory for subscriptions: the URIs and request ids of all of them, and a few bytes each.
    #[must_use]
    pub fn subscriptions(mut self, store: impl Into<Store<'m>>) -> Self {
        self.subscriptions = Records::new(store.into());
        self.subscribing = Some(&Subscribing::CODE);
        self.teller = Some(TELL_ALL);
        self
    }

    /// What one [`Scope`] (a session, a connection) may have of the memory for subscriptions: so many bytes, with ids and a few
    /// bytes each, and so many URIs; one listen may not name more of them either. A subscription beyond that is refused as
    /// overload; of a listen, as much is granted as there is room for. Without, one scope may have everything.
    #[must_use]
    pub const fn subscription_share(mut self, bytes: usize, uris: usize) -> Self {
        self.subscription_share = Quota { bytes, uris };
        self
    }

    /// Bytes of the memory for questions that one [`Scope`] (a session) may have. A handler that would ask beyond that is told
    /// that it cannot; an answer beyond that counts as none. Without, one scope may have everything.
    #[cfg(feature = "ask")]
    #[must_use]
    pub const fn ask_share(mut self, bytes: usize) -> Self {
        self.ask_share = bytes;
        self
    }

    /// For wires that do not tell when a client goes, such as a UART: `initialize` on a connection that is open opens it
    /// anew, as if [`forget_peer`](Engine::forget_peer) had been called. Without, it is refused, unless the server is
    /// [`reinitializing`](Server::reinitializing).
    #[must_use]
    pub const fn reopening(mut self) -> Self {
        self.reopen = Some(|engine| engine.forget_peer());
        self
    }

    /// For lines that several clients may share, such as stdio behind a gateway: `initialize` on a connection that is
    /// open is answered again, and its revision and capabilities count from there on. Requests in flight, open questions
    /// and subscriptions stay: they may be another client's. Without, a second `initialize` is refused.
    #[must_use]
    pub const fn reinitializing(mut self) -> Self {
        // It may be refused, and then all goes on as before: the next request counts as `initialized` again.
        self.reopen = Some(|engine| engine.peer.initialized = false);
        self
    }

    /// Memory for the decoded text of one call's arguments; text without escapes needs none.
    #[must_use]
    pub fn scratch(mut self, store: impl Into<Store<'m>>) -> Self {
        self.scratch = store.into();
        self
    }

    /// What protects the state of questions that travels through clients of 2026-07-28.
    #[cfg(feature = "ask")]
    #[must_use]
    pub const fn seal(mut self, seal: &'m (dyn Seal + Sync)) -> Self {
        self.seal = Some(seal);
        self
    }

    /// How long a question may wait for its answer; without, for ever.
    #[cfg(feature = "ask")]
    #[must_use]
    pub const fn ask_timeout(mut self, millis: Millis) -> Self {
        self.ask_timeout = Some(millis);
        self
    }
}

/// How large things may grow where there is an allocator. The defaults are generous; nothing is taken before it is
/// needed.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "made with struct update syntax from its default")]
pub struct Limits {
    /// Bytes of one message that comes in; 16 MiB.
    pub message: usize,
    /// Bytes of open questions to clients of the legacy revisions, and of suspended requests in all, all together; 16 MiB.
    pub asks: usize,
    /// Bytes of open questions of one session: the params of its requests, and the answers; 1 MiB.
    pub ask_share: usize,
    /// Bytes of subscriptions, all together; 1 MiB.
    pub subscriptions: usize,
    /// Bytes of subscriptions of one session, or over HTTP of one listen: URIs, request ids and some ten bytes each;
    /// 64 KiB.
    pub subscription_share: usize,
    /// URIs that one session may subscribe to, and that one listen may name; 1,000.
    pub subscription_uris: usize,
    /// Milliseconds that a question may wait for its answer; ten minutes.
    pub ask_timeout: Millis,
}

#[cfg(feature = "alloc")]
impl Default for Limits {
    fn default() -> Self {
        Limits {
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
impl<const N: usize> Server<'static, N> {
    /// A server whose stores grow up to limits.
    #[must_use]
    pub fn growing(limits: Limits) -> Self {
        let server = Server::new()
            .subscriptions(Store::growing(limits.subscriptions))
            .subscription_share(limits.subscription_share, limits.subscription_uris)
            .scratch(Store::growing(limits.message.saturating_mul(2)));
        #[cfg(feature = "ask")]
        let server =
            server.asks(Store::growing(limits.asks)).ask_share(limits.ask_share).ask_timeout(limits.ask_timeout);
        server
    }
}

impl<'m, const N: usize> core::ops::Deref for Server<'m, N> {
    type Target = Engine<'m>;

    fn deref(&self) -> &Engine<'m> {
        self
    }
}

impl<'m, const N: usize> core::ops::DerefMut for Server<'m, N> {
    fn deref_mut(&mut self) -> &mut Engine<'m> {
        self
    }
}

impl<const N: usize> Default for Server<'_, N> {
    fn default() -> Self {
        Server::new()
    }
}

impl<F: ?Sized> core::fmt::Debug for ServerOf<'_, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server").field("peer", &self.peer).field("in_flight", &self.live).finish_non_exhaustive()
    }
}

impl Engine<'_> {
    /// Takes one message. `Ok(None)`: handled, nothing to do.
    ///
    /// On [`Full::Now`] nothing has changed: send what is pending and call again with the same message. On
    /// [`Full::Never`] the sink is smaller than [`MIN_ROOM`] and the message cannot be answered.
    pub fn handle<'a>(
        &mut self,
        context: &Context<'_>,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Result<Option<Event<'a>>, Full> {
        let mut request = Request::empty();
        let taken = self.take(context, message, &mut request, out)?;
        Ok(taken.map(|taken| taken.event(request)))
    }

    /// As [`handle`](Engine::handle), for those who lend a request on: it is large, and stays where it is.
    pub(crate) fn take<'a>(
        &mut self,
        context: &Context<'_>,
        message: &'a [u8],
        request: &mut Request<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Taken<'a>>, Full> {
        match request.read(message) {
            Ok(()) => self.take_read(context, request, out),
            Err(fault) => self.unreadable(fault, message, out),
        }
    }

    /// As [`take`](Engine::take), for a message that has been read.
    pub(crate) fn take_read<'a>(
        &mut self,
        context: &Context<'_>,
        request: &mut Request<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Taken<'a>>, Full> {
        match request.envelope.shape() {
            Shape::Request { id, method } => {
                (request.id, request.name, request.method) = (id, method, Method::from_name(&method));
                self.request(context, request, out)
            }
            Shape::Notification { method } => self.notification(&request.envelope, method, out),
            Shape::Response { id } => self.response(&request.envelope, id, out).map(|()| None),
            Shape::Invalid { id } => {
                let id = id.map(|id| id.as_bytes()).or(self.no_id());
                respond_failure(out, id, &Failure::invalid_request("Invalid request").refusing()).map(|()| None)
            }
        }
    }

    /// Answers a message that cannot be read at all: a line that is too long for the buffer it came into.
    pub fn refuse_too_long(&mut self, out: &mut dyn Out) -> Result<(), Full> {
        respond_failure(
            out,
            self.no_id(),
            &Failure::invalid_request("Invalid request: the message is too long").refusing(),
        )
    }

    /// What is known of the peer.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Exchanges the peer, for those who serve many over one engine: what is known of the one before comes back in
    /// `peer`. `scope` is where its ids live.
    pub fn swap_peer(&mut self, peer: &mut Peer, scope: Scope) {
        core::mem::swap(&mut self.peer, peer);
        self.teller = self.teller.or(Some(TELL_LISTS));
        self.scope = scope;
    }

    /// The client of a line has gone, and another one may come over the same line: requests, subscriptions and listens are
    /// dropped without a word, and their tokens are stale. A reply that goes out in windows still ends.
    ///
    /// The bytes of that client that are still in the line buffer and in the sink are not touched:
    /// [`Session::new_peer`](crate::session::Session::new_peer) drops these too, and is what to call when the wire tells that
    /// a client has gone. This method is for programs without a [`Session`](crate::session::Session); do not call it in the
    /// middle of a batch.
    pub fn forget_peer(&mut self) {
        for number in 0..self.capacity() {
            let streaming = self.slots.get(number).is_none_or(|slot| slot.state == State::Streaming);
            if let Some(token) = self.token_at(number).filter(|_| !streaming) {
                self.close(token);
            }
        }
        self.subscriptions.remove(|_| true);
        self.news = false;
        self.peer = Peer::NEW;
    }

    /// Where ids live that come in now.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Notes a number of the transport's on requests that come in from here on, for [`route`](ServerOf::route): over
    /// HTTP, which exchange they belong to.
    pub fn set_route(&mut self, route: u32) {
        self.route = route;
    }

    /// The number that was noted on a request.
    #[must_use]
    pub fn route(&self, token: Token) -> Option<u32> {
        self.slot(token).map(|slot| slot.route)
    }

    /// Whether a request with that number is in flight.
    #[must_use]
    pub fn has_route(&self, route: u32) -> bool {
        self.live > 0 && self.slots.iter().any(|slot| slot.is_live() && slot.route == route)
    }

    /// A request with that number whose reply goes out in windows.
    #[must_use]
    pub fn streaming(&self, route: u32) -> Option<Token> {
        if self.live == 0 {
            return None;
        }
        let found =
            self.slots.iter().enumerate().find(|(_, slot)| slot.state == State::Streaming && slot.route == route);
        found.map(|(number, slot)| Token { slot: number as u16, generation: slot.generation })
    }

    /// Whether a handler said that the client may hang up and come back for the answer.
    #[must_use]
    pub fn is_released(&self, route: u32) -> bool {
        self.live > 0 && self.slots.iter().any(|slot| slot.is_live() && slot.route == route && slot.released)
    }

    /// Messages travel in HTTP exchanges: an error whose request could not be read has no id at all, and a listen ends
    /// with its result alone.
    pub fn set_over_http(&mut self) {
        self.over_http = true;
    }

    /// Tells the time, for the deadlines of questions asked from here on.
    pub fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    /// Takes note of a notification and passes it on.
    fn notification<'a>(
        &mut self,
        envelope: &Envelope<'a>,
        method: Text<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Taken<'a>>, Full> {
        if method.is("notifications/cancelled") {
            return self.cancelled(envelope, out);
        }
        // Some clients leave the prefix out.
        if method.is("notifications/initialized") || method.is("initialized") {
            self.peer.initialized = self.peer.revision.is_some();
        }
        Ok(Some(Taken::Notification { method, params: envelope.params }))
    }

    /// The client does not want an answer any more: nothing more is sent for it.
    fn cancelled<'a>(&mut self, envelope: &Envelope<'a>, out: &mut dyn Out) -> Result<Option<Taken<'a>>, Full> {
        let Some(id) = envelope.members.request_id.filter(|id| crate::rpc::is_id(*id)) else { return Ok(None) };
        self.drop_listen(id.as_bytes());
        let Some(token) = self.find(id.as_bytes()) else { return Ok(None) };
        let Some(slot) = self.slot(token) else { return Ok(None) };
        match slot.state {
            _ if slot.method == Method::Initialize => return Ok(None),
            State::Streaming if WINDOWS => {
                // The line is begun: it is cut short by closing its JSON, not abandoned.
                if let Some(slot) = self.slot_mut(token) {
                    slot.large.cut_short();
                }
                return Ok(Some(Taken::Cancelled { token }));
            }
            State::Asking if ASKS => match self.cancel_questions(slot, out) {
                Err(Full::Now) => return Err(Full::Now),
                // Without room for it ever, the questions stay unanswered; their answers are ignored.
                Err(Full::Never) | Ok(()) => {}
            },
            _ => {}
        }
        self.close(token);
        Ok(Some(Taken::Cancelled { token }))
    }

    #[cold]
    fn unreadable<'a>(
        &mut self,
        fault: Fault,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Result<Option<Taken<'a>>, Full> {
        let (code, words) = match Raw::parse(message) {
            Ok(elements) if elements.as_bytes().starts_with(b"[") => match self.refuse_batch(elements) {
                Some(words) => (code::INVALID_REQUEST, words),
                None => return Ok(Some(Taken::Batch { elements })),
            },
            Ok(_) => (code::INVALID_REQUEST, "Invalid request: not an object"),
            Err(_) => fault_code(fault),
        };
        respond_failure(out, self.no_id(), &Failure::new(code, words).refusing()).map(|()| None)
    }

    /// How an error says that it does not know the id.
    pub(crate) fn no_id(&self) -> Option<&'static [u8]> {
        match self.peer.revision {
            Some(revision) if !self.over_http && revision.writes_null_id() => Some(b"null"),
            _ => None,
        }
    }
}
