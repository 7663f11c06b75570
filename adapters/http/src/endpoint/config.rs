//! Options and limits of an endpoint.

use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;

/// The use of event streams for results that may also be a JSON body. A result after progress, log messages or
/// requests to the client, and a result that was put off, always are events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum StreamPolicy {
    /// Sends such a result as a body.
    Needed,
    /// Sends it as an event if the client's `Accept` prefers `text/event-stream`, by weight, else by naming it
    /// first.
    Preferred,
    /// As `Needed`. The head of the stream for an answer of 2026-07-28 that was put off goes out with the first message or
    /// keep-alive, not before: an error that comes first is a body with its status, 404 or 400, as at once. For gateways, whose
    /// answers all come late. With an `HttpHost`; a response with further headers, as for CORS, begins at once.
    Deferred,
}

mcp_sansio::options! {
    /// Options of an [`Endpoint`](super::Endpoint). The defaults suit a server for the same machine.
    ///
    /// ```
    /// use mcp_sansio_http::endpoint::EndpointConfig;
    /// use mcp_sansio_http::mcp_sansio::json::Raw;
    ///
    /// const CONFIG: EndpointConfig<'static> = EndpointConfig::DEFAULT
    ///     .hosts(&["board.local"])
    ///     .session_idle(600_000)
    ///     .resource_metadata(Raw::constant(r#"{"resource":"https://board.local/mcp"}"#));
    /// assert_eq!((CONFIG.path, CONFIG.session_idle), ("/mcp", 600_000));
    /// ```
    #[derive(Clone, Copy, Debug)]
    pub struct EndpointConfig<'c> {
        /// The path of Streamable HTTP. Each path is served with and without a slash at its end. Default: `/mcp`.
        path: &'c str = "/mcp",
        /// The path at which clients of 2024-11-05 open their stream; they may also use `path`. Default: `/sse`.
        old_path: &'c str = "/sse",
        /// The path to which clients of 2024-11-05 post. Default: `/messages`.
        post_path: &'c str = "/messages",
        /// Hosts without port that `Host` and `Origin` may name besides the names of this machine. Other hosts get
        /// 403: otherwise a foreign web page could reach a server on this machine (DNS rebinding). Default: none.
        hosts: &'c [&'c str] = &[],
        /// `true`: allows any address in `Host`, like `192.168.1.7` or `[fe80::1]`. For devices that do not know
        /// their address in advance. This gives a foreign web page nothing: to pass for the server's own page it
        /// needs a name that points at the server, and `hosts` still checks `Origin`. Default: `false`.
        ip_hosts: bool = false,
        /// `true`: allows any `Host` and `Origin`, for servers behind a proxy that checks them. Default: `false`.
        any_host: bool = false,
        /// `true`: pages of allowed origins may read responses (CORS). Default: `false`.
        cors: bool = false,
        /// `true`: serves the revisions with sessions, if the service has one of them. `false`: `GET` and `DELETE`
        /// get 405, `Mcp-Session-Id` is ignored, and the paths of 2024-11-05 get 404. Default: `true`.
        legacy: bool = true,
        /// The use of event streams for results. Default: [`StreamPolicy::Needed`].
        streams: StreamPolicy = StreamPolicy::Needed,
        /// Milliseconds that a session lasts without a request. Default: one hour.
        session_idle: Millis = 3_600_000,
        /// Milliseconds without a request after which a session may be ended for a new one, if there is no room. Only
        /// sessions without stream and request in flight are ended: first one that sent nothing after `initialize`,
        /// at any age, then the one that has been idle longest. Its client gets 404 and opens another session. 0 ends
        /// none. Default: one minute.
        session_rest: Millis = 60_000,
        /// Number of sessions of one principal. For one more, one of its own is ended as for `session_rest`, or the
        /// request gets 503. Clients without a principal cannot be distinguished: for them only the total and
        /// `session_rest` count. When a session begins, those of its principal are counted: a large number costs time. Default:
        /// 1,000.
        session_share: usize = 1_000,
        /// Number of requests in flight of one session, or of one principal with all its sessions: answers that were
        /// put off, that wait for the client, or that go out in windows. At most three quarters of the endpoint's
        /// places. One more gets 503, unless it is answered at once. Requests of 2026-07-28 without a principal
        /// cannot be distinguished: together they may have all but one share. Default: 64.
        request_share: usize = 64,
        /// Places for requests in flight that are reserved for requests answered at once. One is enough, since these
        /// are answered one after the other. If no other place is free, requests whose client is gone are given up:
        /// first the one whose client has been gone longest. Default: 1.
        quick_places: usize = 1,
        /// Milliseconds that an answer is kept for a client that is away, and that a request to it stays open.
        /// Default: one minute.
        resume_within: Millis = 60_000,
        /// Milliseconds without an event after which a stream sends a comment; 0 for never. Default: 15 seconds.
        keep_alive: Millis = 15_000,
        /// Milliseconds after which a client whose connection was closed should come back (`retry`). Default: 1
        /// second.
        retry: u32 = 1_000,
        /// Largest number of bytes that one [`pull`](super::Endpoint::pull) writes, before other streams have a turn.
        /// At least 1,024: a smaller value counts as that. Default: 64 KiB.
        turn: usize = 64 * 1024,
    }
    by hand {
        /// The metadata of the protected resource (RFC 9728), a JSON object, served at the well-known paths. Default:
        /// none.
        resource_metadata: Option<Raw<'c>> = None,
    }
}

