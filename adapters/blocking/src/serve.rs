//! Serves lines, with answers and changes from other threads.

use core::fmt;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{
    MessageLimits, OwnedServerChange, Progress, RequestToken, RespondError, RpcError, Server, ServerChange,
};
use mcp_sansio::service::{Call, Complete, CustomRequest, GetPrompt, HandlerResult, ReadResource, Service};

use crate::{WriterOut, millis_since, read};

/// The capacity of the channel, in messages and pieces of input; further senders wait.
const CHANNEL: usize = 64;
/// The most bytes of a piece of input.
const PIECE: usize = 16 * 1024;

/// The connection, without the type of its writer.
type Lines<'w> = LineServer<'static, WriterOut<Box<dyn Write + 'w>>>;
/// Work of another thread.
type Job<S> = Box<dyn FnOnce(&mut Lines<'_>, &Service<'_, S>, &mut S) + Send>;

/// An event that the loop has waited for.
enum Event<S: 'static> {
    Input(Vec<u8>),
    End,
    Failed(io::Error),
    Late(Job<S>),
}

/// Makes a channel to a server: one end for the state of the handlers, the other for [`Serve::late`]. It holds up to 64
/// messages.
#[must_use]
pub fn channel<S: 'static>() -> (LateSender<S>, LateReceiver<S>) {
    let (sender, events) = sync_channel(CHANNEL);
    let sender = LateSender { sender, server: Arc::default() };
    (sender.clone(), LateReceiver { sender, events })
}

/// The sending end of a [`channel`]. Clone it into each thread that answers or notifies.
///
/// Messages are written in the order in which they were sent. If the client does not read, sending waits: no message is
/// lost, and only a few are kept. Messages for a stale token are dropped.
pub struct LateSender<S: 'static> {
    sender: SyncSender<Event<S>>,
    /// The thread of the loop, which must not wait for itself.
    server: Arc<OnceLock<ThreadId>>,
}

/// The receiving end of a [`channel`].
pub struct LateReceiver<S: 'static> {
    sender: LateSender<S>,
    events: Receiver<Event<S>>,
}

/// The reason why a message was not sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LateSendError {
    /// The server has ended.
    Ended,
    /// The channel is full, and the caller is the thread of the server: a handler has sent too many messages.
    Full,
}

impl fmt::Display for LateSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LateSendError::Ended => "the server has ended",
            LateSendError::Full => "the channel to the server is full",
        })
    }
}

impl std::error::Error for LateSendError {}

