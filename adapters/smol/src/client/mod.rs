//! Clients of a server that runs as a child process, is reached over HTTP, or is at the other end of a reader and a
//! writer, with one API.
//!
//! [`Client::new`] returns a handle and a [`Driver`], a future that does all input and output. Spawn the driver, and
//! clone the handle into as many tasks as you need:
//!
//! ```no_run
//! use mcp_sansio::client::views::ListToolsResult;
//! use mcp_sansio::client::{ClientInfo, Request};
//! use mcp_sansio_smol::client::{Child, Client, Ignore};
//!
//! static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0");
//!
//! #[derive(serde::Serialize)]
//! struct Sum {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! smol::block_on(async {
//!     let server = Child::spawn(std::process::Command::new("calc"), &PROFILE)?;
//!     let (client, driver) = Client::new(server, Ignore);
//!     smol::spawn(driver).detach();
//!     println!("{:?}", client.connect().await?);
//!
//!     let mut pages = client.pages(Request::list_tools());
//!     while let Some(page) = pages.next().await {
//!         for tool in page?.view::<ListToolsResult>()?.iter().flatten() {
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
//! # Events and requests of the server
//!
//! Requests of the server, progress and log messages go to the [`ClientHandler`] that [`Client::new`] got: an
//! `FnMut(ClientEvent<'_>, &mut ClientHandle<'_, '_>)`. It runs inside the driver or, while one request is under way,
//! inside the task of that request. It must not wait, and must not use the client (this panics); it answers through
//! the [`ClientHandle`]. Or take the events in a task, through the channel of [`events`]:
//!
//! ```no_run
//! use mcp_sansio::client::result::ClientResult;
//! use mcp_sansio::client::{ClientInfo, Request};
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::protocol::ClientCapability;
//! use mcp_sansio_smol::client::{Child, Client, OwnedEvent, events};
//! use smol::stream::StreamExt;
//!
//! static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0").feature(ClientCapability::ElicitForm);
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let (handler, mut events) = events(100);
//! let server = Child::spawn(std::process::Command::new("booking"), &PROFILE)?;
//! let (client, driver) = Client::new(server, handler);
//! smol::spawn(driver).detach();
//! let answering = client.clone();
//! smol::spawn(async move {
//!     while let Some(event) = events.next().await {
//!         match event {
//!             OwnedEvent::Asked(question) => {
//!                 println!("{}", question.params());
//!                 let answer = ClientResult::accept(Raw::constant(r#"{"sure":true}"#));
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
//! # Guarantees
//!
//! - **Each wait ends.** Requests have deadlines, and the end of the server is noticed. A server that does not read
//!   or does not answer blocks neither the driver nor other requests.
//! - **Dropping the future of a request cancels it**, and the client sends the cancellation to the server.
//! - **Requests beyond the limits wait for their turn**, in order.
//! - **Everything that grows has a limit**: messages, pending bytes, changes and events that wait to be taken.

mod alarm;
#[cfg(feature = "http")]
mod authorize;
mod child;
#[cfg(feature = "http")]
mod dial;
mod driver;
mod events;
mod followed_events;
#[cfg(feature = "http")]
mod http;
mod lines;
mod listen;
mod outcome;
#[cfg_attr(not(unix), path = "no_pipe.rs")]
mod pipe;
mod shared;
mod state;
mod tasks;
mod wakes;

pub use child::{Child, ChildOptions, OnLine, Stderr};
pub use driver::Driver;
pub use events::{EventSender, Events, OwnedEvent, OwnedServerRequest, events};
pub use followed_events::FollowedEvents;
pub use lines::StreamTransport;
pub use listen::{SubscriptionEvent, SubscriptionStream};
pub use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler};
pub use mcp_sansio_host::{
    ChildExit, ClientError, ClientOptions, Direction, ExcludedTool, IN_FLIGHT, Ignore, OwnedResult, PageLimits,
    ServerError, ServerHello, StopSignal, TransportState,
};
pub use outcome::{Pages, PendingResponse};
#[cfg(feature = "tls")]
pub use rustls;
#[cfg(feature = "http")]
pub use {
    authorize::{AuthorizationDemand, AuthorizationHeaders},
    http::Http,
    mcp_sansio_host::{CONNECTIONS, FetchFailed, FetchedResponse, Fetcher, HttpOptions},
    mcp_sansio_http::client::{FetchLimits, FetchRequest, HttpClientConfig, params},
};
#[cfg(all(feature = "tls", unix))]
pub use {
    mcp_sansio_auth as auth,
    mcp_sansio_host::{AuthorizationOptions, TokenFile, TokenStore},
};

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{PendingId, Request, ServerRequestId, SubscriptionFilter};
use mcp_sansio::error::RpcError;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use shared::Shared;
use state::State;

