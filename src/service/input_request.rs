//! The questions that a handler can ask the client, and their answers. See
//! [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation),
//! [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling) and
//! [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots).

use super::context::{HandlerError, HandlerFailure, ToolError};
use crate::balance::Wishes;
use crate::content::{ContentBlock, PromptMessage, Role, write_texts};
use crate::json::{Decimal, Raw, Text, object::Object, object::array};
use crate::protocol::{ClientCapabilities, ClientCapability, code};
use crate::revision::{Revision, Since};
use crate::server::server_info::WriteQuestionMeta;
use crate::server::{RpcError, words};
use crate::sink::Writer;

/// A question to the client: a form for the user, a page for the user to visit, an answer of a model, the roots. From
/// 2026-07-28 on it is an
/// [`InputRequest`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr) in a result; before, it is
/// a request to the client.
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio::service::{Call, HandlerResult, InputRequest};
///
/// const COLOR: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"color":{"type":"string"}}}"#);
///
/// fn paint(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     let Some(answer) = call.answer("color") else {
///         return call.ask(&[InputRequest::elicit("color", "Which color?", COLOR)], b"");
///     };
///     match answer.value("color").and_then(|color| color.text()).filter(|_| answer.accepted()) {
///         Some(color) => call.text(&["Painted in ".into(), color.into()]),
///         None => call.text("Nothing was painted"),
///     }
/// }
/// # let _: fn(&mut (), &mut Call<'_>) -> HandlerResult = paint;
/// ```
///
/// A form must not ask for secrets, and a visit needs care: see [Secrets](crate::duties::server#secrets) and [Visits](crate::duties::server#visits).
#[derive(Clone, Copy)]
#[must_use]
pub struct InputRequest<'q> {
    /// The key of the answer.
    pub key: &'q str,
    kind: Kind<'q>,
    way: &'static Way,
}

#[derive(Clone, Copy, Debug)]
enum Kind<'q> {
    Form {
        message: &'q str,
        schema: Raw<'q>,
    },
    Url {
        message: &'q str,
        url: &'q str,
        id: &'q str,
    },
    Sample(CreateMessage<'q>),
    Roots,
    /// The params of a question that was written before, and their `_meta`.
    #[cfg(feature = "extensions")]
    Kept {
        params: Raw<'q>,
        meta: Raw<'q>,
    },
}

