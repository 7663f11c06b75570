//! The JSON-RPC 2.0 envelope: one pass over a message finds all members that the protocol knows, as views into
//! it.

use crate::json::{JsonKind, ParseError, Raw, Scanner, Text};
use crate::protocol::{Method, Names, code, meta, names};
use crate::search::SMALL;
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

/// A message taken apart into its members. They are views: nothing is decoded or copied. See
/// [messages](https://modelcontextprotocol.io/specification/2025-11-25/basic#messages).
///
/// ```
/// use mcp_sansio::rpc::{Envelope, MessageShape};
/// let envelope = Envelope::parse(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#)?;
/// assert!(matches!(envelope.shape(), MessageShape::Request { method, .. } if method.eq_str("tools/call")));
/// assert_eq!(envelope.members.name.and_then(|name| name.text()).and_then(|name| name.plain()), Some("echo"));
/// # Ok::<(), mcp_sansio::json::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// `jsonrpc` is `"2.0"`.
    pub jsonrpc: bool,
    /// A member that the envelope knows exists twice: two readers could read two different messages.
    pub duplicate: bool,
    /// There is a `jsonrpc`.
    versioned: bool,
    /// `id`, of any type.
    pub id: Option<Raw<'a>>,
    /// `method`, of any type.
    pub method: Option<Raw<'a>>,
    /// `params`, of any type.
    pub params: Option<Raw<'a>>,
    /// `result`
    pub result: Option<Raw<'a>>,
    /// `error`
    pub error: Option<Raw<'a>>,
    /// The members of `params` that the protocol knows.
    pub members: RequestMembers<'a>,
    /// The members of `params._meta` that the protocol knows.
    pub meta: RequestMeta<'a>,
}

