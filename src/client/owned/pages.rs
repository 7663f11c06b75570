//! How far the pages of a list are followed.

use std::time::{Duration, Instant};

use super::{Answer, Error};

/// How many pages, bytes and how much time the pages of one list may take. A server may give cursor after cursor, and
/// nothing in a cursor says whether the list will end.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio::client::owned::PageLimits;
/// let limits = PageLimits::new().pages(10).bytes(1 << 20).time(Duration::from_secs(10));
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct PageLimits {
    pages: usize,
    bytes: usize,
    time: Duration,
    begun: Option<Instant>,
}

impl PageLimits {
    /// The defaults: 1000 pages, 64 MiB, 5 minutes.
    pub const fn new() -> Self {
        PageLimits { pages: 1_000, bytes: 64 << 20, time: Duration::from_secs(300), begun: None }
    }

    /// So many pages at the most; 1000.
    pub const fn pages(self, most: usize) -> Self {
        PageLimits { pages: most, ..self }
    }

    /// So many bytes of all pages together at the most; 64 MiB. The page with which there are more is given out, and is the
    /// last one.
    pub const fn bytes(self, most: usize) -> Self {
        PageLimits { bytes: most, ..self }
    }

    /// So much time at the most, from the first request on; 5 minutes. It is looked at before each request, which has a
    /// deadline of its own besides.
    pub const fn time(self, most: Duration) -> Self {
        PageLimits { time: most, ..self }
    }

    /// Takes note that the next page is about to be asked for.
    ///
    /// # Errors
    /// [`Error::TooManyPages`], [`Error::ListTooLarge`] or [`Error::ListTooSlow`] if it must not be.
    pub fn ask(&mut self) -> Result<(), Error> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if self.bytes == 0 {
            return Err(Error::ListTooLarge);
        }
        if begun.elapsed() > self.time {
            return Err(Error::ListTooSlow);
        }
        self.pages = self.pages.checked_sub(1).ok_or(Error::TooManyPages)?;
        Ok(())
    }

    /// Takes note of a page that has come.
    pub fn took(&mut self, page: &Answer) {
        self.bytes = self.bytes.saturating_sub(page.bytes.len());
    }
}

impl Default for PageLimits {
    fn default() -> Self {
        PageLimits::new()
    }
}
