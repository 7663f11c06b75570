//! The channel through which tasks, timers and threads send answers and notifications to a server.

use core::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_channel::{Receiver, Sender};
use futures_lite::Stream;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{OwnedServerChange, Progress, ProgressValue, RequestToken, RpcError, ServerChange};
use mcp_sansio::service::{Call, Complete, CustomRequest, GetPrompt, HandlerResult, ReadResource};

/// The capacity of the channel, in messages; further senders wait.
const CHANNEL: usize = 64;

/// Makes a channel to a server: one end for the state of the handlers, the other for the server. It holds up to 64
/// messages.
///
/// ```
/// use mcp_sansio_smol::{LateSender, Serve, channel};
/// use mcp_sansio::service::Service;
///
/// struct State {
///     answers: LateSender<State>,
/// }
/// let (answers, late) = channel();
/// let mut state = State { answers };
/// let service = Service::new("demo", "1.0");
/// # let (input, output) = (futures_lite::io::empty(), Vec::new());
/// let served = Serve::new(&service).late(late).over(input, output, &mut state);
/// # futures_lite::future::block_on(served).unwrap();
/// ```
#[must_use]
pub fn channel<S>() -> (LateSender<S>, LateReceiver<S>) {
    let (sender, receiver) = async_channel::bounded(CHANNEL);
    (LateSender { sender }, LateReceiver { receiver: Box::pin(receiver) })
}

/// The sending end of a [`channel`]. Clone it into each task that answers or notifies, on any thread.
///
/// Messages are written in the order in which they were sent. If the client does not read, sending waits: no message
/// is lost, and only a few are kept. Messages for a stale token are dropped.
pub struct LateSender<S> {
    sender: Sender<News<S>>,
}

/// The receiving end of a [`channel`], for [`Serve::late`](crate::Serve::late).
pub struct LateReceiver<S> {
    receiver: Pin<Box<Receiver<News<S>>>>,
}

/// The error of sending to a server that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing inside")]
pub struct ServerEndedError;

