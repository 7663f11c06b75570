//! Clients: a server as a child process, over HTTP, or at the other end of any reader and writer, with one API.
//!
//! [`Client::new`] gives a handle and a [`Driver`], a future that does all input and output. Spawn the driver and clone
//! the handle into as many tasks as you like:
//!
//! ```no_run
//! use mcp_sansio::client::views::Tools;
//! use mcp_sansio::client::{Profile, Request};
//! use mcp_sansio_smol::client::{Child, Client, Ignore};
//!
//! static PROFILE: Profile<'static> = Profile::new("demo", "1.0");
//!
//! #[derive(serde::Serialize)]
//! struct Sum {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! smol::block_on(async {
//!     let server = Child::spawn(smol::process::Command::new("calc"), &PROFILE)?;
//!     let (client, driver) = Client::new(server, Ignore);
//!     smol::spawn(driver).detach();
//!     println!("{:?}", client.connect().await?);
//!
//!     let mut pages = client.pages(Request::list_tools());
//!     while let Some(page) = pages.next().await {
//!         for tool in page?.view::<Tools>()?.iter().flatten() {
//!             println!("{}", tool.name());
//!         }
//!     }
//!
//!     // Both are sent at once, and answered in any order.
//!     let one = client.request(Request::call("add").arguments(&Sum { a: 1, b: 2 }));
//!     let two = client.request(Request::call("add").arguments(&Sum { a: 3, b: 4 }).timeout(5_000));
//!     println!("{} {}", one.await?.as_str(), two.await?.as_str());
//!     client.close().await; // the process is ended in the order that the specification asks for
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # What a server says of its own accord
//!
//! Questions, progress, log messages go to the [`Handler`] that [`Client::new`] was given: any
//! `FnMut(Event<'_>, &mut Link<'_, '_>)`. It runs inside the driver: it must not wait, nor use the client itself (that
//! panics). What it has to say it says through the [`Link`]. Or let [`events`] carry them to a task, which may take its time:
//!
//! ```no_run
//! use mcp_sansio::client::reply::Reply;
//! use mcp_sansio::client::{Profile, Request};
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::protocol::ClientFeature;
//! use mcp_sansio_smol::client::{Child, Client, OwnedEvent, events};
//! use smol::stream::StreamExt;
//!
//! static PROFILE: Profile<'static> = Profile::new("demo", "1.0").feature(ClientFeature::ElicitForm);
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (handler, mut events) = events(100);
//! let server = Child::spawn(smol::process::Command::new("booking"), &PROFILE)?;
//! let (client, driver) = Client::new(server, handler);
//! smol::spawn(driver).detach();
//! let answering = client.clone();
//! smol::spawn(async move {
//!     while let Some(event) = events.next().await {
//!         match event {
//!             OwnedEvent::Asked(question) => {
//!                 println!("{}", question.params());
//!                 let answer = Reply::accept(Raw::constant(r#"{"sure":true}"#));
//!                 let _ = answering.reply(question.id, &answer);
//!             }
//!             other => println!("{other:?}"),
//!         }
//!     }
//! })
//! .detach();
//! client.connect().await?;
//! client.request(Request::call("book")).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does for you
//!
//! - **Every wait ends.** Requests have deadlines, a server's death is noticed, and one that does not read or never answers
//!   blocks neither the driver nor other requests.
//! - **Dropping the future of a request cancels it**, and the server is told.
//! - **More requests than there is room for wait their turn**, first come, first served.
//! - **Nothing grows without bound**: messages, what waits to be written, what a listen has heard, events that nobody takes.

#[cfg(feature = "http")]
mod authorize;
mod child;
mod driver;
mod events;
#[cfg(feature = "http")]
mod http;
mod lines;
mod listen;
mod outcome;
#[cfg(feature = "http")]
mod socket;
mod state;
mod stderr;
#[cfg(feature = "tls")]
mod tls;

#[cfg(feature = "http")]
pub use authorize::{Authorize, Credentials, Demand};
pub use child::{Child, ChildOptions};
pub use driver::Driver;
pub use events::{Ask, Events, OwnedEvent, Teller, events};
#[cfg(feature = "http")]
pub use http::{CONNECTIONS, Config, Http, HttpOptions};
pub use lines::Over;
pub use listen::{Change, Changes};
pub use mcp_sansio::client::owned::{
    Answer, Ended, Error, Excluded, Hello, How, Options, PageLimits, ServerError, Way,
};
pub use mcp_sansio::client::{Event, Handler, Link};
pub use outcome::{Outcome, Pages};
#[cfg(feature = "tls")]
pub use rustls;
pub use stderr::{OnLine, Stderr};

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::client::reply::{Refusal, Reply};
use mcp_sansio::client::views::Tool;
use mcp_sansio::client::{Engine, Filter, Lost, QuestionId, Request};
use mcp_sansio::protocol::Level;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use state::{Shared, State};

