//! Authorization of the Model Context Protocol, sans-IO: no runtime, no sockets, no clock, no randomness of its own.
//!
//! - [`flow`] (with `alloc`): the client. [`Authorization`] gives one [`Step`] at a time: fetch this, let a person visit
//!   this URL, send the request again, or refused. It begins with a request that the server
//!   [rejected](Authorization::rejected).
//! - [`config`] (with `alloc`): the redirect URI of the application, its registration, its grant.
//! - [`store`] (with `alloc`): registrations and tokens, a value that can be kept as JSON.
//! - [`challenge`]: reads `WWW-Authenticate`.
//! - [`pkce`]: the proof key of an authorization code.
//! - [`url`]: which URLs are acceptable, and where metadata is found.
//! - [`form`] reads and writes `application/x-www-form-urlencoded`.
//! - [`jose`]: compact JWS, keys, and the traits [`Signer`](jose::Signer) and [`Verifier`](jose::Verifier).
//! - [`dpop`]: proofs of possession, both sides.
//! - [`resource_server`]: the checks of a token.
//!
//! See [authorization](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization).
//!
//! # Without an allocator
//!
//! The client's flow needs the feature `client`, and an allocator: [`flow`], [`config`], [`error`], [`steps`], [`store`] and
//! [`form::decode`]. All else works in lent memory: challenges, signatures, proofs, and the checks of a resource server.
//! A device that knows its authorization server asks for a token by itself, here with a key in place of a password:
//!
//! ```
//! # #[cfg(feature = "es256")] {
//! use mcp_sansio::sink::{LineSink, SliceStorage};
//! use mcp_sansio_auth::dpop::Proof;
//! use mcp_sansio_auth::form::FormWriter;
//! use mcp_sansio_auth::jose::{Es256Key, client_assertion};
//! use mcp_sansio_http::client::{Fetch, FetchLimits, FetchRequest};
//!
//! let key = Es256Key::from_bytes(&[7; 32])?; // or a `Signer` that asks a secure element
//! let (url, now) = ("https://as.example/token", 1_700_000_000);
//! let (mut assertion, mut body, mut proof) = ([0; 512], [0; 1024], [0; 768]);
//! let assertion = client_assertion(&key, "board-7", "https://as.example", now, &[1; 16], &mut assertion)?;
//! let mut out = LineSink::new(SliceStorage::new(&mut body));
//! let mut form = FormWriter::new(&mut out);
//! form.field("grant_type", "client_credentials")?;
//! form.field("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")?;
//! form.field("client_assertion", assertion)?;
//! form.field("resource", "https://example.com/mcp")?;
//! let proof = Proof::new("POST", url, now, &[2; 16]).sign(&key, &mut proof)?; // the token is bound to the key
//! let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("DPoP", proof)];
//! let request = FetchRequest::post(url, out.pending()).headers(&headers);
//! let (mut texts, mut output, mut input, mut answer) = ([0; 1024], [0; 2048], [0; 512], [0; 1024]);
//! let stores = [(&mut texts[..]).into(), (&mut output[..]).into(), (&mut input[..]).into(), (&mut answer[..]).into()];
//! let fetch = Fetch::new(&request, FetchLimits::DEFAULT, 0, stores)?; // then as `Fetch` says
//! assert_eq!((fetch.url().host(), fetch.url().port()), ("as.example", 443));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | a device | uses | program in `examples/firmware/footprint/src` |
//! |---|---|---|
//! | sends requests with a token that is bound to its key | [`dpop::Proof`] in `HttpHooks::sending`, after `HttpClient::sign_heads` | `bound.rs` |
//! | has its key in a secure element | [`jose::Signer`] | `element.rs`, where the driver goes |
//! | gets its token by itself | [`jose::client_assertion`], [`form::FormWriter`], `Fetch` | above |
//! | checks tokens | `ResourceServer`, `ReplayTable` over lent memory | `guard.rs` |
//!
//! The board must bring:
//!
//! | what | details |
//! |---|---|
//! | a key | [`Signer::sign`](jose::Signer::sign) gets the message and gives r and s, 64 bytes. With `es256` the key is in memory: a proof takes 11 million instructions (0.2 s at 50 MHz), a server's check 39 million |
//! | the time | in seconds since 1970: proofs may be 5 minutes off. Ask for it at the start (SNTP) if no clock runs on a battery |
//! | random bytes | 16 for each proof (`jti`). They need not be secret, but must never repeat for one key, also after a restart |
//! | memory | a client: 768 bytes for [`Proof::sign`](dpop::Proof::sign), and 1,024 more in the slot's `output` and in the `inbox` of `HttpClient`. A server: three quarters of the longest token and proof, a head of 2 KB, 24 bytes for each proof in ten minutes |
//! | stack | 4.5 KB for a client, 10 KB with `es256`; 10 and 14 KB for a server |
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "client")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod challenge;
#[cfg(feature = "client")]
mod client;
pub mod dpop;
pub mod form;
pub mod jose;
pub mod pkce;
pub mod resource_server;
mod time;
pub mod url;

#[cfg(feature = "client")]
pub use client::{
    config::{self, AuthorizationConfig, GrantType, RegisteredClient},
    error::{self, AuthorizationError, FetchFailure},
    flow::{self, Authorization},
    steps::{self, Credentials, Environment, FetchStep, Outcome, Rejection, Response, Step},
    store::{self, CredentialStore},
    well_known,
};
pub use time::UnixSeconds;

/// The program of the README is a test too.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
