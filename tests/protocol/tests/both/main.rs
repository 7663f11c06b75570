//! Our client and our server, joined in memory, in all revisions. With any schedule, each request has exactly one
//! outcome, and notifications keep their order.

mod http;
mod pair;
mod world;