impl<S: 'static> LateSender<S> {
    /// Sends `notifications/progress` for a request, if its client asked for
    /// [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn progress(&self, token: RequestToken, progress: Progress<'_>) -> Result<(), LateSendError> {
        let Progress { done, total, message, .. } = progress;
        let message = message.map(String::from);
        self.send(move |lines, _, _| {
            let mut progress = Progress::new(done);
            (progress.total, progress.message) = (total, message.as_deref());
            let _ = lines.progress(token, progress);
        })
    }

    /// Sends `notifications/message` for a request, if its client wants messages of that level
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn log(
        &self,
        token: RequestToken,
        level: LoggingLevel,
        message: impl Into<String>,
    ) -> Result<(), LateSendError> {
        self.log_of(Some(token), level, message.into())
    }

    /// Sends `notifications/message` that belongs to no request: only to clients before 2026-07-28.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn announce(&self, level: LoggingLevel, message: impl Into<String>) -> Result<(), LateSendError> {
        self.log_of(None, level, message.into())
    }

    fn log_of(&self, token: Option<RequestToken>, level: LoggingLevel, message: String) -> Result<(), LateSendError> {
        self.send(move |lines, service, _| {
            let (server, out) = lines.parts();
            let _ = server.log(service.about(), token, level, None, format_args!("{message}"), out);
        })
    }

    /// Announces a change to the clients that subscribed to it.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn publish(&self, change: ServerChange<'_>) -> Result<(), LateSendError> {
        let change = OwnedServerChange::from(change);
        self.send(move |lines, _, _| lines.publish(change.as_change()))
    }

    /// Answers a `tools/call` that was put off. `answer` runs on the thread of the server, with the state of the handlers; it
    /// does not run if the request was cancelled meanwhile. If the token belongs to a request of another method, that
    /// request is answered with error -32603.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn answer(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.answer_by(token, move |lines, service, state| lines.answer(service, state, token, answer))
    }

    /// Answers a `resources/read` that was put off, at the URI that [`ReadResource::uri`] gave; see
    /// [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn answer_read(
        &self,
        token: RequestToken,
        uri: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut ReadResource<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), LateSendError> {
        let uri = uri.into();
        self.answer_by(token, move |lines, service, state| lines.answer_read(service, state, token, &uri, answer))
    }

    /// Answers a `prompts/get` that was put off; see [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn answer_prompt(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut GetPrompt<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.answer_by(token, move |lines, service, state| lines.answer_prompt(service, state, token, answer))
    }

    /// Answers a `completion/complete` that was put off, for the value that [`Complete::value`] gave; see
    /// [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn answer_complete(
        &self,
        token: RequestToken,
        value: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), LateSendError> {
        let value = value.into();
        self.answer_by(token, move |lines, service, state| lines.answer_complete(service, state, token, &value, answer))
    }

    /// Answers a request with a method of your own that was put off; see [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn answer_other(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut CustomRequest<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.answer_by(token, move |lines, service, state| lines.answer_other(service, state, token, answer))
    }

    /// Resumes a request that its handler has [suspended](mcp_sansio::service::RequestContext::suspend). `prepare` puts its
    /// finding into the state, then the handler runs again, and may ask. Neither runs if the request was cancelled
    /// meanwhile. A request that is not suspended is answered with error -32603.
    ///
    /// # Errors
    /// [`LateSendError`]
    pub fn resume(
        &self,
        token: RequestToken,
        prepare: impl FnOnce(&mut S) + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.answer_by(token, move |lines, _, state| lines.resume(token).map(|()| prepare(state)))
    }

    fn answer_by(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut Lines<'_>, &Service<'_, S>, &mut S) -> Result<(), RespondError> + Send + 'static,
    ) -> Result<(), LateSendError> {
        self.send(move |lines, service, state| {
            if answer(lines, service, state) == Err(RespondError::WrongKind) {
                // Its client must not wait for ever.
                let wrong = RpcError::internal("The handler's answer is of another kind than the request");
                let (server, out) = lines.parts();
                let _ = server.fail(token, &wrong, out);
            }
        })
    }

    fn send(
        &self,
        job: impl FnOnce(&mut Lines<'_>, &Service<'_, S>, &mut S) + Send + 'static,
    ) -> Result<(), LateSendError> {
        let event = Event::Late(Box::new(job));
        if self.server.get() == Some(&thread::current().id()) {
            return self.sender.try_send(event).map_err(|error| match error {
                TrySendError::Full(_) => LateSendError::Full,
                TrySendError::Disconnected(_) => LateSendError::Ended,
            });
        }
        self.sender.send(event).map_err(|_| LateSendError::Ended)
    }
}

