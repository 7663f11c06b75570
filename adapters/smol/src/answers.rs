//! What tasks, timers and threads send to the server that waits for them.

use core::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_channel::{Receiver, Sender};
use futures_lite::Stream;
use mcp_sansio::protocol::Level;
use mcp_sansio::server::{Change, Failure, Progress, Token};
use mcp_sansio::service::{Call, Complete, Get, Other, Outcome, Read};

/// Messages that wait in the channel; who sends more waits.
const CHANNEL: usize = 64;

/// Makes a channel to a server: one end for the state of the handlers, the other for the server.
///
/// ```
/// use mcp_sansio_smol::{Answers, Serve, channel};
/// use mcp_sansio::service::Service;
///
/// struct State {
///     answers: Answers<State>,
/// }
/// let (answers, late) = channel();
/// let mut state = State { answers };
/// let service = Service::new("demo", "1.0");
/// # let (input, output) = (futures_lite::io::empty(), Vec::new());
/// let served = Serve::new(&service).late(late).over(input, output, &mut state);
/// # futures_lite::future::block_on(served).unwrap();
/// ```
#[must_use]
pub fn channel<S>() -> (Answers<S>, Late<S>) {
    let (sender, receiver) = async_channel::bounded(CHANNEL);
    (Answers { sender }, Late { receiver: Box::pin(receiver) })
}

/// The sending end: clone it into every task that has something to say. It may be sent to other threads.
///
/// Everything is written in the order in which it was sent. If the client does not read, sending waits; so what a
/// task tells is never lost and never piles up. What is told of a token that is stale goes nowhere.
pub struct Answers<S> {
    sender: Sender<News<S>>,
}

/// The receiving end, for [`Serve::late`](crate::Serve::late).
pub struct Late<S> {
    receiver: Pin<Box<Receiver<News<S>>>>,
}

/// The server has ended: nobody hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing inside")]
pub struct Ended;

