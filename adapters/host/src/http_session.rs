//! A client over HTTP: what is decided about it, without sockets.

use std::fmt;
use std::io;
use std::time::Duration;

use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{Client, ClientHandle, ClientHandler, ClientInfo, TransportError};
use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;
#[cfg(all(feature = "auth", unix))]
use mcp_sansio_http::client::OutgoingRequest;
use mcp_sansio_http::client::{
    ChallengeAnswer, ChallengedRequest, HeaderWriter, HttpClient, HttpHooks, HttpTransport, Redacted,
};

#[cfg(all(feature = "auth", unix))]
use crate::{AuthorizationOptions, Authorizer};
use crate::{
    CONNECTIONS, ClientError, Direction, ExcludedTool, HttpOptions, HttpOrigin, HttpPlace, IN_FLIGHT, TransportState,
};

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
    #[cfg(feature = "tls")]
    pub secure: Option<crate::TlsConnector>,
    /// The configuration of [`HttpOptions::tls`](crate::HttpOptions::tls), which authorization uses too.
    #[cfg(feature = "tls")]
    pub(crate) tls_config: Option<std::sync::Arc<rustls::ClientConfig>>,
    #[cfg(all(feature = "auth", unix))]
    pub(crate) authorizer: Option<Authorizer>,
    pub(crate) settle_time: Duration,
    pub(crate) trace: Option<T>,
    pub(crate) closed: bool,
    /// The time until which the end of the session is waited for.
    pub(crate) goodbye: Option<Millis>,
}

impl<'m, A: HttpHooks, T: FnMut(Direction, &[u8])> HttpSession<'m, A, T> {
    /// Handles at most one event, as [`HttpClient::run`] does.
    pub fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> bool {
        let mut hooks = Hooks {
            hooks: &mut self.hooks,
            trace: &mut self.trace,
            #[cfg(all(feature = "auth", unix))]
            authorizer: self.authorizer.as_ref(),
        };
        self.web.run(now, handler, &mut hooks)
    }

    /// Notes that there is no connection: the name of the server is resolved again next time.
    pub fn not_connected(&mut self, slot: usize, error: &io::Error) {
        self.place.forget();
        self.failed(slot, error);
    }

    /// Notes that a connection has failed.
    pub fn failed(&mut self, slot: usize, error: &io::Error) {
        self.trouble = error.to_string();
        self.web.remote().failed(slot);
    }

    /// Notes that the client was closed. Requests in flight are lost; the next [`run`](HttpSession::run) reports them.
    pub fn close(&mut self) {
        (self.closed, self.goodbye) = (true, None);
        self.web.client().end_of_input();
    }

    /// Begins to end the session of the server, if there is one. The answer is waited for until that time.
    pub fn end(&mut self, until: Millis) {
        self.web.end();
        self.goodbye = Some(until);
    }

    /// Returns whether the session has ended or the time for that is over. Before that time, waits also while `awaits_more`.
    pub fn has_ended(&self, now: Millis, awaits_more: bool) -> bool {
        self.goodbye.is_some_and(|until| until <= now) || self.web.is_over() && !awaits_more
    }

    /// Sets a header of all later requests.
    ///
    /// # Errors
    /// [`ClientError::Url`] if the header is not valid.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), ClientError> {
        set_header(self.web.remote(), name, value)
    }

    /// Turns on OAuth, and returns what carries out its steps.
    ///
    /// # Errors
    /// [`ClientError::Url`] if the server is not on the network: who may connect to a Unix socket is decided by the permissions of
    /// its file; else as [`Authorizer::new`].
    #[cfg(all(feature = "auth", unix))]
    pub fn authorize(&mut self, options: AuthorizationOptions) -> Result<Authorizer, ClientError> {
        if !matches!(self.place, HttpPlace::Tcp(_)) {
            return Err(ClientError::Url("authorization needs a server on the network".to_owned()));
        }
        #[cfg(feature = "tls")]
        let options = options.or_tls(self.tls_config.clone());
        let url = self.web.remote().url().to_string();
        let authorizer = Authorizer::new(&url, options)?;
        self.authorizer = Some(authorizer.clone());
        self.web.sign_heads();
        Ok(authorizer)
    }
}

