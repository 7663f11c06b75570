//! Lists: whole, in pages if the application wants pages, through windows if the sink is smaller.

use super::handling::end_result;
use super::{Service, ToolInfo};
use crate::json::{Raw, object::Object, write};
use crate::protocol::Method;
use crate::server::{Large, Slot, WINDOWS};
use crate::sink::{Full, Out, Writer};

/// Which entries a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl<S> Service<'_, S> {
    /// The page that a cursor names; `None` if it did not come from here.
    pub(crate) fn page(&self, method: Method, cursor: Option<Raw<'_>>) -> Option<Page> {
        let len = self.list_len(method);
        // An empty cursor is none, as other servers have it; `null` is refused, as by most of them.
        let start = match cursor.filter(|cursor| cursor.as_bytes() != b"\"\"") {
            None => 0,
            Some(cursor) => {
                read_cursor(cursor).filter(|start| *start < len && (!WINDOWS || start % self.page_size == 0))?
            }
        };
        let end = start.saturating_add(self.page_size).min(len);
        // Each entry but the first has a comma before it: the first must be one that is listed.
        let start = match method {
            Method::ToolsList => self.listed_from(start, end),
            _ => start,
        };
        Some(Page { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
    }

    fn list_len(&self, method: Method) -> usize {
        match method {
            Method::ToolsList => self.tools.len() + self.toolbox.map_or(0, |toolbox| toolbox.lent.len()),
            Method::ResourcesList => self.resources.len(),
            Method::TemplatesList => self.templates.len(),
            _ => self.prompts.len(),
        }
    }

    /// What is told of the tool at `index`, wherever it is from.
    #[inline]
    pub(crate) fn with_tool<R>(&self, index: usize, tell: impl FnOnce(&ToolInfo<'_>) -> R) -> Option<R> {
        match self.tools.get(index) {
            Some(tool) => Some(tell(&tool.info)),
            None => {
                let toolbox = self.toolbox?;
                let info = toolbox.lent.info(index - self.tools.len()).filter(toolbox.is_listed)?;
                Some(tell(&info))
            }
        }
    }

    /// The first tool from `start` on that is listed: of a toolbox, those with a wrong name or schema are not.
    fn listed_from(&self, start: usize, end: usize) -> usize {
        (start..end).find(|index| self.with_tool(*index, |_| ()).is_some()).unwrap_or(end)
    }

    fn write_head(&self, slot: &Slot, out: &mut Writer<'_>) -> Result<(), Full> {
        let mut result = super::handling::begin_result(out, slot.id.as_bytes(), slot.revision);
        let key = match slot.method {
            Method::ToolsList => "tools",
            Method::ResourcesList => "resources",
            Method::TemplatesList => "resourceTemplates",
            _ => "prompts",
        };
        result.key(key).put(b"[")
    }

    fn write_tail(&self, slot: &Slot, page: Page, out: &mut Writer<'_>) -> Result<(), Full> {
        out.put(b"]")?;
        let mut result = Object::resume(out, false);
        if (page.end as usize) < self.list_len(slot.method) {
            write_cursor(result.key("nextCursor"), page.end)?;
        }
        if slot.revision.is_modern() {
            self.about.caching.write(&mut result)?;
        }
        end_result(result, &self.about, slot.revision, None)
    }

    /// The whole list in one go.
    pub(crate) fn write_list(&self, slot: &Slot, page: Page, out: &mut Writer<'_>) -> Result<(), Full> {
        self.write_head(slot, out)?;
        for index in page.start..page.end {
            self.write_separated(slot, page, index, out)?;
        }
        self.write_tail(slot, page, out)
    }

    /// As much of the list as there is room for; whether it is through.
    pub(crate) fn pump_list(&self, large: &mut Large, slot: &Slot, page: Page, out: &mut dyn Out) -> bool {
        if large.piece == 0 && !large.send(out, &mut |out| self.write_head(slot, out)) {
            return false;
        }
        let entries = page.end - page.start;
        while large.piece <= entries {
            // A cancelled list is cut short behind the entry that is being sent.
            if large.broken && large.offset == 0 {
                large.piece = entries + 1;
                break;
            }
            let index = page.start + large.piece - 1;
            if !large.send(out, &mut |out| self.write_separated(slot, page, index, out)) {
                return false;
            }
        }
        large.send(out, &mut |out| self.write_tail(slot, page, out))
    }

    fn write_separated(&self, slot: &Slot, page: Page, index: u32, out: &mut Writer<'_>) -> Result<(), Full> {
        let (method, revision) = (slot.method, slot.revision);
        let separator: &[u8] = if index > page.start { b"," } else { b"" };
        let index = index as usize;
        if method == Method::ToolsList {
            let write = |info: &ToolInfo<'_>| out.put(separator).and_then(|()| info.write(out, revision));
            return self.with_tool(index, write).unwrap_or(Ok(()));
        }
        out.put(separator)?;
        self.kinds.of(method).map_or(Ok(()), |kind| (kind.write)(self, method, index, revision, out))
    }
}

/// Cursors say where a page begins; only ones that we could have given are taken back.
fn write_cursor(out: &mut Writer<'_>, start: u32) -> Result<(), Full> {
    out.put(b"\"")?;
    write::unsigned(out, start.into())?;
    out.put(b"\"")
}

fn read_cursor(cursor: Raw<'_>) -> Option<usize> {
    let digits = cursor.text()?.raw();
    let canonical =
        (1..=9).contains(&digits.len()) && !digits.starts_with(b"0") && digits.iter().all(u8::is_ascii_digit);
    canonical.then(|| digits.iter().fold(0, |value, digit| value * 10 + usize::from(digit - b'0')))
}
