//! Event types: entries of `events/list`, and what a program decides about their subscriptions.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::schema::check_schema;
use mcp_sansio::json::{Object, Raw};

/// The error -32023 `NotFound` for an event type, also for one that a caller must not know of: see [`EventType::check`].
pub const NOT_FOUND: RpcError<'static> =
    RpcError::new(-32023, "NotFound").with_data(Raw::constant(r#"{"kind":"event"}"#));

/// The error -32024 `Forbidden`: the caller may not subscribe to this event type with these arguments. See
/// [`EventType::check`].
pub const FORBIDDEN: RpcError<'static> = RpcError::new(-32024, "Forbidden");

/// A subscription: what a client wants to hear of. The server keeps none of it for polls.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EventSubscription<'s> {
    /// The `arguments`, a JSON object; `{}` if the client sent none.
    pub arguments: Raw<'s>,
    /// The authenticated user.
    pub principal: Option<&'s str>,
}

type Check<S> = fn(&S, &EventSubscription<'_>) -> Result<(), RpcError<'static>>;
type Matches<S> = fn(&S, &EventSubscription<'_>, Raw<'_>) -> bool;
type Transform<S> = fn(&S, &EventSubscription<'_>, Raw<'_>, &mut Object<'_, '_>);

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

    /// Sets `_meta` of the entry, a JSON object. Default: absent.
    pub const fn meta(self, object: Raw<'static>) -> Self {
        EventType { meta: Some(object), ..self }
    }

    /// Sets the function that checks a subscription, at each `events/poll`, and for a stream each time when it is delivered: return
    /// [`RpcError::invalid_params`] for arguments that do not match the schema, and [`FORBIDDEN`] or [`NOT_FOUND`] for what the
    /// caller may not hear of. Default: all may subscribe, with any object as arguments.
    pub const fn check(self, check: fn(&S, &EventSubscription<'_>) -> Result<(), RpcError<'static>>) -> Self {
        EventType { check, ..self }
    }

    /// Sets the function that says whether an occurrence with this `data` belongs to a subscription. Default: each does.
    #[doc(alias = "match")]
    pub const fn matches(self, matches: fn(&S, &EventSubscription<'_>, Raw<'_>) -> bool) -> Self {
        EventType { matches, ..self }
    }

    /// Sets the function that writes the members of `data` for a subscription, such as without what this caller may not see. It
    /// may run more than once. Default: `data` as it was emitted.
    pub const fn transform(self, transform: fn(&S, &EventSubscription<'_>, Raw<'_>, &mut Object<'_, '_>)) -> Self {
        EventType { transform, ..self }
    }
}

impl<S> core::fmt::Debug for EventType<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EventType").field("name", &self.name).finish_non_exhaustive()
    }
}
