//! Clients of a server that runs as a child process or is reached over HTTP, with one API.
//!
//! ```no_run
//! use std::process::Command;
//! use mcp_sansio::client::views::{CallToolResult, ListToolsResult};
//! use mcp_sansio::client::{ClientInfo, Request};
//! use mcp_sansio_blocking::client::{Child, Client, Ignore};
//!
//! let info = ClientInfo::new("demo", "1.0");
//! let server = Child::spawn(Command::new("calc"), &info)?;
//! let mut client = Client::new(server, Ignore);
//! println!("{:?}", client.connect()?);
//! for page in client.pages(Request::list_tools()) {
//!     for tool in page?.view::<ListToolsResult>()?.iter().flatten() {
//!         println!("{}", tool.name());
//!     }
//! }
//! let arguments = serde_json::json!({ "a": 1, "b": 2 });
//! let answer = client.request(&Request::call("add").arguments(&arguments).timeout(5_000))?;
//! if let Some(text) = answer.view::<CallToolResult>()?.text() {
//!     println!("{text}");
//! }
//! client.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [`ClientHandler`] gets everything else: requests of the server, which it answers at once or later, progress, log
//! messages, changes. Each wait ends: requests have deadlines, the end of the server is noticed, and writing to a
//! server that does not read does not block.

mod child;
mod events;
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "no_exit_watch.rs")]
mod exit_watch;
#[cfg(all(feature = "http", unix))]
mod http;
mod pages;
mod pipes;
mod process;
mod tasks;
#[cfg(all(feature = "http", unix))]
mod tcp;
mod transport;

pub use child::{Child, ChildOptions};
pub use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler};
pub use mcp_sansio_host::{
    ChildExit, ClientError, ClientOptions, Direction, ExcludedTool, IN_FLIGHT, Ignore, OwnedResult, PageLimits,
    ServerError, ServerHello, StopSignal, TransportState,
};
pub use pages::Pages;
pub use pipes::{OnLine, Stderr};
#[cfg(feature = "tls")]
pub use rustls;
pub use transport::{Trace, Transport};
#[cfg(all(feature = "http", unix))]
pub use {
    http::Http,
    mcp_sansio_host::{CONNECTIONS, FetchFailed, FetchedResponse, Fetcher, HttpOptions},
    mcp_sansio_http::client::{
        ChallengeAnswer, ChallengedRequest, FetchLimits, FetchRequest, HeaderWriter, HttpClientConfig, params,
    },
};
#[cfg(all(feature = "tls", unix))]
pub use {
    mcp_sansio_auth as auth,
    mcp_sansio_host::{AuthorizationOptions, TokenFile, TokenStore},
};

use std::marker::PhantomData;
use std::task::Poll;
use std::time::{Duration, Instant};

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{PendingId, Request, SendError, ServerRequestId, SubscriptionFilter, TransportError};
use mcp_sansio::error::RpcError;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;

use mcp_sansio_host::{OutcomeHandler, Outcomes, PageCursor};

use crate::millis_since;

/// The limit of the transport's runs before the caller looks for its outcome.
const TURNS: usize = 64;

/// The longest time that a request waits for a free connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to one server. The [module](self) has an example.
#[non_exhaustive]
pub struct Client<'m, T, H> {
    /// The transport.
    pub transport: T,
    /// The handler of the events that no call waits for.
    pub handler: H,
    outcomes: Outcomes,
    started: Instant,
    /// The last turn reached its limit: there is more to do at once.
    busy: bool,
    /// The request about a task that is under way, and the id of the task.
    following: Option<(String, PendingId)>,
    info: PhantomData<&'m ()>,
}

