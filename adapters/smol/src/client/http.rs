//! A server that is reached over HTTP.

use std::fmt;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::client::views::Tool;
use mcp_sansio::client::{Handler, Link, Lost, Profile};
use mcp_sansio::server::Millis;
use mcp_sansio::store::Store;
pub use mcp_sansio_http::client::Config;
use mcp_sansio_http::client::{Action, Challenge, Headers, Hooks, Redacted, Remote, Verdict, Web};

use super::authorize::{Asking, Authorize};
use super::socket::{Dialing, Place, Socket};
use super::{Ended, Error, Excluded, IN_FLIGHT, Options, Trace, Transport, Way};

/// Connections at the most; further requests wait.
pub const CONNECTIONS: usize = 8;

/// How long the server may take to end a session when the client is closed.
const GOODBYE: Millis = 2_000;

/// How a server is reached over HTTP.
///
/// ```
/// use mcp_sansio_smol::client::{Demand, HttpOptions};
/// let options = HttpOptions::new().header("Authorization", "Bearer stale").authorize(async |demand: Demand| {
///     // Ask whoever gives out tokens; nothing else is held up meanwhile.
///     (demand.tries == 0).then(|| vec![("Authorization".to_owned(), "Bearer fresh".to_owned())])
/// });
/// ```
#[must_use]
pub struct HttpOptions {
    options: Options,
    settle: Duration,
    config: Config,
    headers: Vec<(String, String)>,
    authorize: Option<Box<dyn Authorize>>,
    #[cfg(feature = "tls")]
    tls: Option<std::sync::Arc<rustls::ClientConfig>>,
}

