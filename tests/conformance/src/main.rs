//! The server for the official conformance suites: all revisions in one process, at `http://127.0.0.1:PORT/mcp`. The
//! suites prescribe the answers of the tools. With `--mount axum` or `hyper` it is mounted there, with `mio` the driver of that example serves it. With `--key` it
//! seals its sessions, so that each process with the key serves them. With `--fleet URL --process N` it is one of several processes,
//! with the Redis at that URL. With `--issuer URL` it takes only tokens of that issuer for itself, with
//! `--extensions 2025-11-25` it declares extensions for one scenario. With `--events public` or `loopback` it is the server of `events.py` instead.

mod audience;
mod events;
mod extensions;
mod mount;
mod scopes;

use std::io;
use std::sync::{LazyLock, OnceLock};
use std::thread;

use audience::Guard;
use mcp_sansio::json::Raw;
use mcp_sansio_blocking::channel;
use mcp_sansio_blocking::http::{
    EndpointConfig, HttpServer, HttpServerOptions, MessageAccess, RequestHead, SessionSeal, StreamPolicy,
};
use mcp_sansio_conformance_fixture::{Fixture, RandomBytes, SERVICE, go_on};
use mcp_sansio_extensions::tasks::Tasks;
use mcp_sansio_fleet::{FleetOptions, RedisFleet};
use mcp_sansio_http::seal::HmacSeal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The key from the command line: processes that replace each other share one. Without it, a key is made when it is
/// first needed, and states end with the process.
static KEY: OnceLock<[u8; 32]> = OnceLock::new();

static SEAL: LazyLock<HmacSeal> = LazyLock::new(|| {
    HmacSeal::new(KEY.get_or_init(|| {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random bytes");
        key
    }))
});

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mounted, arguments) = match &arguments[..] {
        ["--mount", server, rest @ ..] => (Some(*server), rest),
        rest => (None, rest),
    };
    let (mut fleet, mut process, mut issuer, mut extends, mut reach) = (None, 0, None, false, None);
    let port = match *arguments {
        ["--port", port, ref rest @ ..] if rest.len().is_multiple_of(2) => {
            for option in rest.chunks(2) {
                match *option {
                    ["--key", key] => {
                        let key = read_key(key).ok_or_else(|| io::Error::other("a key has 64 hexadecimal digits"))?;
                        let _ = KEY.set(key);
                    }
                    ["--fleet", url] if mounted.is_none() => fleet = Some(url),
                    ["--issuer", url] if mounted.is_none() => issuer = Some(url),
                    ["--extensions", "2025-11-25"] if mounted.is_none() => extends = true,
                    ["--events", told @ ("public" | "loopback")] if mounted.is_none() => reach = Some(told),
                    ["--process", number] => process = number.parse().map_err(io::Error::other)?,
                    _ => return Err(usage()),
                }
            }
            port.parse().map_err(io::Error::other)?
        }
        _ => return Err(usage()),
    };
    if let Some(reach) = reach {
        return events::serve(port, reach);
    }
    match mounted {
        None => serve(port, fleet, process, issuer, extends),
        Some("axum") => mount::axum(port),
        Some("hyper") => mount::hyper(port),
        Some("mio") => mount::mio(port),
        Some(other) => Err(io::Error::other(format!("no mount in {other}"))),
    }
}

fn usage() -> io::Error {
    io::Error::other(
        "usage: conformance-server [--mount axum|hyper|mio] --port N [--key HEX] [--fleet URL --process N] [--issuer URL] \
         [--extensions 2025-11-25] [--events public|loopback]",
    )
}

fn read_key(hex: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if hex.len() != 64 {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

/// The random bytes of the system.
struct System;

impl RandomBytes for System {
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has random bytes");
    }
}

/// The time for which a finished task is kept, in milliseconds.
const KEEP: u64 = 60_000;

/// A scenario checks streams, and prefers them to JSON.
const CONFIG: EndpointConfig<'static> = EndpointConfig::DEFAULT.streams(StreamPolicy::Preferred);

/// Makes the state; `process` is the number of the process, or 0.
fn fixture(process: u16) -> Fixture {
    Fixture::new(Tasks::growing(256, 1 << 20).process(process.into()), KEEP, Box::leak(Box::new(System)))
}

/// Returns the configuration of the server at a port, and the URL of its metadata, which challenges name.
fn config(port: u16) -> io::Result<(EndpointConfig<'static>, String)> {
    let site = format!("http://127.0.0.1:{port}");
    let metadata = format!(r#"{{"resource":"{site}/mcp","authorization_servers":["http://127.0.0.1:9797"]}}"#);
    let metadata = Raw::parse(metadata.leak().as_bytes()).map_err(io::Error::other)?;
    Ok((CONFIG.resource_metadata(metadata), format!("{site}/.well-known/oauth-protected-resource/mcp")))
}

fn serve(port: u16, fleet: Option<&str>, process: u16, issuer: Option<&str>, extends: bool) -> io::Result<()> {
    // A proxy finds the process of a stream of 2024-11-05 by the path that its client is told.
    let post_path = if process == 0 { CONFIG.post_path } else { format!("/messages/{process}").leak() };
    let (config, metadata_url) = config(port)?;
    let config = config.post_path(post_path);
    let guard = issuer.map(|issuer| Guard::new(issuer, format!("http://127.0.0.1:{port}/mcp"), &metadata_url));
    let authorize = |head: &RequestHead<'_>| match &guard {
        Some(guard) => guard.authorize(head),
        None => scopes::authorize(head),
    };
    let permit = |message: &MessageAccess<'_>| scopes::permit(message, &metadata_url);
    let mut options = HttpServerOptions::new().config(config).seal(&*SEAL);
    if KEY.get().is_some() {
        options = options.session_seal(SessionSeal::new(&*SEAL));
    }
    let (late, receiver) = channel();
    let fleet = match fleet {
        Some(url) => {
            let news = |news| eprintln!("fleet: {news:?}");
            let options = FleetOptions::new("conformance");
            Some(RedisFleet::start(url, options, &late, news).map_err(io::Error::other)?)
        }
        None => None,
    };
    let server = HttpServer::bind(("127.0.0.1", port))?.options(options);
    stop_on_signals(&server)?;
    let server = server.authorize(&authorize).permit(&permit);
    let (mut server, mut fixture) = (server.tick(go_on), fixture(process));
    if let Some(fleet) = &fleet {
        fixture.last_states = Some(Box::leak(Box::new(fleet.tasks(&late))));
        server = server.fleet(fleet.link()).late(receiver);
    }
    server.serve(if extends { &extensions::SERVICE } else { &SERVICE }, &mut fixture)
}

fn stop_on_signals<S>(server: &HttpServer<'_, S>) -> io::Result<()> {
    let stopper = server.stopper();
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    Ok(())
}
