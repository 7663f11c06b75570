//! Events as they are written.

use crate::sink::{Full, Sink};

/// Ends an event after its last line of data has been begun with [`Event::open`].
pub const END: &[u8] = b"\n\n";

/// One server-sent event, written whole by [`put`](Event::put), or around data that the caller writes.
///
/// ```
/// use mcp_sansio::frame::{Event, sse};
/// use mcp_sansio::sink::{Lines, Sink, Slice};
/// let mut bytes = [0; 128];
/// let mut out = Lines::new(Slice::new(&mut bytes)); // any sink
/// Event::new().id("s-1").retry(500).data("").put(&mut out)?;
/// Event::new().name("message").open(&mut out)?; // the data is written by somebody else, without newlines
/// out.put(b"{}")?;
/// out.put(sse::END)?;
/// sse::comment("still here", &mut out)?;
/// assert_eq!(out.pending(), b"id: s-1\nretry: 500\ndata: \n\nevent: message\ndata: {}\n\n: still here\n\n");
/// # Ok::<(), mcp_sansio::Full>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub struct Event<'e> {
    name: Option<&'e str>,
    id: Option<&'e str>,
    retry: Option<u32>,
    data: Option<&'e str>,
}

impl<'e> Event<'e> {
    /// An event without any field, which is written as nothing but its end.
    pub const fn new() -> Self {
        Event { name: None, id: None, retry: None, data: None }
    }

    /// With its type: what listeners are called for. Without one it is `message`.
    pub const fn name(self, name: &'e str) -> Self {
        Event { name: Some(name), ..self }
    }

    /// With an id: what a client names in `Last-Event-ID` when it comes back.
    pub const fn id(self, id: &'e str) -> Self {
        Event { id: Some(id), ..self }
    }

    /// With the milliseconds that a client waits before it comes back.
    pub const fn retry(self, millis: u32) -> Self {
        Event { retry: Some(millis), ..self }
    }

    /// With data; each line of it becomes a line of its own.
    pub const fn data(self, data: &'e str) -> Self {
        Event { data: Some(data), ..self }
    }

    /// How many bytes [`put`](Event::put) writes.
    #[must_use]
    pub fn len(&self) -> usize {
        count(|out| self.write(out))
    }

    /// Whether the event has no field at all. Its end is written all the same.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.name.is_none() && self.id.is_none() && self.retry.is_none() && self.data.is_none()
    }

    /// How many bytes [`open`](Event::open) writes.
    #[must_use]
    pub fn open_len(&self) -> usize {
        count(|out| self.write_open(out))
    }

    /// Writes the event, or nothing of it.
    pub fn put(&self, out: &mut dyn Sink) -> Result<(), Full> {
        if out.room() < self.len() { Err(Full::Now) } else { self.write(out) }
    }

    /// Writes what comes before the data, or nothing of it: the data follows, a single line however it is cut, and then
    /// [`END`]. Data of the event's own is left out.
    pub fn open(&self, out: &mut dyn Sink) -> Result<(), Full> {
        if out.room() < self.open_len() { Err(Full::Now) } else { self.write_open(out) }
    }

    fn write(&self, out: &mut dyn Sink) -> Result<(), Full> {
        self.write_fields(out)?;
        if let Some(data) = self.data {
            for line in Lines(Some(data)) {
                field(out, b"data: ", line)?;
            }
        }
        out.put(b"\n")
    }

    fn write_open(&self, out: &mut dyn Sink) -> Result<(), Full> {
        self.write_fields(out)?;
        out.put(b"data: ")
    }

    fn write_fields(&self, out: &mut dyn Sink) -> Result<(), Full> {
        if let Some(name) = self.name {
            field(out, b"event: ", first_line(name))?;
        }
        if let Some(id) = self.id {
            field(out, b"id: ", first_line(id))?;
        }
        if let Some(retry) = self.retry {
            let mut digits = [0; 10];
            field(out, b"retry: ", decimal(retry, &mut digits))?;
        }
        Ok(())
    }
}

/// Writes a comment, or nothing of it: clients ignore it, but it keeps a connection from looking idle.
pub fn comment(text: &str, out: &mut dyn Sink) -> Result<(), Full> {
    let text = first_line(text);
    if out.room() < text.len() + 4 {
        return Err(Full::Now);
    }
    field(out, b": ", text)?;
    out.put(b"\n")
}

fn field(out: &mut dyn Sink, name: &[u8], value: &str) -> Result<(), Full> {
    out.put(name)?;
    out.put(value.as_bytes())?;
    out.put(b"\n")
}

/// Up to the first character that would end the field.
fn first_line(text: &str) -> &str {
    text.split(['\r', '\n', '\0']).next().unwrap_or("")
}

/// The lines of a text, ended by CR LF, LF or CR as in an event stream. A text that ends with a newline has an empty
/// last line, so that nothing is lost.
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

fn decimal(mut value: u32, digits: &mut [u8; 10]) -> &str {
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    let digits = digits.get(digits.len() - used..).unwrap_or(&[]);
    core::str::from_utf8(digits).unwrap_or("")
}

/// Counts what `write` writes.
fn count(write: impl FnOnce(&mut dyn Sink) -> Result<(), Full>) -> usize {
    struct Count(usize);
    impl Sink for Count {
        fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
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
    extern crate std;
    use super::*;
    use crate::sink::{Lines as Out, Slice};
    use std::string::{String, ToString};

    fn written(event: Event<'_>) -> String {
        let mut bytes = [0; 256];
        let mut out = Out::new(Slice::new(&mut bytes));
        event.put(&mut out).unwrap();
        assert_eq!(out.pending().len(), event.len());
        String::from_utf8_lossy(out.pending()).to_string()
    }

    #[test]
    fn fields_in_order() {
        let all = Event::new().data("d").retry(u32::MAX).id("i").name("endpoint");
        assert_eq!(written(all), "event: endpoint\nid: i\nretry: 4294967295\ndata: d\n\n");
        assert_eq!(written(Event::new().retry(0)), "retry: 0\n\n");
        assert_eq!(written(Event::new().id("7").data("")), "id: 7\ndata: \n\n");
    }

    #[test]
    fn every_line_of_data_is_a_line_and_nothing_forges_a_field() {
        let event = written(Event::new().data("a\nid: 9\r\nb\rc\n\n"));
        assert_eq!(event, "data: a\ndata: id: 9\ndata: b\ndata: c\ndata: \ndata: \n\n");
        assert_eq!(written(Event::new().id("1\ndata: x").name("n\r")), "event: n\nid: 1\n\n");
    }

    #[test]
    fn all_or_nothing() {
        let event = Event::new().id("1").data("0123");
        for size in 0..event.len() + 2 {
            let mut bytes = [0; 64];
            let mut out = Out::new(Slice::new(&mut bytes[..size]));
            let fits = size > event.len(); // the newline of this sink
            assert_eq!(event.put(&mut out), if fits { Ok(()) } else { Err(Full::Now) });
            assert_eq!(out.pending().len(), if fits { event.len() } else { 0 });
        }
        let mut bytes = [0; 9];
        let mut out = Out::new(Slice::new(&mut bytes));
        assert_eq!(comment("12345", &mut out), Err(Full::Now));
        assert_eq!(comment("1234", &mut out), Ok(()));
        assert_eq!(out.pending(), b": 1234\n\n");
    }
}
