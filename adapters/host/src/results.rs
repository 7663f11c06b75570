//! Results of requests, as values that own their bytes.

use std::fmt;

use mcp_sansio::client::InitializeResult;
use mcp_sansio::client::views::{View, ViewError};
use mcp_sansio::json::{OwnedRaw, Raw, Text};
use mcp_sansio::protocol::{Method, ServerCapabilities, meta};
use mcp_sansio::revision::Revision;

/// The result of a request. It owns its bytes.
///
/// ```
/// use mcp_sansio::client::views::CallToolResult;
/// use mcp_sansio::json::Raw;
/// use mcp_sansio::protocol::Method;
/// use mcp_sansio_host::OwnedResult;
///
/// let result = Raw::parse(br#"{"content":[{"type":"text","text":"4"}]}"#).unwrap();
/// let answer = OwnedResult::new(Method::ToolsCall, result);
/// assert_eq!(answer.view::<CallToolResult>().unwrap().text().unwrap().to_string(), "4");
/// ```
///
/// A result of at most 184 bytes is kept in the value itself, a longer one in an allocation.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedResult {
    /// The method of the request.
    pub method: Method,
    result: OwnedRaw<184>,
    /// The client sent the request again with `inputResponses` or `requestState` ([multi round-trip
    /// requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)): `retried` of
    /// [`ClientEvent::Done`](mcp_sansio::client::ClientEvent::Done). Such a result must not be
    /// [cached](mcp_sansio::client::cache).
    pub retried: bool,
}

impl OwnedResult {
    /// Keeps a copy of a result.
    #[must_use]
    pub fn new(method: Method, raw: Raw<'_>) -> Self {
        OwnedResult { method, result: raw.into(), retried: false }
    }

    /// Returns the result as the server wrote it, a JSON object. With the feature `serde` of the core,
    /// `Raw::deserialize` reads it, or a member of it, into a type.
    #[must_use]
    pub fn raw(&self) -> Raw<'_> {
        self.result.raw()
    }

    /// Returns the result as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.result.as_str()
    }

    /// Returns a typed view of the result, one of [`views`](mcp_sansio::client::views).
    ///
    /// # Errors
    /// If a member that the protocol requires is missing.
    pub fn view<'a, V: View<'a>>(&'a self) -> Result<V, ViewError> {
        V::of(self.raw())
    }

    /// Returns the member `nextCursor`: where the next page of a list begins.
    #[must_use]
    pub fn next_cursor(&self) -> Option<Text<'_>> {
        self.raw().get("nextCursor")?.text()
    }
}

impl fmt::Debug for OwnedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({})", self.as_str())
    }
}

/// The result of [`server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover) or
/// [`initialize`](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization): the
/// server's name and its capabilities.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerHello {
    revision: Revision,
    result: OwnedRaw,
}

impl ServerHello {
    /// Keeps a copy of the server's answer when the connection was opened.
    #[must_use]
    pub fn new(connected: &InitializeResult<'_>) -> Self {
        ServerHello { revision: connected.revision, result: connected.result.into() }
    }

    /// Makes the value for a server that was not asked.
    #[must_use]
    pub fn unasked(revision: Revision) -> Self {
        ServerHello { revision, result: Raw::constant("null").into() }
    }

    /// Returns the revision that both sides use.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the whole result; `null` if the server was not asked.
    #[must_use]
    pub fn raw(&self) -> Raw<'_> {
        self.result.raw()
    }

    /// Returns `serverInfo`: the name of the server in its own words, for display only.
    #[must_use]
    pub fn server(&self) -> Option<Raw<'_>> {
        let result = self.raw();
        match self.revision.is_modern() {
            true => result.get("_meta")?.get(meta::SERVER_INFO),
            false => result.get("serverInfo"),
        }
    }

    /// Returns the member `capabilities`.
    #[must_use]
    pub fn capabilities(&self) -> Option<Raw<'_>> {
        self.raw().get("capabilities")
    }

    /// Returns the capabilities of the server.
    #[must_use]
    pub fn features(&self) -> ServerCapabilities {
        self.capabilities().map_or(ServerCapabilities::NONE, ServerCapabilities::read)
    }

    /// Returns the member `instructions`: text for the model about the server.
    #[must_use]
    pub fn instructions(&self) -> Option<Text<'_>> {
        self.raw().get("instructions")?.text()
    }
}

impl fmt::Debug for ServerHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHello").field("revision", &self.revision).field("result", &self.result.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo};
    use mcp_sansio::protocol::ServerCapability;
    use mcp_sansio::revision::Revisions;
    use mcp_sansio::service::{Service, Tool};

    use super::*;
    use crate::testing::ClientServerPair;

    static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", |_, call| call.text("hello"))];

    #[test]
    fn a_hello_has_what_the_server_says_of_itself() {
        let info = ClientInfo::new("editor", "1.0");
        for revision in Revision::ALL {
            let service = Service::new("greeter", "1.0").tools(&TOOLS).instructions("Be polite");
            let service = service.revisions(Revisions::NONE.with(revision));
            let mut pair = ClientServerPair::new(&info, &service, ());
            let mut hello = None;
            pair.client.client.connect();
            pair.run(&mut |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
                if let ClientEvent::Connected(connected) = event {
                    hello = Some(ServerHello::new(&connected));
                }
            });
            let hello = hello.unwrap();
            assert_eq!(hello.revision(), revision);
            let name = hello.server().and_then(|server| server.get("name")?.text());
            assert!(name.is_some_and(|name| name.eq_str("greeter")), "{hello:?}");
            assert!(
                hello.instructions().is_some_and(|text| text.eq_str("Be polite")) || revision == Revision::V2024_11_05
            );
            assert!(hello.capabilities().is_some_and(|all| all.get("tools").is_some()), "{hello:?}");
            assert!(hello.features().has(ServerCapability::Tools) && !hello.features().has(ServerCapability::Prompts));
        }
    }

    #[test]
    fn a_server_that_was_not_asked_has_said_nothing() {
        for revision in Revision::ALL {
            let hello = ServerHello::unasked(revision);
            assert_eq!((hello.revision(), hello.raw().as_str()), (revision, "null"));
            assert!(hello.server().is_none() && hello.capabilities().is_none() && hello.instructions().is_none());
            assert_eq!(hello.features(), ServerCapabilities::NONE);
        }
    }

    #[test]
    fn members_of_a_result_are_read_by_name() {
        let result = OwnedResult::new(Method::ToolsList, Raw::constant(r#"{"nextCursor":"a\u0062","n":[1,2]}"#));
        assert!(result.next_cursor().is_some_and(|cursor| cursor.eq_str("ab")));
        assert!(!result.retried);
        let last = OwnedResult::new(Method::ToolsList, Raw::constant(r#"{"nextCursor":null}"#));
        assert!(last.next_cursor().is_none());
    }
}
