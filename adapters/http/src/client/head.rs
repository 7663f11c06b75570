//! Writes the heads of requests.

use mcp_sansio::FullError;
use mcp_sansio::json::write;
use mcp_sansio::revision::Revision;
use mcp_sansio::sink::Sink;

use super::origin::OriginState;
use super::outgoing::Repeated;
use super::params;
use super::task::{Purpose, Task};
use super::url::Url;

/// Returns the method of a request.
pub(crate) fn verb(task: &Task) -> &'static str {
    if task.posts() {
        "POST"
    } else if task.purpose == Purpose::EndSession {
        "DELETE"
    } else {
        "GET"
    }
}

/// Writes the head of the request of slot `at`. `message` is the body, if it posts; `last_id` is the id of the
/// event after which a stream continues; `lines` are headers for this request only, which replace those that were
/// set for all.
pub(crate) fn write(
    task: &Task,
    message: Repeated<'_>,
    last_id: &str,
    lines: &[u8],
    (origin, at): (&OriginState<'_>, usize),
    out: &mut dyn Sink,
) -> Result<(), FullError> {
    let ends = task.purpose == Purpose::EndSession;
    write_start(verb(task), &origin.url_of(at, task.posts() || ends), out)?;
    if task.posts() {
        out.put(b"Accept: application/json, text/event-stream\r\n")?;
        out.put(b"Content-Type: application/json\r\nContent-Length: ")?;
        write::unsigned(out, message.message.len() as u64)?;
        out.put(b"\r\n")?;
    } else if !ends {
        out.put(b"Accept: text/event-stream\r\n")?;
        field_if(out, "Last-Event-ID", last_id)?;
    }
    if let Some(revision) = task.revision {
        write_modern(revision, message, origin, out)?;
    } else if task.in_session() {
        field_if(out, "MCP-Protocol-Version", origin.version.map_or("", |version| version.date()))?;
        field_if(out, "Mcp-Session-Id", origin.session().unwrap_or(""))?;
    }
    // No coding is read. Without the header any would do (RFC 9110, section 12.5.3).
    if !replaces(lines, UNCODED) && !origin.headers().any(|header| replaces(header, UNCODED)) {
        out.put(UNCODED)?;
        out.put(b"\r\n")?;
    }
    for header in origin.headers().filter(|header| !replaces(lines, header)) {
        out.put(header)?;
        out.put(b"\r\n")?;
    }
    out.put(lines)?;
    out.put(b"\r\n")
}

/// Writes the request line, and `Host`.
pub(crate) fn write_start(verb: &str, url: &Url<'_>, out: &mut dyn Sink) -> Result<(), FullError> {
    let slash = if url.is_bare() { "/" } else { "" };
    put_all(out, &[verb, " ", slash, url.target(), " HTTP/1.1\r\nHost: ", url.authority(), "\r\n"])
}

pub(crate) const UNCODED: &[u8] = b"Accept-Encoding: identity";

/// Returns `true` if one of `lines` has the name of `header`.
pub(crate) fn replaces(lines: &[u8], header: &[u8]) -> bool {
    let name = |line: &[u8]| memchr::memchr(b':', line).unwrap_or(line.len());
    let header = header.get(..name(header)).unwrap_or(&[]);
    lines.split(|byte| *byte == b'\n').any(|line| line.get(..name(line)).unwrap_or(&[]).eq_ignore_ascii_case(header))
}

/// Returns the member of the params of a method that its header `Mcp-Name` repeats.
pub(crate) fn name_member<'c>(method: &str, names: &[(&str, &'c str)]) -> Option<&'c str> {
    match method {
        "resources/read" => Some("uri"),
        CALL | "prompts/get" => Some("name"),
        _ => names.iter().find(|(name, _)| *name == method).map(|(_, member)| *member),
    }
}

pub(crate) const CALL: &str = "tools/call";

/// Writes the headers of 2026-07-28 that repeat parts of the body.
fn write_modern(
    revision: Revision,
    message: Repeated<'_>,
    origin: &OriginState<'_>,
    out: &mut dyn Sink,
) -> Result<(), FullError> {
    put_all(out, &["MCP-Protocol-Version: ", revision.date(), "\r\n"])?;
    // It has no encoding for other methods.
    if !message.method.is_empty() && message.method.bytes().all(|byte| byte.is_ascii_graphic()) {
        put_all(out, &["Mcp-Method: ", message.method, "\r\n"])?;
    }
    let Some(name) = message.name else { return Ok(()) };
    out.put(b"Mcp-Name: ")?;
    params::write_value(name, out)?;
    out.put(b"\r\n")?;
    if message.method == CALL { origin.tools.write_headers(name, message.message, out) } else { Ok(()) }
}

fn field_if(out: &mut dyn Sink, name: &str, value: &str) -> Result<(), FullError> {
    if value.is_empty() { Ok(()) } else { put_all(out, &[name, ": ", value, "\r\n"]) }
}

fn put_all(out: &mut dyn Sink, parts: &[&str]) -> Result<(), FullError> {
    parts.iter().try_for_each(|part| out.put(part.as_bytes()))
}
