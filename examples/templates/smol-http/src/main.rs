//! Notes over HTTP, on smol: tools that change them, and a resource whose subscribers hear of each change.
use std::io;

use async_signal::{Signal, Signals};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Call, HandlerResult, Output, ReadResource, Service, resource, tool};
use mcp_sansio_smol::http::HttpServer;
use smol::stream::StreamExt;

/// The state of the handlers. They run one after the other, so it needs no lock.
#[derive(Default)]
struct Notes(Vec<String>);

/// The most notes that are kept.
const MOST: usize = 1000;

#[derive(Output)]
struct Added {
    number: usize,
}

/// Adds a note
#[tool(output = Added, destructive = false, open_world = false)]
fn add(
    notes: &mut Notes,
    call: &mut Call<'_>,
    #[arguments(min_length = 1, max_length = 500)] text: &str,
) -> HandlerResult {
    if notes.0.len() == MOST {
        return call.error("There is no room for more notes");
    }
    notes.0.push(text.to_owned());
    call.publish(ServerChange::Resource("notes://all"));
    call.output(&Added { number: notes.0.len() })
}

/// Removes all notes
#[tool(idempotent, open_world = false)]
fn clear(notes: &mut Notes, call: &mut Call<'_>) -> HandlerResult {
    notes.0.clear();
    call.publish(ServerChange::Resource("notes://all"));
    call.text("All notes are removed")
}

/// All notes, a line for each
#[resource("notes://all", mime = "text/plain")]
fn all(notes: &mut Notes, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text(notes.0.join("\n"))
}

const SERVICE: Service<'static, Notes> = Service::new("notes", env!("CARGO_PKG_VERSION"))
    .tools(&[ADD, CLEAR])
    .resources(&[ALL])
    .feature(ServerCapability::Subscribe);

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8931".into());
    let server = HttpServer::bind(address)?;
    eprintln!("serving at http://{}/mcp", server.local_addr()?);
    let (stopper, mut signals) = (server.stopper(), Signals::new([Signal::Int, Signal::Term])?);
    smol::spawn(async move {
        while signals.next().await.is_some() {
            stopper.stop(); // calls in flight may finish; the second time ends them
        }
    })
    .detach();
    smol::block_on(server.serve(&SERVICE, &mut Notes::default()))
}

#[cfg(test)]
mod tests {
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::testing::Conversation;
    use serde_json::json;

    use super::*;

    #[test]
    fn notes_in_all_revisions() {
        for revision in Revision::ALL {
            let mut conversation = Conversation::new(const { &SERVICE }, Notes::default());
            conversation.open(revision);
            assert_eq!(conversation.call("add", &json!({ "text": "Milk" })).text(), r#"{"number":1}"#);
            assert!(conversation.call("add", &json!({ "text": "" })).is_error());
            assert!(conversation.read("notes://all").to_string().contains("Milk"));
            assert_eq!(conversation.call("clear", &()).text(), "All notes are removed");
            assert!(!conversation.read("notes://all").to_string().contains("Milk"));
        }
    }

    #[test]
    fn subscribers_hear_of_changes() {
        let mut conversation = Conversation::new(const { &SERVICE }, Notes::default());
        conversation.open(Revision::V2025_11_25);
        conversation.request("resources/subscribe", &json!({ "uri": "notes://all" }));
        let reply = conversation.call("add", &json!({ "text": "Milk" }));
        assert!(reply.notifications[0].contains("notifications/resources/updated"), "{reply}");
    }
}
