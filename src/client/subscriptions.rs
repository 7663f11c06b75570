//! Subscriptions: `subscriptions/listen`
//! ([2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions)), or
//! `resources/subscribe` for each resource up to 2025-11-25
//! ([resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions)).

#[cfg(feature = "extensions")]
use super::held::TOPIC;
use super::held::URI;
use super::pending::{PendingRequest, after};
use super::request_meta::MetaParts;
use super::subscription_state::SubscriptionState;
use super::{Client, ClientEvent, PendingId, ProtocolViolation, SendError, TransportError, Turn};
use crate::json::Raw;
use crate::json::object::{Object, array};
use crate::memory::records::{NoRoomError, Record};
use crate::protocol::{LISTS, Method, PROMPTS, RESOURCES, ServerCapability, TOOLS, meta};
use crate::revision::Revision;
use crate::rpc::Envelope;
use crate::sink::{FullError, Out, RequestInfo, Writer};
use crate::time::{Millis, jittered};

/// The changes that a subscription asks for.
///
/// ```
/// use mcp_sansio::client::SubscriptionFilter;
///
/// let filter = SubscriptionFilter::new().tools().uris(&["file:///log.txt"]);
/// assert_eq!(filter.single(), ["file:///log.txt"]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct SubscriptionFilter<'f> {
    lists: u8,
    uris: &'f [&'f str],
    #[cfg(feature = "extensions")]
    topics: &'f [(&'f str, &'f [&'f str])],
}

impl<'f> SubscriptionFilter<'f> {
    /// Returns a filter without any changes.
    pub const fn new() -> Self {
        SubscriptionFilter {
            lists: 0,
            uris: &[],
            #[cfg(feature = "extensions")]
            topics: &[],
        }
    }

    /// Adds `toolsListChanged`: changes of the list of tools.
    pub const fn tools(self) -> Self {
        SubscriptionFilter { lists: self.lists | TOOLS, ..self }
    }

    /// Adds `promptsListChanged`: changes of the list of prompts.
    pub const fn prompts(self) -> Self {
        SubscriptionFilter { lists: self.lists | PROMPTS, ..self }
    }

    /// Adds `resourcesListChanged`: changes of the list of resources.
    pub const fn resources(self) -> Self {
        SubscriptionFilter { lists: self.lists | RESOURCES, ..self }
    }

    crate::const_setters! {
        /// Sets `resourceSubscriptions`: updates of the resources with these URIs.
        uris(uris: &'f [&'f str]) => uris = uris;
        /// Sets members of the filter that belong to extensions (from 2026-07-28 on): each with its keys, an array of strings;
        /// without keys it is `true`. Their notifications are [`ClientEvent::Notification`].
        ///
        /// ```
        /// use mcp_sansio::client::SubscriptionFilter;
        /// let filter = SubscriptionFilter::new().topics(&[("taskIds", &["786512e2"]), ("timers", &[])]);
        /// # let _ = filter;
        /// ```
        #[cfg(feature = "extensions")]
        topics(topics: &'f [(&'f str, &'f [&'f str])]) => topics = topics;
    }

    /// Returns the URIs of the single resources.
    #[must_use]
    pub const fn single(&self) -> &'f [&'f str] {
        self.uris
    }
}

/// The part of a subscription that the server agreed to: `notifications/subscriptions/acknowledged`
/// ([subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions)). Up
/// to 2025-11-25 it follows from the capabilities and the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Subscriptions {
    /// The subscription.
    pub token: PendingId,
    /// The server reports changes of the list of tools.
    pub tools: bool,
    /// The server reports changes of the list of prompts.
    pub prompts: bool,
    /// The server reports changes of the list of resources.
    pub resources: bool,
    /// The number of single resources whose updates the server reports.
    pub uris: usize,
    /// The number of keys of topics of extensions that the server agreed to.
    #[cfg(feature = "extensions")]
    pub topics: usize,
}

impl Subscriptions {
    fn new(token: u32, lists: u8, uris: usize) -> Self {
        let has = |list| lists & list != 0;
        Subscriptions {
            token: PendingId(token),
            tools: has(TOOLS),
            prompts: has(PROMPTS),
            resources: has(RESOURCES),
            uris,
            #[cfg(feature = "extensions")]
            topics: 0,
        }
    }
}

