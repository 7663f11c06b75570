//! A server over lines whose events come from other threads, and whose timers run without subscribers.

use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::sync::mpsc::{Receiver, channel as plain_channel};
use std::thread;
use std::time::Duration;

use mcp_sansio::service::{Extension, Service};
use mcp_sansio_blocking::{LateSender, Serve, channel};
use mcp_sansio_extensions::events::{
    EventOccurrence, EventType, Events, HasEvents, LeaseSlot, StreamSlot, deliver, emit, end_stream, extension, turn,
};
use serde_json::{Value, json};

/// The longest time for any step. None comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Door {
    events: Events<'static>,
    /// Gets a word at the beginning and the end of each subscription.
    heard: std::sync::mpsc::Sender<&'static str>,
}

impl HasEvents for Door {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings the bell")
        .on_subscribe(|door, _| door.heard.send("begin").unwrap(), |door, _| door.heard.send("end").unwrap())];
    const STREAMS: bool = true;
    const LEASES: bool = true;

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

static EXTENSIONS: [Extension<Door>; 1] = [extension()];

/// A server in a thread: its input, its output, its late channel, and what its hooks say.
struct Running {
    input: std::io::PipeWriter,
    output: BufReader<PipeReader>,
    late: LateSender<Door>,
    heard: Receiver<&'static str>,
    served: thread::JoinHandle<()>,
}

fn start() -> Running {
    let ((input, writer), (output, answers)) = (pipe().unwrap(), pipe().unwrap());
    let ((late, receiver), (sender, heard)) = (channel(), plain_channel());
    let served = thread::spawn(move || {
        let events = Events::new(vec![0; 1024].leak(), 8, 77)
            .streams(vec![StreamSlot::FREE; 2].leak(), vec![0; 64].leak(), 2)
            .leases(vec![LeaseSlot::FREE; 2].leak(), vec![0; 64].leak(), 2, 1);
        let service = Service::new("door", "1.0").extend(&EXTENSIONS).on_cancel(end_stream);
        let serve = Serve::new(&service).late(receiver).tick(|service, door, server, out, now| {
            turn(door, now, |door, token| service.answer(door, token.as_custom(), server, out, deliver).map(drop))
        });
        serve.grace(Duration::ZERO).over(input, answers, &mut Door { events, heard: sender }).unwrap();
    });
    Running { input: writer, output: BufReader::new(output), late, heard, served }
}

impl Running {
    fn ask(&mut self, method: &str) {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let params = json!({ "name": "bell.rung", "_meta": meta });
        writeln!(self.input, "{}", json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params })).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn end(self) {
        drop(self.input);
        self.served.join().unwrap();
    }
}

#[test]
fn another_thread_emits() {
    let mut server = start();
    server.ask("events/stream");
    assert_eq!(server.hear()["method"], "notifications/events/active");
    let late = server.late.clone();
    let ringing = thread::spawn(move || {
        for door in [1, 2] {
            late.update(move |house| {
                // The time is that of the thread.
                let event = EventOccurrence::new("bell.rung").timestamp(door * 1_000);
                emit(house, &event, 0, &mut |data| data.number("door", door)).unwrap();
            })
            .unwrap();
        }
    });
    for door in [1, 2] {
        let heard = server.hear();
        assert_eq!(heard["params"]["data"], json!({ "door": door }));
        assert_eq!(heard["params"]["timestamp"], format!("1970-01-01T00:00:0{door}.000Z"));
    }
    ringing.join().unwrap();
    server.end();
}

/// `watch` runs only while a client is subscribed, and a client that polls is not.
#[test]
fn a_lease_lapses_without_any_message() {
    let mut server = start();
    server.ask("events/poll");
    assert_eq!(server.hear()["result"]["events"], json!([]));
    assert_eq!(server.heard.recv_timeout(PATIENCE), Ok("begin"));
    assert_eq!(server.heard.recv_timeout(PATIENCE), Ok("end"));
    server.end();
}
