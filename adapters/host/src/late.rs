//! Answers, progress and changes from outside of the handlers: one channel for all adapters.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{
    Millis, OwnedServerChange, Progress, RequestToken, RespondError, RpcError, Server, ServerChange,
};
use mcp_sansio::service::{HandlerResult, LateRequest, Service};
use mcp_sansio::sink::Out;
#[cfg(feature = "http")]
use mcp_sansio_http::endpoint::{App, Endpoint};

use crate::{LogMessage, lock};

/// Number of notifications that [`channel`] holds.
const CHANNEL: usize = 1024;
/// Number of messages that one [`LateReceiver::give`] takes.
const AT_ONCE: usize = 64;

/// The error for a request that was answered as a request of another kind: its client must not wait for ever.
const WRONG_KIND: RpcError<'static> = RpcError::internal("The handler's answer is of another kind than the request");
/// The error for a request whose preparation to run again has panicked.
const UNPREPARED: RpcError<'static> = RpcError::internal("The handler has panicked");
const TOO_LARGE: RpcError<'static> = RpcError::internal("The answer is too large");

/// Makes a channel to a server: one end for the state of the handlers, the other for the `late` of a server in any
/// adapter. It holds 1,024 notifications, and an answer to each request.
///
/// ```
/// use mcp_sansio::service::{Call, HandlerResult};
/// use mcp_sansio_host::{LateSender, channel};
///
/// struct Kitchen {
///     late: LateSender<Kitchen>,
///     cups: u32,
/// }
///
/// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
///     let (token, outcome) = call.later();
///     let late = kitchen.late.clone();
///     std::thread::spawn(move || {
///         // What takes long is done here, or in a task.
///         late.answer(token, |kitchen, call| {
///             kitchen.cups += 1;
///             call.text(format_args!("cup {}", kitchen.cups))
///         })
///     });
///     outcome
/// }
/// # let _: fn(&mut Kitchen, &mut Call<'_>) -> HandlerResult = brew;
///
/// let (late, receiver) = channel();
/// let kitchen = Kitchen { late, cups: 0 };
/// // `Serve::new(&service).late(receiver)`, `HttpServer::bind(address)?.late(receiver)`, `MountOptions::late(receiver)`
/// # drop((kitchen, receiver));
/// ```
#[must_use]
pub fn channel<S: 'static>() -> (LateSender<S>, LateReceiver<S>) {
    channel_of(CHANNEL)
}

/// Makes a [`channel`] that holds this number of notifications, at least 1.
#[must_use]
pub fn channel_of<S: 'static>(notifications: usize) -> (LateSender<S>, LateReceiver<S>) {
    let queue = Queue {
        messages: VecDeque::new(),
        notifications: 0,
        most: notifications.max(1),
        closed: false,
        receiver: None,
        waiting: Vec::new(),
    };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), room: Condvar::new() });
    (LateSender(Arc::clone(&shared)), LateReceiver { shared, deferred: Vec::new(), decided: false })
}

struct Shared<S: 'static> {
    queue: Mutex<Queue<S>>,
    room: Condvar,
}

struct Queue<S: 'static> {
    messages: VecDeque<LateMessage<S>>,
    /// The messages that are no answers.
    notifications: usize,
    most: usize,
    closed: bool,
    receiver: Option<Waker>,
    /// The tasks that wait for room.
    waiting: Vec<Waker>,
}

impl<S> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, Queue<S>> {
        lock(&self.queue)
    }

    fn send(&self, message: LateMessage<S>) -> Result<(), LateSendError> {
        let waker = {
            let mut queue = self.lock();
            if queue.closed {
                return Err(LateSendError::Ended);
            }
            if message.is_notification() {
                if queue.notifications >= queue.most {
                    return Err(LateSendError::Full);
                }
                queue.notifications += 1;
            }
            queue.messages.push_back(message);
            queue.receiver.take()
        };
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn next(&self) -> Option<LateMessage<S>> {
        let mut queue = self.lock();
        let message = queue.messages.pop_front()?;
        if !message.is_notification() {
            return Some(message);
        }
        let was_full = queue.notifications == queue.most;
        queue.notifications -= 1;
        if was_full {
            let waiting = std::mem::take(&mut queue.waiting);
            drop(queue);
            self.room.notify_all();
            waiting.into_iter().for_each(Waker::wake);
        }
        Some(message)
    }

    fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        let (messages, waiting) = (std::mem::take(&mut queue.messages), std::mem::take(&mut queue.waiting));
        drop(queue);
        // Not under the lock: what they own may send.
        drop(messages);
        self.room.notify_all();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<S> Queue<S> {
    /// Returns `Ok` if there is room for a notification, `None` while there is not.
    const fn has_room(&self) -> Option<Result<(), LateSendError>> {
        if self.closed {
            Some(Err(LateSendError::Ended))
        } else if self.notifications < self.most {
            Some(Ok(()))
        } else {
            None
        }
    }
}

/// Writes the answer to a request.
type Write<S> =
    Box<dyn FnOnce(&Service<'_, S>, &mut S, &mut Server<'_>, &mut dyn Out) -> Result<(), RespondError> + Send>;

/// Changes the state.
type Update<S> = Box<dyn FnOnce(&mut S) + Send>;

enum Answer<S: 'static> {
    Write(Write<S>),
    /// Prepares the state for the next run of the handler.
    Resume(Update<S>),
}

