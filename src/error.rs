//! Error responses: their codes, messages and `data`.

use core::fmt;

use crate::json::object::{Object, array};
use crate::json::{Raw, Text, write};
use crate::protocol::{ClientCapability, code};
use crate::revision::{Era, Revision, Revisions};
use crate::rpc::{begin, head};
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

/// Defines an error whose text follows from the variant: each variant with its text for people, which may name its values.
#[doc(hidden)]
#[macro_export]
macro_rules! error_enum {
    ($(#[$about:meta])* $name:ident {
        $(
            $(#[$case_about:meta])*
            $case:ident
            $(($value:ident: $type:ty))?
            $({ $($(#[$field_about:meta])* $field:ident: $kind:ty,)* })?
            => $text:literal,
        )*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$case_about])* $case $(($type))? $({ $($(#[$field_about])* $field: $kind,)* })?,)*
        }

        impl core::fmt::Display for $name {
            #[allow(unused_variables, reason = "a text need not have all values")]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $($name::$case $(($value))? $({ $($field),* })? => write!(f, $text),)*
                }
            }
        }

        impl core::error::Error for $name {}
    };
}

/// An error response to a request: `code`, `message` and `data`. See [error
/// responses](https://modelcontextprotocol.io/specification/2025-11-25/basic#error-responses).
///
/// ```
/// use mcp_sansio::error::{RpcError, write_error};
/// use mcp_sansio::sink::{LineSink, SliceStorage};
/// let mut bytes = [0; 128];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes));
/// write_error(&mut out, None, &RpcError::invalid_request("no id"))?;
/// assert_eq!(out.pending(), b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"no id\"}}\n");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RpcError<'e> {
    /// The JSON-RPC code: from [`code`], or one of the application outside -32768 to -32000.
    pub code: i32,
    /// One sentence for people.
    pub message: &'e str,
    /// Writes `data` of `value` and `served`, if there is one. A program links the writers of the errors that it can send.
    data: Option<WriteData>,
    value: &'e [u8],
    served: Revisions,
    /// The error refuses the message itself, see [`MessageHead::Refusal`].
    pub(crate) refuses: bool,
}

type WriteData = fn(&RpcError<'_>, &mut Writer<'_>);

/// Returns a text of the core for people; an empty one with the feature `terse`, so that the program has none of them.
pub(crate) const fn words(text: &'static str) -> &'static str {
    if cfg!(feature = "terse") { "" } else { text }
}

impl<'e> RpcError<'e> {
    /// Makes an error with this code and message.
    pub const fn new(code: i32, message: &'e str) -> Self {
        RpcError { code, message, data: None, value: b"", served: Revisions::NONE, refuses: false }
    }

    /// Sets `data`.
    pub const fn with_data(self, data: Raw<'e>) -> Self {
        self.with(|failure, out| out.raw(Raw::trusted(failure.value)), data.as_bytes())
    }

    const fn with(self, data: WriteData, value: &'e [u8]) -> Self {
        RpcError { data: Some(data), value, ..self }
    }

    /// Makes it an error that refuses the message itself, before the server has done anything for it.
    pub const fn refusing(self) -> Self {
        RpcError { refuses: true, ..self }
    }

    /// Makes -32600: the message is not a request.
    pub const fn invalid_request(message: &'e str) -> Self {
        RpcError::new(code::INVALID_REQUEST, message)
    }

    /// Makes -32601: the method does not exist here.
    pub const fn method_not_found() -> Self {
        RpcError::new(code::METHOD_NOT_FOUND, words("Method not found"))
    }

    /// Makes -32602: the params are wrong.
    pub const fn invalid_params(message: &'e str) -> Self {
        RpcError::new(code::INVALID_PARAMS, message)
    }

    /// Makes -32603: the server failed.
    pub const fn internal(message: &'e str) -> Self {
        RpcError::new(code::INTERNAL, message)
    }

    /// Makes -1: the user rejected the sampling request ([error
    /// handling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#error-handling)).
    pub const fn refused() -> Self {
        RpcError::new(code::USER_REFUSED, words("The user rejected the request"))
    }

    /// Makes -32603, sent in place of a reply that does not fit.
    pub(crate) const fn too_large() -> Self {
        RpcError::internal(words("The answer is larger than the output buffer"))
    }

    /// Makes the error for an unknown resource, with `data.uri`: -32002 up to 2025-11-25, then -32602. See
    /// [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#error-handling).
    pub const fn unknown_resource(uri: Text<'e>, revision: Revision) -> Self {
        let code = if revision.has_resource_not_found() { code::RESOURCE_NOT_FOUND } else { code::INVALID_PARAMS };
        let write: WriteData = |failure, out| {
            let mut object = Object::open(out);
            failure.write_decodable(object.key("uri"));
            object.close()
        };
        RpcError::new(code, words("Resource not found")).with(write, uri.raw())
    }

    /// Does the same as [`unknown_resource`](RpcError::unknown_resource) for a URI without the escapes of JSON.
    pub(crate) const fn unknown_resource_at(uri: &'e str, revision: Revision) -> Self {
        let write: WriteData = |failure, out| {
            out.put(b"{\"uri\":\"");
            out.write(|out| write::escape_bytes(out, failure.value));
            out.put(b"\"}")
        };
        RpcError::unknown_resource(Text::EMPTY, revision).with(write, uri.as_bytes())
    }

    /// Makes -32022: the revision is not served without a handshake. `data.requested` is the revision,
    /// `data.supported` lists the revisions of `served` without a handshake. See
    /// [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning).
    pub const fn unsupported_version(requested: Text<'e>, served: Revisions) -> Self {
        let write: WriteData = |failure, out| {
            let mut object = Object::open(out);
            write_revisions(object.key("supported"), failure.served);
            failure.write_decodable(object.key("requested"));
            object.close()
        };
        let failure = RpcError::new(code::UNSUPPORTED_VERSION, words("Unsupported protocol version"));
        RpcError { served, ..failure.refusing().with(write, requested.raw()) }
    }

    /// Makes -32022 for an `initialize` request, if no revision with a handshake is served. `asked` is the
    /// `protocolVersion` of the request. Its client may show only the message, so the message names the
    /// revisions.
    pub fn no_handshake(asked: Option<Text<'e>>, served: Revisions) -> Self {
        let asked = asked.unwrap_or(Text::EMPTY);
        let message = "Unsupported protocol version: only 2026-07-28 and later are served here, without initialize";
        RpcError { message: words(message), ..RpcError::unsupported_version(asked, served) }
    }

    /// Makes -32021: the client did not declare a capability that the handler needs.
    pub(crate) const fn missing_capability(feature: ClientCapability) -> Self {
        let write: WriteData = |failure, out| {
            let mut object = Object::open(out);
            object.key("requiredCapabilities").put(failure.value);
            object.close()
        };
        let message = words("The client did not declare a capability that this request needs");
        RpcError::new(code::MISSING_CAPABILITY, message).refusing().with(write, feature.declaration().as_bytes())
    }

    /// Makes -32021: the client did not declare an extension that the request needs. `data.requiredCapabilities` names it.
    #[cfg(feature = "extensions")]
    pub const fn missing_extension(id: &'static str) -> Self {
        let write: WriteData = |failure, out| {
            out.put(b"{\"requiredCapabilities\":{\"extensions\":{\"");
            out.put(failure.value);
            out.put(b"\":{}}}}")
        };
        let message = words("The client did not declare an extension that this request needs");
        RpcError::new(code::MISSING_CAPABILITY, message).refusing().with(write, id.as_bytes())
    }
}

/// A place for an error that a check of a request finds: `server/admission.rs` says why it is no `Result`.
impl<'e> RpcError<'e> {
    /// No error yet.
    pub(crate) const NONE: RpcError<'static> = RpcError::new(0, "");

    /// Stores `failure`.
    pub(crate) fn set<T>(&mut self, failure: RpcError<'e>) -> Option<T> {
        *self = failure;
        None
    }

    /// Returns the value of `result`, or stores its error.
    pub(crate) fn ok_or_set<T>(&mut self, result: Result<T, RpcError<'e>>) -> Option<T> {
        result.map_or_else(|failure| self.set(failure), Some)
    }

    /// Stores an error about the params.
    pub(crate) fn fail_params<T>(&mut self, message: &'static str) -> Option<T> {
        self.be_plain(code::INVALID_PARAMS, message)
    }

    /// Stores an error about the request.
    pub(crate) fn fail_request<T>(&mut self, message: &'static str) -> Option<T> {
        self.be_plain(code::INVALID_REQUEST, message)
    }

    /// Stores the error for an unknown method.
    pub(crate) fn fail_method<T>(&mut self) -> Option<T> {
        self.be_plain(code::METHOD_NOT_FOUND, "Method not found")
    }

    fn be_plain<T>(&mut self, code: i32, message: &'static str) -> Option<T> {
        self.set(RpcError::new(code, words(message)))
    }
}

impl RpcError<'_> {
    /// Writes it as an object with `code`, `message` and `data`.
    pub fn write(&self, out: &mut Writer<'_>) {
        out.put(b"{\"code\":");
        out.signed(self.code.into());
        out.put(b",\"message\":");
        out.string(self.message);
        if let Some(write) = self.data {
            out.put(b",\"data\":");
            write(self, out);
        }
        out.put(b"}")
    }

    /// Writes the value, text of the peer, unchanged. Lone surrogates, which strict readers refuse, are replaced.
    fn write_decodable(&self, out: &mut Writer<'_>) {
        let text = Text::from_raw(self.value);
        if text.decoded_len().is_some() {
            return out.write(|out| write::text(out, text));
        }
        out.put(b"\"");
        for c in text.chars() {
            out.escape(c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]));
        }
        out.put(b"\"")
    }
}

/// Writes the revisions that are served without a handshake.
pub(crate) fn write_revisions(out: &mut Writer<'_>, served: Revisions) {
    array(out, served.of(Era::Modern), |out, revision| out.string(revision.date()))
}

/// Writes an error response that refuses a message, as the body of an HTTP error: with the `id` of the request
/// if it is known.
///
/// # Errors
/// [`FullError`] if there is no room for it.
pub fn write_error(out: &mut dyn Out, id: Option<Raw<'_>>, failure: &RpcError<'_>) -> Result<(), FullError> {
    respond(out, id.map(|id| id.as_bytes()), &failure.refusing())
}

/// Writes an error response, without `id` if it could not be read. If the response is larger than the whole
/// sink, writes a shorter one.
pub(crate) fn respond(out: &mut dyn Out, id: Option<&[u8]>, failure: &RpcError<'_>) -> Result<(), FullError> {
    let kind = if failure.refuses { MessageHead::Refusal(failure.code) } else { MessageHead::Error(failure.code) };
    match whole(out, kind, |out| write_response(out, id, failure)) {
        Err(FullError::Never) => {
            let short = RpcError { code: failure.code, ..RpcError::too_large() };
            whole(out, kind, |out| write_response(out, id, &short))
        }
        done => done,
    }
}

fn write_response(out: &mut Writer<'_>, id: Option<&[u8]>, failure: &RpcError<'_>) {
    match id {
        Some(id) => begin(out, id, ",\"error\":"),
        None => out.put(head!(r#""error":"#)),
    }
    failure.write(out);
    out.put(b"}")
}

impl fmt::Display for RpcError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl core::error::Error for RpcError<'_> {}
