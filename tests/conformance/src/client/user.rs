//! The one who is asked: agrees to everything, and changes nothing that has a default.

use mcp_sansio::client::form::Form;
use mcp_sansio::client::reply::{Refusal, Reply, Root, Sampled};
use mcp_sansio::client::views::View;
use mcp_sansio::client::{Event, Handler, Link, Question, QuestionKind};
use mcp_sansio::json::Raw;
use mcp_sansio::service::Content;

use crate::invent;

pub(crate) struct User;

const ROOTS: [Root<'static>; 1] = [Root::new("file:///tmp").unwrap().name("scratch")];

impl Handler for User {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        match event {
            Event::Asked(asked) => {
                for question in asked.questions() {
                    println!("asked: {question:?}");
                    if let Err(error) = answer(question, link) {
                        eprintln!("not answered: {error}");
                    }
                }
            }
            other => println!("{other:?}"),
        }
    }
}

fn answer(question: Question<'_>, link: &mut Link<'_, '_>) -> Result<(), mcp_sansio::client::SendError> {
    match question.kind {
        QuestionKind::Form => {
            let schema = question.params.get("requestedSchema").unwrap_or(Raw::constant("{}"));
            match Form::of(schema) {
                Ok(form) => {
                    let content = invent::content(&form);
                    link.reply(question.id, &Reply::accept(content.raw()).defaults(schema))
                }
                Err(_) => link.refuse(question.id, &Refusal::invalid("The form cannot be shown")),
            }
        }
        QuestionKind::Visit => link.reply(question.id, &Reply::consent()),
        QuestionKind::Sampling => {
            link.reply(question.id, &Reply::sampled(Sampled::new("none", Content::text("I do not know."))))
        }
        QuestionKind::Roots => link.reply(question.id, &Reply::roots(&ROOTS)),
        _ => link.refuse(question.id, &Refusal::refused()),
    }
}
