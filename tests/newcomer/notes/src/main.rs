//! Program 1: notes over stdin and stdout: `notes FILE`.

use std::error::Error;

use mcp_sansio::server::{Progress, ServerChange};
use mcp_sansio_blocking::{Serve, channel};
use notes_service::{Late, Notes, SERVICE};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: notes FILE")?;
    let (late, receiver) = channel();
    // Called by the threads of imports. An error: the server has ended.
    let mut notes = Notes::open(&file, move |token, what| match what {
        Late::Progress { done, total } => drop(late.progress(token, Progress::new(done).of(total))),
        Late::Imported(result) => {
            let _ = late.answer(token, move |notes: &mut Notes, call| notes.imported(token, result, call));
            let _ = late.publish(ServerChange::Resources); // cancelled, some lines are notes nevertheless
        }
    })?;
    Ok(Serve::new(&SERVICE).late(receiver).stdio(&mut notes)?)
}
