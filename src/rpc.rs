//! The JSON-RPC 2.0 envelope: one pass over a message finds everything the protocol knows, as views into it.

use crate::json::{Fault, JsonKind, Raw, Scanner, Text};
use crate::protocol::{Method, Names, code, meta, names};
use crate::sink::Writer;
use crate::small::SMALL;

/// A message, taken apart. Nothing is decoded or copied.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// `jsonrpc` is `"2.0"`.
    pub jsonrpc: bool,
    /// A member that the envelope knows came twice: two readers could take it for two different messages.
    pub duplicate: bool,
    /// `id`, whatever its type.
    pub id: Option<Raw<'a>>,
    /// `method`, whatever its type.
    pub method: Option<Raw<'a>>,
    /// `params`, whatever its type.
    pub params: Option<Raw<'a>>,
    /// `result`
    pub result: Option<Raw<'a>>,
    /// `error`
    pub error: Option<Raw<'a>>,
    /// The members of `params` that the protocol knows.
    pub members: Members<'a>,
    /// The members of `params._meta` that the protocol knows.
    pub meta: Meta<'a>,
}

/// The members of `params` that the protocol knows; the last one counts where a member came twice.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the protocol's own names")]
pub struct Members<'a> {
    pub name: Option<Raw<'a>>,
    pub arguments: Option<Raw<'a>>,
    pub uri: Option<Raw<'a>>,
    pub cursor: Option<Raw<'a>>,
    /// `ref`
    pub reference: Option<Raw<'a>>,
    pub argument: Option<Raw<'a>>,
    pub context: Option<Raw<'a>>,
    pub level: Option<Raw<'a>>,
    pub protocol_version: Option<Raw<'a>>,
    pub capabilities: Option<Raw<'a>>,
    pub client_info: Option<Raw<'a>>,
    pub request_id: Option<Raw<'a>>,
    pub input_responses: Option<Raw<'a>>,
    pub request_state: Option<Raw<'a>>,
    pub notifications: Option<Raw<'a>>,
    /// `_meta`
    pub meta: Option<Raw<'a>>,
    /// It is known that nothing in the message is escaped.
    pub(crate) plain: bool,
}

/// The members of `params._meta` that the protocol knows.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the protocol's own names")]
pub struct Meta<'a> {
    pub progress_token: Option<Raw<'a>>,
    pub version: Option<Raw<'a>>,
    pub capabilities: Option<Raw<'a>>,
    pub client_info: Option<Raw<'a>>,
    pub log_level: Option<Raw<'a>>,
}

