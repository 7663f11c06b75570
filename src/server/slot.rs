//! Requests in flight: a fixed table, with tickets that cannot be mistaken for later ones.

use crate::protocol::{ClientFeatures, Level, Method};
use crate::revision::Revision;
use crate::server::ask::{ASKS, Asking};
use crate::server::large::Large;
use crate::sink::copy;

/// The longest id, and the longest progress token, as JSON text with its quotes. A longer one is refused.
pub const ID_MAX: usize = 64;

/// A request in flight. Small and `Copy`: keep it, send it to another task, answer when there is something to say.
///
/// A token of a request that was answered or cancelled is *stale*: it is refused and harms nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Token {
    pub(crate) slot: u16,
    pub(crate) generation: u32,
}

/// Where a request came from: a stdio connection, a session, a single POST. Ids and tokens of progress live in one
/// scope and mean nothing in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Scope(pub u32);

/// The text of an id or of a progress token.
#[derive(Clone, Copy)]
pub(crate) struct IdText {
    bytes: [u8; ID_MAX],
    len: u8,
}

impl IdText {
    pub(crate) const EMPTY: IdText = IdText { bytes: [0; ID_MAX], len: 0 };

    /// Keeps a copy; `false` if it is too long.
    #[must_use]
    pub(crate) fn set(&mut self, text: &[u8]) -> bool {
        let fits = text.len() <= ID_MAX;
        if fits {
            copy(&mut self.bytes, text);
            self.len = text.len() as u8;
        }
        fits
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len as usize).unwrap_or(&[])
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// Its answer is somebody's to give.
    Open,
    /// Questions were sent to the client.
    Asking,
    /// Its answer goes out in windows.
    Streaming,
}

/// One request in flight.
pub struct Slot {
    pub(crate) generation: u32,
    pub(crate) scope: Scope,
    /// The transport's number for it.
    pub(crate) route: u32,
    /// Which tool, resource or template it names: the one whose source a late answer pulls.
    pub(crate) handler: u16,
    /// The client may hang up and come back.
    pub(crate) released: bool,
    pub(crate) state: State,
    pub(crate) method: Method,
    pub(crate) revision: Revision,
    pub(crate) client: ClientFeatures,
    /// What the request itself asked for (2026-07-28).
    pub(crate) level: Option<Level>,
    pub(crate) id: IdText,
    /// Empty if the request gave none.
    pub(crate) progress_token: IdText,
    /// The next progress must be at least this.
    pub(crate) progress: u64,
    pub(crate) asking: Asking,
    pub(crate) large: Large,
}

impl Slot {
    /// A slot without a request.
    pub const FREE: Slot = Slot {
        generation: 0,
        scope: Scope(0),
        route: 0,
        handler: 0,
        released: false,
        state: State::Free,
        // Never read; the first, which is 0.
        method: Method::Initialize,
        revision: Revision::V2024_11_05,
        client: ClientFeatures::NONE,
        level: None,
        id: IdText::EMPTY,
        progress_token: IdText::EMPTY,
        progress: 0,
        asking: Asking::NONE,
        large: Large::NONE,
    };

    pub(crate) fn is_live(&self) -> bool {
        self.state != State::Free
    }

    /// Whether questions of it are open.
    pub(crate) fn is_asking(&self) -> bool {
        ASKS && self.state == State::Asking
    }

    /// Whether questions of it are through, or will not be answered.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_asking() && self.asking.ready
    }

    /// Whether it holds the request with this id. Ids are compared by value, see [`same_id`](crate::rpc::same_id).
    pub(crate) fn is(&self, scope: Scope, id: &[u8]) -> bool {
        self.is_live() && self.scope == scope && crate::rpc::same_id(self.id.as_bytes(), id)
    }

    /// Ends the request; its tokens are stale from here on.
    pub(crate) fn free(&mut self) {
        self.state = State::Free;
        self.generation = self.generation.wrapping_add(1);
        self.asking = Asking::NONE;
        self.large = Large::NONE;
    }
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slot").field("state", &self.state).field("method", &self.method).finish_non_exhaustive()
    }
}
