//! The client's answers to requests of the server.
//!
//! A request of the server is a JSON-RPC request (up to 2025-11-25) or stands in an `input_required` result (from
//! 2026-07-28 on). The answers are the same; the client writes them in the form of the negotiated revision.
//!
//! ```
//! use mcp_sansio::client::result::{ClientResult, Root, CreateMessageResult};
//! use mcp_sansio::error::RpcError;
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::service::ContentBlock;
//!
//! let schema = Raw::constant(r#"{"type":"object","properties":{"color":{"type":"string","default":"red"}}}"#);
//! let filled = ClientResult::accept(Raw::constant("{}")).defaults(schema); // {"color":"red"}
//! let no = ClientResult::decline();
//! let said = ClientResult::sampled(CreateMessageResult::new("some-model", ContentBlock::text("42")));
//! const ROOTS: [Root<'_>; 1] = [Root::new("file:///home/me/project").unwrap().name("project")];
//! let roots = ClientResult::roots(&ROOTS);
//! let refused = RpcError::refused();
//! # let _ = (filled, no, said, roots, refused);
//! ```

use super::form::Form;
use super::views::{View, blocks};
use crate::balance::{Piece, Wishes};
use crate::content::ContentBlock;
use crate::json::object::{Object, array};
use crate::json::{JsonKind, Raw, Text, constant};
use crate::revision::{Revision, Since};
use crate::sink::Writer;

/// The result of a request of the server.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ClientResult<'r>(Kind<'r>);

#[derive(Clone, Copy, Debug)]
enum Kind<'r> {
    Accept { content: Option<Raw<'r>>, schema: Option<Raw<'r>> },
    Decline,
    Cancel,
    Sampled(CreateMessageResult<'r>),
    Roots(&'r [Root<'r>]),
    Raw(Raw<'r>),
}

impl<'r> ClientResult<'r> {
    /// Returns `"action": "accept"` with `content`: the user filled in the form
    /// ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#response-actions)).
    /// Check it with [`Form::check`](super::form::Form::check) first.
    pub const fn accept(content: Raw<'r>) -> Self {
        ClientResult(Kind::Accept { content: Some(content), schema: None })
    }

    /// Returns `"action": "accept"` for an elicitation in URL mode: the user agreed to visit the page (from
    /// 2025-11-25 on,
    /// [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)). It does not
    /// mean that the visit is over.
    pub const fn consent() -> Self {
        ClientResult(Kind::Accept { content: None, schema: None })
    }

    /// Adds the defaults of `requestedSchema` for missing properties, where a default fits its property
    /// (SEP-1034); to one of [`FieldKind::Other`](super::form::FieldKind::Other) none does. Changes only answers of [`accept`](Self::accept).
    pub const fn defaults(mut self, requested: Raw<'r>) -> Self {
        if let Kind::Accept { schema, .. } = &mut self.0 {
            *schema = Some(requested);
        }
        self
    }

    /// Returns `"action": "decline"`: the user refused.
    pub const fn decline() -> Self {
        ClientResult(Kind::Decline)
    }

    /// Returns `"action": "cancel"`: the user closed the form, or did not choose in time.
    pub const fn cancel() -> Self {
        ClientResult(Kind::Cancel)
    }

    /// Returns the result of `sampling/createMessage`.
    ///
    /// Sampling is [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28
    /// on (SEP-2577): it still works; a new program calls a model's provider itself.
    pub const fn sampled(sampled: CreateMessageResult<'r>) -> Self {
        ClientResult(Kind::Sampled(sampled))
    }