/// The way to ask one kind of question. A question refers to its own: so a program is linked only with those that it asks.
struct Way {
    method: &'static str,
    /// Returns the capability that the client must have declared, or the reason why the question cannot be asked in this
    /// revision.
    check: fn(&Kind<'_>, Revision) -> Result<ClientCapability, HandlerError>,
    write: fn(&Kind<'_>, &mut Object<'_, '_>, Revision, ClientCapabilities),
}

const NOT_IN_REVISION: HandlerError = cannot_ask("this client's protocol revision cannot ask that");

/// Makes the error for a mistake of the handler.
pub(super) const fn wrong_ask(text: &'static str) -> HandlerError {
    HandlerError(HandlerFailure::Fail(RpcError::internal(words(text))))
}

/// Makes the error if the client cannot be asked, in words for the model.
pub(super) const fn cannot_ask(words: &'static str) -> HandlerError {
    HandlerError(HandlerFailure::ToolError(ToolError {
        words: [words, "", "", ""],
        code: code::INTERNAL,
        otherwise: words,
    }))
}

impl Way {
    const FORM: Way = Way {
        method: "elicitation/create",
        check: |kind, revision| match kind {
            Kind::Form { schema, .. } if revision.has_plain_elicitation_only() && !is_plain(*schema) => {
                Err(NOT_IN_REVISION)
            }
            _ if revision.has(Since::Elicitation) => Ok(ClientCapability::ElicitForm),
            _ => Err(NOT_IN_REVISION),
        },
        write: |kind, params, revision, _| {
            let Kind::Form { message, schema } = kind else { return };
            if revision.has(Since::ElicitationMode) {
                params.fixed("mode", "\"form\"");
            }
            params.text("message", message);
            params.raw("requestedSchema", *schema)
        },
    };

    const URL: Way = Way {
        method: "elicitation/create",
        check: |_, revision| match revision.has(Since::ElicitationMode) {
            true => Ok(ClientCapability::ElicitUrl),
            false => Err(NOT_IN_REVISION),
        },
        write: |kind, params, revision, _| {
            let Kind::Url { message, url, id } = kind else { return };
            params.fixed("mode", "\"url\"");
            params.text("message", message);
            params.text("url", url);
            if !revision.is_modern() {
                params.text("elicitationId", id);
            }
        },
    };

    const SAMPLE: Way = Way {
        method: "sampling/createMessage",
        check: |kind, revision| match kind {
            Kind::Sample(sampling) => sampling.check(revision),
            _ => Ok(ClientCapability::Sampling),
        },
        write: |kind, params, revision, client| {
            if let Kind::Sample(sampling) = kind {
                sampling.write(params, revision, client);
            }
        },
    };

    const ROOTS: Way = Way { method: "roots/list", check: |_, _| Ok(ClientCapability::Roots), write: |_, _, _, _| {} };
}

/// Questions that were written before. What a schema or a conversation needs was checked then.
#[cfg(feature = "extensions")]
impl Way {
    const KEPT_FORM: Way = Way { write: write_kept, ..Way::FORM };
    const KEPT_URL: Way = Way { write: write_kept, ..Way::URL };
    const KEPT_SAMPLE: Way = Way { write: write_kept, ..Way::SAMPLE };
    const KEPT_ROOTS: Way = Way { write: write_kept, ..Way::ROOTS };
}

#[cfg(feature = "extensions")]
fn write_kept(kind: &Kind<'_>, object: &mut Object<'_, '_>, _: Revision, _: ClientCapabilities) {
    let Kind::Kept { params, meta } = kind else { return };
    object.spread(*params);
    object.raw("_meta", *meta)
}

impl<'q> InputRequest<'q> {
    /// Makes a form for the user (from 2025-06-18 on). `requestedSchema` is an object with properties that are strings,
    /// numbers, booleans or choices. `key` names the question for [`answer`](super::RequestContext::answer).
    #[doc(alias = "elicitation/create")]
    pub const fn elicit(key: &'q str, message: &'q str, schema: Raw<'q>) -> Self {
        InputRequest { key, kind: Kind::Form { message, schema }, way: &Way::FORM }
    }

    /// Makes a page for the user to visit (from 2025-11-25 on). `elicitationId` names the visit, for
    /// [`elicitation_complete`](crate::server::Server::elicitation_complete): the application may call it when the visit is
    /// over.
    #[doc(alias = "elicitation/create")]
    pub const fn visit(key: &'q str, message: &'q str, url: &'q str, id: &'q str) -> Self {
        InputRequest { key, kind: Kind::Url { message, url, id }, way: &Way::URL }
    }

    /// Makes a request for the answer of a model to a conversation.
    ///
    /// Sampling is [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28
    /// on (SEP-2577): it still works; a new program calls a model's provider itself.
    #[doc(alias = "sampling/createMessage")]
    pub const fn sample(key: &'q str, sampling: CreateMessage<'q>) -> Self {
        InputRequest { key, kind: Kind::Sample(sampling), way: &Way::SAMPLE }
    }

    /// Makes a request for the roots of the client.
    ///
    /// Roots are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28 on
    /// (SEP-2577): they still work; a new program takes folders as arguments of tools, as URIs of resources, or from
    /// its configuration.
    #[doc(alias = "roots/list")]
    pub const fn roots(key: &'q str) -> Self {
        InputRequest { key, kind: Kind::Roots, way: &Way::ROOTS }
    }

    /// Makes the question that [`write`](InputRequest::write) has written, with `_meta` in its params. `None` if `request` is
    /// not such an object.
    #[cfg(feature = "extensions")]
    #[must_use]
    pub fn kept(key: &'q str, request: Raw<'q>, meta: Raw<'q>) -> Option<Self> {
        let method = request.get("method")?.text()?;
        let params = request.get("params")?;
        let is_url = params.get("mode").and_then(|mode| mode.text()).is_some_and(|mode| mode.eq_str("url"));
        let ways: [&'static Way; 3] =
            [if is_url { &Way::KEPT_URL } else { &Way::KEPT_FORM }, &Way::KEPT_SAMPLE, &Way::KEPT_ROOTS];
        let way = ways.into_iter().find(|way| method.eq_str(way.method))?;
        Some(InputRequest { key, kind: Kind::Kept { params, meta }, way })
    }

    /// Returns the method that asks it.
    pub(crate) const fn method(&self) -> &'static str {
        self.way.method
    }

    /// Returns the capability that the client must have declared.
    ///
    /// # Errors
    /// The question cannot be asked, or not in this revision.
    pub(crate) fn check(&self, revision: Revision) -> Result<ClientCapability, HandlerError> {
        (self.way.check)(&self.kind, revision)
    }

    pub(crate) const fn is_url(&self) -> bool {
        matches!(self.kind, Kind::Url { .. })
    }

    pub(crate) fn write_params(&self, out: &mut Writer<'_>, revision: Revision, client: ClientCapabilities) {
        self.write_traced(out, revision, client, None)
    }

    /// Writes the params, and the trace context from the `_meta` of the request that asks.
    pub(crate) fn write_traced(
        &self,
        out: &mut Writer<'_>,
        revision: Revision,
        client: ClientCapabilities,
        trace: Option<(WriteQuestionMeta, Option<Raw<'_>>)>,
    ) {
        let mut params = Object::open(out);
        (self.way.write)(&self.kind, &mut params, revision, client);
        if let Some((write, meta)) = trace {
            write(meta, &mut params);
        }
        params.close()
    }
}

impl core::fmt::Debug for InputRequest<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("InputRequest").field("key", &self.key).field("kind", &self.kind).finish()
    }
}

/// Returns whether a schema is one of 2025-06-18: without arrays and without `oneOf`.
fn is_plain(schema: Raw<'_>) -> bool {
    let Some(properties) = schema.get("properties") else { return true };
    properties.members().all(|(_, property)| {
        let array = property.get("type").and_then(|kind| kind.text()).is_some_and(|kind| kind.eq_str("array"));
        !array && property.get("oneOf").is_none() && property.get("anyOf").is_none()
    })
}

/// The params of a
/// [`sampling/createMessage`](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling).
///
/// ```
/// use mcp_sansio::service::{ContentBlock, CreateMessage, InputRequest, PromptMessage};
///
/// let messages = [PromptMessage::user(ContentBlock::text("What rhymes with orange?"))];
/// let question = InputRequest::sample("rhyme", CreateMessage::new(&messages, 100).system_prompt("Answer with one word."));
/// # let _ = question;
/// ```
///
/// The handler limits the conversation: see [Sampling](crate::duties::server#sampling).
#[doc(alias = "CreateMessageRequest")]
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CreateMessage<'q> {
    messages: &'q [PromptMessage<'q>],
    max_tokens: u32,
    system_prompt: Option<&'q str>,
    temperature: Option<Decimal>,
    stop_sequences: &'q [&'q str],
    include_context: Option<&'q str>,
    preferences: Option<Raw<'q>>,
    metadata: Option<Raw<'q>>,
    tools: Option<Raw<'q>>,
    tool_choice: Option<Raw<'q>>,
}

