//! Program 1: notes over stdin and stdout: `notes FILE`. One thread reads, imports have theirs, all else is done here.

use std::error::Error;
use std::io::{Read, stdin, stdout};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{MessageLimits, Progress, RequestToken, ServerChange};
use mcp_sansio_blocking::WriterOut;
use notes_service::{Late, Notes, SERVICE};

enum Event {
    Input(Vec<u8>),
    Late(RequestToken, Late),
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: notes FILE")?;
    let (sender, events) = channel();
    let late = sender.clone();
    let mut notes = Notes::open(&file, move |token, what| drop(late.send(Event::Late(token, what))))?;
    std::thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(n) = stdin().read(&mut bytes)
            && sender.send(Event::Input(bytes[..n].to_vec())).is_ok()
            && n > 0
        {}
    });
    let mut server = LineServer::growing(MessageLimits::default(), WriterOut::new(stdout()));
    let started = Instant::now();
    loop {
        server.expire(started.elapsed().as_millis() as u64);
        while server.run(&SERVICE, &mut notes) == NextStep::Write {}
        server.out().flush();
        if server.is_done() || server.out().failed() {
            return Ok(server.out().result()?);
        }
        // An error is the end of the second: questions expire then.
        match events.recv_timeout(Duration::from_secs(1)) {
            Ok(Event::Input(bytes)) if bytes.is_empty() => server.end_of_input(),
            Ok(Event::Input(bytes)) => {
                let mut bytes = &bytes[..];
                while let n @ 1.. = bytes.read(server.space())? {
                    server.filled(n);
                    while server.run(&SERVICE, &mut notes) == NextStep::Write {}
                }
            }
            Ok(Event::Late(token, Late::Progress { done, total })) => {
                server.progress(token, Progress::new(done).of(total));
            }
            Ok(Event::Late(token, Late::Imported(result))) => {
                let done =
                    server.answer(&SERVICE, &mut notes, token, |notes, call| notes.imported(token, result, call));
                if done.is_err() {
                    server.publish(ServerChange::Resources); // cancelled, but some lines are notes already
                }
            }
            Err(_) => {}
        }
    }
}
