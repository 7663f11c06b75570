//! Headers that an application adds to a response.

use core::fmt::{self, Write};

use mcp_sansio::FullError;

use crate::names::is_token;

/// Headers that an application adds to a response, at most `N` bytes with their names and two bytes more for each.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtraHeaders<const N: usize> {
    /// Each name and each value ends with a line feed, which neither can have.
    bytes: Bytes<N>,
    len: u16,
}

/// Of the allocator, so that a response without such headers is small: it is moved several times.
#[cfg(feature = "alloc")]
type Bytes<const N: usize> = alloc::vec::Vec<u8>;
#[cfg(not(feature = "alloc"))]
type Bytes<const N: usize> = [u8; N];

#[cfg(feature = "defmt")]
impl<const N: usize> defmt::Format for ExtraHeaders<N> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{} bytes", self.len);
    }
}

impl<const N: usize> ExtraHeaders<N> {
    /// No headers.
    pub const EMPTY: Self = ExtraHeaders {
        #[cfg(feature = "alloc")]
        bytes: alloc::vec::Vec::new(),
        #[cfg(not(feature = "alloc"))]
        bytes: [0; N],
        len: 0,
    };

    /// Adds a header.
    ///
    /// # Errors
    /// [`FullError::Never`] if it does not fit, if the name is no token, or if the value has other characters than
    /// visible ASCII, space and tab. The headers are then unchanged.
    pub fn add(&mut self, name: &str, value: impl fmt::Display) -> Result<(), FullError> {
        let before = self.len;
        let named = !name.is_empty() && name.bytes().all(is_token);
        if named && write!(self, "{name}").is_ok() && self.end() && write!(self, "{value}").is_ok() && self.end() {
            return Ok(());
        }
        if let Some(added) = self.bytes.get_mut(before.into()..) {
            added.fill(0);
        }
        #[cfg(feature = "alloc")]
        if before == 0 {
            self.bytes.clear();
        }
        self.len = before;
        Err(FullError::Never)
    }

    /// Returns whether there are no headers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives name and value of each header to `tell`, in the order in which they were added.
    pub fn each<'s>(&'s self, tell: &mut dyn FnMut(&'s str, &'s str)) {
        // Most responses have none, and all are asked twice.
        if self.is_empty() {
            return;
        }
        let text = self.bytes.get(..self.len.into()).and_then(|bytes| core::str::from_utf8(bytes).ok());
        let mut lines = text.unwrap_or_default().split('\n');
        while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
            tell(name, value);
        }
    }

    /// Ends a name or a value. Returns `false` if there is no room.
    fn end(&mut self) -> bool {
        self.put(b"\n").is_ok()
    }

    fn put(&mut self, bytes: &[u8]) -> fmt::Result {
        let start = usize::from(self.len);
        #[cfg(feature = "alloc")]
        if self.bytes.is_empty() {
            self.bytes.resize(N, 0);
        }
        let place = self.bytes.get_mut(start..).and_then(|free| free.get_mut(..bytes.len()));
        place.ok_or(fmt::Error)?.copy_from_slice(bytes);
        self.len = u16::try_from(start + bytes.len()).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

impl<const N: usize> fmt::Write for ExtraHeaders<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
            self.put(text.as_bytes())
        } else {
            Err(fmt::Error)
        }
    }
}

impl<const N: usize> fmt::Debug for ExtraHeaders<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.each(&mut |name, value| {
            map.entry(&name, &value);
        });
        map.finish()
    }
}

/// The parts of a grant besides its principal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct GrantParts {
    pub(super) scopes: u64,
    pub(super) headers: ExtraHeaders<GRANT_HEADERS>,
}

impl GrantParts {
    pub(crate) const NONE: GrantParts = GrantParts { scopes: 0, headers: ExtraHeaders::EMPTY };

    pub(crate) const fn scopes(&self) -> u64 {
        self.scopes
    }
}

/// Bytes for the headers of a [`Grant`](super::Grant). Each connection keeps one.
pub const GRANT_HEADERS: usize = 128;

/// Bytes for the headers of a [`Refusal`](super::Refusal): 1,024 with the feature `alloc`, 512 without. They are on the stack, several
/// times while a refusal is handed on.
pub const REFUSAL_HEADERS: usize = if cfg!(feature = "alloc") { 1024 } else { 512 };