/// The function that answers a request that was put off.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) enum Answer<S> {
    Call(Box<dyn FnOnce(&mut S, &mut Call<'_>) -> HandlerResult + Send>),
    Read(String, Box<dyn FnOnce(&mut S, &mut ReadResource<'_>) -> HandlerResult + Send>),
    Prompt(Box<dyn FnOnce(&mut S, &mut GetPrompt<'_>) -> HandlerResult + Send>),
    Complete(String, Box<dyn FnOnce(&mut S, &mut Complete<'_>) -> HandlerResult + Send>),
    Other(Box<dyn FnOnce(&mut S, &mut CustomRequest<'_>) -> HandlerResult + Send>),
    Resume(Box<dyn FnOnce(&mut S) + Send>),
}

/// The error for a request that was answered as a request of another kind: its client must not wait for ever.
pub(crate) const WRONG_KIND: RpcError<'static> =
    RpcError::internal("The handler's answer is of another kind than the request");

pub(crate) enum News<S> {
    Progress {
        token: RequestToken,
        done: ProgressValue,
        total: Option<ProgressValue>,
        message: Option<String>,
    },
    Log {
        token: Option<RequestToken>,
        level: LoggingLevel,
        message: String,
    },
    Answer {
        token: RequestToken,
        answer: Answer<S>,
    },
    Changed(OwnedServerChange),
    #[cfg(feature = "resource-server")]
    Decided,
}

impl<S> LateSender<S> {
    /// Sends `notifications/progress` for a request, if its client asked for
    /// [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn progress(&self, token: RequestToken, progress: Progress<'_>) -> Result<(), ServerEndedError> {
        let Progress { done, total, message, .. } = progress;
        self.send(News::Progress { token, done, total, message: message.map(String::from) }).await
    }

    /// Sends `notifications/message` for a request, if its client wants messages of that level
    /// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn log(
        &self,
        token: RequestToken,
        level: LoggingLevel,
        message: impl Into<String>,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Log { token: Some(token), level, message: message.into() }).await
    }

    /// Sends `notifications/message` that belongs to no request: only to clients before 2026-07-28.
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn announce(&self, level: LoggingLevel, message: impl Into<String>) -> Result<(), ServerEndedError> {
        self.send(News::Log { token: None, level, message: message.into() }).await
    }

    /// Answers a `tools/call` that was put off. `answer` runs on the server's side, with the state of the handlers;
    /// it does not run if the request was cancelled meanwhile. If the token belongs to a request of another method,
    /// that request is answered with error -32603.
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn answer(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Answer { token, answer: Answer::Call(Box::new(answer)) }).await
    }

    /// Answers a `resources/read` that was put off, at the URI that [`ReadResource::uri`] gave; see
    /// [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn answer_read(
        &self,
        token: RequestToken,
        uri: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut ReadResource<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Answer { token, answer: Answer::Read(uri.into(), Box::new(answer)) }).await
    }

    /// Answers a `prompts/get` that was put off; see [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn answer_prompt(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut GetPrompt<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Answer { token, answer: Answer::Prompt(Box::new(answer)) }).await
    }

    /// Answers a `completion/complete` that was put off, for the value that [`Complete::value`] gave; see
    /// [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn answer_complete(
        &self,
        token: RequestToken,
        value: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Answer { token, answer: Answer::Complete(value.into(), Box::new(answer)) }).await
    }

    /// Answers a request with a method of your own that was put off; see [`answer`](LateSender::answer).
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn answer_other(
        &self,
        token: RequestToken,
        answer: impl FnOnce(&mut S, &mut CustomRequest<'_>) -> HandlerResult + Send + 'static,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Answer { token, answer: Answer::Other(Box::new(answer)) }).await
    }

    /// Resumes a request that its handler has [suspended](mcp_sansio::service::RequestContext::suspend). `prepare` puts its
    /// finding into the state, then the handler runs again. Neither runs if the request was cancelled meanwhile. A
    /// request that is not suspended is answered with error -32603.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::server::RequestToken;
    /// use mcp_sansio::service::{Call, HandlerResult, InputRequest};
    /// use mcp_sansio_smol::LateSender;
    ///
    /// struct Shop {
    ///     answers: LateSender<Shop>,
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
    ///     let answers = shop.answers.clone();
    ///     smol::spawn(async move {
    ///         let price = 12; // as some other server says
    ///         answers.resume(token, move |shop| shop.prices.push((token, price))).await
    ///     })
    ///     .detach();
    ///     Ok(done)
    /// }
    /// # let _: fn(&mut Shop, &mut Call<'_>) -> HandlerResult = order;
    /// ```
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn resume(
        &self,
        token: RequestToken,
        prepare: impl FnOnce(&mut S) + Send + 'static,
    ) -> Result<(), ServerEndedError> {
        self.send(News::Answer { token, answer: Answer::Resume(Box::new(prepare)) }).await
    }

    /// Announces a change to the clients that subscribed to it. A topic of an extension needs the feature `extensions` of this
    /// crate.
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    pub async fn publish(&self, change: ServerChange<'_>) -> Result<(), ServerEndedError> {
        self.send(News::Changed(change.into())).await
    }

    /// Announces that `authorize` of an HTTP server can decide about a request for which it answered `Access::Later`: it is
    /// asked again about each such request.
    ///
    /// # Errors
    /// [`ServerEndedError`] if the server has ended.
    #[cfg(feature = "resource-server")]
    pub async fn decided(&self) -> Result<(), ServerEndedError> {
        self.send(News::Decided).await
    }

    async fn send(&self, news: News<S>) -> Result<(), ServerEndedError> {
        self.sender.send(news).await.map_err(|_| ServerEndedError)
    }
}

impl<S> LateReceiver<S> {
    /// Takes the next message. Stays `Pending` when all senders are gone: the server goes on with its input.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<News<S>> {
        match ready!(self.receiver.as_mut().poll_next(cx)) {
            Some(news) => Poll::Ready(news),
            None => Poll::Pending,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }
}

impl<S> Clone for LateSender<S> {
    fn clone(&self) -> Self {
        LateSender { sender: self.sender.clone() }
    }
}

impl<S> fmt::Debug for LateSender<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

impl<S> fmt::Debug for LateReceiver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Late")
    }
}

impl fmt::Display for ServerEndedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server has ended")
    }
}

impl core::error::Error for ServerEndedError {}