/// A function that is called with every message, see [`Client::trace`].
pub type Trace = Box<dyn FnMut(Direction, &[u8]) + Send>;

/// The transport of a [`Client`]: [`Child`], [`StreamTransport`] or `Http`. It is polled under a lock and must not block.
pub trait Transport: Send {
    /// Returns what it knows.
    fn state(&self) -> &dyn TransportState<'static, Trace>;

    /// Returns what it knows.
    fn state_mut(&mut self) -> &mut dyn TransportState<'static, Trace>;

    /// Reads and writes as much as is possible without waiting, and passes events to the handler. Returns `true` if
    /// there may be more: poll it again. Otherwise it wakes the task when there is.
    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool;

    /// Begins to open the connection again: the next run reports that requests in flight are lost. A process is started again;
    /// it is ended before if it still runs. There is no run meanwhile.
    ///
    /// # Errors
    /// [`ClientError::Start`] and [`ClientError::Io`] if there is no other process.
    fn poll_restart(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        let _ = cx;
        self.state_mut().handle().client.connect();
        Poll::Ready(Ok(()))
    }

    /// Begins to close the connection. Requests in flight are lost; the next run reports them.
    fn begin_close(&mut self, now: Millis);

    /// Continues to close the connection, and returns how a process ended, if there was one. It ends in a limited time.
    fn poll_close(&mut self, now: Millis, cx: &mut Context<'_>) -> Poll<Option<ChildExit>>;
}

impl<T: Transport + 'static> From<T> for Box<dyn Transport> {
    fn from(transport: T) -> Self {
        Box::new(transport)
    }
}

