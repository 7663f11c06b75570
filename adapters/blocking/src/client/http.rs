//! A server that is reached over HTTP.

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mcp_sansio::client::views::Tool;
use mcp_sansio::client::{Engine, Handler, Link, Lost, Profile};
use mcp_sansio::server::Millis;
use mcp_sansio::store::Store;
use mcp_sansio_http::client::{Action, Hooks, Redacted, Remote, Web};
pub use mcp_sansio_http::client::{Challenge, Config, Headers, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::pipes::Got;
use super::tcp::{self, Connecting, Dialed, Place};
#[cfg(feature = "tls")]
use super::tls::Tls;
use super::{Error, Excluded, IN_FLIGHT, Ignore, Options, Trace, Transport, Way};

/// Connections at the most.
pub const CONNECTIONS: usize = 8;

/// How long the server may take to end a session when the client is closed.
const GOODBYE: Duration = Duration::from_secs(2);

/// What is asked for authorization.
type Authorize = Box<dyn FnMut(&Challenge<'_>, &mut Headers<'_>) -> Verdict>;

/// How a server is reached over HTTP.
///
/// ```
/// use mcp_sansio_blocking::client::{HttpOptions, Verdict};
/// let options = HttpOptions::new().header("Authorization", "Bearer secret").authorize(|challenge, headers| {
///     if challenge.tries > 0 || headers.set("Authorization", "Bearer fresh").is_err() {
///         return Verdict::GiveUp;
///     }
///     Verdict::Retry
/// });
/// ```
#[must_use]
pub struct HttpOptions {
    options: Options,
    settle: Duration,
    config: Config,
    headers: Vec<(String, String)>,
    authorize: Option<Authorize>,
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

    /// What is called when the server wants authorization (401 or 403): it sets headers and says whether to try again.
    /// It may take its time, which does not count for the challenged request. But nothing else happens meanwhile: other
    /// requests are neither sent nor answered, though their time goes on. What takes long is better done elsewhere:
    /// [`Verdict::Later`] lets everything else go on, until [`Http::set_header`] and [`Http::retry`] (or
    /// [`Http::give_up`]) are called with the [slot](Challenge::slot), through
    /// [`Client::transport`](super::Client::transport).
    pub fn authorize(self, authorize: impl FnMut(&Challenge<'_>, &mut Headers<'_>) -> Verdict + 'static) -> Self {
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
#[derive(Debug, Default)]
struct Socket {
    link: Carrier,
    /// There may be something to read.
    ready: bool,
}

#[derive(Debug, Default)]
enum Carrier {
    #[default]
    None,
    Connecting(Connecting),
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Secure(Box<Tls>),
}

/// A server that is reached over HTTP: Streamable HTTP of all revisions, and the HTTP with SSE of 2024-11-05.
///
/// ```no_run
/// use mcp_sansio::client::{Profile, Request};
/// use mcp_sansio_blocking::client::{Client, Http, Ignore};
///
/// let profile = Profile::new("demo", "1.0");
/// let mut client = Client::new(Http::new("http://localhost:8931/mcp", &profile)?, Ignore);
/// println!("{:?}", client.connect()?);
/// println!("{:?}", client.request(&Request::list_tools())?);
/// client.close();
/// # Ok::<(), mcp_sansio_blocking::client::Error>(())
/// ```
pub struct Http<'m> {
    web: Web<'m, IN_FLIGHT, CONNECTIONS>,
    sockets: [Socket; CONNECTIONS],
    place: Place,
    settle: Duration,
    outer: Outer,
    /// Why there was no connection last.
    trouble: String,
    started: Instant,
    time: Millis,
    #[cfg(feature = "tls")]
    secure: Option<super::tls::Secure>,
}

/// What the application wants to be asked and shown.
#[derive(Default)]
struct Outer {
    authorize: Option<Authorize>,
    trace: Option<Trace>,
}

impl Hooks for Outer {
    fn challenged(&mut self, challenge: &Challenge<'_>, headers: &mut Headers<'_>) -> Verdict {
        self.authorize.as_mut().map_or(Verdict::GiveUp, |authorize| authorize(challenge, headers))
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

impl<'m> Http<'m> {
    /// A server at `url`. Nothing is connected yet.
    ///
    /// # Errors
    /// If the URL is none of `http`, or `https` with the feature `tls`.
    pub fn new(url: &str, profile: &'m Profile<'m>) -> Result<Self, Error> {
        Http::with(url, profile, HttpOptions::new())
    }

    /// A server at `url`. Nothing is connected yet.
    ///
    /// # Errors
    /// As [`new`](Http::new), and if a header cannot be one.
    pub fn with(url: &str, profile: &'m Profile<'m>, options: HttpOptions) -> Result<Self, Error> {
        let remote = Remote::growing_up_to(url, options.config, options.options.message_limit());
        let mut remote = remote.map_err(|error| Error::Url(format!("{}: {error}", Redacted(url))))?;
        for (name, value) in &options.headers {
            remote.set_header(name, value).map_err(|error| Error::Url(format!("the header {name}: {error}")))?;
        }
        #[cfg(feature = "tls")]
        let secure = remote.is_secure().then(|| super::tls::Secure::new(remote.host(), options.tls)).transpose()?;
        #[cfg(not(feature = "tls"))]
        if remote.is_secure() {
            let url = Redacted(url);
            return Err(Error::Url(format!("{url}: this program was built without TLS (the feature `tls`)")));
        }
        let time = Duration::from_millis(options.config.connect_time);
        Ok(Http {
            place: Place::new(remote.host(), remote.port(), time),
            web: Web::growing(options.options.engine(profile), remote),
            sockets: Default::default(),
            settle: options.settle,
            outer: Outer { authorize: options.authorize, trace: None },
            trouble: String::new(),
            started: Instant::now(),
            time: 0,
            #[cfg(feature = "tls")]
            secure,
        })
    }

    /// Sets a header that goes with every request from now on.
    ///
    /// # Errors
    /// If it cannot be one.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.web.remote().set_header(name, value).map_err(|error| Error::Url(format!("the header {name}: {error}")))
    }

    /// Sends a challenged message again; see [`Verdict::Later`].
    pub fn retry(&mut self, slot: usize) {
        self.web.retry(slot);
    }

    /// Gives a challenged message up.
    pub fn give_up(&mut self, slot: usize) {
        self.web.give_up(slot);
    }

    /// The id of the session, if the server gave one (up to 2025-11-25).
    pub fn session(&mut self) -> Option<&str> {
        self.web.remote().session()
    }

    /// Moves bytes between sockets and slots. Whether there were any.
    fn carry(&mut self) -> bool {
        let mut any = false;
        while let Some(action) = self.web.remote().next_action() {
            any = true;
            match action {
                Action::Close(slot) => self.sockets[slot] = Socket::default(),
                Action::Connect(slot) => match self.place.connect() {
                    Ok(connecting) => self.sockets[slot].link = Carrier::Connecting(connecting),
                    Err(error) => self.no_connection(slot, &error),
                },
            }
        }
        for slot in 0..CONNECTIONS {
            any |= self.carry_one(slot);
        }
        any
    }

    fn no_connection(&mut self, slot: usize, error: &io::Error) {
        self.trouble = error.to_string();
        self.place.forget();
        self.sockets[slot] = Socket::default();
        self.web.remote().failed(slot);
    }

    /// The slot's bytes. Whether there were any.
    fn carry_one(&mut self, slot: usize) -> bool {
        match std::mem::take(&mut self.sockets[slot].link) {
            Carrier::None => false,
            Carrier::Connecting(connecting) => {
                let ready = std::mem::take(&mut self.sockets[slot].ready);
                match connecting.look(ready) {
                    Ok(Dialed::NotYet(connecting)) => {
                        self.sockets[slot].link = Carrier::Connecting(connecting);
                        false
                    }
                    Ok(Dialed::Up(socket, address)) => {
                        self.place.works(address);
                        self.is_up(slot, socket);
                        true
                    }
                    Err(error) => {
                        self.no_connection(slot, &error);
                        true
                    }
                }
            }
            Carrier::Plain(mut socket) => {
                let done = self.move_bytes(slot, &mut socket);
                self.keep(slot, Carrier::Plain(socket), done)
            }
            #[cfg(feature = "tls")]
            Carrier::Secure(mut tls) => {
                if !tls.is_up() {
                    self.sockets[slot].ready = false;
                    match tls.shake_hands() {
                        Ok(false) => return self.keep(slot, Carrier::Secure(tls), Ok(false)),
                        Ok(true) => self.web.remote().connected(slot),
                        Err(error) => {
                            self.no_connection(slot, &error);
                            return true;
                        }
                    }
                }
                let done = self.move_bytes(slot, &mut *tls);
                let done = done.and_then(|any| io::Write::flush(&mut *tls).map(|()| any));
                self.keep(slot, Carrier::Secure(tls), done)
            }
        }
    }

    fn is_up(&mut self, slot: usize, socket: TcpStream) {
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.secure {
            match secure.wrap(socket) {
                Ok(tls) => self.sockets[slot].link = Carrier::Secure(Box::new(tls)),
                Err(error) => self.no_connection(slot, &error),
            }
            return;
        }
        self.sockets[slot].link = Carrier::Plain(socket);
        self.web.remote().connected(slot);
    }

    /// Keeps a connection unless it is over.
    fn keep(&mut self, slot: usize, link: Carrier, done: io::Result<bool>) -> bool {
        match done {
            Ok(any) => {
                self.sockets[slot].link = link;
                any
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && error.get_ref().is_none() => {
                self.sockets[slot] = Socket::default();
                self.web.remote().closed(slot);
                true
            }
            Err(error) => {
                self.trouble = error.to_string();
                self.sockets[slot] = Socket::default();
                self.web.remote().failed(slot);
                true
            }
        }
    }

    /// Writes what is pending and reads what is there. The end of the connection is `UnexpectedEof`.
    fn move_bytes<C: io::Read + io::Write>(&mut self, slot: usize, socket: &mut C) -> io::Result<bool> {
        let remote = self.web.remote();
        let mut any = false;
        // Look before writing: a server may have closed a connection that was idle, and then nothing has been sent.
        self.sockets[slot].ready |= !remote.pending(slot).is_empty();
        while self.sockets[slot].ready && !remote.space(slot).is_empty() {
            match tcp::read(socket, remote.space(slot))? {
                Got::Nothing => self.sockets[slot].ready = false,
                Got::Bytes(n) => {
                    remote.filled(slot, n);
                    any = true;
                    // One at a time: what has come is told first.
                    break;
                }
                Got::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        while !remote.pending(slot).is_empty() {
            match tcp::write(socket, remote.pending(slot))? {
                0 => break,
                n => remote.sent(slot, n),
            }
            any = true;
        }
        Ok(any)
    }
}

impl<'m> Transport<'m> for Http<'m> {
    fn link(&mut self) -> Link<'_, 'm> {
        self.web.link()
    }

    fn engine(&self) -> &Engine<'m> {
        self.web.engine()
    }

    fn run(&mut self, now: Millis, handler: &mut dyn Handler) -> io::Result<bool> {
        self.time = now;
        Ok(self.web.run(now, handler, &mut self.outer) || self.carry())
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let mut time = at_most;
        let (remote, sockets) = (self.web.remote(), &self.sockets);
        let mut wanted: Vec<(usize, BorrowedFd<'_>, PollFlags)> = Vec::with_capacity(CONNECTIONS);
        for (slot, socket) in sockets.iter().enumerate() {
            let (fd, mut flags) = match &socket.link {
                Carrier::None => continue,
                Carrier::Connecting(connecting) => {
                    time = time.min(connecting.time_left());
                    wanted.push((slot, connecting.fd(), PollFlags::OUT));
                    continue;
                }
                Carrier::Plain(stream) => (stream.as_fd(), PollFlags::empty()),
                #[cfg(feature = "tls")]
                Carrier::Secure(tls) => (tls.fd(), tls.wants()),
            };
            if !remote.space(slot).is_empty() {
                flags |= PollFlags::IN;
            }
            if !remote.pending(slot).is_empty() {
                flags |= PollFlags::OUT;
            }
            if !flags.is_empty() {
                wanted.push((slot, fd, flags));
            }
        }
        let mut fds: Vec<_> = wanted.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        match rustix::event::poll(&mut fds, Timespec::try_from(time).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<usize> = fds
            .iter()
            .zip(&wanted)
            .filter(|(fd, (_, _, flags))| {
                let told = fd.revents();
                // Room to write is seen by writing.
                told.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
                    || (*flags == PollFlags::OUT && told.intersects(PollFlags::OUT))
            })
            .map(|(_, (slot, _, _))| *slot)
            .collect();
        drop(fds);
        drop(wanted);
        for slot in ready {
            self.sockets[slot].ready = true;
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.web.next_deadline()
    }

    fn explain(&mut self, why: Lost) -> String {
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

    fn close(&mut self) {
        let end = Instant::now() + GOODBYE;
        let base = self.started.elapsed();
        let mut going = self.web.end();
        while going && !self.web.is_over() {
            let now = self.time + (self.started.elapsed() - base).as_millis() as Millis;
            let more = self.web.run(now, &mut Ignore, &mut self.outer) || self.carry();
            let left = end.saturating_duration_since(Instant::now());
            going = !left.is_zero();
            if !more && going && self.wait(left).is_err() {
                break;
            }
        }
        self.web.remote().shut_down();
        self.sockets = Default::default();
        self.web.client().end_of_input();
    }
}

impl fmt::Debug for Http<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("place", &self.place).finish_non_exhaustive()
    }
}