/// How a request goes on that was put off.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) enum Answer<S> {
    Call(Box<dyn FnOnce(&mut S, &mut Call<'_>) -> Outcome + Send>),
    Read(String, Box<dyn FnOnce(&mut S, &mut Read<'_>) -> Outcome + Send>),
    Prompt(Box<dyn FnOnce(&mut S, &mut Get<'_>) -> Outcome + Send>),
    Complete(String, Box<dyn FnOnce(&mut S, &mut Complete<'_>) -> Outcome + Send>),
    Other(Box<dyn FnOnce(&mut S, &mut Other<'_>) -> Outcome + Send>),
    Resume(Box<dyn FnOnce(&mut S) + Send>),
}

/// What is said of a request that no answer of its kind came for: its client must not wait for ever.
pub(crate) const WRONG_KIND: Failure<'static> =
    Failure::internal("The handler's answer is of another kind than the request");

pub(crate) enum News<S> {
    Progress { token: Token, done: u64, total: Option<u64>, message: Option<String> },
    Log { token: Option<Token>, level: Level, message: String },
    Answer { token: Token, answer: Answer<S> },
    Changed(Changed),
}

/// A [`Change`] that borrows nothing.
pub(crate) enum Changed {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

impl<S> Answers<S> {
    /// Tells how far a request is, if its client asked for that.
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more, here and below.
    pub async fn progress(&self, token: Token, progress: Progress<'_>) -> Result<(), Ended> {
        let Progress { done, total, message, .. } = progress;
        self.send(News::Progress { token, done, total, message: message.map(String::from) }).await
    }

    /// Sends a log message on behalf of a request, if its client wants messages of that level.
    pub async fn log(&self, token: Token, level: Level, message: impl Into<String>) -> Result<(), Ended> {
        self.send(News::Log { token: Some(token), level, message: message.into() }).await
    }

    /// Sends a log message on behalf of nobody in particular: for clients before 2026-07-28.
    pub async fn announce(&self, level: Level, message: impl Into<String>) -> Result<(), Ended> {
        self.send(News::Log { token: None, level, message: message.into() }).await
    }

    /// Answers a tool call that was put off. `answer` runs where the handlers run, with their state; not at all if the
    /// request was cancelled meanwhile. A request of another kind is answered with error -32603.
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more.
    pub async fn answer(
        &self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Answer::Call(Box::new(answer)) }).await
    }

    /// Answers a read of a resource, at the URI that [`Read::uri`] gave, that was put off. As [`answer`](Answers::answer).
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more.
    pub async fn answer_read(
        &self,
        token: Token,
        uri: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut Read<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Answer::Read(uri.into(), Box::new(answer)) }).await
    }

    /// Answers a prompt that was put off. As [`answer`](Answers::answer).
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more.
    pub async fn answer_prompt(
        &self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Get<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Answer::Prompt(Box::new(answer)) }).await
    }

    /// Answers a completion of what [`Complete::value`] gave and that was put off. As [`answer`](Answers::answer).
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more.
    pub async fn answer_complete(
        &self,
        token: Token,
        value: impl Into<String>,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Answer::Complete(value.into(), Box::new(answer)) }).await
    }

    /// Answers a request that the protocol does not know and that was put off. As [`answer`](Answers::answer).
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more.
    pub async fn answer_other(
        &self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Other<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Answer::Other(Box::new(answer)) }).await
    }

    /// Resumes a request that its handler has [suspended](mcp_sansio::service::Handling::suspend): `prepare` puts what was
    /// found out into the state, then the handler runs again; neither of them if the request was cancelled meanwhile. A
    /// request that is not suspended is answered with error -32603.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::server::Token;
    /// use mcp_sansio::service::{Call, Outcome, Question};
    /// use mcp_sansio_smol::Answers;
    ///
    /// struct Shop {
    ///     answers: Answers<Shop>,
    ///     prices: Vec<(Token, u32)>,
    /// }
    /// const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
    ///
    /// fn order(shop: &mut Shop, call: &mut Call<'_>) -> Outcome {
    ///     if let Some(answer) = call.answer("sure") {
    ///         return call.text(if answer.accepted() { "ordered" } else { "not ordered" });
    ///     }
    ///     if let Some(at) = shop.prices.iter().position(|(token, _)| *token == call.token()) {
    ///         let (_, price) = shop.prices.remove(at);
    ///         return call.ask(&[Question::elicit("sure", &format!("Pay {price}?"), SURE)], b"");
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
    /// # let _: fn(&mut Shop, &mut Call<'_>) -> Outcome = order;
    /// ```
    ///
    /// # Errors
    /// [`Ended`] if there is no server any more.
    pub async fn resume(&self, token: Token, prepare: impl FnOnce(&mut S) + Send + 'static) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Answer::Resume(Box::new(prepare)) }).await
    }

    /// Tells that something has changed. Clients hear of it that subscribed to it.
    pub async fn publish(&self, change: Change<'_>) -> Result<(), Ended> {
        let changed = match change {
            Change::Tools => Changed::Tools,
            Change::Prompts => Changed::Prompts,
            Change::Resource(uri) => Changed::Resource(uri.into()),
            _ => Changed::Resources,
        };
        self.send(News::Changed(changed)).await
    }

    async fn send(&self, news: News<S>) -> Result<(), Ended> {
        self.sender.send(news).await.map_err(|_| Ended)
    }
}

impl<S> Late<S> {
    /// What was sent next; `Pending` too when nobody is left to send, since others may still answer.
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

impl Changed {
    pub(crate) fn as_change(&self) -> Change<'_> {
        match self {
            Changed::Tools => Change::Tools,
            Changed::Prompts => Change::Prompts,
            Changed::Resources => Change::Resources,
            Changed::Resource(uri) => Change::Resource(uri),
        }
    }
}

impl<S> Clone for Answers<S> {
    fn clone(&self) -> Self {
        Answers { sender: self.sender.clone() }
    }
}

impl<S> fmt::Debug for Answers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

impl<S> fmt::Debug for Late<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Late")
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server has ended")
    }
}

impl core::error::Error for Ended {}
