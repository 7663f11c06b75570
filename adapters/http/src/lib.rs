//! The Model Context Protocol over HTTP, sans-IO: no runtime, no sockets, no allocator needed.
//!
//! Two parts that can be used apart, and one that joins them:
//!
//! - [`endpoint`]: the protocol over HTTP without HTTP's bytes. Mount it in any HTTP server.
//! - [`wire`]: HTTP/1.1 as bytes, in and out, over lent storage.
//! - [`host`]: a connection of the second served by the first; drivers are loops around it.
//! - [`client`]: the other side: a server that is reached over HTTP, as an engine and a driver see it.
//!
//! And with the feature `seal`, what protects the state of questions that travels through clients: `seal::HmacSeal`.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub use mcp_sansio;

pub mod client;
pub mod endpoint;
pub mod host;
#[cfg(feature = "seal")]
pub mod seal;
pub mod wire;

/// What an application may want to log. Checked by the compiler.
#[cfg(feature = "defmt")]
const _: () = {
    const fn formats<T: defmt::Format>() {}
    formats::<wire::Step>();
    formats::<wire::Expired>();
    formats::<wire::Status>();
    formats::<endpoint::Pull>();
    formats::<endpoint::StreamId>();
    formats::<endpoint::Access<'_>>();
    formats::<host::Wait>();
    formats::<client::Action>();
    formats::<client::Event<'_>>();
    formats::<client::Why>();
    formats::<client::Blame>();
    formats::<client::Challenge<'_>>();
    formats::<client::Verdict>();
    formats::<client::Fault<'_>>();
    formats::<client::Listening>();
    formats::<client::Transport>();
    formats::<client::UrlError>();
    formats::<client::BadHeader>();
    formats::<client::params::BadAnnotation>();
};