/// The state of the subscription to one resource up to 2025-11-25: the tag of its record.
const WANTED: u8 = 0;
const SUBSCRIBING: u8 = 1;
const SUBSCRIBED: u8 = 2;
/// The server refused it, or it is unsubscribed.
const OVER: u8 = 3;
const UNSUBSCRIBING: u8 = 4;

/// The first and the longest rest in milliseconds before a subscription opens again: it doubles with each time that it brought
/// nothing, up to a minute with the [spread](jittered). And the most failures in a row.
const REST_FIRST: Millis = 1_000;
const REST_MOST: Millis = 48_000;
const REOPEN_MAX: u8 = 12;

impl Client<'_> {
    /// Opens a subscription. [`advance`](super::Client::advance) sends its requests. [`ClientEvent::Listening`] reports
    /// the part that the server agreed to, [`ClientEvent::Changed`] each change. The subscription opens again with the
    /// next connection, until [`cancel`](super::Client::cancel).
    ///
    /// # Errors
    /// [`SendError::NotConnected`] if the connection is not open, [`SendError::Busy`] if no slot is free,
    /// [`SendError::NoRoom`] if the URIs do not fit the store of [`held`](super::Client::held).
    pub fn listen(&mut self, filter: &SubscriptionFilter<'_>) -> Result<PendingId, SendError> {
        self.revision().ok_or(SendError::NotConnected)?;
        let (token, timeout) = (self.next_id(), self.timeout);
        self.free_slot()?.subscribe(token, filter.lists, timeout);
        self.last_id = token;
        if let Some(layer) = self.enter_layers(token, Method::Listen) {
            if let Some(pending) = self.pending_mut(token) {
                pending.answered(layer);
            }
            return Ok(PendingId(token));
        }
        if self.hold_filter(token, filter).is_err() {
            self.close(token);
            if let Some(around) = self.info.around {
                around.dropped(PendingId(token), false, self.now);
            }
            return Err(SendError::NoRoom);
        }
        Ok(PendingId(token))
    }

    /// Keeps the URIs and topics of a filter. A topic's member has at most 255 bytes.
    fn hold_filter(&mut self, token: u32, filter: &SubscriptionFilter<'_>) -> Result<(), NoRoomError> {
        for uri in filter.uris {
            self.held.push(token, URI, WANTED, &[uri.as_bytes()])?;
        }
        #[cfg(feature = "extensions")]
        for &(member, keys) in filter.topics {
            let only: &[&str] = if keys.is_empty() { &[""] } else { keys };
            for key in only {
                let len = [u8::try_from(member.len()).map_err(|_| NoRoomError)?];
                self.held.push(token, TOPIC, 0, &[&len, member.as_bytes(), key.as_bytes()])?;
            }
        }
        Ok(())
    }

    /// Changes the state of a subscription. With `timed` the state has the timeout of requests.
    fn set_subscription(&mut self, cause: &str, token: u32, next: SubscriptionState, timed: bool) {
        let now = self.now;
        if let Some(pending) = self.pending_mut(token) {
            pending.set_subscription(cause, next, after(now, pending.options.timeout.filter(|_| timed)));
        }
    }

    /// Sends the next request that opens or closes a subscription, if the connection is open.
    pub(crate) fn advance_subscription(&mut self, token: u32, out: &mut dyn Out) -> Turn<'static> {
        let state = self.pending(token).and_then(PendingRequest::subscription);
        let (Some(revision), Some(state)) = (self.revision(), state) else { return Ok(None) };
        if revision.is_modern() {
            return self.write_listen(token, out).map(|()| None);
        }
        if self.offered.has(ServerCapability::Subscribe) && self.subscribe_next(token, state.is_closing(), out)? {
            return Ok(None);
        }
        if state.is_closing() {
            self.close(token);
            return Ok(None);
        }
        let offered =
            LISTS.iter().filter(|(_, _, feature, _)| self.offered.has(*feature)).fold(0, |all, list| all | list.0);
        let lists = offered & self.pending(token).map_or(0, |pending| pending.lists);
        let uris = self.held.iter().filter(|r| r.owner == token && r.kind == URI && r.tag == SUBSCRIBED).count();
        self.opened("all subscribed", token, None);
        Ok(Some(ClientEvent::Listening(Subscriptions::new(token, lists, uris))))
    }

    fn opened(&mut self, cause: &str, token: u32, id: Option<u32>) {
        self.set_subscription(cause, token, SubscriptionState::Open { id }, false);
        let now = self.now;
        if let Some(pending) = self.pending_mut(token) {
            pending.progress = now as u32;
            // It did not fail, but it may be closed at once, again and again.
            pending.rounds = pending.rounds.min(REOPEN_MAX - 1);
        }
    }

    /// Sends the next `resources/subscribe` or `resources/unsubscribe`. Returns `false` without one.
    fn subscribe_next(&mut self, token: u32, closing: bool, out: &mut dyn Out) -> Result<bool, FullError> {
        let id = self.next_id();
        let (from, to, method, sent) = match closing {
            true => (SUBSCRIBED, UNSUBSCRIBING, Method::Unsubscribe, SubscriptionState::ClosingSent { id }),
            false => (WANTED, SUBSCRIBING, Method::Subscribe, SubscriptionState::OpeningSent { id }),
        };
        let due =
            |r: &Record<'_>| r.owner == token && r.kind == URI && r.tag == from && !(closing && self.is_shared(r));
        let Some(uri) = self.held.iter().find(due) else { return Ok(false) };
        self.write_request(out, RequestInfo::new(id.into(), method.name()), MetaParts::default(), &mut |params| {
            write_uri(params.key("uri"), uri.data)
        })?;
        let at = uri.at();
        self.held.set_tag(at, to);
        self.last_id = id;
        self.set_subscription("advance", token, sent, true);
        Ok(true)
    }

    /// Returns `true` if another subscription has the same resource: `resources/unsubscribe` would end that one
    /// too.
    fn is_shared(&self, uri: &Record<'_>) -> bool {
        let wanted = |tag| matches!(tag, WANTED | SUBSCRIBING | SUBSCRIBED);
        let same = |other: &Record<'_>| other.owner != uri.owner && other.kind == URI && other.data == uri.data;
        self.held.iter().any(|other| same(&other) && wanted(other.tag) && self.is_open(PendingId(other.owner)))
    }

    /// Takes the response to `resources/subscribe` or `resources/unsubscribe`. The state has a timeout,
    /// because the next request follows.
    pub(crate) fn subscribe_answered(&mut self, token: u32, state: SubscriptionState, granted: bool) {
        self.held.retag(|r| match r.tag {
            _ if r.owner != token || r.kind != URI => None,
            SUBSCRIBING => Some(if granted { SUBSCRIBED } else { OVER }),
            UNSUBSCRIBING => Some(OVER),
            _ => None,
        });
        let next = if state.is_closing() { SubscriptionState::Closing } else { SubscriptionState::Opening };
        self.set_subscription("response", token, next, true);
    }

    /// Sends `subscriptions/listen`.
    fn write_listen(&mut self, token: u32, out: &mut dyn Out) -> Result<(), FullError> {
        let (id, held) = (self.next_id(), &self.held);
        let wanted = self.pending(token).map_or(0, |pending| pending.lists);
        self.write_request(
            out,
            RequestInfo::new(id.into(), Method::Listen.name()),
            MetaParts::default(),
            &mut |params| {
                let mut filter = Object::open(params.key("notifications"));
                for (_, name, ..) in LISTS.iter().filter(|list| wanted & list.0 != 0) {
                    filter.boolean(name, true);
                }
                let mut uris = held.iter().filter(|r| r.owner == token && r.kind == URI).peekable();
                if uris.peek().is_some() {
                    array(filter.key("resourceSubscriptions"), uris, |out, uri| write_uri(out, uri.data));
                }
                #[cfg(feature = "extensions")]
                for (member, keys) in topics(held, token) {
                    match keys.clone().next() {
                        Some(b"") | None => filter.boolean(member, true),
                        Some(_) => array(filter.key(member), keys, write_uri),
                    }
                }
                filter.close()
            },
        )?;
        self.last_id = id;
        self.set_subscription("advance", token, SubscriptionState::OpeningSent { id }, true);
        Ok(())
    }

    /// Takes `notifications/subscriptions/acknowledged`.
    pub(crate) fn acknowledged<'a>(&mut self, envelope: &Envelope<'a>) -> ClientEvent<'a> {
        let modern = self.revision.is_some_and(Revision::is_modern);
        let Some(subscription) = self.subscription_of(envelope).filter(|_| modern) else {
            return ClientEvent::Ignored(ProtocolViolation::UnknownListen);
        };
        let (token, id) = (subscription.token, subscription.id());
        self.opened("acknowledged", token, id);
        let filter = envelope.members.notifications.unwrap_or(const { Raw::constant("{}") });
        let told = |name| filter.get(name).and_then(|value| value.bool()).unwrap_or(false);
        let lists = LISTS.iter().filter(|list| told(list.1)).fold(0, |all, list| all | list.0);
        let uris = filter.get("resourceSubscriptions").map_or(0, |uris| uris.items().count());
        let granted = Subscriptions::new(token, lists, uris);
        #[cfg(feature = "extensions")]
        let granted = Subscriptions {
            topics: topics(&self.held, token)
                .filter_map(|(member, _)| filter.get(member))
                .map(|topic| if topic.bool() == Some(true) { 1 } else { topic.items().count() })
                .sum(),
            ..granted
        };
        ClientEvent::Listening(granted)
    }

    /// Returns the subscription of a notification, by the subscription id in its `_meta`.
    pub(crate) fn subscription_of(&self, envelope: &Envelope<'_>) -> Option<&PendingRequest> {
        let id = envelope.members.meta?.get(meta::SUBSCRIPTION_ID)?.u64()?;
        self.on_wire(id).filter(|pending| pending.subscription().is_some())
    }

    /// Starts to close a subscription with `resources/unsubscribe` (up to 2025-11-25). Its token is stale from
    /// here on. Returns `false` if no requests are needed.
    pub(crate) fn close_subscription(&mut self, token: u32) -> bool {
        let legacy = self.revision().is_some_and(|revision| !revision.is_modern());
        let Some(state) = self.pending(token).and_then(PendingRequest::subscription).filter(|_| legacy) else {
            return false;
        };
        let next = match state {
            SubscriptionState::OpeningSent { id } => SubscriptionState::ClosingSent { id },
            _ => SubscriptionState::Closing,
        };
        self.set_subscription("cancel", token, next, true);
        true
    }

    /// Opens a subscription again after a rest, because its stream ended.
    pub(crate) fn reopen_later(&mut self, token: u32) {
        let now = self.now;
        self.held.retag(|r| (r.owner == token && r.kind == URI && r.tag == SUBSCRIBING).then_some(WANTED));
        let seed = self.seed;
        let Some(pending) = self.pending_mut(token) else { return };
        // Behind a proxy that cuts silent streams, a long one was a good one.
        let was_long = Millis::from((now as u32).wrapping_sub(pending.progress)) >= REST_MOST;
        if was_long && matches!(pending.subscription(), Some(SubscriptionState::Open { .. })) {
            pending.rounds = 0;
        }
        if pending.rounds >= REOPEN_MAX {
            return pending.lose(TransportError::Broken);
        }
        let rest = jittered(REST_FIRST.saturating_mul(1 << pending.rounds).min(REST_MOST), seed, now);
        pending.rounds += 1;
        pending.set_subscription("cut off", SubscriptionState::Resting, after(now, Some(rest)));
    }

    /// Opens a subscription after its rest.
    pub(crate) fn reopen(&mut self, token: u32, out: &mut dyn Out) -> Turn<'static> {
        self.set_subscription("deadline", token, SubscriptionState::Opening, false);
        self.advance_subscription(token, out)
    }

    /// Opens all subscriptions again with the next connection.
    pub(crate) fn reopen_subscriptions(&mut self) {
        self.held.retag(|record| (record.kind == URI).then_some(WANTED));
        for pending in self.pending.iter_mut() {
            pending.set_subscription("new connection", SubscriptionState::Opening, None);
        }
    }
}

/// Writes a URI of the application as a string.
fn write_uri(out: &mut Writer<'_>, uri: &[u8]) {
    out.string(core::str::from_utf8(uri).unwrap_or(""))
}

/// Returns the topics of a subscription: the member of the filter, and its keys.
#[cfg(feature = "extensions")]
fn topics<'r>(
    held: &'r crate::memory::records::Records<'_>,
    token: u32,
) -> impl Iterator<Item = (&'r str, impl Iterator<Item = &'r [u8]> + Clone)> {
    let split = |record: Record<'r>| {
        let (len, rest) = record.data.split_first()?;
        rest.split_at_checked(usize::from(*len))
    };
    let all = held.iter().filter(move |r| r.owner == token && r.kind == TOPIC).filter_map(split);
    let firsts = all.clone().enumerate();
    firsts.filter_map(move |(at, (member, _))| {
        let is_first = !all.clone().take(at).any(|(earlier, _)| earlier == member);
        let keys = all.clone().filter(move |(other, _)| *other == member).map(|(_, key)| key);
        is_first.then_some((core::str::from_utf8(member).unwrap_or(""), keys))
    })
}
