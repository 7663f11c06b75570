//! URLs: which ones a client may use.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mcp_sansio_http::client::Url;

mcp_sansio::error_enum! {
    /// The reason why a URL is not used.
    RefusedUrlError {
        /// The text is not a URL of `http` or `https`.
        Malformed => "it is no URL of http or https",
        /// The URL has a fragment.
        Fragment => "it has a fragment",
        /// The URL is `http`, and the host is not this machine; or it is, but the server is elsewhere.
        Insecure => "it is not https",
        /// The URL leads to this machine or a private network, but the server is public.
        Private => "it leads into a private network",
    }
}

/// The network of a host, as its name shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "this machine, this network, everywhere")]
pub enum Reach {
    /// This machine: `localhost`, 127.0.0.0/8, `::1`.
    Loopback,
    /// An address of a private or local network, or of none.
    Private,
    /// Any other name or address. A name may still stand for a private address: the program that connects sees it, and
    /// asks [`Reach::of_address`].
    Public,
}

impl Reach {
    /// Returns the network of a URL's host.
    #[must_use]
    pub fn of(url: &Url<'_>) -> Self {
        let host = url.host().strip_suffix('.').unwrap_or(url.host());
        if host.eq_ignore_ascii_case("localhost") || ends_with(host, ".localhost") {
            return Reach::Loopback;
        }
        match host.parse() {
            Ok(address) => Self::of_address(address),
            // 127.1, 0x7f000001, 2130706433: resolvers take them as addresses, in different ways.
            Err(_) if host.rsplit('.').next().is_some_and(is_number) => Reach::Private,
            Err(_) => Reach::Public,
        }
    }

    /// Returns the network of an address.
    ///
    /// ```
    /// use mcp_sansio_auth::url::Reach;
    /// assert_eq!(Reach::of_address([10, 0, 0, 1].into()), Reach::Private);
    /// assert!(Reach::Loopback < Reach::Private && Reach::Private < Reach::Public);
    /// ```
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    const fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Reach::Loopback,
            // This network, shared addresses, protocol assignments, documentation, relays of 6to4, benchmarks, reserved.
            [0, ..] | [100, 64..=127, ..] | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => {
                Reach::Private
            }
            [198, 51, 100, _] | [203, 0, 113, _] | [240..=255, ..] => Reach::Private,
            _ if address.is_private() || address.is_link_local() || address.is_multicast() => Reach::Private,
            _ => Reach::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        match address.segments() {
            _ if address.is_loopback() => Reach::Loopback,
            // An IPv4 address inside: mapped, translated, 6to4.
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
                let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
                Self::of_v4(Ipv4Addr::new(a, b, c, d))
            }
            // Protocol assignments with Teredo, documentation.
            [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reach::Private,
            [0x2000..=0x3fff, ..] => Reach::Public,
            _ => Reach::Private,
        }
    }
}

/// Returns whether a label is a number, so that the name is an address in an unusual form.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or(label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn ends_with(host: &str, end: &str) -> bool {
    let tail = host.len().checked_sub(end.len()).and_then(|start| host.get(start..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// Parses a URL that a stranger has named, for a server at `server`: it is `https`, or `http` on this machine if the server
/// is on this machine too; and it does not lead into a network that is nearer than the server.
///
/// ```
/// use mcp_sansio_auth::url::{RefusedUrlError, acceptable};
/// let public = "https://example.com/mcp";
/// assert!(acceptable("https://as.example.com/token", public).is_ok());
/// assert_eq!(acceptable("http://as.example.com/token", public), Err(RefusedUrlError::Insecure));
/// assert_eq!(acceptable("https://169.254.169.254/latest", public), Err(RefusedUrlError::Private));
/// assert!(acceptable("http://127.0.0.1:81/token", "http://localhost:80/mcp").is_ok());
/// ```
///
/// # Errors
/// [`RefusedUrlError`] with the reason.
pub fn acceptable<'u>(text: &'u str, server: &str) -> Result<Url<'u>, RefusedUrlError> {
    let server = Reach::of(&Url::parse(server).map_err(|_| RefusedUrlError::Malformed)?);
    if text.contains('#') {
        return Err(RefusedUrlError::Fragment);
    }
    let url = Url::parse(text).map_err(|_| RefusedUrlError::Malformed)?;
    let reach = Reach::of(&url);
    if reach < server {
        return Err(RefusedUrlError::Private);
    }
    let is_here = reach == Reach::Loopback && server == Reach::Loopback;
    if !url.is_secure() && !is_here {
        return Err(RefusedUrlError::Insecure);
    }
    Ok(url)
}

