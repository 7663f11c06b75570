//! A client over HTTP: what is decided about it, without sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{Client, ClientHandle, ClientHandler, ClientInfo, TransportError};
use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;
use mcp_sansio_http::client::{
    ChallengeAnswer, ChallengedRequest, HeaderWriter, HttpClient, HttpHooks, HttpTransport, OutgoingRequest, Redacted,
};

use super::authorization::{AuthorizationDriver, AuthorizationFlow};
use super::{CONNECTIONS, HttpOptions, HttpOrigin, HttpPlace};
use crate::http::tls::{TlsConfig, TlsConnector};
use crate::{ClientError, Direction, ExcludedTool, IN_FLIGHT, TransportState};

/// A client over HTTP without its sockets: [`HttpOptions::open`](crate::HttpOptions::open) makes it. `A` decides about
/// authorization.
pub struct HttpSession<'m, A, T> {
    /// The client and its connections.
    pub web: HttpClient<'m>,
    /// The place to connect to.
    pub place: HttpPlace,
    /// Decides about authorization.
    pub hooks: A,
    /// The error of the last connection that failed.
    pub trouble: String,
    /// Makes connections secure; set for `https`.
    pub secure: Option<TlsConnector>,
    /// The configuration of [`HttpOptions::tls`](crate::HttpOptions::tls), which authorization uses too.
    #[cfg_attr(not(all(feature = "tls", unix)), allow(dead_code, reason = "authorization uses it"))]
    tls: Option<TlsConfig>,
    flow: Option<Arc<dyn AuthorizationFlow>>,
    settle_time: Duration,
    trace: Option<T>,
    closed: bool,
    /// The time until which the end of the session is waited for.
    goodbye: Option<Millis>,
}

impl<'m, A: AuthorizationDriver, T: FnMut(Direction, &[u8])> HttpSession<'m, A, T> {
    /// Handles at most one event, as [`HttpClient::run`] does.
    pub fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> bool {
        let HttpSession { web, hooks, trace, flow, .. } = self;
        web.run(now, handler, &mut Hooks { driver: hooks, trace, flow: flow.as_ref() })
    }

    /// Notes an address at which the server was reached: it is tried first next time, and requests to authorization servers go to
    /// no nearer network.
    pub fn reached(&mut self, address: SocketAddr) {
        if let HttpPlace::Tcp(origin) = &mut self.place {
            origin.works(address);
        }
        if let Some(flow) = &self.flow {
            flow.reached(address.ip());
        }
    }

    /// Notes that there is no connection: the name of the server is resolved again next time.
    pub fn not_connected(&mut self, slot: usize, error: &io::Error) {
        self.place.forget();
        self.failed(slot, error);
    }

    /// Notes that a connection has failed.
    pub fn failed(&mut self, slot: usize, error: &io::Error) {
        self.trouble = error.to_string();
        self.web.remote.failed(slot);
    }

    /// Notes that the client was closed. Requests in flight are lost; the next [`run`](HttpSession::run) reports them.
    pub fn close(&mut self) {
        (self.closed, self.goodbye) = (true, None);
        self.web.client.end_of_input();
    }

    /// Begins to end the session of the server, if there is one. The answer is waited for until that time.
    pub fn end(&mut self, until: Millis) {
        self.web.end();
        self.goodbye = Some(until);
    }

    /// Returns whether the session has ended or the time for that is over. While the driver `carries_out` the steps of the flow,
    /// tokens may come that are not kept yet: a refresh token is often good once, so a client that ended now would need a login
    /// at its next start. A person is not waited for.
    pub fn has_ended(&self, now: Millis, carries_out: bool) -> bool {
        let awaits_tokens = carries_out && self.flow.as_ref().is_some_and(|flow| !flow.is_visiting());
        self.goodbye.is_some_and(|until| until <= now) || self.web.is_over() && !awaits_tokens
    }

    /// Sets a header of all later requests.
    ///
    /// # Errors
    /// [`ClientError::Url`] if the header is not valid.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), ClientError> {
        set_header(&mut self.web.remote, name, value)
    }

    /// Turns on OAuth.
    ///
    /// # Errors
    /// [`ClientError::Url`] if tokens must not be sent to the server's URL, or the server is not on the network: who may connect to
    /// a Unix socket is decided by the permissions of its file. [`ClientError::Io`] if the tokens cannot be read, or there is no
    /// port to listen on.
    #[cfg(all(feature = "tls", unix))]
    pub fn authorize(&mut self, mut options: crate::AuthorizationOptions) -> Result<(), ClientError> {
        if !matches!(self.place, HttpPlace::Tcp(_)) {
            return Err(ClientError::Url("authorization needs a server on the network".to_owned()));
        }
        let url = self.web.remote.url().to_string();
        options.fetcher.tls = options.fetcher.tls.or_else(|| self.tls.clone());
        self.flow = Some(Arc::new(crate::auth::Authorizer::new(&url, options)?));
        self.web.sign_heads();
        Ok(())
    }
}

