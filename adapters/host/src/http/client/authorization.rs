//! Authorization of a client over HTTP: the flow of OAuth, and the driver that carries it out.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_sansio_http::client::{ChallengeAnswer, ChallengedRequest, HeaderWriter, OutgoingRequest};

/// The flow of OAuth for one server, see `AuthorizationOptions`.
pub trait AuthorizationFlow: Send + Sync {
    /// Decides about a challenge. With [`ChallengeAnswer::Later`], the message waits for the end of
    /// [`carry_out`](AuthorizationFlow::carry_out).
    fn challenged(&self, challenge: &ChallengedRequest<'_>) -> ChallengeAnswer;

    /// Prepares for a request. Returns `true` if the token ends soon: [`carry_out`](AuthorizationFlow::carry_out) then gets
    /// another one, before the request or beside it.
    fn prepare(&self) -> bool;

    /// Adds the credentials for a request that is about to be sent, and returns their number. See
    /// [`HttpHooks::sending`](mcp_sansio_http::client::HttpHooks::sending).
    fn sign(&self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32;

    /// Notes that the server accepted credentials. See
    /// [`HttpHooks::accepted`](mcp_sansio_http::client::HttpHooks::accepted).
    fn accepted(&self, credentials: u32);

    /// Carries out the steps of the flow. It blocks, for minutes if a person has to log in. Returns `true` if the
    /// messages that wait are to be sent again, `false` if they fail.
    fn carry_out(&self) -> bool;

    /// Notes an address at which the server was reached. Requests to authorization servers go to no nearer network than
    /// the farthest of these. Without a call, the addresses count that the server's name has at the time of the request.
    fn reached(&self, address: IpAddr);

    /// Returns whether [`carry_out`](AuthorizationFlow::carry_out) waits for a person, not for the authorization server.
    fn is_visiting(&self) -> bool;

    /// Returns why there is no token, with the words of the server if it refused one; `None` if authorization has not failed.
    fn refusal(&self) -> Option<String>;
}

/// The part of a driver in authorization.
pub trait AuthorizationDriver {
    /// Decides about a challenge without a flow, as the application says.
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, headers: &mut HeaderWriter<'_>) -> ChallengeAnswer;

    /// Lets the steps of the flow be carried out where it may block. Returns what becomes of the challenged message in `slot`;
    /// `None` is a request that goes out now.
    fn carry_out(&mut self, flow: &Arc<dyn AuthorizationFlow>, slot: Option<usize>) -> ChallengeAnswer;
}
