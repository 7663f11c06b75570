//! Two processes of `sysmon` with one key, behind a proxy that gives each connection to the next one: sessions of every
//! revision go on at both, also when one is killed and started anew.
#![cfg(target_os = "linux")]

#[path = "remote/programs.rs"]
mod programs;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{Client, Http, HttpClientConfig, HttpOptions, Ignore};

/// A server, killed when it is dropped.
struct Process(Child, SocketAddr);

impl Process {
    fn start(keys: &[&Path]) -> Process {
        let mut command = Command::new(programs::example("sysmon"));
        command.args(["--http", "127.0.0.1:0"]);
        for key in keys {
            command.arg("--session-key").arg(key);
        }
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|url| url.split('/').next()).expect(&line);
        Process(child, address.parse().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A proxy that gives each connection to the next server that takes it.
struct Proxy {
    url: String,
    servers: Arc<Mutex<Vec<SocketAddr>>>,
    /// The connections that each place in the list has got.
    taken: Arc<[AtomicUsize; 2]>,
}

impl Proxy {
    fn start(servers: Vec<SocketAddr>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let servers = Arc::new(Mutex::new(servers));
        let taken = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let (list, counts) = (Arc::clone(&servers), Arc::clone(&taken));
        thread::spawn(move || {
            for (turn, client) in listener.incoming().enumerate() {
                let list = list.lock().unwrap().clone();
                let reached =
                    (0..2).map(|by| (turn + by) % 2).find_map(|at| Some((at, TcpStream::connect(list[at]).ok()?)));
                let (Ok(client), Some((at, server))) = (client, reached) else { continue };
                counts[at].fetch_add(1, Relaxed);
                let both = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || forward(client, server));
                thread::spawn(move || forward(both.1, both.0));
            }
        });
        Proxy { url, servers, taken }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    let mut chunk = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn key(name: &str, byte: u8) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mcp-session-key-{}-{name}", std::process::id()));
    std::fs::write(&path, [byte; 32]).unwrap();
    path
}

/// A client whose requests have a connection each, so that they go to both servers in turn.
fn client<'m>(url: &str, info: &'m ClientInfo<'m>) -> Client<'m, Http<'m>, Ignore> {
    let options = HttpOptions::new().config(HttpClientConfig::DEFAULT.idle_time(0).listen(false));
    Client::new(Http::with(url, info, options).unwrap(), Ignore)
}

#[test]
fn sessions_go_on_at_both_and_survive_a_kill() {
    let key = key("kill", 7);
    let first = Process::start(&[&key]);
    let mut second = Process::start(&[&key]);
    let proxy = Proxy::start(vec![first.1, second.1]);
    for revision in Revision::ALL.into_iter().filter(|revision| *revision > Revision::V2024_11_05) {
        let info = ClientInfo::new("test", "1").revisions(Revisions::NONE.with(revision));
        let mut client = client(&proxy.url, &info);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let before = [0, 1].map(|at| proxy.taken[at].load(Relaxed));
        for round in 0..3 {
            for _ in 0..8 {
                let answer = client.request(&Request::call("load")).unwrap();
                assert!(answer.as_str().contains("one_minute"), "{answer:?}");
            }
            if round == 1 {
                // Killed, and started anew at another port: the session has been there before.
                second = Process::start(&[&key]);
                proxy.servers.lock().unwrap()[1] = second.1;
            }
        }
        let after = [0, 1].map(|at| proxy.taken[at].load(Relaxed));
        assert!((0..2).all(|at| after[at] >= before[at] + 8), "{before:?} {after:?}");
        client.close();
    }
    drop(second);
    std::fs::remove_file(key).unwrap();
}

/// Without a key in common, the second process does not know the session.
#[test]
fn without_a_key_in_common_they_do_not() {
    let (key, other) = (key("own", 1), key("other", 2));
    let (first, second) = (Process::start(&[&key]), Process::start(&[&other]));
    let (before, after) = (Process::start(&[&key, &other]), Process::start(&[&other, &key]));
    let info = ClientInfo::new("test", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));
    let calls = |servers: Vec<SocketAddr>| {
        let proxy = Proxy::start(servers);
        let mut client = client(&proxy.url, &info);
        let connected = client.connect().is_ok();
        connected && (0..8).all(|_| client.request(&Request::call("load")).is_ok())
    };
    assert!(!calls(vec![first.1, second.1]));
    // While keys change, each accepts the key of the other.
    assert!(calls(vec![before.1, after.1]));
    assert!(calls(vec![first.1, before.1]));
    for file in [key, other] {
        std::fs::remove_file(file).unwrap();
    }
}
