//! The outcomes that callers wait for.

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler, PendingId};
use mcp_sansio_host::{ClientError, OwnedResult, ServerHello};

use super::Transport;

/// The outcomes that callers wait for: sent requests, and the opening of the connection.
#[derive(Default)]
pub(super) struct Waits {
    pub(super) tokens: Vec<(PendingId, Option<Result<OwnedResult, ClientError>>)>,
    pub(super) opening: bool,
    pub(super) opened: Option<Result<(), ClientError>>,
    pub(super) hello: Option<ServerHello>,
    /// The connection is new: the first request waits until the server can send requests too.
    pub(super) unsettled: bool,
    /// The task that was followed last.
    pub(super) followed: Option<(String, mcp_sansio_host::TaskNotice)>,
}

impl Waits {
    pub(super) fn place(&mut self, token: PendingId) -> Option<&mut Option<Result<OwnedResult, ClientError>>> {
        self.tokens.iter_mut().find(|(waited, _)| *waited == token).map(|(_, outcome)| outcome)
    }

    /// Takes the outcome of a request, if it has one.
    pub(super) fn take(&mut self, token: PendingId) -> Option<Result<OwnedResult, ClientError>> {
        let at = self.tokens.iter().position(|(waited, outcome)| *waited == token && outcome.is_some())?;
        self.tokens.swap_remove(at).1
    }

    /// Adds the transport's facts to the errors.
    pub(super) fn explain<'m>(&mut self, transport: &impl Transport<'m>) {
        let outcomes = self.tokens.iter_mut().filter_map(|(_, outcome)| outcome.as_mut()?.as_mut().err());
        let opened = self.opened.as_mut().and_then(|opened| opened.as_mut().err());
        for error in outcomes.chain(opened) {
            error.explain(|why| transport.state().explain(why));
        }
    }
}

/// A handler that keeps the outcomes that callers wait for, and passes on all other events.
pub(super) struct Tap<'t> {
    pub(super) waits: &'t mut Waits,
    pub(super) handler: &'t mut dyn ClientHandler,
    pub(super) happened: bool,
}

impl ClientHandler for Tap<'_> {
    fn event(&mut self, event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>) {
        self.happened = true;
        match event {
            ClientEvent::Done { token, method, retried, outcome } => {
                if let Some(place) = self.waits.place(token) {
                    let kept = outcome.map(|raw| OwnedResult::new(method, raw).retried(retried));
                    *place = Some(kept.map_err(|failure| ClientError::failed(&failure)));
                    return;
                }
            }
            ClientEvent::Connected(connected) => {
                self.waits.hello = Some(ServerHello::new(&connected));
                self.waits.opened = Some(Ok(()));
                self.waits.unsettled = true;
            }
            ClientEvent::Unconnected(unconnected) if self.waits.opening => {
                self.waits.opened = Some(Err(ClientError::failed(&unconnected)));
                return;
            }
            ClientEvent::Notification { method, params } => {
                if let Some((id, params)) = mcp_sansio_host::TaskNotice::of(&method, params)
                    && let Some((followed, notice)) = &mut self.waits.followed
                    && id.eq_str(followed)
                {
                    notice.keep(params);
                }
            }
            _ => {}
        }
        self.handler.event(event, link);
    }
}
