//! The builder of HTTP servers: one text for all drivers.

/// Makes the `HttpServer` of a driver: its struct, and all methods but `serve` and those that take streams. `$listener` has
/// `new(HttpListener)` and `local_addr()`, each with an `io::Result`.
///
/// It is a macro because the methods of a type are those of its own crate, and `serve` is a future in one driver and a call in
/// the other.
#[macro_export]
macro_rules! http_server {
    ($listener:ty) => {
        /// An HTTP server that is bound but does not serve yet. By default it answers only requests whose `Host` is a name of
        /// this machine; the [options](HttpServer::options) can allow others.
        #[must_use = "call `serve`"]
        pub struct HttpServer<'a, S: 'static> {
            listener: $listener,
            setup: $crate::HttpSetup<S>,
            checks: Checks<'a>,
        }

        /// The application's check of each request's head, before the protocol handles it.
        type Authorize<'a> = &'a (dyn Fn(&RequestHead<'_>) -> Access<'a> + Sync);

        /// The application's check of each message.
        type Permit<'a> = &'a (dyn Fn(&MessageAccess<'_>) -> Access<'a> + Sync);

        /// The checks of the application.
        #[derive(Clone, Copy, Default)]
        struct Checks<'a> {
            authorize: Option<Authorize<'a>>,
            permit: Option<Permit<'a>>,
        }

        impl Checks<'_> {
            /// Calls `work` with the application.
            fn with<S, R>(
                self,
                service: &$crate::mcp_sansio::service::Service<'_, S>,
                state: &mut S,
                work: impl FnOnce(App<'_, S>) -> R,
            ) -> R {
                let asks = move |head: &RequestHead<'_>| {
                    self.authorize.map_or(Access::Granted { principal: None }, |authorize| authorize(head))
                };
                let app = App::new(service, state).authorize(&asks);
                let permits = move |message: &MessageAccess<'_>| {
                    self.permit.map_or(Access::Granted { principal: None }, |permit| permit(message))
                };
                let app = if self.permit.is_some() { app.permit(&permits) } else { app };
                work(app)
            }
        }

        impl<S> ::std::fmt::Debug for HttpServer<'_, S> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct("HttpServer")
                    .field("listener", &self.listener)
                    .field("options", &self.setup.options)
                    .finish_non_exhaustive()
            }
        }

        impl<'a, S> HttpServer<'a, S> {
            /// Binds a socket to the address. Blocks while a name is resolved; an IP address does not block.
            ///
            /// # Errors
            /// If the address cannot be resolved or bound.
            pub fn bind(address: impl ::std::net::ToSocketAddrs) -> ::std::io::Result<Self> {
                Ok(HttpServer::new(<$listener>::new($crate::HttpListener::bind(address)?)?))
            }

            /// Binds a Unix socket at `path`, a file that only its owner may use: its mode is `0o600`. Clients of this project
            /// reach it as `unix:/run/mcp.sock`, others with `Host: localhost`, such as
            /// `curl --unix-socket /run/mcp.sock http://localhost/mcp`.
            ///
            /// A socket on which no process listens any more is replaced. When the server has stopped, the file is removed.
            /// `Host` and `Origin` are checked as over TCP. There is no TLS: the bytes do not leave this machine.
            ///
            /// # Errors
            /// As [`bind_unix_with`](HttpServer::bind_unix_with).
            #[cfg(unix)]
            pub fn bind_unix(path: impl AsRef<::std::path::Path>) -> ::std::io::Result<Self> {
                HttpServer::bind_unix_with(path, 0o600)
            }

            /// Binds a Unix socket as [`bind_unix`](HttpServer::bind_unix) does, with another mode of its file: `0o660` lets the
            /// group connect too. The file has this mode before the first client can connect.
            ///
            /// # Errors
            /// [`AddrInUse`](std::io::ErrorKind::AddrInUse) if a process listens there;
            /// [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) if the file is no socket;
            /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the path is too long (107 bytes on Linux); otherwise the error
            /// of the system. Each names the path.
            #[cfg(unix)]
            pub fn bind_unix_with(path: impl AsRef<::std::path::Path>, mode: u32) -> ::std::io::Result<Self> {
                Ok(HttpServer::new(<$listener>::new($crate::HttpListener::bind_unix(path.as_ref(), mode)?)?))
            }

            fn new(listener: $listener) -> Self {
                HttpServer { listener, setup: $crate::HttpSetup::new(), checks: Checks::default() }
            }

            /// Returns the address that the server listens on.
            ///
            /// # Errors
            /// If the socket cannot be asked, or is not one of TCP.
            pub fn local_addr(&self) -> ::std::io::Result<::std::net::SocketAddr> {
                self.listener.local_addr()
            }

            /// Sets limits and security.
            pub fn options(mut self, options: $crate::HttpServerOptions) -> Self {
                self.setup.options = options;
                self
            }

            /// Sets the channel of late answers, see [`channel`](crate::channel).
            pub fn late(mut self, late: $crate::LateReceiver<S>) -> Self {
                self.setup.late = Some(late);
                self
            }

            /// Calls `look` each `period` while an event stream is open; it can [`publish`](Endpoint::publish) changes.
            pub fn watch(mut self, period: ::std::time::Duration, look: fn(&mut S, &mut $crate::HttpEndpoint)) -> Self {
                self.setup.watch = Some((period, look));
                self
            }

            /// Calls `tick` after each turn of the server with the time in milliseconds, and at the time that the last call
            /// returned. It may answer and publish. For work that [`late`](HttpServer::late) and [`watch`](HttpServer::watch) do not
            /// cover. Requests about which `authorize` has answered `Access::Later` are given to
            /// it again after each call.
            pub fn tick(
                mut self,
                tick: impl FnMut(
                    &mut App<'_, S>,
                    &mut $crate::HttpEndpoint,
                    $crate::mcp_sansio::server::Millis,
                ) -> Option<$crate::mcp_sansio::server::Millis>
                + Send
                + 'static,
            ) -> Self {
                self.setup.tick = Some(Box::new(tick));
                self
            }

            /// Calls `authorize` for each request. Nothing else runs meanwhile, so it must not block: look up a token in memory, or
            /// check a signature. It may answer `Access::Later`, start a thread or a task, and be
            /// asked again after `LateSender::decided`.
            pub fn authorize(mut self, authorize: &'a (dyn Fn(&RequestHead<'_>) -> Access<'a> + Sync)) -> Self {
                self.checks.authorize = Some(authorize);
                self
            }

            /// Calls `permit` for each message of an admitted request, see [`App::permit`]. It must not block.
            pub fn permit(mut self, permit: &'a (dyn Fn(&MessageAccess<'_>) -> Access<'a> + Sync)) -> Self {
                self.checks.permit = Some(permit);
                self
            }

            /// Makes the server one of several processes that serve the same clients: the `link()` of
            /// `mcp_sansio_fleet::RedisFleet`, which needs the server's [`late`](HttpServer::late) too. See [`Endpoint::fleet`].
            pub fn fleet(mut self, fleet: &'static mut dyn Fleet) -> Self {
                self.setup.fleet = Some(fleet);
                self
            }

            /// Sets how long requests in flight may take to finish when the server is stopped. Default: 5 seconds. Meanwhile the
            /// listener is closed, listens and event streams without a request are ended, connections are closed after their
            /// answers, and further requests on them get 503. Requests that are left then get an error, and 5 seconds more to be
            /// sent. A server that has nothing left to send ends at once.
            pub fn grace(mut self, grace: ::std::time::Duration) -> Self {
                self.setup.grace = grace;
                self
            }

            /// Returns a handle that stops the server.
            #[must_use]
            pub fn stopper(&self) -> $crate::Stopper {
                self.setup.stopper.clone()
            }
        }
    };
}
