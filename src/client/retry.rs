//! Sends a request again: with `inputResponses` ([multi round-trip
//! requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)), or after
//! `tools/list`. The data for it is kept as records.

use super::client_info::MetaParts;
use super::request::Request;
use super::{Client, TransportError};
use crate::json::{Raw, object::Object};
use crate::memory::records::{NoRoomError, Records};
use crate::protocol::Method;
use crate::revision::Revision;
use crate::sink::{FullError, LineSink, Out, Storage, Writer, part};

/// The kinds of records. The owner is the token of the request, or the number of the request of the server.
pub(crate) const PARAMS: u8 = 1;
pub(crate) const META: u8 = 2;
/// The `requestState`.
pub(crate) const STATE: u8 = 3;
/// The key of an input request; the tag is its index.
pub(crate) const KEY: u8 = 4;
/// The answer to an input request; the tag is its index.
pub(crate) const ANSWER: u8 = 5;
/// The id of a request of the server up to 2025-11-25; the tag is its kind.
pub(crate) const QUESTION: u8 = 6;
/// A resource of a subscription; the tag is its state.
pub(crate) const URI: u8 = 7;
/// The cursor of the next page of the tools that are listed for a call.
pub(crate) const CURSOR: u8 = 8;
/// The `elicitationId` of a URL elicitation.
pub(crate) const VISIT: u8 = 9;
/// A topic of a subscription: the length of the member of the filter, the member, the key.
#[cfg(feature = "extensions")]
pub(crate) const TOPIC: u8 = 10;
/// The `taskId` of the task to which a request of the server belongs.
pub(crate) const RELATED_TASK: u8 = 11;

/// Appends a record with the data that `write` writes. On [`NoRoomError`] nothing has changed.
pub(crate) fn push_written(
    records: &mut Records<'_>,
    (owner, kind, tag): (u32, u8, u8),
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), FullError>,
) -> Result<(), NoRoomError> {
    let at = records.begin(owner, kind, tag)?;
    part(&mut LineSink::new(LastRecord { records, at }), write).map_err(|_| {
        records.drop_last(at);
        NoRoomError
    })
}

/// The data of the last record, which begins at `at`.
struct LastRecord<'h, 'm> {
    records: &'h mut Records<'m>,
    at: usize,
}

impl Storage for LastRecord<'_, '_> {
    fn bytes(&self) -> &[u8] {
        self.records.last(self.at)
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        self.records.extend(self.at, bytes).is_ok()
    }

    fn truncate(&mut self, len: usize) {
        self.records.shorten(self.at, len);
    }

    fn drop_front(&mut self, _: usize) {}

    fn limit(&self) -> usize {
        self.records.limit()
    }
}