impl<'m, A: AuthorizationDriver, T: FnMut(Direction, &[u8])> TransportState<'m, T> for HttpSession<'m, A, T> {
    fn handle(&mut self) -> ClientHandle<'_, 'm> {
        self.web.handle()
    }

    fn engine(&self) -> &Client<'m> {
        &self.web.client
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.web.next_deadline().into_iter().chain(self.goodbye).min()
    }

    fn explain(&self, why: TransportError) -> String {
        if why == TransportError::Unauthorized
            && let Some(refusal) = self.flow.as_ref().and_then(|flow| flow.refusal())
        {
            return refusal;
        }
        if self.closed && why == TransportError::Closed {
            return "it was closed".to_owned();
        }
        self.web.explain(why, &self.trouble)
    }

    fn trace(&mut self, trace: T) {
        self.trace = Some(trace);
        self.web.trace(Store::growing(1 << 20));
    }

    fn is_settling(&self) -> bool {
        self.web.is_settling()
    }

    fn hears_server(&self) -> bool {
        self.web.hears_server()
    }

    fn settle_time(&self) -> Duration {
        self.settle_time
    }

    fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        self.web.excludes(tool).map(|why| why.to_string())
    }

    fn excluded(&self) -> Vec<ExcludedTool> {
        self.web.excluded().map(|(tool, why)| ExcludedTool::new(tool.to_string(), why.to_string())).collect()
    }
}

mcp_sansio::debug_fields!(impl<A, T> for HttpSession<'_, A, T> { place });

/// Sets a header of all later requests.
fn set_header(remote: &mut HttpTransport<'_>, name: &str, value: &str) -> Result<(), ClientError> {
    remote.set_header(name, value).map_err(|error| ClientError::Url(format!("the header {name}: {error}")))
}

/// The functions of the application: authorization and trace.
struct Hooks<'h, A, T> {
    driver: &'h mut A,
    trace: &'h mut Option<T>,
    flow: Option<&'h Arc<dyn AuthorizationFlow>>,
}

impl<A: AuthorizationDriver, T: FnMut(Direction, &[u8])> HttpHooks for Hooks<'_, A, T> {
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, headers: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        let Some(flow) = self.flow else { return self.driver.challenged(challenge, headers) };
        match flow.challenged(challenge) {
            ChallengeAnswer::Later => self.driver.carry_out(flow, Some(challenge.slot)),
            answer => answer,
        }
    }

    fn sending(&mut self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        let Some(flow) = self.flow else { return 0 };
        if flow.prepare() {
            // Without another token the request goes out with the one that ends soon.
            self.driver.carry_out(flow, None);
        }
        flow.sign(request, headers)
    }

    fn accepted(&mut self, credentials: u32) {
        if let Some(flow) = self.flow {
            flow.accepted(credentials);
        }
    }

    fn sent(&mut self, message: &[u8]) {
        if let Some(trace) = self.trace {
            trace(Direction::Sent, message);
        }
    }

    fn received(&mut self, message: &[u8]) {
        if let Some(trace) = self.trace {
            trace(Direction::Received, message);
        }
    }
}

