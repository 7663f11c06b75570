//! Tests of one's own service, in memory: no process, no socket, input cut at any byte.
//!
//! Run them: `cargo test --example tested`. The module is [`mcp_sansio_host::testing`].
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::serve_stdio;

fn divide(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    match a.checked_div(b) {
        Some(quotient) => call.text(format_args!("{quotient}")),
        None => call.error("This division has no result"), // `isError: true`: the model can read it and try again
    }
}

static TOOLS: [Tool<()>; 1] = [Tool::new("divide", "Divides integers", divide)
    .input(r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#)];

fn main() -> std::io::Result<()> {
    serve_stdio(&Service::new("tested", "1.0").tools(&TOOLS), &mut ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio_host::testing::{Conversation, Delivery};

    #[test]
    fn division_by_zero_is_a_tool_error() {
        let service = Service::new("tested", "1.0").tools(&TOOLS);
        for cut in [Delivery::Whole, Delivery::Bytes, Delivery::Random(7)] {
            let mut conversation = Conversation::new(&service, ()).cut(cut);
            conversation.initialize("2025-11-25");
            let replies = conversation.say(
                r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"divide","arguments":{"a":1,"b":0}}}"#,
            );
            assert!(replies[0].contains(r#""isError":true"#), "{replies:?}");
        }
    }
}
