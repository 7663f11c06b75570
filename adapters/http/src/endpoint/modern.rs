//! Requests of 2026-07-28: stateless, each its own scope.

use mcp_sansio::protocol::{Method, code};
use mcp_sansio::server::{IncomingRequest, Peer};
use mcp_sansio::sink::Out;

use super::exchange::Message;
use super::head::{EndpointResponse, RequestHead, ResponseBody};
use super::refusal::refuse;
use super::{App, Asker, Endpoint};

impl Endpoint<'_> {
    /// Handles a request, of this method, or an invalid message.
    pub(crate) fn modern_post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &RequestHead<'r>,
        request: &mut IncomingRequest<'_>,
        method: Option<Method>,
        principal: Option<&str>,
        body: &mut dyn Out,
    ) -> EndpointResponse<'r> {
        let listens = method == Some(Method::Listen);
        if listens && !head.fields.accept.stream() {
            return refuse(body, 406, code::INVALID_REQUEST, "A listen is answered with an event stream");
        }
        let scope = self.new_scope();
        let asker = Asker { scope, session: None, resumable: false, primed: false, modern: true, listens };
        let response =
            self.exchange(app, head, &asker, &mut Peer::NEW.clone(), principal, Message::Read(request), body);
        // All else ends with the response. Only a listen has subscriptions.
        if listens && !matches!(response.content, ResponseBody::Stream(_)) {
            self.server.end_scope(scope);
        }
        response
    }
}
