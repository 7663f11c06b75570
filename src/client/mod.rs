//! The client's state machine: it speaks both eras, and never hangs.
//!
//! [`Client`] opens a connection ([`connect`](ClientOf::connect)): it probes with `server/discover` and falls back to
//! `initialize` on whatever is no modern answer. Requests are [sent](ClientOf::send) and give a [`Token`]; each of them
//! ends in exactly one [`Event::Done`]. Messages go in with [`receive`](ClientOf::receive), time with
//! [`advance`](ClientOf::advance), which also writes what the engine itself has to say: call it after everything else
//! and when [`next_deadline`](ClientOf::next_deadline) has come, until it has no more events.
//!
//! What the server asks ([`Event::Asked`]) is answered with [`reply`](ClientOf::reply), at once or later, in the same
//! way in all revisions.
//!
//! ```
//! use mcp_sansio::client::{Client, Event, Profile, Request};
//! use mcp_sansio::sink::{Lines, Slice};
//!
//! let profile = Profile::new("demo", "1.0");
//! let mut client = Client::<4>::new(&profile);
//! let mut bytes = [0; 1024];
//! let mut out = Lines::new(Slice::new(&mut bytes));
//! client.connect();
//! assert!(client.advance(0, &mut out)?.is_none()); // writes the probe
//! let n = out.pending().len();
//! out.sent(n);
//!
//! let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","capabilities":{"tools":{}},
//!     "supportedVersions":["2026-07-28"]}}"#;
//! let event = client.receive(answer, &mut out)?;
//! assert!(matches!(event, Some(Event::Connected(_))));
//! let token = client.send(&Request::list_tools(), &mut out).unwrap();
//! assert!(client.is_open(token));
//! # Ok::<(), mcp_sansio::Full>(())
//! ```

mod answer;
mod asked;
pub mod cache;
mod connect;
mod flight;
pub mod form;
mod held;
mod listen;
mod notice;
#[cfg(all(feature = "std", feature = "serde"))]
pub mod owned;
mod profile;
pub mod reply;
mod request;
mod session;
mod time;
pub mod views;
mod words;

pub use answer::{Failure, RpcError};
pub use asked::{Asked, Question, QuestionId, QuestionKind, Questions};
pub use connect::{Connected, Unconnected};
pub use flight::Flight;
pub use listen::{Filter, Listening};
pub use notice::{Changed, Log, ProgressReport};
pub use profile::Profile;
#[cfg(feature = "alloc")]
pub use request::OwnedRequest;
pub use request::{Arguments, Reference, Request};
pub use session::{Handler, Link, Session};

use crate::json::{Raw, Text};
use crate::protocol::{Features, Level, Method};
use crate::records::Records;
use crate::revision::Revision;
use crate::rpc::{Envelope, Shape};
use crate::server::Millis;
use crate::sink::{Full, Out};
use crate::store::Store;

use connect::Opening;
use flight::State;

/// A request or a listen that was sent. `Copy`, and never that of another one: a stale token is refused and harms
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Token(pub(crate) u32);

/// The state machine, over any number of requests in flight; see [`Client`].
///
/// Methods fall into four families: *open* ([`connect`](ClientOf::connect), [`reconnect`](ClientOf::reconnect)), *feed*
/// ([`receive`](ClientOf::receive), [`lost`](ClientOf::lost), [`end_of_input`](ClientOf::end_of_input),
/// [`advance`](ClientOf::advance)), *ask* ([`send`](ClientOf::send), [`listen`](ClientOf::listen),
/// [`cancel`](ClientOf::cancel)) and *answer* ([`reply`](ClientOf::reply), [`refuse`](ClientOf::refuse)).
pub struct ClientOf<'m, F: ?Sized> {
    pub(crate) profile: &'m Profile<'m>,
    pub(crate) opening: Opening,
    pub(crate) revision: Option<Revision>,
    pub(crate) offered: Features,
    /// The log level that was asked for under 2026-07-28.
    pub(crate) level: Option<Level>,
    pub(crate) now: Millis,
    pub(crate) timeout: Option<Millis>,
    pub(crate) probe_timeout: Option<Millis>,
    /// How long a request with progress may take that does not say it itself.
    pub(crate) longest: Millis,
    /// How often one request may be asked back before it is given up.
    pub(crate) rounds_max: u8,
    /// How many questions the server has asked up to 2025-11-25, since a request was sent last.
    pub(crate) questions: u16,
    pub(crate) last_wire: u32,
    pub(crate) held: Records<'m>,
    /// How many of the places, from the first on, may be taken.
    pub(crate) used: usize,
    pub(crate) flights: F,
}

