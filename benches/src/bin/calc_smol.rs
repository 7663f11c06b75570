//! The tool `echo` of `examples/calc.rs` on the smol HTTP server: `calc-smol http PORT`.
use mcp_sansio::json::Text;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_smol::http::HttpServer;

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

static TOOLS: [Tool<()>; 1] = [Tool::new("echo", "Gives a text back", echo)
    .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#)];

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(2).unwrap_or_default();
    let service = Service::new("calc", env!("CARGO_PKG_VERSION")).tools(&TOOLS);
    async_io::block_on(HttpServer::bind(format!("127.0.0.1:{port}"))?.serve(&service, &mut ()))
}
