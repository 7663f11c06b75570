//! Events by webhook, on hosts (feature `events-webhooks`): the server posts what happens to an address that the client gives, signed with
//! a secret of the client.

mod receiver;
mod signature;

pub use receiver::{DeliveryStatus, LONGEST_BODY, WebhookAnswer, WebhookDelivery, WebhookFollower, receive};
pub use signature::{SignatureError, WebhookSecret};
