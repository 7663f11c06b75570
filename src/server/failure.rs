//! Error responses: which code, which words, which data.

use core::fmt;

use crate::json::{Raw, Text, object::Object, write};
use crate::protocol::{ClientFeature, code};
use crate::revision::{Era, Revision, Revisions};
use crate::rpc::begin;
use crate::sink::{Full, Kind, Out, Writer, whole};

/// Why a request is answered with an error.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'e> {
    /// The JSON-RPC code, from [`code`] or the application's own (outside -32768 to -32000).
    pub code: i32,
    /// One sentence for people.
    pub message: &'e str,
    pub(crate) data: Data<'e>,
    /// It refuses the message itself, see [`Kind::Refusal`].
    pub(crate) refuses: bool,
}

/// What an error's `data` says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'e> {
    None,
    Raw(Raw<'e>),
    /// The resource there is none of.
    Uri(Text<'e>),
    /// The same, with its escapes decoded.
    Decoded(&'e str),
    /// The revision asked for, and those there are.
    Versions(Text<'e>, Revisions),
    /// How a client declares the capability that is missing.
    Capability(&'static str),
}

impl<'e> Failure<'e> {
    /// An error of that code.
    #[must_use]
    pub const fn new(code: i32, message: &'e str) -> Self {
        Failure { code, message, data: Data::None, refuses: false }
    }

    /// With `data` as it stands.
    #[must_use]
    pub const fn with_data(self, data: Raw<'e>) -> Self {
        Failure { data: Data::Raw(data), ..self }
    }

    /// As an error that refuses the message itself, before anything was done about it.
    #[must_use]
    pub const fn refusing(self) -> Self {
        Failure { refuses: true, ..self }
    }

    /// -32600: not a request.
    #[must_use]
    pub const fn invalid_request(message: &'e str) -> Self {
        Failure::new(code::INVALID_REQUEST, message)
    }

    /// -32601: no such method here.
    #[must_use]
    pub const fn method_not_found() -> Self {
        Failure::new(code::METHOD_NOT_FOUND, "Method not found")
    }

    /// -32602: wrong params.
    #[must_use]
    pub const fn invalid_params(message: &'e str) -> Self {
        Failure::new(code::INVALID_PARAMS, message)
    }

    /// -32603: the server cannot.
    #[must_use]
    pub const fn internal(message: &'e str) -> Self {
        Failure::new(code::INTERNAL, message)
    }

    /// -32603: said in place of a reply that does not fit.
    pub(crate) const fn too_large() -> Self {
        Failure::internal("The reply is larger than the output buffer")
    }

    /// No such resource: -32002 up to 2025-11-25, then -32602, with `data.uri` in all.
    #[must_use]
    pub const fn unknown_resource(uri: Text<'e>, revision: Revision) -> Self {
        let code = if revision.has_resource_not_found() { code::RESOURCE_NOT_FOUND } else { code::INVALID_PARAMS };
        Failure { code, message: "Resource not found", data: Data::Uri(uri), refuses: false }
    }

    /// As [`unknown_resource`](Failure::unknown_resource), for a URI without the escapes of JSON.
    pub(crate) const fn unknown_resource_at(uri: &'e str, revision: Revision) -> Self {
        Failure { data: Data::Decoded(uri), ..Failure::unknown_resource(Text::EMPTY, revision) }
    }

    /// -32022: a revision that is not served without a handshake. `data` has `requested`, and in `supported` those
    /// of `served` that are.
    #[must_use]
    pub const fn unsupported_version(requested: Text<'e>, served: Revisions) -> Self {
        Failure {
            code: code::UNSUPPORTED_VERSION,
            message: "Unsupported protocol version",
            data: Data::Versions(requested, served),
            refuses: true,
        }
    }

    /// -32022: the answer to `initialize` where no revision with a handshake is served. `asked` is the
    /// `protocolVersion` of the request. A client of such a revision shows the message alone, so it names the revisions.
    #[must_use]
    pub fn no_handshake(asked: Option<Text<'e>>, served: Revisions) -> Self {
        let asked = asked.unwrap_or(Text::EMPTY);
        let message = "Unsupported protocol version: only 2026-07-28 is served here, without initialize";
        Failure { message, ..Failure::unsupported_version(asked, served) }
    }

    /// -32021: the client did not declare what the handler needs.
    #[must_use]
    pub(crate) const fn missing_capability(feature: ClientFeature) -> Self {
        Failure {
            code: code::MISSING_CAPABILITY,
            message: "The client did not declare a capability that this request needs",
            data: Data::Capability(feature.declaration()),
            refuses: true,
        }
    }
}

/// A place for a reason: whoever finds one puts it there and returns `None`. A `Result` would carry it, which is large,
/// back through every caller.
impl<'e> Failure<'e> {
    /// None yet.
    pub(crate) const NONE: Failure<'static> = Failure::new(0, "");

    /// Becomes that one.
    pub(crate) fn be<T>(&mut self, failure: Failure<'e>) -> Option<T> {
        *self = failure;
        None
    }

    /// Becomes the one of a `Result`, if it has one.
    pub(crate) fn unless<T>(&mut self, result: Result<T, Failure<'e>>) -> Option<T> {
        result.map_or_else(|failure| self.be(failure), Some)
    }

    /// Becomes one about the params.
    pub(crate) fn be_params<T>(&mut self, message: &'static str) -> Option<T> {
        self.be_plain(code::INVALID_PARAMS, message);
        None
    }

    /// Becomes one about the request.
    pub(crate) fn be_request<T>(&mut self, message: &'static str) -> Option<T> {
        self.be_plain(code::INVALID_REQUEST, message);
        None
    }

    /// Becomes: no such method here.
    pub(crate) fn be_method<T>(&mut self) -> Option<T> {
        let Failure { code, message, .. } = Failure::method_not_found();
        self.be_plain(code, message);
        None
    }

    // There are dozens of calls.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn be_plain(&mut self, code: i32, message: &'static str) {
        *self = Failure::new(code, message);
    }
}

impl Data<'_> {
    fn write(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Data::None => Ok(()),
            Data::Raw(raw) => write::raw(out, *raw),
            Data::Uri(uri) => {
                let mut object = Object::open(out);
                write_decodable(&mut object, "uri", uri)?;
                object.close()
            }
            Data::Decoded(uri) => {
                let mut object = Object::open(out);
                object.text("uri", uri)?;
                object.close()
            }
            Data::Versions(requested, served) => {
                let mut object = Object::open(out);
                write_revisions(object.key("supported"), *served)?;
                write_decodable(&mut object, "requested", requested)?;
                object.close()
            }
            Data::Capability(declaration) => {
                let mut object = Object::open(out);
                object.fixed("requiredCapabilities", declaration)?;
                object.close()
            }
        }
    }
}

/// Text of the peer, as it came; half characters, which strict readers do not take, are replaced.
fn write_decodable(object: &mut Object<'_, '_>, key: &str, text: &Text<'_>) -> Result<(), Full> {
    let out = object.key(key);
    if text.decoded_len().is_some() {
        return write::text(out, *text);
    }
    out.put(b"\"")?;
    for c in text.chars() {
        write::escape(out, c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]))?;
    }
    out.put(b"\"")
}

