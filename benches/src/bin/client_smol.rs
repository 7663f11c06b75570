//! Our smol client over a child process: see `benches/src/calls.rs`.
use mcp_sansio::client::Request;
use mcp_sansio_bench::calls::{ECHO, PROFILE, Run, asked, check};
use mcp_sansio_bench::counting::Counting;
use mcp_sansio_smol::client::{Child, Client, Ignore};

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (calls, command) = asked();
    let mut run = Run::begin();
    let (client, driver) = Client::new(Child::spawn(command, &PROFILE)?, Ignore);
    let work = async {
        client.connect().await?;
        let call = async || -> Result<(), Box<dyn std::error::Error>> {
            check(&client.request(Request::call("echo").arguments(&ECHO)).await?.view()?);
            Ok(())
        };
        call().await?;
        run.answered();
        for _ in 0..calls {
            call().await?;
        }
        run.end(calls);
        client.close().await;
        Ok(())
    };
    // The driver ends with the connection.
    async_io::block_on(futures_lite::future::zip(work, driver)).0
}
