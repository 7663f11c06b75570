//! A server over HTTP with events: the tool `ring` rings a bell, and clients that follow `bell.rung` hear it.
//!
//! Specification: <https://modelcontextprotocol.io/seps/3415-events-extension>.
//! Try it: `cargo run --example doorbell -- 8936`, then in two terminals
//! `cargo run --example inspect -- events bell.rung door=2 http://127.0.0.1:8936/mcp` and
//! `cargo run --example inspect -- call ring door=2 http://127.0.0.1:8936/mcp`.
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::json::Raw;
use mcp_sansio::service::{Call, Extension, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::HttpServer;
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, emit, extension};

/// One member, the number of a door.
const DOOR: &str = r#"{"type":"object","properties":{"door":{"type":"integer"}}}"#;

/// The last occurrences.
struct House(Events<'static>);

impl HasEvents for House {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings at a door")
        .input_schema(DOOR)
        .payload_schema(DOOR)
        // Those who ask for a door hear of that one alone.
        .matches(|_, subscription, data| door(subscription.arguments).is_none_or(|wanted| door(data) == Some(wanted)))];

    fn events(&self) -> &Events<'static> {
        &self.0
    }

    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.0
    }
}

fn door(object: Raw<'_>) -> Option<u64> {
    object.get("door")?.u64()
}

fn ring(house: &mut House, call: &mut Call<'_>) -> HandlerResult {
    let (door, now) = (door(call.arguments()).unwrap_or(1), call.now());
    emit(house, &EventOccurrence::new("bell.rung"), now, &mut |data| data.number("door", door))
        .map_err(|_| "the event is too large for the ring")?;
    call.text("rung")
}

static TOOLS: [Tool<House>; 1] = [Tool::new("ring", "Rings at a door", ring).input(DOOR)];
static EXTENSIONS: [Extension<House>; 1] = [extension()];

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).unwrap_or("8936".into());
    let server = HttpServer::bind(format!("127.0.0.1:{port}"))?;
    println!("url: http://{}/mcp", server.local_addr()?);
    // Another number after each start: cursors from before it are known by it.
    let start = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut events = Events::new(Box::leak(Box::new([0; 4096])), 64, start);
    events.set_poll_interval(1_000);
    let service = Service::new("doorbell", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
    Ok(server.serve(&service, &mut House(events))?)
}
