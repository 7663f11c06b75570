//! The tools of examples/calc.rs on rmcp, over stdio. One thread, like calc.

mod calc;

use calc::Calc;
use rmcp::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Calc.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
