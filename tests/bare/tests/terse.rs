//! The errors of the core, with and without the feature `terse`: the codes and data stay, and so do the words of handlers.

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};

fn refuse(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.error("The door is locked")
}

/// Answers one line.
fn answer(line: &str) -> String {
    const TOOLS: &[Tool<()>] = &[Tool::new("open", "Opens the door", refuse)];
    let service = Service::new("demo", "1.0").tools(TOOLS);
    let (mut input, mut output, mut slots) = ([0; 1024], [0; 1024], [RequestSlot::FREE; 2]);
    let sink = LineSink::new(SliceStorage::new(&mut output));
    let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), sink);
    session.space()[..line.len()].copy_from_slice(line.as_bytes());
    session.filled(line.len());
    assert_eq!(session.run(&service, &mut ()), NextStep::Read);
    String::from_utf8(session.out.pending().to_vec()).unwrap()
}

#[test]
fn codes_and_data_stay() {
    let words = |text: &'static str| if cfg!(feature = "terse") { "" } else { text };
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let request = |method: &str, params: &str| {
        answer(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params}{meta}}}}}\n"))
    };
    let failure =
        |code: i32, text: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{text}"}}}}"#);
    assert_eq!(request("resources/list", "").trim_end(), failure(-32601, words("Method not found")));
    let later = answer(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2031-01-01\",\
         \"io.modelcontextprotocol/clientCapabilities\":{}}}}\n",
    );
    let message = words("Unsupported protocol version");
    let data = r#""data":{"supported":["2026-07-28"],"requested":"2031-01-01"}"#;
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"{message}",{data}}}}}"#);
    assert_eq!(later.trim_end(), expected);
    assert!(request("tools/call", "\"name\":\"open\",").contains("The door is locked"), "the words of handlers stay");
}
