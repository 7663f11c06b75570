//! Lists of a service that has more than tables: as in [`list`](super::list), but the entries come one after the other, those
//! of the table first. The others may change at any time, also between two windows. So nothing of the reply depends on how
//! many there are: an entry that is gone is left out, the separators depend on what was written, and an entry made at run
//! time goes into a window whole or not at all.
//!
//! It is apart from the lists of constant tables because these are smaller: 76 bytes of flash (uart-tools).

use core::cell::Cell;

use super::caller::is_shown;
use super::dynamic::{DynamicList, DynamicLists};
use super::list::{read_cursor, write_cursor};
use super::router::{Dispatched, fail};
use super::{Caller, ListEntry, Service};
use crate::json::{Raw, object::Object};
use crate::protocol::Method;
use crate::revision::Revision;
#[cfg(feature = "windows")]
use crate::server::Skip;
use crate::server::{
    IncomingRequest, ListPage, OVERLOADED, RequestSlot, RequestToken, RpcError, Server, StreamBody, StreamedReply,
    WINDOWS, words,
};
#[cfg(feature = "windows")]
use crate::sink::part;
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

impl<S> DynamicLists<S> {
    pub(crate) const LINKED: &'static Self = &DynamicLists {
        list: |service, state, origin, token, request, server, out| {
            let asked = Cell::new(false);
            service.list_dynamic(
                state,
                &ListCaller { caller: origin.caller().noting(&asked), asked: &asked },
                token,
                request,
                server,
                out,
            )
        },
        #[cfg(feature = "windows")]
        pump: |service, state, caller, large, slot, page, out| {
            // The first windows are gone: whether they depended on the caller is not known.
            let asked = Cell::new(true);
            service.pump_dynamic(state, &ListCaller { caller: *caller, asked: &asked }, large, slot, page, out)
        },
    };
}

/// The caller of a list, and whether the list depends on it.
struct ListCaller<'c> {
    caller: Caller<'c>,
    asked: &'c Cell<bool>,
}

/// Writes an entry of a list.
type WriteEntry<'e> = dyn Fn(&mut Writer<'_>) + 'e;

/// An entry of a list.
enum Entry<'e> {
    /// Of a table: the next time it is the same.
    Constant(&'e WriteEntry<'e>),
    /// Made at run time.
    Dynamic(&'e WriteEntry<'e>),
    /// Hidden from the caller, or wrong: not listed.
    Hidden,
}

