//! A server over HTTP with a bearer token, for clients of all revisions.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http> and
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization>.
//! Try it: `cargo run --example http`, then
//! `cargo run --example inspect -- --header "Authorization: Bearer secret" call whoami http://127.0.0.1:8933/mcp`.
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::{Access, EndpointConfig, HttpServer, HttpServerOptions, RequestHead};

fn whoami(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    match call.principal() {
        Some(name) => call.text(name),
        None => call.error("The client is anonymous"),
    }
}

static TOOLS: [Tool<()>; 1] = [Tool::new("whoami", "Names the caller", whoami)];

/// Sees the head of each request before the body is read. A real server checks the signature, the audience and the expiry of the token.
fn authorize<'a>(head: &RequestHead<'_>) -> Access<'a> {
    match head.bearer() {
        Some("secret") => Access::Granted { principal: Some("alice") },
        _ => Access::Denied { status: 401, challenge: Some("Bearer realm=\"example\"") },
    }
}

fn main() -> std::io::Result<()> {
    let service = Service::new("http", "1.0").tools(&TOOLS);
    // Requests for other hosts than this machine's names get 403, against DNS rebinding. Name your own host here.
    let config = EndpointConfig::DEFAULT.hosts(&["example.test"]);
    HttpServer::bind("127.0.0.1:8933")?
        .options(HttpServerOptions::new().config(config))
        .authorize(&authorize)
        .serve(&service, &mut ())
}
