//! The smallest useful server: two tools. Run it as `calc`, `calc stdio` or `calc http PORT`.
use mcp_sansio::json::Text;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::{http::HttpServer, serve_stdio};

fn add(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", i128::from(a) + i128::from(b)))
}

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

static TOOLS: [Tool<()>; 2] = [
    Tool::new("add", "Adds two integers", add).input(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#,
    ),
    Tool::new("echo", "Gives a text back", echo)
        .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#),
];

fn main() -> std::io::Result<()> {
    let service = Service::new("calc", env!("CARGO_PKG_VERSION")).tools(&TOOLS);
    match std::env::args().nth(2) {
        Some(port) => HttpServer::bind(format!("127.0.0.1:{port}"))?.serve(&service, &mut ()),
        None => serve_stdio(&service, &mut ()),
    }
}
