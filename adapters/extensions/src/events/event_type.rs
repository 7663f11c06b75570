//! Event types: entries of `events/list`, and what a program decides about their subscriptions.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::schema::check_schema;
use mcp_sansio::json::{Object, Raw};

use crate::events::source::{EventSubscription, Occurrences};

/// The error -32023 `NotFound` for an event type, also for one that a caller must not know of: see [`EventType::check`].
pub const NOT_FOUND: RpcError<'static> =
    RpcError::new(-32023, "NotFound").with_data(Raw::constant(r#"{"kind":"event"}"#));

/// The error -32024 `Forbidden`: the caller may not subscribe to this event type with these arguments. See
/// [`EventType::check`].
pub const FORBIDDEN: RpcError<'static> = RpcError::new(-32024, "Forbidden");

type Check<S> = fn(&S, &EventSubscription<'_>) -> Result<(), RpcError<'static>>;
type Matches<S> = fn(&S, &EventSubscription<'_>, Raw<'_>) -> bool;
type Transform<S> = fn(&S, &EventSubscription<'_>, Raw<'_>, &mut Object<'_, '_>);
type Source<S> = fn(&S, &EventSubscription<'_>, &mut Occurrences<'_>) -> Result<(), RpcError<'static>>;
type Hook<S> = fn(&mut S, &EventSubscription<'_>);

/// An event type (`EventDescriptor` of `events/list`).
#[must_use]
pub struct EventType<S: 'static> {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) input: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) meta: Option<Raw<'static>>,
    pub(crate) check: Check<S>,
    pub(crate) matches: Matches<S>,
    pub(crate) transform: Transform<S>,
    offered: fn(&S) -> bool,
    /// A source with cursors of its own, in place of the ring.
    pub(crate) source: Option<Source<S>>,
    pub(crate) hooks: Option<(Hook<S>, Hook<S>)>,
}

impl<S> EventType<S> {
    /// Makes an event type with its name, such as `incident.created`, and a description for the model.
    ///
    /// # Panics
    /// In a constant: it does not compile. If there is no name, if a character of it needs an escape in JSON, or if there is
    /// no description.
    pub const fn new(name: &'static str, description: &'static str) -> Self {
        assert!(!name.is_empty(), "an event type needs a name");
        assert!(!description.is_empty(), "an event type needs a description");
        let bytes = name.as_bytes();
        let mut at = 0;
        while let Some((byte, _)) = bytes.split_at(at).1.split_first() {
            assert!(*byte >= b' ' && *byte != b'"' && *byte != b'\\', "the name of an event type needs no escapes");
            at += 1;
        }
        const ANY: &str = r#"{"type":"object"}"#;
        let transform: Transform<S> = |_, _, data, out| out.spread(data);
        EventType {
            name,
            description,
            input: ANY,
            payload: ANY,
            meta: None,
            check: |_, _| Ok(()),
            matches: |_, _, _| true,
            transform,
            offered: |_| true,
            source: None,
            hooks: None,
        }
    }

    /// Sets `inputSchema`, the JSON Schema of the arguments. Default: any object. Arguments are not compared with it: that is
    /// done by [`check`](EventType::check). A derived one is the constant `SCHEMA` of
    /// `mcp_sansio::service::schema::Arguments`.
    ///
    /// # Panics
    /// In a constant: it does not compile. If it is not a JSON Schema.
    #[doc(alias = "inputSchema")]
    pub const fn input_schema(self, schema: &'static str) -> Self {
        assert!(check_schema(schema).is_ok(), "the input schema is not a JSON Schema");
        EventType { input: schema, ..self }
    }

    /// Sets `payloadSchema`, the JSON Schema of `data`. Default: any object. What is [emitted](crate::events::emit) is not
    /// compared with it.
    ///
    /// # Panics
    /// In a constant: it does not compile. If it is not a JSON Schema.
    #[doc(alias = "payloadSchema")]
    pub const fn payload_schema(self, schema: &'static str) -> Self {
        assert!(check_schema(schema).is_ok(), "the payload schema is not a JSON Schema");
        EventType { payload: schema, ..self }
    }

    mcp_sansio::const_setters! {
        /// Sets `_meta` of the entry, a JSON object. Default: absent.
        meta(object: Raw<'static>) => meta = Some(object);
        /// Sets the function that checks a subscription, at each `events/poll`, and for a stream each time when it is delivered: return
        /// [`RpcError::invalid_params`] for arguments that do not match the schema, and [`FORBIDDEN`] or [`NOT_FOUND`] for what the
        /// caller may not hear of. Default: all may subscribe, with any object as arguments.
        check(check: Check<S>) => check = check;
        /// Sets the function that says whether an occurrence with this `data` belongs to a subscription. Default: each does.
        #[doc(alias = "match")]
        matches(matches: Matches<S>) => matches = matches;
        /// Sets the function that writes the members of `data` for a subscription, such as without what this caller may not see. It
        /// may run more than once. Default: `data` as it was emitted.
        transform(transform: Transform<S>) => transform = transform;
        /// Sets the function that reads occurrences from a source with cursors of its own, such as a mailbox or a table: it
        /// [pushes](Occurrences::push) those after [`Occurrences::cursor`] that belong to the subscription, oldest first, until one is not
        /// taken, and says the [end](Occurrences::end). It may run more than once for a request. The ring is not used for this event type
        /// then, nor are [`matches`](EventType::matches) and [`transform`](EventType::transform). Streams read it each
        /// [poll interval](crate::events::Events::set_poll_interval), and after [`Events::wake`](crate::events::Events::wake). An error is
        /// the answer to a poll; on a stream it is a notification, and the source is read again later. Default: the ring, which [`emit`](crate::events::emit) fills.
        source(source: Source<S>) => source = Some(source);
        /// Sets the functions that are called when a subscription begins and when it is over, such as to watch a channel for it and to leave
        /// it. A stream begins and ends once. A client that polls has a [lease](crate::events::HasEvents::LEASES), which begins with its first
        /// poll, is renewed by each further one, and lapses without: so `begin` may come again for the same subscription. Default: none.
        #[doc(alias = "on_unsubscribe")]
        on_subscribe(begin: Hook<S>, end: Hook<S>) => hooks = Some((begin, end));
        /// Sets the function that says whether the server has this event type now. Without, it is not listed, and its subscriptions end as
        /// [`NOT_FOUND`]. After a change, publish [`LIST_CHANGED`](crate::events::LIST_CHANGED) and call
        /// [`Events::wake`](crate::events::Events::wake). Default: always.
        offered(offered: fn(&S) -> bool) => offered = offered;
    }

    pub(crate) fn is_offered(&self, state: &S) -> bool {
        (self.offered)(state)
    }

    /// Checks a subscription when it begins, and while it lasts.
    pub(crate) fn admit(&self, state: &S, subscription: &EventSubscription<'_>) -> Result<(), RpcError<'static>> {
        if self.is_offered(state) { (self.check)(state, subscription) } else { Err(NOT_FOUND) }
    }
}

mcp_sansio::debug_fields!(impl<S> for EventType<S> { name });
