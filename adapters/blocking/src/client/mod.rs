//! Clients: a server as a child process, or over HTTP, with one API.
//!
//! ```no_run
//! use std::process::Command;
//! use mcp_sansio::client::views::{CallResult, Tools};
//! use mcp_sansio::client::{Profile, Request};
//! use mcp_sansio_blocking::client::{Child, Client, Ignore};
//!
//! let profile = Profile::new("demo", "1.0");
//! let server = Child::spawn(Command::new("calc"), &profile)?;
//! let mut client = Client::new(server, Ignore);
//! println!("{:?}", client.connect()?);
//! for page in client.pages(Request::list_tools()) {
//!     for tool in page?.view::<Tools>()?.iter().flatten() {
//!         println!("{}", tool.name());
//!     }
//! }
//! let arguments = serde_json::json!({ "a": 1, "b": 2 });
//! let answer = client.request(&Request::call("add").arguments(&arguments).timeout(5_000))?;
//! if let Some(text) = answer.view::<CallResult>()?.text() {
//!     println!("{text}");
//! }
//! client.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What else happens goes to the [`Handler`]: questions, which it answers at once or later, progress, logs, changes. Every
//! wait ends: requests have deadlines, a server's death is noticed, and a server that does not read blocks nobody.

mod child;
#[cfg(all(feature = "http", unix))]
mod http;
mod pipes;
mod process;
mod stderr;
#[cfg(all(feature = "http", unix))]
mod tcp;
#[cfg(all(feature = "tls", unix))]
mod tls;

pub use child::{Child, ChildOptions};
#[cfg(all(feature = "http", unix))]
pub use http::{CONNECTIONS, Challenge, Config, Headers, Http, HttpOptions, Verdict};
pub use mcp_sansio::client::owned::{
    Answer, Ended, Error, Excluded, Hello, How, Options, PageLimits, ServerError, Way,
};
pub use mcp_sansio::client::{Event, Handler, Link};
#[cfg(all(feature = "http", unix))]
pub use mcp_sansio_http::client::params;
#[cfg(feature = "tls")]
pub use rustls;
pub use stderr::{OnLine, Stderr};

use std::io;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use mcp_sansio::client::views::Tool;
use mcp_sansio::client::{Engine, Filter, Lost, Request, SendError, Token};
use mcp_sansio::protocol::Level;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use crate::millis_since;

/// Requests and listens in flight at the most.
pub const IN_FLIGHT: usize = 64;

/// Runs of the transport before whoever waits looks at what has come of them.
const TURNS: usize = 64;

/// How long a request waits for a free connection, if the requests before it end neither.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is shown every message, see [`Client::trace`].
pub type Trace = Box<dyn FnMut(Way, &[u8])>;

/// What carries messages: [`Child`], `Http`. A driver that a [`Client`] can be built on: `run`, look, `wait`, again.
pub trait Transport<'m> {
    /// The engine and its sink.
    fn link(&mut self) -> Link<'_, 'm>;

    /// The engine.
    fn engine(&self) -> &Engine<'m>;

    /// Does all that can be done without waiting: takes what has come, writes what there is to write. `true` if there may
    /// be more: look at what was told, then call it again.
    ///
    /// # Errors
    /// If the operating system refuses something; what the server does is told to the handler.
    fn run(&mut self, now: Millis, handler: &mut dyn Handler) -> io::Result<bool>;

    /// Waits until there is something to [`run`](Transport::run) for, at most so long.
    ///
    /// # Errors
    /// As [`run`](Transport::run).
    fn wait(&mut self, at_most: Duration) -> io::Result<()>;

    /// When to [`run`](Transport::run) again at the latest.
    fn next_deadline(&self) -> Option<Millis>;

    /// What is known about a loss that was told by the last [`run`](Transport::run).
    fn explain(&mut self, why: Lost) -> String;

    /// Whether something that the first request depends on is still on its way: the way back for the server's questions.
    fn is_settling(&self) -> bool {
        false
    }

    /// How long to wait for that.
    fn settle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Why a tool must be left out of what the server offers, if it must.
    fn excludes(&self, tool: &Tool<'_>) -> Option<String> {
        let _ = tool;
        None
    }

    /// The tools that were left out of the lists that the server gave.
    fn excluded(&self) -> Vec<Excluded> {
        Vec::new()
    }

    /// Shows every message to `trace`.
    fn trace(&mut self, trace: Trace);

    /// Ends the connection in order. What is in flight is lost.
    fn close(&mut self);
}

