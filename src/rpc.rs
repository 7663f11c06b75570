//! The JSON-RPC 2.0 envelope: one pass over a message finds everything the protocol knows, as views into it.

use crate::json::{Fault, JsonKind, Raw, Scanner, Text};
use crate::protocol::{code, meta};
use crate::sink::{Full, Writer};
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
        members(&mut scanner, |scanner| self.member(scanner)).ok_or_else(|| scanner.fault())?;
        self.members.plain = scanner.is_plain();
        scanner.end()
    }

    #[inline]
    fn member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        // As nearly everybody writes them they are found by one comparison each.
        if FAST && scanner.took(b"\"jsonrpc\":") {
            self.jsonrpc = scanner.took(b"\"2.0\"") || scanner.any_value()?.as_bytes() == b"\"2.0\"";
        } else if FAST && scanner.took(b"\"id\":") {
            set(&mut self.id, scanner.any_value()?, &mut self.duplicate);
        } else if FAST && scanner.took(b"\"method\":") {
            set(&mut self.method, scanner.any_value()?, &mut self.duplicate);
        } else if FAST && scanner.took(b"\"params\":") || self.any_member(scanner)? {
            self.params(scanner)?;
        }
        Some(())
    }

    /// A member of any name; whether it is `params`, whose value is then next.
    #[inline(never)]
    fn any_member(&mut self, scanner: &mut Scanner<'a>) -> Option<bool> {
        const PARAMS: usize = 0;
        let known = known(&scanner.any_key()?, &["params", "id", "method", "result", "error", "jsonrpc"]);
        if known == Some(PARAMS) {
            return Some(true);
        }
        let value = scanner.any_value()?;
        let place = match known {
            Some(1) => &mut self.id,
            Some(2) => &mut self.method,
            Some(3) => &mut self.result,
            Some(4) => &mut self.error,
            Some(_) => {
                self.jsonrpc = value.as_bytes() == b"\"2.0\"";
                return Some(false);
            }
            None => return Some(false),
        };
        set(place, value, &mut self.duplicate);
        Some(false)
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn params(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let (members, meta) = (&mut self.members, &mut self.meta);
        let params = object(scanner, |scanner| members.member(meta, scanner))?;
        set(&mut self.params, params, &mut self.duplicate);
        Some(())
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

impl<'a> Members<'a> {
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn member(&mut self, meta: &mut Meta<'a>, scanner: &mut Scanner<'a>) -> Option<()> {
        if FAST && scanner.took(b"\"name\":") {
            self.name = Some(scanner.any_value()?);
        } else if FAST && scanner.took(b"\"arguments\":") {
            self.arguments = Some(scanner.any_value()?);
        } else if FAST && scanner.took(b"\"_meta\":") {
            self.meta = Some(object(scanner, |scanner| meta.member(scanner))?);
        } else {
            self.any_member(meta, scanner)?;
        }
        Some(())
    }

    #[inline(never)]
    fn any_member(&mut self, meta: &mut Meta<'a>, scanner: &mut Scanner<'a>) -> Option<()> {
        const META: usize = 0;
        let known = known(&scanner.any_key()?, &MEMBERS);
        if known == Some(META) {
            self.meta = Some(object(scanner, |scanner| meta.member(scanner))?);
            return Some(());
        }
        let value = scanner.any_value()?;
        if let Some(place) = known.and_then(|known| self.place(known)) {
            *place = Some(value);
        }
        Some(())
    }

    /// Where the member belongs that has this number in [`MEMBERS`].
    #[inline(never)]
    fn place(&mut self, number: usize) -> Option<&mut Option<Raw<'a>>> {
        Some(match number {
            0 => &mut self.meta,
            1 => &mut self.name,
            2 => &mut self.arguments,
            3 => &mut self.uri,
            4 => &mut self.cursor,
            5 => &mut self.reference,
            6 => &mut self.argument,
            7 => &mut self.context,
            8 => &mut self.level,
            9 => &mut self.protocol_version,
            10 => &mut self.capabilities,
            11 => &mut self.client_info,
            12 => &mut self.request_id,
            13 => &mut self.input_responses,
            14 => &mut self.request_state,
            15 => &mut self.notifications,
            _ => return None,
        })
    }
}

/// The members of `params` that the protocol knows, in the order of [`Members::place`].
const MEMBERS: [&str; 16] = [
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
    "notifications",
];

/// Whether members that nearly every message has are tried first, each by one comparison; small machines save the code.
const FAST: bool = !SMALL;

impl<'a> Meta<'a> {
    #[inline]
    fn member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let place = if FAST && scanner.took(b"\"io.modelcontextprotocol/protocolVersion\":") {
            &mut self.version
        } else if FAST && scanner.took(b"\"io.modelcontextprotocol/clientCapabilities\":") {
            &mut self.capabilities
        } else if FAST && scanner.took(b"\"io.modelcontextprotocol/clientInfo\":") {
            &mut self.client_info
        } else {
            return self.any_member(scanner);
        };
        *place = Some(scanner.any_value()?);
        Some(())
    }

    #[inline(never)]
    fn any_member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        const KNOWN: [&str; 5] =
            [meta::VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL, "progressToken"];
        let known = known(&scanner.any_key()?, &KNOWN);
        let value = Some(scanner.any_value()?);
        match known {
            Some(0) => self.version = value,
            Some(1) => self.capabilities = value,
            Some(2) => self.client_info = value,
            Some(3) => self.log_level = value,
            Some(_) => self.progress_token = value,
            None => {}
        }
        Some(())
    }

    /// Whether the request speaks for itself, as from 2026-07-28 on. Other keys of the protocol exist before.
    #[must_use]
    pub const fn is_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some()
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
    let (mut members, mut meta) = (Members::NONE, Meta::NONE);
    let mut scanner = Scanner::checked(params.as_bytes());
    // It has been scanned before: there is nothing to find wrong.
    let _ = object(&mut scanner, |scanner| members.member(&mut meta, scanner));
    members
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