/// A client with at most `N` requests and listens in flight.
pub type Client<'m, const N: usize> = ClientOf<'m, [Flight; N]>;

/// A [`Client`] of any size: what functions take, so that there is one copy of them.
pub type Engine<'m> = ClientOf<'m, [Flight]>;

/// What has happened. It borrows the message, never the client and never the sink.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it lives for a moment on the stack; a box would need an allocator")]
pub enum Event<'a> {
    /// The connection is open: requests can be sent.
    Connected(Connected<'a>),
    /// The connection could not be opened.
    Unconnected(Unconnected<'a>),
    /// A request has its outcome; the token is stale already. Each request has one.
    Done {
        /// Which request.
        token: Token,
        /// What was asked.
        method: Method,
        /// Whether the request was sent again on the way, with answers to the server's questions or with the state that
        /// the server gave. Such a result is not to be [cached](cache).
        retried: bool,
        /// The result as it stands, a JSON object; or why there is none. With
        /// [extensions](Profile::extensions) its `resultType` may be one of theirs.
        outcome: Result<Raw<'a>, Failure<'a>>,
    },
    /// The server asks: a form for the user, a page to visit, a model's answer, the roots.
    Asked(Asked<'a>),
    /// The server does not want an answer any more. The question is stale already.
    Withdrawn(QuestionId),
    /// How far a request is.
    Progress(ProgressReport<'a>),
    /// The server logs something.
    Log(Log<'a>),
    /// A listen is open, with as much of it as the server agreed to; again after each reconnection.
    Listening(Listening),
    /// Something has changed.
    Changed {
        /// The listen that told it; `None` where changes come unasked (up to 2025-11-25).
        listen: Option<Token>,
        /// What it is.
        what: Changed<'a>,
    },
    /// A visit that was asked for is over, says the server (2025-11-25). Told once for each visit, and only for those whose
    /// `elicitationId` the server named when it asked.
    Visited {
        /// The `elicitationId` that the question had.
        id: Text<'a>,
    },
    /// A notification that the protocol does not know.
    Notification {
        /// Its method.
        method: Text<'a>,
        /// Its params.
        params: Option<Raw<'a>>,
    },
    /// Several messages in one (2025-03-26 and before): [`receive`](ClientOf::receive) each of the items.
    Batch(Raw<'a>),
    /// Something that a right server does not send. It has changed nothing.
    Ignored(Oddity),
}

/// Why a request has no answer, and no error from the server either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Lost {
    /// It took too long. The server was told not to bother any more.
    TimedOut,
    /// The connection ended first.
    Closed,
    /// The server has forgotten the session; the connection is being opened again.
    SessionLost,
    /// The server could not be reached.
    Unreachable,
    /// The exchange broke off before the answer came. The server may have acted on the request, or not.
    Broken,
    /// The server answered with this HTTP status and nothing that could be read.
    Status(u16),
    /// The server wants authorization, and the application had none to give.
    Unauthorized,
    /// The answer is larger than the application allows.
    TooLarge,
    /// The answer is none: no JSON, no result, of no known type.
    Invalid,
    /// The server asked for something that was not declared.
    Undeclared,
    /// The application refused what the server asked for.
    Refused,
    /// The server asked again and again.
    TooManyRounds,
    /// The server asked more at once than there is room for.
    NoRoom,
    /// The tool must not be called over HTTP: the annotations of its parameters (`x-mcp-header`) cannot be followed. Nothing
    /// was sent.
    Excluded,
}

impl core::fmt::Display for Lost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Lost::TimedOut => "the request took too long",
            Lost::Closed => "the connection ended before the answer came",
            Lost::SessionLost => "the server has forgotten the session",
            Lost::Unreachable => "the server could not be reached",
            Lost::Broken => "the exchange broke off before the answer came",
            Lost::Status(status) => return write!(f, "the server answered with HTTP status {status}"),
            Lost::Unauthorized => "the server wants authorization",
            Lost::TooLarge => "the answer is larger than the limit",
            Lost::Invalid => "the answer is not a valid one",
            Lost::Undeclared => "the server asked for something that the client did not declare",
            Lost::Refused => "what the server asked for was refused",
            Lost::TooManyRounds => "the server asked back too often",
            Lost::NoRoom => "the server asked more than there is room for",
            Lost::Excluded => "the tool must not be called over HTTP",
        })
    }
}

