//! What a client answers the questions of a server with.
//!
//! A question is a request of the server's (up to 2025-11-25) or stands in an `input_required` result (from 2026-07-28 on);
//! the answers are the same. They are shaped to the revision when they are written.
//!
//! ```
//! use mcp_sansio::client::reply::{Refusal, Reply, Root, Sampled};
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::service::Content;
//!
//! let schema = Raw::constant(r#"{"type":"object","properties":{"color":{"type":"string","default":"red"}}}"#);
//! let filled = Reply::accept(Raw::constant("{}")).defaults(schema); // {"color":"red"}
//! let no = Reply::decline();
//! let said = Reply::sampled(Sampled::new("some-model", Content::text("42")));
//! const ROOTS: [Root<'_>; 1] = [Root::new("file:///home/me/project").unwrap().name("project")];
//! let roots = Reply::roots(&ROOTS);
//! let refused = Refusal::refused();
//! # let _ = (filled, no, said, roots, refused);
//! ```

use super::form::Form;
use super::views::View;
use crate::balance::{Piece, Wishes};
use crate::json::{JsonKind, Raw, Text, object::Object, write};
use crate::protocol::code;
use crate::revision::{Revision, Since};
use crate::service::Content;
use crate::sink::{Full, Writer};
use core::fmt;

/// An answer to a question of the server.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'r>(Kind<'r>);

#[derive(Clone, Copy, Debug)]
enum Kind<'r> {
    Accept { content: Option<Raw<'r>>, schema: Option<Raw<'r>> },
    Decline,
    Cancel,
    Sampled(Sampled<'r>),
    Roots(&'r [Root<'r>]),
    Raw(Raw<'r>),
}

impl<'r> Reply<'r> {
    /// The user agreed, and filled in an object: the answer to an elicitation in form mode.
    /// [`Form::check`](super::form::Form::check) says whether it fits.
    #[must_use]
    pub const fn accept(content: Raw<'r>) -> Self {
        Reply(Kind::Accept { content: Some(content), schema: None })
    }

    /// The user agreed to visit the page: the answer to an elicitation in URL mode (from 2025-11-25 on). It does not mean
    /// that the visit is over.
    #[must_use]
    pub const fn consent() -> Self {
        Reply(Kind::Accept { content: None, schema: None })
    }

    /// With the defaults of the `requestedSchema` for all properties that were left out, where they fit their property
    /// (SEP-1034). Changes nothing in other answers than [`accept`](Self::accept).
    #[must_use]
    pub const fn defaults(self, schema: Raw<'r>) -> Self {
        match self.0 {
            Kind::Accept { content: Some(content), .. } => {
                Reply(Kind::Accept { content: Some(content), schema: Some(schema) })
            }
            _ => self,
        }
    }

    /// The user said no.
    #[must_use]
    pub const fn decline() -> Self {
        Reply(Kind::Decline)
    }

    /// The user closed the form, or made no choice in time.
    #[must_use]
    pub const fn cancel() -> Self {
        Reply(Kind::Cancel)
    }

    /// What a model said: the answer to `sampling/createMessage`.
    #[must_use]
    pub const fn sampled(sampled: Sampled<'r>) -> Self {
        Reply(Kind::Sampled(sampled))
    }

