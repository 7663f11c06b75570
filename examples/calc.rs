//! The smallest useful server: two tools. Run it as `calc`, `calc stdio` or `calc http PORT`.
use mcp_sansio::json::Text;
use mcp_sansio::service::{Call, Outcome, Service, Tool};
use mcp_sansio_blocking::http::HttpServer;
use serde::Deserialize;

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

fn add(_: &mut (), call: &mut Call<'_>) -> Outcome {
    let Add { a, b } = call.args()?;
    call.text(format_args!("{}", i128::from(a) + i128::from(b)))
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

fn echo(_: &mut (), call: &mut Call<'_>) -> Outcome {
    let Echo { text } = call.args()?;
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["stdio"] => mcp_sansio_blocking::serve_stdio(&service, &mut ()),
        ["http", port] => HttpServer::bind(format!("127.0.0.1:{port}"))?.serve(&service, &mut ()),
        _ => Err(std::io::Error::other("usage: calc [stdio | http PORT]")),
    }
}