impl<'a> Envelope<'a> {
    pub(crate) const EMPTY: Envelope<'static> = Envelope {
        jsonrpc: false,
        duplicate: false,
        id: None,
        method: None,
        params: None,
        result: None,
        error: None,
        members: Members::NONE,
        meta: Meta::NONE,
    };

    /// Takes a whole message apart; it must be an object and nothing may follow it.
    pub fn parse(message: &'a [u8]) -> Result<Self, Fault> {
        let mut envelope = Envelope::EMPTY;
        envelope.read(message)?;
        Ok(envelope)
    }

    /// As [`parse`](Envelope::parse), into an empty one: it is too large to be passed around.
    pub(crate) fn read(&mut self, message: &'a [u8]) -> Result<(), Fault> {
        let mut scanner = Scanner::new(message);
        let read = if SMALL {
            self.any_members(Part::Envelope, &mut scanner)
        } else {
            members(&mut scanner, |scanner| self.member(scanner))
        };
        read.ok_or_else(|| scanner.fault())?;
        self.members.plain = scanner.is_plain();
        scanner.end()
    }

    // As nearly everybody writes them, the members that nearly every message has are found by one comparison each.
    // Where room counts, the way for any others serves for all.

    #[inline]
    fn member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        if scanner.took(b"\"jsonrpc\":") {
            self.jsonrpc = scanner.took(VERSION) || scanner.any_value()?.as_bytes() == VERSION;
        } else if scanner.took(b"\"id\":") {
            self.set(ID, scanner.any_value()?);
        } else if scanner.took(b"\"method\":") {
            self.set(METHOD, scanner.any_value()?);
        } else if scanner.took(b"\"params\":") {
            let params = object(scanner, |scanner| self.param(scanner))?;
            self.set(PARAMS, params);
        } else {
            self.any_member(Part::Envelope, scanner)?;
        }
        Some(())
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn param(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        if scanner.took(b"\"name\":") {
            self.members.name = Some(scanner.any_value()?);
        } else if scanner.took(b"\"arguments\":") {
            self.members.arguments = Some(scanner.any_value()?);
        } else if scanner.took(b"\"_meta\":") {
            self.members.meta = Some(object(scanner, |scanner| self.meta_member(scanner))?);
        } else {
            self.any_member(Part::Params, scanner)?;
        }
        Some(())
    }

    #[inline]
    fn meta_member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let place = if scanner.took(b"\"io.modelcontextprotocol/protocolVersion\":") {
            &mut self.meta.version
        } else if scanner.took(b"\"io.modelcontextprotocol/clientCapabilities\":") {
            &mut self.meta.capabilities
        } else if scanner.took(b"\"io.modelcontextprotocol/clientInfo\":") {
            &mut self.meta.client_info
        } else {
            return self.any_member(Part::Meta, scanner);
        };
        *place = Some(scanner.any_value()?);
        Some(())
    }

    fn any_members(&mut self, part: Part, scanner: &mut Scanner<'a>) -> Option<()> {
        members(scanner, |scanner| self.any_member(part, scanner))
    }

    /// A member of any name, with all that is known within it.
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn any_member(&mut self, part: Part, scanner: &mut Scanner<'a>) -> Option<()> {
        let Some(known) = part.names().find(&scanner.any_key()?) else { return scanner.any_value().map(|_| ()) };
        let number = part as usize + known;
        let (from, byte) = scanner.ahead();
        let within = match number {
            PARAMS if byte == b'{' => Some(Part::Params),
            META if byte == b'{' => Some(Part::Meta),
            _ => None,
        };
        let value = match within {
            Some(part) => {
                self.any_members(part, scanner)?;
                scanner.since(from)?
            }
            None => scanner.any_value()?,
        };
        self.set(number, value);
        Some(())
    }

    /// Keeps the member that has this number in its [`Part`].
    #[inline]
    fn set(&mut self, number: usize, value: Raw<'a>) {
        if number == JSONRPC {
            self.jsonrpc = value.as_bytes() == VERSION;
        } else if let Some(place) = self.place(number) {
            let twice = place.replace(value).is_some();
            self.duplicate |= twice && number < Part::Params as usize;
        }
    }

    /// Where the member belongs that has this number in its [`Part`].
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn place(&mut self, number: usize) -> Option<&mut Option<Raw<'a>>> {
        let (members, meta) = (&mut self.members, &mut self.meta);
        Some(match number {
            PARAMS => &mut self.params,
            ID => &mut self.id,
            METHOD => &mut self.method,
            3 => &mut self.result,
            4 => &mut self.error,
            META => &mut members.meta,
            7 => &mut members.name,
            8 => &mut members.arguments,
            9 => &mut members.uri,
            10 => &mut members.cursor,
            11 => &mut members.reference,
            12 => &mut members.argument,
            13 => &mut members.context,
            14 => &mut members.level,
            15 => &mut members.protocol_version,
            16 => &mut members.capabilities,
            17 => &mut members.client_info,
            18 => &mut members.request_id,
            19 => &mut members.input_responses,
            20 => &mut members.request_state,
            21 => &mut members.notifications,
            22 => &mut meta.version,
            23 => &mut meta.capabilities,
            24 => &mut meta.client_info,
            25 => &mut meta.log_level,
            26 => &mut meta.progress_token,
            _ => return None,
        })
    }

    /// Of a response with both: some writers write out what there is none of.
    pub(crate) fn leave_out_null(&mut self) {
        let is_null = |raw: Raw<'_>| raw.kind() == JsonKind::Null;
        match (self.result, self.error) {
            (Some(_), Some(error)) if is_null(error) => self.error = None,
            (Some(result), Some(_)) if is_null(result) => self.result = None,
            _ => {}
        }
    }

    /// What the message is.
    #[must_use]
    pub fn shape(&self) -> Shape<'a> {
        let id = self.id.filter(|id| is_id(*id));
        let Some(method) = self.method else {
            return match self.result.or(self.error) {
                Some(_) => Shape::Response { id },
                None => Shape::Invalid { id },
            };
        };
        match (method.text_of(self.members.plain), self.id) {
            // A broken notification is a notification: it is never answered, so that two peers cannot storm.
            (Some(method), None) => Shape::Notification { method },
            (Some(method), Some(_)) if self.jsonrpc && !self.duplicate => match id {
                Some(id) => Shape::Request { id, method },
                None => Shape::Invalid { id },
            },
            _ => Shape::Invalid { id },
        }
    }
}

/// An object with members that the envelope knows; its number is that of the first of them.
#[derive(Clone, Copy)]
enum Part {
    /// The message itself.
    Envelope = 0,
    /// Its `params`.
    Params = META as isize,
    /// Their `_meta`.
    Meta = 22,
}

/// The value of `jsonrpc`.
const VERSION: &[u8] = b"\"2.0\"";
/// The number of `params`.
const PARAMS: usize = 0;
/// The number of `id`.
const ID: usize = 1;
/// The number of `method`.
const METHOD: usize = 2;
/// The number of `jsonrpc`.
const JSONRPC: usize = 5;
/// The number of `_meta`.
const META: usize = 6;

impl Part {
    /// The members that are known, in the order of [`Envelope::place`].
    fn names(self) -> Names {
        match self {
            Part::Envelope => names!["params", "id", "method", "result", "error", "jsonrpc"],
            Part::Params => names![
                "_meta",
                "name",
                "arguments",
                "uri",
                "cursor",
                "ref",
                "argument",
                "context",
                "level",
                "protocolVersion",
                "capabilities",
                "clientInfo",
                "requestId",
                "inputResponses",
                "requestState",
                "notifications"
            ],
            Part::Meta => {
                names![meta::VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL, "progressToken"]
            }
        }
    }
}

