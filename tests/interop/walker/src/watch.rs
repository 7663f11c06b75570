//! Records the events of the client, and answers the server's questions.

use mcp_sansio::client::form::{FieldKind, Form};
use mcp_sansio::client::result::{ClientResult, CreateMessageResult, Root};
use mcp_sansio::client::views::View;
use mcp_sansio::client::{
    ChangeNotification, ClientEvent, ClientHandle, ClientHandler, ServerRequest, ServerRequestKind,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::service::ContentBlock;
use serde_json::{Map, Value, json};

use crate::value;

/// A handler that records every event and answers every question.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) events: Vec<Value>,
    /// The kind of the next answers; `accept` by default.
    pub(crate) mood: Mood,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Accept,
    Decline,
    Cancel,
}

/// The answers: the plan compares the result that the server's tool makes of them.
const ROOTS: [(&str, &str); 2] = [("file:///tmp/walker", "walker"), ("file:///tmp", "all")];
pub(crate) const MODEL: &str = "walker-model";
const SAID: &str = "a word from the walker";

impl Watch {
    pub(crate) fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|seen| seen["event"] == event).count()
    }
}

impl ClientHandler for Watch {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        let note = match event {
            ClientEvent::Connected(_) => return,
            ClientEvent::Asked(asked) => {
                for question in asked.questions() {
                    let replied = self.reply(&question, handle);
                    self.events.push(json!({
                        "event": "asked", "kind": format!("{:?}", question.kind), "params": value(question.params),
                        "of": asked.token.is_some(), "failure": replied.err().map(|error| error.to_string()),
                    }));
                }
                return;
            }
            ClientEvent::Progress { done, total, message, .. } => json!({
                "event": "progress", "done": value(done), "total": total.map(value),
                "message": message.map(|text| text.to_string()),
            }),
            ClientEvent::Log { level, logger, data, .. } => json!({
                "event": "log", "level": level.map(|level| level.name()), "data": value(data),
                "logger": logger.map(|text| text.to_string()),
            }),
            ClientEvent::Listening(got) => json!({
                "event": "listening", "tools": got.tools, "prompts": got.prompts, "resources": got.resources,
                "uris": got.uris,
            }),
            ClientEvent::Changed { listen, what } => {
                let what = match what {
                    ChangeNotification::Tools => "tools".to_owned(),
                    ChangeNotification::Prompts => "prompts".to_owned(),
                    ChangeNotification::Resources => "resources".to_owned(),
                    ChangeNotification::Resource(uri) => uri.to_string(),
                    _ => "?".to_owned(),
                };
                json!({"event": "changed", "what": what, "listen": listen.is_some()})
            }
            // The outcome of a subscription: no call waits for it.
            ClientEvent::Done { outcome, .. } => json!({"event": "done", "what": format!("{outcome:?}")}),
            ClientEvent::ElicitationComplete { id } => json!({"event": "visited", "id": id.to_string()}),
            ClientEvent::Withdrawn { .. } => json!({"event": "withdrawn"}),
            ClientEvent::Notification { method, .. } => json!({"event": "notification", "method": method.to_string()}),
            ClientEvent::Ignored(oddity) => json!({"event": "ignored", "what": format!("{oddity:?}")}),
            other => json!({"event": "other", "what": format!("{other:?}")}),
        };
        self.events.push(note);
    }
}

impl Watch {
    fn reply(
        &self,
        question: &ServerRequest<'_>,
        handle: &mut ClientHandle<'_, '_>,
    ) -> Result<(), mcp_sansio::client::SendError> {
        match question.kind {
            ServerRequestKind::Form | ServerRequestKind::UrlElicitation if self.mood == Mood::Decline => {
                handle.reply(question.id, &ClientResult::decline())
            }
            ServerRequestKind::Form | ServerRequestKind::UrlElicitation if self.mood == Mood::Cancel => {
                handle.reply(question.id, &ClientResult::cancel())
            }
            ServerRequestKind::Form => {
                let schema = question.params.get("requestedSchema").unwrap_or(Raw::constant("{}"));
                let filled = fill_in(schema).to_string();
                let Ok(filled) = Raw::parse(filled.as_bytes()) else { return Ok(()) };
                handle.reply(question.id, &ClientResult::accept(filled).defaults(schema))
            }
            ServerRequestKind::UrlElicitation => handle.reply(question.id, &ClientResult::consent()),
            ServerRequestKind::Sampling => handle
                .reply(question.id, &ClientResult::sampled(CreateMessageResult::new(MODEL, ContentBlock::text(SAID)))),
            ServerRequestKind::Roots => {
                let roots = ROOTS.map(|(uri, name)| Root::new(uri).map(|root| root.name(name)));
                let roots: Vec<Root<'_>> = roots.into_iter().flatten().collect();
                handle.reply(question.id, &ClientResult::roots(&roots))
            }
            _ => handle.refuse(question.id, &RpcError::refused()),
        }
    }
}

/// Fills required fields without a default with fitting values; the other fields get their defaults.
fn fill_in(schema: Raw<'_>) -> Value {
    let mut filled = Map::new();
    let Ok(form) = Form::of(schema) else { return Value::Object(filled) };
    for field in form.fields().filter(|field| field.default().is_none()) {
        let tries: Vec<Value> = match field.kind() {
            FieldKind::Text { .. } => {
                ["word", "a@example.com", "https://example.com/", "2026-07-28", "2026-07-28T12:00:00Z"]
                    .map(Value::from)
                    .into()
            }
            FieldKind::Integer { min, .. } | FieldKind::Number { min, .. } => {
                [Some(json!(42)), min.map(value)].into_iter().flatten().collect()
            }
            FieldKind::Boolean => vec![json!(true)],
            FieldKind::One => field.choices().map(|(value, _)| json!(value.to_string())).collect(),
            FieldKind::Many { .. } => {
                let all: Vec<Value> = field.choices().map(|(value, _)| json!(value.to_string())).collect();
                (1..=all.len()).map(|n| json!(all[..n])).collect()
            }
            _ => vec![],
        };
        let fits =
            |answer: &Value| Raw::parse(answer.to_string().as_bytes()).is_ok_and(|answer| field.check(answer).is_ok());
        if let Some(answer) = tries.into_iter().find(fits) {
            filled.insert(field.name.to_string(), answer);
        }
    }
    Value::Object(filled)
}