impl<'c> EndpointConfig<'c> {
    /// Sets the metadata of the protected resource (RFC 9728).
    #[must_use]
    pub const fn resource_metadata(self, metadata: Raw<'c>) -> Self {
        EndpointConfig { resource_metadata: Some(metadata), ..self }
    }

    /// Returns `true` if an event stream of which nothing was sent may become a body.
    pub(crate) fn defers(&self) -> bool {
        // Without keep-alives nothing would say that the server is there.
        cfg!(feature = "alloc") && self.streams == StreamPolicy::Deferred && self.keep_alive > 0
    }

    /// Returns `true` if requests may name this host, with or without a port.
    pub(crate) fn allows(&self, authority: &[u8]) -> bool {
        self.any_host || self.is_known(authority) || self.ip_hosts && is_address(without_port(authority))
    }

    /// Returns `true` if a page of this origin may send requests. `null` is the origin of pages that hide theirs.
    pub(crate) fn allows_origin(&self, origin: &[u8]) -> bool {
        let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        self.any_host || authority.is_some_and(|authority| self.is_known(authority))
    }

    fn is_known(&self, authority: &[u8]) -> bool {
        let own = ["localhost", "127.0.0.1", "[::1]"];
        own.iter().chain(self.hosts).any(|known| {
            let (host, port) = authority.split_at_checked(known.len()).unwrap_or((b"", authority));
            (host == known.as_bytes() || host.eq_ignore_ascii_case(known.as_bytes())) && is_port(port)
        })
    }
}

