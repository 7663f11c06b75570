//! Requests as a client of each revision writes them.

use mcp_sansio::client::Arguments;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::{ServerCapabilities, meta};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{MessageLimits, ServerChange};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{LineSink, to_vec};

use super::{Delivery, Reply, Rhythm, Session, TURNS, say};

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
    let mut out = LineSink::new(Vec::new());
    if value.write(&mut out).is_err() {
        panic!("these arguments cannot be written as JSON");
    }
    String::from_utf8_lossy(out.pending()).into_owned()
}

/// Writes a text as a JSON string.
pub(super) fn json_string(text: &str) -> String {
    let json = to_vec(|out| out.string(text)).unwrap_or_default();
    String::from_utf8_lossy(&json).into_owned()
}

/// A connection besides the conversation, which does not notice it: for the questions of the test itself about a service.
pub(super) struct Aside<'a, 's, S: 'static> {
    service: &'a Service<'s, S>,
    state: &'a mut S,
    session: Session,
    revision: Revision,
}

impl<'a, 's, S> Aside<'a, 's, S> {
    /// Opens it in a revision, or in the newest that the service has.
    pub(super) fn open(service: &'a Service<'s, S>, state: &'a mut S, revision: Option<Revision>) -> (Self, Reply) {
        let session = LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()));
        let newest = Revision::ALL.into_iter().max_by_key(|revision| revision.date()).unwrap_or(Revision::V2025_11_25);
        let mut aside = Aside { service, state, session, revision: revision.unwrap_or(newest) };
        let mut hello = aside.say(&hello(aside.revision, "aside", CAPABILITIES));
        if revision.is_none() && hello.error().is_some() {
            aside.revision = Revision::V2025_11_25;
            hello = aside.say(&self::hello(aside.revision, "aside", CAPABILITIES));
        }
        if !aside.revision.is_modern() {
            let _ = aside.say(INITIALIZED);
        }
        (aside, hello)
    }

    fn say(&mut self, line: &str) -> Reply {
        let whole = &mut Rhythm::new(Delivery::Whole);
        Reply::of(say(&mut self.session, self.service, self.state, whole, line))
    }

    /// Returns all entries of a list. Empty if the service does not have it.
    pub(super) fn list(&mut self, method: &str, key: &str) -> Vec<String> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        for _ in 0..TURNS {
            let reply = self.say(&request(self.revision, "aside", method, &cursor, CAPABILITIES));
            if reply.error().is_some() {
                break;
            }
            let result = reply.result();
            all.extend(result.get(key).into_iter().flat_map(|list| list.items()).map(|item| item.as_str().to_owned()));
            match result.get("nextCursor") {
                Some(next) => cursor = format!(r#""cursor":{next}"#),
                None => break,
            }
        }
        all
    }

    /// Returns the output schema of a tool.
    pub(super) fn output_schema(&mut self, name: &str) -> Option<String> {
        let tools = self.list("tools/list", "tools");
        tools.iter().filter_map(|tool| Raw::parse(tool.as_bytes()).ok()).find_map(|tool| {
            let is = tool.get("name")?.text()?.eq_str(name);
            Some(tool.get("outputSchema").filter(|_| is)?.as_str().to_owned())
        })
    }
}

/// Fails the test if the service does not declare the capability of a change: no client would hear of it.
///
/// # Panics
/// As said.
pub(super) fn assert_declared<S>(service: &Service<'_, S>, state: &mut S, change: ServerChange<'_>) {
    let Some(capability) = change.capability() else { return };
    let (_, hello) = Aside::open(service, state, None);
    let declared = hello.result().get("capabilities").map_or(ServerCapabilities::NONE, ServerCapabilities::read);
    assert!(
        declared.has(capability),
        "{change:?} is published, but not declared: no client is told of it. Add `.feature(ServerCapability::{capability:?})` to the service"
    );
}
