//! The connection to a client, and how far it is opened. See
//! [lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle).

use super::ServerChange;
use super::batch::BatchPosition;
use crate::machine;
use crate::protocol::{ClientCapabilities, LoggingLevel};
use crate::revision::Revision;

/// The state of a connection or session. It is assigned in this file alone, see [`TRANSITIONS`].
#[derive(Clone, Copy, Debug)]
enum ConnectionState {
    /// There was no `initialize`. A client of 2026-07-28 sends none.
    New,
    /// `initialize` was answered.
    Opened(Revision),
    /// The client has sent `notifications/initialized`, or an ordinary request.
    Initialized(Revision),
}

/// Every change of a connection's state: from, to, cause.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("New", "Opened", "initialize"),
    ("Opened", "Opened", "initialize"),
    ("Opened", "Initialized", "notifications/initialized, a request"),
    ("Opened", "Opened", "another initialize comes"),
    ("Initialized", "Opened", "another initialize comes"),
];

machine!(ConnectionState, TRANSITIONS: New Opened Initialized);

/// The facts about the client of a connection or session.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    state: ConnectionState,
    /// The capabilities that the client declared in `initialize`; none without the feature `ask`.
    pub capabilities: ClientCapabilities,
    /// The level of `logging/setLevel`: a program that answers it [itself](super::Server::admit_own) sets it. Default: `info`.
    pub log_level: LoggingLevel,
    /// A bit for each list change that was published and not sent yet.
    pub(crate) changed: u8,
    /// The position in the batch that is being handled.
    pub(crate) batch: Option<BatchPosition>,
}

impl Peer {
    /// A client that has sent nothing.
    pub const NEW: Peer = Peer {
        state: ConnectionState::New,
        capabilities: ClientCapabilities::NONE,
        log_level: LoggingLevel::Info,
        changed: 0,
        batch: None,
    };

    /// Makes the peer of a session that was opened elsewhere, for a transport that knows what was negotiated there. The client
    /// counts as initialized, with the default log level and no unsent changes.
    #[must_use]
    pub fn opened_elsewhere(revision: Revision, client: ClientCapabilities) -> Peer {
        let mut peer = Peer::NEW;
        peer.open(revision, client);
        peer.mark_initialized();
        peer
    }

    /// Returns the revision that `initialize` negotiated; `None` before that, and for clients of 2026-07-28.
    #[must_use]
    pub const fn revision(&self) -> Option<Revision> {
        match self.state {
            ConnectionState::New => None,
            ConnectionState::Opened(revision) | ConnectionState::Initialized(revision) => Some(revision),
        }
    }

    /// Returns whether the client has sent `notifications/initialized` or a request after `initialize`.
    #[must_use]
    pub const fn is_initialized(&self) -> bool {
        matches!(self.state, ConnectionState::Initialized(_))
    }

    /// Notes a change of a list, for a transport that keeps the peers of its sessions:
    /// [`publish`](super::Server::publish) notes it for the server's own peer alone, and for all subscriptions.
    pub const fn record(&mut self, change: ServerChange<'_>) {
        if self.revision().is_some() {
            self.changed |= change.list_bit();
        }
    }

    /// Opens the connection: `initialize` was answered.
    pub(crate) fn open(&mut self, revision: Revision, capabilities: ClientCapabilities) {
        self.state.enter("initialize", ConnectionState::Opened(revision));
        self.capabilities = capabilities;
    }

    /// Notes `notifications/initialized` or a request. Some clients never send the notification.
    pub(crate) fn mark_initialized(&mut self) {
        if let ConnectionState::Opened(revision) = self.state {
            self.state.enter("notifications/initialized, a request", ConnectionState::Initialized(revision));
        }
    }

    /// Waits again for `notifications/initialized`: `initialize` came on an open connection. If it is refused, the
    /// next request counts as the notification.
    pub(crate) fn reopen(&mut self) {
        if let Some(revision) = self.revision() {
            self.state.enter("another initialize comes", ConnectionState::Opened(revision));
        }
    }
}
