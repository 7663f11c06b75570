//! What tasks, timers and threads send to the server that waits for them.

use core::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_channel::{Receiver, Sender};
use futures_lite::Stream;
use mcp_sansio::protocol::Level;
use mcp_sansio::server::{Change, Progress, Token};
use mcp_sansio::service::{Call, Outcome};

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

/// How a tool call is answered that was put off.
pub(crate) type Answer<S> = Box<dyn FnOnce(&mut S, &mut Call<'_>) -> Outcome + Send>;

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

    /// Answers a tool call that was put off. `answer` runs where the handlers run, with their state.
    pub async fn answer(
        &self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), Ended> {
        self.send(News::Answer { token, answer: Box::new(answer) }).await
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