/// Returns `true` if nothing is after a host, or a port.
fn is_port(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [b':', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn without_port(authority: &[u8]) -> &[u8] {
    let digits = authority.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match authority.split_at_checked(authority.len() - digits) {
        Some(([host @ .., b':'], [_, ..])) => host,
        _ => authority,
    }
}

/// Returns `true` if a host is an address: four numbers up to 255, or a text in brackets.
fn is_address(host: &[u8]) -> bool {
    if let [b'[', address @ .., b']'] = host {
        let is_part = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
        return address.contains(&b':') && address.iter().all(is_part);
    }
    let is_number = |part: &[u8]| {
        matches!(part, [_] | [b'1'..=b'9', _] | [b'1'..=b'2', _, _])
            && core::str::from_utf8(part).is_ok_and(|part| part.parse::<u8>().is_ok())
    };
    host.split(|byte| *byte == b'.').count() == 4 && host.split(|byte| *byte == b'.').all(is_number)
}

/// Returns `true` if two paths are equal except for a slash at the end.
pub(crate) fn same_path(known: &str, path: &str) -> bool {
    known.strip_suffix('/').unwrap_or(known) == path.strip_suffix('/').unwrap_or(path)
}

#[cfg(feature = "alloc")]
mcp_sansio::options! {
    /// Limits of an [`Endpoint`](super::Endpoint) with memory from the allocator.
    ///
    /// ```
    /// use mcp_sansio_http::endpoint::EndpointLimits;
    /// let limits = EndpointLimits::DEFAULT.sessions(100).log(1 << 20);
    /// assert_eq!((limits.sessions, limits.streams), (100, 10_000));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct EndpointLimits {
        /// Number of sessions. Default: 10,000.
        sessions: usize = 10_000,
        /// Number of event streams, open ones and those that clients may come back to. Default: 10,000.
        streams: usize = 10_000,
        /// Number of unsent bytes of all streams. Default: 256 MiB.
        log: usize = 256 << 20,
        /// Number of unsent bytes of one stream. Beside streams that have a half of [`log`](EndpointLimits::log) unsent, it is a
        /// quarter of that, beside three quarters a sixteenth, and so on: stalled streams leave room for others.
        /// One of at most `log / streams` bytes stays whole. Default: 16 MiB.
        stream: usize = 16 << 20,
        /// Number of sent bytes kept for clients that come back. Default: 1 MiB.
        keep: usize = 1 << 20,
        /// Number of unsent events of one stream. Beyond it, notifications and requests for the stream wait or are
        /// not sent, and requests of HTTP with SSE, whose answers go to this stream, get 503 before they reach a
        /// handler. Default: 10,000.
        unread: usize = 10_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn ports() {
        for (authority, host) in [
            ("localhost:80", "localhost"),
            ("localhost", "localhost"),
            ("localhost:", "localhost:"),
            ("localhost:8a", "localhost:8a"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
            ("a:1:2", "a:1"),
            ("127.0.0.1", "127.0.0.1"),
            (":1", ""),
            ("1", "1"),
            ("", ""),
        ] {
            assert_eq!(without_port(authority.as_bytes()), host.as_bytes(), "{authority}");
        }
    }

    #[test]
    fn hosts_and_origins() {
        let config = EndpointConfig { hosts: &["Example.org"], ..EndpointConfig::DEFAULT };
        for allowed in [&b"LOCALHOST:1"[..], b"127.0.0.1", b"[::1]:80", b"example.ORG"] {
            assert!(config.allows(allowed));
        }
        for other in [&b"example.com"[..], b"", b"localhost.example.com", b"localhost\xff"] {
            assert!(!config.allows(other));
        }
        assert!(config.allows_origin(b"https://example.org:444") && config.allows_origin(b"http://localhost"));
        for other in [&b"null"[..], b"ftp://localhost", b"localhost", b"http://example.com"] {
            assert!(!config.allows_origin(other));
        }
        assert!(config.any_host(true).allows(b"\xff"));
    }

    #[test]
    fn addresses() {
        let config = EndpointConfig::DEFAULT.ip_hosts(true);
        for address in ["10.0.2.15", "192.168.1.255:80", "[fe80::1]", "[fe80::1]:8080", "[::ffff:10.0.0.1]", "0.0.0.0"]
        {
            assert!(config.allows(address.as_bytes()), "{address}");
            assert!(!EndpointConfig::DEFAULT.allows(address.as_bytes()), "{address}");
            // An address in `Host` does not allow a page of that address.
            assert!(!config.allows_origin(format!("http://{address}").as_bytes()), "{address}");
        }
        for name in [
            "example.com",
            "10.0.2",
            "10.0.2.15.com",
            "10.0.2.256",
            "10.0.2.015",
            "1.2.3.4.5",
            "1.2.3.",
            "a.0.0.1",
            "+1.0.0.1",
            "[]",
            "[example]",
            "[fe80::1",
            "fe80::1",
            "",
            "1.2.3.4:x",
            "[fe80::1%25eth0]",
        ] {
            assert!(!config.allows(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn slashes() {
        for (known, path, same) in [
            ("/mcp", "/mcp", true),
            ("/mcp", "/mcp/", true),
            ("/mcp/", "/mcp", true),
            ("/", "/", true),
            ("/", "//", false),
            ("/mcp", "/mcp//", false),
            ("/mcp", "/", false),
            ("/mcp", "/MCP", false),
        ] {
            assert_eq!(same_path(known, path), same, "{known} {path}");
        }
    }
}
