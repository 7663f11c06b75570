//! rmcp's client over HTTP: `bench-rmcp-http-client N URL`, like benches/src/bin/client.rs.

mod calls;

use std::time::Instant;

use rmcp::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let mut words = std::env::args().skip(1);
    let count = words.next().ok_or("how many?")?.parse()?;
    let url = words.next().ok_or("which server?")?;
    Ok(calls::run(().serve(StreamableHttpClientTransport::from_uri(url)).await?, count, begun).await?)
}
