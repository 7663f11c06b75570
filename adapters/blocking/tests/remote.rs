//! Clients over HTTP: servers that behave, and servers that do not.
#![cfg(all(feature = "client", feature = "http", unix))]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::client::reply::Reply;
use mcp_sansio::client::views::{CallResult, Tools};
use mcp_sansio::client::{Filter, Lost, Profile, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientFeature;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::{Call, Outcome, Service, Tool};
use mcp_sansio_blocking::client::{Client, Error, Event, Http, HttpOptions, Ignore, Link, Options, Verdict};
use mcp_sansio_blocking::http::{HttpServer, Stopper};

fn add(_: &mut (), call: &mut Call<'_>) -> Outcome {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", a + b))
}

static TOOLS: [Tool<()>; 1] = [Tool::new("add", "Adds", add)];

struct Running {
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn start() -> Running {
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper().unwrap());
    let thread = thread::spawn(move || server.serve(&Service::new("own", "1").tools(&TOOLS), &mut ()));
    Running { address, stopper, thread: Some(thread) }
}

impl Running {
    fn url(&self) -> String {
        format!("http://localhost:{}/mcp", self.address.port())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

static PROFILE: Profile<'static> = Profile::new("test", "1");

#[test]
fn a_whole_life_in_every_revision() {
    let server = start();
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        let profile = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut client = Client::new(Http::new(&server.url(), &profile).unwrap(), Ignore);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let arguments = Raw::constant(r#"{"a":1,"b":2}"#);
        let call = Request::call("add").arguments(&arguments);
        let tokens: Vec<_> = (0..20).map(|_| client.send(&call).unwrap()).collect();
        for token in tokens {
            assert!(client.wait(token).unwrap().as_str().contains("\"3\""));
        }
        let begun = Instant::now();
        client.close();
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
}
