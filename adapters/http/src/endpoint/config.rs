//! What an endpoint is told once.

use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;

/// When a result is the event of a stream rather than a body, beside those that have to be: an answer behind progress, log
/// messages or questions, or one that was put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Streams {
    /// Never.
    Needed,
    /// Where the client's `Accept` prefers `text/event-stream`, by weight or else by naming it first.
    Preferred,
}

/// How an [`Endpoint`](super::Endpoint) behaves. The defaults are those of a server for one machine.
///
/// ```
/// use mcp_sansio_http::endpoint::Config;
/// use mcp_sansio_http::mcp_sansio::json::Raw;
///
/// const CONFIG: Config<'static> = Config::DEFAULT
///     .hosts(&["board.local"])
///     .session_idle(600_000)
///     .resource_metadata(Raw::constant(r#"{"resource":"https://board.local/mcp"}"#));
/// assert_eq!((CONFIG.path, CONFIG.session_idle), ("/mcp", 600_000));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config<'c> {
    /// The path of Streamable HTTP; `/mcp`. Each path is also served with a slash at its end, or without it.
    pub path: &'c str,
    /// The path at which clients of 2024-11-05 open their stream; they may use `path` as well. `/sse`.
    pub old_path: &'c str,
    /// The path to which clients of 2024-11-05 post; `/messages`.
    pub post_path: &'c str,
    /// Hosts, without port, that requests may be for and pages may come from, beside this machine's own names. A web
    /// page elsewhere could otherwise reach a server on this machine (DNS rebinding).
    pub hosts: &'c [&'c str],
    /// Any address, like `192.168.1.7` or `[fe80::1]`, may stand in `Host`: for devices that do not know theirs when this
    /// is made; off by default. It does not help a web page elsewhere: to be taken for the server's own page it needs a
    /// name that it can point at the server, and `Origin` is checked on its own, by `hosts`.
    pub ip_hosts: bool,
    /// Any host may be asked for, any page may ask: for servers behind a proxy that checks.
    pub any_host: bool,
    /// Whether pages of the allowed origins may read answers (CORS).
    pub cors: bool,
    /// Whether there are sessions of the legacy revisions, if the service serves any of these; on by default. Without
    /// them `GET` and `DELETE` get 405, `Mcp-Session-Id` is ignored, and the paths of 2024-11-05 get 404.
    pub legacy: bool,
    /// When results are sent as event streams.
    pub streams: Streams,
    /// How long a session lasts without a request.
    pub session_idle: Millis,
    /// Where there is no room for another session, one makes way that nobody listens to and nothing is being done for:
    /// one that has sent nothing after `initialize` first, then the one that has been without a request for longest if
    /// that is at least so long. A minute; 0 for never. Its client gets 404, and opens another session.
    pub session_rest: Millis,
    /// Sessions that one principal may have; 1,000. For one more, one of its own makes way as for `session_rest`, or it is
    /// refused with 503. Clients without a principal cannot be told apart: they have the total and `session_rest` only.
    pub session_share: usize,
    /// Requests in flight that one session, or one principal with all its sessions, may have: those whose answers are put
    /// off, that ask, or that are answered in windows; 64, and no more than three quarters of the endpoint's places. One
    /// more is refused with 503, unless it is answered at once. Requests of 2026-07-28 without a principal cannot be told
    /// apart: together they may have all but one share.
    pub request_share: usize,
    /// Places for requests in flight that only requests which are answered at once may take; 1, which is enough, since they
    /// are answered one after the other. Where none of the others is free, requests whose client is gone make way: the one
    /// that has been gone for longest first.
    pub quick_places: usize,
    /// How long the answer to a request is kept for a client that is away, and how long questions to it are kept open.
    pub resume_within: Millis,
    /// How often a stream without events says that it is alive; 0 for never.
    pub keep_alive: Millis,
    /// How soon a client whose connection was closed shall come back, in milliseconds.
    pub retry: u32,
    /// Bytes of events that one [`pull`](super::Endpoint::pull) writes at the most; 64 KiB. Others have their turn
    /// before the next. At least 1,024: a smaller value counts as that.
    pub turn: usize,
    /// The description of this resource for authorization (RFC 9728), a JSON object; served at the well-known paths.
    pub resource_metadata: Option<Raw<'c>>,
}

