//! A request as handlers and dispatchers see it, and the terms it is served on.

use crate::json::{Fault, JsonKind, Raw, Text};
use crate::protocol::{ClientFeatures, Level, Method};
use crate::revision::Revision;
use crate::rpc::{Envelope, Members, Meta};

/// A request. Everything in it borrows the message.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub(crate) envelope: Envelope<'a>,
    pub(crate) id: Raw<'a>,
    pub(crate) name: Text<'a>,
    pub(crate) method: Method,
}

/// Which revision a request is served under, and what its client can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) revision: Revision,
    pub(crate) client: ClientFeatures,
    pub(crate) level: Option<Level>,
}

impl<'a> Request<'a> {
    /// Reads a message into it, whatever it is: the caller finds out by its [shape](Envelope::shape).
    ///
    /// # Errors
    /// The message is not JSON, or no object.
    pub fn read(&mut self, message: &'a [u8]) -> Result<(), Fault> {
        self.envelope.read(message)
    }

    /// The message, taken apart.
    #[must_use]
    pub const fn envelope(&self) -> &Envelope<'a> {
        &self.envelope
    }

    /// None yet: a place to [read](Request::read) a message into.
    #[must_use]
    pub fn empty() -> Self {
        Request {
            envelope: Envelope::EMPTY,
            id: Raw::trusted(b"0"),
            name: Text::new(b"", false),
            method: Method::Other,
        }
    }

    /// Its method; [`Method::Other`] for one that the protocol does not know.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Its method's name as it came.
    #[must_use]
    pub const fn method_name(&self) -> Text<'a> {
        self.name
    }

    /// Its id as it came.
    #[must_use]
    pub const fn id(&self) -> Raw<'a> {
        self.id
    }

    /// Its params, always an object if there.
    #[must_use]
    pub const fn params(&self) -> Option<Raw<'a>> {
        self.envelope.params
    }

    /// The members of its params that the protocol knows.
    #[must_use]
    pub const fn members(&self) -> &Members<'a> {
        &self.envelope.members
    }

    /// Its `_meta`, as it came.
    #[must_use]
    pub const fn meta(&self) -> Option<Raw<'a>> {
        self.envelope.members.meta
    }

    /// The members of its `_meta` that the protocol knows.
    #[must_use]
    pub const fn known_meta(&self) -> &Meta<'a> {
        &self.envelope.meta
    }

    /// `params.name`, if it is a string.
    #[must_use]
    pub fn target_name(&self) -> Option<Text<'a>> {
        self.envelope.members.name?.text_of(self.envelope.members.plain)
    }

    /// `params.uri`, if it is a string.
    #[must_use]
    pub fn target_uri(&self) -> Option<Text<'a>> {
        self.envelope.members.uri?.text_of(self.envelope.members.plain)
    }

    /// `params.reason`, if it is a string: why a request is cancelled.
    #[must_use]
    pub fn reason(&self) -> Option<Text<'a>> {
        self.params()?.get("reason")?.text()
    }

    /// `params.arguments`: an object, empty if there was none; `None` if it is not an object.
    #[must_use]
    pub fn arguments(&self) -> Option<Raw<'a>> {
        match self.envelope.members.arguments {
            None => Some(Raw::trusted(b"{}")),
            Some(arguments) => object(arguments),
        }
    }
}

/// The value, if it is an object.
pub(crate) fn object(value: Raw<'_>) -> Option<Raw<'_>> {
    (value.kind() == JsonKind::Object).then_some(value)
}