    /// The answer to `roots/list`.
    #[must_use]
    pub const fn roots(roots: &'r [Root<'r>]) -> Self {
        Reply(Kind::Roots(roots))
    }

    /// A whole result object, sent as it stands.
    #[must_use]
    pub const fn raw(result: Raw<'r>) -> Self {
        Reply(Kind::Raw(result))
    }

    /// Whether the user agreed.
    pub(crate) const fn accepts(&self) -> bool {
        matches!(self.0, Kind::Accept { .. })
    }

    /// Writes the result object.
    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        match self.0 {
            Kind::Accept { content: None, .. } => out.put(br#"{"action":"accept"}"#),
            Kind::Accept { content: Some(content), schema } => {
                out.put(br#"{"action":"accept","content":"#)?;
                write_filled(out, content, schema)?;
                out.put(b"}")
            }
            Kind::Decline => out.put(br#"{"action":"decline"}"#),
            Kind::Cancel => out.put(br#"{"action":"cancel"}"#),
            Kind::Sampled(sampled) => sampled.write(out, revision),
            Kind::Roots(roots) => write_roots(out, roots, revision),
            Kind::Raw(result) => write::raw(out, result),
        }
    }
}

/// Content of a form, with the defaults that it lacks.
fn write_filled(out: &mut Writer<'_>, content: Raw<'_>, schema: Option<Raw<'_>>) -> Result<(), Full> {
    let Some(form) = schema.and_then(|schema| Form::of(schema).ok()) else { return write::raw(out, content) };
    let mut object = Object::open(out);
    if content.kind() == JsonKind::Object {
        object.spread(content)?;
    }
    for field in form.fields() {
        let given = content.members().any(|(key, _)| key.same(&field.name()));
        let default = field.default().filter(|&default| !given && field.check(default).is_ok());
        if let Some(default) = default {
            object.member(field.name(), default)?;
        }
    }
    object.close()
}

/// What a model said. Its role is `assistant`.
#[derive(Clone, Copy, Debug)]
pub struct Sampled<'r> {
    model: &'r str,
    content: Said<'r>,
    stop_reason: Option<&'r str>,
    meta: Option<Raw<'r>>,
}

#[derive(Clone, Copy, Debug)]
enum Said<'r> {
    One(Content<'r>),
    Pieces(&'r [Content<'r>]),
    Raw(Raw<'r>),
}

impl<'r> Sampled<'r> {
    /// One piece of content, and the model that it is from.
    #[must_use]
    pub const fn new(model: &'r str, content: Content<'r>) -> Self {
        Sampled { model, content: Said::One(content), stop_reason: None, meta: None }
    }

    /// Several pieces: text, and wishes to call tools. Before 2025-11-25 there can be only one, and the first that the
    /// revision knows is sent.
    #[must_use]
    pub const fn pieces(model: &'r str, content: &'r [Content<'r>]) -> Self {
        Sampled { model, content: Said::Pieces(content), stop_reason: None, meta: None }
    }

    /// Content as it stands: one block, or an array of them.
    #[must_use]
    pub const fn raw(model: &'r str, content: Raw<'r>) -> Self {
        Sampled { model, content: Said::Raw(content), stop_reason: None, meta: None }
    }

    /// Why the model stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a reason of the provider's. Unless it is
    /// said, `toolUse` where the content has a wish to call a tool, and `endTurn` otherwise.
    #[must_use]
    pub const fn stop_reason(self, reason: &'r str) -> Self {
        Sampled { stop_reason: Some(reason), ..self }
    }

    /// With `_meta`, an object as it stands.
    #[must_use]
    pub const fn meta(self, meta: Raw<'r>) -> Self {
        Sampled { meta: Some(meta), ..self }
    }

    fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let tools = revision.has(Since::SamplingTools);
        let mut object = Object::open(out);
        object.fixed("role", "\"assistant\"")?;
        let content = object.key("content");
        if tools {
            self.content.write(content, revision)?
        } else {
            self.content.write_one(content, revision)?
        }
        object.text("model", self.model)?;
        let usual = if tools && self.content.uses_tools() { "toolUse" } else { "endTurn" };
        object.text("stopReason", self.stop_reason.unwrap_or(usual))?;
        object.raw_if("_meta", self.meta)?;
        object.close()
    }
}

/// Content of a revision that has only text, images and audio, where there is nothing of these.
const NOTHING: &[u8] = br#"{"type":"text","text":""}"#;

impl Said<'_> {
    fn uses_tools(&self) -> bool {
        match self {
            Said::One(piece) => piece.is_tool_traffic(),
            Said::Pieces(pieces) => pieces.iter().any(Content::is_tool_traffic),
            Said::Raw(raw) => blocks(*raw).any(|block| is_block(block, TOOL_USE)),
        }
    }

    fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        match self {
            Said::One(piece) | Said::Pieces([piece]) => piece.write_in(out, revision, true),
            Said::Raw(raw) => write::raw(out, *raw),
            Said::Pieces(pieces) => {
                out.put(b"[")?;
                for (i, piece) in pieces.iter().enumerate() {
                    if i > 0 {
                        out.put(b",")?;
                    }
                    piece.write_in(out, revision, true)?;
                }
                out.put(b"]")
            }
        }
    }

    /// One block, and none about tools: as it was before 2025-11-25.
    fn write_one(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let piece = match self {
            Said::Raw(raw) => {
                let block = blocks(*raw).find(|&block| !is_block(block, TOOL_USE) && !is_block(block, TOOL_RESULT));
                return write::raw(out, block.unwrap_or(Raw::trusted(NOTHING)));
            }
            Said::One(piece) => Some(piece),
            Said::Pieces(pieces) => pieces.iter().find(|piece| !piece.is_tool_traffic()),
        };
        match piece.filter(|piece| !piece.is_tool_traffic()) {
            Some(piece) => piece.write_in(out, revision, true),
            None => out.put(NOTHING),
        }
    }
}

