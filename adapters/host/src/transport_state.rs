//! The questions of a client to its transport, the same in every driver.

use std::time::Duration;

use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{Client, ClientHandle, TransportError};
use mcp_sansio::server::Millis;

use crate::ExcludedTool;

/// The questions of a client to its transport, answered without input and output. `T` is the function of a trace.
pub trait TransportState<'m, T> {
    /// Returns the engine and its sink.
    fn handle(&mut self) -> ClientHandle<'_, 'm>;

    /// Returns the engine.
    fn engine(&self) -> &Client<'m>;

    /// Returns the latest time of the next turn.
    fn next_deadline(&self) -> Option<Millis>;

    /// Returns the facts that the transport knows about a loss in the last turn.
    fn explain(&self, why: TransportError) -> String;

    /// Calls `trace` with every message.
    fn trace(&mut self, trace: T);

    /// Returns whether requests have to wait until more is written.
    fn is_full(&mut self) -> bool {
        false
    }

    /// Returns whether the stream for the server's requests is still being opened. The first request waits for it.
    fn is_settling(&self) -> bool {
        false
    }

    /// Returns `false` if the server's own requests and notifications cannot arrive: over HTTP it may have refused their GET stream.
    fn hears_server(&self) -> bool {
        true
    }

    /// Returns the longest time to wait for that stream.
    fn settle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns why a tool must be left out of the server's list; `None` if it can be used.
    fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        let _ = tool;
        None
    }

    /// Returns the tools that were left out of the server's lists.
    fn excluded(&self) -> Vec<ExcludedTool> {
        Vec::new()
    }
}
