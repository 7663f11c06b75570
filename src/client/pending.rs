//! The table of requests and subscriptions in flight, their states, and all transitions between the states.

use super::request::{Options, Request};
use super::subscription_state::SubscriptionState;
use super::{Client, PendingId, SendError, TransportError};
use crate::machine;
use crate::protocol::Method;
use crate::time::Millis;

/// The state of a request in flight. Ids are JSON-RPC ids and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingState {
    /// The slot is free.
    Free,
    /// The request is on the wire with this id.
    Sent { id: u32 },
    /// The server asks for inputs. `missing` has a bit for each one without an answer of the application.
    InputRequired { round: u32, missing: u16 },
    /// The client sends the request again next.
    Retry,
    /// The client sends `tools/list` next: its transport needs the parameters that it copies to headers.
    ListTools { pages: u8 },
    /// `tools/list` is on the wire with this id.
    ListingTools { id: u32, pages: u8 },
    /// A subscription, see [`SubscriptionState`].
    Subscription(SubscriptionState),
    /// The layer with this number has ended the way of the request. The client reports its answer next.
    Answered { layer: u8 },
    /// The request ended without a response. The client reports [`ClientEvent::Done`](super::ClientEvent::Done) next.
    Ended(TransportError),
}

/// All transitions of a [`PendingState`]: from, to, cause. The diagram in `docs/internals/state-machines.md` shows the same.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Free", "Sent", "send"),
    ("Free", "Subscription", "listen"),
    ("Sent", "Answered", "a layer answers"),
    ("Subscription", "Answered", "a layer answers"),
    ("Sent", "InputRequired", "input required"),
    ("InputRequired", "InputRequired", "answer"),
    ("InputRequired", "Retry", "last answer"),
    ("Sent", "Retry", "only a requestState"),
    ("Retry", "Sent", "advance"),
    ("Sent", "ListTools", "header mismatch"),
    ("ListTools", "ListingTools", "advance"),
    ("ListingTools", "ListTools", "page, more to come"),
    ("ListingTools", "Retry", "last page"),
    ("Sent", "Ended", "lost"),
    ("InputRequired", "Ended", "lost"),
    ("Retry", "Ended", "lost"),
    ("ListTools", "Ended", "lost"),
    ("ListingTools", "Ended", "lost"),
    ("Subscription", "Ended", "lost"),
    ("Answered", "Ended", "lost"),
    ("Sent", "Free", "close"),
    ("InputRequired", "Free", "close"),
    ("Retry", "Free", "close"),
    ("ListTools", "Free", "close"),
    ("ListingTools", "Free", "close"),
    ("Subscription", "Free", "close"),
    ("Answered", "Free", "close"),
    ("Ended", "Free", "close"),
];

machine!(PendingState, TRANSITIONS: Free Sent InputRequired Retry ListTools ListingTools Subscription Answered Ended);

/// A slot for a request or a subscription in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    pub(crate) token: u32,
    /// Only this file changes it, see [`TRANSITIONS`].
    state: PendingState,
    pub(crate) method: Method,
    pub(crate) options: Options,
    /// The client has kept the params, and can send the request again.
    pub(crate) retryable: bool,
    /// The client has sent `tools/list` for this call. It does so once.
    tools_listed: bool,
    /// The number of rounds of input requests; for a subscription, the number of times in a row that it brought nothing.
    pub(crate) rounds: u8,
    /// The lists of a subscription, see `subscriptions::LISTS`.
    pub(crate) lists: u8,
    /// A checksum of the last `progress` value; for a subscription, the low half of the time when it was opened.
    pub(super) progress: u32,
    /// The time when the present state ends; for a subscription that rests, when it opens again.
    deadline: Option<Millis>,
    /// The time when the request ends, also with progress.
    end: Option<Millis>,
}

impl PendingRequest {
    /// A free slot.
    pub const FREE: PendingRequest = PendingRequest {
        token: 0,
        state: PendingState::Free,
        method: Method::Other,
        options: Options {
            progress: false,
            level: None,
            timeout: None,
            longest: None,
            no_timeout: false,
            any_result: false,
            own_client: false,
        },
        retryable: false,
        tools_listed: false,
        rounds: 0,
        lists: 0,
        progress: 0,
        deadline: None,
        end: None,
    };

    /// Puts a request into this slot. Its first id on the wire is also its token.
    fn open(&mut self, id: u32, method: Method, options: Options, now: Millis, longest: Millis) {
        *self = PendingRequest { token: id, method, options, ..PendingRequest::FREE };
        self.state.enter("send", PendingState::Sent { id });
        self.set_timeout(now, true);
        self.end = after(now, options.end(longest));
    }

    /// Puts a subscription into this slot.
    pub(crate) fn subscribe(&mut self, token: u32, lists: u8, timeout: Option<Millis>) {
        let options = Options { timeout, ..Options::default() };
        *self = PendingRequest { token, method: Method::Listen, options, lists, ..PendingRequest::FREE };
        self.state.enter("listen", PendingState::Subscription(SubscriptionState::Opening));
    }

