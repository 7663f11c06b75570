//! Places of metadata: URLs with `/.well-known/NAME`.

use alloc::string::String;

use mcp_sansio_http::client::Url;

use crate::url::split_query;

/// Returns scheme and authority, without a slash at the end.
pub(crate) fn origin(url: &Url<'_>) -> String {
    alloc::format!("{}://{}", if url.is_secure() { "https" } else { "http" }, url.authority())
}

/// Returns the URL with `/.well-known/NAME` between host and path. A path that is only a slash is dropped; a query is
/// kept.
pub(crate) fn inserted(url: &Url<'_>, name: &str) -> String {
    let (path, query) = split_query(url.target());
    let path = if path == "/" { "" } else { path };
    alloc::format!("{}/.well-known/{name}{path}{query}", origin(url))
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
