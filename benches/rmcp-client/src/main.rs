//! rmcp's client over a child process: `bench-rmcp-client N COMMAND ARGS…` makes N calls one after the other and prints
//! what they cost, like benches/src/bin/client.rs.

use std::time::Instant;

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;
use serde_json::json;

// By its path: this program must not depend on what it is compared with.
#[path = "../../src/counting.rs"]
mod counting;

use counting::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

const TEXT: &str = "0123456789abcdef0123456789abcdef";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let mut words = std::env::args().skip(1);
    let calls: u32 = words.next().ok_or("how many?")?.parse()?;
    let mut command = tokio::process::Command::new(words.next().ok_or("which server?")?);
    command.args(words);
    let client = ().serve(TokioChildProcess::new(command)?).await?;
    let echo = || {
        let arguments = json!({"text": TEXT}).as_object().cloned().unwrap_or_default();
        CallToolRequestParams::new("echo").with_arguments(arguments)
    };
    let is_echo = |result: rmcp::model::CallToolResult| {
        result.content.first().and_then(|piece| piece.as_text()).is_some_and(|text| text.text == TEXT)
    };
    assert!(is_echo(client.call_tool(echo()).await?));
    let first = begun.elapsed();
    let (begun, before) = (Instant::now(), allocations());
    for _ in 0..calls {
        assert!(is_echo(client.call_tool(echo()).await?));
    }
    let (took, allocated) = (begun.elapsed(), allocations() - before);
    println!(
        "{} {:.0} {:.1}",
        first.as_micros(),
        f64::from(calls) / took.as_secs_f64(),
        allocated as f64 / f64::from(calls)
    );
    client.cancel().await?;
    Ok(())
}
