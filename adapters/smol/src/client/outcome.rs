//! The future of one request, and the stream of a list's pages.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::Stream;
use mcp_sansio::client::{OwnedRequest, Request, SendError, Token};
use mcp_sansio::json::Text;

use super::state::Ticket;
use super::{Answer, Client, Error};

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

/// Pages of one list at the most, unless [`Pages::at_most`] says otherwise.
const PAGES: usize = 1_000;

/// The pages of a list, one request after the other, see [`Client::pages`]. It ends with the first error.
#[must_use = "it does nothing until it is asked for pages"]
#[derive(Debug)]
pub struct Pages {
    client: Client,
    list: Option<OwnedRequest>,
    page: Option<Answer>,
    under_way: Option<Outcome>,
    left: usize,
}

impl Pages {
    pub(super) fn new(client: Client, list: &Request<'_>) -> Self {
        Pages { client, list: list.keep().ok(), page: None, under_way: None, left: PAGES }
    }

    /// With another limit than 1000 pages; one more is an [`Error::TooManyPages`].
    pub fn at_most(self, pages: usize) -> Self {
        Pages { left: pages, ..self }
    }

    /// The next page.
    pub async fn next(&mut self) -> Option<Result<Answer, Error>> {
        futures_lite::StreamExt::next(self).await
    }

    /// Asks for the next page; `None` if there is none.
    fn ask(&mut self) -> Option<Result<Outcome, Error>> {
        let list = self.list.as_ref()?;
        let Some(left) = self.left.checked_sub(1) else { return Some(Err(Error::TooManyPages)) };
        self.left = left;
        let list = list.request();
        Some(Ok(match self.page.as_ref().and_then(Answer::next_cursor) {
            Some(cursor) => self.client.request(list.after(cursor)),
            None => self.client.request(list),
        }))
    }

    /// A cursor that leads to the page where it was found.
    fn is_circle(&self, next: Text<'_>) -> bool {
        let last = self.page.as_ref().and_then(Answer::next_cursor);
        last.is_some_and(|last| last.raw() == next.raw())
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
        let more = page.as_ref().ok().and_then(Answer::next_cursor).is_some_and(|next| !self.is_circle(next));
        if !more {
            self.list = None;
        }
        self.page = page.as_ref().ok().cloned();
        Poll::Ready(Some(page))
    }
}
