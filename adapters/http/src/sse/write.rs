//! Writes server-sent events.

use mcp_sansio::json::write;
use mcp_sansio::sink::{FullError, Sink};

/// The end of an event whose data the caller writes, see [`SseEvent::open`].
pub const END: &[u8] = b"\n\n";

/// A server-sent event to write: all of it with [`put`](SseEvent::put), or the fields before the data with
/// [`open`](SseEvent::open).
///
/// ```
/// use mcp_sansio_http::sse::{self, SseEvent};
/// use mcp_sansio::sink::{LineSink, Sink, SliceStorage};
/// let mut bytes = [0; 128];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes)); // any sink
/// SseEvent::new().id("s-1").retry(500).data("").put(&mut out)?;
/// SseEvent::new().name("message").open(&mut out)?; // the caller writes the data, without newlines
/// out.put(b"{}")?;
/// out.put(sse::END)?;
/// sse::comment("still here", &mut out)?;
/// assert_eq!(out.pending(), b"id: s-1\nretry: 500\ndata: \n\nevent: message\ndata: {}\n\n: still here\n\n");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct SseEvent<'e> {
    name: Option<&'e str>,
    id: Option<&'e str>,
    retry: Option<u32>,
    data: Option<&'e str>,
}

impl<'e> SseEvent<'e> {
    /// Makes an event without any field. It is written as a blank line.
    pub const fn new() -> Self {
        SseEvent { name: None, id: None, retry: None, data: None }
    }

    /// Sets `event`: the type of the event. Default: absent, which means `message`.
    pub const fn name(self, name: &'e str) -> Self {
        SseEvent { name: Some(name), ..self }
    }

    /// Sets `id`. A client sends it as `Last-Event-ID` when it connects again.
    pub const fn id(self, id: &'e str) -> Self {
        SseEvent { id: Some(id), ..self }
    }

    /// Sets `retry`: the time that a client waits before it connects again, in milliseconds.
    pub const fn retry(self, millis: u32) -> Self {
        SseEvent { retry: Some(millis), ..self }
    }

    /// Sets `data`. Each line of the text becomes a `data` line.
    pub const fn data(self, data: &'e str) -> Self {
        SseEvent { data: Some(data), ..self }
    }

    /// Returns how many bytes [`put`](SseEvent::put) writes.
    #[must_use]
    pub fn len(&self) -> usize {
        count(|out| self.write(out))
    }

    /// Returns whether the event has no field. It is then written as a blank line.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.name.is_none() && self.id.is_none() && self.retry.is_none() && self.data.is_none()
    }

    /// Returns how many bytes [`open`](SseEvent::open) writes.
    #[must_use]
    pub fn open_len(&self) -> usize {
        count(|out| self.write_open(out))
    }

    /// Writes the event, or nothing.
    ///
    /// # Errors
    /// [`FullError::Now`] if the event does not fit.
    pub fn put(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        if out.room() < self.len() { Err(FullError::Now) } else { self.write(out) }
    }

    /// Writes everything before the data, or nothing. The caller then writes the data as a single line, in any
    /// number of pieces, and [`END`]. Data set with [`data`](SseEvent::data) is left out.
    ///
    /// # Errors
    /// [`FullError::Now`] if it does not fit.
    pub fn open(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        if out.room() < self.open_len() { Err(FullError::Now) } else { self.write_open(out) }
    }

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        self.write_fields(out)?;
        if let Some(data) = self.data {
            for line in Lines(Some(data)) {
                field(out, b"data: ", line)?;
            }
        }
        out.put(b"\n")
    }

    fn write_open(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        self.write_fields(out)?;
        out.put(b"data: ")
    }

    fn write_fields(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        if let Some(name) = self.name {
            field(out, b"event: ", first_line(name))?;
        }
        if let Some(id) = self.id {
            field(out, b"id: ", first_line(id))?;
        }
        if let Some(retry) = self.retry {
            out.put(b"retry: ")?;
            write::unsigned(out, retry.into())?;
            out.put(b"\n")?;
        }
        Ok(())
    }
}

