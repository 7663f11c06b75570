//! A connection that gets bytes has the same outcome for any cuts.

mod answers;
mod connections;
mod exercise;
mod heads;
mod requests;

/// Counts the bytes that a connection reads or moves, in this thread.
pub(super) mod work {
    std::thread_local! {
        static DONE: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    }

    pub(in crate::http1) fn add(bytes: usize) {
        DONE.set(DONE.get() + bytes);
    }

    pub(super) fn take() -> usize {
        DONE.replace(0)
    }
}

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use super::*;
use crate::endpoint::RequestHeaders;
use exercise::run;
use mcp_sansio::FullError;
#[cfg(feature = "alloc")]
use mcp_sansio::memory::Store;
use mcp_sansio::sink::Sink;

const LIMITS: ConnectionLimits = ConnectionLimits::DEFAULT.line(64).head(256).body(32).drain(64);

fn outcome_in(sizes: (usize, usize), input: &[u8], cuts: &[u8]) -> String {
    let mut seen = Vec::new();
    run(input, cuts, sizes, LIMITS, &mut |bytes| seen.extend_from_slice(bytes));
    String::from_utf8_lossy(&seen).replace('\r', "")
}

/// Returns the outcome of `input`, which must be the same for any cuts.
fn outcome(input: &str) -> String {
    let input = input.as_bytes();
    let whole = outcome_in((1024, 1024), input, &[]);
    assert_eq!(outcome_in((1024, 1024), input, &[1]), whole, "byte by byte: {}", input.escape_ascii());
    for cut in 1..input.len().min(256) {
        let cut = cut as u8;
        assert_eq!(outcome_in((1024, 1024), input, &[cut, 0]), whole, "cut at {cut}: {}", input.escape_ascii());
        assert_eq!(outcome_in((1024, 1024), input, &[cut]), whole, "by {cut}: {}", input.escape_ascii());
    }
    whole
}

/// Returns the status of the one answer that ends the connection.
fn refusal(input: &str) -> u16 {
    let outcome = outcome(input);
    let status = outcome.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
    let Some(status) = status else { panic!("not refused: {} gives {outcome}", input.escape_default()) };
    let expected =
        format!("HTTP/1.1 {status} {}\nContent-Length: 0\nConnection: close\n\n\nclosed", Status(status).reason());
    assert_eq!(outcome, expected, "{}", input.escape_default());
    status
}

/// Returns the application's view of the only request, which must be accepted.
fn accepted(input: &str) -> String {
    let outcome = outcome(input);
    let request = outcome.strip_prefix('\n').and_then(|rest| rest.split_once(">\nHTTP/1.1 202 Accepted\n"));
    let Some((request, _)) = request else { panic!("refused: {} gives {outcome}", input.escape_default()) };
    format!("{request}>")
}

const CHUNKED: &str = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";

// Answers.

/// Returns a connection that got `input`.
fn connected<'m>(stores: (&'m mut [u8], &'m mut [u8]), input: &str) -> Connection<'m, 8> {
    let mut connection = Connection::<8>::new(stores.0, stores.1, LIMITS);
    feed(&mut connection, input);
    connection
}

fn feed(connection: &mut Connection<'_, 8>, input: &str) {
    connection.space()[..input.len()].copy_from_slice(input.as_bytes());
    connection.filled(input.len());
}

fn sent(connection: &mut Connection<'_, 8>) -> String {
    let text = String::from_utf8(connection.pending().to_vec()).unwrap();
    connection.sent(text.len());
    text
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
