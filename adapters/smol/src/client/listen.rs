//! Listening to changes: a stream of what has changed, folded while nobody looks.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_lite::Stream;
use mcp_sansio::client::{Changed, Filter, Listening, Lost, Token};

use super::{Client, Error};

/// What a listen tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It is open, with as much of it as the server agreed to; again after each reconnection.
    Listening(Listening),
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// The contents of the resource with this URI have changed.
    Resource(String),
}

impl Change {
    const fn size(&self) -> usize {
        match self {
            Change::Resource(uri) => uri.len(),
            _ => 0,
        }
    }
}

/// How many changes are remembered, and of how many bytes.
const CHANGES: usize = 4096;
const BYTES: usize = 1 << 20;

/// What one listen has heard and not told yet. Changes are folded: two of the same are one.
pub(super) struct Heard {
    uris: Vec<String>,
    /// What the server agreed to.
    agreed: Option<Listening>,
    changes: VecDeque<Change>,
    /// Of the URIs in them.
    bytes: usize,
    ended: bool,
    error: Option<Error>,
    waker: Option<Waker>,
}

impl Heard {
    pub(super) fn new(filter: &Filter<'_>) -> Self {
        Heard {
            uris: filter.single().iter().map(|&uri| uri.to_owned()).collect(),
            agreed: None,
            changes: VecDeque::new(),
            bytes: 0,
            ended: false,
            error: None,
            waker: None,
        }
    }

    /// Whether a change that came unasked is one of those that it listens to.
    pub(super) fn wants(&self, what: &Changed<'_>) -> bool {
        let Some(agreed) = self.agreed else { return false };
        match what {
            Changed::Tools => agreed.tools,
            Changed::Prompts => agreed.prompts,
            Changed::Resources => agreed.resources,
            // A server may also name a part of the resource.
            Changed::Resource(uri) => {
                let uri = uri.to_string();
                self.uris.iter().any(|wanted| uri.starts_with(wanted.as_str()))
            }
            _ => false,
        }
    }

    pub(super) fn open(&mut self, listening: Listening) {
        self.agreed = Some(listening);
        self.changes.retain(|change| !matches!(change, Change::Listening(_)));
        self.changes.push_back(Change::Listening(listening));
    }

    pub(super) fn changed(&mut self, what: &Changed<'_>) {
        let Some(change) = Change::of(what) else { return };
        let fits = self.changes.len() < CHANGES && self.bytes + change.size() <= BYTES;
        if fits && !self.changes.contains(&change) {
            self.bytes += change.size();
            self.changes.push_back(change);
        }
    }

    pub(super) fn end(&mut self, error: Option<Error>) {
        if !self.ended {
            self.ended = true;
            self.error = error;
        }
    }

    pub(super) fn explain(&mut self, with: impl FnOnce(Lost) -> String) {
        if let Some(error) = &mut self.error {
            error.explain(with);
        }
    }

    pub(super) fn wake(&mut self, wakes: &mut Vec<Waker>) {
        if self.ended || !self.changes.is_empty() {
            wakes.extend(self.waker.take());
        }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Change, Error>>> {
        if let Some(change) = self.changes.pop_front() {
            self.bytes -= change.size();
            return Poll::Ready(Some(Ok(change)));
        }
        if self.ended {
            return Poll::Ready(self.error.take().map(Err));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A listen: a stream of what has changed, see [`Client::listen`]. Several changes of the same thing are told as one while
/// nobody looks. It outlives the connection, and ends with an error when it cannot be opened again. Dropping it ends it.
#[must_use = "dropping it ends it"]
#[derive(Debug)]
pub struct Changes {
    client: Client,
    token: Token,
}

impl Changes {
    pub(super) const fn new(client: Client, token: Token) -> Self {
        Changes { client, token }
    }

    /// Its token, which the [`Handler`](super::Handler) may meet.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.token
    }
}

impl Stream for Changes {
    type Item = Result<Change, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.client.with(|state| match state.book.listens.get_mut(&self.token) {
            Some(heard) => heard.poll(cx),
            None => Poll::Ready(None),
        })
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let heard = self.client.with(|state| {
            let heard = state.book.listens.remove(&self.token);
            if heard.as_ref().is_some_and(|heard| !heard.ended) {
                state.cancel(self.token);
            }
            heard
        });
        drop(heard);
    }
}
