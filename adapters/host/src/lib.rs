//! The common parts of the adapters of [`mcp_sansio`] for operating systems: processes, pipes, files of certificates,
//! clocks. Nothing here is blocking or asynchronous. Applications use `mcp_sansio_blocking` or `mcp_sansio_smol`,
//! which re-export these items. Other adapters can be built on this crate.
//!
//! - [`OwnedResult`], [`ServerHello`]: results that own their bytes; [`ClientError`]: the reason why there is no result.
//! - [`ClientOptions`], [`PageLimits`]: times and limits of a client.
//! - [`Stopper`]: ends a server from any task or thread.
//! - [`LateSender`], [`LateReceiver`]: answers, progress and changes from outside of the handlers, for servers in all adapters.
//! - [`layers`]: a journal, a switch that allows only what reads, limits of calls and of time, for servers.
//! - [`Work`]: a thread or a future for a call that takes time, with progress and cancellation.
//! - `ChildOptions`, `Stderr`, `ChildExit` (feature `client`): a server as a child process.
//! - `LineSession`, `ChildSession`, `ChildShutdown` (feature `client`): a client on lines and one of a child process, without their
//!   pipes: the end of the connection and its reason, a second start, the steps that stop the process.
//! - [`Ignore`]: a handler that ignores events; [`Backlog`]: lines that wait for a writer.
//! - [`OwnedTool`], [`OwnedTools`]: tools made at run time.
//! - `input_schema`, `output_schema` (feature `schemars`): schemas of tools from types with `JsonSchema`.
//! - [`schema`]: checks a value against a JSON Schema.
//! - [`testing`]: runs a service in memory, for tests of services.
//! - [`ServerEntry`], [`plain_json`]: the servers in the files of hosts, such as `mcp.json`.
//! - [`TransportState`]: the questions of a client to its transport; `HttpSession` (features `client`, `http`): a client over HTTP without its sockets.
//! - `HttpOptions`, `HttpPlace`, `HttpOrigin` (features `client`, `http`), `HttpServerOptions`, `SpareDescriptors` (feature `http`): HTTP around
//!   sockets; `NetSocket`, `HttpListener`, `HttpStream`: sockets of TCP and of Unix, with or without TLS.
//! - `AuthorizationFlow`, `AuthorizationDriver` (features `client`, `http`): the decision about a challenge, and the driver of its steps.
//! - [`LineServing`], [`line_server!`]: a server on lines without its reader and writer, and its builder.
//! - `HttpServing`, `HttpSetup`, `http_server!` (feature `http`): an HTTP server without its sockets, and its builder.
//! - `Fetcher` (features `client`, `http`): one GET or POST to any URL.
//! - `AuthorizationOptions`, `TokenStore` (feature `tls`, on Unix): OAuth for a client over HTTP.
//! - `Outcomes`, `OutcomeHandler` (feature `client`): the outcomes that callers of a client wait for, parked or awaiting.
//! - `take_task_outcome`, `may_pass`, `FollowedTasks` (feature `client`): give outcomes and notifications to a task that is followed.
//! - `take_follower_input`, `FollowerInput` (feature `client`): give answers and notifications to a subscription to events that is followed.
//! - `HttpStream`, `TlsConnector`: a socket that does not block, with TLS over it (feature `tls`).
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "tls", unix))]
mod auth;
mod backlog;
#[cfg(feature = "client")]
mod child;
mod direction;
mod dynamic_tools;
mod error;
#[cfg(feature = "schemars")]
mod flat_schema;
mod handlers;
#[cfg(feature = "http")]
mod http;
mod late;
pub mod layers;
mod line_serving;
mod log_message;
mod options;
#[cfg(feature = "client")]
mod outcomes;
mod pages;
mod results;
pub mod schema;
mod server_entry;
mod stop;
#[cfg(feature = "client")]
mod tasks;
pub mod testing;
mod transport_state;
mod work;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use mcp_sansio;

#[cfg(all(feature = "tls", unix))]
pub use auth::*;
pub use backlog::Backlog;
pub use direction::Direction;
pub use dynamic_tools::{OwnedTool, OwnedTools};
pub use error::{ClientError, ExcludedTool, ServerError};
#[cfg(feature = "schemars")]
pub use flat_schema::{FlatSchemaError, input_schema, output_schema};
pub use handlers::Ignore;
#[cfg(feature = "http")]
pub use http::*;
pub use late::{LateReceiver, LateSendError, LateSender, LateTarget, channel, channel_of};
pub use line_serving::LineServing;
pub use log_message::LogMessage;
pub use options::{ClientOptions, IN_FLIGHT};
pub use pages::{PageCursor, PageLimits};
pub use results::{OwnedResult, ServerHello};
pub use server_entry::{ServerEntry, plain_json};
pub use stop::Stopper;
pub use transport_state::TransportState;
pub use work::{Job, NewWork, Work, WorkFuture};
#[cfg(feature = "client")]
pub use {
    child::{
        ChildExit, ChildOptions, ChildSession, ChildShutdown, LineSession, Stderr, StderrLog, StopSignal, signal_group,
    },
    outcomes::{FollowerInput, OutcomeHandler, Outcomes, take_follower_input},
    tasks::{FollowedTasks, may_pass, take_task_outcome},
};

/// Locks what is not half changed if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
