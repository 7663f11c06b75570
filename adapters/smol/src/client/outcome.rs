//! The future of a request, and the stream of a list's pages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::Stream;
use mcp_sansio::client::{OwnedRequest, Request, SendError};
use mcp_sansio_host::{FollowerInput, PageCursor};

use super::state::{Sending, Ticket};
use super::{Client, ClientError, OwnedResult, PageLimits};

/// The result of a request that was sent or waits for its turn: a future. Dropping it cancels the request.
#[must_use = "dropping it cancels the request"]
pub struct PendingResponse {
    client: Client,
    ticket: Ticket,
}

impl PendingResponse {
    pub(super) fn new(client: Client, request: &Request<'_>, sending: Option<Sending>) -> Self {
        let ticket = client.with(|state| state.begin(request, sending));
        PendingResponse { client, ticket }
    }

    /// Returns what came for the request of an event follower.
    pub(super) fn poll_input(&mut self, cx: &Context<'_>) -> Poll<FollowerInput> {
        let PendingResponse { client, ticket } = self;
        client.with(|state| state.poll_input(ticket, cx))
    }
}

impl Future for PendingResponse {
    type Output = Result<OwnedResult, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let PendingResponse { client, ticket } = &mut *self;
        client.with(|state| state.poll_ticket(ticket, cx))
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.client.with(|state| state.give_up(&self.ticket));
    }
}

mcp_sansio::debug_fields!(impl for PendingResponse {});

/// The pages of a list, see [`Client::pages`]: a stream of results. It ends with a page without `nextCursor`, before
/// a page that came before, with the first error, or at a [limit](Pages::limits).
#[must_use = "it does nothing until it is asked for pages"]
#[derive(Debug)]
pub struct Pages {
    client: Client,
    list: Option<OwnedRequest>,
    cursor: PageCursor,
    under_way: Option<PendingResponse>,
}

impl Pages {
    pub(super) fn new(client: Client, list: &Request<'_>) -> Self {
        Pages { client, list: list.keep().ok(), cursor: PageCursor::new(PageLimits::DEFAULT), under_way: None }
    }

    /// Sets the limits of pages, bytes and time. Default: 1000 pages, 64 MiB, 5 minutes. A longer list ends with an
    /// error that names the limit.
    pub fn limits(self, limits: PageLimits) -> Self {
        Pages { cursor: PageCursor::new(limits), ..self }
    }

    /// Returns the next page; `None` at the end of the list.
    pub async fn next(&mut self) -> Option<Result<OwnedResult, ClientError>> {
        futures_lite::StreamExt::next(self).await
    }
}

impl Stream for Pages {
    type Item = Result<OwnedResult, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Pages { client, list, cursor, under_way } = &mut *self;
        if under_way.is_none() {
            let Some(list) = list else { return Poll::Ready(None) };
            *under_way = match cursor.ask(&list.request()) {
                Some(Ok(request)) => Some(client.request(request)),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
        }
        let Some(outcome) = under_way else { return Poll::Ready(Some(Err(SendError::Stale.into()))) };
        let Poll::Ready(page) = Pin::new(outcome).poll(cx) else { return Poll::Pending };
        *under_way = None;
        Poll::Ready(cursor.took(&page).then_some(page))
    }
}