impl<'q> CreateMessage<'q> {
    /// Makes a request from `messages`, with `maxTokens` for the answer.
    ///
    /// After a message of the model with [`ContentBlock::tool_use`], the next message is from the user and has one
    /// [`ContentBlock::tool_result`] for each of them, in any order, and nothing else. There are no other results. A
    /// conversation that breaks this rule is not sent: see [`RequestContext::ask`](super::RequestContext::ask).
    pub const fn new(messages: &'q [PromptMessage<'q>], max_tokens: u32) -> Self {
        CreateMessage {
            messages,
            max_tokens,
            system_prompt: None,
            temperature: None,
            stop_sequences: &[],
            include_context: None,
            preferences: None,
            metadata: None,
            tools: None,
            tool_choice: None,
        }
    }

    crate::const_setters! {
        /// Sets `systemPrompt`.
        system_prompt(text: &'q str) => system_prompt = Some(text);
        /// Sets `temperature`.
        temperature(temperature: Decimal) => temperature = Some(temperature);
        /// Sets `stopSequences`: texts that end the answer.
        stop_sequences(sequences: &'q [&'q str]) => stop_sequences = sequences;
        /// Sets `includeContext`: `none`, `thisServer` or `allServers`. From 2025-11-25 on it is left out if the client has not
        /// declared `sampling.context`, except for `none`.
        include_context(context: &'q str) => include_context = Some(context);
        /// Sets `modelPreferences`, a JSON object.
        #[doc(alias = "modelPreferences")]
        preferences(preferences: Raw<'q>) => preferences = Some(preferences);
        /// Sets `metadata`, a JSON object for the provider of the model.
        metadata(metadata: Raw<'q>) => metadata = Some(metadata);
        /// Sets `tools`, a JSON array of tools that the model may call (from 2025-11-25 on).
        tools(tools: Raw<'q>) => tools = Some(tools);
        /// Sets `toolChoice`, a JSON object (from 2025-11-25 on).
        tool_choice(choice: Raw<'q>) => tool_choice = Some(choice);
    }

    fn uses_tools(&self) -> bool {
        self.tools.is_some()
            || self.tool_choice.is_some()
            || self.messages.iter().flat_map(PromptMessage::pieces).any(ContentBlock::is_tool_traffic)
    }

    fn check(&self, revision: Revision) -> Result<ClientCapability, HandlerError> {
        let mut open = Wishes::NONE;
        let keeps_rule = self.messages.iter().all(|message| {
            let by_user = message.role == Role::User;
            open.take(by_user, !by_user, message.pieces().map(ContentBlock::piece))
        });
        if !keeps_rule || !open.is_empty() {
            return Err(wrong_ask("The handler samples with tool results that are not those asked for"));
        }
        match self.uses_tools() {
            true if !revision.has(Since::SamplingTools) => Err(NOT_IN_REVISION),
            true => Ok(ClientCapability::SamplingTools),
            false => Ok(ClientCapability::Sampling),
        }
    }

    fn write(&self, params: &mut Object<'_, '_>, revision: Revision, client: ClientCapabilities) {
        array(params.key("messages"), self.messages, |out, message| message.write(out, revision, true));
        params.raw_if("modelPreferences", self.preferences);
        params.text_if("systemPrompt", self.system_prompt);
        let gated = revision.has(Since::SamplingContextGated) && !client.has(ClientCapability::SamplingContext);
        if !gated || self.include_context == Some("none") {
            params.text_if("includeContext", self.include_context);
        }
        if let Some(temperature) = self.temperature {
            params.key("temperature").decimal(temperature);
        }
        params.number("maxTokens", self.max_tokens.into());
        if !self.stop_sequences.is_empty() {
            write_texts(params.key("stopSequences"), self.stop_sequences);
        }
        params.raw_if("metadata", self.metadata);
        if revision.has(Since::SamplingTools) {
            params.raw_if("tools", self.tools);
            params.raw_if("toolChoice", self.tool_choice);
        }
    }
}

/// The reason why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum InputError {
    /// The client answered with an error of this code. -1: the user has refused.
    Error(i32),
    /// Its deadline has passed.
    TimedOut,
    /// The connection or session has ended.
    Closed,
}

/// The answer to a question. It comes from the client: the handler checks it.
///
/// See [Input](crate::duties::server#input).
#[derive(Clone, Copy, Debug)]
pub struct InputResponse<'a> {
    /// The unchanged result, or the [`InputError`] of the question.
    pub result: Result<Raw<'a>, InputError>,
}

impl<'a> InputResponse<'a> {
    pub(crate) fn error(error: Raw<'a>) -> Self {
        let code = error.get("code").and_then(|code| code.i64()).and_then(|code| i32::try_from(code).ok());
        InputResponse { result: Err(InputError::Error(code.unwrap_or(code::INTERNAL))) }
    }

    /// Returns whether the `action` is `accept`: the user agreed to an elicitation.
    pub fn accepted(&self) -> bool {
        self.action_is("accept")
    }

    /// Returns whether the `action` is `decline`, or the user refused a sampling (error -1).
    pub fn declined(&self) -> bool {
        // The first clients sent "reject".
        let refused = matches!(self.result, Err(InputError::Error(code::USER_REFUSED)));
        refused || self.action_is("decline") || self.action_is("reject")
    }

    /// Returns whether the `action` is `cancel`: the user closed the form without an answer.
    pub fn dismissed(&self) -> bool {
        self.action_is("cancel")
    }

    /// Returns `content`: the values of the form, or the answer of the model.
    pub fn content(&self) -> Option<Raw<'a>> {
        self.result.ok()?.get("content")
    }

    /// Returns one value of the form.
    pub fn value(&self, name: &str) -> Option<Raw<'a>> {
        self.content()?.get(name)
    }

    /// Returns the first text of the answer of the model.
    pub fn text(&self) -> Option<Text<'a>> {
        let content = self.content()?;
        let is_text =
            |block: &Raw<'a>| block.get("type").and_then(|kind| kind.text()).is_some_and(|k| k.eq_str("text"));
        let block = if is_text(&content) { content } else { content.items().find(is_text)? };
        block.get("text")?.text()
    }

    /// Returns the URIs of the roots of the client.
    pub fn roots(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        let roots = self.result.ok().and_then(|result| result.get("roots"));
        let roots = roots.map(|roots| roots.items());
        roots.into_iter().flatten().filter_map(|root| root.get("uri")?.text())
    }

    fn action_is(&self, action: &str) -> bool {
        let given = self.result.ok().and_then(|result| result.get("action")?.text());
        given.is_some_and(|given| given.eq_str(action))
    }
}