/// Requests and listens in flight at the most; further requests wait.
pub const IN_FLIGHT: usize = 64;

/// What is shown every message, see [`Client::trace`].
pub type Trace = Box<dyn FnMut(Way, &[u8]) + Send>;

/// What carries messages: [`Child`], [`Over`], `Http`. It is polled under a lock and must not block.
pub trait Transport: Send {
    /// The engine and its sink.
    fn link(&mut self) -> Link<'_, 'static>;

    /// Does what can be done without waiting: takes what has come, writes what there is to write. `true`: poll it again,
    /// there may be more; otherwise the task is woken when there is.
    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn Handler) -> bool;

    /// When to poll again at the latest.
    fn next_deadline(&self) -> Option<Millis>;

    /// Whether so much waits to be written that requests have to wait.
    fn is_full(&mut self) -> bool {
        false
    }

    /// What is known about a loss that was told by the last run.
    fn explain(&self, why: Lost) -> String;

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

    /// Begins to end the connection. What is in flight is lost, and told by the next run.
    fn begin_close(&mut self, now: Millis);

    /// Goes on ending it, until it is over; how a process ended, if there was one. It ends within bounded time.
    fn poll_close(&mut self, now: Millis, cx: &mut Context<'_>) -> Poll<Option<Ended>>;
}

impl Transport for Box<dyn Transport> {
    fn link(&mut self) -> Link<'_, 'static> {
        (**self).link()
    }
    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn Handler) -> bool {
        (**self).poll_run(now, cx, handler)
    }
    fn next_deadline(&self) -> Option<Millis> {
        (**self).next_deadline()
    }
    fn is_full(&mut self) -> bool {
        (**self).is_full()
    }
    fn explain(&self, why: Lost) -> String {
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
    fn begin_close(&mut self, now: Millis) {
        (**self).begin_close(now);
    }
    fn poll_close(&mut self, now: Millis, cx: &mut Context<'_>) -> Poll<Option<Ended>> {
        (**self).poll_close(now, cx)
    }
}

/// Ignores everything that nobody waits for. For clients that declare nothing they could be asked for.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Ignore;

impl Handler for Ignore {
    fn event(&mut self, _: Event<'_>, _: &mut Link<'_, '_>) {}
}

/// A handle to a connection to one server. Clones are handles to the same; when the last one and everything that came
/// from it is dropped, the connection is closed. The [module](self) shows it in use.
#[derive(Clone)]
pub struct Client(Arc<Handle>);

struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.with(|state| {
            state.closing = true;
            state.wake_driver();
        });
    }
}

impl Client {
    /// A client over `transport`, and the future that does its input and output: spawn it. What nobody waits for goes to
    /// `handler`: any `FnMut(Event<'_>, &mut Link<'_, '_>)`, [`events`], or [`Ignore`].
    pub fn new<H: Handler + Unpin>(transport: impl Transport + 'static, handler: H) -> (Self, Driver<H>) {
        let shared = Arc::new(Shared::new(Box::new(transport)));
        let driver = Driver::new(shared.clone(), handler);
        (Client(Arc::new(Handle(shared))), driver)
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.0.0.with(act)
    }

    /// Opens the connection and waits for it. It finds out which revisions the server speaks.
    ///
    /// # Errors
    /// If the server cannot be reached, does not answer in time, refuses, or speaks no revision of the profile.
    pub async fn connect(&self) -> Result<Arc<Hello>, Error> {
        self.open(None).await
    }

    /// Opens the connection with a revision that the server is known to speak. Under 2026-07-28 nothing is asked and
    /// there is nothing to wait for.
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub async fn connect_as(&self, revision: Revision) -> Result<Arc<Hello>, Error> {
        self.open(Some(revision)).await
    }

    async fn open(&self, known: Option<Revision>) -> Result<Arc<Hello>, Error> {
        self.with(|state| state.connect(known))?;
        poll_fn(|cx| self.with(|state| state.poll_opened(cx))).await
    }

    /// Who the server is, once connected.
    #[must_use]
    pub fn server(&self) -> Option<Arc<Hello>> {
        self.with(|state| state.book.hello.clone())
    }

