//! `_meta` of the client's requests.

use super::held::{META, push_written};
use crate::json::{Raw, Text, object::Object};
use crate::memory::records::{NoRoomError, Records};
use crate::protocol::{LoggingLevel, meta};
use crate::revision::Revision;
use crate::sink::Writer;
use crate::trace_context::TraceContext;

/// The members of a request's `_meta` besides those that the protocol requires.
#[derive(Clone, Copy, Default)]
pub(crate) struct MetaParts<'r> {
    /// The id, which is also the `progressToken`, if the request asks for progress.
    pub(crate) progress: Option<u32>,
    /// The least severe log level, under 2026-07-28.
    pub(crate) level: Option<LoggingLevel>,
    /// The application's own members.
    pub(crate) own: Option<Raw<'r>>,
    /// Name and capabilities of the client are those in `own`, where they are there.
    pub(crate) own_client: bool,
    /// The trace context, in place of such members of `own`.
    pub(crate) trace: Option<&'r dyn TraceMembers>,
}

/// The writers of a trace context: a client whose requests have none is linked without them.
pub(crate) trait TraceMembers: Sync {
    /// Returns whether it writes the member `key`.
    fn has(&self, key: &Text<'_>) -> bool;

    fn write(&self, meta: &mut Object<'_, '_>);

    /// Returns the trace context.
    fn context(&self) -> TraceContext<'_>;

    /// Keeps its members and the `others` of `_meta`, to send the request with this token again.
    fn keep(&self, token: u32, others: Option<Raw<'_>>, held: &mut Records<'_>) -> Result<(), NoRoomError>;
}

impl TraceMembers for TraceContext<'_> {
    fn has(&self, key: &Text<'_>) -> bool {
        self.writes(key)
    }

    fn write(&self, meta: &mut Object<'_, '_>) {
        TraceContext::write(self, meta)
    }

    fn context(&self) -> TraceContext<'_> {
        *self
    }

    fn keep(&self, token: u32, others: Option<Raw<'_>>, held: &mut Records<'_>) -> Result<(), NoRoomError> {
        push_written(held, (token, META, 0), |out| write_own_meta(out, others, Some(self)))
    }
}

/// Writes the application's own `_meta`: its trace context, and its other members.
pub(crate) fn write_own_meta(out: &mut Writer<'_>, others: Option<Raw<'_>>, trace: Option<&dyn TraceMembers>) {
    let mut meta = Object::open(out);
    for (key, value) in others.iter().flat_map(Raw::members) {
        if !trace.is_some_and(|trace| trace.has(&key)) {
            meta.member(key, value);
        }
    }
    if let Some(trace) = trace {
        trace.write(&mut meta);
    }
    meta.close()
}

impl MetaParts<'_> {
    /// Returns a member of the application's own that describes the client, if it may.
    pub(super) fn own_client(&self, key: &str) -> Option<Raw<'_>> {
        self.own.filter(|_| self.own_client)?.get(key)
    }

    /// Returns `true` if the member `key` is the client's: the application's own is left out.
    pub(super) fn writes(&self, key: &Text<'_>, revision: Revision) -> bool {
        // Up to 2025-11-25 the client writes none, and a server of both eras would take the request for one of 2026-07-28.
        let terms = [meta::VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES].iter().any(|own| key.eq_str(own));
        terms
            || (revision.is_modern() && self.level.is_some() && key.eq_str(meta::LOG_LEVEL))
            // Also without a token of the client: another request could have the same one.
            || key.eq_str("progressToken")
            || self.trace.is_some_and(|trace| trace.has(key))
    }
}