impl HttpOptions {
    /// The defaults.
    pub fn new() -> Self {
        HttpOptions {
            options: Options::new(),
            settle: Duration::from_secs(1),
            config: Config::DEFAULT,
            headers: Vec::new(),
            authorize: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Times and limits of the client.
    pub fn options(self, options: Options) -> Self {
        HttpOptions { options, ..self }
    }

    /// Times of connections, and which transport to expect.
    pub fn config(self, config: Config) -> Self {
        HttpOptions { config, ..self }
    }

    /// How long the first request in a session waits for the stream on which the server may ask (up to 2025-11-25); a
    /// second.
    pub fn settle_time(self, time: Duration) -> Self {
        HttpOptions { settle: time, ..self }
    }

    /// A header that goes with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Who is asked for credentials when the server wants them (401 or 403), see [`Authorize`]. It is polled by the driver:
    /// it must neither block nor use this client.
    pub fn authorize(self, authorize: impl Authorize + 'static) -> Self {
        HttpOptions { authorize: Some(Box::new(authorize)), ..self }
    }

    /// Whom to trust, and how, instead of the system's certificates.
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

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("options", &self.options)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The place of a connection.
#[derive(Default)]
enum Carrier {
    #[default]
    None,
    Dialing(Dialing),
    Up(Socket),
}

/// A server that is reached over HTTP: Streamable HTTP of all revisions, and the HTTP with SSE of 2024-11-05.
///
/// ```no_run
/// use mcp_sansio::client::{Profile, Request};
/// use mcp_sansio_smol::client::{Client, Http, Ignore};
///
/// static PROFILE: Profile<'static> = Profile::new("demo", "1.0");
///
/// # fn main() -> Result<(), mcp_sansio_smol::client::Error> {
/// smol::block_on(async {
///     let (client, driver) = Client::new(Http::new("http://localhost:8931/mcp", &PROFILE)?, Ignore);
///     smol::spawn(driver).detach();
///     println!("{:?}", client.connect().await?);
///     println!("{:?}", client.request(Request::list_tools()).await?);
///     client.close().await;
///     Ok(())
/// })
/// # }
/// ```
pub struct Http {
    web: Web<'static, IN_FLIGHT, CONNECTIONS>,
    sockets: [Carrier; CONNECTIONS],
    place: Place,
    settle: Duration,
    outer: Outer,
    /// Why there was no connection last.
    trouble: String,
    /// Until when the end of the session is waited for.
    goodbye: Option<Millis>,
    closed: bool,
}

/// What the application wants to be asked and shown.
#[derive(Default)]
struct Outer {
    asking: Asking,
    trace: Option<Trace>,
}

impl Hooks for Outer {
    fn challenged(&mut self, challenge: &Challenge<'_>, headers: &mut Headers<'_>) -> Verdict {
        self.asking.challenged(challenge, headers)
    }

    fn sent(&mut self, message: &[u8]) {
        if let Some(trace) = &mut self.trace {
            trace(Way::Sent, message);
        }
    }

    fn received(&mut self, message: &[u8]) {
        if let Some(trace) = &mut self.trace {
            trace(Way::Received, message);
        }
    }
}

impl Http {
    /// A server at `url`. Nothing is connected yet.
    ///
    /// # Errors
    /// If the URL is none of `http`, or `https` with the feature `tls`.
    pub fn new(url: &str, profile: &'static Profile<'static>) -> Result<Self, Error> {
        Http::with(url, profile, HttpOptions::new())
    }

    /// A server at `url`. Nothing is connected yet.
    ///
    /// # Errors
    /// As [`new`](Http::new), and if a header cannot be one.
    pub fn with(url: &str, profile: &'static Profile<'static>, options: HttpOptions) -> Result<Self, Error> {
        let remote = Remote::growing_up_to(url, options.config, options.options.message_limit());
        let mut remote = remote.map_err(|error| Error::Url(format!("{}: {error}", Redacted(url))))?;
        for (name, value) in &options.headers {
            remote.set_header(name, value).map_err(|error| Error::Url(format!("the header {name}: {error}")))?;
        }
        #[cfg(not(feature = "tls"))]
        if remote.is_secure() {
            let url = Redacted(url);
            return Err(Error::Url(format!("{url}: this program was built without TLS (the feature `tls`)")));
        }
        let place = Place {
            host: remote.host().to_owned(),
            port: remote.port(),
            addresses: Vec::new(),
            time: Duration::from_millis(options.config.connect_time),
            #[cfg(feature = "tls")]
            secure: match remote.is_secure() {
                true => Some(super::tls::Secure::new(remote.host(), options.tls)?),
                false => None,
            },
        };
        Ok(Http {
            place,
            web: Web::growing(options.options.engine(profile), remote),
            sockets: Default::default(),
            settle: options.settle,
            outer: Outer { asking: Asking::of(options.authorize), trace: None },
            trouble: String::new(),
            goodbye: None,
            closed: false,
        })
    }

    /// Goes on with a challenge that was answered. Whether one was.
    fn authorized(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready((credentials, slots)) = self.outer.asking.poll(cx) else { return false };
        let remote = self.web.remote();
        let set = |mut credentials: super::Credentials| {
            credentials.drain(..).all(|(name, value)| remote.set_header(&name, &value).is_ok())
        };
        let authorized = credentials.is_some_and(set);
        for slot in slots {
            if authorized {
                self.web.retry(slot);
            } else {
                self.web.give_up(slot);
            }
        }
        true
    }

    /// Moves bytes between sockets and slots. Whether there were any.
    fn carry(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while let Some(action) = self.web.remote().next_action() {
            any = true;
            match action {
                Action::Close(slot) => self.sockets[slot] = Carrier::None,
                Action::Connect(slot) => {
                    self.sockets[slot] = Carrier::Dialing(Box::pin(self.place.clone().dial()));
                }
            }
        }
        for slot in 0..CONNECTIONS {
            any |= self.carry_one(slot, cx);
        }
        any
    }

    /// The slot's bytes. Whether there were any.
    fn carry_one(&mut self, slot: usize, cx: &mut Context<'_>) -> bool {
        match std::mem::take(&mut self.sockets[slot]) {
            Carrier::None => false,
            Carrier::Dialing(mut dialing) => match dialing.as_mut().poll(cx) {
                Poll::Ready(Ok(dialed)) => {
                    self.place.addresses = dialed.addresses;
                    self.sockets[slot] = Carrier::Up(dialed.socket);
                    self.web.remote().connected(slot);
                    true
                }
                Poll::Ready(Err(error)) => {
                    self.place.addresses.clear();
                    self.failed(slot, &error);
                    true
                }
                Poll::Pending => {
                    self.sockets[slot] = Carrier::Dialing(dialing);
                    false
                }
            },
            Carrier::Up(mut socket) => match self.move_bytes(slot, &mut socket, cx) {
                Ok(Moved::End) => {
                    self.web.remote().closed(slot);
                    true
                }
                Ok(moved) => {
                    self.sockets[slot] = Carrier::Up(socket);
                    moved == Moved::Some
                }
                Err(error) => {
                    self.failed(slot, &error);
                    true
                }
            },
        }
    }

    fn failed(&mut self, slot: usize, error: &io::Error) {
        self.trouble = error.to_string();
        self.web.remote().failed(slot);
    }

    /// Reads once, or else writes what is pending: a server may have closed a connection that was idle, and then nothing
    /// has been sent; or have answered early and closed.
    fn move_bytes(&mut self, slot: usize, socket: &mut Socket, cx: &mut Context<'_>) -> io::Result<Moved> {
        let remote = self.web.remote();
        let space = remote.space(slot);
        if !space.is_empty()
            && let Poll::Ready(read) = socket.poll_read(cx, space)
        {
            return Ok(match read? {
                0 => Moved::End,
                n => {
                    remote.filled(slot, n);
                    Moved::Some
                }
            });
        }
        let mut moved = Moved::Nothing;
        while !remote.pending(slot).is_empty() {
            match socket.poll_write(cx, remote.pending(slot)) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => remote.sent(slot, written?),
                Poll::Pending => break,
            }
            moved = Moved::Some;
        }
        match socket.poll_flush(cx) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(moved),
        }
    }
}

/// What came of moving bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    Nothing,
    Some,
    /// The server has closed the connection.
    End,
}