impl<'a> Envelope<'a> {
    pub(crate) const EMPTY: Envelope<'static> = Envelope {
        jsonrpc: false,
        duplicate: false,
        versioned: false,
        id: None,
        method: None,
        params: None,
        result: None,
        error: None,
        members: RequestMembers::NONE,
        meta: RequestMeta::NONE,
    };

    /// Takes a whole message apart. It must be one JSON object.
    ///
    /// # Errors
    /// The [`ParseError`]: the message is not valid JSON, not an object, or more text follows.
    pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        let mut envelope = Envelope::EMPTY;
        envelope.read(message)?;
        Ok(envelope)
    }

    /// Does the same as [`parse`](Envelope::parse) into an empty envelope, which is too large to be returned by
    /// value.
    pub(crate) fn read(&mut self, message: &'a [u8]) -> Result<(), ParseError> {
        let mut scanner = Scanner::new(message);
        let read = if SMALL {
            self.read_members(Part::Envelope, &mut scanner)
        } else {
            members(&mut scanner, |scanner| self.member(scanner))
        };
        read.ok_or_else(|| scanner.fault())?;
        self.members.plain = scanner.is_plain();
        scanner.end()
    }

    // The members of nearly every message, in their usual form, are found by one comparison each.
    // Fork: 38 % of a tools/call (calc, echo32). Small machines read these members like all others, which saves
    // 860 bytes.

    #[inline]
    fn member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        if scanner.eat(b"\"jsonrpc\":\"2.0\"") {
            self.set_version(true);
        } else if scanner.eat(b"\"id\":") {
            self.set(Member::Id, scanner.read_value()?);
        } else if scanner.eat(b"\"method\":") {
            self.set(Member::Method, scanner.read_value()?);
        } else if scanner.eat(b"\"params\":") {
            let params = object(scanner, |scanner| self.param(scanner))?;
            self.set(Member::Params, params);
        } else if scanner.eat(b"\"result\":") {
            self.set(Member::Result, scanner.read_value()?);
        } else {
            self.read_member(Part::Envelope, scanner)?;
        }
        Some(())
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn param(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        if scanner.eat(b"\"name\":") {
            self.members.name = Some(scanner.read_value()?);
        } else if scanner.eat(b"\"arguments\":") {
            self.members.arguments = Some(scanner.read_value()?);
        } else if scanner.eat(b"\"_meta\":") {
            self.members.meta = Some(object(scanner, |scanner| self.meta_member(scanner))?);
        } else {
            self.read_member(Part::Params, scanner)?;
        }
        Some(())
    }

    #[inline]
    fn meta_member(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let place = if scanner.eat(b"\"io.modelcontextprotocol/protocolVersion\":") {
            &mut self.meta.version
        } else if scanner.eat(b"\"io.modelcontextprotocol/clientCapabilities\":") {
            &mut self.meta.capabilities
        } else if scanner.eat(b"\"io.modelcontextprotocol/clientInfo\":") {
            &mut self.meta.client_info
        } else {
            return self.read_member(Part::Meta, scanner);
        };
        *place = Some(scanner.read_value()?);
        Some(())
    }

    fn read_members(&mut self, part: Part, scanner: &mut Scanner<'a>) -> Option<()> {
        members(scanner, |scanner| self.read_member(part, scanner))
    }

    /// Reads a member with any name, and the known members inside it.
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn read_member(&mut self, part: Part, scanner: &mut Scanner<'a>) -> Option<()> {
        let key = scanner.read_key()?;
        let Some(member) = part.find(&key) else {
            let value = scanner.read_value()?;
            if matches!(part, Part::Envelope) && key.eq_str("jsonrpc") {
                self.set_version(value.as_bytes() == VERSION);
            }
            return Some(());
        };
        let (from, byte) = scanner.peek_token();
        let within = match member {
            Member::Params if byte == b'{' => Some(Part::Params),
            Member::Meta if byte == b'{' => Some(Part::Meta),
            _ => None,
        };
        let value = match within {
            Some(part) => {
                self.read_members(part, scanner)?;
                scanner.since(from)?
            }
            None => scanner.read_value()?,
        };
        let twice = self.place(member).replace(value).is_some();
        self.duplicate |= twice && matches!(part, Part::Envelope);
        Some(())
    }

    #[inline]
    fn set_version(&mut self, is_ours: bool) {
        self.duplicate |= self.versioned;
        (self.jsonrpc, self.versioned) = (is_ours, true);
    }

    /// Stores the value of a member of the message itself, and notes if the member exists twice.
    #[inline]
    fn set(&mut self, member: Member, value: Raw<'a>) {
        self.duplicate |= self.place(member).replace(value).is_some();
    }

    /// Returns the `result` or the `error` of a response. Beside the other one, `null` counts as absent: some peers write it so. `None` if
    /// it has both, or a member twice: two readers could take different ones.
    #[must_use]
    pub fn response(&self) -> Option<Result<Raw<'a>, Raw<'a>>> {
        match (self.result, self.error) {
            _ if self.duplicate => None,
            (Some(result), None) => Some(Ok(result)),
            (None, Some(error)) => Some(Err(error)),
            (Some(result), Some(error)) if is_null(error) => Some(Ok(result)),
            (Some(result), Some(error)) if is_null(result) => Some(Err(error)),
            _ => None,
        }
    }

    /// Returns `true` if a message with a `method` is a response too, or has a member twice.
    #[cold]
    fn is_ambiguous(&self) -> bool {
        // Some peers write an absent member as `null`.
        let mut outcomes = [self.result, self.error].into_iter().flatten();
        self.duplicate || outcomes.any(|outcome| !is_null(outcome))
    }

    /// Returns the kind of the message. One that has a `method` and a `result` or an `error` is of none, nor is one with a
    /// `method` in which a member comes twice: two readers could take different ones.
    #[must_use]
    pub fn shape(&self) -> MessageShape<'a> {
        let id = self.id.filter(|id| is_id(*id));
        let Some(method) = self.method else {
            return match self.result.or(self.error) {
                Some(_) => MessageShape::Response { id },
                None => MessageShape::Invalid { id },
            };
        };
        if (self.duplicate | self.result.is_some() | self.error.is_some()) && self.is_ambiguous() {
            return MessageShape::Invalid { id };
        }
        match (method.text_of(self.members.plain), self.id) {
            // A notification without a version is still a notification and never gets an answer. Two peers could
            // otherwise answer each other without end.
            (Some(method), None) => MessageShape::Notification { method },
            (Some(method), Some(_)) if self.jsonrpc => match id {
                Some(id) => MessageShape::Request { id, method },
                None => MessageShape::Invalid { id },
            },
            _ => MessageShape::Invalid { id },
        }
    }
}

fn is_null(value: Raw<'_>) -> bool {
    value.kind() == JsonKind::Null
}

/// An object with members that the envelope knows.
#[derive(Clone, Copy)]
enum Part {
    /// The message itself.
    Envelope,
    /// Its `params`.
    Params,
    /// Their `_meta`.
    Meta,
}

/// The value of `jsonrpc`.
const VERSION: &[u8] = b"\"2.0\"";

