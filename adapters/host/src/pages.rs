//! Limits for [paginated](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination)
//! lists.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use mcp_sansio::client::Request;

use crate::{ClientError, OwnedResult};

mcp_sansio::options! {
    /// Limits of pages, bytes and time for one
    /// [paginated](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination) list. They are
    /// needed because a server may send one `nextCursor` after another without end.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcp_sansio_host::PageLimits;
    /// let limits = PageLimits::DEFAULT.pages(10).bytes(1 << 20).time(Duration::from_secs(10));
    /// ```
    #[derive(Clone, Copy, Debug)]
    pub struct PageLimits {
        /// Most pages. Default: 1000.
        pages: usize = 1_000,
        /// Most bytes of all pages together. Default: 64 MiB. The page that exceeds it is still returned, as the last one.
        bytes: usize = 64 << 20,
        /// The longest time from the first request on. Default: 5 minutes. It is checked before each request; the request has
        /// its own deadline besides.
        time: Duration = Duration::from_secs(300),
    }
}

/// Follows the pages of one list, until a page has no `nextCursor`, a page comes again, a limit is reached, or a request fails.
#[derive(Debug)]
#[must_use]
pub struct PageCursor {
    /// The pages, the bytes and the time that are left.
    limits: PageLimits,
    /// The time of the first request.
    begun: Option<Instant>,
    /// The last page, kept for its cursor.
    page: Option<OwnedResult>,
    /// The pages so far, as hashes.
    seen: BTreeSet<u64>,
    over: bool,
}

impl PageCursor {
    /// Begins before the first page.
    pub const fn new(limits: PageLimits) -> Self {
        PageCursor { limits, begun: None, page: None, seen: BTreeSet::new(), over: false }
    }

    /// Returns the request for the next page of `list`; `None` after the last one.
    ///
    /// # Errors
    /// [`ClientError::TooManyPages`], [`ClientError::ListTooLarge`] or [`ClientError::ListTooSlow`] at a limit, once; after that it
    /// returns `None`.
    pub fn ask<'r>(&'r mut self, list: &Request<'r>) -> Option<Result<Request<'r>, ClientError>> {
        if self.over {
            return None;
        }
        if let Err(error) = self.count() {
            self.over = true;
            return Some(Err(error));
        }
        Some(Ok(match self.page.as_ref().and_then(OwnedResult::next_cursor) {
            Some(cursor) => list.after(cursor),
            None => *list,
        }))
    }

    /// Counts the next page, before it is requested.
    fn count(&mut self) -> Result<(), ClientError> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if self.limits.bytes == 0 {
            return Err(ClientError::ListTooLarge);
        }
        if begun.elapsed() > self.limits.time {
            return Err(ClientError::ListTooSlow);
        }
        self.limits.pages = self.limits.pages.checked_sub(1).ok_or(ClientError::TooManyPages)?;
        Ok(())
    }

    /// Takes the result of the request for a page. Returns `false` if the same page with the same `nextCursor` came before: the
    /// server goes in a circle, so the list is over, and this page is no part of it.
    #[must_use]
    pub fn took(&mut self, page: &Result<OwnedResult, ClientError>) -> bool {
        self.page = None;
        self.over = true;
        let Ok(page) = page else { return true };
        self.limits.bytes = self.limits.bytes.saturating_sub(page.raw().as_bytes().len());
        if page.next_cursor().is_none() {
            return true;
        }
        // Cursors alone are not compared: they are opaque, and the same cursor may lead to another page.
        let is_new = self.seen.insert(hash_of(page));
        self.over = !is_new;
        self.page = Some(page.clone()).filter(|_| is_new);
        is_new
    }
}

