//! The trace context of a request: `traceparent`, `tracestate` and `baggage` in its
//! [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta).

use crate::json::{Raw, Text, object::Object};
use core::fmt;

/// The keys in `_meta`.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

/// The most members of a `tracestate`.
const TRACESTATE_MEMBERS_MAX: usize = 32;
/// The most characters of a key and of a value of a `tracestate`.
const TRACESTATE_TEXT_MAX: usize = 256;

/// A [`traceparent`](https://www.w3.org/TR/trace-context/#traceparent-header): the trace that a request belongs to, and the
/// span that sent it. 25 bytes, to be kept by handlers that answer later.
///
/// ```
/// use mcp_sansio::trace_context::TraceParent;
///
/// let parent = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")?;
/// assert!(parent.is_sampled());
/// // The span of this program, with an id from its random numbers, is the parent of what it sends.
/// let own = parent.child(*b"\x01\x02\x03\x04\x05\x06\x07\x08")?;
/// assert_eq!(own.text(&mut [0; 55]), "00-0af7651916cd43dd8448eb211c80319c-0102030405060708-01");
/// # Ok::<(), mcp_sansio::trace_context::TraceContextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: [u8; 16],
    parent_id: [u8; 8],
    flags: u8,
}

impl TraceParent {
    /// The bit of the flags that says `sampled`.
    const SAMPLED: u8 = 1;
    /// The bits of the flags that have a meaning: `sampled` and `random`. The others are not passed on.
    const FLAGS: u8 = 3;

    /// Makes the parent from the ids of a trace and of a span.
    ///
    /// # Errors
    /// [`TraceContextError::Traceparent`] if one of the ids is all zeros.
    pub fn new(trace_id: [u8; 16], parent_id: [u8; 8], is_sampled: bool) -> Result<Self, TraceContextError> {
        let parent = TraceParent { trace_id, parent_id, flags: u8::from(is_sampled) };
        parent.with_ids().ok_or(TraceContextError::Traceparent)
    }

    /// Reads the text of a `traceparent`: of version `00`, or of a later version that begins in the same way.
    ///
    /// # Errors
    /// [`TraceContextError::Traceparent`] if it has another form: upper case, a wrong length, version `ff`, an id of zeros.
    pub fn parse(text: &str) -> Result<Self, TraceContextError> {
        TraceParent::read(text.chars()).ok_or(TraceContextError::Traceparent)
    }

    fn read(mut chars: impl Iterator<Item = char>) -> Option<Self> {
        let [version] = hex(&mut chars)?;
        let trace_id = hex(after_dash(&mut chars)?)?;
        let parent_id = hex(after_dash(&mut chars)?)?;
        let [flags] = hex(after_dash(&mut chars)?)?;
        let ends = match chars.next() {
            None => version != u8::MAX,
            Some(next) => next == '-' && version > 0 && version != u8::MAX,
        };
        TraceParent { trace_id, parent_id, flags: flags & Self::FLAGS }.with_ids().filter(|_| ends)
    }

    /// Returns it if no id is all zeros.
    fn with_ids(self) -> Option<Self> {
        (self.trace_id != [0; 16] && self.parent_id != [0; 8]).then_some(self)
    }

    /// Returns the parent for a request that a span of this program sends: the same trace, with the id of the span.
    ///
    /// # Errors
    /// [`TraceContextError::Traceparent`] if the id is all zeros.
    pub fn child(self, parent_id: [u8; 8]) -> Result<Self, TraceContextError> {
        TraceParent { parent_id, ..self }.with_ids().ok_or(TraceContextError::Traceparent)
    }

    /// Returns the `trace-id`.
    #[must_use]
    pub const fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// Returns the `parent-id`: the span of the sender.
    #[must_use]
    pub const fn parent_id(&self) -> [u8; 8] {
        self.parent_id
    }

