//! Listening to changes: `subscriptions/listen`, or `resources/subscribe` for each resource; one call for both eras.

use super::flight::{Flight, State, after};
use super::held::URI;
use super::profile::MetaParts;
use super::request::{Options, Request, write_request};
use super::{Engine, Event, Lost, Oddity, SendError, Token};
use crate::json::{Raw, object::Object, write};
use crate::protocol::{Feature, Method};
use crate::records::Record;
use crate::revision::Revision;
use crate::rpc::Envelope;
use crate::sink::{Full, Out, Writer};

/// What to listen to.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Filter<'f> {
    lists: u8,
    uris: &'f [&'f str],
}

impl<'f> Filter<'f> {
    /// Nothing.
    pub const fn new() -> Self {
        Filter { lists: 0, uris: &[] }
    }

    /// The list of tools.
    pub const fn tools(self) -> Self {
        Filter { lists: self.lists | TOOLS, ..self }
    }

    /// The list of prompts.
    pub const fn prompts(self) -> Self {
        Filter { lists: self.lists | PROMPTS, ..self }
    }

    /// The list of resources.
    pub const fn resources(self) -> Self {
        Filter { lists: self.lists | RESOURCES, ..self }
    }

    /// The resources with these URIs.
    pub const fn uris(self, uris: &'f [&'f str]) -> Self {
        Filter { uris, ..self }
    }

    /// The URIs of the single resources.
    #[must_use]
    pub const fn single(&self) -> &'f [&'f str] {
        self.uris
    }
}

const TOOLS: u8 = 1;
const PROMPTS: u8 = 2;
const RESOURCES: u8 = 4;

/// The lists: the bit, the filter's name under 2026-07-28, the capability up to 2025-11-25.
const LISTS: [(u8, &str, Feature); 3] = [
    (TOOLS, "toolsListChanged", Feature::ToolsChanged),
    (PROMPTS, "promptsListChanged", Feature::PromptsChanged),
    (RESOURCES, "resourcesListChanged", Feature::ResourcesChanged),
];

/// What a server agreed to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Listening {
    /// Which listen.
    pub token: Token,
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Changes of so many of the single resources.
    pub uris: usize,
}

impl Listening {
    fn new(token: u32, lists: u8, uris: usize) -> Self {
        let has = |list| lists & list != 0;
        Listening { token: Token(token), tools: has(TOOLS), prompts: has(PROMPTS), resources: has(RESOURCES), uris }
    }
}

/// How far the subscription to a resource is, up to 2025-11-25: the tag of its record.
const WANTED: u8 = 0;
const SUBSCRIBING: u8 = 1;
const SUBSCRIBED: u8 = 2;
/// The server did not agree, or it was taken back.
const OVER: u8 = 3;
const UNSUBSCRIBING: u8 = 4;

/// How long a listen waits before it is opened again, at first and at most; and how often that may fail in a row.
const REST_FIRST: u64 = 500;
const REST_MOST: u64 = 30_000;
const REOPEN_MAX: u8 = 12;

