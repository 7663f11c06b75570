//! What the clients of `benches/client.sh` have in common: `CLIENT N COMMAND ARGS…` makes N calls one after the other and
//! prints the microseconds until the first answer, calls per second and allocations per call.

use std::process::Command;
use std::time::Instant;

use mcp_sansio::client::Profile;
use mcp_sansio::client::views::CallResult;
use mcp_sansio::revision::{Revision, Revisions};
use serde::Serialize;

use crate::counting::allocations;

/// The revision that rmcp's client comes to speak with calc.
pub static PROFILE: Profile<'static> =
    Profile::new("bench", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));

/// What is said each time.
pub const ECHO: Echo = Echo { text: "0123456789abcdef0123456789abcdef" };

/// The arguments of the tool `echo`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Echo {
    text: &'static str,
}

/// Panics if it is not what was said.
pub fn check(result: &CallResult<'_>) {
    assert!(result.text().is_some_and(|text| text.is(ECHO.text)), "something else came back");
}

/// What the command line asks for.
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
    /// Before the server is started.
    pub fn begin() -> Self {
        Run { begun: Instant::now(), first: 0, before: 0 }
    }

    /// When the first answer has come.
    pub fn answered(&mut self) {
        self.first = self.begun.elapsed().as_micros();
        self.before = allocations();
        self.begun = Instant::now();
    }

    /// After all calls.
    pub fn end(&self, calls: u32) {
        let (took, more) = (self.begun.elapsed().as_secs_f64(), allocations() - self.before);
        let calls = f64::from(calls);
        println!("{} {:.0} {:.1}", self.first, calls / took, more as f64 / calls);
    }
}
