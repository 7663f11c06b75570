//! Answers, progress and changes from outside of the handlers.

use std::fmt;
use std::sync::Weak;

use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{Millis, OwnedServerChange, Progress, RequestToken, ServerChange};
use mcp_sansio::service::{Call, Complete, CustomRequest, GetPrompt, HandlerResult, ReadResource};
use mcp_sansio_http::endpoint::{App, Endpoint};

use crate::answer::{Answer, Late};
use crate::shared::{Desk, Shared};

/// A handle to a mount, for tasks, threads and handlers. It does not keep the mount alive, so it may be in the state of the
/// handlers. When the mount is gone, all calls do nothing.
///
/// No call waits: where a handler runs at that moment, the work is done right after it. So handlers may use it too.
///
/// ```
/// use mcp_sansio::server::Progress;
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// use mcp_sansio_tower::{Handle, Mcp, MountOptions};
///
/// struct Kitchen {
///     mcp: Handle<Kitchen>,
///     cups: u32,
/// }
///
/// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
///     let (token, outcome) = call.later();
///     let mcp = kitchen.mcp.clone();
///     std::thread::spawn(move || { // or `tokio::spawn`
///         mcp.progress(token, Progress::new(1).of(2));
///         mcp.answer(token, |kitchen, call| {
///             kitchen.cups += 1;
///             call.text(format_args!("cup {}", kitchen.cups))
///         });
///     });
///     outcome
/// }
/// static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews coffee", brew)];
///
/// let options = MountOptions::new(async_io::Timer::after);
/// let service = Service::new("kitchen", "1.0").tools(&TOOLS);
/// let mcp = Mcp::with_handle(service, options, |mcp| Kitchen { mcp, cups: 0 });
/// # let _ = mcp;
/// ```
pub struct Handle<S: 'static>(pub(crate) Weak<Shared<S>>);

impl<S: Send> Handle<S> {
    /// Answers a `tools/call` that was put off. `answer` runs under the lock of the mount, with the state of the handlers; it
    /// does not run if the request was cancelled meanwhile. While the client of the request does not read, the answer waits.
    /// If the token belongs to a request of another method, that request is answered with error -32603.
    pub fn answer(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> HandlerResult + Send + 'static,
    ) {
        self.tell(token, Answer::Call(Box::new(answer)));
    }

    /// Answers a `resources/read` that was put off, at the URI that [`ReadResource::uri`] gave; see
    /// [`answer`](Handle::answer).
    pub fn answer_read(
        &self,
        token: RequestToken,
        uri: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut ReadResource<'_>) -> HandlerResult + Send + 'static,
    ) {
        self.tell(token, Answer::Read(uri.into(), Box::new(answer)));
    }

    /// Answers a `prompts/get` that was put off; see [`answer`](Handle::answer).
    pub fn answer_prompt(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut GetPrompt<'_>) -> HandlerResult + Send + 'static,
    ) {
        self.tell(token, Answer::Prompt(Box::new(answer)));
    }

    /// Answers a `completion/complete` that was put off, for the value that [`Complete::value`] gave; see
    /// [`answer`](Handle::answer).
    pub fn answer_complete(
        &self,
        token: RequestToken,
        value: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> HandlerResult + Send + 'static,
    ) {
        self.tell(token, Answer::Complete(value.into(), Box::new(answer)));
    }

    /// Answers a request with a method of your own that was put off; see [`answer`](Handle::answer).
    pub fn answer_other(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut CustomRequest<'_>) -> HandlerResult + Send + 'static,
    ) {
        self.tell(token, Answer::Other(Box::new(answer)));
    }

    /// Resumes a request that its handler has [suspended](mcp_sansio::service::RequestContext::suspend). `prepare` puts its
    /// finding into the state, then the handler runs again, and may ask. Neither runs if the request was cancelled
    /// meanwhile. A request that is not suspended is answered with error -32603.
    pub fn resume(&self, token: RequestToken, prepare: impl FnOnce(&mut S) + Send + 'static) {
        self.tell(token, Answer::Resume(Box::new(prepare)));
    }

    /// Sends `notifications/progress` for a request that was put off, if its client asked for
    /// [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress). It is dropped if its
    /// stream has no room.
    pub fn progress(&self, token: RequestToken, progress: Progress<'_>) {
        let Progress { done, total, message, .. } = progress;
        let message = message.map(String::from);
        self.submit(move |desk| {
            let mut progress = Progress::new(done);
            (progress.total, progress.message) = (total, message.as_deref());
            let _ = desk.endpoint.progress(token, progress);
        });
    }

    /// Sends `notifications/message` for a request that was put off, if its client wants messages of that level
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
    pub fn log(&self, token: RequestToken, level: LoggingLevel, message: impl Into<String>) {
        let message = message.into();
        self.submit(move |desk| {
            let (endpoint, app) = desk.parts();
            let _ = endpoint.log(&app, token, level, message);
        });
    }

    /// Sends `notifications/message` that belongs to no request: only to clients before 2026-07-28.
    pub fn announce(&self, level: LoggingLevel, message: impl Into<String>) {
        let message = message.into();
        self.submit(move |desk| {
            let (endpoint, app) = desk.parts();
            endpoint.announce(&app, level, &message);
        });
    }

    /// Announces a change to the clients that subscribed to it. A topic of an extension needs the feature `extensions` of
    /// this crate.
    pub fn publish(&self, change: ServerChange<'_>) {
        let change = OwnedServerChange::from(change);
        self.submit(move |desk| desk.endpoint.publish(change.as_change()));
    }

    /// Runs a function with the endpoint and the state, under the lock of the mount, with the time in milliseconds. For work
    /// that the other calls do not cover.
    pub fn with(&self, work: impl FnOnce(&mut Endpoint<'static>, &mut App<'_, S>, Millis) + Send + 'static) {
        self.submit(move |desk| {
            let now = desk.now;
            let (endpoint, mut app) = desk.parts();
            work(endpoint, &mut app, now);
        });
    }

    /// Announces that `authorize` can decide about a request for which it answered `Access::Later`: it is asked again about
    /// each such request.
    #[cfg(feature = "resource-server")]
    pub fn decided(&self) {
        self.submit(|desk| desk.waits.wake_undecided());
    }

    /// Ends all for a shutdown: listens end, open requests get an error, event streams end after what was written to them,
    /// and further requests get 503. Call it before the graceful shutdown of the HTTP server, which waits for open streams.
    pub fn shut_down(&self) {
        self.submit(|desk| {
            *desk.closing = true;
            desk.endpoint.shut_down();
        });
    }

    fn tell(&self, token: RequestToken, answer: Answer<S>) {
        self.submit(move |desk| desk.answer(Late { token, answer }));
    }

    fn submit(&self, job: impl FnOnce(&mut Desk<'_, S>) + Send + 'static) {
        if let Some(shared) = self.0.upgrade() {
            shared.submit(Box::new(job));
        }
    }
}

impl<S> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Handle(Weak::clone(&self.0))
    }
}

impl<S> fmt::Debug for Handle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}