    /// Notes that a layer has ended its way.
    pub(crate) fn answered(&mut self, layer: u8) {
        self.state.enter("a layer answers", PendingState::Answered { layer });
    }

    /// Waits for `count` inputs of this round. With none, the client sends the request again.
    pub(crate) fn input_required(&mut self, round: u32, count: u8) {
        let missing = bit(count).wrapping_sub(1);
        match missing {
            0 => self.state.enter("only a requestState", PendingState::Retry),
            _ => self.state.enter("input required", PendingState::InputRequired { round, missing }),
        }
        self.rounds += 1;
        // The timeout starts again when the request is sent again.
        self.deadline = None;
        if self.options.longest.is_none() {
            self.end = None;
        }
    }

    /// Returns `true` if the input with this index of this round has no answer yet.
    pub(crate) fn awaits_input(&self, wanted: u32, index: u8) -> bool {
        matches!(self.state, PendingState::InputRequired { round, missing } if round == wanted && missing & bit(index) != 0)
    }

    /// Notes the answer to the input with this index.
    pub(crate) fn input_given(&mut self, index: u8) {
        if let PendingState::InputRequired { round, missing } = self.state {
            let missing = missing & !bit(index);
            match missing {
                0 => self.state.enter("last answer", PendingState::Retry),
                _ => self.state.enter("answer", PendingState::InputRequired { round, missing }),
            }
        }
    }

    /// Sends `tools/list` next, because the server found the headers with parameters wrong. Returns `false` if
    /// that was done before, or if the request cannot be sent again.
    pub(crate) fn list_tools(&mut self) -> bool {
        if !self.retryable || self.tools_listed {
            return false;
        }
        self.state.enter("header mismatch", PendingState::ListTools { pages: 0 });
        self.tools_listed = true;
        true
    }

    /// Takes a page of tools, or an error. The next page follows if there is `more`, `pages_max` at most.
    pub(crate) fn tools_page(&mut self, more: bool, pages_max: u8) {
        if let PendingState::ListingTools { pages, .. } = self.state {
            let more = more && pages < pages_max;
            match more {
                true => self.state.enter("page, more to come", PendingState::ListTools { pages: pages + 1 }),
                false => self.state.enter("last page", PendingState::Retry),
            }
        }
    }

    /// Notes that the message is on the wire with this id, and starts its time limit.
    pub(crate) fn sent(&mut self, id: u32, now: Millis, longest: Millis) {
        match self.state {
            PendingState::Retry => self.state.enter("advance", PendingState::Sent { id }),
            PendingState::ListTools { pages } => self.state.enter("advance", PendingState::ListingTools { id, pages }),
            _ => return,
        }
        self.set_timeout(now, true);
        self.end = self.end.or(after(now, self.options.end(longest)));
    }

    /// Changes a subscription to `next`, until `deadline`. For `subscriptions.rs` only.
    pub(crate) fn set_subscription(&mut self, cause: &str, next: SubscriptionState, deadline: Option<Millis>) {
        if let PendingState::Subscription(state) = &mut self.state {
            state.enter(cause, next);
            self.deadline = deadline;
        }
    }

    /// Ends the request without a response. [`advance`](super::Client::advance) reports it.
    pub(crate) fn lose(&mut self, why: TransportError) {
        if self.is_live() && !matches!(self.state, PendingState::Ended(_)) {
            self.state.enter("lost", PendingState::Ended(why));
        }
    }

    pub(crate) const fn state(&self) -> PendingState {
        self.state
    }

