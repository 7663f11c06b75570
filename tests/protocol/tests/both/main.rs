//! Our client and our server, joined in memory, in all revisions: whatever the schedule, each request has exactly one
//! outcome, and notifications come in order.

mod http;
mod pair;
mod world;
