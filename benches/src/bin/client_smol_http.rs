//! Our smol client over HTTP: see `benches/src/calls.rs`.
use mcp_sansio_bench::calls::{Asked, Run, call_smol};
use mcp_sansio_bench::counting::Counting;
use mcp_sansio_smol::client::Http;

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (asked, run) = (Asked::read(), Run::begin());
    call_smol(Http::new(&asked.server[0], asked.info)?, &asked, run)
}
