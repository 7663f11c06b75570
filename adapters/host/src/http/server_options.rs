//! Options of HTTP servers.

use mcp_sansio::server::{MessageLimits, Seal, Server};
use mcp_sansio_http::endpoint::{Endpoint, EndpointConfig, EndpointLimits, SessionSeal};
use mcp_sansio_http::host::HostLimits;
use mcp_sansio_http::http1;

/// Limits and security of an HTTP server. By default it answers only requests whose `Host` is a name of this machine
/// (against [DNS
/// rebinding](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning)).
///
/// ```
/// use mcp_sansio_host::HttpServerOptions;
/// let options = HttpServerOptions::new().connections(100).spare_descriptors(8);
/// ```
#[derive(Clone)]
#[must_use]
#[non_exhaustive]
pub struct HttpServerOptions {
    /// See [`config`](HttpServerOptions::config).
    pub config: EndpointConfig<'static>,
    /// See [`limits`](HttpServerOptions::limits).
    pub limits: MessageLimits,
    /// See [`endpoint_limits`](HttpServerOptions::endpoint_limits).
    pub endpoint_limits: EndpointLimits,
    /// See [`wire_limits`](HttpServerOptions::wire_limits).
    pub wire_limits: http1::ConnectionLimits,
    /// See [`connections`](HttpServerOptions::connections).
    pub connections: usize,
    /// See [`input_total`](HttpServerOptions::input_total).
    pub input_total: usize,
    /// See [`output_total`](HttpServerOptions::output_total).
    pub output_total: usize,
    /// See [`spare_descriptors`](HttpServerOptions::spare_descriptors).
    pub spare_descriptors: usize,
    /// See [`seal`](HttpServerOptions::seal).
    pub seal: Option<&'static (dyn Seal + Sync)>,
    /// See [`session_seal`](HttpServerOptions::session_seal).
    pub session_seal: Option<SessionSeal<'static>>,
}

impl HttpServerOptions {
    /// Returns the defaults.
    pub fn new() -> Self {
        HttpServerOptions {
            config: EndpointConfig::DEFAULT,
            limits: MessageLimits::default(),
            endpoint_limits: EndpointLimits::default(),
            wire_limits: http1::ConnectionLimits::DEFAULT,
            connections: 10_000,
            input_total: 256 << 20,
            output_total: 256 << 20,
            spare_descriptors: 32,
            seal: None,
            session_seal: None,
        }
    }

    mcp_sansio::setters! {
        /// Sets paths, hosts and times.
        config(config: EndpointConfig<'static>) => config = config;
        /// Sets limits of messages, of requests to the client and of subscriptions. The body of a request may have
        /// [`MessageLimits::message`] bytes, by default 16 MiB; a longer one gets 413.
        limits(limits: MessageLimits) => limits = limits;
        /// Sets limits of sessions and streams.
        endpoint_limits(limits: EndpointLimits) => endpoint_limits = limits;
        /// Sets limits of connections: the size of heads, times without a byte.
        wire_limits(limits: http1::ConnectionLimits) => wire_limits = limits;
        /// Sets the limit of connections; further ones wait in the listener's queue. Default: 10,000.
        connections(most: usize) => connections = most.max(1);
        /// Sets how many bytes the incoming requests of all connections may take together. Default: 256 MiB. A request
        /// that does not fit gets 503. A request of up to [`http1::ConnectionLimits::head`] bytes, with its body, always fits.
        input_total(bytes: usize) => input_total = bytes;
        /// Sets how many bytes the unsent answers of all connections may take together. Default: 256 MiB. Beyond the
        /// limit, the server closes the connection with the most unsent bytes, until the rest fits.
        output_total(bytes: usize) => output_total = bytes;
        /// Sets how many descriptors stay free for everything else in the process, such as handlers that open files.
        /// Default: 32. While fewer are free, further connections wait in the listener's queue. The count goes down from
        /// the soft limit (`RLIMIT_NOFILE`) at the time when the server begins to serve; at most half of it is kept free.
        /// No effect on systems other than Unix.
        spare_descriptors(spare: usize) => spare_descriptors = spare;
        /// Sets the protection of `requestState` (2026-07-28), which travels through the client: `HmacSeal` of
        /// `mcp-sansio-http` with its feature `seal`, or an implementation of your own. It gets the time of the system in milliseconds since 1970.
        seal(seal: &'static (dyn Seal + Sync)) => seal = Some(seal);
        /// Makes session ids (up to 2025-11-25) that other processes with the same key know too. They need the same clock.
        session_seal(seal: SessionSeal<'static>) => session_seal = Some(seal);
    }

    /// Makes the endpoint of a server with these options.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint<'static> {
        let engine = Server::growing(self.limits);
        let engine = match self.seal {
            Some(seal) => engine.seal(seal),
            None => engine,
        };
        let endpoint = Endpoint::growing(self.config, engine, self.endpoint_limits);
        match self.session_seal {
            Some(seal) => endpoint.seal_sessions(seal),
            None => endpoint,
        }
    }

    /// Returns the limits of the connections of a server with these options.
    #[must_use]
    pub(crate) const fn host_limits(&self) -> HostLimits {
        HostLimits {
            wire: self.wire_limits.body(self.limits.message),
            message: self.limits.message,
            connections: self.connections,
            input_total: self.input_total,
            output_total: self.output_total,
        }
    }
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        HttpServerOptions::new()
    }
}

mcp_sansio::debug_fields!(impl for HttpServerOptions { config, connections });

/// The descriptors that a server's connections leave free: all from a certain number on. The system gives the lowest
/// free number, so the number of a new socket shows how many are in use.
#[derive(Clone, Copy, Debug)]
pub struct SpareDescriptors {
    #[cfg_attr(not(unix), allow(dead_code, reason = "only Unix systems number descriptors"))]
    first: usize,
}

impl SpareDescriptors {
    /// Returns the last `spare` descriptors that the process may have (`RLIMIT_NOFILE`), at most half of them.
    pub(crate) fn of(spare: usize) -> Self {
        #[cfg(unix)]
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        #[cfg(not(unix))]
        let most = None::<u64>;
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        SpareDescriptors { first: most.saturating_sub(spare).max(most / 2) }
    }

    /// Returns whether the socket has one of these numbers: the server then accepts no further connection for now.
    #[cfg(unix)]
    #[must_use]
    pub fn has(&self, socket: &impl std::os::fd::AsFd) -> bool {
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
        usize::try_from(number).is_ok_and(|number| number >= self.first)
    }

    /// Returns `false`: only Unix systems number descriptors.
    #[cfg(not(unix))]
    #[must_use]
    pub const fn has<T>(&self, _: &T) -> bool {
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn spare_descriptors_begin_at_a_number() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let number = usize::try_from(socket.as_raw_fd()).unwrap();
        for (first, has) in [(0, true), (number - 1, true), (number, true), (number + 1, false), (usize::MAX, false)] {
            assert_eq!(SpareDescriptors { first }.has(&socket), has, "{first} {number}");
        }
        // At most half of them are spared.
        let (none, some, all) = (SpareDescriptors::of(0), SpareDescriptors::of(1), SpareDescriptors::of(usize::MAX));
        assert_eq!((none.first - some.first, all.first), (1, none.first / 2));
    }

    #[test]
    fn the_body_of_a_request_is_as_large_as_a_message() {
        let options = HttpServerOptions::new().limits(MessageLimits { message: 1234, ..MessageLimits::default() });
        assert_eq!(options.host_limits().wire, http1::ConnectionLimits::DEFAULT.body(1234));
        assert_eq!(HttpServerOptions::new().connections(0).connections, 1);
    }
}
