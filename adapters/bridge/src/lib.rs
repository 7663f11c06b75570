//! A bridge between a host and a server of the [Model Context Protocol](https://modelcontextprotocol.io), without I/O and without a
//! clock. The host keeps its connection while the server is restarted, unplugged or updated, and host and server may speak different revisions.
//!
//! A [`Bridge`] is the server of the host, over lines. The program around it has the client of the server behind. It gives the bridge
//! each line of the host ([`line`](Bridge::line)) and each event of the client ([`event`](Bridge::event)), with the client if its
//! connection is open, sends the [`pending`](Bridge::pending) bytes, and opens a connection when the bridge
//! [wants one](Bridge::wants_connection). `mcp-bridge` is such a program.
//!
//! - A request that comes while there is no connection waits up to [`BridgeLimits::wait`].
//! - A request whose connection is lost is sent again if it cannot have run; else it gets an error. No request runs twice.
//! - After each connection but the first, the bridge notifies the host that all lists and all subscribed resources may have changed.
//! - Questions of a server up to 2025-11-25 become `input_required` results for a host of 2026-07-28, and the other way round.
//!
//! All memory grows to [`BridgeLimits`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod behind;
mod bridge;
mod events;
mod hello;
mod host;
mod hub;
mod limits;
mod requests;
mod tools;
mod write;

pub use bridge::{Bridge, CallRecord, Output};
pub use hello::Hello;
pub use host::Host;
pub use hub::{Hub, Work};
pub use limits::BridgeLimits;
pub use tools::ToolFilter;
