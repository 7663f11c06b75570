//! The MCP server: demands a token on each request, and looks at its scopes.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{Origins, Request, Response, Role, State, issuer};

/// The role of the protected resource metadata.
const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

pub(crate) fn answer(state: &mut State, origins: &Origins, request: &Request) -> Response {
    if request.path() == METADATA {
        let issuer = origins.of(state.named_issuer.unwrap_or(Role::Issuer));
        return Response::json(
            200,
            &json!({
                "resource": format!("{}/mcp", origins.of(Role::Mcp)),
                "authorization_servers": [issuer],
                "scopes_supported": ["read", "write"],
                "bearer_methods_supported": ["header"],
            }),
        );
    }
    if request.path() != "/mcp" {
        return Response::new(404, "text/plain", "nothing here");
    }
    match authorize(state, origins, request) {
        Ok(()) => serve(state, request),
        Err(refusal) => refusal,
    }
}

/// Checks the token.
fn authorize(state: &mut State, origins: &Origins, request: &Request) -> Result<(), Response> {
    let scheme = if state.demands_dpop { "DPoP" } else { "Bearer" };
    let metadata = format!("resource_metadata=\"{}{METADATA}\"", origins.of(Role::Mcp));
    let refuse = |status, more: &str| {
        Response::json(status, &json!({"error": "refused"}))
            .with("WWW-Authenticate", &format!("{scheme} {more}{}{metadata}", if more.is_empty() { "" } else { ", " }))
    };
    let base = format!("scope=\"{}\"", state.base_scope);
    let mut headers = request.headers("authorization");
    let Some(header) = headers.next() else { return Err(refuse(401, &base)) };
    if headers.next().is_some() {
        state.violation("two headers Authorization");
    }
    let (kind, token) = header.split_once(' ').unwrap_or((header, ""));
    let found = state.issuers.values().find_map(|issuer| issuer.tokens.get(token)).cloned();
    let wrong = format!("error=\"invalid_token\", {base}");
    let Some(found) = found.filter(|found| found.until.is_none_or(|until| until > Instant::now())) else {
        return Err(refuse(401, &wrong));
    };
    if found.resource != format!("{}/mcp", origins.of(Role::Mcp)) {
        state.violation("a token of another resource");
        return Err(refuse(401, &wrong));
    }
    if !kind.eq_ignore_ascii_case(if found.jkt.is_some() { "DPoP" } else { "Bearer" }) {
        state.violation("a token with the wrong scheme");
        return Err(refuse(401, &wrong));
    }
    if let Some(jkt) = &found.jkt {
        let url = format!("{}{}", origins.of(Role::Mcp), request.path());
        let proof = issuer::proof(state, request, &url, Some(token))?;
        if proof.jkt != *jkt {
            state.violation("a proof with another key");
        }
        if !state.nonce.is_empty() && proof.nonce != state.nonce {
            let nonce = state.nonce.clone();
            return Err(refuse(401, "error=\"use_dpop_nonce\"").with("DPoP-Nonce", &nonce));
        }
    } else if state.demands_dpop {
        state.violation("a token without a key");
        return Err(refuse(401, &wrong));
    }
    let body = request.json();
    let tool = body["params"]["name"].as_str().unwrap_or("");
    let wanted = state.tool_scopes.get(tool).filter(|_| body["method"] == "tools/call").cloned();
    let wanted = wanted.unwrap_or_else(|| state.base_scope.clone());
    if wanted.split(' ').any(|scope| !found.scope.split(' ').any(|has| has == scope)) {
        return Err(refuse(403, &format!("error=\"insufficient_scope\", scope=\"{wanted}\"")));
    }
    Ok(())
}

/// Answers as an MCP server of all revisions.
fn serve(state: &mut State, request: &Request) -> Response {
    match request.method.as_str() {
        "GET" => {
            let event = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            return Response::new(
                200,
                "text/event-stream",
                format!("id: {}\nretry: 50\ndata: {event}\n\n", state.sessions),
            );
        }
        "DELETE" => return Response::new(200, "text/plain", ""),
        _ => {}
    }
    let message = request.json();
    let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
        return Response::new(202, "text/plain", "");
    };
    let modern = message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
    let mut result = match message["method"].as_str().unwrap_or("") {
        "initialize" => {
            state.sessions += 1;
            let session = format!("session-{}", state.sessions);
            let result = json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "mock", "version": "1"},
            });
            return reply(id, &result).with("Mcp-Session-Id", &session);
        }
        "tools/list" => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => json!({}),
    };
    if modern {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    let response = reply(id, &result);
    if state.nonce.is_empty() { response } else { response.with("DPoP-Nonce", &state.nonce.clone()) }
}

fn reply(id: &Value, result: &Value) -> Response {
    Response::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}
