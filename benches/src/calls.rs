//! The shared part of the clients of `benches/client.sh`. `CLIENT N COMMAND ARGS…` makes N calls one after the
//! other and prints the microseconds until the first answer, the calls per second and the allocations per call.

use std::process::Command;
use std::time::Instant;

use mcp_sansio::client::ClientInfo;
use mcp_sansio::client::views::CallToolResult;
use mcp_sansio::revision::{Revision, Revisions};
use serde::Serialize;

use crate::counting::allocations;

/// Offers the revision that rmcp's client negotiates with calc.
pub static PROFILE: ClientInfo<'static> =
    ClientInfo::new("bench", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));

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

/// Returns the number of calls and the server's command from the command line.
pub fn asked() -> (u32, Command) {
    let mut words = std::env::args().skip(1);
    let calls = words.next().and_then(|word| word.parse().ok()).expect("how many?");
    let mut command = Command::new(words.next().expect("which server?"));
    command.args(words);
    (calls, command)
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
