//! The pages of a [list](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination).

use mcp_sansio::client::{ClientHandler, Request};
use mcp_sansio_host::{ClientError, OwnedResult, PageCursor, PageLimits};

use super::{Client, Transport};

/// The pages of a list: an iterator of results, see [`Client::pages`].
#[derive(Debug)]
pub struct Pages<'c, 'r, 'm, T, H> {
    pub(super) client: &'c mut Client<'m, T, H>,
    pub(super) list: Request<'r>,
    pub(super) cursor: PageCursor,
}

impl<T, H> Pages<'_, '_, '_, T, H> {
    /// Sets the limit of pages. Default: 1000. A further page is an [`ClientError::TooManyPages`].
    #[must_use]
    pub fn at_most(mut self, pages: usize) -> Self {
        let limits = self.cursor.limits();
        *limits = limits.pages(pages);
        self
    }

    /// Sets the limits of pages, bytes and time. Default: 1000 pages, 64 MiB, 5 minutes. A longer list ends with an
    /// error that names the limit.
    #[must_use]
    pub fn limits(mut self, limits: PageLimits) -> Self {
        *self.cursor.limits() = limits;
        self
    }
}

impl<'m, T: Transport<'m>, H: ClientHandler> Iterator for Pages<'_, '_, 'm, T, H> {
    type Item = Result<OwnedResult, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let page = match self.cursor.ask(&self.list)? {
            Ok(request) => self.client.request(&request),
            Err(error) => return Some(Err(error)),
        };
        self.cursor.took(&page).then_some(page)
    }
}
