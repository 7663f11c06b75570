//! URLs of `http` and `https`, and references relative to one (RFC 3986), as far as a client needs them.

use core::fmt;

use mcp_sansio::memory::records::Records;

/// A URL of `http` or `https`. It borrows the text.
///
/// ```
/// use mcp_sansio_http::client::Url;
/// let url = Url::parse("https://[::1]:8443/mcp?x=1#top")?;
/// assert_eq!((url.host(), url.port(), url.target()), ("::1", 8443, "/mcp?x=1"));
/// assert_eq!(url.authority(), "[::1]:8443");
/// assert!(url.is_secure() && url.is_same_origin(&Url::parse("https://[::1]:8443/")?));
/// # Ok::<(), mcp_sansio_http::client::UrlError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'u> {
    secure: bool,
    authority: &'u str,
    host: &'u str,
    port: u16,
    /// Path and query. May begin with the query, or be empty.
    rest: &'u str,
}

mcp_sansio::error_enum! {
    /// The reason why a client cannot use a URL.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    UrlError {
        /// The text does not begin with `http://` or `https://`.
        Scheme => "the URL does not begin with http:// or https://",
        /// The host is missing or invalid.
        Host => "the URL has no proper host",
        /// The port is not a number from 1 to 65535.
        Port => "the port of the URL is no number from 1 to 65535",
        /// The text has white space, control characters or a character that is not ASCII: write these as `%20` and
        /// the like.
        Character => "the URL has a character that must be escaped",
        /// The text has a name or password before the host: set them as a header instead.
        Credentials => "the URL has a name or a password in it",
        /// The store is too small for the URL.
        Room => "there is no room for the URL",
    }
}

impl<'u> Url<'u> {
    /// Parses a URL. Drops a fragment. White space around it is an error, as within: what is compared is not trimmed.
    ///
    /// # Errors
    /// [`UrlError`] with the reason, except [`UrlError::Room`].
    pub fn parse(text: &'u str) -> Result<Self, UrlError> {
        let text = plain(text)?;
        let (secure, rest) = scheme(text).ok_or(UrlError::Scheme)?;
        Self::of(secure, rest.strip_prefix("//").ok_or(UrlError::Scheme)?)
    }

    pub(crate) const NOWHERE: Url<'static> = Url { secure: false, authority: "", host: "", port: 80, rest: "" };

    /// Parses a URL from the authority on.
    fn of(secure: bool, text: &'u str) -> Result<Self, UrlError> {
        let end = text.find(['/', '?', '\\']).unwrap_or(text.len());
        let (authority, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            "" => u16::from(secure) * (443 - 80) + 80,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?
            }
            _ => return Err(UrlError::Port),
        };
        Ok(Url { secure, authority: authority.strip_suffix(':').unwrap_or(authority), host, port, rest })
    }

    /// Returns the same URL with another path and query.
    pub(crate) const fn with_target(self, target: &'u str) -> Url<'u> {
        Url { rest: target, ..self }
    }

    /// Returns `true` for `https`.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns the host: a name, or an address without brackets.
    #[must_use]
    pub const fn host(&self) -> &'u str {
        self.host
    }

    /// Returns the port. Default: 80 for `http`, 443 for `https`.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns host and port as written in the URL, for the `Host` header.
    #[must_use]
    pub const fn authority(&self) -> &'u str {
        self.authority
    }

    /// Returns path and query. A missing path is `/`; see [`is_bare`](Url::is_bare) for a query without path.
    #[must_use]
    pub const fn target(&self) -> &'u str {
        if self.rest.is_empty() { "/" } else { self.rest }
    }

    /// Returns `true` if the target begins with the query: a `/` must go before it.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.rest.starts_with('?')
    }

    /// Returns `true` if both have the same scheme, host and port.
    #[must_use]
    pub fn is_same_origin(&self, other: &Url<'_>) -> bool {
        self.secure == other.secure && self.port == other.port && self.host.eq_ignore_ascii_case(other.host)
    }
}

