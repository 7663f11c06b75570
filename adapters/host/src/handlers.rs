//! Handlers that many applications need.

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler};

/// A handler that ignores every event. It fits a client that declares no capability, because the server may then ask
/// it nothing.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Ignore;

impl ClientHandler for Ignore {
    fn event(&mut self, _: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {}
}