/// A handle to a connection to one server. Clones are handles to the same connection. It is closed when the last
/// handle and everything made from it is dropped. The [module](self) has an example.
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
    /// Makes a client over `transport`, and the future that does its input and output: spawn it. `handler` gets the
    /// events that no task waits for: it is an `FnMut(ClientEvent<'_>, &mut ClientHandle<'_, '_>)`, [`events`], or [`Ignore`].
    pub fn new(
        transport: impl Into<Box<dyn Transport>>,
        handler: impl ClientHandler + Send + 'static,
    ) -> (Self, Driver) {
        let shared = Arc::new(Shared::new(transport.into(), Box::new(handler)));
        let driver = Driver::new(shared.clone());
        (Client(Arc::new(Handle(shared))), driver)
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.0.0.with(act)
    }

    /// Opens the connection and waits until it is open. Finds the revision that both sides support
    /// ([lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle),
    /// [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning)).
    ///
    /// # Errors
    /// [`ClientError::Lost`] if the server cannot be reached or does not answer in time; [`ClientError::Server`] if it refuses;
    /// [`ClientError::NoCommonRevision`] if it supports no revision of the info.
    pub async fn connect(&self) -> Result<Arc<ServerHello>, ClientError> {
        self.open(None).await
    }

    /// Opens the connection with a revision that the server is known to support. With 2026-07-28 nothing is sent, and
    /// it returns at once.
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub async fn connect_as(&self, revision: Revision) -> Result<Arc<ServerHello>, ClientError> {
        self.open(Some(revision)).await
    }

    /// Makes a new connection to the server and opens it: starts a child's command again, and ends its process before if it
    /// still runs (as [`close`](Client::close) does); opens a new session over HTTP. For a server that has
    /// [ended](ClientError::is_disconnected), or that hangs. Requests in flight are lost, those that are made meanwhile wait,
    /// subscriptions open again. Two tasks that call it at once get the same connection. A [`StreamTransport`] cannot be
    /// opened again.
    ///
    /// ```no_run
    /// use mcp_sansio::client::{Request, views::CallToolResult};
    /// use mcp_sansio_smol::client::{Client, ClientError};
    ///
    /// async fn load(client: &Client) -> Result<Option<String>, ClientError> {
    ///     let answer = match client.request(Request::call("load")).await {
    ///         Err(error) if error.is_disconnected() => {
    ///             client.restart().await?;
    ///             client.request(Request::call("load")).await?
    ///         }
    ///         answer => answer?,
    ///     };
    ///     Ok(answer.view::<CallToolResult>()?.text().map(|text| text.to_string()))
    /// }
    /// # let _ = load;
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Client::connect); [`ClientError::Start`] if the program cannot be started any more. `restart` may be
    /// called again then, after some time.
    pub async fn restart(&self) -> Result<Arc<ServerHello>, ClientError> {
        self.with(State::restart)?;
        poll_fn(|cx| self.with(|state| state.poll_opened(cx))).await
    }

    async fn open(&self, known: Option<Revision>) -> Result<Arc<ServerHello>, ClientError> {
        self.with(|state| state.connect(known))?;
        poll_fn(|cx| self.with(|state| state.poll_opened(cx))).await
    }

    /// Returns the server's name and capabilities; `None` before the connection is open.
    #[must_use]
    pub fn server(&self) -> Option<Arc<ServerHello>> {
        self.with(|state| state.outcomes.hello.clone())
    }

    /// Sends a request, at once if there is room for it. Await its result; dropping the future cancels the request.
    ///
    /// A [`Request`] is not `Send`: a task that sends it again [keeps](Request::keep) it. Else the compiler says of the future
    /// that it "cannot be sent between threads safely", once for each part of the request.
    ///
    /// ```
    /// use mcp_sansio::client::Request;
    /// use mcp_sansio_smol::client::{Client, ClientError, OwnedResult};
    ///
    /// async fn three_times(client: Client, path: String) -> Result<OwnedResult, ClientError> {
    ///     let arguments = serde_json::json!({ "path": path });
    ///     let kept = Request::call("import").arguments(&arguments).timeout(5_000).keep()?;
    ///     for _ in 0..2 {
    ///         if let Ok(result) = client.request(kept.request()).await {
    ///             return Ok(result);
    ///         }
    ///     }
    ///     client.request(kept.request()).await
    /// }
    /// # let _ = |client: Client| smol::spawn(three_times(client, String::new()));
    /// ```
    ///
    /// The future ends with any [`ClientError`]; with [`ClientError::Lost`] and [`TransportError::TimedOut`](mcp_sansio::client::TransportError::TimedOut) if there is no result in the
    /// time of the request, or else in the time of the [`ClientOptions`](ClientOptions::timeout).
    // By value: with a reference, the future of a caller would borrow the request across `.await` and not be `Send`.
    pub fn request(&self, request: Request<'_>) -> PendingResponse {
        PendingResponse::new(self.clone(), &request, None)
    }

    /// Sends a request as [`request`](Client::request) does. `sending` gets its token before it is written, so no event that
    /// carries the token comes earlier: to the handler, or to a task that reads [`events`]. A request that waits for its turn
    /// has no token before, and none if it is never sent. `sending` must not use the client (this panics).
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use std::sync::{Arc, Mutex};
    /// use mcp_sansio::client::{PendingId, Request};
    /// use mcp_sansio_smol::client::{Client, ClientError};
    ///
    /// /// The names of requests, for the task that reads the events. Remove them when the results are there.
    /// type Names = Arc<Mutex<HashMap<PendingId, String>>>;
    ///
    /// async fn call(client: &Client, names: Names, tool: String) -> Result<(), ClientError> {
    ///     let request = Request::call(&*tool).with_progress();
    ///     let named = tool.clone();
    ///     let answer = client.request_with(request, move |token| _ = names.lock().unwrap().insert(token, named));
    ///     println!("{tool}: {}", answer.await?.as_str());
    ///     Ok(())
    /// }
    /// # let _ = call;
    /// ```
    pub fn request_with(
        &self,
        request: Request<'_>,
        sending: impl FnOnce(PendingId) + Send + 'static,
    ) -> PendingResponse {
        PendingResponse::new(self.clone(), &request, Some(Box::new(|_, token| sending(token))))
    }

    /// Returns the pages of a
    /// [list](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination), as a stream that
    /// sends one request after the other.
    pub fn pages(&self, list: Request<'_>) -> Pages {
        Pages::new(self.clone(), &list)
    }

    /// Returns the tools that the client left out of the last list, with the reasons. Over HTTP it leaves out tools
    /// with invalid `x-mcp-header` annotations (2026-07-28): [`request`](Client::request) and
    /// [`pages`](Client::pages) of [`Request::list_tools`] come without them, and calls of them fail with
    /// [`TransportError::Excluded`](mcp_sansio::client::TransportError::Excluded). The first page of the next list clears it. Applications should log these tools.
    #[must_use]
    pub fn excluded(&self) -> Vec<ExcludedTool> {
        self.with(|state| state.transport.as_ref().map(|transport| transport.state().excluded()).unwrap_or_default())
    }

    /// Returns why a tool must not be used: over HTTP, an invalid `x-mcp-header` annotation (2026-07-28). `None` if
    /// the tool can be used.
    #[must_use]
    pub fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        self.with(|state| state.transport.as_ref().and_then(|transport| transport.state().excludes(tool)))
    }

    /// Subscribes to changes, in all revisions; dropping the stream unsubscribes
    /// ([subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions)).
    ///
    /// # Errors
    /// [`ClientError::NotSent`] if [`IN_FLIGHT`] requests and subscriptions are open, or the connection was never opened;
    /// [`ClientError::Lost`] if it is closed.
    pub fn listen(&self, filter: &SubscriptionFilter<'_>) -> Result<SubscriptionStream, ClientError> {
        let token = self.with(|state| state.listen(filter))?;
        Ok(SubscriptionStream::new(self.clone(), token))
    }

    /// Answers a request of the server, at once or later.
    ///
    /// # Errors
    /// [`SendError::Stale`](mcp_sansio::client::SendError::Stale) if the server does not wait for the answer any
    /// more.
    pub fn reply(&self, question: ServerRequestId, reply: &ClientResult<'_>) -> Result<(), ClientError> {
        self.handle(|handle| handle.reply(question, reply))?.map_err(ClientError::from)
    }

    /// Refuses a request of the server with an error.
    ///
    /// # Errors
    /// As [`reply`](Client::reply).
    pub fn refuse(&self, question: ServerRequestId, refusal: &RpcError<'_>) -> Result<(), ClientError> {
        self.handle(|handle| handle.refuse(question, refusal))?.map_err(ClientError::from)
    }

    /// Sets the level of the log messages that the server sends: `logging/setLevel` up to 2025-11-25
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)), in `_meta` of
    /// later requests from 2026-07-28. The handler gets the messages.
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    ///
    /// # Errors
    /// As a [request](Client::request).
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), ClientError> {
        let modern = self.handle(|handle| {
            let modern = handle.client.revision().is_some_and(Revision::is_modern);
            // From 2026-07-28 this only notes the level for later requests.
            modern.then(|| handle.client.set_log_level(level, handle.out))
        })?;
        match modern {
            Some(noted) => noted.map(drop).map_err(ClientError::from),
            None => self.request(Request::set_level(level)).await.map(drop),
        }
    }

    /// Sends `notifications/roots/list_changed`
    /// ([roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots)).
    ///
    /// Roots are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28 on
    /// (SEP-2577): they still work; a new program takes folders as arguments of tools, as URIs of resources, or from
    /// its configuration.
    ///
    /// # Errors
    /// [`ClientError::NotSent`] if it cannot be sent.
    pub fn roots_changed(&self) -> Result<(), ClientError> {
        self.handle(|handle| handle.client.roots_changed(handle.out))?.map_err(ClientError::from)
    }

    /// Calls `act` with the engine and its sink, for everything else. Outcomes of requests that are sent here go to
    /// the handler. `act` must not use the client (this panics).
    ///
    /// # Errors
    /// [`ClientError::Lost`] if the connection is closed.
    pub fn handle<R>(&self, act: impl FnOnce(&mut ClientHandle<'_, 'static>) -> R) -> Result<R, ClientError> {
        self.with(|state| {
            let done = act(&mut state.handle()?);
            state.wake_driver();
            Ok(done)
        })
    }

    /// Calls `look` with the engine.
    ///
    /// # Errors
    /// [`ClientError::Lost`] if the connection is closed.
    pub fn engine<R>(&self, look: impl FnOnce(&mcp_sansio::client::Client<'static>) -> R) -> Result<R, ClientError> {
        self.with(|state| Ok(look(state.handle()?.client)))
    }

    /// Calls `trace` with every message in both directions. It runs where the handler does.
    pub fn trace(&self, trace: impl FnMut(Direction, &[u8]) + Send + 'static) {
        self.with(|state| {
            if let Some(transport) = &mut state.transport {
                transport.state_mut().trace(Box::new(trace));
            }
        });
    }

    /// Closes the connection: stops a child process, ends an HTTP session. Requests in flight are lost. Returns how
    /// the process ended, if there is one. The driver must run until then.
    pub async fn close(&self) -> Option<ChildExit> {
        self.with(|state| {
            state.closing = true;
            state.wake_driver();
        });
        poll_fn(|cx| self.with(|state| state.poll_over(cx))).await
    }
}

mcp_sansio::debug_fields!(impl for Client {});
