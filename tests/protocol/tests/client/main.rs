//! The client's state machine, message by message. The oracles judge each message that it writes. Each scenario is
//! played again with a sink that refuses one write, for each write in turn: the outcome must be the same.

mod asking;
mod connecting;
mod desk;
mod layers;
mod listening;
mod passing;
mod requests;
mod results;
mod sessions;
mod timing;
mod tracing;
