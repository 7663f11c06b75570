//! As much of URLs as a client needs (RFC 3986): http and https, and references relative to one.

use core::fmt;

use mcp_sansio::records::Records;

/// A URL of `http` or `https`, looked at in the text it came in.
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
    /// Path and query; may begin with the query, or be empty.
    rest: &'u str,
}

/// Why a text is no URL that a client can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum UrlError {
    /// It does not begin with `http://` or `https://`.
    Scheme,
    /// There is no host, or one that cannot be.
    Host,
    /// The port is no number from 1 to 65535.
    Port,
    /// It has white space, control characters, or what is not ASCII: write those as `%20` and the like.
    Character,
    /// A name or password before the host: they are set as a header.
    Credentials,
    /// There is no room for it.
    Room,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::Scheme => "the URL does not begin with http:// or https://",
            UrlError::Host => "the URL has no proper host",
            UrlError::Port => "the port of the URL is no number from 1 to 65535",
            UrlError::Character => "the URL has a character that must be escaped",
            UrlError::Credentials => "the URL has a name or a password in it",
            UrlError::Room => "there is no room for the URL",
        })
    }
}

impl core::error::Error for UrlError {}

impl<'u> Url<'u> {
    /// Takes a URL apart. A fragment is left out.
    ///
    /// # Errors
    /// If it is not one that a client can use.
    pub fn parse(text: &'u str) -> Result<Self, UrlError> {
        let text = plain(text)?;
        let (secure, rest) = scheme(text).ok_or(UrlError::Scheme)?;
        Self::of(secure, rest.strip_prefix("//").ok_or(UrlError::Scheme)?)
    }

    pub(crate) const NOWHERE: Url<'static> = Url { secure: false, authority: "", host: "", port: 80, rest: "" };

    /// From the authority on.
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

    /// Whether it is of `https`.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host: a name, or an address without brackets.
    #[must_use]
    pub const fn host(&self) -> &'u str {
        self.host
    }

    /// The port, 80 or 443 if none is named.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as they stand, for the `Host` header.
    #[must_use]
    pub const fn authority(&self) -> &'u str {
        self.authority
    }

    /// Path and query. A path that is missing is `/`; see [`is_bare`](Url::is_bare) for a query without path.
    #[must_use]
    pub const fn target(&self) -> &'u str {
        if self.rest.is_empty() { "/" } else { self.rest }
    }

    /// Whether the target begins with the query: a `/` belongs before it.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.rest.starts_with('?')
    }

    /// Whether both are of the same scheme, host and port.
    #[must_use]
    pub fn is_same_origin(&self, other: &Url<'_>) -> bool {
        self.secure == other.secure && self.port == other.port && self.host.eq_ignore_ascii_case(other.host)
    }
}

/// A text that should be a URL, to be shown in errors: what stands before an `@`, which may be a password, is left out.
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

/// Without the fragment, if it has only characters that a URL has.
fn plain(text: &str) -> Result<&str, UrlError> {
    let text = text.trim_ascii();
    let text = text.split('#').next().unwrap_or("");
    let strange = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`');
    if text.bytes().any(strange) { Err(UrlError::Character) } else { Ok(text) }
}

/// Whether it is `https`, and what follows the colon.
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

/// Why a reference cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Astray {
    /// It leads to another origin, or is no URL.
    Origin,
    /// It does not fit.
    Room,
}

/// Resolves `reference` against `base`, whose target is `target`, and keeps the resulting target as a record; the place
/// of that (RFC 3986, section 5.2).
pub(crate) fn resolve(
    base: &Url<'_>,
    target: &str,
    reference: &str,
    texts: &mut Records<'_>,
    (owner, kind): (u32, u8),
) -> Result<usize, Astray> {
    let reference = plain(reference).map_err(|_| Astray::Origin)?;
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

/// The part of `target` that a reference without a leading slash follows.
fn within<'t>(target: &'t str, reference: &str) -> &'t str {
    let path = target.split('?').next().unwrap_or("");
    match reference.bytes().next() {
        None => target,
        Some(b'?') => path,
        Some(_) => path.get(..path.rfind('/').map_or(0, |slash| slash + 1)).unwrap_or(""),
    }
}

/// Writes both parts, one after the other, without `.` and `..` in the path.
fn write_path(parts: [&str; 2], texts: &mut Records<'_>, at: usize) -> Result<(), mcp_sansio::records::NoRoom> {
    let mut query = false;
    let mut starts = [0u16; 64];
    let mut depth = 0usize;
    let mut len = 0usize;
    // Where the last segment begins, its slash included.
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

/// Whether a segment with its slash is so many dots, escaped ones too.
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
    use mcp_sansio::store::Store;
    use std::string::String;

    #[test]
    fn urls() {
        let url = |text| Url::parse(text).map(|url| (url.is_secure(), url.host(), url.port(), url.target()));
        assert_eq!(url("http://localhost"), Ok((false, "localhost", 80, "/")));
        assert_eq!(url("HTTPS://a.b-c/"), Ok((true, "a.b-c", 443, "/")));
        assert_eq!(url(" http://127.0.0.1:80/a/b?c=/d#e\n"), Ok((false, "127.0.0.1", 80, "/a/b?c=/d")));
        assert_eq!(url("http://[fe80::1]:1/x"), Ok((false, "fe80::1", 1, "/x")));
        assert_eq!(url("http://h:/x").map(|url| url.2), Ok(80));
        for (text, error) in [
            ("localhost:80", UrlError::Scheme),
            ("ftp://x", UrlError::Scheme),
            ("http:/x", UrlError::Scheme),
            ("http://", UrlError::Host),
            ("http://[::1", UrlError::Host),
            ("http://[x]", UrlError::Host),
            ("http://h:0", UrlError::Port),
            ("http://h:65536", UrlError::Port),
            ("http://h:+1", UrlError::Port),
            ("http://[::1]x", UrlError::Port),
            ("http://u:p@h", UrlError::Credentials),
            ("http://h/a b", UrlError::Character),
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
