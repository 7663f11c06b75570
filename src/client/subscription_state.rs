//! The states of a subscription of a client, and which follow which.

use crate::machine;

/// The state of a subscription. Ids are JSON-RPC ids and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionState {
    /// The client sends a request that opens it next: `subscriptions/listen`, or one `resources/subscribe`.
    Opening,
    /// That request is on the wire with this id.
    OpeningSent { id: u32 },
    /// The server reports changes; under 2026-07-28 with the id of `subscriptions/listen`.
    Open { id: Option<u32> },
    /// The stream ended. The subscription opens again at its deadline.
    Resting,
    /// The application cancelled it. The client sends one `resources/unsubscribe` next (up to 2025-11-25).
    Closing,
    /// The application cancelled it, and a request is on the wire with this id.
    ClosingSent { id: u32 },
}

/// All transitions of a [`SubscriptionState`]: from, to, cause. The diagram in `docs/internals/state-machines.md` shows the same.
/// [`PendingRequest`](super::pending::PendingRequest) has the beginning and the end of a subscription.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Opening", "OpeningSent", "advance"),
    ("Opening", "Open", "all subscribed"),
    ("Opening", "Opening", "new connection"),
    ("OpeningSent", "Opening", "response"),
    ("OpeningSent", "Opening", "new connection"),
    ("OpeningSent", "Open", "acknowledged"),
    ("OpeningSent", "Resting", "cut off"),
    ("Open", "Open", "acknowledged"),
    ("Open", "Opening", "new connection"),
    ("Open", "Resting", "cut off"),
    ("Resting", "Opening", "deadline"),
    ("Resting", "Opening", "new connection"),
    ("Opening", "Closing", "cancel"),
    ("OpeningSent", "ClosingSent", "cancel"),
    ("Open", "Closing", "cancel"),
    ("Resting", "Closing", "cancel"),
    ("Closing", "ClosingSent", "advance"),
    ("ClosingSent", "Closing", "response"),
];

machine!(SubscriptionState, TRANSITIONS: Opening OpeningSent Open Resting Closing ClosingSent);

impl SubscriptionState {
    /// Returns the id on the wire.
    pub(crate) const fn id(self) -> Option<u32> {
        match self {
            SubscriptionState::OpeningSent { id } | SubscriptionState::ClosingSent { id } => Some(id),
            SubscriptionState::Open { id } => id,
            _ => None,
        }
    }

    /// Returns `true` if the application has cancelled the subscription.
    pub(crate) const fn is_closing(self) -> bool {
        matches!(self, SubscriptionState::Closing | SubscriptionState::ClosingSent { .. })
    }
}
