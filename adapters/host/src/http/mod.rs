//! HTTP without sockets: what is decided about a client, a server and their connections.

mod builder;
#[cfg(feature = "client")]
pub(crate) mod client;
mod net;
mod server_options;
mod serving;
mod shutdown;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
#[cfg(unix)]
mod unix;

#[cfg(feature = "client")]
pub use client::*;
pub use net::{HttpListener, HttpStream, NetSocket, no_address};
pub use server_options::{HttpServerOptions, SpareDescriptors};
pub use serving::{HttpEndpoint, HttpServing, HttpSetup};
pub use tls::TlsConnector;