impl<'m, T: Transport<'m> + ?Sized> Transport<'m> for Box<T> {
    fn link(&mut self) -> Link<'_, 'm> {
        (**self).link()
    }
    fn engine(&self) -> &Engine<'m> {
        (**self).engine()
    }
    fn run(&mut self, now: Millis, handler: &mut dyn Handler) -> io::Result<bool> {
        (**self).run(now, handler)
    }
    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        (**self).wait(at_most)
    }
    fn next_deadline(&self) -> Option<Millis> {
        (**self).next_deadline()
    }
    fn explain(&mut self, why: Lost) -> String {
        (**self).explain(why)
    }
    fn is_settling(&self) -> bool {
        (**self).is_settling()
    }
    fn excludes(&self, tool: &Tool<'_>) -> Option<String> {
        (**self).excludes(tool)
    }
    fn excluded(&self) -> Vec<Excluded> {
        (**self).excluded()
    }
    fn settle_time(&self) -> Duration {
        (**self).settle_time()
    }
    fn trace(&mut self, trace: Trace) {
        (**self).trace(trace);
    }
    fn close(&mut self) {
        (**self).close();
    }
}

/// Ignores everything that nobody waits for. For clients that declare nothing they could be asked for.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Ignore;

impl Handler for Ignore {
    fn event(&mut self, _: Event<'_>, _: &mut Link<'_, '_>) {}
}

/// A connection to one server. The [module](self) shows it in use.
pub struct Client<'m, T, H> {
    transport: T,
    handler: H,
    waits: Waits,
    started: Instant,
    /// There is more to do at once: there was too much for one turn.
    busy: bool,
    profile: PhantomData<&'m ()>,
}

/// What is waited for, and what has come of it.
#[derive(Default)]
struct Waits {
    tokens: Vec<(Token, Option<Result<Answer, Error>>)>,
    opening: bool,
    opened: Option<Result<(), Error>>,
    hello: Option<Hello>,
    /// The connection is new.
    unsettled: bool,
}

impl Waits {
    fn place(&mut self, token: Token) -> Option<&mut Option<Result<Answer, Error>>> {
        self.tokens.iter_mut().find(|(waited, _)| *waited == token).map(|(_, outcome)| outcome)
    }

    /// The outcome of a request, if it is there.
    fn take(&mut self, token: Token) -> Option<Result<Answer, Error>> {
        let at = self.tokens.iter().position(|(waited, outcome)| *waited == token && outcome.is_some())?;
        self.tokens.swap_remove(at).1
    }

    /// Adds what the transport knows to what was lost.
    fn explain<'m>(&mut self, transport: &mut impl Transport<'m>) {
        let outcomes = self.tokens.iter_mut().filter_map(|(_, outcome)| outcome.as_mut()?.as_mut().err());
        let opened = self.opened.as_mut().and_then(|opened| opened.as_mut().err());
        for error in outcomes.chain(opened) {
            error.explain(|why| transport.explain(why));
        }
    }
}

/// Keeps what is waited for, hands on the rest.
struct Tap<'t> {
    waits: &'t mut Waits,
    handler: &'t mut dyn Handler,
    happened: bool,
}

impl Handler for Tap<'_> {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        self.happened = true;
        match event {
            Event::Done { token, method, retried, outcome } => {
                if let Some(place) = self.waits.place(token) {
                    let kept = outcome.map(|raw| Answer::new(method, raw).retried(retried));
                    *place = Some(kept.map_err(|failure| Error::failed(&failure)));
                    return;
                }
            }
            Event::Connected(connected) => {
                self.waits.hello = Some(Hello::new(&connected));
                self.waits.opened = Some(Ok(()));
                self.waits.unsettled = true;
            }
            Event::Unconnected(unconnected) if self.waits.opening => {
                self.waits.opened = Some(Err(Error::unconnected(&unconnected)));
                return;
            }
            _ => {}
        }
        self.handler.event(event, link);
    }
}

