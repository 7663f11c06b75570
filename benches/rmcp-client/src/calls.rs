//! The calls of rmcp's client.

use std::time::Instant;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceError};
use serde_json::json;

// By its path: these programs must not depend on what they are compared with.
#[path = "../../src/counting.rs"]
mod counting;

use counting::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

const TEXT: &str = "0123456789abcdef0123456789abcdef";

/// Makes this many calls after a first one, and prints the microseconds from the beginning until the first answer, the calls
/// per second and the allocations per call.
pub async fn run(client: RunningService<RoleClient, ()>, calls: u32, begun: Instant) -> Result<(), ServiceError> {
    let echo = || {
        let arguments = json!({"text": TEXT}).as_object().cloned().unwrap_or_default();
        CallToolRequestParams::new("echo").with_arguments(arguments)
    };
    let is_echo = |result: CallToolResult| {
        result.content.first().and_then(|piece| piece.as_text()).is_some_and(|text| text.text == TEXT)
    };
    assert!(is_echo(client.call_tool(echo()).await?));
    let first = begun.elapsed();
    let (begun, before) = (Instant::now(), allocations());
    for _ in 0..calls {
        assert!(is_echo(client.call_tool(echo()).await?));
    }
    let (took, allocated) = (begun.elapsed(), allocations() - before);
    let calls = f64::from(calls);
    println!("{} {:.0} {:.1}", first.as_micros(), calls / took.as_secs_f64(), allocated as f64 / calls);
    let _ = client.cancel().await;
    Ok(())
}
