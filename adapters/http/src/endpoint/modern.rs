//! Requests of 2026-07-28: stateless, each its own scope.

use mcp_sansio::protocol::{Method, code};
use mcp_sansio::rpc::Shape;
use mcp_sansio::server::{Peer, Request};
use mcp_sansio::sink::Out;

use super::exchange::Message;
use super::head::{Content, Head, Response};
use super::media::Accept;
use super::refusal::refuse;
use super::stream::Purpose;
use super::{App, Asker, Endpoint};

impl<const N: usize> Endpoint<'_, N> {
    pub(crate) fn modern_post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        request: &mut Request<'_>,
        principal: Option<&'r str>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        let listens = match request.envelope().shape() {
            Shape::Response { .. } => {
                return refuse(body, 400, code::INVALID_REQUEST, "A client sends no responses here");
            }
            // What notifications there are concern a request by its connection.
            Shape::Notification { .. } => return Response::status(202),
            Shape::Request { method, .. } => Method::from_name(&method) == Method::Listen,
            _ => false,
        };
        if listens && !Accept::of(head).stream() {
            return refuse(body, 406, code::INVALID_REQUEST, "A listen is answered with an event stream");
        }
        let scope = self.new_scope();
        let asker = Asker { scope, session: None, resumable: false, primed: false, modern: true };
        let response =
            self.exchange(app, head, &asker, &mut Peer::NEW.clone(), principal, Message::Read(request), body);
        match response.content {
            Content::Stream(id) if listens => {
                if let Some(stream) = self.stream_mut(id) {
                    stream.purpose = Purpose::Listen;
                }
            }
            Content::Stream(_) => {}
            // Nothing of it stays; only a listen has subscribed to anything.
            _ if listens => self.server.end_scope(scope),
            _ => {}
        }
        response
    }
}
