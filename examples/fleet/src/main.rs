//! Notes that several processes serve behind a plain proxy, which keeps a session at one of them.
//!
//! The processes share a key, which seals sessions and questions; Redis, so that a change reaches the clients of all; and a file with
//! the notes, which stands for a database. `examples/fleet/run.sh` starts three of them.
//!
//! usage: mcp-sansio-fleet-example NUMBER PORT KEY-FILE NOTES-FILE REDIS-URL
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Progress, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, InputRequest, ReadResource, Resource, Service, Tool};
use mcp_sansio_blocking::http::{EndpointConfig, HttpServer, HttpServerOptions, SessionSeal};
use mcp_sansio_blocking::{Work, channel};
use mcp_sansio_fleet::{FleetOptions, RedisFleet};
use mcp_sansio_http::seal::HmacSeal;

const NOTES: &str = "notes://all";
const SURE: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#);

struct Notes {
    file: PathBuf,
    work: Work<Notes>,
}

/// Adds a note. Clients that subscribed to the notes hear of it at all processes.
fn add(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    let text = call.arg::<&str>("text")?;
    let added = OpenOptions::new().append(true).create(true).open(&notes.file).and_then(|mut f| writeln!(f, "{text}"));
    if let Err(error) = added {
        return call.error(format_args!("{error}"));
    }
    call.publish(ServerChange::Resource(NOTES));
    call.text("added")
}

/// Asks first. From 2026-07-28 on the answer may arrive at another process.
fn clear(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("sure") else {
        return call.ask(&[InputRequest::elicit("sure", "Delete all notes?", SURE)], b"");
    };
    if !answer.accepted() || answer.value("sure").and_then(|sure| sure.bool()) != Some(true) {
        return call.text("kept");
    }
    if let Err(error) = fs::write(&notes.file, "") {
        return call.error(format_args!("{error}"));
    }
    call.publish(ServerChange::Resource(NOTES));
    call.text("cleared")
}

/// Takes two seconds. A client of a session whose connection breaks meanwhile comes back, and misses nothing.
fn count(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    let file = notes.file.clone();
    let counting = notes.work.thread(move |job| {
        for step in 1..=4 {
            thread::sleep(Duration::from_millis(500));
            job.progress(Progress::new(step).of(4));
        }
        Ok::<_, io::Error>(format!("{} notes", fs::read_to_string(&file).unwrap_or_default().lines().count()))
    });
    counting.answer(call)
}

fn read(notes: &mut Notes, read: &mut ReadResource<'_>) -> HandlerResult {
    // Without a file there are no notes yet.
    read.text(fs::read_to_string(&notes.file).unwrap_or_default())
}

static TOOLS: [Tool<Notes>; 3] = [
    Tool::new("add", "Adds a note", add)
        .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#),
    Tool::new("clear", "Deletes all notes, if the user agrees", clear),
    Tool::new("count", "Counts the notes, slowly", count),
];
static RESOURCES: [Resource<Notes>; 1] = [Resource::new(NOTES, "All notes", read).mime("text/plain")];

fn serve() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [number, port, key, file, redis] = &arguments[..] else {
        return Err("usage: mcp-sansio-fleet-example NUMBER PORT KEY-FILE NOTES-FILE REDIS-URL".into());
    };
    let service = Service::new("notes", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .feature(ServerCapability::Subscribe)
        .on_cancel(|notes: &mut Notes, token| notes.work.cancel(token));

    // One key for all processes: 32 secure random bytes.
    let bytes = fs::read(key).map_err(|error| format!("{key}: {error}"))?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| format!("{key}: a key has 32 bytes"))?;
    let seal: &'static HmacSeal = Box::leak(Box::new(HmacSeal::new(&bytes)));
    // The proxy finds the process of a client of 2024-11-05 by the path to which it posts.
    let config = EndpointConfig::DEFAULT.post_path(format!("/messages/{number}").leak());
    let options = HttpServerOptions::new().config(config).seal(seal).session_seal(SessionSeal::new(seal));

    let port: u16 = port.parse().map_err(|_| format!("{port} is no port"))?;
    let (late, receiver) = channel();
    // Before the address is bound: no request comes to a process that does not know which sessions have ended. Without Redis it serves its own clients, and says so.
    let fleet = RedisFleet::start(redis, FleetOptions::new("notes"), &late, move |news| eprintln!("{port}: {news:?}"))?;
    let server = HttpServer::bind(("127.0.0.1", port)).map_err(|error| format!("port {port}: {error}"))?;
    let mut notes = Notes { file: file.into(), work: Work::new(late, 64) };
    Ok(server.options(options).fleet(fleet.link()).late(receiver).serve(&service, &mut notes)?)
}

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