enum LateMessage<S: 'static> {
    Progress {
        token: RequestToken,
        progress: Progress<'static>,
        message: Option<String>,
    },
    Log {
        token: Option<RequestToken>,
        level: LoggingLevel,
        message: LogMessage,
    },
    /// A change for all clients, or for those of one principal; `is_here` as [`LateTarget::publish`] has it.
    Change {
        change: OwnedServerChange,
        to: Option<String>,
        is_here: bool,
    },
    EndSession([u8; 16], Millis),
    Answer(RequestToken, Answer<S>),
    Update(Update<S>),
    Decided,
}

impl<S> LateMessage<S> {
    const fn is_notification(&self) -> bool {
        !matches!(self, LateMessage::Answer(..))
    }
}

/// The sending end of a [`channel`]. Clone it into each task and thread that answers or notifies; handlers may use it too.
///
/// No call waits for the server. With the tower mount, a call may run handlers that have become ready on its own thread: hold no
/// lock that a handler takes. Messages are written in the order in which they were sent, but while the client of a request does not
/// read, its answer waits alone. Messages for a stale token are dropped. An answer is always taken; other messages
/// fail with [`LateSendError::Full`] while the channel is full, since clients do not read as fast: those that send many
/// of them wait for [`room`](LateSender::room) before each.
pub struct LateSender<S: 'static>(Arc<Shared<S>>);

