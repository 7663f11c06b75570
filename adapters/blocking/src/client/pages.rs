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
    /// Sets the limits of pages, bytes and time. Default: 1000 pages, 64 MiB, 5 minutes. A longer list ends with an
    /// error that names the limit.
    #[must_use]
    pub fn limits(self, limits: PageLimits) -> Self {
        Pages { cursor: PageCursor::new(limits), ..self }
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
