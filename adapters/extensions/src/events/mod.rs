//! The [events extension](https://modelcontextprotocol.io/seps/3415-events-extension) for servers
//! (`io.modelcontextprotocol/events`, from 2026-07-28 on): a client learns what happens at the server, without asking a tool
//! again and again. Made with the contract for extensions of `mcp-sansio` alone, without I/O, and without an allocator.
//!
//! 1. The state of the program has [`Events`], the last occurrences in lent memory, and gives it out by [`HasEvents`], with
//!    the constant table of its event types.
//! 2. The service offers [`extension`].
//! 3. A handler, or the loop around, calls [`emit`].
//!
//! ```
//! use mcp_sansio::service::{Extension, Service};
//! use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, emit, extension};
//! use mcp_sansio_host::testing::Conversation;
//!
//! struct Door {
//!     events: Events<'static>,
//! }
//!
//! impl HasEvents for Door {
//!     const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings the bell")
//!         .payload_schema(r#"{"type":"object","properties":{"times":{"type":"integer"}}}"#)];
//!
//!     fn events(&self) -> &Events<'static> {
//!         &self.events
//!     }
//!     fn events_mut(&mut self) -> &mut Events<'static> {
//!         &mut self.events
//!     }
//! }
//!
//! static EXTENSIONS: [Extension<Door>; 1] = [extension()];
//! const SERVICE: Service<'static, Door> = Service::new("door", "1.0").extend(&EXTENSIONS);
//!
//! # fn poll(cursor: &str) -> String {
//! #     format!(r#"{{"jsonrpc":"2.0","id":1,"method":"events/poll","params":{{"name":"bell.rung","cursor":{cursor},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#)
//! # }
//! let start = 77; // a number that is another one after each start of the program
//! let events = Events::new(Box::leak(Box::new([0; 512])), 16, start); // 16 occurrences, 512 bytes for all of them
//! let mut conversation = Conversation::new(&SERVICE, Door { events });
//! assert!(conversation.say(&poll("null"))[0].contains(r#""events":[],"cursor":"77.0""#));
//!
//! emit(conversation.state(), &EventOccurrence::new("bell.rung"), 9_000, &mut |data| data.number("times", 2))?;
//! assert!(conversation.say(&poll(r#""77.0""#))[0].contains(r#""data":{"times":2}}],"cursor":"77.1""#));
//! # Ok::<(), mcp_sansio_extensions::events::EmitError>(())
//! ```
//!
//! The memory is a ring: when it is full, the oldest occurrence is dropped. A client that comes later than that gets the
//! occurrences that are left, with `truncated`. So does one with a cursor from before the last start of the program. All event
//! types share the ring, so `truncated` may also be about occurrences that the client did not want: the extension calls it
//! a possible gap.
//!
//! # Push
//!
//! With [`HasEvents::STREAMS`] and [memory](Events::streams) for them, clients may keep a request open (`events/stream`), and get
//! occurrences as notifications. The loop around calls [`turn`] after each of its own turns, which [delivers](deliver) them, and
//! [`Service::on_cancel`](mcp_sansio::service::Service::on_cancel) calls [`end_stream`].
//!
//! A stream also is a request in flight: the server needs a slot for each, and one more.
//!
//! # Sources with cursors of their own
//!
//! An event type with a [source](EventType::source) does not use the ring: a function reads a mailbox or a table after the cursor that the
//! client gives.
//!
//! # Who may hear what
//!
//! Occurrences are for all callers that may subscribe: [`EventType::check`] refuses subscriptions, [`EventType::matches`]
//! picks their occurrences, and [`EventType::transform`] changes what they show. [`EventType::on_subscribe`] hears of subscriptions.
//!
//! Clients follow events with the module `client` (feature `alloc`).

#[cfg(feature = "alloc")]
pub mod client;
mod event_type;
mod leases;
mod methods;
mod ring;
mod source;
mod streams;
mod subscribers;
#[cfg(feature = "webhooks")]
pub mod webhook;

pub use event_type::{EventType, FORBIDDEN, NOT_FOUND};
pub use methods::{deliver, end_stream, extension, turn};
pub use ring::{EmitError, EventOccurrence, Events, HasEvents, ID, LIST_CHANGED, WebhookMethods, emit};
pub use source::{EventSubscription, Occurrences};
pub use streams::StreamSlot;
pub use subscribers::LeaseSlot;

/// The programs of the page about events are tests too.
#[cfg(all(doctest, feature = "alloc"))]
#[doc = include_str!("../../../../docs/events.md")]
struct EventsDocument;