/// Passes on the entries of a table, and after them those of a list, from a number on, until the function returns `false`.
fn each<E: ListEntry>(
    table: &[E],
    list: Option<&(dyn DynamicList<E> + Sync)>,
    (state, caller, revision): (&E::State, &Caller<'_>, Revision),
    from: usize,
    with: &mut dyn FnMut(Entry<'_>) -> bool,
) {
    let mut entries = table.get(from..).unwrap_or(&[]).iter();
    let mut goes_on = entries.all(|entry| match is_shown(entry.visibility(), state, caller) {
        true => with(Entry::Constant(&|out| E::write(entry.info(), out, revision))),
        false => with(Entry::Hidden),
    });
    let (true, Some(list)) = (goes_on, list) else { return };
    list.list(state, caller, from.saturating_sub(table.len()), &mut |info| {
        let write: &WriteEntry<'_> = &|out| E::write(info, out, revision);
        // Ignores entries after `stop`.
        goes_on = goes_on && with(if E::is_sound(info) { Entry::Dynamic(write) } else { Entry::Hidden });
        goes_on
    });
}

impl<S> Service<'_, S> {
    /// Passes on the entries of the list that a request wants, as [`each`] does.
    fn entries(
        &self,
        state: &S,
        caller: &Caller<'_>,
        slot: &RequestSlot,
        from: usize,
        with: &mut dyn FnMut(Entry<'_>) -> bool,
    ) {
        let (asked, dynamic) = ((state, caller, slot.revision), &self.dynamic);
        match slot.method {
            Method::ToolsList => each(self.tools, dynamic.tools, asked, from, with),
            Method::ResourcesList => each(self.resources, dynamic.resources, asked, from, with),
            Method::TemplatesList => each(self.templates, dynamic.templates, asked, from, with),
            _ => each(self.prompts, dynamic.prompts, asked, from, with),
        }
    }

    /// Returns whether a list can change while the service is served.
    fn changes(&self, method: Method) -> bool {
        match method {
            Method::ToolsList => self.dynamic.tools.is_some(),
            Method::ResourcesList => self.dynamic.resources.is_some(),
            Method::TemplatesList => self.dynamic.templates.is_some(),
            _ => self.dynamic.prompts.is_some(),
        }
    }

    /// Answers a request for a list.
    fn list_dynamic(
        &self,
        state: &mut S,
        caller: &ListCaller<'_>,
        token: RequestToken,
        request: &IncomingRequest<'_>,
        server: &mut Server<'_>,
        out: &mut dyn Out,
    ) -> Result<Dispatched, FullError> {
        let Some(slot) = server.slot(token) else { return Ok(Dispatched::Handled) };
        let Some(mut page) = self.page_of(state, caller, slot, request.envelope.members.cursor) else {
            return fail(server, token, &RpcError::invalid_params(words("Invalid params: no such cursor")), out);
        };
        // A later window does not know the user.
        let windows = WINDOWS && caller.caller.is_of_line();
        loop {
            let mut tried = page;
            match whole(out, MessageHead::Result, |out| self.write_dynamic(state, caller, slot, &mut tried, out)) {
                done @ (Ok(()) | Err(FullError::Now)) => {
                    server.forget(token);
                    return done.map(|()| Dispatched::Handled);
                }
                Err(FullError::Never) if windows => break,
                Err(FullError::Never) => match tried.next - page.next {
                    0 => return fail(server, token, &RpcError::too_large(), out),
                    // Even one entry is too large: it is left out if the list goes on without it.
                    1 if self.changes(slot.method) => (page.next, page.end) = (tried.next, tried.next),
                    1 => return fail(server, token, &RpcError::too_large(), out),
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
    fn page_of(
        &self,
        state: &S,
        caller: &ListCaller<'_>,
        slot: &RequestSlot,
        cursor: Option<Raw<'_>>,
    ) -> Option<ListPage> {
        // Like other servers: an empty cursor means the first page, and `null` is refused.
        let start = match cursor.filter(|cursor| cursor.as_bytes() != b"\"\"") {
            None => 0,
            Some(cursor) => {
                let start = read_cursor(cursor)?;
                let mut known = self.changes(slot.method);
                let windows = WINDOWS && caller.caller.is_of_line();
                if !known && (!windows || start % self.page_size == 0) {
                    self.entries(state, &caller.caller, slot, start, &mut |_| {
                        known = true;
                        false
                    });
                }
                known.then_some(start)?
            }
        };
        let end = u32::try_from(start.saturating_add(self.page_size.get())).unwrap_or(u32::MAX);
        Some(ListPage { end, ..ListPage::from(u32::try_from(start).ok()?) })
    }

    /// Writes the whole reply, or as much as fits. Afterwards `page` says how far it came.
    fn write_dynamic(
        &self,
        state: &S,
        caller: &ListCaller<'_>,
        slot: &RequestSlot,
        page: &mut ListPage,
        out: &mut Writer<'_>,
    ) {
        let start = page.next;
        self.write_head(slot, out);
        self.entries(state, &caller.caller, slot, page.next as usize, &mut |entry| {
            if !page.goes_on() {
                return false;
            }
            if let Entry::Constant(write) | Entry::Dynamic(write) = entry {
                page.entry(write, out);
                page.begun = true;
            }
            page.next += 1;
            // The rest of a long list is not looked at in vain.
            out.written().is_ok()
        });
        self.note_pages(caller, slot.method, start > 0 || page.more);
        page.write_end(out);
        self.end_list(slot, Object::resume(out, false), caller.asked.get(), self.layers_meta())
    }

    /// Notes that a list depends on the caller of which a page does not show that it does: all pages have the same `cacheScope`.
    fn note_pages(&self, caller: &ListCaller<'_>, method: Method, is_part: bool) {
        let hides = match method {
            Method::ToolsList => self.tools.iter().any(|it| it.visible.is_some()),
            Method::ResourcesList => self.resources.iter().any(|it| it.visible.is_some()),
            Method::TemplatesList => self.templates.iter().any(|it| it.visible.is_some()),
            _ => self.prompts.iter().any(|it| it.visible.is_some()),
        };
        if hides || is_part && self.changes(method) {
            caller.asked.set(true);
        }
    }

    /// Sends as much of the reply as there is room for. Returns whether it is complete.
    #[cfg(feature = "windows")]
    fn pump_dynamic(
        &self,
        state: &S,
        caller: &ListCaller<'_>,
        large: &mut StreamedReply,
        slot: &RequestSlot,
        mut page: ListPage,
        out: &mut dyn Out,
    ) -> bool {
        if large.piece == 0 && !large.send(out, &mut |out| self.write_head(slot, out)) {
            return false;
        }
        if large.piece == 1 {
            let sent = self.pump_entries(state, caller, large, slot, &mut page, out);
            large.what = StreamBody::List(page);
            if !sent {
                return false;
            }
            large.piece = 2;
        }
        if large.piece == 2 && !large.send(out, &mut |out| page.write_end(out)) {
            return false;
        }
        large.send(out, &mut |out| self.end_list(slot, Object::resume(out, false), caller.asked.get(), None))
    }

    /// Sends as many entries as there is room for. Returns whether these were all.
    #[cfg(feature = "windows")]
    fn pump_entries(
        &self,
        state: &S,
        caller: &ListCaller<'_>,
        large: &mut StreamedReply,
        slot: &RequestSlot,
        page: &mut ListPage,
        out: &mut dyn Out,
    ) -> bool {
        let mut done = true;
        self.entries(state, &caller.caller, slot, page.next as usize, &mut |entry| {
            // A cancelled list ends after the current entry.
            if large.broken && large.offset == 0 || !page.goes_on() {
                return false;
            }
            match entry {
                Entry::Constant(write) => {
                    done = large.send(out, &mut |out| page.entry(write, out));
                    large.piece = 1;
                    page.begun |= done;
                }
                Entry::Dynamic(write) => match send_whole(out, &|out| page.entry(write, out)) {
                    Ok(written) => page.begun |= written,
                    Err(_) => done = false,
                },
                Entry::Hidden => {}
            }
            page.next += u32::from(done);
            done
        });
        done
    }
}

impl ListPage {
    /// Returns whether there is one more entry on the page. Notes if it is on the next one.
    fn goes_on(&mut self) -> bool {
        self.more = self.next >= self.end;
        !self.more
    }

    /// Writes an entry, and a comma in front of it if it is not the first one.
    fn entry(&self, write: &WriteEntry<'_>, out: &mut Writer<'_>) {
        if self.begun {
            out.put(b",");
        }
        write(out);
    }

    /// Writes the end of the list, and the cursor of the next page.
    fn write_end(&self, out: &mut Writer<'_>) {
        out.put(b"]");
        if self.more {
            write_cursor(*self, &mut Object::resume(out, false));
        }
    }
}

/// Sends a piece that may be another one the next time, whole. Returns `false` if it never fits: then it is left out.
///
/// # Errors
/// There is no room for it now.
#[cfg(feature = "windows")]
fn send_whole(out: &mut dyn Out, write: &dyn Fn(&mut Writer<'_>)) -> Result<bool, FullError> {
    let mut measure = Skip::new(out, usize::MAX);
    let _ = part(&mut measure, write);
    let len = measure.skipped();
    if len <= out.room() {
        return part(out, write).map(|()| true);
    }
    if out.mark().at() == 0 || len > out.capacity() { Ok(false) } else { Err(FullError::Now) }
}