    /// Returns the result of `roots/list`.
    ///
    /// Roots are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28 on
    /// (SEP-2577): they still work; a new program takes folders as arguments of tools, as URIs of resources, or from
    /// its configuration.
    pub const fn roots(roots: &'r [Root<'r>]) -> Self {
        ClientResult(Kind::Roots(roots))
    }

    /// Returns a result object that is sent without changes.
    pub const fn raw(result: Raw<'r>) -> Self {
        ClientResult(Kind::Raw(result))
    }

    /// Returns `true` for `"action": "accept"`.
    pub(crate) const fn accepts(&self) -> bool {
        matches!(self.0, Kind::Accept { .. })
    }

    /// Writes the result object in the form of a revision. The client does so itself for requests of the server; methods of
    /// extensions may have answers too.
    pub fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        match self.0 {
            Kind::Accept { content: None, .. } => out.put(br#"{"action":"accept"}"#),
            Kind::Accept { content: Some(content), schema } => {
                out.put(br#"{"action":"accept","content":"#);
                write_filled(out, content, schema);
                out.put(b"}")
            }
            Kind::Decline => out.put(br#"{"action":"decline"}"#),
            Kind::Cancel => out.put(br#"{"action":"cancel"}"#),
            Kind::Sampled(sampled) => sampled.write(out, revision),
            Kind::Roots(roots) => write_roots(out, roots, revision),
            Kind::Raw(result) => out.raw(result),
        }
    }
}

/// Writes the content of a form with the defaults of missing members.
fn write_filled(out: &mut Writer<'_>, content: Raw<'_>, schema: Option<Raw<'_>>) {
    let Some(form) = schema.and_then(|schema| Form::of(schema).ok()) else { return out.raw(content) };
    let mut object = Object::open(out);
    if content.kind() == JsonKind::Object {
        object.spread(content);
    }
    for field in form.fields() {
        let given = content.members().any(|(key, _)| key.same(&field.name));
        let default = field.default().filter(|&default| !given && field.check(default).is_ok());
        if let Some(default) = default {
            object.member(field.name, default);
        }
    }
    object.close()
}

/// The result of `sampling/createMessage`
/// ([sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling)). Its `role` is
/// `assistant`.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CreateMessageResult<'r> {
    model: &'r str,
    content: SampledContent<'r>,
    stop_reason: Option<&'r str>,
    meta: Option<Raw<'r>>,
}

#[derive(Clone, Copy, Debug)]
enum SampledContent<'r> {
    One(ContentBlock<'r>),
    Pieces(&'r [ContentBlock<'r>]),
    Raw(Raw<'r>),
}

impl<'r> CreateMessageResult<'r> {
    /// Returns a result with one content block of the model `model`.
    pub const fn new(model: &'r str, content: ContentBlock<'r>) -> Self {
        CreateMessageResult { model, content: SampledContent::One(content), stop_reason: None, meta: None }
    }

    /// Returns a result with several content blocks: text and tool uses ([tools in
    /// sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling#sampling-with-tools)).
    /// Before 2025-11-25 the client sends only the first block that is not a tool use.
    pub const fn pieces(model: &'r str, content: &'r [ContentBlock<'r>]) -> Self {
        CreateMessageResult { model, content: SampledContent::Pieces(content), stop_reason: None, meta: None }
    }

    /// Returns a result whose `content` is sent without changes: one block, or an array of blocks.
    pub const fn raw(model: &'r str, content: Raw<'r>) -> Self {
        CreateMessageResult { model, content: SampledContent::Raw(content), stop_reason: None, meta: None }
    }

    crate::const_setters! {
        /// Sets `stopReason`: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another reason of the model.
        /// Default: `toolUse` if the content has a tool use, else `endTurn`.
        stop_reason(reason: &'r str) => stop_reason = Some(reason);
        /// Sets `_meta`, a JSON object.
        meta(meta: Raw<'r>) => meta = Some(meta);
    }

    fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        let tools = revision.has(Since::SamplingTools);
        let mut object = Object::open(out);
        object.fixed("role", "\"assistant\"");
        self.content.write(object.key("content"), revision);
        object.text("model", self.model);
        let usual = if tools && self.content.uses_tools() { "toolUse" } else { "endTurn" };
        object.text("stopReason", self.stop_reason.unwrap_or(usual));
        object.raw_if("_meta", self.meta);
        object.close()
    }
}

/// The content for a revision that knows none of the blocks: only text, images and audio existed before
/// 2025-11-25.
const NOTHING: &[u8] = br#"{"type":"text","text":""}"#;

impl SampledContent<'_> {
    fn uses_tools(&self) -> bool {
        match self {
            SampledContent::One(piece) => piece.is_tool_traffic(),
            SampledContent::Pieces(pieces) => pieces.iter().any(ContentBlock::is_tool_traffic),
            SampledContent::Raw(raw) => blocks(*raw).any(|block| is_block(block, TOOL_USE)),
        }
    }

    /// Writes the blocks; before 2025-11-25 only the first one that has nothing to do with tools.
    fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        let tools = revision.has(Since::SamplingTools);
        let pieces = match self {
            SampledContent::Raw(raw) if tools => return out.raw(*raw),
            SampledContent::Raw(raw) => {
                let block = blocks(*raw).find(|&block| !is_block(block, TOOL_USE) && !is_block(block, TOOL_RESULT));
                return out.raw(block.unwrap_or(Raw::trusted(NOTHING)));
            }
            SampledContent::One(piece) => core::slice::from_ref(piece),
            SampledContent::Pieces(pieces) => pieces,
        };
        match (pieces, pieces.iter().find(|piece| !piece.is_tool_traffic())) {
            ([piece], _) if tools => piece.write_in(out, revision, true),
            (pieces, _) if tools => array(out, pieces, |out, piece| piece.write_in(out, revision, true)),
            (_, Some(piece)) => piece.write_in(out, revision, true),
            (_, None) => out.put(NOTHING),
        }
    }
}

/// A directory or file that the server may use
/// ([roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots)).
///
/// Give only folders that the user chose: see [Roots](crate::duties::client#roots).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct Root<'r> {
    uri: &'r str,
    name: Option<&'r str>,
    meta: Option<Raw<'r>>,
}

