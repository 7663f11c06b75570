//! A Redis for the tests.
#![allow(unreachable_pub, dead_code, reason = "shared by the tests beside it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A Redis of its own, without files, on a port of this machine.
pub struct Redis {
    child: Option<Child>,
    port: u16,
}

impl Redis {
    /// Returns `None`, with a word, if `redis-server` is missing. In the gate that is a failure.
    pub fn new() -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("MCP_REDIS_REQUIRED").is_none(), "no redis-server");
            let _ = writeln!(std::io::stderr(), "left out: no redis-server");
            return None;
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut redis = Redis { child: None, port: free.local_addr().unwrap().port() };
        drop(free);
        redis.start();
        Some(redis)
    }

    pub fn start(&mut self) {
        let port = self.port.to_string();
        let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"];
        let child = Command::new("redis-server").args(arguments).stdout(Stdio::null()).spawn();
        self.child = Some(child.unwrap());
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "Redis does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sets an option of the running Redis.
    pub fn set(&self, name: &str, value: &str) {
        let mut link = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(link, "CONFIG SET {name} {value}\r\n").unwrap();
        let mut answer = [0; 5];
        link.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+OK\r\n");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