impl Meta<'_> {
    /// Whether the request speaks for itself, as from 2026-07-28 on. Other keys of the protocol exist before.
    #[must_use]
    pub const fn is_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some()
    }
}

impl<'a> Members<'a> {
    /// What a request of `method` names: `uri` of `resources/read`, `name` of `tools/call` and `prompts/get`. A member that
    /// belongs to another method counts for nothing.
    pub(crate) const fn target(&self, method: Method) -> Option<Raw<'a>> {
        match method {
            Method::ToolsCall | Method::PromptsGet => self.name,
            Method::ResourcesRead => self.uri,
            _ => None,
        }
    }
}

impl Members<'_> {
    /// No members.
    pub const NONE: Members<'static> = Members {
        name: None,
        arguments: None,
        uri: None,
        cursor: None,
        reference: None,
        argument: None,
        context: None,
        level: None,
        protocol_version: None,
        capabilities: None,
        client_info: None,
        request_id: None,
        input_responses: None,
        request_state: None,
        notifications: None,
        meta: None,
        plain: false,
    };
}

impl Meta<'_> {
    /// No members.
    pub const NONE: Meta<'static> =
        Meta { progress_token: None, version: None, capabilities: None, client_info: None, log_level: None };
}

/// The members of `params` that were kept from an earlier message.
pub(crate) fn read_params(params: Raw<'_>) -> Members<'_> {
    let mut envelope = Envelope::EMPTY;
    // It has been scanned before: there is nothing to find wrong.
    let mut scanner = Scanner::checked(params.as_bytes());
    let _ = object(&mut scanner, |scanner| envelope.param(scanner));
    envelope.members
}

/// What a message turned out to be.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Shape<'a> {
    /// Has a method and a valid id.
    Request {
        /// String or integer, as it stands.
        id: Raw<'a>,
        /// The method's name.
        method: Text<'a>,
    },
    /// Has a method and no id.
    Notification {
        /// The method's name.
        method: Text<'a>,
    },
    /// Has a result or an error and no method.
    Response {
        /// The id, if it is a valid one.
        id: Option<Raw<'a>>,
    },
    /// None of these.
    Invalid {
        /// The id, if it is a valid one.
        id: Option<Raw<'a>>,
    },
}

/// Whether a value can be an id or a progress token: a string or an integer.
///
/// `7.0` is none: the schema says integer, an answer must carry the id as it came, and not all other servers take it.
/// `null` is none either, for progress tokens as for ids.
#[must_use]
pub fn is_id(value: Raw<'_>) -> bool {
    match value.kind() {
        JsonKind::String => value.text().is_some_and(|text| text.decoded_len().is_some()),
        JsonKind::Number => value.is_integer(),
        _ => false,
    }
}

/// Whether two ids, or two progress tokens, are the same: by decoded value, so that `"é"` equals `"\u00e9"` and `1`
/// never equals `"1"`.
#[must_use]
pub fn same_id(a: &[u8], b: &[u8]) -> bool {
    a == b || same_text(a, b)
}

#[cold]
fn same_text(a: &[u8], b: &[u8]) -> bool {
    match (Raw::trusted(a).text(), Raw::trusted(b).text()) {
        (Some(a), Some(b)) => a.same(&b),
        _ => false,
    }
}

/// Walks over an object with `member` for each key, or skips a value of another kind; the span of all of it.
#[inline]
fn object<'a>(scanner: &mut Scanner<'a>, member: impl FnMut(&mut Scanner<'a>) -> Option<()>) -> Option<Raw<'a>> {
    let (from, byte) = scanner.ahead();
    if byte != b'{' {
        return scanner.any_value();
    }
    members(scanner, member)?;
    scanner.since(from)
}

/// Walks over an object with `member` for each key.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn members<'a>(scanner: &mut Scanner<'a>, mut member: impl FnMut(&mut Scanner<'a>) -> Option<()>) -> Option<()> {
    scanner.opens(b'{')?;
    let mut first = true;
    while scanner.has_key(core::mem::take(&mut first))? {
        member(scanner)?;
    }
    Some(())
}

/// Writes the head of a message with what is behind the id, in as few pieces as there can be: each has its price.
pub(crate) fn begin(out: &mut Writer<'_>, id: &[u8], behind: &str) {
    out.add(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.add(id);
    out.add(behind.as_bytes());
}

/// The error that answers a message which is not a request: not JSON, or not an object of the right shape. So is one with
/// a byte order mark, which JSON has not: other servers say nothing to what they cannot read, JSON-RPC wants an error.
#[must_use]
pub(crate) fn fault_code(fault: Fault) -> (i32, &'static str) {
    match fault {
        Fault::Utf8 => (code::PARSE, "Parse error: not UTF-8"),
        Fault::Depth => (code::PARSE, "Parse error: nested too deeply"),
        Fault::End => (code::PARSE, "Parse error: the message ends too early"),
        _ => (code::PARSE, "Parse error"),
    }
}
