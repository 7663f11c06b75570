//! A client without a library over a child process, which looks at no answer: see `benches/src/calls.rs`.
use std::io::{self, Read, Write};

use mcp_sansio_bench::calls::{Asked, Run};
use mcp_sansio_bench::counting::Counting;
use mcp_sansio_bench::floor_calls::{CALL, INITIALIZE, INITIALIZED, check, start};

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> io::Result<()> {
    let (asked, mut run) = (Asked::read(), Run::begin());
    let (mut server, mut input, mut output) = start(&asked);
    let mut space = vec![0; 16_384];
    let mut exchange = |line: &[u8]| {
        input.write_all(line)?;
        let read = output.read(&mut space)?;
        check(&space[..read]);
        io::Result::Ok(())
    };
    exchange(INITIALIZE)?;
    exchange(&[INITIALIZED, CALL].concat())?;
    run.answered();
    for _ in 0..asked.calls {
        exchange(CALL)?;
    }
    run.end(asked.calls);
    drop(input);
    server.wait().map(drop)
}
