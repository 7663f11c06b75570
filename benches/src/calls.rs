//! The shared part of the clients. `CLIENT [2026-07-28] N COMMAND ARGS…`, over HTTP `CLIENT [2026-07-28] N URL`, makes N calls
//! one after the other and prints the microseconds until the first answer, the calls per second and the allocations per call.

use std::process::Command;
use std::time::Instant;

use mcp_sansio::client::views::CallToolResult;
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::revision::{Revision, Revisions};
use serde::Serialize;

use crate::counting::allocations;

/// Offers the revision that rmcp's client negotiates with calc.
static HANDSHAKE: ClientInfo<'static> =
    ClientInfo::new("bench", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));

/// Offers the revision without a handshake.
static MODERN: ClientInfo<'static> =
    ClientInfo::new("bench", "1").revisions(Revisions::NONE.with(Revision::V2026_07_28));

/// The arguments of each call.
pub const ECHO: Echo = Echo { text: "0123456789abcdef0123456789abcdef" };

/// The arguments of the tool `echo`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Echo {
    text: &'static str,
}

/// Panics if the result has another text than the call.
pub fn check(result: &CallToolResult<'_>) {
    assert!(result.text().is_some_and(|text| text.eq_str(ECHO.text)), "something else came back");
}

/// The words of the command line.
#[derive(Debug)]
pub struct Asked {
    /// The client's revision.
    pub info: &'static ClientInfo<'static>,
    /// The number of calls after the first.
    pub calls: u32,
    /// The server's command, or its URL.
    pub server: Vec<String>,
}

impl Asked {
    /// Reads the command line.
    pub fn read() -> Self {
        let mut words = std::env::args().skip(1).peekable();
        let info = if words.next_if_eq("2026-07-28").is_some() { &MODERN } else { &HANDSHAKE };
        let calls = words.next().and_then(|word| word.parse().ok()).expect("how many?");
        Asked { info, calls, server: words.collect() }
    }

    /// Returns the server's command.
    pub fn command(&self) -> Command {
        let (program, words) = self.server.split_first().expect("which server?");
        let mut command = Command::new(program);
        command.args(words);
        command
    }
}

/// The times of a run.
#[derive(Debug)]
pub struct Run {
    begun: Instant,
    first: u128,
    before: u64,
}

impl Run {
    /// Begins a run, before the server is started.
    pub fn begin() -> Self {
        Run { begun: Instant::now(), first: 0, before: 0 }
    }

    /// Stores the time of the first answer.
    pub fn answered(&mut self) {
        self.first = self.begun.elapsed().as_micros();
        self.before = allocations();
        self.begun = Instant::now();
    }

    /// Prints the results after all calls.
    pub fn end(&self, calls: u32) {
        let (took, more) = (self.begun.elapsed().as_secs_f64(), allocations() - self.before);
        let calls = f64::from(calls);
        println!("{} {:.0} {:.1}", self.first, calls / took, more as f64 / calls);
    }
}

/// Makes the calls with the blocking client.
///
/// # Errors
/// If one of them fails.
#[cfg(feature = "client")]
pub fn call_blocking<'m>(
    server: impl mcp_sansio_blocking::client::Transport<'m>,
    asked: &Asked,
    mut run: Run,
) -> Result<(), Box<dyn std::error::Error>> {
    use mcp_sansio_blocking::client::{Client, Ignore};
    let mut client = Client::new(server, Ignore);
    client.connect()?;
    let mut call = || -> Result<(), Box<dyn std::error::Error>> {
        check(&client.request(&Request::call("echo").arguments(&ECHO))?.view()?);
        Ok(())
    };
    call()?;
    run.answered();
    for _ in 0..asked.calls {
        call()?;
    }
    run.end(asked.calls);
    client.close();
    Ok(())
}

/// Makes the calls with the smol client.
///
/// # Errors
/// If one of them fails.
#[cfg(feature = "client-smol")]
pub fn call_smol(
    server: impl mcp_sansio_smol::client::Transport + 'static,
    asked: &Asked,
    mut run: Run,
) -> Result<(), Box<dyn std::error::Error>> {
    use mcp_sansio_smol::client::{Client, Ignore};
    let (client, driver) = Client::new(server, Ignore);
    let work = async {
        client.connect().await?;
        let call = async || -> Result<(), Box<dyn std::error::Error>> {
            check(&client.request(Request::call("echo").arguments(&ECHO)).await?.view()?);
            Ok(())
        };
        call().await?;
        run.answered();
        for _ in 0..asked.calls {
            call().await?;
        }
        run.end(asked.calls);
        client.close().await;
        Ok(())
    };
    // The driver ends with the connection.
    async_io::block_on(futures_lite::future::zip(work, driver)).0
}
