//! Requests as a client of each revision writes them.

use mcp_sansio::client::Arguments;
use mcp_sansio::protocol::meta;
use mcp_sansio::revision::Revision;
use mcp_sansio::sink::to_vec;

/// The capabilities of a client that has all of the protocol itself.
pub(super) const CAPABILITIES: &str = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}"#;

const CLIENT: &str = r#"{"name":"test","version":"1"}"#;

/// Writes a request. `id` is also its progress token. `params` are the members of an object.
pub(super) fn request(revision: Revision, id: &str, method: &str, params: &str, capabilities: &str) -> String {
    let mut own = format!(r#""progressToken":"{id}""#);
    if revision.is_modern() {
        own.push_str(&format!(
            r#","{}":"{}","{}":{CLIENT},"{}":{capabilities},"{}":"debug""#,
            meta::VERSION,
            revision.date(),
            meta::CLIENT_INFO,
            meta::CLIENT_CAPABILITIES,
            meta::LOG_LEVEL
        ));
    }
    let comma = if params.is_empty() { "" } else { "," };
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{{{params}{comma}"_meta":{{{own}}}}}}}"#)
}

/// Writes `initialize`, or from 2026-07-28 on `server/discover`.
pub(super) fn hello(revision: Revision, id: &str, capabilities: &str) -> String {
    if revision.is_modern() {
        return request(revision, id, "server/discover", "", capabilities);
    }
    let date = revision.date();
    let params = format!(r#""protocolVersion":"{date}","capabilities":{capabilities},"clientInfo":{CLIENT}"#);
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"initialize","params":{{{params}}}}}"#)
}

pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Writes a value as JSON.
///
/// # Panics
/// If it cannot be written as JSON.
pub(super) fn json(value: &dyn Arguments) -> String {
    let json = to_vec(|out| out.write(|out| value.write(out)));
    String::from_utf8_lossy(&json.expect("these arguments cannot be written as JSON")).into_owned()
}

/// Writes a text as a JSON string.
pub(super) fn json_string(text: &str) -> String {
    let json = to_vec(|out| out.string(text)).unwrap_or_default();
    String::from_utf8_lossy(&json).into_owned()
}
