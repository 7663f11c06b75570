//! Authorization: answers 401 and 403 of a server with credentials.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio_host::{AuthorizationDriver, AuthorizationFlow};
use mcp_sansio_http::client::{ChallengeAnswer, ChallengedRequest, HeaderWriter};

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

/// Credentials that are under way.
type Fetching = Pin<Box<dyn Future<Output = Option<AuthorizationHeaders>> + Send>>;

/// The function of the application, and its current future.
#[derive(Default)]
pub(super) struct Asking {
    authorize: Option<Box<dyn FnMut(AuthorizationDemand) -> Fetching + Send>>,
    pub(super) under_way: Option<Fetching>,
    /// The messages that wait for the credentials.
    slots: Vec<usize>,
}

impl Asking {
    /// Makes one that asks the application.
    pub(super) fn of<R>(mut authorize: impl FnMut(AuthorizationDemand) -> R + Send + 'static) -> Self
    where
        R: Future<Output = Option<AuthorizationHeaders>> + Send + 'static,
    {
        Asking { authorize: Some(Box::new(move |demand| Box::pin(authorize(demand)))), ..Asking::default() }
    }

    /// Returns the credentials and the messages that have waited for them.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Option<AuthorizationHeaders>, Vec<usize>)> {
        let Some(under_way) = &mut self.under_way else { return Poll::Pending };
        let Poll::Ready(answer) = under_way.as_mut().poll(cx) else { return Poll::Pending };
        self.under_way = None;
        Poll::Ready((answer, std::mem::take(&mut self.slots)))
    }
}

impl AuthorizationDriver for Asking {
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, _: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        let Some(authorize) = &mut self.authorize else { return ChallengeAnswer::GiveUp };
        if self.under_way.is_none() {
            self.under_way = Some(authorize(AuthorizationDemand::new(challenge)));
        }
        self.slots.push(challenge.slot);
        ChallengeAnswer::Later
    }

    /// Lets a thread carry out the steps of the flow, unless one does so already.
    fn carry_out(&mut self, flow: &Arc<dyn AuthorizationFlow>, slot: Option<usize>) -> ChallengeAnswer {
        if self.under_way.is_none() {
            let flow = Arc::clone(flow);
            let carried_out = blocking::unblock(move || flow.carry_out());
            self.under_way = Some(Box::pin(async { carried_out.await.then(Vec::new) }));
        }
        self.slots.extend(slot);
        ChallengeAnswer::Later
    }
}