/// Writes a comment, or nothing. Clients ignore comments, but with them a connection does not look idle.
///
/// # Errors
/// [`FullError::Now`] if it does not fit.
pub fn comment(text: &str, out: &mut dyn Sink) -> Result<(), FullError> {
    let text = first_line(text);
    if out.room() < text.len() + 4 {
        return Err(FullError::Now);
    }
    field(out, b": ", text)?;
    out.put(b"\n")
}

fn field(out: &mut dyn Sink, name: &[u8], value: &str) -> Result<(), FullError> {
    out.put(name)?;
    out.put(value.as_bytes())?;
    out.put(b"\n")
}

/// Returns the text up to the first character that would end the field.
fn first_line(text: &str) -> &str {
    text.split(['\r', '\n', '\0']).next().unwrap_or("")
}

/// The lines of a text, ended by CR LF, LF or CR as in an event stream. After a newline at the end of the text
/// comes an empty last line, so that nothing is lost.
struct Lines<'t>(Option<&'t str>);

impl<'t> Iterator for Lines<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let text = self.0?;
        let Some((line, rest)) = text.split_once(['\r', '\n']) else {
            self.0 = None;
            return Some(text);
        };
        let carriage_return = text.as_bytes().get(line.len()) == Some(&b'\r');
        self.0 = Some(if carriage_return { rest.strip_prefix('\n').unwrap_or(rest) } else { rest });
        Some(line)
    }
}

/// Counts the bytes that `write` writes.
fn count(write: impl FnOnce(&mut dyn Sink) -> Result<(), FullError>) -> usize {
    struct Count(usize);
    impl Sink for Count {
        fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
            self.0 += bytes.len();
            Ok(())
        }
        fn room(&self) -> usize {
            usize::MAX
        }
    }
    let mut sink = Count(0);
    let _ = write(&mut sink);
    sink.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::sink::{LineSink as Out, SliceStorage};
    use std::string::{String, ToString};

    fn written(event: SseEvent<'_>) -> String {
        let mut bytes = [0; 256];
        let mut out = Out::new(SliceStorage::new(&mut bytes));
        event.put(&mut out).unwrap();
        assert_eq!(out.pending().len(), event.len());
        String::from_utf8_lossy(out.pending()).to_string()
    }

    #[test]
    fn fields_in_order() {
        let all = SseEvent::new().data("d").retry(u32::MAX).id("i").name("endpoint");
        assert_eq!(written(all), "event: endpoint\nid: i\nretry: 4294967295\ndata: d\n\n");
        assert_eq!(written(SseEvent::new().retry(0)), "retry: 0\n\n");
        assert_eq!(written(SseEvent::new().id("7").data("")), "id: 7\ndata: \n\n");
    }

    #[test]
    fn every_line_of_data_is_a_line_and_nothing_forges_a_field() {
        let event = written(SseEvent::new().data("a\nid: 9\r\nb\rc\n\n"));
        assert_eq!(event, "data: a\ndata: id: 9\ndata: b\ndata: c\ndata: \ndata: \n\n");
        assert_eq!(written(SseEvent::new().id("1\ndata: x").name("n\r")), "event: n\nid: 1\n\n");
    }

    #[test]
    fn all_or_nothing() {
        let event = SseEvent::new().id("1").data("0123");
        for size in 0..event.len() + 2 {
            let mut bytes = [0; 64];
            let mut out = Out::new(SliceStorage::new(&mut bytes[..size]));
            let fits = size > event.len(); // the newline of this sink
            assert_eq!(event.put(&mut out), if fits { Ok(()) } else { Err(FullError::Now) });
            assert_eq!(out.pending().len(), if fits { event.len() } else { 0 });
        }
        for size in 0..event.open_len() + 3 {
            let mut bytes = [0; 64];
            let mut out = Out::new(SliceStorage::new(&mut bytes[..size]));
            let fits = size > event.open_len();
            assert_eq!(event.open(&mut out), if fits { Ok(()) } else { Err(FullError::Now) });
            assert_eq!(out.pending(), if fits { &b"id: 1\ndata: "[..] } else { b"" });
        }
        let mut bytes = [0; 9];
        let mut out = Out::new(SliceStorage::new(&mut bytes));
        assert_eq!(comment("12345", &mut out), Err(FullError::Now));
        assert_eq!(comment("1234", &mut out), Ok(()));
        assert_eq!(out.pending(), b": 1234\n\n");
    }
}
