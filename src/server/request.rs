//! A request as the server hands it out, and the terms on which it is served.

use crate::json::{JsonKind, ParseError, Raw, Text};
use crate::protocol::{ClientCapabilities, LoggingLevel, Method};
use crate::revision::Revision;
use crate::rpc::{Envelope, MessageShape};

/// A message taken apart, see [requests](https://modelcontextprotocol.io/specification/2025-11-25/basic#requests). It
/// borrows the message.
#[derive(Clone, Copy, Debug)]
pub struct IncomingRequest<'a> {
    /// The message, taken apart. Its `params` are an object, as the server has checked.
    pub envelope: Envelope<'a>,
    /// The `id`, unchanged.
    pub id: Raw<'a>,
    /// The name of the method.
    pub name: Text<'a>,
    /// The method; [`Method::Other`] for one that the protocol does not have.
    pub method: Method,
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

    /// Returns the shape of the message that was [read](IncomingRequest::read). Of a request, it sets
    /// [`id`](IncomingRequest::id), [`name`](IncomingRequest::name) and [`method`](IncomingRequest::method). A second call costs
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

    /// Returns `params.uri`, if it is a string.
    #[must_use]
    pub fn target_uri(&self) -> Option<Text<'a>> {
        self.envelope.members.uri?.text_of(self.envelope.members.plain)
    }

    /// Returns `params.reason` of `notifications/cancelled`, if it is a string. See
    /// [cancellation](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation).
    #[must_use]
    pub fn reason(&self) -> Option<Text<'a>> {
        self.envelope.params?.get("reason")?.text()
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
