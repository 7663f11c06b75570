//! Lists of a service that has more than tables: as in [`list`](super::list), but the entries come one after the other, those
//! of the table first. The others may change at any time, also between two windows. So nothing of the reply depends on how
//! many there are: an entry that is gone is left out, the separators depend on what was written, and an entry made at run
//! time goes into a window whole or not at all.
//!
//! It is apart from the lists of constant tables because these are smaller: 76 bytes of flash (uart-tools).

use core::cell::Cell;

use super::caller::is_shown;
use super::dynamic::{DynamicList, DynamicLists};
use super::list::write_cursor;
use super::{Caller, ListEntry, Service};
use crate::json::object::Object;
use crate::protocol::Method;
use crate::revision::Revision;
use crate::server::{ListPage, RequestSlot};
use crate::sink::Writer;
#[cfg(feature = "windows")]
use crate::{
    server::{Skip, StreamBody, StreamedReply},
    sink::{FullError, Out, part},
};

impl<S> DynamicLists<S> {
    pub(crate) const LINKED: &'static Self = &DynamicLists {
        write: |service, state, caller, slot, page, out| service.write_dynamic(state, caller, slot, page, out),
        #[cfg(feature = "windows")]
        pump: |service, state, caller, large, slot, page, out| {
            service.pump_dynamic(state, caller, large, slot, page, out)
        },
    };
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
    pub(crate) fn changes(&self, method: Method) -> bool {
        match method {
            Method::ToolsList => self.dynamic.tools.is_some(),
            Method::ResourcesList => self.dynamic.resources.is_some(),
            Method::TemplatesList => self.dynamic.templates.is_some(),
            _ => self.dynamic.prompts.is_some(),
        }
    }

    /// Writes the whole reply, or as much as fits. Afterwards `page` says how far it came.
    fn write_dynamic(
        &self,
        state: &S,
        caller: &Caller<'_>,
        slot: &RequestSlot,
        page: &mut ListPage,
        out: &mut Writer<'_>,
    ) {
        let (start, asked) = (page.next, Cell::new(false));
        self.write_head(slot, out);
        self.entries(state, &caller.noting(&asked), slot, page.next as usize, &mut |entry| {
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
        // A page may not show that its list depends on the caller: all pages have the same `cacheScope`.
        let is_part = start > 0 || page.more;
        let depends = asked.get() || self.hides(slot.method) || is_part && self.changes(slot.method);
        page.write_end(out);
        self.end_list(slot, Object::resume(out, false), depends, self.layers_meta())
    }

    /// Returns whether a table hides some of its entries from some callers.
    fn hides(&self, method: Method) -> bool {
        match method {
            Method::ToolsList => self.tools.iter().any(|it| it.visible.is_some()),
            Method::ResourcesList => self.resources.iter().any(|it| it.visible.is_some()),
            Method::TemplatesList => self.templates.iter().any(|it| it.visible.is_some()),
            _ => self.prompts.iter().any(|it| it.visible.is_some()),
        }
    }

    /// Sends as much of the reply as there is room for. Returns whether it is complete.
    #[cfg(feature = "windows")]
    fn pump_dynamic(
        &self,
        state: &S,
        caller: &Caller<'_>,
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
        // The first windows are gone: whether they depended on the caller is not known.
        large.send(out, &mut |out| self.end_list(slot, Object::resume(out, false), true, None))
    }

    /// Sends as many entries as there is room for. Returns whether these were all.
    #[cfg(feature = "windows")]
    fn pump_entries(
        &self,
        state: &S,
        caller: &Caller<'_>,
        large: &mut StreamedReply,
        slot: &RequestSlot,
        page: &mut ListPage,
        out: &mut dyn Out,
    ) -> bool {
        let mut done = true;
        self.entries(state, caller, slot, page.next as usize, &mut |entry| {
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
