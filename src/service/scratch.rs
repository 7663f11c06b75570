//! The context of a handler: the borrowed parts of a server, and its scratch.

use super::Service;
use super::context::{HandlerInput, RequestContext, bound};
use crate::json::{Raw, run::has_backslash, write};
use crate::memory::records::Records;
use crate::rpc::RequestMembers;
use crate::server::{ASKS, MIN_ROOM, RequestToken, RpcError, Server, words};
use crate::sink::Out;

/// The room for a sealed state, in bytes, in a scratch that can grow.
pub(crate) const SEALED: usize = 4096;

/// Makes the scratch large enough, and opens the state that came with the request into its front. Returns the length of the
/// state.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(crate) fn prepare(
    server: &mut Server<'_>,
    token: RequestToken,
    input: &HandlerInput<'_>,
    principal: Option<&str>,
    modern: bool,
) -> Result<usize, RpcError<'static>> {
    let travels = ASKS && modern && (server.seal.is_some() || input.members.request_state.is_some());
    if input.members.plain && !travels {
        return Ok(0);
    }
    make(server, token, input, principal, modern)
}

#[inline(never)]
fn make(
    server: &mut Server<'_>,
    token: RequestToken,
    input: &HandlerInput<'_>,
    principal: Option<&str>,
    modern: bool,
) -> Result<usize, RpcError<'static>> {
    let members = &input.members;
    let sealed = members.request_state.filter(|_| ASKS && modern).and_then(|state| state.text());
    let sealed_len = sealed.map_or(0, |sealed| sealed.raw().len());
    let asks = ASKS && modern && server.seal.is_some() && server.slot(token).is_some_and(|slot| slot.method.may_ask());
    let wanted = escaped_texts(members) + 2 * sealed_len + if asks { SEALED } else { 0 };
    // If the scratch cannot grow so far, whatever does not fit into it fails later.
    let _ = server.scratch.reach(wanted.min(server.scratch.limit()));
    let Some(sealed) = sealed.filter(|sealed| !sealed.raw().is_empty()) else { return Ok(0) };
    const BROKEN: RpcError<'static> =
        RpcError::invalid_params(words("Invalid params: requestState is not valid for this server or has expired"));
    let (Some(seal), Some(slot)) = (server.seal, server.slots.get(usize::from(token.slot()))) else {
        return Err(BROKEN);
    };
    let bound = bound(slot.method, members, principal, server.now);
    let half = server.scratch.bytes().len() / 2;
    let (open, encoded) = server.scratch.bytes_mut().split_at_mut_checked(half).ok_or(BROKEN)?;
    let decoded = write::decode_base64(sealed.raw(), encoded).ok_or(BROKEN)?;
    seal.open(&bound, encoded.get(..decoded).unwrap_or(&[]), open).map_err(|_| BROKEN)
}

/// Returns the room for the decoded text of a request: 0 if there are no escapes.
fn escaped_texts(members: &RequestMembers<'_>) -> usize {
    let escaped = |value: Option<Raw<'_>>| {
        value.filter(|value| has_backslash(value.as_bytes())).map_or(0, |value| value.as_bytes().len())
    };
    escaped(members.arguments) + escaped(members.uri) + escaped(members.argument)
}

impl<S> Service<'_, S> {
    /// Makes the context of a request, without its input, that cannot ask; the records for questions come beside it. The state
    /// that came with the request has the first `opened` bytes of the scratch.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn context<'a, 's: 'a, 'm>(
        &'a self,
        server: &'s mut Server<'m>,
        token: RequestToken,
        opened: usize,
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
        let (state, scratch) = scratch.bytes_mut().split_at_mut_checked(opened)?;
        let context = RequestContext {
            state,
            scratch,
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
