//! The outcomes that tasks wait for.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::task::Waker;

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler, PendingId};

use super::listen::Heard;
use super::{ClientError, OwnedResult, ServerHello};

/// The outcomes that tasks wait for: sent requests, subscriptions, and the opening of the connection.
#[derive(Default)]
pub(super) struct Book {
    pub(super) requests: HashMap<PendingId, Pending, BuildHasherDefault<TokenHasher>>,
    pub(super) listens: HashMap<PendingId, Heard>,
    /// The requests that have got their outcome in this turn.
    pub(super) fresh: Vec<PendingId>,
    pub(super) opening: bool,
    pub(super) opened: Option<Result<(), ClientError>>,
    pub(super) openers: Vec<Waker>,
    pub(super) hello: Option<Arc<ServerHello>>,
    /// The connection is new: the first request waits until the server can send requests too.
    pub(super) fresh_connection: bool,
    /// The tasks that are followed, the newest last.
    pub(super) followed: Vec<Followed>,
}

/// Hashes tokens, which the client counts by itself: no server can choose them, and five look-ups are made for each request.
#[derive(Default)]
pub(super) struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, number: u32) {
        // Fibonacci hashing.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A task that is followed.
pub(super) struct Followed {
    pub(super) id: String,
    pub(super) notice: mcp_sansio_host::TaskNotice,
    pub(super) waker: Option<Waker>,
}

#[derive(Default)]
pub(super) struct Pending {
    pub(super) outcome: Option<Result<OwnedResult, ClientError>>,
    pub(super) waker: Option<Waker>,
}

/// A handler that keeps the outcomes that tasks wait for, and passes on all other events.
pub(super) struct Tap<'t> {
    pub(super) book: &'t mut Book,
    pub(super) handler: &'t mut dyn ClientHandler,
    pub(super) happened: bool,
}

impl ClientHandler for Tap<'_> {
    fn event(&mut self, event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>) {
        self.happened = true;
        match &event {
            ClientEvent::Done { token, method, retried, outcome } => {
                let kept = || match outcome {
                    Ok(raw) => Ok(OwnedResult::new(*method, *raw).retried(*retried)),
                    Err(failure) => Err(ClientError::failed(failure)),
                };
                if let Some(pending) = self.book.requests.get_mut(token) {
                    pending.outcome = Some(kept());
                    return self.book.fresh.push(*token);
                }
                if let Some(heard) = self.book.listens.get_mut(token) {
                    return heard.end(kept().err());
                }
            }
            ClientEvent::Connected(connected) => {
                self.book.hello = Some(Arc::new(ServerHello::new(connected)));
                self.book.opened(Ok(()));
                self.book.fresh_connection = true;
            }
            ClientEvent::Unconnected(unconnected) if self.book.opening => {
                return self.book.opened(Err(ClientError::failed(unconnected)));
            }
            ClientEvent::Listening(listening) => {
                if let Some(heard) = self.book.listens.get_mut(&listening.token) {
                    return heard.open(*listening);
                }
            }
            ClientEvent::Changed { listen: Some(token), what } => {
                if let Some(heard) = self.book.listens.get_mut(token) {
                    return heard.changed(what);
                }
            }
            ClientEvent::Changed { listen: None, what } => {
                let wanted = self.book.listens.values_mut().filter(|heard| heard.wants(what));
                wanted.for_each(|heard| heard.changed(what));
            }
            ClientEvent::Notification { method, params } => {
                if let Some((id, params)) = mcp_sansio_host::TaskNotice::of(method, *params)
                    && let Some(followed) = self.book.followed.iter_mut().find(|followed| id.eq_str(&followed.id))
                {
                    followed.notice.keep(params);
                }
            }
            _ => {}
        }
        self.handler.event(event, link);
    }
}

impl Book {
    pub(super) fn opened(&mut self, opened: Result<(), ClientError>) {
        if self.opening {
            self.opening = false;
            self.opened = Some(opened);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{StreamTransport, Transport};
    use mcp_sansio::client::{ChangeNotification, ClientInfo, Request, RequestError, TransportError};
    use mcp_sansio::json::Raw;
    use mcp_sansio::protocol::Method;
    use mcp_sansio::revision::Revision;

    /// The table spreads tokens by all bits of their hashes.
    #[test]
    fn tokens_that_follow_each_other_have_other_hashes() {
        let hash = |numbers: &[u32]| {
            let mut hasher = TokenHasher::default();
            numbers.iter().for_each(|number| hasher.write_u32(*number));
            hasher.finish()
        };
        let hashes: std::collections::HashSet<_> = (1..1_000).map(|number| hash(&[number, 7]) >> 48).collect();
        assert!(hashes.len() > 900, "{}", hashes.len());
        let mut bytes = TokenHasher::default();
        bytes.write(&[3, 5]);
        assert_eq!(bytes.finish(), hash(&[3, 5]));
    }

    /// A handler that names the events which it gets.
    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl ClientHandler for Names {
        fn event(&mut self, event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {
            self.0.push(match event {
                ClientEvent::Done { .. } => "done",
                ClientEvent::Unconnected(_) => "unconnected",
                ClientEvent::Changed { .. } => "changed",
                ClientEvent::Notification { .. } => "notification",
                _ => "another",
            });
        }
    }

    /// The client reconnects by itself, requests are sent through its link, and a subscription is dropped before its last
    /// change.
    #[test]
    fn the_handler_gets_what_no_task_waits_for() {
        static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
        let mut stream = StreamTransport::new(futures_lite::io::empty(), futures_lite::io::sink(), &PROFILE);
        stream.state_mut().handle().client.connect_as(Revision::V2026_07_28);
        let token = stream.state_mut().handle().send(&Request::call("any")).unwrap();
        let text = Raw::constant("\"notifications/x\"");
        let why = || RequestError::Lost(TransportError::Unreachable);
        let events = || {
            [
                ClientEvent::Done { token, method: Method::ToolsCall, retried: false, outcome: Err(why()) },
                ClientEvent::Unconnected(why()),
                ClientEvent::Changed { listen: Some(token), what: ChangeNotification::Tools },
                ClientEvent::Changed { listen: None, what: ChangeNotification::Tools },
                ClientEvent::Notification { method: text.text().unwrap(), params: None },
            ]
        };
        let mut given = |book: &mut Book| {
            let mut names = Names::default();
            let mut tap = Tap { book, handler: &mut names, happened: false };
            events().into_iter().for_each(|event| tap.event(event, &mut stream.state_mut().handle()));
            assert!(tap.happened);
            names.0
        };
        let mut book = Book::default();
        assert_eq!(given(&mut book), ["done", "unconnected", "changed", "changed", "notification"]);
        assert!(book.fresh.is_empty() && book.opened.is_none());
        book.opening = true;
        book.requests.insert(token, Pending::default());
        assert_eq!(given(&mut book), ["changed", "changed", "notification"]);
        assert!(book.fresh == [token] && matches!(book.opened, Some(Err(_))) && !book.opening);
    }
}