impl HttpOptions {
    /// Returns a client of the server at `url`, without its sockets. `unix:/run/mcp.sock` is the Unix socket
    /// of that path; its requests go to `http://localhost/mcp`. Another path follows a colon:
    /// `unix:/run/mcp.sock:/api/mcp`.
    ///
    /// # Errors
    /// [`ClientError::Url`] if the URL does not begin with `http`, `unix:` (on Unix) or `https` (with the feature `tls`), or
    /// if a header is not valid; [`ClientError::Io`] if the system has no certificates.
    pub fn open<'m, A, T>(
        self,
        url: &str,
        info: &'m ClientInfo<'m>,
        hooks: A,
    ) -> Result<HttpSession<'m, A, T>, ClientError> {
        let Some((path, url)) = of_unix(url) else { return self.open_at(url, None, CONNECTIONS, info, hooks) };
        if !cfg!(unix) {
            return Err(ClientError::Url(format!("{url} at {path}: only Unix systems have Unix sockets")));
        }
        self.open_at(&url, Some(HttpPlace::Unix(path.into())), CONNECTIONS, info, hooks)
    }

    /// Returns a client whose requests all go over one stream of bytes, one after the other, to
    /// `http://localhost/mcp`. A session opens no stream for the server's own messages, because no request could follow
    /// it; and the connection is never closed for being idle, because there is no other.
    ///
    /// # Errors
    /// [`ClientError::Url`] if a header is not valid.
    pub fn open_stream<'m, A, T>(
        mut self,
        info: &'m ClientInfo<'m>,
        hooks: A,
    ) -> Result<HttpSession<'m, A, T>, ClientError> {
        self.config = self.config.listen(false).idle_time(Duration::from_secs(u32::MAX.into()).as_millis() as Millis);
        self.open_at("http://localhost/mcp", Some(HttpPlace::Stream), 1, info, hooks)
    }

    fn open_at<'m, A, T>(
        mut self,
        url: &str,
        place: Option<HttpPlace>,
        connections: usize,
        info: &'m ClientInfo<'m>,
        hooks: A,
    ) -> Result<HttpSession<'m, A, T>, ClientError> {
        if self.config.names.is_empty() {
            self.config = self.config.names(mcp_sansio_extensions::tasks::NAMES);
        }
        let remote = HttpTransport::growing_up_to(url, self.config, connections, self.options.message);
        let mut remote = remote.map_err(|error| ClientError::Url(format!("{}: {error}", Redacted(url))))?;
        for (name, value) in &self.headers {
            set_header(&mut remote, name, value)?;
        }
        let (url, time) = (remote.url(), Duration::from_millis(self.config.connect_time));
        let place = place.unwrap_or_else(|| HttpPlace::Tcp(HttpOrigin::new(url.host(), url.port(), time)));
        let secure = url.is_secure().then(|| TlsConnector::new(url.host(), self.tls.clone())).transpose()?;
        Ok(HttpSession {
            place,
            tls: self.tls,
            secure,
            web: HttpClient::growing(self.options.engine(info, IN_FLIGHT), remote),
            hooks,
            trouble: String::new(),
            flow: None,
            settle_time: self.settle,
            trace: None,
            closed: false,
            goodbye: None,
        })
    }
}

/// Returns the path of the socket and the URL of the requests, for a URL that begins with `unix:`.
fn of_unix(url: &str) -> Option<(&str, String)> {
    let url = url.trim_ascii();
    let rest = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("unix:")).and_then(|_| url.get(5..))?;
    // `unix:///run/mcp.sock` is the same socket.
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (socket, path) = match rest.find(":/") {
        Some(colon) => (&rest[..colon], &rest[colon + 1..]),
        None => (rest, "/mcp"),
    };
    Some((socket, format!("http://localhost{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_client_is_that_of_its_url() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        type Session = HttpSession<'static, (), fn(crate::Direction, &[u8])>;
        let open =
            |options: HttpOptions, url: &str| -> Result<Session, ClientError> { options.open(url, &PROFILE, ()) };
        let session = open(HttpOptions::new(), "http://127.0.0.1:81/mcp").unwrap();
        let HttpPlace::Tcp(origin) = session.place else { panic!("a network") };
        assert_eq!((origin.host.as_str(), origin.port), ("127.0.0.1", 81));
        let stream: Session = HttpOptions::new().open_stream(&PROFILE, ()).unwrap();
        assert!(matches!(stream.place, HttpPlace::Stream));
        for (name, value) in [("a b", "x"), ("a", "x\ny"), ("", "x")] {
            let error = open(HttpOptions::new().header(name, value), "http://127.0.0.1/").unwrap_err();
            assert!(error.to_string().starts_with(&format!("the header {name}: ")), "{error}");
        }
        assert!(open(HttpOptions::new().header("a", "x"), "http://127.0.0.1/").is_ok());
        assert!(matches!(open(HttpOptions::new(), "ftp://127.0.0.1/"), Err(ClientError::Url(_))));
    }

    #[test]
    fn urls_of_unix_sockets() {
        for (url, socket, path) in [
            ("unix:/run/mcp.sock", "/run/mcp.sock", "/mcp"),
            ("unix:///run/mcp.sock", "/run/mcp.sock", "/mcp"),
            ("UNIX:mcp.sock", "mcp.sock", "/mcp"),
            (" unix:/run/a:b.sock:/api/mcp?x=1", "/run/a:b.sock", "/api/mcp?x=1"),
        ] {
            assert_eq!(of_unix(url), Some((socket, format!("http://localhost{path}"))), "{url}");
        }
        assert_eq!(of_unix("http://unix:/x"), None);
        assert_eq!(of_unix("unix"), None);
    }
}
