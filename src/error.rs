//! Error responses: their codes, messages and `data`.

use core::fmt;

use crate::json::object::{Object, array};
use crate::json::{Raw, Text, write};
use crate::protocol::{ClientCapability, code};
use crate::revision::{Era, Revision, Revisions};
use crate::rpc::{begin, head};
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

/// Defines an error whose text follows from the variant: each variant with its text for people.
macro_rules! error_enum {
    ($(#[$about:meta])* $name:ident {
        $($(#[$case_about:meta])* $case:ident $(($value:ident: $type:ty))? => $text:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$case_about])* $case $(($type))?,)*
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $($name::$case $(($value))? => write!(f, $text),)*
                }
            }
        }

        impl core::error::Error for $name {}
    };
}
pub(crate) use error_enum;

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
pub struct RpcError<'e> {
    /// The JSON-RPC code: from [`code`], or one of the application outside -32768 to -32000.
    pub code: i32,
    /// One sentence for people.
    pub message: &'e str,
    pub(crate) data: Data<'e>,
    /// The error refuses the message itself, see [`MessageHead::Refusal`].
    pub(crate) refuses: bool,
}

/// The content of `data`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'e> {
    None,
    Raw(Raw<'e>),
    /// The `uri` of a resource that does not exist.
    Uri(Text<'e>),
    /// The same, without the escapes of JSON.
    Decoded(&'e str),
    /// The revision that the client asked for, and the revisions that are served.
    Versions(Text<'e>, Revisions),
    /// The missing capability, as a client declares it.
    Capability(&'static str),
    /// The extension that the client did not declare.
    #[cfg(feature = "extensions")]
    Extension(&'static str),
}

impl<'e> RpcError<'e> {
    /// Makes an error with this code and message.
    #[must_use]
    pub const fn new(code: i32, message: &'e str) -> Self {
        RpcError { code, message, data: Data::None, refuses: false }
    }

    /// Sets `data`.
    #[must_use]
    pub const fn with_data(self, data: Raw<'e>) -> Self {
        RpcError { data: Data::Raw(data), ..self }
    }

    /// Makes it an error that refuses the message itself, before the server has done anything for it.
    #[must_use]
    pub const fn refusing(self) -> Self {
        RpcError { refuses: true, ..self }
    }

    /// Makes -32600: the message is not a request.
    #[must_use]
    pub const fn invalid_request(message: &'e str) -> Self {
        RpcError::new(code::INVALID_REQUEST, message)
    }

    /// Makes -32601: the method does not exist here.
    #[must_use]
    pub const fn method_not_found() -> Self {
        RpcError::new(code::METHOD_NOT_FOUND, "Method not found")
    }

    /// Makes -32602: the params are wrong.
    #[must_use]
    pub const fn invalid_params(message: &'e str) -> Self {
        RpcError::new(code::INVALID_PARAMS, message)
    }

    /// Makes -32603: the server failed.
    #[must_use]
    pub const fn internal(message: &'e str) -> Self {
        RpcError::new(code::INTERNAL, message)
    }

    /// Makes -1: the user rejected the sampling request ([error
    /// handling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#error-handling)).
    #[must_use]
    pub const fn refused() -> Self {
        RpcError::new(code::USER_REFUSED, "The user rejected the request")
    }

    /// Makes -32603, sent in place of a reply that does not fit.
    pub(crate) const fn too_large() -> Self {
        RpcError::internal("The answer is larger than the output buffer")
    }

    /// Makes the error for an unknown resource, with `data.uri`: -32002 up to 2025-11-25, then -32602. See
    /// [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#error-handling).
    #[must_use]
    pub const fn unknown_resource(uri: Text<'e>, revision: Revision) -> Self {
        let code = if revision.has_resource_not_found() { code::RESOURCE_NOT_FOUND } else { code::INVALID_PARAMS };
        RpcError { code, message: "Resource not found", data: Data::Uri(uri), refuses: false }
    }

    /// Does the same as [`unknown_resource`](RpcError::unknown_resource) for a URI without the escapes of JSON.
    pub(crate) const fn unknown_resource_at(uri: &'e str, revision: Revision) -> Self {
        RpcError { data: Data::Decoded(uri), ..RpcError::unknown_resource(Text::EMPTY, revision) }
    }

    /// Makes -32022: the revision is not served without a handshake. `data.requested` is the revision,
    /// `data.supported` lists the revisions of `served` without a handshake. See
    /// [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning).
    #[must_use]
    pub const fn unsupported_version(requested: Text<'e>, served: Revisions) -> Self {
        RpcError {
            code: code::UNSUPPORTED_VERSION,
            message: "Unsupported protocol version",
            data: Data::Versions(requested, served),
            refuses: true,
        }
    }

    /// Makes -32022 for an `initialize` request, if no revision with a handshake is served. `asked` is the
    /// `protocolVersion` of the request. Its client may show only the message, so the message names the
    /// revisions.
    #[must_use]
    pub fn no_handshake(asked: Option<Text<'e>>, served: Revisions) -> Self {
        let asked = asked.unwrap_or(Text::EMPTY);
        let message = "Unsupported protocol version: only 2026-07-28 and later are served here, without initialize";
        RpcError { message, ..RpcError::unsupported_version(asked, served) }
    }

    /// Makes -32021: the client did not declare a capability that the handler needs.
    #[must_use]
    pub(crate) const fn missing_capability(feature: ClientCapability) -> Self {
        RpcError {
            code: code::MISSING_CAPABILITY,
            message: "The client did not declare a capability that this request needs",
            data: Data::Capability(feature.declaration()),
            refuses: true,
        }
    }

    /// Makes -32021: the client did not declare an extension that the request needs. `data.requiredCapabilities` names it.
    #[cfg(feature = "extensions")]
    #[must_use]
    pub const fn missing_extension(id: &'static str) -> Self {
        RpcError {
            code: code::MISSING_CAPABILITY,
            message: "The client did not declare an extension that this request needs",
            data: Data::Extension(id),
            refuses: true,
        }
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
        self.set(RpcError::new(code, message))
    }
}

impl Data<'_> {
    fn write(&self, out: &mut Writer<'_>) {
        match self {
            Data::None => {}
            Data::Raw(raw) => out.raw(*raw),
            Data::Uri(uri) => {
                let mut object = Object::open(out);
                write_decodable(&mut object, "uri", uri);
                object.close()
            }
            Data::Decoded(uri) => {
                let mut object = Object::open(out);
                object.text("uri", uri);
                object.close()
            }
            Data::Versions(requested, served) => {
                let mut object = Object::open(out);
                write_revisions(object.key("supported"), *served);
                write_decodable(&mut object, "requested", requested);
                object.close()
            }
            Data::Capability(declaration) => {
                let mut object = Object::open(out);
                object.fixed("requiredCapabilities", declaration);
                object.close()
            }
            #[cfg(feature = "extensions")]
            Data::Extension(id) => {
                out.put(b"{\"requiredCapabilities\":{\"extensions\":{\"");
                out.put(id.as_bytes());
                out.put(b"\":{}}}}")
            }
        }
    }
}

/// Writes text of the peer unchanged. Lone surrogates, which strict readers refuse, are replaced.
fn write_decodable(object: &mut Object<'_, '_>, key: &str, text: &Text<'_>) {
    let out = object.key(key);
    if text.decoded_len().is_some() {
        return out.write(|out| write::text(out, *text));
    }
    out.put(b"\"");
    for c in text.chars() {
        out.escape(c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]));
    }
    out.put(b"\"")
}

/// Writes the revisions that are served without a handshake.
pub(crate) fn write_revisions(out: &mut Writer<'_>, served: Revisions) {
    array(out, served.of(Era::Modern), |out, revision| out.string(revision.date()))
}

#[cfg(feature = "extensions")]
impl RpcError<'_> {
    /// Writes it as an object with `code`, `message` and `data`, for notifications of extensions that have an error.
    pub fn write(&self, out: &mut Writer<'_>) {
        let mut error = Object::open(out);
        error.key("code").signed(self.code.into());
        error.text("message", self.message);
        if !matches!(self.data, Data::None) {
            self.data.write(error.key("data"));
        }
        error.close()
    }
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
        Some(id) => begin(out, id, ",\"error\":{\"code\":"),
        None => out.put(head!(r#""error":{"code":"#)),
    }
    out.signed(failure.code.into());
    out.put(b",\"message\":");
    out.string(failure.message);
    if !matches!(failure.data, Data::None) {
        out.put(b",\"data\":");
        failure.data.write(out);
    }
    out.put(b"}}")
}

impl fmt::Display for RpcError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl core::error::Error for RpcError<'_> {}