    /// Returns the flag `sampled`: the sender may have recorded its span.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    /// Writes its text, in version `00`, into `space` and returns it. [`Display`](fmt::Display) does the same where
    /// formatting is linked.
    pub fn text<'s>(&self, space: &'s mut [u8; 55]) -> &'s str {
        let parts = [&[0][..], &self.trace_id, &self.parent_id, &[self.flags]];
        let bytes = parts.into_iter().flat_map(|part| {
            let digits = part.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            digits.map(|digit| if digit < 10 { b'0' + digit } else { b'a' - 10 + digit }).chain([b'-'])
        });
        space.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        core::str::from_utf8(space).unwrap_or_default()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; 55]))
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The trace context of a request. It never changes what a request does.
///
/// On a server, `call.trace_context()` has that of the request; a client sets it with
/// [`Request::trace_context`](crate::client::Request::trace_context):
///
/// ```
/// use mcp_sansio::client::Request;
/// use mcp_sansio::trace_context::{TraceContext, TraceParent};
///
/// let parent = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")?;
/// let trace = TraceContext::new(parent).with_tracestate("shop=00f067aa0ba902b7")?.with_baggage("user=42")?;
/// let request = Request::call("order").trace_context(&trace);
/// # let _ = request;
/// # Ok::<(), mcp_sansio::trace_context::TraceContextError>(())
/// ```
///
/// The values are those of [W3C Trace Context](https://www.w3.org/TR/trace-context/) and
/// [W3C Baggage](https://www.w3.org/TR/baggage/). They come from the peer: show them and pass them on, do not decide by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceContext<'a> {
    traceparent: Option<TraceParent>,
    tracestate: Option<Text<'a>>,
    baggage: Option<Text<'a>>,
}

impl<'a> TraceContext<'a> {
    /// The context without members.
    pub const NONE: TraceContext<'static> = TraceContext { traceparent: None, tracestate: None, baggage: None };

    /// Makes a context with `traceparent` alone.
    #[must_use]
    pub const fn new(traceparent: TraceParent) -> Self {
        TraceContext { traceparent: Some(traceparent), ..TraceContext::NONE }
    }

    /// Reads the context from the `_meta` of a message. A member that does not have its form counts as absent; without a
    /// `traceparent` there is no `tracestate`.
    #[must_use]
    pub fn of(meta: Option<Raw<'a>>) -> Self {
        let text = |key| meta.and_then(|meta| meta.get(key)?.text());
        let traceparent = text(TRACEPARENT).and_then(|text| TraceParent::read(chars(text)));
        TraceContext {
            traceparent,
            tracestate: text(TRACESTATE).filter(|text| traceparent.is_some() && is_tracestate(chars(*text))),
            baggage: text(BAGGAGE).filter(|text| is_baggage(chars(*text))),
        }
    }

    /// Sets `traceparent`: for a request of a span of this program, the [child](TraceParent::child) of the one that came.
    #[must_use]
    pub const fn with_traceparent(self, traceparent: TraceParent) -> Self {
        TraceContext { traceparent: Some(traceparent), ..self }
    }

    /// Sets [`tracestate`](https://www.w3.org/TR/trace-context/#tracestate-header), which needs a `traceparent` to be sent.
    ///
    /// # Errors
    /// [`TraceContextError::Tracestate`] if it is not a list of at most 32 pairs `key=value` of printable ASCII, with at most
    /// 256 characters in each key and value. A quotation mark and a backslash are refused too: W3C allows them, but no known
    /// vendor has them.
    pub fn with_tracestate(self, text: &'a str) -> Result<Self, TraceContextError> {
        let is_sound = is_tracestate(text.chars()) && !text.contains(['"', '\\']);
        let tracestate = is_sound.then(|| Text::new(text.as_bytes(), false)).ok_or(TraceContextError::Tracestate)?;
        Ok(TraceContext { tracestate: Some(tracestate), ..self })
    }

    /// Sets [`baggage`](https://www.w3.org/TR/baggage/). Other servers can read it: put no secrets into it.
    ///
    /// # Errors
    /// [`TraceContextError::Baggage`] if it is not a list of pairs `key=value`, each with properties behind semicolons, in
    /// ASCII; other characters are percent-encoded.
    pub fn with_baggage(self, text: &'a str) -> Result<Self, TraceContextError> {
        let baggage = is_baggage(text.chars()).then(|| Text::new(text.as_bytes(), false));
        Ok(TraceContext { baggage: Some(baggage.ok_or(TraceContextError::Baggage)?), ..self })
    }

    /// Returns `traceparent`.
    #[must_use]
    pub const fn traceparent(&self) -> Option<TraceParent> {
        self.traceparent
    }

    /// Returns `tracestate`.
    #[must_use]
    pub const fn tracestate(&self) -> Option<Text<'a>> {
        self.tracestate
    }

    /// Returns `baggage`.
    #[must_use]
    pub const fn baggage(&self) -> Option<Text<'a>> {
        self.baggage
    }

    /// Returns whether it has no members.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.traceparent.is_none() && self.baggage.is_none()
    }

    /// Returns whether it writes the member `key`.
    pub(crate) fn writes(&self, key: &Text<'_>) -> bool {
        (self.traceparent.is_some() && (key.eq_str(TRACEPARENT) || key.eq_str(TRACESTATE)))
            || (self.baggage.is_some() && key.eq_str(BAGGAGE))
    }

    /// Writes the members of `_meta`.
    pub fn write(&self, meta: &mut Object<'_, '_>) {
        let mut text = |key, value: Option<Text<'_>>| {
            if let Some(value) = value {
                let out = meta.key(key);
                out.put(b"\"");
                out.put(value.raw());
                out.put(b"\"");
            }
        };
        let mut space = [0; 55];
        let parent = self.traceparent.map(|parent| parent.text(&mut space));
        text(TRACEPARENT, parent.map(|parent| Text::new(parent.as_bytes(), false)));
        text(TRACESTATE, self.tracestate.filter(|_| self.traceparent.is_some()));
        text(BAGGAGE, self.baggage)
    }
}

