//! What a handler can ask of the client, and what comes back.

use super::content::{Content, Message, Role, write_messages};
use crate::balance::Wishes;
use crate::json::{Decimal, Raw, Text, object::Object, write};
use crate::protocol::{ClientFeature, ClientFeatures, code};
use crate::revision::{Revision, Since};
use crate::server::write_texts;
use crate::sink::{Full, Writer};

/// A question to the client: a form for the user, a page for the user to visit, a model's answer, the client's roots.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    pub(crate) key: &'q str,
    kind: Kind<'q>,
    way: &'static Way,
}

#[derive(Clone, Copy, Debug)]
enum Kind<'q> {
    Form { message: &'q str, schema: Raw<'q> },
    Url { message: &'q str, url: &'q str, id: &'q str },
    Sample(Sampling<'q>),
    Roots,
}

/// How a kind of question is asked. Questions have it with them, so that a program is linked with those that it asks.
struct Way {
    /// The method that asks it.
    method: &'static str,
    /// What the client must have declared.
    needs: fn(&Kind<'_>) -> ClientFeature,
    /// Whether the revision has a way to ask it at all.
    exists_in: fn(&Kind<'_>, Revision) -> bool,
    /// Whether it is as the protocol demands in each revision.
    is_sound: fn(&Kind<'_>) -> bool,
    write: fn(&Kind<'_>, &mut Object<'_, '_>, Revision, ClientFeatures) -> Result<(), Full>,
}

impl Way {
    const FORM: Way = Way {
        method: "elicitation/create",
        needs: |_| ClientFeature::ElicitForm,
        exists_in: |kind, revision| {
            let Kind::Form { schema, .. } = kind else { return false };
            let plain = !revision.has_plain_elicitation_only() || is_plain(*schema);
            revision.has(Since::Elicitation) && plain
        },
        is_sound: |_| true,
        write: |kind, params, revision, _| {
            let Kind::Form { message, schema } = kind else { return Ok(()) };
            if revision.has(Since::ElicitationMode) {
                params.fixed("mode", "\"form\"")?;
            }
            params.text("message", message)?;
            params.raw("requestedSchema", *schema)
        },
    };

    const URL: Way = Way {
        method: "elicitation/create",
        needs: |_| ClientFeature::ElicitUrl,
        exists_in: |_, revision| revision.has(Since::ElicitationMode),
        is_sound: |_| true,
        write: |kind, params, revision, _| {
            let Kind::Url { message, url, id } = kind else { return Ok(()) };
            params.fixed("mode", "\"url\"")?;
            params.text("message", message)?;
            params.text("url", url)?;
            if revision.is_modern() { Ok(()) } else { params.text("elicitationId", id) }
        },
    };

    const SAMPLE: Way = Way {
        method: "sampling/createMessage",
        needs: |kind| match kind {
            Kind::Sample(sampling) => sampling.needs(),
            _ => ClientFeature::Sampling,
        },
        exists_in: |kind, revision| matches!(kind, Kind::Sample(sampling) if sampling.exists_in(revision)),
        is_sound: |kind| matches!(kind, Kind::Sample(sampling) if sampling.is_balanced()),
        write: |kind, params, revision, client| {
            let Kind::Sample(sampling) = kind else { return Ok(()) };
            sampling.write(params, revision, client)
        },
    };

    const ROOTS: Way = Way {
        method: "roots/list",
        needs: |_| ClientFeature::Roots,
        exists_in: |_, _| true,
        is_sound: |_| true,
        write: |_, _, _, _| Ok(()),
    };
}

impl<'q> Question<'q> {
    /// A form for the user (from 2025-06-18 on). The schema is an object of plain properties: strings, numbers,
    /// booleans, choices.
    #[must_use]
    pub const fn elicit(key: &'q str, message: &'q str, schema: Raw<'q>) -> Self {
        Question { key, kind: Kind::Form { message, schema }, way: &Way::FORM }
    }

    /// A page for the user to visit (from 2025-11-25 on). `id` names the visit, for
    /// [`elicitation_complete`](crate::server::ServerOf::elicitation_complete), which says that it is over: a server need
    /// not, and no adapter does by itself.
    #[must_use]
    pub const fn visit(key: &'q str, message: &'q str, url: &'q str, id: &'q str) -> Self {
        Question { key, kind: Kind::Url { message, url, id }, way: &Way::URL }
    }

    /// A model's answer to a conversation.
    #[must_use]
    pub const fn sample(key: &'q str, sampling: Sampling<'q>) -> Self {
        Question { key, kind: Kind::Sample(sampling), way: &Way::SAMPLE }
    }

    /// The client's roots.
    #[must_use]
    pub const fn roots(key: &'q str) -> Self {
        Question { key, kind: Kind::Roots, way: &Way::ROOTS }
    }

    /// The method that asks it.
    pub(crate) const fn method(&self) -> &'static str {
        self.way.method
    }

    /// What the client must have declared.
    pub(crate) fn needs(&self) -> ClientFeature {
        (self.way.needs)(&self.kind)
    }

    /// Whether the revision has a way to ask it at all.
    pub(crate) fn exists_in(&self, revision: Revision) -> bool {
        (self.way.exists_in)(&self.kind, revision)
    }

    /// Whether it is as the protocol demands in each revision.
    pub(crate) fn is_sound(&self) -> bool {
        (self.way.is_sound)(&self.kind)
    }

    pub(crate) const fn is_url(&self) -> bool {
        matches!(self.kind, Kind::Url { .. })
    }

    pub(crate) fn write_params(
        &self,
        out: &mut Writer<'_>,
        revision: Revision,
        client: ClientFeatures,
    ) -> Result<(), Full> {
        let mut params = Object::open(out);
        (self.way.write)(&self.kind, &mut params, revision, client)?;
        params.close()
    }
}

impl core::fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Question").field("key", &self.key).field("kind", &self.kind).finish()
    }
}

/// Whether an elicitation schema has only what 2025-06-18 knows: no arrays, no `oneOf`.
fn is_plain(schema: Raw<'_>) -> bool {
    let Some(properties) = schema.get("properties") else { return true };
    properties.members().all(|(_, property)| {
        let array = property.get("type").and_then(|kind| kind.text()).is_some_and(|kind| kind.is("array"));
        !array && property.get("oneOf").is_none() && property.get("anyOf").is_none()
    })
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Sampling<'q> {
    messages: &'q [Message<'q>],
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

impl<'q> Sampling<'q> {
    /// A conversation, and how long the answer may be.
    ///
    /// After a message of the model's with [`Content::tool_use`] the next one is the user's, with one
    /// [`Content::tool_result`] for each of them, in any order, and with nothing else; there are no other results. A
    /// conversation that breaks this rule is not sent: see [`Handling::ask`](super::Handling::ask).
    #[must_use]
    pub const fn new(messages: &'q [Message<'q>], max_tokens: u32) -> Self {
        Sampling {
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

    /// What the model is told before the conversation.
    #[must_use]
    pub const fn system_prompt(self, text: &'q str) -> Self {
        Sampling { system_prompt: Some(text), ..self }
    }

    /// How free the answer may be.
    #[must_use]
    pub const fn temperature(self, temperature: Decimal) -> Self {
        Sampling { temperature: Some(temperature), ..self }
    }

    /// What ends the answer.
    #[must_use]
    pub const fn stop_sequences(self, sequences: &'q [&'q str]) -> Self {
        Sampling { stop_sequences: sequences, ..self }
    }

    /// `none`, `thisServer` or `allServers`; from 2025-11-25 on the latter two need the client's
    /// `sampling.context`.
    #[must_use]
    pub const fn include_context(self, context: &'q str) -> Self {
        Sampling { include_context: Some(context), ..self }
    }

    /// Which model is preferred, an object as it stands.
    #[must_use]
    pub const fn preferences(self, preferences: Raw<'q>) -> Self {
        Sampling { preferences: Some(preferences), ..self }
    }

    /// What is passed on to the provider of the model, an object as it stands.
    #[must_use]
    pub const fn metadata(self, metadata: Raw<'q>) -> Self {
        Sampling { metadata: Some(metadata), ..self }
    }

    /// Tools that the model may call, an array of tool definitions as it stands (from 2025-11-25 on).
    #[must_use]
    pub const fn tools(self, tools: Raw<'q>) -> Self {
        Sampling { tools: Some(tools), ..self }
    }

    /// How the model chooses tools, an object as it stands (from 2025-11-25 on).
    #[must_use]
    pub const fn tool_choice(self, choice: Raw<'q>) -> Self {
        Sampling { tool_choice: Some(choice), ..self }
    }

    fn uses_tools(&self) -> bool {
        self.tools.is_some()
            || self.tool_choice.is_some()
            || self.messages.iter().flat_map(Message::pieces).any(Content::is_tool_traffic)
    }

    fn is_balanced(&self) -> bool {
        let mut open = Wishes::NONE;
        let keeps_rule = self.messages.iter().all(|message| {
            let by_user = message.role == Role::User;
            open.take(by_user, !by_user, message.pieces().map(Content::piece))
        });
        keeps_rule && open.is_empty()
    }

    fn uses_context(&self) -> bool {
        self.include_context.is_some_and(|context| context != "none")
    }

    fn needs(&self) -> ClientFeature {
        if self.uses_tools() { ClientFeature::SamplingTools } else { ClientFeature::Sampling }
    }

    fn exists_in(&self, revision: Revision) -> bool {
        !self.uses_tools() || revision.has(Since::SamplingTools)
    }

    fn write(&self, params: &mut Object<'_, '_>, revision: Revision, client: ClientFeatures) -> Result<(), Full> {
        write_messages(params.key("messages"), self.messages, revision, true)?;
        params.raw_if("modelPreferences", self.preferences)?;
        params.text_if("systemPrompt", self.system_prompt)?;
        // A client that does not give so much context is asked without.
        let gated = revision.has(Since::SamplingContextGated) && !client.has(ClientFeature::SamplingContext);
        if !gated || !self.uses_context() {
            params.text_if("includeContext", self.include_context)?;
        }
        if let Some(temperature) = self.temperature {
            write::decimal(params.key("temperature"), temperature)?;
        }
        params.number("maxTokens", self.max_tokens.into())?;
        if !self.stop_sequences.is_empty() {
            write_texts(params.key("stopSequences"), self.stop_sequences)?;
        }
        params.raw_if("metadata", self.metadata)?;
        if revision.has(Since::SamplingTools) {
            params.raw_if("tools", self.tools)?;
            params.raw_if("toolChoice", self.tool_choice)?;
        }
        Ok(())
    }
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum NoAnswer {
    /// The client answered with an error of this code; -1 is the user's refusal.
    Error(i32),
    /// Its deadline passed.
    TimedOut,
    /// The connection or session ended.
    Closed,
}

/// What came back for a question. The client made it: check what matters.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub(crate) result: Result<Raw<'a>, NoAnswer>,
}

impl<'a> Answer<'a> {
    pub(crate) fn error(error: Raw<'a>) -> Self {
        let code = error.get("code").and_then(|code| code.i64()).and_then(|code| i32::try_from(code).ok());
        Answer { result: Err(NoAnswer::Error(code.unwrap_or(code::INTERNAL))) }
    }

    /// The result as it stands, or why there is none.
    pub const fn result(&self) -> Result<Raw<'a>, NoAnswer> {
        self.result
    }

    /// Whether the user agreed to an elicitation.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.action_is("accept")
    }

    /// Whether the user said no, or refused a sampling.
    #[must_use]
    pub fn declined(&self) -> bool {
        // The first clients said "reject".
        let refused = matches!(self.result, Err(NoAnswer::Error(code::USER_REFUSED)));
        refused || self.action_is("decline") || self.action_is("reject")
    }

    /// Whether the user closed the form without an answer.
    #[must_use]
    pub fn dismissed(&self) -> bool {
        self.action_is("cancel")
    }

    /// What the user filled in, or what the model answered.
    #[must_use]
    pub fn content(&self) -> Option<Raw<'a>> {
        self.result.ok()?.get("content")
    }

    /// One value that the user filled in.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Raw<'a>> {
        self.content()?.get(name)
    }

    /// The first text that the model answered.
    #[must_use]
    pub fn text(&self) -> Option<Text<'a>> {
        let content = self.content()?;
        let is_text = |block: &Raw<'a>| block.get("type").and_then(|kind| kind.text()).is_some_and(|k| k.is("text"));
        let block = if is_text(&content) { content } else { content.items().find(is_text)? };
        block.get("text")?.text()
    }

    /// The URIs of the client's roots.
    pub fn roots(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        let roots = self.result.ok().and_then(|result| result.get("roots"));
        let roots = roots.map(|roots| roots.items());
        roots.into_iter().flatten().filter_map(|root| root.get("uri")?.text())
    }

    fn action_is(&self, action: &str) -> bool {
        let given = self.result.ok().and_then(|result| result.get("action")?.text());
        given.is_some_and(|given| given.is(action))
    }
}