/// The members that the envelope knows, each with its key and its place in [`Envelope`], all but `jsonrpc`; and the types of those
/// that lie deeper.
macro_rules! members {
    (
        Envelope { $($own:ident: $own_key:expr => $own_place:ident;)* }
        $(
            $(#[$about:meta])*
            $part:ident in $within:ident: $name:ident {
                $($(#[$doc:meta])* $member:ident: $key:expr => $place:ident;)*
                $(+ $(#[$flag_doc:meta])* $flag:ident;)?
            }
        )*
    ) => {
        /// A member that the envelope knows.
        #[derive(Clone, Copy)]
        enum Member {
            $($own,)*
            $($($member,)*)*
        }

        impl Part {
            /// Returns the member with this key, if it is known.
            fn find(self, key: &Text<'_>) -> Option<Member> {
                let (names, members): (Names, &[Member]) = match self {
                    Part::Envelope => (names![$($own_key),*], &[$(Member::$own),*]),
                    $(Part::$part => (names![$($key),*], &[$(Member::$member),*]),)*
                };
                members.get(names.find(key)?).copied()
            }
        }

        impl<'a> Envelope<'a> {
            /// Returns the place for the value of a member.
            #[inline]
            fn place(&mut self, member: Member) -> &mut Option<Raw<'a>> {
                match member {
                    $(Member::$own => &mut self.$own_place,)*
                    $($(Member::$member => &mut self.$within.$place,)*)*
                }
            }
        }

        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default)]
            #[non_exhaustive]
            #[allow(missing_docs, reason = "the protocol's own names")]
            pub struct $name<'a> {
                $($(#[$doc])* pub $place: Option<Raw<'a>>,)*
                $($(#[$flag_doc])* pub(crate) $flag: bool,)?
            }

            impl $name<'_> {
                /// No members.
                pub const NONE: $name<'static> = $name { $($place: None,)* $($flag: false,)? };
            }
        )*
    };
}
members! {
    Envelope {
        Params: "params" => params;
        Id: "id" => id;
        Method: "method" => method;
        Result: "result" => result;
        Error: "error" => error;
    }

    /// The members of `params` that the protocol knows. If a member exists twice, the last one counts.
    Params in members: RequestMembers {
        /// `_meta`
        Meta: "_meta" => meta;
        Name: "name" => name;
        Arguments: "arguments" => arguments;
        Uri: "uri" => uri;
        Cursor: "cursor" => cursor;
        /// `ref`
        Reference: "ref" => reference;
        Argument: "argument" => argument;
        Context: "context" => context;
        Level: "level" => level;
        ProtocolVersion: "protocolVersion" => protocol_version;
        Capabilities: "capabilities" => capabilities;
        ClientInfo: "clientInfo" => client_info;
        RequestId: "requestId" => request_id;
        InputResponses: "inputResponses" => input_responses;
        RequestState: "requestState" => request_state;
        Notifications: "notifications" => notifications;
        +
        /// No string in the message has an escape; `false` means that it is not known.
        plain;
    }

    /// The members of `params._meta` that the protocol knows.
    Meta in meta: RequestMeta {
        /// `io.modelcontextprotocol/protocolVersion`
        MetaVersion: meta::VERSION => version;
        /// `io.modelcontextprotocol/clientCapabilities`
        MetaCapabilities: meta::CLIENT_CAPABILITIES => capabilities;
        /// `io.modelcontextprotocol/clientInfo`
        MetaClientInfo: meta::CLIENT_INFO => client_info;
        /// `io.modelcontextprotocol/logLevel`
        MetaLogLevel: meta::LOG_LEVEL => log_level;
        MetaProgressToken: "progressToken" => progress_token;
    }
}

impl RequestMeta<'_> {
    /// Returns whether the request carries its version and capabilities, as from 2026-07-28 on. Other keys of
    /// the protocol are older. See
    /// [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta).
    #[must_use]
    pub const fn is_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some()
    }
}

impl<'a> RequestMembers<'a> {
    /// Returns the name of the thing that the request uses: `uri` of `resources/read`, `name` of `tools/call`
    /// and `prompts/get`. Members that belong to another method are ignored.
    pub(crate) const fn target(&self, method: Method) -> Option<Raw<'a>> {
        match method {
            Method::ToolsCall | Method::PromptsGet => self.name,
            Method::ResourcesRead => self.uri,
            _ => None,
        }
    }
}

/// Reads the members of `params` that were kept from an earlier message.
pub(crate) fn read_params(params: Raw<'_>) -> RequestMembers<'_> {
    let mut envelope = Envelope::EMPTY;
    // The params were scanned before, so there can be no fault.
    let mut scanner = Scanner::checked(params.as_bytes());
    let _ = object(&mut scanner, |scanner| envelope.param(scanner));
    envelope.members
}

/// The kind of a message.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum MessageShape<'a> {
    /// It has a `method` and a valid `id`.
    Request {
        /// The `id`: a string or an integer, unchanged.
        id: Raw<'a>,
        /// The name of the method.
        method: Text<'a>,
    },
    /// It has a `method` and no `id`.
    Notification {
        /// The name of the method.
        method: Text<'a>,
    },
    /// It has a `result` or an `error` and no `method`.
    Response {
        /// The `id`, if it is valid.
        id: Option<Raw<'a>>,
    },
    /// None of these.
    Invalid {
        /// The `id`, if it is valid.
        id: Option<Raw<'a>>,
    },
}

