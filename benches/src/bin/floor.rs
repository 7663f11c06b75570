//! The floor: the same answers without an MCP library. serde_json reads each line once and the arguments once
//! more, borrowed. Echoed text is passed on with its escapes. There is one read and one write per batch. It
//! checks nothing of the protocol: no version, no session, no request in flight. It can answer only the
//! measured messages.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

const INITIALIZE: &[u8] =
    br#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"0"}}"#;
const TOOLS: &[u8] = br#"{"tools":[{"name":"add","description":"Adds two integers","inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}},{"name":"echo","description":"Gives a text back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;
const SIGNATURE: &[u8] = br#","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"floor","version":"0"}}"#;

pub(crate) fn answer(line: &[u8], out: &mut Vec<u8>) {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else {
        return out
            .extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n");
    };
    let Some(id) = message.id else { return };
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.get().as_bytes());
    let start = out.len();
    out.extend_from_slice(b",\"result\":");
    let done = match message.method {
        Some("ping") => put(out, b"{}"),
        Some("initialize") => put(out, INITIALIZE),
        Some("tools/list") => put(out, TOOLS),
        Some("tools/call") => call(message.params, out),
        _ => None,
    };
    if done.is_none() {
        out.truncate(start);
        out.extend_from_slice(b",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
    }
    out.extend_from_slice(b"}\n");
}

fn put(out: &mut Vec<u8>, result: &[u8]) -> Option<()> {
    out.extend_from_slice(result);
    Some(())
}

fn call(params: Option<Params<'_>>, out: &mut Vec<u8>) -> Option<()> {
    let Params { name: Some(name), arguments: Some(arguments), meta } = params? else { return None };
    let modern = meta.is_some_and(|meta| meta.get().contains("io.modelcontextprotocol/protocolVersion"));
    out.extend_from_slice(if modern { b"{\"resultType\":\"complete\"," } else { b"{" });
    out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
    match name {
        "echo" => {
            let echo: Echo<'_> = serde_json::from_str(arguments.get()).ok()?;
            out.extend_from_slice(echo.text.get().as_bytes());
        }
        "add" => {
            let add: Add = serde_json::from_str(arguments.get()).ok()?;
            write!(out, "\"{}\"", i128::from(add.a) + i128::from(add.b)).ok()?;
        }
        _ => return None,
    }
    out.extend_from_slice(b"}],\"isError\":false");
    if modern {
        out.extend_from_slice(SIGNATURE);
    }
    out.push(b'}');
    Some(())
}

fn main() -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let (mut buffer, mut out) = (vec![0; 64 << 10], Vec::with_capacity(64 << 10));
    let (mut start, mut end, mut seen) = (0, 0, 0);
    loop {
        if end == buffer.len() {
            if start > 0 {
                buffer.copy_within(start..end, 0);
                (start, end, seen) = (0, end - start, seen - start);
            } else {
                buffer.resize(buffer.len() * 2, 0);
            }
        }
        match input.read(&mut buffer[end..])? {
            0 => return Ok(()),
            n => end += n,
        }
        while let Some(at) = memchr::memchr(b'\n', &buffer[seen..end]) {
            answer(&buffer[start..seen + at], &mut out);
            start = seen + at + 1;
            seen = start;
        }
        seen = end;
        if start == end {
            (start, end, seen) = (0, 0, 0);
        }
        if !out.is_empty() {
            output.write_all(&out)?;
            out.clear();
        }
    }
}