impl Engine<'_> {
    /// Listens to changes until the token is [cancelled](super::ClientOf::cancel): [`Event::Listening`] says with how much
    /// of it, [`Event::Changed`] what has changed. The listen outlives the connection: it is opened again with the next
    /// one. [`advance`](super::ClientOf::advance) sends what it takes.
    ///
    /// # Errors
    /// [`SendError::Busy`] if there is no place for it, [`SendError::NoRoom`] if its URIs do not fit what is held.
    pub fn listen(&mut self, filter: &Filter<'_>) -> Result<Token, SendError> {
        self.revision().ok_or(SendError::NotConnected)?;
        let token = self.admit(&Request::raw("", None))?;
        for uri in filter.uris {
            if self.held.push(token, URI, WANTED, &[uri.as_bytes()]).is_err() {
                self.close(token);
                return Err(SendError::NoRoom);
            }
        }
        if let Some(flight) = self.flight_mut(token) {
            let options = Options { timeout: flight.options.timeout, ..Options::default() };
            let (method, state, lists) = (Method::Listen, State::Opening, filter.lists);
            *flight = Flight { token, method, state, lists, options, ..Flight::FREE };
        }
        Ok(Token(token))
    }

    /// Goes on with a listen that is being opened or closed.
    pub(crate) fn advance_listen(
        &mut self,
        flight: &Flight,
        out: &mut dyn Out,
    ) -> Result<Option<Event<'static>>, Full> {
        let Some(revision) = self.revision().filter(|_| flight.wire == 0) else { return Ok(None) };
        if revision.is_modern() {
            return self.open_listen(flight, revision, out).map(|()| None);
        }
        if self.offered.has(Feature::Subscribe) && self.subscribe_next(flight, revision, out)? {
            return Ok(None);
        }
        if flight.state == State::Closing {
            self.close(flight.token);
            return Ok(None);
        }
        let lists = LISTS.iter().filter(|(_, _, feature)| self.offered.has(*feature));
        let lists = lists.fold(0, |all, list| all | list.0) & flight.lists;
        let uris = self.held.iter().filter(|r| r.owner == flight.token && r.kind == URI && r.tag == SUBSCRIBED).count();
        self.note_open(flight.token);
        Ok(Some(Event::Listening(Listening::new(flight.token, lists, uris))))
    }

    fn note_open(&mut self, token: u32) {
        if let Some(flight) = self.flight_mut(token) {
            flight.state = State::Open;
            flight.deadline = None;
            flight.rounds = 0;
        }
    }

    /// Sends the next request that a listen of the older revisions consists of. Whether there was one.
    fn subscribe_next(&mut self, flight: &Flight, revision: Revision, out: &mut dyn Out) -> Result<bool, Full> {
        let (wire, profile) = (self.next_wire(), self.profile);
        let (from, to, method) = match flight.state {
            State::Closing => (SUBSCRIBED, UNSUBSCRIBING, Method::Unsubscribe),
            _ => (WANTED, SUBSCRIBING, Method::Subscribe),
        };
        let closing = flight.state == State::Closing;
        let mut records = self.held.iter();
        let next = records.find(|record| {
            let due = record.owner == flight.token && record.kind == URI && record.tag == from;
            due && !(closing && self.is_shared(record))
        });
        let Some(uri) = next else { return Ok(false) };
        write_request(out, wire, method.name(), &mut |params| {
            write_uri(params.key("uri"), uri.data)?;
            profile.write_meta(params, revision, MetaParts::default())
        })?;
        let at = uri.at();
        self.held.set_tag(at, to);
        let (now, state) = (self.now, flight.state);
        self.last_wire = wire;
        if let Some(flight) = self.flight_mut(flight.token) {
            flight.wire = wire;
            flight.state = state;
            flight.deadline = after(now, flight.options.timeout);
        }
        Ok(true)
    }

    /// Whether another listen has the same resource: what one of them takes back, the other would not hear of any more.
    fn is_shared(&self, uri: &Record<'_>) -> bool {
        let wanted = |tag| matches!(tag, WANTED | SUBSCRIBING | SUBSCRIBED);
        let lives = |owner| self.flight(owner).is_some_and(|flight| flight.state != State::Closing);
        let same = |other: &Record<'_>| other.owner != uri.owner && other.kind == URI && other.data == uri.data;
        self.held.iter().any(|other| same(&other) && wanted(other.tag) && lives(other.owner))
    }

    /// The answer to one request of a listen of the older revisions.
    pub(crate) fn listen_answered<'a>(&mut self, token: u32, granted: bool) -> Option<Event<'a>> {
        self.held.retag(|r| match r.tag {
            _ if r.owner != token || r.kind != URI => None,
            SUBSCRIBING => Some(if granted { SUBSCRIBED } else { OVER }),
            UNSUBSCRIBING => Some(OVER),
            _ => None,
        });
        if let Some(flight) = self.flight_mut(token) {
            flight.wire = 0;
        }
        None
    }

    /// Sends `subscriptions/listen`.
    fn open_listen(&mut self, flight: &Flight, revision: Revision, out: &mut dyn Out) -> Result<(), Full> {
        let (wire, profile) = (self.next_wire(), self.profile);
        let held = &self.held;
        write_request(out, wire, Method::Listen.name(), &mut |params| {
            let mut filter = Object::open(params.key("notifications"));
            for (_, name, _) in LISTS.iter().filter(|list| flight.lists & list.0 != 0) {
                filter.boolean(name, true)?;
            }
            let mut uris = held.iter().filter(|r| r.owner == flight.token && r.kind == URI).peekable();
            if uris.peek().is_some() {
                let out = filter.key("resourceSubscriptions");
                for (i, uri) in uris.enumerate() {
                    out.put(if i == 0 { b"[" } else { b"," })?;
                    write_uri(out, uri.data)?;
                }
                out.put(b"]")?;
            }
            filter.close()?;
            profile.write_meta(params, revision, MetaParts::default())
        })?;
        self.note_sent(flight.token, wire);
        if let Some(flight) = self.flight_mut(flight.token) {
            flight.state = State::Opening;
        }
        Ok(())
    }

    /// The server says how much of a listen it agrees to.
    pub(crate) fn acknowledged<'a>(&mut self, envelope: &Envelope<'a>) -> Event<'a> {
        let listen = self.listen_of(envelope).filter(|_| self.revision.is_some_and(Revision::is_modern));
        let Some(token) = listen else { return Event::Ignored(Oddity::UnknownListen) };
        self.note_open(token);
        let filter = envelope.members.notifications.unwrap_or(Raw::constant("{}"));
        let told = |name| filter.get(name).and_then(|value| value.bool()).unwrap_or(false);
        let lists = LISTS.iter().filter(|list| told(list.1)).fold(0, |all, list| all | list.0);
        let uris = filter.get("resourceSubscriptions").map_or(0, |uris| uris.items().count());
        Event::Listening(Listening::new(token, lists, uris))
    }

    /// Whether cancelling it takes requests of its own.
    pub(crate) fn closes_slowly(&self, flight: &Flight) -> bool {
        let legacy = self.revision.is_some_and(|revision| !revision.is_modern());
        flight.method == Method::Listen && legacy && self.opening.is_ready() && !matches!(flight.state, State::Ended(_))
    }

    /// Begins to take a listen of the older revisions back. Its token is stale from here on.
    pub(crate) fn close_listen(&mut self, token: Token) {
        let now = self.now;
        if let Some(flight) = self.flight_mut(token.0) {
            flight.state = State::Closing;
            flight.deadline = after(now, flight.options.timeout);
        }
    }

    /// A listen was cut off: it is opened again, after a while.
    pub(crate) fn reopen_later(&mut self, token: u32) {
        let now = self.now;
        self.held.retag(|r| (r.owner == token && r.kind == URI && r.tag == SUBSCRIBING).then_some(WANTED));
        let Some(flight) = self.flight_mut(token) else { return };
        flight.wire = 0;
        if flight.rounds >= REOPEN_MAX {
            return self.lose(token, Lost::Broken);
        }
        let rest = REST_FIRST.saturating_mul(1 << flight.rounds).min(REST_MOST);
        flight.rounds += 1;
        flight.state = State::Resting;
        flight.deadline = Some(now.wrapping_add(rest));
    }

    /// Every resource of a listen has to be subscribed to again, with the next connection.
    pub(crate) fn forget_subscriptions(&mut self) {
        self.held.retag(|record| (record.kind == URI).then_some(WANTED));
    }
}

/// A URI of the application's, as a string.
fn write_uri(out: &mut Writer<'_>, uri: &[u8]) -> Result<(), Full> {
    write::string(out, core::str::from_utf8(uri).unwrap_or(""))
}
