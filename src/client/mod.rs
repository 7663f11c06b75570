//! The other half: what a client reads out of a server's results, and what it answers a server's questions with.
//!
//! - [`views`]: typed views over results, borrowed from the message;
//! - [`form`]: what an elicitation asks of the user, and whether an answer fits;
//! - [`reply`]: what a question of the server is answered with;
//! - [`cache`]: results kept as long as the server allows.

pub mod cache;
pub mod form;
pub mod reply;
pub mod views;
