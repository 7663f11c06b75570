//! Requests that another process of the same server answers (features `ask`, `extensions` and `alloc`).
//!
//! A handler that finds what a request names at another process [relays](RequestContext::relay) the request. The transport
//! carries it there and writes the answer. If that process has ended, the handler runs again here, with what the process has
//! [kept](RequestContext::kept) for others.

use core::cell::Cell;

use super::context::{HandlerResult, RequestContext};
use crate::json::Raw;
use crate::memory::FixedText;
use crate::server::RpcError;

/// The way of a transport to other processes, for one run of a handler: see
/// [`MessageSource::relay`](super::MessageSource::relay).
#[derive(Debug)]
pub struct Relay<'o> {
    asked: Cell<Option<RelayTarget>>,
    kept: Option<Raw<'o>>,
    is_open: bool,
}

/// The place to which a handler has relayed its request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RelayTarget {
    /// The number of the process.
    pub process: u32,
    /// The key under which that process keeps for others what the request names. Empty: it keeps nothing.
    pub key: FixedText<{ RelayTarget::KEY_MAX }>,
}

impl RelayTarget {
    /// The longest key in bytes.
    pub const KEY_MAX: usize = 64;
}

impl<'o> Relay<'o> {
    /// Makes the way of a transport that can carry the request to other processes.
    #[must_use]
    pub const fn open() -> Self {
        Relay { asked: Cell::new(None), kept: None, is_open: true }
    }

    /// Makes the way for a handler that runs again, because the process to which it has relayed has ended. `kept` is what that
    /// process has kept for others last, a JSON object.
    #[must_use]
    pub const fn ended(kept: Option<Raw<'o>>) -> Self {
        Relay { asked: Cell::new(None), kept, is_open: false }
    }

    /// Returns the place to which the handler has relayed its request, once. The request is
    /// [suspended](RequestContext::suspend).
    #[must_use]
    pub fn take(&self) -> Option<RelayTarget> {
        self.asked.take()
    }
}

impl<'a> RequestContext<'a> {
    /// Returns whether the transport can carry the request to other processes of the server.
    #[must_use]
    pub fn can_relay(&self) -> bool {
        self.relay.is_some_and(|relay| relay.is_open)
    }

    /// Gives the request to another process of the server, which has what it names: the number of its tag, and the `key` of the
    /// [topic](super::Topic::outlives) under which it keeps it for others, if there is one. That process handles it as if it
    /// had come there; its messages go to this client. If it has ended, or ends before it has answered, the handler runs
    /// again here, with [`kept`](RequestContext::kept).
    ///
    /// The request is kept as by [`suspend`](RequestContext::suspend), whose limits count.
    ///
    /// # Errors
    /// Those of [`suspend`](RequestContext::suspend); error -32603 if the transport [cannot](RequestContext::can_relay) do
    /// it, or `key` is longer than [`RelayTarget::KEY_MAX`].
    pub fn relay(&mut self, process: u32, key: &str) -> HandlerResult {
        const NO_WAY: RpcError<'static> = RpcError::internal("The process that can answer cannot be reached");
        let relay = self.relay.filter(|relay| relay.is_open).ok_or(NO_WAY)?;
        let mut target = RelayTarget { process, key: FixedText::EMPTY };
        if !target.key.set(key.as_bytes()) {
            return Err(NO_WAY.into());
        }
        let (_, done) = self.suspend(b"")?;
        relay.asked.set(Some(target));
        Ok(done)
    }

    /// Returns what the process to which the handler has relayed the request has kept for others last, a JSON object; `None`
    /// if the handler has not relayed, or that process has kept nothing for this principal.
    #[must_use]
    pub fn kept(&self) -> Option<Raw<'a>> {
        self.relay.and_then(|relay| relay.kept)
    }
}