/// A service with the settings to serve it over lines, with answers and changes of other threads. ([`serve`](crate::serve)
/// and [`serve_stdio`](crate::serve_stdio) do without the thread and the channel that this needs.)
///
/// ```
/// use std::thread;
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// use mcp_sansio_blocking::{LateSender, Serve, channel};
///
/// struct Kitchen {
///     late: LateSender<Kitchen>,
///     cups: u32,
/// }
///
/// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
///     let (token, outcome) = call.later();
///     let late = kitchen.late.clone();
///     thread::spawn(move || {
///         // What takes long is done here.
///         late.answer(token, |kitchen, call| {
///             kitchen.cups += 1;
///             call.text(format_args!("cup {}", kitchen.cups))
///         })
///     });
///     outcome
/// }
/// static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews coffee", brew)];
///
/// # fn main() -> std::io::Result<()> {
/// let service = Service::new("kitchen", "1.0").tools(&TOOLS);
/// let (late, receiver) = channel();
/// let mut kitchen = Kitchen { late, cups: 0 };
/// # let input = std::io::Cursor::new(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brew","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
/// # let mut output = Vec::new();
/// // With stdin and stdout: `.stdio(&mut kitchen)`.
/// Serve::new(&service).late(receiver).over(input, &mut output, &mut kitchen)?;
/// # assert!(String::from_utf8(output).unwrap().contains("cup 1"));
/// # Ok(())
/// # }
/// ```
#[must_use = "call `stdio` or `over`"]
pub struct Serve<'s, 't, S: 'static> {
    service: &'s Service<'t, S>,
    limits: MessageLimits,
    grace: Duration,
    late: Option<LateReceiver<S>>,
    watch: Option<Watch<S>>,
}

/// A function that looks for changes from time to time.
struct Watch<S> {
    period: Duration,
    look: fn(&mut S, &mut Server<'_>),
}

impl<'s, 't, S> Serve<'s, 't, S> {
    /// Makes a server of `service`, with limits for a host.
    pub fn new(service: &'s Service<'t, S>) -> Self {
        let grace = Duration::from_millis(1500);
        Serve { service, limits: MessageLimits::default(), grace, late: None, watch: None }
    }

    /// Sets limits of messages, of requests to the client and of subscriptions.
    pub fn limits(self, limits: MessageLimits) -> Self {
        Serve { limits, ..self }
    }

    /// Sets how long the server waits for late answers after the end of the input. Default: 1.5 seconds, because some hosts
    /// kill a server 2 seconds after they close its stdin. Meanwhile it writes only answers: no progress, log messages or
    /// changes.
    pub fn grace(self, grace: Duration) -> Self {
        Serve { grace, ..self }
    }

    /// Sets the channel of late answers, see [`channel`].
    pub fn late(self, late: LateReceiver<S>) -> Self {
        Serve { late: Some(late), ..self }
    }

