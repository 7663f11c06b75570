//! Lists: whole, in pages if the application wants pages, in windows if the sink is smaller. See
//! [pagination](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination).

use super::context::{Extra, begin_result, end_result};
use super::router::{Dispatched, fail};
use super::{MessageSource, Service};
use crate::content::TextValue;
use crate::json::{Raw, object::Object};
use crate::protocol::Method;
use crate::server::{
    Caching, IncomingRequest, ListPage, OVERLOADED, RequestSlot, RequestToken, RpcError, Server, StreamBody,
    StreamedReply, WINDOWS, words,
};
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

impl<S> Service<'_, S> {
    /// Answers a request for a list, of which a part may come from the program.
    #[inline(always)]
    pub(crate) fn run_list<const BY_CALLER: bool>(
        &self,
        state: &mut S,
        origin: &MessageSource<'_>,
        token: RequestToken,
        request: &IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        #[cfg(feature = "alloc")]
        if self.routes.catch.is_some() {
            let mark = out.mark();
            let listed = self.guard(|| self.list::<BY_CALLER>(state, origin, token, request, server, out));
            return listed.unwrap_or_else(|| {
                out.roll_back(mark);
                fail(server, token, &super::contain::PANICKED, out)
            });
        }
        self.list::<BY_CALLER>(state, origin, token, request, server, out)
    }

    /// Answers a request for a list.
    pub(crate) fn list<const BY_CALLER: bool>(
        &self,
        state: &mut S,
        origin: &MessageSource<'_>,
        token: RequestToken,
        request: &IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        // Without hooks there are constant entries only, the same for all.
        let lists = if BY_CALLER { self.dynamic.lists } else { None };
        let (caller, changes) = (origin.caller(), lists.is_some() && self.changes(request.method));
        // A later window does not know the user.
        let windows = WINDOWS && (lists.is_none() || caller.is_of_line());
        let Some(mut page) = self.page(request.method, request.envelope.members.cursor, windows, changes) else {
            return fail(server, token, &RpcError::invalid_params(words("Invalid params: no such cursor")), out);
        };
        let Some(slot) = server.slot(token) else { return Ok(Dispatched::Handled) };
        loop {
            let mut tried = page;
            let written = whole(out, MessageHead::Result, |out| match lists {
                Some(lists) => (lists.write)(self, state, caller, slot, &mut tried, out),
                None => self.write_list(slot, &mut tried, out),
            });
            match written {
                done @ (Ok(()) | Err(FullError::Now)) => {
                    server.forget(token);
                    return done.map(|()| Dispatched::Handled);
                }
                Err(FullError::Never) if windows => break,
                Err(FullError::Never) => match tried.next - page.next {
                    // Even one entry is too large: it is left out if the list goes on without it.
                    1 if changes => (page.next, page.end) = (tried.next, tried.next),
                    0 | 1 => return fail(server, token, &RpcError::too_large(), out),
                    // The rest is on the next page.
                    entries => page.end = tried.next - entries.div_ceil(4),
                },
            }
        }
        if server.is_crowded() {
            return fail(server, token, &OVERLOADED, out);
        }
        server.begin_large(token, StreamedReply::of(StreamBody::List(page)), out)?;
        Ok(self.pump(state, token, server, out))
    }

    /// Returns the page of a cursor; `None` if this server has not made it. A list that changes can have had any length
    /// before: a cursor behind its end is that of an empty page.
    fn page(&self, method: Method, cursor: Option<Raw<'_>>, windows: bool, changes: bool) -> Option<ListPage> {
        let len = self.list_len(method);
        // Like other servers: an empty cursor means the first page, and `null` is refused.
        let start = match cursor.filter(|cursor| cursor.as_bytes() != b"\"\"") {
            None => 0,
            Some(cursor) => {
                let is_made = |start: &usize| *start < len && (!windows || *start % self.page_size == 0);
                read_cursor(cursor).filter(|start| changes || is_made(start))?
            }
        };
        let end = start.saturating_add(self.page_size.get()).min(if changes { usize::MAX } else { len });
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        Some(ListPage { end, ..ListPage::from(u32::try_from(start).ok()?) })
    }

    /// Writes the whole reply. Afterwards `page` says how far it came.
    fn write_list(&self, slot: &RequestSlot, page: &mut ListPage, out: &mut Writer<'_>) {
        self.write_head(slot, out);
        (page.next..page.end).for_each(|index| self.write_separated(slot, *page, index, out));
        self.write_tail(slot, *page, out);
        page.next = page.end;
    }

    fn list_len(&self, method: Method) -> usize {
        match method {
            Method::ToolsList => self.tools.len(),
            Method::ResourcesList => self.resources.len(),
            Method::TemplatesList => self.templates.len(),
            _ => self.prompts.len(),
        }
    }

    pub(crate) fn write_head(&self, slot: &RequestSlot, out: &mut Writer<'_>) {
        let mut result = begin_result(out, slot.id.as_bytes(), slot.revision);
        // Where the compiler sees the service, it leaves out the names of the lists that there are not.
        let key = match slot.method {
            Method::ResourcesList if self.routes.resources.is_some() => "resources",
            Method::TemplatesList if self.routes.resources.is_some() => "resourceTemplates",
            Method::PromptsList if self.routes.prompts.is_some() => "prompts",
            _ => "tools",
        };
        result.key(key).put(b"[")
    }

    fn write_tail(&self, slot: &RequestSlot, page: ListPage, out: &mut Writer<'_>) {
        out.put(b"]");
        let mut result = Object::resume(out, false);
        if (page.end as usize) < self.list_len(slot.method) {
            write_cursor(page, &mut result);
        }
        self.end_list(slot, result, false, None)
    }

    /// Writes the members after the entries and the cursor. A list that depends on the caller is private.
    pub(crate) fn end_list(
        &self,
        slot: &RequestSlot,
        mut result: Object<'_, '_>,
        depends: bool,
        extra: Option<Extra<'_>>,
    ) {
        if slot.revision.is_modern() {
            let caching = self.about.caching;
            Caching { public: caching.public && !depends, ..caching }.write(&mut result);
        }
        end_result(result, &self.about, slot, extra)
    }

    /// Sends as much of the reply as there is room for. Returns whether it is complete.
    pub(crate) fn pump_list(
        &self,
        large: &mut StreamedReply,
        slot: &RequestSlot,
        page: ListPage,
        out: &mut dyn Out,
    ) -> bool {
        if large.piece == 0 && !large.send(out, &mut |out| self.write_head(slot, out)) {
            return false;
        }
        let entries = page.end - page.next;
        while large.piece <= entries {
            // A cancelled list ends after the current entry.
            if large.broken && large.offset == 0 {
                large.piece = entries + 1;
                break;
            }
            let index = page.next + large.piece - 1;
            if !large.send(out, &mut |out| self.write_separated(slot, page, index, out)) {
                return false;
            }
        }
        large.send(out, &mut |out| self.write_tail(slot, page, out))
    }

    fn write_separated(&self, slot: &RequestSlot, page: ListPage, index: u32, out: &mut Writer<'_>) {
        let (method, revision) = (slot.method, slot.revision);
        let separator: &[u8] = if index > page.next { b"," } else { b"" };
        let route = self.routes.of(method);
        if let Some(route) = route {
            (route.write)(self, method, index as usize, separator, revision, out);
        }
    }
}

/// Writes the cursor of the next page: the number of its first entry.
pub(crate) fn write_cursor(page: ListPage, result: &mut Object<'_, '_>) {
    TextValue::from(i64::from(page.end)).write(result.key("nextCursor"))
}

/// Reads a cursor; `None` if it is not a number as this server writes it.
pub(crate) fn read_cursor(cursor: Raw<'_>) -> Option<usize> {
    let digits = cursor.text()?.raw();
    let canonical =
        (1..=9).contains(&digits.len()) && !digits.starts_with(b"0") && digits.iter().all(u8::is_ascii_digit);
    canonical.then(|| digits.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0')))
}