/// A directory or file that the server may work in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Root<'r> {
    uri: &'r str,
    /// Its name for people.
    pub name: Option<&'r str>,
    /// `_meta`, an object as it stands (from 2025-06-18 on).
    pub meta: Option<Raw<'r>>,
}

impl<'r> Root<'r> {
    /// The root of that URI; `None` if it is no `file://` URI with a path, which all revisions require, if it has
    /// characters that must be escaped by `%` in a URI, or a `..` on its way.
    #[must_use]
    pub const fn new(uri: &'r str) -> Option<Self> {
        match uri.as_bytes() {
            [b'f', b'i', b'l', b'e', b':', b'/', b'/', rest @ ..] if is_path(rest) => {
                Some(Root { uri, name: None, meta: None })
            }
            _ => None,
        }
    }

    /// Its URI.
    #[must_use]
    pub const fn uri(&self) -> &'r str {
        self.uri
    }

    /// With a name for people.
    #[must_use]
    pub const fn name(self, name: &'r str) -> Self {
        Root { name: Some(name), ..self }
    }

    /// With `_meta`, an object as it stands (from 2025-06-18 on).
    #[must_use]
    pub const fn meta(self, meta: Raw<'r>) -> Self {
        Root { meta: Some(meta), ..self }
    }
}

/// Whether what stands behind `file://` is an authority, mostly empty, and a path.
const fn is_path(mut rest: &[u8]) -> bool {
    let mut has_path = false;
    while let [byte, behind @ ..] = rest {
        if !byte.is_ascii_graphic() || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') {
            return false;
        }
        if matches!(rest, [b'/', b'.', b'.'] | [b'/', b'.', b'.', b'/', ..]) {
            return false;
        }
        has_path |= *byte == b'/';
        rest = behind;
    }
    has_path
}

fn write_roots(out: &mut Writer<'_>, roots: &[Root<'_>], revision: Revision) -> Result<(), Full> {
    out.put(br#"{"roots":["#)?;
    for (i, root) in roots.iter().enumerate() {
        if i > 0 {
            out.put(b",")?;
        }
        let mut object = Object::open(out);
        object.text("uri", root.uri)?;
        object.text_if("name", root.name)?;
        object.raw_if("_meta", root.meta.filter(|_| revision.has(Since::ObjectMeta)))?;
        object.close()?;
    }
    out.put(b"]}")
}

/// A question of the server that is answered with an error. A user who says no to an elicitation is
/// [`Reply::decline`] instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal<'r> {
    /// The error code.
    pub code: i32,
    /// What went wrong, in a sentence.
    pub message: &'r str,
}

impl<'r> Refusal<'r> {
    /// An error of that code.
    #[must_use]
    pub const fn new(code: i32, message: &'r str) -> Self {
        Refusal { code, message }
    }

