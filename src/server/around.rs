//! The layers of a service, as the server sees them: they stand around the messages that it sends.

use super::id::{RequestToken, Scope, ServerId};
use crate::json::object::Object;
use crate::sink::{MessageHead, Out};
use crate::time::Millis;

/// A message that a server sends, for [`Layer::writes`](crate::service::Layer::writes) and
/// [`Layer::sends`](crate::service::Layer::sends).
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct SentMessage<'a> {
    /// Its kind: [`Notification`](MessageHead::Notification), [`Result`](MessageHead::Result),
    /// [`ToolError`](MessageHead::ToolError) or [`Error`](MessageHead::Error).
    pub head: MessageHead<'a>,
    /// The `method` of a notification.
    pub method: &'a str,
    /// The request that it answers; `None` for a notification.
    pub token: Option<RequestToken>,
    /// The server, see [`RequestContext::server`](crate::service::RequestContext::server).
    pub server: ServerId,
    /// The session, see [`RequestContext::scope`](crate::service::RequestContext::scope).
    pub scope: Scope,
    /// The time on the caller's clock.
    pub now: Millis,
}

/// The `_meta` of a result that is written, for [`Layer::result_meta`](crate::service::Layer::result_meta).
#[derive(Debug)]
pub struct ResultMeta<'r, 'o, 'w> {
    result: Option<&'r mut Object<'o, 'w>>,
    meta: Option<Object<'r, 'w>>,
}

impl<'r, 'o, 'w> ResultMeta<'r, 'o, 'w> {
    pub(crate) const fn new(result: &'r mut Object<'o, 'w>) -> Self {
        ResultMeta { result: Some(result), meta: None }
    }

    /// Returns the object, to add members to it. Without a call, and without members of the handler, the result has no `_meta`.
    pub fn object(&mut self) -> Option<&mut Object<'r, 'w>> {
        if let Some(result) = self.result.take() {
            self.meta = Some(Object::open(result.key("_meta")));
        }
        self.meta.as_mut()
    }

    pub(crate) fn close(self) {
        if let Some(meta) = self.meta {
            meta.close();
        }
    }
}

/// The layers of a service. A program without layers is linked without their code.
pub(crate) trait Around: Sync {
    /// Runs a function that writes notifications. `from` has all of them but their method.
    fn watch(&self, from: SentMessage<'_>, out: &mut dyn Out, run: &mut dyn FnMut(&mut dyn Out));

    /// Adds members to the `_meta` of the result of a request.
    fn add_meta(&self, token: RequestToken, meta: &mut ResultMeta<'_, '_, '_>);
}

// As a supertrait, `Debug` would have to be there for the layers of all programs.
impl core::fmt::Debug for dyn Around + '_ {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Around")
    }
}

/// Runs a function that writes notifications, with the layers around it if there are any.
pub(crate) fn watched<T>(
    around: Option<&dyn Around>,
    from: SentMessage<'_>,
    out: &mut dyn Out,
    run: impl FnOnce(&mut dyn Out) -> T,
) -> Option<T> {
    let Some(around) = around else { return Some(run(out)) };
    let (mut run, mut done) = (Some(run), None);
    around.watch(from, out, &mut |out| done = run.take().map(|run| run(out)));
    done
}
