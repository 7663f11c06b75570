//! Program 4b: notes over stdin and stdout in a loop of the crate `polling`: `notes-polling FILE`.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write, stdin, stdout};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{MessageLimits, Progress, ServerChange};
use mcp_sansio::sink::LineSink;
use notes_service::{Late, Notes, SERVICE};
use polling::{Event, Events, Poller};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

const IN: usize = 1;
const OUT: usize = 2;

/// Returns `None` if the descriptor is not ready.
fn ready(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: notes-polling FILE")?;
    let poller = Arc::new(Poller::new()?);
    let (late, happened) = channel();
    let waker = poller.clone();
    let mut notes = Notes::open(&file, move |token, what| {
        let _ = late.send((token, what));
        let _ = waker.notify();
    })?;
    // Without the buffers of the standard library: the session has its own.
    let mut input = std::fs::File::from(stdin().as_fd().try_clone_to_owned()?);
    let mut output = std::fs::File::from(stdout().as_fd().try_clone_to_owned()?);
    for (fd, key) in [(&input, IN), (&output, OUT)] {
        fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        // SAFETY: both live as long as the poller.
        unsafe { poller.add(fd.as_raw_fd(), Event::none(key))? };
    }
    let (started, mut events) = (Instant::now(), Events::new());
    let mut server = LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()));
    loop {
        server.expire(started.elapsed().as_millis() as u64);
        for (token, what) in happened.try_iter() {
            match what {
                Late::Progress { done, total } => drop(server.progress(token, Progress::new(done).of(total))),
                Late::Imported(result) => {
                    let _ =
                        server.answer(&SERVICE, &mut notes, token, |notes, call| notes.imported(token, result, call));
                    server.publish(ServerChange::Resources); // cancelled, some lines are notes nevertheless
                }
            }
        }
        let next = server.run(&SERVICE, &mut notes);
        match ready(output.write(server.pending())) {
            Ok(sent) => server.sent(sent.unwrap_or(0)),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if server.is_done() && server.pending().is_empty() {
            return Ok(());
        }
        poller.modify(&input, Event::new(IN, next == NextStep::Read, false))?;
        poller.modify(&output, Event::new(OUT, false, next == NextStep::Write || !server.pending().is_empty()))?;
        let deadline = server.server().next_deadline();
        let wait = deadline.map(|at| Duration::from_millis(at).saturating_sub(started.elapsed()));
        events.clear();
        poller.wait(&mut events, wait)?;
        if events.iter().any(|event| event.key == IN) {
            match ready(input.read(server.space()))? {
                Some(0) => server.end_of_input(),
                n => server.filled(n.unwrap_or(0)),
            }
        }
    }
}
