//! Places of metadata: URLs with `/.well-known/NAME`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio_http::client::Url;

use crate::url::split_query;

/// Returns scheme and authority, without a slash at the end.
pub(crate) fn origin(url: &Url<'_>) -> String {
    alloc::format!("{}://{}", if url.is_secure() { "https" } else { "http" }, url.authority())
}

/// Returns the URL with `/.well-known/NAME` between host and path: with `oauth-protected-resource`, the place of a server's metadata
/// ([RFC 9728, section 3.1](https://www.rfc-editor.org/rfc/rfc9728#section-3.1)). A path that is only a slash is dropped; a
/// query is kept.
#[must_use]
pub fn inserted(url: &Url<'_>, name: &str) -> String {
    let (path, query) = split_query(url.target());
    let path = if path == "/" { "" } else { path };
    alloc::format!("{}/.well-known/{name}{path}{query}", origin(url))
}

/// Returns the places of the metadata of an authorization server in the order in which they are tried, the last one first
/// ([discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery)).
#[must_use]
pub fn server_places(issuer: &Url<'_>) -> Vec<String> {
    // A slash at the end of the path is not part of the places (RFC 8414, section 3.1).
    let inserted = |name| {
        let place = inserted(issuer, name);
        place.strip_suffix('/').map(ToString::to_string).unwrap_or(place)
    };
    let inserted_openid = inserted("openid-configuration");
    let appended_openid = appended(issuer, "openid-configuration");
    let mut places = if inserted_openid == appended_openid { Vec::new() } else { alloc::vec![appended_openid] };
    places.push(inserted_openid);
    places.push(inserted("oauth-authorization-server"));
    places
}

/// Returns the URL with `/.well-known/NAME` after its path, without its query.
pub(crate) fn appended(url: &Url<'_>, name: &str) -> String {
    let (path, _) = split_query(url.target());
    alloc::format!("{}{}/.well-known/{name}", origin(url), path.strip_suffix('/').unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_places() {
        let at = |text: &'static str| Url::parse(text).unwrap();
        assert_eq!(inserted(&at("https://h:1/a/b"), "x"), "https://h:1/.well-known/x/a/b");
        assert_eq!(inserted(&at("https://h:1/a/b?c=/d"), "x"), "https://h:1/.well-known/x/a/b?c=/d");
        assert_eq!(inserted(&at("https://h/"), "x"), "https://h/.well-known/x");
        assert_eq!(inserted(&at("https://h"), "x"), "https://h/.well-known/x");
        assert_eq!(appended(&at("http://[::1]:1/t/"), "x"), "http://[::1]:1/t/.well-known/x");
        assert_eq!(appended(&at("https://h/t"), "x"), "https://h/t/.well-known/x");
    }
}
