//! Signals, which end the program as the end of stdin does (SIGTERM, SIGINT), and modes of files. `no_system.rs` is for other systems than
//! Unix.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::Duration;

use async_signal::{Signal, Signals};
use futures_lite::{StreamExt, future};
use mcp_sansio_smol::Stopper;

/// The time after which the program ends in any case, such as before a host that reads nothing.
const LAST: Duration = Duration::from_secs(10);

/// Stops at the first signal. A thread waits for it: the other one may be writing to a host that does not read.
pub(crate) fn at_signal(stopper: Stopper) -> Result<(), String> {
    let mut signals = Signals::new([Signal::Term, Signal::Int]).map_err(|error| error.to_string())?;
    thread::spawn(move || {
        future::block_on(signals.next());
        stopper.stop();
        thread::sleep(LAST);
        std::process::exit(1);
    });
    Ok(())
}

/// Makes a file, where it is new, one for its user alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}
