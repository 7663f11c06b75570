//! rmcp's client over a child process: `bench-rmcp-client N COMMAND ARGS…` makes N calls one after the other and prints
//! what they cost, like benches/src/bin/client.rs.

mod calls;

use std::time::Instant;

use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let mut words = std::env::args().skip(1);
    let count = words.next().ok_or("how many?")?.parse()?;
    let mut command = tokio::process::Command::new(words.next().ok_or("which server?")?);
    command.args(words);
    Ok(calls::run(().serve(TokioChildProcess::new(command)?).await?, count, begun).await?)
}
