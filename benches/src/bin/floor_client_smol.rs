//! The same on the reactor of `async-io`: see `floor_client.rs`.
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use async_io::{Async, block_on};
use mcp_sansio_bench::calls::{Asked, Run};
use mcp_sansio_bench::counting::Counting;
use mcp_sansio_bench::floor_calls::{CALL, INITIALIZE, INITIALIZED, check, start};

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> io::Result<()> {
    let (asked, mut run) = (Asked::read(), Run::begin());
    let (mut server, mut input, output) = start(&asked);
    let output = Async::new(File::from(OwnedFd::from(output)))?;
    let mut space = vec![0; 16_384];
    let mut exchange = async |line: &[u8]| {
        // There always is room for a line that is not answered yet.
        input.write_all(line)?;
        output.readable().await?;
        let read = output.get_ref().read(&mut space)?;
        check(&space[..read]);
        io::Result::Ok(())
    };
    block_on(async {
        exchange(INITIALIZE).await?;
        exchange(&[INITIALIZED, CALL].concat()).await?;
        run.answered();
        for _ in 0..asked.calls {
            exchange(CALL).await?;
        }
        io::Result::Ok(())
    })?;
    run.end(asked.calls);
    drop(input);
    server.wait().map(drop)
}