    /// The user does not want the sampling: -1.
    #[must_use]
    pub const fn refused() -> Self {
        Refusal::new(code::USER_REFUSED, "The user rejected the request")
    }

    /// The client has no such method: -32601, as for roots that were not declared.
    #[must_use]
    pub const fn unsupported(message: &'r str) -> Self {
        Refusal::new(code::METHOD_NOT_FOUND, message)
    }

    /// What was asked cannot be answered: -32602, as for an elicitation mode that was not declared, or a conversation
    /// whose tool results are not those that were asked for.
    #[must_use]
    pub const fn invalid(message: &'r str) -> Self {
        Refusal::new(code::INVALID_PARAMS, message)
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

const TOOL_USE: &str = "tool_use";
const TOOL_RESULT: &str = "tool_result";

/// Whether the tool results in the messages of a `sampling/createMessage` are those that were asked for, see [`Wishes`], and
/// each message has a role that there is, and content.
pub(crate) fn balanced(messages: Raw<'_>) -> bool {
    let mut open = Wishes::NONE;
    let keeps_rule = messages.items().all(|message| {
        let role = message.get("role").and_then(|role| role.text());
        let by = |name: &str| role.is_some_and(|role| role.is(name));
        let (user, model) = (by("user"), by("assistant"));
        let content = message.get("content");
        let said = content.is_some_and(|content| matches!(content.kind(), JsonKind::Object | JsonKind::Array));
        said && (user || model) && open.take(user, model, content.into_iter().flat_map(blocks).map(piece))
    });
    messages.kind() == JsonKind::Array && keeps_rule && open.is_empty()
}

fn piece(block: Raw<'_>) -> Piece<Text<'_>> {
    let id = |key| block.get(key).and_then(|id| id.text());
    if is_block(block, TOOL_USE) {
        Piece::Use(id("id"))
    } else if is_block(block, TOOL_RESULT) {
        Piece::Result(id("toolUseId"))
    } else {
        Piece::Other
    }
}

/// The blocks of content: an array of them, or one in place of it.
fn blocks(content: Raw<'_>) -> impl Iterator<Item = Raw<'_>> + Clone {
    let one = Some(content).filter(|content| content.kind() == JsonKind::Object);
    one.into_iter().chain(content.items())
}

fn is_block(block: Raw<'_>, kind: &str) -> bool {
    block.get("type").and_then(|found| found.text()).is_some_and(|found| found.is(kind))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::balance::TOOL_USES;
    use crate::sink::{Lines, Slice, part};
    use std::format;
    use std::string::String;

    use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    fn written(reply: Reply<'_>, revision: Revision) -> String {
        let mut bytes = [0; 1024];
        let mut out = Lines::new(Slice::new(&mut bytes));
        part(&mut out, |out| reply.write(out, revision)).unwrap();
        let json = raw(core::str::from_utf8(out.pending()).unwrap());
        String::from(json.as_str())
    }

    #[test]
    fn elicitations() {
        for revision in [V2025_06_18, V2025_11_25, V2026_07_28] {
            assert_eq!(written(Reply::decline(), revision), r#"{"action":"decline"}"#);
            assert_eq!(written(Reply::cancel().defaults(raw("{}")), revision), r#"{"action":"cancel"}"#);
            assert_eq!(written(Reply::consent().defaults(raw("{}")), revision), r#"{"action":"accept"}"#);
            let filled = written(Reply::accept(raw("{\"a\":\n1}")), revision);
            assert_eq!(filled, r#"{"action":"accept","content":{"a": 1}}"#);
        }
    }

    #[test]
    fn defaults_fill_what_is_left_out() {
        let schema = raw(r#"{"type":"object","properties":{
            "name":{"type":"string","default":"John"},"age":{"type":"integer","default":30},
            "score":{"type":"number","default":95.5},"on":{"type":"boolean","default":false},
            "one":{"type":"string","enum":["a","b"],"default":"b"},"bad":{"type":"string","enum":["a"],"default":"z"},
            "many":{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["a"]},
            "nested":{"type":"string","default":{"x":1}},"none":{"type":"string"}}}"#);
        let all = written(Reply::accept(raw("{}")).defaults(schema), V2025_11_25);
        let expected =
            r#"{"action":"accept","content":{"name":"John","age":30,"score":95.5,"on":false,"one":"b","many":["a"]}}"#;
        assert_eq!(all, expected);
        let some = raw(r#"{"n\u0061me":"x","on":true,"more":null,"one":"a","many":[]}"#);
        let some = written(Reply::accept(some).defaults(schema), V2025_11_25);
        let expected = r#"{"action":"accept","content":{"n\u0061me":"x","on":true,"more":null,"one":"a","many":[],"age":30,"score":95.5}}"#;
        assert_eq!(some, expected);
        assert_eq!(
            written(Reply::accept(raw(r#"{"a":1}"#)).defaults(raw("[]")), V2025_11_25),
            r#"{"action":"accept","content":{"a":1}}"#
        );
    }

    #[test]
    fn samplings() {
        let text = Sampled::new("m", Content::text("4\"2"));
        let expected =
            r#"{"role":"assistant","content":{"type":"text","text":"4\"2"},"model":"m","stopReason":"endTurn"}"#;
        for revision in Revision::ALL {
            assert_eq!(written(Reply::sampled(text), revision), expected);
        }
        let reason = written(Reply::sampled(text.stop_reason("maxTokens").meta(raw(r#"{"k":1}"#))), V2026_07_28);
        assert!(reason.ends_with(r#""stopReason":"maxTokens","_meta":{"k":1}}"#), "{reason}");
        let sound = written(Reply::sampled(Sampled::new("m", Content::audio(b"", "audio/wav"))), V2024_11_05);
        assert!(sound.contains(r#"{"type":"text","text":"(audio/wav)"}"#), "{sound}");
    }

    #[test]
    fn samplings_with_tools() {
        let pieces = [Content::tool_use("1", "t", Raw::constant(r#"{"a":1}"#)), Content::text("x")];
        let wish = r#"{"type":"tool_use","id":"1","name":"t","input":{"a":1}}"#;
        let text = r#"{"type":"text","text":"x"}"#;
        let array = format!("[{wish},{text}]");
        let pieces_new = written(Reply::sampled(Sampled::pieces("m", &pieces)), V2025_11_25);
        let expected = format!(r#"{{"role":"assistant","content":{array},"model":"m","stopReason":"toolUse"}}"#);
        assert_eq!(pieces_new, expected);
        assert_eq!(written(Reply::sampled(Sampled::raw("m", raw(&array))), V2026_07_28), expected);
        let expected = format!(r#"{{"role":"assistant","content":{text},"model":"m","stopReason":"endTurn"}}"#);
        assert_eq!(written(Reply::sampled(Sampled::pieces("m", &pieces)), V2025_06_18), expected);
        assert_eq!(written(Reply::sampled(Sampled::raw("m", raw(&array))), V2024_11_05), expected);
        assert_eq!(written(Reply::sampled(Sampled::raw("m", raw(text))), V2024_11_05), expected);
        let [wish_only, _] = pieces;
        let one = written(Reply::sampled(Sampled::pieces("m", &[wish_only])), V2025_11_25);
        assert!(one.contains(&format!(r#""content":{wish},"#)), "{one}");
        for sampled in [Sampled::new("m", wish_only), Sampled::raw("m", raw(wish)), Sampled::pieces("m", &[])] {
            let old = written(Reply::sampled(sampled), V2025_06_18);
            assert!(old.contains(r#""content":{"type":"text","text":""}"#) && old.contains("endTurn"), "{old}");
        }
    }

    #[test]
    fn roots() {
        let wrong = [
            "https://x",
            "file:/x",
            "file://",
            "file://host",
            "file:///a/../../etc",
            "file:///a/..",
            "file:///a b",
            "file:///a\n",
            "file:///é",
        ];
        assert!(wrong.into_iter().all(|uri| Root::new(uri).is_none()));
        assert!(["file:///", "file:///a/..b/%2e", "file://host/a"].into_iter().all(|uri| Root::new(uri).is_some()));
        let root = Root::new("file:///a").unwrap();
        let roots = [root, root.name("b").meta(Raw::constant("{}"))];
        let old = written(Reply::roots(&roots), V2024_11_05);
        assert_eq!(old, r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///a","name":"b"}]}"#);
        assert!(written(Reply::roots(&roots), V2025_06_18).contains(r#""name":"b","_meta":{}"#));
        assert_eq!(written(Reply::roots(&[]), V2025_06_18), r#"{"roots":[]}"#);
        assert_eq!(written(Reply::raw(raw(r#"{ "x": 1 }"#)), V2025_06_18), r#"{ "x": 1 }"#);
    }

    #[test]
    fn refusals() {
        assert_eq!(Refusal::refused().code, -1);
        assert_eq!(Refusal::unsupported("no").code, -32601);
        assert_eq!(format!("{}", Refusal::invalid("Bad mode")), "Bad mode (-32602)");
    }

    const ASKED: &str = r#"{"role":"user","content":{"type":"text","text":"?"}}"#;
    const WISHES: &str = r#"{"role":"assistant","content":[{"type":"text","text":"hm"},{"type":"tool_use","id":"a"},{"type":"tool_use","id":"b"}]}"#;
    const RESULTS: &str = r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"b"},{"type":"tool_result","toolUseId":"\u0061"}]}"#;
    const DONE: &str = r#"{"role":"assistant","content":{"type":"text","text":"!"}}"#;

    #[test]
    fn balanced_conversations() {
        let one = r#"{"role":"assistant","content":{"type":"tool_use","id":"a"}}"#;
        let result = r#"{"role":"user","content":{"type":"tool_result","toolUseId":"a"}}"#;
        for good in [&[][..], &[ASKED], &[ASKED, WISHES, RESULTS, DONE], &[one, result], &[one, result, one, result]] {
            assert!(balanced(raw(&format!("[{}]", good.join(",")))), "{good:?}");
        }
    }

    #[test]
    fn unbalanced_conversations() {
        let missing = r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"a"}]}"#;
        let twice = r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"a"},{"type":"tool_result","toolUseId":"a"}]}"#;
        let mixed = format!("{},{}", RESULTS.trim_end_matches("]}"), r#"{"type":"text","text":"x"}]}"#);
        let by_model = RESULTS.replace("user", "assistant");
        let by_user = WISHES.replace("assistant", "user");
        let same = WISHES.replace("\"b\"", "\"a\"");
        let nameless = WISHES.replace("\"id\"", "\"name\"");
        for bad in [
            &[WISHES][..],
            &[WISHES, DONE],
            &[WISHES, ASKED, RESULTS],
            &[WISHES, missing, DONE],
            &[WISHES, twice],
            &[WISHES, &mixed],
            &[WISHES, &by_model],
            &[WISHES, RESULTS, RESULTS],
            &[by_user.as_str(), RESULTS],
            &[same.as_str(), missing],
            &[nameless.as_str(), RESULTS],
            &[ASKED, RESULTS],
            &[WISHES, "3", RESULTS],
        ] {
            assert!(!balanced(raw(&format!("[{}]", bad.join(",")))), "{bad:?}");
        }
        assert!(!balanced(raw("{}")));
    }

    #[test]
    fn a_model_wants_only_so_much_at_once() {
        let conversation = |n: usize| {
            let wishes: String = (0..n).map(|i| format!(r#",{{"type":"tool_use","id":"{i}"}}"#)).collect();
            let results: String = (0..n).map(|i| format!(r#",{{"type":"tool_result","toolUseId":"{i}"}}"#)).collect();
            format!(
                r#"[{{"role":"assistant","content":[{}]}},{{"role":"user","content":[{}]}}]"#,
                wishes.trim_start_matches(','),
                results.trim_start_matches(',')
            )
        };
        assert!(balanced(raw(&conversation(TOOL_USES))));
        assert!(!balanced(raw(&conversation(TOOL_USES + 1))));
    }
}
