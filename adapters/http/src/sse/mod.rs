//! Server-sent events: the format of a `text/event-stream`. See
//! [transports](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http).

mod read;
mod write;

pub use read::{SseDecoder, SseItem, SseMessage};
pub use write::{END, SseEvent, comment};
