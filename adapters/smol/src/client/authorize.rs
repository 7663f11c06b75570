//! Authorization: answers 401 and 403 of a server with credentials.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "auth")]
use mcp_sansio_host::Authorizer;
#[cfg(feature = "auth")]
use mcp_sansio_http::client::OutgoingRequest;
use mcp_sansio_http::client::{ChallengeAnswer, ChallengedRequest, HeaderWriter, HttpHooks};

/// The server's demand for
/// [authorization](https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization). It owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationDemand {
    /// The HTTP status: 401 or 403.
    pub status: u16,
    /// The header `WWW-Authenticate`; empty if the answer has none.
    pub www_authenticate: String,
    /// The server's URL.
    pub url: String,
    /// The number of times that this message was challenged before.
    pub tries: u8,
}

impl AuthorizationDemand {
    fn new(challenge: &ChallengedRequest<'_>) -> Self {
        AuthorizationDemand {
            status: challenge.status,
            www_authenticate: challenge.www_authenticate.to_owned(),
            url: challenge.url.to_owned(),
            tries: challenge.tries,
        }
    }
}

/// Headers for all later requests: names and values.
pub type AuthorizationHeaders = Vec<(String, String)>;

/// Gets credentials for a server, for example with OAuth. Each `FnMut(Demand) -> impl Future<Output =
/// Option<AuthorizationHeaders>>` implements it.
pub trait Authorize: Send {
    /// Returns credentials, or `None` to give up: the requests then end with
    /// [`TransportError::Unauthorized`](mcp_sansio::client::TransportError::Unauthorized). Other challenged messages wait for the same
    /// credentials. The times of the waiting requests stop meanwhile, so the future must end by itself.
    fn authorize(
        &mut self,
        demand: AuthorizationDemand,
    ) -> Pin<Box<dyn Future<Output = Option<AuthorizationHeaders>> + Send>>;
}

impl<F, R> Authorize for F
where
    F: FnMut(AuthorizationDemand) -> R + Send,
    R: Future<Output = Option<AuthorizationHeaders>> + Send + 'static,
{
    fn authorize(
        &mut self,
        demand: AuthorizationDemand,
    ) -> Pin<Box<dyn Future<Output = Option<AuthorizationHeaders>> + Send>> {
        Box::pin(self(demand))
    }
}

/// The application's [`Authorize`] and its current future.
#[derive(Default)]
pub(super) struct Asking {
    who: Option<Box<dyn Authorize>>,
    #[cfg(feature = "auth")]
    pub(super) authorizer: Option<Authorizer>,
    pub(super) under_way: Option<Pin<Box<dyn Future<Output = Option<AuthorizationHeaders>> + Send>>>,
    /// The messages that wait for the credentials.
    slots: Vec<usize>,
}

impl Asking {
    pub(super) fn of(who: Option<Box<dyn Authorize>>) -> Self {
        Asking { who, ..Asking::default() }
    }

    /// Lets a thread carry out the steps of the flow, unless one does so already.
    #[cfg(feature = "auth")]
    fn carry_out(&mut self, authorizer: Authorizer) {
        if self.under_way.is_none() {
            let carried_out = blocking::unblock(move || authorizer.carry_out());
            self.under_way = Some(Box::pin(async { carried_out.await.then(Vec::new) }));
        }
    }

    /// Returns whether tokens may come that are not kept yet: a refresh token is often good once, so a client that ended now
    /// would need a login at its next start.
    pub(super) fn awaits_tokens(&self) -> bool {
        #[cfg(feature = "auth")]
        if let Some(authorizer) = &self.authorizer {
            return self.under_way.is_some() && !authorizer.is_visiting();
        }
        false
    }

    /// Returns the credentials and the messages that have waited for them.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Option<AuthorizationHeaders>, Vec<usize>)> {
        let Some(under_way) = &mut self.under_way else { return Poll::Pending };
        let Poll::Ready(answer) = under_way.as_mut().poll(cx) else { return Poll::Pending };
        self.under_way = None;
        Poll::Ready((answer, std::mem::take(&mut self.slots)))
    }
}

impl HttpHooks for Asking {
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, _: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        #[cfg(feature = "auth")]
        if let Some(authorizer) = self.authorizer.clone() {
            let answer = authorizer.challenged(challenge);
            if answer == ChallengeAnswer::Later {
                self.carry_out(authorizer);
                self.slots.push(challenge.slot);
            }
            return answer;
        }
        let Some(who) = &mut self.who else { return ChallengeAnswer::GiveUp };
        if self.under_way.is_none() {
            self.under_way = Some(who.authorize(AuthorizationDemand::new(challenge)));
        }
        self.slots.push(challenge.slot);
        ChallengeAnswer::Later
    }

    #[cfg(feature = "auth")]
    fn sending(&mut self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        let Some(authorizer) = self.authorizer.clone() else { return 0 };
        // The token is still good for a while: the request does not wait for the next one.
        if authorizer.prepare() {
            self.carry_out(authorizer.clone());
        }
        authorizer.sign(request, headers)
    }
}