impl<S: 'static> LateSender<S> {
    /// Answers a request that was put off: a `tools/call` by its token, others by [`RequestToken::as_read`] and its like.
    /// `answer` runs on the side of the server, with the state of the handlers; it does not run if the request was cancelled
    /// meanwhile. If the token belongs to a request of another method, that request is answered with error -32603.
    ///
    /// # Errors
    /// [`LateSendError::Ended`]
    pub fn answer<R: LateRequest + Send + 'static>(
        &self,
        request: R,
        answer: impl FnOnce(&mut S, &mut R::Context<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.write(request.token(), |service, state, server, out| {
            service.answer(state, request, server, out, answer).map(drop)
        })
    }

    /// Resumes a request that its handler has [suspended](mcp_sansio::service::RequestContext::suspend). `prepare` puts its
    /// finding into the state, then the handler runs again, and may ask. Neither runs if the request was cancelled
    /// meanwhile. A request that is not suspended is answered with error -32603.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::server::RequestToken;
    /// use mcp_sansio::service::{Call, HandlerResult, InputRequest};
    /// use mcp_sansio_host::LateSender;
    ///
    /// struct Shop {
    ///     late: LateSender<Shop>,
    ///     prices: Vec<(RequestToken, u32)>,
    /// }
    /// const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
    ///
    /// fn order(shop: &mut Shop, call: &mut Call<'_>) -> HandlerResult {
    ///     if let Some(answer) = call.answer("sure") {
    ///         return call.text(if answer.accepted() { "ordered" } else { "not ordered" });
    ///     }
    ///     if let Some(at) = shop.prices.iter().position(|(token, _)| *token == call.token()) {
    ///         let (_, price) = shop.prices.remove(at);
    ///         return call.ask(&[InputRequest::elicit("sure", &format!("Pay {price}?"), SURE)], b"");
    ///     }
    ///     let (token, done) = call.suspend(b"")?;
    ///     let late = shop.late.clone();
    ///     std::thread::spawn(move || {
    ///         let price = 12; // as some other server says
    ///         late.resume(token, move |shop| shop.prices.push((token, price)))
    ///     });
    ///     Ok(done)
    /// }
    /// # let _: fn(&mut Shop, &mut Call<'_>) -> HandlerResult = order;
    /// ```
    ///
    /// # Errors
    /// [`LateSendError::Ended`]
    pub fn resume(
        &self,
        token: RequestToken,
        prepare: impl FnOnce(&mut S) + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Answer(token, Answer::Resume(Box::new(prepare))))
    }

    /// Answers a request of any method that was put off with a JSON-RPC error. What a model should read is a result of the
    /// tool: [`answer`](LateSender::answer) with [`Call::error`](mcp_sansio::service::Call::error).
    ///
    /// # Errors
    /// [`LateSendError::Ended`]
    pub fn fail(&self, token: RequestToken, failure: &RpcError<'_>) -> Result<(), LateSendError> {
        let (code, message) = (failure.code, failure.message.to_owned());
        self.write(token, move |_, _, server, out| server.fail(token, &RpcError::new(code, &message), out))
    }

    /// Sends `notifications/progress` for a request, if its client asked for
    /// [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress). Over HTTP it is
    /// dropped if its stream has no room.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn progress(&self, token: RequestToken, progress: Progress<'_>) -> Result<(), LateSendError> {
        let Progress { done, total, message, .. } = progress;
        let mut progress = Progress::new(done);
        progress.total = total;
        self.0.send(LateMessage::Progress { token, progress, message: message.map(String::from) })
    }

    /// Sends `notifications/message` for a request, if its client wants messages of that level
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)). `message` is a text, or a
    /// [`LogMessage`] with JSON as its `data` and the name of its `logger`.
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn log(
        &self,
        token: RequestToken,
        level: LoggingLevel,
        message: impl Into<LogMessage>,
    ) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Log { token: Some(token), level, message: message.into() })
    }

    /// Sends `notifications/message` that belongs to no request: only to clients before 2026-07-28.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn announce(&self, level: LoggingLevel, message: impl Into<LogMessage>) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Log { token: None, level, message: message.into() })
    }

    /// Runs a function on the side of the server, with the state of the handlers: such as to emit an event from any thread.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn update(&self, update: impl FnOnce(&mut S) + Send + 'static) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Update(Box::new(update)))
    }

    /// Announces a change to the clients that subscribed to it. A topic of an extension needs the feature `extensions` of
    /// `mcp-sansio`.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn publish(&self, change: ServerChange<'_>) -> Result<(), LateSendError> {
        self.send_change(None, change, false)
    }

    /// Announces a change to the clients of one principal: one that no other client can see. A line has one client, which gets it.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn publish_to(&self, principal: &str, change: ServerChange<'_>) -> Result<(), LateSendError> {
        self.send_change(Some(principal), change, false)
    }

    /// Announces a change that another process has published, for all clients or for those of one principal: an endpoint sends it
    /// to its own clients only, see `Endpoint::publish_here`.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn publish_here(&self, principal: Option<&str>, change: ServerChange<'_>) -> Result<(), LateSendError> {
        self.send_change(principal, change, true)
    }

    fn send_change(&self, to: Option<&str>, change: ServerChange<'_>, is_here: bool) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Change { change: change.into(), to: to.map(str::to_owned), is_here })
    }

    /// Ends a session that another process has ended, or serves alone, see
    /// `Endpoint::end_session_here`.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn end_session_here(&self, session: &[u8; 16], until: Millis) -> Result<(), LateSendError> {
        self.0.send(LateMessage::EndSession(*session, until))
    }

    /// Announces that the `authorize` of an HTTP server can decide about a request for which it answered `Access::Later`:
    /// it is asked again about each such request.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn decided(&self) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Decided)
    }

    /// Returns a future that waits until there is room for another notification.
    ///
    /// # Errors
    /// [`LateSendError::Ended`]
    pub fn room(&self) -> impl Future<Output = Result<(), LateSendError>> + Send + 'static {
        let shared = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut queue = shared.lock();
            match queue.has_room() {
                Some(has) => Poll::Ready(has),
                None => {
                    if !queue.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                        queue.waiting.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
    }

    /// Blocks the thread until there is room for another notification. Not for handlers: the server waits for them.
    ///
    /// # Errors
    /// [`LateSendError::Ended`]
    pub fn wait_for_room(&self) -> Result<(), LateSendError> {
        let mut queue = self.0.lock();
        loop {
            if let Some(has) = queue.has_room() {
                return has;
            }
            queue = self.0.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write(
        &self,
        token: RequestToken,
        write: impl FnOnce(&Service<'_, S>, &mut S, &mut Server<'_>, &mut dyn Out) -> Result<(), RespondError>
        + Send
        + 'static,
    ) -> Result<(), LateSendError> {
        self.0.send(LateMessage::Answer(token, Answer::Write(Box::new(write))))
    }
}

/// The receiving end of a [`channel`]. Adapters have a place for it; a loop of your own calls
/// [`give`](LateReceiver::give). Dropping it ends the channel.
pub struct LateReceiver<S: 'static> {
    shared: Arc<Shared<S>>,
    /// Answers that wait because their stream has no room.
    deferred: Vec<(RequestToken, Answer<S>)>,
    decided: bool,
}

impl<S: 'static> LateReceiver<S> {
    /// Gives the waiting messages to a connection or an endpoint, 64 at most and as far as there is room. Returns `true`
    /// if there may be more at once.
    pub fn give(&mut self, target: &mut impl LateTarget<S>, service: &Service<'_, S>, state: &mut S) -> bool {
        for (token, answer) in std::mem::take(&mut self.deferred) {
            self.answer(target, service, state, token, answer);
        }
        for _ in 0..AT_ONCE {
            if !target.is_open() {
                return false;
            }
            let Some(message) = self.shared.next() else { return false };
            match message {
                LateMessage::Progress { token, mut progress, message } => {
                    progress.message = message.as_deref();
                    let _ = target.with_request(token, |server, out| service.progress(token, progress, server, out));
                }
                LateMessage::Log { token, level, message } => target.log(service, state, token, level, &message),
                LateMessage::Change { change, to, is_here } => {
                    target.publish(change.as_change(), to.as_deref(), is_here);
                }
                LateMessage::EndSession(session, until) => target.end_session_here(service, state, &session, until),
                LateMessage::Answer(token, answer) => self.answer(target, service, state, token, answer),
                LateMessage::Update(update) => {
                    prepared(service, state, update);
                }
                LateMessage::Decided => self.decided = true,
            }
        }
        true
    }

    /// Answers a request, or keeps the answer until its stream has room.
    fn answer(
        &mut self,
        target: &mut impl LateTarget<S>,
        service: &Service<'_, S>,
        state: &mut S,
        token: RequestToken,
        answer: Answer<S>,
    ) {
        if target.is_crowded(token) {
            self.deferred.push((token, answer));
            return;
        }
        let is_suspended = |target: &mut _| {
            LateTarget::<S>::with_request(target, token, |server, _| server.is_suspended(token)) == Some(true)
        };
        let done = match answer {
            Answer::Write(write) => target
                .with_request(token, |server, out| write(service, state, server, out))
                .unwrap_or(Err(RespondError::Stale)),
            Answer::Resume(_) if !is_suspended(target) => Err(RespondError::WrongKind),
            // Over HTTP the handler runs at once, so the state must be prepared before.
            Answer::Resume(prepare) => {
                if !prepared(service, state, prepare) {
                    return fail(target, token, &UNPREPARED);
                }
                target.resume(service, state, token)
            }
        };
        match done {
            Ok(()) | Err(RespondError::Stale) => {}
            Err(RespondError::WrongKind) => fail(target, token, &WRONG_KIND),
            Err(_) => fail(target, token, &TOO_LARGE),
        }
    }

    /// Waits for messages: ready if there are any, else wakes the task when one comes. It also waits when all senders are
    /// gone.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.shared.lock();
        if !queue.messages.is_empty() {
            return Poll::Ready(());
        }
        match &mut queue.receiver {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Blocks the thread until there are messages, at most so long. Returns whether there are any.
    pub fn wait(&mut self, at_most: Duration) -> bool {
        let until = Instant::now().checked_add(at_most);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while self.poll_ready(&mut Context::from_waker(&waker)).is_pending() {
            let left = until.map_or(at_most, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
        true
    }

    /// Returns whether no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deferred.is_empty() && self.shared.lock().messages.is_empty()
    }

    /// Returns the number of messages that were sent and not taken.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lock().messages.len()
    }

    /// Returns whether [`LateSender::decided`] was called since the last time.
    pub const fn take_decided(&mut self) -> bool {
        std::mem::replace(&mut self.decided, false)
    }
}

impl<S> Drop for LateReceiver<S> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// The place where late messages go: a connection over lines, or an endpoint of HTTP.
pub trait LateTarget<S: 'static> {
    /// Returns whether a message may begin now.
    fn is_open(&mut self) -> bool {
        true
    }

    /// Returns whether the answer to a request has to wait until its client has read more.
    fn is_crowded(&mut self, token: RequestToken) -> bool {
        let _ = token;
        false
    }

    /// Calls `act` with the server, and with the way out to the client of a request. Returns `None` if that is gone.
    fn with_request<R>(
        &mut self,
        token: RequestToken,
        act: impl FnOnce(&mut Server<'_>, &mut dyn Out) -> R,
    ) -> Option<R>;

    /// Resumes a suspended request.
    ///
    /// # Errors
    /// Those of [`Server::wake`].
    fn resume(&mut self, service: &Service<'_, S>, state: &mut S, token: RequestToken) -> Result<(), RespondError>;

    /// Sends a log message, of a request or of none.
    fn log(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Option<RequestToken>,
        level: LoggingLevel,
        message: &LogMessage,
    );

    /// Announces a change, to the clients of one principal with `to`. With `is_here` another process has published it: it goes to the
    /// clients of this one only.
    fn publish(&mut self, change: ServerChange<'_>, to: Option<&str>, is_here: bool);

    /// Ends a session that another process has ended. Without sessions there is nothing to do.
    fn end_session_here(&mut self, _: &Service<'_, S>, _: &mut S, _session: &[u8; 16], _until: Millis) {}
}

/// Answers a request with an error, if it is open.
fn fail<S: 'static>(target: &mut impl LateTarget<S>, token: RequestToken, failure: &RpcError<'_>) {
    let _ = target.with_request(token, |server, out| server.fail(token, failure, out));
}

/// Prepares the state for a handler that runs again. Returns whether that came to its end.
fn prepared<S>(service: &Service<'_, S>, state: &mut S, prepare: Update<S>) -> bool {
    let mut prepare = Some(prepare);
    service.contained(&mut || {
        if let Some(prepare) = prepare.take() {
            prepare(state);
        }
    })
}

impl<S: 'static, O: Out> LateTarget<S> for LineServer<'_, O> {
    fn is_open(&mut self) -> bool {
        !self.out.held() && self.out.room() > 0
    }

    fn with_request<R>(&mut self, _: RequestToken, act: impl FnOnce(&mut Server<'_>, &mut dyn Out) -> R) -> Option<R> {
        let (server, out) = (&mut self.server, &mut self.out);
        Some(act(server, out))
    }

    fn resume(&mut self, _: &Service<'_, S>, _: &mut S, token: RequestToken) -> Result<(), RespondError> {
        self.server.wake(token)
    }

    fn log(
        &mut self,
        service: &Service<'_, S>,
        _: &mut S,
        token: Option<RequestToken>,
        level: LoggingLevel,
        message: &LogMessage,
    ) {
        let (server, out) = (&mut self.server, &mut self.out);
        let _ = server.log_data(service.about(), token, level, message.logger.as_deref(), message.data.raw(), out);
    }

    fn publish(&mut self, change: ServerChange<'_>, _: Option<&str>, _: bool) {
        self.server.publish(change);
    }
}

#[cfg(feature = "http")]
impl<S: 'static> LateTarget<S> for Endpoint<'_> {
    /// A stream takes an answer while half of its capacity is free. A client that does not read delays only its own
    /// answers.
    fn is_crowded(&mut self, token: RequestToken) -> bool {
        self.with_stream_of(token, |_, out| out.room() < out.capacity() / 2) == Some(true)
    }

    fn with_request<R>(
        &mut self,
        token: RequestToken,
        act: impl FnOnce(&mut Server<'_>, &mut dyn Out) -> R,
    ) -> Option<R> {
        self.with_stream_of(token, act)
    }

    fn resume(&mut self, service: &Service<'_, S>, state: &mut S, token: RequestToken) -> Result<(), RespondError> {
        self.resume(&mut App::new(service, state), token)
    }

    fn log(
        &mut self,
        service: &Service<'_, S>,
        state: &mut S,
        token: Option<RequestToken>,
        level: LoggingLevel,
        message: &LogMessage,
    ) {
        let app = App::new(service, state);
        let _ = self.log_data(&app, token, level, message.logger.as_deref(), message.data.raw());
    }

    fn publish(&mut self, change: ServerChange<'_>, to: Option<&str>, is_here: bool) {
        match to {
            _ if is_here => self.publish_here(to, change),
            None => self.publish(change),
            Some(principal) => self.publish_to(principal, change),
        }
    }

    fn end_session_here(&mut self, service: &Service<'_, S>, state: &mut S, session: &[u8; 16], until: Millis) {
        self.end_session_here(&mut App::new(service, state), session, until);
    }
}

mcp_sansio::error_enum! {
    /// The reason why a message was not sent to a server.
    LateSendError {
        /// The server has ended.
        Ended => "the server has ended",
        /// The channel is full: the message was not sent.
        Full => "the channel to the server is full",
    }
}

impl<S> Clone for LateSender<S> {
    fn clone(&self) -> Self {
        LateSender(Arc::clone(&self.0))
    }
}

mcp_sansio::debug_fields!(impl<S> for LateSender<S> {});

mcp_sansio::debug_fields!(impl<S> for LateReceiver<S> {});

/// Unparks a thread.
pub(crate) struct Unpark(pub(crate) Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Conversation;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::server::MessageLimits;
    use mcp_sansio::service::{CustomRequest, Tool};
    use mcp_sansio::sink::{LineSink, SliceStorage};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A task that waits for room is woken when a notification has left a full channel.
    #[test]
    fn room_wakes_those_that_wait() {
        let (sender, receiver) = channel_of::<()>(1);
        let log = || LateMessage::Log { token: None, level: LoggingLevel::Info, message: "".into() };
        sender.0.send(log()).unwrap();
        assert_eq!(sender.0.send(log()), Err(LateSendError::Full));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let (mut room, mut cx) = (pin!(sender.room()), Context::from_waker(&waker));
        assert!(room.as_mut().poll(&mut cx).is_pending());
        assert!(receiver.shared.next().is_some());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(room.poll(&mut cx).is_ready());
    }

    /// A target that writes down what it gets. It knows no request.
    #[derive(Default)]
    struct Seen {
        closed: bool,
        crowded: bool,
        said: Vec<String>,
    }

    impl LateTarget<u32> for Seen {
        fn is_open(&mut self) -> bool {
            !self.closed
        }

        fn is_crowded(&mut self, _: RequestToken) -> bool {
            self.crowded
        }

        fn with_request<R>(
            &mut self,
            _: RequestToken,
            act: impl FnOnce(&mut Server<'_>, &mut dyn Out) -> R,
        ) -> Option<R> {
            self.said.push("request".into());
            Some(act(&mut Server::growing(MessageLimits::default()), &mut LineSink::new(Vec::new())))
        }

        fn resume(&mut self, _: &Service<'_, u32>, _: &mut u32, _: RequestToken) -> Result<(), RespondError> {
            panic!("it has none that is suspended")
        }

        fn log(
            &mut self,
            _: &Service<'_, u32>,
            _: &mut u32,
            token: Option<RequestToken>,
            level: LoggingLevel,
            message: &LogMessage,
        ) {
            let (name, data) = (message.logger.as_deref(), message.data.raw());
            self.said.push(format!("log {} {level:?} {name:?} {data}", token.is_some()));
        }

        fn publish(&mut self, change: ServerChange<'_>, to: Option<&str>, is_here: bool) {
            self.said.push(format!("{change:?} {to:?} {is_here}"));
        }
    }

    /// The token of a request that waits for an answer.
    fn token() -> RequestToken {
        let tools = [Tool::new("later", "Later", |kept: &mut Option<_>, call| {
            let (token, outcome) = call.later();
            *kept = Some(token);
            outcome
        })];
        let service = Service::new("late", "1").tools(&tools);
        let mut conversation = Conversation::new(&service, None);
        conversation.open(Revision::V2025_11_25);
        assert!(conversation.call("later", &serde_json::json!({})).is_pending());
        conversation.state().unwrap()
    }

    fn give(receiver: &mut LateReceiver<u32>, target: &mut Seen) -> (bool, Vec<String>) {
        let more = receiver.give(target, &Service::new("late", "1"), &mut 0);
        (more, std::mem::take(&mut target.said))
    }

    #[test]
    fn each_message_comes_as_it_was_sent() {
        let (late, mut receiver) = channel::<u32>();
        let (token, mut target) = (token(), Seen::default());
        assert!(receiver.is_empty() && !receiver.take_decided());
        late.progress(token, Progress::new(1).of(2).message("half")).unwrap();
        late.progress(token, Progress::new(2)).unwrap();
        late.log(token, LoggingLevel::Error, "of a request").unwrap();
        late.announce(LoggingLevel::Info, "of none").unwrap();
        let facts = LogMessage::from(mcp_sansio::json::Raw::constant("{\"n\":[1]}")).logger("db");
        late.log(token, LoggingLevel::Debug, facts.clone()).unwrap();
        late.announce(LoggingLevel::Debug, facts).unwrap();
        late.publish(ServerChange::Tools).unwrap();
        late.publish_to("ann", ServerChange::Tools).unwrap();
        late.publish_here(None, ServerChange::Tools).unwrap();
        late.publish_here(Some("ann"), ServerChange::Tools).unwrap();
        late.decided().unwrap();
        late.answer(token, |_, call| call.text("")).unwrap();
        late.answer(token.as_read("late://it"), |_, read| read.text("")).unwrap();
        late.resume(token, |_| panic!("it must not run")).unwrap();
        late.fail(token, &RpcError::new(-31000, "no")).unwrap();
        assert!(!receiver.is_empty());
        let expected = [
            "request",
            "request",
            "log true Error None \"of a request\"",
            "log false Info None \"of none\"",
            "log true Debug Some(\"db\") {\"n\":[1]}",
            "log false Debug Some(\"db\") {\"n\":[1]}",
            "Tools None false",
            "Tools Some(\"ann\") false",
            "Tools None true",
            "Tools Some(\"ann\") true",
            "request",
            "request",
            // Is it suspended? No, so it gets an error.
            "request",
            "request",
            "request",
        ];
        assert_eq!(give(&mut receiver, &mut target), (false, expected.map(str::to_owned).to_vec()));
        assert!(receiver.is_empty() && receiver.take_decided() && !receiver.take_decided());
    }

    #[test]
    fn one_turn_takes_64_messages_while_there_is_room() {
        let (late, mut receiver) = channel::<u32>();
        let mut target = Seen::default();
        let numbers = |range: std::ops::Range<u32>| -> Vec<String> {
            range.map(|number| format!("log false Info None \"{number}\"")).collect()
        };
        for number in 0..65 {
            late.announce(LoggingLevel::Info, number.to_string()).unwrap();
        }
        target.closed = true;
        assert_eq!(give(&mut receiver, &mut target), (false, vec![]));
        target.closed = false;
        assert_eq!(give(&mut receiver, &mut target), (true, numbers(0..64)));
        assert!(!receiver.is_empty());
        assert_eq!(give(&mut receiver, &mut target), (false, numbers(64..65)));
        assert!(receiver.is_empty());
        assert_eq!(give(&mut receiver, &mut target), (false, vec![]));
    }

    #[test]
    fn an_answer_waits_alone_for_its_client() {
        let (late, mut receiver) = channel::<u32>();
        let (token, mut target) = (token(), Seen { crowded: true, ..Seen::default() });
        late.answer(token, |_, call| call.text("")).unwrap();
        late.announce(LoggingLevel::Info, "first").unwrap();
        assert_eq!(give(&mut receiver, &mut target), (false, vec!["log false Info None \"first\"".into()]));
        assert!(!receiver.is_empty());
        assert_eq!(give(&mut receiver, &mut target), (false, vec![]));
        late.announce(LoggingLevel::Info, "second").unwrap();
        target.crowded = false;
        assert_eq!(
            give(&mut receiver, &mut target),
            (false, vec!["request".into(), "log false Info None \"second\"".into()])
        );
        assert!(receiver.is_empty());
    }

    /// An answer that does not fit is an error for its client. One to a request that is over is dropped.
    #[test]
    fn an_answer_that_cannot_be_given_is_an_error_for_its_client() {
        let tools = [Tool::new("later", "Later", |tokens: &mut Tokens, call| {
            let (token, outcome) = call.later();
            tokens.push(token);
            outcome
        })];
        let (service, mut tokens, mut space) = (Service::new("late", "1").tools(&tools), Tokens::new(), [0; 8192]);
        let mut lines = LineServer::growing(MessageLimits::default(), LineSink::new(SliceStorage::new(&mut space)));
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let call =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"later","_meta":{meta}}}}}"#);
        for piece in (call + "\n").as_bytes().chunks(64) {
            lines.space()[..piece.len()].copy_from_slice(piece);
            lines.filled(piece.len());
            let _ = lines.run(&service, &mut tokens);
        }
        let (late, mut receiver) = channel::<Tokens>();
        let token = tokens[0];
        late.answer(token, |_, call| call.text("x".repeat(10_000))).unwrap();
        late.answer(token, |_, _| panic!("it must not run")).unwrap();
        receiver.give(&mut lines, &service, &mut tokens);
        let told = String::from_utf8_lossy(lines.out.pending()).into_owned();
        assert!(told.contains(TOO_LARGE.message) && told.lines().count() == 1, "{told}");
    }

    #[test]
    fn a_message_wakes_the_task_that_waits_for_it() {
        let (late, mut receiver) = channel::<u32>();
        let [woken, other] = [(); 2].map(|()| Arc::new(Woken::default()));
        let count = |woken: &Arc<Woken>| woken.0.load(Ordering::Relaxed);
        for waits in [&woken, &other] {
            let waker = Waker::from(Arc::clone(waits));
            assert!(receiver.poll_ready(&mut Context::from_waker(&waker)).is_pending());
        }
        late.publish(ServerChange::Tools).unwrap();
        late.publish(ServerChange::Tools).unwrap();
        // The last one that asked, once.
        assert_eq!((count(&woken), count(&other)), (0, 1));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(receiver.poll_ready(&mut Context::from_waker(&waker)).is_ready());
        assert!(receiver.wait(Duration::ZERO));
        give(&mut receiver, &mut Seen::default());
        assert!(!receiver.wait(Duration::ZERO) && !receiver.wait(Duration::from_millis(1)));
        let sends = thread::spawn(move || late.publish(ServerChange::Tools));
        assert!(receiver.wait(Duration::from_secs(60)));
        assert_eq!(sends.join().unwrap(), Ok(()));
    }

    /// A thread that sends much to a small channel waits again and again, and is always woken.
    #[test]
    fn a_thread_that_waits_for_room_goes_on_when_there_is_some() {
        const MANY: usize = 1_000;
        let (late, mut receiver) = channel_of::<u32>(1);
        let sends = thread::spawn(move || {
            (0..MANY).try_for_each(|_| {
                late.wait_for_room()?;
                late.publish(ServerChange::Tools)
            })
        });
        let mut taken = 0;
        while taken < MANY {
            assert!(receiver.wait(Duration::from_secs(20)), "nothing comes after {taken}");
            taken += give(&mut receiver, &mut Seen::default()).1.len();
        }
        assert_eq!((sends.join().unwrap(), taken), (Ok(()), MANY));
    }

    /// Each task that waits for room is woken once, when there is room, and at the end of the channel.
    #[test]
    fn the_end_of_the_channel_wakes_those_that_wait() {
        let (late, receiver) = channel_of::<u32>(0);
        // It holds one message at least.
        late.publish(ServerChange::Tools).unwrap();
        assert_eq!(late.publish(ServerChange::Tools), Err(LateSendError::Full));
        let [woken, other] = [(); 2].map(|()| Arc::new(Woken::default()));
        let (mut room, mut room_too) = (pin!(late.room()), pin!(late.room()));
        let wakers = [&woken, &woken, &other].map(|woken| Waker::from(Arc::clone(woken)));
        for waker in &wakers {
            assert!(room.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        assert!(room_too.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_pending());
        let (begins, begun) = std::sync::mpsc::channel();
        let waits = thread::spawn({
            let late = late.clone();
            move || {
                begins.send(()).unwrap();
                late.wait_for_room()
            }
        });
        begun.recv().unwrap();
        // Most often the thread waits now; if it does not yet, the test shows less.
        thread::sleep(Duration::from_millis(10));
        drop(receiver);
        assert_eq!(waits.join().unwrap(), Err(LateSendError::Ended));
        assert_eq!([&woken, &other].map(|woken| woken.0.load(Ordering::Relaxed)), [1, 1]);
        let cx = &mut Context::from_waker(Waker::noop());
        assert_eq!(room.poll(cx), Poll::Ready(Err(LateSendError::Ended)));
        assert_eq!(room_too.poll(cx), Poll::Ready(Err(LateSendError::Ended)));
        assert_eq!(late.wait_for_room(), Err(LateSendError::Ended));
        assert_eq!(late.decided(), Err(LateSendError::Ended));
    }

    /// Sends to the channel when it is woken, and when it is dropped.
    struct Sends(LateSender<u32>, std::sync::mpsc::Sender<Result<(), LateSendError>>);

    impl Wake for Sends {
        fn wake(self: Arc<Self>) {
            self.1.send(self.0.publish(ServerChange::Tools)).unwrap();
        }
    }

    impl Drop for Sends {
        fn drop(&mut self) {
            let _ = self.1.send(self.0.publish(ServerChange::Tools));
        }
    }

    /// Code of the application that runs during a change of the channel may use the channel.
    #[test]
    fn nothing_of_the_application_runs_under_the_lock() {
        let (seen, sees) = std::sync::mpsc::channel();
        let token = token();
        // On a thread of its own: under the lock it would never end.
        thread::spawn(move || {
            let (late, receiver) = channel_of::<u32>(1);
            let waker = Waker::from(Arc::new(Sends(late.clone(), seen.clone())));
            let cx = &mut Context::from_waker(&waker);
            late.publish(ServerChange::Tools).unwrap();
            assert!(pin!(late.room()).poll(cx).is_pending());
            assert!(receiver.shared.next().is_some());
            let held = Sends(late.clone(), seen);
            late.resume(token, move |_| drop(held)).unwrap();
            assert!(pin!(late.room()).poll(cx).is_pending());
            drop(receiver);
        });
        let next = || sees.recv_timeout(Duration::from_secs(20)).unwrap();
        // There was room for the first. The others came at the end.
        assert_eq!([next(), next(), next()], [Ok(()), Err(LateSendError::Ended), Err(LateSendError::Ended)]);
    }

    type Tokens = Vec<RequestToken>;

    fn conversation(run: impl FnOnce(&mut Conversation<'_, Tokens>)) {
        static TOOLS: [Tool<Tokens>; 2] = [
            Tool::new("later", "Later", |tokens: &mut Tokens, call| {
                let (token, outcome) = call.later();
                tokens.push(token);
                outcome
            }),
            Tool::new("suspend", "Runs again", |tokens: &mut Tokens, call| {
                if call.is_resumed() {
                    return call.text(format_args!("resumed with {}", tokens.len()));
                }
                let (token, outcome) = call.suspend(b"")?;
                tokens.push(token);
                Ok(outcome)
            }),
        ];
        let other = |tokens: &mut Tokens, other: &mut CustomRequest<'_>| {
            let (token, outcome) = other.later();
            tokens.push(token);
            outcome
        };
        let service = Service::new("late", "1").tools(&TOOLS).other(other);
        let service = service.feature(mcp_sansio::protocol::ServerCapability::Logging);
        let service = service.feature(mcp_sansio::protocol::ServerCapability::ToolsChanged);
        let service = service.contain_panics(|run| catch_unwind(AssertUnwindSafe(run)).is_ok());
        let mut conversation = Conversation::new(&service, Tokens::new());
        conversation.open(Revision::V2025_11_25);
        run(&mut conversation);
    }

    #[test]
    fn a_connection_over_lines_takes_each_message() {
        conversation(|talk| {
            let (late, mut receiver) = channel::<Tokens>();
            let none = serde_json::json!({});
            let mut one = |talk: &mut Conversation<'_, Tokens>| {
                let mut lines = talk.hear(&mut receiver, Duration::ZERO);
                assert_eq!(lines.len(), 1, "{lines:?}");
                lines.remove(0)
            };
            assert!(talk.call("later", &none).is_pending());
            let token = talk.state()[0];
            late.log(token, LoggingLevel::Error, "of a request").unwrap();
            assert!(one(talk).contains(r#""data":"of a request""#));
            late.announce(LoggingLevel::Error, "of none").unwrap();
            assert!(one(talk).contains(r#""data":"of none""#));
            let facts = LogMessage::from(mcp_sansio::json::Raw::constant(r#"{"rows":3}"#)).logger("db \"1\"");
            late.log(token, LoggingLevel::Error, facts.clone()).unwrap();
            let told = r#"{"level":"error","logger":"db \"1\"","data":{"rows":3}}"#;
            assert!(one(talk).contains(told));
            late.announce(LoggingLevel::Error, facts).unwrap();
            assert!(one(talk).contains(told));
            late.publish(ServerChange::Tools).unwrap();
            assert!(one(talk).contains("notifications/tools/list_changed"));
            late.progress(token, Progress::new(1).of(2)).unwrap();
            assert!(one(talk).contains(r#""progress":1,"total":2"#));
            // It is put off, not suspended.
            late.resume(token, |_| panic!("it must not run")).unwrap();
            assert!(one(talk).contains(WRONG_KIND.message));
            assert!(talk.request("demo/other", &none).is_pending());
            let other = talk.state()[1].as_custom();
            late.answer(other, |_, other| other.result(mcp_sansio::json::Raw::constant(r#"{"a":1}"#))).unwrap();
            assert!(one(talk).contains(r#""a":1"#));
            assert!(talk.call("later", &none).is_pending());
            late.fail(talk.state()[2], &RpcError::new(-31000, "no")).unwrap();
            assert!(one(talk).contains(r#""code":-31000,"message":"no""#));
            assert!(talk.call("suspend", &none).is_pending());
            late.resume(talk.state()[3], |tokens| tokens.clear()).unwrap();
            assert!(one(talk).contains("resumed with 0"));
            assert!(talk.call("suspend", &none).is_pending());
            late.resume(talk.state()[0], |_| panic!("as it should")).unwrap();
            assert!(one(talk).contains(UNPREPARED.message));
            // They are over: nothing is sent for them.
            late.fail(token, &RpcError::new(-31000, "no")).unwrap();
            late.answer(token, |_, _| panic!("it must not run")).unwrap();
            assert!(talk.hear(&mut receiver, Duration::ZERO).is_empty());
        });
    }

    /// A place for messages: whether it is held, and its room.
    struct LimitedSink(bool, usize);

    impl mcp_sansio::sink::Sink for LimitedSink {
        fn put(&mut self, _: &[u8]) -> Result<(), mcp_sansio::FullError> {
            Ok(())
        }

        fn room(&self) -> usize {
            self.1
        }
    }

    impl Out for LimitedSink {
        fn begin(&mut self, _: mcp_sansio::sink::MessageHead<'_>) -> Result<(), mcp_sansio::FullError> {
            Ok(())
        }

        fn end(&mut self) {}

        fn mark(&self) -> mcp_sansio::sink::Mark {
            mcp_sansio::sink::Mark::new(0)
        }

        fn roll_back(&mut self, _: mcp_sansio::sink::Mark) {}

        fn hold(&mut self, on: bool) {
            self.0 = on;
        }

        fn held(&self) -> bool {
            self.0
        }

        fn capacity(&self) -> usize {
            100
        }
    }

    #[test]
    fn a_connection_over_lines_takes_messages_while_it_has_room() {
        for (held, room, is_open) in [(false, 0, false), (false, 1, true), (true, 0, false), (true, 1, false)] {
            let mut lines = LineServer::growing(MessageLimits::default(), LimitedSink(held, room));
            assert_eq!(LateTarget::<u32>::is_open(&mut lines), is_open, "{held} {room}");
            let (late, mut receiver) = channel::<u32>();
            late.announce(LoggingLevel::Info, "").unwrap();
            assert!(!receiver.give(&mut lines, &Service::new("late", "1"), &mut 0));
            assert_eq!(receiver.is_empty(), is_open);
            assert!(!LateTarget::<u32>::is_crowded(&mut lines, token()));
        }
    }
}
