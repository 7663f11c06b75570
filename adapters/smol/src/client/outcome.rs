//! The future of one request, and the stream of a list's pages.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::Stream;
use mcp_sansio::client::{OwnedRequest, Request, SendError, Token};

use super::state::Ticket;
use super::{Answer, Client, Error, PageLimits};

/// The outcome of a request that was sent, or waits to be. Dropping it cancels the request.
#[must_use = "dropping it cancels the request"]
pub struct Outcome {
    client: Client,
    ticket: Ticket,
}

impl Outcome {
    pub(super) fn new(client: Client, request: &Request<'_>) -> Self {
        let ticket = client.with(|state| state.begin(request));
        Outcome { client, ticket }
    }

    /// The request's token, which progress and questions carry; `None` before it is sent and when its outcome was given
    /// out.
    #[must_use]
    pub const fn token(&self) -> Option<Token> {
        match self.ticket {
            Ticket::Sent(token) => Some(token),
            _ => None,
        }
    }
}

impl Future for Outcome {
    type Output = Result<Answer, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Outcome { client, ticket } = &mut *self;
        client.with(|state| state.poll_ticket(ticket, cx))
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        self.client.with(|state| state.give_up(&self.ticket));
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome").field("token", &self.token()).finish_non_exhaustive()
    }
}

/// The pages of a list, one request after the other, see [`Client::pages`], as long as the server gives a cursor and no
/// [limit](Pages::limits) is reached. It ends with the first error.
#[must_use = "it does nothing until it is asked for pages"]
#[derive(Debug)]
pub struct Pages {
    client: Client,
    list: Option<OwnedRequest>,
    page: Option<Answer>,
    under_way: Option<Outcome>,
    limits: PageLimits,
}

impl Pages {
    pub(super) fn new(client: Client, list: &Request<'_>) -> Self {
        Pages { client, list: list.keep().ok(), page: None, under_way: None, limits: PageLimits::new() }
    }

    /// With another limit than 1000 pages; one more is an [`Error::TooManyPages`].
    pub fn at_most(self, pages: usize) -> Self {
        let limits = self.limits.pages(pages);
        self.limits(limits)
    }

    /// With other limits on pages, bytes and time than 1000, 64 MiB and 5 minutes. A list that goes on beyond one of them
    /// ends with an error that says so.
    pub fn limits(self, limits: PageLimits) -> Self {
        Pages { limits, ..self }
    }

    /// The next page.
    pub async fn next(&mut self) -> Option<Result<Answer, Error>> {
        futures_lite::StreamExt::next(self).await
    }

    /// Asks for the next page; `None` if there is none.
    fn ask(&mut self) -> Option<Result<Outcome, Error>> {
        let list = self.list.as_ref()?;
        if let Err(error) = self.limits.ask() {
            return Some(Err(error));
        }
        let list = list.request();
        Some(Ok(match self.page.as_ref().and_then(Answer::next_cursor) {
            Some(cursor) => self.client.request(list.after(cursor)),
            None => self.client.request(list),
        }))
    }
}

impl Stream for Pages {
    type Item = Result<Answer, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.under_way.is_none() {
            match self.ask() {
                Some(Ok(outcome)) => self.under_way = Some(outcome),
                Some(Err(error)) => {
                    self.list = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(None),
            }
        }
        let Some(outcome) = &mut self.under_way else { return Poll::Ready(Some(Err(SendError::Stale.into()))) };
        let Poll::Ready(page) = Pin::new(outcome).poll(cx) else { return Poll::Pending };
        self.under_way = None;
        // Whether there is a cursor is all that counts: the same one again may lead to another page.
        self.page = page.as_ref().ok().filter(|page| page.next_cursor().is_some()).cloned();
        if self.page.is_none() {
            self.list = None;
        }
        if let Ok(page) = &page {
            self.limits.took(page);
        }
        Poll::Ready(Some(page))
    }
}
