//! Subscriptions of one session.

use mcp_sansio_bench::web::{Client, Server, post, session_fields};

use crate::streams::get;
use crate::{call, exchange_all, report, spent, wait_for};

/// Measures `size` subscriptions of one session: making them, and a change of each.
pub(crate) fn measure(driver: &str, program: &str, size: usize) {
    let server = Server::start(program, 1);
    let mut client = Client::connect(server.port);
    let session = client.open_session();
    let subscribe = |n: usize| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"scale://resource/{n:05}"}}}}"#
        );
        post(&body, &session_fields(&session))
    };
    let us = spent(&server, || exchange_all(&mut client, (0..size).map(subscribe)));
    report("subscribe-us", driver, size, us / size as f64);
    let mut stream = Client::connect(server.port);
    stream.open_stream(&get(&session));
    let rounds = 4_000 / size;
    let us = spent(&server, || {
        for _ in 0..rounds {
            exchange_all(&mut client, (0..size).map(|n| call("touch", &format!("scale://resource/{n:05}"))));
            let heard = wait_for(&mut stream, "notifications/resources/updated", size);
            assert_eq!(heard, size, "each change is heard once");
            stream.received.clear();
        }
    });
    report("update-us", driver, size, us / (rounds * size) as f64);
}
