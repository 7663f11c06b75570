//! The parts of a server that a running handler needs, borrowed side by side.

use super::find::Asked;
use super::handling::bound;
use crate::json::{Raw, run::has_backslash, write};
use crate::protocol::Level;
use crate::records::Records;
use crate::rpc::Members;
use crate::server::{ASKS, Engine, Failure, Millis, Seal, ServerOf, Slot, Token};

/// What a handler is lent of the server.
pub(crate) struct Parts<'a> {
    pub(crate) slot: &'a mut Slot,
    /// For the decoded text of its arguments.
    pub(crate) scratch: &'a mut [u8],
    /// For the sealed state of an ask.
    pub(crate) sealing: &'a mut [u8],
    pub(crate) state: &'a [u8],
    pub(crate) seal: Option<&'a (dyn Seal + Sync)>,
    pub(crate) level: Level,
    pub(crate) now: Millis,
    pub(crate) ask_timeout: Option<Millis>,
    /// There is no place for a reply in windows.
    #[cfg(feature = "windows")]
    pub(crate) crowded: bool,
}

/// How the scratch is used: the opened state of an ask, decoded text, and the rest for a new state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    state: usize,
    texts: usize,
}

/// Room made for a sealed state where the scratch can grow.
pub(crate) const SEALED: usize = 4096;

impl Layout {
    pub(crate) const EMPTY: Layout = Layout { state: 0, texts: 0 };

    /// Makes the scratch large enough, and opens the state that came with the request into it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn prepare(
        server: &mut Engine<'_>,
        token: Token,
        asked: &Asked<'_>,
        principal: Option<&str>,
        modern: bool,
    ) -> Result<Self, Failure<'static>> {
        let travels = ASKS && modern && (server.seal.is_some() || asked.members.request_state.is_some());
        if asked.members.plain && !travels {
            return Ok(Layout::EMPTY);
        }
        Layout::make(server, token, asked, principal, modern)
    }

    #[inline(never)]
    fn make(
        server: &mut Engine<'_>,
        token: Token,
        asked: &Asked<'_>,
        principal: Option<&str>,
        modern: bool,
    ) -> Result<Self, Failure<'static>> {
        let members = &asked.members;
        let sealed = members.request_state.filter(|_| ASKS && modern).and_then(|state| state.text());
        let sealed_len = sealed.map_or(0, |sealed| sealed.raw().len());
        let texts = escaped_texts(members);
        // A scratch that cannot grow so far shows when something does not fit into it.
        let asks =
            ASKS && modern && server.seal.is_some() && server.slot(token).is_some_and(|slot| slot.method.may_ask());
        let wanted = texts + 2 * sealed_len + if asks { SEALED } else { 0 };
        let _ = server.scratch.reach(wanted.min(server.scratch.limit()));
        let Some(sealed) = sealed.filter(|sealed| !sealed.raw().is_empty()) else {
            return Ok(Layout { state: 0, texts });
        };
        const BROKEN: Failure<'static> =
            Failure::invalid_params("Invalid params: requestState was not made here and now");
        let (Some(seal), Some(slot)) = (server.seal, server.slots.get(usize::from(token.slot))) else {
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

/// Room for the decoded text of a request: none for what has no escapes.
pub(crate) fn escaped_texts(members: &Members<'_>) -> usize {
    let escaped = |value: Option<Raw<'_>>| {
        value.filter(|value| has_backslash(value.as_bytes())).map_or(0, |value| value.as_bytes().len())
    };
    escaped(members.arguments) + escaped(members.uri) + escaped(members.argument)
}

impl<'a> Parts<'a> {
    /// Borrows the parts; the records for questions come beside them.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn of<'m>(
        server: &'a mut Engine<'m>,
        token: Token,
        layout: Layout,
    ) -> Option<(Self, &'a mut Records<'m>)> {
        #[cfg(feature = "windows")]
        let crowded = server.is_crowded();
        let ServerOf { peer, now, ask_timeout, asks, scratch, seal, slots, .. } = server;
        let slot = slots.get_mut(usize::from(token.slot))?;
        let (state, scratch) = scratch.bytes_mut().split_at_mut_checked(layout.state)?;
        let texts = layout.texts.min(scratch.len());
        let (scratch, sealing) = scratch.split_at_mut_checked(texts)?;
        let (level, now, ask_timeout) = (peer.level, *now, *ask_timeout);
        let seal = *seal;
        let parts = Parts {
            slot,
            scratch,
            sealing,
            state,
            seal,
            level,
            now,
            ask_timeout,
            #[cfg(feature = "windows")]
            crowded,
        };
        Some((parts, asks))
    }
}
