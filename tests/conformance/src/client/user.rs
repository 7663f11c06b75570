//! The user of the client: accepts every question, with the defaults of each form.

use std::sync::atomic::{AtomicBool, Ordering};

use mcp_sansio::client::form::Form;
use mcp_sansio::client::result::{ClientResult, CreateMessageResult, Root};
use mcp_sansio::client::views::View;
use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler, ServerRequest, ServerRequestKind};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::service::ContentBlock;

use crate::invent;

/// The server has said that its event types have changed.
pub(crate) static EVENTS_CHANGED: AtomicBool = AtomicBool::new(false);

pub(crate) struct User;

const ROOTS: [Root<'static>; 1] = [Root::new("file:///tmp").unwrap().name("scratch")];

impl ClientHandler for User {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        match event {
            ClientEvent::Asked(asked) => {
                for question in asked.questions() {
                    println!("asked: {question:?}");
                    if let Err(error) = answer(question, handle) {
                        eprintln!("not answered: {error}");
                    }
                }
            }
            ClientEvent::Notification { method, .. } if method.eq_str("notifications/events/list_changed") => {
                EVENTS_CHANGED.store(true, Ordering::Relaxed);
            }
            other => println!("{other:?}"),
        }
    }
}

fn answer(question: ServerRequest<'_>, handle: &mut ClientHandle<'_, '_>) -> Result<(), mcp_sansio::client::SendError> {
    match question.kind {
        ServerRequestKind::Form => {
            let schema = question.params.get("requestedSchema").unwrap_or(Raw::constant("{}"));
            match Form::of(schema) {
                Ok(form) => {
                    let content = invent::content(&form);
                    handle.reply(question.id, &ClientResult::accept(content.raw()).defaults(schema))
                }
                Err(_) => handle.refuse(question.id, &RpcError::invalid_params("The form cannot be shown")),
            }
        }
        ServerRequestKind::UrlElicitation => handle.reply(question.id, &ClientResult::consent()),
        ServerRequestKind::Sampling => handle.reply(
            question.id,
            &ClientResult::sampled(CreateMessageResult::new("none", ContentBlock::text("I do not know."))),
        ),
        ServerRequestKind::Roots => handle.reply(question.id, &ClientResult::roots(&ROOTS)),
        _ => handle.refuse(question.id, &RpcError::refused()),
    }
}