/// Returns a hash of a page. Members that differ although the page is the same are left out.
fn hash_of(page: &OwnedResult) -> u64 {
    let mut hash = DefaultHasher::new();
    for (name, value) in page.raw().members().filter(|(name, _)| !name.eq_str("_meta") && !name.eq_str("ttlMs")) {
        for part in [name.raw(), value.as_bytes()] {
            hash.write_usize(part.len());
            hash.write(part);
        }
    }
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::json::Raw;
    use mcp_sansio::protocol::Method;

    fn page(json: &'static str) -> OwnedResult {
        OwnedResult::new(Method::ToolsList, Raw::constant(json))
    }

    #[test]
    fn a_list_has_so_many_pages_and_bytes() {
        let mut cursor = PageCursor::new(PageLimits::DEFAULT.pages(2));
        assert!(cursor.count().is_ok() && cursor.count().is_ok());
        assert!(matches!(cursor.count(), Err(ClientError::TooManyPages)));
        let next = page(r#"{"nextCursor":"a"}"#);
        let size = next.raw().as_bytes().len();
        for (bytes, more) in [(size - 1, false), (size, false), (size + 1, true)] {
            let mut cursor = PageCursor::new(PageLimits::DEFAULT.bytes(bytes));
            assert!(cursor.count().is_ok() && cursor.took(&Ok(next.clone())));
            assert_eq!(cursor.count().is_ok(), more, "{bytes}");
        }
        let mut none = PageCursor::new(PageLimits::DEFAULT.bytes(0));
        assert!(matches!(none.count(), Err(ClientError::ListTooLarge)));
        let mut late = PageCursor::new(PageLimits::DEFAULT.time(Duration::from_secs(1)));
        late.begun = Some(Instant::now() - Duration::from_secs(2));
        assert!(matches!(late.count(), Err(ClientError::ListTooSlow)));
        late.limits = late.limits.time(Duration::from_secs(3600));
        assert!(late.count().is_ok());
    }

    #[test]
    fn pages_are_asked_for_until_one_has_no_cursor() {
        let list = Request::list_tools();
        let mut cursor = PageCursor::new(PageLimits::DEFAULT);
        assert!(cursor.ask(&list).is_some_and(|asked| asked.is_ok()));
        assert!(cursor.took(&Ok(page(r#"{"nextCursor":"a"}"#))));
        assert!(cursor.ask(&list).is_some_and(|asked| asked.is_ok()));
        assert!(cursor.took(&Ok(page("{}"))));
        assert!(cursor.ask(&list).is_none());
        let mut cursor = PageCursor::new(PageLimits::DEFAULT);
        assert!(cursor.took(&Err(ClientError::TooManyPages)));
        assert!(cursor.ask(&list).is_none());
        // A limit is reported once.
        let mut cursor = PageCursor::new(PageLimits::DEFAULT.bytes(5));
        assert!(cursor.ask(&list).is_some_and(|asked| asked.is_ok()));
        assert!(cursor.took(&Ok(page(r#"{"nextCursor":"a"}"#))));
        assert!(cursor.ask(&list).is_some_and(|asked| asked.is_err()));
        assert!(cursor.ask(&list).is_none());
    }

    #[test]
    fn a_circle_of_pages_ends() {
        let list = Request::list_tools();
        for (pages, new) in [
            (&[r#"{"tools":[1],"nextCursor":""}"#, r#"{"tools":[1],"nextCursor":""}"#][..], 1),
            (&[r#"{"nextCursor":"8","ttlMs":9}"#, r#"{"nextCursor":"8","ttlMs":8,"_meta":{"n":1}}"#], 1),
            // The same cursor leads to other pages, and one page has several cursors.
            (&[r#"{"tools":[1],"nextCursor":"a"}"#, r#"{"tools":[2],"nextCursor":"a"}"#], 2),
            (&[r#"{"tools":[],"nextCursor":"a"}"#, r#"{"tools":[],"nextCursor":"b"}"#], 2),
            // A circle of two.
            (&[r#"{"nextCursor":"a"}"#, r#"{"nextCursor":"b"}"#, r#"{"nextCursor":"a"}"#, r#"{"nextCursor":"b"}"#], 2),
            // The last page is one without a cursor.
            (&[r#"{"tools":[1],"nextCursor":"a"}"#, r#"{"tools":[1]}"#], 2),
        ] {
            let mut cursor = PageCursor::new(PageLimits::DEFAULT);
            let mut taken = 0;
            for text in pages {
                let Some(asked) = cursor.ask(&list) else { break };
                assert!(asked.is_ok());
                taken += usize::from(cursor.took(&Ok(page(text))));
            }
            assert_eq!(taken, new, "{pages:?}");
            let goes_on = pages.len() == new && pages[1].contains("nextCursor");
            assert_eq!(cursor.ask(&list).is_some(), goes_on, "{pages:?}");
        }
    }
}
