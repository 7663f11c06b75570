//! Events by webhook, on hosts (feature `webhooks`): the server posts what happens to an address that the client gives, signed with
//! a secret of the client.
//!
//! 1. The state has [`Webhooks`], by [`HasWebhooks`], and the constant [`WEBHOOKS`](crate::events::HasEvents::WEBHOOKS) is [`methods`].
//! 2. The loop calls [`turn`], and sends what [`Webhooks::next_delivery`] returns: over HTTP, to public addresses alone, without redirects.
//! 3. It calls [`Webhooks::delivered`] with each outcome.
//!
//! A callback is asked first whether it wants deliveries (`verification`), once for each user and URL. The occurrences of a subscription are
//! delivered one after the other, each at most five times in eleven minutes.

mod methods;
mod receiver;
mod signature;
mod table;

pub use methods::{HasWebhooks, complete, methods, turn};
pub use receiver::{DeliveryStatus, LONGEST_BODY, ReceivedDelivery, WebhookAnswer, WebhookFollower, receive};
pub use signature::{SignatureError, WebhookSecret};
pub use table::{DeliveryFailure, WebhookDelivery, WebhookLimits, Webhooks};