impl core::error::Error for Lost {}

/// What came that a right server does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Oddity {
    /// No JSON, or no JSON-RPC message.
    NoMessage,
    /// A response to nothing that is in flight: it came twice, or late, or for an unknown id.
    UnknownResponse,
    /// An error that answers a message which the server could not read.
    Unread {
        /// Its code.
        code: i32,
    },
    /// Progress of nothing that is in flight or wanted it.
    UnknownProgress,
    /// News for a listen that is not open.
    UnknownListen,
    /// The end of a visit that was not asked for, or has ended already.
    UnknownVisit,
    /// A request that no server may send; it was refused.
    BadRequest,
    /// A question for which nothing was declared; it was refused.
    Undeclared,
    /// A question for which there is no room; it was refused.
    NoRoom,
    /// A line longer than the buffer.
    TooLong,
}

/// Why something was not sent. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SendError {
    /// Send what is pending, then call again.
    FullNow,
    /// Larger than the sink will ever take, or not to be written as JSON.
    FullNever,
    /// The request has had its outcome, or the question its answer.
    Stale,
    /// The connection is not open.
    NotConnected,
    /// All places for requests in flight are taken.
    Busy,
    /// The negotiated revision has no such request.
    NotInRevision,
    /// The server did not declare the capability.
    NotOffered,
    /// The store for what is held is too small.
    NoRoom,
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
            SendError::FullNever => "the message is larger than the sink, or is no JSON",
            SendError::Stale => "the request or question is over",
            SendError::NotConnected => "the connection is not open",
            SendError::Busy => "too many requests are in flight",
            SendError::NotInRevision => "the negotiated revision has no such request",
            SendError::NotOffered => "the server does not offer that",
            SendError::NoRoom => "the store for what is held is too small",
        })
    }
}

impl core::error::Error for SendError {}

/// How many times one request may be asked back, unless [`rounds`](Client::rounds) says otherwise.
const ROUNDS: u8 = 16;

/// How many milliseconds a request may take with progress, unless [`at_most`](Client::at_most) says otherwise.
const LONGEST: Millis = 3_600_000;

impl<'m, const N: usize> Client<'m, N> {
    /// A client that is not connected. Without a store it answers no questions and listens to no single resources;
    /// without a timeout requests may take for ever.
    #[must_use]
    pub const fn new(profile: &'m Profile<'m>) -> Self {
        ClientOf {
            profile,
            opening: Opening::NEW,
            revision: None,
            offered: Features::NONE,
            level: None,
            now: 0,
            timeout: None,
            probe_timeout: Some(5_000),
            longest: LONGEST,
            rounds_max: ROUNDS,
            questions: 0,
            last_wire: 0,
            held: Records::new(Store::none()),
            used: 0,
            flights: [Flight::FREE; N],
        }
    }

    /// Memory for what may be sent again: the params of calls that the server may ask back for, its questions' keys
    /// and state and the answers, the URIs of listens.
    #[must_use]
    pub fn held(mut self, store: impl Into<Store<'m>>) -> Self {
        self.held = Records::new(store.into());
        self
    }

    /// How long a request may take, if it does not say otherwise.
    #[must_use]
    pub const fn timeout(mut self, millis: Millis) -> Self {
        self.timeout = Some(millis);
        self
    }

    /// How many milliseconds a request may take in all whose time each progress report begins again, if it does not say
    /// otherwise with [`Request::at_most`]; an hour, if not said otherwise. `Millis::MAX` sets no limit.
    #[must_use]
    pub const fn at_most(mut self, millis: Millis) -> Self {
        self.longest = millis;
        self
    }

    /// How long the probe may take before the server counts as one of the older revisions; 5 seconds, if not said
    /// otherwise. `None` waits for ever.
    #[must_use]
    pub const fn probe_timeout(mut self, millis: Option<Millis>) -> Self {
        self.probe_timeout = millis;
        self
    }