/// Which of the known names a key is.
#[inline(never)]
fn known(key: &Text<'_>, names: &[&str]) -> Option<usize> {
    names.iter().position(|name| key.is(name))
}

#[inline]
fn set<'a>(place: &mut Option<Raw<'a>>, value: Raw<'a>, duplicate: &mut bool) {
    *duplicate |= place.is_some();
    *place = Some(value);
}

/// Walks over an object with `member` for each key, or skips a value of another kind; the span of all of it.
#[inline]
fn object<'a>(scanner: &mut Scanner<'a>, member: impl FnMut(&mut Scanner<'a>) -> Option<()>) -> Option<Raw<'a>> {
    scanner.space();
    if scanner.peek() != Some(b'{') {
        return scanner.any_value();
    }
    let from = scanner.position();
    members(scanner, member)?;
    scanner.since(from)
}

/// Walks over an object with `member` for each key.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn members<'a>(scanner: &mut Scanner<'a>, mut member: impl FnMut(&mut Scanner<'a>) -> Option<()>) -> Option<()> {
    scanner.opens(b'{')?;
    let mut first = true;
    while scanner.has_key(&mut first)? {
        member(scanner)?;
    }
    Some(())
}

/// Writes the head of a message with what is behind the id, in as few pieces as there can be: each has its price.
pub(crate) fn begin(out: &mut Writer<'_>, id: &[u8], behind: &str) -> Result<(), Full> {
    out.put(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    out.put(id)?;
    out.put(behind.as_bytes())
}

/// The error that answers a message which is not a request: not JSON, or not an object of the right shape.
#[must_use]
pub(crate) fn fault_code(fault: Fault) -> (i32, &'static str) {
    match fault {
        Fault::Utf8 => (code::PARSE, "Parse error: not UTF-8"),
        Fault::Depth => (code::PARSE, "Parse error: nested too deeply"),
        Fault::End => (code::PARSE, "Parse error: the message ends too early"),
        _ => (code::PARSE, "Parse error"),
    }
}
