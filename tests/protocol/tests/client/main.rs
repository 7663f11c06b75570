//! The client's state machine, message by message. Every message that it writes is judged by the oracles, and every
//! scenario is played again with a sink that refuses one write, for each write in turn: the same must come of it.

mod asking;
mod connecting;
mod desk;
mod listening;
mod requests;
mod results;
mod sessions;
mod timing;
