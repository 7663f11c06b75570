//! Our blocking client over a child process: see `benches/src/calls.rs`.
use mcp_sansio_bench::calls::{Asked, Run, call_blocking};
use mcp_sansio_bench::counting::Counting;
use mcp_sansio_blocking::client::Child;

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (asked, run) = (Asked::read(), Run::begin());
    call_blocking(Child::spawn(asked.command(), asked.info)?, &asked, run)
}