    pub(crate) fn subscription(&self) -> Option<SubscriptionState> {
        match self.state {
            PendingState::Subscription(state) => Some(state),
            _ => None,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.state != PendingState::Free
    }

    /// Returns `true` if the application has not had the result yet.
    fn is_open(&self) -> bool {
        self.is_live() && !self.subscription().is_some_and(SubscriptionState::is_closing)
    }

    /// Returns the id on the wire.
    pub(crate) fn id(&self) -> Option<u32> {
        match self.state {
            PendingState::Sent { id } | PendingState::ListingTools { id, .. } => Some(id),
            PendingState::Subscription(state) => state.id(),
            _ => None,
        }
    }

    /// Returns `true` if this slot uses an id: as its token, on the wire, or for a round of inputs.
    fn uses(&self, id: u32) -> bool {
        let round = matches!(self.state, PendingState::InputRequired { round, .. } if round == id);
        self.is_live() && (round || self.token == id || self.id() == Some(id))
    }

    /// Starts the timeout of the state again, or stops it.
    pub(crate) fn set_timeout(&mut self, now: Millis, runs: bool) {
        self.deadline = after(now, self.options.timeout.filter(|_| runs));
    }

    /// Takes a `progress` value. It must increase: the timeout starts again only if the value differs from the
    /// last one.
    pub(crate) fn progressed(&mut self, value: &[u8], now: Millis) {
        let value = value.iter().fold(1, |sum: u32, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        if self.progress != value {
            self.progress = value;
            self.set_timeout(now, true);
        }
    }

    /// Returns the time when the state ends at the latest.
    pub(crate) fn due(&self, now: Millis) -> Option<Millis> {
        match self.state {
            PendingState::Free
            | PendingState::Ended(_)
            | PendingState::Subscription(SubscriptionState::Open { .. }) => None,
            // The user may take any time.
            PendingState::InputRequired { .. } => self.end,
            _ => self.deadline.into_iter().chain(self.end).min_by_key(|&time| until(time, now)),
        }
    }
}

/// Returns the bit of the input with this index; 0 for an index of 16 or more.
fn bit(index: u8) -> u16 {
    1u16.checked_shl(index.into()).unwrap_or(0)
}

/// Returns the milliseconds until `time`; 0 or less after it. The clock may wrap around.
pub(crate) fn until(time: Millis, now: Millis) -> i64 {
    time.wrapping_sub(now) as i64
}

/// Returns the time in `millis`, at most half of the clock's range ahead.
pub(crate) fn after(now: Millis, millis: Option<Millis>) -> Option<Millis> {
    millis.map(|millis| now.wrapping_add(millis.min(i64::MAX as Millis)))
}

impl Client<'_> {
    /// Returns the number of requests and subscriptions in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.iter().filter(|pending| pending.is_live()).count()
    }

    /// Returns `true` if the request or the subscription of this token has not ended.
    #[must_use]
    pub fn is_open(&self, token: PendingId) -> bool {
        self.pending(token.0).is_some_and(PendingRequest::is_open)
    }

    /// Returns `true` if the client waits for a response with this id.
    #[must_use]
    pub fn awaits(&self, wire: u64) -> bool {
        self.on_wire(wire).is_some() || (!self.opening.is_ready() && self.opening.is_on_wire(wire))
    }

    /// Returns the method of the request with the JSON-RPC id `wire`.
    #[must_use]
    pub fn method_of(&self, wire: u64) -> Option<Method> {
        self.on_wire(wire).map(|pending| pending.method)
    }

    /// Returns the id that the request has on the wire now.
    #[must_use]
    pub fn wire_id(&self, token: PendingId) -> Option<u64> {
        self.pending(token.0).and_then(PendingRequest::id).map(u64::from)
    }

    /// Returns the next free id, never 0. The caller takes it when it stores it in `last_id`.
    pub(crate) fn next_id(&self) -> u32 {
        let mut id = self.last_id;
        loop {
            id = id.checked_add(1).unwrap_or(1);
            if !self.pending.iter().any(|pending| pending.uses(id)) && !self.opening.is_on_wire(id.into()) {
                return id;
            }
        }
    }

    pub(crate) fn pending(&self, token: u32) -> Option<&PendingRequest> {
        self.pending.iter().find(|pending| pending.is_live() && pending.token == token)
    }

    pub(crate) fn pending_mut(&mut self, token: u32) -> Option<&mut PendingRequest> {
        self.pending.iter_mut().find(|pending| pending.is_live() && pending.token == token)
    }

    /// Returns the request with this id on the wire.
    pub(crate) fn on_wire(&self, id: u64) -> Option<&PendingRequest> {
        self.pending.iter().find(|pending| pending.id().is_some_and(|own| u64::from(own) == id))
    }

    pub(crate) fn on_wire_mut(&mut self, id: u64) -> Option<&mut PendingRequest> {
        self.pending.iter_mut().find(|pending| pending.id().is_some_and(|own| u64::from(own) == id))
    }

    pub(crate) fn free_slot(&mut self) -> Result<&mut PendingRequest, SendError> {
        let at = self.pending.find_free(|pending| !pending.is_live(), || PendingRequest::FREE);
        at.and_then(|at| self.pending.get_mut(at)).ok_or(SendError::Busy)
    }

    /// Takes a slot for a request that is written next.
    pub(crate) fn admit(&mut self, request: &Request<'_>) -> Result<u32, SendError> {
        let (now, usual, longest, id) = (self.now, self.timeout, self.longest, self.next_id());
        let options = match request.options {
            options if options.no_timeout => Options { timeout: None, longest: None, ..options },
            options => Options { timeout: options.timeout.or(usual), ..options },
        };
        self.free_slot()?.open(id, request.method, options, now, longest);
        Ok(id)
    }

    /// Frees the slot of a request and drops its records.
    pub(crate) fn close(&mut self, token: u32) -> Option<PendingRequest> {
        self.drop_held(token);
        let pending = self.pending_mut(token)?;
        let closed = *pending;
        pending.state.enter("close", PendingState::Free);
        Some(closed)
    }

    /// Ends a request without a response. [`advance`](super::Client::advance) reports it.
    pub(crate) fn lose(&mut self, token: u32, why: TransportError) {
        if let Some(pending) = self.pending_mut(token) {
            pending.lose(why);
        }
    }
}
