//! What happens while nobody waits for it: noted down; and questions, answered.

use mcp_sansio::client::form::{Form, Kind};
use mcp_sansio::client::reply::{Refusal, Reply, Root, Sampled};
use mcp_sansio::client::views::View;
use mcp_sansio::client::{Changed, Event, Handler, Link, Question, QuestionKind};
use mcp_sansio::json::Raw;
use mcp_sansio::service::Content;
use serde_json::{Map, Value, json};

use crate::value;

/// Notes everything, answers everything.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) events: Vec<Value>,
    /// What to say to the next questions: `accept`, if nothing is said.
    pub(crate) mood: Mood,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Accept,
    Decline,
    Cancel,
}

/// An answer of every kind: what the server's tool makes of it, the plan compares.
const ROOTS: [(&str, &str); 2] = [("file:///tmp/walker", "walker"), ("file:///tmp", "all")];
pub(crate) const MODEL: &str = "walker-model";
const SAID: &str = "a word from the walker";

impl Watch {
    pub(crate) fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|seen| seen["event"] == event).count()
    }
}

impl Handler for Watch {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        let note = match event {
            Event::Connected(_) => return,
            Event::Asked(asked) => {
                for question in asked.questions() {
                    let replied = self.reply(&question, link);
                    self.events.push(json!({
                        "event": "asked", "kind": format!("{:?}", question.kind), "params": value(question.params),
                        "of": asked.token().is_some(), "failure": replied.err().map(|error| error.to_string()),
                    }));
                }
                return;
            }
            Event::Progress(report) => json!({
                "event": "progress", "done": value(report.done), "total": report.total.map(value),
                "message": report.message.map(|text| text.to_string()),
            }),
            Event::Log(log) => json!({
                "event": "log", "level": log.level.map(|level| level.name()), "data": value(log.data),
                "logger": log.logger.map(|text| text.to_string()),
            }),
            Event::Listening(got) => json!({
                "event": "listening", "tools": got.tools, "prompts": got.prompts, "resources": got.resources,
                "uris": got.uris,
            }),
            Event::Changed { listen, what } => {
                let what = match what {
                    Changed::Tools => "tools".to_owned(),
                    Changed::Prompts => "prompts".to_owned(),
                    Changed::Resources => "resources".to_owned(),
                    Changed::Resource(uri) => uri.to_string(),
                    _ => "?".to_owned(),
                };
                json!({"event": "changed", "what": what, "listen": listen.is_some()})
            }
            // Of what nobody waits for: a listen that has ended.
            Event::Done { outcome, .. } => json!({"event": "done", "what": format!("{outcome:?}")}),
            Event::Visited { id } => json!({"event": "visited", "id": id.to_string()}),
            Event::Withdrawn(_) => json!({"event": "withdrawn"}),
            Event::Notification { method, .. } => json!({"event": "notification", "method": method.to_string()}),
            Event::Ignored(oddity) => json!({"event": "ignored", "what": format!("{oddity:?}")}),
            other => json!({"event": "other", "what": format!("{other:?}")}),
        };
        self.events.push(note);
    }
}

impl Watch {
    fn reply(&self, question: &Question<'_>, link: &mut Link<'_, '_>) -> Result<(), mcp_sansio::client::SendError> {
        match question.kind {
            QuestionKind::Form | QuestionKind::Visit if self.mood == Mood::Decline => {
                link.reply(question.id, &Reply::decline())
            }
            QuestionKind::Form | QuestionKind::Visit if self.mood == Mood::Cancel => {
                link.reply(question.id, &Reply::cancel())
            }
            QuestionKind::Form => {
                let schema = question.params.get("requestedSchema").unwrap_or(Raw::constant("{}"));
                let filled = fill_in(schema).to_string();
                let Ok(filled) = Raw::parse(filled.as_bytes()) else { return Ok(()) };
                link.reply(question.id, &Reply::accept(filled).defaults(schema))
            }
            QuestionKind::Visit => link.reply(question.id, &Reply::consent()),
            QuestionKind::Sampling => {
                link.reply(question.id, &Reply::sampled(Sampled::new(MODEL, Content::text(SAID))))
            }
            QuestionKind::Roots => {
                let roots = ROOTS.map(|(uri, name)| Root::new(uri).map(|root| root.name(name)));
                let roots: Vec<Root<'_>> = roots.into_iter().flatten().collect();
                link.reply(question.id, &Reply::roots(&roots))
            }
            _ => link.refuse(question.id, &Refusal::refused()),
        }
    }
}

/// Required fields that have no default, with whatever fits; the rest is left to the defaults.
fn fill_in(schema: Raw<'_>) -> Value {
    let mut filled = Map::new();
    let Ok(form) = Form::of(schema) else { return Value::Object(filled) };
    for field in form.fields().filter(|field| field.default().is_none()) {
        let tries: Vec<Value> = match field.kind() {
            Kind::Text { .. } => {
                ["word", "a@example.com", "https://example.com/", "2026-07-28", "2026-07-28T12:00:00Z"]
                    .map(Value::from)
                    .into()
            }
            Kind::Integer { min, .. } | Kind::Number { min, .. } => {
                [Some(json!(42)), min.map(value)].into_iter().flatten().collect()
            }
            Kind::Boolean => vec![json!(true)],
            Kind::One(choices) => choices.iter().map(|choice| json!(choice.value.to_string())).collect(),
            Kind::Many { choices, .. } => {
                let all: Vec<Value> = choices.iter().map(|choice| json!(choice.value.to_string())).collect();
                (1..=all.len()).map(|n| json!(all[..n])).collect()
            }
            _ => vec![],
        };
        let fits =
            |answer: &Value| Raw::parse(answer.to_string().as_bytes()).is_ok_and(|answer| field.check(answer).is_ok());
        if let Some(answer) = tries.into_iter().find(fits) {
            filled.insert(field.name().to_string(), answer);
        }
    }
    Value::Object(filled)
}