impl Client<'_> {
    /// Keeps the params of a request if the server may ask for input. If the store is too small, the client sends
    /// the request all the same; it then ends if the server asks.
    pub(crate) fn keep_params(&mut self, token: u32, request: &Request<'_>, revision: Revision) {
        let retries = revision.is_modern() || self.takes_visits();
        if !request.method.may_ask() || !retries || self.held.limit() == 0 {
            return;
        }
        let used = self.held.used();
        let params = push_written(&mut self.held, (token, PARAMS, 0), |out| {
            let mut object = Object::open(out);
            request.write_members(&mut object, revision)?;
            object.close()
        });
        let kept = params.and_then(|()| match (request.trace, request.own_meta()) {
            (Some(trace), own) => trace.keep(token, own, &mut self.held),
            (None, Some(own)) => self.held.push(token, META, 0, &[own.as_bytes()]),
            (None, None) => Ok(()),
        });
        if kept.is_err() {
            return self.held.drop_last(used);
        }
        if let Some(pending) = self.pending_mut(token) {
            pending.retryable = true;
        }
    }

    /// Drops all records of an owner.
    pub(crate) fn drop_held(&mut self, owner: u32) {
        self.held.remove(|record| record.owner == owner);
    }

    /// Returns the record of one kind of a request.
    pub(crate) fn held_of(&self, token: u32, kind: u8, tag: u8) -> Option<Raw<'_>> {
        let mut records = self.held.iter();
        let found = records.find(|record| (record.owner, record.kind, record.tag) == (token, kind, tag))?;
        Some(Raw::trusted(found.data))
    }

    /// Sends a request again, with `inputResponses` and `requestState`.
    pub(crate) fn send_again(&mut self, token: u32, out: &mut dyn Out) -> Result<(), FullError> {
        let Some(pending) = self.pending(token) else { return Ok(()) };
        let id = self.next_id();
        let meta = MetaParts {
            progress: pending.options.progress.then_some(id),
            level: pending.options.level.or(self.level),
            // With the trace context.
            own: self.held_of(token, META, 0),
            trace: None,
        };
        self.write_request(out, id, pending.method.name(), meta, &mut |params| {
            if let Some(members) = self.held_of(token, PARAMS, 0) {
                params.spread(members)?;
            }
            // The input of 2025-11-25 is a visited URL, and the server knows about the visit.
            if self.is_modern() {
                self.write_responses(token, params)?;
                params.raw_if("requestState", self.held_of(token, STATE, 0))?;
            }
            Ok(())
        })?;
        self.sent(token, id);
        Ok(())
    }

    /// Writes `inputResponses` if the server asked for input.
    fn write_responses(&self, token: u32, params: &mut Object<'_, '_>) -> Result<(), FullError> {
        let mut keys = self.held.iter().filter(|record| record.owner == token && record.kind == KEY).peekable();
        if keys.peek().is_none() {
            return Ok(());
        }
        let mut responses = Object::open(params.key("inputResponses"));
        for record in keys {
            let (key, answer) = (Raw::trusted(record.data).text(), self.held_of(token, ANSWER, record.tag));
            if let (Some(key), Some(answer)) = (key, answer) {
                responses.member(key, answer)?;
            }
        }
        responses.close()
    }

    /// Sends `tools/list` for a call whose headers the server found wrong: they repeat parameters.
    pub(crate) fn send_tools_list(&mut self, token: u32, out: &mut dyn Out) -> Result<(), FullError> {
        let (id, cursor) = (self.next_id(), self.held_of(token, CURSOR, 0));
        self.write_request(out, id, Method::ToolsList.name(), MetaParts::default(), &mut |params| {
            params.raw_if("cursor", cursor)
        })?;
        self.sent(token, id);
        Ok(())
    }

    fn sent(&mut self, token: u32, id: u32) {
        let (now, longest) = (self.now, self.longest);
        self.last_id = id;
        if let Some(pending) = self.pending_mut(token) {
            pending.sent(id, now, longest);
        }
    }

    /// Takes a page of the tools for a call, or `None` for an error. The client then sends for the next page, or
    /// the call again.
    pub(crate) fn tools_listed(&mut self, token: u32, page: Option<Raw<'_>>) {
        self.held.remove(|record| record.owner == token && record.kind == CURSOR);
        let cursor = page.and_then(|page| page.get("nextCursor")).filter(|cursor| cursor.text().is_some());
        let more = cursor.is_some_and(|cursor| self.held.push(token, CURSOR, 0, &[cursor.as_bytes()]).is_ok());
        let rounds_max = self.rounds_max;
        if let Some(pending) = self.pending_mut(token) {
            pending.tools_page(more, rounds_max);
        }
    }

    /// Keeps the keys of the `inputRequests` and the `requestState`, in place of those of the last round.
    pub(crate) fn keep_input_requests(
        &mut self,
        token: u32,
        requests: Option<Raw<'_>>,
        state: Option<Raw<'_>>,
    ) -> Result<(), TransportError> {
        self.held.remove(|record| record.owner == token && matches!(record.kind, KEY | ANSWER | STATE));
        let state = state.map_or(Ok(()), |state| self.held.push(token, STATE, 0, &[state.as_bytes()]));
        let mut keys = requests.iter().flat_map(Raw::members).zip(0..);
        let kept = state.and_then(|()| {
            keys.try_for_each(|((key, _), index)| self.held.push(token, KEY, index, &[b"\"", key.raw(), b"\""]))
        });
        kept.map_err(|_| TransportError::NoRoom)
    }
}