impl<'r> Root<'r> {
    /// Returns a root with this `uri`. Returns `None` if it is not a `file://` URI with a path, if it has
    /// characters that a URI must escape with `%`, or if its path contains `..`.
    #[must_use]
    pub const fn new(uri: &'r str) -> Option<Self> {
        match uri.as_bytes() {
            [b'f', b'i', b'l', b'e', b':', b'/', b'/', rest @ ..] if is_path(rest) => {
                Some(Root { uri, name: None, meta: None })
            }
            _ => None,
        }
    }

    crate::const_setters! {
        /// Sets `name`, for people.
        name(name: &'r str) => name = Some(name);
        /// Sets `_meta`, a JSON object (from 2025-06-18 on).
        meta(meta: Raw<'r>) => meta = Some(meta);
    }
}

/// Returns `true` if `rest`, the part after `file://`, is an authority, which may be empty, and a path.
const fn is_path(mut rest: &[u8]) -> bool {
    let mut has_path = false;
    while let [byte, behind @ ..] = rest {
        if !constant::is_uri_byte(*byte) {
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

fn write_roots(out: &mut Writer<'_>, roots: &[Root<'_>], revision: Revision) {
    out.put(br#"{"roots":"#);
    array(out, roots, |out, root| {
        let mut object = Object::open(out);
        object.text("uri", root.uri);
        object.text_if("name", root.name);
        object.raw_if("_meta", root.meta.filter(|_| revision.has(Since::ObjectMeta)));
        object.close()
    });
    out.put(b"}")
}

const TOOL_USE: &str = "tool_use";
const TOOL_RESULT: &str = "tool_result";

/// Returns `true` if each message has content and a known role, and if the tool results match the tool uses, see
/// [`Wishes`].
pub(crate) fn balanced(messages: Raw<'_>) -> bool {
    let mut open = Wishes::NONE;
    let keeps_rule = messages.items().all(|message| {
        let role = message.get("role").and_then(|role| role.text());
        let by = |name: &str| role.is_some_and(|role| role.eq_str(name));
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

fn is_block(block: Raw<'_>, kind: &str) -> bool {
    block.get("type").and_then(|found| found.text()).is_some_and(|found| found.eq_str(kind))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::balance::TOOL_USES;
    use crate::sink::{LineSink, SliceStorage, part};
    use std::format;
    use std::string::String;

    use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    fn written(reply: ClientResult<'_>, revision: Revision) -> String {
        let mut bytes = [0; 1024];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        part(&mut out, |out| reply.write(out, revision)).unwrap();
        let json = raw(core::str::from_utf8(out.pending()).unwrap());
        String::from(json.as_str())
    }

    #[test]
    fn elicitations() {
        for revision in [V2025_06_18, V2025_11_25, V2026_07_28] {
            assert_eq!(written(ClientResult::decline(), revision), r#"{"action":"decline"}"#);
            assert_eq!(written(ClientResult::cancel().defaults(raw("{}")), revision), r#"{"action":"cancel"}"#);
            assert_eq!(written(ClientResult::consent().defaults(raw("{}")), revision), r#"{"action":"accept"}"#);
            let filled = written(ClientResult::accept(raw("{\"a\":\n1}")), revision);
            assert_eq!(filled, r#"{"action":"accept","content":{"a": 1}}"#);
        }
    }

    // spec: C026
    #[test]
    fn defaults_fill_what_is_left_out() {
        let schema = raw(r#"{"type":"object","properties":{
            "name":{"type":"string","default":"John"},"age":{"type":"integer","default":30},
            "score":{"type":"number","default":95.5},"on":{"type":"boolean","default":false},
            "one":{"type":"string","enum":["a","b"],"default":"b"},"bad":{"type":"string","enum":["a"],"default":"z"},
            "many":{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["a"]},
            "nested":{"type":"string","default":{"x":1}},"none":{"type":"string"},
            "unseen":{"type":["boolean","null"],"default":true},"number":{"enum":[1],"default":1}}}"#);
        let all = written(ClientResult::accept(raw("{}")).defaults(schema), V2025_11_25);
        let expected =
            r#"{"action":"accept","content":{"name":"John","age":30,"score":95.5,"on":false,"one":"b","many":["a"]}}"#;
        assert_eq!(all, expected);
        let some = raw(r#"{"n\u0061me":"x","on":true,"more":null,"one":"a","many":[]}"#);
        let some = written(ClientResult::accept(some).defaults(schema), V2025_11_25);
        let expected = r#"{"action":"accept","content":{"n\u0061me":"x","on":true,"more":null,"one":"a","many":[],"age":30,"score":95.5}}"#;
        assert_eq!(some, expected);
        assert_eq!(
            written(ClientResult::accept(raw(r#"{"a":1}"#)).defaults(raw("[]")), V2025_11_25),
            r#"{"action":"accept","content":{"a":1}}"#
        );
    }

    #[test]
    fn samplings() {
        let text = CreateMessageResult::new("m", ContentBlock::text("4\"2"));
        let expected =
            r#"{"role":"assistant","content":{"type":"text","text":"4\"2"},"model":"m","stopReason":"endTurn"}"#;
        for revision in Revision::ALL {
            assert_eq!(written(ClientResult::sampled(text), revision), expected);
        }
        let reason = written(ClientResult::sampled(text.stop_reason("maxTokens").meta(raw(r#"{"k":1}"#))), V2026_07_28);
        let expected = expected.replace("endTurn\"", "maxTokens\",\"_meta\":{\"k\":1}");
        assert_eq!(reason, expected);
        let sound = written(
            ClientResult::sampled(CreateMessageResult::new("m", ContentBlock::audio(b"", "audio/wav"))),
            V2024_11_05,
        );
        assert!(sound.contains(r#"{"type":"text","text":"(audio/wav)"}"#), "{sound}");
    }

    #[test]
    fn samplings_with_tools() {
        let pieces = [ContentBlock::tool_use("1", "t", Raw::constant(r#"{"a":1}"#)), ContentBlock::text("x")];
        let wish = r#"{"type":"tool_use","id":"1","name":"t","input":{"a":1}}"#;
        let text = r#"{"type":"text","text":"x"}"#;
        let array = format!("[{wish},{text}]");
        let pieces_new = written(ClientResult::sampled(CreateMessageResult::pieces("m", &pieces)), V2025_11_25);
        let expected = format!(r#"{{"role":"assistant","content":{array},"model":"m","stopReason":"toolUse"}}"#);
        assert_eq!(pieces_new, expected);
        assert_eq!(written(ClientResult::sampled(CreateMessageResult::raw("m", raw(&array))), V2026_07_28), expected);
        let expected = format!(r#"{{"role":"assistant","content":{text},"model":"m","stopReason":"endTurn"}}"#);
        assert_eq!(written(ClientResult::sampled(CreateMessageResult::pieces("m", &pieces)), V2025_06_18), expected);
        assert_eq!(written(ClientResult::sampled(CreateMessageResult::raw("m", raw(&array))), V2024_11_05), expected);
        assert_eq!(written(ClientResult::sampled(CreateMessageResult::raw("m", raw(text))), V2024_11_05), expected);
        let [wish_only, _] = pieces;
        let one = written(ClientResult::sampled(CreateMessageResult::pieces("m", &[wish_only])), V2025_11_25);
        assert!(one.contains(&format!(r#""content":{wish},"#)), "{one}");
        for sampled in [
            CreateMessageResult::new("m", wish_only),
            CreateMessageResult::raw("m", raw(wish)),
            CreateMessageResult::pieces("m", &[]),
        ] {
            let old = written(ClientResult::sampled(sampled), V2025_06_18);
            assert!(old.contains(r#""content":{"type":"text","text":""}"#) && old.contains("endTurn"), "{old}");
        }
    }

    // spec: C095 C097 C098
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
        let old = written(ClientResult::roots(&roots), V2024_11_05);
        assert_eq!(old, r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///a","name":"b"}]}"#);
        assert!(written(ClientResult::roots(&roots), V2025_06_18).contains(r#""name":"b","_meta":{}"#));
        assert_eq!(written(ClientResult::roots(&[]), V2025_06_18), r#"{"roots":[]}"#);
        assert_eq!(written(ClientResult::raw(raw(r#"{ "x": 1 }"#)), V2025_06_18), r#"{ "x": 1 }"#);
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

    // spec: C105 C106 C129
    #[test]
    fn unbalanced_conversations() {
        let missing = r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"a"}]}"#;
        let twice = r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"a"},{"type":"tool_result","toolUseId":"a"}]}"#;
        let mixed = r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"b"},{"type":"tool_result","toolUseId":"a"},{"type":"text","text":"x"}]}"#;
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
            &[WISHES, mixed],
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
    #[cfg_attr(miri, ignore = "some minutes")]
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
