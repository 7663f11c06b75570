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
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config<'c> {
    /// The path of Streamable HTTP.
    pub path: &'c str,
    /// The path at which clients of 2024-11-05 open their stream; they may use `path` as well.
    pub old_path: &'c str,
    /// The path to which clients of 2024-11-05 post.
    pub post_path: &'c str,
    /// Hosts, without port, that requests may be for and pages may come from, beside this machine's own names. A web
    /// page elsewhere could otherwise reach a server on this machine (DNS rebinding).
    pub hosts: &'c [&'c str],
    /// Any host may be asked for, any page may ask: for servers behind a proxy that checks.
    pub any_host: bool,
    /// Whether pages of the allowed origins may read answers (CORS).
    pub cors: bool,
    /// Whether there are sessions of the legacy revisions at all.
    pub legacy: bool,
    /// When results are sent as event streams.
    pub streams: Streams,
    /// How long a session lasts without a request.
    pub session_idle: Millis,
    /// Where there is no room for another session, the one that has been without a request for longest makes way if that
    /// is at least so long, nobody listens to it and nothing is being done for it; 0 for never. For devices, which have
    /// few sessions, and whose clients forget to end theirs.
    pub session_rest: Millis,
    /// How long the answer to a request is kept for a client that is away.
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
        any_host: false,
        cors: false,
        legacy: true,
        streams: Streams::Needed,
        session_idle: 3_600_000,
        session_rest: 0,
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

impl Config<'_> {
    /// Whether a host, with or without a port, may be asked for.
    pub(crate) fn allows(&self, authority: &[u8]) -> bool {
        let host = without_port(authority);
        let own = ["localhost", "127.0.0.1", "[::1]"];
        self.any_host || own.iter().chain(self.hosts).any(|known| known.as_bytes().eq_ignore_ascii_case(host))
    }

    /// Whether a page of this origin may ask. `null` is the origin of pages that hide theirs.
    pub(crate) fn allows_origin(&self, origin: &[u8]) -> bool {
        let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        self.any_host || authority.is_some_and(|authority| self.allows(authority))
    }
}

fn without_port(authority: &[u8]) -> &[u8] {
    let digits = authority.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match authority.split_at_checked(authority.len() - digits) {
        Some(([host @ .., b':'], [_, ..])) => host,
        _ => authority,
    }
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
        assert!(Config { any_host: true, ..config }.allows(b"\xff"));
    }
}
