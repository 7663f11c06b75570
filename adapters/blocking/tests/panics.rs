//! Panics of handlers over a writer, which has written a part of what the handler made.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mcp_sansio::server::{MessageLimits, Progress};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};

/// A text of this length, and a panic behind it.
struct Torn(usize);

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for _ in 0..self.0 {
            f.write_str("x")?;
        }
        panic!("within an answer")
    }
}

fn torn(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let size = call.arg("size")?;
    if size > 0 {
        let _ = call.progress(Progress::new(1));
    }
    call.text(format_args!("{}", Torn(size)))
}

fn fine(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.text("fine")
}

static TOOLS: [Tool<()>; 2] = [Tool::new("torn", "Panics", torn), Tool::new("fine", "Does not", fine)];

fn call(id: usize, tool: &str, size: usize) -> String {
    let meta = r#"{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"size":{size}}},"_meta":{meta}}}}}"#
    ) + "\n"
}

#[test]
fn the_loop_goes_on() {
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref::<&str>().is_none() {
            eprintln!("{panic}");
        }
    }));
    let service =
        Service::new("torn", "1.0").tools(&TOOLS).contain_panics(|run| catch_unwind(AssertUnwindSafe(run)).is_ok());
    for (size, broken) in [(0, 0), (10, 0), (60_000, 0), (100_000, 1), (1_000_000, 1)] {
        let input = call(1, "fine", 0) + &call(2, "torn", size) + &call(3, "fine", 0) + &call(4, "torn", size);
        let mut written = Vec::new();
        mcp_sansio_blocking::serve(input.as_bytes(), &mut written, &service, &mut (), MessageLimits::default())
            .unwrap();
        let text = String::from_utf8(written).unwrap();
        let (json, torn): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
        assert_eq!(torn.len(), 2 * broken, "size {size}");
        let answers: Vec<_> = json.iter().filter(|line| line.contains(r#""id":"#)).collect();
        assert_eq!(answers.len(), 4, "size {size}");
        assert!(answers[0].contains("fine") && answers[2].contains("fine"), "size {size}");
        for answer in [answers[1], answers[3]] {
            assert!(answer.contains(r#""error":{"code":-32603,"message":"The handler has panicked"}"#), "{answer}");
        }
        assert_eq!(json.len() - answers.len(), if size > 0 { 2 } else { 0 }, "size {size}");
    }
}