impl Transport for Http {
    fn link(&mut self) -> Link<'_, 'static> {
        self.web.link()
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn Handler) -> bool {
        let authorized = self.authorized(cx);
        let ran = self.web.run(now, handler, &mut self.outer);
        // A challenge that has just come is asked about at once.
        self.carry(cx) || ran || authorized
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.web.next_deadline().into_iter().chain(self.goodbye).min()
    }

    fn explain(&self, why: Lost) -> String {
        if self.closed && why == Lost::Closed {
            return "it was closed".to_owned();
        }
        self.web.explain(why, &self.trouble)
    }

    fn is_settling(&self) -> bool {
        self.web.is_settling()
    }

    fn excludes(&self, tool: &Tool<'_>) -> Option<String> {
        self.web.excludes(tool).map(|why| why.to_string())
    }

    fn excluded(&self) -> Vec<Excluded> {
        self.web.excluded().map(|(tool, why)| Excluded::new(tool.to_string(), why.to_string())).collect()
    }

    fn settle_time(&self) -> Duration {
        self.settle
    }

    fn trace(&mut self, trace: Trace) {
        self.outer.trace = Some(trace);
        self.web.trace(Store::growing(1 << 20));
    }

    fn begin_close(&mut self, _: Millis) {
        self.closed = true;
        self.web.client().end_of_input();
    }

    fn poll_close(&mut self, now: Millis, cx: &mut Context<'_>) -> Poll<Option<Ended>> {
        let over = match self.goodbye {
            None => {
                self.goodbye = Some(now.saturating_add(GOODBYE));
                cx.waker().wake_by_ref();
                !self.web.end()
            }
            Some(until) => self.web.is_over() || until <= now,
        };
        if !over {
            return Poll::Pending;
        }
        self.web.remote().shut_down();
        self.sockets = Default::default();
        Poll::Ready(None)
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("place", &self.place).finish_non_exhaustive()
    }
}
