//! Program 4b: notes over stdin and stdout in a loop of the crate `polling`: `notes-polling FILE`.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write, stdin, stdout};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::MessageLimits;
use mcp_sansio::sink::LineSink;
use mcp_sansio_host::channel;
use notes_service::{Notes, SERVICE};
use polling::{Event, Events, Poller};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

const IN: usize = 1;
const OUT: usize = 2;

/// Ends a wait of the poller.
struct Notify(Arc<Poller>);

impl Wake for Notify {
    fn wake(self: Arc<Self>) {
        let _ = self.0.notify();
    }
}

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
    let waker = Waker::from(Arc::new(Notify(poller.clone())));
    let (late, mut receiver) = channel();
    let mut notes = Notes::open(&file, late)?;
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
        server.server.expire(started.elapsed().as_millis() as u64);
        receiver.give(&mut server, &SERVICE, &mut notes);
        let next = server.run(&SERVICE, &mut notes);
        match ready(output.write(server.out.pending())) {
            Ok(sent) => server.out.sent(sent.unwrap_or(0)),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if server.is_done() && server.out.pending().is_empty() {
            return Ok(());
        }
        poller.modify(&input, Event::new(IN, next == NextStep::Read, false))?;
        poller.modify(&output, Event::new(OUT, false, next == NextStep::Write || !server.out.pending().is_empty()))?;
        let deadline = server.server.next_deadline();
        let wait = deadline.map(|at| Duration::from_millis(at).saturating_sub(started.elapsed()));
        let more = receiver.poll_ready(&mut Context::from_waker(&waker)).is_ready();
        let wait = if more { Some(Duration::ZERO) } else { wait };
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
