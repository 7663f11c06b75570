//! The heads of requests.

use core::fmt;

use mcp_sansio::Full;
use mcp_sansio::json::{Raw, write};
use mcp_sansio::rpc::Envelope;
use mcp_sansio::sink::Sink;

use super::params;
use super::site::Site;

/// Why a header cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BadHeader {
    /// The name is none.
    Name,
    /// The value has control characters, or white space around it.
    Value,
    /// The client writes this one itself.
    Reserved,
    /// There is no room for it.
    Room,
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadHeader::Name => "not the name of a header",
            BadHeader::Value => "not the value of a header",
            BadHeader::Reserved => "the client writes this header itself",
            BadHeader::Room => "there is no room for the header",
        })
    }
}

impl core::error::Error for BadHeader {}

/// Headers that the client writes itself, or that would change how messages are told apart.
pub(crate) const RESERVED: [&str; 17] = [
    "host",
    "accept",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "last-event-id",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "accept-encoding",
];

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb<'v> {
    /// A message of so many bytes.
    Post(usize),
    /// An event stream, perhaps from behind an event on.
    Get(&'v str),
    /// The end of the session.
    Delete,
}

/// Writes the head of a request; `envelope` is that of the message that is posted, if it is of 2026-07-28.
pub(crate) fn write(
    verb: Verb<'_>,
    target: &str,
    with_session: bool,
    modern: Option<&Envelope<'_>>,
    site: &Site<'_>,
    out: &mut dyn Sink,
) -> Result<(), Full> {
    let url = site.url();
    out.put(match verb {
        Verb::Post(_) => b"POST ",
        Verb::Get(_) => b"GET ",
        Verb::Delete => b"DELETE ",
    })?;
    if target.starts_with('?') {
        out.put(b"/")?;
    }
    put_all(out, &[target, " HTTP/1.1\r\nHost: ", url.authority(), "\r\n"])?;
    match verb {
        Verb::Post(len) => {
            let accept =
                "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ";
            out.put(accept.as_bytes())?;
            write::unsigned(out, len as u64)?;
            out.put(b"\r\n")?;
        }
        Verb::Get(last_id) => {
            out.put(b"Accept: text/event-stream\r\n")?;
            field_if(out, "Last-Event-ID", last_id)?;
        }
        Verb::Delete => {}
    }
    match modern {
        Some(envelope) => write_modern(envelope, site, out)?,
        None if with_session => {
            field_if(out, "MCP-Protocol-Version", site.version.map_or("", |version| version.date()))?;
            field_if(out, "Mcp-Session-Id", site.session().unwrap_or(""))?;
        }
        None => {}
    }
    for header in site.headers() {
        out.put(header)?;
        out.put(b"\r\n")?;
    }
    out.put(b"\r\n")
}

/// The headers of 2026-07-28 that repeat parts of the body.
fn write_modern(envelope: &Envelope<'_>, site: &Site<'_>, out: &mut dyn Sink) -> Result<(), Full> {
    visible(out, "MCP-Protocol-Version", envelope.meta.version)?;
    visible(out, "Mcp-Method", envelope.method)?;
    let Some(method) = envelope.method.and_then(|method| method.text()) else { return Ok(()) };
    let named = if method.is("resources/read") { envelope.members.uri } else { envelope.members.name };
    if !["tools/call", "prompts/get", "resources/read"].iter().any(|name| method.is(name)) {
        return Ok(());
    }
    let Some(name) = named.and_then(|name| name.text()) else { return Ok(()) };
    out.put(b"Mcp-Name: ")?;
    params::write_value(name, out)?;
    out.put(b"\r\n")?;
    match envelope.members.arguments.filter(|_| method.is("tools/call")) {
        Some(arguments) => site.tools.write_headers(name, arguments, out),
        None => Ok(()),
    }
}

/// A header for which there is no encoding.
fn visible(out: &mut dyn Sink, name: &str, value: Option<Raw<'_>>) -> Result<(), Full> {
    let Some(text) = value.and_then(|value| value.text()).filter(|text| params::is_visible(*text)) else {
        return Ok(());
    };
    put_all(out, &[name, ": "])?;
    text.chars().flatten().try_for_each(|c| out.put(c.encode_utf8(&mut [0; 4]).as_bytes()))?;
    out.put(b"\r\n")
}

fn field_if(out: &mut dyn Sink, name: &str, value: &str) -> Result<(), Full> {
    if value.is_empty() { Ok(()) } else { put_all(out, &[name, ": ", value, "\r\n"]) }
}

fn put_all(out: &mut dyn Sink, parts: &[&str]) -> Result<(), Full> {
    parts.iter().try_for_each(|part| out.put(part.as_bytes()))
}