/// The revisions that are served without a handshake, newest first.
pub(crate) fn write_revisions(out: &mut Writer<'_>, served: Revisions) -> Result<(), Full> {
    out.put(b"[")?;
    for (i, revision) in served.of(Era::Modern).enumerate() {
        out.put(if i == 0 { b"\"" } else { b",\"" })?;
        out.put(revision.date().as_bytes())?;
        out.put(b"\"")?;
    }
    out.put(b"]")
}

/// Writes an error response that refuses a message, as the body of an HTTP error has it: with the request's `id` if it
/// is known, otherwise without one.
///
/// # Errors
/// There is no room for it.
pub fn write_error(out: &mut dyn Out, id: Option<Raw<'_>>, failure: &Failure<'_>) -> Result<(), Full> {
    respond(out, id.map(|id| id.as_bytes()), &failure.refusing())
}

/// Writes an error response, without an id if that could not be read. One that is larger than the sink will ever take is
/// replaced by a shorter one.
pub(crate) fn respond(out: &mut dyn Out, id: Option<&[u8]>, failure: &Failure<'_>) -> Result<(), Full> {
    let kind = if failure.refuses { Kind::Refusal(failure.code) } else { Kind::Error(failure.code) };
    match whole(out, kind, |out| write_response(out, id, failure)) {
        Err(Full::Never) => {
            let short = Failure::new(failure.code, "The answer is larger than the output buffer");
            whole(out, kind, |out| write_response(out, id, &short))
        }
        done => done,
    }
}

fn write_response(out: &mut Writer<'_>, id: Option<&[u8]>, failure: &Failure<'_>) -> Result<(), Full> {
    match id {
        Some(id) => begin(out, id, ",\"error\":{\"code\":"),
        None => out.put(b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":")?,
    }
    write::signed(out, failure.code.into())?;
    out.put(b",\"message\":")?;
    write::string(out, failure.message)?;
    if !matches!(failure.data, Data::None) {
        out.put(b",\"data\":")?;
        failure.data.write(out)?;
    }
    out.put(b"}}")
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl core::error::Error for Failure<'_> {}
