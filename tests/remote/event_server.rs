//! A server that tells of a bell, for tests of clients that follow events. Its tools move it, so nothing depends on time.
#![allow(unreachable_pub, dead_code, reason = "shared by tests of several crates")]

use std::io::{Read, Write};
use std::process::Command;

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{MessageLimits, RequestToken};
use mcp_sansio::service::{Call, Extension, HandlerResult, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::events::{
    EventOccurrence, EventType, Events, FORBIDDEN, HasEvents, StreamSlot, deliver, emit, end_stream, extension, turn,
};

pub struct Door {
    pub events: Events<'static>,
    rung: u64,
    closed: bool,
    /// The streams that the client has ended.
    ended: u64,
}

impl HasEvents for Door {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings the bell")
        .check(|door: &Door, _| if door.closed { Err(FORBIDDEN) } else { Ok(()) })];
    const STREAMS: bool = true;

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

impl Door {
    /// Makes a door that keeps three occurrences, for up to this many streams.
    pub fn new(start: u64, streams: usize) -> Self {
        let events = Events::new(vec![0; 4096].leak(), 3, start);
        let mut events = events.streams(vec![StreamSlot::FREE; streams].leak(), vec![0; 128].leak(), streams);
        events.set_poll_interval(1);
        Door { events, rung: 0, closed: false, ended: 0 }
    }

    pub fn cancelled(&mut self, token: RequestToken) {
        end_stream(self, token);
        self.ended += 1;
    }
}

fn ring(door: &mut Door, call: &mut Call<'_>) -> HandlerResult {
    door.rung += 1;
    let (rung, event) = (door.rung, EventOccurrence::new("bell.rung"));
    emit(door, &event, call.now(), &mut |data| data.number("rung", rung)).map_err(|_| "no room")?;
    call.text("rung")
}

static TOOLS: [Tool<Door>; 4] = [
    Tool::new("ring", "Rings the bell", ring),
    Tool::new("close", "Nobody may hear it", |door, call| {
        door.closed = true;
        // Something to deliver, so that the streams are looked at.
        ring(door, call)
    }),
    Tool::new("open", "All may hear it", |door, call| {
        door.closed = false;
        call.text("open")
    }),
    Tool::new("ended", "How many streams were ended", |door, call| call.text(format_args!("ended: {}", door.ended))),
];
static EXTENSIONS: [Extension<Door>; 1] = [extension()];

pub const SERVICE: Service<'static, Door> =
    Service::new("door", "1.0").tools(&TOOLS).extend(&EXTENSIONS).on_cancel(Door::cancelled);

type Lines = LineServer<'static, LineSink<Vec<u8>>>;

/// Returns the command that runs a server of this module, `server` or `silent_server`, with so many streams.
pub fn command(server: &str, streams: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("event_server::{server}"), "--ignored", "--nocapture"]);
    command.env("STREAMS", streams.to_string());
    command
}

/// The server with the bell: the test program runs it when [`command`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    let streams = std::env::var("STREAMS").map_or(0, |streams| streams.parse().unwrap());
    serve(&SERVICE, &mut Door::new(std::process::id().into(), streams), |lines, door| {
        turn(door, 0, |door, token| lines.answer(&SERVICE, door, token.as_custom(), deliver));
    });
}

/// A server without events.
#[test]
#[ignore = "a server"]
fn silent_server() {
    serve(&Service::new("silent", "1.0"), &mut (), |_, ()| {});
}

/// Serves on stdin and stdout.
fn serve<S>(service: &Service<'_, S>, state: &mut S, then: impl Fn(&mut Lines, &mut S)) {
    let mut session = LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()));
    let (mut stdin, mut stdout) = (std::io::stdin(), std::io::stdout());
    loop {
        let next = session.run(service, state);
        then(&mut session, state);
        let written = session.out.pending().len();
        stdout.write_all(session.out.pending()).unwrap();
        stdout.flush().unwrap();
        session.out.sent(written);
        if next == NextStep::Read {
            match stdin.read(session.space()).unwrap() {
                0 => return,
                n => session.filled(n),
            }
        }
    }
}
