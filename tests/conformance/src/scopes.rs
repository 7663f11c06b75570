//! The scopes of the scenario `sep-2350-server-scope-challenge`: two tokens, and what the operations need. Everything else goes on
//! without a token, as the other scenarios want it.

use mcp_sansio_blocking::http::{Access, Grant, MessageAccess, Refusal, RequestHead};

/// The pairs of scopes: method, name or URI, scopes.
const NEEDED: [(&str, &str, &str); 4] = [
    ("tools/call", "test_simple_text", "mcp:conformance:tools:call mcp:conformance:tools:test_simple_text"),
    ("resources/read", "test://static-text", "mcp:conformance:resources:read mcp:conformance:resources:static"),
    (
        "resources/read",
        "test://template/123/data",
        "mcp:conformance:resources:read mcp:conformance:resources:template:123",
    ),
    ("prompts/get", "test_simple_prompt", "mcp:conformance:prompts:get mcp:conformance:prompts:test_simple_prompt"),
];

/// Decides about a request by its head: the token with too few scopes has none of these, every other caller has all.
pub(crate) fn authorize<'a>(head: &RequestHead<'_>) -> Access<'a> {
    let is_low = head.text("authorization") == Some("Bearer mcp-conformance-scope-low");
    match Grant::to(None) {
        Ok(grant) => Access::GrantedTo(grant.scopes(if is_low { 0 } else { u64::MAX })),
        Err(_) => Access::Denied { status: 500, challenge: None },
    }
}

/// Decides about a message: 403 with all scopes that the operation needs.
pub(crate) fn permit<'a>(message: &MessageAccess<'_>, metadata: &str) -> Access<'a> {
    let target = message.name.or(message.uri);
    let is_meant =
        |method: &str, name: &str| message.method.eq_str(method) && target.is_some_and(|target| target.eq_str(name));
    let needed = NEEDED.iter().find(|(method, name, _)| message.scopes == 0 && is_meant(method, name));
    let Some((_, _, scopes)) = needed else { return Access::Granted { principal: None } };
    let challenge =
        format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\", resource_metadata=\"{metadata}\"");
    let refusal = Refusal::new(403);
    Access::RefusedWith(refusal.clone().header("WWW-Authenticate", challenge).unwrap_or(refusal))
}