    /// Calls `look` each `period` while a client is subscribed to something; it can [`publish`](Server::publish)
    /// changes.
    pub fn watch(self, period: Duration, look: fn(&mut S, &mut Server<'_>)) -> Self {
        Serve { watch: Some(Watch { period, look }), ..self }
    }

    /// Serves stdin and stdout ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio))
    /// until stdin ends and every answer is written. Nothing else may print to stdout.
    ///
    /// # Errors
    /// If stdin cannot be read or stdout cannot be written. It is no error if the client closes its end.
    pub fn stdio(self, state: &mut S) -> io::Result<()> {
        #[cfg(unix)]
        let (input, output) = crate::stdio()?;
        // Without their locks, which cannot go to another thread.
        #[cfg(not(unix))]
        let (input, output) = (io::stdin(), io::stdout());
        self.over(input, output, state)
    }

    /// Serves `reader` and `writer` until `reader` ends and every answer is written. A thread reads; after an error of
    /// `writer` it stays until the next input comes.
    ///
    /// # Errors
    /// If `reader` or `writer` fails, or no thread can be started. It is no error if the client closes its end.
    pub fn over(self, reader: impl Read + Send + 'static, writer: impl Write, state: &mut S) -> io::Result<()> {
        let LateReceiver { sender, events } = self.late.unwrap_or_else(|| channel().1);
        let _ = sender.server.set(thread::current().id());
        thread::Builder::new().name("mcp-input".into()).spawn(move || forward(reader, &sender.sender))?;
        let writer: Box<dyn Write + '_> = Box::new(writer);
        Loop {
            service: self.service,
            state,
            lines: LineServer::growing(self.limits, WriterOut::new(writer)),
            events,
            watch: self.watch,
            look_at: None,
            grace: self.grace,
            patience: None,
            started: Instant::now(),
        }
        .run()
    }
}

/// Passes on the input, until it ends or the server has ended.
fn forward<S>(mut reader: impl Read, events: &SyncSender<Event<S>>) {
    let mut piece = vec![0; PIECE];
    loop {
        let event = match read(&mut reader, &mut piece) {
            Ok(0) => Event::End,
            Ok(n) => Event::Input(piece.get(..n).unwrap_or_default().to_vec()),
            Err(error) => Event::Failed(error),
        };
        let is_last = !matches!(event, Event::Input(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// The loop of a connection.
struct Loop<'l, 't, 'w, S: 'static> {
    service: &'l Service<'t, S>,
    state: &'l mut S,
    lines: Lines<'w>,
    events: Receiver<Event<S>>,
    watch: Option<Watch<S>>,
    /// The time of the next look of `watch`.
    look_at: Option<Instant>,
    grace: Duration,
    /// The end of the wait for late answers, after that of the input.
    patience: Option<Instant>,
    started: Instant,
}

impl<S> Loop<'_, '_, '_, S> {
    fn run(mut self) -> io::Result<()> {
        loop {
            self.work();
            self.lines.out().flush();
            if self.lines.out().failed()
                || self.patience.is_some_and(|end| self.lines.is_done() || end <= Instant::now())
            {
                break;
            }
            let next = match self.wait() {
                Some(wait) => self.events.recv_timeout(wait),
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(Event::Input(bytes)) => self.feed(&bytes),
                Ok(Event::Late(job)) => job(&mut self.lines, self.service, self.state),
                Ok(Event::Failed(error)) => return Err(error),
                Ok(Event::End) => self.end_input(),
                // All senders are gone, and with them the reader, which has sent its end.
                Err(RecvTimeoutError::Disconnected) if self.patience.is_some() => break,
                Err(RecvTimeoutError::Disconnected) => self.end_input(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let _ = self.lines.abandon();
        self.lines.out().flush();
        self.lines.out().result()
    }

    /// Does all that can be done now.
    fn work(&mut self) {
        self.lines.expire(millis_since(self.started));
        if let (Some(watch), Some(_)) = (&self.watch, self.look_at.take_if(|at| *at <= Instant::now())) {
            (watch.look)(self.state, self.lines.server());
        }
        while self.lines.run(self.service, self.state) == NextStep::Write {}
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.lines.space();
            let n = space.len().min(bytes.len());
            let (now, later) = bytes.split_at(n);
            if let Some(space) = space.get_mut(..n) {
                space.copy_from_slice(now);
            }
            self.lines.filled(n);
            bytes = later;
            while self.lines.run(self.service, self.state) == NextStep::Write {}
        }
    }

    fn end_input(&mut self) {
        self.lines.end_of_input();
        // A client that has closed its side only waits for its answers, and some fail on any other message.
        self.lines.out().only_answers();
        self.patience = Some(Instant::now() + self.grace);
    }

    /// Returns the time to the next deadline.
    fn wait(&mut self) -> Option<Duration> {
        let server = self.lines.server();
        let deadline = server.next_deadline().map(|at| self.started + Duration::from_millis(at));
        let watch = self.watch.as_ref().filter(|_| server.has_subscribers());
        self.look_at = watch.map(|watch| self.look_at.unwrap_or_else(|| Instant::now() + watch.period));
        let soonest = [deadline, self.look_at, self.patience].into_iter().flatten().min();
        soonest.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

impl<S> Clone for LateSender<S> {
    fn clone(&self) -> Self {
        LateSender { sender: self.sender.clone(), server: Arc::clone(&self.server) }
    }
}

impl<S> fmt::Debug for LateSender<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LateSender")
    }
}

impl<S> fmt::Debug for LateReceiver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LateReceiver")
    }
}

impl<S> fmt::Debug for Serve<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve").field("limits", &self.limits).field("grace", &self.grace).finish_non_exhaustive()
    }
}
