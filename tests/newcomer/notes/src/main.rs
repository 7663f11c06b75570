//! Program 1: notes over stdin and stdout: `notes FILE`.

use std::error::Error;

use mcp_sansio_blocking::{Serve, channel};
use notes_service::{Notes, SERVICE};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: notes FILE")?;
    let (late, receiver) = channel();
    let mut notes = Notes::open(&file, late)?;
    Ok(Serve::new(&SERVICE).late(receiver).stdio(&mut notes)?)
}