impl<'m, A: HttpHooks, T: FnMut(Direction, &[u8])> TransportState<'m, T> for HttpSession<'m, A, T> {
    fn handle(&mut self) -> ClientHandle<'_, 'm> {
        self.web.handle()
    }

    fn engine(&self) -> &Client<'m> {
        self.web.engine()
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.web.next_deadline().into_iter().chain(self.goodbye).min()
    }

    fn explain(&self, why: TransportError) -> String {
        #[cfg(all(feature = "auth", unix))]
        if why == TransportError::Unauthorized
            && let Some(refusal) = self.authorizer.as_ref().and_then(Authorizer::refusal)
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

impl<A, T> fmt::Debug for HttpSession<'_, A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSession").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Sets a header of all later requests.
fn set_header(remote: &mut HttpTransport<'_>, name: &str, value: &str) -> Result<(), ClientError> {
    remote.set_header(name, value).map_err(|error| ClientError::Url(format!("the header {name}: {error}")))
}

/// The functions of the application: authorization and trace.
struct Hooks<'h, A, T> {
    hooks: &'h mut A,
    trace: &'h mut Option<T>,
    #[cfg(all(feature = "auth", unix))]
    authorizer: Option<&'h Authorizer>,
}

impl<A: HttpHooks, T: FnMut(Direction, &[u8])> HttpHooks for Hooks<'_, A, T> {
    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, headers: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        self.hooks.challenged(challenge, headers)
    }

    #[cfg(all(feature = "auth", unix))]
    fn sending(&mut self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        self.hooks.sending(request, headers)
    }

    #[cfg(all(feature = "auth", unix))]
    fn accepted(&mut self, credentials: u32) {
        if let Some(authorizer) = self.authorizer {
            authorizer.accepted(credentials);
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
        profile: &'m ClientInfo<'m>,
        hooks: A,
    ) -> Result<HttpSession<'m, A, T>, ClientError> {
        let Some((path, url)) = of_unix(url) else { return self.open_at(url, None, CONNECTIONS, profile, hooks) };
        #[cfg(unix)]
        return self.open_at(&url, Some(HttpPlace::Unix(path.into())), CONNECTIONS, profile, hooks);
        #[cfg(not(unix))]
        Err(ClientError::Url(format!("{url} at {path}: only Unix systems have Unix sockets")))
    }

    /// Returns a client whose requests all go over one stream of bytes, one after the other, to
    /// `http://localhost/mcp`. A session opens no stream for the server's own messages, because no request could follow
    /// it; and the connection is never closed for being idle, because there is no other.
    ///
    /// # Errors
    /// [`ClientError::Url`] if a header is not valid.
    pub fn open_stream<'m, A, T>(
        mut self,
        profile: &'m ClientInfo<'m>,
        hooks: A,
    ) -> Result<HttpSession<'m, A, T>, ClientError> {
        self.config = self.config.listen(false).idle_time(Duration::from_secs(u32::MAX.into()).as_millis() as Millis);
        self.open_at("http://localhost/mcp", Some(HttpPlace::Stream), 1, profile, hooks)
    }

    fn open_at<'m, A, T>(
        mut self,
        url: &str,
        place: Option<HttpPlace>,
        connections: usize,
        profile: &'m ClientInfo<'m>,
        hooks: A,
    ) -> Result<HttpSession<'m, A, T>, ClientError> {
        if self.config.names.is_empty() {
            self.config = self.config.names(mcp_sansio_extensions::tasks::NAMES);
        }
        let remote = HttpTransport::growing_up_to(url, self.config, connections, self.options.message_limit());
        let mut remote = remote.map_err(|error| ClientError::Url(format!("{}: {error}", Redacted(url))))?;
        for (name, value) in &self.headers {
            set_header(&mut remote, name, value)?;
        }
        #[cfg(not(feature = "tls"))]
        if remote.is_secure() {
            let url = Redacted(url);
            return Err(ClientError::Url(format!("{url}: this program was built without TLS (the feature `tls`)")));
        }
        Ok(HttpSession {
            place: place.unwrap_or_else(|| {
                let time = Duration::from_millis(self.config.connect_time);
                HttpPlace::Tcp(HttpOrigin::new(remote.host(), remote.port(), time))
            }),
            #[cfg(feature = "tls")]
            tls_config: self.tls.clone(),
            #[cfg(feature = "tls")]
            secure: remote.is_secure().then(|| crate::TlsConnector::new(remote.host(), self.tls)).transpose()?,
            web: HttpClient::growing(self.options.engine(profile, IN_FLIGHT), remote),
            hooks,
            trouble: String::new(),
            #[cfg(all(feature = "auth", unix))]
            authorizer: None,
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