/// Returns whether a value can be an id or a progress token: a string or an integer.
///
/// `7.0` cannot: the schema says integer, an answer must carry the id unchanged, and some servers refuse `7.0`.
/// `null` cannot either.
#[must_use]
pub fn is_id(value: Raw<'_>) -> bool {
    match value.kind() {
        JsonKind::String => value.text().is_some_and(|text| text.decoded_len().is_some()),
        JsonKind::Number => value.is_integer(),
        _ => false,
    }
}

/// Returns whether two ids, or two progress tokens, are the same. They are compared decoded, so that `"é"`
/// equals `"\u00e9"`; `1` never equals `"1"`.
#[must_use]
pub(crate) fn same_id(a: &[u8], b: &[u8]) -> bool {
    a == b || same_text(a, b)
}

#[cold]
fn same_text(a: &[u8], b: &[u8]) -> bool {
    match (Raw::trusted(a).text(), Raw::trusted(b).text()) {
        (Some(a), Some(b)) => a.same(&b),
        _ => false,
    }
}

/// Reads an object, with `member` for each key, or skips a value of another kind. Returns the whole value.
#[inline]
fn object<'a>(scanner: &mut Scanner<'a>, member: impl FnMut(&mut Scanner<'a>) -> Option<()>) -> Option<Raw<'a>> {
    let (from, byte) = scanner.peek_token();
    if byte != b'{' {
        return scanner.read_value();
    }
    members(scanner, member)?;
    scanner.since(from)
}

/// Reads an object, with `member` for each key.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn members<'a>(scanner: &mut Scanner<'a>, mut member: impl FnMut(&mut Scanner<'a>) -> Option<()>) -> Option<()> {
    scanner.opens(b'{')?;
    let mut first = true;
    while scanner.has_key(core::mem::take(&mut first))? {
        member(scanner)?;
    }
    Some(())
}

/// Makes the bytes that begin each message, followed by a literal.
macro_rules! head {
    ($behind:literal) => {
        concat!(r#"{"jsonrpc":"2.0","#, $behind).as_bytes()
    };
}
pub(crate) use head;

/// Writes the head of a response: `id` unchanged, then `behind`. It uses few pieces, because each is a call of
/// the sink.
pub(crate) fn begin(out: &mut Writer<'_>, id: &[u8], behind: &str) {
    out.put(head!(r#""id":"#));
    out.put(id);
    out.put(behind.as_bytes());
}

/// Writes the head of a request: `id`, `method`, a comma, then `behind`.
pub(crate) fn begin_request(out: &mut Writer<'_>, id: u64, method: &str, behind: &str) {
    out.put(head!(r#""id":"#));
    out.unsigned(id);
    out.put(br#","method":"#);
    out.string(method);
    out.put(b",");
    out.put(behind.as_bytes())
}

/// Writes the head of a notification: `method`, then `behind`.
pub(crate) fn begin_notification(out: &mut Writer<'_>, method: &str, behind: &str) {
    out.put(head!(r#""method":""#));
    out.put(method.as_bytes());
    out.put(b"\"");
    out.put(behind.as_bytes());
}

/// Writes a notification of any method, with its params as they are.
pub(crate) fn write_notification(
    out: &mut dyn Out,
    head: MessageHead<'_>,
    method: &str,
    params: Option<Raw<'_>>,
) -> Result<(), FullError> {
    whole(out, head, |out| {
        out.put(head!(r#""method":"#));
        out.string(method);
        end_with_params(out, params)
    })
}

/// Ends a message with its params, if it has any.
pub(crate) fn end_with_params(out: &mut Writer<'_>, params: Option<Raw<'_>>) {
    if let Some(params) = params {
        out.put(b",\"params\":");
        out.raw(params);
    }
    out.put(b"}")
}

/// Returns the error for a message that is not a request: it is not JSON, or not an object. A message with a
/// byte order mark also gets one, as JSON-RPC requires; some other servers do not answer it.
#[must_use]
pub(crate) fn fault_code(fault: ParseError) -> (i32, &'static str) {
    match fault {
        ParseError::Utf8 => (code::PARSE, "Parse error: not UTF-8"),
        ParseError::Depth => (code::PARSE, "Parse error: nested too deeply"),
        ParseError::End => (code::PARSE, "Parse error: the message ends too early"),
        _ => (code::PARSE, "Parse error"),
    }
}
/// Returns whether a result ends its request: its `resultType` is `complete` or missing. Only such a result has caching hints.
pub(crate) fn is_complete(result: Raw<'_>) -> bool {
    result.get("resultType").is_none_or(|kind| kind.text().is_some_and(|kind| kind.eq_str("complete")))
}