impl<'m, T: Transport<'m>, H: ClientHandler> Client<'m, T, H> {
    /// Makes a client over `transport`. `handler` gets the events that no call waits for: it is an
    /// `FnMut(ClientEvent<'_>, &mut ClientHandle<'_, '_>)`, or [`Ignore`].
    pub fn new(transport: T, handler: H) -> Self {
        Client {
            transport,
            handler,
            outcomes: Outcomes::default(),
            started: Instant::now(),
            busy: false,
            following: None,
            info: PhantomData,
        }
    }

    /// Opens the connection and waits until it is open. Finds the revision that both sides support
    /// ([lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle),
    /// [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning)).
    ///
    /// # Errors
    /// [`ClientError::Lost`] if the server cannot be reached or does not answer in time; [`ClientError::Server`] if it refuses;
    /// [`ClientError::NoCommonRevision`] if it supports no revision of the info.
    pub fn connect(&mut self) -> Result<&ServerHello, ClientError> {
        self.outcomes.connect(self.transport.state_mut().handle().client, None);
        self.open()
    }

    /// Opens the connection with a revision that the server is known to support. With 2026-07-28 nothing is sent, and
    /// it returns at once.
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub fn connect_as(&mut self, revision: Revision) -> Result<&ServerHello, ClientError> {
        self.outcomes.connect(self.transport.state_mut().handle().client, Some(revision));
        self.open()
    }

    /// Makes a new connection to the server and opens it: starts a child's command again, and ends its process before if it
    /// still runs (as [`close`](Client::close) does); opens a new session over HTTP. For a server that has
    /// [ended](ClientError::is_disconnected), or that hangs. Requests in flight are lost, subscriptions open again.
    ///
    /// ```no_run
    /// use mcp_sansio::client::{Request, views::CallToolResult};
    /// use mcp_sansio_blocking::client::{Child, Client, ClientError, Ignore};
    ///
    /// fn load<'m>(client: &mut Client<'m, Child<'m>, Ignore>) -> Result<Option<String>, ClientError> {
    ///     let request = Request::call("load");
    ///     let answer = match client.request(&request) {
    ///         Err(error) if error.is_disconnected() => {
    ///             client.restart()?;
    ///             client.request(&request)?
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
    pub fn restart(&mut self) -> Result<&ServerHello, ClientError> {
        self.transport.restart()?;
        self.outcomes.begin();
        self.open()
    }

    fn open(&mut self) -> Result<&ServerHello, ClientError> {
        if self.outcomes.is_opening() {
            self.step()?;
        }
        self.until(|client| match client.outcomes.poll_opened(None) {
            Poll::Ready(opened) => Some(opened),
            Poll::Pending => None,
        })??;
        self.settle()?;
        self.server().ok_or(ClientError::lost_by(TransportError::Invalid))
    }

    /// Waits until the server can send requests to the client (over HTTP, its stream is open): the first request may
    /// cause one.
    fn settle(&mut self) -> Result<(), ClientError> {
        // The next line would look at the clock.
        if self.outcomes.settles.is_none() {
            return Ok(());
        }
        self.step()?;
        while self.outcomes.is_settling(self.transport.state(), self.now()) {
            let left = self.outcomes.settles.unwrap_or_default().saturating_sub(self.now());
            self.rest(Some(Duration::from_millis(left)))?;
            self.step()?;
        }
        Ok(())
    }

    /// Returns the server's name and capabilities; `None` before the connection is open.
    #[must_use]
    pub fn server(&self) -> Option<&ServerHello> {
        self.outcomes.hello.as_deref()
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::Lost`] with [`TransportError::TimedOut`] if there is no result in the time of the request, or
    /// else in the time of the [`ClientOptions`](ClientOptions::timeout).
    pub fn request(&mut self, request: &Request<'_>) -> Result<OwnedResult, ClientError> {
        let token = self.send(request)?;
        self.outcome(token)
    }

    /// Sends a request and returns at once. The client keeps its outcome for [`wait`](Client::wait) or
    /// [`poll`](Client::poll), until the request is [cancelled](Client::cancel). (Outcomes of requests sent through
    /// [`handle`](Client::handle) go to the handler.)
    ///
    /// # Errors
    /// [`ClientError::NotSent`] if it cannot be sent; [`ClientError::Lost`] if the connection is closed.
    pub fn send(&mut self, request: &Request<'_>) -> Result<PendingId, ClientError> {
        self.send_with(request, |_| ())
    }

    /// Sends a request as [`send`](Client::send) does. `sending` gets its token before it is written, so the handler gets no
    /// event earlier that carries the token.
    ///
    /// ```no_run
    /// use std::cell::Cell;
    /// use std::process::Command;
    /// use mcp_sansio::client::{ClientInfo, Request};
    /// use mcp_sansio_blocking::client::{Child, Client, ClientEvent, ClientHandle};
    ///
    /// let info = ClientInfo::new("demo", "1.0");
    /// let loading = Cell::new(None);
    /// let handler = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
    ///     if let ClientEvent::Progress { token, done, .. } = event && loading.get() == Some(token) {
    ///         println!("loaded: {done}");
    ///     }
    /// };
    /// let mut client = Client::new(Child::spawn(Command::new("calc"), &info)?, handler);
    /// client.connect()?;
    /// let token = client.send_with(&Request::call("load").with_progress(), |token| loading.set(Some(token)))?;
    /// println!("{}", client.wait(token)?.as_str());
    /// # Ok::<(), mcp_sansio_blocking::client::ClientError>(())
    /// ```
    ///
    /// # Errors
    /// As [`send`](Client::send).
    pub fn send_with(
        &mut self,
        request: &Request<'_>,
        sending: impl FnOnce(PendingId),
    ) -> Result<PendingId, ClientError> {
        self.send_and(request, |_, token| sending(token))
    }

    fn send_and(
        &mut self,
        request: &Request<'_>,
        sending: impl FnOnce(&mut Outcomes, PendingId),
    ) -> Result<PendingId, ClientError> {
        let mut begun = None;
        // The client is opening a new session after the server ended the last one.
        if self.engine().is_opening() {
            self.step()?;
            self.until(|client| (!client.engine().is_opening()).then_some(()))?;
        }
        self.settle()?;
        loop {
            match self.handle().send(request) {
                Ok(token) => {
                    self.outcomes.expect(token);
                    sending(&mut self.outcomes, token);
                    self.step()?;
                    return Ok(token);
                }
                // All connections are in use. One becomes free: requests in flight have deadlines.
                Err(SendError::FullNow) => {
                    let left = PATIENCE.saturating_sub(begun.get_or_insert_with(Instant::now).elapsed());
                    if left.is_zero() {
                        return Err(self.not_sent(SendError::FullNow));
                    }
                    self.rest(Some(left))?;
                    self.step()?;
                }
                Err(error) => return Err(self.not_sent(error)),
            }
        }
    }

    /// Returns why a request was not sent. A closed connection gets the transport's explanation.
    fn not_sent(&mut self, error: SendError) -> ClientError {
        let was_open = self.outcomes.hello.is_some() && error == SendError::NotConnected;
        if !was_open {
            return error.into();
        }
        ClientError::closed(&self.transport.state().explain(TransportError::Closed))
    }

    /// Waits for the outcome of a request that was [sent](Client::send).
    ///
    /// # Errors
    /// As [`request`](Client::request); [`SendError::Stale`] if the token is of no such request.
    pub fn wait(&mut self, token: PendingId) -> Result<OwnedResult, ClientError> {
        self.step()?;
        self.outcome(token)
    }

    /// Waits for the outcome of a request that is sent, without a turn before the first look.
    fn outcome(&mut self, token: PendingId) -> Result<OwnedResult, ClientError> {
        self.until(|client| match client.outcomes.poll(token, None) {
            Poll::Ready(outcome) => Some(outcome.unwrap_or(Err(SendError::Stale.into()))),
            Poll::Pending => None,
        })?
    }

    /// Returns the outcome of a request that was [sent](Client::send), if it has one already.
    pub fn poll(&mut self, token: PendingId) -> Option<Result<OwnedResult, ClientError>> {
        match self.outcomes.poll(token, None) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => None,
        }
    }

    /// Returns the pages of a
    /// [list](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination). It ends with a
    /// page without `nextCursor`, before a page that came before, with the first error, or at a limit of [`Pages::limits`].
    pub fn pages<'c, 'r>(&'c mut self, list: Request<'r>) -> Pages<'c, 'r, 'm, T, H> {
        Pages { client: self, list, cursor: PageCursor::new(PageLimits::DEFAULT) }
    }

    /// Returns the tools that the client left out of the last list, with the reasons. Over HTTP it leaves out tools
    /// with invalid `x-mcp-header` annotations (2026-07-28): [`request`](Client::request) and
    /// [`pages`](Client::pages) of [`Request::list_tools`] come without them, and calls of them fail with
    /// [`TransportError::Excluded`]. The first page of the next list clears it. Applications should log these tools.
    pub fn excluded(&self) -> Vec<ExcludedTool> {
        self.transport.state().excluded()
    }

    /// Returns why a tool must not be used: over HTTP, an invalid `x-mcp-header` annotation (2026-07-28). `None` if
    /// the tool can be used.
    pub fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        self.transport.state().excludes(tool)
    }

    /// Subscribes to changes until the token is [cancelled](Client::cancel). The handler gets them
    /// ([subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions)).
    ///
    /// # Errors
    /// [`ClientError::NotSent`] if it cannot be sent.
    pub fn listen(&mut self, filter: &SubscriptionFilter<'_>) -> Result<PendingId, ClientError> {
        let token = self.handle().client.listen(filter)?;
        self.step()?;
        Ok(token)
    }

    /// Cancels a request or subscription: sends `notifications/cancelled` or closes its stream
    /// ([cancellation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation)). Its
    /// outcome is dropped.
    ///
    /// # Errors
    /// [`SendError::Stale`] if it is over.
    pub fn cancel(&mut self, token: PendingId, reason: Option<&str>) -> Result<(), ClientError> {
        self.outcomes.forget(token);
        self.handle().cancel(token, reason)?;
        self.step().map(drop)
    }

    /// Answers a request of the server, in the handler or later.
    ///
    /// # Errors
    /// [`SendError::Stale`] if the server does not wait for the answer any more.
    pub fn reply(&mut self, question: ServerRequestId, reply: &ClientResult<'_>) -> Result<(), ClientError> {
        self.handle().reply(question, reply)?;
        self.step().map(drop)
    }

    /// Refuses a request of the server with an error.
    ///
    /// # Errors
    /// As [`reply`](Client::reply).
    pub fn refuse(&mut self, question: ServerRequestId, refusal: &RpcError<'_>) -> Result<(), ClientError> {
        self.handle().refuse(question, refusal)?;
        self.step().map(drop)
    }

    /// Sets the level of the log messages that the server sends: `logging/setLevel` up to 2025-11-25
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)), in `_meta` of
    /// later requests from 2026-07-28. The handler gets the messages.
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    ///
    /// # Errors
    /// As [`request`](Client::request).
    pub fn set_log_level(&mut self, level: LoggingLevel) -> Result<(), ClientError> {
        let handle = self.handle();
        let sent = handle.client.set_log_level(level, handle.out)?;
        if let Some(token) = sent {
            self.outcomes.expect(token);
            self.wait(token)?;
        }
        Ok(())
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
    pub fn roots_changed(&mut self) -> Result<(), ClientError> {
        let handle = self.handle();
        handle.client.roots_changed(handle.out)?;
        self.step().map(drop)
    }

    /// Handles messages while no request waits: waits for an event for at most this time. Returns whether there was
    /// one.
    ///
    /// Call it now and then between two requests that are far apart: a server up to 2025-11-25 may
    /// [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping), and takes silence for a lost
    /// connection.
    ///
    /// # Errors
    /// [`ClientError::Io`] if the operating system refuses something.
    pub fn turn(&mut self, at_most: Duration) -> Result<bool, ClientError> {
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

    /// Reads and writes as much as is possible without waiting.
    ///
    /// # Errors
    /// [`ClientError::Io`] if the operating system refuses something.
    pub fn run(&mut self) -> Result<(), ClientError> {
        // Only `wait` finds out which sockets and pipes are ready.
        self.transport.wait(Duration::ZERO)?;
        self.step().map(drop)
    }

    /// Returns the engine and its sink, for everything else. Call [`run`](Client::run) or a method that waits
    /// afterwards.
    pub fn handle(&mut self) -> ClientHandle<'_, 'm> {
        self.handler_and_handle().1
    }

    /// Returns the handler and the handle: for a handler that answers requests of the server later.
    pub fn handler_and_handle(&mut self) -> (&mut H, ClientHandle<'_, 'm>) {
        let now = self.now();
        let handle = self.transport.state_mut().handle();
        // Deadlines of requests count from now.
        handle.client.now = now;
        (&mut self.handler, handle)
    }

    /// Returns the engine.
    pub fn engine(&self) -> &mcp_sansio::client::Client<'m> {
        self.transport.state().engine()
    }

    /// Returns the milliseconds since the client was made: the time that its deadlines use.
    #[must_use]
    pub fn now(&self) -> Millis {
        millis_since(self.started)
    }

    /// Calls `trace` with every message in both directions.
    pub fn trace(&mut self, trace: impl FnMut(Direction, &[u8]) + 'static) {
        self.transport.state_mut().trace(Box::new(trace));
    }

    /// Closes the connection: stops a child process, ends an HTTP session. Requests in flight are lost. Returns how
    /// the process ended, if there is one.
    pub fn close(mut self) -> Option<ChildExit> {
        self.transport.close()
    }

    /// Turns until `look` returns something.
    fn until<R>(&mut self, mut look: impl FnMut(&mut Self) -> Option<R>) -> Result<R, ClientError> {
        loop {
            if let Some(seen) = look(self) {
                return Ok(seen);
            }
            self.rest(None)?;
            self.step()?;
        }
    }

    /// Does the work that needs no waiting, for a limited number of turns: a server that sends without end must not
    /// keep its caller from looking at the time. Returns whether there was an event.
    fn step(&mut self) -> Result<bool, ClientError> {
        let mut happened = false;
        for _ in 0..TURNS {
            let now = self.now();
            let outcomes = &mut self.outcomes;
            let mut handler = OutcomeHandler { outcomes, handler: &mut self.handler, happened: false };
            let more = self.transport.run(now, &mut handler)?;
            if handler.happened {
                happened = true;
                self.outcomes.tell(self.transport.state(), now, &mut Vec::new());
            }
            self.busy = more;
            if !more {
                break;
            }
        }
        Ok(happened)
    }

    fn rest(&mut self, at_most: Option<Duration>) -> Result<(), ClientError> {
        if self.busy {
            return Ok(self.transport.wait(Duration::ZERO)?);
        }
        let now = self.now();
        let due = self.transport.state().next_deadline();
        let due = due.map(|due| Duration::from_millis(due.saturating_sub(now)));
        let time = due.into_iter().chain(at_most).min().unwrap_or(LONGEST_REST).min(LONGEST_REST);
        Ok(self.transport.wait(time)?)
    }
}