    /// How many times a server may ask back for one request; 16, if not said otherwise. Up to 2025-11-25, where nothing
    /// says which request a question is for, it is 16 times as many questions from one request that is sent to the next;
    /// further ones are refused with -32603 as long as requests or listens are in flight.
    #[must_use]
    pub const fn rounds(mut self, most: u8) -> Self {
        self.rounds_max = most;
        self
    }
}

#[cfg(feature = "alloc")]
impl<'m, const N: usize> Client<'m, N> {
    /// A client whose store grows up to a limit; requests may take a minute.
    #[must_use]
    pub fn growing(profile: &'m Profile<'m>) -> Self {
        Client::new(profile).held(Store::growing(HELD)).timeout(60_000)
    }
}

/// How large the store of a [`growing`](Client::growing) client may become.
#[cfg(feature = "alloc")]
const HELD: usize = 16 << 20;

impl<'m, const N: usize> core::ops::Deref for Client<'m, N> {
    type Target = Engine<'m>;

    fn deref(&self) -> &Engine<'m> {
        self
    }
}

impl<'m, const N: usize> core::ops::DerefMut for Client<'m, N> {
    fn deref_mut(&mut self) -> &mut Engine<'m> {
        self
    }
}

impl<F: ?Sized> core::fmt::Debug for ClientOf<'_, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl<'m> Engine<'m> {
    /// What the client says of itself.
    #[must_use]
    pub const fn profile(&self) -> &'m Profile<'m> {
        self.profile
    }

    /// The revision that is spoken, once connected.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision.filter(|_| self.opening.is_ready())
    }

    /// What the server offers, once connected.
    #[must_use]
    pub const fn offered(&self) -> Features {
        self.offered
    }

    /// Tells the time, for the deadlines of what is sent from here on. [`advance`](ClientOf::advance) does it too.
    pub const fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    /// Sends a request. Its outcome comes as [`Event::Done`] with the token.
    ///
    /// # Errors
    /// What [`SendError`] tells; nothing has been sent then.
    pub fn send(&mut self, request: &Request<'_>, out: &mut dyn Out) -> Result<Token, SendError> {
        let revision = self.revision().ok_or(SendError::NotConnected)?;
        self.may_send(request, revision)?;
        let last_wire = self.last_wire;
        let token = self.admit(request)?;
        let written = match self.hold(token, request, revision) {
            Ok(()) => request.write(out, token, self.profile, revision, self.level),
            Err(full) => Err(full),
        };
        if let Err(full) = written {
            self.close(token);
            self.last_wire = last_wire;
            return Err(full.into());
        }
        self.questions = 0;
        Ok(Token(token))
    }

    /// Whether the revision has the request, and the server offers what it needs.
    fn may_send(&self, request: &Request<'_>, revision: Revision) -> Result<(), SendError> {
        if request.method == Method::Other {
            return Ok(());
        }
        if !request.method.is_of(revision.era()) {
            return Err(SendError::NotInRevision);
        }
        match request.method.gate(revision) {
            Some(feature) if !self.offered.has(feature) => Err(SendError::NotOffered),
            _ => Ok(()),
        }
    }

    /// Gives a request up: no outcome is told any more. The server is told, and what it sends all the same is ignored.
    ///
    /// # Errors
    /// [`SendError::Stale`] if it has had its outcome; [`SendError::FullNow`] if there is no room to tell the server.
    pub fn cancel(&mut self, token: Token, reason: Option<&str>, out: &mut dyn Out) -> Result<(), SendError> {
        let flight = self.flight(token.0).filter(|flight| flight.state != State::Closing).ok_or(SendError::Stale)?;
        if self.closes_slowly(flight) {
            self.close_listen(token);
            return Ok(());
        }
        if flight.wire != 0 {
            time::write_cancelled(flight.wire, reason, out)?;
        }
        self.close(token.0);
        Ok(())
    }

    /// Which log messages the server shall send from here on: with a request that [`Some`] token names (up to
    /// 2025-11-25), or noted for all requests that follow.
    ///
    /// # Errors
    /// As [`send`](ClientOf::send).
    pub fn set_log_level(&mut self, level: Level, out: &mut dyn Out) -> Result<Option<Token>, SendError> {
        let revision = self.revision().ok_or(SendError::NotConnected)?;
        if revision.is_modern() {
            self.level = Some(level);
            return Ok(None);
        }
        self.send(&Request::set_level(level), out).map(Some)
    }

    /// Takes one message. `Ok(None)`: handled, nothing to do.
    ///
    /// # Errors
    /// [`Full::Now`]: nothing has changed; make room and call again with the same message.
    pub fn receive<'a>(&mut self, message: &'a [u8], out: &mut dyn Out) -> Result<Option<Event<'a>>, Full> {
        self.receive_on(None, message, out)
    }

    /// As [`receive`](ClientOf::receive), for a message that came in the HTTP exchange of the request with that id on
    /// the wire: an error there answers it, even if it has no id or another one.
    ///
    /// # Errors
    /// As [`receive`](ClientOf::receive).
    pub fn receive_on<'a>(
        &mut self,
        exchange: Option<u64>,
        message: &'a [u8],
        out: &mut dyn Out,
    ) -> Result<Option<Event<'a>>, Full> {
        let Ok(mut envelope) = Envelope::parse(message) else { return Ok(Some(self.no_object(message))) };
        envelope.leave_out_null();
        match envelope.shape() {
            Shape::Response { .. } => self.response(exchange, &envelope, out),
            Shape::Notification { method } => Ok(self.notification(exchange, &envelope, method)),
            Shape::Request { id, method } => self.request(exchange, &envelope, id, method, out),
            Shape::Invalid { .. } => Ok(Some(Event::Ignored(Oddity::NoMessage))),
        }
    }

    /// An array of messages, or something that is no message at all.
    fn no_object<'a>(&self, message: &'a [u8]) -> Event<'a> {
        let batches = self.revision.is_none_or(Revision::has_batches);
        match Raw::parse(message) {
            Ok(array) if batches && array.as_bytes().starts_with(b"[") => Event::Batch(array),
            _ => Event::Ignored(Oddity::NoMessage),
        }
    }

    /// The transport could not bring the request with this id on the wire to its end.
    pub fn lost(&mut self, wire: u64, why: Lost) {
        if self.opening.is_on_wire(wire) {
            return self.opening_lost(wire, why);
        }
        let Some(flight) = self.on_wire(wire) else { return };
        let (token, state, listens) = (flight.token, flight.state, flight.method == Method::Listen);
        if state == State::Closing {
            return self.close(token);
        }
        // The stream of one that was open may end in order, without an answer.
        let ended = state == State::Open && why == Lost::Invalid;
        if listens && (ended || matches!(why, Lost::Broken | Lost::Unreachable)) {
            return self.reopen_later(token);
        }
        self.lose(token, why);
    }

    /// Nothing more will come, and nothing can be sent. [`advance`](ClientOf::advance) tells what was lost.
    pub fn end_of_input(&mut self) {
        self.opening_closed();
        self.lose_all(Lost::Closed, false);
    }

    /// The transport cannot go on with the request with this id on the wire before somebody has given credentials: its
    /// time stands still until [`resume`](ClientOf::resume), but for [`at_most`](Request::at_most).
    pub fn pause(&mut self, wire: u64) {
        if self.opening.is_on_wire(wire) {
            return self.opening_time(wire, false);
        }
        let token = self.on_wire(wire).map(|flight| flight.token);
        if let Some(flight) = token.and_then(|token| self.flight_mut(token)) {
            flight.deadline = None;
        }
    }

    /// It goes on: its time begins again. [Tell](ClientOf::set_now) it first.
    pub fn resume(&mut self, wire: u64) {
        if self.opening.is_on_wire(wire) {
            return self.opening_time(wire, true);
        }
        let (now, token) = (self.now, self.on_wire(wire).map(|flight| flight.token));
        if let Some(flight) = token.and_then(|token| self.flight_mut(token)) {
            flight.deadline = flight::after(now, flight.options.timeout);
        }
    }

    /// All requests end without an answer; listens too, or they are opened again with the next connection.
    pub(crate) fn lose_all(&mut self, why: Lost, keep_listens: bool) {
        self.forget_questions();
        self.forget_subscriptions();
        for flight in self.taken_mut().iter_mut().filter(|flight| flight.is_live()) {
            match flight.state {
                State::Ended(_) => {}
                // It was given up by the application.
                State::Closing => *flight = Flight::FREE,
                State::Opening | State::Open | State::Resting if keep_listens => {
                    (flight.state, flight.wire, flight.deadline) = (State::Opening, 0, None);
                }
                _ => (flight.state, flight.wire) = (State::Ended(why), 0),
            }
        }
    }
}