/// Writes the URL with a path, and without a fragment.
impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https://" } else { "http://" };
        let slash = if self.is_bare() { "/" } else { "" };
        for part in [scheme, self.authority, slash, self.target()] {
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// Shows a text that should be a URL in errors. Leaves out the part before an `@`, which may be a password.
///
/// ```
/// use mcp_sansio_http::client::Redacted;
/// assert_eq!(Redacted("http://me:secret@localhost/mcp").to_string(), "http://…@localhost/mcp");
/// assert_eq!(Redacted("ftp://localhost/").to_string(), "ftp://localhost/");
/// ```
#[derive(Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "a way to show a text")]
pub struct Redacted<'u>(pub &'u str);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((before, after)) = self.0.rsplit_once('@') else { return f.write_str(self.0) };
        let scheme = before.split_once("://").map(|(scheme, _)| scheme);
        if let Some(scheme) = scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            write!(f, "{scheme}://")?;
        }
        write!(f, "…@{after}")
    }
}

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the text without its fragment, if it has only characters of URLs.
fn plain(text: &str) -> Result<&str, UrlError> {
    let text = text.split('#').next().unwrap_or("");
    let strange = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`');
    if text.bytes().any(strange) { Err(UrlError::Character) } else { Ok(text) }
}

/// Returns `true` for `https`, and the text after the colon.
fn scheme(text: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    if scheme.eq_ignore_ascii_case("http") {
        return Some((false, rest));
    }
    scheme.eq_ignore_ascii_case("https").then_some((true, rest))
}

fn host_and_port(authority: &str) -> Result<(&str, &str), UrlError> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(UrlError::Host)?;
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
        if !host.contains(':') || !host.bytes().all(is_address) {
            return Err(UrlError::Host);
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if rest.is_empty() => Ok((host, "")),
            None => Err(UrlError::Port),
        };
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%');
    if host.is_empty() || !host.bytes().all(is_name) { Err(UrlError::Host) } else { Ok((host, port)) }
}

/// Longest URL and target, in bytes, against which references are resolved.
pub(crate) const LONGEST: usize = 1024;

/// The reason why a reference cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Astray {
    /// It leads to another origin, or is not a URL.
    Origin,
    /// It does not fit.
    Room,
}

/// Resolves `reference` against `base`, whose target is `target`. Keeps the resulting target as a record and
/// returns its place (RFC 3986, section 5.2).
pub(crate) fn resolve(
    base: &Url<'_>,
    target: &str,
    reference: &str,
    texts: &mut Records<'_>,
    (owner, kind): (u32, u8),
) -> Result<usize, Astray> {
    let reference = plain(reference.trim_ascii()).map_err(|_| Astray::Origin)?;
    let colon = reference.find(':').unwrap_or(usize::MAX);
    let has_scheme = colon < reference.find(['/', '?']).unwrap_or(usize::MAX);
    let path = if has_scheme || reference.starts_with("//") {
        let (secure, rest) =
            if has_scheme { scheme(reference) } else { Some((base.secure, reference)) }.ok_or(Astray::Origin)?;
        let rest = rest.strip_prefix("//").ok_or(Astray::Origin)?;
        let url = Url::of(secure, rest).map_err(|_| Astray::Origin)?;
        if !url.is_same_origin(base) {
            return Err(Astray::Origin);
        }
        ["", url.rest]
    } else if reference.starts_with('/') {
        ["", reference]
    } else {
        [within(target, reference), reference]
    };
    let at = texts.begin(owner, kind, 0).map_err(|_| Astray::Room)?;
    write_path(path, texts, at).map_err(|_| {
        texts.drop_last(at);
        Astray::Room
    })?;
    Ok(at)
}

/// Returns the part of `target` before a reference without a leading slash.
fn within<'t>(target: &'t str, reference: &str) -> &'t str {
    let path = target.split('?').next().unwrap_or("");
    match reference.bytes().next() {
        None => target,
        Some(b'?') => path,
        Some(_) => path.get(..path.rfind('/').map_or(0, |slash| slash + 1)).unwrap_or(""),
    }
}

/// Writes both parts, one after the other, without `.` and `..` in the path.
fn write_path(
    parts: [&str; 2],
    texts: &mut Records<'_>,
    at: usize,
) -> Result<(), mcp_sansio::memory::records::NoRoomError> {
    let mut query = false;
    let mut starts = [0u16; 64];
    let mut depth = 0usize;
    let mut len = 0usize;
    // The start of the last segment, its slash included.
    let mut segment = 0usize;
    if !parts.iter().any(|part| part.starts_with('/')) {
        texts.extend(at, b"/")?;
        len = 1;
    }
    for byte in parts.iter().flat_map(|part| part.bytes()).chain(core::iter::once(0)) {
        let ends = !query && matches!(byte, b'/' | b'?' | 0);
        if ends && len > 0 {
            let record = texts.get(at).map_or(&[][..], |record| record.data);
            let last = record.get(segment..).unwrap_or(&[]);
            let (is_dot, is_up) = (is_dots(last, 1), is_dots(last, 2));
            if is_dot || is_up {
                if is_up && depth > 0 {
                    depth -= 1;
                }
                len = if is_dot { segment } else { starts.get(depth).copied().map_or(0, usize::from).min(segment) };
                texts.shorten(at, len);
                if byte != b'/' {
                    texts.extend(at, b"/")?;
                    len += 1;
                }
            } else if let (Some(place), Ok(start)) = (starts.get_mut(depth), u16::try_from(segment)) {
                *place = start;
                depth += 1;
            }
        }
        if ends {
            segment = len;
        }
        query |= byte == b'?';
        if byte != 0 {
            texts.extend(at, &[byte])?;
            len += 1;
        }
    }
    Ok(())
}

/// Returns `true` if a segment with its slash has exactly `dots` dots, escaped ones too.
fn is_dots(segment: &[u8], dots: usize) -> bool {
    let Some(mut rest) = segment.strip_prefix(b"/") else { return false };
    for _ in 0..dots {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return false,
        };
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::memory::Store;
    use std::string::String;

    // spec: A128
    #[test]
    fn urls() {
        let url = |text| Url::parse(text).map(|url| (url.is_secure(), url.host(), url.port(), url.target()));
        assert_eq!(url("http://localhost"), Ok((false, "localhost", 80, "/")));
        assert_eq!(url("HTTPS://a.b-c/"), Ok((true, "a.b-c", 443, "/")));
        assert_eq!(url("http://127.0.0.1:80/a/b?c=/d#e"), Ok((false, "127.0.0.1", 80, "/a/b?c=/d")));
        assert_eq!(url("http://[fe80::1]:1/x"), Ok((false, "fe80::1", 1, "/x")));
        assert_eq!(url("http://h:/x").map(|url| url.2), Ok(80));
        for (text, error) in [
            ("localhost:80", UrlError::Scheme),
            ("ftp://x", UrlError::Scheme),
            ("http:/x", UrlError::Scheme),
            ("http://", UrlError::Host),
            ("http://[::1", UrlError::Host),
            ("http://[x]", UrlError::Host),
            ("http://[1.2]", UrlError::Host),
            ("http://[fe80::x]", UrlError::Host),
            ("http://h:0", UrlError::Port),
            ("http://h:65536", UrlError::Port),
            ("http://h:+1", UrlError::Port),
            ("http://[::1]x", UrlError::Port),
            ("http://u:p@h", UrlError::Credentials),
            ("http://h/a b", UrlError::Character),
            (" http://h/", UrlError::Character),
            ("http://h/\n", UrlError::Character),
            ("http://h/a\r\nX: y", UrlError::Character),
            ("http://h/é", UrlError::Character),
        ] {
            assert_eq!(url(text), Err(error), "{text}");
        }
    }

    fn resolved(base: &str, reference: &str) -> Result<String, Astray> {
        let mut bytes = [0; 256];
        let mut texts = Records::new(Store::from(&mut bytes));
        let base = Url::parse(base).unwrap();
        let at = resolve(&base, base.target(), reference, &mut texts, (0, 0))?;
        let record = texts.get(at).unwrap();
        Ok(String::from_utf8(record.data.to_vec()).unwrap())
    }

    #[test]
    fn urls_as_text() {
        for (url, text) in
            [("HTTP://h", "http://h/"), ("https://H:1?q#f", "https://H:1/?q"), ("http://[::1]/a", "http://[::1]/a")]
        {
            assert_eq!(std::format!("{}", Url::parse(url).unwrap()), text);
        }
    }

    // spec: A128
    #[test]
    fn references() {
        let base = "http://h:81/a/b/c?d";
        for (reference, target) in [
            ("/messages?sessionId=1", "/messages?sessionId=1"),
            ("messages", "/a/b/messages"),
            ("?x", "/a/b/c?x"),
            ("", "/a/b/c?d"),
            ("./x/../y", "/a/b/y"),
            ("../x", "/a/x"),
            ("../../../x", "/x"),
            ("..", "/a/"),
            ("/x/./y/%2e%2E/z/.", "/x/z/"),
            ("/x?a=/../b", "/x?a=/../b"),
            ("http://H:81/x", "/x"),
            ("http://h:81", "/"),
            ("http://h:81?q", "/?q"),
            ("//h:81/y#f", "/y"),
            ("x:y/z", "no"),
            ("https://h:81/x", "no"),
            ("http://h/x", "no"),
            ("//evil/x", "no"),
            ("/\\evil", "no"),
            ("/a b", "no"),
        ] {
            let found = resolved(base, reference);
            assert_eq!(found.as_deref(), if target == "no" { Err(&Astray::Origin) } else { Ok(target) }, "{reference}");
        }
        assert_eq!(resolved("http://h", "x").as_deref(), Ok("/x"));
        assert_eq!(resolved("http://h?q", "").as_deref(), Ok("/?q"));
    }
}