/// The longest sleep without a deadline.
const LONGEST_REST: Duration = Duration::from_secs(60);

impl<'m, T: std::fmt::Debug, H> std::fmt::Debug for Client<'m, T, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("transport", &self.transport).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::client::views::View;
    use mcp_sansio::client::{ClientInfo, LineClient};
    use mcp_sansio::frame::LineBuffer;
    use mcp_sansio::json::Raw;
    use mcp_sansio::memory::Store;
    use mcp_sansio::revision::Revisions;
    use mcp_sansio::sink::LineSink;

    /// A transport to a server that answers every request. It writes only in [`run`](Transport::run): a client that waits with
    /// something to write would wait for nothing.
    struct Strict {
        session: LineClient<'static, LineSink<Vec<u8>>>,
        /// The stream for the server's requests is open.
        settled: bool,
        never_settles: bool,
        calls: String,
        /// The methods that the server has seen.
        seen: String,
        /// The methods that it has seen before the stream was open.
        early: String,
        /// The times that the client was ready to wait.
        waits: Vec<Duration>,
        /// A line that the server sends while the client waits.
        news: Option<&'static str>,
        /// There is always more to do.
        endless: bool,
    }

    impl TransportState<'static, Trace> for Strict {
        fn handle(&mut self) -> ClientHandle<'_, 'static> {
            self.session.handle()
        }
        fn engine(&self) -> &mcp_sansio::client::Client<'static> {
            &self.session.client
        }
        fn next_deadline(&self) -> Option<Millis> {
            self.session.client.next_deadline()
        }
        fn explain(&self, _: TransportError) -> String {
            "it is too strict".to_owned()
        }
        fn is_settling(&self) -> bool {
            !self.settled
        }
        fn settle_time(&self) -> Duration {
            Duration::from_secs(60)
        }
        fn excludes(&self, _: &ToolView<'_>) -> Option<String> {
            Some("no tool is good".to_owned())
        }
        fn excluded(&self) -> Vec<ExcludedTool> {
            vec![ExcludedTool::new("any", "no tool is good")]
        }
        fn trace(&mut self, _: Trace) {
            self.calls += "trace ";
        }
    }

    impl Transport<'static> for Strict {
        fn state(&self) -> &dyn TransportState<'static, Trace> {
            self
        }
        fn state_mut(&mut self) -> &mut dyn TransportState<'static, Trace> {
            self
        }
        fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> std::io::Result<bool> {
            self.calls += "run ";
            let _ = self.session.run(now, handler);
            let sent = self.session.out.pending().to_vec();
            self.session.out.sent(sent.len());
            for line in sent.split_inclusive(|byte| *byte == b'\n') {
                let request: serde_json::Value = serde_json::from_slice(line).unwrap();
                let method = request["method"].as_str().unwrap_or("answer").to_owned() + " ";
                self.seen += &method;
                self.early += if self.settled { "" } else { &method };
                let answer = serde_json::json!({ "jsonrpc": "2.0", "id": request["id"], "result": {
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "logging": {} }, "serverInfo": { "name": "strict", "version": "1" },
                } });
                let token = &request["params"]["_meta"]["progressToken"];
                if token.is_u64() {
                    let params = serde_json::json!({ "progressToken": token, "progress": 1 });
                    let progress =
                        serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
                    self.says(&progress.to_string());
                }
                if request["id"].is_u64() && !method.starts_with("answer") && !method.contains("/silent") {
                    self.says(&answer.to_string());
                }
            }
            Ok(!sent.is_empty() || self.endless)
        }
        fn wait(&mut self, time: Duration) -> std::io::Result<()> {
            self.calls += "wait ";
            self.waits.push(time);
            assert!(self.session.out.pending().is_empty(), "it waits before it writes: {}", self.seen);
            self.settled = !self.never_settles;
            if let Some(news) = self.news.take_if(|_| !time.is_zero()) {
                self.says(news);
            }
            Ok(())
        }
        fn close(&mut self) -> Option<ChildExit> {
            Some(ChildExit::new(None, StopSignal::Kill))
        }
    }

    impl Strict {
        /// The server sends a line.
        fn says(&mut self, message: &str) {
            let line = message.to_owned() + "\n";
            self.session.space()[..line.len()].copy_from_slice(line.as_bytes());
            self.session.filled(line.len());
        }
    }

    static PROFILE: ClientInfo<'static> =
        ClientInfo::new("test", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25)).roots_changed();
    static LATEST: ClientInfo<'static> = ClientInfo::new("test", "1");

    fn strict(info: &'static ClientInfo<'static>) -> Strict {
        let input = LineBuffer::new(Store::growing(100_000));
        let engine = ClientOptions::DEFAULT.timeout(Duration::from_secs(20)).engine(info, IN_FLIGHT);
        let session = LineClient::new(input, engine, LineSink::new(Vec::new()));
        let (calls, seen, early) = (String::new(), String::new(), String::new());
        Strict {
            session,
            settled: false,
            never_settles: false,
            calls,
            seen,
            early,
            waits: Vec::new(),
            news: None,
            endless: false,
        }
    }

    fn client() -> Client<'static, Strict, Ignore> {
        Client::new(strict(&PROFILE), Ignore)
    }

    #[test]
    fn a_client_writes_before_it_waits() {
        let mut one = client();
        one.connect().unwrap();
        assert!(one.transport.calls.starts_with("run "), "{}", one.transport.calls);
        one.request(&Request::list_tools()).unwrap();
        one.set_log_level(LoggingLevel::Error).unwrap();
        assert_eq!(one.transport.seen, "initialize notifications/initialized tools/list logging/setLevel ");
        // What was sent through the handle is not written yet when the next request waits for the stream.
        let mut two = client();
        two.handle().client.connect();
        two.run().unwrap();
        two.transport.settled = false;
        two.handle().send(&Request::list_tools()).unwrap();
        two.request(&Request::call("any")).unwrap();
        assert_eq!(two.transport.seen, "initialize notifications/initialized tools/list tools/call ");
        // The same for a wait whose outcome is there already.
        let token = two.send(&Request::list_tools()).unwrap();
        two.handle().send(&Request::call("any")).unwrap();
        two.transport.seen.clear();
        two.wait(token).unwrap();
        assert_eq!(two.transport.seen, "tools/call ");
    }

    const OPENING: &str = "initialize notifications/initialized ";

    /// The server reports progress in the turn that sends the request.
    #[test]
    fn a_token_is_known_before_the_first_event_that_carries_it() {
        let (known, heard) = (std::cell::Cell::new(None), std::cell::Cell::new(0));
        let handler = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Progress { token, .. } = event {
                assert_eq!(known.get(), Some(token));
                heard.set(heard.get() + 1);
            }
        };
        let mut client = Client::new(strict(&PROFILE), handler);
        client.connect().unwrap();
        for round in 1..3 {
            let request = Request::call("any").with_progress();
            let token = client.send_with(&request, |token| known.set(Some(token))).unwrap();
            assert_eq!((known.get(), heard.get()), (Some(token), round), "it was written and answered at once");
            client.wait(token).unwrap();
        }
    }

    /// The first request waits until the server can send requests too, also if the connection was opened through the handle.
    #[test]
    fn requests_wait_for_the_opening_and_the_stream() {
        let mut one = client();
        assert_eq!(one.connect().unwrap().revision(), Revision::V2025_11_25);
        assert!(one.transport.settled);
        let mut two = client();
        two.handle().client.connect();
        two.request(&Request::list_tools()).unwrap();
        assert_eq!((&*two.transport.seen, &*two.transport.early), (&*format!("{OPENING}tools/list "), OPENING));
        let mut three = client();
        three.handle().client.connect();
        three.run().unwrap();
        three.transport.settled = false;
        three.send(&Request::list_tools()).unwrap();
        assert_eq!((&*three.transport.seen, &*three.transport.early), (&*format!("{OPENING}tools/list "), ""));
    }

    /// Messages without an answer are not left for the next call.
    #[test]
    fn each_message_is_written_at_once() {
        let questions = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let sink = questions.clone();
        let handler = move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Asked(asked) = event {
                sink.borrow_mut().extend(asked.questions().map(|question| question.id));
            }
        };
        let mut client = Client::new(strict(&PROFILE), handler);
        client.connect().unwrap();
        let seen = |client: &mut Client<'static, Strict, _>| std::mem::take(&mut client.transport.seen);
        seen(&mut client);
        client.roots_changed().unwrap();
        assert_eq!(seen(&mut client), "notifications/roots/list_changed ");
        for id in [1, 2] {
            client.transport.says(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"roots/list"}}"#));
            assert!(client.turn(Duration::ZERO).unwrap());
        }
        let questions = questions.take();
        client.reply(questions[0], &ClientResult::roots(&[])).unwrap();
        assert_eq!(seen(&mut client), "answer ");
        client.refuse(questions[1], &RpcError::new(1, "no")).unwrap();
        assert_eq!(seen(&mut client), "answer ");
        assert!(client.reply(questions[0], &ClientResult::roots(&[])).is_err(), "it is answered already");
        let silent = client.send(&Request::raw("test/silent", None)).unwrap();
        seen(&mut client);
        client.cancel(silent, None).unwrap();
        assert_eq!(seen(&mut client), "notifications/cancelled ");
        assert!(client.cancel(silent, None).is_err(), "it is over");

        let mut client = Client::new(strict(&LATEST), Ignore);
        client.connect_as(Revision::V2026_07_28).unwrap();
        client.listen(&SubscriptionFilter::new().tools()).unwrap();
        assert_eq!(client.transport.seen, "subscriptions/listen ");
    }

    #[test]
    fn the_time_of_a_rest() {
        let mut client = client();
        client.connect().unwrap();
        let rest = |client: &mut Client<'static, Strict, Ignore>, at_most| {
            client.rest(at_most).unwrap();
            client.transport.waits.pop().unwrap()
        };
        let short = Duration::from_millis(5);
        assert_eq!((rest(&mut client, None), rest(&mut client, Some(short))), (LONGEST_REST, short));
        assert_eq!(rest(&mut client, Some(2 * LONGEST_REST)), LONGEST_REST);
        client.send(&Request::raw("test/silent", None)).unwrap();
        let time = rest(&mut client, None);
        assert!(time > Duration::from_secs(10) && time <= Duration::from_secs(20), "{time:?}");
        assert_eq!(rest(&mut client, Some(short)), short);
        client.busy = true;
        assert_eq!(rest(&mut client, Some(short)), Duration::ZERO);
        client.busy = false;
        // Its time is over.
        client.started -= Duration::from_secs(60);
        assert_eq!(rest(&mut client, None), Duration::ZERO);
    }

    /// `turn` handles what has arrived, and waits for an event for at most its time. `run` never waits.
    #[test]
    fn a_turn_waits_and_a_run_does_not() {
        let mut client = client();
        client.connect().unwrap();
        for run in [false, true] {
            client.transport.calls.clear();
            client.transport.waits.clear();
            if run {
                client.run().unwrap();
            } else {
                assert!(!client.turn(Duration::ZERO).unwrap());
            }
            assert_eq!((&*client.transport.calls, &*client.transport.waits), ("wait run ", &[Duration::ZERO][..]));
        }
        client.transport.waits.clear();
        client.transport.news = Some(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        let time = Duration::from_secs(600);
        assert!(client.turn(time).unwrap());
        let longest = client.transport.waits.iter().max().unwrap();
        assert!(!longest.is_zero() && *longest <= time, "{longest:?}");
        let time = Duration::from_millis(20);
        let begun = Instant::now();
        assert!(!client.turn(time).unwrap() && begun.elapsed() >= time);
        // The settling ends in time, too.
        let begun = Instant::now();
        (client.transport.settled, client.transport.never_settles) = (false, true);
        client.outcomes.settles = Some(client.now() + 21);
        client.settle().unwrap();
        assert!(begun.elapsed() >= time);
    }

    /// A server that sends without end must not keep its caller from looking at the time.
    #[test]
    fn the_work_without_a_wait_is_limited() {
        let mut client = client();
        client.connect().unwrap();
        for (endless, runs) in [(true, TURNS), (false, 1)] {
            client.transport.endless = endless;
            client.transport.calls.clear();
            assert!(!client.step().unwrap());
            assert_eq!((client.transport.calls.matches("run").count(), client.busy), (runs, endless));
        }
    }

    /// The times of requests begin when they are sent, and not when the client has last worked.
    #[test]
    fn a_handle_knows_the_time() {
        for with_handler in [false, true] {
            let mut client = client();
            client.connect().unwrap();
            client.started -= Duration::from_secs(1000);
            let mut handle = if with_handler { client.handler_and_handle().1 } else { client.handle() };
            handle.send(&Request::raw("test/silent", None)).unwrap();
            let deadline = client.engine().next_deadline().unwrap();
            assert!((1_020_000..1_080_000).contains(&deadline), "{deadline}");
        }
    }

    /// The caller who opens the connection gets its error, and else the handler.
    #[test]
    fn a_connection_that_cannot_be_opened_is_reported_once() {
        static OLDER: ClientInfo<'static> =
            ClientInfo::new("test", "1").revisions(Revisions::NONE.with(Revision::V2024_11_05));
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = seen.clone();
        let handler = move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            count.set(count.get() + usize::from(matches!(event, ClientEvent::Unconnected(_))));
        };
        let mut client = Client::new(strict(&OLDER), handler);
        for reported in 0..3 {
            let error = client.connect().unwrap_err();
            assert!(matches!(error, ClientError::NoCommonRevision), "{error}");
            assert!(client.server().is_none());
            assert_eq!(seen.get(), reported);
            client.handle().client.connect();
            client.run().unwrap();
            assert_eq!(seen.get(), reported + 1);
        }
    }

    /// Only a connection that was open can be lost.
    #[test]
    fn a_loss_is_explained() {
        let mut client = client();
        let error = client.request(&Request::list_tools()).unwrap_err();
        assert!(matches!(error, ClientError::NotSent(SendError::NotConnected)), "{error}");
        client.connect().unwrap();
        let token = client.send(&Request::raw("test/silent", None)).unwrap();
        assert!(client.poll(token).is_none());
        client.transport.session.end_of_input();
        for error in [client.wait(token).unwrap_err(), client.request(&Request::list_tools()).unwrap_err()] {
            assert_eq!(error.lost(), Some(TransportError::Closed));
            assert!(error.to_string().contains("it is too strict"), "{error}");
        }
        assert!(matches!(client.wait(token), Err(ClientError::NotSent(SendError::Stale))));
    }

    #[test]
    fn a_transport_in_a_box_is_the_same() {
        let boxed: Box<dyn Transport<'static>> = Box::new(strict(&PROFILE));
        let tool = ToolView::of(Raw::constant(r#"{"name":"any","inputSchema":{}}"#)).unwrap();
        assert!(boxed.state().is_settling());
        assert_eq!(boxed.state().settle_time(), Duration::from_secs(60));
        assert!(boxed.state().excludes(&tool).is_some() && boxed.state().excluded().len() == 1);
        let mut client = Client::new(boxed, Ignore);
        client.connect().unwrap();
        assert!(!client.transport.state().is_settling());
        assert!(client.excludes(&tool).is_some() && client.excluded().len() == 1);
        client.send(&Request::raw("test/silent", None)).unwrap();
        assert!(client.transport.state().next_deadline().is_some());
        assert_eq!(client.close().map(|ended| ended.after), Some(StopSignal::Kill));
        let mut boxed = Box::new(strict(&PROFILE));
        boxed.state_mut().trace(Box::new(|_, _| ()));
        assert_eq!(boxed.calls, "trace ");
    }
}
