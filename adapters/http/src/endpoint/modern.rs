//! Requests of 2026-07-28: stateless, each its own scope.

use mcp_sansio::protocol::Method;
use mcp_sansio::server::{IncomingRequest, Peer};

use super::exchange::Message;
use super::head::{EndpointResponse, ResponseBody};
use super::{Asker, Endpoint, Turn};

impl Endpoint<'_> {
    /// Handles a request, of this method, or an invalid message.
    pub(crate) fn modern_post<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        request: &mut IncomingRequest<'_>,
        method: Option<Method>,
    ) -> EndpointResponse<'static> {
        let listens = method == Some(Method::Listen);
        if listens && !turn.head.fields.accept.stream() {
            return turn.refuse(406, "A listen is answered with an event stream");
        }
        let scope = self.requests.new_scope();
        let asker = Asker { scope, session: None, resumable: false, primed: false, modern: true, listens };
        let response = self.exchange(turn, &asker, &mut Peer::NEW.clone(), Message::Read(request));
        if let (true, ResponseBody::Stream(id), Some(name)) = (listens, &response.content, turn.principal) {
            let owner = self.requests.hash(name);
            if let Some(stream) = self.streams.at_mut(id.slot) {
                stream.owner = Some(owner);
            }
        }
        // All else ends with the response. Only a listen has subscriptions.
        if listens && !matches!(response.content, ResponseBody::Stream(_)) {
            self.requests.server.end_scope(scope);
        }
        response
    }
}
