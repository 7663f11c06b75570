//! Authorization: what is done when a server answers 401 or 403.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio_http::client::{Challenge, Headers, Verdict};

/// A server wants authorization. It owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Demand {
    /// 401 or 403.
    pub status: u16,
    /// The value of `WWW-Authenticate`; empty if there was none.
    pub www_authenticate: String,
    /// The server's URL.
    pub url: String,
    /// How often this message was challenged before.
    pub tries: u8,
}

impl Demand {
    fn new(challenge: &Challenge<'_>) -> Self {
        Demand {
            status: challenge.status,
            www_authenticate: challenge.www_authenticate.to_owned(),
            url: challenge.url.to_owned(),
            tries: challenge.tries,
        }
    }
}

/// Headers that go with every request from then on.
pub type Credentials = Vec<(String, String)>;

/// Finds credentials. This is where OAuth flows plug in: every `FnMut(Demand) -> impl Future<Output =
/// Option<Credentials>>` is one.
pub trait Authorize: Send {
    /// The server wants authorization. `None` gives up: requests end as
    /// [`Lost::Unauthorized`](mcp_sansio::client::Lost::Unauthorized). Messages that are challenged meanwhile wait for the
    /// same credentials. The time of requests that wait for them stands still, so this must come to an end by itself.
    fn authorize(&mut self, demand: Demand) -> Pin<Box<dyn Future<Output = Option<Credentials>> + Send>>;
}

impl<F, R> Authorize for F
where
    F: FnMut(Demand) -> R + Send,
    R: Future<Output = Option<Credentials>> + Send + 'static,
{
    fn authorize(&mut self, demand: Demand) -> Pin<Box<dyn Future<Output = Option<Credentials>> + Send>> {
        Box::pin(self(demand))
    }
}

/// Who is asked, and the question that is under way.
#[derive(Default)]
pub(super) struct Asking {
    who: Option<Box<dyn Authorize>>,
    under_way: Option<Pin<Box<dyn Future<Output = Option<Credentials>> + Send>>>,
    /// Those that wait for the answer.
    slots: Vec<usize>,
}

impl Asking {
    pub(super) fn of(who: Option<Box<dyn Authorize>>) -> Self {
        Asking { who, ..Asking::default() }
    }

    pub(super) fn challenged(&mut self, challenge: &Challenge<'_>, _: &mut Headers<'_>) -> Verdict {
        let Some(who) = &mut self.who else { return Verdict::GiveUp };
        if self.under_way.is_none() {
            self.slots.clear();
            self.under_way = Some(who.authorize(Demand::new(challenge)));
        }
        self.slots.push(challenge.slot);
        Verdict::Later
    }

    /// The answer, and those that have waited for it.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Option<Credentials>, Vec<usize>)> {
        let Some(under_way) = &mut self.under_way else { return Poll::Pending };
        let Poll::Ready(answer) = under_way.as_mut().poll(cx) else { return Poll::Pending };
        self.under_way = None;
        Poll::Ready((answer, std::mem::take(&mut self.slots)))
    }
}
