//! Requests in flight, each with its connection, whose answers come later.

use mcp_sansio_bench::Kind;
use mcp_sansio_bench::web::{Client, Load, Server, rate};

use crate::{MEASURE, WARM, call, exchange, report, spent, wait_for};

/// Measures a request among `size` others that wait, and the late answers.
pub(crate) fn measure(driver: &str, program: &str, size: usize) {
    let server = Server::start(program, 1);
    let mut loads: Vec<_> = (0..16).map(|_| Load::new(server.port, Kind::Modern32)).collect();
    let mut among = |curve: &str| {
        rate(&server, &mut loads, WARM);
        let (_, us) = rate(&server, &mut loads, MEASURE);
        report(curve, driver, size, us);
    };
    among("in-flight-us-alone");
    let mut clients: Vec<_> = (0..size).map(|_| Client::connect(server.port)).collect();
    for client in &mut clients {
        client.send(&call("wait", ""));
    }
    among("in-flight-us-among");
    let mut releasing = Client::connect(server.port);
    let us = spent(&server, || {
        exchange(&mut releasing, &call("release", ""));
        for client in &mut clients {
            assert_eq!(wait_for(client, "\"released\"", 1), 1, "an answer comes once");
        }
    });
    report("late-answer-us", driver, size, us / size as f64);
}