impl Config<'static> {
    /// `/mcp` on this machine.
    pub const DEFAULT: Config<'static> = Config {
        path: "/mcp",
        old_path: "/sse",
        post_path: "/messages",
        hosts: &[],
        ip_hosts: false,
        any_host: false,
        cors: false,
        legacy: true,
        streams: Streams::Needed,
        session_idle: 3_600_000,
        session_rest: 60_000,
        session_share: 1_000,
        request_share: 64,
        quick_places: 1,
        resume_within: 60_000,
        keep_alive: 15_000,
        retry: 1_000,
        turn: 64 * 1024,
        resource_metadata: None,
    };
}

impl Default for Config<'static> {
    fn default() -> Self {
        Config::DEFAULT
    }
}

impl<'c> Config<'c> {
    /// With another path of Streamable HTTP.
    #[must_use]
    pub const fn path(self, path: &'c str) -> Self {
        Config { path, ..self }
    }

    /// With another path at which clients of 2024-11-05 open their stream.
    #[must_use]
    pub const fn old_path(self, path: &'c str) -> Self {
        Config { old_path: path, ..self }
    }

    /// With another path to which clients of 2024-11-05 post.
    #[must_use]
    pub const fn post_path(self, path: &'c str) -> Self {
        Config { post_path: path, ..self }
    }

    /// With these hosts beside this machine's own names, without ports.
    #[must_use]
    pub const fn hosts(self, hosts: &'c [&'c str]) -> Self {
        Config { hosts, ..self }
    }

    /// Whether any address may stand in `Host`, see [`ip_hosts`](Config::ip_hosts).
    #[must_use]
    pub const fn ip_hosts(self, yes: bool) -> Self {
        Config { ip_hosts: yes, ..self }
    }

    /// Whether `Host` and `Origin` are not checked at all.
    #[must_use]
    pub const fn any_host(self, yes: bool) -> Self {
        Config { any_host: yes, ..self }
    }

    /// Whether pages of the allowed origins may read answers.
    #[must_use]
    pub const fn cors(self, yes: bool) -> Self {
        Config { cors: yes, ..self }
    }

    /// Whether there are sessions of the legacy revisions.
    #[must_use]
    pub const fn legacy(self, yes: bool) -> Self {
        Config { legacy: yes, ..self }
    }

    /// With another rule for when results are event streams.
    #[must_use]
    pub const fn streams(self, streams: Streams) -> Self {
        Config { streams, ..self }
    }

    /// With another time, in milliseconds, for which a session lasts without a request.
    #[must_use]
    pub const fn session_idle(self, millis: Millis) -> Self {
        Config { session_idle: millis, ..self }
    }

    /// With another time, in milliseconds, after which a session makes way for a new one; 0 for never.
    #[must_use]
    pub const fn session_rest(self, millis: Millis) -> Self {
        Config { session_rest: millis, ..self }
    }

    /// With another number of sessions that one principal may have.
    #[must_use]
    pub const fn session_share(self, sessions: usize) -> Self {
        Config { session_share: sessions, ..self }
    }

    /// With another number of requests that one session, or one principal, may have in flight.
    #[must_use]
    pub const fn request_share(self, requests: usize) -> Self {
        Config { request_share: requests, ..self }
    }

    /// With another number of places that only requests which are answered at once may take.
    #[must_use]
    pub const fn quick_places(self, places: usize) -> Self {
        Config { quick_places: places, ..self }
    }

    /// With another time, in milliseconds, for which an answer is kept for a client that is away.
    #[must_use]
    pub const fn resume_within(self, millis: Millis) -> Self {
        Config { resume_within: millis, ..self }
    }

    /// With another time, in milliseconds, between signs of life on a stream without events; 0 for never.
    #[must_use]
    pub const fn keep_alive(self, millis: Millis) -> Self {
        Config { keep_alive: millis, ..self }
    }

    /// With another time, in milliseconds, after which clients come back.
    #[must_use]
    pub const fn retry(self, millis: u32) -> Self {
        Config { retry: millis, ..self }
    }

    /// With another limit on what one stream gives in a turn, in bytes, see [`turn`](Config::turn).
    #[must_use]
    pub const fn turn(self, bytes: usize) -> Self {
        Config { turn: bytes, ..self }
    }

    /// With a description of this resource for authorization (RFC 9728).
    #[must_use]
    pub const fn resource_metadata(self, metadata: Raw<'c>) -> Self {
        Config { resource_metadata: Some(metadata), ..self }
    }

    /// Whether a host, with or without a port, may be asked for.
    pub(crate) fn allows(&self, authority: &[u8]) -> bool {
        self.any_host || self.is_known(authority) || self.ip_hosts && is_address(without_port(authority))
    }

    /// Whether a page of this origin may ask. `null` is the origin of pages that hide theirs.
    pub(crate) fn allows_origin(&self, origin: &[u8]) -> bool {
        let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        self.any_host || authority.is_some_and(|authority| self.is_known(authority))
    }

    fn is_known(&self, authority: &[u8]) -> bool {
        let host = without_port(authority);
        let own = ["localhost", "127.0.0.1", "[::1]"];
        own.iter().chain(self.hosts).any(|known| known.as_bytes().eq_ignore_ascii_case(host))
    }
}

