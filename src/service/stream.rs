//! Replies in windows: lists, and content from a source; notifications of changes.

use super::{Dispatched, Service};
use crate::server::{PullStatus, RequestToken, Server, StreamBody, WINDOWS};
use crate::sink::Out;

impl<S> Service<'_, S> {
    /// Writes the notifications of published changes, as [`Server::pull`] does, and those of extensions, from the state. Call
    /// it when the sink has room; it can be called at any time.
    #[inline]
    pub fn pull(&self, state: &S, server: &mut Server<'_>, out: &mut dyn Out) -> PullStatus {
        #[cfg(feature = "extensions")]
        return server.pull_with(
            &self.about,
            &super::extension::ServiceTopics { service: self, state, principal: None, capabilities: None },
            out,
        );
        #[cfg(not(feature = "extensions"))]
        {
            let _ = state;
            server.pull(&self.about, out)
        }
    }

    /// Sends more of a reply in windows. Call it whenever the sink has room, until it returns [`Dispatched::Handled`].
    #[cfg_attr(not(feature = "windows"), allow(unused_variables, reason = "only sources need the state"))]
    pub fn pump(&self, state: &mut S, token: RequestToken, server: &mut Server<'_>, out: &mut dyn Out) -> Dispatched {
        #[cfg(feature = "windows")]
        let id = server.id();
        let Some(slot) = server.slot_mut(token).filter(|slot| WINDOWS && slot.is_streaming()) else {
            return Dispatched::Handled;
        };
        let Some(mut large) = slot.large_mut().copied() else { return Dispatched::Handled };
        let done = match large.what {
            StreamBody::List(page) => match self.dynamic.lists {
                #[cfg(feature = "windows")]
                Some(lists) => {
                    let caller = super::Caller::admitted(None, None, id, slot);
                    (lists.pump)(self, state, &caller, &mut large, slot, page, out)
                }
                _ => self.pump_list(&mut large, slot, page, out),
            },
            #[cfg(feature = "windows")]
            StreamBody::Content { index, .. } => match self.source(slot.method, usize::from(index)) {
                Some(source) => (source.pump)(self, source.give, state, &mut large, slot, out),
                // The service has changed: the reply is closed.
                None => large.send(out, &mut |out| out.put(b"\"}]}}")),
            },
            StreamBody::Reply(_) => match server.pump(token, &self.about, out) {
                true => return Dispatched::Handled,
                false => return Dispatched::Streaming(token),
            },
        };
        if let Some(place) = slot.large_mut() {
            *place = large;
        }
        if !done {
            return Dispatched::Streaming(token);
        }
        server.end_large(token, out);
        Dispatched::Handled
    }
}

/// Keeps code of another package that needs `windows`, where the feature is on.
#[cfg(feature = "windows")]
#[doc(hidden)]
#[macro_export]
macro_rules! with_windows {
    ($($code:tt)*) => { $($code)* };
}

/// Drops it, where the feature is off.
#[cfg(not(feature = "windows"))]
#[doc(hidden)]
#[macro_export]
macro_rules! with_windows {
    ($($code:tt)*) => {};
}