crate::error_enum! {
    /// A value that has not the form of W3C.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    TraceContextError {
        /// The `traceparent`.
        Traceparent => "not a traceparent of W3C Trace Context",
        /// The `tracestate`.
        Tracestate => "not a tracestate of W3C Trace Context",
        /// The `baggage`.
        Baggage => "not a baggage of W3C Baggage",
    }
}

/// Returns the decoded characters; one that is no character makes every value malformed.
fn chars(text: Text<'_>) -> impl Iterator<Item = char> {
    text.chars().map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Reads bytes in lower-case hexadecimal digits.
fn hex<const N: usize>(chars: &mut impl Iterator<Item = char>) -> Option<[u8; N]> {
    let mut digit = || chars.next().filter(|c| !c.is_ascii_uppercase()).and_then(|c| c.to_digit(16));
    let mut bytes = [0; N];
    for byte in &mut bytes {
        *byte = (digit()? << 4 | digit()?) as u8;
    }
    Some(bytes)
}

fn after_dash<I: Iterator<Item = char>>(chars: &mut I) -> Option<&mut I> {
    (chars.next()? == '-').then_some(chars)
}

/// Returns whether it is a `tracestate`: a list with commas of `key=value`, where members may be empty.
fn is_tracestate(chars: impl Iterator<Item = char>) -> bool {
    /// The part of a member that comes next or goes on, with its length so far.
    enum Part {
        Start,
        Key(usize),
        Value(usize),
    }
    let (mut part, mut members) = (Part::Start, 0);
    for c in chars {
        part = match (part, c) {
            (Part::Start, ' ' | ',') => Part::Start,
            (Part::Start, 'a'..='z' | '0'..='9') => {
                members += 1;
                Part::Key(1)
            }
            (Part::Key(len), 'a'..='z' | '0'..='9' | '_' | '-' | '*' | '/' | '@') if len < TRACESTATE_TEXT_MAX => {
                Part::Key(len + 1)
            }
            (Part::Key(_), '=') => Part::Value(0),
            (Part::Value(1..), ',') => Part::Start,
            (Part::Value(len), ' '..='~') if c != ',' && c != '=' && len < TRACESTATE_TEXT_MAX => Part::Value(len + 1),
            _ => return false,
        };
    }
    (1..=TRACESTATE_MEMBERS_MAX).contains(&members) && matches!(part, Part::Start | Part::Value(1..))
}

/// Returns whether it is a `baggage`: a list with commas of `key=value`, each with properties behind semicolons.
fn is_baggage(chars: impl Iterator<Item = char>) -> bool {
    #[derive(Clone, Copy)]
    enum Part {
        Start,
        Key,
        AfterKey,
        Equals,
        Value,
        AfterValue,
    }
    let (mut part, mut property) = (Part::Start, false);
    for c in chars {
        // A property may be a key alone.
        let ends = property || matches!(part, Part::Equals | Part::Value | Part::AfterValue);
        part = match (part, c) {
            (Part::Start, ' ') => Part::Start,
            (Part::Start | Part::Key, _) if is_token(c) => Part::Key,
            (Part::Key | Part::AfterKey, ' ') => Part::AfterKey,
            (Part::Key | Part::AfterKey, '=') => Part::Equals,
            (Part::Start, _) => return false,
            (_, ',' | ';') if ends => {
                property = c == ';';
                Part::Start
            }
            (Part::Equals, ' ') => Part::Equals,
            (Part::Equals | Part::Value, '!'..='~') if !matches!(c, '"' | ',' | ';' | '\\') => Part::Value,
            (Part::Value | Part::AfterValue, ' ') => Part::AfterValue,
            _ => return false,
        };
    }
    match part {
        Part::Start => false,
        Part::Key | Part::AfterKey => property,
        Part::Equals | Part::Value | Part::AfterValue => true,
    }
}

/// Returns whether it is a character of a token of HTTP.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    /// The forms of a `traceparent` that W3C Trace Context allows, and malformed ones.
    // spec: B055
    #[test]
    fn forms_of_a_traceparent() {
        let parent = TraceParent::parse(PARENT).unwrap();
        assert_eq!(parent.to_string(), PARENT);
        assert_eq!(parent, TraceParent::new(parent.trace_id(), parent.parent_id(), true).unwrap());
        // A later version may continue after a dash; it is passed on in the version that is known here. Unknown flags
        // are not passed on.
        for later in [PARENT.replacen("00", "cc", 1), PARENT.replacen("00", "01", 1) + "-what-comes"] {
            assert_eq!(TraceParent::parse(&later), Ok(parent));
        }
        let flagged = PARENT.replace("-01", "-fc");
        assert_eq!(TraceParent::parse(&flagged).unwrap().to_string(), PARENT.replace("-01", "-00"));
        assert!(!TraceParent::parse(&flagged).unwrap().is_sampled());
        let wrong = [
            "".into(),
            PARENT.replacen("00", "ff", 1),
            PARENT.to_uppercase(),
            PARENT.replace('-', "_"),
            String::from(PARENT) + "-",
            String::from(PARENT) + "0",
            PARENT.replacen("00", "01", 1) + "0",
            PARENT.replacen("00", "0g", 1),
            PARENT.replacen("00", "ff", 1) + "-x",
            PARENT.replacen("00", "+0", 1),
            PARENT.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            PARENT.replace("00f067aa0ba902b7", "0000000000000000"),
        ];
        for wrong in wrong {
            assert_eq!(TraceParent::parse(&wrong), Err(TraceContextError::Traceparent), "{wrong}");
        }
        for end in 0..PARENT.len() {
            assert!(TraceParent::parse(PARENT.get(..end).unwrap()).is_err());
        }
        assert!(parent.child([0; 8]).is_err() && TraceParent::new([0; 16], [1; 8], true).is_err());
    }

    // spec: B055
    #[test]
    fn forms_of_a_tracestate() {
        let with = |text: &str| TraceContext::new(TraceParent::parse(PARENT).unwrap()).with_tracestate(text).is_ok();
        for right in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "fw529a3039@dt=FfAz;a:b c", " a=1 , ,2*/_-=~ "]
        {
            assert!(with(right), "{right}");
        }
        let many = |count| std::vec!["a=1"; count].join(",");
        assert!(with(&many(32)) && !with(&many(33)));
        assert!(with(&std::format!("{0}={0}", "a".repeat(256))));
        assert!(!with(&std::format!("{}=a", "a".repeat(257))) && !with(&std::format!("a={}", "a".repeat(257))));
        for wrong in
            ["", " ", "a", "a=", "a=,b=1", "A=1", "=1", "a=1=2", "a=\u{7f}", "a=1\n", "a=\u{e9}", "a=\"", "a=\\"]
        {
            assert!(!with(wrong), "{wrong:?}");
        }
    }

    // spec: B055
    #[test]
    fn forms_of_a_baggage() {
        let with = |text: &str| TraceContext::NONE.with_baggage(text).is_ok();
        for right in ["a=1", "a=", "userId=alice,serverNode = DF%2028 ; x;y=1 ,isProduction=false", "k=a=b", "a=1;p"] {
            assert!(with(right), "{right}");
        }
        for wrong in ["", "a", "=1", "a=1,", "a=1;", "a;p=1", "a=b c", "a=\"", "a=1\r\n", "a=\u{e9}", "a b=1", "a=\\"] {
            assert!(!with(wrong), "{wrong:?}");
        }
    }

    /// A malformed `traceparent` takes its `tracestate` with it; the other members stand for themselves. Escapes of
    /// JSON change nothing.
    #[test]
    fn read_from_a_message() {
        let of = |json: &'static str| TraceContext::of(Some(Raw::constant(json)));
        let all = of(
            r#"{"traceparent":"0\u0030-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","tracestate":"a=\"\\","baggage":"b=1"}"#,
        );
        assert_eq!(all.traceparent().unwrap().to_string(), PARENT);
        assert!(all.tracestate().unwrap().eq_str("a=\"\\") && all.baggage().unwrap().eq_str("b=1"));
        let broken = of(r#"{"traceparent":"00-1","tracestate":"a=1","baggage":"b=1"}"#);
        assert_eq!(broken, TraceContext::NONE.with_baggage("b=1").unwrap());
        assert!(of(r#"{"traceparent":5,"tracestate":"a=1","baggage":"b"}"#).is_empty());
        let half = of(
            r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","tracestate":"A=1","baggage":"\ud800"}"#,
        );
        assert_eq!(half, TraceContext::new(TraceParent::parse(PARENT).unwrap()));
        assert!(of(r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01\ud800"}"#).is_empty());
        assert_eq!(TraceContext::of(None), TraceContext::NONE);
    }
}