impl<'m, T: Transport<'m>, H: Handler> Client<'m, T, H> {
    /// A client over `transport`. What nobody waits for goes to `handler`: any `FnMut(Event<'_>, &mut Link<'_, '_>)`, or
    /// [`Ignore`].
    pub fn new(transport: T, handler: H) -> Self {
        let waits = Waits::default();
        Client { transport, handler, waits, started: Instant::now(), busy: false, profile: PhantomData }
    }

    /// Opens the connection and waits for it. It finds out which revisions the server speaks.
    ///
    /// # Errors
    /// If the server cannot be reached, does not answer in time, refuses, or speaks no revision of the profile.
    pub fn connect(&mut self) -> Result<&Hello, Error> {
        self.transport.link().client.connect();
        self.open(None)
    }

    /// Opens the connection with a revision that the server is known to speak. Under 2026-07-28 nothing is asked and
    /// there is nothing to wait for.
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub fn connect_as(&mut self, revision: Revision) -> Result<&Hello, Error> {
        self.transport.link().client.connect_as(revision);
        self.open(revision.is_modern().then_some(revision))
    }

    fn open(&mut self, known: Option<Revision>) -> Result<&Hello, Error> {
        self.waits.opening = true;
        self.waits.opened = None;
        let opened = match known {
            Some(revision) => {
                self.waits.hello = Some(Hello::unasked(revision));
                Ok(())
            }
            None => self.until(None, |client| client.waits.opened.take()).and_then(|opened| opened.unwrap_or(Ok(()))),
        };
        self.waits.opening = false;
        opened?;
        self.settle()?;
        self.server().ok_or(Error::lost_by(Lost::Invalid))
    }

    /// What a server asks, it may send where nobody listens yet.
    fn settle(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.waits.unsettled) {
            let time = self.transport.settle_time();
            self.until(Some(time), |client| (!client.transport.is_settling()).then_some(()))?;
        }
        Ok(())
    }

    /// Who the server is, once connected.
    #[must_use]
    pub const fn server(&self) -> Option<&Hello> {
        self.waits.hello.as_ref()
    }

    /// Sends a request and waits for its outcome.
    ///
    /// # Errors
    /// What [`Error`] tells. It ends in time: after the time of the request, or else that of the
    /// [`Options`](Options::timeout).
    pub fn request(&mut self, request: &Request<'_>) -> Result<Answer, Error> {
        let token = self.send(request)?;
        self.wait(token)
    }

    /// Sends a request. [`wait`](Client::wait) for its outcome: it is kept until then, or until it is
    /// [cancelled](Client::cancel). (The outcome of what is sent by [`link`](Client::link) goes to the handler.)
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn send(&mut self, request: &Request<'_>) -> Result<Token, Error> {
        let begun = Instant::now();
        // A session that was lost is being opened again.
        if self.engine().is_opening() {
            self.until(None, |client| (!client.engine().is_opening()).then_some(()))?;
        }
        self.settle()?;
        loop {
            match self.link().send(request) {
                Ok(token) => {
                    self.waits.tokens.push((token, None));
                    self.step()?;
                    return Ok(token);
                }
                // All connections are taken. One will be free: what is in flight has deadlines.
                Err(SendError::FullNow) if begun.elapsed() < PATIENCE => {
                    self.rest(Some(PATIENCE.saturating_sub(begun.elapsed())))?;
                    self.step()?;
                }
                Err(error) => return Err(self.not_sent(error)),
            }
        }
    }

    /// Why it was not sent: a connection that is no more is worth more words.
    fn not_sent(&mut self, error: SendError) -> Error {
        let was_open = self.waits.hello.is_some() && error == SendError::NotConnected;
        if !was_open {
            return error.into();
        }
        let mut error = Error::lost_by(Lost::Closed);
        error.explain(|why| self.transport.explain(why));
        error
    }

    /// Waits for the outcome of a request that was [sent](Client::send).
    ///
    /// # Errors
    /// As [`request`](Client::request); [`SendError::Stale`] if there is no such request.
    pub fn wait(&mut self, token: Token) -> Result<Answer, Error> {
        self.waits.place(token).ok_or(SendError::Stale)?;
        match self.until(None, |client| client.waits.take(token))? {
            Some(outcome) => outcome,
            None => Err(Error::lost_by(Lost::Closed)),
        }
    }

    /// The outcome of a request that was [sent](Client::send), if it is there already.
    pub fn poll(&mut self, token: Token) -> Option<Result<Answer, Error>> {
        self.waits.take(token)
    }

    /// The pages of a list, one request after the other, as long as the server gives a cursor and no limit is reached:
    /// see [`Pages::limits`]. It ends with the first error.
    pub fn pages<'c, 'r>(&'c mut self, list: Request<'r>) -> Pages<'c, 'r, 'm, T, H> {
        Pages { client: self, list, cursor: None, limits: PageLimits::new(), over: false }
    }

    /// The tools that were left out of the lists that the server gave, and why: over HTTP those with wrong annotations of
    /// parameters (`x-mcp-header`, from 2026-07-28 on). [`request`](Client::request) and [`pages`](Client::pages) of
    /// [`Request::list_tools`] come without them, and calls of them fail as [`Lost::Excluded`]. It is emptied with the first
    /// page of the next list. Clients should log them.
    pub fn excluded(&self) -> Vec<Excluded> {
        self.transport.excluded()
    }

    /// Why a tool must not be used, wherever it was listed: over HTTP, wrong annotations of parameters (`x-mcp-header`, from
    /// 2026-07-28 on). `None`: use it.
    pub fn excludes(&self, tool: &Tool<'_>) -> Option<String> {
        self.transport.excludes(tool)
    }

    /// Listens to changes until the token is [cancelled](Client::cancel). They go to the handler.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn listen(&mut self, filter: &Filter<'_>) -> Result<Token, Error> {
        let token = self.link().client.listen(filter)?;
        self.step()?;
        Ok(token)
    }

    /// Gives a request or a listen up. Its outcome is not told any more.
    ///
    /// # Errors
    /// [`SendError::Stale`] if it is over.
    pub fn cancel(&mut self, token: Token, reason: Option<&str>) -> Result<(), Error> {
        self.waits.tokens.retain(|(waited, _)| *waited != token);
        self.link().cancel(token, reason)?;
        self.step().map(drop)
    }

    /// Which log messages the server shall send from here on; they go to the handler.
    ///
    /// # Errors
    /// As [`request`](Client::request).
    pub fn set_log_level(&mut self, level: Level) -> Result<(), Error> {
        let link = self.link();
        let sent = link.client.set_log_level(level, link.out)?;
        if let Some(token) = sent {
            self.waits.tokens.push((token, None));
            self.wait(token)?;
        }
        Ok(())
    }

    /// Tells the server that the roots have changed.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn roots_changed(&mut self) -> Result<(), Error> {
        let link = self.link();
        link.client.roots_changed(link.out)?;
        self.step().map(drop)
    }

    /// Serves what happens while nothing is waited for: waits until something has happened, at most so long. Whether
    /// something has.
    ///
    /// # Errors
    /// If the operating system refuses something.
    pub fn turn(&mut self, at_most: Duration) -> Result<bool, Error> {
        let end = Instant::now() + at_most;
        self.transport.wait(Duration::ZERO)?;
        loop {
            if self.step()? {
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.rest(Some(left))?;
        }
    }

    /// Does what can be done without waiting: takes what has come, writes what there is to write.
    ///
    /// # Errors
    /// If the operating system refuses something.
    pub fn run(&mut self) -> Result<(), Error> {
        // What has come since the last wait is not known yet.
        self.transport.wait(Duration::ZERO)?;
        self.step().map(drop)
    }

    /// The engine and its sink, for everything else. Call [`run`](Client::run) or wait for something afterwards.
    pub fn link(&mut self) -> Link<'_, 'm> {
        let now = self.now();
        let link = self.transport.link();
        // The time of what is sent begins now.
        link.client.set_now(now);
        link
    }

    /// The engine.
    pub fn engine(&self) -> &Engine<'m> {
        self.transport.engine()
    }

    /// The handler.
    pub fn handler(&mut self) -> &mut H {
        &mut self.handler
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Milliseconds since the client was made: the time of its deadlines.
    #[must_use]
    pub fn now(&self) -> Millis {
        millis_since(self.started)
    }

    /// Shows every message, both ways.
    pub fn trace(&mut self, trace: impl FnMut(Way, &[u8]) + 'static) {
        self.transport.trace(Box::new(trace));
    }

    /// Ends the connection in order: a child process is ended, a session over HTTP too. The transport tells how it went.
    pub fn close(mut self) -> T {
        self.transport.close();
        self.transport
    }

    /// Turns until `look` sees what it looks for: `None` if `at_most` is over first, or nothing can happen any more.
    fn until<R>(
        &mut self,
        at_most: Option<Duration>,
        mut look: impl FnMut(&mut Self) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let end = at_most.map(|time| Instant::now() + time);
        loop {
            self.step()?;
            if let Some(seen) = look(self) {
                return Ok(Some(seen));
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            self.rest(left)?;
        }
    }

    /// What can be done without waiting, within reason: a server that never stops must not keep its caller from looking
    /// at the time. Whether something has happened.
    fn step(&mut self) -> Result<bool, Error> {
        let mut happened = false;
        for _ in 0..TURNS {
            let now = self.now();
            let mut tap = Tap { waits: &mut self.waits, handler: &mut self.handler, happened: false };
            let more = self.transport.run(now, &mut tap)?;
            if tap.happened {
                happened = true;
                self.waits.explain(&mut self.transport);
            }
            self.busy = more;
            if !more {
                break;
            }
        }
        Ok(happened)
    }

    fn rest(&mut self, at_most: Option<Duration>) -> Result<(), Error> {
        if self.busy {
            return Ok(self.transport.wait(Duration::ZERO)?);
        }
        let now = self.now();
        let due = self.transport.next_deadline().map(|due| due.wrapping_sub(now) as i64);
        let due = due.map(|left| Duration::from_millis(left.max(0) as u64));
        let time = due.into_iter().chain(at_most).min().unwrap_or(LONGEST_REST).min(LONGEST_REST);
        Ok(self.transport.wait(time)?)
    }
}

/// There is always a reason to look again after this time.
const LONGEST_REST: Duration = Duration::from_secs(60);

impl<'m, T: std::fmt::Debug, H> std::fmt::Debug for Client<'m, T, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// The pages of a list, see [`Client::pages`].
#[derive(Debug)]
pub struct Pages<'c, 'r, 'm, T, H> {
    client: &'c mut Client<'m, T, H>,
    list: Request<'r>,
    cursor: Option<Answer>,
    limits: PageLimits,
    over: bool,
}

