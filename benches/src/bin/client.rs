//! Our blocking client over a child process: see `benches/src/calls.rs`.
use mcp_sansio::client::Request;
use mcp_sansio_bench::calls::{ECHO, PROFILE, Run, asked, check};
use mcp_sansio_bench::counting::Counting;
use mcp_sansio_blocking::client::{Child, Client, Ignore};

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (calls, command) = asked();
    let mut run = Run::begin();
    let mut client = Client::new(Child::spawn(command, &PROFILE)?, Ignore);
    client.connect()?;
    let mut call = || -> Result<(), Box<dyn std::error::Error>> {
        check(&client.request(&Request::call("echo").arguments(&ECHO))?.view()?);
        Ok(())
    };
    call()?;
    run.answered();
    for _ in 0..calls {
        call()?;
    }
    run.end(calls);
    client.close();
    Ok(())
}
