//! A request as the server hands it out, and the terms on which it is served.

use crate::json::{JsonKind, ParseError, Raw, Text};
use crate::protocol::{ClientCapabilities, LoggingLevel, Method};
use crate::revision::Revision;
use crate::rpc::{Envelope, MessageShape, RequestMembers};

/// A message taken apart, see [requests](https://modelcontextprotocol.io/specification/2025-11-25/basic#requests). It
/// borrows the message.
#[derive(Clone, Copy, Debug)]
pub struct IncomingRequest<'a> {
    pub(crate) envelope: Envelope<'a>,
    pub(crate) id: Raw<'a>,
    pub(crate) name: Text<'a>,
    pub(crate) method: Method,
    /// It is a request, and its id and method are noted.
    is_request: bool,
    /// A message was read into it.
    is_used: bool,
}

/// The revision that a request is served under, the capabilities of its client, and the level of its log messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    pub(crate) client: ClientCapabilities,
    pub(crate) level: Option<LoggingLevel>,
}

impl<'a> IncomingRequest<'a> {
    /// Reads a message of any [shape](Envelope::shape), and forgets the one that was read before.
    ///
    /// # Errors
    /// The [`ParseError`]: the message is not valid JSON or not an object.
    pub fn read(&mut self, message: &'a [u8]) -> Result<(), ParseError> {
        if self.is_used {
            *self = IncomingRequest::empty();
        }
        self.is_used = true;
        self.envelope.read(message)
    }

    /// Returns the shape of the message that was [read](IncomingRequest::read). Of a request, it notes `id` and method:
    /// [`id`](IncomingRequest::id) and [`method`](IncomingRequest::method) return them from then on. A second call costs
    /// nothing.
    pub fn shape(&mut self) -> MessageShape<'a> {
        if self.is_request {
            return MessageShape::Request { id: self.id, method: self.name };
        }
        let shape = self.envelope.shape();
        if let MessageShape::Request { id, method } = shape {
            (self.id, self.name, self.method) = (id, method, Method::from_name(&method));
            self.is_request = true;
        }
        shape
    }

    /// Returns the message, taken apart.
    #[must_use]
    pub const fn envelope(&self) -> &Envelope<'a> {
        &self.envelope
    }

    /// Makes an empty one, to [read](IncomingRequest::read) a message into.
    #[must_use]
    pub fn empty() -> Self {
        IncomingRequest {
            envelope: Envelope::EMPTY,
            id: Raw::trusted(b"0"),
            name: Text::new(b"", false),
            method: Method::Other,
            is_request: false,
            is_used: false,
        }
    }

    /// Returns the method; [`Method::Other`] for one that the protocol does not have.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Returns the name of the method.
    #[must_use]
    pub const fn method_name(&self) -> Text<'a> {
        self.name
    }

    /// Returns the `id`, unchanged.
    #[must_use]
    pub const fn id(&self) -> Raw<'a> {
        self.id
    }

    /// Returns `params`; an object, as the server has checked.
    #[must_use]
    pub const fn params(&self) -> Option<Raw<'a>> {
        self.envelope.params
    }

    /// Returns the members of `params` that the protocol knows.
    #[must_use]
    pub const fn members(&self) -> &RequestMembers<'a> {
        &self.envelope.members
    }

    /// Returns `params._meta`, unchanged.
    #[must_use]
    pub const fn meta(&self) -> Option<Raw<'a>> {
        self.envelope.members.meta
    }

    /// Returns `params.uri`, if it is a string.
    #[must_use]
    pub fn target_uri(&self) -> Option<Text<'a>> {
        self.envelope.members.uri?.text_of(self.envelope.members.plain)
    }

    /// Returns `params.reason` of `notifications/cancelled`, if it is a string. See
    /// [cancellation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation).
    #[must_use]
    pub fn reason(&self) -> Option<Text<'a>> {
        self.params()?.get("reason")?.text()
    }

    /// Returns `params.arguments`, or `{}` if it is absent; `None` if it is not an object.
    #[must_use]
    pub fn arguments(&self) -> Option<Raw<'a>> {
        match self.envelope.members.arguments {
            None => Some(Raw::trusted(b"{}")),
            Some(arguments) => object(arguments),
        }
    }
}

/// Returns the value if it is an object.
pub(crate) fn object(value: Raw<'_>) -> Option<Raw<'_>> {
    (value.kind() == JsonKind::Object).then_some(value)
}