impl<T, H> Pages<'_, '_, '_, T, H> {
    /// With another limit than 1000 pages; one more is an [`Error::TooManyPages`].
    #[must_use]
    pub fn at_most(self, pages: usize) -> Self {
        let limits = self.limits.pages(pages);
        self.limits(limits)
    }

    /// With other limits on pages, bytes and time than 1000, 64 MiB and 5 minutes. A list that goes on beyond one of them
    /// ends with an error that says so.
    #[must_use]
    pub fn limits(self, limits: PageLimits) -> Self {
        Pages { limits, ..self }
    }
}

impl<'m, T: Transport<'m>, H: Handler> Iterator for Pages<'_, '_, 'm, T, H> {
    type Item = Result<Answer, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        if let Err(error) = self.limits.ask() {
            self.over = true;
            return Some(Err(error));
        }
        let answer = match self.cursor.as_ref().and_then(|page| page.next_cursor()) {
            Some(cursor) => self.client.request(&self.list.after(cursor)),
            None => self.client.request(&self.list),
        };
        // Whether there is a cursor is all that counts: the same one again may lead to another page.
        self.cursor = answer.as_ref().ok().filter(|page| page.next_cursor().is_some()).cloned();
        self.over = self.cursor.is_none();
        if let Ok(page) = &answer {
            self.limits.took(page);
        }
        Some(answer)
    }
}
