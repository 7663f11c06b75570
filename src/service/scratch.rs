//! The context of a handler: the borrowed parts of a server, and the layout of its scratch.

use super::Service;
use super::context::{HandlerInput, RequestContext, bound};
use crate::json::{Raw, run::has_backslash, write};
use crate::memory::records::Records;
use crate::rpc::RequestMembers;
use crate::server::{ASKS, MIN_ROOM, RequestToken, RpcError, Server, words};
use crate::sink::Out;

/// The use of the scratch: the opened state of a question, decoded text, and the rest for a new state. In bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    state: usize,
    texts: usize,
}

/// The room for a sealed state, in bytes, in a scratch that can grow.
pub(crate) const SEALED: usize = 4096;

impl Layout {
    pub(crate) const EMPTY: Layout = Layout { state: 0, texts: 0 };

    /// Makes the scratch large enough, and opens the state that came with the request into it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn prepare(
        server: &mut Server<'_>,
        token: RequestToken,
        input: &HandlerInput<'_>,
        principal: Option<&str>,
        modern: bool,
    ) -> Result<Self, RpcError<'static>> {
        let travels = ASKS && modern && (server.seal.is_some() || input.members.request_state.is_some());
        if input.members.plain && !travels {
            return Ok(Layout::EMPTY);
        }
        Layout::make(server, token, input, principal, modern)
    }

    #[inline(never)]
    fn make(
        server: &mut Server<'_>,
        token: RequestToken,
        input: &HandlerInput<'_>,
        principal: Option<&str>,
        modern: bool,
    ) -> Result<Self, RpcError<'static>> {
        let members = &input.members;
        let sealed = members.request_state.filter(|_| ASKS && modern).and_then(|state| state.text());
        let sealed_len = sealed.map_or(0, |sealed| sealed.raw().len());
        let texts = escaped_texts(members);
        let asks =
            ASKS && modern && server.seal.is_some() && server.slot(token).is_some_and(|slot| slot.method.may_ask());
        let wanted = texts + 2 * sealed_len + if asks { SEALED } else { 0 };
        // If the scratch cannot grow so far, whatever does not fit into it fails later.
        let _ = server.scratch.reach(wanted.min(server.scratch.limit()));
        let Some(sealed) = sealed.filter(|sealed| !sealed.raw().is_empty()) else {
            return Ok(Layout { state: 0, texts });
        };
        const BROKEN: RpcError<'static> =
            RpcError::invalid_params(words("Invalid params: requestState is not valid for this server or has expired"));
        let (Some(seal), Some(slot)) = (server.seal, server.slots.get(usize::from(token.slot()))) else {
            return Err(BROKEN);
        };
        let bound = bound(slot.method, members, principal, server.now);
        let half = server.scratch.bytes().len() / 2;
        let (open, encoded) = server.scratch.bytes_mut().split_at_mut_checked(half).ok_or(BROKEN)?;
        let decoded = write::decode_base64(sealed.raw(), encoded).ok_or(BROKEN)?;
        let state = seal.open(&bound, encoded.get(..decoded).unwrap_or(&[]), open).map_err(|_| BROKEN)?;
        Ok(Layout { state, texts })
    }
}

/// Returns the room for the decoded text of a request: 0 if there are no escapes.
fn escaped_texts(members: &RequestMembers<'_>) -> usize {
    let escaped = |value: Option<Raw<'_>>| {
        value.filter(|value| has_backslash(value.as_bytes())).map_or(0, |value| value.as_bytes().len())
    };
    escaped(members.arguments) + escaped(members.uri) + escaped(members.argument)
}

impl<S> Service<'_, S> {
    /// Makes the context of a request, without its input, that cannot ask; the records for questions come beside it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn context<'a, 's: 'a, 'm>(
        &'a self,
        server: &'s mut Server<'m>,
        token: RequestToken,
        layout: Layout,
        out: &'a mut dyn Out,
    ) -> Option<(RequestContext<'a>, &'s mut Records<'m>)> {
        #[cfg(feature = "windows")]
        let crowded = server.is_crowded();
        let Server {
            peer,
            now,
            ask_timeout,
            asks,
            scratch,
            seal,
            slots,
            tokens,
            #[cfg(feature = "alloc")]
            published,
            ..
        } = server;
        let slot = slots.get_mut(usize::from(token.slot()))?;
        let (state, scratch) = scratch.bytes_mut().split_at_mut_checked(layout.state)?;
        let texts = layout.texts.min(scratch.len());
        let (scratch, sealing) = scratch.split_at_mut_checked(texts)?;
        let context = RequestContext {
            state,
            scratch,
            sealing,
            seal: *seal,
            session_level: peer.log_level,
            ask_timeout: *ask_timeout,
            reserve: MIN_ROOM,
            #[cfg(feature = "windows")]
            crowded,
            #[cfg(feature = "alloc")]
            published: Some(published),
            ..RequestContext::new(&self.about, out, slot, token, tokens.id, *now)
        };
        Some((context, asks))
    }
}

impl<'a> RequestContext<'a> {
    /// Lays out the scratch anew, for a handler that runs again with the members and the state that were kept.
    pub(crate) fn lay_out(&mut self, members: &RequestMembers<'_>, state: &'a [u8]) {
        // Up to 2025-11-25 no state is sealed.
        let scratch = core::mem::take(&mut self.sealing);
        let modern = self.slot.revision.is_modern();
        let texts = if modern { escaped_texts(members).min(scratch.len()) } else { scratch.len() };
        (self.scratch, self.sealing) = scratch.split_at_mut_checked(texts).unwrap_or_default();
        self.state = state;
    }
}
