//! Options of clients over HTTP, and the addresses of a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use mcp_sansio_http::client::HttpClientConfig;

use crate::http::tls::TlsConfig;
use crate::{ClientOptions, NetSocket};

/// Options of a client over HTTP.
///
/// ```
/// use mcp_sansio_host::HttpOptions;
/// let options = HttpOptions::new().header("Authorization", "Bearer secret");
/// ```
#[derive(Clone)]
#[must_use]
pub struct HttpOptions {
    pub(crate) options: ClientOptions,
    pub(crate) settle: Duration,
    pub(crate) config: HttpClientConfig,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tls: Option<TlsConfig>,
}

impl HttpOptions {
    /// Returns the defaults.
    pub const fn new() -> Self {
        HttpOptions {
            options: ClientOptions::DEFAULT,
            settle: Duration::from_secs(1),
            config: HttpClientConfig::DEFAULT,
            headers: Vec::new(),
            tls: None,
        }
    }

    mcp_sansio::setters! {
        /// Sets times and limits of the client.
        options(options: ClientOptions) => options = options;
        /// Sets times of connections, and which transport to expect. A configuration without
        /// [`names`](HttpClientConfig::names) gets those of tasks.
        config(config: HttpClientConfig) => config = config;
        /// Sets how long the first request in a session waits for the stream on which the server may send requests (up to
        /// 2025-11-25). Default: 1 second.
        settle_time(time: Duration) => settle = time;
    }

    /// Adds a header to every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the TLS configuration, for the server and for its authorization server. Default: the certificates of the
    /// system are trusted.
    #[cfg(feature = "tls")]
    pub fn tls(self, config: std::sync::Arc<rustls::ClientConfig>) -> Self {
        HttpOptions { tls: Some(config), ..self }
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions::new()
    }
}

// Writes the options without the headers, which may be secret.
mcp_sansio::debug_fields!(impl for HttpOptions { options, config });

/// The place of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HttpPlace {
    /// Addresses of the network.
    Tcp(HttpOrigin),
    /// The path of a Unix socket.
    Unix(std::path::PathBuf),
    /// A stream of bytes that the caller has: one connection, which cannot be opened again.
    Stream,
}

impl HttpPlace {
    /// Connects to a Unix socket.
    ///
    /// # Errors
    /// Those of the system, with the path. A stream that was used cannot be opened again; a place on the network is connected to
    /// by the driver.
    pub fn connect(&self) -> io::Result<NetSocket> {
        match self {
            #[cfg(unix)]
            HttpPlace::Unix(path) => crate::http::unix::connect(path).map(NetSocket::Unix),
            _ => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the stream carries one connection, and that has ended",
            )),
        }
    }

    /// Notes that the place cannot be reached: the name of a server is resolved again next time.
    pub(crate) fn forget(&mut self) {
        if let HttpPlace::Tcp(origin) = self {
            origin.forget();
        }
    }
}

/// The limit of connections to one server; further requests wait.
pub const CONNECTIONS: usize = 8;

/// The place of a server: its name, its port, and the addresses of the name. The name is resolved once, and again
/// when none of the addresses can be connected to.
#[derive(Clone, Debug)]
pub struct HttpOrigin {
    pub(crate) host: String,
    pub(crate) port: u16,
    addresses: Vec<SocketAddr>,
    /// The time for all addresses together.
    time: Duration,
}

/// The least time for each address: a name may have many addresses, and some may not answer.
const LEAST: Duration = Duration::from_millis(250);

impl HttpOrigin {
    /// Makes the place of a server: a name or an address, and a port. `time` is for all its addresses together.
    #[must_use]
    pub fn new(host: &str, port: u16, time: Duration) -> Self {
        HttpOrigin { host: host.to_owned(), port, addresses: Vec::new(), time }
    }

    /// Returns the addresses to try, one after the other, and how long each may take. Blocks while the name is
    /// resolved.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    pub fn addresses(&mut self) -> io::Result<(Vec<SocketAddr>, Duration)> {
        if self.addresses.is_empty() {
            let found = (self.host.as_str(), self.port).to_socket_addrs();
            let found = found.map_err(|error| io::Error::other(format!("no address for {}: {error}", self.host)))?;
            // `localhost` is this machine, in both families, even if the hosts file says something else.
            let here = [IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)];
            let local = here.iter().filter(|_| self.host.eq_ignore_ascii_case("localhost"));
            for address in found.chain(local.map(|address| SocketAddr::new(*address, self.port))) {
                if !self.addresses.contains(&address) {
                    self.addresses.push(address);
                }
            }
        }
        Ok((self.addresses.clone(), (self.time / self.addresses.len().max(1) as u32).max(LEAST)))
    }

    /// Notes that this address works: it is tried first next time.
    pub fn works(&mut self, address: SocketAddr) {
        if let Some(at) = self.addresses.iter().position(|known| *known == address) {
            self.addresses[..=at].rotate_right(1);
        }
    }

    /// Notes that no address works: the name is resolved again next time.
    pub fn forget(&mut self) {
        self.addresses.clear();
    }
}

/// Adds the address to the error of connecting to it.
#[must_use]
pub fn connect_error(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a place that cannot be reached is resolved again.
    #[test]
    fn addresses_are_forgotten() {
        let mut origin = HttpOrigin::new("127.0.0.1", 80, Duration::ZERO);
        let old = SocketAddr::from(([192, 0, 2, 1], 80));
        origin.addresses.push(old);
        let mut place = HttpPlace::Tcp(origin);
        let mut addresses = |forgets: bool| {
            if forgets {
                place.forget();
            }
            let HttpPlace::Tcp(origin) = &mut place else { unreachable!() };
            origin.addresses().unwrap().0
        };
        assert_eq!(addresses(false), [old]);
        assert_eq!(addresses(true), [SocketAddr::from(([127, 0, 0, 1], 80))]);
    }

    #[test]
    fn the_address_that_works_comes_first() {
        let mut origin = HttpOrigin::new("127.0.0.1", 80, Duration::from_secs(3));
        let [a, b, c] = [1, 2, 3].map(|last| SocketAddr::from(([192, 0, 2, last], 80)));
        origin.addresses.extend([a, b, c]);
        for (works, order) in [(c, [c, a, b]), (a, [a, c, b]), (a, [a, c, b]), (b, [b, a, c])] {
            origin.works(works);
            assert_eq!(origin.addresses().unwrap(), (order.to_vec(), Duration::from_secs(1)));
        }
        origin.works(SocketAddr::from(([192, 0, 2, 4], 80)));
        assert_eq!(origin.addresses().unwrap().0, [b, a, c]);
        // Each has some time.
        origin.time = Duration::from_millis(300);
        assert_eq!(origin.addresses().unwrap().1, LEAST);
    }

    #[test]
    fn the_name_localhost_has_both_families_once() {
        for (name, port) in [("localhost", 80), ("LOCALHOST", 81)] {
            let (addresses, each) = HttpOrigin::new(name, port, Duration::from_secs(60)).addresses().unwrap();
            for address in [IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)] {
                let known = addresses.iter().filter(|known| **known == SocketAddr::new(address, port));
                assert_eq!(known.count(), 1, "{addresses:?}");
            }
            assert_eq!(each, Duration::from_secs(60) / addresses.len() as u32);
        }
        let (addresses, each) = HttpOrigin::new("127.0.0.2", 80, Duration::from_secs(60)).addresses().unwrap();
        assert_eq!((addresses, each), (vec![SocketAddr::from(([127, 0, 0, 2], 80))], Duration::from_secs(60)));
    }
}
