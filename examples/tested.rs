//! Tests of one's own service, in memory: no process, no socket, input cut at any byte.
//!
//! Run them: `cargo test --example tested`. The module is [`mcp_sansio_host::testing`].
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::serve_stdio;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Quotient {
    quotient: i64,
}

fn divide(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    match a.checked_div(b) {
        Some(quotient) => call.json(&Quotient { quotient }),
        None => call.error("This division has no result"), // `isError: true`: the model can read it and try again
    }
}

static TOOLS: [Tool<()>; 1] = [Tool::new("divide", "Divides integers", divide)
    .input(r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#)
    .output(r#"{"type":"object","properties":{"quotient":{"type":"integer"}},"required":["quotient"]}"#)];

fn main() -> std::io::Result<()> {
    serve_stdio(&Service::new("tested", "1.0").tools(&TOOLS), &mut ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::testing::{Conversation, Delivery, assert_snapshot};
    use serde_json::json;

    const SERVICE: Service<'static, ()> = Service::new("tested", "1.0").tools(&TOOLS);

    #[test]
    fn division_in_all_revisions() {
        for revision in Revision::ALL {
            // The input comes byte by byte: a server that needs whole lines would fail here.
            let mut conversation = Conversation::new(const { &SERVICE }, ()).cut(Delivery::Bytes);
            conversation.open(revision);
            // The structured content is compared with the output schema as well.
            let reply = conversation.call("divide", &json!({ "a": 7, "b": 2 }));
            assert_eq!(reply.text(), r#"{"quotient":3}"#);
            let reply = conversation.call("divide", &json!({ "a": 1, "b": 0 }));
            assert!(reply.is_error() && reply.text() == "This division has no result");
        }
    }

    #[test]
    fn the_result_as_a_type() {
        let mut conversation = Conversation::new(const { &SERVICE }, ());
        conversation.open(Revision::V2026_07_28);
        let reply = conversation.call("divide", &json!({ "a": 7, "b": 2 }));
        assert_eq!(reply.structured().deserialize::<Quotient>().unwrap().quotient, 3);
    }

    /// The file is in the repository: its diff shows what clients will notice. `UPDATE_SNAPSHOTS=1` writes it.
    #[test]
    fn what_clients_see() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tested.snapshot");
        assert_snapshot(file, &Conversation::new(const { &SERVICE }, ()).snapshot());
    }
}