/// Returns whether `resource`, of protected resource metadata, stands for the server at `server`: the same origin, and a
/// path that is the beginning of the server's, at a `/`.
///
/// [RFC 9728, section 3.3](https://www.rfc-editor.org/rfc/rfc9728#section-3.3) wants both identical; many servers name
/// their origin only.
#[must_use]
pub fn is_resource_of(resource: &str, server: &str) -> bool {
    let (Ok(whole), Ok(url)) = (Url::parse(resource), Url::parse(server)) else { return false };
    if resource.contains('#') || resource.trim_ascii().len() != resource.len() || !whole.is_same_origin(&url) {
        return false;
    }
    let (resource, resource_query) = split_query(whole.target());
    let (path, query) = split_query(url.target());
    if !resource_query.is_empty() && resource_query != query {
        return false;
    }
    let resource = resource.strip_suffix('/').unwrap_or(resource);
    path.strip_prefix(resource).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Splits a target into its path and its query, which keeps its `?`.
pub(crate) fn split_query(target: &str) -> (&str, &str) {
    target.find('?').and_then(|at| target.split_at_checked(at)).unwrap_or((target, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_near_or_far() {
        for (host, reach) in [
            ("localhost", Reach::Loopback),
            ("LOCALHOST.", Reach::Loopback),
            ("a.localhost", Reach::Loopback),
            ("127.9.9.9", Reach::Loopback),
            ("[::1]", Reach::Loopback),
            ("[::ffff:127.0.0.1]", Reach::Loopback),
            ("10.0.0.1", Reach::Private),
            ("172.31.0.1", Reach::Private),
            ("192.168.1.1", Reach::Private),
            ("169.254.169.254", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("0.0.0.0", Reach::Private),
            ("255.255.255.255", Reach::Private),
            ("[::]", Reach::Private),
            ("[fd00::1]", Reach::Private),
            ("[fe80::1]", Reach::Private),
            ("[::ffff:10.0.0.1]", Reach::Private),
            ("[64:ff9b::a00:1]", Reach::Private),
            ("[64:ff9b::101:101]", Reach::Public),
            ("192.0.2.1", Reach::Private),
            ("192.0.1.1", Reach::Public),
            ("198.18.0.1", Reach::Private),
            ("203.0.113.5", Reach::Private),
            ("224.0.0.1", Reach::Private),
            ("[2001::1]", Reach::Private),
            ("[2001:db8::1]", Reach::Private),
            ("[2001:4860::1]", Reach::Public),
            ("[3fff::1]", Reach::Private),
            ("[ff02::1]", Reach::Private),
            ("[2002:7f00:1::]", Reach::Loopback),
            ("127.1", Reach::Private),
            ("0x7f000001", Reach::Private),
            ("2130706433", Reach::Private),
            ("0177.0.0.1", Reach::Private),
            ("example.com", Reach::Public),
            ("localhost.example.com", Reach::Public),
            ("93.184.216.34", Reach::Public),
            ("[2606:2800::1]", Reach::Public),
        ] {
            let text = std::format!("https://{host}/x");
            assert_eq!(Url::parse(&text).map(|url| Reach::of(&url)), Ok(reach), "{host}");
        }
    }

    // spec: A049 A205
    #[test]
    fn urls_of_strangers() {
        let (public, private, local) = ("https://example.com/mcp", "https://10.0.0.1/mcp", "http://127.0.0.1:99/mcp");
        for (text, server, expected) in [
            ("https://as.example/x?y", public, None),
            ("https://as.example/x", local, None),
            ("http://localhost:1/x", local, None),
            ("http://[::1]:1/x", local, None),
            ("https://192.168.0.1/x", private, None),
            ("https://as.example/x", private, None),
            ("https://192.168.0.1/x", local, None),
            ("https://localhost/x", public, Some(RefusedUrlError::Private)),
            ("http://localhost/x", public, Some(RefusedUrlError::Private)),
            ("https://127.0.0.1/x", private, Some(RefusedUrlError::Private)),
            ("https://10.0.0.1/x", public, Some(RefusedUrlError::Private)),
            ("https://0x7f.1/x", public, Some(RefusedUrlError::Private)),
            ("http://as.example/x", public, Some(RefusedUrlError::Insecure)),
            ("http://as.example/x", local, Some(RefusedUrlError::Insecure)),
            ("http://192.168.0.1/x", local, Some(RefusedUrlError::Insecure)),
            ("https://as.example/#x", public, Some(RefusedUrlError::Fragment)),
            ("javascript:alert(1)", public, Some(RefusedUrlError::Malformed)),
            ("file:///etc/passwd", public, Some(RefusedUrlError::Malformed)),
            ("data:text/html,x", public, Some(RefusedUrlError::Malformed)),
            ("//as.example/x", public, Some(RefusedUrlError::Malformed)),
            ("https://me:pw@as.example/x", public, Some(RefusedUrlError::Malformed)),
            ("https://as.example/x\r\nY: z", public, Some(RefusedUrlError::Malformed)),
            ("https://as.example/x ", public, Some(RefusedUrlError::Malformed)),
            ("", public, Some(RefusedUrlError::Malformed)),
        ] {
            assert_eq!(acceptable(text, server).err(), expected, "{text} for {server}");
        }
    }

    #[test]
    fn resources_are_prefixes() {
        let server = "https://h.example:8443/a/mcp";
        for resource in [
            server,
            "https://h.example:8443",
            "https://h.example:8443/",
            "https://h.example:8443/a",
            "https://h.example:8443/a/mcp/",
            "https://H.example:8443/a/mcp",
        ] {
            assert!(is_resource_of(resource, server), "{resource}");
        }
        for resource in [
            "https://h.example/a/mcp",
            "http://h.example:8443/a/mcp",
            "https://evil.example:8443/a/mcp",
            "https://h.example:8443/b",
            "https://h.example:8443/a/mcpx",
            "https://h.example:8443/a/mc",
            "https://h.example:8443/a/mcp/x",
            "https://h.example:8443/a/mcp#x",
            "https://h.example:8443/a/mcp?x",
            "https://h.example:8443@evil.example/a/mcp",
            " https://h.example:8443/a/mcp",
            "h.example:8443/a/mcp",
            "",
        ] {
            assert!(!is_resource_of(resource, server), "{resource}");
        }
        assert!(is_resource_of("https://h/mcp?t=1", "https://h/mcp?t=1"));
        assert!(is_resource_of("https://h/mcp", "https://h/mcp?t=1"));
        assert!(!is_resource_of("https://h/mcp?t=2", "https://h/mcp?t=1"));
    }
}
