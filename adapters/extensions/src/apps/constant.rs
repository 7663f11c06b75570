//! JSON that is written while the program is compiled.

/// Up to `N` bytes of text. Further bytes are counted and not kept, so `Text<0>` measures.
pub(crate) struct Text<const N: usize> {
    pub(crate) bytes: [u8; N],
    pub(crate) len: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) const EMPTY: Self = Text { bytes: [0; N], len: 0 };

    #[allow(clippy::indexing_slicing, reason = "checked; a const fn has no `get_mut`")]
    pub(crate) const fn put(mut self, text: &str) -> Self {
        let mut rest = text.as_bytes();
        while let [byte, behind @ ..] = rest {
            if self.len < N {
                self.bytes[self.len] = *byte;
            }
            self.len += 1;
            rest = behind;
        }
        self
    }

    /// Writes a member whose value is a string: `key` is its name with quotes and colon, after a comma unless it is the first.
    pub(crate) const fn text_member(self, is_first: bool, key: &str, text: &str) -> Self {
        self.member(is_first, key).put("\"").put(text).put("\"")
    }

    /// Writes the name of a member, after a comma unless it is the first.
    pub(crate) const fn member(self, is_first: bool, key: &str) -> Self {
        let text = if is_first { self } else { self.put(",") };
        text.put("\"").put(key).put("\":")
    }
}

/// Returns whether a text is a URI of a page: `ui://`, and characters of URIs that need no escapes in JSON.
pub(crate) const fn is_page_uri(uri: &str) -> bool {
    let [b'u', b'i', b':', b'/', b'/', path @ ..] = uri.as_bytes() else { return false };
    let mut rest = path;
    while let [byte, behind @ ..] = rest {
        match *byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' | b'.' | b'_' | b'~' | b':' | b'/' | b'?' | b'#' | b'[' | b']' | b'@' | b'!' | b'$' | b'&' => {}
            b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b'%' => {}
            _ => return false,
        }
        rest = behind;
    }
    !path.is_empty()
}

/// Returns whether a text is an origin or a host name that can stand in a list of a content security policy: ASCII without
/// spaces, quotes, backslashes, commas and semicolons.
pub(crate) const fn is_domain(domain: &str) -> bool {
    let mut rest = domain.as_bytes();
    while let [byte, behind @ ..] = rest {
        match *byte {
            b'"' | b'\'' | b'\\' | b',' | b';' => return false,
            0x21..=0x7e => {}
            _ => return false,
        }
        rest = behind;
    }
    !domain.is_empty()
}

/// Returns whether a text begins with `<!doctype html`, in capitals or not.
pub(crate) const fn is_html(text: &str) -> bool {
    let (mut rest, mut wanted) = (text.as_bytes(), "<!doctype html".as_bytes());
    while let ([byte, behind @ ..], [lower, after @ ..]) = (rest, wanted) {
        if byte.to_ascii_lowercase() != *lower {
            return false;
        }
        (rest, wanted) = (behind, after);
    }
    wanted.is_empty()
}
