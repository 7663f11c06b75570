//! The end of a program while a call is in flight: the same for the examples that are mounted in an HTTP server of others.

use std::io::Read;
use std::net::TcpStream;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// Sends SIGTERM when the answer to the call on a socket has begun. The answer comes whole, and the program ends without an error.
pub(crate) fn is_answered_to_its_end(mut call: TcpStream, program: &mut Child) {
    call.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0; 12];
    call.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let id = program.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let mut rest = String::new();
    call.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"three\""), "{rest}");
    let begun = Instant::now();
    let ended = loop {
        match program.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(begun.elapsed() < Duration::from_secs(5), "it has not ended"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(ended.success(), "{ended}");
}
