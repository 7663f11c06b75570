//! Sends a request again: with `inputResponses` ([multi round-trip
//! requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)), or after
//! `tools/list`. The data for it is kept as records.

use super::held::{ANSWER, CURSOR, KEY, META, PARAMS, STATE, push_written};
use super::request::{Request, write_text_of};
use super::request_meta::MetaParts;
use super::{Client, TransportError};
use crate::json::{Raw, object::Object};
use crate::protocol::Method;
use crate::revision::Revision;
use crate::sink::{FullError, Out, RequestInfo, Writer};

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
            request.write_members(&mut object, revision);
            object.close()
        });
        let kept = params.and_then(|()| match (request.trace, request.own_meta) {
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
            own_client: pending.options.own_client,
            trace: None,
        };
        let text = |member: &str, out: &mut Writer<'_>| write_text_of(self.held_of(token, PARAMS, 0), member, out);
        let head = RequestInfo { text: &text, ..RequestInfo::new(id.into(), pending.method.name()) };
        self.write_request(out, head, meta, &mut |params| {
            if let Some(members) = self.held_of(token, PARAMS, 0) {
                params.spread(members);
            }
            // The input of 2025-11-25 is a visited URL, and the server knows about the visit.
            if self.is_modern() {
                self.write_responses(token, params);
                params.raw_if("requestState", self.held_of(token, STATE, 0));
            }
        })?;
        self.sent(token, id);
        Ok(())
    }

    /// Writes `inputResponses` if the server asked for input.
    fn write_responses(&self, token: u32, params: &mut Object<'_, '_>) {
        let mut keys = self.held.iter().filter(|record| record.owner == token && record.kind == KEY).peekable();
        if keys.peek().is_none() {
            return;
        }
        let mut responses = Object::open(params.key("inputResponses"));
        for record in keys {
            let (key, answer) = (Raw::trusted(record.data).text(), self.held_of(token, ANSWER, record.tag));
            if let (Some(key), Some(answer)) = (key, answer) {
                responses.member(key, answer);
            }
        }
        responses.close()
    }

    /// Sends `tools/list` for a call whose headers the server found wrong: they repeat parameters.
    pub(crate) fn send_tools_list(&mut self, token: u32, out: &mut dyn Out) -> Result<(), FullError> {
        let (id, cursor) = (self.next_id(), self.held_of(token, CURSOR, 0));
        let text = |member: &str, out: &mut Writer<'_>| {
            member == "cursor" && cursor.map(|cursor| out.put(cursor.as_bytes())).is_some()
        };
        let head = RequestInfo { text: &text, ..RequestInfo::new(id.into(), Method::ToolsList.name()) };
        self.write_request(out, head, MetaParts::default(), &mut |params| params.raw_if("cursor", cursor))?;
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