    /// Sends a request, at once if there is room for it. Await its outcome, or drop it to cancel the request.
    ///
    /// The outcome is what [`Error`] tells if it is no answer. It ends in time: after the time of the request, or else that
    /// of the [`Options`](Options::timeout).
    pub fn request(&self, request: Request<'_>) -> Outcome {
        Outcome::new(self.clone(), &request)
    }

    /// The pages of a list, a stream that sends one request after the other.
    pub fn pages(&self, list: Request<'_>) -> Pages {
        Pages::new(self.clone(), &list)
    }

    /// The tools that were left out of the lists that the server gave, and why: over HTTP those with wrong annotations of
    /// parameters (`x-mcp-header`, from 2026-07-28 on). [`request`](Client::request) and [`pages`](Client::pages) of
    /// [`Request::list_tools`] come without them, and calls of them fail as [`Lost::Excluded`]. It is emptied with the first
    /// page of the next list. Clients should log them.
    #[must_use]
    pub fn excluded(&self) -> Vec<Excluded> {
        self.with(|state| state.transport.as_ref().map(|transport| transport.excluded()).unwrap_or_default())
    }

    /// Why a tool must not be used, wherever it was listed: over HTTP, wrong annotations of parameters (`x-mcp-header`, from
    /// 2026-07-28 on). `None`: use it.
    #[must_use]
    pub fn excludes(&self, tool: &Tool<'_>) -> Option<String> {
        self.with(|state| state.transport.as_ref().and_then(|transport| transport.excludes(tool)))
    }

    /// Listens to changes, in all revisions; dropping the stream ends it.
    ///
    /// # Errors
    /// If it cannot be: before the connection is open, or with all [places](IN_FLIGHT) taken.
    pub fn listen(&self, filter: &Filter<'_>) -> Result<Changes, Error> {
        let token = self.with(|state| state.listen(filter))?;
        Ok(Changes::new(self.clone(), token))
    }

    /// Answers a question, now or later.
    ///
    /// # Errors
    /// [`SendError::Stale`](mcp_sansio::client::SendError::Stale) if nobody wants the answer any more.
    pub fn reply(&self, question: QuestionId, reply: &Reply<'_>) -> Result<(), Error> {
        self.link(|link| link.reply(question, reply))?.map_err(Error::from)
    }

    /// Refuses a question.
    ///
    /// # Errors
    /// As [`reply`](Client::reply).
    pub fn refuse(&self, question: QuestionId, refusal: &Refusal<'_>) -> Result<(), Error> {
        self.link(|link| link.refuse(question, refusal))?.map_err(Error::from)
    }

    /// Which log messages the server shall send from here on; they go to the handler.
    ///
    /// # Errors
    /// As a [request](Client::request).
    pub async fn set_log_level(&self, level: Level) -> Result<(), Error> {
        let modern = self.link(|link| {
            let modern = link.client.revision().is_some_and(Revision::is_modern);
            // Nothing is sent then.
            modern.then(|| link.client.set_log_level(level, link.out))
        })?;
        match modern {
            Some(noted) => noted.map(drop).map_err(Error::from),
            None => self.request(Request::set_level(level)).await.map(drop),
        }
    }

    /// Tells the server that the roots have changed.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn roots_changed(&self) -> Result<(), Error> {
        self.link(|link| link.client.roots_changed(link.out))?.map_err(Error::from)
    }

    /// The engine and its sink, for everything else. Outcomes of what is sent like this go to the handler. `act` must not
    /// use the client itself.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn link<R>(&self, act: impl FnOnce(&mut Link<'_, 'static>) -> R) -> Result<R, Error> {
        self.with(|state| {
            let done = act(&mut state.link()?);
            state.wake_driver();
            Ok(done)
        })
    }

    /// The engine, to look at.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn engine<R>(&self, look: impl FnOnce(&Engine<'static>) -> R) -> Result<R, Error> {
        self.with(|state| Ok(look(state.link()?.client)))
    }

    /// Shows every message, both ways. `trace` runs inside the driver.
    pub fn trace(&self, trace: impl FnMut(Way, &[u8]) + Send + 'static) {
        self.with(|state| {
            if let Some(transport) = &mut state.transport {
                transport.trace(Box::new(trace));
            }
        });
    }

    /// Ends the connection in order: a child process is ended, a session over HTTP too. What is in flight is lost. How the
    /// process ended, if there is one. The driver has to go on until then.
    pub async fn close(&self) -> Option<Ended> {
        self.with(|state| {
            state.closing = true;
            state.wake_driver();
        });
        poll_fn(|cx| self.with(|state| state.poll_over(cx))).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
