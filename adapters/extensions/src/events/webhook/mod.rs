//! Events by webhook, on hosts (feature `events-webhooks`): the server posts what happens to an address that the client gives, signed with
//! a secret of the client.

mod signature;

pub use signature::{SignatureError, WebhookSecret};
