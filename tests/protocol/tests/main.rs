//! The tests of the protocol, in one program, so that what they share is compiled once. What counts allocations or sets a hook for panics
//! has the process for itself, and is named in Cargo.toml.

mod around;
mod asking;
mod bad_input;
mod callers;
mod client_examples;
mod clocks;
mod common;
mod connections;
mod dynamic;
mod handlers;
mod held_sink;
mod http_admission;
mod http_asks;
mod http_authorization;
mod http_fleet;
mod http_host;
mod http_late;
mod http_modern;
mod http_old;
mod http_remote;
mod http_requests;
mod http_sealed;
mod http_sessions;
mod http_streams;
mod late;
mod negotiation;
mod new_peer;
mod passing;
mod pipe;
mod publishing;
mod reopening;
mod requests;
mod service;
mod session_end;
mod shares;
mod sizes;
mod spec_examples;
mod targets;
mod trace_context;
mod transcripts;
mod windows;

#[path = "../../remote/programs.rs"]
mod programs;