fn without_port(authority: &[u8]) -> &[u8] {
    let digits = authority.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match authority.split_at_checked(authority.len() - digits) {
        Some(([host @ .., b':'], [_, ..])) => host,
        _ => authority,
    }
}

/// Whether a host is an address: four numbers up to 255, or in brackets what no name can be.
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

/// Whether two paths are the same but for a slash at the end.
pub(crate) fn same_path(known: &str, path: &str) -> bool {
    known.strip_suffix('/').unwrap_or(known) == path.strip_suffix('/').unwrap_or(path)
}

/// How far an [`Endpoint`](super::Endpoint) may grow where there is an allocator.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "made with struct update syntax from its default")]
pub struct EndpointLimits {
    /// Sessions; 10,000.
    pub sessions: usize,
    /// Event streams, open ones and those that clients may come back to; 10,000.
    pub streams: usize,
    /// Bytes that have not been sent on all streams; 256 MiB.
    pub log: usize,
    /// Bytes that have not been sent on one stream; 16 MiB.
    pub stream: usize,
    /// Bytes that were sent and are kept for clients that come back; 1 MiB.
    pub keep: usize,
    /// Events that have not been sent on one stream; 10,000. With more, notifications and questions for it wait, or are
    /// not sent, as where there is no room; and requests of the HTTP+SSE transport, whose answers go to this stream, are
    /// refused with 503 before anything is done for them.
    pub unread: usize,
}

#[cfg(feature = "alloc")]
impl Default for EndpointLimits {
    fn default() -> Self {
        EndpointLimits {
            sessions: 10_000,
            streams: 10_000,
            log: 256 << 20,
            stream: 16 << 20,
            keep: 1 << 20,
            unread: 10_000,
        }
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
        let config = Config { hosts: &["Example.org"], ..Config::DEFAULT };
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
        let config = Config::DEFAULT.ip_hosts(true);
        for address in ["10.0.2.15", "192.168.1.255:80", "[fe80::1]", "[fe80::1]:8080", "[::ffff:10.0.0.1]", "0.0.0.0"]
        {
            assert!(config.allows(address.as_bytes()), "{address}");
            assert!(!Config::DEFAULT.allows(address.as_bytes()), "{address}");
            // It says nothing about who asks.
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
